"""`irrun execute` as a process: what it reads and writes, what it expects, and what it says."""

import io
import os
import shlex
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from command_line import COMMAND, irrun
from ir_builder import Model

SAMPLES = Path(__file__).parent.parent / "samples"
CNN = SAMPLES / "cnn" / "model.xml"


@pytest.fixture
def doubled(tmp_path):
    """x of f32[N, 2] plus itself."""
    model = Model()
    x = model.parameter("x", "f32", ("?", 2))
    model.result(model.layer("Add", [x, x], [("f32", (-1, 2))], name="twice", names=["y"])[0])
    return model.save(tmp_path)


def saved(path, **arrays):
    np.savez(path, **arrays)
    return path


def test_results_are_compared_with_those_expected(doubled, tmp_path):
    inputs = saved(tmp_path / "x.npz", x=np.float32([[1, 2], [3, 4]]))
    right = saved(tmp_path / "right.npz", y=np.float32([[2, 4], [6, 8.001]]))
    done = irrun("execute", doubled, "--inputs", inputs, "--expect", right)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "as expected within 0.001 of each number and 1e-05\n"
    wrong = saved(tmp_path / "wrong.npz", y=np.float32([[2, 4.1], [6, 9]]))
    done = irrun("execute", doubled, "--inputs", inputs, "--expect", wrong, status=1)
    assert done.stderr == "error: `y` (f32) differs in 2 of 4 elements, most at [1, 1]: 8.0, expected 9.0\n"
    assert irrun("execute", doubled, "--inputs", inputs, "--expect", wrong, "--rtol", "0.2").returncode == 0
    assert irrun("execute", doubled, "--inputs", inputs, "--expect", wrong, "--atol", "1").returncode == 0


def test_arrays_that_numpy_has_saved_without_names_are_the_inputs_in_order(doubled, tmp_path):
    np.savez(tmp_path / "x.npz", np.float32([[1, 2]]))
    assert irrun("execute", doubled, "--inputs", tmp_path / "x.npz").stdout == "y f32[1, 2]\n[[2. 4.]]\n"


def test_outputs_of_which_nothing_is_expected_are_named(tmp_path):
    import irrun as package

    with package.build("two", opset=13) as g:
        x = g.Parameter("f32[2]", name="x")
        g.Result(g.Abs(x, name="size"))
        g.Result(g.Negative(x, name="other"))
    package.write_model(g.model, tmp_path / "two.xml")
    np.savez(tmp_path / "x.npz", x=np.float32([1, -2]))
    np.savez(tmp_path / "y.npz", size=np.float32([1, 2]))
    done = irrun("execute", tmp_path / "two.xml", "--inputs", tmp_path / "x.npz", "--expect", tmp_path / "y.npz")
    warning, said = done.stderr.splitlines()
    assert warning == f"warning: {tmp_path / 'y.npz'} has no array for `other`"
    assert said == "the others are as expected within 0.001 of each number and 1e-05"
    np.savez(tmp_path / "y.npz", np.float32([1, 2]), np.float32([-1, 3]))
    command = "execute", tmp_path / "two.xml", "--inputs", tmp_path / "x.npz"
    note, said = irrun(*command, "--expect", tmp_path / "y.npz", status=1).stderr.splitlines()
    assert note.endswith("y.npz have no names: they are taken for the outputs in their order")
    assert said == "error: `other` (f32) differs in 1 of 2 elements, most at [1]: 2.0, expected 3.0"
    assert "--rtol says what --expect allows" in irrun(*command, "--rtol", "0.1", status=2).stderr


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"y": np.float32([1, 2])}, "error: `y` has shape [1, 2], expected [2]"),
        ({"z": np.float32([[1, 2]])}, "error: there is no output 'z'; the outputs are `y`"),
        ({}, "error: no array is expected"),
        ({"y": np.float32([[np.nan, 4]])}, "differs in 1 of 2 elements, most at [0, 0]: 2.0, expected nan"),
    ],
)
def test_what_cannot_be_as_expected(expected, message, doubled, tmp_path):
    inputs = saved(tmp_path / "x.npz", x=np.float32([[1, 2]]))
    done = irrun("execute", doubled, "--inputs", inputs, "--expect", saved(tmp_path / "e.npz", **expected), status=1)
    assert message in done.stderr


