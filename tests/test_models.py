"""Whole models, built with OpenVINO, saved and run: no diagnostics, and the outputs that OpenVINO computes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from conformance.harness import array_of, tensor_of
from openvino import opset13 as ops
from openvino import opset15
from openvino.op import Constant, if_op, loop, tensor_iterator

import irrun

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
        self.types = {layer.type for layer in irrun.read_model(path).graph.layers}
        self.ours = irrun.GraphExecutor(path)
        core = ov.Core()
        self.theirs = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32", **hints})
        self.request = self.theirs.create_infer_request()

    def run(self, *inputs: Any) -> dict[str, Any]:
        """What irrun computes, compared with what OpenVINO does."""
        arrays = [np.asarray(array) for array in inputs]
        outputs = self.ours.run(arrays)
        self.request.infer({number: tensor_of(array) for number, array in enumerate(arrays)})
        assert len(outputs) == len(self.theirs.outputs)
        assert all(name in output.names for name, output in zip(outputs, self.theirs.outputs, strict=True))
        for number, (name, ours) in enumerate(outputs.items()):
            theirs = array_of(self.request.get_output_tensor(number))
            assert ours.shape == theirs.shape, name
            assert ours.dtype == theirs.dtype or ours.dtype.kind == theirs.dtype.kind == "U", name
            if ours.dtype.kind != "f":
                np.testing.assert_array_equal(ours, theirs, name)
            elif ours.size:
                a, b = ours.astype(np.float64), theirs.astype(np.float64)
                error = np.abs(a - b).max() / np.abs(b).max()
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
    ids, mask, positions = (parameter(name, [-1, -1], I64) for name in ("input_ids", "attention_mask", "position_ids"))
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


# Loops and branches


def true() -> Any:
    return ops.constant(np.array(True))


def generate(rng: np.random.Generator, x: Any, trips: Any, limit: Any) -> dict[str, Any]:
    """Feed rows through a layer until the largest element reaches `limit`, or `trips` times; keep what they were."""
    number, state, history = ops.parameter([], I64), ops.parameter([-1, 4], F32), ops.parameter([-1, -1, 4], F32)
    least = ops.parameter([], F32)
    step = ops.add(ops.tanh(linear(state, weights(rng, 4, 4))), ops.multiply(state, scalar(1.25, np.float32)))
    step = ops.add(step, ops.divide(ops.convert(number, "f32"), scalar(8, np.float32)))
    largest = ops.reduce_max(ops.abs(step), ints(0, 1), True)
    longer = ops.concat([history, ops.unsqueeze(state, ints(0))], 0)
    row = ops.unsqueeze(ops.reduce_mean(step, ints(1)), ints(0))
    go = ops.less(ops.squeeze(largest, ints(0, 1)), least)
    results = [ops.result(node) for node in (go, step, longer, row, largest)]
    node = loop(trips.output(0), true().output(0))
    node.set_function(ov.Model(results, [number, state, history, least]))
    node.set_special_body_ports([0, 0])
    node.set_merged_input(state, x.output(0), results[1].output(0))
    none = ops.broadcast(scalar(0, np.float32), ops.concat([ints(0), ops.shape_of(x)], 0))
    node.set_merged_input(history, none.output(0), results[2].output(0))
    node.set_invariant_input(least, limit.output(0))
    return {
        "last": node.get_iter_value(results[1].output(0), -1),
        "history": node.get_iter_value(results[2].output(0), -1),
        "means": node.get_concatenated_slices(results[3].output(0), 0, 1, 1, -1, 0),
        "peaks": node.get_concatenated_slices(results[4].output(0), 0, 1, 1, -1, 1),
    }


def test_a_loop_that_its_data_stop(rng, tmp_path):
    x, trips, limit = parameter("x", [-1, 4]), parameter("trips", [], I64), parameter("limit", [])
    pair = Pair(model([x, trips, limit], **generate(rng, x, trips, limit)), tmp_path)

    def rounds(rows: int, trips: int, limit: float) -> int:
        return len(pair.run(floats(rng, rows, 4), np.int64(trips), np.float32(limit))["history"])

    assert rounds(3, 4, 1e6) == 4
    assert rounds(3, 1000, 50) in range(5, 30)
    assert rounds(1, -1, 200) in range(5, 40)
    assert rounds(2, 9, 0) == 1


def lstm(rng: np.random.Generator, x: Any, hidden: int, stride: int) -> Any:
    """An LSTM over axis 1 of [batch, time, features], forwards or backwards; all states, and the last."""
    features = x.output(0).partial_shape[-1].get_length()
    batch = ops.concat([size(x, 0), ints(hidden)], 0)
    zeros = ops.broadcast(scalar(0, np.float32), batch)
    piece, h, c = (
        ops.parameter([-1, 1, features], F32),
        ops.parameter([-1, hidden], F32),
        ops.parameter([-1, hidden], F32),
    )
    tables = [ops.constant(a) for a in (weights(rng, 4 * hidden, features), weights(rng, 4 * hidden, hidden))]
    cell = ops.lstm_cell(ops.squeeze(piece, ints(1)), h, c, *tables, ops.constant(floats(rng, 4 * hidden)), hidden)
    results = [
        ops.result(cell.output(0)),
        ops.result(cell.output(1)),
        ops.result(ops.unsqueeze(cell.output(0), ints(1))),
    ]
    node = tensor_iterator()
    node.set_body(ov.Model(results, [piece, h, c]))
    start, end = (0, -1) if stride > 0 else (-1, 0)
    node.set_sliced_input(piece, x.output(0), start, stride, 1, end, 1)
    node.set_merged_input(h, zeros.output(0), results[0].output(0))
    node.set_merged_input(c, zeros.output(0), results[1].output(0))
    last = node.get_iter_value(results[1].output(0), -1)
    return node.get_concatenated_slices(results[2].output(0), start, stride, 1, end, 1), last


@pytest.mark.parametrize("shape", [(2, 7, 6), (-1, -1, 6)], ids=["sizes known", "sizes unknown"])
def test_an_lstm_over_time_in_both_directions(rng, tmp_path, shape):
    x = parameter("x", shape)
    forwards, last = lstm(rng, x, 5, 1)
    backwards, first = lstm(rng, x, 5, -1)
    both = ops.concat([forwards, backwards], 2)
    again, _ = lstm(rng, both, 3, -1)
    pair = Pair(model([x], states=both, again=again, last=last, first=first), tmp_path)
    assert "TensorIterator" in pair.types
    pair.run(floats(rng, 2, 7, 6))
    if shape[0] == -1:
        pair.run(floats(rng, 4, 1, 6))
        pair.run(floats(rng, 1, 12, 6))


def branches(condition: Any, inputs: Sequence[Any], *bodies: Any) -> list[Any]:
    """An If; each of the two `bodies` makes its results of parameters like the inputs."""
    node = if_op(condition.output(0))
    parameters = [[ops.parameter(x.output(0).partial_shape, x.output(0).element_type) for x in inputs] for _ in bodies]
    results = [[ops.result(value) for value in body(*own)] for body, own in zip(bodies, parameters, strict=True)]
    node.set_then_body(ov.Model(results[0], parameters[0]))
    node.set_else_body(ov.Model(results[1], parameters[1]))
    for x, *pair in zip(inputs, *parameters, strict=True):
        node.set_input(x.output(0), *pair)
    return [node.set_output(*pair) for pair in zip(*results, strict=True)]


def test_loops_in_branches(rng, tmp_path):
    x, trips, limit, deep = (
        parameter("x", [-1, 4]),
        parameter("trips", [], I64),
        parameter("limit", []),
        parameter("deep", [1], ov.Type.boolean),
    )

    def shallow(x: Any, trips: Any, limit: Any) -> list[Any]:
        states, last = lstm(rng, ops.unsqueeze(x, ints(0)), 4, -1)
        return [last, states]

    def looped(x: Any, trips: Any, limit: Any) -> list[Any]:
        values = generate(rng, x, trips, limit)
        return [values["last"], values["history"]]

    last, states = branches(deep, [x, trips, limit], looped, shallow)
    pair = Pair(model([x, trips, limit, deep], last=last, states=states), tmp_path)
    for deep in (True, False, True):
        pair.run(floats(rng, 3, 4), np.int64(5), np.float32(20), np.array([deep]))


def test_an_if_whose_branches_have_their_own_weights(rng, tmp_path):
    image = parameter("image", [-1, 3, 16, 16])
    features = ops.relu(conv(rng, image, 8))
    bright = ops.greater(ops.reduce_mean(image, ints(0, 1, 2, 3)), scalar(0, np.float32))

    def deep(x: Any) -> list[Any]:
        y = ops.relu(conv(rng, x, 12, stride=2))
        pooled = ops.reduce_mean(conv(rng, y, 6, stride=2), ints(2, 3))
        return [linear(pooled, weights(rng, 10, 6)), y]

    def flat(x: Any) -> list[Any]:
        pooled = ops.max_pool(x, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2]).output(0)
        flattened = ops.reshape(pooled, ints(0, -1), True)
        return [linear(flattened, weights(rng, 10, 8 * 64)), conv(rng, ops.relu(x), 5, kernel=1)]

    scores, maps = branches(bright, [features], deep, flat)
    pair = Pair(model([image], scores=ops.softmax(scores, -1), maps=maps), tmp_path, compress=True)
    for shift, channels in ((1, 12), (-1, 5)):
        for batch in (1, 2):
            outputs = pair.run(floats(rng, batch, 3, 16, 16) + np.float32(shift))
            assert outputs["maps"].shape[1] == channels


# Detectors


def rows(x: Any, *shape: int) -> Any:
    """A feature map with its channels last, reshaped."""
    return ops.reshape(ops.transpose(x, ints(0, 2, 3, 1)), ints(*shape), True)


def map_size(x: Any) -> Any:
    return ops.slice(ops.shape_of(x), ints(2), ints(4), ints(1), ints(0))


SSD = {
    "caffe": {"share_location": True, "code_type": "caffe.PriorBoxParameter.CENTER_SIZE", "normalized": True},
    "own boxes for each class": {
        "share_location": False,
        "code_type": "caffe.PriorBoxParameter.CORNER",
        "normalized": True,
        "clip_before_nms": True,
        "top_k": 50,
    },
    "mxnet": {
        "share_location": True,
        "code_type": "caffe.PriorBoxParameter.CENTER_SIZE",
        "normalized": True,
        "decrease_label_id": True,
        "clip_after_nms": True,
        "top_k": 60,
    },
}


@pytest.mark.parametrize("attributes", SSD.values(), ids=SSD)
def test_an_ssd(rng, tmp_path, attributes):
    image, classes = parameter("image", [-1, 3, 48, 48]), 4
    fine = ops.relu(conv(rng, ops.relu(conv(rng, image, 8, stride=2)), 12, stride=2))
    coarse = ops.relu(conv(rng, fine, 12, stride=2))
    common = {"offset": 0.5, "variance": [0.1, 0.1, 0.2, 0.2]}
    sizes = {"min_size": [10.0], "max_size": [18.0], "aspect_ratio": [2.0], "flip": True, "scale_all_sizes": True}
    clustered = {"width": [14.0, 30.0, 22.0], "height": [26.0, 18.0, 40.0], "step": 8.0, "clip": True}
    priors = [
        ops.prior_box(map_size(fine), map_size(image), {**common, **sizes, "clip": False}),
        ops.prior_box_clustered(map_size(coarse), map_size(image), {**common, **clustered}),
    ]
    logits, confidences = [], []
    for maps, each in ((fine, 4), (coarse, 3)):
        places = 4 if attributes["share_location"] else 4 * classes
        logits.append(rows(conv(rng, maps, each * places), 0, -1))
        confidences.append(rows(conv(rng, maps, each * classes), 0, -1, classes))
    likely = ops.reshape(ops.softmax(ops.concat(confidences, 1), -1), ints(0, -1), True)
    boxes = ops.multiply(ops.concat(logits, 1), scalar(0.5, np.float32))
    settings = {"background_label_id": 0, "keep_top_k": [30], "nms_threshold": 0.6, "confidence_threshold": 0.6}
    places = ops.unsqueeze(ops.concat(priors, 1), ints(0))
    found = ops.detection_output(boxes, likely, places, {**settings, **attributes})
    pair = Pair(model([image], detections=found, priors=places, boxes=boxes, likely=likely), tmp_path)
    assert {"PriorBox", "PriorBoxClustered", "DetectionOutput"} <= pair.types
    for batch in (2, 1):
        detections = pair.run(floats(rng, batch, 3, 48, 48))["detections"]
        assert 5 < (detections[0, 0, :, 0] >= 0).sum() < 30 * batch


def decoded(maps: Any, anchors: Any, stride: int, classes: int, exponential: bool) -> tuple[Any, Any]:
    """Boxes [batch, place, 4] as centers and sizes, and scores [batch, place, class], of maps of raw numbers."""
    count, (height, width) = len(anchors), (maps.output(0).partial_shape[axis].get_length() for axis in (2, 3))
    raw = ops.reshape(maps, ints(0, count, 5 + classes, height, width), True)
    raw = ops.transpose(raw, ints(0, 1, 3, 4, 2))
    xy, wh, objectness, likely = ops.variadic_split(raw, scalar(-1), ints(2, 2, 1, classes)).outputs()
    half, two = scalar(0.5, np.float32), scalar(2, np.float32)
    grid = np.stack(np.meshgrid(np.arange(width), np.arange(height)), -1).astype(np.float32)[None, None]
    sizes = ops.constant(anchors.reshape(1, count, 1, 1, 2))
    if exponential:
        centers = ops.add(ops.sigmoid(xy), grid)
        extents = ops.multiply(ops.exp(wh), sizes)
    else:
        centers = ops.add(ops.subtract(ops.multiply(ops.sigmoid(xy), two), half), grid)
        extents = ops.multiply(ops.power(ops.multiply(ops.sigmoid(wh), two), two), sizes)
    boxes = ops.concat([ops.multiply(centers, scalar(stride, np.float32)), extents], -1)
    scores = ops.multiply(ops.sigmoid(objectness), ops.sigmoid(likely))
    return ops.reshape(boxes, ints(0, -1, 4), True), ops.reshape(scores, ints(0, -1, classes), True)


@pytest.mark.parametrize("type", ["i32", "i64"])
@pytest.mark.parametrize("descending", [True, False], ids=["by score", "by class"])
def test_a_yolo_with_suppression(rng, tmp_path, descending, type):
    image, classes = parameter("image", [-1, 3, 64, 64]), 3
    fine = ops.swish(conv(rng, ops.swish(conv(rng, image, 8, stride=4)), 12, stride=2))
    coarse = ops.swish(conv(rng, fine, 12, stride=2))
    wide = ops.interpolate(conv(rng, coarse, 6, kernel=1), np.float32([2, 2]), "nearest", "scales", axes=[2, 3])
    fine = ops.concat([fine, wide], 1)
    heads = [
        decoded(conv(rng, maps, 3 * (5 + classes), kernel=1), anchors, stride, classes, exponential)
        for maps, anchors, stride, exponential in (
            (fine, np.float32([[10, 13], [16, 30], [33, 23]]), 8, False),
            (coarse, np.float32([[30, 61], [62, 45], [40, 40]]), 16, True),
        )
    ]
    boxes, scores = (ops.concat(list(parts), 1) for parts in zip(*heads, strict=True))
    by_class = ops.transpose(scores, ints(0, 2, 1))
    limits = [scalar(20), scalar(0.5, np.float32), scalar(0.3, np.float32)]
    chosen = ops.non_max_suppression(
        boxes, by_class, *limits, box_encoding="center", sort_result_descending=descending, output_type=type
    )
    batch, place = (ops.gather(chosen.output(0), scalar(column), scalar(1)) for column in (0, 2))
    places = ops.convert(size(boxes, 1), type)
    found = ops.gather(ops.reshape(boxes, ints(-1, 4), False), ops.add(ops.multiply(batch, places), place), scalar(0))
    outputs = dict(zip(("chosen", "scores", "count"), chosen.outputs(), strict=True))
    pair = Pair(model([image], **outputs, found=found, boxes=boxes, likely=by_class), tmp_path)
    for batch in (2, 1):
        outputs = pair.run(floats(rng, batch, 3, 64, 64))
        assert outputs["chosen"].dtype == type.replace("i", "int")
        assert 20 < len(outputs["found"]) == outputs["count"][0] < (outputs["likely"] > 0.3).sum()


YOLO = {
    "version 2": {"coords": 4, "classes": 5, "num": 3, "do_softmax": True, "mask": []},
    "version 3": {"coords": 4, "classes": 5, "num": 6, "do_softmax": False, "mask": [1, 2, 4]},
}


@pytest.mark.parametrize("attributes", YOLO.values(), ids=YOLO)
def test_a_yolo_with_regions(rng, tmp_path, attributes):
    image = parameter("image", [-1, 3, 32, 32])
    fine = ops.prelu(conv(rng, image, 8, stride=4), ops.constant(np.float32([0.1])))
    coarse = ops.prelu(conv(rng, fine, 8, stride=2), ops.constant(np.float32([0.1])))
    joined = ops.concat([ops.reorg_yolo(fine, [2]), coarse], 1)
    maps = conv(rng, joined, 3 * (5 + attributes["classes"]), kernel=1)
    regions = ops.region_yolo(maps, **attributes, axis=1, end_axis=3, anchors=[1.0, 2.0] * attributes["num"])
    pair = Pair(model([image], regions=regions), tmp_path)
    for batch in (2, 1):
        pair.run(floats(rng, batch, 3, 32, 32))


# Compressed models


def quantized(x: Any, low: Any, high: Any, levels: int = 256) -> Any:
    low, high = (ops.constant(np.asarray(side, np.float32)) for side in (low, high))
    return ops.fake_quantize(x, low, high, low, high, levels)


def dequantized(values: Any, scales: Any, zeros: Any | None, type: str = "f32") -> Any:
    """Convert, Subtract, Multiply, as compression tools write them."""
    wide = ops.convert(values, type)
    if zeros is not None:
        wide = ops.subtract(wide, ops.convert(zeros, type))
    return ops.multiply(wide, ops.constant(scales.astype(np.float32 if type == "f32" else np.float16)))


def packed(codes: Any, type: str) -> Any:
    """A constant of 4-bit codes, given as integers."""
    low, high = (codes.astype(np.uint8).reshape(-1, 2) & 15).T
    return Constant(ov.Tensor(low | high << 4, list(codes.shape), getattr(ov.Type, type)))


def test_an_int8_network(rng, tmp_path):
    """As quantization during training leaves it: 8-bit weights, with FakeQuantize on activations and some weights."""
    image = parameter("image", [-1, 3, 16, 16])
    x = quantized(image, -3, 127 / 128 * 3)
    kernels = ops.constant(rng.integers(0, 256, (8, 3, 3, 3)).astype(np.uint8))
    zeros = ops.constant(rng.integers(120, 136, (8, 1, 1, 1)).astype(np.uint8))
    kernels = dequantized(kernels, rng.uniform(0.5, 1.5, (8, 1, 1, 1)) / 500, zeros)
    x = ops.relu(ops.add(ops.convolution(x, kernels, [1, 1], [1, 1], [1, 1], [1, 1]), floats(rng, 1, 8, 1, 1)))
    x = quantized(x, 0, 4)
    depth = ops.constant(rng.integers(-127, 128, (8, 1, 1, 3, 3)).astype(np.int8))
    depth = dequantized(depth, rng.uniform(0.5, 1.5, (8, 1, 1, 1, 1)) / 300, None)
    x = ops.relu(ops.group_convolution(x, depth, [2, 2], [1, 1], [1, 1], [1, 1]))
    kernels = weights(rng, 6, 8, 1, 1)
    spread = np.abs(kernels).max((1, 2, 3), keepdims=True)
    kernels = quantized(kernels, -spread, spread, 255)
    x = ops.convolution(quantized(x, 0, 2), kernels, [1, 1], [0, 0], [0, 0], [1, 1])
    scores = linear(ops.reshape(x, ints(0, -1), True), weights(rng, 10, 6 * 64))
    pair = Pair(model([image], scores=scores), tmp_path)  # were `x` an output too, OpenVINO would scale it twice
    assert {"FakeQuantize", "Subtract"} <= pair.types
    for batch in (1, 3):
        pair.run(floats(rng, batch, 3, 16, 16))


@pytest.mark.parametrize("type", ["f32", "f16"])
@pytest.mark.parametrize("bits", ["u4", "i4", "nf4", "u8"])
def test_weights_of_few_bits(rng, tmp_path, bits, type):
    """An MLP and an embedding whose weights are compressed by groups, as language models are."""
    groups, width = 4, 16

    def compressed(outputs: int) -> Any:
        shape, few = (outputs, groups, width), (outputs, groups, 1)
        if bits == "u8":
            values, zeros = (ops.constant(rng.integers(0, 256, s).astype(np.uint8)) for s in (shape, few))
        else:
            values = packed(rng.integers(0, 16, shape), bits)
            middle = {"u4": (6, 10), "i4": (-2, 3)}.get(bits)
            zeros = packed(rng.integers(*middle, few), bits) if middle else None
        scales = rng.uniform(0.5, 1.5, few) / {"u8": 1000, "nf4": 6}.get(bits, 40)
        wide = ops.reshape(dequantized(values, scales, zeros, type), ints(outputs, groups * width), False)
        return ops.convert(wide, "f32") if type == "f16" else wide

    ids = parameter("ids", [-1, -1], I64)
    x = ops.gather(compressed(30), ids, scalar(0))
    hidden = ops.gelu(linear(x, compressed(64)), "erf")
    x = ops.add(x, linear(hidden, compressed(64)))
    pair = Pair(model([ids], logits=linear(x, compressed(30))), tmp_path)
    pair.run(rng.integers(0, 30, (2, 5)))
    pair.run(rng.integers(0, 30, (1, 1)))


# Forms of the file


def test_version_10_takes_and_gives_the_types_of_its_time(rng, tmp_path):
    x, ids = parameter("x", [2, 6], F16), parameter("ids", [-1], I64)
    hidden = ops.relu(linear(x, weights(rng, 5, 6).astype(np.float16)))
    best = ops.topk(hidden, scalar(2), 1, "max", "value", "i64")
    chosen = ops.gather(hidden, ids, scalar(1))
    outputs = {
        "hidden": hidden,
        "best": best.output(0),
        "places": best.output(1),
        "chosen": chosen,
        "next": ops.add(ids, ints(1)),
        "far": ops.greater(hidden, scalar(1, np.float16)),
    }
    pair = Pair(model([x, ids], **outputs), tmp_path, version=10)
    got = pair.run(floats(rng, 2, 6), np.int64([4, 0, 1]))
    assert {name: array.dtype.name for name, array in got.items()} == {
        "hidden": "float32",
        "best": "float32",
        "places": "int32",
        "chosen": "float32",
        "next": "int32",
        "far": "float32",
    }


def test_strings(rng, tmp_path):
    """The bytes of words, through an embedding, and the words again."""
    words = parameter("words", [-1], ov.Type.string)
    begins, ends, symbols = opset15.string_tensor_unpack(words).outputs()
    codes = ops.convert(symbols, "i64")
    table = ops.constant(floats(rng, 256, 4))
    sums = ops.cum_sum(ops.gather(table, codes, scalar(0)), scalar(0))
    again = opset15.string_tensor_pack(begins, ends, symbols)
    pair = Pair(model([words], begins=begins, ends=ends, sums=sums, words_again=again), tmp_path)
    pair.run(np.array(["neural", "", "net", "über 網"]))
    pair.run(np.array(["a"]))
