"""Errors that a run passes over: what is computed all the same, and where it ends with an error of the layer."""

import numpy as np
import pytest
from command_line import irrun as command
from ir_builder import Model

import irrun
from irrun.check.ignoring import ignorable

GRID = np.arange(12, dtype=np.float32).reshape(3, 4)


def of_one(folder, type, inputs, outputs, constants=(), version="opset1", **data):
    """A model of one layer, of Parameters x0, x1, ..., with an Abs behind each output."""
    m = Model()
    given = [m.parameter(f"x{number}", *tensor) for number, tensor in enumerate(inputs)]
    given += [m.constant(array) for array in constants]
    for number, output in enumerate(m.layer(type, given, outputs, version, name="it", **data)):
        m.result(m.layer("Abs", [output], [output[2:]], name=f"y{number}")[0])
    return m.save(folder)


def mixed_sum(folder):
    return of_one(folder, "Add", [("f32", (3, 4)), ("f16", (3, 4))], [("f32", (3, 4))])


def scattered(folder, shape=(3, 4)):
    """Updates at positions along axis 1 that the run gives."""
    inputs = [("f32", shape), ("i64", (3, 1)), ("f32", (3, 1))]
    return of_one(folder, "ScatterElementsUpdate", inputs, [("f32", (3, 4))], [np.array(1)], "opset3")


def run(path, *arrays, **options):
    executor = irrun.GraphExecutor(path, **options)
    return executor, executor.run({f"x{number}": array for number, array in enumerate(arrays)})


@pytest.mark.parametrize("engine", ["auto", "reference", "check"])
def test_types_that_are_not_to_meet_are_computed_as_numpy_does(tmp_path, engine):
    path = mixed_sum(tmp_path)
    with pytest.raises(irrun.IRError, match="E303"):
        irrun.GraphExecutor(path)
    executor, results = run(path, GRID, GRID.astype(np.float16), ignore=("E303",), engine=engine)
    (found,) = executor.report.diagnostics
    assert (found.code, found.severity, found.ignored) == ("E303", "warning", True)
    assert found.message == "ignored: `b` is f16, but `a` is f32"
    assert executor.report.ok
    np.testing.assert_array_equal(results["y0"], 2 * GRID)


def test_results_have_the_type_that_the_file_declares(tmp_path):
    path = of_one(tmp_path, "Add", [("f32", (3, 4)), ("f16", (3, 4))], [("f16", (3, 4))])
    _, results = run(path, GRID, GRID.astype(np.float16), ignore=("E303",))
    assert results["y0"].dtype == np.float16
    np.testing.assert_array_equal(results["y0"], 2 * GRID)


def test_types_of_another_kind_are_an_error_of_the_layer(tmp_path):
    path = of_one(tmp_path, "SoftMax", [("i32", (1, 3))], [("f32", (1, 3))], axis="1")
    with pytest.raises(irrun.ExecutionError, match=r"E303.*: `data` is i32, which its kernel cannot compute"):
        run(path, np.array([[0, 0, 0]], np.int32), ignore=("E303",))


def test_indices_of_another_width_are_indices(tmp_path):
    inputs = [("f32", (3, 4)), ("i16", (2,))]
    path = of_one(tmp_path, "Gather", inputs, [("f32", (2, 4))], [np.array(0)], "opset8")
    _, results = run(path, GRID, np.array([2, 0], np.int16), ignore=("E303",))
    np.testing.assert_array_equal(results["y0"], GRID[[2, 0]])


