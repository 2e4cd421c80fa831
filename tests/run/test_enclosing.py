"""Rows of instructions whose sizes only the data tell are programs of their own, for the sizes that come again."""

import threading

import numpy as np
import pytest

import irrun
from irrun.run.preparation import MAX_PATIENT
from irrun.run.profile import Profile
from run.models import ADD, PLAIN, anything, branch, i64, model, saved

F32 = np.float32
ENGINES = pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "check"])
WEIGHTS = np.random.default_rng(0).normal(0, 1, (2, 3, 3)).astype(F32)
ROWS = 8


def experts(b, table=None):
    """Rows of x [8, 3] where each of two masks is not 0: times a matrix, relu, and put back in their places."""
    x = anything(b, "f4", (ROWS, 3))
    y = b.constant(np.zeros((ROWS, 3), F32))
    for weights in WEIGHTS:
        places = b.one("Squeeze-1", b.one("NonZero-3", anything(b, "f4", (ROWS,))), i64(b, [0]))
        rows = b.one("Gather-8", x, places, i64(b, 0), batch_dims=0)
        rows = b.one("ReLU-1", b.one("MatMul-1", rows, b.constant(weights), **PLAIN))
        y = b.one("ScatterNDUpdate-3", y, b.one("Unsqueeze-1", places, i64(b, [1])), rows)
    return y


def routed(folder, engine, **options):
    b = model()
    b.result(experts(b))
    return irrun.GraphExecutor(saved(b, folder), engine=engine, **options)


def expected(x, *masks):
    y = np.zeros_like(x)
    for weights, mask in zip(WEIGHTS, masks, strict=True):
        y[mask != 0] = np.maximum(x[mask != 0] @ weights, 0)
    return y


def drawn(rng, *counts):
    """x, and a mask for each count with so many places that are not 0."""
    masks = [np.zeros(ROWS, F32) for _ in counts]
    for mask, count in zip(masks, counts, strict=True):
        mask[rng.choice(ROWS, count, replace=False)] = 1
    return [rng.normal(0, 1, (ROWS, 3)).astype(F32), *masks]


def enclosures(ours):
    (prepared,) = ours._whole.preparation._kept.values()
    return [s.preparation for n, s in prepared.specializations.items() if prepared.program.instructions[n].enclosed]


@ENGINES
def test_sizes_that_come_again_and_others(engine, tmp_path):
    ours, rng = routed(tmp_path, engine), np.random.default_rng(0)
    for counts in [(3, 2), (3, 2), (3, 2), (1, 2), (0, 0), (0, 0), (0, 8), (3, 2), (8, 1), (1, 1)] * 2:
        data = drawn(rng, *counts)
        (result,) = ours.run(data).values()
        np.testing.assert_allclose(result, expected(*data), atol=1e-5)
    if engine != "reference":
        first, second = enclosures(ours)
        assert {shapes for shapes, _ in first._kept} == {((1, n), (8, 3)) for n in (0, 1, 3, 8)}
        assert {shapes for shapes, _ in second._kept} == {((1, n), (8, 3), (8, 3)) for n in (0, 1, 2, 8)}
        programs = [kept.program for kept in first._kept.values() if kept.program.results]
        assert any({i.by for i in program.instructions} & {"numpy", "onednn"} for program in programs)


@pytest.mark.parametrize("multiplied", [False, True])
@pytest.mark.parametrize("in_a_branch", [False, True])
def test_how_often_sizes_come_before_they_are_prepared(multiplied, in_a_branch, tmp_path):
    """The second time where there are products, else the ninth."""
    b, x = model(), np.random.default_rng(5).normal(0, 1, (ROWS, 3)).astype(F32)
    data, mask = anything(b, "f4", (ROWS, 3)), anything(b, "f4", (ROWS,))
    places = b.one("Squeeze-1", b.one("NonZero-3", mask), i64(b, [0]))

    def row(b, data, places):
        rows = b.one("Gather-8", data, places, i64(b, 0), batch_dims=0)
        rows = b.one("MatMul-1", rows, b.constant(WEIGHTS[0]), **PLAIN) if multiplied else rows
        return b.one("Abs-1", b.one("Sqrt-1", b.one("ReLU-1", b.one("Negative-1", rows))))

    if in_a_branch:
        bodies = []
        for _ in range(2):
            body = model()
            bodies.append((body, row(body, anything(body, "f4", (ROWS, 3)), anything(body, "i8", (-1,)))))
        b.result(branch(b, anything(b, "?", ()), bodies, data, places))
    else:
        b.result(row(b, data, places))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine="numpy")
    made = []
    for count in [3, 2, 3, 3, 3, 2, 3, 3, 3, 3, 3, 2, 3]:
        _, mask = drawn(np.random.default_rng(len(made)), count)
        (result,) = ours.run([x, mask, *([np.True_] if in_a_branch else [])]).values()
        wanted = x[mask != 0] @ WEIGHTS[0] if multiplied else x[mask != 0]
        np.testing.assert_allclose(result, np.sqrt(np.maximum(-wanted, 0)), atol=1e-5)
        inner = ours._whole.bodies.made.values() if in_a_branch else enclosures(ours)
        made.append(sum(len(one._kept) for one in inner))
    assert made == ([0, 0, 1, 1, 1, *[2] * 8] if multiplied else [0] * 10 + [1, 1, 1])


