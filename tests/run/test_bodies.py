"""Bodies are programs: computed by engines, run after run in one frame, and what they give is nobody else's."""

import re

import numpy as np
import pytest

import irrun
from irrun.run.bodies import Iterations
from irrun.run.profile import Profile
from irrun.spec import Array, Input, Output, op
from irrun.spec.registry import registry
from run.models import ADD, PLAIN, Value, anything, branch, i64, loop, model, saved

ENGINES = pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "check"])
F32 = np.float32


def run(executor, *inputs):
    return [array.tolist() for array in executor.run(list(inputs)).values()]


def added(inner, x, number):
    return inner.one("Add-1", x, inner.constant(F32(number)), **ADD)


def computed_by(preparation):
    """What computes the instructions of the programs that runs have asked for."""
    return [{i.by for i in kept.program.instructions} for kept in preparation._kept.values()]


@ENGINES
def test_a_body_whose_sizes_are_known_is_computed_by_engines(engine, tmp_path):
    """Three times relu(x * 2 + 1)."""
    inner, b = model(), model()
    p = anything(inner, "f4", (1, 2))
    y = inner.one("MatMul-1", p, inner.constant(F32([[2, 0], [0, 2]])), **PLAIN)
    y = inner.one("ReLU-1", added(inner, y, 1))
    (last,) = loop(b, inner, i64(b, 3), [(p, anything(b, "f4", (1, 2)))], [y], [(y, p)])
    b.result(last)
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    assert run(executor, F32([[0, 1]])) == [[[7, 15]]]
    assert run(executor, F32([[1, -5]])) == [[[15, 3]]]  # -9 is 0
    if engine != "reference":
        ((body,),) = (executor._whole.bodies.made.values(),)
        assert computed_by(body) == [{"numpy" if engine == "numpy" else "onednn"}]


@ENGINES
def test_shapes_that_change_from_one_iteration_to_the_next(engine, tmp_path):
    """A row is added in every iteration: [1], then [1, 1, 2, 2] and so on, of which each is one more."""
    inner, b = model(), model()
    p = anything(inner, "f4", (-1, 2))
    y = inner.one("Concat-1", p, inner.constant(F32([[10, 20]])), axis=0)
    y = inner.one("ReLU-1", added(inner, inner.one("MatMul-1", y, inner.constant(np.eye(2, dtype="f4")), **PLAIN), 1))
    total = inner.one("ReduceSum-1", y, i64(inner, [0, 1]), keep_dims=True)
    (last, sums) = loop(b, inner, anything(b, "i8", ()), [(p, anything(b, "f4", (-1, 2)))], [y], [(y, p)], [total])
    b.result(last)
    b.result(sums)
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for _ in range(2):
        assert run(executor, np.int64(3), F32([[1, 2]])) == [
            [[4, 5], [13, 23], [12, 22], [11, 21]],
            [[37], [73], [111]],
        ]
    assert run(executor, np.int64(1), np.zeros((0, 2), F32)) == [[[11, 21]], [[32]]]
    many = run(executor, np.int64(20), F32([[0, 0]]))  # more sets of shapes than are kept
    assert many[0][0] == [20, 20]
    assert many[0][1:] == [[10 + n, 20 + n] for n in range(20, 0, -1)]


