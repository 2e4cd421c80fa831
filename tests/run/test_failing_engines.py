"""Engines that fail: passed over for the next one where they prepare, E602 at the layer where they compute."""

import logging
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from engines.toy import Toy

import irrun
from irrun.engines.work import Compiled
from run.engines import Odd, after, executor, fails_to_bind, fails_to_compile, fails_to_compute, unchanged
from run.models import ADD, PLAIN, anything, i64, loop, model, saved

F32 = np.float32
SIZES = pytest.mark.parametrize("sizes", [(2, 3), (-1, 3)], ids=["sized", "unsized"])


def product(sizes):
    """x [2, 3] -> MatMul with ones `product` -> + 1 -> ReLU -> SoftMax `share`."""
    b = model()
    y = b.one("MatMul-1", anything(b, "f4", sizes), b.constant(np.ones((3, 2), F32)), **PLAIN)
    b.graph.layers[y.ref[0]].label = "product"
    y = b.one("ReLU-1", b.one("Add-1", y, b.constant(F32([1, -100])), **ADD))
    b.result(y)
    z = b.one("SoftMax-1", y, axis=0)
    b.graph.layers[z.ref[0]].label = "share"
    b.result(z)
    return b


X = F32([[1, 2, 3], [1, 2, 3]])


def right(ours):
    for _ in range(2):
        first, second = ours.run([X]).values()
        assert (first.tolist(), second.tolist()) == ([[7, 0], [7, 0]], [[0.5, 0.5], [0.5, 0.5]])


def notes(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "irrun"]


@SIZES
@pytest.mark.parametrize("failing", [fails_to_compile, fails_to_bind])
@pytest.mark.parametrize("others", [[], [Odd(unchanged, "next")]], ids=["kernel", "next engine"])
def test_an_engine_that_fails_while_it_prepares_is_passed_over(sizes, failing, others, tmp_path, monkeypatch, caplog):
    odd = Odd(failing("MatMul-1"))
    ours = executor(saved(product(sizes), tmp_path), [odd, *others], monkeypatch)
    with caplog.at_level(logging.WARNING, "irrun"):
        right(ours)
    found = notes(caplog)
    assert found
    verb = "prepare" if failing is fails_to_compile else "bind"
    assert all(f"engine odd failed to {verb} layer" in note and "`product`" in note for note in found)
    assert all("ValueError('cannot" in note for note in found)
    if sizes == (2, 3):
        (kept,) = ours._whole.preparation._kept.values()
        by = {i.layer.name: i.by for i in kept.program.instructions}
        assert by["product"] == ("next" if others else "kernel")
        assert by["share"] == "odd"


class Sharing(Odd):
    """Has something to do before products are bound, all of which share it with those of equal weights."""

    def __init__(self, fails=False):
        super().__init__(unchanged)
        self.fails, self.asked, self.done = fails, [], []

    def compile(self, work):
        compiled = super().compile(work)
        if compiled is None or work.name != "MatMul-1":
            return compiled
        size = work.outputs[0].shape[1]
        return replace(compiled, bind=self.after(size, compiled.bind), pending=lambda: self.left(size))

    def left(self, size):
        return [] if size in self.done else [partial(self.finish, size)] if size > 3 else [self.small]

    def finish(self, size):
        if self.fails:
            raise ValueError("cannot finish")
        self.done.append(size)

    def small(self):
        self.finish(3)

    def after(self, size, bind):
        def bound(*memory):
            if size not in self.done:
                self.finish(size)
            return bind(*memory)

        return bound

    def together(self, calls):
        self.asked.append(len(calls))
        super().together(calls)


def products(*columns):
    """x [2, 4] times ones of as many columns each."""
    b = model()
    x = anything(b, "f4", (2, 4))
    for count in columns:
        b.result(b.one("MatMul-1", x, b.constant(np.ones((4, count), F32)), **PLAIN))
    return b


def test_what_is_left_to_do_before_works_are_bound_is_done_together_and_once(tmp_path, monkeypatch):
    engine = Sharing()
    ours = executor(saved(products(3, 3, 5, 6), tmp_path), [engine], monkeypatch)
    for _ in range(2):
        assert [array.tolist() for array in ours.run([np.ones((2, 4), F32)]).values()] == [
            np.full((2, count), 4).tolist() for count in (3, 3, 5, 6)
        ]
    assert engine.asked == [3]
    assert sorted(engine.done) == [3, 5, 6]
    alone = Sharing()
    executor(saved(products(3, 3), tmp_path), [alone], monkeypatch).run([np.ones((2, 4), F32)])
    assert (alone.asked, alone.done) == ([], [3])


