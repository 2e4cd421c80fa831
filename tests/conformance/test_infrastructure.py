"""Inputs, constants, results, loops, TensorIterators and variables against OpenVINO."""

import numpy as np
import openvino as ov
from openvino import opset1, opset3, opset6, opset8
from openvino.op import loop, tensor_iterator

from conformance.harness import RESET, Case, Const, Departure, conformance, with_attribute, with_unknown_ranks
from irrun.spec import numpy_dtype

F32, I32, I64 = ov.Type.f32, ov.Type.i32, ov.Type.i64


def rows(*shape):
    return (np.arange(np.prod(shape)) % 7 - 2.5).astype(np.float32).reshape(shape)


def running_sum(data, initial, *, start=0, end=-1, stride=1, part_size=1, axis=0, join=True):
    """Sum slices of `data` along `axis` on top of `initial`; all sums, and the last one, or that alone."""
    shape = list(data.partial_shape)
    shape[axis] = part_size
    piece, total = opset1.parameter(ov.PartialShape(shape), F32), opset1.parameter(initial.partial_shape, F32)
    added = opset1.result(opset1.add(piece, total))
    ti = tensor_iterator()
    ti.set_body(ov.Model([added], [piece, total]))
    ti.set_sliced_input(piece, data.output(0), start, stride, part_size, end, axis)
    ti.set_merged_input(total, initial.output(0), added.output(0))
    first, last = (0, -1) if stride > 0 else (-1, 0)
    joined = [ti.get_concatenated_slices(added.output(0), first, stride, part_size, last, axis)] if join else []
    return [*joined, ti.get_iter_value(added.output(0), -1)]


def sums_of_vectors(data, initial):
    piece, total = opset1.parameter([1, 2], F32), opset1.parameter([2], F32)
    added = opset1.result(opset1.add(opset1.squeeze(piece, opset1.constant(np.array([0]))), total))
    ti = tensor_iterator()
    ti.set_body(ov.Model([added], [piece, total]))
    ti.set_sliced_input(piece, data.output(0), 0, 1, 1, -1, 0)
    ti.set_merged_input(total, initial.output(0), added.output(0))
    return [ti.get_iter_value(added.output(0), -1)]


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


def counting_last(trips, initial):
    """Count in the last Parameter, behind one that gets a constant."""
    value, factor, number = opset1.parameter([2], F32), opset1.parameter([2], F32), opset1.parameter([], I64)
    total = opset1.add(opset1.multiply(value, factor), opset1.convert(number, "f32"))
    results = [opset1.result(opset1.constant(np.array(True))), opset1.result(total)]
    op = loop(trips.output(0), opset1.constant(np.array(True)).output(0))
    op.set_function(ov.Model(results, [value, factor, number]))
    op.set_special_body_ports([2, 0])
    op.set_merged_input(value, initial.output(0), results[1].output(0))
    op.set_invariant_input(factor, opset1.constant(np.float32([2, 3])).output(0))
    return [op.get_iter_value(results[1].output(0), -1)]


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


def slices_from(start, end=-1, stride=1):
    def edit(root):
        (entry,) = (entry for entry in root.iter("input") if entry.get("axis"))
        for name, number in (("start", start), ("end", end), ("stride", stride)):
            entry.set(name, str(number))

    return edit


def partial(**attributes):
    return lambda *nodes: running_sum(*nodes, **attributes)