@ENGINES
def test_what_grows_by_one_beside_what_stays_has_one_program(engine, tmp_path):
    """tanh of all rows so far and a new one, times weights, in each of many iterations; the frame is kept from one to
    the next."""
    weights = np.random.default_rng(0).standard_normal((8, 8)).astype(F32) / 4
    inner, b = model(), model()
    p, row = anything(inner, "f4", (-1, 8)), anything(inner, "f4", (1, 8))
    y = inner.one("Concat-1", p, row, axis=0)
    y = inner.one("Tanh-1", added(inner, inner.one("MatMul-1", y, inner.constant(weights), **PLAIN), 0.125))
    total = inner.one("ReduceSum-1", y, i64(inner, [0, 1]), keep_dims=True)
    given = [(p, anything(b, "f4", (-1, 8))), (row, anything(b, "f4", (1, 8)))]
    for value in loop(b, inner, anything(b, "i8", ()), given, [y], [(y, p)], [total]):
        b.result(value)
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    rows, new = np.ones((3, 8), F32), np.full((1, 8), -0.5, F32)
    for count in (12, 1, 20):
        expected, sums = rows, []
        for _ in range(count):
            expected = np.tanh(np.concatenate([expected, new]) @ weights + F32(0.125))
            sums.append([expected.sum()])
        last, totals = executor.run([rows, new, np.int64(count)]).values()
        np.testing.assert_allclose(last, expected, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(totals, sums, rtol=1e-4, atol=1e-5)
    if engine in ("numpy", "onednn"):
        (body,) = executor._whole.bodies.made.values()
        assert len(body._kept) <= 4


@ENGINES
@pytest.mark.parametrize("grows", ["Concat-1", "Unsqueeze-1"])
def test_a_shape_that_a_body_declares_holds_in_the_first_iteration_only(engine, grows, tmp_path):
    """Where nothing else is known of it, as of inputs of any rank. What a body carries may have more rows, or axes."""
    inner, b = model(), model()
    p, given = anything(inner, "f4", (1, 2)), anything(b, "f4", (1, 2))
    b.graph.layers[given.ref[0]].attrs["shape"] = "..."
    if grows == "Concat-1":
        y = inner.one("Concat-1", p, inner.constant(F32([[10, 20]])), axis=0)
    else:
        y = inner.one("Unsqueeze-1", p, i64(inner, [0]))
    total = inner.one("ReduceSum-1", added(inner, y, 1), i64(inner, [-1, -2]), keep_dims=False)
    sums = inner.one("Reshape-1", total, i64(inner, [1]), special_zero=False)
    (last, joined) = loop(b, inner, i64(b, 3), [(p, given)], [y], [(y, p)], [sums])
    b.result(last)
    b.result(joined)
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    found, totals = run(executor, F32([[1, 2]]))
    if grows == "Concat-1":
        assert found == [[1, 2], [10, 20], [10, 20], [10, 20]]
        assert totals == [37, 69, 101]
    else:
        assert found == [[[[[1, 2]]]]]
        assert totals == [5, 5, 5]


@ENGINES
@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_parameters_that_are_swapped(engine, trips, tmp_path):
    inner, b = model(), model()
    p, q = anything(inner, "f4", (2,)), anything(inner, "f4", (2,))
    given = [(p, anything(b, "f4", (2,))), (q, anything(b, "f4", (2,)))]
    first, second = loop(b, inner, i64(b, trips), given, [q, p], [(q, p), (p, q)])
    b.result(first)
    b.result(second)
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    both = [[1, 2], [3, 4]]
    expected = both[::-1] if trips % 2 else both
    assert run(executor, F32([1, 2]), F32([3, 4])) == expected


@ENGINES
def test_parameters_that_are_swapped_and_computed_with(engine, tmp_path):
    """Fibonacci: (a, b) is (b, a + b) in the next iteration, and the joined result has each of them."""
    inner, b = model(), model()
    p, q = anything(inner, "f4", (1,)), anything(inner, "f4", (1,))
    total = inner.one("Add-1", p, q, **ADD)
    given = [(p, anything(b, "f4", (1,))), (q, anything(b, "f4", (1,)))]
    last, *joined = loop(b, inner, i64(b, 7), given, [total], [(q, p), (total, q)], [p, q, total])
    for value in (last, *joined):
        b.result(value)
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for _ in range(2):
        assert run(executor, F32([0]), F32([1])) == [
            [21],
            [0, 1, 1, 2, 3, 5, 8],
            [1, 1, 2, 3, 5, 8, 13],
            [1, 2, 3, 5, 8, 13, 21],
        ]


@ENGINES
@pytest.mark.parametrize("trips", range(7))
def test_what_only_the_next_iterations_read(engine, trips, tmp_path):
    """(a, b, c) is (b, c, a + c) in the next iteration: the memory of what passes is written to again by then."""
    inner, b = model(), model()
    p, q, r = (anything(inner, "f4", (300,)) for _ in range(3))
    total = inner.one("Add-1", p, r, **ADD)
    given = [(own, anything(b, "f4", (300,))) for own in (p, q, r)]
    for value in loop(b, inner, i64(b, trips), given, [q, r, total], [(q, p), (r, q), (total, r)]):
        b.result(value)
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    rng = np.random.default_rng(5)
    kept, wanted = [], []
    for _ in range(3):
        arrays = rng.integers(0, 9, (3, 300)).astype(F32)
        kept += executor.run(list(arrays)).values()
        x, y, z = arrays
        for _ in range(trips):
            x, y, z = y, z, x + z
        wanted += [x, y, z]
    np.testing.assert_array_equal(kept, wanted)


@ENGINES
def test_what_passed_and_is_joined_one_iteration_late(engine, tmp_path):
    """Nothing but the result reads the parameter, which is no memory of the frame then."""
    inner, b = model(), model()
    p, late = anything(inner, "f4", (300,)), anything(inner, "f4", (300,))
    y = added(inner, p, 1)
    given = [(own, anything(b, "f4", (300,))) for own in (p, late)]
    for value in loop(b, inner, i64(b, 5), given, [y], [(y, p), (y, late)], [late]):
        b.result(value)
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    last, joined = executor.run([np.zeros(300, F32), np.full(300, 9, F32)]).values()
    assert (last[0], joined[::300].tolist()) == (5, [9, 1, 2, 3, 4])


@ENGINES
def test_what_passes_may_have_another_size_each_time(engine, tmp_path):
    """A view of what lies in the frame, as long as a parameter says."""
    inner, b = model(), model()
    p, number = anything(inner, "f4", (8,)), anything(inner, "i8", (1,))
    y = added(inner, p, 1)
    further = inner.one("Add-1", number, inner.constant(np.int64([1])), **ADD)
    first = inner.one("Slice-8", y, i64(inner, [0]), number, i64(inner, [1]))
    given = [(p, anything(b, "f4", (8,))), (number, anything(b, "i8", (1,)))]
    for value in loop(b, inner, i64(b, 5), given, [first, y], [(y, p), (further, number)]):
        b.result(value)
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    assert run(executor, np.arange(8, dtype=F32), np.int64([1]))[0] == [5, 6, 7, 8, 9]


@pytest.fixture
def same():
    """A custom op that gives back what it is given."""

    @op("Same-1", inputs=[Input("x", "f32", "[N]")], outputs=[Output("y", "f32", "[N]")], opsets=frozenset(),
        extension_versions=["extension"])  # fmt: skip
    def same(x: Array) -> Array:
        return x

    known = registry()
    known.add(same)
    yield
    del known._ops[same.name]
    known._found.clear()


@ENGINES
@pytest.mark.parametrize("straight", [False, True])
def test_what_a_custom_op_gives_back_as_it_came(engine, straight, same, tmp_path):
    """It may be memory of the frame, or what passed."""
    inner, b = model(), model()
    p, late = anything(inner, "f4", (300,)), anything(inner, "f4", (300,))
    y = added(inner, p, 1)
    back = inner.one("Negative-1", late if straight else y)
    given = [(own, anything(b, "f4", (300,))) for own in (p, late)]
    for value in loop(b, inner, i64(b, 5), given, [y], [(y, p), (y, late)], [back]):
        b.result(value)
    path = saved(b, tmp_path)
    text, count = re.subn('type="Negative" version="[a-z0-9]+"', 'type="Same" version="extension"', path.read_text())
    path.write_text(text)
    _, joined = irrun.GraphExecutor(path, engine=engine).run([np.zeros(300, F32), np.full(300, 9, F32)]).values()
    assert (count, joined[::300].tolist()) == (1, [9, 1, 2, 3, 4] if straight else [1, 2, 3, 4, 5])


def test_memory_of_what_passes_is_that_of_two_iterations(tmp_path, monkeypatch):
    """What is joined has its own in each of them."""
    inner, b = model(), model()
    p = anything(inner, "f4", (300,))
    y, doubled = added(inner, p, 1), inner.one("Add-1", p, p, **ADD)
    last, joined = loop(b, inner, i64(b, 9), [(p, anything(b, "f4", (300,)))], [y], [(y, p)], [doubled])
    b.result(last)
    b.result(joined)
    seen = []
    run_once = Iterations.__call__

    def watched(self, arrays, run):
        seen.append(run_once(self, arrays, run))
        return seen[-1]

    monkeypatch.setattr(Iterations, "__call__", watched)
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine="numpy")
    executor.run([np.zeros(300, F32)])
    every = {position: len({id(results[position]) for results in seen}) for position in range(len(seen[0]))}
    assert sorted(every.values()) == [1, 2, 9]  # the condition is a constant


