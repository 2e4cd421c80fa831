"""Observers: told of every tensor that is made, with where it was, and what they give in its place is what counts."""

from pathlib import Path

import numpy as np
import pytest
from engines.toy import Toy

import irrun
from irrun.run.frame import Frame
from irrun.run.session import Event, Fused
from run.models import ADD, PLAIN, anything, branch, i64, loop, model, saved
from run.test_program import executor as toyed
from run.test_program import random_model

ENGINES = pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "check"])
F32 = np.float32
SAMPLES = Path(__file__).parents[2] / "samples"


def named(b, value, label):
    b.graph.layers[value.ref[0]].label = label
    return value


def told(executor, *inputs):
    """Layer, port and numbers of every event, in order."""
    events = []
    executor.run(list(inputs), observer=lambda e: events.append((e.layer.name, e.port, e.array.tolist())))
    return events


def replacing(label, array):
    return lambda event: array if event.layer.name == label else None


def values(results):
    return [array.tolist() for array in results.values()]


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn"])
def test_every_tensor_with_its_layer_and_port(engine, tmp_path):
    b = model()
    x = anything(b, "f4", (4,))
    first, second = b.op("Split-1", x, i64(b, 0), num_splits=2)
    b.graph.layers[first.ref[0]].label = "halves"
    b.result(named(b, b.one("Concat-1", second, first, axis=0), "swapped"))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    assert told(executor, F32([1, 2, 3, 4])) == [
        ("halves", 0, [1, 2]),
        ("halves", 1, [3, 4]),
        ("swapped", 0, [3, 4, 1, 2]),
    ]


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn"])
def test_a_chain_that_is_computed_together_makes_every_tensor_for_who_looks(engine, tmp_path):
    b = model()
    y = named(b, b.one("Negative-1", anything(b, "f4", (2,))), "negative")
    b.result(named(b, b.one("ReLU-1", named(b, b.one("Add-1", y, b.constant(F32([1, 1])), **ADD), "sum")), "positive"))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    assert values(executor.run([F32([3, -3])])) == [[0, 4]]
    if engine == "numpy":
        (prepared,) = executor._whole.preparation._kept.values()
        assert [len(instruction.posts) for instruction in prepared.program.instructions] == [2]
    assert told(executor, F32([3, -3])) == [
        ("negative", 0, [-3, 3]),
        ("sum", 0, [-2, 4]),
        ("positive", 0, [0, 4]),
    ]


@ENGINES
def test_paths_into_bodies_have_layer_body_and_iteration(engine, tmp_path):
    """A Loop of three iterations, and in its body an If, which takes its other branch in the last one."""
    inner, b = model(), model()
    p = anything(inner, "f4", (1,))
    bodies = []
    for label, number in (("small", 1), ("large", 10)):
        body = model()
        total = body.one("Add-1", anything(body, "f4", (1,)), body.constant(F32([number])), **ADD)
        bodies.append((body, named(body, total, label)))
    little = named(inner, inner.one("Less-1", p, inner.constant(F32([2])), **ADD), "little")
    y = named(inner, branch(inner, little, bodies, p), "choice")
    (last,) = loop(b, inner, i64(b, 3), [(p, anything(b, "f4", (1,)))], [y], [(y, p)], label="repeat")
    b.result(last)
    events = []
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    executor.run([F32([0])], observer=lambda e: events.append((e.layer.name, e.path, e.array.tolist())))
    expected = []
    choices = [("small", "then_body", 1), ("small", "then_body", 2), ("large", "else_body", 12)]
    for n, (label, kind, number) in enumerate(choices):
        path = (("repeat", "body", n),)
        expected += [
            ("little", path, [kind == "then_body"]),
            (label, (*path, ("choice", kind, 0)), [number]),
            ("choice", path, [number]),
        ]
    assert events == [*expected, ("repeat", (), [12])]


