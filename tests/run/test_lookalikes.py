"""Models that look like what passes rewrite, share or presume, but are something else: engines give what kernels do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import irrun

Given = Sequence[dict[str, Any]]
F32 = np.float32


def i64(*values: int) -> Any:
    return np.array(values, np.int64)


def i32(*values: int) -> Any:
    return np.array(values, np.int32)


def constants_of_equal_bytes() -> tuple[Any, Given]:
    with irrun.build("m", opset=13) as g:
        y = g.Relu(g.Parameter("f32[4,6]", name="x"))
        g.Result(g.Sigmoid(g.Slice(y, i64(-1), i64(0), i64(-1))))
        g.Result(g.Sigmoid(g.Slice(y, i32(-1, -1), i32(0, 0), i32(-1, -1))))
        turned = g.Transpose(y, i64(1, 0))
        for axes in (i64(1), i32(1, 0), i32(0, 1)):
            g.Result(g.Abs(g.Unsqueeze(turned, axes)))
        for lengths in (i64(2, 4), i32(2, 0, 4, 0)):
            for part in g.VariadicSplit(y, np.int64(1), lengths):
                g.Result(g.Abs(part))
    return g.model, [{"x": np.arange(24, dtype=F32).reshape(4, 6) / 24}] * 2


def a_variable_that_a_body_assigns_before() -> tuple[Any, Given]:
    variable = {"variable_id": "v", "variable_type": "f32", "variable_shape": "?,?,4"}
    with irrun.build("m", opset=13) as g:
        x, condition = g.Parameter("f32[1,?,4]", name="x"), g.Parameter("boolean[]", name="c")
        then, other = g.body(), g.body()
        with then as t:
            last = t.Slice(t.Concat(t.ReadValue(x, **variable), x, axis=1), i64(0), i64(1), i64(1), i64(1))
            stored = t.Assign(t.Multiply(last, F32(100)), variable_id="v")
            t.Result(t.ReduceSum(stored, i64(0, 1, 2), keep_dims=False))
        with other as o:
            o.Result(o.ReduceSum(x, i64(0, 1, 2), keep_dims=False))
        read = g.ReadValue(g.Multiply(x, g.If(condition, then_body=then, else_body=other)), **variable)
        g.Result(g.Assign(g.Concat(read, x, axis=1), variable_id="v"))
    ones = np.ones((1, 1, 4), F32)
    return g.model, [{"x": ones, "c": np.bool_(given)} for given in (False, False, True, False, True)]


def axes_to_squeeze_that_are_larger() -> tuple[Any, Given]:
    with irrun.build("m", opset=13) as g:
        a = g.Parameter("f32[3,?]", name="a")
        squeezed = g.Squeeze(a, i64(1))
        g.Result(g.Add(squeezed, np.ones(3, F32)))
        g.Result(g.Maximum(g.Abs(squeezed), g.Negative(squeezed)))
    return g.model, [{"a": np.arange(3 * n, dtype=F32).reshape(3, n)} for n in (3, 1, 3, 1, 1, 3, 3)]


def axes_to_squeeze_that_are_larger_later() -> tuple[Any, Given]:
    with irrun.build("m", opset=13) as g:
        squeezed = g.Squeeze(g.Relu(g.Parameter("f32[?,3]", name="a")), i64(0))
        g.Result(g.Sqrt(squeezed))
        g.Result(g.ReduceMax(squeezed, i64(-1)))
    return g.model, [{"a": np.arange(3 * n, dtype=F32).reshape(n, 3)} for n in (1, 2, 1, 2, 2, 3, 1)]


def axes_to_squeeze_that_the_data_make_larger() -> tuple[Any, Given]:
    with irrun.build("m", opset=13) as g:
        places = g.NonZero(g.Parameter("i64[3]", name="a"))
        squeezed = g.Squeeze(g.Reshape(places, i64(-1, 1), special_zero=False), i64(0))
        g.Result(g.Convert(squeezed, destination_type="f32"))
    return g.model, [{"a": i64(*a)} for a in ([0, 1, 0], [1, 1, 0], [0, 1, 0], [1, 1, 0], [0, 0, 0], [1, 1, 1])]


def normalizations_with_axes_of_their_own() -> tuple[Any, Given]:
    with irrun.build("m", opset=13) as g:
        x = g.Parameter("f32[2,?]", name="x")
        for eps, one in ((np.full((1, 1, 1), 1e-5, F32), F32(1)), (F32(1e-5), np.ones((1, 1, 1), F32))):
            mean = g.ReduceMean(g.Multiply(x, x), i64(-1), keep_dims=True)
            g.Result(g.Multiply(x, g.Divide(one, g.Sqrt(g.Add(mean, eps)))))
        mean = g.ReduceMean(g.Power(x, np.full((1, 1, 1), 2, F32)), i64(-1), keep_dims=True)
        g.Result(g.Multiply(x, g.Divide(F32(1), g.Sqrt(g.Add(mean, F32(1e-5))))))
    rng = np.random.default_rng(0)
    return g.model, [{"x": rng.standard_normal((2, n), F32)} for n in (3, 5, 3, 1)]


def zero_points_of_the_other_type() -> tuple[Any, Given]:
    with irrun.build("m", opset=13) as g:
        codes, zero = g.Parameter("i8[1,30000]", name="codes"), g.Parameter("u8[]", name="zero")
        given = (g.Convert(each, destination_type="i32") for each in (codes, zero))
        product = g.MatMul(g.Subtract(*given), np.full((30000, 1), -255, np.int32))
        g.Result(g.Convert(product, destination_type="f32"))
    return g.model, [{"codes": np.full((1, 30000), n, np.int8), "zero": np.uint8(255)} for n in (-128, -1, 127)]


def branches_of_what_was_squeezed() -> tuple[Any, Given]:
    """Branches that are given a row that may be a matrix, a shape to take, and a number of elements to make."""
    with irrun.build("m", opset=13) as g:
        a, condition = g.Parameter("f32[3,?]", name="a"), g.Parameter("boolean[]", name="c")
        row, shape = g.Squeeze(a, i64(1)), g.ShapeOf(a)
        count = g.Squeeze(g.Gather(shape, i64(1), np.int64(0)), i64(0))
        then, other = g.body(), g.body()
        with then as t:
            made = t.Range(np.int64(0), count, np.int64(1), output_type="f32")
            t.Result(t.Add(t.Reshape(t.Add(row, t.Reshape(a, i64(3, -1))), i64(-1)), F32(1)))
            t.Result(t.Broadcast(t.ReduceSum(made, i64(0), keep_dims=False), shape))
        with other as o:
            o.Result(o.Squeeze(o.Transpose(a, i64(1, 0)), i64(0)))
            o.Result(o.Reshape(o.Relu(row), shape))
        for found in g.If(condition, then_body=then, else_body=other):
            g.Result(g.Maximum(g.Abs(found), g.Negative(found)))
    runs = [(n, c) for c in (True, False) for n in (1, 3, 1, 3, 3)]
    return g.model, [{"a": np.arange(3 * n, dtype=F32).reshape(3, n), "c": np.bool_(c)} for n, c in runs]


def bodies_that_read_only_what_was_squeezed() -> tuple[Any, Given]:
    """Bodies whose parameters would all have one shape if a row were one, which may be a matrix: of an If, and of a
    Loop, where a sum is handed on."""
    with irrun.build("m", opset=13) as g:
        a, condition = g.Parameter("f32[3,?]", name="a"), g.Parameter("boolean[]", name="c")
        row = g.Squeeze(a, i64(1))
        then, other, again = g.body(), g.body(), g.body()
        with then as t:
            t.Result(t.Add(row, np.ones(3, F32)))
        with other as o:
            o.Result(o.Relu(row))
        with again as r:
            before = r.input(g.Multiply(row, F32(2)))
            after = r.Add(before, r.input(row))
            r.carry(before, after)
            r.Result(after)
            r.condition(r.Constant(np.bool_(True)))
        g.Result(g.If(condition, then_body=then, else_body=other))
        g.Result(g.Loop(np.int64(3), np.bool_(True), body=again))
    runs = [(n, c) for c in (True, False) for n in (1, 3, 1, 3, 3)]
    return g.model, [{"a": np.arange(3 * n, dtype=F32).reshape(3, n), "c": np.bool_(c)} for n, c in runs]


@pytest.mark.parametrize("engine", ["numpy", "onednn", "auto", "check"])
@pytest.mark.parametrize(
    "made",
    [
        constants_of_equal_bytes,
        a_variable_that_a_body_assigns_before,
        axes_to_squeeze_that_are_larger,
        axes_to_squeeze_that_are_larger_later,
        axes_to_squeeze_that_the_data_make_larger,
        normalizations_with_axes_of_their_own,
        zero_points_of_the_other_type,
        branches_of_what_was_squeezed,
        bodies_that_read_only_what_was_squeezed,
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_looks_alike(made: Callable[[], tuple[Any, Given]], engine: str) -> None:
    model, runs = made()
    reference, executor = irrun.GraphExecutor(model, engine="reference"), irrun.GraphExecutor(model, engine=engine)
    for given in runs:
        expected, found = reference.run(given), executor.run(given)
        for right, result in zip(expected.values(), found.values(), strict=True):
            assert result.shape == right.shape
            np.testing.assert_allclose(result, right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "auto", "check"])
@pytest.mark.parametrize("inner", [False, True])
def test_what_follows_a_supposed_rank_is_checked_when_a_run_finds_another(inner: bool, engine: str) -> None:
    with irrun.build("m", opset=13) as g:
        a = g.Parameter("f32[?,3]", name="a")
        if inner:
            then, other = g.body(), g.body()
            with then as t:
                t.Result(t.Squeeze(a, i64(0)))
            with other as o:
                o.Result(o.ReduceSum(a, i64(0), keep_dims=False))
            squeezed = g.If(g.Parameter("boolean[]", name="condition"), then_body=then, else_body=other)
        else:
            squeezed = g.Squeeze(a, i64(0))
        g.Result(g.Concat(g.Abs(squeezed), np.ones(2, F32), axis=0))
    executor = irrun.GraphExecutor(g.model, engine=engine)
    for rows in (1, 2, 1, 2, 2):
        given = {"a": np.full((rows, 3), -4, F32)} | ({"condition": np.array(True)} if inner else {})
        if rows == 1:
            assert [array.tolist() for array in executor.run(given).values()] == [[4, 4, 4, 1, 1]]
        else:
            with pytest.raises(irrun.ExecutionError, match=r"Concat-1 C2: `inputs\[1\]` has rank 1, but .* rank 2"):
                executor.run(given)
