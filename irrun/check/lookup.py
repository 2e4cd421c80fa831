"""Which op a layer is, and what is wrong with its `type` and `version`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from irrun.check.foreign import foreign_op
from irrun.diagnostics import Diagnostic
from irrun.ir.graph import Layer
from irrun.ir.xml import attribute_span
from irrun.spec.op import OPSETS, Op
from irrun.spec.registry import SPELLINGS, opset_number, registry
from irrun.spelling import advice, close_matches

PLUGIN_OPSETS = {
    "ie_internal_opset": "fused and internal ops of a plugin",
    "type_relaxed_opset": "ops whose types a plugin has relaxed",
    "util": "placeholders of OpenVINO's frontends and transformations",
    "gpu_opset": "ops of the GPU plugin",
    "SnippetsOpset": "ops of the code generator for CPUs",
}
"""Words for `version` that only OpenVINO's own dumps and caches have."""


MOVED = {"MVN", "ROIPooling", "ReorgYolo"}
"""Types of opset2 that old converters wrote as those of opset1, and OpenVINO reads so if they are spelt like this."""


def find_op(layer: Layer) -> tuple[Op | None, Diagnostic | None]:
    """The op of a layer, and what is to be said of it; neither where its type or version is missing, or a body is."""
    known = registry()
    op = known.find(layer.type, layer.version)
    if op is not None and layer.type != op.type and op.type in MOVED and layer.version == "opset1":
        message, help = f"opset1 contains `{op.type}` in this spelling only", f"write `{op.type}`, or `opset2`"
        return None, Diagnostic("E301", message, attribute_span(layer.element, "type"), layer.label, help)
    if op is not None:
        return op, None if layer.type == op.type else _respelled(layer, op)
    misspelt = layer.type != "Const" and layer.type.lower() == "const"
    if misspelt or not {"type", "version"} <= layer.element.attributes.keys():
        return None, None  # which the reader reports
    versions = known.versions(layer.type)
    name = "version"
    hint: str | None = None
    foreign = foreign_op(layer.type, layer.version)
    if foreign is not None:
        name = "type"
        message, hint = foreign
    elif layer.version in PLUGIN_OPSETS:
        message = f"`{layer.version}` is an operation set of plugins: {PLUGIN_OPSETS[layer.version]}"
        hint = "the file was dumped while a device compiled it; OpenVINO cannot read it back, so use the original IR"
    elif versions and opset_number(layer.version) is None:
        message = f"`{layer.version}` is not an operation set that the reader knows"
        hint = f"write opset{OPSETS[0]} to opset{OPSETS[-1]}; custom ops come from --ops FILE"
    elif versions:
        held = sorted(number for op in versions for number in known.opsets(op))
        message = f"{layer.version} does not contain {layer.type}"
        hint = f"{versions[0].type} is in {_spans(held)}" if held else None
    else:
        name, message = "type", f"unknown op `{layer.type}` of {layer.version}"
        close = close_matches(layer.type, known.types())
        hint = advice(layer.type, close[0]) if close else "a custom op can be declared in a module given with --ops"
    return None, Diagnostic("E301", message, attribute_span(layer.element, name), layer.label, hint)


def _respelled(layer: Layer, op: Op) -> Diagnostic | None:
    """A warning of a type in another case than the IR has it; the reader reports misspelt constants."""
    if layer.type in (op.type, SPELLINGS.get(op.type)) or op.type == "Constant":
        return None
    help = "OpenVINO ignores the case of most types, other readers of the file do not"
    message = f"the type is written `{layer.type}`, but is spelt `{op.type}` in an IR"
    return Diagnostic("W908", message, attribute_span(layer.element, "type"), layer.label, help)


def _spans(numbers: Iterable[int]) -> str:
    """`opset1, opset3 to opset16`."""
    listed = list(numbers)
    breaks = [0, *(n + 1 for n, (a, b) in enumerate(pairwise(listed)) if b != a + 1), len(listed)]
    runs = [(listed[start], listed[stop - 1]) for start, stop in pairwise(breaks)]
    return ", ".join(f"opset{low}" if low == high else f"opset{low} to opset{high}" for low, high in runs)
