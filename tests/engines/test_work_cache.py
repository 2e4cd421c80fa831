"""Layers that differ in nothing but their many constants: each computes with its own, whatever engines share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irrun

ENGINES = pytest.mark.parametrize("engine", ["numpy", "onednn", "auto"])
CHANNELS = 32
WINDOW: dict[str, Any] = {name: [1, 1] for name in ("strides", "dilations")} | {
    name: [0, 0] for name in ("pads_begin", "pads_end")
}


def agree(model: Any, engine: str, seed: int = 0) -> None:
    expected = irrun.GraphExecutor(model, engine="reference")
    given = expected.random_inputs(seed)
    found = irrun.GraphExecutor(model, engine=engine).run(given)
    for name, right in expected.run(given).items():
        np.testing.assert_allclose(found[name], right, rtol=1e-4, atol=1e-4)


def quantized(g: Any, x: Any, most: Any) -> Any:
    return g.FakeQuantize(x, -most, most, -most, most, levels=255)


@ENGINES
@pytest.mark.parametrize("swapped", [False, True])
def test_limits_by_channels_behind_convolutions_with_filters_of_a_run(engine: str, swapped: bool) -> None:
    by_channel = np.linspace(1, 2, CHANNELS, dtype=np.float32).reshape(1, CHANNELS, 1, 1)
    with irrun.build("m", opset=13) as g:
        x = g.Parameter(f"f32[1,{CHANNELS},4,4]")
        for most in (3, 0.1) if swapped else (0.1, 3):
            filters = g.Parameter(f"f32[{CHANNELS},{CHANNELS},1,1]")
            g.Result(quantized(g, g.Convolution(x, filters, **WINDOW), by_channel * np.float32(most)))
    exact = irrun.GraphExecutor(g.model, engine="reference")
    given = exact.random_inputs(1)
    found = irrun.GraphExecutor(g.model, engine=engine).run(given)
    for name, right in exact.run(given).items():
        assert (np.abs(found[name] - right) <= np.abs(right).max() / 100).all()  # a step of the grid


@ENGINES
@pytest.mark.parametrize("factor", [-100, 100])
def test_a_bias_behind_products_of_codes_of_a_run(engine: str, factor: int) -> None:
    with irrun.build("m", opset=13) as g:
        for own in (1, factor):
            left, right = (g.Parameter(f"f32[{CHANNELS},{CHANNELS}]") for _ in range(2))
            product = g.MatMul(*(quantized(g, own, np.float32(2)) for own in (left, right)))
            g.Result(g.Add(product, np.arange(CHANNELS, dtype=np.float32) * own))
    exact = irrun.GraphExecutor(g.model, engine="reference")
    given = exact.random_inputs(2)
    found = irrun.GraphExecutor(g.model, engine=engine).run(given)
    for name, right in exact.run(given).items():
        np.testing.assert_allclose(found[name], right, atol=0.5)


@ENGINES
@pytest.mark.parametrize("op", ["Add", "Multiply", "Power", "Maximum", "PReLU", "SquaredDifference", "Divide", "Mod"])
def test_operands_behind_all_that_is_computed_first(engine: str, op: str) -> None:
    constants = [np.linspace(low, low + 2, CHANNELS, dtype=np.float32) for low in (0.5, 3)]
    with irrun.build("m", opset=13) as g:
        for number, constant in enumerate(constants):
            x = g.Parameter(f"f32[2,{CHANNELS},4,4]", name=f"x{number}")
            filters = g.Parameter(f"f32[{CHANNELS},{CHANNELS},1,1]", name=f"w{number}")
            second = constant if op == "PReLU" else constant.reshape(1, CHANNELS, 1, 1)
            heads = {
                "convolved": g.Convolution(x, filters, **WINDOW),
                "summed": g.Add(x, x),
                "normal": g.MVN(x, np.int64([2, 3]), normalize_variance=True, eps=1e-3, eps_mode="inside_sqrt"),
            }
            for name, head in heads.items():
                g.Result(getattr(g, op)(g.Abs(head), second), name=f"{name}{number}")
    agree(g.model, engine)
