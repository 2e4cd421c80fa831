"""Enclosed programs that differ in their weights alone: what is prepared of one serves for the others."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.run import preparation, siblings
from irrun.run.profile import Profile
from run.models import ADD, PLAIN, anything, i64, model, saved
from run.quantized_models import compressed
from run.test_enclosing import enclosures
from run.verification import verify

F32 = np.float32
ROWS, SIZE, INNER, COUNT = 12, 32, 48, 5
WIDE = 128
"""Of weights that are large enough to stay compressed."""

ENGINES = pytest.mark.parametrize("engine", ["numpy", "onednn", "auto", "check"])


def weights_of(seed, count=COUNT):
    """Of each expert, two matrices and a bias."""
    rng = np.random.default_rng(seed)
    return [
        tuple(rng.normal(0, 0.2, shape).astype(F32) for shape in ((SIZE, INNER), (1, INNER), (INNER, SIZE)))
        for _ in range(count)
    ]


def expert(b, x, y, mask, weights, number=0):
    """Rows of x where a mask is not 0, through two products, added to those of y. Its layers come in some order."""
    first, bias, second = weights
    places = b.one("NonZero-3", mask)
    if number % 2:
        indices = b.one("Transpose-1", places, i64(b, [1, 0]))
    where = b.one("Squeeze-1", places, i64(b, [0]))
    rows = b.one("Gather-8", x, where, i64(b, 0), batch_dims=0)
    rows = b.one("MatMul-1", rows, b.constant(first), **PLAIN)
    rows = b.one("Swish-4", b.one("Add-1", rows, b.constant(bias), **ADD))
    if not number % 2:
        indices = b.one("Transpose-1", places, i64(b, [1, 0]))
    rows = b.one("MatMul-1", rows, b.constant(second), **PLAIN)
    return b.one("ScatterNDUpdate-15", y, indices, rows, reduction="sum")


def routed(folder, engine, weights, shift=0):
    """The model with each of these experts, whose weights begin so many bytes later in the file."""
    folder.mkdir(exist_ok=True)
    b = model()
    x, y = anything(b, "f4", (ROWS, SIZE)), anything(b, "f4", (ROWS, SIZE))
    for number, own in enumerate(weights):
        y = expert(b, x, y, anything(b, "f4", (ROWS,)), own, number)
    b.result(y)
    path = saved(b, folder)
    if shift:
        moved = re.sub(r'offset="(\d+)"', lambda found: f'offset="{int(found[1]) + shift}"', path.read_text())
        path.write_text(moved)
        path.with_suffix(".bin").write_bytes(b"\xa5" * shift + path.with_suffix(".bin").read_bytes())
    return irrun.GraphExecutor(path, engine=engine)


def expected(x, y, masks, weights):
    y = y.astype(np.float64)
    for mask, (first, bias, second) in zip(masks, weights, strict=True):
        rows = x[mask != 0].astype(np.float64) @ first + bias
        y[mask != 0] += rows / (1 + np.exp(-rows)) @ second
    return y


def drawn(rng, most=ROWS, count=COUNT):
    masks = [np.zeros(ROWS, F32) for _ in range(count)]
    for mask in masks:
        mask[rng.choice(ROWS, rng.integers(0, most + 1), replace=False)] = 1
    x, y = (rng.normal(0, 1, (ROWS, SIZE)).astype(F32) for _ in range(2))
    return x, y, masks


@contextmanager
def counted():
    """How many programs were made of those of siblings, all of which are verified, and how many could not be."""
    found = {"made": 0, "not made": 0}

    def made(model, built, own, setting):
        program = siblings.sibling_of(model, built, own, setting)
        found["not made" if program is None else "made"] += 1
        if program is not None:
            verify(program, planned=True)
            layers = {part.layer.name for given in own.instructions for part in given.parts}
            assert {part.layer.name for given in program.instructions for part in given.parts} <= layers
        return program

    with patch.object(preparation, "sibling_of", made):
        yield found


@ENGINES
@pytest.mark.parametrize("shift", [0, 1])
def test_what_experts_find_in_any_order_of_their_layers(shift, engine, tmp_path, monkeypatch):
    """Also where weights lie at addresses that are no multiples of an element's bytes."""
    monkeypatch.setattr("irrun.ir.weights.MAX_COPIED", 0)
    weights, rng = weights_of(0), np.random.default_rng(1)
    ours = routed(tmp_path, engine, weights, shift)
    with counted() as found:
        for _ in range(40):
            x, y, masks = drawn(rng, most=4)
            (result,) = ours.run([x, y, *masks]).values()
            np.testing.assert_allclose(result, expected(x, y, masks, weights), rtol=1e-4, atol=1e-5)
    inner = enclosures(ours)
    assert len(inner) == COUNT
    assert len({id(own._model or own) for own in inner}) == 1
    assert found["made"] >= 20
    assert not found["not made"]


