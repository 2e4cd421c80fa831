"""`irrun inspect` as a process: what it prints and writes, and how it exits."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from command_line import irrun
from ir_builder import Model

import irrun as library

ROOT = Path(__file__).parents[3]
CNN = ROOT / "samples" / "cnn" / "model.xml"
DEFECTS = ROOT / "tests" / "invalid" / "five_defects.xml"
SHAPE = ("--shape", "image=1,3,16,16")


def test_the_text_is_compact_and_fits_100_columns():
    lines = irrun("inspect", CNN, *SHAPE).stdout.splitlines()
    assert len(lines) < 40
    assert max(map(len, lines)) <= 100
    for expected in (
        "inputs       image f32[1, 3, 16, 16]",
        "outputs      probabilities f32[1, 10]",
        "runs on      OpenVINO 2022.1 and later (by operation sets, not measured)",
        "MACs         129 k (129,184)",
        "FLOPs        258 k (258,368): two for each MAC",
        "             known of 19 of 19 layers (100.0 %)",
        "activations  16.4 kB (16,384) at once, at `Add_49`",
        "weights      1,554 elements in 6,224 bytes",
    ):
        assert expected in lines


def test_layers_and_weights_are_tables():
    done = irrun("inspect", CNN, *SHAPE, "--layers", "--weights")
    assert " 8  f32[1, 16, 8, 8]   73.7 k  10.8 k  Convolution Convolution_53" in done.stdout
    assert "   896  4,608  f32          [16, 8, 3, 3] Constant_52" in done.stdout


def test_json_has_all_of_it():
    data = json.loads(irrun("inspect", CNN, "--format", "json").stdout)
    assert data["ok"] is True
    assert data["costs"]["macs"] == "129184*image.0"
    assert data["costs"]["flops"] == "258368*image.0"
    assert data["ops"]["Convolution"] == 2
    assert data["releases"]["oldest"] == "2022.1"
    assert len(data["layers"]) == data["costs"]["layers"] == 19
    assert data["weights"]["constants"][0]["values"]["nans"] == 0
    assert data["inputs"][0]["shape"] == ["image.0", 3, 16, 16]


def test_csv_has_a_line_for_each_layer_or_constant():
    rows = list(csv.DictReader(io.StringIO(irrun("inspect", CNN, *SHAPE, "--format", "csv").stdout)))
    assert len(rows) == 19
    assert (rows[8]["name"], rows[8]["macs"], rows[8]["outputs"]) == ("Convolution_53", "73728", "f32[1, 16, 8, 8]")
    done = irrun("inspect", CNN, "--format", "csv", "--weights")
    assert [row["offset"] for row in csv.DictReader(io.StringIO(done.stdout))] == [
        "0",
        "864",
        "896",
        "5504",
        "5568",
        "5584",
    ]


def test_a_file_is_written_whole(tmp_path):
    done = irrun("inspect", CNN, "--format", "json", "-o", tmp_path / "out.json")
    assert done.stdout == ""
    assert json.loads((tmp_path / "out.json").read_text())["name"] == "cnn"
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_a_model_comes_from_standard_input(tmp_path):
    done = irrun("inspect", "-", "--bin", CNN.with_suffix(".bin"), *SHAPE, stdin=CNN.read_bytes())
    assert done.stdout.startswith("<stdin>: `cnn`, 19 layers")
    assert "129 k (129,184)" in done.stdout


def test_a_release_that_cannot_read_it_is_an_error_at_the_lines(tmp_path):
    m = Model()
    x = m.parameter("x", "f32", (2,))
    m.result(m.layer("ReLU", [x], [("f32", (2,))], "opset14", name="new")[0])
    path = m.save(tmp_path)
    done = irrun("inspect", path, "--target", "2023.3", status=1)
    assert "error[T101]: OpenVINO 2023.3 does not read ReLU of opset14" in done.stderr
    assert f"--> {path}:10:1" in done.stderr
    assert "help: 2024.0 is the first release that does" in done.stderr
    assert irrun("inspect", path, "--target", "2024.0").stderr == ""


HOLD = (
    "macs<=129184",
    "flops < 0.3M",
    "layers==19",
    "ops.Convolution==2",
    "ops.Loop==0",
    "weights<7KiB",
    "parameters>=1.5k",
    "peak<=16384B",
    "coverage>=1",
    "coverage >= 100%",
    "release<=2022.1",
    "unused==0",
    "duplicates==0",
    "not-finite==0",
    "f16-loss==0",
    "state==0",
    "bytes<1e6",
)


def test_conditions_that_hold_are_fine():
    assert irrun("inspect", CNN, *SHAPE, *(part for text in HOLD for part in ("--assert", text))).stderr == ""


def test_conditions_that_do_not_hold_say_what_is():
    conditions = ("macs<=1e5", "release<2022.1", "ops.Add!=2", "layers<100")
    done = irrun("inspect", CNN, *SHAPE, *(part for text in conditions for part in ("--assert", text)), status=1)
    assert done.stderr.splitlines() == [
        "error: `macs<=1e5` does not hold: macs is 129,184",
        "error: `release<2022.1` does not hold: release is 2022.1",
        "error: `ops.Add!=2` does not hold: ops.Add is 2",
    ]


def test_a_condition_that_nobody_can_tell_does_not_hold():
    done = irrun("inspect", CNN, "--assert", "macs<=1e9", status=1)
    assert done.stderr == "error: `macs<=1e9` cannot be told: macs is 129184*image.0; --shape gives sizes\n"
    done = irrun("inspect", DEFECTS, "--assert", "macs<=1e9", status=1)
    assert "`macs<=1e9` cannot be told: what 3 of 10 layers add is not known" in done.stderr
    done = irrun("inspect", CNN, "--assert", "ops.convolution==0", "--assert", "ops.MyOwn==0", status=1)
    assert done.stderr == (
        "error: `ops.convolution==0` cannot be told: there is no op `convolution`; did you mean `Convolution`?\n"
    )


def test_a_peak_that_is_not_known_says_why_and_what_would_tell(tmp_path):
    with library.build("m") as g:
        x, y = (g.Parameter("f32[?]", name=name) for name in "xy")
        for value in (x, y):
            g.Result(g.ReduceSum(g.Tile(value, [9]), 0))
    library.write_model(g.model, tmp_path / "sizes.xml")
    with library.build("m") as g:
        g.Result(g.Parameter("string[3]", name="s"))
    library.write_model(g.model, tmp_path / "texts.xml")
    done = irrun("inspect", tmp_path / "sizes.xml", "--assert", "peak<1", status=1)
    assert "peak is not known; unknown sizes decide where it is; see --shape" in done.stderr
    done = irrun("inspect", tmp_path / "texts.xml")
    assert "activations  not known: `s` gives texts of any length\n" in done.stdout


def test_percent_and_releases_to_come():
    done = irrun("inspect", CNN, "--assert", "coverage>=100", status=2)
    assert "coverage is a share from 0 to 1; write 100% for percent" in " ".join(done.stderr.split())
    done = irrun("inspect", CNN, "--target", "2097.1")
    assert "note: OpenVINO 2097.1 was not measured: what is said holds for 20" in done.stderr


def test_of_a_broken_model_what_can_be_told_is():
    done = irrun("inspect", DEFECTS, status=1)
    assert "inputs       x f32[2, 3]" in done.stdout
    assert "not counted, it could not be inferred: `bounded`" in done.stdout
    assert done.stderr.count("error[") == 4


def test_what_is_no_model_at_all_is_said(tmp_path):
    path = tmp_path / "model.xml"
    path.write_text("<html>")
    done = irrun("inspect", path, status=1)
    assert done.stdout == f"{path}: nothing can be said of it\n"
    assert "error[E107]" in done.stderr
    data = json.loads(irrun("inspect", path, "--format", "json", status=1).stdout)
    assert (data["layers"], data["costs"]) == (None, None)
    assert irrun("inspect", path, "--assert", "macs<1", status=1).stderr.endswith("macs is not known\n")


def test_names_with_line_breaks_and_of_any_length_stay_in_their_lines(tmp_path):
    m = Model()
    x = m.parameter("x" * 500, "f32", (2,))
    m.result(m.layer("ReLU", [x], [("f32", (2,))], "opset14", name="a\u200b\u2028b" + "c" * 500)[0])
    done = irrun("inspect", m.save(tmp_path), "--layers")
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_a_custom_op_that_does_not_say_is_not_counted(tmp_path):
    ops = tmp_path / "mine.py"
    ops.write_text(
        "from irrun.spec import FLOAT, Input, Output, op\n"
        '@op("Mine-1", types={"T": FLOAT}, inputs=[Input("x", "T", "[*s]")], outputs=[Output("y", "T", "[*s]")])\n'
        'def mine(x):\n    """The same."""\n    return x\n'
    )
    m = Model()
    x = m.parameter("x", "f32", (2,))
    m.result(m.layer("Mine", [x], [("f32", (2,))], "opset1", name="mine")[0])
    done = irrun("inspect", m.save(tmp_path), "--ops", ops)
    assert "not counted, its op does not say: `mine`" in done.stdout
    assert "and extensions for 1 layer, the first is `mine`" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere.xml",), "there is no file nowhere.xml"),
        ((CNN, "--target", "2019.1"), "`2019.1` is no release of OpenVINO"),
        ((CNN, "--assert", "mac<=1"), "`mac` is nothing to ask about; there are macs,"),
        ((CNN, "--assert", "macs=1"), "is not of the form NAME<=NUMBER"),
        ((CNN, "--assert", "macs<="), "`macs<=` is not of the form NAME<=NUMBER"),
        ((CNN, "--assert", "macs<=much"), "`much` is not a number such as"),
        ((CNN, "--shape", "picture=1"), "`picture` is no input of the model"),
        ((CNN, "-o", "no/such/folder/x"), "there is no folder"),
        ((CNN, "--past", "-1"), "is not in the range"),
    ],
)
def test_wrong_use_exits_with_2(arguments, message):
    assert message in " ".join(irrun("inspect", *arguments, status=2).stderr.split())


def test_past_tokens_of_a_model_that_remembers_nothing():
    done = irrun("inspect", CNN, "--past", 5)
    assert done.stderr == "note: there is no state that grows with each run, for --past to count with\n"


def test_large_graphs_take_seconds(tmp_path):
    m = Model()
    x = m.parameter("x", "f32", ("?", 8))
    weights = m.constant(np.ones((8, 8), np.float32))
    for _ in range(1500):
        (y,) = m.layer("MatMul", [x, weights], [("f32", (-1, 8))])
        (x,) = m.layer("Add", [x, y], [("f32", (-1, 8))], auto_broadcast="numpy")
    m.result(x)
    done = irrun("inspect", m.save(tmp_path), "--shape", "x=5,8", "--format", "json")
    assert json.loads(done.stdout)["costs"]["macs"] == 1500 * 5 * 64


def test_outputs_of_version_10_are_told_in_the_types_in_which_they_come_out(tmp_path):
    model = Model(version=10)
    for name, type in (("s", "f16"), ("k", "i64"), ("b", "boolean"), ("n", "i32")):
        x = model.parameter(f"{name}_in", type, (2,))
        model.result(model.layer("Reshape", [x, model.constant(np.int64([2]))], [(type, (2,))], names=[name])[0])
    path = model.save(tmp_path)
    found = json.loads(irrun("inspect", path, "--format", "json").stdout)
    told = {output["name"]: output["type"] for output in found["outputs"]}
    assert told == {"s": "f32", "k": "i32", "b": "f32", "n": "i32"}
    assert "outputs      s f32[2]\n             k i32[2]\n             b f32[2]" in irrun("inspect", path).stdout
    irrun("execute", path, "--random", "-o", tmp_path / "y.npz")
    with np.load(tmp_path / "y.npz") as results:
        assert {name: {"float32": "f32", "int32": "i32"}[str(array.dtype)] for name, array in results.items()} == told
