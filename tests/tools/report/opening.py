"""How long reports take to open, and their groups to be laid out, in Chromium: `python opening.py REPORT.html...`.

Of each report the milliseconds until it can be used, the median of three times; those of the first drawing of the
graph; and of opening the boxes of the first drawing one by one, the slowest and the median. It is no test, as it is
about this machine. Wants playwright and Chromium, and the folder tests/ among PYTHONPATH.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

from tools.report.browser import Opened, chromium

OPENED = 25
"""Boxes of the first drawing that are opened."""


def main(paths: list[Path]) -> None:
    with chromium() as browser:
        print(f"{'report':<28} {'MB':>6} {'open':>6} {'draw':>6} {'boxes':>6} {'slowest':>8} {'median':>7}")
        for path in paths:
            ready = []
            for _ in range(3):
                context = browser.new_context(viewport={"width": 1280, "height": 800})
                report = Opened(context, path)
                ready.append(int(report.page.evaluate("document.documentElement.dataset.ready")))
                if len(ready) < 3:
                    context.close()
            report.go("#tab=graph")
            boxes = report.boxes()
            drawn = _took(report)
            took = [_open(report, number) for number in _groups(report)[:OPENED]]
            report.harmless()
            context.close()
            size = path.stat().st_size / 1e6
            slowest, middle = (max(took), median(took)) if took else (0, 0)
            numbers = f"{size:>6.2f} {median(ready):>6} {drawn:>6} {len(boxes):>6} {slowest:>8} {middle:>7.0f}"
            print(f"{path.name:<28} {numbers}")


def _took(report: Opened) -> int:
    return int(report.page.locator(".drawing").get_attribute("data-took") or 0)


def _groups(report: Opened) -> list[str]:
    groups = report.page.locator(".box.group")
    return list(groups.evaluate_all("groups => groups.map(group => group.dataset.box)"))


def _open(report: Opened, number: str) -> int:
    """Milliseconds from a click to the drawing; those before it were opened are closed, where there are too many."""
    click = "new MouseEvent('click', {bubbles: true})"
    find = "box => document.querySelector(`[data-box='${box}'] .toggle`)"
    report.page.evaluate(f"box => ({find})(box).dispatchEvent({click})", number)
    report.page.locator(f".frame[data-box='{number}']").wait_for(state="attached")
    return _took(report)


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
