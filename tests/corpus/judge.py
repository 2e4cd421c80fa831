"""How a defect was reported: found or not, at the right place or not, once or more often."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import irrun
from corpus.defect import Defect
from irrun.diagnostics import Diagnostic

DECLARED = ("W931", "W932", "I903")


@dataclass(frozen=True)
class Verdict:
    """`main` is the diagnostic that reports the defect, `others` what else was reported and has no cause of its own."""

    defect: Defect
    main: Diagnostic | None
    found: bool
    right: bool
    exact: bool
    others: tuple[Diagnostic, ...]
    all: tuple[Diagnostic, ...]

    def __str__(self) -> str:
        wanted = f"{'/'.join(sorted(self.defect.codes))} at {sorted(self.defect.lines)} of {sorted(self.defect.layers)}"
        if self.defect.says:
            wanted += f" saying {self.defect.says!r}"
        return "\n    ".join([f"{self.defect}: wanted {wanted}", *(f"{d} -- {d.layer} -- {d.help}" for d in self.all)])


def judge(defect: Defect, folder: Path) -> Verdict:
    path = folder / "model.xml"
    weights = folder / "model.bin"
    path.write_bytes(defect.xml)
    weights.unlink(missing_ok=True)
    if defect.weights is not None:
        weights.write_bytes(defect.weights)
    reported = list(irrun.validate(path).diagnostics)
    for code in defect.also:
        other = next((d for d in reported if d.code == code), None)
        if other is not None:
            reported.remove(other)
    # a port that declares what flowed there before tells the truth about the change; it is no second report
    counted = [d for d in reported if not (defect.stale and d.code in DECLARED and d.code not in defect.codes)]
    main = min(counted, key=lambda d: -_merit(d, defect), default=None)
    others = tuple(d for d in counted if d is not main and not (defect.stale and d.code in DECLARED))
    return Verdict(
        defect,
        main,
        main is not None and main.code in defect.codes,
        main is not None and _merit(main, defect) == 4,
        main is not None and (not defect.places or (main.line, main.column) in defect.places),
        others,
        tuple(reported),
    )


def _merit(found: Diagnostic, defect: Defect) -> int:
    line = found.line in defect.lines if defect.lines else found.line is None or found.line == 1
    name = f"{found.layer.id} {found.layer.name}" if found.layer else None
    layer = name in defect.layers if defect.layers else True
    says = defect.says.lower() in f"{found.message} {found.help}".lower()
    return 3 * (found.code in defect.codes) + (line and layer and says)
