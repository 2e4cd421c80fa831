"""What belongs to one run, and what lives on from one to the next: variables, observers, warnings.

Executors and programs are shared by threads and never change; whatever a run learns or writes is here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from irrun.ir.graph import Layer
from irrun.run.generation import MAX_TOKENS, generate
from irrun.spec.op import Array

if TYPE_CHECKING:
    from irrun.run.executor import GraphExecutor
    from irrun.run.memory import Meter
    from irrun.run.profile import Profile


class Event(NamedTuple):
    """A tensor that a run has made: output number `port` of `layer`.

    `path` names the bodies that it was made in, outermost first, as (layer, body, iteration); it is empty in the graph
    of the model itself. `array` is read-only and may be written over later: copy what is to be kept.
    """

    layer: Layer
    port: int
    path: tuple[tuple[str, str, int], ...]
    array: Array


Observer = Callable[[Event], Array | None]
"""Is told of every tensor that is made; an array that it gives takes the tensor's place, of the same type and shape."""


class Variables(MutableMapping[str, Array]):
    """The variables of a session as one run sees them. What it assigns counts from the end of the graph or body on that
    does so, whatever the order of layers, and for the session from the end of the run."""

    def __init__(self, kept: MutableMapping[str, Array]) -> None:
        self._kept = kept
        self._seen: dict[str, Array] = {}
        self._assigned: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        return self._seen[name] if name in self._seen else self._kept[name]

    def __setitem__(self, name: str, value: Array) -> None:
        self._assigned[name] = np.array(value)

    def __delitem__(self, name: str) -> None:
        raise TypeError("a variable is never deleted by a run")

    def __iter__(self) -> Iterator[str]:
        return iter({**self._kept, **self._seen})

    def __len__(self) -> int:
        return len({**self._kept, **self._seen})

    def enter(self) -> dict[str, Array]:
        """The beginning of a body. What the graph around it has assigned is for `leave`: it counts from its end on."""
        outside, self._assigned = self._assigned, {}
        return outside

    def leave(self, outside: dict[str, Array]) -> None:
        """The end of a body: what it has assigned is what the next one reads."""
        self._seen.update(self._assigned)
        self._assigned = outside

    def commit(self) -> None:
        """The end of the run, which went well."""
        self._kept.update({**self._seen, **self._assigned})


@dataclass(slots=True)
class Run:
    """What is passed along through one run. `meter` counts its memory where only the run can tell how much it takes."""

    variables: Variables
    meter: Meter | None = None
    profile: Profile | None = None
    observer: Observer | None = None
    path: tuple[tuple[str, str, int], ...] = ()
    warnings: list[tuple[Layer, str]] = field(default_factory=list)

    def inside(self, layer: Layer, body: str, iteration: int) -> Run:
        """The run as a body sees it, which is profiled as a part of its layer."""
        return replace(self, profile=None, path=(*self.path, (layer.name, body, iteration)))

    def warn(self, layer: Layer, message: str) -> None:
        self.warnings.append((layer, message))


class Session:
    """A request: runs of one model with `variables` of their own, which are done one after the other.

    `GraphExecutor.session()` makes it. Sessions of one executor may run at the same time.
    """

    def __init__(self, executor: GraphExecutor) -> None:
        self._executor = executor
        self._lock = RLock()
        self.variables: dict[str, Array] = {}

    def run(
        self,
        inputs: Mapping[str, Any] | Sequence[Any] = (),
        *,
        profile: Profile | None = None,
        observer: Observer | None = None,
    ) -> dict[str, Array]:
        """As `GraphExecutor.run`. A run that fails leaves all variables as they were."""
        arrays = self._executor.bind(inputs)
        if not self._executor.stateful:
            return self._executor.execute(arrays, Run(Variables({}), profile=profile, observer=observer))
        with self._lock:
            return self._executor.execute(arrays, Run(Variables(self.variables), profile=profile, observer=observer))

    def generate(
        self,
        prompt: Iterable[int],
        *,
        max_tokens: int = MAX_TOKENS,
        eos_ids: Collection[int] = (),
        inputs: Mapping[str, Any] | None = None,
    ) -> Iterator[int]:
        """The tokens that a language model goes on with, greedily: `irrun.run.generation.generate` for one prompt."""
        steps = generate(self._executor, self, [prompt], max_tokens=max_tokens, eos_ids=eos_ids, inputs=inputs)
        return (token for (token,) in steps)

    def reset_state(self) -> None:
        """Forget the values of all variables: the next run starts as the first one did."""
        with self._lock:
            self.variables = {}