@ENGINES
def test_an_array_that_is_handed_back_is_what_others_read(engine, tmp_path):
    b = model()
    y = named(b, b.one("SoftMax-1", anything(b, "f4", (2,)), axis=0), "share")
    b.result(y)
    b.result(b.one("MatMul-1", y, b.constant(F32([[1, 2], [3, 4]])), **PLAIN))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    given = F32([10, 100])
    observer = replacing("share", given)
    if engine == "check":  # which holds each engine against the kernels for what it was given
        assert values(executor.run([F32([0, 0])]))[0] == [0.5, 0.5]
    share, product = executor.run([F32([0, 0])], observer=observer).values()
    assert (share.tolist(), product.tolist()) == ([10, 100], [310, 420])
    share[...] = 7
    assert given.tolist() == [10, 100]
    assert values(executor.run([F32([0, 0])])) == [[0.5, 0.5], [2, 3]]


@ENGINES
@pytest.mark.parametrize("which", ["source", "view"])
def test_an_array_in_place_of_a_view_or_of_what_it_looks_at(engine, which, tmp_path):
    b = model()
    y = named(b, b.one("Tanh-1", anything(b, "f4", (2, 2))), "source")
    z = named(b, b.one("Transpose-1", y, i64(b, [1, 0])), "view")
    b.result(y)
    b.result(z)
    b.result(b.one("SoftMax-1", z, axis=0))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    given = F32([[0, 1], [1000, 1]])
    results = values(executor.run([np.zeros((2, 2), F32)], observer=replacing(which, given)))
    if which == "source":
        assert results[:2] == [[[0, 1], [1000, 1]], [[0, 1000], [1, 1]]]
        np.testing.assert_allclose(results[2], [[0.26894142, 1], [0.73105858, 0]], 1e-6)
    else:
        assert results == [[[0, 0], [0, 0]], [[0, 1], [1000, 1]], [[0, 0.5], [1, 0.5]]]
    assert values(executor.run([np.zeros((2, 2), F32)]))[1] == [[0, 0], [0, 0]]


@ENGINES
def test_an_array_in_place_of_a_conversion_that_changes_nothing_is_read_by_its_readers_alone(engine, tmp_path):
    b = model()
    x = anything(b, "f4", (2,))
    half = named(b, b.one("Convert-1", x, destination_type="f16"), "half")
    b.result(b.one("ReLU-1", x))
    b.result(b.one("ReLU-1", half))
    b.result(x)
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine, precision="auto")
    results = executor.run([F32([1, 2])], observer=replacing("half", F32([3, 4])))
    assert values(results) == [[1, 2], [3, 4], [1, 2]]
    assert values(executor.run([F32([1, 2])])) == [[1, 2], [1, 2], [1, 2]]


@ENGINES
def test_an_array_in_place_of_the_result_of_a_fused_chain(engine, tmp_path):
    b = model()
    y = b.one("MatMul-1", anything(b, "f4", (1, 2)), b.constant(np.eye(2, dtype="f4")), **PLAIN)
    y = named(b, b.one("ReLU-1", b.one("Add-1", y, b.constant(F32([1, 2])), **ADD)), "end")
    b.result(b.one("ReduceSum-1", y, i64(b, [1]), keep_dims=False))
    b.result(y)
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    assert values(executor.run([F32([[1, 1]])])) == [[5], [[2, 3]]]
    results = executor.run([F32([[1, 1]])], observer=replacing("end", F32([[20, 30]])))
    assert values(results) == [[50], [[20, 30]]]


@pytest.mark.parametrize("seed", range(30))
def test_random_models_in_layouts_that_only_an_engine_can_read(seed, tmp_path, monkeypatch):
    """Events have the numbers of the reference; and where some are replaced, its results."""
    path = random_model(seed, tmp_path, dynamic=seed % 3 == 0)
    ours, toy = toyed(path, seed, monkeypatch)
    plain = irrun.GraphExecutor(path, engine="reference")
    inputs = ours.random_inputs(seed, {"x0": (2, 3, 4), "x1": (2, 3, 4)})
    expected, seen = {}, []
    plain.run(inputs, observer=lambda event: expected.update({event.layer.name: event.array.copy()}))

    def compare(event):
        seen.append(event.layer.name)
        np.testing.assert_array_equal(event.array, expected[event.layer.name], event.layer.name)
        again = event.calculation(event.calculation.inputs)[
            event.port
        ]  # what an engine has read from another layout, too
        np.testing.assert_array_equal(again, event.array, event.layer.name)

    ours.run(inputs, observer=compare)
    assert len(seen) == len(set(seen))
    chosen = set(seen[::3])

    def twos(event):
        return np.full(event.array.shape, 2, np.float32) if event.layer.name in chosen else None

    assert values(ours.run(inputs, observer=twos)) == values(plain.run(inputs, observer=twos))
    assert values(ours.run(inputs)) == values(plain.run(inputs))
    assert toy.offered


