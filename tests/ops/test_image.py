"""Image ops: written-out numbers, the loops of the specification, constraints and inference."""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from tolerance import tolerated

from irrun.spec import Dim, Tensor, Violation, fresh
from irrun.spec.registry import registry

ops = registry().ops
INTERPOLATIONS = ["Interpolate-1", "Interpolate-4", "Interpolate-11"]
RESIZES = ["Interpolate-4", "Interpolate-11"]
NONE = np.array([], np.float32)


def resized(data, targets, mode, axes=None, name="Interpolate-11", **attrs):
    """`targets` are sizes where they are integers, else scales."""
    targets = np.asarray(targets)
    by = "scales" if targets.dtype.kind == "f" else "sizes"
    axes = None if axes is None else np.array(axes)
    inputs = [np.asarray(data), targets, axes]
    if name == "Interpolate-4":
        inputs[1:2] = [targets, NONE] if by == "sizes" else [NONE.astype(int), targets]
    return ops[name](*inputs, mode=mode, shape_calculation_mode=by, **attrs)


def inferred(name, shape, targets, axes=None, **attrs):
    """The shape of the result; `targets` and `axes` are arrays or tensors."""
    op = ops[name]
    tensors = [item if item is None or isinstance(item, Tensor) else Tensor.of(item) for item in (targets, axes)]
    by = "scales" if tensors[0].type.startswith("f") else "sizes"
    values = op.defaults | {"mode": "nearest"} | attrs
    inputs = [Tensor("f32", shape), *tensors]
    if name == "Interpolate-1":
        values["axes"] = tuple(range(len(shape))) if axes is None else tuple(axes.tolist())
        inputs = inputs[:2]
    else:
        values.setdefault("shape_calculation_mode", by)
        if name == "Interpolate-4":
            unused = Tensor("f32" if by == "sizes" else "i64", (0,))
            inputs[1:2] = [tensors[0], unused] if by == "sizes" else [unused, tensors[0]]
    return op.infer(inputs, values).outputs[0].shape


def source(x, scale, after, before, transform):
    if scale == 1 or before == after:
        return x
    return {
        "half_pixel": (x + 0.5) / scale - 0.5,
        "pytorch_half_pixel": (x + 0.5) / scale - 0.5 if after > 1 else 0,
        "asymmetric": x / scale,
        "tf_half_pixel_for_nn": (x + 0.5) / scale,
        "align_corners": 0 if after == 1 else x * (before - 1) / (after - 1),
    }[transform]


def slow_linear(data, sizes, transform, antialias):
    """The page's loops over a window of r elements on each side, for all axes of the data."""
    scales = [after / before for after, before in zip(sizes, data.shape, strict=True)]
    antialias = antialias and min(scales) < 1
    a = [scale if antialias else 1 for scale in scales]
    r = [2 if scale > 1 else math.ceil(2 / steep) for scale, steep in zip(scales, a, strict=True)]
    result = np.zeros(sizes)
    for place in np.ndindex(*sizes):
        at = [source(*item, transform) for item in zip(place, scales, sizes, data.shape, strict=True)]
        total = weights = 0.0
        for offset in itertools.product(*(range(-reach, reach + 1) for reach in r)):
            inner = [math.floor(x + 0.5) + step for x, step in zip(at, offset, strict=True)]
            if all(0 <= i < size for i, size in zip(inner, data.shape, strict=True)):
                steep = zip(a, at, inner, strict=True)
                weight = math.prod(max(0, 1 - abs(factor * (x - i))) for factor, x, i in steep)
                weights += weight
                total += weight * data[tuple(inner)]
        result[place] = total / weights if weights else 0
    return result


def slow_cubic(data, sizes, transform, a):
    def coefficients(s):
        return (
            ((a * (s + 1) - 5 * a) * (s + 1) + 8 * a) * (s + 1) - 4 * a,
            ((a + 2) * s - (a + 3)) * s * s + 1,
            ((a + 2) * (1 - s) - (a + 3)) * (1 - s) * (1 - s) + 1,
            ((a * (2 - s) - 5 * a) * (2 - s) + 8 * a) * (2 - s) - 4 * a,
        )

    scales = [after / before for after, before in zip(sizes, data.shape, strict=True)]
    result = np.zeros(sizes)
    for place in np.ndindex(*sizes):
        at = [source(*item, transform) for item in zip(place, scales, sizes, data.shape, strict=True)]
        for taps in itertools.product(range(4), repeat=data.ndim):
            inner = [math.floor(x) + tap - 1 for x, tap in zip(at, taps, strict=True)]
            inner = [min(max(i, 0), size - 1) for i, size in zip(inner, data.shape, strict=True)]
            weight = math.prod(coefficients(x - math.floor(x))[tap] for x, tap in zip(at, taps, strict=True))
            result[place] += weight * data[tuple(inner)]
    return result


