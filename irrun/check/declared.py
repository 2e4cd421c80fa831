"""The ports that a file declares against what inference knows: decoration to OpenVINO, a promise to readers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain

from irrun.check.doubts import followers
from irrun.check.infer import Inference, InferredLayer, outputs_alone
from irrun.check.origins import as_declared, as_meant, as_told, contradicts
from irrun.check.rewiring import Contradiction, said_of_inputs
from irrun.diagnostics import Diagnostic, Note
from irrun.ir.graph import Layer, Port, Value
from irrun.ir.xml import attribute_span
from irrun.records import NamedTuple
from irrun.spec.op import Tensor, Violation
from irrun.spec.patterns import shape_text
from irrun.spec.traits import Converting

_COMPARED = 8
"""Inputs of a layer with which one of them is compared."""

_HELP = "OpenVINO ignores what ports declare and infers it; people and other tools read it"


def compare_declared(inference: Inference, *, sizes: bool = True) -> Iterator[Diagnostic]:
    """A warning for every port that contradicts the type or shape inferred for it; without `sizes` only for types.

    The type of a further output that nothing reads is an info, and so is what is right for inputs that are as their
    ports declare: a warning says where that begins.
    """
    ports = _Ports(inference, sizes)
    doubtful = followers(inference.nodes, inference.weights.doubtful.keys() | inference.refuted.keys())
    for node in inference.nodes.values():
        if node.layer not in doubtful:  # whose cause is reported
            yield from ports.compared(node)
    yield from ports.left()


class _Ports:
    """What was found at the ports of the layers that have been compared, as far as others tell what is to be said."""

    def __init__(self, inference: Inference, sizes: bool) -> None:
        self._inference, self._sizes = inference, sizes
        self._others: dict[Value, Layer] = {}  # not as their ports declare, with the layer where it begins
        self._counted: dict[Value, Layer] = {}  # whose numbers are made of the sizes of such, with that layer
        self._silent: list[_Unsized] = []
        self._open_ranks: set[Value] = set()
        """Of a body: OpenVINO infers none for a branch that a constant condition rules out."""
        self._fitting: set[tuple[int, int]] = set()
        """Of layers that are alike the shapes are one object, declared and inferred."""
        self._odd: list[Contradiction] = []
        self._half: list[Contradiction] = []

    @cached_property
    def _says_sizes(self) -> bool:
        """Whether any output of the file declares sizes."""
        return any(value.port.dims for node in self._inference.nodes.values() for value in node.layer.outputs)

    def compared(self, node: InferredLayer) -> Iterator[Diagnostic]:
        """What is to be said of the ports of one more layer, as far as that can be told at once."""
        layer = node.layer
        sized = self._sizes and layer.graph not in self._inference.mistaken
        wanted = self._compare_inputs(node, sized)
        outputs: Sequence[Tensor] = node.outputs
        if not node.op.outputs or len(layer.outputs) > len(outputs):  # which is reported, or was left by old converters
            outputs = ()
        found: list[tuple[Port, Tensor, Diagnostic]] = []
        for value, tensor in zip(layer.outputs, outputs, strict=False):
            if value.port.precision == tensor.type and (id(value.port.dims), id(tensor.shape)) in self._fitting:
                continue
            odd = self._other_type(node, value, tensor)
            if value.port.dims:
                odd = chain(odd, self._other_sizes(node, value, tensor, sized))
            found += [(value.port, tensor, self._said_of(node, value, each, wanted)) for each in odd]
            if sized and not (value.port.dims or value.port.element.children):
                for each in self._no_sizes(node, value, tensor):
                    yield self._said_of(node, value, each, wanted)
        if self._others:
            self._counted.update(_counted(node, self._others, self._counted))
        if found:
            yield from _exchanged(found, self._inference) if layer.bodies else (each for _, _, each in found)

    def left(self) -> Iterator[Diagnostic]:
        """What is to be said of inputs, once all layers have been compared."""
        odd, half = self._odd, self._half
        if self._silent and self._sizes and self._says_sizes:  # where one without is one of a scalar
            half += [
                each.contradiction()
                for each in self._silent
                if not (each.port.element.children or each.node.layer.graph in self._inference.mistaken)
            ]
        if half:
            alone, mirrored = _told_apart(odd, half)
            odd += mirrored
            yield from {found.span: found for each in alone for found in each.said}.values()  # edges may share one
        if odd:
            yield from said_of_inputs(sorted(odd, key=lambda each: each.port.element.offset), self._inference)

    def _compare_inputs(self, node: InferredLayer, sized: bool) -> dict[int, Port]:
        """Remember which inputs contradict what is known of them; these by their numbers."""
        layer, wanted = node.layer, dict[int, Port]()
        for index, (port, source) in enumerate(zip(layer.input_ports, layer.inputs, strict=False)):
            if source is None:
                continue
            declared = source.port
            if port.dims == declared.dims and port.precision == declared.precision:  # which is reported there
                continue
            known, where = self._inference.tensor(source), f"input {index}"
            said: list[Diagnostic] = []
            if port.precision != declared.precision:
                said += _compare_types(node, port, known, where, self._inference)
            if port.dims and port.dims != declared.dims:
                if sized and contradicts(port.dims, known):
                    said.append(_other_shape(node, port, known, where))
                elif sized and not contradicts(declared.dims, known):
                    half = [*_half_known(node, port, source, known, where)]
                    self._half += [Contradiction(layer, index, source, half)] if half else []
            elif port.precision and declared.dims and known.shape and not port.dims:
                self._silent.append(_Unsized(node, port, known, index, source))
            if said:
                self._odd.append(Contradiction(layer, index, source, said))
                wanted[index] = port
        return wanted

    def _other_type(self, node: InferredLayer, value: Value, tensor: Tensor) -> Iterator[Diagnostic]:
        layer, port, owner = node.layer, value.port, node.layer.graph.owner
        if owner and layer.type == "Parameter" and port.precision == node.attrs["element_type"] != tensor.type:
            self._others[value] = owner  # whose entry is reported
        elif port.precision != tensor.type and layer not in self._inference.blamed:
            code = "W932" if value.consumers or not value.index else "I902"
            code = "I904" if _is_compressed_output(node, value) else code
            yield from _compare_types(node, port, tensor, f"output {value.index}", self._inference, code)

    def _other_sizes(self, node: InferredLayer, value: Value, tensor: Tensor, sized: bool) -> Iterator[Diagnostic]:
        layer, port = node.layer, value.port
        if not contradicts(port.dims, tensor):
            self._fitting.add((id(port.dims), id(tensor.shape)))
        elif sized and (layer in self._inference.blamed or (layer.bodies and node.doubts)):  # as said of the port map
            self._others[value] = layer
        elif sized:
            yield _other_shape(node, port, tensor, f"output {value.index}")

    def _no_sizes(self, node: InferredLayer, value: Value, tensor: Tensor) -> Iterator[Diagnostic]:
        if node.attrs.get("shape", ()) is None or not self._open_ranks.isdisjoint(node.layer.inputs):
            self._open_ranks.add(value)
        elif _is_sized(node, tensor, self._inference) and self._says_sizes:
            yield _without_sizes(node, value.port, tensor, f"output {value.index}")

    def _said_of(self, node: InferredLayer, value: Value, found: Diagnostic, wanted: Mapping[int, Port]) -> Diagnostic:
        """What is said of an output that is not as declared, which is remembered, with the layer where that begins."""
        others = self._others
        origin = _origin(node, value, self._inference, others, {}, wanted) or (
            _origin(node, value, self._inference, others, self._counted, wanted) if self._counted else None
        )
        others[value] = origin or node.layer
        return found if origin is None else _following(found, origin)


def _told_apart(
    odd: Sequence[Contradiction], half: Sequence[Contradiction]
) -> tuple[list[Contradiction], list[Contradiction]]:
    """Those of the `half` that no other input of the same layer mirrors, and those that one does."""
    of_layer: dict[Layer, list[Contradiction]] = {}
    for each in (*odd, *half):
        of_layer.setdefault(each.layer, []).append(each)
    alone: list[Contradiction] = []
    mirrored: list[Contradiction] = []
    for each in half:
        others = of_layer[each.layer][:_COMPARED]
        found = any(other.mirrors(each) for other in others if other is not each)
        (mirrored if found else alone).append(each)
    return alone, mirrored


class _Unsized(NamedTuple):
    """An input that declares no sizes, as one of a scalar does, and what is there."""

    node: InferredLayer
    port: Port
    tensor: Tensor
    number: int
    source: Value

    def contradiction(self) -> Contradiction:
        """What may be exchanged with another input."""
        said = _without_sizes(self.node, self.port, self.tensor, f"input {self.number}")
        return Contradiction(self.node.layer, self.number, self.source, [said])


def _without_sizes(node: InferredLayer, port: Port, tensor: Tensor, where: str) -> Diagnostic:
    message = f"{where} is declared without dimensions, as a scalar is, but is {shape_text(tensor.shape)}"
    return Diagnostic("W931", message, port.element.span, node.layer.label, _HELP)


def _is_sized(node: InferredLayer, tensor: Tensor, inference: Inference) -> bool:
    """Whether OpenVINO writes the sizes of an output; not where that may have any rank to it, as an input has."""
    known = all(inference.tensor(value).shape is not None for value in node.layer.inputs)
    return bool(tensor.shape) and known and (tensor.static or not node.op.inputs)


def _half_known(node: InferredLayer, port: Port, source: Value, known: Tensor, where: str) -> Iterator[Diagnostic]:
    """A warning where one end of an edge declares sizes that the other one leaves open; of the end that is not so."""
    ends = list(zip(port.dims, source.port.dims, known.shape or (), strict=False))
    if not any((size == -1) != (other == -1) for size, other, _ in ends):
        return
    if not all(isinstance(size, int) for each in (port, source.port) for size in each.element.dims):  # reported
        return
    texts = [_sizes_text(each.dims) for each in (port, source.port)]
    if any(size == -1 != other and isinstance(at, int) for size, other, at in ends) or any(
        other == -1 != size and not isinstance(at, int) for size, other, at in ends
    ):
        message = f"{where} is declared as {texts[0]}, but as {texts[1]} where the edge begins"
        yield Diagnostic("W931", message, port.element.span, node.layer.label, _HELP)
    else:
        message = f"output {source.index} is declared as {texts[1]}, but as {texts[0]} where an edge arrives"
        yield Diagnostic("W931", message, source.port.element.span, source.layer.label, _HELP)


def _exchanged(found: Sequence[tuple[Port, Tensor, Diagnostic]], inference: Inference) -> Iterator[Diagnostic]:
    """The warnings of outputs that bodies give: one of two, each of which is what the other one declares."""
    left = list(found)
    while left:
        port, tensor, said = left.pop(0)
        mirrored = next((each for each in left if _is(each[0], tensor) and _is(port, each[1])), None)
        if mirrored is not None:
            left = [each for each in left if each[0] not in (port, mirrored[0])]
            inference.rewired[said.span] = []
            notes = (Note(f"the other way round: {mirrored[2].message}", mirrored[0].element.span),)
            help = f"the `external_port_id`s of their entries seem to be exchanged; {_HELP}"
            said = replace(said, help=help, notes=notes)
        yield said


def _is(port: Port, tensor: Tensor) -> bool:
    return port.precision == tensor.type and not contradicts(port.dims, tensor)


def _counted(
    node: InferredLayer, others: Mapping[Value, Layer], counted: Mapping[Value, Layer]
) -> Iterator[tuple[Value, Layer]]:
    """The outputs whose numbers are known, of a layer that reads what is not as declared, or numbers made of that."""
    origins = [others.get(source) or counted.get(source) for source in node.layer.inputs if source is not None]
    origin = next(filter(None, origins), None)
    if origin is not None:
        for value, tensor in zip(node.layer.outputs, node.outputs, strict=False):
            if tensor.content is not None:
                yield value, origin


def _origin(
    node: InferredLayer,
    value: Value,
    inference: Inference,
    others: Mapping[Value, Layer],
    counted: Mapping[Value, Layer],
    wanted: Mapping[int, Port],
) -> Layer | None:
    """Where it begins that an output is not as declared: a layer before, or this one where it reads, if it would be so
    for inputs that are, and for any numbers in those that are `counted`; None if it begins at the output."""
    layer = node.layer
    inside = (
        entry.internal for body in layer.bodies.values() for entry in body.outputs if entry.external == value.index
    )
    results = [end.inputs[0] for end in inside if end.inputs]
    wrong = [result for result in results if result is not None and result in others]
    given = next((each for each in wrong if _is_given(value, node.outputs[value.index], each, inference)), None)
    if given is not None:
        return others[given]
    changed = [source for source in layer.inputs if source is not None and source in others]
    numbers = [source for source in layer.inputs if source is not None and source in counted]
    if not (changed or numbers or wanted):
        return None
    inputs: list[Tensor | None] = []
    for index, source in enumerate(layer.inputs):
        if source is None:
            inputs.append(None)
            continue
        known = inference.tensor(source)
        if source in counted:
            known = Tensor(known.type, known.shape)
        if index in wanted:
            known = as_declared(known, wanted[index])
        inputs.append(as_meant(known, source.port) if source in others and index not in wanted else known)
    try:
        outputs: Sequence[Tensor] | None
        if layer.bodies:
            outputs = outputs_alone(node.op, layer, inputs, node.attrs, inference.weights)
        else:
            outputs = node.op.infer(inputs, node.attrs).outputs
    except Violation:
        return None
    if outputs is None or value.index >= len(outputs):
        return None
    port, expected = value.port, outputs[value.index]
    if port.precision not in (None, expected.type) or not as_told(port, expected):
        return None
    return others[changed[0]] if changed else counted[numbers[0]] if numbers else layer


def _is_given(value: Value, known: Tensor, inside: Value, inference: Inference) -> bool:
    """Whether an output is not as declared in type or shape as what a body gives it is not, either."""
    port, within = value.port, inside.port
    typed = port.precision in (None, "dynamic", known.type, within.precision)
    return typed and (not _is_reshaped(port, known) or _is_reshaped(within, inference.tensor(inside)))


def _is_reshaped(port: Port, known: Tensor) -> bool:
    return not as_told(port, Tensor(port.precision or known.type, known.shape))


def _following(diagnostic: Diagnostic, origin: Layer) -> Diagnostic:
    cause = f"layer {origin}" if origin.label != diagnostic.layer else "what the layer reads"
    message = f"{diagnostic.message}, which follows from {cause}"
    note = Note("there it begins that ports and layers contradict", origin.span)
    return Diagnostic("I903", message, diagnostic.span, diagnostic.layer, notes=(note,))


def _compare_types(
    node: InferredLayer, port: Port, tensor: Tensor, where: str, inference: Inference, code: str = "W932"
) -> Iterator[Diagnostic]:
    computed = node.widened.values()  # which is reported, and what files say there
    if port.precision not in (None, "dynamic", tensor.type, *computed) and tensor.type != "dynamic":
        message = f"{where} is declared as {port.precision}, but is {tensor.type}"
        inference.contradicted.add(attribute_span(port.element, "precision"))
        yield Diagnostic(code, message, port.element.span, node.layer.label, _HELP)
    elif port.precision not in (None, "dynamic") and _takes_any_type(node.layer):
        message = f"{where} is declared as {port.precision}, but the `element_type` of the Parameter leaves it open"
        help = f"OpenVINO goes by the attribute: is {port.precision} meant there?"
        yield Diagnostic(code, message, port.element.span, node.layer.label, help)


def _is_compressed_output(node: InferredLayer, value: Value) -> bool:
    """Whether it is a constant that OpenVINO has compressed on saving, given back by the model as it is: of that it
    declares the type that the file has it in."""
    layer = node.layer
    if node.op.trait(Converting) is None or layer.rt_info is None or layer.inputs[0] is None:
        return False
    marked = any(mark.attributes.get("name") == "decompression" for mark in layer.rt_info.findall("attribute"))
    ends = any(reader.type == "Result" for reader, _ in value.consumers)
    return marked and ends and value.port.precision == layer.inputs[0].port.precision


def _takes_any_type(layer: Layer) -> bool:
    return layer.type == "Parameter" and layer.attributes.get("element_type") in ("dynamic", "undefined")


def _sizes_text(dims: Sequence[int]) -> str:
    return f"[{', '.join('?' if size == -1 else str(size) for size in dims)}]"


def _other_shape(node: InferredLayer, port: Port, tensor: Tensor, where: str) -> Diagnostic:
    message = f"{where} is declared as {_sizes_text(port.dims)}, but is {shape_text(tensor.shape)}"
    return Diagnostic("W931", message, port.element.span, node.layer.label, _HELP)
