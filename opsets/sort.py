"""Sort ops: order among elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from irrun.spec import (
    BOOL,
    BOOLEAN,
    FLOAT,
    FLOAT_NUMBER,
    INDEX,
    INT,
    INTEGER,
    MOST_I32,
    NO_NAN,
    NUMERIC,
    UNDECIDED,
    Array,
    Attr,
    Dim,
    Doubting,
    Input,
    Node,
    Op,
    Output,
    Shapes,
    Size,
    Violation,
    choice,
    every,
    meet,
    numpy_dtype,
    op,
    shape_text,
    smallest,
)

from ._boxes import (
    Suppress,
    descending,
    ends_of,
    faded,
    filled,
    lowest_decays,
    ranked,
    unsuppressed,
    unsuppressed_rotated,
    up_to,
)
from ._indexing import places_of
from ._precision import widened
from ._unlikely import overlaps_outside, unsorted_rows

SORTS = choice("value", "index", "none")
TOP_K_ATTRS = (
    Attr("axis", INT),
    Attr("mode", choice("min", "max"), assumed="max"),
    Attr("index_element_type", choice("i32", "i64"), "i32"),
)
TOP_K_DOC = """The k largest or smallest elements along an axis, and their indices.

Constraints:
    C1: axis lies in [-r, r), r the rank of data, which is 1 or more.
    C2: k lies in [1, the size of data along axis]; it may be 0 for data without elements.
{more}
Of equal elements the one with the lower index comes first and is taken first, whatever the mode and `stable`. NaN is
smaller than any number, as the page of TopK-3 says: last for `max`, first for `min`. sort=none is sort=value.{booleans}

Deviation: the place of NaN in OpenVINO depends on the order of the elements, and so does that of sort=none.

Source: sort/top-k-{version}.rst

