"""Results as tables, ratios, JSON and a plot. A ratio is irrun's time over the other's: below 1, irrun is faster."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

from bench.measure import Result

OURS = "irrun"
THEIRS = "openvino"


def ratio(ours: Result, theirs: Result, peaks: bool = False) -> float | None:
    """The median over the turns of ours / theirs, in time or in memory; None where one of them has no figures."""
    pairs = zip(ours.peaks, theirs.peaks, strict=False) if peaks else zip(ours.seconds, theirs.seconds, strict=False)
    ratios = [a / b for a, b in pairs]
    return statistics.median(ratios) if ratios else None


def report(results: Sequence[Result]) -> str:
    """A table for each measure, in the order in which they were taken."""
    parts = []
    for measure, own in _by_measure(results).items():
        parts.append(f"{measure}: seconds\n{_table(own)}\n{_means(own)}")
        if any(result.peaks for result in own):
            parts.append(f"{measure}: memory\n{_table(own, peaks=True)}\n{_means(own, peaks=True)}")
    failures = [
        f"{result.measure}, {result.model}, {result.runtime}: {result.failure.splitlines()[-1]}"
        for result in results
        if result.failure is not None
    ]
    return "\n\n".join([*parts, *(["not measured\n" + "\n".join(failures)] if failures else [])])


def geometric_means(results: Sequence[Result], peaks: bool = False) -> dict[str, dict[str, float]]:
    """Of the ratios over all models, by irrun's engine and by the other runtime."""
    means: dict[str, dict[str, float]] = {}
    for ours in _engines(results):
        for theirs in _runtimes(results):
            ratios = [
                found
                for models in _by_model(results).values()
                if ours in models and theirs in models
                if (found := ratio(models[ours], models[theirs], peaks)) is not None
            ]
            if ratios and _comparable(ours, theirs):
                means.setdefault(ours, {})[theirs] = statistics.geometric_mean(ratios)
    return means


def record(results: Sequence[Result], threads: int) -> dict[str, object]:
    """All figures, their means, and where they were taken, as JSON holds them."""
    packages = ("numpy", "scipy", "openvino", "onnxruntime", "onnx", "onednn-cpu-gomp")
    found = {package.metadata["Name"]: package.version for package in metadata.distributions()}
    measures = _by_measure(results)
    return {
        "machine": {"platform": platform.platform(), "threads": threads, "python": platform.python_version()},
        "versions": {name: found[name] for name in packages if name in found},
        "geometric means": {name: geometric_means(own) for name, own in measures.items()},
        "geometric means of memory": {
            name: geometric_means(own, peaks=True) for name, own in measures.items() if any(r.peaks for r in own)
        },
        "results": [asdict(result) for result in results],
    }


def plot(results: Sequence[Result], path: Path) -> None:
    """Bars of irrun's ratio to OpenVINO, a panel for each measure."""
    from matplotlib import pyplot

    measures = list(dict.fromkeys(result.measure for result in results if result.seconds))
    rows = {measure: _ratios([r for r in results if r.measure == measure]) for measure in measures}
    rows = {measure: found for measure, found in rows.items() if found}
    heights = [max(map(len, found.values())) for found in rows.values()]
    figure, panels = pyplot.subplots(
        len(rows), squeeze=False, figsize=(9, 1.5 + 0.35 * sum(heights)), height_ratios=heights, layout="constrained"
    )
    for panel, (measure, found) in zip(panels[:, 0], rows.items(), strict=True):
        names = list(dict.fromkeys(name for ratios in found.values() for name in ratios))
        for number, (ours, ratios) in enumerate(found.items()):
            height = 0.8 / len(found)
            places = [names.index(name) + (number - (len(found) - 1) / 2) * height for name in ratios]
            panel.barh(places, [value - 1 for value in ratios.values()], height, left=1, label=ours)
        panel.set(xscale="log", title=measure, xlabel="time of irrun / time of OpenVINO")
        panel.set_yticks(range(len(names)), names)
        panel.xaxis.set_major_formatter("{x:g}")
        panel.xaxis.set_minor_formatter("{x:g}")
        panel.invert_yaxis()
        panel.axvline(1, color="black", linewidth=0.8)
        if len(found) > 1:
            panel.legend()
    figure.savefig(path, dpi=120)


