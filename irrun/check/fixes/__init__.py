"""What mends the diagnostics of a model: a table of codes, with the functions that propose changes of the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import replace

from irrun.check.fixes import constants, port_maps, ports, wiring, words
from irrun.check.fixes.markup import markup
from irrun.check.fixes.place import Case, Text
from irrun.check.validate import Report
from irrun.diagnostics import Diagnostic, Fix, LayerName, Span
from irrun.ir.graph import Layer
from irrun.ir.lines import Source
from irrun.ir.sources import is_memory
from irrun.ir.xml import Element, as_utf8
from irrun.records import NamedTuple

MAX_FIXED = 5000
"""Diagnostics of one model for which fixes are looked for."""

_MARKUP = ("E101", "E105", "E106", "E107")
STALE = ("I903", "W931", "W932", "W904")
"""What may only be the consequence of an error that is there as well, and is not looked at until that is mended."""

CONNECTING = ("E201", "E202", "E203", "E204", "E205", "E206", "E207", "E208", "E213", "E214", "E215", "E218", "E226")
"""What is mended by connecting layers, to what seems to be meant."""

_PROMISED = ("W931", "W932", "I903")
"""What is mended by declaring what is inferred, which is right where the port alone is wrong."""

_AGAINST = ("W950", "W951", "W953", "W954", "E511")
"""What tells of a layer that it may be other than was meant, so that its ports may tell the truth."""

_DOUBTS = ("W901", "W902", "W905", "W909", "W910", "W930", "W955")
"""What a model may not compute what was meant for; ports that contradict it then tell the truth."""


def _identified(case: Case) -> Iterator[Fix]:
    """E201, E202, E204: what is at fault tells which kind of id it is."""
    tag = case.element.tag
    if case.attribute is not None and case.diagnostic.code == "E201":
        yield from words.misspelt_attribute(case)
    elif tag == "port":
        yield from wiring.port_id(case)
    elif tag == "edge" and case.layer is None:
        yield from wiring.edge_end(case)
    elif tag in ("input", "output", "edge"):
        yield from port_maps.mapped_end(case)
    elif tag == "layer" and (case.attribute or "id") == "id" and "`id`" in case.diagnostic.message:
        yield from wiring.layer_id(case)
    elif tag == "layer" and case.diagnostic.code == "E201":
        yield from wiring.layer_attribute(case)


def _mapped(case: Case) -> Iterator[Fix]:
    """E213, E215: an end that leads nowhere, or an entry that is missing."""
    if case.element.tag == "port" or "no <input>" in case.diagnostic.message:
        yield from port_maps.missing_entry(case)
    elif "second back edge" in case.diagnostic.message:
        yield from port_maps.doubled_entry(case)
    else:
        yield from port_maps.mapped_end(case)


def _declared(case: Case) -> Iterator[Fix]:
    """W931, W932: edges that lead elsewhere, where these seem to be at fault; else what is declared."""
    if case.inference is not None and case.diagnostic.span in case.inference.rewired:
        yield from wiring.other_edges(case, case.inference.rewired[case.diagnostic.span])
    else:
        yield from (ports.shape if case.diagnostic.code == "W931" else ports.precision)(case)


def _contradicting(case: Case) -> Iterator[Fix]:
    """E310: edges that lead elsewhere, where these seem to be at fault; else the attribute."""
    if case.inference is not None and case.diagnostic.span in case.inference.rewired:
        yield from wiring.other_edges(case, case.inference.rewired[case.diagnostic.span])
    else:
        yield from words.as_declared(case)


PROPOSALS: dict[str, Callable[[Case], Iterator[Fix]]] = {
    "I903": ports.following,
    "E109": wiring.missing_version,
    "E111": wiring.misspelt_part,
    "E112": wiring.misspelt_part,
    "E201": _identified,
    "E202": _identified,
    "E203": wiring.doubled_layer_id,
    "E204": _identified,
    "E205": wiring.edge_end,
    "E206": wiring.edge_end,
    "E207": wiring.second_edge,
    "E208": wiring.missing_edge,
    "E210": ports.precision,
    "E211": ports.dimension,
    "E212": ports.missing_result,
    "E213": _mapped,
    "E214": port_maps.doubled_entry,
    "E215": _mapped,
    "E217": words.respelled_type,
    "E218": port_maps.missing_entry,
    "E219": words.misspelt_variable,
    "E220": wiring.misspelt_element,
    "E221": words.respelled_type,
    "E225": words.lost_output,
    "E226": wiring.shifted_ids,
    "E301": words.unknown_op,
    "E302": ports.spare_output,
    "E303": words.suspected_attribute,
    "E304": words.suspected_attribute,
    "E305": words.suspected_attribute,
    "E306": words.missing_attribute,
    "E307": words.unreadable_value,
    "E310": _contradicting,
    "E401": words.suspected_attribute,
    "E503": constants.constant,
    "E504": constants.constant,
    "E505": constants.constant,
    "E506": constants.constant,
    "E508": constants.constant,
    "W901": words.stray_data,
    "W902": words.stray_attribute,
    "W903": wiring.doubled_name,
    "W904": wiring.unreachable_layer,
    "E511": constants.doubted,
    "W905": constants.excess,
    "W906": wiring.doubled_tensor_name,
    "W907": wiring.unread_element,
    "W908": words.respelled_word,
    "W909": constants.overlap,
    "W910": port_maps.renumbered_outputs,
    "W930": words.unread_attribute,
    "W931": _declared,
    "W932": _declared,
    "W955": words.demanded_attribute,
}
"""The likeliest change comes first; where another one would do as well, none of them is safe."""


def with_fixes(report: Report) -> Report:
    """The report with `fixes` on those of its diagnostics that the text of the .xml can be changed for.

    Of a text that is not well-formed only that is mended. Of declared ports and unreachable layers nothing is proposed
    while there are errors, or edges that seem to be meant for other ports, which may have led to them.
    """
    if not report.diagnostics:
        return report
    if report.model is None or any(found.code in _MARKUP for found in report.diagnostics):
        return replace(report, diagnostics=_of_markup(report))
    text = Text(report.model)
    suspected = _suspected(report)
    mended = [
        _of_model(report, text, found, suspected) if number < MAX_FIXED else found
        for number, found in enumerate(report.diagnostics)
    ]
    if any(found.code in _DOUBTS and not all(fix.safe for fix in found.fixes) for found in mended):
        mended = [_doubtful(found) if found.code in STALE else found for found in mended]
    return replace(report, diagnostics=mended)


class _Suspected(NamedTuple):
    """What speaks for it that ports which are not as inferred tell the truth: `layers` and places of such, and whether
    an edge may be wrong, so that a layer is `lost`."""

    layers: Set[LayerName | None]
    places: Set[Span | None]
    lost: bool

    def holds(self, found: Diagnostic, layer: Layer | None, port: Element) -> bool:
        """Whether something speaks for what a port declares."""
        if found.code == "I903" or found.layer in self.layers or (layer is not None and layer.span in self.places):
            return True
        return self.lost and layer is not None and any(port is each.element for each in layer.input_ports)


def _suspected(report: Report) -> _Suspected:
    layers = {found.layer for found in report.diagnostics if found.code in _AGAINST}
    places = {note.span for found in report.diagnostics if found.code == "I903" for note in found.notes}
    return _Suspected(layers, places, any(found.code == "W904" for found in report.diagnostics))


def _doubtful(found: Diagnostic) -> Diagnostic:
    return replace(found, fixes=tuple(fix._replace(safe=False) for fix in found.fixes))


def _of_markup(report: Report) -> list[Diagnostic]:
    if report.content is None and is_memory(report.path):
        return report.diagnostics
    if not any(found.code in _MARKUP for found in report.diagnostics):
        return report.diagnostics
    source = Source(as_utf8(report.content if report.content is not None else report.path.read_bytes()))
    fixes = markup(source)
    return [replace(found, fixes=fixes(found)) if found.code in _MARKUP else found for found in report.diagnostics]


def _of_model(report: Report, text: Text, found: Diagnostic, suspected: _Suspected) -> Diagnostic:
    propose = PROPOSALS.get(found.code)
    model = report.model
    if propose is None or model is None or found.span is None:
        return found
    if found.code != "E226" and any(each.code == "E226" for each in report.diagnostics):  # by other ids
        return found
    rewired = report.inference.rewired if report.inference else {}
    if found.code in STALE and (report.errors or (rewired and found.span not in rewired)):
        return found
    element, attribute = text.at(found.span)
    layer, graph = text.home(element)
    case = Case(found, model, report.inference, text, element, attribute, layer, graph)
    mended = replace(found, fixes=tuple(propose(case)))
    return _doubtful(mended) if found.code in _PROMISED and suspected.holds(found, layer, element) else mended
