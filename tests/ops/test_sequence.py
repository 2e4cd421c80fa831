"""Sequence ops: written-out numbers, step-by-step loops over gates and paths, constraints and dynamic shapes."""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from tolerance import tolerated

from irrun.spec import Tensor, Violation, fresh
from irrun.spec.registry import registry

ops = registry().ops
rng = np.random.default_rng(0)
bfloat16 = ml_dtypes.bfloat16

BATCH, STEPS, INPUTS, HIDDEN = 3, 4, 2, 5
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DEFAULTS = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh"), "RNN": ("tanh",)}
ACTIVATIONS = {"relu": lambda x: max(x, 0.0), "sigmoid": lambda x: 1 / (1 + math.exp(-x)), "tanh": math.tanh}


def message(op, *inputs, **attrs):
    with pytest.raises(Violation) as caught:
        op(*inputs, **attrs)
    return caught.value.label, caught.value.message


def infer(op, tensors, **attrs):
    return [tensor.shape for tensor in op.infer(tensors, op.defaults | attrs).outputs]


def loop_cell(kind, x, states, W, R, B, *, activations=None, clip=0.0, linear_before_reset=False):
    """One step for one row of the batch, unit by unit."""
    size = len(states[0])
    names = activations or DEFAULTS[kind]
    limit = clip if 0 < clip < math.inf else math.inf
    f, g = (lambda v, n=name: ACTIVATIONS[n](min(max(v, -limit), limit)) for name in (*names, names[0])[:2])
    hidden = states[0]
    b = np.zeros(4 * size) if B is None else B
    new_hidden, new_cell = [], []

    def part(gate, unit, state):
        row = gate * size + unit
        return W[row] @ x + R[row] @ state

    def bias(gate, unit):
        return b[gate * size + unit]

    for unit in range(size):
        if kind == "RNN":
            new_hidden.append(f(part(0, unit, hidden) + bias(0, unit)))
        elif kind == "LSTM":
            forget, take, output = (f(part(gate, unit, hidden) + bias(gate, unit)) for gate in (0, 1, 3))
            cell = forget * states[1][unit] + take * g(part(2, unit, hidden) + bias(2, unit))
            new_cell.append(cell)
            new_hidden.append(output * ACTIVATIONS[names[2]](cell))
        else:
            update = f(part(0, unit, hidden) + bias(0, unit))
            reset = np.array([f(part(1, u, hidden) + bias(1, u)) for u in range(size)])
            row = 2 * size + unit
            if linear_before_reset:
                value = W[row] @ x + reset[unit] * (R[row] @ hidden + bias(3, unit)) + bias(2, unit)
            else:
                value = W[row] @ x + R[row] @ (reset * hidden) + bias(2, unit)
            new_hidden.append((1 - update) * g(value) + update * hidden[unit])
    return [np.array(new_hidden), np.array(new_cell)][: len(states)]


def loop_sequence(kind, X, states, lengths, W, R, B, direction, **attrs):
    """Each sequence on its own, step by step."""
    count = len(states)
    outputs = np.zeros((*X.shape[:1], len(W), X.shape[1], R.shape[-1]))
    finals = [np.zeros(state.shape) for state in states]
    for row, way in np.ndindex(len(X), len(W)):
        now = [state[row, way] for state in states]
        backward = direction == "reverse" or way == 1
        steps = range(lengths[row])
        for step in reversed(steps) if backward else steps:
            now = loop_cell(kind, X[row, step], now, W[way], R[way], B[way], **attrs)
            outputs[row, way, step] = now[0]
        for number in range(count if lengths[row] else 0):
            finals[number][row, way] = now[number]
    return [outputs, *finals]


def cell_inputs(kind, type=np.float64, biases=None):
    gates = GATES[kind]
    shapes = [(BATCH, INPUTS), *[(BATCH, HIDDEN)] * (2 if kind == "LSTM" else 1)]
    shapes += [(gates * HIDDEN, INPUTS), (gates * HIDDEN, HIDDEN), ((biases or gates) * HIDDEN,)]
    return [rng.normal(size=shape).astype(type) for shape in shapes]


def sequence_inputs(kind, lengths, direction, type=np.float64, biases=None):
    gates, ways = GATES[kind], 2 if direction == "bidirectional" else 1
    shapes = [(BATCH, STEPS, INPUTS), *[(BATCH, ways, HIDDEN)] * (2 if kind == "LSTM" else 1)]
    shapes += [(ways, gates * HIDDEN, INPUTS), (ways, gates * HIDDEN, HIDDEN), (ways, (biases or gates) * HIDDEN)]
    arrays = [rng.normal(size=shape).astype(type) for shape in shapes]
    arrays.insert(-3, np.array(lengths))
    return arrays


def loop_cells(kind, inputs, **attrs):
    X, *states, W, R, B = inputs
    rows = [loop_cell(kind, x, now, W, R, B, **attrs) for x, *now in zip(X, *states, strict=True)]
    return [np.stack(part) for part in zip(*rows, strict=True)]


def listed(result):
    return list(result) if isinstance(result, tuple) else [result]


CELLS = {"LSTM": "LSTMCell-4", "GRU": "GRUCell-3", "RNN": "RNNCell-3"}
SEQUENCES = {"LSTM": "LSTMSequence-5", "GRU": "GRUSequence-5", "RNN": "RNNSequence-5"}
kinds = pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])


