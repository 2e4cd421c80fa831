"""The models that are measured: where their files lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Model:
    """An IR, an .npz file with its inputs, and its ONNX twin, which takes the same inputs, where there is one.

    `others` are .npz files with inputs of other shapes.
    """

    name: str
    path: Path
    inputs: Path
    twin: Path | None = None
    others: tuple[Path, ...] = ()


def models_in(folder: Path, only: Sequence[str] = ()) -> list[Model]:
    """The models of the folders NAME in `folder`, as scripts in tests/exports write them, or as samples/ holds them.

    Each holds NAME.xml or model.xml, inputs.npz and perhaps NAME.onnx and others/*.npz; further folders are passed
    over. `only` are names.
    """
    return [
        model for place in sorted(folder.iterdir()) if (not only or place.name in only) and (model := _model(place))
    ]


def _model(folder: Path) -> Model | None:
    paths = [path for path in (folder / f"{folder.name}.xml", folder / "model.xml") if path.exists()]
    inputs, twin = folder / "inputs.npz", folder / f"{folder.name}.onnx"
    if not paths or not inputs.exists():
        return None
    others = tuple(sorted(folder.glob("others/*.npz")))
    return Model(folder.name, paths[0], inputs, twin if twin.exists() else None, others)
