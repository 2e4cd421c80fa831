"""The models that mutants are made of: samples, the broken models of tests/invalid, and every conformance case."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

_TESTS = Path(__file__).parents[1]
MAX_BYTES = 60_000
"""Of a seed: larger models are slow to mutate and hold nothing that smaller ones lack."""


@dataclass(frozen=True)
class Seed:
    """A model as its two files hold it."""

    name: str
    xml: bytes
    weights: bytes


def files() -> list[Seed]:
    """The seeds that lie in the repository."""
    paths = [*_TESTS.parent.glob("samples/*/model.xml"), *_TESTS.glob("invalid/*.xml")]
    return _small([_seed(path.parent.name + "/" + path.stem, path) for path in sorted(paths)])


def conformance() -> list[Seed]:
    """One seed for each conformance case, as OpenVINO serializes it."""
    import openvino as ov
    from conformance.harness import all_cases, model_of

    found = []
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(all_cases()):
            path = Path(folder, f"{number}.xml")
            ov.serialize(model_of(case)[0], path, path.with_suffix(".bin"))
            found.append(_seed(str(case), path))
    return _small(found)


def _seed(name: str, path: Path) -> Seed:
    weights = path.with_suffix(".bin")
    return Seed(name, path.read_bytes(), weights.read_bytes() if weights.exists() else b"")


def _small(seeds: list[Seed]) -> list[Seed]:
    return [seed for seed in seeds if len(seed.xml) <= MAX_BYTES]
