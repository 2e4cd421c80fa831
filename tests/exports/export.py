"""Exports real architectures to OpenVINO IR, with seeded random weights and inputs: nothing is downloaded.

    python tests/exports/export.py OUT_DIR [NAME...] [--dynamic] [--expect]

writes OUT_DIR/NAME/NAME.xml, NAME.bin and inputs.npz, whose arrays are keyed by the tensor names of the model's
inputs, for the named architectures or for all. With --dynamic these are the language models that
tests/bench/dynamic.py runs with ever new lengths. With --expect, OpenVINO's CPU plugin then infers each of them in f32
and its outputs are written to openvino.npz, keyed by position: "0", "1", ...

It needs torch, transformers, keras and openvino, in an environment of their own.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import openvino as ov
import torch
import transformers as hf
from torch import Tensor, nn

hf.logging.set_verbosity_error()

SEED = 20260401

Arrays = dict[str, np.ndarray]


# Inputs: each function returns one that draws them from a generator.


def image(name: str = "pixel_values", shape: tuple[int, ...] = (1, 3, 224, 224)) -> Callable[..., Arrays]:
    return lambda rng: {name: rng.standard_normal(shape, np.float32)}


def pixels(rng: np.random.Generator) -> Arrays:
    """What keras takes: channels last, not yet scaled."""
    return {"pixels": rng.uniform(0, 255, (1, 224, 224, 3)).astype(np.float32)}


def tokens(vocabulary: int, batch: int, length: int, segments: bool = False) -> Callable[..., Arrays]:
    """Token ids, the last sequence padded at its end by a quarter, with its mask and, if asked, two segments."""

    def draw(rng: np.random.Generator) -> Arrays:
        mask = np.ones((batch, length), np.int64)
        mask[-1, length - length // 4 :] = 0
        inputs = {"input_ids": rng.integers(1, vocabulary, (batch, length)) * mask, "attention_mask": mask}
        if segments:
            inputs["token_type_ids"] = np.broadcast_to(np.arange(length) >= length // 2, (batch, length)) * mask
        return inputs

    return draw


def translation(vocabulary: int, batch: int, length: int, target: int) -> Callable[..., Arrays]:
    """Token ids with their mask, and as many target sequences, of a length of their own."""
    source = tokens(vocabulary, batch, length)
    return lambda rng: source(rng) | {"decoder_input_ids": rng.integers(1, vocabulary, (batch, target))}


def clicks(rng: np.random.Generator, batch: int = 128, items: int = 10_000) -> Arrays:
    """Numeric features, and a bag of 0 to 20 items per row, the bags laid end to end."""
    sizes = rng.integers(0, 21, batch)
    return {
        "numeric": rng.standard_normal((batch, 13), np.float32),
        "items": rng.integers(0, items, sizes.sum()),
        "offsets": np.cumsum(sizes) - sizes,
    }


# Models that no library holds, or whose default weights would not do.


class Recurrent(nn.Module):
    """A bidirectional LSTM, then a GRU; returns the score of each step and the last state."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(40, 96, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(192, 64, batch_first=True)
        self.score = nn.Linear(64, 10)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        steps, state = self.gru(self.lstm(features)[0])
        return self.score(steps), state


class Recommender(nn.Module):
    """The sum of the embeddings of a bag of items, beside numeric features, scored by an MLP."""

    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(10_000, 64, mode="sum")
        self.numeric = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.LayerNorm(64))
        self.score = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1), nn.Sigmoid())

    def forward(self, numeric: Tensor, items: Tensor, offsets: Tensor) -> Tensor:
        return self.score(torch.cat([self.numeric(numeric), self.bag(items, offsets)], dim=1))


@torch.no_grad()
def varied(model: Any) -> Any:
    """`model` without constant parameters: biases of 0 and scales of 1, as they are before training, hide mistakes."""
    for parameter in model.parameters():
        if parameter.requires_grad and (parameter == parameter.flatten()[0]).all():
            parameter += 0.1 * torch.randn_like(parameter)
    return model


