"""irrun reduce as a process: commands that fail, crash and hang, other sides, and wrong use."""

import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import irrun
from ir_builder import Model

import irrun as package

SAMPLES = Path(__file__).parents[1] / "samples"
CNN, LOOP, BLOCK = (SAMPLES / name / "model.xml" for name in ("cnn", "stateful-loop", "transformer-block"))

CHECK = """
import os, re, signal, sys, time
text = open(sys.argv[1]).read()
if f'type="{sys.argv[2]}"' in text:
    print("layer of", sys.argv[2])
    if sys.argv[3] == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if sys.argv[3] == "hang":
        time.sleep(60)
    sys.exit(4)
"""


def reduced(folder, model, type, how, *options, status=0):
    script = folder / "check.py"
    script.write_text(CHECK)
    command = f"{shlex.quote(sys.executable)} -S {shlex.quote(str(script))} {{model}} {type} {how}"
    inputs = model.with_name("inputs.npz")
    return irrun("reduce", model, "--inputs", inputs, "-o", folder / "out", "--check", command, *options, status=status)


@pytest.mark.parametrize(
    ("model", "type", "how", "options", "said"),
    [
        (CNN, "SoftMax", "fail", ("--fail-code", 4, "--fail-regex", "layer of (.*)"), "exit 4, match SoftMax"),
        (LOOP, "Tanh", "crash", (), "exit SIGSEGV"),
        (CNN, "SoftMax", "hang", ("--timeout", 0.4), "exit none within 0.4 s"),
    ],
)
def test_a_command_that_fails_crashes_or_hangs_leaves_one_layer(tmp_path, model, type, how, options, said):
    done = reduced(tmp_path, model, type, how, *options)
    assert done.stdout.endswith(f"; {said}\n")
    assert "-> 1 layer," in done.stdout
    files = sorted(path.name for path in (tmp_path / "out").iterdir() if path.is_file())
    assert files == ["REPORT.md", "expected.npz", "inputs.npz", "min.bin", "min.xml", "reduce.jsonl", "repro.py"]


def test_a_model_that_does_not_fail_is_said_so(tmp_path):
    done = reduced(tmp_path, CNN, "Loop", "fail", status=1)
    assert "does not fail: the check finds nothing wrong" in done.stderr
    assert not [*(tmp_path / "out").iterdir()]  # so that another check may use the folder


def test_a_command_that_is_not_there_is_no_failure_of_the_model_unless_that_is_asked_for(tmp_path):
    forbidden = tmp_path / "forbidden"
    forbidden.write_text("")
    given = ("reduce", CNN, "--random", "-o", tmp_path / "out", "--check")
    done = irrun(*given, "irrun-has-no-such {model}", status=2)
    assert "the command is not there (exit 127): " in done.stderr
    assert "not found; --fail-code 127 takes that for the failure" in done.stderr
    done = irrun(*given, f"{shlex.quote(str(forbidden))} {{model}}", "--fail-regex", "d", status=2)
    assert "the command cannot be run (exit 126): " in done.stderr
    assert not [*(tmp_path / "out").iterdir()]  # so that the right command may use the folder
    done = irrun(*given, "irrun-has-no-such {model}", "--fail-code", 127)
    assert done.stdout.endswith("; exit 127\n")


