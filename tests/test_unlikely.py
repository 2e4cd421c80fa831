"""Constants with which ops are defined, but which are seldom meant, are told before a run and not in it."""

import numpy as np
import pytest
from ir_builder import Model

import irrun

NAN = float("nan")
F32, I64 = np.float32, np.int64


def made(type, version, inputs, outputs, **data):
    """A model of one layer: arrays are its constants, and types with shapes its inputs."""
    net = Model()
    given = [
        net.parameter(f"x{number}", *item) if isinstance(item, tuple) else net.constant(item)
        for number, item in enumerate(inputs)
    ]
    for output in net.layer(type, given, outputs, version=version, **data):
        net.result(output)
    return net


def gather(indices, axis=0, shape=(4, 3)):
    result = [("f32", (len(indices), *shape[1:]) if axis % 2 == 0 else (shape[0], len(indices)))]
    return made("Gather", "opset8", [("f32", shape), I64(indices), I64(axis)], result, batch_dims="0")


def pad(begin, end):
    shape = tuple(max(size + a + b, 0) for size, a, b in zip((2, 3), begin, end, strict=True))
    return made("Pad", "opset12", [("f32", (2, 3)), I64(begin), I64(end)], [("f32", shape)], pad_mode="constant")


def one_hot(indices, mode=None):
    inputs, more = [I64(indices), I64(3), ("f32", ()), ("f32", ())], {"negative_indices_mode": mode} if mode else {}
    return made("OneHot", "opset16" if mode else "opset1", inputs, [("f32", (len(indices), 3))], axis="-1", **more)


def batch_norm(variance, epsilon="0.5", old=False):
    data, scale, zeros = ("f32", (1, len(variance), 3)), F32([1] * len(variance)), F32([0] * len(variance))
    inputs = [scale, zeros, data, zeros, F32(variance)] if old else [data, scale, zeros, zeros, F32(variance)]
    version = "opset1" if old else "opset5"
    return made("BatchNormInference", version, inputs, [("f32", data[1])], epsilon=epsilon)


def suppression(threshold, *sigma, version="opset9"):
    inputs = [("f32", (1, 4, 4)), ("f32", (1, 1, 4)), I64(4), F32(threshold), F32(0), *sigma]
    if version in ("opset1", "opset4"):
        return made("NonMaxSuppression", version, inputs, [("i64", (-1 if version == "opset1" else 4, 3))])
    outputs = [("i64", (-1, 3)), ("f32", (-1, 3)), ("i64", (1,))]
    if version == "opset13":
        return made("NMSRotated", version, [("f32", (1, 4, 5)), *inputs[1:]], outputs)
    return made("NonMaxSuppression", version, inputs, outputs)


def search(rows):
    return made("SearchSorted", "opset15", [F32(rows), ("f32", (6,))], [("i64", (6,))], right_mode="false")


def tile(*repeats):
    return made("Tile", "opset1", [("f32", (2, 3)), I64(repeats)], [("f32", (2, 0 if min(repeats) < 1 else 6))])


def resampled(mode, **attrs):
    inputs, more = [("f32", (1, 1, 4, 4)), I64([2, 2]), I64([2, 3])], {"shape_calculation_mode": "sizes"}
    return made("Interpolate", "opset11", inputs, [("f32", (1, 1, 2, 2))], mode=mode, **more, **attrs)


def quantized(low, high):
    limits = [F32(low), F32(high), F32(3), F32(-3)]
    return made("FakeQuantize", "opset1", [("f32", (2, 2)), *limits], [("f32", (2, 2))], levels="16")


