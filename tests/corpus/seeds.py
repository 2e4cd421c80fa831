"""Valid models to break: one for each op version that the conformance suite has, and the samples."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import openvino as ov
from conformance.harness import Case, all_cases, model_of

from corpus.document import Document

SAMPLES = Path(__file__).parents[2] / "samples"


@cache
def _models() -> dict[str, Document]:
    found: dict[str, Document] = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in all_cases():
            if case.op not in found and not (case.dynamic or case.later or case.deviates):
                found[case.op] = _load(case, Path(folder))
    return found


def saved(model: ov.Model, folder: Path) -> Path:
    path = folder / "model.xml"
    ov.serialize(model, path, path.with_suffix(".bin"))
    return path


def _load(case: Case, folder: Path) -> Document:
    model, _ = model_of(case)
    document = Document.load(saved(model, folder), case.op)
    kind = case.op.rpartition("-")[0]
    spelling = {"Constant": "Const", "And": "LogicalAnd"}.get(kind, kind)
    types = [layer.get("type", "") for layer in document.layers]
    document.op = next((type for type in types if type.lower() == spelling.lower()), "")
    # names that do not depend on how many nodes OpenVINO made before
    for layer in document.root.iter("layer"):
        layer.set("name", f"{layer.get('type', '').lower()}_{layer.get('id')}")
        layer.attrib.pop("output_names", None)
    for port in document.root.iter("port"):
        port.attrib.pop("names", None)
    assert document.op or case.op == "Constant-1", case.op
    return document


def seed(name: str) -> Document:
    """A fresh model by the name of an op version, or of a sample."""
    if "-" in name and name in _models():
        return _models()[name].clone()
    return _sample(name).clone()


@cache
def _sample(name: str) -> Document:
    return Document.load(SAMPLES / name / "model.xml", name)


def ops() -> list[str]:
    """The op versions that there is a model of."""
    return sorted(name for name, document in _models().items() if document.op)


def samples() -> list[str]:
    return sorted(path.parent.name for path in SAMPLES.glob("*/model.xml"))


def spread(count: int, offset: int = 0) -> Iterator[Document]:
    """`count` models of one op each, evenly over the alphabet."""
    names = [name for name in ops() if len(seed(name).layers) >= 3]
    for number in range(count):
        yield seed(names[(offset + number * len(names) // count) % len(names)])
