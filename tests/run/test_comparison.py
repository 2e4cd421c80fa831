"""Engines held against the kernels of the ops: `engine="check"`."""

import warnings
from functools import partial

import ml_dtypes
import numpy as np
import pytest
from command_line import irrun as command
from differential.generate import case
from differential.graph import save

import irrun
from irrun.run.comparison import differing
from run.engines import Odd, after, executor, unchanged
from run.models import ADD, PLAIN, anything, i64, loop, model, saved
from run.test_program import SAMPLES

F32 = np.float32
BF16 = partial(np.array, dtype=ml_dtypes.bfloat16)


WINDOW = {"strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0), "dilations": (1, 1)}


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda path: path.name)
def test_the_samples_pass(folder):
    outputs = irrun.GraphExecutor(folder / "model.xml", engine="check").run(np.load(folder / "inputs.npz"))
    expected = np.load(folder / "expected.npz")
    for name, array in outputs.items():
        np.testing.assert_allclose(array, expected[name], 1e-5, 1e-6, err_msg=name)


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_random_models_pass(first, tmp_path):
    for number in range(first, first + 20):
        one = case(47, number)
        arrays = [layer.array for layer in one.graph.walk() if layer.array is not None]
        arrays += [array for feed in one.feeds for array in feed.values()]
        if any(array.dtype.kind == "f" and not np.isfinite(array).all() for array in arrays):
            continue  # oneDNN makes a number of some NaN
        ours = irrun.GraphExecutor(save(one, tmp_path), engine="check")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for feed in one.feeds:
                try:
                    ours.run(feed)
                except irrun.ExecutionError as error:
                    if error.diagnostics[0].code != "E401":  # data that break a rule
                        raise


def wrong(outputs):
    outputs[0][1, 2] += 0.5


def layered(sizes=(2, 3)):
    """x -> Abs -> SoftMax `share` over the last axis."""
    b = model()
    y = b.one("SoftMax-1", b.one("Negative-1", anything(b, "f4", sizes)), axis=1)
    b.graph.layers[y.ref[0]].label = "share"
    b.result(y)
    return b


@pytest.mark.parametrize("sizes", [(2, 3), (-1, 3)])
def test_one_wrong_element_is_found(sizes, tmp_path, monkeypatch):
    path = saved(layered(sizes), tmp_path)
    ours = executor(path, [Odd(after("SoftMax-1", wrong))], monkeypatch, engine="check")
    with pytest.raises(irrun.ExecutionError) as error:
        ours.run([np.zeros((2, 3), F32)])
    (found,) = error.value.diagnostics
    assert found.code == "E604"
    assert found.layer.name == "share"
    assert 'name="share"' in path.read_text().split("\n")[found.line - 1]
    assert found.message == (
        f"output 0 of {found.layer} is 0.8333333730697632 at [1, 2] by the engine odd, "
        "but 0.3333333432674408 by the kernels of its ops"
    )
    assert not found.notes
    assert "run with --engine reference" in found.help


def test_layers_that_are_computed_together_are_listed(tmp_path, monkeypatch):
    b = model()
    y = b.one("MatMul-1", anything(b, "f4", (2, 2)), b.constant(np.eye(2, 3, dtype="f4")), **PLAIN)
    y = b.one("ReLU-1", b.one("Add-1", y, b.constant(F32([1, 2, 3])), **ADD))
    for label, place in (("product", 0), ("sum", 2), ("positive", 3)):
        b.graph.layers[y.ref[0] - 3 + place].label = label
    b.result(y)
    ours = executor(saved(b, tmp_path), [Odd(after("MatMul-1", wrong))], monkeypatch, engine="check")
    with pytest.raises(irrun.ExecutionError, match=r"E604.*is 3.5 at \[1, 2\] by the engine odd, but 3.0 ") as error:
        ours.run([np.zeros((2, 2), F32)])
    notes = [note.message for note in error.value.diagnostics[0].notes]
    assert [note.partition(",")[0] for note in notes] == [
        "computed together: MatMul-1",
        "computed together: Add-1",
        "computed together: ReLU-1",
    ]


def test_a_number_that_onednn_makes_of_nan_is_not_called_a_mistake(tmp_path):
    b = model()
    b.result(b.one("ReLU-1", b.one("MatMul-1", anything(b, "f4", (2, 2)), b.constant(np.eye(2, dtype="f4")), **PLAIN)))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine="check")
    with pytest.raises(irrun.ExecutionError, match=r"E604.*by the engine onednn, but nan") as error:
        ours.run([F32([[1, np.nan], [0, 2]])])
    assert error.value.diagnostics[0].help.startswith("oneDNN may make a number of the NaN")


def test_the_first_layer_that_is_wrong_is_named_and_not_those_behind_it(tmp_path, monkeypatch):
    b = model()
    y = b.one("SoftMax-1", anything(b, "f4", (2, 3)), axis=1)
    b.graph.layers[y.ref[0]].label = "first"
    b.result(b.one("SoftMax-1", y, axis=0))
    ours = executor(saved(b, tmp_path), [Odd(after("SoftMax-1", wrong))], monkeypatch, engine="check")
    with pytest.raises(irrun.ExecutionError) as error:
        ours.run([np.zeros((2, 3), F32)])
    assert error.value.diagnostics[0].layer.name == "first"


