"""irrun validate as a process: what it takes, what it leaves out, where it writes and how it ends."""

import json
import os
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from command_line import irrun

from irrun.ir.discovery import find_models, is_foreign, root_tag

SAMPLES = Path(__file__).parent.parent / "samples"
INVALID = Path(__file__).parent / "invalid"
CNN = SAMPLES / "cnn" / "model.xml"
DEFECTS = INVALID / "five_defects.xml"
CODES_OF_DEFECTS = ["E306", "E301", "E401", "W931", "E206"]


@pytest.fixture
def tree(tmp_path):
    """models/a.xml with its .bin, models/deep/b.XML, and files that are none."""
    deep = tmp_path / "models" / "deep"
    deep.mkdir(parents=True)
    for suffix in (".xml", ".bin"):
        shutil.copy(CNN.with_suffix(suffix), tmp_path / "models" / f"a{suffix}")
    shutil.copy(DEFECTS, deep / "b.XML")
    (deep / "layout.xml").write_text("<!-- a comment first --><Layout/>")
    (deep / "page.xml").write_text("<!DOCTYPE html><html/>")
    (deep / "template.xml").write_text("{% if x %}<net/>{% endif %}")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "x.xml").write_text("<x/>")
    return tmp_path


def codes(*args, **options):
    return [
        json.loads(line)["code"]
        for line in irrun("validate", "--format=jsonl", *args, **options).stdout.split("\n")[:-1]
    ]


def test_a_folder_stands_for_the_models_in_it_and_below(tree):
    done = irrun("validate", "models", cwd=tree, status=1)
    assert "models/a.xml: ok, 19 layers checked\n" in done.stdout
    assert done.stdout.endswith("models/deep/b.XML: 4 errors, 1 warning\n")
    overview = "2 models: 1 ok, 4 errors, 1 warning; 3 other .xml files skipped"
    assert done.stderr == f"{overview}\nerrors in models/deep/b.XML\n"


def test_a_model_named_twice_is_checked_once(tree):
    done = irrun("validate", "models", "models/a.xml", "models/deep", cwd=tree, status=1)
    assert done.stdout.count("a.xml: ok") == done.stdout.count("b.XML: 4") == 1


def test_a_folder_without_models_is_wrong_use(tree):
    assert "there is no model in foreign" in irrun("validate", "foreign", cwd=tree, status=2).stderr
    assert "0 models: nothing to check; 1 other" in irrun("validate", "foreign", "--skip-foreign", cwd=tree).stderr


def test_patterns(tree):
    done = irrun("validate", "models/**/[ab].*ml", "--format", "concise", cwd=tree)
    assert done.stderr == ""
    done = irrun("validate", "models/**/*.[xX][mM][lL]", "--skip-foreign", cwd=tree, status=1)
    assert "2 models" in done.stderr
    assert "no file matches models/*.onnx" in irrun("validate", "models/*.onnx", cwd=tree, status=2).stderr


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tree):
    (tree / "models" / "a.xml").rename(tree / "[x]*.xml")
    (tree / "models" / "a.bin").rename(tree / "[x]*.bin")
    assert irrun("validate", "[x]*.xml", cwd=tree).stdout == "[x]*.xml: ok, 19 layers checked\n"


def test_a_named_file_is_checked_whatever_it_is_unless_foreign_ones_are_skipped(tree):
    assert "error[E108]" in irrun("validate", "foreign/x.xml", cwd=tree, status=1).stdout
    done = irrun("validate", "foreign/x.xml", "models/a.xml", "--skip-foreign", cwd=tree)
    assert done.stdout == "models/a.xml: ok, 19 layers checked\n"
    assert done.stderr == "1 model: 1 ok; 1 other .xml file skipped\n"


@pytest.mark.parametrize(
    ("head", "root"),
    [
        (b"<net>", "net"),
        (b'\xef\xbb\xbf<?xml version="1.0"?>\n<!-- <x> --><NET a="1" ', None),
        (b'<?xml version="1.0"?><!-- <x> --><NET a="1"/>', "NET"),
        ("<net/>".encode("utf-16"), "net"),
        (b'<!DOCTYPE bomb [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><net x="&b;"/>', "bomb"),
        (b"<net><broken", "net"),
        (b"", None),
        (b"<", None),
        (b"\x00\x01\x02", None),
        (b'<?xml version="1.0" encoding="no-such"?><net/>', None),
    ],
)
def test_the_root_of_a_file_is_told_from_its_beginning(head, root):
    assert root_tag(head) == root


def test_a_file_that_is_no_xml_beside_a_bin_is_a_model_that_broke(tmp_path):
    path = tmp_path / "model.xml"
    path.write_bytes(b"{}")
    assert is_foreign(path)
    path.with_suffix(".bin").write_bytes(b"x")
    assert not is_foreign(path)
    assert find_models([str(tmp_path)]) == ([path], 0)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with a name")
