"""What rules have said is remembered for shapes and small values; what data decide is asked of them every time."""

import threading

import numpy as np
import pytest

import irrun
from irrun.run.rules import MAX_COMPARED, MAX_KEPT
from irrun.spec.op import Op
from run.models import ADD, anything, branch, i64, loop, model, saved

ENGINES = pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "check"])
F32 = np.float32


@pytest.fixture
def asked(monkeypatch):
    """The names of the ops whose rules are asked in a run."""
    names, infer = [], Op.infer

    def counted(op, *arguments):
        names.append(op.name)
        return infer(op, *arguments)

    monkeypatch.setattr(Op, "infer", counted)
    return names


def found(b):
    """Rows of an input [n, 3] where another one, [n], is not 0: sizes that only data tell."""
    x, y = anything(b, "f4", (-1, 3)), anything(b, "f4", (-1,))
    places = b.one("Squeeze-1", b.one("NonZero-3", y), i64(b, [0]))
    return b.one("Gather-7", x, places, i64(b, 0), batch_dims=0)


@ENGINES
def test_sizes_that_change_from_run_to_run(engine, tmp_path, asked):
    b = model()
    rows = found(b)
    b.result(b.one("Add-1", rows, b.one("ReduceSum-1", rows, i64(b, [0]), keep_dims=True), **ADD))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    rng = np.random.default_rng(0)
    for _ in range(MAX_KEPT // 8):
        for size in (1, 5, 3, 0, 9):
            x, y = rng.integers(-9, 9, (size, 3)).astype(F32), rng.integers(0, 2, size).astype(F32)
            (result,) = ours.run([x, y]).values()
            kept = x[y != 0]
            np.testing.assert_array_equal(result, kept + kept.sum(0, keepdims=True))


@ENGINES
@pytest.mark.parametrize("size", [4, MAX_COMPARED + 1])
def test_data_that_change_while_sizes_stay(engine, size, tmp_path):
    """Gather-7 refuses an index outside, whatever it took before; few indices are known again by what they are."""
    b = model()
    x, places = anything(b, "f4", (size, 2)), anything(b, "i8", (-1,))
    b.result(b.one("Gather-7", x, places, i64(b, 0), batch_dims=0))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    rows = np.arange(2 * size, dtype=F32).reshape(size, 2)
    for _ in range(3):
        for indices in (np.arange(size)[::-1], np.zeros(size, np.int64)):
            (result,) = ours.run([rows, indices]).values()
            np.testing.assert_array_equal(result, rows[indices])
        outside = np.arange(size)
        outside[-1] = size
        with pytest.raises(irrun.ExecutionError, match=rf"E401.*C4: `indices\[{size - 1}\]` is {size}, outside"):
            ours.run([rows, outside])


@ENGINES
def test_shapes_that_are_refused_and_then_others(engine, tmp_path):
    b = model()
    b.result(b.one("Add-1", *[b.one("ReduceSum-1", found(b), i64(b, [1]), keep_dims=False) for _ in "ab"], **ADD))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    x = np.ones((4, 3), F32)
    for _ in range(2):
        good = [x, F32([1, 0, 1, 0]), x, F32([0, 0, 1, 1])]
        assert [array.tolist() for array in ours.run(good).values()] == [[6, 6]]
        bad = [x, F32([1, 0, 1, 0]), x, F32([1, 0, 1, 1])]
        with pytest.raises(irrun.ExecutionError, match=r"E401.*Add-1 C1: `a` is \[2\] and `b` is \[3\]"):
            ours.run(bad)


def conditional(folder, engine):
    """cond ? x * 2 : x + 1 + 1, in a loop of five."""
    b, inner = model(), model()
    x, trips = anything(b, "f4", (-1,)), anything(b, "i8", ())
    p, bodies = anything(inner, "f4", (-1,)), []
    for name, number in (("Multiply-1", 2), ("Add-1", 1)):
        body = model()
        bodies.append((body, body.one(name, anything(body, "f4", (-1,)), body.constant(F32([number])), **ADD)))
    total = inner.one("ReduceSum-1", p, i64(inner, [0]), keep_dims=False)
    y = branch(inner, inner.one("Greater-1", total, inner.constant(F32(10)), **ADD), bodies, p)
    (last,) = loop(b, inner, trips, [(p, x)], [y], [(y, p)])
    b.result(last)
    return irrun.GraphExecutor(saved(b, folder), engine=engine)


def expected(x, trips):
    for _ in range(trips):
        x = x * 2 if x.sum() > 10 else x + 1
    return x


@ENGINES
def test_the_rule_of_a_body_is_asked_once(engine, tmp_path, asked):
    ours = conditional(tmp_path, engine)
    x = F32([1, 2, 3])
    for trips in (5, 3, 0, 5, 3):
        asked.append("run")
        (result,) = ours.run([x, np.int64(trips)]).values()
        np.testing.assert_array_equal(result, expected(x, trips))
    assert not {"If-8", "Loop-5"} & set(asked[len(asked) - asked[::-1].index("run") :])


@ENGINES
def test_several_threads(engine, tmp_path):
    ours, wrong = conditional(tmp_path, engine), []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(20):
            x, trips = rng.integers(-3, 4, rng.integers(1, 5)).astype(F32), int(rng.integers(0, 6))
            (result,) = ours.run([x, np.int64(trips)]).values()
            if not np.array_equal(result, expected(x, trips)):
                wrong.append((x, trips))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@ENGINES
def test_an_observer_in_a_body_between_runs_without_one(engine, tmp_path):
    ours, x = conditional(tmp_path, engine), F32([1, 2, 3])
    inputs = [x, np.int64(4)]
    for observed in (False, True, False, True):
        paths = []

        def observer(event, paths=paths):
            paths.append(event.path)

        (result,) = ours.run(inputs, observer=observer if observed else None).values()
        np.testing.assert_array_equal(result, expected(x, 4))
        iterations = {path[0][2] for path in paths if path}
        assert iterations == (set(range(4)) if observed else set())
