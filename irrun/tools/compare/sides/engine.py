"""irrun against itself: the same model by another engine (`engine:numpy`) or in another precision (`precision:f16`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from irrun.ir.graph import Model
from irrun.run.session import Event
from irrun.spec.op import Array
from irrun.tools.compare.sides.computing import Computing
from irrun.tools.compare.sides.contract import Observation, Runtime, Steps
from irrun.tools.compare.sides.tensors import bound, computed, tensors_of, wanted

NOT_MADE = "not made alone, but together with other layers, before the run, or by none"

AS_DECLARED = ("declared", "f64")
"""Precisions that nothing is lost in."""


class EngineSide:
    """Our model, computed in another way. It knows the tensors of bodies as well, iteration by iteration."""

    kind = "engine"

    def __init__(self, name: str, model: Model, engine: str, precision: str | None, threads: int | None) -> None:
        self.name = name
        self.untapped: dict[str, str] = {}
        self._model, self._engine, self._threads = model, engine, threads
        self._precision = precision or ("declared" if engine == "reference" else "auto")
        self._tensors = tensors_of(model.graph)
        self._computing = Computing(name, model, engine, precision, threads)

    @property
    def precision(self) -> str:
        return self._precision if self._precision in ("f16", "bf16", "f64") else "f32"

    @property
    def rounds_alike(self) -> bool:
        return self._engine == "reference" and self.precision == "f32"

    def outputs(self, steps: Steps) -> list[Mapping[str, Array]]:
        return list(self._computing.outputs(bound(self._model, steps)))

    def observe(self, steps: Steps, keys: Collection[str] | None = None) -> list[Observation]:
        """Tensors of bodies go by the keys of `irrun.Event.name`."""
        asked = None if keys is None else set(keys)

        def key(event: Event) -> str | None:
            name = event.name
            return name if asked is None or name in asked else None

        made = self._computing.observe(bound(self._model, steps), key)
        seen = {name for step in made for name in step.tensors}
        missed = (computed(self._tensors).keys() if asked is None else asked) - seen
        self.untapped.update(dict.fromkeys(missed, NOT_MADE))
        return [Observation(step.results, step.tensors, step.seconds) for step in made]

    def cut(self, steps: Steps, keys: Collection[str]) -> list[Mapping[str, Array]]:
        values = wanted(self._tensors, keys)
        return self._computing.cut(bound(self._model, steps), {key: key for key in values})

    def runtime(self) -> Mapping[str, Runtime]:
        """What the last `outputs` showed; nothing before."""
        return self._computing.runtime

    def precise(self) -> EngineSide | None:
        if self._precision in AS_DECLARED:
            return None
        name = f"{self.name} at full precision"
        return EngineSide(name, self._model, self._engine, "declared", self._threads)

    def close(self) -> None:
        self._computing.close()
