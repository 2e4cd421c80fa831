"""Which op a layer is, and what is wrong with its `type` and `version`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from irrun.check.foreign import foreign_op
from irrun.diagnostics import Diagnostic
from irrun.ir.graph import Layer
from irrun.ir.xml import attribute_span
from irrun.spec.attributes import REQUIRED
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

_IN_FILES = {meant: written for written, meant in SPELLINGS.items()}
"""How types are spelt in files that ops have another name for."""


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
        meant = next(iter(meant_types(layer)), None)
        hint = advice(layer.type, meant) if meant else "a custom op can be declared in a module given with --ops"
    return None, Diagnostic("E301", message, attribute_span(layer.element, name), layer.label, hint)


def meant_types(layer: Layer) -> dict[str, bool]:
    """The types that an unknown one may be meant for, the likeliest first, and whether the layer has the form of each.

    Those whose form it has come first, though others may be nearer in spelling.
    """
    known = registry()
    # no file spells constants as the op is called
    spellings = (spelling for type in known.types() for spelling in (type, _IN_FILES.get(type, type)))
    written = layer.element.attributes.get("type", "")  # the reader may take it for another one
    close = dict.fromkeys(_IN_FILES.get(type, type) for type in close_matches(written, spellings))
    forms = {type: _has_form(layer, known.find(type, layer.version) or known.versions(type)[-1]) for type in close}
    return dict(sorted(forms.items(), key=lambda item: not item[1]))


def _has_form(layer: Layer, op: Op) -> bool:
    """Whether a layer has as many ports as an op may have, and all attributes that this requires."""
    ports = takes(op, layer) and (len(layer.outputs) <= len(op.outputs) or any(port.variadic for port in op.outputs))
    return ports and all(attr.name in layer.attributes for attr in op.attrs if attr.default is REQUIRED)


def takes(op: Op, layer: Layer) -> bool:
    """Whether an op may have as many inputs as a layer has."""
    count = len(layer.input_ports)
    return op.least_inputs <= count and (count <= len(op.inputs) or op.variadic)


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
