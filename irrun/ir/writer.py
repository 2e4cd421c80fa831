"""Writing a model: where its constants go, and its two files, which appear together or not at all."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from pathlib import Path
from typing import IO, Literal

from irrun.diagnostics import Diagnostic, IRError
from irrun.files import whole_file, whole_pair
from irrun.ir.document import xml_text
from irrun.ir.graph import Layer, Model
from irrun.ir.weights import WeightsError

Target = str | os.PathLike[str] | IO[bytes]
"""A file to write: its path, or one that is open for writing bytes."""


def write_model(model: Model, file: Target, weights: Target | Literal["link"] | None = None) -> None:
    """Write a model as an .xml and its constants as a .bin, which goes beside it unless given; nothing is validated.

    Both are paths, or files that are open for writing bytes. Two paths take the place of what was there together, or
    not at all. With "link" no .bin is written: the .xml is to go with the one that the model was read with, and refers
    to the same bytes of it.

    What irrun gives no meaning to stays as it was read: unknown elements and attributes, runtime info, and comments.
    The .xml is formatted as OpenVINO does it, and constants lie in the .bin as OpenVINO lays them: in the order of the
    layers, without gaps, those that shared their bytes sharing them again.

    Raises ValueError where the model cannot be written, IRError where constants cannot be read any more, and OSError;
    nothing is written then, but to open files, what went before.

    >>> import irrun
    >>> model = irrun.read_model("samples/cnn/model.xml")
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     irrun.write_model(model, f"{folder}/copy.xml")
    ...     copy = irrun.read_model(f"{folder}/copy.xml")
    >>> copy.outputs == model.outputs
    True
    """
    if weights == "link":
        _check_linked(model)
        text = xml_text(model, {})
        with _opened(file) as stream:
            stream.write(text)
        return
    order, offsets = _laid_out(model)
    beside = _beside(file, bool(order)) if weights is None else weights
    text = xml_text(model, offsets)
    content = chain.from_iterable(_blocks(model, layer) for layer in order)
    if isinstance(file, str | os.PathLike) and isinstance(beside, str | os.PathLike):
        first, second = Path(beside), Path(file)
        if first.resolve() == second.resolve():
            raise ValueError(f"`{file}` cannot be the .xml and the .bin in one")
        with whole_pair(first, second) as (bin, xml):
            bin.writelines(content)
            xml.write(text)
        return
    with _opened(beside) as bin, _opened(file) as xml:
        bin.writelines(content)
        xml.write(text)


def model_text(model: Model) -> bytes:
    """The .xml that `write_model` writes of a model. Raises as that does."""
    return xml_text(model, _laid_out(model)[1])


def model_bytes(model: Model) -> tuple[bytes, bytes]:
    """The two files of a model, the .xml and the .bin. Raises as `write_model` does."""
    xml, bin = io.BytesIO(), io.BytesIO()
    write_model(model, xml, bin)
    return xml.getvalue(), bin.getvalue()


def _opened(target: Target) -> AbstractContextManager[IO[bytes]]:
    if isinstance(target, str | os.PathLike):
        return whole_file(Path(target))
    return nullcontext(target)


def _beside(file: Target, needed: bool) -> Target:
    if isinstance(file, str | os.PathLike):
        path = Path(file)
        if path.suffix.lower() == ".bin":
            raise ValueError(f"`{file}` is the name of a .bin; give that of the .xml")
        return path.with_suffix(".bin")
    if needed:
        raise ValueError("the constants of a model that goes into an open file need a file, too: give `weights`")
    return io.BytesIO()


def _check_linked(model: Model) -> None:
    if model.weights.extended:
        for layer in model.graph.walk():
            if layer.type == "Const" and _place(model, layer)[0] >= (model.weights.stored or 0):
                raise ValueError(f"layer {layer} holds data that are not in `{model.weights.path}`, so no link will do")


def _laid_out(model: Model) -> tuple[list[Layer], dict[Layer, int]]:
    """The first Const of each place in the weights, in order, and where each Const begins in the new file."""
    starts: dict[tuple[int, int], int] = {}
    order: list[Layer] = []
    offsets: dict[Layer, int] = {}
    end = 0
    for layer in model.graph.walk():
        if layer.type != "Const":
            continue
        place = _place(model, layer)
        if place not in starts:
            starts[place] = end
            end += place[1]
            order.append(layer)
        offsets[layer] = starts[place]
    return order, offsets


def _place(model: Model, layer: Layer) -> tuple[int, int]:
    try:
        blob = model.weights.check(layer)
    except WeightsError as error:
        raise _refusal(layer, error) from None
    return blob.offset, blob.size


def _blocks(model: Model, layer: Layer) -> Iterator[bytes]:
    try:
        yield from model.weights.blocks(layer)
    except WeightsError as error:
        raise _refusal(layer, error) from None


def _refusal(layer: Layer, error: WeightsError) -> IRError:
    return IRError([Diagnostic(error.code, str(error), layer.span, layer.label, error.help)])
