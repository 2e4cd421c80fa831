"""Where the shape, type or value behind a diagnostic comes from, step by step back to a Parameter or Const.

What matters for a result is found by asking inference again with one thing unknown: where the violation goes away, or
the result becomes unknown, that thing is a cause. So this knows nothing of any op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from irrun.check.attributes import read_attributes
from irrun.check.infer import Inference, InferredLayer, body_of, with_values
from irrun.diagnostics import Diagnostic, LayerName, Note, Span
from irrun.interruption import hand_on
from irrun.ir.graph import Layer, Value
from irrun.records import dataclass
from irrun.spec.dims import Dim, fresh, same
from irrun.spec.op import Op, Tensor, Violation
from irrun.spec.patterns import shape_text
from irrun.spec.registry import registry

if TYPE_CHECKING:
    from irrun.check.validate import Report

MAX_TRACED = 100
"""Diagnostics of one report: nobody reads more of them with all their steps."""

MAX_NOTES = 32
_MAX_STEPS = 400
_MAX_INPUTS = 16
_MAX_AXES = 12
_MAX_ELEMENTS = 16
_MAX_SHOWN = 8

What = Literal["type", "shape", "value"]


@dataclass(frozen=True, slots=True)
class _Question:
    """Why a tensor has its type, its value, or its shape.

    `places` are the axes of the shape, or the elements of the value, that are in question; None for all.
    """

    what: What
    places: tuple[int, ...] | None = None


Cause = tuple[int, _Question]
"""An input of a layer by its number, and what of it matters."""


def traced(report: Report) -> Report:
    """The report, its diagnostics with notes of where what they complain of comes from."""
    if report.inference is None:
        return report
    layers = _by_label(report.inference)
    found = [
        replace(diagnostic, notes=_notes(diagnostic, report.inference, layers)) if number < MAX_TRACED else diagnostic
        for number, diagnostic in enumerate(report.diagnostics)
    ]
    return replace(report, diagnostics=found)


def _by_label(inference: Inference) -> dict[LayerName, list[Layer]]:
    found: dict[LayerName, list[Layer]] = {}
    for graph in inference.visited:
        for layer in graph.layers:
            found.setdefault(layer.label, []).append(layer)
    return found


def _notes(
    diagnostic: Diagnostic, inference: Inference, layers: Mapping[LayerName, Sequence[Layer]]
) -> tuple[Note, ...]:
    """The notes of `diagnostic`, and how what it complains of came to be, the nearest layer first."""
    layer = _layer_of(diagnostic, layers)
    if layer is None or diagnostic.code[:2] not in ("E3", "E4", "W9"):
        return diagnostic.notes
    tracer = _Tracer(inference)
    if diagnostic.code in ("W931", "W932"):
        roots = list(tracer.declared(diagnostic, layer))
    else:
        roots = [
            (value, question, _port_name(tracer.op(layer), number), layer.input_ports[number].element.span)
            for number, question in tracer.causes_of_violation(layer)
            if (value := layer.inputs[number])
        ]
    order = {note.input: number for number, note in enumerate(diagnostic.notes)}
    roots.sort(key=lambda root: order.get(root[2], len(order)))
    told = {name for _, _, name, _ in roots if name}
    notes = [note for note in diagnostic.notes if note.input not in told]
    for value, question, name, span in roots:
        notes.append(Note(_stated(inference.tensor(value), question, f"`{name}`" if name else "it"), span, name))
        notes += tracer.steps(value, question, MAX_NOTES // len(roots))
    return tuple(notes)


def _layer_of(diagnostic: Diagnostic, layers: Mapping[LayerName, Sequence[Layer]]) -> Layer | None:
    """The layer that a diagnostic lies in: of those with its label, the last one that begins before it."""
    candidates = layers.get(diagnostic.layer, ()) if diagnostic.layer else ()
    if len(candidates) <= 1 or diagnostic.span is None:
        return next(iter(candidates), None)
    at = (diagnostic.span.line, diagnostic.span.column)
    before = [layer for layer in candidates if (layer.span.line, layer.span.column) <= at]
    return max(before, key=lambda layer: layer.element.offset, default=None)


class _Tracer:
    """Asks inference what would be if less were known. Bodies are inferred into a place of their own."""

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self.seen: set[tuple[Layer, int, _Question]] = set()

    def op(self, layer: Layer) -> Op | None:
        node = self.inference.nodes.get(layer)
        return node.op if node else registry().find(layer.type, layer.version)

    def declared(self, diagnostic: Diagnostic, layer: Layer) -> Iterator[tuple[Value, _Question, str | None, Span]]:
        """What a port is declared as, but inferred otherwise."""
        sources = [(source, port) for source, port in zip(layer.inputs, layer.input_ports, strict=True) if source]
        for value, port in (*((value, value.port) for value in layer.outputs), *sources):
            span = port.element.span
            if span == diagnostic.span:
                shape = self.inference.tensor(value).shape
                if diagnostic.code == "W932":
                    yield value, _Question("type"), None, span
                elif shape is not None and len(shape) == len(port.dims):
                    pairs = enumerate(zip(port.dims, shape, strict=True))
                    axes = tuple(axis for axis, (said, size) in pairs if said != -1 and (said == size) is False)
                    yield value, _Question("shape", axes), None, span
                else:
                    yield value, _Question("shape"), None, span

    def causes_of_violation(self, layer: Layer) -> list[Cause]:
        """The inputs without which nobody could tell that `layer` is wrong."""
        op = self.op(layer)
        attrs = read_attributes(op, layer)[0] if op else None
        if op is None or attrs is None:
            return []
        inputs = [self.inference.tensor(value) for value in layer.inputs]
        violation = self._violation(op, layer, attrs, inputs, None)
        if violation is None:
            return []

        def without(number: int, tensor: Tensor) -> Violation | None:
            return self._violation(op, layer, attrs, [*inputs[:number], tensor, *inputs[number + 1 :]], violation)

        def goes_away(number: int, tensor: Tensor) -> bool:
            found = without(number, tensor)
            return found is None or found.label != violation.label

        def changes(number: int, tensor: Tensor) -> bool:  # where several inputs are wrong, another one is named then
            found = without(number, tensor)
            return found is None or str(found) != str(violation)

        return _causes(inputs, goes_away) or _causes(inputs, changes)

    def _violation(
        self,
        op: Op,
        layer: Layer,
        attrs: Mapping[str, Any],
        inputs: Sequence[Tensor | None],
        otherwise: Violation | None,
    ) -> Violation | None:
        """What the rule says of a layer; `otherwise` where it fails itself, as that of a user's own op may."""
        try:
            op.infer(inputs, attrs, self._bodies(layer))
        except Violation as violation:
            return violation
        except Exception as error:
            hand_on(error)
            return otherwise
        return None

    def _bodies(self, layer: Layer) -> dict[str, Any]:
        scratch = Inference(self.inference.weights)
        return {name: body_of(body, scratch) for name, body in layer.bodies.items()}

    def _outputs(self, node: InferredLayer, inputs: Sequence[Tensor | None]) -> list[Tensor]:
        """What would be known of the outputs; nothing where the inputs do not go together, or the rule fails."""
        try:
            inferred = node.op.infer(inputs, node.attrs, self._bodies(node.layer))
        except Exception as error:
            hand_on(error)
            return []
        scratch = Inference(self.inference.weights)
        return with_values(node.op, node.attrs, inputs, inferred.outputs, inferred.types, node.layer, scratch)

    def causes(self, node: InferredLayer, index: int, question: _Question) -> list[Cause] | None:
        """The inputs that make an output what it is; None where only a run tells what it is."""
        inputs = [self.inference.tensor(value) for value in node.layer.inputs]
        if not inputs:
            return []
        known = node.outputs[index]
        again = self._outputs(node, inputs)
        if index >= len(again) or not _alike(known, again[index], question):
            return None

        def changes(number: int, tensor: Tensor) -> bool:
            outputs = self._outputs(node, [*inputs[:number], tensor, *inputs[number + 1 :]])
            return index < len(outputs) and not _alike(known, outputs[index], question)

        found = _causes(inputs, changes)
        return [(n, _narrowed(asked, inputs[n], known, question)) for n, asked in found] or _lookalikes(
            inputs, known, question
        )

    def steps(self, value: Value, question: _Question, most: int) -> list[Note]:
        """The layers that make `value` what it is, back to where it comes from; those that pass it on are counted."""
        notes: list[Note] = []
        pending: list[tuple[Value, _Question, int]] = [(value, question, 0)]
        while pending and len(self.seen) < _MAX_STEPS:
            at, asked, passed = pending.pop()
            if (at.layer, at.index, asked) in self.seen:
                continue
            self.seen.add((at.layer, at.index, asked))
            node = self.inference.nodes.get(at.layer)
            if node is None or at.index >= len(node.outputs):
                continue
            if len(notes) == most:
                return [*notes, Note("and further back")]
            outer = _outer(at.layer, asked)
            if outer is not None:
                notes.append(Note(f"layer {at.layer} of the body is fed by layer {outer[0].layer}", at.layer.span))
                pending.append((*outer, 0))
                continue
            causes = self.causes(node, at.index, asked)
            sources = [(source, why) for number, why in causes or () if (source := at.layer.inputs[number])]
            if len(sources) == 1 and self._passes_on(node.outputs[at.index], asked, *sources[0]):
                pending.append((*sources[0], passed + 1))
                continue
            notes.append(Note(self._step(node, at.index, asked, causes, passed), at.layer.span))
            # constants of one element stand in the note already
            further = [pair for pair in sources if not self._plain(pair[0])] or sources
            pending += [(source, why, 0) for source, why in reversed(further)]
        return notes

    def _plain(self, value: Value) -> bool:
        known = self.inference.tensor(value).value
        return value.layer.type == "Const" and known is not None and known.size == 1

    def _passes_on(self, tensor: Tensor, question: _Question, source: Value, why: _Question) -> bool:
        if question.what != why.what or question.what == "value":
            return False
        came = self.inference.tensor(source)
        if question.what == "type" or question.places is None or why.places is None:
            return _alike(tensor, came, question)
        return _sizes(tensor, question.places) == _sizes(came, why.places)

    def _step(
        self, node: InferredLayer, index: int, question: _Question, causes: list[Cause] | None, passed: int
    ) -> str:
        layer = node.layer
        verb = {"Parameter": "is" if _given(node) else "declares", "Const": "holds"}.get(layer.type, "gives")
        back = f", {passed} layer{'s' * (passed > 1)} further back," if passed else ""
        text = f"layer {layer}{back} {verb} {_stated(node.outputs[index], question)}"
        numbers = dict.fromkeys(number for number, _ in causes or ())
        listed = [
            f"`{_port_name(node.op, number)}` {_known(self.inference.tensor(source))} of layer {source.layer.id}"
            for number in numbers
            if (source := layer.inputs[number])
        ]
        if listed:
            text += f", from {' and '.join(listed)}"
        if causes is None:
            text += ", which only a run tells"
        return text


