"""Detectors: what frameworks export and what converters write, with the ops that choose boxes at their ends."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import openvino as ov
import torch
import torchvision
from kinds_parts import Kind, Layers, Made, channels_of, created, exported, settled, sizes_of, taking
from kinds_vision import image, tensors
from openvino import opset5, opset8
from openvino import opset16 as op
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models import detection


class Detections(nn.Module):
    """A detector of torchvision for one image, as a function of tensors."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        (found,) = self.model([image[0]])
        return tuple(found.values())


def torchvision_detector(rng: np.random.Generator, build: Any, size: int) -> Made:
    """Its scores are spread, for random weights find every class equally likely and nothing at all."""
    inputs = {"image": (image(rng, 1, 3, size, size)["image"] * np.float32(0.2) + np.float32(0.5)).clip(0, 1)}
    model = build(weights=None, weights_backbone=None, min_size=size, max_size=size, box_score_thresh=0.05)
    given = (torch.from_numpy(inputs["image"]) - 0.45) / 0.225  # what the detector makes of it
    settled(model.backbone, given)
    with torch.no_grad():
        features = torch.cat([x.flatten() for x in model.backbone(given).values()])
        for parameter in model.backbone.fpn.layer_blocks.parameters():
            parameter.div_(features.std())
        for part, factor in (
            (model.rpn.head.cls_logits, 40),
            (model.rpn.head.bbox_pred, 6),
            (model.roi_heads.box_predictor.cls_score, 40),
            (model.roi_heads.box_predictor.bbox_pred, 10),
        ):
            part.weight.mul_(factor)
    return exported(Detections(model.eval()), inputs)


def ssd_torchvision(rng: np.random.Generator) -> Made:
    """SSDLite: boxes of each of its classes by a NonMaxSuppression of all of them."""
    inputs = {"image": (image(rng, 1, 3, 320, 320)["image"] * np.float32(0.2) + np.float32(0.5)).clip(0, 1)}
    model = detection.ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=21, score_thresh=0.1
    )
    settled(model.backbone, 2 * torch.cat([*tensors(inputs)] * 2) - 1 + 0.1 * torch.randn(2, 3, 320, 320))
    with torch.no_grad():
        for part in model.head.classification_head.modules():
            if isinstance(part, nn.Conv2d):
                part.weight.mul_(3)
    return exported(Detections(model.eval()), inputs)


def pyramid(layers: Layers, x: Any, channels: tuple[int, ...], separable: bool = False) -> list[ov.Node]:
    """Features at half the size for each of `channels`, two convolutions a step."""
    found = []
    for number, count in enumerate(channels):
        if separable and number:
            x = layers.separable(layers.separable(x, count, 2), count)
        else:
            x = layers.convolution(layers.convolution(x, count, 3, 2), count)
        found.append(x)
    return found


def boxes_and_scores(
    layers: Layers, features: list[ov.Node], size: int, anchors: int, classes: int
) -> tuple[ov.Node, ov.Node]:
    """Boxes [1, N, 4] as corners in pixels, and scores [1, classes, N], of heads without anchors' priors."""
    boxes, scores = [], []
    for x in features:
        height, width = sizes_of(x)[2:]
        raw = layers.convolution(x, anchors * (4 + classes), 1, active=False)
        raw = op.reshape(raw, np.array([1, anchors, 4 + classes, height * width]), False)
        raw = op.reshape(op.transpose(raw, np.array([0, 1, 3, 2])), np.array([1, -1, 4 + classes]), False)
        places, extents, chances = op.variadic_split(raw, np.int64(2), np.array([2, 2, classes])).outputs()
        grid = np.stack(np.meshgrid(np.arange(width), np.arange(height)), -1).reshape(1, -1, 2).repeat(anchors, 0)
        step = np.float32(size / width)
        centre = op.multiply(op.add(op.sigmoid(places), grid.reshape(1, -1, 2).astype(np.float32)), step)
        half = op.multiply(op.exp(op.clamp(extents, -2.0, 2.0)), np.float32(2) * step)
        boxes.append(op.concat([op.subtract(centre, half), op.add(centre, half)], 2))
        # of half a million scores a thousand are above a threshold of 0.25
        scores.append(op.sigmoid(op.subtract(op.multiply(chances, np.float32(0.8)), np.float32(6.5))))
    return op.concat(boxes, 1), op.transpose(op.concat(scores, 1), np.array([0, 2, 1]))


