"""Models that nobody would write by hand, and that OpenVINO reads and computes: nothing may be said of them as an error."""

# ruff: noqa: E501 (a row of a table is a line)

import re
from collections.abc import Callable

from defects import bases, operations
from defects.graphs import Graph
from defects.planting import MARK, Valid

REWRITTEN: list[tuple[str, str, str]] = [
    ("no declaration", '<?xml version="1.0"?>\n', ""),
    ("a declaration with an encoding", '<?xml version="1.0"?>', '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'),
    ("a comment before the root", "<net ", "<!-- made by hand -->\n<net "),
    ("comments between layers", "<layers>", "<layers><!-- one --><!-- two -->"),
    ("a processing instruction", "<net ", "<?tool value?>\n<net "),
    ("text after the root", "</net>", "</net>\n<!-- the end -->\n"),
    ("no name of the model", '<net name="dense" version', "<net version"),
    ("an empty name of the model", '<net name="dense" version', '<net name="" version'),
    ("attributes of the root in another order", 'name="dense" version="11"', 'version="11" name="dense"'),
    ("blanks around equals signs", 'name="dense" version="11"', 'name = "dense"  version = "11"'),
    ("apostrophes for quotes", 'name="dense" version="11"', "name='dense' version='11'"),
    ("version 10", 'version="11">', 'version="10">'),
    ("legacy data of the root", "</net>", '<meta_data><MO_version value="2021.4"/></meta_data></net>'),
    ("legacy quantization parameters", "</net>", "<quantization_parameters/></net>"),
    ("nested rt_info", "<Runtime_version", '<a><b><c value="1"/></b></a><Runtime_version'),
    ("rt_info with keys that are no names", "<Runtime_version", '<info name="1 2" value="3"/><Runtime_version'),
    ("a name with escapes", 'name="sum"', 'name="a&lt;b&gt;&amp;&quot;c&apos;"'),
    ("a name with references", 'name="sum"', 'name="&#x41;&#66;"'),
    ("a name in Greek", 'name="sum"', 'name="άθροισμα"'),
    ("a name of emoji", 'name="sum"', 'name="🧮🧮"'),
    ("an empty name", 'name="sum"', 'name=""'),
    ("a name of blanks", 'name="sum"', 'name="  "'),
    ("a name with slashes", 'name="sum"', 'name="a/b:0/c.d-e"'),
    ("a name of 5000 characters", 'name="sum"', f'name="{"n" * 5000}"'),
    ("two layers of one name", 'name="sum"', 'name="product"'),
    ("a layer of the name of a Parameter", 'name="sum"', 'name="image"'),
    ("a type in capitals", 'type="Add"', 'type="ADD"'),
    ("a type in lower case", 'type="MatMul"', 'type="matmul"'),
    ("ReLU in lower case", 'type="ReLU"', 'type="relu"'),
    ("Relu for ReLU", 'type="ReLU"', 'type="Relu"'),
    ("Add of opset 16", 'type="Add" version="opset1"', 'type="Add" version="opset16"'),
    ("a Const of opset 8", 'name="weights" type="Const" version="opset1"', 'name="weights" type="Const" version="opset8"'),
    ("a Parameter of opset 13", 'type="Parameter" version="opset1"', 'type="Parameter" version="opset13"'),
    ("enumerations in capitals", 'auto_broadcast="numpy"', 'auto_broadcast="NUMPY"'),
    ("no auto_broadcast", '<data auto_broadcast="numpy"/>', ""),
    ("booleans as digits", 'transpose_a="false"', 'transpose_a="0"'),
    ("booleans in capitals", 'transpose_a="false"', 'transpose_a="False"'),
    ("a product without attributes", '<data transpose_a="false" transpose_b="false"/>', ""),
    ("element types in capitals", 'shape="2,3" element_type="f32"', 'shape="2,3" element_type="F32"'),
    ("a shape with blanks", 'shape="2,3" element_type', 'shape="2, 3" element_type'),
    ("a shape in brackets", 'shape="2,3" element_type', 'shape="[2,3]" element_type'),
    ("attributes of a Const in another order", 'element_type="f32" shape="3,4" offset="0" size="48"', 'size="48" offset="0" shape="3,4" element_type="f32"'),
    ("blanks in the shape of a Const", 'shape="3,4"', 'shape="3, 4"'),
    ("precisions in lower case", 'id="2" precision="FP32"', 'id="2" precision="f32"'),
    ("no precision of an input", '<port id="1" precision="FP32">', '<port id="1">'),
    ("blanks in a dim", "<dim>2</dim>\n\t\t\t\t\t<dim>3</dim>\n\t\t\t\t</port>\n\t\t\t</output>", "<dim> 2 </dim>\n\t\t\t\t\t<dim>\n3\n</dim>\n\t\t\t\t</port>\n\t\t\t</output>"),
    ("names with an escaped comma", 'names="y"', r'names="y\,z,w"'),
    ("a name of a tensor with a colon", 'names="y"', 'names="y:0"'),
    ("names with blanks", 'names="y"', 'names="my y, other"'),
    ("a Result with a name of an output", 'type="Result" version="opset1">', 'type="Result" version="opset1" output_names="z">'),
    ("a layout of the input", '<output>\n\t\t\t\t<port id="0" precision="FP32" names="x">', '<output>\n\t\t\t\t<port id="0" precision="FP32" names="x"><rt_info><attribute name="layout" version="0" layout="[N,C]"/></rt_info>'),
    ("an attribute of rt_info that nobody knows", '<attribute name="fused', '<attribute name="mine" version="7" x="1"/><attribute name="fused'),
    ("an empty rt_info of a layer", 'version="opset1">\n\t\t\t<data auto_broadcast', 'version="opset1"><rt_info/>\n\t\t\t<data auto_broadcast'),
]  # fmt: skip


