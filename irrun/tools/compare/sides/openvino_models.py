"""OpenVINO as its worker has it: models that are read, compiled, watched at more tensors than they give, and run.

It is the only module of irrun that imports OpenVINO.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from irrun.tools.compare.sides.exchange import Stub, raw_from
from irrun.tools.compare.sides.serving import Tell

META = ("AUTO", "MULTI", "HETERO", "BATCH")
"""Devices that are made of others, which stand behind a colon."""

_TYPES = {"constant": "const"}
"""Types of layers that a file calls by another name, but for the case of letters."""

MAX_COMPILED = 2
"""Compiled models that are kept."""

Tap = tuple[str, str, int]
"""The name of a layer, its type, and the number of an output."""


class Untapped(Exception):
    """A tensor that cannot be watched."""


class Openvino:
    """OpenVINO, and what it has read and compiled."""

    def __init__(self, tell: Tell) -> None:
        tell("import")
        import openvino

        try:
            self._opset: Any = import_module("openvino.opset1")
        except ImportError:  # where it was before 2025
            self._opset = import_module("openvino.runtime.opset1")
        self._ov: Any = openvino
        self._core = openvino.Core()
        self._read: dict[str, Any] = {}
        self._compiled: dict[str, Any] = {}

    def devices(self, wanted: str) -> tuple[list[str], str | None]:
        """The devices that there are, and why `wanted` is none of them."""
        found = list(self._core.available_devices)
        kind, _, rest = wanted.partition(":")
        for part in rest.split(",") if kind in META else [wanted]:
            name = part.partition("(")[0].strip()
            if not name or name[0] == "-" or name in found or any(other.startswith(f"{name}.") for other in found):
                continue
            try:  # plugins that no hardware goes with are not listed
                self._core.get_property(name, "FULL_DEVICE_NAME")
            except RuntimeError as error:
                return found, str(error)
        return found, None

    def settings(self, device: str) -> list[str]:
        """The names of what can be set for a device, or for the first one that it is made of."""
        kind, _, rest = device.partition(":")
        name = rest.split(",")[0].partition("(")[0] if kind in META and rest else device
        try:
            return list(self._core.get_property(name, "SUPPORTED_PROPERTIES"))
        except RuntimeError:
            return []

    def model(self, request: dict[str, Any], tell: Tell) -> Any:
        """A model, which nobody changes."""
        key = repr((request["xml"], request["bin"], request["stamp"]))
        if key not in self._read:
            tell("read")
            weights = [request["bin"]] if request["bin"] else []
            self._read = {key: self._core.read_model(request["xml"], *weights)}
        return self._read[key]

    def compiled(self, request: dict[str, Any], tell: Tell) -> Any:
        """A model as it is, compiled."""
        key = repr([request[name] for name in ("xml", "bin", "stamp", "device", "config")])
        if key not in self._compiled:
            model = self.model(request, tell)
            tell("compile")
            while len(self._compiled) >= MAX_COMPILED:
                del self._compiled[next(iter(self._compiled))]
            self._compiled[key] = self._core.compile_model(model, request["device"], request["config"])
        return self._compiled[key]

    def tapped(self, request: dict[str, Any], taps: Sequence[Tap], tell: Tell) -> tuple[Any, list[int], dict[int, str]]:
        """A model with these tensors as further outputs, compiled, and the numbers of these.

        The last are the places of taps that it has no tensor for, and why: fusions put what they make, such as heads
        with all that is not rotated, in the place of a tensor on the way, which then has another shape.
        """
        model = self.model(request, tell).clone()
        tell("tap")
        nodes = nodes_of(model)
        there = {_id(result.input_value(0)): number for number, result in enumerate(model.get_results())}
        before = [_described(result) for result in model.get_results()]
        added: list[Any] = []
        numbers = []
        outputs = [output_of(nodes, tap) for tap in taps]
        for output in outputs:
            if _id(output) not in there:
                there[_id(output)] = len(before) + len(added)
                added.append(output)
            numbers.append(there[_id(output)])
        if added:
            model.add_outputs(added)
        if [_described(result) for result in model.get_results()][: len(before)] != before:
            raise RuntimeError("the model's own outputs are not the first ones any more")
        shapes = [output.get_partial_shape() for output in outputs]
        tell("compile")
        compiled = self._core.compile_model(model, request["device"], request["config"])
        fused = {}
        for place, (number, shape) in enumerate(zip(numbers, shapes, strict=True)):
            made = compiled.outputs[number].get_partial_shape()
            if not made.compatible(shape):
                fused[place] = (
                    f"the device has a tensor of {made} in its place, not of {shape}: it is fused with others"
                )
        return compiled, numbers, fused

    def ended(self, request: dict[str, Any], tap: Tap, tell: Tell) -> Any:
        """A model that ends with a tensor, compiled. What stores a variable stays where the tensor depends on it."""
        model = self.model(request, tell).clone()
        tell("tap")
        output = output_of(nodes_of(model), tap)
        sinks = {_variable(sink): sink for sink in model.get_sinks() if _variable(sink) is not None}
        kept, seen, left = {}, set(), [output.get_node()]
        while left:
            node = left.pop()
            if node.get_name() in seen:
                continue
            seen.add(node.get_name())
            left += [value.get_node() for value in node.input_values()]
            variable = _variable(node)
            if variable in sinks and variable not in kept:
                kept[variable] = sinks[variable]
                left.append(sinks[variable])
        result = self._opset.result(output)
        ended = self._ov.Model([result], list(kept.values()), model.get_parameters(), "ended")
        tell("compile")
        return self._core.compile_model(ended, request["device"], request["config"])

    def tensor(self, stub: Stub, type: Any) -> Any:
        """A tensor as input of an element type, which is that of the stub: f32 for f16 in models of old."""
        shape, raw = stub["shape"], raw_from(stub)
        if isinstance(raw, list):
            return self._ov.Tensor(np.array(raw, np.str_).reshape(shape))
        held, wanted = stub["type"], type.get_type_name()
        if (held, wanted) == ("f16", "f32"):
            raw = raw.view(np.float16).astype(np.float32).view(np.uint8)
        elif held != wanted:
            raise RuntimeError(f"an input is {wanted} here, but {held} in the model")
        tensor = self._ov.Tensor(type, self._ov.Shape(shape))
        if raw.size:
            tensor.data.reshape(-1).view(np.uint8)[...] = raw
        return tensor

    def run(self, compiled: Any, order: Sequence[int], steps: Sequence[Sequence[Stub]], tell: Tell) -> Iterable[Any]:
        """The request after each step, and the seconds that it took; from a fresh state on."""
        tell("run")
        request = compiled.create_infer_request()
        if len(order) != len(compiled.inputs):
            raise RuntimeError(f"the model has {len(compiled.inputs)} inputs, but {len(order)} are given")
        for step in steps:
            tensors = {
                number: self.tensor(stub, compiled.input(number).get_element_type())
                for number, stub in zip(order, step, strict=True)
            }
            begin = time.perf_counter()
            # OpenVINO's CPU plugin loses errors of layers in `infer` where it has one thread
            request.start_async(tensors)
            request.wait()
            yield request, time.perf_counter() - begin


def nodes_of(model: Any) -> dict[str, list[Any]]:
    """The nodes of a model by their friendly names."""
    found: dict[str, list[Any]] = {}
    for node in model.get_ops():
        found.setdefault(node.get_friendly_name(), []).append(node)
    return found


def output_of(nodes: dict[str, list[Any]], tap: Tap) -> Any:
    """The output that a tensor is. Raises Untapped."""
    name, type, port = tap
    found = nodes.get(name, [])
    if len(found) != 1:
        raise Untapped(f"OpenVINO has {len(found) or 'no'} node{'s' * (len(found) > 1)} of this name")
    own = found[0].get_type_name().lower()
    if _TYPES.get(own, own) != type.lower():
        raise Untapped(f"it is a {found[0].get_type_name()} in OpenVINO")
    if port >= found[0].get_output_size():
        raise Untapped(f"the node has {found[0].get_output_size()} outputs in OpenVINO")
    return found[0].output(port)


def _id(output: Any) -> tuple[str, int]:
    return output.get_node().get_name(), output.get_index()


def _described(result: Any) -> tuple[str, str]:
    return result.get_friendly_name(), result.get_element_type().get_type_name()


def _variable(node: Any) -> str | None:
    if node.get_type_name() not in ("ReadValue", "Assign"):
        return None
    found: str = node.get_attributes()["variable_id"]
    return found
