"""All measures of a model in one line of a table in Markdown: irrun's ratios to OpenVINO, the slowest models first."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from bench.measure import Result
from bench.report import OURS, THEIRS, ratio

RATIOS = ("steady", "one-shot", "fresh", "varied")
SLOW = 1.2
"""The ratio of steady time from which on a model's most expensive parts are named."""

Costs = Mapping[str, Sequence[tuple[str, float]]]


def slower(results: Sequence[Result], limit: float) -> list[str]:
    """The models whose steady ratio is above `limit`."""
    return [name for name, found in ratios(results, "steady").items() if found > limit]


def ratios(results: Sequence[Result], measure: str) -> dict[str, float]:
    """Those of irrun, with the engine that it chooses, to OpenVINO, by model."""
    found: dict[tuple[str, str], Result] = {(r.model, r.runtime): r for r in results if r.measure == measure}
    pairs = {
        model: ratio(result, found[model, THEIRS])
        for (model, runtime), result in found.items()
        if runtime == OURS and (model, THEIRS) in found
    }
    return {model: value for model, value in pairs.items() if value is not None}


def summary(results: Sequence[Result], costs: Costs) -> str:
    """The table, what stands below it, and what was not measured."""
    columns = {measure: ratios(results, measure) for measure in RATIOS}
    columns = {measure: found for measure, found in columns.items() if found}
    steady = columns.get("steady", {})
    names = sorted({name for found in columns.values() for name in found}, key=lambda name: -steady.get(name, 0.0))
    measured = [result for result in results if result.measure == "steady" and result.seconds]
    times = {(result.model, result.runtime): statistics.median(result.seconds) * 1e3 for result in measured}
    differences = {r.model: r.difference for r in results if r.runtime == OURS and r.difference is not None}
    lines = ["| model | irrun ms | OpenVINO ms | " + " | ".join(columns) + " | difference | what takes longest |"]
    lines.append("| --- |" + " ---: |" * (3 + len(columns)) + " --- |")
    for name in names:
        row = [name, *(_milliseconds(times.get((name, runtime))) for runtime in (OURS, THEIRS))]
        row += [f"{found[name]:.2f}" if name in found else "" for found in columns.values()]
        row.append(f"{differences[name]:.0e}" if name in differences else "")
        row.append("; ".join(f"{what} {share:.0%}" for what, share in costs.get(name, ())))
        lines.append("| " + " | ".join(row) + " |")
    lines.append("")
    for measure, found in columns.items():
        mean, worst = statistics.geometric_mean(found.values()), max(found, key=lambda name: found[name])
        lines.append(f"{measure}: geometric mean {mean:.3f} of {len(found)}, at most {found[worst]:.2f} ({worst})")
    failures = [r for r in results if r.failure is not None]
    lines += [f"- {r.measure}, {r.model}, {r.runtime}: {r.failure.splitlines()[-1]}" for r in failures if r.failure]
    return "\n".join(lines) + "\n"


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}"
