"""Bytes of the .bin that no Const reads, constants that were never written, a .bin of another model, and one that
changes while it is read: what only the file as a whole tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from irrun.check.infer import Inference
from irrun.diagnostics import Diagnostic, Note, counted
from irrun.ir.constants import contradicts_port, unread_bytes
from irrun.ir.graph import Layer, Model
from irrun.ir.weights import Blob, Weights, WeightsError, read_blob
from irrun.ir.xml import attribute_span
from irrun.spec.op import FLOAT

_PADDING = 64
"""Bytes that writers leave between constants so that each begins where processors read it best."""

_FEW, _LEAST = 3, 4096
"""Constants of zeros at the end of the .bin, and the bytes of these, that are more than biases and initial states."""

_ENDLESS, _SHORT = 2**29, 64
"""A number that no size, axis or index of a model comes to, as the bits of floats do, and how many elements a constant
of such numbers has at most."""


_LEAST_READ, _MOST_READ = 1 << 8, 1 << 28
"""Bytes of a .bin that are looked through to see whether all are zero."""


def of_another_model(model: Model, inference: Inference) -> Diagnostic | None:
    """An error of a .bin in which a layer is given no numbers that make sense, while it is longer or shorter than the
    Consts say, or other layers are given such numbers, too: then it is that of another model, or in another order of
    bytes, and no number in it is of this one."""
    weights = model.weights
    failed = {each.layer: each for each in inference.diagnostics if each.severity == "error" and each.layer is not None}
    if not failed or not weights.size or weights.doubtful or model.edited:
        return None
    layers = [*model.graph.walk()]
    end = max((_end(layer) for layer in layers if layer.type == "Const"), default=0)
    readers = {value.layer: layer for layer in layers if layer.label in failed for value in layer.inputs if value}
    known = [(layer, numbers) for layer in layers if (numbers := _numbers(layer, weights))]
    failing = [layer for layer, _ in known if layer in readers]
    if not failing:
        return None
    constant = failing[0]
    senseless = [layer for layer, numbers in known if any(map(_is_senseless, numbers))]
    turned = {layer: _turned(layer, numbers, weights) for layer, numbers in known}
    name = f"`{weights.path or 'the .bin'}`"
    help = "take the .bin that was written with the .xml; of its numbers nothing else is told"
    some = [layer for layer, numbers in known if any(numbers)]
    blamed = [layer for layer in senseless if layer in readers]
    if end != weights.size and (blamed or len(failing) >= _FEW):
        constant = (blamed or failing)[0]
        message = f"{name} is that of another model: it has {weights.size} bytes, but the Consts end at byte {end}"
    elif turned[constant] and None not in turned.values() and len(_places(turned, weights)) > 1:
        message = f"{name} has its bytes in another order than an IR: the last of each number comes first"
        help = "numbers are little-endian in a .bin; was it written on another machine, or by another program?"
    elif len(senseless) > 1 and len(blamed) * 2 > len(some):
        constant = blamed[0]
        message = f"{name} is not that of this model: {len(senseless)} constants in it have numbers that make no sense"
    elif len(known) > 1 and not some and _is_zero(layers, weights):
        message = f"{name} is zero from its first byte to its last"
        help = "was it downloaded or copied? Some programs make a file as long as it will be before they fill it"
    else:
        return None
    reader = readers[constant]
    found = failed[reader.label]
    notes = (Note(f"layer {reader}: {found.message}", found.span),)
    return replace(_at(constant, "E503", message, help), notes=notes)


def _turned(layer: Layer, numbers: Sequence[int], weights: Weights) -> int | None:
    """How many numbers of a Const are sizes or axes with the bytes of each turned round, and far from that as they are;
    None where some are not smaller."""
    blob = weights.checked(layer)
    size = 4 if blob is not None and blob.element_type == "i32" else 8
    turned = [int.from_bytes(number.to_bytes(size, "little", signed=True), "big", signed=True) for number in numbers]
    others = [(number, other) for number, other in zip(numbers, turned, strict=True) if number != other]
    if not all(abs(other) < abs(number) >> 8 for number, other in others):
        return None
    return sum(abs(other) < abs(number) >> 4 * size for number, other in others)


def _places(turned: Mapping[Layer, int | None], weights: Weights) -> set[int]:
    """Where Consts lie of which some numbers are `turned`: one alone may hold numbers that are wrong."""
    blobs = (weights.checked(layer) for layer, count in turned.items() if count)
    return {blob.offset for blob in blobs if blob is not None}


def _is_zero(layers: Sequence[Layer], weights: Weights) -> bool:
    """Whether all that Consts read is zero, if it is not more than is quickly read, nor so little that it may be."""
    if not _LEAST_READ <= (weights.size or 0) <= _MOST_READ:
        return False
    try:
        blocks = (block for layer in layers if weights.checked(layer) for block in weights.blocks(layer))
        return all(block.count(0) == len(block) for block in blocks)
    except WeightsError:  # the file changes; who reads it next reports it
        return False


def _end(constant: Layer) -> int:
    try:
        blob = read_blob(constant.attributes)
    except WeightsError:  # which is reported
        return 0
    return blob.offset + blob.size


def _is_senseless(number: int) -> bool:
    """Whether a number is too large for what rules look at, and none of those that stand for all that there is."""
    size = abs(number)
    return size > _ENDLESS and bool(size & (size - 1)) and bool(size & (size + 1))


def _numbers(layer: Layer, weights: Weights) -> list[int]:
    """The elements of a Const of few integers such as shapes and axes are."""
    blob = weights.checked(layer) if layer.type == "Const" else None
    if blob is None or blob.element_type not in ("i32", "i64") or blob.elements > _SHORT:
        return []
    try:
        numbers: list[int] = weights.constant(layer).ravel().tolist()
    except WeightsError:  # the file changes; who reads it next reports it
        return []
    return numbers


def check_unchanged(weights: Weights) -> Iterator[Diagnostic]:
    """An error where the .bin was written to while it was read: nobody knows of which state what was read is."""
    if weights.changed:
        help = "check the model again when the file is complete"
        yield Diagnostic("E502", f"`{weights.path}` was written to while it was read", help=help)


def check_whole(model: Model, most: int | None) -> Iterator[Diagnostic]:
    """Warnings of a .bin of which a part is unread, or zero to its end; so many bytes are searched, None for all."""
    weights = model.weights
    constants = [layer for layer in model.graph.walk() if layer.type == "Const"]
    known = [(layer, blob) for layer in constants if (blob := weights.checked(layer)) is not None]
    if not weights.size or not known or len(known) < len(constants) or weights.doubtful:
        return
    if not any(child.tag == "pre-process" for child in model.legacy):  # which has bytes of its own
        yield from _unread(known, weights)
    yield from _never_written(known, weights, most)


def _unread(known: Sequence[tuple[Layer, Blob]], weights: Weights) -> Iterator[Diagnostic]:
    gaps = [gap for gap in unread_bytes([layer for layer, _ in known], weights) if gap[1] > _PADDING]
    odd = [blob for layer, blob in known if contradicts_port(layer, blob)] if gaps else []  # of which it is told
    offsets = Counter(blob.offset for _, blob in known) if odd else {}
    gaps = [gap for gap in gaps if gap[0] not in {blob.offset + blob.size for blob in odd}]
    if not gaps or any(offsets[blob.offset] > 1 for blob in odd):  # whose own bytes these may be
        return
    start, size = gaps[0]
    before = [(blob.offset + blob.size, layer) for layer, blob in known if blob.offset + blob.size <= start]
    layer = max(before, key=lambda pair: pair[0])[1] if before else known[0][0]
    more = f", nor {counted(sum(size for _, size in gaps[1:]), 'byte')} elsewhere" if len(gaps) > 1 else ""
    message = f"no Const reads bytes {start} to {start + size} of the .bin{more}"
    help = "is it this model's .bin, was a layer deleted, or does a Const have the `offset` of another one?"
    yield _at(layer, "W915", message, help)


def _never_written(known: Sequence[tuple[Layer, Blob]], weights: Weights, most: int | None) -> Iterator[Diagnostic]:
    """A warning where the last constants of the .bin, some of them of floats, are zero to the last byte."""
    zero: dict[tuple[int, int], Layer] = {}
    searched = 0
    for layer, blob in sorted(known, key=lambda pair: pair[1].offset + pair[1].size, reverse=True):
        searched += blob.size
        if most is not None and searched > most:
            break
        if (blob.offset, blob.size) in zero or not blob.elements:
            continue
        try:
            if any(block.count(0) < len(block) for block in weights.blocks(layer)):
                break
        except WeightsError:  # the file changes; who reads it next reports it
            return
        if blob.element_type in FLOAT:
            zero[blob.offset, blob.size] = layer
    if len(zero) < _FEW or sum(size for _, size in zero) < _LEAST:
        return
    start, first = min(((start, layer) for (start, _), layer in zero.items()), key=lambda pair: pair[0])
    message = f"all of the .bin from byte {start} on is zero, which are {counted(len(zero), 'constant')} of floats"
    help = "was it downloaded or copied to its end? Some programs make a file as long as it will be before they fill it"
    yield _at(first, "W916", message, help)


def _at(layer: Layer, code: str, message: str, help: str) -> Diagnostic:
    span = attribute_span(layer.data, "offset") if layer.data else layer.element.span
    return Diagnostic(code, message, span, layer.label, help)
