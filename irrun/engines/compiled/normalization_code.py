"""What kernels of normalization have in common: how they are told apart, the moments of many elements, and lines of
results."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir

from irrun.engines.compiled.bf16 import put
from irrun.engines.compiled.code import DOUBLE, FLOAT, FLOATS, INT, LANES, Code, Form, Values, long
from irrun.engines.compiled.posts import KernelPost, operand_names, operand_start, posted
from irrun.engines.memory import ITEM
from irrun.records import NamedTuple, dataclass

DOUBLES = ir.VectorType(DOUBLE, LANES)
NOUGHT = ir.Constant(DOUBLE, 0.0)

AXES = ("image", "line")
"""Along which operands of posts are told their bytes from one to the next."""

SCALES = ("scale", "shift")


@dataclass(frozen=True, slots=True)
class NormalizationKind:
    """What a kernel is compiled for.

    `does` is what: all of it ("whole"), or a step of it. Channels come `last` in memory, then a group may be a `single`
    one; or each is a line. `scales` is whether there are a scale and a shift for each element of a line, or for each
    line; None where there are none. A `short` line has less than 16 elements. Elements are divided by the root of
    variance and epsilon, "outside" of the root where it is added there; with "none" they are not divided. Those that
    are not `centred` are taken as if their mean were 0.
    """

    does: str
    last: bool
    short: bool
    single: bool = False
    scales: bool | None = None
    epsilon: str = "inside"
    posts: tuple[KernelPost, ...] = ()
    centred: bool = True
    gives: str = "f32"

    @property
    def form(self) -> Form:
        return _form_of(self.posts)


@cache
def _form_of(posts: tuple[KernelPost, ...]) -> Form:
    """`items` are chunks of `chunk` rows, images or parts; strides of operands are in bytes, from an image to the next
    one, and from a line to the next one. The kernels say what else there is."""
    names = ("items", "chunk", "images", "groups", "lines", "points", "parts", "together", "pieces", "data")
    return Form((*names, "target", "room", "room_image", "epsilon", *SCALES, *operand_names(posts, AXES)))


class Moments(NamedTuple):
    """A mean as the sum of two f32, and what elements less the mean are multiplied by: floats, or where vectors lie."""

    mean: Any
    rest: Any
    factor: Any


def origin(c: Code, first: Any) -> Any:
    """What is taken off elements before they are added up, a float or a vector: the first of them, if that is finite.

    It is one of those whose distances from the mean make the variance, so the difference of the sum of squares and the
    square of the sum loses no more digits than the number of elements has.
    """
    size = c.applied("fabs", first)
    limit, zero = (constant(first.type, value) for value in (float("inf"), 0.0))
    return c.b.select(c.b.fcmp_ordered("<", size, limit), first, zero)


def constant(type: ir.Type, value: float) -> ir.Constant:
    """A number, in all lanes of a vector."""
    return ir.Constant(type, [value] * LANES if isinstance(type, ir.VectorType) else value)


def central(c: Code, total: Any, squares: Any, count: Any) -> tuple[Any, Any]:
    """The mean of f64, and the sum of the squares of what they are less the mean, by their sum and that of squares."""
    mean = c.b.fdiv(total, count)
    around, zero = c.b.fsub(squares, c.b.fmul(total, mean)), constant(total.type, 0.0)
    return mean, c.b.select(c.b.fcmp_ordered("<", around, zero), zero, around)


def moments(c: Code, kind: NormalizationKind, epsilon: Any, mean: Any, squares: Any, count: Any) -> Moments:
    """By means, and sums of squares around them, of f64; as in the op's kernel the latter are rounded to f32."""
    b, many = c.b, isinstance(mean.type, ir.VectorType)
    type = FLOATS if many else FLOAT
    near = b.fptrunc(mean, type)
    rest = b.fptrunc(b.fsub(mean, b.fpext(near, mean.type)), type)
    rest = b.select(b.fcmp_ordered("ord", rest, rest), rest, constant(type, 0.0))  # of what is infinite there is none
    factor = constant(type, 1.0)
    if kind.epsilon != "none":
        divisor, added = b.uitofp(count, FLOAT), b.bitcast(b.trunc(epsilon, INT), FLOAT)
        if many:
            divisor, added = c.splat(divisor), c.splat(added)
        spread, inside = b.fdiv(b.fptrunc(squares, type), divisor), kind.epsilon == "inside"
        root = c.applied("sqrt", b.fadd(spread, added) if inside else spread)
        factor = b.fdiv(factor, root if inside else b.fadd(root, added))
    return Moments(near, rest, factor)


class Line(NamedTuple):
    """Elements that follow one another: where they and their results lie, and how many there are; their moments, scale
    and shift, and operands of posts by the number of the post, each a vector, or the address of the first of many."""

    source: Any
    target: Any
    length: Any
    moments: Values
    scales: Values
    operands: dict[int, Any]


def write(c: Code, kind: NormalizationKind, line: Line) -> None:
    """The results of a line."""
    b = c.b

    def some(offset: Any, inside: Any = None) -> None:
        def read(start: Any, along: bool | None = True) -> Any:
            if not along:
                return start
            return c.some(b.add(start, offset), FLOATS, inside)

        mean, rest, factor = (read(value, kind.last) for value in line.moments)
        value = b.fsub(b.fsub(read(line.source), mean), rest)
        if kind.epsilon != "none":
            value = b.fmul(value, factor)
        if kind.scales is not None:
            value = c.fma(value, *(read(own, kind.scales) for own in line.scales))
        value = posted(c, kind.posts, value, lambda number, along: read(line.operands[number], along))
        put(c, kind.gives, value, b.add(line.target, place_of(c, kind, offset)), inside)

    if kind.short:
        some(long(0), c.first_lanes(line.length))
    else:
        starts(c, line.length, lambda start: some(b.mul(start, long(ITEM))))


def place_of(c: Code, kind: NormalizationKind, offset: Any) -> Any:
    """Where the result is of what lies so many bytes behind the first of the data."""
    return offset if kind.gives == "f32" else c.b.lshr(offset, long(1))


def starts(c: Code, length: Any, body: Callable[[Any], None]) -> None:
    """What `body` does with the number of the first element of each vector of a line, of which the last one has some of
    the one before where the line ends within it."""
    last = c.b.sub(length, long(LANES))
    c.loop(c.blocks(length, long(LANES)), lambda number: body(c.least(c.b.mul(number, long(LANES)), last)))


def operands(
    c: Code, kind: NormalizationKind, at: dict[str, Any], image: Any, line: Any, begin: Any = None
) -> dict[int, Any]:
    """Those of posts at a line, from the byte `begin` of it on."""
    found = {}
    for number, post in enumerate(kind.posts):
        if post.along is not None:
            start = operand_start(c, at, number, dict(zip(AXES, (image, line), strict=True)))
            if not post.along:
                start = c.splat(c.load(start, FLOAT))
            elif begin is not None:
                start = c.b.add(start, begin)
            found[number] = start
    return found