class TestCells:
    @kinds
    @pytest.mark.parametrize("clip", [math.inf, 0.0, 0.5])
    def test_against_a_loop(self, kind, clip):
        inputs = cell_inputs(kind)
        got = listed(ops[CELLS[kind]](*inputs, hidden_size=HIDDEN, clip=clip))
        for ours, want in zip(got, loop_cells(kind, inputs, clip=clip), strict=True):
            np.testing.assert_allclose(ours, want, 1e-9)

    @kinds
    def test_other_activations_in_any_case(self, kind):
        inputs, names = cell_inputs(kind), ("relu", "sigmoid", "relu")[: len(DEFAULTS[kind])]
        upper = tuple(name.title() for name in names)
        got = listed(ops[CELLS[kind]](*inputs, hidden_size=HIDDEN, activations=upper, activations_alpha=(1.0,)))
        for ours, want in zip(got, loop_cells(kind, inputs, activations=names), strict=True):
            np.testing.assert_allclose(ours, want, 1e-9)

    @pytest.mark.parametrize("clip", [0.0, 0.3])
    def test_gru_linear_before_reset(self, clip):
        inputs = cell_inputs("GRU", biases=4)
        got = ops["GRUCell-3"](*inputs, hidden_size=HIDDEN, linear_before_reset=True, clip=clip)
        (want,) = loop_cells("GRU", inputs, linear_before_reset=True, clip=clip)
        np.testing.assert_allclose(got, want, 1e-9)

    @pytest.mark.parametrize("attrs", [{}, {"linear_before_reset": True}])
    def test_gru_without_bias(self, attrs):
        inputs = cell_inputs("GRU")
        got = ops["GRUCell-3"](*inputs[:-1], hidden_size=HIDDEN, **attrs)
        (want,) = loop_cells("GRU", [*inputs[:-1], np.zeros(4 * HIDDEN)], **attrs)
        np.testing.assert_allclose(got, want, 1e-9)

    def test_lstm_without_bias(self):
        inputs = cell_inputs("LSTM")
        got = ops["LSTMCell-4"](*inputs[:-1], hidden_size=HIDDEN)
        for ours, want in zip(got, loop_cells("LSTM", [*inputs[:-1], np.zeros(4 * HIDDEN)]), strict=True):
            np.testing.assert_allclose(ours, want, 1e-9)

    def test_the_first_lstm_cell_is_the_later_one(self):
        inputs = cell_inputs("LSTM", np.float32)
        first, later = (ops[name](*inputs, hidden_size=HIDDEN) for name in ("LSTMCell-1", "LSTMCell-4"))
        assert all((a == b).all() for a, b in zip(first, later, strict=True))

    def test_the_first_lstm_cell_has_its_gates_in_one_order_whatever_is_said(self):
        inputs = cell_inputs("LSTM")
        plain = ops["LSTMCell-1"](*inputs, hidden_size=HIDDEN)
        said = ops["LSTMCell-1"](*inputs, hidden_size=HIDDEN, weights_format="ifco")
        assert all((a == b).all() for a, b in zip(plain, said, strict=True))

    def test_the_first_lstm_cell_couples_gates(self):
        x, h, c, W, R, B = cell_inputs("LSTM")
        hidden, cell = ops["LSTMCell-1"](x, h, c, W, R, B, hidden_size=HIDDEN, input_forget=True)
        f, _, g, o = np.split(x @ W.T + h @ R.T + B, 4, axis=1)
        forget = 1 / (1 + np.exp(-f))
        want = forget * c + (1 - forget) * np.tanh(g)
        np.testing.assert_allclose(cell, want, 1e-9)
        np.testing.assert_allclose(hidden, np.tanh(want) / (1 + np.exp(-o)), 1e-9)

    @kinds
    @pytest.mark.parametrize("type", [np.float16, bfloat16, np.float32])
    def test_types(self, kind, type):
        inputs = cell_inputs(kind, type)
        got = listed(ops[CELLS[kind]](*inputs, hidden_size=HIDDEN))
        wide = listed(ops[CELLS[kind]](*(array.astype(np.float32) for array in inputs), hidden_size=HIDDEN))
        assert all(
            ours.dtype == type and (ours == want.astype(type)).all() for ours, want in zip(got, wide, strict=True)
        )

    @kinds
    def test_inputs_stay_as_they_are(self, kind):
        inputs = cell_inputs(kind)
        before = [array.copy() for array in inputs]
        ops[CELLS[kind]](*inputs, hidden_size=HIDDEN)
        assert all((a == b).all() for a, b in zip(inputs, before, strict=True))

    @kinds
    def test_no_batch_and_no_inputs(self, kind):
        inputs = cell_inputs(kind)
        states = len(inputs) - 3
        empty = [array[:0] if number < states else array for number, array in enumerate(inputs)]
        assert all(out.shape == (0, HIDDEN) for out in listed(ops[CELLS[kind]](*empty, hidden_size=HIDDEN)))
        inputs[0], inputs[states] = inputs[0][:, :0], inputs[states][:, :0]
        (want, *_) = loop_cells(kind, inputs)
        np.testing.assert_allclose(listed(ops[CELLS[kind]](*inputs, hidden_size=HIDDEN))[0], want, 1e-9)

    @kinds
    def test_unknown_shapes(self, kind):
        batch, known = fresh(), [array.shape for array in cell_inputs(kind)]
        tensors = [Tensor("f32", (batch, *shape[1:]) if shape[0] == BATCH else shape) for shape in known]
        want = [(batch, HIDDEN)] * (2 if kind == "LSTM" else 1)
        assert infer(ops[CELLS[kind]], tensors, hidden_size=HIDDEN) == want
        nothing = [Tensor("f32", None) for _ in tensors]
        assert all(shape[1] == HIDDEN for shape in infer(ops[CELLS[kind]], nothing, hidden_size=HIDDEN))

    def test_old_files_call_them_experimental(self):
        for version in ("experimental", "extension"):
            assert registry().find("GRUCell", version) is ops["GRUCell-3"]
            assert registry().find("RNNCell", version) is ops["RNNCell-3"]
        assert registry().find("RNNCell", "opset1") is ops["RNNCell-3"]
        assert registry().find("RNNCell", "opset2") is None
        assert registry().find("LSTMCell", "opset3") is ops["LSTMCell-1"]
        assert registry().find("LSTMCell", "opset5") is ops["LSTMCell-4"]


def fails_c1(kind, op, inputs, **attrs):
    names = DEFAULTS[kind]
    label, text = message(op, *inputs, hidden_size=HIDDEN, activations=names[1:], **attrs)
    assert (label, text) == ("C1", f"`activations` has {len(names) - 1} functions, expected {len(names)}")
    label, text = message(op, *inputs, hidden_size=HIDDEN, activations=(*names[:-1], "elu"), **attrs)
    assert (label, text) == ("C1", "`activations` has `elu`, expected one of relu, sigmoid, tanh")


def fails_c2(op, inputs, **attrs):
    label, text = message(op, *inputs, hidden_size=7, **attrs)
    assert (label, text) == ("C2", f"the attribute `hidden_size` is 7, but the states have {HIDDEN}")


def test_grucell_3_c1_activations():
    fails_c1("GRU", ops["GRUCell-3"], cell_inputs("GRU"))


