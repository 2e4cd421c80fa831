"""Regions of feature maps pooled by compiled loops, held against the ops' kernels."""

from unittest.mock import patch

import numpy as np
import pytest
from engines.works import computed, plain, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the loops")

from irrun.opsets import _rois

from irrun.engines.compiled import regions
from irrun.engines.compiled.engine import CompiledEngine
from irrun.engines.compiled.team import Team
from irrun.spec.registry import registry

TEAM = Team(2)
ENGINE = CompiledEngine(2)
CLOSE = {"rtol": 1e-5, "atol": 2e-6}


def never(*_):
    raise AssertionError("f32 is compiled")


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 1, 2, 3])
def test_pooled_regions_are_the_same(mode, ratio):
    rng = np.random.default_rng(4)
    for shape, count, bins in (((3, 9, 7), 6, (2, 3)), ((1, 1, 1), 3, (1, 1)), ((2, 60, 60), 1, (3, 3))):
        maps = rng.normal(size=shape).astype(np.float32)
        starts = rng.uniform(-3, 6, (count, 2)).astype(np.float32)
        sizes = rng.uniform(-1, 8, (count, 2)).astype(np.float32)
        given = (maps, starts, sizes, bins, ratio, mode)
        found = regions.pooled_regions(TEAM, never, *given)
        np.testing.assert_allclose(found, _rois.pooled_regions(*given), **CLOSE)


def test_maps_that_have_their_channels_last_are_read_as_they_lie():
    rng = np.random.default_rng(8)
    lying = rng.normal(size=(9, 7, 20)).astype(np.float32)
    starts, sizes = rng.uniform(0, 6, (2, 5, 2)).astype(np.float32)
    given = (lying.transpose(2, 0, 1), starts, sizes, (2, 3), 2, "avg")
    with patch.object(regions, "turned", never):
        found = regions.pooled_regions(TEAM, never, *given)
    np.testing.assert_allclose(found, _rois.pooled_regions(*given), **CLOSE)


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_regions_that_are_not_finite_are_the_same(mode):
    rng = np.random.default_rng(6)
    maps = rng.normal(size=(3, 9, 7)).astype(np.float32)
    starts, sizes = rng.uniform(0, 4, (2, 60, 2)).astype(np.float32)
    for array in (starts, sizes):
        array[rng.random(array.shape) < 0.3] = np.nan
        array[rng.random(array.shape) < 0.2] = np.inf
    for ratio in (0, 2):
        given = (maps, starts, sizes, (2, 3), ratio, mode)
        found = regions.pooled_regions(TEAM, never, *given)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(found, _rois.pooled_regions(*given), **CLOSE)


@pytest.mark.parametrize("size", [1e6, 1e12, 3e38])
def test_regions_of_more_samples_than_memory_has_room_for_are_left_to_the_kernel(size):
    maps, starts = np.ones((1, 4, 4), np.float32), np.zeros((2, 2), np.float32)
    sizes = np.array([[3, 3], [size, size]], np.float32)
    given = (maps, starts, sizes, (2, 2))
    assert regions.pooled_regions(TEAM, lambda *_: "left", *given, 0) == "left"
    assert regions.pooled_regions(TEAM, never, *given, 2).shape == (2, 1, 2, 2)
    sizes[1, 1] = np.inf  # of which there are none
    assert regions.pooled_regions(TEAM, never, *given, 0).shape == (2, 1, 2, 2)


def test_means_of_many_samples_keep_their_digits():
    maps = np.random.default_rng(1).uniform(1, 2, (4, 300, 300)).astype(np.float32)
    given = (maps, np.zeros((1, 2), np.float32), np.full((1, 2), 300, np.float32), (1, 1), 0)
    found = regions.pooled_regions(TEAM, never, *given)
    np.testing.assert_allclose(found, _rois.pooled_regions(*given), rtol=1e-6)


ALIGN = {"pooled_h": 2, "pooled_w": 3, "sampling_ratio": 2, "spatial_scale": 0.5, "mode": "avg"}
PS = {"output_dim": 2, "group_size": 3, "spatial_scale": 0.5, "mode": "average"}


def rois_at_random(rng, count, most, batches=2):
    boxes = rng.uniform(-2, most, (count, 5)).astype(np.float32)
    boxes[:, 0] = rng.integers(0, batches, count)
    boxes[::3] = boxes[::3].round()
    boxes[::4, 3:] = boxes[::4, 1:3] + 0.25
    return boxes