TRUE, FALSE = Const(np.array(True)), Const(np.array(False))
ROW = np.float32([[10, 20]])
WITH_GAPS = Departure(
    "refuses slices with gaps between them; the page asks for none of their length", "number of slices with gaps > 0"
)
OVERLAPPING = Departure(
    "takes no more of a slice than its stride is long; by part_size slices overlap", "number of slices that overlap > 0"
)

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
        deviates=Departure("takes rows from the first on; the page begins at start", "start of forward slices > 0"),
        expected=[SUMS := ROW + np.cumsum(rows(4, 2)[1:], 0), SUMS[-1:]],
    ),
    Case(
        "TensorIterator-1",
        "backwards without the last row",
        partial(start=-2, end=0, stride=-1),
        [rows(4, 2), ROW],
        deviates=Departure("takes rows from the last on; the page begins at start", "start of backward slices < -1"),
        expected=[SUMS := (ROW + np.cumsum(rows(4, 2)[2::-1], 0))[::-1], SUMS[:1]],
    ),
    Case(
        "TensorIterator-1",
        "up to row 2",
        partial(end=2),
        [rows(4, 2), ROW],
        deviates=Departure(
            "refuses, because it excludes end, against its own shape inference; on the page end is inclusive",
            "end of forward slices >= 0",
        ),
        expected=[SUMS := ROW + np.cumsum(rows(4, 2)[:3], 0), SUMS[-1:]],
    ),
    *(
        Case(
            "TensorIterator-1",
            f"backwards {title}",
            partial(start=start, end=end, stride=-1),
            [rows(4, 2), ROW],
            deviates=Departure(
                "refuses, because it is off by one, against its own shapes; on the page both ends are inclusive",
                when,
            ),
            expected=[SUMS := (ROW + np.cumsum(rows(4, 2)[::-1], 0))[::-1], SUMS[:1]],
        )
        for title, start, end, when in (
            ("from the number of a row", 3, 0, "start of backward slices >= 0"),
            ("to a row counted from the end", -1, -4, "end of backward slices < 0"),
        )
    ),
    Case(
        "TensorIterator-1",
        "from a row counted from the end",
        partial(start=-2),
        [rows(4, 2), ROW],
        deviates=Departure(
            "refuses, because it is off by one, against its own shapes; on the page both ends are inclusive",
            "start of forward slices < 0",
        ),
        expected=[SUMS := ROW + np.cumsum(rows(4, 2)[2:], 0), SUMS[-1:]],
    ),
    *(
        Case(
            "TensorIterator-1",
            title,
            partial(stride=stride, part_size=part_size, join=False),
            [rows(5, 2), rows(part_size, 2)],
            deviates=departs,
            expected=[rows(part_size, 2) + sum(slices)],
        )
        for title, stride, part_size, departs, slices in (
            ("every other row", 2, 1, WITH_GAPS, rows(5, 2)[::2]),
            ("rows that overlap", 1, 2, OVERLAPPING, [rows(5, 2)[n : n + 2] for n in range(4)]),
        )
    ),
    Case(
        "TensorIterator-1",
        "slices without their axis",
        sums_of_vectors,
        [rows(3, 2), rows(2)],
        deviates=Departure(
            "takes the next slice for the state, which it has made in place of the last one; the page has back edges",
            "layer is going on from a reshaped slice",
        ),
        expected=[rows(3, 2).sum(0) + rows(2)],
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
    Case(
        "Loop-5",
        "slices from the second row on",
        sliced_loop,
        [Const(np.int64(2)), rows(3, 2)],
        edit=slices_from(1),
        deviates=Departure("takes rows from the first on; the page begins at start", "start of forward slices > 0"),
        expected=[np.exp(rows(3, 2)[1:])],
    ),
    Case(
        "Loop-5",
        "slices from the last but one row on",
        sliced_loop,
        [Const(np.int64(2)), rows(3, 2)],
        edit=slices_from(-2),
        deviates=Departure("takes rows from the first on; the page begins at start", "start of forward slices < 0"),
        expected=[np.exp(rows(3, 2)[1:])],
    ),
    Case(
        "Loop-5",
        "slices backwards without the last row",
        sliced_loop,
        [Const(np.int64(2)), rows(3, 2)],
        edit=slices_from(-2, 0, -1),
        deviates=Departure("takes rows from the last on; the page begins at start", "start of backward slices < -1"),
        expected=[np.exp(rows(3, 2)[1::-1])],
    ),
    Case(
        "Loop-5",
        "counts behind a constant",
        counting_last,
        [Const(np.int64(2)), rows(2)],
        deviates=Departure(
            "refuses it, as it counts Parameters without that one; the page sets no order of them",
            "layer is counting behind a constant",
        ),
        expected=[rows(2) * np.float32([4, 9]) + np.float32(1)],
    ),
    Case(
        "Loop-5",
        "slices without a trip count",
        sliced_loop,
        [Const(np.int64(-1)), rows(3, 2)],
        deviates=Departure(
            "refuses to run the body, or runs it not once; the page iterates over all slices, and -1 sets no limit",
            "trip_count is constant; trip_count = -1; number of forward slices > 0",
        ),
        expected=[np.exp(rows(3, 2))],
    ),
    Case(
        "Loop-5",
        "joins nothing",
        sliced_loop,
        [Const(np.int64(0)), rows(3, 2)],
        deviates=Departure(
            "crashes; the reference joins results of no iteration to an empty tensor",
            "trip_count is constant; trip_count = 0; number of joins > 0; layer is not dynamic",
        ),
        crashes=True,
        expected=[np.zeros((0, 2), np.float32)],
    ),
    Case(
        "Loop-5",
        "slices without a trip count, by another number",
        sliced_loop,
        [Const(np.int64(-2)), rows(3, 2)],
        deviates=Departure(
            "crashes; the page has -1 alone for no limit, which others below 0 are here",
            "trip_count is constant; trip_count < -1; number of joins > 0; layer is not dynamic",
        ),
        crashes=True,
        expected=[np.exp(rows(3, 2))],
    ),
    Case("Loop-5", "in a loop", nested, [Const(np.int64(3)), rows(2)]),
    Case("Loop-5", "no iterations", counting, [np.int64(0), np.array(True), ROW]),
    Case("Loop-5", "false from the start", counting, [np.int64(2), np.array(False), ROW]),
    Case(
        "Loop-5",
        "false from the start, a constant",
        lambda *nodes: counting(*nodes, join=False),
        [np.int64(2), FALSE, rows(2)],
        deviates=Departure(
            "gives tensors without elements; by the page carried values stay as they came",
            "execution_condition is constant; execution_condition = false",
        ),
        expected=[rows(2)],
    ),
    Case(
        "Loop-5",
        "false from the start, a constant, joined",
        counting,
        [np.int64(2), FALSE, ROW],
        deviates=Departure(
            "refuses to join results of no iteration; the reference joins them to an empty tensor",
            "execution_condition is constant; execution_condition = false; number of joins > 0",
        ),
        expected=[ROW, np.zeros((0, 2), np.float32)],
    ),
]


