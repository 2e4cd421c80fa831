"""Values that become arrays when someone asks for them: at most constants of a model no rule ever looks."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]
else:
    Array = Any


class Pending:
    """The value of a tensor of `size` elements; none of them will be unknown unless it is `symbolic`."""

    __slots__ = ("size",)

    @property
    def symbolic(self) -> bool:
        """Whether there are elements that are not known exactly."""
        return False

    def __init__(self, size: int) -> None:
        self.size = size

    def array(self) -> Array | None:
        """The same array each time; None where there turns out to be none."""
        raise NotImplementedError

    def numbers(self) -> list[Any] | None:
        """The elements in order as Python has them; None where there is no array."""
        array = self.array()
        return None if array is None else array.ravel().tolist()

    @property
    def known(self) -> bool:
        """Whether there is an array."""
        return self.array() is not None

    @property
    def key(self) -> Hashable:
        """What equal values of one type and shape share."""
        array = self.array()
        return None if array is None else array.tobytes()
