"""The executor: inputs bound, steps run, outputs named, errors placed, state kept."""

import gc
import threading
import warnings
import weakref

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.spec.dtypes import numpy_dtype
from run.models import ADD, anything, model, saved

F32 = "f32"


def add(model, a, b, dims=(2,), type=F32, **options):
    return model.layer("Add", [a, b], [(type, dims)], auto_broadcast="numpy", **options)[0]


@pytest.fixture
def doubled(tmp_path):
    """y = x + x, for f32 of shape [?, 2]."""
    model = Model()
    x = model.parameter("x", F32, ("?", 2))
    model.result(add(model, x, x, (-1, 2), name="sum", names=["y"]))
    return model.save(tmp_path)


def test_inputs_go_by_name_by_position_and_by_number(doubled):
    executor = irrun.GraphExecutor(doubled)
    x = np.float32([[1, 2]])
    for inputs in ({"x": x}, [x], {"0": x}, {"arr_0": x}):
        assert executor.run(inputs)["y"].tolist() == [[2, 4]]


def test_positions_are_no_names(tmp_path):
    """Inputs that are named by numbers, as the tracer of torch names them, in an order of their own."""
    model = Model()
    a, b = model.parameter("1", F32, (2,)), model.parameter("0", F32, (3,))
    model.result(add(model, a, a, name="first"))
    model.result(add(model, b, b, (3,), name="second"))
    executor = irrun.GraphExecutor(model.save(tmp_path))
    x, y = np.float32([1, 2]), np.float32([3, 4, 5])
    for inputs in ([x, y], {"1": x, "0": y}):
        outputs = executor.run(inputs)
        assert (outputs["first"].tolist(), outputs["second"].tolist()) == ([2, 4], [6, 8, 10])
    assert executor.run(executor.random_inputs(0))["second"].shape == (3,)
    with pytest.raises(irrun.InputError, match="3 arrays, but the inputs of the model are `1`, `0`"):
        executor.run([x, y, x])


def test_a_list_of_numbers_becomes_an_array_of_the_declared_type(doubled):
    y = irrun.GraphExecutor(doubled).run({"x": [[1, 2.5]]})["y"]
    assert y.dtype == np.float32
    assert y.tolist() == [[2, 5]]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, r"no array for input `x` \(f32\[\?, 2\]\)"),
        ({"z": np.zeros((1, 2))}, "`z` is no input of the model; its inputs are `x`"),
        ({"x": np.zeros((1, 2))}, "input `x` is f64, expected f32"),
        ({"x": np.zeros((1, 3), "f4")}, r"input `x` has shape \[1, 3\], expected \[\?, 2\]"),
        ({"x": np.zeros(2, "f4")}, r"input `x` has shape \[2\], expected \[\?, 2\]"),
        ({"x": np.zeros((1, 2), complex)}, "complex128, which the IR has no element type for"),
        ({"x": np.zeros((1, 2), object)}, "object, which the IR has no element type for"),
        ({"x": [[1, 2], [3]]}, "input `x` is no array"),
        ({"x": np.zeros((1, 2), "f4"), "0": np.zeros((1, 2), "f4")}, "gives input `x` a second time"),
    ],
)
def test_inputs_that_do_not_fit(doubled, inputs, message):
    with pytest.raises(irrun.InputError, match=message):
        irrun.GraphExecutor(doubled).run(inputs)


def test_the_name_of_a_tensor_goes_before_that_of_a_layer(tmp_path):
    """Exported encoder-decoders call the layer of `decoder_input_ids` `input_ids`; OpenVINO asks tensors alone."""
    model = Model()
    ids = model.parameter("input_ids", F32, (2,))
    other = model.parameter("decoder_input_ids", F32, (2,))
    total = add(model, ids, other, name="logits", names=["sum"])
    model.result(add(model, total, ids, name="sum", names=["logits"]))
    xml = model.save(tmp_path)
    swapped = xml.read_text().replace('name="input_ids" type', 'name="ids" type')
    xml.write_text(swapped.replace('name="decoder_input_ids" type', 'name="input_ids" type'))
    executor = irrun.GraphExecutor(xml)
    assert [info.names for info in executor.inputs] == [("input_ids", "ids"), ("decoder_input_ids",)]
    given = {"decoder_input_ids": np.float32([1, 2]), "input_ids": np.float32([10, 20])}
    assert executor.run(given)["logits"].tolist() == [21, 42]
    assert executor.run(given, outputs=["sum"])["sum"].tolist() == [11, 22]
    assert executor.run(given, outputs=["logits"])["logits"].tolist() == [21, 42]
    with pytest.raises(irrun.InputError, match="`sums` is no input of the model; its inputs are `input_ids`, `dec"):
        executor.run(given | {"sums": np.float32([1, 2])})


