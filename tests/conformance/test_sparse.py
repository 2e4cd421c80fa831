"""Sparse ops, against OpenVINO."""

from functools import partial

import numpy as np
from openvino import opset3, opset15, opset16

from conformance.harness import Case, Const, Departure, conformance

random = np.random.default_rng(7)
TABLE = random.standard_normal((6, 3)).astype(np.float32)
DEEP = random.standard_normal((5, 2, 4)).astype(np.float32)
WHOLE = random.integers(-9, 9, (6, 3)).astype(np.int32)
INDICES = np.array([5, 0, 3, 3, 1, 2])
IDS = np.array([0, 0, 2, 2, 2, 3])
OFFSETS = np.array([0, 2, 2, 5])
WEIGHTS = random.standard_normal(6).astype(np.float32)
PAIRS = INDICES.reshape(2, 3)
NO_DYNAMIC_WEIGHTS = Departure(
    "refuses weights of a dynamic shape; the page has no such limit", "per_sample_weights is dynamic"
)

fill = opset16.sparse_fill_empty_rows
segments = opset3.embedding_segments_sum
offsets_sum = opset3.embedding_bag_offsets_sum
packed_sum = opset3.embedding_bag_packed_sum
offsets = opset15.embedding_bag_offsets
packed = opset15.embedding_bag_packed


def fill_case(title, values, dense_shape, indices, default, **rest):
    return Case("SparseFillEmptyRows-16", title, fill, [values, dense_shape, indices, default], **rest)


def segments_case(title, *inputs, **rest):
    return Case("EmbeddingSegmentsSum-3", title, segments, inputs, **rest)


def bags(name, build, title, *inputs, **rest):
    return Case(name, title, build, inputs, **rest)


F32 = np.arange(4, dtype=np.float32)
PLACES = np.array([[0, 1], [0, 3], [2, 0], [3, 1]])
NINE = np.array(9, np.float32)

CASES = [
    fill_case("constants but for the values", F32, Const(np.array([5, 6])), Const(PLACES), Const(NINE)),
    fill_case("dynamic", F32, np.array([5, 6]), PLACES, NINE, dynamic=True),
    fill_case("unsorted", F32, np.array([5, 6]), PLACES[[2, 0, 3, 1]], NINE),
    fill_case("i32", F32.astype(np.int32), np.int32([5, 6]), PLACES.astype(np.int32), np.int32(-1)),
    fill_case("i64 values", F32.astype(np.int64), np.array([5, 6]), PLACES, np.array(7)),
    fill_case("f16 values", F32.astype(np.float16), np.array([5, 6]), PLACES, np.float16(7)),
    fill_case("no values", F32[:0], Const(np.array([3, 2])), PLACES[:0], NINE),
    fill_case(
        *("no values, dynamic", F32[:0], np.array([3, 2]), PLACES[:0], NINE),
        dynamic=True,
        deviates=Departure(
            "refuses, or gives nothing, where there are no values and sizes are unknown; the page fills each row",
            "values is empty; values is dynamic",
        ),
        expected=[np.array([[0, 0], [1, 0], [2, 0]]), np.full(3, 9, np.float32), np.full(3, True)],
    ),
    fill_case("no rows", F32[:0], Const(np.array([0, 2])), PLACES[:0], NINE),
    fill_case("no empty rows", F32[:2], Const(np.array([2, 2])), np.array([[1, 1], [0, 0]]), NINE),
    segments_case("sum", TABLE, Const(INDICES), Const(IDS), Const(np.array(4))),
    segments_case("default", TABLE, INDICES, IDS, Const(np.array(5)), Const(np.array(1))),
    segments_case(
        "default -1",
        *(TABLE, INDICES, IDS, Const(np.array(5)), Const(np.array(-1))),
        deviates=Departure(
            "refuses a default_index of -1; OpenVINO's own converters write it for zeros", "default_index = -1"
        ),
        expected=[[TABLE[5] + TABLE[0], 0 * TABLE[0], 2 * TABLE[3] + TABLE[1], TABLE[2], 0 * TABLE[0]]],
    ),
    segments_case("weights", DEEP, INDICES % 5, IDS, Const(np.array(4)), Const(np.array(2)), WEIGHTS),
    segments_case("i32", WHOLE, np.int32(INDICES), np.int32(IDS), Const(np.int32(4))),
    segments_case("f16", np.float16(TABLE), INDICES, IDS, Const(np.array(4)), rtol=2e-3, atol=2e-3),
    segments_case("dynamic", TABLE, INDICES, IDS, np.array(4), np.array(0), dynamic=True),
    segments_case(
        "dynamic with weights",
        *(TABLE, INDICES[:2], IDS[:2], np.array(2), np.array(4), WEIGHTS[:2]),
        dynamic=True,
        deviates=NO_DYNAMIC_WEIGHTS,
        expected=[[WEIGHTS[0] * TABLE[5] + WEIGHTS[1] * TABLE[0], TABLE[4]]],
    ),
]