@pytest.mark.parametrize("transform", ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("sizes", [(7, 4), (1, 2), (2, 9)])
def test_linear_agrees_with_the_loops_of_the_page(transform, antialias, sizes):
    data = np.random.default_rng(0).standard_normal((5, 6))
    want = slow_linear(data, sizes, transform, antialias)
    attrs = {"coordinate_transformation_mode": transform, "antialias": antialias}
    for name in RESIZES:
        np.testing.assert_allclose(resized(data, sizes, "linear", name=name, **attrs), want, atol=1e-5)


@pytest.mark.parametrize("transform", ["half_pixel", "tf_half_pixel_for_nn", "align_corners"])
@pytest.mark.parametrize("coefficient", [-0.75, -0.5])
def test_cubic_agrees_with_the_loops_of_the_page(transform, coefficient):
    data = np.random.default_rng(1).standard_normal((5, 6))
    for sizes in ((7, 4), (1, 12)):
        want = slow_cubic(data, sizes, transform, coefficient)
        attrs = {"coordinate_transformation_mode": transform, "cube_coeff": coefficient}
        np.testing.assert_allclose(resized(data, sizes, "cubic", **attrs), want, atol=1e-5)


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        ("half_pixel", [0, 20, 30, 50]),  # sources 0.25, 1.75, 3.25, 4.75
        ("pytorch_half_pixel", [0, 20, 30, 50]),
        ("asymmetric", [0, 10, 30, 40]),  # 0, 1.5, 3, 4.5
        ("tf_half_pixel_for_nn", [10, 20, 40, 50]),  # 0.75, 2.25, 3.75, 5.25
        ("align_corners", [0, 20, 30, 50]),  # 0, 5/3, 10/3, 5
    ],
)
def test_each_transform_has_its_source_coordinates(transform, expected):
    line = np.arange(0, 60, 10)
    for name in RESIZES:
        found = resized(line, [4], "nearest", name=name, coordinate_transformation_mode=transform)
        assert found.tolist() == expected
        assert found.dtype == line.dtype


def test_a_single_element_comes_from_the_middle_or_the_start():
    line = np.arange(0.0, 60, 10)
    for transform, expected in (("half_pixel", 25), ("pytorch_half_pixel", 0), ("align_corners", 0), ("asymmetric", 0)):
        assert resized(line, [1], "linear", coordinate_transformation_mode=transform).tolist() == [expected]


@pytest.mark.parametrize(
    ("rounding", "fewer", "more"),
    [
        ("round_prefer_floor", [0, 10, 30, 40], [0, 0, 10, 10, 10, 20, 20, 20]),
        ("round_prefer_ceil", [0, 20, 30, 50], [0, 0, 10, 10, 20, 20, 20, 20]),
        ("floor", [0, 10, 30, 40], [0, 0, 0, 10, 10, 10, 20, 20]),
        ("ceil", [0, 20, 30, 50], [0, 10, 10, 20, 20, 20, 20, 20]),
        ("simple", [0, 20, 30, 50], [0, 0, 0, 10, 10, 10, 20, 20]),
    ],
)
def test_nearest_rounds_as_asked(rounding, fewer, more):
    """Sources 0, 1.5, 3, 4.5 among six elements; 0, 0.375, 0.75, 1.125, 1.5, 1.875, 2.25, 2.625 among three."""
    attrs = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": rounding}
    assert resized(np.arange(0, 60, 10), [4], "nearest", **attrs).tolist() == fewer
    assert resized(np.arange(0, 30, 10), [8], "nearest", **attrs).tolist() == more


@pytest.mark.parametrize("name", RESIZES)
def test_linear_onnx_takes_two_elements_and_stays_inside(name):
    assert resized([0.0, 8], [4], "linear_onnx", name=name).tolist() == [0, 2, 6, 8]
    image = np.array([[0.0, 8], [16, 24]])
    assert resized(image, [2, 4], "linear_onnx", [1, 0], name=name).tolist() == [[0, 8], [4, 12], [12, 20], [16, 24]]


