"""Defects of op signatures: opsets, op names, element types, ranks, sizes that disagree, declared ports."""

from __future__ import annotations

from collections.abc import Iterator

from corpus.attributes import misspelt
from corpus.defect import Defect, Spot, defect
from corpus.document import Document, Element, declare, inputs, outputs, shape_of
from corpus.seeds import ops, samples, seed
from irrun.spec.dtypes import ELEMENT_TYPES
from irrun.spec.op import ANY, FLOAT, INTEGER
from irrun.spec.registry import registry

PLUGIN_OPSETS = ("ie_internal_opset", "type_relaxed_opset", "util", "gpu_opset", "SnippetsOpset")
NO_OPSETS = ("opset0", "opset99", "Opset1", "opset", "", "experimental", "extension", "1", "opset1.0")


def defects() -> Iterator[Defect]:
    names = [name for name in ops() if seed(name).op != "Const" and inputs(seed(name).subject())]
    yield from _opsets(names)
    yield from _types(names)
    yield from _ranks(names)
    yield from _sizes(names)
    yield from _declared(names)


def _opsets(names: list[str]) -> Iterator[Defect]:
    for number, name in enumerate(names):
        document = seed(name)
        layer = document.subject()
        first = registry().versions(name.rpartition("-")[0])[0].version
        if first > 2:
            layer.set("version", f"opset{first - 1}")
            spots: list[Spot] = [(layer, "version")]
            yield defect("opset without the op", f"opset{first - 1}", document, "E301", spots, [layer], document.op)
            layer.set("version", f"opset{first}")
        if number % 3 == 0 and len(document.op) > 5:
            layer.set("type", misspelt(document.op))
            yield defect("op", "misspelt", document, "E301", [(layer, "type")], [layer], says=document.op)
    for name in names[::4]:
        document = seed(name)
        if int(name.rpartition("-")[2]) < 17:
            document.subject().set("version", "opset17")
            layer = document.subject()
            if layer.get("type") not in ("Convert", "ShapeOf", "Parameter"):
                yield defect("opset without the op", "opset17", document, "E301", [(layer, "version")], [layer])
    for number, version in enumerate((*PLUGIN_OPSETS, *NO_OPSETS)):
        for name in (names[11 * number % len(names)], names[(17 * number + 90) % len(names)]):
            document = seed(name)
            layer = document.subject()
            if version in registry().ops[name].extension_versions:
                continue
            layer.set("version", version)
            family = "plugin-only opset" if version in PLUGIN_OPSETS else "no opset"
            hint = "plugin" if version in PLUGIN_OPSETS[:3] else ""
            yield defect(family, f"`{version}`", document, "E301", [(layer, "version")], [layer], says=hint)


def _changeable(document: Document, layer: Element, number: int) -> bool:
    """Whether an input comes from a Parameter or a Const that nothing else reads."""
    if number >= len(inputs(layer)):
        return False
    producer, _ = document.source(layer, number)
    readers = [e for e in document.edges if e.get("from-layer") == producer.get("id")]
    return producer.get("type") in ("Parameter", "Const") and len(readers) == 1


def _types(names: list[str]) -> Iterator[Defect]:
    for name in names:
        op = registry().ops[name]
        for number, port in enumerate(op.inputs):
            document = seed(name)
            layer = document.subject()
            allowed = op.types.get(port.type, frozenset({port.type})) | op.lenient_types.get(port.type, frozenset())
            if port.type == "dynamic" or allowed == ANY or not _changeable(document, layer, number):
                continue
            options = [t for t in ("f32", "i32", "boolean", "string") if t not in allowed]
            if not options:
                continue
            wrong = options[(len(name) + number) % len(options)]
            if wrong == "string" and document.source(layer, number)[0].get("type") == "Const":
                wrong = options[0]
            if wrong == "string" and len(options) == 1 and document.source(layer, number)[0].get("type") == "Const":
                continue
            shape = shape_of(document.source(layer, number)[0][0])
            document.set_input(layer, number, shape, wrong)
            spots: list[Spot] = [inputs(layer)[number]]
            yield defect("element type", f"{wrong} as {port.name}", document, "E303", spots, [layer], wrong, stale=True)
        shared = [n for n, port in enumerate(op.inputs) if op.inputs and port.type == op.inputs[0].type]
        if len(shared) > 1 and not op.inputs[0].variadic:
            document = seed(name)
            layer = document.subject()
            last = max((n for n in shared if n < len(inputs(layer))), default=0)
            if not last or not _changeable(document, layer, last):
                continue
            given = document.source(layer, last)[0][0].get("element_type")
            allowed = op.types.get(op.inputs[0].type, frozenset())
            alike = FLOAT if given in FLOAT else INTEGER
            taken = alike if op.inputs[last].lenient else {given}
            other = next((t for t in ("f16", "i64", "i8", "f64", "u8") if t in allowed - taken), None)
            if other:
                document.set_input(layer, last, None, other)
                ports: list[Spot] = [inputs(layer)[n] for n in shared if n < len(inputs(layer))]
                yield defect("types that differ", f"{given} and {other}", document, "E303", ports, [layer], stale=True)


