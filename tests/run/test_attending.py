"""Attention that is written out is computed in one step, and only where it is one."""

import numpy as np
import pytest

import irrun
from irrun.run import passes
from irrun.run.passes.attending import attend
from irrun.testing import assert_close
from run.models import ADD, PLAIN, anything, i64, model, saved
from run.verification import verify

F32 = np.float32
ENGINES = pytest.mark.parametrize("engine", ["numpy", "onednn", "auto"])
NAME = "ScaledDotProductAttention-13"
BATCH, HEADS, ROWS, KEYS, SIZE, WIDTH = 2, 3, 10, 12, 8, 6


@pytest.fixture(autouse=True)
def _verified(monkeypatch):
    """Every program is held to its invariants right behind the pass."""

    def checked(program, setting):
        program = attend(program, setting)
        verify(program)
        return program

    monkeypatch.setattr(passes, "PASSES", tuple(checked if own is attend else own for own in passes.PASSES))


def attentions(ours):
    """How many there are in each program that was made for shapes."""
    kept = [kept.program for kept in ours._whole.preparation._kept.values()]
    return [sum(part.op.name == NAME for own in p.instructions for part in own.parts) for p in kept]


def swapped(b, value, order=None):
    rank = len(value.shape)
    return b.one("Transpose-1", value, i64(b, order or [*range(rank - 2), rank - 1, rank - 2]))


def scaled(b, scores, how):
    number = b.constant(F32(how.get("number", 0.3)).reshape(how.get("shape", ())))
    if how.get("by", "times") == "over":
        return b.one("Divide-1", scores, number, m_pythondiv=True, **ADD)
    if how["by"] == "at most":
        return b.one("Minimum-1", scores, number, **ADD)
    if how["by"] == "less":
        return b.one("Subtract-1", scores, number, **ADD)
    first, second = (number, scores) if how.get("first") else (scores, number)
    return b.one("Multiply-1", first, second, **ADD)


def written(b, query, key, value, mask=None, *, turned=True, scale=None, first=False, axis=-1, softmax="SoftMax-8"):
    """The product of queries and keys, times a number, with a mask, the softmax of it, times values."""
    scores = b.one("MatMul-1", query, key, transpose_a=False, transpose_b=turned)
    if scale is not None:
        scores = scaled(b, scores, scale)
    if mask is not None:
        scores = b.one("Add-1", *((mask, scores) if first else (scores, mask)), **ADD)
    return b.one("MatMul-1", b.one(softmax, scores, axis=axis), value, **PLAIN), scores


def given(b, lead=(BATCH, HEADS), rows=ROWS, keys=KEYS):
    return [anything(b, "f4", (*lead, *own)) for own in ((rows, SIZE), (keys, SIZE), (keys, WIDTH))]


def arrays(ours, seed=0, **sizes):
    """Random inputs; sizes that are open, by the numbers of their axes."""
    random = np.random.default_rng(seed)
    found = []
    for number, info in enumerate(ours.inputs):
        shape = [size if isinstance(size, int) else sizes[f"s{number}_{axis}"] for axis, size in enumerate(info.shape)]
        found.append(random.standard_normal(shape).astype(F32))
    return found


def held(b, folder, engine, count=1, inputs=None):
    """What an engine computes is what the ops' kernels do, in so many attentions."""
    path = saved(b, folder)
    ours = irrun.GraphExecutor(path, engine=engine)
    inputs = arrays(ours) if inputs is None else inputs
    found, expected = ours.run(inputs), irrun.GraphExecutor(path, engine="reference").run(inputs)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], 1e-4, 1e-5)
    assert attentions(ours) == [count]
    return found


MASKS = {
    "none": None,
    "of keys": (1, 1, 1, KEYS),
    "of rows and keys": (ROWS, KEYS),
    "of each head": (1, HEADS, ROWS, KEYS),
    "of each batch": (BATCH, 1, 1, KEYS),
    "of rows": (1, 1, ROWS, 1),
}
SCALES = {
    "none": None,
    "times": {"by": "times"},
    "number first": {"by": "times", "first": True},
    "over": {"by": "over", "number": 2.8284271},
    "of axes": {"by": "times", "shape": (1, 1, 1, 1)},
    "below 0": {"by": "over", "number": -3},
    "of one": {"by": "times", "number": 1},
}


