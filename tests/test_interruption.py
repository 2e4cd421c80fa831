"""Exceptions that handlers of signals raise go through everything; the same ones raised by engines and ops do not."""

import signal
import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.diagnostics import ExecutionError
from irrun.interruption import hand_on
from irrun.run.compiling import compile_work
from irrun.spec import FLOAT, Array, Input, Output, op
from irrun.spec.registry import registry


def late(*_):
    raise TimeoutError("late")


class Alarm:
    def late(self, *_):
        raise TimeoutError("late")

    def __call__(self, *_):
        raise TimeoutError("late")


@pytest.fixture
def alarm():
    """Sets the handler of SIGALRM for a test."""
    before = signal.getsignal(signal.SIGALRM)
    yield partial(signal.signal, signal.SIGALRM)
    signal.signal(signal.SIGALRM, before)


def interrupted():
    signal.raise_signal(signal.SIGALRM)


LOST = """
import signal, sys, time, weakref
from irrun.interruption import end_on_signals

end_on_signals()
number = getattr(signal, sys.argv[2])

class Going:
    def __del__(self):
        signal.raise_signal(number)
        list(map(str, range(9)))

class Held:
    pass

def going(_):
    signal.raise_signal(number)
    list(map(str, range(9)))

if sys.argv[1] == "object":
    Going()
else:
    held = Held()
    kept = weakref.ref(held, going)
    del held
time.sleep(20)
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
@pytest.mark.parametrize("where", ["object", "reference"])
def test_a_signal_that_comes_while_python_ignores_errors_ends_the_process_all_the_same(where, name):
    done = subprocess.run([sys.executable, "-c", LOST, where, name], capture_output=True, text=True, timeout=15)
    assert "Exception ignored" not in done.stderr
    assert done.returncode == (143 if name == "SIGTERM" else -signal.SIGINT)


def test_what_python_ignores_else_is_told_as_ever():
    code = """
from irrun.interruption import end_on_signals

class Going:
    def __del__(self):
        raise ValueError("going")

end_on_signals()
Going()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=15)
    assert done.returncode == 0
    assert "ValueError: going" in done.stderr


@pytest.mark.parametrize("handler", [late, Alarm().late, Alarm(), partial(late, 1)])
def test_what_a_handler_raises_is_told_from_what_others_do(alarm, handler):
    alarm(handler)
    for raising, through in ((interrupted, True), (partial(int, "x"), False)):
        try:
            raising()
        except Exception as error:
            if through:
                with pytest.raises(TimeoutError):
                    hand_on(error)
            else:
                hand_on(error)


def test_an_alarm_while_an_engine_prepares_a_layer_is_not_its_failure(alarm, caplog):
    def taking(compile):
        return compile_work(SimpleNamespace(name="slow", compile=compile), None, SimpleNamespace(layer="a"))

    alarm(late)
    with pytest.raises(TimeoutError, match="late"):
        taking(lambda _: interrupted())
    assert not caplog.messages
    alarm(signal.SIG_IGN)
    assert taking(late) is None
    assert caplog.messages == ["engine slow failed to prepare layer a: TimeoutError('late')"]


@pytest.fixture
def known():
    """Makes an op known for a test."""
    registered = registry()
    added = []

    def add(op):
        registered.add(op)
        added.append(op.name)

    yield add
    for name in added:
        del registered._ops[name]
    registered._found.clear()


def scaling(where):
    """An op that an alarm interrupts in its kernel, or in its rule."""

    @op(
        "Slow-1",
        types={"T": FLOAT},
        inputs=[Input("data", "T", "[*shape]")],
        outputs=[Output("scaled", "T", "[*shape]")],
        opsets=frozenset(),
        extension_versions=("extension",),
    )
    def slow(data: Array) -> Array:
        """Twice the data, late."""
        if where == "kernel":
            interrupted()
        return data * 2

    @slow.shapes
    def _(node):
        if where == "rule":
            interrupted()

    return slow


