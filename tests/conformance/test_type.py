"""Type conversions against OpenVINO."""

import ml_dtypes
import numpy as np
from openvino import opset1, opset14, opset15

from conformance.harness import NARROW, Case, Const, Departure, conformance

FLOATS = np.float32([1.7, -1.7, 300.7, -300.7, 70000.5, 0, -0.0, 2.5, 1e-3])
INTEGERS = np.array([1, -1, 300, 70000, 0, 127, 128], np.int32)


def to(type):
    return lambda x: opset1.convert(x, type)


def there_and_back(type, back="f32"):
    return lambda x: opset1.convert(opset1.convert(x, type), back)


def promote(**attrs):
    return lambda a, b: opset14.convert_promote_types(a, b, **attrs)


NUMBERS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "boolean", "f16", "f64", "bf16")
SAFE, UNSAFE = promote(), promote(promote_unsafe=True)

WORDS = np.array([["ab", "", "é"], ["OpenVINO", "x y", "z"]])


def letters(text):
    return np.frombuffer(text.encode(), np.uint8)


CASES = [
    *(Case("Convert-1", f"f32 to {type}", to(type), [FLOATS]) for type in NUMBERS[:-1]),
    Case(
        "Convert-1",
        "f32 to bf16",
        to("bf16"),
        [FLOATS],
        deviates=Departure(
            "rounds down where the last bit that stays is 0; the reference rounds to the nearest",
            "destination_type = bf16; data is f32",
            NARROW,
        ),
        expected=[np.array([1.703125, -1.703125, 300, -300, 70144, 0, -0.0, 2.5, 1e-3], ml_dtypes.bfloat16)],
    ),
    *(Case("Convert-1", f"i32 to {type}", to(type), [INTEGERS]) for type in NUMBERS[:-1]),
    *(
        Case(
            "Convert-1",
            f"f32 beyond {type}, sizes unknown",
            to(type),
            [np.float32([1.7, -300.7, 300.7])],
            dynamic=True,
            deviates=Departure(
                "saturates; the reference wraps around",
                f"destination_type = {type}; data is f16, bf16, f32, f64; data is dynamic | data is f64; {beyond}",
            ),
            expected=[np.array([1, -44, 44]).astype(numpy)],
        )
        for type, numpy, beyond in (
            ("i8", np.int8, "data <= -129 | data >= 128"),
            ("u8", np.uint8, "data <= -1 | data >= 256"),
        )
    ),
    Case("Convert-1", "i32 to f32", to("f32"), [INTEGERS], dynamic=True),
    Case("Convert-1", "f16 to f32", to("f32"), [np.float16([1.5, 65504, 1e-7, np.inf])]),
    Case("Convert-1", "bf16 to f32", to("f32"), [np.array([1.5, 3e38, -2], ml_dtypes.bfloat16)]),
    Case("Convert-1", "boolean to i64", to("i64"), [np.array([True, False])]),
    Case(
        "Convert-1",
        "f16 infinity to i32",
        to("i32"),
        [np.float16([2.5, np.inf])],
        deviates=Departure(
            "takes 65504 for infinity; the reference converts infinity",
            "data is f16; destination_type = i16, u16, i32, u32, i64, u64; data has infinity",
        ),
        expected=[np.array([2, -(2**31)], np.int32)],
    ),
    Case("Convert-1", "NaN to i32", to("i32"), [np.float32([np.nan, np.inf, 3e9])]),
    Case("Convert-1", "NaN to u8", to("u8"), [np.float32([np.nan, np.inf, 3e9])]),
    Case("Convert-1", "overflow to f16", to("f16"), [np.float32([65520, -1e6, 65519])]),
    Case("Convert-1", "ties to f16", to("f16"), [np.float32([1 + 2**-11, 1 + 3 * 2**-11])]),
    Case("Convert-1", "a scalar", to("i32"), [np.float32(2.5)]),
    Case("Convert-1", "an empty tensor", to("i32"), [np.zeros((0, 3), np.float32)]),
    *(
        Case(
            "Convert-1",
            f"f32 to {type} and back",
            there_and_back(type),
            [np.float32([0.3, -5, 447, 1e-3, 16.5])],
        )
        for type in ("f8e4m3", "f8e5m2")
    ),
    Case(
        "Convert-1",
        "f32 to i64 beyond 32 bits",
        to("i64"),
        [np.float32([3e9])],
        deviates=Departure(
            "passes through i32; the reference converts to i64",
            "destination_type = i64; data is f16, bf16, f32, f64; data has numbers beyond i32",
        ),
        expected=[np.array([3_000_000_000])],
    ),
    *(
        Case(
            "Convert-1",
            f"i32 to {type} in a run",
            there_and_back(type, "i32"),
            [np.int32([1, -3, 9, 16])],
            deviates=Departure(
                "keeps 8 bits; the reference wraps around in 4",
                f"destination_type = {type}; {beyond}",
            ),
            expected=[np.int32(expected)],
        )
        for type, beyond, expected in (
            ("i4", "data < -8 | data > 7", [1, -3, -7, 0]),
            ("u4", "data < 0 | data > 15", [1, 13, 9, 0]),
        )
    ),
    Case(
        "Convert-1",
        "i32 to u1 in a run",
        there_and_back("u1", "i32"),
        [np.int32([1, 0, 3, 2])],
        deviates=Departure("crashes; the page has u1 as any type", "destination_type = u1"),
        expected=[np.int32([1, 0, 1, 0])],
        crashes=True,
    ),
    Case(
        "Convert-1",
        "i32 to bf16",
        to("bf16"),
        [np.int32([70000, 3])],
        deviates=Departure(
            "truncates the mantissa; the reference rounds to the nearest",
            "destination_type = bf16; data is i32; data > 256 | data < -256",
        ),
        expected=[np.array([70144, 3], ml_dtypes.bfloat16)],
    ),
    Case(
        "Convert-1",
        "NaN to boolean",
        to("boolean"),
        [np.float32([np.nan, 0])],
        deviates=Departure(
            "takes NaN for false; the page takes all but 0 for true, and so does the reference",
            "destination_type = boolean; data has nan",
        ),
        expected=[np.array([True, False])],
    ),
    Case("ConvertLike-1", "i32", opset1.convert_like, [FLOATS, Const(np.int32([0]))]),
    Case("ConvertLike-1", "f32", opset1.convert_like, [INTEGERS, Const(np.float32([0, 1]))], dynamic=True),
    Case("ConvertLike-1", "an input", opset1.convert_like, [FLOATS, np.zeros((2, 2), np.int8)]),
    Case("ConvertLike-1", "boolean", opset1.convert_like, [INTEGERS, Const(np.array(True))]),
    Case("ConvertPromoteTypes-14", "i8 and f32", SAFE, [np.int8([1, -2]), np.float32([0.5])]),
    Case("ConvertPromoteTypes-14", "i32 and u8", SAFE, [np.int32([1, -2]), np.uint8([200])]),
    Case("ConvertPromoteTypes-14", "boolean and i32", SAFE, [np.array([True]), np.int32([7])], dynamic=True),
    Case("ConvertPromoteTypes-14", "i8 and u8", UNSAFE, [np.int8([1, -2]), np.uint8([200])]),
    Case("ConvertPromoteTypes-14", "u64 and i8", UNSAFE, [np.uint64([5]), np.int8([-3])]),
    Case("ConvertPromoteTypes-14", "f16 and i32", UNSAFE, [np.float16([5]), np.int32([-3])]),
    Case(
        "ConvertPromoteTypes-14",
        "a scalar as in PyTorch",
        promote(promote_unsafe=True, pytorch_scalar_promotion=True),
        [np.int32(5), np.int8([-3])],
    ),
    Case("StringTensorUnpack-15", "two dimensions", opset15.string_tensor_unpack, [WORDS]),
    Case("StringTensorUnpack-15", "one dimension", opset15.string_tensor_unpack, [WORDS[0]]),
    Case("StringTensorUnpack-15", "a scalar", opset15.string_tensor_unpack, [WORDS[1, 0]]),
    Case("StringTensorUnpack-15", "dynamic", opset15.string_tensor_unpack, [WORDS], dynamic=True),
    Case(
        *("StringTensorUnpack-15", "nothing in a later run", opset15.string_tensor_unpack, [np.array(["ab"])]),
        dynamic=True,
        later=[[np.array([], "U2")]],
        deviates=Departure(
            "keeps what it had where there are no strings; the page has one element for each",
            "data is empty; (an earlier run had strings)",
        ),
        expected=[
            *(np.int32([0]), np.int32([2]), np.uint8([97, 98])),
            *(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.uint8)),
        ],
    ),
    Case(
        "StringTensorPack-15", "one dimension", opset15.string_tensor_pack, [[0, 5], [5, 13], letters("IntelOpenVINO")]
    ),
    Case(
        "StringTensorPack-15",
        "two dimensions",
        opset15.string_tensor_pack,
        [[[0, 3], [3, 3]], [[3, 3], [5, 4]], letters("abcdef")],
    ),
    Case("StringTensorPack-15", "i32", opset15.string_tensor_pack, [np.int32([0]), np.int32([2]), letters("é")]),
    Case("StringTensorPack-15", "dynamic", opset15.string_tensor_pack, [[0, 1], [1, 3], letters("abc")], dynamic=True),
]

