"""Tensors of a model by the names that users give them."""

from __future__ import annotations

from irrun.check.infer import Inference
from irrun.diagnostics import LONGEST_NAME, clipped
from irrun.ir.graph import Graph, Value
from irrun.ir.signature import names_of_results
from irrun.run.keys import key
from irrun.spelling import close_matches

MAX_LISTED = 4
"""Layers in a message."""

_Found = dict[str, dict[Value, None]]
"""Tensors by a name, each once and in order."""


class TensorNames:
    """The tensors of a graph: those of Results by the keys of these, all by names of their own and by their layers'.

    Where a name is one in more than one of these ways, the first one counts.
    """

    def __init__(self, graph: Graph, inference: Inference) -> None:
        self._inference = inference
        keyed, named, placed = self._ways = _Found(), _Found(), _Found()
        for layer, names in zip(graph.results, names_of_results(graph), strict=True):
            keyed[names[0]] = {value: None for value in layer.inputs if value is not None}
        for layer in graph.layers:
            for value in layer.outputs:
                for name in value.port.names:
                    named.setdefault(name, {})[value] = None
                own = [layer.name] if len(layer.outputs) == 1 else []
                for name in (*own, f"{layer.name}:{value.index}", key(layer, value.index, ())):
                    placed.setdefault(name, {})[value] = None

    def find(self, name: str) -> Value:
        """The tensor that goes by a name. Raises ValueError where none does, or several do, TypeError for no name."""
        if not isinstance(name, str):
            raise TypeError(f"`outputs` are names of tensors, but {name!r} is {type(name).__name__}")
        values: list[Value] = [*next((found[name] for found in self._ways if name in found), {})]
        if len(values) == 1 and values[0].layer in self._inference.nodes:
            return values[0]
        shown = clipped(name, LONGEST_NAME)
        if values:
            layers = ", ".join(str(value.layer) for value in values[:MAX_LISTED])
            raise ValueError(f"`{shown}` is the name of several tensors, of layers {layers}")
        close = close_matches(name, [name for found in self._ways for name in found])
        hint = f"; did you mean {' or '.join(f'`{match}`' for match in close)}?" if close else ""
        raise ValueError(f"`{shown}` is no tensor of the model{hint}")
