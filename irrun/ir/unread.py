"""Elements and attributes that nothing reads, wherever they stand in a file but on a layer's <data>; and words that
readers of IR compare in one case only."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from irrun.diagnostics import IRError, counted
from irrun.ir.findings import Findings
from irrun.ir.graph import Graph, Layer
from irrun.ir.xml import Element
from irrun.spelling import advice, close_matches, code_point

NET_ATTRIBUTES = frozenset({"name", "version"})
PORT_ATTRIBUTES = frozenset({"id", "precision", "names"})
INPUT_ATTRIBUTES = PORT_ATTRIBUTES - {"names"}
"""Of ports that make tensors, which have names, and of those that read them."""
EDGE_ATTRIBUTES = frozenset({"from-layer", "from-port", "to-layer", "to-port"})
ENTRY_ATTRIBUTES = frozenset(
    {"external_port_id", "internal_layer_id", "axis", "start", "end", "stride", "part_size", "purpose"}
)

_MARKS = {
    "layer": (("id", "type", "name", "version"), 2),
    "edge": (("from-layer", "to-layer", "from-port", "to-port"), 4),
    "port": (("id", "precision"), 1),
}
"""The attributes by which an element of another tag is known for a member of a list, and how many will do for one
whose tag is near."""

_TOKEN = rb"""(?s)<!--.*?-->|<!\[CDATA\[.*?]]>|<\?.*?\?>|<(?:[^<>"']+|"[^"]*"|'[^']*')*>"""
_DIM = rb"<dim"
"""How a tag begins in which text stands, or that is reported as it is like that one."""

DELETE_TEXT = "delete text"
"""What mends a text where none is read."""

MOVE = "move"
"""What mends a port or a size that is not read where it stands: a port elsewhere lacks it."""

_MERGED = r"(?:={7}|>{7} .*|\|{7} .*)\Z"
"""Lines that git writes around two versions of a part of a file, behind the first one of them."""

_GRAPH = ("layers", "edges", "rt_info")
_OF_OLD_TOOLS = {
    "meta_data",
    "framework_meta",
    "quantization_parameters",
    "pre-process",
    "statistics",
    "cli_parameters",
}
"""Children of <net> that converters and tools of former years write."""
_OLD = rb"(?s)<(" + b"|".join(sorted(name.encode() for name in _OF_OLD_TOOLS)) + rb")(?=[\s>]).*?</\1\s*>"
"""One of these with all that stands in it."""


def report_texts(root: Element, findings: Findings) -> None:
    """Report the text between elements, of which only a <dim> has any that is read, unless the element is reported.

    Raises IRError where it is a tag without its `<`.
    """
    packed = root.source.parsed.translate(None, b" \t\r\n")
    # behind each tag, but for the last one and those of <dim>s, comes another one: to count them takes no time
    behind = packed.count(b">") - packed.count(b"><") - 1
    if behind == packed.count(b"<dim>") - packed.count(b"<dim><") and b"<![CDATA[" not in packed:
        return
    data = root.source.data
    unread = [found.span() for found in re.finditer(_OLD, data)]
    found = [pair for pair in texts(data) if not any(begin < pair[0] < end for begin, end in unread)]
    from irrun.ir.malformed import without_bracket  # most files have no text

    ends = ((data.rfind(b">", 0, place), data.find(b"<", place)) for place, _ in found)
    bare = next((bare for place, end in ends if (bare := without_bracket(root.source, place, end))), None)
    if bare is not None:
        raise IRError([bare])
    told = {(each.line, each.column) for each in findings.diagnostics if found}
    begins = [root.source.span(tag) for _, tag in found]
    pairs = zip(found, begins, strict=True)
    places = [place for (place, _), begin in pairs if (begin.line, begin.column) not in told]
    if places:
        more = f", and so in {counted(len(places) - 1, 'more place')}" if len(places) > 1 else ""
        what, help = "text", "delete it, or write it as an attribute if it is one"
        text = data[places[0] : data.find(b"<", places[0])].split(b"\n")[0].rstrip().decode("utf-8", "replace")
        if re.match(_MERGED, text):
            what, help = (
                f"`{text[:7]}`, which a merge has left,",
                "look which version should stay, and delete these lines",
            )
        elif len(text) == 1 and not text.isprintable():
            what, help = code_point(text), "delete it"
        place = Element("", {}, root.source, places[0])
        message = f"{what} stands where only elements are read{more}"
        findings.add("W907", message, place, help=help, remedy=DELETE_TEXT)


def texts(data: bytes) -> Iterator[tuple[int, int]]:
    """Where text begins that is not in a <dim>, and where the tag before it does."""
    end, before, tag = len(data), b"", 0
    for token in re.finditer(_TOKEN, data):
        gap = data[end : token.start()]
        if gap.strip() and not re.match(_DIM, before):
            yield token.start() - len(gap.lstrip()), tag
        section = token[0].startswith(b"<![CDATA[")
        if section and not re.match(_DIM, before):
            yield token.start(), tag
        if not section and not token[0].startswith(b"<!--"):
            before, tag = token[0], token.start()
        end = token.end()


def report_attributes(
    element: Element, known: Collection[str], findings: Findings, graph: Graph, layer: Layer | None = None
) -> None:
    """Report the attributes of an element that are not among the `known` ones."""
    free = [name for name in known if name not in element.attributes]
    for name in element.attributes:
        if name not in known:
            close = close_matches(name, free)
            listed = ", ".join(f"`{word}`" for word in sorted(known)) or "none"
            help = advice(name, close[0]) if close else f"it has {listed}"
            message = f"<{element.tag}> has no attribute `{name}`; it is ignored"
            findings.add("W930", message, element, name, graph=graph, layer=layer, help=help)


def report_element(
    element: Element, where: str, help: str, findings: Findings, graph: Graph, layer: Layer | None = None
) -> None:
    """Report an element that is not read where it stands."""
    message, remedy = f"<{element.tag}> is not read in {where}", MOVE if element.tag in ("dim", "port") else None
    findings.add("W907", message, element, graph=graph, layer=layer, help=help, remedy=remedy)


def members(element: Element, tag: str, findings: Findings, graph: Graph, layer: Layer | None = None) -> list[Element]:
    """The children of a list that are its members by their tag; those of another tag are reported.

    One that is a member in all but its tag, by its attributes, is taken for one, unless there is another of its id.
    """
    if element.attributes:
        report_attributes(element, (), findings, graph, layer)
    for child in element.children:
        if child.tag != tag:
            break
    else:
        return element.children
    found = []
    taken = {child.attributes.get("id") for child in element.children if child.tag == tag} - {None}
    for child in element.children:
        meant = child.tag == tag
        if not meant and child.attributes.get("id") not in taken and _is_marked(child, tag):
            meant = True
            message = f"<{child.tag}> is not read: in <{element.tag}> stand elements <{tag}>"
            help = f"write <{tag}>; OpenVINO goes on without the element"
            findings.add("E220", message, child, graph=graph, layer=layer, help=help)
        elif not meant:
            report_element(child, f"<{element.tag}>", f"it holds elements <{tag}>", findings, graph, layer)
        if meant:
            found.append(child)
    return found


def _is_marked(element: Element, tag: str) -> bool:
    """Whether an element is one of `tag` by its attributes: by all, or by the first ones where its own tag is near."""
    needed, count = _MARKS[tag]
    given = element.attributes.keys()
    return given >= set(needed[:count]) and (given >= set(needed) or bool(close_matches(element.tag, (tag,))))


def joined(graph: Graph, tag: str, findings: Findings) -> list[Element]:
    """The elements <layers> or <edges> of a graph: one, but where there are more, or one has another tag.

    What these hold is lost to OpenVINO, which is reported.
    """
    found = graph.element.findall(tag)
    if not found:
        found = [child for child in graph.element.children if _is_list(child, tag)]
        for child in found[:1]:
            message = f"<{child.tag}> is not read: <{graph.element.tag}> has no <{tag}>"
            help = f"write <{tag}>; OpenVINO goes on without what it holds"
            findings.add("E220", message, child, graph=graph, layer=graph.owner, help=help)
            child.tag = tag
    for second in found[1:]:
        if second.children:
            message, help = f"a second <{tag}> is not read", "move what it holds into the first one"
            help += "; OpenVINO goes on without it"
            findings.add("E220", message, second, graph=graph, layer=graph.owner, help=help)
        else:
            message = f"a second <{tag}> is not read"
            findings.add("W907", message, second, graph=graph, layer=graph.owner, help="delete it")
    return found


def _is_list(element: Element, tag: str) -> bool:
    """Whether an element is the list `tag` of a graph by what it holds, whatever its own tag is."""
    member = element.find(tag[:-1])
    if member is None:
        return False
    known = element.tag in _GRAPH or element.tag in _OF_OLD_TOOLS
    return bool(close_matches(element.tag, (tag,))) or (not known and _is_marked(member, tag[:-1]))


def report_children(graph: Graph, findings: Findings) -> None:
    """Report the children of a <net> or a body that are none of a graph, unless a part that it needs is missing."""
    children = graph.element.children
    known = NET_ATTRIBUTES if graph.owner is None else ()
    if not graph.element.attributes.keys() <= set(known) and ("version" in graph.element.attributes or graph.owner):
        report_attributes(graph.element, known, findings, graph, graph.owner)
    tags = [child.tag for child in children]
    if "layers" not in tags or "edges" not in tags:  # which is reported, and may be one of these
        return
    ignored = {"layers", "edges"} | (_OF_OLD_TOOLS if graph.owner is None else set())
    for number, child in enumerate(children):
        repeated = child.tag == "rt_info" and child.tag in tags[:number]
        if child.tag not in ignored and (child.tag not in _GRAPH or repeated):
            help = "it holds <layers>, <edges> and <rt_info>, one each"
            report_element(child, f"<{graph.element.tag}>", help, findings, graph, graph.owner)
