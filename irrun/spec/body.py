"""A graph inside an op, as If, Loop and TensorIterator see it: something to infer and to call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from irrun.records import NamedTuple, dataclass

if TYPE_CHECKING:
    from irrun.spec.dims import Shape
    from irrun.spec.op import Array, Tensor


class BodyInput(NamedTuple):
    """Where parameter number `parameter` of the body gets its value: from input number `external` of the op.

    `external` is -1 where nothing is connected. With an `axis` each iteration gets its slice, `part_size` elements
    long. `purpose` is `current_iteration` for the parameter that counts, else empty. `origin` is what says so, for
    messages.
    """

    external: int
    parameter: int
    axis: int | None = None
    start: int = 0
    end: int = -1
    stride: int = 1
    part_size: int = 1
    purpose: str = ""
    origin: Any = None


class BodyOutput(NamedTuple):
    """Where output number `external` of the op comes from: from result number `result` of the body.

    `external` is -1 where the result is only used inside. With an `axis` the results of all iterations are
    concatenated along it, else the last one counts. `purpose` is `execution_condition` for the result that decides
    whether to go on, else empty. `origin` is as in `BodyInput`.
    """

    external: int
    result: int
    axis: int | None = None
    start: int = 0
    end: int = -1
    stride: int = 1
    part_size: int = 1
    purpose: str = ""
    origin: Any = None


@dataclass(frozen=True, slots=True)
class Body:
    """The body of an op. `back_edges` are pairs (result, parameter), each result the parameter's next value.

    `declared` is what the parameters declare. `infer` maps what is known of the parameters to what is known of the
    results; `run` maps arrays to arrays, of which those that are `passing` may be written to by the call after the
    next. A kernel infers only what a body that does not run would give. Of one that is not `complete` some outputs
    cannot be read, which is reported.
    """

    inputs: tuple[BodyInput, ...]
    outputs: tuple[BodyOutput, ...]
    back_edges: tuple[tuple[int, int], ...]
    parameters: int
    results: int
    infer: Callable[[Sequence[Tensor]], list[Tensor]] | None = None
    run: Callable[[Sequence[Array]], list[Any]] | None = None
    declared: tuple[Tensor, ...] = ()
    complete: bool = True

    @property
    def passing(self) -> frozenset[int]:
        """The results of which only the latest ones are read, by the next iteration or in the end: none is joined."""
        joined = {port.result for port in self.outputs if port.axis is not None}
        return frozenset({*range(self.results)} - joined)


class Misfit(NamedTuple):
    """The `attribute` of an input of a loop that is to blame, empty where one lacks; what it does, and what to do."""

    attribute: str
    message: str
    help: str


def misfit(axis: int | None, part_size: int, declared: Shape | None, whole: Shape | None) -> Misfit | None:
    """Whether slices of a tensor of shape `whole`, or all of it, are why a parameter gets another shape than declared.

    None where another cause is likelier: where no change of one attribute makes it fit.
    """
    if declared is None or whole is None or len(declared) != len(whole):
        return None
    off = {n for n, (size, given) in enumerate(zip(declared, whole, strict=True)) if (size == given) is False}
    if axis is None:
        return _unsliced(min(off), declared, whole) if len(off) == 1 else None
    if not -len(whole) <= axis < len(whole):
        return None
    axis %= len(whole)
    if off <= {axis}:
        fits = (declared[axis] == part_size) is not False
        message = f"its slices have {part_size} elements along axis {axis}"
        return None if fits else Misfit("part_size", message, f'write part_size="{declared[axis]}"')
    along = min(off)
    if len(off) == 1 and (declared[along] == part_size) is True:
        return Misfit("axis", f"its slices are along axis {axis}", f'write axis="{along}"')
    return None


def _unsliced(axis: int, declared: Shape, whole: Shape) -> Misfit | None:
    part, size = declared[axis], whole[axis]
    if isinstance(part, int) and isinstance(size, int) and 0 < part < size and size % part == 0:
        slices = f'axis="{axis}" start="0" end="-1" stride="{part}" part_size="{part}"'
        return Misfit("", f"without `axis` each iteration gets all {size} elements of axis {axis}", f"write {slices}")
    return None
