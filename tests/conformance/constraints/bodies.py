"""Models of layers that a row of inputs and attributes cannot say: with bodies, with a state, and without inputs."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.constraints.row import Given, Row


def _port(id: int, *sizes: int, type: str = "FP32") -> str:
    return f'<port id="{id}" precision="{type}">{"".join(f"<dim>{size}</dim>" for size in sizes)}</port>'


def _layer(
    id: int, type: str, data: str = "", ins: str = "", outs: str = "", version: str = "opset1", more: str = ""
) -> str:
    return (
        f'<layer id="{id}" name="{type.lower()}{id}" type="{type}" version="{version}">'
        + (f"<data {data}/>" if data else "")
        + (f"<input>{ins}</input>" if ins else "")
        + (f"<output>{outs}</output>" if outs else "")
        + more
        + "</layer>"
    )


def _edge(source: str, target: str) -> str:
    (a, b), (c, d) = source.split(":"), target.split(":")
    return f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>'


def _graph(layers: list[str], edges: list[tuple[str, str]]) -> str:
    joined = "\n".join(_edge(*each) for each in edges)
    return "<layers>\n" + "\n".join(layers) + f"\n</layers>\n<edges>\n{joined}\n</edges>\n"


def _net(layers: list[str], edges: list[tuple[str, str]]) -> str:
    return f'<net name="row" version="11">\n{_graph(layers, edges)}</net>\n'


X = 'shape="4,2" element_type="f32"'
ROW = 'shape="1,2" element_type="f32"'
STEP = _graph(
    [
        _layer(0, "Parameter", ROW, outs=_port(0, 1, 2)),
        _layer(1, "Parameter", ROW, outs=_port(0, 1, 2)),
        _layer(2, "Add", "", _port(0, 1, 2) + _port(1, 1, 2), _port(2, 1, 2)),
        _layer(3, "Result", "", _port(0, 1, 2)),
        _layer(4, "Result", "", _port(0, 1, 2)),
    ],
    [("0:0", "2:0"), ("1:0", "2:1"), ("2:2", "3:0"), ("2:2", "4:0")],
)
SLICE = 'axis="0" start="0" end="-1" stride="1" part_size="1"'
BESIDE = 'axis="1" start="0" end="-1" stride="1" part_size="1"'
ITERATOR = _net(
    [
        _layer(0, "Parameter", X, outs=_port(0, 4, 2)),
        _layer(1, "Parameter", ROW, outs=_port(0, 1, 2)),
        _layer(5, "Parameter", X, outs=_port(0, 4, 2)),
        _layer(
            2,
            "TensorIterator",
            "",
            _port(0, 4, 2) + _port(1, 1, 2) + _port(2, 4, 2),
            _port(3, 4, 2) + _port(4, 1, 2),
            more="<port_map>\n"
            f'<input external_port_id="0" internal_layer_id="0" {SLICE}/>\n'
            '<input external_port_id="1" internal_layer_id="1"/>\n'
            f'<output external_port_id="3" internal_layer_id="3" {SLICE}/>\n'
            '<output external_port_id="4" internal_layer_id="4"/>\n'
            '</port_map>\n<back_edges><edge from-layer="4" to-layer="1"/></back_edges>\n'
            f"<body>\n{STEP}</body>\n",
        ),
        _layer(3, "Result", "", _port(0, 4, 2)),
        _layer(4, "Result", "", _port(0, 1, 2)),
        _layer(6, "Result", "", _port(0, 4, 2)),
    ],
    [("0:0", "2:0"), ("1:0", "2:1"), ("2:3", "3:0"), ("2:4", "4:0"), ("5:0", "6:0")],
).replace(_port(0, 4, 2) + _port(1, 1, 2) + _port(2, 4, 2), _port(0, 4, 2) + _port(1, 1, 2))

GO = (
    '<layer id="5" name="go" type="Const" version="opset1"><data element_type="boolean" shape="" offset="0" size="1"/>'
    '<output><port id="0" precision="BOOL"/></output></layer>\n'
    '<layer id="6" name="end" type="Result" version="opset1"><input><port id="0" precision="BOOL"/></input></layer>\n'
    '<layer id="7" name="turn" type="Parameter" version="opset1"><data shape="" element_type="i64"/>'
    '<output><port id="0" precision="I64"/></output></layer>\n'
    '<layer id="8" name="last" type="Result" version="opset1"><input><port id="0" precision="I64"/></input></layer>\n'
)
LOOP_BODY = STEP.replace("</layers>", GO + "</layers>").replace(
    "</edges>", _edge("5:0", "6:0") + "\n" + _edge("7:0", "8:0") + "\n</edges>"
)
LOOP = _net(
    [
        _layer(0, "Parameter", X, outs=_port(0, 4, 2)),
        _layer(1, "Parameter", ROW, outs=_port(0, 1, 2)),
        _layer(5, "Const", 'element_type="i64" shape="" offset="1" size="8"', outs=_port(0, type="I64")),
        _layer(6, "Const", 'element_type="boolean" shape="" offset="0" size="1"', outs=_port(0, type="BOOL")),
        _layer(
            2,
            "Loop",
            "",
            _port(0, type="I64") + _port(1, type="BOOL") + _port(2, 4, 2) + _port(3, 1, 2),
            _port(4, 4, 2) + _port(5, 1, 2),
            "opset5",
            more="<port_map>\n"
            f'<input external_port_id="2" internal_layer_id="0" {SLICE}/>\n'
            '<input external_port_id="3" internal_layer_id="1"/>\n'
            '<input external_port_id="-1" internal_layer_id="7" purpose="current_iteration"/>\n'
            f'<output external_port_id="4" internal_layer_id="3" {SLICE}/>\n'
            '<output external_port_id="5" internal_layer_id="4"/>\n'
            '<output external_port_id="-1" internal_layer_id="6" purpose="execution_condition"/>\n'
            '</port_map>\n<back_edges><edge from-layer="4" to-layer="1"/></back_edges>\n'
            f"<body>\n{LOOP_BODY}</body>\n",
        ),
        _layer(3, "Result", "", _port(0, 4, 2)),
        _layer(4, "Result", "", _port(0, 1, 2)),
    ],
    [("5:0", "2:0"), ("6:0", "2:1"), ("0:0", "2:2"), ("1:0", "2:3"), ("2:4", "3:0"), ("2:5", "4:0")],
)


def _branch(type: str, sizes: tuple[int, ...]) -> str:
    return _graph(
        [
            _layer(0, "Parameter", X, outs=_port(0, 4, 2)),
            _layer(1, type, "", _port(0, *sizes), _port(1, *sizes), "opset1"),
            _layer(2, "Result", "", _port(0, *sizes)),
        ],
        [("0:0", "1:0"), ("1:1", "2:0")],
    )


BRANCH_MAP = (
    '<input external_port_id="1" internal_layer_id="0"/>\n<output external_port_id="2" internal_layer_id="2"/>\n'
)
SHAPE_BRANCH = _graph(
    [
        _layer(0, "Parameter", X, outs=_port(0, 4, 2)),
        _layer(1, "ShapeOf", "", _port(0, 4, 2), _port(1, 2, type="I64"), "opset1"),
        _layer(2, "Result", "", _port(0, 2, type="I64")),
    ],
    [("0:0", "1:0"), ("1:1", "2:0")],
)
IF = _net(
    [
        _layer(0, "Parameter", 'shape="" element_type="boolean"', outs=_port(0, type="BOOL")),
        _layer(1, "Parameter", X, outs=_port(0, 4, 2)),
        _layer(
            2,
            "If",
            "",
            _port(0, type="BOOL") + _port(1, 4, 2),
            _port(2, 4, 2),
            "opset8",
            more=f"<then_port_map>\n{BRANCH_MAP}</then_port_map>\n<else_port_map>\n{BRANCH_MAP}</else_port_map>\n"
            f"<then_body>\n{_branch('Exp', (4, 2))}</then_body>\n<else_body>\n{_branch('Abs', (4, 2))}</else_body>\n",
        ),
        _layer(3, "Result", "", _port(0, 4, 2)),
    ],
    [("0:0", "2:0"), ("1:0", "2:1"), ("2:2", "3:0")],
)

STATE = 'variable_id="v" variable_type="f32" variable_shape="4,2"'
STATE_6 = _net(
    [
        _layer(0, "Parameter", X, outs=_port(0, 4, 2)),
        _layer(1, "ReadValue", STATE, _port(0, 4, 2), _port(1, 4, 2), "opset6"),
        _layer(2, "Result", "", _port(0, 4, 2)),
        _layer(3, "Assign", 'variable_id="v"', _port(0, 4, 2), version="opset6"),
    ],
    [("0:0", "1:0"), ("1:1", "2:0"), ("1:1", "3:0")],
)
STATE_3 = STATE_6.replace(STATE, 'variable_id="v"').replace('"opset6"', '"opset3"')

INPUT = _net(
    [_layer(0, "Parameter", X, outs=_port(0, 4, 2)), _layer(1, "Result", "", _port(0, 4, 2))], [("0:0", "1:0")]
)
CONSTANT = _net(
    [
        _layer(0, "Const", 'element_type="i64" shape="1" offset="1" size="8"', outs=_port(0, 1, type="I64")),
        _layer(1, "Result", "", _port(0, 1, type="I64")),
    ],
    [("0:0", "1:0")],
)

FOUR_ROWS, ONE_ROW, YES = Given("f32", (4, 2)), Given("f32", (1, 2)), Given("boolean", (), (True,))
FLOATS = '<output><port id="0" precision="FP32">'
OTHER_TYPE = f'<data shape="1,2" element_type="i32"/>{FLOATS.replace("FP32", "I32")}'
SLICED = f'internal_layer_id="0" {SLICE}'
THREES = SLICED.replace('stride="1" part_size="1"', 'stride="3" part_size="3"')
JOINED = f'internal_layer_id="3" {SLICE}'
STORED_3, STORED_6 = (f'"Assign" version="opset{n}"><data variable_id="v"/>' for n in (3, 6))
NAMELESS_3, NAMELESS_6 = (f'"Assign" version="opset{n}"><data variable_id=""/>' for n in (3, 6))
WITHOUT_3, WITHOUT_6 = (f'"Assign" version="opset{n}">' for n in (3, 6))
READ_3, NO_ID = '"ReadValue" version="opset3"><data variable_id="v"/>', '"ReadValue" version="opset3">'
ONE_IN = _port(0, 4, 2) + "</input><output>"
TWO_IN = _port(0, 4, 2) + _port(9, 4, 2) + "</input><output>"
RESULT = f'version="opset1"><input>{_port(0, 4, 2)}</input></layer>'
WHOLE_THEN = f"<then_body>\n<layers>\n{_layer(0, 'Parameter', X, outs=_port(0, 4, 2))}"
MODELS: dict[str, tuple[str, tuple[Given, ...], list[tuple[str, str, str, str]]]] = {
    "TensorIterator-1": (
        ITERATOR,
        (FOUR_ROWS, ONE_ROW, FOUR_ROWS),
        [
            ("C1", "an input is sliced along axis 7", SLICED, SLICED.replace('axis="0"', 'axis="7"')),
            ("C2", "the stride of an input is 0", SLICED, SLICED.replace('stride="1"', 'stride="0"')),
            ("C2", "part_size of an input is 0", SLICED, SLICED.replace('part_size="1"', 'part_size="0"')),
            ("C2", "the stride of an output is 0", JOINED, JOINED.replace('stride="1"', 'stride="0"')),
            ("C3", "start is 50", SLICED, SLICED.replace('start="0"', 'start="50"')),
            ("C3", "start is behind end", SLICED, SLICED.replace('start="0" end="-1"', 'start="3" end="1"')),
            (
                "C4",
                "parts of 3 of 4 rows",
                SLICED,
                THREES,
            ),
            (
                "C5",
                "4 and 2 slices",
                'external_port_id="1" internal_layer_id="1"/>',
                f'external_port_id="1" internal_layer_id="1" {BESIDE}/>',
            ),
            ("C6", "what a parameter of the body gets is i32", f"<data {ROW}/>{FLOATS}", OTHER_TYPE),
            ("C7", "a result is joined along axis 7", JOINED, JOINED.replace('axis="0"', 'axis="7"')),
            ("C9", "part_size of an output is 2", JOINED, JOINED.replace('part_size="1"', 'part_size="2"')),
        ],
    ),
    "Loop-5": (
        LOOP,
        (FOUR_ROWS, ONE_ROW),
        [
            ("C1", "an input is sliced along axis 7", SLICED, SLICED.replace('axis="0"', 'axis="7"')),
            ("C2", "the stride of an input is 0", SLICED, SLICED.replace('stride="1"', 'stride="0"')),
            ("C2", "part_size of an input is 0", SLICED, SLICED.replace('part_size="1"', 'part_size="0"')),
            ("C3", "start is 50", SLICED, SLICED.replace('start="0"', 'start="50"')),
            (
                "C4",
                "parts of 3 of 4 rows",
                SLICED,
                THREES,
            ),
            (
                "C5",
                "4 and 2 slices",
                'external_port_id="3" internal_layer_id="1"/>',
                f'external_port_id="3" internal_layer_id="1" {BESIDE}/>',
            ),
            ("C6", "what a parameter of the body gets is i32", f"<data {ROW}/>{FLOATS}", OTHER_TYPE),
            ("C7", "a result is joined along axis 7", JOINED, JOINED.replace('axis="0"', 'axis="7"')),
            ("C9", "no execution_condition", ' purpose="execution_condition"', ""),
            (
                "C10",
                "the execution_condition is f32",
                'internal_layer_id="6" purpose="execution_condition"',
                'internal_layer_id="4" purpose="execution_condition"',
            ),
            (
                "C11",
                "current_iteration is f32",
                'shape="" element_type="i64"/><output><port id="0" precision="I64"/>',
                'shape="" element_type="f32"/><output><port id="0" precision="FP32"/>',
            ),
            ("C12", "the stride of an output is 2", JOINED, JOINED.replace('stride="1"', 'stride="2"')),
        ],
    ),
    "If-8": (
        IF,
        (YES, FOUR_ROWS),
        [
            (
                "C1",
                "a body gives no output",
                '<output external_port_id="2" internal_layer_id="2"/>\n</else_port_map>',
                "</else_port_map>",
            ),
            ("C2", "a body gives another type", _branch("Abs", (4, 2)), SHAPE_BRANCH),
            (
                "C3",
                "a parameter of a body is i32",
                f"<then_body>\n<layers>\n{_layer(0, 'Parameter', X, outs=_port(0, 4, 2))}",
                f"<then_body>\n<layers>\n{_layer(0, 'Parameter', X.replace('f32', 'i32'), outs=_port(0, 4, 2))}",
            ),
        ],
    ),
    "ReadValue-6": (
        STATE_6,
        (FOUR_ROWS,),
        [
            ("C1", "variable_id is empty", 'variable_id="v"', 'variable_id=""'),
            ("C2", "variable_shape is another one", 'variable_shape="4,2"', 'variable_shape="2,4"'),
            ("C3", "variable_type is i32", 'variable_type="f32"', 'variable_type="i32"'),
            ("E306", "`variable_id` is missing", 'variable_id="v" variable_type', "variable_type"),
            ("E306", "`variable_type` is missing", 'variable_type="f32" ', ""),
            ("E306", "`variable_shape` is missing", ' variable_shape="4,2"', ""),
            ("E307", "`variable_type` is `f23`", 'variable_type="f32"', 'variable_type="f23"'),
            ("E307", "`variable_shape` is `3x`", 'variable_shape="4,2"', 'variable_shape="3x"'),
            (
                "E302",
                "2 inputs",
                _port(0, 4, 2) + "</input><output>",
                _port(0, 4, 2) + _port(9, 4, 2) + "</input><output>",
            ),
            ("E302", "2 outputs", _port(1, 4, 2), _port(1, 4, 2) + _port(2, 4, 2)),
        ],
    ),
    "ReadValue-3": (
        STATE_3,
        (FOUR_ROWS,),
        [
            ("C1", "variable_id is empty", 'variable_id="v"', 'variable_id=""'),
            (
                "E306",
                "`variable_id` is missing",
                '"ReadValue" version="opset3"><data variable_id="v"/>',
                '"ReadValue" version="opset3">',
            ),
            ("E302", "2 outputs", _port(1, 4, 2), _port(1, 4, 2) + _port(2, 4, 2)),
        ],
    ),
    "Assign-3": (
        STATE_3,
        (FOUR_ROWS,),
        [
            (
                "C1",
                "variable_id is empty",
                STORED_3,
                NAMELESS_3,
            ),
            (
                "E306",
                "`variable_id` is missing",
                STORED_3,
                WITHOUT_3,
            ),
        ],
    ),
    "Assign-6": (
        STATE_6,
        (FOUR_ROWS,),
        [
            (
                "C1",
                "variable_id is empty",
                STORED_6,
                NAMELESS_6,
            ),
            (
                "E306",
                "`variable_id` is missing",
                STORED_6,
                WITHOUT_6,
            ),
        ],
    ),
    "Parameter-1": (
        INPUT,
        (FOUR_ROWS,),
        [
            ("E306", "`shape` is missing", 'shape="4,2" ', ""),
            ("E306", "`element_type` is missing", ' element_type="f32"', ""),
            ("E307", "`element_type` is `f23`", "f32", "f23"),
            ("E307", "`element_type` is `FP32`", "f32", "FP32"),
            ("E307", "`shape` is `3x`", "4,2", "3x"),
            ("E307", "`shape` is `1,-2`", "4,2", "1,-2"),
            ("E301", "version is opset99", "opset1", "opset99"),
            ("E302", "2 outputs", _port(0, 4, 2) + "</output>", _port(0, 4, 2) + _port(1, 4, 2) + "</output>"),
        ],
    ),
    "Constant-1": (
        CONSTANT,
        (),
        [
            ("C1", "a size of the shape is unknown", 'shape="1"', 'shape="?"'),
            ("E306", "`shape` is missing", 'shape="1" ', ""),
            ("E306", "`element_type` is missing", 'element_type="i64" ', ""),
            ("E306", "`offset` is missing", 'offset="1" ', ""),
            ("E306", "`size` is missing", ' size="8"', ""),
            ("E307", "`element_type` is `f23`", '"i64" shape', '"f23" shape'),
            ("E307", "`shape` is `3x`", 'shape="1"', 'shape="3x"'),
            ("E307", "`offset` is `-1`", 'offset="1"', 'offset="-1"'),
            ("E307", "`size` is `abc`", 'size="8"', 'size="abc"'),
        ],
    ),
    "Result-1": (
        INPUT,
        (FOUR_ROWS,),
        [
            (
                "E302",
                "no inputs",
                f'version="opset1"><input>{_port(0, 4, 2)}</input></layer>',
                'version="opset1"></layer>',
            ),
            ("E301", "version is opset99", '"Result" version="opset1"', '"Result" version="opset99"'),
        ],
    ),
}

GROWING = _layer(2, "Concat", 'axis="0"', _port(0, 1, 2) + _port(1, 1, 2), _port(2, 1, 2))
JOINED_BESIDE = JOINED.replace('axis="0"', 'axis="1"').replace('part_size="1"', 'part_size="2"')
TWICE = _layer(9, "Concat", 'axis="0"', _port(0, 4, 2) + _port(1, 4, 2), _port(2, 8, 2))


def _growing(text: str) -> str:
    """With a state that grows by a row each time, whose values are joined along another axis."""
    grown = text.replace(_layer(2, "Add", "", _port(0, 1, 2) + _port(1, 1, 2), _port(2, 1, 2)), GROWING)
    inner = _layer(1, "Parameter", ROW, outs=_port(0, 1, 2))
    head, body, tail = grown.partition("<body>")
    return head.replace(JOINED, JOINED_BESIDE) + body + tail.replace(inner, inner.replace('"1,2"', '"?,2"'))


def _doubled(text: str) -> str:
    """With a state of twice as many rows in the next run."""
    more = text.replace("</layers>", f"{TWICE}\n</layers>").replace(_edge("1:1", "3:0"), _edge("9:2", "3:0"))
    return more.replace("</edges>", "\n".join([_edge("1:1", "9:0"), _edge("1:1", "9:1"), "</edges>"]))


ALONG_AN_AXIS = (FOUR_ROWS, Given("i64", (1,), (0,)))


def _given_all(name: str) -> str:
    """The model of an op whose inputs are all Parameters."""
    text, _, _ = Row(name, inputs=ALONG_AN_AXIS).model(constants=False)
    return text


WHOLE = [
    Row(
        "TensorIterator-1", "C8", changed="results grow", inputs=(FOUR_ROWS, ONE_ROW, FOUR_ROWS), xml=_growing(ITERATOR)
    ),
    Row("Loop-5", "C8", changed="results grow", inputs=(FOUR_ROWS, ONE_ROW), xml=_growing(LOOP)),
    Row("ReadValue-3", "C2", changed="the state grows", inputs=(FOUR_ROWS,), xml=_doubled(STATE_3)),
    Row("ReadValue-6", "C4", changed="the state grows", inputs=(FOUR_ROWS,), xml=_doubled(STATE_6)),
    Row("Unique-10", "C2", changed="`axis` is a Parameter", inputs=ALONG_AN_AXIS, xml=_given_all("Unique-10")),
]
"""Models that take more than a replacement."""


def body_rows(name: str) -> Iterator[Row]:
    """The rows of an op version, of those that stand here."""
    yield from (row for row in WHOLE if row.op == name)
    if name not in MODELS:
        return
    text, inputs, changes = MODELS[name]
    for label, changed, old, new in changes:
        assert old in text, f"{name} {label}: {changed}"
        yield Row(name, label, changed=changed, inputs=inputs, xml=text.replace(old, new, 1))


def valid(name: str) -> Row:
    """Their model without a defect."""
    text, inputs, _ = MODELS[name]
    return Row(name, inputs=inputs, xml=text)
