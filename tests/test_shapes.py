"""Named sizes: how they are written, where names come from, and what they let inference decide."""

import time
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from ir_builder import Model

import irrun
from irrun.check.render.shapes import render_shapes
from irrun.spec.dims import UNDECIDED, broadcast, fresh, largest, smallest

ROOT = Path(__file__).parent.parent
LAYOUT = '<rt_info><attribute name="layout" version="0" layout="{}"/></rt_info></port>'


def parameter(model, name, shape, layout=None, type="f32"):
    output = model.parameter(name, type, shape)
    if layout:
        model.layers[-1] = model.layers[-1].replace("</port>", LAYOUT.format(layout))
    return output


def input_shapes(model, folder, **shapes):
    """What is known of the inputs, as text; every one goes to a Result."""
    for number, text in enumerate(list(model.layers)):
        if 'type="Parameter"' in text:
            rank = text.count("<dim>")
            model.result((number, 0, "f32", (-1,) * rank))
    report = irrun.validate(model.save(folder), shapes=shapes)
    assert report.ok, report.diagnostics
    return [str(report.inference.nodes[layer].outputs[0].shape) for layer in report.model.graph.parameters]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (lambda batch, seq: 2 * batch, "2*batch"),
        (lambda batch, seq: seq + 1, "seq+1"),
        (lambda batch, seq: 1 - seq, "1-seq"),
        (lambda batch, seq: 768 * batch * seq, "768*batch*seq"),
        (lambda batch, seq: batch * batch - 3, "batch*batch-3"),
        (lambda batch, seq: (seq - 1) // 2, "(seq+1)//2-1"),
        (lambda batch, seq: (seq - 1) // 2 + 1, "(seq+1)//2"),
        (lambda batch, seq: seq // 2 * 3, "3*(seq//2)"),
        (lambda batch, seq: batch * seq // (seq + 1), "(batch*seq)//(seq+1)"),
        (lambda batch, seq: seq % 4 + 1, "seq%4+1"),
        (lambda batch, seq: smallest(seq, 512), "min(512, seq)"),
        (lambda batch, seq: largest(seq - 2, 7), "max(7, seq-2)"),
        (lambda batch, seq: broadcast(batch, seq), "broadcast(batch, seq)"),
        (lambda batch, seq: batch.within(2, 8), "batch (2..8)"),
        (lambda batch, seq: batch + seq + smallest(seq, 1000) * 1000, "?"),
        (lambda batch, seq: batch + fresh(2, 8), "2.."),
    ],
)
def test_sizes_are_written_as_arithmetic_where_that_is_short(size, text):
    assert repr(size(fresh(name="batch"), fresh(name="seq"))) == text


def test_what_nests_and_branches_is_given_up_soon():
    size = fresh(name="n")
    for number in range(40):
        wide = size * fresh(name=f"a{number}") + size // 3 + largest(size, fresh(name=f"b{number}"))
        size = largest(*(wide // (7 * part + 2) + fresh(name=f"c{number}") for part in range(4)))
    started = time.perf_counter()
    assert size.expression(longest=120) is None
    assert time.perf_counter() - started < 0.1


def test_bounds_stand_behind_a_name_where_it_has_some():
    size = fresh(2, 8, name="batch")
    assert [repr(size), repr(2 * size + 1), repr((size - 1) // 2 + 1)] == [
        "batch (2..8)",
        "2*batch+1 (5..17)",
        "(batch+1)//2 (1..4)",
    ]


def test_quotients_take_out_what_divides():
    batch, seq = fresh(), fresh()
    assert ((2 * batch + 1) // 2 == batch) is True
    assert (2 * batch + 1) % 2 == 1
    assert ((4 * batch + seq) // 2 == 2 * batch + seq // 2) is True
    assert ((seq - 1) // 2 + 1 == (seq + 1) // 2) is True
    assert (((seq + 1) // 2 + 1) // 2 == (seq + 3) // 4) is True
    assert ((seq // 2 - 3) // 3 == (seq - 6) // 6) is True


@pytest.mark.parametrize("seq", range(-9, 40))
@pytest.mark.parametrize("by", [1, 2, 3, 5])
def test_quotients_of_quotients_are_those_of_integers(seq, by):
    size = fresh(None, name="seq")
    value = (((size * 6 + 5) // 4 - 3) // by + 2) // 3
    expected = (((seq * 6 + 5) // 4 - 3) // by + 2) // 3
    text = value.expression(longest=200)
    assert eval(text, {"seq": seq}) == expected, text


def test_sums_that_are_never_zero_tell_sizes_apart():
    batch, seq = fresh(), fresh()
    assert (3 * batch == 16) is False
    assert (3 * batch == 15) is UNDECIDED
    assert (6 * batch + 4 * seq == 9) is False
    assert (6 * batch + 4 * seq == 10) is UNDECIDED


def test_what_is_cut_from_a_size_broadcasts_to_the_size():
    seq = fresh(name="seq")
    assert broadcast(smallest(seq, 512), seq) is seq
    assert broadcast(seq, smallest(512, seq)) is seq
    assert broadcast(smallest(seq, fresh(name="n")), seq).expression(longest=40) == "broadcast(min(n, seq), seq)"


def test_a_layout_names_sizes(tmp_path):
    model = Model()
    parameter(model, "x", ("?", 3, "?", "?"), "[N,C,H,W]")
    assert input_shapes(model, tmp_path) == ["(batch, 3, height, width)"]


def test_a_layout_with_dots_and_words_of_its_own(tmp_path):
    model = Model()
    parameter(model, "x", ("?", "?", "?", "?"), "[N,...,SEQ]")
    parameter(model, "y", ("?", "?"), "[?,?,...,?]")
    assert input_shapes(model, tmp_path) == ["(batch, x.1, x.2, seq)", "(y.0, y.1)"]


def test_roles_that_two_inputs_have_go_by_the_input(tmp_path):
    model = Model()
    parameter(model, "x", ("?", "?"), "[N,C]")
    parameter(model, "y", ("?", 4), "[N,C]")
    assert input_shapes(model, tmp_path) == ["(x.batch, channels)", "(y.batch, 4)"]


@pytest.mark.parametrize(
    ("layout", "says"),
    [
        ("[N,C]", None),
        ("[n,c]", None),
        ("12", None),
        ("N1", None),
        ("[?,?]", None),
        ("[N_1,...]", None),
        ("", None),
        ("[N,N]", "the layout `[N,N]` has `N` twice"),
        ("nN", "the layout `nN` has `N` twice"),
        ("[...,...]", "the layout `[...,...]` has `...` twice"),
        ("N...C...", "the layout `N...C...` has `...` twice"),
        ("[]", "`[]` is not a layout"),
        ("[N,,C]", "`[N,,C]` is not a layout"),
        ("[N,C", "`[N,C` is not a layout"),
        ("N_", "`N_` is not a layout"),
        ("[N C]", "`[N C]` is not a layout"),
        ("**SCALAR**", "the layout `**SCALAR**` has 0 axes, but the shape 2 dimensions"),
        ("NCH", "the layout `NCH` has 3 axes, but the shape 2 dimensions"),
    ],
)
def test_layouts_are_those_that_openvino_reads(layout, says, tmp_path):
    model = Model()
    model.result(parameter(model, "x", (2, 3), layout))
    path = model.save(tmp_path)
    found = [d.message for d in irrun.validate(path).diagnostics if d.code == "E222"]
    assert found == ([] if says is None else [says])
    try:
        ov.compile_model(path, "CPU")
    except RuntimeError:
        assert found
    else:
        assert not found


@pytest.mark.parametrize(
    ("shape", "layout", "says"),
    [
        ("2,3", "[N,C]", None),
        ("2,3,4", "[N,C]", "the layout `[N,C]` has 2 axes, but the shape 3 dimensions"),
        ("2,3", "[N,C,H]", "the layout `[N,C,H]` has 3 axes, but the shape 2 dimensions"),
        ("2,3,4", "[N,C,H]", None),
        ("", "[N,C]", "the layout `[N,C]` has 2 axes, but the shape 0 dimensions"),
        ("", "**SCALAR**", None),
    ],
)
def test_layouts_of_inputs_are_those_of_their_shapes_whatever_ports_declare(shape, layout, says, tmp_path):
    model = Model()
    model.result(parameter(model, "x", (2, 3), layout))
    path = model.save(tmp_path)
    path.write_text(path.read_text().replace('shape="2,3"', f'shape="{shape}"'))
    found = [d.message for d in irrun.validate(path).diagnostics if d.code == "E222"]
    assert found == ([] if says is None else [says])
    if says is None:
        ov.compile_model(path, "CPU")
    else:
        with pytest.raises(RuntimeError, match="layout"):
            ov.compile_model(path, "CPU")


@pytest.mark.parametrize("version", ["1", "", "00"])
def test_layouts_of_other_versions_are_not_read(version, tmp_path):
    model = Model()
    model.result(parameter(model, "x", ("?", 3), "[N,N"))
    path = model.save(tmp_path)
    path.write_text(path.read_text().replace('version="0"', f'version="{version}"'))
    assert irrun.validate(path).diagnostics == []
    ov.compile_model(path, "CPU")


def test_a_role_that_is_there_twice_is_none(tmp_path):
    model = Model()
    parameter(model, "x", ("?", "?"), "[H,HEIGHT]")
    assert input_shapes(model, tmp_path) == ["(x.0, x.1)"]


def test_without_layout_sizes_go_by_the_input_and_the_axis(tmp_path):
    model = Model()
    parameter(model, "ids", ("?", 7, "2..8"))
    assert input_shapes(model, tmp_path) == ["(ids.0, 7, ids.2 (2..8))"]


def test_names_that_are_long_or_no_words_give_way_to_the_last_part_or_a_number(tmp_path):
    model = Model()
    names = ["serving/input:0", "a-b", "x" * 40, "input1", "a/twice", "b/twice"]
    for name in names:
        parameter(model, name, ("?",))
    expected = ["(input:0.0,)", "(_input1.0,)", "(input2.0,)", "(input1.0,)", "(input4.0,)", "(input5.0,)"]
    assert input_shapes(model, tmp_path) == expected


def test_equal_names_of_given_shapes_are_equal_sizes(tmp_path):
    model = Model()
    x, y = model.parameter("x", "f32", ("?", 3)), model.parameter("y", "f32", ("?", 4))
    total = model.layer("Concat", [x, y], [("f32", (-1, 7))], name="sum", axis="1")[0]
    model.result(total)
    path = model.save(tmp_path)

    def shape(**shapes):
        report = irrun.validate(path, shapes=shapes)
        nodes = {node.layer.name: node for node in report.inference.nodes.values()}
        return report.ok, str(nodes["sum"].outputs[0].shape if "sum" in nodes else None)

    assert shape(x=("batch", 3), y=("batch", 4)) == (True, "(batch, 7)")
    assert shape(x=("2..8", "?"), y=("3..9", 4))[1].endswith(", x.1+4)")
    assert shape(x=("2..4", 3), y=("5..", 4)) == (False, "None")


def test_a_given_name_is_not_given_to_another_size(tmp_path):
    model = Model()
    parameter(model, "x", ("?",))
    parameter(model, "y", ("?",), "[N]")
    assert input_shapes(model, tmp_path, x=("batch",)) == ["(batch,)", "(y.batch,)"]


@pytest.mark.parametrize("size", ["2.5", "", "8..2", "..", "-2", "a-b", -7, 1.5])
def test_what_is_no_size_is_refused(size, tmp_path):
    model = Model()
    model.result(model.parameter("x", "f32", ("?",)))
    with pytest.raises(ValueError, match="the shape of `x` has the dimension"):
        irrun.validate(model.save(tmp_path), shapes={"x": [size]})


def test_declared_sizes_are_no_matter_under_given_shapes(tmp_path):
    model = Model()
    model.result(model.parameter("x", "f32", (2,)))
    path = model.save(tmp_path)
    assert not irrun.validate(path, shapes={"x": (3,)}).diagnostics


def test_random_inputs_take_intervals_and_names(tmp_path):
    model = Model()
    model.result(model.parameter("x", "f32", ("?", "?", "?", "?")))
    executor = irrun.GraphExecutor(model.save(tmp_path))
    assert executor.random_inputs(0, {"x": ("batch", "2..8", "?", 5)})["x"].shape == (1, 2, 1, 5)
    with pytest.raises(irrun.InputError, match="has the dimension"):
        executor.random_inputs(0, {"x": ("2.5", 1, 1, 1)})


def test_unknown_integers_that_are_sizes_have_names(tmp_path):
    model = Model()
    count, sizes = model.parameter("count", "i64", ()), model.parameter("sizes", "i64", (2,))
    x = model.parameter("x", "f32", (1, 1))
    model.result(model.layer("Broadcast", [x, sizes], [("f32", (-1, -1))], "opset3", name="wide", mode="numpy")[0])
    model.result(count)
    report = irrun.validate(model.save(tmp_path))
    nodes = {node.layer.name: node for node in report.inference.nodes.values()}
    assert str(nodes["count"].outputs[0].value) == "count"
    assert "sizes[1]" in str(nodes["wide"].outputs[0].shape)


def reshaped(folder, shape, target, special_zero="false"):
    model = Model()
    x = model.parameter("x", "f32", shape)
    pattern = model.constant(np.int64(target))
    dims = (-1,) * len(target)
    model.result(model.layer("Reshape", [x, pattern], [("f32", dims)], name="y", special_zero=special_zero)[0])
    report = irrun.validate(model.save(folder))
    nodes = {node.layer.name: node for node in report.inference.nodes.values()}
    return str(nodes["y"].outputs[0].shape) if report.ok else [(d.code, d.label) for d in report.errors]


@pytest.mark.parametrize(
    ("shape", "target", "expected"),
    [
        (("?", 6), [-1, 2, 3], "(x.0, 2, 3)"),
        (("?", "?", 12), [-1, 4], "(3*x.0*x.1, 4)"),
        (("?", 3), [-1, 2], "((3*x.0)//2, 2)"),
        (("?", 3), [5, 3], "(5, 3)"),
        (("?", 3), [2, 8], [("E401", "C4")]),  # no multiple of 3 is 16
        (("2..8", 3), [9, 3], [("E401", "C4")]),
        (("2..8", 3), [8, 3], "(8, 3)"),
        (("1..", 5), [3, 2, 4], [("E401", "C4")]),
        (("0..2", 5), [20], [("E401", "C4")]),
        ((3, 5), [-1, 4], [("E401", "C4")]),
    ],
)
def test_a_reshape_is_decided_where_that_is_provable(shape, target, expected, tmp_path):
    assert reshaped(tmp_path, shape, target) == expected


def test_reshapes_of_copied_sizes_agree(tmp_path):
    assert reshaped(tmp_path, ("?", "?", 768), [0, 0, 12, 64], "true") == "(x.0, x.1, 12, 64)"
    assert reshaped(tmp_path, ("?", "?", 768), [0, 0, 12, 65], "true") == "(x.0, x.1, 12, 65)"  # right where x.0 is 0
    assert reshaped(tmp_path, ("1..", "1..", 768), [0, 0, 12, 65], "true") == [("E401", "C4")]


def test_halved_sizes_stay_short(tmp_path):
    """Five layers of stride 2, as in every image classifier."""
    model = Model()
    x = parameter(model, "image", ("?", 3, "?", "?"), "[N,C,H,W]")
    weights = model.constant(np.zeros((3, 3, 3, 3), np.float32))
    options = {"strides": "2,2", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1", "auto_pad": "explicit"}
    for _ in range(5):
        x = model.layer("Convolution", [x, weights], [("f32", (-1, 3, -1, -1))], **options)[0]
    model.result(x)
    report = irrun.validate(model.save(tmp_path))
    shapes = [node.outputs[0].shape for node in report.inference.nodes.values() if node.layer.type == "Convolution"]
    assert str(shapes[-1]) == "(batch, 3, (height+31)//32, (width+31)//32)"


def table(report):
    lines = render_shapes(report).split("\n")
    return [" ".join(line.split()) for line in lines]


def test_the_table_has_a_line_for_each_layer_bodies_included():
    lines = table(irrun.validate(ROOT / "samples" / "stateful-loop" / "model.xml"))
    assert lines[:3] == ["id type outputs name", "0 Parameter f32[1, 4] x", "1 Parameter i32[] = steps steps"]
    assert "5 Loop f32[1, 4], f32[?1, 4] Loop_13276" in lines
    assert lines[lines.index("body") + 1] == "0 Parameter f32[1, 4] Parameter_13262"
    assert "10 Result f32[?1, 4] Result_13281" in lines


def test_the_table_says_below_what_its_sizes_are(tmp_path):
    model = Model()
    x, y = model.parameter("a_rather_long_name", "f32", ("1..8",)), model.parameter("and_another_one", "f32", ("1..",))
    z = model.layer("Add", [x, y], [("f32", (-1,))], auto_broadcast="numpy")[0]
    model.result(z)
    model.result(model.layer("NonZero", [z], [("i64", (1, -1))], "opset3", output_type="i64")[0])
    lines = table(irrun.validate(model.save(tmp_path)))
    assert "2 Add f32[?1] Add_2" in lines
    assert "3 Result f32[?1] Result_3" in lines
    assert "4 NonZero i64[1, ?2] NonZero_4" in lines
    legend = lines[lines.index("") + 1 :]
    assert "a_rather_long_name.0 in 1..8" in legend
    assert any(line.startswith("?1 = broadcast(a_rather_long_name.0, and_another_one.0)") for line in legend)


def test_the_table_shows_short_integer_values_and_failures(tmp_path):
    lines = table(irrun.validate(ROOT / "tests" / "invalid" / "elements_that_do_not_fit.xml"))
    assert "2 ShapeOf i64[3] = [2, 5, 4] shape" in lines
    assert "4 Reshape unknown unflattened" in lines