def test_grucell_3_c1_more_activations_than_it_has():
    op, inputs = ops["GRUCell-3"], cell_inputs("GRU")
    attrs = {"hidden_size": HIDDEN, "activations": ("sigmoid", "tanh", "relu")}
    assert tolerated(op, *inputs, **attrs) == ("C1", "`activations` has 3 functions, expected 2")
    usual = op(*inputs, hidden_size=HIDDEN, activations=("sigmoid", "tanh"))
    assert op(*inputs, **attrs).tolist() == usual.tolist()


def test_grucell_3_c2_another_hidden_size():
    fails_c2(ops["GRUCell-3"], cell_inputs("GRU"))


def test_grucell_3_c3_rows():
    x, h, W, R, B = cell_inputs("GRU")
    label, text = message(ops["GRUCell-3"], x, h, W, R, B, hidden_size=HIDDEN, linear_before_reset=True)
    assert (label, text) == ("C3", "`biases` is 15, expected 20")
    label, text = message(ops["GRUCell-3"], x, h, W[1:], R[1:], B, hidden_size=HIDDEN)
    assert (label, text) == ("C3", "`3 * hidden_size` is 14, expected 15")
    label, text = message(ops["GRUCell-3"], x, h, W, R[1:], B, hidden_size=HIDDEN)
    assert (label, text) == ("E304", "`3 * hidden_size` is 14 in `R`, but 15 in `W`")


def test_lstmcell_1_c1_activations():
    fails_c1("LSTM", ops["LSTMCell-1"], cell_inputs("LSTM"))


def test_lstmcell_1_c2_another_hidden_size():
    fails_c2(ops["LSTMCell-1"], cell_inputs("LSTM"))


def test_lstmcell_1_c3_rows():
    label, text = message(ops["LSTMCell-1"], *cell_inputs("LSTM")[:-1], np.ones(4), hidden_size=HIDDEN)
    assert (label, text) == ("E304", "`4 * hidden_size` is 4 in `B`, but 20 in `W`")
    x, h, c, W, R, _ = cell_inputs("LSTM")
    label, text = message(ops["LSTMCell-1"], x, h, c, W[1:], R[1:], hidden_size=HIDDEN)
    assert (label, text) == ("C3", "`4 * hidden_size` is 19, expected 20")


def test_lstmcell_4_c1_activations():
    fails_c1("LSTM", ops["LSTMCell-4"], cell_inputs("LSTM"))


def test_lstmcell_4_c2_another_hidden_size():
    fails_c2(ops["LSTMCell-4"], cell_inputs("LSTM"))


def test_lstmcell_4_c3_rows():
    x, h, c, W, R, B = cell_inputs("LSTM")
    label, text = message(ops["LSTMCell-4"], x, h, c, W[:15], R[:15], B[:15], hidden_size=HIDDEN)
    assert (label, text) == ("C3", "`4 * hidden_size` is 15, expected 20")


def test_rnncell_3_c1_activations():
    fails_c1("RNN", ops["RNNCell-3"], cell_inputs("RNN"))


def test_rnncell_3_c2_another_hidden_size():
    fails_c2(ops["RNNCell-3"], cell_inputs("RNN"))


class TestSequences:
    @kinds
    @pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
    @pytest.mark.parametrize("lengths", [(STEPS,) * BATCH, (2, STEPS, 0), (1, 2, 3)])
    def test_against_a_loop(self, kind, direction, lengths):
        inputs = sequence_inputs(kind, lengths, direction)
        got = ops[SEQUENCES[kind]](*inputs, hidden_size=HIDDEN, direction=direction)
        X, *states, lengths, W, R, B = inputs
        want = loop_sequence(kind, X, states, lengths, W, R, B, direction)
        for ours, theirs in zip(got, want, strict=True):
            np.testing.assert_allclose(ours, theirs, 1e-9)

    def test_one_hidden_unit_in_f32(self):
        """Gates of one unit lie 16 bytes apart, where numpy 2.4.6 negates wrongly in place."""
        ones, weights = np.ones((2, 1, 1), np.float32), np.zeros((1, 4, 1), np.float32)
        inputs = [np.zeros((2, 3, 1), np.float32), ones, 4 * ones, np.array([1, 3]), weights, weights, weights[..., 0]]
        outputs, _, cells = ops["LSTMSequence-5"](*inputs, hidden_size=1, direction="forward")
        first, second, third = 0.5 * np.tanh([2.0, 1.0, 0.5])
        np.testing.assert_allclose(outputs[:, 0, :, 0], [[first, 0, 0], [first, second, third]], 1e-6)
        assert cells.ravel().tolist() == [2, 0.5]

    @kinds
    def test_clip_and_activations(self, kind):
        inputs, names = sequence_inputs(kind, [4, 1, 2], "reverse"), ("relu", "sigmoid", "relu")[: len(DEFAULTS[kind])]
        attrs = {"clip": 0.4, "activations": names, "direction": "reverse"}
        got = ops[SEQUENCES[kind]](*inputs, hidden_size=HIDDEN, **attrs)
        X, *states, lengths, W, R, B = inputs
        for ours, theirs in zip(got, loop_sequence(kind, X, states, lengths, W, R, B, **attrs), strict=True):
            np.testing.assert_allclose(ours, theirs, 1e-9)

    @pytest.mark.parametrize("direction", ["forward", "bidirectional"])
    def test_gru_linear_before_reset(self, direction):
        X, H, lengths, W, R, B = inputs = sequence_inputs("GRU", [4, 1, 2], direction, biases=4)
        attrs = {"linear_before_reset": True, "direction": direction}
        got = ops["GRUSequence-5"](*inputs, hidden_size=HIDDEN, **attrs)
        for ours, theirs in zip(got, loop_sequence("GRU", X, [H], lengths, W, R, B, **attrs), strict=True):
            np.testing.assert_allclose(ours, theirs, 1e-9)

    @kinds
    @pytest.mark.parametrize("type", [np.float16, bfloat16, np.float32])
    @pytest.mark.parametrize("length_type", [np.uint8, np.int32])
    def test_types(self, kind, type, length_type):
        inputs = sequence_inputs(kind, np.array([1, 2, 4], length_type), "bidirectional", type)
        attrs = {"hidden_size": HIDDEN, "direction": "bidirectional"}
        got = ops[SEQUENCES[kind]](*inputs, **attrs)
        wide = [array.astype(np.float32) if array.dtype == type else array for array in inputs]
        for ours, want in zip(got, ops[SEQUENCES[kind]](*wide, **attrs), strict=True):
            assert ours.dtype == type
            assert (ours == want.astype(type)).all()

    @kinds
    def test_inputs_stay_as_they_are(self, kind):
        inputs = sequence_inputs(kind, [1, 2, 3], "reverse")
        before = [array.copy() for array in inputs]
        ops[SEQUENCES[kind]](*inputs, hidden_size=HIDDEN, direction="reverse")
        assert all((a == b).all() for a, b in zip(inputs, before, strict=True))

    @kinds
    def test_no_steps_and_no_batch(self, kind):
        X, *rest = sequence_inputs(kind, [0, 0, 0], "forward")
        got = ops[SEQUENCES[kind]](X[:, :0], *rest, hidden_size=HIDDEN, direction="forward")
        assert got[0].shape == (BATCH, 1, 0, HIDDEN)
        assert not got[1].any()
        inputs = sequence_inputs(kind, [0, 0, 0], "reverse")
        empty = [array if len(array) == 1 else array[:0] for array in inputs]
        got = ops[SEQUENCES[kind]](*empty, hidden_size=HIDDEN, direction="reverse")
        assert got[0].shape == (0, 1, STEPS, HIDDEN)

    @kinds
    def test_unknown_shapes(self, kind):
        batch, steps = fresh(), fresh()
        inputs = sequence_inputs(kind, [1, 1, 1], "bidirectional")
        tensors = [Tensor("f32", (batch, *array.shape[1:]) if len(array) == BATCH else array.shape) for array in inputs]
        tensors[0] = Tensor("f32", (batch, steps, INPUTS))
        tensors[-4] = Tensor("i32", (batch,))
        shapes = infer(ops[SEQUENCES[kind]], tensors, hidden_size=HIDDEN, direction="bidirectional")
        assert shapes == [(batch, 2, steps, HIDDEN)] + [(batch, 2, HIDDEN)] * (len(shapes) - 1)


