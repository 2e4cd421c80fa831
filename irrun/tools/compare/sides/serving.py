"""The inside of a worker: requests from standard input, answers to standard output, one a line.

What libraries print is no answer: it goes to standard error, where the other end of the pipe looks when things fail.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from irrun.files import Unwritten

Tell = Callable[[str], None]
"""Is told which of the phases of `contract.PHASES` begins."""

Handler = Callable[[dict[str, Any], Tell], dict[str, Any]]
"""Gives the answer to a request."""


def serve(handlers: Mapping[str, Handler]) -> None:
    """Answer requests by what they want done (`do`) until there are no more; what raises is answered as an error."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def say(what: dict[str, Any]) -> None:
        answers.write(f"{json.dumps(what)}\n")

    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = handlers[request["do"]](request, lambda phase: say({"phase": phase}))
        except Unwritten as error:
            answer = {"unwritten": [error.errno, error.strerror]}
        except Exception as error:  # whatever a library raises
            answer = {"error": str(error).strip() or type(error).__name__}
        say(answer)
    answers.flush()
    os._exit(0)  # without the destructors of plugins, which may wait for threads or crash
