"""Two models side by side: what the other one has otherwise is said as it is, at the layer that computes with it."""

import numpy as np
import pytest

import irrun

F32 = np.float32
X = np.linspace(-3, 4, 32, dtype=F32).reshape(4, 8)


@pytest.fixture
def beside(tmp_path):
    """Compares the model that a function builds with what it builds of other arguments."""

    def compared(build, inputs=None, **changes):
        paths = []
        for name, given in (("here", {}), ("there", changes)):
            with irrun.build() as g:
                build(g, **given)
            paths.append(tmp_path / f"{name}.xml")
            irrun.write_model(g.model, paths[-1])
        return irrun.compare(paths[0], str(paths[1]), {"x": X, **(inputs or {})})

    return compared


def chain(g, op="Add", slope=1e-5, quantized=False, bias=1):
    """A product, a normalization and a sum, each by a name of its own."""
    x = g.Parameter("f32[4, 8]", name="x")
    y = g.Multiply(x, g.Constant(np.full(8, 2, F32), name="gain"), name="product")
    if quantized:
        y = g.FakeQuantize(y, *F32([-4, 4, -4, 4]), levels=16, name="quantized")
    y = g.MVN(y, g.Constant(np.int64([1])), normalize_variance=True, eps=slope, eps_mode="inside_sqrt", name="norm")
    y = g.op(op, y, g.Constant(np.full(8, bias, F32), name="bias"), name="last")
    g.Result(g.Sigmoid(y, name="end"), name="y")


def blamed(found):
    first = found.diagnostics[0]
    return first.code, first.layer.name, first.message.partition("differs: ")[2]


def test_an_attribute(beside):
    found = beside(chain, slope=0.1)
    assert blamed(found) == ("N218", "norm", "attribute `eps` is 1e-05 here and 0.1 there")
    assert [result.layer.name for result in found.tensors if not result.agrees] == ["norm"]


def test_what_makes_a_result_of_another_shape(beside):
    def pooled(g, pad="valid", axis=2):
        x = g.Unsqueeze(g.Parameter("f32[4, 8]", name="x"), g.Constant(np.int64([0, 1])), name="image")
        windows = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0), "kernel": (2, 2)}
        y = g.MaxPool(x, **windows, auto_pad=pad, name="pool")[0]
        g.Result(g.ReduceSum(y, g.Constant(np.int64([axis]), name="axes"), name="sum"), name="y")

    found = beside(pooled, pad="same_upper")
    assert blamed(found) == ("N218", "pool", "attribute `auto_pad` is valid here and same_upper there")
    found = beside(pooled, axis=3)
    assert blamed(found) == ("N212", "sum", "constant `axes`, `axes` of ReduceSum, is [2] here and [3] there")


@pytest.mark.parametrize("op", ["Subtract", "Maximum"])
def test_another_op_under_the_same_name_is_blamed_and_nothing_behind_it(beside, op):
    found = beside(chain, op=op)
    assert blamed(found) == ("N218", "last", f"the other model's layer is {op}-1, not Add-1")
    assert [result.layer.name for result in found.tensors if not result.agrees] == ["last"]
    assert not found.untapped


def test_quantization_in_front_of_a_layer(beside):
    found = beside(chain, quantized=True)
    sentence = "quantization: the other model has FakeQuantize behind `product` before `norm`"
    assert blamed(found) == ("N218", "norm", sentence)


def test_a_constant_is_named(beside):
    found = beside(chain, bias=1.5)
    assert blamed(found) == ("N212", "last", "the weights differ: input 1")
    notes = [note.message for note in found.diagnostics[0].notes]
    assert any(note.startswith("constant `bias`, `b` of Add, is [1,1,1") for note in notes)


def test_an_attribute_is_told_before_a_constant(beside):
    def twice(g, slope=1.0, low=0.0):
        x = g.Parameter("f32[4, 8]", name="x")
        g.Result(g.Clamp(g.PRelu(x, g.Constant(F32([slope]), name="slope")), min=low, max=2.0, name="clamp"), name="y")

    found = beside(twice, slope=0.5, low=-1.0)
    assert [diagnostic.code for diagnostic in found.diagnostics] == ["N212", "N218", "N200"]
    assert "attribute `min` is 0 here and -1 there" in found.diagnostics[1].message


def test_several_constants_of_one_layer_are_tried_together(beside):
    def quantized(g, reach=2):
        x = g.Parameter("f32[4, 8]", name="x")
        ranges = [g.Constant(F32(sign * reach), name=f"range{n}") for n, sign in enumerate((-1, 1, -1, 1))]
        g.Result(g.FakeQuantize(x, *ranges, levels=256, name="fq"), name="y")

    found = beside(quantized, reach=1)
    assert blamed(found) == ("N212", "fq", "the weights differ: inputs 1, 2, 3, 4")
    notes = [note.message for note in found.diagnostics[0].notes]
    assert "constant `range0`, `input_low` of FakeQuantize, is -2 here and -1 there" in notes


