"""Bodies as a whole against what reaches them: Parameters that get other shapes than they declare, results of all
iterations where they are joined, and values that no iteration hands on."""

from __future__ import annotations

from collections.abc import Iterator

from irrun.check.infer import Inference, InferredLayer, body_of, infer_graph
from irrun.diagnostics import Diagnostic, Note
from irrun.ir.graph import Graph, Layer, LayerBody, PortMap, leading_to
from irrun.ir.xml import attribute_span
from irrun.spec.op import Tensor
from irrun.spec.patterns import shape_text
from irrun.spec.traits import Iterating


def check_bodies(inference: Inference) -> Iterator[Diagnostic]:
    """What is wrong with the bodies of a model beyond single layers."""
    for graph, parameters in inference.mistaken.items():
        yield from _mistaken(graph, parameters, inference)
    for node in [node for node in inference.nodes.values() if node.layer.bodies]:
        if "bodies" not in node.op.context:
            for body in node.layer.bodies.values():
                message = f"<{body.graph.element.tag}> is not read here: {node.op.name} has no body"
                yield Diagnostic("W907", message, body.graph.element.span, node.layer.label, "delete it")
        elif node.op.trait(Iterating) is not None:
            yield from _joins(node, inference, iterator=not node.op.least_inputs)
            yield from _last_values(node, inference)


def _mistaken(
    graph: Graph, parameters: dict[Layer, tuple[Tensor, Tensor]], inference: Inference
) -> Iterator[Diagnostic]:
    """A body whose Parameters get other shapes than they declare: OpenVINO reads it with these, and runs it with those.

    An error inside it says it all.
    """
    assert graph.owner is not None
    labels = {graph.owner.label, *(layer.label for layer in graph.layers)}
    if any(found.layer in labels and found.severity == "error" for found in inference.diagnostics):
        return
    scratch = Inference(inference.weights)
    infer_graph(graph, scratch, {})
    failure = next((found for found in scratch.diagnostics if found.severity == "error"), None)
    for layer, (declared, given) in parameters.items():
        message = f"the Parameter declares {shape_text(declared.shape)}, but gets {shape_text(given.shape)}"
        help = "write the shape that it gets; OpenVINO takes that in a run, other readers go by the file"
        if failure is not None:
            help = f"OpenVINO reads the body by what it declares, where layer {failure.layer} fails: {failure.message}"
        span = attribute_span(layer.data or layer.element, "shape")
        notes = (Note(f"in the {graph.element.tag} of layer {graph.owner}", graph.owner.span),)
        yield Diagnostic("E304" if failure else "W940", message, span, layer.label, help, notes)
        if failure:
            return


def _joins(node: InferredLayer, inference: Inference, *, iterator: bool) -> Iterator[Diagnostic]:
    """Outputs whose `start`, `end` and `stride` do not cover the joined axis as it comes out.

    OpenVINO refuses that of a TensorIterator. Of a Loop it looks at the direction and the length of a step only.
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
        code = "E304" if iterator or not _steps(entry, inference) else "W944"
        yield Diagnostic(code, message, span, node.layer.label, help)


def _steps(entry: PortMap, inference: Inference) -> bool:
    """Whether the `stride` of a joined output may be the length of the results that are joined."""
    shape = inference.tensor(entry.internal.inputs[0]).shape if entry.internal.inputs else None
    if entry.axis is None or not shape or not -len(shape) <= entry.axis < len(shape):
        return True
    return (shape[entry.axis] == abs(entry.stride)) is not False


def _last_values(node: InferredLayer, inference: Inference) -> Iterator[Diagnostic]:
    """Warnings of outputs that are those of the last iteration, though none before it has any effect on them."""
    layer, body = node.layer, node.layer.bodies["body"]
    carried = {edge.parameter for edge in body.back_edges}
    condition = next((entry for entry in body.outputs if entry.purpose), None)
    if condition is not None and any(found.type == "Parameter" for found in leading_to([condition.internal])):
        return  # the last iteration is the one that was looked for
    lost = [entry for entry in _last(body) if _renewed(leading_to([entry.internal]), carried, inference)]
    if not lost:
        return
    trait = node.op.trait(Iterating)
    assert trait is not None
    rounds = trait.rounds(body_of(body, inference), [inference.tensor(value) for value in layer.inputs])
    if isinstance(rounds, int) and rounds < 2:
        return
    for entry in lost:
        message = f"output {entry.external} has the value of the last iteration, which gets nothing from those before"
        help = (
            f"add a back edge from layer {entry.internal.id} to the Parameter that its value is meant for, or an "
            "`axis` along which the results are joined"
        )
        yield Diagnostic("W941", message, entry.element.span, layer.label, help)


def _renewed(layers: set[Layer], carried: set[Layer], inference: Inference) -> bool:
    """Whether layers of a body hold nothing of an iteration before: no value that is carried, no state."""
    nodes = [inference.nodes.get(layer) for layer in layers]
    whole = all(node and (node.op.pure or not node.op.inputs) for node in nodes)
    return whole and not layers & carried and not any(None in layer.inputs for layer in layers)


def _last(body: LayerBody) -> list[PortMap]:
    return [entry for entry in body.outputs if entry.axis is None and entry.external >= 0]
