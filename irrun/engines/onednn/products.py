"""Matrix products: of rows with constant weights laid out once, and of batches of matrices by their strides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from math import prod

from irrun.engines.axes import Sizes, broadcast_strides, dense_strides, matrix_of, merged
from irrun.engines.onednn.library import BIAS, FEW_CODES, FEW_PRODUCTS, SRC, WEIGHTS, Descriptor, Library, Primitive
from irrun.engines.onednn.posts import bias, bias_layout, bias_values, chain
from irrun.engines.onednn.sums import Sums
from irrun.engines.onednn.tensors import compiled, itemsize, packed, spread_layout, with_others
from irrun.engines.work import LONGEST_SUM, Compiled, Operand, Work
from irrun.records import NamedTuple
from irrun.spec.op import Array

ALONE, ALONE_OF_WEIGHTS = 5, 12
"""Times `FEW_PRODUCTS` that one thread computes alone. Where matrices with weights are no larger, next to nothing else
keeps the other threads awake."""

FEW_OF_WEIGHTS = FEW_PRODUCTS * ALONE_OF_WEIGHTS
"""Multiplications of f32 by weights that one thread does alone."""

MOST_ALONE = 1 << 20
"""Bytes of weights that it does so with: memory gives two threads more of them in the same time."""

WRITTEN_LATE = "gemm"
"""How the ways are called whose code oneDNN writes for all sizes at the first call, which takes 30 ms: in a single run
others have long been done by then. Without AVX-512 it has no other way for most products."""

STEP, GAP = 512, 64
"""Bytes of an eighth of a page, and of a line of the processor's caches."""


class Product(NamedTuple):
    """What a product is whatever its weights hold: the primitive, which of its arguments are which operands, how the
    matrix lies, and what compiles the primitive that takes weights as they are."""

    primitive: Primitive
    inputs: Mapping[int, int]
    matrix: Descriptor
    plain: Callable[[], Primitive | None]
    sums: Sums | None = None
    constants: Mapping[int, Callable[[], Array]] = field(default_factory=dict)

    @property
    def columns(self) -> int:
        return self.matrix.shape[-1]

    def compiled(self, library: Library, work: Work) -> Compiled:
        """The work; a constant is laid out anew unless there is one run, and is read by nobody else."""
        _, right = work.required(2)
        if right.value is None:
            return compiled(work, self.primitive, {**self.inputs, WEIGHTS: 1})
        plain = self.plain() if library.once else None
        lying = plain is not None and plain.implementation == self.primitive.implementation  # others may be much slower
        primitive = plain if plain is not None and lying else self.primitive
        weights = {WEIGHTS: self._weights(library, right.value, lying=lying)}
        found = compiled(work, primitive, self.inputs, constants=weights, taken=(1,))
        found.again = partial(self._again, library, replace(found), lying)  # whoever is given it may change its `bind`
        return found

    def _again(self, library: Library, found: Compiled, lying: bool, work: Work) -> Compiled:
        """The same for other weights."""
        _, right = work.required(2)
        assert right.value is not None
        return with_others(found, work, {WEIGHTS: self._weights(library, right.value, lying=lying)})

    def _weights(self, library: Library, value: Array, *, lying: bool) -> Callable[[], Array]:
        """What gives the weights, as they lie or as the primitive wants them."""
        if lying:
            return lambda: value
        return packed(library, value, self.matrix, self.primitive.layout(WEIGHTS)).array


def compile(library: Library, work: Work) -> Compiled | None:
    """MatMul-1 with all its broadcasting and transposition."""
    product = library.works.recall("product", work, partial(product_of, library))
    return None if product is None else product.compiled(library, work)


