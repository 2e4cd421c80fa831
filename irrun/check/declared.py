"""The ports that a file declares against what inference knows: decoration to OpenVINO, a promise to readers."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from irrun.check.doubts import followers
from irrun.check.infer import Inference, InferredLayer
from irrun.diagnostics import Diagnostic, LayerName, Note
from irrun.ir.graph import Layer, Port, Value
from irrun.ir.xml import attribute_span
from irrun.spec.dims import Shape, fresh, incompatible
from irrun.spec.op import Tensor, Violation
from irrun.spec.patterns import shape_text

_HELP = "OpenVINO ignores what ports declare and infers it; people and other tools read it"


def compare_declared(inference: Inference, *, sizes: bool = True) -> Iterator[Diagnostic]:
    """A warning for every port that contradicts the type or shape inferred for it; without `sizes` only for types.

    The type of a further output that nothing reads is an info, and so is what is right for inputs that are as their
    ports declare: a warning says where that begins.
    """
    others: dict[Value, Layer] = {}  # that are not as their ports declare, with the layer where it begins
    silent: list[tuple[InferredLayer, Port, Tensor, str]] = []
    fitting: set[tuple[int, int]] = set()  # of layers that are alike the shapes are one object, declared and inferred
    mistaken, blamed = inference.mistaken, inference.blamed
    doubtful = followers(inference.nodes, inference.weights)
    refused = {found.layer for found in inference.diagnostics if found.code == "E303"}
    for node in inference.nodes.values():
        layer = node.layer
        if layer in doubtful:  # whose cause is reported
            continue
        sized = sizes and not (mistaken and layer.graph in mistaken)
        outputs: Sequence[Tensor] = node.outputs
        if not node.op.outputs or len(layer.outputs) > len(outputs):  # which is reported, or was left by old converters
            outputs = ()
        for value, tensor in zip(layer.outputs, outputs, strict=False):
            port = value.port
            if port.precision != tensor.type and not (layer.type == "Const" and _is_refused(value, inference, refused)):
                code = "W932" if value.consumers or not value.index else "I902"
                for found in _compare_types(node, port, tensor, f"output {value.index}", inference, code):
                    origin = others[value] = _origin(node, value, inference, others)
                    yield found if origin is layer else _following(found, origin)
            if port.dims:
                pair = id(port.dims), id(tensor.shape)
                if pair in fitting:
                    continue
                if not contradicts(port.dims, tensor):
                    fitting.add(pair)
                elif sized and layer not in blamed and not (layer.bodies and node.doubts):  # too many iterations
                    origin = others[value] = _origin(node, value, inference, others)
                    found = _other_shape(node, port, tensor, f"output {value.index}")
                    yield found if origin is layer else _following(found, origin)
            elif tensor.shape and (tensor.static or not node.op.inputs) and node.attrs.get("shape", ()) is not None:
                silent.append((node, port, tensor, f"output {value.index}"))
        for index, (port, source) in enumerate(zip(layer.input_ports, layer.inputs, strict=False)):
            if source is None:
                continue
            declared = source.port
            if port.dims == declared.dims and port.precision == declared.precision:  # which is reported there
                continue
            known = inference.tensor(source)
            if port.precision != declared.precision:
                yield from _compare_types(node, port, known, f"input {index}", inference)
            if port.dims and port.dims != declared.dims:
                if sized and contradicts(port.dims, known):
                    yield _other_shape(node, port, known, f"input {index}")
            elif port.precision and declared.dims and known.shape and not port.dims:
                silent.append((node, port, known, f"input {index}"))
    if silent and sizes and any(value.port.dims for node in inference.nodes.values() for value in node.layer.outputs):
        for node, port, tensor, where in silent:  # in a file whose ports say sizes, one without is one of a scalar
            if not port.element.children and node.layer.graph not in mistaken:
                message = f"{where} is declared without dimensions, as a scalar is, but is {shape_text(tensor.shape)}"
                yield Diagnostic("W931", message, port.element.span, node.layer.label, _HELP)


def _origin(node: InferredLayer, value: Value, inference: Inference, others: Mapping[Value, Layer]) -> Layer:
    """Where it begins that an output is not as declared: in a layer before, if it would be so for inputs that are."""
    layer = node.layer
    changed = [source for source in layer.inputs if source is not None and source in others]
    if not changed or layer.bodies:
        return layer
    inputs = [None if source is None else _as_declared(source, inference, others) for source in layer.inputs]
    try:
        outputs = node.op.infer(inputs, node.attrs).outputs
    except Violation:
        return layer
    if value.index >= len(outputs):
        return layer
    port, expected = value.port, outputs[value.index]
    follows = port.precision in (None, expected.type) and not (port.dims and contradicts(port.dims, expected))
    return others[changed[0]] if follows else layer


def _as_declared(source: Value, inference: Inference, others: Mapping[Value, Layer]) -> Tensor:
    """What is known of a tensor, or declared if that is something else."""
    known, port = inference.tensor(source), source.port
    if source not in others:
        return known
    shape = tuple(fresh() if size == -1 else size for size in port.dims) if port.dims else known.shape
    return Tensor(port.precision or known.type, shape)


def _following(diagnostic: Diagnostic, origin: Layer) -> Diagnostic:
    message = f"{diagnostic.message}, which follows from layer {origin}"
    note = Note("there it begins that ports and layers contradict", origin.span)
    return Diagnostic("I903", message, diagnostic.span, diagnostic.layer, notes=(note,))


def _is_refused(value: Value, inference: Inference, refused: Container[LayerName | None]) -> bool:
    """Whether a layer that reads a value is `refused` for types: that of the value, which the port does not have."""
    return any(layer.label in refused for layer, _ in value.consumers if layer not in inference.nodes)


def _compare_types(
    node: InferredLayer, port: Port, tensor: Tensor, where: str, inference: Inference, code: str = "W932"
) -> Iterator[Diagnostic]:
    computed = node.widened.values()  # which is reported, and what files say there
    if port.precision not in (None, "dynamic", tensor.type, *computed) and tensor.type != "dynamic":
        message = f"{where} is declared as {port.precision}, but is {tensor.type}"
        inference.contradicted.add(attribute_span(port.element, "precision"))
        yield Diagnostic(code, message, port.element.span, node.layer.label, _HELP)


def _other_shape(node: InferredLayer, port: Port, tensor: Tensor, where: str) -> Diagnostic:
    declared = f"[{', '.join('?' if size == -1 else str(size) for size in port.dims)}]"
    message = f"{where} is declared as {declared}, but is {shape_text(tensor.shape)}"
    return Diagnostic("W931", message, port.element.span, node.layer.label, _HELP)


def contradicts(dims: tuple[int, ...], tensor: Tensor) -> bool:
    """Whether no tensor could have both the declared sizes, of which -1 is any, and the inferred ones."""
    declared: Shape = dims
    if tensor.shape is not None and -1 in dims and len(dims) == len(tensor.shape):
        declared = tuple(known if size == -1 else size for size, known in zip(dims, tensor.shape, strict=True))
    return incompatible(declared, tensor.shape)