@pytest.mark.parametrize("type", ["string", "u1"])
def test_f64_is_no_other_type_that_numpy_has_no_name_for(type, tmp_path):
    model = Model()
    model.result(model.parameter("x", type, (8,)))
    with pytest.raises(irrun.InputError, match=f"input `x` is f64, expected {type}"):
        irrun.GraphExecutor(model.save(tmp_path)).run(np.zeros(8))


def test_an_input_that_is_made_up_has_no_shape_that_the_model_refuses(doubled):
    executor = irrun.GraphExecutor(doubled)
    for shape, said in ((("?", 3), r"\[\?, 3\]"), ((4, 3), r"\[4, 3\]"), ((2,), r"\[2\]")):
        with pytest.raises(irrun.InputError, match=rf"input `x` is to have shape {said}, expected \[\?, 2\]"):
            executor.random_inputs(0, {"x": shape})


def test_an_input_of_the_other_byte_order_is_taken(doubled):
    assert irrun.GraphExecutor(doubled).run({"x": np.array([[1, 2]], ">f4")})["y"].tolist() == [[2, 4]]


def test_bf16_inputs_come_as_bf16_or_as_f32_that_loses_nothing(tmp_path):
    model = Model()
    x = model.parameter("x", "bf16", (2,))
    model.result(add(model, x, x, type="bf16", name="sum"))
    executor = irrun.GraphExecutor(model.save(tmp_path))
    bf16 = numpy_dtype("bf16")
    assert executor.run({"x": np.array([1, 2], bf16)})["sum"].dtype == bf16
    assert executor.run({"x": np.float32([1, 2])})["sum"].tolist() == [2, 4]
    with pytest.raises(irrun.InputError, match="values that bf16 cannot hold exactly"):
        executor.run({"x": np.float32([1, 1.001])})


def test_outputs_are_named_by_tensor_by_producer_and_made_unique(tmp_path):
    model = Model()
    x = model.parameter("x", F32, (4,))
    axis = model.constant(np.int64(0))
    halves = model.layer("Split", [x, axis], [(F32, (2,)), (F32, (2,))], name="halves", num_splits="2")
    named = add(model, *halves, names=["first,second"])
    for value in (*halves, named, named):
        model.result(value)
    outputs = irrun.GraphExecutor(model.save(tmp_path)).run([np.float32([1, 2, 3, 4])])
    assert {name: array.tolist() for name, array in outputs.items()} == {
        "halves.0": [1, 2],
        "halves.1": [3, 4],
        "first": [4, 6],
        "first_1": [4, 6],
    }


def test_a_result_is_the_callers_own(tmp_path):
    model = Model()
    x = model.parameter("x", F32, (2,))
    shape = model.constant(np.int64([2, 1]))
    model.result(x)
    model.result(model.layer("Reshape", [x, shape], [(F32, (2, 1))], special_zero="false")[0])
    model.result(model.constant(np.float32([5]), "weights"))
    given = np.float32([1, 2])
    executor = irrun.GraphExecutor(model.save(tmp_path))
    for array in executor.run([given]).values():
        array[...] = 7
    assert given.tolist() == [1, 2]
    assert executor.run([given])["weights"].tolist() == [5]


def test_constants_are_folded_and_dead_layers_dropped(tmp_path):
    model = Model()
    x = model.parameter("x", F32, (2,))
    folded = add(model, model.constant(np.float32([1, 2])), model.constant(np.float32([3, 4])))
    model.result(add(model, x, folded))
    add(model, x, x)
    executor = irrun.GraphExecutor(model.save(tmp_path))
    assert len(executor._whole.preparation.general.program.instructions) == 1
    assert executor.run([np.float32([0, 0])]).popitem()[1].tolist() == [4, 6]


def test_memory_is_freed_at_the_last_use(tmp_path):
    model = Model()
    value = model.parameter("x", F32, (2,))
    for _ in range(3):
        value = add(model, value, value)
    model.result(value)
    steps = irrun.GraphExecutor(model.save(tmp_path))._whole.preparation.general.program.instructions
    assert [step.frees for step in steps] == [(0,), (steps[0].outputs[0],), (steps[1].outputs[0],)]


