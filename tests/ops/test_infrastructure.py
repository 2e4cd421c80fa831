"""Inputs, constants, results, variables and loops."""

import re

import numpy as np
import pytest

from irrun.spec import Body, BodyInput, BodyOutput, Tensor, Violation, fresh
from irrun.spec.registry import registry

OPS = registry().ops
LOOP, ITERATOR = OPS["Loop-5"], OPS["TensorIterator-1"]
TRUE, FALSE = np.array(True), np.array(False)


def tensor(type, *shape):
    return Tensor(type, shape)


def numbers(*values):
    return np.array(values, np.float32)


def adding(inputs, outputs, back_edges=((0, 1),), **fields):
    """A body that adds its two parameters."""

    def infer(tensors):
        a, b = tensors
        return [Tensor(a.type if a.type != "dynamic" else b.type, a.shape if b.shape in (None, ()) else b.shape)]

    declared = fields.pop("declared", (Tensor("f32", None), Tensor("f32", None)))
    return Body(inputs, outputs, back_edges, 2, 1, infer, lambda arrays: [arrays[0] + arrays[1]], declared)


def iterate(body, *arrays):
    checked(ITERATOR, body, *arrays)
    return ITERATOR.kernel(*arrays, bodies={"body": body})


def checked(op, body, *arrays):
    return op.infer([Tensor.of(array) for array in arrays], {}, {"body": body})


def summing(output=None, **slicing):
    """Sum slices of input 0 on top of input 1: all sums, and the last."""
    joined = output or BodyOutput(0, 0, axis=0)
    return adding((BodyInput(0, 0, axis=0, **slicing), BodyInput(1, 1)), (joined, BodyOutput(1, 0)))


# TensorIterator


def test_an_iterator_sums_slices():
    sums, last = iterate(summing(), numbers(1, 2, 3), numbers(10))
    assert sums.tolist() == [11, 13, 16]
    assert last.tolist() == [16]


def test_an_iterator_goes_and_joins_backwards():
    body = summing(BodyOutput(0, 0, axis=0, start=-1, end=0, stride=-1), start=-1, end=0, stride=-1)
    sums, last = iterate(body, numbers(1, 2, 3), numbers(10))
    assert sums.tolist() == [16, 15, 13]
    assert last.tolist() == [16]


def test_start_and_end_are_both_included():
    sums, _ = iterate(summing(start=1, end=2), numbers(1, 2, 3, 4), numbers(0))
    assert sums.tolist() == [2, 5]


def test_negative_start_and_end_count_from_the_end():
    sums, _ = iterate(summing(start=-3, end=-2), numbers(1, 2, 3, 4), numbers(0))
    assert sums.tolist() == [2, 5]


def test_parts_keep_their_order_when_they_are_taken_backwards():
    slicing = {"start": -1, "end": 0, "stride": -2, "part_size": 2}
    body = summing(BodyOutput(0, 0, axis=0, stride=-2, part_size=2), **slicing)
    sums, _ = iterate(body, numbers(1, 2, 3, 4), numbers(0, 0))
    assert sums.tolist() == [4, 6, 3, 4]


def test_parts_may_overlap():
    body = summing(BodyOutput(0, 0, axis=0, part_size=2), stride=1, part_size=2)
    sums, _ = iterate(body, numbers(1, 2, 3), numbers(0, 0))
    assert sums.tolist() == [1, 2, 3, 5]


def test_an_axis_may_be_negative():
    body = adding((BodyInput(0, 0, axis=-1), BodyInput(1, 1)), (BodyOutput(0, 0, axis=-1),))
    (sums,) = iterate(body, np.float32([[1, 2], [3, 4]]), np.float32([[0], [10]]))
    assert sums.tolist() == [[1, 3], [13, 17]]


def test_an_invariant_input_stays():
    body = adding((BodyInput(0, 0, axis=0), BodyInput(1, 1)), (BodyOutput(0, 0, axis=0),), back_edges=())
    assert iterate(body, numbers(1, 2, 3), numbers(10))[0].tolist() == [11, 12, 13]


