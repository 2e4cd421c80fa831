"""What a defect is: the files of a broken model, and where and how its one cause may be reported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from corpus.document import Document, Element, Spot, data_of, inputs, label
from irrun.spec.registry import registry


@dataclass(frozen=True)
class Defect:
    """One cause. Without `lines` the file as a whole is at fault, without `layers` no layer is.

    `places` are the lines with the columns at which it is pointed out exactly. Of `codes` one must be reported, and
    `says` must stand in its message or help. `also` are codes of other causes that are there as well; `stale` says
    that declared ports then contradict what really flows.
    """

    family: str
    title: str
    op: str
    xml: bytes
    weights: bytes | None
    codes: frozenset[str]
    lines: frozenset[int] = frozenset()
    places: frozenset[tuple[int, int]] = frozenset()
    layers: frozenset[str] = frozenset()
    says: str = ""
    also: tuple[str, ...] = ()
    stale: bool = False

    def __str__(self) -> str:
        return f"{self.family}: {self.title}"


def defect(
    family: str,
    title: str,
    document: Document,
    codes: str,
    spots: Iterable[Spot],
    layers: Sequence[Element] = (),
    says: str = "",
    also: tuple[str, ...] = (),
    stale: bool = False,
) -> Defect:
    """The defect of a document that has it already."""
    xml = document.text()
    places = frozenset(map(document.place, spots))
    return Defect(
        family,
        f"{title} ({document.name})",
        document.op or next((layer.get("type", "") for layer in layers if _known(layer)), ""),
        xml,
        document.weights,
        frozenset(codes.split()),
        frozenset(line for line, _ in places),
        places,
        frozenset(map(label, layers)),
        says,
        also,
        stale,
    )


def _known(layer: Element) -> bool:
    return bool(registry().versions(layer.get("type", "")))


def of_file(
    family: str,
    title: str,
    xml: bytes,
    weights: bytes | None,
    codes: str,
    lines: Iterable[int] = (),
    layers: Iterable[str] = (),
    says: str = "",
) -> Defect:
    """A defect of the bytes rather than of an element."""
    return Defect(
        family, title, "", xml, weights, frozenset(codes.split()), frozenset(lines), layers=frozenset(layers), says=says
    )


def around(layer: Element, *ports: int, attributes: Iterable[str] = ()) -> list[Spot]:
    """Where a broken rule of an op may be reported: the layer, the ports concerned and its attributes."""
    data = layer.find("data")
    return [
        layer,
        *(inputs(layer)[port] for port in ports),
        *((data_of(layer), name) for name in attributes if data is not None and name in data.attrib),
    ]
