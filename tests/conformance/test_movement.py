"""Data movement ops, against OpenVINO."""

from functools import partial

import ml_dtypes
import numpy as np
import openvino as ov
from openvino import opset1, opset2, opset3, opset4, opset5, opset6, opset7, opset8, opset10, opset12, opset15
from openvino.utils.node_factory import NodeFactory

from conformance.harness import (
    Case,
    Const,
    Departure,
    conformance,
    with_attribute,
    with_unknown_ranks,
    without_input,
)

random = np.random.default_rng(11)
CUBE = random.standard_normal((2, 3, 4)).astype(np.float32)
WHOLE = random.integers(-9, 9, (2, 3, 4)).astype(np.int32)
HALF = CUBE.astype(np.float16)
IMAGE = random.standard_normal((2, 8, 4, 6)).astype(np.float32)
WORDS = np.array([["Intel", ""], ["OpenVINO", "é"]])
INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


def i64(*values):
    return np.array(values, np.int64)


def c(*values):
    return Const(i64(*values))


def cases(op, build, *rows):
    """Cases of one op; a row is a title, the inputs and what else the case needs."""
    return [
        Case(op, title, partial(build, **rest.pop("attrs", {})), inputs, **rest)
        for title, inputs, rest in ((title, inputs, dict(rest[0]) if rest else {}) for title, inputs, *rest in rows)
    ]


def less_than_a_size(build, data, other):
    return build(data, opset1.subtract(opset3.shape_of(other), opset1.constant(i64(2))))


def with_bounds(low, high):
    """An edit that gives bounds to the size of the second Parameter."""

    def edit(root):
        _, parameter = (layer for layer in root.iter("layer") if layer.get("type") == "Parameter")
        parameter.find("data").set("shape", f"{low}..{high}")
        parameter.find("output/port/dim").text = "-1"

    return edit


def in_turn(*edits):
    def edit(root):
        for each in edits:
            each(root)

    return edit


DYNAMIC = {"dynamic": True}


def attrs(dynamic=False, **values):
    return {"attrs": values, "dynamic": dynamic}


GATHERED = np.array([[1, 0], [2, 2]], np.int32)

GATHERS = [
    *cases(
        "Gather-1",
        opset1.gather,
        ("of rows", [CUBE, GATHERED, c(1)]),
        ("of scalars", [WHOLE, np.array(1), Const(np.array(-1))]),
        ("dynamic", [HALF, i64(1, 1, 0), Const(np.array(0, np.int32))], DYNAMIC),
        ("booleans", [CUBE > 0, i64(3, 0), c(2)]),
    ),
    *cases(
        "Gather-7",
        opset7.gather,
        ("of batches", [CUBE, i64([1, 0, 2, 2], [0, 0, 1, 2]), c(1)], attrs(batch_dims=1)),
        ("of batches, negative", [CUBE, i64([1, 3], [0, 2]), c(-1)], attrs(batch_dims=-1)),
        ("int8", [WHOLE.astype(np.int8), i64(2, 0), c(1)], attrs(batch_dims=0)),
        ("dynamic", [CUBE, random.integers(0, 4, (2, 3, 5)), c(2)], attrs(True, batch_dims=2)),
    ),
    *cases(
        "Gather-8",
        opset8.gather,
        ("of negative indices", [CUBE, i64(-1, 0, -3), c(1)], attrs(batch_dims=0)),
        ("outside", [CUBE, i64(-4, 3, 1, 9), c(1)], attrs(batch_dims=0)),
        ("outside in batches", [WHOLE, i64([5, -1], [0, -5]), c(2)], attrs(True, batch_dims=1)),
        ("bf16", [CUBE.astype(ml_dtypes.bfloat16), GATHERED, c(2)], attrs(batch_dims=0)),
        ("u8", [WHOLE.astype(np.uint8), GATHERED, c(1)], attrs(batch_dims=0)),
    ),
    *cases(
        "GatherElements-6",
        opset6.gather_elements,
        ("axis 0", [CUBE, random.integers(0, 2, (5, 3, 4))], attrs(axis=0)),
        ("axis -1", [WHOLE, random.integers(0, 4, (2, 3, 1)).astype(np.int32)], attrs(axis=-1)),
        ("dynamic", [HALF, random.integers(0, 3, (2, 6, 4))], attrs(True, axis=1)),
        ("one dimension", [i64(5, 6, 7), i64(2, 0, 1, 2)], attrs(axis=0)),
    ),
    *cases(
        "GatherND-5",
        opset5.gather_nd,
        ("elements", [CUBE, i64([0, 1, 2], [1, 2, 3])], attrs(batch_dims=0)),
        ("slices", [WHOLE, i64([[1]], [[0]])], attrs(batch_dims=0)),
        ("one batch", [CUBE, i64([[1, 0]], [[2, 3]])], attrs(batch_dims=1)),
        ("two batches", [CUBE, random.integers(0, 4, (2, 3, 5, 1))], attrs(batch_dims=2)),
    ),
    *cases(
        "GatherND-8",
        opset8.gather_nd,
        ("negative", [CUBE, np.array([[-1, 1], [0, -3]], np.int32)], attrs(batch_dims=0)),
        ("slices", [HALF, i64([[1]], [[0]])], attrs(batch_dims=0)),
        ("one batch", [WHOLE, i64([[1, 0]], [[2, 3]])], attrs(batch_dims=1)),
        ("two batches", [CUBE, random.integers(0, 4, (2, 3, 5, 1))], attrs(batch_dims=2)),
    ),
]

UPDATES = random.standard_normal((2, 2, 4)).astype(np.float32)
MIXED = random.integers(-3, 3, (2, 7, 3))
MANY = random.standard_normal((2, 7, 3)).astype(np.float32)
FEW = random.integers(-9, 9, (2, 7, 3)).astype(np.int32)
POSITIVE = WHOLE % 10


def elements(title, data, indices, updates, axis, reduction="none", use_init_val=True, **rest):
    build = partial(opset12.scatter_elements_update, reduction=reduction, use_init_val=use_init_val)
    return Case("ScatterElementsUpdate-12", title, build, [data, indices, updates, c(axis)], **rest)


