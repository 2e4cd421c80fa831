"""Type conversion ops: the same values as another element type, and strings as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from irrun.spec import ANY, ELEMENT_TYPE, NF4, Array, Attr, Dim, Input, Node, Output, Undecided, numpy_dtype, op

CONVERTIBLE = ANY - {"dynamic"}
_WIDE_FLOATS = {"f16": np.float32, **dict.fromkeys(("bf16", "f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1"), np.float32)}
_WIDE_INTEGERS = {"i4": np.int8, "u2": np.uint8, "u4": np.uint8}
_BELOW_A_BYTE = {"u1": 1, "u2": 2, "u3": 3, "u4": 4, "u6": 6, "i4": 4}
_INTEGERS = {*_BELOW_A_BYTE, *(f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64))}


@op(
    "Convert-1",
    types={"T": CONVERTIBLE},
    inputs=[Input("data", "T", "[*shape]")],
    outputs=[Output("output", "destination_type", "[*shape]")],
    attrs=[Attr("destination_type", ELEMENT_TYPE)],
    opsets=frozenset(range(1, 18)),
    symbolic=True,
    view_of="data",
)
def convert(data: Array, *, destination_type: str, types: Mapping[str, str]) -> Any:
    """The values as another element type.

    To boolean: whether a value is not 0; NaN is not. To integers: floats are truncated towards 0, then all is taken
    modulo 2^bits. What does not fit into 64 bits (into 32 bits for integers of 32 signed bits or of 16 and fewer), NaN
    too, becomes the least value of i32 and i64, and 0 of the others; this is what the C++ casts of OpenVINO's reference
    do on x86, undefined as they are. To floats: to nearest, ties to even; f16, f32, f64, bf16 and f8e5m2 overflow to
    infinity, f8e4m3 to NaN; f4e2m1 saturates and takes NaN for 6; f8e8m0 saturates and takes 0 and what is negative
    for 2^-127; nf4 takes the nearest code, and code 0 (-1.0) for NaN.
    Deviation: OpenVINO's CPU plugin passes through 32 bits on the way to i64 and u64, and takes NaN for false.
    Constraints:
        C1: destination_type is an element type, not dynamic.
        C2: strings convert to strings only, and nothing else does.

    Source: type/convert-1.rst

    >>> op(np.array([1.7, -1.7, 300.7], np.float32), destination_type="u8").tolist()
    [1, 255, 44]
    """
    return _converted(data, types["T"], destination_type)


@convert.shapes
def _(node: Node) -> None:
    target = node.attrs["destination_type"]
    if target == "dynamic":
        node.fail("C1", "`destination_type` is dynamic, expected a type that tensors have")
    _check_strings(node, target)


def _check_strings(node: Node, target: str) -> None:
    source = node.types.get("T", target)
    if (source == "string") != (target == "string"):
        node.fail("C2", f"`data` is {source}, which does not convert to {target}", "data")


@op(
    "ConvertLike-1",
    types={"T": CONVERTIBLE, "T_LIKE": CONVERTIBLE},
    inputs=[Input("data", "T", "[*shape]"), Input("like", "T_LIKE", "...")],
    outputs=[Output("output", "T_LIKE", "[*shape]")],
    symbolic=True,
    view_of="data",
)
def convert_like(data: Array, like: Array, *, types: Mapping[str, str]) -> Any:
    """The values as the element type of another tensor; conversions are those of Convert-1.

    Constraints:
        C2: strings convert to strings only, and nothing else does.

    Source: type/convert-like-1.rst

    >>> op(np.array([1.7, -2.2], np.float32), np.array([0], np.int32)).tolist()
    [1, -2]
    """
    return _converted(data, types["T"], types["T_LIKE"])


@convert_like.shapes
def _(node: Node) -> None:
    if "T_LIKE" in node.types:
        _check_strings(node, node.types["T_LIKE"])


def _converted(data: Array, source: str, target: str) -> Any:
    if source == target:
        return data
    if data.dtype == object:
        return _converted_sizes(data, target)
    values: Any = data
    if source == "nf4":
        values = np.array(NF4, np.float32)[data]
    elif source in _WIDE_FLOATS and (source, target) != ("f16", "f64"):
        values = data.astype(_WIDE_FLOATS[source])
    elif source in _WIDE_INTEGERS:
        values = data.astype(_WIDE_INTEGERS[source])
    if target == "boolean":
        return values != 0
    if target in _INTEGERS:
        return _wrapped(_truncated(values, target) if values.dtype.kind == "f" else values, target)
    special = {"nf4": _to_nf4, "f8e8m0": _to_f8e8m0, "f4e2m1": _to_f4e2m1}.get(target)
    if special is not None:
        return special(values)
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(numpy_dtype(target))


def _truncated(values: Any, target: str) -> Any:
    """Floats without their fractions, as integers; 0 or the least integer where they have too many bits."""
    if target == "u64":
        high = values >= 2.0**63
        if high.any():
            fits = values < 2.0**64
            upper = np.where(high & fits, values, 0).astype(np.uint64)
            return np.where(high, upper, _truncated(np.where(high, 0, values), "u32").astype(np.uint64))
    wide = np.int64 if target in ("i64", "u64", "u32") else np.int32
    low = float(np.iinfo(wide).min)
    fits = (values > low - 1) & (values < -low)
    if fits.all():
        return values.astype(wide)
    integers = np.where(fits, values, 0).astype(wide)
    return np.where(fits, integers, np.iinfo(wide).min) if target in ("i32", "i64") else integers


def _wrapped(values: Any, target: str) -> Any:
    """Integers modulo what the integer type `target` holds."""
    dtype = numpy_dtype(target)
    bits = _BELOW_A_BYTE.get(target)
    if bits is None:
        return values.astype(dtype)
    low = values.astype(np.uint8) & np.uint8(2**bits - 1)
    if target == "i4":
        low = (low ^ np.uint8(8)).astype(np.int8) - np.int8(8)
    return low.astype(dtype)


def _to_nf4(values: Any) -> Any:
    table = np.array(NF4, np.float32)
    codes = np.searchsorted((table[1:] + table[:-1]) / 2, values.astype(np.float32), side="left")
    return np.where(np.isnan(values), 0, codes).astype(np.uint8)


def _to_f8e8m0(values: Any) -> Any:
    floats = values.astype(np.float32)
    bits = np.where(floats > 0, floats, np.float32(0)).view(np.uint32)
    codes = (bits + np.uint32(0x3FFFFF) + ((bits >> 23) & 1)) >> 23  # half a step is added, less one bit if even
    codes = np.where(bits < 0x800000, bits > 0x600000, codes)  # below 2^-126 a float has no implicit bit
    codes = np.where(np.isnan(floats), 255, np.minimum(codes, 254))
    return codes.astype(np.uint8).view(numpy_dtype("f8e8m0"))


def _to_f4e2m1(values: Any) -> Any:
    floats = values.astype(np.float32)
    return np.where(np.isnan(floats), np.float32(6), floats).astype(numpy_dtype("f4e2m1"))


def _converted_sizes(data: Array, target: str) -> Any:
    """An array of ints and dimensions; a dimension stays what it is in the types that hold every size."""
    result = np.empty(data.size, object)
    result[:] = [_converted_size(size, target) for size in data.flat]
    return result.reshape(data.shape)


def _converted_size(size: Any, target: str) -> Any:
    if target == "boolean":
        return bool(size != 0)
    if isinstance(size, Dim):
        if target in ("i32", "i64") or (target in ("u32", "u64") and (size >= 0) is True):
            return size
        raise Undecided
    return _converted(np.array(size, np.int64), "i64", target).item()
