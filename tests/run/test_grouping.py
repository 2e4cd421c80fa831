"""Heads that share keys and values read them where they lie."""

import numpy as np
import pytest
from differential.graph import Layer

import irrun
from run.models import anything, i64, model, saved

F32 = np.float32
ENGINES = pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "check"])
HEADS, SHARED, SIZE, WIDTH = 6, 2, 4, 3


def repeated(b, past, new, name):
    """The rows that all runs have brought, [1, SHARED, length, n], for each of HEADS."""
    variable = {"variable_id": name}
    attrs = variable | {"variable_type": "f32", "variable_shape": f"?,{SHARED},?,{new.shape[3]}"}
    (read,) = b.layer(Layer("ReadValue-6", [past.ref], attrs), [past.arrays], False, False)
    whole = b.one("Concat-1", read, new, axis=2)
    b.layer(Layer("Assign-6", [whole.ref], dict(variable)), [whole.arrays], False, False)
    spread = b.one("Unsqueeze-1", whole, i64(b, 2))
    groups = HEADS // SHARED
    shape = b.one("Concat-1", b.one("ShapeOf-3", whole, output_type="i64"), axis=0)
    sizes = [b.one("Gather-8", shape, i64(b, [n]), i64(b, 0), batch_dims=0) for n in range(4)]
    target = b.one("Concat-1", sizes[0], sizes[1], i64(b, [groups]), sizes[2], sizes[3], axis=0)
    copies = b.one("Broadcast-3", spread, target, mode="bidirectional")
    return b.one("Reshape-1", copies, i64(b, [0, HEADS, -1, new.shape[3]]), special_zero=True)


def attention(folder, engine, mask="f4", shape=(1, 1, -1, -1), scale=False, sink=None):
    b = model()
    query, key = anything(b, "f4", (-1, HEADS, -1, SIZE)), anything(b, "f4", (-1, SHARED, -1, SIZE))
    value = anything(b, "f4", (-1, SHARED, -1, WIDTH))
    hidden = b.parameter([np.ones(np.abs(shape), mask)], [axis for axis, size in enumerate(shape) if size < 0])
    starts = [b.constant(np.zeros((1, SHARED, 0, n), F32)) for n in (SIZE, WIDTH)]
    keys, values = repeated(b, starts[0], key, "keys"), repeated(b, starts[1], value, "values")
    more = [b.constant(F32(0.25))] if scale else []
    more += [] if sink is None else [b.constant(sink)]
    b.result(b.one("ScaledDotProductAttention-13", query, keys, values, hidden, *more, causal=False))
    return irrun.GraphExecutor(saved(b, folder), engine=engine)


def plain(query, key, value, mask, scale, sink=-np.inf):
    """A slow obvious loop over heads and rows."""
    sink = np.broadcast_to(sink, (1, HEADS, 1, 1))
    result = np.zeros((*query.shape[:3], WIDTH))
    mask = np.broadcast_to(mask, (1, HEADS, query.shape[2], key.shape[2]))
    for head in range(HEADS):
        own = head // (HEADS // SHARED)
        for row in range(query.shape[2]):
            scores = key[0, own] @ query[0, head, row] * scale
            scores = (
                np.where(mask[0, head, row], scores, -np.inf) if mask.dtype == bool else scores + mask[0, head, row]
            )
            peak = max(scores.max(), sink[0, head, 0, 0])
            weights = np.exp(scores - peak)
            result[0, head, row] = weights / (weights.sum() + np.exp(sink[0, head, 0, 0] - peak)) @ value[0, own]
    return result


def programs(ours):
    return [kept.program for kept in ours._whole.preparation._kept.values()]


def ranks(ours):
    """Of the queries of all attentions."""
    return {
        len(program.tensors[i.inputs[0]].shape)
        for program in programs(ours)
        for i in program.instructions
        if i.op.name == "ScaledDotProductAttention-13"
    }


CASES = {
    "numbers": ("f4", (1, 1, -1, -1), False, 5),
    "booleans": ("?", (1, 1, -1, -1), True, 5),
    "of few axes": ("f4", (-1, -1), True, 5),
    "of three axes": ("f4", (1, -1, -1), False, 5),
    "for each head": ("f4", (1, HEADS, -1, -1), False, 4),
}


