"""Detection ops."""

import math
from itertools import zip_longest

import ml_dtypes
import numpy as np
import pytest
from irrun.opsets._priors import cell_prior_count, cell_priors
from tolerance import tolerated

from irrun.spec import Dim, Tensor, Violation, fresh
from irrun.spec.dtypes import element_type
from irrun.spec.registry import registry

ops = registry().ops
random = np.random.default_rng(3)


def f32(*values):
    return np.array(values, np.float32)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def ones(*shape):
    return np.ones(shape, np.float32)


BATCHES = np.array([0])
ALIGN = {"pooled_h": 1, "pooled_w": 1, "sampling_ratio": 1, "spatial_scale": 1.0}
DETECTION = {
    "keep_top_k": (3,),
    "nms_threshold": 0.5,
    "normalized": True,
    "variance_encoded_in_target": True,
    "background_label_id": -1,
}
PROPOSAL = {
    "base_size": 4,
    "pre_nms_topn": 9,
    "post_nms_topn": 2,
    "nms_thresh": 0.5,
    "feat_stride": 4,
    "min_size": 1,
    "ratio": (1.0,),
    "scale": (1.0,),
}
GENERATED = {"min_size": 1.0, "nms_threshold": 0.5, "pre_nms_count": 9, "post_nms_count": 2}
DETECTRON = {
    "score_threshold": 0.1,
    "nms_threshold": 0.5,
    "num_classes": 2,
    "post_nms_count": 4,
    "max_detections_per_image": 3,
    "max_delta_log_wh": 4.0,
    "deltas_weights": (1.0, 1.0, 1.0, 1.0),
}
YOLO = {"axis": 1, "coords": 4, "classes": 2, "end_axis": 3, "num": 1}
SIZES = [np.array([1, 2]), np.array([8, 16])]
PRIOR = {"min_size": (4.0,), "offset": 0.5}

VALID = {
    "ROIPooling-1": ([ones(2, 3, 4, 4), zeros(2, 5)], {"pooled_h": 2, "pooled_w": 2, "spatial_scale": 1.0}),
    "ROIAlign-3": ([ones(1, 3, 4, 4), zeros(1, 4), BATCHES], ALIGN | {"mode": "avg"}),
    "ROIAlign-9": ([ones(1, 3, 4, 4), zeros(1, 4), BATCHES], ALIGN | {"mode": "avg"}),
    "ROIAlignRotated-15": ([ones(1, 3, 4, 4), zeros(1, 5), BATCHES], ALIGN),
    "PSROIPooling-1": ([ones(2, 8, 4, 4), zeros(2, 5)], {"output_dim": 2, "group_size": 2, "spatial_scale": 1.0}),
    "DeformablePSROIPooling-1": (
        [ones(2, 8, 4, 4), zeros(2, 5), zeros(2, 2, 3, 3)],
        {"output_dim": 2, "group_size": 2, "spatial_scale": 1.0, "part_size": 3},
    ),
    "ExperimentalDetectronROIFeatureExtractor-6": (
        [zeros(2, 4), ones(1, 3, 8, 8), ones(1, 3, 4, 4)],
        {"output_size": 2, "sampling_ratio": 1, "pyramid_scales": (4, 8)},
    ),
    "RegionYolo-1": ([zeros(2, 7, 2, 3)], YOLO),
    "ReorgYolo-1": ([zeros(1, 4, 4, 2)], {"stride": (2,)}),
    "PriorBox-1": (SIZES, PRIOR),
    "PriorBox-8": (SIZES, PRIOR),
    "PriorBoxClustered-1": (SIZES, {"offset": 0.5}),
    "ExperimentalDetectronPriorGridGenerator-6": ([zeros(3, 4), zeros(1, 2, 2, 3), zeros(1, 3, 8, 9)], {}),
    "DetectionOutput-1": ([zeros(1, 4), ones(1, 2), ones(1, 1, 4)], DETECTION | {"num_classes": 2}),
    "DetectionOutput-8": ([zeros(1, 4), ones(1, 2), ones(1, 1, 4)], DETECTION),
    "Proposal-1": ([ones(1, 2, 1, 1), zeros(1, 4, 1, 1), f32(20, 20, 1)], PROPOSAL),
    "Proposal-4": ([ones(1, 2, 1, 1), zeros(1, 4, 1, 1), f32(20, 20, 1)], PROPOSAL),
    "GenerateProposals-9": (
        [f32([20, 20, 1]), zeros(1, 2, 1, 4), zeros(1, 4, 1, 2), ones(1, 1, 1, 2)],
        GENERATED,
    ),
    "ExperimentalDetectronGenerateProposalsSingleImage-6": (
        [f32(20, 20, 1), zeros(2, 4), zeros(4, 1, 2), ones(1, 1, 2)],
        GENERATED,
    ),
    "ExperimentalDetectronDetectionOutput-6": (
        [f32([0, 0, 4, 4]), zeros(1, 8), f32([0.25, 0.75]), f32([20, 20, 1])],
        DETECTRON,
    ),
}
EXPERIMENTAL = [name for name in VALID if name.startswith("Experimental")]


def run(name, *inputs, **attrs):
    """The op with its valid attributes, except for those given."""
    result = ops[name](*inputs, **(VALID[name][1] | attrs))
    return list(result) if isinstance(result, tuple) else result


def broken(name, changes=None, **attrs):
    """The label and message of what is wrong with the valid inputs, some of them replaced by number."""
    inputs = list(VALID[name][0])
    for number, array in (changes or {}).items():
        inputs[number : number + 1] = [] if array is None else [array]
    with pytest.raises(Violation) as caught:
        run(name, *inputs, **attrs)
    return caught.value.label, caught.value.message


def inferred(name, *inputs, **attrs):
    """The inferred outputs for (type, shape) or arrays."""
    tensors = [item if item is None or isinstance(item, Tensor) else Tensor.of(item) for item in inputs]
    return ops[name].infer(tensors, ops[name].defaults | VALID[name][1] | attrs).outputs


def test_every_detection_op_takes_its_valid_inputs_and_gives_what_it_infers():
    for name, (inputs, attrs) in VALID.items():
        results = run(name, *inputs)
        results = results if isinstance(results, list) else [results]
        for result, tensor in zip(results, inferred(name, *inputs, **attrs), strict=True):
            assert element_type(result.dtype) == tensor.type, name
            sizes = zip(result.shape, tensor.shape, strict=True)
            assert all(a <= b.high if isinstance(b, Dim) else a == b for a, b in sizes), name


@pytest.mark.parametrize("type", [np.float16, ml_dtypes.bfloat16, np.float64], ids=lambda t: t.__name__)
def test_every_detection_op_keeps_the_type(type):
    for name, (inputs, _) in VALID.items():
        results = run(name, *(item.astype(type) if item.dtype == np.float32 else item for item in inputs))
        for result in results if isinstance(results, list) else [results]:
            expected = np.float32 if name.startswith("PriorBox") else type
            assert result.dtype == expected or result.dtype.kind == "i", name


@pytest.mark.parametrize("name", EXPERIMENTAL)
@pytest.mark.parametrize("version", ["experimental", "extension", "opset6", "opset16"])
def test_old_layers_are_found(name, version):
    assert registry().find(name.rpartition("-")[0], version) is ops[name]
    assert registry().find("Proposal", "extension") is ops["Proposal-4"]


# regions of interest

BATCH_IN_ROIS = ["ROIPooling-1", "PSROIPooling-1", "DeformablePSROIPooling-1"]
BATCH_APART = ["ROIAlign-3", "ROIAlign-9", "ROIAlignRotated-15"]


@pytest.mark.parametrize("name", ["ROIPooling-1", "PSROIPooling-1", "DeformablePSROIPooling-1"])
def test_pooled_regions_c1_batch_outside(name):
    with pytest.raises(Violation) as caught:
        run(name, VALID[name][0][0], f32([1, 0, 0, 0, 0], [2, 0, 0, 0, 0]))
    assert caught.value.label == "C1"
    assert caught.value.message.startswith("`rois[1, 0]` is 2, outside [-1, 2)")


@pytest.mark.parametrize("name", ["ROIAlign-3", "ROIAlign-9", "ROIAlignRotated-15"])
def test_aligned_regions_c1_batch_outside(name):
    with pytest.raises(Violation) as caught:
        run(name, *VALID[name][0][:2], np.array([-1]))
    assert caught.value.label == "C1"
    assert caught.value.message == "`batch_indices[0]` is -1, outside [0, 1)"


@pytest.mark.parametrize(
    "name",
    ["ROIPooling-1", "ROIAlign-3", "ROIAlign-9", "ROIAlignRotated-15", "PSROIPooling-1", "DeformablePSROIPooling-1"],
)
def test_regions_c2_no_scale(name):
    with pytest.raises(Violation) as caught:
        run(name, *VALID[name][0], spatial_scale=-1.0)
    assert caught.value.label == "C2"
    assert caught.value.message == "`spatial_scale` is -1, expected more than 0"


@pytest.mark.parametrize("name", ["ROIAlign-3", "ROIAlign-9", "ROIAlignRotated-15", "DeformablePSROIPooling-1"])
def test_regions_of_scale_0_are_points(name):
    arrays, attrs = VALID[name]
    found = tolerated(ops[name], *arrays, **attrs | {"spatial_scale": 0.0})
    assert found == ("C2", "`spatial_scale` is 0, expected more than 0")


