"""The files for viewers that commands write: their options, and what is said of them."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import irrun
from irrun.cli.files import keep_apart
from irrun.cli.viewing import view_files, viewing_options, write_views

CNN = Path(__file__).parents[1] / "samples/cnn/model.xml"


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@viewing_options
@click.pass_context
def look(context, model, netron, model_explorer):
    keep_apart(context, model, None, [], view_files(netron, model_explorer))
    write_views(context, irrun.validate(model), netron, model_explorer)


def said(*arguments, status=0):
    done = CliRunner().invoke(look, [str(argument) for argument in arguments])
    assert done.exit_code == status, done.output
    return done.stderr


def test_both_are_written_and_it_is_said_what_to_do_with_them(tmp_path):
    netron, explorer = tmp_path / "netron.json", tmp_path / "graphs.json"
    data = f"{tmp_path}/graphs_macs.json,{tmp_path}/graphs_bytes.json"
    assert said(CNN, "--netron", netron, "--model-explorer", explorer).splitlines() == [
        f"{netron}: drop it onto model.xml in Netron",
        f"{explorer}: model-explorer {explorer}",
    ]
    assert json.loads(netron.read_text())["signature"] == "netron:attachment"
    assert [graph["id"] for graph in json.loads(explorer.read_text())["graphs"]] == ["model.xml"]
    fixed = tmp_path / "fixed.xml"
    fixed.write_text(CNN.read_text().replace('shape="?,3,16,16"', 'shape="1,3,16,16"').replace("<dim>-1<", "<dim>1<"))
    assert (
        said(fixed, "--model-explorer", explorer) == f"{explorer}: model-explorer {explorer} --node_data_paths {data}\n"
    )
    assert json.loads((tmp_path / "graphs_macs.json").read_text())["fixed.xml"]["results"]["2"] == {"value": 55296}


def test_nothing_is_written_where_nothing_is_asked_for(tmp_path):
    assert said(tmp_path / "missing.xml") == ""


@pytest.mark.parametrize("option", ["--netron", "--model-explorer"])
def test_a_name_that_the_viewer_does_not_take_is_refused(option, tmp_path):
    assert "must end in .json" in said(CNN, option, tmp_path / "view.txt", status=2)
    assert "there is no folder" in said(CNN, option, tmp_path / "none" / "view.json", status=2)


def test_a_model_without_a_graph_writes_nothing(tmp_path):
    (tmp_path / "broken.xml").write_text("<net")
    assert "error: there is no graph to show: " in said(
        tmp_path / "broken.xml", "--netron", tmp_path / "view.json", status=1
    )
    assert not (tmp_path / "view.json").exists()


def test_a_file_is_not_written_twice(tmp_path):
    text = said(CNN, "--netron", tmp_path / "a_macs.json", "--model-explorer", tmp_path / "a.json", status=2)
    assert "a_macs.json would be written twice" in text
