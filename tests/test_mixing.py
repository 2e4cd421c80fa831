"""Inputs of several floating-point types where the specification has one: one warning, computed in the widest."""

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.spec.registry import registry

ENGINES = pytest.mark.parametrize("engine", ["reference", "numpy", "auto", "check"])
X = np.float16([[-2.0, 1.0, -4.0]])
SLOPE = np.float32([0.0001, 3.0, 0.30001])


def slopes(*counts, type="f32"):
    """A chain of PReLUs on f16 data; their slopes are f32."""
    b = Model()
    value = b.parameter("x", "f16", (1, 3))
    for number in range(*counts):
        slope = b.constant(SLOPE.astype({"f32": np.float32, "i32": np.int32}[type]))
        (value,) = b.layer("PReLU", [value, slope], [("f16", (1, 3))], name=f"prelu_{number}")
    b.result(value)
    return b


def test_one_layer(tmp_path):
    (found,) = irrun.validate(slopes(1).save(tmp_path)).diagnostics
    assert (found.code, found.severity, found.layer.name) == ("W933", "warning", "prelu_0")
    assert found.message == "`slope` is f32, but `data` is f16"
    assert found.help.startswith("computed in f32, as OpenVINO does")


@pytest.mark.parametrize(("count", "others"), [(2, "so does one more layer"), (5, "so do 4 more layers")])
def test_many_layers_are_one_warning(count, others, tmp_path):
    (found,) = irrun.validate(slopes(count).save(tmp_path)).diagnostics
    assert found.message == f"`slope` is f32, but `data` is f16; {others} (PReLU)"


def test_integers_are_still_an_error(tmp_path):
    (found,) = irrun.validate(slopes(1, type="i32").save(tmp_path)).diagnostics
    assert found.code == "E303"


@ENGINES
def test_nothing_is_rounded_on_the_way(engine, tmp_path):
    executor = irrun.GraphExecutor(slopes(1).save(tmp_path), engine=engine)
    (result,) = executor.run([X]).values()
    assert result.dtype == np.float16
    # 0.30001 as f16 is 0.300048828125, which gives -1.2002
    np.testing.assert_array_equal(result, np.float16([[-0.0002, 1.0, -1.20004]]))


@ENGINES
def test_slopes_that_only_the_run_knows(engine, tmp_path):
    b = Model()
    data, slope = b.parameter("x", "f16", (-1, 3)), b.parameter("slope", "f32", (3,))
    b.result(*b.layer("PReLU", [data, slope], [("f16", (-1, 3))]))
    executor = irrun.GraphExecutor(b.save(tmp_path), engine=engine)
    for rows in (1, 4):
        (result,) = executor.run([np.repeat(X, rows, 0), SLOPE]).values()
        np.testing.assert_array_equal(result, np.float16([[-0.0002, 1.0, -1.20004]] * rows))


@ENGINES
def test_an_observer_is_told_of_the_layers_alone(engine, tmp_path):
    b = Model()
    scores, deltas = b.parameter("scores", "f16", (1, 2, 1, 1)), b.parameter("deltas", "f32", (1, 4, 1, 1))
    size = b.constant(np.float16([100, 100, 1]))
    attrs = {"base_size": "16", "pre_nms_topn": "1", "post_nms_topn": "1", "nms_thresh": "0.7", "feat_stride": "16"}
    outputs = [("f16", (1, 5)), ("f16", (1,))]
    rows, found = b.layer(
        "Proposal", [scores, deltas, size], outputs, "opset4", "boxes", **attrs, min_size="1", ratio="1", scale="2"
    )
    b.result(rows)
    b.result(found)
    executor = irrun.GraphExecutor(b.save(tmp_path), engine=engine)
    events = []
    inputs = [np.float16([0.25, 0.75]).reshape(1, 2, 1, 1), np.zeros((1, 4, 1, 1), np.float32)]
    executor.run(inputs, observer=lambda event: events.append((event.layer.name, event.port, event.array.dtype)))
    type = "f2" if engine == "reference" else "f4"  # as declared, and as computed
    assert [event for event in events if event[0] == "boxes"] == [("boxes", 0, type), ("boxes", 1, type)]


def test_an_op_that_is_called():
    result = registry().ops["PReLU-1"](X, SLOPE)
    assert result.dtype == np.float16
    np.testing.assert_array_equal(result, np.float16([[-0.0002, 1.0, -1.20004]]))
