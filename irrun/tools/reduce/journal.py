"""The checks of a reduction in a file, a line each, so that one that was ended goes on and asks nothing twice."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from irrun.files import hold, is_there
from irrun.tools.reduce.outcome import NOT_MADE, Outcome

FORM = 1

CRASHED = Outcome(False, NOT_MADE, "its check was begun before, but did not end: remove reduce.jsonl to try it again")
"""Of a model whose check was begun, but not ended: it is not tried again."""


class Journal:
    """What was checked, by the hash of a model and its inputs. Raises ValueError for a file of another reduction, or
    that another process writes to."""

    def __init__(self, path: Path, task: Mapping[str, str]) -> None:
        self._outcomes: dict[str, Outcome] = {}
        self._path = path
        self._stream: IO[str] = path.open("a", encoding="utf-8")
        try:
            if not hold(self._stream.fileno()):
                raise ValueError(f"another reduction is writing to {path.parent}")
            self._read(path.read_text(encoding="utf-8", errors="replace"), dict(task))
        except BaseException:
            self.close()
            raise

    def _read(self, text: str, task: Mapping[str, str]) -> None:
        """What is known already; the task is written down where nothing is."""
        begun: set[str] = set()
        known = False
        for line in text.splitlines():
            try:
                entry = json.loads(line)
            except ValueError:  # cut off where the power failed
                continue
            if not isinstance(entry, dict):
                continue
            if "irrun-reduce" in entry:
                if entry.get("irrun-reduce") != FORM or entry.get("task") != task:
                    raise ValueError(f"{self._path} is of another reduction: give another folder, or remove it")
                known = True
            elif "begin" in entry:
                begun.add(str(entry["begin"]))
            elif "left" in entry:
                begun.discard(str(entry["left"]))
            elif "hash" in entry:
                with suppress(ValueError):
                    self._outcomes[str(entry["hash"])] = Outcome.from_dict(entry)
        for hash in begun - self._outcomes.keys():
            self._outcomes[hash] = CRASHED
        if text and not known:
            raise ValueError(f"{self._path} is no file of `irrun reduce`: give another folder")
        if not text:
            self._write({"irrun-reduce": FORM, "task": task})

    def find(self, hash: str) -> Outcome | None:
        return self._outcomes.get(hash)

    def begin(self, hash: str) -> None:
        self._write({"begin": hash})

    def leave(self, hash: str) -> None:
        """Of a check that was begun, and could not be made for a reason that is not the model's."""
        self._write({"left": hash})

    def end(self, hash: str, outcome: Outcome, layers: int, step: str, seconds: float) -> None:
        self._outcomes[hash] = outcome
        entry = {"hash": hash, "step": step, "layers": layers, "seconds": round(seconds, 3), **outcome.to_dict()}
        self._write(entry)

    def close(self) -> None:
        self._stream.close()

    def drop(self) -> None:
        """Leave no file, where nothing was reduced, so that another check may use the folder."""
        self.close()
        self._path.unlink(missing_ok=True)

    def _write(self, entry: Mapping[str, Any]) -> None:
        self._stream.write(json.dumps(entry) + "\n")
        self._stream.flush()
        with suppress(OSError):
            os.fsync(self._stream.fileno())


def content_hash(*paths: Path) -> str:
    """Of what is in files."""
    digest = blake2b(digest_size=16)
    for path in paths:
        there = is_there(path)
        digest.update(b"%d;" % (path.stat().st_size if there else -1))
        if there:
            with path.open("rb") as stream:
                while chunk := stream.read(1 << 22):
                    digest.update(chunk)
    return digest.hexdigest()
