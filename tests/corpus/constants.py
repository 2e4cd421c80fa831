"""Defects of constants: their <data> against themselves, their shape, their type and the .bin."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from corpus.defect import Defect, Spot, defect
from corpus.document import Document, Element, data_of, declare, outputs, shape_of
from corpus.seeds import ops, samples, seed

BAD_NUMBERS = ("abc", "-1", "1.5", "", "0x10", "1 2", "99999999999999999999999", "4 bytes")
BAD_SHAPES = ("[2,3]", "2;3", "-1,2", "?", "2,,3", "2 3", "1.0", "2..3", "...", "{2}")
BAD_TYPES = ("F32", "FP32", "float", "dynamic", "", "int64", "f23", "undefined", "BOOL", "i64 ")


def defects() -> Iterator[Defect]:
    names = [*samples(), *(name for name in ops() if seed(name).op not in ("", "Const"))]
    models = [name for name in names if any(_size(layer) >= 8 for layer in _consts(seed(name)))]
    yield from _numbers(models)
    yield from _places(models)
    yield from _sizes(models)
    yield from _overlaps(models)
    yield from _other(models)
    yield from _strings()


def _consts(document: Document) -> list[Element]:
    return [layer for layer in document.all_layers() if layer.get("type") == "Const"]


def _size(layer: Element) -> int:
    return int(data_of(layer).get("size", 0))


def _chosen(models: list[str], number: int) -> tuple[Document, Element, Element]:
    document = seed(models[number % len(models)])
    large = [layer for layer in _consts(document) if _size(layer) >= 8]
    layer = large[number % len(large)]
    return document, layer, data_of(layer)


def _numbers(models: list[str]) -> Iterator[Defect]:
    for number, text in enumerate(BAD_NUMBERS):
        for attribute in ("offset", "size"):
            document, layer, data = _chosen(models, 7 * number + (attribute == "size"))
            data.set(attribute, text)
            title = f"{attribute}={text!r}"
            yield defect("unreadable number of a Const", title, document, "E506", [(data, attribute)], [layer])
    for number, text in enumerate(BAD_SHAPES):
        document, layer, data = _chosen(models, 5 * number + 1)
        data.set("shape", text)
        yield defect("unreadable shape of a Const", f"`{text}`", document, "E506", [(data, "shape")], [layer])
    for number, text in enumerate(BAD_TYPES):
        document, layer, data = _chosen(models, 9 * number + 2)
        data.set("element_type", text)
        spots: list[Spot] = [(data, "element_type")]
        yield defect("unknown element type of a Const", f"`{text}`", document, "E508", spots, [layer])
    for number in range(8):
        attribute = ("element_type", "shape", "offset", "size")[number % 4]
        document, layer, data = _chosen(models, 11 * number + 3)
        del data.attrib[attribute]
        yield defect("incomplete Const", attribute, document, "E505", [data], [layer], says=attribute)
    document, layer, data = _chosen(models, 30)
    layer.remove(data)
    yield defect("incomplete Const", "no <data>", document, "E505", [layer], [layer])


def _places(models: list[str]) -> Iterator[Defect]:
    for number in range(12):
        document, layer, data = _chosen(models, 6 * number)
        if number % 2:
            data.set("offset", str(len(document.weights) - _size(layer) + 3))
            yield defect(
                "past the end", "by 3 bytes", document, "E503", [(data, "offset"), (data, "size")], [layer], "3"
            )
        else:
            data.set("offset", str(10**9))
            yield defect("past the end", "far away", document, "E503", [(data, "offset"), (data, "size")], [layer])


def _sizes(models: list[str]) -> Iterator[Defect]:
    for number in range(12):
        document, layer, data = _chosen(models, 8 * number + 1)
        size = _size(layer)
        data.set("size", str(size - 1 if number % 2 else size // 2))
        spots: list[Spot] = [(data, "size"), (data, "shape")]
        yield defect("Const too small", "size", document, "E504", spots, [layer], says=str(size))
    for number in range(12):
        document, layer, data = _chosen(models, 8 * number + 2)
        data.set("shape", f"2,{data.get('shape')}" if data.get("shape") else "2")
        spots = [(data, "size"), (data, "shape")]
        yield defect("Const too small", "for its shape", document, "E504", spots, [layer], stale=True)
    for number in range(6):
        document, layer, data = _chosen(models, 8 * number + 3)
        if data.get("element_type") not in ("f32", "i32"):
            continue
        data.set("element_type", "f64")
        spots = [(data, "size"), (data, "shape"), (data, "element_type")]
        yield defect("Const too small", "for its type", document, "E504", spots, [layer], stale=True)
    for number in range(12):
        document, layer, data = _chosen(models, 8 * number + 4)
        sizes = shape_of(data)
        if not sizes or sizes[0] < 2:
            continue
        data.set("shape", ",".join(map(str, [sizes[0] - 1, *sizes[1:]])))
        spots = [(data, "size"), (data, "shape")]
        yield defect("Const too large", "for its shape", document, "W905 E511", spots, [layer], stale=True)
    for number in range(12):
        document, layer, data = _chosen(models, 8 * number + 5)
        narrow = {"f32": "f16", "i64": "i32", "f64": "f32"}.get(data.get("element_type", ""))
        shared = sum(data_of(each).get("offset") == data.get("offset") for each in _consts(document)) > 1
        if narrow is None or shared:  # of equal constants that share their bytes one would overlap the other
            continue
        data.set("element_type", narrow)
        spots = [(data, "size"), (data, "element_type")]
        yield defect("Const too large", "for its type", document, "W905 E511", spots, [layer], stale=True)
    for number in range(6):
        document, layer, data = _chosen(models, 8 * number + 6)
        document.weights += bytes(8)
        data.set("size", str(_size(layer) + 1))
        if int(data.get("offset", 0)) + _size(layer) <= len(document.weights):
            yield defect("Const too large", "size", document, "W905", [(data, "size")], [layer])


def _overlaps(models: list[str]) -> Iterator[Defect]:
    """An offset that is wrong by a few bytes: the blob then has bytes of its neighbour."""
    for number in range(0, 90, 3):
        document, layer, data = _chosen(models, number)
        blobs = {(int(data_of(each).get("offset", 0)), _size(each)) for each in _consts(document)}
        offset, size = int(data.get("offset", 0)), _size(layer)
        after = offset + size
        neighbours = [
            each for each in _consts(document) if int(data_of(each).get("offset", 0)) == after and _size(each)
        ]
        same = [each for each in _consts(document) if data_of(each).get("offset") == data.get("offset")]
        if not neighbours or len(same) > 1 or (after, 0) in blobs:
            continue
        shift = 1 if number % 2 else 4
        if after + shift > len(document.weights):
            continue
        data.set("offset", str(offset + shift))
        spots: list[Spot] = [(data, "offset"), *((data_of(each), "offset") for each in neighbours)]
        yield defect("overlapping Consts", "a shifted offset", document, "W909 E511", spots, [layer, *neighbours])


def _other(models: list[str]) -> Iterator[Defect]:
    for number in range(8):
        document, layer, data = _chosen(models, 10 * number + 5)
        data.set("value", ("1.0", "0", "1,2,3", "")[number % 4])
        yield defect("inline value", f"`{data.get('value')}`", document, "E507", [(data, "value")], [layer])
    for number in range(10):
        document, layer, _ = _chosen(models, 9 * number + 4)
        layer.set("type", "Constant" if number % 3 else "constant")
        yield defect('type="Constant"', "", document, "E217", [(layer, "type")], [layer], says="Const")
    for number in range(3):
        document, layer, _ = _chosen(models, 9 * number + 6)
        layer.set("type", "const")
        yield defect('type="Constant"', "const", document, "E217 E301", [(layer, "type")], [layer], says="Const")


def _table(*strings: bytes, number: int | None = None, ends: list[int] | None = None, begin: int = 0) -> bytes:
    """Strings as a .bin holds them; `number` and `ends` state something else."""
    total, right = 0, []
    for string in strings:
        total += len(string)
        right.append(total)
    words = [len(strings) if number is None else number, begin, *(right if ends is None else ends)]
    return struct.pack(f"<{len(words)}i", *words) + b"".join(strings)


def _strings() -> Iterator[Defect]:
    broken = {
        "more strings than the shape": (_table(b"ab", b"c", number=3), "E510"),
        "fewer strings than the shape": (_table(b"ab", b"c", number=1), "E510"),
        "a negative number of strings": (_table(b"ab", b"c", number=-1), "E510"),
        "an end before its begin": (_table(b"ab", b"c", ends=[2, 1]), "E509"),
        "an end past the blob": (_table(b"ab", b"c", ends=[2, 300]), "E509"),
        "a first that begins late": (_table(b"ab", b"c", begin=1), "E509"),
        "not UTF-8": (_table(b"\xff\xfe", b"c"), "E509"),
        "a cut table": (_table(b"ab", b"c")[:10], "E504"),
    }
    for title, (content, code) in broken.items():
        document, layer, data = _string_model()
        document.write(data, content)
        spots: list[Spot] = [data, *((data, name) for name in data.attrib)]
        yield defect("damaged strings", title, document, code, spots, [layer])


def _string_model() -> tuple[Document, Element, Element]:
    """Two strings that a Result returns."""
    document = seed("StringTensorUnpack-15")
    layer, _ = document.source(document.subject())
    layer.set("type", "Const")
    data = data_of(layer)
    data.attrib.clear()
    data.attrib.update(element_type="string", shape="2")
    declare(outputs(layer)[0], "string", [2])
    for port in document.root.iter("port"):
        for dim in list(port):
            port.remove(dim)
    return document, layer, data
