"""Defects of numbers that reach an operation through other layers, and of open sizes that never fit."""

# ruff: noqa: E501 (a row of a table is a line)

from defects.graphs import Graph
from defects.planting import MARK, Defect, marked


def indirect() -> list[Defect]:
    """Numbers that reach an operation through other constant layers: blamed is where they do not fit."""
    made = []

    def add(
        name: str,
        op: str,
        data: str,
        chain: list[tuple[str, list[str], dict[str, str], str]],
        output: str,
        **attributes: str,
    ) -> None:
        g = Graph()
        x = g.parameter("x", data)
        sources = [x]
        for index, (inner, inputs, given, type) in enumerate(chain):
            ports = [x if text == "x" else g.const(f"c{index}_{k}", text) for k, text in enumerate(inputs)]
            made_port = g.op(f"f{index}", inner, ports, [type], attributes=given)[0] if inner else ports[0]
            sources.append(made_port)
        result = g.op("node", op, sources, [output], attributes=attributes)[0]
        g.result("r", result)
        text = g.text()
        at = text.rindex("<layer", 0, text.index('name="node"'))
        made.append(marked("numbers through layers", name, text[:at] + MARK + text[at:], bytes(g.weights), "node"))

    plus = {"auto_broadcast": "numpy"}
    add(
        "an axis that is a sum",
        "opset1.ReduceSum",
        "f32[2,3]",
        [("opset1.Add", ["i64[1]{1}", "i64[1]{1}"], plus, "i64[1]")],
        "f32[2]",
        keep_dims="false",
    )
    add(
        "a shape that is a product",
        "opset1.Reshape",
        "f32[2,3]",
        [("opset1.Multiply", ["i64[2]{2,2}", "i64[2]{1,2}"], plus, "i64[2]")],
        "f32[2,4]",
        special_zero="false",
    )
    add(
        "a shape joined of parts",
        "opset1.Reshape",
        "f32[2,3]",
        [("opset1.Concat", ["i64[1]{5}", "i64[1]{-1}"], {"axis": "0"}, "i64[2]")],
        "f32[5,1]",
        special_zero="false",
    )
    add(
        "an order that is reversed",
        "opset1.Transpose",
        "f32[2,3]",
        [("opset1.Subtract", ["i64[2]{1,2}", "i64[2]{0,0}"], plus, "i64[2]")],
        "f32[3,2]",
    )
    add(
        "an axis converted from floats",
        "opset8.Gather",
        "f32[2,3]",
        [("", ["i64[1]{0}"], {}, "i64[1]"), ("opset1.Convert", ["f32[]{2}"], {"destination_type": "i64"}, "i64[]")],
        "f32[2,1]",
        batch_dims="0",
    )
    add(
        "k picked from a list",
        "opset1.TopK",
        "f32[2,3]",
        [("opset8.Squeeze", ["i64[1]{4}", "i64[1]{0}"], {}, "i64[]")],
        "f32[2,4]",
        axis="1",
        mode="max",
        sort="value",
        index_element_type="i32",
    )
    add(
        "a negative step",
        "opset4.Range",
        "i64[]",
        [("", ["i64[]{1}"], {}, "i64[]"), ("opset1.Subtract", ["i64[]{1}", "i64[]{1}"], plus, "i64[]")],
        "i64[?]",
        output_type="i64",
    )
    add(
        "parts of another sum",
        "opset1.VariadicSplit",
        "f32[6]",
        [("", ["i64[]{0}"], {}, "i64[]"), ("opset1.Add", ["i64[1]{3}", "i64[1]{4}"], plus, "i64[1]")],
        "f32[6]",
    )
    add(
        "pads that crop everything",
        "opset12.Pad",
        "f32[2,3]",
        [
            ("", ["i64[2]{0,0}"], {}, "i64[2]"),
            ("opset1.Negative", ["i64[2]{0,4}"], {}, "i64[2]"),
            ("", ["f32[]{0}"], {}, "f32[]"),
        ],
        "f32[2,?]",
        pad_mode="constant",
    )
    add(
        "crops of another sign",
        "opset2.BatchToSpace",
        "f32[4,1,3]",
        [
            ("", ["i64[3]{1,1,2}"], {}, "i64[3]"),
            ("", ["i64[3]{0,0,0}"], {}, "i64[3]"),
            ("opset1.Add", ["i64[3]{0,0,3}", "i64[3]{0,0,4}"], plus, "i64[3]"),
        ],
        "f32[2,1,?]",
    )
    add(
        "sizes to which nothing broadcasts",
        "opset3.Broadcast",
        "f32[2,3]",
        [("opset1.Add", ["i64[2]{1,1}", "i64[2]{2,2}"], plus, "i64[2]")],
        "f32[3,3]",
        mode="numpy",
    )
    add(
        "a depth below zero",
        "opset1.OneHot",
        "i64[3]",
        [
            ("opset1.Negative", ["i64[]{3}"], {}, "i64[]"),
            ("", ["f32[]{1}"], {}, "f32[]"),
            ("", ["f32[]{0}"], {}, "f32[]"),
        ],
        "f32[3,?]",
        axis="-1",
    )
    return made


