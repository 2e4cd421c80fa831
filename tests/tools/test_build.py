"""Building models: every call is checked, what comes out runs, is written, and OpenVINO computes the same."""

import doctest
from importlib import import_module
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from conformance.harness import engines
from equality import differences

import irrun
from irrun.spec.registry import registry
from irrun.tools.build_ops import version_of

ROOT = Path(__file__).parents[2]


def agrees(g, folder, *inputs):
    """The results of a model, after it was checked, written, read again and held against OpenVINO."""
    import openvino as ov

    assert not irrun.validate(g.model).diagnostics
    irrun.write_model(g.model, folder / "built.xml")
    again = irrun.read_model(folder / "built.xml")
    assert not irrun.validate(again).diagnostics
    assert not differences(g.model, again)
    compiled = ov.Core().compile_model(folder / "built.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    expected = [np.asarray(array) for array in compiled(list(inputs)).values()]
    for engine in engines():
        found = irrun.GraphExecutor(g.model, engine=engine).run(list(inputs))
        assert len(found) == len(expected)
        for array, wanted in zip(found.values(), expected, strict=True):
            assert (array.dtype, array.shape) == (wanted.dtype, wanted.shape)
            np.testing.assert_allclose(array, wanted, rtol=1e-5, atol=1e-6)
    return found


def test_a_network_is_built_op_by_op(tmp_path):
    rng = np.random.default_rng(3)
    with irrun.build("net", opset=13) as g:
        image = g.Parameter("f32[batch, 3, 8, 8]", name="image", layout="NCHW")
        kernel = rng.standard_normal((4, 3, 3, 3)).astype(np.float32)
        ones = [1, 1]
        x = g.Convolution(
            image, kernel, strides=ones, pads_begin=ones, pads_end=ones, dilations=ones, auto_pad="explicit"
        )
        assert repr(x) == "<f32[batch, 4, 8, 8] of Convolution_2>"
        x = g.ReLU(x, name="hidden")
        x = g.ReduceMean(x, [2, 3], keep_dims=False)
        g.Result(
            g.SoftMax(g.MatMul(x, rng.standard_normal((5, 4)).astype(np.float32), transpose_b=True), axis=1), name="p"
        )
    assert g.model.name == "net"
    (info,) = g.model.inputs
    assert (info.layout, info.shape) == ("NCHW", ("batch", 3, 8, 8))
    (result,) = g.model.outputs
    assert (result.name, result.shape) == ("p", ("?", 5))
    versions = {layer.type: layer.version for layer in g.model.graph.layers}
    assert (versions["SoftMax"], versions["Convolution"]) == ("opset8", "opset1")
    found = agrees(g, tmp_path, rng.standard_normal((2, 3, 8, 8)).astype(np.float32))
    np.testing.assert_allclose(found["p"].sum(axis=1), [1, 1], rtol=1e-6)


def test_numbers_take_the_type_that_the_op_has_for_them(tmp_path):
    with irrun.build() as g:
        half = g.Parameter("f16[2]", name="half")
        count = g.Parameter("i32[2]", name="count")
        g.Result(g.Multiply(half, 3))
        g.Result(g.Add(1, count))
        g.Result(g.Select(g.Greater(count, 1), half, 0.5))
        g.Result(g.Gather(half, [1, 0], 0))
        with pytest.raises(TypeError, match=r"^0.5 is no constant of i32$"):
            g.Add(count, 0.5)
        with pytest.raises(ValueError, match=r"^3000000000 does not fit into i32$"):
            g.Add(count, 3_000_000_000)
    types = [layer.attributes["element_type"] for layer in g.model.graph.layers if layer.type == "Const"]
    assert types == ["f16", "i32", "i32", "f16", "i64", "i64"]
    found = agrees(g, tmp_path, np.float16([1, 2]), np.int32([1, 2]))
    assert [array.tolist() for array in found.values()] == [[3, 6], [2, 3], [0.5, 2], [2, 1]]


def test_constants_are_of_any_type():
    with irrun.build() as g:
        for array, type, expected in (
            (np.zeros(2, ml_dtypes.bfloat16), None, "bf16"),
            (np.zeros(2, np.uint8), "nf4", "nf4"),
            ([1, 2], "u4", "u4"),
            ([1, 2], None, "i64"),
            ([0.5], None, "f32"),
            ([], None, "i64"),
            (True, None, "boolean"),
            ("text", None, "string"),
            (["a", "bcd"], None, "string"),
            (np.float64(1), None, "f64"),
            (1, "f8e4m3", "f8e4m3"),
        ):
            constant = g.Constant(array, type=type)
            assert constant.type == expected
            assert constant.shape == np.shape(array)
        g.Result(g.Convert(constant, destination_type=np.float32))
    assert irrun.GraphExecutor(g.model).run([])[0].tolist() == 1


def test_several_outputs_are_a_tuple(tmp_path):
    with irrun.build() as g:
        x = g.Parameter("f32[n, 6]")
        first, *_, last = g.Split(x, 1, num_splits=3)
        values, indices = g.TopK(last, 1, axis=1, mode="max", sort="value")
        a, b = g.VariadicSplit(first, 1, [1, -1])
        for y in (values, indices, a, b):
            g.Result(y)
    assert [str(y.info) for y in (values, indices, a, b)] == ["f32[n, 1]", "i32[n, 1]", "f32[n, 1]", "f32[n, 1]"]
    agrees(g, tmp_path, np.arange(12, dtype=np.float32).reshape(2, 6) % 5)


@pytest.mark.parametrize(
    ("type", "opset", "found"),
    [
        ("Gather", 1, "opset1"),
        ("Gather", 7, "opset7"),
        ("Gather", 16, "opset8"),
        ("Gather-7", 16, "opset7"),
        ("Softmax", 13, "opset8"),
        ("relu", 13, "opset1"),
    ],
)
def test_an_op_is_the_newest_version_that_the_opset_has(type, opset, found):
    g = irrun.build(opset=opset)
    x = g.Parameter("f32[2, 3]")
    y = g.op(type, x, [0], 1) if type.startswith("Gather") else g.op(type, x)
    assert y.value.layer.version == found


def test_every_op_of_the_library_is_found_by_the_version_it_is_written_with():
    known = registry()
    wrong = [op.name for op in known.ops.values() if known.find(op.type, version_of(op)) is not op]
    assert not wrong


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g, x: g.Foo, AttributeError, r"^there is no op `Foo`"),
        (lambda g, x: g.Gathr, AttributeError, r"^there is no op `Gathr`; did you mean `Gather`\?$"),
        (
            lambda g, x: g.GroupNormalization,
            AttributeError,
            r"^there is no GroupNormalization in opset8; there are G.*12 \(s",
        ),
        (
            lambda g, x: g.op("Gather-9", x),
            ValueError,
            r"^there is no Gather-9 in opset8; there are Gather-1 \(since opset1",
        ),
        (lambda g, x: g.ReLU(x, alpha=1), ValueError, r"^ReLU-1 has no attribute `alpha`; it has none$"),
        (lambda g, x: g.Elu(x, alpha="a"), ValueError, r"^attribute `alpha` of Elu-1 is `a`, expected a number$"),
        (lambda g, x: g.Elu(x), irrun.IRError, r"E306.*Elu-1 lacks its required attribute `alpha`"),
        (lambda g, x: g.ReLU(), irrun.IRError, r"E302.*0 inputs, expected 1"),
        (lambda g, x: g.Add(x, np.ones(4, np.float32)), irrun.IRError, r"error\[E.*from layer 0 `x` \(Parameter\)"),
        (lambda g, x: g.Add(x, np.ones(3)), irrun.IRError, r"E303.*`b` is f64, but `a` is f32"),
        (lambda g, x: g.Split(x, 1, num_splits=2), irrun.IRError, r"E401.*Split-1 C"),
        (lambda g, x: g.Clamp(x, None, x, min=0, max=1), ValueError, r"^input 1 of Clamp-1 cannot be left out"),
        (lambda g, x: g.Parameter("f32"), ValueError, r"^`f32` is not an element type and sizes, such as `f32\[batch"),
        (lambda g, x: g.Parameter("f23[1]"), ValueError, r"^`f23\[1\]` is not an element type"),
        (lambda g, x: g.Parameter("f32[1..]", name="x"), ValueError, r"^there is a layer `x` already$"),
        (
            lambda g, x: g.Parameter("f32[a b]"),
            ValueError,
            r"^the shape of `the input` has the dimension `a b`, expected",
        ),
        (lambda g, x: g.Result("x"), TypeError, r"^'x' is not an operand of the model$"),
        (lambda g, x: irrun.build().ReLU(x), ValueError, r"is not in this graph"),
        (
            lambda g, x: g.If(True, then_body=g.body()),
            ValueError,
            r"^If-8 takes `then_body` and `else_body`, made by bo",
        ),
        (lambda g, x: g.ReLU(x, body=g.body()), ValueError, r"^ReLU-1 takes no bodies, but is given `body`$"),
        (lambda g, x: g.If(True, then_body=g.body(), else_body=g.body()), irrun.IRError, r"E401.*If-8 C1"),
        (lambda g, x: g._x, AttributeError, r"^'Builder' object has no attribute '_x'$"),
    ],
)
def test_a_call_that_is_wrong_is_refused_where_it_is_made_and_adds_nothing(call, error, message):
    g = irrun.build(opset=8)
    x = g.Parameter("f32[2, 3]", name="x")
    with pytest.raises(error, match=f"(?s){message}"):
        call(g, x)
    assert [layer.name for layer in g.model.graph.layers] == ["x"]
    assert not x.value.consumers
    g.Result(g.ReLU(x))
    assert irrun.validate(g.model).ok