def fails_c3_and_c4(kind):
    op, inputs = ops[SEQUENCES[kind]], sequence_inputs(kind, [4, 5, 1], "forward")
    attrs = {"hidden_size": HIDDEN}
    expected = ("C3", "`num_directions` is 1, but `direction` is bidirectional")
    assert message(op, *inputs, **attrs, direction="bidirectional") == expected
    expected = ("C4", "`sequence_lengths[1]` is 5, outside [0, 5)")
    assert message(op, *inputs, **attrs, direction="forward") == expected


def test_grusequence_5_c1_activations():
    fails_c1("GRU", ops["GRUSequence-5"], sequence_inputs("GRU", [1, 1, 1], "forward"), direction="forward")


def test_grusequence_5_c2_another_hidden_size():
    fails_c2(ops["GRUSequence-5"], sequence_inputs("GRU", [1, 1, 1], "forward"), direction="forward")


def test_grusequence_5_c3_directions():
    fails_c3_and_c4("GRU")


def test_grusequence_5_c4_lengths():
    fails_c3_and_c4("GRU")


def test_grusequence_5_c5_rows():
    inputs, attrs = sequence_inputs("GRU", [1, 1, 1], "forward"), {"hidden_size": HIDDEN, "direction": "forward"}
    label, text = message(ops["GRUSequence-5"], *inputs, linear_before_reset=True, **attrs)
    assert (label, text) == ("C5", "`biases` is 15, expected 20")


def test_lstmsequence_5_c1_activations():
    fails_c1("LSTM", ops["LSTMSequence-5"], sequence_inputs("LSTM", [1, 1, 1], "forward"), direction="forward")


def test_lstmsequence_5_c2_another_hidden_size():
    fails_c2(ops["LSTMSequence-5"], sequence_inputs("LSTM", [1, 1, 1], "forward"), direction="forward")


def test_lstmsequence_5_c3_directions():
    fails_c3_and_c4("LSTM")


def test_lstmsequence_5_c4_lengths():
    fails_c3_and_c4("LSTM")


def test_lstmsequence_5_c5_rows():
    *inputs, W, R, B = sequence_inputs("LSTM", [1, 1, 1], "forward")
    attrs = {"hidden_size": HIDDEN, "direction": "forward"}
    label, text = message(ops["LSTMSequence-5"], *inputs, W[:, 1:], R[:, 1:], B[:, 1:], **attrs)
    assert (label, text) == ("C5", "`4 * hidden_size` is 19, expected 20")


def test_rnnsequence_5_c1_activations():
    fails_c1("RNN", ops["RNNSequence-5"], sequence_inputs("RNN", [1, 1, 1], "forward"), direction="forward")


def test_rnnsequence_5_c2_another_hidden_size():
    fails_c2(ops["RNNSequence-5"], sequence_inputs("RNN", [1, 1, 1], "forward"), direction="forward")


def test_rnnsequence_5_c3_directions():
    fails_c3_and_c4("RNN")


def test_rnnsequence_5_c4_lengths():
    fails_c3_and_c4("RNN")


