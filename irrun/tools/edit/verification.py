"""Whether an edited model computes what the model computed before, on inputs of that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce

import numpy as np

from irrun.diagnostics import InputError
from irrun.ir.graph import Model
from irrun.ir.reader import read_model
from irrun.ir.signature import TensorInfo
from irrun.ir.sources import Source
from irrun.records import NamedTuple, dataclass
from irrun.run.executor import GraphExecutor
from irrun.spec.op import Array
from irrun.tools.edit.history import History, Origin
from irrun.tools.edit.preprocessing import Preprocessing


@dataclass(frozen=True, slots=True)
class Verified:
    """A line for each output of the edited model, and whether all that were tensors before agree."""

    ok: bool
    lines: tuple[str, ...]


def verify(
    before: Source,
    weights: Source | None,
    after: Model,
    inputs: Mapping[str, Array],
    tolerance: float,
    history: History,
) -> Verified:
    """Run both models on inputs of the one before, and compare each output of the edited one with the tensor that it
    was. Where it begins behind tensors, it gets what these were; where data are preprocessed now, data that become the
    inputs. What was appended runs on what it reads, and else on inputs by their new names.

    Raises IRError where one cannot be run, InputError where the arrays do not fit one, ValueError where no output was
    a tensor before.
    """
    outputs = [history.results.get(result) for result in after.graph.results]
    # what is computed before a model, or apart, has the types that it declares: so both see the same numbers
    precision = None if history.whole(after) else "declared"
    new = GraphExecutor(after, once=True, precision=precision)
    if not any(outputs):
        listed = ", ".join(info.name for info in new.outputs)
        raise ValueError(f"no output of the edited model was a tensor before: {listed}")
    entries = [
        _Entry(
            info,
            history.values.get(layer.outputs[0]),
            [step for step in history.preprocessings if step.parameter is layer],
        )
        for info, layer in zip(new.inputs, after.graph.parameters, strict=True)
    ]
    wanted = [*outputs, *(entry.origin for entry in entries), *history.links.values()]
    models = [read_model(before, weights), *(read_model(other.path) for other in history.appended)]
    parts = [_Part(model, number, wanted, precision) for number, model in enumerate(models)]
    found = _given(parts[0], entries, inputs)
    data = {entry.info.name: entry.data(found) for entry in entries if entry.origin in found}
    for part in parts:
        part.run(found, history.links)
    data |= {entry.info.name: entry.data(found) for entry in entries if entry.info.name not in data and entry.origin}
    with _told_of("after"):
        data = new.named(data)
    lines, good = [], True
    for (name, actual), origin in zip(new.run(data).items(), outputs, strict=True):
        agree, line = True, "not compared, as it was no tensor before"
        if origin is not None:
            agree, line = _compared(found[origin], actual, tolerance)
        good &= agree
        lines.append(f"{name}: {line}")
    return Verified(good, tuple(lines))


class _Entry(NamedTuple):
    """An input of the edited model, what it was before, and what is done with its data now."""

    info: TensorInfo
    origin: Origin | None
    chain: Sequence[Preprocessing]

    def data(self, found: dict[Origin, Array]) -> Array:
        """The data for it; from now on what they become is what was there before."""
        assert self.origin is not None
        data = reduce(lambda array, step: step.data_for(array), self.chain, found[self.origin])
        if self.chain:
            found[self.origin] = reduce(lambda array, step: step(array), reversed(self.chain), data)
        return data


class _Part:
    """One of the models before, whose outputs are the `wanted` tensors of it."""

    def __init__(self, model: Model, number: int, wanted: Sequence[Origin | None], precision: str | None) -> None:
        layers = list(model.graph.layers)
        self.inputs = [Origin(number, place, 0) for place, layer in enumerate(layers) if layer.type == "Parameter"]
        self.wanted = [origin for origin in dict.fromkeys(wanted) if origin is not None and origin.model == number]
        for result in model.graph.results if self.wanted else ():
            model.remove(result)
        for origin in self.wanted:
            model.add_result(layers[origin.layer].outputs[origin.port])
        self.executor = GraphExecutor(model, once=True, precision=precision)

    def run(self, found: dict[Origin, Array], links: Mapping[Origin, Origin]) -> None:
        """Add to `found` what its tensors are."""
        if not self.wanted:
            return
        infos = zip(self.executor.inputs, self.inputs, strict=True)
        places = {info.name: links.get(place, place) for info, place in infos}
        results = self.executor.run({name: found[place] for name, place in places.items() if place in found})
        found |= zip(self.wanted, results.values(), strict=True)


def _given(part: _Part, entries: Sequence[_Entry], inputs: Mapping[str, Array]) -> dict[Origin, Array]:
    """The arrays of the inputs of the model before, and of those of appended ones that read nothing."""
    apart = {entry.info.name: entry.origin for entry in entries if entry.origin is not None and entry.origin.model}
    with _told_of("before"):
        own = part.executor.named({name: array for name, array in inputs.items() if name not in apart})
    missing = [f"the model after the edit: no array for input `{name}`" for name in apart if name not in inputs]
    if missing:
        raise InputError(*missing)
    found = dict(zip(part.inputs, own.values(), strict=True))
    return found | {origin: inputs[name] for name, origin in apart.items()}


@contextmanager
def _told_of(when: str) -> Iterator[None]:
    """Say which of the two models does not take the arrays."""
    try:
        yield
    except InputError as error:
        raise InputError(*(f"the model {when} the edit: {problem}" for problem in error.problems)) from None


def _compared(expected: Array, actual: Array, tolerance: float) -> tuple[bool, str]:
    if expected.shape != actual.shape:
        return False, f"the shape was {list(expected.shape)} and is {list(actual.shape)}"
    if expected.dtype.kind in "USb" or expected.dtype.kind in "iu":
        different = int(np.count_nonzero(expected != actual))
        return not different, f"{different} of {expected.size} elements differ" if different else "the same"
    one, two = np.asarray(expected, np.float64), np.asarray(actual, np.float64)
    same = (one == two) | (np.isnan(one) & np.isnan(two))
    if same.all():
        return True, "the same"
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.abs(one - two)[~same]
    finite = np.abs(one[np.isfinite(one)])
    scale = float(finite.max(initial=0.0)) or 1.0
    worst = float(errors.max()) / scale if np.isfinite(errors).all() else float("inf")
    return worst <= tolerance, f"differs by {worst:.2g} of its largest number"
