"""Condition ops: one of two bodies, one of two elements, and where elements are not zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irrun.spec import Array, Body, Input, Node, Output, Tensor, Undecided, op

from ._bodies import UNKNOWN, arguments, check_declared, infer, output_count, parameter_tensors, union


@op(
    "If-8",
    inputs=[Input("cond", "boolean", "[] | [1]"), Input("inputs", "dynamic", "...", variadic=True)],
    outputs=[Output("outputs", "dynamic", "...", variadic=True)],
)
def if_(cond: Array, *inputs: Array, bodies: Mapping[str, Body]) -> Any:
    """Run then_body where cond is true, else else_body. Outputs that differ in shape have the sizes that both have.

    Constraints:
        C1: each body gives all outputs, of which there is at least one.
        C2: both bodies give an output the same element type.
        C3: a parameter of a body gets the element type that it declares.

    Source: condition/if-8.rst
    """
    body = bodies["then_body" if cond.item() else "else_body"]
    assert body.run is not None, "a body that is run has a plan"
    results = body.run(arguments(body, (cond, *inputs)))
    numbers = {port.external: port.result for port in body.outputs}
    return tuple(results[numbers[external]] for external in range(output_count(body)))


@if_.shapes
def _(node: Node) -> list[Tensor]:
    if len(node.bodies) < 2:  # the reader reports it
        raise Undecided
    tensors = [node.inputs["cond"], *node.inputs["inputs"]]
    count = output_count(*node.bodies.values())
    branches: list[list[Tensor]] = []
    for name in ("then_body", "else_body"):
        body = node.bodies[name]
        given = {port.external for port in body.outputs} - {-1}
        if not count or len(given) != count:
            node.fail("C1", f"`{name}` gives {len(given)} outputs, expected {max(count, 1)}")
        parameters = parameter_tensors(body, tensors)
        for port in body.inputs:
            check_declared(node, "C3", body, port, parameters[port.parameter])
        results = infer(body, parameters)
        branch = [UNKNOWN] * count
        for output in body.outputs:
            if output.external >= 0:
                branch[output.external] = results[output.result]
        branches.append(branch)
    for number, (a, b) in enumerate(zip(*branches, strict=True)):
        if "dynamic" not in (a.type, b.type) and a.type != b.type:
            node.fail("C2", f"output {number} is {a.type} in `then_body`, but {b.type} in `else_body`")
    chosen = node.value("cond")
    if chosen is not None:
        return branches[0 if chosen.item() else 1]
    return [union(a, b) for a, b in zip(*branches, strict=True)]
