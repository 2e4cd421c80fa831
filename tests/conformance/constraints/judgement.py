"""Whether what OpenVINO computes of a model that breaks a rule is sensible: what is judged by hand, and why.

What it refuses, what ends it, and what changes from run to run needs no judgement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from conformance.constraints.row import CONSTANTS, PARAMETERS, Row

LOST = "what the file says is not what is computed"
PART = "reads a part of it only, and drops the rest"
MORE = "reads more than there is"
BEYOND = "follows indices, or counts, out of the data, or drops what they stand for"
NOTHING = "nothing is left of the data"
QUANTITY = "takes 0, or nothing, for a quantity that nothing says"
BITS = "takes other bits for the number"
CUT = "computes in f32, and cuts the results to the type"
BOOLEANS = "booleans are no numbers; results are what is left of arithmetic with 0 and 1"
NO_NUMBER = "the arithmetic has no result"
AMBIGUOUS = "there is no one reading of it"
UNEVEN = "does so for a few shapes only; others it refuses, or leaves it out, or ends"

DEFAULT = "takes the usual value"
WRAPS = "counts them from the end, as newer versions of the op do"
WHOLE = "takes them for whole numbers"
ONCE = "counts an axis once"
ARITHMETIC = "computes with it as with any other value"
UNREAD = "nothing reads it in this mode"
SHAPES = "an evident reading of the shapes"


class Judgement(NamedTuple):
    """`op`, `label` and `what` are patterns, the last one of what was changed or of our message."""

    op: str
    label: str
    what: str
    verdict: str
    because: str


def no(because: str, op: str, label: str, what: str = "") -> Judgement:
    return Judgement(op, label, what, "error", because)


def yes(because: str, op: str, label: str, what: str = "") -> Judgement:
    return Judgement(op, label, what, "warning", because)


FOUNDING = "SparseFillEmptyRows-16|EmbeddingSegmentsSum-3|ScatterElementsUpdate-3"
UNREADABLE = r" is `(1\.7|abc||1,5|yes|a|1 2|.*bogus|f23|FP32|3x|1,-2)`$"
RECURRENT = r"(GRU|LSTM|RNN)(Cell|Sequence)-\d"

JUDGEMENTS: tuple[Judgement, ...] = (
    no("its constraints are all errors", FOUNDING, ".*"),
    no(LOST, ".*", "E307", UNREADABLE),
    # missing attributes
    no(QUANTITY, r"Clamp-1|Elu-1|LRN-1|FakeQuantize-1|RegionYolo-1|DetectionOutput-.|Deformable.*Pooling-1", "E306"),
    no(QUANTITY, r"ExperimentalDetectronDetectionOutput-6", "E306"),
    no(QUANTITY, r"(GatherElements|OneHot|TopK)-\d+", "E306", "`axis`"),
    no(QUANTITY, r".*", "E306", "`(nms_threshold|nms_thresh|pre_nms_.*|base_size|feat_stride|ratio|scale)`"),
    no(QUANTITY, r"ROIAlign.*", "E306", "`(pooled_.|spatial_scale)`"),
    no("reads the same in `output_roi`, which the page does not have", r"ROIPooling-1", "E306", "`pooled_.`"),
    yes(DEFAULT, ".*", "E306"),
    # element types
    yes("whether both of any pair are true", "MatMul-1", "E303", "is boolean"),
    yes("false is the smaller one", "TopK-11", "E303", "is boolean"),
    yes("as many as are true, in u8", "CumSum-3", "E303", "is boolean"),
    no(BOOLEANS, ".*", "E303", "is boolean"),
    yes("pads them as Pad-12 does", "Pad-1", "E303", "^T is string"),
    no("texts are no numbers, and their elements are lost", ".*", "E303", "is string"),
    yes("the largest elements are exact", "AdaptiveMaxPool-8", "E303", "^T is"),
    yes("whole numbers are exact in this mode", "Interpolate-1", "E303", "^T is"),
    yes("numbers that are 0 or not", "LogicalNot-1", "E303", "^T is"),
    no(CUT, r"(?!CTCLoss).*", "E303", "^(T|T1) is"),
    yes("converts it", "DeformableConvolution-8", "E303", "`mask`"),
    yes(WHOLE, ".*", "E303"),
    # sizes, ranks and numbers of ports
    no(PART, ".*", "E304"),
    no(PART, "ScaledDotProductAttention-13", "E302"),
    # attributes out of range
    yes(UNREAD, r"(AvgPool|MaxPool)-\d+|.*ConvolutionBackpropData-1", "E307", "`pads_.*-1"),
    yes("crops the result", r".*ConvolutionBackpropData-1", "E307", "`output_padding` is `-1"),
    yes(UNREAD, "DetectionOutput-.", "E307", "`input_"),
    yes(UNREAD, "PSROIPooling-1", "E307", "`spatial_bins_"),
    no(UNEVEN, "Convolution-1", "E307", "`pads_end` is `-1`"),
    yes("another word for explicit", "Broadcast-3", "E307", "`none`"),
    yes("as 0", "ExperimentalDetectronROIFeatureExtractor-6", "E307", "`sampling_ratio` is `-1`"),
    no("boxes of nothing come out", "ExperimentalDetectronDetectionOutput-6", "E307", "`score_threshold`|`post_nms"),
    no(NOTHING, ".*", "E307", "`(spatial_bins_.|pooled_.|pre_nms_.*|sampling_ratio|size)`"),
    no(NO_NUMBER, "FakeQuantize-1", "E307"),
    yes(ARITHMETIC, "PriorBox.*", "E307", "`(offset|step.?.?|variance)` is `nan"),
    yes(ARITHMETIC, "PriorBox.*", "E307", "`(offset|step_.|variance)` is `-"),
    no("boxes of negative sizes", "PriorBox.*", "E307"),
    no(BITS, "DetectionOutput-.", "E307", r"`(background_label_id|top_k)` is `-?2147483"),
    no(NO_NUMBER, "ROIAlign.*|GRN-1|MVN-.|GroupNormalization-12", "E307", "is `nan`"),
    no("another result in each run, as in Proposal-4", "Proposal-1", "E307", "`box_.* is `nan`"),
    no(
        "which of the boxes that are no numbers come first is left to chance",
        "Proposal-.",
        "E307",
        "`(ratio|scale)` is `nan",
    ),
    no("drops the best box of each class", "MatrixNms-8", "E307", "`post_threshold` is `nan`"),
    yes(UNREAD, "RegionYolo-1", "E307", "`anchors`"),
    no("another number in each run, as in RandomUniform-8", "Multinomial-13", "E307", "seed"),
    no("boxes of no size", r"Proposal-\d", "E307", "`(base_size|feat_stride|min_size)`"),
    no(LOST, "RegionYolo-1", "E307"),
    no(AMBIGUOUS, "DeformablePSROIPooling-1", "E307", "`part_size`"),
    yes("goes without it", RECURRENT, "E307", "`clip`"),
    yes("the functions that it has are all there", RECURRENT, "C1"),
    yes(ARITHMETIC, ".*", "E307"),
    # constraints
    yes(DEFAULT, r".*Convolution.*|(Avg|Max)Pool-\d+", "C2", "has no values"),
    yes(ONCE, r"Reduce.*|NormalizeL2-1|Squeeze-1.*", "C2"),
    yes(ONCE, "MVN-6", "C3", "twice"),
    yes(ONCE, "MVN-1|Reverse-1", "C4"),
    yes(ONCE, "Unsqueeze-1", "C2", "twice"),
    yes(WRAPS, "GatherElements-6|GatherND-5", "C4", "is -1, outside"),
    yes(WRAPS, "ScatterNDUpdate-3", "C3", "is -1, outside"),
    yes(ARITHMETIC, "Swish-4", "C1"),
    yes("buckets that are empty", "Bucketize-3", "C1", "is 5, not below .*, 5$"),
    yes("a sequence of padding", "ReverseSequence-1", "C4", "is 0, expected 1 or more"),
    no("what a search finds in numbers that do not ascend", "Bucketize-3", "C1"),
    yes(SHAPES, "ScaledDotProductAttention-13", "C3|C4"),
    yes(SHAPES, "Broadcast-1", "C3"),
    yes("an ellipsis for no dimensions", "Einsum-7", "C6"),
    yes("crops the data", "Pad-1", "C2"),
    no(UNEVEN, "BatchToSpace-2", "C3", r"`crops_.*\[0\]`"),
    yes("sums of one element", "CumSum-3", "C2"),
    yes(UNREAD, "Interpolate-4", "C5"),
    no(PART, "Selu-1", "C1", r"is \[2\]"),
    yes(SHAPES, "Selu-1", "C1"),
    yes("takes all", "ExperimentalDetectronGenerateProposalsSingleImage-6", "C3"),
    yes("places fewer windows", "DeformableConvolution-1", "C7"),
    yes("places fewer windows", "DeformableConvolution-8", "C8"),
    yes(ARITHMETIC, "LRN-1", "C2"),
    no("goes by how many axes there are, not by which these are", "LRN-1", "C3"),
    yes(UNREAD, "RegionYolo-1", "C3"),
    yes("keeps all classes", "CTCGreedyDecoderSeqLen-6", "C2"),
    yes("goes without it", "GRN-1|GroupNormalization-12|MVN-.|NormalizeL2-1", "C[123]", "(is 0.0|is `0`)"),
    no(NO_NUMBER, "GRN-1|MVN-.|GroupNormalization-12|NormalizeL2-1", "C[23]", "is (-1.0|`-1`)"),
    yes(DEFAULT, "MVN-1", "C1"),
    no(LOST, "MVN-1", "C2"),
    no("boxes turned inside out", "ROIAlign.*|DeformablePSROIPooling-1", "C2", "is -1"),
    yes("pools at one point", "ROIAlign.*|DeformablePSROIPooling-1", "C2", "spatial_scale"),
    yes("flattens nothing", "RegionYolo-1", "C1"),
    yes("goes by the type of the input", "If-8", "C3"),
    no(PART, "Interpolate-1", "C6", r"\[1, 0, 0\] for rank 2"),
    yes("pads the other axes, too", "Interpolate-1", "C6"),
    no(AMBIGUOUS, r"Interpolate-\d+", "C[12]"),
    no(NOTHING, r"Interpolate-\d+", "C3"),
    yes("places no patches", "ExtractImagePatches-3", "C2"),
    no(NOTHING, "ConvolutionBackpropData-1|OneHot-1|AdaptiveMaxPool-8", "C[23]"),
    no("counts in a rank that the result does not have", "Unsqueeze-1", "C2"),
    no(PART, r"PReLU-1|FakeQuantize-1|ExperimentalDetectron.*|DeformablePSROIPooling-1|BatchToSpace-2", "C[124]"),
    no(MORE, r"PriorBox-\d|DeformableConvolution-\d|MulticlassNms-9|StringTensorPack-15", "C[1245]"),
    no(BEYOND, r"Gather(ND)?-\d|ROIAlignRotated-15|SegmentMax-16|ScatterElementsUpdate-12|GroupedMatMul-17", "C[1234]"),
    no("leaves out what it stands for", "LSTMCell-1", "C4"),
    no(BEYOND, r"CTCLoss-4|" + RECURRENT, "C[34]"),
    no(NO_NUMBER, r"(Divide|FloorMod|Mod|PriorBoxClustered)-1|PriorBox-\d", "C[26]"),
    no("the results are no draws from these", "Multinomial-13", "C[23]"),
    no("repeats some numbers", "Range-4", "C1"),
    yes("takes the first of equal ones", "ReorgYolo-1", "C3", r"is \[2, 2\]"),
    no(LOST, "Loop-5|ReorgYolo-1", "C3"),
    no(AMBIGUOUS, "ReverseSequence-1", "C2"),
)


def judged(row: Row, answers: Mapping[str, str]) -> tuple[str, str]:
    """The verdict of a row and its reason; an empty verdict where somebody has to judge."""
    first, second = answers[CONSTANTS], answers.get(PARAMETERS, "")
    kinds = [answer.partition(":")[0] for answer in (first, second)]
    if kinds[0] != "computes":
        return "error", ""
    if kinds[1] in ("unstable", "crashes", "hangs"):
        return "error", ""
    for judgement in JUDGEMENTS:
        said = row.changed or row.text
        patterns = ((judgement.op, row.op), (judgement.label, row.label))
        if all(re.fullmatch(*each) for each in patterns) and re.search(judgement.what, said):
            return judgement.verdict, judgement.because
    return "", ""
