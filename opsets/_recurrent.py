"""Recurrent cells: attributes and checks, the steps from state to state, and the loop over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf, prod
from typing import Any

import numpy as np

from irrun.spec import (
    FLOAT_NUMBER,
    FLOATS,
    INT,
    STRINGS,
    Accumulating,
    Array,
    Attr,
    Node,
    Shape,
    Size,
    choice,
    product,
)

from ._precision import widened

Step = Callable[[Any, Sequence[Any]], tuple[Any, ...]]
"""The next states from the projected input of one time step and the states before it; the first is the output.

States have the shape [*directions, batch_size, hidden_size], projected inputs that with the gates side by side.
"""

DIRECTION = Attr("direction", choice("forward", "reverse", "bidirectional"), assumed="forward")


def accumulating(weights: int) -> Accumulating:
    """The products of each row of X, and of the state beside it, with W and R: inputs number `weights` and the next.

    Rows behind the end of a shorter sequence count as well.
    """

    def count(shapes: Sequence[Shape], attrs: Mapping[str, Any], result: Shape) -> Size:
        return 2 * product(shapes[0][:-1]) * (product(shapes[weights]) + product(shapes[weights + 1]))

    return Accumulating(count)


def cell_attrs(*activations: str, demanded: bool = False) -> tuple[Attr, ...]:
    """The attributes of every recurrent op; `activations` are the default functions, `demanded` as in `Attr`."""
    return (
        Attr("hidden_size", INT, least=1),
        Attr("activations", STRINGS, activations, demanded=demanded),
        Attr("activations_alpha", FLOATS, ()),
        Attr("activations_beta", FLOATS, ()),
        Attr("clip", FLOAT_NUMBER, inf, least=0, lenient=True),
    )


def check_cell(node: Node, functions: int) -> None:
    """Constraints C1 and C2 of every recurrent op, which has so many activation functions; binds hidden_size."""
    names = node.attrs["activations"]
    if len(names) < functions:
        node.fail("C1", f"`activations` has {len(names)} functions, expected {functions}", about=["activations"])
    more = f"reads the first {functions}" if functions > 1 else "reads the first one"
    message = f"`activations` has {len(names)} functions, expected {functions}"
    node.require("C1", len(names) == functions, message, about=["activations"], lenient=more)
    for name in names[:functions]:
        if name.lower() not in FUNCTIONS:
            node.fail(
                "C1", f"`activations` has `{name}`, expected one of {', '.join(FUNCTIONS)}", about=["activations"]
            )
    size, found = node.attrs["hidden_size"], node.dims.get("hidden_size")
    if found is not None:
        node.require(
            "C2",
            found == size,
            f"the attribute `hidden_size` is {size}, but the states have {found}",
            about=["hidden_size"],
        )
    node.dims["hidden_size"] = size


def check_rows(node: Node, label: str, symbol: str, factor: int) -> None:
    """Require the dimension `symbol` to be `factor` times hidden_size."""
    found, expected = node.dims.get(symbol), factor * node.attrs["hidden_size"]
    if found is not None:
        node.require(label, found == expected, f"`{symbol}` is {found}, expected {expected}")


def check_sequence(node: Node, functions: int) -> None:
    """Constraints C1 to C4 of every sequence op; binds hidden_size and num_directions."""
    check_cell(node, functions)
    direction, found = node.attrs["direction"], node.dims.get("num_directions")
    expected = 2 if direction == "bidirectional" else 1
    if found is not None:
        node.require(
            "C3", found == expected, f"`num_directions` is {found}, but `direction` is {direction}", about=["direction"]
        )
    node.dims["num_directions"] = expected
    if node.inputs["X"].rank is not None:
        node.within("C4", "sequence_lengths", 0, node.dims["seq_length"] + 1)


def projected(X: Array, W: Array, B: Array | None) -> Any:
    """The inputs of all time steps and directions times their weights, plus bias, as one product of two matrices.

    X is [*rows, input_size] and W [*directions, gates, input_size]; the result is [*rows, *directions, gates].
    """
    rows, columns = prod(X.shape[:-1]), prod(W.shape[:-1])
    result = widened(X).reshape(rows, X.shape[-1]) @ widened(W).reshape(columns, W.shape[-1]).T
    if B is not None:
        result += widened(B).ravel()
    return result.reshape(*X.shape[:-1], *W.shape[:-1])


def unrolled(step: Step, inputs: Any, states: Sequence[Array], lengths: Array, direction: str) -> tuple[Any, ...]:
    """All outputs [batch_size, num_directions, seq_length, hidden_size], then the last states.

    `inputs` are projected, [batch_size, seq_length, num_directions, gates], and overwritten. A sequence runs to its own
    length only, backward too; behind it outputs are 0. The states of an empty sequence are 0.
    """
    batch, steps, directions, _ = inputs.shape
    lengths = lengths.astype(np.int64)
    places = np.arange(steps)
    order = np.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)[..., None]
    if direction != "forward":
        inputs[:, :, -1] = np.take_along_axis(inputs[:, :, -1], order, 1)
    now: tuple[Any, ...] = tuple(widened(state).swapaxes(0, 1) for state in states)
    outputs = np.zeros((batch, directions, steps, states[0].shape[-1]), inputs.dtype)
    shortest = int(lengths.min(initial=steps))
    for time in range(int(lengths.max(initial=0))):
        following = step(inputs[:, time].swapaxes(0, 1), now)
        if time < shortest:
            now = following
            outputs[:, :, time] = now[0].swapaxes(0, 1)
            continue
        alive = (time < lengths)[:, None]
        now = tuple(np.where(alive, new, old) for new, old in zip(following, now, strict=True))
        outputs[:, :, time] = np.where(alive, now[0], 0).swapaxes(0, 1)
    if direction != "forward":
        outputs[:, -1] = np.take_along_axis(outputs[:, -1], order, 1)
    some = (lengths > 0)[:, None, None]
    return outputs, *(np.where(some, state.swapaxes(0, 1), 0) for state in now)


def rnn(R: Array, activations: Sequence[str], clip: float) -> Step:
    """H' = f(X W + H R + B)."""
    (f,) = _functions(activations, 1, clip)
    weights = _transposed(R)

    def step(inputs: Any, states: Sequence[Any]) -> tuple[Any, ...]:
        return (f(states[0] @ weights + inputs),)

    return step