def test_a_model_without_a_result_is_refused_at_its_end():
    with pytest.raises(irrun.IRError, match=r"E212.*the model has no Result"), irrun.build() as g:
        g.Parameter("f32[1]")


def test_there_are_so_many_opsets():
    for opset in (18, "opset13"):
        with pytest.raises(ValueError, match=f"^there is no operation set {opset!r}: they have numbers, from 1 to 17$"):
            irrun.build(opset=opset)


def test_a_name_is_a_str():
    with pytest.raises(TypeError, match=r"^the name of a model is a str, not 13$"):
        irrun.build(13)


def test_both_branches_of_an_if_are_graphs_of_their_own(tmp_path):
    with irrun.build() as g:
        x = g.Parameter("f32[n, 2]", name="x")
        y = g.Parameter("f32[n, 2]", name="y")
        with g.body() as then:
            then.Result(then.Add(x, y))
            then.Result(then.Constant(np.int64(1)))
        with g.body() as other:
            other.Result(other.Multiply(other.input(y, name="inner"), 2.0))
            other.Result(other.Constant(np.int64(2)))
        value, which = g.If(g.Greater(g.ReduceSum(x, [0, 1]), 0.0), then_body=then, else_body=other, name="choice")
        assert repr(value) == "<f32[n, 2] of choice output 0>"
        g.Result(value, name="value")
        g.Result(which, name="which")
    choice = g.model.layer("choice")
    assert [layer.name for layer in choice.bodies["else_body"].graph.parameters] == ["inner"]
    assert len(choice.inputs) == 3
    x, y = np.float32([[1, 2]]), np.float32([[5, 7]])
    assert agrees(g, tmp_path, x, y)["value"].tolist() == [[6, 9]]
    found = agrees(g, tmp_path, -x, y)
    assert (found["value"].tolist(), found["which"].tolist()) == ([[10, 14]], 2)


