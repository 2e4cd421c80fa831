"""Why tensors differ: faults planted in random layers, and cases written out by hand.

`python tests/tools/compare/planting.py` plants more of them.
"""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from irrun.tools.compare.causes.decision import decide
from irrun.tools.compare.observed import Context, Earlier, Observed
from irrun.tools.compare.steps import rounded
from irrun.tools.compare.tolerances import of_elements, of_outputs
from tools.compare.faults import FAULTS
from tools.compare.planted import F32, Planted, find, i64, layers, noisy
from tools.compare.planting import planted_cases

PAIRS = {"strides": (1, 2), "dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)}


def seen(actual, expected, **changes):
    return Observed(None, None, 0, actual, expected, expected, **changes)


def code(actual, expected, context=None, **changes):
    return decide(seen(actual, expected, **changes), context or Context()).code


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_planted_faults_are_found(fault):
    for layer, observed, context in planted_cases(fault, 3):
        found = decide(observed, context)
        assert found.code in FAULTS[fault], (layer.op.name, observed.actual.shape, observed.precision, found)
        assert found.evidence


@pytest.mark.parametrize("precision", ["f32", "bf16", "f16"])
def test_right_results_are_never_at_fault(precision):
    chance = np.random.default_rng(5)
    for layer in layers(chance):
        inputs = [rounded(x, precision).astype(F32) if x.dtype == F32 else x for x in layer.inputs]
        actual = noisy(layer.compute(inputs)[0], precision, chance, layer)
        found = decide(layer.observed(actual, precision), layer.context())
        assert found.explained, (layer.op.name, found)


def test_equal_tensors_are_rounding():
    right = np.arange(6, dtype=F32)
    found = decide(seen(right, right), Context())
    assert (found.code, found.explained) == ("N101", True)


def test_error_that_came_in_is_not_the_layers_own():
    layer = Planted(find("Multiply-1"), [np.full(4, 2, F32), np.full(4, 3, F32)])
    actual = layer.right
    observed = layer.observed(
        actual, reference=actual * F32(1.1), reference_inputs=[np.full(4, 2.2, F32), layer.inputs[1]]
    )
    found = decide(observed, layer.context())
    assert found.code == "N102"
    assert "input 0 differs by 0.2 at most" in found.evidence[-1]


def test_a_top_element_that_rounding_tips_is_a_tie():
    attrs = {"axis": 0, "mode": "max", "sort": "value", "index_element_type": "i64"}
    ours, theirs = F32([1.001, 1.0, 0.1]), F32([1.0, 1.002, 0.1])
    layer = Planted(find("TopK-3"), [theirs, i64(1)[0]], attrs, port=1)
    reference = layer.compute([ours, layer.inputs[1]])[1]
    observed = layer.observed(layer.right, "bf16", reference=reference, reference_inputs=[ours, layer.inputs[1]])
    assert decide(observed, layer.context()).code == "N103"


def test_equal_elements_may_be_chosen_in_any_order():
    attrs = {"axis": 0, "mode": "max", "sort": "value", "index_element_type": "i64"}
    layer = Planted(find("TopK-3"), [F32([3, 5, 5, 1]), i64(1)[0]], attrs, port=1)
    assert decide(layer.observed(i64(2)), layer.context()).code == "N103"
    assert not decide(layer.observed(i64(3)), layer.context()).explained


def test_of_many_equal_elements_any_may_be_chosen():
    """None of which comes out at the same place in a few tries."""
    attrs = {"axis": 0, "mode": "max", "sort": "value", "index_element_type": "i64"}
    layer = Planted(find("TopK-3"), [np.full(1029, -0.7, F32), i64(300)[0]], attrs, port=1)
    shifted, twice = np.roll(layer.right, -1), layer.right // 2
    assert decide(layer.observed(shifted), layer.context()).code == "N103"
    assert not decide(layer.observed(twice), layer.context()).explained
    assert not decide(layer.observed(shifted + 1029), layer.context()).explained


@pytest.mark.parametrize(
    ("version", "more", "code"), [("3", {}, "N103"), ("11", {"stable": False}, "N103"), ("11", {"stable": True}, None)]
)
def test_equal_whole_numbers_may_be_chosen_in_any_order(version, more, code):
    """As the experts that tokens have chosen, unless their order is asked for."""
    attrs = {"axis": 0, "mode": "min", "sort": "value", "index_element_type": "i64", **more}
    layer = Planted(find(f"TopK-{version}"), [i64(3, 1, 3, 2, 1, 3), i64(6)[0]], attrs, port=1)
    assert layer.right.tolist() == [1, 4, 3, 0, 2, 5]
    found = decide(layer.observed(i64(4, 1, 3, 2, 5, 0)), layer.context())
    assert found.code == code if code else not found.explained
    assert not decide(layer.observed(i64(1, 4, 0, 3, 2, 5)), layer.context()).explained


def test_zeros_may_be_chosen_in_any_order():
    """A step of their precision moves none of them."""
    attrs = {"axis": 0, "mode": "max", "sort": "value", "index_element_type": "i64"}
    layer = Planted(find("TopK-3"), [F32([0, 3, 0, 0, 1]), i64(3)[0]], attrs, port=1)
    assert layer.right.tolist() == [1, 4, 0]
    assert decide(layer.observed(i64(1, 4, 3)), layer.context()).code == "N103"
    assert not decide(layer.observed(i64(4, 1, 3)), layer.context()).explained


def test_boxes_of_which_rounding_has_chosen_more_are_a_tie():
    """How many are above a score differs, and so does the shape."""
    ours, theirs = F32([0.9, 0.1, -1e-7, 0.3]), F32([0.9, 0.1, 1e-7, 0.3])
    layer = Planted(find("NonZero-3"), [np.maximum(theirs, 0)], {"output_type": "i64"})
    before = [np.maximum(ours, 0)]
    observed = layer.observed(layer.right, reference=layer.compute(before)[0], reference_inputs=before)
    found = decide(observed, layer.context())
    assert (found.code, found.evidence) == (
        "N103",
        (
            "it is [1, 4] in shape, and [1, 3] in our own run",
            "our own kernel chooses so, too, of the inputs there, which differ from ours by 1e-07 at most",
        ),
    )
    far = [F32([0.9, 0.1, 0, 0])]
    apart = layer.observed(layer.right, reference=layer.compute(far)[0], reference_inputs=far)
    assert decide(apart, layer.context()).code == "N102"


def test_one_large_number_that_is_rounded_by_much_leaves_a_tie_a_tie():
    """Coordinates of boxes: 8 of 300 is rounding that has added up, though the rms of all is 37."""
    attrs = {"axis": 0, "mode": "max", "sort": "value", "index_element_type": "i64"}
    theirs = np.append(np.full(64, 1, F32), F32([2.001, 2.0, 308]))
    ours = np.append(np.full(64, 1, F32), F32([2.0, 2.001, 300]))
    layer = Planted(find("TopK-3"), [theirs, i64(2)[0]], attrs, port=1)
    before = [ours, layer.inputs[1]]
    observed = layer.observed(layer.right, reference=layer.compute(before)[1], reference_inputs=before)
    assert decide(observed, layer.context()).code == "N103"


def test_codes_of_few_bits_that_rounding_moves_are_no_choice():
    ours, theirs = F32([1.0, 2.9999998, 7.0]), F32([1.0, 3.0, 7.0])
    layer = Planted(find("Convert-1"), [theirs], {"destination_type": "u8"})
    before = layer.compute([ours])[0]
    observed = layer.observed(layer.right, reference=before, reference_inputs=[ours])
    assert (layer.right.tolist(), before.tolist()) == ([1, 3, 7], [1, 2, 7])
    assert decide(observed, layer.context()).code == "N102"


def test_a_half_that_is_rounded_to_the_other_side_is_a_tie():
    values = np.linspace(0, 40, 400, dtype=F32)
    values[7] = 2.5
    layer = Planted(find("Round-5"), [values], {"mode": "half_to_even"})
    actual = layer.right.copy()
    actual[7] = 3
    assert decide(layer.observed(actual), layer.context()).code == "N103"


def test_a_half_that_an_image_of_bytes_is_rounded_from_is_a_tie():
    """7, 7.75, 9.25, 10; 2, 3.25, 5.75, 7; 0, 0.5, 1.5, 2."""
    attrs = {"mode": "linear", "shape_calculation_mode": "sizes"}
    layer = Planted(find("Interpolate-11"), [np.uint8([[7, 10], [2, 7], [0, 2]]), i64(4), i64(1)], attrs)
    assert layer.right.tolist() == [[7, 8, 9, 10], [2, 3, 6, 7], [0, 1, 2, 2]]
    half, other = layer.right.copy(), layer.right.copy()
    half[2, 1] = 0
    other[1, 1] = 4
    found = decide(layer.observed(half), layer.context())
    assert (found.code, found.evidence[0]) == ("N103", "1 of 12 values rounded to the other side")
    assert not decide(layer.observed(other), layer.context()).explained


def test_halves_of_integers_that_are_cut_off_are_no_tie():
    """Nothing shows that the layer rounds to the nearest, and it does not."""
    layer = Planted(find("Divide-1"), [np.int32([2, 3, 4, 5, 7]), np.int32([2, 2, 2, 2, 2])])
    assert layer.right.tolist() == [1, 1, 2, 2, 3]
    assert not decide(layer.observed(np.int32([1, 2, 2, 2, 4])), layer.context()).explained


def test_what_follows_its_inputs_is_no_tie():
    """A sum of large numbers that cancel moves far with them, as few elements as such may be; it does not jump."""
    image = np.ones((1, 1, 1, 64), F32)
    image[..., 40], image[..., 41] = 1000, -1000
    summed = Planted(find("Convolution-1"), [image, np.ones((1, 1, 1, 2), F32)], PAIRS, frozenset({1}))
    apart = Planted(find("Subtract-1"), [image[0, 0, 0], np.append(np.zeros(40, F32), F32([999, -999, *[0] * 22]))])
    for layer, place in ((summed, (0, 0, 0, 20)), (apart, (40,))):
        actual = layer.right.copy()
        actual[place] += F32(3)
        found = decide(layer.observed(actual, "bf16"), layer.context())
        assert found.sentence == "rounding in bf16, which the layer magnifies"


def test_a_difference_of_large_numbers_magnifies_rounding():
    large = np.linspace(1000, 1001, 64, dtype=F32)
    layer = Planted(find("Subtract-1"), [large, np.full(64, 1000.5, F32)])
    actual = (rounded(large, "bf16") - rounded(np.full(64, 1000.5), "bf16")).astype(F32)
    found = decide(layer.observed(actual, "bf16"), layer.context())
    assert found.code == "N101"
    assert "magnifies" in found.sentence


def test_overflow_of_f16_is_named_with_its_numbers():
    right = F32([1e3, 7e4, 8e4, 5])
    actual = F32([1e3, np.inf, np.inf, 5])
    found = decide(seen(actual, right, precision="f16"), Context())
    assert found.code == "N202"
    assert found.evidence == (
        "2 of 4 values are infinite or NaN; there |expected| is 70,000 .. 80,000, and f16 ends at 65,504",
    )
    assert code(F32([1e3, 65504, 65504, 5]), right, precision="f16") == "N202"


def test_squares_that_overflow_on_the_way():
    layer = Planted(find("ReduceL2-4"), [F32([[300, 1], [2, 3]]), i64(1)], {"keep_dims": False})
    actual = layer.right.copy()
    actual[0] = np.inf
    assert decide(layer.observed(actual, "f16"), layer.context()).code == "N202"


def test_sums_that_overflow_on_the_way():
    layer = Planted(find("MatMul-1"), [F32([[5e4, 5e4, -9e4]]), F32([[1], [1], [1]])])
    found = decide(layer.observed(F32([[np.nan]]), "f16"), layer.context())
    assert found.code == "N202"
    assert "add up to 190,000" in found.evidence[1]


def test_underflow_in_the_result_and_in_a_divisor():
    right = F32([1e-8, 3e-8, 2e-8])
    assert code(F32([0, 0, 0]), right, precision="f16") == "N203"
    layer = Planted(find("Divide-1"), [F32([1, 1e-5, 3]), F32([1, 1e-9, 2])])
    assert decide(layer.observed(F32([1, np.inf, 1.5]), "f16"), layer.context()).code == "N203"


@pytest.mark.parametrize(
    ("name", "inputs", "attrs", "place", "kind"),
    [
        ("Sqrt-1", [F32([4, -1e-9, 9])], {}, 1, "of a negative number"),
        ("Divide-1", [F32([4, 0, 9]), F32([1, 0, 3])], {}, 1, "0/0"),
        ("SoftMax-8", [F32([[1, 2], [-1e10, -1e10]])], {"axis": -1}, (1, 0), "a row that is masked whole"),
    ],
)
def test_nan_is_born_of_something(name, inputs, attrs, place, kind):
    layer = Planted(find(name), inputs, attrs)
    right = np.nan_to_num(layer.right)
    actual = right.copy()
    actual[place] = np.nan
    found = decide(layer.observed(actual, expected=right), Context())
    assert (found.code, kind in found.sentence) == ("N201", True), found


@pytest.mark.parametrize(
    ("actual", "right"),
    [
        (np.array([2**31 - 1, 5]), np.array([2**40, 5])),
        (np.array([-(2**31), 5]), np.array([2**31, 5])),
        (np.array([255, 7], np.int32), np.array([300, 7], np.int32)),
        (np.array([44, 7], np.int32), np.array([300, 7], np.int32)),
        (F32([127, 3]), F32([150, 3])),
    ],
)
def test_integers_that_do_not_fit(actual, right):
    assert code(actual, right) == "N208"


def test_pairs_of_products_that_saturate():
    chance = np.random.default_rng(0)
    codes = chance.integers(200, 256, (4, 8)).astype(F32)
    weights = chance.integers(90, 128, (8, 5)).astype(F32)
    weights[:, 0] = 1
    unit = F32(0.5) * F32(0.25)
    layer = Planted(find("MatMul-1"), [codes * F32(0.5), weights * F32(0.25)], constants=frozenset({1}))
    sums = [np.clip(codes[:, k : k + 2] @ weights[k : k + 2], -32768, 32767) for k in range(0, 8, 2)]
    found = decide(layer.observed((sum(sums) * unit).astype(F32), "i8"), layer.context())
    assert found.code == "N208"
    assert found.evidence[0].startswith("64 of 80 sums of two products")


@pytest.mark.parametrize(
    ("actual", "right", "expected"),
    [
        (F32(2), F32(1), {"N299"}),
        (F32([1, 2]), F32([2, 1]), {"N204"}),
        (F32([2, 4]), F32([1, 2]), {"N205"}),
        (F32([]), F32([]), {"N101"}),
        (i64(2, 3, 4), i64(1, 2, 3), {"N207"}),
        (np.array(["a"]), np.array(["b"]), {"N299"}),
        (np.array(["a", "b"]), np.array(["a", "b"]), {"N101"}),
        (np.array([True, False]), np.array([True, True]), {"N206"}),
        (np.array(["1"]), F32([1]), {"N216"}),
        (F32([1, 2, 3]), F32([1, 2]), {"N216"}),
        (np.array([1, 2]).astype(ml_dtypes.int4), np.array([1, 3]).astype(ml_dtypes.int4), {"N206"}),
        (np.zeros(50, F32), np.arange(1, 51, dtype=F32), {"N219"}),
        (np.full((2, 3), np.nan, F32), np.ones((2, 3), F32), {"N201"}),
    ],
)
def test_tiny_and_odd_tensors(actual, right, expected):
    assert code(actual, right) in expected


def test_inputs_and_weights_have_codes_of_their_own():
    image = np.random.default_rng(0).normal(size=(1, 3, 5, 5)).astype(F32)
    assert code(image[:, ::-1].copy(), image, source="input") == "N213"
    assert code(image + 1, image * 2, source="input") == "N213"
    found = decide(seen(image.astype(np.float16).astype(F32), image, source="constant"), Context())
    assert (found.code, found.sentence) == ("N212", "the weights are kept in f16")


def test_a_state_that_is_wrong_after_the_first_step():
    right = np.random.default_rng(0).normal(size=30).astype(F32)
    wrong = np.random.default_rng(1).normal(size=30).astype(F32)
    observed = replace(seen(wrong, right), op=find("ReadValue-6"))
    context = Context(earlier=[Earlier("step 0", right * 3, right=True)])
    assert decide(observed, context).code == "N210"


def test_runs_that_differ_within_rounding():
    right = np.linspace(1, 2, 50, dtype=F32)
    found = decide(seen(right, right), Context(repeated=np.nextafter(right, F32(3))))
    assert (found.code, found.explained) == ("N105", True)


def test_squares_that_overflow_in_what_is_divided_by_them():
    chance = np.random.default_rng(2)
    attrs = {"normalize_variance": True, "eps": 1e-5, "eps_mode": "inside_sqrt"}
    layer = Planted(find("MVN-6"), [F32(chance.normal(size=(2, 3, 8)) * [[[1]], [[500]]]), i64(2)], attrs)
    actual = layer.right.copy()
    actual[1] = 0
    found = decide(layer.observed(actual), layer.context())
    assert (found.code, found.sentence) == ("N202", "overflow of f16 in the squares of the layer")
    actual[1], actual[0, 1] = layer.right[1], 0
    assert decide(layer.observed(actual), layer.context()).code == "N206"


def test_elements_that_are_clamped_count_where_that_is_within_the_tolerance():
    right = F32([9e6, 8e6, 66700, 5])
    assert code(F32([65504, 65504, 65504, 5]), right, precision="f16") == "N202"


@pytest.mark.parametrize(
    ("op", "shapes", "attrs", "read", "said"),
    [
        ("CumSum-3", [(2, 9)], {"reverse": False, "exclusive": False}, {"reverse": True}, "`reverse` is read as true"),
        ("SoftMax-8", [(6, 6)], {"axis": -1}, {"axis": 0}, "`axis` is read as 0"),
        ("GridSample-9", [(1, 1, 6, 6), (1, 3, 3, 2)], {}, {"mode": "nearest"}, "`mode` is read as nearest"),
        ("MatMul-1", [(5, 5), (5, 5)], {"transpose_b": True}, {"transpose_b": False}, "`transpose_b` is read as false"),
    ],
)
def test_an_attribute_that_is_read_otherwise(op, shapes, attrs, read, said):
    chance = np.random.default_rng(4)
    inputs = [F32(chance.normal(size=shape)) for shape in shapes]
    layer = Planted(find(op), [*inputs, *([np.array(1)] if op == "CumSum-3" else [])], attrs)
    found = decide(layer.observed(layer.compute_as(read)[0]), layer.context())
    assert found.code == "N222"
    assert found.sentence.startswith(f"an attribute: {said}")
    assert decide(layer.observed(layer.right + F32(1)), layer.context()).code != "N222"


def test_numbers_that_loops_read_are_not_taken_for_the_number_of_rounds():
    rounds, right = [], np.linspace(1, 2, 50, dtype=F32)

    def compute(inputs):
        rounds.append(inputs[0].item())
        return [right]

    given = [np.int64(3), np.bool_(True), np.int64(1 << 40)]
    actual = right + np.random.default_rng(0).standard_normal(50).astype(F32)
    arrays = [np.asarray(each) for each in given]
    observed = Observed(find("Loop-5"), None, 0, actual, right, right, arrays, arrays)
    assert decide(observed, Context(compute=compute)).code == "N299"
    assert 1 << 40 not in rounds


def test_operands_of_other_shapes_that_are_swapped():
    chance = np.random.default_rng(5)
    data, factor = F32(chance.uniform(1, 2, (3, 4))), F32(chance.uniform(1, 2, (3, 1)))
    layer = Planted(find("Divide-1"), [data, factor])
    found = decide(layer.observed(factor / data), layer.context())
    assert (found.code, found.sentence) == ("N211", "a wrong input: inputs 0 and 1 are swapped")


def test_windows_that_are_off_by_one():
    chance = np.random.default_rng(3)
    data, filters = F32(chance.normal(size=(1, 2, 6, 6))), F32(chance.normal(size=(3, 2, 3, 3)))
    attrs = {"strides": [2, 2], "dilations": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1], "auto_pad": "explicit"}
    layer = Planted(find("Convolution-1"), [data, filters], attrs)
    moved = np.zeros_like(data)
    moved[..., 1:] = data[..., :-1]
    found = decide(layer.observed(layer.compute([moved, filters])[0]), layer.context())
    assert (found.code, found.sentence) == ("N207", "windows are off by one along axis 3")