def test_who_binds_a_work_says_what_has_failed_before(tmp_path, monkeypatch, caplog):
    engine = Sharing(fails=True)
    ours = executor(saved(products(3, 5), tmp_path), [engine], monkeypatch)
    with caplog.at_level(logging.WARNING, "irrun"):
        first, second = ours.run([np.ones((2, 4), F32)]).values()
    assert (first.tolist(), second.tolist()) == (np.full((2, 3), 4).tolist(), np.full((2, 5), 4).tolist())
    assert engine.asked
    found = notes(caplog)
    assert len(found) == 2
    assert all("engine odd failed to bind layer" in note and "cannot finish" in note for note in found)


@SIZES
def test_an_engine_that_fails_while_it_computes(sizes, tmp_path, monkeypatch):
    ours = executor(saved(product(sizes), tmp_path), [Odd(fails_to_compute("SoftMax-1"))], monkeypatch)
    for _ in range(2):
        with pytest.raises(
            irrun.ExecutionError, match=r"E602\]: engine odd failed: ValueError: cannot compute, at .*:\d+"
        ) as error:
            ours.run([X])
        assert error.value.diagnostics[0].layer.name == "share"
        assert isinstance(error.value.__cause__, ValueError)


class Opening(Odd):
    """Has a call for products of open sizes."""

    def __init__(self, call, name="odd"):
        super().__init__(unchanged, name)
        self.call = call

    def open(self, work):
        return self.call if work.name == "MatMul-1" else None


def chosen(folder, engines, monkeypatch):
    """x [4] -> how many are not 0, as a column -> MatMul with [[1, 2]] `product`."""
    b = model()
    places = b.one("NonZero-3", anything(b, "f4", (4,)))
    ones = b.one("Convert-1", b.one("Transpose-1", places, i64(b, [1, 0])), destination_type="f32")
    y = b.one("MatMul-1", ones, b.constant(F32([[1, 2]])), **PLAIN)
    b.graph.layers[y.ref[0]].label = "product"
    b.result(y)
    return executor(saved(b, folder), engines, monkeypatch)


def test_calls_of_open_sizes_are_asked_in_turn(tmp_path, monkeypatch):
    asked = []

    def leaves(arrays):
        asked.append(arrays[0].tolist())

    def computes(arrays):
        return [arrays[0] @ arrays[1] * F32(10)] if len(arrays[0]) > 1 else None

    ours = chosen(tmp_path, [Opening(leaves), Opening(computes, "next")], monkeypatch)
    (result,) = ours.run([F32([0, 1, 1, 0])]).values()
    assert result.tolist() == [[10, 20], [20, 40]]
    (result,) = ours.run([F32([0, 0, 0, 1])]).values()
    assert result.tolist() == [[3, 6]]
    assert asked == [[[1], [2]], [[3]]]


def test_an_engine_that_fails_to_say_whether_it_has_a_call_of_open_sizes(tmp_path, monkeypatch, caplog):
    class Failing(Odd):
        def open(self, work):
            raise ValueError(f"cannot open {work.name}")

    ours = chosen(tmp_path, [Failing(unchanged), Opening(lambda arrays: [arrays[0] @ arrays[1]], "next")], monkeypatch)
    with caplog.at_level(logging.WARNING, "irrun"):
        (result,) = ours.run([F32([0, 1, 1, 0])]).values()
    assert result.tolist() == [[1, 2], [2, 4]]
    assert any(
        "engine odd failed to prepare layer" in note and "cannot open MatMul-1" in note for note in notes(caplog)
    )


@pytest.mark.parametrize("sizes", [(4,), (-1,)])
def test_an_engine_that_fails_while_it_computes_what_only_a_run_has_told_the_sizes_of(sizes, tmp_path, monkeypatch):
    b = model()
    places = b.one("NonZero-3", anything(b, "f4", sizes))
    b.result(b.one("SoftMax-1", b.one("Convert-1", places, destination_type="f32"), axis=1))
    ours = executor(saved(b, tmp_path), [Odd(fails_to_compute("SoftMax-1"))], monkeypatch)
    for _ in range(2):
        with pytest.raises(irrun.ExecutionError, match=r"E602\]: engine odd failed: ValueError: cannot compute"):
            ours.run([F32([0, 1, 1, 0])])


