"""Defects of the XML itself, of the root, and of what stands where nothing of the kind may stand."""

# ruff: noqa: E501 (a row of a table is a line)

import re

from defects import bases
from defects.planting import FILE, MARK, Defect, marked, plant

PRODUCT = '<layer id="2" name="product" type="MatMul" version="opset1">'

XML: list[tuple[str, str | None, str, str]] = [
    ("a tag that closes another", "sum", "</input>", "</inputs>"),
    ("a layer that is not closed", "bias", "</layer>", "<!-- ¤ -->"),
    ("a quote that is not closed", "sum", 'type="Add"', 'type="Add'),
    ("an attribute without quotes", "sum", 'type="Add"', "type=Add"),
    ("an attribute without a value", "sum", 'type="Add"', "type"),
    ("an attribute twice in a layer", "sum", 'type="Add"', 'type="Add" type="Add"'),
    ("an attribute twice in the data", "product", 'transpose_a="false"', 'transpose_a="false" transpose_a="true"'),
    ("a bare ampersand in a name", "sum", 'name="sum"', 'name="sum & more"'),
    ("an entity that nobody defines", "sum", 'name="sum"', 'name="sum&more;"'),
    ("a less-than sign in a name", "sum", 'name="sum"', 'name="a<b"'),
    ("a control character in a name", "sum", 'name="sum"', 'name="su\x01m"'),
    ("a reference to a control character", "sum", 'name="sum"', 'name="su&#1;m"'),
    ("two hyphens in a comment", "sum", "<input>", "<!-- a -- b --><input>"),
    ("a comment that is not closed", "sum", "<input>", "<!-- <input>"),
    ("no blank between attributes", "sum", 'name="sum" type', 'name="sum"type'),
    ("a closing tag too much", "sum", "</layer>", "</layer></layer>"),
    ("a tag in other case closes it", "sum", "</layer>", "</Layer>"),
    ("text between layers", "sum", "</layer>", "</layer> and then"),
    ("text in a port", "sum", "<dim>2</dim>", "two <dim>2</dim>"),
    ("a number in a layer's input", "sum", "<input>", "<input>7"),
    ("an unclosed dim", "sum", "<dim>4</dim>\n\t\t\t\t</port>", "¤<dim>4\n\t\t\t\t¤</port>"),
    ("CDATA where ports are", "sum", "<input>", "<input><![CDATA[x]]>"),
    ("a processing instruction that is not closed", "sum", "<input>", "<?x <input>"),
    ("an XML declaration in the middle", "sum", "<input>", '<?xml version="1.0"?><input>'),
    ("typographic quotes", "sum", 'type="Add"', "type=“Add”"),
]  # fmt: skip

ROOT: list[tuple[str, str | None, str, str]] = [
    ("version 9", None, 'version="11">', 'version="9">'),
    ("version 12", None, 'version="11">', 'version="12">'),
    ("no version", None, '<net name="dense" version="11">', '<net name="dense">'),
    ("version is a word", None, 'version="11">', 'version="eleven">'),
    ("version is negative", None, 'version="11">', 'version="-11">'),
    ("version is empty", None, 'version="11">', 'version="">'),
    ("version under another name", None, 'version="11">', 'ir_version="11">'),
    ("version in capitals", None, 'version="11">', 'VERSION="11">'),
    ("version is a fraction", None, 'version="11">', 'version="11.5">'),
    ("version of a release", None, 'version="11">', 'version="2026.4">'),
    ("edges in capitals", None, "<edges>", "<Edges>"),
    ("layers in capitals", None, "<layers>", "<Layers>"),
    ("layers misspelt", None, "<layers>", "<layer_list>"),
    ("an unknown child of the root", None, "<layers>", "<weights/><layers>"),
    ("two lists of layers", None, "<layers>", "<layers/><layers>"),
    ("two lists of edges", None, "<edges>", "<edges/><edges>"),
    ("an unknown attribute of the root", None, 'version="11">', 'version="11" precision="FP32">'),
    ("a root in a namespace", None, "<net ", '<net xmlns="http://openvino.ai" '),
    ("edges misspelt", None, "<edges>", "<egdes>"),
]  # fmt: skip

ELEMENTS: list[tuple[str, str | None, str, str]] = [
    ("an unknown element between layers", "sum", PRODUCT[:0] + "<input>", "<inputs/><input>"),
    ("input misspelt", "sum", "<input>", "<inputs>"),
    ("output misspelt", "sum", "<output>", "<outputs>"),
    ("port misspelt", "weights", '<port id="0" precision="FP32">', '<Port id="0" precision="FP32"/><port id="0" precision="FP32">'),
    ("dim misspelt", "sum", "<dim>2</dim>", "<dims>2</dims>"),
    ("data misspelt", "sum", "<data ", "<Data "),
    ("data twice", "sum", '<data auto_broadcast="numpy"/>', '<data auto_broadcast="numpy"/><data auto_broadcast="none"/>'),
    ("input twice", "sum", "<input>", "<input/><input>"),
    ("output twice", "sum", "<output>", '<output><port id="9" precision="FP32"/></output><output>'),
    ("a node among the layers", "sum", "</layer>", "</layer><node/>"),
    ("a layer in another layer", "sum", "<input>", '<layer id="90" name="inner" type="Result" version="opset1"/><input>'),
    ("a layer among the edges", None, "<edges>", '<edges><layer id="90" name="n" type="Result" version="opset1"/>'),
    ("an edge among the layers", "sum", "</layer>", '</layer><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>'),
    ("data in a port", "sum", "<dim>2</dim>", '<data x="1"/><dim>2</dim>'),
    ("a port outside of input and output", "sum", "<input>", '<port id="7" precision="FP32"/><input>'),
    ("a dim outside of a port", "sum", "<input>", "<dim>2</dim><input>"),
    ("a body in an Add", "sum", "<input>", "<body/><input>"),
    ("attributes as elements", "sum", '<data auto_broadcast="numpy"/>', "<data><auto_broadcast>numpy</auto_broadcast></data>"),
    ("blobs of an old version", "weights", "<output>", '<blobs><weights offset="0" size="48"/></blobs><output>'),
    ("an attribute on the layer", "sum", 'type="Add"', 'type="Add" auto_broadcast="numpy"'),
    ("a precision on the layer", "sum", 'type="Add"', 'type="Add" precision="FP32"'),
    ("an attribute on a dim", "sum", "<dim>2</dim>", '<dim name="N">2</dim>'),
    ("an unknown attribute of a port", "sum", '<port id="0"', '<port id="0" shape="2,4"'),
    ("an unknown attribute of an edge", None, '<edge from-layer="0"', '<edge weight="1" from-layer="0"'),
    ("two dims in one", "sum", "<dim>2</dim>", "<dim>2,4</dim>"),
    ("an element in a dim", "sum", "<dim>2</dim>", "<dim><n/>2</dim>"),
    ("a result inside of edges' list", None, "</edges>", "<result/></edges>"),
]  # fmt: skip

