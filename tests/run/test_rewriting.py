"""Rewritten and fused programs: fewer layers that compute the same."""

import numpy as np
import pytest
from engines.toy import Toy
from ir_builder import Model

import irrun
from irrun.run.passes import fuse, prune, rewrite
from irrun.run.passes.setting import Setting

CONVOLUTION = {"strides": "2,1", "dilations": "1,1", "auto_pad": "explicit", "pads_begin": "0,1", "pads_end": "1,0"}


class Graph(Model):
    """A model of f32 tensors whose declared shapes do not matter."""

    def op(self, type, *inputs, rank=4, version="opset1", **data):
        given = [value if isinstance(value, tuple) else self.constant(value) for value in inputs]
        return self.layer(type, given, [("f32", (-1,) * rank)], version, **data)[0]

    def transposed(self, value, *order):
        return self.op("Transpose", value, np.int64(order))

    def convolution(self, value, channels, filters, **changes):
        weights = np.random.default_rng(1).standard_normal((filters, channels, 3, 2), np.float32)
        return self.op("Convolution", value, weights, **(CONVOLUTION | changes))

    def binary(self, type, *inputs, rank=4):
        return self.op(type, *inputs, rank=rank, auto_broadcast="numpy")

    def executors(self, folder, monkeypatch):
        """The reference, and executors of which the last one has a toy engine."""
        path = self.save(folder)
        yield irrun.GraphExecutor(path, engine="reference")
        yield irrun.GraphExecutor(path, engine="numpy")
        yield irrun.GraphExecutor(path, engine="auto")
        monkeypatch.setattr("irrun.run.executor.load_engines", lambda *_, **__: [Toy(1)])
        yield irrun.GraphExecutor(path)


def layers(executor):
    """The ops of the rewritten program, those in one chain joined by `+`."""
    program, setting = executor._whole.preparation.general.program, Setting(executor.model.weights, 1 << 30, [Toy(0)])
    for step in (rewrite, prune, fuse):
        program = step(program, setting)
    return ["+".join(part.op.type for part in instruction.parts) for instruction in program.instructions]


def agree(executors):
    reference, *others = executors
    inputs = reference.random_inputs(0)
    for executor in others:
        for name, array in executor.run(inputs).items():
            np.testing.assert_allclose(array, reference.run(inputs)[name], 2e-5, 2e-5, err_msg=name)
    return reference


NUMBERS = np.random.default_rng(0).standard_normal((1, 1, 1, 5), np.float32)


def test_what_follows_a_convolution_between_transpositions_is_fused_with_it(tmp_path, monkeypatch):
    graph = Graph()
    x = graph.parameter("x", "f32", (2, 9, 8, 4))
    y = graph.convolution(graph.transposed(x, 0, 3, 1, 2), 4, 5)
    y = graph.binary("Multiply", graph.transposed(y, 0, 2, 3, 1), NUMBERS)
    y = graph.op("Swish", graph.binary("Add", NUMBERS[0, 0], y), version="opset4")
    graph.result(y)
    reference = agree(graph.executors(tmp_path, monkeypatch))
    assert layers(reference) == ["Transpose", "Convolution+Multiply+Add+Swish", "Transpose"]


def test_sums_of_transpositions_of_one_order(tmp_path, monkeypatch):
    graph = Graph()
    x = graph.parameter("x", "f32", (2, 3, 4, 5))
    y = graph.parameter("y", "f32", (2, 3, 4, 5))
    a, b = graph.op("ReLU", x), graph.op("Tanh", y)
    for order, other in (((0, 2, 3, 1), (0, 2, 3, 1)), ((3, 1, 0, 2), (3, 1, 0, 2)), ((0, 2, 1, 3), (0, 2, 1, 3))):
        graph.result(graph.binary("Subtract", graph.transposed(a, *order), graph.transposed(b, *other)))
    reference = agree(graph.executors(tmp_path, monkeypatch))
    assert sorted(layers(reference)) == ["ReLU", *["Subtract"] * 3, "Tanh", *["Transpose"] * 3]


def test_transpositions_that_differ_stay(tmp_path, monkeypatch):
    graph = Graph()
    x = graph.parameter("x", "f32", (3, 3, 3, 3))
    graph.result(graph.binary("Add", graph.transposed(x, 0, 2, 3, 1), graph.transposed(x, 0, 1, 3, 2)))
    graph.result(graph.binary("Add", graph.transposed(x, 0, 2, 3, 1), x))
    reference = agree(graph.executors(tmp_path, monkeypatch))
    assert layers(reference).count("Transpose") == 2 + 1


