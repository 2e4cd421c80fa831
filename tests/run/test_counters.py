"""Loops whose bodies cut by the number of the iteration: what is known of sizes, and what is computed."""

import numpy as np
import pytest

import irrun

ENGINES = pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "check"])
X = np.arange(1, 16, dtype=np.float32).reshape(5, 3)


def cutting(tmp_path, trips, first, behind, *, rows="5", type="i64", ends_at=None, step=1):
    """A model that joins x[i + first : i + behind] of all iterations, `step` rows of each, and gives the last one's sum
    with what was given as `start`; None stands for no bound."""
    with irrun.build() as g:
        x = g.Parameter(f"f32[{rows}, 3]", name="x")
        count = g.Parameter("i64[]", name="trips") if trips is None else g.Constant(np.int64(trips))
        start = g.Constant(np.zeros((1, 3), np.float32))
        with g.body() as body:
            inner, before = body.input(x), body.input(start, shape="[?, 3]")
            number, dtype = body.iteration(type), type.replace("i", "int")

            def bound(offset, otherwise):
                if offset is None:
                    return body.Constant(np.array([otherwise], dtype))
                return body.Reshape(body.Add(number, np.array(offset, dtype)), [1])

            part = body.Slice(inner, bound(first, 0), bound(behind, 2**31 - 1), [1], [0])
            body.carry(before, body.Add(body.ReduceSum(part, [0], keep_dims=True), before))
            body.Result(body.Add(body.ReduceSum(part, [0], keep_dims=True), before))
            body.Result(part, axis=0, stride=step, part_size=step)
            limit = 10**6 if ends_at is None else ends_at
            body.condition(body.Less(number, np.array(limit, dtype)))
        for output, name in zip(g.Loop(count, True, body=body), ("total", "parts"), strict=True):
            g.Result(output, name=name)
    path = tmp_path / "model.xml"
    irrun.write_model(g.model, path)
    return path


def parts_of(x, trips, first, behind):
    return [
        x[None if first is None else number + first : None if behind is None else number + behind]
        for number in range(trips)
    ]


def expected(x, trips, first, behind):
    """The same by a loop of Python."""
    parts = parts_of(x, trips, first, behind)
    return sum(part.sum(0, keepdims=True) for part in parts), np.concatenate(parts)


@ENGINES
@pytest.mark.parametrize(("trips", "type"), [(5, "i64"), (4, "i32"), (1, "i64"), (7, "i64")])
@pytest.mark.parametrize(
    ("first", "behind"), [(0, 1), (0, 2), (None, 0), (None, 1), (0, None), (1, None), (-1, 1), (-2, -1), (1, 0), (2, 3)]
)
def test_parts_by_the_number_of_the_iteration(engine, trips, type, first, behind, tmp_path):
    lengths = {len(part) for part in parts_of(X, trips, first, behind)}
    step = max(min(lengths), 1)
    refused = None
    try:
        path = cutting(tmp_path, trips, first, behind, type=type, step=step)
        total, parts = irrun.GraphExecutor(path, engine=engine).run([X]).values()
    except irrun.IRError as error:  # where it is known that parts are no step, which cannot be joined
        refused = str(error)
    if refused is not None:
        assert "Loop-5 C12" in refused
        assert lengths != {step}
        return
    wanted = expected(X, trips, first, behind)
    assert parts.tolist() == wanted[1].tolist()
    assert total.tolist() == wanted[0].tolist()


@ENGINES
def test_trips_and_rows_that_only_a_run_tells(engine, tmp_path):
    path = cutting(tmp_path, None, 0, 1, rows="?")
    executor = irrun.GraphExecutor(path, engine=engine)
    for rows, trips in ((5, 5), (2, 5), (5, 2), (3, 3), (5, 7)):
        parts = executor.run({"x": X[:rows], "trips": np.int64(trips)})["parts"]
        assert parts.tolist() == expected(X[:rows], trips, 0, 1)[1].tolist()


@ENGINES
def test_a_loop_without_a_count_ends_by_its_condition(engine, tmp_path):
    path = cutting(tmp_path, -1, 0, 1, ends_at=3)
    assert irrun.GraphExecutor(path, engine=engine).run([X])["parts"].tolist() == X[:4].tolist()


def shapes(path):
    """What is known of the part in the body and of both results, before a run."""
    report = irrun.validate(path)
    assert report.ok, str(report)
    nodes = {node.layer.type: node.outputs for node in report.inference.nodes.values()}
    return [tensor.shape for tensor in (*nodes["Slice"], *nodes["Loop"])]


def test_a_row_of_each_iteration_has_a_known_size(tmp_path):
    assert shapes(cutting(tmp_path, 5, 0, 1)) == [(1, 3), (1, 3), (5, 3)]
    assert shapes(cutting(tmp_path, 3, 0, 2, step=2)) == [(2, 3), (1, 3), (6, 3)]
    assert shapes(cutting(tmp_path, 1, 0, None, step=5)) == [(5, 3), (1, 3), (5, 3)]