def passed(node):
    return [node.output(0)]


def read_twice(node):
    return [node.output(0), opset1.exp(node).output(0), node.output(0)]


def stored(type, *values):
    """A constant of any element type, as f32."""
    return lambda: opset1.convert(ov.op.Constant(getattr(ov.Type, type), ov.Shape([len(values)]), list(values)), "f32")


NUMBERS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64", "boolean")
WORDS = np.array([["ab", ""], ["é", "OpenVINO"]])
CASES += [
    case
    for name in NUMBERS
    for array in [np.array([[0, 1, 100], [7, 0, 1]]).astype(numpy_dtype(name))]
    for case in (
        Case("Parameter-1", name, passed, [array]),
        Case("Constant-1", name, passed, [Const(array)]),
    )
]
CASES += [
    Case("Parameter-1", "string", passed, [WORDS]),
    Case(
        "Parameter-1",
        "of any type",
        passed,
        [rows(2, 3)],
        edit=with_attribute("element_type", "dynamic"),
        deviates=Departure(
            "refuses inputs without an element type; a run has that of what it gets", "element_type = dynamic"
        ),
        expected=[rows(2, 3)],
    ),
    Case(
        "Parameter-1",
        "of any rank",
        passed,
        [rows(2, 3)],
        edit=with_unknown_ranks(0),
        deviates=Departure(
            "refuses inputs of unknown rank; a run has that of what it gets", "output is of unknown rank"
        ),
        expected=[rows(2, 3)],
    ),
    Case("Parameter-1", "sizes unknown", passed, [rows(2, 3)], dynamic=True),
    Case("Parameter-1", "i64, sizes unknown", passed, [np.arange(3)], dynamic=True),
    Case("Parameter-1", "strings, sizes unknown", passed, [WORDS], dynamic=True),
    Case("Parameter-1", "scalar", passed, [rows()]),
    Case("Parameter-1", "empty", passed, [rows(0, 3)]),
    Case("Parameter-1", "empty, sizes unknown", passed, [rows(2, 0)], dynamic=True),
    *(
        Case("Constant-1", type, stored(type, *values), [])
        for type, values in (
            ("u1", (1, 0, 0, 1, 1, 1, 0, 1, 0, 1)),
            ("u2", (3, 0, 1, 2, 2)),
            ("u3", (7, 0, 1, 5, 2, 6, 3, 4, 1, 7)),
            ("u4", (15, 0, 1)),
            ("i4", (-8, 7, -1)),
            ("u6", (63, 0, 1, 33, 18)),
            ("nf4", (-1, 1, 0, 0.25, -0.4)),
            ("f4e2m1", (0.5, -6, 3)),
            ("f8e4m3", (0.25, -448, 2**-9)),
            ("f8e5m2", (0.25, -57344, 2**-16)),
            ("f8e8m0", (0.25, 1, 2**100)),
        )
    ),
    Case("Constant-1", "scalar", passed, [Const(np.float32(3))]),
    Case("Constant-1", "scalar of i64", passed, [Const(np.int64(2**31 - 1))]),
    Case("Constant-1", "nan and infinity", passed, [Const(np.float32([np.nan, np.inf, -np.inf, -0.0]))]),
    Case("Constant-1", "i64 that i32 holds", passed, [Const(np.array([-(2**31), 2**31 - 1]))]),
    Case(
        "Constant-1",
        "i64 beyond i32",
        passed,
        [Const(np.array([2**40, -(2**40)]))],
        deviates=Departure(
            "hands i64 out through i32; the file holds 64 bits",
            "output is i64, u64; output has numbers beyond i32; output is handed out",
        ),
        expected=[np.array([2**40, -(2**40)])],
    ),
    Case("Constant-1", "empty", lambda: [ov.op.Constant(F32, ov.Shape([0, 2]), []).output(0)], []),
    Case("Constant-1", "large", passed, [Const(rows(100, 101))]),
    Case("Result-1", "passes on", passed, [rows(2)]),
    Case("Result-1", "several of one tensor", read_twice, [rows(2, 3)]),
    Case("Result-1", "sizes unknown", read_twice, [rows(0, 3)], dynamic=True),
    Case("Result-1", "scalar", passed, [np.int32(-4)]),
    Case("Result-1", "constant", passed, [Const(rows(3))]),
    Case("Result-1", "string", passed, [WORDS[0]]),
]


