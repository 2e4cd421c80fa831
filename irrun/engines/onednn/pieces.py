"""Convolutions over one long axis, one piece of it after the other, row by row.

To make oneDNN's primitive for a long axis may take longer than to compute with it, and each length asks for one of its
own. With the channels last a piece of the axis is a piece of memory, and pieces of one length share a primitive: the
first one has its own, and the last one, and those in the middle, whatever the whole length is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from irrun.engines.axes import unless_so
from irrun.engines.onednn.library import Library, Primitive
from irrun.engines.onednn.tensors import bound_places, channels_last, given_as, pending_of
from irrun.engines.windows import Axis, axes_of, transposed_axes_of
from irrun.engines.work import Arrays, Call, Compiled, Layout, Operand, Work, chain
from irrun.records import NamedTuple

PIECES = {1 << 12: 1 << 10, 1 << 10: 1 << 9}
"""Elements of a piece, for results of so many or more: these take up to a third longer then."""

MAX_ROWS = 4
"""Rows of a batch: each has pieces of its own, which other batches share, and more of them are quicker together."""

PART = 4
"""The last piece is as long as some of so many parts of another one; it begins within the one before."""

Prepare = Callable[[Library, Work], tuple[Compiled, Primitive] | None]


class _Cut(NamedTuple):
    """A piece of the result, the piece of the data that it is made of, and what is padded (or cropped, where the
    convolution is transposed) in front and behind."""

    result: slice
    data: slice
    front: int
    behind: int

    @property
    def kind(self) -> tuple[int, ...]:
        """What is the same for pieces that have all in common but their places."""
        return self.result.stop - self.result.start, self.data.stop - self.data.start, self.front, self.behind


def compile(library: Library, work: Work, prepare: Prepare) -> Compiled | None:
    """A convolution, also a transposed one, of a few long rows, whose pieces are prepared each; None for others."""
    long = _long_operands(work)
    if long is None:
        return None
    (data, filters), result = work.required(2), work.outputs[0]
    kernel = filters.shape[2:]
    if "Backprop" in work.name:
        (axis,) = transposed_axes_of(work, kernel)
        cuts = [_transposed_cut(axis, own) for own in _slices(axis.size)]
    else:
        (axis,) = axes_of(work.attrs, data.shape[2:], kernel, result.shape[2:])
        cuts = [_cut(axis, own) for own in _slices(axis.windows)]
    found: dict[tuple[int, ...], Compiled] = {}
    for cut in cuts:
        if cut.kind in found:
            continue
        prepared = None
        if cut.data.stop > cut.data.start:
            prepared = library.pieces.recall_own(work.name, _piece(work, cut, long), partial(prepare, library))
        if prepared is None or prepared[0].wants or not prepared[1].implementation.startswith("br"):
            return None
        found[cut.kind] = prepared[0]
    layout = channels_last(library, result.shape, "f32")
    wants: dict[int, Layout] = {}
    for number in (0, *long):
        own = work.inputs[number]
        if own is not None:
            wants |= unless_so(own, channels_last(library, own.shape, "f32"), number)

    def bind(inputs: Arrays, outputs: Sequence[Any], scratch: Any) -> Call:
        places: dict[tuple[int, ...], list[tuple[Arrays, Any]]] = {}
        for row, cut in product(range(result.shape[0]), cuts):
            place = slice(row, row + 1), slice(None), cut.result
            given = [array[place] if number in long else array for number, array in enumerate(inputs)]
            given[0] = inputs[0][row : row + 1, :, cut.data]
            places.setdefault(cut.kind, []).append((given, outputs[0][place]))
        return chain([bound_places(found[kind], own, scratch) for kind, own in places.items()])

    first = found[cuts[0].kind]
    scratch = max(own.scratch for own in found.values())
    gives, pending = given_as(work, layout), partial(pending_of, found.values())
    return Compiled(bind, scratch, wants, gives, first.taken, first.doubtful, pending=pending)


def _long_operands(work: Work) -> list[int] | None:
    """The operands of posts that are cut as the result is, of a work whose rows are long; None for others."""
    if work.name not in ("Convolution-1", "ConvolutionBackpropData-1"):
        return None
    (data, filters), result = work.required(2), work.outputs[0]
    if len(result.shape) != 3 or result.shape[0] > MAX_ROWS or result.shape[2] < min(PIECES):
        return None
    if work.optional(2) is not None:
        return None
    if data.type != "f32" or result.type != "f32" or filters.value is None or data.layout is not None:
        return None
    long = []
    for number, own in enumerate(work.inputs[2:], 2):
        if own is None:
            continue
        if own.shape[-1:] == result.shape[-1:]:
            if own.shape != result.shape or own.value is not None or own.layout is not None:
                return None
            long.append(number)
        elif len(own.shape) == len(result.shape) and own.shape[0] > 1:  # one for each row
            return None
    return long


def _slices(length: int) -> list[slice]:
    """Pieces that cover a length of several of these."""
    piece = next(piece for least, piece in PIECES.items() if length >= least)
    count, part = (length - 1) // piece, piece // PART
    last = -(-(length - count * piece) // part) * part
    return [*(slice(number * piece, (number + 1) * piece) for number in range(count)), slice(length - last, length)]


def _cut(axis: Axis, own: slice) -> _Cut:
    """The piece `own` of the windows over an axis."""
    elements, places = axis.places(own)
    return _Cut(own, elements, places.start, axis.covered(own.stop - own.start) - places.stop)


def _transposed_cut(axis: Axis, own: slice) -> _Cut:
    """The piece `own` of the axis of the result, of which the windows are the data: those that reach into it."""
    before, span = own.start + axis.begin, (axis.kernel - 1) * axis.dilation
    start = max(-((span - before) // axis.stride), 0)
    stop = min((own.stop - 1 + axis.begin) // axis.stride + 1, axis.windows)
    return _Cut(own, slice(start, stop), before - start * axis.stride, 0)


def _piece(work: Work, cut: _Cut, long: Sequence[int]) -> Work:
    """The work of a piece, whose tensors lie with the channels last."""

    def of(operand: Operand, piece: slice) -> Operand:
        channels, length = operand.shape[1], piece.stop - piece.start
        return replace(operand, shape=(1, channels, length), strides=(4 * channels * length, 4, 4 * channels))

    inputs = [
        of(own, cut.result) if own is not None and number in long else own for number, own in enumerate(work.inputs)
    ]
    data, result = work.required(1)[0], work.outputs[0]
    inputs[0] = of(data, cut.data)
    attrs = {**work.attrs, "auto_pad": "explicit", "pads_begin": (cut.front,), "pads_end": (cut.behind,)}
    return replace(work, attrs=attrs, inputs=inputs, outputs=[of(result, cut.result)])