def _causes(inputs: Sequence[Tensor], answer: Callable[[int, Tensor], bool]) -> list[Cause]:
    """Where some input matters by certain places of it, only such: others may be needed for anything to be known."""
    found = [
        (number, question)
        for number, tensor in enumerate(inputs[:_MAX_INPUTS])
        for question in _matters(tensor, partial(answer, number))
    ]
    certain = [(number, question) for number, question in found if question.what == "type" or question.places]
    return certain or found


def _matters(tensor: Tensor, answer: Callable[[Tensor], bool]) -> Iterator[_Question]:
    """What of `tensor` makes a difference, where `answer` says whether it does to know less of it."""
    untyped = Tensor("dynamic", tensor.shape)
    if tensor.type != "dynamic" and answer(untyped) and not answer(replace(tensor, content=None)):
        yield _Question("type")
        return
    if tensor.content is not None and answer(replace(tensor, content=None)):
        yield _Question("value", _elements(tensor, answer))
        return
    if tensor.shape is None:
        return
    single = [
        axis
        for axis in range(min(len(tensor.shape), _MAX_AXES))
        if answer(Tensor(tensor.type, (*tensor.shape[:axis], fresh(), *tensor.shape[axis + 1 :])))
    ]
    if single:
        yield _Question("shape", tuple(single))
    elif answer(Tensor(tensor.type, tuple(fresh() for _ in tensor.shape))) or answer(Tensor(tensor.type, None)):
        yield _Question("shape")