def test_scalars_are_joined_to_a_vector():
    body = Body(
        (BodyInput(0, 0, axis=0),),
        (BodyOutput(0, 0, axis=0),),
        (),
        1,
        1,
        lambda tensors: [Tensor("f32", ())],
        lambda arrays: [arrays[0].max()],
    )
    assert iterate(body, numbers(1, 2))[0].tolist() == [1, 2]
    assert checked(ITERATOR, body, numbers(1, 2)).outputs[0].shape == (2,)


def test_without_slices_the_joined_output_says_how_often():
    body = adding((BodyInput(0, 0), BodyInput(1, 1)), (BodyOutput(0, 0, axis=0, start=0, end=3),))
    assert iterate(body, numbers(1), numbers(0))[0].tolist() == [1, 2, 3]


def test_without_slices_and_joined_outputs_the_body_runs_once():
    body = adding((BodyInput(0, 0), BodyInput(1, 1)), (BodyOutput(0, 0),))
    assert iterate(body, numbers(1), numbers(5))[0].tolist() == [6]


def test_no_slices_give_the_start_value_and_an_empty_join():
    sums, last = iterate(summing(), numbers(), numbers(10))
    assert sums.shape == (0,)
    assert sums.dtype == np.float32
    assert last.tolist() == [10]


def test_an_iterator_is_inferred_with_unknown_sizes():
    batch, steps = fresh(name="batch"), fresh(name="steps")
    body = adding((BodyInput(0, 0, axis=1), BodyInput(1, 1)), (BodyOutput(0, 0, axis=1), BodyOutput(1, 0)))
    sums, last = ITERATOR.infer(
        [tensor("f32", batch, steps, 8), tensor("f32", batch, 1, 8)], {}, {"body": body}
    ).outputs
    assert sums == tensor("f32", batch, steps, 8)
    assert last.shape == (batch, 1, 8)


def test_parts_of_an_unknown_axis_are_counted():
    steps = fresh()
    body = summing(BodyOutput(0, 0, axis=0, part_size=2), stride=2, part_size=2)
    sums, _ = ITERATOR.infer([tensor("f32", steps * 2), tensor("f32", 2)], {}, {"body": body}).outputs
    assert (sums.shape[0] == steps * 2) is True


def test_results_of_unknown_length_are_joined_as_part_size_says():
    body = adding((BodyInput(0, 0, axis=0), BodyInput(1, 1)), (BodyOutput(0, 0, axis=0), BodyOutput(1, 0)))
    sums, last = ITERATOR.infer([tensor("f32", 3, 2), tensor("f32", fresh(), 2)], {}, {"body": body}).outputs
    assert sums.shape == (3, 2)
    assert not isinstance(last.shape[0], int)
    steps = fresh()
    sums, _ = ITERATOR.infer([tensor("f32", steps, 2), tensor("f32", fresh(), 2)], {}, {"body": body}).outputs
    assert (sums.shape[0] == steps) is True


def test_inputs_of_unknown_rank_are_inferred():
    outputs = ITERATOR.infer([Tensor("f32", None), Tensor("f32", None)], {}, {"body": summing()}).outputs
    assert [output.type for output in outputs] == ["f32", "f32"]


def test_tensoriterator_1_c1_axis_outside_the_rank():
    body = adding((BodyInput(0, 0, axis=1), BodyInput(1, 1)), (BodyOutput(0, 0),))
    with pytest.raises(Violation, match="input 0 is sliced along axis 1, outside its rank 1"):
        iterate(body, numbers(1), numbers(2))


def test_tensoriterator_1_c2_stride_of_zero():
    with pytest.raises(Violation, match="input 0 is sliced with stride 0 and part_size 1"):
        iterate(summing(stride=0), numbers(1), numbers(2))
    with pytest.raises(Violation, match="result 0 is joined with stride 1 and part_size 0"):
        iterate(summing(BodyOutput(0, 0, axis=0, part_size=0)), numbers(1), numbers(2))


def test_tensoriterator_1_c3_start_outside_the_axis():
    with pytest.raises(Violation, match="start 0 and end 3 of input 0, whose axis has 2 elements, lie behind it"):
        iterate(summing(end=3), numbers(1, 2), numbers(2))
    with pytest.raises(Violation, match="start -3 and end -1 of input 0, whose axis has 2 elements, lie before it"):
        iterate(summing(start=-3), numbers(1, 2), numbers(2))
    with pytest.raises(Violation, match="are in the wrong order for stride -1"):
        iterate(summing(stride=-1), numbers(1, 2, 3), numbers(2))