@ENGINES
def test_a_parameter_that_is_a_result_as_it_is(engine, tmp_path):
    inner, b = model(), model()
    p, q = anything(inner, "f4", (2,)), anything(inner, "f4", (2,))
    y = inner.one("Add-1", p, q, **ADD)
    x = anything(b, "f4", (2,))
    same, last = loop(b, inner, i64(b, 3), [(p, x), (q, x)], [q, y], [(y, p)])
    b.result(same)
    b.result(last)
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    given = F32([1, 2])
    first, second = executor.run([given]).values()
    assert (first.tolist(), second.tolist()) == ([1, 2], [4, 8])
    first[...] = second[...] = 9
    assert given.tolist() == [1, 2]
    assert run(executor, F32([5, 6])) == [[5, 6], [20, 24]]
    assert first.tolist() == [9, 9]


@ENGINES
def test_results_that_only_look_at_the_memory_of_a_body(engine, tmp_path):
    """A reshape to a shape that only the run tells, of what an engine has computed."""
    inner, b = model(), model()
    p, target = anything(inner, "f4", (2, 3)), anything(inner, "i8", (2,))
    y = added(inner, p, 1)
    turned = inner.one("Reshape-1", y, Value(target.ref, (np.int64([3, 2]),)), special_zero=False)
    given = [(p, anything(b, "f4", (2, 3))), (target, anything(b, "i8", (2,)))]
    last, joined = loop(b, inner, i64(b, 3), given, [turned], [(y, p)], [turned])
    b.result(last)
    b.result(joined)
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    shape = np.int64([3, 2])
    before = list(executor.run([np.zeros((2, 3), F32), shape]).values())
    after = list(executor.run([np.full((2, 3), 10, F32), shape]).values())
    assert [array[::3].ravel().tolist() for array in (before[1], after[1])] == [
        [1, 1, 2, 2, 3, 3],
        [11, 11, 12, 12, 13, 13],
    ]
    assert (before[0].tolist(), after[0].tolist()) == ([[3, 3]] * 3, [[13, 13]] * 3)