@pytest.mark.parametrize("option", ["--config", "--ops"])
def test_nobody_waits_for_what_is_read_beside_a_model(option, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "not a regular file" in irrun("validate", CNN, option, pipe, status=2).stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with a name")
def test_a_pipe_among_the_files_does_not_block(tree):
    os.mkfifo(tree / "models" / "pipe.xml")
    assert codes("models", "--ignore=E2,E3,E4,W", cwd=tree, status=1) == ["E103"]


def test_standard_input():
    text = CNN.read_bytes()
    weights = CNN.with_suffix(".bin")
    assert irrun("validate", "-", "--weights", weights, stdin=text).stdout == "<stdin>: ok, 19 layers checked\n"
    assert "no weights are given, where 6 Consts" in irrun("validate", "-", stdin=text, status=1).stdout
    assert "goes alone" in irrun("validate", "-", CNN, stdin=text, status=2).stderr


def test_an_excerpt_of_standard_input():
    done = irrun("validate", "-", stdin=DEFECTS.read_bytes(), status=1)
    assert "--> <stdin>:19:33\n" in done.stdout
    assert '19 |   <layer id="2" name="misspelt" type="Relux"' in done.stdout


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"<net", b"PK\x03\x04"])
def test_standard_input_that_is_no_model(content):
    assert "error[E10" in irrun("validate", "-", stdin=content, status=1).stdout


def test_a_file_called_dash_is_not_standard_input(tmp_path):
    shutil.copy(DEFECTS, tmp_path / "-")
    assert codes("./-", cwd=tmp_path, status=1, stdin=b"") == CODES_OF_DEFECTS


@pytest.mark.parametrize("name", ["text", "sarif"])
def test_output_goes_to_a_file(name, tmp_path):
    path = tmp_path / "report"
    done = irrun("validate", "--format", name, "-o", path, DEFECTS, status=1, env={"FORCE_COLOR": "1"})
    assert done.stdout == done.stderr == ""
    assert path.read_text() == irrun("validate", "--format", name, DEFECTS, status=1).stdout
    assert list(tmp_path.iterdir()) == [path]