for name, build in (("EmbeddingBagOffsetsSum-3", offsets_sum), ("EmbeddingBagOffsets-15", offsets)):
    case = partial(bags, name, build)
    CASES += [
        case("sum", TABLE, INDICES, OFFSETS),
        case("constants", TABLE, Const(INDICES), Const(OFFSETS), Const(np.array(1))),
        case("default", TABLE, INDICES, OFFSETS, Const(np.array(1))),
        case("default -1 and weights", TABLE, INDICES, OFFSETS, Const(np.array(-1)), WEIGHTS),
        case("deep with weights", DEEP, INDICES % 5, OFFSETS, np.array(4), WEIGHTS),
        case("dynamic", DEEP, INDICES % 5, OFFSETS, np.array(4), dynamic=True),
        case("i32", WHOLE, np.int32(INDICES), np.int32(OFFSETS)),
    ]

for name, build in (("EmbeddingBagPackedSum-3", packed_sum), ("EmbeddingBagPacked-15", packed)):
    case = partial(bags, name, build)
    CASES += [
        case("sum", TABLE, PAIRS),
        case("constants", TABLE, Const(PAIRS)),
        case("deep with weights", DEEP, PAIRS % 5, WEIGHTS.reshape(2, 3)),
        case("dynamic", DEEP, PAIRS % 5, dynamic=True),
        case("i32", WHOLE, np.int32(PAIRS)),
        case("f16", np.float16(TABLE), PAIRS, rtol=2e-3, atol=2e-3),
    ]

CASES += [
    bags("EmbeddingBagOffsets-15", partial(offsets, reduction="mean"), "mean", TABLE, INDICES, OFFSETS),
    bags(
        "EmbeddingBagOffsets-15",
        partial(offsets, reduction="mean"),
        "mean with default, dynamic",
        *(TABLE, INDICES, OFFSETS, np.array(3)),
        dynamic=True,
    ),
    bags("EmbeddingBagPacked-15", partial(packed, reduction="mean"), "mean", TABLE, PAIRS),
    bags(
        "EmbeddingBagPacked-15", partial(packed, reduction="mean"), "deep mean, dynamic", DEEP, PAIRS % 5, dynamic=True
    ),
]

CASES += [
    bags(
        name,
        build,
        title,
        *(TABLE, INDICES[:2], np.array([0, 2]), *default),
        deviates=Departure(
            "refuses an empty bag at the end; the page has empty bags anywhere", "offsets = size of indices"
        ),
        expected=[[TABLE[5] + TABLE[0], last]],
    )
    for name, build in (("EmbeddingBagOffsetsSum-3", offsets_sum), ("EmbeddingBagOffsets-15", offsets))
    for title, default, last in (
        ("empty last bag", [], 0 * TABLE[0]),
        ("empty last bag, default", [Const(np.array(2))], TABLE[2]),
    )
]

CASES += [
    bags(
        name,
        build,
        "weights, dynamic",
        *(TABLE, PAIRS, WEIGHTS.reshape(2, 3)),
        dynamic=True,
        deviates=NO_DYNAMIC_WEIGHTS,
        expected=[np.einsum("bi,bic->bc", WEIGHTS.reshape(2, 3), TABLE[PAIRS])],
    )
    for name, build in (("EmbeddingBagPackedSum-3", packed_sum), ("EmbeddingBagPacked-15", packed))
]

test_agrees_with_openvino = conformance(CASES)
