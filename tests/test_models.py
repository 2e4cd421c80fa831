"""Whole models, built with OpenVINO, saved and run: no diagnostics, and the outputs that OpenVINO computes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops
from openvino import opset15
from openvino.op import Constant, if_op, loop, tensor_iterator

import irrun
from conformance.harness import array_of, tensor_of

F32, F16, I32, I64 = ov.Type.f32, ov.Type.f16, ov.Type.i32, ov.Type.i64
TOLERANCE = 1e-3
"""The largest difference of two outputs, relative to the largest element of what OpenVINO computes."""


class Pair:
    """One model in irrun and in OpenVINO's CPU plugin at full precision, given the same inputs."""

    def __init__(self, model: ov.Model, folder: Path, compress: bool = False, version: int = 11, **hints: str) -> None:
        path = folder / "model.xml"
        ov.save_model(model, path, compress_to_fp16=compress)
        if version != 11:
            path.write_text(path.read_text().replace(' version="11"', f' version="{version}"', 1))
        report = irrun.validate(path)
        assert not report.diagnostics, "\n".join(map(str, report.diagnostics))
        self.path = path
        self.types = {layer.type for layer in irrun.read_model(path).graph.layers}
        self.ours = irrun.GraphExecutor(path)
        core = ov.Core()
        self.theirs = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32", **hints})
        self.request = self.theirs.create_infer_request()
        self.error = 0.0

    def run(self, *inputs: Any) -> dict[str, Any]:
        """What irrun computes, compared with what OpenVINO does."""
        arrays = [np.asarray(array) for array in inputs]
        outputs = self.ours.run(arrays)
        self.request.infer({number: tensor_of(array) for number, array in enumerate(arrays)})
        assert list(outputs) == [output.any_name for output in self.theirs.outputs]
        for number, (name, ours) in enumerate(outputs.items()):
            theirs = array_of(self.request.get_output_tensor(number))
            assert ours.shape == theirs.shape, name
            assert ours.dtype == theirs.dtype or ours.dtype.kind == theirs.dtype.kind == "U", name
            if ours.dtype.kind != "f":
                np.testing.assert_array_equal(ours, theirs, name)
            elif ours.size:
                a, b = ours.astype(np.float64), theirs.astype(np.float64)
                error = np.abs(a - b).max() / np.abs(b).max()
                self.error = max(self.error, error)
                assert error < TOLERANCE, f"{name}: {error}"
        return outputs

    def reset(self) -> None:
        self.ours.reset_state()
        self.request.reset_state()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20260401)


# Building


def parameter(name: str, shape: Sequence[int], type: ov.Type = F32) -> Any:
    node = ops.parameter(list(shape), type, name=name)
    node.output(0).set_names({name})
    return node


def model(parameters: Sequence[Any], sinks: Sequence[Any] = (), **outputs: Any) -> ov.Model:
    """A model whose outputs have the given names."""
    results = []
    for name, value in outputs.items():
        output = value if isinstance(value, ov.Output) else value.output(0)
        output.set_names({name})
        results.append(ops.result(output))
    return ov.Model(results, list(sinks), list(parameters), "model")


def floats(rng: np.random.Generator, *shape: int) -> Any:
    return rng.standard_normal(shape, np.float32)


def weights(rng: np.random.Generator, *shape: int) -> Any:
    """Random weights that keep the size of the activations, for [outputs, *inputs]."""
    return floats(rng, *shape) / np.float32(np.sqrt(np.prod(shape[1:])))


def ints(*values: int) -> Any:
    return ops.constant(np.array(values, np.int64))


def scalar(value: Any, dtype: Any = np.int64) -> Any:
    return ops.constant(np.array(value, dtype))


def linear(x: Any, weight: Any) -> Any:
    return ops.matmul(x, weight, False, True)


def size(x: Any, axis: int) -> Any:
    """One size of `x`, as a vector of one element."""
    return ops.gather(ops.shape_of(x), ints(axis), scalar(0))