def test_tensoriterator_1_c4_parts_that_do_not_fill_the_axis():
    message = "input 0 has 3 elements from start to end, which slices of 2 elements at stride 2 do not fill"
    with pytest.raises(Violation, match=message):
        iterate(summing(stride=2, part_size=2), numbers(1, 2, 3), numbers(2, 2))


def test_tensoriterator_1_c5_different_numbers_of_slices():
    body = adding((BodyInput(0, 0, axis=0), BodyInput(1, 1, axis=0)), (BodyOutput(0, 0),), back_edges=())
    with pytest.raises(Violation, match="input 1 has 3 slices, but input 0 has 2"):
        iterate(body, numbers(1, 2), numbers(1, 2, 3))


def test_tensoriterator_1_c6_types_that_change():
    with pytest.raises(Violation, match="input 0 is f64, but parameter 0 of the body declares f32"):
        iterate(summing(), numbers(1).astype(np.float64), numbers(1))
    body = adding((BodyInput(0, 0), BodyInput(1, 1)), (BodyOutput(0, 0),), declared=())
    message = "result 0 of the body is f32, but parameter 1, its next value, is i32"
    with pytest.raises(Violation, match=message):
        iterate(body, numbers(1), np.int32([1]))


def test_tensoriterator_1_c7_join_axis_outside_the_rank():
    with pytest.raises(Violation, match="result 0 is joined along axis 1, outside its rank 1"):
        iterate(summing(BodyOutput(0, 0, axis=1)), numbers(1), numbers(1))


def growing(axis):
    """A carried value that gets longer along `axis`, and the list of all of them."""

    def infer(tensors):
        shape = list(tensors[0].shape)
        shape[axis] = shape[axis] + 1
        return [Tensor("f32", tuple(shape)), Tensor("boolean", (), TRUE)]

    def run(arrays):
        return [np.concatenate([arrays[0], np.take(arrays[0], [0], axis)], axis), TRUE]

    outputs = (BodyOutput(0, 0), BodyOutput(1, 0, axis=0), BodyOutput(-1, 1, purpose="execution_condition"))
    return Body((BodyInput(2, 0),), outputs, ((0, 0),), 1, 2, infer, run, (Tensor("f32", None),))


def test_tensoriterator_1_c8_results_that_do_not_join():
    body = growing(1)
    outputs = (BodyOutput(0, 0, axis=0, end=2),)
    body = Body((BodyInput(0, 0),), outputs, ((0, 0),), 1, 2, body.infer, body.run)
    with pytest.raises(Violation, match=r"output 0 joins \[1, 2\] of the first iteration and \[1, 3\] of iteration 1"):
        ITERATOR.kernel(np.float32([[1]]), bodies={"body": body})


def test_tensoriterator_1_c9_results_longer_than_part_size():
    body = adding((BodyInput(0, 0, axis=0), BodyInput(1, 1)), (BodyOutput(0, 0, axis=0),))
    with pytest.raises(Violation, match="result 0 has 2 elements along axis 0, expected 1"):
        iterate(body, numbers(1, 2), numbers(1, 2))


def test_tensoriterator_1_c9_sizes_that_only_a_run_tells():
    body = adding((BodyInput(0, 0, axis=0), BodyInput(1, 1)), (BodyOutput(0, 0, axis=0),))
    with pytest.raises(Violation, match="result 0 has 2 elements along axis 0, expected 1") as error:
        ITERATOR.kernel(numbers(1, 2), numbers(1, 2), bodies={"body": body})
    assert error.value.label == "C9"


def test_tensor_iterator_1_c9_sizes_of_which_less_is_known():
    body = adding((BodyInput(0, 0), BodyInput(1, 1)), (BodyOutput(0, 0, axis=0),))
    for size, said in ((fresh() * 2, "other than 1"), (fresh(2), "2.."), (fresh(name="n") * 2, "2*n")):
        with pytest.raises(Violation, match=f"^result 0 has {re.escape(said)} elements along axis 0, expected 1$"):
            ITERATOR.infer([tensor("f32", size), tensor("f32", size)], {}, {"body": body})


# Loop