@ENGINES
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("scale", SCALES)
def test_steps_that_are_one(scale, mask, engine, tmp_path):
    b = model()
    query, key, value = given(b)
    hidden = None if MASKS[mask] is None else anything(b, "f4", MASKS[mask])
    b.result(written(b, query, key, value, hidden, scale=SCALES[scale], first=scale == "over")[0])
    held(b, tmp_path, engine, count=int(mask != "of rows"))


@ENGINES
@pytest.mark.parametrize("axis", [-1, 3])
@pytest.mark.parametrize("mask", [(ROWS, KEYS), (BATCH, HEADS, 1, KEYS)])
def test_constant_masks(mask, axis, engine, tmp_path):
    b = model()
    numbers = np.where(np.random.default_rng(0).random(mask) < 0.3, -1e4, 0).astype(F32)
    b.result(written(b, *given(b), b.constant(numbers), scale=SCALES["times"], axis=axis)[0])
    held(b, tmp_path, engine)


@ENGINES
@pytest.mark.parametrize("way", ["alone", "of heads", "of heads in front", "of rows"])
def test_keys_that_are_turned_before(way, engine, tmp_path):
    """They are read where they lay, if their elements lie next to one another there."""
    b = model()
    query, value = (anything(b, "f4", (BATCH, HEADS, *own)) for own in ((ROWS, SIZE), (KEYS, WIDTH)))
    shape, order = {
        "alone": ((BATCH, HEADS, KEYS, SIZE), [0, 1, 3, 2]),
        "of heads": ((BATCH, KEYS, HEADS, SIZE), [0, 2, 3, 1]),
        "of heads in front": ((KEYS, BATCH, HEADS, SIZE), [1, 2, 3, 0]),
        "of rows": ((BATCH, SIZE, HEADS, KEYS), [0, 2, 1, 3]),
    }[way]
    key = swapped(b, anything(b, "f4", shape), order)
    b.result(written(b, query, key, value, turned=False, scale=SCALES["over"])[0])
    held(b, tmp_path, engine, count=int(way != "of rows"))


@ENGINES
@pytest.mark.parametrize("lead", [(5,), (2, 3), (2, 1, 3), (1, 1)])
def test_any_number_of_axes(lead, engine, tmp_path):
    b = model()
    b.result(written(b, *given(b, lead), scale=SCALES["times"])[0])
    held(b, tmp_path, engine)


@ENGINES
def test_heads_that_share_keys_by_broadcasting(engine, tmp_path):
    b = model()
    query = anything(b, "f4", (BATCH, HEADS, ROWS, SIZE))
    key, value = (anything(b, "f4", (BATCH, 1, KEYS, size)) for size in (SIZE, WIDTH))
    b.result(written(b, query, key, value)[0])
    held(b, tmp_path, engine)


@ENGINES
@pytest.mark.parametrize("rows", [1, 7, 100, 300])
def test_sizes_that_a_run_tells(rows, engine, tmp_path):
    """Batches, rows and keys, in any order."""
    b = model()
    query, key, value = (anything(b, "f4", (-1, HEADS, -1, size)) for size in (SIZE, SIZE, WIDTH))
    mask = anything(b, "f4", (-1, 1, -1, -1))
    b.result(written(b, query, key, value, mask, scale=SCALES["over"])[0])
    path = saved(b, tmp_path)
    ours, plain = irrun.GraphExecutor(path, engine=engine), irrun.GraphExecutor(path, engine="reference")
    for batch, keys in ((1, 40), (2, 9), (2, 200), (3, 40), (1, 1), (2, 130)):
        random = np.random.default_rng(keys)
        shapes = (batch, HEADS, rows, SIZE), (batch, HEADS, keys, SIZE), (batch, HEADS, keys, WIDTH)
        inputs = [random.standard_normal(shape).astype(F32) for shape in (*shapes, (batch, 1, rows, keys))]
        for found, expected in zip(ours.run(inputs).values(), plain.run(inputs).values(), strict=True):
            np.testing.assert_allclose(found, expected, 1e-4, 1e-5)
    assert any(attentions(ours)) or rows == 1


def _read_by_others(b):
    y, scores = written(b, *given(b))
    b.result(scores)
    return y


def _along_rows(b):
    return written(b, *given(b, keys=ROWS), axis=-2)[0]


def _of_logarithms(b):
    return written(b, *given(b), softmax="LogSoftmax-5")[0]


def _less_a_number(b):
    return written(b, *given(b), scale={"by": "less"})[0]


def _with_a_number_for_a_mask(b):
    return written(b, *given(b), anything(b, "f4", ()))[0]


def _times_more_than_one(b):
    return written(b, *given(b), scale={"by": "times", "number": 1.5})[0]