def test_one_value_may_be_several_outputs_of_a_branch(tmp_path):
    with irrun.build() as g:
        x = g.Parameter("f32[2]", name="x")
        with g.body() as then, g.body() as other:
            for branch, op in ((then, "ReLU"), (other, "Negative")):
                value = branch.op(op, x)
                branch.Result(value)
                branch.Result(value)
        first, second = g.If(g.Greater(g.ReduceSum(x, [0]), 0.0), then_body=then, else_body=other)
        g.Result(first, name="first")
        g.Result(second, name="second")
    found = agrees(g, tmp_path, np.float32([-3, 1]))
    assert found["first"].tolist() == found["second"].tolist() == [3, -1]


def test_a_loop_carries_slices_and_counts(tmp_path):
    with irrun.build() as g:
        x = g.Parameter("f32[3, 2]", name="x")
        with g.body() as body:
            row = body.input(x, axis=0)
            number = body.Convert(body.iteration(), destination_type="f32")
            before = body.input(g.Constant(np.zeros((1, 2), np.float32)))
            after = body.Add(before, body.Multiply(row, number))
            body.carry(before, after)
            body.Result(after)
            body.Result(after, axis=0)
            body.condition(body.Constant(True))
        last, every = g.Loop(3, True, body=body)
        g.Result(last, name="last")
        g.Result(every, name="every")
    assert str(every.info) == "f32[3, 2]"
    found = agrees(g, tmp_path, np.float32([[1, 2], [3, 4], [5, 6]]))
    assert found["every"].tolist() == [[0, 0], [3, 4], [13, 16]]
    assert found["last"].tolist() == [[13, 16]]