>>> values, indices = op(np.array([5, 3, 1, 2, 5, 5]), np.array(4), axis=0, mode="min", sort="index"{stable})
>>> values.tolist(), indices.tolist()
([5, 3, 1, 2], [0, 1, 2, 3])
"""


BOOLEANS_SORTED = """ Of
booleans, which converters write and OpenVINO takes, false is the smaller one."""


def _top_k(data: Array, k: Array, *, axis: int, mode: str, sort: str, index_element_type: str) -> Any:
    count = int(k)
    if count == 0:
        nothing = np.take(data, [], axis)
        return nothing, nothing.astype(numpy_dtype(index_element_type))
    if count == 1 and data.dtype.kind in "iuf":
        indices = (data.argmax if mode == "max" else data.argmin)(axis, keepdims=True)
        values = _elements(data, indices, axis)
        if mode == "min" or not np.isnan(values).any():  # NaN is found in both modes, which is right for one
            return values, indices.astype(numpy_dtype(index_element_type))
    ranks = np.moveaxis(_ranks(data, mode), axis, -1)
    if count == 1:
        indices = ranks.argmin(-1, keepdims=True)
    elif (keys := _keys(ranks)) is not None:
        first = keys if count == keys.shape[-1] else np.partition(keys, count - 1, -1)[..., :count]
        if sort != "index":
            first.sort(-1)
        indices = first & _mask(keys.shape[-1])
        if sort == "index":
            indices.sort(-1)
    else:
        indices = _first(ranks, count)
        if sort != "index":
            order = np.argsort(np.take_along_axis(ranks, indices, -1), -1, kind="stable")
            indices = np.take_along_axis(indices, order, -1)
    indices = np.moveaxis(indices, -1, axis)
    return np.take_along_axis(data, indices, axis), indices.astype(numpy_dtype(index_element_type))


def _elements(data: Array, indices: Array, axis: int) -> Array:
    """The elements at one index along an axis; of rows in a fifth of the time of `np.take_along_axis`."""
    if axis not in (-1, data.ndim - 1) or not data.flags.c_contiguous:
        return np.take_along_axis(data, indices, axis)
    rows = data.reshape(-1, data.shape[-1])
    found: Array = rows[np.arange(len(rows)), indices.ravel()].reshape(indices.shape)
    return found


def _top_k_stable(
    data: Array, k: Array, *, axis: int, mode: str, sort: str, index_element_type: str, stable: bool
) -> Any:
    return _top_k(data, k, axis=axis, mode=mode, sort=sort, index_element_type=index_element_type)


def _ranks(data: Array, mode: str) -> Array:
    """Integers in the order of the data, the element wanted first being the lowest."""
    ranks = data
    if data.dtype.kind not in "iub":
        numbers = data.astype(np.float64 if data.dtype == np.float64 else np.float32) + 0  # -0 becomes 0
        ranks = numbers.view(f"i{numbers.itemsize}")
        limits = np.iinfo(ranks.dtype)
        ranks = np.where(ranks < 0, ranks ^ limits.max, ranks)  # negative numbers are stored as sign and magnitude
        ranks[np.isnan(numbers)] = limits.min
    return ~ranks if mode == "max" else ranks


def _keys(ranks: Array) -> Array | None:
    """Integers in the order of the ranks, and where these are equal in that of their indices along the last axis, which
    are the bits of `_mask`: one sort finds both. None where 64 bits do not hold them."""
    mask = _mask(ranks.shape[-1])
    if not ranks.size:
        return None
    low = ranks.min()
    if (int(ranks.max()) - int(low)) * (mask + 1) + mask >= 1 << 63:
        return None
    keys = ranks.astype(np.int64)
    keys -= low.astype(np.int64)
    keys *= mask + 1
    keys += np.arange(ranks.shape[-1])
    return keys


def _mask(size: int) -> int:
    """The bits that indices below `size` have."""
    mask: int = (1 << (size - 1).bit_length()) - 1
    return mask


def _first(ranks: Array, count: int) -> Array:
    """The indices of the `count` lowest elements along the last axis, ascending; of equal ones the first are taken."""
    worst = np.partition(ranks, count - 1, -1)[..., count - 1 : count]
    better, equal = ranks < worst, ranks == worst
    room = count - np.count_nonzero(better, -1, keepdims=True)
    taken = better | (equal & (np.cumsum(equal, -1) <= room))
    places: Array = places_of(taken)[-1]
    return places.reshape(*ranks.shape[:-1], count)


def _top_k_shapes(node: Node) -> Shapes:
    k = node.size("k")
    data = node.shape("data")
    filled, least = every(size >= 1 for size in data), 0
    if filled is True:
        least = 1
    elif filled is UNDECIDED and (k >= 1) is not True:
        node.require("C2", UNDECIDED, "")  # the run tells
    node.require("C2", k >= least, f"`k` is {k}, expected {least} or more", "k")
    if not data:
        node.fail("C1", "`data` is a scalar, which has no axis", "data")
    axis = node.axis("C1", node.attrs["axis"], len(data))
    size = data[axis]
    node.require(
        "C2", k <= size, f"`k` is {k}, above {size}, the size of `data` along axis {axis}", "k", about=["data"]
    )
    if isinstance(k, Dim):
        k = k.within(least, size.high if isinstance(size, Dim) else size)
    return {"shape": (*data[:axis], k, *data[axis + 1 :])}


def _top_k_stable_shapes(node: Node) -> Shapes:
    sorted_ = node.attrs["sort"] != "none" or not node.attrs["stable"]
    node.require("C3", sorted_, "`stable` is true, but `sort` is none", about=["stable", "sort"])
    return _top_k_shapes(node)


def _declared(version: int, k_types: frozenset[str], stable: bool = False) -> Op:
    return Op(
        f"TopK-{version}",
        _top_k_stable if stable else _top_k,
        inputs=[Input("data", "T", "..."), Input("k", "T_K", "[]")],
        outputs=[Output("values", "T", "[*shape]"), Output("indices", "index_element_type", "[*shape]")],
        attrs=(
            *TOP_K_ATTRS,
            *((Attr("sort", SORTS), Attr("stable", BOOL, False)) if stable else (Attr("sort", SORTS, assumed="none"),)),
        ),
        types={"T": NUMERIC, "T_K": k_types},
        lenient_types={"T": BOOLEAN if stable else frozenset()},
        rule=_top_k_stable_shapes if stable else _top_k_shapes,
        doc=TOP_K_DOC.format(
            version=version,
            stable=", stable=True" if stable else "",
            booleans=BOOLEANS_SORTED if stable else "",
            more="    C3: what is stable is sorted: sort is not none.\n" if stable else "",
        ),
    )


top_k_1 = _declared(1, frozenset({"i8", "i32", "i64"}))  # the page is silent; OpenVINO takes no others
top_k_3 = _declared(3, INTEGER)
top_k_3.lowers("TopK-1")
top_k_11 = _declared(11, INTEGER, stable=True)
top_k_11.lowers("TopK-3", stable=False)


@op(
    "SearchSorted-15",
    types={"T": NUMERIC},
    inputs=[Input("sorted", "T", "[size] | [*batch, size]"), Input("values", "T", "[*values]")],
    outputs=[Output("indices", "output_type", "[*values]")],
    attrs=[Attr("right_mode", BOOL, False), Attr("output_type", choice("i64", "i32"), "i64")],
    traits=[Doubting(unsorted_rows)],
)
def search_sorted(sorted: Array, values: Array, *, right_mode: bool, output_type: str) -> Any:
    """Where each value would go into its sorted row: before equal elements, or behind them with right_mode.

    The attribute is `right` on the page, `right_mode` in files; `output_type` is in files only. One row serves
    values of any shape. NaN goes to the front, as in the reference; rows that do not rise, or have a NaN, give what a
    binary search happens on.

    Constraints:
        C1: sorted is one row, or has the dimensions of values but for the last.

    Source: sort/search-sorted-15.rst

    >>> op(np.array([1, 3, 3, 7]), np.array([3, 8]), right_mode=True).tolist()
    [3, 4]
    """
    if sorted.ndim == 1:
        found = _insertion(sorted, values, right_mode)
    else:
        count = math.prod(values.shape[:-1])
        rows, wanted = sorted.reshape(count, -1 if sorted.size else 0), values.reshape(count, values.shape[-1])
        found = np.empty(wanted.shape, np.int64)
        for row, some, places in zip(rows, wanted, found, strict=True):
            places[...] = _insertion(row, some, right_mode)
    return found.astype(numpy_dtype(output_type)).reshape(values.shape)


def _insertion(row: Array, values: Array, right: bool) -> Array:
    if row.dtype == numpy_dtype("bf16"):  # numpy has no search for it
        row, values = row.astype(np.float32), values.astype(np.float32)
    return np.where(values != values, 0, np.searchsorted(row, values, "right" if right else "left"))


@search_sorted.shapes
def _(node: Node) -> Shapes:
    rows, values = node.shape("sorted"), node.shape("values")
    if len(rows) == 1:
        return {}
    fits = len(rows) == len(values) and every(a == b for a, b in zip(rows[:-1], values[:-1], strict=True))
    node.require(
        "C1", fits, f"`sorted` is {shape_text(rows)} and `values` is {shape_text(values)}", "sorted", about=["values"]
    )
    return {"values": (*map(meet, values[:-1], rows[:-1]), values[-1])}


NMS_INPUTS = (
    Input("boxes", "T", "[num_batches, num_boxes, 4]"),
    Input("scores", "T", "[num_batches, num_classes, num_boxes]"),
)
LENIENT_NMS_INPUTS = (NMS_INPUTS[0], replace(NMS_INPUTS[1], lenient=True))
NMS_ATTRS = (
    Attr("box_encoding", choice("corner", "center"), "corner"),
    Attr("sort_result_descending", BOOL, True),
)
OUTPUT_TYPE = Attr("output_type", choice("i64", "i32"), "i64")
SCORED_OUTPUTS = (
    Output("selected_indices", "output_type", "[selected, 3]"),
    Output("selected_scores", "f32", "[selected, 3]"),
    Output("valid_outputs", "output_type", "[1]"),
)
NMS_TYPES = {"T": FLOAT, "T_MAX_BOXES": INTEGER, "T_THRESHOLDS": FLOAT}
NMS_LENIENT = {"T_MAX_BOXES": FLOAT}
NMS_DOC = """{summary}