def swap(text: str, first: str, second: str) -> str:
    a, b = re.search(first, text, re.S), re.search(second, text, re.S)
    assert a
    assert b
    return text[: a.start()] + b[0] + text[a.end() : b.start()] + a[0] + text[b.end() :]


def renumbered(text: str, change: Callable[[int], int]) -> str:
    text = re.sub(r'(<layer id=")(\d+)"', lambda m: f'{m[1]}{change(int(m[2]))}"', text)
    return re.sub(r'((?:from|to)-layer=")(\d+)"', lambda m: f'{m[1]}{change(int(m[2]))}"', text)


def rewritten() -> list[Valid]:
    base = bases.dense()
    made = []

    def add(name: str, text: str | bytes, weights: bytes = base.weights) -> None:
        data = text if isinstance(text, bytes) else text.encode()
        made.append(Valid("unusual text", name, data, weights))

    for name, old, new in REWRITTEN:
        if old:
            assert old in base.text, (name, old)
            add(name, base.text.replace(old, new, 1))
    add("edges before layers", swap(base.text, r"<layers>.*</layers>", r"<edges>.*</edges>"))
    layers = re.findall(r"<layer .*?</layer>", base.text, re.S)
    start, end = base.text.index(layers[0]), base.text.index("</layers>")
    add("layers in reverse", base.text[:start] + "\n".join(reversed(layers)) + base.text[end:])
    add("layers with gaps between ids", renumbered(base.text, lambda old: old * 1000 + 7))
    add("ids of layers near the limit", renumbered(base.text, lambda old: 2**63 - 1 - old))
    add("ids of layers in reverse", renumbered(base.text, lambda old: 6 - old))
    edges = re.findall(r"<edge .*?/>", base.text)
    add(
        "edges in reverse",
        re.sub(r"<edges>.*</edges>", f"<edges>{''.join(reversed(edges))}</edges>", base.text, flags=re.S),
    )
    add("all on one line", re.sub(r">\s+<", "><", base.text))
    add("no indentation", re.sub(r"\n\s+", "\n", base.text))
    add("lines of Windows", base.text.replace("\n", "\r\n"))
    add("lines of old Macintoshes", base.text.replace("\n", "\r"))
    add("each attribute on a line", re.sub(r' (\w[\w-]*=")', r"\n\1", base.text))
    add("a byte order mark", b"\xef\xbb\xbf" + base.text.encode())
    add("blanks in tags", base.text.replace("/>", "  />").replace("</dim>", "</dim >"))
    add("closing tags for empty elements", re.sub(r"<(data|edge)( [^>]*)/>", r"<\1\2></\1>", base.text))
    add(
        "output before input",
        re.sub(r"(<input>.*?</input>)(\s*)(<output>.*?</output>)", r"\3\2\1", base.text, flags=re.S),
    )
    add(
        "data behind the ports",
        re.sub(r"(<data auto[^>]*/>)(.*?)(</layer>)", r"\2\1\3", base.text, count=1, flags=re.S),
    )
    add("bytes that nobody reads behind the weights", base.text, base.weights + b"\0" * 100)
    moved = base.text.replace('offset="0" size="48"', 'offset="5" size="48"').replace('offset="48"', 'offset="53"')
    add("offsets that are not aligned", moved, b"\0" * 5 + base.weights)
    add("bytes that two constants share", base.text.replace('offset="48" size="16"', 'offset="0" size="16"'))
    ids = re.sub(r'<port id="(\d)"', lambda m: f'<port id="{int(m[1]) * 10 + 5}"', base.text)
    add(
        "ids of ports that nobody expects",
        re.sub(r'((?:from|to)-port=")(\d)"', lambda m: f'{m[1]}{int(m[2]) * 10 + 5}"', ids),
    )
    spare = '<layer id="80" name="spare" type="Const" version="opset1"><data element_type="f32" shape="4" offset="0" size="16"/><output><port id="0" precision="FP32"><dim>4</dim></port></output></layer>'
    add("a constant that nobody reads", base.text.replace("</layers>", spare + "</layers>"))
    unread = '<layer id="80" name="unread" type="Parameter" version="opset1"><data shape="4" element_type="f32"/><output><port id="0" precision="FP32"><dim>4</dim></port></output></layer>'
    add("a Parameter that nobody reads", base.text.replace("</layers>", unread + "</layers>"))
    add(
        "no precision of any input port",
        re.sub(r"(<input>.*?</input>)", lambda m: m[1].replace(' precision="FP32"', ""), base.text, flags=re.S),
    )
    return made


