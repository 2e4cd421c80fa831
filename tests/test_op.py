"""Op declarations: ports bound to tensors, types and shapes checked, attributes read."""

import numpy as np
import pytest

from irrun.spec import (
    BOOL,
    FLOATS,
    INT,
    INTS,
    NUMERIC,
    SHAPE,
    Attr,
    Input,
    Output,
    Tensor,
    Violation,
    choice,
    fresh,
    numpy_dtype,
    op,
)
from irrun.spec.dims import Undecided
from irrun.spec.patterns import parse_pattern
from irrun.spec.registry import registry


@op(
    "Rows-1",
    types={"T": NUMERIC, "T_IND": frozenset({"i32", "i64"})},
    inputs=[
        Input("table", "T", "[rows, *row]"),
        Input("ids", "T_IND", "[count] | []"),
        Input("weights", "T", "[count]", optional=True),
    ],
    outputs=[Output("taken", "T", "[count, *row]"), Output("number", "output_type", "[]")],
    attrs=[Attr("output_type", choice("i32", "i64"), "i64"), Attr("exclude-pad", BOOL, False)],
)
def rows(table, ids, weights=None, *, output_type="i64", exclude_pad=False):
    """Rows of a table.

    Constraints:
        C1: ids lie in [0, rows).
    """
    return table[ids], np.asarray(len(ids), numpy_dtype(output_type))


@rows.shapes
def _(node):
    node.within("C1", "ids", 0, node.dims["rows"])


def infer(*tensors, **attrs):
    return rows.infer(tensors, rows.defaults | attrs)


def test_symbols_carry_sizes_from_inputs_to_outputs():
    batch = fresh()
    taken, number = infer(Tensor("f32", (9, 2, batch)), Tensor("i32", (4,))).outputs
    assert taken.type == "f32"
    assert taken.shape[:2] == (4, 2)
    assert taken.shape[2] is batch
    assert number == Tensor("i64", ())


def test_a_value_beyond_all_that_a_bound_may_be_is_refused():
    ids = Tensor.of(np.array([0, 3], np.int32))
    with pytest.raises(Violation, match=r"`ids\[1\]` is 3, outside \[0, 1\.\.3\)"):
        infer(Tensor("f32", (fresh(1, 3),)), ids)
    for rows in (fresh(1, 4), fresh(1)):
        assert not infer(Tensor("f32", (rows,)), ids).complete


def test_an_attribute_names_an_output_type():
    assert infer(Tensor("f32", (9,)), Tensor("i32", (4,)), output_type="i32").outputs[1].type == "i32"


def test_an_unknown_rank_leaves_what_depends_on_it_unknown():
    inferred = infer(Tensor("f32", None), Tensor("i32", (4,)))
    assert inferred.outputs[0].shape is None
    assert not inferred.complete


def test_the_only_rank_that_breaks_no_rule_is_that_of_the_input():
    convolution = registry().find("Convolution", "opset1")
    attrs = convolution.defaults | {"strides": (1,), "pads_begin": (0,), "pads_end": (0,), "dilations": (1,)}
    (result,) = convolution.infer([Tensor("f32", None), Tensor("f32", (4, 2, 3))], attrs).outputs
    assert (len(result.shape), result.shape[1]) == (3, 4)
    other, same = (convolution.infer([Tensor("f32", None), Tensor("f32", (4, 2, 3))], attrs).outputs for _ in range(2))
    assert (other[0].shape[0] == same[0].shape[0]) is not True


def test_the_same_symbol_is_the_same_size():
    with pytest.raises(Violation, match="`count` is 3 in `weights`, but 4 in `ids`") as error:
        infer(Tensor("f32", (9,)), Tensor("i32", (4,)), Tensor("f32", (3,)))
    assert error.value.label == "E304"


def test_two_unknown_sizes_of_one_symbol_meet():
    narrow = infer(Tensor("f32", (9,)), Tensor("i32", (fresh(),)), Tensor("f32", (fresh(2, 5),))).outputs[0]
    assert repr(narrow.shape[0]) == "2..5"


