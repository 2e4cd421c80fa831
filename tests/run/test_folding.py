"""Folding: what is constant for some shapes is computed for these, and answers of rules are those to what was asked."""

from unittest.mock import patch

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.check import infer
from run.models import ADD, PLAIN, anything, branch, i64, model, saved

ENGINES = pytest.mark.parametrize("engine", ["reference", "numpy", "onednn"])
F32 = np.float32


def run(ours, *inputs):
    return [array.tolist() for array in ours.run(list(inputs)).values()]


def program(ours):
    """The program of the run before."""
    return next(reversed(ours._whole.preparation._kept.values())).program


@ENGINES
def test_a_shape_that_is_a_result(engine, tmp_path):
    b = model()
    b.result(b.one("ShapeOf-3", anything(b, "f4", (-1, 3)), output_type="i64"))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for rows in (2, 5, 7, 2, 0, 5):
        assert run(ours, np.zeros((rows, 3), F32)) == [[rows, 3]]
    if engine != "reference":
        assert not program(ours).instructions


@ENGINES
def test_a_size_that_others_are_computed_from(engine, tmp_path):
    """x [n, 2] is made [2 * n], and a tensor of n + 1 sevens."""
    b = model()
    x = anything(b, "f4", (-1, 2))
    shape = b.one("ShapeOf-3", x, output_type="i64")
    count = b.one("Gather-8", shape, i64(b, [0]), i64(b, 0), batch_dims=0)
    b.result(b.one("Reshape-1", x, b.one("Multiply-1", count, i64(b, [2]), **ADD), special_zero=False))
    more = b.one("Add-1", count, i64(b, [1]), **ADD)
    b.result(b.one("Broadcast-3", b.constant(F32(7)), more, mode="numpy"))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for rows in (1, 3, 2, 3, 1):
        numbers = np.arange(2 * rows, dtype=F32).reshape(rows, 2)
        assert run(ours, numbers) == [[*range(2 * rows)], [7] * (rows + 1)]
    if engine != "reference":
        made = program(ours)
        assert [i.op.type for i in made.instructions] == ["Reshape"]
        assert made.results[1] in made.constants


@ENGINES
def test_data_that_break_a_rule_are_told_where_nothing_is_left_of_what_comes_of_them(engine, tmp_path):
    """Updates of x [3] at some places, of which none are taken."""
    b = model()
    x, places = anything(b, "f4", (3,)), anything(b, "i4", (2,))
    updated = b.one("ScatterElementsUpdate-3", x, places, b.constant(F32([7, 8])), i64(b, 0))
    none = b.one("Slice-8", updated, *(i64(b, [n]) for n in (0, 0, 1)))
    b.result(b.one("Abs-1", none))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    assert run(ours, F32([1, 2, 3]), np.int32([2, 0])) == [[]]
    with pytest.raises(irrun.ExecutionError, match="E401"):
        ours.run([F32([1, 2, 3]), np.int32([3, 0])])


@ENGINES
def test_a_folded_constant_is_the_callers_own(engine, tmp_path):
    b = model()
    b.result(b.one("ShapeOf-3", anything(b, "f4", (-1, 3)), output_type="i64"))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    (shape,) = ours.run([np.zeros((2, 3), F32)]).values()
    shape[...] = 9
    assert run(ours, np.zeros((2, 3), F32)) == [[2, 3]]


@ENGINES
@pytest.mark.parametrize("count", [2, 70])
def test_constants_of_one_shape_and_different_values(engine, count, tmp_path):
    """Tile of x [n] by 1, 2 and 3, and Gather of it by `count` indices: answers may not be taken for each other's."""
    b = model()
    x = anything(b, "f4", (-1,))
    for repeats in (1, 2, 3):
        b.result(b.one("Tile-1", x, i64(b, [repeats])))
    for first in (0, 1):
        indices = i64(b, [(first + n) % 2 for n in range(count)])
        b.result(b.one("Gather-8", x, indices, i64(b, 0), batch_dims=0))
    for begin in (0, 1):
        b.result(b.one("Slice-8", x, i64(b, [begin]), i64(b, [2]), i64(b, [1])))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for given in ([1, 2], [1, 2, 0], [3, 4], [3, 4, 5]):
        a, c, *_ = given
        assert run(ours, F32(given)) == [
            *(given * repeats for repeats in (1, 2, 3)),
            ([a, c] * count)[:count],
            ([c, a] * count)[:count],
            [a, c],
            [c],
        ]


@ENGINES
def test_weights_of_one_shape_and_different_values(engine, tmp_path):
    """Larger than what is compared by value."""
    b = model()
    x = anything(b, "f4", (-1, 16))
    for factor in (1, 2, 3):
        b.result(b.one("MatMul-1", x, b.constant(factor * np.ones((16, 8), F32)), **PLAIN))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for rows in (1, 2, 1, 3):
        found = run(ours, np.ones((rows, 16), F32))
        assert found == [[[16 * factor] * 8] * rows for factor in (1, 2, 3)]


