"""Type conversion ops: the same values as another element type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from irrun.spec import (
    ANY,
    BOOL,
    ELEMENT_TYPE,
    INDEX,
    INTEGER,
    NF4,
    NUMERIC,
    Array,
    Attr,
    Converting,
    Dim,
    Elementwise,
    Input,
    Node,
    Output,
    Retyping,
    Shapes,
    Sizes,
    Tensor,
    Undecided,
    Violation,
    fresh,
    numpy_dtype,
    op,
)

CONVERTIBLE = ANY - {"dynamic"}
_WIDE_FLOATS = {"f16", "bf16", "f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1"}
_WIDE_INTEGERS = {"i4": "i8", "u2": "u8", "u4": "u8"}
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
    self_checking=True,
    traits=[Elementwise(1), Converting(), Retyping()],
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
        node.fail("C1", "`destination_type` is dynamic, expected a type that tensors have", about=["destination_type"])
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
    traits=[Elementwise(1), Retyping()],
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


PROMOTABLE = NUMERIC | {"boolean", "u1", "u4", "i4", "f8e4m3", "f8e5m2"}
_BITS = {"f8e4m3": 8, "f8e5m2": 8, "f16": 16, "bf16": 16, "f32": 32, "f64": 64}


@op(
    "ConvertPromoteTypes-14",
    types={"T0": PROMOTABLE, "T1": PROMOTABLE},
    inputs=[Input("input_0", "T0", "..."), Input("input_1", "T1", "...")],
    outputs=[Output("output_0", "dynamic", "..."), Output("output_1", "dynamic", "...")],
    attrs=[
        Attr("promote_unsafe", BOOL, False),
        Attr("pytorch_scalar_promotion", BOOL, False),
        Attr("u64_integer_promotion_target", ELEMENT_TYPE, "f32"),
    ],
    traits=[Retyping()],
)
def convert_promote_types(
    input_0: Array,
    input_1: Array,
    *,
    promote_unsafe: bool,
    pytorch_scalar_promotion: bool,
    u64_integer_promotion_target: str,
    types: Mapping[str, str],
) -> Any:
    """Both tensors as one type that holds the values of both; conversions are those of Convert-1.

    Floats win over integers, integers over booleans. Among floats, and among integers of one sign, the wider type wins.
    Constraints:
        C1: without promote_unsafe the common type holds all values: a float has twice the bits of an integer, a signed
            integer twice those of an unsigned one, and no type is wider than both.
        C2: u64_integer_promotion_target, where it is used, is a type that tensors of numbers have.

    Deviation: OpenVINO takes an unsigned scalar for safe beside a signed tensor of as many bits, which holds only half
        of its values.

    Source: type/convert-promote-types-14.rst

    >>> [a.dtype.name for a in op(np.zeros(1, np.int8), np.zeros(1, np.float32))]
    ['float32', 'float32']
    """
    attrs = {
        "promote_unsafe": promote_unsafe,
        "pytorch_scalar_promotion": pytorch_scalar_promotion,
        "u64_integer_promotion_target": u64_integer_promotion_target,
    }
    common = _promoted(types["T0"], types["T1"], input_0.ndim == 0, input_1.ndim == 0, attrs)
    arrays = _converted(input_0, types["T0"], common), _converted(input_1, types["T1"], common)
    return tuple(a.copy() if a is original else a for a, original in zip(arrays, (input_0, input_1), strict=True))


@convert_promote_types.shapes
def _(node: Node) -> list[Tensor]:
    tensors = [node.inputs["input_0"], node.inputs["input_1"]]
    types = [tensor.type for tensor in tensors]
    ranks = [tensor.rank for tensor in tensors]
    common = "dynamic"
    if "dynamic" not in types and not (None in ranks and _goes_by_ranks(types[0], types[1], node.attrs)):
        common = _promoted(types[0], types[1], ranks[0] == 0, ranks[1] == 0, node.attrs)
    return [Tensor(common, tensor.shape) for tensor in tensors]


def _goes_by_ranks(a: str, b: str, attrs: Mapping[str, Any]) -> bool:
    """Whether a scalar would take the type of the other tensor: among floats, and among integers."""
    alike = a != b and "boolean" not in (a, b) and (a in _BITS) == (b in _BITS)
    return alike and bool(attrs["pytorch_scalar_promotion"])


def _promoted(a: str, b: str, a_scalar: bool, b_scalar: bool, attrs: Mapping[str, Any]) -> str:
    """The common type of `a` and `b`."""
    if a == b or "boolean" in (a, b):
        return b if a == "boolean" else a
    common, safe = _wider(a, b)
    if _goes_by_ranks(a, b, attrs) and a_scalar != b_scalar:
        common, scalar = (b, a) if a_scalar else (a, b)
        signs = scalar[0] == "u", common[0] == "u"
        safe = _bits(common) >= _bits(scalar) * (2 if signs == (True, False) else 1) and signs != (False, True)
    elif common is None:
        common = attrs["u64_integer_promotion_target"]
        if common in ("dynamic", "string"):
            raise Violation(
                "C2",
                f"`u64_integer_promotion_target` is {common}, expected a type of numbers",
                about=["u64_integer_promotion_target"],
            )
    if not safe and not attrs["promote_unsafe"]:
        raise Violation("C1", f"{a} and {b} have no common type that holds the values of both safely")
    return common


def _wider(a: str, b: str) -> tuple[str | None, bool]:
    """The type that holds the values of both, None where there is none, and whether that is safe."""
    if (a in _BITS) != (b in _BITS):
        real, integer = (a, b) if a in _BITS else (b, a)
        return real, _bits(real) >= 2 * _bits(integer)
    if a in _BITS:
        if _bits(a) == _bits(b):
            return {8: "f16", 16: "f32"}[_bits(a)], False
    elif (a[0] == "u") != (b[0] == "u"):
        unsigned, signed = (_bits(a), _bits(b)) if a[0] == "u" else (_bits(b), _bits(a))
        return (f"i{max(2 * unsigned, signed)}" if unsigned < 64 else None), 2 * unsigned <= signed
    return (a if _bits(a) > _bits(b) else b), True


def _bits(type: str) -> int:
    return _BITS[type] if type in _BITS else int(type[1:])


def _converted(data: Array, source: str, target: str) -> Any:
    if source == target:
        return data
    if data.dtype == object:
        return _converted_sizes(data, target)
    values: Any = data
    if source == "nf4":
        values = np.array(NF4, np.float32)[data]
    elif source in _WIDE_FLOATS and (source, target) != ("f16", "f64"):
        values = data.astype(np.float32)
    elif source in _WIDE_INTEGERS:
        values = data.astype(numpy_dtype(_WIDE_INTEGERS[source]))
    if target == "boolean":
        return values != 0
    if target in _INTEGERS:
        return _wrapped(_truncated(values, target) if values.dtype.kind == "f" else values, target)
    special = {"nf4": _to_nf4, "f8e8m0": _to_f8e8m0, "f4e2m1": _to_f4e2m1}.get(target)
    if special is not None:
        return special(values)
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(numpy_dtype(target), copy=False)


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
    if low - 1 < values.min(initial=0) and values.max(initial=0) < -low:  # none of which is so where one is NaN
        return values.astype(wide)
    fits = (values > low - 1) & (values < -low)
    integers = np.where(fits, values, 0).astype(wide)
    return np.where(fits, integers, np.iinfo(wide).min) if target in ("i32", "i64") else integers


def _wrapped(values: Any, target: str) -> Any:
    """Integers modulo what the integer type `target` holds."""
    dtype = numpy_dtype(target)
    bits = _BELOW_A_BYTE.get(target)
    if bits is None:
        return values.astype(dtype, copy=False)
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
    return Sizes([_converted_size(size, target) for size in data.flat], data.shape)


def _converted_size(size: Any, target: str) -> Any:
    if target == "boolean":
        return bool(size != 0)
    if isinstance(size, int) and target in INTEGER:
        count = 2 ** _bits(target)
        low = size % count
        return low - count if target[0] == "i" and low >= count // 2 else low
    if isinstance(size, Dim):
        if target in ("i32", "i64", "f32", "f64") or (target in ("u32", "u64") and (size >= 0) is True):
            return size  # f32 holds every size up to 2^24
        raise Undecided
    return _converted(np.array(size, np.int64), "i64", target).item()


MAX_PADDED = 8
"""Times as many characters as strings have that they may take when each is as long as the longest one."""


@op(
    "StringTensorPack-15",
    types={"T_IDX": INDEX},
    inputs=[
        Input("begins", "T_IDX", "[*shape]"),
        Input("ends", "T_IDX", "[*shape]"),
        Input("symbols", "u8", "[n]"),
    ],
    outputs=[Output("output", "string", "[*shape]")],
)
def string_tensor_pack(begins: Array, ends: Array, symbols: Array) -> Any:
    """Cut strings out of UTF-8 bytes.

    Bytes that are no UTF-8 become lone surrogates, which StringTensorUnpack turns back into them. Zeros at the end of a
    string are lost: arrays of strings hold none there.

    Constraints:
        C1: the bounds lie in [0, n], n the number of bytes.
        C2: no string ends before it begins.

    Source: type/string-tensor-pack-15.rst

    >>> op(np.array([0, 5]), np.array([5, 13]), np.frombuffer(b"IntelOpenVINO", np.uint8)).tolist()
    ['Intel', 'OpenVINO']
    """
    if (plain := _plain_strings(begins.ravel(), ends.ravel(), symbols)) is not None:
        return plain.reshape(begins.shape)
    text = symbols.tobytes()
    bounds = zip(begins.ravel().tolist(), ends.ravel().tolist(), strict=True)
    strings = [text[begin:end].decode(errors="surrogateescape") for begin, end in bounds]
    return np.array(strings, np.str_).reshape(begins.shape)


@string_tensor_pack.shapes
def _(node: Node) -> None:
    count = node.dims.get("n", fresh())
    for name in ("begins", "ends"):
        node.within("C1", name, 0, count + 1)
    begins, ends = node.value("begins"), node.value("ends")
    if begins is not None and ends is not None and (begins > ends).any():
        place = tuple(int(i) for i in np.argwhere(begins > ends)[0])
        message = f"`begins{[*place]}` is {begins[place]}, but `ends{[*place]}` is {ends[place]}"
        node.fail("C2", message, "ends", about=["begins"])


@op(
    "StringTensorUnpack-15",
    inputs=[Input("data", "string", "[*shape]")],
    outputs=[
        Output("begins", "i32", "[*shape]"),
        Output("ends", "i32", "[*shape]"),
        Output("symbols", "u8", "[n]"),
    ],
)
def string_tensor_unpack(data: Array) -> Any:
    """Join strings as UTF-8 bytes, and say where each begins and ends.

    Source: type/string-tensor-unpack-15.rst

    >>> begins, ends, symbols = op(np.array(["Intel", "OpenVINO"]))
    >>> begins.tolist(), ends.tolist(), symbols.tobytes()
    ([0, 5], [5, 13], b'IntelOpenVINO')
    """
    if (codes := _plain_codes(data)) is not None:
        sizes = np.strings.str_len(data).astype(np.int32)
        last = np.cumsum(sizes, dtype=np.int32).reshape(data.shape)
        return last - sizes, last, codes[np.arange(codes.shape[1]) < sizes.reshape(-1, 1)].astype(np.uint8)
    texts = [text.encode(errors="surrogateescape") for text in data.ravel().tolist()]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int32).reshape(data.shape)
    lengths = np.array([len(text) for text in texts], np.int32).reshape(data.shape)
    return ends - lengths, ends, np.frombuffer(b"".join(texts), np.uint8)


@string_tensor_unpack.shapes
def _(node: Node) -> Shapes:
    data = node.inputs["data"]
    if not data.known:
        return {}
    return {"n": sum(len(text.encode(errors="surrogateescape")) for text in data.value.ravel().tolist())}


def _plain_strings(begins: Array, ends: Array, symbols: Array) -> Array | None:
    """Strings cut out of ASCII; None where a byte is none, or one string is much longer than others."""
    sizes = ends - begins
    width = int(sizes.max(initial=0))
    if not width or width * len(begins) > MAX_PADDED * (int(sizes.sum()) + len(begins)) or (symbols > 127).any():
        return None
    places = np.arange(width)
    inside = places < sizes[:, None]
    codes = np.zeros((len(begins), width), np.uint32)
    codes[inside] = symbols[(begins[:, None] + places)[inside]]
    return codes.view(f"U{width}")[:, 0]


def _plain_codes(data: Array) -> Array | None:
    """The characters of strings, a row for each with zeros behind it; None where one is not of ASCII."""
    if data.dtype.kind != "U" or not data.dtype.isnative or not data.size or not data.dtype.itemsize:
        return None
    codes = np.ascontiguousarray(data).view(np.uint32).reshape(data.size, -1)
    return codes if int(codes.max()) < 128 else None