The best box of each class is taken, those that it overlaps by more than iou_threshold are removed, and so on, until
max_output_boxes_per_class are taken. Boxes are (y, x) of two opposite corners, or (center x, center y, width, height)
with box_encoding `center`. With sort_result_descending the result is ordered by score, else by batch and class.
{output}

Constraints:
    C1: max_output_boxes_per_class is 0 or more.

Choice: iou_threshold and score_threshold are 0 if they are not given, and without max_output_boxes_per_class nothing
is taken. Of equal scores the lower batch, class and box comes first.

Deviation: a score equal to score_threshold is not enough, as in OpenVINO; the page has it otherwise, but then boxes
that were removed, with a score of 0, would be found. Boxes that overlap by iou_threshold exactly stay; OpenVINO
removes them. {deviation}

Source: sort/{page}.rst

>>> boxes, scores = np.array([[[0.0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]]), np.array([[[0.5, 0.75, 0.25]]])
>>> {example}
"""


def _limits(shape: str) -> list[Input]:
    thresholds = (
        Input(f"{name}_threshold", "T_THRESHOLDS", shape, optional=True, lenient=True) for name in ("iou", "score")
    )
    return [Input("max_output_boxes_per_class", "T_MAX_BOXES", shape, optional=True), *thresholds]


def _number(tensor: Array | None) -> float:
    return 0.0 if tensor is None else float(tensor.item())


def _corners(boxes: Array, encoding: str) -> Any:
    corners = np.empty_like(boxes)
    for axis in (0, 1):
        first, second = boxes[..., axis], boxes[..., axis + 2]
        if encoding == "center":
            first, second = first - second / 2, first + second / 2
        np.minimum(first, second, out=corners[..., axis])
        np.maximum(first, second, out=corners[..., axis + 2])
    return corners


def _hard(
    boxes: Array, scores: Array, score_threshold: float, iou_threshold: float, most: int, suppress: Suppress
) -> tuple[Array, Array, Array]:
    """The classes and boxes of one image that are taken, and their scores."""
    labels, indices = ranked(scores, scores > score_threshold)
    stays = suppress(boxes[indices], ends_of(labels, len(scores)), iou_threshold, most=most)
    labels, indices = labels[stays], indices[stays]
    return labels, indices, scores[labels, indices]


def _soft(
    boxes: Array, scores: Array, score_threshold: float, fade: Callable[..., tuple[Array, Array]], **limits: Any
) -> tuple[Array, Array, Array]:
    """As `_hard`, by scores that fade."""
    labels, indices = places_of(scores > score_threshold)
    ends = ends_of(labels, len(scores))
    chosen, found = fade(boxes[indices], scores[labels, indices], ends, score_threshold=score_threshold, **limits)
    return labels[chosen], indices[chosen], found


def _taken(
    boxes: Array, scores: Array, choose: Callable[[Array, Array], tuple[Array, Array, Array]], ordered: bool
) -> tuple[Array, Array]:
    """What `choose` takes of each image: rows (batch, class, box), and their scores."""
    rows, values = [np.empty((0, 3), np.int64)], [np.empty(0, scores.dtype)]
    for batch in range(len(scores)):
        labels, indices, found = choose(boxes[batch], scores[batch])
        rows.append(np.stack([np.full_like(indices, batch), labels, indices], 1))
        values.append(found)
    selected, found = np.concatenate(rows), np.concatenate(values)
    if ordered:
        order = np.lexsort((*selected.T[::-1], -found))
        selected, found = selected[order], found[order]
    return selected, found


def _most(node: Node) -> Size:
    """What max_output_boxes_per_class is."""
    name = "max_output_boxes_per_class"
    if node.inputs[name] is None:
        return 0
    most = node.size(name)
    node.require("C1", most >= 0, f"`{name}` is {most}, expected 0 or more", name, about=["max_output_boxes_per_class"])
    return most.within(0) if isinstance(most, Dim) else most


def _suppression(version: int, opsets: set[int], output: str, *, filled: bool, example: str, deviation: str = "") -> Op:
    """A version whose result is boxes alone; one that is `filled` has a fixed number of rows."""

    def kernel(
        boxes: Array,
        scores: Array,
        max_output_boxes_per_class: Array | None = None,
        iou_threshold: Array | None = None,
        score_threshold: Array | None = None,
        *,
        suppress: Suppress = unsuppressed,
        **attrs: Any,
    ) -> Any:
        most = int(_number(max_output_boxes_per_class))
        limits: dict[str, Any] = {
            "score_threshold": _number(score_threshold),
            "iou_threshold": _number(iou_threshold),
            "most": most,
            "suppress": suppress,
        }
        corners = _corners(widened(boxes), attrs["box_encoding"])
        selected, _ = _taken(corners, widened(scores), partial(_hard, **limits), attrs["sort_result_descending"])
        kind = numpy_dtype(attrs.get("output_type", "i64"))
        if not filled:
            return selected.astype(kind)
        batches, classes, count = scores.shape
        result = np.full((min(count, most) * batches * classes, 3), -1, kind)
        result[: len(selected)] = selected
        return result

    def rule(node: Node) -> Shapes:
        _of_one_width(node)
        most = _most(node)
        batches, classes, boxes = (node.dims[name] for name in ("num_batches", "num_classes", "num_boxes"))
        rows = smallest(boxes, most) * batches * classes
        return {"rows": rows if filled else up_to(rows)}

    return Op(
        f"NonMaxSuppression-{version}",
        kernel,
        inputs=[*LENIENT_NMS_INPUTS, *_limits("[]")],
        outputs=[Output("selected_indices", "i64" if version == 1 else "output_type", "[rows, 3]")],
        attrs=NMS_ATTRS if version == 1 else (*NMS_ATTRS, OUTPUT_TYPE),
        types=NMS_TYPES,
        lenient_types=NMS_LENIENT,
        opsets=frozenset(opsets),
        traits=[Doubting(overlaps_outside)],
        rule=rule,
        doc=NMS_DOC.format(
            summary="The best boxes of each class that do not overlap better ones, as (batch, class, box).",
            output=output,
            deviation=deviation,
            page=f"non-max-suppression-{version}",
            example=f"op(boxes, scores, np.array(3), np.array(0.5)).tolist()\n{example}",
        ),
    )


def _scored_suppression(version: int, opsets: range, page: str, removed: str, deviation: str = "") -> Op:
    """A version with a result as long as it is, and soft suppression."""

    def kernel(
        boxes: Array,
        scores: Array,
        max_output_boxes_per_class: Array | None = None,
        iou_threshold: Array | None = None,
        score_threshold: Array | None = None,
        soft_nms_sigma: Array | None = None,
        *,
        box_encoding: str,
        sort_result_descending: bool,
        output_type: str,
        suppress: Suppress = unsuppressed,
        fade: Callable[..., tuple[Array, Array]] = faded,
    ) -> Any:
        limits: dict[str, Any] = {
            "score_threshold": _number(score_threshold),
            "iou_threshold": _number(iou_threshold),
            "most": int(_number(max_output_boxes_per_class)),
        }
        choose = partial(_hard, **limits, suppress=suppress)
        sigma = _number(soft_nms_sigma)
        if sigma > 0:
            limits["iou_threshold"] = limits["iou_threshold"] if version == 5 else np.inf
            choose = partial(_soft, fade=fade, sigma=sigma, **limits)
        corners = _corners(widened(boxes), box_encoding)
        selected, found = _taken(corners, widened(scores), choose, sort_result_descending)
        return _scored(selected, found, output_type)

    return Op(
        f"NonMaxSuppression-{version}",
        kernel,
        inputs=[
            *LENIENT_NMS_INPUTS,
            *_limits("[] | [1]"),
            Input("soft_nms_sigma", "T_THRESHOLDS", "[] | [1]", optional=True, lenient=True),
        ],
        outputs=SCORED_OUTPUTS,
        attrs=(*NMS_ATTRS, OUTPUT_TYPE),
        types=NMS_TYPES,
        lenient_types=NMS_LENIENT,
        opsets=frozenset(opsets),
        traits=[Doubting(overlaps_outside)],
        rule=_hard_or_soft_shapes,
        doc=NMS_DOC.format(
            summary="The best boxes of each class that do not overlap better ones, and their scores.",
            output="The outputs are rows (batch, class, box), rows (batch, class, score), and the number of rows. A\n"
            f"soft_nms_sigma above 0 lets each box taken multiply scores by exp(-iou² / (2 * sigma)); it {removed}.\n"
            "The scores are f32, as in OpenVINO; by the page they are of the type of the thresholds.",
            deviation=deviation,
            page=page,
            example="[output.tolist() for output in op(boxes, scores, np.array(3), np.array(0.5))]\n"
            "[[[0, 0, 1], [0, 0, 2]], [[0.0, 0.0, 0.75], [0.0, 0.0, 0.25]], [2]]",
        ),
    )


def _scored(selected: Array, found: Array, output_type: str) -> Any:
    kind = numpy_dtype(output_type)
    scores = np.concatenate([selected[:, :2], found[:, None]], 1).astype(np.float32)
    return selected.astype(kind), scores, np.array([len(selected)], kind)


def _of_one_width(node: Node) -> None:
    """Raise `Violation` for f64 beside another type: as the page has it, and unlike of other types, OpenVINO does."""
    first: dict[str, tuple[str, str]] = {}
    for port in node.op.inputs:
        tensor = node.inputs[port.name]
        if tensor is None or tensor.type == "dynamic" or node.widened.get(port.type) != "f64":
            continue
        name, type = first.setdefault(port.type, (port.name, tensor.type))
        if tensor.type != type:
            raise Violation("E303", f"`{port.name}` is {tensor.type}, but `{name}` is {type}", port.name, [name])


def _hard_or_soft_shapes(node: Node) -> Shapes:
    _of_one_width(node)
    return _scored_shapes(node)


def _scored_shapes(node: Node) -> Shapes:
    most = _most(node)
    batches, classes, boxes = (node.dims[name] for name in ("num_batches", "num_classes", "num_boxes"))
    return {"selected": up_to(smallest(boxes, most) * batches * classes)}


AS_FOUND = """There is a row for each box, as in OpenVINO. The page has as many as num_boxes, or
max_output_boxes_per_class * num_classes if that is less, of which those after the last box are -1: too few for several
images."""
FILLED = """There are min(num_boxes, max_output_boxes_per_class) * num_batches * num_classes rows; those after the last
box are -1."""
UNFILLED = "The CPU\nplugin gives as many rows as it finds boxes."
SOFT_ONLY = "With\nsoft_nms_sigma, OpenVINO's CPU plugin removes no box by iou_threshold."
TWO, THREE = "[[0, 0, 1], [0, 0, 2]]", "[[0, 0, 1], [0, 0, 2], [-1, -1, -1]]"
non_max_suppression_1 = _suppression(1, {1, 2}, AS_FOUND, filled=False, example=TWO)
non_max_suppression_3 = _suppression(3, {3}, AS_FOUND, filled=False, example=TWO)
non_max_suppression_4 = _suppression(4, {4}, FILLED, filled=True, example=THREE, deviation=UNFILLED)
non_max_suppression_5 = _scored_suppression(5, range(5, 9), "no-max-suppression-5", "still removes boxes", SOFT_ONLY)
non_max_suppression_9 = _scored_suppression(9, range(9, 17), "non-max-suppression-9", "removes none")


@op(
    "NMSRotated-13",
    types=NMS_TYPES,
    inputs=[
        Input("boxes", "T", "[num_batches, num_boxes, 5]"),
        LENIENT_NMS_INPUTS[1],
        Input("max_output_boxes_per_class", "T_MAX_BOXES", "[] | [1]"),
        Input("iou_threshold", "T_THRESHOLDS", "[] | [1]"),
        Input("score_threshold", "T_THRESHOLDS", "[] | [1]", lenient=True),
    ],
    outputs=SCORED_OUTPUTS,
    attrs=[Attr("sort_result_descending", BOOL, True), OUTPUT_TYPE, Attr("clockwise", BOOL, True)],
    traits=[Doubting(overlaps_outside)],
)
def nms_rotated(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Array,
    iou_threshold: Array,
    score_threshold: Array,
    *,
    sort_result_descending: bool,
    output_type: str,
    clockwise: bool,
    suppress_rotated: Suppress = unsuppressed_rotated,
) -> Any:
    """The best rotated boxes of each class that do not overlap better ones, with their scores.

    Boxes are (center x, center y, width, height, angle in radians); a clockwise angle turns the x axis towards the y
    axis, which points down in images. The results are those of NonMaxSuppression-9.

    Constraints:
        C1: max_output_boxes_per_class is 0 or more.

    Choice: overlaps are computed in f64. Of equal scores the lower box comes first.

    Deviation: a score equal to score_threshold is not enough, as in OpenVINO, but unlike the page, by which boxes
    without a score would be found. selected_scores are f32, as in OpenVINO; by the page they have the type of the
    thresholds.

    Source: sort/nms-rotated-13.rst

    >>> boxes = np.array([[[2.0, 2, 2, 2, 0], [2, 2, 2, 2, np.pi / 4], [6, 6, 2, 2, 1]]])
    >>> scores, limits = np.array([[[0.5, 0.75, 0.25]]]), (np.array(3), np.array(0.5), np.array(0.0))
    >>> op(boxes, scores, *limits)[0].tolist()
    [[0, 0, 1], [0, 0, 2]]
    """
    turned = boxes.astype(np.float64)
    if not clockwise:
        turned[..., 4] *= -1
    limits: dict[str, Any] = {
        "score_threshold": _number(score_threshold),
        "iou_threshold": _number(iou_threshold),
        "most": int(_number(max_output_boxes_per_class)),
    }
    choose = partial(_hard, **limits, suppress=suppress_rotated)
    selected, found = _taken(turned, widened(scores), choose, sort_result_descending)
    return _scored(selected, found, output_type)


nms_rotated.shapes(_scored_shapes)


MULTICLASS_ATTRS = (
    Attr("sort_result_type", choice("none", "score", "classid"), "none"),
    Attr("sort_result_across_batch", BOOL, False),
    OUTPUT_TYPE,
    Attr("score_threshold", FLOAT_NUMBER, 0.0),
    Attr("nms_top_k", INT, -1, least=-1, most=MOST_I32),
    Attr("keep_top_k", INT, -1, least=-1, most=MOST_I32),
    Attr("background_class", INT, -1, least=-1, most=MOST_I32),
    Attr("normalized", BOOL, True),
)
MULTICLASS_OUTPUTS = (
    Output("selected_outputs", "T", "[selected, 6]"),
    Output("selected_indices", "output_type", "[selected, 1]"),
    Output("selected_num", "output_type", "[images]"),
)


def _listed(images: Sequence[tuple[Any, ...]], attrs: Mapping[str, Any], kind: Any) -> Any:
    """The outputs of the multi-class ops from each image's (classes, scores, box numbers, boxes), best first."""
    parts = []
    for classes, scores, indices, boxes in images:
        order = np.lexsort((indices, classes, -scores))
        order = order[: attrs["keep_top_k"]] if attrs["keep_top_k"] > -1 else order
        if attrs["sort_result_type"] == "classid":
            order = order[np.argsort(classes[order], kind="stable")]
        parts.append([classes[order], scores[order], indices[order], boxes[order]])
    counts = np.array([len(part[0]) for part in parts], numpy_dtype(attrs["output_type"]))
    empty = [np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.int64), np.empty((0, 4), np.float32)]
    classes, scores, indices, boxes = (np.concatenate(column) for column in zip(*(parts or [empty]), strict=True))
    image = np.repeat(np.arange(len(parts)), counts)
    if attrs["sort_result_across_batch"] and attrs["sort_result_type"] != "none":
        keys = (indices, classes, image, -scores) if attrs["sort_result_type"] == "score" else (-scores, image, classes)
        order = np.lexsort(keys)
        classes, scores, indices, boxes = classes[order], scores[order], indices[order], boxes[order]
    rows = np.concatenate([classes[:, None], scores[:, None], boxes], 1).astype(kind)
    return rows, indices[:, None].astype(numpy_dtype(attrs["output_type"])), counts