def test_a_model_with_errors_is_not_run(tmp_path):
    model = Model()
    model.result(add(model, model.parameter("x", F32, (2,)), model.parameter("y", F32, (3,))))
    with pytest.raises(irrun.IRError, match=r"model.xml:\d+:1: error\[E401\]: Add-1 C1"):
        irrun.GraphExecutor(model.save(tmp_path))


def test_data_that_break_a_constraint_name_layer_line_and_position(tmp_path):
    model = Model()
    table = model.constant(np.zeros((5, 2), np.float32))
    ids = model.parameter("ids", "i32", ("?",))
    number = model.constant(np.int32(2))
    segments = model.parameter("segments", "i32", ("?",))
    pooled = model.layer("EmbeddingSegmentsSum", [table, ids, segments, number], [(F32, (2, 2))], "opset3", "pool")
    model.result(pooled[0])
    path = model.save(tmp_path)
    executor = irrun.GraphExecutor(path)
    with pytest.raises(irrun.ExecutionError, match=r"`indices\[1\]` is 9, outside \[0, 5\)") as error:
        executor.run([np.int32([0, 9]), np.int32([0, 1])])
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.label.startswith("C")
    assert diagnostic.layer.name == "pool"
    assert 'name="pool"' in path.read_text().split("\n")[diagnostic.line - 1] or diagnostic.notes
    with pytest.raises(irrun.ExecutionError, match="`num_indices` is 1 in `segment_ids`, but 2 in `indices`"):
        executor.run([np.int32([0, 1]), np.int32([0])])


def test_warnings_of_a_run_name_the_layer(tmp_path):
    model = Model()
    table = model.constant(np.ones((5, 2), np.float32))
    ids, segments = model.parameter("ids", "i32", (2,)), model.parameter("segments", "i32", (2,))
    number = model.constant(np.int32(2))
    model.result(
        model.layer("EmbeddingSegmentsSum", [table, ids, segments, number], [(F32, (2, 2))], "opset3", "pool")[0]
    )
    executor = irrun.GraphExecutor(model.save(tmp_path))
    with pytest.warns(UserWarning, match=r"model.xml:\d+: layer 4 `pool` \(EmbeddingSegmentsSum\): .*segment_ids"):
        executor.run([np.int32([0, 1]), np.int32([1, 0])])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        executor.run([np.int32([0, 1]), np.int32([0, 1])])


def stateful(folder):
    """total = total + x, from zeros; [2] of f32."""
    model = Model()
    x = model.parameter("x", F32, (2,))
    variable = {"variable_id": "total", "variable_type": F32, "variable_shape": "2"}
    start = model.constant(np.zeros(2, np.float32))
    read = model.layer("ReadValue", [start], [(F32, (2,))], "opset6", **variable)[0]
    total = add(model, read, x, names=["total"])
    model.layer("Assign", [total], [(F32, (2,))], "opset6", **variable)
    model.result(total)
    return model.save(folder)


def test_state_lives_between_runs_until_it_is_reset(tmp_path):
    executor = irrun.GraphExecutor(stateful(tmp_path))
    x = np.float32([1, 2])
    assert [executor.run([x])["total"].tolist() for _ in range(3)] == [[1, 2], [2, 4], [3, 6]]
    executor.reset_state()
    assert executor.run([x])["total"].tolist() == [1, 2]


def test_a_result_does_not_share_memory_with_the_state(tmp_path):
    executor = irrun.GraphExecutor(stateful(tmp_path))
    executor.run([np.float32([1, 2])])["total"][...] = 100
    assert executor.run([np.float32([1, 2])])["total"].tolist() == [2, 4]


def test_version_10_hands_out_the_types_of_its_time(tmp_path):
    model = Model(version=10)
    x, y = model.parameter("x", "f16", (2,)), model.parameter("y", "i64", (2,))
    model.result(add(model, x, x, type="f16"))
    model.result(add(model, y, y, type="i64"))
    first, second = irrun.GraphExecutor(model.save(tmp_path)).run([np.float32([1, 2]), np.int64([3, 4])]).values()
    assert first.dtype == np.float32
    assert second.dtype == np.int32
    assert second.tolist() == [6, 8]


