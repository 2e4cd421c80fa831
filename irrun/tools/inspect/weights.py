"""The weights of a model: where they lie in the .bin, what they are stored and computed as, and what is quantized.

What the bytes hold is the module `values` beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from math import prod

from irrun.ir.graph import Layer, Value
from irrun.ir.weights import Blob
from irrun.records import dataclass
from irrun.spec.dtypes import ELEMENT_TYPES
from irrun.spec.traits import Converting, Elementwise, Reshaping
from irrun.tools.inspect.contents import Contents
from irrun.tools.inspect.values import Values

_FEW_BITS = 8
"""Bits of an element that stands for a number only with a scale, at most."""


@dataclass(frozen=True, slots=True)
class Quantization:
    """How codes become numbers: `(code - zero_point) * scale`; these are paths of constants, None for no zero point.

    `group` elements have a scale in common. `bytes` are those of the zero points and the scales.
    """

    scale: str
    zero_point: str | None
    group: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Weight:
    """A constant: `bytes` of the .bin from `offset` on. It is `stored` as one element type and `computed` as another
    one where nothing but conversions and its quantization lie between it and what reads it.

    `part_of` is the path of the weight whose scale or zero point it is. `values` are what its bytes hold, where they
    were read.
    """

    id: int
    path: str
    line: int | None
    offset: int
    bytes: int
    stored: str
    computed: str
    shape: tuple[int, ...]
    quantization: Quantization | None = None
    part_of: str | None = None
    values: Values | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """Bytes of the .bin from `begin` to before `end`."""

    begin: int
    end: int

    @property
    def bytes(self) -> int:
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Weights:
    """All constants by their place in the .bin, which has `file_bytes`; None where there is none.

    `gaps` are stretches that no constant has, up to the end of the file, `overlaps` those that several have without
    being the same constant. `shared` are constants that lie where an equal one does, and take no bytes of their own.
    `read` is whether the bytes were looked at.
    """

    file_bytes: int | None
    constants: tuple[Weight, ...]
    gaps: tuple[Stretch, ...]
    overlaps: tuple[Stretch, ...]
    shared: int
    read: bool

    @property
    def bytes(self) -> int:
        """Those of all constants, each stretch of the file once."""
        return sum(stretch.bytes for stretch in _merged((w.offset, w.offset + w.bytes) for w in self.constants))

    @property
    def elements(self) -> int:
        """Numbers that constants stand for: zero points and scales are no weights of their own."""
        placed = {(w.offset, w.stored, w.shape): w for w in self.constants if w.part_of is None}
        return sum(prod(weight.shape) for weight in placed.values())

    @property
    def duplicates(self) -> tuple[tuple[Weight, ...], ...]:
        """Constants of one type and shape that hold the same bytes in several places of the file."""
        alike: dict[object, dict[int, Weight]] = defaultdict(dict)
        for weight in self.constants:
            if weight.values is not None and weight.bytes:
                alike[weight.stored, weight.shape, weight.values.hash].setdefault(weight.offset, weight)
        return tuple(tuple(places.values()) for places in alike.values() if len(places) > 1)

    @property
    def duplicate_bytes(self) -> int:
        """What would be saved if equal constants were stored once."""
        return sum(weight.bytes for group in self.duplicates for weight in group[1:])

    def by_type(self) -> Mapping[tuple[str, str, bool], tuple[int, int, int]]:
        """Constants, elements and bytes by stored and computed type, and whether they are quantized.

        Of a quantized weight, scales and zero points are among its bytes, and no constants of their own.
        """
        found: dict[tuple[str, str, bool], tuple[int, int, int]] = {}
        seen = set()
        for weight in self.constants:
            place = (weight.offset, weight.stored, weight.shape)
            if weight.part_of is not None or (place in seen and weight.bytes):
                continue
            seen.add(place)
            key = (weight.stored, weight.computed, weight.quantization is not None)
            count, elements, size = found.get(key, (0, 0, 0))
            more = 0 if weight.quantization is None else weight.quantization.bytes
            found[key] = count + 1, elements + prod(weight.shape), size + weight.bytes + more
        return dict(sorted(found.items(), key=lambda item: -item[1][2]))


def weights(contents: Contents, values: Mapping[Layer, Values] | None) -> Weights:
    """The weights of a model; `values` are what the bytes of its constants hold, None where these were not read."""
    held = contents.inference.weights
    blobs = {layer: blob for layer in contents.paths if (blob := contents.blob(layer)) is not None}
    chains = _Chains(contents)
    found: dict[Layer, tuple[str, Quantization | None]] = {layer: chains.of(layer, blobs) for layer in blobs}
    constants = [
        Weight(
            layer.id,
            contents.paths[layer],
            layer.span.line,
            blob.offset,
            blob.end - blob.offset,
            blob.element_type,
            found[layer][0],
            blob.shape,
            found[layer][1],
            chains.parts.get(layer),
            None if values is None else values.get(layer),
        )
        for layer, blob in sorted(blobs.items(), key=lambda item: (item[1].offset, item[1].end))
    ]
    spans = [(weight.offset, weight.offset + weight.bytes) for weight in constants if weight.bytes]
    alike = {(blob.offset, blob.end, blob.element_type, blob.shape) for blob in blobs.values() if blob.elements}
    return Weights(
        held.size,
        tuple(constants),
        tuple(_gaps(_merged(spans), held.size or 0)),
        tuple(_overlaps(spans)),
        sum(bool(blob.elements) for blob in blobs.values()) - len(alike),
        values is not None,
    )


def _merged(spans: Sequence[tuple[int, int]] | Iterator[tuple[int, int]]) -> list[Stretch]:
    """The bytes that any of the spans has."""
    found: list[Stretch] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1].end:
            found[-1] = Stretch(found[-1].begin, max(found[-1].end, end))
        elif end > begin:
            found.append(Stretch(begin, end))
    return found


def _gaps(used: Sequence[Stretch], size: int) -> Iterator[Stretch]:
    before = 0
    for stretch in [*used, Stretch(size, size)]:
        if stretch.begin > before:
            yield Stretch(before, stretch.begin)
        before = max(before, stretch.end)


def _overlaps(spans: Sequence[tuple[int, int]]) -> Iterator[Stretch]:
    """Where different spans have bytes in common, each stretch once."""
    common = []
    reach = 0
    for begin, end in sorted(set(spans)):
        if begin < reach:
            common.append((begin, min(end, reach)))
        reach = max(reach, end)
    yield from _merged(common)


@dataclass(slots=True)
class _Chains:
    """What constants become on their way to what multiplies them; `parts` are scales and zero points by whose."""

    contents: Contents
    parts: dict[Layer, str] = field(default_factory=dict)

    def of(self, layer: Layer, blobs: Mapping[Layer, Blob]) -> tuple[str, Quantization | None]:
        """The type that a constant is computed in, and how its codes become that."""
        blob = blobs[layer]
        value = layer.outputs[0] if layer.outputs else None
        computed = blob.element_type
        quantized = ELEMENT_TYPES[computed].bits <= _FEW_BITS and computed not in ("boolean", "string")
        zero: Layer | None = None
        scale: Layer | None = None
        while value is not None and len(value.consumers) == 1:
            reader, position = value.consumers[0]
            node = self.contents.node(reader)
            if node is None or not reader.outputs:
                break
            function = None if (element := node.op.trait(Elementwise)) is None else element.function
            if node.op.trait(Converting) or (node.op.trait(Reshaping) and position == 0):
                pass
            elif quantized and scale is None and function == "subtract" and position == 0 and zero is None:
                zero = self._constant(reader, 1)
                if zero is None:
                    break
            elif quantized and scale is None and function == "multiply":
                scale = self._constant(reader, 1 - position)
                if scale is None:
                    break
            else:
                break
            computed = node.outputs[0].type
            value = reader.outputs[0]
        if scale is None or scale not in blobs or (zero is not None and zero not in blobs):
            return computed, None
        path = self.contents.paths[layer]
        for part in (scale, zero):
            if part is not None:
                self.parts[part] = path
        sizes = [0 if part is None else blobs[part].end - blobs[part].offset for part in (scale, zero)]
        group = blob.elements // max(blobs[scale].elements, 1)
        zeros = None if zero is None else self.contents.paths[zero]
        return computed, Quantization(self.contents.paths[scale], zeros, group, sum(sizes))

    def _constant(self, reader: Layer, position: int) -> Layer | None:
        """The constant that an input comes of, but for conversions and other shapes."""
        value: Value | None = reader.inputs[position]
        while value is not None:
            layer = value.layer
            if self.contents.blob(layer) is not None:
                return layer
            node = self.contents.node(layer)
            if node is None or not (node.op.trait(Converting) or node.op.trait(Reshaping)):
                return None
            value = layer.inputs[0]
        return None
