"""Sequence ops against OpenVINO."""

import numpy as np
import openvino as ov
from openvino import opset1, opset3, opset4, opset5, opset6, opset8, opset16
from openvino.utils.node_factory import NodeFactory

from conformance.harness import Case, Const, Departure, conformance, with_attribute, without_input

rng = np.random.default_rng(0)
opset13_nodes = NodeFactory("opset13")
BATCH, STEPS, INPUTS, HIDDEN = 3, 4, 2, 5
INF = np.inf


def f32(*shape):
    return rng.normal(size=shape).astype(np.float32)


def cell(gates, states=1, type=np.float32, biases=None):
    data = [f32(BATCH, INPUTS), *(f32(BATCH, HIDDEN) for _ in range(states))]
    weights = [f32(gates * HIDDEN, INPUTS), f32(gates * HIDDEN, HIDDEN), f32((biases or gates) * HIDDEN)]
    return [*(array.astype(type) for array in data), *(Const(array.astype(type)) for array in weights)]


def sequence(gates, lengths, ways=1, states=1, type=np.float32, biases=None):
    data = [f32(BATCH, STEPS, INPUTS), *(f32(BATCH, ways, HIDDEN) for _ in range(states))]
    weights = [f32(ways, gates * HIDDEN, n) for n in (INPUTS, HIDDEN)] + [f32(ways, (biases or gates) * HIDDEN)]
    lengths = np.array(lengths, np.int32)
    return [*(array.astype(type) for array in data), lengths, *(Const(array.astype(type)) for array in weights)]


def lstm_cell(opset=opset4, **attrs):
    return lambda *inputs: opset.lstm_cell(*inputs, HIDDEN, **attrs)


def gru_cell(**attrs):
    return lambda *inputs: opset3.gru_cell(*inputs, HIDDEN, **attrs)


def rnn_cell(activation="tanh", **attrs):
    return lambda *inputs: opset3.rnn_cell(*inputs, HIDDEN, [activation], [], [], **attrs)


def lstm_sequence(direction, **attrs):
    return lambda *inputs: opset5.lstm_sequence(*inputs, HIDDEN, direction, **attrs)


def gru_sequence(direction, **attrs):
    return lambda *inputs: opset5.gru_sequence(*inputs, HIDDEN, direction, **attrs)


def rnn_sequence(direction, activations=("tanh",), **attrs):
    return lambda *inputs: opset5.rnn_sequence(*inputs, HIDDEN, direction, list(activations), **attrs)


def one_hot_1(axis):
    return lambda *inputs: opset1.one_hot(*inputs, axis)


def one_hot(axis, mode):
    return lambda *inputs: opset16.one_hot(*inputs, axis, mode)


def attention(causal=False):
    attrs = {"causal": causal}
    return lambda *inputs: opset13_nodes.create("ScaledDotProductAttention", list(inputs), attrs)


def remembered(query, key, value, first, beams):
    """Causal attention to the keys and values of all runs, of which an input puts the batches in order."""
    wholes, sinks = [], []
    for name, new in (("keys", key), ("values", value)):
        info = ov.op.util.VariableInfo()
        info.data_shape, info.data_type, info.variable_id = new.partial_shape, ov.Type.f32, name
        variable = ov.op.util.Variable(info)
        past = opset8.gather(opset6.read_value(first, variable), beams, opset1.constant(np.int32(0)))
        wholes.append(opset1.concat([past, new], 2))
        sinks.append(opset6.assign(wholes[-1], variable))
    return [attention(True)(query, *wholes).output(0), *sinks]


def heads(type=np.float32):
    return [f32(*shape).astype(type) for shape in ((2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7))]


STEP = [*np.random.default_rng(7).standard_normal((3, 1, 2, 1, 4), np.float32)]
PAST = np.random.default_rng(8).standard_normal((1, 2, 2, 4), np.float32)
VALUES = heads()
"""Of a query, keys and values."""


def ctc_greedy_decoder(merge=True):
    return lambda *inputs: opset1.ctc_greedy_decoder(*inputs, merge)