@ENGINES
def test_an_array_in_a_body_is_carried_on(engine, tmp_path):
    inner, b = model(), model()
    p = anything(inner, "f4", (1,))
    y = named(inner, inner.one("Add-1", p, inner.constant(F32([1])), **ADD), "next")
    last, joined = loop(b, inner, i64(b, 4), [(p, anything(b, "f4", (1,)))], [y], [(y, p)], [y])
    b.result(last)
    b.result(joined)

    def observer(event):
        return F32([100]) if event.layer.name == "next" and event.path[-1][2] == 1 else None

    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    assert values(executor.run([F32([0])], observer=observer)) == [[102], [1, 100, 101, 102]]
    assert values(executor.run([F32([0])])) == [[4], [1, 2, 3, 4]]


@ENGINES
@pytest.mark.parametrize(
    ("given", "found"), [(np.zeros(3, F32), r"float32\[3\]"), (np.zeros(2), r"float64\[2\]"), ([1, 2], r"int64\[2\]")]
)
def test_an_array_of_another_shape_or_type(engine, given, found, tmp_path):
    b = model()
    b.result(named(b, b.one("ReLU-1", anything(b, "f4", (2,))), "positive"))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    message = rf"E602\]: the observer gave {found} for output 0, expected float32\[2\]"
    with pytest.raises(irrun.ExecutionError, match=message) as error:
        executor.run([F32([1, 2])], observer=lambda event: given)
    assert error.value.diagnostics[0].layer.name == "positive"
    assert values(executor.run([F32([-1, 2])])) == [[0, 2]]


def test_an_observer_that_raises_is_named_and_its_error_kept(tmp_path):
    b = model()
    b.result(b.one("ReLU-1", anything(b, "f4", (2,))))
    executor = irrun.GraphExecutor(saved(b, tmp_path))
    with pytest.raises(irrun.ExecutionError, match="the observer failed: LookupError: no more") as error:
        executor.run([F32([1, 2])], observer=lambda event: _raise("no more"))
    assert isinstance(error.value.__cause__, LookupError)


def test_what_cannot_be_called_is_no_observer(tmp_path):
    b = model()
    b.result(b.one("ReLU-1", anything(b, "f4", (2,))))
    with pytest.raises(TypeError, match=r"^`observer` is 3, expected what can be called with an irrun\.Event$"):
        irrun.GraphExecutor(saved(b, tmp_path)).run([F32([1, 2])], observer=3)
    with pytest.raises(TypeError, match=r"^`profile` is True, expected an irrun\.Profile, which takes times down$"):
        irrun.GraphExecutor(saved(b, tmp_path)).run([F32([1, 2])], profile=True)


def _raise(message):
    raise LookupError(message)


def test_arrays_of_events_cannot_be_written_to(tmp_path):
    b = model()
    b.result(b.one("ReLU-1", anything(b, "f4", (2,))))
    flags = []
    executor = irrun.GraphExecutor(saved(b, tmp_path))
    executor.run([F32([1, 2])], observer=lambda event: flags.append(event.array.flags.writeable))
    assert flags == [False]


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn"])
def test_nothing_is_done_for_nobody(engine, tmp_path, monkeypatch):
    """Without an observer no event is made, and nothing but the calls themselves is called for an instruction."""
    inner, b = model(), model()
    p = anything(inner, "f4", (2,))
    y = inner.one("Tanh-1", p)
    (last,) = loop(b, inner, i64(b, 3), [(p, anything(b, "f4", (2,)))], [y], [(y, p)])
    b.result(b.one("ReLU-1", last))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)

    def never(*_):
        raise AssertionError("there is no observer")

    monkeypatch.setattr(Event, "__init__", never)
    monkeypatch.setattr(Frame, "_watched", never)
    assert values(executor.run([F32([0, -0.0])])) == [[0, 0]]
    assert len(executor._whole.preparation._kept) == (engine != "reference")


