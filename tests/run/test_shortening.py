"""Instructions of open sizes whose rules are not asked again: their kernels refuse what the rules do."""

import random

import numpy as np
import pytest
from differential.graph import Layer

import irrun
from irrun.run.passes.shortening import MAX_SMALL
from irrun.run.rules import Rule
from irrun.spec.dims import fresh
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Tensor, Violation
from irrun.spec.registry import registry
from irrun.spec.traits import Lookup, Repeating, Reshaping
from run.models import ADD, anything, i64, model, saved

SELF_CHECKING = sorted(name for name, op in registry().ops.items() if op.self_checking)
RESHAPING = sorted(name for name, op in registry().ops.items() if op.trait(Reshaping))
REPEATING = sorted(name for name, op in registry().ops.items() if op.trait(Repeating))


def agree(op, arrays, attrs):
    """Whether the rule and the kernel both take the arrays; both must, or neither."""
    tensors = [Tensor.of(array) for array in arrays]
    try:
        inferred = op.infer(tensors, attrs)
    except Violation:
        inferred = None
    context = {"types": inferred.types if inferred else {"T": tensors[0].type}} if op.context else {}
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(op.kernel(*arrays, **attrs, **context))
    except Exception:
        assert inferred is None
        return False
    assert inferred is not None
    assert result.shape == inferred.outputs[0].shape
    return True


def types_of(op, port):
    return sorted(op.types.get(port.type, {port.type}) - {"string", "dynamic"})


@pytest.mark.parametrize("name", SELF_CHECKING)
def test_kernels_refuse_shapes_that_rules_refuse(name):
    op, draw = registry().ops[name], random.Random(name)
    attrs = dict(op.defaults)
    attrs |= {a.keyword: "f32" if "type" in a.name else 1.0 for a in op.attrs if a.keyword not in attrs}
    if "output_type" in attrs:
        attrs["output_type"] = "i32"
    taken = 0
    for _ in range(300):
        same = draw.choice([t for t in ("f32", "i32", "boolean") if t in types_of(op, op.inputs[-1])])
        types = [same if same in types_of(op, port) else types_of(op, port)[0] for port in op.inputs]
        shapes = [[draw.choice((0, 1, 1, 2, 3)) for _ in range(draw.randint(0, 3))] for _ in op.inputs]
        arrays = [np.ones(shape, numpy_dtype(type)) for shape, type in zip(shapes, types, strict=True)]
        if op.trait(Lookup):
            arrays[2] = np.int32(draw.choice((-3, -1, 0, 1, 2)))
        open = [Tensor(type, (fresh(),) * array.ndim) for type, array in zip(types, arrays, strict=True)]
        try:  # what the rule has passed before the run
            op.infer([*open[:2], Tensor.of(arrays[2])] if op.trait(Lookup) else open, attrs)
        except Violation:
            continue
        taken += agree(op, arrays, attrs)
    assert taken > 20


@pytest.mark.parametrize("name", RESHAPING)
def test_kernels_refuse_shapes_that_do_not_fit(name):
    op, draw = registry().ops[name], random.Random(name)
    taken = 0
    for _ in range(500):
        array = np.ones([draw.choice((0, 1, 1, 2, 3)) for _ in range(draw.randint(0, 4))], np.float32)
        target = [draw.choice((-2, -1, 0, 1, 1, 2, 3, 6)) for _ in range(draw.randint(0, 3))]
        known = Tensor("f32", (fresh(),) * array.ndim)  # what the rule has passed before the run
        attrs = {a.keyword: draw.choice((True, False)) for a in op.attrs}
        try:
            op.infer([known, Tensor.of(np.int64(target))], attrs)
        except Violation:
            continue
        taken += agree(op, [array, np.int64(target)], attrs)
    assert taken > 20


@pytest.mark.parametrize("name", REPEATING)
def test_kernels_refuse_what_cannot_be_repeated(name):
    op, draw = registry().ops[name], random.Random(name)
    taken = 0
    for _ in range(500):
        array = np.ones([draw.choice((0, 1, 1, 2, 3)) for _ in range(draw.randint(0, 3))], np.float32)
        target = np.int64([draw.choice((-1, 0, 1, 2, 3)) for _ in range(draw.randint(0, 4))])
        for mode in ("numpy", "bidirectional"):
            if name != "Broadcast-1" or mode == "numpy":
                taken += agree(op, [array, target], {"mode": mode})
    assert taken > 20