SCATTERS = [
    *cases(
        "ScatterElementsUpdate-3",
        opset3.scatter_elements_update,
        ("last axis", [CUBE, np.argsort(UPDATES, -1), UPDATES, c(2)]),
        ("first axis", [WHOLE, np.zeros((1, 3, 4), np.int32), WHOLE[1:], Const(np.array(-3))]),
        ("fewer updates", [CUBE, i64([[2, 0], [1, 2]]), UPDATES[:1, :2, :2], c(1)]),
        ("dynamic", [HALF, np.argsort(UPDATES, -1).astype(np.int32), UPDATES.astype(np.float16), c(2)], DYNAMIC),
        ("i64", [i64(1, 2, 3), i64(2, 0), i64(8, 9), Const(np.array(0, np.int32))]),
    ),
    elements("none, negative indices", CUBE, i64([[-1, 0], [1, -2]]), UPDATES[:1, :2, :2], 1),
    elements("none, duplicates", i64(1, 2, 3), i64(0, 0, 1, 0), i64(5, 6, 7, 8), 0),
    elements("none without initial values", CUBE, i64([[0, 1]]), UPDATES[:1, :1, :2], 1, use_init_val=False),
    *(
        elements(f"{reduction} of f32, init {init}", CUBE, MIXED, MANY, 1, reduction, init)
        for reduction in ("sum", "prod", "min", "max", "mean")
        for init in (True, False)
    ),
    *(
        elements(f"{reduction} of i32, init {init}", WHOLE, MIXED, FEW, -2, reduction, init, dynamic=True)
        for reduction in ("sum", "prod", "min", "max")
        for init in (True, False)
    ),
    elements("mean of positive i32", POSITIVE, MIXED, FEW % 10, 1, "mean"),
    elements(
        "mean of negative i32",
        np.array([-2], np.int32),
        i64(0),
        np.array([-3], np.int32),
        0,
        "mean",
        deviates=Departure(
            "rounds integer means towards zero; the reference rounds them down",
            "reduction = mean; data is i8, i16, i32, i64; data has negative numbers | updates has negative numbers",
        ),
        expected=[np.array([-3], np.int32)],
    ),
    elements(
        "min of infinity",
        CUBE[0, 0],
        i64(0),
        np.array([np.inf], np.float32),
        0,
        "min",
        False,
        deviates=Departure(
            "starts from the largest finite number; the page reduces the updates alone",
            "reduction = min; use_init_val = false; updates has +infinity",
        ),
        expected=[np.array([np.inf, *CUBE[0, 0, 1:]], np.float32)],
    ),
    elements("sum of f16", HALF, MIXED, MANY.astype(np.float16), 1, "sum", rtol=1e-2, atol=1e-2),
    elements("sum of u8", WHOLE.astype(np.uint8) % 10, MIXED, (FEW % 10).astype(np.uint8), 1, "sum"),
    elements("max of i64", i64(1, -2, 3), i64(-2, 1), i64(-1, -5), 0, "max"),
    *(
        elements(f"{reduction} of booleans", CUBE > 0, MIXED, MANY > 0, 1, reduction)
        for reduction in ("none", "sum", "prod", "min", "max")
    ),
    *cases(
        "ScatterUpdate-3",
        opset3.scatter_update,
        ("rows", [CUBE, i64(2, 0), UPDATES, c(1)]),
        ("a table of indices", [WHOLE, i64([0], [2]), np.ones((2, 2, 1, 4), np.int32), c(-2)]),
        ("i64", [i64(1, 2, 3), np.array([1], np.int32), i64(9), Const(np.array(0))]),
        ("dynamic", [HALF, i64(1), np.ones((1, 3, 4), np.float16), c(0)], DYNAMIC),
    ),
    *cases(
        "ScatterNDUpdate-3",
        opset4.scatter_nd_update,
        ("elements", [CUBE, i64([0, 1, 2], [1, 2, 3]), np.ones(2, np.float32)]),
        ("slices", [WHOLE, np.array([[[1]]], np.int32), np.ones((1, 1, 3, 4), np.int32)]),
        ("i64", [i64(1, 2, 3), i64([2], [0]), i64(7, 8)]),
        ("dynamic", [CUBE, i64([0, 1], [1, 2]), UPDATES[0]], DYNAMIC),
    ),
    *(
        Case(
            "ScatterNDUpdate-15",
            f"{reduction} of {name}",
            partial(opset15.scatter_nd_update, reduction=reduction),
            [data, i64([0, 1], [-1, 2], [0, 1], [0, -2]), updates],
            dynamic=name == "i32",
        )
        for reduction in ("none", "sum", "sub", "prod", "min", "max")
        for name, data, updates in (
            ("f32", CUBE, np.concatenate([UPDATES[0], UPDATES[1]])),
            ("i32", WHOLE, random.integers(-5, 5, (4, 4)).astype(np.int32)),
        )
    ),
    *(
        Case(
            "ScatterNDUpdate-15",
            f"{reduction} of booleans",
            partial(opset15.scatter_nd_update, reduction=reduction),
            [np.array([True, False, True, False]), i64([0], [1], [2], [3]), np.array([True, True, False, False])],
        )
        for reduction in ("sum", "sub", "prod")
    ),
    Case(
        "ScatterNDUpdate-15",
        "sub of booleans, one of them twice",
        partial(opset15.scatter_nd_update, reduction="sub"),
        [np.array([False, True]), i64([0], [1], [0]), np.array([True, True, True])],
        deviates=Departure(
            "subtracts all updates of an element, and takes any other number than 0 for true; on the page sub is XOR",
            "data is boolean; reduction = sub; (several updates of one element are true)",
        ),
        expected=[np.array([False, False])],
    ),
]


def concat(*nodes, axis):
    return opset1.concat(list(nodes), axis)


JOINS = [
    *cases(
        "Concat-1",
        concat,
        ("two", [CUBE, CUBE[:, :1]], attrs(axis=1)),
        ("three, negative axis", [WHOLE, WHOLE[..., :2], WHOLE[..., :0]], attrs(axis=-1)),
        ("dynamic", [HALF, HALF[:1]], attrs(True, axis=0)),
        ("booleans", [CUBE > 0, CUBE < 1], attrs(axis=2)),
        ("one", [CUBE], attrs(axis=0)),
    ),
    *cases(
        "Split-1",
        opset1.split,
        ("in two", [CUBE, Const(np.array(2))], attrs(num_splits=2)),
        ("in three", [WHOLE, Const(np.array(-2, np.int32))], attrs(num_splits=3)),
        ("dynamic", [HALF, Const(np.array(0))], attrs(True, num_splits=2)),
        ("in one", [i64(1, 2), Const(np.array(0))], attrs(num_splits=1)),
    ),
    *cases(
        "VariadicSplit-1",
        opset1.variadic_split,
        ("by lengths", [CUBE, Const(np.array(2)), c(1, 3)]),
        ("by a rest", [WHOLE, c(-1), c(1, -1, 2)]),
        ("with an empty part", [CUBE, Const(np.array(1)), c(0, 3)]),
        ("dynamic", [HALF, Const(np.array(1, np.int32)), Const(np.array([-1, 2], np.int32))], DYNAMIC),
    ),
]


