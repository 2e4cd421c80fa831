"""What a run of a model costs: multiplications and bytes per layer and in sum, also in sizes that are unknown.

A MAC is one multiplication whose product is added to others. Ops say how many they make (`Products`, `Accumulating`);
element-wise work, pooling, normalization and the like have none. Loops count as often as they go round at most, of
branches the one that costs more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import field
from itertools import zip_longest

from irrun.check.infer import InferredLayer, body_of
from irrun.ir.graph import Graph, Layer, Value
from irrun.records import dataclass
from irrun.spec.dims import Dim, Size, Undecided, fresh, same
from irrun.spec.traits import Accumulating, Branching, Iterating, Lookup, Products
from irrun.tools.inspect.contents import Contents

_LIBRARY = "irrun.opsets"


@dataclass(frozen=True, slots=True)
class LayerCost:
    """What one layer costs in a run: all its `rounds`, where it lies in a loop.

    `path` is its name, behind those of the layers whose body it lies in. `op` is its type and the version of that,
    `outputs` are types and shapes. `macs` is None where it is not known, and `reason` says why. `bytes` are those that
    it reads and writes, constants as the file stores them. Where a constant is multiplied, `weights` is the type that
    it is stored in.
    """

    id: int
    path: str
    type: str
    op: str | None
    line: int | None
    outputs: tuple[tuple[str, tuple[Size, ...] | None], ...]
    macs: Size | None
    bytes: Size | None
    rounds: Size
    computed: str | None = None
    weights: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Costs:
    """Sums over a model. `by_type` are the MACs and the bytes of the layers of each type, `by_element_type` the MACs by
    the element type of what is multiplied and the stored one of constants in it ("f32", "f32 x u4").

    Of `layers` layers the MACs of `counted` are known; the others are `uncounted`, by path, with the reason.
    """

    macs: Size
    bytes: Size
    layers: int
    counted: int
    by_type: Mapping[str, tuple[int, Size, Size]]
    by_element_type: Mapping[str, Size]
    uncounted: tuple[tuple[str, str], ...]

    @property
    def flops(self) -> Size:
        """Two operations for each MAC: a multiplication and an addition."""
        return 2 * self.macs

    @property
    def coverage(self) -> float:
        """The share of layers whose MACs are known."""
        return self.counted / self.layers if self.layers else 1.0


def costs(contents: Contents) -> tuple[list[LayerCost], Costs]:
    """Each layer, and all together."""
    counting = _Counting(contents)
    chosen = set(counting.graph(contents.model.graph, 1))
    layers = counting.layers
    taken = [cost for layer, cost in layers.items() if layer in chosen]
    types: dict[str, list[LayerCost]] = defaultdict(list)
    multiplied: dict[str, list[LayerCost]] = defaultdict(list)
    for cost in taken:
        types[cost.type].append(cost)
        if cost.computed is not None:
            stored = "" if cost.weights in (None, cost.computed) else f" x {cost.weights}"
            multiplied[f"{cost.computed}{stored}"].append(cost)
    return list(layers.values()), Costs(
        _sum(cost.macs for cost in taken),
        _sum(cost.bytes for cost in taken),
        len(layers),
        sum(cost.macs is not None for cost in layers.values()),
        {type: (len(of), _sum(c.macs for c in of), _sum(c.bytes for c in of)) for type, of in types.items()},
        {type: _sum(c.macs for c in of) for type, of in multiplied.items()},
        tuple((cost.path, cost.reason or "") for cost in layers.values() if cost.macs is None),
    )


def _sum(sizes: Iterable[Size | None]) -> Size:
    """Summed up by terms: arithmetic with a long polynomial is slow."""
    terms: dict[object, int] = {}
    for size in sizes:
        for monomial, factor in size.terms.items() if isinstance(size, Dim) else (((), 0 if size is None else size),):
            terms[monomial] = terms.get(monomial, 0) + factor
    total = {monomial: factor for monomial, factor in terms.items() if factor}
    if not any(total):
        return total.get((), 0)
    return Dim(total, 0, None)  # type: ignore[arg-type]


@dataclass(slots=True)
class _Counting:
    contents: Contents
    layers: dict[Layer, LayerCost] = field(default_factory=dict)

    def graph(self, graph: Graph, rounds: Size) -> list[Layer]:
        """The layers that count, in bodies as well; all of them are entered in `layers`."""
        counted = []
        for layer in graph.layers:
            node = self.contents.node(layer)
            self.layers[layer] = self._cost(layer, node, rounds)
            counted.append(layer)
            if layer.bodies:
                within = self._rounds(layer, node) * rounds
                bodies = {tag: self.graph(body.graph, within) for tag, body in layer.bodies.items()}
                counted += self._taken(bodies, node)
        return counted

    def _taken(self, bodies: Mapping[str, list[Layer]], node: InferredLayer | None) -> list[Layer]:
        """The layers of all bodies; of the two of a branch those that cost more, where that is known."""
        branching = None if node is None else node.op.trait(Branching)
        if branching is None or not {branching.then, branching.otherwise} <= bodies.keys():
            return [layer for layers in bodies.values() for layer in layers]
        then, otherwise = bodies[branching.then], bodies[branching.otherwise]
        macs = [_sum(self.layers[layer].macs for layer in layers) for layers in (then, otherwise)]
        try:
            return then if macs[0] >= macs[1] else otherwise
        except Undecided:
            return [*then, *otherwise]

    def _rounds(self, layer: Layer, node: InferredLayer | None) -> Size:
        iterating = None if node is None else node.op.trait(Iterating)
        if iterating is None or node is None:
            return 1
        tensors = [self.contents.tensor(value) for value in layer.inputs]
        body = next(iter(layer.bodies.values()))
        try:
            rounds = iterating.rounds(body_of(body, self.contents.inference), tensors)
        except (Undecided, IndexError):
            rounds = None
        if isinstance(rounds, Dim) and rounds.expression() is None:
            rounds = None
        return fresh(name=f"{layer.name}.rounds") if rounds is None else rounds

    def _cost(self, layer: Layer, node: InferredLayer | None, rounds: Size) -> LayerCost:
        contents = self.contents
        macs, reason = (None, "it could not be inferred") if node is None else _macs(contents, layer, node)
        inputs = [contents.tensor(value) for value in layer.inputs if value is not None]
        outputs = [] if node is None else node.outputs
        operands = layer.inputs[:2] if node is not None and node.op.trait(Products) else layer.inputs
        stored = [self._stored_type(value) for value in operands]
        has = macs is not None and not same(macs, 0)
        return LayerCost(
            layer.id,
            contents.paths[layer],
            layer.type,
            None if node is None else node.op.name,
            layer.span.line,
            tuple((tensor.type, tensor.shape) for tensor in outputs),
            None if macs is None else _times(macs, rounds),
            self._moved(layer, node, rounds),
            rounds,
            inputs[0].type if has and inputs else None,
            next((type for type in stored if type is not None), None) if has else None,
            reason,
        )

    def _stored_type(self, value: Value | None) -> str | None:
        """The type of the constant that an input comes of, if it comes of constants alone."""
        while value is not None and value.layer in self.contents.stored:
            blob = self.contents.blob(value.layer)
            if blob is not None:
                return blob.element_type
            value = value.layer.inputs[0]
        return None

    def _moved(self, layer: Layer, node: InferredLayer | None, rounds: Size) -> Size | None:
        """The bytes that a layer reads and writes; of those that look at memory or shapes only, and of constants, none.

        Of a table, only the slices are read that are looked up.
        """
        if node is None:
            return None
        if layer in self.contents.stored or node.op.view_of is not None or layer.bodies or not layer.inputs:
            return 0
        if node.outputs and all(tensor.value is not None for tensor in node.outputs):
            return 0
        lookup = node.op.trait(Lookup)
        total: Size = 0
        for value, name in zip_longest(layer.inputs, node.op.port_names):
            if value is None:
                continue
            if lookup is not None and name == lookup.table:
                value = layer.outputs[0]
            stored = self.contents.stored.get(value.layer)
            size = self.contents.bytes(value) if stored is None else stored
            if size is None:
                return None
            total += size
        for value in layer.outputs:
            size = self.contents.bytes(value)
            if size is None:
                return None
            total += size
        return _times(total, rounds)


def _times(size: Size, rounds: Size) -> Size:
    """A product; most layers are run once, and arithmetic with unknown sizes takes long."""
    return size if isinstance(rounds, int) and rounds == 1 else size * rounds


def _macs(contents: Contents, layer: Layer, node: InferredLayer) -> tuple[Size | None, str | None]:
    """The MACs of one call, and why they are not known."""
    counting = node.op.trait(Products) or node.op.trait(Accumulating)
    if counting is None:
        foreign = not (getattr(node.op.kernel, "__module__", None) or _LIBRARY).startswith(_LIBRARY)
        return (None, "its op does not say") if foreign and not node.op.traits else (0, None)
    shapes = [() if value is None else contents.tensor(value).shape for value in layer.inputs]
    result = node.outputs[0].shape if node.outputs else None
    if result is None or any(shape is None for shape in shapes):
        return None, "a rank is unknown"
    try:
        operations = counting.operations([shape or () for shape in shapes], node.attrs, result)
        return operations // 2, None
    except (Undecided, IndexError, ValueError):
        return None, "a size is unknown"
