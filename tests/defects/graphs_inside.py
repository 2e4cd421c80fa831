"""Defects of bodies (If, Loop, TensorIterator), of their port maps and back edges, and of variables."""

# ruff: noqa: E501 (a row of a table is a line)

from defects import bases
from defects.graphs import Graph
from defects.planting import MARK, Defect, marked, plant

IN1 = '<input external_port_id="1" internal_layer_id="0"/>'
THEN_OUT = '<output external_port_id="2" internal_layer_id="3"/>'
ELSE_OUT = '<output external_port_id="2" internal_layer_id="2"/>'

IF: list[tuple[str, str | None, str, str]] = [
    ("an input that the If has not", "choice", 'external_port_id="1"', 'external_port_id="5"'),
    ("the condition given to a body as floats", "choice", 'external_port_id="1"', 'external_port_id="0"'),
    ("a negative external port of an input", "choice", 'external_port_id="1"', 'external_port_id="-1"'),
    ("an input of no layer", "choice", 'internal_layer_id="0"', 'internal_layer_id="50"'),
    ("an input of a layer that is no Parameter", "choice", 'internal_layer_id="0"', 'internal_layer_id="1"'),
    ("an input of a Result", "choice", 'internal_layer_id="0"', 'internal_layer_id="3"'),
    ("an input twice", "choice", IN1, IN1 + "\n\t\t\t\t¤" + IN1),
    ("an input's external port missing", "choice", 'external_port_id="1" ', ""),
    ("an input's internal layer missing", "choice", ' internal_layer_id="0"', ""),
    ("an external port that is a word", "choice", 'external_port_id="1"', 'external_port_id="x"'),
    ("an internal layer that is a word", "choice", 'internal_layer_id="0"', 'internal_layer_id="then_x"'),
    ("an output of no layer", "choice", THEN_OUT, THEN_OUT.replace('"3"', '"30"')),
    ("an output of a layer that is no Result", "choice", THEN_OUT, THEN_OUT.replace('"3"', '"2"')),
    ("an output of a Parameter", "choice", THEN_OUT, THEN_OUT.replace('"3"', '"0"')),
    ("an output twice", "choice", THEN_OUT, THEN_OUT + "\n\t\t\t\t¤" + THEN_OUT),
    ("an output for another port", "choice", ELSE_OUT, ELSE_OUT.replace('"2" int', '"7" int')),
    ("an output's external port missing", "choice", ELSE_OUT, ELSE_OUT.replace('external_port_id="2" ', "")),
    ("an axis in an If", "choice", IN1, IN1.replace("/>", ' axis="0"/>')),
    ("a purpose in an If", "choice", IN1, IN1.replace("/>", ' purpose="current_iteration"/>')),
    ("internal_port_id for internal_layer_id", "choice", "internal_layer_id", "internal_port_id"),
    ("a map of nothing but the output", "choice", "^" + IN1, ""),
    ("a then branch without an output", "choice", "^" + THEN_OUT, ""),
    ("no map of the else branch", "choice", "<else_port_map>", "<other_port_map>"),
    ("a map misspelt", "choice", "<then_port_map>", "<then_portmap>"),
    ("a body misspelt", "choice", "<then_body>", "<thenbody>"),
    ("a port map in an If", "choice", "<then_port_map>", "<port_map/><then_port_map>"),
    ("back edges in an If", "choice", "<then_port_map>", "<back_edges/><then_port_map>"),
    ("a body in an If", "choice", "<then_body>", "<body/><then_body>"),
    ("two then bodies", "choice", "<then_body>", "<then_body/><then_body>"),
    ("two maps of one branch", "choice", "<then_port_map>", "<then_port_map/><then_port_map>"),
    ("a condition of floats", "condition", 'element_type="boolean"', 'element_type="f32"'),
    ("a condition of three", "condition", 'shape=""', 'shape="3"'),
    ("branches of two types", "else_x", 'element_type="f32"', 'element_type="i32"'),
    ("a branch of another rank", "else_x", 'shape="2,3"', 'shape="2,3,1"'),
    ("a Parameter that does not fit what comes", "then_x", 'shape="2,3"', 'shape="4,3"'),
    ("a Parameter of another type than comes", "then_x", 'element_type="f32"', 'element_type="f16"'),
    ("a type of no opset in a branch", "negated", 'type="Negative"', 'type="Minus"'),
    ("an axis of the constant's bytes in a branch", "one", 'offset="0"', 'offset="400"'),
    ("an attribute that is none in a branch", "then_sum", 'auto_broadcast="numpy"', 'auto_broadcast="num"'),
    ("the id of another layer in a branch", "one", 'id="1"', 'id="0"'),
    ("an edge from a layer outside", "then_out", '<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>', '<edge from-layer="9" from-port="2" to-layer="3" to-port="0"/>'),
    ("two edges into one port in a branch", "then_out", '<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>', '<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>\n¤<edge from-layer="1" from-port="0" to-layer="3" to-port="0"/>'),
    ("a declared size in a branch", "negated", '<port id="1" precision="FP32">\n\t\t\t\t\t\t\t\t<dim>2</dim>', '¤<port id="1" precision="FP32">\n\t\t\t\t\t\t\t\t¤<dim>4</dim>'),
    ("the declared size of the If", "choice", '<port id="2" precision="FP32">\n\t\t\t\t\t<dim>2</dim>', '¤<port id="2" precision="FP32">\n\t\t\t\t\t¤<dim>4</dim>'),
    ("the declared type of the If", "choice", '<port id="2" precision="FP32"', '<port id="2" precision="I64"'),
    ("an output port too much of the If", "choice", "</output>", '<port id="3" precision="FP32"/></output>'),
    ("an If before its opset", "choice", 'version="opset8"', 'version="opset7"'),
]  # fmt: skip
TYPES_IN_IF = {
    "branches of two types": "the Parameter contradicts what comes in as well",
    "a branch of another rank": "the Parameter contradicts what comes in as well",
    "a Parameter that does not fit what comes": "OpenVINO gives Parameters of bodies what comes in",
    "a Parameter of another type than comes": "OpenVINO gives Parameters of bodies what comes in",
    "a condition of floats": "blame belongs to the If, or to the Parameter",
    "a condition of three": "blame belongs to the If, or to the Parameter",
    "a map of nothing but the output": "a branch need not read an input; the Parameter is left without a source",
}