@pytest.mark.parametrize("name", RESIZES)
def test_scales_give_sizes_rounded_down_with_a_tolerance(name):
    line = np.arange(3.0)
    assert resized(line, [1 / 3], "nearest", name=name).shape == (1,)
    assert resized(line, [1.9], "nearest", name=name).shape == (5,)
    assert resized(line, [0.3], "nearest", name=name).shape == (0,)
    scaled = resized(np.arange(10.0), [0.35], "nearest", name=name, coordinate_transformation_mode="asymmetric")
    assert scaled.tolist() == [0, 3, 6]  # sources 0, 2.857, 5.714: the scale counts, not 3 / 10


@pytest.mark.parametrize("name", RESIZES)
def test_padding_comes_first_and_also_on_other_axes(name):
    attrs = {"pads_begin": (1, 2), "pads_end": (0, 1)}
    found = resized([[5.0, 6, 7]], [12], "nearest", [1], name=name, **attrs)
    assert found.tolist() == [[0] * 12, [0, 0, 0, 0, 5, 5, 6, 6, 7, 7, 0, 0]]
    assert inferred(name, (1, 3), np.array([12]), np.array([1]), **attrs) == (2, 12)
    assert resized([1.0], [4], "nearest", name=name, pads_begin=(1, 7, 7)).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("name", INTERPOLATIONS)
def test_pads_of_an_interpolation_have_no_sign(name):
    pads = [attr for attr in ops[name].attrs if attr.name.startswith("pads_")]
    assert [attr.parse("0,1") for attr in pads] == [(0, 1)] * 2
    for attr in pads:
        with pytest.raises(ValueError, match="without a sign"):
            attr.parse("0,-0")


def test_bilinear_pillow_weighs_all_elements_under_a_wider_triangle():
    # centers 1 and 3, reach 2: weights 1/8 3/8 3/8 1/8 cut at the border
    assert resized([[0.0, 8, 8, 0]], [1, 2], "bilinear_pillow").tolist() == [[pytest.approx(32 / 7)] * 2]
    assert resized([[0.0, 8], [0, 8]], [2, 4], "bilinear_pillow").tolist() == [[0, 2, 6, 8]] * 2


def test_bicubic_pillow_follows_cube_coeff():
    sharp = resized([[0.0, 0, 8, 8]], [1, 8], "bicubic_pillow", cube_coeff=-1.0)[0]
    mild = resized([[0.0, 0, 8, 8]], [1, 8], "bicubic_pillow", cube_coeff=-0.5)[0]
    assert sharp.min() < mild.min() < 0 < 8 < mild.max() < sharp.max()
    np.testing.assert_allclose(mild + mild[::-1], 8)


def test_pillow_modes_round_floats_once():
    image = np.array([[0.1875, 1.1875, 10.1875, 50.1875], [100.1875, 99.1875, 999.1875, 1000.1875]])
    found = resized(image.astype(ml_dtypes.bfloat16), [5, 6], "bicubic_pillow", cube_coeff=-0.5)
    assert found[0].astype(float).tolist() == [-9.75, -4.46875, -18.5, -81, -69, -41]


def test_pillow_modes_round_integers_after_each_pass():
    image = np.array([[0, 1], [0, 0]], np.uint8)
    # across: 0 0 1 1 (0.25 and 0.75 rounded); then down: 0.25 of 1 is 0, 0.75 is 1
    found = resized(image, [4, 4], "bilinear_pillow")
    assert found.tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int64, np.uint64, np.int32])
def test_integers_are_rounded_and_saturate(dtype):
    top = np.iinfo(dtype).max
    assert resized(np.array([0, 1, 3], dtype), [6], "linear").tolist() == [0, 0, 1, 2, 3, 3]
    step = resized(np.array([0, 0, top, top], dtype), [8], "cubic")
    assert step.dtype == dtype
    assert step.tolist()[-3:] == [top] * 3


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
@pytest.mark.parametrize("mode", ["nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow"])
def test_floats_keep_their_type(dtype, mode):
    found = resized(np.ones((2, 3), dtype), [4, 2], mode)
    assert found.dtype == dtype
    np.testing.assert_allclose(found.astype(float), 1)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic", "bilinear_pillow"])
def test_unchanged_and_empty_images(mode):
    image = np.arange(6.0).reshape(2, 3)
    same = resized(image, [2, 3], mode)
    assert same.tolist() == image.tolist()
    assert not np.shares_memory(same, image)
    assert resized(np.zeros((0, 2, 3)), [4, 5], mode, [1, 2]).shape == (0, 4, 5)
    assert resized(image, [0, 3], mode).shape == (0, 3)


def interpolated_1(data, sizes, axes, mode, **attrs):
    return ops["Interpolate-1"](np.asarray(data), np.array(sizes), axes=axes, mode=mode, **attrs).tolist()