def variable(name, like, shape=None):
    info = ov.op.util.VariableInfo()
    info.data_shape = like.output(0).partial_shape if shape is None else ov.PartialShape(shape)
    info.data_type = like.output(0).element_type
    info.variable_id = name
    return ov.op.util.Variable(info)


def accumulated(x, *initial, combine=opset1.add, name="v", shape=None):
    """What `combine` makes of a variable of opset6 and x, which becomes its value."""
    state = variable(name, x, shape)
    value = combine(opset6.read_value(*initial, state), x)
    return [value.output(0), opset6.assign(value, state)]


def accumulated_3(x, initial, combine=opset1.add, name="v"):
    """The same with a variable of opset3, which is known by its name."""
    value = combine(opset3.read_value(initial, name), x)
    return [value.output(0), opset3.assign(value, name)]


def lengthened(x, initial):
    return accumulated(x, initial, combine=lambda state, x: opset1.concat([state, x], 0), shape=[-1])


def from_graph(make):
    """A variable whose first value is computed."""
    return lambda x, y: make(x, opset1.add(opset1.multiply(y, opset1.constant(np.float32(2))), x))


def from_nothing(x, y):
    """A variable that begins with no elements of what is given."""
    none = opset8.slice(y, *(opset1.constant(np.int64([number])) for number in (0, 0, 1, 0)))
    return lengthened(x, none)


