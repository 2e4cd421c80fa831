"""Type conversion ops."""

import random

import ml_dtypes
import numpy as np
import pytest

from irrun.spec import NF4, Sizes, Tensor, Undecided, Violation, fresh, numpy_dtype
from irrun.spec.op import INTEGER
from irrun.spec.registry import registry

OPS = registry().ops
CONVERT, PROMOTE = OPS["Convert-1"], OPS["ConvertPromoteTypes-14"]
PACK, UNPACK = OPS["StringTensorPack-15"], OPS["StringTensorUnpack-15"]
NAN, INF = float("nan"), float("inf")


def convert(values, target, source="f32"):
    data = np.asarray(values).astype(numpy_dtype(source))
    result = CONVERT.kernel(data, destination_type=target, types={"T": source})
    assert result.dtype == numpy_dtype(target)
    return result


def codes(array):
    return array.view(np.uint8).tolist()


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("u8", [44, 212, 112, 255, 0]),
        ("i8", [44, -44, 112, -1, 0]),
        ("i16", [300, -300, 4464, -1, 0]),
        ("u16", [300, 65236, 4464, 65535, 0]),
        ("i32", [300, -300, 70000, -1, 0]),
        ("u32", [300, 4294966996, 70000, 4294967295, 0]),
        ("i64", [300, -300, 70000, -1, 0]),
        ("u64", [300, 2**64 - 300, 70000, 2**64 - 1, 0]),
        ("i4", [-4, 4, 0, -1, 0]),
        ("u4", [12, 4, 0, 15, 0]),
        ("u2", [0, 0, 0, 3, 0]),
        ("u1", [0, 0, 0, 1, 0]),
        ("u3", [4, 4, 0, 7, 0]),
        ("u6", [44, 20, 48, 63, 0]),
    ],
)
def test_floats_are_truncated_and_wrapped(target, expected):
    assert convert([300.7, -300.7, 70000.5, -1.5, -0.9], target).astype(object).tolist() == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("i8", [0, 0, 0, 0, 0, 0]),
        ("u16", [0, 0, 0, 0, 0, 0]),
        ("i32", [-(2**31)] * 6),
        ("u32", [2147483648, 0, 0, 0, 0, 0]),
        ("i64", [2147483648, -(2**63), -(2**63), -(2**63), -(2**63), -(2**63)]),
        ("u64", [2147483648, int(np.float32(1e19)), 0, 0, 0, 0]),
    ],
)
def test_what_does_not_fit(target, expected):
    assert convert([2.0**31, 1e19, -1e19, NAN, INF, -INF], target).tolist() == expected


@pytest.mark.parametrize("source", ["bf16", "f16", "f32", "f64", "f8e4m3", "f8e5m2"])
def test_any_float_becomes_an_integer(source):
    assert convert([1.75, -2.5, 0], "i32", source).tolist() == [1, -2, 0]


def test_integers_wrap():
    values = [300, -1, 2**40 + 5]
    assert convert(values, "u8", "i64").tolist() == [44, 255, 5]
    assert convert(values, "i4", "i64").astype(int).tolist() == [-4, -1, 5]
    assert convert(values, "u3", "i64").tolist() == [4, 7, 5]
    assert convert([-1], "u32", "i32").tolist() == [2**32 - 1]
    assert convert([2**64 - 1], "i64", "u64").tolist() == [-1]
    assert convert([7, -8], "u4", "i4").astype(int).tolist() == [7, 8]


def test_boolean_is_not_zero():
    assert convert([0.4, 0, -0.0, NAN], "boolean").tolist() == [True, False, False, True]
    assert convert([2**40, 0], "boolean", "i64").tolist() == [True, False]
    assert convert([True, False], "f16", "boolean").tolist() == [1, 0]
    assert convert([True, False], "u1", "boolean").tolist() == [1, 0]
    assert convert([7, 0], "boolean", "nf4").tolist() == [False, True]  # code 7 is 0.0, code 0 is -1.0


def test_floats_round_to_even_and_overflow():
    assert convert([65520.0, 65519.0, 1 + 2**-11, 1 + 3 * 2**-11], "f16").tolist() == [INF, 65504, 1, 1 + 2**-9]
    assert convert([1e39], "f32", "f64").tolist() == [INF]
    assert convert([464, 465, -INF, 448], "f8e4m3").astype(float).tolist()[0] == 448
    assert np.isnan(convert([465, INF], "f8e4m3").astype(float)).all()
    assert convert([61439, 61440], "f8e5m2").astype(float).tolist() == [57344, INF]
    assert convert([16777217], "f32", "i64").tolist() == [16777216]
    assert convert([70000], "f16", "i32").tolist() == [INF]