def product_of(library: Library, work: Work, sums: Sums | None = None) -> Product | None:
    """The product of two operands of any types; `sums` says what is made of those of codes."""
    left, right = work.required(2)
    if left.layout is not None or right.layout is not None:
        return None
    result = work.outputs[0]
    a = matrix_of(left, transposed=work.attrs["transpose_a"], row=True)
    if a.shape[-1] > LONGEST_SUM:
        return None
    b = matrix_of(right, transposed=work.attrs["transpose_b"], row=False)
    rows, inner, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    # the axes of the result as the product has them: batches and rows, then columns
    batches = result.shape[: len(result.shape) - (len(left.shape) > 1) - (len(right.shape) > 1)]
    full = (*batches, rows, columns)
    written = Operand(result.type, full, _steps(result, left, right))

    others = [operand for post in work.posts if (operand := work.other(post)) is not None]
    if len(full) != len(result.shape) and others:
        return None
    read = Operand(left.type, (*a.shape[:-1], 1), (*a.strides[:-1], 0))
    columns_of = Operand(right.type, (*b.shape[:-2], 1, 1), (*b.strides[:-2], 0, 0))
    steps = [broadcast_strides(operand, (*full[:-1], 1))[:-1] for operand in (read, columns_of, written, *others)]
    sizes, found = merged(full[:-1], steps)
    if not sizes or found[1][-1] != 0:  # one row in each product
        sizes, found = (*sizes, 1), [(*own, 0) for own in found]
    if len(sizes) == 2:  # oneDNN knows heads behind rows by two axes more
        sizes, found = (1, *sizes), [(0, *own) for own in found]
    steady = (sizes[-1] > 1 and found[0][-1] == 0) or (inner > 1 and 0 in (a.strides[-1], b.strides[-2]))
    if steady or (columns > 1 and b.strides[-1] == 0):
        return None
    shape = (*sizes, columns)
    source = spread_layout(library, (*sizes, inner), (*found[0], a.strides[-1]), left.type)
    target = spread_layout(library, shape, (*found[2], itemsize(result)), result.type)
    matrix = spread_layout(library, (*sizes[:-1], inner, columns), (*found[1][:-1], *b.strides[-2:]), right.type)
    if source is None or target is None or matrix is None:
        return None

    def place(operand: Operand) -> Descriptor | None:
        number = next((number for number, other in enumerate(others) if other is operand), None)
        if number is None or operand.layout is not None:  # numbers for channels, which may be no axis of their own here
            return None
        return spread_layout(library, shape, (*found[3 + number], _last(operand, columns)), operand.type)

    added = bias(work, -1) if len(full) == len(result.shape) else None
    posts = chain(work.posts[added is not None :], work, place)
    if posts is None or (posts.constants and sums is None):
        return None
    shift = bias_layout(library, work, added, (*(1,) * len(sizes), columns), left.type)
    if sums is not None:
        sums, posts = sums._replace(bias=bias_values(work, added)).with_posts(posts)
        shift = None if sums.bias is None else library.dense((*(1,) * len(sizes), columns))
    few = (FEW_PRODUCTS if sums is None else FEW_CODES) * (ALONE if right.value is None else ALONE_OF_WEIGHTS)
    alone = right.value is None or prod(right.shape) * itemsize(right) <= MOST_ALONE

    def primitive_of(weights: Descriptor, quantities: Sequence[tuple[int, int]] = ()) -> Primitive | None:
        small = alone and prod(shape) * inner < few  # models with such products leave the other threads asleep
        operands = (source, weights, shift, target)
        return library.primitive("matmul", *operands, posts=posts.posts, small=small, quantities=quantities)

    wanted = matrix if right.value is None else library.any(matrix.shape, matrix.type)
    primitive = primitive_of(wanted, () if sums is None else sums.masks(1 << len(sizes)))
    if primitive is None:
        return None
    if library.once and library.wide and primitive.implementation.startswith(WRITTEN_LATE):
        return None
    if right.value is not None and (apart := _apart(library, primitive.layout(WEIGHTS))) is not None:
        other = primitive_of(apart)
        primitive = other if other is not None and other.implementation == primitive.implementation else primitive
    inputs = {SRC: 0, **posts.inputs}
    if added is not None and sums is None:
        inputs[BIAS] = added
    return Product(primitive, inputs, matrix, partial(primitive_of, matrix), sums, posts.constants)


def _apart(library: Library, layout: Descriptor) -> Descriptor | None:
    """A layout of rows in C order whose steps are no whole eighths of pages, as the processor's caches have few places
    for what lies so many apart; None where they are none, or oneDNN has a layout of its own."""
    *others, columns = layout.shape
    steps = dense_strides(layout.shape, layout.itemsize)
    if layout.strides != steps or steps[-2] % STEP:
        return None
    return library.strided(layout.shape, dense_strides((*others, columns + GAP // layout.itemsize), layout.itemsize))


def _steps(result: Operand, left: Operand, right: Operand) -> Sizes:
    """The strides of the result with an axis for rows and one for columns, also where it has none."""
    steps = result.strides
    if len(right.shape) == 1:
        steps = (*steps, 0)
    if len(left.shape) == 1:
        steps = (*steps[:-1], 0, steps[-1]) if steps else (0, 0)
    return steps


def _last(operand: Operand, columns: int) -> int:
    return operand.strides[-1] if operand.shape and operand.shape[-1] == columns > 1 else 0


COMPILERS = {"MatMul-1": compile}