def test_an_iterator_runs_backwards_over_parts(tmp_path):
    with irrun.build() as g:
        x = g.Parameter("f32[1, 4]", name="x")
        with g.body() as body:
            part = body.input(x, axis=1, start=-1, end=0, stride=-2, part_size=2)
            body.Result(body.Negative(part), axis=1, stride=2, part_size=2)
        g.Result(g.TensorIterator(body=body), name="y")
    assert agrees(g, tmp_path, np.float32([[1, 2, 3, 4]]))["y"].tolist() == [[-3, -4, -1, -2]]


def test_bodies_nest_and_take_what_is_around_them(tmp_path):
    with irrun.build() as g:
        x = g.Parameter("f32[2]", name="x")
        with g.body() as then:
            with then.body() as inner:
                inner.Result(inner.Exp(x))
            with then.body() as second:
                second.Result(second.Abs(x))
            then.Result(then.If(then.Less(then.ReduceSum(x, 0), 9.0), then_body=inner, else_body=second))
        with g.body() as other:
            other.Result(other.input(x))
        g.Result(g.If(g.Greater(g.ReduceSum(x, 0), 0.0), then_body=then, else_body=other))
    assert agrees(g, tmp_path, np.float32([5, 6]))[0].tolist() == [5, 6]
    assert agrees(g, tmp_path, np.float32([-5, 1]))[0].tolist() == [-5, 1]
    np.testing.assert_allclose(agrees(g, tmp_path, np.float32([0, 1]))[0], np.exp([0, 1]), rtol=1e-6)


def test_a_body_that_does_not_fit_is_refused_and_can_be_mended():
    g = irrun.build()
    x = g.Parameter("f32[2]", name="x")
    with g.body() as then:
        then.Result(then.Abs(x))
    with g.body() as other:
        other.Result(other.Constant(np.int64([1, 2])))
    with pytest.raises(irrun.IRError, match=r"E401.*If-8 C2"):
        g.If(True, then_body=then, else_body=other)
    with g.body() as right:
        right.Result(right.Constant(np.float32([1, 2])))
    y = g.If(True, then_body=then, else_body=right)
    g.Result(y)
    assert irrun.GraphExecutor(g.model).run(np.float32([-1, 2]))[0].tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"^the body is that of layer .* already$"):
        g.If(True, then_body=then, else_body=right)
    with pytest.raises(ValueError, match=r"is not an input of the body$"):
        g.body().carry(x, x)
    with pytest.raises(ValueError, match=r"^`axis` is 3, but <f32\[2\] of x> has rank 1$"):
        g.body().input(x, axis=3)


