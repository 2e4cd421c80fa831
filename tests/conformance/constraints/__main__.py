"""Writes the table of constraints: `python -m conformance.constraints`, in tests/, asks OpenVINO what is not there yet.

With --again it is asked all rows anew, which takes an hour.
"""

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from conformance.constraints.asking import Asker
from conformance.constraints.checking import found
from conformance.constraints.judgement import judged
from conformance.constraints.recording import recorded
from conformance.constraints.row import CONSTANTS, PARAMETERS, Row
from conformance.constraints.table import FILE, made_rows, shares, table, write
from conformance.harness import OPS


def main(again: bool) -> None:
    known = {} if again or not FILE.exists() else {row.digest: row.answers for row in table()}
    with Asker() as asker, tempfile.TemporaryDirectory() as folder:
        rows = []
        for row in broken(Path(folder)):
            answers = known.get(row.digest) or ask(row, asker)
            verdict, because = judged(row, answers)
            rows.append(replace(row, answers=answers, verdict=verdict, because=because))
    write(rows)
    left = [f"{row.op} {row.label} {row.changed or row.text}" for row in rows if not row.verdict]
    print(f"{len(rows)} rows, {len(left)} of them to be judged", *left, sep="\n")


def broken(folder: Path) -> Iterator[Row]:
    """The rows that break what they are to break, with our code; the same model once, and none of later releases."""
    seen = set()
    for row in chain(recorded(), made_rows()):
        if row.digest in seen or row.op not in OPS:
            continue
        codes, messages, _ = found(row, True, folder)
        code = shares(row, codes)
        if code:
            seen.add(row.digest)
            yield replace(row, code=code, text=row.text or messages[codes.index(code)])


def ask(row: Row, asker: Asker) -> dict[str, str]:
    """OpenVINO's answers; how inputs are given does not matter to what it refuses to read."""
    first = asker.ask(row, True)[0]
    if first.startswith("refused at read"):
        return {CONSTANTS: first}
    return {CONSTANTS: first, PARAMETERS: asker.ask(row, False)[0]}


if __name__ == "__main__":
    main("--again" in sys.argv)