def test_what_the_rule_refuses_but_numpy_broadcasts(tmp_path):
    inputs = [("f32", (3, 4)), ("f32", (4,))]
    path = of_one(tmp_path, "Add", inputs, [("f32", (3, 4))], auto_broadcast="none")
    _, results = run(path, GRID, GRID[0], ignore=("E401",))
    np.testing.assert_array_equal(results["y0"], GRID + GRID[0])


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_where_the_kernel_cannot_the_layer_is_an_error(tmp_path, engine):
    path = of_one(tmp_path, "SoftMax", [("f32", (3, 4))], [("f32", (3, 4))], version="opset8", axis="5")
    with pytest.raises(irrun.ExecutionError) as caught:
        run(path, GRID, ignore=("E401",), engine=engine)
    (found,) = caught.value.diagnostics
    assert (found.code, found.layer.name, found.severity) == ("E401", "it", "error")
    assert found.message.startswith("SoftMax-8 C1: `axis` is 5, outside [-2, 2) for rank 2, which its kernel cannot")
    assert found.line is not None


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_run_warns_of_what_only_its_arrays_show(tmp_path, engine):
    inputs = [("f32", "?,?"), ("f32", "1..8,?")]
    path = of_one(tmp_path, "Add", inputs, [("f32", (-1, -1))], auto_broadcast="none")
    with pytest.raises(irrun.IRError, match="E401"):
        run(path, GRID, GRID[:1], engine=engine)
    executor = irrun.GraphExecutor(path, ignore=("E401",), engine=engine)
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"model.xml:\d+: layer 2 `it` \(Add\): ignored E401: `a` is \[3, 4\]"):
            results = executor.run({"x0": GRID, "x1": GRID[:1]})
        np.testing.assert_array_equal(results["y0"], GRID + GRID[0])


@pytest.mark.parametrize("shape", [(3, 4), "?,?"])
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_an_index_beyond_the_data_is_an_error_of_the_run(tmp_path, shape, engine):
    path = scattered(tmp_path, shape)
    updates = np.float32([[9], [9], [9]])
    executor = irrun.GraphExecutor(path, ignore=("E401",), engine=engine)
    with pytest.raises(irrun.ExecutionError, match=r"E401.*C\d: `indices\[1, 0\]` is 7, outside"):
        executor.run({"x0": GRID, "x1": np.array([[0], [7], [3]]), "x2": updates})
    results = executor.run({"x0": GRID, "x1": np.array([[0], [1], [3]]), "x2": updates})
    assert results["y0"][[0, 1, 2], [0, 1, 3]].tolist() == [9, 9, 9]


def test_layers_behind_have_the_shapes_of_the_run(tmp_path):
    m = Model()
    x, y = m.parameter("x0", "f32", (3, 4)), m.parameter("x1", "f32", (4,))
    total = m.layer("Add", [x, y], [("f32", (3, 4))], auto_broadcast="none")[0]
    weights = m.constant(np.ones((4, 2), np.float32))
    m.result(m.layer("MatMul", [total, weights], [("f32", (3, 2))], name="y0")[0])
    _, results = run(m.save(tmp_path), GRID, GRID[0], ignore=("E401",))
    np.testing.assert_array_equal(results["y0"], (GRID + GRID[0]) @ np.ones((4, 2), np.float32))


def test_layers_with_bodies_and_states_are_not_passed_over(tmp_path):
    m = Model()
    x = m.parameter("x0", "f32", (2,))
    data = {"variable_id": "v", "variable_type": "f32", "variable_shape": "3"}
    (value,) = m.layer("ReadValue", [x], [("f32", (2,))], "opset6", **data)
    m.layer("Assign", [value], [], "opset6", variable_id="v")
    m.result(value)
    report = irrun.validate(m.save(tmp_path), ignore=("E4", "E303", "E304", "E305"))
    assert not report.ok
    assert not any(found.ignored for found in report.diagnostics)
    assert [note.message for note in report.errors[0].notes][
        -1
    ] == "it cannot be ignored: the layer has a body or a state"


@pytest.mark.parametrize("code", ["E301", "E3", "E206", "E1", "E503", "E302", "N2", "", "E999"])
def test_codes_without_which_there_is_nothing_to_compute(tmp_path, code):
    with pytest.raises(ValueError, match=r"cannot be ignored|there is no code"):
        ignorable([code])
    with pytest.raises(ValueError, match=r"cannot be ignored|there is no code"):
        irrun.GraphExecutor(mixed_sum(tmp_path), ignore=(code,))


def test_codes_and_beginnings_of_codes():
    assert ignorable(["E4", "E305", "W930", "W", "I901"]) == {"E401", "E305"}
    assert ignorable([]) == set()


def test_ignored_errors_go_with_declared_precision(tmp_path):
    with pytest.raises(ValueError, match="which need `declared`"):
        irrun.GraphExecutor(mixed_sum(tmp_path), ignore=("E303",), precision="f32")
    assert irrun.GraphExecutor(mixed_sum(tmp_path), ignore=("E303",), precision="declared").report.ok


