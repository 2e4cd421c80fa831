"""Bodies as a whole against what reaches them: Parameters that get other shapes than they declare, results of all
iterations where they are joined, and values that no iteration hands on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

from irrun.check.attributes import with_note
from irrun.check.doubts import doubtful_source
from irrun.check.infer import Inference, InferredLayer, body_of, failing_alone, infer_graph, read_alone
from irrun.check.origins import contradicts, misarrived, misdeclared
from irrun.diagnostics import Diagnostic, LayerName, Note, retold
from irrun.ir.bodies import OF_SLICES
from irrun.ir.graph import Graph, Layer, LayerBody, PortMap, leading_to, outside
from irrun.ir.xml import attribute_span
from irrun.spec.body import Misfit, misfit
from irrun.spec.dims import Shape, Size, incompatible, same_shapes
from irrun.spec.op import Tensor
from irrun.spec.patterns import shape_text
from irrun.spec.traits import Iterating

_ENTRIES = ("<input> ", "<output> ")
"""What is said of their attributes begins with it."""


def check_bodies(inference: Inference, *, sizes: bool = True) -> Iterator[Diagnostic]:
    """What is wrong with the bodies of a model beyond single layers; without `sizes` ports say nothing about it."""
    for graph, parameters in inference.mistaken.items():
        yield from _mistaken(graph, parameters, inference, sizes=sizes)
    for graph, parameters in inference.narrowed.items():
        if graph not in inference.mistaken:
            yield from _narrowed(graph, parameters, inference)
    for node in [node for node in inference.nodes.values() if node.layer.bodies]:
        if "bodies" not in node.op.context:
            for body in node.layer.bodies.values():
                message = f"<{body.graph.element.tag}> is not read here: {node.op.name} has no body"
                yield Diagnostic("W907", message, body.graph.element.span, node.layer.label, "delete it")
        elif node.op.trait(Iterating) is not None:
            yield from _last_values(node, inference)
            iterator = not node.op.least_inputs
            found = [*_changed_values(node, inference, iterator=iterator)] or [*_joins(node, iterator=iterator)]
            yield from found
            if sizes and not found and node.layer not in inference.blamed:
                yield from _other_entries(node, inference)


def told_at_entries(
    read: Sequence[Diagnostic], found: Sequence[Diagnostic]
) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """What the reader has said, and what was found, with attributes of an entry of a port map that nothing reads as
    notes of the error of that entry, and what such an entry lacks as a note of these."""
    unread: dict[tuple[LayerName | None, int | None], list[Diagnostic]] = {}
    for each in read:
        if each.code == "W944" or (each.code == "W930" and each.message.startswith(_ENTRIES)):
            unread.setdefault((each.layer, each.line), []).append(each)
    told: dict[int, Diagnostic | None] = {}
    for each in (one for one in read if one.code == "W943"):
        sliced = next((other for other in found if _is_of_slices(other, each)), None)
        if sliced is not None:
            told[id(each)] = None
            told[id(sliced)] = with_note(sliced, each)
    for each in found:
        if each.code == "W941" and (each.layer, each.line) in unread:
            first = unread[each.layer, each.line][0]
            told[id(each)] = None
            told[id(first)] = with_note(first, each)
    for error in (*found, *read):
        entry = error.severity == "error" or (error.code in ("W940", "W944") and error in found)
        for each in unread.pop((error.layer, error.line), ()) if entry else ():
            told[id(each)] = None
            told[id(error)] = with_note(told.get(id(error)) or error, each)
    for first, *others in unread.values():
        first = told.get(id(first)) or first
        if first.code == "W930":
            told |= {id(each): None for each in others}
            told[id(first)] = reduce(with_note, others, first)
    return retold(read, told), retold(found, told)


def _is_of_slices(found: Diagnostic, unused: Diagnostic) -> bool:
    """Whether it is about the entry whose slices leave a back edge without effect."""
    entry = unused.notes[0].span if unused.notes else None
    return found.layer == unused.layer and entry is not None and found.line == entry.line


def _mistaken(
    graph: Graph, parameters: dict[Layer, tuple[Tensor, Tensor]], inference: Inference, *, sizes: bool
) -> Iterator[Diagnostic]:
    """A body whose Parameters get other shapes than they declare: OpenVINO reads it with these, and runs it with those.

    An error inside it says it all, unless it is slices that give Parameters what the body fails with.
    """
    assert graph.owner is not None
    inside = _errors(graph.layers, inference)
    if inside:
        blamed = list(_failing_slices(parameters, graph.owner, inside[0], inference))
        if blamed and read_alone(graph, inference.weights) is None:
            inference.diagnostics = [found for found in inference.diagnostics if found not in inside]
            yield from blamed
        return
    if _errors([graph.owner], inference):
        return
    failure = read_alone(graph, inference.weights)
    done: set[Layer] = set()
    for layer, (declared, given) in parameters.items():
        message = _gets(declared, given)
        other = None if failure else _exchanged(layer, parameters)
        if other is not None:
            help = f"layer {other} declares the one and gets the other: are the entries of both exchanged?"
            done.add(other)
            if layer not in done:
                yield from _of_source(replace(_at_parameter(layer, message, None), help=help), layer, inference)
            continue
        slices = None if failure or not sizes else _blamed_slices(layer, declared, inference)
        if slices is not None:
            inference.blamed.add(graph.owner)
            if not _is_reported(slices[0]):
                yield _of_slices(*slices, message, graph.owner)
            continue
        if failure or outside(layer) not in misdeclared(graph.owner, inference):  # which is reported
            yield from _of_source(_at_parameter(layer, message, failure), layer, inference)
        if failure:
            return


def _of_source(found: Diagnostic, parameter: Layer, inference: Inference) -> Iterator[Diagnostic]:
    """What is wrong with what a Parameter gets; where something that the owner reads is not as ports declare, of which
    it is told, an error is noted there, and a warning says no more."""
    owner = parameter.graph.owner
    if owner is None or owner.graph.owner is not None:
        if owner is None or found.severity == "error" or owner.graph not in inference.mistaken:  # of which it is told
            yield found
        return
    wrong = [*misdeclared(owner, inference), *misarrived(owner, inference)]
    source = outside(parameter)
    cause = source if source in wrong else next(iter(wrong), None)
    if cause is not None and found.severity == "error":
        inference.betrayed.setdefault(cause, []).append(found)
    if cause is None or found.severity == "error":
        yield found


def _exchanged(layer: Layer, parameters: dict[Layer, tuple[Tensor, Tensor]]) -> Layer | None:
    """The Parameter that gets what this one declares, and the other way round."""
    declared, given = parameters[layer]
    for other, (wanted, got) in parameters.items():
        if same_shapes(wanted.shape, given.shape) and same_shapes(declared.shape, got.shape):
            return other
    return None


def _narrowed(
    graph: Graph, parameters: dict[Layer, tuple[Tensor, Tensor]], inference: Inference
) -> Iterator[Diagnostic]:
    """An error of a body that OpenVINO cannot read by what its Parameters declare, which may be what they get."""
    if graph.owner is None or _errors([*graph.layers, graph.owner], inference):
        return
    failure = read_alone(graph, inference.weights)
    if failure is not None:
        layer, (declared, given) = next(iter(parameters.items()))
        yield _at_parameter(layer, _gets(declared, given), failure)


def _gets(declared: Tensor, given: Tensor) -> str:
    return f"the Parameter declares {shape_text(declared.shape)}, but gets {shape_text(given.shape)}"


def _errors(layers: Sequence[Layer], inference: Inference) -> list[Diagnostic]:
    labels = {layer.label for layer in layers}
    return [found for found in inference.diagnostics if found.layer in labels and found.severity == "error"]


def _at_parameter(layer: Layer, message: str, failure: Diagnostic | None) -> Diagnostic:
    """What is said of a Parameter of a body that gets another shape than it declares."""
    body, owner = layer.graph.element.tag, layer.graph.owner
    help = "write the shape that it gets; OpenVINO takes that in a run, other readers go by the file"
    help = help if failure is None else failing_alone(failure)
    notes = (Note(f"in the {body} of layer {owner}", owner.span if owner else None),)
    span = attribute_span(layer.data or layer.element, "shape")
    return Diagnostic("W940" if failure is None else "E304", message, span, layer.label, help, notes)


def _failing_slices(
    parameters: dict[Layer, tuple[Tensor, Tensor]], owner: Layer, failure: Diagnostic, inference: Inference
) -> Iterator[Diagnostic]:
    """Errors of the entries that slice what Parameters get, where these get what the body fails with."""
    for parameter, (declared, given) in parameters.items():
        slices = _misfitting(parameter, declared, owner, inference)
        if slices is None:
            continue
        entry, found = slices
        message = f"{_gets(declared, given)}: {found.message}"
        fails = Note(f"with that, layer {failure.layer} fails: {failure.message}", failure.span)
        error = _at_entry("E304", message, entry, found.attribute, owner, found.help)
        yield from _of_source(replace(error, notes=(fails, *failure.notes)), parameter, inference)


def _misfitting(
    parameter: Layer, declared: Tensor, owner: Layer, inference: Inference
) -> tuple[PortMap, Misfit] | None:
    """The entry that gives a Parameter what it does not declare, and what is wrong with its slices."""
    for entry in owner.bodies["body"].inputs if "body" in owner.bodies else ():
        if entry.internal is parameter and entry.external >= 0:
            whole = inference.tensor(owner.inputs[entry.external]).shape
            found = misfit(entry.axis, entry.part_size, declared.shape, whole)
            return None if found is None else (entry, found)
    return None


def _blamed_slices(parameter: Layer, declared: Tensor, inference: Inference) -> tuple[PortMap, Misfit] | None:
    """The entry that slices what a Parameter gets, and what is wrong with it.

    None unless the ports outside contradict that, too, or a back edge hands on what would be sliced.
    """
    owner = parameter.graph.owner
    node = inference.nodes.get(owner) if owner is not None else None
    if owner is None or node is None or node.op.trait(Iterating) is None:
        return None
    slices = _misfitting(parameter, declared, owner, inference)
    carried = any(edge.parameter is parameter for edge in owner.bodies["body"].back_edges)
    if slices is None or (slices[0].axis is None if carried else not _off(node)):
        return None
    return slices


def _of_slices(entry: PortMap, found: Misfit, message: str, layer: Layer) -> Diagnostic:
    help = f"{found.help}, or mend what the Parameter declares"
    return _at_entry("W940", f"{message}: {found.message}", entry, found.attribute, layer, help)


def _at_entry(code: str, message: str, entry: PortMap, attribute: str, layer: Layer, help: str) -> Diagnostic:
    there = attribute in entry.element.attributes
    span = attribute_span(entry.element, attribute) if there else entry.element.span
    return Diagnostic(code, message, span, layer.label, help)


def _off(node: InferredLayer) -> list[int]:
    """The numbers of the outputs whose ports declare sizes that these cannot have."""
    pairs = enumerate(zip(node.layer.outputs, node.outputs, strict=False))
    return [number for number, (value, tensor) in pairs if value.port.dims and contradicts(value.port.dims, tensor)]


def _other_entries(node: InferredLayer, inference: Inference) -> Iterator[Diagnostic]:
    """Outputs that are not what their ports declare, but would be with another entry of the port map.

    Nothing is said of the ports then.
    """
    off = _off(node)
    if not off:
        return
    layer, body = node.layer, node.layer.bodies["body"]
    rounds = _rounds(node, inference)
    joined, others = [], []
    for entry in (entry for entry in body.outputs if entry.external in off):
        shape = inference.tensor(entry.internal.inputs[0]).shape if entry.internal.inputs else None
        dims = layer.outputs[entry.external].port.dims
        if shape is None or len(dims) != max(len(shape), 1):
            continue
        found = _other_axis(entry, dims, shape or (1,), rounds)
        if found is not None:
            others.append((entry, dims, found))
        elif entry.axis is not None:
            joined.append((entry, dims, shape or (1,)))
    for entry, dims, (what, help) in others if len(others) == 1 else ():  # two may have changed places
        inference.blamed.add(layer)
        if not _is_reported(entry):
            yield _at_entry("W944", _declaring(entry, dims, what), entry, "axis", layer, help)
    if joined and not others:
        yield from _other_slices(node, joined, inference)


def _is_reported(entry: PortMap) -> bool:
    """Whether it was read that the entry says how to slice, but has no `axis`."""
    return entry.axis is None and not entry.element.attributes.keys().isdisjoint(OF_SLICES)


def _declaring(entry: PortMap, dims: Sequence[int], what: str) -> str:
    declared = f"[{', '.join('?' if size == -1 else str(size) for size in dims)}]"
    return f"output {entry.external} is declared as {declared}, {what}"


def _other_axis(entry: PortMap, dims: tuple[int, ...], shape: Shape, rounds: object) -> tuple[str, str] | None:
    """How an output that is not as declared would be: with an `axis`, with another one, or without; and what to do."""
    if entry.axis is not None and not contradicts(dims, Tensor("dynamic", shape)):
        help = "delete `axis` and what belongs to it, or mend what the port declares"
        return f"as one iteration gives it, but all are joined along axis {entry.axis}", help
    if not isinstance(rounds, int) or rounds < 2:
        return None
    along = []
    for axis, size in enumerate(shape):
        whole = (*shape[:axis], size * rounds, *shape[axis + 1 :])
        if not contradicts(dims, Tensor("dynamic", whole)):
            along.append(axis)
    if len(along) != 1:
        return None
    joined = "is the last iteration's" if entry.axis is None else f"is joined along axis {entry.axis}"
    what = f"as {rounds} iterations joined along axis {along[0]} give it, but {joined}"
    return what, f'write axis="{along[0]}", or mend what the port declares'


def _other_slices(
    node: InferredLayer, joined: list[tuple[PortMap, tuple[int, ...], Shape]], inference: Inference
) -> Iterator[Diagnostic]:
    """Inputs of which a part is sliced, where outputs are declared as slices of the whole would give them."""
    wanted = {_iterations_of(entry, dims, shape) for entry, dims, shape in joined}
    if len(wanted) != 1:
        return
    count = wanted.pop()
    layer = node.layer
    for entry in layer.bodies["body"].inputs:
        whole = inference.tensor(layer.inputs[entry.external]).shape if entry.external >= 0 else None
        if entry.axis is None or whole is None or not -len(whole) <= entry.axis < len(whole):
            continue
        size = whole[entry.axis]
        if not isinstance(size, int) or count is None or entry.part_size * count != size:
            continue
        start, end = (size + index if index < 0 else index for index in (entry.start, entry.end))
        first, last = (0, size - 1) if entry.stride > 0 else (size - 1, 0)
        name = "start" if start != first else "end" if end != last else "stride"
        if name == "stride" and abs(entry.stride) == entry.part_size:
            continue
        output, dims, _ = joined[0]
        what = f"start {entry.start}, end {entry.end} and stride {entry.stride} do not take all {size} elements"
        message = f"{what} of axis {entry.axis}, but {_declaring(output, dims, f'as {count} slices give it')}"
        help = 'write start="0" end="-1", or start="-1" end="0" for a negative stride, and as `stride` the `part_size`'
        yield _at_entry("W944", message, entry, name, layer, f"{help}; or mend what the port declares")
        inference.blamed.add(layer)


def _iterations_of(entry: PortMap, dims: tuple[int, ...], shape: Shape) -> int | None:
    """How many results of `shape` join to what a port declares."""
    assert entry.axis is not None
    axis = entry.axis % len(shape)
    others = (*dims[:axis], -1, *dims[axis + 1 :])
    part, total = shape[axis], dims[axis]
    if contradicts(others, Tensor("dynamic", shape)) or not isinstance(part, int) or part < 1 or total % part:
        return None
    return total // part


def _joins(node: InferredLayer, *, iterator: bool) -> Iterator[Diagnostic]:
    """Outputs whose `start`, `end` and `stride` do not cover the joined axis as it comes out.

    OpenVINO refuses that of a TensorIterator. Of a Loop it looks at the direction and the length of a step only, which
    the op's rule checks.
    """
    for entry in node.layer.bodies["body"].outputs:
        shape = node.outputs[entry.external].shape if 0 <= entry.external < len(node.outputs) else None
        if entry.axis is None or not shape or not -len(shape) <= entry.axis < len(shape):
            continue
        total = shape[entry.axis]
        if not isinstance(total, int) or not total or not entry.stride or entry.part_size < 1:
            continue
        start, end = (total + index if index < 0 else index for index in (entry.start, entry.end))
        first, last = (start, end) if entry.stride > 0 else (end, start)
        covered, stepped = first == 0 and last == total - 1, abs(entry.stride) == entry.part_size
        if covered and stepped:
            continue
        name = "stride" if covered else "start" if entry.start not in (0, -1) else "end"
        name = name if name in entry.element.attributes else "axis"
        what = f"start {entry.start}, end {entry.end} and stride {entry.stride} do not cover the {total} elements"
        message = f"{what} that results of {entry.part_size} join to"
        help = 'write start="0" end="-1", or start="-1" end="0" for a negative stride, and as `stride` the `part_size`'
        span = attribute_span(entry.element, name)
        code = "E304" if iterator else "W944"
        yield Diagnostic(code, message, span, node.layer.label, help)


def _last_values(node: InferredLayer, inference: Inference) -> Iterator[Diagnostic]:
    """Warnings of outputs that are those of the last iteration, though none before it has any effect on them."""
    layer, body = node.layer, node.layer.bodies["body"]
    carried = {edge.parameter for edge in body.back_edges}
    condition = next((entry for entry in body.outputs if entry.purpose), None)
    if condition is not None and any(found.type == "Parameter" for found in leading_to([condition.internal])):
        return  # the last iteration is the one that was looked for
    alive = leading_to(body.graph.sinks)
    if any((found.inputs and found not in alive) or misarrived(found, inference) for found in body.graph.layers):
        return  # of which it is told
    lost = [entry for entry in _last(body) if _renewed(leading_to([entry.internal]), carried, inference)]
    if not lost:
        return
    rounds = _rounds(node, inference)
    if isinstance(rounds, int) and rounds < 2:
        return
    for entry in lost:
        message = f"output {entry.external} has the value of the last iteration, which gets nothing from those before"
        help = (
            f"add a back edge from layer {entry.internal.id} to the Parameter that its value is meant for, or an "
            "`axis` along which the results are joined"
        )
        yield Diagnostic("W941", message, entry.element.span, layer.label, help)


def _changed_values(node: InferredLayer, inference: Inference, *, iterator: bool) -> Iterator[Diagnostic]:
    """Back edges that hand on another shape than the first iteration gets: OpenVINO's TensorIterator has memory for
    that one, and reads beyond what there is or refuses the model; its Loop does so where the number of axes differs
    and the value is an output as well, or all other sizes are known. Else it is an error if layers cannot be computed
    with the value. Of a Loop it is told as well where the Parameter declares that it cannot have that shape.
    """
    layer, body = node.layer, node.layer.bodies["body"]
    if _errors(body.graph.layers, inference) or doubtful_source(layer, inference.weights) in inference.refuted:
        return  # of which it is told
    starts = {
        entry.internal: inference.tensor(layer.inputs[entry.external])
        for entry in body.inputs
        if entry.axis is None and entry.external >= 0
    }
    known = {found: inference.nodes[found].outputs[0] for found in body.graph.parameters if found in inference.nodes}
    pairs = [(start.shape, known[parameter].shape) for parameter, start in starts.items() if parameter in known]
    if all(first is None or same_shapes(first, each) for first, each in pairs):
        return
    rounds = _rounds(node, inference)
    if isinstance(rounds, int) and rounds < 2:
        return
    scratch = Inference(inference.weights)
    scratch.repeated = inference.repeated  # one account: of loops in loops, each would infer all that are within again
    infer_graph(body.graph, scratch, known | starts)
    inference.repeated = scratch.repeated
    given = [inference.tensor(value) for value in layer.inputs]
    given_out = {entry.internal for entry in body.outputs if entry.external >= 0}
    for edge in body.back_edges:
        first, then = starts.get(edge.parameter), scratch.tensor(edge.result.inputs[0] if edge.result.inputs else None)
        if first is None or first.shape is None or then.shape is None or not incompatible(first.shape, then.shape):
            continue
        begun, handed = shape_text(first.shape), shape_text(then.shape)
        message = f"the first iteration gets {begun} as layer {edge.parameter}, the next ones {handed}"
        what = "values of other shapes" if iterator else "values of another rank"
        others = [*given, *(each for parameter, each in known.items() if parameter is not edge.parameter)]
        alike = len(first.shape) == len(then.shape)  # of which other things are told
        refused = iterator or alike or edge.result in given_out or all(tensor.static for tensor in others)
        failure = None if refused else _failing_with(body.graph, known | starts | {edge.parameter: then}, inference)
        does = f"cannot hand on {what}" if refused else f"hands on {what} only where all that read them do with both"
        does = f"OpenVINO {does}" if failure is None else "layers of the body cannot be computed with what is handed on"
        help = f"{does}: give the result the shape that the Parameter has, or begin with its own"
        code = "E304" if isinstance(rounds, int) and (refused or failure is not None) else "W940"
        if not iterator and alike:
            parameter = inference.nodes.get(edge.parameter)
            declared = parameter.attrs["shape"] if parameter else None
            if not incompatible(declared, then.shape):
                continue
            code, help = "W940", f"the Parameter declares {shape_text(declared)}: is the edge meant for another one?"
        if code == "W940" and edge.parameter in inference.mistaken.get(body.graph, {}):  # which is reported
            continue
        inside = next((value for each in body.graph.layers for value in misdeclared(each, inference)), None)
        if code == "W940" and inside is not None:  # which is reported
            continue
        notes = () if failure is None else (Note(f"layer {failure.layer}: {failure.message}", failure.span),)
        found = Diagnostic(code, message, edge.element.span, layer.label, help, notes)
        if inside is not None:
            inference.betrayed.setdefault(inside, []).append(found)
        yield from _of_source(found, edge.parameter, inference)


def _failing_with(body: Graph, given: dict[Layer, Tensor], inference: Inference) -> Diagnostic | None:
    """The first error of a body whose Parameters are `given` these."""
    scratch = Inference(inference.weights)
    scratch.repeated = inference.repeated
    infer_graph(body, scratch, given)
    inference.repeated = scratch.repeated
    return next((found for found in scratch.diagnostics if found.severity == "error"), None)


def _rounds(node: InferredLayer, inference: Inference) -> Size | None:
    """How often the body of a layer runs at most."""
    trait = node.op.trait(Iterating)
    assert trait is not None
    given = [inference.tensor(value) for value in node.layer.inputs]
    return trait.rounds(body_of(node.layer.bodies["body"], inference), given)


def _renewed(layers: set[Layer], carried: set[Layer], inference: Inference) -> bool:
    """Whether layers of a body hold nothing of an iteration before: no value that is carried, no state."""
    nodes = [inference.nodes.get(layer) for layer in layers]
    whole = all(node and (node.op.pure or not node.op.inputs) for node in nodes)
    return whole and not layers & carried and not any(None in layer.inputs for layer in layers)


def _last(body: LayerBody) -> list[PortMap]:
    return [entry for entry in body.outputs if entry.axis is None and entry.external >= 0]
