"""What is wrong with a layer whatever the ranks are that are unknown, by the checks that there are for known ones."""

import numpy as np
import pytest

from irrun.spec import Tensor, Violation, fresh
from irrun.spec.registry import registry

ops = registry().ops
UNKNOWN = object()


def window(axes, **others):
    ones, none = (1,) * axes, (0,) * axes
    return {"strides": ones, "dilations": ones, "pads_begin": none, "pads_end": none} | others


def pooling(axes, **others):
    given = window(axes, kernel=(1,) * axes) | others
    return {name: values for name, values in given.items() if values is not None}


PROPOSAL = {
    "base_size": 4,
    "pre_nms_topn": 2,
    "post_nms_topn": 2,
    "nms_thresh": 0.5,
    "feat_stride": 4,
    "min_size": 1,
    "ratio": (1.0,),
    "scale": (1.0,),
}
DETECTION = {"keep_top_k": (1,), "nms_threshold": 0.5, "normalized": True, "input_height": 1, "input_width": 1}
DETECTRON = {
    "score_threshold": 0.0,
    "nms_threshold": 0.5,
    "num_classes": 2,
    "post_nms_count": 1,
    "max_detections_per_image": 1,
    "class_agnostic_box_regression": False,
    "max_delta_log_wh": 4.0,
    "deltas_weights": (1.0, 1.0, 1.0, 1.0),
}
CASES = [
    ("Convolution-1", [UNKNOWN, UNKNOWN], window(2, pads_begin=(0, 0, 0)), "C2"),
    ("Convolution-1", [UNKNOWN, (1, 4, 2, 2, 2)], window(2), "C2"),
    ("GroupConvolution-1", [UNKNOWN, UNKNOWN], window(2, dilations=(1,)), "C2"),
    ("GroupConvolution-1", [UNKNOWN, (1, 1, 1, 2, 2)], window(1), "C2"),
    ("BinaryConvolution-1", [(1, 1, 4, 4), UNKNOWN], {**window(1), "mode": "xnor-popcount", "pad_value": 0.0}, "C2"),
    ("ConvolutionBackpropData-1", [UNKNOWN, UNKNOWN], window(2, output_padding=(0,)), "C2"),
    ("ConvolutionBackpropData-1", [UNKNOWN, UNKNOWN, (3,)], window(2), None),
    ("GroupConvolutionBackpropData-1", [UNKNOWN, UNKNOWN], window(2, output_padding=(0,)), "C2"),
    ("GroupConvolutionBackpropData-1", [UNKNOWN, UNKNOWN, (3,)], window(2), None),
    ("DeformableConvolution-1", [UNKNOWN, (1, 2, 4, 4, 4), (1, 1, 1, 1)], window(2), "C6"),
    ("DeformableConvolution-1", [UNKNOWN, (1, 2, 4, 4), (1, 1, 1, 1, 1)], window(2), "C1"),
    ("DeformableConvolution-8", [UNKNOWN, (1, 2, 4, 4, 4), (1, 1, 1, 1)], window(2), "C6"),
    ("DeformableConvolution-8", [UNKNOWN, UNKNOWN, (1, 1, 1, 1, 1)], window(2), "C1"),
    ("DeformableConvolution-8", [UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN], window(2, strides=(1,)), "C2"),
    ("MaxPool-1", [UNKNOWN], pooling(1, strides=(1, 1), dilations=None), "C2"),
    ("MaxPool-8", [UNKNOWN], pooling(2, dilations=(1,)), "C2"),
    ("MaxPool-14", [UNKNOWN], pooling(2, pads_end=(0,)), "C2"),
    ("AvgPool-1", [UNKNOWN], pooling(2, strides=(1,), dilations=None, exclude_pad=True), "C2"),
    ("AvgPool-14", [UNKNOWN], pooling(2, pads_begin=(0,), dilations=None, exclude_pad=True), "C2"),
    ("AvgPool-16", [UNKNOWN], pooling(2, dilations=(1,), exclude_pad=True), "C2"),
    ("Proposal-1", [(1, 2, 1, 1), (1, 8, 1, 1), UNKNOWN], PROPOSAL, "C2"),
    ("Proposal-4", [(1, 2, 1, 1), (1, 8, 1, 1), UNKNOWN], PROPOSAL, "C2"),
    ("DetectionOutput-1", [(1, 4), UNKNOWN, (3, 1, 4)], {**DETECTION, "num_classes": 2}, None),
    ("DetectionOutput-8", [(1, 4), UNKNOWN, (3, 1, 4)], DETECTION, None),
    ("ExperimentalDetectronDetectionOutput-6", [(5, 4), UNKNOWN, (5, 1), UNKNOWN], DETECTRON, None),
    ("Einsum-7", [UNKNOWN, (2, 3), (4,)], {"equation": "DA,BB,B->BD"}, None),
    ("FakeConvert-13", [UNKNOWN, (3,), (2,)], {"destination_type": "f8e4m3"}, "C2"),
]


