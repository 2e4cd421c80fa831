"""A model without what is secret in it: the order of what is stripped, and whether it is the same model still."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

from irrun.ir.document import xml_text
from irrun.ir.graph import Model
from irrun.records import dataclass
from irrun.tools.strip.names import strip_names, strip_remarks
from irrun.tools.strip.weights import strip_weights


@dataclass(frozen=True, slots=True)
class Stripped:
    """A model to be shown. `names` are its names by those before, and `constants` how many have other values."""

    model: Model
    names: Mapping[str, str]
    constants: int


def strip(model: Model, *, weights: str = "random", names: str = "hash", seed: int = 0) -> Stripped:
    """A copy of a model without runtime info and comments, with weights that are "random", "zero" or kept ("keep").

    `names` are "hash", hashes that differ from model to model, or "keep". Raises ValueError for other words, and
    IRError and WeightsError where constants cannot be read.
    """
    if weights not in ("random", "zero", "keep") or names not in ("hash", "keep"):
        raise ValueError(f"there are no weights `{weights}` with names `{names}`")
    made = model.copy()
    key = blake2b(xml_text(made, {}), digest_size=32).digest()
    strip_remarks(made)
    given = strip_names(made, key) if names == "hash" else {}
    count = 0 if weights == "keep" else strip_weights(made, weights, seed)
    return Stripped(made, given, count)