SLICED = '<input external_port_id="3" internal_layer_id="2" axis="0" start="0" end="-1" stride="1" part_size="1"/>'
MERGED = '<input external_port_id="2" internal_layer_id="1"/>'
INVARIANT = '<input external_port_id="4" internal_layer_id="3"/>'
COUNTER = '<input external_port_id="-1" internal_layer_id="0" purpose="current_iteration"/>'
LAST = '<output external_port_id="5" internal_layer_id="10"/>'
JOINED = '<output external_port_id="6" internal_layer_id="10" axis="0" start="0" end="-1" stride="1" part_size="1"/>'
PROCEED = '<output external_port_id="-1" internal_layer_id="9" purpose="execution_condition"/>'
BACK = '<edge from-layer="10" to-layer="1"/>'

LOOP: list[tuple[str, str | None, str, str]] = [
    ("an axis beyond the rank", "loop", SLICED, SLICED.replace('axis="0"', 'axis="2"')),
    ("an axis that is a word", "loop", SLICED, SLICED.replace('axis="0"', 'axis="rows"')),
    ("a stride of zero", "loop", SLICED, SLICED.replace('stride="1"', 'stride="0"')),
    ("parts of zero", "loop", SLICED, SLICED.replace('part_size="1"', 'part_size="0"')),
    ("parts of two in a body for one", "loop", SLICED, SLICED.replace('part_size="1"', 'part_size="2"')),
    ("a start beyond the axis", "loop", SLICED, SLICED.replace('start="0"', 'start="7"')),
    ("an end beyond the axis", "loop", SLICED, SLICED.replace('end="-1"', 'end="9"')),
    ("a stride that runs the other way", "loop", SLICED, SLICED.replace('stride="1"', 'stride="-1"')),
    ("a stride without an axis", "loop", SLICED, SLICED.replace('axis="0" ', "")),
    ("a misspelt part_size", "loop", SLICED, SLICED.replace("part_size", "partsize")),
    ("a negative part_size", "loop", SLICED, SLICED.replace('part_size="1"', 'part_size="-1"')),
    ("a start that is a word", "loop", SLICED, SLICED.replace('start="0"', 'start="first"')),
    ("a sliced input of no Parameter", "loop", SLICED, SLICED.replace('internal_layer_id="2"', 'internal_layer_id="4"')),
    ("two inputs for one Parameter", "loop", INVARIANT, INVARIANT.replace('internal_layer_id="3"', 'internal_layer_id="1"')),
    ("one input for two Parameters", "loop", INVARIANT, INVARIANT.replace('external_port_id="4"', 'external_port_id="2"')),
    ("an input that the Loop has not", "loop", INVARIANT, INVARIANT.replace('external_port_id="4"', 'external_port_id="12"')),
    ("a negative input that is not the counter", "loop", INVARIANT, INVARIANT.replace('external_port_id="4"', 'external_port_id="-1"')),
    ("an input of a layer that is not there", "loop", INVARIANT, INVARIANT.replace('internal_layer_id="3"', 'internal_layer_id="33"')),
    ("the counter for a row", "loop", COUNTER, COUNTER.replace('internal_layer_id="0"', 'internal_layer_id="44"')),
    ("a purpose that is none", "loop", COUNTER, COUNTER.replace("current_iteration", "iteration")),
    ("a purpose in capitals", "loop", COUNTER, COUNTER.replace("current_iteration", "Current_Iteration")),
    ("two counters", "loop", COUNTER, COUNTER + "\n\t\t\t\t¤" + COUNTER),
    ("an axis of the counter", "loop", COUNTER, COUNTER.replace("/>", ' axis="0"/>')),
    ("the purpose of an output at an input", "loop", COUNTER, COUNTER.replace("current_iteration", "execution_condition")),
    ("an output of no layer", "loop", LAST, LAST.replace('"10"', '"100"')),
    ("an output of a layer that is no Result", "loop", LAST, LAST.replace('"10"', '"7"')),
    ("an output that the Loop has not", "loop", LAST, LAST.replace('"5"', '"15"')),
    ("an output twice", "loop", LAST, LAST + "\n\t\t\t\t¤" + LAST),
    ("an output port that nothing fills", "loop", "^" + LAST, ""),
    ("an output joined along no axis", "loop", JOINED, JOINED.replace('axis="0"', 'axis="5"')),
    ("an output with a stride of zero", "loop", JOINED, JOINED.replace('stride="1"', 'stride="0"')),
    ("an output of parts of three", "loop", JOINED, JOINED.replace('part_size="1"', 'part_size="3"')),
    ("no condition", "loop", "^" + PROCEED, ""),
    ("a condition that is the data", "loop", PROCEED, PROCEED.replace('"9"', '"10"')),
    ("two conditions", "loop", PROCEED, PROCEED + "\n\t\t\t\t¤" + PROCEED),
    ("the condition's purpose misspelt", "loop", PROCEED, PROCEED.replace("execution_condition", "execution_cond")),
    ("a back edge from no layer", "loop", BACK, BACK.replace('"10"', '"100"')),
    ("a back edge to no layer", "loop", BACK, BACK.replace('"1"', '"11"')),
    ("a back edge to a layer of no kind", "loop", BACK, BACK.replace('to-layer="1"', 'to-layer="4"')),
    ("a back edge from a Parameter", "loop", BACK, BACK.replace('from-layer="10"', 'from-layer="3"')),
    ("a back edge from the layer before the Result", "loop", BACK, BACK.replace('from-layer="10"', 'from-layer="7"')),
    ("a back edge into a sliced input", "loop", BACK, BACK.replace('to-layer="1"', 'to-layer="2"')),
    ("a back edge twice", "loop", BACK, BACK + "\n\t\t\t\t¤" + BACK),
    ("two back edges into one Parameter", "loop", BACK, BACK + "\n\t\t\t\t¤" + BACK.replace('"10"', '"9"')),
    ("a back edge of another type", "loop", BACK, BACK.replace('"10"', '"9"')),
    ("a back edge without from-layer", "loop", BACK, BACK.replace('from-layer="10" ', "")),
    ("a back edge without to-layer", "loop", BACK, BACK.replace(' to-layer="1"', "")),
    ("a back edge with ids that are words", "loop", BACK, BACK.replace('"10"', '"last"')),
    ("no port map", "loop", "<port_map>", "<portmap>"),
    ("no back edges by a misspelling", "loop", "<back_edges>", "<backedges>"),
    ("no body", "loop", "<body>", "<bodies>"),
    ("two bodies", "loop", "<body>", "<body/><body>"),
    ("a then body in a Loop", "loop", "<body>", "<then_body/><body>"),
    ("an unknown element in a port map", "loop", INVARIANT, INVARIANT + "<inout/>"),
    ("trips of floats", "trips", 'element_type="i64" shape=""', 'element_type="f64" shape=""'),
    ("trips with two numbers", "trips", 'shape="" offset="0" size="8"', 'shape="2" offset="0" size="16"'),
    ("a start condition of integers", "go", 'element_type="boolean"', 'element_type="u8"'),
    ("a Loop before its opset", "loop", 'version="opset5"', 'version="opset4"'),
    ("a Loop that is a TensorIterator", "loop", 'type="Loop"', 'type="TensorIterator"'),
    ("a sum in the body that does not fit", "before", 'shape="1,4"', 'shape="1,5"'),
    ("a row of another type", "row", 'element_type="f32"', 'element_type="i32"'),
    ("a body's condition of floats", "more", 'element_type="boolean"', 'element_type="u8"'),
    ("a condition for three in the body", "more", 'shape="" offset="9"', 'shape="1,2" offset="8"'),
    ("more trips than rows", "rows", 'shape="3,4"', 'shape="2,4"'),
    ("the declared size of what is joined", "loop", '<port id="6" precision="FP32">\n\t\t\t\t\t<dim>3</dim>', '¤<port id="6" precision="FP32">\n\t\t\t\t\t¤<dim>9</dim>'),
    ("a layer of no opset in the body", "moved", 'type="Add"', 'type="Adds"'),
    ("a cycle in the body", "last", '<edge from-layer="2" from-port="0" to-layer="4" to-port="0"/>', '<edge from-layer="7" from-port="2" to-layer="4" to-port="0"/>'),
    ("an edge of the body to no layer", "last", '<edge from-layer="8" from-port="0" to-layer="9" to-port="0"/>', '<edge from-layer="8" from-port="0" to-layer="90" to-port="0"/>'),
]  # fmt: skip
LOOP_ARGUABLE = {
    "more trips than rows": "the number of slices bounds the trips in some readings",
    "a purpose in capitals": "enumerations may be read in any case",
    "a sum in the body that does not fit": "OpenVINO gives Parameters of bodies what comes in",
    "a row of another type": "OpenVINO gives Parameters of bodies what comes in",
    "a start condition of integers": "blame belongs to the Loop, or to the constant's port",
    "a body's condition of floats": "blame belongs to the Loop, or to the constant's port",
    "trips of floats": "blame belongs to the Loop, or to the constant's port",
    "an end beyond the axis": "ends may be cut off at the size",
    "a condition for three in the body": "blame belongs to the Loop, or to the constant",
    "trips with two numbers": "blame belongs to the Loop, or to the constant's port",
    "a stride without an axis": "OpenVINO passes over it",
    "an edge of the body to no layer": "the Result may be blamed as well",
    "a Loop that is a TensorIterator": "many lines contradict it",
}

