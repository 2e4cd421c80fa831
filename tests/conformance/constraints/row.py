"""A row of the table of constraints: a model of one op that breaks one of its rules, and what became of it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import prod
from typing import Any
from xml.sax.saxutils import quoteattr

import ml_dtypes  # noqa: F401  numpy knows its types by name then
import numpy as np

from irrun.spec.dtypes import ELEMENT_TYPES, numpy_dtype
from irrun.spec.registry import SPELLINGS, registry

MAX_WRITTEN = 64
"""Elements of an input that stand in the table; of larger ones only type and shape do."""

CONSTANTS, PARAMETERS = "constants", "parameters"
"""How inputs are given: all but the first as Consts, or all as Parameters."""

WEIGHTS = b"\1" + (4).to_bytes(8, "little")
"""Of models that are given as text: true, and 4 as i64."""

IN_FILES = {name: spelling for spelling, name in SPELLINGS.items()}


@dataclass(frozen=True)
class Given:
    """An input of a model. Without a `value` it is anything of that type and shape."""

    type: str
    shape: tuple[int, ...]
    value: tuple[Any, ...] | None = None

    def array(self, seed: int = 0) -> Any:
        """It as an array; what stands in the table, or numbers that depend on the `seed`."""
        dtype = np.dtype("U") if self.type == "string" else numpy_dtype(self.type)
        if self.value is not None:
            with np.errstate(all="ignore"):  # numbers that the type does not hold
                return np.array(self.value, dtype if self.type == "string" else None).astype(dtype).reshape(self.shape)
        random = np.random.default_rng(seed)
        if self.type == "string":
            return np.array([f"text {n}" for n in range(prod(self.shape))], dtype="U8").reshape(self.shape)
        if dtype.kind in "biu":
            return random.integers(0, 2, self.shape).astype(dtype)
        return random.uniform(0.1, 0.9, self.shape).astype(np.float32).astype(dtype)


def given(type: str, shape: Sequence[int], value: Any = None) -> Given:
    """An input with its value if that is short."""
    if value is None or value.size > MAX_WRITTEN:
        return Given(type, tuple(shape))
    flat = value.ravel()
    plain = flat if flat.dtype.kind in "biuU" else flat.astype(np.float64)
    return Given(type, tuple(shape), tuple(plain.tolist()))


def written(value: Any) -> str:
    """An attribute's value as a file writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return ",".join(map(written, value))
    return str(value)


