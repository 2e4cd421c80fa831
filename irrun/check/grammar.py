"""A RELAX NG grammar of the IR, written out of the op library: layers, ports, edges, and the attributes of every op.

It describes files as OpenVINO writes them. What no grammar of this kind can say (ids that agree, shapes, types, the
weights) is left to validation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from irrun.check.attributes import FOREIGN
from irrun.check.lookup import PLUGIN_OPSETS
from irrun.ir.bodies import MAP_OF, NEEDED_BODIES
from irrun.spec.attributes import (
    BOOL,
    ELEMENT_TYPE,
    FLOAT_NUMBER,
    FLOATS,
    INT,
    INTS,
    REQUIRED,
    SHAPE,
    STRING,
    STRINGS,
    WHOLE,
    Attr,
    Kind,
)
from irrun.spec.dtypes import ELEMENT_TYPES, PRECISIONS
from irrun.spec.op import Op
from irrun.spec.registry import SPELLINGS, Registry

_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<!-- A RELAX NG grammar of OpenVINO IR, versions 10 and 11, written by `irrun schema`. -->
<grammar xmlns="http://relaxng.org/ns/structure/1.0" datatypeLibrary="http://www.w3.org/2001/XMLSchema-datatypes">
"""

_FIXED = r"""
<start>
  <element name="net">
    <optional><attribute name="name"/></optional>
    <attribute name="version"><choice><value>10</value><value>11</value></choice></attribute>
    <interleave>
      <ref name="graph"/>
      <!-- of old files; they mean nothing any more -->
      <zeroOrMore>
        <element>
          <choice><name>meta_data</name><name>quantization_parameters</name><name>pre-process</name></choice>
          <ref name="anything"/>
        </element>
      </zeroOrMore>
    </interleave>
  </element>
</start>

<define name="graph">
  <interleave>
    <element name="layers"><zeroOrMore><ref name="layer"/></zeroOrMore></element>
    <optional>
      <element name="edges">
        <zeroOrMore>
          <element name="edge">
            <attribute name="from-layer"><ref name="id"/></attribute>
            <attribute name="from-port"><ref name="id"/></attribute>
            <attribute name="to-layer"><ref name="id"/></attribute>
            <attribute name="to-port"><ref name="id"/></attribute>
          </element>
        </zeroOrMore>
      </element>
    </optional>
    <optional><ref name="rt_info"/></optional>
  </interleave>
</define>

<define name="id"><data type="long"><param name="minInclusive">0</param></data></define>

<define name="layer_names">
  <attribute name="id"><ref name="id"/></attribute>
  <attribute name="name"/>
</define>

<define name="rt_info">
  <element name="rt_info"><ref name="anything"/></element>
</define>

<define name="anything">
  <zeroOrMore>
    <choice>
      <attribute><anyName/></attribute>
      <text/>
      <element><anyName/><ref name="anything"/></element>
    </choice>
  </zeroOrMore>
</define>

<define name="in">
  <element name="port">
    <attribute name="id"><ref name="id"/></attribute>
    <optional><attribute name="precision"><ref name="precision"/></attribute></optional>
    <optional><attribute name="names"/></optional>
    <ref name="dims"/>
  </element>
</define>

<define name="out">
  <element name="port">
    <attribute name="id"><ref name="id"/></attribute>
    <attribute name="precision"><ref name="precision"/></attribute>
    <optional><attribute name="names"/></optional>
    <ref name="dims"/>
  </element>
</define>

<define name="dims">
  <zeroOrMore>
    <element name="dim"><data type="integer"><param name="minInclusive">-1</param></data></element>
  </zeroOrMore>
  <optional><ref name="rt_info"/></optional>
</define>

<define name="maps">
  <zeroOrMore>
    <element>
      <choice><name>input</name><name>output</name></choice>
      <attribute name="external_port_id"><data type="integer"><param name="minInclusive">-1</param></data></attribute>
      <attribute name="internal_layer_id"><ref name="id"/></attribute>
      <optional><attribute name="axis"><data type="integer"/></attribute></optional>
      <optional><attribute name="start"><data type="integer"/></attribute></optional>
      <optional><attribute name="end"><data type="integer"/></attribute></optional>
      <optional><attribute name="stride"><data type="integer"/></attribute></optional>
      <optional><attribute name="part_size"><data type="integer"/></attribute></optional>
      <optional><attribute name="purpose"/></optional>
    </element>
  </zeroOrMore>
</define>

<define name="back_edges">
  <element name="back_edges">
    <zeroOrMore>
      <element name="edge">
        <attribute name="from-layer"><ref name="id"/></attribute>
        <attribute name="to-layer"><ref name="id"/></attribute>
      </element>
    </zeroOrMore>
  </element>
</define>

<!-- left on data by old tools for the benefit of plugins -->
<define name="foreign">
{foreign}</define>

<define name="precision">
  <choice>
{precisions}  </choice>
</define>

<define name="element_type">
  <choice>
{element_types}  </choice>
</define>

<define name="boolean">
  <data type="string"><param name="pattern">[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]|1|0</param></data>
</define>

<define name="float">
  <data type="string"><param name="pattern">{float}</param></data>
</define>

<define name="floats">
  <data type="string"><param name="pattern">{floats}</param></data>
</define>

<define name="integers">
  <data type="string"><param name="pattern">{integers}</param></data>
</define>

<define name="sizes">
  <data type="string"><param name="pattern">{sizes}</param></data>
</define>

<define name="positives">
  <data type="string"><param name="pattern">{positives}</param></data>
</define>

<define name="shape">
  <data type="string"><param name="pattern">{shape}</param></data>
</define>

<!-- a layer of another operation set, such as a library of custom operations brings -->
<define name="custom">
  <attribute name="type"/>
  <attribute name="version">
    <data type="string">
      <except>
        <choice>
          <data type="string"><param name="pattern">\s*|[Oo][Pp][Ss][Ee][Tt][0-9]*</param></data>
          <!-- what a plugin works on; no file that can be read has it -->
          {plugins}
        </choice>
      </except>
    </data>
  </attribute>
  <interleave>
    <optional>
      <element name="data"><zeroOrMore><attribute><anyName/></attribute></zeroOrMore></element>
    </optional>
    <optional><ref name="rt_info"/></optional>
    <optional><element name="input"><zeroOrMore><ref name="in"/></zeroOrMore></element></optional>
    <optional><element name="output"><zeroOrMore><ref name="out"/></zeroOrMore></element></optional>
  </interleave>
</define>
"""

