"""Lines over the roots of the means of their squares, in one step where six ops say so, and only there."""

import numpy as np
import pytest

import irrun
from run.models import ADD, anything, i64, model, saved

F32 = np.float32
ENGINES = pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "check"])
X = np.random.default_rng(20261122).normal(0, 3, (2, 5, 24)).astype(F32)
NAME = "RootMeanSquare-0"


def ops(executor):
    kept = [kept.program for kept in executor._whole.preparation._kept.values()]
    return [[part.op.name for instruction in p.instructions for part in instruction.parts] for p in kept]


def normalized(b, x, **changes):
    """x / sqrt(mean(x * x) + 0.01) along the last axis, or what `changes` make of that."""
    wanted = {"exponent": F32(2), "axis": i64(b, [-1]), "reduce": "ReduceMean-1", "one": F32(1), "eps": F32(0.01)}
    wanted |= {"way": "root"} | changes
    if wanted["exponent"] is None:
        squares = b.one("Multiply-1", x, x, **ADD)
    else:
        squares = b.one("Power-1", x, b.constant(wanted["exponent"]), **ADD)
    mean = b.one(wanted["reduce"], squares, wanted["axis"], keep_dims=True)
    if wanted["way"] == "read":
        b.result(mean)
    mean = b.one("Add-1", b.constant(wanted["eps"]), mean, **ADD)
    if wanted["way"] == "power":
        root = b.one("Power-1", mean, b.constant(F32(-0.5)), **ADD)
    else:
        root = b.one("Divide-1", b.constant(wanted["one"]), b.one("Sqrt-1", mean), m_pythondiv=True, **ADD)
    return b.one("Multiply-1", root, wanted.get("times", x), **ADD)


def expected(x):
    wide = x.astype(np.float64)
    return wide / np.sqrt((wide * wide).mean(-1, keepdims=True) + 0.01)


@ENGINES
@pytest.mark.parametrize(
    "changes", [{}, {"exponent": None}, {"way": "power"}, {"exponent": F32([[[2]]]), "eps": F32([0.01])}]
)
def test_six_ops_are_one(engine, changes, tmp_path):
    """With weights behind them, which are multiplied on the way."""
    b = model()
    weights = np.linspace(-2, 2, 24, dtype=F32)
    y = normalized(b, anything(b, "f4", X.shape), **changes)
    b.result(b.one("Multiply-1", b.constant(weights), y, **ADD))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    (result,) = ours.run([X]).values()
    np.testing.assert_allclose(result, expected(X) * weights, rtol=1e-5, atol=1e-6)
    assert all(names == [NAME, "Multiply-1"] for names in ops(ours))
    assert engine == "reference" or ops(ours)


def test_six_ops_are_one_where_the_axes_are_the_first_layer_of_the_file(tmp_path):
    b = model()
    axes = i64(b, [-1])
    b.result(normalized(b, anything(b, "f4", X.shape), axis=axes))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine="numpy")
    (result,) = ours.run([X]).values()
    np.testing.assert_allclose(result, expected(X), rtol=1e-5, atol=1e-6)
    assert ops(ours) == [[NAME]]


@ENGINES
def test_what_no_number_is_comes_out_as_ever(engine, tmp_path):
    b = model()
    b.result(normalized(b, anything(b, "f4", X.shape)))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    x = X.copy()
    x[0, 0, 3], x[0, 1, 4], x[0, 2], x[1, 0, 0] = np.inf, np.nan, 0, 3e30
    (result,) = ours.run([x]).values()
    assert np.isnan(result[0, 0, 3])
    assert (result[0, 0, :3] == 0).all()
    assert np.isnan(result[0, 1]).all()
    assert (result[0, 2] == 0).all()
    assert (result[1, 0] == 0).all()  # the square is infinite
    np.testing.assert_allclose(result[1, 1:], expected(x[1, 1:]), rtol=1e-5)


@ENGINES
def test_lines_without_elements(engine, tmp_path):
    b = model()
    b.result(normalized(b, anything(b, "f4", (-1, -1))))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for shape in ((2, 0), (0, 3), (2, 0)):
        (result,) = ours.run([np.zeros(shape, F32)]).values()
        assert result.shape == shape


@pytest.mark.parametrize(
    "changes",
    [
        {"exponent": F32(3)},
        {"reduce": "ReduceSum-1"},
        {"reduce": "ReduceMax-1"},
        {"one": F32(2)},
        {"eps": np.linspace(0.1, 1, 5, dtype=F32).reshape(5, 1)},
        {"way": "read"},
        {"axis": [1]},
        {"axis": [1, 2]},
        {"times": 2 * X},
    ],
)
def test_other_ops_stay_what_they_are(changes, tmp_path):
    b = model()
    x = anything(b, "f4", X.shape)
    given = {**changes}
    if "axis" in given:
        given["axis"] = i64(b, given["axis"])
    if "times" in given:
        given["times"] = b.constant(given["times"])
    b.result(normalized(b, x, **given))
    path = saved(b, tmp_path)
    ours, plain = irrun.GraphExecutor(path, engine="numpy"), irrun.GraphExecutor(path, engine="reference")
    for result, wanted in zip(ours.run([X]).values(), plain.run([X]).values(), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)
    assert all(NAME not in names for names in ops(ours))


def test_lengths_that_come_one_after_the_other(tmp_path):
    b = model()
    b.result(normalized(b, anything(b, "f4", (-1, -1, 24))))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine="numpy")
    for length in (5, 3, 4, 2, 1, 5):
        (result,) = ours.run([X[:, :length]]).values()
        np.testing.assert_allclose(result, expected(X[:, :length]), rtol=1e-5)
    assert all(names == [NAME] for names in ops(ours))


def test_all_six_are_there_where_somebody_watches(tmp_path):
    b = model()
    b.result(normalized(b, anything(b, "f4", X.shape)))
    seen = []
    irrun.GraphExecutor(saved(b, tmp_path)).run([X], observer=lambda event: seen.append(event.layer.type))
    assert [type for type in seen if type not in ("Parameter", "Result", "Const")] == [
        *("Power", "ReduceMean", "Add", "Sqrt", "Divide", "Multiply")
    ]
