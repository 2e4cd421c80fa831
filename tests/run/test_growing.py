"""Variables that grow are appended to where they lie, and sizes that grow from run to run stay open in one program."""

import numpy as np
import pytest
from differential.graph import Layer

import irrun
from irrun.run.patterns import fits, grown
from irrun.run.variables import MAX_LEFT, Buffer, Memories, Variables
from run.models import ADD, PLAIN, anything, i64, model, saved

F32 = np.float32
ENGINES = pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "check"])
NAME = {"variable_id": "past"}


def cache(folder, engine="numpy", heads=2):
    """Attention over what all runs have brought: rows [batch, heads, length, 4], reordered by beams; and the rows."""
    b = model()
    rows, beams = anything(b, "f4", (-1, heads, -1, 4), "rows"), anything(b, "i4", (-1,), "beams")
    index = anything(b, "i8", (1,), "index")
    start = b.constant(np.zeros((1, max(heads, 1), 0, 4), F32))
    attrs = NAME | {"variable_type": "f32", "variable_shape": "?,?,?,4"}
    (past,) = b.layer(Layer("ReadValue-6", [start.ref], attrs), [start.arrays], False, False)
    kept = b.one("Gather-8", past, beams, i64(b, 0), batch_dims=0)
    whole = b.one("Concat-1", kept, rows, axis=2)
    b.graph.layers[whole.ref[0]].label = "whole"
    b.layer(Layer("Assign-6", [whole.ref], dict(NAME)), [whole.arrays], False, False)
    b.result(b.one("ScaledDotProductAttention-13", rows, whole, whole, causal=False))
    b.result(whole)
    b.result(b.one("GatherElements-6", b.constant(F32([1, 2])), index, axis=0))
    return irrun.GraphExecutor(saved(b, folder), engine=engine)


def some(rng, length, batch=1, heads=2):
    return rng.standard_normal((batch, heads, length, 4), F32)


def given(rows, beams=None, index=0):
    return [rows, np.int32(range(len(rows)) if beams is None else beams), np.int64([index])]


def attended(rows, whole):
    scores = rows @ whole.swapaxes(-1, -2) / 2
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ whole


@ENGINES
def test_what_runs_have_brought_is_attended_to(engine, tmp_path):
    rng = np.random.default_rng(1)
    ours = cache(tmp_path, engine)
    for _ in range(2):
        past = np.zeros((1, 2, 0, 4), F32)
        for length in (3, 1, 1, 1, 1, 2, 1, 300, 1, 1, 1):
            rows = some(rng, length)
            past = np.concatenate([past, rows], 2)
            result, whole, _ = ours.run(given(rows)).values()
            assert whole.tolist() == past.tolist()
            np.testing.assert_allclose(result, attended(rows, past), rtol=1e-5, atol=1e-6)
        ours.reset_state()


@ENGINES
def test_beams_change_places(engine, tmp_path):
    rng = np.random.default_rng(2)
    ours = cache(tmp_path, engine)
    past = np.zeros((1, 2, 0, 4), F32)
    for beams in ([0, 0, 0], [0, 1, 2], [0, 1, 2], [2, 0, 1], [0, 0, 2], [1, 1], [0, 1], [-1, 5], [0, 1], [0]):
        rows = some(rng, 1, len(beams))
        padded = np.concatenate([past, np.zeros_like(past[:1])])  # what lies outside is zeros
        past = np.concatenate([padded[[beam if -len(past) <= beam < len(past) else -1 for beam in beams]], rows], 2)
        if -1 in beams:
            past[0, :, :-1] = padded[-2, :, :]
        result, whole, _ = ours.run(given(rows, beams)).values()
        assert whole.tolist() == past.tolist()
        np.testing.assert_allclose(result, attended(rows, past), rtol=1e-5, atol=1e-6)


