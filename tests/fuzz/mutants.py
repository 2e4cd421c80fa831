"""Mutants: seeds with something changed, in the tree of their elements or in the bytes of their files."""

from __future__ import annotations

import copy
import random
import re
import struct
from collections.abc import Callable, Sequence
from xml.etree import ElementTree

from fuzz.seeds import Seed

Element = ElementTree.Element

NASTY = (
    *("", " ", "-1", "0", "1", "2", "3", "-2", "7", "63", "64", "65", "255", "256", "1000", "4096", "65536", "1000000"),
    *("2147483647", "2147483648", "-2147483648", "4294967296", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775808", "18446744073709551615", "18446744073709551616", "9" * 40, "9" * 5000, "-" + "9" * 400),
    *("1.7", "1e400", "-1e400", "1e-400", "nan", "-nan", "inf", "-inf", "0x10", "1_000", "+1", "--1", "1,", ",", ",,"),
    *("a,,b", "-1,2", "1,2,3", "0,0,0", "1,1,1,1,1,1", "-1,-1,-1,-1", "?,?,?", "1..3,4..", "5..2", "..", "...", "?"),
    *("[1,2]", "[", "2147483647,2147483647,2147483647", "1000000000,1000000000", "9223372036854775807,2", "1," * 70),
    *("1," * 5000, "true", "false", "yes", "TRUE", "None", "\u0661", "\u00b2", "\u009b2J", "\u202e", "\ufffd", "é" * 9),
    *("f32", "f16", "bf16", "i64", "i32", "u8", "u1", "u4", "i4", "nf4", "string", "boolean", "dynamic", "f8e4m3"),
    *("FP32", "I64", "STRING", "BOOL", "UNSPECIFIED", "f64", "u64", "undefined", "numpy", "pdpd", "none", "explicit"),
    *(
        "same_upper",
        "valid",
        "auto_pad",
        "floor",
        "ceil",
        "opset1",
        "opset8",
        "opset17",
        "opset99",
        "opset",
        "extension",
    ),
    *("ij,jk->ik", "...->", "ii", "->->", "a" * 300, "x" * 20000, "body", "current_iteration", "execution_condition"),
)
TYPES = (
    *("Parameter", "Result", "Const", "Constant", "Reshape", "Concat", "Split", "VariadicSplit", "Gather", "ShapeOf"),
    *("Loop", "If", "TensorIterator", "Broadcast", "Range", "Tile", "StridedSlice", "Slice", "Add", "Multiply", "TopK"),
    *("MatMul", "Einsum", "Interpolate", "Pad", "OneHot", "NonMaxSuppression", "Convolution", "MaxPool", "Transpose"),
    *("Squeeze", "Unsqueeze", "ReadValue", "Assign", "ReduceSum", "Select", "ConvertLike", "Eye", "DFT", "Unique"),
)
BYTES = (
    b"<",
    b">",
    b"&",
    b'"',
    b"'",
    b"\0",
    b"\x80",
    b"\xff",
    b"\xc3",
    b"]]>",
    b"<![CDATA[",
    b"<!--",
    b"-->",
    b"<?x?>",
)
_TOKEN = re.compile(rb'<[^<>]*>|"[^"]*"|[^<>"]+')


def mutant(seeds: Sequence[Seed], seed: int, number: int) -> Seed:
    """Mutant `number` of the series `seed`: always the same for the same seeds."""
    rng = random.Random(f"{seed}/{number}")
    parent = rng.choice(seeds)
    xml, weights = parent.xml, parent.weights
    if rng.random() < 0.75:
        xml = _changed_tree(xml, seeds, rng) or _changed_bytes(xml, rng)
    elif rng.random() < 0.8:
        xml = _changed_bytes(xml, rng)
    if rng.random() < 0.2:
        weights = _changed_weights(weights, rng)
    return Seed(parent.name, xml, weights)


# In the tree


def _changed_tree(xml: bytes, seeds: Sequence[Seed], rng: random.Random) -> bytes | None:
    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError:
        return None
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5, 12))):
        mutate = rng.choices(_MUTATIONS, _WEIGHTS)[0]
        mutate(root, seeds, rng)
    try:
        return ElementTree.tostring(root)
    except (TypeError, ValueError):
        return None


