"""Instructions whose sizes only a run tells are computed by engines, specialised for each set of shapes they see."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from differential.graph import Layer
from engines.toy import Toy

import irrun
from irrun.engines import load_engines
from irrun.engines.work import Operand, Work
from irrun.run.session import Run
from irrun.run.specialization import MAX_KEPT
from irrun.run.variables import Variables
from irrun.spec.registry import registry
from run.engines import Odd, executor, unchanged
from run.models import ADD, PLAIN, anything, i64, model, saved

F32 = np.float32


@pytest.fixture(autouse=True)
def _one_by_one(monkeypatch):
    """No rows of instructions as programs of their own: these have a module to themselves."""
    monkeypatch.setattr("irrun.run.passes.enclosing.FEWEST", 1000)


def offer_all(monkeypatch):
    """Nothing is so small that its kernel computes it at once."""
    for name in ("MAX_SMALL", "MAX_SINGLE"):
        monkeypatch.setattr(f"irrun.run.specialization.{name}", 0)


TABLE = np.arange(40, dtype=F32).reshape(10, 4)
WEIGHTS = np.float32([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]])


def chosen_rows(posts=("ReLU-1",)):
    """Rows of TABLE where x is not 0, times WEIGHTS, plus [1, -6, 0], and what `posts` make of that."""
    b = model()
    places = b.one("Squeeze-1", b.one("NonZero-3", anything(b, "f4", (10,))), i64(b, [0]))
    rows = b.one("Gather-8", b.constant(TABLE), places, i64(b, 0), batch_dims=0)
    y = b.one("MatMul-1", rows, b.constant(WEIGHTS), **PLAIN)
    b.graph.layers[y.ref[0]].label = "product"
    y = b.one("Add-1", y, b.constant(F32([1, -6, 0])), **ADD)
    for post in posts:
        y = b.one(post, y)
    b.result(y)
    return b


def which(*places):
    x = np.zeros(10, F32)
    x[list(places)] = 1
    return [x]


def expected(*places):
    return np.maximum(TABLE[list(places)] @ WEIGHTS + F32([1, -6, 0]), 0).reshape(-1, 3).tolist()


def run(ours, *places):
    (result,) = ours.run(which(*places)).values()
    return result.tolist()


def specialization(ours, label="product"):
    """What is kept of an instruction of the only program that runs have asked for."""
    (kept,) = ours._whole.preparation._kept.values()
    return next(s for s in kept.specializations.values() if s._instruction.layer.name == label)


@pytest.mark.parametrize("engine", ["numpy", "onednn"])
def test_rows_that_are_chosen_in_the_run(engine, tmp_path):
    ours = irrun.GraphExecutor(saved(chosen_rows(), tmp_path), engine=engine)
    assert run(ours, 1) == [[5, 0, 13]]
    assert run(ours, 0, 2) == [[1, 0, 5], [9, 3, 21]]
    for places in ((), (3,), (0, 1, 2, 9), (5,), range(10)):
        assert run(ours, *places) == expected(*places)
    names = [found and found.engine.name for found in specialization(ours)._kept.values()]
    assert names == [
        engine,
        None,
        engine,
        engine,
        engine,
    ]  # no rows are for the kernel; 1 row came twice, lately


def test_a_few_sets_of_shapes_are_kept(tmp_path, monkeypatch):
    odd = Odd(unchanged)
    ours = executor(saved(chosen_rows(), tmp_path), [odd], monkeypatch)
    for _ in range(2):
        for count in range(1, 11):
            assert run(ours, *range(count)) == expected(*range(count))
        assert len(specialization(ours)._kept) == MAX_KEPT == 8
    for _ in range(3):
        before = len(odd.works)
        run(ours, *range(10))
        assert len(odd.works) == before


def test_weights_are_the_same_array_for_all_shapes(tmp_path, monkeypatch):
    odd = Odd(unchanged)
    ours = executor(saved(chosen_rows(), tmp_path), [odd], monkeypatch)
    for count in (1, 2, 5):
        run(ours, *range(count))
    works = [work for work in odd.works if work.name == "MatMul-1"]
    assert [work.inputs[0].shape for work in works] == [(1, 4), (2, 4), (5, 4)]
    assert len({id(work.inputs[1].value) for work in works}) == 1
    assert [len(work.posts) for work in works] == [2, 2, 2]


def test_onednn_packs_weights_once_for_all_shapes(tmp_path, monkeypatch):
    b = model()
    places = b.one("Squeeze-1", b.one("NonZero-3", anything(b, "f4", (40,))), i64(b, [0]))
    table, weights = (
        np.random.default_rng(n).standard_normal(size, F32) for n, size in enumerate([(40, 64), (64, 96)])
    )
    rows = b.one("Gather-8", b.constant(table), places, i64(b, 0), batch_dims=0)
    b.result(b.one("MatMul-1", rows, b.constant(weights), **PLAIN))
    engine = load_engines("onednn", 1)[0]
    ours = executor(saved(b, tmp_path), [engine], monkeypatch)
    before, packed = set(engine._library.packed), []
    for count in (25, 27, 30, 33, 40, 25, 35):
        for _ in range(2):
            (result,) = ours.run([F32(np.arange(40) < count)]).values()
            np.testing.assert_allclose(result, table[:count] @ weights, 1e-4, 1e-4)
        packed += [value._made for key, value in engine._library.packed.items() if key not in before]
    assert {found.engine for found in _kept(ours)} == {engine}
    layouts = {array.nbytes for array in packed if array is not None}
    assert len({id(array) for array in packed if array is not None}) <= len(layouts)


@pytest.mark.parametrize("once", [True, False])
def test_onednn_packs_no_weights_for_a_single_run(once, tmp_path, monkeypatch):
    """Also those of products that are like others."""

    def packed(count):
        b = model()
        x = anything(b, "f4", (64, 256))
        for seed in range(count):
            weights = np.random.default_rng(seed).standard_normal((256, 256), F32) / 16
            x = b.one("MatMul-1", x, b.constant(weights), **PLAIN)
        b.result(x)
        engine = load_engines("onednn", 1, once=once)[0]
        folder = tmp_path / str(count)
        folder.mkdir()
        before = set(engine._library.packed)
        ours = executor(saved(b, folder), [engine], monkeypatch)
        ours.run([np.random.default_rng(7).standard_normal((64, 256), F32)])
        return [value for key, value in engine._library.packed.items() if key not in before and value._made is not None]

    if once and packed(1):
        pytest.skip("oneDNN has no product for this processor that takes weights as they are")
    assert len(packed(3)) == (0 if once else 3)


def _kept(ours):
    (kept,) = ours._whole.preparation._kept.values()
    return list(kept.specializations[len(kept.program.instructions) - 1]._kept.values())


class Few(Odd):
    """Takes one post at most."""

    def compile(self, work):
        return super().compile(work) if len(work.posts) < 2 else None


@pytest.mark.parametrize("posts", [("ReLU-1",), ("ReLU-1", "Tanh-1", "Abs-1", "Sqrt-1")])
def test_posts_that_an_engine_leaves_over(posts, tmp_path, monkeypatch):
    few = Few(unchanged)
    path = saved(chosen_rows(posts), tmp_path)
    ours, plain = executor(path, [few], monkeypatch), irrun.GraphExecutor(path, engine="reference")
    for places in ((1,), (0, 2), (1,)):
        (one,), (other,) = ours.run(which(*places)).values(), plain.run(which(*places)).values()
        np.testing.assert_allclose(one, other, 1e-6)
    heads = [
        (work.name, len(work.posts))
        for work in few.works
        if work.inputs[0].shape[0] == 1 and len(work.outputs[0].shape) == 2
    ]
    expected = [("MatMul-1", 1), ("ReLU-1", 0)] if len(posts) == 1 else [("MatMul-1", 1), ("ReLU-1", 1), ("Abs-1", 1)]
    assert [head for head in heads if head[0] not in ("Gather-8", "Squeeze-1")] == expected


@pytest.mark.parametrize("seed", range(30))
def test_an_engine_with_layouts_of_its_own_that_takes_what_it_likes(seed, tmp_path, monkeypatch):
    toys = [Toy(seed), Toy(seed + 1000)]
    path = saved(chosen_rows(("ReLU-1", "Negative-1", "Abs-1")), tmp_path)
    ours = executor(path, toys, monkeypatch)
    for places in ((1,), (0, 2), (), (1,), (4, 5, 6), (0, 2)):
        assert run(ours, *places) == expected(*places)
    assert sum(toy.taken for toy in toys)


@pytest.mark.parametrize("engine", ["numpy", "onednn"])
def test_an_operand_of_a_post_whose_sizes_come_in_the_run(engine, tmp_path):
    """Rows of TABLE times WEIGHTS, plus rows of another one: equal by shape, which only the run tells."""
    b = model()
    x = anything(b, "f4", (10,))
    places = b.one("Squeeze-1", b.one("NonZero-3", x), i64(b, [0]))
    rows = b.one("Gather-8", b.constant(TABLE), places, i64(b, 0), batch_dims=0)
    other = b.one("Gather-8", b.constant(-TABLE[:, :3].copy()), places, i64(b, 0), batch_dims=0)
    b.result(b.one("Add-1", other, b.one("MatMul-1", rows, b.constant(WEIGHTS), **PLAIN), **ADD))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    assert run(ours, 1) == [[0, 0, 7]]
    assert run(ours, 0, 9) == [[0, 0, 3], [0, 0, 39]]


@pytest.mark.parametrize("engine", ["numpy", "onednn"])
def test_threads_share_what_is_specialised(engine, tmp_path):
    ours = irrun.GraphExecutor(saved(chosen_rows(), tmp_path), engine=engine)
    wrong = []

    def work(first):
        for n in range(60):
            places = range((first + n) % 11)
            if run(ours, *places) != expected(*places):
                wrong.append(places)

    threads = [threading.Thread(target=work, args=(3 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "check"])
def test_data_that_break_a_rule_are_reported_where_an_engine_computes(engine, tmp_path):
    b = model()
    places = b.one("NonZero-3", anything(b, "f4", (4,)))
    shifted = b.one("Add-1", b.one("Squeeze-1", places, i64(b, [0])), anything(b, "i8", (1,)), **ADD)
    y = b.one("Gather-7", b.constant(F32([[1, 2], [3, 4], [5, 6], [7, 8]])), shifted, i64(b, 0), batch_dims=0)
    b.graph.layers[y.ref[0]].label = "rows"
    b.result(y)
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for _ in range(2):
        (result,) = ours.run([F32([0, 1, 0, 1]), np.int64([0])]).values()
        assert result.tolist() == [[3, 4], [7, 8]]
        with pytest.raises(irrun.ExecutionError, match="Gather-7 C") as error:
            ours.run([F32([0, 1, 0, 1]), np.int64([2])])
        assert error.value.diagnostics[0].layer.name == "rows"


def test_a_profile_names_what_has_computed(tmp_path):
    from irrun.run.profile import Profile

    ours = irrun.GraphExecutor(saved(chosen_rows(), tmp_path), engine="numpy")
    run(ours, 1, 2)
    for places, by in (((1, 2), "numpy"), ((), "kernel"), ((1, 2), "numpy")):
        profile = Profile()
        ours.run(which(*places), profile=profile)
        entries = [(entry.name, entry.by) for entry in profile.entries.values()]
        assert entries[0][1] == "numpy"  # NonZero, whatever computed the last run's last layer
        assert entries[-1] == ("product", by)


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn"])
def test_gelu_of_infinity_behind_a_convolution_of_unknown_sizes(engine, tmp_path):
    b = model()
    b.special = True
    x, chosen = b.parameter([np.zeros((1, 1, 4, 2), F32)]), b.parameter([np.ones(4, F32)])
    places = b.one("Squeeze-1", b.one("NonZero-3", chosen), i64(b, [0]))
    rows = b.one("Gather-8", x, places, i64(b, 2), batch_dims=0)
    window = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0]}
    y = b.one("Convolution-1", rows, b.constant(np.ones((1, 1, 1, 1), F32)), **window)
    b.result(b.one("Gelu-7", y, approximation_mode="erf"))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    data = F32([[np.inf, 10], [1, 2], [0, 20], [3, 4]]).reshape(1, 1, 4, 2)
    for number, row in ((0, [np.inf, 10]), (2, [0, 20])):
        (result,) = ours.run([data, np.eye(4, dtype="f4")[number]]).values()
        assert result.ravel().tolist() == row


@pytest.mark.parametrize("size", [4, -1])
@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "check"])
def test_calls_for_any_sizes_compute_known_ones_too_and_leave_what_breaks_a_rule(engine, size, tmp_path):
    b = model()
    inputs = [anything(b, type, (size, 3)) for type in ("f4", "i8", "f4")]
    b.result(b.one("ScatterElementsUpdate-3", *inputs, i64(b, 0)))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    indices = np.int64([[0, 1, 2], [3, 3, 3], [1, 1, 1], [1, 0, 0]])
    for _ in range(2):
        (result,) = ours.run([np.zeros((4, 3), F32), indices, np.arange(12, dtype=F32).reshape(4, 3)]).values()
        assert result.tolist() == [[0, 10, 11], [9, 7, 8], [0, 0, 2], [3, 4, 5]]
        with pytest.raises(irrun.ExecutionError, match=r"C4: `indices\[0, 2\]` is 4, outside \[0, 4\)"):
            ours.run([np.zeros((4, 3), F32), indices + np.int64([0, 0, 2]), np.ones((4, 3), F32)])


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "check"])
def test_what_ranks_that_come_in_the_run_break(engine, tmp_path):
    """As those of the results of an If: nobody has asked the rule about them before."""
    b = model()

    def told(data, shape):
        chosen = b.one("Squeeze-1", b.one("NonZero-3", b.parameter([np.bool_([True] * len(shape))])), i64(b, [0]))
        sizes = b.one("Gather-8", b.parameter([np.int64(shape)]), chosen, i64(b, 0), batch_dims=0)
        return b.one("Reshape-1", b.parameter([data.ravel()], [0]), sizes, special_zero=False)

    boxes, scores = F32([[[0, 0, 1, 1], [0, 0, 2, 2]]]), F32([[[0.5, 0.7]]])
    limits = [b.constant(value) for value in (np.int64(2), F32(0.9), F32(0))]
    b.result(b.op("NonMaxSuppression-9", told(boxes, boxes.shape), told(scores, scores.shape), *limits)[0])
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    names = [*b.feeds[0]]

    def feed(changes):
        return {**b.feeds[0], **{names[at]: value for at, value in changes.items()}}

    for _ in range(2):
        (result,) = ours.run(feed({})).values()
        assert result.tolist() == [[0, 0, 1], [0, 0, 0]]
        with pytest.raises(irrun.ExecutionError, match="E305"):
            ours.run(feed({0: np.bool_([False, True, True])}))
        with pytest.raises(irrun.ExecutionError, match="E304"):
            ours.run(feed({1: np.int64([1, 1, 4]), 2: boxes.ravel()[:4]}))


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "check"])
def test_scales_of_attention_of_which_a_run_gives_two(engine, tmp_path):
    b = model()
    heads = [b.input((1, 2, rows, 8)) for rows in (1, 5, 5)]
    many = b.parameter([np.int64([1])])
    scale = b.one("Reshape-1", b.parameter([F32([0.5])], [0]), many, special_zero=False)
    mask = b.constant(np.zeros((1, 1, 1, 5), F32))
    b.result(b.one("ScaledDotProductAttention-13", *heads, mask, scale, causal=False))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    given = b.feeds[0]
    sizes, scales = [*given][3:]
    for _ in range(2):
        ours.run(given)
        with pytest.raises(irrun.ExecutionError, match="E304"):
            ours.run({**given, scales: F32([0.5, 2]), sizes: np.int64([2])})


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "check"])
def test_a_split_into_fewer_parts_than_there_are_outputs(engine, tmp_path, monkeypatch):
    offer_all(monkeypatch)
    b = model()
    size, lengths = b.parameter([np.int64([5, 3])]), b.parameter([np.int64([2, 3])], [0])
    data = b.one("Reshape-1", b.parameter([np.ones(15, F32)], [0]), size, special_zero=False)
    axis = b.constant(np.int64(0))
    split = b.graph.add(Layer("VariadicSplit-1", [data.ref, axis.ref, lengths.ref], outputs=[("f32", (-1, -1))] * 2))
    for port in range(2):
        b.graph.add(Layer("Result-1", [(split, port)]))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for _ in range(2):
        assert [part.shape for part in ours.run(b.feeds[0]).values()] == [(2, 3), (3, 3)]
        with pytest.raises(irrun.ExecutionError, match="E302"):
            ours.run([np.int64([0, 3]), np.int64([]), np.ones(0, F32)])


def test_onednn_leaves_attention_to_no_keys_to_others():
    shapes = (3, 1, 1), (3, 3, 0, 1), (1, 0, 4), (3, 3, 1, 4)
    strides = (4, 4, 4), (12, 4, 4, 4), (16, 16, 4), (36, 12, 12, 4)  # as of a part of an array, cut to nothing
    query, key, value, result = map(Operand, ["f32"] * 4, shapes, strides)
    work = Work("ScaledDotProductAttention-13", {"causal": True}, [query, key, value], [result])
    for engine in load_engines("onednn", 1):
        assert engine.compile(work) is None


def test_a_profile_names_the_engine_that_has_a_call_for_any_sizes(tmp_path):
    pytest.importorskip("llvmlite", reason="llvmlite compiles the kernels")
    from irrun.run.profile import Profile

    b = model()
    b.result(b.one("ScatterElementsUpdate-3", *(anything(b, type, (4, 3)) for type in ("f4", "i8", "f4")), i64(b, 0)))
    ours, profile = irrun.GraphExecutor(saved(b, tmp_path)), Profile()
    ours.run([np.zeros((4, 3), F32), np.zeros((4, 3), "i8"), np.ones((4, 3), F32)], profile=profile)
    assert [entry.by for entry in profile.entries.values()] == ["compiled"]


def test_where_results_might_not_fit_kernels_say_what_they_want(tmp_path):
    b, given = model(), [np.ones(2, F32), np.int64([3, 1]), np.int64([[0, 0], [1, 0]])]
    for result in b.op("SparseFillEmptyRows-16", *(b.parameter([own]) for own in given), b.constant(F32(7))):
        b.result(result)
    ours = irrun.GraphExecutor(saved(b, tmp_path), max_memory=900)
    assert next(iter(ours.run(given).values())).tolist() == [[0, 0], [1, 0], [2, 0]]
    with pytest.raises(irrun.ExecutionError, match="more than the limit of 900 bytes"):
        ours.run([given[0], np.int64([60, 1]), given[2]])


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "auto"])
def test_attention_to_keys_without_elements_is_a_mean(engine, tmp_path):
    b = model()
    tensors = [anything(b, "f4", (1, -1, -1, -1)) for _ in range(3)]
    b.result(b.one("ScaledDotProductAttention-13", *tensors, causal=False))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for size in (0, 1, 0):
        value = F32([[[[1, 2], [3, 6]]]])
        given = [np.zeros((1, 1, 4, size), F32), np.zeros((1, 1, 2, size), F32), value]
        (result,) = ours.run(given).values()
        assert result.tolist() == [[[[2, 4]] * 4]]


def scattered(rows, size):
    """Rows of [rows, size] zeros, to which the chosen ones of `updates` are added where `where` says, and ReLU."""
    b = model()
    chosen = b.one("Squeeze-1", b.one("NonZero-3", anything(b, "f4", (-1,))), i64(b, [0]))
    where, updates = anything(b, "i8", (-1, size)), anything(b, "f4", (-1, size))
    picked = [b.one("Gather-8", data, chosen, i64(b, 0), batch_dims=0) for data in (where, updates)]
    zeros = b.constant(np.zeros((rows, size), F32))
    y = b.one("ScatterElementsUpdate-12", zeros, *picked, i64(b, 0), reduction="sum", use_init_val=True)
    b.graph.layers[y.ref[0]].label = "scatter"
    b.result(b.one("ReLU-1", b.one("Add-1", y, b.constant(F32([-0.5] * size)), **ADD)))
    return b


@pytest.mark.parametrize("rows", [300, 40_000], ids=["judged while it computes", "by a call for any sizes"])
def test_what_is_scattered_by_rows_that_the_data_tell_is_by_a_compiled_kernel(rows, tmp_path, monkeypatch):
    pytest.importorskip("llvmlite", reason="llvmlite compiles the kernel")
    rng = np.random.default_rng(5)
    path, called = saved(scattered(rows, 16), tmp_path), list[int]()
    op = registry().find("ScatterElementsUpdate", "opset12")
    kernel = op.kernel
    monkeypatch.setattr(op, "kernel", lambda *given, **attrs: called.append(1) or kernel(*given, **attrs))
    ours, plain = irrun.GraphExecutor(path, threads=2), irrun.GraphExecutor(path, engine="reference")
    for count in (700, 900, 700):
        mask = (rng.random(count) < 0.8).astype(F32)
        where = rng.integers(0, rows, (count, 16))
        updates = rng.standard_normal((count, 16)).astype(F32)
        (found,) = ours.run([mask, where, updates]).values()
        assert not called
        (wanted,) = plain.run([mask, where, updates]).values()
        assert called.pop()
        np.testing.assert_allclose(found, wanted, 1e-6, 1e-6)
    where[np.flatnonzero(mask)[0], 3] = rows
    with pytest.raises(irrun.ExecutionError, match="outside"):
        ours.run([mask, where, updates])


@pytest.mark.parametrize(("count", "by"), [(64, "kernel"), (65, "numpy"), (4000, "numpy")])
def test_element_wise_layers_of_large_arrays_are_for_engines_whatever_their_kernels_could_do_at_once(
    count, by, tmp_path
):
    from irrun.run.profile import Profile

    b, rng = model(), np.random.default_rng(93)
    data, chosen = rng.standard_normal((4000, 64)).astype(F32), np.zeros(4000, F32)
    chosen[:count] = 1
    places = b.one("Squeeze-1", b.one("NonZero-3", b.parameter([chosen])), i64(b, [0]))
    rows = b.one("Gather-8", b.parameter([data]), places, i64(b, 0), batch_dims=0)
    b.result(rows)
    b.result(b.one("Gelu-7", rows, approximation_mode="erf"))
    path = saved(b, tmp_path)
    ours, profile = irrun.GraphExecutor(path, engine="numpy"), Profile()
    _, expected = irrun.GraphExecutor(path, engine="reference").run([chosen, data]).values()
    for _ in range(2):
        _, result = ours.run([chosen, data], profile=profile).values()
        np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6)
    assert [entry.by for entry in profile.entries.values() if entry.type == "Gelu"] == [by]


def test_an_engine_binds_what_it_has_made_for_new_sizes_once(tmp_path, monkeypatch):
    ours, bound = irrun.GraphExecutor(saved(chosen_rows(()), tmp_path), engine="numpy"), []
    run(ours, 1, 2)
    product = specialization(ours)
    offer_all(monkeypatch)
    real = type(product)._bound
    monkeypatch.setattr(type(product), "_bound", lambda self, *given: bound.append(self) or real(self, *given))
    assert run(ours, 3, 4, 5) == (TABLE[[3, 4, 5]] @ WEIGHTS + F32([1, -6, 0])).tolist()
    assert bound.count(product) == 1
    assert run(ours, 3, 4, 5) == (TABLE[[3, 4, 5]] @ WEIGHTS + F32([1, -6, 0])).tolist()
    assert bound.count(product) == 2


def experts(tables, factors):
    """For each (table, bias) the rows of x chosen for it, times the table, plus the bias, cut at 0, by the factor."""
    b = model()
    x = anything(b, "f4", (-1, 24))
    for (table, bias), factor in zip(tables, factors, strict=True):
        places = b.one("Squeeze-1", b.one("NonZero-3", anything(b, "f4", (-1,))), i64(b, [0]))
        y = b.one("MatMul-1", b.one("Gather-8", x, places, i64(b, 0), batch_dims=0), b.constant(table), **PLAIN)
        y = b.one("ReLU-1", b.one("Add-1", y, b.constant(bias), **ADD))
        b.result(b.one("Multiply-1", y, b.constant(F32(factor)), **ADD))
    return b


def counted(rng, rows, counts):
    """Rows, and which of them are chosen for each."""
    chosen = [rng.permutation(np.arange(rows) < count).astype(F32) for count in counts]
    return [rng.integers(-4, 5, (rows, 24)).astype(F32), *chosen]


@pytest.mark.parametrize("engine", ["numpy", "onednn", None])
@pytest.mark.parametrize("seed", range(3))
def test_instructions_that_are_alike_share_what_engines_made_of_one(engine, seed, tmp_path, monkeypatch):
    offer_all(monkeypatch)
    rng = np.random.default_rng(seed)
    sizes = [(24, 40), (24, 40), (24, 40), (24, 8), (24, 8), (24, 1)]
    tables = [(rng.integers(-4, 5, size).astype(F32), rng.integers(-9, 9, size[1:]).astype(F32)) for size in sizes]
    path = saved(experts(tables, (3, 3, 5, 2, 2, 2)), tmp_path)
    given = [counted(rng, rows, rng.integers(0, rows + 1, 6)) for rows in (6, 30, 31, 70, 1)]
    given += [counted(rng, 40, counts) for counts in ((26,) * 6, (3,) * 6, (1,) * 6, (40,) * 6)]
    options = {"engine": engine} if engine else {}
    together = irrun.GraphExecutor(path, **options)
    found = [[*together.run(arrays).values()] for arrays in given]
    again = [[*together.run(arrays).values()] for arrays in given]
    monkeypatch.setattr("irrun.run.specialization.Specialization._kind_of", lambda self: None)
    apart, plain = irrun.GraphExecutor(path, **options), irrun.GraphExecutor(path, engine="reference")
    for arrays, ours, later in zip(given, found, again, strict=True):
        for one, other, alone, right in zip(
            ours, later, apart.run(arrays).values(), plain.run(arrays).values(), strict=True
        ):
            assert one.tobytes() == other.tobytes() == alone.tobytes()
            np.testing.assert_array_equal(one, right)


class Choosy(Odd):
    """Takes no posts, and notes what it is offered."""

    def __init__(self, change):
        super().__init__(change)
        self.offered = []

    def compile(self, work):
        self.offered.append(work)
        return None if work.posts else super().compile(work)


def test_what_engines_refuse_is_offered_for_one_of_those_that_are_alike(tmp_path, monkeypatch):
    offer_all(monkeypatch)
    rng = np.random.default_rng(5)
    tables = [(rng.integers(-4, 5, (24, 40)).astype(F32), rng.integers(-9, 9, 40).astype(F32)) for _ in range(4)]
    choosy = Choosy(unchanged)
    path = saved(experts(tables, (2,) * 4), tmp_path)
    ours, plain = executor(path, [choosy], monkeypatch), irrun.GraphExecutor(path, engine="reference")
    for count in (3, 7):
        arrays = counted(rng, 9, (count,) * 4)
        for one, right in zip(ours.run(arrays).values(), plain.run(arrays).values(), strict=True):
            np.testing.assert_array_equal(one, right)
    for count in (3, 7):
        offered = [work for work in choosy.offered if work.name == "MatMul-1" and work.inputs[0].shape[0] == count]
        assert len([work for work in offered if work.posts]) == 3
        assert len({id(work.inputs[1].value) for work in offered if not work.posts}) == 4


def test_one_that_cannot_be_bound_again_is_made_anew(tmp_path, monkeypatch):
    offer_all(monkeypatch)
    rng = np.random.default_rng(6)
    tables = [(rng.integers(-4, 5, (24, 40)).astype(F32), rng.integers(-9, 9, 40).astype(F32)) for _ in range(3)]
    bound = []

    def once(work, compiled):
        def bind(*given):
            bound.append(work)
            if len(bound) % 2 == 0:
                raise ValueError("not again")
            return compiled.bind(*given)

        return replace(compiled, bind=bind) if work.name == "MatMul-1" else compiled

    path = saved(experts(tables, (2,) * 3), tmp_path)
    engines = [Odd(once), Odd(unchanged, "other")]
    ours, plain = executor(path, engines, monkeypatch), irrun.GraphExecutor(path, engine="reference")
    for count in (3, 7):
        arrays = counted(rng, 9, (count,) * 3)
        for one, right in zip(ours.run(arrays).values(), plain.run(arrays).values(), strict=True):
            np.testing.assert_array_equal(one, right)
    assert len(bound) > 3


@pytest.mark.parametrize("scaled", [False, True])
def test_segments_that_the_data_count_are_summed_by_a_compiled_kernel(scaled, monkeypatch):
    pytest.importorskip("llvmlite")
    offer_all(monkeypatch)
    with irrun.build("m", opset=13) as g:
        indices, ids = g.Parameter("i64[?]", name="indices"), g.Parameter("i64[?]", name="ids")
        sums = g.EmbeddingSegmentsSum(TABLE, indices, ids, g.Parameter("i64[]", name="count"))
        g.Result(g.Multiply(sums, F32(2)) if scaled else sums)
    ours, profile = irrun.GraphExecutor(g.model, engine="auto"), irrun.Profile()
    for rows, places, segments in ((3, [1, 2, 3, 9], [0, 0, 2, 2]), (2, [5], [1]), (4, [0, 0, 7], [0, 1, 3])):
        given = [np.array(places, np.int64), np.array(segments, np.int64), np.array(rows, np.int64)]
        (result,) = ours.run(given, profile=profile).values()
        right = np.zeros((rows, 4), F32)
        np.add.at(right, segments, TABLE[places])
        np.testing.assert_array_equal(result, right * (2 if scaled else 1))
    if not scaled:
        assert [entry.by for entry in profile.entries.values()] == ["compiled"]
    with pytest.raises(irrun.ExecutionError, match=r"E401.*C3: `indices\[1\]` is 10, outside"):
        ours.run([np.array([1, 10]), np.array([0, 0]), np.array(2)])


@pytest.mark.parametrize("threads", [1, 2])
def test_products_of_as_many_rows_as_the_data_tell_are_by_one_call_with_what_follows(threads):
    pytest.importorskip("llvmlite")
    if len(load_engines("auto")) < 3:
        pytest.skip("oneDNN has the threads")
    rng = np.random.default_rng(6)
    table, weights, shift = (rng.standard_normal(shape, F32) for shape in ((1200, 70), (90, 70), (1, 90)))
    with irrun.build("m", opset=13) as g:
        places = g.Squeeze(g.NonZero(g.Parameter("f32[1200]", name="chosen")), np.array([0]))
        product = g.MatMul(g.Gather(table, places, np.int64(0)), weights, transpose_b=True)
        g.Result(g.Relu(g.Add(product, shift)))
    ours = irrun.GraphExecutor(g.model, engine="onednn", threads=threads)
    by = []
    for count in (3, 30, 3, 900, 1000, 0, 1):
        chosen, profile = np.zeros(1200, F32), irrun.Profile()
        chosen[rng.permutation(1200)[:count]] = 1
        (result,) = ours.run([chosen], profile=profile).values()
        right = np.maximum(table[chosen > 0] @ weights.T + shift, 0)
        np.testing.assert_allclose(result, right, 1e-5, 1e-4)
        by.append([entry.by for entry in profile.entries.values() if "MatMul" in entry.type][-1])
    assert by[:4] == ["compiled"] * 4
    assert by[4] == "onednn"


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "check"])
def test_functions_of_what_is_repeated_are_computed_once_for_each(engine, tmp_path):
    """Places where x is not 0, each repeated for all columns of a slice that is put there."""
    b = model()
    x, data, updates = anything(b, "f4", (10,)), anything(b, "f4", (10, 7)), anything(b, "f4", (10, 7))
    places = b.one("NonZero-3", x)
    column = b.one("Transpose-1", places, i64(b, [1, 0]))
    count = b.one("Gather-8", b.one("ShapeOf-3", column, output_type="i64"), i64(b, [0]), i64(b, 0), batch_dims=0)
    repeated = b.one("Broadcast-3", column, b.one("Concat-1", count, i64(b, [7]), axis=0), mode="bidirectional")
    b.graph.layers[repeated.ref[0]].label = "repeated"
    indices = b.one("Convert-1", repeated, destination_type="i32")
    b.graph.layers[indices.ref[0]].label = "indices"
    chosen = b.one("Gather-8", updates, b.one("Squeeze-1", places, i64(b, [0])), i64(b, 0), batch_dims=0)
    b.result(
        b.one("ScatterElementsUpdate-12", data, indices, chosen, i64(b, 0), reduction="sum", use_init_val=True),
    )
    ours, rng = irrun.GraphExecutor(saved(b, tmp_path), engine=engine), np.random.default_rng(0)
    for places in ([1, 4, 9], [1, 4, 9], [], [0], range(10)):
        data, updates = (rng.standard_normal((10, 7), np.float32) for _ in range(2))
        (x,) = which(*places)
        (result,) = ours.run([x, data, updates]).values()
        np.testing.assert_array_equal(result, np.where(x[:, None] != 0, data + updates, data))
        if engine == "numpy" and len(places) > 1:
            twice = np.broadcast_to(np.int64([[1], [2]]), (2, 7))
            _, (found,) = specialization(ours, "indices").compute([twice], Run(Variables({})))
            assert found.tolist() == [[1] * 7, [2] * 7]
            assert found.strides[1] == 0
