"""Fixes of ports: what they declare of tensors, from what is inferred, and outputs that no op gives."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

from irrun.check.fixes.place import Case
from irrun.check.fixes.words import element_type_of
from irrun.diagnostics import Fix
from irrun.ir.graph import Port, Value
from irrun.ir.text_edits import Edit
from irrun.spec.dtypes import ELEMENT_TYPES
from irrun.spec.op import Tensor


def precision(case: Case) -> Iterator[Fix]:
    """E210, W932: the type that is inferred, or the one that a word stands for."""
    known = _known(case)
    if known is not None and known[1].type != "dynamic":
        port = known[0]
        yield _typed(case, known[1].type, safe=not any(other.precision == port.precision for other in _readers(case)))
        return
    meant = element_type_of(case.element.attributes.get("precision", ""))
    if case.diagnostic.code == "E210" and meant in ELEMENT_TYPES and meant != "dynamic":
        yield _typed(case, meant)


def _typed(case: Case, type: str, *, safe: bool = True) -> Fix:
    return case.set("precision", ELEMENT_TYPES[type].precision, safe=safe)


def shape(case: Case) -> Iterator[Fix]:
    """W931: the sizes that are inferred, in the port and in those that read it and say the same.

    Where there are such, it is not this port alone that contradicts what is inferred.
    """
    known = _known(case)
    if known is None or known[1].shape is None:
        return
    port, tensor = known
    sizes = [size if isinstance(size, int) else -1 for size in tensor.shape or ()]
    ports = [port, *(other for other in _readers(case) if other.dims == port.dims)]
    edits = [case.sizes(each, sizes) for each in ports]
    if edits[0] is not None:
        listed = ", ".join(map(str, sizes))
        written = [edit for edit in edits if edit is not None]
        yield case.fix(f"declare [{listed}]", *written, safe=len(ports) == 1)


def following(case: Case) -> Iterator[Fix]:
    """I903: the type that is inferred, or the sizes where it is declared."""
    known = _known(case)
    if known is not None:
        port, tensor = known
        yield from (shape if port.precision in (None, tensor.type) else precision)(case)


def dimension(case: Case) -> Iterator[Fix]:
    """E211: the size that is inferred, else -1."""
    layer = case.layer
    ports = [*layer.input_ports, *(value.port for value in layer.outputs)] if layer else []
    port = next((port for port in ports if port.element is case.element), None)
    if port is None or case.diagnostic.span is None:
        return
    known = _known(case)
    shape = known[1].shape if known else None
    place = case.diagnostic.span.line, case.diagnostic.span.column
    data, source = case.text.source.data, case.text.source
    extent = case.text.extent(port.element)
    start = extent.inside
    for number in range(len(port.dims)):
        start = data.find(b"<dim", start, extent.close)
        if start < 0:
            return
        if source.position(start) == place:
            inside = data.index(b">", start) + 1
            whole = data[inside - 2 : inside] == b"/>"
            end = inside if whole else data.index(b"</dim", start)
            fits = shape is not None and len(shape) == len(port.dims)
            size = shape[number] if shape is not None and fits else -1
            text = str(size) if isinstance(size, int) else "-1"
            edit = Edit(start, end, f"<dim>{text}</dim>") if whole else Edit(inside, end, text)
            yield case.fix(f"write {text}", edit)
            return
        start += 1


def spare_output(case: Case) -> Iterator[Fix]:
    """E302: an output port that the op does not have, and that nobody reads; it may have had another type."""
    layer = case.layer
    value = _value(case)
    if layer is not None and value is not None and value is layer.outputs[-1] and not value.consumers:
        title, edit = f"delete output port {value.port.id}, which nobody reads", case.without(value.port.element)
        yield case.fix(title, edit, safe=not case.diagnostic.notes)


def _readers(case: Case) -> list[Port]:
    """The ports that read the output."""
    value = _value(case)
    return [layer.input_ports[number] for layer, number in value.consumers] if value is not None else []


def _value(case: Case) -> Value | None:
    outputs = case.layer.outputs if case.layer else ()
    return next((value for value in outputs if value.port.element is case.element), None)


def _known(case: Case) -> tuple[Port, Tensor] | None:
    """The port, and what is inferred of the tensor there."""
    layer = case.layer
    if layer is None or case.inference is None:
        return None
    value = _value(case)
    if value is not None:
        return value.port, case.inference.tensor(value)
    for port, source in zip(layer.input_ports, layer.inputs, strict=True):
        if port.element is case.element and source is not None:
            return port, case.inference.tensor(source)
    return None


def missing_result(case: Case) -> Iterator[Fix]:
    """E212: a Result for the only output that nobody reads."""
    layers, edges = case.graph.element.find("layers"), case.graph.element.find("edges")
    unread = [value for layer in case.graph.layers for value in layer.outputs if not value.consumers]
    if len(unread) != 1 or layers is None or edges is None or case.graph.unsure:
        return
    value = unread[0]
    id = 1 + max(layer.id for layer in case.graph.layers)
    precision = f' precision="{ELEMENT_TYPES[value.port.precision].precision}"' if value.port.precision else ""
    dims = "".join(f"<dim>{size}</dim>" for size in value.port.dims)
    name = f"{value.layer.name}/result"
    layer = (
        f'<layer id="{id}" name={quoteattr(name)} type="Result" version="opset1">'
        f'<input><port id="0"{precision}>{dims}</port></input></layer>'
    )
    edge = f'<edge from-layer="{value.layer.id}" from-port="{value.port.id}" to-layer="{id}" to-port="0" />'
    title = f"add a Result for layer {value.layer}"
    yield case.fix(title, case.last_in(layers, layer), case.last_in(edges, edge), safe=False)