def suppressing(rng: np.random.Generator, form: str) -> Made:
    """A one-stage detector with 80 classes on 320 x 320, and the op that picks its boxes."""
    layers, inputs = Layers(rng), image(rng, 1, 3, 320, 320)
    (x,) = taking(inputs)
    features = pyramid(layers, x, (16, 32, 64, 128, 256))[2:]
    boxes, scores = boxes_and_scores(layers, features, 320, 3, 80)
    if form == "nms5":
        found = opset5.non_max_suppression(
            boxes, scores, np.int64(100), np.float32(0.5), np.float32(0.25), box_encoding="corner"
        )
        chosen = op.gather_nd(op.squeeze(boxes, np.array([0])), op.gather(found.output(0), np.array([2]), np.int64(1)))
        return Made(ov.Model([*found.outputs(), chosen.output(0)], [x]), inputs)
    if form == "nms9":
        found = op.non_max_suppression(
            boxes, scores, np.int64(50), np.float32(0.6), np.float32(0.3), np.float32(0.5), box_encoding="corner"
        )
    elif form == "multiclass":
        found = op.multiclass_nms(
            boxes, scores, None, "score", False, "i64", 0.6, 0.25, 500, 100, background_class=-1, nms_eta=1.0
        )
    else:
        found = created(
            "opset8", "MatrixNms", boxes, scores, sort_result_type="score", sort_result_across_batch=False,
            output_type="i64", score_threshold=0.25, nms_top_k=500, keep_top_k=100, background_class=-1,
            decay_function="linear", gaussian_sigma=2.0, post_threshold=0.1, normalized=True,
        )  # fmt: skip
    return Made(ov.Model(found.outputs(), [x]), inputs)


def ssd_detection_output(rng: np.random.Generator) -> Made:
    """SSD as converters write it: PriorBox at six sizes of features, and DetectionOutput."""
    layers, inputs, classes = Layers(rng), image(rng, 1, 3, 300, 300), 21
    (x,) = taking(inputs)
    features = pyramid(layers, x, (32, 64, 128, 256, 256, 128, 128), separable=True)[2:]
    where, what, priors = [], [], []
    smallest = (30.0, 60.0, 111.0, 162.0, 213.0, 264.0)
    for number, feature in enumerate(features):
        attributes = {
            "min_size": [smallest[number]], "max_size": [smallest[number + 1]], "aspect_ratio": [2.0, 3.0],
            "flip": True, "clip": False, "step": 0.0, "offset": 0.5, "variance": [0.1, 0.1, 0.2, 0.2],
        }  # fmt: skip
        sizes = [
            op.strided_slice(op.shape_of(node), np.array([2]), np.array([4]), np.array([1]), [0], [0])
            for node in (feature, x)
        ]
        priors.append(op.unsqueeze(op.prior_box(*sizes, attributes), np.array([0])))
        for kept, count in ((where, 4), (what, classes)):
            raw = op.transpose(layers.convolution(feature, 6 * count, active=False), np.array([0, 2, 3, 1]))
            kept.append(op.reshape(raw, np.array([1, -1]), False))
    chances = op.softmax(op.reshape(op.concat(what, 1), np.array([1, -1, classes]), False), 2)
    found = opset8.detection_output(
        op.multiply(op.concat(where, 1), np.float32(0.5)),
        op.reshape(chances, np.array([1, -1]), False),
        op.concat(priors, 2),
        {
            "background_label_id": 0, "top_k": 400, "variance_encoded_in_target": False, "keep_top_k": [200],
            "code_type": "caffe.PriorBoxParameter.CENTER_SIZE", "share_location": True, "nms_threshold": 0.45,
            "confidence_threshold": 0.1, "clip_after_nms": False, "clip_before_nms": False,
            "decrease_label_id": False, "normalized": True, "input_height": 1, "input_width": 1,
            "objectness_score": 0.0,
        },
    )  # fmt: skip
    return Made(ov.Model([found], [x]), inputs)