@ENGINES
def test_first_values_that_are_computed_stay_while_beams_in_order_are_read(engine, tmp_path):
    """What is computed of them may not be written to where they lie, as long as they are appended to."""
    b = model()
    rows, first = anything(b, "f4", (-1, -1, 4), "rows"), anything(b, "f4", (-1, -1, 4), "first")
    beams = anything(b, "i4", (-1,), "beams")
    attrs = NAME | {"variable_type": "f32", "variable_shape": "?,?,4"}
    (past,) = b.layer(Layer("ReadValue-6", [b.one("Exp-1", first).ref], attrs), [first.arrays], False, False)
    kept = b.one("Gather-8", past, beams, i64(b, 0), batch_dims=0)
    new = b.one("Multiply-1", rows, b.one("ReduceMax-1", kept, i64(b, 1), keep_dims=True), auto_broadcast="numpy")
    whole = b.one("Concat-1", kept, new, axis=1)
    b.layer(Layer("Assign-6", [whole.ref], dict(NAME)), [whole.arrays], False, False)
    b.result(whole)
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    rng = np.random.default_rng(5)
    for _ in range(3):
        one, other = (rng.standard_normal((2, length, 4), F32) for length in (5, 3))
        before = np.exp(other)
        for _ in range(2):
            (whole,) = ours.run([one, other, np.int32([0, 1])]).values()
            before = np.concatenate([before, one * before.max(1, keepdims=True)], 1)
            np.testing.assert_allclose(whole, before, rtol=1e-6)
        ours.reset_state()


def where(session):
    array = session.variables["past"]
    return array.__array_interface__["data"][0]


def test_nothing_but_the_new_rows_is_copied(tmp_path):
    rng = np.random.default_rng(3)
    session = cache(tmp_path).session()
    session.run(given(some(rng, 5)))
    first = where(session)
    for _ in range(200):
        session.run(given(some(rng, 1)))
        assert where(session) == first
    assert session.variables["past"].shape == (1, 2, 205, 4)
    for _ in range(100):
        session.run(given(some(rng, 1)))
    assert where(session) != first


def test_reordering_takes_turns_between_two_places(tmp_path):
    rng = np.random.default_rng(3)
    session = cache(tmp_path).session()
    session.run(given(some(rng, 5, 2), [0, 0]))
    places = set()
    for step in range(20):
        past = session.variables["past"].copy()
        rows = some(rng, 1, 2)
        _, whole, _ = session.run(given(rows, [1, step % 2])).values()
        assert whole.tolist() == np.concatenate([past[[1, step % 2]], rows], 2).tolist()
        places.add(where(session))
    assert len(places) <= 3


def test_reordering_leaves_alone_what_somebody_holds(tmp_path):
    rng = np.random.default_rng(3)
    session = cache(tmp_path).session()
    session.run(given(some(rng, 5, 2), [0, 0]))
    held = []
    for step in range(12):
        session.run(given(some(rng, 1, 2), [1, step % 2]))
        held.append((session.variables["past"], session.variables["past"].copy()))
    for view, values in held:
        assert view.tolist() == values.tolist()
    with pytest.raises(irrun.ExecutionError):
        session.run(given(some(rng, 1, 2), [1, 1], index=9))
    assert session.variables["past"].tolist() == held[-1][1].tolist()
    rows = some(rng, 1, 2)
    _, whole, _ = session.run(given(rows, [1, 0])).values()
    assert whole.tolist() == np.concatenate([held[-1][1][[1, 0]], rows], 2).tolist()


