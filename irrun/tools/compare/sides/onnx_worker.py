"""An ONNX model in a process of its own, which may crash: `python -m irrun.tools.compare.sides.onnx_worker`.

onnxruntime runs it where that is installed, else the reference evaluator of onnx; onnx makes outputs of what is on the
way. A model that has its weights in other files is run with these where they are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from irrun.files import Unwritten
from irrun.spec.dtypes import element_type
from irrun.spec.op import Array
from irrun.tools.compare.sides.exchange import Stub, Writer, array_from
from irrun.tools.compare.sides.groups import watch
from irrun.tools.compare.sides.serving import Tell, serve

_EXTERNAL = "session.model_external_initializers_file_folder_path"
"""The setting of onnxruntime that says where weights are of a model that comes as bytes."""

_TYPES = {
    "float": "f32",
    "double": "f64",
    "float16": "f16",
    "bfloat16": "bf16",
    "bool": "boolean",
    "string": "string",
    **{f"{sign}int{bits}": f"{'u' if sign else 'i'}{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64)},
}
"""Element types by their names in `tensor(...)`, as onnxruntime has them."""


class OnnxModel:
    """A model, as onnx and onnxruntime see it; either may not be there."""

    def __init__(self, path: str, tell: Tell) -> None:
        tell("import")
        self._path = path
        self._proto: Any = None
        self._runtime: Any = None
        if find_spec("onnxruntime") is not None:
            import onnxruntime

            self._runtime = onnxruntime
        if find_spec("onnx") is not None:
            import onnx

            tell("read")
            self._onnx: Any = onnx
            self._proto = onnx.load(path, load_external_data=self._runtime is None)
        self._sessions: dict[tuple[str, ...] | None, Any] = {}

    def described(self, tell: Tell) -> dict[str, Any]:
        """The names of inputs, with their types, of outputs and of all values; and what runs it."""
        if self._proto is None:
            session = self._session(None, tell)
            inputs = [[given.name, _type(given.type)] for given in session.get_inputs()]
            outputs = [made.name for made in session.get_outputs()]
            return {"inputs": inputs, "outputs": outputs, "values": [], "by": "onnxruntime"}
        graph = self._proto.graph
        held = {tensor.name for tensor in graph.initializer}
        inputs = [[given.name, self._declared(given)] for given in graph.input if given.name not in held]
        values = [name for node in graph.node for name in node.output if name]
        by = "onnx.reference" if self._runtime is None else "onnxruntime"
        return {"inputs": inputs, "outputs": [made.name for made in graph.output], "values": values, "by": by}

    def run(self, steps: Sequence[Mapping[str, Array]], names: Sequence[str] | None, tell: Tell) -> list[Any]:
        """The values of these names, or the outputs, of each step, and the seconds that it took."""
        session = self._session(None if names is None else tuple(names), tell)
        tell("run")
        found = []
        for step in steps:
            begin = time.perf_counter()
            if self._runtime is not None:
                made = session.run(None if names is None else list(names), dict(step))
            elif names is None:
                made = session.run(None, dict(step))
            else:
                everything = session.run(None, dict(step), intermediate=True)
                made = [everything[name] for name in names]
            found.append((made, time.perf_counter() - begin))
        return found

    def sizes(self, step: Mapping[str, Array], names: Sequence[str]) -> dict[int, int | None]:
        """The bytes of values for inputs of these shapes, None where they are not known."""
        known: dict[str, int] = {}
        try:
            proto = self._onnx.ModelProto()
            proto.CopyFrom(self._proto)
            for given in proto.graph.input:
                if given.name in step:
                    shape = given.type.tensor_type.shape
                    del shape.dim[:]
                    for size in step[given.name].shape:
                        shape.dim.add().dim_value = size
            del proto.graph.value_info[:]
            inferred = self._onnx.shape_inference.infer_shapes(proto, data_prop=True)
            for info in (*inferred.graph.value_info, *inferred.graph.output):
                tensor = info.type.tensor_type
                if tensor.HasField("shape") and all(size.HasField("dim_value") for size in tensor.shape.dim):
                    known[info.name] = 8 * math.prod(size.dim_value for size in tensor.shape.dim)
        except Exception:  # whatever onnx raises: then there are as many groups as for unknown sizes
            known.clear()
        return {number: known.get(name) for number, name in enumerate(names)}

    def forget(self) -> None:
        """Give up sessions other than the plain one."""
        self._sessions = {names: session for names, session in self._sessions.items() if names is None}

    def _session(self, names: tuple[str, ...] | None, tell: Tell) -> Any:
        """What runs the model; with `names` these are its outputs."""
        if names in self._sessions:
            return self._sessions[names]
        self.forget()
        if self._runtime is None:
            tell("compile")
            from onnx.reference import ReferenceEvaluator

            self._sessions = dict.fromkeys((names, None), ReferenceEvaluator(self._proto))
            return self._sessions[names]
        source: Any = self._path
        options = self._runtime.SessionOptions()
        options.log_severity_level = 3
        if names is not None:
            tell("tap")
            source = self._ending(names)
            options.add_session_config_entry(_EXTERNAL, str(Path(self._path).absolute().parent))
        tell("compile")
        self._sessions[names] = self._runtime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        return self._sessions[names]

    def _ending(self, names: Sequence[str]) -> bytes:
        """The model with these values as its outputs."""
        outputs = self._proto.graph.output
        own = list(outputs)
        infos = {info.name: info for info in (*own, *self._proto.graph.value_info)}
        del outputs[:]
        try:
            outputs.extend(infos.get(name) or self._onnx.ValueInfoProto(name=name) for name in names)
            content: bytes = self._proto.SerializeToString()
        finally:
            del outputs[:]
            outputs.extend(own)
        return content

    def _declared(self, given: Any) -> str:
        number = given.type.tensor_type.elem_type
        name = self._onnx.TensorProto.DataType.Name(number).lower() if number else "undefined"
        return _type(f"tensor({name})")


class Handlers:
    """What is done for each request, by its name."""

    def __init__(self) -> None:
        self._model: tuple[str, OnnxModel] | None = None

    def _loaded(self, request: Mapping[str, Any], tell: Tell) -> OnnxModel:
        if self._model is None or self._model[0] != request["path"]:
            self._model = request["path"], OnnxModel(request["path"], tell)
        return self._model[1]

    def describe(self, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
        """The inputs, outputs and values of the model."""
        return self._loaded(request, tell).described(tell)

    def outputs(self, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
        """The outputs of each step."""
        writer = Writer(request["folder"], "o")
        made = self._loaded(request, tell).run(_given(request), None, tell)
        return {"steps": [{"outputs": [_written(value, writer) for value in values]} for values, _ in made]}

    def observe(self, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
        """The outputs and the values of `names`, of each step."""
        model, steps, names = self._loaded(request, tell), _given(request), request["names"]
        own, writer = model.described(tell)["outputs"], Writer(request["folder"], "t")
        found: list[dict[str, Any]] = [{"runs": [], "tensors": {}} for _ in steps]

        def run(group: Sequence[int]) -> None:
            asked = [names[number] for number in group]
            made = model.run(steps, list(dict.fromkeys([*own, *asked])), tell)
            results = []
            for values, seconds in made:
                stubs = [_written(value, writer) for value in values]
                known = dict(zip(dict.fromkeys([*own, *asked]), stubs, strict=True))
                results.append((known, seconds))
            for step, (known, seconds) in zip(found, results, strict=True):
                outputs = [known[name] for name in own]
                step["runs"].append({"outputs": outputs, "seconds": seconds, "taps": list(group)})
                step["tensors"].update({number: known[names[number]] for number in group})

        sizes = model.sizes(steps[0] if steps else {}, names) if names else {}
        failed = watch(sizes, request["max_bytes"], run, lambda: model.run(steps, None, tell))
        model.forget()
        return {"steps": found, "untapped": failed}

    def cut(self, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
        """The values of `names` of each step, each of a model that ends with it."""
        model, steps, writer = self._loaded(request, tell), _given(request), Writer(request["folder"], "c")
        found: list[dict[int, Stub]] = [{} for _ in steps]
        untapped, failed = dict[int, str](), list[Exception]()
        for number, name in enumerate(request["names"]):
            try:
                made = [_written(values[0], writer) for values, _ in model.run(steps, [name], tell)]
            except Unwritten:
                raise
            except Exception as error:  # whatever the library raises
                untapped[number] = str(error)
                failed.append(error)
            else:
                for step, stub in zip(found, made, strict=True):
                    step[number] = stub
        if failed and not any(found):
            raise failed[0]
        model.forget()
        return {"steps": found, "untapped": untapped}


def _given(request: Mapping[str, Any]) -> list[dict[str, Array]]:
    found = []
    for step in request["steps"]:
        arrays = {name: array_from(stub) for name, stub in step.items()}
        found.append({n: a.astype(object) if a.dtype.kind == "U" else np.asarray(a) for n, a in arrays.items()})
    return found


def _type(text: str) -> str:
    return _TYPES.get(text.removeprefix("tensor(").removesuffix(")"), "dynamic")


def _written(value: Any, writer: Writer) -> Stub:
    """A value in a file. Raises TypeError where it is no tensor."""
    if not isinstance(value, np.ndarray | np.generic):
        raise TypeError(f"it is a {type(value).__name__}, not a tensor")
    array: Array = np.asarray(value)
    if array.dtype.kind in "OSU":
        return writer.write("string", array.shape, [str(text) for text in array.flat])
    return writer.array(array, element_type(array.dtype))


def main() -> None:
    handlers = Handlers()
    serve({name: getattr(handlers, name) for name in ("describe", "outputs", "observe", "cut")})


if __name__ == "__main__":
    main()
