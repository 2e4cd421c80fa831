"""What people see while they wait: how far long work is, on a terminal, and nothing elsewhere."""

import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import irrun
from ir_builder import Model
from terminal import on_terminal

SLOW = """\
import shlex
import sys
import time
from irrun.spec import Input, Output, op

def wait(seconds):
    # so long; None is until it is drawn how far all is, and a look longer
    end = time.monotonic() + 20
    while seconds is None and type(sys.stderr).__name__ != "_Above" and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.7 if seconds is None else seconds)

@op("Slow-1", inputs=[Input("x", "f32", "[...]")], outputs=[Output("y", "f32", "[...]")], opsets=frozenset(),
    extension_versions=("extension",), pure=False)
def slow(x):
    '''Wait.'''
    wait({running})
    {doing}
    wait({later})
    return x.copy()

@slow.shapes
def _(node):
    wait({checking})
    return [node.inputs["x"]]
"""


@pytest.fixture
def slow(tmp_path):
    """A model that takes so many seconds, None until it is drawn how far that is, and the option for its op."""

    def arguments(running=0.0, later=0.0, checking=0.0, doing="", name=""):
        model = Model()
        (y,) = model.layer("Slow", [model.parameter("x", "f32", (2,))], [("f32", (2,))], "extension", name=name)
        model.result(y)
        source = SLOW.format(running=running, later=later, checking=checking, doing=doing)
        (tmp_path / "slow.py").write_text(source)
        return model.save(tmp_path), "--ops", tmp_path / "slow.py"

    return arguments


def test_a_long_run_says_what_it_computes_and_takes_it_away(slow):
    shown = on_terminal("execute", *slow(3.4), "--random", 1, soon=False)
    assert shown.status == 0
    assert re.match(r"running Slow_1, 1 of 1 \([23] s\)\r\x1b\[2Krunning Slow_1, 1 of 1 \([23] s\)", shown.text)
    assert shown.screen == []
    assert "\x1b[?25" not in shown.text  # whoever hides the cursor and is killed leaves it hidden


@pytest.mark.parametrize("place", ["no terminal", "dumb", "short"])
def test_nothing_is_written_where_nothing_is_to_be_seen(slow, place):
    if place == "no terminal":
        assert irrun("execute", *slow(2.3), "--random", 1, env={"FORCE_COLOR": "1"}).stderr == ""
    elif place == "dumb":
        assert on_terminal("execute", *slow(0.8), "--random", 1, env={"TERM": "dumb"}).text == ""
    else:
        assert on_terminal("execute", *slow(0.3), "--random", 1, soon=False).text == ""


def test_colours_are_for_terminals_that_have_some(slow):
    path, *ops = slow(None)
    for env, coloured in (({}, True), ({"TERM": "dumb"}, False), ({"TERM": "dumb", "FORCE_COLOR": "1"}, True)):
        shown = on_terminal("execute", path, *ops, env=env)
        assert "no array for input" in shown.text
        assert ("\x1b[31m" in shown.text) == coloured


def test_what_is_written_meanwhile_stands_above_whole(slow):
    long = "x" * 200
    write = "sys.stderr.write"
    doing = f"{write}({long!r} + chr(10)); {write}('half a '); time.sleep(0.4); {write}('line' + chr(10))"
    shown = on_terminal("execute", *slow(None, None, doing=doing), "--random", 1)
    assert "running Slow_1" in shown.text
    assert shown.screen == [long, "half a line"]


def test_a_line_without_its_end_is_not_lost(slow):
    shown = on_terminal("execute", *slow(None, doing="sys.stderr.write('half a [line]')"), "--random", 1)
    assert [line.rstrip() for line in shown.screen] == ["half a [line]"]


def test_messages_of_commands_stand_above(slow, tmp_path):
    path, *ops = slow(checking=None)
    defects = Path(__file__).parent / "invalid" / "five_defects.xml"
    fixed = tmp_path / "also.xml"
    shutil.copy(defects, fixed)
    shutil.copy(path, tmp_path / "other.xml")
    shown = on_terminal("validate", tmp_path, *ops, "--fix", "--unsafe", "--exit-zero", columns=200)
    assert shown.status == 0
    assert "checking" in shown.text
    first, second, *overview = shown.screen
    assert first == f'{fixed}:19: E301 fixed: write type="ReLU" for "Relux"'
    assert second == f'{fixed}:65: E206 fixed: write from-port="1" for "9"'
    assert overview == ["3 models: 2 ok, 2 errors, 1 warning", f"errors in {fixed}"]