def ctc_greedy_decoder_seq_len(**attrs):
    return lambda *inputs: opset6.ctc_greedy_decoder_seq_len(*inputs, **attrs)


def ctc_loss(**attrs):
    return lambda *inputs: opset4.ctc_loss(*inputs, **attrs)


INDICES = np.array([[0, 3, -1], [2, -4, 1]], np.int64)
DEPTH, ON, OFF = Const(np.int64(3)), Const(np.float32(5)), Const(np.float32(-1))
MASK = np.array([[1, 1, 1], [1, 1, 0], [1, 1, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0]], np.float32)
LOSS = [
    f32(3, 6, 4),
    np.array([6, 4, 5], np.int32),
    np.array([[0, 1, 1, 0, 2, 2], [2, 1, 0, 0, 0, 0], [1, 1, 2, 1, 0, 0]], np.int32),
    np.array([4, 2, 3], np.int32),
]

ONE, ZERO = np.ones((2, 1, 1), np.float32), np.zeros((2, 3, 1), np.float32)
TWO_LENGTHS = np.array([1, 3], np.int32)


def without_weights(gates):
    """Weights and biases of hidden size 1 that leave every argument of a gate 0."""
    return [Const(np.zeros(shape, np.float32)) for shape in ((1, gates, 1), (1, gates, 1), (1, gates))]


def falling(*values):
    """The outputs of a sequence that takes one step and of one that takes three, which decline to `values`."""
    first, *_, last = values
    outputs = np.array([[[first, 0, 0]], [values]], np.float32)
    return outputs[..., None], np.array([[[first]], [[last]]], np.float32)


HALF, TANH_1 = np.float32([[0.5]]), np.tanh(np.float32(1))
WITHOUT = [
    *(
        Case(
            op,
            "no biases",
            lambda *inputs, make=make: make(*inputs, 1),
            [*given, *(Const(array.array[0]) for array in without_weights(gates))],
            deviates=Departure("refuses a file without B; the page has 0 for it", "B is not connected"),
            expected=expected,
            edit=without_input(op.partition("-")[0], len(given) + 2),
        )
        for op, make, gates, given, expected in (
            ("GRUCell-3", opset3.gru_cell, 3, [ONE[0], ONE[0]], [HALF]),
            ("LSTMCell-4", opset4.lstm_cell, 4, [ONE[0], ONE[0], 2 * ONE[0]], [HALF * TANH_1, 2 * HALF]),
        )
    ),
    *(
        Case(
            op,
            "no activations",
            build,
            [np.zeros((1, 1, 1), np.float32), *given, np.int32([1]), *without_weights(gates)],
            deviates=Departure("refuses a file without activations; the page has defaults", "activations is left out"),
            expected=expected,
            left_out=["activations"],
        )
        for op, build, gates, given, expected in (
            (
                "LSTMSequence-5",
                lambda *inputs: opset5.lstm_sequence(*inputs, 1, "forward"),
                4,
                [ONE[:1], 2 * ONE[:1]],
                [HALF[None, None] * TANH_1, HALF[None] * TANH_1, 2 * HALF[None]],
            ),
            (
                "GRUSequence-5",
                lambda *inputs: opset5.gru_sequence(*inputs, 1, "forward"),
                3,
                [ONE[:1]],
                [HALF[None, None], HALF[None]],
            ),
            (
                "RNNSequence-5",
                lambda *inputs: opset5.rnn_sequence(*inputs, 1, "forward", ["tanh"]),
                1,
                [ONE[:1]],
                [0 * HALF[None, None], 0 * HALF[None]],
            ),
        )
    ),
]

