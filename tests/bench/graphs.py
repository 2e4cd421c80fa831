"""Models that are made for a measure: single ops at large sizes, a long chain of tiny layers, and long loops.

    python graphs.py FOLDER NAME

writes FOLDER/model.xml, model.bin and inputs.npz. That needs openvino; to know their names does not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import openvino as ov

SEED = 20260401
LAYERS = 10_000
ITERATIONS = 1_000
HIDDEN = 64

Made = tuple["ov.Model", dict[str, np.ndarray]]


def model_of(
    opset: int,
    op: str,
    inputs: dict[str, np.ndarray],
    *constants: object,
    fixed: Collection[str] = (),
    **attrs: object,
) -> Made:
    """The model of one op, by the name of its function in openvino, and what its Parameters are given.

    `inputs` are those of the op in order; those that are named in `fixed` are constants, as the weights of a model are.
    """
    import openvino as ov

    functions = import_module(f"openvino.opset{opset}")
    nodes, parameters = [], []
    for name, array in inputs.items():
        if name in fixed:
            nodes.append(functions.constant(array))
            continue
        parameter = functions.parameter(array.shape, array.dtype, name=name)
        parameter.output(0).set_names({name})
        parameters.append(parameter)
        nodes.append(parameter)
    node = getattr(functions, op)(*nodes, *constants, **attrs)
    given = {name: array for name, array in inputs.items() if name not in fixed}
    return ov.Model(node.outputs(), parameters), given


def segments_sum(
    table_type: type = np.float32,
    index_type: type = np.int32,
    pattern: str = "sorted",
    weighted: bool = True,
    columns: int = 128,
    *,
    rows: int = 100_000,
    count: int = 500_000,
    segments: int = 50_000,
    used: int | None = None,
) -> Made:
    """`count` rows of a table of `rows`, of which the first ones are `used` (None: all), summed into segments."""
    rng = np.random.default_rng(SEED)
    ids = {
        "even": lambda: np.arange(count) * segments // count,
        "sorted": lambda: np.sort(rng.integers(0, segments, count)),
        "unsorted": lambda: rng.integers(0, segments, count),
        "one huge segment": lambda: np.full(count, segments // 2),
        "mostly empty": lambda: np.sort(rng.integers(0, 50, count) * (segments // 50)),
        "two huge, rest short": lambda: np.sort(
            np.append(rng.integers(0, segments, count // 2), [7, 9] * (count // 4))
        ),
    }[pattern]()
    table = rng.standard_normal((rows, columns), np.float32) * 8
    inputs = {
        "emb_table": table.astype(table_type),
        "indices": rng.integers(0, used or rows, count).astype(index_type),
        "segment_ids": ids.astype(index_type),
        "num_segments": np.array(segments, index_type),
        "default_index": np.array(0, index_type),
    }
    if weighted:
        inputs["per_sample_weights"] = (rng.uniform(0, 2, count)).astype(table_type)
    return model_of(3, "embedding_segments_sum", inputs, fixed=("emb_table", "num_segments", "default_index"))


def fill_empty_rows(
    order: str = "sorted",
    index_type: type = np.int64,
    value_type: type = np.float32,
    *,
    rows: int = 1_000_000,
    used: int | None = None,
) -> Made:
    """A sparse matrix of so many rows of 1,000 with twice as many values, all in the first rows that are `used`."""
    rng = np.random.default_rng(SEED)
    columns, count = 1_000, 2 * rows
    most = (used or rows) * columns
    if used is None:  # no two at one place
        places = rng.permutation(np.unique(rng.integers(0, most, count + count // 50)))[:count]
    else:
        places = rng.integers(0, most, count)
    if order == "sorted":
        places.sort()
    indices = np.stack(np.divmod(places, columns), axis=1)
    inputs = {
        "values": (rng.standard_normal(count, np.float32) * 100).astype(value_type),
        "dense_shape": np.array([rows, columns], index_type),
        "indices": indices.astype(index_type),
        "default_value": np.array(-1, value_type),
    }
    return model_of(16, "sparse_fill_empty_rows", inputs)


def scatter_elements(
    axis: int, reduction: str | None = None, index_type: type = np.int32, *, size: int = 4000, used: int | None = None
) -> Made:
    """A quarter as many updates put (version 3), or reduced (version 12), into size x size elements.

    Indices are below `used` (None: the size).
    """
    rng = np.random.default_rng(SEED)
    inputs = {
        "data": rng.standard_normal((size, size), np.float32),
        "indices": rng.integers(0, used or size, (size // 4, size)).astype(index_type),
        "updates": rng.uniform(0.5, 1.5, (size // 4, size)).astype(np.float32),
    }
    version, attrs = (3, {}) if reduction is None else (12, {"reduction": reduction})
    return model_of(version, "scatter_elements_update", inputs, np.int32(axis), **attrs)


def chain(layers: int = LAYERS) -> Made:
    """Add, Multiply and ReLU in turn, on 4 elements."""
    import openvino as ov
    from openvino import opset13 as opset

    rng = np.random.default_rng(SEED)
    x = opset.parameter([4], np.float32, name="x")
    x.output(0).set_names({"x"})
    node = x
    for number in range(layers):
        constant = rng.uniform(0.5, 1.5, 4).astype(np.float32)
        node = (opset.add, opset.multiply, lambda a, _: opset.relu(a))[number % 3](node, constant)
    return ov.Model([node], [x]), {"x": rng.standard_normal(4, np.float32)}


def loop(sliced: bool) -> Made:
    """1,000 iterations of a product by 64 x 64, an LSTM cell of 64 and element-wise ops, on rows of [1, 1000, 64].

    A TensorIterator, whose rows are `sliced` for it, or a Loop, which gathers them by the number of the iteration.
    """
    import openvino as ov
    from openvino import opset13 as opset

    rng = np.random.default_rng(SEED)
    shapes = (HIDDEN, HIDDEN), (HIDDEN,), (4 * HIDDEN, HIDDEN), (4 * HIDDEN, HIDDEN), (4 * HIDDEN,)
    matrix, bias, *gates = (rng.uniform(-0.2, 0.2, shape).astype(np.float32) for shape in shapes)
    x = opset.parameter([1, ITERATIONS, HIDDEN], np.float32, name="x")
    x.output(0).set_names({"x"})
    number, (h, c) = opset.parameter([], np.int64), (opset.parameter([1, HIDDEN], np.float32) for _ in range(2))
    rows = opset.parameter([1, 1 if sliced else ITERATIONS, HIDDEN], np.float32)

    row = opset.squeeze(rows, 1) if sliced else opset.gather(rows, number, 1)
    mixed = opset.tanh(opset.add(opset.matmul(row, matrix, False, False), bias))
    cell = opset.lstm_cell(mixed, h, c, *gates, HIDDEN)
    gate = opset.sigmoid(opset.multiply(cell.output(0), np.float32(2)))
    score = opset.unsqueeze(opset.add(opset.multiply(gate, mixed), row), 1)
    results = [opset.result(output) for output in (score.output(0), cell.output(0), cell.output(1))]

    if sliced:
        node = opset.tensor_iterator()
        node.set_body(ov.Model(results, [rows, h, c]))
        node.set_sliced_input(rows, x.output(0), 0, 1, 1, -1, 1)
    else:
        on = opset.result(opset.constant(True))
        node = opset.loop(opset.constant(ITERATIONS).output(0), opset.constant(True).output(0))
        node.set_function(ov.Model([on, *results], [number, rows, h, c]))
        node.set_special_body_ports([0, 0])
        node.set_invariant_input(rows, x.output(0))
    for state, result in zip((h, c), results[1:], strict=True):
        zeros = opset.constant(np.zeros((1, HIDDEN), np.float32))
        node.set_merged_input(state, zeros.output(0), result.output(0))
    outputs = [node.get_concatenated_slices(results[0].output(0), 0, 1, 1, -1, 1)]
    outputs += [node.get_iter_value(result.output(0), -1) for result in results[1:]]
    return ov.Model(outputs, [x]), {"x": rng.standard_normal((1, ITERATIONS, HIDDEN), np.float32)}


OPS: dict[str, Callable[[], Made]] = {
    "EmbeddingSegmentsSum-3": segments_sum,
    "EmbeddingSegmentsSum-3, no weights": partial(segments_sum, weighted=False),
    "EmbeddingSegmentsSum-3, unsorted": partial(segments_sum, pattern="unsorted"),
    "EmbeddingSegmentsSum-3, one huge segment": partial(segments_sum, pattern="one huge segment"),
    "EmbeddingSegmentsSum-3, mostly empty": partial(segments_sum, pattern="mostly empty"),
    "EmbeddingSegmentsSum-3, two huge": partial(segments_sum, pattern="two huge, rest short"),
    "EmbeddingSegmentsSum-3, i64 indices": partial(segments_sum, index_type=np.int64),
    "EmbeddingSegmentsSum-3, f16": partial(segments_sum, np.float16),
    "EmbeddingSegmentsSum-3, i32": partial(segments_sum, np.int32),
    "EmbeddingSegmentsSum-3, 3 columns": partial(segments_sum, columns=3),
    "SparseFillEmptyRows-16, sorted": fill_empty_rows,
    "SparseFillEmptyRows-16, shuffled": partial(fill_empty_rows, "shuffled"),
    "SparseFillEmptyRows-16, shuffled, i32": partial(fill_empty_rows, "shuffled", np.int32),
    "ScatterElementsUpdate-3, axis 0": partial(scatter_elements, 0),
    "ScatterElementsUpdate-3, axis 1": partial(scatter_elements, 1),
    "ScatterElementsUpdate-3, axis 0, i64": partial(scatter_elements, 0, index_type=np.int64),
    **{
        f"ScatterElementsUpdate-12, {reduction}, axis {axis}": partial(scatter_elements, axis, reduction)
        for reduction in ("sum", "prod", "min", "max", "mean")
        for axis in (0, 1)
    },
}

FOUNDING: dict[str, Callable[[], Made]] = {
    **{
        f"EmbeddingSegmentsSum-3, {what}": partial(segments_sum, index_type=np.int64, **sizes)
        for what, sizes in {
            "500,000 rows of 100,000": {},
            "a tenth": {"rows": 10_000, "count": 50_000, "segments": 5_000},
            "rows of 100": {"used": 100},
            "bags of 1": {"pattern": "even", "count": 50_000},
            "bags of 1,000": {"pattern": "even", "segments": 500},
        }.items()
    },
    **{
        f"ScatterElementsUpdate-3, {what}, axis {axis}": partial(scatter_elements, axis, **sizes)
        for what, sizes in {
            "4000 x 4000, i32": {},
            "4000 x 4000, i64": {"index_type": np.int64},
            "1264 x 1264, i32": {"size": 1264},
            "12640 x 12640, i32": {"size": 12640},
            "4000 x 4000, to 16 places": {"used": 16},
        }.items()
        for axis in (0, 1)
    },
    **{
        f"SparseFillEmptyRows-16, {order}, {what}": partial(fill_empty_rows, order, **sizes)
        for what, sizes in {
            "1,000,000 rows, f32": {},
            "1,000,000 rows, i64": {"value_type": np.int64},
            "100,000 rows, f32": {"rows": 100_000},
            "10,000,000 rows, f32": {"rows": 10_000_000},
            "1,000 of 1,000,000 rows": {"used": 1_000},
        }.items()
        for order in ("sorted", "shuffled")
    },
}

GRAPHS: dict[str, dict[str, Callable[[], Made]]] = {
    "ops": OPS,
    "founding": FOUNDING,
    "loops": {"Loop-5": partial(loop, False), "TensorIterator-1": partial(loop, True)},
    "layers": {f"{LAYERS} tiny layers": chain},
}
"""By the measure that they are made for."""


def main() -> None:
    import openvino as ov

    folder, name = Path(sys.argv[1]), sys.argv[2]
    (make,) = (graphs[name] for graphs in GRAPHS.values() if name in graphs)
    model, inputs = make()
    folder.mkdir(parents=True, exist_ok=True)
    ov.save_model(model, folder / "model.xml", compress_to_fp16=False)
    np.savez(folder / "inputs.npz", **inputs)


if __name__ == "__main__":
    main()
