"""The map of the .bin, quantized weights, and what constants hold."""

import os

import ml_dtypes
import numpy as np
import pytest
from ir_builder import Model
from run.compressed_models import constant, convert, packed

import irrun
from irrun.tools.inspect.values import read_values


def added(m, x, *constants):
    """x, with constants of its type and shape added."""
    for value in constants:
        (x,) = m.layer("Add", [x, value], [(x[2], x[3])], auto_broadcast="numpy")
    return x


def weights_of(folder, *arrays, shift=0):
    m = Model()
    x = m.parameter("x", "f32", (4,))
    held = []
    for number, array in enumerate(arrays):
        m.weights += b"\xa5" * shift
        held.append(convert(m, m.constant(array, name=f"w{number}"), "f32"))
    m.result(added(m, x, *held))
    return irrun.inspect(m.save(folder)).weights


def test_constants_stand_in_the_order_of_the_file(tmp_path):
    weights = weights_of(tmp_path, np.float32([1, 2, 3, 4]), np.float16([5]))
    assert [(w.path, w.offset, w.bytes, w.stored, w.computed, w.shape) for w in weights.constants] == [
        ("w0", 0, 16, "f32", "f32", (4,)),
        ("w1", 16, 2, "f16", "f32", (1,)),
    ]
    assert (weights.file_bytes, weights.bytes, weights.elements) == (18, 18, 5)
    assert weights.by_type() == {("f32", "f32", False): (1, 4, 16), ("f16", "f32", False): (1, 1, 2)}


def test_gaps_and_what_is_behind_the_last_constant_are_found(tmp_path):
    weights = weights_of(tmp_path, np.float32([1]), np.float32([2]), shift=3)
    assert [(gap.begin, gap.end) for gap in weights.gaps] == [(0, 3), (7, 10)]
    path = tmp_path / "model.bin"
    path.write_bytes(path.read_bytes() + b"rest")
    assert [gap.bytes for gap in irrun.inspect(tmp_path / "model.xml").weights.gaps] == [3, 3, 4]


def test_constants_in_one_place_are_shared_and_others_overlap(tmp_path):
    m = Model()
    x = m.parameter("x", "f32", (2,))
    m.weights = np.arange(4, dtype=np.float32).tobytes()
    places = [(0, 8), (0, 8), (4, 12)]
    held = [
        m.layer("Const", [], [("f32", (2,))], element_type="f32", shape="2", offset=str(begin), size=str(end - begin))[
            0
        ]
        for begin, end in places
    ]
    m.result(added(m, x, *held))
    weights = irrun.inspect(m.save(tmp_path)).weights
    assert weights.shared == 1
    assert [(part.begin, part.end) for part in weights.overlaps] == [(4, 8)]
    assert [(part.begin, part.end) for part in weights.gaps] == [(12, 16)]
    assert (weights.bytes, weights.elements) == (12, 4)


def test_equal_bytes_in_several_places_are_duplicates(tmp_path):
    weights = weights_of(tmp_path, np.float32([1, 2]), np.float32([1, 2]), np.float32([1, 3]), np.int32([1, 2]))
    assert [[weight.path for weight in group] for group in weights.duplicates] == [["w0", "w1"]]
    assert weights.duplicate_bytes == 8


@pytest.mark.parametrize(
    ("array", "counts"),
    [
        # f16 has 65504 at most and rounds from 65520 on to infinity; its least number is 2**-24, of half that remains 0
        (np.float32([65504, 65519.9, 65520, -1e30]), {"beyond_f16": 2}),
        (np.float32([2**-24, 1.01 * 2**-25, 2**-25, -1e-30]), {"flushed_by_f16": 2}),
        (np.float32([np.nan, np.inf, -np.inf, 0]), {"nans": 1, "infinities": 2, "zeros": 1}),
        (np.float64([1e300, 5e-324, 0, 1]), {"beyond_f16": 1, "flushed_by_f16": 1, "zeros": 1}),
        (np.float16([np.inf, 65504, 6e-8, 0]), {"infinities": 1, "zeros": 1}),
        (np.array([3e38, 1e-38, 1, np.nan], ml_dtypes.bfloat16), {"beyond_f16": 1, "flushed_by_f16": 1, "nans": 1}),
        (np.int64([2**40, 0, 1, 2]), {}),
        (np.zeros((0,), np.float32), {}),
    ],
)
def test_numbers_that_are_none_or_lost_by_f16_are_counted(tmp_path, array, counts):
    m = Model()
    m.result(m.constant(array))
    (weight,) = irrun.inspect(m.save(tmp_path)).weights.constants
    names = ("nans", "infinities", "zeros", "beyond_f16", "flushed_by_f16")
    assert {name: count for name in names if (count := getattr(weight.values, name))} == counts


def test_f16_does_to_numbers_what_is_counted():
    with np.errstate(all="ignore"):
        assert np.isinf(np.float32([65519.9, 65520]).astype(np.float16)).tolist() == [False, True]
        assert (np.float32([1.01 * 2**-25, 2**-25]).astype(np.float16) == 0).tolist() == [False, True]