@ENGINES
@pytest.mark.parametrize("case", CASES)
def test_heads_that_share_keys(case, engine, tmp_path):
    type, shape, scale, rank = CASES[case]
    rng = np.random.default_rng(1)
    ours = attention(tmp_path, engine, type, shape, scale)
    keys, values = np.zeros((1, SHARED, 0, SIZE), F32), np.zeros((1, SHARED, 0, WIDTH), F32)
    for rows in (5, 1, 1, 1, 2, 2, 40, 1, 1):
        query = rng.standard_normal((1, HEADS, rows, SIZE), F32)
        key, value = (rng.standard_normal((1, SHARED, rows, n), F32) for n in (SIZE, WIDTH))
        keys, values = np.concatenate([keys, key], 2), np.concatenate([values, value], 2)
        sizes = [*[size for size in shape if size > 0], rows, keys.shape[2]]
        mask = rng.standard_normal(sizes, F32)
        if type == "?":
            mask = mask > -1
            mask[..., 0] = True
        (result,) = ours.run([query, key, value, mask]).values()
        expected = plain(query, keys, values, mask, 0.25 if scale else 0.5)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
    if engine != "reference":
        assert ranks(ours) == {rank}


@ENGINES
@pytest.mark.parametrize("heads", [1, HEADS])
def test_heads_that_share_keys_and_have_sinks(heads, engine, tmp_path):
    rng = np.random.default_rng(3)
    sink = rng.standard_normal((1, heads, 1, 1), F32)
    ours = attention(tmp_path, engine, scale=True, sink=sink)
    keys, values = np.zeros((1, SHARED, 0, SIZE), F32), np.zeros((1, SHARED, 0, WIDTH), F32)
    for rows in (70, 1, 1, 1, 2, 2, 40, 1, 1):
        query = rng.standard_normal((1, HEADS, rows, SIZE), F32)
        key, value = (rng.standard_normal((1, SHARED, rows, n), F32) for n in (SIZE, WIDTH))
        keys, values = np.concatenate([keys, key], 2), np.concatenate([values, value], 2)
        mask = rng.standard_normal((1, 1, rows, keys.shape[2]), F32)
        (result,) = ours.run([query, key, value, mask]).values()
        np.testing.assert_allclose(result, plain(query, keys, values, mask, 0.25, sink), rtol=1e-4, atol=1e-5)
    if engine != "reference":
        assert ranks(ours) == {5}


def test_somebody_who_looks_sees_the_repetition(tmp_path):
    seen = {}
    ours = attention(tmp_path, "numpy")
    rng = np.random.default_rng(2)
    given = [rng.standard_normal(s, F32) for s in ((1, HEADS, 2, SIZE), (1, SHARED, 2, SIZE), (1, SHARED, 2, WIDTH))]
    ours.run(
        [*given, np.zeros((1, 1, 2, 2), F32)], observer=lambda e: seen.setdefault(e.layer.type, e.array.shape) and None
    )
    assert seen["Reshape"] == (1, HEADS, 2, SIZE)
    assert seen["ScaledDotProductAttention"] == (1, HEADS, 2, WIDTH)


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "auto", "check"])
@pytest.mark.parametrize(
    ("keys", "values", "heads"),
    [((1, 4), (2, 2), 4), ((2, 3), (3, 2), 6), ((2, 2), (1, 4), 4), ((1, 4), (1, 4), 1), ((2, 3), (2, 3), 6)],
)
def test_keys_and_values_of_other_groups_and_queries_of_one_head(keys, values, heads, engine, tmp_path):
    def repeated(g, x, heads, group):
        copies = g.Broadcast(g.Unsqueeze(x, np.int64([2])), np.int64([1, heads, group, 3, SIZE]))
        return g.Reshape(copies, np.int64([1, heads * group, 3, SIZE]), special_zero=False)

    with irrun.build("m", opset=13) as g:
        query, key, value = (
            g.Parameter(f"f32[1,{own},{rows},{SIZE}]") for own, rows in ((heads, 2), (keys[0], 3), (values[0], 3))
        )
        g.Result(g.ScaledDotProductAttention(query, repeated(g, key, *keys), repeated(g, value, *values), causal=False))
    rng = np.random.default_rng(3)
    given = [rng.standard_normal(s, F32) for s in ((1, heads, 2, SIZE), (1, keys[0], 3, SIZE), (1, values[0], 3, SIZE))]
    (result,) = irrun.GraphExecutor(g.model, engine=engine).run(given).values()
    query, key, value = given[0], np.repeat(given[1], keys[1], 1), np.repeat(given[2], values[1], 1)
    scores = np.exp(query @ key.swapaxes(-1, -2) / 2)
    np.testing.assert_allclose(result, scores / scores.sum(-1, keepdims=True) @ value, rtol=1e-4, atol=1e-5)


