"""Prints how well irrun and OpenVINO find the defects of the corpus: `python tests/corpus/report.py [--messages]`.

OpenVINO counts as having found a defect where `Core().read_model` raises, whatever it says.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from corpus import PARTS, defects
from corpus.defect import Defect
from corpus.judge import Verdict, judge

WORKERS = 2
SECONDS = 60
"""For OpenVINO to read one model."""

READER = """
import sys, json, openvino
core = openvino.Core()
for line in sys.stdin:
    try:
        core.read_model(line.strip())
        answer = None
    except Exception as error:
        answer = str(error)
    print(json.dumps(answer), flush=True)
"""

SHOWN = (
    "truncated .bin",
    "published fragment",
    "IR version",
    "execution graph",
    "duplicate id",
    "edge to nowhere",
    "two edges into one port",
    "missing edge",
    "cycle",
    'type="Constant"',
    "inline value",
    "overlapping Consts",
    "swapped outputs",
    "back edge",
    "misspelt attribute",
    "unreadable boolean",
    "unreadable int[]",
    "unreadable shape",
    "plugin-only opset",
    "element type",
    "sizes that disagree",
    "constraint",
)
"""Families of which one defect is shown, with what both say."""


def read_all(paths: list[Path]) -> list[str | None]:
    """What OpenVINO says of each model, None where it takes it; it runs apart, as it may crash."""
    answers: list[str | None] = []
    process = None
    for path in paths:
        if process is None:
            process = subprocess.Popen(
                [sys.executable, "-c", READER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        assert process.stdin
        assert process.stdout
        process.stdin.write(f"{path}\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if line:
            answers.append(json.loads(line))
        else:
            answers.append(f"crashes (exit status {process.wait(SECONDS)})")
            process = None
    if process is not None:
        process.communicate(timeout=SECONDS)
    return answers


def openvino(corpus: list[Defect], folder: Path) -> list[str | None]:
    paths = []
    for number, defect in enumerate(corpus):
        path = folder / str(number) / "model.xml"
        path.parent.mkdir()
        path.write_bytes(defect.xml)
        if defect.weights is not None:
            path.with_suffix(".bin").write_bytes(defect.weights)
        paths.append(path)
    with ThreadPoolExecutor(WORKERS) as pool:
        parts = list(pool.map(read_all, [paths[start::WORKERS] for start in range(WORKERS)]))
    return [parts[number % WORKERS][number // WORKERS] for number in range(len(corpus))]


def row(name: str, pairs: list[tuple[Verdict, str | None]]) -> str:
    verdicts = [verdict for verdict, _ in pairs]
    shares = (
        sum(verdict.found for verdict in verdicts),
        sum(verdict.right for verdict in verdicts),
        sum(verdict.exact for verdict in verdicts),
        sum(not verdict.others for verdict in verdicts),
        sum(said is not None for _, said in pairs),
    )
    ops = len({verdict.defect.op for verdict in verdicts} - {""})
    percents = "".join(f"{100 * share / len(pairs):9.1f}" for share in shares)
    return f"{name:40}{len(pairs):8}{ops:6}{percents}"


def shorter(text: str) -> str:
    """What OpenVINO says, without the places in its own sources."""
    kept = [line for line in text.splitlines() if line.strip() and not line.startswith("Exception from")]
    return " / ".join(part.replace("|", "\\|") for part in kept)[:300]


def main() -> None:
    corpus = [defect for part in PARTS for defect in defects(part)]
    with tempfile.TemporaryDirectory() as folder:
        verdicts = [judge(defect, Path(folder)) for defect in corpus]
    with tempfile.TemporaryDirectory() as folder:
        pairs = list(zip(verdicts, openvino(corpus, Path(folder)), strict=True))
    print(f"{'family':40}{'defects':>8}{'ops':>6}{'found':>9}{'line':>9}{'column':>9}{'once':>9}{'OpenVINO':>9}")
    for family in dict.fromkeys(defect.family for defect in corpus):
        print(row(family, [pair for pair in pairs if pair[0].defect.family == family]))
    print(row("all", pairs))
    print(f"OpenVINO crashed on {sum(said is not None and said.startswith('crashes') for _, said in pairs)}")
    if "--messages" in sys.argv:
        print("\n| defect | irrun | OpenVINO |\n| --- | --- | --- |")
        for family in SHOWN:
            verdict, said = next(pair for pair in pairs if pair[0].defect.family == family)
            found = verdict.main
            place = f"{found.line}:{found.column} " if found and found.line else ""
            ours = f"{place}{found.code}: {found.message}; {found.help}" if found else "-"
            print(f"| {verdict.defect} | {ours} | {shorter(said) if said else 'nothing'} |")


if __name__ == "__main__":
    main()
