"""Signals that end a process, and exceptions that handlers of signals raise, such as the TimeoutError of an alarm,
wherever they come in between."""

from __future__ import annotations

import sys
from _thread import get_ident, interrupt_main, start_new_thread
from time import monotonic, sleep
from types import CodeType
from typing import Any

INTERRUPTED = 130
"""The exit status of what Ctrl-C has ended, as shells have it."""

_AGAIN = 2.0
"""Seconds in which another signal changes nothing: `timeout` sends it twice, to a process and its group, and who is in
a hurry presses Ctrl-C again."""

_SOON = 1e-3
"""Seconds after which a signal comes again that was lost."""


def end_on_signals() -> None:
    """Have the signals that ask a process to end do so in order, and once: what it has written by halves goes, and what
    it has started ends, too. Its exit status is that of shells; what whoever has started it ignores is ignored."""
    import _signal  # type: ignore[import-not-found]  # without the names of `signal`, which take half a millisecond

    since, raised, latest = float("-inf"), None, 0
    tell = sys.unraisablehook

    def end(number: int, _: object) -> None:
        nonlocal since, raised, latest
        if monotonic() - since > _AGAIN:
            since, latest = monotonic(), number
            raised = KeyboardInterrupt() if number == _signal.SIGINT else SystemExit(128 + number)
            raise raised

    main, kill = get_ident(), getattr(_signal, "pthread_kill", None)

    def send(number: int) -> None:
        sleep(_SOON)
        if kill is None:
            interrupt_main(number)  # type: ignore[arg-type]
        else:
            kill(main, number)  # which ends a sleep, too

    def lost(found: Any) -> None:
        """Have what was raised where Python ignores errors, as while an object goes, come again when it is through."""
        nonlocal since
        if found.exc_value is None or found.exc_value is not raised:
            tell(found)
            return
        since = float("-inf")
        start_new_thread(send, (latest,))

    sys.unraisablehook = lost
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(_signal, name, None)
        if number is not None and _signal.getsignal(number) in (_signal.SIG_DFL, _signal.default_int_handler):
            _signal.signal(number, end)


def hand_on(error: Exception) -> None:
    """Raise an error again that a handler of a signal has raised: it is no failure of what it has interrupted.

    It is told by its traceback, in which the code of a handler is. One of a handler that is none any more, or that is
    no function of Python, looks like any other error.
    """
    if _passed(error, _handlers()):
        raise error


def _handlers() -> set[CodeType]:
    """The code of all functions that handle signals at present."""
    import signal

    found = set()
    for number in signal.valid_signals():
        code = _code(signal.getsignal(number))
        if code is not None:
            found.add(code)
    return found


def _code(handler: Any) -> CodeType | None:
    """The code that a handler runs: a function's, a method's, that of a partial call or of an object to be called."""
    handler = getattr(handler, "func", handler)
    if not hasattr(handler, "__code__") and callable(handler):
        handler = handler.__call__
    code = getattr(handler, "__code__", None)
    return code if isinstance(code, CodeType) else None


def _passed(error: Exception, codes: set[CodeType]) -> bool:
    """Whether an error has come out of any of these."""
    traceback = error.__traceback__ if codes else None
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            return True
        traceback = traceback.tb_next
    return False