def test_a_rank_that_no_pattern_has():
    with pytest.raises(Violation, match=r"`ids` has rank 2, expected \[count\] or a scalar") as error:
        infer(Tensor("f32", (9,)), Tensor("i32", (4, 4)))
    assert error.value.label == "E305"


def test_a_type_that_the_op_does_not_take():
    with pytest.raises(Violation, match="`ids` is f32, expected one of i32, i64"):
        infer(Tensor("f32", (9,)), Tensor("f32", (4,)))


def test_types_of_one_symbol_that_disagree():
    with pytest.raises(Violation, match="`weights` is f16, but `table` is f32"):
        infer(Tensor("f32", (9,)), Tensor("i32", (4,)), Tensor("f16", (4,)))


def test_a_missing_and_a_surplus_input():
    with pytest.raises(Violation, match="1 input, expected 2 to 3"):
        infer(Tensor("f32", (9,)))
    with pytest.raises(Violation, match="4 inputs, expected 2 to 3"):
        infer(*[Tensor("f32", (9,))] * 4)
    with pytest.raises(Violation, match="input `ids` is not connected"):
        infer(Tensor("f32", (9,)), None)


def test_an_element_out_of_range_is_named_with_its_position():
    with pytest.raises(Violation, match=r"`ids\[1\]` is 9, outside \[0, 9\)") as error:
        infer(Tensor("f32", (9,)), Tensor.of(np.array([8, 9])))
    assert error.value.label == "C1"
    assert infer(Tensor("f32", (9,)), Tensor.of(np.array([0, 8]))).complete
    assert not infer(Tensor("f32", (9,)), Tensor("i32", (2,))).complete
    with pytest.raises(Violation, match=r"`ids\[0\]` is -1"):
        infer(Tensor("f32", (fresh(),)), Tensor.of(np.array([-1, 9])))


def test_the_rule_is_asked_of_data_alone_where_types_and_shapes_are_bound():
    shapes = [Tensor("f32", (9,)), Tensor("i32", (2,))]
    bound = rows.bound(shapes, rows.defaults)
    for ids in ([0, 8], [1, 1]):
        assert rows.check([shapes[0], Tensor.of(np.int32(ids))], rows.defaults, bound) == []
    with pytest.raises(Violation, match=r"`ids\[1\]` is 9, outside \[0, 9\)"):
        rows.check([shapes[0], Tensor.of(np.int32([8, 9]))], rows.defaults, bound)
    with pytest.raises(Violation, match="`table` is string, expected one of"):
        rows.bound([Tensor("string", (9,)), shapes[1]], rows.defaults)


def concerns(*inputs, op=rows, **attrs):
    """What a violation says that it is about, beside its message."""
    with pytest.raises(Violation) as error:
        op.infer(inputs, {**op.defaults, **attrs})
    return error.value.port, list(error.value.about)


def test_a_violation_names_its_inputs_and_attributes_as_data():
    table, ids = Tensor("f32", (9,)), Tensor("i32", (4,))
    assert concerns(table, ids, Tensor("f32", (3,))) == ("weights", ["ids"])
    assert concerns(table, ids, Tensor("f16", (4,))) == ("weights", ["table"])
    assert concerns(table, Tensor("i32", (4, 4))) == ("ids", [])
    assert concerns(table, Tensor.of(np.array([8, 9]))) == ("ids", [])
    assert concerns(table, None) == (None, ["ids"])
    ops = registry().ops
    pair = Tensor("f32", (2, 3)), Tensor("f32", (4, 5))
    assert concerns(*pair, op=ops["MatMul-1"]) == (None, ["A", "B"])
    assert concerns(table, op=ops["Clamp-1"], min=2, max=1) == (None, ["min", "max"])
    assert concerns(table, op=ops["SoftMax-8"], axis=3) == (None, ["axis"])


def test_a_violation_names_inputs_of_a_variadic_one_by_number():
    concat = registry().ops["Concat-1"]
    a, b = Tensor("f32", (2, 3)), Tensor("f32", (2, 3, 4))
    assert concerns(a, a, b, op=concat, axis=0) == (None, [("inputs", 2), ("inputs", 0)])
    assert concerns(a, Tensor("i32", (2, 3)), op=concat, axis=0) == (("inputs", 1), [("inputs", 0)])