PART = '<input external_port_id="0" internal_layer_id="0" axis="1" start="0" end="-1" stride="1" part_size="1"/>'
START = '<input external_port_id="1" internal_layer_id="1"/>'
ITERATOR: list[tuple[str, str | None, str, str]] = [
    ("parts that do not come out", "iterator", PART, PART.replace('part_size="1"', 'part_size="2"').replace('stride="1"', 'stride="2"')),
    ("an axis below the rank", "iterator", PART, PART.replace('axis="1"', 'axis="-4"')),
    ("no slice at all, so no end", "iterator", PART, '<input external_port_id="0" internal_layer_id="0"/>'),
    ("a purpose in a TensorIterator", "iterator", START, START.replace("/>", ' purpose="current_iteration"/>')),
    ("start and end on one spot", "iterator", PART, PART.replace('end="-1"', 'end="0"')),
    ("backwards from the start", "iterator", PART, PART.replace('stride="1"', 'stride="-1"')),
    ("an input without a map", "iterator", "^" + START, ""),
    ("an output without an external port", "iterator", '<output external_port_id="2" ', "<output "),
    ("an output without an internal layer", "iterator", '<output external_port_id="2" internal_layer_id="3"/>', '<output external_port_id="2"/>'),
    ("a back edge to the sliced Parameter", "iterator", '<edge from-layer="3" to-layer="1"/>', '<edge from-layer="3" to-layer="0"/>'),
    ("a TensorIterator of opset 0", "iterator", 'version="opset1"', 'version="opset0"'),
    ("a stride of zero", "iterator", PART, PART.replace('stride="1"', 'stride="0"')),
    ("an end that is a word", "iterator", PART, PART.replace('end="-1"', 'end="last"')),
    ("a map without internal layer", "iterator", START, START.replace(' internal_layer_id="1"', "")),
    ("a trip of a Loop", "iterator", START, START.replace('external_port_id="1"', 'external_port_id="11"')),
]  # fmt: skip