HALVED = falling(*(0.5 * np.tanh([2.0, 1.0, 0.5])))
LENGTHS_IGNORED = [
    Case(
        op,
        "lengths with all sizes unknown",
        build,
        inputs,
        dynamic=True,
        deviates=Departure(
            "ignores sequence_lengths where sizes are unknown; the page stops at them",
            "X is dynamic; sequence_lengths < axis 1 of X",
        ),
        expected=expected,
    )
    for op, build, inputs, expected in (
        (
            "LSTMSequence-5",
            lambda *inputs: opset5.lstm_sequence(*inputs, 1, "forward"),
            [ZERO, ONE, 4 * ONE, TWO_LENGTHS, *without_weights(4)],
            [*HALVED, falling(2, 1, 0.5)[1]],
        ),
        (
            "GRUSequence-5",
            lambda *inputs: opset5.gru_sequence(*inputs, 1, "forward"),
            [ZERO, ONE, TWO_LENGTHS, *without_weights(3)],
            falling(0.5, 0.25, 0.125),
        ),
        (
            "RNNSequence-5",
            lambda *inputs: opset5.rnn_sequence(*inputs, 1, "forward", ["tanh"]),
            [ZERO + 2, ONE, TWO_LENGTHS, Const(ONE[:1]), *without_weights(1)[1:]],
            falling(*np.tanh([2.0, 2.0, 2.0])),
        ),
    )
]