_NUMBER = r"-?([0-9]+\.?[0-9]*([eE][\-+]?[0-9]+)?|\.[0-9]+([eE][\-+]?[0-9]+)?|inf|nan)"
_SIZE = r"(\?|-1|[0-9]+|[0-9]+\.\.[0-9]*|\.\.[0-9]+)"


def grammar(known: Registry) -> str:
    """The grammar as XML, for the ops of `known`."""
    ops = sorted(known.ops.values(), key=lambda op: (op.type.lower(), op.version))
    families = [(type, list(versions)) for type, versions in groupby(ops, lambda op: op.type)]
    parts = [_HEAD, _fixed(), '\n<define name="layer">\n  <element name="layer">\n    <ref name="layer_names"/>\n']
    parts += ["    <choice>\n", *(f'      <ref name="{type}"/>\n' for type, _ in families)]
    parts += ['      <ref name="custom"/>\n    </choice>\n  </element>\n</define>\n']
    for type, versions in families:
        parts.append("\n" + "\n".join(_family(type, versions, known)) + "\n")
    return "".join([*parts, "</grammar>\n"])


def _fixed() -> str:
    precisions = {*(element.precision for element in ELEMENT_TYPES.values()), *(name.upper() for name in PRECISIONS)}
    filled = {
        "foreign": "".join(f"  <optional><attribute name={quoteattr(name)}/></optional>\n" for name in sorted(FOREIGN)),
        "precisions": "".join(f"    {_value(name)}\n" for name in sorted(precisions)),
        "element_types": "".join(f"    {_value(name)}\n" for name in (*ELEMENT_TYPES, "undefined")),
        "float": rf"\s*{_NUMBER}\s*",
        "floats": _listed(_NUMBER),
        "integers": _listed("-?[0-9]+"),
        "plugins": "".join(map(_value, PLUGIN_OPSETS)),
        "sizes": _listed("[0-9]+"),
        "positives": _listed("0*[1-9][0-9]*"),
        "shape": rf"\s*(\[\s*)?(\.\.\.|{_SIZE}(\s*,\s*{_SIZE})*)?(\s*\])?\s*",
    }
    text = _FIXED
    for name, value in filled.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _listed(item: str) -> str:
    return rf"(\s*{item}\s*(,\s*{item}\s*)*,?)?"


def _value(text: str) -> str:
    return f"<value>{escape(text)}</value>"


def _family(type: str, versions: Sequence[Op], known: Registry) -> Iterator[str]:
    """The definition of all versions of one type."""
    yield f'<define name="{type}">'
    yield f'  <attribute name="type">{_one_of(_spellings(type))}</attribute>'
    if len(versions) == 1:
        yield from _version(versions[0], known, "  ")
    else:
        yield "  <choice>"
        for op in versions:
            yield f"    <group> <!-- {op.name} -->"
            yield from _version(op, known, "      ")
            yield "    </group>"
        yield "  </choice>"
    yield "</define>"


