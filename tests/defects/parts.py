"""Defects of layers, ids, names, versions, ports and edges."""

# ruff: noqa: E501 (a row of a table is a line)

from defects import bases
from defects.planting import Defect, plant

EDGE = '<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>'
SECOND = '<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>'
SUM = '<layer id="4" name="sum" type="Add" version="opset1">'

LAYERS: list[tuple[str, str | None, str, str]] = [
    ("no id", "sum", ' id="4"', ""),
    ("no name", "sum", ' name="sum"', ""),
    ("no type", "sum", ' type="Add"', ""),
    ("no version", "sum", ' version="opset1"', ""),
    ("an id that is a word", "sum", 'id="4"', 'id="four"'),
    ("an empty id", "sum", 'id="4"', 'id=""'),
    ("a negative id", "sum", 'id="4"', 'id="-4"'),
    ("an id with a fraction", "sum", 'id="4"', 'id="4.5"'),
    ("an id beyond 64 bits", "sum", 'id="4"', 'id="99999999999999999999"'),
    ("the id of another layer", "bias", 'id="3"', 'id="1"'),
    ("the id of the Parameter", "weights", 'id="1"', 'id="0"'),
    ("an id in hexadecimal", "sum", 'id="4"', 'id="0x4"'),
    ("an empty type", "sum", 'type="Add"', 'type=""'),
    ("a type of no opset", "sum", 'type="Add"', 'type="Plus"'),
    ("a type with a blank", "sum", 'type="Add"', 'type="Add "'),
    ("a type of ONNX", "product", 'type="MatMul"', 'type="Gemm"'),
    ("a type of an older format", "product", 'type="MatMul"', 'type="FullyConnected"'),
    ("a type misspelt", "relu", 'type="ReLU"', 'type="RelU6"'),
    ("Constant for Const", "weights", 'type="Const"', 'type="Constant"'),
    ("const in lower case", "weights", 'type="Const"', 'type="const"'),
    ("parameter in lower case", "image", 'type="Parameter"', 'type="parameter"'),
    ("result in lower case", "out", 'type="Result"', 'type="result"'),
    ("Input for Parameter", "image", 'type="Parameter"', 'type="Input"'),
    ("Output for Result", "out", 'type="Result"', 'type="Output"'),
    ("opset 0", "sum", 'version="opset1"', 'version="opset0"'),
    ("opset 18", "sum", 'version="opset1"', 'version="opset18"'),
    ("opset 99", "sum", 'version="opset1"', 'version="opset99"'),
    ("a number for an opset", "sum", 'version="opset1"', 'version="1"'),
    ("Opset in capitals", "sum", 'version="opset1"', 'version="Opset1"'),
    ("an empty version", "sum", 'version="opset1"', 'version=""'),
    ("an opset with a blank", "sum", 'version="opset1"', 'version="opset 1"'),
    ("an opset with a leading zero", "sum", 'version="opset1"', 'version="opset01"'),
    ("the stub opset17", "relu", 'version="opset1"', 'version="opset17"'),
    ("the opset of plugins", "sum", 'version="opset1"', 'version="ie_internal_opset"'),
    ("the opset of relaxed types", "sum", 'version="opset1"', 'version="type_relaxed_opset"'),
    ("extension", "sum", 'version="opset1"', 'version="extension"'),
    ("experimental", "sum", 'version="opset1"', 'version="experimental"'),
    ("util", "sum", 'version="opset1"', 'version="util"'),
    ("op of a later opset", "relu", 'type="ReLU" version="opset1"', 'type="HSwish" version="opset1"'),
    ("op of opset 16 in opset 8", "relu", 'type="ReLU" version="opset1"', 'type="Identity" version="opset8"'),
    ("an unreachable layer of no opset", "sum", "</layer>", '</layer>\n¤<layer id="50" name="spare" type="Foo" version="opset1"/>'),
    ("an id with a plus", "sum", 'id="4"', 'id="+4"'),
    ("an id with a blank", "sum", 'id="4"', 'id="4 "'),
    ("Parameter without data", "image", '^<data shape="2,3" element_type="f32"/>', ""),
    ("Result with two inputs", "out", "<input>", '<input><port id="1" precision="FP32"/>'),
]  # fmt: skip