def counting(limit=None, counter="i64", shape=(1,), joined=True, part=1):
    """Add the iteration number to input 2, as long as the sum is below `limit`; `part` elements each time."""

    def infer(tensors):
        go = Tensor("boolean", (), TRUE) if limit is None else Tensor("boolean", ())
        return [tensors[1], go]

    def run(arrays):
        assert arrays[0].dtype == np.dtype({"i32": "int32"}.get(counter, "int64"))
        assert arrays[0].shape == shape
        total = (arrays[1] + arrays[0].item()).astype(np.float32)
        return [total, np.array(limit is None or total.max() < limit)]

    outputs = [BodyOutput(0, 0), BodyOutput(-1, 1, purpose="execution_condition")]
    outputs += [BodyOutput(1, 0, axis=0, stride=part, part_size=part)] * joined
    inputs = (BodyInput(-1, 0, purpose="current_iteration"), BodyInput(2, 1))
    declared = (Tensor(counter, shape), Tensor("f32", None))
    return Body(inputs, tuple(outputs), ((0, 1),), 2, 2, infer, run, declared)


def loop(body, trips, start, *arrays):
    arrays = (np.array(trips), start, *arrays)
    checked(LOOP, body, *arrays)
    return LOOP.kernel(*arrays, bodies={"body": body})


def loop_shapes(body, trips, start, *tensors):
    return [t.shape for t in LOOP.infer([trips, start, *tensors], {}, {"body": body}).outputs]


def test_a_loop_counts():
    last, sums = loop(counting(), 4, TRUE, numbers(10))
    assert last.tolist() == [16]
    assert sums.tolist() == [10, 11, 13, 16]


@pytest.mark.parametrize(("counter", "shape"), [("i32", (1,)), ("i64", ())])
def test_the_counter_has_the_declared_type_and_shape(counter, shape):
    assert loop(counting(counter=counter, shape=shape), 3, TRUE, numbers(0))[0].tolist() == [3]


def test_a_loop_stops_at_its_condition():
    last, sums = loop(counting(limit=12), 100, TRUE, numbers(10))
    assert sums.tolist() == [10, 11, 13]
    assert last.tolist() == [13]


def test_a_negative_trip_count_is_endless():
    assert loop(counting(limit=12), -1, TRUE, numbers(10))[1].tolist() == [10, 11, 13]


@pytest.mark.parametrize(("trips", "start"), [(0, TRUE), (3, FALSE)])
def test_no_iterations_give_the_start_value_and_an_empty_join(trips, start):
    last, sums = loop(counting(), trips, start, numbers(10))
    assert last.tolist() == [10]
    assert sums.shape == (0,)
    assert sums.dtype == np.float32


def test_an_output_that_no_iteration_gives_is_zero():
    body = counting()
    body = Body(body.inputs, body.outputs, (), 2, 2, body.infer, body.run, body.declared)
    assert loop(body, 0, TRUE, numbers(10))[0].tolist() == [0]


def test_a_loop_that_may_stop_before_its_slices_end_is_inferred():
    body = Body(
        (BodyInput(2, 0, axis=0),),
        (BodyOutput(-1, 1, purpose="execution_condition"), BodyOutput(0, 0), BodyOutput(1, 0, axis=0)),
        (),
        1,
        2,
        lambda tensors: [tensors[0], Tensor("boolean", ())],
    )
    last, joined = loop_shapes(body, Tensor.of(np.array(3)), Tensor.of(TRUE), tensor("f32", 3, 2))
    assert last == (1, 2)
    assert [str(size) for size in joined] == ["1..3", "2"]