def test_programs_of_siblings_are_those_that_are_made_in_full(tmp_path):
    """Whatever the engines, bit by bit, and in as much memory."""
    weights, rng = weights_of(2), np.random.default_rng(3)
    for engine in ("numpy", "onednn", "auto"):
        ours, full = (routed(tmp_path / f"{engine}{number}", engine, weights) for number in range(2))
        with patch.object(preparation, "sibling_of", lambda *_: None):
            given = [drawn(rng, most=5) for _ in range(30)]
            wanted = [next(iter(full.run([x, y, *masks]).values())) for x, y, masks in given]
            wanted += [next(iter(full.run([x, y, *masks]).values())) for x, y, masks in given]
        for (x, y, masks), result in zip(given * 2, wanted, strict=True):
            np.testing.assert_array_equal(next(iter(ours.run([x, y, *masks]).values())), result)
        for mine, other in zip(enclosures(ours), enclosures(full), strict=True):
            assert mine._kept.keys() == other._kept.keys()
            for key in mine._kept:
                assert str(mine._kept[key].program) == str(other._kept[key].program)


@pytest.mark.parametrize("engine", ["numpy", "auto"])
@pytest.mark.parametrize("type", [np.int8, np.uint8])
def test_experts_whose_weights_are_compressed(engine, type, tmp_path):
    """They stay so in the programs of siblings, too, which an engine prepares for the weights of each."""
    rng, m = np.random.default_rng(4), Model()
    x, y = m.parameter("x", "f32", (ROWS, WIDE)), m.parameter("y", "f32", (ROWS, WIDE))
    weights, out = [], y
    for number in range(4):
        codes, scale = rng.integers(0, 100, (WIDE, WIDE)).astype(type), rng.uniform(0.001, 0.01, (WIDE, 1)).astype(F32)
        weights.append(codes * scale)
        mask = m.parameter(f"mask{number}", "f32", (ROWS,))
        (places,) = m.layer("NonZero", [mask], [("i64", (1, -1))], "opset3", output_type="i64")
        (where,) = m.layer("Squeeze", [places, m.constant(np.int64([0]))], [("i64", (-1,))])
        (rows,) = m.layer(
            "Gather", [x, where, m.constant(np.int64(0))], [("f32", (-1, WIDE))], "opset8", batch_dims="0"
        )
        weights_ = compressed(m, codes, scale)
        (rows,) = m.layer("MatMul", [rows, weights_], [("f32", (-1, WIDE))], transpose_a="false", transpose_b="true")
        (indices,) = m.layer("Transpose", [places, m.constant(np.int64([1, 0]))], [("i64", (-1, 1))])
        (out,) = m.layer("ScatterNDUpdate", [out, indices, rows], [("f32", (ROWS, WIDE))], "opset15", reduction="sum")
    m.result(out)
    ours = irrun.GraphExecutor(m.save(tmp_path), engine=engine)
    with counted() as found:
        for _ in range(30):
            masks = [(rng.uniform(size=ROWS) < 0.2).astype(F32) for _ in range(4)]
            x, y = (rng.normal(0, 1, (ROWS, WIDE)).astype(F32) for _ in range(2))
            (result,) = ours.run([x, y, *masks]).values()
            wanted = y.astype(np.float64)
            for mask, own in zip(masks, weights, strict=True):
                wanted[mask != 0] += x[mask != 0].astype(np.float64) @ own.T
            np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)
    assert found["made"] >= 4
    inner = enclosures(ours)
    assert len({id(own._model or own) for own in inner}) == 1
    assert all(any(kept.program.compressed for kept in own._kept.values()) for own in inner)


def test_what_sizes_cut_out_of_weights_is_each_experts_own(tmp_path):
    """Such constants are made of weights, so that each program is made in full."""
    rng, b = np.random.default_rng(5), model()
    tables = [rng.normal(0, 1, (ROWS, SIZE)).astype(F32) for _ in range(3)]
    x, masks = anything(b, "f4", (ROWS, SIZE)), [anything(b, "f4", (ROWS,)) for _ in tables]
    for mask, table in zip(masks, tables, strict=True):
        where = b.one("Squeeze-1", b.one("NonZero-3", mask), i64(b, [0]))
        rows = b.one("Gather-8", x, where, i64(b, 0), batch_dims=0)
        size = b.one("Gather-8", b.one("ShapeOf-3", rows, output_type="i64"), i64(b, [0]), i64(b, 0), batch_dims=0)
        part = b.one("Slice-8", b.constant(table), i64(b, [0]), size, i64(b, [1]), i64(b, [0]))
        rows = b.one("Multiply-1", b.one("Exp-1", rows), b.one("Negative-1", part), **ADD)
        b.result(b.one("ReduceSum-1", rows, i64(b, [0]), keep_dims=False))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine="numpy")
    with counted() as found:
        for _ in range(40):
            x = rng.normal(0, 1, (ROWS, SIZE)).astype(F32)
            masks = [(np.arange(ROWS) < rng.integers(0, 4)).astype(F32) for _ in tables]
            for mask, table, result in zip(masks, tables, ours.run([x, *masks]).values(), strict=True):
                count = int(mask.sum())
                np.testing.assert_allclose(result, -(np.exp(x[:count]) * table[:count]).sum(0), 1e-4, 1e-5)
    assert found["not made"] >= 1