def asked(name, shapes, attrs):
    op = ops[name]
    tensors = []
    for number, shape in enumerate(shapes):
        type = op.inputs[min(number, len(op.inputs) - 1)].type
        types = op.types.get(type, {type})
        tensors.append(
            Tensor(next(t for t in ("f32", "i64", *types) if t in types), None if shape is UNKNOWN else shape)
        )
    return op.infer(tensors, op.defaults | attrs)


@pytest.mark.parametrize(("name", "shapes", "attrs", "label"), CASES)
def test_what_no_rank_makes_right(name, shapes, attrs, label):
    with pytest.raises(Violation) as caught:
        asked(name, shapes, attrs)
    assert label in (None, caught.value.label), caught.value


def test_the_rank_that_is_supposed_is_named():
    with pytest.raises(Violation) as caught:
        asked("MaxPool-1", [UNKNOWN], pooling(3, pads_end=(0,)))
    expected = (
        "`pads_end` has 1 values for 3 spatial axes, if `data` has rank 5; with any other rank something else is wrong"
    )
    assert caught.value.message == expected
    assert set(caught.value.about) == {"pads_end", "data"}


def test_of_the_ranks_that_may_be_supposed_one_with_a_reason_of_its_own_is():
    """With any rank but 2 there are too few blocks."""
    zeros = np.zeros(2, np.int64)
    tensors = [Tensor("f32", None), *(Tensor.of(each) for each in (np.array([1, 0]), zeros, zeros))]
    with pytest.raises(Violation, match=r"`block_shape\[1\]` is 0, .* if `data` has rank 2") as caught:
        ops["BatchToSpace-2"].infer(tensors, {})
    assert caught.value.label == "C2"


@pytest.mark.parametrize(
    ("name", "shapes", "attrs"),
    [
        ("Convolution-1", [UNKNOWN, UNKNOWN], window(3)),
        ("Convolution-1", [UNKNOWN, (1, 4, 2, 2, 2)], window(3)),
        ("ConvolutionBackpropData-1", [UNKNOWN, UNKNOWN, (2,)], window(2)),
        ("DeformableConvolution-8", [UNKNOWN, UNKNOWN, UNKNOWN], window(2)),
        ("MaxPool-1", [UNKNOWN], pooling(1, dilations=None)),
        ("Proposal-4", [(1, 2, 1, 1), (1, 4, 1, 1), UNKNOWN], PROPOSAL),
        ("Einsum-7", [UNKNOWN, (3, 3), (3,)], {"equation": "DA,BB,B->BD"}),
        ("FakeConvert-13", [UNKNOWN, (3,), (3,)], {"destination_type": "f8e4m3"}),
        ("Add-1", [UNKNOWN, (3,)], {}),
    ],
)
def test_what_some_rank_makes_right(name, shapes, attrs):
    assert not asked(name, shapes, attrs).complete


def test_a_rank_that_is_seldom_met():
    tensors = [Tensor("f32", None), Tensor.of(np.arange(20))]
    assert not ops["Transpose-1"].infer(tensors, {}).complete
    with pytest.raises(Violation):
        ops["Transpose-1"].infer([Tensor("f32", None), Tensor.of(np.arange(70))], {})


def test_sizes_of_ranks_that_are_tried_stay_apart():
    row = fresh()
    found = ops["Concat-1"].infer([Tensor("f32", None), Tensor("f32", (row, 2)), Tensor("f32", None)], {"axis": 0})
    assert not found.complete