def test_a_loop_ends_with_its_slices():
    body = Body(
        (BodyInput(2, 0, axis=0),),
        (BodyOutput(-1, 1, purpose="execution_condition"), BodyOutput(0, 0, axis=0)),
        (),
        1,
        2,
        lambda tensors: [tensors[0], Tensor("boolean", (), TRUE)],
        lambda arrays: [arrays[0] * 2, TRUE],
    )
    assert loop(body, -1, TRUE, numbers(1, 2, 3))[0].tolist() == [2, 4, 6]
    assert loop(body, 2, TRUE, numbers(1, 2, 3))[0].tolist() == [2, 4]
    steps = fresh()
    endless, start = Tensor.of(np.array(-1)), Tensor.of(TRUE)
    assert loop_shapes(body, endless, start, tensor("f32", steps)) == [(steps,)]
    assert loop_shapes(body, Tensor.of(np.array(3)), start, tensor("f32", fresh(3))) == [(3,)]
    assert loop(body, 7, TRUE, numbers(1, 2, 3))[0].tolist() == [2, 4, 6]
    for trips, doubts in ((-1, 0), (2, 0), (3, 0), (7, 1)):
        found = LOOP.infer([Tensor.of(np.array(trips)), start, tensor("f32", 3)], {}, {"body": body}).doubts
        assert [(doubt.port, doubt.code) for doubt in found] == [("trip_count", "W949")] * doubts
    part = Body((BodyInput(2, 0, axis=0, start=-2),), body.outputs, (), 1, 2, body.infer, body.run)
    for trips, does in ((3, "slices all of the axis"), (4, "fails behind these")):
        (doubt,) = LOOP.infer([Tensor.of(np.array(trips)), start, tensor("f32", 3)], {}, {"body": part}).doubts
        assert doubt.message == f"`trip_count` is {trips}, but there are 2 slices: OpenVINO {does}, here it ends"


def test_a_carried_value_may_grow():
    last, joined = loop(growing(0), 2, TRUE, np.float32([[5, 6]]))
    assert last.shape == (3, 2)
    assert joined.shape == (5, 2)


def test_the_counter_may_be_carried_by_the_body():
    body = Body(
        (BodyInput(-1, 0, purpose="current_iteration"),),
        (BodyOutput(0, 0), BodyOutput(-1, 1, purpose="execution_condition")),
        ((0, 0),),
        1,
        2,
        lambda tensors: [Tensor("i64", (1,)), Tensor("boolean", (), TRUE)],
        lambda arrays: [arrays[0] + 5, TRUE],
        (Tensor("i64", (1,)),),
    )
    assert loop(body, 3, TRUE)[0].tolist() == [15]


def test_a_known_trip_count_gives_the_size_of_joined_outputs():
    start, value = Tensor.of(TRUE), tensor("f32", 2)
    assert loop_shapes(counting(part=2), Tensor.of(np.array(3)), start, value) == [(2,), (6,)]
    trips = fresh(name="trips")
    count = Tensor("i64", (), np.array(trips, object))
    assert loop_shapes(counting(part=2), count, start, value) == [(2,), (trips * 2,)]


def test_an_unknown_condition_bounds_the_size_of_joined_outputs():
    start, value = Tensor.of(TRUE), tensor("f32", 1)
    (size,) = loop_shapes(counting(limit=5), Tensor.of(np.array(3)), start, value)[1]
    assert (size.low, size.high) == (1, 3)
    (size,) = loop_shapes(counting(), Tensor.of(np.array(3)), Tensor("boolean", ()), value)[1]
    assert (size.low, size.high) == (0, 3)
    (size,) = loop_shapes(counting(limit=5), Tensor("i64", ()), start, value)[1]
    assert size.high is None


def test_a_false_start_is_no_iteration():
    shapes = loop_shapes(counting(), Tensor.of(np.array(3)), Tensor.of(FALSE), tensor("f32", 2))
    assert shapes == [(2,), (0,)]


def test_a_condition_that_is_false_after_the_first_iteration():
    body = counting(part=2)
    body = Body(
        body.inputs, body.outputs, ((0, 1),), 2, 2, lambda t: [t[1], Tensor("boolean", (), FALSE)], None, body.declared
    )
    shapes = loop_shapes(body, Tensor.of(np.array(7)), Tensor.of(TRUE), tensor("f32", 2))
    assert shapes == [(2,), (2,)]


def test_a_size_that_changes_is_unknown():
    start, trips = Tensor.of(TRUE), Tensor.of(np.array(3))
    last, joined = loop_shapes(growing(0), trips, start, tensor("f32", 1, 2))
    assert last[1] == joined[1] == 2
    assert not isinstance(last[0], int)
    assert not isinstance(joined[0], int)
    assert (last[0] == joined[0]) is not True


def test_a_size_that_does_not_change_stays_what_it_is():
    batch = fresh()
    last, _ = loop_shapes(growing(0), Tensor.of(np.array(3)), Tensor.of(TRUE), tensor("f32", 1, batch))
    assert last[1] is batch