@pytest.mark.parametrize("seed", range(6))
def test_random_searches(seed, tmp_path):
    """Beams that stay or change places, runs that fail, states that are held and set back."""
    rng = np.random.default_rng(seed)
    session = cache(tmp_path, ("numpy", "onednn")[seed % 2]).session()
    past = some(rng, int(rng.integers(1, 9)), 3)
    session.run(given(past, [0, 0, 0]))
    held: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in range(120):
        beams = [int(rng.integers(3)) if rng.random() < 0.3 else slot for slot in range(3)]
        rows = some(rng, int(rng.choice([1, 1, 1, 2, 40])), 3)
        if rng.random() < 0.15:
            with pytest.raises(irrun.ExecutionError):
                session.run(given(some(rng, 1, 3), [2, 1, 0], index=9))
        if held and rng.random() < 0.1:
            session.variables["past"], past = held.pop()
        _, whole, _ = session.run(given(rows, beams)).values()
        past = np.concatenate([past[beams], rows], 2)
        assert np.array_equal(whole, past)
        assert np.array_equal(session.variables["past"], past)
        if rng.random() < 0.2:
            held.append((session.variables["past"], past.copy()))
        held = held[-3:]
        assert all(np.array_equal(view, values) for view, values in held)


def test_only_what_beams_have_not_in_common_is_copied():
    """A step appends 1 MiB for each of 3 beams; what is copied of each is what has come since they parted."""
    buffers: dict[str, Buffer] = {}
    kept: dict[str, np.ndarray] = {}
    copied = []

    def together(calls):
        copied.append([call.args[1].nbytes >> 20 for call in calls])
        for call in calls:
            call()

    plain = np.zeros((3, 0, 1 << 18), F32)
    steps = [[0, 1, 2], [0, 0, 0], [0, 1, 1], [1, 0, 2], [0, 1, 2], [2, 2, 0], [1, 1, 1], [0, 2, 1], [0, 1]]
    for step, beams in enumerate(steps):
        rows = np.float32([[[10 * step + slot]] for slot in range(len(beams))]) + np.zeros((1, 1, 1 << 18), F32)
        variables = Variables(kept, buffers)
        past = variables.latest("v")
        past = plain if past is None else past
        if step and beams != list(range(len(past))):
            past = variables.reorder("v", past, beams, 1, together)
        variables.store("v", variables.append("v", past, rows, 1))
        variables.commit()
        plain = np.concatenate([plain[beams], rows], 1)
        assert np.array_equal(kept["v"], plain)
    # the first two times nothing is known of what lies there, and the last time there is no such memory
    assert copied == [[1, 1, 1], [2, 2, 2], [2, 2, 2], [4, 3, 3], [4, 5, 1], [2, 1, 5], [8, 8]]


def test_there_is_little_room_behind_slices_that_are_large(monkeypatch):
    monkeypatch.setattr("irrun.run.variables.SPARE_BYTES", 1 << 12)
    for width, rooms in ((1, [258, 258]), (1 << 8, [6, 6]), (1 << 20, [3, 6])):
        buffers: dict[str, Buffer] = {}
        variables = Variables({}, buffers)
        past = np.zeros((1, 1, width), F32)
        whole, found = variables.append("v", past, past, 1), []
        found.append(buffers["v"].memory.shape[1])
        whole = variables.append("v", whole, np.concatenate([past, past], 1), 1)
        found.append(buffers["v"].memory.shape[1])
        assert (whole.shape, found) == ((1, 4, width), rooms)
        for slots in (2, 3):
            whole = variables.reorder("v", whole, [0] * slots, 1, lambda calls: [call() for call in calls])
            whole = variables.append("v", whole, np.repeat(past, slots, 0), 1)
        assert whole.shape == (3, 6, width)


def test_of_what_is_set_back_only_the_length_is_another(tmp_path):
    """A buffer that is full has its batch, too, along an axis of its own."""
    rng = np.random.default_rng(9)
    session = cache(tmp_path).session()
    session.run(given(some(rng, 1, 2)))
    session.run(given(some(rng, 256, 2)))
    assert session.variables["past"].shape == memory_of(session).shape
    past = session.variables["past"] = session.variables["past"][:1]
    _, whole, _ = session.run(given(some(rng, 0))).values()
    assert whole.tolist() == past.tolist()


