"""Fixes of constants: what of type, shape, offset and size the others, the port and the .bin leave no doubt about."""

from __future__ import annotations

import math
from collections.abc import Iterator

from irrun.check.fixes.place import Case
from irrun.check.fixes.words import element_type_of, misspelt_attribute
from irrun.diagnostics import Fix
from irrun.ir.constants import disproved_by_port
from irrun.ir.graph import Layer
from irrun.ir.text_edits import Edit
from irrun.ir.text_edits import set_attribute as with_attribute
from irrun.ir.weights import Blob, WeightsError, read_blob
from irrun.records import dataclass
from irrun.spec.dtypes import ELEMENT_TYPES


def constant(case: Case) -> Iterator[Fix]:
    """E503 to E508: one or more attributes of a Const, from what else is known of it."""
    layer = case.layer
    if layer is None or layer.data is None or "value" in layer.attributes:
        return
    if case.diagnostic.code == "E505" and case.attribute is not None:
        yield from misspelt_attribute(case)
        return
    given, told = dict(layer.attributes), _told(layer)
    right = dict(given)
    type = element_type_of(given.get("element_type", ""))
    if type in ELEMENT_TYPES and type != "dynamic":
        right["element_type"] = type
    elif "element_type" in told:
        right["element_type"] = told["element_type"]
    bare = given.get("shape", "?").strip().strip("[](){}").strip()
    if all(part.strip().isdecimal() for part in bare.split(",")) or not bare:
        right["shape"] = ",".join(part.strip() for part in bare.split(",")) if bare != given.get("shape") else bare
    elif "shape" in told:
        right["shape"] = told["shape"]
    for attempt in (right, right | told):
        for mended, safe in _placed(case, layer, attempt):
            changed = {name: text for name, text in mended.items() if given.get(name) != text}
            if changed and _holds(case, mended):
                yield _written(case, layer, changed, safe)
                return


def excess(case: Case) -> Iterator[Fix]:
    """W905: what the port and the size say alike, or the size of the elements, which is certain where the bytes behind
    them are those of another constant."""
    blob = case.model.weights.checked(case.layer) if case.layer else None
    if blob is None or case.layer is None or case.layer.data is None:
        return
    disproved = disproved_by_port(case.layer, blob)
    if disproved is not None:
        # people who shorten a constant change its shape alone, with which OpenVINO loads it
        safe = disproved[0] == "element_type" or case.diagnostic.code == "E511"
        yield case.set(*disproved, element=case.layer.data, safe=safe)
        return
    told = _told(case.layer)
    other = _sized(case.layer.attributes | told)
    if told and other is not None and other.size == other.needed == blob.size:
        changed = {name: text for name, text in told.items() if case.layer.attributes[name] != text}
        yield _written(case, case.layer, changed, False)
    needed = max(case.model.weights.read_bytes(blob), 1)
    free = [gap for gap in _gaps(case, case.layer) if gap.start + gap.bytes > blob.offset + needed]
    taken = not any(gap.start < blob.offset + blob.size for gap in free)
    yield case.set("size", str(needed), element=case.layer.data, safe=taken)


def doubted(case: Case) -> Iterator[Fix]:
    """E511: what W905 or W909 would have, of which it takes the place; else what the port declares."""
    layer = case.layer
    blob = case.model.weights.checked(layer) if layer else None
    if case.attribute == "offset":
        yield from overlap(case)
    elif blob is not None and blob.size > blob.needed:
        yield from excess(case)
    elif layer is not None and case.attribute in (told := _told(layer)):
        # of shapes the port may have that of a reshape; nothing gives another type by the way
        as_large = case.attribute == "element_type" and blob is not None and disproved_by_port(layer, blob) is not None
        yield _written(case, layer, {case.attribute: told[case.attribute]}, safe=as_large)