def handed_on(make):
    """What is stored, and what the Assign makes of it."""

    def build(x, initial):
        value, assign = make(x, initial)
        return [value, opset1.relu(assign).output(0), assign]

    return build


def two_variables(make):
    """A sum and a product."""
    return lambda x, one: [*make(x, one, name="sum"), *make(x, one, combine=opset1.multiply, name="product")]


def exchanged(x, first, second):
    """Two variables, each of which becomes what the other was, and x."""
    states = variable("a", x), variable("b", x)
    a, b = (opset6.read_value(value, state) for value, state in zip((first, second), states, strict=True))
    new = opset1.add(b, x), opset1.add(a, x)
    assigned = (opset6.assign(value, state) for value, state in zip(new, states, strict=True))
    return [*(value.output(0) for value in new), *assigned]


def delayed(x, initial):
    """What the run before made of x."""
    state = variable("v", x)
    read = opset6.read_value(initial, state)
    return [read.output(0), opset6.assign(opset1.exp(x), state)]


def delayed_input(x, initial):
    """What x was in the run before."""
    state = variable("v", x)
    return [opset6.read_value(initial, state).output(0), opset6.assign(x, state)]


def counting_in_loop(x, trips):
    """A variable that grows in every iteration of a loop, and from run to run."""
    step = opset1.parameter([2], F32)
    total, assign = accumulated(step, opset1.constant(np.float32([10, 20])))
    results = [opset1.result(opset1.constant(np.array(True))), opset1.result(total)]
    op = loop(trips.output(0), opset1.constant(np.array(True)).output(0))
    op.set_function(ov.Model(results, [assign], [step], "body"))
    op.set_special_body_ports([-1, 0])
    op.set_invariant_input(step, x.output(0))
    return [op.get_iter_value(results[1].output(0), -1)]


def summing_in_iterator(data):
    row = opset1.parameter([1, 2], F32)
    total, assign = accumulated(row, opset1.constant(np.float32([[10, 20]])))
    added = opset1.result(total)
    ti = tensor_iterator()
    ti.set_body(ov.Model([added], [assign], [row], "body"))
    ti.set_sliced_input(row, data.output(0), 0, 1, 1, -1, 0)
    return [ti.get_concatenated_slices(added.output(0), 0, 1, 1, -1, 0)]


FIVE, X = np.float32([5, 6]), np.float32([1, 2])
RUNS = [[X + 1], [X * 3], RESET, [X], [X]]


def runs(array, *others):
    """The inputs of further runs, in which `array` grows and the others double."""
    return [[array * n, *(other * n for other in others)] for n in (2, 3)]


def typed(op, make, type, **rest):
    x = X.astype(numpy_dtype(type))
    return Case(op, type, make, [x, Const(FIVE.astype(x.dtype))], later=[[x], RESET, [x], [x]], **rest)


def whole(type):
    return {
        "deviates": Departure(f"refuses a first value of {type}; the page has any type", f"new_value is {type}"),
        "expected": [(FIVE + n * X).astype(numpy_dtype(type)) for n in (1, 2, 1, 2)],
    }