@pytest.mark.parametrize(("rows", "columns"), [(1, 12), (12, 5)])
def test_rows_of_a_matrix_that_are_mixed_up(rows, columns):
    chance = np.random.default_rng(4)
    data, weight = F32(chance.normal(size=(rows, 10))), F32(chance.normal(size=(10, columns)))
    layer = Planted(find("MatMul-1"), [data, weight], {"transpose_a": False, "transpose_b": False})
    actual = layer.compute([data, weight[chance.permutation(10)]])[0]
    found = decide(layer.observed(actual, constants=frozenset({1})), layer.context())
    sentence = "the weights are read otherwise: the slices of input 1 along axis 0 are mixed up"
    assert (found.code, found.sentence) == ("N212", sentence)


def test_positions_that_stay_behind_by_one_are_no_factor():
    right = np.arange(512).reshape(512, 1)
    assert code(np.maximum(right - 1, 0), right) == "N207"


def test_a_bias_of_another_order_is_an_offset_of_each_slice_and_no_part():
    chance = np.random.default_rng(5)
    right, bias = F32(chance.normal(size=(20, 16))), F32(chance.normal(size=16))
    bias[-1] = 0
    assert code(right + bias, right) == "N205"


def test_a_bias_or_gain_in_another_order_is_a_weight_that_is_read_otherwise():
    chance = np.random.default_rng(6)
    for name in ("Add-1", "Multiply-1"):
        data, weight = F32(chance.normal(size=(1, 1, 64))), F32(chance.normal(size=64))
        layer = Planted(find(name), [data, weight])
        actual = layer.compute([data, chance.permutation(weight)])[0]
        found = decide(layer.observed(actual, constants=frozenset({1})), layer.context())
        assert found.code == "N212"


