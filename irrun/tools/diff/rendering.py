"""Differences as text for people, and as JSON for programs."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from irrun.check.render.text import one_line
from irrun.diagnostics import LONGEST_NAME, LayerName, clipped
from irrun.tools.diff.edits import SILENT, Difference, Edit
from irrun.tools.diff.repeats import Group, by_role, grouped, ranges

_PLACES = 3
"""Places that are listed of edits that say the same."""

MAX_ITEMS = 200
"""Items of a text: models that have nothing in common differ in thousands of ways."""

_WIDTH = 10
"""Columns of the kind of an edit."""


def text(difference: Difference) -> str:
    """A paragraph of what differs, an item for each edit, or for many that say the same."""
    return "\n".join(_lines(difference))


def _lines(difference: Difference) -> Iterator[str]:
    before, after = difference.paths
    yield one_line(f"{before} -> {after}")
    old, new = difference.layers
    counts = Counter(edit.kind for edit in difference.edits)
    yield f"{_plural(old, 'layer')} -> {new:,}, {difference.matched:,} in both"
    if counts:
        told = [f"{count:,} {kind}" for kind, count in counts.items()]
        yield f"{', '.join(told)}{_followed(difference)}"
    if difference.equal:
        yield "the same model" + (", but for names inside it" if difference.edits else "")
    groups = grouped(difference.edits)
    for group in groups[:MAX_ITEMS]:
        yield ""
        yield from _item(group, difference.ids)
    if len(groups) > MAX_ITEMS:
        yield ""
        yield f"and {_plural(len(groups) - MAX_ITEMS, 'item')} more; --format json has all of them"
    if difference.divergence is not None:
        yield ""
        yield one_line(f"on the same inputs: {difference.divergence}")


def _followed(difference: Difference) -> str:
    count = difference.followed
    if not count:
        return ""
    return f"; types or shapes of {_plural(count, 'tensor')} follow from that"


def _plural(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _item(group: Group, ids: bool) -> Iterator[str]:
    edits = group.edits
    times = f"x {len(edits):,}" if len(edits) > 1 else ""
    head = " ".join(part for part in (times, group.message) if part)
    if group.kind in SILENT:
        head = _plural(len(edits), "tensor" if group.kind == "names" else "layer")
    yield _one_line(f"{group.kind:<{_WIDTH}} {head}")
    figures = _figures([edit.details for edit in edits])
    if figures:
        yield f"{'':<{_WIDTH}} {figures}"
    for line in filter(None, _where(edits, ids, group.kind)):
        yield _one_line(f"{'':<{_WIDTH}} {line}")


def _figures(details: list[Mapping[str, Any]]) -> str:
    """How much the values of constants differ, all of them together."""
    known = [each for each in details if "max_delta" in each]
    if not known:
        return ""
    elements = sum(each["elements"] for each in known)
    differing = sum(each["differing"] for each in known)
    worst = max(known, key=lambda each: each["max_delta"])
    old, new = worst["old_value"], worst["new_value"]
    rounded = all(each["rounded"] for each in known)
    counts = f"{differing:,} of {_plural(elements, 'value')} {'are rounded' if rounded else 'differ'}"
    if isinstance(old, str):
        return f"{counts}, such as {old!r} -> {new!r}"
    mean = sum(each["mean_delta"] * each["elements"] for each in known) / max(elements, 1)
    others = sum(bool(each.get("uncomputed")) for each in details)
    rest = f"; {others:,} more would take too long to compute" if others else ""
    return (
        f"{counts}, by {worst['max_delta']:.3g} at most ({_number(old)} -> {_number(new)}), {mean:.3g} on average{rest}"
    )


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _where(edits: tuple[Edit, ...], ids: bool, kind: str) -> Iterator[str]:
    if kind == "renamed":
        pairs = [f"`{_name(edit.before)}` -> `{_name(edit.after)}`" for edit in edits[:_PLACES]]
        yield ", ".join(pairs) + _more(len(edits) - _PLACES)
        return
    if kind == "names":
        named = [edit for edit in edits if edit.details["old"] and edit.details["new"]]
        for edit in (named or list(edits))[:_PLACES]:
            yield f"{_listed(edit.details['old'])} -> {_listed(edit.details['new'])}"
        return
    for role, listed in by_role(edits).items():
        head = f"{f'x {len(listed):,} ' if len(listed) > 1 and len(edits) > len(listed) else ''}{role}"
        yield f"{head}{': ' if role else ''}{_places(listed, ids)}"


def _places(edits: list[Edit], ids: bool) -> str:
    """Where some edits are that say the same of the same."""
    if len(edits) == 1:
        edit = edits[0]
        parts = [_layers(edit, ids), edit.place if edit.place != f"`{_name(edit.layers)}`" else ""]
        return "; ".join(part for part in parts if part) + _inside(edit)
    shown = ranges([name for name in map(_place_name, edits) if name])
    places = ", ".join(f"`{name}`" for name in shown[:_PLACES]) + _more(len(shown) - _PLACES)
    return places + (_inside(edits[0]) if shown else "")


def _place_name(edit: Edit) -> str:
    """The name that says best where an edit is: that of the layer that reads a constant or what is new, if any does,
    else its own."""
    if edit.kind in ("constant", "retyped", "reshaped", "replaced", "inserted", "removed"):
        _, before, reader = edit.place.rpartition("before `")
        if before:
            return reader.partition("`")[0]
        if reader.startswith("`"):
            return reader.strip("`")
    return _name(edit.layers)


def _layers(edit: Edit, ids: bool) -> str:
    layers = [layer for layer in edit.layers if layer.type != "Const"] or edit.layers[:1]
    return ", ".join(_layer(layer, ids) for layer in layers[:_PLACES]) + _more(len(layers) - _PLACES)


def _layer(layer: LayerName, ids: bool) -> str:
    return str(layer) if ids else f"`{layer.name}` ({layer.type})"


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "(none)"


def _name(layers: tuple[LayerName, ...]) -> str:
    return layers[0].name if layers else ""


def _more(count: int) -> str:
    return f" and {count:,} more" if count > 0 else ""


def _inside(edit: Edit) -> str:
    path = edit.path
    bodies = [f"the {tag} of `{layer}`" for layer, tag in zip(path[::2], path[1::2], strict=True)]
    return f", in {' in '.join(reversed(bodies))}" if bodies else ""


def _one_line(line: str) -> str:
    return clipped(one_line(line), 3 * LONGEST_NAME).rstrip()


def as_json(difference: Difference) -> str:
    """All edits one by one, each with its layers and figures."""
    divergence = difference.divergence
    report = {
        "version": 1,
        "models": [str(path) for path in difference.paths],
        "equal": difference.equal,
        "layers": list(difference.layers),
        "matched": difference.matched,
        "followed": difference.followed,
        "edits": [_edit(edit, difference.ids) for edit in difference.edits],
    }
    if divergence is not None:
        report["divergence"] = {
            "tensor": divergence.tensor or None,
            "other": divergence.other or None,
            "sentence": divergence.sentence,
            "compared": divergence.compared,
        }
    return json.dumps(report, indent=1, default=str, allow_nan=False)


def _edit(edit: Edit, ids: bool) -> dict[str, Any]:
    return {
        "kind": edit.kind,
        "message": edit.message,
        "before": [_named(layer, ids) for layer in edit.before],
        "after": [_named(layer, ids) for layer in edit.after],
        "path": list(edit.path),
        "role": edit.role,
        "place": edit.place,
        "details": {key: _finite(value) for key, value in edit.details.items()},
    }


def _named(layer: LayerName, ids: bool) -> dict[str, Any]:
    return ({"id": layer.id} if ids else {}) | {"name": layer.name, "type": layer.type}


def _finite(value: Any) -> Any:
    """A value as JSON can have it: infinity and NaN as texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


RENDERERS: Mapping[str, Callable[[Difference], str]] = {"text": text, "json": as_json}
"""What `--format` offers."""
