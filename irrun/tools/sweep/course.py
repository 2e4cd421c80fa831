"""Batches on their way through an executor: how many are sent together, what comes back, and what was lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Future
from dataclasses import replace
from queue import Empty, SimpleQueue

from irrun.diagnostics import EngineError
from irrun.tools.sweep.performing import Batch
from irrun.tools.sweep.rows import CRASHED, Row

SOON = 2.0
"""Seconds after which what was sent comes back with the rows that it has."""

PER_SECOND = 250
"""How often a second a scheduler may be asked, at most: of very many workers each has to do more at once."""

MOST_TOGETHER = 256
"""Batches that are sent together."""

_LOOK = 0.5
"""Seconds after which it is looked whether somebody wants to interrupt, or more workers have come."""

Tell = Callable[[int, int], object]
"""Is told how many tasks are done, and of how many."""

Perform = Callable[[Sequence[Batch], float], list[list[Row]]]


class Lost(EngineError):
    """An executor does no more tasks; what was done is written down."""


def lost(error: BaseException) -> Lost:
    """What is said of the error of an executor that is broken, or out of reach."""
    why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return Lost(f"the executor does no more tasks ({why}); the same call again does what is left")


class Course:
    """Batches that `submit` hands to an executor, for `perform`.

    Where workers are `near`, each gets a batch as soon as it has nothing to do. Others get the next ones while they are
    busy, several together, and fewer and fewer of them, so that all end at the same time.
    """

    def __init__(
        self,
        batches: Iterable[Batch],
        submit: Callable[..., Future[list[list[Row]]]],
        perform: Perform,
        jobs: Callable[[], int],
        *,
        near: bool,
    ) -> None:
        self._left, self._apart = deque(batches), deque[Batch]()
        self._submit, self._perform, self._jobs, self._near = submit, perform, jobs, near
        self._under_way: dict[Future[list[list[Row]]], list[Batch]] = {}
        self._ended: SimpleQueue[Future[list[list[Row]]]] = SimpleQueue()

    def run(self, keep: Callable[[Iterable[Row]], object], tell: Tell) -> None:
        """Have all done. Raises Lost where the executor does no more."""
        total, done = sum(len(batch.inputs) for batch in self._left), 0
        try:
            while self._left or self._apart or self._under_way:
                self._fill()
                tell(done, total)
                try:
                    future = self._ended.get(timeout=_LOOK)
                except Empty:
                    continue
                rows = self._rows(future, self._under_way.pop(future))
                keep(rows)
                done += len(rows)
            tell(done, total)
        finally:
            for future in self._under_way:
                future.cancel()

    def _fill(self) -> None:
        jobs = max(1, self._jobs())
        most = SOON if self._near else max(SOON, jobs / PER_SECOND)
        while (self._left or self._apart) and len(self._under_way) < (jobs if self._near else 2 * jobs):
            sent = self._next(jobs)
            try:
                future = self._submit(self._perform, sent, most)
            except RuntimeError as error:  # BrokenExecutor is one, and so is what says that it is shut down
                raise lost(error) from None
            self._under_way[future] = sent
            future.add_done_callback(self._ended.put)

    def _next(self, jobs: int) -> list[Batch]:
        if self._apart:
            return [self._apart.popleft()]
        together = 1 if self._near else max(1, min(MOST_TOGETHER, len(self._left) // (4 * jobs)))
        return [self._left.popleft() for _ in range(together)]

    def _rows(self, future: Future[list[list[Row]]], sent: list[Batch]) -> list[Row]:
        """The rows that came back; what is left of the batches is the next to be sent."""
        try:
            found = future.result()
        except (BrokenExecutor, CancelledError, ImportError, AttributeError) as error:
            raise lost(error) from None
        except Exception as error:  # whatever an executor says of a worker that it has lost
            return self._alone(sent, error)
        left = [
            replace(batch, inputs=batch.inputs[len(rows) :])
            for batch, rows in zip(sent, [*found, *([()] * (len(sent) - len(found)))], strict=True)
            if len(rows) < len(batch.inputs)
        ]
        self._left.extendleft(reversed(left))
        return [row for rows in found for row in rows]

    def _alone(self, sent: list[Batch], error: Exception) -> list[Row]:
        """What was lost together is sent batch by batch, then task by task; a task that was alone is at fault."""
        first = sent[0]
        if len(sent) > 1 or len(first.inputs) > 1:
            parts = sent if len(sent) > 1 else [replace(first, inputs=(given,)) for given in first.inputs]
            self._apart.extend(parts)
            return []
        ((inputs, key),) = first.inputs
        reason = f"the executor lost it: {type(error).__name__}: {error}"
        place = (first.model.path, inputs, first.device, first.do)
        return [Row(*place, CRASHED, reason, key=key, versions=first.versions)]
