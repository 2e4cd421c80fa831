"""Normalization ops: formulas written out, slow loops, element types, constraints and dynamic shapes."""

import math

import ml_dtypes
import numpy as np
import pytest
from tolerance import tolerated

from irrun.spec import Tensor, Violation, fresh
from irrun.spec.registry import registry

ops = registry().ops
batch_norm_1, batch_norm = ops["BatchNormInference-1"], ops["BatchNormInference-5"]
grn, group_norm, lrn = ops["GRN-1"], ops["GroupNormalization-12"], ops["LRN-1"]
mvn_1, mvn, normalize_l2 = ops["MVN-1"], ops["MVN-6"], ops["NormalizeL2-1"]
rng = np.random.default_rng(0)
bfloat16 = ml_dtypes.bfloat16

LRN_ATTRS = {"alpha": 0.5, "beta": 0.75, "bias": 1.5, "size": 3}
MVN_ATTRS = {"normalize_variance": True, "eps": 1e-3, "eps_mode": "inside_sqrt"}
L2_ATTRS = {"eps": 1e-3, "eps_mode": "add"}


def message(op, *inputs, **attrs):
    with pytest.raises(Violation) as caught:
        op(*inputs, **attrs)
    return caught.value.label, caught.value.message


def standard(data, axes, eps, outside=False):
    """(data - mean) / deviation in f64."""
    data = np.asarray(data, np.float64)
    variance = data.var(axes, keepdims=True)
    deviation = np.sqrt(variance) + eps if outside else np.sqrt(variance + eps)
    return (data - data.mean(axes, keepdims=True)) / deviation


class TestBatchNormInference:
    def test_each_channel_has_its_own_statistics(self):
        data = np.array([[[4.0, 6.0], [1.0, 3.0]]])
        mean, variance = np.array([2.0, 1.0]), np.array([3.0, 0.0])
        got = batch_norm(data, np.array([1.0, 2.0]), np.array([0.0, 1.0]), mean, variance, epsilon=1.0)
        assert got.tolist() == [[[1, 2], [1, 5]]]

    def test_version_1_has_data_third(self):
        data, statistics = rng.normal(size=(2, 3, 4, 5)), np.abs(rng.normal(size=(4, 3)))
        gamma, beta, mean, variance = statistics
        got = batch_norm_1(gamma, beta, data, mean, variance, epsilon=1e-3)
        assert (got == batch_norm(data, gamma, beta, mean, variance, epsilon=1e-3)).all()

    @pytest.mark.parametrize("type", [np.float16, bfloat16])
    def test_16_bit_floats_are_rounded_once(self, type):
        data, statistics = rng.normal(size=(2, 3)).astype(type), np.abs(rng.normal(size=(4, 3))).astype(type)
        got = batch_norm(data, *statistics, epsilon=1e-3)
        wide = batch_norm(data.astype(np.float32), *statistics.astype(np.float32), epsilon=1e-3)
        assert got.dtype == type
        assert (got == wide.astype(type)).all()

    def test_batchnorminference_1_c1_no_channel(self):
        none = np.ones(0)
        assert message(batch_norm_1, none, none, np.ones((2, 0)), none, none, epsilon=1.0)[0] == "C1"

    def test_batchnorminference_5_c1_no_channel(self):
        none = np.ones(0)
        expected = ("C1", "`data` has no channel")
        assert message(batch_norm, np.ones((2, 0)), none, none, none, none, epsilon=1.0) == expected

    @pytest.mark.parametrize("op", [batch_norm_1, batch_norm])
    def test_an_epsilon_that_no_float_holds(self, op):
        (epsilon,) = op.attrs
        assert epsilon.parse("1e38") == 1e38
        for text in ("inf", "1e39"):
            with pytest.raises(ValueError, match=r"expected 3\.4\d*e\+38 or less"):
                epsilon.parse(text)

    def test_another_number_of_channels(self):
        one = np.ones(1)
        label, text = message(batch_norm, np.ones((2, 3)), one, one, one, one, epsilon=1.0)
        assert (label, text) == ("E304", "`C` is 1 in `gamma`, but 3 in `data`")

    def test_unknown_channels_are_those_of_the_statistics(self):
        batch = fresh()
        tensors = [Tensor("f32", (batch, fresh(), 7))] + [Tensor("f32", (5,))] * 4
        assert batch_norm.infer(tensors, {"epsilon": 0.0}).outputs[0].shape == (batch, 5, 7)


