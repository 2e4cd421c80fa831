"""Reading a model: the files, the root element and the order of the steps, which are modules of their own."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import replace
from pathlib import Path

from irrun.diagnostics import Diagnostic, IRError, limited
from irrun.files import open_regular, read_most
from irrun.ir.bodies import check_bodies, check_fed, is_body, maps_exchanged, read_maps, take_ends
from irrun.ir.collector import collector_paused
from irrun.ir.constants import check_constants
from irrun.ir.edges import connect
from irrun.ir.findings import Findings
from irrun.ir.graph import Graph, Layer, LayerBody, Model, Value
from irrun.ir.layers import BODY_TAGS, read_layers
from irrun.ir.lines import Source as Text
from irrun.ir.runtime import check_layouts_of_results
from irrun.ir.sources import Source, is_memory, opened
from irrun.ir.structure import check_structure
from irrun.ir.unread import report_texts
from irrun.ir.variables import check_pairs
from irrun.ir.weights import Content, Weights
from irrun.ir.xml import Element, parse
from irrun.spelling import blank_help

MAX_XML_BYTES = 3 << 28
"""The .xml of a large language model has 20 MB, one of a million layers some 500 MB."""

_LFS_POINTER = b"version https://git-lfs.github.com/"
_HTML = rb"(?is)\s*+(?>(?><!--.*?-->)\s*+)*+<(!doctype\s+html|html)\b"
_BLANKS = b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n"
"""What may stand before the first character: marks of encodings, zeros of UTF-16, and space."""

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
            data = _xml_text(file, _content(file) if text is None else text)
            beside = None if is_memory(file) else file.with_suffix(".bin")
            held = (beside, None) if weights is None else _weights_of(weights)
            try:
                model = _model(parse(data), file, held, findings)
            except IRError as error:
                from irrun.ir.recovery import recovered

                root, damages = recovered(data, error)
                findings = Findings()
                findings.diagnostics += damages
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
                check_fed(layer, body, findings)
                pending.append(body.graph)
        check_structure(graph, findings, connected=True)
    check_pairs(model.graph, findings)
    check_constants(_constants(model.graph), model.weights, findings)
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
    """The version of the format; 11 if it is not stated, or is wrong by what the layers are, and None if irrun does not
    read it. All are errors."""
    text = root.attributes.get("version")
    if text is None:
        wrong = next((f"`{name}` is not read; " for name in root.attributes if "version" in name.lower()), "")
        findings.add("E109", "<net> has no `version`", root, help=f'{wrong}write version="11"')
        return 11
    if (number := re.fullmatch(r"\s*\+?0{0,9}(10|11)", text, re.ASCII)) is not None:
        return int(number[1])
    first = next((layer for layers in root.findall("layers") for layer in layers.children), None)
    modern = first is not None and first.attributes.get("version", "").startswith("opset")
    help = "convert the original model again with a current OpenVINO; versions up to 9 stem from before 2020"
    if modern:
        help = "the layers name operation sets, as they do in versions 10 and 11"
        help += ': write version="11" if no later one is meant'
    findings.add("E109", f"the version is `{text}`, expected 10 or 11", root, "version", help=blank_help(text) or help)
    return 11 if modern else None


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
                told: set[Value] = set()
                exchanged = maps_exchanged(layer, findings)
                for tag, body in layer.bodies.items():
                    before = len(findings.diagnostics)
                    if not exchanged:
                        read_maps(layer, tag, body, told, findings)
                    body.lost |= exchanged
                    body.broken |= exchanged or body.graph.unsure or findings.errors_since(before)
                pending += [body.graph for body in layer.bodies.values()]
    check_pairs(main, findings)
    return main


def _graph(element: Element, owner: Layer | None, findings: Findings) -> Graph:
    graph = Graph(element, owner, rt_info=element.find("rt_info"))
    before = len(findings.diagnostics)
    if read_layers(graph, findings):
        if owner is not None:
            take_ends(graph, findings)
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
    check_constants(constants, weights, findings)
    return weights