def _listed_shapes(node: Node, images: Size, classes: Size, boxes: Size) -> Shapes:
    attrs = node.attrs
    most = boxes if attrs["nms_top_k"] == -1 else smallest(boxes, attrs["nms_top_k"])
    most = most * classes
    if attrs["keep_top_k"] > -1:
        most = smallest(most, attrs["keep_top_k"])
    return {"selected": up_to(most * images), "images": images}


def _multiclass(
    boxes: Array,
    scores: Array,
    *,
    iou_threshold: float,
    nms_eta: float,
    suppress: Suppress,
    attrs: Mapping[str, Any],
) -> tuple[Array, Array, Array]:
    """The classes, scores and box numbers of one image, from boxes [classes, boxes, 4]."""
    chosen = scores >= attrs["score_threshold"]
    if 0 <= attrs["background_class"] < len(scores):
        chosen[attrs["background_class"]] = False
    labels, indices = ranked(scores, chosen, attrs["nms_top_k"])
    pixel = 0 if attrs["normalized"] else 1
    ends = ends_of(labels, len(scores))
    stays = suppress(boxes[labels, indices], ends, iou_threshold, pixel=pixel, across_gaps=True, eta=nms_eta)
    labels, indices = labels[stays], indices[stays]
    return labels, scores[labels, indices], indices