def test_interpolate_1_aligns_corners_unless_told_otherwise():
    line = [[0.0, 8, 16]]
    assert interpolated_1(line, [5], (1,), "linear") == [[0, 4, 8, 12, 16]]
    assert interpolated_1(line, [6], (1,), "linear", align_corners=False) == [
        [0, 2, 6, 10, 14, 16]
    ]  # half_pixel: no padding, not the axes 2 and 3 of four
    image = [[[[0.0, 8]]]]
    assert interpolated_1(image, [1, 4], (2, 3), "linear", align_corners=False) == [[[[0, 4, 8, 8]]]]
    assert interpolated_1(line, [6], (1,), "nearest", align_corners=False) == [[0, 0, 8, 8, 16, 16]]


def test_interpolate_1_pads_the_interpolated_axes():
    assert interpolated_1([[[[4.0]]]], [3], (3,), "nearest", pads_begin=(1,), pads_end=(1,)) == [[[[0, 4, 0]]]]
    pads = {"pads_begin": (0, 0, 0, 1), "pads_end": (0, 0, 0, 1)}
    assert interpolated_1([[[[4.0]]]], [3], (3,), "nearest", **pads) == [[[[0, 4, 0]]]]


def test_interpolate_1_belongs_to_the_first_three_opsets():
    find = registry().find
    versions = {version: find("Interpolate", f"opset{version}").name for version in (1, 3, 4, 10, 11, 16)}
    assert list(versions.values()) == ["Interpolate-1"] * 2 + ["Interpolate-4"] * 2 + ["Interpolate-11"] * 2


@pytest.mark.parametrize("name", RESIZES)
def test_unknown_sizes_scale_and_other_axes_stay_themselves(name):
    batch, height, width = fresh(), fresh(), fresh(4, 9)
    image, axes = (batch, 3, height, width), np.array([2, 3])
    found = inferred(name, image, np.array([2.0, 0.5], np.float32), axes)
    assert found[:2] == (batch, 3)
    assert (found[2] == height * 2) is True
    assert (found[3].low, found[3].high) == (2, 4)
    found = inferred(name, image, np.array([1.0, 1.7], np.float32), axes)
    assert (found[2] == height) is True
    assert (found[3].low, found[3].high) == (6, 15)
    sizes = Tensor("i64", (2,), np.array([height * 2, 7], object))
    assert inferred(name, image, sizes, axes) == (batch, 3, height * 2, 7)
    unknown = inferred(name, image, Tensor("i64", (2,)), axes)
    assert unknown[:2] == (batch, 3)
    assert all(isinstance(size, Dim) for size in unknown[2:])
    assert inferred(name, image, Tensor("f32", (2,)), axes)[1] == 3
    assert len(inferred(name, image, np.array([5, 6]), Tensor("i64", (2,)))) == 4


@pytest.mark.parametrize("name", INTERPOLATIONS)
def test_interpolations_c1_axes_outside_the_rank_or_repeated(name):
    with pytest.raises(Violation, match=r"`axes` has 2, outside \[0, 2\)") as caught:
        inferred(name, (3, 3), np.array([4]), np.array([2]))
    assert caught.value.label == "C1"
    with pytest.raises(Violation, match="expected different ones"):
        inferred(name, (3, 3), np.array([4, 4]), np.array([1, 1]))


@pytest.mark.parametrize("name", INTERPOLATIONS)
def test_interpolations_c2_targets_that_do_not_match_the_axes(name):
    with pytest.raises(Violation, match="has 1 elements for 2 axes") as caught:
        inferred(name, (3, 3), np.array([4]), np.array([0, 1]))
    assert caught.value.label == "C2"


@pytest.mark.parametrize("name", INTERPOLATIONS)
def test_interpolations_c3_a_negative_size(name):
    with pytest.raises(Violation, match="has -1, expected 0 or more") as caught:
        inferred(name, (3, 3), np.array([-1]), np.array([1]))
    assert caught.value.label == "C3"


@pytest.mark.parametrize("name", RESIZES)
def test_interpolations_c3_a_scale_of_0(name):
    with pytest.raises(Violation, match="expected more than 0") as caught:
        inferred(name, (3, 3), np.array([0.0], np.float32), np.array([1]))
    assert caught.value.label == "C3"


@pytest.mark.parametrize("name", INTERPOLATIONS)
def test_interpolations_c4_nothing_to_interpolate(name):
    with pytest.raises(Violation, match="axis 1 of the padded data is empty") as caught:
        inferred(name, (3, 0), np.array([4]), np.array([1]))
    assert caught.value.label == "C4"


