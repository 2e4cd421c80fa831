"""Ops that refuse arrays, before the run and in it."""

import numpy as np
import pytest

from irrun.spec import Tensor, Violation


def before_the_run(arrays):
    """What is known of a model's tensors where its integers are constants."""
    tensors = [None if array is None else Tensor.of(array) for array in arrays]
    return [t if t is None or t.type in ("i32", "i64") else Tensor(t.type, t.shape) for t in tensors]


def refuses(op, label, message, *arrays, **attrs):
    """The op refuses `arrays` both before the run, where the integers are constants, and in it."""
    arrays = [None if array is None else np.asarray(array) for array in arrays]
    for call in (lambda: op.infer(before_the_run(arrays), op.defaults | attrs), lambda: op(*arrays, **attrs)):
        with pytest.raises(Violation) as error:
            call()
        assert (error.value.label, error.value.message) == (label, message)
