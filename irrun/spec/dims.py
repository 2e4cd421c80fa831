"""Dimensions: a size is an int, or a `Dim`, which has bounds, an identity and the arithmetic of ints.

A `Dim` is a polynomial over atoms (unknown integers), so two sizes are provably equal when their polynomials are:
`batch * seq * 768` stays divisible by `seq` whatever `seq` is. What a polynomial cannot express (a quotient, a
maximum) becomes an atom that is equal to itself.

Comparisons answer True, False or `UNDECIDED`, which raises `Undecided` where it is used as a condition. A shape rule
written for ints therefore never takes the wrong branch: where it cannot know, inference stops there and says so.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from math import gcd
from typing import Any, Final
from weakref import WeakValueDictionary

from irrun.spec.notation import LONGEST, Namer, expression

_serial = count()
_open_questions = count()

MAX_TERMS = 20
"""Of a polynomial, and of the factors of one term: what grows beyond is an atom, as its arithmetic gets slow."""

_LARGEST = 2**64
"""What no size comes near: factors beyond it make an atom, bounds beyond it are none."""


class Undecided(Exception):
    """A question about an unknown size has no answer before the run."""


class _UndecidedType:
    """The answer to a comparison that only a run can decide."""

    def __bool__(self) -> bool:
        raise Undecided

    def __repr__(self) -> str:
        return "UNDECIDED"


UNDECIDED: Final = _UndecidedType()
Answer = bool | _UndecidedType


class Identity:
    """What equal atoms share."""

    __slots__ = ("__weakref__",)


_identities: WeakValueDictionary[tuple[Any, ...], Identity] = WeakValueDictionary()
"""By tag. Tags nest as deep as a model is long and share their parts: to compare what is in them could take forever."""


class Atom:
    """An unknown integer: a number of its own, or what the tuple `tag` says. Equal tags have one `identity`."""

    __slots__ = ("high", "identity", "low", "name", "tag")

    def __init__(self, tag: Any, low: int | None, high: int | None, name: str | None, identity: Any) -> None:
        self.tag = tag
        self.low = low
        self.high = high
        self.name = name
        self.identity = identity

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Atom) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    @property
    def bounded(self) -> bool:
        """Whether more is known of it than that it is a size."""
        return self.high is not None or (self.low or 0) > 1


Monomial = tuple[Atom, ...]
Terms = dict[Monomial, int]
Bound = int | None


class Dim:
    """An unknown integer: `low` and `high` are its bounds, both included, None where there is none."""

    __slots__ = ("_key", "high", "low", "terms")

    def __init__(self, terms: Terms, low: Bound, high: Bound) -> None:
        self.terms = terms
        self.low = low
        self.high = high
        self._key: frozenset[tuple[Monomial, int]] | None = None

    @property
    def key(self) -> frozenset[tuple[Monomial, int]]:
        """What two equal sizes share."""
        if self._key is None:
            self._key = frozenset(self.terms.items())
        return self._key

    @property
    def _atom(self) -> Atom | None:
        """The only unknown integer in it, where it is nothing else."""
        if len(self.terms) != 1:
            return None
        ((monomial, factor),) = self.terms.items()
        return monomial[0] if factor == 1 and len(monomial) == 1 else None

    def within(self, low: Bound = None, high: Bound = None) -> Size:
        """The same size, with bounds narrowed to `low` and `high`."""
        return _size(self.terms, _tighter(max, self.low, low), _tighter(min, self.high, high))

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        """`2*batch`, or `2*batch (4..16)` where bounds say more; the bounds alone where it has no short expression."""
        atoms: set[Atom] = set()
        text = self.expression(atoms=atoms)
        if text is None:
            return self.bounds
        low, high = _polynomial_bounds(self.terms)
        narrowed = any(atom.bounded for atom in atoms) or _tighter(min, self.high, high) != high
        return f"{text} ({self.bounds})" if narrowed or (self.low or 0) > max(low or 0, 1) else text

    def expression(
        self, name: Namer = operator.attrgetter("name"), atoms: set[Atom] | None = None, longest: int = LONGEST
    ) -> str | None:
        """The size as arithmetic over names, None where that is too long; `atoms` gathers what is named in it."""
        return expression(self.terms, name, set() if atoms is None else atoms, longest)

    @property
    def bounds(self) -> str:
        """`2..8`, `2..` or `?`."""
        low = self.low or 0
        if low <= 0 and self.high is None:
            return "?"
        return f"{low}..{'' if self.high is None else self.high}"

    def __int__(self) -> int:
        raise Undecided

    __index__ = __int__

    def __float__(self) -> float:
        raise Undecided

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __neg__(self) -> Any:
        return self * -1

    def __abs__(self) -> Size:
        return self if self.low is not None and self.low >= 0 else largest(self, -self)

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Size):
            return NotImplemented
        terms = dict(self.terms)
        for monomial, factor in _terms(other).items():
            terms[monomial] = terms.get(monomial, 0) + factor
        (a, b), (c, d) = _bounds(self), _bounds(other)
        bounds = _sum(a, c), _sum(b, d)
        return _size(terms, *bounds) if _handy(terms) else _opaque(("+", _both(self, other)), *bounds)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other if isinstance(other, Size) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other if isinstance(other, Size) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, Size):
            return NotImplemented
        bounds = _product_bounds(_bounds(self), _bounds(other))
        if len(self.terms) * len(_terms(other)) > MAX_TERMS**2:
            return _opaque(("*", _both(self, other)), *bounds)
        terms: Terms = {}
        for left, factor in self.terms.items():
            for right, times in _terms(other).items():
                monomial = tuple(sorted(left + right, key=hash))
                terms[monomial] = terms.get(monomial, 0) + factor * times
        return _size(terms, *bounds) if _handy(terms) else _opaque(("*", _both(self, other)), *bounds)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return _divide(self, other) if isinstance(other, Size) else NotImplemented

    def __rfloordiv__(self, other: Any) -> Any:
        return _divide(other, self) if isinstance(other, Size) else NotImplemented

    def __mod__(self, other: Any) -> Any:
        if not isinstance(other, Size):
            return NotImplemented
        if _exact(self, other) is not None:
            return 0
        if isinstance(other, int) and other > 0:
            whole, rest = _split(self, other)
            if not same(whole, 0):
                return rest % other
            if self.low is not None and self.high is not None and self.low // other == self.high // other:
                return self - self.low // other * other  # it has no multiple within its bounds, or only the lower one
        high = other - 1 if isinstance(other, int) and other > 0 else None
        return _opaque(("%", self.key, key_of(other)), 0 if high is not None else None, high)

    def __rmod__(self, other: Any) -> Any:
        return _opaque(("%", other, self.key), None, None) if isinstance(other, int) else NotImplemented

    def __eq__(self, other: object) -> Answer:  # type: ignore[override]
        if not isinstance(other, Size):
            return False
        atom = self._atom  # a number of its own, as the inputs of a run have them
        if atom is not None and isinstance(other, int) and 0 <= other < _LARGEST and self.low != self.high:
            low, high = _tighter(max, self.low, atom.low), _tighter(min, self.high, atom.high)
            return False if (low is not None and other < low) or (high is not None and other > high) else _undecided()
        if atom is not None and isinstance(other, Dim) and (second := other._atom) is not None:
            if atom == second:
                return True
            mine = _tighter(max, self.low, atom.low), _tighter(min, self.high, atom.high)
            theirs = _tighter(max, other.low, second.low), _tighter(min, other.high, second.high)
            return False if _below(mine, theirs) or _below(theirs, mine) else _undecided()
        difference = self - other
        if isinstance(difference, int):
            return difference == 0
        low, high = _tight(difference)
        apart = (low is not None and low > 0) or (high is not None and high < 0)
        return False if apart or _never_zero(difference) else _undecided()

    def __ne__(self, other: object) -> Answer:  # type: ignore[override]
        return negate(self == other)

    def __lt__(self, other: Size) -> Answer:
        difference = self - other
        if isinstance(difference, int):
            return difference < 0
        low, high = _tight(difference)
        if high is not None and high < 0:
            return True
        return False if low is not None and low >= 0 else _undecided()

    def __le__(self, other: Size) -> Answer:
        return self < other + 1

    def __ge__(self, other: Size) -> Answer:
        return negate(self < other)

    def __gt__(self, other: Size) -> Answer:
        return negate(self <= other)


Size = int | Dim
"""A dimension, or any integer that shape arithmetic carries."""
Shape = tuple[Size, ...]


def fresh(low: Bound = 0, high: Bound = None, name: str | None = None) -> Dim:
    """A new unknown size, equal to itself only.

    >>> batch, length = fresh(name="batch"), fresh(1, 8, "length")
    >>> batch == batch, batch == length, length < 9, length + 1 - length
    (True, UNDECIDED, True, 1)
    """
    serial = next(_serial)
    return Dim({(Atom(serial, low, high, name, serial),): 1}, low, high)


def serial() -> int:
    """A number that gets larger each time, by more than 1 where an unknown size has been made in between."""
    return next(_serial)


def _undecided() -> Answer:
    next(_open_questions)
    return UNDECIDED


def questions() -> int:
    """A number that gets larger each time, by more than 1 where a comparison was `UNDECIDED` in between."""
    return next(_open_questions)


def negate(answer: Answer) -> Answer:
    return UNDECIDED if answer is UNDECIDED else not answer


def every(answers: Iterable[Answer]) -> Answer:
    """True if all answers are, False if any is, else `UNDECIDED`.

    >>> every([True, fresh() == 3]), every([False, fresh() == 3])
    (UNDECIDED, False)
    """
    undecided = False
    for answer in answers:
        if answer is UNDECIDED:
            undecided = True
        elif not answer:
            return False
    return UNDECIDED if undecided else True


def largest(*sizes: Size) -> Size:
    """The maximum, also of unknown sizes.

    >>> n = fresh(5)
    >>> largest(2, 3), largest(2, n) is n
    (3, True)
    """
    return _extreme(max, sizes)


def smallest(*sizes: Size) -> Size:
    """The minimum, also of unknown sizes.

    >>> smallest(2, 3), smallest(2, fresh(5))
    (2, 2)
    """
    return _extreme(min, sizes)


def product(sizes: Iterable[Size]) -> Size:
    """The number of elements of a shape.

    >>> product((2, 3)), product(()), product((2, fresh(name="n"), 3))
    (6, 1, 6*n)
    """
    total: Size = 1
    for size in sizes:
        total = total * size
    return total


def same(a: Size, b: Size) -> bool:
    """Whether two sizes are provably equal."""
    return (a == b) is True


def same_shapes(a: Shape | None, b: Shape | None) -> bool:
    """Whether two shapes are known and provably equal."""
    return a is not None and b is not None and len(a) == len(b) and all(map(same, a, b))


def incompatible(a: Shape | None, b: Shape | None) -> bool:
    """Whether nothing can have both shapes; of one that is not known anything can.

    >>> incompatible((2, 3), (2, 4)), incompatible((2, 3), (2,)), incompatible((2, 3), (fresh(), 3))
    (True, True, False)
    """
    if a is None or b is None:
        return False
    if len(a) != len(b):
        return True
    return bool([x for x, y in zip(a, b, strict=True) if x is not y and (x == y) is False])


def meet(a: Size, b: Size) -> Size:
    """What is known of a size that is both `a` and `b`, which do not contradict each other.

    >>> meet(fresh(2), 3), meet(fresh(2), fresh(0, 8))
    (3, 2..8)
    """
    if isinstance(a, int):
        return a
    return b if isinstance(b, int) else a.within(b.low, b.high)


def divided(size: Size, by: Size) -> Size:
    """The quotient of a size that has to be a multiple of `by`, as a condition has said: so it has tighter bounds.

    >>> divided(12, 4), divided(fresh(9, 13), 5), fresh(9, 13) // 5, divided(12, fresh(1, 5)).low
    (3, 2, 1..2, 3)
    """
    quotient: Size = size // by
    (low, _), (_, most) = _bounds(size), _bounds(by)
    if not isinstance(quotient, Dim) or low is None or most is None:
        return quotient
    least = -(-low // max(most, 1))
    return quotient if quotient.high is not None and quotient.high < least else quotient.within(least)


def broadcast(*sizes: Size) -> Size | None:
    """The size that `sizes` broadcast to by numpy's rule, or None where they provably do not.

    >>> broadcast(1, 4), broadcast(3, 4), broadcast(1, fresh(name="n"))
    (4, None, n)
    """
    result: Size = 1
    for size in sizes:
        if isinstance(size, int) and size == 1:  # which leaves no question whatever the others are
            continue
        if (isinstance(result, int) and result == 1) or same(result, size):
            result = size
        elif isinstance(size, int):
            if isinstance(result, int) or ((result == size) is False and (result == 1) is False):
                return None
            result = size
        elif isinstance(result, int):
            if (size == result) is False and (size == 1) is False:
                return None
        elif (size == result) is False and (size == 1) is False and (result == 1) is False:
            return None
        else:
            positive = min(result.low or 0, size.low or 0) >= 1
            low = max(result.low or 0, size.low or 0) if positive else 0
            high = None if result.high is None or size.high is None else max(result.high, size.high)
            if _cut_of(size, result):
                continue
            if min(result.low or 0, size.low or 0) > 1:  # neither may be 1, so they are equal
                result = meet(size, result)
            elif (size.low or 0) > 1 or _cut_of(result, size):
                result = size
            elif (result.low or 0) <= 1:
                result = _opaque(("broadcast", frozenset((result.key, size.key))), low, high)
    return result


def _cut_of(part: Dim, whole: Dim) -> bool:
    """Whether `part` is min(whole, n) with an n of 1 or more: where the two broadcast, `whole` comes out."""
    ((monomial, factor),) = part.terms.items() if len(part.terms) == 1 else (((), 0),)
    if factor != 1 or len(monomial) != 1:
        return False
    match monomial[0].tag:
        case ("min", frozenset() as keys):
            return whole.key in keys and all(key == whole.key or (isinstance(key, int) and key > 0) for key in keys)
    return False


def broadcast_shapes(*shapes: Sequence[Size]) -> Shape | None:
    """The shape that `shapes` broadcast to by numpy's rule, or None where they provably do not.

    >>> broadcast_shapes((2, 1), (3,)), broadcast_shapes((2,), (3,))
    ((2, 3), None)
    """
    rank = max(map(len, shapes), default=0)
    result: list[Size] = []
    for axis in range(-rank, 0):
        size = broadcast(*(shape[axis] for shape in shapes if len(shape) >= -axis))
        if size is None:
            return None
        result.append(size)
    return tuple(result)


def _terms(size: Size) -> Terms:
    return {(): size} if isinstance(size, int) else size.terms


def _handy(terms: Terms) -> bool:
    """Whether a polynomial is short enough to go on with."""
    return len(terms) <= MAX_TERMS and all(
        len(monomial) <= MAX_TERMS and -_LARGEST < factor < _LARGEST for monomial, factor in terms.items()
    )


def _both(a: Size, b: Size) -> frozenset[Any]:
    """The operands of an operation whose order does not matter."""
    return frozenset((key_of(a), key_of(b)))


def key_of(size: Size) -> Any:
    """What is equal where sizes are provably equal."""
    return size if isinstance(size, int) else size.key


def _bounds(size: Size) -> tuple[Bound, Bound]:
    return (size, size) if isinstance(size, int) else (size.low, size.high)


def _size(terms: Terms, low: Bound, high: Bound) -> Size:
    """A polynomial as a size: an int where only one integer is possible."""
    terms = {monomial: factor for monomial, factor in terms.items() if factor}
    if not any(terms):
        return terms.get((), 0)
    if low is not None and low == high:
        return low
    return Dim(terms, *_clipped(low, high))


def _clipped(low: Bound, high: Bound) -> tuple[Bound, Bound]:
    """Bounds that say no more than these, in numbers that stay short."""
    low = None if low is None or low <= -_LARGEST else min(low, _LARGEST)
    high = None if high is None or high >= _LARGEST else max(high, -_LARGEST)
    return low, high


def _opaque(tag: tuple[Any, ...], low: Bound, high: Bound) -> Size:
    identity = _identities.setdefault(tag, Identity())
    return _size({(Atom(tag, low, high, None, identity),): 1}, low, high)


def _below(one: tuple[Bound, Bound], other: tuple[Bound, Bound]) -> bool:
    """Whether all of one range are less than any of another."""
    return one[1] is not None and other[0] is not None and one[1] < other[0]


def _tighter(choose: Callable[[int, int], int], a: Bound, b: Bound) -> Bound:
    if a is None or b is None:
        return b if a is None else a
    return choose(a, b)


def _sum(a: Bound, b: Bound) -> Bound:
    return None if a is None or b is None else a + b


def _product_bounds(a: tuple[Bound, Bound], b: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    infinity = float("inf")
    a, b = _clipped(*a), _clipped(*b)
    ends = [
        0 if 0 in (x, y) else x * y
        for x in (-infinity if a[0] is None else a[0], infinity if a[1] is None else a[1])
        for y in (-infinity if b[0] is None else b[0], infinity if b[1] is None else b[1])
    ]
    low, high = min(ends), max(ends)
    return None if low == -infinity else int(low), None if high == infinity else int(high)


def _tight(dim: Dim) -> tuple[Bound, Bound]:
    """Bounds of a difference: those of its polynomial and those it carries, whichever are narrower."""
    low, high = _polynomial_bounds(dim.terms)
    return _tighter(max, low, dim.low), _tighter(min, high, dim.high)


def _polynomial_bounds(terms: Terms) -> tuple[Bound, Bound]:
    low: Bound = 0
    high: Bound = 0
    for monomial, factor in terms.items():
        bounds: tuple[Bound, Bound] = (factor, factor)
        for atom in monomial:
            bounds = _product_bounds(bounds, (atom.low, atom.high))
        low, high = _sum(low, bounds[0]), _sum(high, bounds[1])
    return low, high


def _never_zero(dim: Dim) -> bool:
    """Whether no integers make a polynomial 0: `3*batch - 16` is none whatever the batch is."""
    common = gcd(*(factor for monomial, factor in dim.terms.items() if monomial))
    return dim.terms.get((), 0) % common != 0


def _exact(a: Size, b: Size) -> Size | None:
    """a / b where it provably leaves no remainder, else None."""
    if isinstance(b, Dim):
        if len(b.terms) != 1:
            return 1 if same(a, b) else None
        ((divisor, by),) = b.terms.items()
    elif b == 0:
        return None
    else:
        divisor, by = (), b
    terms: Terms = {}
    for monomial, factor in _terms(a).items():
        rest = list(monomial)
        for atom in divisor:
            if atom not in rest:
                return None
            rest.remove(atom)
        if factor % by:
            return None
        terms[tuple(rest)] = factor // by
    low, high = _quotient_bounds(a, b)
    return _size(terms, low, high)


def _quotient_bounds(a: Size, b: Size) -> tuple[Bound, Bound]:
    (low, high), (least, most) = _bounds(a), _bounds(b)
    if least is None or least < 1:
        return None, None
    lower = None if low is None else low // least if low < 0 else 0 if most is None else low // most
    upper = None if high is None else high // least if high >= 0 else -1 if most is None else high // most
    return lower, upper


def _divide(a: Size, b: Size) -> Size:
    exact = _exact(a, b)
    if exact is not None:
        return exact
    if isinstance(b, int):
        if b == 0:
            raise ZeroDivisionError
        low, high = _bounds(a)
        ends = (None if low is None else low // b, None if high is None else high // b)
        whole, rest = _split(a, b) if b > 0 else (0, a)
        if not same(whole, 0):
            quotient = whole + _divide(rest, b)
            return quotient.within(*ends) if isinstance(quotient, Dim) else quotient
        nested = _nested(rest) if b > 0 else None
        if nested:
            size, by = nested
            quotient = _divide(size, by * b)
            return quotient.within(*ends) if isinstance(quotient, Dim) else quotient
        return _opaque(("//", key_of(a), b), *(ends if b > 0 else ends[::-1]))
    return _opaque(("//", key_of(a), b.key), *_quotient_bounds(a, b))


def _split(size: Size, by: int) -> tuple[Size, Size]:
    """`(q, r)` such that `size` is `q * by + r`, with as much as possible in `q`: what r leaves is from 0 to by - 1."""
    terms = _terms(size)
    whole = {monomial: factor // by for monomial, factor in terms.items() if not monomial or factor % by == 0}
    rest = {monomial: factor if monomial else factor % by for monomial, factor in terms.items() if factor % by}
    return _size(whole, *_polynomial_bounds(whole)), _size(rest, *_polynomial_bounds(rest))


def _nested(size: Size) -> tuple[Size, int] | None:
    """`(x, by)` where `size` is `x // by`, also as `y // by + n`: that divided by b is x divided by `by * b`."""
    terms = dict(_terms(size))
    number = terms.pop((), 0)
    ((monomial, factor),) = terms.items() if len(terms) == 1 else (((), 0),)
    if factor != 1 or len(monomial) != 1:
        return None
    match monomial[0].tag:
        case ("//", frozenset() as key, int() as by) if by > 0:
            inner = dict(key)
            return _size(inner, *_polynomial_bounds(inner)) + number * by, by
    return None


def _extreme(choose: Callable[..., int], sizes: Sequence[Size]) -> Size:
    ahead = operator.ge if choose is max else operator.le
    kept: list[Size] = []
    for size in sizes:
        if any(ahead(other, size) is True for other in kept):
            continue
        kept = [*(other for other in kept if ahead(size, other) is not True), size]
    if len(kept) == 1:
        return kept[0]
    lows, highs = zip(*map(_bounds, kept), strict=True)
    if choose is max:
        low = max((low for low in lows if low is not None), default=None)
        high = None if None in highs else max(highs)
    else:
        low = None if None in lows else min(lows)
        high = min((high for high in highs if high is not None), default=None)
    return _opaque((choose.__name__, frozenset(map(key_of, kept))), low, high)