@ENGINES
def test_large_tables_of_places_that_differ_in_one(engine, tmp_path):
    """ScatterElements with 100 constant indices, of which the last one differs."""
    b = model()
    x = b.parameter([np.zeros(102, F32)], [0])
    updates = b.constant(np.ones(100, F32))
    for last in (99, 100, 101):
        indices = i64(b, [*range(99), last])
        b.result(b.one("ScatterElementsUpdate-3", x, indices, updates, i64(b, 0)))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for size in (102, 103, 102):
        for last, found in zip((99, 100, 101), run(ours, np.zeros(size, F32)), strict=True):
            assert [n for n, value in enumerate(found) if value] == [*range(99), last]


@ENGINES
def test_shapes_for_which_a_constant_index_lies_outside(engine, tmp_path):
    """Valid for one element or more, four times each; that it was asked for none before changes nothing."""
    b = model()
    four = b.one("Tile-1", anything(b, "f4", (-1,)), i64(b, [4]))
    b.result(b.one("ScatterElementsUpdate-3", four, i64(b, [3]), b.constant(F32([1])), i64(b, 0)))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for _ in range(2):
        assert run(ours, np.zeros(1, F32)) == [[0, 0, 0, 1]]
        with pytest.raises(irrun.ExecutionError, match="ScatterElementsUpdate-3 C"):
            ours.run([np.zeros(0, F32)])


@ENGINES
def test_what_is_too_large_to_be_kept_is_computed_in_the_run(engine, tmp_path, monkeypatch):
    monkeypatch.setattr("irrun.run.passes.folding.MAX_FOLDED", 1 << 16)
    b = model()
    for count in (4, 40_000):
        wide = b.one("Broadcast-3", b.constant(F32([2])), i64(b, [count]), mode="numpy")
        b.result(b.one("Exp-1", b.one("Negative-1", b.one("Add-1", wide, wide, **ADD))))
    b.result(anything(b, "f4", (1,)))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    made = ours._whole.preparation.general.program
    assert made.results[0] in made.constants
    assert made.results[1] not in made.constants
    few, many, _ = ours.run([np.zeros(1, F32)]).values()
    np.testing.assert_allclose(few, np.full(4, 0.01831564), 1e-5)
    np.testing.assert_allclose(many, np.full(40_000, 0.01831564), 1e-5)


def test_a_constant_that_breaks_a_rule_is_told_by_the_run(tmp_path):
    """An index outside of its tensor, both of which are constant only for some shapes."""
    b = model()
    shape = b.one("ShapeOf-3", anything(b, "f4", (-1, 3)), output_type="i64")
    rows = b.one("Gather-8", shape, i64(b, [0]), i64(b, 0), batch_dims=0)
    y = b.one("GatherElements-6", b.constant(F32([1, 2, 3])), rows, axis=0)
    b.graph.layers[y.ref[0]].label = "entry"
    b.result(y)
    ours = irrun.GraphExecutor(saved(b, tmp_path))
    for _ in range(2):
        assert run(ours, np.zeros((2, 3), F32)) == [[3]]
        with pytest.raises(irrun.ExecutionError, match="GatherElements-6 C") as error:
            ours.run([np.zeros((3, 3), F32)])
        assert error.value.diagnostics[0].layer.name == "entry"


def test_what_is_the_same_for_all_data_has_the_type_of_the_model(tmp_path):
    """x / x is 1 for every x; the scalar was of i64."""
    graph = Model()
    x = graph.parameter("x", "i32", (5,))
    (least,) = graph.layer("ReduceMin", [x, graph.constant(np.int64([0]))], [("i32", ())], keep_dims="false")
    (one,) = graph.layer("Divide", [least, least], [("i32", ())], auto_broadcast="numpy", m_pythondiv="true")
    graph.result(graph.layer("Clamp", [one], [("i32", ())], min="0", max="3")[0])
    for engine in ("reference", "numpy"):
        (result,) = irrun.GraphExecutor(graph.save(tmp_path), engine=engine).run([np.int32([3, -5, 1, 2, 4])]).values()
        assert (result.dtype, result.tolist()) == (np.int32, 1)


@ENGINES
def test_the_graphs_of_branches_are_inferred_once(engine, tmp_path):
    """x > 10 ? [rows of x, 2 * columns] : x, flat, by its first element."""
    b = model()
    x, bodies = anything(b, "f4", (-1, -1)), []
    for shape in ([0, -1], [-1]):
        body = model()
        own = anything(body, "f4", (-1, -1))
        both = body.one("Concat-1", own, own, axis=1) if len(shape) == 2 else own
        bodies.append((body, body.one("Reshape-1", both, i64(body, shape), special_zero=True)))
    most = b.one("ReduceMax-1", x, i64(b, [0, 1]), keep_dims=False)
    b.result(branch(b, b.one("Greater-1", most, b.constant(F32(10)), **ADD), bodies, x))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    with patch.object(infer, "infer_graph", side_effect=AssertionError("a graph is inferred again")):
        for rows, columns, number in ((2, 3, 1), (2, 3, 11), (4, 1, 11), (5, 2, 1), (3, 7, 11), (5, 2, 11)):
            given = np.full((rows, columns), number, F32)
            expected = np.tile(given, (1, 2)) if number > 10 else given.reshape(-1)
            assert run(ours, given) == [expected.tolist()]