@op(
    "MulticlassNms-8",
    types={"T": FLOAT},
    inputs=NMS_INPUTS,
    outputs=MULTICLASS_OUTPUTS,
    attrs=(
        *MULTICLASS_ATTRS,
        Attr("iou_threshold", FLOAT_NUMBER, 0.0),
        Attr("nms_eta", FLOAT_NUMBER, 1.0, least=0, most=1),
    ),
    opsets=frozenset({8}),
)
def multiclass_nms_8(
    boxes: Array,
    scores: Array,
    *,
    iou_threshold: float,
    nms_eta: float,
    suppress: Suppress = unsuppressed,
    **attrs: Any,
) -> Any:
    """The best boxes of each image that do not overlap better ones of their class, as (class, score, box).

    As MulticlassNms-9 without roisnum.

    Choice and Deviation: as MulticlassNms-9.

    Source: sort/multiclass-non-max-suppression-8.rst

    >>> boxes = np.array([[[0.0, 0, 1, 1], [0, 0, 1, 0.75], [2, 2, 3, 3]]])
    >>> rows, indices, counts = op(boxes, np.array([[[0.5, 0.75, 0.25]]]), iou_threshold=0.5)
    >>> rows.tolist(), indices.tolist(), counts.tolist()
    ([[0.0, 0.75, 0.0, 0.0, 1.0, 0.75], [0.0, 0.25, 2.0, 2.0, 3.0, 3.0]], [[1], [2]], [2])
    """
    choose = partial(_multiclass, iou_threshold=iou_threshold, nms_eta=nms_eta, suppress=suppress, attrs=attrs)
    return _shared_boxes(boxes, scores, choose, attrs)