@ENGINES
def test_sizes_that_a_body_tells(engine, tmp_path):
    """Rows of x where a mask is not 0, or all of them, as a condition has it: times a matrix and relu."""
    b, bodies = model(), []
    x, chosen, mask = anything(b, "f4", (ROWS, 3)), anything(b, "?", ()), anything(b, "f4", (ROWS,))
    for all_of_them in (False, True):
        body = model()
        found = anything(body, "f4", (ROWS,))
        if all_of_them:
            found = body.one("Add-1", body.one("Abs-1", found), body.constant(F32([1])), **ADD)
        bodies.append((body, body.one("Squeeze-1", body.one("NonZero-3", found), i64(body, [0]))))
    rows = b.one("Gather-8", x, branch(b, chosen, bodies, mask), i64(b, 0), batch_dims=0)
    b.result(b.one("ReLU-1", b.one("MatMul-1", rows, b.constant(WEIGHTS[0]), **PLAIN)))
    ours, rng = irrun.GraphExecutor(saved(b, tmp_path), engine=engine), np.random.default_rng(3)
    for count, some in [(3, True), (3, True), (3, False), (0, True), (0, True), (5, False), (3, True)] * 2:
        x, mask = drawn(rng, count)
        (result,) = ours.run([x, np.bool_(some), mask]).values()
        wanted = np.maximum((x[mask != 0] if some else x) @ WEIGHTS[0], 0)
        np.testing.assert_allclose(result, wanted, atol=1e-5)
    if engine != "reference":
        (inner,) = enclosures(ours)
        assert {shapes for shapes, _ in inner._kept} == {((8, 3), (n,)) for n in (0, 3, 8)}


@ENGINES
def test_sizes_of_random_numbers(engine, tmp_path):
    """Rows of x where a mask is not 0, and 0 times as many random numbers: their sum times a matrix, and relu."""
    b = model()
    x = anything(b, "f4", (ROWS, 3))
    places = b.one("Squeeze-1", b.one("NonZero-3", anything(b, "f4", (ROWS,))), i64(b, [0]))
    rows = b.one("Gather-8", x, places, i64(b, 0), batch_dims=0)
    sizes, zero, one = b.one("ShapeOf-3", rows, output_type="i64"), b.constant(F32(0)), b.constant(F32(1))
    noise = b.one("RandomUniform-8", sizes, zero, one, output_type="f32", global_seed=1, op_seed=2)
    rows = b.one("Add-1", b.one("Multiply-1", noise, zero, **ADD), rows, **ADD)
    b.result(b.one("ReLU-1", b.one("MatMul-1", rows, b.constant(WEIGHTS[0]), **PLAIN)))
    ours, rng = irrun.GraphExecutor(saved(b, tmp_path), engine=engine), np.random.default_rng(4)
    for count in [3, 3, 3, 0, 0, 5, 3]:
        x, mask = drawn(rng, count)
        (result,) = ours.run([x, mask]).values()
        np.testing.assert_allclose(result, np.maximum(x[mask != 0] @ WEIGHTS[0], 0), atol=1e-5)
    if engine != "reference":
        _, inner = enclosures(ours)  # before the random numbers, and behind them
        assert {shapes for shapes, _ in inner._kept} == {((n, 3), (n, 3)) for n in (0, 3)}


def best(b, scores, mask, most):
    """The scores where a mask is not 0, the `most` best of these, and as many ones: of sizes that sizes tell."""
    places = b.one("NonZero-3", mask)
    found = b.one("Gather-8", scores, b.one("Squeeze-1", places, i64(b, [0])), i64(b, 0), batch_dims=0)
    size = b.one("ShapeOf-3", found, output_type="i64")
    count = b.one("ReduceMin-1", b.one("Concat-1", i64(b, [most]), size, axis=0), i64(b, [0]), keep_dims=False)
    values, _ = b.op("TopK-11", found, count, axis=0, mode="max", sort="value")
    return values, b.one("Broadcast-3", b.constant(F32(1)), b.one("ShapeOf-3", values, output_type="i32"))