def test_output_replaces_what_a_link_leads_to(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    irrun("validate", CNN, "-o", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert "ok, 19 layers" in (tmp_path / "real").read_text()


def test_output_to_a_device_leaves_it_one():
    irrun("validate", CNN, "-o", os.devnull)
    assert not Path(os.devnull).is_file()
    assert "ok, 19 layers" in irrun("validate", CNN, "-o", "/dev/stdout").stdout


def test_output_that_cannot_be_written(tmp_path):
    assert "there is no folder" in irrun("validate", CNN, "-o", tmp_path / "a" / "b", status=2).stderr
    assert "is a directory" in irrun("validate", CNN, "-o", tmp_path, status=2).stderr


def test_wrong_use_leaves_an_old_report_alone(tmp_path):
    (tmp_path / "report").write_text("old")
    irrun("validate", CNN, "--shape", "nothing=1", "-o", tmp_path / "report", status=2)
    assert (tmp_path / "report").read_text() == "old"


def test_select_and_ignore_take_codes_and_their_beginnings():
    assert codes(DEFECTS, status=1) == CODES_OF_DEFECTS
    assert codes(DEFECTS, "--select", "e3, W931", status=1) == ["E306", "E301", "W931"]
    assert codes(DEFECTS, "--select", "E3", "--select", "E2", status=1) == ["E306", "E301", "E206"]
    assert codes(DEFECTS, "--ignore", "E3,E4", status=1) == ["W931", "E206"]
    assert codes(DEFECTS, "--select", "E3", "--ignore", "E301", status=1) == ["E306"]
    assert codes(DEFECTS, "--ignore", "E") == ["W931"]
    assert codes(DEFECTS, "--select", "W", "--strict", status=1) == ["W931"]


def test_unknown_codes_are_wrong_use():
    assert "there is no code E3O6; did you mean E306?" in irrun("validate", CNN, "--select", "E3O6", status=2).stderr
    assert "there is no code X; `irrun explain`" in irrun("validate", CNN, "--ignore", "X", status=2).stderr


def test_exit_zero():
    assert irrun("validate", "--exit-zero", DEFECTS).stdout.endswith("4 errors, 1 warning\n")
    irrun("validate", "--exit-zero", "nothing.xml", status=2)


def test_shapes():
    done = irrun("validate", "--shapes", "--shape", "image=2,3,16,16", CNN)
    assert re.search(r"f32\[2, 8, 16, 16\].*Convolution_47", done.stdout)
    assert done.stdout.endswith("ok, 19 layers checked\n")
    assert "goes with --format text" in irrun("validate", "--shapes", "--format=json", CNN, status=2).stderr


def test_junit_of_a_whole_folder(tree):
    root = ET.fromstring(irrun("validate", "--format", "junit", "models", cwd=tree, status=1).stdout)
    assert [suite.get("failures") for suite in root] == ["0", "4"]


def configured(folder, text):
    folder.mkdir(exist_ok=True)
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_configuration_is_that_of_the_nearest_table_upwards(tmp_path):
    configured(
        tmp_path, "[tool.irrun]\nignore = ['E2', 'E4']\nselect = ['E', 'W931']\nformat = 'concise'\nstrict = true\n"
    )
    inner = configured(tmp_path / "inner", "[tool.ruff]\nline-length = 80\n")
    shown = irrun("validate", DEFECTS, cwd=inner, status=1).stdout
    assert [line.split("[")[1][:4] for line in shown.splitlines()] == ["E306", "E301", "W931"]
    irrun("validate", INVALID / "unknown_attribute.xml", "--select", "W930", cwd=inner, status=1)


def test_the_command_line_wins_over_the_configuration(tmp_path):
    configured(tmp_path, "[tool.irrun]\nignore = ['E']\nselect = ['W']\nformat = 'sarif'\nstrict = true\n")
    assert codes(DEFECTS, "--no-strict", cwd=tmp_path) == ["W931"]
    assert codes(DEFECTS, "--ignore", "E2", "--select", "E2,E3", cwd=tmp_path, status=1) == ["E306", "E301"]
    assert irrun("validate", CNN, "--format", "text", cwd=tmp_path).stdout.endswith("ok, 19 layers checked\n")
    assert codes(DEFECTS, "--select", "E306", cwd=tmp_path, status=1) == ["E306"]
    assert "E306" not in codes(DEFECTS, "--select", "E", "--ignore", "E306", cwd=tmp_path, status=1)


def test_configuration_of_a_file_that_is_named(tmp_path):
    configured(tmp_path, "[tool.irrun]\nselect = ['E']\n")
    (tmp_path / "other.toml").write_text("[tool.irrun]\nselect = ['E2']\n")
    assert codes(DEFECTS, "--config", "other.toml", cwd=tmp_path, status=1) == ["E206"]
    (tmp_path / "other.toml").write_text("")
    assert (
        "has no table [tool.irrun]" in irrun("validate", CNN, "--config", "other.toml", cwd=tmp_path, status=2).stderr
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.irrun]\nselekt = []\n", "there is no key `selekt`; the keys are select, ignore, strict, format"),
        ("[tool.irrun]\nselect = 'E3'\n", "`select` must be a list of codes"),
        ("[tool.irrun]\nignore = [3]\n", "`ignore` must be a list of codes"),
        ("[tool.irrun]\nignore = ['E3O6']\n", "there is no code E3O6; did you mean E306?"),
        ("[tool.irrun]\nstrict = 1\n", "`strict` must be true or false"),
        ("[tool.irrun]\nformat = 'yaml'\n", "`format` is 'yaml', but must be one of text, concise"),
        ("[tool.irrun]\nformat = []\n", "`format` is [], but must be one of"),
        ("[tool]\nirrun = 3\n", "is not a table"),
        ("tool = 3\nirrun = [\n", "cannot be read: "),
        (b"\xff\xfe", "cannot be read: "),
    ],
)
def test_a_bad_configuration_is_wrong_use(text, message, tmp_path):
    (tmp_path / "pyproject.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    done = irrun("validate", CNN, cwd=tmp_path, status=2)
    assert message in done.stderr
    assert str(tmp_path / "pyproject.toml") in done.stderr


def test_configuration_means_nothing_to_other_commands(tmp_path):
    configured(tmp_path, "[tool.irrun]\nselekt = []\n")
    irrun("ops", "Add", cwd=tmp_path)


def test_a_name_that_is_no_text_does_not_stop_any_format(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff\n.xml"
    shutil.copy(DEFECTS, path)
    for name in ("text", "concise", "json", "jsonl", "sarif", "github", "gitlab", "junit"):
        assert irrun("validate", "--format", name, os.fsdecode(path), status=1).stdout


@pytest.mark.parametrize("command", [("validate", ""), ("validate", "--fix", "")])
def test_an_empty_name_is_not_the_current_folder(command, tmp_path):
    assert "one of the names is empty" in irrun(*command, status=2, cwd=tmp_path).stderr


def test_a_pattern_that_matches_nothing_is_called_so(tmp_path):
    assert "no file matches no*.xml" in irrun("validate", "no*.xml", status=2, cwd=tmp_path).stderr
