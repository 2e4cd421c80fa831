"""The viewers' own code, where it is installed; they are written in JavaScript, which node runs."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def _folder(package: str, distribution: str) -> Path:
    if shutil.which("node") is None:
        pytest.skip("node, which runs the viewer's code, is not installed")
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"the viewer is not installed: pip install {distribution}")
    return Path(spec.origin).parent


def _said(script: str, *arguments: object) -> dict:
    command = ["node", str(HERE / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@pytest.fixture(scope="session")
def netron(tmp_path_factory):
    """What Netron shows of a model that an attachment was dropped onto."""
    source = _folder("netron", "netron")
    folder = tmp_path_factory.mktemp("netron")
    for path in [*source.glob("*.js"), source / "openvino-metadata.json"]:
        shutil.copy(path, folder)
    (folder / "package.json").write_text('{"type": "module"}')
    return lambda model, attachment: _said("netron.mjs", folder, model, attachment)


@pytest.fixture(scope="session")
def model_explorer():
    """What Model Explorer makes of graphs, with all groups open, or one."""
    folder = _folder("model_explorer", "ai-edge-model-explorer") / "web_app"
    return lambda graphs, *group: _said("model_explorer.mjs", folder, graphs, *group)
