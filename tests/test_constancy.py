"""Layers that OpenVINO computes before a run, where it takes them otherwise than in one."""

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.engines import ENGINES

WRAPS = "OpenVINO counts negative indices from the end, and so does irrun"


def gathering(folder, version, data, indices):
    """A Gather of a constant, or of what a Parameter of the shape `data` gets."""
    m = Model()
    constant = isinstance(data, np.ndarray)
    x = m.constant(data) if constant else m.parameter("x", "f32", data)
    batched = {} if version == "opset1" else {"batch_dims": "0"}
    rank = data.shape if constant else data
    shape = (*indices.shape, *rank[1:])
    (output,) = m.layer(
        "Gather", [x, m.constant(indices), m.constant(np.array(0))], [("f32", shape)], version, **batched
    )
    m.result(m.layer("Abs", [output], [("f32", shape)])[0])
    return m.save(folder)


def said(path):
    return [(d.code, d.severity, d.label) for d in irrun.validate(path).diagnostics]


@pytest.mark.parametrize(("version", "label"), [("opset1", "C2"), ("opset7", "C4")])
@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "onednn"])
def test_constant_indices_into_a_constant_count_from_the_end(version, label, engine, tmp_path):
    data = np.arange(10, 15, dtype=np.float32)
    path = gathering(tmp_path, version, data, np.int32([0, -1, -5, 4]))
    (found,) = irrun.validate(path).diagnostics
    assert (found.code, found.label) == ("W951", label)
    assert found.help.startswith(WRAPS)
    (result,) = irrun.GraphExecutor(path, engine=engine).run([]).values()
    assert result.tolist() == [10, 14, 10, 14]


@pytest.mark.parametrize(("version", "label"), [("opset1", "C2"), ("opset7", "C4")])
def test_one_negative_index_counts_from_the_end_where_the_size_is_known(version, label, tmp_path):
    path = gathering(tmp_path, version, (5,), np.int32([-2]))
    assert said(path) == [("W951", "warning", label)]
    (result,) = irrun.GraphExecutor(path).run([np.arange(10, 15, dtype=np.float32)]).values()
    assert result.tolist() == [13]


@pytest.mark.parametrize(("version", "label"), [("opset1", "C2"), ("opset7", "C4")])
def test_other_negative_indices_are_errors(version, label, tmp_path):
    """OpenVINO gives zeros for them."""
    error = [("E401", "error", label)]
    assert said(gathering(tmp_path, version, (5,), np.int32([0, -1]))) == error
    assert said(gathering(tmp_path, version, (-1,), np.int32([-1]))) == error
    assert said(gathering(tmp_path, version, np.zeros(5, np.float32), np.int32([0, -6]))) == error
    assert said(gathering(tmp_path, version, np.zeros(5, np.float32), np.int32([5]))) == error


@pytest.mark.parametrize(("version", "label"), [("opset1", "C2"), ("opset7", "C4")])
@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "onednn"])
def test_negative_indices_into_shapes_count_from_the_end(version, label, engine, tmp_path):
    """As torch.tril is exported."""
    m = Model()
    x = m.parameter("x", "f32", (-1, -1))
    shape = m.layer("ShapeOf", [x], [("i64", (2,))], "opset3", output_type="i64")[0]
    batched = {} if version == "opset1" else {"batch_dims": "0"}
    given = [shape, m.constant(np.int64([-1, -2])), m.constant(np.int64(0))]
    m.result(m.layer("Gather", given, [("i64", (2,))], version, **batched)[0])
    path = m.save(tmp_path)
    assert said(path) == [("W951", "warning", label)]
    ours = irrun.GraphExecutor(path, engine=engine)
    for sizes in ((3, 5), (4, 2)):
        (result,) = ours.run([np.zeros(sizes, np.float32)]).values()
        assert tuple(result) == sizes[::-1]


def test_a_constant_that_is_too_large_to_be_read_before_the_run_is_one(tmp_path):
    data = np.arange(1 << 16, dtype=np.float32).reshape(-1, 2)
    path = gathering(tmp_path, "opset1", data, np.int32([-1]))
    assert said(path) == [("W951", "warning", "C2")]
    (result,) = irrun.GraphExecutor(path).run([]).values()
    assert result.tolist() == [[65534, 65535]]


@pytest.mark.parametrize("type", ["PriorBox", "PriorBoxClustered"])
@pytest.mark.parametrize(
    ("constants", "code"),
    [((True, True), "E303"), ((True, False), "W952"), ((False, True), "W952"), ((False, False), "W952")],
)
def test_sizes_of_two_types_are_refused_where_both_are_constants(type, constants, code, tmp_path):
    m = Model()
    sizes = [np.int32([2, 3]), np.int64([32, 48])]
    given = [
        m.constant(size) if constant else m.parameter(f"x{number}", ("i32", "i64")[number], (2,))
        for number, (size, constant) in enumerate(zip(sizes, constants, strict=True))
    ]
    attrs = {"min_size": "16", "variance": "0.1,0.1,0.2,0.2"} if type == "PriorBox" else {"width": "16", "height": "16"}
    (boxes,) = m.layer(type, given, [("f32", (2, -1))], "opset1", offset="0.5", step="16", **attrs)
    m.result(boxes)
    assert [d.code for d in irrun.validate(m.save(tmp_path)).diagnostics if d.code != "W931"] == [code]


@pytest.mark.parametrize(
    "axis", [np.float32(0.5), np.int64([0, 1]), np.int64(7)], ids=["of another type", "of two elements", "beyond"]
)
def test_what_is_no_axis_is_told_as_ever(axis, tmp_path):
    m = Model()
    given = [m.parameter("x", "f32", (5,)), m.constant(np.int64([-1])), m.constant(axis)]
    m.result(m.layer("Gather", given, [("f32", (1,))], "opset1")[0])
    assert {severity for _, severity, _ in said(m.save(tmp_path))} == {"error"}
