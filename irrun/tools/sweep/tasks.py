"""What there is to do: models times inputs times devices, each task keyed by the content of all that it depends on."""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from irrun.diagnostics import LONGEST_NAME, clipped
from irrun.engines.placement import processors
from irrun.files import is_there, open_regular
from irrun.records import dataclass
from irrun.tools.sweep.rows import SCHEMA, Place

DO = ("validate", "inspect", "execute", "compare")
"""What may be done with a model."""

RUNNING = ("execute", "compare")
"""Of these what takes inputs."""

PACKAGES = ("irrun", "numpy", "scipy", "ml_dtypes", "llvmlite", "onednn-cpu-gomp")
"""Whose versions are part of every key, where they are installed."""

RANDOM = "random "
"""What stands before the seed of inputs that are made up."""

_OF_DEVICES = {"ov:": ("openvino",), ".onnx": ("onnx", "onnxruntime")}
"""The packages of other sides, by how their text begins or ends."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How all tasks of a sweep are done.

    A task may take `timeout` seconds. `threads` compute in each worker; None is 1. `ops` are files with custom ops,
    `tolerances` the texts of `--tol`, `config` the properties of devices.
    """

    timeout: float = 600.0
    threads: int | None = None
    engine: str = "auto"
    precision: str | None = None
    max_memory: int | None = None
    tolerances: tuple[str, ...] = ()
    config: tuple[tuple[str, str], ...] = ()
    outputs_only: bool = False
    ops: tuple[str, ...] = ()

    def of(self, do: str) -> Mapping[str, object]:
        """Those that a result of this depends on."""
        chosen = {
            "execute": ("engine", "precision", "max_memory"),
            "compare": ("tolerances", "config", "outputs_only", "max_memory"),
        }
        given = asdict(self)
        return {name: given[name] for name in chosen.get(do, ())}


@dataclass(frozen=True, slots=True)
class Content:
    """A model by its files: `bytes` of the .xml and of the .bin (-1 where there is none), and the `hash` of both."""

    path: str
    bytes: tuple[int, int]
    hash: str


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to do with a model, on one set of inputs: a path, `random SEED`, or none. The same `key` is the same
    result, under whatever names; `versions` are part of it."""

    do: str
    model: Content
    inputs: str
    device: str
    key: str
    versions: Mapping[str, str]

    @property
    def place(self) -> Place:
        return self.do, self.model.path, self.inputs, self.device


@dataclass(frozen=True, slots=True)
class Plan:
    """The tasks of a sweep, in the order of the models."""

    tasks: tuple[Task, ...]
    settings: Settings


def plan(
    models: Sequence[Path],
    do: Iterable[str],
    inputs: Sequence[str] = (),
    seeds: Sequence[int] = (),
    devices: Sequence[str] = (),
    settings: Settings | None = None,
) -> Plan:
    """All tasks. `inputs` are patterns of files, `devices` other sides; `{folder}` and `{name}` in them stand for the
    folder of a model and its name without `.xml`. A model for which such a pattern has no file is run on the other
    inputs, or on none.

    Raises FileNotFoundError where nothing matches a pattern, ValueError for what cannot be done, OSError where a file
    cannot be read.
    """
    settings = settings or Settings()
    wanted = tuple(dict.fromkeys(do))
    unknown = [name for name in wanted if name not in DO]
    if unknown or not wanted:
        raise ValueError(f"`{clipped(', '.join(unknown), LONGEST_NAME)}` is nothing to do; there are {', '.join(DO)}")
    if "compare" in wanted and not devices:
        raise ValueError("compare needs another side, such as ov:CPU")
    running = any(name in RUNNING for name in wanted)
    made_up = [f"{RANDOM}{seed}" for seed in seeds]
    files = _matching(inputs if running else (), models)
    expanded = {model: [*files[model], *made_up] for model in models}
    sides = {model: [_filled(device, model) for device in devices] for model in models}
    hashes = _hashes(models, expanded, sides, settings)
    versions = {side: versions_of(side) for side in {"", *(side for listed in sides.values() for side in listed)}}
    tasks = []
    for model in models:
        content = Content(str(model), _sizes(model), hashes[str(model)])
        for name in wanted:
            targets = {"execute": [settings.engine], "compare": sides[model]}.get(name, [""])
            for device in targets:
                installed = versions[device if name == "compare" else ""]
                for given in (expanded[model] or [""]) if name in RUNNING else [""]:
                    parts = {
                        "schema": SCHEMA,
                        "do": name,
                        "model": content.hash,
                        "inputs": hashes.get(given, given),
                        "device": hashes.get(device, device),
                        "options": settings.of(name),
                        "ops": [hashes[path] for path in settings.ops],
                        "versions": installed,
                    }
                    tasks.append(Task(name, content, given, device, _key(parts), installed))
    return Plan(tuple(tasks), settings)


def versions_of(side: str = "") -> dict[str, str]:
    """The versions of what computes, here: irrun, and another side."""
    names = list(PACKAGES)
    for sign, packages in _OF_DEVICES.items():
        if side.startswith(sign) or side.lower().endswith(sign):
            names += packages
    found = {name: version_of(name) for name in names}
    return {name: number for name, number in found.items() if number is not None}


@cache
def version_of(package: str) -> str | None:
    """Of what is installed here; None where it is not."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def is_file(inputs: str) -> bool:
    """Whether the inputs of a task are a file, and neither made up nor none."""
    return bool(inputs) and not inputs.startswith(RANDOM)


