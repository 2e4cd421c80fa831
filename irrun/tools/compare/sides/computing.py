"""irrun as the other side: one executor, step by step, whose tensors are written to files as they are made."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from irrun.diagnostics import IRError
from irrun.files import Unwritten
from irrun.ir.graph import Layer, Model
from irrun.ir.sources import Source
from irrun.records import dataclass
from irrun.run.executor import GraphExecutor
from irrun.run.profile import Profile
from irrun.run.results import Results
from irrun.run.session import Event
from irrun.spec.dtypes import ELEMENT_TYPES
from irrun.spec.op import Array
from irrun.tools.compare.sides.contract import Runtime, SideFailed
from irrun.tools.compare.sides.exchange import Scratch, Stored, Stub, Writer

Key = Callable[[Event], str | None]
"""The key that a tensor is kept by, None if it is not."""


@dataclass(frozen=True, slots=True)
class Made:
    """What one step has made: results, tensors by key, and the seconds that it took."""

    results: Results
    tensors: Mapping[str, Array]
    seconds: float


class Computing:
    """A model made ready; `side` is what it is called in messages.

    Raises SideFailed where the model cannot be run, EngineError and ValueError where there is no such engine or
    precision.
    """

    def __init__(
        self, side: str, model: Model | Source, engine: str, precision: str | None, threads: int | None
    ) -> None:
        self._side = side
        with self._failing("compile"):
            self.executor = GraphExecutor(model, engine=engine, precision=precision, threads=threads)
        self._scratch = Scratch()
        self._runtime: dict[str, Runtime] = {}

    @property
    def runtime(self) -> Mapping[str, Runtime]:
        """How the first step of the last `outputs` was computed, by layer."""
        return self._runtime

    def outputs(self, steps: Sequence[Sequence[Array]]) -> list[Results]:
        """The results of each step, from a fresh state on."""
        session, profile, found = self.executor.session(), Profile(), []
        with self._failing("run"):
            for number, step in enumerate(steps):
                found.append(session.run(step, profile=None if number else profile))
        self._runtime = _runtime(profile)
        return found

    def observe(self, steps: Sequence[Sequence[Array]], key: Key) -> list[Made]:
        """The results of each step, and the tensors that have a key; of those made several times, the last one."""
        session, found = self.executor.session(), []
        for step in steps:
            folder = Scratch(self._scratch.path)
            writer, stubs = Writer(folder.path, "t"), dict[str, Stub]()

            def keep(event: Event, writer: Writer = writer, stubs: dict[str, Stub] = stubs) -> None:
                name = key(event)
                if name is not None:
                    stubs[name] = writer.array(event.array)

            with self._failing("run"):
                begin = time.perf_counter()
                results = session.run(step, observer=keep)
                found.append(Made(results, Stored(stubs, folder), time.perf_counter() - begin))
        return found

    def watch(self, steps: Sequence[Sequence[Array]], observer: Callable[[Event], None]) -> None:
        """Run all steps for an observer."""
        session = self.executor.session()
        with self._failing("run"):
            for step in steps:
                session.run(step, observer=observer)

    def cut(self, steps: Sequence[Sequence[Array]], names: Mapping[str, str]) -> list[Mapping[str, Array]]:
        """Tensors by key, each computed alone, of each step; `names` are those that they have in the model."""
        session, found = self.executor.session(), list[Mapping[str, Array]]()
        with self._failing("run"):
            for number, step in enumerate(steps):
                found.append({key: session.run(step, outputs=[name])[0] for key, name in names.items()})
                if self.executor.stateful and number + 1 < len(steps):
                    session.run(step)
        return found

    def close(self) -> None:
        self._scratch.close()

    @contextmanager
    def _failing(self, phase: str) -> Iterator[None]:
        """Errors of the model and of its data as those of a side."""
        try:
            yield
        except IRError as error:
            if isinstance(error.__cause__, Unwritten):  # which no layer is to blame for
                raise error.__cause__ from None
            raise SideFailed.of_model(self._side, phase, error) from None
        except MemoryError:
            raise SideFailed(self._side, phase, "memory is short") from None


def _runtime(profile: Profile) -> dict[str, Runtime]:
    found = dict[str, Runtime]()
    for key, entry in profile.entries.items():
        layers = [part for part in key if isinstance(part, Layer)] if isinstance(key, tuple) else []
        names = tuple(dict.fromkeys(layer.name for layer in layers))
        type = entry.shape.partition("[")[0]
        for name in names:
            found.setdefault(name, Runtime(type if type in ELEMENT_TYPES else None, entry.by, names))
    return found
