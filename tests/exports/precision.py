"""How exact language models are: their logits beside those of the same graph computed in f64 throughout.

    python tests/exports/precision.py FOLDER [NAME...] [--engine ENGINE...] [--steps N]

takes what `tests/exports/language.py FOLDER` wrote. Of each model it writes a twin to a temporary folder, in which all
floats are f64, constants of f16 and f32 with the values that they have; the reference engine runs that. All are given
the same prompt and then, N times, the token that the twin finds most likely. The table has the largest difference of
the last logits beside the largest logit of the step, over all steps, for irrun's engines, and for OpenVINO where it is
installed.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
from lxml import etree

import irrun

SEED = 20260401
PROMPT = 16
FLOATS = {"f16": np.float16, "f32": np.float32, "bf16": ml_dtypes.bfloat16}
PRECISIONS = {"FP16", "FP32", "BF16"}
TYPES = ("element_type", "destination_type", "variable_type", "output_type")
OPTIONS = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0", "KV_CACHE_PRECISION": "f32"}

Arrays = dict[str, np.ndarray]
Step = Callable[[Arrays], Arrays]


def widened(path: Path, folder: Path) -> Path:
    """A copy of a model with f64 in place of all f16, bf16 and f32."""
    tree = etree.parse(path)
    weights = np.memmap(path.with_suffix(".bin"), np.uint8, "r")
    twin = folder / "model.xml"
    with twin.with_suffix(".bin").open("wb") as file:
        for data in tree.iter("data"):
            constant = data.getparent().get("type") == "Const"
            if constant:
                offset, size = int(data.get("offset")), int(data.get("size"))
                blob = weights[offset : offset + size]
                if data.get("element_type") in FLOATS:
                    blob = blob.view(FLOATS[data.get("element_type")]).astype(np.float64).view(np.uint8)
                data.set("offset", str(file.tell()))
                data.set("size", str(blob.nbytes))
                file.write(blob.tobytes())
            for name in TYPES:
                if data.get(name) in FLOATS:
                    data.set(name, "f64")
    for port in tree.iter("port"):
        if port.get("precision") in PRECISIONS:
            port.set("precision", "FP64")
    tree.write(twin)
    return twin


def irrun_step(path: Path, engine: str) -> Step:
    return irrun.GraphExecutor(path, engine=engine, max_memory=1 << 40).session().run


def openvino_step(path: Path) -> Step:
    import openvino as ov

    compiled = ov.Core().compile_model(path, "CPU", OPTIONS)
    request = compiled.create_infer_request()

    def run(inputs: Arrays) -> Arrays:
        results = request.infer(inputs)
        return {port.any_name: results[port].copy() for port in compiled.outputs}

    return run


def logits(step: Step, names: list[str], tokens: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    """The last logits after each of the tokens, which are asked for one by one."""
    past = 0
    for ids in tokens:
        count = ids.shape[1]
        given = {
            "input_ids": ids,
            "attention_mask": np.ones((1, past + count), np.int64),
            "position_ids": np.arange(past, past + count, dtype=np.int64)[None],
            "beam_idx": np.zeros(1, np.int32),
        }
        yield next(iter(step({name: given[name] for name in names}).values()))[0, -1].astype(np.float64)
        past += count


def differences(path: Path, engines: list[str], steps: int) -> dict[str, float]:
    """For each engine, and OpenVINO, the largest difference from the twin of a model."""
    model = irrun.read_model(path)
    names = [layer.name for layer in model.graph.parameters]
    rng = np.random.default_rng(SEED)
    prompt = rng.integers(0, 200, (1, PROMPT))
    with tempfile.TemporaryDirectory() as folder:
        tokens, right = [prompt], []
        for found in logits(irrun_step(widened(path, Path(folder)), "reference"), names, iter(tokens)):
            right.append(found)
            if len(tokens) <= steps:
                tokens.append(np.array([[found.argmax()]]))
    ways = {engine: irrun_step(path, engine) for engine in engines}
    if _has_openvino():
        ways["OpenVINO"] = openvino_step(path)
    return {
        name: max(
            float(np.abs(ours - exact).max() / np.abs(exact).max())
            for ours, exact in zip(logits(step, names, iter(tokens)), right, strict=True)
        )
        for name, step in ways.items()
    }


def _has_openvino() -> bool:
    from importlib.util import find_spec

    return find_spec("openvino") is not None


def main() -> int:
    options = argparse.ArgumentParser(description=re.split(r"\n\n", __doc__ or "")[0])
    options.add_argument("folder", type=Path)
    options.add_argument("names", nargs="*")
    options.add_argument("--engine", action="append")
    options.add_argument("--steps", type=int, default=4)
    given = options.parse_args()
    for path in sorted(given.folder.glob("*/openvino_model.xml")):
        if not given.names or path.parent.name in given.names:
            found = differences(path, given.engine or ["auto", "numpy"], given.steps)
            print(f"{path.parent.name:24}", *(f"{name} {value:.1e}" for name, value in found.items()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
