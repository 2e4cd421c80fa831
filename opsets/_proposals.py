"""What Proposal does: moving anchors that stand at every pixel of a feature map, and listing the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irrun.spec import Array

from ._boxes import Suppress, clipped, descending, moved
from ._precision import widened


def proposals(
    class_probs: Array,
    bbox_deltas: Array,
    image_shape: Array,
    *,
    base_size: int,
    pre_nms_topn: int,
    post_nms_topn: int,
    nms_thresh: float,
    feat_stride: int,
    min_size: int,
    ratio: Sequence[float],
    scale: Sequence[float],
    clip_before_nms: bool,
    clip_after_nms: bool,
    normalize: bool,
    box_size_scale: float,
    box_coordinate_scale: float,
    framework: str,
    suppress: Suppress,
) -> tuple[Array, Array]:
    tensorflow = framework == "tensorflow"
    pixel = 0 if tensorflow else 1
    batch, channels, rows, columns = class_probs.shape
    count = channels // 2
    numbers = widened(image_shape)
    height, width = numbers[1::-1] if tensorflow else numbers[:2]
    least = np.array([numbers[-1], numbers[2]], numbers.dtype) * min_size
    scores = widened(class_probs)[:, count:].transpose(0, 2, 3, 1).reshape(batch, count * rows * columns)
    deltas = widened(bbox_deltas).reshape(batch, count, 4, rows, columns).transpose(0, 3, 4, 1, 2)
    deltas = deltas / np.repeat(np.array([box_coordinate_scale, box_size_scale], deltas.dtype), 2)

    anchors = anchor_boxes(base_size, ratio, scale, whole=not tensorflow).astype(scores.dtype)
    y, x = np.mgrid[:rows, :columns][..., None, None].astype(scores.dtype) * feat_stride
    places = np.concatenate([y, x, y, x] if tensorflow else [x, y, x, y], -1)
    anchors = anchors + places
    if tensorflow:
        anchors = clipped(anchors, height, width)
    boxes = moved(anchors, deltas, pixel, closed=False).reshape(batch, count * rows * columns, 4)
    if clip_before_nms:
        boxes = clipped(boxes, height - pixel, width - pixel)
    large = (boxes[..., 2] - boxes[..., 0] + pixel >= least[0]) & (boxes[..., 3] - boxes[..., 1] + pixel >= least[1])

    scores = np.where(large, scores, 0)

    regions = np.zeros((batch, post_nms_topn, 5), scores.dtype)
    probabilities = np.zeros((batch, post_nms_topn), scores.dtype)
    for number in range(batch):
        chosen = descending(scores[number])[:pre_nms_topn]
        ends = np.array([len(chosen)])
        chosen = chosen[suppress(boxes[number, chosen], ends, nms_thresh, pixel=pixel, most=post_nms_topn)]
        taken = boxes[number, chosen]
        if clip_after_nms:
            taken = clipped(taken, height, width)
        if normalize:
            taken = taken / np.array([width, height, width, height])
        regions[number, : len(chosen), 0] = number
        regions[number, : len(chosen), 1:] = taken
        regions[number, len(chosen) : len(chosen) + 1, 0] = -1
        probabilities[number, : len(chosen)] = scores[number, chosen]
    result = regions.reshape(-1, 5), probabilities.reshape(-1)
    return result[0].astype(class_probs.dtype, copy=False), result[1].astype(class_probs.dtype, copy=False)


def anchor_boxes(base: int, ratios: Sequence[float], scales: Sequence[float], whole: bool) -> Any:
    """Boxes of the area base², one for every ratio of height to width and every scale, ratio by ratio.

    `whole` ones have whole sides before they are scaled and lie around the middle of a base of pixels, the others lie
    around (0, 0).
    """
    ratio, scale = np.array(ratios, np.float32), np.array(scales, np.float32)
    pixel = 1 if whole else 0
    width = np.sqrt(np.float32(base * base) / ratio)
    width = np.floor(width + np.float32(0.5)) if whole else width
    height = width * ratio
    height = np.floor(height + np.float32(0.5)) if whole else height
    half = np.stack([np.multiply.outer(side, scale).ravel() - pixel for side in (width, height)], -1) * np.float32(0.5)
    middle = np.float32(0.5 * (base - 1) if whole else 0)
    return np.concatenate([middle - half, middle + half], -1)
