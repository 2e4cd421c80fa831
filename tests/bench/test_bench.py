"""The benchmarks run: on small models, with one turn, beside a model that cannot be read. No figure is judged here."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bench.costs import costs
from bench.dynamic import Sizes, distinct_sizes, measure_fresh, measure_sequence, measure_static, ranges, resized
from bench.language import lines, measure
from bench.language_worker import Text, beam_search, curve
from bench.measure import Result, distance, varied
from bench.models import Model, models_in
from bench.processes import Peer, Setting, Worker
from bench.report import geometric_means, report
from bench.summary import slower, summary

ROOT = Path(__file__).parents[2]
SETTING = Setting(sys.executable, 2)
IRRUN, OPENVINO = (Peer(name, name, SETTING) for name in ("irrun", "openvino"))


def run(*arguments):
    command = [sys.executable, ROOT / "tests" / "bench" / "run.py", "--python", sys.executable, "--turns", 1]
    return subprocess.run(list(map(str, [*command, *arguments])), capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_sample_is_measured_beside_openvino_and_failures_are_named(tmp_path):
    pytest.importorskip("openvino")
    shutil.copytree(ROOT / "samples" / "cnn", tmp_path / "cnn")
    shutil.copytree(ROOT / "samples" / "cnn", tmp_path / "broken")
    (tmp_path / "broken" / "model.xml").write_text("<net/>")
    measures = [word for name in ("check", "one-shot", "steady") for word in ("--measure", name)]
    done = run("--models", tmp_path, *measures, "--json", tmp_path / "found.json")
    assert done.returncode == 0, done.stderr
    assert "geometric mean of irrun / openvino" in done.stdout
    assert "not measured\ncheck, broken, irrun: " in done.stdout
    assert "\none-shot, broken, irrun: " in done.stdout
    for found in json.loads((tmp_path / "found.json").read_text())["results"]:
        if found["model"] == "broken":
            assert found["failure"]
            assert not found["seconds"]
        elif found["runtime"] in ("irrun", "irrun numpy", "openvino"):
            assert found["failure"] is None
            assert len(found["seconds"]) == 1
            assert len(found["peaks"]) == (found["measure"] != "steady")
        assert found["difference"] is None or found["difference"] < 1e-5


@pytest.mark.slow
def test_another_irrun_takes_the_place_of_openvino(tmp_path):
    pytest.importorskip("openvino")
    shutil.copytree(ROOT / "samples" / "cnn", tmp_path / "cnn")
    measures = ("--measure", "one-shot", "--measure", "steady")
    done = run("--models", tmp_path, "--against", ROOT, *measures, "--json", tmp_path / "found.json")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["geometric means"]["one-shot"].keys() == {"irrun"}
    assert found["geometric means"]["one-shot"]["irrun"].keys() == {"against: irrun"}
    assert found["geometric means of memory"]["one-shot"]["irrun"].keys() == {"against: irrun"}
    assert found["geometric means"]["steady"]["irrun numpy"].keys() == {"against: irrun numpy"}
    differences = {result["runtime"]: result["difference"] for result in found["results"]}
    assert differences["irrun numpy"] == 0
    assert differences["against: irrun numpy"] is None


@pytest.mark.slow
def test_bf16_is_measured_beside_openvino_in_bf16(tmp_path):
    pytest.importorskip("openvino")
    shutil.copytree(ROOT / "samples" / "cnn", tmp_path / "cnn")
    options = ("--engine", "auto", "--measure", "steady", "--precision", "bf16", "--json", tmp_path / "found.json")
    done = run("--models", tmp_path, *options)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert {name: set(others) for name, others in found["geometric means"]["steady"].items()} == {
        "irrun": {"openvino"},
        "irrun bf16": {"openvino bf16"},
    }
    differences = {result["runtime"]: result["difference"] for result in found["results"]}
    assert differences["irrun"] < 1e-5
    assert 1e-5 < differences["irrun bf16"] < 0.05
    refused = run("--models", tmp_path, "--precision", "bf16", "--against", ROOT)
    assert refused.returncode == 2
    assert "takes no part with --against" in refused.stderr


@pytest.mark.slow
def test_loops_agree_with_openvino(tmp_path):
    pytest.importorskip("openvino")
    done = run("--measure", "loops", "--json", tmp_path / "found.json")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())["results"]
    assert {result["model"] for result in found} == {"Loop-5", "TensorIterator-1"}
    differences = [result["difference"] for result in found if result["runtime"] == "irrun numpy"]
    assert max(differences) < 1e-5


def test_a_ratio_is_the_median_of_pairs_of_what_belongs_together():
    results = [
        Result("steady", "m", "irrun a", [1.0, 2.0, 3.0]),
        Result("steady", "m", "irrun b", [4.0, 4.0, 4.0]),
        Result("steady", "m", "openvino", [2.0, 1.0, 1.0]),
        Result("steady", "m", "static: irrun a", [1.0, 1.0, 4.0]),
    ]
    assert geometric_means(results) == {
        "irrun a": {"openvino": pytest.approx(2), "static: irrun a": pytest.approx(1)},
        "irrun b": {"openvino": pytest.approx(4)},
    }
    assert report(results).splitlines()[1].split("  ")[-4:] == [
        "static: irrun a ms",
        "irrun a / openvino",
        "irrun a / static: irrun a",
        "irrun b / openvino",
    ]


def test_inputs_of_other_sizes_repeat_the_example():
    example = {"input_ids": np.array([[1, 2, 3], [4, 5, 6]]), "decoder_input_ids": np.array([[7, 8], [9, 0]])}
    found = resized(example, Sizes(1, 5, 1))
    assert found["input_ids"].tolist() == [[1, 2, 3, 1, 2]]
    assert found["decoder_input_ids"].tolist() == [[7]]
    assert resized(example, Sizes(3, 2, 3))["input_ids"].tolist() == [[1, 2], [4, 5], [1, 2]]


def test_lengths_that_are_fresh_come_once_each():
    drawn = distinct_sizes(np.random.default_rng(0), 249)
    assert sorted(sizes.length for sizes in drawn) == list(range(8, 257))
    assert {sizes.batch for sizes in drawn} == {1, 2}


def test_the_ranges_of_first_runs():
    first, repeated = Result("fresh", "m", "irrun", [2.0, 3.0]), Result("fresh", "m", "repeated: irrun", [1.0, 2.0])
    assert ranges([first, repeated]) == ["m: irrun / repeated: irrun of one length: 1.750 (1.500 to 2.000)"]
    assert ranges([Result("fresh", "m", "irrun", failure="no"), Result("fresh", "m", "repeated: irrun")]) == []


@pytest.fixture
def embeddings(tmp_path):
    """The sum over the length of the embeddings of ids [batch, length]: [batch, 2]."""
    ov = pytest.importorskip("openvino")
    from openvino import opset13 as ops

    ids = ops.parameter([-1, -1], np.int64, name="ids")
    ids.output(0).set_names({"ids"})
    rows = ops.gather(np.arange(8, dtype=np.float32).reshape(4, 2), ids, 0)
    ov.save_model(ov.Model([ops.reduce_sum(rows, 1)], [ids]), tmp_path / "model.xml", compress_to_fp16=False)
    np.savez(tmp_path / "inputs.npz", ids=np.array([[0, 1, 3], [2, 2, 2]]))
    return Model("embeddings", tmp_path / "model.xml", tmp_path / "inputs.npz")


def test_a_worker_runs_the_inputs_that_it_is_told(embeddings, tmp_path):
    longer = tmp_path / "longer.npz"
    np.savez(longer, ids=np.array([[1, 1, 1, 1]]))
    outputs = tmp_path / "outputs.npz"
    with Worker(IRRUN, embeddings.path, [longer, embeddings.inputs], outputs) as worker:
        assert len(worker.run([1, 0, 1])) == 3
    with np.load(outputs) as arrays:
        assert arrays["arr_0"].tolist() == [[8, 12]]


@pytest.mark.slow
def test_lengths_that_change_are_measured(embeddings):
    first, repeated = measure_fresh(embeddings, IRRUN)
    assert (len(first.seconds), len(repeated.seconds)) == (12, 12)
    results = measure_sequence(embeddings, [IRRUN, OPENVINO], 2)
    assert [(result.runtime, len(result.seconds)) for result in results] == [("irrun", 2), ("openvino", 2)]


def test_a_model_is_measured_beside_its_static_twin(embeddings):
    twin = Peer("static: irrun", "irrun", SETTING, twin=True)
    results = measure_static(embeddings, [IRRUN, twin, OPENVINO], Sizes(2, 5, 5), 1)
    assert [result.failure for result in results] == [None] * 3
    assert [result.difference for result in results] == [0, 0, None]


def test_failures_are_noted(tmp_path):
    (tmp_path / "model.xml").write_text("<net/>")
    np.savez(tmp_path / "inputs.npz", ids=np.array([[0]]))
    model = Model("broken", tmp_path / "model.xml", tmp_path / "inputs.npz")
    assert measure_fresh(model, IRRUN)[0].failure
    assert measure_sequence(model, [IRRUN], 2)[0].failure


def generators():
    return Peer("irrun", "irrun", SETTING), Peer("irrun numpy", "irrun numpy", SETTING), OPENVINO


@pytest.mark.parametrize("beams", [None, 3])
@pytest.mark.slow
def test_a_language_model_is_measured_beside_openvino(beams):
    pytest.importorskip("openvino")
    path = ROOT / "samples" / "language-model" / "model.xml"
    taken = measure(path, generators(), 1, [[3, 1, 4]], 6, beams)
    assert taken["model"] == "language-model 3" + (" beams 3" if beams else "")
    assert list(taken["found"]) == ["irrun", "irrun numpy", "openvino"]
    for (turn,) in taken["found"].values():
        assert all(turn[name] > 0 for name in taken["measures"])
        assert turn["generated"] == taken["found"]["openvino"][0]["generated"]
    if not beams:
        assert turn["generated"] == [[9], [9], [6], [6], [14], [0]]
    shown = lines([taken])
    assert shown[1].endswith("tokens 6 of 6")
    assert "peak" in shown[3]


def test_beam_search_finds_the_likeliest_texts():
    """Two beams over three tokens, whose probabilities depend on the last one."""
    chances = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    seen = []

    def step(inputs):
        seen.append(inputs["beam_idx"].tolist())
        return np.log(chances[inputs["input_ids"]])

    found = beam_search(Text(step, {"input_ids", "beam_idx"}), [[0]], 3, 2)
    # behind 0 these are 0 and 1 (0.5, 0.3), 0 0 and 1 1 (0.25, 0.24), and 1 1 1 and 0 0 0 (0.192, 0.125)
    assert found["tokens"] == [[0, 1], [0, 1], [1, 0]]
    assert seen == [[0, 1], [0, 0], [0, 1]]  # first as they are, then both go on from the same row


def test_the_curve_grows_to_its_sizes():
    lengths = []

    def step(inputs):
        lengths.append((inputs["input_ids"].shape[1], inputs["attention_mask"].shape[1]))
        return np.eye(4)[None, :1]

    found = curve(Text(step, {"input_ids", "attention_mask"}), [[1] * 600], [20, 600])
    assert lengths[:2] == [(4, 4), (1, 5)]
    assert lengths[16:20] == [(1, 20), (512, 532), (52, 584), (1, 585)]
    assert lengths[-1] == (1, 600)
    assert [len(steps) for steps in found["steps"]] == [15, 15]
    assert all(held > 0 for held in found["held"])


def test_a_language_model_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "model.xml").write_text("<net/>")
    taken = measure(tmp_path / "model.xml", [Peer("irrun", "irrun", SETTING)], 2, [[1]], 2)
    assert "not measured: " in lines([taken])[1]


@pytest.mark.slow
def test_a_founding_op_is_measured_beside_the_bytes_that_it_moves(tmp_path):
    pytest.importorskip("openvino")
    script = ROOT / "tests" / "bench" / "founding.py"
    name = "ScatterElementsUpdate-3, 1264 x 1264, i32, axis 1"
    options = ("--python", sys.executable, "--turns", "1", "--only", name, "--json", tmp_path / "found.json")
    done = subprocess.run([sys.executable, script, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()[2:]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[0] == name
    assert cells[4] == f"{(2 * 1264 * 1264 + 2 * 316 * 1264) * 4 / 1e6:.0f} MB"
    ours, theirs = json.loads((tmp_path / "found.json").read_text())["results"]
    assert len(ours["seconds"]) == len(theirs["seconds"]) == 1
    assert ours["difference"] == 0


def test_arrays_are_compared_where_they_are_not_finite_and_where_they_are_strings():
    numbers, words = np.array([1.0, -4.0, np.inf, np.nan]), np.array(["a", "bc"])
    assert distance(numbers, numbers.copy()) == 0
    assert distance(np.array([2.0, -4.0, np.inf, np.nan]), numbers) == 0.25
    assert distance(np.array([1.0, -4.0, 5.0, np.nan]), numbers) == np.inf
    assert distance(np.array([1.0, np.nan, np.inf, np.nan]), numbers) == np.inf
    assert distance(words, words.copy()) == 0
    assert distance(words, np.array(["a", "bd"])) == np.inf
    assert distance(np.zeros(0), np.zeros(0)) == 0


def test_a_summary_has_a_line_for_each_model_the_slowest_first():
    results = [
        Result("steady", model, runtime, seconds)
        for model, runtime, seconds in (
            ("quick", "irrun", [0.5]),
            ("quick", "openvino", [1.0]),
            ("slow", "irrun", [4.0]),
            ("slow", "openvino", [2.0]),
        )
    ]
    results.append(Result("one-shot", "quick", "openvino", failure="first\nlast"))
    assert slower(results, 1.2) == ["slow"]
    lines = summary(results, {"slow": [("If (kernel)", 0.75)]}).splitlines()
    assert lines[2] == "| slow | 4000.0 | 2000.0 | 2.00 |  | If (kernel) 75% |"
    assert lines[3] == "| quick | 500.0 | 1000.0 | 0.50 |  |  |"
    assert lines[5:] == [
        "steady: geometric mean 1.000 of 2, at most 2.00 (slow)",
        "- one-shot, quick, openvino: last",
    ]


def test_data_that_vary_keep_their_shapes_and_types(tmp_path):
    given = {"x": np.float32([1, 2, 3, 6]), "scalar": np.float16(2), "ids": np.array([3, 1, 7, 5, 9, 2])}
    given |= {"lengths": np.array([4, 4, 2]), "text": np.array(["a"])}
    np.savez(tmp_path / "inputs.npz", **given)
    paths = varied(tmp_path / "inputs.npz", tmp_path)
    seen, tokens = set(), set()
    for path in paths:
        with np.load(path) as arrays:
            assert {name: (array.shape, array.dtype) for name, array in arrays.items()} == {
                name: (np.shape(array), np.asarray(array).dtype) for name, array in given.items()
            }
            assert (arrays["lengths"] == given["lengths"]).all()
            assert set(arrays["ids"].tolist()) <= set(given["ids"].tolist())
            seen.add(tuple(arrays["x"].tolist()))
            tokens.add(tuple(arrays["ids"].tolist()))
    assert len(seen) == len(tokens) == len(paths) > 1


@pytest.mark.slow
def test_first_runs_with_other_shapes_are_measured_and_the_costs_of_slow_models_named(tmp_path):
    pytest.importorskip("openvino")
    (tmp_path / "cnn" / "others").mkdir(parents=True)
    for path in (ROOT / "samples" / "cnn").glob("*.*"):
        shutil.copy(path, tmp_path / "cnn")
    shutil.copy(tmp_path / "cnn" / "inputs.npz", tmp_path / "cnn" / "others" / "0.npz")
    measures = ("--measure", "fresh", "--measure", "steady", "--measure", "varied")
    done = run("--models", tmp_path, "--engine", "auto", *measures, "--markdown", tmp_path / "found.md")
    assert done.returncode == 0, done.stderr
    found = (tmp_path / "found.md").read_text().splitlines()
    assert found[0].startswith("| model | irrun ms | OpenVINO ms | steady | fresh | varied |")
    assert found[2].startswith("| cnn | ")
    (model,) = models_in(tmp_path)
    assert costs(model, SETTING)[0][1] > 0
