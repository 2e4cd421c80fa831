"""An attachment for Netron: a file that is dropped onto a model there, and shows beside each layer what irrun knows.

Netron finds a node by the first line of its name alone, and a tensor by the ids of its layer and port, in whatever
graph they are. Where several share these, what is said of each has its path behind it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from irrun.diagnostics import Diagnostic, clipped
from irrun.files import atomic_write
from irrun.ir.graph import Layer
from irrun.tools.viewers.facts import LONGEST, Facts, Number, Viewed, error, milliseconds

SIGNATURE = "netron:attachment"

Entry = tuple[str, str, Number]
"""The kind of list, the name and the value."""


def attachment(viewed: Viewed) -> dict[str, Any]:
    """The attachment as JSON has it."""
    written = _Attachment()
    top = _first_line(viewed.model.name)
    for name, value in viewed.summary.items():
        written.add("metrics", "model", top, name, value)
    for name, text in _diagnostics(viewed.loose):
        written.add("metadata", "model", top, name, text)
    nodes = Counter(_first_line(facts.layer.name) for facts in viewed.layers)
    tensors = Counter(target for facts in viewed.layers for target in _tensors(facts.layer))
    for facts in viewed.layers:
        target = _first_line(facts.layer.name)
        for list, name, value in _of_node(viewed, facts):
            if target:
                written.add(list, "node", target, _qualified(name, facts, nodes[target]), value)
        if not target:  # nobody finds a node without a name
            for name, text in _diagnostics(facts.diagnostics):
                written.add("metadata", "model", top, f"{name} of {facts.path}", text)
        if facts.layer.graph is not viewed.model.graph:  # ids of bodies begin anew
            continue
        for target, type in zip(_tensors(facts.layer), facts.tensors, strict=True):
            written.add("metadata", "value", target, _qualified("inferred", facts, tensors[target]), type)
    return {"signature": SIGNATURE, "metadata": written.metadata, "metrics": written.metrics}


def write_attachment(viewed: Viewed, path: Path) -> None:
    """Write the attachment, whole or not at all; Netron wants a name that ends in .json. Raises OSError."""
    atomic_write(path, json.dumps(attachment(viewed), allow_nan=False).encode())


class _Attachment:
    def __init__(self) -> None:
        self.metadata: list[dict[str, Any]] = []
        self.metrics: list[dict[str, Any]] = []

    def add(self, list: str, kind: str, target: str, name: str, value: Number) -> None:
        text = clipped(value, LONGEST) if isinstance(value, str) else value
        entry = {"kind": kind, "target": target, "name": clipped(name, LONGEST), "value": text}
        (self.metadata if list == "metadata" else self.metrics).append(entry)


def _of_node(viewed: Viewed, facts: Facts) -> Iterator[Entry]:
    for port, type in enumerate(facts.tensors):
        yield "metadata", "inferred output" if len(facts.tensors) == 1 else f"inferred output {port}", type
    if facts.cost.line:
        yield "metadata", "line", facts.cost.line
    for name, text in _diagnostics(facts.diagnostics):
        yield "metadata", name, text
    if facts.time is not None:
        yield "metadata", "computed by", facts.time[1]
    if facts.together is not None:
        yield "metadata", "computed with", facts.together.name
    for name, size in (("MACs", facts.cost.macs), ("bytes", facts.cost.bytes)):
        number = viewed.size(size)
        if number is not None and number != 0:
            yield "metrics", name, number
    if facts.time is not None:
        yield "metrics", "time, ms", milliseconds(facts.time[0])
    for name, measured in (("own error", facts.own), ("accumulated error", facts.accumulated)):
        if measured is not None:
            yield "metrics", name, error(measured)


def _diagnostics(diagnostics: Iterable[Diagnostic]) -> Iterator[tuple[str, str]]:
    """By code; Netron keeps one entry of each name."""
    counts: Counter[str] = Counter()
    for found in diagnostics:
        counts[found.code] += 1
        number = f" ({counts[found.code]})" if counts[found.code] > 1 else ""
        yield f"{found.code}{number}", f"{found.message}{f'; help: {found.help}' if found.help else ''}"


def _tensors(layer: Layer) -> list[str]:
    """The outputs of a layer as Netron calls them."""
    return [f"{layer.id}:{value.port.id}" for value in layer.outputs]


def _qualified(name: str, facts: Facts, sharing: int) -> str:
    return f"{name} of {facts.path}" if sharing > 1 else name


def _first_line(name: str) -> str:
    return name.split("\n", 1)[0]
