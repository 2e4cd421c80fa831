"""What differs between two models, as edits from one to the other: `irrun.diff` and `irrun diff`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from irrun.diagnostics import IRError
from irrun.ir.collector import collector_paused
from irrun.ir.graph import Model
from irrun.ir.reader import read
from irrun.ir.sources import Source, opened
from irrun.tools.diff.accounts import Account
from irrun.tools.diff.constants import Constants
from irrun.tools.diff.edits import KINDS, Difference, Edit
from irrun.tools.diff.view import normalizing, view_of

IGNORABLE = ("names", "ids", "order", "rt_info", "weights", "precision", "shapes")
"""Aspects that may be left out: names of layers, tensors and variables; ids of layers in what is told; the order of
inputs and outputs; runtime information; the values of constants; which floating-point type is used; shapes of tensors.
"""

WEIGHTS = ("exact", "close", "stats")
"""How closely values of constants are looked at: all bits; within 1e-3 of each number and 1e-5; or only their mean,
deviation and bounds, within a hundredth of the deviation."""

MISSING = ("E501", "E503")
"""Errors of weights that are not there."""


def diff(
    before: Model | Source,
    after: Model | Source,
    *,
    weights: tuple[Source | None, Source | None] = (None, None),
    ignore: Collection[str] = (),
    values: str = "exact",
    inputs: Mapping[str, Any] | None = None,
    seed: int | None = None,
    max_memory: int | None = None,
) -> Difference:
    """What differs between two models, each a path, bytes, an open file or a `Model`.

    They are the same whatever the ids of layers, their order in the file, and the places of constants in the .bin are.
    `weights` are the .bin files, which lie beside the .xml unless given. `ignore` names aspects that do not count, of
    `IGNORABLE`; `values` says how closely constants are compared, one of `WEIGHTS`. With `inputs`, or a `seed` for
    random ones, both models run, in `max_memory` bytes each, and `divergence` is the first tensor that differs.

    Raises IRError where a model has errors of form, or lacks its weights and these are not ignored; ValueError for an
    unknown aspect; with inputs InputError and ExecutionError as a run does.

    >>> import irrun
    >>> difference = irrun.diff("samples/cnn/model.xml", "samples/cnn/model.xml")
    >>> difference.equal, difference.edits
    (True, ())
    """
    unknown = [aspect for aspect in ignore if aspect not in IGNORABLE]
    if unknown:
        raise ValueError(f"`{unknown[0]}` cannot be ignored; what can is {', '.join(IGNORABLE)}")
    if values not in WEIGHTS:
        raise ValueError(f"values are compared {', '.join(WEIGHTS)}, not `{values}`")
    ignored = frozenset(ignore)
    with collector_paused():
        models = _read(before, weights[0], ignored), _read(after, weights[1], ignored)
        constants = Constants(models[0], "weights" in ignored), Constants(models[1], "weights" in ignored)
        normalize = normalizing(ignored)
        views = view_of(models[0].graph, normalize), view_of(models[1].graph, normalize)
        account = Account(constants, values, ignored)
        account.compare(*views)
        account.model(*views)
    divergence = None
    if inputs is not None or seed is not None:
        from irrun.tools.diff.numeric import first_divergence

        divergence = first_divergence(*models, account.pairs, inputs, seed, max_memory)
    rank = {kind: number for number, kind in enumerate(KINDS)}
    return Difference(
        (models[0].path, models[1].path),
        tuple(sorted(account.edits, key=lambda edit: rank[edit.kind])),
        (sum(1 for _ in models[0].graph.walk()), sum(1 for _ in models[1].graph.walk())),
        account.matched,
        account.followed,
        divergence,
        "ids" not in ignored,
    )


def _read(source: Model | Source, weights: Source | None, ignored: frozenset[str]) -> Model:
    """A model without errors. Raises IRError."""
    if isinstance(source, Model):
        return source
    path, content = opened(source, "model")
    model, found = read(Path(path), weights, content)
    missing = MISSING if "weights" in ignored else ()
    errors = [problem for problem in found if problem.severity == "error" and problem.code not in missing]
    if errors or model is None:
        raise IRError(errors)
    return model


__all__ = ["IGNORABLE", "KINDS", "WEIGHTS", "Difference", "Edit", "diff"]