def masks(folder, engine):
    """1 where the places of the mask [batch, length] are before `end`, behind a reshape and a repetition."""
    b = model()
    mask, end = anything(b, "i8", (-1, -1), "mask"), anything(b, "i8", (-1, 1), "end")
    y = b.one("Less-1", mask, end, **ADD)
    y = b.one("LogicalNot-1", y)
    y = b.one("Unsqueeze-1", y, i64(b, [1]))
    y = b.one("Convert-1", y, destination_type="f32")
    b.result(b.one("Multiply-1", b.one("Add-1", y, b.constant(np.float32(2)), **ADD), b.constant(np.float32(3)), **ADD))
    return irrun.GraphExecutor(saved(b, folder), engine=engine)


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn"])
def test_what_is_small_and_what_is_not(engine, tmp_path, monkeypatch):
    monkeypatch.setattr("irrun.run.preparation.MAX_KEPT", 0)
    ours = masks(tmp_path, engine)
    rng = np.random.default_rng(0)
    for batch, length in ((1, 5), (3, 1), (2, MAX_SMALL), (1, 0)):
        mask, end = rng.integers(0, 9, (batch, length)), rng.integers(0, 9, (batch, 1))
        (result,) = ours.run([mask, end]).values()
        assert result.tolist() == np.where(mask < end, 6, 9)[:, None].tolist()


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn"])
def test_cuts_between_bounds_that_the_data_tell(engine, tmp_path, monkeypatch):
    b = model()
    x, start, stop = anything(b, "f4", (MAX_SMALL, 3)), anything(b, "i8", (1,)), anything(b, "i8", (1,))
    b.result(b.one("Slice-8", x, start, stop, i64(b, [1]), i64(b, [-2])))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    asked, ask = [], Rule.ask
    monkeypatch.setattr(Rule, "ask", lambda self, *given: (asked.append(self), ask(self, *given))[1])
    data = np.arange(MAX_SMALL * 3, dtype="f4").reshape(-1, 3)
    for first, last in ((0, 2), (-3, 9), (7, 5), (MAX_SMALL - 1, -(2**40)), (-(2**40), 2**40)):
        (result,) = ours.run([data, np.int64([first]), np.int64([last])]).values()
        assert result.tolist() == data[first:last].tolist()
    assert bool(asked) == (engine == "reference")
    (result,) = ours.run([data, np.int64([1]), np.int64([2])]).values()
    result[:] = -1  # is the caller's own
    assert data[1].tolist() == [3, 4, 5]


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn"])
def test_steps_that_the_data_tell_are_judged(engine, tmp_path):
    b = model()
    x, step = anything(b, "f4", (5,)), anything(b, "i8", (1,))
    b.result(b.one("Slice-8", x, i64(b, [0]), i64(b, [5]), b.one("Add-1", step, i64(b, [1]), **ADD)))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    data = np.float32([1, 2, 3, 4, 5])
    assert [array.tolist() for array in ours.run([data, np.int64([1])]).values()] == [[1, 3, 5]]
    with pytest.raises(irrun.ExecutionError, match=r"Slice-8 C1: `step\[0\]` is 0"):
        ours.run([data, np.int64([-1])])


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn"])
def test_the_rule_says_what_is_wrong(engine, tmp_path):
    """A variable has sizes that no program knows."""
    b = model()
    x, y = anything(b, "f4", (-1,)), anything(b, "f4", (-1,))
    attrs = {"variable_id": "v", "variable_type": "f32", "variable_shape": "?"}
    (read,) = b.layer(Layer("ReadValue-6", [x.ref], attrs), [x.arrays], False, False)
    b.layer(Layer("Assign-6", [x.ref], {"variable_id": "v"}), [x.arrays], False, False)
    b.result(b.one("Add-1", read, y, **ADD))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    ours.run([np.float32([1, 2, 3]), np.float32([1])])
    with pytest.raises(irrun.ExecutionError, match=r"E401.*Add-1 C1: `a` is \[3\] and `b` is \[2\]"):
        ours.run([np.float32([1, 2]), np.float32([1, 2])])
