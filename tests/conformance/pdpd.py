"""Cases of ops with the broadcasting of PaddlePaddle, from an inner axis on, of which OpenVINO knows little."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from openvino.utils.node_factory import NodeFactory

from conformance.harness import Case, Departure

_INNER = "auto_broadcast = pdpd; auto_broadcast_axis != -1"
REFUSES = Departure("refuses pdpd from an inner axis; the page has it", _INNER)
_MISTAKES = Departure(
    "aligns the last axes, as numpy does, where their sizes let it; the page aligns axes from the given one on",
    f"{_INNER}; (the last axes fit as well)",
)

_UNSTATED = Departure(
    "refuses sizes that do not fit from axis 0 on, which it takes where none is given; the page has the last axes then",
    "auto_broadcast = pdpd; auto_broadcast_axis is left out; rank of b < rank of a; axis 0 of a != axis 0 of b",
)


def from_axis(op: str, axis: int) -> Callable[..., Any]:
    """Builds `op` so."""
    type, version = op.rsplit("-", 1)
    attrs = {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": axis}
    return lambda *nodes: NodeFactory(f"opset{version}").create(type, [node.output(0) for node in nodes], attrs)


def unstated(computed: Mapping[str, Callable[..., Any]], type: Any, row: Sequence[int] = (1, 2, 8)) -> list[Case]:
    """Where no axis is given: a row of three numbers for a box of `type`. `computed` has numpy's function for each op.

    The plugin refuses what some ops have of an inner axis, which is why -1 is written here, and left out of the file.
    """
    box, numbers = (np.arange(12) % 7).astype(type).reshape(2, 2, 3), np.array(row).astype(type)
    return [
        Case(
            op,
            "pdpd without an axis",
            from_axis(op, -1),
            [box, numbers],
            left_out=["auto_broadcast.auto_broadcast_axis"],
            deviates=_UNSTATED,
            expected=[compute(box, numbers)],
        )
        for op, compute in computed.items()
    ]


def departing(computed: Mapping[str, Callable[..., Any]], type: Any, column: Sequence[int] = (1, 2, 8)) -> list[Case]:
    """Where the plugin refuses a column of three numbers for a box of `type`, and takes it for a row of a square.

    `computed` has numpy's function for each op.
    """
    numbers = np.array(column).astype(type)
    box, square = ((np.arange(size) % 7).astype(type) for size in (12, 9))
    return [
        Case(
            op,
            title,
            from_axis(op, axis),
            [data, numbers],
            deviates=departure,
            expected=[compute(data, numbers[:, None])],
        )
        for op, compute in computed.items()
        for title, axis, data, departure in (
            ("pdpd from axis 1", 1, box.reshape(2, 3, 2), REFUSES),
            ("pdpd from axis 0 of a square", 0, square.reshape(3, 3), _MISTAKES),
        )
    ] + unstated(computed, type, column)