def test_interpolate_1_takes_its_modes_as_they_are():
    (mode,) = (attr for attr in registry().ops["Interpolate-1"].attrs if attr.name == "mode")
    with pytest.raises(ValueError, match="is `LINEAR`, expected one of nearest, linear"):
        mode.parse("LINEAR")


def test_interpolate_1_c5_area_has_no_definition():
    with pytest.raises(Violation, match="`mode` is `area`, which has no definition") as caught:
        inferred("Interpolate-1", (3, 3), np.array([4, 4]), mode="area")
    assert caught.value.label == "C5"


def test_interpolate_1_c6_pads_of_other_axes():
    with pytest.raises(Violation, match=r"`pads_end` is \[1, 0, 0\] for rank 2 and axes \[1\]") as caught:
        inferred("Interpolate-1", (3, 3), np.array([4]), np.array([1]), pads_end=(1, 0, 0))
    assert caught.value.label == "C6"
    op, given = ops["Interpolate-1"], (np.float32([[1, 2]]), np.array([4]))
    attrs = {"axes": (1,), "mode": "nearest", "align_corners": False, "pads_end": (1, 0)}
    assert tolerated(op, *given, **attrs) == ("C6", "`pads_end` is [1, 0] for rank 2 and axes [1]")
    assert op(*given, **attrs).tolist() == [[1, 1, 2, 2], [0, 0, 0, 0]]


def test_interpolate_4_c5_sizes_and_scales_that_are_no_vectors():
    op, data, axes = ops["Interpolate-4"], np.float32([[1, 2]]), np.array([1])
    attrs = {"mode": "nearest", "shape_calculation_mode": "sizes"}
    given = data, np.array([4]), np.float32([[1]]), axes
    assert tolerated(op, *given, **attrs) == ("C5", "`scales` is [1, 1], expected one axis")
    assert op(*given, **attrs).tolist() == [[1, 1, 2, 2]]
    with pytest.raises(Violation, match="`sizes` is \\[\\], expected one axis") as caught:
        op(data, np.array(4), np.float32([1]), axes, **attrs)
    assert caught.value.label == "C5"
    unread = {**attrs, "shape_calculation_mode": "scales"}
    assert op(data, np.array(7), np.float32([2]), axes, **unread).tolist() == [[1, 1, 2, 2]]
    unknown = [Tensor("f32", (1, 2)), Tensor.of(np.array([4])), Tensor("f32", None), Tensor.of(axes)]
    assert op.infer(unknown, op.defaults | attrs).outputs[0].shape == (1, 4)


def test_interpolate_11_c5_targets_of_the_other_kind():
    for by, targets in (("sizes", np.array([2.0], np.float32)), ("scales", np.array([2]))):
        with pytest.raises(Violation, match=f"but shape_calculation_mode is `{by}`") as caught:
            inferred("Interpolate-11", (3,), targets, shape_calculation_mode=by)
        assert caught.value.label == "C5"


def test_interpolate_11_c6_pillow_modes_with_other_than_two_axes():
    for axes in (np.array([1]), None):
        with pytest.raises(Violation, match=r"there are [13] axes, expected 2 in mode `bicubic_pillow`") as caught:
            inferred("Interpolate-11", (3, 3, 3), np.array([4]), axes, mode="bicubic_pillow")
        assert caught.value.label == "C6"


def test_interpolate_11_c6_pillow_modes_along_the_batch():
    for axes in ([0, 2], [3, 0]):
        for mode in ("bilinear_pillow", "bicubic_pillow"):
            with pytest.raises(Violation, match=rf"`axes` has 0, the axis of the batch, in mode `{mode}`") as caught:
                inferred("Interpolate-11", (1, 2, 4, 6), np.array([8, 3]), np.array(axes), mode=mode)
            assert caught.value.label == "C6"
    for shape in ((4, 6), (4, 6, 2)):  # of which OpenVINO takes any axes
        result = inferred("Interpolate-11", shape, np.array([8, 3]), np.array([0, 1]), mode="bicubic_pillow")
        assert result == (8, 3, *shape[2:])


def sampled(data, places, **attrs):
    """`places` are pairs (x, y), all in one row."""
    grid = np.asarray(places, np.float64)[np.newaxis, np.newaxis]
    return ops["GridSample-9"](np.asarray(data)[np.newaxis, np.newaxis], grid, **attrs)[0, 0, 0].tolist()


SQUARE = [[1.0, 2], [4, 8]]