@pytest.mark.parametrize("name", ["ROIPooling-1", "PSROIPooling-1"])
@pytest.mark.parametrize("scale", [math.inf, 1e39, 1e-50])
def test_pooled_regions_c2_a_scale_beyond_32_bits(name, scale):
    message = f"`spatial_scale` is {scale:g}, which is no normal 32-bit float"
    assert broken(name, spatial_scale=scale) == ("C2", message)


@pytest.mark.parametrize(
    ("name", "attr", "text"),
    [
        ("ROIPooling-1", "method", "MAX"),
        ("PSROIPooling-1", "mode", "Average"),
        ("DeformablePSROIPooling-1", "mode", "BILINEAR_DEFORMABLE"),
        ("DetectionOutput-1", "code_type", "caffe.PriorBoxParameter.corner"),
        ("DetectionOutput-8", "code_type", "CAFFE.PRIORBOXPARAMETER.CENTER_SIZE"),
        ("Proposal-1", "framework", "TensorFlow"),
        ("Proposal-4", "framework", "TENSORFLOW"),
    ],
)
def test_words_that_are_no_enums_are_taken_as_they_are(name, attr, text):
    (found,) = (each for each in ops[name].attrs if each.name == attr)
    with pytest.raises(ValueError, match=f"is `{text}`, expected one of"):
        found.parse(text)


@pytest.mark.parametrize(
    ("name", "attr"),
    [
        *(
            (name, attr)
            for name in ("ROIAlign-3", "ROIAlign-9", "ROIAlignRotated-15")
            for attr in ("pooled_h", "pooled_w")
        ),
        *((name, "sampling_ratio") for name in ("ROIAlign-3", "ROIAlign-9", "ROIAlignRotated-15")),
        *(("PSROIPooling-1", attr) for attr in ("spatial_bins_x", "spatial_bins_y")),
        *(("DetectionOutput-8", attr) for attr in ("background_label_id", "top_k", "keep_top_k")),
    ],
)
def test_numbers_that_openvino_keeps_in_32_bits(name, attr):
    (found,) = (each for each in ops[name].attrs if each.name == attr)
    assert found.parse("2147483647")
    with pytest.raises(ValueError, match="is 2147483648, expected 2147483647 or less"):
        found.parse("2147483648")


def has_no_pixels(name, label, number=0, title="data"):
    """Check that feature maps without rows or columns are refused where there are regions, and only there."""
    inputs = VALID[name][0]
    names = [port.name for port in ops[name].inputs]
    of_regions = {"rois", "batch_indices", "offsets"}
    for axis, what in ((2, "rows"), (3, "columns")):
        empty = np.delete(inputs[number], slice(None), axis)
        with pytest.raises(Violation) as caught:
            run(name, *inputs[:number], empty, *inputs[number + 1 :])
        assert caught.value.label == label
        assert caught.value.message == f"`{title}` has no {what}, but there are `rois`"
        no_regions = [array[:0] if port in of_regions else array for port, array in zip_longest(names, inputs)]
        no_regions[number] = empty
        assert not any(map(len, run(name, *no_regions)))


def test_roipooling_1_c4_no_pixels():
    has_no_pixels("ROIPooling-1", "C4", title="feature_maps")


def test_psroipooling_1_c4_no_pixels():
    has_no_pixels("PSROIPooling-1", "C4")


def test_deformablepsroipooling_1_c5_no_pixels():
    has_no_pixels("DeformablePSROIPooling-1", "C5")


def test_experimentaldetectronroifeatureextractor_6_c3_no_pixels():
    has_no_pixels("ExperimentalDetectronROIFeatureExtractor-6", "C3", 1, "pyramid[0]")
    has_no_pixels("ExperimentalDetectronROIFeatureExtractor-6", "C3", 2, "pyramid[1]")


def test_roialign_3_c3_no_pixels():
    has_no_pixels("ROIAlign-3", "C3")


def test_roialign_9_c3_no_pixels():
    has_no_pixels("ROIAlign-9", "C3")


def test_roialignrotated_15_c3_no_pixels():
    has_no_pixels("ROIAlignRotated-15", "C3")


def test_roipooling_1_c3_other_output_size():
    label, message = broken("ROIPooling-1", output_size=(2, 3))
    assert (label, message) == ("C3", "`output_size` is [2, 3], but the pooled sizes are [2, 2]")


@pytest.mark.parametrize("name", BATCH_IN_ROIS)
def test_a_batch_of_minus_one_ends_the_list(name):
    result = run(name, VALID[name][0][0], f32([1, 0, 0, 3, 3], [-1, 0, 0, 0, 0], [0, 0, 0, 3, 3]))
    assert result[0].min() == 1
    assert not result[1:].any()


@pytest.mark.parametrize("name", BATCH_IN_ROIS)
def test_regions_of_unknown_number(name):
    rois = Tensor("f32", (count := fresh(), 5))
    (tensor,) = inferred(name, Tensor("f32", (fresh(), 8 if "PS" in name else fresh(), fresh(), fresh())), rois)
    assert (tensor.shape[0] == count) is True
    assert tensor.shape[2:] == (2, 2)
    assert run(name, VALID[name][0][0], zeros(0, 5)).shape[0] == 0


@pytest.mark.parametrize("name", BATCH_APART)
def test_aligned_regions_of_unknown_number(name):
    rois, channels = Tensor("f32", (count := fresh(), fresh())), fresh()
    (tensor,) = inferred(name, Tensor("f32", (fresh(), channels, 4, 4)), rois, Tensor("i32", (fresh(),)))
    assert (tensor.shape[0] == count) is True
    assert tensor.shape[1:] == (channels, 1, 1)


def test_roi_pooling_max_rounds_the_corners_and_overlaps_bins():
    image = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
    rois = f32([0, 0.5, 0.4, 2.5, 2.6])  # to columns 1..3 and rows 0..3
    assert run("ROIPooling-1", image, rois).ravel().tolist() == [7, 8, 17, 18]
    assert run("ROIPooling-1", image, f32([0, 9, 9, 9, 9])).ravel().tolist() == [0] * 4
    assert run("ROIPooling-1", image, f32([0, 3, 3, 1, 1])).ravel().tolist() == [18] * 4
    for far in (1e10, 1e19, np.inf):  # all pixels are in the first bin
        assert run("ROIPooling-1", image, f32([0, 0, 0, far, far])).ravel().tolist() == [24, 0, 0, 0]


def test_roi_pooling_bilinear_reads_a_grid_from_corner_to_corner():
    image = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    result = run("ROIPooling-1", image, f32([0, 0, 0, 1, 0.5]), method="bilinear", pooled_h=3, pooled_w=3)
    assert result[0, 0].tolist() == [[0, 1, 2], [1.5, 2.5, 3.5], [3, 4, 5]]
    middle = run("ROIPooling-1", image, f32([0, 0, 0, 1, 1]), method="bilinear", pooled_h=1, pooled_w=1)
    assert middle.item() == 4
    outside = run("ROIPooling-1", image, f32([0, 0, 0, 1.5, 1]), method="bilinear")
    assert outside[0, 0].tolist() == [[0, 0], [6, 0]]