VARIABLES: list[tuple[str, str | None, str, str]] = [
    ("an Assign of no ReadValue", "keep", 'variable_id="total"', 'variable_id="totals"'),
    ("an id in another case", "keep", 'variable_id="total"', 'variable_id="Total"'),
    ("an id with a blank", "keep", 'variable_id="total"', 'variable_id="total "'),
    ("an Assign without an id", "keep", 'variable_id="total"', ""),
    ("an empty id of an Assign", "keep", 'variable_id="total"', 'variable_id=""'),
    ("a ReadValue without an id", "kept", 'variable_id="total" ', ""),
    ("variable-id for variable_id", "kept", 'variable_id="', 'variable-id="'),
    ("two Assigns of one variable", "keep_last", 'variable_id="last"', 'variable_id="total"'),
    ("two ReadValues of one variable", "last", 'variable_id="last"', 'variable_id="total"'),
    ("a type of no list", "kept", 'variable_type="f32"', 'variable_type="FP32"'),
    ("a type that is not the initial one", "kept", '^variable_type="f32"', 'variable_type="f16"'),
    ("a type that is not assigned", "last", 'variable_type="f32"', 'variable_type="i32"'),
    ("no type", "last", 'variable_type="f32" ', ""),
    ("no shape", "last", ' variable_shape="2,3"', ""),
    ("a shape that the initial value has not", "kept", '^variable_shape="2,3"', 'variable_shape="3,2"'),
    ("a shape of another rank", "kept", '^variable_shape="2,3"', 'variable_shape="2,3,1"'),
    ("a shape that is not assigned", "last", 'variable_shape="2,3"', 'variable_shape="2,4"'),
    ("an interval without the initial size", "kept", '^variable_shape="2,3"', 'variable_shape="3..5,3"'),
    ("a shape of letters", "kept", 'variable_shape="2,3"', 'variable_shape="N,3"'),
    ("a negative size", "kept", 'variable_shape="2,3"', 'variable_shape="2,-3"'),
    ("an Assign of opset3 for a variable of opset6", "keep", 'version="opset6"', 'version="opset3"'),
    ("an Assign in an opset that has none", "keep", 'version="opset6"', 'version="opset1"'),
    ("variable_type misspelt", "kept", "variable_type", "variable_typ"),
    ("an attribute of ReadValue at Assign", "keep", 'variable_id="total"', 'variable_id="total" variable_shape="2,3"'),
    ("a name for an id", "keep", 'variable_id="total"', 'variable_name="total"'),
    ("an initial value of another size", "zero", 'shape="2,3"', 'shape="1,3"'),
    ("what is assigned has another type", "x", 'element_type="f32"', 'element_type="f64"'),
]  # fmt: skip
VARIABLE_ARGUABLE = {
    "two ReadValues of one variable": "two readers of one variable are read by some",
    "an initial value of another size": "the ReadValue may be blamed",
    "what is assigned has another type": "the sum may be blamed, which is first to read it",
    "a type that is not assigned": "the product that reads the variable may be blamed, or the Assign",
    "a shape that is not assigned": "the product that reads the variable may be blamed, or the Assign",
    "no type": "it may have a default",
    "no shape": "it may have a default",
}