def test_grid_sample_places_the_ends_at_edges_or_centers():
    assert sampled(SQUARE, [(0, 0), (-0.5, -0.5), (-1, -0.5)]) == [3.75, 1, 0.5]
    assert sampled(SQUARE, [(-1, -1), (1, 1), (1, -1), (0, -1)], align_corners=True) == [1, 8, 2, 1.5]


def test_grid_sample_treats_places_outside_as_padding_mode_says():
    places = [(-1.5, -0.5), (2.5, -0.5), (-1, -0.5)]  # pixels -1, 3, -0.5 of the first row
    assert sampled(SQUARE, places) == [0, 0, 0.5]
    assert sampled(SQUARE, places, padding_mode="border") == [1, 2, 1]
    assert sampled(SQUARE, places, padding_mode="reflection") == [1, 1, 1]
    places = [(-3, -1), (5, -1)]  # pixels -1, 3
    assert sampled(SQUARE, places, padding_mode="reflection", align_corners=True) == [2, 2]
    assert sampled([[7.0]], [(3, -9)], padding_mode="reflection", align_corners=True) == [7]


def test_grid_sample_nearest_rounds_halves_to_even():
    places = [(-0.75, -1), (-0.25, -1), (0.25, -1), (0.75, -1)]  # pixels 0.5, 1.5, 2.5, 3.5
    line = [[0, 1, 2, 3, 4]]
    assert sampled(line, places, mode="nearest", align_corners=True) == [0, 2, 2, 4]


def test_grid_sample_bicubic_is_a_product_of_cubics():
    line = np.arange(25.0).reshape(5, 5)
    places = [(0, 0), (0.25, 0), (-0.1, 0.3)]
    found = sampled(line, places, mode="bicubic", align_corners=True, padding_mode="border")
    assert found[0] == 12

    def cubic(x, y):
        rows, columns = int(np.floor(y)), int(np.floor(x))
        total = 0
        for i, j in np.ndindex(4, 4):
            dy, dx = abs(y - (rows + i - 1)), abs(x - (columns + j - 1))
            weights = [
                1.25 * d**3 - 2.25 * d**2 + 1 if d < 1 else -0.75 * (d**3 - 5 * d**2 + 8 * d - 4) for d in (dy, dx)
            ]
            total += weights[0] * weights[1] * line[np.clip(rows + i - 1, 0, 4), np.clip(columns + j - 1, 0, 4)]
        return total

    np.testing.assert_allclose(found, [cubic(2 * x + 2, 2 * y + 2) for x, y in places])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.int32, np.uint8])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample_keeps_the_type(dtype, mode):
    data = np.full((2, 3, 4, 4), 5, dtype)
    grid = np.zeros((2, 1, 2, 2), np.float16)
    grid[..., 0, :] = np.nan if mode == "nearest" else 0.1
    found = ops["GridSample-9"](data, grid, mode=mode)
    assert found.dtype == dtype
    assert found.shape == (2, 3, 1, 2)
    np.testing.assert_array_equal(found, 5)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("dtype", [np.int8, np.int32])
def test_grid_sample_of_equal_integers_is_them_whatever_the_weights(dtype, mode):
    places = np.random.default_rng(7).uniform(-0.6, 0.6, (1, 20, 20, 2)).astype(np.float32)
    found = ops["GridSample-9"](np.full((1, 2, 6, 7), 36, dtype), places, mode=mode, padding_mode="border")
    np.testing.assert_array_equal(found, 36)  # not 35, which a sum of 35.999996 would be cut to


def test_grid_sample_shapes():
    op, batch, height = ops["GridSample-9"], fresh(), fresh()
    data, grid = Tensor("f32", (batch, 3, fresh(), 8)), Tensor("f32", (batch, height, 7, 2))
    assert op.infer([data, grid], op.defaults).outputs[0].shape == (batch, 3, height, 7)
    empty = op(np.zeros((1, 2, 3, 3), np.float32), np.zeros((1, 0, 4, 2), np.float32))
    assert empty.shape == (1, 2, 0, 4)


def test_gridsample_9_c1_an_image_without_pixels():
    with pytest.raises(Violation, match="`data` is an image of 0 x 3 pixels") as caught:
        sampled(np.zeros((0, 3)), [(0, 0)])
    assert caught.value.label == "C1"


NV12 = ["NV12toRGB-8", "NV12toBGR-8"]
COLOURS = ["NV12toRGB-8", "NV12toBGR-8", "I420toRGB-8", "I420toBGR-8"]


