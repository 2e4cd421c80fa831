"""Execution graphs: what they say of how a device ran a model."""

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from command_line import irrun

from irrun.tools.inspect.execution import Share
from irrun.tools.inspect.inspection import inspect

ROOT = Path(__file__).parents[3]
CNN = ROOT / "samples" / "cnn" / "model.xml"

LAYERS = (
    ("image", "Input", "0", "not_executed", "unknown_f32", "f32", "abcd", "image"),
    ("image_f32_bf16", "Reorder", "1", "250", "jit_uni_f32", "f32", "acdb", ""),
    ("conv", "Convolution", "2", "1500", "brgconv_avx512_bf16", "bf16", "acdb", "conv,bias,relu"),
    ("dense", "FullyConnected", "4", "200", "brgemm_avx512_bf16", "bf16", "ab", "dense"),
    ("last", "Convolution", "3", "50", "brgconv_avx512_1x1_bf16", "bf16", "acdb", "last,add"),
    ("y", "Output", "5", "not_executed", "unknown_f32", "f32", "ab", "y"),
)


def graph(layers=LAYERS):
    """The text of an execution graph."""
    keys = ("execOrder", "execTimeMcs", "primitiveType", "runtimePrecision", "outputLayouts", "originalLayersNames")
    written = [
        f'<layer id="{number}" name="{name}" type="{type}"><data '
        + " ".join(f'{key}="{value}"' for key, value in zip(keys, values, strict=True))
        + "/></layer>"
        for number, (name, type, *values) in enumerate(layers)
    ]
    return '<net name="m" version="11"><layers>\n' + "\n".join(written) + "\n</layers><edges/></net>"


def test_there_is_no_report_of_it(path, tmp_path):
    for option in (("-o", tmp_path / "out.html"), ("--netron", tmp_path / "out.json")):
        done = irrun("report", path, *option, status=1)
        assert "error[E110]: this is an execution graph" in done.stderr
        assert "`irrun inspect` tells what this file says" in done.stderr
        assert not option[1].exists()


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "model.xml"
    file.write_text(graph())
    return file


def test_it_says_what_ran_and_for_how_long(path):
    ran = inspect(path).execution
    assert [layer.path for layer in ran.layers] == ["image", "image_f32_bf16", "conv", "last", "dense", "y"]
    assert [layer.path for layer in ran.timed] == ["conv", "image_f32_bf16", "dense", "last"]
    assert ran.total == Share(6, 4, 2000)
    assert ran.added == Share(1, 1, 250)
    assert ran.fused == 3
    assert ran.by_type() == {
        "Convolution": Share(2, 2, 1550),
        "Reorder": Share(1, 1, 250),
        "FullyConnected": Share(1, 1, 200),
        "Input": Share(1, 0, 0),
        "Output": Share(1, 0, 0),
    }
    assert ran.by_element_type() == {"bf16": Share(3, 3, 1750), "f32": Share(1, 1, 250)}
    assert list(ran.by_kernel("Convolution")) == ["brgconv_avx512_bf16", "brgconv_avx512_1x1_bf16"]
    conv = ran.layers[2]
    assert (conv.line, conv.layouts, conv.originals) == (4, ("acdb",), ("conv", "bias", "relu"))


