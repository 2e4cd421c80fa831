"""The ports that a file declares against what inference knows: decoration to OpenVINO, a promise to readers."""

from __future__ import annotations

from collections.abc import Iterator

from irrun.check.infer import Inference, InferredLayer
from irrun.diagnostics import Diagnostic
from irrun.ir.graph import Port
from irrun.spec.op import Tensor
from irrun.spec.patterns import shape_text

_HELP = "OpenVINO ignores what ports declare and infers it; people and other tools read it"


def compare_declared(inference: Inference, *, sizes: bool = True) -> Iterator[Diagnostic]:
    """A warning for every port that contradicts the type or shape inferred for it; without `sizes` only for types.

    The type of a further output that nothing reads is an info.
    """
    for node in inference.nodes.values():
        for value, tensor in zip(node.layer.outputs, node.outputs, strict=False):
            code = "W932" if value.consumers or not value.index else "I902"
            yield from _compare(node, value.port, tensor, f"output {value.index}", sizes, code)
        for index, (port, source) in enumerate(zip(node.layer.input_ports, node.layer.inputs, strict=False)):
            # what the producer's port says is reported there
            if source is not None and port.dims != source.port.dims:
                known = inference.tensor(source)
                if known is not None:
                    yield from _compare(node, port, known, f"input {index}", sizes)


def _compare(
    node: InferredLayer, port: Port, tensor: Tensor, where: str, sizes: bool, code: str = "W932"
) -> Iterator[Diagnostic]:
    computed = node.widened.values()  # which is reported, and what files say there
    if port.precision not in (None, "dynamic", tensor.type, *computed) and tensor.type != "dynamic":
        message = f"{where} is declared as {port.precision}, but is {tensor.type}"
        yield Diagnostic(code, message, port.element.span, node.layer.label, _HELP)
    # no dims: a scalar or an unknown rank, the file is silent
    if not sizes or not port.dims or not contradicts(port.dims, tensor):
        return
    declared = f"[{', '.join('?' if size == -1 else str(size) for size in port.dims)}]"
    message = f"{where} is declared as {declared}, but is {shape_text(tensor.shape)}"
    yield Diagnostic("W931", message, port.element.span, node.layer.label, _HELP)


def contradicts(dims: tuple[int, ...], tensor: Tensor) -> bool:
    """Whether no tensor could have both the declared sizes and the inferred ones."""
    if tensor.shape is None:
        return False
    if len(dims) != len(tensor.shape):
        return True
    return any(size != -1 and (size == known) is False for size, known in zip(dims, tensor.shape, strict=True))