def on_a_grid(data):
    """Whole numbers from -1 to 14, of which 1 is the code of 0."""
    limits = [opset1.constant(np.float32(limit)) for limit in (-1, 14, -1, 14)]
    return opset1.fake_quantize(data, *limits, levels=16)


def strided(data, begin, end, stride, begin_mask=(), end_mask=(), new=(), shrink=(), ellipsis=()):
    masks = (begin_mask, end_mask, new, shrink, ellipsis)
    longest = max(map(len, masks))  # OpenVINO wants masks of one length
    return opset1.strided_slice(data, begin, end, stride, *([*mask, *[0] * (longest - len(mask))] for mask in masks))


SLICES = [
    *cases(
        "Slice-8",
        opset8.slice,
        ("forwards", [CUBE, c(0, 1), c(2, 4), c(1, 2), c(0, 2)]),
        ("backwards", [WHOLE, c(-1), c(-(2**63)), c(-1), c(1)]),
        ("to the end", [CUBE, c(1), c(INT_MAX), c(1), c(-1)], DYNAMIC),
        ("of nothing", [HALF, c(3), c(1), c(1), c(2)]),
        ("without axes", [CUBE, c(0, -2), c(1, 9), c(1, 1)]),
        ("of unknown bounds", [CUBE, i64(1), i64(-1), i64(1), c(2)], DYNAMIC),
    ),
    *cases(
        "SliceScatter-15",
        opset15.slice_scatter,
        ("forwards", [CUBE, CUBE[:, :, :2] * 2, c(0), c(4), c(2), c(2)]),
        ("backwards", [WHOLE, WHOLE[:, ::-1] * 2, c(9), c(-9), c(-1), c(1)]),
        ("two axes", [HALF, HALF[:1, :1], c(1, 2), c(2, 3), c(1, 1)]),
        ("dynamic", [CUBE, CUBE[:, 1:], c(1), c(LONG_MAX), c(1), c(-2)], DYNAMIC),
    ),
    *cases(
        "StridedSlice-1",
        strided,
        ("plain", [CUBE, c(0, 1, 1), c(2, 3, 4), c(1, 1, 2)]),
        ("negative bounds", [WHOLE, c(0, -2), c(2, -1), c(1, 1)]),
        ("backwards by masks", [CUBE, c(0, 0, 3), c(0, 0, 0), c(1, -1, -2)], attrs(begin_mask=(1, 1), end_mask=(1, 1))),
        ("backwards to an end", [CUBE, c(0, 0, 3), c(2, 3, 0), c(1, 1, -1)]),
        ("new axes", [CUBE, c(0, 0, 9, 1), c(0, 1, 9, 2), c(1, 1, 1, 1)], attrs(new=(1, 0, 1))),
        ("shrunk axes", [WHOLE, c(1, 0, -1), c(2, 3, 0), c(1, 1, 1)], attrs(shrink=(1, 0, 1))),
        (
            "shrunk, dynamic",
            [CUBE, c(1, 0), c(2, 0), c(1, 1)],
            attrs(True, begin_mask=(0, 1), end_mask=(0, 1), shrink=(1,)),
        ),
        ("begin equal to end", [CUBE, c(1), c(1), c(1)]),
        ("ellipsis", [CUBE, c(0, 0, 1), c(1, 0, 3), c(1, 1, 1)], attrs(ellipsis=(0, 1))),
        (
            "ellipsis and new axis",
            [IMAGE, c(1, 0, 0, 1), c(2, 0, 0, 3), c(1, 1, 1, 1)],
            attrs(ellipsis=(0, 1), new=(0, 0, 1)),
        ),
        ("unknown bounds", [HALF, i64(0, 1), i64(2, 3), c(1, 1)], DYNAMIC),
        ("out of bounds", [CUBE, c(-9, 1), c(9, 99), c(1, 1)]),
        ("backwards from before the first", [CUBE, c(-9, -9, -5), c(-9, -9, -5), c(-1, -2, -1)]),
        (
            "new axis and shrunk axis",
            [np.arange(4, dtype=np.float32), c(0, 1), c(1, 3), c(1, 1)],
            attrs(new=(1,), shrink=(1,)),
        ),
    ),
]

COLUMN = random.standard_normal((3, 1)).astype(np.float32)

REPEATS = [
    *cases(
        "Broadcast-1",
        opset1.broadcast,
        ("numpy", [COLUMN, c(2, 3, 4)], attrs(mode="numpy")),
        ("explicit", [CUBE[0, 0], c(2, 4, 3), c(1)], attrs(mode="explicit")),
        ("explicit of two axes", [WHOLE[0], c(3, 2, 4), c(0, 2)], attrs(mode="explicit")),
        ("dynamic", [COLUMN.astype(np.float16), c(3, 2)], attrs(True, mode="numpy")),
    ),
    *cases(
        "Broadcast-3",
        opset3.broadcast,
        ("numpy", [COLUMN, c(2, 3, 4)], attrs(broadcast_spec="numpy")),
        ("explicit", [WHOLE[0], c(3, 2, 4), c(0, 2)], attrs(broadcast_spec="explicit")),
        ("bidirectional", [COLUMN, c(2, 1, 4)], attrs(broadcast_spec="bidirectional")),
        ("bidirectional to less", [CUBE, c(4)], attrs(True, broadcast_spec="bidirectional")),
        ("booleans", [COLUMN > 0, c(3, 2)], attrs(broadcast_spec="numpy")),
        ("to an unknown shape", [COLUMN, i64(2, 3, 2)], attrs(broadcast_spec="numpy")),
    ),
    *cases(
        "Tile-1",
        opset1.tile,
        ("as many", [CUBE, c(1, 2, 3)]),
        ("more repeats", [WHOLE, c(2, 1, 1, 2)]),
        ("fewer repeats", [HALF, c(2)]),
        ("none", [CUBE, c(1, 0, 1)]),
        ("dynamic", [CUBE, c(2, 1, 2)], DYNAMIC),
    ),
]


def reverse(data, axis, mode):
    return NodeFactory("opset1").create("Reverse", [data, axis], {"mode": mode})


def pad(opset, data, begin, end, *value, mode):
    return opset.pad(data, begin, end, mode, *value)


