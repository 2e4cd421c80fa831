"""What differs between two models, by layers of the first one."""

from __future__ import annotations

import json
from typing import Any

from irrun.diagnostics import LayerName
from irrun.tools.diff import Difference
from irrun.tools.diff.edits import SILENT, Edit
from irrun.tools.diff.repeats import grouped
from irrun.tools.report import texts
from irrun.tools.report.finding import Finder

MAX_GROUPS = 500
"""Groups of edits that say the same; models that have nothing in common differ in thousands of ways."""

MAX_PLACES = 200
"""Places that are listed of one group."""


def differences(difference: Difference, finder: Finder) -> dict[str, Any]:
    """Edits that say the same together, with the layers before and after of each place."""
    groups = grouped(difference.edits)
    divergence = difference.divergence
    return {
        "models": [texts.name(str(path)) for path in difference.paths],
        "equal": difference.equal,
        "layers": list(difference.layers),
        "matched": difference.matched,
        "followed": difference.followed,
        "left_out": max(0, len(groups) - MAX_GROUPS),
        "divergence": None if divergence is None else texts.value(str(divergence)),
        "groups": [
            {
                "kind": group.kind,
                "silent": group.kind in SILENT,
                "message": texts.value(group.message),
                "count": len(group.edits),
                "places": [_place(edit, finder) for edit in group.edits[:MAX_PLACES]],
            }
            for group in groups[:MAX_GROUPS]
        ],
    }


def _place(edit: Edit, finder: Finder) -> dict[str, Any]:
    return {
        "before": [[finder.within(edit.path, layer), *_named(layer)] for layer in edit.before],
        "after": [_named(layer) for layer in edit.after],
        "inside": texts.name("/".join(edit.path)),
        "place": texts.value(edit.place),
        "role": edit.role,
        "details": {key: texts.value(json.dumps(value, default=str)) for key, value in edit.details.items()},
    }


def _named(layer: LayerName) -> list[str]:
    return [texts.name(layer.name), texts.name(layer.type)]
