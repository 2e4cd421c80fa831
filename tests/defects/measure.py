"""What irrun says of each defect, held against what should be blamed."""

import signal
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import irrun
from defects.planting import Defect, Valid

SECONDS = 10


@dataclass(frozen=True, slots=True)
class Said:
    line: int | None
    layer: str | None
    code: str
    message: str
    severity: str


@dataclass(frozen=True, slots=True)
class Measured:
    said: tuple[Said, ...]
    fault: str | None
    seconds: float


def ask(model: Defect | Valid) -> Measured:
    """What is said of it; `fault` holds a traceback or a hang."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    handler = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    start = time.perf_counter()
    try:
        report = irrun.validate(model.text, model.weights)
    except Exception:
        return Measured((), traceback.format_exc(), time.perf_counter() - start)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
    said = tuple(
        Said(d.line, d.layer.name if d.layer else None, d.code, d.message, d.severity) for d in report.diagnostics
    )
    return Measured(said, None, time.perf_counter() - start)


def verdict(defect: Defect, measured: Measured) -> dict[str, bool]:
    """found: something is said; at_line: some of it where the cause is; layer: with the layer's name; once: no more.

    That the declared sizes of an operation are not what it gives does not count: they are those of the valid line."""
    said = measured.said
    if defect.family.startswith("operations"):
        said = tuple(one for one in said if "is declared as" not in one.message)
    here = [one for one in said if (one.line or 0) in defect.lines]
    named = defect.layer is None or any(one.layer == defect.layer for one in here)
    return {
        "found": bool(said),
        "at_line": bool(here),
        "layer": bool(here) and named,
        "once": bool(here) and len(measured.said) == 1,
    }


def write(folder: Path, name: str, model: Defect | Valid) -> Path:
    """The files of a model."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.xml"
    path.write_bytes(model.text)
    if model.weights is not None:
        path.with_suffix(".bin").write_bytes(model.weights)
    return path


if __name__ == "__main__":
    sys.exit("run report.py")