def slow_rgb(y, u, v):
    c, d, e = y - 16, u - 128, v - 128
    values = (1.164 * c + 1.596 * e, 1.164 * c - 0.391 * d - 0.813 * e, 1.164 * c + 2.018 * d)
    return [min(max(value, 0), 255) for value in values]


@pytest.mark.parametrize("name", COLOURS)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float16, np.float64])
def test_colours_agree_with_loops(name, dtype):
    rng = np.random.default_rng(0)
    y, u, v = (rng.integers(0, 256, shape).astype(dtype) for shape in ((2, 4, 6), (2, 2, 3), (2, 2, 3)))
    if name in NV12:
        planes = [y[..., np.newaxis], np.stack([u, v], axis=-1)]
        flat = planes[1].reshape(2, 2, 6)
    else:
        planes = [plane[..., np.newaxis] for plane in (y, u, v)]
        flat = np.concatenate([u.reshape(2, 6), v.reshape(2, 6)], axis=1).reshape(2, 2, 6)
    whole = np.concatenate([y, flat], axis=1)[..., np.newaxis]
    found = ops[name](*planes)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, ops[name](whole))
    if name.endswith("BGR-8"):
        found = found[..., ::-1]
    for n, i, j in np.ndindex(*y.shape):
        want = slow_rgb(float(y[n, i, j]), float(u[n, i // 2, j // 2]), float(v[n, i // 2, j // 2]))
        want = [math.floor(value + 0.5) for value in want] if dtype == np.uint8 else want
        np.testing.assert_allclose(found[n, i, j].astype(float), want, rtol=1e-3, atol=1e-3)


def colour_shape(name, *shapes):
    op = ops[name]
    return op.infer([None if shape is None else Tensor("u8", shape) for shape in shapes], {}).outputs[0].shape


@pytest.mark.parametrize("name", COLOURS)
def test_colour_shapes(name):
    halves = [(1, 240, 320, 2)] if name in NV12 else [(1, 240, 320, 1)] * 2
    assert colour_shape(name, (1, 720, 640, 1)) == (1, 480, 640, 3)
    assert colour_shape(name, (1, 480, 640, 1), *halves) == (1, 480, 640, 3)
    batch, width = fresh(), fresh()
    found = colour_shape(name, (batch, fresh(), width, 1))
    assert (found[0], found[2], found[3]) == (batch, width, 3)
    assert colour_shape(name, (1, fresh(4, 8), 4, 1)) == (1, 4, 4, 3)


@pytest.mark.parametrize("name", COLOURS)
def test_one_plane_tells_the_size_of_an_image(name):
    halves = [(1, 240, 320, 2)] if name in NV12 else [(1, 240, fresh(), 1), (1, fresh(), 320, 1)]
    assert colour_shape(name, (1, fresh(), fresh(), 1), *halves) == (1, 480, 640, 3)


@pytest.mark.parametrize("name", COLOURS)
def test_colours_c1_odd_sizes(name):
    for rows, width, message in ((6, 3, "the width is 3, expected an even one"), (5, 4, "`data` has 5 rows")):
        with pytest.raises(Violation, match=message) as caught:
            colour_shape(name, (1, rows, width, 1))
        assert caught.value.label == "C1"
    halves = [(1, 1, 2, 2)] if name in NV12 else [(1, 1, 2, 1)] * 2
    with pytest.raises(Violation, match="the height is 3, expected an even one"):
        colour_shape(name, (1, 3, 4, 1), *halves)


@pytest.mark.parametrize("name", COLOURS)
def test_colours_c2_planes_that_do_not_have_half_the_size(name):
    halves = [(1, 2, 2, 2)] if name in NV12 else [(1, 2, 2, 1)] * 2
    with pytest.raises(Violation, match="the colours have 2 x 2 pixels and the brightness 4 x 6") as caught:
        colour_shape(name, (1, 4, 6, 1), *halves)
    assert caught.value.label == "C2"


@pytest.mark.parametrize("name", ["I420toRGB-8", "I420toBGR-8"])
def test_colours_c3_two_planes(name):
    with pytest.raises(Violation, match="there are 2 inputs, expected 1 or 3") as caught:
        colour_shape(name, (1, 4, 6, 1), (1, 2, 3, 1))
    assert caught.value.label == "C3"


TO_NV12 = ["RGBtoNV12-17", "BGRtoNV12-17"]


def test_nv12_of_written_out_pixels():
    black, white, red, blue = (0, 0, 0), (255, 255, 255), (255, 0, 0), (0, 0, 255)
    image = np.array([[[black, white, red, red], [black, white, red, blue]]], np.float64)
    planes = ops["RGBtoNV12-17"](image, single_plane=False)
    np.testing.assert_allclose(planes[0][0, ..., 0], [[16, 235.045, 81.535, 81.535], [16, 235.045, 81.535, 40.99]])
    np.testing.assert_allclose(planes[1], [[[[128, 128], [127.68125, 207.4325]]]])


def slow_yuv(red, green, blue):
    y = 0.257 * red + 0.504 * green + 0.098 * blue + 16
    u = -0.148 * red - 0.291 * green + 0.439 * blue + 128
    v = 0.439 * red - 0.368 * green - 0.071 * blue + 128
    return [min(max(value, 0), 255) for value in (y, u, v)]


@pytest.mark.parametrize("name", TO_NV12)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float16, np.float64, ml_dtypes.bfloat16])
def test_nv12_agrees_with_loops(name, dtype):
    image = np.random.default_rng(0).integers(0, 256, (2, 4, 6, 3)).astype(dtype)
    y, colours = ops[name](image, single_plane=False)
    assert y.dtype == colours.dtype == dtype
    whole = np.concatenate([y[..., 0], colours.reshape(2, 2, 6)], axis=1)[..., np.newaxis]
    np.testing.assert_array_equal(ops[name](image), whole)
    ordered = image[..., ::-1] if name == "BGRtoNV12-17" else image
    rounded = (lambda value: math.floor(value + 0.5)) if dtype == np.uint8 else (lambda value: float(dtype(value)))
    for n, i, j in np.ndindex(2, 2, 3):
        square = [(2 * i + k, 2 * j + m) for k in (0, 1) for m in (0, 1)]
        pixels = [
            [rounded(value) for value in slow_yuv(*map(float, ordered[n, row, column]))] for row, column in square
        ]
        found = [float(y[n, row, column, 0]) for row, column in square]
        np.testing.assert_allclose(found, [pixel[0] for pixel in pixels], rtol=1e-15)
        means = [rounded(sum(pixel[k] for pixel in pixels) / 4) for k in (1, 2)]
        np.testing.assert_allclose(colours[n, i, j].astype(float), means, rtol=1e-15)


def test_each_pixel_is_rounded_before_the_mean():
    image = np.array([[[[0, 0, 1], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]]], np.uint8)
    image[0, :, :, 2] = [[2, 2], [2, 0]]  # 128.878 is 129 three times: their mean with 128 is 128.75
    assert ops["RGBtoNV12-17"](image, single_plane=False)[1][0, 0, 0, 0] == 129
    image[0, :, :, 2] = 1  # 128.439 is 128, as would be its mean
    assert ops["RGBtoNV12-17"](image, single_plane=False)[1][0, 0, 0, 0] == 128
    image[0, :, :, 2] = [[2, 2], [0, 0]]  # the mean of 129 and 128 rounds up, that of 128.878 and 128 would not
    assert ops["RGBtoNV12-17"](image, single_plane=False)[1][0, 0, 0, 0] == 129


def nv12_shapes(name, shape, single_plane=True):
    return [tensor.shape for tensor in ops[name].infer([Tensor("u8", shape)], {"single_plane": single_plane}).outputs]


@pytest.mark.parametrize("name", TO_NV12)
def test_nv12_shapes(name):
    assert nv12_shapes(name, (1, 480, 640, 3)) == [(1, 720, 640, 1)]
    assert nv12_shapes(name, (1, 480, 640, 3), False) == [(1, 480, 640, 1), (1, 240, 320, 2)]
    assert nv12_shapes(name, (0, 0, 2, 3), False) == [(0, 0, 2, 1), (0, 0, 1, 2)]
    batch, height, width = fresh(0), fresh(0), fresh(0)
    assert nv12_shapes(name, (batch, 4, width, 3)) == [(batch, 6, width, 1)]
    assert nv12_shapes(name, (batch, height, width, 3), False)[0] == (batch, height, width, 1)
    assert [len(shape) for shape in nv12_shapes(name, None, False)] == [4, 4]
    assert ops[name].infer([Tensor("u8", None)], {"single_plane": True}).counted
    assert ops[name](np.zeros((0, 2, 4, 3), np.float32)).shape == (0, 3, 4, 1)


@pytest.mark.parametrize("name", TO_NV12)
def test_colours_into_planes_c1_odd_sizes(name):
    for shape, message in (((1, 3, 4, 3), "the height is 3, expected an even one"), ((1, 4, 5, 3), "the width is 5")):
        with pytest.raises(Violation, match=message) as caught:
            nv12_shapes(name, shape)
        assert caught.value.label == "C1"
