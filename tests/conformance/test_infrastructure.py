"""Loops, TensorIterators and variables against OpenVINO."""

import numpy as np
import openvino as ov
from openvino import opset1, opset3, opset6
from openvino.op import loop, tensor_iterator

import irrun
from conformance.harness import Case, Const, conformance

F32, I32, I64 = ov.Type.f32, ov.Type.i32, ov.Type.i64


def rows(*shape):
    return (np.arange(np.prod(shape)) % 7 - 2.5).astype(np.float32).reshape(shape)


def running_sum(data, initial, *, start=0, end=-1, stride=1, part_size=1, axis=0):
    """Sum slices of `data` along `axis` on top of `initial`; all sums, and the last one."""
    shape = list(data.partial_shape)
    shape[axis] = part_size
    piece, total = opset1.parameter(ov.PartialShape(shape), F32), opset1.parameter(initial.partial_shape, F32)
    added = opset1.result(opset1.add(piece, total))
    ti = tensor_iterator()
    ti.set_body(ov.Model([added], [piece, total]))
    ti.set_sliced_input(piece, data.output(0), start, stride, part_size, end, axis)
    ti.set_merged_input(total, initial.output(0), added.output(0))
    first, last = (0, -1) if stride > 0 else (-1, 0)
    joined = ti.get_concatenated_slices(added.output(0), first, stride, part_size, last, axis)
    return [joined, ti.get_iter_value(added.output(0), -1)]


def two_sliced(a, b):
    """One input forwards, one backwards, and one that stays."""
    x, y = (opset1.parameter([1, 2], F32) for _ in range(2))
    both = opset1.result(opset1.multiply(x, y))
    ti = tensor_iterator()
    ti.set_body(ov.Model([both], [x, y]))
    ti.set_sliced_input(x, a.output(0), 0, 1, 1, -1, 0)
    ti.set_sliced_input(y, b.output(0), -1, -1, 1, 0, 0)
    return [ti.get_concatenated_slices(both.output(0), -1, -1, 1, 0, 0)]


def scaled(data, factor):
    x, f = opset1.parameter([2, 1], F32), opset1.parameter([], F32)
    product = opset1.result(opset1.multiply(x, f))
    ti = tensor_iterator()
    ti.set_body(ov.Model([product], [x, f]))
    ti.set_sliced_input(x, data.output(0), 0, 1, 1, -1, 1)
    ti.set_invariant_input(f, factor.output(0))
    return [ti.get_concatenated_slices(product.output(0), 0, 1, 1, -1, 1)]


def counting(trips, start, initial, *, limit=None, counter=I64, join=True):
    """Add the iteration number to a carried value, until it reaches `limit`."""
    number, value = opset1.parameter([1], counter), opset1.parameter(initial.partial_shape, F32)
    total = opset1.add(value, opset1.convert(number, "f32"))
    one = (
        opset1.constant(np.ones(1, bool))
        if limit is None
        else opset1.less(
            opset1.reduce_max(total, opset1.constant(np.array([0, 1]))), opset1.constant(np.float32(limit))
        )
    )
    results = [opset1.result(one), opset1.result(total)]
    op = loop(trips.output(0), start.output(0))
    op.set_function(ov.Model(results, [number, value]))
    op.set_special_body_ports([0, 0])
    op.set_merged_input(value, initial.output(0), results[1].output(0))
    outputs = [op.get_iter_value(results[1].output(0), -1)]
    if join:
        outputs.append(op.get_concatenated_slices(results[1].output(0), 0, 1, 1, -1, 0))
    return outputs


def growing(trips, initial):
    """A carried value that gets longer in every iteration."""
    value = opset1.parameter([-1], F32)
    longer = opset1.concat([value, opset1.constant(np.float32([1]))], 0)
    results = [opset1.result(opset1.constant(np.array(True))), opset1.result(longer)]
    op = loop(trips.output(0), opset1.constant(np.array(True)).output(0))
    op.set_function(ov.Model(results, [value]))
    op.set_special_body_ports([-1, 0])
    op.set_merged_input(value, initial.output(0), results[1].output(0))
    return [op.get_iter_value(results[1].output(0), -1)]


def sliced_loop(trips, data):
    piece = opset1.parameter([1, 2], F32)
    results = [opset1.result(opset1.constant(np.array(True))), opset1.result(opset1.exp(piece))]
    op = loop(trips.output(0), opset1.constant(np.array(True)).output(0))
    op.set_function(ov.Model(results, [piece]))
    op.set_special_body_ports([-1, 0])
    op.set_sliced_input(piece, data.output(0), 0, 1, 1, -1, 0)
    return [op.get_concatenated_slices(results[1].output(0), 0, 1, 1, -1, 0)]


def nested(trips, initial):
    """A loop that runs a loop that adds 0 and 1."""
    value = opset1.parameter([2], F32)
    inner = counting(opset1.constant(np.int64(2)), opset1.constant(np.array(True)), value, join=False)
    results = [opset1.result(opset1.constant(np.array(True))), opset1.result(inner[0])]
    op = loop(trips.output(0), opset1.constant(np.array(True)).output(0))
    op.set_function(ov.Model(results, [value]))
    op.set_special_body_ports([-1, 0])
    op.set_merged_input(value, initial.output(0), results[1].output(0))
    return [op.get_iter_value(results[1].output(0), -1)]


