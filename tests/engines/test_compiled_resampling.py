"""Interpolation by compiled loops against the plain kernel."""

import numpy as np
import pytest
from engines.works import computed, plain, posted, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the loops")

from irrun.engines.compiled import engine
from irrun.engines.compiled.engine import LEAST, CompiledEngine
from irrun.engines.compiled.resampling import AT_ONCE, LINE, PART, SHORT_LINE, VECTOR
from irrun.engines.work import Post

ENGINE = CompiledEngine(2)
ENGINE._threads()  # works of any size are taken once llvmlite is there
ATTRS = {
    "mode": "linear",
    "shape_calculation_mode": "sizes",
    "coordinate_transformation_mode": "half_pixel",
    "nearest_mode": "round_prefer_floor",
    "antialias": False,
    "pads_begin": (0,),
    "pads_end": (0,),
    "cube_coeff": -0.75,
}


def prepared(attrs, arrays, posts=(), own=3, constant=()):
    attrs = ATTRS | attrs
    expected = posted(posts, plain("Interpolate-11", attrs, arrays[:own]), arrays)
    work = work_of("Interpolate-11", attrs, arrays, [(expected.shape, "f32")], posts, (*range(1, own), *constant))
    return expected, work, ENGINE.compile(work)


def check(attrs, *arrays, posts=(), own=3):
    given = [np.asarray(array) for array in arrays]
    expected, work, compiled = prepared(attrs, given, posts, own)
    assert compiled is not None
    np.testing.assert_allclose(computed(compiled, work, given)[0], expected, rtol=1e-5, atol=1e-5)


