"""Tensors of one graph of a run, as they were: those that layers make, and those that they read."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

import numpy as np

from irrun.diagnostics import ExecutionError, InputError
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
            kept.tofile(path)
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
    came = False

    def keep(value: Value, array: Array) -> None:
        if value not in recording and wanted(value):
            recording.add(value, array, types.tensor(value).type)

    def observer(event: Event) -> None:
        nonlocal came
        if event.layer.graph is not home.graph or not _within(home.owners, event.path):
            return
        came = True
        keep(event.layer.outputs[event.port], event.array)
        sources = event.layer.inputs
        if any(value is not None and value not in recording and wanted(value) for value in sources):
            for value, array in zip(sources, event.calculation.inputs, strict=False):
                if value is not None and array is not None:
                    keep(value, array)

    arrays = executor.named(inputs)
    if not home.owners:
        for layer, array in zip(executor.model.graph.parameters, arrays.values(), strict=True):
            keep(layer.outputs[0], array)
    with nullcontext() if whole else suppress(ExecutionError):
        executor.session().run(arrays, observer=observer)
    if home.owners and not came:
        recording.close()
        raise InputError(f"the run on these inputs does not come by {home}: give inputs that do, or another iteration")
    for layer in home.graph.layers:
        if layer.type != "Const":
            for value in layer.outputs:  # which no run computes where it is known before, such as a count of iterations
                tensor = types.tensor(value)
                if tensor.known and tensor.value is not None:
                    keep(value, tensor.value)
    return recording


def _within(owners: Sequence[tuple[Layer, str, int]], path: Sequence[tuple[str, str, int]]) -> bool:
    """Whether a path of a run is that of the owners; branches that stand in the place of their layer are not in it."""
    left = list(path)
    for layer, tag, iteration in owners:
        if left and left[0][:2] == (layer.name, tag):
            if left.pop(0)[2] != iteration:
                return False
        elif iteration:
            return False
    return not left