@ENGINES
@pytest.mark.parametrize("shape", [(1, 1, 2, 3), (1, HEADS, 2, 3), (2, 3), (1, 2, 3)])
@pytest.mark.parametrize("open", [False, True])
def test_a_mask_beside_keys_that_a_reshape_gives_the_axis_of_copies(open, shape, engine, tmp_path):
    groups = HEADS // SHARED
    length = "?" if open else "3"

    def repeated(g, x, size):
        spread = g.Reshape(x, np.int64([0, SHARED, 1, -1, size]), special_zero=True)
        copies = g.Broadcast(spread, np.int64([1, SHARED, groups, 1, size]), mode="bidirectional")
        return g.Reshape(copies, np.int64([0, HEADS, -1, size]), special_zero=True)

    with irrun.build("m", opset=13) as g:
        query = g.Parameter(f"f32[1,{HEADS},2,{SIZE}]")
        key, value = (g.Parameter(f"f32[1,{SHARED},{length},{n}]") for n in (SIZE, WIDTH))
        mask = g.Parameter(f"f32[{','.join(map(str, shape[:-1]))},{length}]")
        g.Result(
            g.ScaledDotProductAttention(query, repeated(g, key, SIZE), repeated(g, value, WIDTH), mask, causal=False)
        )
    ours = irrun.GraphExecutor(g.model, engine=engine)
    rng = np.random.default_rng(4)
    for _ in range(3):
        given = [
            rng.standard_normal(own, F32) for own in ((1, HEADS, 2, SIZE), (1, SHARED, 3, SIZE), (1, SHARED, 3, WIDTH))
        ]
        mask = rng.standard_normal(shape, F32)
        (result,) = ours.run([*given, mask]).values()
        np.testing.assert_allclose(result, plain(*given, mask, 0.5), rtol=1e-4, atol=1e-5)
    if engine != "reference":
        assert (5 in ranks(ours)) == (shape[1:2] != (HEADS,) or len(shape) < 4)


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "auto", "check"])
@pytest.mark.parametrize("heads", ["value", "shape", "one tensor"])
def test_what_is_repeated_beyond_the_queries(heads, engine, tmp_path):
    """Keys [?, ?, length, 4] repeated to sizes that a run tells, where the queries have 1 along some axis."""
    with irrun.build("m", opset=13) as g:
        query, key, value = (g.Parameter("f32[?,?,?,4]") for _ in range(3))
        sizes = g.Parameter("i64[2]") if heads != "shape" else g.Parameter("f32[?,?]")
        front = sizes if heads != "shape" else g.ShapeOf(sizes, output_type="i64")

        def repeated(x):
            last = g.Gather(g.ShapeOf(x, output_type="i64"), np.int64([2, 3]), np.int64(0))
            return g.Broadcast(x, g.Concat(front, last, axis=0))

        one = repeated(key)
        read = (one, one, one) if heads == "one tensor" else (query, one, repeated(value))
        g.Result(g.ScaledDotProductAttention(*read, causal=False))
        g.Result(g.ReduceSum(g.Add(query, value), np.int64([0, 1, 2, 3]), keep_dims=False))
    executor = irrun.GraphExecutor(g.model, engine=engine)
    rng = np.random.default_rng(4)
    for batch, shared, length in [(1, 3, 1), (2, 1, 1), (1, 1, 1), (2, 3, 1), (1, 3, 20), (2, 1, 20)]:
        for past in range(length, length + 4):
            query = rng.standard_normal((batch, shared, length, 4), F32)
            key, value = (rng.standard_normal((1, 1, past, 4), F32) for _ in range(2))
            given = np.int64([2, 3]) if heads != "shape" else np.zeros((2, 3), F32)
            result = executor.run([query[..., :1, :], key, value, given])[0]
            if heads == "one tensor":
                query = value = np.broadcast_to(key, (2, 3, past, 4))
            scores = np.exp(query[..., :1, :] @ key.swapaxes(-1, -2) / 2)
            if heads == "one tensor":
                scores = np.exp(query @ key.swapaxes(-1, -2) / 2)
            expected = scores / scores.sum(-1, keepdims=True) @ value
            expected = np.broadcast_to(expected, (2, 3, *expected.shape[2:]))
            assert result.shape == expected.shape
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
