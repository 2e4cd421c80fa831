"""Products of one tensor with several constant matrices as one product."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import irrun
from irrun.engines.stacked import StackedWeights
from irrun.run import preparation
from irrun.run.passes import stacking
from irrun.run.profile import Profile
from run.models import ADD, PLAIN, anything, i64, model, saved

F32 = np.float32
WIDTHS = (24, 16, 40)


def weights(number, columns, inner=16, turned=True):
    shape = (columns, inner) if turned else (inner, columns)
    return np.random.default_rng(number).standard_normal(shape, F32)


def branches(b, x, turned=(True, True, True), biases=(True, False, True), widths=WIDTHS):
    """Products of x, [batch, length, 16], with or without a sum, each of which is split into heads."""
    made = []
    for number, (columns, flag, biased) in enumerate(zip(widths, turned, biases, strict=True)):
        matrix = b.constant(weights(number, columns, turned=flag))
        part = b.one("MatMul-1", x, matrix, transpose_a=False, transpose_b=flag)
        if biased:
            bias = b.constant(np.random.default_rng(9 + number).standard_normal((1, 1, columns), F32))
            part = b.one("Add-1", *((part, bias) if number else (bias, part)), **ADD)
        made.append(part)
    return made


@pytest.fixture(autouse=True)
def however_few(monkeypatch):
    monkeypatch.setattr(stacking, "LEAST", 0)


def heads(b, parts):
    return [b.one("Reshape-1", part, i64(b, [0, 0, -1, 8]), special_zero=True) for part in parts]


def read(b, parts):
    """Results that read heads."""
    for part in heads(b, parts):
        b.result(b.one("Multiply-1", part, b.constant(np.arange(8, dtype=F32)), **ADD))


def turned_and_multiplied(b, part):
    """Two factors from the left."""
    factors = b.constant(np.ones((2, part.shape[1]), F32))
    return b.one("MatMul-1", factors, b.one("Transpose-1", part, i64(b, [1, 0])), **PLAIN)


def products(executor):
    """Of each program that has been made for sizes, the columns of its products with constant matrices."""
    found = []
    for kept in executor._whole.preparation._kept.values():
        program = kept.program
        found.append(
            [
                program.tensors[own.outputs[0]].shape[-1]
                for own in program.instructions
                if own.op.type == "MatMul" and own.inputs[0] not in program.constants
            ]
        )
    return found


def results(path, x, **options):
    executor = irrun.GraphExecutor(path, **options)
    return list(executor.run([x]).values()), executor


def agree(path, x, wanted, engine="onednn"):
    """The results are those of the reference, and products have so many columns."""
    expected, _ = results(path, x, engine="reference")
    found, executor = results(path, x, engine=engine)
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, 2e-5, 2e-5)
    assert [sorted(widths) for widths in products(executor)] == [sorted(wanted)]


@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize("turned", [(True, True, True), (False, False, False), (True, False, True)])
def test_queries_keys_and_values_are_one_product(rows, turned, tmp_path):
    b = model()
    x = anything(b, "f4", (2, rows, 16))
    read(b, branches(b, x, turned))
    data = np.random.default_rng(5).standard_normal((2, rows, 16), F32)
    agree(saved(b, tmp_path), data, [sum(WIDTHS)])


@pytest.mark.parametrize("columns", [(24, 24, 24), (8, 136, 8)])
def test_attention_reads_them_where_they_lie(columns, tmp_path):
    b = model()
    x = anything(b, "f4", (1, 30, 16))
    parts = branches(b, x, biases=(True, True, True), widths=columns)
    query, key, value = (b.one("Transpose-1", own, i64(b, [0, 2, 1, 3])) for own in heads(b, parts))
    if columns[1] != 24:
        key = value = query
    b.result(b.one("ScaledDotProductAttention-13", query, key, value, causal=False))
    data = np.random.default_rng(5).standard_normal((1, 30, 16), F32)
    agree(saved(b, tmp_path), data, [sum(columns)] if columns[1] == 24 else [columns[0]])


def test_what_is_a_result_or_changed_at_once_is_a_product_of_its_own(tmp_path):
    b = model()
    x = anything(b, "f4", (2, 30, 16))
    first, second, third = branches(b, x)
    b.result(first)
    b.result(b.one("ReLU-1", second))
    read(b, [third])
    data = np.random.default_rng(5).standard_normal((2, 30, 16), F32)
    agree(saved(b, tmp_path), data, [*WIDTHS])


def test_a_sum_that_is_none_of_a_number_for_each_column_stays(tmp_path):
    b = model()
    x = anything(b, "f4", (2, 24, 16))
    parts = branches(b, x, biases=(False, False, False))
    others = [np.ones((24, 1), F32), F32(2), np.arange(24 * 40, dtype=F32).reshape(24, 40)]
    for part, other in zip(parts, others, strict=True):
        read(b, [b.one("Add-1", part, b.constant(other), **ADD)])
    data = np.random.default_rng(5).standard_normal((2, 24, 16), F32)
    agree(saved(b, tmp_path), data, [*WIDTHS])


def test_products_of_several_tensors_are_those_of_each(tmp_path):
    b = model()
    for name in ("x", "y"):
        data = anything(b, "f4", (1, 30, 16), name)
        read(b, branches(b, data))
    path = saved(b, tmp_path)
    rng = np.random.default_rng(5)
    inputs = [rng.standard_normal((1, 30, 16), F32) for _ in range(2)]
    ours, plain = (irrun.GraphExecutor(path, engine=engine) for engine in ("onednn", "reference"))
    for own, other in zip(ours.run(inputs).values(), plain.run(inputs).values(), strict=True):
        np.testing.assert_allclose(own, other, 2e-5, 2e-5)
    assert products(ours) == [[sum(WIDTHS)] * 2]


def test_of_all_sizes_one_program_has_laid_out_the_weights(tmp_path):
    b = model()
    x = anything(b, "f4", (-1, -1, 16))
    read(b, branches(b, x))
    path = saved(b, tmp_path)
    ours, plain = (irrun.GraphExecutor(path, engine=engine) for engine in ("auto", "reference"))
    rng = np.random.default_rng(3)
    for shape in [(2, 30), (2, 41), (3, 17), (1, 1), (1, 5), (2, 30), (5, 90), (2, 12), (1, 6)]:
        data = rng.standard_normal((*shape, 16), F32)
        for own, other in zip(ours.run([data]).values(), plain.run([data]).values(), strict=True):
            np.testing.assert_allclose(own, other, 2e-5, 2e-5)
    programs = [kept.program for kept in ours._whole.preparation._kept.values()]
    stacked = {id(own) for p in programs for own in p.compressed.values() if isinstance(own, StackedWeights)}
    assert len(stacked) == 1
    parts = [part for program in programs for own in program.compressed.values() for part in own.parts]
    whole = sum(WIDTHS) * 16
    assert len({part.__array_interface__["data"][0] for part in parts}) == 3  # as they lie in the file
    assert not any(array.size == whole for program in programs for array in program.constants.values())


def test_who_looks_at_the_tensors_sees_each_product(tmp_path):
    b = model()
    x = anything(b, "f4", (2, 30, 16))
    read(b, branches(b, x))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine="onednn")
    data = np.random.default_rng(5).standard_normal((2, 30, 16), F32)
    seen = []
    executor.run([data], observer=lambda event: seen.append((event.layer.type, event.array.shape)))
    assert {shape[-1] for type, shape in seen if type == "MatMul"} == {*WIDTHS}


def test_a_profile_says_how_many_products_are_one(tmp_path):
    b = model()
    x = anything(b, "f4", (2, 30, 16))
    read(b, branches(b, x))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine="onednn")
    profile = Profile()
    executor.run([np.ones((2, 30, 16), F32)], profile=profile)
    (entry,) = (entry for entry in profile.entries.values() if "MatMul" in entry.type)
    assert (entry.type, entry.shape) == ("MatMul x 3 + Add", "f32[2, 30, 80]")
    assert entry.operations == 2 * 60 * 16 * 80
    assert ["MatMul", "onednn", "1"] in [line.split()[:3] for line in profile.table().splitlines()]


def test_nothing_is_laid_out_anew_for_a_single_run(tmp_path):
    b = model()
    x = anything(b, "f4", (2, 30, 16))
    read(b, branches(b, x))
    data = np.random.default_rng(5).standard_normal((2, 30, 16), F32)
    _, executor = results(saved(b, tmp_path), data, engine="onednn", once=True)
    assert [sorted(widths) for widths in products(executor)] == [sorted(WIDTHS)]


def test_small_matrices_stay_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(stacking, "LEAST", 1 + 16 * sum(WIDTHS))
    b = model()
    read(b, branches(b, anything(b, "f4", (2, 30, 16))))
    data = np.random.default_rng(5).standard_normal((2, 30, 16), F32)
    agree(saved(b, tmp_path), data, [*WIDTHS])


def test_a_sum_that_broadcasts_otherwise_stays(tmp_path):
    b = model()
    x = anything(b, "f4", (1, 16))
    first, second, third = branches(b, x, biases=(False, False, False))
    summed = b.one("Add-1", first, b.constant(np.ones((1, 24), F32)), auto_broadcast="pdpd")
    for part in (summed, second, third):
        b.result(turned_and_multiplied(b, part))
    agree(saved(b, tmp_path), np.ones((1, 16), F32), [24, 56])


@pytest.mark.parametrize("reader", ["merged", "reduced", "result"])
def test_what_is_read_sooner_where_it_lies_densely_stays(reader, tmp_path):
    b = model()
    x = anything(b, "f4", (2, 30, 16))
    for part in branches(b, x):
        if reader == "merged":
            b.result(b.one("Abs-1", b.one("Reshape-1", part, i64(b, [2, -1]), special_zero=False)))
        else:
            (view,) = heads(b, [part])
            b.result(view if reader == "result" else b.one("ReduceMax-1", view, i64(b, [3]), keep_dims=False))
    data = np.random.default_rng(5).standard_normal((2, 30, 16), F32)
    agree(saved(b, tmp_path), data, [*WIDTHS])


def test_a_run_without_rows_lays_out_nothing(tmp_path):
    b = model()
    x = anything(b, "f4", (-1, -1, 16))
    read(b, branches(b, x))
    executor = irrun.GraphExecutor(saved(b, tmp_path))
    for rows in (5, 0, 6, 7, 0):
        assert [own.shape[1] for own in executor.run([np.ones((2, rows, 16), F32)]).values()] == [rows] * 3
    assert not executor._setting._dense


def test_matrices_that_nobody_has_any_more_are_gone(tmp_path, monkeypatch):
    """Those that depend on sizes are made anew for each."""
    monkeypatch.setattr(preparation, "MAX_INSTRUCTIONS", 0)
    b = model()
    x = anything(b, "f4", (-1, 16))
    size = b.one("ShapeOf-3", x, output_type="i64")
    factor = b.one("Convert-1", b.one("Gather-8", size, i64(b, [0]), i64(b, 0)), destination_type="f32")
    for number, columns in enumerate(WIDTHS):
        matrix = b.one("Multiply-1", b.constant(weights(number, columns)), factor, **ADD)
        part = b.one("MatMul-1", x, matrix, transpose_a=False, transpose_b=True)
        b.result(turned_and_multiplied(b, part))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine="onednn")
    for rows in range(2, 40):
        executor.run([np.ones((rows, 16), F32)])
    gc.collect()
    assert len(executor._setting._stacked) <= 2 * preparation.LEAST_KEPT