CASES = [
    Case("LSTMCell-4", "defaults", lstm_cell(), cell(4, 2)),
    Case("LSTMCell-4", "clip", lstm_cell(clip=0.4), cell(4, 2)),
    Case("LSTMCell-4", "activations", lstm_cell(activations=["relu", "sigmoid", "tanh"]), cell(4, 2)),
    Case("LSTMCell-4", "f16, all sizes unknown", lstm_cell(), cell(4, 2, np.float16), True, rtol=5e-3, atol=2e-3),
    Case("GRUCell-3", "defaults", gru_cell(), cell(3)),
    Case("GRUCell-3", "linear before reset", gru_cell(linear_before_reset=True), cell(3, biases=4)),
    Case("GRUCell-3", "clip", gru_cell(clip=0.3, activations=["sigmoid", "relu"]), cell(3)),
    Case("GRUCell-3", "clip, linear", gru_cell(clip=0.3, linear_before_reset=True), cell(3, biases=4), dynamic=True),
    Case("RNNCell-3", "defaults", rnn_cell(), cell(1)),
    Case("RNNCell-3", "relu", rnn_cell("relu"), cell(1)),
    Case("RNNCell-3", "clip", rnn_cell("sigmoid", clip=0.3), cell(1)),
    Case("RNNCell-3", "all sizes unknown", rnn_cell(), cell(1), dynamic=True),
    Case("LSTMSequence-5", "forward", lstm_sequence("forward"), sequence(4, [4, 4, 4], 1, 2)),
    Case("LSTMSequence-5", "reverse, lengths", lstm_sequence("reverse"), sequence(4, [4, 2, 0], 1, 2)),
    Case("LSTMSequence-5", "both ways, lengths", lstm_sequence("bidirectional"), sequence(4, [1, 4, 3], 2, 2)),
    Case("LSTMSequence-5", "clip", lstm_sequence("forward", clip=0.4), sequence(4, [1, 4, 3], 1, 2)),
    Case("LSTMSequence-5", "all sizes unknown", lstm_sequence("reverse"), sequence(4, [4, 4, 4], 1, 2), dynamic=True),
    Case(
        "LSTMSequence-5",
        "f16",
        lstm_sequence("forward"),
        sequence(4, [1, 4, 3], 1, 2, np.float16),
        rtol=5e-3,
        atol=2e-3,
    ),
    Case("GRUSequence-5", "forward", gru_sequence("forward"), sequence(3, [4, 4, 4])),
    Case("GRUSequence-5", "reverse, lengths", gru_sequence("reverse"), sequence(3, [4, 2, 0])),
    Case("GRUSequence-5", "both ways, lengths", gru_sequence("bidirectional"), sequence(3, [1, 4, 3], 2)),
    Case(
        "GRUSequence-5",
        "linear before reset",
        gru_sequence("bidirectional", linear_before_reset=True),
        sequence(3, [1, 4, 3], 2, biases=4),
    ),
    Case(
        "GRUSequence-5",
        "activations and clip, all sizes unknown",
        gru_sequence("reverse", activations=["sigmoid", "relu"], clip=0.5),
        sequence(3, [1, 4, 3]),
        dynamic=True,
    ),
    Case("GRUSequence-5", "all sizes unknown", gru_sequence("reverse"), sequence(3, [4, 4, 4]), dynamic=True),
    Case("RNNSequence-5", "forward", rnn_sequence("forward"), sequence(1, [4, 4, 4])),
    Case("RNNSequence-5", "reverse, lengths", rnn_sequence("reverse"), sequence(1, [4, 2, 0])),
    Case("RNNSequence-5", "both ways, lengths", rnn_sequence("bidirectional"), sequence(1, [1, 4, 3], 2)),
    Case("RNNSequence-5", "relu and clip", rnn_sequence("forward", ["relu"], clip=0.5), sequence(1, [1, 4, 3])),
    Case("RNNSequence-5", "all sizes unknown", rnn_sequence("reverse"), sequence(1, [4, 4, 4]), dynamic=True),
    *LENGTHS_IGNORED,
    *WITHOUT,
    Case("OneHot-1", "last axis", one_hot_1(-1), [INDICES, DEPTH, ON, OFF]),
    Case("OneHot-1", "first axis", one_hot_1(0), [INDICES, DEPTH, ON, OFF], dynamic=True),
    Case("OneHot-1", "scalar index", one_hot_1(0), [np.int64(1), DEPTH, ON, OFF]),
    *(
        Case(
            *(op, "scalar index, depth as an input", build, [np.int64(1), np.int64(3), ON, OFF]),
            deviates=Departure(
                "refuses a depth that is an input for a scalar; the page has an input",
                "indices is a scalar; depth is not constant",
            ),
            expected=[np.where(np.arange(3) == 1, ON.array, OFF.array)],
        )
        for op, build in (("OneHot-1", one_hot_1(0)), ("OneHot-16", one_hot(0, "normalize")))
    ),
    Case(
        "OneHot-1",
        "i32 and boolean",
        one_hot_1(1),
        [INDICES.astype(np.int32), Const(np.int32(4)), Const(np.array(True)), Const(np.array(False))],
    ),
    Case("OneHot-1", "types apart", one_hot_1(1), [INDICES.astype(np.int32), DEPTH, ON, OFF]),
    *(
        Case(
            op,
            "strings",
            build,
            [np.int64([1, 0]), Const(np.int64(2)), np.array("yes"), np.array("no")],
            deviates=Departure(
                "crashes, as it copies the bytes of strings; the page has any type", "on_value is string"
            ),
            expected=[np.array([["no", "yes"], ["yes", "no"]])],
            crashes=True,
        )
        for op, build in (("OneHot-1", one_hot_1(-1)), ("OneHot-16", one_hot(-1, "normalize")))
    ),
    Case("OneHot-16", "normalized", one_hot(-1, "normalize"), [INDICES, DEPTH, ON, OFF]),
    Case("OneHot-16", "ignored", one_hot(-1, "ignore_negative"), [INDICES, DEPTH, ON, OFF]),
    Case(
        "OneHot-16",
        "ignored, in the page's word",
        one_hot(-1, "ignore_negative"),
        [np.int64([1, -1]), Const(np.int64(2)), ON, OFF],
        deviates=Departure(
            "refuses ignore-negative, which it calls ignore_negative; the page has ignore-negative",
            "negative_indices_mode = ignore-negative",
        ),
        expected=[np.float32([[-1, 5], [-1, -1]])],
        edit=with_attribute("negative_indices_mode", "ignore-negative"),
    ),
    Case("OneHot-16", "default", one_hot(1, None), [INDICES, DEPTH, ON, OFF], dynamic=True),
    Case("OneHot-16", "u8", one_hot(0, "normalize"), [INDICES, DEPTH, Const(np.uint8(7)), Const(np.uint8(1))]),
    Case("ScaledDotProductAttention-13", "plain", attention(), heads()),
    Case("ScaledDotProductAttention-13", "causal", attention(True), heads(), dynamic=True),
    Case(
        "ScaledDotProductAttention-13",
        "causal, of two keys before",
        remembered,
        [*STEP, PAST, np.int32([0])],
        dynamic=True,
        deviates=Departure(
            "counts from the last key on where it joins keys of runs before; the page from the first one on",
            "causal = true; (variables hold keys of runs before)",
        ),
        expected=[PAST[:, :, :1]],
    ),
    Case("ScaledDotProductAttention-13", "mask", attention(), [*heads(), f32(2, 1, 4, 6)]),
    Case("ScaledDotProductAttention-13", "one row of mask", attention(), [*heads(), f32(1, 1, 1, 6)], dynamic=True),
    Case("ScaledDotProductAttention-13", "mask of rank 2", attention(), [*heads(), f32(4, 6)]),
    Case("ScaledDotProductAttention-13", "boolean mask", attention(), [*heads(), rng.random((2, 3, 4, 6)) > 0.3]),
    Case(
        "ScaledDotProductAttention-13",
        "row without keys",
        attention(),
        [*VALUES, np.zeros((1, 1, 4, 6), bool)],
        deviates=Departure(
            "gives NaN where the op stands alone, in decoders the mean of all values; 0, as PyTorch has it, is right",
            "causal = false; attention_mask has rows that hide all",
        ),
        expected=[np.zeros((2, 3, 4, 7), np.float32)],
    ),
    Case(
        "ScaledDotProductAttention-13",
        "no keys",
        attention(),
        [f32(2, 3, 4, 5), f32(2, 3, 0, 5), f32(2, 3, 0, 7)],
        dynamic=True,
        deviates=Departure(
            "leaves the result as it is in memory, also of what it computes as one attention; a sum of nothing is 0",
            "key is empty; query is not empty",
        ),
        expected=[np.zeros((2, 3, 4, 7), np.float32)],
        crashes=True,
    ),
    Case(
        "ScaledDotProductAttention-13",
        "row of -infinity",
        attention(),
        [np.ones((1, 2, 2), np.float32)] * 3 + [np.array([[[0, 0], [-np.inf, -np.inf]]], np.float32)],
    ),
    Case(
        "ScaledDotProductAttention-13", "scale", attention(), [*heads(), Const(np.float32(0)), Const(np.float32(0.3))]
    ),
    Case("ScaledDotProductAttention-13", "mask and scale", attention(), [*heads(), f32(4, 6), np.float32(0.3)]),
    Case(
        "ScaledDotProductAttention-13",
        "sink",
        attention(),
        [*heads(), f32(1, 1, 4, 6), Const(np.float32(0.3)), f32(1, 3, 1, 1)],
    ),
    Case("ScaledDotProductAttention-13", "three dimensions", attention(), [array[0] for array in heads()]),
    Case("ScaledDotProductAttention-13", "f16", attention(), heads(np.float16), rtol=5e-3, atol=2e-3),
    Case("CTCGreedyDecoder-1", "merged", ctc_greedy_decoder(), [f32(6, 3, 4), MASK]),
    Case("CTCGreedyDecoder-1", "repeated", ctc_greedy_decoder(False), [f32(6, 3, 2), MASK]),
    Case("CTCGreedyDecoder-1", "two classes", ctc_greedy_decoder(), [f32(6, 3, 2), MASK]),
    Case("CTCGreedyDecoder-1", "all sizes unknown", ctc_greedy_decoder(), [f32(6, 3, 3), MASK], dynamic=True),
    Case("CTCGreedyDecoderSeqLen-6", "merged", ctc_greedy_decoder_seq_len(), [f32(3, 6, 3), LOSS[1]]),
    Case(
        "CTCGreedyDecoderSeqLen-6",
        "repeated, i64",
        ctc_greedy_decoder_seq_len(merge_repeated=False, classes_index_type="i64", sequence_length_type="i64"),
        [f32(3, 6, 3), LOSS[1].astype(np.int64)],
    ),
    Case(
        "CTCGreedyDecoderSeqLen-6",
        "blank first",
        ctc_greedy_decoder_seq_len(),
        [f32(3, 6, 3), LOSS[1], Const(np.array(0, np.int32))],
    ),
    Case(
        "CTCGreedyDecoderSeqLen-6",
        "all sizes unknown",
        ctc_greedy_decoder_seq_len(),
        [f32(3, 6, 3), LOSS[1]],
        dynamic=True,
    ),
    Case(
        "CTCGreedyDecoderSeqLen-6",
        "no frames",
        ctc_greedy_decoder_seq_len(),
        [np.zeros((3, 0, 2), np.float32), np.zeros(3, np.int32)],
        deviates=Departure(
            "leaves the lengths as they are in memory; no class is in a sequence without frames", "axis 1 of data = 0"
        ),
        expected=[np.zeros((3, 0), np.int32), np.zeros(3, np.int32)],
        crashes=True,
    ),
    Case("CTCLoss-4", "defaults", ctc_loss(), LOSS),
    Case("CTCLoss-4", "not merged", ctc_loss(ctc_merge_repeated=False), LOSS),
    Case("CTCLoss-4", "collapsed", ctc_loss(preprocess_collapse_repeated=True), LOSS),
    Case("CTCLoss-4", "unique", ctc_loss(unique=True), LOSS),
    Case("CTCLoss-4", "blank given", ctc_loss(), [*LOSS, Const(np.int32(3))], dynamic=True),
    Case("LSTMCell-1", "defaults", lstm_cell(opset1), cell(4, 2)),
    Case("LSTMCell-1", "clip", lstm_cell(opset1, clip=0.4), cell(4, 2)),
    Case("LSTMCell-1", "activations", lstm_cell(opset1, activations=["relu", "sigmoid", "tanh"]), cell(4, 2)),
    Case("LSTMCell-1", "f16", lstm_cell(opset1), cell(4, 2, np.float16), rtol=5e-3, atol=2e-3),
    *(
        Case(
            "LSTMCell-1",
            f"gates said to be {order}",
            lambda *inputs, order=order: NodeFactory("opset1").create(
                "LSTMCell",
                [node.output(0) for node in inputs],
                {"hidden_size": HIDDEN, "weights_format": order, "activations": ["sigmoid", "tanh", "tanh"]},
            ),
            cell(4, 2),
        )
        for order in ("fico", "icof", "ifco", "ifoc", "iofc")
    ),
]

