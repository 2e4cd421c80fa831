"""Which other side a text on the command line means."""

from __future__ import annotations

from pathlib import Path

from irrun.diagnostics import EngineError, clipped
from irrun.engines import ENGINES, PRECISIONS
from irrun.files import is_there
from irrun.ir.graph import Model
from irrun.tools.compare.sides.contract import Options, Side

FORMS = (
    "ov:DEVICE",
    "OTHER.xml",
    "MODEL.onnx",
    "ARRAYS.npz, .safetensors or .json",
    "a folder of .npy or .pb files",
    "engine:NAME",
    "precision:NAME",
)
"""What a text may be."""


def open_side(text: str, model: Model, options: Options | None = None, owner: Side | None = None) -> Side:
    """The other side of a comparison with a model. An `owner`, of the same text and options for another model, stays
    open meanwhile: a device is asked in its process then, which need not be started again.

    Raises ValueError where the text means none, EngineError where what it names is not installed or not there,
    SideFailed where it cannot be asked.
    """
    options = options or Options()
    kind, _, rest = text.partition(":")
    if kind in ("ov", "engine", "precision") and not is_there(text):
        if kind == "ov":
            from irrun.tools.compare.sides.openvino import OpenvinoSide

            if not rest:
                raise EngineError("`ov:` lacks a device, such as ov:CPU")
            return OpenvinoSide(model, rest, options, owner=owner if isinstance(owner, OpenvinoSide) else None)
        from irrun.tools.compare.sides.engine import EngineSide

        if kind == "engine":
            _known(rest, "engine", ENGINES)
            return EngineSide(text, model, rest, options.precision, options.threads)
        _known(rest, "precision", PRECISIONS)
        return EngineSide(text, model, options.engine, rest, options.threads)
    path = Path(text)
    if not is_there(path):
        raise ValueError(f"there is no file {clipped(text, 300)}; the other side may be {', '.join(FORMS)}")
    if path.suffix.lower() == ".xml":
        from irrun.tools.compare.sides.ir import IrSide

        return IrSide(path, model, options)
    if path.suffix.lower() == ".onnx":
        from irrun.tools.compare.sides.onnx import OnnxSide

        return OnnxSide(path, model, options)
    from irrun.tools.compare.sides.recorded import RecordedSide

    return RecordedSide(path, model)


def _known(name: str, what: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise EngineError(f"there is no {what} `{clipped(name, 100)}`; there are {', '.join(known)}")