@ENGINES
def test_a_constant_that_a_body_gives_is_the_callers_own(engine, tmp_path):
    bodies = []
    for number in (1, 5):
        inner = model()
        bodies.append((inner, added(inner, inner.constant(F32([number, number])), 1)))
    b = model()
    b.result(branch(b, anything(b, "?", ()), bodies))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    (result,) = executor.run([np.bool_(True)]).values()
    assert result.tolist() == [2, 2]
    result[...] = 99
    assert run(executor, np.bool_(True)) == [[2, 2]]
    assert run(executor, np.bool_(False)) == [[6, 6]]


@ENGINES
def test_an_if_in_a_loop_uses_its_frame_again(engine, tmp_path):
    """x > 2 ? x * 2 : x + 1, five times from 0: 1, 2, 3, 6, 12."""
    inner, b = model(), model()
    p = anything(inner, "f4", (1,))
    bodies = []
    for name, number in (("Multiply-1", 2), ("Add-1", 1)):
        body = model()
        bodies.append((body, body.one(name, anything(body, "f4", (1,)), body.constant(F32([number])), **ADD)))
    large = inner.one("Greater-1", p, inner.constant(F32([2])), **ADD)
    y = branch(inner, large, bodies, p)
    last, joined = loop(b, inner, i64(b, 5), [(p, anything(b, "f4", (1,)))], [y], [(y, p)], [y])
    b.result(last)
    b.result(joined)
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for _ in range(2):
        assert run(executor, F32([0])) == [[12], [1, 2, 3, 6, 12]]