def test_f4e2m1_saturates_and_takes_nan_for_six():
    assert convert([100, -7, NAN, 0.75, 5, 2.5], "f4e2m1").astype(float).tolist() == [6, -6, 6, 1, 4, 2]


def test_f8e8m0_is_the_nearest_power_of_two():
    values = [0, 0.3, 0.75, 1, 1.5, 3, -1, 2.0**-127, 1.5 * 2.0**-127, 1.6 * 2.0**-127, INF, 3.3e38]
    assert codes(convert(values, "f8e8m0")) == [0, 125, 126, 127, 128, 128, 0, 0, 0, 1, 254, 254]
    assert codes(convert([NAN], "f8e8m0")) == [255]
    assert convert([0.5, 8], "f32", "f8e8m0").tolist() == [0.5, 8]


def test_nf4_takes_the_nearest_code():
    assert convert([0, 0.3, 0.5, 0.75, 2, -3, NAN], "nf4").tolist() == [7, 11, 12, 14, 15, 0, 0]
    data = np.arange(16, dtype=np.uint8)
    back = CONVERT.kernel(data, destination_type="f32", types={"T": "nf4"})
    np.testing.assert_array_equal(back, np.array(NF4, np.float32))
    assert convert(back, "nf4").tolist() == data.tolist()


def test_every_type_converts_to_every_other():
    types = sorted(CONVERT.types["T"] - {"string"})
    for source in types:
        for target in types:
            assert convert([1, 0, 1], target, source).shape == (3,)
            assert convert(np.zeros((0, 2)), target, source).shape == (0, 2)


def test_the_same_type_is_passed_on():
    data = np.array(["a", "bc"])
    assert CONVERT(data, destination_type="string") is data


def test_scalars_keep_their_rank():
    assert np.asarray(convert(1.5, "i32")).shape == ()
    assert np.asarray(convert(NAN, "i64")).shape == ()
    assert np.asarray(convert(3, "i4", "i32")).shape == ()


def test_sizes_convert_to_integers_and_to_floats_that_hold_them():
    size = fresh()
    data = np.array([[size, 3]], object)
    result = CONVERT.kernel(data, destination_type="i32", types={"T": "i64"})
    assert result.tolist() == [[size, 3]]
    assert CONVERT.kernel(data, destination_type="u64", types={"T": "i64"}).tolist() == [[size, 3]]
    assert CONVERT.kernel(np.array([fresh(1), 0], object), destination_type="boolean", types={"T": "i64"}).tolist() == [
        True,
        False,
    ]
    assert CONVERT.kernel(data, destination_type="f32", types={"T": "i64"}).tolist() == [[size, 3.0]]
    for target in ("f16", "i8"):
        with pytest.raises(Undecided):
            CONVERT.kernel(data, destination_type=target, types={"T": "i64"})


@pytest.mark.parametrize("target", sorted(INTEGER))
def test_sizes_wrap_as_integers_of_an_array_do(target):
    edges = sorted(
        {sign * 2**bit + step for bit in (0, 7, 8, 15, 16, 31, 32, 62) for sign in (1, -1) for step in (-1, 0)}
    )
    found = CONVERT.kernel(Sizes(edges), destination_type=target, types={"T": "i64"})
    assert found.items == tuple(convert(edges, target, "i64").tolist())


def test_conversions_are_inferred():
    shape = (fresh(), 3)
    assert CONVERT.infer([Tensor("f32", shape)], {"destination_type": "nf4"}).outputs == [Tensor("nf4", shape)]
    like = OPS["ConvertLike-1"].infer([Tensor("f32", shape), Tensor("u1", None)], {})
    assert like.outputs == [Tensor("u1", shape)]


def test_convert_1_c1_dynamic_destination():
    with pytest.raises(Violation, match="`destination_type` is dynamic"):
        CONVERT(np.zeros(1), destination_type="dynamic")


def test_convert_1_c2_strings():
    with pytest.raises(Violation, match="`data` is string, which does not convert to i32"):
        CONVERT(np.array(["1"]), destination_type="i32")
    with pytest.raises(Violation, match="`data` is f64, which does not convert to string"):
        CONVERT(np.zeros(1), destination_type="string")


def test_convert_like_takes_the_type_of_the_other():
    result = OPS["ConvertLike-1"](np.float32([1.7, -2.2]), np.array([], np.int8))
    assert result.tolist() == [1, -2]
    assert result.dtype == np.int8


def test_convertlike_1_c2_strings():
    with pytest.raises(Violation, match="`data` is string, which does not convert to f64"):
        OPS["ConvertLike-1"](np.array(["1"]), np.zeros(1))


# ConvertPromoteTypes


