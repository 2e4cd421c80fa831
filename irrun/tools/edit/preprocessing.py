"""What is done with data before the model sees them, as a part of the model: layout, type, channels, mean and scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cache

import numpy as np

from irrun.ir.graph import Layer, Model, Value
from irrun.records import dataclass
from irrun.spec.attributes import parse_shape
from irrun.spec.dtypes import ELEMENT_TYPES, numpy_dtype
from irrun.spec.op import FLOAT, Array, Op
from irrun.spec.registry import registry
from irrun.spec.traits import Elementwise, Lookup, Permutation
from irrun.tools.edit.places import input_and


@dataclass(slots=True)
class _Wanted:
    """What shall be done with an input; `layout` is that of the data, `inner` the one of the model."""

    layout: str = ""
    inner: str = ""
    type: str = ""
    reverse: bool = False
    mean: list[float] = field(default_factory=list)
    scale: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """What is done with the data of an input, once they have become `type`; `axis` is that of the channels then."""

    parameter: Layer
    wanted: _Wanted
    type: str
    axis: int

    def __call__(self, data: Array) -> Array:
        """What the model sees of data."""
        wanted = self.wanted
        array = data.transpose([wanted.layout.index(letter) for letter in wanted.inner]) if wanted.layout else data
        array = array.astype(numpy_dtype(self.type))
        array = np.flip(array, self.axis) if wanted.reverse else array
        for numbers, ufunc in ((wanted.mean, np.subtract), (wanted.scale, np.divide)):
            array = ufunc(array, self._along(numbers, array.ndim).astype(array.dtype)) if numbers else array
        return array

    def data_for(self, array: Array) -> Array:
        """Data of which the model sees this array, or what lies near where their type does not tell."""
        wanted, type = self.wanted, self.wanted.type or self.type
        for numbers, ufunc in ((wanted.scale, np.multiply), (wanted.mean, np.add)):
            array = ufunc(array.astype(np.float64), self._along(numbers, array.ndim)) if numbers else array
        array = np.flip(array, self.axis) if wanted.reverse else array
        array = array.transpose([wanted.inner.index(letter) for letter in wanted.layout]) if wanted.layout else array
        if type[0] in "iu" and type != self.type:
            bits, signed = ELEMENT_TYPES[type].bits, type[0] == "i"
            least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
            array = np.clip(np.rint(array.astype(np.float64)), least, most)
        return array.astype(numpy_dtype(type))

    def _along(self, numbers: Sequence[float], rank: int) -> Array:
        """One number, or one for each channel, as an array that goes with data of so many axes."""
        return np.array(numbers).reshape(_along(len(numbers), self.axis, rank))


def preprocess(model: Model, given: Sequence[tuple[str, str]]) -> list[Preprocessing]:
    """Put what verbs ask for between inputs and what reads them: data are transposed, converted, reversed, reduced by
    the mean, and divided by the scale, in this order. Raises ValueError."""
    wanted: dict[Layer, _Wanted] = {}
    seen: set[tuple[Layer, str]] = set()
    for verb, text in given:
        parameter, value = _meant(model, verb, text)
        if (parameter, verb) in seen:
            raise ValueError(f"it is given twice for input `{parameter.name}`, where these options are one edit")
        seen.add((parameter, verb))
        _note(wanted.setdefault(parameter, _Wanted()), verb, value)
    return [_insert(model, parameter, asked) for parameter, asked in wanted.items()]


def _meant(model: Model, verb: str, text: str) -> tuple[Layer, str]:
    if verb != "reverse-channels":
        return input_and(text, model)
    return input_and(f"{text}=yes" if text else "yes", model)


def _note(wanted: _Wanted, verb: str, value: str) -> None:
    if verb == "layout":
        outer, _, inner = value.upper().replace(" ", "").partition("->")
        rest = [letter for letter in outer if letter not in "NC"]
        wanted.layout = outer
        wanted.inner = inner or "".join([*(x for x in "NC" if x in outer), *rest])
        if sorted(wanted.layout) != sorted(wanted.inner) or len(set(outer)) < len(outer):
            raise ValueError(f"`{value}` is no layout, such as NHWC, or NHWC->NCHW where the model has another one")
    elif verb == "input-type":
        if value not in ELEMENT_TYPES or value in ("dynamic", "string"):
            raise ValueError(f"`{value}` is no element type of numbers, such as u8")
        wanted.type = value
    elif verb == "reverse-channels":
        wanted.reverse = True
    else:
        try:
            numbers = [float(part) for part in value.strip("[]()").split(",")]
        except ValueError:
            raise ValueError(f"`{value}` is no list of numbers, such as 123.7,116.3,103.5") from None
        if verb == "scale" and not all(numbers):
            raise ValueError("a scale of 0 divides by it")
        if not all(map(np.isfinite, numbers)):
            raise ValueError(f"`{value}` has what is no finite number")
        (wanted.mean if verb == "mean" else wanted.scale)[:] = numbers


def _insert(model: Model, parameter: Layer, wanted: _Wanted) -> Preprocessing:
    shape = parse_shape(parameter.attributes.get("shape", "..."))
    type = parameter.attributes.get("element_type", "")
    if shape is None:
        raise ValueError(f"the rank of input `{parameter.name}` is not known: give it a shape by --reshape first")
    if wanted.layout and len(wanted.layout) != len(shape):
        raise ValueError(f"{wanted.layout} has {len(wanted.layout)} axes, but input `{parameter.name}` {len(shape)}")
    axis = wanted.inner.find("C") if wanted.layout else 1
    by_channel = wanted.reverse or len(wanted.mean) > 1 or len(wanted.scale) > 1
    if by_channel and not 0 <= axis < len(shape):
        raise ValueError(f"input `{parameter.name}` has no axis of channels")
    channels = shape[axis] if by_channel else 1
    for numbers, what in ((wanted.mean, "means"), (wanted.scale, "scales")):
        if len(numbers) > 1 and isinstance(channels, int) and channels != len(numbers):
            raise ValueError(f"{len(numbers)} {what} for the {channels} channels of input `{parameter.name}`")
    if (wanted.mean or wanted.scale) and type not in FLOAT:
        raise ValueError(
            f"input `{parameter.name}` of the model is {type}, which has no fractions to subtract or divide"
        )
    for verb, number in [("mean", number) for number in wanted.mean] + [("scale", number) for number in wanted.scale]:
        with np.errstate(over="ignore"):
            held = float(np.array(number).astype(numpy_dtype(type)))
        if not np.isfinite(held) or (verb == "scale" and not held):
            raise ValueError(f"a {verb} of {number:g} is {held:g} in {type}, the type of input `{parameter.name}`")
    if wanted.reverse and not isinstance(channels, int):
        raise ValueError(f"the number of channels of input `{parameter.name}` is not known")
    readers = list(parameter.outputs[0].consumers)
    value: Value = parameter.outputs[0]
    count = channels if isinstance(channels, int) else 0
    for title, op, others, attributes in _steps(model, wanted, type, axis, len(shape), count):
        value = model.add(op.type, [value, *others], attributes, version=f"opset{min(op.held_by)}").outputs[0]
        value.layer.name = value.layer.element.attributes["name"] = _free(model, f"{parameter.name}/{title}", value)
    if wanted.layout:
        outer = [wanted.inner.index(letter) for letter in wanted.layout]
        model.set_attribute(parameter, "shape", _permuted(parameter.attributes["shape"], outer))
        parameter.rt_info = None
    if wanted.type:
        model.set_attribute(parameter, "element_type", wanted.type)
    for reader, number in readers:
        model.rewire(reader, number, value)
    return Preprocessing(parameter, wanted, type, axis)


def _along(count: int, axis: int, rank: int) -> list[int]:
    """The shape of so many numbers, for axes that are this one and others: of one number it is the same for all."""
    return [count if number == axis and count > 1 else 1 for number in range(rank)]


def _steps(
    model: Model, wanted: _Wanted, type: str, axis: int, rank: int, channels: int
) -> Iterator[tuple[str, Op, list[Layer], dict[str, str]]]:
    """The name of each step, its op, what the op takes besides the data, and its attributes."""
    if wanted.layout and wanted.layout != wanted.inner:
        order = np.array([wanted.layout.index(letter) for letter in wanted.inner])
        yield "layout", _op(Permutation), [model.add_constant(order)], {}
    if wanted.type and wanted.type != type:
        yield "type", registry().conversion, [], {"destination_type": type}
    if wanted.reverse:
        indices = np.arange(channels)[::-1].copy()
        yield "channels", _op(Lookup), [model.add_constant(indices), model.add_constant(np.array(axis))], {}
    for title, numbers, ufunc in (("mean", wanted.mean, np.subtract), ("scale", wanted.scale, np.divide)):
        if numbers:
            array = np.array(numbers).reshape(_along(len(numbers), axis, rank)).astype(numpy_dtype(type))
            yield title, _computing(ufunc), [model.add_constant(array, type=type)], {}


@cache
def _op(trait: type) -> Op:
    """The oldest op of a kind."""
    return min((op for op in registry().ops.values() if op.trait(trait) and op.held_by), key=lambda op: op.version)


@cache
def _computing(ufunc: np.ufunc) -> Op:
    """The op that computes what a function of numpy does, of two inputs of one type."""
    sample = np.array([6.0, 5.0], np.float32), np.array([4.0, 2.0], np.float32)
    for op in registry().ops.values():
        trait = op.trait(Elementwise)
        if trait is None or trait.arity != 2 or trait.broadcast != "numpy" or len(op.inputs) != 2 or not op.held_by:
            continue
        if trait.function == ufunc.__name__ or (trait.function is None and _computes(op, ufunc, sample)):
            return op
    raise ValueError(f"no op computes {ufunc.__name__}")


def _computes(op: Op, ufunc: np.ufunc, sample: tuple[Array, Array]) -> bool:
    try:
        return bool(np.array_equal(op(*sample), ufunc(*sample)))
    except (TypeError, ValueError):
        return False


def _free(model: Model, name: str, value: Value) -> str:
    names = {layer.name for layer in model.graph.layers if layer is not value.layer}
    while name in names:
        name += "_"
    return name


def _permuted(shape: str, order: list[int]) -> str:
    sizes = [part.strip() for part in shape.strip("[] ").split(",")]
    return ",".join(sizes[number] for number in order)