def _ratios(results: Sequence[Result]) -> dict[str, dict[str, float]]:
    """Irrun's ratio to OpenVINO, by engine and model."""
    ratios: dict[str, dict[str, float]] = {}
    for model, runtimes in _by_model(results).items():
        for ours in _engines(results):
            found = ratio(runtimes[ours], runtimes[THEIRS]) if {ours, THEIRS} <= set(runtimes) else None
            if found is not None:
                ratios.setdefault(ours, {})[model] = found
    return ratios


def _table(results: Sequence[Result], peaks: bool = False) -> str:
    """Medians, a column for each runtime, and irrun's ratios to OpenVINO."""
    runtimes, engines = _runtimes(results), _engines(results)
    rows = [["model", *(f"{name} {'MiB' if peaks else 'ms'}" for name in runtimes)]]
    pairs = [(ours, theirs) for ours in engines for theirs in runtimes if _comparable(ours, theirs)]
    rows[0] += [f"{ours} / {theirs}" for ours, theirs in pairs]
    compared = any(result.difference is not None for result in results) and not peaks
    rows[0] += ["difference"] if compared else []
    for model, found in _by_model(results).items():
        row = [model, *(_figure(found.get(name), peaks) for name in runtimes)]
        for ours, theirs in pairs:
            both = found.get(ours), found.get(theirs)
            value = ratio(both[0], both[1], peaks) if both[0] and both[1] else None
            row.append("" if value is None else f"{value:.3f}")
        if compared:
            differences = [r.difference for r in found.values() if r.difference is not None and r.runtime in engines]
            row.append(f"{max(differences):.0e}" if differences else "")
        rows.append(row)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) if number else cell.ljust(width) for number, (cell, width) in enumerate(cells))
        for cells in (list(zip(row, widths, strict=True)) for row in rows)
    )


def _figure(result: Result | None, peaks: bool) -> str:
    if result is None or not (result.peaks if peaks else result.seconds):
        return "-"
    if peaks:
        return f"{statistics.median(result.peaks) / 2**20:.0f}"
    milliseconds = statistics.median(result.seconds) * 1e3
    return f"{milliseconds:.3f}" if milliseconds < 10 else f"{milliseconds:.1f}"


def _means(results: Sequence[Result], peaks: bool = False) -> str:
    return "\n".join(
        f"geometric mean of {ours} / {theirs}: {mean:.3f}"
        for ours, others in geometric_means(results, peaks).items()
        for theirs, mean in others.items()
    )


def _by_measure(results: Iterable[Result]) -> dict[str, list[Result]]:
    measures: dict[str, list[Result]] = {}
    for result in results:
        measures.setdefault(result.measure, []).append(result)
    return measures


def _by_model(results: Iterable[Result]) -> dict[str, dict[str, Result]]:
    models: dict[str, dict[str, Result]] = {}
    for result in results:
        models.setdefault(result.model, {})[result.runtime] = result
    return models


def _runtimes(results: Iterable[Result]) -> list[str]:
    """Those that have figures."""
    return list(dict.fromkeys(result.runtime for result in results if result.seconds))


def _engines(results: Iterable[Result]) -> list[str]:
    return [name for name in _runtimes(results) if name.startswith(OURS)]


def _comparable(ours: str, theirs: str) -> bool:
    """Whether a ratio of the two says something: `against: irrun numpy` is there for `irrun numpy` alone."""
    return (
        not theirs.startswith(OURS)
        and theirs.partition(": ")[2] in ("", ours)
        and ours.endswith(" bf16") == theirs.endswith(" bf16")
    )
