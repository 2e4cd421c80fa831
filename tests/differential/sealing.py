"""Weights that nobody may look at while an engine makes what works share that differ in nothing but these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np

from irrun.engines.work import Operand, Work
from irrun.engines.work_cache import WorkCache, is_weight

_RECALL = WorkCache.recall


class Sealed(np.ndarray):
    """An array whose shape, type and strides are all that can be had."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        raise AssertionError(f"{ufunc.__name__} of weights that other works do not share")

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        raise AssertionError(f"{function.__name__} of weights that other works do not share")


def weights_sealed() -> Any:
    """A patch by which whatever looks at weights where it must not fails."""
    return patch.object(WorkCache, "recall", _recall)


def _recall(cache: WorkCache, what: str, work: Work, make: Callable[[Work], Any]) -> Any:
    return _RECALL(cache, what, work, lambda work: make(_sealed(work)))


def _sealed(work: Work) -> Work:
    inputs = [None if operand is None else _operand(operand) for operand in work.inputs]
    return Work(work.name, work.attrs, inputs, work.outputs, work.posts)


def _operand(own: Operand) -> Operand:
    if own.value is None or not is_weight(own.value):
        return own
    value = own.value.view(Sealed)
    return Operand(own.type, own.shape, own.strides, value, own.layout, own.compressed, own.codes, own.grid)