@ENGINES
def test_layers_of_each_expert_are_told_by_their_names(engine, tmp_path):
    """In a profile, to an observer and in errors, from the first run to those whose programs siblings share."""
    weights, rng = weights_of(6, 3), np.random.default_rng(7)
    ours = routed(tmp_path, engine, weights)
    for turn in range(12):
        x, y, _ = drawn(rng)
        masks = [np.eye(1, ROWS, number, dtype=F32)[0] for number in range(3)]
        profile, seen = Profile(), []
        ours.run([x, y, *masks], profile=profile)
        names = {key[1].name for key, entry in profile.entries.items() if "MatMul" in entry.type}
        assert len(names) == 6
        if turn % 4 == 3:
            ours.run([x, y, *masks], observer=lambda event, seen=seen: seen.append(event.layer.name))
            assert len({name for name in seen if "ScatterNDUpdate" in name}) == 3


def test_an_error_is_told_of_the_expert_that_makes_it(tmp_path):
    b = model()
    x, choices = anything(b, "f4", (ROWS, SIZE)), [anything(b, "i8", (ROWS,)) for _ in range(3)]
    masks = [anything(b, "f4", (ROWS,)) for _ in range(3)]
    for own, mask, (first, _, second) in zip(choices, masks, weights_of(8, 3), strict=True):
        where = b.one("Squeeze-1", b.one("NonZero-3", mask), i64(b, [0]))
        chosen = b.one("Gather-8", own, where, i64(b, 0), batch_dims=0)
        rows = b.one("MatMul-1", b.one("Gather-7", x, chosen, i64(b, 0), batch_dims=0), b.constant(first), **PLAIN)
        b.result(b.one("MatMul-1", b.one("ReLU-1", rows), b.constant(second), **PLAIN))
    ours, data = irrun.GraphExecutor(saved(b, tmp_path), engine="auto"), np.zeros((ROWS, SIZE), F32)
    mask, good = np.eye(1, ROWS, 3, dtype=F32)[0], np.arange(ROWS)
    for _ in range(10):
        ours.run([data, good, good, good, mask, mask, mask])
    lines = []
    for wrong in range(3):
        given = [good] * 3
        given[wrong] = good + ROWS
        with pytest.raises(irrun.ExecutionError, match="E401") as error:
            ours.run([data, *given, mask, mask, mask])
        lines.append(error.value.diagnostics[0].span.line)
    assert lines == sorted({*lines})


def test_where_weights_have_told_what_need_not_be_computed_nothing_is_taken_over(tmp_path):
    """As a bias of zeros might, which is none in another expert."""
    ours, rng = routed(tmp_path, "numpy", weights_of(9)), np.random.default_rng(10)
    for _ in range(12):
        x, y, _ = drawn(rng)
        ours.run([x, y, *[np.eye(1, ROWS, dtype=F32)[0]] * COUNT])
    first, second, *_ = enclosures(ours)
    (kept,) = first._kept.values()
    made = siblings.sibling_of(kept.program, first.built, second.built, second._setting)
    assert len(made.instructions) == len(kept.program.instructions)
    bare = [own.changed(posts=own.posts[1:]) for own in kept.program.instructions]
    less = replace(kept.program, instructions=bare)
    assert siblings.sibling_of(less, first.built, second.built, second._setting) is None


@ENGINES
def test_products_that_a_sibling_encloses_again(engine, tmp_path):
    """Where less is open to a sibling, what reads the weights is a program within its program."""
    rng = np.random.default_rng(10)
    b = model()
    given, count = anything(b, "f4", (-1, -1)), anything(b, "i8", (1,))
    x = b.one("Reshape-1", given, i64(b, [-1, 1]), special_zero=False)
    along = i64(b, [1]), i64(b, [1])
    parts = [b.one("Slice-8", x, *ends, *along) for ends in ((count, i64(b, [9])), (i64(b, [0]), count))]
    x = b.one("Concat-1", *parts, axis=1)
    over = b.one("Convert-1", b.one("Greater-1", x, b.constant(F32(0.3)), **ADD), destination_type="i64")
    count = b.one("ReduceSum-1", b.one("ReduceSum-1", over, i64(b, 1), keep_dims=False), i64(b, 0), keep_dims=True)
    x = b.one("Reshape-1", b.one("Slice-8", x, i64(b, [0]), count, *along), i64(b, [-1, 1]), special_zero=False)
    weights = rng.normal(0, 1, (1, 64)).astype(F32)
    x = b.one("Swish-4", b.one("MatMul-1", x, b.constant(weights), **PLAIN))
    b.result(b.one("ReduceSum-1", x, i64(b, [0]), keep_dims=True))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for shape in ((3, 1), (1, 3), (1, 3), (3, 1), (2, 4)):
        data = rng.uniform(0.4, 1, shape).astype(F32)
        products = data.reshape(-1, 1).astype(np.float64) @ weights
        (result,) = ours.run([data, np.int64([1])]).values()
        wanted = np.sum(products / (1 + np.exp(-products)), axis=0, keepdims=True)
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)