@pytest.mark.parametrize("where", ["kernel", "rule"])
@pytest.mark.parametrize("constant", [False, True])
def test_an_alarm_while_an_op_computes_is_not_its_failure(alarm, tmp_path, known, where, constant):
    """Neither in a run, nor where it is computed ahead of one."""
    known(scaling(where))
    model = Model()
    x = model.parameter("x", "f32", (2,))
    read = model.constant(np.ones(2, np.float32)) if constant else x
    (slow,) = model.layer("Slow", [read], [("f32", (2,))], "extension")
    model.result(model.layer("Add", [slow, x], [("f32", (2,))])[0])
    path = model.save(tmp_path)
    alarm(late)
    with pytest.raises(TimeoutError, match="late"):
        irrun.GraphExecutor(path).run(np.ones(2, np.float32))
    alarm(signal.SIG_IGN)
    assert irrun.GraphExecutor(path).run(np.ones(2, np.float32))[0].tolist() == [3, 3]


def test_an_alarm_in_an_observer_is_not_its_failure(alarm, tmp_path):
    model = Model()
    model.result(model.layer("ReLU", [model.parameter("x", "f32", (2,))], [("f32", (2,))])[0])
    executor = irrun.GraphExecutor(model.save(tmp_path))
    alarm(late)
    with pytest.raises(TimeoutError, match="late"):
        executor.run(np.ones(2, np.float32), observer=lambda _: interrupted())
    alarm(signal.SIG_IGN)
    with pytest.raises(ExecutionError, match="late"):
        executor.run(np.ones(2, np.float32), observer=late)


class Interrupted(BaseException):
    """What the handler of a signal raises."""


def run_until(executor, inputs, place):
    """Run with an interruption at the `place`-th place where there can be one; whether there is such a place."""
    left = place

    def look(frame, event, _):
        nonlocal left
        left -= event in ("call", "c_return")
        if left == 0:
            sys.setprofile(None)
            raise Interrupted

    sys.setprofile(look)
    try:
        executor.run(inputs)
    except Interrupted:
        return True
    finally:
        sys.setprofile(None)
    return False


def several_kinds(g):
    """Products, a loop, a part whose sizes the data tell, and what is shared by threads."""
    x = g.Parameter("f32[?,64]", name="x")
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(64, 64)).astype(np.float32)
    y = g.Tanh(g.MatMul(x, weights, transpose_a=False, transpose_b=False))
    rows = g.NonZero(g.Greater(g.ReduceSum(y, np.array([1]), keep_dims=False), np.float32(0.5)), output_type="i64")
    picked = g.Gather(y, g.Squeeze(rows, np.array([0])), np.array(0))
    return g.Softmax(picked, axis=1), g.ReLU(g.MatMul(picked, weights, transpose_a=False, transpose_b=True))


@pytest.mark.parametrize("engine", ["auto", "numpy", "reference"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in what is called as arrays go
@pytest.mark.parametrize("name", ["cnn", "stateful-loop", "rows"])
def test_a_run_after_one_that_was_interrupted_is_right(engine, name):
    if name == "rows":
        with irrun.build("rows", opset=13) as g:
            for number, result in enumerate(several_kinds(g)):
                g.Result(result, name=f"y{number}")
        model = g.model
    else:
        model = f"samples/{name}/model.xml"
    executor = irrun.GraphExecutor(model, engine=engine, threads=2)
    shapes = {"x": (300, 64)} if name == "rows" else {}
    one, two = (executor.random_inputs(number, shapes) for number in range(2))
    for inputs in (one, two, one):
        executor.run(inputs)
    executor.reset_state()
    expected = executor.run(two)
    random, most = np.random.default_rng(0), 64
    for _ in range(60):
        place = int(random.integers(1, most))
        if run_until(executor, one, place):
            most = max(most, 2 * place)
        executor.reset_state()
        for inputs in (one, two) if random.random() < 0.5 else (two,):
            executor.reset_state()
            found = executor.run(inputs)
        for key, array in expected.items():
            np.testing.assert_array_equal(found[key], array)
    assert most > 64
