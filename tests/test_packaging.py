"""The package: what is in it, and that a wheel, an sdist and an editable install of it work."""

import json
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())


def run(*command: object, cwd: Path | None = None) -> str:
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the sources, so that building leaves no trace in them."""
    copy = tmp_path_factory.mktemp("tree") / "irrun"
    copy.mkdir()
    for name in ("irrun", "opsets"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    return copy


def works(python: Path, cwd: Path) -> None:
    """Whether the irrun that `python` sees finds its op library and reads a sample, far from the sources."""
    sample = ROOT / "samples" / "cnn" / "model.xml"
    script = "import irrun.opsets, irrun.cli, sys; sys.argv[0] = 'irrun'; irrun.cli.main()"
    report = json.loads(run(python, "-c", script, "validate", "--format", "json", sample, cwd=cwd))
    assert report["ok"]


def environment(folder: Path) -> Path:
    """A fresh virtual environment that sees the dependencies, but not irrun, of this one."""
    # pip, too, is that of this one where it has any: to install another takes seconds
    run(sys.executable, "-m", "venv", *["--without-pip"] * bool(find_spec("pip")), folder)
    python = next(path for path in (folder / "bin" / "python", folder / "Scripts" / "python.exe") if path.exists())
    (packages,) = (folder / "lib").glob("python*/site-packages") if (folder / "lib").exists() else [folder / "Lib"]
    dependencies = [Path(path) for path in sys.path if path.endswith("site-packages")]
    # appended without processing their own .pth files, which is where an editable irrun would come in
    (packages / "dependencies.pth").write_text("\n".join(map(str, dependencies)))
    return python


def install(python: Path, *what: object) -> None:
    run(python, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--ignore-installed", *what)


def test_the_packages_are_the_folders():
    listed = set(SETTINGS["tool"]["setuptools"]["packages"])
    folders = {".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "irrun").rglob("__init__.py")}
    assert listed == folders | {"irrun.opsets"}


def test_in_a_clone_python_finds_all_of_it(tree, tmp_path):
    """Its folder comes before what is installed."""
    python = environment(tmp_path / "env")
    report = run(
        python, "-m", "irrun", "validate", "--format", "json", ROOT / "samples" / "cnn" / "model.xml", cwd=tree
    )
    assert json.loads(report)["ok"]


def test_nothing_else_lies_at_the_top():
    tracked = run("git", "ls-files", cwd=ROOT).splitlines() if (ROOT / ".git").exists() else []
    if not tracked:
        pytest.skip("not a git checkout")
    top = {line.split("/")[0] for line in tracked if not line.startswith(".")}
    assert top == {"pyproject.toml", "README.md", "LICENSE", "irrun", "opsets", "samples", "tests"}


@pytest.fixture(scope="module")
def backend(tmp_path_factory):
    """An environment with setuptools, which builds."""
    python = environment(tmp_path_factory.mktemp("backend"))
    probe = subprocess.run(
        [python, "-c", "import setuptools; print(setuptools.__version__)"], capture_output=True, text=True
    )
    if probe.returncode or int(probe.stdout.split(".")[0]) < 77:
        run(python, "-m", "pip", "install", "-q", "setuptools>=77")
    return python


@pytest.mark.parametrize("form", ["wheel", "sdist", "editable"])
def test_an_installed_irrun_works(form, tree, backend, tmp_path):
    if form == "editable":
        install(backend, "-e", tree)
        works(backend, tmp_path)
        return
    script = f"from setuptools.build_meta import build_{form} as build; print(build({str(tmp_path)!r}))"
    run(backend, "-c", script, cwd=tree)
    (archive,) = tmp_path.glob("*.whl" if form == "wheel" else "*.tar.gz")
    with zipfile.ZipFile(archive) if form == "wheel" else tarfile.open(archive) as opened:
        names = opened.namelist() if isinstance(opened, zipfile.ZipFile) else opened.getnames()
    assert any(name.endswith("py.typed") for name in names)
    assert any(name.endswith("opsets/sparse.py") for name in names)
    assert any(name.endswith("irrun/check/deviations/known.json") for name in names)
    assert any(name.endswith("irrun/tools/report/page/page.html") for name in names)
    assert any(name.endswith("irrun/tools/report/page/vendor/dagre.min.js") for name in names)
    install(backend, archive)
    works(backend, tmp_path)