def test_a_rank_that_changes_is_unknown():
    def infer(tensors):
        shape = tensors[0].shape
        return [Tensor("f32", None if shape is None else (1, *shape)), Tensor("boolean", (), TRUE)]

    body = Body(
        (BodyInput(2, 0),),
        (BodyOutput(0, 0), BodyOutput(-1, 1, purpose="execution_condition")),
        ((0, 0),),
        1,
        2,
        infer,
        lambda arrays: [arrays[0][None], TRUE],
    )
    assert loop_shapes(body, Tensor.of(np.array(3)), Tensor.of(TRUE), tensor("f32", 1)) == [None]
    assert loop(body, 3, TRUE, numbers(1))[0].shape == (1, 1, 1, 1)


def test_a_value_that_the_body_passes_on_stays_known():
    body = Body(
        (BodyInput(1, 0), BodyInput(2, 1)),
        (BodyOutput(0, 1, axis=0, stride=2, part_size=2), BodyOutput(-1, 0, purpose="execution_condition")),
        ((0, 0),),
        2,
        2,
        list,
        list,
    )
    assert loop_shapes(body, Tensor.of(np.array(3)), Tensor.of(TRUE), tensor("f32", 2)) == [(6,)]


def changed(body, **fields):
    values = {name: getattr(body, name) for name in body.__slots__} | fields
    return Body(**values)


def sliced_loop(**slicing):
    body = counting()
    return changed(body, inputs=(body.inputs[0], BodyInput(2, 1, axis=0, **slicing)), back_edges=())


def test_loop_5_c1_axis_outside_the_rank():
    body = counting()
    body = changed(body, inputs=(body.inputs[0], BodyInput(2, 1, axis=-2)))
    with pytest.raises(Violation, match="input 2 is sliced along axis -2, outside its rank 1"):
        loop(body, 1, TRUE, numbers(1))


def test_loop_5_c2_stride_of_zero():
    with pytest.raises(Violation, match="input 2 is sliced with stride 0"):
        loop(sliced_loop(stride=0), 1, TRUE, numbers(1))


def test_loop_5_c2_joined_in_parts_of_nothing():
    body = counting()
    condition = next(port for port in body.outputs if port.purpose)
    joined = BodyOutput(0, condition.result, axis=0, part_size=0)
    with pytest.raises(Violation, match="is joined with stride 1 and part_size 0"):
        loop(changed(body, outputs=(condition, joined)), 1, TRUE, numbers(1))


def test_loop_5_c3_end_outside_the_axis():
    with pytest.raises(Violation, match="start 0 and end 5 of input 2, whose axis has 1 elements, lie behind it"):
        loop(sliced_loop(end=5), 1, TRUE, numbers(1))


def test_loop_5_c4_parts_that_do_not_fill_the_axis():
    with pytest.raises(Violation, match="slices of 2 elements at stride 2 do not fill"):
        loop(sliced_loop(stride=2, part_size=2), 1, TRUE, numbers(1, 2, 3))


def test_loop_5_c5_different_numbers_of_slices():
    inputs = (BodyInput(2, 0, axis=0), BodyInput(3, 1, axis=0))
    body = changed(counting(), inputs=inputs, back_edges=(), declared=())
    with pytest.raises(Violation, match="input 3 has 1 slices, but input 2 has 2"):
        loop(body, 1, TRUE, numbers(1, 2), numbers(1))


def test_loop_5_c6_types_that_change():
    with pytest.raises(Violation, match="input 2 is i32, but parameter 1 of the body declares f32"):
        loop(counting(), 1, TRUE, np.int32([1]))


def test_loop_5_c7_join_axis_outside_the_rank():
    body = counting()
    outputs = (*body.outputs[:2], BodyOutput(1, 0, axis=2))
    with pytest.raises(Violation, match="result 0 is joined along axis 2, outside its rank 1"):
        loop(changed(body, outputs=outputs), 1, TRUE, numbers(1))


def test_loop_5_c8_results_that_do_not_join():
    with pytest.raises(Violation, match=r"output 1 joins \[1, 2\] of the first iteration and \[1, 3\] of iteration 1"):
        loop(growing(1), 3, TRUE, np.float32([[1]]))


