"""Instructions that change nothing are left out, where nobody watches them."""

import numpy as np
import pytest

import irrun
from run.models import ADD, anything, i64, loop, model, saved

F32 = np.float32
ENGINES = pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "check"])


def programs(executor):
    return [kept.program for kept in executor._whole.preparation._kept.values()]


@ENGINES
def test_conversions_into_the_type_that_is_there(engine, tmp_path):
    """x * 1 + x, through conversions, of which one is the result."""
    b = model()
    x = anything(b, "f4", (2, 3))
    y = b.one("Convert-1", b.one("ConvertLike-1", x, b.constant(F32(7))), destination_type="f32")
    y = b.one("Multiply-1", b.constant(F32([1])), y, **ADD)
    b.result(b.one("ConvertLike-1", b.one("Add-1", y, x, **ADD), x))
    b.result(b.one("Convert-1", x, destination_type="f32"))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    data = np.arange(6, dtype=F32).reshape(2, 3)
    first, second = ours.run([data]).values()
    assert first.tolist() == (2 * data).tolist()
    assert second.tolist() == data.tolist()
    assert not np.shares_memory(second, data)
    for program in programs(ours):
        assert [instruction.op.name for instruction in program.instructions] == ["Add-1"]
    seen = []
    ours.run([data], observer=lambda event: seen.append(event.layer.type))
    assert [seen.count(type) for type in ("Add", "Convert", "ConvertLike")] == [1, 2, 2]


@ENGINES
@pytest.mark.parametrize("rows", [2, -1])
def test_a_constant_in_the_type_of_what_a_run_tells(engine, rows, tmp_path):
    """It is one, too; a large one is kept as it is in the file, and converted in every run."""
    b = model()
    x = anything(b, "f4", (rows, 300))
    small, large = np.int64([-7]), np.arange(300)
    for constant in (small, large):
        b.result(b.one("Add-1", x, b.one("ConvertLike-1", b.constant(constant), x), **ADD))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    data = np.ones((2, 300), F32)
    for result, constant in zip(ours.run([data]).values(), (small, large), strict=True):
        assert result.tolist() == (data + constant).tolist()
    for program in programs(ours):
        assert sorted(instruction.op.name for instruction in program.instructions) == [
            *("Add-1", "Add-1"),
            "ConvertLike-1",
        ]


@ENGINES
@pytest.mark.parametrize(
    ("type", "factor", "left"),
    [("f4", F32([[1]]), 1), ("f4", F32(2), 1), ("f4", F32(1), 0), ("i4", np.int32(1), 0), ("f4", F32([1, 1]), 1)],
)
def test_factors_that_change_nothing(engine, type, factor, left, tmp_path):
    """A factor of more axes makes the result one of more, too."""
    b = model()
    x = anything(b, type, (2,))
    b.result(b.one("Multiply-1", x, b.constant(factor), **ADD))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    data = np.array([3, -4], type)
    (result,) = ours.run([data]).values()
    np.testing.assert_array_equal(result, data * factor)
    assert not np.shares_memory(result, data)
    for program in programs(ours):
        assert len(program.instructions) == left


@ENGINES
@pytest.mark.parametrize(
    ("sizes", "pads", "open", "left"),
    [((4, 6), (0, 0), False, 0), ((4, 6), (0, 0), True, 0), ((4, 6), (0, 1), False, 1), ((4, 7), (0, 0), False, 1)],
)
def test_images_that_keep_their_sizes(engine, sizes, pads, open, left, tmp_path):
    b = model()
    x = anything(b, "f4", (1, 4, -1 if open else 6))
    attrs = {"mode": "linear", "shape_calculation_mode": "sizes", "pads_begin": "0," + ",".join(map(str, pads))}
    b.result(b.one("Interpolate-11", x, i64(b, sizes), i64(b, (1, 2)), **attrs))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    data = np.random.default_rng(0).normal(size=(1, 4, 6)).astype(F32)
    (result,) = ours.run([data]).values()
    assert result.shape == (1, *sizes)
    assert not np.shares_memory(result, data)
    if not left:
        np.testing.assert_array_equal(result, data)
    for program in programs(ours)[-1:]:
        assert len(program.instructions) == left


@ENGINES
def test_a_body_that_gives_its_parameters_converted_into_what_they_are(engine, tmp_path):
    """Two values that change places in every iteration."""
    inner, b = model(), model()
    p, q = anything(inner, "f4", (2,)), anything(inner, "f4", (2,))
    first, second = (inner.one("Convert-1", x, destination_type="f32") for x in (p, q))
    given = [(p, anything(b, "f4", (2,))), (q, anything(b, "f4", (2,)))]
    for value in loop(b, inner, i64(b, 3), given, [first, second], [(first, q), (second, p)], [first]):
        b.result(value)
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for _ in range(2):
        x, y = F32([1, 2]), F32([3, 4])
        assert [array.tolist() for array in ours.run([x, y]).values()] == [[1, 2], [3, 4], [1, 2, 3, 4, 1, 2]]


@ENGINES
def test_no_updates_of_a_tensor(engine, tmp_path):
    b = model()
    x = anything(b, "f4", (4, 3))
    none = i64(b, np.zeros((0, 1)))
    y = b.one("ScatterNDUpdate-3", x, none, b.constant(np.zeros((0, 3), F32)))
    y = b.one("ScatterUpdate-3", y, i64(b, np.zeros(0)), b.constant(np.zeros((0, 3), F32)), i64(b, 0))
    elements = i64(b, np.zeros((0, 3))), b.constant(np.zeros((0, 3), F32)), i64(b, 0)
    y = b.one("ScatterElementsUpdate-12", y, *elements, reduction="sum", use_init_val=False)
    b.result(b.one("Abs-1", y))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    data = np.arange(-6, 6, dtype=F32).reshape(4, 3)
    (result,) = ours.run([data]).values()
    assert result.tolist() == np.abs(data).tolist()
    for program in programs(ours):
        assert [instruction.op.name for instruction in program.instructions] == ["Abs-1"]


@ENGINES
@pytest.mark.parametrize(
    ("mode", "sizes", "left"), [("numpy", (4, 3), 0), ("bidirectional", (1, 3), 0), ("numpy", (2, 4, 3), 1)]
)
def test_repetitions_into_the_shape_that_is_there(engine, mode, sizes, left, tmp_path):
    b = model()
    x = anything(b, "f4", (-1, 3))
    b.result(b.one("Broadcast-3", x, i64(b, sizes), mode=mode))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    data = np.arange(12, dtype=F32).reshape(4, 3)
    (result,) = ours.run([data]).values()
    np.testing.assert_array_equal(result, np.broadcast_to(data, np.broadcast_shapes(data.shape, sizes)))
    assert not np.shares_memory(result, data)
    for program in programs(ours)[-1:]:
        assert len(program.instructions) == left
