"""The pre-commit hook, run by pre-commit itself on a scratch repository."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "samples" / "cnn" / "model"

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.skipif(find_spec("pre_commit") is None, reason="pre-commit is not installed"),
    pytest.mark.skipif(
        shutil.which("irrun", path=Path(sys.executable).parent) is None, reason="no irrun beside python"
    ),
]


@pytest.fixture
def run(tmp_path):
    """Run a command in a folder; its status and its output."""
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PRE_COMMIT_HOME": str(tmp_path / "cache"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{f"GIT_{who}_{what}": "irrun@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }

    def run(cwd, *command):
        done = subprocess.run(
            command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        return done.returncode, done.stdout

    return run


@pytest.fixture
def project(tmp_path, run):
    """A repository with a model, a foreign .xml file and the hook of a repository that has nothing but the hook."""
    for name, files in (("hooks", [ROOT / ".pre-commit-hooks.yaml"]), ("project", SAMPLE.parent.glob("model.*"))):
        folder = tmp_path / name
        folder.mkdir()
        for file in files:
            shutil.copy(file, folder)
    hooks, folder = tmp_path / "hooks", tmp_path / "project"
    (folder / "layout.xml").write_text("<layout/>")
    for repository in (hooks, folder):
        run(repository, "git", "init", "-q")
        run(repository, "git", "add", ".")
        assert run(repository, "git", "commit", "-q", "-m", "first") == (0, "")
    revision = run(hooks, "git", "rev-parse", "HEAD")[1].strip()
    # the installed irrun, instead of an environment that pre-commit would make and fill from the network
    (folder / ".pre-commit-config.yaml").write_text(
        f"repos: [{{repo: '{hooks}', rev: {revision}, hooks: [{{id: irrun, language: system, verbose: true}}]}}]\n"
    )
    return folder


def test_the_hook_checks_models_and_skips_other_xml_files(project, run):
    run(project, "git", "add", ".")
    status, shown = run(project, "pre-commit", "run", "--all-files")
    assert status == 0, shown
    assert "model.xml: ok, 19 layers checked" in shown
    assert "1 other .xml file skipped" in shown


def test_the_hook_stops_a_commit_of_a_broken_model(project, run):
    model = project / "model.xml"
    model.write_text(model.read_text().replace('type="ReLU"', 'type="Relux"', 1))
    run(project, "git", "add", ".")
    assert run(project, "pre-commit", "install")[0] == 0
    status, shown = run(project, "git", "commit", "-m", "break it")
    assert status == 1
    assert "error[E301]: unknown op `Relux`" in shown


def test_the_hook_has_nothing_to_do_without_xml_files(project, run):
    run(project, "git", "rm", "-q", "--cached", "model.xml", "layout.xml")
    run(project, "git", "add", ".pre-commit-config.yaml")
    status, shown = run(project, "pre-commit", "run")
    assert status == 0
    assert "(no files to check)Skipped" in shown
