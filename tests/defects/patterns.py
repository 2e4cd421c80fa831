"""Defects in the chains of layers that exporters write around shapes: the cause is in numbers that come from sizes."""

# ruff: noqa: E501 (a row of a table is a line)

from defects.chains import placed
from defects.graphs import Graph
from defects.planting import Defect

NUMPY = {"auto_broadcast": "numpy"}
# name, layers (name, op, inputs, attributes, output); `node` is to be blamed
Row = tuple[str, str, str, dict[str, str], str]
SHAPE: Row = ("shape", "opset3.ShapeOf", "x", {"output_type": "i64"}, "i64[3]")
ROW = "f32[2,3,4]"


def size(name: str, axis: int) -> Row:
    return (name, "opset8.Gather", f"shape i64[1]{{{axis}}} i64[]{{0}}", {"batch_dims": "0"}, "i64[1]")


def reshape(target: str, output: str, source: str = "x", name: str = "node") -> Row:
    return (name, "opset1.Reshape", f"{source} {target}", {"special_zero": "false"}, output)


CHAINS: list[tuple[str, list[Row]]] = [
    ("sizes in an order that does not fit", [SHAPE, size("n", 0), size("c", 1), ("target", "opset1.Concat", "n c", {"axis": "0"}, "i64[2]"), reshape("target", "f32[2,3]")]),
    ("twice the first size", [SHAPE, size("n", 0), ("twice", "opset1.Multiply", "n i64[1]{3}", NUMPY, "i64[1]"), ("target", "opset1.Concat", "twice i64[1]{5}", {"axis": "0"}, "i64[2]"), reshape("target", "f32[6,5]")]),
    ("half of an odd size", [SHAPE, size("c", 1), ("half", "opset1.Divide", "c i64[1]{2}", NUMPY, "i64[1]"), ("target", "opset1.Concat", "i64[1]{2} half i64[1]{4}", {"axis": "0"}, "i64[3]"), reshape("target", "f32[2,1,4]")]),
    ("the product of all sizes but one", [SHAPE, ("part", "opset8.Slice", "shape i64[1]{1} i64[1]{3} i64[1]{1}", {}, "i64[2]"), ("target", "opset1.ReduceProd", "part i64[1]{0}", {"keep_dims": "true"}, "i64[1]"), reshape("target", "f32[12]")]),
    ("an index of the shape beyond the rank", [SHAPE, ("node", "opset6.GatherElements", "shape i64[1]{3}", {"axis": "0"}, "i64[1]")]),
    ("a range over one size too many", [SHAPE, ("m", "opset8.Gather", "shape i64[]{1} i64[]{0}", {"batch_dims": "0"}, "i64[]"), ("stop", "opset1.Add", "m i64[]{1}", NUMPY, "i64[]"), ("range", "opset4.Range", "i64[]{0} stop i64[]{1}", {"output_type": "i64"}, "i64[4]"), ("wide", "opset1.Reshape", "range i64[2]{-1,1}", {"special_zero": "false"}, "i64[4,1]"), ("node", "opset8.GatherND", "f32[3]{1,2,3} wide", {"batch_dims": "0"}, "f32[4]")]),
    ("a broadcast to the sizes of another", [SHAPE, ("node", "opset3.Broadcast", "f32[5]{*} shape", {"mode": "numpy"}, "f32[2,3,4]")]),
    ("a bidirectional one that fits no more", [SHAPE, ("node", "opset3.Broadcast", "f32[2,2]{*} shape", {"mode": "bidirectional"}, "f32[2,3,4]")]),
    ("k from a size that is larger", [SHAPE, ("k", "opset8.Gather", "shape i64[]{2} i64[]{0}", {"batch_dims": "0"}, "i64[]"), ("node", "opset11.TopK", "x k", {"axis": "1", "mode": "max", "sort": "value"}, "f32[2,4,4] i32[2,4,4]")]),
    ("lengths from sizes", [SHAPE, ("part", "opset8.Slice", "shape i64[1]{0} i64[1]{2} i64[1]{1}", {}, "i64[2]"), ("node", "opset1.VariadicSplit", "x i64[]{2} part", {}, "f32[2,3,2] f32[2,3,3]")]),
    ("tiled by sizes, then joined", [SHAPE, ("tiled", "opset1.Tile", "x shape", {}, "f32[4,9,16]"), ("node", "opset1.Concat", "x tiled", {"axis": "0"}, "f32[6,3,4]")]),
    ("ones of one shape added to another", [SHAPE, size("n", 0), size("c", 1), ("target", "opset1.Concat", "c n", {"axis": "0"}, "i64[2]"), ("ones", "opset3.Broadcast", "f32[]{1} target", {"mode": "numpy"}, "f32[3,2]"), ("node", "opset1.Add", "x ones", NUMPY, "f32[2,3,4]")]),
    ("a slice that ends before it begins, multiplied", [SHAPE, ("cut", "opset8.Slice", "x i64[1]{2} i64[1]{1} i64[1]{1} i64[1]{2}", {}, "f32[2,3,0]"), ("node", "opset1.MatMul", "cut f32[4,5]{*}", {"transpose_a": "false", "transpose_b": "false"}, "f32[2,3,5]")]),
    ("an axis that is the rank", [SHAPE, ("rank", "opset3.ShapeOf", "shape", {"output_type": "i64"}, "i64[1]"), ("node", "opset1.ReduceSum", "x rank", {"keep_dims": "false"}, "f32[2,3]")]),
    ("pads from sizes, reflected", [SHAPE, ("node", "opset1.Pad", "x shape shape", {"pad_mode": "reflect"}, "f32[6,9,12]")]),
    ("an order from sizes", [SHAPE, ("node", "opset1.Transpose", "x shape", {}, "f32[4,2,3]")]),
    ("sizes of i64 with floats", [SHAPE, ("node", "opset1.Multiply", "shape f32[3]{1,1,1}", NUMPY, "f32[3]")]),
    ("scales of a wrong length", [SHAPE, ("scales", "opset1.Convert", "shape", {"destination_type": "f32"}, "f32[3]"), ("node", "opset11.Interpolate", "x scales i64[2]{1,2}", {"mode": "nearest", "shape_calculation_mode": "scales"}, "f32[2,9,16]")]),
    ("an attention mask for the wrong length", [SHAPE, ("ones", "opset3.Broadcast", "boolean[]{1} i64[2]{3,5}", {"mode": "numpy"}, "boolean[3,5]"), ("node", "opset13.ScaledDotProductAttention", "x x x ones", {"causal": "false"}, ROW)]),
    ("heads that do not divide", [SHAPE, ("heads", "opset1.Reshape", "x i64[4]{2,3,2,2}", {"special_zero": "false"}, "f32[2,3,2,2]"), ("turned", "opset1.Transpose", "heads i64[4]{0,2,1,3}", {}, "f32[2,2,3,2]"), ("node", "opset1.Reshape", "turned i64[3]{0,0,5}", {"special_zero": "true"}, "f32[2,2,5]")]),
    ("a residual of another length", [SHAPE, ("cut", "opset1.StridedSlice", "x i64[2]{0,1} i64[2]{2,3} i64[2]{1,1}", {"begin_mask": "0,0", "end_mask": "0,0"}, "f32[2,2,4]"), ("node", "opset1.Add", "x cut", NUMPY, ROW)]),
    ("a normalization over an axis that was squeezed", [SHAPE, ("mean", "opset1.ReduceMean", "x i64[1]{-1}", {"keep_dims": "false"}, "f32[2,3]"), ("node", "opset1.Subtract", "x mean", NUMPY, ROW)]),
    ("weights for the input before the pool", [SHAPE, ("pool", "opset1.MaxPool", "x", {"strides": "2", "kernel": "2", "pads_begin": "0", "pads_end": "0", "rounding_type": "floor", "auto_pad": "explicit"}, "f32[2,3,2]"), ("node", "opset1.MatMul", "pool f32[4,5]{*}", {"transpose_a": "false", "transpose_b": "false"}, "f32[2,3,5]")]),
    ("channels last into a convolution", [SHAPE, ("last", "opset1.Transpose", "x i64[3]{0,2,1}", {}, "f32[2,4,3]"), ("node", "opset1.Convolution", "last f32[5,3,1]{*}", {"strides": "1", "dilations": "1", "pads_begin": "0", "pads_end": "0", "auto_pad": "explicit"}, "f32[2,5,3]")]),
    ("a gate for another part", [SHAPE, ("parts", "opset1.VariadicSplit", "x i64[]{2} i64[2]{1,3}", {}, "f32[2,3,1] f32[2,3,3]"), ("gate", "opset1.Sigmoid", "parts.1", {}, "f32[2,3,3]"), ("node", "opset1.Multiply", "x gate", NUMPY, ROW)]),
    ("a look-up of token types beyond the table", [SHAPE, ("ids", "opset1.Add", "i64[2]{0,1} i64[]{2}", NUMPY, "i64[2]"), ("node", "opset6.GatherElements", "f32[3]{0,1,2} ids", {"axis": "0"}, "f32[2]")]),
]  # fmt: skip


def defects() -> list[Defect]:
    made = []
    for name, rows in CHAINS:
        g = Graph()
        known = {"x": g.parameter("x", ROW)}
        used = any("shape" in row[2].split() for row in rows)
        for layer, op, words, attributes, output in rows if used else rows[1:]:
            ports = [
                known[word] if word in known else g.const(f"{layer}_{k}", word) for k, word in enumerate(words.split())
            ]
            results = g.op(layer, op, ports, output.split(), attributes=attributes)
            known |= {layer: results[0]} | {f"{layer}.{k}": result for k, result in enumerate(results)}
        g.result("r", known["node"])
        made.append(placed(g, "numbers from sizes", name, "node"))
    return made
