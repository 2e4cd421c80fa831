"""Copies that turn tiles of 16 x 16 elements, against the plain kernels."""

import numpy as np
import pytest
from engines.works import computed, plain, room_of, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the kernel")

from irrun.engines.axes import channels_last
from irrun.engines.compiled import transposition as module
from irrun.engines.compiled.engine import LEAST, MOVING, CompiledEngine
from irrun.engines.compiled.team import Team
from irrun.engines.vectorized.copies import MOVERS
from irrun.engines.work import Operand, Post

TEAM = Team(2)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(module, "LEAST", 1 << 8)
    monkeypatch.setattr(module, "SHARED", 1 << 11)
    monkeypatch.setattr(module, "PART", 48)


def last(array):
    """The same array with axis 1 last in memory."""
    order = [0, *range(2, array.ndim), 1]
    return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))


def numbers(*shape, dtype=np.float32):
    return (np.random.default_rng(1).random(shape) * 1e6).astype(dtype)


def compiled(name, arrays, attrs=None, posts=()):
    attrs = attrs or {}
    expected = plain(name, attrs, arrays)
    results = expected if isinstance(expected, tuple | list) else [expected]
    types = {"float32": "f32", "int32": "i32", "uint32": "u32", "float16": "f16", "int64": "i64"}
    constant = [number for number, array in enumerate(arrays) if number and array.ndim < 2]
    work = work_of(name, attrs, arrays, [(own.shape, types[str(own.dtype)]) for own in results], posts, constant)
    return work, module.transposition(work, TEAM), results


def check(name, arrays, attrs=None):
    work, found, expected = compiled(name, arrays, attrs)
    assert found is not None
    for own, other in zip(computed(found, work, arrays), expected, strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint32])
@pytest.mark.parametrize("channels", [16, 17, 31, 32, 50])
@pytest.mark.parametrize("places", [16, 17, 47, 48, 49, 100, 333])
def test_orders_of_all_sizes(places, channels, dtype):
    for batch in (1, 3):
        data = last(numbers(batch, channels, places, dtype=dtype))
        check("Transpose-1", [np.ascontiguousarray(data), np.array([0, 2, 1])])
        check("Concat-1", [data, data], {"axis": 2})
        check("Concat-1", [data, data[..., : places // 2 + 1]], {"axis": 2})
        check("Reshape-1", [data, np.array([batch, -1])], {"special_zero": False})


def test_parts_and_what_is_not_turned():
    data = last(numbers(2, 64, 5, 11))
    check("Split-1", [data, np.array(1)], {"num_splits": 2})
    check("VariadicSplit-1", [data, np.array(1), np.array([20, 4, 40])])  # four channels are copied as they lie
    check("Concat-1", [data, np.ascontiguousarray(data[:, :, :1])], {"axis": 2})
    check("Concat-1", [data, numbers(2, 64, 1, 11)], {"axis": 2})


def test_other_ops_that_move():
    data = last(numbers(1, 64, 9, 8))
    check("Unsqueeze-1", [data, np.array([0])])
    check("Broadcast-3", [data, np.array([1, 64, 9, 8])], {"mode": "numpy"})


def test_numbers():
    data = np.arange(16 * 32, dtype=np.float32).reshape(1, 32, 16)
    work, found, _ = compiled("Transpose-1", [data, np.array([0, 2, 1])])
    (made,) = computed(found, work, [data, np.array([0, 2, 1])])
    assert made[0, 3].tolist() == [3 + 16 * n for n in range(32)]


def test_what_is_left_to_others():
    data = numbers(2, 40, 60)
    assert compiled("Concat-1", [data, data], {"axis": 2})[1] is None
    assert compiled("Concat-1", [last(data)[:, ::-1], last(data)], {"axis": 2})[1] is None
    assert compiled("Concat-1", [last(data[:, :15]), last(data[:, :15])], {"axis": 2})[1] is None
    assert compiled("Concat-1", [last(data), data, data], {"axis": 2})[1] is None
    assert compiled("Concat-1", [last(data / 1e3).astype(np.float16)] * 2, {"axis": 2})[1] is None
    assert compiled("Transpose-1", [data.astype(np.int64), np.array([0, 2, 1])])[1] is None
    assert compiled("Transpose-1", [data, np.array([0, 2, 1])], posts=(Post("ReLU-1", {}),))[1] is None
    assert compiled("Transpose-1", [data, np.array([1, 0, 2])])[1] is None


@pytest.mark.parametrize("turned", [False, True])
def test_reorders(turned):
    data = numbers(3, 33, 7, 9)
    given, layout = (last(data), None) if turned else (data, channels_last(Operand("f32", data.shape, data.strides)))
    operand = Operand("f32", data.shape, given.strides)
    found = module.reorder(operand, layout, TEAM)
    made = room_of(operand, layout)
    found.bind([given], [made], None)()
    np.testing.assert_array_equal(made, data)
    same = channels_last(operand) if turned else None
    assert module.reorder(operand, same, TEAM) is None


def test_reordered_by_the_engine():
    engine, data = CompiledEngine(2), numbers(1, 40, 60)
    operand = Operand("f32", data.shape, data.strides)
    for _ in range(2):  # without what compiles, and with it
        made = room_of(operand, channels_last(operand))
        engine.reorder(operand, channels_last(operand)).bind([data], [made], None)()
        np.testing.assert_array_equal(made, data)
        engine._threads()


def test_only_what_is_turned_is_a_reason_to_load_what_compiles():
    size = int(LEAST["Concat-1"] ** 0.5) // 2 * 2
    for turned, rows, taken in ((False, size, False), (True, size // 2, False), (True, size, True)):
        data = numbers(1, size // 2, rows)
        data = last(data) if turned else data
        work, _, _ = compiled("Concat-1", [data, data], {"axis": 2})
        assert (CompiledEngine(2).compile(work) is not None) == taken
        assert CompiledEngine(2, once=True).compile(work) is None


def test_all_ops_that_numpy_copies_for_are_taken():
    assert set(MOVING) == set(MOVERS)