def test_a_branch_that_is_not_taken_is_not_begun(tmp_path, monkeypatch):
    begun, begin = [], Iterations.begin
    monkeypatch.setattr(Iterations, "begin", lambda self, run: (begun.append(self), begin(self, run)))
    b = model()
    condition, x, bodies = anything(b, "?", ()), anything(b, "f4", (2,)), []
    for number in (2, 3):
        body = model()
        p = anything(body, "f4", (2,))
        bodies.append((body, body.one("Multiply-1", p, body.constant(F32([number])), **ADD)))
    b.result(branch(b, condition, bodies, x))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine="numpy")
    for chosen, expected in ((True, [2, 4]), (False, [3, 6]), (True, [2, 4])):
        assert run(executor, np.bool_(chosen), F32([1, 2])) == [expected]
    assert [begun.index(one) for one in begun] == [0, 1, 0]


@pytest.mark.parametrize("engine", ["reference", "numpy"])
def test_a_profile_has_a_loop_as_one_layer(engine, tmp_path):
    inner, b = model(), model()
    p = anything(inner, "f4", (2,))
    y = inner.one("Tanh-1", added(inner, p, 1))
    (last,) = loop(b, inner, i64(b, 4), [(p, anything(b, "f4", (2,)))], [y], [(y, p)], label="repeat")
    b.result(last)
    profile = Profile()
    irrun.GraphExecutor(saved(b, tmp_path), engine=engine).run([F32([0, 0])], profile=profile)
    assert [(entry.name, entry.calls) for entry in profile.entries.values()] == [("repeat", 1)]


@pytest.mark.parametrize("engine", ["reference", "auto", "check"])
@pytest.mark.parametrize("sliced", ["TensorIterator", "Loop"])
@pytest.mark.parametrize("number", [0, 1])
def test_what_no_iteration_gives_has_its_type_where_the_body_could_not_compute_it(engine, sliced, number):
    """Rows of 3 are what the body multiplies: of no rows of 2 it would give none, which are f32 as ever."""
    g = irrun.build()
    x, given = g.Parameter("f32[?,?]", name="x"), [np.int64(-1), np.bool_(True)][: 2 * (sliced == "Loop")]
    body = g.body()
    product = body.MatMul(body.input(x, axis=0, shape="[1,3]"), np.eye(3, dtype=F32))
    body.Result(product, axis=0)
    body.Result(product)
    if sliced == "Loop":
        body.condition(body.Constant(np.bool_(True)))
    g.Result(g.FloorMod(g.op(sliced, *given, body=body)[number], F32([[2, 3, 4]])), name="y")
    executor = irrun.GraphExecutor(g.model, engine=engine)
    for _ in range(2):
        assert executor.run([F32([[5, 6, -7]])])["y"].tolist() == [[1, 0, 1]]
        made = executor.run([np.zeros((0, 2), F32)])["y"]
        assert (made.dtype, made.shape) == (F32, (1 if number else 0, 3))
        assert not made.any()


@ENGINES
def test_a_body_that_does_not_run_gives_its_types_also_where_it_could_not(engine):
    with irrun.build() as g:
        x, count = g.Parameter("f32[?, ?]", name="x"), g.Parameter("i64[]", name="count")
        with g.body() as body:
            product = body.MatMul(x, np.ones((2, 3), np.float32))
            body.Result(product)
            body.Result(product, axis=0)
            body.condition(body.Constant(np.array(True)))
        last, joined = g.Loop(count, True, body=body)
        g.Result(g.Multiply(last, 2.0))
        g.Result(joined)
    executor = irrun.GraphExecutor(g.model, engine=engine)
    for columns, rows in ((2, 1), (5, 0), (2, 1), (0, 0)):
        last, joined = executor.run({"x": np.ones((1, columns), np.float32), "count": np.array(0)}).values()
        assert (last.dtype, last.shape) == (np.float32, (rows, 3))
        assert (joined.dtype, joined.shape) == (np.float32, (0, 3))
