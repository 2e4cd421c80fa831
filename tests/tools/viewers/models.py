"""Models that viewers have to bear: bodies, names that several layers have, and names that are no good."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from ir_builder import Model

import irrun
from irrun.check.validate import Report

MARKUP = "</script><img src=x onerror=alert(1)>"
LINES = "two\nlines"
SLASHES = "/".join(["deep"] * 300)


def strange(folder: Path) -> Path:
    """A model with an iterator over slices and a branch in a branch, layers named alike, and hostile names."""
    with irrun.build() as g:
        x = g.Parameter("f32[4, 2]", name="x")
        with g.body() as body:
            row = body.input(x, axis=0)
            body.Result(body.Exp(body.ReLU(row, name="alike"), name="inside"), axis=0)
        each = g.TensorIterator(body=body, name="each")
        with g.body() as then:
            with then.body() as inner:
                inner.Result(inner.Exp(x, name="innermost"))
            with then.body() as second:
                second.Result(second.Abs(x))
            below = then.Less(then.ReduceSum(x, [0, 1]), 9.0)
            then.Result(then.If(below, then_body=inner, else_body=second, name="nested"))
        with g.body() as other:
            other.Result(other.input(x))
        chosen = g.If(g.Greater(g.ReduceSum(x, [0, 1]), 0.0), then_body=then, else_body=other, name="choice")
        y = g.ReLU(g.Add(each, chosen, name="__proto__"), name="alike")
        y = g.Sigmoid(g.Tanh(y, name="twin_a"), name="twin_b")
        y = g.Abs(g.Negative(g.MatMul(y, np.ones((2, 3), np.float32), name=MARKUP), name=LINES), name=SLASHES)
        g.Result(y, name="y")
    path = folder / "strange.xml"
    irrun.write_model(g.model, path)
    path.write_text(path.read_text().replace('"twin_a"', '"twin"').replace('"twin_b"', '"twin"'))
    return path


def checked(path: Path) -> Report:
    report = irrun.validate(path)
    assert report.ok, str(report)
    return report


def long(folder: Path, blocks: int = 1000) -> Path:
    """A chain of so many blocks with seven layers each, named as torch's exporter names them."""
    m = Model()
    shape = [("f32", (1, 8))]
    y = m.parameter("x", "f32", (1, 8))
    weights = m.constant(np.eye(8, dtype=np.float32), name="weights")
    for number in range(blocks):
        scope = f"__module.model.layers.{number}.mlp"
        name = f"{scope}/aten::linear/MatMul"
        (up,) = m.layer("MatMul", [y, weights], shape, name=name, transpose_a="false", transpose_b="false")
        (gate,) = m.layer("Negative", [up], shape, name=f"{scope}/neg")
        (gate,) = m.layer("Sigmoid", [gate], shape, name=f"{scope}/act/sigmoid")
        (both,) = m.layer("Multiply", [up, gate], shape, name=f"{scope}/mul")
        (down,) = m.layer("Abs", [both], shape, name=f"{scope}/abs")
        (down,) = m.layer("Tanh", [down], shape, name=f"{scope}/tanh")
        (y,) = m.layer("Add", [y, down], shape, name=f"{scope}/aten::add/Add")
    m.result(y)
    return m.save(folder)