def overlap(case: Case) -> Iterator[Fix]:
    """W909: the place in the .bin that only this constant leaves free."""
    others = [case.text.home(case.text.at(note.span)[0])[0] for note in case.diagnostic.notes[:1] if note.span]
    for layer in (case.layer, *others):
        blob = case.model.weights.checked(layer) if layer else None
        if layer is None or blob is None or layer.data is None:
            continue
        gaps = [gap for gap in _gaps(case, layer) if gap.bytes == blob.size]
        if len(gaps) == 1 and gaps[0].start != blob.offset:
            yield case.set("offset", str(gaps[0].start), element=layer.data, safe=False)


@dataclass(frozen=True, slots=True)
class _Gap:
    start: int
    bytes: int


def _told(layer: Layer) -> dict[str, str]:
    """What the port of a Const says of it."""
    if len(layer.outputs) != 1:
        return {}
    port = layer.outputs[0].port
    told = {}
    if port.precision not in (None, "dynamic"):
        told["element_type"] = port.precision or ""
    if all(size >= 0 for size in port.dims):
        text, given = ",".join(map(str, port.dims)), layer.attributes.get("shape", "")
        told["shape"] = given if given.replace(" ", "") == text else text
    return told


def _sized(attributes: dict[str, str]) -> Blob | None:
    try:
        return read_blob(attributes)
    except WeightsError:
        return None


def _placed(case: Case, layer: Layer, right: dict[str, str]) -> Iterator[tuple[dict[str, str], bool]]:
    """With a size and an offset: those that are there, else those that are evident."""
    if not {"element_type", "shape"} <= right.keys():
        return
    form = _sized(right | {"offset": "0", "size": "0"})
    if form is None:
        return
    needed = max(form.needed, 1)
    text = form.element_type == "string"
    sized = right if text else right | {"size": str(needed)}
    if _digits(right.get("size")) and _digits(right.get("offset")):
        yield right, True
    if _digits(sized.get("offset")) and not text:
        gap = next((gap for gap in _gaps(case, layer) if gap.start == int(sized["offset"])), None)
        yield sized, gap is not None and gap.bytes == needed
    if _digits(sized.get("size")):
        gaps = [gap for gap in _gaps(case, layer) if gap.bytes == int(sized["size"])]
        for gap in gaps[:1]:
            yield sized | {"offset": str(gap.start)}, len(gaps) == 1


def _digits(text: str | None) -> bool:
    return text is not None and text.isdecimal() and text.isascii() and len(text) < 19


def _gaps(case: Case, layer: Layer) -> list[_Gap]:
    """The bytes of the .bin that no other Const has."""
    weights = case.model.weights
    blobs = [
        blob
        for other in case.model.graph.walk()
        if other.type == "Const" and other is not layer and (blob := weights.checked(other)) is not None
    ]
    gaps, at = [], 0
    for blob in sorted(blobs, key=lambda blob: blob.offset):
        if blob.offset > at:
            gaps.append(_Gap(at, blob.offset - at))
        at = max(at, blob.offset + blob.size)
    if (weights.size or 0) > at:
        gaps.append(_Gap(at, (weights.size or 0) - at))
    return gaps


def _holds(case: Case, attributes: dict[str, str]) -> bool:
    """Whether the .bin has what a Const of these attributes reads, which says nothing else of its port."""
    blob = _sized(attributes)
    if blob is None or blob.offset + blob.size > (case.model.weights.size or 0):
        return False
    enough = math.prod(blob.shape) == 0 or blob.size >= blob.needed
    return enough and (case.layer is None or all(_agrees(case.layer, blob)))


def _agrees(layer: Layer, blob: Blob) -> Iterator[bool]:
    for value in layer.outputs:
        yield value.port.precision in (None, "dynamic", blob.element_type)
        yield len(value.port.dims) == len(blob.shape)
        yield all(size in (-1, known) for size, known in zip(value.port.dims, blob.shape, strict=False))


def _written(case: Case, layer: Layer, changed: dict[str, str], safe: bool) -> Fix:
    assert layer.data is not None
    edits: list[Edit] = [with_attribute(layer.data, name, text) for name, text in changed.items()]
    listed = " ".join(f'{name}="{text}"' for name, text in changed.items())
    return case.fix(f"write {listed}", *edits, safe=safe)