@ENGINES
def test_sizes_that_are_worked_with_belong_to_a_row(engine, tmp_path):
    """What reads two rows before they end waits for them. Of nothing that was found nothing is computed."""
    b = model()
    scores, masks = anything(b, "f4", (ROWS,)), [anything(b, "f4", (ROWS,)) for _ in range(2)]
    (one, ones), (two, twos) = (best(b, scores, mask, most) for mask, most in zip(masks, (3, 2), strict=True))
    b.result(b.one("Concat-1", one, two, axis=0))
    b.result(b.one("Concat-1", b.one("Add-1", ones, one, **ADD), twos, axis=0))
    ours, rng = irrun.GraphExecutor(saved(b, tmp_path), engine=engine), np.random.default_rng(6)
    for counts in [*[(5, 1)] * 10, (0, 4), (0, 0), (8, 8), *[(0, 4)] * 9, (2, 2), (5, 1)]:
        _, *given = drawn(rng, *counts)
        scores = rng.permutation(ROWS).astype(F32)
        first, second = ours.run([scores, *given]).values()
        wanted = [np.sort(scores[mask != 0])[::-1][:most] for mask, most in zip(given, (3, 2), strict=True)]
        np.testing.assert_array_equal(first, np.concatenate(wanted))
        np.testing.assert_array_equal(second, np.concatenate([wanted[0] + 1, np.ones_like(wanted[1])]))
    if engine != "reference":
        inner, (prepared,) = enclosures(ours), ours._whole.preparation._kept.values()
        ops = [instruction.op.name for instruction in prepared.program.instructions]
        assert ops == ["NonZero-3"] * 2 + ["Enclosed-0"] * 2 + ["Concat-1"] * 2
        of_none = [kept.program for one in inner for (shapes, _), kept in one._kept.items() if (1, 0) in shapes]
        assert of_none
        assert not any(program.instructions for program in of_none)


@ENGINES
def test_rows_that_read_what_others_make_of_their_own(engine, tmp_path):
    """Three of one mask, and between them one of another mask that reads the first and is read by the last."""
    b = model()
    x, zero = anything(b, "f4", (ROWS,)), i64(b, 0)
    rows = [
        b.one("Gather-8", x, b.one("Squeeze-1", b.one("NonZero-3", anything(b, "f4", (ROWS,))), zero), zero)
        for _ in range(2)
    ]

    def total(value):
        return b.one("ReduceSum-1", value, zero, keep_dims=False)

    def times(row, number):
        return b.one("ReLU-1", b.one("Negative-1", b.one("Multiply-1", row, number, **ADD)))

    first = total(b.one("Abs-1", b.one("Exp-1", rows[0])))
    between = times(rows[1], first)
    last = times(rows[0], total(b.one("Sqrt-1", between)))
    for value in (last, between, first):
        b.result(value)
    ours, rng = irrun.GraphExecutor(saved(b, tmp_path), engine=engine), np.random.default_rng(7)
    for counts in [(3, 2), (3, 2), (3, 2), (0, 0), (0, 4), (4, 0), (0, 0), *[(3, 2)] * 8]:
        _, *masks = drawn(rng, *counts)
        x = rng.normal(0, 1, ROWS).astype(F32)
        one, two = (x[mask != 0] for mask in masks)
        wanted = np.exp(one).sum()
        inside = np.maximum(-two * wanted, 0)
        outside = np.maximum(-one * np.sqrt(inside).sum(), 0)
        for found, own in zip(ours.run([x, *masks]).values(), (outside, inside, wanted), strict=True):
            np.testing.assert_allclose(found, own, 1e-5, 1e-5)


@ENGINES
def test_more_sizes_than_are_kept(engine, tmp_path, monkeypatch):
    monkeypatch.setattr("irrun.run.preparation.MAX_PATIENT", 2)
    ours, rng = routed(tmp_path, engine), np.random.default_rng(1)
    for _ in range(3):
        for count in range(ROWS + 1):
            data = drawn(rng, count, 4)
            (result,) = ours.run(data).values()
            np.testing.assert_allclose(result, expected(*data), atol=1e-5)
    if engine != "reference":
        assert [len(inner._kept) for inner in enclosures(ours)] == [2, 1]
    assert MAX_PATIENT > 2


