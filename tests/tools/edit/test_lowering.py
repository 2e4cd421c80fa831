"""Ops as older ones: what is lowered, that results stay, and what is refused with its reason."""

from __future__ import annotations

import numpy as np
import pytest

import irrun
from irrun.diagnostics import IRError
from irrun.spec.attributes import REQUIRED
from irrun.spec.registry import registry
from irrun.tools.edit import EditError, Step, edit


def one_op(type, data, *others, read=1, **attributes):
    """A model of one op, whose first input is an input and whose others are constants."""
    with irrun.build("m", opset=16) as g:
        x = g.Parameter(f"{kind(data)}{list(data.shape)}", name="x")
        y = g.op(type, x, *(g.Constant(other) for other in others), **attributes)
        for value in y[:read] if isinstance(y, tuple | list) else [y]:
            g.Result(value)
    return g.model


def kind(array):
    return {"f": "f32", "i": "i64", "b": "boolean"}[array.dtype.kind]


X = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)


def lowered(model, target, data=X):
    """The types and versions of its ops, after results were found to be the same."""
    before = list(irrun.GraphExecutor(model).run([data]).values())
    edit(model, [Step("target", target)])
    assert irrun.validate(model).ok
    for one, other in zip(before, irrun.GraphExecutor(model).run([data]).values(), strict=True):
        np.testing.assert_array_equal(one, other)
    plain = ("Const", "Parameter", "Result")
    return [(layer.type, layer.version) for layer in model.graph.layers if layer.type not in plain]


def test_pools_of_opset14():
    window = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "kernel": [2, 2]}
    model = one_op("MaxPool-14", X, dilations=[1, 1], **window)
    assert lowered(model, "2023.3") == [("MaxPool", "opset8")]
    assert lowered(model, "opset1") == [("MaxPool", "opset1")]


def test_rows_of_newer_ops_are_lowered_whole():
    """Each is one that reads another one's result, which is an older op's by then, as in the pyramids of YOLO."""
    with irrun.build("m", opset=16) as g:
        y = g.Parameter("f32[1,2,3,4]", name="x")
        for _ in range(12):
            window = {"strides": [1, 1], "dilations": [1, 1], "kernel": [3, 3]}
            y, _ = g.op("MaxPool-14", y, pads_begin=[1, 1], pads_end=[1, 1], **window)
            y = g.op("SoftMax-8", y, axis=-1)
        g.Result(y)
    assert sorted(lowered(g.model, "opset1")) == [("MaxPool", "opset1")] * 12 + [("SoftMax", "opset1")] * 12


@pytest.mark.parametrize("type", ["MaxPool-14", "AvgPool-14"])
def test_pools_of_torch_are_rounded_up_where_that_gives_as_many_windows(type):
    def pool(**window):
        more = {"dilations": [1, 1]} if type == "MaxPool-14" else {"exclude-pad": False}
        return one_op(type, X, rounding_type="ceil_torch", **window, **more)

    name = type.split("-")[0]
    alike = pool(strides=[2, 2], pads_begin=[1, 1], pads_end=[1, 1], kernel=[3, 3])
    ((found, version),) = lowered(alike, "2023.3")
    assert (found, version) in [("MaxPool", "opset8"), ("AvgPool", "opset1")]
    layer = next(layer for layer in alike.graph.layers if layer.type == name)
    assert layer.attributes["rounding_type"] == "ceil"
    fewer = pool(strides=[2, 2], pads_begin=[1, 1], pads_end=[1, 1], kernel=[2, 2])
    with pytest.raises(IRError, match="has no `rounding_type` of ceil_torch, and ceil may give other sizes"):
        edit(fewer, [Step("target", "2023.3")])


@pytest.mark.parametrize(("kernel", "known"), [(3, True), (2, False)])
def test_pools_of_torch_over_sizes_that_are_not_known(kernel, known):
    with irrun.build("m", opset=16) as g:
        x = g.Parameter("f32[?, 2, ?, ?]", name="x")
        window = {"strides": [2, 2], "pads_begin": [1, 1], "pads_end": [1, 1], "dilations": [1, 1]}
        y = g.op("MaxPool-14", x, kernel=[kernel, kernel], rounding_type="ceil_torch", **window)
        g.Result(y[0])
    if known:
        assert lowered(g.model, "2023.3") == [("MaxPool", "opset8")]
    else:
        with pytest.raises(IRError, match="may give other sizes"):
            edit(g.model, [Step("target", "2023.3")])


