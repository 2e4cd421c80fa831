"""Makes the benchmark set: models of all kinds that people have, with seeded random weights; nothing is downloaded.

    python tests/exports/kinds.py FOLDER [NAME...]

writes FOLDER/NAME/model.xml, model.bin and inputs.npz, whose arrays are keyed by the tensor names of the inputs, for
the named kinds or for all; and others/0.npz, others/1.npz, ... with inputs of other shapes where a kind takes them.
What cannot be made is named with its reason. `tests/bench/run.py --models FOLDER` measures them.

It needs what export.py needs, and torchvision.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import openvino as ov
import torch
from export import SEED
from kinds_parts import Kind

MODULES = ("kinds_vision", "kinds_detection", "kinds_sequences", "kinds_tables")


def kinds() -> dict[str, Kind]:
    """All of them by name."""
    return {name: kind for module in MODULES for name, kind in importlib.import_module(module).KINDS.items()}


def write(kind: Kind, folder: Path) -> None:
    """Make a model and its inputs, and write them."""
    torch.manual_seed(SEED)
    made = kind(np.random.default_rng(SEED))
    (folder / "others").mkdir(parents=True, exist_ok=True)
    ov.save_model(made.model, folder / "model.xml", compress_to_fp16=made.compress)
    np.savez(folder / "inputs.npz", **made.inputs)
    for number, inputs in enumerate(made.others):
        np.savez(folder / "others" / f"{number}.npz", **inputs)


def main(known: Mapping[str, Kind], description: str) -> int:
    """What the command line asks for is made, of these; the exit status."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(known):
        parser.error(f"no such kind: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    failed = False
    for name in arguments.names or known:
        try:
            write(known[name], arguments.folder / name)
            print(name, flush=True)
        except Exception as error:
            failed = True
            print(f"{name}: not made: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(kinds(), "Make the benchmark set."))