def _shared_boxes(boxes: Array, scores: Array, choose: Callable[..., Any], attrs: Mapping[str, Any]) -> Any:
    places, values = widened(boxes), widened(scores)
    images = []
    for number in range(len(scores)):
        shared = np.broadcast_to(places[number], (scores.shape[1], *places.shape[1:]))
        classes, found, indices = choose(shared, values[number])
        images.append((classes, found, indices + number * boxes.shape[1], places[number, indices]))
    return _listed(images, attrs, boxes.dtype)


@multiclass_nms_8.shapes
def _(node: Node) -> Shapes:
    return _listed_shapes(node, *(node.dims[name] for name in ("num_batches", "num_classes", "num_boxes")))


@op(
    "MulticlassNms-9",
    of=multiclass_nms_8,
    types={"T": FLOAT, "T_IND": INDEX},
    inputs=[
        Input("boxes", "T", "[groups, num_boxes, 4]"),
        Input("scores", "T", "[groups, num_classes, num_boxes] | [groups, num_boxes]"),
        Input("roisnum", "T_IND", "[num_batches]", optional=True),
    ],
)
def multiclass_nms(
    boxes: Array,
    scores: Array,
    roisnum: Array | None = None,
    *,
    iou_threshold: float,
    nms_eta: float,
    suppress: Suppress = unsuppressed,
    **attrs: Any,
) -> Any:
    """The best boxes of each image that do not overlap better ones of their class, as (class, score, box).

    Boxes are (x0, y0, x1, y1); unless normalized, their sides count the pixels inside. Those with score_threshold or
    more are candidates, nms_top_k at most. While iou_threshold is above 0.5, each box taken multiplies it by nms_eta
    before it removes others. keep_top_k remain per image, ordered by score, or by class and score. The second output
    are the numbers of the boxes in the batch, the third how many each image has. With roisnum each class has its own
    boxes [num_classes, num_boxes, 4], of which each image has the next roisnum; box number b of class c then has the
    number b * num_classes + c.

    Constraints:
        C1: scores have rank 3 without roisnum and rank 2 with it.
        C2: roisnum are 0 or more, and num_boxes together.

    Choice: the page's sort_result is sort_result_type in the IR, and its `class` is `classid`; `none` is `score`. Of
    equal scores the lower class and then the lower box comes first.

    Deviation: boxes that overlap by iou_threshold exactly stay, also those that do not overlap if it is 0; OpenVINO
    removes them. Each box that is taken removes others by the threshold that it has left itself; OpenVINO holds a
    box against every better one by what all of these together have left.

    Source: sort/multiclass-non-max-suppression-9.rst

    >>> boxes = np.array([[[0.0, 0, 1, 1], [0, 0, 1, 0.75], [2, 2, 3, 3]]])
    >>> rows, indices, counts = op(boxes, np.array([[0.5, 0.75, 0.25]]), np.array([2, 1]), iou_threshold=0.5)
    >>> rows.tolist(), indices.tolist(), counts.tolist()
    ([[0.0, 0.75, 0.0, 0.0, 1.0, 0.75], [0.0, 0.25, 2.0, 2.0, 3.0, 3.0]], [[1], [2]], [1, 1])
    """
    choose = partial(_multiclass, iou_threshold=iou_threshold, nms_eta=nms_eta, suppress=suppress, attrs=attrs)
    if roisnum is None:
        return _shared_boxes(boxes, scores, choose, attrs)
    places, values = widened(boxes), widened(scores)
    ends = np.cumsum(roisnum.astype(np.int64))
    images = []
    for start, end in zip(ends - roisnum, ends, strict=True):
        classes, found, indices = choose(places[:, start:end], values[:, start:end])
        indices = indices + start
        images.append((classes, found, indices * len(boxes) + classes, places[classes, indices]))
    return _listed(images, attrs, boxes.dtype)