def test_softmax_counts_axes_from_the_front():
    model = one_op("SoftMax-8", X, axis=-1)
    assert lowered(model, "opset7") == [("SoftMax", "opset1")]
    assert next(layer for layer in model.graph.layers if layer.type == "SoftMax").attributes["axis"] == "3"


def test_gather_needs_indices_that_are_known():
    model = one_op("Gather-8", X, np.array([2, 0]), np.array(3), batch_dims=0)
    assert lowered(model, "opset1") == [("Gather", "opset1")]
    negative = one_op("Gather-8", X, np.array([-1]), np.array(3), batch_dims=0)
    with pytest.raises(IRError, match="`indices` may be negative"):
        edit(negative, [Step("target", "opset7")])


def test_interpolate_gets_the_input_that_it_lacks():
    attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"}
    sizes = one_op(
        "Interpolate-11", X, np.array([6, 8]), np.array([2, 3]), shape_calculation_mode="sizes", **attributes
    )
    assert lowered(sizes, "2022.1") == [("Interpolate", "opset4")]
    scales = np.array([2, 2], np.float32)
    scaled = one_op("Interpolate-11", X, scales, np.array([2, 3]), shape_calculation_mode="scales", **attributes)
    assert lowered(scaled, "opset4") == [("Interpolate", "opset4")]


def test_bits_of_booleans_are_logic():
    data = np.array([True, False])
    assert lowered(one_op("BitwiseNot-13", data), "2023.0", data) == [("LogicalNot", "opset1")]
    integers = one_op("BitwiseNot-13", np.array([1, 2]))
    with pytest.raises(IRError, match="no older op is known to do the same"):
        edit(integers, [Step("target", "2023.0")])


def test_identity_goes():
    model = one_op("Identity-16", X)
    edit(model, [Step("target", "2024.6")])
    assert [layer.type for layer in model.graph.layers] == ["Parameter", "Result"]


def test_an_older_set_of_the_same_op_is_only_another_word():
    with irrun.build("m", opset=13) as g:
        g.Result(g.Abs(g.Parameter("f32[2]", name="x")))
    for layer in g.model.graph.layers:
        layer.version = layer.element.attributes["version"] = "opset13"
    edit(g.model, [Step("target", "2023.0")])
    assert {layer.version for layer in g.model.graph.layers} == {"opset1"}


def test_what_is_no_release():
    with pytest.raises(EditError, match="--target tomorrow: `tomorrow` is no release of OpenVINO"):
        edit(one_op("SoftMax-8", X, axis=1), [Step("target", "tomorrow")])


HEADS = np.random.default_rng(3).standard_normal((2, 3, 5, 4)).astype(np.float32)
SEEN = np.random.default_rng(4).random((2, 1, 5, 5)) > 0.5
SEEN[1, :, 2] = False


@pytest.mark.parametrize(
    "masks",
    [(), (np.float32(0), np.float32(0.3)), (HEADS[:, :1, :, :1] - HEADS[:, :1, :, 1:2].swapaxes(2, 3),), (SEEN,)],
    ids=["plain", "scale", "added", "boolean"],
)
@pytest.mark.parametrize("target", ["2023.0", "2022.1"])
def test_attention_becomes_products_and_softmax(masks, target):
    model = one_op("ScaledDotProductAttention-13", HEADS, HEADS[:, :, ::-1] * 2, HEADS + 1, *masks, causal=False)
    name = model.graph.results[0].inputs[0].layer.name
    (before,) = irrun.GraphExecutor(model).run([HEADS]).values()
    edit(model, [Step("target", target)])
    assert irrun.validate(model).ok
    (after,) = irrun.GraphExecutor(model).run([HEADS]).values()
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)
    assert model.graph.results[0].inputs[0].layer.name == name
    assert sum(layer.type == "MatMul" for layer in model.graph.layers) == 2


