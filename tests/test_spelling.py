"""Words that nobody knows, and what they may be meant for."""

import pytest

from irrun.spec.registry import registry
from irrun.spelling import close_matches


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("Relux", "ReLU"),
        ("Matmul", "MatMul"),
        ("Convolusion", "Convolution"),
        ("NonMaxSupression", "NonMaxSuppression"),
    ],
)
def test_misspelt_types(word, meant):
    assert close_matches(word, registry().types())[0] == meant


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("stride", ["strides", "dilations", "auto_pad"], "strides"),
        ("padsBegin", ["pads_begin", "pads_end"], "pads_begin"),
        ("keepdims", ["keep_dims"], "keep_dims"),
        ("axes", ["axis", "mode"], "axis"),
        ("iou_thresh", ["iou_threshold", "score_threshold"], "iou_threshold"),
        ("transopse_a", ["transpose_a", "transpose_b"], "transpose_a"),
    ],
)
def test_misspelt_attributes(word, known, meant):
    assert close_matches(word, known)[0] == meant


@pytest.mark.parametrize(
    "word", ["Deconvolution", "Conv", "LayerNormalization", "Pooling", "MoE", "Subgraph", "Resample"]
)
def test_types_that_mean_another_op_are_no_misspelt_ones(word):
    assert close_matches(word, registry().types()) == []


@pytest.mark.parametrize(
    ("word", "known"),
    [
        ("output_padding", ["pads_begin", "pads_end", "auto_pad", "output_dim"]),
        ("variable_type", ["variable_id"]),
        ("img_size", ["min_size", "max_size"]),
        ("batch_axis", ["batch_dims"]),
    ],
)
def test_attributes_of_other_ops_are_no_misspelt_ones(word, known):
    assert close_matches(word, known) == []


@pytest.mark.parametrize("word", ["", "x" * 1_000_000, "Qqqq"])
def test_words_like_no_other(word):
    assert close_matches(word, registry().types()) == []


def test_too_many_words_are_not_compared():
    assert close_matches("name", [f"name{n}" for n in range(2000)]) == []


def test_where_one_is_missing_it_need_only_be_alike():
    assert close_matches("kernel_size", ["kernel", "strides"]) == []
    assert close_matches("kernel_size", ["kernel"], likely=True) == ["kernel"]
    assert close_matches("colour", ["kernel"], likely=True) == []