@multiclass_nms.shapes
def _(node: Node) -> Shapes:
    rank, separate = len(node.shape("scores")), node.inputs["roisnum"] is not None
    message = f"`scores` has rank {rank} {'with' if separate else 'without'} `roisnum`, expected {2 if separate else 3}"
    node.require("C1", rank == (2 if separate else 3), message, "scores", about=["roisnum"])
    groups, boxes = node.dims["groups"], node.dims["num_boxes"]
    if not separate:
        return _listed_shapes(node, groups, node.dims["num_classes"], boxes)
    counts = node.value("roisnum")
    if counts is not None:
        lowest, total = int(counts.min(initial=0)), int(counts.sum())
        node.require("C2", lowest >= 0, f"`roisnum` holds {lowest}, expected 0 or more", "roisnum")
        node.require("C2", total == boxes, f"`roisnum` sums to {total}, but `num_boxes` is {boxes}", "roisnum")
    return _listed_shapes(node, node.dims["num_batches"], groups, boxes)


multiclass_nms.lowers("MulticlassNms-8")


@op(
    "MatrixNms-8",
    types={"T": FLOAT},
    inputs=NMS_INPUTS,
    outputs=MULTICLASS_OUTPUTS,
    attrs=(
        *MULTICLASS_ATTRS,
        Attr("decay_function", choice("linear", "gaussian"), "linear"),
        Attr("gaussian_sigma", FLOAT_NUMBER, 2.0),
        Attr("post_threshold", FLOAT_NUMBER, 0.0, least=NO_NAN),
    ),
)
def matrix_nms(
    boxes: Array,
    scores: Array,
    *,
    decay_function: str,
    gaussian_sigma: float,
    post_threshold: float,
    decays: Callable[..., Any] = lowest_decays,
    **attrs: Any,
) -> Any:
    """The best boxes of each image, their scores lowered by better ones of their class that they overlap.

    Of each class those with more than score_threshold are candidates, nms_top_k at most. A score is multiplied by the
    lowest decay of all better boxes: (1 - iou) / (1 - highest iou of that box with better ones), or
    exp(sigma * (that² - iou²)) for `gaussian`. Those above post_threshold are listed as by MulticlassNms-9.

    Choice: 1e-10 is added to the divisor. Of equal scores the lower class and then the lower box comes first. Without
    sort_result_across_batch those of an image are ordered by score whatever sort_result_type is, as in OpenVINO, which
    models are made with; the page has `class` there, too.

    Source: sort/matrix-non-max-suppression-8.rst

    >>> boxes = np.array([[[0.0, 0, 1, 1], [0, 0, 1, 0.5], [2, 2, 3, 3]]])
    >>> op(boxes, np.array([[[0.75, 0.5, 0.25]]]), sort_result_type="score")[0][:, 1].round(6).tolist()
    [0.75, 0.25, 0.25]
    """
    places, values = widened(boxes), widened(scores)
    if not attrs["sort_result_across_batch"]:
        attrs["sort_result_type"] = "score"
    sigma = gaussian_sigma if decay_function == "gaussian" else None
    threshold = attrs["score_threshold"]
    if threshold != threshold:  # all pass, as in OpenVINO
        threshold = -np.inf
    images = []
    for number in range(len(scores)):
        chosen = values[number] > threshold
        if 0 <= attrs["background_class"] < len(chosen):
            chosen[attrs["background_class"]] = False
        classes, indices = ranked(values[number], chosen, attrs["nms_top_k"])
        ends = ends_of(classes, len(chosen))
        lowered = decays(places[number, indices], ends, 0 if attrs["normalized"] else 1, sigma)
        lowered = lowered * values[number, classes, indices]
        kept = lowered > post_threshold
        classes, found, indices = classes[kept], lowered[kept], indices[kept]
        images.append((classes, found, indices + number * boxes.shape[1], places[number, indices]))
    return _listed(images, attrs, boxes.dtype)


