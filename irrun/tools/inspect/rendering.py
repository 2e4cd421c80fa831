"""What an inspection found as text of 100 columns, or as JSON; the tables in it are those of `tables.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator

from irrun.check.render.text import Style, one_line, plain
from irrun.diagnostics import counted
from irrun.spec.dims import Dim, Size
from irrun.tools.inspect.execution import Execution, Share
from irrun.tools.inspect.inspection import Inspection
from irrun.tools.inspect.releases import LATER, Demand, measured_releases, release_text
from irrun.tools.inspect.tables import (
    COLUMNS,
    columns,
    cut,
    of_run,
    rows_of_executed_layers,
    rows_of_executed_types,
    rows_of_layers,
    rows_of_types,
    rows_of_weights,
    short,
    unit,
)

_LABEL = 13
"""Columns of what a line is about."""

_SHORTEST_PATH = 40
"""Columns in which most paths of layers can be told from others."""

_MOST_FORCING = 4


def render_text(found: Inspection, layers: bool = False, weights: bool = False, style: Style = plain) -> str:
    """Lines for people, with the tables that were asked for; diagnostics are not among them."""
    if found.layers is None:
        return f"{one_line(str(found.path))}: nothing can be said of it"
    if found.execution is not None:
        return "\n".join(_executed(found, found.execution, layers, style))
    lines = list(_summary(found, style))
    lines += ["", *columns(rows_of_types(found), "lrrrr", style)]
    if layers:
        lines += ["", *columns(rows_of_layers(found), "rlrrl", style, fitted=4)]
    if weights:
        lines += ["", *columns(rows_of_weights(found), "rrlll", style, fitted=4)]
    return "\n".join(lines)


def render_json(found: Inspection) -> str:
    return json.dumps(found.to_dict(), indent=2, allow_nan=False)


def _executed(found: Inspection, ran: Execution, layers: bool, style: Style) -> Iterator[str]:
    """What an execution graph says of a run."""
    what = f"`{one_line(found.name)}`, an execution graph: how a device ran a model"
    yield style(cut(f"{one_line(str(found.path))}: {what}", COLUMNS), "bold")
    total = ran.total
    if not total.timed:
        why = "the model was compiled without PERF_COUNT, or its graph was written before it ran"
        yield from _wrapped("ran", f"{counted(total.layers, 'layer')}, none with a time: {why}")
    else:
        rest = total.layers - total.timed
        text = f"{counted(total.timed, 'layer')} in {total.microseconds / 1000:.3f} ms"
        yield from _line("ran", f"{text}{f', and {rest} before' if rest else ''}")
        parts = [f"{name or '?'} {_part(ran, share)}" for name, share in ran.by_element_type().items()]
        yield from _wrapped("in", one_line(", ".join(parts)))
        if ran.added.layers:
            text = f"{counted(ran.added.layers, 'layer')} in {_part(ran, ran.added)}"
            yield from _line("added", f"{text}, none of the model's")
    if ran.fused:
        yield from _line("fused", f"{counted(ran.fused, 'layer')} of the model into others")
    yield from ["", *columns(rows_of_executed_types(ran), "lrrrl", style, fitted=4)]
    if layers:
        yield from ["", *columns(rows_of_executed_layers(ran), "rrlll", style, fitted=4)]


def _part(ran: Execution, share: Share) -> str:
    time, percent = of_run(ran, share)
    return f"{time} ms ({percent} %)" if percent else f"{time} ms"


def _summary(found: Inspection, style: Style) -> Iterator[str]:
    origin = found.provenance
    count = len(found.layers or ())
    version = "" if origin is None else f", IR version {origin.ir_version}"
    yield style(
        cut(f"{one_line(str(found.path))}: `{one_line(found.name)}`, {counted(count, 'layer')}{version}", COLUMNS),
        "bold",
    )
    if origin is not None:
        yield from _wrapped("made by", _made_by(found))
    named = (("inputs", found.inputs, 8), ("outputs", found.outputs, 8), ("variables", found.variables, 3))
    for label, tensors, most in named:
        listed = [f"{one_line(info.name)} {info}{f' {info.layout}' if info.layout else ''}" for info in tensors]
        more = len(listed) - most
        shown = listed if more <= 0 else [*listed[:most], f"and {more} more"]
        for number, text in enumerate(shown):
            yield from _line("" if number else label, text)
    yield from _runs_on(found)
    yield from _costs(found)
    yield from _held(found)
    if origin is not None:
        unread = "weights not read" if origin.weights is None else f"weights {origin.weights}"
        yield from _line("hashes", f"structure {origin.structure}, {unread}")


def _line(label: str, text: str, path: str | None = None) -> Iterator[str]:
    """A line whose end, the path of a layer, is cut to what room there is, or has a line of its own."""
    begin = f"{label:{_LABEL}}{text}"
    if path is None:
        yield cut(begin, COLUMNS)
        return
    if len(begin) > COLUMNS - _SHORTEST_PATH:
        yield cut(begin.rstrip(), COLUMNS)
        begin = " " * _LABEL
    yield f"{begin}`{cut(one_line(path), COLUMNS - len(begin) - 2)}`"


def _made_by(found: Inspection) -> str:
    entries = {} if found.provenance is None else found.provenance.entries
    named = [found.provenance.made_by] if found.provenance is not None and found.provenance.made_by else []
    for name in ("conversion_parameters.framework", "nncf.version", "nncf.weight_compression.mode"):
        if name in entries:
            named.append(f"{name.removeprefix('conversion_parameters.')} {entries[name]}")
    optimum = [
        f"{name.removeprefix('optimum.')} {value}" for name, value in entries.items() if name.startswith("optimum.")
    ]
    return one_line(", ".join([*named, *optimum]) or "the file does not say")


def _runs_on(found: Inspection) -> Iterator[str]:
    runs = found.releases
    if runs is None:
        return
    asked = f"measured with {' to '.join(measured_releases())}" if runs.measured else "by operation sets, not measured"
    oldest = "no release of OpenVINO yet" if runs.oldest == release_text(LATER) else f"OpenVINO {runs.oldest} and later"
    yield from _line("runs on", f"{oldest} ({asked})")
    kinds: dict[str, list[Demand]] = {}
    for demand in runs.force:
        kinds.setdefault(demand.what, []).append(demand)
    for number, (what, demands) in enumerate(kinds.items()):
        if number == _MOST_FORCING:
            yield from _line("", f"and {len(kinds) - number} other kinds of layers")
            break
        others = f", as in {len(demands) - 1} more" if len(demands) > 1 else ""
        yield from _line("", f"needed by {what} in line {demands[0].line}{others}: ", demands[0].path)
    if runs.foreign:
        yield from _line(
            "", f"and extensions for {counted(len(runs.foreign), 'layer')}, the first is ", runs.foreign[0]
        )


def _costs(found: Inspection) -> Iterator[str]:
    costs = found.costs
    if costs is None:
        return
    yield from _wrapped("MACs", _size(found, costs.macs))
    if not isinstance(costs.macs, Dim):
        yield from _line("FLOPs", f"{_size(found, costs.flops)}: two for each MAC")
    looped = any(isinstance(layer.rounds, Dim) or layer.rounds != 1 for layer in found.layers or ())
    known = f"known of {costs.counted:,} of {counted(costs.layers, 'layer')} ({100 * costs.coverage:.1f} %)"
    yield from _line("", f"{known}{'; loops as often as they go round at most' if looped else ''}")
    for path, reason in costs.uncounted[:3]:
        yield from _line("", f"not counted, {reason}: ", path)
    if len(costs.by_element_type) > 1 or any(" x " in type for type in costs.by_element_type):
        parts = [f"{type} {short(found, size)}" for type, size in costs.by_element_type.items()]
        yield from _wrapped("", ", ".join(parts))
    yield from _wrapped("traffic", f"{_size(found, costs.bytes, 'B')}: what layers read and write")


def _held(found: Inspection) -> Iterator[str]:
    if found.peak is not None:
        most, where = found.peak.bytes, found.peak.layer
        told = "; ".join(filter(None, (found.peak.reason, found.peak.help)))
        text = f"not known: {one_line(told)}" if most is None else f"{_size(found, most, 'B')} at once"
        if isinstance(most, Dim):
            yield from _wrapped("activations", text)
            yield from _line("", "at ", where or "")
        else:
            yield from _line("activations", text if where is None else f"{text}, at ", where)
    if found.states:
        growth = _size(found, found.state_bytes, "B")
        yield from _line("states", f"{len(found.states)} grow by {growth} for each token, in the types of the file")
    weights = found.weights
    if weights is None:
        return
    noun = "element" if weights.elements == 1 else "elements"
    yield from _line("weights", f"{_size(found, weights.elements)} {noun} in {_size(found, weights.bytes, 'B')}")
    for (stored, computed, quantized), (count, elements, size) in list(weights.by_type().items())[:6]:
        kind = f"{stored} in groups with scales" if quantized else stored
        becomes = "" if stored == computed else f", computed as {computed}"
        yield from _line(
            "", f"{kind}{becomes}: {counted(elements, 'element')}, {unit(size, 'B')}, {counted(count, 'constant')}"
        )
    yield from _faults(found)


def _faults(found: Inspection) -> Iterator[str]:
    weights = found.weights
    if weights is None:
        return
    gaps, overlaps = (sum(part.bytes for part in parts) for parts in (weights.gaps, weights.overlaps))
    if gaps:
        yield from _line(
            "", f"{gaps:,} bytes of the .bin belong to no constant, the first at {weights.gaps[0].begin:,}"
        )
    if overlaps:
        yield from _line("", f"{overlaps:,} bytes belong to several different constants")
    if weights.shared:
        lie = "lies" if weights.shared == 1 else "lie"
        yield from _line("", f"{counted(weights.shared, 'constant')} {lie} where an equal one does")
    if not weights.read:
        why = "--weights does that" if weights.file_bytes is not None else "there is no .bin"
        yield from _line("", f"what they hold was not read: {why}")
        return
    if weights.duplicates:
        text = (
            f"{weights.duplicate_bytes:,} bytes are stored again: {len(weights.duplicates)} groups of equal constants"
        )
        yield from _line("", text)
    held = [weight.values for weight in weights.constants if weight.values is not None]
    nans, infinities, beyond, flushed = (
        sum(getattr(values, name) for values in held) for name in ("nans", "infinities", "beyond_f16", "flushed_by_f16")
    )
    if nans or infinities:
        yield from _line(
            "", f"{counted(nans, 'element')} {'is' if nans == 1 else 'are'} NaN and {infinities:,} infinite"
        )
    if beyond or flushed:
        yield from _line("", f"f16 would make {counted(beyond, 'element')} infinite and {flushed:,} zero")


def _wrapped(label: str, text: str) -> Iterator[str]:
    """A text that may be longer than a line, broken behind terms."""
    words = text.split(" ")
    line = f"{label:{_LABEL}}{words[0]}"
    for word in words[1:]:
        if len(line) + len(word) + 1 > COLUMNS:
            yield line
            line = f"{'':{_LABEL}}{word}"
        else:
            line = f"{line} {word}"
    yield line


def _size(found: Inspection, size: Size | None, of: str = "") -> str:
    """A size, of bytes if so, with all its digits behind the first ones."""
    if size is None or isinstance(size, Dim):
        return f"{found.sizes.text(size)}{' bytes' if of else ''}"
    return f"{unit(size, of)} ({size:,})" if size >= 10_000 else f"{size:,}{' bytes' if of else ''}"
