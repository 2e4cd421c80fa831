"""Models to be shown: what their weights, names and remarks are afterwards, and that they are models still."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import irrun
from irrun.tools.strip.stripping import strip

SAMPLES = Path(__file__).parents[3] / "samples"


def constants(model):
    return [model.weights.constant(layer) for layer in model.graph.walk() if layer.type == "Const"]


def built(array, type=None):
    with irrun.build() as g:
        x = g.Parameter("f32[1]", name="x")
        constant = g.Constant(array, type=type, name="secret")
        g.Result(constant if constant.type == "string" else g.Add(x, g.Convert(constant, destination_type="f32")))
    return g.model


@pytest.mark.parametrize("name", sorted(path.parent.name for path in SAMPLES.glob("*/model.xml")))
@pytest.mark.parametrize("weights", ["random", "zero"])
def test_a_sample_stays_a_model_of_the_same_ops(name, weights):
    model = irrun.read_model(SAMPLES / name / "model.xml")
    found = strip(model, weights=weights)
    assert irrun.validate(found.model).ok
    assert [layer.type for layer in found.model.graph.walk()] == [layer.type for layer in model.graph.walk()]
    kept = {layer.name for layer in model.graph.walk()} & {layer.name for layer in found.model.graph.walk()}
    assert not kept
    assert [info.shape is None for info in found.model.inputs] == [info.shape is None for info in model.inputs]
    executor = irrun.GraphExecutor(found.model, engine="reference")
    assert len(executor.inputs) == len(model.inputs)


def test_floats_have_the_same_mean_spread_range_and_zeros():
    array = np.random.default_rng(1).normal(3, 2, 4000).astype(np.float32)
    array[:400] = 0
    (found,) = (a for a in constants(strip(built(array)).model) if a.size == 4000)
    assert int((found == 0).sum()) == 400
    assert found[found != 0].mean() == pytest.approx(array[array != 0].mean(), rel=0.02)
    assert found[found != 0].std() == pytest.approx(array[array != 0].std(), rel=0.05)
    assert found.min() >= array.min()
    assert found.max() <= array.max()
    assert not np.isin(found[found != 0], array[array != 0]).mean() > 0.01


@pytest.mark.parametrize(
    ("array", "type"),
    [
        (np.array([np.nan, np.inf, -1, 2, 0, 0, 5], np.float16), None),
        (np.arange(-50, 50, dtype=np.int64), None),
        (np.array([-8, 7, 0, 0, 3] * 5, ml_dtypes.int4), None),
        (np.array([-1, 3, 0, 1] * 50, np.int8), None),
        (np.array([2**64 - 1, 0, 5] * 50, np.uint64), None),
        (np.array([1e308, -1e308, 0, 3e307] * 50), None),
        (np.array([1, 2, 0.5, 0] * 5, ml_dtypes.bfloat16), None),
        (np.array([1, 2, 0.5, 0] * 5, ml_dtypes.float8_e4m3fn), None),
        (np.array([], np.float32), None),
        (np.array([True, False]), None),
    ],
)
def test_any_type_stays_in_its_range(array, type):
    (found,) = (a for a in constants(strip(built(array, type)).model) if a.size == array.size)
    assert found.dtype == array.dtype
    numbers, before = found.astype(float), array.astype(float)
    assert (~np.isfinite(numbers)).sum() == (~np.isfinite(before)).sum()
    assert (numbers == 0).sum() == (before == 0).sum()
    if array.size:
        assert np.nanmin(numbers) >= np.nanmin(before)
        assert np.nanmax(numbers) <= np.nanmax(before)


@pytest.mark.parametrize(
    "array",
    [
        np.linspace(-2, 3, 63, dtype=np.float32) ** 3,
        np.linspace(3, -2, 63, dtype=np.float16),
        np.array([-np.inf, -1, -0.5, 2, 7, np.inf]),
        np.arange(100, dtype=np.int64),
        np.arange(-5, 300, 3, dtype=np.int32)[::-1],
    ],
)
def test_boundaries_rise_or_fall_again_and_are_distinct(array):
    with irrun.build() as g:
        g.Result(g.Multiply(g.Constant(array), g.Constant(array[:1])))
    (found, _) = (layer for layer in strip(g.model).model.graph.walk() if layer.type == "Const")
    values = strip(g.model).model.weights.constant(found)
    assert (np.sign(np.diff(values)) == np.sign(array[-1] - array[0])).all()
    assert (values[0], values[-1], values.dtype) == (array[0], array[-1], array.dtype)
    if array.size - 1 != abs(array[-1] - array[0]):
        assert (values != array).any()


def test_offsets_do_not_fall():
    offsets = np.sort(np.random.default_rng(0).integers(0, 50, 200))
    with irrun.build() as g:
        g.Result(g.Abs(g.Constant(offsets)))
    (found,) = (layer for layer in strip(g.model).model.graph.walk() if layer.type == "Const")
    values = strip(g.model).model.weights.constant(found)
    assert (np.diff(values) >= 0).all()
    assert (values != offsets).any()


@pytest.mark.parametrize("turned", [1, -1])
@pytest.mark.parametrize("type", [np.float32, np.float16, np.int64])
def test_rows_in_order_are_in_order_again(type, turned):
    rows = np.sort(np.random.default_rng(5).normal(0, 99, (9, 20)).astype(type), -1)[:, ::turned]
    (found,) = constants(strip(built(rows)).model)
    assert (np.diff(found.astype(float)) * turned >= 0).all()
    assert (found != rows).mean() > 0.5


def test_texts_become_others_of_the_same_length():
    model = built(np.array(["password", "ab", ""]))
    (found,) = constants(strip(model).model)
    assert [len(text) for text in found.tolist()] == [8, 2, 0]
    assert "password" not in found.tolist()


def test_shapes_and_numbers_alone_are_kept():
    assert constants(strip(built(np.float32(0.125))).model)[0] == np.float32(0.125)
    assert constants(strip(built(np.int64([2, 3, 4]))).model)[0].tolist() == [2, 3, 4]


def test_names_are_the_same_again_in_one_model_and_others_in_another(tmp_path):
    loop = irrun.read_model(SAMPLES / "stateful-loop" / "model.xml")
    once, again = strip(loop), strip(loop)
    assert once.names == again.names
    assert len(once.model.variables) == len(loop.variables) == 1
    other = strip(built(np.float32([1, 2])))
    assert other.names["x"] != once.names["x"]


def test_remarks_and_comments_are_gone(tmp_path):
    path = tmp_path / "model.xml"
    text = (SAMPLES / "cnn" / "model.xml").read_text()
    assert "rt_info" in text
    path.write_text(text.replace("<edges>", "<!-- secret --><edges>").replace("<layers>", '<layers secret="1">'))
    path.with_suffix(".bin").write_bytes((SAMPLES / "cnn" / "model.bin").read_bytes())
    irrun.write_model(strip(irrun.read_model(path)).model, tmp_path / "out.xml")
    written = (tmp_path / "out.xml").read_text()
    assert "secret" not in written
    assert "rt_info" not in written
    assert "Convolution_47" not in written


def test_what_is_kept_is_the_same():
    model = irrun.read_model(SAMPLES / "cnn" / "model.xml")
    found = strip(model, weights="keep", names="keep")
    x = irrun.GraphExecutor(model).random_inputs(1)
    before, after = (irrun.GraphExecutor(made, engine="reference").run(x) for made in (model, found.model))
    assert before["probabilities"].tolist() == after["probabilities"].tolist()
    assert (found.names, found.constants) == ({}, 0)