CASES += [
    Case(
        "Convert-1",
        "i64 beyond i32 to boolean",
        to("boolean"),
        [np.array([2**40, 0])],
        deviates=Departure(
            "passes through i32, where 2**40 is 0; the page takes all but 0 for true",
            "destination_type = boolean; data is i64, u64; data has numbers beyond i32",
        ),
        expected=[np.array([True, False])],
    ),
    Case(
        "Convert-1",
        "the lowest i32 to boolean",
        to("boolean"),
        [np.array([-(2**31), 1 - 2**31, 0], np.int32)],
        deviates=Departure(
            "takes the lowest number for false; the page takes all but 0 for true",
            "destination_type = boolean; data is i32; data has the lowest number of its type",
        ),
        expected=[np.array([True, True, False])],
    ),
    Case(
        "Convert-1",
        "u32 beyond i32 to boolean",
        to("boolean"),
        [np.array([2**31, 2**31 - 1, 0], np.uint32)],
        deviates=Departure(
            "takes numbers beyond i32 for false; the page takes all but 0 for true",
            "destination_type = boolean; data is u32; data has numbers beyond i32",
        ),
        expected=[np.array([True, True, False])],
    ),
    Case(
        "Convert-1",
        "f64 beyond f32 to f32",
        to("f32"),
        [np.array([1e300, 0.5])],
        deviates=Departure(
            "clamps to the largest f32; the reference gives infinity",
            "destination_type = f32; data has numbers beyond f32",
        ),
        expected=[np.float32([np.inf, 0.5])],
    ),
    Case(
        "Convert-1",
        "u64 to i64",
        to("i64"),
        [np.array([2**63 + 5, 3], np.uint64)],
        deviates=Departure(
            "passes through i32; the reference keeps the bits",
            "destination_type = i64; data is u64; data has numbers beyond i32",
        ),
        expected=[np.array([-(2**63) + 5, 3])],
    ),
    Case("Convert-1", "u32 beyond i32 to f32", to("f32"), [np.array([3_000_000_000, 1], np.uint32)]),
    Case("Convert-1", "i64 beyond i32 to f32", to("f32"), [np.array([2**40, -5])]),
    Case("Convert-1", "i64 beyond i32 to i32", to("i32"), [np.array([2**40 + 5, -(2**31) - 1])]),
    Case("Convert-1", "f32 below 0 to u8", to("u8"), [np.float32([-0.4, -1, 256])]),
    Case("Convert-1", "f16 to i8", to("i8"), [np.float16([np.nan, 300, -1.5])]),
    Case(
        "StringTensorPack-15",
        "constants",
        opset15.string_tensor_pack,
        [Const(np.array([0, 2])), Const(np.array([2, 3])), Const(letters("abc"))],
        deviates=Departure("refuses constants; the page has inputs of any kind", "layer is constant"),
        expected=[np.array(["ab", "c"])],
    ),
]

test_agrees_with_openvino = conformance(CASES)
