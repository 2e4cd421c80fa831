"""The command line, run as a process."""

import ast
import inspect
import json
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from command_line import COMMAND, irrun
from forked import can_be_copied, nursery
from ir_builder import Model

from irrun.__main__ import annotations_of, cleandoc, signature
from irrun.spec.registry import registry

SAMPLES = Path(__file__).parent.parent / "samples"
INVALID = Path(__file__).parent / "invalid"
CNN = SAMPLES / "cnn" / "model.xml"


@pytest.mark.skipif(not can_be_copied(), reason="there are new processes alone")
@pytest.mark.parametrize(
    ("args", "status"),
    [
        (["execute", CNN, "--random", "3"], 0),
        (["validate", INVALID / "five_defects.xml", "nothing.xml"], 1),
        (["explain", "E999"], 2),
        (["compare", CNN, "engine:numpy", "--random", "3", "--top", "x"], 2),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_copied_process_says_what_a_new_one_says(args, status, tmp_path):
    """Those of other tests are copies as a rule: see `command_line`."""
    words = [*map(str, args)]
    new = subprocess.run([*COMMAND, *words], capture_output=True, check=False, cwd=tmp_path)
    copy = nursery().run(words, tmp_path, 60)
    assert new.returncode == status
    assert (copy.returncode, copy.stdout, copy.stderr) == (new.returncode, new.stdout, new.stderr)


def test_help_loads_neither_numpy_nor_an_xml_parser():
    script = (
        "import sys; sys.argv = ['irrun', '--help']\n"
        "from irrun.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'lxml', 'pyexpat', 'scipy', 'ml_dtypes'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("[]")


def test_validate_does_not_load_scipy():
    script = (
        f"import sys; sys.argv = ['irrun', 'validate', {str(CNN)!r}]\n"
        "from irrun.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'scipy', 'openvino'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("[]")


def test_validate_loads_numpy_only_where_a_value_has_to_be_computed():
    assert loaded("validate", CNN) == []
    assert loaded("validate", SAMPLES / "sparse-fill-empty-rows" / "model.xml") == ["numpy"]


def test_execute_loads_only_what_every_run_needs():
    script = (
        f"import sys; sys.argv = ['irrun', 'execute', {str(CNN)!r}, '--random', '1']\n"
        "from irrun.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "seldom = {'scipy', 'lxml', 'rich', 'llvmlite', 'logging', 'email', 'importlib.metadata', "
        "'irrun.run.generation', 'irrun.run.keys', 'irrun.run.comparison', 'irrun.engines.onednn', 'irrun.tools'}\n"
        "print(sorted(seldom & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_process_ends_when_all_is_written_and_all_that_waits_for_its_end_is_done(tmp_path):
    (tmp_path / "own.py").write_text(
        "import atexit, threading, time\n"
        "def late():\n    time.sleep(0.2)\n    print('late', flush=True)\n"
        "threading.Thread(target=late).start()\n"
        "atexit.register(lambda: print('last', end=''))\n"
    )
    command = [sys.executable, "-m", "irrun", "validate", "--ops", tmp_path / "own.py"]
    for model, status in ((CNN, 0), (INVALID / "five_defects.xml", 1), (tmp_path / "none.xml", 2)):
        done = subprocess.run([*command, model], capture_output=True, text=True, check=False)
        assert done.returncode == status
        assert "Traceback" not in done.stderr
        if status < 2:
            assert "late\n" in done.stdout
            assert done.stdout.endswith("last")


def test_an_exception_is_no_silent_end():
    script = "import irrun.cli, irrun.__main__\nirrun.cli.main = lambda **_: 1 / 0\nirrun.__main__.run()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_ctrl_c_while_the_command_line_loads_ends_as_later_ones_do():
    script = (
        "import signal, sys, irrun.__main__\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'click': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "irrun.__main__.run()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_ctrl_c_before_the_command_line_loads_ends_as_later_ones_do():
    script = (
        "import signal, irrun.__main__\n"
        "irrun.__main__.defer = lambda *_, **known: signal.raise_signal(signal.SIGINT)\n"
        "irrun.__main__.run()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has no SIGHUP")
def test_a_process_that_is_told_to_end_leaves_no_half_of_a_file(tmp_path):
    script = (
        "import signal, sys, irrun.cli, irrun.__main__\n"
        "from pathlib import Path\n"
        "from irrun.files import whole_file\n"
        "def main(**_):\n"
        "    with whole_file(Path('out')):\n"
        "        signal.raise_signal(signal.SIGHUP)\n"
        "        try: signal.raise_signal(signal.SIGTERM)\n"
        "        finally: signal.raise_signal(signal.SIGTERM)\n"  # as `timeout` sends it
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"  # as `nohup` has it
        "irrun.cli.main = main\n"
        "irrun.__main__.run()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (143, "")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_once_more_does_not_interrupt_the_end():
    script = (
        "import atexit, signal, irrun.cli, irrun.__main__\n"
        "def again():\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "    print('all done', flush=True)\n"
        "def main(**_):\n"
        "    atexit.register(again)\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "irrun.cli.main = main\n"
        "irrun.__main__.run()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "all done\n", "interrupted\n")


def test_numpy_loads_without_its_docstrings_and_with_all_else():
    script = (
        "import sys, numpy\n"
        "from irrun.__main__ import UNREAD\n"
        "print(all(vars(sys.modules[name]).get('__file__') for name in UNREAD), numpy.__version__)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    there, version = done.stdout.split()
    assert there == "True" or version < "2", "numpy has them elsewhere now"
    script = (
        "import sys; sys.argv = ['irrun', '--version']\n"
        "import atexit, irrun.__main__\n"
        "def late():\n"
        "    import numpy.typing, numpy.testing, scipy.special, ml_dtypes\n"
        "    import numpy.ma, scipy.fft, scipy.signal, scipy.ndimage\n"
        "    import lxml.etree, rich.console, jinja2, sarif_pydantic\n"
        "    print(numpy.add(1, 2), numpy.array.__doc__)\n"
        "irrun.cli.main = lambda **_: late()\n"
        "irrun.__main__.run()"
    )
    done = subprocess.run(
        [sys.executable, "-c", "import irrun.cli\n" + script], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("3 ")


def test_modules_that_are_seldom_used_are_there_once_somebody_uses_them(tmp_path):
    (tmp_path / "own.py").write_text(
        "import sys\n"
        "print(*(type(sys.modules[name]).__name__ for name in ('gettext', 'inspect')))\n"
        "import pathlib\n"
        "from inspect import cleandoc, signature\n"
        "print('inspect' in sys.modules and not hasattr(sys.modules['inspect'], '__path__'))\n"
        "print(pathlib.Path('/a b').as_uri(), cleandoc('a\\n  b'), signature(lambda a, *, b: 0), sep='|')\n"
        "import ast, gettext, inspect, textwrap, urllib.parse\n"
        "print(inspect.isfunction(print), inspect.signature(lambda c: 0))\n"
        "print(ast.literal_eval('[1]'), gettext.gettext('x'), gettext.ngettext('x', 'xs', 2))\n"
        "print(urllib.parse.quote_from_bytes(b' '), textwrap.dedent('  a'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "irrun", "validate", "--ops", tmp_path / "own.py", CNN],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[:7] == [
        "_Deferred _Deferred",
        "True",
        "file:///a%20b|a",
        "b|(a, *, b)",
        "False (c)",
        "[1] x xs",
        "%20 a",
    ]


def test_texts_of_help_and_ops_are_cleaned_as_inspect_cleans_them():
    texts = [(op.doc or op.kernel.__doc__ or "") for op in registry().ops.values()]
    texts += ["", " a ", "\n\n  a\n    b\n\n\tc\n \n", "a\n\n", "a\n b\nc", "\n", "a\n \n  b", "\ta\n\tb", " \n a\n "]
    for text in texts:
        assert cleandoc(text) == inspect.cleandoc(text)
    assert len(texts) > 200


def test_signatures_are_those_of_inspect_but_for_functions_of_numpy():
    assert signature(cleandoc) == inspect.signature(cleandoc)
    assert signature(cleandoc, eval_str=True).return_annotation is str
    assert signature(len) == inspect.signature(len)
    exec("def dispatcher(a, b=None): return (a, b)", own := {"__name__": "numpy._core.multiarray"})
    assert signature(own["dispatcher"]) is None


def test_annotations_are_those_of_inspect():
    class Own:
        first: "int"
        second: str = ""

    class Derived(Own):
        pass

    for of in (Own, Derived, int, cleandoc):
        assert annotations_of(of) == inspect.get_annotations(of)
    assert annotations_of(Own, eval_str=True) == {"first": int, "second": str}
    annotations_of(Own).clear()
    assert len(annotations_of(Own)) == 2


def test_numpy_has_its_types_where_somebody_asks_for_them():
    script = (
        "import sys\n"
        "from irrun.deferred import defer, defer_part\n"
        "defer('numpy')\n"
        "defer_part('numpy', '_typing', NDArray=list)\n"
        "import numpy\n"
        "numpy.linalg\n"
        "print('numpy._typing._array_like' in sys.modules)\n"
        "import numpy.typing\n"
        "print(numpy.typing.NDArray is not list, numpy._typing is sys.modules['numpy._typing'], numpy.typing.ArrayLike)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False\nTrue True ")


def test_a_module_whose_loading_is_interrupted_is_loaded_when_it_is_asked_again(tmp_path):
    """As by a signal while lxml tries which names `inspect` has, for which any error is an answer."""
    (tmp_path / "late.py").write_text("import sys\nif sys.argv.pop() == 'stop': sys.exit(143)\nname = 1\n")
    script = (
        "import sys\n"
        "from irrun.deferred import defer\n"
        "sys.argv = ['go', 'stop']\n"
        "defer('late', known=2)\n"
        "import late\n"
        "try: late.name\n"
        "except SystemExit: print(late.known, late.name, late.known)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "2 1 2\n"


def loaded(*arguments):
    """`["numpy"]` where a command loads that, and does not only make it ready to be loaded."""
    script = (
        f"import sys; sys.argv = ['irrun', *{list(map(str, arguments))!r}]\n"
        "from irrun.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(['numpy'] if {'numpy._core', 'numpy.core'} & set(sys.modules) else [])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return ast.literal_eval(done.stdout.splitlines()[-1])


def test_version_and_help():
    assert "version" in irrun("--version").stdout
    for command in ("validate", "execute", "generate", "ops", "explain", "schema"):
        assert "Usage" in irrun(command, "--help").stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("valdate", "there is no command `valdate`; did you mean `validate`?"),
        ("frobnicate", "there is no command `frobnicate`; there are compare, diff, edit,"),
        ("a\x1bb", "there is no command `a\\x1bb`; there are compare,"),
    ],
)
def test_a_command_that_is_none(name, message):
    assert message in irrun(name, CNN, status=2).stderr


def test_validate_a_good_model():
    assert irrun("validate", CNN).stdout.endswith("layers checked\n")


def test_validate_reports_five_defects_with_their_lines_in_one_run():
    done = irrun("validate", INVALID / "five_defects.xml", status=1)
    for heading in ("error[E306]", "error[E301]", "error[E401]", "error[E206]", "warning[W931]"):
        assert heading in done.stdout
    assert "help: did you mean `ReLU`?" in done.stdout
    assert "^^^^" in done.stdout
    assert done.stdout.endswith("4 errors, 1 warning\n")


def test_the_json_form_is_stable():
    report = json.loads(irrun("validate", "--format", "json", INVALID / "five_defects.xml", status=1).stdout)
    assert {key: report[key] for key in ("version", "ok", "errors", "warnings")} == {
        "version": 1,
        "ok": False,
        "errors": 4,
        "warnings": 1,
    }
    first = report["diagnostics"][0]
    assert list(first) == [
        *(
            "severity",
            "code",
            "constraint",
            "message",
            "file",
            "line",
            "column",
            "end_column",
            "layer",
            "help",
            "notes",
            "fixes",
        ),
    ]
    assert first["code"] == "E306"
    assert first["line"] == 11
    assert first["layer"] == {"id": 1, "name": "bounded", "type": "Clamp"}


def test_several_models_give_one_report_each():
    reports = json.loads(irrun("validate", "--format", "json", CNN, INVALID / "missing_input.xml", status=1).stdout)
    assert [report["ok"] for report in reports] == [True, False]


def test_strict_fails_on_warnings():
    path = INVALID / "unknown_attribute.xml"
    assert "warning[W930]" in irrun("validate", path).stdout
    irrun("validate", "--strict", path, status=1)


def test_a_shape_of_an_input_is_taken_into_account(tmp_path):
    model = Model()
    x, y = model.parameter("x", "f32", ("?",)), model.parameter("y", "f32", (3,))
    model.result(model.layer("Add", [x, y], [("f32", (3,))], auto_broadcast="numpy")[0])
    path = model.save(tmp_path)
    irrun("validate", path)
    assert "`a` is [2] and `b` is [3]" in irrun("validate", path, "--shape", "x=2", status=1).stdout
    assert "is no input of the model" in irrun("validate", path, "--shape", "z=2", status=2).stderr
    assert "is not of the form" in irrun("validate", path, "--shape", "x=2.5", status=2).stderr


def test_colour_only_where_it_is_wanted():
    path = INVALID / "missing_input.xml"
    assert "\x1b[" not in irrun("validate", path, status=1).stdout
    assert "\x1b[" in irrun("validate", path, status=1, env={"FORCE_COLOR": "1"}).stdout
    assert "\x1b[" not in irrun("validate", path, status=1, env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).stdout


@pytest.mark.parametrize("name", ["nothing.xml", "model.bin"])
def test_files_that_are_no_models(tmp_path, name):
    if name == "model.bin":
        (tmp_path / name).write_bytes(b"\x00" * 64)
        assert "error[E107]" in irrun("validate", tmp_path / name, status=1).stdout
    else:
        assert "there is no file" in irrun("validate", tmp_path / name, status=2).stderr


@pytest.mark.parametrize(
    "fragment",
    [
        '<layer ... type="ScatterElementsUpdate">\n<input>\n<port id="0">\n<dim>4</dim>\n</port>\n</input>\n</layer>\n',
        '<layer id="1" type="EmbeddingSegmentsSum">\n<input>\n<port id="2"/>\n<dim>4</dim>\n</port>\n</input>\n',
    ],
)
def test_a_fragment_pasted_from_the_specification_gets_a_helpful_error(tmp_path, fragment):
    path = tmp_path / "fragment.xml"
    path.write_text(fragment)
    done = irrun("validate", path, status=1)
    assert "error[E101]" in done.stdout
    assert "specification pages are abbreviated" in done.stdout
    assert f"{path}:{1 if '...' in fragment else 5}:" in done.stdout


def test_execute_prints_the_results():
    folder = SAMPLES / "embedding-segments-sum"
    done = irrun("execute", folder / "model.xml", "--inputs", folder / "inputs.npz")
    assert done.stdout == "segments f32[3, 2]\n[[-1.05 -1.2 ]\n [-0.2  -0.6 ]\n [-0.1   0.4 ]]\n"
    assert not done.stderr


def test_execute_writes_results_with_their_types(tmp_path):
    folder = SAMPLES / "sparse-fill-empty-rows"
    output = tmp_path / "out.npz"
    done = irrun("execute", folder / "model.xml", "--inputs", folder / "inputs.npz", "--output", output)
    assert not done.stdout
    written = np.load(output)
    assert written["output_values"].tolist() == [1, 2, 42, 3, 4, 42]
    assert all(isinstance(array, np.ndarray) for array in dict(written).values())
    with zipfile.ZipFile(output) as archive:
        assert archive.getinfo("empty_row_indicator.npy").comment == b"boolean"


def test_execute_takes_single_files_and_random_inputs(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((1, 3, 16, 16), np.float32))
    one = irrun("execute", CNN, "--input", f"image={tmp_path / 'x.npy'}").stdout
    assert one.startswith("probabilities f32[1, 10]")
    made = irrun("execute", CNN, "--random", 7, "--shape", "image=2,3,16,16").stdout
    assert made.startswith("probabilities f32[2, 10]")
    assert made == irrun("execute", CNN, "--random", 7, "--shape", "image=2,3,16,16").stdout


@pytest.mark.parametrize("engine", ["auto", "numpy", "reference"])
def test_execute_with_an_engine_and_a_profile(engine, tmp_path):
    done = irrun(
        *("execute", CNN, "--random", 7, "--engine", engine, "--threads", 1, "--profile", "--repeat", 3),
        *("--trace-file", tmp_path / "trace.json"),
    )
    assert done.stdout.startswith("probabilities f32[")
    head, *rows = done.stderr.splitlines()
    assert head.split() == ["layer", "type", "shape", "engine", "calls", "first", "ms", "share", "GFLOP/s"]
    (row,) = (row for row in rows if row.startswith("Convolution_47 "))
    assert ("kernel" in row) is (engine == "reference")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    convolutions = [event for event in events if event["name"] == "Convolution_47"]
    assert len(convolutions) == 3
    assert all(event["ph"] == "X" and event["dur"] > 0 for event in events)
    assert [event["ts"] for event in events] == sorted(event["ts"] for event in events)


def test_an_engine_that_is_not_installed(tmp_path):
    script = (
        f"import sys; sys.argv = ['irrun', 'execute', {str(CNN)!r}, '--random', '1', '--engine', 'onednn']\n"
        "import irrun.engines.onednn; irrun.engines.onednn.load = lambda *given, **options: None\n"
        "from irrun.cli import main\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert 'pip install "irrun[onednn]"' in done.stderr
    assert "Traceback" not in done.stderr


def test_a_failed_run_names_layer_line_constraint_and_position(tmp_path):
    folder = SAMPLES / "embedding-segments-sum"
    inputs = dict(np.load(folder / "inputs.npz"))
    inputs["indices"][2] = 5
    np.savez(tmp_path / "in.npz", **inputs)
    output = tmp_path / "out.npz"
    done = irrun("execute", folder / "model.xml", "--inputs", tmp_path / "in.npz", "--output", output, status=1)
    assert "`indices[2]` is 5, outside [0, 5)" in done.stderr
    assert "EmbeddingSegmentsSum-3 C" in done.stderr
    assert "model.xml:" in done.stderr
    assert list(tmp_path.iterdir()) == [tmp_path / "in.npz"]


def test_a_doubtful_run_warns_on_stderr(tmp_path):
    folder = SAMPLES / "embedding-segments-sum"
    inputs = dict(np.load(folder / "inputs.npz"))
    inputs["segment_ids"][:] = [2, 2, 0, 0]
    np.savez(tmp_path / "in.npz", **inputs)
    done = irrun("execute", folder / "model.xml", "--inputs", tmp_path / "in.npz")
    assert "warning: " in done.stderr
    assert "segment_ids" in done.stderr
    assert done.stdout.startswith("segments")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not a zip", "is not an .npz file"),
        (None, "holds Python objects, which irrun never unpickles"),
    ],
)
def test_inputs_that_cannot_be_read(tmp_path, content, message):
    path = tmp_path / "in.npz"
    if content is None:
        np.savez(path, image=np.array([{}]))
    else:
        path.write_bytes(content)
    assert message in irrun("execute", CNN, "--inputs", path, status=1).stderr


def test_wrong_use_is_status_2(tmp_path):
    assert "there is no file" in irrun("execute", CNN, "--inputs", "nothing.npz", status=2).stderr
    assert (
        "there is no folder" in irrun("execute", CNN, "--random", 1, "--output", tmp_path / "a" / "b", status=2).stderr
    )
    assert "NAME=file.npy" in irrun("execute", CNN, "--input", "x", status=2).stderr
    said = " ".join(irrun("execute", "--random", CNN, status=2).stderr.split())
    assert f"`{CNN}` is no seed, which is 0 or more" in said
    assert "without one, --random stands at the end, or before another option" in said
    (tmp_path / "link.xml").symlink_to("link.xml")
    assert "link.xml leads to no file" in irrun("inspect", tmp_path / "link.xml", status=2).stderr
    irrun("validate", status=2)
    irrun("unknown", status=2)


def test_a_name_that_is_too_long_for_a_file_is_none_of_a_side(tmp_path):
    name = "a" * 3000
    given = "--inputs", CNN.with_name("inputs.npz")
    for args in (
        ("compare", CNN, name, *given),
        ("compare", CNN, f"ov:{name}", *given),
        ("tune", CNN, "--device", name, *given, "-o", tmp_path / "out.xml"),
        ("report", CNN, "--compare", f"{name}.json", *given, "-o", tmp_path / "out.html"),
        ("reduce", CNN, "--diverges", name, *given, "-o", tmp_path / "out"),
    ):
        assert f"there is no {'device `' if 'ov:' in str(args[2]) else 'file '}aaa" in irrun(*args, status=2).stderr
    assert "there is no file aaa" in irrun("sweep", CNN, "--do", "compare", "--against", name, *given, status=3).stdout


def test_nan_is_no_number_of_an_option(tmp_path):
    given = "--inputs", CNN.with_name("inputs.npz")
    for args in (
        ("execute", CNN, *given, "--expect", CNN.with_name("inputs.npz"), "--rtol", "nan"),
        ("execute", CNN, *given, "--expect", CNN.with_name("inputs.npz"), "--atol", "NaN"),
        ("edit", CNN, "--weights", "f16", "-o", tmp_path / "out.xml", "--tolerance", "nan"),
        ("sweep", CNN, "--do", "validate", "--timeout", "nan"),
    ):
        assert "is no number" in irrun(*args, status=2).stderr
    assert "not of the form NAME=file.npy" in irrun("execute", CNN, "--input", "image=", status=2).stderr
    assert "1 ok" in irrun("sweep", CNN, "--do", "validate", "--timeout", "inf").stdout
    irrun("compare", CNN, "ov:CPU", *given, "--outputs-only", "--timeout", "inf")


@pytest.mark.parametrize(
    "command",
    [
        ("validate", CNN),
        ("inspect", CNN),
        ("execute", CNN, "--random", 1),
        ("compare", CNN, "engine:numpy", "--random", 1),
        ("extract", CNN, "--to", "Relu_50", "-o", "part.xml", "--random", 1),
        ("report", CNN, "-o", "report.html", "--random", 1),
        ("tune", CNN, "-o", "tuned.xml", "--random", 1),
    ],
    ids=lambda command: command[0],
)
def test_the_shape_of_no_input_is_wrong_use(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = irrun(*command, "--shape", "q=5", status=2)
    assert "`q` is no input of the model; its inputs are `image`" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_shape_that_nothing_reads_is_wrong_use():
    given = ("--inputs", CNN.with_name("inputs.npz"), "--shape", "image=1,3,8,8")
    assert "--shape is the shape of an input that --random makes up" in irrun("execute", CNN, *given, status=2).stderr
    done = irrun("execute", CNN, *given, "--random", 1, status=2)
    assert "there is an array for `image`, so that it is not made up" in done.stderr


def test_the_weights_go_by_one_name_everywhere(tmp_path):
    model = tmp_path / "alone.xml"
    model.write_bytes(CNN.read_bytes())
    for command in (("validate",), ("inspect",), ("execute", "--random", 1), ("print",)):
        irrun(*command, model, "--bin", CNN.with_suffix(".bin"))
    assert "--weights" not in irrun("execute", "--help").stdout
    irrun("execute", model, "--random", 1, "--weights", CNN.with_suffix(".bin"))


@pytest.mark.parametrize(
    "arguments",
    [
        *(("compare", "engine:numpy"), ("diff", CNN), ("generate", "--prompt-ids", 1), ("reduce", "--nonfinite")),
        *(("edit", "--fold", "-o"), ("extract", "--to", "Relu_50", "-o"), ("strip", "-o"), ("tune", "-o")),
    ],
)
def test_a_model_that_is_not_there_is_wrong_use_of_every_command(arguments, tmp_path):
    command, *options = (*arguments, tmp_path / "out.xml") if arguments[-1] == "-o" else arguments
    options += ["--random", 1, "-o", tmp_path / "out"] if command == "reduce" else []
    assert "there is no file nothing.xml" in irrun(command, "nothing.xml", *options, status=2).stderr
    assert "standard input is not read here" in irrun(command, "-", *options, status=2).stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["validate", "inspect", "print", "execute"])
def test_weights_that_are_named_and_not_there_are_wrong_use(command):
    assert "there is no file nothing.bin" in irrun(command, CNN, "--bin", "nothing.bin", status=2).stderr


def test_an_output_that_is_a_link_to_itself(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    for option in ("--output", "--trace-file"):
        done = irrun("execute", CNN, "--random", 1, option, loop, status=2)
        assert f"error: {loop} cannot be written: Too many levels of symbolic links" in done.stderr
    done = irrun("validate", CNN, "--output", loop, status=2)
    assert f"{loop} cannot be written: Too many levels of symbolic links" in done.stderr


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("image=" + "1" * 6000, "the shape of `image` has a dimension of 6000 characters, expected a number"),
        ("image=" + "0" * 6000 + "5", "the shape of `image` has a dimension of 6001 characters"),
        ("image=2.." + "9" * 6000, "the shape of `image` has a dimension of 6003 characters"),
        ("image=" + "9" * 20, "has the dimension `99999999999999999999`, which does not fit into 64 bits\n"),
        ("1" * 6000 + "=2", "[... 5700 characters ...]"),
    ],
    ids=["digits", "zeros", "bound", "large", "input"],
)
def test_numbers_that_python_refuses_to_convert(shape, message):
    for command in (("validate", CNN), ("execute", CNN, "--random", 1)):
        done = irrun(*command, "--shape", shape, status=2)
        assert message in done.stderr
        assert "set_int_max_str_digits" not in done.stderr
        assert len(done.stderr) < 1000


def test_python_dash_m(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "irrun", "validate", CNN], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("layers checked\n")
    done = subprocess.run([sys.executable, "-m", "irrun", "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: irrun [OPTIONS] COMMAND")


def test_letters_that_standard_output_has_not(tmp_path):
    path = tmp_path / "größe 模型.xml"
    path.write_bytes((INVALID / "unknown_attribute.xml").read_bytes())

    def written(format):
        command = [sys.executable, "-m", "irrun", "validate", path, "--format", format]
        env = {**os.environ, "PYTHONIOENCODING": "latin-1"}
        return subprocess.run(command, capture_output=True, check=True, env=env).stdout

    assert r"größe \u6a21\u578b.xml:" in written("text").decode("latin-1")
    assert ElementTree.fromstring(written("junit"))[0].get("name") == str(path)


def test_ops_as_json_is_json():
    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    ops = {op["name"]: op for op in json.loads(irrun("ops", "--json").stdout, parse_constant=refuse)}
    (clip,) = [attr for attr in ops["LSTMCell-4"]["attributes"] if attr["name"] == "clip"]
    assert clip["default"] == "inf"
    assert len(ops) > 200


def test_ops_lists_and_shows():
    assert "EmbeddingSegmentsSum-3 " in irrun("ops").stdout
    shown = irrun("ops", "ScatterElementsUpdate").stdout
    assert "ScatterElementsUpdate-3  in opset3 to opset11" in shown
    assert "reduction: none | sum | prod | min | max | mean, default none" in shown
    (data,) = json.loads(irrun("ops", "gather-8", "--json").stdout)
    assert data["attributes"][0]["name"] == "batch_dims"
    assert data["source"] == "movement/gather-8.rst"
    assert data["link"].startswith("https://github.com/openvinotoolkit/openvino/")
    assert data["link"].endswith("/operation-specs/movement/gather-8.rst")
    assert f"Source: {data['link']}\n" in irrun("ops", "gather-8").stdout
    assert "did you mean" in irrun("ops", "Gathr", status=2).stderr


def test_explain():
    assert irrun("explain", "E304").stdout.startswith("E304: sizes that disagree")
    assert "E101  not well-formed XML" in irrun("explain").stdout
    assert "there is no code E999" in irrun("explain", "E999", status=2).stderr


def test_a_custom_op_from_a_file(tmp_path):
    (tmp_path / "own.py").write_text(
        "from irrun.spec import FLOAT, Input, Output, op\n"
        "@op('Twice-1', types={'T': FLOAT}, inputs=[Input('x', 'T', '[*s]')], outputs=[Output('y', 'T', '[*s]')],\n"
        "    opsets=frozenset(), extension_versions=('extension',))\n"
        "def twice(x):\n    '''Twice.'''\n    return x + x\n"
    )
    model = Model()
    x = model.parameter("x", "f32", (2,))
    model.result(model.layer("Twice", [x], [("f32", (2,))], "extension", name="twice")[0])
    path = model.save(tmp_path)
    assert "error[E301]" in irrun("validate", path, status=1).stdout
    irrun("validate", path, "--ops", tmp_path / "own.py")
    np.savez(tmp_path / "in.npz", x=np.float32([1, 2]))
    done = irrun("execute", path, "--ops", tmp_path / "own.py", "--inputs", tmp_path / "in.npz")
    assert "[2. 4.]" in done.stdout
    right = (tmp_path / "own.py").read_text()
    for wrong, given in (("(x + x).astype('f8')", "float64[2]"), ("(x + x)[:1]", "float32[1]")):
        (tmp_path / "own.py").write_text(right.replace("x + x", wrong))
        done = irrun("execute", path, "--ops", tmp_path / "own.py", "--inputs", tmp_path / "in.npz", status=1)
        assert f"error[E602]: Twice-1 gives {given} at output 0, but declares f32[2]" in done.stderr
    (tmp_path / "own.py").write_text("1 / 0")
    assert "ZeroDivisionError" in irrun("validate", path, "--ops", tmp_path / "own.py", status=2).stderr