@pytest.mark.parametrize(
    ("stride", "size", "given", "message"),
    [
        (1, 1, 2, "result 0 has 2 elements along axis 0, expected 1"),
        (-1, 1, 2, "result 0 has 2 elements along axis 0, expected 1"),
        (4, 4, 2, "result 0 has 2 elements along axis 0, expected 4"),
        (1, 2, 2, "result 0 has 2 elements along axis 0, but is joined at stride 1"),
        (1, 1, fresh() * 2, "result 0 has other than 1 elements along axis 0, expected 1"),
        (1, 1, fresh(2, 5), "result 0 has 2..5 elements along axis 0, expected 1"),
    ],
)
def test_loop_5_c12_results_that_are_no_step(stride, size, given, message):
    body = counting(part=2)
    outputs = (*body.outputs[:2], BodyOutput(1, 0, axis=0, stride=stride, part_size=size))
    with pytest.raises(Violation, match=f"^{re.escape(message)}$") as error:
        loop_shapes(changed(body, outputs=outputs), Tensor("i64", ()), Tensor.of(TRUE), tensor("f32", given))
    assert error.value.label == "C12"
    entry, name = error.value.place
    assert (entry, name) == (outputs[2], "stride" if size != abs(stride) else "part_size")


@pytest.mark.parametrize("given", [2, fresh()])
def test_a_loop_joins_results_as_long_as_a_step_whatever_its_part_size_is(given):
    body = counting(part=2)
    outputs = (*body.outputs[:2], BodyOutput(1, 0, axis=0, stride=-2))
    shapes = loop_shapes(changed(body, outputs=outputs), Tensor.of(np.array(3)), Tensor.of(TRUE), tensor("f32", given))
    assert shapes == [(given,), (given * 3,)]


def test_loop_5_c9_no_condition():
    body = counting()
    with pytest.raises(Violation, match="no <output> with the purpose `execution_condition`"):
        loop(changed(body, outputs=body.outputs[:1]), 1, TRUE, numbers(1))


def test_loop_5_c10_condition_that_is_no_boolean():
    body = changed(counting(), infer=lambda tensors: [tensors[1], tensor("f32", 2)])
    with pytest.raises(Violation, match=r"result 1 of the body is f32\[2\], expected one boolean"):
        loop(body, 1, TRUE, numbers(1))


def test_loop_5_c10_condition_of_a_size_that_only_a_run_tells():
    body = changed(counting(), run=lambda arrays: [arrays[1], np.array([True, True])])
    arrays = [np.array(1), TRUE, numbers(1)]
    with pytest.raises(Violation, match=r"result 1 of the body is boolean\[2\], expected one boolean") as error:
        LOOP.kernel(*arrays, bodies={"body": body})
    assert error.value.label == "C10"


def test_loop_5_c11_counter_that_is_no_integer():
    with pytest.raises(Violation, match=r"parameter 0 of the body is f32\[1\], expected one i32 or i64"):
        loop(counting(counter="f32"), 1, TRUE, numbers(1))


# Constants, inputs and variables


def test_a_parameter_is_what_it_declares():
    shape = (1, fresh())
    outputs = OPS["Parameter-1"].infer([], {"shape": shape, "element_type": "f16"}).outputs
    assert outputs == [Tensor("f16", shape)]
    assert OPS["Parameter-1"].infer([], {"shape": None, "element_type": "dynamic"}).outputs == [Tensor("dynamic", None)]


@pytest.mark.parametrize("name", ["Parameter-1", "Constant-1"])
def test_what_has_no_kernel_says_so(name):
    op = OPS[name]
    with pytest.raises(NotImplementedError, match="has no kernel"):
        op.kernel(**{attr.keyword: 0 for attr in op.attrs})


def test_constant_1_c1_unknown_dimension():
    attrs = {"element_type": "f32", "shape": (2, fresh()), "offset": 0, "size": 4}
    with pytest.raises(Violation, match=r"`shape` is \[2, \?\], expected a size for every dimension"):
        OPS["Constant-1"].infer([], attrs)
    assert OPS["Constant-1"].infer([], attrs | {"shape": (1,)}).outputs == [tensor("f32", 1)]