LAYER_ARGUABLE = {
    "an id with a plus": "OpenVINO reads it",
    "experimental": "some layers do have this version",
    "an id in hexadecimal": "0x4 may be read as 0, and two layers have it then",
    "result in lower case": "the model has no Result then: the root may be blamed as well",
}

PORTS: list[tuple[str, str | None, str, str]] = [
    ("an input port without an id", "sum", '<port id="0" precision="FP32">', '<port precision="FP32">'),
    ("an output port without an id", "sum", '<port id="2" precision="FP32">', '<port precision="FP32">'),
    ("an id that is a word", "sum", '<port id="0"', '<port id="a"'),
    ("a negative id", "sum", '<port id="0"', '<port id="-1"'),
    ("an empty id", "sum", '<port id="1"', '<port id=""'),
    ("two input ports of one id", "sum", '<port id="1"', '<port id="0"'),
    ("two output ports of one id", "sum", "</output>", '<port id="2" precision="FP32"/></output>'),
    ("no output precision", "sum", '<port id="2" precision="FP32">', '<port id="2">'),
    ("an output precision that is none", "sum", '<port id="2" precision="FP32">', '<port id="2" precision="FLOAT">'),
    ("output precision misspelt", "sum", '<port id="2" precision="FP32">', '<port id="2" precison="FP32">'),
    ("an empty output precision", "sum", '<port id="2" precision="FP32">', '<port id="2" precision="">'),
    ("MIXED", "sum", '<port id="2" precision="FP32">', '<port id="2" precision="MIXED">'),
    ("another output precision", "sum", '<port id="2" precision="FP32">', '<port id="2" precision="FP16">'),
    ("another precision of integers", "relu", '<port id="1" precision="FP32"', '<port id="1" precision="I32"'),
    ("another input precision", "sum", '<port id="0" precision="FP32">', '<port id="0" precision="FP16">'),
    ("an input precision that is none", "sum", '<port id="0" precision="FP32">', '<port id="0" precision="FP33">'),
    ("another input precision of a Result", "out", '<port id="0" precision="FP32">', '<port id="0" precision="I64">'),
    ("another precision of a Parameter", "image", 'precision="FP32"', 'precision="FP16"'),
    ("another precision of a Const", "weights", 'precision="FP32"', 'precision="FP16"'),
    ("a letter as dim", "sum", "<dim>2</dim>", "<dim>N</dim>"),
    ("an empty dim", "sum", "<dim>2</dim>", "<dim></dim>"),
    ("a question mark as dim", "sum", "<dim>2</dim>", "<dim>?</dim>"),
    ("a dim below minus one", "sum", "<dim>2</dim>", "<dim>-2</dim>"),
    ("a dim with a fraction", "sum", "<dim>2</dim>", "<dim>2.5</dim>"),
    ("an interval as dim", "sum", "<dim>2</dim>", "<dim>1..3</dim>"),
    ("a dim of letters behind", "sum", "<dim>2</dim>", "<dim>2x</dim>"),
    ("a dim beyond 64 bits", "sum", "<dim>2</dim>", "<dim>99999999999999999999</dim>"),
    ("an element without slash in a dim", "sum", "<dim>2</dim>", "<dim/>"),
    ("another input dim", "sum", '<port id="0" precision="FP32">\n\t\t\t\t\t<dim>2</dim>', '¤<port id="0" precision="FP32">\n\t\t\t\t\t¤<dim>5</dim>'),
    ("another output dim", "relu", '<port id="1" precision="FP32" names="y">\n\t\t\t\t\t<dim>2</dim>', '¤<port id="1" precision="FP32" names="y">\n\t\t\t\t\t¤<dim>5</dim>'),
    ("an input dim too much", "sum", '<port id="0" precision="FP32">\n\t\t\t\t\t<dim>2</dim>', '¤<port id="0" precision="FP32">\n\t\t\t\t\t¤<dim>1</dim><dim>2</dim>'),
    ("another dim of a Parameter", "image", '<port id="0" precision="FP32" names="x">\n\t\t\t\t\t<dim>2</dim>', '¤<port id="0" precision="FP32" names="x">\n\t\t\t\t\t¤<dim>4</dim>'),
    ("another dim of a Const", "bias", '<port id="0" precision="FP32">\n\t\t\t\t\t<dim>1</dim>', '¤<port id="0" precision="FP32">\n\t\t\t\t\t¤<dim>5</dim>'),
    ("an unknown dim where it is known", "relu", '<port id="1" precision="FP32" names="y">\n\t\t\t\t\t<dim>2</dim>', '¤<port id="1" precision="FP32" names="y">\n\t\t\t\t\t¤<dim>-1</dim>'),
    ("another dim of a Result", "out", '<port id="0" precision="FP32">\n\t\t\t\t\t<dim>2</dim>', '¤<port id="0" precision="FP32">\n\t\t\t\t\t¤<dim>22</dim>'),
    ("an input port that no edge reaches", "sum", "</input>", '<port id="9" precision="FP32"/></input>'),
    ("an output port that the op has not", "relu", "</output>", '<port id="5" precision="FP32"/></output>'),
    ("a Parameter with an input", "image", "<output>", '<input><port id="7" precision="FP32"/></input><output>'),
    ("a Result with an output", "out", "</input>", '</input><output><port id="1" precision="FP32"><dim>2</dim><dim>5</dim></port></output>'),
    ("a Const with an input", "weights", "<output>", '<input><port id="7" precision="FP32"/></input><output>'),
    ("the name of another tensor", "relu", 'names="y"', 'names="x"'),
    ("the second name of another tensor", "relu", 'names="y"', 'names="y,m2"'),
    ("a name twice at one port", "relu", 'names="y"', 'names="y,y"'),
    ("empty names between commas", "relu", 'names="y"', 'names="y,,z"'),
    ("names of an input port", "sum", '<port id="0" precision="FP32"', '<port id="0" precision="FP32" names="a"'),
    ("name for names", "relu", 'names="y"', 'name="y"'),
]  # fmt: skip
PORT_ARGUABLE = {
    "an unknown dim where it is known": "it is true, only less than what is known",
    "a name twice at one port": "it is one name",
    "empty names between commas": "they are dropped",
    "a Result with an output": "converters up to 2021 write it; only the size in it contradicts",
    "names of an input port": "nobody reads it",
    "an input precision that is none": "nobody reads it",
    "another input precision": "nobody reads it",
    "another input precision of a Result": "nobody reads it",
}