class TestGRN:
    def test_the_norm_runs_over_channels(self):
        got = grn(np.array([[[3.0, 0.0], [4.0, 2.0]]]), bias=12.0)
        np.testing.assert_allclose(got, [[[3 / math.sqrt(37), 0], [4 / math.sqrt(37), 0.5]]])

    def test_bf16(self):
        assert grn(np.ones((1, 400, 1, 1), bfloat16), bias=1e-6).dtype == bfloat16
        assert grn(np.ones((1, 400), bfloat16), bias=1e-6)[0, 0] == bfloat16(0.05)

    def test_grn_1_c1_rank(self):
        assert message(grn, np.ones(3), bias=1.0) == ("C1", "`data` has rank 1, expected 2 to 4")
        assert message(grn, np.ones((1, 1, 1, 1, 1)), bias=1.0)[0] == "C1"

    def test_grn_1_c2_bias_not_positive(self):
        assert message(grn, np.ones((1, 1)), bias=-1.0) == ("C2", "`bias` is -1.0, expected a positive number")
        assert tolerated(grn, np.ones((1, 1)), bias=0.0) == ("C2", "`bias` is 0.0, expected a positive number")


class TestGroupNormalization:
    def test_groups_of_channels_then_scale_and_bias(self):
        data = rng.normal(size=(2, 6, 3, 2)).astype(np.float32)
        scale, bias = rng.normal(size=(2, 6)).astype(np.float32)
        got = group_norm(data, scale, bias, num_groups=3, epsilon=1e-3)
        want = standard(data.reshape(2, 3, -1), 2, 1e-3).reshape(data.shape)
        want = want * scale[:, None, None] + bias[:, None, None]
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, 1e-5, 1e-6)

    def test_16_bit_floats_are_rounded_once(self):
        data, ones = rng.normal(size=(1, 4, 9)).astype(np.float16), np.ones(4, np.float16)
        got = group_norm(data, ones, ones, num_groups=2, epsilon=1e-3)
        wide = [array.astype(np.float32) for array in (data, ones, ones)]
        assert (got == group_norm(*wide, num_groups=2, epsilon=1e-3).astype(np.float16)).all()

    def test_empty(self):
        ones = np.ones(4)
        assert group_norm(np.ones((0, 4, 2)), ones, ones, num_groups=2, epsilon=1e-3).shape == (0, 4, 2)
        assert group_norm(np.ones((1, 4, 0)), ones, ones, num_groups=2, epsilon=1e-3).shape == (1, 4, 0)

    def test_groupnormalization_12_c1_more_groups_than_channels(self):
        two = np.ones(2)
        expected = ("C1", "`num_groups` is 4, but `data` has 2 channels")
        assert message(group_norm, np.ones((1, 2)), two, two, num_groups=4, epsilon=1.0) == expected

    def test_groupnormalization_12_c2_groups_of_unequal_size(self):
        three = np.ones(3)
        label, text = message(group_norm, np.ones((1, 3)), three, three, num_groups=2, epsilon=1.0)
        assert (label, text) == ("C2", "`num_groups` is 2, which does not divide 3 channels")

    def test_groupnormalization_12_c3_epsilon_not_positive(self):
        two = np.ones(2)
        assert message(group_norm, np.ones((1, 2)), two, two, num_groups=1, epsilon=-1.0)[0] == "C3"
        assert tolerated(group_norm, np.ones((1, 2)), two, two, num_groups=1, epsilon=0.0)[0] == "C3"


