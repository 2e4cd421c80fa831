"""What `irrun execute` does about the tensors of a run: --dump, --check-finite and --check-range."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irrun.cli.files import existing_folder
from irrun.cli.options import Command, say, show
from irrun.diagnostics import ExecutionError, counted
from irrun.records import dataclass

if TYPE_CHECKING:
    from irrun.run.executor import GraphExecutor
    from irrun.run.profile import Profile
    from irrun.run.results import Results
    from irrun.run.session import Event, Session
    from irrun.tools.watch.dump import Recording
    from irrun.tools.watch.files import Writer
    from irrun.tools.watch.ranges import Glance, Search
    from irrun.tools.watch.selection import Selection


MAX_NAMED = 5
"""Layers that a note names."""

_DUMPS = ("dump", "layers", "types", "around", "distance", "record", "iterations")


def _dump_file(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    if path is not None and path.suffix.lower() not in (".npz", ".safetensors", ".jsonl"):
        raise click.BadParameter(f"{path} is none of .npz, .safetensors and .jsonl", context, parameter)
    return existing_folder(context, parameter, path)


def _types(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.strip() for text in given for name in text.split(",") if name.strip())


_OPTIONS = (
    click.option(
        "--dump",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        callback=_dump_file,
        help="Write the tensors that layers make to an .npz or .safetensors file, with statistics of each; to .jsonl "
        "these alone. While tensors are looked at no layers are computed together.",
    ),
    click.option(
        "--layer",
        "layers",
        multiple=True,
        metavar="GLOB",
        help="Of --dump: the layers whose names fit; may be given several times.",
    ),
    click.option(
        "--type",
        "types",
        multiple=True,
        metavar="OP[,OP]",
        callback=_types,
        help="Of --dump: the layers of these types, of those that --layer and --around leave.",
    ),
    click.option("--around", metavar="NAME", help="Of --dump: this layer, and those next to it."),
    click.option(
        "--distance",
        type=click.IntRange(0),
        metavar="N",
        help="How many edges from --around other layers may be; 1 by default.",
    ),
    click.option(
        "--record",
        type=click.Choice(("stats", "values")),
        help="What --dump writes: statistics, or values too, which is the default where something says which tensors.",
    ),
    click.option(
        "--iterations",
        metavar="all|first|last|0,3,-1",
        help="Of --dump: the iterations of bodies; -1 is the last one.",
    ),
    click.option(
        "--check-finite",
        is_flag=True,
        help="Name the first layer that makes NaN or infinity of what is finite, and exit with 1.",
    ),
    click.option(
        "--check-range",
        type=click.Choice(("f16", "bf16")),
        help="Name the first layer that makes numbers that f16 or bf16 does not have, and exit with 1.",
    ),
)


def watching_options(function: Command) -> Command:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@dataclass(slots=True, eq=False)
class Wishes:
    """What the options ask for, checked as far as that goes without a model."""

    context: click.Context
    dump: Path | None
    layers: tuple[str, ...]
    types: tuple[str, ...]
    around: str | None
    distance: int | None
    record: str | None
    iterations: str | None
    check_finite: bool
    check_range: str | None

    def __post_init__(self) -> None:
        idle = [name for name in _DUMPS[1:] if getattr(self, name) not in (None, ())]
        if self.dump is None and idle:
            option = {"layers": "layer", "types": "type"}.get(idle[0], idle[0])
            raise click.UsageError(f"--{option} says what --dump writes: give --dump FILE, too", self.context)
        if self.distance is not None and self.around is None:
            raise click.UsageError("--distance is that from a layer: name it with --around", self.context)
        if self.dump is not None and self.dump.suffix.lower() == ".jsonl" and self.record == "values":
            raise click.UsageError("values go to an .npz or .safetensors file, .jsonl is for statistics", self.context)

    @property
    def values(self) -> bool:
        chosen = bool(self.layers or self.types or self.around is not None)
        assert self.dump is not None
        return self.record == "values" or (self.record is None and chosen and self.dump.suffix.lower() != ".jsonl")

    def selection(self, executor: GraphExecutor) -> Selection:
        """Raises click.BadParameter where it says what the model does not have."""
        from irrun.spelling import close_matches
        from irrun.tools.watch.selection import Selection, missing, parse_iterations

        try:
            iterations = parse_iterations("all" if self.iterations is None else self.iterations)
        except ValueError as error:
            raise click.BadParameter(str(error), self.context, param_hint="--iterations") from None
        distance = 1 if self.distance is None else self.distance
        selection = Selection(self.layers, self.types, self.around, distance, iterations)
        layers = list(executor.model.graph.walk())
        for name, kind in missing(selection, layers).items():
            known = {layer.type if kind == "type" else layer.name for layer in layers}
            close = close_matches(name, known)
            hint = f"; did you mean `{close[0]}`?" if close else ""
            raise click.BadParameter(f"the model has no {kind} `{name}`{hint}", self.context)
        return selection


@dataclass(slots=True, eq=False)
class Watched:
    """Runs of a model that somebody looks at, one after the other; `failed` says that something was found."""

    executor: GraphExecutor
    session: Session
    recording: Recording | None
    search: Search | None
    glance: Glance | None
    failed: bool = False
    _tensors: int = 0

    @property
    def doing(self) -> str:
        """What is computed now, for people who wait."""
        now = self.session.now
        return f"running{now and f' {now}'}{f', {self._tensors:,} tensors' if self._tensors else ''}"

    def run(self, inputs: Any, profile: Profile | None, number: int) -> Results:
        """A run, number 0 first; later ones are looked at where they may differ from the first one."""
        if number and not self.executor.stateful:
            return self.session.run(inputs, profile=profile)
        if self.recording is not None:
            self.recording.step = number + 1
            try:
                results = self.session.run(inputs, profile=profile, observer=self._look)
            except ExecutionError as error:
                if isinstance(error.__cause__, OSError):  # the file of the dump is at fault, and no layer
                    raise error.__cause__ from None
                raise
            self.recording.finish()
            return results
        if self.search is None or self.glance is None or self.search.settled:
            return self.session.run(inputs, profile=profile)
        before = self.session.fork()
        results = self.session.run(inputs, profile=profile, observer=self.glance.observer())
        if self.glance.suspects:
            self.session = before
            results = self.session.run(inputs, observer=self._look)
            self._doubt()
        return results

    def _look(self, event: Event) -> None:
        self._tensors += 1
        if self.recording is not None:
            self.recording(event)
        if self.search is not None:
            self.search(event)
            if self.recording is not None and self.glance is not None:
                self.glance.count(event.layer, event.array)

    def _doubt(self) -> None:
        """What was suspected and has not been found again: it depends on what is computed together."""
        from irrun.tools.watch.ranges import suspected

        if self.search is not None and self.glance is not None:
            if self.search.found is None and not self.search.masks and not self.search.inherited:
                self.search.found = suspected(self.glance.suspects[0], self.search.range)
            self.glance.suspects.clear()

    def finish(self) -> None:
        """Say what was found."""
        if self.search is None or self.glance is None:
            return
        kind = self.search.range.name
        if self.search.masks:
            say("note", f"taken for masks, -inf among zeros: {_listed(self.search.masks)}")
        if self.glance.flushed:
            most = sorted(self.glance.flushed, key=lambda layer: -self.glance.flushed[layer])  # type: ignore[union-attr]
            many = f"{len(most):,} layer{'s' * (len(most) > 1)} make{'s' * (len(most) == 1)}"
            counts = f"{self.glance.flushed[most[0]]:,} in layer {most[0]}"
            say("note", f"{many} numbers that {kind} has not, and rounds to 0: {counts}")
        if self.search.found is not None:
            self.failed = True
            show([replace(self.search.found, file=str(self.executor.model.path))])
            return
        looked = max(self.search.looked_at, self.glance.looked_at)
        what = f"in the range of {kind}" if kind else "finite"
        besides = " but for what comes from inputs, constants and masks" if self.search.inherited else ""
        click.echo(f"{what}{besides}: {counted(looked, 'tensor')}", err=True)


@contextmanager
def watching(wishes: Wishes, executor: GraphExecutor, inputs: Any) -> Iterator[Watched]:
    """Runs that are looked at as it is wished; the file is there at the end of the block.

    Raises InputError, OSError.
    """
    search: Search | None = None
    glance: Glance | None = None
    if wishes.check_finite or wishes.check_range is not None:
        from irrun.tools.watch.ranges import EVERYTHING, RANGES, Glance, Search

        range = EVERYTHING if wishes.check_range is None else RANGES[wishes.check_range]
        search, glance = Search(range), Glance(range)
        search.look_at_inputs(executor.model, executor.named(inputs))
    if wishes.dump is None:
        yield Watched(executor, executor.session(), None, search, glance)
        return
    from irrun.tools.watch.dump import Recording
    from irrun.tools.watch.files import writing
    from irrun.tools.watch.origin import described

    selection = wishes.selection(executor)
    with writing(wishes.dump, described(executor, executor.named(inputs), wishes.values)) as writer:
        written = _Counting(writer)
        recording = Recording(selection, wishes.values, written, executor.max_memory)
        yield Watched(executor, executor.session(), recording, search, glance)
    from irrun.check.render.text import one_line

    what = "values" if wishes.values else "statistics"
    click.echo(one_line(f"{wishes.dump}: {what} of {counted(written.count, 'tensor')}"), err=True)


class _Counting:
    def __init__(self, writer: Writer) -> None:
        self._writer, self.count = writer, 0

    def __call__(self, entry: Any, array: Any) -> None:
        self.count += 1
        self._writer.add(entry, array)


def _listed(layers: list[Any]) -> str:
    more = f" and {len(layers) - MAX_NAMED} more" if len(layers) > MAX_NAMED else ""
    return f"{', '.join(str(layer) for layer in layers[:MAX_NAMED])}{more}"
