"""Which layer of a model something is about that was said elsewhere: by its place in the file, by path, or by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from irrun.diagnostics import LayerName, Span
from irrun.ir.graph import Layer


class Finder:
    """The layers of a model by all that they go by; their numbers are those in `contents.paths`."""

    def __init__(self, paths: Mapping[Layer, str]) -> None:
        self._names: dict[LayerName, list[tuple[tuple[int, int], int]]] = defaultdict(list)
        self._paths: dict[str, list[tuple[int, Layer]]] = defaultdict(list)
        for number, (layer, path) in enumerate(paths.items()):
            self._names[layer.label].append(((layer.span.line, layer.span.column), number))
            self._paths[path].append((number, layer))

    def at(self, span: Span | None, name: LayerName | None) -> int | None:
        """The layer that is called so, of several the one in whose text the place is; None where nothing tells."""
        named = self._names.get(name, ()) if name is not None else ()
        if span is not None:
            before = [(place, number) for place, number in named if place <= (span.line, span.column)]
            if before:
                return max(before)[1]
        return named[0][1] if len(named) == 1 else None

    def within(self, path: Sequence[str], name: LayerName) -> int | None:
        """The layer of this name in the body that the names of layers and bodies in `path` lead to."""
        for number, layer in self._paths.get("/".join([*path, name.name]), ()):
            if layer.label == name:
                return number
        return self.at(None, name)
