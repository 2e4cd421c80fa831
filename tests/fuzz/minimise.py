"""Smaller mutants that still show a finding: elements, attributes and bytes are left out as long as it stays."""

from __future__ import annotations

import copy
from collections.abc import Callable
from xml.etree import ElementTree

from fuzz.pool import run
from fuzz.seeds import Seed


def minimise(model: Seed, kind: str, most: int = 1500) -> Seed:
    """A small model with a finding of the same kind, after at most `most` tries."""
    left = [most]

    def shows(candidate: Seed) -> bool:
        left[0] -= 1
        (found,) = run(lambda _: candidate, [0])
        return found is not None and found.kind == kind

    if shows(Seed(model.name, model.xml, b"")):
        model = Seed(model.name, model.xml, b"")
    xml = _by_elements(model.xml, lambda xml: shows(Seed(model.name, xml, model.weights)), left)
    if len(xml) < 20_000:
        xml = _by_bytes(xml, lambda xml: shows(Seed(model.name, xml, model.weights)), left)
    return Seed(model.name, xml, model.weights)


def _by_elements(xml: bytes, shows: Callable[[bytes], bool], left: list[int]) -> bytes:
    try:
        root = ElementTree.fromstring(xml)
        if not shows(ElementTree.tostring(root)):
            return xml
    except (ElementTree.ParseError, ValueError):
        return xml
    smaller = True
    while smaller and left[0] > 0:
        smaller = False
        for number in reversed(range(1, sum(1 for _ in root.iter()))):
            if left[0] <= 0:
                break
            shorter = copy.deepcopy(root)
            everyone = list(shorter.iter())
            if number >= len(everyone):
                continue
            parent = next(element for element in everyone if everyone[number] in list(element))
            parent.remove(everyone[number])
            if shows(ElementTree.tostring(shorter)):
                root, smaller = shorter, True
    return ElementTree.tostring(root)


def _by_bytes(xml: bytes, shows: Callable[[bytes], bool], left: list[int]) -> bytes:
    length = len(xml) // 2
    while length >= 1 and left[0] > 0:
        at = 0
        while at < len(xml) and left[0] > 0:
            shorter = xml[:at] + xml[at + length :]
            if shorter and shows(shorter):
                xml = shorter
            else:
                at += length
        length //= 2
    return xml
