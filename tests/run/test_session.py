"""Sessions: variables of their own, one run after the other; runs that fail, and what they leave behind."""

import gc
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
from differential.graph import Layer

import irrun
from run.models import ADD, anything, i64, loop, model, saved

ENGINES = pytest.mark.parametrize("engine", ["reference", "numpy", "onednn"])
F32 = np.float32
VARIABLE = {"variable_id": "v", "variable_type": "f32", "variable_shape": "2"}


def read(b, start):
    (value,) = b.layer(Layer("ReadValue-6", [start.ref], dict(VARIABLE)), [start.arrays], False, False)
    return value


def assign(b, value):
    (stored,) = b.layer(Layer("Assign-6", [value.ref], {"variable_id": "v"}), [value.arrays], False, False)
    return stored


def accumulating(folder, engine="numpy"):
    """v += x, from zeros; and a GatherElements of the sum by an index that may lie outside of it."""
    b = model()
    x, index = anything(b, "f4", (2,)), anything(b, "i8", (1,))
    total = b.one("Add-1", read(b, b.constant(np.zeros(2, F32))), x, **ADD)
    assign(b, total)
    b.result(total)
    b.result(b.one("GatherElements-6", total, index, axis=0))
    return irrun.GraphExecutor(saved(b, folder), engine=engine)


def first(results):
    return next(iter(results.values())).tolist()


X, GOOD, BAD = F32([1, 2]), np.int64([0]), np.int64([5])


