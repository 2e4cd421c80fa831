"""The smallest models that break labelled constraints: what the tests of ops call them with is recorded.

Each constraint has a test in tests/ops that breaks it, so there is no second list of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.constraints.bases import bases
from conformance.constraints.row import Given, Row, given, written
from irrun.spec import Op, Tensor, Violation
from irrun.spec.attributes import REQUIRED
from irrun.spec.dims import Dim

TESTS = Path(__file__).parents[2] / "ops"


class Recorder:
    """A plugin of pytest that keeps the arguments of each call of an op that breaks a constraint."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    @contextmanager
    def recording(self) -> Iterator[None]:
        call, infer = Op.__call__, Op.infer
        calls: list[Sequence[Any]] = []

        def called(op: Op, *inputs: Any, **attrs: Any) -> Any:
            calls.append(inputs)
            try:
                return call(op, *inputs, **attrs)
            except Violation as violation:
                self._keep(op, [None if a is None else Tensor.of(np.asarray(a)) for a in inputs], attrs, violation)
                raise
            finally:
                calls.pop()

        def asked(op: Op, inputs: Sequence[Tensor | None], attrs: Mapping[str, Any], bodies: Any = None) -> Any:
            try:
                inferred = infer(op, inputs, attrs, bodies)
            except Violation as violation:
                if not bodies and not calls:
                    self._keep(op, inputs, attrs, violation)
                raise
            for each in () if bodies else inferred.tolerated:
                self._keep(op, inputs, attrs, each.violation)
            return inferred

        Op.__call__, Op.infer = called, asked  # type: ignore[method-assign]
        try:
            yield
        finally:
            Op.__call__, Op.infer = call, infer  # type: ignore[method-assign]

    def _keep(self, op: Op, inputs: Sequence[Tensor | None], attrs: Mapping[str, Any], violation: Violation) -> None:
        if not op.name or not re.fullmatch(r"C\d+", violation.label):
            return
        try:
            ports = [None if tensor is None else _given(tensor) for tensor in inputs]
        except Unknown:
            return
        self.rows.append(Row(op.name, violation.label, violation.message, "", tuple(ports), _texts(op, attrs)))


class Unknown(Exception):
    """A size is not known, so there is no such model."""


def _given(tensor: Tensor) -> Given:
    if tensor.type == "dynamic" or tensor.shape is None:
        raise Unknown
    shape = [size.low if isinstance(size, Dim) and size.low == size.high else size for size in tensor.shape]
    if any(isinstance(size, Dim) for size in shape):
        raise Unknown
    return given(tensor.type, [int(size) for size in shape], tensor.value if tensor.known else None)


def _texts(op: Op, attrs: Mapping[str, Any]) -> dict[str, str]:
    """What the file says for attributes: those that differ from their defaults or have none."""
    base = bases().get(op.name)
    found = {}
    for attr in op.attrs:
        value = attrs.get(attr.keyword, attr.default)
        if value is REQUIRED and base is not None and attr.name in base.attrs:
            found[attr.name] = base.attrs[attr.name]
        elif value is not REQUIRED and value is not None:
            found[attr.name] = written(value)
    return found


def recorded() -> list[Row]:
    """A row for each kind of message that the tests of ops see of a labelled constraint."""
    recorder = Recorder()
    with recorder.recording():
        status = pytest.main([str(TESTS), "-q", "-p", "no:cacheprovider", "-n", "0", "--no-header"])
    assert status == 0, "the tests of the ops fail"
    kinds: dict[tuple[str, str, str], Row] = {}
    for row in recorder.rows:
        kind = (row.op, row.label, re.sub(r"\d+", "0", row.text))
        if kind not in kinds or row.size < kinds[kind].size:
            kinds[kind] = row
    return list(kinds.values())