PADS = [
    *(
        Case(f"Pad-{version}", f"{mode} {title}", partial(pad, opset, mode=mode), inputs, dynamic=title == "dynamic")
        for version, opset in ((1, opset1), (12, opset12))
        for mode in ("constant", "edge", "reflect", "symmetric")
        for title, inputs in (
            ("of f32", [CUBE, c(1, 0, 2), c(0, 2, 1)]),
            ("of i32", [WHOLE, c(0, 1, 0), c(1, 1, 3)]),
            ("dynamic", [HALF, c(1, 1, 1), c(1, 1, 1)]),
        )
    ),
    *cases(
        "Pad-12",
        partial(pad, opset12, mode="constant"),
        ("with a value", [CUBE, c(1, 0, 0), c(0, 0, 1), Const(np.array(7, np.float32))]),
        ("cropping", [CUBE, c(-1, 1, 0), c(0, -2, -1), Const(np.array(7, np.float32))]),
        ("of booleans", [CUBE > 0, c(0, 0, 1), c(0, 0, 0)]),
    ),
    *(
        Case(
            "Pad-12",
            f"{mode} cropping at the other end",
            partial(pad, opset12, mode=mode),
            [np.arange(1, 13, dtype=np.float32).reshape(3, 4), c(2, -1), c(-1, 3)],
        )
        for mode in ("constant", "edge", "reflect", "symmetric")
    ),
    *(
        Case(
            f"Pad-{version}",
            "a value that is given",
            partial(pad, opset, mode="constant"),
            [np.float32([[1, 2]]), c(0, 1), c(0, 1), np.float32(7)],
            deviates=Departure(
                "pads with 0 where shapes are known and the value is no constant; the page pads with the value",
                "pad_mode = constant; pad_value is connected; pad_value is not constant; layer is not dynamic",
            ),
            expected=[np.float32([[7, 1, 2, 7]])],
        )
        for version, opset in ((1, opset1), (12, opset12))
    ),
    *(
        Case("Pad-12", f"of strings{title}", partial(pad, opset12, mode="constant"), inputs, dynamic=True)
        for title, inputs in (
            ("", [np.array(["ab", "c"]), c(1), c(2)]),
            (" with one", [np.array(["ab", "c"]), c(1), c(2), np.array("pp")]),
        )
    ),
    Case(
        "Pad-12",
        "a value that is given, dynamic",
        partial(pad, opset12, mode="constant"),
        [np.float32([[1, 2]]), c(0, 1), c(0, 1), np.float32(7)],
        dynamic=True,
    ),
]

ORDERS = [
    *cases(
        "Roll-7",
        opset7.roll,
        ("one axis", [CUBE, np.array(1), np.array(1)]),
        ("several axes", [CUBE, i64(-1, 6), i64(0, 2)]),
        ("an axis twice", [WHOLE, i64(1, 2, 1), i64(0, 2, 0)]),
        ("dynamic", [WHOLE, np.array([2], np.int32), np.array([-1], np.int32)], DYNAMIC),
    ),
    *cases(
        "Transpose-1",
        opset1.transpose,
        ("given", [CUBE, c(2, 0, 1)]),
        ("i32", [WHOLE, Const(np.array([0, 2, 1], np.int32))]),
        ("dynamic", [HALF, c(1, 2, 0)], DYNAMIC),
        ("booleans", [CUBE > 0, c(1, 0, 2)]),
    ),
    *(
        Case(f"{name}-1", f"{mode} {title}", partial(build, mode=mode, block_size=block), [data], dynamic=dynamic)
        for name, build in (("DepthToSpace", opset1.depth_to_space), ("SpaceToDepth", opset1.space_to_depth))
        for mode in ("blocks_first", "depth_first")
        for title, data, block, dynamic in (
            ("of two", IMAGE, 2, False),
            ("dynamic", IMAGE.astype(np.float16), 2, True),
            ("volume", random.standard_normal((1, 16, 2, 4, 2)).astype(np.float32), 2, False),
        )
    ),
    *cases(
        "BatchToSpace-2",
        opset2.batch_to_space,
        ("two dimensions", [np.arange(20, dtype=np.float32).reshape(10, 2), c(1, 5), c(0, 2), c(0, 0)]),
        (
            "cropped",
            [random.standard_normal((12, 3, 2, 2)).astype(np.float32), c(1, 2, 3, 1), c(0, 1, 0, 0), c(0, 0, 2, 1)],
        ),
        ("i32", [WHOLE.reshape(4, 3, 2), c(1, 2, 2), c(0, 0, 0), c(0, 0, 0)]),
        ("dynamic", [IMAGE, c(1, 1, 2, 1), c(0, 0, 1, 0), c(0, 1, 0, 2)], DYNAMIC),
    ),
    *cases(
        "SpaceToBatch-2",
        opset2.space_to_batch,
        ("padded", [CUBE, c(1, 2, 3), c(0, 1, 0), c(0, 0, 2)]),
        ("image", [IMAGE, c(1, 1, 2, 3), c(0, 0, 0, 0), c(0, 0, 0, 0)]),
        ("i32", [WHOLE, c(1, 3, 2), c(0, 0, 1), c(0, 0, 1)]),
        ("dynamic", [IMAGE, c(1, 4, 1, 2), c(0, 0, 0, 1), c(0, 0, 1, 1)], DYNAMIC),
    ),
    *cases(
        "Reverse-1",
        reverse,
        ("by index", [CUBE, c(0, 2)], attrs(mode="index")),
        ("by mask", [CUBE, Const(np.array([False, True, True]))], attrs(mode="mask")),
        ("i32", [WHOLE, c(1)], attrs(mode="index")),
        ("dynamic", [HALF, c(1)], attrs(True, mode="index")),
    ),
    *cases(
        "ReverseSequence-1",
        opset1.reverse_sequence,
        ("by default", [CUBE, i64(2, 3)], attrs(batch_axis=0, seq_axis=1)),
        ("other axes", [CUBE, np.array([1, 2, 2], np.int32)], attrs(batch_axis=1, seq_axis=0)),
        ("negative axes", [WHOLE, i64(4, 2)], attrs(batch_axis=-3, seq_axis=-1)),
        ("dynamic", [HALF, i64(3, 1)], attrs(True, batch_axis=0, seq_axis=1)),
    ),
    *cases(
        "ShuffleChannels-1",
        opset3.shuffle_channels,
        ("of images", [IMAGE], attrs(axis=1, group=4)),
        ("negative axis", [WHOLE], attrs(axis=-1, group=2)),
        ("one group", [CUBE], attrs(axis=0, group=1)),
        ("dynamic", [HALF], attrs(True, axis=1, group=3)),
    ),
]

STEPS = random.integers(0, 9, (5, 2, 3)).astype(np.int32)
PARENTS = random.integers(0, 3, (5, 2, 3)).astype(np.int32)
END = np.array(4, np.int32)

