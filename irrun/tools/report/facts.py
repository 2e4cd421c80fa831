"""What is said of a model as a whole: the lines and tables that `irrun inspect` prints, and its constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from irrun.diagnostics import counted
from irrun.ir.signature import TensorInfo
from irrun.spec.dims import Dim, Size
from irrun.spec.evaluation import Evaluation, Unknown
from irrun.tools.inspect.inspection import Inspection
from irrun.tools.inspect.releases import Releases
from irrun.tools.inspect.tables import rows_of_types, unit
from irrun.tools.inspect.weights import Weight
from irrun.tools.report import texts

MAX_TENSORS = 200
"""Inputs, outputs or variables that are listed."""

MAX_DEMANDS = 20
"""Layers that are listed for asking for a release, and those whose MACs are not known."""

Place = tuple[str, int, int | None]
"""A layer as an inspection names it: its path, id and line."""


def facts(found: Inspection, numbers: Mapping[Place, int], evaluation: Evaluation) -> dict[str, Any]:
    """All of it. Sizes are numbers, those that depend on unknown ones for what `evaluation` takes these as; `formulas`
    are what they depend on."""
    return {
        "path": texts.name(str(found.path)),
        "name": texts.name(found.name),
        "facts": [[label, texts.value(text), texts.value(more)] for label, text, more in _facts(found, evaluation)],
        "formulas": [[label, texts.value(text)] for label, text in _formulas(found)],
        "tensors": {name: _tensors(getattr(found, name)) for name in ("inputs", "outputs", "variables")},
        "types": [list(row) for row in rows_of_types(found)],
        "element_types": _element_types(found),
        "provenance": _provenance(found),
        "demands": _demands(found.releases, numbers),
        "uncounted": _uncounted(found),
        "states": [[texts.name(state.variable), state.type, state.axis, _text(found, state.bytes)]
                   for state in found.states],
    }  # fmt: skip


def _facts(found: Inspection, evaluation: Evaluation) -> Iterator[tuple[str, str, str]]:
    """A label, what there is to it, and the rest in small print."""
    costs, weights, origin, runs, most = found.costs, found.weights, found.provenance, found.releases, found.peak
    yield "layers", f"{len(found.layers or ()):,}", f"{len(found.ops)} types"
    if runs is not None:
        yield "runs on", f"OpenVINO {runs.oldest}", "and later" if runs.measured else "and later; not measured"
    if costs is not None:
        known = f"known of {100 * costs.coverage:.1f} % of layers"
        yield "MACs", _taken(evaluation, costs.macs), known
        yield "traffic", _taken(evaluation, costs.bytes, "B"), "read and written by layers"
    if most is not None:
        where = most.reason if most.bytes is None else None if most.layer is None else f"at {most.layer}"
        yield "activations", "not known" if most.bytes is None else _taken(evaluation, most.bytes, "B"), where or ""
    if weights is not None:
        yield (
            "weights",
            unit(weights.bytes, "B"),
            f"{counted(weights.elements, 'element')}, {counted(len(weights.constants), 'constant')}",
        )
    if found.states:
        yield "states", _taken(evaluation, found.state_bytes, "B"), f"for each token, in {len(found.states)} variables"
    if origin is not None:
        yield "made by", origin.made_by or "the file does not say", f"IR version {origin.ir_version}"


def _formulas(found: Inspection) -> Iterator[tuple[str, str]]:
    """What depends on unknown sizes, and how."""
    sizes: list[tuple[str, Size | None]] = [] if found.costs is None else [("MACs", found.costs.macs)]
    sizes += [] if found.costs is None else [("traffic, bytes", found.costs.bytes)]
    sizes += [] if found.peak is None else [("activations, bytes", found.peak.bytes)]
    sizes.append(("states, bytes for each token", found.state_bytes))
    for label, size in sizes:
        if isinstance(size, Dim):
            yield label, str(found.sizes.text(size))


def _taken(evaluation: Evaluation, size: Size, of: str = "") -> str:
    """A size, for what unknown ones are taken as."""
    if not isinstance(size, Dim):
        return unit(size, of)
    try:
        return f"about {unit(evaluation.size(size), of)}"
    except (Unknown, ZeroDivisionError, RecursionError):
        return "depends on the data"


def _text(found: Inspection, size: Size | None, of: str = "") -> str:
    if size is None or isinstance(size, Dim):
        return f"{found.sizes.text(size)}{' bytes' if of else ''}"
    return unit(size, of)


def _tensors(infos: tuple[TensorInfo, ...]) -> list[list[str]]:
    listed = [
        [texts.name(info.name), texts.value(str(info)), info.layout or "", texts.value(", ".join(info.names[1:]))]
        for info in infos[:MAX_TENSORS]
    ]
    more = len(infos) - MAX_TENSORS
    return [*listed, [f"and {more:,} more", "", "", ""]] if more > 0 else listed


def _element_types(found: Inspection) -> list[list[str]]:
    """Of constants of each stored type and what they are computed as: how many, their elements and bytes."""
    weights = found.weights
    if weights is None:
        return []
    return [
        [stored, f"{computed}, with scales" if quantized else computed, f"{count:,}", f"{elements:,}", unit(size, "B")]
        for (stored, computed, quantized), (count, elements, size) in weights.by_type().items()
    ]


def _provenance(found: Inspection) -> list[list[str]]:
    origin = found.provenance
    if origin is None:
        return []
    unread = "not read" if origin.weights is None else origin.weights
    hashes = [["fingerprint of the structure", origin.structure], ["fingerprint of the weights", unread]]
    return [*hashes, *([texts.name(name), texts.value(value)] for name, value in origin.entries.items())]


def _demands(runs: Releases | None, numbers: Mapping[Place, int]) -> list[list[Any]]:
    listed = () if runs is None else runs.force[:MAX_DEMANDS]
    return [[numbers.get((d.path, d.id, d.line)), texts.name(d.path), texts.value(d.what)] for d in listed]


def _uncounted(found: Inspection) -> list[list[str]]:
    listed = () if found.costs is None else found.costs.uncounted[:MAX_DEMANDS]
    return [[texts.name(path), texts.value(reason)] for path, reason in listed]


def constants(found: Inspection, numbers: Mapping[Place, int]) -> dict[str, Any] | None:
    """The constants by their place in the .bin, and the stretches of it that no constant has, or several have."""
    weights = found.weights
    if weights is None:
        return None
    again = {weight.offset for group in weights.duplicates for weight in group[1:]}
    return {
        "read": weights.read,
        "file_bytes": weights.file_bytes,
        "bytes": weights.bytes,
        "duplicate_bytes": weights.duplicate_bytes,
        "gaps": [[stretch.begin, stretch.end] for stretch in weights.gaps[:MAX_TENSORS]],
        "overlaps": [[stretch.begin, stretch.end] for stretch in weights.overlaps[:MAX_TENSORS]],
        "rows": [
            [
                numbers.get((weight.path, weight.id, weight.line), -1),
                weight.offset,
                weight.bytes,
                weight.stored,
                weight.computed,
                "x".join(map(str, weight.shape)),
                "" if weight.quantization is None else f"scale for {weight.quantization.group}",
                "; ".join(_notes(weight, again)),
            ]
            for weight in weights.constants
        ],
    }


def _notes(weight: Weight, again: set[int]) -> Iterator[str]:
    if weight.part_of is not None:
        yield "scale or zero point"
    if weight.offset in again:
        yield "stored again"
    values = weight.values
    if values is None:
        return
    counts = {
        "NaN": values.nans,
        "infinite": values.infinities,
        "beyond f16": values.beyond_f16,
        "0 in f16": values.flushed_by_f16,
    }
    for what, count in counts.items():
        if count:
            yield f"{count:,} {what}"