class TestLRN:
    def loop(self, data, axes, alpha, beta, bias, size):
        reach, result = (size - 1) // 2, np.empty_like(data)
        for place in np.ndindex(data.shape):
            window = tuple(
                slice(max(0, i - reach), i + reach + 1) if axis in axes else slice(i, i + 1)
                for axis, i in enumerate(place)
            )
            total = (data[window] ** 2).sum()
            result[place] = data[place] / (bias + alpha / size ** len(axes) * total) ** beta
        return result

    @pytest.mark.parametrize("axes", [[1], [2, 3], [0, 1, 2, 3], []])
    @pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 40])
    def test_against_a_loop(self, axes, size):
        data = rng.normal(size=(2, 5, 3, 4))
        attrs = LRN_ATTRS | {"size": size}
        np.testing.assert_allclose(lrn(data, np.array(axes, int), **attrs), self.loop(data, axes, **attrs))

    def test_negative_axes_count_from_the_end(self):
        data = rng.normal(size=(2, 3, 4))
        assert (lrn(data, np.array([-2]), **LRN_ATTRS) == lrn(data, np.array([1]), **LRN_ATTRS)).all()

    def test_f16_keeps_its_type(self):
        assert lrn(np.ones((1, 3), np.float16), np.array([1], np.uint8), **LRN_ATTRS).dtype == np.float16

    def test_lrn_1_c1_axis_outside_the_rank(self):
        assert message(lrn, np.ones((1, 2)), np.array([2]), **LRN_ATTRS) == ("C1", "`axes[0]` is 2, outside [-2, 2)")

    def test_lrn_1_c4_more_axes_than_data_has(self):
        expected = ("C4", "`axes` has 3 elements for rank 2, expected 2 at most")
        assert message(lrn, np.ones((1, 2)), np.array([1, 0, -1]), **LRN_ATTRS) == expected
        with pytest.raises(Violation, match="`axes` has 3 elements for rank 2"):
            lrn.infer([Tensor("f32", (1, 2)), Tensor("i64", (3,))], LRN_ATTRS)

    @pytest.mark.parametrize("axes", [[1, 1], [1, -1]])
    def test_lrn_1_c3_an_axis_twice(self, axes):
        said = ("C3", f"`axes` is {axes}, which has an axis twice")
        assert message(lrn, np.ones((1, 2)), np.array(axes), **LRN_ATTRS) == said

    def test_lrn_1_c2_beta_not_positive(self):
        assert tolerated(lrn, np.ones((1, 2)), np.array([1]), **LRN_ATTRS | {"beta": -1.0})[0] == "C2"


