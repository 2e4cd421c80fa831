"""The command line as a process: `irrun`, and `python -m irrun`. What is set here holds for all of it."""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
from types import ModuleType
from typing import Any

from irrun.deferred import defer, later
from irrun.interruption import INTERRUPTED, end_on_signals

PAUSE = 500_000
"""Objects that are made between two searches for cycles among them; Python's own 700 are what one import makes, and to
search all that a command loads takes 10 ms."""

SPINNING = 17
"""The clock cycles, as a power of 2, that threads of numpy's BLAS look for work before they sleep: some 50 us. There is
next to none for them, as engines have threads of their own; 28, the default, is a tenth of a second at every start."""

UNREAD = ("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars")
"""Modules of numpy that do nothing but write the docstrings of its functions, for which nobody asks a command: to write
them is a tenth of the time that numpy takes to load."""


def cleandoc(text: str) -> str:
    """What `inspect.cleandoc` gives: docstrings of commands and ops are what that large module is loaded for."""
    first, *others = text.expandtabs().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in others if line.lstrip()), default=0)
    return "\n".join([first.lstrip(), *(line[margin:] for line in others)]).strip("\n")


def signature(function: Any, **options: Any) -> Any:
    """What `inspect.signature` gives; but None, as for functions in C, where numpy asks for those of some that are."""
    if (getattr(function, "__module__", None) or "").startswith(("numpy._core.", "numpy.lib._")):
        return None
    return later("inspect", "signature")(function, **options)


def annotations_of(of: Any, **options: Any) -> Any:
    """What `inspect.get_annotations` gives, of which dataclasses of some Pythons ask nothing but those of classes."""
    if isinstance(of, type) and not options:
        return dict(vars(of).get("__annotations__") or {})
    return later("inspect", "get_annotations")(of, **options)


UNUSED: dict[str, dict[str, object]] = {
    **{name: {} for name in ("ast", "bz2", "ipaddress", "lzma", "pickle", "shutil", "textwrap", "tokenize")},
    "platform": {"system": lambda: os.uname().sysname} if hasattr(os, "uname") else {},
    "inspect": {"cleandoc": cleandoc, "signature": signature, "get_annotations": annotations_of},
    "urllib.parse": {"quote_from_bytes": later("urllib.parse", "quote_from_bytes")},
    "gettext": {"gettext": str, "ngettext": lambda one, many, count: one if count == 1 else many},  # no catalogues here
}
"""Modules that others load, and of which few commands use anything, with what those ask for as they are loaded."""


def run() -> None:
    """Run the command of the arguments, and end the process once all is written.

    For Python to take apart what a command has made, object by object, takes as long as to check a model.
    """
    _open_streams()
    status: str | int | None = None

    def end() -> None:
        if isinstance(status, int):
            try:
                sys.stdout.flush()
                sys.stderr.flush()
            except (OSError, ValueError):  # the interpreter says what is wrong with them
                return
            os._exit(status)

    atexit.register(end)  # the first one, which is called behind all others
    try:
        end_on_signals()
        gc.set_threshold(PAUSE, *gc.get_threshold()[1:])
        os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", str(SPINNING))
        sys.modules.update({name: ModuleType(name) for name in UNREAD})  # as if they were loaded
        for name, known in UNUSED.items():
            defer(name, **known)
        from irrun.cli import main  # now that nothing searches what it loads

        main(prog_name="irrun")
    except SystemExit as ended:
        status = ended.code
        raise
    except KeyboardInterrupt:  # while that loads, or ends
        status = INTERRUPTED
        sys.stderr.write("interrupted\n")
        raise SystemExit(status) from None


def _open_streams() -> None:
    """Put nothing in the place of standard streams that whoever has started the process has closed, as daemons do:
    Python has None there, and what is opened next would be one of them.

    With PYTHONUNBUFFERED, what a pipe has taken of a text before nobody reads it any more passes for all of it: lines
    are buffered then. What an encoding has no letters for is spelt out, as it always is on stderr.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115, as long as the process
    stdout = sys.stdout
    if isinstance(stdout, io.TextIOWrapper):
        stdout.reconfigure(errors="backslashreplace")
    if isinstance(getattr(stdout, "buffer", None), io.FileIO):
        buffer = io.BufferedWriter(stdout.buffer)
        sys.stdout = io.TextIOWrapper(buffer, stdout.encoding, stdout.errors, line_buffering=True)


if __name__ == "__main__":
    run()
