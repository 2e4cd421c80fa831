"""The page: data, scripts and styles in one HTML file that may load nothing, and the same as tables without scripts.

Its Content-Security-Policy allows what is in the file by hashes, and a worker made of it; everything else is refused.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

SCRIPTS = (
    *("vendor/uplot.min.js", "elements.js", "numbers.js", "model.js", "tabs.js", "selection.js", "table.js"),
    *(
        "colours.js",
        "layouts.js",
        "scene.js",
        "view.js",
        "drawing.js",
        "graph.js",
        "details.js",
        "search.js",
        "plots.js",
    ),
    *("summary.js", "diagnostics.js", "layers.js", "timeline.js", "profile.js", "comparison.js", "weights.js"),
    *("memory.js", "difference.js", "main.js"),
)
"""The scripts of the page, in the order in which they need each other."""

WORKER = ("vendor/dagre.min.js", "layout.js")
"""Those of the worker, which the page hands over as one text."""

STYLES = ("vendor/uplot.min.css", "style.css", "print.css")

MAX_ROWS = 2000
"""Layers that are in the tables for those without scripts, and diagnostics."""

POLICY = {
    "default-src": "'none'",
    "worker-src": "blob:",
    "base-uri": "'none'",
    "form-action": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "irrun",
}
"""What holds besides scripts and styles: nothing is loaded, sent, or made markup of."""


def rendered(data: Mapping[str, Any]) -> bytes:
    """The page for what `irrun.tools.report.collection.collected` gives."""
    scripts = [_text(name) for name in SCRIPTS]
    styles = [_text(name) for name in STYLES]
    policy = POLICY | {"script-src": _hashes(scripts), "style-src": _hashes(styles)}
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    text = environment.from_string(_text("page.html")).render(
        data=data,
        rows=_rows(data),
        rows_most=MAX_ROWS,
        policy="; ".join(f"{name} {value}" for name, value in policy.items()),
        styles=[Markup(style) for style in styles],
        scripts=[Markup(script) for script in scripts],
        worker=_packed("\n".join(_text(name) for name in WORKER).encode()),
        packed=_packed(json.dumps(data, separators=(",", ":"), allow_nan=False).encode()),
    )
    return text.encode("utf-8", "backslashreplace")


def _text(name: str) -> str:
    path = files("irrun.tools.report").joinpath("page")
    for part in name.split("/"):
        path = path.joinpath(part)
    return path.read_text(encoding="utf-8")


def _hashes(texts: list[str]) -> str:
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests)


def _packed(content: bytes) -> str:
    """Compressed, the same for the same content, in letters that mean nothing to HTML."""
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()


def _rows(data: Mapping[str, Any]) -> list[tuple[object, ...]]:
    """The first layers as a table has them: those that are computed, then constants if there is room."""
    layers = data["layers"]
    numbers = sorted(range(len(layers["name"])), key=lambda number: (layers["quiet"][number], number))[:MAX_ROWS]
    return [
        (
            layers["id"][number],
            layers["name"][number],
            layers["op"][number] or layers["type"][number],
            layers["line"][number],
            ", ".join(output[0] for output in layers["outputs"][number][:4]),
            layers["texts"].get(str(number), {}).get("macs", layers["macs"][number]),
        )
        for number in sorted(numbers)
    ]