OTHERS = [
    Case(
        "Slice-8",
        "backwards from before the first one",
        opset8.slice,
        [np.float32([1, 2, 3]), c(-9), c(-12), c(-1), c(0)],
        deviates=Departure(
            "begins at the first element; by the rules of Python, which the page has, nothing lies before it",
            "step < 0; (start lies before the first element)",
        ),
        expected=[np.zeros(0, np.float32)],
    ),
    Case(
        "SliceScatter-15",
        "backwards from before the first one",
        opset15.slice_scatter,
        [np.float32([1, 2, 3]), np.zeros(0, np.float32), c(-9), c(-12), c(-1), c(0)],
        dynamic=True,
        deviates=Departure(
            "refuses updates without an element, as it begins at the first one; "
            "by the rules of Python, which the page has, nothing lies before it",
            "step < 0; updates is empty; (start lies before the first element)",
        ),
        expected=[np.float32([1, 2, 3])],
    ),
    Case(
        "StridedSlice-1",
        "a masked begin outside of an axis that is removed",
        partial(strided, begin_mask=(1,), shrink=(1,)),
        [CUBE, c(9), c(10), c(1)],
        deviates=Departure(
            "refuses a begin outside of the axis; by the page begin_mask leaves it out",
            "shrink_axis_mask = 1; begin_mask = 1; data is not dynamic; (a masked begin of a removed axis is outside)",
        ),
        expected=[CUBE[0]],
    ),
    Case(
        "StridedSlice-1",
        "new axis and shrunk axis, the last axis not named",
        partial(strided, new=(1,), shrink=(0, 0, 1)),
        [CUBE, c(0, 0, 1), c(1, 2, 2), c(1, 1, 1)],
        deviates=Departure(
            "reads and writes beyond its memory, as it forgets axes at the end; by the page they are taken whole",
            "sum of new_axis_mask > 0; sum of ellipsis_mask = 0; size of begin < rank of data + sum of new_axis_mask; "
            "rank of output < rank of data + sum of new_axis_mask; (they are longer than 1)",
        ),
        expected=[CUBE[np.newaxis, 0:2, 1]],
        crashes=True,
    ),
    Case(
        "StridedSlice-1",
        "a row that an input picks",
        partial(strided, shrink=(1,)),
        [CUBE, i64(1), i64(2), c(1)],
        deviates=Departure(
            "refuses bounds that are inputs where all sizes are known; the page has inputs",
            "begin is not constant | end is not constant | stride is not constant; data is not dynamic; "
            "output is not dynamic",
        ),
        expected=[CUBE[1]],
    ),
    Case(
        "StridedSlice-1",
        "bounds of unknown rank",
        strided,
        [CUBE, i64(1), i64(2), c(1)],
        dynamic=True,
        deviates=Departure(
            "refuses bounds of unknown rank without a stride; the page does not tell them from others",
            "begin is of unknown rank; end is dynamic; stride is not connected",
        ),
        expected=[CUBE[1:2]],
        edit=in_turn(without_input("StridedSlice", 3), with_unknown_ranks(1, 2)),
    ),
    Case(
        "ReverseSequence-1",
        "a negative axis of data of unknown rank",
        partial(opset1.reverse_sequence, batch_axis=0, seq_axis=-1),
        [np.float32([[1, 2, 3]]), i64(2)],
        deviates=Departure(
            "refuses negative axes of data of unknown rank; on the page they count from the end",
            "data is of unknown rank; batch_axis < 0 | seq_axis < 0",
        ),
        expected=[np.float32([[2, 1, 3]])],
        edit=with_unknown_ranks(0),
    ),
    Case(
        "Unique-10",
        "slices without elements in a later run",
        lambda data: opset10.unique(data, opset1.constant(np.array(0))),
        [np.float32([[[2], [1]], [[2], [1]]])],
        dynamic=True,
        later=[[np.zeros((2, 0, 1), np.float32)]],
        deviates=Departure(
            "keeps what it had where there are no data; the page finds the slices that differ",
            "data is empty; axis is connected; (an earlier run had data)",
        ),
        expected=[
            *(np.float32([[[2], [1]]]), np.array([0]), np.array([0, 0]), np.array([2])),
            *(np.zeros((1, 0, 1), np.float32), np.array([0]), np.array([0, 0]), np.array([2])),
        ],
    ),
    Case(
        "Unique-10",
        "nothing",
        opset10.unique,
        [np.zeros((0, 3), np.float32)],
        deviates=Departure(
            "refuses to look for unique elements among none; the page finds none",
            "data is empty; axis is not connected",
        ),
        expected=[np.zeros(0, np.float32), *[np.zeros(0, np.int64)] * 3],
    ),
    *(
        Case(
            op,
            "two less than a bounded size",
            partial(less_than_a_size, build),
            [np.float32([3]), np.zeros(4, np.float32)],
            deviates=Departure(
                "refuses sizes of which bounds do not exclude that they are below 0; by the page what they are counts",
                f"{name} is not constant; (bounds of it are known, and go below 0)",
            ),
            expected=[np.float32([3, 3])],
            edit=with_bounds(1, 9),
        )
        for op, name, build in (
            ("Broadcast-3", "target_shape", opset3.broadcast),
            ("Tile-1", "repeats", opset1.tile),
        )
    ),
    Case(
        "SpaceToBatch-2",
        "of a FakeQuantize in which 0 is another code",
        lambda data, *others: opset2.space_to_batch(on_a_grid(data), *others),
        [np.float32([[[[-1, 0, 14]]]]), c(1, 1, 1, 2), c(0, 0, 0, 1), c(0, 0, 0, 0)],
        deviates=Departure(
            "pads with the code 0 of a FakeQuantize before it; by the page padding is 0",
            "data is made by a quantization; rank of data > 3; (0 is another code, and there is padding)",
        ),
        expected=[np.float32([[[[0, 0]]], [[[-1, 14]]]])],
    ),
    *(
        Case(
            "SpaceToBatch-2",
            title,
            opset2.space_to_batch,
            [data, c(*blocks), c(*begin), c(*end)],
            deviates=departure,
            expected=[expected],
            crashes=departure.does.startswith("leaves"),
        )
        for title, data, blocks, begin, end, departure, expected in (
            (
                *("a block longer than the axis", np.arange(1, 3, dtype=np.float32).reshape(1, 2, 1, 1)),
                *((1, 1, 1, 2), (0, 0, 1, 0), (0, 0, 0, 1)),
                Departure(
                    "takes elements of the next row for the padding at the end; by the page it is 0",
                    "block_shape > shape of data + pads_begin",
                ),
                np.float32([[[[0], [1]], [[0], [2]]], [[[0], [0]], [[0], [0]]]]),
            ),
            (
                *("nothing but padding", np.zeros((1, 1, 0, 2), np.float32)),
                *((1, 1, 2, 1), (0, 0, 1, 0), (0, 0, 1, 0)),
                Departure(
                    "leaves the result as it is in memory; by the page padding is 0",
                    "data is empty; size of output > 0",
                ),
                np.zeros((2, 1, 1, 2), np.float32),
            ),
        )
    ),
    Case(
        "GatherTree-1",
        "no steps",
        opset1.gather_tree,
        [STEPS, PARENTS, np.zeros(2, np.int32), Const(END)],
        deviates=Departure(
            "leaves what it is in memory where a length is 0; on the page all of it is end_token", "max_seq_len = 0"
        ),
        expected=[np.full_like(STEPS, 4)],
        crashes=True,
    ),
    *cases(
        "GatherTree-1",
        opset1.gather_tree,
        ("full length", [STEPS, PARENTS, np.array([5, 5], np.int32), Const(END)]),
        ("lengths", [STEPS, PARENTS, np.array([2, 4], np.int32), Const(END)]),
        ("f32", [STEPS.astype(np.float32), PARENTS.astype(np.float32), np.array([3, 9], np.float32), np.float32(4)]),
        ("dynamic", [STEPS, PARENTS, np.array([5, 1], np.int32), END], DYNAMIC),
    ),
    *cases(
        "Unique-10",
        opset10.unique,
        ("elements", [WHOLE]),
        ("elements in order", [WHOLE], attrs(sorted=False)),
        ("slices", [WHOLE[:, :, 0] % 2, c(0)]),
        ("slices in order", [CUBE[[1, 0, 1]], c(0)], attrs(True, sorted=False)),
        ("types", [CUBE[:, :1], c(-1)], attrs(index_element_type="i32", count_element_type="i32")),
        ("i64", [i64(5, -1, 5)]),
    ),
    *cases(
        "Col2Im-15",
        opset15.col2im,
        (
            "plain",
            [random.standard_normal((2, 12, 9)).astype(np.float32), c(4, 4), c(2, 2)],
            attrs(strides=[1, 1], dilations=[1, 1], pads_begin=[0, 0], pads_end=[0, 0]),
        ),
        (
            "strided and padded",
            [random.standard_normal((1, 27, 49)).astype(np.float32), c(16, 16), c(3, 3)],
            attrs(strides=[2, 2], dilations=[2, 2], pads_begin=[1, 1], pads_end=[1, 1]),
        ),
        (
            "without batch",
            [random.standard_normal((8, 6)).astype(np.float32), c(3, 5), c(2, 4)],
            attrs(strides=[1, 2], dilations=[1, 1], pads_begin=[0, 1], pads_end=[1, 1]),
        ),
        (
            "dynamic i32",
            [random.integers(0, 9, (1, 4, 9)).astype(np.int32), c(4, 4), c(2, 2)],
            attrs(True, strides=[1, 1], dilations=[1, 1], pads_begin=[0, 0], pads_end=[0, 0]),
        ),
        (
            "no pads",
            [np.ones((1, 1, 4), np.float32), c(2, 2), c(1, 1)],
            {
                **attrs(strides=[1, 1], dilations=[1, 1], pads_begin=[0, 0], pads_end=[0, 0]),
                "left_out": ["pads_begin", "pads_end"],
                "deviates": Departure(
                    "crashes without strides, dilations or pads; the page has 1, 1 and 0 for them",
                    "strides is left out | dilations is left out | pads_begin is left out | pads_end is left out",
                ),
                "expected": [np.ones((1, 1, 2, 2), np.float32)],
                "crashes": True,
            },
        ),
    ),
    *cases(
        "ExtractImagePatches-3",
        opset3.extract_image_patches,
        ("valid", [IMAGE], attrs(sizes=[2, 3], strides=[1, 2], rates=[1, 1], auto_pad="VALID")),
        ("dilated", [IMAGE], attrs(sizes=[2, 2], strides=[2, 1], rates=[2, 3], auto_pad="VALID")),
        ("same_upper", [IMAGE], attrs(sizes=[2, 2], strides=[1, 3], rates=[1, 2], auto_pad="SAME_UPPER")),
        ("same_lower", [IMAGE], attrs(sizes=[2, 4], strides=[3, 1], rates=[2, 1], auto_pad="SAME_LOWER")),
        ("dynamic", [IMAGE], attrs(True, sizes=[3, 3], strides=[2, 2], rates=[1, 1], auto_pad="SAME_UPPER")),
    ),
]