EDGES: list[tuple[str, str | None, str, str]] = [
    ("from a layer that is not there", None, EDGE, EDGE.replace('from-layer="0"', 'from-layer="70"')),
    ("to a layer that is not there", None, EDGE, EDGE + "\n" + EDGE.replace('to-layer="2"', 'to-layer="70"').replace("<edge", "¤<edge")),
    ("from a port that is not there", None, EDGE, EDGE.replace('from-port="0"', 'from-port="5"')),
    ("to a port that is not there", None, EDGE, EDGE.replace('to-port="0"', 'to-port="5"')),
    ("from an input port", None, '<edge from-layer="2" from-port="2" to-layer="4"', '<edge from-layer="2" from-port="1" to-layer="4"'),
    ("to an output port", None, SECOND, SECOND.replace('to-port="1"', 'to-port="2"')),
    ("twice the same", None, EDGE, EDGE + "\n\t\t¤" + EDGE),
    ("two into one port", None, EDGE, EDGE + "\n\t\t¤" + EDGE.replace('from-layer="0"', 'from-layer="1"')),
    ("no from-layer", None, EDGE, EDGE.replace('from-layer="0" ', "")),
    ("no from-port", None, EDGE, EDGE.replace('from-port="0" ', "")),
    ("no to-layer", None, EDGE, EDGE.replace('to-layer="2" ', "")),
    ("no to-port", None, EDGE, EDGE.replace(' to-port="0"', "")),
    ("underscores for hyphens", None, EDGE, EDGE.replace("from-layer", "from_layer")),
    ("a layer that is a word", None, EDGE, EDGE.replace('from-layer="0"', 'from-layer="image"')),
    ("a negative layer", None, EDGE, EDGE.replace('from-layer="0"', 'from-layer="-1"')),
    ("a port that is empty", None, EDGE, EDGE.replace('from-port="0"', 'from-port=""')),
    ("to the input of another layer", None, SECOND, SECOND.replace('to-layer="2" to-port="1"', 'to-layer="5" to-port="0"')),
    ("a port with a fraction", None, EDGE, EDGE.replace('from-port="0"', 'from-port="0.5"')),
    ("a layer into itself", None, '<edge from-layer="2" from-port="2" to-layer="4"', '<edge from-layer="4" from-port="2" to-layer="4"'),
    ("a cycle", None, '<edge from-layer="2" from-port="2" to-layer="4"', '<edge from-layer="5" from-port="1" to-layer="4"'),
    ("out of a Result", None, "</edges>", '\t¤<edge from-layer="6" from-port="0" to-layer="5" to-port="0"/>\n</edges>'),
    ("into a Parameter", None, "</edges>", '\t¤<edge from-layer="1" from-port="0" to-layer="0" to-port="0"/>\n</edges>'),
    ("into a Const", None, "</edges>", '\t¤<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>\n</edges>'),
    ("an edge in capitals", None, EDGE, EDGE.replace("<edge", "<Edge")),
    ("a link for an edge", None, EDGE, EDGE.replace("<edge", "<link")),
    ("beyond 64 bits", None, EDGE, EDGE.replace('to-layer="2"', 'to-layer="18446744073709551616"')),
    ("an attribute twice", None, EDGE, EDGE.replace('to-port="0"', 'to-port="0" to-port="1"')),
    ("a source of another shape", None, '<edge from-layer="3" from-port="0"', '<edge from-layer="1" from-port="0"'),
]  # fmt: skip
EDGE_ARGUABLE = {
    "a source of another shape": "the layer that cannot be computed may be blamed, or its ports",
    "a cycle": "any edge of the cycle",
}

