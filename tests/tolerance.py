"""Rules that an op does not insist on, as tests of ops see them."""

from typing import Any

import numpy as np

from irrun.spec import Op, Tensor


def tolerated(op: Op, *inputs: Any, **attrs: Any) -> tuple[str, str]:
    """The label and the message of the one rule that a call breaks, and that OpenVINO does not insist on."""
    tensors = [None if array is None else Tensor.of(np.asarray(array)) for array in inputs]
    (found,) = op.infer(tensors, {**op.defaults, **attrs}).tolerated
    assert found.does, "a warning says what OpenVINO does"
    return found.violation.label, found.violation.message
