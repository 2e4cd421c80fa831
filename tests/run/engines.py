"""Engines for tests that do one thing wrong, and else what the one of numpy does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import irrun
from irrun.engines import load_engines
from irrun.engines.work import Call, Compiled, Work


class Odd:
    """The numpy engine, with `change` applied to what it compiles; `works` are those that it has compiled."""

    decodes = coding = False
    quantized = False
    threads = 1

    def __init__(self, change: Callable[[Work, Compiled], Compiled], name: str = "odd") -> None:
        self.name, self.change = name, change
        (self.inner,) = load_engines("numpy", 1)
        self.works: list[Work] = []

    def unaligned(self, name: str) -> bool:
        return False

    def compile(self, work: Work) -> Compiled | None:
        compiled = self.inner.compile(work)
        if compiled is None:
            return None
        changed = self.change(work, compiled)
        self.works.append(work)
        return changed

    def computes(self, name: str, type: str) -> bool:
        return self.inner.computes(name, type)

    def together(self, calls: Sequence[Call]) -> None:
        for call in calls:
            call()

    def open(self, work: Work) -> None:
        return None

    def reorder(self, operand: Any, layout: Any) -> Compiled:
        return self.inner.reorder(operand, layout)


def unchanged(work: Work, compiled: Compiled) -> Compiled:
    return compiled


def after(name: str, then: Callable[[Sequence[Any]], object]) -> Callable[[Work, Compiled], Compiled]:
    """What does something to the outputs of works of this op, after they were computed."""

    def change(work: Work, compiled: Compiled) -> Compiled:
        def bind(inputs, outputs, scratch):
            call = compiled.bind(inputs, outputs, scratch)

            def changed():
                call()
                then(outputs)

            return changed

        return replace(compiled, bind=bind) if work.name == name else compiled

    return change


def fails_to_compile(name: str) -> Callable[[Work, Compiled], Compiled]:
    def change(work: Work, compiled: Compiled) -> Compiled:
        if work.name == name:
            raise ValueError("cannot compile")
        return compiled

    return change


def fails_to_bind(name: str) -> Callable[[Work, Compiled], Compiled]:
    def bind(*_):
        raise ValueError("cannot bind")

    return lambda work, compiled: replace(compiled, bind=bind) if work.name == name else compiled


def _fail(_: object) -> None:
    raise ValueError("cannot compute")


def fails_to_compute(name: str) -> Callable[[Work, Compiled], Compiled]:
    return after(name, _fail)


def executor(path: Path, engines: list[Any], monkeypatch: pytest.MonkeyPatch, **options: Any) -> irrun.GraphExecutor:
    """An executor of these engines."""
    with monkeypatch.context() as patch:
        patch.setattr("irrun.run.executor.load_engines", lambda *_, **__: engines)
        return irrun.GraphExecutor(path, **options)