def test_integers_have_to_be_equal_and_nan_is_equal_to_nan(tmp_path):
    from irrun.run.expectation import differences
    from irrun.run.results import Results

    results = Results([("n", np.int64([10**9, 5])), ("f", np.float32([np.nan, np.inf]))], {})
    assert differences(results, {"n": np.int64([10**9, 5]), "f": np.float32([np.nan, np.inf])}, 1e-3, 1e-5) == []
    (sentence,) = differences(results, {"n": np.int64([10**9 + 1, 5])}, 1e-3, 1e-5)
    assert sentence == "`n` (i64) differs in 1 of 2 elements, most at [0]: 1000000000, expected 1000000001"
    (sentence,) = differences(results, {"f": np.float32([np.nan, -np.inf])}, 1e-3, 1e-5)
    assert sentence.endswith("most at [1]: inf, expected -inf")


def test_inputs_are_made_up_by_seed_0_where_none_is_given(doubled, tmp_path):
    irrun("execute", doubled, "--random", "-o", tmp_path / "a.npz")
    irrun("execute", doubled, "--random", 0, "-o", tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_inputs_that_were_made_up_are_saved(doubled, tmp_path):
    kept = tmp_path / "kept.npz"
    irrun("execute", doubled, "--random", 3, "--save-inputs", kept, "-o", tmp_path / "y.npz")
    with np.load(kept) as inputs, np.load(tmp_path / "y.npz") as outputs:
        assert list(inputs) == ["x"]
        np.testing.assert_array_equal(outputs["y"], 2 * inputs["x"])
    again = irrun("execute", doubled, "--inputs", kept, "--expect", tmp_path / "y.npz", "--rtol", 0, "--atol", 0)
    assert again.returncode == 0


def test_a_model_from_standard_input_and_results_to_standard_output():
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "irrun",
            "execute",
            "-",
            "--weights",
            CNN.with_suffix(".bin"),
            "--random",
            "3",
            "-o",
            "-",
        ],
        input=CNN.read_bytes(),
        capture_output=True,
        check=True,
    )
    with np.load(io.BytesIO(done.stdout)) as outputs:
        assert outputs["probabilities"].shape == (1, 10)
    broken = subprocess.run(
        [*COMMAND, "execute", "-", "--random", "3"],
        input=CNN.read_bytes(),
        capture_output=True,
        check=False,
    )
    assert broken.returncode == 1
    assert b"no weights are given" in broken.stderr


@pytest.mark.parametrize("option", ["--output", "--save-inputs", "--trace-file"])
def test_what_a_run_reads_is_not_overwritten(option, doubled, tmp_path):
    inputs = saved(tmp_path / "x.npz", x=np.float32([[1, 2]]))
    link = tmp_path / "link.npz"
    link.symlink_to(inputs)
    before = inputs.read_bytes()
    for target in (inputs, link, doubled, doubled.with_suffix(".bin")):
        done = irrun("execute", doubled, "--inputs", inputs, option, target, status=2)
        assert "is read by this run, and would be overwritten" in done.stderr
    assert inputs.read_bytes() == before


@pytest.fixture
def bounded(tmp_path):
    """A model with an input of shape [?, 2, 3..7]."""
    model = Model()
    x = model.parameter("x", "f32", ("?", 2, "3..7"))
    model.result(model.layer("Abs", [x], [("f32", (-1, 2, -1))], names=["y"])[0])
    return model.save(tmp_path)


@pytest.mark.parametrize(
    ("asked", "made"),
    [
        ("2,2,?", (2, 2, 3)),
        ("2,2,n", (2, 2, 3)),
        ("2,?,-1", (2, 2, 3)),
        ("?,?,..9", (1, 2, 3)),
        ("2,2,5..20", (2, 2, 5)),
        ("2,2,7", (2, 2, 7)),
    ],
)
def test_sizes_that_shape_leaves_open_are_within_what_the_model_declares(asked, made, bounded, tmp_path):
    irrun("execute", bounded, "--random", "--shape", f"x={asked}", "-o", tmp_path / "y.npz")
    with np.load(tmp_path / "y.npz") as outputs:
        assert outputs["y"].shape == made


@pytest.mark.parametrize("asked", ["2,2,8..9", "2,2,..2", "2,3..4,?", "2,2,2", "2,2"])
def test_sizes_that_the_model_does_not_declare_are_refused(asked, bounded):
    done = irrun("execute", bounded, "--random", "--shape", f"x={asked}", status=1)
    assert "input `x` is to have shape" in done.stderr
    assert "expected [?, 2, 3..7]" in done.stderr