MISSING: list[tuple[str, str | None, str, str]] = [
    ("the first edge of MatMul", "product", "^" + EDGE, ""),
    ("the second edge of MatMul", "product", "^" + SECOND, ""),
    ("the edge of a Result", "out", '^<edge from-layer="5" from-port="1" to-layer="6" to-port="0"/>', ""),
    ("the edge of ReLU", "relu", '^<edge from-layer="4" from-port="2" to-layer="5" to-port="0"/>', ""),
]  # fmt: skip


TYPES: list[tuple[str, str | None, str, str]] = [
    ("a Parameter that is a ReLU", "pixels", '^type="Parameter"', 'type="ReLU"'),
    ("a Parameter that is an Add", "pixels", '^type="Parameter"', 'type="Add"'),
    ("a Parameter that is a Result", "pixels", '^type="Parameter"', 'type="Result"'),
    ("a Parameter that is a Concat", "pixels", '^type="Parameter"', 'type="Concat"'),
    ("a Parameter that is a Constant", "pixels", '^type="Parameter"', 'type="Constant"'),
    ("a Const that is a Parameter", "axis", '^type="Const"', 'type="Parameter"'),
    ("a Const that is a Result", "axis", '^type="Const"', 'type="Result"'),
    ("a Convolution that is an AvgPool", "conv", '^type="Convolution"', 'type="AvgPool"'),
    ("a Convolution that is a Constant", "conv", '^type="Convolution"', 'type="Constant"'),
    ("a Convolution that is a Result", "conv", '^type="Convolution"', 'type="Result"'),
    ("a pool that is a Convolution", "pool", '^type="MaxPool"', 'type="Convolution"'),
    ("a pool that is a Result", "pool", '^type="MaxPool"', 'type="Result"'),
    ("a Reshape that is a Split", "flat", '^type="Reshape"', 'type="Split"'),
    ("a Reshape that is a Transpose", "flat", '^type="Reshape"', 'type="Transpose"'),
    ("a Split that is a Squeeze", "parts", '^type="Split"', 'type="Squeeze"'),
    ("a Result that is a Clamp", "out", '^type="Result"', 'type="Clamp"'),
]  # fmt: skip

