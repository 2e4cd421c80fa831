"""Normalization ops against OpenVINO."""

import numpy as np
from ml_dtypes import bfloat16
from openvino import opset1, opset2, opset5, opset6, opset12
from openvino.utils.node_factory import NodeFactory

from conformance.harness import WIDE, Case, Const, Departure, conformance, with_attribute

rng = np.random.default_rng(0)
opset1_nodes = NodeFactory("opset1")


def f32(*shape):
    return rng.normal(size=shape).astype(np.float32)


def f16(*shape):
    return f32(*shape).astype(np.float16)


def i64(*values):
    return Const(np.array(values, np.int64))


def statistics(channels):
    return [Const(f32(channels)), Const(f32(channels)), Const(f32(channels)), Const(np.abs(f32(channels)))]


def batch_norm(opset, epsilon=1e-3):
    return lambda *inputs: opset.batch_norm_inference(*inputs, epsilon)


def group_norm(groups, epsilon=1e-3):
    return lambda *inputs: opset12.group_normalization(*inputs, groups, epsilon)


def grn(bias):
    return lambda data: opset1.grn(data, bias)


def lrn(alpha, beta, bias, size):
    return lambda data, axes: opset1.lrn(data, axes, alpha, beta, bias, size)


def mvn_1(across, variance=True, eps=1e-3):
    return lambda data: opset2.mvn(data, across, variance, eps)


def mvn(variance=True, eps=1e-2, mode="inside_sqrt"):
    return lambda data, axes: opset6.mvn(data, axes, variance, eps, mode)


def normalize_l2(eps, mode):
    # the helper of opset1 loses eps_mode
    return lambda data, axes: opset1_nodes.create("NormalizeL2", [data, axes], {"eps": eps, "eps_mode": mode})


CASES = [
    Case("BatchNormInference-1", "images", batch_norm(opset1), [f32(2, 3, 4, 5), *statistics(3)]),
    Case("BatchNormInference-1", "rows", batch_norm(opset1), [f32(2, 3), *statistics(3)]),
    Case(
        "BatchNormInference-1",
        "f16",
        batch_norm(opset1),
        [f16(2, 3, 4), *(Const(f16(3) ** 2) for _ in range(4))],
        rtol=2e-3,
        atol=2e-3,
    ),
    Case("BatchNormInference-1", "all sizes unknown", batch_norm(opset1), [f32(2, 3, 4), *statistics(3)], dynamic=True),
    Case("BatchNormInference-5", "images", batch_norm(opset5, 0.0), [f32(2, 3, 4, 5), *statistics(3)]),
    Case("BatchNormInference-5", "volumes", batch_norm(opset5), [f32(2, 3, 2, 2, 2), *statistics(3)]),
    Case(
        "BatchNormInference-5",
        "f16",
        batch_norm(opset5),
        [f16(2, 3, 4), *(Const(f16(3) ** 2) for _ in range(4))],
        rtol=2e-3,
        atol=2e-3,
    ),
    Case("BatchNormInference-5", "all sizes unknown", batch_norm(opset5), [f32(2, 3, 4), *statistics(3)], dynamic=True),
    Case("GRN-1", "images", grn(0.5), [f32(2, 3, 4, 5)]),
    Case("GRN-1", "rows", grn(1e-4), [f32(2, 3)]),
    Case("GRN-1", "f16", grn(1.0), [f16(2, 3, 4)], rtol=2e-3),
    Case("GRN-1", "all sizes unknown", grn(1.0), [f32(2, 3, 4)], dynamic=True),
    Case("GroupNormalization-12", "images", group_norm(2), [f32(2, 6, 4, 5), f32(6), f32(6)]),
    Case("GroupNormalization-12", "one group", group_norm(1), [f32(2, 6, 4), f32(6), f32(6)]),
    Case("GroupNormalization-12", "each channel", group_norm(6, 0.1), [f32(2, 6, 4), f32(6), f32(6)], dynamic=True),
    Case("GroupNormalization-12", "f16", group_norm(2), [f16(2, 4, 9), f16(4), f16(4)], rtol=5e-3, atol=5e-3),
    Case("LRN-1", "channels", lrn(0.5, 0.75, 2.0, 3), [f32(2, 7, 3, 4), i64(1)]),
    Case("LRN-1", "images", lrn(0.5, 0.75, 2.0, 3), [f32(2, 2, 5, 6), i64(2, 3)]),
    Case("LRN-1", "even size", lrn(2.0, 1.0, 1.0, 4), [f32(1, 7, 2, 2), i64(1)]),
    Case("LRN-1", "size above the axis", lrn(2.0, 1.0, 1.0, 9), [f32(1, 3, 2, 2), i64(1)], dynamic=True),
    Case("LRN-1", "f16", lrn(0.5, 0.75, 2.0, 3), [f16(2, 5, 2, 2), i64(1)], rtol=2e-3, atol=1e-3),
    Case(
        "LRN-1",
        "fractional bias",
        lrn(3.0, 1.0, 1.5, 3),
        [np.array([[[[1.0]], [[2.0]], [[2.0]]]], np.float32), i64(1)],
        deviates=Departure("truncates bias to an integer; the page has a float", "bias has fractions"),
        expected=[np.array([[[[2 / 13]], [[4 / 21]], [[4 / 19]]]], np.float32)],
    ),
    Case("MVN-1", "across channels", mvn_1(True), [f32(2, 3, 4, 5)]),
    Case("MVN-1", "each channel", mvn_1(False), [f32(2, 3, 4, 5)]),
    Case("MVN-1", "only the mean", mvn_1(True, False), [f32(2, 3, 4)]),
    Case("MVN-1", "all sizes unknown", mvn_1(False), [f32(2, 3, 4, 5)], dynamic=True),
    Case("MVN-1", "f16", mvn_1(True), [f16(2, 3, 4, 5)], rtol=5e-3, atol=5e-3),
    Case("MVN-6", "last axis", mvn(), [f32(2, 3, 8), i64(-1)]),
    Case("MVN-6", "outside the root", mvn(mode="outside_sqrt", eps=0.5), [f32(2, 3, 4, 5), i64(3, 2)]),
    Case("MVN-6", "channels and images", mvn(), [f32(2, 3, 4, 5), i64(1, 2, 3)]),
    Case("MVN-6", "batch and images", mvn(), [f32(2, 3, 4, 5), i64(0, 2, 3)]),
    Case("MVN-6", "only the mean", mvn(False), [f32(2, 3, 4), i64(2)], dynamic=True),
    Case("MVN-6", "f16", mvn(), [f16(2, 3, 8), i64(2)], rtol=5e-3, atol=5e-3),
    Case("MVN-6", "f64", mvn(), [f32(2, 8).astype(np.float64), i64(1)]),
    Case("NormalizeL2-1", "added eps", normalize_l2(0.5, "add"), [f32(2, 3, 4, 5), i64(1)]),
    Case("NormalizeL2-1", "larger of sum and eps", normalize_l2(4.0, "max"), [f32(2, 3, 4, 5), i64(1)]),
    Case("NormalizeL2-1", "all but the batch", normalize_l2(1e-6, "add"), [f32(2, 3, 4), i64(1, 2)]),
    Case("NormalizeL2-1", "scalar axis", normalize_l2(1e-6, "max"), [f32(2, 3), Const(np.int64(-1))], dynamic=True),
    Case("NormalizeL2-1", "f16", normalize_l2(1e-3, "add"), [f16(2, 3, 4), i64(2)], rtol=2e-3),
]

