"""What DetectionOutput does: decoding boxes from priors, choosing the best of each class, and listing them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from irrun.spec import Array

from ._boxes import Suppress, clipped, descending, ends_of, filled, moved, ranked
from ._precision import widened


def detections(
    box_logits: Array,
    class_preds: Array,
    proposals: Array,
    additional_class_preds: Array | None,
    additional_box_preds: Array | None,
    attrs: Mapping[str, Any],
    suppress: Suppress,
) -> Any:
    batch = len(box_logits)
    priors, variances = _split_priors(widened(proposals), attrs)
    count = priors.shape[2]
    classes = class_preds.shape[1] // count
    own = 1 if attrs["share_location"] else classes
    locations = widened(box_logits).reshape(batch, count, own, 4).swapaxes(1, 2)
    scores = widened(class_preds).reshape(batch, count, classes).swapaxes(1, 2)
    if additional_class_preds is not None and additional_box_preds is not None:
        scores = _objects_only(scores, additional_class_preds.reshape(batch, count, 2)[..., 1], attrs)
        more = widened(additional_box_preds).reshape(batch, count, own, 4).swapaxes(1, 2)
        priors = _decoded(priors, variances, more, attrs)
    boxes = _decoded(priors, variances, locations, attrs)
    found: list[Array] = []
    for number in range(batch):
        labels, indices = _found(np.broadcast_to(boxes[number], (classes, count, 4)), scores[number], attrs, suppress)
        row = np.empty((len(labels), 7), scores.dtype)
        row[:, 0], row[:, 1] = number, labels - attrs["decrease_label_id"]
        row[:, 2] = scores[number, labels, indices]
        row[:, 3:] = boxes[number, 0 if attrs["share_location"] else labels, indices]
        found.append(row)
    rows = np.concatenate(found) if found else np.empty((0, 7), scores.dtype)
    if attrs["clip_after_nms"]:
        rows[:, 3:] = clipped(rows[:, 3:], 1, 1)
    result = filled(rows, int(detection_rows(batch, classes, count, attrs)))
    if len(rows) < len(result):
        result[len(rows), 0] = -1
    return result.astype(box_logits.dtype, copy=False)[None, None]


def _split_priors(proposals: Array, attrs: Mapping[str, Any]) -> tuple[Array, Array | None]:
    """The priors [batch, 1, count, 4], relative to the image, and their variances."""
    size = 4 if attrs["normalized"] else 5
    batch, _, numbers = proposals.shape
    count = numbers // size
    priors = proposals[:, 0].reshape(batch, 1, count, size)[..., -4:]
    if not attrs["normalized"]:
        height, width = attrs["input_height"], attrs["input_width"]
        priors = priors / np.array([width, height, width, height], priors.dtype)
    if attrs["variance_encoded_in_target"]:
        return priors, None
    return priors, proposals[:, 1, : 4 * count].reshape(batch, 1, count, 4)


def _decoded(priors: Array, variances: Array | None, deltas: Array, attrs: Mapping[str, Any]) -> Any:
    deltas = deltas if variances is None else variances * deltas
    boxes = moved(priors, deltas, 0) if attrs["code_type"].endswith("CENTER_SIZE") else priors + deltas
    return clipped(boxes, 1, 1) if attrs["clip_before_nms"] else boxes


def _objects_only(scores: Array, objectness: Array, attrs: Mapping[str, Any]) -> Any:
    """The scores, those of priors without an object given to the background."""
    background = np.arange(scores.shape[1])[:, None] == attrs["background_label_id"]
    return np.where((objectness < attrs["objectness_score"])[:, None], background, scores).astype(scores.dtype)


def _found(boxes: Array, scores: Array, attrs: Mapping[str, Any], suppress: Suppress) -> tuple[Array, Array]:
    """The classes and priors of one image's detections, by class, from boxes [classes, priors, 4]."""
    threshold, top_k = attrs["confidence_threshold"], attrs["top_k"]
    wanted = np.arange(len(scores)) != attrs["background_label_id"]
    if attrs["decrease_label_id"] and len(scores):
        wanted[0] = False
        candidates = np.where(wanted[:, None], scores, -np.inf)
        best = candidates.argmax(0)
        highest = np.take_along_axis(candidates, best[None], 0)[0]
        priors = np.flatnonzero((highest > -1) & (highest >= threshold))
        priors = priors[descending(highest[priors])]
        priors = priors[:top_k] if top_k > -1 else priors
        order = np.argsort(best[priors], kind="stable")
        labels, indices = best[priors[order]], priors[order]
    else:
        labels, indices = ranked(scores, (scores > threshold) & wanted[:, None], top_k)
    stays = suppress(boxes[labels, indices], ends_of(labels, len(scores)), attrs["nms_threshold"])
    labels, indices = labels[stays], indices[stays]
    most = attrs["keep_top_k"][0]
    if -1 < most < len(labels):
        best = np.lexsort((indices, -scores[labels, indices]))[:most]
        best = best[np.argsort(labels[best], kind="stable")]
        labels, indices = labels[best], indices[best]
    return labels, indices


def detection_rows(batch: Any, classes: Any, priors: Any, attrs: Mapping[str, Any]) -> Any:
    keep, top_k = attrs["keep_top_k"][0], attrs["top_k"]
    if keep > 0:
        return batch * keep
    return batch * classes * (top_k if keep == -1 and top_k > 0 else priors)
