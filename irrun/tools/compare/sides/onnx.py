"""The ONNX model that ours was made of as the other side. What runs it is in a worker."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from irrun.diagnostics import EngineError, clipped
from irrun.ir.graph import Model
from irrun.ir.signature import names_of_inputs, names_of_results
from irrun.spec.op import Array
from irrun.tools.compare.sides.contract import Observation, Options, Runtime, SideFailed, Steps
from irrun.tools.compare.sides.exchange import Scratch, Stored, Stub, Writer
from irrun.tools.compare.sides.failures import explained, shortened
from irrun.tools.compare.sides.matching import fitted, matched
from irrun.tools.compare.sides.observing import observations, tensors_of_steps
from irrun.tools.compare.sides.process import Worker
from irrun.tools.compare.sides.tensors import bound, keys_of_results, tensors_of, wanted

WORKER = "irrun.tools.compare.sides.onnx_worker"

NO_VALUE = "no value of the ONNX model has a name of this tensor"


class OnnxSide:
    """An ONNX model. Its inputs and outputs are those of ours that they share a name with, else those in their place;
    its values are the tensors of ours that have their names. `by` is what runs it.

    Raises EngineError where nothing is installed that does, ValueError where inputs or outputs do not match,
    SideFailed where the model cannot be read.
    """

    kind = "model"
    precision = "f32"

    def __init__(self, path: Path, model: Model, options: Options) -> None:
        if find_spec("onnxruntime") is None and find_spec("onnx") is None:
            raise EngineError('neither onnxruntime nor onnx is installed: pip install "irrun[onnx]"')
        self.name = clipped(str(path), 200)
        self.untapped: dict[str, str] = {}
        self._path, self._model, self._options = path, model, options
        self._scratch = Scratch()
        self._worker = Worker(WORKER, self.name, options.timeout)
        self._tensors = tensors_of(model.graph)
        self._layers = {layer.name: layer for layer in model.graph.layers}
        try:
            self._described()
        except BaseException:
            self.close()
            raise

    def _described(self) -> None:
        found = self._told({"do": "describe", "path": str(self._path.absolute())})
        self.by: str = found["by"]
        self._inputs: list[tuple[str, str]] = [(name, type) for name, type in found["inputs"]]
        numbers = matched([[name] for name, _ in self._inputs], names_of_inputs(self._model.graph))
        self._sources: list[int] = []
        for (name, _), number in zip(self._inputs, numbers, strict=True):
            if number is None:
                raise ValueError(f"{self.name} has an input `{clipped(name, 200)}` that our model does not have")
            self._sources.append(number)
        self._outputs = matched(names_of_results(self._model.graph), [[name] for name in found["outputs"]])
        if not any(number is not None for number in self._outputs):
            raise ValueError(f"{self.name} has no output that the model has, by name, and not as many of them")
        values = dict.fromkeys(found["values"])
        self._values: dict[str, str] = {}
        for key, value in self._tensors.items():
            own = [value.layer.name] if len(value.layer.outputs) == 1 else []
            names = [name for name in (*value.port.names, *own) if name in values]
            if names:
                self._values[key] = names[0]
        self._why = NO_VALUE if values else "onnx is not installed, which makes outputs of values: pip install onnx"

    def outputs(self, steps: Steps) -> list[Mapping[str, Array]]:
        folder = Scratch(self._scratch.path)
        return [self._named(step["outputs"], folder) for step in self._asked("outputs", folder, steps)["steps"]]

    def observe(self, steps: Steps, keys: Collection[str] | None = None) -> list[Observation]:
        folder, names = Scratch(self._scratch.path), self._wanted(keys)
        more = {"names": list(names.values()), "max_bytes": self._options.max_bytes}
        answer = self._asked("observe", folder, steps, **more)
        listed = list(names)
        self.untapped.update({listed[int(n)]: shortened(reason) for n, reason in answer["untapped"].items()})
        return observations(answer, listed, self._named, folder)

    def cut(self, steps: Steps, keys: Collection[str]) -> list[Mapping[str, Array]]:
        folder, names = Scratch(self._scratch.path), self._wanted(keys)
        if not names:
            return [{} for _ in steps]
        answer = self._asked("cut", folder, steps, names=list(names.values()))
        listed = list(names)
        self.untapped.update({listed[int(n)]: shortened(reason) for n, reason in answer["untapped"].items()})
        return tensors_of_steps(answer, listed, folder)

    def runtime(self) -> Mapping[str, Runtime]:
        return {}

    def precise(self) -> None:
        return None

    def close(self) -> None:
        self._worker.close()
        self._scratch.close()

    def _wanted(self, keys: Collection[str] | None) -> dict[str, str]:
        """The names of values by key; why others have none is remembered."""
        values = wanted(self._tensors, keys)
        self.untapped.update({key: self._why for key in values if key not in self._values})
        return {key: self._values[key] for key in values if key in self._values}

    def _asked(self, do: str, folder: Scratch, steps: Steps, **more: Any) -> dict[str, Any]:
        writer, given = Writer(folder.path, "i"), list[dict[str, Stub]]()
        for arrays in bound(self._model, steps):
            stubs = {}
            for (name, type), number in zip(self._inputs, self._sources, strict=True):
                array = fitted(arrays[number], type, name)
                stubs[name] = writer.array(array)
            given.append(stubs)
        request = {"do": do, "path": str(self._path.absolute()), "folder": str(folder.path), "steps": given, **more}
        return self._told(request)

    def _told(self, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return self._worker.call(request)
        except SideFailed as error:
            raise explained(error, self.name, self._layers) from None

    def _named(self, outputs: Sequence[Stub], folder: Scratch) -> Mapping[str, Array]:
        keys = keys_of_results(self._model)
        found = {key: outputs[n] for key, n in zip(keys, self._outputs, strict=True) if n is not None}
        return Stored(found, folder)