def slow_value(image, y, x):
    height, width = image.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = (min(max(p, 0), n - 1) for p, n in ((y, height), (x, width)))
    top, left = math.floor(y), math.floor(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    upper = image[top, left] * (1 - x + left) + image[top, right] * (x - left)
    lower = image[bottom, left] * (1 - x + left) + image[bottom, right] * (x - left)
    return upper * (1 - y + top) + lower * (y - top)


def slow_align(image, box, bins, ratio, scale, mode, before, after, least):
    x0, y0, x1, y1 = ((corner + before) * scale - after for corner in box)
    width, height = max(x1 - x0, least), max(y1 - y0, least)
    result = np.zeros(bins)
    for row, column in np.ndindex(*bins):
        rows, columns = (ratio or math.ceil(size / n) for size, n in zip((height, width), bins, strict=True))
        samples = [
            slow_value(
                image,
                y0 + (row + (i + 0.5) / rows) * height / bins[0],
                x0 + (column + (j + 0.5) / columns) * width / bins[1],
            )
            for i in range(rows)
            for j in range(columns)
        ]
        result[row, column] = max(samples) if mode == "max" else sum(samples) / len(samples)
    return result


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("aligned", ["asymmetric", "half_pixel", "half_pixel_for_nn"])
def test_roi_align_equals_a_slow_loop(mode, ratio, aligned):
    image = random.standard_normal((2, 1, 6, 7))
    boxes = np.array([[0.5, 1, 4, 5.5], [-3, 2, 9, 12], [2, 2, 2.25, 2.5]])
    attrs = {"pooled_h": 2, "pooled_w": 3, "sampling_ratio": ratio, "spatial_scale": 0.75, "mode": mode}
    got = run("ROIAlign-9", image, boxes, np.array([0, 1, 1]), **attrs, aligned_mode=aligned)
    before, after = {"asymmetric": (0, 0), "half_pixel": (0.5, 0.5), "half_pixel_for_nn": (0, 0.5)}[aligned]
    least = 1 if aligned == "asymmetric" else 0
    for number, batch in enumerate((0, 1, 1)):
        expected = slow_align(image[batch, 0], boxes[number], (2, 3), ratio, 0.75, mode, before, after, least)
        np.testing.assert_allclose(got[number, 0], expected, atol=1e-12)
    if aligned == "asymmetric":
        np.testing.assert_array_equal(run("ROIAlign-3", image, boxes, np.array([0, 1, 1]), **attrs), got)


def test_roi_align_of_a_region_without_pixels_is_0():
    attrs = {"sampling_ratio": 0, "aligned_mode": "half_pixel"}
    assert run("ROIAlign-9", ones(1, 1, 4, 4), f32([2, 2, 2, 2]), BATCHES, **attrs).item() == 0
    not_numbers = f32([np.nan, 0, np.inf, 2])
    assert run("ROIAlign-9", ones(1, 1, 4, 4), not_numbers, BATCHES).item() == 0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", range(4))
def test_regions_that_are_not_finite_have_no_samples(place, value):
    region = np.array([[0.0, 0.0, 2.0, 2.0]], np.float32)
    region[0, place] = value
    for mode in ("avg", "max"):
        attrs = {"sampling_ratio": 0, "mode": mode, "aligned_mode": "half_pixel"}
        assert run("ROIAlign-9", ones(1, 1, 4, 4), region, BATCHES, **attrs).item() == 0
    rotated = np.append(region, [[0]], 1).astype(np.float32)
    assert run("ROIAlignRotated-15", ones(1, 1, 4, 4), rotated, BATCHES, sampling_ratio=0).item() == 0


def test_roi_align_rotated_turns_against_the_clock():
    image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    attrs = {"pooled_h": 2, "pooled_w": 2}
    upright = run("ROIAlignRotated-15", image, f32([2, 2, 2, 2, 0]), BATCHES, **attrs)[0, 0]
    assert upright.tolist() == [[5, 6], [9, 10]]
    left = run("ROIAlignRotated-15", image, f32([2, 2, 2, 2, np.pi / 2]), BATCHES, **attrs)[0, 0]
    np.testing.assert_allclose(left, [[9, 5], [10, 6]], atol=1e-5)
    right = run("ROIAlignRotated-15", image, f32([2, 2, 2, 2, np.pi / 2]), BATCHES, **attrs, clockwise_mode=True)
    np.testing.assert_allclose(right[0, 0], [[6, 10], [5, 9]], atol=1e-5)


def test_roi_feature_extractor_maps_sizes_to_layers():
    layers = [np.full((1, 1, 8, 8), value, np.float32) for value in (1, 2, 3, 4)]
    sides = [1, 111, 112, 223, 224, 448, 10000]
    rois = f32(*([0, 0, side, side] for side in sides), [5, 5, 5, 9])
    attrs = {"output_size": 1, "pyramid_scales": (2000, 2000, 2000, 2000)}
    features, same = run("ExperimentalDetectronROIFeatureExtractor-6", rois, *layers, **attrs)
    assert features.ravel().tolist() == [1, 1, 2, 2, 3, 4, 4, 0]
    assert same.tolist() == rois.tolist()
    assert same is not rois


def test_experimentaldetectronroifeatureextractor_6_c1_layers():
    name = "ExperimentalDetectronROIFeatureExtractor-6"
    assert broken(name, {2: None, 1: None}) == ("C1", "there is no layer, expected one or more")
    assert broken(name, {2: ones(1, 2, 4, 4)}) == ("C1", "`pyramid[1]` has 2 channels, but 3 before")
    assert broken(name, {1: ones(2, 3, 4, 4)}) == ("C1", "`pyramid[0]` has a batch of 2, expected 1")
    assert broken(name, {1: ones(3, 4, 4)}) == ("C1", "`pyramid[0]` has rank 3, expected 4")


def test_experimentaldetectronroifeatureextractor_6_c2_too_few_scales():
    label, message = broken("ExperimentalDetectronROIFeatureExtractor-6", pyramid_scales=(4,))
    assert (label, message) == ("C2", "`pyramid_scales` has 1 elements for 2 layers")


def test_roi_feature_extractor_knows_the_channels_from_any_layer():
    rois, unknown = Tensor("f32", (5, 4)), Tensor("f32", (1, fresh(), fresh(), fresh()))
    known = Tensor("f32", (1, 3, fresh(), fresh()))
    features, _ = inferred("ExperimentalDetectronROIFeatureExtractor-6", rois, unknown, known)
    assert features.shape == (5, 3, 2, 2)
    features, _ = inferred("ExperimentalDetectronROIFeatureExtractor-6", rois, Tensor("f32", None))
    assert isinstance(features.shape[1], Dim)
    layers = [Tensor("f32", (1, channels, 8, 8)) for channels in (fresh(), fresh(2, 5), fresh(4, 9))]
    scales = (1, 1, 1)
    features, _ = inferred("ExperimentalDetectronROIFeatureExtractor-6", rois, *layers, pyramid_scales=scales)
    assert features.shape[1].bounds == "4..5"


def test_psroi_pooling_average_reads_one_channel_per_bin():
    maps = np.arange(32, dtype=np.float32).reshape(1, 8, 2, 2)
    result = run("PSROIPooling-1", maps, f32([0, 0, 0, 1, 1]))
    assert result[0].tolist() == [[[0, 5], [10, 15]], [[16, 21], [26, 31]]]
    assert not run("PSROIPooling-1", maps, f32([0, 5, 5, 6, 6])).any()
    assert not run("PSROIPooling-1", maps, f32([0, 0, 0, -np.inf, 1])).any()


@pytest.mark.parametrize("value", [1.0, np.nan, np.inf])
def test_psroi_pooling_of_many_regions_is_that_of_each(value):
    rng = np.random.default_rng(11)
    maps = rng.normal(size=(2, 3 * 16, 9, 12)).astype(np.float32)
    maps[0, :, 4, 5] = value
    corners = np.sort(rng.uniform(-4, 16, (300, 2, 2)), axis=1).reshape(300, 4)
    regions = np.concatenate([rng.integers(0, 2, (300, 1)), corners], axis=1).astype(np.float32)
    attrs = {"output_dim": 3, "group_size": 4, "spatial_scale": 0.8}
    together = run("PSROIPooling-1", maps, regions, **attrs)
    apart = np.concatenate([run("PSROIPooling-1", maps, region[None], **attrs) for region in regions])
    np.testing.assert_allclose(together, apart, rtol=1e-5, atol=1e-6)
    assert (together == 0).all((1, 2, 3)).any()
    regions[7, 0] = -1
    assert not run("PSROIPooling-1", maps, regions, **attrs)[7:].any()


def test_psroi_pooling_bilinear_averages_the_spatial_bins():
    maps = np.concatenate([np.full((1, 1, 3, 3), value, np.float32) for value in (1, 10, 3, 30)], 1)
    attrs = {"mode": "bilinear", "output_dim": 2, "spatial_bins_x": 2, "spatial_bins_y": 1, "group_size": 1}
    assert run("PSROIPooling-1", maps, f32([0, 0, 0, 1, 1]), **attrs).ravel().tolist() == [2, 20]
    ramp = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    attrs = {"mode": "bilinear", "output_dim": 1, "group_size": 3}
    assert run("PSROIPooling-1", ramp, f32([0, 0, 0, 1, 0.5]), **attrs)[0, 0].tolist() == [
        [0, 1, 2],
        [1.5, 2.5, 3.5],
        [3, 4, 5],
    ]


def test_psroipooling_1_c3_channels():
    assert broken("PSROIPooling-1", {0: ones(1, 7, 4, 4)}) == ("C3", "`data` has 7 channels, expected 8")
    label, message = broken("PSROIPooling-1", mode="bilinear", spatial_bins_x=3)
    assert (label, message) == ("C3", "`data` has 8 channels, expected 6")


def test_deformable_psroi_pooling_moves_bins_by_their_class():
    maps = np.tile(np.arange(6, dtype=np.float32), (1, 2, 6, 1))
    rois = f32([0, 0, 0, 2, 2])
    attrs = {"output_dim": 2, "group_size": 1, "part_size": 1}
    still = run("DeformablePSROIPooling-1", maps, rois, **attrs)
    assert still.ravel().tolist() == [0, 0]  # half a pixel before the first column
    offsets = np.array([1, 0, 0.5, 0], np.float32).reshape(1, 4, 1, 1)
    moved = run("DeformablePSROIPooling-1", maps, rois, offsets, **attrs)
    assert moved.ravel().tolist() == [2.5, 1]
    half = run("DeformablePSROIPooling-1", maps, rois, offsets, **attrs, trans_std=0.5)
    assert half.ravel().tolist() == [1, 0.25]
    gone = run("DeformablePSROIPooling-1", maps, rois, offsets * 3, **attrs)
    assert gone.ravel().tolist() == [0, 4]


def test_deformablepsroipooling_1_c3_channels():
    label, message = broken("DeformablePSROIPooling-1", {0: ones(1, 7, 4, 4)})
    assert (label, message) == ("C3", "`data` has 7 channels, expected 8")


def test_deformablepsroipooling_1_c4_offsets():
    label, message = broken("DeformablePSROIPooling-1", part_size=2)
    assert (label, message) == ("C4", "`offsets` has a size of 3, `part_size` is 2")
    label, message = broken("DeformablePSROIPooling-1", {2: zeros(2, 6, 3, 3)})
    assert (label, message) == ("C4", "`offsets` has 6 channels, expected twice a divisor of `output_dim`, 2")


# YOLO


def test_region_yolo_without_softmax_takes_the_sigmoid_of_classes():
    data = f32(0, 0, 5, 6, 0, 0, np.log(3)).reshape(1, 7, 1, 1)
    result = run("RegionYolo-1", data, do_softmax=False, mask=(0,))
    np.testing.assert_allclose(result.ravel(), [0.5, 0.5, 5, 6, 0.5, 0.5, 0.75], rtol=1e-6)
    assert result.shape == data.shape


def test_region_yolo_softmax_of_every_region_and_pixel():
    data = random.standard_normal((2, 14, 2, 3))
    result = run("RegionYolo-1", data, num=2).reshape(data.shape)
    for batch, region, y, x in np.ndindex(2, 2, 2, 3):
        before, after = (item[batch, region * 7 : region * 7 + 7, y, x] for item in (data, result))
        powers = np.exp(before[5:])
        np.testing.assert_allclose(after[[0, 1, 4]], 1 / (1 + np.exp(-before[[0, 1, 4]])))
        np.testing.assert_array_equal(after[2:4], before[2:4])
        np.testing.assert_allclose(after[5:], powers / powers.sum())


@pytest.mark.parametrize(
    ("anchors", "mask", "said"),
    [
        ((1.0, 2.0, 3.0, 4.0), (0,), None),
        ((), (7,), None),
        ((1.0, 2.0, 3.0), (0,), "`anchors` has 3 numbers, expected pairs of a width and a height"),
        ((1.0, 2.0), (1,), "`mask` has 1, outside [0, 1) of the pairs in `anchors`"),
        ((1.0, 2.0), (-1,), "`mask` has -1, outside [0, 1) of the pairs in `anchors`"),
    ],
)
def test_regionyolo_1_c3_anchors_that_are_no_pairs(anchors, mask, said):
    attrs = ops["RegionYolo-1"].defaults | YOLO | {"do_softmax": False, "anchors": anchors, "mask": mask}
    tolerated = ops["RegionYolo-1"].infer([Tensor("f32", (2, 7, 2, 3))], attrs).tolerated
    assert [(each.violation.label, each.violation.message) for each in tolerated] == ([("C3", said)] if said else [])


def test_region_yolo_flattens_from_axis_to_end_axis():
    assert run("RegionYolo-1", zeros(2, 7, 2, 3), axis=1, end_axis=2).shape == (2, 14, 3)
    assert run("RegionYolo-1", zeros(2, 7, 2, 3), axis=-4, end_axis=-1).shape == (84,)
    assert run("RegionYolo-1", zeros(2, 7, 2, 3), axis=2, end_axis=2).shape == (2, 7, 2, 3)
    (tensor,) = inferred("RegionYolo-1", Tensor("f32", (batch := fresh(), 7, height := fresh(), 3)))
    assert (tensor.shape == (batch, height * 21)) is True


def test_regionyolo_1_c1_axes():
    assert broken("RegionYolo-1", axis=4) == ("C1", "`axis` is 4, outside [-4, 4) for rank 4")
    assert broken("RegionYolo-1", end_axis=-5) == ("C1", "`end_axis` is -5, outside [-4, 4) for rank 4")
    arrays, attrs = VALID["RegionYolo-1"]
    found = tolerated(ops["RegionYolo-1"], *arrays, **attrs | {"axis": 2, "end_axis": 1})
    assert found == ("C1", "`axis` is 2, behind `end_axis` 1")


def test_regionyolo_1_c2_channels():
    assert broken("RegionYolo-1", num=2) == ("C2", "`data` has 7 channels, expected 14")
    assert broken("RegionYolo-1", do_softmax=False) == ("C2", "`data` has 7 channels, expected 0")


def test_reorg_yolo_takes_every_type():
    for data in (np.arange(16).reshape(1, 4, 2, 2).astype(str), np.ones((1, 4, 2, 2), bool)):
        assert run("ReorgYolo-1", data).shape == (1, 16, 1, 1)
    assert run("ReorgYolo-1", zeros(0, 4, 2, 2)).shape == (0, 16, 1, 1)


def test_reorg_yolo_of_unknown_sizes():
    (tensor,) = inferred("ReorgYolo-1", Tensor("u8", (1, channels := fresh(4), 8, height := fresh())))
    assert (tensor.shape == (1, channels * 4, 4, height // 2)) is True
    (tensor,) = inferred("ReorgYolo-1", Tensor("u8", (1, 4, fresh(7, 9), 2)))
    assert tensor.shape == (1, 16, 4, 1)


def test_reorgyolo_1_c1_sizes():
    assert broken("ReorgYolo-1", {0: zeros(1, 4, 4, 3)}) == ("C1", "`W` is 3, expected a multiple of 2")
    assert broken("ReorgYolo-1", {0: zeros(1, 4, 5, 2)}) == ("C1", "`H` is 5, expected a multiple of 2")


def test_reorgyolo_1_c2_channels():
    assert broken("ReorgYolo-1", {0: zeros(1, 3, 4, 2)}) == ("C2", "`C` is 3, expected 4 or more")


def test_reorgyolo_1_c3_several_strides():
    assert broken("ReorgYolo-1", stride=()) == ("C3", "`stride` is [], expected one number")
    assert broken("ReorgYolo-1", stride=(2, 3)) == ("C3", "`stride` is [2, 3], expected one number")
    op, data = ops["ReorgYolo-1"], np.arange(36).reshape(1, 4, 3, 3).repeat(2, 2).repeat(2, 3)
    (told,) = op.infer([Tensor.of(data)], {"stride": (2, 2)}).tolerated
    assert str(told).startswith("C3: `stride` is [2, 2], expected one number; OpenVINO takes the first")
    assert (op(data, stride=(2, 2)) == op(data, stride=(2,))).all()


# prior boxes

PRIORS = ["PriorBox-1", "PriorBox-8", "PriorBoxClustered-1"]


def sides(name, grid=(1, 1), image=(16, 16), **attrs):
    """The priors as (center x, center y, width, height) in pixels."""
    boxes = run(name, np.array(grid), np.array(image), **attrs)[0].reshape(-1, 4) * f32(*image[::-1], *image[::-1])
    return np.concatenate([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]], 1).round(4).tolist()


@pytest.mark.parametrize("name", ["PriorBox-1", "PriorBox-8", "PriorBoxClustered-1"])
def test_priors_c1_variance(name):
    with pytest.raises(Violation) as caught:
        run(name, *SIZES, variance=(0.1, 0.2))
    assert caught.value.label == "C1"
    assert caught.value.message == "`variance` has 2 elements, expected 0, 1 or 4"


@pytest.mark.parametrize("name", ["PriorBox-1", "PriorBox-8", "PriorBoxClustered-1"])
def test_priors_c2_sizes(name):
    with pytest.raises(Violation) as caught:
        run(name, np.array([2, -1]), SIZES[1])
    assert caught.value.label == "C2"
    assert caught.value.message == "`output_size[1]` is -1, expected 0 or more"
    with pytest.raises(Violation) as caught:
        run(name, SIZES[0], np.array([0, 1]))
    assert caught.value.message == "`image_size[0]` is 0, expected 1 or more"


@pytest.mark.parametrize("name", ["PriorBox-1", "PriorBox-8"])
def test_prior_boxes_c3_too_many_max_sizes(name):
    with pytest.raises(Violation) as caught:
        run(name, *SIZES, max_size=(5.0, 6.0))
    assert caught.value.label == "C3"
    assert caught.value.message == "`max_size` has 2 elements, `min_size` 1"


@pytest.mark.parametrize("name", ["PriorBox-1", "PriorBox-8"])
def test_prior_boxes_c4_densities(name):
    with pytest.raises(Violation) as caught:
        run(name, *SIZES, fixed_size=(5.0, 6.0), density=(1.0,))
    assert caught.value.label == "C4"
    assert caught.value.message == "`density` has 1 elements, `fixed_size` 2"


@pytest.mark.parametrize("name", ["PriorBox-1", "PriorBox-8"])
def test_prior_boxes_c5_ratio_of_0(name):
    with pytest.raises(Violation) as caught:
        run(name, *SIZES, aspect_ratio=(0.0,))
    assert caught.value.label == "C5"
    assert caught.value.message == "`aspect_ratio` holds 0, expected more"


@pytest.mark.parametrize("name", ["PriorBox-1", "PriorBox-8"])
def test_prior_boxes_c6_sizes_without_end(name):
    with pytest.raises(Violation) as caught:
        run(name, *SIZES, fixed_size=(float("inf"),), density=(1.0,))
    assert caught.value.label == "C6"
    assert caught.value.message == "`fixed_size` holds (inf,), expected numbers"


@pytest.mark.parametrize(
    "attrs",
    [
        {"min_size": (2.0, 3.0), "max_size": (4.0,), "aspect_ratio": (2.0, 1.0, 2.0), "flip": True},
        {"min_size": (2.0, 3.0), "max_size": (4.0,), "aspect_ratio": (2.0,), "scale_all_sizes": False},
        {"fixed_size": (2.0, 4.0), "density": (2.0, 3.0), "aspect_ratio": (2.0, 3.0)},
        {"fixed_size": (2.0,), "density": (2.0,), "fixed_ratio": (1.0, 2.0, 3.0), "min_size": (1.0,)},
        {"density": (1000000.0,), "min_size": (1.0,)},
    ],
)
def test_prior_boxes_are_counted_without_making_them(attrs):
    attrs = ops["PriorBox-8"].defaults | attrs
    assert cell_prior_count(attrs) == len(cell_priors(attrs))


def test_priorboxclustered_1_c3_widths_and_heights():
    label, message = broken("PriorBoxClustered-1", width=(1.0, 2.0))
    assert (label, message) == ("C3", "`width` has 2 elements, `height` 1")


@pytest.mark.parametrize("name", PRIORS)
def test_priors_of_an_unknown_grid(name):
    (tensor,) = inferred(name, Tensor("i64", (2,)), Tensor("i64", (2,)))
    assert tensor.shape[0] == 2
    assert (tensor.shape[1] % 4 == 0) is True
    (tensor,) = inferred(name, np.array([3, 5]), Tensor("i64", (2,)))
    assert tensor.shape == (2, 60)
    assert run(name, np.array([0, 5]), SIZES[1]).shape == (2, 0)


def test_prior_box_orders_squares_and_ratios():
    attrs = {"min_size": (4.0,), "max_size": (9.0,), "aspect_ratio": (4.0, 4.0, 1.0), "flip": True}
    square, larger, wide, high = [8, 8, 4, 4], [8, 8, 6, 6], [8, 8, 8, 2], [8, 8, 2, 8]
    assert sides("PriorBox-1", **attrs) == [square, larger, wide, high]
    assert sides("PriorBox-8", **attrs) == [square, larger, wide, high]
    assert sides("PriorBox-8", **attrs, min_max_aspect_ratios_order=False) == [square, wide, high, larger]


def test_prior_box_steps_and_clips():
    attrs = {"min_size": (4.0,), "step": 8.0, "offset": 0.25}
    assert sides("PriorBox-8", (1, 2), **attrs) == [[2, 2, 4, 4], [10, 2, 4, 4]]
    assert sides("PriorBox-8", (1, 2), (16, 16), min_size=(4.0,), offset=0.0) == [[4, 8, 4, 4], [12, 8, 4, 4]]
    clipped = run("PriorBox-8", SIZES[0], np.array([16, 16]), min_size=(40.0,), clip=True)[0]
    assert clipped.tolist() == [0, 0, 1, 1] * 2


def test_prior_box_variances():
    for variance, expected in (((), [0.125] * 4), ((0.5,), [0.5] * 4), ((1, 2, 3, 4), [1, 2, 3, 4])):
        result = run("PriorBox-8", *SIZES, variance=variance)[1]
        np.testing.assert_allclose(result, (expected if variance else [0.1] * 4) * 2)


def test_prior_box_of_density_covers_the_fixed_size():
    attrs = {"fixed_size": (8.0,), "density": (2.0,), "min_size": ()}
    assert sides("PriorBox-8", **attrs) == [[6, 6, 8, 8], [10, 6, 8, 8], [6, 10, 8, 8], [10, 10, 8, 8]]
    ratios = sides("PriorBox-8", **attrs, fixed_ratio=(4.0,))
    assert ratios[0] == [7, 6, 14, 4]  # cut at the left edge: -2 to 14
    assert len(sides("PriorBox-8", **attrs, aspect_ratio=(2.0,))) == 8


def test_prior_box_relative_to_the_image():
    attrs = {"min_size": (0.25, 0.5), "max_size": (9.0, 9.0), "scale_all_sizes": False, "aspect_ratio": (4.0,)}
    expected = [[8, 8, 4, 4], [8, 8, 8, 8], [8, 8, 8, 2]]
    assert sides("PriorBox-8", **attrs) == expected
    assert sides("PriorBox-8", **attrs, step=-1.0) == expected
    assert sides("PriorBox-8", **attrs, step=0.5, offset=1.0) == expected


def test_prior_box_clustered_steps():
    assert sides("PriorBoxClustered-1", step=8.0) == [[4, 4, 1, 1]]
    assert sides("PriorBoxClustered-1") == [[8, 8, 1, 1]]
    assert sides("PriorBoxClustered-1", step=8.0, step_w=4.0) == [[2, 8, 1, 1]]
    boxes = sides("PriorBoxClustered-1", width=(2.0, 4.0), height=(4.0, 2.0), clip=False)
    assert boxes == [[8, 8, 2, 4], [8, 8, 4, 2]]


def test_prior_grid_generator_fills_a_part_of_the_grid():
    priors, maps, image = f32([0, 0, 0, 0]), zeros(1, 1, 2, 2), zeros(1, 3, 8, 8)
    name = "ExperimentalDetectronPriorGridGenerator-6"
    assert run(name, priors, maps, image).tolist() == [[2, 2, 2, 2], [6, 2, 6, 2], [2, 6, 2, 6], [6, 6, 6, 6]]
    assert run(name, priors, maps, image, flatten=False).shape == (2, 2, 1, 4)
    part = run(name, priors, maps, image, h=1, w=1, stride_x=2.0, stride_y=4.0)
    assert part.tolist() == [[1, 2, 1, 2], [0] * 4, [0] * 4, [0] * 4]


def test_experimentaldetectronpriorgridgenerator_6_c1_beyond_the_feature_map():
    label, message = broken("ExperimentalDetectronPriorGridGenerator-6", h=3)
    assert (label, message) == ("C1", "`h` is 3, above 2, that of `feature_map`")


def test_prior_grid_of_an_unknown_feature_map():
    name, image = "ExperimentalDetectronPriorGridGenerator-6", Tensor("f32", (1, 3, fresh(), fresh()))
    maps = Tensor("f32", (1, fresh(), height := fresh(), 5))
    (tensor,) = inferred(name, Tensor("f32", (3, 4)), maps, image)
    assert (tensor.shape == (height * 15, 4)) is True
    (tensor,) = inferred(name, Tensor("f32", (3, 4)), maps, image, flatten=False)
    assert (tensor.shape == (height, 5, 3, 4)) is True


# DetectionOutput

DETECTIONS = ["DetectionOutput-1", "DetectionOutput-8"]
PRIOR_BOXES = [0, 0, 0.5, 0.5, 0, 0, 0.5, 0.375, 0.5, 0.5, 1, 1]
"""The second overlaps the first by 0.75."""


def detected(scores, priors=PRIOR_BOXES, deltas=None, more=(), **attrs):
    """The rows of DetectionOutput-8 before the end marker."""
    count = len(priors) // (4 if attrs.get("normalized", True) else 5)
    scores = np.array(scores, np.float32).reshape(1, -1)
    if np.array(priors).ndim == 1:
        priors = np.array(priors, np.float32)[None, None]
    deltas = zeros(1, 4 * count) if deltas is None else np.array(deltas, np.float32).reshape(1, -1)
    rows = run("DetectionOutput-8", deltas, scores, priors, *more, **attrs)[0, 0]
    ends = np.flatnonzero(rows[:, 0] == -1)
    if ends.size:
        assert not rows[ends[0] + 1 :].any()
        rows = rows[: ends[0]]
    return rows.round(4).tolist()


def test_detection_output_suppresses_within_a_class():
    scores = [[0.75, 0.5], [0.25, 0.875], [0.125, 0]]
    assert detected(scores, keep_top_k=(-1,)) == [
        [0, 0, 0.75, 0, 0, 0.5, 0.5],
        [0, 0, 0.125, 0.5, 0.5, 1, 1],
        [0, 1, 0.875, 0, 0, 0.5, 0.375],
    ]


def test_detection_output_keeps_the_best_of_all_classes_ordered_by_class():
    scores = [[0.75, 0.5], [0.25, 0.875], [0.5, 0.5]]
    assert [row[:3] for row in detected(scores, keep_top_k=(3,))] == [[0, 0, 0.75], [0, 0, 0.5], [0, 1, 0.875]]
    assert [row[:3] for row in detected(scores, keep_top_k=(1,))] == [[0, 1, 0.875]]
    assert [row[:3] for row in detected(scores, keep_top_k=(-1,), top_k=1)] == [[0, 0, 0.75], [0, 1, 0.875]]


def test_detection_output_background_and_threshold():
    scores = [[0.75, 0.5], [0.25, 0.875], [0.5, 0.25]]
    assert [row[:3] for row in detected(scores, background_label_id=1)] == [[0, 0, 0.75], [0, 0, 0.5]]
    assert [row[:3] for row in detected(scores, confidence_threshold=0.5)] == [[0, 0, 0.75], [0, 1, 0.875]]


def test_detection_output_like_mxnet_gives_every_prior_its_best_class():
    scores = [[0.9, 0.5, 0.25], [0.9, 0.25, 0.75], [0.9, 0.125, 0.5]]
    attrs = {"decrease_label_id": True, "confidence_threshold": 0.5}
    assert [row[:3] for row in detected(scores, **attrs)] == [[0, 0, 0.5], [0, 1, 0.75], [0, 1, 0.5]]


@pytest.mark.parametrize("decrease", [False, True])
def test_detection_output_without_classes_finds_nothing(decrease):
    attrs = {"decrease_label_id": decrease, "confidence_threshold": 0.5, "keep_top_k": (2,)}
    assert detected([], PRIOR_BOXES, [[0] * 12], **attrs) == []


def test_detection_output_decodes_corners_and_centers():
    prior, delta = [0.25, 0.25, 0.75, 0.75], [0.5, 0.25, math.log(2), 0]
    corner = detected([[1]], prior, delta)
    np.testing.assert_allclose(corner[0][3:], [0.75, 0.5, 0.75 + math.log(2), 0.75], rtol=1e-4)
    center = detected([[1]], prior, delta, code_type="caffe.PriorBoxParameter.CENTER_SIZE")
    assert center[0][3:] == [0.25, 0.375, 1.25, 0.875]
    for when in ("clip_before_nms", "clip_after_nms"):
        clipped = detected([[1]], prior, delta, code_type="caffe.PriorBoxParameter.CENTER_SIZE", **{when: True})
        assert clipped[0][3:] == [0.25, 0.375, 1, 0.875]


def test_detection_output_multiplies_by_variances():
    priors = f32([[0.25, 0.25, 0.75, 0.75], [0.5, 0.25, 0, 1]])
    attrs = {"variance_encoded_in_target": False, "keep_top_k": (1,)}
    rows = run("DetectionOutput-8", ones(1, 4), ones(1, 1), priors, **attrs)
    assert rows.ravel().tolist() == [0, 0, 1, 0.75, 0.5, 0.75, 1.75]


def test_detection_output_of_priors_in_pixels():
    attrs = {"normalized": False, "input_height": 20, "input_width": 40, "keep_top_k": (1,)}
    rows = run("DetectionOutput-8", zeros(1, 4), ones(1, 1), f32([[7, 10, 10, 20, 20]]), **attrs)
    assert rows.ravel().tolist() == [0, 0, 1, 0.25, 0.5, 0.5, 1]


def test_detection_output_of_own_locations_and_several_images():
    deltas = zeros(2, 8)
    deltas[:, 4:] = 0.25
    scores = f32([0.75, 0.5], [0.25, 0.125])
    attrs = {"share_location": False, "keep_top_k": (2,)}
    rows = run("DetectionOutput-8", deltas, scores, f32([[0, 0, 0.5, 0.5]]), **attrs)[0, 0]
    assert rows.tolist() == [
        [0, 0, 0.75, 0, 0, 0.5, 0.5],
        [0, 1, 0.5, 0.25, 0.25, 0.75, 0.75],
        [1, 0, 0.25, 0, 0, 0.5, 0.5],
        [1, 1, 0.125, 0.25, 0.25, 0.75, 0.75],
    ]


def test_detection_output_of_five_inputs_refines_the_priors_and_drops_what_is_no_object():
    more = [f32([0, 1, 0, 0.25]), f32([0.25, 0.25, 0.25, 0.25, 0, 0, 0, 0])]
    priors = [0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1]
    attrs = {"objectness_score": 0.5, "background_label_id": 0}
    rows = detected([[0.25, 0.75], [0.25, 0.75]], priors, more=more, **attrs)
    assert rows == [[0, 1, 0.75, 0.25, 0.25, 0.75, 0.75]]


@pytest.mark.parametrize(
    ("boxes", "predictions", "priors", "pairs", "shared"),
    [
        (fresh(), 10, fresh(), None, True),
        (20, 10, None, None, True),
        (fresh(), fresh(), 20, None, True),
        (40, 10, fresh(18, 30), None, False),
        (fresh(), fresh(), None, 10, True),
    ],
)
def test_any_input_of_detections_tells_how_many_priors_there_are(boxes, predictions, priors, pairs, shared):
    more = [(3, pairs), (3, fresh())] if pairs else []
    shapes = [(3, boxes), (3, predictions), None if priors is None else (1, 1, priors), *more]
    attrs = DETECTION | {"num_classes": 2, "keep_top_k": (-1,), "share_location": shared}
    op = ops["DetectionOutput-1"]
    found = op.infer([Tensor("f32", shape) for shape in shapes], op.defaults | attrs)
    assert found.outputs[0].shape == (1, 1, 3 * 2 * 5, 7)


def test_priors_and_predictions_tell_how_many_classes_there_are():
    op, attrs = ops["DetectionOutput-8"], DETECTION | {"keep_top_k": (-1,), "top_k": 4}
    tensors = [Tensor("f32", shape) for shape in ((3, 20), (3, 15), None)]
    assert op.infer(tensors, op.defaults | attrs).outputs[0].shape == (1, 1, 3 * 3 * 4, 7)
    tensors = [Tensor("f32", shape) for shape in ((3, 60), (3, fresh()), (1, 1, 20))]
    assert op.infer(tensors, op.defaults | attrs | {"share_location": False}).outputs[0].shape == (1, 1, 3 * 3 * 4, 7)


@pytest.mark.parametrize("name", ["DetectionOutput-1", "DetectionOutput-8"])
def test_detections_c1_keep_top_k(name):
    with pytest.raises(Violation) as caught:
        run(name, *VALID[name][0], keep_top_k=())
    assert caught.value.label == "C1"
    assert caught.value.message == "`keep_top_k` is empty, expected an element"


@pytest.mark.parametrize("name", ["DetectionOutput-1", "DetectionOutput-8"])
@pytest.mark.parametrize(
    ("priors", "message"),
    [
        (ones(2, 1, 4), "`proposals` has 2 batches, expected 1 or 3"),
        (ones(1, 2, 4), "`proposals` has 2 rows, expected 1"),
        (ones(1, 1, 5), "`proposals` has 5 numbers, expected a multiple of 4 above 0"),
        (ones(1, 1, 0), "`proposals` has 0 numbers, expected a multiple of 4 above 0"),
    ],
)
def test_detections_c2_proposals(name, priors, message):
    with pytest.raises(Violation) as caught:
        run(name, zeros(3, 4), ones(3, 2), priors)
    assert caught.value.label == "C2"
    assert caught.value.message == message


@pytest.mark.parametrize("name", ["DetectionOutput-1", "DetectionOutput-8"])
def test_detections_c3_box_logits(name):
    with pytest.raises(Violation) as caught:
        run(name, *VALID[name][0], share_location=False)
    assert caught.value.label == "C3"
    assert caught.value.message == "`box_logits` has 4 columns, expected 8 by `proposals`"


@pytest.mark.parametrize("name", ["DetectionOutput-1", "DetectionOutput-8"])
def test_detections_c4_class_preds(name):
    with pytest.raises(Violation) as caught:
        run(name, zeros(1, 8), ones(1, 3), ones(1, 1, 8))
    assert caught.value.label == "C4"
    expected = 4 if name == "DetectionOutput-1" else 2
    assert caught.value.message == f"`class_preds` has 3 columns, expected {expected} by `proposals`"
    assert caught.value.port == "class_preds"


@pytest.mark.parametrize(
    ("op", "shared", "boxes", "predictions", "priors", "blamed"),
    [
        ("DetectionOutput-1", True, 12, 6, 3, None),
        ("DetectionOutput-1", True, 12, 6, 4, ("C4", "proposals")),  # which the others agree against
        ("DetectionOutput-1", True, 16, 6, 3, ("C3", "box_logits")),
        ("DetectionOutput-1", True, 12, 8, 3, ("C4", "class_preds")),
        ("DetectionOutput-1", True, 16, 6, 5, ("C4", "class_preds")),  # no two agree
        ("DetectionOutput-1", False, 24, 6, 4, ("C4", "proposals")),
        ("DetectionOutput-1", False, 12, 6, 3, ("C3", "box_logits")),
        ("DetectionOutput-8", True, 12, 6, 4, ("C4", "proposals")),
        ("DetectionOutput-8", True, 16, 6, 3, ("C3", "box_logits")),
        ("DetectionOutput-8", True, 12, 7, 3, ("C4", "class_preds")),
        ("DetectionOutput-8", True, 16, 7, 3, ("C4", "class_preds")),  # no two agree
        ("DetectionOutput-8", False, 24, 6, 4, ("C4", "proposals")),
        ("DetectionOutput-8", False, 20, 6, 3, ("C3", "box_logits")),
    ],
)
def test_detections_blame_the_input_that_two_others_agree_against(op, shared, boxes, predictions, priors, blamed):
    attrs = DETECTION | {"share_location": shared} | ({"num_classes": 2} if op == "DetectionOutput-1" else {})
    inputs = [zeros(1, boxes), zeros(1, predictions), zeros(1, 1, priors * 4)]
    try:
        ops[op].infer([Tensor.of(array) for array in inputs], ops[op].defaults | attrs)
        found = None
    except Violation as violation:
        found = (violation.label, violation.port)
    assert found == blamed


@pytest.mark.parametrize("name", ["DetectionOutput-1", "DetectionOutput-8"])
def test_detections_c5_additional_inputs(name):
    with pytest.raises(Violation) as caught:
        run(name, *VALID[name][0], zeros(1, 2))
    assert caught.value.label == "C5"
    assert caught.value.message == "there are 4 inputs, expected 3 or 5"
    with pytest.raises(Violation) as caught:
        run(name, *VALID[name][0], zeros(1, 3), zeros(1, 4))
    assert caught.value.message == "`additional_class_preds` has 3 columns, expected 2"


@pytest.mark.parametrize("name", DETECTIONS)
def test_the_number_of_rows_follows_from_the_attributes(name):
    batch = fresh()
    inputs = [Tensor("f32", shape) for shape in ((batch, 12), (fresh(), 6), (1, 1, 12))]
    assert (inferred(name, *inputs)[0].shape == (1, 1, batch * 3, 7)) is True
    assert (inferred(name, *inputs, keep_top_k=(-1,))[0].shape == (1, 1, batch * 6, 7)) is True
    assert (inferred(name, *inputs, keep_top_k=(-1,), top_k=5)[0].shape == (1, 1, batch * 10, 7)) is True
    unknown = [Tensor("f32", (2, fresh())), Tensor("f32", (2, fresh())), Tensor("f32", (1, 1, fresh(4)))]
    assert inferred(name, *unknown)[0].shape == (1, 1, 6, 7)


# proposals

PROPOSALS = ["Proposal-1", "Proposal-4"]


def proposed(scores, deltas=None, image=(20, 20, 1), **attrs):
    """The boxes and probabilities of Proposal-4 for one anchor at pixels in a row."""
    count = len(scores)
    probabilities = np.concatenate([zeros(1, 1, 1, count), np.array(scores, np.float32).reshape(1, 1, 1, -1)], 1)
    deltas = zeros(1, 4, 1, count) if deltas is None else np.array(deltas, np.float32).T.reshape(1, 4, 1, count)
    rows, found = run("Proposal-4", probabilities, deltas, np.array(image, np.float32), **attrs)
    without = run("Proposal-1", probabilities, deltas, np.array(image, np.float32), **attrs)
    np.testing.assert_array_equal(rows, without)
    return rows.tolist(), found.tolist()


def test_proposal_orders_by_score_and_ends_with_minus_one():
    rows, found = proposed([0.5, 0.75], post_nms_topn=4)
    assert rows == [[0, 4, 0, 8, 4], [0, 0, 0, 4, 4], [-1, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
    assert found == [0.75, 0.5, 0, 0]


def test_proposal_suppresses_and_counts():
    deltas = [[0, 0, 0, 0], [-0.875, 0, 0, 0], [0, 0, 0, 0]]
    rows, found = proposed([0.5, 0.75, 0.25], deltas)
    assert found == [0.75, 0.25]
    assert rows[0] == [0, 0.5, 0, 4.5, 4]
    assert proposed([0.5, 0.75, 0.25], deltas, nms_thresh=0.9)[1] == [0.75, 0.5]
    assert proposed([0.5, 0.75, 0.25], deltas, pre_nms_topn=2)[1] == [0.75, 0]


def test_proposal_gives_small_boxes_the_score_0():
    deltas = [[0, 0, 0, 0], [0, 0, math.log(2), 0]]
    assert proposed([0.75, 0.5], deltas, min_size=5)[1] == [0.75, 0.5]  # 4 and 8 wide, and their last pixel
    assert proposed([0.75, 0.5], deltas, min_size=6)[1] == [0, 0]
    assert proposed([0.75, 0.5], deltas, min_size=3, image=(20, 20, 1, 2))[1] == [0.5, 0]
    assert proposed([0.75, 0.5], deltas, min_size=3, image=(20, 20, 2, 1))[1] == [0, 0]
    assert proposed([0.75, 0.5], deltas, min_size=3, image=(20, 20, 2))[1] == [0, 0]


def test_proposal_clips_normalizes_and_scales_deltas():
    deltas = [[-1, 0, 0, 0]]
    assert proposed([1], deltas)[0][0] == [0, 0, 0, 0, 4]
    assert proposed([1], deltas, clip_before_nms=False)[0][0] == [0, -4, 0, 0, 4]
    assert proposed([1], deltas, clip_before_nms=False, clip_after_nms=True)[0][0] == [0, 0, 0, 0, 4]
    assert proposed([1], image=(8, 16, 1), normalize=True)[0][0] == [0, 0, 0, 0.25, 0.5]
    assert proposed([1], [[2, 0, 0, 0]], box_coordinate_scale=4.0)[0][0] == [0, 2, 0, 6, 4]
    grown = proposed([1], [[0, 0, 2 * math.log(2), 0]], box_size_scale=2.0, clip_before_nms=False)[0][0]
    np.testing.assert_allclose(grown, [0, -2, 0, 6, 4], atol=1e-5)


def test_proposal_anchors_of_ratios_and_scales():
    probabilities, deltas = ones(1, 8, 1, 1), zeros(1, 16, 1, 1)
    attrs = {"ratio": (0.25, 4.0), "scale": (1.0, 2.0), "clip_before_nms": False, "nms_thresh": 1.0, "post_nms_topn": 4}
    rows = run("Proposal-1", probabilities, deltas, f32(20, 20, 1), **attrs)
    # a base of 4: 8 x 2 and 2 x 8 pixels around 1.5, the far end beyond the last pixel
    assert rows[:, 1:].tolist() == [[-2, 1, 6, 3], [-6, 0, 10, 4], [1, -2, 3, 6], [0, -6, 4, 10]]


def test_proposal_like_tensorflow_swaps_the_axes_and_clips_first():
    rows, _ = proposed([0.75, 0.5], framework="tensorflow", nms_thresh=0.9)
    assert rows == [[0, 0, 0, 2, 2], [0, 0, 2, 2, 6]]


@pytest.mark.parametrize("name", ["Proposal-1", "Proposal-4"])
def test_proposals_c1_image_shape(name):
    with pytest.raises(Violation) as caught:
        run(name, *VALID[name][0][:2], zeros(2))
    assert caught.value.label == "C1"
    assert caught.value.message == "`image_shape` has 2 elements, expected 3 or 4"


@pytest.mark.parametrize("name", ["Proposal-1", "Proposal-4"])
def test_proposals_c2_channels(name):
    with pytest.raises(Violation) as caught:
        run(name, *VALID[name][0], scale=(1.0, 2.0))
    assert caught.value.label == "C2"
    assert caught.value.message == "`class_probs` has 2 channels, expected 4 for 2 anchors"
    with pytest.raises(Violation) as caught:
        run(name, ones(1, 2, 1, 1), zeros(1, 5, 1, 1), f32(20, 20, 1))
    assert caught.value.message == "`bbox_deltas` has 5 channels, expected 4 for 1 anchors"


def test_images_may_be_missing():
    assert run("DetectionOutput-8", zeros(0, 4), ones(0, 2), ones(1, 1, 4)).shape == (1, 1, 0, 7)
    assert run("Proposal-1", ones(0, 2, 1, 1), zeros(0, 4, 1, 1), f32(20, 20, 1)).shape == (0, 5)


@pytest.mark.parametrize("name", PROPOSALS)
def test_proposals_of_an_unknown_batch(name):
    probabilities = Tensor("f32", (batch := fresh(), 2, fresh(), fresh()))
    deltas = Tensor("f32", (fresh(), 4, fresh(), fresh()))
    outputs = inferred(name, probabilities, deltas, Tensor("f32", (3,)))
    assert (outputs[0].shape == (batch * 2, 5)) is True


def generated(scores, boxes, deltas=None, image=(20, 20, 1), **attrs):
    """The boxes, scores and number of GenerateProposals-9 for anchors of one pixel."""
    count = len(scores)
    anchors = np.array(boxes, np.float32).reshape(1, 1, count, 4)
    deltas = zeros(1, 4 * count, 1, 1) if deltas is None else np.array(deltas, np.float32).reshape(1, -1, 1, 1)
    values = np.array(scores, np.float32).reshape(1, count, 1, 1)
    return [item.tolist() for item in run("GenerateProposals-9", f32(image), anchors, deltas, values, **attrs)]


def test_generate_proposals_orders_suppresses_and_counts():
    boxes = [[0, 0, 4, 4], [0, 0, 4, 3], [8, 8, 12, 12]]
    assert generated([0.5, 0.75, 0.25], boxes) == [[[0, 0, 4, 3], [8, 8, 12, 12]], [0.75, 0.25], [2]]
    assert generated([0.5, 0.75, 0.25], boxes, post_nms_count=1)[1] == [0.75]
    assert generated([0.5, 0.75, 0.25], boxes, pre_nms_count=2)[1] == [0.75]
    assert generated([0.5, 0.75, 0.25], boxes, nms_threshold=0.9)[1] == [0.75, 0.5]


def test_generate_proposals_counts_pixels_unless_normalized():
    boxes = [[0, 0, 3, 3], [0, 0, 3, 1]]  # 16 and 8 pixels
    assert generated([0.5, 0.75], boxes, normalized=False, nms_threshold=0.45)[1] == [0.75]
    assert generated([0.5, 0.75], boxes, nms_threshold=0.45)[1] == [0.75, 0.5]
    assert generated([1], [[0, 0, 30, 30]], normalized=False)[0] == [[0, 0, 19, 19]]
    assert generated([1], [[0, 0, 30, 30]])[0] == [[0, 0, 20, 20]]


def test_generate_proposals_removes_small_boxes_after_the_best_are_taken():
    boxes = [[0, 0, 4, 4], [8, 8, 12, 12], [0, 8, 9, 17]]
    assert generated([0.75, 0.5, 0.25], boxes, min_size=5.0)[1] == [0.25]
    assert generated([0.75, 0.5, 0.25], boxes, min_size=5.0, pre_nms_count=2)[1:] == [[], [0]]
    assert generated([0.75], [[0, 0, 4, 8]], min_size=2.0, image=(20, 20, 3, 2))[1] == [0.75]
    assert generated([0.75], [[0, 0, 4, 8]], min_size=2.0, image=(20, 20, 2, 3))[1] == []


def test_generate_proposals_limits_growth():
    rows = generated([1], [[50, 50, 51, 51]], [0, 0, 9, 0], image=(100, 100, 1))[0]
    np.testing.assert_allclose(rows, [[50.5 - 31.25, 50, 50.5 + 31.25, 51]], rtol=1e-5)


def test_generate_proposals_lowers_the_threshold():
    boxes = [[0, 0, 10, 10], [0, 0, 10, 8], [12, 12, 20, 20]]
    assert generated([0.75, 0.5, 0.25], boxes, nms_threshold=0.9, post_nms_count=3)[1] == [0.75, 0.5, 0.25]
    assert generated([0.75, 0.5, 0.25], boxes, nms_threshold=0.9, post_nms_count=3, nms_eta=0.75)[1] == [0.75, 0.25]


def test_generate_proposals_of_several_images():
    info, anchors = f32([20, 20, 1], [20, 20, 1]), f32([0, 0, 4, 4]).reshape(1, 1, 1, 4)
    inputs = [info, anchors, zeros(2, 4, 1, 1), f32(0.5, 0.75).reshape(2, 1, 1, 1)]
    rois, scores, counts = run("GenerateProposals-9", *inputs, roi_num_type="i32")
    assert (scores.tolist(), counts.tolist(), counts.dtype) == ([0.5, 0.75], [1, 1], np.int32)
    assert rois.shape == (2, 4)
    none = run("GenerateProposals-9", info[:0], anchors, zeros(0, 4, 1, 1), zeros(0, 1, 1, 1))
    assert [item.shape for item in none] == [(0, 4), (0,), (0,)]


def test_generate_proposals_number_is_bounded():
    tensors = [Tensor("f32", shape) for shape in ((3, 3), (fresh(), fresh(), 1, 4), (3, 4, 5, 5), (3, 1, 5, 5))]
    rois, scores, counts = inferred("GenerateProposals-9", *tensors)
    assert (rois.shape[0].low, rois.shape[0].high) == (0, 6)
    assert (rois.shape[0] == scores.shape[0]) is True
    assert counts.shape == (3,)
    assert inferred("GenerateProposals-9", *tensors, post_nms_count=0)[0].shape == (0, 4)


def test_generateproposals_9_c1_image_numbers():
    label, message = broken("GenerateProposals-9", {0: zeros(1, 5)})
    assert (label, message) == ("C1", "`im_info` has 5 columns, expected 3 or 4")


def test_generateproposals_9_c2_deltas():
    label, message = broken("GenerateProposals-9", {2: zeros(1, 5, 1, 2)})
    assert (label, message) == ("C2", "`boxesdeltas` has 5 channels, expected 4 for 1 anchors")


def single(scores, boxes, image=(20, 20, 1), **attrs):
    count = len(scores)
    inputs = [np.array(image, np.float32), np.array(boxes, np.float32), zeros(4 * count, 1, 1)]
    inputs.append(np.array(scores, np.float32).reshape(count, 1, 1))
    return [item.tolist() for item in run("ExperimentalDetectronGenerateProposalsSingleImage-6", *inputs, **attrs)]


def test_generate_proposals_single_image_fills_up_with_zeros():
    boxes = [[0, 0, 4, 4], [0, 0, 4, 3], [8, 8, 12, 12]]
    rois, scores = single([0.5, 0.75, 0.25], boxes, post_nms_count=3)
    assert rois == [[0, 0, 4, 3], [8, 8, 12, 12], [0, 0, 0, 0]]
    assert scores == [0.75, 0.25, 0]
    assert single([0.5, 0.75, 0.25], boxes, pre_nms_count=1)[1] == [0.75, 0]


def test_generate_proposals_single_image_gives_small_boxes_the_score_0_and_clips():
    boxes = [[0, 0, 4, 4], [0, 0, 30, 30]]
    assert single([0.75, 0.5], boxes, min_size=6.0) == [[[0, 0, 19, 19], [0, 0, 4, 4]], [0.5, 0]]
    assert single([0.75, 0.5], boxes, min_size=6.0, pre_nms_count=1) == [[[0, 0, 19, 19], [0, 0, 0, 0]], [0.5, 0]]


def test_experimentaldetectrongenerateproposalssingleimage_6_c1_anchors():
    label, message = broken("ExperimentalDetectronGenerateProposalsSingleImage-6", {1: zeros(3, 4)})
    assert (label, message) == ("C1", "`anchors` has 3 rows, expected 2")


def test_experimentaldetectrongenerateproposalssingleimage_6_c3_takes_all_boxes():
    boxes = [[0, 0, 4, 4], [0, 0, 4, 3], [8, 8, 12, 12]]
    every = single([0.5, 0.75, 0.25], boxes, post_nms_count=3)
    assert single([0.5, 0.75, 0.25], boxes, post_nms_count=3, pre_nms_count=-1) == every
    op = ops["ExperimentalDetectronGenerateProposalsSingleImage-6"]
    given = zeros(3), zeros(1, 4), zeros(4, 1, 1), zeros(1, 1, 1)
    attrs = {"min_size": 1.0, "nms_threshold": 0.5, "post_nms_count": 3, "pre_nms_count": -1}
    assert tolerated(op, *given, **attrs) == ("C3", "`pre_nms_count` is -1, expected 0 or more")


def test_experimentaldetectrongenerateproposalssingleimage_6_c2_deltas():
    label, message = broken("ExperimentalDetectronGenerateProposalsSingleImage-6", {2: zeros(5, 1, 2)})
    assert (label, message) == ("C2", "`deltas` has 5 channels, expected 4")


def detectron(rois, scores, deltas=None, image=(20, 30, 1), **attrs):
    rois, scores = np.array(rois, np.float32), np.array(scores, np.float32)
    deltas = zeros(len(rois), 4 * scores.shape[1]) if deltas is None else np.array(deltas, np.float32)
    attrs["num_classes"] = scores.shape[1]
    results = run("ExperimentalDetectronDetectionOutput-6", rois, deltas, scores, f32(image), **attrs)
    return [item.tolist() for item in results]


def test_detectron_detection_output_skips_the_background_and_suppresses_within_classes():
    rois, scores = [[0, 0, 9, 9], [0, 0, 9, 8], [1, 1, 1, 5]], [[0.9, 0.5, 0.25], [0.9, 0.75, 0.05], [0.9, 0.9, 0.9]]
    boxes, classes, found = detectron(rois, scores)
    assert boxes == [[0, 0, 9, 8], [0, 0, 9, 9], [0, 0, 0, 0]]
    assert (classes, found) == ([1, 2, 0], [0.75, 0.25, 0])
    boxes, classes, found = detectron(rois, scores, nms_threshold=0.95, max_detections_per_image=2)
    assert (classes, found) == ([1, 1], [0.75, 0.5])


def test_detectron_detection_output_limits_the_classes():
    rois, scores = [[0, 0, 4, 4], [10, 10, 14, 14]], [[0, 0.5, 0.75], [0, 0.25, 0.875]]
    assert detectron(rois, scores, post_nms_count=1)[1:] == [[1, 2, 0], [0.5, 0.875, 0]]
    assert detectron(rois, scores)[1:] == [[2, 2, 1], [0.875, 0.75, 0.5]]


def test_detectron_detection_output_moves_and_clips():
    deltas = [[0] * 4 + [1, 0, math.log(2), 0]]
    boxes, *_ = detectron([[10, 0, 19, 9]], [[0, 1]], deltas, deltas_weights=(2.0, 1.0, 1.0, 1.0))
    np.testing.assert_allclose(boxes[0], [10, 0, 29, 9], rtol=1e-6)
    boxes, *_ = detectron([[10, 0, 19, 9]], [[0, 1]], deltas, max_delta_log_wh=0.0)
    assert boxes[0] == [20, 0, 29, 9]
    assert detectron([[10, 0, 40, 40]], [[0, 1]])[0][0] == [10, 0, 29, 19]


def test_experimentaldetectrondetectionoutput_6_c1_columns():
    name = "ExperimentalDetectronDetectionOutput-6"
    assert broken(name, {1: zeros(1, 7)}) == ("C1", "`deltas` has 7 columns, expected 8")
    assert broken(name, {2: zeros(1, 3)}) == ("C1", "`scores` has 3 columns, expected 2")


def test_experimentaldetectrondetectionoutput_6_c2_weights():
    label, message = broken("ExperimentalDetectronDetectionOutput-6", deltas_weights=(1.0,))
    assert (label, message) == ("C2", "`deltas_weights` has 1 elements, expected 4")


def test_detectron_detection_output_of_no_regions():
    results = detectron(zeros(0, 4), zeros(0, 2), max_detections_per_image=1)
    assert results == [[[0, 0, 0, 0]], [0], [0]]