class TestMVN1:
    DATA = rng.normal(size=(2, 3, 4, 5)).astype(np.float32)

    @pytest.mark.parametrize(
        ("attrs", "axes"),
        [
            ({"across_channels": True}, (1, 2, 3)),
            ({"across_channels": False}, (2, 3)),
            ({"reduction_axes": (2, 1)}, (1, 2)),
            ({"reduction_axes": (-1,)}, (3,)),
            ({"across_channels": True, "reduction_axes": (2, 3)}, (2, 3)),
        ],
    )
    def test_axes(self, attrs, axes):
        got = mvn_1(self.DATA, **attrs, normalize_variance=True, eps=0.1)
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, standard(self.DATA, axes, 0.1), 1e-5, 1e-6)

    def test_without_the_variance(self):
        got = mvn_1(self.DATA, across_channels=False, normalize_variance=False, eps=1.0)
        np.testing.assert_allclose(got, self.DATA - self.DATA.mean((2, 3), keepdims=True), 1e-5, 1e-6)

    def test_without_spatial_dimensions_nothing_is_left(self):
        attrs = {"across_channels": False, "normalize_variance": True, "eps": 1.0}
        assert mvn_1(np.array([[1.0, 2.0]]), **attrs).tolist() == [[0, 0]]

    def test_mvn_1_c1_neither_attribute(self):
        label, text = tolerated(mvn_1, self.DATA, normalize_variance=True, eps=1.0)
        assert (label, text) == ("C1", "neither `across_channels` nor `reduction_axes` is given")

    def test_mvn_1_c2_axis_outside_the_rank(self):
        label, text = message(mvn_1, self.DATA, reduction_axes=(4,), normalize_variance=True, eps=1.0)
        assert (label, text) == ("C2", "`reduction_axes` is 4, outside [-4, 4) for rank 4")

    def test_mvn_1_c3_eps_not_positive(self):
        attrs = {"across_channels": True, "normalize_variance": True}
        assert message(mvn_1, self.DATA, **attrs, eps=-1.0)[0] == "C3"
        assert tolerated(mvn_1, self.DATA, **attrs, eps=0.0)[0] == "C3"

    def test_mvn_1_c4_an_axis_twice(self):
        attrs = {"normalize_variance": True, "eps": 1.0}
        expected = ("C4", "`reduction_axes` is [2, 3, -1], which has an axis twice")
        assert tolerated(mvn_1, self.DATA, reduction_axes=(2, 3, -1), **attrs) == expected
        once = mvn_1(self.DATA, reduction_axes=(2, 3), **attrs)
        twice = mvn_1.kernel(self.DATA, across_channels=None, reduction_axes=(2, 3, -1), **attrs)
        assert np.array_equal(twice, once)

    def test_it_is_found_in_opset_1_too_as_openvino_mends_old_files(self):
        assert registry().find("MVN", "opset1") is mvn_1
        assert registry().find("MVN", "opset5") is mvn_1
        assert registry().find("MVN", "opset6") is mvn


class TestMVN6:
    @pytest.mark.parametrize("mode", ["inside_sqrt", "outside_sqrt"])
    @pytest.mark.parametrize("axes", [[-1], [2], [0, 2], [1, -1], [2, 1, 0], [1, -2], []])
    def test_against_the_formula(self, mode, axes):
        data = rng.normal(size=(2, 3, 4)).astype(np.float32) + 2
        got = mvn(data, np.array(axes, np.int64), normalize_variance=True, eps=0.2, eps_mode=mode)
        want = standard(data, tuple({axis % 3 for axis in axes}), 0.2, outside=mode == "outside_sqrt")
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, 1e-5, 1e-6)

    def test_without_the_variance(self):
        got = mvn(np.array([[1.0, 3.0]]), np.array([1]), **MVN_ATTRS | {"normalize_variance": False})
        assert got.tolist() == [[-1, 1]]

    @pytest.mark.parametrize("type", [np.float16, bfloat16])
    def test_16_bit_floats_are_rounded_once(self, type):
        data = (rng.normal(size=(2, 300)) + 50).astype(type)
        got = mvn(data, np.array([1]), **MVN_ATTRS)
        assert got.dtype == type
        assert (got == mvn(data.astype(np.float32), np.array([1]), **MVN_ATTRS).astype(type)).all()

    def test_f64_is_computed_in_f64(self):
        data = rng.normal(size=(1, 9)) + 1e6
        np.testing.assert_allclose(mvn(data, np.array([1]), **MVN_ATTRS), standard(data, 1, 1e-3), 1e-9)

    def test_scalar_and_empty(self):
        assert mvn(np.array(5.0), np.array([], np.int32), **MVN_ATTRS) == 0
        assert mvn(np.ones((0, 3)), np.array([0]), **MVN_ATTRS).shape == (0, 3)
        assert mvn(np.ones((3, 0)), np.array([1]), **MVN_ATTRS).shape == (3, 0)

    def test_the_input_stays_as_it_is(self):
        data = np.array([[1.0, 3.0]])
        mvn(data, np.array([1]), **MVN_ATTRS)
        assert data.tolist() == [[1, 3]]

    def test_mvn_6_c1_axis_outside_the_rank(self):
        expected = ("C1", "`axes[1]` is -3, outside [-2, 2)")
        assert message(mvn, np.ones((1, 2)), np.array([1, -3]), **MVN_ATTRS) == expected

    def test_mvn_6_c2_eps_not_positive(self):
        expected = ("C2", "`eps` is 0.0, expected a positive number")
        assert tolerated(mvn, np.ones((1, 2)), np.array([1]), **MVN_ATTRS | {"eps": 0.0}) == expected
        expected = ("C2", "`eps` is -1.0, expected a positive number")
        assert message(mvn, np.ones((1, 2)), np.array([1]), **MVN_ATTRS | {"eps": -1.0}) == expected

    def test_mvn_6_c3_an_axis_twice(self):
        expected = ("C3", "`axes` is [1, -1], which has an axis twice")
        assert tolerated(mvn, np.ones((1, 2)), np.array([1, -1]), **MVN_ATTRS) == expected

    def test_mvn_6_c4_more_axes_than_data_has(self):
        expected = ("C4", "`axes` has 2 elements for rank 1, expected 1 at most")
        assert message(mvn, np.ones(2), np.array([0, -1]), **MVN_ATTRS) == expected
        with pytest.raises(Violation, match="`axes` has 2 elements for rank 1"):
            mvn.infer([Tensor("f32", (4,)), Tensor("i64", (2,))], MVN_ATTRS)

    def test_the_shape_stays_whatever_the_axes(self):
        shape = (fresh(), 3)
        inferred = mvn.infer([Tensor("f32", shape), Tensor("i64", (fresh(),))], MVN_ATTRS)
        assert inferred.outputs[0].shape == shape
        assert not inferred.complete


