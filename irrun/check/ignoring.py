"""Errors that a run may pass over: which ones, and ops that compute all the same what their kernels can.

A layer whose inputs are of types and shapes that its op refuses has all that a kernel needs; what it lacks is a result
that anybody has defined. Other errors leave no graph, no op or no weights to compute with, and indices, axes and sizes
that lead to what is not there leave nothing to compute.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from functools import wraps
from typing import Any

import numpy as np

from irrun.diagnostics import Diagnostic, IRError, Note
from irrun.interruption import hand_on
from irrun.ir.graph import Layer
from irrun.records import dataclass
from irrun.spec.body import Body
from irrun.spec.dtypes import ELEMENT_TYPES, element_type, numpy_dtype
from irrun.spec.op import FLOAT, INTEGER, PARTS, Array, Bound, Doubt, Inferred, Op, Tensor, Violation, results_of
from irrun.spec.patterns import shape_text

IGNORABLE = ("E303", "E304", "E305", "E401")
"""Types, sizes and ranks that an op does not take together, and constraints of its specification."""


def ignorable(codes: Iterable[str]) -> frozenset[str]:
    """The codes of errors among these, or that begin with one of these; warnings need not be ignored.

    Raises ValueError for what begins no code, and where a run cannot pass over such an error.
    """
    found: set[str] = set()
    for code in codes:
        from irrun.check.codes import CODES

        meant = [known for known in CODES if known.startswith(code)]
        if not meant or not code:
            raise ValueError(f"there is no code {code}")
        found.update(known for known in meant if known[0] not in "WI")
    wrong = sorted(found.difference(IGNORABLE))
    if wrong:
        left = f"{', '.join(IGNORABLE[:-1])} and {IGNORABLE[-1]}"
        raise ValueError(f"{wrong[0]} cannot be ignored: there would be nothing to compute with; only {left} can")
    return frozenset(found)


def as_ignored(diagnostic: Diagnostic) -> Diagnostic:
    """An error as the warning that a run passes over it."""
    return replace(diagnostic, message=f"ignored: {diagnostic.message}", ignored=True)


def can_go_on(op: Op, layer: Layer) -> bool:
    """Whether a layer can be computed though it breaks its rule: one with state or with bodies cannot."""
    return op.pure and not layer.bodies and bool(layer.outputs) and op.context <= {"types"}


def as_refused(diagnostic: Diagnostic, op: Op, layer: Layer) -> Diagnostic:
    """An error that was to be ignored, with why it is none that can be."""
    why = "what inputs hold leads to what is not there" if can_go_on(op, layer) else "the layer has a body or a state"
    return replace(diagnostic, notes=(*diagnostic.notes, Note(f"it cannot be ignored: {why}")))


def is_about_data(op: Op, inputs: Sequence[Tensor | None], attrs: Mapping[str, Any]) -> bool:
    """Whether an op that refuses inputs does so for what they hold: indices, axes or sizes of what is not there."""
    if all(tensor is None or tensor.value is None for tensor in inputs):
        return False
    hidden = [None if tensor is None else Tensor(tensor.type, tensor.shape) for tensor in inputs]
    try:
        Op.infer(op, hidden, attrs)
    except Violation:
        return False
    return True


def code_of(violation: Violation) -> str:
    return "E401" if violation.label.startswith("C") else violation.label


@dataclass(eq=False, repr=False)
class Unchecked(Op):
    """An op whose kernel computes also what its rule refuses, as far as it can, for one layer.

    `ignored` are the codes that are passed over; of those, no warning is given where they are `known` already.
    `results` is what is known of the outputs, which the kernel's are held to.
    """

    ignored: frozenset[str] = field(default=frozenset(), kw_only=True)
    known: bool = field(default=False, kw_only=True)
    results: Sequence[Tensor] = field(default=(), kw_only=True)

    def infer(
        self,
        inputs: Sequence[Tensor | None],
        attrs: Mapping[str, Any],
        bodies: Mapping[str, Body] | None = None,
        *,
        narrow: bool = True,
    ) -> Inferred:
        try:
            return super().infer(inputs, attrs, bodies, narrow=narrow)
        except Violation as violation:
            doubts = [Doubt(message) for message in self._passed_over(violation, inputs, attrs)]
            return Inferred([Tensor(tensor.type, None) for tensor in self.results], {}, False, doubts)

    def check(self, inputs: Sequence[Tensor | None], attrs: Mapping[str, Any], bound: Bound) -> Sequence[str]:
        try:
            return super().check(inputs, attrs, bound)
        except Violation as violation:
            return self._passed_over(violation, inputs, attrs)

    def _passed_over(
        self, violation: Violation, inputs: Sequence[Tensor | None], attrs: Mapping[str, Any]
    ) -> Sequence[str]:
        """The warnings of a broken rule. Raises it where it is not ignored."""
        code = code_of(violation)
        if code not in self.ignored or is_about_data(self, inputs, attrs):
            raise violation
        return () if self.known else (f"ignored {code}: {violation.message}",)


def unchecked(op: Op, ignored: frozenset[str], outputs: Sequence[Tensor], *, known: bool = False) -> Unchecked:
    """The op of a layer with `outputs` as it computes what breaks its rule.

    It is not pure, so that neither engines take it, which rely on rules, nor is it computed ahead.
    """
    declaration = {one.name: getattr(op, one.name) for one in fields(op) if one.init}
    changed = {"kernel": _computing(op, outputs), "pure": False, "traits": (), "view_of": None, "self_checking": False}
    return Unchecked(**declaration | changed, ignored=ignored, known=known, results=outputs)


def declared_outputs(layer: Layer) -> list[Tensor]:
    """What the file says of the types of outputs; their shapes are left to the run."""
    return [Tensor(value.port.precision or "dynamic", None) for value in layer.outputs]


def _computing(op: Op, outputs: Sequence[Tensor]) -> Callable[..., Any]:
    """The kernel of an op for inputs that may break its rule; it raises Violation where it cannot compute them."""

    def kernel(*arrays: Array | None, **attrs: Any) -> tuple[Array, ...]:
        given = _agreed(op, arrays)
        context = {"types": _types(op, given, outputs)} if "types" in op.context else {}
        try:
            results = op.kernel(*given, **attrs | context)
        except Violation as violation:
            message = f"{violation.message}, which its kernel cannot compute"
            raise Violation(violation.label, message, violation.port, violation.about) from None
        except (IRError, MemoryError):
            raise
        except Exception as error:
            hand_on(error)
            raise _refused(op, arrays, attrs, error) from error
        made = results_of(results)
        if len(made) < len(outputs):
            raise Violation("E302", f"its kernel gives {len(made)} outputs, expected {len(outputs)}")
        return tuple(
            _held(np.asarray(result), tensor, n) for n, (result, tensor) in enumerate(zip(made, outputs, strict=False))
        )

    try:
        signature = inspect.signature(op.kernel)
    except ValueError:  # a ufunc has none
        return kernel
    taken = [parameter for parameter in signature.parameters.values() if parameter.name not in PARTS]
    kernel = wraps(op.kernel)(kernel)
    kernel.__signature__ = signature.replace(parameters=taken)  # type: ignore[attr-defined]
    return kernel


def _agreed(op: Op, arrays: Sequence[Array | None]) -> list[Array | None]:
    """The inputs in types that the op takes together: of one symbol in the widest, others in one of the same kind.

    Raises Violation where an input is of another kind than any that the op takes.
    """
    ports = [op.inputs[min(number, len(op.inputs) - 1)] for number in range(len(arrays))] if op.inputs else []
    wanted: dict[str, str] = {}
    for port, array in zip(ports, arrays, strict=False):
        if array is not None and port.type != "dynamic":
            wider = _wider(wanted.get(port.type), element_type(array.dtype), port.type, op)
            if wider is None:
                message = f"`{port.name}` is {element_type(array.dtype)}, which its kernel cannot compute"
                raise Violation("E303", message, port.name)
            wanted[port.type] = wider
    return [
        array if array is None or port.type == "dynamic" else array.astype(numpy_dtype(wanted[port.type]), copy=False)
        for port, array in zip(ports, arrays, strict=True)
    ]


def _wider(known: str | None, type: str, symbol: str, op: Op) -> str | None:
    """The narrowest type of a symbol that the op takes, and that holds what these two do; None where there is none."""
    allowed = op.types.get(symbol, frozenset({symbol}))
    if type in allowed and known in (None, type):
        return type
    holding = [
        wide for wide in ELEMENT_TYPES if wide in allowed and _holds(wide, type) and (not known or _holds(wide, known))
    ]
    return min(holding, key=lambda wide: ELEMENT_TYPES[wide].bits, default=None)


def _holds(wide: str, type: str) -> bool:
    """Whether the numbers of a type, or indices in it, can be given as another one."""
    if wide == type:
        return True
    if wide in FLOAT and type in FLOAT:
        return ELEMENT_TYPES[wide].bits >= 32 or ELEMENT_TYPES[wide].bits > ELEMENT_TYPES[type].bits
    return wide in INTEGER and type in INTEGER and ELEMENT_TYPES[wide].bits >= 32


def _types(op: Op, arrays: Sequence[Array | None], outputs: Sequence[Tensor]) -> dict[str, str]:
    """Element types for the type symbols of an op: of the first input that has it, else of an output."""
    types: dict[str, str] = {}
    for number, array in enumerate(arrays):
        if array is not None and op.inputs:
            types.setdefault(op.inputs[min(number, len(op.inputs) - 1)].type, element_type(array.dtype))
    for port, tensor in zip(op.outputs, outputs, strict=False):
        types.setdefault(port.type, tensor.type)
    return types


def _refused(op: Op, arrays: Sequence[Array | None], attrs: Mapping[str, Any], error: Exception) -> Exception:
    """What to say where a kernel fails: that, beside the rule that is broken; the error itself where none is."""
    tensors = [None if array is None else Tensor.of(array) for array in arrays]
    try:
        op.infer(tensors, {name: value for name, value in attrs.items() if name != "types"})
    except Violation as violation:
        message = f"{violation.message}, which its kernel cannot compute: {type(error).__name__}: {error}"
        return Violation(violation.label, message, violation.port, violation.about)
    return error


def _held(array: Array, tensor: Tensor, number: int) -> Array:
    """A result in the type and of the sizes that are known of it. Raises Violation where it has others."""
    if tensor.static and array.shape != tensor.shape:
        found, expected = shape_text(array.shape), shape_text(tensor.shape)
        raise Violation("E304", f"its kernel gives {found} for output {number}, expected {expected}")
    if tensor.type not in ELEMENT_TYPES or array.dtype == numpy_dtype(tensor.type):
        return array
    if tensor.type == "string" or array.dtype.kind in "OSU":
        raise Violation("E303", f"its kernel gives {array.dtype} for output {number}, expected {tensor.type}")
    return array.astype(numpy_dtype(tensor.type))