def partial(**attributes):
    return lambda *nodes: running_sum(*nodes, **attributes)


TRUE, FALSE = Const(np.array(True)), Const(np.array(False))
ROW = np.float32([[10, 20]])

CASES = [
    Case("TensorIterator-1", "sums of rows", running_sum, [rows(3, 2), ROW]),
    Case("TensorIterator-1", "backwards", partial(start=-1, end=0, stride=-1), [rows(3, 2), ROW]),
    Case("TensorIterator-1", "along the last axis", partial(axis=1), [rows(2, 3), np.float32([[1], [2]])]),
    Case("TensorIterator-1", "parts of two rows", partial(stride=2, part_size=2), [rows(6, 2), rows(2, 2)]),
    Case("TensorIterator-1", "up to the last but one", partial(end=-2), [rows(4, 2), ROW]),
    Case(
        "TensorIterator-1",
        "from the second row on",
        partial(start=1),
        [rows(4, 2), ROW],
        deviates="takes rows from the first on",
        expected=[SUMS := ROW + np.cumsum(rows(4, 2)[1:], 0), SUMS[-1:]],
    ),
    Case(
        "TensorIterator-1",
        "backwards without the last row",
        partial(start=-2, end=0, stride=-1),
        [rows(4, 2), ROW],
        deviates="takes rows from the last on",
        expected=[SUMS := (ROW + np.cumsum(rows(4, 2)[2::-1], 0))[::-1], SUMS[:1]],
    ),
    Case(
        "TensorIterator-1",
        "up to row 2",
        partial(end=2),
        [rows(4, 2), ROW],
        deviates="excludes end, against its own shape inference, and fails",
        expected=[SUMS := ROW + np.cumsum(rows(4, 2)[:3], 0), SUMS[-1:]],
    ),
    Case("TensorIterator-1", "two inputs", two_sliced, [rows(3, 2), rows(3, 2) + 1]),
    Case("TensorIterator-1", "an input that stays", scaled, [rows(2, 3), np.array(3, np.float32)]),
    Case("TensorIterator-1", "sizes unknown", running_sum, [rows(3, 2), ROW], dynamic=True),
    Case("Loop-5", "counts", counting, [Const(np.int64(3)), TRUE, ROW]),
    Case("Loop-5", "counts in i32", lambda *n: counting(*n, counter=I32), [Const(np.int32([3])), TRUE, ROW]),
    Case("Loop-5", "stops at a limit", lambda *n: counting(*n, limit=7), [Const(np.int64(100)), TRUE, rows(1, 2)]),
    Case(
        "Loop-5", "runs without a trip count", lambda *n: counting(*n, limit=7), [Const(np.int64(-1)), TRUE, rows(1, 2)]
    ),
    Case("Loop-5", "trip count as an input", counting, [np.int64(4), np.array(True), ROW]),
    Case("Loop-5", "sizes unknown", lambda *n: counting(*n, join=False), [np.int64(4), TRUE, rows(2)], dynamic=True),
    Case("Loop-5", "carries a growing value", growing, [Const(np.int64(3)), rows(2)], dynamic=True),
    Case("Loop-5", "slices", sliced_loop, [Const(np.int64(3)), rows(3, 2)]),
    Case("Loop-5", "in a loop", nested, [Const(np.int64(3)), rows(2)]),
    Case(
        "Loop-5",
        "no iterations",
        counting,
        [np.int64(0), np.array(True), rows(2)],
    ),
    Case(
        "Loop-5",
        "false from the start",
        counting,
        [np.int64(2), np.array(False), rows(2)],
        deviates="gives tensors without elements",
        expected=[rows(2), np.zeros(0, np.float32)],
    ),
    Case("Result-1", "passes on", lambda x: [x.output(0)], [rows(2)]),
]

test_agrees_with_openvino = conformance(CASES)


def run_thrice(tmp_path, model, array):
    path = tmp_path / "model.xml"
    ov.serialize(model, path)
    ours = irrun.GraphExecutor(path)
    request = ov.Core().compile_model(path, "CPU").create_infer_request()
    for _ in range(3):
        (got,), want = ours.run([array]).values(), request.infer([array])[0]
        np.testing.assert_array_equal(got, want)
        array = array + 1
    request.reset_state()
    ours.reset_state()
    np.testing.assert_array_equal(next(iter(ours.run([array]).values())), request.infer([array])[0])


def test_a_variable_of_opset6_lives_between_runs(tmp_path):
    x = opset1.parameter([2], F32)
    variable = ov.op.util.Variable(_info("v", [2]))
    read = opset6.read_value(opset1.constant(np.float32([5, 6])), variable)
    total = opset1.add(read, x)
    model = ov.Model([opset1.result(total)], [opset6.assign(total, variable)], [x], "m")
    run_thrice(tmp_path, model, np.float32([1, 2]))


def _info(name, shape):
    info = ov.op.util.VariableInfo()
    info.data_shape, info.data_type, info.variable_id = ov.PartialShape(shape), F32, name
    return info


def test_a_variable_of_opset3_lives_between_runs(tmp_path):
    x = opset1.parameter([2], F32)
    read = opset3.read_value(opset1.constant(np.float32([5, 6])), "v")
    total = opset1.add(read, x)
    model = ov.Model([opset1.result(total)], [opset3.assign(total, "v")], [x], "m")
    run_thrice(tmp_path, model, np.float32([1, 2]))