def conv(rng: np.random.Generator, x: Any, outputs: int, stride: int = 1, kernel: int = 3) -> Any:
    inputs = x.output(0).partial_shape[1].get_length()
    kernels = weights(rng, outputs, inputs, kernel, kernel)
    pads = [kernel // 2, kernel // 2]
    y = ops.convolution(x, ops.constant(kernels), [stride, stride], pads, pads, [1, 1])
    return ops.add(y, ops.constant(floats(rng, 1, outputs, 1, 1) / 4))


# A decoder with a cache of keys and values


def cached(name: str, now: Any, ids: Any, beams: Any, heads: int, width: int) -> tuple[Any, Any]:
    """The keys or values of all steps so far, [batch, heads, step, width], and what stores them for the next run."""
    info = ov.op.util.VariableInfo()
    info.data_shape, info.data_type, info.variable_id = ov.PartialShape([-1, heads, -1, width]), F32, name
    variable = ov.op.util.Variable(info)
    shape = ops.concat([size(ids, 0), ints(heads, 0, width)], 0)
    past = ops.read_value(ops.broadcast(scalar(0, np.float32), shape), variable)
    steps = ops.concat([ops.gather(past, beams, scalar(0)), now], -2)
    return steps, ops.assign(steps, variable)


def rotated(x: Any, cos: Any, sin: Any) -> Any:
    low, high = ops.split(x, scalar(-1), 2).outputs()
    turned = ops.concat([ops.negative(high), low], -1)
    return ops.add(ops.multiply(x, cos), ops.multiply(turned, sin))


def rms_norm(rng: np.random.Generator, x: Any) -> Any:
    width = x.output(0).partial_shape[-1].get_length()
    mean = ops.reduce_mean(ops.power(x, scalar(2, np.float32)), ints(-1), True)
    scaled = ops.multiply(x, ops.divide(scalar(1, np.float32), ops.sqrt(ops.add(mean, scalar(1e-5, np.float32)))))
    return ops.multiply(scaled, ops.constant(1 + floats(rng, 1, 1, width) / 4))


def decoder(rng: np.random.Generator, heads: int = 2, width: int = 8, vocabulary: int = 40) -> ov.Model:
    """Two layers with rotary positions: attention by MatMul and SoftMax in the first, as one op in the second."""
    features = heads * width
    ids, mask, positions = (
        parameter(name, [-1, -1], I64) for name in ("input_ids", "attention_mask", "position_ids")
    )
    beams = parameter("beam_idx", [-1], I32)
    table = ops.constant(floats(rng, vocabulary, features))
    x = ops.gather(table, ids, scalar(0))

    frequencies = ops.constant(np.float32(1 / 10 ** (np.arange(width // 2) / 2))[None, None])
    angles = ops.multiply(ops.unsqueeze(ops.convert(positions, "f32"), ints(2)), frequencies)
    angles = ops.unsqueeze(ops.concat([angles, angles], -1), ints(1))
    cos, sin = ops.cos(angles), ops.sin(angles)

    total, new = (ops.squeeze(size(node, 1), ints(0)) for node in (mask, ids))
    keys = ops.range(scalar(0), total, scalar(1), "i64")
    queries = ops.unsqueeze(ops.range(ops.subtract(total, new), total, scalar(1), "i64"), ints(1))
    seen = ops.logical_and(ops.less_equal(keys, queries), ops.unsqueeze(ops.convert(mask, "boolean"), ints(1, 2)))
    bias = ops.select(seen, scalar(0, np.float32), scalar(-65504, np.float32))

    sinks = []
    for layer in range(2):
        normed = rms_norm(rng, x)
        q, k, v = (
            ops.transpose(
                ops.reshape(linear(normed, weights(rng, features, features)), ints(0, 0, heads, width), True),
                ints(0, 2, 1, 3),
            )
            for _ in range(3)
        )
        k, stored_k = cached(f"past.{layer}.key", rotated(k, cos, sin), ids, beams, heads, width)
        v, stored_v = cached(f"past.{layer}.value", v, ids, beams, heads, width)
        sinks += [stored_k, stored_v]
        q = rotated(q, cos, sin)
        if layer == 0:
            scores = ops.multiply(ops.matmul(q, k, False, True), scalar(width**-0.5, np.float32))
            attended = ops.matmul(ops.softmax(ops.add(scores, bias), -1), v, False, False)
        else:
            attended = ops.scaled_dot_product_attention(q, k, v, bias)
        joined = ops.reshape(ops.transpose(attended, ints(0, 2, 1, 3)), ints(0, 0, features), True)
        x = ops.add(x, linear(joined, weights(rng, features, features)))
        normed = rms_norm(rng, x)
        gate = ops.swish(linear(normed, weights(rng, 24, features)))
        up = ops.multiply(gate, linear(normed, weights(rng, 24, features)))
        x = ops.add(x, linear(up, weights(rng, features, 24)))
    return model([ids, mask, positions, beams], sinks, logits=linear(rms_norm(rng, x), table))


def test_a_decoder_whose_cache_grows(rng, tmp_path):
    pair = Pair(decoder(rng), tmp_path, KV_CACHE_PRECISION="f32")
    assert {"ReadValue", "Assign"} <= pair.types

    def step(batch: int, past: int, new: int, beams: Sequence[int], padding: int = 0) -> None:
        ids = rng.integers(0, 40, (batch, new))
        mask = np.ones((batch, past + new), np.int64)
        mask[0, :padding] = 0
        positions = np.maximum(np.cumsum(mask, 1) - 1, 0)[:, past:]
        logits = pair.run(ids, mask, positions, np.int32(beams))["logits"]
        assert logits.shape == (batch, new, 40)

    step(2, 0, 5, [0, 1], padding=2)
    step(2, 5, 1, [1, 0])
    step(2, 6, 1, [0, 0])
    step(2, 7, 3, [0, 1])
    step(3, 10, 1, [1, 1, 0])
    pair.reset()
    step(1, 0, 4, [0])
    step(1, 4, 1, [0])
