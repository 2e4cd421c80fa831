"""The scopes that exporters write into the names of layers, as the levels of a hierarchy."""

from __future__ import annotations

import re

MAX_DEPTH = 24
"""Levels; what is deeper is put together there."""

MAX_LEVEL = 120
"""Characters of the name of a level."""

_MODULE = "__module."
"""What OpenVINO puts before the path of a torch module."""

_FORBIDDEN = re.compile(r"[;\\\x00-\x1f\x7f]")
"""Of these, viewers take some for separators."""


def scopes(name: str) -> list[str]:
    """The levels above a layer, outermost first.

    >>> scopes("__module.model.layers.3.self_attn/aten::linear/MatMul")
    ['model', 'layers.3', 'self_attn', 'aten::linear']
    >>> scopes("/model/layers.0/attn/MatMul_1")
    ['model', 'layers.0', 'attn']
    >>> scopes("MatMul_1")
    []
    """
    first, *rest = name.split("/")
    levels = [*(_modules(first) if first.startswith(_MODULE) else [first]), *rest][:-1]
    kept = [_FORBIDDEN.sub("_", level)[:MAX_LEVEL] for level in levels if level.strip()]
    return kept[:MAX_DEPTH]


def _modules(path: str) -> list[str]:
    """The attributes of a torch module, numbers together with what they number."""
    levels: list[str] = []
    for part in path.removeprefix(_MODULE).split("."):
        if part.isdecimal() and levels:
            levels[-1] += f".{part}"
        else:
            levels.append(part)
    return levels