def test_a_result_passes_its_input_on():
    known = Tensor.of(np.array([1, 2]))
    assert OPS["Result-1"].infer([known], {"output_names": ()}).outputs == [known]


def test_a_variable_of_opset3_starts_with_its_input():
    state = {}
    read, assign = OPS["ReadValue-3"].kernel, OPS["Assign-3"].kernel
    assert read(numbers(1), variable_id="v", state=state).tolist() == [1]
    assert assign(numbers(5), variable_id="v", state=state).tolist() == [5]
    assert read(numbers(1), variable_id="v", state=state).tolist() == [5]
    assert read(numbers(1), variable_id="other", state=state).tolist() == [1]
    batch = fresh()
    assert OPS["ReadValue-3"].infer([tensor("f32", batch)], {"variable_id": "v"}).outputs == [tensor("f32", batch)]


def test_readvalue_3_c1_empty_variable_id():
    with pytest.raises(Violation, match="`variable_id` is empty"):
        OPS["ReadValue-3"].infer([tensor("f32", 1)], {"variable_id": ""})


def test_readvalue_3_c2_stored_value_of_another_shape():
    state = {"v": np.zeros((2, 3))}
    message = r"variable `v` is f64\[2, 3\], but `init_value` is f32\[1\]"
    with pytest.raises(Violation, match=message):
        OPS["ReadValue-3"].kernel(numbers(1), variable_id="v", state=state)


def read(init, shape, state, type="f32"):
    attrs = {"variable_id": "v", "variable_type": type, "variable_shape": shape}
    op = OPS["ReadValue-6"]
    (inferred,) = op.infer([None if init is None else Tensor.of(init)], attrs).outputs
    value = op.kernel(init, **attrs, state=state)
    assert inferred.shape is None or len(inferred.shape) == value.ndim
    return value


def test_a_variable_of_opset6_starts_with_its_input_or_zeros():
    assert read(numbers(1, 2), (fresh(),), {}).tolist() == [1, 2]
    zeros = read(None, (2, 1), {}, "i8")
    assert zeros.tolist() == [[0], [0]]
    assert zeros.dtype == np.int8
    assert read(None, (fresh(), 3), {}).shape == (0, 3)
    assert read(None, None, {}).shape == (0,)


def test_a_variable_of_opset6_may_change_its_unknown_sizes():
    state = {}
    OPS["Assign-6"].kernel(numbers(1, 2, 3), variable_id="v", state=state)
    assert read(numbers(1), (fresh(),), state).tolist() == [1, 2, 3]
    assert read(numbers(1), None, state, "dynamic").tolist() == [1, 2, 3]


def test_readvalue_6_c1_empty_variable_id():
    attrs = {"variable_id": "", "variable_type": "f32", "variable_shape": ()}
    with pytest.raises(Violation, match="`variable_id` is empty"):
        OPS["ReadValue-6"].infer([], attrs)


def test_readvalue_6_c2_shape_that_does_not_cover_the_input():
    with pytest.raises(Violation, match=r"`init_value` is \[2\], but `variable_shape` is \[3\]"):
        read(numbers(1, 2), (3,), {})


def test_readvalue_6_c3_type_of_the_input():
    with pytest.raises(Violation, match="`init_value` is f32, but `variable_type` is f16"):
        read(numbers(1), (1,), {}, "f16")
    with pytest.raises(Violation, match="`variable_type` is dynamic, expected a type"):
        read(None, (1,), {}, "dynamic")


def test_readvalue_6_c4_stored_value_of_another_shape():
    with pytest.raises(Violation, match=r"variable `v` is f32\[1\], expected f32\[2\]"):
        read(None, (2,), {"v": numbers(1)})
    with pytest.raises(Violation, match=r"variable `v` is f32\[1\], expected i32\[1\]"):
        read(None, (1,), {"v": numbers(1)}, "i32")


def test_assign_3_c1_empty_variable_id():
    with pytest.raises(Violation, match="`variable_id` is empty"):
        OPS["Assign-3"].infer([tensor("f32", 1)], {"variable_id": ""})


def test_assign_6_c1_empty_variable_id():
    with pytest.raises(Violation, match="`variable_id` is empty"):
        OPS["Assign-6"].infer([tensor("f32", 1)], {"variable_id": ""})
