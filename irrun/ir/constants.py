"""What is wrong with the Consts of a file: what they say of their data against their ports, the .bin and each other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice

from irrun.diagnostics import Note
from irrun.ir.findings import Findings
from irrun.ir.graph import Layer
from irrun.ir.weights import Blob, Weights, WeightsError, bytes_of
from irrun.ir.xml import attribute_span
from irrun.records import dataclass
from irrun.spec.dtypes import ELEMENT_TYPES

_MAX_FOLLOWING = 100
"""Constants behind one that are looked at for where their bytes begin; many have those of earlier ones."""

_MAX_NOTED = 8
"""Constants that a diagnostic names of those whose bytes another one has."""


def check_constants(constants: list[Layer], weights: Weights, findings: Findings) -> None:
    faults = [(layer, fault) for layer in constants if (fault := _check_constant(layer, weights, findings))]
    _warn_of_overlaps(constants, weights, findings)
    for code in ("E501", "E503"):
        _report_together([pair for pair in faults if pair[1].code == code], weights, findings)


def _check_constant(layer: Layer, weights: Weights, findings: Findings) -> WeightsError | None:
    """Report what is wrong with a Const; what may have one cause for many of them, the .bin itself, is returned."""
    try:
        blob = weights.check(layer)
    except WeightsError as error:
        if error.code in ("E501", "E503"):
            return error
        findings.add(error.code, str(error), layer.data or layer.element, error.attribute, layer=layer, help=error.help)
        return None
    if blob.size > blob.needed:
        _warn_of_excess(layer, blob, weights, findings)
    return None


def _report_together(errors: list[tuple[Layer, WeightsError]], weights: Weights, findings: Findings) -> None:
    """One diagnostic for all Consts that miss the .bin, or its end; at the first of them."""
    if not errors:
        return
    layer, error = errors[0]
    message, help, path = str(error), error.help, weights.path
    if error.code == "E501":
        count = "1 Const has its data" if len(errors) == 1 else f"{len(errors)} Consts have their data"
        message = f"there is no `{path}`, where {count}" if path else f"no weights are given, where {count}"
        help = "put the .bin beside the .xml under the same name, or say where it is"
        help = help if path else "give its .bin, too, as a path (--bin on the command line), bytes or an open file"
    elif len(errors) > 1:
        worst = max(errors, key=lambda pair: pair[1].missing)[1]
        message = f"{len(errors)} Consts lie beyond the end of `{path}`, which lacks {worst.missing} bytes"
        help = "is it this model's .bin, and was it downloaded or copied to its end?"
    findings.add(error.code, message, layer.data or layer.element, error.attribute, layer=layer, help=help)


def _warn_of_overlaps(constants: list[Layer], weights: Weights, findings: Findings) -> None:
    """One warning for each Const that has bytes of others, at the one that has likely moved: equal blobs are one on
    purpose."""
    lacking = any(each.code in ("E205", "E208") for each in findings.diagnostics)  # layers, of which it is told
    overlaps = list(_overlaps(constants, weights, lacking=lacking))
    counts = Counter(layer for overlap in overlaps for layer in overlap.pair)
    found: dict[Layer, list[_Overlap]] = {}
    for overlap in overlaps:
        most = max(overlap.pair, key=counts.__getitem__)
        sure = most.data is not None and counts[most] > min(counts[layer] for layer in overlap.pair)
        at = most if sure and overlap.free is None else overlap.moved
        if at in weights.doubtful and weights.doubtful[at] is at and at not in found:  # of which enough is said
            continue
        found.setdefault(at, []).append(overlap)
        for layer in overlap.pair:
            weights.doubtful.setdefault(layer, at)
    for layer, shared in found.items():
        assert layer.data is not None
        others = [one if other is layer else other for one, other in (overlap.pair for overlap in shared)]
        notes = [
            Note(f"the bytes of layer {other}", attribute_span(other.data or other.element, "offset"))
            for other in others[:_MAX_NOTED]
        ]
        start, end = min(overlap.start for overlap in shared), max(overlap.end for overlap in shared)
        listed = f"layer {others[0]}" if len(others) == 1 else f"layers {', '.join(map(str, others[:_MAX_NOTED]))}"
        more = f" and {len(others) - _MAX_NOTED} more" if len(others) > _MAX_NOTED else ""
        message = f"bytes {start} to {end} are also those of {listed}{more}"
        which = "one of the two" if len(others) == 1 else "one of them, likely this one,"
        help = f"{which} has a wrong `offset` or shape; only equal constants share their bytes, whole"
        free = shared[0].free
        if free is not None:
            message += f", and no Const reads as many from byte {free} on"
            help = f'is offset="{free}" meant? Only equal constants share their bytes'
        findings.add("W909", message, layer.data, "offset", layer=layer, help=help, notes=tuple(notes))


@dataclass(frozen=True, slots=True)
class _Overlap:
    """Bytes from `start` to `end` that two Consts share; where they lie tells which of them has `moved`."""

    pair: tuple[Layer, Layer]
    moved: Layer
    start: int
    end: int
    free: int | None = None
    """Where the only bytes are that nobody reads, if it is these that would be those of the one, which has others."""


def _overlaps(constants: list[Layer], weights: Weights, *, lacking: bool) -> Iterator[_Overlap]:
    blobs = [
        (blob.offset, -blob.end, layer) for layer in constants if (blob := weights.checked(layer)) and blob.elements
    ]
    last: tuple[int, int, Layer] | None = None
    places: _Places | None = None
    whole: list[tuple[Layer, Layer, int, int]] = []
    for offset, end, layer in sorted(blobs, key=lambda blob: blob[:2]):
        if last and offset < last[1] and (offset, -end) != last[:2] and layer.data:
            places = places or _Places(constants, weights)
            moved, other, shared = layer, last[2], (offset, min(-end, last[1]))
            if other.data and places.signs(other, *shared) > places.signs(layer, *shared):
                moved = other
            yield _Overlap((layer, other), moved, *shared)
        elif last and (offset, -end) == last[:2]:
            whole.append((layer, last[2], offset, -end))
        if last is None or -end > last[1]:
            last = offset, -end, layer
    unread = unread_bytes(constants, weights) if whole and not lacking and _are_all(constants, weights) else []
    if len(unread) != 1:
        return
    places = places or _Places(constants, weights)
    odd = places.lacking({layer for pair in whole for layer in pair[:2]})
    for one, other, start, end in whole:
        if odd is not None and odd in (one, other):
            yield _Overlap((one, other), odd, start, end, unread[0][0])


def _are_all(constants: list[Layer], weights: Weights) -> bool:
    """Whether no other layer, and no constant that cannot be read, may be one whose bytes nobody reads."""
    graph = constants[0].graph
    while graph.owner is not None:
        graph = graph.owner.graph
    others = (layer for layer in graph.walk() if layer.type != "Const" and "offset" in layer.attributes)
    blobs = ((layer, weights.checked(layer)) for layer in constants)
    known = all(blob is not None and not contradicts_port(layer, blob) for layer, blob in blobs)
    return known and next(others, None) is None


class _Places:
    """The bytes of a .bin that no Const reads, and what tells of a Const that it belongs there."""

    def __init__(self, constants: Sequence[Layer], weights: Weights) -> None:
        self._weights = weights
        unread = unread_bytes(constants, weights)
        self._starting = dict(unread)
        self._ending = {start + size: size for start, size in unread}
        self._by_size: dict[int, list[int]] = {}
        for start, size in unread:
            self._by_size.setdefault(size, []).append(start)
        known = [(layer, blob) for layer in constants if (blob := weights.checked(layer)) is not None]
        self._offsets = [blob.offset for _, blob in known]
        ends = accumulate((blob.offset + blob.size for _, blob in known), max, initial=0)
        self._before = {layer: (number, end) for number, ((layer, _), end) in enumerate(zip(known, ends, strict=False))}

    def signs(self, layer: Layer, start: int, end: int) -> tuple[bool, ...]:
        """What speaks for it that a Const which shares bytes is not where it belongs, the strongest first: its port
        says something else of it than its data do, it fits just where nobody reads, it lies in the midst of the other
        one, it begins at an odd place."""
        blob = self._weights.checked(layer)
        if blob is None:
            return ()
        fits = self._is_shifted(blob, start, end) or self._has_room(layer, blob)
        return contradicts_port(layer, blob), fits, (start, end) == (blob.offset, blob.end), _is_odd(blob)

    def lacking(self, layers: Iterable[Layer]) -> Layer | None:
        """The one of these Consts, which have the bytes of others, that fits where nobody reads."""
        blobs = ((layer, self._weights.checked(layer)) for layer in layers if layer.data)
        found = [layer for layer, blob in blobs if blob is not None and self._has_room(layer, blob)]
        return found[0] if len(found) == 1 else None

    def _is_shifted(self, blob: Blob, start: int, end: int) -> bool:
        """Whether as many bytes as it shares at one end are free at the other one."""
        right = end == blob.end and self._ending.get(blob.offset) == end - start
        return right or (start == blob.offset and self._starting.get(blob.end) == end - start)

    def _has_room(self, layer: Layer, blob: Blob) -> bool:
        """Whether it fits behind what stands before it in the .xml, and before what stands behind it: the data of most
        files are in that order."""
        number, low = self._before[layer]
        following = islice(self._offsets, number + 1, number + 1 + _MAX_FOLLOWING)
        high = next((offset for offset in following if offset >= low), self._weights.size or 0)
        return any(low <= start < high for start in self._by_size.get(blob.size, ()))


def unread_bytes(constants: Iterable[Layer], weights: Weights) -> list[tuple[int, int]]:
    """Where bytes of the .bin begin that no Const reads, in order, and how many these are."""
    blobs = sorted((blob.offset, blob.offset + blob.size) for each in constants if (blob := weights.checked(each)))
    found, at = [], 0
    for start, end in (*blobs, (weights.size or 0, weights.size or 0)):
        if start > at:
            found.append((at, start - at))
        at = max(at, end)
    return found


def contradicts_port(layer: Layer, blob: Blob) -> bool:
    """Whether the port of a Const declares another type or other sizes than its data have."""
    port = layer.outputs[0].port if layer.outputs else None
    if port is None:
        return False
    return port.precision not in (None, blob.element_type) or bool(port.dims and port.dims != blob.shape)


def _is_odd(blob: Blob) -> bool:
    """Whether a Const begins where no array of such elements does that a converter has written."""
    return blob.offset % max(ELEMENT_TYPES[blob.element_type].bits // 8, 1) != 0


def _warn_of_excess(layer: Layer, blob: Blob, weights: Weights, findings: Findings) -> None:
    read = weights.read_bytes(blob)
    if blob.size > max(read, 1) and layer.data:  # OpenVINO writes a byte for a tensor without elements
        name, message = "size", f"{blob.elements} elements of {blob.element_type} take {read}"
        help = "OpenVINO ignores the rest; a shape or an element type may be wrong"
        disproved = disproved_by_port(layer, blob)
        if disproved is not None:
            name, right = disproved
            message = (
                f"`{name}` is `{layer.attributes[name]}`, but by `size`, {blob.size} bytes, and the port `{right}`"
            )
            help = f"OpenVINO goes by `{name}`, and ignores the rest of the bytes"
        else:
            message = f"`size` is {blob.size} bytes, but {message}"
        findings.add("W905", message, layer.data, name, layer=layer, help=help)
        weights.doubtful[layer] = layer


def disproved_by_port(layer: Layer, blob: Blob) -> tuple[str, str] | None:
    """The `element_type` or `shape` of a Const if it alone is wrong, by its size and by its port, which say what is
    right."""
    port = layer.outputs[0].port if len(layer.outputs) == 1 else None
    if port is None or port.precision in (None, "dynamic", "string") or min(port.dims, default=0) < 0:
        return None
    if blob.size != bytes_of(port.precision or "", math.prod(port.dims)):
        return None
    if port.dims == blob.shape:
        return "element_type", port.precision or ""
    return ("shape", ",".join(map(str, port.dims))) if port.precision == blob.element_type else None
