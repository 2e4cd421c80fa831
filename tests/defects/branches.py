"""Defects of bodies as a whole: branches that do not agree, loops that never end, variables across a border."""

from defects.chains import placed
from defects.graphs import Graph
from defects.planting import Defect

STEP = 'axis="0" start="0" end="-1" stride="1" part_size="1"'


def choice(name: str, then: list[str], other: list[str], outputs: list[str], arguable: str = "") -> Defect:
    """An If whose branches give constants of these types and sizes."""
    g = Graph()
    condition = g.parameter("condition", "boolean[]")
    inside, bodies = [], []
    for side, tensors in (("then", then), ("else", other)):
        body = Graph(weights=g.weights)
        results = [
            body.result(f"{side}_r{k}", body.const(f"{side}_c{k}", text + "{*}")) for k, text in enumerate(tensors)
        ]
        maps = [f'\t<output external_port_id="{k + 1}" internal_layer_id="{id}"/>' for k, id in enumerate(results)]
        inside += [f"<{side}_port_map>", *maps, f"</{side}_port_map>"]
        bodies += body.body(f"{side}_body")
    made = g.op("node", "opset8.If", [condition], outputs, inside=inside + bodies)
    for k, port in enumerate(made):
        g.result(f"r{k}", port)
    return placed(g, "bodies as a whole", name, "node", arguable)


def endless(name: str, trips: str, proceed: str, start: str = "{1}", arguable: str = "") -> Defect:
    g = Graph()
    count, go, x = g.const("trips", trips), g.const("go", f"boolean[]{start}"), g.parameter("x", "f32[2]")
    body = Graph(weights=g.weights)
    state = body.parameter("state", "f32[2]")
    more = body.result("more", body.const("yes", proceed))
    last = body.result("last", body.op("half", "opset1.Sigmoid", [state], ["f32[2]"])[0])
    inside = [
        "<port_map>",
        '<input external_port_id="2" internal_layer_id="0"/>',
        f'<output external_port_id="3" internal_layer_id="{last}"/>',
        f'<output external_port_id="-1" internal_layer_id="{more}" purpose="execution_condition"/>',
        "</port_map>",
        f'<back_edges><edge from-layer="{last}" to-layer="0"/></back_edges>',
        *body.body("body"),
    ]
    g.result("r", g.op("node", "opset5.Loop", [count, go, x], ["f32[2]"], inside=inside)[0])
    return placed(g, "bodies as a whole", name, "node", arguable)


def sliced(name: str, first: str, second: str, parts: tuple[str, str], result: str, output: str) -> Defect:
    """A TensorIterator over two inputs at once, whose parts are added."""
    g = Graph()
    a, b = g.parameter("a", first), g.parameter("b", second)
    body = Graph(weights=g.weights)
    p, q = body.parameter("p", parts[0]), body.parameter("q", parts[1])
    last = body.result("last", body.op("both", "opset1.Add", [p, q], [result], auto_broadcast="numpy")[0])
    inside = [
        "<port_map>",
        f'<input external_port_id="0" internal_layer_id="0" {STEP}/>',
        f'<input external_port_id="1" internal_layer_id="1" {STEP}/>',
        f'<output external_port_id="2" internal_layer_id="{last}" {STEP}/>',
        "</port_map>",
        *body.body("body"),
    ]
    g.result("r", g.op("node", "opset1.TensorIterator", [a, b], [output], inside=inside)[0])
    return placed(g, "bodies as a whole", name, "node")


def across(name: str, inner: bool, arguable: str = "") -> Defect:
    """A ReadValue inside of a Loop and its Assign outside, or the other way round."""
    g = Graph()
    trips, go, x = g.const("trips", "i64[]{2}"), g.const("go", "boolean[]{1}"), g.parameter("x", "f32[2]")
    body = Graph(weights=g.weights)
    state = body.parameter("state", "f32[2]")
    kind = {"variable_id": "v", "variable_type": "f32", "variable_shape": "2"}
    if inner:
        read = body.op("read", "opset6.ReadValue", [state], ["f32[2]"], attributes=kind)[0]
        value = body.op("half", "opset1.Sigmoid", [read], ["f32[2]"])[0]
    else:
        value = body.op("half", "opset1.Sigmoid", [state], ["f32[2]"])[0]
        body.op("keep", "opset6.Assign", [value], ["f32[2]"], variable_id="v")
    more, last = body.result("more", body.const("yes", "boolean[]{1}")), body.result("last", value)
    inside = [
        "<port_map>",
        '<input external_port_id="2" internal_layer_id="0"/>',
        f'<output external_port_id="3" internal_layer_id="{last}"/>',
        f'<output external_port_id="-1" internal_layer_id="{more}" purpose="execution_condition"/>',
        "</port_map>",
        f'<back_edges><edge from-layer="{last}" to-layer="0"/></back_edges>',
        *body.body("body"),
    ]
    if not inner:
        x = g.op("read", "opset6.ReadValue", [x], ["f32[2]"], attributes=kind)[0]
    made = g.op("loop", "opset5.Loop", [trips, go, x], ["f32[2]"], inside=inside)[0]
    if inner:
        g.op("keep", "opset6.Assign", [made], ["f32[2]"], variable_id="v")
    g.result("r", made)
    return placed(g, "bodies as a whole", name, "keep", arguable)


def defects() -> list[Defect]:
    shapes = "OpenVINO gives an output of unknown sizes"
    return [
        choice("branches of two types", ["f32[2]"], ["i64[2]"], ["f32[2]"]),
        choice("branches of two ranks", ["f32[2]"], ["f32[2,1]"], ["f32[2]"], shapes),
        choice(
            "outputs of the branches in another order", ["f32[2]", "i64[3]"], ["i64[3]", "f32[2]"], ["f32[2]", "i64[3]"]
        ),
        choice("a branch of halves", ["f32[2]"], ["f16[2]"], ["f32[2]"]),
        choice("a branch of booleans", ["f32[2]", "boolean[]"], ["f32[2]", "u8[]"], ["f32[2]", "boolean[]"]),
        choice("a branch with one output less", ["f32[2]", "f32[2]"], ["f32[2]"], ["f32[2]", "f32[2]"]),
        choice("a declared size that neither branch has", ["f32[2]"], ["f32[2]"], ["f32[3]"]),
        choice("a declared type that neither branch has", ["f32[2]"], ["f32[2]"], ["i32[2]"]),
        endless(
            "a loop without an end", "i64[]{-1}", "boolean[]{1}", arguable="a run does not end; the page allows it"
        ),
        endless("trips below minus one", "i64[]{-5}", "boolean[]{0}", arguable="negative counts as endless"),
        endless("a condition of two", "i64[]{3}", "boolean[2]{1,1}"),
        endless("a condition of integers", "i64[]{3}", "i32[]{1}"),
        endless("trips of three numbers", "i64[3]{1,2,3}", "boolean[]{1}"),
        endless("trips of floats", "f32[]{3}", "boolean[]{1}"),
        sliced("inputs of two lengths", "f32[3,4]", "f32[5,4]", ("f32[1,4]", "f32[1,4]"), "f32[1,4]", "f32[3,4]"),
        sliced(
            "inputs of open lengths that never meet",
            "f32[1..3,4]",
            "f32[5..6,4]",
            ("f32[1,4]", "f32[1,4]"),
            "f32[1,4]",
            "f32[?,4]",
        ),
        across("a ReadValue in a body, its Assign outside", True),
        across("an Assign in a body, its ReadValue outside", False),
    ]