def test_what_f16_rounds_down_to_its_largest_number_is_clamped_with_the_rest():
    assert code(F32([65504, 65504, 65504, 5]), F32([65510, 65519, 9e5, 5])) == "N202"


def test_infinities_that_are_moved_with_all_the_rest_are_not_born():
    right = F32([[-np.inf, 3, 4, 5, 6, 7, 8, 9]])
    moved = F32([[0, -np.inf, 3, 4, 5, 6, 7, 8]])
    assert code(moved, right) == "N207"


def test_a_layer_that_cannot_be_computed_again_has_causes_all_the_same():
    right = F32(np.random.default_rng(7).normal(size=(4, 6)))
    actual = right.copy()
    actual[1] = 9
    layer = Planted(find("ReLU-1"), [right])
    assert decide(layer.observed(actual, expected=right), Context(compute=lambda inputs: [])).code == "N206"


def test_factors_of_short_slices_and_of_one_that_is_zero():
    right = F32(np.random.default_rng(8).normal(size=(3, 4)))
    right[1] = 0
    assert code(right * F32([[2], [1], [0.3]]), right) == "N205"


def test_one_negative_number_that_is_zero_among_others_is_not_clipped():
    right = F32(np.random.default_rng(9).normal(size=(1, 128)))
    actual = right.copy()
    actual[0, int(right.argmin())] = 0
    assert code(actual, right) == "N206"
    assert code(np.clip(right, 0, 255), right) == "N220"
    assert code(np.clip(right * 200, 0, 255), right * 200) == "N208"


