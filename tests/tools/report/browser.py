"""Chromium, as tests of the page drive it: no window, no network, and every request of a page is known."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
"""What keeps it from asking for anything of its own; as root it does not start with its sandbox."""


def missing() -> str | None:
    """Why there is no browser to be driven, None where there is one."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed: pip install -e '.[test,browser]'"
    return None if executable() else "there is no Chromium: install Debian's, or name one in IRRUN_CHROMIUM"


def executable() -> str | None:
    return os.environ.get("IRRUN_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=executable(), args=list(FLAGS))
        yield browser
        browser.close()


class Opened:
    """A page that was opened from disk; `problems` are errors of scripts, and what its policy has refused."""

    def __init__(self, context: Any, path: Path, address: str = "", *, ready: bool = True) -> None:
        self.path = path
        self.requests: list[str] = []
        self.problems: list[str] = []
        self.page = context.new_page()
        self.page.set_default_timeout(20_000)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", lambda message: message.type == "error" and self.problems.append(message.text))
        self.page.goto(path.absolute().as_uri() + address)
        if ready:
            self.page.locator("html[data-ready]").wait_for(state="attached")

    def go(self, address: str) -> None:
        """Follow a link to a place in the same page."""
        self.page.evaluate("address => { location.hash = address; }", address)

    def boxes(self) -> dict[str, str]:
        """The boxes of the graph that is drawn, by number, with their texts."""
        self.page.locator(".drawing[data-boxes]").wait_for()
        found = self.page.locator("[data-box] > .head")
        return dict(found.evaluate_all("heads => heads.map(head => [head.parentNode.dataset.box, head.textContent])"))

    def harmless(self) -> None:
        """Nothing was asked for but the file and the worker in it, and nothing went wrong."""
        assert self.problems == []
        assert [url for url in self.requests if not url.startswith("blob:")] == [self.requests[0]]
        assert self.requests[0].startswith("file:")
        assert self.page.evaluate("window.harmed") is None
