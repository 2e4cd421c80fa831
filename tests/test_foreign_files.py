"""Files that are not what they are called: pointers, pages, missing ones; and weights that are no numbers."""

import bz2
import codecs
import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
from command_line import irrun
from ir_builder import Model

import irrun as library

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
PAGE = b"<!-- saved -->\n<!DOCTYPE html>\n<html><body>Sign in</body></html>\n"
INVALID = Path(__file__).parent / "invalid"


def weighted(folder, values=(1.0, 2.0), type=np.float32, shape=None):
    """x plus a constant."""
    values = np.asarray(values, type).reshape(shape or np.shape(values))
    model = Model()
    name = {2: "f16", 4: "f32", 8: "f64"}[values.itemsize]
    x = model.parameter("x", name, values.shape)
    model.result(model.layer("Add", [x, model.constant(values, "weight")], [(name, values.shape)])[0])
    return model.save(folder)


@pytest.mark.parametrize(
    ("content", "what", "help"),
    [
        (POINTER, "a Git LFS pointer", "git lfs pull"),
        (PAGE, "an HTML page", "a log-in"),
        (PAGE[15:], "an HTML page", ""),
    ],
)
def test_a_model_that_is_something_else(content, what, help, tmp_path):
    path = tmp_path / "model.xml"
    path.write_bytes(content)
    (found,) = library.validate(path).errors
    assert found.code == "E107"
    assert what in found.message
    assert help in found.help


