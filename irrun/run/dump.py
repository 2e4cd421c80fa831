"""Dumps: the tensors of a run that somebody wants to look at, kept by name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from irrun.run.arrays import write_npz
from irrun.run.session import Event
from irrun.spec.op import Array


class Dump(Mapping[str, Array]):
    """An observer that keeps tensors of a run by where they were made: `executor.run(x, observer=dump)`.

    A key is the name of the layer and the number of its output, behind the bodies and iterations that it was made in:
    `conv1:0`, `Loop_12/body[3]/MatMul_4:0`. `layers` are patterns for names of layers (`encoder.*`), `types` types of
    ops (`MatMul`); without them every tensor is kept. A later run takes the place of what an earlier one has made.

    >>> import irrun
    >>> dump = irrun.Dump(types=["SoftMax"])
    >>> executor = irrun.GraphExecutor("samples/cnn/model.xml")
    >>> results = executor.run(executor.random_inputs(7), observer=dump)
    >>> [(name, array.shape) for name, array in dump.items()]
    [('Softmax_62:0', (1, 10))]
    """

    def __init__(self, layers: Sequence[str] | str = (), types: Sequence[str] | str = ()) -> None:
        self._layers, self._types = ([given] if isinstance(given, str) else given for given in (layers, types))
        self._arrays: dict[str, Array] = {}

    def __call__(self, event: Event) -> None:
        layer = event.layer
        if self._types and layer.type not in self._types:
            return
        if self._layers and not any(fnmatchcase(layer.name, pattern) for pattern in self._layers):
            return
        self._arrays[event.name] = event.array.copy()

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def clear(self) -> None:
        """Forget all tensors."""
        self._arrays.clear()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tensors to an .npz file, whole or not at all. Raises OSError."""
        write_npz(Path(path), self._arrays)
