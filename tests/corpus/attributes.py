"""Defects of attributes: of every op version, each attribute by the kind of text that it holds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from corpus.defect import Defect, Spot, defect
from corpus.document import data_of
from corpus.seeds import ops, seed
from irrun.spec.attributes import BOOL, ELEMENT_TYPE, FLOAT_NUMBER, FLOATS, INT, INTS, REQUIRED, SHAPE, STRING, STRINGS
from irrun.spec.registry import registry

BAD = {
    INT.name: ("1.7", "abc", "", "0x1", "1 2", "99999999999999999999", "1,2", "1e2", "--1"),
    FLOAT_NUMBER.name: ("1,5", "abc", "1.5f", "Infinity", "1e400", "", "1.2.3"),
    BOOL.name: ("yes", "no", "2", "", "t", "true ", "on"),
    ELEMENT_TYPE.name: ("fp32", "FP32", "float", "int64", "", "f23", "BOOL"),
}
BAD_LISTS = ("{first}.7,{rest}", "a,{rest}", "{first},,{rest}", "{first};{rest}", "{first} {rest}x")
BAD_SHAPES = ("5..3", "1,-2", "[1,...]", "1,,2", "1,2,", "a..b", "1 .. 2", "3x", "1.5,2", "?,??", "[1,2", "..")
SIZES = ("strides", "dilations", "kernel", "sizes", "rates", "group", "num_splits", "block_size", "hidden_size")


def defects() -> Iterator[Defect]:
    turn = count()
    for name in ops():
        if seed(name).op in ("Const", "Parameter"):
            continue
        yield from _unreadable(name, turn)
        yield from _missing(name)
        yield from _unknown(name)
    yield from _negative_sizes()
    yield from _parameters()


def _unreadable(name: str, turn: count[int]) -> Iterator[Defect]:
    for attr in registry().ops[name].attrs:
        document = seed(name)
        layer = document.subject()
        data = data_of(layer)
        given = data.get(attr.name)
        kind = attr.kind.name
        if given is None or attr.kind in (STRING, STRINGS, SHAPE):
            continue
        if kind in BAD:
            texts = [BAD[kind][(next(turn) + n) % len(BAD[kind])] for n in range(2)]
        elif attr.kind in (INTS, FLOATS):
            if not given:
                continue
            first, _, rest = given.partition(",")
            text = BAD_LISTS[next(turn) % len(BAD_LISTS)].format(first=first, rest=rest or "1")
            texts = [text] if attr.kind is INTS else [text.replace(".7", ".7.7")]
        else:
            texts = [misspelt(given), "bogus"][: 1 + next(turn) % 2]
        for text in texts:
            document = seed(name)
            layer = document.subject()
            data = data_of(layer)
            data.set(attr.name, text)
            family = f"unreadable {'enumeration' if kind not in BAD and '[]' not in kind else kind}"
            hint = given if text == misspelt(given) and "enumeration" in family and len(given) > 3 else ""
            yield defect(family, f"{attr.name}={text!r}", document, "E307", [(data, attr.name)], [layer], says=hint)


def misspelt(word: str) -> str:
    """With two letters exchanged, or one more where that changes nothing."""
    at = len(word) // 2
    changed = word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :] if len(word) > 2 else word + "x"
    return changed if changed != word else word + word[-1]


def _missing(name: str) -> Iterator[Defect]:
    for attr in registry().ops[name].attrs:
        if attr.default is not REQUIRED:
            continue
        document = seed(name)
        layer = document.subject()
        data = data_of(layer)
        value = data.attrib.pop(attr.name)
        spots: list[Spot] = [data, layer]
        codes = "E306 W950"
        also = ("E401",) if attr.name == "with_replacement" else ()  # without it there are too few to draw
        yield defect(
            "missing required attribute",
            attr.name,
            document,
            codes,
            spots,
            [layer],
            says=attr.name,
            stale=True,
            also=also,
        )
        if len(attr.name) > 3:
            typo = misspelt(attr.name)
            data.set(typo, value)
            yield defect("misspelt attribute", typo, document, "E306 W930", [(data, typo)], [layer], says=attr.name)


def _unknown(name: str) -> Iterator[Defect]:
    names = [attr.name for attr in registry().ops[name].attrs if attr.default is not REQUIRED and len(attr.name) > 3]
    document = seed(name)
    layer = document.subject()
    data = data_of(layer)
    written = [each for each in names if each in data.attrib]
    if written:
        typo = misspelt(written[0])
        data.set(typo, data.attrib.pop(written[0]))
        yield defect(
            "misspelt attribute", typo, document, "W930 W955 E401", [(data, typo)], [layer], says=written[0], stale=True
        )
    else:
        data.set("bogus", "1")
        yield defect("unknown attribute", "bogus", document, "W930", [(data, "bogus")], [layer])
    if names:
        document = seed(name)
        layer = document.subject()
        data = data_of(layer)
        if names[0].upper() != names[0]:
            data.set(names[0].upper(), "1")
            spots: list[Spot] = [(data, names[0].upper())]
            yield defect("unknown attribute", "upper case", document, "W930", spots, [layer], says=names[0])


def _negative_sizes() -> Iterator[Defect]:
    for name in ops():
        for attribute in SIZES:
            document = seed(name)
            if not document.op or document.op == "Parameter":
                continue
            layer = document.subject()
            data = data_of(layer)
            given = data.get(attribute)
            if not given:
                continue
            _, comma, rest = given.partition(",")
            for text in (f"-1{comma}{rest}", f"0{comma}{rest}"):
                data.set(attribute, text)
                spots: list[Spot] = [(data, attribute), layer]
                yield defect("size below 1", f"{attribute}={text!r}", document, "E307 E401", spots, [layer])


def _parameters() -> Iterator[Defect]:
    names = [name for name in ops() if seed(name).layers[0].get("type") == "Parameter"]
    for number, text in enumerate(BAD_SHAPES):
        document = seed(names[7 * number])
        layer = document.layers[0]
        data = data_of(layer)
        data.set("shape", text)
        yield defect("unreadable shape", f"`{text}`", document, "E307", [(data, "shape")], [layer])
    for number, (attribute, code) in enumerate((("shape", "E306"), ("element_type", "E306"))):
        document = seed(names[9 * number + 3])
        layer = document.layers[0]
        data = data_of(layer)
        del data.attrib[attribute]
        yield defect("missing required attribute", f"{attribute} of a Parameter", document, code, [data], [layer])
    for number, text in enumerate(BAD[ELEMENT_TYPE.name]):
        document = seed(names[11 * number + 5])
        layer = document.layers[0]
        data = data_of(layer)
        data.set("element_type", text)
        spots: list[Spot] = [(data, "element_type")]
        yield defect("unreadable element type", f"`{text}` of a Parameter", document, "E307", spots, [layer])
    document = seed(names[20])
    layer = document.layers[0]
    layer.remove(data_of(layer))
    yield defect("missing required attribute", "no <data> of a Parameter", document, "E306", [layer], [layer])