def test_a_slice_of_zeros_among_numbers_on_a_grid_is_a_part():
    right = F32(np.round(np.abs(np.random.default_rng(10).normal(size=(64, 16, 16))) * 40) / 40)
    actual = right.copy()
    actual[5] = 0
    assert code(actual, right, step=0.05) == "N206"


def test_indices_that_are_off_by_one_are_in_the_table():
    table, indices = F32([[1, 2], [3, 4], [5, 6]]), i64(0, 1)
    layer = Planted(find("Gather-8"), [table, indices, i64(0)[0]], {"batch_dims": 0})
    further = layer.compute([table, indices + 1, i64(0)[0]])[0]
    assert decide(layer.observed(further), layer.context()).sentence == "indices are off by one: input 1"
    last = Planted(find("Gather-8"), [table, i64(2), i64(0)[0]], {"batch_dims": 0})
    assert decide(last.observed(np.zeros((1, 2), F32)), last.context()).code != "N207"


def test_rounding_that_is_magnified_explains_the_noise_of_all_elements_too():
    """Each element is within what an output may be off, but all together are not, by far more than rounding makes."""
    right = F32(np.random.default_rng(11).normal(size=64))
    layer = Planted(find("Multiply-1"), [right, F32([1.0])])
    tolerance = of_elements(of_outputs(["f16"]))
    off = layer.observed(
        right * F32(1) + F32(0.015) * np.sign(np.sin(np.arange(64, dtype=F32) * 9)), tolerance=tolerance
    )
    assert not decide(off, layer.context()).explained


