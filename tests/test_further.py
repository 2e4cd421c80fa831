"""All that is wrong with one layer is told at once, and nothing that one thing explains together with what is told."""

from dataclasses import dataclass, field, replace
from itertools import combinations
from random import Random
from typing import Any

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.check.attributes import read_attributes
from irrun.check.further import Enough, Patience, depends
from irrun.check.infer import Inference
from irrun.diagnostics import Diagnostic, Span
from irrun.spec.op import Tensor, Violation

F32, I64, I32 = np.float32, np.int64, np.int32
WINDOW = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
POOL = {"kernel": "3,3", "strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "exclude-pad": "true"}


@dataclass(frozen=True)
class Made:
    """A model of one layer: arrays are its constants, types with shapes its inputs, whole numbers inputs once more."""

    type: str
    inputs: tuple[Any, ...]
    outputs: tuple[tuple[str, tuple[int, ...]], ...]
    data: dict[str, str] = field(default_factory=dict)
    version: str = "opset1"

    def but(self, *changes):
        """With other inputs, by number, and other attributes, by name; None for one that is missing."""
        inputs, data = [*self.inputs], dict(self.data)
        for place, new in changes:
            if isinstance(place, int):
                inputs[place] = new
            elif new is None:
                del data[place]
            else:
                data[place] = new
        return replace(self, inputs=tuple(inputs), data=data)

    def net(self):
        net = Model()
        given: list[Any] = []
        for number, item in enumerate(self.inputs):
            if isinstance(item, int):
                given.append(given[item])
            else:
                given.append(
                    net.parameter(f"x{number}", *item) if isinstance(item, tuple) else net.constant(item, f"x{number}")
                )
        for output in net.layer(self.type, given, [*self.outputs], version=self.version, name="it", **self.data):
            net.result(output)
        return net

    def told(self, folder, severity="error"):
        return told(self.net().save(folder), severity)


def told(path, severity="error"):
    """What is said of the layer: codes with the labels of rules, and what the message says first."""
    found = [each for each in irrun.validate(path).diagnostics if each.severity == severity]
    return [(each.label or each.code, each.message.split("`")[1] if "`" in each.message else "") for each in found]


CONVOLUTION = Made("Convolution", (("f32", (1, 4, 9, 8)), F32(np.ones((6, 4, 3, 2)))), (("f32", (1, 6, 7, 7)),), WINDOW)
POOLING = Made("AvgPool", (("f32", (1, 4, 9, 8)),), (("f32", (1, 4, 7, 6)),), POOL)
GATHER = Made(
    "Gather", (("f32", (5, 3)), I64([0, 4]), I64(0)), (("f32", (2, 3)),), {"batch_dims": "0"}, version="opset8"
)
NORMALIZED = Made(
    "BatchNormInference",
    (("f32", (2, 3, 4)), *(F32(np.ones(3)) for _ in range(4))),
    (("f32", (2, 3, 4)),),
    {"epsilon": "0.001"},
    version="opset5",
)
SCATTERED = Made(
    "ScatterElementsUpdate",
    (("f32", (4, 3)), ("i64", (2, 3)), ("f32", (2, 3)), I64(0)),
    (("f32", (4, 3)),),
    {"reduction": "sum", "use_init_val": "true"},
    version="opset12",
)
SELECTED = Made(
    "Select",
    (("boolean", (2, 3)), ("f32", (2, 3)), ("f32", (3,))),
    (("f32", (2, 3)),),
    {"auto_broadcast": "numpy"},
)
ONE_HOT = Made("OneHot", (("i64", (3,)), I64(4), F32(1), F32(0)), (("f32", (3, 4)),), {"axis": "-1"})
TOP = Made(
    "TopK",
    (("f32", (4, 5)), I64(2)),
    (("f32", (4, 2)), ("i64", (4, 2))),
    {"axis": "1", "mode": "max", "sort": "value", "index_element_type": "i64"},
    version="opset11",
)
JOINED = Made("Concat", (("f32", (2, 3)), ("f32", (2, 4))), (("f32", (2, 7)),), {"axis": "1"})
ATTENTION = Made(
    "ScaledDotProductAttention",
    (("f32", (2, 5, 8)), ("f32", (2, 6, 8)), ("f32", (2, 6, 8))),
    (("f32", (2, 5, 8)),),
    {"causal": "false"},
    version="opset13",
)
DETECTED = Made("RegionYolo", (("f32", (1, 75, 4, 4)),), (("f32", (1, 75, 4, 4)),))
DETECTED = DETECTED.but(("coords", "4"), ("classes", "20"), ("num", "3"), ("do_softmax", "false"))
DETECTED = DETECTED.but(("mask", "0,1,2"), ("axis", "1"), ("end_axis", "3"), ("anchors", "1,1,2,2,3,3"))

INDEPENDENT = {
    "lengths of lists and channels": (CONVOLUTION, ("strides", "1"), (1, F32(np.ones((6, 5, 3, 2))))),
    "two lists": (CONVOLUTION, ("strides", "1"), ("dilations", "1,1,1")),
    "a word that is none and a type": (CONVOLUTION, ("auto_pad", "some"), (1, np.float16(np.ones((6, 4, 3, 2))))),
    "numbers that are none and a rank": (POOLING, ("strides", "a"), (0, ("f32", (4,)))),
    "a missing list and one of another length": (POOLING, ("kernel", None), ("strides", "1,1,1")),
    "numbers that are none and a window that does not fit": (POOLING, ("strides", "a"), ("kernel", "30,3")),
    "an axis that is none and another type": (GATHER, (1, F32([0, 4])), (2, F32([0]))),
    "type and shape of one input": (SELECTED, (2, ("i64", (3,))), (0, ("boolean", (4, 4)))),
    "an axis and a type that the op does not take": (GATHER, ("batch_dims", "b"), (1, F32([0, 4]))),
    "ranks of two inputs": (NORMALIZED, (1, F32(np.ones((3, 1)))), (3, F32(np.ones((1, 3))))),
    "a type and a rank": (NORMALIZED, (0, ("i64", (2, 3, 4))), (2, F32(np.ones((1, 3))))),
    "a number that is none and a size": (NORMALIZED, ("epsilon", "tiny"), (4, F32(np.ones(4)))),
    "a word that is none and shapes": (SCATTERED, ("reduction", "all"), (2, ("f32", (2, 4)))),
    "type and shape": (SCATTERED, (3, F32(0)), (2, ("f32", (2, 4)))),
    "no booleans, and no broadcast": (SELECTED, (0, ("f32", (2, 3))), (2, ("f32", (4,)))),
    "types that differ, and a rank": (ONE_HOT, (2, I32(1)), (3, F32([0]))),
    "a word that is none, and k": (TOP, ("mode", "most"), (1, F32(2))),
    "an axis that is none, and types": (JOINED, ("axis", "7"), (1, ("f16", (2, 4)))),
}


@pytest.mark.parametrize("model", [CONVOLUTION, POOLING, GATHER, NORMALIZED, SCATTERED, SELECTED, ONE_HOT, TOP, JOINED])
def test_of_a_sound_layer_nothing_is_told(model, tmp_path):
    assert not irrun.validate(model.net().save(tmp_path)).diagnostics


@pytest.mark.parametrize("title", INDEPENDENT)
def test_two_independent_mistakes_are_told_together(title, tmp_path):
    model, one, other = INDEPENDENT[title]
    ((first,), (second,)) = (model.but(each).told(tmp_path) for each in (one, other))
    assert sorted(model.but(one, other).told(tmp_path)) == sorted([first, second])


def test_each_stands_in_its_place(tmp_path):
    path = CONVOLUTION.but(("strides", "1"), (1, F32(np.ones((6, 5, 3, 2))))).net().save(tmp_path)
    lines = path.read_text().split("\n")
    found = irrun.validate(path).diagnostics
    places = [(lines[each.line - 1][each.column - 1 :], lines[each.line - 1]) for each in found]
    assert places[0][0].startswith('strides="1"')
    assert places[1][0].startswith('<port id="1"')
    assert [each.message for each in found] == [
        "Convolution-1 C2: `strides` has 1 values for 2 spatial axes",
        "`C_IN` is 5 in `filters`, but 4 in `data`",
    ]


def test_a_number_that_another_attribute_may_say_is_not_read_is_not_told_where_that_cannot_be_read(tmp_path):
    outside = CONVOLUTION.but(("pads_begin", "-1,0"))
    assert outside.told(tmp_path) == [("E307", "pads_begin")]
    assert outside.but(("auto_pad", "valid")).told(tmp_path) == []
    assert outside.but(("auto_pad", "some")).told(tmp_path) == [("E307", "auto_pad")]
    assert outside.but(("auto_pad", "some"), ("pads_begin", "a,0")).told(tmp_path) == [
        ("E307", "pads_begin"),
        ("E307", "auto_pad"),
    ]


def test_four_mistakes_of_one_layer_are_told_together(tmp_path):
    changes = ("strides", "1"), ("dilations", "1,1,1"), ("auto_pad", "some"), (1, np.float16(np.ones((6, 4, 3, 2))))
    found = [("E307", "auto_pad"), ("E303", "filters"), ("C2", "strides"), ("C2", "dilations")]
    assert sorted(CONVOLUTION.but(*changes).told(tmp_path)) == sorted(found)


@pytest.mark.parametrize(
    ("model", "change"),
    [
        (POOLING, (0, ("f32", (1, 4, 9, 8, 7)))),  # of a rank for which all the lists are too short
        (ATTENTION.but((1, 0), (2, 0)), (0, ("f32", (8,)))),  # one tensor, read three times
        (JOINED.but((1, ("f32", ()))), (0, ("f32", ()))),  # two scalars
        (Made("Add", (("boolean", (2,)), ("boolean", (2,))), (("boolean", (2,)),)), ("auto_broadcast", "numpy")),
        (DETECTED, ("classes", "a")),  # of which the channels are a function
        (DETECTED, ("classes", None)),
        (POOLING, ("kernel", "-1,3")),
    ],
)
def test_what_one_thing_explains_is_told_once(model, change, tmp_path):
    assert len(model.but(change).told(tmp_path)) == 1


def test_inputs_that_come_of_one_tensor_are_not_wrong_in_one_way_twice(tmp_path):
    net = Model()
    x = net.parameter("x", "f32", (8,))
    halves = [net.layer(type, [x], [("f32", (8,))])[0] for type in ("Abs", "Exp", "Sign")]
    (y,) = net.layer("ScaledDotProductAttention", halves, [("f32", (8,))], version="opset13", causal="false")
    net.result(y)
    assert told(net.save(tmp_path)) == [("E305", "query")]


def test_an_input_that_is_not_as_its_port_declares_may_be_another_tensor(tmp_path):
    model = SCATTERED.but((1, ("f32", (2, 3, 1))))
    assert model.told(tmp_path) == [("E303", "indices"), ("E304", "indices")]
    path = model.net().save(tmp_path)
    text = path.read_text()
    arriving = '<port id="1" precision="FP32"><dim>2</dim><dim>3</dim><dim>1</dim></port>'
    assert text.count(arriving) == 1
    path.write_text(text.replace(arriving, '<port id="1" precision="I64"><dim>2</dim><dim>3</dim></port>'))
    assert [each.code for each in irrun.validate(path).errors] == ["E303"]


def test_inputs_that_are_too_many_hide_no_attribute(tmp_path):
    changed = TOP.but(("mode", "most"))
    more = replace(changed, inputs=(*changed.inputs, I64(1)))
    assert sorted(more.told(tmp_path)) == [("E302", ""), ("E307", "mode")]
    lists = replace(CONVOLUTION.but(("strides", "1")), inputs=(*CONVOLUTION.inputs, I64(1)))
    assert lists.told(tmp_path) == [("E302", ""), ("C2", "strides")]


def test_a_layer_of_another_type_is_told_once(tmp_path):
    pool = replace(CONVOLUTION, type="AvgPool")
    assert [code for code, _ in pool.told(tmp_path)] == ["E306"]


def test_a_layer_that_would_be_sound_as_one_of_another_type_is_told_once(tmp_path):
    added = Made("Add", (("f32", (2, 3)), F32(np.ones((1, 3)))), (("f32", (2, 3)),))
    assert added.told(tmp_path) == []
    assert replace(added, type="Transpose").told(tmp_path) == [("E303", "input_order")]
    assert replace(added, type="Reshape").told(tmp_path) == [("E306", "special_zero")]
    other = replace(added, type="Transpose", outputs=(("f32", (3, 2)),))  # which no sum is
    assert other.told(tmp_path) == [("E303", "input_order"), ("E305", "input_order")]
    transposed = Made("Transpose", (("f32", (1, 6, 5, 4)), I32([0, 2, 1, 3])), (("f32", (1, 5, 6, 4)),))
    assert transposed.told(tmp_path) == []
    assert replace(transposed, type="Multiply").told(tmp_path) == [("E303", "b")]


def test_a_type_that_is_tolerated_is_told_beside_an_error(tmp_path):
    split = Made("VariadicSplit", (("f32", (5,)), I64(0), F32([2, 3])), (("f32", (2,)), ("f32", (3,))))
    assert split.told(tmp_path, "warning") == [("W952", "split_lengths")]
    wrong = split.but((1, I64(4)))
    assert wrong.told(tmp_path) == [("C1", "axis")]
    assert wrong.told(tmp_path, "warning") == [("W952", "split_lengths")]


def test_doubtful_data_are_told_beside_an_error(tmp_path):
    sums = Made(
        "EmbeddingSegmentsSum",
        (("f32", (5, 2)), ("i64", (3,)), I64([0, 2, 1]), I64(3)),
        (("f32", (3, 2)),),
        version="opset3",
    )
    assert sums.told(tmp_path, "warning") == [("W947", "segment_ids[2]")]
    wrong = sums.but((1, ("f32", (3,))))
    assert wrong.told(tmp_path) == [("E303", "indices")]
    assert wrong.told(tmp_path, "warning") == [("W947", "segment_ids[2]")]


def test_an_attribute_that_is_taken_is_to_blame_only_for_what_depends_on_it(tmp_path):
    path = CONVOLUTION.but(("pads_end", None), (1, np.float16(np.ones((6, 4, 3, 2))))).net().save(tmp_path)
    assert told(path) == [("E303", "filters")]
    assert [each.code for each in irrun.validate(path).warnings] == ["W950"]
    (found,) = irrun.validate(
        POOLING.but(("pads_end", None), (0, ("f32", (1, 4, 9, 8, 7)))).net().save(tmp_path)
    ).errors
    assert found.label == "C2"
    small = CONVOLUTION.but((0, ("f32", (1, 4, 2, 8))), ("pads_end", None))
    assert small.told(tmp_path) == [("E306", "pads_end")]


def test_an_attribute_that_is_misspelt_is_to_blame_only_for_what_depends_on_it(tmp_path):
    right = GATHER.but(("batch_dim", "1"), ("batch_dims", None), (1, I64([[0, 4]])))
    assert right.but((1, F32([0, 4]))).told(tmp_path) == [("E303", "indices")]
    path = right.but((1, F32([0, 4]))).net().save(tmp_path)
    (error,) = irrun.validate(path).errors
    assert "batch_dim" not in (error.help or "")
    assert [each.code for each in irrun.validate(path).warnings] == ["W930"]


def test_what_follows_from_a_port_that_is_not_as_declared_is_told_there(tmp_path):
    net = Model()
    x = net.parameter("x", "f32", (1, 4, 9, 8))
    (y,) = net.layer("ReLU", [x], [("f32", (1, 5, 9, 8))])
    filters = net.constant(F32(np.ones((6, 5, 3, 2))))
    (z,) = net.layer("Convolution", [y, filters], [("f32", (1, 6, 7, 7))], name="it", **WINDOW | {"strides": "1"})
    net.result(z)
    found = irrun.validate(net.save(tmp_path)).diagnostics
    assert [(each.code, each.layer.type) for each in found if each.severity == "error"] == [
        ("E310", "ReLU"),
        ("E401", "Convolution"),
    ]


def test_layers_of_a_body_are_told_once_for_all_rounds(tmp_path):
    text = CONVOLUTION.but(("strides", "1"), (1, F32(np.ones((6, 5, 3, 2))))).net()
    body_layers, body_edges = "\n".join(text.layers), "\n".join(text.edges)
    net = Model()
    net.weights = text.weights
    trip, go = net.constant(I64(3)), net.constant(np.bool_(True))
    x = net.parameter("x", "f32", (1, 4, 9, 8))
    port_map = '<input external_port_id="2" internal_layer_id="0"/><output external_port_id="3" internal_layer_id="3"/>'
    (y,) = net.layer("Loop", [trip, go, x], [("f32", (1, 6, 7, 7))], version="opset5")
    condition = (
        '<layer id="9" name="go" type="Const" version="opset1">'
        f'<data element_type="boolean" shape="" offset="{len(text.weights) + 8}" size="1"/>'
        '<output><port id="0" precision="BOOL"/></output></layer>'
        '<layer id="10" name="on" type="Result" version="opset1"><input><port id="0" precision="BOOL"/></input></layer>'
    )
    edge = '<edge from-layer="9" from-port="0" to-layer="10" to-port="0"/>'
    port_map += '<output external_port_id="-1" internal_layer_id="10" purpose="execution_condition"/>'
    inside = (
        f"<port_map>{port_map}</port_map>\n<back_edges/>\n<body><layers>{body_layers}{condition}</layers>"
        f"<edges>{body_edges}{edge}</edges></body>"
    )
    net.layers[y[0]] = net.layers[y[0]].replace("</layer>", f"{inside}</layer>")
    net.result(y)
    found = irrun.validate(net.save(tmp_path)).errors
    assert [(each.label or each.code, each.layer.name) for each in found] == [("C2", "it"), ("E304", "it")]


def test_a_rule_is_told_once_whether_it_was_found_first_or_further():
    """In the rounds of a loop it may be found both ways."""
    inference = Inference(None)
    found = Diagnostic("E401", "a rule", Span(1, 1))
    for rule, further, count in ((1, False, 1), (1, True, 1), (2, True, 2), (2, False, 2), (2, True, 2)):
        inference.report(found, (rule,), further=further)
        assert len(inference.diagnostics) == count


def test_a_constant_of_another_type_and_rank_is_told_twice(tmp_path):
    assert ONE_HOT.but((1, F32([4, 4]))).told(tmp_path) == [("E303", "depth"), ("E305", "depth")]


def test_a_model_of_many_wrong_layers_is_told_of_in_bounded_time():
    """Each question is counted, for the layer and for the model; then the first rule of each is told still."""
    patience = Patience()
    for _ in range(3):
        patience.renew()
        patience.spend(20_000)
        with pytest.raises(Enough):
            patience.spend(1)
    patience.renew()
    with pytest.raises(Enough):
        patience.spend(1)
    layer, op, inputs, violation = _wrong()
    assert depends(op, layer, inputs, read_attributes(op, layer).values, violation, ["strides"], patience)
    assert not depends(op, layer, inputs, read_attributes(op, layer).values, violation, ["strides"], Patience())


def _wrong():
    """A Convolution whose filters have another type than its data."""
    net = CONVOLUTION.but((1, np.float16(np.ones((6, 4, 3, 2))))).net()
    body = ["<layers>", *net.layers, "</layers>", "<edges>", *net.edges, "</edges>"]
    text = "\n".join(['<net name="m" version="11">', *body, "</net>"])
    report = irrun.validate(text.encode(), net.weights)
    layer = next(each for each in report.model.graph.layers if each.name == "it")
    op = irrun.spec.registry.registry().ops["Convolution-1"]
    inputs = [Tensor("f32", (1, 4, 9, 8)), Tensor("f16", (6, 4, 3, 2))]
    with pytest.raises(Violation) as caught:
        op.infer(inputs, read_attributes(op, layer).values)
    return layer, op, inputs, caught.value


def test_pairs_of_mistakes_that_are_drawn(tmp_path):
    """Of types and ranks of inputs and of attributes that cannot be read, in layers of nine ops, two at a time."""
    random = Random(20)
    count = hidden = 0
    for model in (CONVOLUTION, POOLING, GATHER, NORMALIZED, SCATTERED, SELECTED, ONE_HOT, TOP, ATTENTION):
        changes = [(name, "bogus") for name in model.data]
        changes.append((0, ("string", model.inputs[0][1])))
        changes += [
            (number, item[..., np.newaxis, np.newaxis])
            for number, item in enumerate(model.inputs)
            if isinstance(item, np.ndarray | np.generic)
        ]
        alone = {place: told(model.but((place, new)).net().save(tmp_path)) for place, new in changes}
        pairs = [pair for pair in combinations(changes, 2) if all(len(alone[place]) == 1 for place, _ in pair)]
        for one, other in random.sample(pairs, min(len(pairs), 12)):
            found = model.but(one, other).told(tmp_path)
            expected = {*alone[one[0]], *alone[other[0]]}
            assert {*found} <= expected, (model.type, one, other)
            count, hidden = count + 1, hidden + (len(expected) > len(found))
    assert count > 60
    assert hidden <= count // 20