def yolo_region(rng: np.random.Generator) -> Made:
    """Tiny YOLOv3: RegionYolo at two sizes of features."""
    layers, inputs = Layers(rng), image(rng, 1, 3, 416, 416)
    (x,) = taking(inputs)
    node, kept = layers.convolution(x, 16), []
    for channels in (32, 64, 128, 256, 512):
        kept.append(node)
        pooled = op.max_pool(node, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2], index_element_type="i64").output(0)
        node = layers.convolution(pooled, channels)
    node = layers.convolution(layers.convolution(node, 512), 256, 1)
    up = op.interpolate(layers.convolution(node, 128, 1), np.array([26, 26]), "nearest", "sizes", axes=np.array([2, 3]))
    heads = [
        (layers.convolution(node, 512), [3, 4, 5]),
        (layers.convolution(op.concat([up, kept[-1]], 1), 256), [0, 1, 2]),
    ]
    anchors = [10.0, 14, 23, 27, 37, 58, 81, 82, 135, 169, 344, 319]
    found = [
        op.region_yolo(layers.convolution(head, 255, 1, active=False), 4, 80, 6, False, mask, 1, 3, anchors)
        for head, mask in heads
    ]
    return Made(ov.Model(found, [x]), inputs)


class Bottlenecks(nn.Module):
    """YOLOv8's C2f: the parts of all its blocks, side by side."""

    def __init__(self, own: int, channels: int, count: int) -> None:
        super().__init__()
        half = channels // 2
        self.first, self.last = unit(own, channels, 1), unit((2 + count) * half, channels, 1)
        self.blocks = nn.ModuleList(nn.Sequential(unit(half, half, 3), unit(half, half, 3)) for _ in range(count))

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(parts[-1] + block(parts[-1]))
        return self.last(torch.cat(parts, 1))


def unit(own: int, channels: int, kernel: int, stride: int = 1) -> nn.Module:
    convolution = nn.Conv2d(own, channels, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(channels), nn.SiLU())


class YoloV8(nn.Module):
    """The n size, with distances as distributions."""

    def __init__(self, size: int, classes: int = 80) -> None:
        super().__init__()
        self.size, self.classes = size, classes
        plan = [(3, 16), (16, 32), (32, 64), (64, 128), (128, 256)]
        self.down = nn.ModuleList(unit(own, channels, 3, 2) for own, channels in plan)
        self.blocks = nn.ModuleList(
            [nn.Identity(), *(Bottlenecks(c, c, n) for c, n in ((32, 1), (64, 2), (128, 2), (256, 1)))]
        )
        self.pyramid = nn.ModuleList(unit(c, 64, 1) for c in (64, 128, 256))
        self.boxes = nn.ModuleList(nn.Sequential(unit(64, 64, 3), nn.Conv2d(64, 64, 1)) for _ in range(3))
        self.scores = nn.ModuleList(nn.Sequential(unit(64, 80, 3), nn.Conv2d(80, classes, 1)) for _ in range(3))
        self.register_buffer("bins", torch.arange(16.0))

    def forward(self, image: Tensor) -> Tensor:
        x, features = image, []
        for down, block in zip(self.down, self.blocks, strict=True):
            x = block(down(x))
            features.append(x)
        pooled = [features[-1]]
        for _ in range(3):
            pooled.append(functional.max_pool2d(pooled[-1], 5, 1, 2))
        features[-1] = torch.stack(pooled).mean(0)
        small = [part(x) for part, x in zip(self.pyramid, features[2:], strict=True)]
        small[1] = small[1] + functional.interpolate(small[2], scale_factor=2.0)
        small[0] = small[0] + functional.interpolate(small[1], scale_factor=2.0)
        found, places, steps = [], [], []
        for x, boxes, scores in zip(small, self.boxes, self.scores, strict=True):
            found.append(torch.cat([boxes(x), scores(x)], 1).flatten(2))
            height, width = x.shape[2:]
            rows, columns = torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij")
            places.append(torch.stack([columns, rows]).flatten(1))
            steps.append(torch.full((1, height * width), self.size / width))
        boxes, scores = torch.cat(found, 2).split((64, self.classes), 1)
        distances = (boxes.unflatten(1, (4, 16)).softmax(2) * self.bins[:, None]).sum(2)
        centre, step = torch.cat(places, 1), torch.cat(steps, 1)
        first, last = centre - distances[:, :2], centre + distances[:, 2:]
        return torch.cat([(first + last) / 2 * step, (last - first) * step, scores.sigmoid()], 1)