class TestOneHot:
    one_hot_1, one_hot = ops["OneHot-1"], ops["OneHot-16"]

    def test_the_examples_of_the_page(self):
        one, two, three = np.array(1), np.array(2), np.array(3)
        got = self.one_hot_1(np.array([0, 3, 1, 2]), three, one, two, axis=-1)
        assert got.tolist() == [[1, 2, 2], [2, 2, 2], [2, 1, 2], [2, 2, 1]]
        got = self.one_hot_1(np.array([[0, 3, 1], [1, 2, 4]]), three, one, np.array(0), axis=1)
        assert got.tolist() == [[[1, 0, 0], [0, 0, 1], [0, 0, 0]], [[0, 0, 0], [1, 0, 0], [0, 1, 0]]]
        attrs = {"axis": -1, "negative_indices_mode": "normalize"}
        got = self.one_hot(np.array([0, -5, -2, 2], np.int32), three, one, two, **attrs)
        assert got.tolist() == [[1, 2, 2], [2, 2, 2], [2, 1, 2], [2, 2, 1]]

    @pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
    def test_axes(self, axis):
        indices = rng.integers(0, 4, (2, 3))
        got = self.one_hot_1(indices, np.array(4), np.array(True), np.array(False), axis=axis)
        assert (np.moveaxis(got, axis, -1) == np.eye(4, dtype=bool)[indices]).all()
        shape = infer(self.one_hot_1, [Tensor("i64", (2, 3)), *map(Tensor.of, map(np.array, (4, 1, 0)))], axis=axis)
        assert shape == [got.shape]

    @pytest.mark.parametrize("mode", ["ignore_negative", "ignore-negative"])
    def test_negative_indices_are_ignored(self, mode):
        arrays = np.array([-1, 1]), np.array(2), np.array(1.0), np.array(0.0)
        assert self.one_hot(*arrays, axis=0, negative_indices_mode=mode).tolist() == [[0, 0], [0, 1]]
        assert self.one_hot_1(*arrays, axis=0).tolist() == [[0, 0], [0, 1]]

    def test_indices_beyond_the_depth_leave_all_off(self):
        indices = np.array([[3, -1, 4], [2**40, 0, 2]])
        for axis in (0, 1, 2):
            got = self.one_hot_1(indices, np.array(3), np.array(7), np.array(5), axis=axis)
            assert np.argwhere(np.moveaxis(got, axis, -1) == 7).tolist() == [[1, 1, 0], [1, 2, 2]]

    def test_a_scalar_index_and_no_index(self):
        rest = np.array(3), np.array(1, np.int8), np.array(0, np.int8)
        assert self.one_hot_1(np.array(2, np.int32), *rest, axis=0).tolist() == [0, 0, 1]
        assert self.one_hot_1(np.zeros((0, 2), np.int64), *rest, axis=-1).shape == (0, 2, 3)

    @pytest.mark.parametrize("type", [np.float16, bfloat16, np.uint8, np.bool_, "<U3"])
    def test_values_of_any_type(self, type):
        on, off = np.array(1).astype(type), np.array(0).astype(type)
        got = self.one_hot_1(np.array([1]), np.array(2), on, off, axis=1)
        assert got.dtype == on.dtype
        assert got[0, 1] == on
        assert got[0, 0] == off

    def test_onehot_1_c1_axis_outside_the_rank(self):
        label, text = message(self.one_hot_1, np.array([1]), np.array(2), np.array(1), np.array(0), axis=2)
        assert (label, text) == ("C1", "`axis` is 2, outside [-2, 2) for rank 2")

    def test_onehot_1_c2_depth_not_positive(self):
        label, text = message(self.one_hot_1, np.array([1]), np.array(0), np.array(1), np.array(0), axis=0)
        assert (label, text) == ("C2", "`depth` is 0, expected a positive number")

    def test_onehot_16_c1_axis_outside_the_rank(self):
        label, _ = message(self.one_hot, np.array([1]), np.array(2), np.array(1), np.array(0), axis=-3)
        assert label == "C1"

    def test_onehot_16_c2_depth_not_positive(self):
        label, _ = message(self.one_hot, np.array([1]), np.array(-1), np.array(1), np.array(0), axis=0)
        assert label == "C2"

    def test_unknown_depth_and_indices(self):
        scalars = [Tensor("i64", ()), Tensor("f32", ()), Tensor("f32", ())]
        batch = fresh()
        ((first, depth),) = infer(self.one_hot_1, [Tensor("i64", (batch,)), *scalars], axis=-1)
        assert first is batch
        assert depth.low == 1
        assert infer(self.one_hot_1, [Tensor("i64", None), *scalars], axis=-1) == [None]


def attention(query, key, value, mask=0.0, scale=None, sink=None):
    """Softmax attention in f64, with all the intermediate arrays."""
    query, key, value = (np.asarray(array, np.float64) for array in (query, key, value))
    scores = query @ key.swapaxes(-1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale) + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    total = weights.sum(-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink - scores.max(-1, keepdims=True))
    return weights / total @ value