def test_many_files_have_a_bar_with_the_time_that_is_left(slow, tmp_path):
    path, *ops = slow(checking=None)
    for number in range(3):
        shutil.copy(path, tmp_path / f"a_rather_long_name_of_a_model_{number}.xml")
    shown = on_terminal("validate", tmp_path, *ops, columns=100)
    assert re.search(r"checking .*model.*_\d\.xml ━+.* \d/4 \(\d s, \d s left\)", strip(shown.text))
    (line,) = shown.screen
    assert line.startswith("4 models: ")


def test_runs_that_are_repeated_have_a_bar(slow):
    shown = on_terminal("execute", *slow(None), "--random", 1, "--repeat", 4, env={"NO_COLOR": "1"})
    assert re.search(r"running Slow_1, 1 of 1 ━+.* \d/4 \(\d s, \d s left\)", strip(shown.text))
    assert not re.search(r"\x1b\[[\d;]*3\d", shown.text)
    (line,) = shown.screen
    assert line.startswith("4 runs: the first ")


def test_what_does_not_fit_is_cut_in_its_middle(slow):
    name = "begin" + "x" * 300 + "end"
    shown = on_terminal("execute", *slow(None, name=name), "--random", 1, columns=40)
    frames = [frame for frame in strip(shown.text).split("\r") if frame.startswith("running")]
    assert frames
    assert all(re.fullmatch(r"running beginx+\.\.\.x+end, 1 of 1 \(\d s\)", frame.rstrip()) for frame in frames)
    assert max(map(len, frames)) <= 40
    assert shown.screen == []


def test_a_name_is_no_markup_and_moves_no_cursor(slow):
    shown = on_terminal("execute", *slow(None, name="[red]a[/red]\n\x9b2J"), "--random", 1)
    assert r"running [red]a[/red]\n\x9b2J, 1 of 1 (" in strip(shown.text)


def test_a_run_that_is_watched_counts_tensors(slow, tmp_path):
    shown = on_terminal("execute", *slow(None), "--random", 1, "--dump", tmp_path / "dump.jsonl")
    assert "running Slow_1, 1 of 1" in shown.text
    assert shown.screen == [f"{tmp_path}/dump.jsonl: statistics of 1 tensor"]


@pytest.mark.parametrize(
    ("by", "status", "screen"), [(signal.SIGINT, 130, ["interrupted"]), (signal.SIGTERM, -signal.SIGTERM, None)]
)
def test_a_signal_ends_it_at_once(slow, by, status, screen):
    shown = on_terminal("execute", *slow(30), "--random", 1, interrupt=("1 of 1 (", by))
    assert shown.status == status
    assert shown.seconds < 5
    if screen is not None:
        assert shown.screen == screen


def test_an_error_stands_where_the_line_was(slow):
    shown = on_terminal("execute", *slow(None, doing="raise ValueError('too late')"), "--random", 1)
    assert shown.status == 1
    assert "running" not in "".join(shown.screen)
    assert "too late" in "".join(shown.screen)


def test_a_reduction_says_what_it_has_reached(slow, tmp_path):
    path, *ops = slow()
    command = (
        f"{shlex.quote(sys.executable)} -c 'import time; time.sleep(0.8); raise SystemExit(1)' {{model}} {{inputs}}"
    )
    arguments = ("reduce", path, *ops, "--random", 1, "--check", command, "-o", tmp_path / "out", "--max-checks", 3)
    shown = on_terminal(*arguments, columns=120)
    assert shown.status == 0, shown.text
    assert re.search(r"\r\x1b\[2K1 layer, \d checks: .*, \d layers? \(\d s\)", shown.text)
    assert "layers" not in "".join(line for line in shown.screen if line.startswith("1 layer,"))


def test_help_and_pipes_load_no_rich():
    code = "import sys, irrun.cli.{}; print(*(name for name in sys.modules if name.startswith('rich')))"
    for command in ("execute", "validate", "reduce", "compare"):
        done = subprocess.run(
            [sys.executable, "-P", "-c", code.format(command)], capture_output=True, check=True, timeout=60
        )
        assert done.stdout.strip() == b""


def strip(text: str) -> str:
    """Without colours."""
    return re.sub(r"\x1b\[[\d;]*[mK]", "", text)