def test_a_toy_engine_has_opaque_tensors_observed(tmp_path, monkeypatch):
    b = model()
    y = named(b, b.one("SoftMax-1", anything(b, "f4", (2,)), axis=0), "first")
    b.result(named(b, b.one("SoftMax-1", y, axis=0), "second"))

    class Backward(Toy):
        def compile(self, work):
            self._draw.random, self._draw.randrange = (lambda: 0.25), (lambda _: 0)
            return super().compile(work)

    monkeypatch.setattr("irrun.run.executor.load_engines", lambda *_, **__: [Backward(0)])
    executor = irrun.GraphExecutor(saved(b, tmp_path))
    given = F32([0, np.log(3)])
    (result,) = executor.run([F32([0, 0])], observer=replacing("first", given)).values()
    np.testing.assert_allclose(result, [0.25, 0.75], 1e-6)
    assert [name for name, *_ in told(executor, F32([0, 0]))] == ["first", "second"]
    seen = {}
    looked = Fused(lambda layer, array: seen.update({layer.name: array.copy()}) is None, pytest.fail)
    executor.run([F32([0, np.log(3)])], observer=looked)
    np.testing.assert_allclose(seen["first"][-2:], [0.75, 0.25], 1e-6)  # as they lie, the last one first


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn"])
def test_a_layer_can_be_calculated_again_from_what_it_has_read_and_from_other_arrays(engine, tmp_path):
    """In a body of three iterations, where constants and what an observer has put there count."""
    inner, b = model(), model()
    p = anything(inner, "f4", (2,))
    share = named(inner, inner.one("SoftMax-1", p, axis=0), "share")
    y = named(inner, inner.one("MatMul-1", share, inner.constant(F32([[1, 2], [3, 4]])), **PLAIN), "product")
    (last,) = loop(b, inner, i64(b, 3), [(p, anything(b, "f4", (2,)))], [y], [(y, p)])
    b.result(last)
    seen = []

    def observer(event):
        if event.layer.name == "share":
            return F32([1, 10])
        if event.layer.name != "product":
            return None
        calculation = event.calculation
        assert calculation.op.name == "MatMul-1"
        assert calculation.attributes["transpose_a"] is False
        first, second = calculation.inputs
        with pytest.raises(ValueError, match="read-only"):
            first[...] = 0
        (other,) = calculation([np.float64([0.1, 0]), second.astype(np.float64)])
        seen.append((first.tolist(), second.tolist(), other.tolist(), other.dtype.name, event.array.tolist()))
        return None

    irrun.GraphExecutor(saved(b, tmp_path), engine=engine).run([F32([0, 0])], observer=observer)
    assert seen == [([1, 10], [[1, 2], [3, 4]], [0.1, 0.2], "float64", [31, 42])] * 3


def test_a_body_can_be_calculated_again_and_an_assignment_not(tmp_path):
    inner, b = model(), model()
    p = anything(inner, "f4", (1,))
    y = inner.one("Add-1", p, inner.constant(F32([1])), **ADD)
    (last,) = loop(b, inner, i64(b, 3), [(p, anything(b, "f4", (1,)))], [y], [(y, p)], label="repeat")
    b.result(last)
    seen = []

    def observer(event):
        if event.layer.name == "repeat":
            trips, condition, start = event.calculation.inputs
            seen.append([array.tolist() for array in event.calculation([trips - 1, condition, start + 10])])

    irrun.GraphExecutor(saved(b, tmp_path), engine="reference").run([F32([0])], observer=observer)
    assert seen == [[[12]]]
    executor = irrun.GraphExecutor(SAMPLES / "stateful-loop" / "model.xml", engine="reference")
    refused = []

    def stateful(event):
        try:
            event.calculation(event.calculation.inputs)
        except ValueError as error:
            refused.append(str(error))

    executor.run(executor.random_inputs(1), observer=stateful)
    assert refused
    assert all("assigns a variable" in message for message in refused)