def test_a_constant_that_is_rounded_is_told_as_such(beside):
    found = beside(lambda g, bias=1.1: chain(g, bias=bias), bias=np.float16(1.1))
    assert "; it is ours rounded to f16" in found.diagnostics[0].notes[0].message


def loop(g, start=0.0, op="Multiply", weight=1.0, half=0.5):
    """Four steps over slices of the input, with a start and a weight that come from outside."""
    x = g.Parameter("f32[4, 8]", name="x")
    with g.body() as body:
        row = body.input(x, axis=0)
        before = body.input(g.Constant(np.full((1, 8), start, F32), name="start"))
        factor = body.input(g.Constant(np.full((1, 8), weight, F32), name="weight"))
        half = body.op(op, before, body.Constant(F32([half])), name="half")
        after = body.Add(half, body.Multiply(row, factor, name="weighted"), name="after")
        body.carry(before, after)
        body.Result(after)
    g.Result(g.TensorIterator(body=body, name="steps"), name="y")


def test_a_body_is_not_blamed_for_what_comes_into_it(beside):
    found = beside(loop, start=1.0)
    assert blamed(found) == ("N212", "start", "what comes into the body differs: constant `start`")
    assert [result.key for result in found.tensors if not result.agrees] == ["steps/body[0]/half:0"]
    assert (found.first.layer.name, found.first.span) == ("start", found.diagnostics[0].span)


def test_what_comes_into_a_body_and_what_is_in_it_are_told_apart(beside):
    found = beside(lambda g, start=1.0, half=0.5: loop(g, start=start, half=half), start=0.0, half=0.7)
    assert [(diagnostic.code, diagnostic.layer.name) for diagnostic in found.diagnostics[:2]] == [
        ("N212", "start"),
        ("N212", "half"),
    ]
    notes = [note.message for note in found.diagnostics[1].notes]
    assert any(note.endswith("is [0.5] here and [0.7] there") for note in notes)
    assert not any("`start`" in note for note in notes)


def test_a_result_of_a_body_that_is_put_together_otherwise(beside):
    def reversing(g, stride=1):
        x = g.Parameter("f32[4, 8]", name="x")
        with g.body() as body:
            row = body.input(x, axis=0)
            start, end = (0, -1) if stride > 0 else (-1, 0)
            body.Result(body.Sigmoid(row, name="inside"), axis=0, start=start, end=end, stride=stride)
        g.Result(g.TensorIterator(body=body, name="steps"), name="y")

    found = beside(reversing, stride=-1)
    assert blamed(found)[:2] == ("N218", "steps")
    assert " is mapped as output " in found.diagnostics[0].message


def test_an_input_in_place_of_which_the_other_model_has_something_else(beside):
    def two(g, given=True):
        x = g.Parameter("f32[4, 8]", name="x")
        y = g.Parameter("f32[4, 8]", name="state") if given else g.Sigmoid(x, name="squashed")
        g.Result(g.Transpose(y, g.Constant(np.int64([1, 0])), name="turned"), name="turned_y")
        g.Result(g.Abs(x, name="size"), name="y")

    found = beside(two, {"state": X}, given=False)
    sentence = "the other model has Sigmoid-1 in place of Parameter-1 `state`"
    assert blamed(found) == ("N218", "turned", sentence)


def test_what_is_so_in_all_iterations_is_told_once(beside):
    for changes, code in (({"weight": 2.0}, "N212"), ({"op": "Add"}, "N218")):
        found = beside(loop, **changes)
        assert [diagnostic.code for diagnostic in found.diagnostics] == [code, "N200"]
        notes = [note.message for note in found.diagnostics[0].notes]
        assert any(note.startswith("so are `steps/body[1]/") and note.endswith("in other iterations") for note in notes)


def test_noise_of_quantization_is_allowed_where_the_other_side_may_round_otherwise(beside):
    def quantized(g, bias=1.0, levels=256):
        x = g.Parameter("f32[4, 8]", name="x")
        y = g.FakeQuantize(x, *F32([-4, 4, -4, 4]), levels=levels, name="quantized")
        g.Result(g.Add(y, g.Constant(F32([bias])), name="sum"), name="y")

    def wanted(found):
        return found.outputs[0].worst.tolerance.sqnr

    same = beside(quantized, bias=1.1)
    assert (wanted(same), same.outputs[0].agrees) == (80, False)
    assert wanted(beside(quantized, levels=128)) == 20
    for other, least in (("engine:reference", 80), ("engine:numpy", 20)):
        assert wanted(irrun.compare(same.model, other, {"x": X})) == least
