"""Products of one tensor with several constant matrices as one product."""

from __future__ import annotations

import numpy as np
import pytest

import irrun
from irrun.engines.stacked import StackedWeights
from irrun.run.profile import Profile
from run.models import ADD, anything, i64, model, saved

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


def heads(b, parts):
    return [b.one("Reshape-1", part, i64(b, [0, 0, -1, 8]), special_zero=True) for part in parts]


def products(executor):
    """Of each program that has been made for sizes, the columns of its products."""
    found = []
    for kept in executor._whole.preparation._kept.values():
        program = kept.program
        found.append(
            [program.tensors[own.outputs[0]].shape[-1] for own in program.instructions if own.op.type == "MatMul"]
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
    for part in heads(b, branches(b, x, turned)):
        b.result(part)
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
    b.result(heads(b, [third])[0])
    data = np.random.default_rng(5).standard_normal((2, 30, 16), F32)
    agree(saved(b, tmp_path), data, [*WIDTHS])


def test_a_sum_that_is_none_of_a_number_for_each_column_stays(tmp_path):
    b = model()
    x = anything(b, "f4", (2, 24, 16))
    parts = branches(b, x, biases=(False, False, False))
    others = [np.ones((24, 1), F32), F32(2), np.arange(24 * 40, dtype=F32).reshape(24, 40)]
    for part, other in zip(parts, others, strict=True):
        b.result(heads(b, [b.one("Add-1", part, b.constant(other), **ADD)])[0])
    data = np.random.default_rng(5).standard_normal((2, 24, 16), F32)
    agree(saved(b, tmp_path), data, [*WIDTHS])


def test_products_of_several_tensors_are_those_of_each(tmp_path):
    b = model()
    for name in ("x", "y"):
        data = anything(b, "f4", (1, 30, 16), name)
        for part in heads(b, branches(b, data)):
            b.result(part)
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
    for part in heads(b, branches(b, x)):
        b.result(part)
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
    for part in heads(b, branches(b, x)):
        b.result(part)
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine="onednn")
    data = np.random.default_rng(5).standard_normal((2, 30, 16), F32)
    seen = []
    executor.run([data], observer=lambda event: seen.append((event.layer.type, event.array.shape)))
    assert {shape[-1] for type, shape in seen if type == "MatMul"} == {*WIDTHS}


def test_a_profile_says_how_many_products_are_one(tmp_path):
    b = model()
    x = anything(b, "f4", (2, 30, 16))
    for part in heads(b, branches(b, x)):
        b.result(part)
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine="onednn")
    profile = Profile()
    executor.run([np.ones((2, 30, 16), F32)], profile=profile)
    (entry,) = (entry for entry in profile.entries.values() if "MatMul" in entry.type)
    assert (entry.type, entry.shape) == ("MatMul x 3 + Add", "f32[2, 30, 80]")
    assert entry.operations == 2 * 60 * 16 * 80
    assert profile.table().splitlines()[-2].split()[:3] == ["MatMul", "onednn", "1"]


def test_nothing_is_laid_out_anew_for_a_single_run(tmp_path):
    b = model()
    x = anything(b, "f4", (2, 30, 16))
    for part in heads(b, branches(b, x)):
        b.result(part)
    data = np.random.default_rng(5).standard_normal((2, 30, 16), F32)
    _, executor = results(saved(b, tmp_path), data, engine="onednn", once=True)
    assert [sorted(widths) for widths in products(executor)] == [sorted(WIDTHS)]
