"""Other names for inputs, outputs, tensors and layers, and marks on layers."""

from __future__ import annotations

from collections.abc import Sequence

from irrun.ir.graph import Layer, Model
from irrun.ir.layers import names_text, tensor_names
from irrun.ir.text_edits import PRECISE
from irrun.ir.xml import Element
from irrun.spelling import close_matches
from irrun.tools.edit.places import find_layers, find_output, several


def rename(model: Model, pairs: Sequence[str]) -> None:
    """Let what is called OLD in `OLD=NEW` be NEW: the tensor, the layer, or both where they share it.

    Raises ValueError.
    """
    for pair in pairs:
        old, equals, new = pair.rpartition("=")
        if not equals or not old or not new:
            raise ValueError(f"`{pair}` is not of the form OLD=NEW")
        layers = find_layers(model, old)
        values = [value for layer in model.graph.walk() for value in layer.outputs if old in value.port.names]
        outputs = [layer for layer in model.graph.results if old in _output_names(layer)]
        if len(layers) > 1:
            raise several(old, layers)
        if len(values) > 1:
            raise ValueError(f"`{old}` is the name of several: {', '.join(str(value.layer) for value in values)}")
        for layer in layers:
            model.rename(layer, new)
        for value in values:
            model.name_tensor(value, *(new if name == old else name for name in value.port.names))
        for layer in outputs:
            names = [new if name == old else name for name in _output_names(layer)]
            model.set_attribute(layer, "output_names", names_text(names))
        if not layers and not values and not outputs:
            _rename_output(model, old, new)


def _rename_output(model: Model, old: str, new: str) -> None:
    """Rename an output by the name that its results have, which differs from its own where others have this, too."""
    result = find_output(model, old)
    if result is None or result.inputs[0] is None:
        known = {layer.name for layer in model.graph.walk()}
        known |= {name for layer in model.graph.walk() for value in layer.outputs for name in value.port.names}
        close = close_matches(old, sorted(known))
        hint = f"; did you mean `{close[0]}`?" if close else ""
        raise ValueError(f"there is no layer or tensor `{old}` in the model{hint}")
    value, (own, *others) = result.inputs[0], _output_names(result) or [old]
    if sum(reader.type == "Result" for reader, _ in value.consumers) == 1:
        model.name_tensor(value, *(new if name == own else name for name in value.port.names))
    model.set_attribute(result, "output_names", names_text([new, *others]))


def _output_names(layer: Layer) -> tuple[str, ...]:
    return tensor_names(layer.attributes.get("output_names", ""))


def precise(model: Model, names: Sequence[str]) -> None:
    """Mark layers to be computed in f32 where a device would take 16 bits. Raises ValueError."""
    if model.version == 10:
        raise ValueError("OpenVINO reads no runtime info of layers in an IR of version 10")
    for name in names:
        found = find_layers(model, name)
        if len(found) > 1:
            raise several(name, found)
        layer = found[0] if found else model.layer(name)
        if layer.precise:
            continue
        info = layer.rt_info or Element("rt_info", {})
        info.children = [*info.children, Element("attribute", {"name": PRECISE, "version": "0"})]
        layer.rt_info = info
        model.edited = True