class TestNormalizeL2:
    def test_modes(self):
        data, axes = np.array([[3.0, 4.0]]), np.array([1])
        assert normalize_l2(data, axes, eps=11.0, eps_mode="add").tolist() == [[0.5, 4 / 6]]
        assert normalize_l2(data, axes, eps=11.0, eps_mode="max").tolist() == [[0.6, 0.8]]
        assert normalize_l2(data, axes, eps=100.0, eps_mode="max").tolist() == [[0.3, 0.4]]

    @pytest.mark.parametrize("axes", [1, [1], [1, 2, 3], [-1, 0]])
    def test_against_the_formula(self, axes):
        data = rng.normal(size=(2, 3, 4, 5)).astype(np.float32)
        want = data / np.sqrt((data.astype(np.float64) ** 2).sum(tuple(np.ravel(axes)), keepdims=True) + 1e-3)
        got = normalize_l2(data, np.array(axes, np.int32), **L2_ATTRS)
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, 1e-5)

    def test_without_axes_each_element_is_divided_by_itself(self):
        got = normalize_l2(np.array([2.0, -3.0, 0.0]), np.array([], np.int64), eps=0.5, eps_mode="add")
        assert got.tolist() == [1, 1, 0]

    def test_a_scalar(self):
        assert normalize_l2(np.array(-2.0), np.array([], np.int64), eps=1e-12, eps_mode="max") == 1

    def test_f16_sums_in_f32(self):
        got = normalize_l2(np.full((1, 4), 300, np.float16), np.array([1], np.uint8), **L2_ATTRS)
        assert got.dtype == np.float16
        assert got.tolist() == [[0.5] * 4]

    def test_normalizel2_1_c1_axis_outside_the_rank(self):
        expected = ("C1", "`axes` is 1, outside [-1, 1)")
        assert message(normalize_l2, np.ones(2), np.array(1), **L2_ATTRS) == expected

    def test_normalizel2_1_c2_an_axis_twice(self):
        expected = ("C2", "`axes` is [0, -1], which has an axis twice")
        assert tolerated(normalize_l2, np.ones(2), np.array([0, -1]), **L2_ATTRS) == expected

    def test_normalizel2_1_c3_eps_not_positive(self):
        assert message(normalize_l2, np.ones(2), np.array([0]), eps=-1.0, eps_mode="add")[0] == "C3"
        assert tolerated(normalize_l2, np.ones(2), np.array([0]), eps=0.0, eps_mode="add")[0] == "C3"
