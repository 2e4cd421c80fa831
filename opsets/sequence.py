"""Sequence ops: recurrent cells and networks, attention, one-hot vectors and connectionist temporal classification."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from irrun.spec import (
    ANY,
    BOOL,
    FLOAT,
    INDEX,
    INT,
    INTEGER,
    Array,
    Attending,
    Attr,
    Dim,
    Doubting,
    Input,
    Node,
    Output,
    Products,
    Shape,
    Shapes,
    Size,
    Tensor,
    broadcast_shapes,
    choice,
    every,
    fresh,
    meet,
    numpy_dtype,
    op,
    product,
    shape_text,
)

from ._elementwise import dtype_of
from ._precision import widened
from ._recurrent import (
    DIRECTION,
    accumulating,
    cell_attrs,
    check_cell,
    check_rows,
    check_sequence,
    gru,
    lstm,
    projected,
    rnn,
    unrolled,
)
from ._unlikely import positions_outside


@op(
    "CTCGreedyDecoder-1",
    types={"T_F": FLOAT},
    inputs=[Input("data", "T_F", "[T, N, C]"), Input("sequence_mask", "T_F", "[T, N]", lenient=True)],
    outputs=[Output("result", "T_F", "[N, T, 1, 1]")],
    attrs=[Attr("ctc_merge_repeated", BOOL, True)],
)
def ctc_greedy_decoder(data: Array, sequence_mask: Array, *, ctc_merge_repeated: bool) -> Any:
    """Take the most probable class of each step, drop repeated and blank ones, and fill up with -1.

    The last class is the blank. A sequence ends at the first 0 of its mask.

    Source: sequence/ctc-greedy-decoder-1.rst

    >>> data = np.array([[[0.9, 0.1, 0.0]], [[0.8, 0.1, 0.1]], [[0.0, 0.1, 0.9]], [[0.0, 0.7, 0.3]]])
    >>> op(data, np.ones((4, 1))).ravel().tolist()
    [0.0, 1.0, -1.0, -1.0]
    """
    inside = np.logical_and.accumulate(sequence_mask.T != 0, axis=1)
    classes, _ = _decoded(data.swapaxes(0, 1), inside, data.shape[-1] - 1, ctc_merge_repeated)
    return classes.astype(data.dtype)[..., None, None]


@op(
    "CTCGreedyDecoderSeqLen-6",
    types={"T_F": FLOAT, "T_I": INDEX},
    inputs=[
        Input("data", "T_F", "[N, T, C]"),
        Input("sequence_length", "T_I", "[N]"),
        Input("blank_index", "T_I", "[] | [1]", optional=True, lenient=True),
    ],
    outputs=[Output("classes", "classes_index_type", "[N, T]"), Output("lengths", "sequence_length_type", "[N]")],
    attrs=[
        Attr("merge_repeated", BOOL, True),
        Attr("classes_index_type", choice("i64", "i32"), "i32"),
        Attr("sequence_length_type", choice("i64", "i32"), "i32"),
    ],
)
def ctc_greedy_decoder_seq_len(
    data: Array,
    sequence_length: Array,
    blank_index: Array | None = None,
    *,
    merge_repeated: bool,
    classes_index_type: str,
    sequence_length_type: str,
) -> Any:
    """Take the most probable class of each step, drop repeated and blank ones, and fill up with -1.

    Constraints:
        C1: sequence_length lies in [0, T].
        C2: blank_index lies in [0, C).

    Source: sequence/ctc-greedy-decoder-seq-len-6.rst

    >>> data = np.array([[[0.9, 0.1, 0.0], [0.8, 0.1, 0.1], [0.0, 0.1, 0.9], [0.0, 0.7, 0.3]]])
    >>> [output.tolist() for output in op(data, np.array([4]))]
    [[[0, 1, -1, -1]], [2]]
    """
    blank = data.shape[-1] - 1 if blank_index is None else int(blank_index.item())
    inside = np.arange(data.shape[1]) < sequence_length[:, None]
    classes, lengths = _decoded(data, inside, blank, merge_repeated)
    return classes.astype(numpy_dtype(classes_index_type)), lengths.astype(numpy_dtype(sequence_length_type))


@ctc_greedy_decoder_seq_len.shapes
def _(node: Node) -> None:
    classes = node.dims["C"]
    blank = node.numbers("blank_index") if node.inputs["blank_index"] is not None else None
    if blank:
        message = f"`blank_index` is {blank[0]}, outside [0, {classes})"
        inside = every(answer for answer in (classes > blank[0], blank[0] >= 0))
        node.require("C2", inside, message, "blank_index", about=["data"], lenient="takes no class for blank")
    node.within("C1", "sequence_length", 0, node.dims["T"] + 1)


def _decoded(data: Array, inside: Array, blank: int, merge: bool) -> tuple[Any, Any]:
    """The classes of [N, T, C] that remain, to the left in [N, T], and how many there are in each row."""
    best = data.argmax(-1) if data.size else np.zeros(data.shape[:2], np.int64)
    kept = inside & (best != blank)
    if merge:
        kept[:, 1:] &= best[:, 1:] != best[:, :-1]
    classes = np.full(best.shape, -1)
    rows, steps = np.nonzero(kept)
    classes[rows, np.cumsum(kept, axis=1)[rows, steps] - 1] = best[rows, steps]
    return classes, kept.sum(axis=1)


NEVER = {"f": -1e30, "d": -1e300}
"""The log of a chance that there is not, in f32 and f64: a number, so that differences are numbers, too."""

FAR = -1e20
"""The least log of a chance that f32 tells from none."""


def spelt(chances: Array, stays: Array, skips: Array, lengths: Array) -> Array:
    """The log of the chance to be at each place after a row's own number of steps, by chances [N, T, places].

    Places that can be stayed at, and got to from two before, are marked. Rows lie one after the other, with two places
    of no chance between them, so that a step takes few calls.
    """
    count, steps, places = chances.shape
    found = np.full((count, places), -np.inf, chances.dtype)
    if not lengths.any():
        return found
    padded = (count, places + 2)
    close = chances.dtype == np.float32 and chances.min(where=chances > -np.inf, initial=0) >= FAR
    dtype = np.dtype("f" if close else "d")
    never = NEVER[dtype.char]
    ahead = np.zeros((steps, *padded), dtype)
    ahead[:, :, 2:] = chances.transpose(1, 0, 2)
    np.maximum(ahead, never, out=ahead)
    mask = np.zeros((3, *padded), dtype)  # of staying, going on, and skipping
    mask[1:, :, :2] = never
    mask[0, :, 2:], mask[2, :, 2:] = np.where(stays, 0, never), np.where(skips, 0, never)
    allowed, added = mask.reshape(3, -1)[:, 2:], ahead.reshape(steps, -1)[:, 2:]
    so_far = np.full(padded, never, dtype)
    flat = so_far.reshape(-1)
    now, step = flat[2:], flat.itemsize
    before = np.ndarray(allowed.shape, dtype, flat, 2 * step, (-step, step))
    ways, best = np.empty(allowed.shape, dtype), np.empty(allowed.shape[1], dtype)
    first, second, third = ways
    between = so_far[:, :2] if np.isnan(added).any() else None  # NaN is of one row only
    ending: dict[int, list[int]] = {}
    for row, length in enumerate(lengths.tolist()):
        ending.setdefault(length, []).append(row)
    for time in range(max(ending)):
        if time:
            np.add(before, allowed, out=ways)
            np.maximum(first, second, out=best)
            np.maximum(best, third, out=best)
            np.subtract(ways, best, out=ways)
            np.exp(ways, out=ways)
            np.add(first, second, out=first)
            np.add(first, third, out=first)
            np.log(first, out=first)
            np.add(first, best, out=now)
            np.add(now, added[time], out=now)
            if between is not None:
                between.fill(never)
        else:
            so_far[:, 2:4] = ahead[0, :, 2:4]
        for row in ending.get(time + 1, ()):
            found[row] = np.where(so_far[row, 2:] <= never / 2, -np.inf, so_far[row, 2:])
    return found


@op(
    "CTCLoss-4",
    types={"T_F": FLOAT, "T1": INDEX, "T2": INDEX},
    lenient_types={"T1": INTEGER, "T2": INTEGER},
    inputs=[
        Input("logits", "T_F", "[N, T, C]"),
        Input("logit_length", "T1", "[N]"),
        Input("labels", "T2", "[N, T]"),
        Input("label_length", "T1", "[N]", lenient=True),
        Input("blank_index", "T2", "[]", optional=True),
    ],
    outputs=[Output("loss", "T_F", "[N]")],
    attrs=[
        Attr("preprocess_collapse_repeated", BOOL, False),
        Attr("ctc_merge_repeated", BOOL, True, assumed=False, demanded=True),
        Attr("unique", BOOL, False),
    ],
)
def ctc_loss(
    logits: Array,
    logit_length: Array,
    labels: Array,
    label_length: Array,
    blank_index: Array | None = None,
    *,
    preprocess_collapse_repeated: bool,
    ctc_merge_repeated: bool,
    unique: bool,
    spell: Callable[..., Array] = spelt,
) -> Any:
    """The negative log of the probability that the logits spell the labels, summed over all paths that do.

    The sum runs over time by dynamic programming. It is infinite where no path spells the labels.

    Constraints:
        C1: logit_length lies in [0, T].
        C2: label_length lies in [0, logit_length].
        C3: blank_index lies in [0, C).
        C4: labels up to label_length lie in [0, C), and none of them is blank_index.

    Deviation: for an empty target OpenVINO's reference answers 0; by the page it is spelt by the path of blanks alone.

    Source: sequence/ctc-loss-4.rst

    >>> one = np.array([1])
    >>> op(np.zeros((1, 1, 4)), one, np.array([[2]]), one).round(4).tolist()
    [1.3863]
    """
    count, steps, classes = logits.shape
    blank = classes - 1 if blank_index is None else int(blank_index.item())
    targets, lengths = _targets(labels, label_length, preprocess_collapse_repeated, unique)
    spelt = np.full((count, 2 * targets.shape[1] + 1), blank)
    spelt[:, 1::2] = targets
    wide = widened(logits)
    chances = wide - wide.max(-1, keepdims=True)
    chances -= np.log(np.exp(chances).sum(-1, keepdims=True))
    chances = np.take_along_axis(chances, np.broadcast_to(spelt[:, None], (count, steps, spelt.shape[1])), 2)
    # places of `spelt` are blank, label, blank, ...: a path stays, goes on, or skips the blank between two labels
    labelled = np.arange(spelt.shape[1]) % 2 == 1
    stays = np.broadcast_to(ctc_merge_repeated | ~labelled, spelt.shape)
    skips = np.zeros(spelt.shape, np.bool_)
    skips[:, 2:] = labelled[2:] & ~(ctc_merge_repeated & (spelt[:, 2:] == spelt[:, :-2]))
    so_far = spell(chances, stays, skips, logit_length)
    rows = np.arange(count)
    label_end = np.where(lengths > 0, so_far[rows, np.maximum(2 * lengths - 1, 0)], -np.inf)
    loss = -np.logaddexp(so_far[rows, 2 * lengths], label_end)
    return np.where(logit_length == 0, 0, loss).astype(logits.dtype)


@ctc_loss.shapes
def _(node: Node) -> None:
    steps, classes = node.dims["T"], node.dims["C"]
    node.within("C1", "logit_length", 0, steps + 1)
    node.within("C2", "label_length", 0, steps + 1)
    node.within("C3", "blank_index", 0, classes)
    long, short = node.value("logit_length"), node.value("label_length")
    if long is not None and short is not None:
        for row in np.flatnonzero(short > long)[:1]:
            node.fail(
                "C2",
                f"`label_length[{row}]` is {short[row]}, but `logit_length[{row}]` is {long[row]}",
                about=["label_length", "logit_length"],
            )
    labels, blank = node.value("labels"), node.value("blank_index")
    if labels is None or short is None or (blank is None and node.inputs["blank_index"] is not None):
        return
    if isinstance(classes, Dim):
        node.complete = False
        return
    none = classes - 1 if blank is None else int(blank)
    used = np.arange(labels.shape[1]) < short[:, None]
    wrong = used & ((labels < 0) | (labels >= classes) | (labels == none))
    for row, step in np.argwhere(wrong)[:1]:
        label = labels[row, step]
        why = "the blank" if label == none else f"outside [0, {classes})"
        node.fail("C4", f"`labels[{row}, {step}]` is {label}, {why}", about=["labels"])


def _targets(labels: Array, lengths: Array, collapse: bool, unique: bool) -> tuple[Any, Any]:
    """The labels that count, to the left in [N, most], and how many there are in each row; the rest is 0."""
    kept = np.arange(labels.shape[1]) < lengths[:, None]
    if unique:
        known = np.where(kept, labels, -1)
        order = known.argsort(axis=1, kind="stable")
        ordered = np.take_along_axis(known, order, 1)
        first = np.ones_like(kept)
        first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        np.put_along_axis(first, order, first.copy(), 1)
        kept &= first
    elif collapse:
        kept[:, 1:] &= labels[:, 1:] != labels[:, :-1]
    counts = kept.sum(axis=1)
    targets = np.zeros((len(labels), int(counts.max(initial=0))), np.int64)
    rows, steps = np.nonzero(kept)
    targets[rows, np.cumsum(kept, axis=1)[rows, steps] - 1] = labels[rows, steps]
    return targets, counts


@op(
    "GRUCell-3",
    types={"T": FLOAT},
    inputs=[
        Input("X", "T", "[batch_size, input_size]"),
        Input("initial_hidden_state", "T", "[batch_size, hidden_size]"),
        Input("W", "T", "[3 * hidden_size, input_size]", lenient=True),
        Input("R", "T", "[3 * hidden_size, hidden_size]"),
        Input("B", "T", "[biases]", optional=True),
    ],
    outputs=[Output("Ho", "T", "[batch_size, hidden_size]")],
    attrs=[*cell_attrs("sigmoid", "tanh"), Attr("linear_before_reset", BOOL, False)],
    extension_versions=("experimental", "extension"),
    traits=[accumulating(2)],
)
def gru_cell(
    X: Array,
    initial_hidden_state: Array,
    W: Array,
    R: Array,
    B: Array | None = None,
    *,
    hidden_size: int,
    activations: Sequence[str],
    activations_alpha: Sequence[float],
    activations_beta: Sequence[float],
    clip: float,
    linear_before_reset: bool,
) -> Any:
    """One step of a GRU, whose gates z, r and h stand in this order in W, R and B.

    z = f(X Wz + H Rz + Bz), r = f(X Wr + H Rr + Br), Ho = (1 - z) h + z H with h = g(X Wh + (r H) Rh + Bh), or with
    linear_before_reset h = g(X Wh + r (H Rh + B4) + Bh), B4 being the fourth part of B. Each argument of f and g is
    clipped to [-clip, clip]; a clip of 0 clips nothing, as OpenVINO writes it.

    Constraints:
        C1: activations names a function for each of f and g: relu, sigmoid or tanh; further ones are ignored.
        C2: hidden_size is that of the states.
        C3: W and R have 3 * hidden_size rows, B has 3 * hidden_size elements, 4 * hidden_size with linear_before_reset.

    Source: sequence/gru-cell-3.rst

    >>> op(np.zeros((1, 2)), np.array([[2.0]]), np.zeros((3, 2)), np.zeros((3, 1)), hidden_size=1).tolist()
    [[1.0]]
    """
    rows = 3 * hidden_size
    step = gru(R, B[rows:] if B is not None else None, activations, clip, linear_before_reset)
    inputs = projected(X, W, B[:rows] if B is not None else None)
    return step(inputs, [widened(initial_hidden_state)])[0].astype(X.dtype, copy=False)


@gru_cell.shapes
def _(node: Node) -> None:
    check_cell(node, 2)
    check_rows(node, "C3", "3 * hidden_size", 3)
    check_rows(node, "C3", "biases", 4 if node.attrs["linear_before_reset"] else 3)


@op(
    "GRUSequence-5",
    types={"T1": FLOAT, "T2": INTEGER},
    lenient_types={"T2": FLOAT},
    inputs=[
        Input("X", "T1", "[batch_size, seq_length, input_size]"),
        Input("initial_hidden_state", "T1", "[batch_size, num_directions, hidden_size]"),
        Input("sequence_lengths", "T2", "[batch_size]"),
        Input("W", "T1", "[num_directions, 3 * hidden_size, input_size]"),
        Input("R", "T1", "[num_directions, 3 * hidden_size, hidden_size]"),
        Input("B", "T1", "[num_directions, biases]"),
    ],
    outputs=[
        Output("Y", "T1", "[batch_size, num_directions, seq_length, hidden_size]"),
        Output("Ho", "T1", "[batch_size, num_directions, hidden_size]"),
    ],
    attrs=[*cell_attrs("sigmoid", "tanh", demanded=True), DIRECTION, Attr("linear_before_reset", BOOL, False)],
    traits=[accumulating(3)],
)
def gru_sequence(
    X: Array,
    initial_hidden_state: Array,
    sequence_lengths: Array,
    W: Array,
    R: Array,
    B: Array,
    *,
    hidden_size: int,
    activations: Sequence[str],
    activations_alpha: Sequence[float],
    activations_beta: Sequence[float],
    clip: float,
    direction: str,
    linear_before_reset: bool,
) -> Any:
    """A GRUCell for each time step, forward, in reverse or both ways. Ho is the state after the last step.

    A sequence has its own length: in reverse it begins there, and Y is 0 behind it. Ho of an empty sequence is 0.

    Constraints:
        C1: activations names a function for each of f and g: relu, sigmoid or tanh; further ones are ignored.
        C2: hidden_size is that of the states.
        C3: num_directions is 2 for the direction bidirectional, else 1.
        C4: sequence_lengths lie in [0, seq_length].
        C5: W and R have 3 * hidden_size rows, B has 3 * hidden_size elements, 4 * hidden_size with linear_before_reset.

    Deviation: where sizes are unknown before the run, OpenVINO's CPU plugin may ignore sequence_lengths.

    Source: sequence/gru-sequence-5.rst

    >>> one, zeros = np.ones((1, 1, 1)), np.zeros((1, 3, 1))
    >>> y, h = op(np.zeros((1, 3, 1)), one, np.array([2]), zeros, zeros, zeros[0].T, hidden_size=1, direction="forward")
    >>> y.ravel().tolist(), h.ravel().tolist()
    ([0.5, 0.25, 0.0], [0.25])
    """
    rows = 3 * hidden_size
    step = gru(R, B[:, None, rows:] if linear_before_reset else None, activations, clip, linear_before_reset)
    outputs = unrolled(step, projected(X, W, B[:, :rows]), [initial_hidden_state], sequence_lengths, direction)
    return tuple(output.astype(X.dtype, copy=False) for output in outputs)


@gru_sequence.shapes
def _(node: Node) -> None:
    check_sequence(node, 2)
    check_rows(node, "C5", "3 * hidden_size", 3)
    check_rows(node, "C5", "biases", 4 if node.attrs["linear_before_reset"] else 3)


@op(
    "LSTMCell-1",
    types={"T": FLOAT, "T_P": FLOAT},
    inputs=[
        Input("X", "T", "[batch_size, input_size]"),
        Input("initial_hidden_state", "T", "[batch_size, hidden_size]"),
        Input("initial_cell_state", "T", "[batch_size, hidden_size]"),
        Input("W", "T", "[4 * hidden_size, input_size]"),
        Input("R", "T", "[4 * hidden_size, hidden_size]"),
        Input("B", "T", "[4 * hidden_size]", optional=True),
        Input("P", "T_P", "[3 * hidden_size]", optional=True),
    ],
    outputs=[
        Output("Ho", "T", "[batch_size, hidden_size]"),
        Output("Co", "T", "[batch_size, hidden_size]"),
    ],
    attrs=[
        *cell_attrs("sigmoid", "tanh", "tanh"),
        Attr("input_forget", BOOL, False),
        Attr("weights_format", choice("fico", "icof", "ifco", "ifoc", "iofc"), "fico"),
    ],
    traits=[accumulating(3)],
)
def lstm_cell_1(
    X: Array,
    initial_hidden_state: Array,
    initial_cell_state: Array,
    W: Array,
    R: Array,
    B: Array | None = None,
    P: Array | None = None,
    *,
    hidden_size: int,
    activations: Sequence[str],
    activations_alpha: Sequence[float],
    activations_beta: Sequence[float],
    clip: float,
    input_forget: bool,
    weights_format: str,
) -> Any:
    """One step of an LSTM, as LSTMCell-4.

    Constraints:
        C1: activations names a function for each of f, g and h: relu, sigmoid or tanh; further ones are ignored.
        C2: hidden_size is that of the states.
        C3: W, R and B have 4 * hidden_size rows, and P has 3 * hidden_size.
        C4: P is zeros.

    Deviation: the page lacks two attributes that OpenVINO writes. With input_forget, i is 1 - f (its CPU plugin ignores
    that). Whatever weights_format says, gates stand in the order fico, which is that of the page: so does OpenVINO,
    which writes ifco where a file has no weights_format. The page lacks P, too, the weights of peepholes from the cell
    state to the gates: OpenVINO has this input, and computes without it, whatever it is.

    Source: sequence/lstm-cell-1.rst

    >>> x, one, weights = np.zeros((1, 1)), np.ones((1, 1)), np.zeros((4, 1))
    >>> h, c = op(x, one, 2 * one, weights, weights, hidden_size=1)
    >>> h.round(4).tolist(), c.tolist()
    ([[0.3808]], [[1.0]])
    """
    step = lstm(R, activations, clip, input_forget)
    states = step(projected(X, W, B), [widened(initial_hidden_state), widened(initial_cell_state)])
    return tuple(state.astype(X.dtype, copy=False) for state in states)


@lstm_cell_1.shapes
def _(node: Node) -> None:
    check_cell(node, 3)
    check_rows(node, "C3", "4 * hidden_size", 4)
    check_rows(node, "C3", "3 * hidden_size", 3)
    peepholes = node.value("P")
    if peepholes is not None and peepholes.any():
        place = int(peepholes.astype(bool).argmax())
        message = f"`P[{place}]` is {peepholes[place]}, expected zeros: the gates do not read the cell state"
        node.fail("C4", message, "P")


@op(
    "LSTMCell-4",
    of=lstm_cell_1,
    types={"T": FLOAT},
    inputs=lstm_cell_1.inputs[:-1],
    attrs=cell_attrs("sigmoid", "tanh", "tanh"),
)
def lstm_cell(
    X: Array,
    initial_hidden_state: Array,
    initial_cell_state: Array,
    W: Array,
    R: Array,
    B: Array | None = None,
    *,
    hidden_size: int,
    activations: Sequence[str],
    activations_alpha: Sequence[float],
    activations_beta: Sequence[float],
    clip: float,
) -> Any:
    """One step of an LSTM, whose gates f, i, c and o stand in this order in W, R and B.

    f = f(X Wf + H Rf + Bf), i and o likewise, c = g(X Wc + H Rc + Bc), Co = f C + i c, Ho = o h(Co). Each argument of f
    and g is clipped to [-clip, clip]; a clip of 0 clips nothing, as OpenVINO writes it.

    Constraints:
        C1: activations names a function for each of f, g and h: relu, sigmoid or tanh; further ones are ignored.
        C2: hidden_size is that of the states.
        C3: W, R and B have 4 * hidden_size rows.

    Source: sequence/lstm-cell-1.rst

    >>> x, one, weights = np.zeros((1, 1)), np.ones((1, 1)), np.zeros((4, 1))
    >>> h, c = op(x, one, 2 * one, weights, weights, hidden_size=1)
    >>> h.round(4).tolist(), c.tolist()
    ([[0.3808]], [[1.0]])
    """
    step = lstm(R, activations, clip)
    states = step(projected(X, W, B), [widened(initial_hidden_state), widened(initial_cell_state)])
    return tuple(state.astype(X.dtype, copy=False) for state in states)


@lstm_cell.shapes
def _(node: Node) -> None:
    check_cell(node, 3)
    check_rows(node, "C3", "4 * hidden_size", 4)


@op(
    "LSTMSequence-5",
    types={"T1": FLOAT, "T2": INTEGER},
    lenient_types={"T2": FLOAT},
    inputs=[
        Input("X", "T1", "[batch_size, seq_length, input_size]"),
        Input("initial_hidden_state", "T1", "[batch_size, num_directions, hidden_size]"),
        Input("initial_cell_state", "T1", "[batch_size, num_directions, hidden_size]"),
        Input("sequence_lengths", "T2", "[batch_size]"),
        Input("W", "T1", "[num_directions, 4 * hidden_size, input_size]"),
        Input("R", "T1", "[num_directions, 4 * hidden_size, hidden_size]"),
        Input("B", "T1", "[num_directions, 4 * hidden_size]"),
    ],
    outputs=[
        Output("Y", "T1", "[batch_size, num_directions, seq_length, hidden_size]"),
        Output("Ho", "T1", "[batch_size, num_directions, hidden_size]"),
        Output("Co", "T1", "[batch_size, num_directions, hidden_size]"),
    ],
    attrs=[*cell_attrs("sigmoid", "tanh", "tanh", demanded=True), DIRECTION],
    traits=[accumulating(4)],
)
def lstm_sequence(
    X: Array,
    initial_hidden_state: Array,
    initial_cell_state: Array,
    sequence_lengths: Array,
    W: Array,
    R: Array,
    B: Array,
    *,
    hidden_size: int,
    activations: Sequence[str],
    activations_alpha: Sequence[float],
    activations_beta: Sequence[float],
    clip: float,
    direction: str,
) -> Any:
    """An LSTMCell for each time step, forward, in reverse or both ways. Ho and Co are the states after the last step.

    A sequence has its own length: in reverse it begins there, and Y is 0 behind it. Ho and Co of an empty one are 0.

    Constraints:
        C1: activations names a function for each of f, g and h: relu, sigmoid or tanh; further ones are ignored.
        C2: hidden_size is that of the states.
        C3: num_directions is 2 for the direction bidirectional, else 1.
        C4: sequence_lengths lie in [0, seq_length].
        C5: W, R and B have 4 * hidden_size rows.

    Deviation: where sizes are unknown before the run, OpenVINO's CPU plugin may ignore sequence_lengths.

    Source: sequence/lstm-sequence-5.rst

    >>> one, zeros, lengths = np.ones((1, 1, 1)), np.zeros((1, 4, 1)), np.array([2])
    >>> attrs = {"hidden_size": 1, "direction": "forward", "activations": ("sigmoid", "tanh", "relu")}
    >>> y, h, c = op(np.zeros((1, 3, 1)), one, 4 * one, lengths, zeros, zeros, zeros[0].T, **attrs)
    >>> y.ravel().tolist(), h.ravel().tolist(), c.ravel().tolist()
    ([1.0, 0.5, 0.0], [0.5], [1.0])
    """
    states = [initial_hidden_state, initial_cell_state]
    outputs = unrolled(lstm(R, activations, clip), projected(X, W, B), states, sequence_lengths, direction)
    return tuple(output.astype(X.dtype, copy=False) for output in outputs)


@lstm_sequence.shapes
def _(node: Node) -> None:
    check_sequence(node, 3)
    check_rows(node, "C5", "4 * hidden_size", 4)


@op(
    "OneHot-1",
    types={"T1": INDEX, "T_DEPTH": INDEX, "T2": ANY},
    lenient_types={"T_DEPTH": INTEGER},
    inputs=[
        Input("indices", "T1", "[*indices]"),
        Input("depth", "T_DEPTH", "[]"),
        Input("on_value", "T2", "[]"),
        Input("off_value", "T2", "[]"),
    ],
    outputs=[Output("output", "T2", "[*output]")],
    attrs=[Attr("axis", INT)],
    traits=[Doubting(positions_outside)],
)
def one_hot_1(indices: Array, depth: Array, on_value: Array, off_value: Array, *, axis: int) -> Any:
    """Insert an axis where the element at the index has on_value and the others off_value.

    An index outside [0, depth) gives off_value throughout; the page leaves negative ones undefined.

    Constraints:
        C1: axis lies in [-r - 1, r], r the rank of indices.
        C2: depth is positive.

    Deviation: indices and depth may be of different types, as OpenVINO has it.

    Source: sequence/one-hot-1.rst

    >>> op(np.array([0, 3, 1, 2]), np.array(3), np.array(1), np.array(2), axis=-1).tolist()
    [[1, 2, 2], [2, 2, 2], [2, 1, 2], [2, 2, 1]]
    """
    return _one_hot(indices, int(depth), on_value, off_value, axis)


@one_hot_1.shapes
def _(node: Node) -> Shapes:
    depth = node.size("depth")
    node.require("C2", depth >= 1, f"`depth` is {depth}, expected a positive number", about=["depth"])
    if isinstance(depth, Dim):
        depth = depth.within(1)
    indices = node.shape("indices")
    axis = node.axis("C1", node.attrs["axis"], len(indices) + 1)
    return {"output": (*indices[:axis], depth, *indices[axis:])}


@op(
    "OneHot-16",
    of=one_hot_1,
    attrs=[
        Attr("axis", INT),
        Attr(
            "negative_indices_mode",
            choice("ignore_negative", "ignore-negative", "normalize"),
            default="ignore_negative",
        ),
    ],
)
def one_hot(
    indices: Array, depth: Array, on_value: Array, off_value: Array, *, axis: int, negative_indices_mode: str
) -> Any:
    """Insert an axis where the element at the index has on_value and the others off_value.

    With `normalize` a negative index counts from the end; one outside, or any other negative one, gives off_value
    throughout. The page writes `ignore-negative`, OpenVINO `ignore_negative`.

    Constraints:
        C1: axis lies in [-r - 1, r], r the rank of indices.
        C2: depth is positive.

    Deviation: indices and depth may be of different types, as OpenVINO has it.

    Source: sequence/one-hot-16.rst

    >>> attrs = {"axis": -1, "negative_indices_mode": "normalize"}
    >>> op(np.array([0, -5, -2, 2]), np.array(3), np.array(1), np.array(2), **attrs).tolist()
    [[1, 2, 2], [2, 2, 2], [2, 1, 2], [2, 2, 1]]
    """
    size = int(depth)
    if negative_indices_mode == "normalize":
        indices = np.where(indices < 0, indices.astype(np.int64) + size, indices)
    return _one_hot(indices, size, on_value, off_value, axis)


one_hot.lowers("OneHot-1", negative_indices_mode=("ignore_negative", "ignore-negative"))


def _one_hot(indices: Array, depth: int, on_value: Array, off_value: Array, axis: int) -> Any:
    axis %= indices.ndim + 1
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])
    result: Array = np.full(shape, off_value[()], np.result_type(on_value.dtype, off_value.dtype))
    inner = math.prod(shape[axis + 1 :])
    found = indices.reshape(-1, inner).astype(np.int64) if inner else indices.reshape(0, 0)
    rows, columns = np.nonzero((found >= 0) & (found < depth))
    result.reshape(-1)[(rows * depth + found[rows, columns]) * inner + columns] = on_value[()]
    return result


@op(
    "RNNCell-3",
    types={"T": FLOAT},
    inputs=[
        Input("X", "T", "[batch_size, input_size]"),
        Input("H", "T", "[batch_size, hidden_size]"),
        Input("W", "T", "[hidden_size, input_size]"),
        Input("R", "T", "[hidden_size, hidden_size]"),
        Input("B", "T", "[hidden_size]"),
    ],
    outputs=[Output("Ho", "T", "[batch_size, hidden_size]")],
    attrs=cell_attrs("tanh"),
    opsets=frozenset({1, *range(3, 17)}),
    extension_versions=("experimental", "extension"),
    traits=[accumulating(2)],
)
def rnn_cell(
    X: Array,
    H: Array,
    W: Array,
    R: Array,
    B: Array,
    *,
    hidden_size: int,
    activations: Sequence[str],
    activations_alpha: Sequence[float],
    activations_beta: Sequence[float],
    clip: float,
) -> Any:
    """One step of a recurrent network: Ho = f(X W + H R + B), the argument of f clipped to [-clip, clip].

    A clip of 0 clips nothing, as OpenVINO writes it.

    Constraints:
        C1: activations names the function f: relu, sigmoid or tanh; further ones are ignored.
        C2: hidden_size is that of the states.

    Source: sequence/rnn-cell-3.rst

    >>> one = np.ones((1, 1))
    >>> op(2 * one, 3 * one, one, one, -one[0], hidden_size=1, activations=("relu",)).tolist()
    [[4.0]]
    """
    step = rnn(R, activations, clip)
    return step(projected(X, W, B), [widened(H)])[0].astype(X.dtype, copy=False)


@rnn_cell.shapes
def _(node: Node) -> None:
    check_cell(node, 1)


@op(
    "RNNSequence-5",
    types={"T1": FLOAT, "T2": INTEGER},
    lenient_types={"T2": FLOAT},
    inputs=[
        Input("X", "T1", "[batch_size, seq_length, input_size]"),
        Input("H", "T1", "[batch_size, num_directions, hidden_size]"),
        Input("sequence_lengths", "T2", "[batch_size]"),
        Input("W", "T1", "[num_directions, hidden_size, input_size]"),
        Input("R", "T1", "[num_directions, hidden_size, hidden_size]"),
        Input("B", "T1", "[num_directions, hidden_size]"),
    ],
    outputs=[
        Output("Y", "T1", "[batch_size, num_directions, seq_length, hidden_size]"),
        Output("Ho", "T1", "[batch_size, num_directions, hidden_size]"),
    ],
    attrs=[*cell_attrs("tanh", demanded=True), DIRECTION],
    traits=[accumulating(3)],
)
def rnn_sequence(
    X: Array,
    H: Array,
    sequence_lengths: Array,
    W: Array,
    R: Array,
    B: Array,
    *,
    hidden_size: int,
    activations: Sequence[str],
    activations_alpha: Sequence[float],
    activations_beta: Sequence[float],
    clip: float,
    direction: str,
) -> Any:
    """An RNNCell for each time step, forward, in reverse or both ways. Ho is the state after the last step.

    A sequence has its own length: in reverse it begins there, and Y is 0 behind it. Ho of an empty sequence is 0.

    Constraints:
        C1: activations names the function f: relu, sigmoid or tanh; further ones are ignored.
        C2: hidden_size is that of the states.
        C3: num_directions is 2 for the direction bidirectional, else 1.
        C4: sequence_lengths lie in [0, seq_length].

    Deviation: where sizes are unknown before the run, OpenVINO's CPU plugin may ignore sequence_lengths.

    Source: sequence/rnn-sequence-5.rst

    >>> x, one = np.array([[[1.0], [2.0], [4.0]]]), np.ones((1, 1, 1))
    >>> attrs = {"hidden_size": 1, "activations": ("relu",), "direction": "reverse"}
    >>> y, h = op(x, 0 * one, np.array([2]), one, one, 0 * one[0], **attrs)
    >>> y.ravel().tolist(), h.ravel().tolist()
    ([3.0, 2.0, 0.0], [3.0])
    """
    outputs = unrolled(rnn(R, activations, clip), projected(X, W, B), [H], sequence_lengths, direction)
    return tuple(output.astype(X.dtype, copy=False) for output in outputs)


@rnn_sequence.shapes
def _(node: Node) -> None:
    check_sequence(node, 1)


def _operations(shapes: Sequence[Shape], attrs: Mapping[str, Any], result: Shape) -> Size:
    query, (*_, keys, _) = shapes[:2]
    return 2 * (product(query) + product(result)) * keys


@op(
    "ScaledDotProductAttention-13",
    types={"T": FLOAT, "T_MASK": FLOAT | {"boolean"}},
    inputs=[
        Input("query", "T", "[N, *query_batch, L, E]"),
        Input("key", "T", "[N_key, *key_batch, S, E]"),
        Input("value", "T", "[N_value, *value_batch, S, Ev]"),
        Input("attention_mask", "T_MASK", "...", optional=True),
        Input("scale", "T", "[] | [1]", optional=True),
        Input("sink", "T", "[*sink_rows, 1]", optional=True),
    ],
    outputs=[Output("result", "T", "[*batch, L, Ev]")],
    attrs=[Attr("causal", BOOL, assumed=False)],
    traits=[Products(_operations), Attending(sink=5, causal="causal")],
)
def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    attention_mask: Array | None = None,
    scale: Array | None = None,
    sink: Array | None = None,
    *,
    causal: bool,
) -> Any:
    """Average the values with the weights softmax(query key * scale + mask); scale is 1 / sqrt(E) unless given.

    A boolean mask says what to attend to, any other is added; causal stands in its place and lets row i see the keys up
    to i. A row that a boolean mask lets see no key is 0. The sink is one more score in each row, which takes its share
    of the weight and has no value. 16-bit floats are computed in f32 and rounded once.

    Constraints:
        C1: the dimensions before the last two of query, key and value fit under numpy's broadcasting.
        C2: attention_mask is boolean or of the type of query.
        C3: attention_mask is the scalar 0 or has a rank of 2 or more.
        C4: attention_mask is [..., L or 1, S], with leading dimensions that broadcast to the others.
        C5: sink has the rank of query and broadcasts to the scores' [..., L, 1].

    With causal, attention_mask is ignored, whatever it is.

    Deviation: the page asks for rank 3 of attention_mask and knows no sink; OpenVINO has both as here. By the page a
    row that sees no key is NaN, which would spread from the padding of a batch to all of it; models are trained with 0
    there, which is what PyTorch gives, and what converters put in the place of such a NaN.

    Source: sequence/scaled-dot-product-attention.rst

    >>> query, key, value = np.zeros((1, 2, 4)), np.ones((1, 2, 4)), np.array([[[1.0], [3.0]]])
    >>> op(query, key, value, causal=True).tolist()
    [[[1.0], [2.0]]]
    """
    size, keys = query.shape[-1], key.shape[-2]
    factor = float(scale.item()) if scale is not None else max(size, 1) ** -0.5
    scores = np.matmul(widened(query) * factor, widened(key).swapaxes(-1, -2))
    if causal:
        hidden = np.arange(keys) > np.arange(query.shape[-2])[:, None]
        np.copyto(scores, -np.inf, where=hidden)
    elif attention_mask is not None and attention_mask.ndim:
        mask = widened(attention_mask)
        if mask.dtype == bool:
            mask = np.where(mask, scores.dtype.type(0), np.finfo(scores.dtype).min)
        fits = np.broadcast_shapes(scores.shape, mask.shape) == scores.shape
        scores = np.add(scores, mask, out=scores if fits else None)
    peak = scores.max(-1, keepdims=True, initial=-np.inf)
    if sink is not None:
        peak = np.maximum(peak, widened(sink))
        scores = scores - peak
    else:
        scores -= peak
    np.exp(scores, out=scores)
    total = scores.sum(-1, keepdims=True)
    if sink is not None:
        total += np.exp(widened(sink) - peak)
    result = np.matmul(scores, widened(value))
    if keys:
        result /= total
    if not causal and attention_mask is not None and attention_mask.ndim and attention_mask.dtype == bool:
        np.copyto(result, 0, where=~attention_mask.any(-1, keepdims=True))
    return result.astype(query.dtype, copy=False)


@scaled_dot_product_attention.shapes
def _(node: Node) -> Shapes:
    names = ("query", "key", "value")
    leads = {name: shape[:-2] for name in names if (shape := node.inputs[name].shape) is not None}
    batch = broadcast_shapes(*leads.values())
    if batch is None:
        shapes = ", ".join(f"`{name}` {shape_text(shape)}" for name, shape in leads.items())
        node.fail("C1", f"the batch dimensions do not broadcast: {shapes}", about=[*leads])
    rows: Shape = (*batch, node.dims.get("L", fresh()))
    if node.inputs["attention_mask"] is not None and not node.attrs["causal"]:
        rows = _check_mask(node, (*rows, node.dims.get("S", fresh())))
    if len(leads) < len(names):
        return {}
    if node.inputs["sink"] is not None:
        sink, peaks = node.shape("sink"), (*rows, 1)
        if len(sink) != len(node.shape("query")) or not _broadcasts_to(sink, peaks):
            message = f"`sink` is {shape_text(sink)}, which does not broadcast to {shape_text(peaks)}"
            node.fail("C5", message, about=["sink"])
    return {"batch": rows[:-1], "L": rows[-1]}


def _check_mask(node: Node, scores: Shape) -> Shape:
    """The dimensions of scores but for the last, as far as they are known with the mask, after checking it."""
    mask, kind = node.inputs["attention_mask"], node.types.get("T")
    if mask.type not in (kind, "boolean", "dynamic") and kind:
        node.fail("C2", f"`attention_mask` is {mask.type}, expected boolean or {kind}", about=["attention_mask"])
    shape = node.shape("attention_mask")
    number = node.numbers("attention_mask") if not shape else None
    if len(shape) == 1 or (number is not None and number != [0]):
        found = f"the scalar {node.value('attention_mask')}" if number is not None else "of rank 1"
        message = f"`attention_mask` is {found}, expected the scalar 0 or rank 2 or more"
        same = "" if len(shape) == 1 or node.inputs["sink"] is not None else "adds it to all scores"
        node.require("C3", False, message, about=["attention_mask"], lenient=same)
    *batch, length, keys = scores
    if not shape:
        return scores[:-1]
    leading = broadcast_shapes(batch, shape[:-2])
    rows = (shape[-2] == length) is not False or (shape[-2] == 1) is not False
    if leading is None or not rows or (shape[-1] == keys) is False:
        message = f"`attention_mask` is {shape_text(shape)}, which does not broadcast to {shape_text(scores)}"
        single = "repeats it for all keys" if leading is not None and rows and shape[-1] == 1 else ""
        node.require("C4", False, message, about=["attention_mask"], lenient=single)
        assert leading is not None
    return (*leading, meet(length, shape[-2]) if (shape[-2] == 1) is False else length)


@scaled_dot_product_attention.decomposes
def _(make: Callable[..., Any], tensors: Mapping[str, Tensor | None], attrs: Mapping[str, Any]) -> Any:
    """Products, what hides keys between them, and SoftMax, with the sink as another key that nothing is taken of."""
    query, key, mask = tensors["query"], tensors["key"], None if attrs["causal"] else tensors["attention_mask"]
    sink = tensors["sink"]
    if query is None or key is None or not query.shape or not key.shape or (mask is not None and mask.shape is None):
        raise ValueError("the ranks of its inputs are not known")
    dtype = dtype_of(query)
    least = np.array(-65504.0 if query.type == "f16" else -3e38, dtype)

    def size_of(value: Any, axes: Array) -> Any:
        return make("Gather-8", make("ShapeOf-3", value, output_type="i64"), axes, np.array(0))

    scale: Any = "scale"
    if tensors["scale"] is None and isinstance(query.shape[-1], int):
        scale = np.array(float(max(query.shape[-1], 1)) ** -0.5, dtype)
    elif tensors["scale"] is None:
        size = make("Convert-1", size_of("query", np.array(len(query.shape) - 1)), destination_type=query.type)
        scale = make("Power-1", size, np.array(-0.5, dtype))
    scores = make("MatMul-1", make("Multiply-1", "query", scale), "key", transpose_b=True)
    hiding = mask is not None and mask.type == "boolean" and mask.shape
    if attrs["causal"]:
        rows, keys = (
            make("Range-4", np.array(0), size_of(name, np.array(len(shape) - 2)), np.array(1), output_type="i64")
            for name, shape in (("query", query.shape), ("key", key.shape))
        )
        scores = make("Select-1", make("Greater-1", keys, make("Unsqueeze-1", rows, np.array([1]))), least, scores)
    elif hiding:
        scores = make("Select-1", "attention_mask", scores, least)
    elif mask is not None and mask.shape:
        scores = make("Add-1", scores, "attention_mask")
    if sink is None:
        shares = make("SoftMax-8", scores, axis=-1)
    else:
        others = size_of(scores, np.arange(len(query.shape) - 1))
        last = make("Broadcast-3", "sink", make("Concat-1", others, np.array([1]), axis=0))
        shares = make("SoftMax-8", make("Concat-1", scores, last, axis=-1), axis=-1)
        shares = make("Slice-8", shares, np.array([0]), np.array([-1]), np.array([1]), np.array([-1]))
    result = make("MatMul-1", shares, "value")
    if not hiding:
        return result
    seen = make("ReduceLogicalOr-1", "attention_mask", np.array([-1]), keep_dims=True)
    return make("Multiply-1", result, make("Convert-1", seen, destination_type=query.type))


def _broadcasts_to(shape: Sequence[Any], target: Sequence[Any]) -> bool:
    return len(shape) <= len(target) and all(
        (a == b) is not False or (a == 1) is not False for a, b in zip(shape[::-1], target[::-1], strict=False)
    )
