"""Fewer layers: parts of a graph, with what they have read in one run of the whole as their inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress

from irrun.check.infer import infer
from irrun.diagnostics import ExecutionError, IRError
from irrun.ir.graph import Layer, Model, Value, leading_to
from irrun.ir.structure import topological_order
from irrun.records import dataclass
from irrun.run.executor import GraphExecutor
from irrun.run.session import Event
from irrun.spec.op import Array
from irrun.tools.extract.cutting import cut
from irrun.tools.extract.extraction import part_inputs, recorded
from irrun.tools.extract.places import Home
from irrun.tools.extract.recording import Recording, record
from irrun.tools.extract.regions import Region, closed, constant_layers, stateful
from irrun.tools.reduce.outcome import Outcome
from irrun.tools.reduce.trials import QUIET, Trials


@dataclass(frozen=True, slots=True)
class Subject:
    """A model that fails on its inputs; None where it fails without being run."""

    model: Model
    inputs: Mapping[str, Array] | None


def fewer_layers(subject: Subject, trials: Trials, hints: Sequence[str] = ()) -> Subject:
    """The subject with as few layers, and then outputs, as still fail alike. Raises Exhausted."""
    with closing(_Scene(subject)) as scene:
        return _Search(scene, Home(scene.model.graph), trials, subject).run(hints)


def inside_bodies(subject: Subject, trials: Trials) -> Subject | None:
    """One iteration of a body of the subject as a model that still fails alike, if there is one. Raises Exhausted."""
    with closing(_Scene(subject)) as scene:
        for layer in scene.model.graph.layers:
            for tag, body in layer.bodies.items():
                for iteration in scene.iterations(layer, tag):
                    home = Home(body.graph, ((layer, tag, iteration),))
                    search = _Search(scene, home, trials, subject)
                    made = search.part(search.layers, None, f"{home}", inner=layer.type)
                    if made is not None:
                        return made
    return None


class _Scene:
    """A subject, and what is known of its tensors: what they are in a run, or by inference where it is not run."""

    def __init__(self, subject: Subject) -> None:
        self._inputs = subject.inputs
        self._recording: Recording | None = None
        self._executor: GraphExecutor | None = None
        if subject.inputs is None:
            self.model, self._inference = subject.model, infer(subject.model.graph, subject.model.weights)
            return
        self._executor = GraphExecutor(subject.model, engine="reference", precision="auto")
        assert self._executor.report.inference is not None
        self.model, self._inference = self._executor.model, self._executor.report.inference

    def close(self) -> None:
        if self._recording is not None:
            self._recording.close()

    def enter(self, home: Home) -> None:
        """Record a graph of the run, in place of the one before."""
        if self._executor is not None and self._inputs is not None:
            self.close()
            self._recording = record(self._executor, self._inputs, home, whole=False)

    def part(self, region: Region) -> Subject:
        """A region as a model. Raises IRError and ValueError where it is none."""
        recording = self._recording
        if recording is None:
            return Subject(cut(self.model, region, self._inference.tensor, sound=False).model, None)
        made = cut(self.model, region, lambda value: recorded(recording, value, self._inference.tensor(value)))
        return Subject(made.model, part_inputs(made, recording))

    def iterations(self, layer: Layer, tag: str) -> list[int]:
        """The iterations of a body to try: the first one, the last one and some between."""
        if self._executor is None or self._inputs is None:
            return [0]
        seen: set[int] = set()
        graph = layer.bodies[tag].graph

        def observer(event: Event) -> None:
            if event.layer.graph is graph:
                seen.add(event.path[0][2] if event.path else 0)

        with suppress(ExecutionError):
            self._executor.session().run(dict(self._inputs), observer=observer)
        numbers = sorted(seen)
        picked = [0, len(numbers) - 1, len(numbers) // 2, 1]
        return list(dict.fromkeys(numbers[place] for place in picked if 0 <= place < len(numbers)))


class _Search:
    """Parts of one graph of a run, smaller and smaller."""

    def __init__(self, scene: _Scene, home: Home, trials: Trials, subject: Subject) -> None:
        self._scene, self._home, self._trials = scene, home, trials
        self._best = subject
        scene.enter(home)
        graph = home.graph
        living, constants = leading_to(graph.sinks), constant_layers(graph)
        self.layers = [
            layer
            for layer in topological_order(graph)
            if layer in living and layer not in constants and layer.type not in QUIET
        ]

    def run(self, hints: Sequence[str]) -> Subject:
        layers = self._hinted(hints)
        if len(layers) == len(self.layers) and any(map(stateful, layers)):
            plain = [layer for layer in layers if not stateful(layer)]
            layers = plain if self._holds(plain, "variables as inputs") else layers
        layers = self._without_ends(layers)
        layers = self._without_chunks(layers)
        self._fewer_outputs(layers)
        return self._best

    def part(
        self, layers: Sequence[Layer], ends: Sequence[Value] | None, step: str, inner: str | None = None
    ) -> Subject | None:
        """The part of these layers, if it fails alike; that of a body of an `inner` layer may name one inside it."""
        region = closed(self._home.graph, layers, ends)
        try:
            made = self._scene.part(region)
        except (IRError, ValueError):
            return None
        wanted = self._trials.wanted
        assert wanted is not None
        if self._trials.holds(made.model, made.inputs, step):
            return made
        found = self._trials.last
        if inner is not None and wanted.signature.get("op") == inner and "op" in found.signature:
            moved = Outcome(True, {**wanted.signature, "op": found.signature["op"]}, found.detail, found.hints)
            if self._trials.holds(made.model, made.inputs, step, moved):
                self._trials.wanted = moved
                return made
        return None

    def _holds(self, layers: Sequence[Layer], step: str, ends: Sequence[Value] | None = None) -> bool:
        if not layers:
            return False
        made = self.part(layers, ends, step)
        if made is not None:
            self._best = made
        return made is not None

    def _hinted(self, hints: Sequence[str]) -> list[Layer]:
        """The layer that the check itself has named, or some around it, where that is enough."""
        for number, layer in enumerate(self.layers):
            if layer.name in hints and len(self.layers) > 1:
                for width in (0, 2):
                    near = self.layers[max(0, number - width) : number + width + 1]
                    if len(near) < len(self.layers) and self._holds(near, f"near `{layer.name}`"):
                        return near
        return self.layers

    def _without_ends(self, layers: list[Layer]) -> list[Layer]:
        """Without the first and the last layers, as many as can be left out, by bisection."""
        begin, low, high = 0, 0, len(layers)
        while high - low > 1:
            middle = (low + high) // 2
            if self._holds(layers[middle:], "later layers"):
                low = begin = middle
            else:
                high = middle
        layers = layers[begin:]
        low, high = 0, len(layers)
        while high - low > 1:
            middle = (low + high) // 2
            if self._holds(layers[:middle], "earlier layers"):
                high = middle
            else:
                low = middle
        return layers[:high]

    def _without_chunks(self, layers: list[Layer]) -> list[Layer]:
        """Without chunks of layers, half of them first, then single ones."""
        size = len(layers) // 2
        while size:
            begin = 0
            while begin < len(layers):
                fewer = [*layers[:begin], *layers[begin + size :]]
                if self._holds(fewer, f"without {min(size, len(layers) - begin)}"):
                    layers = fewer
                else:
                    begin += size
            size //= 2
        return layers

    def _fewer_outputs(self, layers: list[Layer]) -> None:
        """With one output, if that is enough, else without each that can be left out."""
        ends = list(closed(self._home.graph, layers).ends)
        if len(ends) < 2:
            return
        for end in reversed(ends):
            if self._holds(layers, "one output", [end]):
                return
        for end in list(ends):
            fewer = [other for other in ends if other is not end]
            if self._holds(layers, "fewer outputs", fewer):
                ends = fewer