def _key(parts: Mapping[str, object]) -> str:
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def _filled(pattern: str, model: Path, escape: Callable[[str], str] = str) -> str:
    parts = {"{folder}": str(model.parent), "{name}": model.stem}
    return re.sub(r"\{folder\}|\{name\}", lambda found: escape(parts[found[0]]), pattern)


def _matching(patterns: Sequence[str], models: Sequence[Path]) -> dict[Path, list[str]]:
    """The files of inputs for each model. Raises FileNotFoundError where a pattern has none for any model."""
    known: dict[str, list[str]] = {}  # a pattern without `{folder}` is the same for all models
    found = {}
    for model in models:
        names: dict[str, None] = {}
        for pattern in patterns:
            plain = _filled(pattern, model)
            if plain not in known:
                known[plain] = [plain] if is_there(plain) else _globbed(_filled(pattern, model, glob.escape))
            names |= dict.fromkeys(known[plain])
        found[model] = list(names)
    for pattern in patterns:
        filled = [_filled(pattern, model) for model in models]
        if filled and not any(known[name] for name in filled):
            raise FileNotFoundError(f"no file of inputs matches {filled[0]}")
    return found


def _globbed(pattern: str) -> list[str]:
    return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207, Path.glob takes no absolute patterns


def _sizes(model: Path) -> tuple[int, int]:
    sizes = [path.stat().st_size if path.exists() else -1 for path in (model, model.with_suffix(".bin"))]
    return sizes[0], sizes[1]


def _hashes(
    models: Sequence[Path],
    inputs: Mapping[Path, Sequence[str]],
    sides: Mapping[Path, Sequence[str]],
    settings: Settings,
) -> dict[str, str]:
    """Of the content of all files, each read once, by their paths."""
    wanted: dict[str, tuple[Path, ...]] = {str(model): (model, model.with_suffix(".bin")) for model in models}
    for name in {name for names in (*inputs.values(), *sides.values()) for name in names}:
        path = Path(name)
        if not is_there(path):
            continue
        if path.is_dir():
            wanted[name] = tuple(sorted(inner for inner in path.rglob("*") if inner.is_file()))
        elif path.is_file():
            beside = (path.with_suffix(".bin"),) if path.suffix.lower() == ".xml" else ()
            wanted[name] = (path, *beside)
    wanted |= {name: (Path(name),) for name in settings.ops}
    with ThreadPoolExecutor(processors()) as pool:
        return dict(zip(wanted, pool.map(_hash, wanted.values()), strict=True))


def _hash(paths: Sequence[Path]) -> str:
    """Of the content of files; what cannot be read differs from whatever can, and the task says so."""
    return " ".join(map(_digest, paths))


def _digest(path: Path) -> str:
    try:
        digest = sha256()  # which processors have instructions for
        with open_regular(path) as stream:
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
        return digest.hexdigest()
    except FileNotFoundError:
        return "missing"
    except OSError:
        return "unreadable"