CASES = [*GATHERS, *SCATTERS, *JOINS, *SLICES, *REPEATS, *PADS, *ORDERS, *OTHERS]

NAN = float("nan")
NO_INDICES = Departure("crashes with a division by 0 if there are no indices; the page allows them", "indices is empty")
CASES += [
    *cases(
        "Gather-1",
        opset1.gather,
        (
            "no indices",
            [CUBE, np.zeros((0, 2), np.int64), c(1)],
            {"deviates": NO_INDICES, "expected": [CUBE[:, np.zeros((0, 2), int)]], "crashes": True},
        ),
    ),
    *cases(
        "Gather-8",
        opset8.gather,
        (
            "no indices",
            [CUBE, np.zeros(0, np.int64), c(2)],
            {
                "attrs": {"batch_dims": 0},
                "deviates": NO_INDICES,
                "expected": [CUBE[..., :0]],
                "crashes": True,
            },
        ),
        (
            "no data",
            [np.zeros((0, 2), np.float32), np.array([0]), c(0)],
            {
                "attrs": {"batch_dims": 0},
                "deviates": Departure(
                    "leaves the result as it is in memory; by the page indices beyond the axis give 0",
                    "data is empty; size of output > 0",
                ),
                "expected": [np.zeros((1, 2), np.float32)],
                "crashes": True,
            },
        ),
    ),
    *(
        Case(
            op,
            "dynamic",
            partial(make, batch_dims=0),
            [CUBE, i64([0, 1, 2], [1, 2, 3])],
            dynamic=True,
            deviates=Departure(
                "refuses results of unknown rank; the page does not tell them from others", "output is of unknown rank"
            ),
            expected=[CUBE[[0, 1], [1, 2], [2, 3]]],
        )
        for op, make in (("GatherND-5", opset5.gather_nd), ("GatherND-8", opset8.gather_nd))
    ),
    *(
        Case(
            op,
            "to any number of sizes",
            make,
            [COLUMN, i64(2, 3, 2)],
            dynamic=True,
            deviates=Departure(
                "refuses results of unknown rank; the page does not tell them from others", "output is of unknown rank"
            ),
            expected=[np.tile(COLUMN, (2, repeats, 2))],
        )
        for op, make, repeats in (
            ("Broadcast-1", opset1.broadcast, 1),
            ("Broadcast-3", opset3.broadcast, 1),
            ("Tile-1", opset1.tile, 3),
        )
    ),
    *(
        Case(
            op,
            "one batch of indices for two of data",
            partial(make, batch_dims=0),
            [np.float32([[1, 2], [3, 4]]), Const(np.array([[1]]))],
            deviates=Departure(
                "refuses batches of different sizes; by the page one of size 1 goes with any",
                "batch_dims > 0; axis 0 of data != axis 0 of indices",
            ),
            expected=[np.float32([2, 4])],
            edit=with_attribute("batch_dims", "1"),
        )
        for op, make in (("GatherND-5", opset5.gather_nd), ("GatherND-8", opset8.gather_nd))
    ),
    *(
        Case(
            op,
            "indices of no axis",
            partial(make, batch_dims=0),
            [CUBE[0], Const(np.zeros((2, 0), np.int64))],
            deviates=Departure(
                "leaves the result as it is in memory; by the page an index of no axis is that of all the data",
                "indices is empty; size of output > 0",
            ),
            expected=[np.stack([CUBE[0], CUBE[0]])],
            crashes=True,
        )
        for op, make in (("GatherND-5", opset5.gather_nd), ("GatherND-8", opset8.gather_nd))
    ),
    *cases(
        "ScatterUpdate-3",
        opset3.scatter_update,
        (
            "a scalar index",
            [np.ones((3, 2), np.float32), np.array(1), np.zeros(2, np.float32), c(0)],
            {
                "deviates": Departure(
                    "refuses a scalar index; the page has indices of any rank", "indices is a scalar"
                ),
                "expected": [np.float32([[1, 1], [0, 0], [1, 1]])],
            },
        ),
    ),
    *cases(
        "Roll-7",
        opset7.roll,
        (
            "one shift for two axes",
            [WHOLE[0], np.array(1), i64(0, 1)],
            {
                "deviates": Departure(
                    "refuses a scalar shift of several axes; on the page it goes for all of them",
                    "shift is a scalar; size of axes > 1",
                ),
                "expected": [np.roll(WHOLE[0], 1, (0, 1))],
            },
        ),
        (
            "a shift beyond i32",
            [np.float32([1, 2, 3, 4, 5]), c(1 << 31), c(0)],
            {
                "deviates": Departure(
                    "takes the largest i32 for a larger shift; i64 is allowed on the page",
                    "shift is i64; shift > 2147483647 | shift < -2147483648",
                ),
                "expected": [np.float32([3, 4, 5, 1, 2])],
            },
        ),
    ),
    *cases(
        "Transpose-1",
        opset1.transpose,
        ("empty order", [WHOLE, Const(np.zeros(0, np.int64))]),
        (
            "empty order as an input",
            [CUBE, np.zeros(0, np.int64)],
            {
                "deviates": Departure(
                    "refuses an empty order as an input; on the page it reverses the axes",
                    "input_order is empty; input_order is not constant",
                ),
                "expected": [CUBE.T],
            },
        ),
    ),
    *cases(
        "Unique-10",
        opset10.unique,
        (
            "nan",
            [np.float32([NAN, 1, NAN])],
            {
                "deviates": Departure(
                    "takes each NaN for another element, unsorted; the page does not say, they are one here",
                    "data has nan",
                ),
                "expected": [np.float32([1, NAN]), i64(1, 0), i64(1, 0, 1), i64(1, 2)],
            },
        ),
        (
            "i8 columns in order",
            [np.int8([[3, 2, 3]]), c(1)],
            {
                "attrs": {"sorted": False},
                "deviates": Departure(
                    "leaves indices and counts as they are in memory, but for a quarter; "
                    "by the page each slice has its own",
                    "data is i8, u8, boolean; axis is connected; "
                    "sorted = false | (a slice has an even number of elements)",
                ),
                "expected": [np.int8([[3, 2]]), i64(0, 1), i64(0, 1, 0), i64(2, 1)],
                "crashes": True,
            },
        ),
        (
            "columns that begin alike",
            [np.float32([[1, 0, 1, 1], [1, 0, 0, 0]]), c(1)],
            {
                "attrs": {"sorted": False},
                "deviates": Departure(
                    "compares slices with parts of others once they begin alike; by the page they are compared whole",
                    "axis is connected; axis != 0; (slices begin alike, and are not)",
                ),
                "expected": [np.float32([[1, 0, 1], [1, 0, 0]]), i64(0, 1, 2), i64(0, 1, 2, 2), i64(1, 1, 2)],
            },
        ),
    ),
]

