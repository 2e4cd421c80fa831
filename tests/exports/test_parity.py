"""Language models by irrun and by OpenVINO: the sample always, and what language.py has exported on demand.

python tests/exports/language.py /tmp/language --tiny
IRRUN_LANGUAGE=/tmp/language pytest -m exports tests/exports/test_parity.py
"""

import os
from pathlib import Path

import pytest

pytest.importorskip("openvino", reason="it is what irrun is compared with")

from exports.parity import SCENARIOS, compare, good, model_in

FOLDER = os.environ.get("IRRUN_LANGUAGE")
MODELS = [path for folder in sorted(Path(FOLDER).iterdir()) if (path := model_in(folder))] if FOLDER else []


@pytest.mark.parametrize("engine", ["auto", "numpy", "reference"])
def test_the_sample_gives_openvinos_tokens_for_padded_rows_and_beams(engine):
    path = Path(__file__).parents[2] / "samples" / "language-model" / "model.xml"
    cells = compare(path, [engine], steps=12, threads=1)
    assert cells.keys() == {(engine, name) for name in SCENARIOS}
    assert all(good(cell) and cell != "-" for cell in cells.values()), cells


def test_a_cell_is_good_where_all_tokens_are_the_same_and_logits_close():
    assert good("-")
    assert good("9.9e-06")
    assert not good("1.1e-05")
    assert not good("nan")
    assert not good("3.0e-07 1 of 33 tokens")
    assert not good("error[E401]: ...")


@pytest.mark.exports
@pytest.mark.skipif(not MODELS, reason="IRRUN_LANGUAGE names no folder that language.py --tiny has filled")
@pytest.mark.parametrize("path", MODELS, ids=[path.parent.name for path in MODELS])
def test_an_exported_language_model_gives_openvinos_tokens(path):
    cells = compare(path, ["auto", "numpy"], steps=32, threads=1)
    assert all(map(good, cells.values())), cells
