"""A process that loads a language model with one runtime and then generates as often as it is told to.

    python language_worker.py RUNTIME MODEL THREADS

It writes what loading took as a line of JSON to stdout: {"load": seconds}. For each job, a line of JSON on stdin, it
starts from an empty cache and answers with a line:

    {"prompt": [[ids]], "tokens": N}               the likeliest token N times
    {"prompt": [[ids]], "tokens": N, "beams": K}   beam search, whose rows are reordered by beam_idx at every step
    {"prompt": [[ids]], "sizes": [M...]}           the steps at which the cache grows to each of these sizes

with "first", the seconds of the prompt; "steps", those of each step after it, or lists of them for each of `sizes`;
"tokens", what came out; and "peak" and "held", bytes of physical memory, the latter behind each of `sizes`.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Step = Callable[[dict[str, np.ndarray]], np.ndarray]
"""Inputs by name to logits [batch, length, vocabulary]; calling what it comes from gives one with an empty cache."""

CHUNK = 512
"""Tokens of a prompt that fill the cache at a time, where only the steps behind them are measured."""

STEPS = 16
"""Of one token each, up to each of `sizes`; the first of them is not counted."""


def irrun(engine: str | None = None) -> Callable[[str, int], tuple[Callable[[], Step], set[str]]]:
    """irrun with the engine of that name, or the one that it chooses."""

    def load(path: str, threads: int) -> tuple[Callable[[], Step], set[str]]:
        from irrun import GraphExecutor

        executor = GraphExecutor(path, threads=threads, **({"engine": engine} if engine else {}))
        names = {name for p in executor.model.graph.parameters for name in (*p.outputs[0].port.names, p.name)}

        def begun() -> Step:
            session = executor.session()
            return lambda inputs: session.run(inputs)["logits"]

        return begun, names

    return load


def openvino(path: str, threads: int) -> tuple[Callable[[], Step], set[str]]:
    """The CPU plugin with all that is computed in f32: activations, and the cache."""
    import openvino as ov

    hints = {
        "INFERENCE_PRECISION_HINT": "f32",
        "KV_CACHE_PRECISION": "f32",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
    }
    compiled = ov.Core().compile_model(path, "CPU", hints)
    request = compiled.create_infer_request()
    output = compiled.output("logits")

    def begun() -> Step:
        request.reset_state()
        return lambda inputs: request.infer(inputs, share_inputs=True)[output]

    return begun, {name for port in compiled.inputs for name in port.names}


RUNTIMES = {
    "irrun": irrun(),
    "irrun numpy": irrun("numpy"),
    "irrun onednn": irrun("onednn"),
    "irrun reference": irrun("reference"),
    "openvino": openvino,
}


class Text:
    """Rows of tokens that grow: `feed` runs the next ones [batch, length]; it gives the last logits and its seconds."""

    def __init__(self, step: Step, names: set[str]) -> None:
        self._step, self._names = step, names
        self._mask: np.ndarray | None = None

    def feed(self, ids: Any, parents: Any = None) -> tuple[np.ndarray, float]:
        ids = np.asarray(ids, np.int64)
        parents = np.arange(len(ids)) if parents is None else np.asarray(parents)
        mask = np.ones_like(ids)
        self._mask = mask if self._mask is None else np.concatenate([self._mask[parents], mask], 1)
        positions = np.arange(self._mask.shape[1] - ids.shape[1], self._mask.shape[1])
        inputs = {
            "input_ids": ids,
            "attention_mask": self._mask,
            "position_ids": np.tile(positions, (len(ids), 1)),
            "beam_idx": parents.astype(np.int32),
        }
        given = {name: array for name, array in inputs.items() if name in self._names}
        begin = time.perf_counter()
        logits = self._step(given)
        seconds = time.perf_counter() - begin
        return np.array(logits[:, -1], np.float32), seconds


def greedy(text: Text, prompt: list[list[int]], count: int) -> dict[str, Any]:
    logits, first = text.feed(prompt)
    tokens, steps = [logits.argmax(-1).tolist()], []
    for _ in range(count - 1):
        logits, seconds = text.feed([[token] for token in tokens[-1]])
        tokens.append(logits.argmax(-1).tolist())
        steps.append(seconds)
    return {"first": first, "steps": steps, "tokens": tokens}


def beam_search(text: Text, prompt: list[list[int]], count: int, beams: int) -> dict[str, Any]:
    """The likeliest of `beams` continuations of one prompt; `tokens` are those of all of them, step by step."""
    logits, first = text.feed(prompt * beams)
    scores = np.full(beams, -np.inf)
    scores[0] = 0  # all rows are the same yet
    chosen, parents, tokens, steps = [0] * beams, np.arange(beams), [], []
    for number in range(count):
        if number:
            logits, seconds = text.feed([[token] for token in chosen], parents)
            steps.append(seconds)
        wide = logits.astype(np.float64)
        wide -= wide.max(-1, keepdims=True)
        total = scores[:, None] + wide - np.log(np.exp(wide).sum(-1, keepdims=True))
        best = np.argsort(-total.ravel(), kind="stable")[:beams]
        scores, parents, chosen = total.ravel()[best], best // wide.shape[1], (best % wide.shape[1]).tolist()
        tokens.append(chosen)
    return {"first": first, "steps": steps, "tokens": tokens}


def curve(text: Text, prompt: list[list[int]], sizes: list[int]) -> dict[str, Any]:
    length, steps, tokens, held = 0, [], [], []
    row = prompt[0]
    for size in sizes:
        while length < size - STEPS:
            taken = min(CHUNK, size - STEPS - length)
            logits, _ = text.feed([row[length : length + taken]])
            length += taken
        own = []
        for _ in range(size - length):
            tokens.append(int(logits[0].argmax()))
            logits, seconds = text.feed([[tokens[-1]]])
            own.append(seconds)
        length = size
        steps.append(own[1:])
        held.append(resident())
    return {"first": 0.0, "steps": steps, "tokens": tokens, "held": held}


def resident() -> int:
    """Bytes of physical memory that the process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def main() -> None:
    runtime, path, threads = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    begin = time.perf_counter()
    begun, names = RUNTIMES[runtime](path, int(threads))
    print(json.dumps({"load": time.perf_counter() - begin}), file=answers)
    for line in sys.stdin:
        job = json.loads(line)
        text = Text(begun(), names)
        if "sizes" in job:
            answer = curve(text, job["prompt"], job["sizes"])
        elif "beams" in job:
            answer = beam_search(text, job["prompt"], job["tokens"], job["beams"])
        else:
            answer = greedy(text, job["prompt"], job["tokens"])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps(answer | {"peak": peak}), file=answers)


if __name__ == "__main__":
    main()