CASES += [
    Case(
        "Broadcast-1",
        "no mode",
        lambda data, shape: opset1.broadcast(data, shape, mode="numpy"),
        [np.ones((1, 2), np.float32), c(3, 2)],
        left_out=["mode"],
        deviates=Departure("refuses a file without mode; the page has numpy for it", "mode is left out"),
        expected=[np.ones((3, 2), np.float32)],
    ),
    *(
        Case(
            op,
            "no block_size",
            lambda data, make=make: make(data, "depth_first", 1),
            [Const(np.ones((1, 1, 2, 2), np.float32))],
            left_out=["block_size"],
            deviates=Departure("refuses a file without block_size; the page has 1 for it", "block_size is left out"),
            expected=[np.ones((1, 1, 2, 2), np.float32)],
        )
        for op, make in (("DepthToSpace-1", opset1.depth_to_space), ("SpaceToDepth-1", opset1.space_to_depth))
    ),
]


def of_unknown_number(root):
    """Parameters of i64 have any number of elements."""
    for layer in root.iter("layer"):
        for data in layer.findall("data[@element_type='i64']") if layer.get("type") == "Parameter" else ():
            data.set("shape", "?")
            for size in layer.iter("dim"):
                size.text = "-1"


CASES += [
    Case(
        "VariadicSplit-1",
        "any number of lengths",
        opset1.variadic_split,
        [CUBE, c(2), i64(1, 3)],
        deviates=Departure(
            "refuses lengths whose number is unknown; the page has a tensor of any length",
            "split_lengths is dynamic",
        ),
        expected=[CUBE[..., :1], CUBE[..., 1:]],
        edit=of_unknown_number,
    ),
    Case(
        "Pad-12",
        "crops more than there is",
        partial(pad, opset12, mode="constant"),
        [CUBE, i64(0, -2, 0), i64(0, -2, 1)],
        deviates=Departure(
            "refuses to crop more than there is; by the page nothing is left",
            "shape of data + pads_begin + pads_end < 0",
        ),
        expected=[np.zeros((2, 0, 5), np.float32)],
    ),
    Case(
        "ReverseSequence-1",
        "i32 beyond 2**24",
        lambda data, lengths: opset1.reverse_sequence(data, lengths, 0, 1),
        [np.int32([[2**24 + 1, 2**24 + 3]]), np.int32([2])],
        deviates=Departure(
            "hands numbers through f32; by the page they are moved",
            "data is i32, i64, u32, u64; data has numbers beyond 2**24",
        ),
        expected=[np.int32([[2**24 + 3, 2**24 + 1]])],
    ),
    Case(
        "SliceScatter-15",
        "bounds that are inputs",
        opset15.slice_scatter,
        [np.float32([1, 2, 3, 4, 5]), np.float32([8, 9]), i64(1), i64(3), i64(1)],
        deviates=Departure(
            "reads and writes beyond its memory where bounds are inputs and shapes are known; the page has inputs",
            "data is not dynamic; updates is not dynamic; "
            "start is not constant | stop is not constant | step is not constant",
        ),
        expected=[np.float32([1, 8, 9, 4, 5])],
        crashes=True,
    ),
    Case(
        "Tile-1",
        "no repeats",
        opset1.tile,
        [np.float32([1, 2]), Const(np.zeros(0, np.int64))],
        deviates=Departure(
            "leaves the result as it is in memory, or refuses repeats without an element; by the page they are ones",
            "repeats is empty",
        ),
        expected=[np.float32([1, 2])],
        crashes=True,
    ),
    *(
        Case(
            op,
            "a scalar to a scalar",
            make,
            [np.float32(5), Const(np.zeros(0, np.int64))],
            deviates=Departure(
                "crashes if a constant target has no sizes; by the page it is the shape of a scalar",
                "data is a scalar; target_shape is empty; target_shape is constant",
            ),
            expected=[np.float32(5)],
            crashes=True,
        )
        for op, make in (("Broadcast-1", opset1.broadcast), ("Broadcast-3", opset3.broadcast))
    ),
    *(
        Case(
            op,
            "no rows, known shapes",
            make,
            [np.zeros((0, 3), np.float32), c(1), c(1)],
            deviates=Departure(
                "crashes with a division by 0 where there are no data and shapes are known; the result is empty",
                "data is empty; axis != 0; layer is not dynamic",
            ),
            expected=[np.zeros((0, 1), np.float32)],
            crashes=True,
        )
        for op, make in (
            ("Gather-1", opset1.gather),
            ("Gather-7", partial(opset7.gather, batch_dims=0)),
            ("Gather-8", partial(opset8.gather, batch_dims=0)),
        )
    ),
    *(
        Case(
            op,
            "no data, known shapes",
            make,
            [np.zeros((1, 0), np.float32), Const(np.array([3, 0]))],
            deviates=Departure(
                "crashes with a division by 0 where there are no data and shapes are known; the result is empty",
                "data is empty; layer is not dynamic",
            ),
            expected=[np.zeros((3, 0), np.float32)],
            crashes=True,
        )
        for op, make in (("Broadcast-1", opset1.broadcast), ("Broadcast-3", opset3.broadcast))
    ),
    Case(
        "Broadcast-3",
        "bidirectional, no sizes",
        partial(opset3.broadcast, broadcast_spec="BIDIRECTIONAL"),
        [np.float32([1, 2]), np.zeros(0, np.int64)],
        deviates=Departure(
            "refuses a target without sizes; by the page the shape is that of the data",
            "mode = bidirectional; target_shape is empty; target_shape is not constant",
        ),
        expected=[np.float32([1, 2])],
    ),
]


