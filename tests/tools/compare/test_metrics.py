"""How far arrays lie apart, in numbers that were worked out by hand."""

import json
import math

import ml_dtypes
import numpy as np
import pytest

from irrun.tools.compare.blocks import BLOCK, Distribution
from irrun.tools.compare.glances import glance
from irrun.tools.compare.metrics import Metrics, measure
from irrun.tools.compare.steps import ordinals, rounded, steps_between
from irrun.tools.compare.tolerances import Tolerance

F32 = np.float32


def f32(*values):
    return np.array(values, F32)


def test_equal_arrays_differ_in_nothing():
    found = measure(f32(1, -2), f32(1, -2))
    assert found.equal
    assert (found.max_abs, found.sqnr, found.psnr, found.cosine, found.mismatches) == (0, math.inf, math.inf, 1, 0)
    assert found.within(Tolerance())


def test_errors_in_numbers():
    found = measure(f32(3, 4, 0, 2), f32(3, 4, 0, 0))
    assert found.max_abs == 2
    assert found.worst == (3,)
    assert found.worst_values == (2, 0)
    assert found.mean_abs == 0.5
    assert found.rms == 2.5
    assert found.nmax == 0.8
    assert found.nrmse == pytest.approx(0.4)
    assert found.sqnr == pytest.approx(20 * math.log10(2.5))
    assert found.psnr == pytest.approx(20 * math.log10(4))
    assert found.max_rel == pytest.approx(2 / 0.0025)
    assert found.cosine == pytest.approx(25 / (5 * math.sqrt(29)))
    assert (found.needed_atol, found.needed_rtol) == (2, math.inf)


def test_a_scale_and_an_offset_are_found():
    right = np.linspace(-3, 5, 1000).astype(F32)
    found = measure(2 * right + 100, right)
    assert (found.scale, found.offset, found.fit) == pytest.approx((2, 100, 1))


def test_the_cosine_of_zeros_is_one_and_of_zeros_with_anything_zero():
    assert measure(f32(0, 0), f32(0, 0)).cosine == 1
    assert measure(f32(1, 0), f32(0, 0)).cosine == 0
    assert measure(f32(1, 0), f32(0, 0)).sqnr == -math.inf


def test_mismatches_have_a_box():
    right = np.zeros((4, 5, 6), F32)
    wrong = right.copy()
    wrong[1:3, 2, 3:6] = 1
    found = measure(wrong, right, Tolerance(0.5))
    assert found.mismatches == 6
    assert found.percent == 5
    assert found.box == ((1, 2, 3), (2, 2, 5))


def test_what_is_not_finite_is_compared_by_place():
    nan, inf = math.nan, math.inf
    found = measure(f32(nan, inf, -inf, nan, 1), f32(nan, inf, inf, 2, 1))
    assert found.nonfinite == (2, 1, 1)
    assert found.expected_nonfinite == (1, 2, 0)
    assert found.nonfinite_differing == 2
    assert found.max_abs == 0
    assert not found.within(Tolerance(1e9, 1e9, 1.0))


@pytest.mark.parametrize(
    ("precision", "one", "other", "steps"),
    [
        ("f32", 1.0, 1.0 + 2**-23, 1),
        ("f32", -(2**-149), 2**-149, 2),
        ("f32", 0.0, -0.0, 0),
        ("bf16", 1.0, 1.0 + 2**-7, 1),
        ("bf16", 1.0, 1.001, 0),
        ("f16", 2.0, 1.0, 1024),
        ("f16", 65504.0, 1e9, 1),
        ("f64", 1.0, 1 + 2**-52, 1),
        ("f64", -1.7e308, 1.7e308, 2 * 9218547420429090000),
        ("tf32", 1.0, 1.0 + 2**-10, 1),
    ],
)
def test_steps_of_a_precision(precision, one, other, steps):
    assert steps_between(np.array([one]), np.array([other]), precision)[0] == pytest.approx(steps, rel=1e-4)


def test_rounding_is_that_of_the_types():
    values = np.random.default_rng(0).normal(size=1000)
    assert np.array_equal(rounded(values, "bf16"), values.astype(ml_dtypes.bfloat16).astype(float))
    assert rounded(np.array([1 + 2.0**-11 + 2.0**-12]), "tf32")[0] == 1 + 2.0**-10
    assert ordinals(np.array([0.0, 2.0**-24]), "f16").tolist() == [0, 1]


def test_integers_are_exact_beyond_what_f64_holds():
    right = np.array([2**60, 5], np.int64)
    found = measure(right + np.array([1, 0]), right, Tolerance(rtol=0.1, spread=0.1))
    assert (found.mismatches, found.max_abs) == (1, 1)
    assert measure(right + np.array([1, 0]), right, Tolerance(atol=1)).mismatches == 0


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, np.uint8, bool, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_narrow_types_are_numbers(dtype):
    right = np.array([0, 1, 1]).astype(dtype)
    wrong = np.array([0, 1, 0]).astype(dtype)
    assert measure(right, right).equal
    assert measure(wrong, right).mismatches == 1