DOUBT = {
    "an index that is never there": "Gather-8 gives zeros there",
    "a slope for other channels": "the last size is open, and might be 3",
}


def never() -> list[Defect]:
    """Sizes that are open, and yet can never fit."""
    rows = [
        ("intervals that do not meet, added", "opset1.Add", ["f32[2..4]", "f32[5..8]"], "f32[?]", {"auto_broadcast": "numpy"}),
        ("intervals that do not meet, strictly", "opset1.Add", ["f32[1..4]", "f32[5..8]"], "f32[?]", {"auto_broadcast": "none"}),
        ("rows that do not meet, joined", "opset1.Concat", ["f32[2..4,?]", "f32[5..8,?]"], "f32[?,?]", {"axis": "1"}),
        ("ranks that differ, joined", "opset1.Concat", ["f32[?,?]", "f32[?,?,?]"], "f32[?,?]", {"axis": "1"}),
        ("inner sizes that do not meet", "opset1.MatMul", ["f32[?,2..4]", "f32[5..,?]"], "f32[?,?]", {"transpose_a": "false", "transpose_b": "false"}),
        ("batches that do not meet", "opset1.MatMul", ["f32[2..4,?,3]", "f32[5..8,3,?]"], "f32[?,?,?]", {"transpose_a": "false", "transpose_b": "false"}),
        ("channels that do not meet", "opset1.Convolution", ["f32[?,1..2,?,?]", "f32[4,3,3,3]{*}"], "f32[?,4,?,?]", {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "auto_pad": "explicit"}),
        ("an image always smaller than the kernel", "opset1.Convolution", ["f32[?,3,1..2,?]", "f32[4,3,3,3]{*}"], "f32[?,4,?,?]", {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "auto_pad": "explicit"}),
        ("an odd size in two parts", "opset1.Split", ["f32[?,5]", "i64[]{1}"], "f32[?,?]", {"num_splits": "2"}),
        ("more than there can be", "opset1.TopK", ["f32[?,1..4]", "i64[]{5}"], "f32[?,5]", {"axis": "1", "mode": "max", "sort": "value", "index_element_type": "i32"}),
        ("an axis that is never one", "opset1.Squeeze", ["f32[?,2..4]", "i64[1]{1}"], "f32[?]", {}),
        ("sizes that never divide", "opset1.Reshape", ["f32[?,3]", "i64[2]{5,1}"], "f32[5,1]", {"special_zero": "false"}),
        ("a broadcast to what never fits", "opset3.Broadcast", ["f32[2..3]", "i64[1]{4}"], "f32[4]", {"mode": "numpy"}),
        ("an order for another rank", "opset1.Transpose", ["f32[?,?,?]", "i64[2]{1,0}"], "f32[?,?]", {}),
        ("an axis beyond an open shape", "opset8.Softmax", ["f32[?,?]"], "f32[?,?]", {"axis": "2"}),
        ("an index that is never there", "opset8.Gather", ["f32[1..3,?]", "i64[1]{3}", "i64[]{0}"], "f32[1,?]", {"batch_dims": "0"}),
        ("lengths above what there can be", "opset1.VariadicSplit", ["f32[1..4]", "i64[]{0}", "i64[2]{3,3}"], "f32[3]", {}),
        ("groups that never divide", "opset12.GroupNormalization", ["f32[?,3,?]", "f32[3]{*}", "f32[3]{*}"], "f32[?,3,?]", {"num_groups": "2", "epsilon": "0.001"}),
        ("an odd height in blocks", "opset1.SpaceToDepth", ["f32[?,3,5,?]"], "f32[?,12,?,?]", {"block_size": "2", "mode": "blocks_first"}),
        ("a slope for other channels", "opset1.PReLU", ["f32[?,4..8,?]", "f32[3]{*}"], "f32[?,?,?]", {}),
        ("frames longer than the signal", "opset15.STFT", ["f32[1,8..12]", "f32[16]{*}", "i64[]{16}", "i64[]{4}"], "f32[1,?,?,2]", {"transpose_frames": "false"}),
        ("boxes and scores that do not meet", "opset9.NonMaxSuppression", ["f32[1,2..4,4]", "f32[1,2,5..6]"], "i64[?,3]", {"box_encoding": "corner", "sort_result_descending": "true", "output_type": "i64"}),
        ("another rank than declared", "opset1.Sigmoid", ["f32[?,?]"], "f32[?,?,?]", {}),
        ("a declared size outside the interval", "opset1.Sigmoid", ["f32[2..4]"], "f32[5]", {}),
    ]  # fmt: skip
    made = []
    for name, op, inputs, output, attributes in rows:
        g = Graph()
        ports = [g.const(f"c{k}", text) if "{" in text else g.parameter(f"p{k}", text) for k, text in enumerate(inputs)]
        g.result("r", g.op("node", op, ports, [output], attributes=attributes)[0])
        text = g.text()
        at = text.rindex("<layer", 0, text.index('name="node"'))
        made.append(
            marked(
                "sizes that never fit",
                name,
                text[:at] + MARK + text[at:],
                bytes(g.weights),
                "node",
                DOUBT.get(name, ""),
            )
        )
    return made


def defects() -> list[Defect]:
    return [*indirect(), *never()]