def four_bits(type, *values):
    """Indices of 4 bits, an odd number of them: half of the last byte is left over."""
    return ov.op.Constant(type, ov.Shape([len(values)]), values)


CASES += [
    *(
        Case(
            op,
            f"indices of 4 bits, {type.get_type_name()}",
            lambda data, axis, gather=gather, of=type: gather(data, four_bits(of, 2, 0, 1), axis),
            [CUBE, c(1)],
        )
        for op, gather in (("Gather-1", opset1.gather), ("Gather-7", opset7.gather), ("Gather-8", opset8.gather))
        for type in (ov.Type.i4, ov.Type.u4)
    ),
    *(
        Case(
            op,
            "indices of 4 bits",
            lambda data, gather=gather: gather(data, four_bits(ov.Type.u4, 1, 2, 3)),
            [CUBE],
        )
        for op, gather in (("GatherND-5", opset5.gather_nd), ("GatherND-8", opset8.gather_nd))
    ),
    *(
        Case(
            op,
            "indices of 4 bits",
            lambda data, updates, axis, put=put: put(data, four_bits(ov.Type.u4, 8, 2, 5), updates, axis),
            [CUBE.ravel()[:9], CUBE.ravel()[9:12], c(0)],
        )
        for op, put in (
            ("ScatterUpdate-3", opset3.scatter_update),
            ("ScatterElementsUpdate-3", opset3.scatter_elements_update),
            ("ScatterElementsUpdate-12", opset12.scatter_elements_update),
        )
    ),
]


def of_few_bits(indices):
    """Rows of 4 bits, scaled row by row."""
    rows = opset1.convert(ov.op.Constant(ov.Type.u4, ov.Shape([2, 4]), [*range(8)]), "f32")
    return opset8.gather(opset1.multiply(rows, opset1.constant(np.float32([[0.5], [2]]))), indices, opset1.constant(0))


CASES.append(
    Case(
        "Gather-8",
        "rows of 4 bits, beyond the axis",
        of_few_bits,
        [np.int32([1, 2, -3])],
        deviates=Departure(
            "leaves all but the first element of a row as they are in memory, where data are stored in few bits"
            "; the page has rows of 0 for indices beyond the axis",
            "data is stored as i4, i8, u4, u8; (indices are beyond the axis)",
        ),
        expected=[np.float32([[8, 10, 12, 14], [0] * 4, [0] * 4])],
        crashes=True,
    )
)
CASES.append(
    Case(
        "Gather-8",
        "another axis in a later run",
        opset8.gather,
        [CUBE, i64(1, 0), np.int64(0)],
        dynamic=True,
        later=[[CUBE, i64(1, 0), np.int64(1)]],
        deviates=Departure(
            "keeps the axis of the first run; the page has an input",
            "axis is not constant; (an earlier run had another axis)",
        ),
        expected=[CUBE[[1, 0]], CUBE[:, [1, 0]]],
    )
)
KNOWN_BUT_AXIS = "data is not dynamic; indices is not dynamic; axis is not constant"
CASES += [
    Case(
        *(op, "axis as an input, known shapes", gather, [CUBE, i64(1, 0), np.int64(1)]),
        deviates=Departure(f"{does} where only the axis is an input; the page has an input", KNOWN_BUT_AXIS),
        expected=[CUBE[:, [1, 0]]],
        crashes=does == "crashes",
    )
    for op, gather, does in (
        ("Gather-1", opset1.gather, "crashes"),
        ("Gather-7", opset7.gather, "refuses known shapes"),
        ("Gather-8", opset8.gather, "refuses known shapes"),
    )
]

test_agrees_with_openvino = conformance(CASES)
