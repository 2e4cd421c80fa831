"""Valid models that defects of the format are planted in."""

# ruff: noqa: E501 (a row of a table is a line)

from functools import cache

from defects.graphs import Graph
from defects.planting import Base


def finished(graph: Graph) -> Base:
    return Base(graph.text(), bytes(graph.weights))


@cache
def dense() -> Base:
    """A product, a sum and a ReLU, with names of tensors, and rt_info."""
    g = Graph("dense")
    x = g.parameter("image", "f32[2,3]", names="x")
    w = g.const("weights", "f32[3,4]{*}")
    product = g.op(
        "product", "opset1.MatMul", [x, w], ["f32[2,4]"], names="m,m2", transpose_a="false", transpose_b="false"
    )[0]
    b = g.const("bias", "f32[1,4]{*}")
    total = g.op("sum", "opset1.Add", [product, b], ["f32[2,4]"], auto_broadcast="numpy")[0]
    relu = g.op("relu", "opset1.ReLU", [total], ["f32[2,4]"], names="y")[0]
    g.result("out", relu)
    base = finished(g)
    text = base.text.replace(
        '<layer id="5" name="relu" type="ReLU" version="opset1">',
        '<layer id="5" name="relu" type="ReLU" version="opset1">\n\t\t\t<rt_info>\n'
        '\t\t\t\t<attribute name="fused_names" version="0" value="relu"/>\n\t\t\t</rt_info>',
    )
    return Base(
        text.replace("</net>", '\t<rt_info>\n\t\t<Runtime_version value="2026.4"/>\n\t</rt_info>\n</net>'), base.weights
    )


@cache
def image() -> Base:
    """A convolution, a pool, a reshape with constant sizes, a split whose parts are joined, and a look-up."""
    g = Graph("image")
    x = g.parameter("pixels", "f32[1,3,8,8]", names="pixels")
    w = g.const("filters", "f32[4,3,3,3]{*}")
    conv = g.op(
        "conv", "opset1.Convolution", [x, w], ["f32[1,4,8,8]"],
        strides="1,1", dilations="1,1", pads_begin="1,1", pads_end="1,1", auto_pad="explicit",
    )[0]  # fmt: skip
    pool = g.op(
        "pool", "opset1.MaxPool", [conv], ["f32[1,4,4,4]"],
        strides="2,2", pads_begin="0,0", pads_end="0,0", kernel="2,2", rounding_type="floor", auto_pad="explicit",
    )[0]  # fmt: skip
    sizes = g.const("sizes", "i64[3]{1,4,16}")
    flat = g.op("flat", "opset1.Reshape", [pool, sizes], ["f32[1,4,16]"], special_zero="true")[0]
    axis = g.const("axis", "i64[]{1}")
    parts = g.op("parts", "opset1.Split", [flat, axis], ["f32[1,2,16]", "f32[1,2,16]"], num_splits="2")
    joined = g.op("joined", "opset1.Concat", [parts[1], parts[0]], ["f32[1,4,16]"], axis="1")[0]
    indices = g.const("indices", "i64[2]{0,3}")
    picked = g.op("picked", "opset8.Gather", [joined, indices, axis], ["f32[1,2,16]"], batch_dims="0")[0]
    g.result("out", picked)
    g.result("whole", joined)
    return finished(g)


@cache
def state() -> Base:
    """Two variables: one with an initial value that a run adds to, one without."""
    g = Graph("state")
    x = g.parameter("x", "f32[2,3]")
    zero = g.const("zero", "f32[2,3]{0,0,0,0,0,0}")
    kept = g.op(
        "kept", "opset6.ReadValue", [zero], ["f32[2,3]"],
        variable_id="total", variable_type="f32", variable_shape="2,3",
    )[0]  # fmt: skip
    total = g.op("sum", "opset1.Add", [kept, x], ["f32[2,3]"], auto_broadcast="numpy")[0]
    last = g.op(
        "last", "opset6.ReadValue", [], ["f32[2,3]"], variable_id="last", variable_type="f32", variable_shape="2,3"
    )[0]
    product = g.op("product", "opset1.Multiply", [last, total], ["f32[2,3]"], auto_broadcast="numpy")[0]
    g.op("keep", "opset6.Assign", [total], ["f32[2,3]"], variable_id="total")
    g.op("keep_last", "opset6.Assign", [x], ["f32[2,3]"], variable_id="last")
    g.result("out", product)
    return finished(g)


@cache
def branch() -> Base:
    """An If that adds in one branch and negates in the other."""
    g = Graph("branch")
    condition = g.parameter("condition", "boolean[]")
    x = g.parameter("x", "f32[2,3]")
    then = Graph(weights=g.weights)
    tx = then.parameter("then_x", "f32[2,3]")
    one = then.const("one", "f32[]{1}")
    then_sum = then.op("then_sum", "opset1.Add", [tx, one], ["f32[2,3]"], auto_broadcast="numpy")[0]
    then_out = then.result("then_out", then_sum)
    other = Graph(weights=g.weights)
    other_x = other.parameter("else_x", "f32[2,3]")
    negated = other.op("negated", "opset1.Negative", [other_x], ["f32[2,3]"])[0]
    else_out = other.result("else_out", negated)
    inside = [
        "<then_port_map>",
        '\t<input external_port_id="1" internal_layer_id="0"/>',
        f'\t<output external_port_id="2" internal_layer_id="{then_out}"/>',
        "</then_port_map>",
        "<else_port_map>",
        '\t<input external_port_id="1" internal_layer_id="0"/>',
        f'\t<output external_port_id="2" internal_layer_id="{else_out}"/>',
        "</else_port_map>",
        *then.body("then_body"),
        *other.body("else_body"),
    ]
    made = g.op("choice", "opset8.If", [condition, x], ["f32[2,3]"], inside=inside)[0]
    g.result("out", made)
    return finished(g)