class TestScaledDotProductAttention:
    op = ops["ScaledDotProductAttention-13"]
    Q, K, V = (rng.normal(size=shape).astype(np.float32) for shape in ((2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7)))

    def check(self, got, want, **tolerance):
        assert got.shape == want.shape
        np.testing.assert_allclose(got.astype(np.float64), want, **({"rtol": 1e-4, "atol": 1e-6} | tolerance))

    def test_without_anything(self):
        got = self.op(self.Q, self.K, self.V, causal=False)
        assert got.dtype == np.float32
        self.check(got, attention(self.Q, self.K, self.V))

    @pytest.mark.parametrize("shape", [(2, 3, 4, 6), (1, 1, 4, 6), (2, 1, 1, 6), (3, 4, 6), (4, 6)])
    def test_a_mask_is_added(self, shape):
        mask = rng.normal(size=shape).astype(np.float32)
        self.check(self.op(self.Q, self.K, self.V, mask, causal=False), attention(self.Q, self.K, self.V, mask))

    def test_a_boolean_mask_selects(self):
        mask = rng.random((2, 1, 4, 6)) > 0.4
        mask[..., 0] = True
        want = attention(self.Q, self.K, self.V, np.where(mask, 0, -np.inf))
        self.check(self.op(self.Q, self.K, self.V, mask, causal=False), want)

    def test_a_mask_may_enlarge_the_batch(self):
        mask = rng.normal(size=(3, 4, 6)).astype(np.float32)
        query, key, value = self.Q[0, :1], self.K[0, :1], self.V[0, :1]
        self.check(self.op(query, key, value, mask, causal=False), attention(query, key, value, mask))

    def test_the_scalar_0_is_no_mask_and_the_scale_counts(self):
        for scale in (np.float32(0.3), np.array([0.3], np.float32)):
            got = self.op(self.Q, self.K, self.V, np.float32(0), scale, causal=False)
            self.check(got, attention(self.Q, self.K, self.V, scale=0.3))

    def test_causal_rows_see_the_keys_up_to_their_own(self):
        mask = np.triu(np.full((4, 6), -np.inf), 1)
        for extra in ((), (np.ones((9, 9), np.float32),)):  # a mask is ignored
            self.check(self.op(self.Q, self.K, self.V, *extra, causal=True), attention(self.Q, self.K, self.V, mask))

    @pytest.mark.parametrize("shape", [(1, 3, 1, 1), (2, 3, 4, 1), (1, 1, 1, 1)])
    @pytest.mark.parametrize("height", [0.0, 50.0])
    def test_a_sink_takes_its_share(self, shape, height):
        sink = (rng.normal(size=shape) + height).astype(np.float32)
        got = self.op(self.Q, self.K, self.V, np.float32(0), np.float32(0.5), sink, causal=False)
        self.check(got, attention(self.Q, self.K, self.V, scale=0.5, sink=sink), atol=1e-12)

    def test_batches_broadcast(self):
        key, value = self.K[:1, :1], self.V[:, :1]
        self.check(self.op(self.Q, key, value, causal=False), attention(self.Q, key, value))

    def test_three_dimensions(self):
        query, key, value = self.Q[0], self.K[0], self.V[0]
        self.check(self.op(query, key, value, causal=False), attention(query, key, value))

    @pytest.mark.parametrize("type", [np.float16, bfloat16, np.float64])
    def test_types(self, type):
        inputs = [array.astype(type) for array in (self.Q, self.K, self.V, np.zeros((4, 6)))]
        got = self.op(*inputs, causal=False)
        assert got.dtype == type
        self.check(got, attention(*inputs[:3]), rtol=1e-9 if type == np.float64 else 2.0**-8, atol=1e-3)

    @pytest.mark.parametrize("type", [np.float16, np.float32, np.float64])
    def test_a_row_that_sees_nothing_is_0(self, type):
        mask = np.ones((4, 6), bool)
        mask[1] = False
        arrays = [array.astype(type) for array in (self.Q, self.K, self.V)]
        got = self.op(*arrays, mask, causal=False)
        assert not got[:, :, 1].any()
        self.check(np.delete(got, 1, 2), np.delete(self.op(*arrays, causal=False), 1, 2))
        arrays[2][:, :, 2] = np.nan
        assert not self.op(*arrays, mask, causal=False)[:, :, 1].any()
        assert not self.op(*arrays, mask[:, :1] & mask, causal=False)[:, :, 1].any()
        assert not self.op(*arrays, np.zeros((2, 1, 1, 6), bool), causal=False).any()

    def test_numbers_that_hide_everything_leave_none(self):
        mask = np.zeros((4, 6), np.float32)
        mask[1] = -np.inf
        got = self.op(self.Q, self.K, self.V, mask, causal=False)
        assert np.isnan(got[:, :, 1]).all()
        assert not np.isnan(np.delete(got, 1, 2)).any()

    def test_no_keys_and_no_queries(self):
        assert not self.op(self.Q, self.K[:, :, :0], self.V[:, :, :0], causal=False).any()
        assert self.op(self.Q[:, :, :0], self.K, self.V, causal=False).shape == (2, 3, 0, 7)

    def test_inputs_stay_as_they_are(self):
        before = [array.copy() for array in (self.Q, self.K, self.V)]
        self.op(self.Q, self.K, self.V, np.ones((4, 6), np.float32), causal=False)
        assert all((a == b).all() for a, b in zip((self.Q, self.K, self.V), before, strict=True))

    def test_scaleddotproductattention_13_c1_batches(self):
        label, text = message(self.op, self.Q, self.K[:, :2], self.V, causal=False)
        assert label == "C1"
        assert text == "the batch dimensions do not broadcast: `query` [2, 3], `key` [2, 2], `value` [2, 3]"

    def test_scaleddotproductattention_13_c2_type_of_the_mask(self):
        label, text = message(self.op, self.Q, self.K, self.V, np.zeros((4, 6)), causal=False)
        assert (label, text) == ("C2", "`attention_mask` is f64, expected boolean or f32")

    def test_scaleddotproductattention_13_c3_scalar_mask(self):
        label, text = tolerated(self.op, self.Q, self.K, self.V, np.float32(1), causal=False)
        assert (label, text) == ("C3", "`attention_mask` is the scalar 1.0, expected the scalar 0 or rank 2 or more")
        label, text = message(self.op, self.Q, self.K, self.V, np.ones(6, np.float32), causal=False)
        assert (label, text) == ("C3", "`attention_mask` is of rank 1, expected the scalar 0 or rank 2 or more")

    @pytest.mark.parametrize("shape", [(2, 6), (4, 1), (4, 5), (2, 4, 6), (5, 1, 4, 6)])
    def test_scaleddotproductattention_13_c4_shape_of_the_mask(self, shape):
        found = tolerated if shape == (4, 1) else message
        label, text = found(self.op, self.Q, self.K, self.V, np.ones(shape, np.float32), causal=False)
        assert label == "C4"
        assert text == f"`attention_mask` is {list(shape)}, which does not broadcast to [2, 3, 4, 6]"

    @pytest.mark.parametrize(
        ("unknown", "mask", "scores"),
        [
            (("value",), (4, 7), [2, 3, 4, 6]),
            (("value",), (5, 6), [2, 3, 4, 6]),
            (("key",), (4, 7), [2, 3, 4, 6]),
            (("key", "value"), (5, 6), "[2, 3, 4, ?]"),
            (("query",), (4, 7), "[2, 3, ?, 6]"),
            (("query", "value"), (4, 4, 6), "[2, 3, ?, 6]"),
        ],
    )
    def test_scaleddotproductattention_13_c4_where_a_rank_is_unknown(self, unknown, mask, scores):
        given = {"query": self.Q.shape, "key": self.K.shape, "value": self.V.shape} | dict.fromkeys(unknown)
        tensors = [Tensor("f32", shape) for shape in (*given.values(), mask)]
        with pytest.raises(Violation) as caught:
            self.op.infer(tensors, {"causal": False})
        assert caught.value.label == "C4"
        said = f"`attention_mask` is {list(mask)}, which does not broadcast to {scores}"
        assert caught.value.message == said
        assert infer(self.op, [*tensors[:3], Tensor("f32", (1, 6))], causal=False) == [None]
        assert infer(self.op, tensors, causal=True) == [None]

    @pytest.mark.parametrize(("rows", "expected"), [(5, 5), (1, "?"), ("?", "?")])
    def test_scaleddotproductattention_has_as_many_queries_as_its_mask_has_rows(self, rows, expected):
        shapes = ((2, 3, fresh(), 5), self.K.shape, self.V.shape, (fresh() if rows == "?" else rows, 6))
        (result,) = infer(self.op, [Tensor("f32", shape) for shape in shapes], causal=False)
        assert str(result[2]) == str(expected)

    def test_scaleddotproductattention_13_c1_batches_of_two_of_three(self):
        tensors = [Tensor("f32", shape) for shape in ((2, 4, 8), None, (3, 6, 8))]
        with pytest.raises(Violation) as caught:
            self.op.infer(tensors, {"causal": False})
        said = "the batch dimensions do not broadcast: `query` [2], `value` [3]"
        assert (caught.value.label, caught.value.message) == ("C1", said)

    @pytest.mark.parametrize("shape", [(3, 1, 1), (1, 2, 1, 1), (1, 1, 3, 1)])
    def test_scaleddotproductattention_13_c5_shape_of_the_sink(self, shape):
        zero, sink = np.float32(0), np.ones(shape, np.float32)
        label, text = message(self.op, self.Q, self.K, self.V, zero, np.float32(1), sink, causal=False)
        assert (label, text) == ("C5", f"`sink` is {list(shape)}, which does not broadcast to [2, 3, 4, 1]")

    def test_keys_and_values_differ_in_number(self):
        label, text = message(self.op, self.Q, self.K, self.V[:, :, 1:], causal=False)
        assert (label, text) == ("E304", "`S` is 5 in `value`, but 6 in `key`")

    def test_unknown_dimensions(self):
        batch, queries, keys = fresh(), fresh(), fresh()
        tensors = [Tensor("f32", (batch, 8, n, 64)) for n in (queries, keys, keys)]
        mask = Tensor("f32", (batch, 1, queries, keys))
        assert infer(self.op, [*tensors, mask], causal=False) == [(batch, 8, queries, 64)]
        assert infer(self.op, [Tensor("f32", None), *tensors[1:]], causal=False) == [None]


