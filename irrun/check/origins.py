"""Where it begins that tensors are not what ports declare: at a layer whose inputs are, or would give what is declared
if these were. What cannot be computed for that reason alone is told there."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from irrun.diagnostics import Diagnostic, Note, Span
from irrun.interruption import hand_on
from irrun.ir.graph import Layer, Port, Value
from irrun.spec.dims import Shape, fresh, incompatible
from irrun.spec.op import Op, Tensor, Violation

if TYPE_CHECKING:
    from irrun.check.infer import Inference

_MAX_BACK = 1000
"""Layers that are gone back through to where it begins."""

_MAX_COUNTED = 100
"""Layers that are gone back through to see which sizes a number is made of."""

_MAX_BETWEEN = 60
"""Layers that may stand between one that cannot be computed and what is not as declared, and that are asked again."""

_MAX_FAILED = 100
"""Errors of a model: where they are more, none is told at what is so far off."""

_MOST_NOTED = 8
"""Further errors of one cause that a diagnostic has a note for."""

_DECLARED = ("W931", "W932")

_OF_ENTRIES = ("W940", "W944")
"""What is said of an entry of a port map that is to blame for what an output is."""


def contradicts(dims: tuple[int, ...], tensor: Tensor) -> bool:
    """Whether no tensor could have both the declared sizes, of which -1 is any, and the inferred ones."""
    declared: Shape = dims
    if tensor.shape is not None and -1 in dims and len(dims) == len(tensor.shape):
        declared = tuple(known if size == -1 else size for size, known in zip(dims, tensor.shape, strict=True))
    return incompatible(declared, tensor.shape)


def as_declared(known: Tensor, port: Port) -> Tensor:
    """What is known of a tensor where it is as a port declares."""
    shape = tuple(fresh() if size == -1 else size for size in port.dims) if port.dims else known.shape
    return Tensor(port.precision or known.type, shape)


def fits(port: Port, tensor: Tensor) -> bool:
    """Whether a tensor may be as a port declares, as far as that says anything."""
    typed = port.precision in (None, "dynamic", tensor.type) or tensor.type == "dynamic"
    return typed and not (port.dims and contradicts(port.dims, tensor))


def as_meant(known: Tensor, port: Port) -> Tensor:
    """What is known of an output where it is as its port declares, which in a file whose ports say sizes is a scalar
    without any."""
    return Tensor(known.type, ()) if _is_scalar(port, known) else as_declared(known, port)


def as_told(port: Port, tensor: Tensor) -> bool:
    """Whether a tensor may be as a port declares that, in a file whose ports say sizes, has none only for a scalar."""
    return fits(port, tensor) and not _is_scalar(port, tensor)


def _is_scalar(port: Port, tensor: Tensor) -> bool:
    """Whether a port says that a tensor is a scalar, if the file says sizes, which is none."""
    return bool(port.precision and tensor.shape and tensor.static) and not port.element.children and not port.dims


def cause_of(op: Op, layer: Layer, attrs: dict[str, Any], inference: Inference) -> Value | None:
    """The output of a layer before but for which this one would break no rule: it is not as its port declares."""
    value = _first_wrong(op, layer, attrs, inference, None)
    if value is None:
        arrived = [] if misdeclared(layer, inference) else misarrived(layer, inference)
        if arrived and _outputs(op, layer, attrs, inference, arriving=True) is not None:
            return arrived[0]
        value = _far_wrong(op, layer, attrs, inference)
        if value is None:
            return None
    for _ in range(_MAX_BACK):
        node = inference.nodes[value.layer]
        before = None if node.layer.bodies else _first_wrong(node.op, node.layer, node.attrs, inference, value)
        if before is None:
            return value
        value = before
    return None


def attribute_at_odds(
    violation: Violation, op: Op, layer: Layer, inputs: Sequence[Tensor | None], attrs: Mapping[str, Any]
) -> str | None:
    """The attribute that an input does not go with, and that is wrong rather than the input: this is as ports declare
    on both sides, and whatever it were, the layer would not give what its own ports declare."""
    names = [name for name in violation.about if name in layer.attributes]
    number = next((number for number, port in enumerate(op.inputs) if port.name == violation.port), len(inputs))
    if layer.bodies or len(names) != 1 or number >= len(inputs):
        return None
    tensor, value, port = inputs[number], layer.inputs[number], layer.input_ports[number]
    told = port.precision is not None or port.dims
    if tensor is None or value is None or not told or not (as_told(port, tensor) and as_told(value.port, tensor)):
        return None
    unknown = [Tensor("dynamic", None) if each is tensor else each for each in inputs]
    try:
        outputs = op.infer(unknown, attrs).outputs
    except Exception as error:  # a rule is broken, or fails itself
        hand_on(error)
        return None
    declared = [output.port for output in layer.outputs]
    odd = any(not fits(port, output) for port, output in zip(declared, outputs, strict=False))
    return names[0] if odd else None


def _first_wrong(
    op: Op, layer: Layer, attrs: dict[str, Any], inference: Inference, value: Value | None
) -> Value | None:
    """The first thing that is not as its port declares, of what a layer reads or of what numbers that it reads are the
    sizes of; but for these `value` would be as declared, or the layer break no rule where there is none."""
    wrong = misdeclared(layer, inference)
    if wrong and _explain(_outputs(op, layer, attrs, inference), value):
        return wrong[0]
    counted = _counted(layer, inference)
    if counted and _explain(_outputs(op, layer, attrs, inference, unknown=counted), value):
        return wrong[0] if wrong else next(iter(counted.values()))
    return None


def _far_wrong(op: Op, layer: Layer, attrs: dict[str, Any], inference: Inference) -> Value | None:
    """The nearest thing that is not as its port declares and but for which a layer would break no rule, where the ports
    of layers between them declare sizes that may be any."""
    if len(inference.diagnostics) >= _MAX_FAILED:
        return None
    supposed = Supposed(layer, inference)
    try:
        if supposed.nearest is not None:
            op.infer(supposed.inputs(), attrs)
    except Exception as error:  # a rule is broken, or fails itself
        hand_on(error)
        return None
    return supposed.nearest


class Supposed:
    """What a layer would read if all that is not as its ports declare were so, which lies up to a few layers before it.

    `nearest` is what of that comes first, None where there is none.
    """

    def __init__(self, layer: Layer, inference: Inference) -> None:
        self._layer, self._inference = layer, inference
        self._tensors: dict[Value, Tensor] = {}
        self._between, waiting = {layer}, deque([layer])
        while waiting and len(self._between) < _MAX_BETWEEN:
            for value in waiting.popleft().inputs:
                if value is None or value in self._tensors or value.layer not in inference.nodes:
                    continue
                known = inference.tensor(value)
                if not as_told(value.port, known):
                    self._tensors[value] = as_meant(known, value.port)
                elif value.layer not in self._between and not value.layer.bodies:
                    self._between.add(value.layer)
                    waiting.append(value.layer)
        self.nearest = next(iter(self._tensors), None)

    def inputs(self, layer: Layer | None = None) -> list[Tensor]:
        """What the layer, or one between, would read. Raises what the rules of the layers between raise."""
        layer = layer or self._layer
        return [self._inference.tensor(value) if value is None else self._tensor(value) for value in layer.inputs]

    def _tensor(self, value: Value) -> Tensor:
        if value not in self._tensors and value.layer in self._between:
            node = self._inference.nodes[value.layer]
            outputs = node.op.infer(self.inputs(value.layer), node.attrs).outputs
            self._tensors.update(zip(value.layer.outputs, outputs, strict=False))
        return self._tensors.get(value) or self._inference.tensor(value)


def _explain(outputs: Sequence[Tensor] | None, value: Value | None) -> bool:
    if outputs is None or value is None:
        return outputs is not None
    return value.index < len(outputs) and as_told(value.port, outputs[value.index])


def _counted(layer: Layer, inference: Inference) -> dict[int, Value]:
    """The inputs whose numbers are made of the sizes of something that is not as its port declares, with that."""
    found: dict[int, Value] = {}
    for number, value in enumerate(layer.inputs):
        if value is None or not _has_numbers(value, inference):
            continue
        seen, waiting = {value}, [value]
        for _ in range(_MAX_COUNTED):
            if not waiting:
                break
            maker = waiting.pop().layer
            wrong = misdeclared(maker, inference)
            if wrong:
                found[number] = wrong[0]
                break
            before = [each for each in maker.inputs if each is not None and _has_numbers(each, inference)]
            waiting += [each for each in before if each not in seen]
            seen.update(before)
    return found


def _has_numbers(value: Value, inference: Inference) -> bool:
    """Whether something is known of the numbers of a tensor that is no constant."""
    return bool(value.layer.inputs) and inference.tensor(value).content is not None


def misdeclared(layer: Layer, inference: Inference) -> list[Value]:
    """What a layer reads that is not as the ports declare which give it."""
    return [
        value
        for value in layer.inputs
        if value is not None and value.layer in inference.nodes and not as_told(value.port, inference.tensor(value))
    ]


def misarrived(layer: Layer, inference: Inference) -> list[Value]:
    """What a layer reads that is not as its own ports declare."""
    pairs = zip(layer.inputs, layer.input_ports, strict=False)
    return [value for value, port in pairs if value is not None and not fits(port, inference.tensor(value))]


def _outputs(
    op: Op,
    layer: Layer,
    attrs: dict[str, Any],
    inference: Inference,
    *,
    arriving: bool = False,
    unknown: Collection[int] = (),
) -> Sequence[Tensor] | None:
    """What a layer would give if all that it reads were as declared, where it arrives if `arriving`, and the numbers of
    the `unknown` inputs any; None where it would still break a rule."""
    inputs = []
    for number, value in enumerate(layer.inputs):
        known = inference.tensor(value)
        if number in unknown:
            known = Tensor(known.type, known.shape)
        if arriving and value is not None:
            port = layer.input_ports[number]
            inputs.append(known if fits(port, known) else as_declared(known, port))
            continue
        if value is not None and _is_scalar(value.port, known):
            known = Tensor(known.type, ())
        inputs.append(known if value is None or fits(value.port, known) else as_declared(known, value.port))
    try:
        if layer.bodies:
            from irrun.check.infer import outputs_alone  # which asks this module

            return outputs_alone(op, layer, inputs, attrs, inference.weights)
        return op.infer(inputs, attrs).outputs
    except Exception as error:  # a rule is broken, or fails itself
        hand_on(error)
        return None


def told_at_causes(
    found: Sequence[Diagnostic], declared: Sequence[Diagnostic], inference: Inference
) -> Iterator[Diagnostic]:
    """What inference has found and what ports declare wrongly; an error that follows from the latter is told there."""
    merged: dict[int, Diagnostic] = {}
    told: set[int] = set()
    order = {id(each): number for number, each in enumerate(found)}
    places: dict[Span | None, list[int]] = {}  # where something is said of ports that are not as they declare
    for number, each in enumerate(declared):
        if each.code in _DECLARED:
            places.setdefault(each.span, []).append(number)

    def said_at(ports: Sequence[Port]) -> list[Diagnostic]:
        spans = {port.element.span for port in ports}
        return [declared[number] for number in sorted(chain.from_iterable(places.get(span, ()) for span in spans))]

    def said_at_origin(port: Port) -> list[Diagnostic]:
        """What is said of the ports of the layer from which it follows that this one is not as declared."""
        follows = next((each for each in declared if each.code == "I903" and each.span == port.element.span), None)
        origin = next((layer for layer in inference.nodes if follows and layer.span == follows.notes[0].span), None)
        return [] if origin is None else said_at([value.port for value in origin.outputs])

    for value, betrayed in inference.betrayed.items():
        errors = [found[number] for number in sorted({order[id(each)] for each in betrayed if id(each) in order})]
        said = said_at([value.port])
        told_there = bool(said) and said[0].span in inference.rewired
        if not said and not as_told(value.port, inference.tensor(value)):
            said = said_at(value.layer.input_ports)  # from which it follows
            said = said or (said_at_origin(value.port) if errors else [])
        if not said and errors and value.layer in inference.blamed:
            said = [each for each in found if each.layer == value.layer.label and each.code in _OF_ENTRIES][:1]
        if not said and errors:
            arriving = [(reader, reader.input_ports[number]) for reader, number in value.consumers]
            said = said_at([port for _, port in arriving])
            readers = {each.label for reader, _ in arriving for each in (reader, reader.graph.owner) if each}
            if errors[0].layer in readers:  # which says it best
                merged[id(errors[0])] = _with_others(errors[0], [*errors[1:], *said])
                told |= {id(each) for each in (*said, *errors[1:])}
                continue
        if said and errors and id(said[0]) not in merged and not told_there:
            merged[id(said[0])] = _as_error(said[0], errors, inference)
            told |= {id(each) for each in (*said[1:], *errors)}
    for each in (*found, *declared):
        if id(each) not in told:
            yield merged.get(id(each), each)


def _with_others(error: Diagnostic, others: Sequence[Diagnostic]) -> Diagnostic:
    """An error with what else is wrong for the same reason."""
    rest = [Note(f"layer {each.layer}: {each.message}", each.span) for each in others[:_MOST_NOTED]]
    return replace(error, notes=(*error.notes, *rest))


def _as_error(said: Diagnostic, errors: Sequence[Diagnostic], inference: Inference) -> Diagnostic:
    error, *others = errors
    message = f"{said.message}, with which layer {error.layer} cannot be computed"
    rest = [Note(f"nor can layer {each.layer}: {each.message}", each.span) for each in others[:_MOST_NOTED]]
    notes = (*said.notes, Note(f"layer {error.layer}: {error.message}", error.span), *error.notes, *rest)
    help = "were it as declared, that layer could be computed: an attribute of this one, or what it reads, may be wrong"
    help = said.help or help if said.span in inference.rewired or said.code in _OF_ENTRIES else help
    return replace(said, code="E310", message=message, help=help, notes=notes)