def test_a_call_of_open_sizes_that_fails(tmp_path, monkeypatch):
    def fails(_):
        raise ValueError("cannot compute")

    ours = chosen(tmp_path, [Opening(fails)], monkeypatch)
    with pytest.raises(
        irrun.ExecutionError, match=r"E602\]: engine odd failed: ValueError: cannot compute, at .*:\d+"
    ) as error:
        ours.run([F32([0, 1, 1, 0])])
    assert error.value.diagnostics[0].layer.name == "product"


def test_an_engine_that_fails_while_it_computes_in_a_body(tmp_path, monkeypatch):
    inner, b = model(), model()
    p = anything(inner, "f4", (2, 3))
    y = inner.one("SoftMax-1", p, axis=0)
    inner.graph.layers[y.ref[0]].label = "inside"
    (last,) = loop(b, inner, i64(b, 2), [(p, anything(b, "f4", (2, 3)))], [y], [(y, p)])
    b.result(last)
    ours = executor(saved(b, tmp_path), [Odd(fails_to_compute("SoftMax-1"))], monkeypatch)
    with pytest.raises(
        irrun.ExecutionError, match=r"E602\]: engine odd failed: ValueError: cannot compute, at .*:\d+"
    ) as error:
        ours.run([X])
    assert error.value.diagnostics[0].layer.name == "inside"


def test_an_engine_that_fails_in_the_middle_of_a_model_leaves_the_next_run_whole(tmp_path, monkeypatch):
    """It fails in every other run, and what it has left in the frame's memory does no harm."""
    runs = []

    def sometimes(outputs):
        runs.append(1)
        outputs[0][...] = np.nan
        if len(runs) % 2:
            raise ValueError("not now")
        outputs[0][...] = 0.5

    ours = executor(saved(product((2, 3)), tmp_path), [Odd(after("SoftMax-1", sometimes))], monkeypatch)
    for number in range(6):
        if number % 2 == 0:
            with pytest.raises(irrun.ExecutionError, match="not now"):
                ours.run([X])
        else:
            assert [array.tolist() for array in ours.run([X]).values()][1] == [[0.5, 0.5], [0.5, 0.5]]


class Reordering(Toy):
    """Gives everything in a layout of its own, of which it fails to make anything else."""

    def __init__(self, early):
        super().__init__(0)
        self.early = early

    def compile(self, work):
        self._draw.random, self._draw.randrange = (lambda: 0.9), (lambda _: 0)
        return super().compile(work) if work.name == "SoftMax-1" else None

    def reorder(self, operand, layout):
        def bind(*_):
            raise ValueError("cannot reorder")

        if self.early:
            raise ValueError("cannot reorder")
        return Compiled(bind)


@pytest.mark.parametrize("early", [True, False])
def test_an_engine_that_fails_to_reorder_is_passed_over_where_it_laid_out(early, tmp_path, monkeypatch, caplog):
    """The result of `share` is brought back at the end of the program, where another layer comes last."""
    b = model()
    x = anything(b, "f4", (2, 2))
    y = b.one("SoftMax-1", x, axis=1)
    b.graph.layers[y.ref[0]].label = "share"
    b.result(b.one("NonZero-3", x))
    b.result(y)
    ours = executor(saved(b, tmp_path), [Reordering(early)], monkeypatch)
    with caplog.at_level(logging.WARNING, "irrun"):
        places, share = ours.run([F32([[0, 0], [1, 1]])]).values()
    assert (places.tolist(), share.tolist()) == ([[1, 1], [0, 1]], [[0.5, 0.5], [0.5, 0.5]])
    (note,) = notes(caplog)
    assert "`share`" in note
    assert "cannot reorder" in note


@pytest.mark.parametrize("engine", ["numpy", "onednn"])
def test_data_that_break_a_rule_are_no_failure_of_an_engine(engine, caplog):
    """71 of 72 rows are to be added to 72; an engine that was blamed for it would never be asked again."""
    with irrun.build() as g:
        x, y = g.Parameter("f32[?]", name="x"), g.Parameter("f32[?]", name="y")
        places = g.Reshape(g.NonZero(g.Greater(x, 0.0)), [-1])
        g.Result(g.ReLU(g.Add(g.Gather(x, places, 0), y)), name="z")
    executor = irrun.GraphExecutor(g.model, engine=engine)
    ones = np.ones(72, np.float32)
    for _ in range(3):
        with pytest.raises(irrun.ExecutionError, match=r"E401.*`a` is \[71\] and `b` is \[72\]"):
            executor.run([np.append(ones[1:], np.float32(0)), ones])
    for _ in range(3):
        assert executor.run([ones, ones])["z"].tolist() == [2] * 72
    assert not caplog.records