def _parents(root: Element) -> list[Element]:
    return [element for element in root.iter() if len(element)]


def _with_attributes(root: Element) -> list[Element]:
    return [element for element in root.iter() if element.attrib]


def _delete_element(root: Element, seeds: Sequence[Seed], rng: random.Random) -> None:
    if parents := _parents(root):
        parent = rng.choice(parents)
        parent.remove(rng.choice(list(parent)))


def _duplicate_element(root: Element, seeds: Sequence[Seed], rng: random.Random) -> None:
    if parents := _parents(root):
        parent = rng.choice(parents)
        for _ in range(rng.choice((1, 1, 1, 2, 20))):
            parent.insert(rng.randrange(len(parent) + 1), copy.deepcopy(rng.choice(list(parent))))
            if sum(1 for _ in root.iter()) > 5000:
                return


def _swap_elements(root: Element, seeds: Sequence[Seed], rng: random.Random) -> None:
    if parents := _parents(root):
        a, b = rng.choice(parents), rng.choice(parents)
        i, j = rng.randrange(len(a)), rng.randrange(len(b))
        first, second = copy.deepcopy(a[i]), copy.deepcopy(b[j])
        a[i] = second
        if j < len(b):
            b[j] = first


def _nest_element(root: Element, seeds: Sequence[Seed], rng: random.Random) -> None:
    everyone = list(root.iter())
    target = rng.choice(everyone)
    if sum(1 for _ in root.iter()) < 3000:
        target.append(copy.deepcopy(rng.choice(everyone)))


def _rename_element(root: Element, seeds: Sequence[Seed], rng: random.Random) -> None:
    everyone = list(root.iter())
    rng.choice(everyone).tag = rng.choice(everyone).tag


def _delete_attribute(root: Element, seeds: Sequence[Seed], rng: random.Random) -> None:
    if elements := _with_attributes(root):
        element = rng.choice(elements)
        del element.attrib[rng.choice(list(element.attrib))]


def _set_attribute(root: Element, seeds: Sequence[Seed], rng: random.Random) -> None:
    if elements := _with_attributes(root):
        element = rng.choice(elements)
        element.set(rng.choice(list(element.attrib)), rng.choice(NASTY))


def _set_data(root: Element, seeds: Sequence[Seed], rng: random.Random) -> None:
    elements = [element for element in root.iter("data") if element.attrib]
    if elements:
        element = rng.choice(elements)
        name = rng.choice(list(element.attrib))
        value = element.get(name, "")
        parts = value.split(",")
        if len(parts) > 1 and rng.random() < 0.7:
            parts[rng.randrange(len(parts))] = rng.choice(NASTY)
            value = ",".join(parts)
        else:
            value = rng.choice(NASTY)
        element.set(name, value)


def _exchange_values(root: Element, seeds: Sequence[Seed], rng: random.Random) -> None:
    if elements := _with_attributes(root):
        a, b = rng.choice(elements), rng.choice(elements)
        a.set(rng.choice(list(a.attrib)), b.get(rng.choice(list(b.attrib)), ""))


def _add_attribute(root: Element, seeds: Sequence[Seed], rng: random.Random) -> None:
    if elements := _with_attributes(root):
        name = rng.choice(list(rng.choice(elements).attrib))
        rng.choice(list(root.iter())).set(name, rng.choice(NASTY))


def _set_text(root: Element, seeds: Sequence[Seed], rng: random.Random) -> None:
    dims = list(root.iter("dim"))
    target = rng.choice(dims) if dims and rng.random() < 0.9 else rng.choice(list(root.iter()))
    target.text = rng.choice(NASTY)


