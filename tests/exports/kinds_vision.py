"""Networks for images: kinds of convolution, of attention and of sampling, in the types that people have them in."""

from __future__ import annotations

import numpy as np
import torch
import torchvision
import transformers as hf
from export import Fields, scaled
from kinds_parts import Kind, Layers, Made, drawn, exported, settled, taking
from openvino import opset16 as op
from torch import Tensor, nn
from torch.nn import functional


def image(rng: np.random.Generator, *shape: int, name: str = "image") -> dict[str, np.ndarray]:
    """Noise with patches in it: edges, and areas of one colour."""
    small = rng.standard_normal((*shape[:-2], -(-shape[-2] // 16), -(-shape[-1] // 16)), np.float32)
    coarse = np.kron(small, np.ones((1, 1, 16, 16), np.float32))[..., : shape[-2], : shape[-1]]
    return {name: coarse + rng.standard_normal(shape, np.float32) * np.float32(0.2)}


def tensors(inputs: dict[str, np.ndarray]) -> tuple[Tensor, ...]:
    return tuple(map(torch.from_numpy, inputs.values()))


def resnet18_f16(rng: np.random.Generator) -> Made:
    """All in f16: input, weights, activations and result."""
    inputs = image(rng, 1, 3, 224, 224)
    model = settled(torchvision.models.resnet18(weights=None), *tensors(inputs)).half()
    return exported(model, {"image": inputs["image"].astype(np.float16)})


def mobilenet_v3_f16_weights(rng: np.random.Generator) -> Made:
    inputs = image(rng, 1, 3, 224, 224)
    made = exported(settled(torchvision.models.mobilenet_v3_large(weights=None), *tensors(inputs)), inputs)
    return Made(made.model, inputs, compress=True)


def efficientnet_v2_f16_weights(rng: np.random.Generator) -> Made:
    inputs = image(rng, 1, 3, 224, 224)
    made = exported(settled(torchvision.models.efficientnet_v2_s(weights=None), *tensors(inputs)), inputs)
    return Made(made.model, inputs, compress=True)


def video_3d(rng: np.random.Generator) -> Made:
    """A ResNet of 3D convolutions on 8 frames."""
    inputs = {"clip": rng.standard_normal((1, 3, 8, 112, 112), np.float32)}
    return exported(settled(torchvision.models.video.r3d_18(weights=None), *tensors(inputs)), inputs)


class SpatialTransformer(nn.Module):
    """A transformation is found and undone, before a classifier, and in its features."""

    def __init__(self) -> None:
        super().__init__()
        stages = [nn.Conv2d(3, 16, 7, 4, 3), nn.ReLU(), nn.Conv2d(16, 32, 5, 4, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(4)]
        self.localise = nn.Sequential(*stages, nn.Flatten(), nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, 6))
        self.features = nn.Sequential(nn.Conv2d(3, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU())
        self.flow = nn.Conv2d(64, 2, 3, 1, 1)
        self.classify = nn.Sequential(
            nn.Conv2d(64, 128, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100)
        )

    def forward(self, image: Tensor) -> Tensor:
        theta = self.localise(image).view(-1, 2, 3) * 0.2 + torch.eye(2, 3)
        places = torch.linspace(-1, 1, 224)
        rows, columns = torch.meshgrid(places, places, indexing="ij")
        grid = torch.stack([columns, rows, torch.ones(224, 224)], -1).reshape(1, -1, 3) @ theta.transpose(1, 2)
        features = self.features(functional.grid_sample(image, grid.view(-1, 224, 224, 2), align_corners=False))
        rows, columns = torch.meshgrid(torch.linspace(-1, 1, 112), torch.linspace(-1, 1, 112), indexing="ij")
        places = torch.stack([columns, rows], -1) + 0.1 * torch.tanh(self.flow(features)).permute(0, 2, 3, 1)
        return self.classify(
            functional.grid_sample(features, places, padding_mode="border", align_corners=True)
            + functional.grid_sample(features, places, mode="nearest", align_corners=True)
        )


def grid_sample(rng: np.random.Generator) -> Made:
    inputs = image(rng, 1, 3, 224, 224)
    return exported(settled(SpatialTransformer(), *tensors(inputs)), inputs)


class Deformable(nn.Module):
    """A few blocks of deformable convolutions with masks, as in DCNv2 backbones."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 4, 3), nn.BatchNorm2d(64), nn.ReLU())
        self.offsets = nn.ModuleList(nn.Conv2d(64, 27, 3, 1, 1) for _ in range(3))
        self.convolutions = nn.ModuleList(torchvision.ops.DeformConv2d(64, 64, 3, 1, 1) for _ in range(3))

    def forward(self, image: Tensor) -> Tensor:
        x = self.stem(image)
        for offsets, convolution in zip(self.offsets, self.convolutions, strict=True):
            places, mask = offsets(x).split((18, 9), 1)
            x = x + functional.relu(convolution(x, places, torch.sigmoid(mask)))
        return x


def deformable_convolution(rng: np.random.Generator) -> Made:
    inputs = image(rng, 1, 3, 256, 256)
    return exported(settled(Deformable(), *tensors(inputs)), inputs)


class Block(nn.Module):
    """A residual block of a diffusion model, with group norms, told the time; attention where `heads` are given."""

    def __init__(self, own: int, channels: int, heads: int = 0) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(32, own), nn.GroupNorm(32, channels)])
        self.convolutions = nn.ModuleList(nn.Conv2d(size, channels, 3, 1, 1) for size in (own, channels))
        self.time = nn.Linear(256, channels)
        self.skip = nn.Conv2d(own, channels, 1)
        self.heads = heads
        if heads:
            self.norm, self.qkv, self.out = (
                nn.GroupNorm(32, channels),
                nn.Linear(channels, 3 * channels),
                nn.Linear(channels, channels),
            )

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.convolutions[0](functional.silu(self.norms[0](x))) + self.time(time)[:, :, None, None]
        x = self.skip(x) + self.convolutions[1](functional.silu(self.norms[1](y)))
        if self.heads:
            tokens = self.norm(x).flatten(2).transpose(1, 2)
            parts = self.qkv(tokens).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            found = functional.scaled_dot_product_attention(*parts.unbind(0))
            x = x + self.out(found.transpose(1, 2).flatten(2)).transpose(1, 2).unflatten(2, x.shape[2:])
        return x


class Diffusion(nn.Module):
    """A small U-Net: noise at a time, what noise is in it."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(128, 256), nn.SiLU(), nn.Linear(256, 256))
        self.first = nn.Conv2d(4, 96, 3, 1, 1)
        self.down = nn.ModuleList([Block(96, 96), Block(96, 192, 4), Block(192, 288, 8)])
        self.shrink = nn.ModuleList(nn.Conv2d(size, size, 3, 2, 1) for size in (96, 192))
        self.up = nn.ModuleList([Block(288 + 288, 192, 8), Block(192 + 192, 96, 4), Block(96 + 96, 96)])
        self.last = nn.Sequential(nn.GroupNorm(32, 96), nn.SiLU(), nn.Conv2d(96, 4, 3, 1, 1))

    def forward(self, noisy: Tensor, time: Tensor) -> Tensor:
        frequencies = torch.exp(-9.2 * torch.arange(64) / 64)
        angles = time.float()[:, None] * frequencies
        told = self.time(torch.cat([angles.cos(), angles.sin()], 1))
        x, kept = self.first(noisy), []
        for number, block in enumerate(self.down):
            x = block(x, told)
            kept.append(x)
            if number < 2:
                x = self.shrink[number](x)
        for number, block in enumerate(self.up):
            x = block(torch.cat([x, kept.pop()], 1), told)
            if number < 2:
                x = functional.interpolate(x, scale_factor=2.0, mode="nearest")
        return self.last(x)


def diffusion_unet(rng: np.random.Generator) -> Made:
    inputs = {"noisy": rng.standard_normal((1, 4, 32, 32), np.float32), "time": np.array([400], np.int64)}
    return exported(settled(Diffusion(), *tensors(inputs)), inputs)


class Upscaler(nn.Module):
    """ESPCN: convolutions at the small size, and channels that become pixels; beside it a transposed convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 64, 5, 1, 2), nn.Conv2d(64, 32, 3, 1, 1)
        self.third = nn.Conv2d(32, 27, 3, 1, 1)
        self.transposed = nn.ConvTranspose2d(32, 3, 9, 3, 3)

    def forward(self, image: Tensor) -> Tensor:
        x = torch.tanh(self.second(torch.tanh(self.first(image))))
        shuffled = functional.pixel_shuffle(self.third(x), 3)
        return (shuffled + self.transposed(x) + functional.interpolate(image, scale_factor=3.0, mode="bicubic")).clamp(
            0, 1
        )


def super_resolution(rng: np.random.Generator) -> Made:
    sizes = drawn(rng, (64, 144), (64, 144), step=8)
    given = [{"image": rng.uniform(0, 1, (1, 3, *size)).astype(np.float32)} for size in [(128, 128), *sizes]]
    return exported(Upscaler(), given[0], {"image": (2, 3)}, given[1:])


def mlp_mixer(rng: np.random.Generator) -> Made:
    class Mixer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, 256, 16, 16)
            self.norms = nn.ModuleList(nn.LayerNorm(256) for _ in range(17))
            sizes = [(196, 384), (256, 1024)] * 8
            self.mixers = nn.ModuleList(
                nn.Sequential(nn.Linear(own, more), nn.GELU(), nn.Linear(more, own)) for own, more in sizes
            )
            self.head = nn.Linear(256, 1000)

        def forward(self, image: Tensor) -> Tensor:
            x = self.patches(image).flatten(2).transpose(1, 2)
            for number, mixer in enumerate(self.mixers):
                y = self.norms[number](x)
                x = x + (mixer(y) if number % 2 else mixer(y.transpose(1, 2)).transpose(1, 2))
            return self.head(self.norms[16](x).mean(1))

    return exported(Mixer(), image(rng, 1, 3, 224, 224))


def swin_batches(rng: np.random.Generator) -> Made:
    """Swin with windows that are shifted, for batches of any size."""
    sizes = {"embed_dim": 96, "depths": [2, 2, 2], "num_heads": [3, 6, 12], "num_labels": 100}
    model = hf.SwinForImageClassification(hf.SwinConfig(**sizes))
    given = [image(rng, batch, 3, 224, 224, name="pixel_values") for batch in (1, 2, 3)]
    return exported(Fields(model, given[0], ("logits",)), given[0], {"pixel_values": (0,)}, given[1:])


def segformer_any_size(rng: np.random.Generator) -> Made:
    model = hf.SegformerForSemanticSegmentation(hf.SegformerConfig(num_labels=19))
    sizes = [(256, 256), *drawn(rng, (160, 320), (160, 320), step=32)]
    given = [image(rng, 1, 3, *size, name="pixel_values") for size in sizes]
    return exported(Fields(model, given[0], ("logits",)), given[0], {"pixel_values": (2, 3)}, given[1:])


def clip(rng: np.random.Generator) -> Made:
    """Images against texts: the similarities of one image and four texts."""
    text = hf.CLIPTextConfig(hidden_size=256, intermediate_size=1024, num_hidden_layers=6, num_attention_heads=4)
    vision = hf.CLIPVisionConfig(
        hidden_size=384, intermediate_size=1536, num_hidden_layers=6, num_attention_heads=6, patch_size=32
    )
    config = hf.CLIPConfig(text_config=text.to_dict(), vision_config=vision.to_dict(), projection_dim=256)
    ids = np.sort(rng.integers(1, 49000, (4, 24)), axis=1)[:, ::-1].copy()
    ids[:, -6:] = text.eos_token_id
    mask = np.ones_like(ids)
    mask[:, -4:] = 0
    inputs = {"input_ids": ids, "pixel_values": image(rng, 1, 3, 224, 224)["image"], "attention_mask": mask}
    return exported(Fields(hf.CLIPModel(config), inputs, ("logits_per_image",)), inputs)


class TextDetector(nn.Module):
    """An OCR detector: inverted residuals with squeeze and excitation by global means, and a map of probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish())
        plan = [(16, 24, 2), (24, 24, 1), (24, 48, 2), (48, 48, 1), (48, 96, 2), (96, 96, 1)]
        self.expand = nn.ModuleList(self._step(own, 4 * own, 1, 1) for own, _, _ in plan)
        self.depthwise = nn.ModuleList(self._step(4 * own, 4 * own, 5, step, 4 * own) for own, _, step in plan)
        self.squeeze = nn.ModuleList(nn.Conv2d(4 * own, own, 1) for own, _, _ in plan)
        self.excite = nn.ModuleList(nn.Conv2d(own, 4 * own, 1) for own, _, _ in plan)
        self.project = nn.ModuleList(nn.Conv2d(4 * own, size, 1) for own, size, _ in plan)
        self.lateral = nn.ModuleList(nn.Conv2d(size, 96, 1) for size in (24, 48, 96))
        self.smooth = nn.ModuleList(nn.Conv2d(96, 24, 3, 1, 1) for _ in range(3))
        self.head = nn.Sequential(
            nn.Conv2d(72, 24, 3, 1, 1), nn.BatchNorm2d(24), nn.ReLU(),
            nn.ConvTranspose2d(24, 24, 2, 2), nn.BatchNorm2d(24), nn.ReLU(), nn.ConvTranspose2d(24, 1, 2, 2),
        )  # fmt: skip

    @staticmethod
    def _step(own: int, channels: int, kernel: int, step: int, groups: int = 1) -> nn.Module:
        convolution = nn.Conv2d(own, channels, kernel, step, kernel // 2, groups=groups, bias=False)
        return nn.Sequential(convolution, nn.BatchNorm2d(channels), nn.Hardswish())

    def forward(self, image: Tensor) -> Tensor:
        x, found = self.stem(image), []
        for number, project in enumerate(self.project):
            y = self.depthwise[number](self.expand[number](x))
            mean = y.mean((2, 3), keepdim=True)
            y = y * functional.hardsigmoid(self.excite[number](functional.relu(self.squeeze[number](mean))))
            y = project(y)
            x = x + y if y.shape == x.shape else y
            if number % 2:
                found.append(x)
        small, middle, large = (lateral(x) for lateral, x in zip(self.lateral[::-1], found[::-1], strict=True))
        middle = middle + functional.interpolate(small, scale_factor=2.0)
        large = large + functional.interpolate(middle, scale_factor=2.0)
        maps = [smooth(x) for smooth, x in zip(self.smooth, (large, middle, small), strict=True)]
        maps = [functional.interpolate(x, scale_factor=float(2**n)) for n, x in enumerate(maps)]
        return torch.sigmoid(self.head(torch.cat(maps, 1)))


def text_detector(rng: np.random.Generator) -> Made:
    sizes = [(320, 320), *drawn(rng, (192, 416), (192, 416), step=32)]
    given = [image(rng, 1, 3, *size) for size in sizes]
    return exported(settled(TextDetector(), *tensors(given[0])), given[0], {"image": (2, 3)}, given[1:])


def fourier_convolution(rng: np.random.Generator) -> Made:
    """Blocks of LaMa: convolutions of the spectrum beside those of the image, by RDFT and IRDFT; and a DFT at last."""
    layers, inputs = Layers(rng), image(rng, 1, 3, 128, 128)
    (x,) = taking(inputs)
    node = layers.convolution(x, 48, 7, 2)
    for _ in range(4):
        spectrum = op.rdft(node, np.array([2, 3]))
        flat = op.reshape(op.transpose(spectrum, np.array([0, 1, 4, 2, 3])), np.array([1, 96, 64, 33]), False)
        mixed = op.reshape(layers.convolution(flat, 96, 1), np.array([1, 48, 2, 64, 33]), False)
        back = op.irdft(op.transpose(mixed, np.array([0, 1, 3, 4, 2])), np.array([2, 3]), np.array([64, 64]))
        local = layers.convolution(node, 48)
        node = op.multiply(op.add(op.add(local, back), node), np.float32(0.5))
    pairs = op.reshape(node, np.array([1, 24, 2, 64, 64]), False)
    power = op.dft(op.transpose(pairs, np.array([0, 1, 3, 4, 2])), np.array([2, 3]))
    power = op.reduce_sum(op.multiply(power, power), np.array([-1]), False)
    return Made(_model([op.log(op.add(power, np.float32(1)))], [x]), inputs)


def _model(results: list, parameters: list):  # type: ignore[type-arg, no-untyped-def]
    import openvino as ov

    return ov.Model(results, parameters)


def camera(rng: np.random.Generator, form: str) -> Made:
    """A small classifier that is given frames of a camera: their colours, size, layout and range are made right."""
    import openvino as ov
    from openvino.preprocess import ColorFormat, PrePostProcessor, ResizeAlgorithm

    net = settled(torchvision.models.squeezenet1_1(weights=None), torch.randn(1, 3, 224, 224))
    model = exported(scaled(net), {"image": rng.standard_normal((1, 3, 224, 224), np.float32)}).model
    steps = PrePostProcessor(model)
    source = steps.input()
    height, width = 480, 640
    planes = {
        "y": rng.integers(16, 236, (1, height, width, 1), np.uint8),
        "uv": rng.integers(16, 241, (1, height // 2, width // 2, 2), np.uint8),
    }
    if form == "nv12":
        source.tensor().set_element_type(ov.Type.u8).set_color_format(ColorFormat.NV12_TWO_PLANES, ["y", "uv"])
        source.tensor().set_spatial_static_shape(height, width)
        inputs = planes
    elif form == "i420":
        source.tensor().set_element_type(ov.Type.u8).set_color_format(ColorFormat.I420_SINGLE_PLANE)
        source.tensor().set_spatial_static_shape(height, width)
        inputs = {"image": rng.integers(16, 236, (1, height * 3 // 2, width, 1), np.uint8)}
    else:
        source.tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC"))
        source.tensor().set_color_format(ColorFormat.BGR).set_spatial_static_shape(height, width)
        inputs = {"image": rng.integers(0, 256, (1, height, width, 3), np.uint8)}
    source.preprocess().convert_element_type(ov.Type.f32)
    source.preprocess().convert_color(ColorFormat.RGB)
    source.preprocess().resize(ResizeAlgorithm.RESIZE_LINEAR)
    source.preprocess().mean([123.7, 116.3, 103.5]).scale([58.4, 57.1, 57.4])
    source.model().set_layout(ov.Layout("NCHW"))
    made = steps.build()
    for port, name in zip(made.inputs, inputs, strict=True):
        port.get_tensor().set_names({name})
    return Made(made, inputs)


KINDS: dict[str, Kind] = {
    "resnet18_f16": resnet18_f16,
    "mobilenet_v3_f16_weights": mobilenet_v3_f16_weights,
    "efficientnet_v2_f16_weights": efficientnet_v2_f16_weights,
    "video_3d": video_3d,
    "grid_sample": grid_sample,
    "deformable_convolution": deformable_convolution,
    "diffusion_unet": diffusion_unet,
    "super_resolution": super_resolution,
    "mlp_mixer": mlp_mixer,
    "swin_batches": swin_batches,
    "segformer_any_size": segformer_any_size,
    "clip": clip,
    "text_detector": text_detector,
    "fourier_convolution": fourier_convolution,
    "camera_nv12": lambda rng: camera(rng, "nv12"),
    "camera_i420": lambda rng: camera(rng, "i420"),
    "camera_bgr": lambda rng: camera(rng, "bgr"),
}
