"""A comparison as text: its diagnostics with the lines they are about, outputs, and a table of tensors on the way."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from irrun.check.render.text import Style, cells, one_line, padded, plain, render_diagnostic, source_of
from irrun.diagnostics import counted
from irrun.tools.compare.findings import listed

if TYPE_CHECKING:
    from irrun.tools.compare.results import Comparison, Measured, OutputResult, TensorResult

TEXTS = ("output", "tensor", "type", "computed in", "")
"""Columns that are no numbers."""

LONGEST = 48
"""Characters of a name in a table; of a longer one both ends are shown."""


def text(comparison: Comparison, top: int | None = 10, style: Style = plain) -> str:
    """All of it for people."""
    source = source_of(comparison.report)
    parts = [render_diagnostic(found, source, style) for found in comparison.diagnostics]
    return "\n".join([*parts, table(comparison, top), verdict(comparison, style)])


def verdict(comparison: Comparison, style: Style = plain) -> str:
    """A line: whether both sides agree, or which layer is the first that does not."""
    sides = one_line(f"{comparison.model} and {comparison.other}")
    runs = max((result.runs for result in comparison.outputs), default=1)
    count = f"{len(comparison.outputs)} outputs" if len(comparison.outputs) != 1 else "1 output"
    tensors = f"{len(comparison.tensors)} tensor{'s' * (len(comparison.tensors) != 1)}"
    looked = f", {tensors} on the way" if comparison.tensors else ""
    runs_text = f" in {runs} runs" if runs > 1 else ""
    if comparison.agrees:
        return f"{sides}: {style('they agree', 'ok')} ({count}{looked}{runs_text})"
    first = comparison.first
    where = ""
    if first is not None:
        at = f"`{one_line(first.layer.name)}`, line {first.span.line}"
        others = f", or {one_line(first.others)}" if first.between else ""
        where = f"; the first layer at fault is {at}{others}"
    return f"{sides}: {style('they differ', 'error')} ({count}{looked}{runs_text}){where}"


def table(comparison: Comparison, top: int | None = None) -> str:
    """The outputs, and the tensors on the way in the order of computation: those that fail, and the `top` worst."""
    rows: list[tuple[str, ...]] = [("output", "error", "of rms", "dB", "full precision", "runs off", "")]
    rows += [_output_row(result) for result in comparison.outputs]
    parts = [_aligned(rows)]
    chosen = _chosen(comparison.tensors, top)
    if chosen:
        tensors: list[tuple[str, ...]] = [
            ("tensor", "line", "type", "computed in", "own error", "of allowed", "dB", "from inputs, dB", "")
        ]
        tensors += [_tensor_row(result) for result in chosen]
        parts.append(_aligned(tensors))
        left = len(comparison.tensors) - len(chosen)
        if left:
            parts.append(f"and {left:,} more tensor{'s, which are' if left > 1 else ', which is'} no worse\n")
    if comparison.tensors and comparison.setting is not None:
        parts.append(f"tensors are those with {comparison.setting}, as nobody sees what is kept in fewer bits\n")
    if comparison.untapped:
        unseen = counted(len(comparison.untapped), "tensor")
        parts.append(f"{unseen} could not be looked at: {_reasons(comparison.untapped.values())}\n")
    if comparison.unknown:
        unknown = counted(len(comparison.unknown), "array")
        verb = "is" if len(comparison.unknown) == 1 else "are"
        parts.append(
            f"{unknown} of the other side {verb} nothing of the model: {one_line(listed(comparison.unknown))}\n"
        )
    return "\n".join(parts)


def _chosen(tensors: Sequence[TensorResult], top: int | None) -> list[TensorResult]:
    if top is None:
        return list(tensors)
    ranked = sorted(tensors, key=lambda result: result.own.rank, reverse=True)
    kept = {result.key for result in ranked[:top]} | {result.key for result in tensors if not result.agrees}
    return [result for result in tensors if result.key in kept]


def _reasons(reasons: Iterable[str]) -> str:
    counts = Counter(reasons)
    listed = [reason.replace("it was", "they were", count > 1) for reason, count in counts.items()]
    return "; ".join(one_line(reason) for reason in listed[:3]) + ("; ..." if len(listed) > 3 else "")


def _output_row(result: OutputResult) -> tuple[str, ...]:
    metrics = result.worst.metrics
    precise = "" if result.precise is None else _decibels(result.precise)
    runs = f"{result.differing} of {result.runs}"
    verdict = "" if result.agrees else "differs"
    return (
        _name(result.name),
        f"{metrics.max_abs:.3g}",
        f"{metrics.nmax:.2g}",
        _decibels(result.worst),
        precise,
        runs,
        verdict,
    )


def _tensor_row(result: TensorResult) -> tuple[str, ...]:
    metrics = result.own.metrics
    accumulated = "" if result.accumulated is None else _decibels(result.accumulated)
    verdict = "" if result.agrees and result.cause is None else result.cause or "differs"
    computed = " ".join(filter(None, (result.precision, result.primitive)))
    share = result.own.share
    part = "none" if metrics.equal else "beyond" if not math.isfinite(share) else f"{share:.2g}"
    return (
        _name(result.key),
        str(result.span.line),
        result.layer.type,
        computed,
        f"{metrics.max_abs:.3g}",
        part,
        _decibels(result.own),
        accumulated,
        verdict,
    )


def _decibels(measured: Measured) -> str:
    metrics = measured.metrics
    if not metrics.comparable:
        return "shape"
    if metrics.nonfinite_differing:
        return "not finite"
    return "equal" if metrics.sqnr == math.inf else f"{metrics.sqnr:.1f}"


def _name(name: str) -> str:
    shown, half = one_line(name), LONGEST // 2
    return shown if len(shown) <= LONGEST else f"{shown[: half - 1]}..{shown[1 - half :]}"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows as columns, those of numbers to the right."""
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    numeric = [title not in TEXTS for title in rows[0]]
    return "".join("  ".join(map(padded, row, widths, numeric)).rstrip() + "\n" for row in rows)