def _at_most_a_large_number(b):
    return written(b, *given(b), scale={"by": "at most", "number": 1e30})[0]


def _times_nothing(b):
    return written(b, *given(b), scale={"by": "times", "number": 0})[0]


def _of_more_batches(b):
    return written(b, *given(b, (1, HEADS)), anything(b, "f4", (BATCH, 1, 1, KEYS)))[0]


def _of_one_axis(b):
    return written(b, *given(b), anything(b, "f4", (KEYS,)))[0]


def _of_constant_keys(b):
    query, _, value = given(b)
    key = b.constant(np.random.default_rng(0).standard_normal((BATCH, HEADS, KEYS, SIZE)).astype(F32))
    return written(b, query, key, value)[0]


def _of_matrices(b):
    return written(b, *given(b, ()))[0]


def _of_turned_values(b):
    query, key, value = given(b)
    scores = b.one("MatMul-1", query, key, transpose_a=False, transpose_b=True)
    return b.one(
        "MatMul-1", b.one("SoftMax-8", scores, axis=-1), swapped(b, value), transpose_a=False, transpose_b=True
    )


OTHERS = (
    *(_read_by_others, _along_rows, _of_logarithms, _less_a_number, _times_nothing, _of_more_batches),
    *(_with_a_number_for_a_mask, _times_more_than_one, _at_most_a_large_number),
    *(_of_one_axis, _of_constant_keys, _of_matrices, _of_turned_values),
)


@pytest.mark.parametrize("build", OTHERS)
def test_what_is_none(build, tmp_path):
    b = model()
    b.result(build(b))
    held(b, tmp_path, "auto", count=0)


@ENGINES
def test_rows_that_see_nothing_and_numbers_that_are_none(engine, tmp_path):
    """NaN, as the softmax of -inf alone is; what is no number stays in its row, or column."""
    b = model()
    b.result(written(b, *given(b), anything(b, "f4", (ROWS, KEYS)))[0])
    path = saved(b, tmp_path)
    ours, plain = irrun.GraphExecutor(path, engine=engine), irrun.GraphExecutor(path, engine="reference")
    query, key, value, mask = arrays(ours)
    mask[1], mask[3], mask[4, 2:] = -np.inf, -3.4e38, -np.inf
    query[0, 1, 5, 2], value[1, 0, 3, 4], key[1, 2, 6, 0] = np.nan, np.inf, np.nan
    (found,), (expected,) = (own.run([query, key, value, mask]).values() for own in (ours, plain))
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5)
    assert np.isnan(found[:, :, 1]).all()
    assert np.isfinite(found[0, 0, 3:5]).all()


def test_what_is_watched_is_computed_step_by_step(tmp_path):
    b = model()
    b.result(written(b, *given(b), scale=SCALES["times"])[0])
    ours = irrun.GraphExecutor(saved(b, tmp_path))
    seen = []
    ours.run(arrays(ours), observer=lambda event: seen.append(event.layer.type))
    assert {"MatMul", "Multiply", "SoftMax"} <= {*seen}
    assert "ScaledDotProductAttention" not in seen


@pytest.mark.parametrize("precision", ["declared", "f16", "f64"])
def test_where_each_layer_is_rounded(precision, tmp_path):
    b = model()
    b.result(written(b, *given(b))[0])
    ours = irrun.GraphExecutor(saved(b, tmp_path), precision=precision)
    ours.run(arrays(ours))
    assert not any(attentions(ours))


@pytest.mark.filterwarnings("ignore:bf16 is emulated")
def test_scores_are_not_rounded_to_bf16(tmp_path):
    """Queries, keys, values and results are, as those of attention are that is one op."""
    b = model()
    lead = (1, 4)
    query, key, value = (anything(b, "f4", (*lead, 64, 32)) for _ in range(3))
    b.result(written(b, query, key, value, scale={"by": "times", "number": 32**-0.5})[0])
    path = saved(b, tmp_path)
    ours = irrun.GraphExecutor(path, precision="bf16")
    if not ours._setting.bf16:
        pytest.skip("oneDNN is not installed, or the processor does not multiply bf16")
    inputs = arrays(ours)
    (found,) = ours.run([5 * inputs[0], *inputs[1:]]).values()
    (exact,) = irrun.GraphExecutor(path, engine="reference", precision="f64").run([5 * inputs[0], *inputs[1:]]).values()
    assert attentions(ours) == [1]
    assert_close(found, exact, precision="bf16")
