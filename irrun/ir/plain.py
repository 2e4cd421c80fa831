"""Layers and edges that are written as nearly all are, found in a text by one pattern each, without a parser.

What has the form is well-formed wherever elements may stand, and nothing in it is to be reported. All else is left to a
parser: bodies, other blanks, quotes and orders, references, what is not ASCII; and also whether elements may be there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from irrun.records import NamedTuple
from irrun.spec.dtypes import ELEMENT_TYPES

MAX_REMEMBERED = 4096
"""Texts of attributes or ports whose meaning is kept: most are those of another layer, too."""

_BLANKS = r"[ \t\r\n]*+"
_TEXT = r'[^"<&\x00-\x1f\x7f-\xff]*+'
_NUMBER = r"(?:0|[1-9][0-9]{0,17}+)"
_DIMS = rf"(?:<dim>(?:-1|[0-9]{{1,18}}+)</dim>{_BLANKS})*+"
_REST = rf" ?+(?:/>|>{_BLANKS}{_DIMS}</port>){_BLANKS}"
_INPUT = rf'<port id="{_NUMBER}" precision="[A-Z0-9]++"{_REST}'
_OUTPUT = rf'<port id="{_NUMBER}" precision="[A-Z0-9]++"(?: names="{_TEXT}")?+{_REST}'
_ONE_PORT = (
    rf'<port id="({_NUMBER})" precision="([A-Z0-9]++)"(?: names="({_TEXT})")?+'
    rf" ?+(?:/>|>{_BLANKS}({_DIMS})</port>){_BLANKS}"
)
_INFO = rf'<attribute name="(?!layout"|old_api_){_TEXT}" version="[0-9]++"(?: value="{_TEXT}")?+ ?+/>'

# groups: id, name, type, version; <data>; <rt_info>; <input>; of a single output id, precision, names, dims; <output>
_LAYER = re.compile(
    rf'<layer id="({_NUMBER})" name="({_TEXT})" type="({_TEXT})" version="({_TEXT})">{_BLANKS}'
    rf'(?:<data((?: [A-Za-z_][A-Za-z0-9_.-]*+="{_TEXT}")*+) ?+/>{_BLANKS})?+'
    rf"(<rt_info>{_BLANKS}{_INFO}{_BLANKS}</rt_info>{_BLANKS})?+"
    rf"(?:<input>{_BLANKS}((?:{_INPUT})*+)</input>{_BLANKS})?+"
    rf"(?:<output>{_BLANKS}(?:{_ONE_PORT}|((?:{_OUTPUT})*+))</output>{_BLANKS})?+</layer>{_BLANKS}"
)
_EDGE = re.compile(
    rf'<edge from-layer="({_NUMBER})" from-port="({_NUMBER})" to-layer="({_NUMBER})" to-port="({_NUMBER})" ?+/>'
    rf"{_BLANKS}"
)
_START = re.compile(r"<(layer(?= id=)|edge(?= from-layer=))")
_ATTRIBUTE = re.compile(rf' ([^=]++)="({_TEXT})"')
_EACH_PORT = re.compile(_ONE_PORT)
_SIZE = re.compile("-?[0-9]++")
_PRECISIONS = {type.precision: name for name, type in ELEMENT_TYPES.items()}
_SPELT = {name.lower(): name for name in ("Parameter", "Result", "ReadValue", "Assign", "Const")} | {"constant": ""}
"""The types that the reader looks at the case of; there is no `Constant` in an IR."""


class PlainPort(NamedTuple):
    """A port: `precision` is the name of an element type, `names` is the text of that attribute."""

    id: int
    precision: str
    names: str
    dims: tuple[int, ...]


class PlainLayer(NamedTuple):
    """A layer; its `attributes` are those of `<data>`, where it has that."""

    id: int
    name: str
    type: str
    version: str
    attributes: dict[str, str]
    has_data: bool
    has_info: bool
    inputs: tuple[PlainPort, ...]
    outputs: tuple[PlainPort, ...]


PlainEdge = tuple[str, str, str, str]
"""The ids of a layer and of its output port, and of a layer and of its input port, in digits as few as can be."""


class Run(NamedTuple):
    """Plain elements of one kind one behind the other, from `start` to `stop`, and what each says, behind its place."""

    tag: str
    members: list[tuple[int, PlainLayer | PlainEdge]]
    start: int
    stop: int


def plain_runs(text: str) -> Iterator[Run]:
    """The plain elements of an XML text, in its order; some may stand where they mean nothing, such as in comments."""
    memory = _Memory()
    position = 0
    while found := _START.search(text, position):
        start = position = found.start()
        tag = found[1]
        members: list[tuple[int, PlainLayer | PlainEdge]] = []
        if tag == "layer":
            while (match := _LAYER.match(text, position)) and (layer := memory.layer(match)):
                members.append((position, layer))
                position = match.end()
        else:
            while match := _EDGE.match(text, position):
                producer, output, reader, number = match.groups()
                members.append((position, (producer, output, reader, number)))
                position = match.end()
        if members:
            yield Run(tag, members, start, text.rindex(">", start, position) + 1)
        else:
            position = found.end()


class _Memory:
    """What texts mean that come again and again; None where a parser or the reader finds fault with them."""

    def __init__(self) -> None:
        self._attributes: dict[str, dict[str, str]] = {}
        self._ports: dict[str, tuple[PlainPort, ...]] = {}
        self._sizes: dict[str, tuple[int, ...]] = {}

    def layer(self, match: re.Match[str]) -> PlainLayer | None:
        id, name, type, version, data, info, inputs, number, precision, names, sizes, outputs = match.groups()
        attributes = self.attributes(data) if data else {}
        taken = self.ports(inputs) if inputs else ()
        if number is None:
            given = self.ports(outputs) if outputs else ()
        elif precision in _PRECISIONS:
            given = (self.port(number, precision, names or "", sizes or ""),)
        else:
            return None
        if attributes is None or taken is None or given is None or _SPELT.get(type.lower(), type) != type:
            return None
        return PlainLayer(int(id), name, type, version, attributes, data is not None, info is not None, taken, given)

    def attributes(self, text: str) -> dict[str, str] | None:
        """The attributes of a tag, of which there are none twice."""
        known = self._attributes.get(text)
        if known is None:
            pairs = _ATTRIBUTE.findall(text)
            known = dict(pairs)
            if len(known) < len(pairs):
                return None
            _limit(self._attributes)
            self._attributes[text] = known
        return known.copy()

    def ports(self, text: str) -> tuple[PlainPort, ...] | None:
        """The ports of a layer, each with an id of its own and with a precision that there is."""
        known = self._ports.get(text)
        if known is None:
            found = _EACH_PORT.findall(text)
            if len({port[0] for port in found}) < len(found) or not all(port[1] in _PRECISIONS for port in found):
                return None
            known = tuple(self.port(*port) for port in found)
            _limit(self._ports)
            self._ports[text] = known
        return known

    def port(self, number: str, precision: str, names: str, sizes: str) -> PlainPort:
        return PlainPort(int(number), _PRECISIONS[precision], names, self.sizes(sizes))

    def sizes(self, text: str) -> tuple[int, ...]:
        known = self._sizes.get(text)
        if known is None:
            _limit(self._sizes)
            known = self._sizes[text] = tuple(map(int, _SIZE.findall(text)))
        return known


def _limit(memory: dict[str, Any]) -> None:
    if len(memory) >= MAX_REMEMBERED:
        memory.clear()