SAVED = {"later": [*runs(X, FIVE), RESET, [X, FIVE * 7], [X, FIVE]]}
CASES += [
    case
    for version, make in ((6, accumulated), (3, accumulated_3))
    for case in (
        Case(f"Assign-{version}", "sums up", make, [X, Const(FIVE)], later=RUNS),
        Case(f"Assign-{version}", "sizes unknown", make, [X, Const(FIVE)], True, later=RUNS),
        Case(f"Assign-{version}", "two variables", two_variables(make), [X, Const(X)], later=RUNS),
        Case(
            f"Assign-{version}",
            "output that is read",
            handed_on(make),
            [X, Const(FIVE)],
            deviates=Departure("refuses readers of the output; the page gives them what is stored", "value is read"),
            expected=[FIVE + X, FIVE + X],
        ),
        typed(f"Assign-{version}", make, "f16"),
        typed(f"Assign-{version}", make, "i32"),
        typed(f"Assign-{version}", make, "u8"),
        Case(f"ReadValue-{version}", "first value as an input", make, [X, FIVE], **SAVED),
        Case(f"ReadValue-{version}", "first value from a graph", from_graph(make), [X, FIVE], **SAVED),
        Case(
            f"ReadValue-{version}",
            "first value from a graph, sizes unknown",
            from_graph(make),
            [X, FIVE],
            True,
            **SAVED,
        ),
        Case(
            f"ReadValue-{version}",
            "boolean",
            lambda x, y, make=make: make(x, y, combine=opset1.logical_xor),
            [np.array([True, False]), Const(np.array([True, True]))],
            later=[[np.array([True, False])], RESET, [np.array([False, False])]],
        ),
        Case(
            f"ReadValue-{version}",
            "scalar",
            make,
            [np.float32(2), Const(np.float32(3))],
            later=[[np.float32(1)], RESET, [np.float32(1)]],
        ),
        Case(f"ReadValue-{version}", "reset at once", make, [X, Const(FIVE)], later=[RESET, RESET, [X]]),
    )
]
CASES += [
    Case("ReadValue-6", "no first value", accumulated, [X], later=RUNS),
    Case("ReadValue-6", "value of the run before", delayed, [X, Const(FIVE)], later=RUNS),
    Case(
        "ReadValue-6",
        "input of the run before",
        delayed_input,
        [X, Const(FIVE)],
        later=[[X + 1], RESET, [X]],
        deviates=Departure(
            "gives the input of the same run, which the variable shares; the page reads what was assigned before",
            "layer is given an input of the model",
        ),
        expected=[FIVE, X, FIVE],
    ),
    Case(
        "ReadValue-6",
        "first value from a graph, joined",
        lambda x, y: lengthened(x, opset1.multiply(y, opset1.constant(np.float32(2)))),
        [X, FIVE],
        dynamic=True,
        deviates=Departure(
            "refuses a first value that is computed where Concat joins it, unless attention reads it; "
            "the page has any first value",
            "init_value is connected; init_value is not constant; init_value is dynamic; "
            "(it is no input, and Concat reads the result)",
        ),
        expected=[np.concatenate([FIVE * 2, X])],
    ),
    Case(
        "ReadValue-6",
        "no elements from a graph",
        from_nothing,
        [X, FIVE],
        dynamic=True,
        deviates=Departure(
            "refuses to store another size than a first value has that is computed, where its size is known, "
            "unless attention reads it; the page has any that variable_shape allows",
            "init_value is connected; init_value is not constant; init_value is empty",
        ),
        expected=[X],
    ),
    Case("ReadValue-6", "in a loop", counting_in_loop, [X, Const(np.int64(3))], later=[[X * 2], RESET, [X], [X]]),
    Case(
        "ReadValue-6",
        "in a TensorIterator",
        summing_in_iterator,
        [rows(3, 2)],
        later=[[rows(3, 2)], RESET, [rows(3, 2)]],
    ),
    Case("Assign-6", "exchanged values", exchanged, [X, Const(FIVE), Const(X)], later=RUNS),
    Case("Assign-6", "longer in every run", lengthened, [X, FIVE], True, later=[*runs(X, FIVE), RESET, [X, X]]),
    typed("Assign-3", accumulated_3, "i64"),
    typed("Assign-6", accumulated, "i64", **whole("i64")),
    typed("Assign-6", accumulated, "f64", **whole("f64")),
]

test_agrees_with_openvino = conformance(CASES)