@matrix_nms.shapes
def _(node: Node) -> Shapes:
    return _listed_shapes(node, *(node.dims[name] for name in ("num_batches", "num_classes", "num_boxes")))


@op(
    "ExperimentalDetectronTopKROIs-6",
    types={"T": FLOAT},
    inputs=[Input("rois", "T", "[number_of_ROIs, 4]"), Input("probabilities", "T", "[number_of_ROIs]")],
    outputs=[Output("best_rois", "T", "[max_rois, 4]")],
    attrs=[Attr("max_rois", INT, 0, least=0)],
    extension_versions=("experimental", "extension"),
)
def top_k_rois(rois: Array, probabilities: Array, *, max_rois: int) -> Any:
    """The regions with the highest probabilities, best first.

    Choice: of equal probabilities the first comes first; the undefined rows after the last region are 0.

    Source: sort/experimental-detectron-top-krois-6.rst

    >>> op(np.array([[0.0, 0, 1, 1], [0, 0, 2, 2]]), np.array([0.25, 0.75]), max_rois=1).tolist()
    [[0.0, 0.0, 2.0, 2.0]]
    """
    return filled(rois[descending(widened(probabilities))], max_rois)


@top_k_rois.shapes
def _(node: Node) -> Shapes:
    return {"max_rois": node.attrs["max_rois"]}
