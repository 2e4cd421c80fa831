"""OpenVINO in a process of its own, which may crash: `python -m irrun.tools.compare.sides.openvino_worker`.

A request names the model's file, the device and its settings, so that one process serves several of each; a tensor is
named by its layer's name, type and output number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irrun.tools.compare.sides.exchange import Stub, Writer
from irrun.tools.compare.sides.groups import watch
from irrun.tools.compare.sides.openvino_models import Openvino, Untapped, nodes_of, output_of
from irrun.tools.compare.sides.serving import Tell, serve


class Handlers:
    """What is done for each request, by its name."""

    def __init__(self) -> None:
        self._loaded: Openvino | None = None

    def _runtime(self, tell: Tell) -> Openvino:
        if self._loaded is None:
            self._loaded = Openvino(tell)
        return self._loaded

    def device(self, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
        """Whether there is a device, which ones there are, and what can be set for it."""
        runtime = self._runtime(tell)
        tell("device")
        devices, problem = runtime.devices(request["device"])
        return {
            "devices": devices,
            "problem": problem,
            "settings": [] if problem else runtime.settings(request["device"]),
        }

    def compile(self, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
        """Nothing but what passes write while the model is compiled."""
        self._runtime(tell).compiled(request, tell)
        return {}

    def outputs(self, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
        """The model's outputs, step by step."""
        runtime = self._runtime(tell)
        compiled = runtime.compiled(request, tell)
        results = _order(request["results"], runtime.model(request, tell).get_results())
        writer, steps = Writer(request["folder"], "o"), []
        inputs = _order(request["parameters"], runtime.model(request, tell).get_parameters())
        for made, seconds in runtime.run(compiled, inputs, request["steps"], tell):
            steps.append({"outputs": [_written(made, number, writer) for number in results], "seconds": seconds})
        return {"steps": steps}

    def observe(self, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
        """The outputs and the tensors of `taps`, step by step, in as many runs as it takes."""
        runtime = self._runtime(tell)
        model = runtime.model(request, tell)
        tell("tap")
        untapped, sizes, nodes = {}, {}, nodes_of(_reshaped(model, request))
        for number, tap in enumerate(request["taps"]):
            try:
                sizes[number] = _bytes(output_of(nodes, tap))
            except Untapped as error:
                untapped[number] = str(error)
        found: list[dict[str, Any]] = [{"runs": [], "tensors": {}} for _ in request["steps"]]
        writer = Writer(request["folder"], "t")

        def run(group: Sequence[int]) -> None:
            untapped.update(self._observed(runtime, request, group, found, writer, tell))

        failed = watch(sizes, request["max_bytes"], run, lambda: self.outputs(request, tell))
        return {"steps": found, "untapped": {**untapped, **failed}}

    def _observed(
        self,
        runtime: Openvino,
        request: dict[str, Any],
        group: Sequence[int],
        found: list[dict[str, Any]],
        writer: Writer,
        tell: Tell,
    ) -> dict[int, str]:
        """What a run with some taps makes, added to what was found of each step; those that are fused, and how."""
        compiled, numbers, fused = runtime.tapped(request, [request["taps"][number] for number in group], tell)
        watched = [
            (tap, number) for place, (tap, number) in enumerate(zip(group, numbers, strict=True)) if place not in fused
        ]
        model = runtime.model(request, tell)
        results = _order(request["results"], model.get_results())
        inputs = _order(request["parameters"], model.get_parameters())
        made = []
        for infer, seconds in runtime.run(compiled, inputs, request["steps"], tell):
            outputs = [_written(infer, number, writer) for number in results]
            tensors = {tap: _written(infer, number, writer) for tap, number in watched}
            made.append(({"outputs": outputs, "seconds": seconds, "taps": list(tensors)}, tensors))
        for step, (run, tensors) in zip(found, made, strict=True):
            step["runs"].append(run)
            step["tensors"].update(tensors)
        return {group[place]: reason for place, reason in fused.items()}

    def cut(self, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
        """The tensors of `taps`, step by step, each of a model that ends with it."""
        runtime = self._runtime(tell)
        found: list[dict[int, Stub]] = [{} for _ in request["steps"]]
        untapped, failed, writer = dict[int, str](), list[RuntimeError](), Writer(request["folder"], "c")
        for number, tap in enumerate(request["taps"]):
            inputs = _order(request["parameters"], runtime.model(request, tell).get_parameters())
            try:
                compiled = runtime.ended(request, tap, tell)
                runs = runtime.run(compiled, inputs, request["steps"], tell)
                values = [_written(made, 0, writer) for made, _ in runs]
            except Untapped as error:
                untapped[number] = str(error)
            except RuntimeError as error:  # it may be the cut that the device cannot do with
                untapped[number] = str(error)
                failed.append(error)
            else:
                for step, value in zip(found, values, strict=True):
                    step[number] = value
        if failed and not any(found):
            raise failed[0]
        return {"steps": found, "untapped": untapped}

    def runtime(self, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
        """What the device says of the steps that it has made of the layers, in the order of execution."""
        compiled = self._runtime(tell).compiled(request, tell)
        nodes = []
        for node in compiled.get_runtime_model().get_ordered_ops():
            info = node.get_rt_info()
            texts = {key: str(info[key].value) for key in info if key in _TOLD}
            nodes.append({"name": node.get_friendly_name(), **texts})
        nodes.sort(key=lambda node: int(node.get("execOrder", "0")))
        precision, cache = (_type(compiled, name) for name in ("INFERENCE_PRECISION_HINT", "KV_CACHE_PRECISION"))
        return {"nodes": nodes, "precision": precision, "cache": cache}


def _type(compiled: Any, property: str) -> str | None:
    """The element type that a property is, None of a device without it."""
    try:
        found = compiled.get_property(property)
    except Exception:  # whatever a device raises that does not know it
        return None
    return str(found.to_string() if hasattr(found, "to_string") else found)


_TOLD = {"runtimePrecision", "primitiveType", "originalLayersNames", "execOrder"}


def _order(names: Sequence[str], nodes: Sequence[Any]) -> list[int]:
    """For each name the number of the node that has it; if they are not just these, by their position."""
    own = [node.get_friendly_name() for node in nodes]
    if sorted(own) == sorted(names) and len(set(own)) == len(own):
        return [own.index(name) for name in names]
    return list(range(len(own)))


def _reshaped(model: Any, request: dict[str, Any]) -> Any:
    """The model for the shapes of the largest step, as far as it can be told; to know the sizes of tensors."""
    if not model.is_dynamic():
        return model
    steps: list[list[Stub]] = request["steps"]
    largest = max(steps, key=lambda step: sum(int(np.prod(stub["shape"])) for stub in step), default=[])
    order = _order(request["parameters"], model.get_parameters())
    shaped = model.clone()
    try:
        shaped.reshape({number: stub["shape"] for number, stub in zip(order, largest, strict=True)})
    except (RuntimeError, ValueError):
        return model
    return shaped


def _bytes(output: Any) -> int | None:
    """What a tensor takes at most, if that is known."""
    shape, type = output.get_partial_shape(), output.get_element_type()
    if shape.rank.is_dynamic or type.is_dynamic():
        return None
    sizes = [size.get_max_length() for size in shape]  # -1 without a bound
    return None if -1 in sizes else math.prod(sizes) * max(int(type.size), 1)


def _written(request: Any, number: int, writer: Writer) -> Stub:
    """An output of a request, in a file."""
    tensor = request.get_output_tensor(number)
    type, shape = tensor.get_element_type().get_type_name(), list(tensor.get_shape())
    if type == "string":
        return writer.write(type, shape, [str(text) for text in np.asarray(tensor.str_data).flat])
    return writer.write(type, shape, np.ascontiguousarray(tensor.data).reshape(-1).view(np.uint8))


def main() -> None:
    handlers = Handlers()
    names = ("device", "compile", "outputs", "observe", "cut", "runtime")
    serve({name: getattr(handlers, name) for name in names})


if __name__ == "__main__":
    main()