def test_rows_compute_in_the_same_memory_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.setattr("irrun.run.preparation.MAX_PATIENT", 2)
    ours, rng = routed(tmp_path, "numpy"), np.random.default_rng(4)
    for count in [1, 1, 2, 2, 3, 3, 4, 4, 5, 4, 5]:
        data = drawn(rng, count, ROWS - count)
        (result,) = ours.run(data).values()
        np.testing.assert_allclose(result, expected(*data), atol=1e-5)
    first, second = enclosures(ours)
    (block,) = first._blocks._free
    assert second._blocks._free == [block]
    kept = {*first._kept.values(), *second._kept.values(), first._open, second._open}
    assert len(block.frames) > 2
    assert block.frames.keys() <= kept, "programs that have made way for others have no frames"


def test_memory_forgets_rows_of_a_program_that_goes(tmp_path):
    ours, data = routed(tmp_path, "numpy"), drawn(np.random.default_rng(6), 3, 2)
    for _ in range(3):
        ours.run(data)
    preparation = ours._whole.preparation
    blocks = preparation._enclosed
    (block,) = blocks._free
    assert block.frames
    (prepared,) = preparation._kept.values()
    prepared.specializations.clear()
    for own in preparation._blocks._free:
        own.clear()
    blocks.release(blocks.take(prepared))
    assert not block.frames


@ENGINES
def test_rules_that_the_data_break(engine, tmp_path):
    """Rows that two masks find are added: there must be as many; and indices behind a NonZero lie in the table."""
    b = model()
    x, places = anything(b, "f4", (4, 2)), anything(b, "i8", (4,))
    found = b.one("Squeeze-1", b.one("NonZero-3", anything(b, "f4", (4,))), i64(b, [0]))
    chosen = b.one("Gather-8", places, found, i64(b, 0), batch_dims=0)
    rows = b.one("Gather-7", x, chosen, i64(b, 0), batch_dims=0)
    b.result(b.one("Add-1", b.one("ReLU-1", rows), rows, **ADD))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    x = np.arange(8, dtype=F32).reshape(4, 2)
    for _ in range(4):
        (result,) = ours.run([x, np.int64([9, 3, 0, 9]), F32([0, 1, 1, 0])]).values()
        assert result.tolist() == [[12, 14], [0, 2]]
        with pytest.raises(irrun.ExecutionError, match=r"E401.*Gather-7 C4: `indices\[1\]` is 9, outside \[0, 4\)"):
            ours.run([x, np.int64([9, 3, 0, 9]), F32([0, 1, 0, 1])])


@ENGINES
def test_several_threads(engine, tmp_path):
    ours, wrong = routed(tmp_path, engine), []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(20):
            data = drawn(rng, *rng.integers(0, 4, 2))
            (result,) = ours.run(data).values()
            if not np.allclose(result, expected(*data), atol=1e-5):
                wrong.append(data)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@ENGINES
def test_an_observer_and_a_profile_see_each_instruction(engine, tmp_path):
    ours, rng = routed(tmp_path, engine), np.random.default_rng(2)
    for _ in range(3):
        data, seen, profile = drawn(rng, 3, 2), [], Profile()
        ours.run(data, profile=profile)
        (result,) = ours.run(data, observer=lambda event, seen=seen: seen.append(event.layer.type)).values()
        np.testing.assert_allclose(result, expected(*data), atol=1e-5)
        assert {"NonZero", "Gather", "ReLU", "ScatterNDUpdate"} <= set(seen)  # a product with its posts is one
        types = " ".join(entry.type for entry in profile.entries.values())
        assert "Enclosed" not in types
        assert "MatMul" in types


@ENGINES
def test_a_limit_of_memory(engine, tmp_path):
    """4 MB of a product of what a mask finds, [1000, 1], with itself; as often as it comes."""
    b = model()
    places = b.one("Squeeze-1", b.one("NonZero-3", anything(b, "f4", (1000,))), i64(b, [0]))
    column = b.one("Unsqueeze-1", b.one("Convert-1", places, destination_type="f32"), i64(b, [1]))
    square = b.one("MatMul-1", column, b.one("Transpose-1", column, i64(b, [1, 0])), **PLAIN)
    b.result(b.one("ReduceSum-1", b.one("Exp-1", square), i64(b, [0, 1]), keep_dims=False))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine, max_memory=3_000_000)
    for _ in range(3):
        assert np.isfinite(next(iter(ours.run([np.eye(1, 1000, dtype=F32)[0]]).values())))
        with pytest.raises(irrun.ExecutionError, match="E603"):
            ours.run([np.ones(1000, F32)])
