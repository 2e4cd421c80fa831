"""Another IR as the other side, which irrun runs: what it computes at the tensors that are ours in it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from irrun.diagnostics import IRError, clipped
from irrun.ir.graph import Layer, Model, Value
from irrun.ir.reader import read_model
from irrun.ir.signature import names_of, names_of_inputs, names_of_results
from irrun.run.keys import unique
from irrun.run.session import Event
from irrun.spec.op import Array
from irrun.tools.compare.sides.alignment import Alignment, Pair, number_of
from irrun.tools.compare.sides.changes import changes_of
from irrun.tools.compare.sides.computing import Computing
from irrun.tools.compare.sides.constants import ConstantDifference, constant_differences, is_constant_in
from irrun.tools.compare.sides.contract import Change, Observation, Options, Runtime, SideFailed, Steps
from irrun.tools.compare.sides.matching import fitted, matched
from irrun.tools.compare.sides.tensors import bound, declared, key_of, keys_of_results, tensors_of, wanted

NO_PARTNER = "nothing in the other model is known to be this tensor"


class IrSide:
    """Another model, run by irrun: the inputs and outputs that share a name with ours are ours, else those in their
    place. `pairs` says which tensor is which, and how that is known.

    Raises ValueError where there is no such file, SideFailed where it is no model that can be run.
    """

    kind = "model"

    def __init__(self, path: Path, model: Model, options: Options, precise: str | None = None) -> None:
        self.name = clipped(str(path), 200) + (" at full precision" if precise else "")
        self.untapped: dict[str, str] = {}
        self._ours, self._options, self._path = model, options, path
        try:
            self.model = read_model(path)
        except IRError as error:
            if not path.exists():
                raise ValueError(f"there is no file {path}") from None
            raise SideFailed.of_model(self.name, "read", error) from None
        self._precision = precise or options.precision or "f32"
        self._computing = Computing(self.name, self.model, options.engine, self._precision, options.threads)
        self._alignment = Alignment(model.graph, self.model.graph)
        self._tried = False
        self._changes: Mapping[Layer, Sequence[Change]] | None = None
        self._inside: dict[Value, Inner] | None = None
        self._tensors = tensors_of(model.graph)
        self._inputs = _inverse(
            matched(names_of_inputs(self.model.graph), names_of_inputs(model.graph)),
            self.model.graph.parameters,
            self.name,
        )
        self._outputs = matched(names_of_results(model.graph), names_of_results(self.model.graph))
        if not any(number is not None for number in self._outputs):
            raise ValueError(f"{self.name} has no output that the model has, by name, and not as many of them")

    @property
    def pairs(self) -> Mapping[str, Pair]:
        """The tensor of the other model that each of ours is, by its key."""
        return self._alignment.pairs

    def constants(self) -> list[ConstantDifference]:
        """The constants of layers that are the same in both models, but hold something else."""
        return constant_differences(self._ours, self.model, self._alignment.all)

    def changes(self) -> Mapping[Layer, Sequence[Change]]:
        """What the other model has otherwise, by the layers of ours that compute with it."""
        if self._changes is None:
            self._changes = changes_of(self._ours, self.model)
        return self._changes

    @property
    def precision(self) -> str:
        return self._precision if self._precision in ("f16", "bf16", "f64") else "f32"

    @property
    def rounds_alike(self) -> bool:
        """Where nothing is quantized otherwise."""
        changes = (change for listed in self.changes().values() for change in listed)
        computed_alike = self._options.engine == "reference" and self.precision == "f32"
        return computed_alike and not any(change.quantizes for change in changes)

    @property
    def steady(self) -> bool:
        """Unless there are random numbers: other layers that are not pure keep a state, which begins anew."""
        inference = self._computing.executor.report.inference
        nodes = () if inference is None else inference.nodes.values()
        return all(node.op.pure or not node.op.inputs or "state" in node.op.context for node in nodes)

    def outputs(self, steps: Steps) -> list[Mapping[str, Array]]:
        return [self._named(list(results.values())) for results in self._computing.outputs(self._given(steps))]

    def weights(self, steps: Steps, keys: Collection[str]) -> Mapping[str, Mapping[int, Array]]:
        """What the layers of these tensors read of the other model's constants, by the number of the input."""
        found: dict[str, dict[int, Array]] = {}
        name = self._keys()

        def keep(event: Event) -> None:
            key = name(event)
            if key is not None and key in keys and key not in found:
                values, inputs = event.layer.inputs, event.calculation.inputs
                read = [n for n, v in enumerate(values) if v is not None and is_constant_in(v, event.path)]
                found[key] = {n: array.copy() for n in read if n < len(inputs) and (array := inputs[n]) is not None}

        self._computing.watch(self._given(steps), keep)
        return found

    def observe(self, steps: Steps, keys: Collection[str] | None = None) -> list[Observation]:
        inside = None if keys is None else {key for key in keys if key not in self._tensors}
        values = wanted(self._tensors, None if inside is None else set(keys or ()) - inside)
        self._align(steps)
        there, pairs = dict[Value, str](), self.pairs

        def chosen(key: str, event: Event) -> bool:
            return not event.path or inside is None or key in inside

        for key in values:
            if key in pairs:
                there[pairs[key].theirs] = key
            else:
                self.untapped[key] = NO_PARTNER
        name = self._keys(there)
        made = self._computing.observe(
            self._given(steps), lambda event: key if (key := name(event)) and chosen(key, event) else None
        )
        return [Observation(self._named(list(step.results.values())), step.tensors, step.seconds) for step in made]

    def cut(self, steps: Steps, keys: Collection[str]) -> list[Mapping[str, Array]]:
        values = wanted(self._tensors, [key for key in keys if key in self._tensors])
        names, pairs = dict[str, str](), self.pairs
        for key in values:
            there = pairs.get(key)
            if there is None:
                self.untapped[key] = NO_PARTNER
            else:
                names[key] = key_of(there.theirs)
        return self._computing.cut(self._given(steps), names)

    def runtime(self) -> Mapping[str, Runtime]:
        """What the last `outputs` showed of the layers that are aligned; nothing before."""
        owners = {pair.theirs.layer.name: pair.ours.layer.name for pair in self.pairs.values()}
        found = {}
        for name, made in self._computing.runtime.items():
            if name in owners:
                fused = tuple(owners[other] for other in made.fused if other in owners)
                found[owners[name]] = Runtime(made.precision, made.primitive, fused)
        return found

    def precise(self) -> IrSide | None:
        if self._precision in ("declared", "f32", "f64"):
            return None
        return IrSide(self._path, self._ours, self._options, "f32")

    def close(self) -> None:
        self._computing.close()

    def _given(self, steps: Steps) -> list[list[Array]]:
        """Our inputs as those of the other model. Raises InputError."""
        found = []
        for arrays in bound(self._ours, steps):
            pairs = zip(self._inputs, self.model.graph.parameters, strict=True)
            found.append([fitted(arrays[number], declared(p).type, names_of(p)[0]) for number, p in pairs])
        return found

    def _named(self, results: Sequence[Array]) -> Mapping[str, Array]:
        keys = keys_of_results(self._ours)
        return {key: results[n] for key, n in zip(keys, self._outputs, strict=True) if n is not None}

    def _keys(self, values: Mapping[Value, str] | None = None) -> Callable[[Event], str | None]:
        """Our keys of the other model's tensors, of `values` or all, and of those in the bodies of pairs."""
        known = {pair.theirs: key for key, pair in self.pairs.items()} if values is None else values
        outer = by(known)
        if self._inside is None:
            self._inside = dict(_inner([(p.ours.layer, p.theirs.layer) for p in self._alignment.all], ()))
        inner = {(value.layer, value.index): entry for value, entry in self._inside.items()}

        def name(event: Event) -> str | None:
            if not event.path:
                return outer(event)
            entry = inner.get((event.layer, event.port))
            if entry is None:
                return None
            owners, key = entry
            steps = zip(owners, event.path, strict=True)
            return "".join(f"{owner}/{body}[{number}]/" for (owner, body), (_, _, number) in steps) + key

        return name

    def _align(self, steps: Steps) -> None:
        """Look for what names and structure tell nothing of in what both models compute of the first step."""
        mine, other = self._alignment.unaligned()
        if self._tried or not mine or not other or not steps:
            return
        self._tried = True
        theirs = self._computing.observe(self._given(steps[:1]), by({value: number_of(value) for value in other}))
        own = Computing("our model", self._ours, self._options.engine, self._precision, self._options.threads)
        try:
            ours = own.observe(bound(self._ours, steps[:1]), by({value: number_of(value) for value in mine}))
            self._alignment.by_value(ours[0].tensors, theirs[0].tensors)
        finally:
            own.close()


