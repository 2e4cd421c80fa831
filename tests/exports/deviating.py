"""Whether `irrun compare` names known deviations as such: each case of the conformance suite that shows one, compared.

    python tests/exports/deviating.py [-k TEXT] [--lines FILE]

Every case with `deviates` runs beside OpenVINO's CPU plugin at f32, on its own inputs, but for those that end the
process or of which chance decides what they do, and those that reset their state between runs. What is said is counted:

    N104       the layer is named, and the deviation of the case given as the cause
    refused    OpenVINO refuses the model, and the failure says that this is known
    noted      another cause is given, and the deviation named beside it, with a condition for people to judge
    agrees     what differs is within the tolerance
    other      something else is said: another cause, or another deviation

and what is "other" is listed. Exit status 1 if anything is. It needs openvino.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import openvino as ov

sys.path.insert(0, str(Path(__file__).parents[1]))

from conformance.harness import RESET, Case, all_cases, model_of

import irrun
from irrun.tools.compare.sides.contract import Options, SideFailed

EXACT = Options({"INFERENCE_PRECISION_HINT": "f32"}, timeout=120)


def deviating() -> list[Case]:
    """The cases that are run."""
    return [case for case in all_cases() if case.deviates is not None and not case.crashes and RESET not in case.later]


def said(case: Case, folder: Path) -> tuple[str, str]:
    """What is said of a case, in a word and in full."""
    model, arrays = model_of(case)
    path = folder / "model.xml"
    ov.serialize(model, path, path.with_suffix(".bin"))
    names = [info.name for info in irrun.GraphExecutor(path, engine="reference").inputs]
    steps = [dict(zip(names, map(np.asarray, given), strict=True)) for given in (arrays, *case.later)]
    assert case.deviates is not None
    refuses = case.deviates.does.startswith("refuses")
    try:
        found = irrun.compare(path, "ov:CPU", steps, consecutive=True, options=EXACT)
    except SideFailed as error:
        known = refuses and any(case.deviates.does in text for text in error.known)
        return "refused" if known else "other", str(error)
    causes = [d.message for d in found.diagnostics if d.code == "N104"]
    if not refuses and any(case.deviates.does in message for message in causes):
        return "N104", str(found)
    notes = [note.message for d in found.diagnostics for note in d.notes]
    if not refuses and any("known deviation" in note and case.deviates.does in note for note in notes):
        return "noted", str(found)
    return "agrees" if found.agrees else "other", str(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", default="", help="only cases whose op and title contain this")
    parser.add_argument("--lines", type=Path, help="what is said of each case, as JSON")
    options = parser.parse_args()
    lines = []
    for case in deviating():
        if options.k not in str(case):
            continue
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                word, text = said(case, Path(folder))
            except (irrun.IRError, ValueError) as error:
                word, text = "other", f"{type(error).__name__}: {error}"
        assert case.deviates is not None
        lines.append({"case": str(case), "does": case.deviates.does, "said": word, "text": text})
        if word == "other":
            print(f"{case} ({case.deviates.does}):\n{text}\n", flush=True)
        if options.lines is not None:
            options.lines.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    counts = Counter(line["said"] for line in lines)
    print(", ".join(f"{word} {count}" for word, count in counts.items()))
    sys.exit(bool(counts["other"]))


if __name__ == "__main__":
    main()