def greedy(data, length, blank, merge):
    """The decoded classes of one sequence, by groups of equal classes."""
    best = data[:length].argmax(-1).tolist()
    if merge:
        best = [key for key, _ in itertools.groupby(best)]
    return [number for number in best if number != blank]


class TestCTCGreedyDecoder:
    @pytest.mark.parametrize("merge", [True, False])
    def test_against_groups(self, merge):
        data, lengths = rng.normal(size=(9, 4, 3)).astype(np.float32), [9, 4, 1, 0]
        mask = (np.arange(9)[:, None] < lengths).astype(np.float32)
        got = ops["CTCGreedyDecoder-1"](data, mask, ctc_merge_repeated=merge)
        assert got.shape == (4, 9, 1, 1)
        assert got.dtype == np.float32
        for row, length in enumerate(lengths):
            want = greedy(data[:, row], length, 2, merge)
            assert got[row].ravel().tolist() == want + [-1] * (9 - len(want))

    def test_a_sequence_ends_at_the_first_0(self):
        data = np.eye(3)[[0, 1, 0]][:, None]
        got = ops["CTCGreedyDecoder-1"](data, np.array([[1.0], [0.0], [1.0]]))
        assert got.ravel().tolist() == [0, -1, -1]

    def test_empty(self):
        assert ops["CTCGreedyDecoder-1"](np.zeros((0, 2, 3)), np.zeros((0, 2))).shape == (2, 0, 1, 1)

    def test_shapes(self):
        steps, count = fresh(), fresh()
        tensors = [Tensor("f32", (steps, count, 5)), Tensor("f32", (steps, count))]
        assert infer(ops["CTCGreedyDecoder-1"], tensors) == [(count, steps, 1, 1)]


class TestCTCGreedyDecoderSeqLen:
    op = ops["CTCGreedyDecoderSeqLen-6"]

    @pytest.mark.parametrize("merge", [True, False])
    @pytest.mark.parametrize("blank", [None, 0, 1])
    def test_against_groups(self, merge, blank):
        data, lengths = rng.normal(size=(4, 9, 3)).astype(np.float16), [9, 4, 1, 0]
        rest = [] if blank is None else [np.array(blank)]
        classes, counts = self.op(data, np.array(lengths), *rest, merge_repeated=merge)
        assert classes.dtype == counts.dtype == np.int32
        for row, length in enumerate(lengths):
            want = greedy(data[row], length, 2 if blank is None else blank, merge)
            assert classes[row].tolist() == want + [-1] * (9 - len(want))
            assert counts[row] == len(want)

    def test_output_types(self):
        attrs = {"classes_index_type": "i64", "sequence_length_type": "i32"}
        classes, counts = self.op(np.zeros((1, 1, 2)), np.array([1], np.int32), np.array([1], np.int32), **attrs)
        assert (classes.dtype, counts.dtype) == (np.int64, np.int32)

    def test_ctcgreedydecoderseqlen_6_c1_length(self):
        expected = ("C1", "`sequence_length[0]` is 3, outside [0, 3)")
        assert message(self.op, np.zeros((1, 2, 2)), np.array([3])) == expected
        assert message(self.op, np.zeros((1, 2, 2)), np.array([-1]))[0] == "C1"

    @pytest.mark.parametrize("blank", [2, -1])
    def test_ctcgreedydecoderseqlen_6_c2_blank_that_is_no_class(self, blank):
        data = np.float32([[[1, 0], [0, 1]]])
        label, said = tolerated(self.op, data, np.array([2]), np.array(blank))
        assert (label, said) == ("C2", f"`blank_index` is {blank}, outside [0, 2)")
        with pytest.warns(match="takes no class for blank"):
            classes, counts = self.op(data, np.array([2]), np.array(blank))
        assert (classes.tolist(), counts.tolist()) == ([[0, 1]], [2])

    def test_a_blank_may_be_a_class_of_an_unknown_number(self):
        inputs = [Tensor("f32", (1, 2, fresh())), Tensor("i64", (1,)), Tensor.of(np.array(7))]
        assert self.op.infer(inputs, self.op.defaults).tolerated == []


def loss_by_paths(logits, target, blank, merge):
    """The loss of one sequence, from the probability of each single path."""
    steps, classes = logits.shape
    chances = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    total = 0.0
    for path in itertools.product(range(classes), repeat=steps):
        spelt = [key for key, _ in itertools.groupby(path)] if merge else path
        if [label for label in spelt if label != blank] == list(target):
            total += math.prod(chances[step, label] for step, label in enumerate(path))
    return -math.log(total) if total else math.inf


