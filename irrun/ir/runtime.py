"""The runtime info of layers and ports, as far as OpenVINO refuses a file for it; what it means is elsewhere."""

from __future__ import annotations

import re

from irrun.ir.findings import Findings
from irrun.ir.graph import Layer
from irrun.ir.xml import Element

_LISTED = r"\[\s*(?:[\w?]+|\.\.\.)(?:\s*,\s*(?:[\w?]+|\.\.\.))*\s*\]|\[\s*\]"
_LETTERS = r"[A-Za-z?]*(?:\.\.\.)?[A-Za-z?]*|\*\*SCALAR\*\*"
_SHOWN = 40


def check_info(info: Element, layer: Layer, findings: Findings, port: Element | None = None) -> None:
    """Report an attribute that is there twice, and a layout that is none or has another rank than its `port`."""
    if findings.version < 11:  # where nobody reads it
        return
    seen: set[tuple[str | None, str | None]] = set()
    for mark in info.children:
        given = mark.attributes
        key = given.get("name"), given.get("version")
        if mark.tag != "attribute":
            continue
        if key in seen:
            message = f"the <rt_info> has a second attribute `{key[0]}`"
            findings.add("E222", message, mark, layer=layer, help="delete one of them; OpenVINO refuses the file")
        seen.add(key)
        if key[0] == "layout" and "layout" in given:
            _check_layout(mark, given["layout"].strip(), layer, findings, port)


def _check_layout(mark: Element, text: str, layer: Layer, findings: Findings, port: Element | None) -> None:
    help = "write it as `[N,C,H,W]`, with `?` for an axis without a name and `...` for any number of them"
    if not re.fullmatch(_LISTED, text, re.ASCII) and not re.fullmatch(_LETTERS, text, re.ASCII):
        findings.add("E222", f"`{text[:_SHOWN]}` is not a layout", mark, "layout", layer=layer, help=help)
    elif port is not None and port.dims and layer.type in ("Parameter", "Result") and "..." not in text:
        inner = text.strip("[] ")
        rank = 0 if not inner or "SCALAR" in inner else inner.count(",") + 1 if text.startswith("[") else len(inner)
        if rank != len(port.dims):
            message = f"the layout `{text[:_SHOWN]}` has {rank} axes, but the port {len(port.dims)} dimensions"
            findings.add(
                "E222", message, mark, "layout", layer=layer, help="name each of its axes, or delete the layout"
            )