ARGUABLE = {
    "an attribute on a dim": "nobody reads it",
    "an element in a dim": "nobody reads it",
    "two hyphens in a comment": "OpenVINO's parser takes it",
    "a precision on the layer": "files before version 10 have it",
    "attributes as elements": "blame may also be the missing attribute's default",
    "a root in a namespace": "nobody reads it, and the elements stay the same",
    "an unknown attribute of the root": "nobody reads it",
}

RT_INFO: list[tuple[str, str | None, str, str]] = [
    ("an attribute twice", "relu", "</rt_info>", '\t<attribute name="fused_names" version="0" value="b"/></rt_info>'),
    ("an attribute without a name", "relu", 'name="fused_names" ', ""),
    ("an attribute without a version", "relu", ' version="0" value="relu"', ' value="relu"'),
    ("a version that is a word", "relu", 'version="0" value', 'version="zero" value'),
    ("an unknown element", "relu", "<attribute name", "<attribut name"),
    ("rt_info misspelt", "relu", "<rt_info>", "<rtinfo>"),
    ("a layout that is none", "relu", "<attribute ", '<attribute name="layout" version="0" layout="[N,C"/><attribute '),
    ("a layout for another rank", "image", '<dim>2</dim>', '<rt_info><attribute name="layout" version="0" layout="[N,C,H,W]"/></rt_info><dim>2</dim>'),
]  # fmt: skip
RT_ARGUABLE = {
    "an unknown element": "elements of rt_info that are not known are passed over",
    "an attribute without a name": "OpenVINO passes over it",
    "a version that is a word": "OpenVINO passes over it",
    "an attribute without a version": "OpenVINO may pass over it",
}


def texts() -> list[Defect]:
    """What no replacement in a line can say."""
    base = bases.dense()
    lines = base.text.split("\n")
    weights = base.weights
    made = []

    def add(name: str, text: str, arguable: str = "") -> None:
        made.append(marked("xml", name, text, weights, None, arguable))

    add("nothing at all", MARK + FILE)
    add("a word", MARK + FILE + "model")
    add("JSON", MARK + FILE + '{"net": {}}')
    add("blanks alone", MARK + FILE + f"  \n{MARK} \n{MARK}")
    add("no root", f'{MARK}<?xml version="1.0"?>\n{MARK}')
    add("text before the root", base.text.replace("<net", MARK + "model <net", 1))
    add("a declaration in the second line", "\n" + MARK + base.text)
    add("a second root", base.text + MARK + "<net/>")
    cut = base.text.index('name="sum"')
    add("cut within a tag", base.text[:cut] + MARK)
    add("cut after half of the layers", "\n".join(lines[:40]) + "\n" + MARK)
    add("cut before the last tag", base.text.rstrip().removesuffix("</net>") + MARK)
    add("no edge in the edges", re.sub("<edges>.*</edges>", f"{MARK}<edges>\n\t</edges>", base.text, flags=re.DOTALL))
    add("no layer in the layers", re.sub("<layers>.*</layers>", f"{MARK}<layers/>", base.text, flags=re.DOTALL))
    add("another root", base.text.replace("<net", MARK + "<model").replace("</net", "</model"))
    add("a document type with entities", base.text.replace("<net", f'{MARK}<!DOCTYPE net [<!ENTITY a "b">]>\n<net', 1))
    add(
        "a declaration of another encoding",
        base.text.replace('version="1.0"?', f'{MARK}version="1.0" encoding="UTF-16"?'),
    )
    return made


def bytes_() -> list[Defect]:
    base = bases.dense()
    at = base.text.index('name="sum"')
    line = frozenset({base.text[:at].count("\n") + 1})
    raw = base.text.encode()
    broken = raw.replace(b'name="sum"', b'name="su\xffm"')
    nul = raw.replace(b'name="sum"', b'name="su\0m"')
    return [
        Defect("xml", "a byte that is no UTF-8", broken, base.weights, line, None),
        Defect("xml", "a NUL in a name", nul, base.weights, line, None),
    ]


def defects() -> list[Defect]:
    base = bases.dense()
    return [
        *texts(),
        *bytes_(),
        *plant("xml", base, XML, ARGUABLE, named=False),
        *plant("root", base, ROOT, ARGUABLE, named=False),
        *plant("elements", base, ELEMENTS, ARGUABLE, named=False),
        *plant("rt_info", base, RT_INFO, RT_ARGUABLE, named=False),
    ]
