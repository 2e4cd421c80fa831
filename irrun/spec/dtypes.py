"""The element types of the IR: their names, widths and the numpy types that hold them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from irrun.records import NamedTuple


class ElementType(NamedTuple):
    """One element type.

    `name` is the spelling of attributes (`f32`), `precision` the spelling of ports (`FP32`), `bits` the width of one
    element in a .bin file; strings have no fixed width (0 bits).
    """

    name: str
    precision: str
    bits: int


ELEMENT_TYPES = {
    row[0]: ElementType(*row)
    for row in (
        ("dynamic", "UNSPECIFIED", 0),
        ("boolean", "BOOL", 8),
        ("bf16", "BF16", 16),
        ("f16", "FP16", 16),
        ("f32", "FP32", 32),
        ("f64", "FP64", 64),
        ("i4", "I4", 4),
        ("i8", "I8", 8),
        ("i16", "I16", 16),
        ("i32", "I32", 32),
        ("i64", "I64", 64),
        ("u1", "BIN", 1),
        ("u2", "U2", 2),
        ("u3", "U3", 3),
        ("u4", "U4", 4),
        ("u6", "U6", 6),
        ("u8", "U8", 8),
        ("u16", "U16", 16),
        ("u32", "U32", 32),
        ("u64", "U64", 64),
        ("nf4", "NF4", 4),
        ("f8e4m3", "F8E4M3", 8),
        ("f8e5m2", "F8E5M2", 8),
        ("string", "STRING", 0),
        ("f4e2m1", "F4E2M1", 4),
        ("f8e8m0", "F8E8M0", 8),
    )
}

PRECISIONS = {t.precision.lower(): t.name for t in ELEMENT_TYPES.values()} | {n: n for n in ELEMENT_TYPES}
"""Element type names by what a port's `precision` may say, in lower case."""

_WORDS = {
    "float": "f32",
    "float32": "f32",
    "half": "f16",
    "float16": "f16",
    "double": "f64",
    "float64": "f64",
    "bfloat16": "bf16",
    "bool": "boolean",
    "str": "string",
    "long": "i64",
    **{f"{sign}int{bits}": f"{sign or 'i'}{bits}" for sign in ("", "u") for bits in (4, 8, 16, 32, 64)},
    **{f"{sign}int{bits}_t": f"{sign or 'i'}{bits}" for sign in ("", "u") for bits in (4, 8, 16, 32, 64)},
}
"""Element type names by what C, numpy and torch call them."""


def meant_type(text: str) -> str | None:
    """The element type that a port's precision or a word of C, numpy or torch stands for, None where it is neither.

    >>> meant_type("FP16"), meant_type("torch.int64"), meant_type("number")
    ('f16', 'i64', None)
    """
    lower = text.strip().lower()
    return PRECISIONS.get(lower) or _WORDS.get(lower.removeprefix("np.").removeprefix("torch."))


class FloatFormat(NamedTuple):
    """The numbers of a floating-point type: the relative distance of one to the next, the `largest` finite one, and
    the least ones above zero: that there are, and, `normal`, that have all their digits."""

    digit: float
    largest: float
    least: float
    normal: float


FLOAT_FORMATS = {
    "f64": FloatFormat(2.0**-52, float.fromhex("0x1.fffffffffffffp1023"), 2.0**-1074, 2.0**-1022),
    "f32": FloatFormat(2.0**-23, float.fromhex("0x1.fffffep127"), 2.0**-149, 2.0**-126),
    "f16": FloatFormat(2.0**-10, 65504.0, 2.0**-24, 2.0**-14),
    "bf16": FloatFormat(2.0**-7, float.fromhex("0x1.fep127"), 2.0**-133, 2.0**-126),
    "f8e4m3": FloatFormat(2.0**-3, 448.0, 2.0**-9, 2.0**-6),
    "f8e5m2": FloatFormat(2.0**-2, 57344.0, 2.0**-16, 2.0**-14),
}
"""By name. Those of 4 and 8 bits that are scales or codes are not among them."""

CODES = {"u1", "u3", "u6", "nf4"}
"""Types without a numpy counterpart: arrays of them hold the raw codes, one uint8 an element."""

_NUMPY = {
    "boolean": "?",
    **{f"{kind}{bits}": f"{kind}{bits // 8}" for kind in "iu" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"f{bits // 8}" for bits in (16, 32, 64)},
    **dict.fromkeys(CODES, "u1"),
    "string": "U",
}
_ML_DTYPES = {
    "bf16": "bfloat16",
    "i4": "int4",
    "u2": "uint2",
    "u4": "uint4",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "f8e8m0": "float8_e8m0fnu",
    "f4e2m1": "float4_e2m1fn",
}

WIDER = dict.fromkeys(_ML_DTYPES, "f32") | {"i4": "i8", "u2": "u8", "u4": "u8"}
"""The wider types that numpy has itself, which hold all elements of those that it has no name for."""


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy type of arrays whose element type is `name`; `string` is unicode of any length.

    Raises KeyError for `dynamic`, which no array has.

    >>> numpy_dtype("f16"), numpy_dtype("bf16")
    (dtype('float16'), dtype(bfloat16))
    """
    if name in _ML_DTYPES:
        import ml_dtypes  # 15 ms that models without such a type need not pay

        return np.dtype(getattr(ml_dtypes, _ML_DTYPES[name]))  # type: ignore[no-any-return]
    dtype: np.dtype[Any] = np.dtype(_NUMPY[name])
    return dtype


@cache
def element_type(dtype: np.dtype[Any]) -> str:
    """The element type that an array of `dtype` is taken for; codes of u1, u3, u6 and nf4 read as u8.

    Raises TypeError for a numpy type that the IR has no name for, such as complex numbers.

    >>> element_type(np.dtype(bool)), element_type(np.array(["a"]).dtype)
    ('boolean', 'string')
    """
    if dtype.kind == "U":
        return "string"
    for name in ("boolean", "f32", "i64", "i32", "f16", "f64", "u8", "i8", "i16", "u16", "u32", "u64", *_ML_DTYPES):
        if numpy_dtype(name) == dtype:
            return name
    raise TypeError(f"the IR has no element type for numpy's {dtype}")


def is_number(array: np.ndarray[Any, Any]) -> bool:
    """Whether the elements are numbers, or truths, rather than texts."""
    return array.dtype.kind in "biuf" or array.dtype.kind == "V"  # bf16 and others of ml_dtypes


_PACKED = ("int4", "uint4", "int2", "uint2")


def is_exact(array: np.ndarray[Any, Any]) -> bool:
    """Whether the elements are integers or truths: there is no rounding between them."""
    return array.dtype.kind in "biu" or array.dtype.name in _PACKED


def comparable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array whose elements may be compared with any integer, as packed ones may with those alone that they hold.

    >>> (comparable(np.array([1, 7], numpy_dtype("u4"))) < 1000).tolist()
    [True, True]
    """
    return array.astype(np.int8) if array.dtype.name in _PACKED else array


NF4 = (
    -1.0,
    -0.69619280,
    -0.52507305,
    -0.39491749,
    -0.28444138,
    -0.18477343,
    -0.09105003625154495,
    0.0,
    0.07958030,
    0.16093020,
    0.24611230,
    0.33791524,
    0.44070983,
    0.56261700,
    0.72295684,
    1.0,
)
"""What the sixteen codes of nf4 stand for."""