def promoted(a, b, a_rank=1, b_rank=1, **attrs):
    tensors = [Tensor(a, (1,) * a_rank), Tensor(b, (1,) * b_rank)]
    first, second = PROMOTE.infer(tensors, PROMOTE.defaults | attrs).outputs
    assert first.type == second.type
    return first.type


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("i8", "f32", "f32"),
        ("i32", "u8", "i32"),
        ("f16", "f32", "f32"),
        ("boolean", "u8", "u8"),
        ("f8e4m3", "boolean", "f8e4m3"),
        ("boolean", "boolean", "boolean"),
        ("u8", "u32", "u32"),
        ("i64", "u32", "i64"),
        ("i4", "u1", "i4"),
        ("f8e4m3", "bf16", "bf16"),
        ("i32", "f64", "f64"),
    ],
)
def test_safe_promotions(a, b, expected):
    assert promoted(a, b) == promoted(b, a) == expected
    assert promoted(a, b, promote_unsafe=True) == expected


UNSAFE = [
    ("f16", "i64", "f16"),
    ("f64", "u64", "f64"),
    ("i8", "u8", "i16"),
    ("f16", "bf16", "f32"),
    ("f8e4m3", "f8e5m2", "f16"),
    ("u64", "i8", "f32"),
    ("i16", "u32", "i64"),
]


@pytest.mark.parametrize(("a", "b", "expected"), UNSAFE)
def test_unsafe_promotions(a, b, expected):
    assert promoted(a, b, promote_unsafe=True) == promoted(b, a, promote_unsafe=True) == expected


def test_scalars_take_the_type_of_tensors_as_in_pytorch():
    attrs = {"promote_unsafe": True, "pytorch_scalar_promotion": True}
    assert promoted("i64", "u8", 0, 1, **attrs) == "u8"
    assert promoted("u8", "i64", 1, 0, **attrs) == "u8"
    assert promoted("f16", "i8", 0, 1, **attrs) == "f16"
    assert promoted("i8", "u8", 0, 0, **attrs) == "i16"
    assert promoted("i32", "i64", 0, 1, pytorch_scalar_promotion=True) == "i64"
    assert promoted("u8", "i16", 0, 1, pytorch_scalar_promotion=True) == "i16"
    assert promoted("f32", "f64", 0, 1, pytorch_scalar_promotion=True) == "f64"


def test_a_promotion_of_unknown_rank_has_an_unknown_type():
    attrs = PROMOTE.defaults | {"pytorch_scalar_promotion": True}
    first, _ = PROMOTE.infer([Tensor("i32", None), Tensor("i64", (1,))], attrs).outputs
    assert first.type == "dynamic"


@pytest.mark.parametrize(("a", "b", "common"), [("i8", "f32", "f32"), ("boolean", "u8", "u8"), ("i8", "i8", "i8")])
def test_a_rank_does_not_matter_to_types_of_two_kinds(a, b, common):
    attrs = PROMOTE.defaults | {"pytorch_scalar_promotion": True}
    found = PROMOTE.infer([Tensor(a, None), Tensor(b, ())], attrs).outputs
    assert [tensor.type for tensor in found] == [common, common]


def test_convertpromotetypes_14_c1_types_of_two_kinds_of_unknown_rank():
    attrs = PROMOTE.defaults | {"pytorch_scalar_promotion": True}
    with pytest.raises(Violation, match="f16 and i64 have no common type"):
        PROMOTE.infer([Tensor("f16", None), Tensor("i64", ())], attrs)


def test_promotion_converts_both():
    a, b = PROMOTE(np.int8([-1, 2]), np.array([1.5], ml_dtypes.bfloat16))
    assert a.dtype == b.dtype == ml_dtypes.bfloat16
    assert a.astype(float).tolist() == [-1, 2]
    a, b = PROMOTE(np.int8([-1]), np.uint8([255]), promote_unsafe=True)
    assert (a.tolist(), b.tolist(), b.dtype) == ([-1], [255], np.int16)


@pytest.mark.parametrize(("a", "b", "expected"), UNSAFE)
def test_convertpromotetypes_14_c1_unsafe(a, b, expected):
    with pytest.raises(Violation, match=f"{a} and {b} have no common type that holds the values of both safely"):
        promoted(a, b)


@pytest.mark.parametrize(("scalar", "tensor"), [("i64", "u8"), ("i64", "i32"), ("u8", "i8"), ("i8", "u16")])
def test_convertpromotetypes_14_c1_scalar_that_does_not_fit(scalar, tensor):
    with pytest.raises(Violation, match="no common type"):
        promoted(scalar, tensor, 0, 1, pytorch_scalar_promotion=True)