def gru(R: Array, B: Array | None, activations: Sequence[str], clip: float, linear_before_reset: bool) -> Step:
    """Gates z, r, h: H' = (1 - z) h + z H. With linear_before_reset, `B` is the bias of the recurrent part of h."""
    f, g = _functions(activations, 2, clip)
    weights = _transposed(R)
    size = R.shape[-1]
    bias = 0 if B is None else widened(B)

    def step(inputs: Any, states: Sequence[Any]) -> tuple[Any, ...]:
        (state,) = states
        if linear_before_reset:
            gates = state @ weights
            recurrent = gates[..., 2 * size :] + bias
            gates = gates[..., : 2 * size]
        else:
            gates = state @ weights[..., : 2 * size]
        gates += inputs[..., : 2 * size]
        f(gates)
        update, reset = gates[..., :size], gates[..., size:]
        if linear_before_reset:
            recurrent *= reset
        else:
            recurrent = (reset * state) @ weights[..., 2 * size :]
        recurrent += inputs[..., 2 * size :]
        hidden = g(recurrent)
        hidden += update * (state - hidden)
        return (hidden,)

    return step


def lstm(R: Array, activations: Sequence[str], clip: float, coupled: bool = False) -> Step:
    """Gates f, i, c, o: C' = f C + i c, H' = o h(C'). With `coupled`, i is 1 - f."""
    f, g, _ = _functions(activations, 3, clip)
    h = FUNCTIONS[activations[2].lower()]  # of the cell state, which is not clipped
    weights = _transposed(R)
    size = R.shape[-1]

    def step(inputs: Any, states: Sequence[Any]) -> tuple[Any, ...]:
        state, cell = states
        gates = state @ weights
        gates += inputs
        forget, take, candidate, output = (gates[..., size * k : size * (k + 1)] for k in range(4))
        f(gates[..., : 2 * size])  # forget and take
        g(candidate)
        f(output)
        following = forget * cell
        following += (1 - forget if coupled else take) * candidate
        return output * h(following.copy()), following

    return step


def _transposed(R: Array) -> Any:
    """The recurrence weights as right factors; those of a sequence, used at every step, as BLAS likes them best."""
    weights = widened(R).swapaxes(-1, -2)
    return np.ascontiguousarray(weights) if R.ndim == 3 else weights


def _relu(x: Any) -> Any:
    return np.maximum(x, 0, out=x)


def _sigmoid(x: Any) -> Any:
    np.multiply(x, -1, out=x)  # np.negative is wrong here where x has a stride of 16 bytes (numpy 2.4.6)
    np.exp(x, out=x)
    x += 1
    return np.reciprocal(x, out=x)


def _tanh(x: Any) -> Any:
    return np.tanh(x, out=x)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {"relu": _relu, "sigmoid": _sigmoid, "tanh": _tanh}
"""Activation functions, which overwrite their argument; none of them has an alpha or a beta."""


def _functions(names: Sequence[str], count: int, clip: float) -> list[Callable[[Any], Any]]:
    functions = [FUNCTIONS[name.lower()] for name in names[:count]]
    return [partial(_clipped, f, clip) for f in functions] if 0 < clip < inf else functions


def _clipped(function: Callable[[Any], Any], clip: float, x: Any) -> Any:
    return function(np.clip(x, -clip, clip, out=x))
