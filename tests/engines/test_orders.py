"""Works in the order of axes that data have in memory."""

from dataclasses import replace

import numpy as np
import pytest

from irrun.engines.axes import Strided
from irrun.engines.orders import in_order, leading, reordered
from irrun.engines.work import Compiled, Operand, Post, Work


def work_on(shape, order, posts=(), *others):
    """Data of `shape` whose axes lie in memory in `order`."""
    data = np.empty([shape[axis] for axis in order], np.float32).transpose(np.argsort(order))
    inputs = [data, *others]
    operands = [Operand("f32", array.shape, array.strides) for array in inputs]
    return Work("Some-1", {}, operands, [Operand("f32", shape, np.empty(shape, np.float32).strides)], list(posts))


@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((2, 3, 4, 5), [0, 2, 3, 1]),
        ((1, 3, 4, 5), [0, 2, 3, 1]),
        ((2, 3, 1, 5), [0, 2, 3, 1]),
        ((2, 3, 4, 1), [0, 2, 3, 1]),
        ((1, 3, 1, 5), [0, 2, 3, 1]),
        ((1, 3, 4, 1), [0, 2, 3, 1]),
        ((2, 3, 4, 1, 1), [0, 2, 3, 4, 1]),
        ((2, 3), [1, 0]),
        ((4, 1, 5), [1, 2, 0]),
    ],
)
def test_the_order_of_memory_with_axes_of_one_element_beside_their_neighbours(shape, order):
    assert reordered(work_on(shape, order)) == order


def test_what_lies_in_c_order_or_with_gaps_has_no_other_one():
    assert reordered(work_on((2, 3, 4), [0, 1, 2])) is None
    assert reordered(work_on((2, 1, 4), [1, 0, 2])) is None
    assert reordered(work_on((2, 3, 1, 1), [0, 2, 3, 1])) is None
    gaps = np.empty((3, 4), np.float32)[:, ::2].T
    work = Work("Some-1", {}, [Operand("f32", gaps.shape, gaps.strides)], [Operand("f32", (2, 3), (12, 4))])
    assert reordered(work) is None
    slopes = work_on((2, 3, 4), [0, 2, 1], [Post("PReLU-1", {}, 1)], np.empty(3, np.float32))
    assert reordered(slopes) is None


def test_operands_of_posts_and_the_result_are_turned_with_the_data():
    other = np.arange(12, dtype=np.float32).reshape(3, 4, 1)
    work = work_on((2, 3, 4, 5), [0, 2, 3, 1], [Post("Add-1", {}, 1)], other)
    seen = []

    def compile(turned):
        seen.append([operand.shape for operand in (*turned.inputs, *turned.outputs)])

        def bind(arrays, outputs, _):
            seen.append([array.shape for array in (*arrays, *outputs)])
            return lambda: np.add(arrays[0], arrays[1], outputs[0])

        return Compiled(bind)

    compiled = in_order(work, [0, 2, 3, 1], {}, compile)
    layout = compiled.gives[0]
    assert layout == Strided(np.empty((2, 4, 5, 3), np.float32).transpose(0, 3, 1, 2).strides, 4 * 120)
    data = np.random.default_rng(0).normal(size=(2, 4, 5, 3)).astype(np.float32).transpose(0, 3, 1, 2)
    result = np.empty((2, 4, 5, 3), np.float32).transpose(0, 3, 1, 2)
    compiled.bind([data, other], [result], None)()
    np.testing.assert_array_equal(result, data + other)
    assert seen == [[(2, 4, 5, 3), (1, 4, 1, 3), (2, 4, 5, 3)]] * 2
    assert in_order(work, [0, 2, 3, 1], {}, lambda _: None) is None


def pair(name, shape, order, *, other_shape=None, constant=None):
    """An op of data whose axes lie in memory in `order`, and of others in C order."""
    work = work_on(shape, order, (), np.empty(other_shape or shape, np.float32))
    inputs = [replace(own, value=np.empty(own.shape)) if n == constant else own for n, own in enumerate(work.inputs)]
    return Work(name, {}, inputs, work.outputs)


@pytest.mark.parametrize(
    ("work", "number"),
    [
        (pair("Add-1", (4, 5, 6), [0, 2, 1]), 1),
        (pair("Subtract-1", (4, 5, 6), [0, 2, 1]), 0),
        (pair("Add-1", (4, 5, 6), [0, 1, 2]), 0),
        (pair("Add-1", (4, 5, 6, 7), [0, 2, 3, 1]), 0),
        (pair("Add-1", (4, 5, 6, 7), [0, 2, 1, 3]), 1),
        (pair("Add-1", (4, 5, 6), [0, 2, 1], other_shape=(5, 6)), 0),
        (pair("Add-1", (4, 5, 6), [0, 2, 1], constant=1), 0),
        (pair("Add-1", (4, 5, 6), [0, 2, 1], constant=0), 1),
    ],
)
def test_a_result_lies_as_the_input_does_that_is_as_large_and_in_c_order(work, number):
    assert leading(work) == number


def test_nothing_lies_as_what_is_broadcast():
    work = work_on((4, 1), [0, 1], (), np.empty((1, 5), np.float32))
    assert leading(Work("Add-1", {}, work.inputs, [Operand("f32", (4, 5), (20, 4))])) is None