class TestCTCLoss:
    op = ops["CTCLoss-4"]
    LOGITS = rng.normal(size=(4, 5, 3))
    LABELS = np.array([[0, 0, 1, 9, 9], [1, 0, 1, 0, 9], [0, 1, 1, 1, 1], [1, 1, 1, 1, 1]])
    LENGTHS, LABEL_LENGTHS = np.array([5, 4, 3, 2]), np.array([3, 1, 2, 0])

    @pytest.mark.parametrize("merge", [True, False])
    @pytest.mark.parametrize("blank", [None, 2])
    def test_against_all_paths(self, merge, blank):
        inputs = [self.LOGITS, self.LENGTHS, self.LABELS, self.LABEL_LENGTHS]
        got = self.op(*inputs, *([] if blank is None else [np.array(blank)]), ctc_merge_repeated=merge)
        rows = zip(*inputs, strict=True)
        want = [loss_by_paths(logits[:n], labels[:m], 2, merge) for logits, n, labels, m in rows]
        np.testing.assert_allclose(got, want, 1e-9)

    def test_another_blank(self):
        labels, lengths = np.array([[1, 2, 2, 0]]), np.array([4])
        got = self.op(self.LOGITS[:1, :4], lengths, labels, np.array([3]), np.array(0))
        np.testing.assert_allclose(got, [loss_by_paths(self.LOGITS[0, :4], [1, 2, 2], 0, True)], 1e-9)

    @pytest.mark.parametrize(
        ("attrs", "target"),
        [({}, [0, 0, 1, 0]), ({"preprocess_collapse_repeated": True}, [0, 1, 0]), ({"unique": True}, [0, 1])],
    )
    def test_preprocessing(self, attrs, target):
        labels = np.array([[0, 0, 1, 0, 9]])
        got = self.op(self.LOGITS[:1], np.array([5]), labels, np.array([4]), **attrs)
        np.testing.assert_allclose(got, [loss_by_paths(self.LOGITS[0], target, 2, True)], 1e-9)

    def test_unique_keeps_the_order_of_occurrence(self):
        logits, labels = rng.normal(size=(1, 4, 4)), np.array([[2, 0, 2, 1]])
        got = self.op(logits, np.array([4]), labels, np.array([4]), unique=True)
        np.testing.assert_allclose(got, [loss_by_paths(logits[0], [2, 0, 1], 3, True)], 1e-9)

    def test_no_path_is_infinite_and_no_time_is_certain(self):
        labels = np.array([[0, 0], [0, 0]])
        assert self.op(self.LOGITS[:2, :2], np.array([2, 0]), labels, np.array([2, 0])).tolist() == [math.inf, 0]

    def test_f16_is_rounded_once(self):
        inputs = [self.LENGTHS, self.LABELS, self.LABEL_LENGTHS]
        got = self.op(self.LOGITS.astype(np.float16), *inputs)
        assert got.dtype == np.float16
        assert (got == self.op(self.LOGITS.astype(np.float16).astype(np.float32), *inputs).astype(np.float16)).all()

    def test_large_logits_do_not_overflow(self):
        logits = np.array([[[1e4, 0.0]]], np.float32)
        assert self.op(logits, np.array([1]), np.array([[0]]), np.array([1])).tolist() == [0]

    @pytest.mark.parametrize("merge", [True, False])
    def test_f32_is_as_exact_as_that_allows(self, merge):
        inputs = [self.LENGTHS, self.LABELS, self.LABEL_LENGTHS]
        logits = (30 * self.LOGITS).astype(np.float32)
        got = self.op(logits, *inputs, ctc_merge_repeated=merge)
        np.testing.assert_allclose(
            got, self.op(logits.astype(np.float64), *inputs, ctc_merge_repeated=merge), 2e-6, 1e-6
        )

    @pytest.mark.parametrize("far", [1e6, 1e25, 3e37])
    def test_what_is_hardly_possible_is_not_impossible(self, far):
        logits = np.array([[[0, far, 0], [0, far, 0]]], np.float32)
        inputs = np.array([2]), np.array([[0, 0]])
        np.testing.assert_allclose(self.op(logits, *inputs, np.array([1])), [2 * far], 2e-6)
        assert self.op(logits, *inputs, np.array([2])).tolist() == [math.inf]
        logits[0, 0, 0] = -math.inf
        np.testing.assert_allclose(self.op(logits, *inputs, np.array([1])), [2 * far], 2e-6)

    def test_nan_is_of_its_own_row(self):
        inputs = [self.LENGTHS, self.LABELS, self.LABEL_LENGTHS]
        expected, logits = self.op(self.LOGITS, *inputs), self.LOGITS.copy()
        logits[1, 2, 1] = math.nan
        got = self.op(logits, *inputs)
        assert np.isnan(got).tolist() == [False, True, False, False]
        np.testing.assert_array_equal(got[[0, 2, 3]], expected[[0, 2, 3]])

    def run(self, **changes):
        inputs = {
            "logits": np.zeros((1, 2, 3)),
            "logit_length": np.array([2]),
            "labels": np.array([[0, 1]]),
            "label_length": np.array([2]),
            "blank_index": np.array(2),
        }
        return message(self.op, *(inputs | changes).values())

    def test_ctcloss_4_c1_logit_length(self):
        assert self.run(logit_length=np.array([3])) == ("C1", "`logit_length[0]` is 3, outside [0, 3)")

    def test_ctcloss_4_c2_label_length(self):
        assert self.run(label_length=np.array([-1])) == ("C2", "`label_length[0]` is -1, outside [0, 3)")
        expected = ("C2", "`label_length[0]` is 2, but `logit_length[0]` is 1")
        assert self.run(logit_length=np.array([1])) == expected

    def test_ctcloss_4_c3_blank_index(self):
        assert self.run(blank_index=np.array(3)) == ("C3", "`blank_index` is 3, outside [0, 3)")

    def test_ctcloss_4_c4_labels(self):
        assert self.run(labels=np.array([[0, 3]])) == ("C4", "`labels[0, 1]` is 3, outside [0, 3)")
        assert self.run(labels=np.array([[2, 0]])) == ("C4", "`labels[0, 0]` is 2, the blank")
        assert self.run(labels=np.array([[2, 0]]), blank_index=None) == ("C4", "`labels[0, 0]` is 2, the blank")


def test_lstmcell_1_c3_rows_of_peepholes():
    label, text = message(ops["LSTMCell-1"], *cell_inputs("LSTM"), np.zeros(14), hidden_size=HIDDEN)
    assert (label, text) == ("C3", "`3 * hidden_size` is 14, expected 15")


def test_lstmcell_1_c4_peepholes():
    """OpenVINO has them as an input, and computes as if they were zeros."""
    inputs, peepholes = cell_inputs("LSTM", np.float32), np.zeros(3 * HIDDEN, np.float32)
    given = ops["LSTMCell-1"](*inputs, peepholes, hidden_size=HIDDEN)
    plain = ops["LSTMCell-1"](*inputs, hidden_size=HIDDEN)
    assert all((a == b).all() for a, b in zip(given, plain, strict=True))
    peepholes[[4, 7]] = 0.5, -1
    label, text = message(ops["LSTMCell-1"], *inputs, peepholes, hidden_size=HIDDEN)
    assert (label, text) == ("C4", "`P[4]` is 0.5, expected zeros: the gates do not read the cell state")