def test_convertpromotetypes_14_c2_target_that_is_no_type_of_numbers():
    with pytest.raises(Violation, match="`u64_integer_promotion_target` is dynamic"):
        promoted("u64", "i8", promote_unsafe=True, u64_integer_promotion_target="dynamic")
    assert promoted("u64", "i8", promote_unsafe=True, u64_integer_promotion_target="i64") == "i64"


def symbols(text):
    return np.frombuffer(text.encode(), np.uint8)


@pytest.mark.parametrize(
    ("begins", "ends", "text", "expected"),
    [
        ([0, 5], [5, 13], "IntelOpenVINO", ["Intel", "OpenVINO"]),
        ([0, 3, 3, 8, 9], [3, 3, 8, 9, 13], "OMZGenAI 2024", ["OMZ", "", "GenAI", " ", "2024"]),
        ([0, 8], [1, 9], "123456789", ["1", "9"]),
        ([[0, 5], [13, 16]], [[5, 13], [16, 21]], "IntelOpenVINOOMZGenAI", [["Intel", "OpenVINO"], ["OMZ", "GenAI"]]),
        ([0], [2], "é", ["é"]),
        ([], [], "", []),
    ],
)
def test_stringtensorpack_examples_of_the_specification(begins, ends, text, expected):
    bounds = np.array(begins, np.int32), np.array(ends, np.int32)
    got = PACK(*bounds, symbols(text))
    assert got.tolist() == expected
    if text != "123456789":
        again = UNPACK(got)
        assert [part.dtype for part in again] == [np.int32, np.int32, np.uint8]
        assert [part.tolist() for part in again] == [begins, ends, symbols(text).tolist()]


def test_stringtensorpack_keeps_bytes_that_are_no_text():
    raw = np.array([0xFF, 0x41, 0xC3], np.uint8)
    assert UNPACK(PACK(np.array([0]), np.array([3]), raw))[2].tolist() == raw.tolist()


def test_stringtensorunpack_counts_the_bytes_of_a_known_text():
    outputs = UNPACK.infer([Tensor("string", (2,), np.array(["é", "ab"]))], {}).outputs
    assert [tensor.shape for tensor in outputs] == [(2,), (2,), (4,)]
    assert len(UNPACK.infer([Tensor("string", (2,))], {}).outputs[2].shape) == 1


def refuse_pack(label, message, begins, ends):
    """StringTensorPack refuses these bounds into "ab" before the run and in it."""
    arrays = [np.array(begins), np.array(ends), symbols("ab")]
    for check in (lambda: PACK.infer([Tensor.of(array) for array in arrays], {}), lambda: PACK(*arrays)):
        with pytest.raises(Violation) as error:
            check()
        assert (error.value.label, error.value.message) == (label, message)


def test_stringtensorpack_15_c1_bound_outside_the_text():
    refuse_pack("C1", "`ends[0]` is 3, outside [0, 3)", [0], [3])
    refuse_pack("C1", "`begins[0]` is -1, outside [0, 3)", [-1], [2])


def test_stringtensorpack_15_c2_end_before_begin():
    refuse_pack("C2", "`begins[1]` is 2, but `ends[1]` is 1", [0, 2], [1, 1])


@pytest.mark.parametrize("alphabet", ["ab c", "aé", "a\U0001f600", "\udcff"])
def test_strings_of_ascii_and_others(alphabet):
    """Packed and unpacked as by a loop: empty ones, one that is much longer, and one character that is not ASCII."""
    draw = random.Random(len(alphabet))
    for longest in (0, 1, 5, 300):
        texts = ["".join(draw.choices(alphabet, k=draw.randint(0, 4))) for _ in range(11)] + ["a" * longest]
        pieces = [text.encode(errors="surrogateescape") for text in texts]
        begins, ends, symbols = UNPACK(np.array(texts).reshape(3, 4))
        assert symbols.tobytes() == b"".join(pieces)
        assert [a.dtype for a in (begins, ends, symbols)] == [np.int32, np.int32, np.uint8]
        sizes = np.cumsum([0, *map(len, pieces)])
        assert begins.ravel().tolist() == sizes[:-1].tolist()
        assert ends.ravel().tolist() == sizes[1:].tolist()
        packed = PACK(begins, ends, symbols)
        assert packed.tolist() == np.array(texts).reshape(3, 4).tolist()


def test_strings_whose_bytes_are_shared_and_in_any_order():
    symbols = np.frombuffer(b"abcdef", np.uint8)
    packed = PACK(np.int64([4, 0, 2, 6, 0]), np.int64([6, 6, 3, 6, 0]), symbols)
    assert packed.tolist() == ["ef", "abcdef", "c", "", ""]