def _narrowed(asked: _Question, tensor: Tensor, known: Tensor, question: _Question) -> _Question:
    """Which elements of a value that matters as a whole give the sizes in question: those that look like them."""
    if asked != _Question("value") or question.what != "shape" or not question.places or tensor.value is None:
        return asked
    wanted = _at(known.shape or (), question.places)
    items = enumerate(tensor.value.ravel().tolist())
    found = tuple(number for number, item in items if any(_equal(item, size) for size in wanted))
    return _Question("value", found) if len(found) == len(wanted) else asked


def _elements(tensor: Tensor, answer: Callable[[Tensor], bool]) -> tuple[int, ...] | None:
    """The elements of a short value that matter, None where these are all or it cannot be told."""
    value = tensor.value
    if value is None or value.size > _MAX_ELEMENTS or value.dtype.kind not in "iuO":
        return None
    found = []
    for number in range(value.size):
        changed = value.astype(object)
        changed.flat[number] = fresh(None)
        if answer(replace(tensor, content=changed)):
            found.append(number)
    return tuple(found) or None


def _lookalikes(inputs: Sequence[Tensor], known: Tensor, question: _Question) -> list[Cause]:
    """The first input that has what is asked for: one of several that each would be enough, as in a broadcast."""
    if question.what != "shape" or known.shape is None:
        return [(number, question) for number, tensor in enumerate(inputs) if _alike(tensor, known, question)][:1]
    wanted = [known.shape[axis] for axis in (range(len(known.shape)) if question.places is None else question.places)]
    for number, tensor in enumerate(inputs):
        sizes = tensor.shape or ()
        axes = tuple(axis for axis, size in enumerate(sizes) if any(same(size, want) for want in wanted))
        if axes and len(axes) >= len(wanted):
            return [(number, _Question("shape", axes))]
    return []