def test_one_executor_serves_several_threads(doubled):
    executor = irrun.GraphExecutor(doubled)
    wrong = []

    def work(number):
        for _ in range(50):
            y = executor.run([np.full((3, 2), number, np.float32)])["y"]
            if not (y == 2 * number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_random_inputs_are_seeded_and_fit(doubled):
    executor = irrun.GraphExecutor(doubled)
    one, two = (executor.random_inputs(3, {"x": [4, 2]}) for _ in range(2))
    assert one["x"].shape == (4, 2)
    np.testing.assert_array_equal(one["x"], two["x"])
    assert executor.random_inputs(3)["x"].shape == (1, 2)
    assert executor.random_inputs(3, given={"x": 1}) == {"x": 1}


def test_an_executor_lets_go_of_its_model(doubled):
    executor = irrun.GraphExecutor(doubled)
    gone = weakref.ref(executor)
    del executor
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("engine", ["numpy", "onednn", "check"])
def test_large_results_of_runs_are_each_their_own(engine, tmp_path):
    """Of one size and of others; of a sum that is read again, too, and of one that is a result twice."""
    b = model()
    x = anything(b, "f4", (-1, 1024))
    double, read = b.one("Add-1", x, x, **ADD), b.one("Multiply-1", x, x, **ADD)
    for value in (double, b.one("ReLU-1", read), read, b.one("Abs-1", x)):
        b.result(value)
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    kept = []
    for rows in (300, 300, 310, 300, 310, 300):
        data = np.random.default_rng(len(kept)).standard_normal((rows, 1024), np.float32)
        kept.append((data, [*executor.run([data]).values()]))
    for data, (double, rectified, square, magnitude) in kept:
        np.testing.assert_array_equal(double, data + data)
        np.testing.assert_array_equal(square, data * data)
        np.testing.assert_array_equal(rectified, square)
        np.testing.assert_array_equal(magnitude, np.abs(data))
        assert double.flags.writeable
    everything = [array for data, results in kept for array in (data, *results)]
    assert not any(np.shares_memory(a, b) for n, a in enumerate(everything) for b in everything[:n])


@pytest.mark.parametrize("engine", ["numpy", "onednn"])
def test_a_large_result_that_nobody_keeps_is_gone(engine, tmp_path):
    b = model()
    x = anything(b, "f4", (-1, 1024))
    b.result(b.one("Add-1", x, x, **ADD))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    seen = []
    for rows in (300, 300, 310, 310, 300):
        (result,) = executor.run([np.ones((rows, 1024), np.float32)]).values()
        seen.append(weakref.ref(result))
        del result
    gc.collect()
    assert all(reference() is None for reference in seen)


@pytest.mark.parametrize("rows", [3, "?"])
def test_what_an_engine_may_have_wrong_because_it_is_not_finite_is_computed_by_the_kernel(rows, tmp_path):
    """Fourier transforms of engines spread what is infinite further than to sums that it is a part of."""
    model = Model()
    x, axis = model.parameter("x", F32, (rows, 8, 2)), model.constant(np.array([1]))
    dims = (-1 if rows == "?" else rows, 8, 2)
    model.result(model.layer("DFT", [x, axis], [(F32, dims)], version="opset7")[0])
    path, given = model.save(tmp_path), np.random.default_rng(0).standard_normal((3, 8, 2), np.float32)
    given[1, 2, 0] = np.inf
    expected, found = (irrun.GraphExecutor(path, engine=engine).run([given])[0] for engine in ("reference", "numpy"))
    np.testing.assert_allclose(found, expected, 1e-5, 1e-5)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"max_memory": "1GiB"}, TypeError, "`max_memory` is '1GiB', expected a whole number or None"),
        ({"max_memory": 1e9}, TypeError, "`max_memory` is 1000000000.0, expected a whole number or None"),
        ({"max_memory": -1}, ValueError, "`max_memory` is -1, expected 0 bytes or more"),
        ({"threads": "2"}, TypeError, "`threads` is '2', expected a whole number or None"),
        ({"threads": True}, TypeError, "`threads` is True, expected a whole number or None"),
        ({"threads": 0}, irrun.EngineError, "0 threads, expected 1 or more"),
    ],
)
def test_options_that_are_none_are_refused_at_once(doubled, options, error, said):
    with pytest.raises(error) as raised:
        irrun.GraphExecutor(doubled, **options)
    assert str(raised.value) == said
    executor = irrun.GraphExecutor(doubled, max_memory=np.int64(1 << 30), threads=np.int32(1))
    assert executor.run(np.float32([[1, 2]]))["y"].tolist() == [[2, 4]]
