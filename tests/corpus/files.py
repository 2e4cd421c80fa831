"""Defects of files: cut short, swapped, of another kind, not XML, of another version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import openvino as ov

from corpus.defect import Defect, defect, of_file
from corpus.document import label
from corpus.seeds import SAMPLES, seed, spread

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345678\n"
HTML = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>Log in to download</body></html>\n"

FRAGMENTS = {
    "the page of ReLU": ('<layer ... type="ReLU">\n    <input>\n    </input>\n</layer>\n', {1}),
    "a lone layer": ('<layer id="1" name="r" type="ReLU" version="opset1">\n  <input/>\n</layer>\n', {1}),
    "layers alone": ('<layers>\n <layer id="1" name="r" type="ReLU" version="opset1"/>\n</layers>\n', {1}),
    "a port that is closed at once": (
        '<net version="11">\n <layers>\n  <layer id="0" name="x" type="Abs" version="opset1">\n   <input>\n'
        '    <port id="0"/>\n     <dim>1</dim>\n    </port>\n   </input>\n  </layer>\n </layers>\n</net>\n',
        {5, 7},
    ),
    "dots among attributes": (
        '<net version="11">\n <layers>\n  <layer id="0" type="TopK" ... >\n  </layer>\n </layers>\n</net>\n',
        {3},
    ),
    "dots between layers": (
        '<net version="11">\n <layers>\n  ...\n </layers>\n <edges>\n  ...\n </edges>\n</net>\n',
        {1, 2, 3},
    ),
    "attributes without quotes": (
        '<net version="11">\n <layers>\n  <layer id=0 name="x" type="Abs" version="opset1"/>\n </layers>\n</net>\n',
        {3},
    ),
}


def defects() -> Iterator[Defect]:
    yield from _swapped()
    yield from _truncated()
    yield from _other_kinds()
    yield from _not_xml()
    yield from _versions()
    yield from _execution_graphs()


def _swapped() -> Iterator[Defect]:
    for document in (seed("cnn"), seed("transformer-block"), seed("stateful-loop"), seed("LSTMCell-4")):
        yield of_file("swapped files", document.name, document.weights, document.text(), "E107")


def _truncated() -> Iterator[Defect]:
    for document in (seed("cnn"), seed("stateful-loop"), seed("If-8"), seed("LSTMSequence-5")):
        whole = document.text()
        for part in (0.05, 0.3, 0.55, 0.8, 0.97):
            xml = whole[: int(len(whole) * part)]
            last = xml.count(b"\n") + 1
            lines = {last, last - 1} if xml.endswith(b"\n") else {last}
            yield of_file("truncated .xml", f"{part:.0%} of {document.name}", xml, document.weights, "E101", lines)
    for document in (seed("cnn"), seed("transformer-block"), seed("stateful-loop"), *spread(20)):
        size = len(document.weights)
        if not size:
            continue
        for kept in sorted({0, size // 3, size - 1}):
            beyond = [
                layer
                for layer in document.all_layers()
                if layer.get("type") == "Const" and _end(layer) > kept and _length(layer)
            ]
            end = max(map(_end, beyond))
            defective = defect(
                "truncated .bin",
                f"{kept} of {size} bytes",
                document,
                "E503 E501",
                [spot for layer in beyond for spot in ((layer[0], "offset"), (layer[0], "size"))],
                beyond,
                says=str(end - kept),
            )
            yield of_file(
                defective.family,
                defective.title,
                defective.xml,
                document.weights[:kept],
                "E503 E501",
                defective.lines,
                map(label, beyond),
                defective.says,
            )
    for name in ("cnn", "Convolution-1"):
        document = seed(name)
        consts = [layer for layer in document.layers if layer.get("type") == "Const"]
        xml = document.text()
        lines = {document.lines[layer[0]] for layer in consts}
        names = [label(layer) for layer in consts]
        yield of_file("no .bin", name, xml, None, "E501", lines, names)
        yield of_file("Git LFS pointer", f".bin of {name}", xml, POINTER, "E503", lines, names)


def _end(layer: object) -> int:
    return int(layer[0].get("offset")) + _length(layer)  # type: ignore[index]


def _length(layer: object) -> int:
    return int(layer[0].get("size"))  # type: ignore[index]


def _other_kinds() -> Iterator[Defect]:
    yield of_file("not an IR", "an empty file", b"", None, "E101", {1})
    yield of_file("not an IR", "blanks", b" \n \n", None, "E101", {1, 2, 3})
    yield of_file("not an IR", "a page that asks to log in", HTML, None, "E107")
    yield of_file("Git LFS pointer", "the .xml", POINTER, None, "E107")
    yield of_file("not an IR", "JSON", b'{"model": 1}', None, "E107", {1})
    yield of_file("not an IR", "an ONNX model", b"\x08\x08\x12\x07pytorch\x1a\x052.1.0", None, "E107")
    yield of_file("not an IR", "an SVG", b'<svg xmlns="http://www.w3.org/2000/svg"/>', None, "E108", {1})
    for title, (text, lines) in FRAGMENTS.items():
        found = of_file("published fragment", title, text.encode(), None, "E101 E108 E113 E212", lines)
        others = {"dots between layers": ("W907",), "attributes without quotes": ("E212", "E302")}
        yield replace(found, also=others.get(title, ()))


def _not_xml() -> Iterator[Defect]:
    for name in ("cnn", "stateful-loop"):
        yield from _not_xml_of(name)


def _not_xml_of(name: str) -> Iterator[Defect]:
    document = seed(name)
    text = document.text().decode()
    weights = document.weights
    layer = document.find("MatMul")
    line = document.lines[layer]

    def change(title: str, old: str, new: str, codes: str, at: set[int], encoding: str = "utf-8") -> Defect:
        lines = text.split("\n")
        number = line if old in lines[line - 1] else next(n for n, each in enumerate(lines, 1) if old in each)
        lines[number - 1] = lines[number - 1].replace(old, new, 1)
        xml = "\n".join(lines).encode(encoding, "surrogateescape")
        return of_file("not well-formed", f"{title} ({name})", xml, weights, codes, at or {number})

    yield change("an attribute twice", 'type="MatMul"', 'type="MatMul" type="MatMul"', "E101", set())
    yield change("an undefined entity", 'type="MatMul"', 'type="Mat&mul;"', "E101", set())
    yield change("a bare &", 'type="MatMul"', 'type="Mat&Mul"', "E101", set())
    yield change("a bare <", 'type="MatMul"', 'type="<MatMul"', "E101", set())
    yield change("a quote missing", 'type="MatMul"', 'type="MatMul', "E101", {line, line + 1})
    yield change("no quotes", 'type="MatMul"', "type=MatMul", "E101", set())
    yield change("a NUL byte", 'type="MatMul"', 'type="Mat\0Mul"', "E101", set())
    yield change("bytes that are not UTF-8", 'type="MatMul"', 'type="Mat\udcff\udcfeMul"', "E101", set())
    lines = text.split("\n")
    closing = lines.index(lines[line - 1].split("<")[0] + "</layer>", line)
    del lines[closing]
    end = next(n for n, each in enumerate(lines, 1) if n > closing and each.strip() == "</layers>")
    broken = "\n".join(lines).encode()
    yield of_file("not well-formed", f"a </layer> missing ({name})", broken, weights, "E101", {end, line})
    last = text.count("\n") + 1
    yield of_file("two roots", name, (text + text.split("\n", 1)[1]).encode(), weights, "E106", {last})
    yield of_file("two roots", f"{name}, text after the end", (text + "end\n").encode(), weights, "E106", {last})
    yield of_file("two roots", f"{name} twice", (text + text).encode(), weights, "E101 E106", {last})
    bomb = '<?xml version="1.0"?>\n<!DOCTYPE net [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>\n'
    yield of_file("DOCTYPE", name, (bomb + text.split("\n", 1)[1]).encode(), weights, "E105", {2})


def _versions() -> Iterator[Defect]:
    for number, text in enumerate(("9", "7", "12", "0", "11.5", "ten", "", "-11", "1e1", "2021.4")):
        document = next(iter(spread(1, 17 * number)))
        document.root.set("version", text)
        yield defect("IR version", f"`{text}`", document, "E109", [(document.root, "version")])
    document = seed("cnn")
    del document.root.attrib["version"]
    yield defect("IR version", "none", document, "E109", [document.root])


@cache
def _executed(name: str) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "exec.xml"
        compiled = ov.Core().compile_model(SAMPLES / name / "model.xml", "CPU")
        ov.serialize(compiled.get_runtime_model(), path, path.with_suffix(".bin"))
        return path.read_bytes()


def _execution_graphs() -> Iterator[Defect]:
    for name in ("cnn", "transformer-block", "scatter-elements-update"):
        yield of_file("execution graph", name, _executed(name), b"", "E110", {2})