@pytest.mark.parametrize(("type", "zero"), [("u4", "u4"), ("u8", "u8"), ("i8", None), ("nf4", None), ("f8e4m3", None)])
def test_codes_with_their_scales_are_one_weight(tmp_path, type, zero):
    m = Model()
    x = m.parameter("x", "f32", (3, 8))
    codes = constant(m, type, (3, 2, 4), packed(type, [1] * 24))
    value = convert(m, codes, "f16")
    if zero:
        shift = convert(m, constant(m, zero, (3, 2, 1), packed(zero, [8] * 6)), "f16")
        (value,) = m.layer("Subtract", [value, shift], [("f16", (3, 2, 4))], auto_broadcast="numpy")
    scale = m.constant(np.ones((3, 2, 1), np.float16), name="scale")
    (value,) = m.layer("Multiply", [value, scale], [("f16", (3, 2, 4))], auto_broadcast="numpy")
    (value,) = m.layer("Reshape", [value, m.constant(np.int64([3, 8]))], [("f16", (3, 8))], special_zero="false")
    m.result(added(m, x, convert(m, value, "f32")))
    weights = irrun.inspect(m.save(tmp_path)).weights
    quantized = [weight for weight in weights.constants if weight.quantization]
    assert len(quantized) == 1
    found = quantized[0].quantization
    assert (quantized[0].stored, quantized[0].computed, found.scale, found.group) == (type, "f32", "scale", 4)
    assert (found.zero_point is None) is (zero is None)
    parts = [weight.part_of for weight in weights.constants if weight.part_of]
    assert parts == [quantized[0].path] * (2 if zero else 1)
    zeros = 0 if zero is None else 3 if zero == "u4" else 6
    elements = 24 * (4 if type in ("u4", "nf4") else 8) // 8
    assert weights.by_type()[type, "f32", True] == (1, 24, elements + zeros + 12)


def test_codes_without_a_scale_are_no_quantized_weight(tmp_path):
    (weight,) = weights_of(tmp_path, np.int8([1, 2, 3, 4])).constants
    assert (weight.stored, weight.computed, weight.quantization) == ("i8", "f32", None)


def test_strings_and_packed_codes_are_read_as_bytes(tmp_path):
    m = Model()
    text = b"\2\0\0\0" + b"\0\0\0\0" + b"\1\0\0\0" + b"\3\0\0\0" + b"abc"
    for _ in range(2):
        m.result(constant(m, "string", (2,), text))
        m.result(constant(m, "u4", (3,), b"\x21\x03"))
    weights = irrun.inspect(m.save(tmp_path)).weights
    assert [weight.bytes for weight in weights.constants] == [len(text), 2] * 2
    assert len(weights.duplicates) == 2


def test_weights_are_not_read_unless_they_are_few_or_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("irrun.tools.inspect.inspection.MOST_READ", 7)
    m = Model()
    m.result(m.constant(np.float32([np.nan, 1])))
    path = m.save(tmp_path)
    unread, read = irrun.inspect(path), irrun.inspect(path, read_weights=True)
    assert (unread.weights.read, unread.provenance.weights) == (False, None)
    assert unread.weights.constants[0].values is None
    assert (read.weights.read, read.weights.constants[0].values.nans) == (True, 1)


def test_without_the_bin_the_xml_says_what_would_be_in_it(tmp_path):
    m = Model()
    m.result(m.constant(np.float32([1, 2])))
    path = m.save(tmp_path)
    path.with_suffix(".bin").unlink()
    found = irrun.inspect(path)
    assert [d.code for d in found.diagnostics] == ["E501"]
    assert (found.weights.elements, found.weights.bytes, found.weights.read, found.weights.gaps) == (2, 8, False, ())


def test_a_constant_beyond_the_end_leaves_the_others_readable(tmp_path):
    m = Model()
    m.result(m.constant(np.float32([1, 2])))
    m.result(m.constant(np.float32([3, 4])))
    path = m.save(tmp_path)
    path.with_suffix(".bin").write_bytes(m.weights[:12])
    found = irrun.inspect(path)
    assert [d.code for d in found.diagnostics] == ["E503"]
    assert [weight.values is None for weight in found.weights.constants] == [False, True]
    assert found.provenance.weights is None


@pytest.mark.parametrize("how", ["cut off", "written to"])
def test_a_bin_that_changes_while_it_is_read_is_an_error(how, tmp_path, monkeypatch):
    m = Model()
    m.result(added(m, m.parameter("x", "f32", (4,)), m.constant(np.float32([1, 2, 3, 4]))))
    path = m.save(tmp_path)
    weights = path.with_suffix(".bin")

    def after_a_change(*given):
        if how == "cut off":
            os.truncate(weights, 4)
        else:
            os.utime(weights, (0, 0))
        return read_values(*given)

    monkeypatch.setattr("irrun.tools.inspect.inspection.read_values", after_a_change)
    (found,) = irrun.inspect(path).diagnostics
    assert (found.code, found.message) == ("E502", f"`{weights}` was written to while it was read")