@pytest.mark.parametrize("engine", ["numpy", "onednn"])
def test_sizes_of_inputs_that_grow_come_of_shapes_that_are_told(engine, tmp_path):
    """How many rows there are is known in a program for all lengths, but not all of the shape that it is read of."""
    b = model()
    x, picked = anything(b, "f4", (-1, -1, 4)), anything(b, "i4", (-1,))
    shape = named(b, b.one("ShapeOf-3", x, output_type="i64"), "shape")
    rows = named(b, b.one("Gather-8", shape, i64(b, [0]), i64(b, 0), batch_dims=0), "rows")
    b.result(b.one("Gather-8", x, picked, i64(b, 0), batch_dims=0))
    b.result(b.one("Concat-1", rows, i64(b, [1]), axis=0))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    seen = {}

    def observer(event):
        seen[event.layer.name] = event.array.tolist()
        (again,) = event.calculation(event.calculation.inputs)
        assert again.tolist() == event.array.tolist()

    for length in (1, 2, 3):
        executor.run([np.ones((1, length, 4), F32), np.int32([0])], observer=observer)
        assert (seen["shape"], seen["rows"]) == ([1, length, 4], [1])
        seen.clear()


@ENGINES
def test_shapes_are_told_once_that_is_there_which_they_are_of(engine, tmp_path):
    """Nobody but them reads it, so that only who looks at the run has it made."""
    b = model()
    product = named(
        b, b.one("MatMul-1", anything(b, "f4", (-1, 3)), b.constant(np.ones((3, 4), F32)), **PLAIN), "product"
    )
    turned = named(b, b.one("Transpose-1", product, i64(b, [1, 0])), "turned")
    shape = named(b, b.one("ShapeOf-3", turned, output_type="i64"), "shape")
    b.result(named(b, b.one("Broadcast-3", b.constant(F32(2)), shape, mode="numpy"), "filled"))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for rows in (2, 5, 2):
        seen = {}

        def observer(event, seen=seen):
            (again,) = event.calculation(event.calculation.inputs)
            assert again.tolist() == event.array.tolist()
            seen[event.layer.name] = event.array.shape

        executor.run([np.ones((rows, 3), F32)], observer=observer)
        assert seen == {"product": (rows, 4), "turned": (4, rows), "shape": (2,), "filled": (4, rows)}


@pytest.mark.parametrize("engine", ["numpy", "onednn"])
def test_a_conversion_of_an_input_to_what_is_computed_in_is_told(engine, tmp_path):
    b = model()
    wide = named(b, b.one("Convert-1", anything(b, "f2", (-1,)), destination_type="f32"), "wide")
    b.result(named(b, b.one("ReLU-1", wide), "positive"))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    assert told(executor, np.float16([-1, 2])) == [("wide", 0, [-1, 2]), ("positive", 0, [0, 2])]


@pytest.mark.parametrize("engine", ["numpy", "onednn"])
def test_a_chain_in_a_branch_whose_sizes_only_a_run_tells_makes_every_tensor(engine, tmp_path):
    """Such a branch waits with programs for sizes, and is computed by one for all sizes until these come again."""
    b, chosen, other = model(), model(), model()
    condition, x = anything(b, "?", ()), anything(b, "f4", (-1,))
    picked = b.one(
        "Gather-8",
        x,
        b.one("Squeeze-1", b.one("NonZero-3", x, output_type="i64"), i64(b, [0])),
        i64(b, 0),
        batch_dims=0,
    )
    negative = named(chosen, chosen.one("Negative-1", anything(chosen, "f4", (-1,))), "negative")
    total = named(chosen, chosen.one("Add-1", negative, chosen.constant(F32([1])), **ADD), "sum")
    bodies = [(chosen, named(chosen, chosen.one("ReLU-1", total), "positive")), (other, anything(other, "f4", (-1,)))]
    b.result(branch(b, condition, bodies, picked))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for numbers in ([3, 0, -3], [0, 2, 5, 0], [3, 0, -3], [3, 0, -3]):
        given = [np.bool_(True), F32(numbers)]
        assert [name for name, *_ in told(executor, *given)][-4:-1] == ["negative", "sum", "positive"]
        executor.run(given)
