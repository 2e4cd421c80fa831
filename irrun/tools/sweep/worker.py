"""The process that tasks are done in, one after the other, and that may crash: `python -m irrun.tools.sweep.worker`.

It ends when whoever has started it is gone, and when nobody has asked for anything in a while.
"""

from __future__ import annotations

import gc
import os
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import TIMEOUT_MAX, Thread
from time import monotonic, sleep
from typing import Any

from irrun.files import Unwritten
from irrun.spec.registry import load_ops
from irrun.tools.compare.sides.serving import Tell, serve
from irrun.tools.sweep.doing import done
from irrun.tools.sweep.rows import CRASHED, TIMED_OUT

IDLE = 60.0
"""Seconds without a task after which a worker gives its memory back."""


class _Late(BaseException):
    """A task has taken all the time that it has."""


class _Watch:
    """Ends the process when it is of no use any more."""

    def __init__(self) -> None:
        self.busy, self.since, self._parent = False, monotonic(), os.getppid()
        Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while os.getppid() == self._parent and (self.busy or monotonic() - self.since < IDLE):
            sleep(1)
        os._exit(0)


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise _Late in time, also while another process is waited for, which is ended then; where there are signals.

    A task that no signal reaches is ended from outside, with its process.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return

    def late(*_: object) -> None:
        raise _Late

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, min(seconds, TIMEOUT_MAX))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


_LOADED: set[str] = set()
"""Files with custom ops that this process knows."""


def _task(request: dict[str, Any], watch: _Watch) -> dict[str, Any]:
    watch.busy = True
    try:
        with _limited(request["timeout"]):
            for path in request["ops"]:
                if path not in _LOADED:
                    load_ops(path)
                    _LOADED.add(path)
            return done(request)
    except _Late:
        return {"status": TIMED_OUT}
    except Unwritten:
        raise
    except Exception as error:  # whatever the module with custom ops raises
        return {"status": CRASHED, "reason": f"custom ops: {type(error).__name__}: {error}"}
    finally:
        watch.since, watch.busy = monotonic(), False


def main() -> None:
    warnings.simplefilter("ignore")
    gc.freeze()  # what is loaded stays
    watch = _Watch()

    def task(request: dict[str, Any], _: Tell) -> dict[str, Any]:
        return _task(request, watch)

    serve({"validate": task, "inspect": task, "execute": task, "compare": task})


if __name__ == "__main__":
    main()