def test_texts_are_equal_or_not():
    found = measure(np.array(["a", "b"]), np.array(["a", "cd"]))
    assert (found.mismatches, found.worst, found.worst_values) == (1, (1,), ("b", "cd"))
    assert not measure(np.array(["1"]), f32(1)).comparable


def test_other_shapes_are_a_result():
    found = measure(f32(1, 2), f32(1, 2).reshape(2, 1))
    assert not found.comparable
    assert not found.within(Tolerance(1e9))
    assert (found.shape, found.expected_shape) == ((2,), (2, 1))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,)])
def test_scalars_and_empty_arrays(shape):
    right = np.ones(shape, F32)
    assert measure(right, right).equal
    assert measure(right + 1, right).mismatches == right.size


def test_other_types_are_compared_by_their_numbers():
    found = measure(np.array([1.0, 2.0]), np.array([1, 2], np.int64))
    assert (found.type, found.expected_type) == ("f64", "i64")
    assert not found.equal
    assert found.within(Tolerance())


def test_huge_and_tiny_numbers_of_f64_are_squared_without_overflow():
    for size in (1e300, 1e-300):
        found = measure(np.array([size, size * 1.1]), np.array([size, size]))
        assert found.nrmse == pytest.approx(0.1 / math.sqrt(2))


def test_blocks_give_the_same_as_one_piece():
    chance = np.random.default_rng(1)
    right = chance.normal(size=(3, BLOCK // 2, 2)).astype(F32)
    wrong = (right + chance.normal(size=right.shape) * 1e-3).astype(F32)
    error = np.abs(wrong.astype(float) - right)
    for a, r in ((wrong, right), (wrong.transpose(2, 0, 1), right.transpose(2, 0, 1))):
        found = measure(a, r, Tolerance(1e-3))
        assert found.mismatches == (error > 1e-3).sum()
        assert found.p99_abs == pytest.approx(np.quantile(error, 0.99), rel=5e-3)
        assert found.max_abs == error.max()
        assert a[found.worst] - float(r[found.worst]) == pytest.approx(error.max() * np.sign(a - r)[found.worst])
    outliers = measure(wrong, right, Tolerance(1e-3, outliers=0.1))
    assert outliers.needed_atol == pytest.approx(np.quantile(error, 0.9), rel=5e-3)
    assert measure(wrong, right, Tolerance(outliers.needed_atol, outliers=0.1)).within(Tolerance(outliers=0.1))


def test_distributions_are_those_of_the_numbers():
    found = Distribution()
    assert found.quantile(0.5) == 0
    found.add(np.arange(100.0))
    assert [found.quantile(share) for share in (0, 0.5, 0.99, 1)] == [0, 49, 98, 99]


def test_metrics_go_to_json_and_back():
    wrong = np.array([[1, math.nan], [3, 4]], F32)
    for found in (measure(wrong, wrong + 1), measure(f32(1), f32(1)), measure(np.array(["a"]), np.array(["b"]))):
        assert Metrics.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False))) == found


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "?"])
def test_a_glance_says_the_same_of_what_is_near_and_all_of_what_is_not(dtype):
    chance = np.random.default_rng(3)
    right = (chance.normal(size=(7, 5)) * 8).astype(dtype)
    near = (right * (1 + 1e-6)).astype(dtype)
    far = right.copy()
    far[3, 2] = not far[3, 2] if dtype == "?" else far[3, 2] + 4
    tolerance = Tolerance(rtol=1e-3, spread=1e-3)
    for actual in (right, near, far, right[:0], right[0, 0][...]):
        expected = right if actual.shape == right.shape else actual
        slow, quick = measure(actual, expected, tolerance), glance(actual, expected, tolerance)
        assert quick.within(tolerance) == slow.within(tolerance)
        assert (quick.equal, quick.max_abs, quick.worst) == (slow.equal, slow.max_abs, slow.worst)
        for name in ("rms", "nrmse", "nmax", "sqnr", "mean_abs"):
            assert getattr(quick, name) == pytest.approx(getattr(slow, name))
        assert quick.needed_factor >= slow.needed_factor
    odd = np.where(right > 1, np.nan, right) if dtype in ("f4", "f8", "f2") else right
    assert glance(odd, odd, tolerance).nonfinite == measure(odd, odd, tolerance).nonfinite
    assert glance(odd, right, tolerance).within(tolerance) == (odd is right)


def test_the_edge_of_errors_decides_for_other_tolerances():
    chance = np.random.default_rng(5)
    right = chance.normal(size=3000) * np.exp(chance.normal(size=3000) * 3)
    actual = right + chance.normal(size=3000) * 1e-3 * np.abs(right) ** 0.5
    found = measure(actual, right, Tolerance())
    error = np.abs(actual - right)
    for atol in (0, 1e-4, 1e-3, 1e-2, 0.1):
        for rtol in (0, 1e-4, 1e-3, 1e-2, 0.1, 1):
            holds = bool((error <= atol + rtol * np.abs(right)).all())
            surely = bool((error <= atol + rtol * np.abs(right) / 1.126).all())
            said = found.would_be_within(Tolerance(atol, rtol))
            assert said in ({holds} if holds == surely else {True, False})
    assert not measure(right * np.nan, right).would_be_within(Tolerance(1e9))
