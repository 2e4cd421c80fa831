"""What products of codes have in common, however they are computed: their geometry, and how a result is cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from irrun.engines.axes import Strided
from irrun.engines.compiled.code import Form
from irrun.engines.compiled.requantization import Requantization
from irrun.engines.compiled.sequence import Kernel
from irrun.engines.compiled.team import SHARED_SECONDS, Team
from irrun.engines.memory import Arranged, allocate_lasting, data_address
from irrun.engines.windows import Axis
from irrun.engines.work import Arrays, Call, Compiled, Layout
from irrun.records import NamedTuple, dataclass
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array

PRODUCTS = 40e9
"""Products that one thread adds up in a second, about."""

CHUNKS = 4
"""That each thread takes, where it can."""

NONE = Axis(1, 1, 1, 1, 1, 0, 0)
"""An axis that is not there."""


class Geometry(NamedTuple):
    """Images of `lines` lines of `positions` pixels of `channels`, which windows along `axes` (of lines, and along one)
    make images of results of. `single` are groups of one channel, of which each makes one column. So many groups are
    `joined` that their columns fill a panel: zeros for the channels of others take less time than what becomes of sums
    does for a panel of a few columns."""

    images: int
    channels: int
    groups: int
    axes: tuple[Axis, Axis]
    single: bool = False
    joined: int = 1

    @property
    def item(self) -> int:
        """Bytes of a number that codes are made."""
        return 4 if self.single else 2

    @property
    def panel_groups(self) -> int:
        """Groups that have panels of their own."""
        return -(-self.groups // self.joined)

    @property
    def flat(self) -> bool:
        """Whether pixels are lines, each of which makes one result."""
        return self.axes[1] == NONE and keeps(self.axes[0])


def keeps(axis: Axis) -> bool:
    """Whether each element of an axis makes a result of its own."""
    return axis.kernel == axis.stride == 1 and not axis.begin and axis.windows == axis.size


def kept(array: Array) -> Array:
    """A copy that lies where vectors are quickly read."""
    made: Array = allocate_lasting(array.nbytes).view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


class Cut(NamedTuple):
    """How a result is cut: rows of a band, panels of a chunk, and how many there are; elements that a line is made, and
    bytes that a thread needs; and whether threads share it."""

    rows: int
    bands: int
    chunk: int
    chunks: int
    reached: int
    room: int
    shared: bool


class Told(NamedTuple):
    """What a way to compute adds to a call: address and form of its kernel, its arguments, and what these hold."""

    address: int
    form: Form
    arguments: dict[str, int]
    held: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """What a work is: type and zero point of codes, which the run tells where there is none; geometry, weights as a
    kernel reads them, how many columns they have, and what becomes of sums."""

    type: str
    zero: int | None
    geometry: Geometry
    weights: Arranged
    columns: int
    ending: Requantization

    @property
    def pixels(self) -> tuple[int, int]:
        """Rows of the result of an image, and pixels of a row."""
        down, along = self.geometry.axes
        return down.windows, along.windows

    @property
    def terms(self) -> int:
        """Of a sum."""
        return prod(axis.kernel for axis in self.geometry.axes) * self.geometry.channels // self.geometry.groups

    @property
    def products(self) -> int:
        """That are added up in all."""
        return self.geometry.images * prod(self.pixels) * self.columns * self.terms

    def is_shared(self, team: Team) -> bool:
        """Whether there is enough to do for threads."""
        return team.count > 1 and self.products / PRODUCTS > SHARED_SECONDS

    def cut(self, team: Team) -> Cut:
        raise NotImplementedError

    def told(self, cut: Cut, weights: Array) -> Told:
        raise NotImplementedError

    def compiled(self, team: Team, wants: Mapping[int, Layout], gives: Strided | None) -> Compiled:
        cut = self.cut(team)
        return Compiled(
            lambda inputs, outputs, scratch: self._bind(team, cut, inputs, outputs, scratch),
            cut.room * team.count,
            {**self.ending.wants, **wants},
            {} if gives is None else {0: gives},
            frozenset({1}),
            coded=self.ending.coded | (frozenset({0}) if self.zero is not None else frozenset()),
        )

    def _bind(self, team: Team, cut: Cut, inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        geometry, (down, along) = self.geometry, self.geometry.axes
        (result,), weights, channels = outputs, self.weights.array(), self.geometry.channels
        left = min(along.begin, cut.reached)
        body = min(along.size, cut.reached - left)
        height, width = self.pixels
        step = numpy_dtype(self.ending.ending.type).itemsize
        address, form, own, held = self.told(cut, weights)
        told = {
            "items": cut.chunks * cut.bands * geometry.images,
            "room": data_address(scratch),
            "room_size": cut.room,
            "chunk": cut.chunk,
            "chunks": cut.chunks,
            "panels": len(weights),
            "panel": weights.strides[0],
            "weights": data_address(weights),
            "bands": cut.bands,
            "rows": cut.rows,
            "height": height,
            "width": width,
            "data": data_address(inputs[0]),
            "image": down.size * along.size * channels,
            "row": along.size * channels,
            "lines": down.size,
            "begin": down.begin,
            "left": left * channels,
            "body": body * channels,
            "right": (cut.reached - left - body) * channels,
            "zero": (self.zero or 0) & (1 << 64) - 1,
            "result": data_address(result),
            "result_image": prod(result.shape) // geometry.images * step,
            "result_pixel": self.columns * step,
            **self.ending.arguments(inputs),
        }
        arguments = form.of(**told, **own)
        holding = (inputs, outputs, scratch, weights, held, self.ending)
        seconds, counted = self.products / PRODUCTS, (form.place("room"), told["room"])
        kernel = Kernel(team, address, arguments, holding, shared=cut.shared, seconds=seconds, counted=counted)
        if self.zero is not None:
            return kernel
        given, place = inputs[2].reshape(-1), form.place("zero")

        def call() -> None:
            arguments[place] = int(given[0]) & (1 << 64) - 1
            kernel()

        return call


def chunks_of(panels: int, most: int) -> tuple[int, int]:
    """Panels of a chunk, where there are to be so many chunks at most, and how many there are."""
    chunk = -(-panels // min(panels, most))
    return chunk, -(-panels // chunk)