Inner = tuple[tuple[tuple[str, str], ...], str]
"""Our layers with bodies around a tensor, each with the body that it is in, and its key there."""


def _inner(pairs: Sequence[tuple[Layer, Layer]], owners: tuple[tuple[str, str], ...]) -> Iterator[tuple[Value, Inner]]:
    """The tensors of bodies of the other model that are ours."""
    for ours, theirs in dict.fromkeys(pairs):
        for body in ours.bodies.keys() & theirs.bodies.keys():
            alignment = Alignment(ours.bodies[body].graph, theirs.bodies[body].graph)
            path = (*owners, (unique(ours), body))
            yield from ((pair.theirs, (path, key)) for key, pair in alignment.pairs.items())
            yield from _inner([(pair.ours.layer, pair.theirs.layer) for pair in alignment.all], path)


def by(keys: Mapping[Value, str]) -> Callable[[Event], str | None]:
    """The keys of the events that are these tensors."""
    known = {(value.layer, value.index): key for value, key in keys.items()}
    return lambda event: known.get((event.layer, event.port))


def _inverse(numbers: Sequence[int | None], parameters: Sequence[Layer], name: str) -> list[int]:
    """The number of our input for each one of the other model. Raises ValueError where one has none."""
    found = []
    for number, layer in zip(numbers, parameters, strict=True):
        if number is None:
            raise ValueError(f"{name} has an input `{clipped(names_of(layer)[0], 200)}` that our model does not have")
        found.append(number)
    return found
