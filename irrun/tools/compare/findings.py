"""What a comparison has found, as diagnostics at the lines of layers: why the first ones are off, and which outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from irrun.diagnostics import LONGEST_NAME, Diagnostic, LayerName, Note, clipped
from irrun.ir.graph import Layer, Model
from irrun.ir.signature import names_of_results
from irrun.run.keys import whenever
from irrun.spelling import close_matches
from irrun.tools.compare.causes.case import Cause, number
from irrun.tools.compare.passes import Trace
from irrun.tools.compare.results import Measured, OutputResult, TensorResult, Where
from irrun.tools.compare.tolerances import EXACT

MAX_LISTED = 5
"""Names in a message."""


def of_layers(
    path: Path, side: str, tensors: Sequence[TensorResult], causes: Mapping[str, Cause]
) -> Iterator[Diagnostic]:
    """Why tensors are off, by key: those at fault in the order of computation, then those that are explained.

    What is so in several iterations is told once.
    """
    wrong = [result for result in tensors if not result.agrees]
    alike: dict[tuple[LayerName, str, str], list[TensorResult]] = {}
    for result in (*wrong, *(result for result in tensors if result.agrees)):
        if result.key in causes:
            place = result.layer, whenever(result.key), causes[result.key].code
            alike.setdefault(place, []).append(result)
    for result, *others in alike.values():
        first = bool(wrong) and result is wrong[0]
        yield _of_layer(path, side, result, causes[result.key], [other.key for other in others], first=first)


def of_asked(path: Path, tensors: Sequence[TensorResult]) -> Iterator[Diagnostic]:
    """That the results of layers are further off than somebody allows who has judged them again."""
    for result in tensors:
        own = result.own
        message = f"`{result.key}` differs {own.metrics.beyond(own.tolerance)}: more than --tol allows"
        yield Diagnostic("N221", message, result.span, result.layer, file=str(path))


def of_input(model: Model, layer: Layer, where: Where, cause: Cause) -> Diagnostic:
    """That the other side was given something else."""
    message = f"input `{layer.name}` is not the same on both sides: {cause.sentence}"
    notes = tuple(Note(text) for text in (*cause.evidence, f"with {where}"))
    return Diagnostic(cause.code, message, layer.span, layer.label, cause.help, notes, file=str(model.path))


def of_folded(path: Path, side: str, layer: Layer, does: str, because: str) -> Diagnostic:
    """That outputs come from a layer of constants that the other side is known to compute otherwise."""
    message = f"{layer.type} `{layer.name}`, which is computed of constants: a known deviation: {does}"
    notes = (Note(because), Note(f"{side} computes it while it compiles and shows it to nobody"))
    return Diagnostic("N104", message, layer.span, layer.label, notes=notes, file=str(path))


def unsteady(model: Model, side: str, name: str, measured: Measured) -> Diagnostic:
    """That two equal runs of the other side give different outputs."""
    metrics = measured.metrics
    changed = f"by {number(metrics.max_abs)} at most, {metrics.sqnr:.1f} dB"
    if metrics.nonfinite_differing:
        changed = f"{metrics.nonfinite_differing:,} of {metrics.count:,} values are finite in one of them only"
    layer = _result(model, name)
    code, verb = ("N105", "a little ") if measured.holds else ("N209", "")
    return Diagnostic(
        code,
        f"two equal runs on {side} give {verb}different outputs `{name}`",
        layer.span,
        layer.label,
        None
        if measured.holds
        else "what is compared below is the first of them; run it with one thread and one stream",
        (Note(changed), Note(f"with {measured.where}")),
        file=str(model.path),
    )


def of_passes(model: Model, found: Trace) -> Diagnostic:
    """Which transformation changes values, if any does."""
    ran = Note(f"{found.run} of {found.total} graphs could be run by irrun")
    span, file = model.graph.element.span, str(model.path)
    if found.changing is None or found.metrics is None:
        message = "no transformation changes the outputs by more than rounding in f32"
        return Diagnostic("N101", message, span, notes=(ran,), file=file)
    metrics = found.metrics
    notes = [Note(f"output {found.output} changes by {number(metrics.max_abs)} at most, {metrics.sqnr:.1f} dB"), ran]
    if found.layers:
        notes.append(Note(f"it has made or changed {', '.join(f'`{name}`' for name in found.layers)}"))
    message = f"transformation {found.changing.number} `{found.changing.name}` is the first that changes the outputs"
    help = "keep it from running there, or report it with the graph before it and the one after it"
    return Diagnostic("N215", message, span, None, help, tuple(notes), file=file)


def _of_layer(
    path: Path, side: str, result: TensorResult, cause: Cause, others: Sequence[str], *, first: bool
) -> Diagnostic:
    which = "is the first tensor that differs" if first else "differs"
    if cause.explained:
        which = "differs, which is explained"
    metrics = result.own.metrics
    computed = ", ".join(filter(None, (result.precision, result.primitive)))
    notes = [Note(text) for text in cause.evidence]
    fused = [name for name in result.fused if name != result.layer.name]
    if computed or fused:
        together = f", together with {', '.join(f'`{name}`' for name in fused[:5])}" if fused else ""
        notes.append(Note(f"{side} computes it in {computed or 'a type it does not tell'}{together}"))
    told = metrics.comparable and not metrics.nonfinite_differing
    if told and metrics.worst_values is not None and metrics.worst is not None:
        there, here = metrics.worst_values
        at = f" at {list(metrics.worst)}" if metrics.worst else ""
        pair = f"{_value(there)}, but {_value(here)} by irrun"
        what = "error" if result.between else "own error"
        tolerance = result.own.tolerance
        allowed = "it has to be equal" if tolerance == EXACT else f"it may be {tolerance}"
        if tolerance.outliers >= 1 and tolerance.sqnr is not None:
            allowed = (
                f"all together are {metrics.sqnr:.1f} dB above their noise, of which {tolerance.sqnr:g} are wanted"
            )
        notes.append(Note(f"{what} {number(metrics.max_abs)} at most{at}: {pair}; {allowed}"))
    if result.runs > 1 or result.own.where.step:
        notes.append(Note(f"it is off in {result.differing} of {result.runs} runs, most with {result.own.where}"))
    if others:
        notes.append(Note(f"so are {listed(others)}, in other iterations"))
    help = cause.help
    if result.between:
        notes.append(Note(f"what it has read there is not known: {result.others} may be at fault as well"))
        help = help if cause.explained or cause.code == "N218" else _BETWEEN
    return Diagnostic(
        cause.code,
        f"`{result.key}` {which}: {cause.sentence}",
        result.span,
        result.layer,
        help,
        tuple(notes),
        file=str(path),
    )


_BETWEEN = "have the other side give tensors in between as well, which tells the layer"


def of_outputs(
    path: Path, side: str, outputs: Sequence[OutputResult], watching: float | None, *, failing: bool, tied: bool
) -> Iterator[Diagnostic]:
    """What there is to say of outputs; `failing` says that layers are at fault, which explains much, `tied` that
    choices on the way are ties."""
    for output in outputs:
        metrics, notes = output.worst.metrics, [Note(text) for text in _facts(side, output)]
        said = partial(Diagnostic, span=output.span, layer=output.layer, notes=tuple(notes), file=str(path))
        precise = output.precise is not None and output.precise.holds
        if output.agrees:
            if precise:
                message = f"output `{output.name}` is off by rounding alone: {metrics.sqnr:.1f} dB"
                yield said("N101", message)
            continue
        if watching is not None:
            changed = f"watching tensors changes outputs by {number(watching)} of their rms, as fusions are lost"
            said = partial(said, notes=(*notes, Note(changed)))
        cached = output.cache is not None and output.cache.explains
        if not failing and cached:
            assert output.cache is not None
            kept = f"{side} keeps what attention has seen of earlier steps in {output.cache.type}"
            yield said("N106", f"{kept}: with that in f32 output `{output.name}` agrees")
        elif not failing and precise:
            message = f"no layer does more than round, and at full precision output `{output.name}` agrees"
            yield said("N102", message)
        message = f"output `{output.name}` differs {_extent(output.worst)}"
        help = "see the layers above" if failing else _TIED if tied and not cached else _advice(output)
        yield said("N200", message, help=help)


def of_missing(
    model: Model, side: str, outputs: Sequence[OutputResult], runs: int, unknown: Sequence[str]
) -> Iterator[Diagnostic]:
    """Which outputs were not compared, or not in all of so many `runs`; where the other side has arrays that are
    `unknown`, one of these may be what is meant."""
    compared = {output.name: output.runs for output in outputs}
    for layer, (name, *others) in zip(model.graph.results, names_of_results(model.graph), strict=True):
        said = partial(Diagnostic, span=layer.span, layer=layer.label, file=str(model.path))
        count = compared.get(name, 0)
        if count:
            if count < runs:
                yield said(
                    "N301", f"output `{name}` was compared in {count} of {runs} runs: {side} lacks it in the others"
                )
        elif unknown:
            verb = "is" if len(unknown) == 1 else "are"
            message = f"output `{name}` was not compared: no array of {side} goes by its name"
            close = [each for word in (name, *others) for each in close_matches(word, unknown, likely=True)]
            meant = f"if `{close[0]}` is it, " if close else ""
            help = f"{meant}call its array `{name}`, or `output_{model.graph.results.index(layer)}`, by its place"
            notes = (Note(f"{listed(unknown)} {verb} nothing of the model"),)
            yield said("N217", message, notes=notes, help=help)
        else:
            yield said("N301", f"output `{name}` was not compared: {side} has nothing for it")


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - MAX_LISTED:,} more" if len(names) > MAX_LISTED else ""
    return ", ".join(f"`{clipped(name, LONGEST_NAME)}`" for name in names[:MAX_LISTED]) + more


_TIED = "see the tie above: what follows from a choice differs with it; compare on inputs with clear winners"


def _advice(output: OutputResult) -> str:
    if output.cache is not None and output.cache.explains:
        return f"compare with --config {output.cache.setting}, or allow more with --tol where this is good enough"
    if output.precise is not None and output.precise.holds:
        return "compute more of it at full precision (`irrun tune` finds the fewest layers), or allow more with --tol"
    return "allow more with --tol where this is good enough"


def _extent(measured: Measured) -> str:
    metrics = measured.metrics
    if not metrics.comparable:
        expected = f"{metrics.expected_type}{list(metrics.expected_shape)}"
        return f"in shape or type: {metrics.type}{list(metrics.shape)}, expected {expected}"
    if metrics.nonfinite_differing:
        return f"in {metrics.nonfinite_differing:,} of {metrics.count:,} values that are not finite on one side"
    return metrics.beyond(measured.tolerance)


def _amount(measured: Measured) -> str:
    """How far apart results are that were made otherwise, behind what is said of them."""
    metrics = measured.metrics
    if not metrics.comparable or metrics.nonfinite_differing:
        return f" {_extent(measured)}"
    return ": all equal" if metrics.equal else f": {metrics.sqnr:.1f} dB"


def _facts(side: str, output: OutputResult) -> Iterator[str]:
    metrics = output.worst.metrics
    if metrics.comparable and metrics.worst_values is not None and metrics.worst is not None:
        there, here = metrics.worst_values
        at = f" at {list(metrics.worst)}" if metrics.worst else ""
        yield f"most{at}: {_value(there)} on {side}, {_value(here)} by irrun"
    if output.precise is not None:
        verb = "agrees" if output.precise.holds else "differs as well"
        yield f"at full precision it {verb}{_amount(output.precise)}"
    if output.cache is not None:
        verb, amount = ("agrees" if output.cache.explains else "differs as well"), _amount(output.cache.without)
        yield f"with --config {output.cache.setting} in place of {output.cache.type} it {verb}{amount}"
    if output.runs > 1:
        yield f"it differs in {output.differing} of {output.runs} runs, most with {output.worst.where}"


def _result(model: Model, name: str) -> Layer:
    for layer, names in zip(model.graph.results, names_of_results(model.graph), strict=True):
        if names[0] == name:
            return layer
    raise KeyError(name)


def _value(value: float | int | str) -> str:
    return f"{value:g}" if isinstance(value, float) else repr(value)
