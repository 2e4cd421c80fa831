"""Reading a model: the files, the root element and the order of the steps, which are modules of their own."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from irrun.diagnostics import Diagnostic, IRError, Note, limited
from irrun.files import open_regular, read_most
from irrun.ir.bodies import check_bodies, check_fed, is_body, maps_exchanged, read_maps
from irrun.ir.collector import collector_paused
from irrun.ir.edges import connect
from irrun.ir.findings import Findings
from irrun.ir.graph import Graph, Layer, LayerBody, Model
from irrun.ir.layers import BODY_TAGS, read_layers
from irrun.ir.lines import Source as Text
from irrun.ir.runtime import check_layouts_of_results
from irrun.ir.sources import Source, is_memory, opened
from irrun.ir.structure import check_structure
from irrun.ir.unread import report_texts
from irrun.ir.weights import Blob, Content, Weights, WeightsError
from irrun.ir.xml import Element, attribute_span, parse
from irrun.records import dataclass
from irrun.spec.dtypes import ELEMENT_TYPES
from irrun.spelling import blank_help

MAX_XML_BYTES = 3 << 28
"""The .xml of a large language model has 20 MB, one of a million layers some 500 MB."""

_LFS_POINTER = b"version https://git-lfs.github.com/"
_HTML = rb"(?is)\s*+(?>(?><!--.*?-->)\s*+)*+<(!doctype\s+html|html)\b"
_BLANKS = b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n"
"""What may stand before the first character: marks of encodings, zeros of UTF-16, and space."""

_MAX_NOTED = 8
"""Constants that a diagnostic names of those whose bytes another one has."""

_BODY_PARTS = ("layers", "edges", "rt_info")


def read_model(model: Source, weights: Source | None = None) -> Model:
    """The model in an .xml file; the .bin lies beside that unless given.

    Both are paths, bytes, or files that are open for reading bytes, such as members of a zip archive. Large constants
    stay in the .bin, which is memory-mapped where it is a file.

    Raises IRError with all its errors, OSError where an open file cannot be read, TypeError for anything else.

    >>> from pathlib import Path
    >>> import irrun
    >>> content = Path("samples/cnn/model.xml").read_bytes()
    >>> with open("samples/cnn/model.bin", "rb") as weights:
    ...     model = irrun.read_model(content, weights)
    >>> model.outputs
    (TensorInfo('probabilities', f32[?, 10]),)
    """
    path, content = opened(model, "model")
    found, diagnostics = read(path, weights, content)
    errors = [found for found in diagnostics if found.severity == "error"]
    if errors or found is None:
        raise IRError(errors)
    return found


def read(
    path: str | os.PathLike[str],
    weights: Source | None = None,
    content: Content | None = None,
) -> tuple[Model | None, list[Diagnostic]]:
    """The model as far as it can be read, None if not at all, and what is wrong with it, by line.

    `content` is the text of the .xml where it does not lie at `path`. Weights lie beside it unless given; a text from
    memory has none beside it.

    Raises nothing for a bad model or file. What is at fault is empty in the model: an input whose edge leads nowhere is
    None, a missing attribute of a layer "", a bad id -1.
    """
    findings = Findings()
    model = None
    file = Path(path)
    text = None if content is None else bytes(content)
    try:
        with collector_paused():
            root = parse(_xml_text(file, _content(file) if text is None else text))
            beside = None if is_memory(file) else file.with_suffix(".bin")
            held = (beside, None) if weights is None else _weights_of(weights)
            model = _model(root, file, held, findings)
            if model is not None:
                model.content = text
    except IRError as error:
        findings.diagnostics += error.diagnostics
    found = [replace(diagnostic, file=str(file)) for diagnostic in limited(findings.diagnostics)]
    return model, sorted(found, key=lambda diagnostic: (diagnostic.line or 0, diagnostic.column or 0))


def check_form(model: Model) -> list[Diagnostic]:
    """What is wrong with the form of a model that was edited, as reading its files would say."""
    findings = Findings(model.version)
    pending = [model.graph]
    while pending:
        graph = pending.pop()
        for layer in graph.layers:
            for number, value in enumerate(layer.inputs):
                if value is None:
                    message = f"nothing is connected to input {number}"
                    findings.add("E208", message, layer.element, layer=layer, help="connect it, or remove the input")
            for body in layer.bodies.values():
                check_fed(body, findings)
                pending.append(body.graph)
        check_structure(graph, findings, connected=True)
    _check_constants(_constants(model.graph), model.weights, findings)
    return limited(findings.diagnostics)


def _weights_of(source: Source) -> tuple[Path, Content | None]:
    try:
        return opened(source, "weights")
    except OSError as error:
        raise _refusal("E502", f"the weights cannot be read: {error.strerror or error}") from None


def _content(path: Path) -> bytes:
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise _refusal("E103", f"`{path}` is a directory, not an .xml file")
        if not stat.S_ISREG(status.st_mode):
            raise _refusal("E103", f"`{path}` is not a regular file")
        if path.suffix.lower() == ".bin" and status.st_size:
            raise _refusal("E107", f"`{path}` holds the weights of a model", f"give `{path.with_suffix('.xml').name}`")
        if status.st_size > MAX_XML_BYTES:
            raise _refusal("E104", f"`{path}` has {status.st_size:,} bytes, more than {MAX_XML_BYTES:,}")
        with open_regular(path) as file:
            data = read_most(file, MAX_XML_BYTES + 1)
    except FileNotFoundError:
        raise _refusal("E102", f"there is no file `{path}`") from None
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise _refusal("E103", f"`{path}` cannot be read: {reason}") from None
    return data


def _xml_text(path: Path, data: bytes) -> bytes:
    """`data` if it looks like XML of a size that can be read."""
    if len(data) > MAX_XML_BYTES:
        raise _refusal("E104", f"`{path}` has more than {MAX_XML_BYTES:,} bytes")
    start = data[:1024].lstrip(_BLANKS)[:1]
    foreign = _foreign(data[:1024])
    if foreign is not None:
        raise _refusal("E107", f"`{path}` is {foreign[0]}, not a model", foreign[1])
    if start == b"<":
        return data
    from irrun.ir.malformed import mistaken

    other = mistaken(data[:1024])
    if other is not None:
        raise _refusal("E107", f"`{path}` is {other[0]}, not the .xml of an IR", other[1])
    if start and not re.search(rb"<net\b", data):
        help = "the model file of an IR is the .xml, whose first character is <"
        raise IRError([Diagnostic("E107", f"`{path}` is not XML", Text(data).span(data.find(start)), help=help)])
    return data


def _foreign(head: bytes) -> tuple[str, str] | None:
    """What stands in place of a file that begins so, where that often happens, and what to do."""
    if head.startswith(_LFS_POINTER):
        return "a Git LFS pointer", "fetch the file that it stands for: git lfs pull"
    if b"html" in head.lower() and re.match(_HTML, head):
        help = "the download led to a page instead of the file: a log-in, an error, or the site's view of the file"
        return "an HTML page", help
    return None


def _refusal(code: str, message: str, help: str | None = None) -> IRError:
    return IRError([Diagnostic(code, message, help=help)])


def _model(root: Element, path: Path, held: tuple[Path | None, Content | None], findings: Findings) -> Model | None:
    if root.tag.lower() == "net" != root.tag:
        help = "OpenVINO ignores the case of this element, other readers of the file do not"
        findings.add("W908", f"the root is written <{root.tag}>, but is spelt <net> in an IR", root, help=help)
    elif root.tag != "net":
        help = "an IR is one <net> that holds <layers> and <edges>"
        if root.tag in ("layer", "layers"):
            help += "; samples on OpenVINO's operation specification pages are only fragments of one"
        findings.add("E108", f"the root element is <{root.tag}>, expected <net>", root, help=help)
        return None
    version = _version(root, findings)
    if version is None:
        return None
    findings.version = version
    graph = _graphs(root, findings)
    report_texts(root, findings)
    if _is_execution_graph(graph):
        help = (
            "use the model that was compiled; `irrun inspect` tells what this file says, which is how a device ran it"
        )
        findings.diagnostics.clear()
        findings.add("E110", "this is an execution graph, which cannot be run", root, help=help)
        return Model(root.attributes.get("name", ""), version, graph, Weights(None), path, _legacy(root))
    weights = _weights(*held, graph, findings)
    if root.find("pre-process") is not None:
        from irrun.ir.means import check_means  # files of former years have them

        check_means(root, graph, weights, findings)
    return Model(root.attributes.get("name", ""), version, graph, weights, path, _legacy(root))


def _version(root: Element, findings: Findings) -> int | None:
    """The version of the format; 11 if it is not stated, and None if irrun does not read it. Both are errors."""
    text = root.attributes.get("version")
    if text is None:
        wrong = next((f"`{name}` is not read; " for name in root.attributes if "version" in name.lower()), "")
        findings.add("E109", "<net> has no `version`", root, help=f'{wrong}write version="11"')
        return 11
    if (number := re.fullmatch(r"\s*\+?0{0,9}(10|11)", text, re.ASCII)) is not None:
        return int(number[1])
    help = (
        blank_help(text)
        or "convert the original model again with a current OpenVINO; versions up to 9 stem from before 2020"
    )
    findings.add("E109", f"the version is `{text}`, expected 10 or 11", root, "version", help=help)
    return None


def _legacy(root: Element) -> list[Element]:
    return [child for child in root.children if child.tag not in _BODY_PARTS]


def _graphs(root: Element, findings: Findings) -> Graph:
    """The graph of the model; those of its bodies hang in its layers."""
    main = _graph(root, None, findings)
    check_layouts_of_results(main, findings)
    pending = [main]
    while pending:
        graph = pending.pop()
        for layer in graph.layers:
            check_bodies(layer, findings)
            for child in () if layer.element.deferred else layer.element.children:
                if child.tag in BODY_TAGS and child.tag not in layer.bodies and is_body(child.tag, layer):
                    layer.bodies[child.tag] = LayerBody(_graph(child, layer, findings))
            if layer.bodies:
                before = len(findings.diagnostics)
                for tag, body in () if maps_exchanged(layer, findings) else layer.bodies.items():
                    read_maps(layer, tag, body, findings)
                pending += [body.graph for body in layer.bodies.values()]
                layer.broken |= findings.errors_since(before) or any(
                    body.graph.unsure for body in layer.bodies.values()
                )
    return main


def _graph(element: Element, owner: Layer | None, findings: Findings) -> Graph:
    graph = Graph(element, owner, rt_info=element.find("rt_info"))
    before = len(findings.diagnostics)
    if read_layers(graph, findings):
        connect(graph, findings)
        check_structure(graph, findings, connected=not findings.errors_since(before))
    return graph


def _is_execution_graph(graph: Graph) -> bool:
    return any(not layer.version and "execTimeMcs" in layer.attributes for layer in graph.layers)


def _constants(graph: Graph) -> list[Layer]:
    """The Const layers of the graph and of the bodies in it, to any depth."""
    found: list[Layer] = []
    pending = [graph]
    while pending:
        for layer in pending.pop().layers:
            if layer.type == "Const":
                found.append(layer)
            if layer.bodies:
                pending.extend(body.graph for body in layer.bodies.values())
    return found


def _weights(path: Path | None, content: Content | None, graph: Graph, findings: Findings) -> Weights:
    constants = _constants(graph)
    try:
        weights = Weights(path, content)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        findings.diagnostics.append(Diagnostic("E502", f"`{path}` cannot be read: {reason}"))
        return Weights(None)
    foreign = _foreign(weights.head()) if constants and weights.size else None
    if foreign is not None:  # of which no Const is to be read, though all may lie inside
        layer, (what, help) = constants[0], foreign
        message = f"`{weights.path}` is {what}, not the weights"
        findings.add("E503", message, layer.data or layer.element, "offset", layer=layer, help=help)
        return Weights(None)
    _check_constants(constants, weights, findings)
    return weights


def _check_constants(constants: list[Layer], weights: Weights, findings: Findings) -> None:
    faults = [(layer, fault) for layer in constants if (fault := _check_constant(layer, weights, findings))]
    _warn_of_overlaps(constants, weights, findings)
    for code in ("E501", "E503"):
        _report_together([pair for pair in faults if pair[1].code == code], weights, findings)


def _check_constant(layer: Layer, weights: Weights, findings: Findings) -> WeightsError | None:
    """Report what is wrong with a Const; what may have one cause for many of them, the .bin itself, is returned."""
    try:
        blob = weights.check(layer)
    except WeightsError as error:
        if error.code in ("E501", "E503"):
            return error
        findings.add(error.code, str(error), layer.data or layer.element, error.attribute, layer=layer, help=error.help)
        return None
    if blob.size > blob.needed:
        _warn_of_excess(layer, blob, weights, findings)
    return None


def _report_together(errors: list[tuple[Layer, WeightsError]], weights: Weights, findings: Findings) -> None:
    """One diagnostic for all Consts that miss the .bin, or its end; at the first of them."""
    if not errors:
        return
    layer, error = errors[0]
    message, help, path = str(error), error.help, weights.path
    if error.code == "E501":
        count = "1 Const has its data" if len(errors) == 1 else f"{len(errors)} Consts have their data"
        message = f"there is no `{path}`, where {count}" if path else f"no weights are given, where {count}"
        help = "put the .bin beside the .xml under the same name, or say where it is"
        help = help if path else "give its .bin, too, as a path (--bin on the command line), bytes or an open file"
    elif len(errors) > 1:
        worst = max(errors, key=lambda pair: pair[1].missing)[1]
        message = f"{len(errors)} Consts lie beyond the end of `{path}`, which lacks {worst.missing} bytes"
        help = "is it this model's .bin, and was it downloaded or copied to its end?"
    findings.add(error.code, message, layer.data or layer.element, error.attribute, layer=layer, help=help)


def _warn_of_overlaps(constants: list[Layer], weights: Weights, findings: Findings) -> None:
    """One warning for each Const that has bytes of others, at the one that has likely moved: equal blobs are one on
    purpose."""
    overlaps = list(_overlaps(constants, weights))
    counts = Counter(layer for overlap in overlaps for layer in overlap.pair)
    found: dict[Layer, list[_Overlap]] = {}
    for overlap in overlaps:
        most = max(overlap.pair, key=counts.__getitem__)
        sure = most.data is not None and counts[most] > min(counts[layer] for layer in overlap.pair)
        at = most if sure else overlap.moved
        found.setdefault(at, []).append(overlap)
        for layer in overlap.pair:
            weights.doubtful.setdefault(layer, at)
    for layer, shared in found.items():
        assert layer.data is not None
        others = [one if other is layer else other for one, other in (overlap.pair for overlap in shared)]
        notes = [
            Note(f"the bytes of layer {other}", attribute_span(other.data or other.element, "offset"))
            for other in others[:_MAX_NOTED]
        ]
        start, end = min(overlap.start for overlap in shared), max(overlap.end for overlap in shared)
        listed = f"layer {others[0]}" if len(others) == 1 else f"layers {', '.join(map(str, others[:_MAX_NOTED]))}"
        more = f" and {len(others) - _MAX_NOTED} more" if len(others) > _MAX_NOTED else ""
        message = f"bytes {start} to {end} are also those of {listed}{more}"
        which = "one of the two" if len(others) == 1 else "one of them, likely this one,"
        help = f"{which} has a wrong `offset` or shape; only equal constants share their bytes, whole"
        findings.add("W909", message, layer.data, "offset", layer=layer, help=help, notes=tuple(notes))


@dataclass(frozen=True, slots=True)
class _Overlap:
    """Bytes from `start` to `end` that two Consts share; where they lie tells which of them has `moved`."""

    pair: tuple[Layer, Layer]
    moved: Layer
    start: int
    end: int


def _overlaps(constants: list[Layer], weights: Weights) -> Iterator[_Overlap]:
    blobs = [
        (blob.offset, -blob.end, layer) for layer in constants if (blob := weights.checked(layer)) and blob.elements
    ]
    last: tuple[int, int, Layer] | None = None
    free = 0  # bytes before the last one that nobody has
    for offset, end, layer in sorted(blobs, key=lambda blob: blob[:2]):
        if last and offset < last[1] and (offset, -end) != last[:2] and layer.data:
            moved, other = layer, last[2]
            odd, odd_before = _is_odd(layer, weights), _is_odd(other, weights)
            if other.data and (odd_before > odd or (free == last[1] - offset and odd_before >= odd)):
                moved = other
            yield _Overlap((layer, other), moved, offset, min(-end, last[1]))
        if last is None or -end > last[1]:
            free = max(offset - (last[1] if last else 0), 0)
            last = offset, -end, layer


def _is_odd(layer: Layer, weights: Weights) -> bool:
    """Whether a Const begins where no array of such elements does that a converter has written."""
    blob = weights.checked(layer)
    return blob is not None and blob.offset % max(ELEMENT_TYPES[blob.element_type].bits // 8, 1) != 0


def _warn_of_excess(layer: Layer, blob: Blob, weights: Weights, findings: Findings) -> None:
    read = weights.read_bytes(blob)
    if blob.size > max(read, 1) and layer.data:  # OpenVINO writes a byte for a tensor without elements
        message = f"`size` is {blob.size} bytes, but {blob.elements} elements of {blob.element_type} take {read}"
        help = "OpenVINO ignores the rest; a shape or an element type may be wrong"
        findings.add("W905", message, layer.data, "size", layer=layer, help=help)
        weights.doubtful[layer] = layer
