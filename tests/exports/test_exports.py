"""Real architectures, exported by OpenVINO: no diagnostics, and the outputs that OpenVINO computes. Opt-in.

pip install torch transformers keras
python tests/exports/export.py /tmp/exports --expect
IRRUN_EXPORTS=/tmp/exports pytest -m exports
"""

import os
from pathlib import Path

import numpy as np
import pytest

import irrun

FOLDER = os.environ.get("IRRUN_EXPORTS")
MODELS = sorted(path.parent for path in Path(FOLDER).glob("*/openvino.npz")) if FOLDER else []

pytestmark = [
    pytest.mark.exports,
    pytest.mark.skipif(not MODELS, reason="IRRUN_EXPORTS names no folder that export.py --expect has filled"),
]


@pytest.mark.parametrize("folder", MODELS, ids=lambda folder: folder.name)
def test_an_export_validates_and_agrees_with_openvino(folder):
    path = folder / f"{folder.name}.xml"
    assert not irrun.validate(path).diagnostics
    outputs = irrun.GraphExecutor(path).run(np.load(folder / "inputs.npz"))
    expected = np.load(folder / "openvino.npz")
    assert len(outputs) == len(expected)
    for number, (name, array) in enumerate(outputs.items()):
        theirs = expected[str(number)]
        assert array.shape == theirs.shape, name
        assert array.dtype == theirs.dtype, name
        assert np.abs(array - theirs).max() < 1e-3 * np.abs(theirs).max(), name