def scaled(model: nn.Module) -> nn.Module:
    """`model` with weights that keep the size of the activations, where batch norms with default statistics do not."""
    for part in model.modules():
        if isinstance(part, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
    return model


def efficientnet() -> Any:
    """EfficientNet, whose activations would vanish: each batch norm is made to scale those of an input to 1."""
    model = varied(keras.applications.EfficientNetB0(weights=None))
    image = keras.random.uniform((1, 224, 224, 3), 0, 255)
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            activations = keras.Model(model.input, layer.input)(image)
            layer.moving_variance.assign(keras.ops.ones_like(layer.moving_variance) * keras.ops.mean(activations**2))
    return model


def t5(model: Any) -> nn.Module:
    sizes = {"d_model": 512, "d_ff": 2048, "num_layers": 6, "num_heads": 8}
    return model(hf.T5Config(**sizes, use_cache=False))


def whisper_encoder() -> nn.Module:
    sizes = {"d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536}
    return hf.WhisperModel(hf.WhisperConfig(**sizes, decoder_layers=1)).get_encoder()


def albert() -> nn.Module:
    config = hf.AlbertConfig(hidden_size=768, num_attention_heads=12, intermediate_size=3072)
    config._attn_implementation = "eager"  # as MatMul and Softmax; elsewhere it is ScaledDotProductAttention
    return hf.AlbertModel(config)


@dataclass(frozen=True)
class Architecture:
    """What to export: `outputs` are the fields to take of what a transformer returns.

    With `dynamic` all sizes of the inputs are left open; with `compress` the weights are saved as f16.
    """

    build: Callable[[], Any]
    inputs: Callable[[np.random.Generator], Arrays]
    outputs: tuple[str, ...] = ()
    dynamic: bool = False
    compress: bool = False


CLASSES = {"num_labels": 1000}
LOGITS = ("logits",)
HIDDEN = ("last_hidden_state",)
POOLED = ("last_hidden_state", "pooler_output")

ARCHITECTURES = {
    "resnet50": Architecture(lambda: hf.ResNetForImageClassification(hf.ResNetConfig(**CLASSES)), image(), LOGITS),
    "mobilenet_v2": Architecture(
        lambda: scaled(hf.MobileNetV2ForImageClassification(hf.MobileNetV2Config(**CLASSES))), image(), LOGITS
    ),
    "efficientnet_b0": Architecture(efficientnet, pixels, compress=True),
    "convnext_tiny": Architecture(
        lambda: hf.ConvNextForImageClassification(hf.ConvNextConfig(**CLASSES, layer_scale_init_value=1.0)),
        image(),
        LOGITS,
    ),
    "vit_base": Architecture(lambda: hf.ViTForImageClassification(hf.ViTConfig(**CLASSES)), image(), LOGITS),
    "swin_tiny": Architecture(lambda: hf.SwinForImageClassification(hf.SwinConfig(**CLASSES)), image(), LOGITS),
    "segformer_b0": Architecture(
        lambda: hf.SegformerForSemanticSegmentation(hf.SegformerConfig(num_labels=19)), image(), LOGITS
    ),
    "bert_base": Architecture(
        lambda: hf.BertModel(hf.BertConfig()), tokens(30522, 2, 64, segments=True), POOLED, dynamic=True
    ),
    "albert_base": Architecture(albert, tokens(30000, 1, 64, segments=True), POOLED),
    "t5_encoder": Architecture(lambda: t5(hf.T5EncoderModel), tokens(32128, 1, 64), HIDDEN),
    "gpt2": Architecture(
        lambda: hf.GPT2LMHeadModel(hf.GPT2Config(n_layer=3, n_embd=384, n_head=6, use_cache=False)),
        tokens(50257, 2, 48),
        LOGITS,
    ),
    "whisper_tiny_encoder": Architecture(whisper_encoder, image("input_features", (1, 80, 3000)), HIDDEN),
    "lstm_gru": Architecture(Recurrent, image("features", (2, 50, 40))),
    "recommender": Architecture(Recommender, clicks),
}

SMALL = dict.fromkeys(("vocab_size", "max_position_embeddings"), 8000) | {"hidden_size": 512, "intermediate_size": 1024}
DECODER = SMALL | {"num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 4, "use_cache": False}

DYNAMIC = {
    "bert_base": ARCHITECTURES["bert_base"],
    "gpt2_small": Architecture(
        lambda: hf.GPT2LMHeadModel(hf.GPT2Config(use_cache=False)), tokens(50257, 2, 48), LOGITS, dynamic=True
    ),
    "t5_small": Architecture(
        lambda: t5(hf.T5ForConditionalGeneration), translation(32128, 2, 64, 40), LOGITS, dynamic=True
    ),
    "llama_small": Architecture(
        lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**DECODER)), tokens(8000, 2, 48), LOGITS, dynamic=True
    ),
    "mixtral_small": Architecture(
        lambda: hf.MixtralForCausalLM(hf.MixtralConfig(**DECODER, experts_implementation="batched_mm")),
        tokens(8000, 2, 48),
        LOGITS,
        dynamic=True,
    ),
}
"""Unknown batch and length, those of the encoder's and of the decoder's sequences apart."""


class Fields(nn.Module):
    """Named fields of what a transformer returns, as a function of positional tensors: a form that can be traced."""

    def __init__(self, model: Any, inputs: Arrays, outputs: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.inputs, self.outputs = model, list(inputs), outputs

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        result = self.model(**dict(zip(self.inputs, tensors, strict=True)))
        return tuple(result[name] for name in self.outputs)


def make(architecture: Architecture) -> tuple[nn.Module, Arrays]:
    """Its seeded model, as a function of positional tensors, and its seeded inputs."""
    keras.utils.set_random_seed(SEED)  # torch's too
    inputs = architecture.inputs(np.random.default_rng(SEED))
    model = varied(architecture.build())
    if architecture.outputs:
        model = Fields(model, inputs, architecture.outputs)
    return model.eval(), inputs


def export(name: str, architecture: Architecture, folder: Path) -> None:
    """Writes NAME.xml, NAME.bin and inputs.npz."""
    module, inputs = make(architecture)
    shapes = [ov.PartialShape([-1] * x.ndim if architecture.dynamic else list(x.shape)) for x in inputs.values()]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of the tracer, about sizes that become constants
        model = ov.convert_model(module, example_input=tuple(map(torch.from_numpy, inputs.values())), input=shapes)
    for port, tensor_name in zip(model.inputs, inputs, strict=True):
        port.get_tensor().set_names({tensor_name})
    folder.mkdir(parents=True, exist_ok=True)
    ov.save_model(model, folder / f"{name}.xml", compress_to_fp16=architecture.compress)
    np.savez(folder / "inputs.npz", **inputs)


def expect(name: str, folder: Path) -> None:
    """Infers what `export` wrote, and writes openvino.npz."""
    compiled = ov.Core().compile_model(folder / f"{name}.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    with np.load(folder / "inputs.npz") as inputs:
        results = compiled(dict(inputs))
    np.savez(folder / "openvino.npz", **{str(i): results[port] for i, port in enumerate(compiled.outputs)})


def main() -> None:
    parser = argparse.ArgumentParser(description="Export real architectures to OpenVINO IR.")
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ARCHITECTURES)}; all by default")
    parser.add_argument("--dynamic", action="store_true", help=f"those of unknown length: {', '.join(DYNAMIC)}")
    parser.add_argument("--expect", action="store_true", help="also write the outputs that OpenVINO infers")
    arguments = parser.parse_args()
    architectures = DYNAMIC if arguments.dynamic else ARCHITECTURES
    if unknown := set(arguments.names) - set(architectures):
        parser.error(f"no such architecture: {', '.join(sorted(unknown))}")
    for name in arguments.names or architectures:
        print(name, flush=True)
        export(name, architectures[name], arguments.out / name)
        if arguments.expect:
            expect(name, arguments.out / name)


if __name__ == "__main__":
    main()