ALL = "no box is removed"
PILLOW = "irrun resamples with it, but Pillow, PyTorch and OpenVINO's CPU plugin with -0.5 whatever it is"
TOLD = [
    (
        pad((0, -1), (0, -3)),
        "W954",
        "dimension 1 has 3 elements, of which pads of -1 and -3 crop more: nothing comes out",
    ),
    (
        pad((-4, 0), (1, 0)),
        "W954",
        "dimension 0 has 2 elements, of which pads of -4 and 1 crop more: nothing comes out",
    ),
    (tile(1, -2), "W954", "`repeats[1]` is -2, which counts as 0: nothing comes out"),
    (gather([0, 4]), "W954", "`indices[1]` is 4, expected a number inside [-4, 4): zeros stand in its place"),
    (gather([0, -5]), "W954", "`indices[1]` is -5, expected a number inside [-4, 4): zeros stand in its place"),
    (gather([3], axis=-1), "W954", "`indices[0]` is 3, expected a number inside [-3, 3): zeros stand in its place"),
    (
        one_hot([0, 3]),
        "W954",
        "`indices[1]` is 3, expected a number inside [0, 3): `off_value` stands in all its places",
    ),
    (
        one_hot([-1]),
        "W954",
        "`indices[0]` is -1, expected a number inside [0, 3): `off_value` stands in all its places",
    ),
    (one_hot([9], "ignore_negative"), "W954", "`indices[0]` is 9, expected a number below 3: "),
    (one_hot([0, -4], "normalize"), "W954", "`indices[1]` is -4, expected a number inside [-3, 3): "),
    (batch_norm([1, -1]), "W954", "`variance[1]` is -1, and `epsilon` 0.5: the channel has no finite numbers"),
    (batch_norm([-0.5], old=True), "W954", "`variance[0]` is -0.5, and `epsilon` 0.5: the channel has no finite"),
    (suppression(50), "W954", f"`iou_threshold` is 50, outside [0, 1]: {ALL}"),
    (suppression(1.5, F32(0)), "W954", f"`iou_threshold` is 1.5, outside [0, 1]: {ALL}"),
    (suppression(-0.5), "W954", "`iou_threshold` is -0.5, outside [0, 1]: all boxes but the best of each class are"),
    (suppression(50, version="opset1"), "W954", f"`iou_threshold` is 50, outside [0, 1]: {ALL}"),
    (suppression(50, version="opset4"), "W954", f"`iou_threshold` is 50, outside [0, 1]: {ALL}"),
    (suppression(50, version="opset5"), "W954", f"`iou_threshold` is 50, outside [0, 1]: {ALL}"),
    (suppression(50, version="opset13"), "W954", f"`iou_threshold` is 50, outside [0, 1]: {ALL}"),
    (resampled("bicubic_pillow"), "W954", f"`cube_coeff` is -0.75 for `bicubic_pillow`: {PILLOW}"),
    (resampled("bicubic_pillow", cube_coeff="-1"), "W954", f"`cube_coeff` is -1 for `bicubic_pillow`: {PILLOW}"),
    (quantized(2, -1), "W954", "`input_low` is 2, above `input_high`, which is -1: what lies between falls where it"),
    (quantized([0, 2], 1), "W954", "`input_low` is 2, above `input_high`, which is 1: "),
    (search([1, 3, 2, 4]), "W947", "`sorted[2]` is 2.0, below `sorted[1]`, which is 3.0: a search may miss it"),
]
NOT_TOLD = [
    pad((0, -2), (1, -1)),
    gather([0, -4, 3]),
    gather([9], shape=("?", 3)),
    gather([], axis=1),
    one_hot([0, 2]),
    one_hot([-1, -9], "ignore_negative"),
    one_hot([-3, 2], "normalize"),
    batch_norm([0, 1]),
    batch_norm([-0.25]),
    suppression(0),
    suppression(1),
    suppression(50, F32(0.5)),  # which fades scores instead
    suppression(50, ("f32", ())),
    made("NonMaxSuppression", "opset4", [("f32", (1, 4, 4)), ("f32", (1, 1, 4)), I64(4)], [("i64", (4, 3))]),
    resampled("bicubic_pillow", cube_coeff="-0.5"),
    resampled("bilinear_pillow"),
    resampled("cubic", cube_coeff="-0.75"),
    quantized([0, 1], 1),
    search([1, 3, 3, 4]),
    search([]),
]


@pytest.mark.parametrize(("net", "code", "message"), TOLD)
def test_told(net, code, message, tmp_path):
    (found,) = irrun.validate(net.save(tmp_path)).diagnostics
    assert (found.code, found.severity) == (code, "warning")
    assert found.message.startswith(message)
    assert found.help.startswith("see ")


@pytest.mark.parametrize("net", NOT_TOLD)
def test_not_told(net, tmp_path):
    assert irrun.validate(net.save(tmp_path)).diagnostics == []


def test_rows_of_which_one_falls(tmp_path):
    values = [F32([[1, 2, 3], [1, 3, 2]]), ("f32", (2, 6))]
    net = made("SearchSorted", "opset15", values, [("i64", (2, 6))], right_mode="true")
    (found,) = irrun.validate(net.save(tmp_path)).diagnostics
    assert found.message.startswith("`sorted[1, 2]` is 2.0, below `sorted[1, 1]`, which is 3.0")


def test_a_threshold_that_is_no_number_is_told_of_the_constant_alone(tmp_path):
    assert [found.code for found in irrun.validate(suppression(NAN).save(tmp_path)).diagnostics] == ["W913"]


@pytest.mark.filterwarnings("error")
def test_a_run_says_nothing_of_its_data(tmp_path):
    inputs = [("f32", (3,)), ("i64", (2,)), I64(0)]
    path = made("Gather", "opset8", inputs, [("f32", (2,))], batch_dims="0").save(tmp_path)
    (result,) = irrun.GraphExecutor(path).run({"x0": F32([1, 2, 3]), "x1": I64([1, 9])}).values()
    assert result.tolist() == [2, 0]
