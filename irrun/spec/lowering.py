"""What older op does the same as an op, and under which conditions: said beside the op, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from irrun.records import NamedTuple

if TYPE_CHECKING:
    from irrun.spec.op import Tensor

Arrange = Callable[[Mapping[str, Any], Sequence["Tensor | None"]], "list[int | np.ndarray[Any, Any]] | None"]
"""The inputs of the older op: numbers of those of the newer one, and constants; None where that cannot be told."""

Make = Callable[..., Any]
"""`make("MatMul-1", x, y, transpose_b=True)`: the output of a new layer. What it reads are such outputs, arrays, which
become constants, and names of inputs of the newer op."""

Decompose = Callable[[Make, Mapping[str, "Tensor | None"], Mapping[str, Any]], Any]
"""Makes older ops that do the same together, of what is known of the inputs by name, and the attributes; gives what
stands for the output. Raises ValueError, with the reason, before it makes anything."""


class Lowering(NamedTuple):
    """The op `older`, by its name, does the same where the conditions hold; None: so does the first input itself.

    Attributes in `only` must have one of these values, those that the older op does not have are dropped. Inputs in
    `natural` must be known to be 0 or more. The attribute `upwards` counts axes of the first input from the end where
    it is negative, which the older one does not. Values that are `reworded` the older op lacks; others mean the same as
    long as sizes are the same. Outputs that the older op lacks must not be read, and its own rule must hold and give
    the same types and shapes.
    """

    older: str | None
    only: Mapping[str, tuple[Any, ...]]
    natural: tuple[str, ...] = ()
    upwards: str = ""
    reworded: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    arrange: Arrange | None = None