def chains() -> list[Defect]:
    """Variables and bodies where layers far from each other contradict."""
    made = []

    def add(name: str, g: Graph, layer: str, arguable: str = "") -> None:
        text = g.text()
        at = text.rindex("<layer", 0, text.index(f'name="{layer}"'))
        made.append(marked("variables", name, text[:at] + MARK + text[at:], bytes(g.weights), layer, arguable))

    def started(shape: str, type: str = "f32") -> tuple[Graph, tuple[int, int], tuple[int, int]]:
        g = Graph()
        x = g.parameter("x", "f32[2,3]")
        zero = g.const("zero", "f32[2,3]{*}")
        dims = ",".join("?" if part == "?" else part for part in shape.split(","))
        read = g.op(
            "read",
            "opset6.ReadValue",
            [zero],
            [f"f32[{dims}]"],
            variable_id="v",
            variable_type=type,
            variable_shape=shape,
        )[0]
        return g, x, read

    g, x, read = started("2,3")
    wide = g.op("wide", "opset1.Concat", [read, x], ["f32[4,3]"], axis="0")[0]
    g.op("keep", "opset6.Assign", [wide], ["f32[4,3]"], variable_id="v")
    g.result("r", wide)
    add("what is kept grows beyond a fixed shape", g, "keep")
    g, x, read = started("?,3")
    turned = g.op(
        "turned", "opset1.Reshape", [read, g.const("s", "i64[3]{-1,3,1}")], ["f32[?,3,1]"], special_zero="false"
    )[0]
    g.op("keep", "opset6.Assign", [turned], ["f32[?,3,1]"], variable_id="v")
    g.result("r", turned)
    add("what is kept has another rank", g, "keep")
    g, x, read = started("?,3")
    halves = g.op("halves", "opset1.Convert", [read], ["f16[?,3]"], destination_type="f16")[0]
    g.op("keep", "opset6.Assign", [halves], ["f16[?,3]"], variable_id="v")
    g.result("r", halves)
    add("what is kept has another type", g, "keep")
    g, x, read = started("?,3")
    g.op("keep", "opset6.Assign", [x], ["f32[2,3]"], variable_id="v")
    g.op("again", "opset6.Assign", [read], ["f32[?,3]"], variable_id="v")
    g.result("r", read)
    add("assigned twice, both in use", g, "again")
    return made


def defects() -> list[Defect]:
    return [
        *plant("if", bases.branch(), IF, TYPES_IN_IF),
        *plant("loop", bases.loop(), LOOP, LOOP_ARGUABLE),
        *plant("iterator", bases.iterator(), ITERATOR),
        *plant("variables", bases.state(), VARIABLES, VARIABLE_ARGUABLE),
        *chains(),
    ]