def yolo_v8(rng: np.random.Generator) -> Made:
    inputs = image(rng, 1, 3, 416, 416)
    return exported(settled(YoloV8(416), *tensors(inputs)), inputs)


class EfficientDetector(nn.Module):
    """Weighted fusion of features both ways, heads shared by all sizes, and the best boxes of all classes."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.backbone = torchvision.models.mobilenet_v3_small(weights=None).features
        self.lateral = nn.ModuleList(nn.Conv2d(c, 64, 1) for c in (24, 48, 576))
        self.weights = nn.Parameter(torch.rand(3, 4, 3))
        self.mixed = nn.ModuleList(self._separable(64) for _ in range(12))
        self.box, self.score = self._separable(36), self._separable(9 * 40)

    @staticmethod
    def _separable(channels: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(64, 64, 3, 1, 1, groups=64), nn.Conv2d(64, channels, 1), nn.BatchNorm2d(channels)
        )

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        features, x = [], image
        for number, part in enumerate(self.backbone):
            x = part(x)
            if number in (3, 8, 12):
                features.append(x)
        p3, p4, p5 = (part(x) for part, x in zip(self.lateral, features, strict=True))
        for layer in range(3):
            weights = torch.relu(self.weights[layer])
            weights = weights / (weights.sum(1, keepdim=True) + 1e-4)
            fuse = self.mixed[4 * layer : 4 * layer + 4]
            m4 = fuse[0](
                functional.silu(weights[0, 0] * p4 + weights[0, 1] * functional.interpolate(p5, scale_factor=2.0))
            )
            p3 = fuse[1](
                functional.silu(weights[1, 0] * p3 + weights[1, 1] * functional.interpolate(m4, scale_factor=2.0))
            )
            down = functional.max_pool2d(p3, 3, 2, 1)
            p4 = fuse[2](functional.silu(weights[2, 0] * p4 + weights[2, 1] * m4 + weights[2, 2] * down))
            p5 = fuse[3](functional.silu(weights[3, 0] * p5 + weights[3, 1] * functional.max_pool2d(p4, 3, 2, 1)))
        levels = (p3, p4, p5)
        scores = torch.cat([self.score(x).permute(0, 2, 3, 1).reshape(-1, 40) for x in levels])
        offsets = torch.cat([self.box(x).permute(0, 2, 3, 1).reshape(-1, 4) for x in levels])
        best, places = torch.topk(scores.flatten().sigmoid(), 1000)
        rows, labels = places // 40, places % 40
        raw = offsets[rows] * self.size / 16 + self.size / 2
        centre, extents = raw[:, :2], raw[:, 2:].abs() * 0.1 + 4
        boxes = torch.cat([centre - extents, centre + extents], 1)
        kept = torchvision.ops.batched_nms(boxes, best, labels, 0.5)[:100]
        return boxes[kept], best[kept], labels[kept]


def efficient_detector(rng: np.random.Generator) -> Made:
    inputs = image(rng, 1, 3, 320, 320)
    return exported(settled(EfficientDetector(320), *tensors(inputs)), inputs)


class CenterNet(nn.Module):
    """Peaks of a heat map by max pooling, the 100 highest by TopK, and what the other maps say there."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = torchvision.models.resnet18(weights=None)
        self.backbone.fc = nn.Identity()
        plan = [(512, 128), (128, 64), (64, 64)]
        self.up = nn.Sequential(
            *(
                part
                for own, channels in plan
                for part in (nn.ConvTranspose2d(own, channels, 4, 2, 1), nn.BatchNorm2d(channels), nn.ReLU())
            )
        )
        self.heads = nn.ModuleList(
            nn.Sequential(nn.Conv2d(64, 64, 3, 1, 1), nn.ReLU(), nn.Conv2d(64, c, 1)) for c in (20, 2, 2)
        )

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        net = self.backbone
        x = net.maxpool(net.relu(net.bn1(net.conv1(image))))
        x = self.up(net.layer4(net.layer3(net.layer2(net.layer1(x)))))
        heat, extents, offsets = (head(x) for head in self.heads)
        heat = heat.sigmoid()
        heat = heat * (functional.max_pool2d(heat, 3, 1, 1) == heat)
        scores, places = torch.topk(heat.flatten(1), 100)
        size = heat.shape[2] * heat.shape[3]
        labels, inside = places // size, places % size
        index = inside.unsqueeze(1).expand(-1, 2, -1)
        extent, offset = (part.flatten(2).gather(2, index) for part in (extents, offsets))
        centre = torch.stack([inside % heat.shape[3], inside // heat.shape[3]], 1) + offset
        return torch.cat([centre - extent / 2, centre + extent / 2], 1), scores, labels


def centernet(rng: np.random.Generator) -> Made:
    inputs = image(rng, 1, 3, 256, 256)
    return exported(settled(CenterNet(), *tensors(inputs)), inputs)


def proposals(layers: Layers, features: ov.Node, size: int) -> ov.Output:
    """300 regions [300, 5] of Proposal-4, as Caffe's Faster R-CNN and R-FCN have them."""
    height = sizes_of(features)[2]
    middle = layers.convolution(features, 128)
    scores = op.reshape(layers.convolution(middle, 18, 1, active=False), np.array([1, 2, 9 * height, height]), False)
    scores = op.reshape(op.softmax(scores, 1), np.array([1, 18, height, height]), False)
    offsets = op.multiply(layers.convolution(middle, 36, 1, active=False), np.float32(0.3))
    return created(
        "opset4", "Proposal", scores, offsets, np.array([size, size, 1], np.float32), base_size=16, pre_nms_topn=2000,
        post_nms_topn=300, nms_thresh=0.7, feat_stride=16, min_size=16, ratio=[0.5, 1.0, 2.0], scale=[4.0, 8.0, 16.0],
        framework="", normalize=False, clip_before_nms=True, clip_after_nms=False, box_size_scale=1.0,
        box_coordinate_scale=1.0,
    ).output(0)  # fmt: skip


def regions(rng: np.random.Generator, positions: bool) -> Made:
    """Two stages as Caffe has them: Proposal, then ROIPooling and dense layers, or PSROIPooling and a mean (R-FCN)."""
    layers, inputs, size = Layers(rng), image(rng, 1, 3, 320, 320), 320
    (x,) = taking(inputs)
    features = pyramid(layers, x, (32, 64, 128, 256))[-1]
    rois = proposals(layers, features, size)
    if positions:
        maps = [layers.convolution(features, count * 49, 1, active=False) for count in (21, 8)]
        pooled = [
            op.psroi_pooling(part, rois, count, 7, 1 / 16, 1, 1, "average")
            for part, count in zip(maps, (21, 8), strict=True)
        ]
        scores, boxes = (op.reduce_mean(part, np.array([2, 3]), False) for part in pooled)
    else:
        pooled = op.roi_pooling(features, rois, [6, 6], 1 / 16, "max")
        node = op.reshape(pooled, np.array([-1, channels_of(features) * 36]), False)
        node = layers.dense(layers.dense(node, 512, active=True), 512, active=True)
        scores, boxes = layers.dense(node, 21), layers.dense(node, 84)
    return Made(ov.Model([rois, op.softmax(scores, 1).output(0), boxes.output(0)], [x]), inputs)


def detectron(rng: np.random.Generator) -> Made:
    """Faster R-CNN of Detectron, by its Experimental ops: priors, proposals, features of regions, and detections."""
    layers, inputs, size = Layers(rng), image(rng, 1, 3, 320, 320), 320
    (x,) = taking(inputs)
    features = pyramid(layers, x, (32, 64, 128, 128, 128))[1:]
    features = [layers.convolution(feature, 64, 1, active=False) for feature in features]
    info = np.array([size, size, 1], np.float32)
    found = []
    for number, feature in enumerate(features):
        stride = 4 * 2**number
        corners = np.array([[8, 4], [6, 6], [4, 8]], np.float32) * stride / 2
        priors = created(
            "opset6", "ExperimentalDetectronPriorGridGenerator", np.concatenate([-corners, corners], 1), feature, x,
            flatten=True, h=0, w=0, stride_x=float(stride), stride_y=float(stride),
        )  # fmt: skip
        middle = layers.convolution(feature, 64)
        deltas = op.multiply(layers.convolution(middle, 12, 1, active=False), np.float32(0.1))
        scores = op.sigmoid(layers.convolution(middle, 3, 1, active=False))
        found.append(
            created(
                "opset6",
                "ExperimentalDetectronGenerateProposalsSingleImage",
                info,
                priors,
                op.squeeze(deltas, np.array([0])),
                op.squeeze(scores, np.array([0])),
                min_size=0.0,
                nms_threshold=0.7,
                post_nms_count=200,
                pre_nms_count=500,
            )
        )
    boxes, chances = (op.concat([node.output(place) for node in found], 0) for place in (0, 1))
    best = created("opset6", "ExperimentalDetectronTopKROIs", boxes, chances, max_rois=300)
    pooled = created(
        "opset6", "ExperimentalDetectronROIFeatureExtractor", best, *features, output_size=7, sampling_ratio=2,
        pyramid_scales=[4, 8, 16, 32], aligned=False,
    )  # fmt: skip
    node = op.reshape(pooled.output(0), np.array([-1, 64 * 49]), False)
    node = layers.dense(layers.dense(node, 256, active=True), 256, active=True)
    scores = op.softmax(op.multiply(layers.dense(node, 21), np.float32(2)), 1)
    detections = created(
        "opset6", "ExperimentalDetectronDetectionOutput", pooled.output(1), layers.dense(node, 84), scores,
        info[None], score_threshold=0.05, nms_threshold=0.5, max_delta_log_wh=4.1352, num_classes=21,
        post_nms_count=200, max_detections_per_image=50, class_agnostic_box_regression=False,
        deltas_weights=[10.0, 10.0, 5.0, 5.0],
    )  # fmt: skip
    return Made(ov.Model(detections.outputs(), [x]), inputs)


KINDS: dict[str, Kind] = {
    "faster_rcnn": functools.partial(
        torchvision_detector, build=detection.fasterrcnn_mobilenet_v3_large_320_fpn, size=320
    ),
    "mask_rcnn": functools.partial(torchvision_detector, build=detection.maskrcnn_resnet50_fpn, size=256),
    "ssd_torchvision": ssd_torchvision,
    "nms_5": functools.partial(suppressing, form="nms5"),
    "nms_9": functools.partial(suppressing, form="nms9"),
    "multiclass_nms": functools.partial(suppressing, form="multiclass"),
    "matrix_nms": functools.partial(suppressing, form="matrix"),
    "ssd_detection_output": ssd_detection_output,
    "yolo_region": yolo_region,
    "yolo_v8": yolo_v8,
    "efficient_detector": efficient_detector,
    "centernet": centernet,
    "roi_pooling": functools.partial(regions, positions=False),
    "psroi_pooling": functools.partial(regions, positions=True),
    "detectron": detectron,
}