def test_the_command_computes_what_it_can(tmp_path):
    path = mixed_sum(tmp_path)
    done = command("execute", path, "--random", 1, status=1)
    assert "error[E303]: `b` is f16, but `a` is f32\n" in done.stderr
    assert done.stderr.endswith("help: --ignore E303 computes such layers all the same, as far as their kernels can\n")
    done = command("execute", path, "--random", 1, "--ignore", "E303")
    assert "warning[E303]: ignored: `b` is f16, but `a` is f32\n" in done.stderr
    assert "y0 f32[3, 4]" in done.stdout
    assert "error[E303]" in command("execute", path, "--random", 1, "--ignore", "E401", status=1).stderr


def test_the_command_says_where_a_kernel_cannot(tmp_path):
    inputs = [("f32", (3, 4)), ("f32", (3,))]
    path = of_one(tmp_path, "Add", inputs, [("f32", (3, 4))])
    shown = command("execute", path, "--random", 1, "--ignore", "E401", status=1).stderr
    assert "warning[E401]: ignored: Add-1 C1: `a` is [3, 4] and `b` is [3]" in shown
    assert "error[E401]: Add-1 C1: " in shown
    assert "which its kernel cannot compute: ValueError: operands could not be broadcast together" in shown
    assert "help: --ignore" not in shown


def test_what_leads_to_what_is_not_there_is_no_matter_of_opinion(tmp_path):
    path = of_one(tmp_path, "Reshape", [("f32", (3, 4))], [("f32", (5, 4))], [np.array([5, 4])], special_zero="false")
    shown = command("execute", path, "--random", 1, "--ignore", "E401", status=1).stderr
    assert "error[E401]: Reshape-1 C4: `data` is [3, 4], 12 elements, expected 20 for `shape` [5, 4]\n" in shown
    assert "note: it cannot be ignored: what inputs hold leads to what is not there\n" in shown
    assert "help: --ignore" not in command("execute", path, "--random", 1, status=1).stderr


def test_updates_do_not_reach_other_rows(tmp_path):
    """Of more rows of indices than data have, with types that are ignored: the rule has not seen the sizes."""
    inputs = [("f32", (3, 4)), ("i64", (4, 1)), ("f16", (4, 1))]
    path = of_one(tmp_path, "ScatterElementsUpdate", inputs, [("f32", (3, 4))], [np.array(1)], "opset3")
    arrays = GRID, np.zeros((4, 1), np.int64), np.zeros((4, 1), np.float16)
    with pytest.raises(irrun.ExecutionError, match=r"cannot compute: IndexError: 4 indices along an axis of 3"):
        run(path, *arrays, ignore=("E303",))


@pytest.mark.parametrize("code", ["E301", "E2", "E501"])
def test_the_command_refuses_codes_that_cannot_be_ignored(tmp_path, code):
    shown = command("execute", mixed_sum(tmp_path), "--random", 1, "--ignore", code, status=2).stderr
    assert "cannot be ignored: there would be nothing to compute with; only E303, E304, E305 and E401 can" in shown


def test_the_command_wants_declared_precision(tmp_path):
    shown = command("execute", mixed_sum(tmp_path), "--ignore=E303", "--precision=f32", status=2).stderr
    assert "--ignore goes with --precision declared" in shown


def test_warnings_are_hidden_by_their_codes(tmp_path):
    path = of_one(tmp_path, "Abs", [("f32", (2,))], [("f32", (2,))], colour="red")
    assert "warning[W930]" in command("execute", path, "--random", 1).stderr
    assert "W930" not in command("execute", path, "--random", 1, "--ignore", "W9").stderr


def test_an_error_says_what_openvino_does_where_that_is_known(tmp_path):
    inputs, ids = [("f32", (3, 4))], [np.array([0, 1, 5]), np.array(2)]
    path = of_one(tmp_path, "SegmentMax", inputs, [("f32", (2, 4))], ids, "opset16", fill_mode="ZERO")
    (found,) = irrun.validate(path).errors
    assert found.message.startswith("SegmentMax-16 C3: ")
    assert "OpenVINO drops slices of later segments" in found.help