INSIDE: list[tuple[str, str | None, str, str]] = [
    ("a Parameter that is a Result", "iteration", '^type="Parameter"', 'type="Result"'),
    ("a Parameter that is a Gather", "before", '^type="Parameter"', 'type="Gather"'),
    ("a Parameter that is a Const", "scale", '^type="Parameter"', 'type="Const"'),
    ("an Add that is a Parameter", "moved", '^type="Add"', 'type="Parameter"'),
    ("a Multiply that is an Equal", "scaled", '^type="Multiply"', 'type="Equal"'),
    ("a Convert that is a ReLU", "step", '^type="Convert"', 'type="ReLU"'),
    ("a Result that is a Reshape", "last", '^type="Result"', 'type="Reshape"'),
    ("a Result that is a Const", "last", '^type="Result"', 'type="Const"'),
    ("a counter of f16", "iteration", '^element_type="i64"', 'element_type="f16"'),
]  # fmt: skip


BRANCH: list[tuple[str, str | None, str, str]] = [
    ("an Add that is an Equal", "then_sum", '^type="Add"', 'type="Equal"'),
    ("a Parameter that is a ReLU", "else_x", '^type="Parameter"', 'type="ReLU"'),
]  # fmt: skip

VARIABLES: list[tuple[str, str | None, str, str]] = [
    ("an Assign that is a Clamp", "keep", '^type="Assign"', 'type="Clamp"'),
    ("a ReadValue that is an Equal", "kept", '^type="ReadValue"', 'type="Equal"'),
    ("a Parameter of another type", "x", '^element_type="f32"', 'element_type="f16"'),
    ("a Parameter of another shape", "x", '^shape="2,3"', 'shape="3"'),
    ("a ReadValue that nobody reads", "keep_last", '^<edge from-layer="4" from-port="0" to-layer="5" to-port="0"/>', '<edge from-layer="3" from-port="2" to-layer="5" to-port="0"/>'),
    ("a ReadValue that is a Const", "last", '^type="ReadValue"', 'type="Const"'),
]  # fmt: skip

RESULT: list[tuple[str, str | None, str, str]] = [
    ("a ReLU", "out", '^type="Result"', 'type="ReLU"'),
    ("an Add", "out", '^type="Result"', 'type="Add"'),
]  # fmt: skip


def defects() -> list[Defect]:
    base = bases.dense()
    return [
        *plant("other types", bases.image(), TYPES),
        *plant("other types in a body", bases.loop(), INSIDE),
        *plant("other types in a branch", bases.branch(), BRANCH),
        *plant("other types of variables", bases.state(), VARIABLES),
        *plant("another type of the Result", base, RESULT),
        *plant("layers", base, LAYERS, LAYER_ARGUABLE, named=False),
        *plant("ports", base, PORTS, PORT_ARGUABLE),
        *plant("edges", base, EDGES, EDGE_ARGUABLE, named=False),
        *plant("missing edges", base, MISSING),
    ]
