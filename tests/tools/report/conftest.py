"""A browser, and reports that are opened in it."""

from pathlib import Path

import pytest
from command_line import irrun as command

from .browser import Opened, chromium, missing
from .models import branches, deep, hostile, shared

SAMPLES = Path(__file__).parents[3] / "samples"
OVERFLOW = SAMPLES / "f16-overflow"
DEFECTS = SAMPLES.parent / "tests" / "invalid" / "five_defects.xml"


@pytest.fixture(scope="module")
def browser():
    why = missing()
    if why is not None:
        pytest.skip(why)
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def report_of(tmp_path_factory):
    """Reports by name: of samples with all that can be told of them, of a large model, and of bad ones."""
    folder = tmp_path_factory.mktemp("reports")
    inputs = ("--inputs", OVERFLOW / "inputs.npz")
    other = SAMPLES / "transformer-block" / "model.xml"
    options = {
        "overflow": (OVERFLOW / "model.xml", *inputs, "--profile", "--compare", "precision:f16", "--diff", other),
        "loop": (SAMPLES / "stateful-loop" / "model.xml", "--random", 1, "--profile"),
        "defects": (DEFECTS,),
    }
    written = {
        "deep": lambda path: deep(path, 1500, scoped=True),
        "hostile": hostile,
        "branches": branches,
        "shared": shared,
    }

    def report(name: str) -> Path:
        path = folder / f"{name}.html"
        if not path.exists():
            (folder / name).mkdir()
            given = options[name] if name in options else (written[name](folder / name),)
            command("report", *given, "-o", path)
        return path

    return report


@pytest.fixture
def opened(browser, report_of):
    """Opens a report; at the end, nothing may have gone wrong in any."""
    pages: list[Opened] = []
    contexts = []

    def open_report(name: str, address: str = "", *, ready: bool = True, **options: object) -> Opened:
        contexts.append(browser.new_context(viewport={"width": 1280, "height": 800}, **options))
        pages.append(Opened(contexts[-1], report_of(name), address, ready=ready))
        return pages[-1]

    yield open_report
    for page in pages:
        if page.page.evaluate("document.documentElement.dataset.ready"):
            page.harmless()
    for context in contexts:
        context.close()