@dataclass(frozen=True)
class Row:
    """`label` is a constraint (C1, ...) or a code of the E3xx family, `text` our message, `changed` what was changed.

    A row of which `changed` says something is made again from what it changes. `answers` are those of OpenVINO, by how
    the inputs are given; only one where it says the same of both, or refuses to read the first.
    """

    op: str
    label: str = ""
    text: str = ""
    changed: str = ""
    inputs: tuple[Given | None, ...] = ()
    attrs: Mapping[str, str] = field(default_factory=dict)
    outputs: int | None = None
    version: str = ""
    xml: str = ""
    answers: Mapping[str, str] = field(default_factory=dict)
    code: str = ""
    verdict: str = ""
    because: str = ""

    @property
    def size(self) -> int:
        """How large the model is; smaller ones are better examples."""
        return sum(100 + prod(each.shape) + 1000 * (each.value is None) for each in self.inputs if each is not None)

    @property
    def key(self) -> tuple[str, int, str, str, str]:
        name, _, version = self.op.rpartition("-")
        return name, int(version), self.label, self.changed, self.text

    @property
    def digest(self) -> str:
        """What the model is, in a few letters."""
        model = [self.op, self.inputs, dict(self.attrs), self.outputs, self.version, self.xml]
        return f"{zlib.crc32(json.dumps(model, default=asdict).encode()):08x}"

    def dumps(self) -> str:
        """One line of JSON; the model of a row that is made again does not stand there."""
        entry = {name: value for name, value in asdict(self).items() if value not in ("", None, {})}
        for name in ("inputs", "outputs", "xml", "version"):
            entry.pop(name, None)
        if len(set(self.answers.values())) == 1:
            entry["answers"] = {CONSTANTS: self.answers[CONSTANTS]}
        if self.changed:
            entry.pop("attrs", None)
            entry.pop("text", None)
        else:
            entry["inputs"] = [None if each is None else _packed(each) for each in self.inputs]
        return json.dumps({**entry, "model": self.digest}, ensure_ascii=False)

    @classmethod
    def loads(cls, entry: Mapping[str, Any]) -> Row:
        """The row of a line of JSON."""
        inputs = tuple(None if each is None else _unpacked(each) for each in entry.get("inputs", ()))
        return cls(**{key: value for key, value in entry.items() if key != "model"} | {"inputs": inputs})

    def sent(self) -> str:
        """The model as JSON."""
        model = {"op": self.op, "attrs": self.attrs, "outputs": self.outputs, "version": self.version, "xml": self.xml}
        return json.dumps(model | {"inputs": [None if each is None else _packed(each) for each in self.inputs]})

    def model(self, constants: bool) -> tuple[str, bytes, list[Any]]:
        """The .xml, the .bin and the arrays of its Parameters; with `constants` all inputs but the first are Consts."""
        if self.xml:
            return self.xml, WEIGHTS, [each.array(n) for n, each in enumerate(self.inputs) if each is not None]
        layers, edges, weights, arrays = [], [], b"", []
        ports = ""
        op = registry().ops[self.op]
        subject = sum(each is not None for each in self.inputs)
        for number, each in enumerate(self.inputs):
            if each is None:
                continue
            array, id = each.array(number), len(layers)
            dims = "".join(f"<dim>{size}</dim>" for size in each.shape)
            port = f'precision="{ELEMENT_TYPES[each.type].precision}">{dims}</port>'
            shape = ",".join(map(str, each.shape))
            if constants and number and each.type != "string":
                blob = _packed_bytes(array, each.type)
                data = f'element_type="{each.type}" shape="{shape}" offset="{len(weights)}" size="{len(blob)}"'
                weights += blob
                kind = "Const"
            else:
                data, kind = f'shape="{shape}" element_type="{each.type}"', "Parameter"
                arrays.append(array)
            layers.append(
                f'<layer id="{id}" name="in{number}" type="{kind}" version="opset1"><data {data}/>'
                f'<output><port id="0" {port}</output></layer>'
            )
            edges.append(f'<edge from-layer="{id}" from-port="0" to-layer="{subject}" to-port="{number}"/>')
            ports += f'<port id="{number}" {port}'
        attrs = "".join(f" {name}={quoteattr(text)}" for name, text in self.attrs.items())
        version = self.version or (f"opset{min(op.held_by)}" if op.held_by else op.extension_versions[0])
        first = len(self.inputs)
        count = self.counted()
        outs = "".join(f'<port id="{first + n}" precision="FP32"/>' for n in range(count))
        layers.append(
            f'<layer id="{subject}" name="op" type="{IN_FILES.get(op.type, op.type)}" version="{version}">'
            + (f"<data{attrs}/>" if attrs else "")
            + (f"<input>{ports}</input>" if ports else "")
            + (f"<output>{outs}</output></layer>" if outs else "</layer>")
        )
        for n in range(count):
            id = subject + 1 + n
            layers.append(
                f'<layer id="{id}" name="out{n}" type="Result" version="opset1">'
                f'<input><port id="0" precision="FP32"/></input></layer>'
            )
            edges.append(f'<edge from-layer="{subject}" from-port="{first + n}" to-layer="{id}" to-port="0"/>')
        text = "\n".join(
            ['<net name="row" version="11">', "<layers>", *layers, "</layers>", "<edges>", *edges, "</edges>"]
        )
        return text + "\n</net>\n", weights, arrays

    def counted(self) -> int:
        """How many outputs the layer has."""
        op = registry().ops[self.op]
        if self.outputs is not None:
            return self.outputs
        if not op.outputs or not op.outputs[-1].variadic:
            return len(op.outputs)
        if op.type == "VariadicSplit":
            lengths = self.inputs[2] if len(self.inputs) > 2 else None
            return prod(lengths.shape) if lengths is not None else 2
        return max(int(self.attrs.get("num_splits", "1") or 1), 1)


def _packed_bytes(array: Any, type: str) -> bytes:
    bits = ELEMENT_TYPES[type].bits
    if bits >= 8:
        return array.tobytes()
    codes = array.view(np.uint8) if array.dtype.itemsize == 1 else array.astype(np.uint8)
    codes = codes.ravel() & ((1 << bits) - 1)
    per = 8 // bits
    codes = np.concatenate([codes, np.zeros(-len(codes) % per, np.uint8)]).reshape(-1, per)
    return (codes << (bits * np.arange(per))).sum(1).astype(np.uint8).tobytes()


def _packed(each: Given) -> list[Any]:
    return [each.type, list(each.shape), *([] if each.value is None else [list(each.value)])]


def _unpacked(entry: Sequence[Any]) -> Given:
    return Given(entry[0], tuple(entry[1]), tuple(entry[2]) if len(entry) > 2 else None)