def test_a_wrong_element_in_a_body_is_found(tmp_path, monkeypatch):
    inner, b = model(), model()
    p = anything(inner, "f4", (2, 3))
    y = inner.one("SoftMax-1", p, axis=1)
    inner.graph.layers[y.ref[0]].label = "inside"
    (last,) = loop(b, inner, i64(b, 2), [(p, anything(b, "f4", (2, 3)))], [y], [(y, p)])
    b.result(last)
    ours = executor(saved(b, tmp_path), [Odd(after("SoftMax-1", wrong))], monkeypatch, engine="check")
    with pytest.raises(irrun.ExecutionError, match=r"E604.*at \[1, 2\]") as error:
        ours.run([np.zeros((2, 3), F32)])
    assert error.value.diagnostics[0].layer.name == "inside"


def test_an_engine_that_is_right_is_asked_and_passes(tmp_path, monkeypatch):
    odd = Odd(unchanged)
    ours = executor(saved(layered(), tmp_path), [odd], monkeypatch, engine="check")
    (result,) = ours.run([np.zeros((2, 3), F32)]).values()
    np.testing.assert_allclose(result, np.full((2, 3), 1 / 3), 1e-6)
    assert {"SoftMax-1", "Negative-1"} <= {work.name for work in odd.works}


def lower(outputs):
    outputs[0][...] -= 1


def test_a_step_behind_a_sum_that_cancels_may_be_on_either_side(tmp_path, monkeypatch):
    """0.1 * x - 0.1 * x is 0 however x is rounded, but not where each product is rounded otherwise."""
    for numbers, right in ((1000, True), (1, True), (1001.5, False)):
        b = model()
        weights = b.constant(F32([[0.1], [-0.1]]) if right else F32([[0.1], [-0.10005]]))
        b.result(b.one("Floor-1", b.one("MatMul-1", anything(b, "f4", (1, 2)), weights, **PLAIN)))
        ours = executor(saved(b, tmp_path), [Odd(after("MatMul-1", lower))], monkeypatch, engine="check")
        if right:
            ours.run([np.full((1, 2), numbers, F32)])
        else:
            with pytest.raises(irrun.ExecutionError, match="E604"):
                ours.run([np.full((1, 2), numbers, F32)])


@pytest.mark.parametrize("name", ["Elu-1", "Gelu-2", "Gelu-7", "HSigmoid-5", "HSwish-4", "Mish-4"])
def test_what_is_left_beside_0_of_numbers_that_cancel_is_no_mistake(name, tmp_path):
    """Behind products oneDNN computes them by functions that are off by up to 1e-6 where all results are that small."""
    b = model()
    x = anything(b, "f4", (1, 4, 6, 6))
    product = b.one("Convolution-1", x, b.constant(np.full((8, 4, 1, 1), 0.01, F32)), **WINDOW)
    attrs = {"alpha": 1.0} if name == "Elu-1" else {}
    least = {"Elu-1": 0.0, "HSigmoid-5": -3.0, "HSwish-4": -3.0}.get(name, -5.5)
    b.result(b.one(name, b.one("Add-1", product, b.constant(np.full((1, 8, 1, 1), least, F32)), **ADD), **attrs))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine="check")
    rng = np.random.default_rng(3)
    for scale in (0, 1e-4, 1):
        ours.run([scale * rng.standard_normal((1, 4, 6, 6), F32)])


def test_warnings_come_once(tmp_path):
    b = model()
    table = anything(b, "f4", (5, 2))
    ids, segments = anything(b, "i4", (2,)), anything(b, "i4", (2,))
    b.feeds[0]["x2"][...] = [0, 1]
    b.result(b.one("EmbeddingSegmentsSum-3", table, ids, segments, b.constant(np.int32(2))))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine="check")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ours.run([np.ones((5, 2), F32), np.int32([0, 1]), np.int32([1, 0])])
    assert len(found) == 1


@pytest.mark.parametrize(
    ("expected", "found", "place"),
    [
        (F32([1, 2, 3]), F32([1, 2, 3.00005]), None),
        (F32([1, 2, 3]), F32([1, 2, 3.01]), (2,)),
        (F32([1e-6, 1000]), F32([2e-6, 1000]), None),  # a sum of what is a thousand
        (F32([1e-6, 1]), F32([1e-3, 1]), (0,)),
        (F32([np.nan, np.inf]), F32([np.nan, np.inf]), None),
        (F32([1, np.inf]), F32([1, -np.inf]), (1,)),
        (F32([1, np.nan]), F32([1, 0]), (1,)),
        (F32([1, 0]), F32([1, np.nan]), (1,)),
        (np.int32([5, 6]), np.int32([5, 7]), (1,)),
        (np.bool_([[True], [False]]), np.bool_([[True], [True]]), (1, 0)),
        (np.float16([1, 2]), np.float16([1.01, 2]), None),
        (np.float16([1, 2]), np.float16([1.1, 2]), (0,)),
        (BF16([1, 2]), BF16([1 + 2**-6, 2]), None),
        (BF16([1, 2]), BF16([-1, 2]), (0,)),
        (BF16([1, 2]), BF16([1, 2.5]), (1,)),
        (BF16([1, 2]), BF16([1.5, 3]), (0,)),
        (F32(2), F32(3), ()),
        (F32([1, 2]), F32([1, 2, 3]), ()),
        (np.zeros((0, 2), F32), np.zeros((0, 2), F32), None),
    ],
)
def test_how_far_numbers_may_lie_apart(expected, found, place):
    assert differing(expected, found) == place


def test_the_command_line(tmp_path):
    sample = SAMPLES[0]
    command("execute", sample / "model.xml", "--inputs", sample / "inputs.npz", "--engine", "check")
    assert "E604" in command("explain", "E604").stdout