def test_the_text_has_a_table_of_types_and_one_of_layers(path):
    first, rest = irrun("inspect", path, "--layers").stdout.split("\n", 1)
    assert first.endswith("`m`, an execution graph: how a device ran a model")
    assert rest == (
        "ran          4 layers in 2.000 ms, and 2 before\n"
        "in           bf16 1.750 ms (87.5 %), f32 0.250 ms (12.5 %)\n"
        "added        1 layer in 0.250 ms (12.5 %), none of the model's\n"
        "fused        3 layers of the model into others\n"
        "\n"
        "type            layers     ms     %  kernels\n"
        "Convolution          2  1.550  77.5  brgconv_avx512_bf16 1, brgconv_avx512_1x1_bf16 1\n"
        "Reorder              1  0.250  12.5  jit_uni_f32\n"
        "FullyConnected       1  0.200  10.0  brgemm_avx512_bf16\n"
        "Input                1\n"
        "Output               1\n"
        "\n"
        "   ms     %  in    kernel                   type and name\n"
        "1.500  75.0  bf16  brgconv_avx512_bf16      Convolution conv for bias, relu\n"
        "0.250  12.5  f32   jit_uni_f32              Reorder image_f32_bf16\n"
        "0.200  10.0  bf16  brgemm_avx512_bf16       FullyConnected dense\n"
        "0.050   2.5  bf16  brgconv_avx512_1x1_bf16  Convolution last for add\n"
    )


def test_json_and_csv_have_all_layers_in_their_order(path):
    data = json.loads(irrun("inspect", path, "--format", "json").stdout)
    assert data["ok"] is True
    assert [layer["microseconds"] for layer in data["execution"]["layers"]] == [None, 250, 1500, 50, 200, None]
    rows = list(csv.DictReader(io.StringIO(irrun("inspect", path, "--format", "csv").stdout)))
    assert [row["name"] for row in rows] == ["image", "image_f32_bf16", "conv", "last", "dense", "y"]
    assert (rows[2]["microseconds"], rows[2]["kernel"]) == ("1500", "brgconv_avx512_bf16")
    assert rows[2]["originals"] == "conv,bias,relu"


def test_a_model_has_no_execution():
    assert inspect(CNN).execution is None
    assert json.loads(irrun("inspect", CNN, "--format", "json").stdout)["execution"] is None


def test_without_times_it_says_why(tmp_path):
    path = tmp_path / "model.xml"
    path.write_text(graph([(*layer[:3], "not_executed", *layer[4:]) for layer in LAYERS]))
    text = irrun("inspect", path, "--layers").stdout
    assert "ran          6 layers, none with a time: the model was compiled without PERF_COUNT" in text
    assert "bf16  brgconv_avx512_bf16      Convolution conv for bias, relu" in text
    path.write_text(graph([(*layer[:3], "0", *layer[4:]) for layer in LAYERS]))
    assert "ran          6 layers in 0.000 ms\n" in irrun("inspect", path).stdout


def test_what_is_no_number_is_no_time(tmp_path):
    path = tmp_path / "model.xml"
    for text in ("-5", "1e3", "9" * 30, ""):
        path.write_text(graph([(*LAYERS[2][:2], text, text, *LAYERS[2][4:])]))
        (layer,) = inspect(path).execution.layers
        assert (layer.order, layer.microseconds) == (None, None)


def test_no_release_reads_it_and_nothing_runs_it(path):
    assert "error[E110]" in irrun("inspect", path, "--target", "2025.0", status=1).stderr
    assert "`macs<1` cannot be told" in irrun("inspect", path, "--assert", "macs<1", status=1).stderr
    assert irrun("inspect", path, "--assert", "ops.Reorder<=1").stderr == ""
    assert "error[E110]" in irrun("validate", path, status=1).stdout


def test_openvino_writes_such_graphs(tmp_path):
    ov = pytest.importorskip("openvino")
    compiled = ov.Core().compile_model(CNN, "CPU", {"PERF_COUNT": True, "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    request.infer({0: np.full((1, 3, 16, 16), 0.5, np.float32)})
    path = tmp_path / "model.xml"
    ov.serialize(compiled.get_runtime_model(), path)
    ran = inspect(path).execution
    text = path.read_text()
    assert ran.total.microseconds == sum(map(int, re.findall(r'execTimeMcs="(\d+)"', text))) > 0
    assert ran.total.layers == text.count("<layer ")
    assert "Convolution" in ran.by_type()
    assert set(ran.by_element_type()) <= {"f32", "i32", "i64", "u8", "bool", "undefined"}
