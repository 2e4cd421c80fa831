"""What is known of the bodies of a program, which may compute in other types than the graph that they come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from irrun.check.infer import Inference, infer_body
from irrun.ir.graph import Graph
from irrun.run.program import Program
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Tensor


def body_inference(graph: Graph, program: Program, inference: Inference) -> Callable[[Sequence[Tensor]], list[Tensor]]:
    """Maps what is known of the parameters of a body's `program` to what is known of its results."""
    if program.borders is None:
        return partial(infer_body, graph, inference)
    parameters, results = program.borders
    made = [program.tensors[number].type for number in program.results]
    seen: dict[int, tuple[Tensor, Tensor]] = {}  # what was asked before is known by the same objects

    def infer(tensors: Sequence[Tensor]) -> list[Tensor]:
        given = []
        for tensor, type in zip(tensors, parameters, strict=True):
            if id(tensor) not in seen:
                seen[id(tensor)] = tensor, _declared(tensor, type)
            given.append(seen[id(tensor)][1])
        found = infer_body(graph, inference, given)
        return [
            tensor if type == own else Tensor(own, tensor.shape)
            for tensor, type, own in zip(found, results, made, strict=True)
        ]

    return infer


def _declared(tensor: Tensor, type: str) -> Tensor:
    """A tensor in the type that a parameter declares."""
    if tensor.type in (type, "dynamic"):
        return tensor
    value = None if tensor.value is None or tensor.value.dtype == object else tensor.value.astype(numpy_dtype(type))
    return Tensor(type, tensor.shape, value)