def test_a_killed_reduction_goes_on(tmp_path):
    script = tmp_path / "slow.py"
    script.write_text(f"import time\ntime.sleep(0.2)\n{CHECK}")
    command = f"{shlex.quote(sys.executable)} -S {shlex.quote(str(script))} {{model}} MatMul fail"
    options = ["--inputs", str(CNN.with_name("inputs.npz")), "-o", str(tmp_path / "out"), "--check", command]
    with subprocess.Popen(
        [sys.executable, "-P", "-c", "from irrun.cli import main; main()", "reduce", str(CNN), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        journal = tmp_path / "out" / "reduce.jsonl"
        while process.poll() is None and (not journal.exists() or journal.read_text().count('"hash"') < 2):
            time.sleep(0.02)
        process.kill()
    before = journal.read_text().count('"hash"')
    done = irrun("reduce", CNN, *options)
    assert "-> 1 layer," in done.stdout
    hashes = [line for line in journal.read_text().splitlines() if '"hash"' in line]
    assert len(hashes) > before >= 2
    assert len({line.split('"')[3] for line in hashes}) == len(hashes)


def test_a_second_reduction_into_the_same_folder_is_refused_while_the_first_one_runs(tmp_path):
    out, begun = tmp_path / "out", tmp_path / "begun"
    options = [
        "--random",
        "0",
        "-o",
        str(out),
        "--check",
        f"touch {shlex.quote(str(begun))}; sleep 60; test {{model}} =",
    ]
    command = [sys.executable, "-P", "-c", "from irrun.cli import main; main()", "reduce", str(CNN), *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not begun.exists():
            time.sleep(0.02)
        files = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
        done = irrun("reduce", CNN, *options, status=2)
        assert f"another reduction is writing to {out}" in done.stderr
        assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == files
        process.send_signal(signal.SIGINT)  # which ends the check, too


def test_what_diverges_is_found_by_comparing(tmp_path):
    inputs = BLOCK.with_name("inputs.npz")
    out = tmp_path / "out"
    done = irrun("reduce", BLOCK, "--inputs", inputs, "-o", out, "--diverges", "precision:bf16", "--tol", "f32")
    assert "-> 1 layer," in done.stdout
    assert "cause N200" in done.stdout


def test_what_is_not_finite_on_the_way_is_found_and_shown_as_execute_does(tmp_path):
    model, out = SAMPLES / "f16-overflow" / "model.xml", tmp_path / "out"
    wish = ("--inputs", model.with_name("inputs.npz"), "--precision", "f16")
    assert "born in Power" in irrun("reduce", model, *wish, "--nonfinite", "-o", out).stdout
    command = "irrun execute min.xml --inputs inputs.npz --engine reference --precision f16 --check-finite"
    report = (out / "REPORT.md").read_text()
    assert f"```\n{command}\n" in report
    done = irrun(*command.split()[1:], cwd=out, status=1)
    assert done.stderr.splitlines()[0].split(": ", 1)[1] in report


@pytest.mark.parametrize(
    ("start", "end", "given", "born"),
    [
        ("Log", "SoftMax", -1, "SoftMax"),  # infinities that are taken for a mask, of which NaN is made 8 layers later
        ("Add", "SoftMax", 1, "SoftMax"),  # those of a constant
        ("Log", "SoftMax", [0, 1, 2, 3], "Log"),  # which nobody takes for a mask, and is none in what is left
    ],
)
def test_nan_of_infinities_that_came_long_before(tmp_path, start, end, given, born):
    with package.build("m") as g:
        x = g.Parameter("f32[2,4]", name="x")
        hidden = np.float32([[-np.inf] * 4, [0, 0, 0, -np.inf]])
        y = g.Log(g.ReLU(x)) if start == "Log" else g.Add(x, hidden)
        for number in range(8):
            y = g.Multiply(y, np.float32(1.5)) if number % 2 else g.Add(y, np.float32(0.5))
        g.Result(g.ReLU(g.op(end, y, axis=-1)))
    package.write_model(g.model, tmp_path / "m.xml")
    np.savez(tmp_path / "in.npz", x=np.full((2, 4), given, np.float32))
    wish = ("--inputs", tmp_path / "in.npz", "--nonfinite", "-o", tmp_path / "out")
    done = irrun("reduce", tmp_path / "m.xml", *wish)
    assert "-> 1 layer," in done.stdout
    assert f"born in {born}\n" in done.stdout
    command = (tmp_path / "out" / "REPORT.md").read_text().split("```\nirrun ")[1].split("\n")[0]
    shown = irrun(*command.split(), cwd=tmp_path / "out", status=1)
    assert f"({born})" in shown.stderr


def test_a_report_quotes_the_smallest_model(tmp_path):
    with package.build("m") as g:
        x = g.Parameter("f32[2,3]", name="x")
        g.Result(g.ReLU(g.Multiply(x, np.float32([np.nan, np.inf, 1]))))
    package.write_model(g.model, tmp_path / "m.xml")
    irrun("reduce", tmp_path / "m.xml", "-o", tmp_path / "out", "--diagnostic", "W913")
    report = (tmp_path / "out" / "REPORT.md").read_text()
    assert "```\nirrun validate min.xml\n```" in report
    said = report.split("failure: code W913, op Const\n")[1].split("\n")[0]
    assert said in irrun("validate", tmp_path / "out" / "min.xml").stdout


def test_a_diagnostic_needs_no_inputs(tmp_path):
    model = Path(__file__).parent / "invalid" / "elements_that_do_not_fit.xml"
    done = irrun("reduce", model, "-o", tmp_path / "out", "--diagnostic", "E401")
    assert "code E401, op Reshape" in done.stdout
    assert "E401" in irrun("validate", tmp_path / "out" / "min.xml", status=1).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give one of --check, --diverges"),
        (("--check", "x {model}", "--nonfinite"), "give one of --check, --diverges"),
        (("--check", "x", "--random", 1), "the command needs {model}"),
        (("--nonfinite",), "give --inputs FILE or --random SEED"),
        (("--nonfinite", "--random", 1, "--fail-code", 3), "go with --check"),
        (("--nonfinite", "--random", 1, "--tol", "f16"), "--tol goes with --diverges"),
        (("--nonfinite", "--random", 1, "--config", "A=B"), "--config goes with --diverges and --fails-to-compile"),
        (("--diverges", "engine:numpy", "--random", 1, "--precision", "f16"), "--precision goes with --nonfinite"),
        (("--check", "x {model}", "--fail-regex", "("), "is no regular expression"),
        (("--diverges", "nothing:there", "--random", 1), "there is no file nothing:there"),
        (("--diagnostic", "E999"), "there is no code E999"),
        (("--diagnostic", "E401", "-o", "small.xml"), "name one, not small.xml"),
        (("--diagnostic", "E607"), "E607 is found by looks at all tensors: give --nonfinite"),
    ],
)
def test_wrong_use_is_refused(tmp_path, arguments, message):
    done = irrun("reduce", CNN, "-o", tmp_path / "out", *arguments, status=2)
    assert message in done.stderr


def test_a_custom_op_is_known_to_the_check_as_well(tmp_path):
    (tmp_path / "own.py").write_text(
        "import numpy as np\n"
        "from irrun.spec import FLOAT, Input, Output, op\n"
        "@op('Root-1', types={'T': FLOAT}, inputs=[Input('x', 'T', '[*s]')], outputs=[Output('y', 'T', '[*s]')],\n"
        "    opsets=frozenset(), extension_versions=('extension',))\n"
        "def root(x):\n    '''The square root.'''\n    return np.sqrt(x)\n"
    )
    made = Model()
    x = made.parameter("x", "f32", (2,))
    negative = made.layer("Negative", [x], [("f32", (2,))])[0]
    root = made.layer("Root", [negative], [("f32", (2,))], "extension")[0]
    made.result(made.layer("ReLU", [root], [("f32", (2,))])[0])
    made.save(tmp_path)
    np.savez(tmp_path / "in.npz", x=np.float32([1, 4]))
    wish = ("--inputs", tmp_path / "in.npz", "-o", tmp_path / "out", "--nonfinite", "--ops", tmp_path / "own.py")
    done = irrun("reduce", tmp_path / "model.xml", *wish)
    assert "3 -> 1 layer," in done.stdout
    assert "born in Root" in done.stdout
