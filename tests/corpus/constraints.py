"""Broken constraints: one row for a rule of an operation's specification, and what has to change to break it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corpus.defect import Defect, around, defect
from corpus.document import data_of, inputs
from corpus.seeds import seed

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Rule:
    """`attrs` are set, `shapes` and `values` are those of inputs by number; constants are made of the latter."""

    op: str
    label: str
    shapes: Mapping[int, Shape] = field(default_factory=dict)
    values: Mapping[int, Any] = field(default_factory=dict)
    attrs: Mapping[str, str] = field(default_factory=dict)


def shapes(op: str, label: str, shapes: Mapping[int, Shape], **attrs: str) -> Rule:
    return Rule(op, label, shapes=shapes, attrs=attrs)


def values(op: str, label: str, values: Mapping[int, Any], **attrs: str) -> Rule:
    return Rule(op, label, values=values, attrs=attrs)


def attrs(op: str, label: str, **attrs: str) -> Rule:
    return Rule(op, label, attrs=attrs)


BROADCASTING = [
    "Add-1",
    "Subtract-1",
    "Multiply-1",
    "Divide-1",
    "FloorMod-1",
    "Maximum-1",
    "Minimum-1",
    "Mod-1",
    "SquaredDifference-1",
    "Power-1",
    "Equal-1",
    "NotEqual-1",
    "Greater-1",
    "GreaterEqual-1",
    "Less-1",
    "LessEqual-1",
    "LogicalAnd-1",
    "LogicalOr-1",
    "LogicalXor-1",
    "BitwiseAnd-13",
    "BitwiseOr-13",
    "BitwiseXor-13",
    "BitwiseLeftShift-15",
    "BitwiseRightShift-15",
]
REDUCTIONS = [
    "ReduceSum-1",
    "ReduceProd-1",
    "ReduceMean-1",
    "ReduceMax-1",
    "ReduceMin-1",
    "ReduceL1-4",
    "ReduceL2-4",
    "ReduceLogicalAnd-1",
    "ReduceLogicalOr-1",
]
RECURRENT = ["LSTMCell-1", "LSTMCell-4", "GRUCell-3", "RNNCell-3", "LSTMSequence-5", "GRUSequence-5", "RNNSequence-5"]
POOLS = ["MaxPool-1", "MaxPool-8", "MaxPool-14", "AvgPool-1", "AvgPool-14"]
WINDOWS = [
    "Convolution-1",
    "GroupConvolution-1",
    "DeformableConvolution-1",
    "DeformableConvolution-8",
    "BinaryConvolution-1",
]

RULES = [
    *(shapes(op, "C1", {1: (5,)}) for op in BROADCASTING),
    *(attrs(op, "C1", auto_broadcast="none") for op in BROADCASTING[:6]),
    *(values(op, "C1", {1: [4]}) for op in REDUCTIONS),
    *(values(op, "C1", {1: [-5]}) for op in REDUCTIONS[:3]),
    *(values(op, "C2", {1: [1, 1]}) for op in REDUCTIONS),
    *(values(op, "C2", {1: [2, -1]}) for op in REDUCTIONS[-2:]),
    *(attrs(op, "C1", activations="bogus,tanh,tanh") for op in RECURRENT),
    *(attrs(op, "C2", hidden_size="4") for op in RECURRENT),
    attrs("LSTMSequence-5", "C3", direction="bidirectional"),
    attrs("GRUSequence-5", "C3", direction="bidirectional"),
    attrs("RNNSequence-5", "C3", direction="bidirectional"),
    values("LSTMSequence-5", "C4", {3: np.int32([1, 2, 5])}),
    *(attrs(op, "C2", strides="1,1,1") for op in POOLS),
    *(attrs(op, "C2", kernel="2") for op in POOLS[:3]),
    *(attrs(op, "C3", kernel="30,30") for op in POOLS),
    *(shapes(op, "C1", {0: (2, 3, 2, 3, 4, 5)}) for op in POOLS),
    attrs("MaxPool-8", "C4", axis="4"),
    attrs("MaxPool-14", "C4", axis="-5"),
    *(attrs(op, "C2", dilations="1") for op in WINDOWS),
    *(attrs(op, "C2", strides="1,1,1") for op in WINDOWS),
    *(attrs(op, "C3", dilations="9,9") for op in WINDOWS),
    shapes("Convolution-1", "", {0: (2, 5, 9, 8)}),
    shapes("GroupConvolution-1", "C4", {0: (2, 5, 9, 8)}),
    shapes("GroupConvolutionBackpropData-1", "C4", {0: (2, 5, 9, 8)}),
    shapes("ConvolutionBackpropData-1", "", {0: (2, 5, 9, 8)}),
    attrs("ConvolutionBackpropData-1", "C2", output_padding="0"),
    attrs("DeformableConvolution-8", "C4", group="3"),
    attrs("DeformableConvolution-8", "C5", deformable_group="3"),
    shapes("DeformableConvolution-1", "C6", {1: (2, 12, 6, 7)}),
    attrs("SoftMax-1", "C1", axis="3"),
    attrs("SoftMax-1", "C1", axis="-1"),
    attrs("SoftMax-8", "C1", axis="3"),
    attrs("SoftMax-8", "C1", axis="-4"),
    attrs("LogSoftmax-5", "C1", axis="5"),
    attrs("Clamp-1", "C1", min="3", max="1"),
    values("Swish-4", "C1", {1: np.float32(-1)}),
    values("CumSum-3", "C1", {1: np.int64(2)}),
    shapes("PReLU-1", "C1", {1: (5,)}),
    values("Bucketize-3", "C1", {1: np.float32([0, 2, 1])}),
    attrs("Concat-1", "C3", axis="3"),
    attrs("Concat-1", "C4", axis="0"),
    shapes("Concat-1", "C2", {1: (2, 1)}),
    shapes("Concat-1", "C4", {1: (2, 1, 5)}),
    values("Split-1", "C1", {1: np.int64(3)}),
    attrs("Split-1", "C2", num_splits="3"),
    values("VariadicSplit-1", "C1", {1: np.int64(-4)}),
    values("VariadicSplit-1", "C2", {2: [-1, -1]}),
    values("VariadicSplit-1", "C3", {2: [1, 2]}),
    values("Slice-8", "C1", {3: [0, 1]}),
    values("Slice-8", "C2", {4: [0, 3]}),
    values("Slice-8", "C3", {4: [0, 0]}),
    values("SliceScatter-15", "C1", {4: [0]}),
    values("SliceScatter-15", "C2", {5: [3]}),
    shapes("SliceScatter-15", "C4", {1: (2, 3, 3)}),
    values("StridedSlice-1", "C1", {3: [1, 0, 2]}),
    attrs("StridedSlice-1", "C3", ellipsis_mask="1,1,0"),
    values("Broadcast-1", "C2", {1: [2, 4, 4]}),
    values("Broadcast-3", "C1", {1: [2, 3, -2]}),
    values("Broadcast-3", "C2", {1: [2, 4, 4]}),
    attrs("Broadcast-3", "C3", mode="explicit"),
    values("Pad-1", "C1", {1: [1, 0]}),
    values("Pad-1", "C2", {1: [1, -1, 0]}),
    Rule("Pad-12", "C2", values={1: [2, 0, 2]}, attrs={"pad_mode": "reflect"}),
    values("Pad-12", "C1", {2: [1, 0]}),
    values("Roll-7", "C1", {2: np.int64(3)}),
    values("Transpose-1", "C1", {1: [0, 1, 1]}),
    values("Transpose-1", "C1", {1: [0, 1, 3]}),
    values("Transpose-1", "C1", {1: [0, 1]}),
    attrs("DepthToSpace-1", "C1", block_size="3"),
    attrs("SpaceToDepth-1", "C1", block_size="5"),
    values("BatchToSpace-2", "C2", {1: [2, 5]}),
    values("BatchToSpace-2", "C3", {2: [0, -1]}),
    values("BatchToSpace-2", "C4", {1: [1, 3]}),
    values("BatchToSpace-2", "C5", {2: [0, 11]}),
    values("SpaceToBatch-2", "C2", {1: [1, 0, 3]}),
    values("SpaceToBatch-2", "C4", {1: [1, 5, 3]}),
    values("Reverse-1", "C3", {1: [0, 3]}),
    attrs("Reverse-1", "C1", mode="mask"),
    attrs("ReverseSequence-1", "C1", batch_axis="4"),
    attrs("ReverseSequence-1", "C2", seq_axis="0"),
    attrs("ShuffleChannels-1", "C1", axis="4"),
    attrs("ShuffleChannels-1", "C2", group="3"),
    values("Gather-1", "C1", {2: [3]}),
    values("Gather-1", "C2", {1: np.int32([0, 3])}),
    attrs("Gather-7", "C2", batch_dims="3"),
    values("Gather-7", "C4", {1: np.int64([[0, 1], [2, 9]])}),
    shapes("Gather-7", "C3", {1: (3, 4)}),
    values("Gather-8", "C1", {2: [-4]}),
    attrs("Gather-8", "C2", batch_dims="2"),
    attrs("GatherElements-6", "C1", axis="3"),
    shapes("GatherElements-6", "C2", {1: (5, 3)}),
    shapes("GatherElements-6", "C3", {1: (5, 2, 4)}),
    attrs("GatherND-5", "C1", batch_dims="2"),
    shapes("GatherND-5", "C2", {1: (2, 4)}),
    attrs("GatherND-8", "C1", batch_dims="-1"),
    values("GatherND-8", "C4", {1: np.int32([[0, 0], [2, 0]])}),
    values("ScatterElementsUpdate-3", "C1", {3: [3]}),
    shapes("ScatterElementsUpdate-3", "C3", {1: (3, 2, 4), 2: (3, 2, 4)}),
    values("ScatterElementsUpdate-12", "C1", {3: [-4]}),
    shapes("ScatterElementsUpdate-12", "C2", {1: (2, 2), 2: (2, 2)}),
    shapes("ScatterUpdate-3", "C2", {2: (2, 3, 4)}),
    values("ScatterUpdate-3", "C3", {1: np.int64([0, 3])}),
    shapes("ScatterNDUpdate-3", "C1", {1: (2, 4)}),
    shapes("ScatterNDUpdate-3", "C2", {2: (3,)}),
    shapes("ScatterNDUpdate-15", "C2", {2: (4, 5)}),
    shapes("MatMul-1", "C1", {1: (5, 5)}),
    attrs("MatMul-1", "C1", transpose_a="true"),
    shapes("MatMul-1", "C2", {0: (2, 3, 4), 1: (3, 4, 5)}),
    attrs("Einsum-7", "C1", equation="ij,j1->i"),
    attrs("Einsum-7", "C2", equation="ij->ij"),
    attrs("Einsum-7", "C3", equation="ijk,jk->ik"),
    shapes("Einsum-7", "C5", {1: (5, 5)}),
    attrs("Einsum-7", "C6", equation="ij,jk->iz"),
    values("Reshape-1", "C1", {1: [3, -2]}),
    values("Reshape-1", "C2", {1: [-1, -1]}),
    Rule("Reshape-1", "C3", values={1: [2, 6, 0]}, attrs={"special_zero": "true"}),
    values("Reshape-1", "C4", {1: [5, -1]}),
    values("Reshape-1", "C4", {1: [2, 7]}),
    values("Squeeze-1", "C1", {1: [0, 3]}),
    values("Squeeze-15", "C1", {1: [-4]}),
    values("Unsqueeze-1", "C1", {1: [0, 4]}),
    values("Unsqueeze-1", "C2", {1: [1, -3]}),
    values("DFT-7", "C1", {1: [3]}),
    values("DFT-7", "C2", {1: [1, 1]}),
    values("IDFT-7", "C1", {1: [-4]}),
    values("RDFT-9", "C1", {1: [3]}),
    values("IRDFT-9", "C2", {1: [0, 0]}),
    values("STFT-15", "C1", {2: np.int64(49)}),
    values("STFT-15", "C2", {3: np.int64(0)}),
    values("STFT-15", "C3", {2: np.int64(10)}),
    values("ISTFT-16", "C2", {3: np.int64(0)}),
    values("ISTFT-16", "C4", {2: np.int64(18)}),
    attrs("TopK-1", "C1", axis="3"),
    values("TopK-3", "C2", {1: np.int64(7)}),
    attrs("TopK-11", "C1", axis="-4"),
    values("TopK-11", "C2", {1: np.int64(0)}),
    shapes("SearchSorted-15", "C1", {0: (2, 4, 7)}),
    values("NonMaxSuppression-9", "C1", {2: np.int64(-1)}),
    values("NMSRotated-13", "C1", {2: np.int64(-1)}),
    values("Range-1", "C1", {2: np.int64(0)}),
    values("Range-4", "C1", {2: np.int64(0)}),
    values("Eye-9", "C1", {0: np.int64(-1)}),
    values("RandomUniform-8", "C1", {0: [3, -1]}),
    values("RandomUniform-8", "C3", {1: np.float32(2)}),
    attrs("RandomUniform-8", "C2", output_type="f16"),
    values("Multinomial-13", "C1", {1: np.int32([-1])}),
    attrs("Multinomial-13", "C2", with_replacement="false"),
    values("Interpolate-4", "C1", {3: [2, 4]}),
    values("Interpolate-4", "C2", {1: [9]}),
    values("Interpolate-4", "C3", {1: [9, -4]}),
    values("Interpolate-11", "C1", {2: [2, 2]}),
    attrs("Interpolate-11", "C5", shape_calculation_mode="scales"),
    attrs("Interpolate-1", "C1", axes="2,4"),
    attrs("Interpolate-1", "C2", axes="2"),
    attrs("GRN-1", "C2", bias="-1"),
    attrs("GroupNormalization-12", "C1", num_groups="7"),
    attrs("GroupNormalization-12", "C2", num_groups="4"),
    attrs("GroupNormalization-12", "C3", epsilon="0"),
    values("LRN-1", "C1", {1: [4]}),
    attrs("MVN-1", "C2", reduction_axes="1,4"),
    values("MVN-6", "C1", {1: [3]}),
    attrs("MVN-6", "C2", eps="-1"),
    values("NormalizeL2-1", "C1", {1: [4]}),
    values("NormalizeL2-1", "C2", {1: [1, 1]}),
    values("AdaptiveAvgPool-8", "C2", {1: [3, 3]}),
    values("AdaptiveMaxPool-8", "C3", {1: [-3]}),
    shapes("FakeQuantize-1", "C1", {1: (3,)}),
    shapes("FakeConvert-13", "C1", {1: (5,)}),
    attrs("OneHot-1", "C1", axis="3"),
    values("OneHot-1", "C2", {1: np.int64(0)}),
    attrs("OneHot-16", "C1", axis="-4"),
    shapes("ScaledDotProductAttention-13", "C1", {0: (2, 4, 4, 5)}),
    shapes("ScaledDotProductAttention-13", "", {0: (2, 3, 4, 6)}),
    values("CTCGreedyDecoderSeqLen-6", "C1", {1: np.int32([1, 2, 7])}),
    values("CTCLoss-4", "C1", {1: np.int32([1, 2, 7])}),
    shapes("Select-1", "C1", {1: (2, 4)}),
    attrs("Select-1", "C1", auto_broadcast="none"),
    attrs("ROIAlign-3", "C2", spatial_scale="0"),
    values("ROIAlign-9", "C1", {2: np.int32([0, 0, 0, 0, 2])}),
    attrs("ROIPooling-1", "C2", spatial_scale="-1"),
    attrs("PSROIPooling-1", "C3", output_dim="3"),
    attrs("DeformablePSROIPooling-1", "C3", group_size="3"),
    attrs("RegionYolo-1", "C2", classes="4"),
    attrs("RegionYolo-1", "C1", axis="5"),
    attrs("ReorgYolo-1", "C1", stride="3"),
    attrs("PriorBox-1", "C1", variance="1,2"),
    attrs("PriorBox-8", "C3", max_size="1,2"),
    attrs("PriorBox-8", "C5", aspect_ratio="-1"),
    attrs("PriorBoxClustered-1", "C3", width="8"),
    shapes("DetectionOutput-1", "C4", {1: (2, 19)}),
    shapes("DetectionOutput-8", "C3", {0: (2, 25)}),
    shapes("Proposal-1", "C2", {1: (1, 15, 3, 4)}),
    shapes("Proposal-4", "C1", {2: (5,)}),
    shapes("GenerateProposals-9", "C2", {2: (2, 7, 3, 4)}),
    attrs("ExperimentalDetectronDetectionOutput-6", "C2", deltas_weights="10,10,5"),
    attrs("ExperimentalDetectronROIFeatureExtractor-6", "C2", pyramid_scales="4,8"),
    shapes("NV12toRGB-8", "C1", {0: (2, 7, 6, 1)}),
    shapes("I420toBGR-8", "C1", {0: (2, 6, 5, 1)}),
    values("EmbeddingSegmentsSum-3", "C1", {3: np.int64(-1)}),
    values("EmbeddingSegmentsSum-3", "C2", {2: [0, 0, 2, 2, 2, 9]}),
    values("EmbeddingSegmentsSum-3", "C3", {1: [5, 0, 3, 3, 1, 6]}),
    values("EmbeddingBagOffsetsSum-3", "C1", {2: [0, 2, 4, 7]}),
    values("EmbeddingBagOffsetsSum-3", "C2", {2: [0, 4, 2, 6]}),
    values("EmbeddingBagOffsets-15", "C3", {1: [0, 1, 2, 3, 4, 6]}),
    values("EmbeddingBagPackedSum-3", "C1", {1: [[0, 1, 2], [3, 4, -1]]}),
    values("SparseFillEmptyRows-16", "C1", {1: [-5, 6]}),
    values("SparseFillEmptyRows-16", "C2", {1: [1, 6]}),
    values("SegmentMax-16", "C2", {1: np.int32([0, 2, 1, 3, 3])}),
    values("Col2Im-15", "C2", {1: [4, 0]}),
    values("Col2Im-15", "C3", {2: [2, 5]}),
    attrs("Col2Im-15", "C4", strides="2,2"),
    attrs("ExtractImagePatches-3", "C1", strides="1"),
    attrs("ExtractImagePatches-3", "C2", sizes="5,3"),
    attrs("ConvertLike-1", "", bogus="1"),
    shapes("Inverse-14", "", {0: (2, 3)}),
    attrs("ConvertPromoteTypes-14", "", promote_unsafe="sure"),
]


def defects() -> Iterator[Defect]:
    for rule in RULES:
        document = seed(rule.op)
        layer = document.subject()
        for number, shape in rule.shapes.items():
            document.set_input(layer, number, shape)
        for number, value in rule.values.items():
            document.set_value(layer, number, value)
        for name, text in rule.attrs.items():
            data_of(layer).set(name, text)
        spots = around(layer, *range(len(inputs(layer))), attributes=rule.attrs)
        what = ", ".join(
            [f"{name}={text}" for name, text in rule.attrs.items()]
            + [f"input {number} of {list(shape)}" for number, shape in rule.shapes.items()]
            + [f"input {number} = {np.asarray(value).tolist()}" for number, value in rule.values.items()]
        )
        # a rule for the rank, the sizes or the range of one input or attribute may be part of the declaration
        codes = "E401 E304 E305 E307 W951 W953" if rule.label else "E304 E307 W930"
        yield defect("constraint", f"{rule.label or 'a rule'}: {what}", document, codes, spots, [layer], stale=True)