def together(count, work):
    """`work(number)` in several threads, which change as often as they can."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)


@ENGINES
def test_each_session_has_its_own_variables(engine, tmp_path):
    executor = accumulating(tmp_path, engine)
    one, two = executor.session(), executor.session()
    assert [first(one.run([X, GOOD])) for _ in range(3)] == [[1, 2], [2, 4], [3, 6]]
    assert first(two.run([X, GOOD])) == [1, 2]
    assert first(executor.run([X, GOOD])) == [1, 2]
    one.reset_state()
    assert first(one.run([X, GOOD])) == [1, 2]
    assert [first(session.run([X, GOOD])) for session in (two, executor)] == [[2, 4], [2, 4]]
    executor.reset_state()
    assert [first(session.run([X, GOOD])) for session in (two, executor)] == [[3, 6], [1, 2]]


def test_the_variables_of_a_session_can_be_looked_at(tmp_path):
    session = accumulating(tmp_path).session()
    assert session.variables == {}
    session.run([X, GOOD])
    assert {name: array.tolist() for name, array in session.variables.items()} == {"v": [1, 2]}
    session.variables["v"] = F32([10, 10])
    assert first(session.run([X, GOOD])) == [11, 12]


@ENGINES
def test_variables_are_nobody_elses(engine, tmp_path):
    session = accumulating(tmp_path, engine).session()
    given = F32([10, 10])
    session.variables["v"] = given
    given[:] = 0
    seen = session.variables["v"]
    with pytest.raises(ValueError, match="read-only"):
        seen[:] = 0
    results = session.run([X, GOOD])
    first(results)
    assert seen.tolist() == [10, 10]
    next(iter(results.values()))[:] = 0
    assert session.variables["v"].tolist() == [11, 12]
    with pytest.raises(TypeError, match="variable `v` is set to dict, expected an array"):
        session.variables["v"] = {}


@ENGINES
def test_a_variable_is_set_to_what_it_can_hold(engine, tmp_path):
    session = accumulating(tmp_path, engine).session()
    session.run([X, GOOD])
    for other in (np.float64([1, 2]), np.float16([1, 2]), session.variables["v"].view(np.uint32)):
        with pytest.raises(TypeError, match=f"variable `v` is set to an array of {other.dtype}, expected f32"):
            session.variables["v"] = other
    with pytest.raises(KeyError, match="there is no variable 'w'; the variables are `v`"):
        session.variables["w"] = F32([1, 2])
    session.variables["v"] = F32([10, 10]).astype(">f4")
    assert first(session.run([X, GOOD])) == [11, 12]


@ENGINES
def test_a_variable_that_is_deleted_is_as_before_the_first_run(engine, tmp_path):
    session = accumulating(tmp_path, engine).session()
    session.run([X, GOOD])
    del session.variables["v"]
    assert not session.variables
    with pytest.raises(KeyError):
        del session.variables["v"]
    assert first(session.run([X, GOOD])) == [1, 2]


def test_the_variables_of_a_session_are_the_same_after_a_reset(tmp_path):
    session = accumulating(tmp_path).session()
    variables = session.variables
    session.run([X, GOOD])
    session.reset_state()
    assert variables == {}
    variables["v"] = F32([10, 10])
    assert first(session.run([X, GOOD])) == [11, 12]


@ENGINES
def test_an_observer_cannot_run_its_own_session(engine, tmp_path):
    session = accumulating(tmp_path, engine).session()
    for within in (lambda: session.run([X, GOOD]), session.reset_state):
        with pytest.raises(irrun.ExecutionError, match="the session is in a run, which has to end first"):
            session.run([X, GOOD], observer=lambda event, within=within: within())
    other = session.fork()
    session.run([X, GOOD], observer=lambda event: other.run([X, GOOD]) and None)
    assert session.variables["v"].tolist() == [1, 2]


@ENGINES
def test_sessions_run_at_the_same_time(engine, tmp_path):
    executor = accumulating(tmp_path, engine)
    found = {}

    def work(number):
        session = executor.session()
        found[number] = [first(session.run([F32([number, 1]), GOOD])) for _ in range(50)]

    together(4, work)
    assert found == {number: [[number * n, n] for n in range(1, 51)] for number in range(4)}


@ENGINES
@pytest.mark.parametrize("default", [True, False])
def test_no_update_is_lost(engine, default, tmp_path):
    executor = accumulating(tmp_path, engine)
    session = executor if default else executor.session()
    totals = []
    together(4, lambda _: totals.extend(first(session.run([X, GOOD]))[0] for _ in range(100)))
    assert sorted(totals) == [*range(1, 401)]
    assert first(session.run([X, GOOD])) == [401, 802]


def test_runs_of_one_session_wait_for_each_other_and_stateless_ones_do_not(tmp_path):
    (tmp_path / "other").mkdir()
    b = model()
    b.result(b.one("Tanh-1", anything(b, "f4", (2,))))
    for executor, inputs, most in (
        (accumulating(tmp_path), [X, GOOD], 1),
        (irrun.GraphExecutor(saved(b, tmp_path / "other")), [X], 3),
    ):
        inside, seen, session = [], [], executor.session()
        meeting = threading.Barrier(most)

        def look(event, inside=inside, seen=seen, meeting=meeting):
            inside.append(event)
            meeting.wait(30)
            time.sleep(0.01)
            seen.append(len(inside))
            meeting.wait(30)
            inside.clear()

        together(3, lambda _, run=session.run, inputs=inputs, look=look: run(inputs, observer=look))
        assert max(seen) == most


@ENGINES
def test_a_failed_run_leaves_variables_as_they_were(engine, tmp_path):
    session = accumulating(tmp_path, engine).session()
    with pytest.raises(irrun.ExecutionError):
        session.run([X, BAD])
    assert session.variables == {}
    assert first(session.run([X, GOOD])) == [1, 2]
    for _ in range(2):
        with pytest.raises(irrun.ExecutionError):
            session.run([X, BAD])
    assert session.variables["v"].tolist() == [1, 2]
    assert first(session.run([X, GOOD])) == [2, 4]


@ENGINES
def test_a_failed_run_takes_back_what_a_body_has_assigned(engine, tmp_path):
    """The body of a Loop adds x to the variable; behind the Loop an index fails."""
    inner, b = model(), model()
    p = anything(inner, "f4", (2,))
    total = inner.one("Add-1", read(inner, inner.constant(np.zeros(2, F32))), p, **ADD)
    assign(inner, total)
    (last,) = loop(b, inner, i64(b, 3), [(p, anything(b, "f4", (2,)))], [total])
    b.result(last)
    b.result(b.one("GatherElements-6", last, anything(b, "i8", (1,)), axis=0))
    session = irrun.GraphExecutor(saved(b, tmp_path), engine=engine).session()
    assert first(session.run([X, GOOD])) == [3, 6]
    for _ in range(2):
        with pytest.raises(irrun.ExecutionError):
            session.run([X, BAD])
        assert session.variables["v"].tolist() == [3, 6]
    assert first(session.run([X, GOOD])) == [6, 12]


@ENGINES
def test_a_run_that_fails_in_a_body_takes_back_its_first_iterations(engine, tmp_path):
    """The index of iteration n is n; the tensor has two elements, so that the third iteration fails."""
    inner, b = model(), model()
    p, n, one = anything(inner, "f4", (2,)), anything(inner, "i8", (1,)), inner.constant(np.int64([1]))
    total = inner.one("Add-1", read(inner, inner.constant(np.zeros(2, F32))), p, **ADD)
    assign(inner, total)
    found = inner.one("GatherElements-6", total, n, axis=0)
    later = inner.one("Add-1", n, one, **ADD)
    trips = anything(b, "i8", ())
    given = [(p, anything(b, "f4", (2,))), (n, b.constant(np.int64([0])))]
    (last, _) = loop(b, inner, trips, given, [found, total], [(later, n)])
    b.result(last)
    session = irrun.GraphExecutor(saved(b, tmp_path), engine=engine).session()
    assert first(session.run([np.int64(2), X])) == [4]  # 2 times 2
    with pytest.raises(irrun.ExecutionError):
        session.run([np.int64(3), X])
    assert session.variables["v"].tolist() == [2, 4]


@ENGINES
def test_what_a_graph_assigns_counts_from_its_end_on_whatever_a_loop_does(engine, tmp_path):
    """Assign of x, a Loop, and behind it a ReadValue that starts with what the Loop gives: x + 2."""
    b, inner = model(), model()
    x = anything(b, "f4", (2,))
    assign(b, x)
    p = anything(inner, "f4", (2,))
    y = inner.one("Add-1", p, inner.constant(F32([1, 1])), **ADD)
    (last,) = loop(b, inner, i64(b, 2), [(p, x)], [y], [(y, p)])
    b.result(read(b, last))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    assert [first(executor.run([F32([n, n])])) for n in (5, 6, 7)] == [[7, 7], [5, 5], [6, 6]]


@ENGINES
def test_an_observer_that_raises_leaves_variables_as_they_were(engine, tmp_path):
    session = accumulating(tmp_path, engine).session()
    session.run([X, GOOD])
    with pytest.raises(irrun.ExecutionError, match="the observer failed"):
        session.run([X, GOOD], observer=lambda event: 1 / 0)
    assert session.variables["v"].tolist() == [1, 2]


@ENGINES
@pytest.mark.parametrize("index", [GOOD, BAD])
def test_nothing_of_a_run_is_left_on_the_executor(engine, index, tmp_path):
    class Owned(np.ndarray):
        """An array that can be referred to weakly."""

    class Observer:
        def __call__(self, event):
            return None

    executor = accumulating(tmp_path, engine)
    executor.run([X, GOOD])
    x, observer = X.copy().view(Owned), Observer()
    alive = [weakref.ref(x), weakref.ref(observer)]
    try:
        executor.run([x, index], observer=observer)
    except irrun.ExecutionError:
        assert index is BAD
    del x, observer
    gc.collect()
    assert [reference() for reference in alive] == [None, None]


LOOP = Path(__file__).parents[2] / "samples/stateful-loop/model.xml"


def test_a_session_says_what_its_run_computes_at_present():
    session = irrun.GraphExecutor(LOOP, engine="numpy").session()
    inputs = [np.ones((1, 4), F32), np.int32(2)]
    seen = []
    session.run(inputs, observer=lambda event: seen.append(session.now))
    assert seen[:3] == ["ReadValue_13274, 1 of 4", "Loop_13276/MatMul_13265, 2 of 4", "Loop_13276/Add_13266, 2 of 4"]
    assert seen[-1] == "Assign_13279, 4 of 4"
    assert session.now == ""
    with pytest.raises(irrun.ExecutionError):
        session.run(inputs, observer=lambda event: 1 / 0)
    assert session.now == ""


def test_another_thread_may_ask_at_any_time():
    session = irrun.GraphExecutor(LOOP, engine="numpy").session()
    inputs = [np.ones((1, 4), F32), np.int32(9)]
    seen = set()

    def work(number):
        for _ in range(300):
            if number:
                seen.add(session.now)
            else:
                session.run(inputs)

    together(3, work)
    assert all(now == "" or now.endswith(" of 4") for now in seen)
