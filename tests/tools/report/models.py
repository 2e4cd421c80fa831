"""Models that reports of are tried with: as large as they come, and with names that would be markup."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from ir_builder import Model, Tensor

import irrun

HOSTILE = {
    "markup": "</script><script>window.harmed=1</script><img src=x onerror=window.harmed=2>",
    "comment": "<!--<script>]]>--!>&lt;b&gt;&amp;",
    "quotes": "\"'`${window.harmed=3}{{7*7}}{% raw %}",
    "lines": "first\nsecond\r\n\tthird",
    "controls": "zero\u200b\u2028\u2029\ufeff\u0085 wide",
    "turned": "\u202egnp.exe\u202c \u05d0\u05d1\u05d2",
    "long": "n" * 10_000,
    "slashes": "/" * 400,
    "dots": "__module." + "a." * 300,
    "formula": "=HYPERLINK(1,2),+1",
    "empty": " ",
}
"""Names, by what is bad about them."""

_WIDTH = 16


def deep(folder: Path, count: int, *, scoped: bool = False) -> Path:
    """A model of `count` layers at least, in blocks of 20 that are alike, with names of scopes or with none."""
    model = Model()
    x = model.parameter("x", "f32", (1, _WIDTH))
    block = 0
    while len(model.layers) < count - 1:
        x = _block(model, x, block, f"__module.model.layers.{block}" if scoped else None)
        block += 1
    model.result(x)
    return model.save(folder)


def _block(model: Model, x: Tensor, number: int, scope: str | None) -> Tensor:
    """Six products, each before an activation, and the sum with what came in."""

    def name(part: str, op: str) -> str:
        return f"{scope}.{part}/aten::{op.lower()}/{op}" if scope else f"{op}_{len(model.layers)}"

    inner = x
    for part in ("attention.query", "attention.key", "attention.out", "mlp.up", "mlp.gate", "mlp.down"):
        weights = model.constant(np.eye(_WIDTH, dtype=np.float32), name(part, "weight"))
        (inner,) = model.layer("MatMul", [inner, weights], [("f32", (1, _WIDTH))], name=name(part, "MatMul"))
        (inner,) = model.layer("ReLU", [inner], [("f32", (1, _WIDTH))], name=name(part, "Relu"))
    (inner,) = model.layer("Add", [inner, x], [("f32", (1, _WIDTH))], name=name("residual", "Add"))
    (inner,) = model.layer("Sigmoid", [inner], [("f32", (1, _WIDTH))], name=name("residual", "Sigmoid"))
    return inner


def branches(folder: Path) -> Path:
    """A model that chooses between a constant, which is a body without anything to compute, and what it computes."""
    with irrun.build() as g:
        x, chosen = g.Parameter("f32[1, 4]", name="x"), g.Parameter("boolean[]", name="chosen")
        with g.body() as then:
            then.Result(then.Constant(np.ones((1, 4), np.float32)))
        with g.body() as other:
            other.Result(other.Tanh(other.input(x), name="computed"))
        g.Result(g.If(chosen, then_body=then, else_body=other, name="choice"))
    irrun.write_model(g.model, folder / "model.xml")
    return folder / "model.xml"


def shared(folder: Path) -> Path:
    """A row of eight sums, to each of which the same tensor is added."""
    model = Model()
    x = model.parameter("x", "f32", (1, 4))
    (mask,) = model.layer("Tanh", [x], [("f32", (1, 4))], name="mask")
    for number in range(8):
        (x,) = model.layer("Add", [x, mask], [("f32", (1, 4))], name=f"sum_{number}")
    model.result(x)
    return model.save(folder)


def hostile(folder: Path) -> Path:
    """A row of layers with the names of `HOSTILE`, which tensors have, too."""
    model = Model()
    x = model.parameter("x", "f32", (1, 4))
    for text in HOSTILE.values():
        (x,) = model.layer("ReLU", [x], [("f32", (1, 4))], name=text, names=[text.replace(",", "\\,")])
    model.result(x)
    return model.save(folder)
