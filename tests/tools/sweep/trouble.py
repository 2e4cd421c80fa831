"""A model that does as its input says: it computes, waits, crashes, hangs or asks for more memory than there is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from ir_builder import Model

FINE, SEGFAULT, HANG, MEMORY, WAIT = range(5)

OPS = """\
import os, signal, time
from irrun.spec import Input, Output, op

@op("Trouble-1", inputs=[Input("x", "f32", "[...]")], outputs=[Output("y", "f32", "[...]")], opsets=frozenset(),
    extension_versions=("extension",), pure=False)
def trouble(x):
    '''Do as the first element says.'''
    what = int(x.flat[0])
    if what == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == 2:
        time.sleep(600)
    if what == 3:
        raise MemoryError("4 TiB")
    if what == 4:
        time.sleep(0.25)
    return x.copy()

@trouble.shapes
def _(node):
    return [node.inputs["x"]]
"""


def ops(folder: Path) -> Path:
    path = folder / "trouble.py"
    path.write_text(OPS)
    return path


def trouble(folder: Path, *what: int, name: str = "model") -> Path:
    """The model, with `inputs0.npz`, `inputs1.npz`, ... beside it, each with what it shall do."""
    folder.mkdir(parents=True, exist_ok=True)
    model = Model()
    (y,) = model.layer("Trouble", [model.parameter("x", "f32", (2,))], [("f32", (2,))], version="extension", name=name)
    model.result(y)
    path = model.save(folder)
    for number, kind in enumerate(what):
        np.savez(folder / f"inputs{number}.npz", x=np.float32([kind, number]))
    return path


def twice(folder: Path, factor: float) -> Path:
    """A model that multiplies, with two files of inputs."""
    folder.mkdir(parents=True, exist_ok=True)
    model = Model()
    weights = model.constant(np.float32([factor]))
    (y,) = model.layer("Multiply", [model.parameter("x", "f32", (3,)), weights], [("f32", (3,))])
    model.result(y)
    for number in range(2):
        np.savez(folder / f"inputs{number}.npz", x=np.float32([number, 1, 2]))
    return model.save(folder)
