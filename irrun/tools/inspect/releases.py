"""Which release of OpenVINO is the oldest that reads a model, and which layers ask for it.

What each release from 2023.0 on reads is measured: `releases.json` is written by tests/exports/releases.py, which asks
the releases themselves. For older ones it is said by operation sets alone, and called not measured. That a model is
read does not say that its results are right.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from irrun.diagnostics import Diagnostic
from irrun.ir.graph import Layer
from irrun.records import dataclass
from irrun.spec.registry import opset_number
from irrun.tools.inspect.contents import Contents

Release = tuple[int, int, int]

_OPSETS: Mapping[int, Release] = {
    1: (2020, 1, 0),
    2: (2020, 2, 0),
    3: (2020, 4, 0),
    4: (2021, 1, 0),
    5: (2021, 2, 0),
    6: (2021, 3, 0),
    7: (2021, 4, 0),
    8: (2022, 1, 0),
    9: (2022, 2, 0),
    10: (2022, 3, 0),
}
"""The releases with which operation sets came that were there before the first one measured."""

LATER: Release = (9999, 0, 0)
"""In place of the release of an op that the specification has, but no release that was measured."""

_FORMATS: Mapping[int, Release] = {10: (2020, 1, 0), 11: (2022, 1, 0)}
"""The releases with which versions of the format came."""


@dataclass(frozen=True, slots=True)
class Demand:
    """`what` of a layer asks for a `release`, such as "2024.5"."""

    release: str
    id: int
    path: str
    what: str
    line: int | None


@dataclass(frozen=True, slots=True)
class Releases:
    """The `oldest` release that reads a model, "later" where none does yet, and the layers that `force` it.

    `measured` is False where only operation sets say so. `counts` are the layers that ask for each release, the newest
    first; `foreign` those of no op of OpenVINO, which no release reads without an extension.
    """

    oldest: str
    measured: bool
    force: tuple[Demand, ...]
    counts: Mapping[str, int]
    foreign: tuple[str, ...]


def releases(contents: Contents) -> Releases:
    demands = list(_demands(contents))
    least = _FORMATS.get(contents.model.version, (2020, 1, 0))
    newest = max((release for release, *_ in demands), default=least)
    oldest = max(newest, least)
    paths = contents.paths
    forcing = [(layer, what) for release, layer, what in demands if release == oldest]
    return Releases(
        release_text(oldest),
        oldest >= _table().first,
        tuple(Demand(release_text(oldest), layer.id, paths[layer], what, layer.span.line) for layer, what in forcing),
        {release_text(r): n for r, n in sorted(Counter(r for r, *_ in demands).items(), reverse=True)},
        tuple(paths[layer] for layer in _foreign(contents)),
    )


def unreadable(contents: Contents, target: Release) -> Iterator[Diagnostic]:
    """A diagnostic for each layer that the release `target` cannot read, and for the format."""
    model = contents.model
    name = release_text(target)
    if _FORMATS.get(model.version, target) > target:
        first = release_text(_FORMATS[model.version])
        message = f"OpenVINO {name} does not read version {model.version} of the format"
        yield Diagnostic("T101", message, model.graph.element.span, help=f"{first} is the first that does")
    for release, layer, what in _demands(contents):
        if release > target:
            message = f"OpenVINO {name} does not read {what}"
            measured = "" if release >= _table().first else ", by its operation sets; not measured"
            known = f"{release_text(release)} is the first release that does{measured}"
            help = f"no release up to {measured_releases()[1]} does" if release == LATER else known
            yield Diagnostic("T101", message, layer.span, layer.label, help)


def asked_of(contents: Contents) -> dict[Layer, tuple[Release, str]]:
    """The oldest release that reads each layer, and what of the layer asks for it."""
    return {layer: (release, what) for release, layer, what in _demands(contents)}


def parse_release(text: str) -> Release:
    """A release such as "2024.2" or "2025.4.1". Raises ValueError for anything else, and for none that ever was."""
    if text == release_text(LATER):
        return LATER
    found = re.fullmatch(r"(20\d\d)\.(\d)(?:\.(\d))?", text.strip(), re.ASCII)
    if found is None or int(found[1]) < 2020:
        raise ValueError(f"`{text}` is no release of OpenVINO, such as 2024.2 or 2025.4.1, from 2020.1 on")
    return int(found[1]), int(found[2]), int(found[3] or 0)


def release_text(release: Release) -> str:
    if release == LATER:
        return "later"
    year, number, patch = release
    return f"{year}.{number}.{patch}" if patch else f"{year}.{number}"


@dataclass(frozen=True, slots=True)
class _Table:
    """What `releases.json` holds: first releases by the version of an op (LATER for those that none has), by operation
    set, by element type.

    `apart` are those of an op in an operation set where that is not the later of the two, and of an op with so many
    inputs or such an attribute; `formed` are the ops that have one of the latter. `first` and `last` are the oldest and
    the newest release that were asked.
    """

    first: Release
    last: Release
    ops: Mapping[str, Release]
    opsets: Mapping[str, Release]
    types: Mapping[str, Release]
    apart: Mapping[str, Release]
    formed: frozenset[str]


@cache
def _table() -> _Table:
    held: Any = json.loads((files("irrun.tools.inspect") / "releases.json").read_text(encoding="utf-8"))

    def of(kind: str) -> dict[str, Release]:
        return {name: parse_release(text) for name, text in held[kind].items()}

    first, *_, last = map(parse_release, held["releases"])
    apart = of("apart")
    formed = frozenset(form.partition(" ")[0] for form in apart if " of opset" not in form)
    ops = of("ops") | dict.fromkeys(held["later"], LATER)
    return _Table(first, last, ops, of("opsets"), of("types"), apart, formed)


def measured_releases() -> tuple[str, str]:
    """The oldest and the newest release that were asked."""
    return release_text(_table().first), release_text(_table().last)


def _demands(contents: Contents) -> Iterator[tuple[Release, Layer, str]]:
    """What each layer asks for, and what of it does."""
    table = _table()
    for layer in contents.paths:
        node = contents.node(layer)
        known = None if node is None else table.ops.get(node.op.name)
        if node is None or known is None:
            continue
        name = node.op.name
        found = [(table.opsets.get(layer.version, known), f"{layer.type} of {layer.version}")]
        if known >= found[0][0]:
            found[0] = known, f"{name} of {layer.version}"
        exception = table.apart.get(f"{name} of {layer.version}")
        if exception is not None:
            found[0] = exception, f"{name} of {layer.version}"
        if name in table.formed:
            connected = sum(value is not None for value in layer.inputs)
            forms = [
                f"{name} of {connected} inputs",
                *(f"{name} with {k}={node.attrs.get(k)}" for k in layer.attributes),
            ]
            found += [(table.apart[form], form) for form in forms if form in table.apart]
        types = {tensor.type for tensor in node.outputs} | {port.precision for port in layer.input_ports}
        found += [
            (table.types[type], f"the element type {type}")
            for type in sorted(filter(None, types))
            if type in table.types
        ]
        release, what = max(found, key=lambda pair: pair[0])
        if release == table.first:
            release, what = _OPSETS.get(opset_number(layer.version) or 0, release), f"{name} of {layer.version}"
        yield release, layer, what


def _foreign(contents: Contents) -> list[Layer]:
    """Layers whose op is none of OpenVINO's; what could not be inferred for another reason is not among them."""
    table = _table()
    found = []
    for layer in contents.paths:
        node = contents.node(layer)
        if (node is None and opset_number(layer.version) is None) or (
            node is not None and node.op.name not in table.ops
        ):
            found.append(layer)
    return found
