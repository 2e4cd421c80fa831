"""The broken constraints of the corpus, as rows: each is a change of a model that OpenVINO computes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from corpus.constraints import RULES

from conformance.constraints.bases import bases
from conformance.constraints.row import Given, Row
from irrun.spec.dtypes import element_type


def ruled_rows(name: str) -> Iterator[Row]:
    """The rows of an op version."""
    for rule in RULES:
        base = bases(first=True).get(name)
        if rule.op != name or not rule.label or base is None:
            continue
        inputs = list(base.inputs)
        said = [f"`{attr}` is `{text}`" for attr, text in rule.attrs.items()]
        for number, shape in rule.shapes.items():
            inputs[number] = Given(_known(inputs[number]).type, tuple(shape))
            said.append(f"input {number} is {list(shape)}")
        for number, value in rule.values.items():
            array = np.asarray(value)
            type = (
                element_type(array.dtype) if isinstance(value, np.ndarray | np.generic) else _known(inputs[number]).type
            )
            inputs[number] = Given(type, array.shape, tuple(array.ravel().tolist()))
            said.append(f"input {number} is {array.tolist()}")
        attrs = {**base.attrs, **rule.attrs}
        yield Row(name, rule.label, changed=", ".join(said), inputs=tuple(inputs), attrs=attrs, outputs=base.outputs)


def _known(each: Given | None) -> Given:
    assert each is not None, "a rule changes an input that is there"
    return each
