"""Tensors of one graph of a run, as they were: those that layers make, and those that they read."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from irrun.diagnostics import ExecutionError, InputError, counted
from irrun.files import Unwritten, temporary
from irrun.ir.graph import Layer, Value
from irrun.run.executor import GraphExecutor
from irrun.run.session import Event
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array
from irrun.tools.extract.places import Home

LARGE = 1 << 20
"""Bytes from which on an array is kept in a file."""


class Recording:
    """The tensors of a graph in one run, by value; large ones lie in files that go with the recording."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="irrun-")
        self._arrays: dict[Value, Array] = {}

    def __contains__(self, value: Value) -> bool:
        return value in self._arrays

    def __getitem__(self, value: Value) -> Array:
        return self._arrays[value]

    def close(self) -> None:
        self._arrays.clear()
        self._folder.cleanup()

    def add(self, value: Value, array: Array, type: str) -> None:
        """Keep a tensor in its element type, which runs may compute in another one."""
        wanted = array.dtype if type in ("dynamic", "string") else numpy_dtype(type)
        with np.errstate(all="ignore"):
            kept = np.array(array, wanted, order="C")
        if kept.nbytes > LARGE and kept.dtype.kind != "U":
            path = Path(self._folder.name) / f"{len(self._arrays)}.raw"
            with temporary():
                path.write_bytes(kept.reshape(-1).view(np.uint8).data)  # `tofile` does not say why it cannot
            kept = np.memmap(path, kept.dtype, "r", shape=kept.shape)
        self._arrays[value] = kept


def record(
    executor: GraphExecutor,
    inputs: Mapping[str, Array],
    home: Home,
    wanted: Callable[[Value], bool] = lambda _: True,
    *,
    whole: bool = True,
) -> Recording:
    """The tensors of `home`, a graph of the model of `executor`, for which `wanted` says so, in a run on `inputs`.

    Where the run need not be `whole`, a layer that fails ends the recording, else that raises ExecutionError. Raises
    InputError where inputs do not fit, or the run does not come by `home`.
    """
    recording = Recording()
    types = executor.report.inference
    assert types is not None
    arrays = executor.named(inputs)
    tour = _Tour(home)
    if any(iteration < 0 for _, _, iteration in home.owners):
        executor.session().run(arrays, observer=tour)
        home = tour.counted()
    wished = [iteration for _, _, iteration in home.owners]
    came = False

    def keep(value: Value, array: Array) -> None:
        if value not in recording and wanted(value):
            recording.add(value, array, types.tensor(value).type)

    def observer(event: Event) -> None:
        nonlocal came
        tour(event)
        if event.layer.graph is not home.graph or _iterations(home, event.path) != wished:
            return
        came = True
        keep(event.layer.outputs[event.port], event.array)
        sources = event.layer.inputs
        if any(value is not None and value not in recording and wanted(value) for value in sources):
            for value, array in zip(sources, event.calculation.inputs, strict=False):
                if value is not None and array is not None:
                    keep(value, array)

    if not home.owners:
        for layer, array in zip(executor.model.graph.parameters, arrays.values(), strict=True):
            keep(layer.outputs[0], array)
    try:
        executor.session().run(arrays, observer=observer)
    except ExecutionError as error:
        if isinstance(error.__cause__, Unwritten):  # which no layer is to blame for
            raise error.__cause__ from None
        if whole:
            raise
    open = False
    for layer in home.graph.layers:
        if layer.type != "Const":
            for value in layer.outputs:  # which no run computes where it is known before, such as a count of iterations
                tensor = types.tensor(value)
                if tensor.known and tensor.value is not None:
                    keep(value, tensor.value)
                else:
                    open = True
    if home.owners and not came:
        recording.close()
        instead = tour.instead() if open else ": all of it is known before, so no run computes any of it"
        raise InputError(f"the run on these inputs does not come by {home}{instead}")
    return recording


class _Tour:
    """An observer that takes down by which iterations of a body, and of those that it lies in, a run comes."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._seen: set[tuple[int, ...]] = set()
        self._ran: dict[tuple[Layer, str], int] = {}
        self._owners = {layer for layer, _, _ in home.owners}

    def __call__(self, event: Event) -> None:
        graph = event.layer.graph
        if graph is self._home.graph and (numbers := _iterations(self._home, event.path)) is not None:
            self._seen.add(tuple(numbers))
        if graph.owner in self._owners:
            tag = next(tag for tag, body in graph.owner.bodies.items() if body.graph is graph)
            number = event.path[-1][2] if event.path else 0
            self._ran[graph.owner, tag] = max(number, self._ran.get((graph.owner, tag), 0))

    def counted(self) -> Home:
        """The place with iterations that are counted from the last one, below 0, counted from the first one."""
        owners: list[tuple[Layer, str, int]] = []
        for place, (layer, tag, number) in enumerate(self._home.owners):
            before = tuple(other for _, _, other in owners)
            count = 1 + max((seen[place] for seen in self._seen if seen[:place] == before), default=-1)
            owners.append((layer, tag, number + count if -count <= number < 0 else number))
        return Home(self._home.graph, tuple(owners))

    def instead(self) -> str:
        """What the run comes by in the place of the body."""
        for layer, tag, number in self._home.owners:
            ran = {other: count for (owner, other), count in self._ran.items() if owner is layer}
            if tag in ran and 0 <= number <= ran[tag]:
                continue
            if tag in ran:
                return f": it runs {tag} of `{layer.name}` {counted(ran[tag] + 1, 'time')}, [0] to [{ran[tag]}]"
            if ran:
                return f": it takes {' and '.join(ran)} of `{layer.name}`; give inputs that take {tag}"
        return ": give inputs that do"


def _iterations(home: Home, path: Sequence[tuple[str, str, int]]) -> list[int] | None:
    """The iteration of each owner in a path of a run; 0 of branches that stand in the place of their layer, which are
    not in it. None for a path that leads further."""
    left, found = list(path), []
    for layer, tag, _ in home.owners:
        found.append(left.pop(0)[2] if left and left[0][:2] == (layer.name, tag) else 0)
    return None if left else found