@pytest.mark.parametrize(
    ("content", "what", "help"),
    [
        (gzip.compress(b"<net/>"), "a gzip file", "gunzip -c FILE"),
        (bz2.compress(b"<net/>"), "a bzip2 file", "bunzip2"),
        (lzma.compress(b"<net/>"), "an xz file", "unxz"),
        (b"\x28\xb5\x2f\xfd\x04\x58", "a Zstandard file", "unzstd"),
        (b"PK\x03\x04\x14\x00", "a zip archive", "the .xml that was in it"),
        (b"\x08\x07\x12\x07pytorch\x1a\x052.1.0", "an ONNX model", "`ovc FILE`"),
        (b"\x1c\x00\x00\x00TFL3", "a model of TensorFlow Lite", "`ovc FILE`"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file", "Keras"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_a_model_in_another_form(content, what, help, tmp_path):
    path = tmp_path / "model.xml"
    path.write_bytes(content)
    (found,) = library.validate(path).errors
    assert found.code == "E107"
    assert found.message == f"`{path}` is {what}, not the .xml of an IR"
    assert help in found.help


def test_a_pointer_in_place_of_weights_is_all_that_is_said(tmp_path):
    """Also where it is as long as they are: nothing is read of it."""
    model = Model()
    x = model.parameter("x", "f32", (2, 3))
    axes = model.constant(np.array([1]))
    model.result(model.layer("ReduceSum", [x, axes], [("f32", (2,))], keep_dims="false")[0])
    path = model.save(tmp_path)
    path.with_suffix(".bin").write_bytes(POINTER)
    (found,) = library.validate(path).diagnostics
    assert (found.code, found.message) == (
        "E503",
        f"`{path.with_suffix('.bin')}` is a Git LFS pointer, not the weights",
    )


@pytest.mark.parametrize("before", ["", "  "])
@pytest.mark.parametrize("end", ["</edges>", "</layers>"])
def test_a_conflict_that_a_merge_has_left_is_said_where_its_marker_begins(end, before, tmp_path):
    path = weighted(tmp_path)
    text = path.read_text()
    path.write_text(text.replace(end, f"\n{before}<<<<<<< HEAD\n=======\n>>>>>>> feature\n{end}"))
    (found,) = library.validate(path).diagnostics
    assert (found.code, found.message) == ("E101", "a merge has left its conflict in the file")
    assert path.read_text().split("\n")[found.line - 1] == f"{before}<<<<<<< HEAD"
    assert (found.column, found.span.length) == (len(before) + 1, len("<<<<<<<"))


@pytest.mark.parametrize(
    ("before", "line", "column"),
    [
        (b"x", 1, 1),
        (b"\n\n  model: ", 3, 3),
        (codecs.BOM_UTF8 + b" # exported\n", 1, 2),
        (b"\xc3\xa4", 1, 1),
        (b"<!-- a -->\n\nb", 3, 1),
    ],
)
def test_text_before_the_root_element_is_told_where_it_begins(before, line, column, tmp_path):
    path = tmp_path / "model.xml"
    path.write_bytes(before + b'<?xml version="1.0"?>\n<net name="m" version="11"/>\n')
    (found,) = (found for found in library.validate(path).errors if found.code != "E111")
    assert (found.code, found.line, found.column) == ("E107", line, column)
    assert found.message == "text stands before the root element"


def test_many_comments_before_the_root_element_take_no_time(tmp_path):
    path = tmp_path / "model.xml"
    path.write_text("<!-- a -->" * 200_000 + 'x<net name="m" version="11"/>')
    (found,) = (found for found in library.validate(path).errors if found.code != "E111")
    assert (found.code, found.line, found.column) == ("E107", 1, 2_000_001)


def test_what_is_no_xml_is_told_at_its_first_character(tmp_path):
    path = tmp_path / "model.xml"
    path.write_text('\n{"model": 1}')
    (found,) = library.validate(path).errors
    assert (found.code, found.line, found.column) == ("E107", 2, 1)
    assert found.message == f"`{path}` is not XML"


@pytest.mark.parametrize(("content", "what"), [(POINTER, "a Git LFS pointer"), (PAGE, "an HTML page")])
def test_weights_that_are_something_else(content, what, tmp_path):
    path = weighted(tmp_path, np.ones(4000))
    path.with_suffix(".bin").write_bytes(content)
    (found,) = library.validate(path).errors
    assert found.code == "E503"
    assert what in found.message


def test_nan_and_infinity_in_weights_are_a_warning(tmp_path):
    report = library.validate(weighted(tmp_path, [[1, 2, np.inf], [np.nan, 5, -np.inf]]))
    (found,) = report.diagnostics
    assert (found.code, found.severity) == ("W913", "warning")
    assert found.message == "the constant has 1 NaN and 2 infinite of 6 elements, the first at [0, 2]"
    assert found.layer.name == "weight"
    assert found.line is not None


@pytest.mark.parametrize("type", [np.float16, np.float64])
def test_other_floats_are_searched(type, tmp_path):
    (found,) = library.validate(weighted(tmp_path, [1, np.nan], type)).diagnostics
    assert found.message.startswith("the constant has 1 NaN of 2 elements")


def test_masks_are_no_reason_for_a_warning(tmp_path):
    assert not library.validate(weighted(tmp_path, [0, -np.inf, 0, 0])).diagnostics


def test_weights_beyond_the_first_are_searched_when_asked_for(tmp_path):
    values = np.ones(17 << 20, np.float32)
    values[-1] = np.nan
    path = weighted(tmp_path, values)
    assert not library.validate(path).diagnostics
    irrun("validate", path)
    deep = irrun("validate", path, "--deep", "--strict", status=1)
    assert "the first at [17825791]" in deep.stdout


def test_a_run_over_a_folder_names_what_failed(tmp_path):
    (tmp_path / "good").mkdir()
    good = weighted(tmp_path / "good")
    bad = INVALID / "five_defects.xml"
    done = irrun("validate", "--format", "concise", good, bad, tmp_path / "missing.xml", status=1)
    assert "missing.xml:1:1: error[E102]" in done.stdout
    assert done.stderr.splitlines()[-1] == f"errors in {bad}, {tmp_path / 'missing.xml'}"
    irrun("validate", tmp_path / "missing.xml", status=2)


def test_a_hook_that_is_given_weights_checks_their_model(tmp_path):
    path = weighted(tmp_path)
    other = tmp_path / "other.bin"
    other.write_bytes(b"x")
    done = irrun("validate", "--skip-foreign", path.with_suffix(".bin"), other)
    assert (done.returncode, done.stdout.strip()) == (0, f"{path}: ok, 4 layers checked")


@pytest.mark.parametrize(
    ("content", "meant"),
    [
        (b"", True),
        (b'<?xml version="1.0"?>\n<!-- a -->\n<net name="m" vers', True),
        (b"\xef\xbb\xbf <ne", True),
        (b"<net name=m><layers>", True),
        (b"<network name='m", False),
        (b"<project>", False),
        (b'<?xml version="1.0"?>', False),
        (b"<!-- <net -->" * 4000 + b"<nets", False),
        (b"<?a ?>" * 9000, False),
    ],
)
def test_a_file_in_a_folder_that_is_empty_or_cut_in_its_first_tag_is_a_model(content, meant, tmp_path):
    weighted(tmp_path)
    (tmp_path / "cut.xml").write_bytes(content)
    done = irrun("validate", "--format", "concise", tmp_path, status=int(meant))
    assert ("error[E101]" in done.stdout) == meant
    assert ("1 other .xml file skipped" in done.stderr) != meant