def _spellings(type: str) -> list[str]:
    """How OpenVINO's files spell a type: some are abbreviated, and then not understood otherwise."""
    usual = [name for name, meant in SPELLINGS.items() if meant.lower() == type.lower()]
    return usual or [type]


def _version(op: Op, known: Registry, indent: str) -> Iterator[str]:
    names = [*(f"opset{number}" for number in known.opsets(op)), *op.extension_versions]
    yield f'{indent}<attribute name="version">{_one_of(names)}</attribute>'
    on_layer = ["output_names"] if op.type == "Result" else []
    for attr in op.attrs:
        if attr.name in on_layer:
            yield f"{indent}{_attribute(attr)}"
    yield f"{indent}<interleave>"
    yield from _data([attr for attr in op.attrs if attr.name not in on_layer], indent + "  ")
    yield f'{indent}  <optional><ref name="rt_info"/></optional>'
    yield f"{indent}  {_inputs(op)}"
    yield f"{indent}  {_outputs(op)}"
    bodies = NEEDED_BODIES.get(op.type.lower(), ())
    for body in bodies:
        yield f'{indent}  <element name="{MAP_OF[body]}"><ref name="maps"/></element>'
        yield f'{indent}  <element name="{body}"><ref name="graph"/></element>'
    if "body" in bodies:
        yield f'{indent}  <optional><ref name="back_edges"/></optional>'
    yield f"{indent}</interleave>"


def _data(attrs: Sequence[Attr], indent: str) -> Iterator[str]:
    required = any(attr.default is REQUIRED for attr in attrs)
    yield f'{indent}<element name="data">' if required else f'{indent}<optional><element name="data">'
    yield from (f"{indent}  {_attribute(attr)}" for attr in attrs)
    yield f'{indent}  <ref name="foreign"/>'
    yield f"{indent}</element>" if required else f"{indent}</element></optional>"


def _attribute(attr: Attr) -> str:
    text = f"<attribute name={quoteattr(attr.name)}>{_content(attr)}</attribute>"
    return text if attr.default is REQUIRED else f"<optional>{text}</optional>"


_NAMED: dict[Kind, str] = {
    BOOL: "boolean",
    FLOAT_NUMBER: "float",
    FLOATS: "floats",
    ELEMENT_TYPE: "element_type",
    SHAPE: "shape",
}


def _content(attr: Attr) -> str:
    if attr.kind in (INT, WHOLE):
        bounds = (("minInclusive", attr.least), ("maxInclusive", attr.most))
        params = "".join(f'<param name="{name}">{int(bound)}</param>' for name, bound in bounds if bound is not None)
        unsigned = attr.least is not None and attr.least >= 0
        return f'<data type="{"unsignedLong" if unsigned else "long"}">{params}</data>'
    if attr.kind is INTS:
        least = -1 if attr.least is None else attr.least
        return f'<ref name="{"integers" if least < 0 else "sizes" if least < 1 else "positives"}"/>'
    if attr.kind in (STRING, STRINGS):
        return "<text/>"
    name = _NAMED.get(attr.kind)
    if name:
        return f'<ref name="{name}"/>'
    words = list(attr.kind.words)
    if not attr.kind.cased:  # any case is read; OpenVINO writes these
        words += [*map(str.lower, words), *map(str.upper, words)]
    return _one_of(dict.fromkeys(words))


def _one_of(texts: Iterable[str]) -> str:
    values = [_value(text) for text in texts]
    return values[0] if len(values) == 1 else f"<choice>{''.join(values)}</choice>"


def _inputs(op: Op) -> str:
    fixed = [port for port in op.inputs if not port.variadic]
    ports = "".join('<optional><ref name="in"/></optional>' if port.optional else '<ref name="in"/>' for port in fixed)
    if op.variadic:
        ports += '<zeroOrMore><ref name="in"/></zeroOrMore>'
    element = f'<element name="input">{ports or "<empty/>"}</element>'
    return element if op.least_inputs else f"<optional>{element}</optional>"


def _outputs(op: Op) -> str:
    """Ports that nobody reads may be left out; a Result may repeat what it reads."""
    if op.outputs and op.outputs[-1].variadic:
        ports = '<zeroOrMore><ref name="out"/></zeroOrMore>'
    else:
        ports = '<optional><ref name="out"/></optional>' * max(len(op.outputs), 1)
    return f'<optional><element name="output">{ports}</element></optional>'