def test_two_files_of_one_name_are_refused(doubled, tmp_path):
    done = irrun(
        "execute", doubled, "--random", 1, "-o", tmp_path / "a.npz", "--save-inputs", tmp_path / "a.npz", status=2
    )
    assert "would be written twice" in done.stderr


def test_the_types_of_a_file_of_results_stand_where_numpy_does_not_look(tmp_path):
    model = Model()
    x = model.parameter("x", "bf16", (2,))
    model.result(model.layer("Abs", [x], [("bf16", (2,))], names=["y"])[0])
    irrun("execute", model.save(tmp_path), "--random", 1, "-o", tmp_path / "y.npz")
    with np.load(tmp_path / "y.npz") as outputs:
        assert {name: array.dtype for name, array in dict(outputs).items()} == {"y": np.dtype(np.float32)}
    with zipfile.ZipFile(tmp_path / "y.npz") as archive:
        assert [info.comment for info in archive.infolist()] == [b"bf16"]


def test_a_result_that_is_not_finite_is_named(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (2, 2))
    model.result(model.layer("Sqrt", [x], [("f32", (2, 2))], names=["root"])[0])
    inputs = saved(tmp_path / "x.npz", x=np.float32([[1, -1], [np.inf, -4]]))
    done = irrun("execute", model.save(tmp_path), "--inputs", inputs)
    assert done.stderr == "warning: not finite: `root` (2 NaN and 1 infinite of 4, the first at [0, 1])\n"


def test_runs_go_on_from_what_variables_hold_and_failures_say_in_which(tmp_path):
    """Each run appends x [2], which fits to x after the first one alone."""
    model = Model()
    x = model.parameter("x", "f32", (2,))
    variable = {"variable_id": "v", "variable_type": "f32", "variable_shape": "?"}
    start = model.constant(np.zeros(0, np.float32))
    (read,) = model.layer("ReadValue", [start], [("f32", (-1,))], "opset6", **variable)
    (grown,) = model.layer("Concat", [read, x], [("f32", (-1,))], axis="0")
    model.layer("Assign", [grown], [("f32", (-1,))], "opset6", variable_id="v")
    (total,) = model.layer("Add", [grown, x], [("f32", (-1,))], name="total", auto_broadcast="numpy")
    model.result(total)
    path = model.save(tmp_path)
    assert "note:" not in irrun("execute", path, "--random", 1).stderr
    done = irrun("execute", path, "--random", 1, "--repeat", 3, status=1)
    assert done.stderr.startswith("note: in run 2 of 3: the variables are what is left by 1 run before\nerror[")
    assert "`total` (Add)" in done.stderr


def test_repeated_runs_are_measured_and_what_computes_is_said():
    done = irrun("execute", CNN, "--random", 1, "--repeat", 3, "--engine", "numpy", "--threads", 1, "--verbose")
    first, last = done.stderr.splitlines()
    assert first == "note: engine numpy: numpy, then the kernels of ops; 1 thread; precision auto"
    assert last.startswith("3 runs: the first ")
    assert "later ones minimum " in last
    assert " median " in last
    assert last.endswith(" ms")
    done = irrun("execute", CNN, "--random", 1, "--engine", "reference", "-v")
    assert done.stderr == "note: engine reference: every layer by the kernel of its op; precision declared\n"
    assert "is over before oneDNN is ready" in irrun("execute", CNN, "--random", 1, "-v").stderr


