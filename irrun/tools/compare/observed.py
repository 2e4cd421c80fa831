"""What a comparison has seen of one tensor, and what it knows besides: all that causes are decided on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from irrun.ir.graph import Layer
from irrun.records import dataclass
from irrun.spec.op import Array, Op
from irrun.tools.compare.sides.contract import Change
from irrun.tools.compare.tolerances import Tolerance

Compute = Callable[[Sequence[Array | None]], Sequence[Array]]
"""The layer's kernel: all outputs for arrays of its inputs. Raises Violation or IRError where these break a rule, and
OutOfTime where the search for causes has taken too long."""

Deviations = Callable[[Layer | None, Sequence[Array | None]], Sequence[tuple[str, str, str]]]
"""What is known of the other side where it computes a layer on these inputs: what it does, because of what, and on
which condition, if on one that nothing here can decide."""


@dataclass(frozen=True, slots=True)
class Observed:
    """An output of a layer in one step and iteration.

    `actual` is the other side's tensor, `expected` what our kernel makes of the other side's `inputs` (the difference
    is the layer's own error), `reference` our own run from the model's inputs on, which had `reference_inputs`.
    Constants are among the inputs, None is one that is not connected.

    `source` is "input" for what the model is given, and "constant" for a weight: these have no inputs, and `expected`
    is what the model says. `precision` is that which the other side says that it computed in, of all layers that are
    fused here the least one; `terms` as of `tolerances.terms`, None to have them counted; `step` the distance of values
    on a grid, None where they are on none. With a `tolerance` that one counts instead of the one for the precision.
    """

    op: Op | None
    layer: Layer | None
    port: int
    actual: Array
    expected: Array
    reference: Array
    inputs: Sequence[Array | None] = ()
    reference_inputs: Sequence[Array | None] = ()
    precision: str = "f32"
    attrs: Mapping[str, Any] = field(default_factory=dict)
    source: Literal["layer", "input", "constant"] = "layer"
    constants: frozenset[int] = frozenset()
    terms: float | None = None
    step: float | None = None
    tolerance: Tolerance | None = None


@dataclass(frozen=True, slots=True)
class Earlier:
    """The same tensor on the other side at another time, such as "step 2"; `inputs` are its layer's then, if known.

    `right` says whether it was as expected then.
    """

    label: str
    actual: Array
    inputs: Sequence[Array | None] | None = None
    right: bool | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """What is known besides; None is what is not.

    `compute` is the layer's kernel, `compute64` the same in f64 and in i64, and `compute_as` that on its own inputs
    with other values of attributes. `repeated` is the other side's tensor in a second, equal run. `earlier` are those
    of other steps and iterations. `constants` are the other side's own constants, by the number of the input, and
    `changes` what another model has otherwise at the layer. `tapped` is the tensor where all tensors are outputs, if
    `actual` is of a run where they are not; `untapped_right` says of one where they are that the model's outputs are
    right as long as they are not. `pass_name` is the first transformation whose graph gives another value.
    """

    compute: Compute | None = None
    compute64: Compute | None = None
    compute_as: Callable[[Mapping[str, Any]], Sequence[Array]] | None = None
    repeated: Array | None = None
    earlier: Sequence[Earlier] = ()
    constants: Mapping[int, Array] = field(default_factory=dict)
    changes: Sequence[Change] = ()
    deviations: Deviations | None = None
    tapped: Array | None = None
    untapped_right: bool | None = None
    pass_name: str | None = None
