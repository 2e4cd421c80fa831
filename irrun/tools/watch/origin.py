"""Origin: what a dump is made of, so that two of them can be told to be of the same model and inputs."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from irrun.diagnostics import InputError
from irrun.files import open_regular
from irrun.ir.graph import Model
from irrun.run.executor import GraphExecutor
from irrun.spec.dtypes import element_type
from irrun.spec.op import Array

_CHUNK = 1 << 20


def described(executor: GraphExecutor, inputs: Mapping[str, Array], values: bool) -> dict[str, Any]:
    """The model and its inputs, each with the SHA-256 of its bytes, and what computes. Raises InputError."""
    model = executor.model
    return {
        "model": {"path": str(model.path), **_sums(model)},
        "inputs": {name: _array(array) for name, array in inputs.items()},
        "engine": executor.engines,
        "record": "values" if values else "stats",
        "versions": {"irrun": version("irrun"), "numpy": np.__version__, "python": platform.python_version()},
    }


def _sums(model: Model) -> dict[str, str | None]:
    weights = model.weights.path if model.weights.content is None else model.weights.content
    return {"structure": structure(model), "weights": _sum(weights)}


def structure(model: Model) -> str | None:
    """The SHA-256 of the .xml of a model; None where there is no file. Raises InputError."""
    return _sum(model.path if model.content is None else model.content)


def _sum(source: Any) -> str | None:
    """Of a file, or of bytes; None where there is none."""
    if not isinstance(source, str | Path):
        return None if source is None else sha256(source).hexdigest()
    digest = sha256()
    try:
        with open_regular(Path(source)) as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error.strerror or error}") from None
    return digest.hexdigest()


def _array(array: Array) -> dict[str, Any]:
    type = element_type(array.dtype)
    data = "\0".join(array.ravel().tolist()).encode() if type == "string" else np.ascontiguousarray(array).tobytes()
    return {"type": type, "shape": list(array.shape), "sha256": sha256(data).hexdigest()}