@cache
def loop() -> Base:
    """A Loop of three iterations: a slice of `rows` is added to `acc`; given back are the last sum and all of them."""
    g = Graph("loop")
    trips = g.const("trips", "i64[]{3}")
    go = g.const("go", "boolean[]{1}")
    acc = g.parameter("acc", "f32[1,4]")
    rows = g.parameter("rows", "f32[3,4]")
    factor = g.parameter("factor", "f32[1,4]")
    body = Graph(weights=g.weights)
    iteration = body.parameter("iteration", "i64[1]")
    before = body.parameter("before", "f32[1,4]")
    row = body.parameter("row", "f32[1,4]")
    scale = body.parameter("scale", "f32[1,4]")
    scaled = body.op("scaled", "opset1.Multiply", [row, scale], ["f32[1,4]"], auto_broadcast="numpy")[0]
    step = body.op("step", "opset1.Convert", [iteration], ["f32[1]"], destination_type="f32")[0]
    moved = body.op("moved", "opset1.Add", [scaled, step], ["f32[1,4]"], auto_broadcast="numpy")[0]
    total = body.op("total", "opset1.Add", [before, moved], ["f32[1,4]"], auto_broadcast="numpy")[0]
    more = body.const("more", "boolean[]{1}")
    proceed = body.result("proceed", more)
    last = body.result("last", total)
    inside = [
        "<port_map>",
        '\t<input external_port_id="2" internal_layer_id="1"/>',
        '\t<input external_port_id="3" internal_layer_id="2" axis="0" start="0" end="-1" stride="1" part_size="1"/>',
        '\t<input external_port_id="4" internal_layer_id="3"/>',
        '\t<input external_port_id="-1" internal_layer_id="0" purpose="current_iteration"/>',
        f'\t<output external_port_id="5" internal_layer_id="{last}"/>',
        f'\t<output external_port_id="6" internal_layer_id="{last}" axis="0" start="0" end="-1" stride="1" part_size="1"/>',
        f'\t<output external_port_id="-1" internal_layer_id="{proceed}" purpose="execution_condition"/>',
        "</port_map>",
        "<back_edges>",
        f'\t<edge from-layer="{last}" to-layer="1"/>',
        "</back_edges>",
        *body.body("body"),
    ]
    made = g.op("loop", "opset5.Loop", [trips, go, acc, rows, factor], ["f32[1,4]", "f32[3,4]"], inside=inside)
    g.result("final", made[0])
    g.result("all", made[1])
    return finished(g)


@cache
def iterator() -> Base:
    """A TensorIterator over the second axis, with a state that goes round."""
    g = Graph("iterator")
    data = g.parameter("data", "f32[2,5,4]")
    start = g.parameter("start", "f32[2,1,4]")
    body = Graph(weights=g.weights)
    part = body.parameter("part", "f32[2,1,4]")
    before = body.parameter("before", "f32[2,1,4]")
    total = body.op("total", "opset1.Add", [before, part], ["f32[2,1,4]"], auto_broadcast="numpy")[0]
    last = body.result("last", total)
    inside = [
        "<port_map>",
        '\t<input external_port_id="0" internal_layer_id="0" axis="1" start="0" end="-1" stride="1" part_size="1"/>',
        '\t<input external_port_id="1" internal_layer_id="1"/>',
        f'\t<output external_port_id="2" internal_layer_id="{last}"/>',
        f'\t<output external_port_id="3" internal_layer_id="{last}" axis="1" start="0" end="-1" stride="1" part_size="1"/>',
        "</port_map>",
        "<back_edges>",
        f'\t<edge from-layer="{last}" to-layer="1"/>',
        "</back_edges>",
        *body.body("body"),
    ]
    made = g.op("iterator", "opset1.TensorIterator", [data, start], ["f32[2,1,4]", "f32[2,5,4]"], inside=inside)
    g.result("final", made[0])
    g.result("all", made[1])
    return finished(g)


@cache
def texts() -> Base:
    """Constant strings taken apart."""
    g = Graph("texts")
    words = g.const("words", "string[2]{ab,xyz}")
    begins, ends, symbols = g.op("apart", "opset15.StringTensorUnpack", [words], ["i32[2]", "i32[2]", "u8[5]"])
    for name, port in (("begins", begins), ("ends", ends), ("symbols", symbols)):
        g.result(name, port)
    return finished(g)


@cache
def dynamic() -> Base:
    """Sizes that only a run tells."""
    g = Graph("dynamic")
    x = g.parameter("x", "f32[?,3,1..8]")
    y = g.parameter("y", "f32[?,3,8..16]")
    joined = g.op("joined", "opset1.Concat", [x, y], ["f32[?,3,?]"], axis="2")[0]
    shape = g.op("shape", "opset3.ShapeOf", [joined], ["i64[3]"], output_type="i64")[0]
    flat = g.const("flat", "i64[2]{0,-1}")
    reshaped = g.op("reshaped", "opset1.Reshape", [joined, flat], ["f32[?,?]"], special_zero="true")[0]
    back = g.op("back", "opset1.Reshape", [reshaped, shape], ["f32[?,3,?]"], special_zero="false")[0]
    g.result("out", back)
    return finished(g)
