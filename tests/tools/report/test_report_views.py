"""Files for viewers, which `irrun report` writes beside its page or instead of it."""

import json
from pathlib import Path

from command_line import irrun

SAMPLE = Path(__file__).parents[3] / "samples" / "f16-overflow"


def test_a_report_comes_with_files_for_viewers(tmp_path):
    page, netron, graphs = tmp_path / "report.html", tmp_path / "netron.json", tmp_path / "graphs.json"
    irrun(
        *("report", SAMPLE / "model.xml", "--inputs", SAMPLE / "inputs.npz", "--profile", "--compare", "precision:f16"),
        *("-o", page, "--netron", netron, "--model-explorer", graphs),
    )
    told = json.loads(netron.read_text())
    assert told["signature"] == "netron:attachment"
    assert {"MACs", "own error", "accumulated error", "time, ms"} <= {metric["name"] for metric in told["metrics"]}
    assert page.read_bytes().startswith(b"<!doctype html>")
    assert {path.name for path in tmp_path.iterdir()} > {"graphs.json", "graphs_time.json", "graphs_own_error.json"}


def test_files_for_viewers_need_no_page(tmp_path):
    irrun("report", SAMPLE / "model.xml", "--netron", tmp_path / "netron.json")
    assert [path.name for path in tmp_path.iterdir()] == ["netron.json"]


def test_a_report_needs_a_place_and_keeps_what_it_reads(tmp_path):
    assert "give the file to write" in irrun("report", SAMPLE / "model.xml", status=2).stderr
    both = tmp_path / "both.json"
    done = irrun("report", SAMPLE / "model.xml", "--netron", both, "--model-explorer", both, status=2)
    assert "would be written twice" in done.stderr