def _ranks(names: list[str]) -> Iterator[Defect]:
    for name in names:
        op = registry().ops[name]
        for number, port in enumerate(op.inputs):
            document = seed(name)
            layer = document.subject()
            open_ended = any(pattern.star or pattern.anything for pattern in port.patterns)
            if port.variadic or open_ended or not _changeable(document, layer, number):
                continue
            longest = max(len(pattern.head) for pattern in port.patterns)
            shape = shape_of(document.source(layer, number)[0][0])
            document.set_input(layer, number, [1] * (longest + 1 - len(shape)) + shape)
            spots: list[Spot] = [inputs(layer)[number]]
            codes = "E305 E304 E401"
            yield defect("rank", f"{longest + 1} of {port.name}", document, codes, [*spots, layer], [layer], stale=True)


def _sizes(names: list[str]) -> Iterator[Defect]:
    """A size that the specification calls by one name, in two inputs."""
    for name in names:
        op = registry().ops[name]
        places: dict[str, list[tuple[int, int]]] = {}
        for number, port in enumerate(op.inputs):
            if len(port.patterns) == 1 and not port.variadic:
                for axis, symbol in enumerate(port.patterns[0].head):
                    if isinstance(symbol, str):
                        places.setdefault(symbol, []).append((number, axis))
        for symbol, where in places.items():
            document = seed(name)
            layer = document.subject()
            where = [(n, axis) for n, axis in where if n < len(inputs(layer))]
            if len({n for n, _ in where}) < 2 or not _changeable(document, layer, where[-1][0]):
                continue
            number, axis = where[-1]
            shape = shape_of(document.source(layer, number)[0][0])
            shape[axis] += 1
            document.set_input(layer, number, shape)
            spots: list[Spot] = [layer, *(inputs(layer)[n] for n, _ in where)]
            yield defect("sizes that disagree", symbol, document, "E304 E401", spots, [layer], stale=True)


def _declared(names: list[str]) -> Iterator[Defect]:
    for turn, name in enumerate(names):
        document = seed(name)
        layer = document.subject()
        port = outputs(layer)[0] if outputs(layer) else None
        if port is None:
            continue
        sizes = [int(dim.text or 0) for dim in port]
        wrong = "FP16" if port.get("precision") != "FP16" else "I64"
        if turn % 3 == 0:
            port.set("precision", wrong)
            yield defect("declared type", wrong, document, "W932", [port, (port, "precision")], [layer])
        elif sizes and -1 not in sizes and turn % 3 == 1:
            port[-1].text = str(sizes[-1] + 1)
            yield defect("declared shape", "a size", document, "W931", [port, port[-1]], [layer], stale=False)
        elif sizes and -1 not in sizes:
            declare(port, _type(port), [*sizes, 1])
            yield defect("declared shape", "the rank", document, "W931", [port], [layer])
    for name in samples():
        document = seed(name)
        for number, layer in enumerate(document.layers):
            if layer.get("type") in ("Result", "Assign") and inputs(layer)[0].find("dim") is not None:
                document = seed(name)
                layer = document.layers[number]
                port = inputs(layer)[0]
                port[-1].text = "77"
                yield defect("declared shape", "of an input", document, "W931", [port, port[-1]], [layer])
                break
    document = seed("cnn")
    layer = document.layers[0]
    outputs(layer)[0][1].text = "9"
    port = outputs(layer)[0]
    yield defect("declared shape", "of a Parameter", document, "W931", [port, port[1]], [layer])


def _type(port: Element) -> str:
    return next(name for name, type in ELEMENT_TYPES.items() if type.precision == port.get("precision"))
