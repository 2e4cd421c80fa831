"""Calls of a program that are made as one: random quantized models both ways, and which calls go together."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from engines.onednn_works import ENGINE, has_avx2
from ir_builder import Model, Tensor

import irrun
from irrun.engines import compiled
from irrun.engines.work import Joinable
from irrun.run import frame
from irrun.run.profile import Profile
from run.quantized_models import NUMPY, codes, compressed, convolution, elementwise, fake_quantize

pytestmark = pytest.mark.skipif(
    not compiled.is_there() or ENGINE is None or not has_avx2(),
    reason="needs llvmlite, oneDNN, and a processor with AVX2",
)


def network(folder: Path, seed: int) -> tuple[Path, tuple[int, ...]]:
    """Convolutions of codes of all kinds behind one another, with sums of two of them, and some other ops between."""
    rng = np.random.default_rng(seed)
    model, channels, size = Model(), 16, int(rng.integers(7, 22))
    shape = (int(rng.integers(1, 3)), channels, size, size)
    x = fake_quantize(model, model.parameter("x", "f32", shape), 0.0, 2.55)
    for number in range(int(rng.integers(6, 14))):
        y = _layer(model, x, str(rng.choice(["pixel", "windows", "single"])), seed * 100 + number)
        if rng.random() < 0.5:
            y = elementwise(model, "ReLU", y)
        y = fake_quantize(model, y, -1.28, 1.27)
        if rng.random() < 0.4 and y[3] == x[3]:
            y = fake_quantize(model, elementwise(model, "Add", y, x, **NUMPY), -2.56, 2.54)
        if rng.random() < 0.15:
            y = fake_quantize(model, elementwise(model, "Tanh", y), -1.28, 1.27)
        if rng.random() < 0.2:
            model.result(y)
        x = y
    model.result(x)
    return model.save(folder), shape


def _layer(model: Model, x: Tensor, kind: str, seed: int) -> Tensor:
    if kind == "single":
        weights = compressed(model, codes(16, 1, 1, 3, 3, seed=seed), np.full((16, 1, 1, 1, 1), 0.003))
        return convolution(model, x, weights)
    taps = 1 if kind == "pixel" else 3
    weights = compressed(model, codes(16, 16, taps, taps, seed=seed), np.full((16, 1, 1, 1), 0.002 / taps))
    return convolution(model, x, weights, pads_begin=f"{taps // 2},{taps // 2}", pads_end=f"{taps // 2},{taps // 2}")


def frames(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The frames that are made from now on."""
    made: list[Any] = []
    prepare = frame.Frame.__init__

    def init(self: Any, *args: Any, **named: Any) -> None:
        prepare(self, *args, **named)
        made.append(self)

    monkeypatch.setattr(frame.Frame, "__init__", init)
    return made


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("seed", range(12))
def test_calls_that_are_made_as_one_give_what_they_give_alone(
    seed: int, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, shape = network(tmp_path, seed)
    made = frames(monkeypatch)
    executor = irrun.GraphExecutor(path, engine="auto", threads=threads)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        x = rng.uniform(-1, 3, shape).astype(np.float32)
        alone = executor.run(x=x, profile=Profile())
        for _ in range(10):
            for found, expected in zip(executor.run(x=x).values(), alone.values(), strict=True):
                np.testing.assert_array_equal(found, expected)
    if ENGINE is not None and ENGINE.leaves_codes:  # else oneDNN has a way to multiply codes
        assert any(len(own._joined) < len(own._calls) for own in made)
        assert all(len(own._steps) == len(own._joined) for own in made)


class Told(Joinable):
    """A call that says what it was joined with."""

    def __init__(self, joins: object, seconds: float = 0.0) -> None:
        self.joins, self.seconds = joins, seconds

    def __call__(self) -> None: ...

    def joined(self, calls: Any) -> Any:
        return calls


def rows(*calls: Any) -> list[int]:
    """How many calls are in each that is made; the instruction that stands for them is the first one's."""
    steps, made = frame._joined([SimpleNamespace(number=n) for n in range(len(calls))], calls)  # type: ignore[arg-type, misc]
    counts = [len(row) if isinstance(row, list) else 1 for row in made]
    assert [step.number for step in steps] == np.cumsum([0, *counts])[:-1].tolist()  # type: ignore[attr-defined]
    return counts


def test_which_calls_are_made_as_one() -> None:
    team, other = object(), object()
    assert rows() == []
    assert rows(print, print) == [1, 1]
    assert rows(Told(team), Told(team), print, Told(team), Told(team), Told(team)) == [2, 1, 3]
    assert rows(Told(team), Told(other), Told(other)) == [1, 2]


def test_calls_that_take_long_are_made_one_by_one() -> None:
    team, most = object(), frame.MAX_SECONDS
    assert rows(Told(team, most * 2), Told(team), Told(team, most * 0.6), Told(team, most * 0.6)) == [1, 2, 1]
    count = frame.MAX_JOINED
    assert rows(*[Told(team)] * (2 * count + 1)) == [count, count, 1]
