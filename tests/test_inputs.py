"""What a run is given in place of arrays: lists and arrays of Python objects, taken where nothing is lost."""

import numpy as np
import pytest
from ir_builder import Model

import irrun


def passed(given, type, shape, tmp_path):
    """What a model that gives its input back makes of `given`."""
    model = Model()
    model.result(model.layer("Convert", [model.parameter("x", type, shape)], [(type, shape)], destination_type=type)[0])
    (result,) = irrun.GraphExecutor(model.save(tmp_path)).run({"x": given}).values()
    return result


@pytest.mark.parametrize(
    ("given", "type", "dtype"),
    [
        ([1, 2], "i32", np.int32),
        ([1.0, -2.0], "i8", np.int8),
        ([True, False], "i64", np.int64),
        ([0.1, float("nan")], "f32", np.float32),
        ([float("-inf"), 1e300], "f64", np.float64),
        ([1.0, 0.0], "boolean", np.bool_),
        ([-(2.0**63), 2.0**62], "i64", np.int64),
    ],
)
def test_a_list_is_taken_as_the_declared_type(given, type, dtype, tmp_path):
    result = passed(given, type, (2,), tmp_path)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, np.array(given, dtype))


@pytest.mark.parametrize(
    ("given", "type", "message"),
    [
        ([1, 1.7], "i32", r"`x\[1\]` is 1.7, which i32 cannot hold"),
        ([float("nan"), 1], "i64", r"`x\[0\]` is nan, which i64 cannot hold"),
        ([0, float("inf")], "u8", r"`x\[1\]` is inf, which u8 cannot hold"),
        ([1.0, 256.0], "u8", r"`x\[1\]` is 256.0, which u8 cannot hold"),
        ([1, 256], "u8", r"`x\[1\]` is 256, which u8 cannot hold"),
        ([1, 2.0**63], "i64", r"`x\[1\]` is 9.22\d*e\+18, which i64 cannot hold"),
        ([1, 2.0**64], "u64", r"`x\[1\]` is 1.84\d*e\+19, which u64 cannot hold"),
        ([0.5, 1], "boolean", r"`x\[0\]` is 0.5, which boolean cannot hold"),
        ([1.5, 7], "i4", r"`x\[0\]` is 1.5, which i4 cannot hold"),
        ([1, 1e6], "f16", r"`x\[1\]` is 1000000.0, which f16 cannot hold"),
        ([16777217, 1], "f32", r"`x\[0\]` is 16777217, which f32 cannot hold"),
    ],
)
def test_an_element_that_the_declared_type_cannot_hold_is_named(given, type, message, tmp_path):
    with pytest.raises(irrun.InputError, match=f"^{message}$"):
        passed(given, type, (2,), tmp_path)


def test_an_element_of_a_matrix_and_a_scalar_are_named_by_their_place(tmp_path):
    with pytest.raises(irrun.InputError, match=r"`x\[1, 0\]` is 2.5, which i32 cannot hold"):
        passed([[1, 2], [2.5, 3]], "i32", (2, 2), tmp_path)
    with pytest.raises(irrun.InputError, match=r"`x` is 2.5, which i32 cannot hold"):
        passed(2.5, "i32", (), tmp_path)


def test_an_array_of_objects_that_are_text_is_text(tmp_path):
    result = passed(np.array(["a", "déjà vu", ""], object), "string", (3,), tmp_path)
    assert result.dtype.kind == "U"
    assert result.tolist() == ["a", "déjà vu", ""]


@pytest.mark.parametrize(
    ("given", "type"),
    [(["a", 1], "string"), (["a", None], "string"), (["a", b"b"], "string"), (["1", "2"], "f32"), ([1, 2], "i64")],
)
def test_other_arrays_of_objects_are_refused(given, type, tmp_path):
    with pytest.raises(irrun.InputError, match="input `x` is an array of dtype object, which the IR has no element"):
        passed(np.array(given, object), type, (2,), tmp_path)


@pytest.mark.parametrize("engine", ["auto", "numpy", "reference"])
def test_any_byte_but_0_of_a_boolean_is_true(engine, tmp_path):
    """As numpy has it, where bytes are viewed as booleans."""
    model = Model()
    mask = model.parameter("mask", "boolean", (6,))
    one, other = model.parameter("one", "f32", (6,)), model.parameter("other", "f32", (6,))
    model.result(model.layer("Select", [mask, one, other], [("f32", (6,))], auto_broadcast="numpy")[0])
    model.result(model.layer("LogicalNot", [mask], [("boolean", (6,))])[0])
    given = np.array([0, 1, 2, 255, 4, 128], np.uint8).view(np.bool_)
    executor = irrun.GraphExecutor(model.save(tmp_path), engine=engine)
    chosen, false = executor.run([given, np.ones(6, np.float32), np.zeros(6, np.float32)]).values()
    np.testing.assert_array_equal(chosen, [0, 1, 1, 1, 1, 1])
    np.testing.assert_array_equal(false.view(np.uint8), [1, 0, 0, 0, 0, 0])
    assert given.view(np.uint8).tolist() == [0, 1, 2, 255, 4, 128]


class Foreign:
    """An array of another library that has no way to numpy but DLPack."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


@pytest.mark.parametrize(
    "kind", [Foreign, np.ma.masked_array, lambda array: array.view(type("Own", (np.ndarray,), {}))]
)
def test_arrays_of_other_classes_are_taken_as_arrays(kind, tmp_path):
    given = np.array([1, 2], np.float32)
    result = passed(kind(given), "f32", (2,), tmp_path)
    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, given)


@pytest.mark.parametrize("way", ["__array__", "__dlpack__"])
def test_an_array_that_does_not_come_out_of_its_library(way, tmp_path):
    def fail(self, *args, **options):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    with pytest.raises(irrun.InputError, match=r"^input `x` is no array: can't convert cuda:0 device type"):
        passed(type("Tensor", (), {way: fail})(), "f32", (2,), tmp_path)


def test_masked_elements_have_no_number(tmp_path):
    message = r"1 elements of input `x` are masked: give numbers for them, array.filled\(0\)"
    with pytest.raises(irrun.InputError, match=message):
        passed(np.ma.masked_array(np.ones(2, np.float32), [0, 1]), "f32", (2,), tmp_path)
