"""The layers of a model as columns: what each is, reads, gives and costs.

They are numbered as the file has them, those of bodies behind the layer that owns these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from irrun.check.documentation import source_page
from irrun.check.infer import InferredLayer
from irrun.ir.graph import Layer, LayerBody
from irrun.spec.dims import Dim, Shape, Size
from irrun.spec.evaluation import Evaluation, Unknown
from irrun.spec.traits import Reading
from irrun.tools.inspect.contents import Contents
from irrun.tools.inspect.costs import LayerCost
from irrun.tools.inspect.sizes import Sizes
from irrun.tools.report import texts
from irrun.tools.report.groups import Group, grouped, walk

TAKEN = 64
"""What unknown sizes of inputs and states are taken as where layers are told apart by what they cost."""

MAX_NAMES = 8
"""Names of a tensor that are listed."""

_PAGE = re.compile(r"[a-z-]+(?=/)")


def columns(contents: Contents, costs: Sequence[LayerCost], sizes: Sizes, evaluation: Evaluation) -> dict[str, Any]:
    """Each column a list with an entry per layer.

    `parent` is the box that a layer lies in: groups are numbered behind the layers, -1 is the graph of the model.
    `inputs` are pairs of a layer and its output number, -1 where nothing arrives; `outputs` a text of type and shape,
    and the names of the tensor. `macs` and `bytes` are numbers; where they depend on unknown sizes those for `TAKEN`,
    and `texts` says by layer what they are.
    """
    layers = list(contents.paths)
    numbers = {layer: number for number, layer in enumerate(layers)}
    nodes = [contents.node(layer) for layer in layers]
    macs, moved = ([_number(evaluation, getattr(cost, name)) for cost in costs] for name in ("macs", "bytes"))
    return {
        "id": [layer.id for layer in layers],
        "name": [texts.name(layer.name) for layer in layers],
        "type": [texts.name(layer.type) for layer in layers],
        "op": [None if node is None else node.op.name for node in nodes],
        "category": [_category(node) for node in nodes],
        "line": [layer.span.line for layer in layers],
        "quiet": [int(layer in contents.stored and bool(layer.outputs)) for layer in layers],
        "inputs": [_inputs(layer, numbers) for layer in layers],
        "outputs": [_outputs(layer, cost, sizes) for layer, cost in zip(layers, costs, strict=True)],
        "attributes": [{texts.name(k): texts.value(v) for k, v in layer.attributes.items()} for layer in layers],
        "precise": [number for number, layer in enumerate(layers) if layer.precise],
        "macs": macs,
        "bytes": moved,
        "texts": {
            str(number): {name: sizes.text(getattr(cost, name)) for name in ("macs", "bytes") if _is_open(cost, name)}
            for number, cost in enumerate(costs)
            if _is_open(cost, "macs") or _is_open(cost, "bytes")
        },
        "taken": TAKEN,
        "ports": _ports(nodes),
        **_boxes(contents, numbers),
    }


def _is_open(cost: LayerCost, name: str) -> bool:
    return isinstance(getattr(cost, name), Dim)


def taken(contents: Contents) -> Evaluation:
    """Sizes in numbers where unknown ones that nothing else tells are `TAKEN`."""
    open_sizes: list[Dim] = []
    for layer in contents.paths:
        node = contents.node(layer)
        if not layer.inputs or (node is not None and node.op.trait(Reading) is not None):
            shapes = [contents.tensor(value).shape for value in layer.outputs]
            open_sizes += [size for shape in shapes for size in shape or () if _is_atom(size)]
    shape: Shape = tuple(open_sizes)
    return Evaluation.of([shape], [[_within(size) for size in open_sizes]])


def _is_atom(size: Size) -> TypeGuard[Dim]:
    """Whether a size is an unknown one itself, and not made of others."""
    if not isinstance(size, Dim) or len(size.terms) != 1:
        return False
    ((monomial, factor),) = size.terms.items()
    return factor == 1 and len(monomial) == 1 and not isinstance(monomial[0].tag, tuple)


def _within(size: Dim) -> int:
    return min(max(TAKEN, size.low or 0), TAKEN if size.high is None else size.high)


def _number(evaluation: Evaluation, size: Size | None) -> int | None:
    if size is None:
        return None
    try:
        return evaluation.size(size)
    except (Unknown, ZeroDivisionError, RecursionError):
        return None


def _category(node: InferredLayer | None) -> str:
    """The folder that the specification has the op's page in; of ops of others, custom."""
    page = None if node is None else _PAGE.match(source_page(node.op))
    return page[0] if page else "custom" if node is not None else "unknown"


def _inputs(layer: Layer, numbers: Mapping[Layer, int]) -> list[int]:
    pairs = [(-1, 0) if value is None else (numbers.get(value.layer, -1), value.index) for value in layer.inputs]
    return [number for pair in pairs for number in pair]


def _outputs(layer: Layer, cost: LayerCost, sizes: Sizes) -> list[list[str]]:
    """Of each output its type and shape, as far as they are known or declared, and the names of its tensor."""
    found = []
    for number, value in enumerate(layer.outputs):
        if number < len(cost.outputs):
            type, shape = cost.outputs[number]
            text = f"{type}{sizes.shape(shape)}"
        else:
            dims = ", ".join("?" if size < 0 else str(size) for size in value.port.dims)
            text = f"{value.port.precision or 'dynamic'}[{dims}]"
        found.append([text, *(texts.name(name) for name in value.port.names[:MAX_NAMES])])
    return found


def _ports(nodes: Sequence[InferredLayer | None]) -> dict[str, list[list[str]]]:
    """The names of the inputs and of the outputs of each op that there is."""
    ops = {node.op.name: node.op for node in nodes if node is not None}
    return {name: [list(op.port_names), [port.name for port in op.outputs]] for name, op in ops.items()}


def _boxes(contents: Contents, numbers: Mapping[Layer, int]) -> dict[str, Any]:
    """The tree of boxes: the parent of each layer, and the groups."""
    parents = [-1] * len(numbers)
    groups: list[dict[str, Any]] = []
    alike: dict[tuple[int, int], int] = {}
    for graph, top in enumerate(grouped(contents)):
        boxes: dict[Group, int] = {}
        for group in walk(top):
            boxes[group] = -1 if group is top and top.owner is None else len(numbers) + len(groups)
            if boxes[group] >= 0:
                sign = alike.setdefault((graph, group.sign), len(alike))
                groups.append({"kind": group.kind, "label": texts.name(group.label), "alike": sign, "parent": -1})
                if group is top and top.owner is not None:
                    groups[-1]["parent"] = numbers[top.owner]
                    groups[-1].update(_ports_of_body(top.owner.bodies[group.label], numbers))
        for group, box in boxes.items():
            for child in group.children:
                if isinstance(child, Layer):
                    parents[numbers[child]] = box
                else:
                    groups[boxes[child] - len(numbers)]["parent"] = box
    return {"parent": parents, "groups": groups}


def _ports_of_body(body: LayerBody, numbers: Mapping[Layer, int]) -> dict[str, Any]:
    """How a body is connected: of each of its inputs and outputs the port outside, the layer inside, and the axis."""
    maps = {"into": body.inputs, "out": body.outputs}
    found: dict[str, Any] = {
        name: [[each.external, numbers[each.internal], each.axis] for each in listed] for name, listed in maps.items()
    }
    return found | {"back": [[numbers[edge.result], numbers[edge.parameter]] for edge in body.back_edges]}
