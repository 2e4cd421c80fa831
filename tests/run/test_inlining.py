"""Branches whose condition is known before the run are a part of the program around them."""

import numpy as np
import pytest

import irrun
from run.models import ADD, anything, branch, i64, model, saved

F32 = np.float32
ENGINES = pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "check"])


def body(function, dims=(-1,)):
    inner = model()
    return inner, function(inner, anything(inner, "f4", dims))


def added(number):
    return lambda b, x: b.one("Add-1", x, b.constant(F32(number)), **ADD)


def long(b, x):
    """Whether x has more than 3 elements, which is known when its shape is."""
    count = b.one("ReduceProd-1", b.one("ShapeOf-3", x, output_type="i64"), i64(b, [0]), keep_dims=False)
    return b.one("Greater-1", count, i64(b, 3), **ADD)


def names(executor):
    return [sorted(i.op.name for i in kept.program.instructions) for kept in executor._whole.preparation._kept.values()]


@ENGINES
def test_a_condition_that_shapes_decide(engine, tmp_path):
    b = model()
    x = anything(b, "f4", (-1,))
    y = branch(b, long(b, x), [body(added(1)), body(lambda b, x: b.one("Exp-1", x))], x)
    b.result(b.one("Multiply-1", y, x, **ADD))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for count in (2, 5, 3, 4, 2):
        data = np.arange(count, dtype=F32)
        (result,) = ours.run([data]).values()
        np.testing.assert_allclose(result, data * (data + 1 if count > 3 else np.exp(data)), rtol=1e-5)
    assert not any("If-8" in found for found in names(ours))
    paths = set()
    ours.run([np.ones(5, F32)], observer=lambda event: paths.add(event.path))
    assert len(paths) == 2  # of the model, and of the body


@ENGINES
def test_branches_in_branches(engine, tmp_path):
    """x + 1 + 10 for more than 3 elements, else x as it is; what a parameter is, is a result, too."""

    def inside(b, x):
        y = b.one("Add-1", x, b.constant(F32(1)), **ADD)
        return branch(b, long(b, y), [body(added(10)), body(lambda b, x: b.one("Exp-1", x))], y)

    b = model()
    x = anything(b, "f4", (-1,))
    same = model()
    bodies = [body(inside), (same, anything(same, "f4", (-1,)))]
    b.result(branch(b, long(b, x), bodies, x))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for _ in range(2):
        assert [a.tolist() for a in ours.run([F32([0, 1, 2, 3])]).values()] == [[11, 12, 13, 14]]
        data = F32([5, 6])
        (result,) = ours.run([data]).values()
        assert result.tolist() == [5, 6]
        assert not np.shares_memory(result, data)


@ENGINES
def test_a_condition_that_only_the_data_tell(engine, tmp_path):
    b = model()
    condition, x = anything(b, "?", ()), anything(b, "f4", (2,))
    b.result(branch(b, condition, [body(added(1), (2,)), body(added(2), (2,))], x))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for flag in (True, False, True):
        assert [a.tolist() for a in ours.run([np.bool_(flag), F32([0, 1])]).values()] == [[1, 2] if flag else [2, 3]]
    if engine != "reference":
        assert names(ours) == [["If-8"]]


@ENGINES
def test_a_constraint_that_the_chosen_branch_breaks(engine, tmp_path):
    b = model()
    x = anything(b, "f4", (-1,))
    three = body(lambda b, x: b.one("Add-1", x, b.constant(F32([1, 2, 3])), **ADD))
    b.result(branch(b, long(b, x), [three, body(added(1))], x))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    assert [a.tolist() for a in ours.run([F32([1, 2])]).values()] == [[2, 3]]
    with pytest.raises(irrun.ExecutionError, match=r"E401.*Add-1 C1"):
        ours.run([np.zeros(4, F32)])
