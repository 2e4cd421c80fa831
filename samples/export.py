"""Write the samples: models built and exported by OpenVINO, their inputs, and the outputs to expect.

    pip install openvino numpy
    python samples/export.py

The three samples of single operations expect the numbers that the operation's page prints; the others expect what
OpenVINO computes on the CPU at f32.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset1, opset3, opset5, opset6, opset8, opset12, opset13, opset16

HERE = Path(__file__).parent
Sample = tuple[ov.Model, dict[str, Any], dict[str, Any] | None]
"""A model, its inputs by name, and the expected outputs where a page prints them."""


def input_(name: str, shape: list[int], dtype: Any = np.float32) -> Any:
    node = opset1.parameter(shape, dtype, name=name)
    node.output(0).get_tensor().set_names({name})
    return node


def result(output: Any, name: str) -> Any:
    output.get_tensor().set_names({name})
    return opset1.result(output)


def sparse_fill_empty_rows() -> Sample:
    values, shape = input_("values", [-1]), input_("dense_shape", [2], np.int32)
    indices, default = input_("indices", [-1, 2], np.int32), input_("default_value", [])
    op = opset16.sparse_fill_empty_rows(values, shape, indices, default)
    names = ("output_indices", "output_values", "empty_row_indicator")
    results = [result(op.output(number), name) for number, name in enumerate(names)]
    inputs = {
        "values": np.float32([1, 2, 3, 4]),
        "dense_shape": np.int32([5, 6]),
        "indices": np.int32([[0, 1], [0, 3], [2, 0], [3, 1]]),
        "default_value": np.float32(42),
    }
    expected = {
        "output_indices": np.int32([[0, 1], [0, 3], [1, 0], [2, 0], [3, 1], [4, 0]]),
        "output_values": np.float32([1, 2, 42, 3, 4, 42]),
        "empty_row_indicator": np.array([False, True, False, False, True]),
    }
    return ov.Model(results, [values, shape, indices, default], "sparse_fill_empty_rows"), inputs, expected


def embedding_segments_sum() -> Sample:
    table = np.float32([[-0.2, -0.6], [-0.1, -0.4], [-1.9, -1.8], [-1.0, 1.5], [0.8, -0.7]])
    indices, ids = input_("indices", [-1], np.int32), input_("segment_ids", [-1], np.int32)
    count, weights = input_("num_segments", [], np.int32), input_("per_sample_weights", [-1])
    op = opset3.embedding_segments_sum(opset1.constant(table), indices, ids, count, np.int32(0), weights)
    inputs = {
        "indices": np.int32([0, 2, 3, 4]),
        "segment_ids": np.int32([0, 0, 2, 2]),
        "num_segments": np.int32(3),
        "per_sample_weights": np.float32([0.5, 0.5, 0.5, 0.5]),
    }
    expected = {"segments": np.float32([[-1.05, -1.2], [-0.2, -0.6], [-0.1, 0.4]])}
    model = ov.Model([result(op.output(0), "segments")], [indices, ids, count, weights], "embedding_segments_sum")
    return model, inputs, expected


def scatter_elements_update() -> Sample:
    data, indices = input_("data", [4]), input_("indices", [6], np.int64)
    updates = input_("updates", [6])
    op = opset12.scatter_elements_update(data, indices, updates, np.int64([0]), "sum", True)
    inputs = {
        "data": np.float32([2, 3, 4, 6]),
        "indices": np.int64([1, 0, 0, -2, -1, 2]),
        "updates": np.float32([10, 20, 30, 40, 70, 60]),
    }
    model = ov.Model([result(op.output(0), "updated")], [data, indices, updates], "scatter_elements_update")
    return model, inputs, {"updated": np.float32([52, 13, 104, 76])}


def cnn() -> Sample:
    """Two convolutions, pooling, and a classifier over ten classes."""
    rng = np.random.default_rng(1)
    image = input_("image", [-1, 3, 16, 16])
    features = image
    for channels_in, channels_out in ((3, 8), (8, 16)):
        filters = rng.normal(0, (9 * channels_in) ** -0.5, (channels_out, channels_in, 3, 3)).astype(np.float32)
        features = opset1.convolution(features, filters, [1, 1], [1, 1], [1, 1], [1, 1])
        features = opset1.relu(opset1.add(features, rng.normal(0, 0.1, (1, channels_out, 1, 1)).astype(np.float32)))
        features = opset1.max_pool(features, [2, 2], [0, 0], [0, 0], [2, 2])
    pooled = opset1.reduce_mean(features, np.int64([2, 3]), False)
    logits = opset1.matmul(pooled, rng.normal(0, 0.25, (16, 10)).astype(np.float32), False, False)
    model = ov.Model([result(opset1.softmax(logits, 1).output(0), "probabilities")], [image], "cnn")
    return model, {"image": rng.random((2, 3, 16, 16), np.float32)}, None


def transformer_block() -> Sample:
    """Self-attention with four heads and a feed-forward part, each behind a normalization and added to its input."""
    rng = np.random.default_rng(2)
    width, heads = 32, 4

    def linear(x: Any, columns: int, rows: int = width) -> Any:
        return opset1.matmul(x, rng.normal(0, rows**-0.5, (rows, columns)).astype(np.float32), False, False)

    def normalized(x: Any) -> Any:
        return opset6.mvn(x, np.int64([-1]), True, 1e-5, "INSIDE_SQRT")

    def by_head(x: Any) -> Any:
        split = opset1.reshape(x, np.int64([0, 0, heads, width // heads]), True)
        return opset1.transpose(split, np.int64([0, 2, 1, 3]))

    tokens = input_("tokens", [-1, -1, width])
    norm = normalized(tokens)
    query, key, value = (by_head(linear(norm, width)) for _ in range(3))
    attended = opset13.scaled_dot_product_attention(query, key, value, causal=True)
    merged = opset1.reshape(opset1.transpose(attended, np.int64([0, 2, 1, 3])), np.int64([0, 0, width]), True)
    mixed = opset1.add(tokens, linear(merged, width))
    hidden = ov.opset7.gelu(linear(normalized(mixed), 4 * width), "tanh")
    block = opset1.add(mixed, linear(hidden, width, 4 * width))
    model = ov.Model([result(block.output(0), "block")], [tokens], "transformer_block")
    return model, {"tokens": rng.standard_normal((2, 7, width), np.float32)}, None


def stateful_loop() -> Sample:
    """A recurrence that runs `steps` times per call and remembers where it was."""
    step_in, hidden_in = opset1.parameter([1, 4], np.float32), opset1.parameter([1, 4], np.float32)
    weights = np.float32([[0.5, -0.2, 0.1, 0], [0.3, 0.4, 0, 0.2], [-0.1, 0.2, 0.6, 0.1], [0, -0.3, 0.2, 0.5]])
    hidden_out = opset1.tanh(opset1.add(opset1.matmul(hidden_in, weights, False, False), step_in))
    going_on = opset1.constant(np.array(True))
    body = ov.Model([hidden_out, going_on], [step_in, hidden_in], "body")

    x, steps = input_("x", [1, 4]), input_("steps", [], np.int32)
    start = opset6.read_value(opset1.constant(np.zeros((1, 4), np.float32)), "hidden", np.float32, [1, 4])
    loop = opset5.loop(steps, opset1.constant(np.array(True)))
    loop.set_function(body)
    loop.set_special_body_ports([-1, 1])
    loop.set_invariant_input(step_in, x.output(0))
    loop.set_merged_input(hidden_in, start.output(0), body.get_results()[0].input_value(0))
    last = loop.get_iter_value(body.get_results()[0].input_value(0), -1)
    history = loop.get_concatenated_slices(body.get_results()[0].input_value(0), 0, 1, 1, -1, 0)
    assign = opset6.assign(opset1.reshape(last, np.int64([1, 4]), False), "hidden")
    model = ov.Model([result(last, "hidden"), result(history, "history")], [assign], [x, steps], "stateful_loop")
    return model, {"x": np.float32([[0.1, -0.2, 0.3, 0.4]]), "steps": np.int32(3)}, None


def language_model() -> Sample:
    """A layer of attention with two heads over 16 tokens; keys and values of the text so far are kept in variables."""
    rng = np.random.default_rng(5)
    vocabulary, heads, size = 16, 2, 8
    ids, beams = input_("input_ids", [-1, -1], np.int64), input_("beam_idx", [-1], np.int32)
    mask, positions = input_("attention_mask", [-1, -1], np.int64), input_("position_ids", [-1, -1], np.int64)

    def table(rows: int) -> Any:
        return opset1.constant(rng.standard_normal((rows, heads * size), np.float32))

    def by_head(x: Any) -> Any:
        projected = opset1.matmul(x, table(heads * size), False, False)
        split = opset1.reshape(projected, np.int64([0, 0, heads, size]), True)
        return opset1.transpose(split, np.int64([0, 2, 1, 3]))

    tokens = opset8.gather(table(vocabulary), ids, np.int64(0))
    tokens = opset1.add(tokens, opset8.gather(table(64), positions, np.int64(0)))
    batch = opset8.gather(opset3.shape_of(ids), np.int64([0]), np.int64(0))
    nothing = opset3.broadcast(np.float32(0), opset1.concat([batch, np.int64([heads, 0, size])], 0))
    assigns, caches = [], []
    for name in ("key", "value"):
        before = opset6.read_value(nothing, name, np.float32, [-1, heads, -1, size])
        caches.append(opset1.concat([opset8.gather(before, beams, np.int64(0)), by_head(tokens)], 2))
        assigns.append(opset6.assign(caches[-1], name))
    visible = opset1.convert(opset1.unsqueeze(mask, np.int64([1, 2])), "boolean")
    attended = opset13.scaled_dot_product_attention(by_head(tokens), *caches, visible)
    merged = opset1.reshape(opset1.transpose(attended, np.int64([0, 2, 1, 3])), np.int64([0, 0, heads * size]), True)
    logits = opset1.matmul(opset1.add(tokens, merged), table(vocabulary), False, True)
    model = ov.Model([result(logits.output(0), "logits")], assigns, [ids, mask, positions, beams], "language_model")
    inputs = {"input_ids": np.int64([[3, 1, 4]]), "attention_mask": np.ones((1, 3), np.int64)}
    return model, inputs | {"position_ids": np.int64([[0, 1, 2]]), "beam_idx": np.int32([0])}, None


SAMPLES: dict[str, Callable[[], Sample]] = {
    "sparse-fill-empty-rows": sparse_fill_empty_rows,
    "embedding-segments-sum": embedding_segments_sum,
    "scatter-elements-update": scatter_elements_update,
    "cnn": cnn,
    "transformer-block": transformer_block,
    "stateful-loop": stateful_loop,
    "language-model": language_model,
}


def openvino_outputs(model: ov.Model, inputs: dict[str, Any]) -> dict[str, Any]:
    compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled.create_infer_request().infer({name: np.array(array) for name, array in inputs.items()})
    return {output.get_any_name(): results[output] for output in compiled.outputs}


def main() -> None:
    for name, build in SAMPLES.items():
        model, inputs, expected = build()
        folder = HERE / name
        folder.mkdir(exist_ok=True)
        ov.save_model(model, folder / "model.xml", compress_to_fp16=False)
        np.savez(folder / "inputs.npz", **inputs)
        np.savez(folder / "expected.npz", **(expected or openvino_outputs(model, inputs)))


if __name__ == "__main__":
    main()
