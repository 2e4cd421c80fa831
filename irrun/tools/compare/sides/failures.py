"""What a native library says of its failure, in few lines, the layer of ours that it means, and what is known of it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from irrun.check.deviations import Deviation, concerning
from irrun.check.infer import Inference
from irrun.diagnostics import clipped
from irrun.ir.graph import Layer
from irrun.tools.compare.sides.contract import SideFailed

_NOISE = ("Exception from ", "Caught exception: Exception from ", "Exception during initialization: ")
"""Lines of a message that say where in the sources of a library it comes from."""

_FORMS = ("'{}'", '"{}"', "`{}`", " {} (", " {} of type ", " {}:", " name: {}\n")
"""How the names of layers stand in messages."""

_SETTING = re.compile(r"Unsupported property|property key")

_OUTPUT = re.compile(r"\.\d+(?=['\"` :\n])")
"""The number of an output, as it may stand behind the name of a layer."""

MAX_KNOWN = 3
"""Known deviations that a failure is told with."""


def explained(error: SideFailed, side: str, layers: Mapping[str, Layer]) -> SideFailed:
    """A failure of a worker as that of a side; `layers` are ours by name."""
    reason = shortened(error.reason)
    found = SideFailed(side, error.phase, reason, error.said, error.signal, help=error.help)
    layer = named_in(error.reason, layers)
    return found if layer is None else found.placed(layer)


def shortened(message: str) -> str:
    """A message without the places in the sources of the library."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return "\n".join(line for line in lines if not line.startswith(_NOISE)) or message.strip()


def named_in(message: str, layers: Mapping[str, Layer]) -> Layer | None:
    """The layer that a message names in quotes, or as the node that it is about; of several the longest name."""
    for text in (f"{message}\n", _OUTPUT.sub("", f"{message}\n")):
        found = [name for name in layers if name in text and any(form.format(name) in text for form in _FORMS)]
        if found:
            return layers[max(found, key=len)]
    return None


def known(error: SideFailed, inference: Inference) -> tuple[str, ...]:
    """The known refusals of a device that concern layers of a model, or crashes where it crashed.

    They are those of the layer that the failure names if it has any, else those that are sure if there are any; of a
    setting that the device does not take there are none.
    """
    if _SETTING.search(error.reason):
        return ()
    kinds = ("refuses", "crashes") if error.signal else ("refuses",)
    found = [
        (layer, deviation)
        for layer in inference.nodes
        for deviation in concerning(layer, inference)
        if deviation.kind in kinds and of_device(deviation, error.side)
    ]
    named = [pair for pair in found if pair[0].label == error.layer]
    sure = [pair for pair in found if not pair[1].when]
    chosen = named or sure or found
    more = f", and {len(chosen) - MAX_KNOWN:,} more" if len(chosen) > MAX_KNOWN else ""
    texts = [_known(layer, deviation) for layer, deviation in chosen[:MAX_KNOWN]]
    return (*texts[:-1], texts[-1] + more) if texts else ()


def of_device(deviation: Deviation, side: str) -> bool:
    """Whether a deviation is one of the devices that a side is on, as in "ov:HETERO:GPU,CPU"."""
    return deviation.device in re.split(r"\W", side)


def _known(layer: Layer, deviation: Deviation) -> str:
    where = f" where {deviation.conditions}" if deviation.when else ""
    name = clipped(layer.name, 200)
    return f"known: {deviation.op} {deviation.does}{where}, which concerns `{name}` at line {layer.span.line}"