def test_a_mistake_in_a_body_is_found_where_it_is_made():
    g = irrun.build()
    x = g.Parameter("f32[4, 2]", name="x")
    with g.body() as body:
        row = body.input(x, axis=0)
        assert row.shape == (1, 2)
        with pytest.raises(irrun.IRError, match="MatMul-1 C1"):
            body.MatMul(row, row)


def test_equal_sizes_are_known_to_be_equal():
    g = irrun.build()
    x, y = g.Parameter("f32[batch, 2..8]"), g.Parameter("f32[batch, 3]")
    assert repr(g.Concat(x, y, axis=1).shape) == "('batch', '5..11')" or g.Concat(x, y, axis=1).shape[0] == "batch"
    assert g.model.graph.parameters[0].attributes["shape"] == "?,2..8"
    assert g.Parameter("f32[...]").shape is None
    assert g.Parameter("i64[]").shape == ()


def test_state_is_built(tmp_path):
    with irrun.build() as g:
        x = g.Parameter("f32[1]", name="x")
        old = g.ReadValue(g.Constant(np.zeros(1, np.float32)), variable_id="v", variable_type="f32", variable_shape="1")
        total = g.Add(old, x)
        g.Assign(total, variable_id="v")
        g.Result(total)
    executor = irrun.GraphExecutor(g.model)
    assert [executor.run(np.float32([2]))[0].tolist() for _ in range(3)] == [[2], [4], [6]]


def test_builders_and_operands_show_what_they_are():
    g = irrun.build("m", opset=13)
    x = g.Parameter("f32[batch, 2]", name="x")
    g.Result(g.ReLU(x))
    assert repr(g) == "<Builder of 3 layers, opset13: (x: f32[batch, 2]) -> (f32[batch, 2])>"
    assert {"Convolution", "MatMul", "Parameter", "model", "body"} <= set(dir(g))
    assert "GroupNormalization" in dir(g)
    assert "GroupNormalization" not in dir(irrun.build(opset=8))
    assert g.Convolution.__name__ == "Convolution"
    assert "Constraints" in g.Convolution.__doc__
    assert (x.type, x.shape, x.info.name) == ("f32", ("batch", 2), "x")


def test_examples_of_docstrings_run(monkeypatch):
    monkeypatch.chdir(ROOT)
    failed, tried = doctest.testmod(import_module("irrun.tools.build"))
    assert not failed
    assert tried


def test_attributes_that_openvino_insists_on_are_written(tmp_path):
    with irrun.build("m", opset=13) as g:
        x = g.Parameter("f32[1,8,4,4]")
        g.Result(g.ShapeOf(x))
        g.Result(g.DepthToSpace(x, mode="blocks_first", block_size=2))
        g.Result(g.DepthToSpace(x, mode="blocks_first"))
    path = tmp_path / "model.xml"
    irrun.write_model(g.model, path)
    assert not irrun.validate(path).diagnostics
    given = [
        layer.attributes for layer in irrun.read_model(path).graph.layers if layer.type in ("ShapeOf", "DepthToSpace")
    ]
    assert [one.get("output_type") or one.get("block_size") for one in given] == ["i64", "2", "1"]


def test_what_was_removed_from_the_model_is_no_operand_any_more():
    with irrun.build("m") as g:
        x = g.Parameter("f32[2]", name="x")
        y = g.ReLU(x)
        g.model.remove(y.value.layer)
        with pytest.raises(ValueError, match="was removed from the model"):
            g.Abs(y)
        g.Result(x, name="z")