def test_what_was_reordered_is_not_to_be_written_to(tmp_path):
    rng = np.random.default_rng(3)
    session = cache(tmp_path).session()
    session.run(given(some(rng, 5, 2), [0, 0]))
    for beams in ([1, 0], [0, 1]):
        session.run(given(some(rng, 1, 2), beams))
        with pytest.raises(ValueError, match="read-only"):
            session.variables["past"][:] = 0


def memory_of(session):
    return session.variables["past"].base


def test_the_next_session_has_the_memory_of_the_last_one(tmp_path):
    rng = np.random.default_rng(7)
    ours = cache(tmp_path)
    session = ours.session()
    session.run(given(some(rng, 3)))
    first = memory_of(session).ctypes.data
    session.reset_state()
    rows = some(rng, 2)
    _, whole, _ = session.run(given(rows)).values()
    assert whole.tolist() == rows.tolist()
    assert memory_of(session).ctypes.data == first
    del session, whole
    other = ours.session()
    rows = some(rng, 5)
    _, whole, _ = other.run(given(rows)).values()
    assert whole.tolist() == rows.tolist()
    assert memory_of(other).ctypes.data == first
    del other
    longer, wide = ours.session(), ours.session()
    longer.run(given(some(rng, 2000)))
    wide.run(given(some(rng, 2, 3)))
    assert {memory_of(longer).ctypes.data, memory_of(wide).ctypes.data}.isdisjoint({first})


def test_what_somebody_holds_is_not_the_memory_of_the_next_session(tmp_path):
    rng = np.random.default_rng(8)
    ours = cache(tmp_path)
    session = ours.session()
    session.run(given(rows := some(rng, 3)))
    held = session.variables["past"]
    session.reset_state()
    session.run(given(some(rng, 3)))
    assert held.tolist() == rows.tolist()
    assert not np.shares_memory(held, session.variables["past"])