def test_calling_an_op_checks_and_computes():
    taken, number = rows(np.array([10.0, 20.0]), np.array([1, 0, 1]))
    assert taken.tolist() == [20.0, 10.0, 20.0]
    assert number == 3
    with pytest.raises(Violation):
        rows(np.array([10.0, 20.0]), np.array([2]))


def test_the_keyword_of_an_attribute():
    assert Attr("exclude-pad", BOOL).keyword == "exclude_pad"
    assert Attr("auto_broadcast.auto_broadcast_axis", INT).keyword == "auto_broadcast_axis"


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (INT, " 7", 7),
        (INT, "-1", -1),
        (INTS, "1, 2,3,", (1, 2, 3)),
        (INTS, "", ()),
        (FLOATS, "1e-3,-inf", (1e-3, float("-inf"))),
        (BOOL, "True", True),
        (BOOL, "0", False),
        (choice("floor", "ceil"), "CEIL", "ceil"),
        (FLOATS, "+6.0, -.5", (6.0, -0.5)),
    ],
)
def test_attributes_are_read_as_the_reader_reads_them(kind, text, value):
    assert kind.parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (INT, "1.7", "is `1.7`, expected an integer"),
        (INT, "", "expected an integer"),
        (INT, "\uff11", "expected an integer"),
        (INT, "1\u00a0", "expected an integer"),
        (INTS, "1,\u30001", "expected an integer"),
        (SHAPE, "\u00a01", "has the dimension"),
        (FLOATS, "\uff11", "expected a number"),
        (INT, "99999999999999999999", "does not fit into 64 bits"),
        (INTS, "1,,2", "is ``, expected an integer"),
        (INTS, " ", "is ` `, expected an integer"),
        (FLOATS, "1, ", "is ` `, expected a number"),
        (BOOL, "yes", "is `yes`, expected true or false"),
        (choice("floor", "ceil"), "round", "expected one of floor, ceil"),
        (FLOATS, "1e999", "which no 64-bit float holds"),
        (SHAPE, "5..3", "upper bound is below the lower one"),
        (SHAPE, "1,x", "has the dimension `x`"),
    ],
)
def test_attributes_that_are_malformed(kind, text, message):
    with pytest.raises(ValueError, match=message):
        kind.parse(text)


def test_the_range_of_an_attribute():
    assert Attr("levels", INT, least=2).parse("2") == 2
    with pytest.raises(ValueError, match="is 1, expected 2 or more"):
        Attr("levels", INT, least=2).parse("1")
    with pytest.raises(ValueError, match="is 1,0, expected 1 or more"):
        Attr("strides", INTS, least=1).parse("1,0")
    assert Attr("pads", INTS, least=0).parse("-0,1") == (0, 1)
    with pytest.raises(ValueError, match="is -0,1, expected numbers without a sign"):
        Attr("pads", INTS, least=0, unsigned=True).parse("-0,1")


def test_partial_shapes():
    assert SHAPE.parse("") == ()
    assert SHAPE.parse("...") is None
    assert SHAPE.parse("[1, 3]") == (1, 3)
    assert list(map(repr, SHAPE.parse("?,2..8,4.."))) == ["?", "2..8", "4.."]


def test_patterns_that_are_none():
    with pytest.raises(ValueError, match="more than one starred name"):
        parse_pattern("[*a, *b]")
    with pytest.raises(ValueError, match="not a shape pattern"):
        parse_pattern("a, b")


def test_asking_for_an_unbound_symbol_stops_the_rule():
    @op("Stops-1", inputs=[Input("x", "f32", "...")], outputs=[Output("y", "f32", "[*other]")])
    def stops(x):
        """Stop."""

    asked = []

    @stops.shapes
    def _(node):
        asked.append(node.dims.get("other"))
        with pytest.raises(Undecided):
            node.dims["other"]
        return {"other": (1,)}

    assert stops.infer([Tensor("f32", (2,))], {}).outputs[0].shape == (1,)
    assert asked == [None]