def numbers(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("mode", ["linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"])
@pytest.mark.parametrize("transform", ["half_pixel", "align_corners", "asymmetric"])
@pytest.mark.parametrize(("height", "width"), [(14, 40), (8, 33), (4, 5), (100, 9)])
def test_images_are_those_of_the_kernel(mode, transform, height, width):
    attrs = {"mode": mode, "coordinate_transformation_mode": transform}
    check(attrs, numbers(2, 3, 7, 10), [height, width], [2, 3])
    check(attrs, numbers(1, 7, 10, 3), [height, width], [1, 2])


@pytest.mark.parametrize("mode", ["linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"])
@pytest.mark.parametrize("transform", ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"])
@pytest.mark.parametrize(("height", "width"), [(14, 40), (8, 33), (4, 5), (100, 9), (2, 3)])
def test_images_of_vectors_are_those_of_the_kernel(mode, transform, height, width):
    attrs = {"mode": mode, "coordinate_transformation_mode": transform}
    check(attrs, numbers(2, 7, 8, VECTOR + 3), [height, width], [1, 2])
    check(attrs, numbers(2, 7, 8, VECTOR + 3).transpose(0, 3, 1, 2), [height, width], [2, 3])
    check(attrs, numbers(2, 8, 7, 3).transpose(0, 3, 1, 2), [height, width], [3, 2])


def test_vectors_in_blocks():
    block = SHORT_LINE // 40 // VECTOR * VECTOR
    for channels in (block - 1, block, 2 * block + 5):
        check({}, numbers(2, 3, 40, channels).transpose(0, 3, 1, 2), [5, 67], [2, 3])
    check({}, numbers(2, SHORT_LINE // VECTOR + 9, 2 * VECTOR + 1), [3, 70], [0, 1])
    check({}, numbers(2, LINE // VECTOR, VECTOR), [3, 70], [0, 1])
    check({}, numbers(1, 60, 50, 64).transpose(0, 3, 1, 2), [80, 90], [2, 3])  # by several threads


def test_small_works_are_no_reason_to_load_what_compiles():
    alone = CompiledEngine(2)
    for height, taken in ((LEAST["Interpolate-11"] // 64 - 1, False), (LEAST["Interpolate-11"] // 64, True), (9, True)):
        arrays = [numbers(5, 4), np.array([height, 64]), np.array([0, 1])]
        work = work_of("Interpolate-11", ATTRS, arrays, [((height, 64), "f32")], constant=(1, 2))
        assert (alone.compile(work) is not None) == taken


def test_random_images():
    rng = np.random.default_rng(5)
    for _ in range(60):
        sizes = [*rng.integers(1, 12, 2), int(rng.choice([1, 3, 8, 16, 21, 64]))]
        order = [0, 3, 1, 2] if rng.random() < 0.7 else [0, 1, 2, 3]
        data = rng.normal(size=(rng.integers(1, 3), *sizes)).astype(np.float32).transpose(order)
        axes = rng.permutation([2, 3] if order[1] == 3 else [1, 2])
        targets = rng.integers(1, 30, 2)
        if any(target == data.shape[axis] for target, axis in zip(targets, axes, strict=True)):
            continue
        attrs = {
            "mode": str(rng.choice(["linear", "linear_onnx", "cubic"])),
            "coordinate_transformation_mode": str(
                rng.choice(["half_pixel", "pytorch_half_pixel", "tf_half_pixel_for_nn", "align_corners", "asymmetric"])
            ),
            "cube_coeff": float(rng.choice([-0.75, -0.5])),
        }
        check(attrs, data, targets, axes)


def test_other_axes_scales_and_large_images():
    check({}, numbers(5, 6), [8, 13], [1, 0])
    check({}, numbers(2, 5, 6, 4), [9, 3], [3, 2])
    check({}, numbers(1, 1, 6), [4, 3], [1, 2])
    check({"shape_calculation_mode": "scales"}, numbers(2, 5, 6), np.float32([1.7, 0.5]), [1, 2])
    check({"antialias": True}, numbers(2, 50, 60), [33, 40], [1, 2])
    check({}, numbers(3, 200, 150), [333, 401], [1, 2])


def test_posts():
    posts = (Post("Subtract-1", {"auto_broadcast": "numpy"}, 3), Post("ReLU-1", {}))
    check({}, numbers(2, 3, 7, 10), [9, 5], [2, 3], numbers(3, 1, 1), posts=posts)
    last = numbers(2, 7, 10, 20).transpose(0, 3, 1, 2)
    for other in (numbers(20, 1, 1), numbers(5), numbers(2, 20, 9, 5), numbers(2, 9, 5, 20).transpose(0, 3, 1, 2)):
        check({}, last, [9, 5], [2, 3], other, posts=posts)


def test_posts_with_a_number_for_each_colour_are_left_to_a_pass_of_their_own():
    post, sizes = [Post("Subtract-1", {"auto_broadcast": "numpy"}, 3)], [np.array([160, 170]), np.array([1, 2])]
    for channels, taken in ((3, False), (16, True)):
        arrays = [numbers(1, 190, 180, channels), *sizes, numbers(channels)]
        found = prepared({}, arrays, post, constant=[3])[2]
        assert (found is not None) == taken


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_what_the_kernel_makes_of_it(value):
    data = numbers(2, 3, 7, 10)
    data[1, 2, 3, 4] = value
    last = np.repeat(data, 6, 1).transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2)
    for mode in ("linear", "cubic"):
        check({"mode": mode, "coordinate_transformation_mode": "align_corners"}, last, [13, 19], [2, 3])
        check({"mode": mode, "coordinate_transformation_mode": "align_corners"}, data, [13, 19], [2, 3])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_seen_wherever_it_is(value):
    """Also in the elements that are left of the last part."""
    large = numbers(1, 3, 50, 41)
    for place in (0, PART - 1, PART, large.size // AT_ONCE * AT_ONCE, large.size - 1):
        data = large.copy()
        data.reshape(-1)[place] = value
        check({}, data, [25, 20], [2, 3])


def test_what_is_left_to_others():
    for attrs, data, sizes, axes in (
        ({"mode": "nearest"}, numbers(4, 6), [8, 12], [0, 1]),
        ({"antialias": True}, numbers(90, 90), [3, 3], [0, 1]),  # of many elements
        ({}, numbers(4, 5, 6), [8, 12], [0, 2]),
        ({}, numbers(4, 5, 6), [8], [0]),
        ({}, numbers(5, 4, 3)[:, ::2], [8, 12], [0, 1]),
        ({}, numbers(2, LINE + 1), [3, 7], [0, 1]),
        ({}, numbers(2, LINE // VECTOR + 1, VECTOR), [3, 7], [0, 1]),
        ({"pads_begin": (1, 0)}, numbers(4, 6), [8, 12], [0, 1]),
    ):
        arrays, shape = [data, np.array(sizes), np.array(axes)], np.array(data.shape)
        shape[axes] = sizes
        work = work_of("Interpolate-11", ATTRS | attrs, arrays, [(tuple(shape.tolist()), "f32")], (), (1, 2))
        assert ENGINE.compile(work) is None


def test_nearest_elements_load_nothing(monkeypatch):
    monkeypatch.setattr(engine, "_of_module", lambda *_: pytest.fail("asked for the module"))
    assert prepared({"mode": "nearest"}, [numbers(4, 6), np.array([8, 12]), np.array([0, 1])])[2] is None