def test_no_more_memory_is_left_than_there_may_be():
    memories, large = Memories(), np.empty((1, MAX_LEFT // 4 - 10, 1), F32)
    buffers = {"a": Buffer(large, 3, 1), "b": Buffer(np.empty((1, 100, 1), F32), 3, 1)}
    where = large.ctypes.data
    del large
    memories.leave(buffers)
    assert not buffers
    assert memories.take((1, 60, 1), np.dtype(F32), 1, 40).shape == (1, 60, 1)
    taken = memories.take((1, MAX_LEFT // 5, 1), np.dtype(F32), 1, 1)
    assert taken.ctypes.data == where
    assert memories.take((1, MAX_LEFT // 5, 1), np.dtype(F32), 1, 1).ctypes.data != where


def test_results_are_nobody_elses(tmp_path):
    rng = np.random.default_rng(4)
    session = cache(tmp_path).session()
    brought = [some(rng, 1) for _ in range(3)]
    for number, rows in enumerate(brought, 1):
        _, whole, _ = session.run(given(rows)).values()
        assert whole.tolist() == np.concatenate(brought[:number], 2).tolist()
        whole[:] = 7


def test_a_run_that_fails_has_appended_nothing(tmp_path):
    rng = np.random.default_rng(5)
    session = cache(tmp_path).session()
    brought = [some(rng, 1) for _ in range(4)]
    for number, rows in enumerate(brought, 1):
        with pytest.raises(irrun.ExecutionError):
            session.run(given(some(rng, 2), index=9))
        _, whole, _ = session.run(given(rows)).values()
        assert whole.tolist() == np.concatenate(brought[:number], 2).tolist()


def test_variables_may_be_set_back(tmp_path):
    rng = np.random.default_rng(6)
    session = cache(tmp_path).session()
    session.run(given(some(rng, 3)))
    before = session.variables["past"]
    session.run(given(some(rng, 1)))
    one, values = session.variables["past"], session.variables["past"].tolist()
    session.variables["past"] = before
    rows = some(rng, 1)
    _, whole, _ = session.run(given(rows)).values()
    assert whole.tolist() == np.concatenate([before, rows], 2).tolist()
    assert one.tolist() == values


@ENGINES
def test_variables_may_be_set_to_what_is_made_of_them(engine, tmp_path):
    rng = np.random.default_rng(8)
    ours = cache(tmp_path, engine)
    for change in (np.flip, lambda past: past[::-1], lambda past: past[:1], lambda past: past[:, :, 1:]):
        session = ours.session()
        for length in (3, 1):
            session.run(given(some(rng, length, 2)))
        session.variables["past"] = change(session.variables["past"])
        past = session.variables["past"].copy()
        rows = some(rng, 1, len(past))
        _, whole, _ = session.run(given(rows)).values()
        assert whole.tolist() == np.concatenate([past, rows], 2).tolist()


def test_sessions_do_not_write_over_what_they_share(tmp_path):
    rng = np.random.default_rng(7)
    ours = cache(tmp_path)
    first, second = ours.session(), ours.session()
    start = some(rng, 3)
    first.run(given(start))
    second.variables.update(first.variables)
    for session in (first, second, first, second):
        past, rows = session.variables["past"].copy(), some(rng, 1)
        _, whole, _ = session.run(given(rows)).values()
        assert whole.tolist() == np.concatenate([past, rows], 2).tolist()


@ENGINES
def test_no_more_is_read_than_the_variable_is_declared_for(engine, tmp_path):
    b = model()
    rows = anything(b, "f4", (1, -1), "rows")
    attrs = NAME | {"variable_type": "f32", "variable_shape": "1,2..4"}
    start = b.constant(np.zeros((1, 2), F32))
    (past,) = b.layer(Layer("ReadValue-6", [start.ref], attrs), [start.arrays], False, False)
    whole = b.one("Concat-1", past, rows, axis=1)
    b.layer(Layer("Assign-6", [whole.ref], dict(NAME)), [whole.arrays], False, False)
    b.result(whole)
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    lengths = [ours.run([np.ones((1, 1), F32)])[0].shape[1] for _ in range(3)]
    assert lengths == [3, 4, 5]
    with pytest.raises(irrun.ExecutionError, match=r"C4: variable `past` is f32\[1, 5\], expected f32\[1, 2..4\]"):
        ours.run([np.ones((1, 1), F32)])
    session = ours.session()
    session.run([np.ones((1, 1), F32)])
    session.variables["past"] = session.variables["past"][:, :1]
    with pytest.raises(irrun.ExecutionError, match="C4"):
        session.run([np.ones((1, 1), F32)])


@ENGINES
def test_a_cache_that_is_larger_than_memory_may_be(engine, tmp_path):
    rng = np.random.default_rng(9)
    path = cache(tmp_path).model.path
    ours = irrun.GraphExecutor(path, engine=engine, max_memory=100_000)

    def many():
        for _ in range(20):
            ours.run(given(some(rng, 400)))

    with pytest.raises(irrun.ExecutionError, match="E603"):
        many()


@ENGINES
def test_rows_that_do_not_fit_the_past(engine, tmp_path):
    rng = np.random.default_rng(8)
    ours = cache(tmp_path, engine, heads=-1)
    ours.run(given(some(rng, 2, heads=1)))
    with pytest.raises(irrun.ExecutionError, match="Concat-1 C4: dimension 1 is 3"):
        ours.run(given(some(rng, 1, heads=3)))
    assert list(ours.run(given(some(rng, 1, heads=1))).values())[1].shape == (1, 1, 3, 4)


def test_sizes_that_have_grown_by_one():
    assert grown(((1, 8), (1, 8)), ((1, 1), (1, 9))) == ((1, 1), (1, -1))
    assert grown(((1, 1), (1, 9), (9, 2)), ((1, 1), (1, 10), (10, 2))) == ((1, 1), (1, -1), (-1, 2))
    assert grown(((1, 4), (5,), (2,)), ((1, 5), (6,), (2,))) == ((1, -1), (-2,), (2,))
    assert grown(((1, 8),), ((1, 9),)) is None  # nothing stays as it was
    assert grown((), ((1, 9),)) is None
    assert grown(((1, 8), (3,)), ((1, 8, 1), (3,))) is None
    assert grown(((0, 8), (3,)), ((1, 8), (3,))) is None  # 1 broadcasts, and is no size like others
    assert grown(((1, 8), (3,)), ((1, 8), (3,))) is None
    assert grown(((1, 8), (1, 3)), ((1, 5), (1, 4))) is None  # lengths at random


def test_shapes_that_fit_a_pattern():
    pattern = ((1, 1), (1, -1), (-1, 2), (-2,))
    assert fits(pattern, ((1, 1), (1, 9), (9, 2), (9,)))
    assert fits(pattern, ((1, 1), (1, 9), (9, 2), (4,)))
    assert not fits(pattern, ((1, 1), (1, 9), (8, 2), (4,)))
    assert not fits(pattern, ((1, 1), (1, 1), (1, 2), (4,)))
    assert not fits(pattern, ((1, 2), (1, 9), (9, 2), (4,)))
    assert not fits(pattern, ((1, 1), (1, 9), (9, 2)))


@pytest.mark.parametrize("engine", ["numpy", "onednn"])
def test_one_program_for_all_lengths_of_a_mask(engine, tmp_path):
    """x [1, 4] times weights, scaled by the sum of a mask [1, length]."""
    b = model()
    x, mask = anything(b, "f4", (-1, 4), "x"), anything(b, "f4", (-1, -1), "mask")
    weights = np.arange(20, dtype=F32).reshape(4, 5)
    total = b.one("ReduceSum-1", mask, i64(b, [1]), keep_dims=True)
    y = b.one("MatMul-1", x, b.constant(weights), **PLAIN)
    b.result(b.one("Add-1", y, total, **ADD))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    rng = np.random.default_rng(9)
    for batch, length in [*((1, n) for n in range(5, 40)), (3, 8), (3, 9), (3, 10), (1, 1), (1, 2), (1, 70)]:
        given = rng.integers(-3, 4, (batch, 4)).astype(F32), rng.integers(0, 2, (batch, length)).astype(F32)
        (result,) = ours.run(list(given)).values()
        assert result.tolist() == (given[0] @ weights + given[1].sum(1, keepdims=True)).tolist()
    shapes = [shapes for shapes, _ in ours._whole.preparation._kept]
    assert shapes == [((1, 4), (1, 5)), ((3, 4), (3, 8)), ((3, 4), (3, -1)), ((1, 4), (1, 1)), ((1, 4), (1, -1))]


def test_weights_are_not_read_at_open_sizes(tmp_path):
    """A mask of the length of what weights are multiplied with is no cache."""
    b = model()
    x, other = anything(b, "f4", (-1, 200), "x"), anything(b, "f4", (1, 200), "other")
    y = b.one("MatMul-1", x, b.constant(np.ones((200, 200), F32)), **PLAIN)
    b.result(b.one("Add-1", y, other, **ADD))
    ours = irrun.GraphExecutor(saved(b, tmp_path))
    for length in range(3, 7):
        (result,) = ours.run([np.ones((length, 200), F32), np.ones((1, 200), F32)]).values()
        assert result.tolist() == np.full((length, 200), 201).tolist()
    assert [shapes[0] for shapes, _ in ours._whole.preparation._kept] == [(n, 200) for n in range(3, 7)]


def test_sizes_of_a_pattern():
    pattern = ((1, -1, 64), (-1,), (0,))
    assert fits(pattern, ((1, 7, 64), (7,), (0,)))
    for shapes in (
        *(((1, 7, 64), (8,), (0,)), ((1, 1, 64), (1,), (0,)), ((2, 7, 64), (7,), (0,)), ((1, 7, 64), (7,), (2,))),
        *(((1, 7, 64), (7,)), ((1, 7), (7,), (0,)), ((1, 0, 64), (0,), (0,))),
    ):
        assert not fits(pattern, shapes), shapes