SIGMOID, TANH = 1 / (1 + np.exp(-2)), np.tanh(2)
COUPLED = SIGMOID + (1 - SIGMOID) * TANH
CASES += [
    Case(
        "LSTMCell-1",
        "input_forget",
        lambda *inputs: NodeFactory("opset1").create(
            "LSTMCell",
            [node.output(0) for node in inputs],
            {
                "hidden_size": 1,
                "input_forget": True,
                "weights_format": "fico",
                "activations": ["sigmoid", "tanh", "tanh"],
            },
        ),
        [*[np.ones((1, 1), np.float32)] * 3, *[Const(np.ones((4, 1), np.float32))] * 2, Const(np.zeros(4, np.float32))],
        deviates=Departure(
            "ignores input_forget; as an operator of OpenVINO it couples the gates, i = 1 - f", "input_forget = true"
        ),
        expected=[np.float32([[SIGMOID * np.tanh(COUPLED)]]), np.float32([[COUPLED]])],
    ),
    Case(
        "CTCLoss-4",
        "empty target",
        ctc_loss(),
        [np.zeros((1, 2, 3), np.float32), np.int32([2]), np.int32([[0, 0]]), np.int32([0])],
        deviates=Departure("crashes; by the page an empty target is spelt by blanks", "label_length = 0"),
        expected=[np.float32([2 * np.log(3)])],
        crashes=True,
    ),
    Case(
        "CTCLoss-4",
        "no ctc_merge_repeated",
        ctc_loss(),
        [np.zeros((1, 3, 3), np.float32), np.int32([3]), np.int32([[1, 1, 0]]), np.int32([2])],
        left_out=["ctc_merge_repeated"],
        deviates=Departure("takes false; the page has true for it", "ctc_merge_repeated is left out"),
        expected=[np.float32([3 * np.log(3)])],
    ),
]

test_agrees_with_openvino = conformance(CASES)
