"""The command line as a process: `irrun`, and `python -m irrun`."""

from __future__ import annotations

import atexit
import os
import sys

from irrun.cli import main


def run() -> None:
    """Run the command of the arguments, and end the process once all is written.

    For Python to take apart what a command has made, object by object, takes as long as to check a model.
    """
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
        main(prog_name="irrun")
    except SystemExit as ended:
        status = ended.code
        raise


if __name__ == "__main__":
    run()