def test_a_transposition_that_is_broadcast_stays(tmp_path, monkeypatch):
    graph = Graph()
    x = graph.parameter("x", "f32", (1, 3, 1, 4))
    wide = np.ones((5, 4, 3, 1), np.float32)
    graph.result(graph.binary("Add", graph.transposed(x, 0, 3, 1, 2), wide))
    agree(graph.executors(tmp_path, monkeypatch))


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("axes", [[1, 2], [-1], [0, 3], [], [2, 1, 3]])
@pytest.mark.parametrize("order", [(0, 2, 3, 1), (3, 2, 1, 0)])
def test_means_of_transpositions(keep, axes, order, tmp_path, monkeypatch):
    graph = Graph()
    x = graph.parameter("x", "f32", (2, 3, 4, 5))
    rank = 4 if keep else 4 - len(axes)
    y = graph.op(
        "ReduceMean", graph.transposed(x, *order), np.int64(axes), rank=rank, keep_dims="true" if keep else "false"
    )
    graph.result(y)
    agree(graph.executors(tmp_path, monkeypatch))


@pytest.mark.parametrize("explicit", [True, False])
def test_pads_of_zeros_become_those_of_the_convolution(explicit, tmp_path, monkeypatch):
    graph = Graph()
    x = graph.parameter("x", "f32", (2, 9, 8, 4))
    pads = np.int64([0, 1, 2, 0]), np.int64([0, 0, 3, 0])
    y = graph.op("Pad", x, *pads, *([np.float32(0)] if explicit else []), pad_mode="constant")
    changes = {} if explicit else {"auto_pad": "valid"}
    graph.result(graph.convolution(graph.transposed(y, 0, 3, 1, 2), 4, 5, **changes))
    reference = agree(graph.executors(tmp_path, monkeypatch))
    assert layers(reference) == ["Transpose", "Convolution"]


@pytest.mark.parametrize(
    ("begins", "ends", "fill", "mode"),
    [
        ([0, 0, 1, 1], [0, 0, 1, 1], 1.0, "constant"),
        ([0, 0, 1, 1], [0, 0, 1, 1], 0.0, "edge"),
        ([0, 0, -1, 1], [0, 0, 1, 1], 0.0, "constant"),
        ([1, 0, 0, 0], [0, 0, 0, 0], 0.0, "constant"),
        ([0, 1, 0, 0], [0, 0, 0, 0], 0.0, "constant"),
    ],
)
def test_other_pads_stay(begins, ends, fill, mode, tmp_path, monkeypatch):
    graph = Graph()
    x = graph.parameter("x", "f32", (2, 4, 9, 8))
    y = graph.op("Pad", x, np.int64(begins), np.int64(ends), np.float32(fill), version="opset12", pad_mode=mode)
    graph.result(graph.convolution(y, 4 + begins[1], 5))
    reference = agree(graph.executors(tmp_path, monkeypatch))
    assert layers(reference) == ["Pad", "Convolution"]


def test_a_padded_tensor_that_others_read_is_still_there(tmp_path, monkeypatch):
    graph = Graph()
    x = graph.parameter("x", "f32", (2, 4, 9, 8))
    y = graph.op("Pad", x, np.int64([0, 0, 1, 1]), np.int64([0, 0, 0, 0]), pad_mode="constant")
    graph.result(graph.convolution(y, 4, 5))
    graph.result(graph.transposed(y, 0, 2, 3, 1))
    reference = agree(graph.executors(tmp_path, monkeypatch))
    assert len(layers(reference)) >= 3


@pytest.mark.parametrize("shape", [[2, 5, -1], [0, 0, 32], [2, 160]])
def test_functions_of_a_reshaped_convolution_are_fused_with_it(shape, tmp_path, monkeypatch):
    graph = Graph()
    x = graph.parameter("x", "f32", (2, 4, 16, 4))
    y = graph.op("Reshape", graph.convolution(x, 4, 5), np.int64(shape), rank=len(shape), special_zero="true")
    z = graph.op("Gelu", y, rank=len(shape), version="opset7", approximation_mode="erf")
    graph.result(z)
    graph.result(graph.op("Tanh", graph.op("Unsqueeze", z, np.int64([0]), rank=len(shape) + 1), rank=len(shape) + 1))
    reference = agree(graph.executors(tmp_path, monkeypatch))
    assert layers(reference)[0] == "Convolution+Gelu"


def test_functions_of_a_tensor_that_is_repeated_are_those_of_what_it_is_made_of(tmp_path, monkeypatch):
    graph = Graph()
    x = graph.parameter("x", "f32", (4, 1, 3))
    repeated = graph.op("Broadcast", x, np.int64([4, 5, 3]), rank=3, version="opset3", mode="bidirectional")
    graph.result(graph.op("Exp", graph.op("Tanh", repeated, rank=3), rank=3))
    reference = agree(graph.executors(tmp_path, monkeypatch))
    assert layers(reference) == ["Tanh+Exp", "Broadcast"]