CASES += [
    Case(
        "NormalizeL2-1",
        f"a constant, {mode}",
        normalize_l2(1.0, mode),
        [Const(np.float32([[3, 4], [0, 0]])), i64(1)],
        deviates=Departure("crashes; the reference computes it", "layer is constant"),
        expected=[np.float32([[3, 4], [0, 0]]) / np.float32([[5], [1]] if mode == "max" else [[np.sqrt(26)], [1]])],
        crashes=True,
    )
    for mode in ("max", "add")
]

DEEP = np.array([-3, 0, 0.5, 2], np.float32).reshape(1, 1, 2, 2, 1)
CASES += [
    Case("NormalizeL2-1", "no axes", normalize_l2(0.5, "add"), [DEEP[0, 0, ..., 0], i64()]),
    Case(
        "NormalizeL2-1",
        "no axes of a volume",
        normalize_l2(0.5, "add"),
        [DEEP, i64()],
        deviates=Departure(
            "lets eps count in lines and above rank 4; the page gives 1 for all but 0",
            "axes is empty; rank of data = 1 | rank of data > 4",
        ),
        expected=[np.float32([1, 0, 1, 1]).reshape(DEEP.shape)],
    ),
    Case(
        "NormalizeL2-1",
        "no axes of a line",
        normalize_l2(0.5, "max"),
        [DEEP.ravel(), i64()],
        deviates=Departure(
            "lets eps count in lines and above rank 4; the page gives 1 for all but 0",
            "axes is empty; rank of data = 1 | rank of data > 4",
        ),
        expected=[np.float32([1, 0, 1, 1])],
    ),
    Case(
        "MVN-6",
        "no axes",
        lambda data, axes: opset6.mvn(data, axes, True, 0.25, "inside_sqrt"),
        [f32(2, 3), i64()],
        deviates=Departure(
            "hands the data on, or what lies in memory where shapes are dynamic; each number is its own mean",
            "axes is empty",
        ),
        expected=[np.zeros((2, 3), np.float32)],
    ),
    Case(
        "LRN-1",
        "negative axis",
        lrn(3.0, 1.0, 1.0, 3),
        [np.array([[[1.0], [2.0], [2.0]]], np.float32), i64(-2)],
        deviates=Departure(
            "refuses negative axes, which its own check of the op takes; they count from the end", "axes < 0"
        ),
        expected=[np.float32([[[1 / 6], [2 / 10], [2 / 9]]])],
    ),
    Case(
        "LRN-1",
        "spatial and other axes",
        lrn(9.0, 1.0, 1.0, 3),
        [np.array([[[1, 2], [2, 1]]], np.float32), i64(1, 2)],
        deviates=Departure(
            "sums over the axes from 2 on alone, and divides by their size; the page has all that are given",
            "axes = 0, 1; axes = 0 | size of axes > 1; axes has all axes of data from 2 on; "
            "rank of data = 2, 3, 4, 5; rank of data != 4 | data is not dynamic at axis 1 | beta != 0.75",
        ),
        expected=[np.array([[[1 / 11, 2 / 11], [2 / 11, 1 / 11]]], np.float32)],
    ),
    Case(
        "LRN-1",
        "the first axis of rows",
        lrn(3.0, 1.0, 1.0, 3),
        [np.array([[1, 2], [1, 2]], np.float32), i64(0)],
        deviates=Departure(
            "sums over the axes from 2 on alone, and divides by their size; the page has all that are given",
            "axes = 0, 1; axes = 0 | size of axes > 1; axes has all axes of data from 2 on; "
            "rank of data = 2, 3, 4, 5; rank of data != 4 | data is not dynamic at axis 1 | beta != 0.75",
        ),
        expected=[np.array([[1 / 3, 2 / 9], [1 / 3, 2 / 9]], np.float32)],
    ),
    Case(
        "LRN-1",
        "one of two spatial axes",
        lrn(3.0, 1.0, 1.0, 3),
        [np.array([[[[1, 2, 2]]]], np.float32), i64(3)],
        deviates=Departure(
            "refuses axes other than 1 alone, and all from 2 on; the page has any",
            "axes has not all axes of data from 2 on; axes != 1 | size of axes != 1",
        ),
        expected=[np.array([[[[1 / 6, 2 / 10, 2 / 9]]]], np.float32)],
    ),
    Case(
        "LRN-1",
        "spatial axes, dynamic",
        lrn(3.0, 0.75, 1.0, 1),
        [np.ones((1, 3, 1, 2), np.float32), i64(2, 3)],
        dynamic=True,
        deviates=Departure(
            "refuses axes from 2 on where the channels are unknown; the page does not tell them from others",
            "rank of data = 4; data is dynamic at axis 1; axes has all axes of data from 2 on; beta = 0.75",
        ),
        expected=[np.full((1, 3, 1, 2), 4**-0.75, np.float32)],
    ),
    Case(
        "LRN-1",
        "a line",
        lrn(3.0, 1.0, 1.0, 3),
        [np.array([1, 2, 2], np.float32), i64(0)],
        deviates=Departure(
            "refuses data of rank 1, or above 5; the page has any", "rank of data = 1 | rank of data > 5"
        ),
        expected=[np.array([1 / 6, 2 / 10, 2 / 9], np.float32)],
    ),
    Case(
        "GroupNormalization-12",
        "rank 2, dynamic",
        group_norm(1, 3.0),
        [np.float32([[-1, 1]]), np.float32([2, 2]), np.float32([0, 1])],
        dynamic=True,
        deviates=Departure(
            "refuses data without spatial axes of dynamic shapes; the page does not tell them from others",
            "layer is dynamic; rank of data = 2",
        ),
        expected=[np.float32([[-1, 2]])],
    ),
    Case(
        "GroupNormalization-12",
        "bf16, two groups",
        group_norm(2, 0.25),
        [
            np.array([[[-1], [1], [1], [-1]]], bfloat16),
            np.array([2, 2, 2, 2], bfloat16),
            np.array([0, 1, 0, 0], bfloat16),
        ],
        deviates=Departure(
            "refuses bf16 with several groups; the page has any floating-point type",
            "data is bf16; num_groups > 1",
            WIDE,
        ),
        expected=[np.array([[[-1.7890625], [2.78125], [1.7890625], [-1.7890625]]], bfloat16)],
    ),
]

CASES += [
    Case(
        "MVN-1",
        "some axes",
        lambda data: opset2.mvn(data, False, False, 1e-3),
        [Const(np.float32([1, 3, 5, 11]).reshape(1, 2, 1, 2))],
        deviates=Departure(
            "takes the spatial axes and, if it is among those given, that of channels; the page takes those given",
            "reduction_axes is not left out; reduction_axes has not all axes of data from 2 on | reduction_axes = 0",
        ),
        expected=[np.float32([-2, -4, 2, 4]).reshape(1, 2, 1, 2)],
        edit=with_attribute("reduction_axes", "1"),
    ),
]

test_agrees_with_openvino = conformance(CASES)
