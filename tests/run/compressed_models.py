"""Chains of compressed weights as exporters write them, and their values by an obvious loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np
from ir_builder import Model, Tensor

from irrun.engines.compressed import PACKED
from irrun.spec.dtypes import NF4, element_type, numpy_dtype

F4 = (0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6)
PLAIN = {"transpose_a": "false"}


@dataclass(frozen=True)
class Chain:
    """A constant of codes and what is done to it; `middle` is the type of the floats before the last conversion."""

    type: str
    stored: tuple[int, ...]
    shape: tuple[int, ...]
    scale: tuple[int, ...] | None = None
    zero: tuple[int, ...] | None = None
    middle: str = "f16"
    zero_type: str = ""
    scale_type: str = ""
    """Of the constant, where that is converted to `middle`."""
    turned: bool = False
    """Whether a Transpose follows."""

    def codes(self, seed: int = 0) -> np.ndarray[Any, Any]:
        """One code of each element: 0 to 15, or 0 to 255; the bits of the numbers of 16 bits."""
        random = np.random.default_rng(seed)
        if self.type in ("f16", "bf16"):
            numbers = random.standard_normal(self.stored)
            return numbers.astype(numpy_dtype(self.type)).view(np.uint16)
        most = 16 if self.type in PACKED else 256
        codes = random.integers(0, most, self.stored)
        if self.type == "f8e4m3":
            codes = np.where(codes % 128 == 127, 1, codes)  # NaN
        if self.type == "f8e5m2":
            codes = np.where(codes % 128 > 123, 1, codes)
        return codes

    def factors(self, seed: int = 0) -> tuple[Any, Any]:
        """Scale and zero point, as arrays of the types that they are stored in."""
        random = np.random.default_rng(seed + 1)
        scale = zero = None
        if self.scale is not None:
            scale = (random.random(self.scale) / 16 + 0.01).astype(numpy_dtype(self.scale_type or self.middle))
        if self.zero is not None:
            zero = random.integers(0, 16 if self.type in PACKED else 200, self.zero)
        return scale, zero

    def values(self, seed: int = 0) -> Any:
        """The weights, computed in f64, one after the other. Not to be written to: all tests share them."""
        return _values(self, seed)

    def added(self, model: Model, seed: int = 0, shift: int = 0) -> Tensor:
        """The chain in a model; `shift` bytes lie before the codes."""
        codes, (scale, zero) = self.codes(seed), self.factors(seed)
        value = constant(model, self.type, self.stored, packed(self.type, codes), shift)
        value = convert(model, value, self.middle)
        if zero is not None:
            if self.zero_type:
                other = constant(model, self.zero_type, self.zero or (), packed(self.zero_type, zero))
                other = convert(model, other, self.middle)
            else:
                other = model.constant(zero.astype(numpy_dtype(self.middle)))
            (value,) = model.layer("Subtract", [value, other], [(self.middle, self.stored)], auto_broadcast="numpy")
        if scale is not None:
            other = model.constant(scale)
            if self.scale_type:
                other = convert(model, other, self.middle)
            (value,) = model.layer("Multiply", [value, other], [(self.middle, self.stored)], auto_broadcast="numpy")
        if self.shape != self.stored:
            target = model.constant(np.int64(self.shape))
            (value,) = model.layer("Reshape", [value, target], [(self.middle, self.shape)], special_zero="false")
        value = convert(model, value, "f32")
        if self.turned:
            order = model.constant(np.int64([1, 0]))
            (value,) = model.layer("Transpose", [value, order], [("f32", self.shape[::-1])])
        return value


@cache
def _values(chain: Chain, seed: int) -> Any:
    codes, (scale, zero) = chain.codes(seed), chain.factors(seed)
    scales = np.broadcast_to(1.0 if scale is None else scale.astype(np.float64), chain.stored)
    zeros = np.broadcast_to(0 if zero is None else zero, chain.stored)
    result = np.empty(chain.stored)
    for place in np.ndindex(*chain.stored):
        result[place] = (number(chain.type, int(codes[place])) - float(zeros[place])) * float(scales[place])
    result = result.reshape(chain.shape)
    result.flags.writeable = False
    return result.T if chain.turned else result


def number(type: str, code: int) -> float:
    """What a code stands for."""
    if type in ("u4", "u8"):
        return code
    if type == "i4":
        return code - 16 if code > 7 else code
    if type == "i8":
        return code - 256 if code > 127 else code
    if type == "nf4":
        return NF4[code]
    if type == "f4e2m1":
        return F4[code]
    wide = np.uint16 if type in ("f16", "bf16") else np.uint8
    return float(np.array(code, wide).view(numpy_dtype(type)))


def packed(type: str, codes: Any) -> bytes:
    """The bytes of codes as a .bin has them."""
    flat = np.asarray(codes).reshape(-1)
    if type in ("f16", "bf16"):
        return flat.astype(np.uint16).tobytes()
    if type not in PACKED:
        return flat.astype(np.uint8).tobytes()
    flat = np.append(flat, [0] * (flat.size % 2))
    return bytes(int(low) | int(high) << 4 for low, high in flat.reshape(-1, 2))


def constant(model: Model, type: str, shape: Sequence[int], data: bytes, shift: int = 0) -> Tensor:
    """A Const of these bytes."""
    model.weights += b"\xa5" * shift
    named = {"element_type": type, "shape": ",".join(map(str, shape))}
    (output,) = model.layer(
        "Const", [], [(type, tuple(shape))], **named, offset=str(len(model.weights)), size=str(len(data))
    )
    model.weights += data
    return output


def convert(model: Model, value: Tensor, type: str) -> Tensor:
    if value[2] == type:
        return value
    return model.layer("Convert", [value], [(type, value[3])], destination_type=type)[0]


def product(model: Model, data: Tensor, weights: Tensor, turned: bool) -> Tensor:
    """MatMul of rows and weights, [columns, inner] where `turned`."""
    columns = weights[3][-2 if turned else -1]
    flag = "true" if turned else "false"
    return model.layer("MatMul", [data, weights], [("f32", (*data[3][:-1], columns))], **PLAIN, transpose_b=flag)[0]


def lookup(model: Model, table: Tensor, indices: Tensor) -> Tensor:
    axis = model.constant(np.int64(0))
    shape = (*indices[3], *table[3][1:])
    return model.layer("Gather", [table, indices, axis], [("f32", shape)], "opset8", batch_dims="0")[0]


N, K = 96, 192
CHAINS = {
    "u8 asymmetric": Chain("u8", (N, K), (N, K), (N, 1), (N, 1), zero_type="u8"),
    "i8 symmetric": Chain("i8", (N, K), (N, K), (N, 1)),
    "i8 of one scale": Chain("i8", (N, K), (N, K), (1,), middle="f32"),
    "u8 in groups": Chain("u8", (N, 3, 64), (N, K), (N, 3, 1), (N, 3, 1), zero_type="u8"),
    "u4 in groups": Chain("u4", (N, 3, 64), (N, K), (N, 3, 1), (N, 3, 1), zero_type="u4"),
    "u4 in groups, one zero": Chain("u4", (N, 3, 64), (N, K), (N, 3, 1), (1, 1, 1), zero_type="u8"),
    "u8 of rows in blocks": Chain("u8", (2, N // 2, K), (N, K), (2, N // 2, 1), (2, 1, 1), zero_type="u8"),
    "i8 of one scale for half the rows": Chain("i8", (2, N // 2, K), (N, K), (2, 1, 1)),
    "u4 in f32": Chain("u4", (N, 3, 64), (N, K), (N, 3, 1), (N, 3, 1), middle="f32"),
    "i4 in groups of 32": Chain("i4", (N, 6, 32), (N, K), (N, 6, 1)),
    "i4 by channel": Chain("i4", (N, K), (N, K), (N, 1)),
    "i4 with odd groups": Chain("i4", (301, 3, 31), (301, 93), (301, 3, 1)),
    "u4 of odd rows": Chain("u4", (181, 95), (181, 95), (181, 1), (181, 1), zero_type="u4"),
    "nf4 in groups": Chain("nf4", (N, 3, 64), (N, K), (N, 3, 1)),
    "nf4 by channel": Chain("nf4", (N, K), (N, K), (N, 1), middle="f32"),
    "mxfp4": Chain("f4e2m1", (N, 6, 32), (N, K), (N, 6, 1), scale_type="f8e8m0"),
    "f8e4m3": Chain("f8e4m3", (N, K), (N, K), (N, 1)),
    "f8e5m2 of one scale": Chain("f8e5m2", (N, K), (N, K), (), scale_type="f32", middle="f32"),
    "f16": Chain("f16", (N, K), (N, K)),
    "bf16": Chain("bf16", (N, K), (N, K), middle="bf16"),
    "f16 scaled in f32": Chain("u4", (N, 3, 64), (N, K), (N, 3, 1), (N, 3, 1), "f32", "u4", "f16"),
    "i8 by row": Chain("i8", (N, K), (N, K), (1, K)),
    "u4 in groups of rows": Chain("u4", (3, 32, K), (N, K), (3, 1, K), (3, 1, K), zero_type="u4"),
    "turned i8": Chain("i8", (N, K), (N, K), (N, 1), turned=True),
    "turned u4": Chain("u4", (N, 3, 64), (N, K), (N, 3, 1), (N, 3, 1), zero_type="u4", turned=True),
    "one column": Chain("i8", (1, 20_000), (1, 20_000), (1, 1)),
}
"""By what they are; weights are [columns, inner] or, for products that do not transpose them, [inner, columns]."""

assert all(prod(chain.stored) == prod(chain.shape) for chain in CHAINS.values())
assert element_type(np.dtype(np.float16)) == "f16"
