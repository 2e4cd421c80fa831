"""The tables of an inspection: of types, layers and constants, as columns of text or comma-separated values."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from irrun.check.render.text import Style, cells, one_line, padded
from irrun.spec.dims import Dim, Size
from irrun.tools.inspect.execution import Execution, Share
from irrun.tools.inspect.inspection import Inspection
from irrun.tools.inspect.weights import Weight

COLUMNS = 100

_MOST_ROWS = 24
_SYMBOLIC = 19
"""Columns of arithmetic, at most."""

Row = tuple[str, ...]


def render_csv(found: Inspection, weights: bool = False) -> str:
    """A line for each layer, or for each constant."""
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    text = found.sizes.text
    if found.execution is not None:
        columns_of = ("id", "name", "type", "line", "order", "microseconds", "kernel", "element_type")
        table.writerow((*columns_of, "layouts", "originals"))
        for ran in found.execution.layers:
            own = (ran.id, ran.path, ran.type, ran.line, _blank(ran.order), _blank(ran.microseconds), ran.kernel)
            table.writerow((*own, ran.element_type, " ".join(ran.layouts), ",".join(ran.originals)))
        return stream.getvalue().rstrip("\n")
    if weights:
        table.writerow(("offset", "bytes", "id", "name", "stored", "computed", "shape", "scale", "zero_point", "group"))
        for weight in () if found.weights is None else found.weights.constants:
            codes = weight.quantization
            quantization = ("", "", "") if codes is None else (codes.scale, codes.zero_point or "", codes.group)
            shape = "x".join(map(str, weight.shape))
            place = (weight.offset, weight.bytes, weight.id, weight.path)
            table.writerow((*place, weight.stored, weight.computed, shape, *quantization))
        return stream.getvalue().rstrip("\n")
    table.writerow(("id", "name", "type", "op", "line", "outputs", "macs", "bytes", "rounds", "why_not_counted"))
    for layer in found.layers or ():
        outputs = " ".join(f"{type}{found.sizes.shape(shape)}" for type, shape in layer.outputs)
        numbers = (_blank(text(size)) for size in (layer.macs, layer.bytes, layer.rounds))
        described = (layer.id, layer.path, layer.type, layer.op or "", _blank(layer.line), outputs)
        table.writerow((*described, *numbers, layer.reason or ""))
    return stream.getvalue().rstrip("\n")


def rows_of_types(found: Inspection) -> list[Row]:
    """Layers, MACs, their share and bytes by type, those that cost most first."""
    costs = found.costs
    rows: list[Row] = [("op", "layers", "MACs", "%", "bytes")]
    types = {type: (count, 0, 0) for type, count in found.ops.items()} | dict({} if costs is None else costs.by_type)
    total = 0 if costs is None else costs.macs

    def weight(item: tuple[str, tuple[int, Size, Size]]) -> tuple[Any, ...]:
        _, (count, macs, size) = item
        heavy = max(abs(factor) for factor in macs.terms.values()) if isinstance(macs, Dim) else macs
        return (-heavy, -(size if isinstance(size, int) else 0), -count)

    ordered = sorted(types.items(), key=weight)
    for type, (_, macs, size) in ordered[:_MOST_ROWS]:
        share = f"{100 * macs / total:.1f}" if isinstance(macs, int) and isinstance(total, int) and macs else ""
        numbers = ("" if isinstance(part, int) and not part else short(found, part) for part in (macs, size))
        macs_text, bytes_text = numbers
        rows.append((cut(one_line(type), 40), f"{found.ops.get(type, 0):,}", macs_text, share, bytes_text))
    if len(ordered) > _MOST_ROWS:
        rest = sum(found.ops.get(type, 0) for type, _ in ordered[_MOST_ROWS:])
        rows.append((f"{len(ordered) - _MOST_ROWS} other types", f"{rest:,}", "", "", ""))
    return rows


def rows_of_layers(found: Inspection) -> list[Row]:
    rows: list[Row] = [("id", "outputs", "MACs", "bytes", "type and name")]
    for layer in found.layers or ():
        outputs = ", ".join(f"{type}{found.sizes.shape(shape)}" for type, shape in layer.outputs)
        macs = "?" if layer.macs is None else short(found, layer.macs)
        size = "?" if layer.bytes is None else short(found, layer.bytes)
        name = one_line(f"{layer.type} {layer.path}")
        rows.append((str(layer.id), cut(outputs, 28), "" if macs == "0" else macs, "" if size == "0" else size, name))
    return rows


def rows_of_weights(found: Inspection) -> list[Row]:
    rows: list[Row] = [("offset", "bytes", "type", "notes", "shape and name")]
    before = 0
    copied = () if found.weights is None else found.weights.duplicates
    copies = {weight.offset for group in copied for weight in group[1:]}
    for weight in () if found.weights is None else found.weights.constants:
        if weight.offset > before:
            rows.append((f"{before:,}", f"{weight.offset - before:,}", "", "gap", ""))
        before = max(before, weight.offset + weight.bytes)
        type = weight.stored if weight.stored == weight.computed else f"{weight.stored}>{weight.computed}"
        name = one_line(f"[{', '.join(map(str, weight.shape))}] {weight.path}")
        rows.append((f"{weight.offset:,}", f"{weight.bytes:,}", type, cut(_notes(weight, copies), 36), name))
    size = None if found.weights is None else found.weights.file_bytes
    if size is not None and size > before:
        rows.append((f"{before:,}", f"{size - before:,}", "", "unused", ""))
    return rows


def rows_of_executed_types(ran: Execution) -> list[Row]:
    """Layers, milliseconds, their share and the kernels by type, the slowest first."""
    rows: list[Row] = [("type", "layers", "ms", "%", "kernels")]
    for type, share in ran.by_type().items():
        kernels = ran.by_kernel(type)
        named = ", ".join(
            f"{one_line(name)} {own.layers}" if len(kernels) > 1 else name for name, own in kernels.items()
        )
        rows.append((cut(one_line(type), 40), f"{share.layers:,}", *of_run(ran, share), named))
    return rows


def rows_of_executed_layers(ran: Execution) -> list[Row]:
    """The layers that have a time, the slowest first, or all where none has; and those of the model they stand for."""
    rows: list[Row] = [("ms", "%", "in", "kernel", "type and name")]
    for layer in ran.timed or ran.layers:
        share = Share(1, int(layer.microseconds is not None), layer.microseconds or 0)
        name = f"{layer.type} {layer.path}"
        others = [original for original in layer.originals if original != layer.path]
        if others:
            name += f" for {', '.join(others)}"
        rows.append((*of_run(ran, share), layer.element_type, cut(one_line(layer.kernel), 28), one_line(name)))
    return rows


def of_run(ran: Execution, share: Share) -> tuple[str, str]:
    """The milliseconds of a part of a run, and which share of all they are; nothing where no time is known."""
    if not share.timed:
        return "", ""
    total = ran.total.microseconds
    return f"{share.microseconds / 1000:.3f}", f"{100 * share.microseconds / total:.1f}" if total else ""


def _notes(weight: Weight, copies: set[int]) -> str:
    notes = []
    if weight.quantization is not None:
        zero = "" if weight.quantization.zero_point is None else " and zero point"
        notes.append(f"scale{zero} for {weight.quantization.group}")
    if weight.part_of is not None:
        notes.append("of a quantized weight")
    if weight.offset in copies:
        notes.append("duplicate")
    values = weight.values
    if values is not None:
        counts = (
            (values.nans, "NaN"),
            (values.infinities, "infinite"),
            (values.beyond_f16, "beyond f16"),
            (values.flushed_by_f16, "0 in f16"),
        )
        notes += [f"{count:,} {what}" for count, what in counts if count]
    return ", ".join(notes)


def columns(rows: Sequence[Row], sides: str, style: Style, fitted: int | None = None) -> Iterator[str]:
    """Columns, flush left or right by the letters l and r; column number `fitted` gets what is left of the line."""
    widths = [max(cells(row[column]) for row in rows) for column in range(len(sides))]
    for number, row in enumerate(rows):
        shown = [padded(text, width, side == "r") for text, width, side in zip(row, widths, sides, strict=True)]
        if fitted is not None:
            room = max(COLUMNS - sum(widths[:fitted]) - 2 * fitted, 20)
            shown[fitted] = cut(row[fitted], room)
        line = "  ".join(shown).rstrip()
        yield style(line, "bold") if number == 0 else line


def short(found: Inspection, size: Size) -> str:
    """A size for a column."""
    return cut(str(found.sizes.text(size)), _SYMBOLIC) if isinstance(size, Dim) else unit(size, "")


def unit(number: int, of: str) -> str:
    """Three digits with the letter of a power of 1000, or with an exponent where no letter is enough."""
    if number >= 10**18:
        return f"{Decimal(number):.3g} {of}".rstrip()
    for letter, power in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if number >= power:
            return (
                f"{number / power:.3g} {letter}{of}" if number < 999.5 * power else f"{number / power:.0f} {letter}{of}"
            )
    return f"{number} {of}".rstrip()


def cut(text: str, width: int) -> str:
    """A text without its middle where it is too long: names differ at both ends."""
    if len(text) <= width:
        return text
    head = (width - 3) // 2
    return f"{text[:head]}...{text[len(text) - (width - 3 - head) :]}"


def _blank(value: object) -> object:
    return "" if value is None else value
