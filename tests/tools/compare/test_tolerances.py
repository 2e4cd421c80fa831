"""How far right results may lie apart."""

import irrun.opsets.arithmetic as arithmetic
import irrun.opsets.convolution as convolution
import irrun.opsets.matrix as matrix
import irrun.opsets.movement as movement
import irrun.opsets.quantization as quantization
import irrun.opsets.reduction as reduction
import irrun.opsets.signals as signals
import numpy as np
import pytest

import irrun
from irrun.tools.compare.metrics import measure
from irrun.tools.compare.tolerances import (
    EXACT,
    LEVELS,
    Tolerance,
    grid_step,
    named,
    noise_floor,
    of_outputs,
    of_whole_numbers,
    own,
    parse,
    terms,
)

F32 = np.float32


def test_sums_are_counted_by_traits_and_shapes():
    product = {"transpose_a": False, "transpose_b": False}
    assert terms(matrix.matmul, product, [(2, 30), (30, 7)], (2, 7)) == 30
    assert terms(convolution.convolution, {}, [(1, 8, 9, 9), (16, 8, 3, 3)], (1, 16, 7, 7)) == 72
    assert terms(reduction.reduce_sum, {}, [(4, 5, 6), (2,)], (4,)) == 30
    deformed = [(1, 8, 9, 9), (1, 18, 7, 7), (16, 8, 3, 3), None]
    assert terms(convolution.deformable_convolution, {}, deformed, (1, 16, 7, 7)) == 72
    assert terms(signals.dft, {}, [(3, 9, 64, 2), (2,)], (3, 9, 64, 2)) == 576
    assert terms(signals.rdft, {}, [(3, 9, 64), (1,), (1,)], (3, 9, 33, 2)) == 64
    assert terms(signals.rdft, {}, [(3, 9, 64), (0,)], (3, 9, 64, 2)) == 1
    assert terms(movement.transpose, {}, [(4, 5), (2,)], (5, 4)) == 0
    assert terms(arithmetic.add, {}, [(4, 5), (5,)], (4, 5)) == 1


def test_the_tolerance_grows_with_the_root_of_the_terms():
    assert own("bf16", 1) == own("bf16", 64)
    assert own("bf16", 64 * 16).spread == 4 * own("bf16", 64).spread
    assert own("f32", 1).atol == pytest.approx(40 * 2.0**-149)
    assert str(own("f32", 1)) == "4.77e-06 of the rms + 1.91e-06 of each element"
    assert own("f32", 0) == EXACT
    assert own("f16", 0).rtol == 2**-9


def test_a_result_on_a_grid_may_be_two_steps_off():
    inputs = [np.zeros(3, F32), F32(-1), F32(1), F32(-1), F32(1.55)]
    step = grid_step(quantization.fake_quantize, {"levels": 256}, inputs)
    assert step == pytest.approx(0.01)
    assert own("f32", 1, step).atol == pytest.approx(0.02, rel=2e-3)
    assert grid_step(arithmetic.add, {}, inputs[:2]) is None


def test_outputs_are_judged_by_the_least_precise_layer():
    assert of_outputs(["f32", "bf16", "f16"]).sqnr == 25
    assert of_outputs([]).sqnr == 80
    right = np.random.default_rng(0).normal(size=1000)
    noisy = right + np.random.default_rng(1).normal(size=1000) * 0.01
    assert measure(noisy, right, of_outputs(["f16"])).sqnr == pytest.approx(40, abs=1)
    assert measure(noisy, right, of_outputs(["bf16"])).within(of_outputs(["bf16"]))
    assert not measure(noisy, right, of_outputs(["f32"])).within(of_outputs(["f32"]))


def test_the_floor_of_a_difference_of_large_numbers_is_high():
    large = np.full(100, 1000, F32)

    def compute(inputs):
        return [inputs[0] - inputs[1]]

    floor = noise_floor(compute, [large, large], 0, "bf16", large - large)
    assert floor.max() == pytest.approx(1000 * 2**-7, rel=0.01)
    assert noise_floor(compute, [np.array([1]), np.array([2])], 0, "f32", np.array([1])) is None


def test_the_floor_has_the_distance_from_f64():
    right = np.array([1.0], F32)
    floor = noise_floor(lambda inputs: [right], [right], 0, "f32", right, np.array([1.5]))
    assert floor.tolist() == [0.5]


@pytest.mark.parametrize(
    ("text", "name", "tolerance"),
    [
        ("bf16", None, LEVELS["bf16"]),
        ("1e-3,0.01", None, Tolerance(1e-3, 0.01)),
        ("conv:0:1e-3, 0,0.1", "conv:0", Tolerance(1e-3, 0, 0.1)),
        ("logits:exact", "logits", EXACT),
    ],
)
def test_tolerances_as_options_say_them(text, name, tolerance):
    assert parse(text) == (name, tolerance)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bf61", "did you mean bf16"),
        ("1e-3", "has 1 number, expected ATOL,RTOL"),
        ("1,2,3,4", "has 4 numbers"),
        ("-1,0", "0 or more"),
        ("nan,0", "0 or more"),
        ("1,1,2", "from 0 to 1, not 2"),
        (":f32", "no name before the colon"),
        ("", "is neither"),
    ],
)
def test_what_is_no_tolerance_is_said(text, message):
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_the_last_tolerance_for_a_name_counts():
    given = [parse("f32"), parse("conv*:1,1"), parse("conv1:2,2"), parse("bf16")]
    assert named(given, "conv1").atol == 2
    assert named(given, "conv2").atol == 1
    assert named(given, "relu") == LEVELS["bf16"]
    assert named([], "relu") is None


def test_a_tolerance_in_words():
    assert str(EXACT) == "exact"
    assert str(Tolerance(0.001, 0.01, 0.1)) == "0.001 + 0.01 of each element + 0.1 of all elements anywhere"
    assert Tolerance(1, 1, sqnr=40).times(10) == Tolerance(10, 10, sqnr=20)


def test_outputs_of_integers_alone_are_the_same_in_any_precision():
    with irrun.build("m", opset=13) as g:
        whole, real = g.Parameter("i64[4]", name="whole"), g.Parameter("f32[4]", name="real")
        half = g.Divide(g.Subtract(whole, np.array([1])), np.array([2]))
        g.Result(half, name="half")
        g.Result(g.Less(half, whole), name="less")
        g.Result(g.Add(half, g.Convert(real, destination_type="i64")), name="rounded")
        g.Result(g.Multiply(real, np.float32([2])), name="twice")
    report = irrun.validate(g.model)
    first, second, *_ = (info.name for info in irrun.GraphExecutor(g.model).outputs)
    assert of_whole_numbers(report.inference, report.model.graph) == {first, second}