def graphs() -> list[Valid]:
    """Graphs with sizes, types and wiring at the border of what is allowed, in the notation of the tables."""
    made = []
    for line in operations.UNUSUAL.read_text().splitlines():
        if outputs := operations.recorded().get(line):
            text, weights = operations.model(line, outputs)
            made.append(Valid("unusual operations", line, text.replace(MARK, "").encode(), weights))
    for name in ("dense", "image", "state", "branch", "loop", "iterator", "texts"):
        base = getattr(bases, name)()
        made.append(Valid("bases", name, base.text.encode(), base.weights))
    return made


def wiring() -> list[Valid]:
    made = []

    def add(name: str, g: Graph, change: tuple[str, str] = ("", "")) -> None:
        text = g.text()
        assert change[0] in text
        made.append(
            Valid(
                "unusual graphs", name, text.replace(*change).encode() if change[0] else text.encode(), bytes(g.weights)
            )
        )

    g = Graph()
    g.result("r", g.parameter("x", "f32[2]"))
    add("a Result of a Parameter", g)
    g = Graph()
    g.result("r", g.const("c", "f32[2]{1,2}"))
    add("a Result of a constant", g)
    g = Graph()
    x = g.parameter("x", "f32[2]")
    for index in range(5):
        g.result(f"r{index}", x)
    add("five Results of one tensor", g)
    g = Graph()
    x = g.parameter("x", "f32[2]")
    g.result("r", g.op("twice", "opset1.Add", [x, x], ["f32[2]"])[0])
    add("one tensor at both inputs", g)
    g = Graph()
    x = g.parameter("x", "f32[1]")
    for index in range(200):
        x = g.op(f"n{index}", "opset1.Sigmoid", [x], ["f32[1]"])[0]
    g.result("r", x)
    add("two hundred layers in a row", g)
    for type in (
        "f64",
        "f32",
        "f16",
        "bf16",
        "i64",
        "i32",
        "i16",
        "i8",
        "u64",
        "u32",
        "u16",
        "u8",
        "boolean",
        "u4",
        "i4",
        "string",
    ):
        g = Graph()
        g.result("r", g.parameter("x", f"{type}[2,2]"))
        add(f"a Parameter of {type}", g)
    for type in (
        "f64",
        "f16",
        "bf16",
        "i16",
        "u64",
        "u32",
        "u8",
        "u1",
        "u4",
        "i4",
        "nf4",
        "f8e4m3",
        "f8e5m2",
        "boolean",
    ):
        g = Graph()
        c = g.const("c", f"{type}[3,3]{{*}}")
        g.result("r", g.op("f", "opset1.Convert", [c], ["f32[3,3]"], destination_type="f32")[0])
        add(f"a constant of {type}, converted", g)
    g = Graph()
    x = g.parameter("x", "f32[0,3]")
    g.result("r", g.op("f", "opset1.Sigmoid", [x], ["f32[0,3]"])[0])
    add("a Parameter without elements", g)
    g = Graph()
    c = g.const("c", "f32[0,3]{}")
    g.result("r", g.op("f", "opset1.Concat", [c, g.parameter("x", "f32[2,3]")], ["f32[2,3]"], axis="0")[0])
    add("a constant without elements", g, ('size="0"', 'size="0"'))
    g = Graph()
    x = g.parameter("x", "f32[2,3]")
    unused = g.op(
        "parts", "opset1.Split", [x, g.const("a", "i64[]{1}")], ["f32[2,1]", "f32[2,1]", "f32[2,1]"], num_splits="3"
    )
    g.result("r", unused[1])
    add("outputs that nobody reads", g)
    g = Graph()
    x = g.parameter("x", "f32[1,1,1,1,1,1,1,2]")
    g.result("r", g.op("f", "opset1.Sigmoid", [x], ["f32[1,1,1,1,1,1,1,2]"])[0])
    add("eight axes", g)
    return made


def valid() -> list[Valid]:
    return [*rewritten(), *graphs(), *wiring()]
