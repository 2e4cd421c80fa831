"""Language models by irrun and by OpenVINO: the same tokens, and how far apart the logits are.

    python tests/exports/parity.py FOLDER [NAME...] [--engine ENGINE...] [--steps N]

takes what `tests/exports/language.py FOLDER --tiny` wrote. Each model is given a prompt and then, N times, the token
that OpenVINO finds most likely; the runs of irrun take the same ones. Three times: one row ("plain"); two rows of
different lengths, padded on the left ("padded"); and two rows that change places at every other step by `beam_idx`
("beams"). The table has, for each, the largest difference of the last logits beside the largest logit of the step, over
all steps, and how many tokens irrun chooses otherwise. It ends with status 1 where a token differs or the difference is
above 1e-5.

It needs openvino, which runs in f32 with a cache in f32.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

import irrun
from irrun.ir.signature import names_of
from irrun.run.decoder import Decoder, read_decoder

SEED = 20260401
OPTIONS = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0", "KV_CACHE_PRECISION": "f32"}
MOST = 1e-5
LENGTHS = (11, 6)
ENCODER = re.compile(r"\bencoder")
ENCODED = 7
"""Steps of the encoder's result, for decoders that read one."""

Arrays = dict[str, np.ndarray]
Step = Callable[[Arrays], Arrays]


def irrun_steps(path: Path, engine: str, threads: int) -> tuple[irrun.GraphExecutor, Callable[[], Step]]:
    executor = irrun.GraphExecutor(path, engine=engine, threads=threads)
    return executor, lambda: executor.session().run


def openvino_steps(path: Path, threads: int) -> Callable[[], Step]:
    compiled = ov.Core().compile_model(path, "CPU", OPTIONS | {"INFERENCE_NUM_THREADS": threads})

    def begun() -> Step:
        request = compiled.create_infer_request()

        def run(inputs: Arrays) -> Arrays:
            results = request.infer(inputs)
            return {name: results[port].copy() for port in compiled.outputs for name in port.names}

        return run

    return begun


def extra_inputs(decoder: Decoder, batch: int, rng: np.random.Generator) -> Arrays:
    """Of an encoder: what it made of `ENCODED` steps, all of them valid."""
    known = {*decoder.made.values(), *decoder.caches}
    arrays = {}
    for name, tensor in decoder.inputs.items():
        if name not in known:
            sizes = [size if isinstance(size, int) else ENCODED for size in (tensor.shape or ())]
            shape = [batch, *sizes[1:]]
            drawn = rng.standard_normal(shape, np.float32) if tensor.type == "f32" else np.ones(shape, np.int64)
            arrays[name] = drawn
    return arrays


def scenario(
    decoder: Decoder, step: Step, lengths: tuple[int, ...], beams: bool, given: list[Any], steps: int
) -> np.ndarray:
    """The last logits of each step [steps + 1, batch, vocabulary]; `given` are the tokens to take, or gets them."""
    rng = np.random.default_rng(SEED)
    longest, batch = max(lengths), len(lengths)
    mask = np.array([[0] * (longest - length) + [1] * length for length in lengths], np.int64)
    ids = rng.integers(3, decoder.vocabulary or 256, (batch, longest)) * mask
    extra = extra_inputs(decoder, batch, rng)
    caches, logits = decoder.empty_caches(batch, 1 << 30), []
    order = np.arange(batch)
    for number in range(steps + 1):
        made = decoder.step(ids, mask)
        if "beam_idx" in made:
            made["beam_idx"] = order.astype(made["beam_idx"].dtype)
        results = step({**extra, **caches, **made})
        caches = {name: results[output] for name, output in decoder.caches.items()}
        logits.append(np.array(results[decoder.logits][:, -1], np.float32))
        if len(given) == number:
            given.append(logits[-1].argmax(-1))
        order = order[::-1] if beams and number % 2 else np.arange(batch)
        ids = given[number][order][:, None]
        mask = np.concatenate([mask[order], np.ones_like(ids)], 1)
    return np.array(logits)


SCENARIOS = {"plain": (LENGTHS[:1], False), "padded": (LENGTHS, False), "beams": (LENGTHS[:1] * 2, True)}


def compare(path: Path, engines: list[str], steps: int, threads: int) -> dict[tuple[str, str], str]:
    """How far apart the logits are, or what is to be said instead, by engine and scenario."""
    cells: dict[tuple[str, str], str] = {}
    begun = openvino_steps(path, threads)
    expected: dict[str, tuple[np.ndarray, list[Any]]] = {}
    for engine in engines:
        executor, session = irrun_steps(path, engine, threads)
        given = [name for layer in executor.model.graph.parameters for name in names_of(layer) if ENCODER.search(name)]
        decoder = read_decoder(executor, given)
        for name, (lengths, beams) in SCENARIOS.items():
            if beams and "beam_idx" not in decoder.made:
                cells[engine, name] = "-"
                continue
            if len(set(lengths)) > 1 and "attention_mask" not in decoder.made:
                cells[engine, name] = "-"
                continue
            if name not in expected:
                tokens: list[Any] = []
                expected[name] = scenario(decoder, begun(), lengths, beams, tokens, steps), tokens
            wanted, tokens = expected[name]
            try:
                found = scenario(decoder, session(), lengths, beams, tokens, steps)
            except irrun.IRError as error:
                cells[engine, name] = str(error).splitlines()[0]
                continue
            apart = (np.abs(found - wanted).max(-1) / np.abs(wanted).max(-1)).max()
            other = int((found.argmax(-1) != wanted.argmax(-1)).sum())
            cells[engine, name] = f"{apart:.1e}" + (f" {other} of {wanted.argmax(-1).size} tokens" if other else "")
    return cells


def model_in(folder: Path) -> Path | None:
    """The decoder that the exporter has written there, the one with a cache where there are two."""
    files = (folder / f"openvino_{part}.xml" for part in ("decoder_with_past_model", "decoder_model", "model"))
    return next((file for file in files if file.is_file()), None)


def good(cell: str) -> bool:
    """Whether all tokens are the same, and the logits within `MOST`."""
    try:
        return cell == "-" or float(cell) <= MOST
    except ValueError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare language models by irrun and by OpenVINO.")
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("names", nargs="*", metavar="NAME", help="all by default")
    parser.add_argument(
        "--engine", nargs="+", default=["auto", "numpy"], help="engines of irrun; auto and numpy by default"
    )
    parser.add_argument("--steps", type=int, default=32, help="after the prompt; 32 by default")
    parser.add_argument("--threads", type=int, default=1, help="of both; 1 by default")
    arguments = parser.parse_args()
    columns = [(engine, name) for engine in arguments.engine for name in SCENARIOS]
    print(f"{'model':20}", *(f"{' '.join(column):>14}" for column in columns), flush=True)
    bad = 0
    for folder in sorted(arguments.folder.iterdir()):
        path = model_in(folder)
        if path is None or (arguments.names and folder.name not in arguments.names):
            continue
        try:
            cells = compare(path, arguments.engine, arguments.steps, arguments.threads)
        except Exception as error:  # also what OpenVINO raises
            bad += 1
            print(f"{folder.name:20} {type(error).__name__}: {str(error).strip().splitlines()[0]}", flush=True)
            continue
        print(f"{folder.name:20}", *(f"{cells[column]:>14}" for column in columns), flush=True)
        bad += not all(map(good, cells.values()))
    print(f"{bad} models disagree")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