def _alike(a: Tensor, b: Tensor, question: _Question) -> bool:
    """Whether two tensors are provably the same in what is asked."""
    if question.what == "type":
        return a.type == b.type
    if question.what == "value":
        if a.value is None or b.value is None or a.value.shape != b.value.shape:
            return False
        pairs = list(zip(a.value.ravel().tolist(), b.value.ravel().tolist(), strict=True))
        return all(_equal(*pair) for pair in (pairs if question.places is None else _at(pairs, question.places)))
    if a.shape is None or b.shape is None:
        return a.shape is b.shape
    if len(a.shape) != len(b.shape):
        return False
    axes = range(len(a.shape)) if question.places is None else question.places
    return all(same(a.shape[axis], b.shape[axis]) for axis in axes)


def _at(items: Sequence[Any], places: Sequence[int]) -> list[Any]:
    return [items[place] for place in places if place < len(items)]


def _equal(a: Any, b: Any) -> bool:
    return same(a, b) if isinstance(a, int | Dim) and isinstance(b, int | Dim) else bool(a == b)


def _sizes(tensor: Tensor, axes: Sequence[int]) -> list[Any]:
    return [str(tensor.shape[axis]) for axis in axes] if tensor.shape is not None else []


def _outer(layer: Layer, question: _Question) -> tuple[Value, _Question] | None:
    """What feeds the Parameter of a body, where it is an input of the layer that owns the body."""
    owner = layer.graph.owner
    if owner is None or layer.type != "Parameter":
        return None
    entries = [
        entry
        for body in owner.bodies.values()
        if body.graph is layer.graph
        for entry in body.inputs
        if entry.internal is layer and 0 <= entry.external < len(owner.inputs)
    ]
    source = owner.inputs[entries[0].external] if entries else None
    if source is None or (question.what == "value" and entries[0].axis is not None):
        return None
    if (
        question.places is not None and entries[0].axis in question.places
    ):  # a slice has the length that the port map says
        return None
    return source, question


def _given(node: InferredLayer) -> bool:
    """Whether a Parameter has another shape than it declares, as --shape says."""
    said = node.attrs.get("shape")
    return shape_text(said, names=False) != shape_text(node.outputs[0].shape, names=False)


def _port_name(op: Op | None, number: int) -> str:
    if op is None or not op.inputs:
        return str(number)
    last = len(op.inputs) - 1
    if op.inputs[-1].variadic and number >= last:
        return f"{op.inputs[-1].name}[{number - last}]"
    return op.inputs[number].name if number <= last else str(number)


def _known(tensor: Tensor) -> str:
    """`i64[2] = [batch, -1]`, without the value where that is long or unknown."""
    text = f"{tensor.type}{shape_text(tensor.shape)}"
    value = tensor.value
    if value is None or value.size > _MAX_SHOWN or value.dtype.kind not in "iuO":
        return text
    return f"{text} = {str(value.tolist()).replace(chr(39), '')}"


def _stated(tensor: Tensor, question: _Question, name: str = "") -> str:
    """The answer to a question: what is known of the tensor, or that `name` is so."""
    is_ = f"{name} is " if name else ""
    if question.what == "type":
        return f"{is_}{tensor.type}"
    items: Sequence[Any] = tensor.shape or ()
    if question.what == "value":
        items = [] if tensor.value is None else tensor.value.ravel().tolist()
    places = [place for place in question.places or () if place < len(items)]
    if not places or len(places) == len(items):
        return f"{is_}{_known(tensor)}"
    word = "element" if question.what == "value" else "axis"
    listed = " and ".join(f"{word} {place} is {items[place]}" for place in places)
    return f"{is_}{_known(tensor)}, whose {listed}"
