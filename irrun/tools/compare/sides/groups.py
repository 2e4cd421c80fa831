"""Tensors that are watched in groups, so that no more of them are computed at once than there is room for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

UNKNOWN_TOGETHER, UNKNOWN_LARGER = 64, 4
"""Tensors of unknown size in a group, at least, and how many times as large as known ones they are taken for.

If possible all are of one run: of two that hold as many boxes in each run one may have more in the next, in which a
device fuses other layers and so rounds otherwise.
"""


def groups(sizes: Mapping[int, int | None], most: int) -> list[list[int]]:
    """The numbers of tensors, in groups of no more than `most` bytes; one that is larger is a group of its own."""
    found: list[list[int]] = []
    room, unknown = 0.0, most / UNKNOWN_TOGETHER
    known = [size for size in sizes.values() if size is not None]
    if any(known):
        unknown = min(unknown, UNKNOWN_LARGER * sum(known) / len(known))
    for number, size in sizes.items():
        taken = unknown if size is None else size
        if not found or taken > room:
            found.append([])
            room = most
        found[-1].append(number)
        room -= taken
    return found


def watch(
    sizes: Mapping[int, int | None], most: int, run: Callable[[Sequence[int]], None], plain: Callable[[], object]
) -> dict[int, str]:
    """Call `run` with groups of tensors, one at least; those that it fails for alone, and with what message.

    It raises what it raises for no tensors at all; `plain` is the same without watching, and may raise as well.
    """
    failed: dict[int, str] = {}
    left, ran, tried = groups(sizes, most)[::-1] or [[]], False, False
    while left:
        group = left.pop()
        try:
            run(group)
            ran = True
        except (MemoryError, OSError):  # which fewer tensors may not have, but nobody knows how many
            raise
        except Exception as error:  # whatever a library raises
            if not group:
                raise
            if not ran and not tried:  # what fails anyway is not due to who watches
                plain()
                tried = True
            if len(group) == 1:
                failed[group[0]] = str(error)
            else:
                left += [group[len(group) // 2 :], group[: len(group) // 2]]
        if not left and not ran:
            left.append([])
    return failed