def _set_type(root: Element, seeds: Sequence[Seed], rng: random.Random) -> None:
    if layers := list(root.iter("layer")):
        layer = rng.choice(layers)
        other = [element.get("type", "") for element in rng.choice(_trees(seeds, rng)).iter("layer")]
        layer.set("type", rng.choice([*TYPES, *other]))
        if rng.random() < 0.5:
            layer.set("version", f"opset{rng.randrange(1, 18)}")


def _rewire(root: Element, seeds: Sequence[Seed], rng: random.Random) -> None:
    if edges := list(root.iter("edge")):
        a, b = rng.choice(edges), rng.choice(edges)
        name = rng.choice(("from-layer", "from-port", "to-layer", "to-port"))
        a.set(name, b.get(name, "0"))
        if name == "from-layer":
            a.set("from-port", b.get("from-port", "0"))


def _cross_over(root: Element, seeds: Sequence[Seed], rng: random.Random) -> None:
    other = rng.choice(_trees(seeds, rng))
    mine = list(root.iter())
    tag = rng.choice(("layer", "layers", "data", "input", "output", "edges", "body", "port_map", "port"))
    given, taken = list(other.iter(tag)), [element for element in mine if element.tag == tag]
    if not given:
        return
    new = copy.deepcopy(rng.choice(given))
    if taken:
        old = rng.choice(taken)
        old.attrib.update(new.attrib if rng.random() < 0.5 else {})
        old[:] = list(new) if tag != "data" else []
        if tag == "data":
            old.attrib = dict(new.attrib)
    else:
        rng.choice(mine).append(new)


def _trees(seeds: Sequence[Seed], rng: random.Random) -> list[Element]:
    try:
        return [ElementTree.fromstring(rng.choice(seeds).xml)]
    except ElementTree.ParseError:
        return [Element("net")]


_Mutation = Callable[[Element, Sequence[Seed], random.Random], None]
_TABLE: dict[_Mutation, int] = {
    _delete_element: 8,
    _duplicate_element: 6,
    _swap_elements: 5,
    _nest_element: 3,
    _rename_element: 2,
    _delete_attribute: 8,
    _set_attribute: 12,
    _set_data: 22,
    _exchange_values: 5,
    _add_attribute: 4,
    _set_text: 6,
    _set_type: 8,
    _rewire: 6,
    _cross_over: 6,
}
_MUTATIONS, _WEIGHTS = list(_TABLE), list(_TABLE.values())


# In the bytes


def _changed_bytes(data: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(data) + 1)
        length = rng.choice((1, 1, 2, 8, 64, 1000))
        kind = rng.randrange(7)
        if kind == 0:
            data = data[:at] + data[at + length :]
        elif kind == 1:
            data = data[:at] + bytes(rng.randrange(256) for _ in range(min(length, 8))) + data[at + length :]
        elif kind == 2:
            data = data[:at] + rng.choice(BYTES) + data[at:]
        elif kind == 3:
            data = data[:at] + data[at : at + length] * rng.choice((2, 3, 30)) + data[at + length :]
        elif kind == 4:
            data = data[:at]
        elif kind == 5:
            tokens = _TOKEN.findall(data)
            if tokens:
                data = data[:at] + rng.choice(tokens) + data[at:]
        else:
            data = data[:at] + rng.choice(NASTY).encode() + data[at + length :]
    return data


def _changed_weights(data: bytes, rng: random.Random) -> bytes:
    """A .bin with numbers in it that no exporter writes, cut short, or longer."""
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(data) // 4 + 1) * 4
        kind = rng.randrange(6)
        if kind == 0:
            data = data[:at]
        elif kind == 1:
            data += bytes(rng.randrange(256) for _ in range(16))
        elif kind == 2:
            data = data[:at] + struct.pack("<f", rng.choice((float("nan"), float("inf"), 1e38, -1.0))) + data[at + 4 :]
        else:
            number = rng.choice((-(2**63), -(2**31), -2, -1, 0, 1, 3, 64, 2**20, 2**31 - 1, 2**31, 2**40, 2**63 - 1))
            packed = struct.pack("<q", number)[: 8 if rng.random() < 0.6 else 4]
            data = data[:at] + packed + data[at + len(packed) :]
    return data
