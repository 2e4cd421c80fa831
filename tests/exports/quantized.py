"""Makes the models of integers of the benchmark: real architectures as NNCF and ONNX Runtime quantize them, with seeded
random weights; nothing is downloaded.

    python tests/exports/quantized.py FOLDER [NAME...]

writes FOLDER/NAME/model.xml, model.bin and inputs.npz for those named or for all. Names that begin with onnx_ are
quantized by ONNX Runtime, with QuantizeLinear and DequantizeLinear or dynamically, the others by NNCF. What cannot be
made is named with its reason. `tests/bench/run.py --models FOLDER` measures them.

It needs what kinds.py needs, nncf, onnx, onnxscript and onnxruntime.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nncf
import numpy as np
import openvino as ov
import torch
import transformers as hf
from export import ARCHITECTURES, SEED, Arrays, make
from kinds import kinds, main
from kinds_parts import Kind, Made, exported, settled
from onnxruntime import quantization
from torch import nn

SAMPLES = 8
"""Inputs that quantization sees."""

TRANSFORMER: dict[str, Any] = {"model_type": nncf.ModelType.TRANSFORMER}


def of_architecture(name: str) -> Kind:
    """One of export.py."""

    def made(_: np.random.Generator) -> Made:
        return exported(*make(ARCHITECTURES[name]))

    return made


def samples(inputs: Arrays) -> Iterator[Arrays]:
    """Inputs like these: numbers scaled, ids in other orders."""
    rng = np.random.default_rng(SEED)
    for _ in range(SAMPLES):
        factor = np.float32(rng.uniform(0.5, 1.0))
        yield {
            key: value * factor if value.dtype.kind == "f" else rng.permuted(value, axis=-1)
            for key, value in inputs.items()
        }


def by_nncf(kind: Kind, **options: Any) -> Kind:
    """As NNCF quantizes it after training."""

    def made(rng: np.random.Generator) -> Made:
        plain = kind(rng)
        seen = nncf.Dataset(list(samples(plain.inputs)))
        model = nncf.quantize(plain.model, seen, subset_size=SAMPLES, **options)
        return Made(model, plain.inputs)

    return made


class Reader(quantization.CalibrationDataReader):
    """What ONNX Runtime calibrates with."""

    def __init__(self, inputs: Arrays) -> None:
        self.items = samples(inputs)

    def get_next(self) -> Arrays | None:  # type: ignore[override]
        return next(self.items, None)


def by_onnx_runtime(build: Callable[[], tuple[Any, Arrays]], *, dynamic: bool) -> Kind:
    """As ONNX Runtime quantizes it, weights by channel where it calibrates, and OpenVINO converts that."""

    def made(_: np.random.Generator) -> Made:
        module, inputs = build()
        with tempfile.TemporaryDirectory() as work, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain, quantized = Path(work) / "plain.onnx", Path(work) / "quantized.onnx"
            tensors = tuple(map(torch.from_numpy, inputs.values()))
            torch.onnx.export(module, tensors, str(plain), input_names=list(inputs), external_data=False)
            if dynamic:
                quantization.quantize_dynamic(plain, quantized)
            else:
                quantization.quantize_static(plain, quantized, Reader(inputs), per_channel=True)
            return Made(ov.convert_model(quantized), inputs)

    return made


class Hidden(nn.Module):
    """What a BERT makes of ids, without a mask, whose -3e38 would be quantized, too."""

    def __init__(self) -> None:
        super().__init__()
        sizes = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
        self.model = hf.BertModel(hf.BertConfig(**sizes, attn_implementation="eager"), add_pooling_layer=False)

    def forward(self, input_ids: Any) -> Any:
        return self.model(input_ids=input_ids).last_hidden_state


def bert() -> tuple[nn.Module, Arrays]:
    torch.manual_seed(SEED)
    return Hidden().eval(), {"input_ids": np.random.default_rng(SEED).integers(1, 30522, (2, 64))}


def cnn() -> tuple[nn.Module, Arrays]:
    torch.manual_seed(SEED)
    channels = (3, 32, 64, 64, 128, 128)
    layers: list[nn.Module] = []
    for n, (given, made) in enumerate(itertools.pairwise(channels)):
        layers += [nn.Conv2d(given, made, 3, 1 + n % 2, 1), nn.BatchNorm2d(made), nn.ReLU()]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100)]
    image = np.random.default_rng(SEED).uniform(0, 1, (1, 3, 64, 64)).astype(np.float32)
    return settled(nn.Sequential(*layers), torch.from_numpy(image)), {"image": image}


KINDS: dict[str, Kind] = {
    "resnet50": by_nncf(of_architecture("resnet50")),
    "resnet50_mixed": by_nncf(of_architecture("resnet50"), preset=nncf.QuantizationPreset.MIXED),
    "mobilenet_v2": by_nncf(of_architecture("mobilenet_v2")),
    "yolo_v8": by_nncf(kinds()["yolo_v8"]),
    "bert_base": by_nncf(of_architecture("bert_base"), **TRANSFORMER),
    "vit_base": by_nncf(of_architecture("vit_base"), **TRANSFORMER),
    "swin_tiny": by_nncf(of_architecture("swin_tiny"), **TRANSFORMER),
    "onnx_bert_qdq": by_onnx_runtime(bert, dynamic=False),
    "onnx_bert_dynamic": by_onnx_runtime(bert, dynamic=True),
    "onnx_cnn_qdq": by_onnx_runtime(cnn, dynamic=False),
    "onnx_cnn_dynamic": by_onnx_runtime(cnn, dynamic=True),
}


if __name__ == "__main__":
    sys.exit(main(KINDS, "Make the models of integers of the benchmark."))