@pytest.mark.parametrize(("trips", "first", "behind"), [(6, 0, 1), (5, 0, 2), (5, -1, 1), (-1, 0, 1)])
def test_a_row_that_may_lie_outside_has_none(trips, first, behind, tmp_path):
    part, total, parts = shapes(cutting(tmp_path, trips, first, behind, ends_at=2))
    assert total == (1, 3)
    assert not isinstance(part[0], int)
    assert not isinstance(parts[0], int)


@pytest.mark.parametrize(("first", "behind"), [(None, 0), (None, 1), (0, None)])
def test_parts_that_grow_or_shrink_are_not_so_many_times_the_last(first, behind, tmp_path):
    """The sum of 0, 1, 2, ... is nothing times the number of iterations."""
    path = cutting(tmp_path, 5, first, behind)
    part, _, parts = shapes(path)
    rows = len(expected(X, 5, first, behind)[1])
    assert not isinstance(parts[0], int) or parts[0] == rows
    assert (parts[0] == part[0] * 5) is not True


def test_a_condition_that_holds_for_every_number_is_known_to(tmp_path):
    assert shapes(cutting(tmp_path, 5, 0, 1, ends_at=5))[2] == (5, 3)
    assert not isinstance(shapes(cutting(tmp_path, 5, 0, 1, ends_at=4))[2][0], int)


@ENGINES
@pytest.mark.parametrize(
    ("lengths", "steps", "axes"),
    [((2, 1), (1, 1), (2, 0)), ((4,), (2,), (1,)), ((2,), (1,), (-1,)), ((1, 1, 3), (1, 1, 2), (0, 1, 2))],
)
def test_parts_along_other_axes(engine, lengths, steps, axes, tmp_path):
    data = np.arange(120, dtype=np.float32).reshape(4, 6, 5)
    with irrun.build() as g:
        x = g.Parameter("f32[4, 6, 5]", name="x")
        with g.body() as body:
            starts = body.Broadcast(body.Reshape(body.iteration(), [1]), [len(axes)])
            stops = body.Add(starts, np.array(lengths))
            part = body.Slice(body.input(x), starts, stops, list(steps), list(axes))
            rows = {axis: -(-length // step) for axis, length, step in zip(axes, lengths, steps, strict=True)}.get(0, 4)
            body.Result(part, axis=0, stride=rows, part_size=rows)
            body.condition(body.Constant(True))
        g.Result(g.Loop(np.int64(2), True, body=body), name="parts")
    path = tmp_path / "model.xml"
    irrun.write_model(g.model, path)
    parts = []
    for number in range(2):
        index = [slice(None)] * 3
        for axis, length, step in zip(axes, lengths, steps, strict=True):
            index[axis] = slice(number, number + length, step)
        parts.append(data[tuple(index)])
    executor = irrun.GraphExecutor(path, engine=engine)
    assert executor.run([data])["parts"].tolist() == np.concatenate(parts).tolist()
    if engine == "numpy":
        assert computed_by(executor, "Slice-8") == {"numpy"}


@ENGINES
@pytest.mark.parametrize(("trips", "go"), [(0, True), (5, False), (None, True), (None, False)])
def test_no_iteration_gives_zeros_of_the_size_that_is_known(engine, trips, go, tmp_path):
    with irrun.build() as g:
        x, begins = g.Parameter("f32[5, 3]", name="x"), g.Parameter("boolean[]", name="go")
        count = g.Parameter("i64[]", name="trips") if trips is None else g.Constant(np.int64(trips))
        with g.body() as body:
            number = body.Reshape(body.iteration(), [1])
            body.Result(body.Slice(body.input(x), number, body.Add(number, np.array([1])), [1], [0]))
            body.condition(body.Constant(True))
        last = g.Loop(count, begins, body=body)
        g.Result(g.Add(last, np.ones((1, 3), np.float32)), name="more")
    path = tmp_path / "model.xml"
    irrun.write_model(g.model, path)
    executor = irrun.GraphExecutor(path, engine=engine)
    given = {"x": X, "go": np.bool_(go)} | ({"trips": np.int64(0)} if trips is None else {})
    assert executor.run(given)["more"].tolist() == [[1, 1, 1]]


def computed_by(executor, name):
    """What computes the instructions of an op in the bodies that have run."""
    kept = [kept.program for body in executor._whole.bodies.made.values() for kept in body._kept.values()]
    return {instruction.by for program in kept for instruction in program.instructions if instruction.op.name == name}


def test_the_body_is_prepared_for_sizes_that_are_known(tmp_path):
    path = cutting(tmp_path, 5, 0, 1)
    executor = irrun.GraphExecutor(path, engine="numpy")
    executor.run([X])
    assert computed_by(executor, "Slice-8") == {"numpy"}
    assert not computed_by(executor, "Enclosed-0")