def test_attention_of_an_unknown_type_stays_and_is_told():
    with irrun.build("m", opset=13) as g:
        q, k, v = (g.Parameter("f32[2, 3, 4, 5]", name=name) for name in "qkv")
        g.Result(g.op("ScaledDotProductAttention-13", q, k, v, causal=False), name="y")
    for layer in g.model.graph.parameters:
        g.model.set_attribute(layer, "element_type", "dynamic")
    with pytest.raises(IRError) as refused:
        edit(g.model, [Step("target", "2023.0")])
    assert refused.value.diagnostics[0].help.endswith("the type of its input is not known")


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sunk", [False, True])
@pytest.mark.parametrize("target", ["2023.0", "opset8"])
def test_attention_of_open_sizes_that_is_causal_or_has_a_sink(causal, sunk, target):
    keys = HEADS[:, :, :4] * 2
    with irrun.build("m", opset=16) as g:
        q, k, v = (g.Parameter("f32[?, 3, ?, ?]", name=name) for name in "qkv")
        more = [np.float32(0), np.float32(0.4), HEADS[:1, :, :1, :1]] if sunk else []
        g.Result(g.op("ScaledDotProductAttention-13", q, k, v, *map(g.Constant, more), causal=causal), name="y")
    given = {"q": HEADS, "k": keys, "v": keys + 1}
    before = irrun.GraphExecutor(g.model).run(given)["y"]
    edit(g.model, [Step("target", target)])
    assert irrun.validate(g.model).ok
    after = irrun.GraphExecutor(g.model).run(given)["y"]
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("sizes", ["2, 6, 3, 4", "?, 6, ?, ?", "2, 6"])
def test_normalized_groups_become_normalized_rows(sizes):
    shape = [2, 6, 3, 4][: sizes.count(",") + 1]
    data = np.random.default_rng(5).standard_normal(shape).astype(np.float32) * 3 + 1
    with irrun.build("m", opset=16) as g:
        x = g.Parameter(f"f32[{sizes}]", name="x")
        scale, bias = g.Constant(np.arange(6, dtype=np.float32)), g.Constant(np.arange(6, dtype=np.float32)[::-1] - 2)
        g.Result(g.op("GroupNormalization-12", x, scale, bias, num_groups=2, epsilon=0.5), name="y")
    before = irrun.GraphExecutor(g.model).run([data])["y"]
    edit(g.model, [Step("target", "2023.0")])
    assert irrun.validate(g.model).ok
    after = irrun.GraphExecutor(g.model).run([data])["y"]
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-5)


ODD = np.array([np.nan, -np.inf, np.inf, -2.5, 0, 65504], np.float32)


@pytest.mark.parametrize(
    ("type", "attributes"),
    [
        ("IsNaN-10", {}),
        ("IsFinite-10", {}),
        *(("IsInf-10", {"detect_negative": a, "detect_positive": b}) for a in (True, False) for b in (True, False)),
    ],
)
def test_what_is_finite_is_compared(type, attributes):
    assert {version for _, version in lowered(one_op(type, ODD, **attributes), "2022.1", ODD)} <= {"opset1", "opset3"}


def test_softsign_is_a_quotient():
    assert [type for type, _ in lowered(one_op("SoftSign-9", ODD[3:]), "2022.1", ODD[3:])] == ["Abs", "Add", "Divide"]


LOWERED = {name: op for name, op in registry().ops.items() if op.lowering is not None}


@pytest.mark.parametrize("name", sorted(LOWERED))
def test_declared_lowerings_lead_to_an_op_with_these_attributes(name):
    op = LOWERED[name]
    names = {attr.name for attr in op.attrs} | {attr.keyword for attr in op.attrs}
    assert set(op.lowering.only) <= names
    assert set(op.lowering.natural) <= {port.name for port in op.inputs}
    if op.lowering.older is None:
        return
    older = registry().ops[op.lowering.older]
    assert older.version < op.version
    dropped = {attr.name for attr in op.attrs} - {attr.name for attr in older.attrs}
    assert dropped <= set(op.lowering.only), "what is dropped must be at a value that means nothing"
    needed = {attr.name for attr in older.attrs if attr.default is REQUIRED}
    assert needed <= {attr.name for attr in op.attrs}