def cases():
    rng = np.random.default_rng(11)
    maps = rng.normal(size=(2, 18, 9, 7)).astype(np.float32)
    images, shares = rois_at_random(rng, 20, 20), rois_at_random(rng, 20, 1.2)
    batches = images[:, 0].astype(np.int32)
    for mode in ("asymmetric", "half_pixel_for_nn", "half_pixel"):
        yield "ROIAlign-9", ALIGN | {"aligned_mode": mode}, [maps, images[:, 1:].copy(), batches]
    yield "ROIAlign-9", ALIGN | {"aligned_mode": "half_pixel"}, [maps, images[:, 1:].copy(), np.ones_like(batches)]
    yield "ROIAlign-3", ALIGN | {"mode": "max", "sampling_ratio": 0}, [maps, images[:, 1:].copy(), batches]
    layers = [rng.normal(size=(1, 5, 80 // n, 60 // n)).astype(np.float32) for n in (1, 2, 4)]
    boxes = np.concatenate([images[:, 1:] * 9, [[3, 3, 3, 9]]]).astype(np.float32)
    attrs = {"output_size": 3, "sampling_ratio": 2, "pyramid_scales": (4, 8, 16), "aligned": False}
    yield "ExperimentalDetectronROIFeatureExtractor-6", attrs, [boxes, *layers]
    stopped = [array.copy() for array in (images, shares)]
    for array in stopped:
        array[13, 0] = -1
    for number in range(2):
        whole, part = (images, shares) if number else stopped
        bins = {"pooled_h": 3, "pooled_w": 2, "spatial_scale": 0.5}
        yield "ROIPooling-1", bins | {"method": "max"}, [maps, whole]
        yield "ROIPooling-1", bins | {"method": "bilinear"}, [maps, part]
        yield "ROIPooling-1", bins | {"method": "bilinear", "pooled_h": 1}, [maps, part]
        yield "PSROIPooling-1", PS, [maps, whole]
        parts = {"mode": "bilinear", "spatial_scale": 1.0, "spatial_bins_x": 3, "spatial_bins_y": 2}
        yield "PSROIPooling-1", PS | parts | {"output_dim": 3}, [maps, part]
        yield "PSROIPooling-1", PS | parts | {"output_dim": 3, "group_size": 1}, [maps, part]
        moved = PS | {"mode": "bilinear_deformable", "trans_std": 0.2, "spatial_bins_x": 2, "spatial_bins_y": 3}
        yield "DeformablePSROIPooling-1", moved, [maps, whole]
        offsets = rng.normal(size=(20, 4, 2, 2)).astype(np.float32)
        yield "DeformablePSROIPooling-1", moved | {"part_size": 2}, [maps, whole, offsets]


@pytest.mark.parametrize(("name", "attrs", "arrays"), list(cases()))
def test_ops_give_what_their_kernels_give(name, attrs, arrays):
    attrs = registry().ops[name].defaults | attrs
    expected = plain(name, attrs, arrays)
    expected = expected if isinstance(expected, tuple) else (expected,)
    work = work_of(name, attrs, arrays, [(result.shape, "f32") for result in expected])
    compiled = ENGINE.compile(work)
    assert compiled is not None
    for found, result in zip(computed(compiled, work, arrays), expected, strict=True):
        np.testing.assert_allclose(found, result, **CLOSE)


def test_a_region_that_is_no_number_has_no_pixels():
    maps = np.ones((1, 1, 4, 4), np.float32)
    attrs = registry().ops["ROIPooling-1"].defaults | {"pooled_h": 1, "pooled_w": 1, "spatial_scale": 1.0}
    for value in (float("nan"), float("inf")):
        rois = np.array([[0, value, value, value, value]], np.float32)
        work = work_of("ROIPooling-1", attrs, [maps, rois], [((1, 1, 1, 1), "f32")])
        assert computed(ENGINE.compile(work), work, [maps, rois])[0].item() == 0


@pytest.mark.parametrize("first", [3, -1e10, -1e18, np.nan])
@pytest.mark.parametrize("last", [3, 1e10, 1e18, 3e38, np.inf, -np.inf, np.nan])
def test_corners_that_are_far_away_are_taken_for_the_same(first, last):
    maps = np.random.default_rng(4).normal(size=(1, 4, 6, 7)).astype(np.float32)
    rois = np.array([[0, first, 1, last, 4]], np.float32)
    for name, more in (("ROIPooling-1", {"pooled_h": 2, "pooled_w": 2}), ("PSROIPooling-1", {"output_dim": 1})):
        method = {"method": "max"} if name == "ROIPooling-1" else {"mode": "average", "group_size": 2}
        test_ops_give_what_their_kernels_give(name, {"spatial_scale": 1.0} | more | method, [maps, rois])


def test_pixels_beside_a_place_do_not_count():
    maps = np.zeros((1, 1, 4, 4), np.float32)
    maps[0, 0, 2] = np.inf
    attrs = PS | {"output_dim": 1, "group_size": 1, "spatial_scale": 1.0, "mode": "bilinear_deformable"}
    attrs |= {"trans_std": 0.0, "spatial_bins_x": 1, "spatial_bins_y": 1}
    rois = np.array([[0, 0.5, 1.5, 2, 2]], np.float32)  # samples from (1, 0) on
    test_ops_give_what_their_kernels_give("DeformablePSROIPooling-1", attrs, [maps, rois])
