"""Sort ops, against OpenVINO."""

from functools import partial

import numpy as np
from openvino import opset1, opset3, opset11, opset15

from conformance.harness import Case, Const, conformance

random = np.random.default_rng(11)
CUBE = random.permutation(120).reshape(4, 5, 6).astype(np.float32)
TIES = random.integers(0, 4, (3, 8)).astype(np.float32)


def top_k(op, title, data, k, axis, mode, sort, **rest):
    module = {"TopK-1": opset1, "TopK-3": opset3, "TopK-11": opset11}[op]
    attrs = {name: rest.pop(name) for name in ("stable", "index_element_type") if name in rest}
    return Case(op, title, partial(module.topk, axis=axis, mode=mode, sort=sort, **attrs), [data, k], **rest)


THREE = Const(np.array(3))
CASES = [
    case
    for op in ("TopK-1", "TopK-3", "TopK-11")
    for case in (
        top_k(op, "max by value", CUBE, THREE, -1, "max", "value"),
        top_k(op, "min by value, axis 0", CUBE, THREE, 0, "min", "value"),
        top_k(op, "max by index, axis 1", CUBE, THREE, 1, "max", "index"),
        top_k(op, "min by index", CUBE, THREE, 2, "min", "index"),
        top_k(op, "i32", CUBE.astype(np.int32), Const(np.int32(2)), 1, "min", "value"),
        top_k(op, "dynamic, k = 1", CUBE, np.array(1), 1, "max", "value", dynamic=True),
        top_k(op, "all of them", CUBE, Const(np.array(6)), 2, "max", "value"),
    )
]
CASES += [
    top_k("TopK-3", "i64 indices", CUBE, THREE, 1, "max", "value", index_element_type="i64"),
    top_k("TopK-11", "i64 indices", CUBE, THREE, 1, "max", "value", index_element_type="i64"),
    top_k("TopK-3", "f16", CUBE.astype(np.float16), THREE, 1, "max", "value"),
    top_k("TopK-3", "u8", CUBE.astype(np.uint8), Const(np.uint8(2)), 1, "max", "value"),
    top_k("TopK-11", "i8", CUBE.astype(np.int8), THREE, 1, "max", "value"),
    top_k("TopK-11", "stable max", TIES, THREE, 1, "max", "value", stable=True),
    top_k("TopK-11", "stable min", TIES, Const(np.array(5)), 1, "min", "value", stable=True),
    top_k("TopK-11", "stable by index", TIES, Const(np.array(5)), 1, "max", "index", stable=True),
    top_k("TopK-11", "stable, dynamic", TIES, np.array(2), -1, "min", "value", stable=True, dynamic=True),
    top_k(
        *("TopK-3", "nan", np.array([1, np.nan, 3, 2], np.float32), THREE, 0, "max", "value"),
        deviates="NaN has no fixed place in OpenVINO; on the page it is smaller than any number",
        expected=[np.array([3, 2, 1], np.float32), np.array([2, 3, 0], np.int32)],
    ),
]
ROWS = np.sort(random.integers(0, 9, (2, 3, 7)), axis=-1).astype(np.float32)
WANTED = random.integers(-1, 10, (2, 3, 5)).astype(np.float32)


def search(title, rows, values, right=False, **rest):
    build = partial(opset15.search_sorted, right_mode=right)
    return Case("SearchSorted-15", title, build, [rows, values], **rest)


CASES += [
    search("left", ROWS, WANTED),
    search("right", ROWS, WANTED, right=True),
    search("one row", ROWS[0, 0], WANTED),
    search("one row, a scalar", ROWS[0, 0], WANTED[0, 0, 0]),
    search("i32", ROWS.astype(np.int32), WANTED.astype(np.int32)),
    search("f16", ROWS.astype(np.float16), WANTED.astype(np.float16)),
    search("i64", ROWS.astype(np.int64), WANTED.astype(np.int64), right=True),
    search("dynamic", ROWS, WANTED, dynamic=True),
]

test_agrees_with_openvino = conformance(CASES)
