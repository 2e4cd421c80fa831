"""What a run gives: arrays by the names of outputs, and by all other names that these go by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from irrun.diagnostics import LONGEST_NAME, clipped
from irrun.spec.op import Array


class Results(dict[str, Array]):
    """The results of a run, in the order of the model's Results: a dictionary by their names.

    `results[name]` also takes any other tensor name of an output, and `results[0]` its number. Raises KeyError, which
    lists the names.
    """

    __slots__ = ("_aliases",)

    def __init__(self, arrays: Iterable[tuple[str, Array]], aliases: Mapping[str, str]) -> None:
        super().__init__(arrays)
        self._aliases = aliases

    if TYPE_CHECKING:

        def __getitem__(self, key: str | int) -> Array: ...

    def __contains__(self, key: object) -> bool:
        if isinstance(key, int):
            return -len(self) <= key < len(self)
        return super().__contains__(key) or key in self._aliases

    def get(self, key: Any, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default

    def key(self, name: str) -> str:
        """The name in the dictionary of the output that goes by this one. Raises KeyError."""
        return name if super().__contains__(name) else self._aliases[name]

    def __missing__(self, key: Any) -> Array:
        if isinstance(key, int) and -len(self) <= key < len(self):
            return list(self.values())[key]
        if key in self._aliases:
            return self[self._aliases[key]]
        listing = ", ".join(f"`{clipped(name, LONGEST_NAME)}`" for name in self) or "none"
        raise KeyError(f"there is no output {key!r}; the outputs are {listing}")
