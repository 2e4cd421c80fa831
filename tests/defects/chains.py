"""Defects in small chains of layers: types that do not come together, sizes that never fit, names used twice, packed
constants, variables far apart, and bodies within bodies."""

# ruff: noqa: E501 (a row of a table is a line)

from collections.abc import Callable

from defects.graphs import Graph
from defects.planting import MARK, Defect, marked

NUMPY = {"auto_broadcast": "numpy"}
FLOATS = {"transpose_a": "false", "transpose_b": "false"}
CONV = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "auto_pad": "explicit"}
GROUP = {"num_groups": "2", "epsilon": "0.001"}
LSTM = {"hidden_size": "3", "activations": "sigmoid,tanh,tanh"}
TOP = {"axis": "1", "mode": "max", "sort": "value", "index_element_type": "i32"}
OFF = {"special_zero": "false"}
EPS = {"epsilon": "0.001"}
NONE = {"auto_broadcast": "none"}

SIZES: list[tuple[str, str, list[str], str, dict[str, str]]] = [
    ("Subtract of 2..3 and 4..5", "opset1.Subtract", ["f32[2..3,?]", "f32[4..5,?]"], "f32[?,?]", NUMPY),
    ("Multiply of 2..3 and 4", "opset1.Multiply", ["f32[?,2..3]", "f32[4]"], "f32[?,?]", NUMPY),
    ("Divide of 3.. and 2", "opset1.Divide", ["f32[3..]", "f32[2]"], "f32[?]", NUMPY),
    ("Equal of 2..3 and 5..", "opset1.Equal", ["f32[2..3]", "f32[5..]"], "boolean[?]", NUMPY),
    ("LogicalOr of 2..3 and 4..", "opset1.LogicalOr", ["boolean[2..3]", "boolean[4..]"], "boolean[?]", NUMPY),
    ("Maximum of 3..4 and 5", "opset1.Maximum", ["f32[?,3..4]", "f32[?,5]"], "f32[?,?]", NUMPY),
    ("Mod of 3..4 and 5 without broadcasting", "opset1.Mod", ["f32[3..4]", "f32[5]"], "f32[?]", NONE),
    ("Power of another rank without broadcasting", "opset1.Power", ["f32[?,?]", "f32[?]"], "f32[?,?]", NONE),
    ("Select whose condition never fits", "opset1.Select", ["boolean[4..5]", "f32[2..3]", "f32[2..3]"], "f32[?]", NUMPY),
    ("Select whose branches never fit", "opset1.Select", ["boolean[?]", "f32[2..3]", "f32[5..6]"], "f32[?]", NUMPY),
    ("SquaredDifference of 2 and 3..", "opset1.SquaredDifference", ["f32[2]", "f32[3..]"], "f32[?]", NUMPY),
    ("Concat of 2 and 3..4 rows", "opset1.Concat", ["f32[2,?]", "f32[3..4,?]"], "f32[2,?]", {"axis": "1"}),
    ("Concat beyond an open rank", "opset1.Concat", ["f32[?,?]", "f32[?,?]"], "f32[?,?]", {"axis": "2"}),
    ("MatMul of 2..3 and 4..5", "opset1.MatMul", ["f32[?,2..3]", "f32[4..5,?]"], "f32[?,?]", FLOATS),
    ("MatMul, transposed", "opset1.MatMul", ["f32[?,3]", "f32[?,4]"], "f32[?,?]", {"transpose_a": "false", "transpose_b": "true"}),
    ("MatMul with batches of 2 and 3", "opset1.MatMul", ["f32[2,?,3]", "f32[3,3,?]"], "f32[?,?,?]", FLOATS),
    ("channels of a group convolution", "opset1.GroupConvolution", ["f32[?,5..,?,?]", "f32[2,3,2,3,3]{*}"], "f32[?,6,?,?]", CONV),
    ("channels of a transposed convolution", "opset1.ConvolutionBackpropData", ["f32[?,1..3,?,?]", "f32[4,3,3,3]{*}"], "f32[?,3,?,?]", CONV),
    ("rank of a convolution", "opset1.Convolution", ["f32[?,?,?]", "f32[4,3,3,3]{*}"], "f32[?,4,?,?]", CONV),
    ("channels of BatchNorm", "opset5.BatchNormInference", ["f32[?,4..8,?]", "f32[3]{*}", "f32[3]{*}", "f32[3]{*}", "f32[3]{*}"], "f32[?,3,?]", EPS),
    ("channels of GroupNormalization", "opset12.GroupNormalization", ["f32[?,4..8,?]", "f32[2]{*}", "f32[2]{*}"], "f32[?,?,?]", GROUP),
    ("an axis that is never 1", "opset1.Squeeze", ["f32[2..,3]", "i64[1]{2}"], "f32[?]", {}),
    ("an axis of Gather", "opset8.Gather", ["f32[?,?]", "i64[?]", "i64[]{2}"], "f32[?]", {"batch_dims": "0"}),
    ("batches of Gather", "opset8.Gather", ["f32[2..3,?]", "i64[4..5,?]", "i64[]{1}"], "f32[?,?]", {"batch_dims": "1"}),
    ("tuples of GatherND", "opset8.GatherND", ["f32[?,?]", "i64[?,3]"], "f32[?]", {"batch_dims": "0"}),
    ("ranks of GatherElements", "opset6.GatherElements", ["f32[?,?]", "i64[?,?,?]"], "f32[?,?,?]", {"axis": "0"}),
    ("rows of GatherElements", "opset6.GatherElements", ["f32[2..3,?]", "i64[4..5,?]"], "f32[?,?]", {"axis": "1"}),
    ("ranks of ScatterElementsUpdate", "opset3.ScatterElementsUpdate", ["f32[?,?]", "i64[?]", "f32[?]", "i64[]{0}"], "f32[?,?]", {}),
    ("updates of ScatterElementsUpdate", "opset3.ScatterElementsUpdate", ["f32[?,?]", "i64[2..3,?]", "f32[4..5,?]", "i64[]{0}"], "f32[?,?]", {}),
    ("updates of ScatterUpdate", "opset3.ScatterUpdate", ["f32[?,3]", "i64[2]{0,1}", "f32[2,4..5]", "i64[]{0}"], "f32[?,3]", {}),
    ("updates of ScatterNDUpdate", "opset4.ScatterNDUpdate", ["f32[?,3]", "i64[?,1]", "f32[?,4..5]"], "f32[?,3]", {}),
    ("a third of an open size", "opset1.Split", ["f32[4..5,3]", "i64[]{0}"], "f32[?,3]", {"num_splits": "3"}),
    ("lengths that are too many", "opset1.VariadicSplit", ["f32[?,1..3]", "i64[]{1}", "i64[2]{2,2}"], "f32[?,2]", {}),
    ("a shape whose count never fits", "opset1.Reshape", ["f32[?,7]", "i64[2]{2,5}"], "f32[2,5]", OFF),
    ("a shape above all counts", "opset1.Reshape", ["f32[1..3,2]", "i64[1]{100}"], "f32[100]", OFF),
    ("a broadcast of 2..3 to 5", "opset3.Broadcast", ["f32[2..3,1]", "i64[2]{5,4}"], "f32[5,4]", {"mode": "numpy"}),
    ("an expected rank of Transpose", "opset1.Transpose", ["f32[?,?]", "i64[?]"], "f32[?,?,?]", {}),
    ("a window above all sizes", "opset1.MaxPool", ["f32[?,3,1..4,?]"], "f32[?,3,?,?]", {"strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "kernel": "5,1", "rounding_type": "floor", "auto_pad": "explicit"}),
    ("a depth that never divides", "opset1.DepthToSpace", ["f32[?,6,?,?]"], "f32[?,?,?,?]", {"block_size": "2", "mode": "blocks_first"}),
    ("channels that never shuffle", "opset1.ShuffleChannels", ["f32[?,5,?]"], "f32[?,5,?]", {"axis": "1", "group": "2"}),
    ("the width of an LSTM", "opset4.LSTMCell", ["f32[?,5..]", "f32[?,3]", "f32[?,3]", "f32[12,4]{*}", "f32[12,3]{*}", "f32[12]{*}"], "f32[?,3]", LSTM),
    ("the batches of an LSTM", "opset4.LSTMCell", ["f32[2..3,4]", "f32[5..6,3]", "f32[?,3]", "f32[12,4]{*}", "f32[12,3]{*}", "f32[12]{*}"], "f32[?,3]", LSTM),
    ("heads of attention", "opset13.ScaledDotProductAttention", ["f32[1,2,?,4]", "f32[1,3,?,4]", "f32[1,3,?,4]"], "f32[1,?,?,4]", {"causal": "false"}),
    ("widths of attention", "opset13.ScaledDotProductAttention", ["f32[?,?,1..3]", "f32[?,?,4]", "f32[?,?,4]"], "f32[?,?,4]", {"causal": "false"}),
    ("a label of Einsum", "opset7.Einsum", ["f32[?,2..3]", "f32[4..5,?]"], "f32[?,?]", {"equation": "ij,jk->ik"}),
    ("a matrix that is never square", "opset14.Inverse", ["f32[?,2..3,4..5]"], "f32[?,?,?]", {"adjoint": "false"}),
    ("boxes of three", "opset9.NonMaxSuppression", ["f32[?,?,3]", "f32[?,?,?]"], "i64[?,3]", {"box_encoding": "corner", "output_type": "i64"}),
    ("k above 1..2", "opset11.TopK", ["f32[?,1..2]", "i64[]{3}"], "f32[?,3]", TOP),
    ("complex numbers of three", "opset7.DFT", ["f32[?,?,3..]", "i64[1]{0}"], "f32[?,?,?]", {}),
    ("lengths for other batches", "opset1.ReverseSequence", ["f32[2..3,?]", "i32[4..5]"], "f32[?,?]", {"batch_axis": "0", "seq_axis": "1"}),
]  # fmt: skip

TYPES: list[tuple[str, list[tuple[str, str, dict[str, str], str]]]] = [
    ("the shape of i32 joined with i64", [("opset3.ShapeOf", "x", {"output_type": "i32"}, "i32[2]"), ("opset1.Concat", "@ i64[1]{1}", {"axis": "0"}, "i64[3]")]),
    ("a comparison added to floats", [("opset1.Greater", "x f32[]{0}", NUMPY, "boolean[2,3]"), ("opset1.Add", "@ f32[]{1}", NUMPY, "f32[2,3]")]),
    ("floats into a logical or", [("opset1.Sigmoid", "x", {}, "f32[2,3]"), ("opset1.LogicalOr", "@ @", NUMPY, "boolean[2,3]")]),
    ("floats as indices", [("opset1.Floor", "x", {}, "f32[2,3]"), ("opset8.Gather", "x @ i64[]{0}", {"batch_dims": "0"}, "f32[2,3,3]")]),
    ("a comparison as data of a product", [("opset1.Equal", "x f32[]{0}", NUMPY, "boolean[2,3]"), ("opset1.MatMul", "@ boolean[3,2]{*}", FLOATS, "boolean[2,2]")]),
    ("an integer condition", [("opset1.Convert", "x", {"destination_type": "i32"}, "i32[2,3]"), ("opset1.Select", "@ x x", NUMPY, "f32[2,3]")]),
    ("f16 weights without a conversion", [("opset1.Sigmoid", "x", {}, "f32[2,3]"), ("opset1.MatMul", "@ f16[3,2]{*}", FLOATS, "f32[2,2]")]),
    ("the square root of a comparison", [("opset1.Less", "x f32[]{0}", NUMPY, "boolean[2,3]"), ("opset1.Sqrt", "@", {}, "f32[2,3]")]),
    ("the negative of a comparison", [("opset1.Less", "x f32[]{0}", NUMPY, "boolean[2,3]"), ("opset1.Negative", "@", {}, "f32[2,3]")]),
    ("a shape as scales", [("opset3.ShapeOf", "x", {"output_type": "i64"}, "i64[2]"), ("opset11.Interpolate", "x @ i64[2]{0,1}", {"mode": "nearest", "shape_calculation_mode": "scales"}, "f32[2,3]")]),
    ("an f64 constant among f32", [("opset1.Exp", "x", {}, "f32[2,3]"), ("opset1.Divide", "@ f64[]{2}", NUMPY, "f32[2,3]")]),
    ("indices of TopK added to floats", [("opset1.NonZero", "x", {}, "i64[2,?]"), ("opset1.Add", "@ f32[]{1}", NUMPY, "f32[2,?]")]),
    ("floats as repeats", [("opset1.Sigmoid", "f32[2]{1,1}", {}, "f32[2]"), ("opset1.Tile", "x @", {}, "f32[?,?]")]),
    ("floats as an order", [("opset1.Abs", "f32[2]{1,0}", {}, "f32[2]"), ("opset1.Transpose", "x @", {}, "f32[3,2]")]),
    ("floats as a target", [("opset1.Abs", "f32[2]{2,3}", {}, "f32[2]"), ("opset1.Reshape", "x @", OFF, "f32[?,?]")]),
    ("a conversion to i64 that was forgotten", [("opset1.ReduceSum", "x i64[2]{0,1}", {"keep_dims": "false"}, "f32[]"), ("opset1.TopK", "x @", TOP, "f32[2,?]")]),
    ("u8 by f32", [("opset1.Convert", "x", {"destination_type": "u8"}, "u8[2,3]"), ("opset1.Multiply", "@ x", NUMPY, "f32[2,3]")]),
    ("reduced with logic though floats", [("opset1.Relu", "x", {}, "f32[2,3]"), ("opset1.ReduceLogicalOr", "@ i64[1]{0}", {"keep_dims": "true"}, "boolean[1,3]")]),
    ("shifted though floats", [("opset1.ReLU", "x", {}, "f32[2,3]"), ("opset15.BitwiseRightShift", "@ @", NUMPY, "f32[2,3]")]),
    ("complex numbers of integers", [("opset1.Convert", "x", {"destination_type": "i32"}, "i32[2,3]"), ("opset9.RDFT", "@ i64[1]{0}", {}, "f32[2,3,2]")]),
]  # fmt: skip
TYPES = [row for row in TYPES if "opset1.NonZero" not in str(row) and "opset1.Relu" not in str(row)]

PACKED: list[tuple[str, str, int, str]] = [
    ("four bits, one byte too few", "u4[3,3]", 4, ""),
    ("four bits counted as two bytes' worth", "i4[8]", 3, ""),
    ("one bit, a byte too few", "u1[9]", 1, ""),
    ("two bits, a byte too few", "u2[5]", 1, ""),
    ("nf4, a byte too few", "nf4[5]", 2, ""),
    ("f8, a byte too few", "f8e4m3[5]", 4, ""),
    ("bf16, half of the bytes", "bf16[4]", 4, ""),
    ("f8 counted as f32", "f8e5m2[4]", 3, ""),
    ("i64 counted as i32", "i64[4]", 16, ""),
    ("booleans counted as bits", "boolean[8]", 1, ""),
]  # fmt: skip


def placed(g: Graph, family: str, name: str, layer: str, arguable: str = "") -> Defect:
    text = g.text()
    at = text.rindex("<layer", 0, text.index(f'name="{layer}"'))
    return marked(family, name, text[:at] + MARK + text[at:], bytes(g.weights), layer, arguable)


def sizes() -> list[Defect]:
    made = []
    for name, op, inputs, output, attributes in SIZES:
        g = Graph()
        ports = [g.const(f"c{k}", text) if "{" in text else g.parameter(f"p{k}", text) for k, text in enumerate(inputs)]
        g.result("r", g.op("node", op, ports, [output], attributes=attributes)[0])
        reason = "the page: ignored since 2024.3" if op == "opset1.Squeeze" and "never" in name else ""
        made.append(placed(g, "sizes that never fit", name, "node", reason))
    return made


def types() -> list[Defect]:
    made = []
    for name, layers in TYPES:
        g = Graph()
        x = g.parameter("x", "f32[2,3]")
        last = x
        for index, (op, words, attributes, output) in enumerate(layers):
            known = {"x": x, "@": last}
            inputs = [known[w] if w in known else g.const(f"c{index}_{k}", w) for k, w in enumerate(words.split())]
            last = g.op(f"n{index}", op, inputs, [output], attributes=attributes)[0]
        g.result("r", last)
        made.append(placed(g, "types along chains", name, f"n{len(layers) - 1}"))
    return made


def packed() -> list[Defect]:
    made = []
    for name, text, size, arguable in PACKED:
        g = Graph()
        c = g.const("c", text + "{*}")
        whole = len(g.weights)
        g.result("r", c)
        defect = placed(g, "packed constants", name, "c", arguable)
        assert size < whole, (name, whole)
        text_ = defect.text.replace(f'size="{whole}"'.encode(), f'size="{size}"'.encode())
        made.append(Defect(defect.family, name, text_, defect.weights, defect.lines, "c", arguable))
    return made


def nested(build: Callable[[Graph], tuple[int, int]], layer: str, name: str, arguable: str = "") -> Defect:
    """An If in a Loop whose branch holds what `build` makes of its one Parameter, f32[2,3]."""
    g = Graph()
    trips, go, x = g.const("trips", "i64[]{2}"), g.const("go", "boolean[]{1}"), g.parameter("x", "f32[2,3]")
    body = Graph(weights=g.weights)
    state = body.parameter("state", "f32[2,3]")
    yes = body.const("yes", "boolean[]{1}")
    branches, maps = [], []
    for side in ("then", "else"):
        branch = Graph(weights=g.weights)
        given = branch.parameter(f"{side}_in", "f32[2,3]")
        value = build(branch) if side == "then" else branch.op("same", "opset1.Sigmoid", [given], ["f32[2,3]"])[0]
        result = branch.result(f"{side}_result", value)
        maps += [f"<{side}_port_map>", '<input external_port_id="1" internal_layer_id="0"/>']
        maps += [f'<output external_port_id="2" internal_layer_id="{result}"/>', f"</{side}_port_map>"]
        branches += branch.body(f"{side}_body")
    made = body.op("inner", "opset8.If", [yes, state], ["f32[2,3]"], inside=maps + branches)[0]
    more, last = body.result("more", yes), body.result("last", made)
    inside = [
        "<port_map>",
        '<input external_port_id="2" internal_layer_id="0"/>',
        f'<output external_port_id="3" internal_layer_id="{last}"/>',
        f'<output external_port_id="-1" internal_layer_id="{more}" purpose="execution_condition"/>',
        "</port_map>",
        f'<back_edges><edge from-layer="{last}" to-layer="0"/></back_edges>',
        *body.body("body"),
    ]
    g.result("r", g.op("outer", "opset5.Loop", [trips, go, x], ["f32[2,3]"], inside=inside)[0])
    return placed(g, "bodies within bodies", name, layer, arguable)


def depths() -> list[Defect]:
    x = (0, 0)
    rows: list[tuple[str, Callable[[Graph], tuple[int, int]]]] = [
        ("sizes that do not fit", lambda b: b.op("node", "opset1.Add", [x, b.const("c", "f32[4]{*}")], ["f32[2,3]"], attributes=NUMPY)[0]),
        ("an axis beyond the rank", lambda b: b.op("node", "opset8.Softmax", [x], ["f32[2,3]"], axis="2")[0]),
        ("an attribute that is missing", lambda b: b.op("node", "opset1.Elu", [x], ["f32[2,3]"])[0]),
        ("an attribute that is unknown", lambda b: b.op("node", "opset1.Sigmoid", [x], ["f32[2,3]"], alpha="1")[0]),
        ("a type of no opset", lambda b: b.op("node", "opset1.Sigmoidal", [x], ["f32[2,3]"])[0]),
        ("an opset that is none", lambda b: b.op("node", "opset77.Sigmoid", [x], ["f32[2,3]"])[0]),
        ("types that differ", lambda b: b.op("node", "opset1.Multiply", [x, b.const("c", "f16[3]{*}")], ["f32[2,3]"], attributes=NUMPY)[0]),
        ("a declared size", lambda b: b.op("node", "opset1.Sigmoid", [x], ["f32[2,4]"])[0]),
        ("a declared type", lambda b: b.op("node", "opset1.Sigmoid", [x], ["f16[2,3]"])[0]),
        ("an input too many", lambda b: b.op("node", "opset1.Sigmoid", [x, x], ["f32[2,3]"])[0]),
        ("an index beyond its axis", lambda b: b.op("node", "opset6.GatherElements", [x, b.const("c", "i64[2,3]{0,1,2,0,1,3}")], ["f32[2,3]"], axis="1")[0]),
        ("a bad enumeration", lambda b: b.op("node", "opset5.Round", [x], ["f32[2,3]"], mode="half")[0]),
        ("a variable that nobody reads", lambda b: (b.op("node", "opset6.Assign", [x], ["f32[2,3]"], variable_id="v"), b.op("same", "opset1.Sigmoid", [x], ["f32[2,3]"])[0])[1]),
        ("a size that is not kept", lambda b: b.op("node", "opset1.Reshape", [x, b.const("c", "i64[2]{4,2}")], ["f32[4,2]"], attributes=OFF)[0]),
    ]  # fmt: skip
    return [nested(build, "node", name) for name, build in rows]


def variables() -> list[Defect]:
    """A ReadValue, and an Assign of something else; by opset, and with or without an initial value."""
    made = []
    kept = {
        "two more columns": ("f32[2,5]", "2,3"),
        "another rank": ("f32[2,3,1]", "2,3"),
        "halves": ("f16[2,3]", "2,3"),
        "integers": ("i32[2,3]", "2,3"),
        "another rank of open sizes": ("f32[?,?,?]", "?,?"),
        "columns outside the interval": ("f32[2,9]", "2,1..4"),
        "a scalar": ("f32[]", "2,3"),
    }
    for what, (tensor, shape) in kept.items():
        g = Graph()
        y = g.parameter("y", tensor)
        declared = "f32[" + ",".join("?" if "." in dim or dim == "?" else dim for dim in shape.split(",")) + "]"
        read = g.op(
            "read", "opset6.ReadValue", [], [declared], variable_id="v", variable_type="f32", variable_shape=shape
        )[0]
        g.op("keep", "opset6.Assign", [y], [tensor], variable_id="v")
        g.result("r", read)
        made.append(placed(g, "variables", f"{what} are kept, without an initial value", "keep"))
    later: list[tuple[str, str, dict[str, str], str]] = [
        ("two more columns", "opset1.Concat @ y", {"axis": "1"}, "f32[2,5]"),
        ("halves", "opset1.Convert @", {"destination_type": "f16"}, "f16[2,3]"),
        ("another rank", "opset1.Unsqueeze @ i64[1]{0}", {}, "f32[1,2,3]"),
    ]
    for what, words, attributes, tensor in later:
        g = Graph()
        y, zero = g.parameter("y", "f32[2,2]"), g.const("zero", "f32[2,3]{*}")
        read = g.op("read", "opset3.ReadValue", [zero], ["f32[2,3]"], variable_id="v")[0]
        op, *inputs = words.split()
        ports = [{"@": read, "y": y}.get(word) or g.const("c", word) for word in inputs]
        made_of = g.op("made", op, ports, [tensor], attributes=attributes)[0]
        g.op("keep", "opset3.Assign", [made_of], [tensor], variable_id="v")
        g.result("r", read)
        made.append(placed(g, "variables", f"{what} are kept, of opset3", "keep"))
    g = Graph()
    y, zero = g.parameter("y", "f32[2,3]"), g.const("zero", "f32[2,3]{*}")
    read = g.op("read", "opset3.ReadValue", [zero], ["f32[2,3]"], variable_id="v")[0]
    g.op("keep", "opset3.Assign", [y], ["f32[2,3]"], variable_id="v")
    g.result("r", read)
    why = "the page is silent; OpenVINO does not find the variable"
    made.append(placed(g, "variables", "an Assign of opset3 to which no ReadValue leads", "keep", why))
    return made


def names() -> list[Defect]:
    made = []
    for name, first, second in (
        ("one name for two inputs", "a", "a"),
        ("the name of an input among others", "a", "b,a"),
    ):
        g = Graph()
        p, q = g.parameter("p", "f32[2]", names=first), g.parameter("q", "f32[2]", names=second)
        g.result("r", g.op("sum", "opset1.Add", [p, q], ["f32[2]"])[0])
        made.append(placed(g, "names", name, "q"))
    g = Graph()
    p, q = g.parameter("p", "f32[2]"), g.parameter("q", "f32[2]")
    g.result("r", g.op("sum", "opset1.Add", [p, q], ["f32[2]"])[0])
    defect = placed(g, "names", "two Parameters of one name", "q")
    made.append(
        Defect("names", defect.name, defect.text.replace(b'name="q"', b'name="p"'), defect.weights, defect.lines, "p")
    )
    g = Graph()
    p = g.parameter("p", "f32[2]")
    g.result("r", p)
    g.result("s", g.op("n", "opset1.Sigmoid", [p], ["f32[2]"])[0])
    defect = placed(g, "names", "one output name for two Results", "s")
    text = defect.text.replace(b'type="Result" version="opset1"', b'type="Result" version="opset1" output_names="o"')
    made.append(Defect("names", defect.name, text, defect.weights, defect.lines, "s"))
    return made


def defects() -> list[Defect]:
    return [*sizes(), *types(), *packed(), *depths(), *variables(), *names()]