def test_made_up_inputs_are_as_large_as_layers_need(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", ("?", 1, "?", "?"))
    kernel = model.constant(np.ones((1, 1, 7, 7), np.float32))
    window = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    (y,) = model.layer("Convolution", [x, kernel], [("f32", (-1, 1, -1, -1))], names=["y"], **window)
    model.result(y)
    path = model.save(tmp_path)
    assert irrun("execute", path, "--random", 1).stdout.startswith("y f32[1, 1, 2, 2]")
    assert irrun("execute", path, "--random", 1, "--shape", "x=2,1,7,?").stdout.startswith("y f32[2, 1, 1, 2]")


def test_sizes_that_follow_from_weights_are_found_one_by_one(tmp_path):
    """Channels of 37, windows that need 7 rows and 5 columns, and a length that is that of another input."""
    model = Model()
    x, y = (model.parameter(name, "f32", ("?", "?", "?", "?")) for name in "xy")
    kernel = model.constant(np.ones((3, 37, 7, 5), np.float32))
    window = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    (seen,) = model.layer("Convolution", [x, kernel], [("f32", (-1, 3, -1, -1))], **window)
    turned = {"transpose_a": "false", "transpose_b": "false"}
    weights = model.constant(np.ones((53, 11), np.float32))
    (made,) = model.layer("MatMul", [y, weights], [("f32", (-1, -1, -1, 11))], **turned)
    model.result(seen)
    model.result(made)
    out = irrun("execute", model.save(tmp_path), "--random", 1).stdout
    assert "f32[1, 3, 2, 4]" in out
    assert ", 11]" in out


def test_sizes_that_nobody_can_guess_are_asked_for(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", ("?", "?"))
    shape = model.constant(np.int64([1, 1000]))
    model.result(model.layer("Reshape", [x, shape], [("f32", (1, 1000))], special_zero="false")[0])
    done = irrun("execute", model.save(tmp_path), "--random", 1, status=1)
    assert "no size that was tried (1 to 512) suits all layers" in done.stderr
    assert "--shape x=?,?; with 1, layer 2 `Reshape_2` (Reshape) cannot be computed: Reshape-1 C4: " in done.stderr


@pytest.mark.parametrize("type", ["Gather", "GatherElements", "ScatterElementsUpdate"])
def test_made_up_indices_lie_within_their_axis(type, tmp_path):
    model = Model()
    data, indices = model.parameter("data", "f32", (2, 3)), model.parameter("indices", "i64", (2, 3))
    (narrow,) = model.layer("Convert", [indices], [("i32", (2, 3))], destination_type="i32")
    axis = model.constant(np.int64(1))
    inputs, named, version = {
        "Gather": ([data, narrow, axis], {"batch_dims": "1"}, "opset8"),
        "GatherElements": ([data, narrow], {"axis": "1"}, "opset6"),
        "ScatterElementsUpdate": ([data, narrow, data, axis], {}, "opset3"),
    }[type]
    model.result(model.layer(type, inputs, [("f32", (2, 3))], version, names=["y"], **named)[0])
    path = model.save(tmp_path)
    for seed in range(3):
        assert irrun("execute", path, "--random", seed).stdout.startswith("y f32[2, 3]")


def test_why_no_size_suits_is_said_of_the_smallest(tmp_path):
    model = Model()
    x, repeats = model.parameter("x", "f32", ("?", 1)), model.constant(np.int64([2**62, 4]))
    model.result(model.layer("Tile", [x, repeats], [("f32", (-1, 4))])[0])
    done = irrun("execute", model.save(tmp_path), "--random", 1, status=1)
    why = f"layer 2 `Tile_2` (Tile) cannot be computed: output 0 has the shape [{2**62}, 4], which no memory could hold"
    assert done.stderr.endswith(f"--shape x=?,1; with 1, {why}\n")


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interruption_ends_with_its_own_status():
    script = (
        "import sys, time; sys.argv = ['irrun', 'ops']\n"
        "import irrun.spec.registry as registry\n"
        "def wait():\n    print('ready', flush=True)\n    time.sleep(60)\n"
        "registry.registry = wait\n"
        "from irrun.cli import main\nmain()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert error == "interrupted\n"


def test_names_are_completed():
    for words, expected in (("irrun explain E30", "E306"), ("irrun ops matm", "MatMul-1")):
        environment = {**os.environ, "_IRRUN_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": "2"}
        done = subprocess.run(COMMAND, env=environment, capture_output=True, text=True, check=True)
        assert f"plain,{expected}" in done.stdout.splitlines()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("command", [("-h",), ("ops",), ("validate", CNN), ("execute", CNN, "--random", 1, "-o", "-")])
def test_a_full_disk_behind_standard_output_is_said(command):
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run([*COMMAND, *map(str, command)], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr.decode() == "error: standard output cannot be written: No space left on device\n"


@pytest.mark.skipif(os.name == "nt", reason="folders that are in use can be removed")
def test_a_current_folder_that_is_gone_is_said_and_is_nothing_to_the_library(tmp_path):
    """Whether a model is found, and where results go, is nobody's guess then."""
    for command, status in (
        ([*COMMAND, "validate", str(CNN.absolute())], 2),
        ([sys.executable, "-P", "-c", f"import irrun; irrun.GraphExecutor({str(CNN.absolute())!r})"], 0),
    ):
        gone = tmp_path / "gone"
        gone.mkdir()
        inside = f"import os, sys; os.rmdir({str(gone)!r}); os.execv({sys.executable!r}, sys.argv[1:])"
        line = [sys.executable, "-P", "-c", inside, *command]
        done = subprocess.run(line, cwd=gone, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        assert "Traceback" not in done.stderr
        assert ("the current folder does not exist any more" in done.stderr) == (status == 2)


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
@pytest.mark.parametrize(
    "command",
    [("ops",), ("validate", CNN), ("execute", CNN, "--random", 1, "-o", "-"), ("report", CNN, "-o", "-"), ("-h",)],
)
@pytest.mark.parametrize("both", [False, True])
def test_nobody_behind_standard_output_is_no_fault_of_a_model(command, both):
    reading, writing = os.pipe()
    os.close(reading)
    stderr = writing if both else subprocess.PIPE
    done = subprocess.run([*COMMAND, *map(str, command)], stdout=writing, stderr=stderr, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr or b"") == (141, b"")


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_is_read_in_part_only_has_a_status_of_its_own(unbuffered):
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen(
        [sys.executable, "-m", "irrun", "schema"], stdout=subprocess.PIPE, env=environment
    ) as process:
        os.read(process.stdout.fileno(), 10)
        process.stdout.close()
        assert process.wait() == 141


@pytest.mark.skipif(os.name == "nt", reason="a shell of POSIX")
@pytest.mark.parametrize(
    ("command", "closed", "status"),
    [
        ("validate", "<&-", 0),
        ("validate", ">&-", 0),
        ("validate", ">&- 2>&-", 0),
        ("execute --random 1 --profile", "2>&-", 0),
        ("execute --random 1", "<&- >&- 2>&-", 0),
        ("execute", ">&- 2>&-", 1),
    ],
)
def test_streams_that_are_closed_are_nothing(command, closed, status):
    name, *options = command.split()
    python = shlex.join([sys.executable, "-m", "irrun", name, str(CNN), *options])
    done = subprocess.run(f"{python} {closed}", shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, "Error" in done.stderr) == (status, False)


def test_a_model_from_a_standard_input_that_is_closed_is_none():
    python = shlex.join([sys.executable, "-m", "irrun", "validate", "-"])
    done = subprocess.run(f"{python} <&-", shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith("error[E101]: the file has no XML element\n")


@pytest.mark.skipif(not Path("/dev/null").is_char_device(), reason="the system has no /dev/null")
def test_results_go_to_a_device(doubled):
    assert irrun("execute", doubled, "--random", 1, "-o", "/dev/null").stderr == "/dev/null: y\n"


def test_nothing_that_is_given_twice_is_left_out_in_silence(doubled, tmp_path):
    inputs = saved(tmp_path / "x.npz", x=np.float32([[1, 2]]))
    done = irrun("execute", doubled, "--inputs", inputs, "--inputs", inputs, status=2)
    assert "'--inputs': one file is taken, not 2" in done.stderr
    done = irrun("execute", doubled, "--input", "x=a.npy", "--input", "x=b.npy", status=2)
    assert "'--input': `x` is given twice: a.npy and b.npy" in done.stderr
    done = irrun("execute", doubled, "--random", 1, "--shape", "x=1,2", "--shape", "x=3,2", status=2)
    assert "'--shape': the shape of `x` is given twice" in done.stderr


def test_each_problem_of_the_inputs_has_a_line(doubled, tmp_path):
    done = irrun("execute", doubled, "--inputs", saved(tmp_path / "x.npz", X=np.float32([[1, 2]])), status=1)
    assert done.stderr == (
        "error: `X` is no input of the model; its inputs are `x`\nerror: no array for input `x` (f32[?, 2])\n"
    )


def test_a_module_of_ops_that_ends_the_process_is_said(doubled, tmp_path):
    (tmp_path / "ops.py").write_text("raise SystemExit(5)\n")
    assert "ops.py: SystemExit: 5" in irrun("ops", "--ops", tmp_path / "ops.py", status=2).stderr