def test_a_tensor_that_nobody_has_written():
    right = F32(np.random.default_rng(12).normal(size=(4, 6)))
    found = decide(seen(np.zeros_like(right), right), Context())
    assert found.sentence == "all of it is 0: it was never written, or what it is made of was lost"
    assert decide(seen(np.full_like(right, 7), right), Context()).sentence == "all of it is 7"
    assert code(np.zeros_like(right), right, source="input") == "N213"
    assert code(np.full(6, 2), np.arange(6)) == "N219"


def test_a_relu_or_a_clamp_that_one_side_does_alone():
    right = F32(np.random.default_rng(13).normal(size=(4, 32)))
    sentences = [
        (np.maximum(right, 0), right, "what is negative is 0, as behind a ReLU, which the model does not do here"),
        (right, np.maximum(right, 0), "what is negative stays so, as without a ReLU, which the model does here"),
        (np.clip(right, -1, 1), right, "it is clipped to -1 .. 1, which the model does not do here"),
        (right, np.minimum(right, 0.5), "it is not clipped to 0.5 at most, which the model does here"),
    ]
    for actual, expected, sentence in sentences:
        found = decide(seen(actual, expected), Context())
        assert (found.code, found.sentence) == ("N220", sentence)
    one = right.copy()
    one[np.unravel_index(right.argmax(), right.shape)] += 3
    assert code(one, right) == "N206"
