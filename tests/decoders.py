"""A small language model for tests, and the tokens that it must give, computed anew for every one without a cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from ir_builder import Model

VOCABULARY, WIDTH, POSITIONS = 11, 6, 40

_random = np.random.default_rng(3)
TABLE = _random.normal(0, 1, (VOCABULARY, WIDTH)).astype(np.float32)
PLACES = _random.normal(0, 1, (POSITIONS, WIDTH)).astype(np.float32)
QUERY, KEY, VALUE = _random.normal(0, 1, (3, WIDTH, WIDTH)).astype(np.float32)
HEAD = _random.normal(0, 1, (VOCABULARY, WIDTH)).astype(np.float32)

F32 = "f32"
ADD = {"auto_broadcast": "numpy"}
PLAIN = {"transpose_a": "false", "transpose_b": "false"}
TRANSPOSED = {"transpose_a": "false", "transpose_b": "true"}


def decoder(
    folder: Path,
    explicit: bool = False,
    past: str = "past_key_values.0.{}",
    present: str = "present.0.{}",
    prefix: str = "",
    ids: str = "i64",
) -> Path:
    """One layer of attention to all tokens so far, in variables or with an `explicit` cache named `past` and `present`.

    Inputs are `input_ids`, `attention_mask` (with `prefix`), `position_ids` and, without explicit caches, `beam_idx`;
    the output is `logits`.
    """
    m = Model()
    tokens = m.parameter(f"{prefix}input_ids", ids, ("?", "?"))
    mask = m.parameter(f"{prefix}attention_mask", "i64", ("?", "?"))
    positions = m.parameter("position_ids", "i64", ("?", "?"))
    zero = m.constant(np.int64(0))
    if explicit:
        caches = [m.parameter(past.format(part), F32, ("?", "?", WIDTH)) for part in ("key", "value")]
    else:
        beams = m.parameter("beam_idx", "i32", ("?",))
        (sizes,) = m.layer("ShapeOf", [tokens], [("i64", (2,))], "opset3", output_type="i64")
        (batch,) = m.layer(
            "Gather", [sizes, m.constant(np.int64([0])), zero], [("i64", (1,))], "opset8", batch_dims="0"
        )
        (empty,) = m.layer("Concat", [batch, m.constant(np.int64([0, WIDTH]))], [("i64", (3,))], axis="0")
        (nothing,) = m.layer(
            "Broadcast", [m.constant(np.float32(0)), empty], [(F32, (-1, -1, WIDTH))], "opset3", mode="numpy"
        )
        caches = []
        for part in ("key", "value"):
            variable = {"variable_id": part, "variable_type": "f32", "variable_shape": f"?,?,{WIDTH}"}
            (kept,) = m.layer("ReadValue", [nothing], [(F32, (-1, -1, WIDTH))], "opset6", **variable)
            caches += m.layer("Gather", [kept, beams, zero], [(F32, (-1, -1, WIDTH))], "opset8", batch_dims="0")

    def embedded(table: np.ndarray, indices):
        (rows,) = m.layer(
            "Gather", [m.constant(table), indices, zero], [(F32, (-1, -1, WIDTH))], "opset8", batch_dims="0"
        )
        return rows

    def product(a, b, dims: tuple, **attributes: str):
        (result,) = m.layer("MatMul", [a, b], [(F32, dims)], **attributes)
        return result

    (as_index,) = m.layer("Convert", [tokens], [("i32", (-1, -1))], destination_type="i32")
    (x,) = m.layer("Add", [embedded(TABLE, as_index), embedded(PLACES, positions)], [(F32, (-1, -1, WIDTH))], **ADD)
    whole = []
    for cache, part, matrix in zip(caches, ("key", "value"), (KEY, VALUE), strict=True):
        new = product(x, m.constant(matrix), (-1, -1, WIDTH), **PLAIN)
        (joined,) = m.layer("Concat", [cache, new], [(F32, (-1, -1, WIDTH))], axis="1", names=[present.format(part)])
        whole.append(joined)
        if not explicit:
            m.layer("Assign", [joined], [], "opset6", variable_id=part)
    keys, values = whole
    scores = product(product(x, m.constant(QUERY), (-1, -1, WIDTH), **PLAIN), keys, (-1, -1, -1), **TRANSPOSED)
    (visible,) = m.layer("Unsqueeze", [mask, m.constant(np.int64([1]))], [("i64", (-1, 1, -1))])
    (kept,) = m.layer("Convert", [visible], [("boolean", (-1, 1, -1))], destination_type="boolean")
    (masked,) = m.layer("Select", [kept, scores, m.constant(np.float32(-np.inf))], [(F32, (-1, -1, -1))], **ADD)
    (weights,) = m.layer("SoftMax", [masked], [(F32, (-1, -1, -1))], axis="2")
    (y,) = m.layer("Add", [x, product(weights, values, (-1, -1, WIDTH), **PLAIN)], [(F32, (-1, -1, WIDTH))], **ADD)
    (logits,) = m.layer("MatMul", [y, m.constant(HEAD)], [(F32, (-1, -1, VOCABULARY))], names=["logits"], **TRANSPOSED)
    m.result(logits)
    if explicit:
        for cache in whole:
            m.result(cache)
    return m.save(folder)


def expected(prompt: list[int], count: int) -> list[int]:
    """The next `count` tokens of the model."""
    text = list(prompt)
    for _ in range(count):
        x = [TABLE[token].astype(np.float64) + PLACES[place] for place, token in enumerate(text)]
        scores = np.array([(x[-1] @ QUERY) @ (other @ KEY) for other in x])
        weights = np.exp(scores - scores.max())
        mixed = sum(weight * (other @ VALUE) for weight, other in zip(weights / weights.sum(), x, strict=True))
        text.append(int(np.argmax([(x[-1] + mixed) @ row for row in HEAD])))
    return text[len(prompt) :]
