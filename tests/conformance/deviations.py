"""The table of deviations, DEVIATIONS.md: `python -m conformance.deviations`, in tests/, writes it anew."""

from pathlib import Path

from conformance.harness import Case, all_cases

TABLE = Path(__file__).with_name("DEVIATIONS.md")
HEAD = """\
# Where OpenVINO's CPU plugin departs

irrun follows the written specification; where that is silent, OpenVINO's reference kernels; where these are undefined,
a choice that `irrun ops NAME` states. Below is every departure of the CPU plugin (2026.4.1, at full precision) that the
suite knows: what it does with the case, and what the specification or the reference says, which irrun does.

The suite runs OpenVINO in each of these cases and fails if it no longer departs, or refuses what it is said to compute.
Not run are those marked \u2020: they end the process, or depend on what lies in memory that is not OpenVINO's own.

`python -m conformance.deviations`, in tests/, writes this file; the cases stand in the `test_*.py` beside it.

| op | case | OpenVINO's CPU plugin | irrun, because |
|---|---|---|---|
"""


def table() -> str:
    """The text of DEVIATIONS.md."""
    return HEAD + "".join(map(row, sorted(filter(deviating, all_cases()), key=place)))


def deviating(case: Case) -> bool:
    return case.deviates is not None


def place(case: Case) -> tuple[str, int, str]:
    name, _, version = case.op.rpartition("-")
    return name.lower(), int(version), case.title


def row(case: Case) -> str:
    does, _, because = (case.deviates or "").partition("; ")
    cells = (case.op, case.title, f"{does} \u2020" if case.crashes else does, because)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
