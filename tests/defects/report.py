"""Measures irrun on the defects and the valid models of this folder, and prints the rates by family.

Run as `python tests/defects/report.py`; `--misses FOLDER` writes what is missed there, with what was expected."""

import argparse
import json
import re
import sys
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from defects import collection  # noqa: E402
from defects.measure import ask, verdict, write  # noqa: E402

COLUMNS = ("found", "at_line", "layer", "once")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--misses", type=Path, help="a folder for the models that are missed")
    parser.add_argument("--list", action="store_true", help="print each miss")
    options = parser.parse_args()
    answers = json.loads((HERE / "answers.json").read_text())
    rates: dict[str, list[dict[str, bool]]] = defaultdict(list)
    missed = []
    faults = []
    for defect in collection.defects():
        measured = ask(defect)
        if measured.fault:
            faults.append((defect.key, measured.fault))
        result = verdict(defect, measured)
        rates[f"{defect.family}{' (arguable)' if defect.arguable else ''}"].append(result)
        rates["all (arguable)" if defect.arguable else "all"].append(result)
        if not all(result.values()):
            missed.append((defect, measured, result))
    print(f"{'family':<40}{'defects':>8}" + "".join(f"{column:>9}" for column in COLUMNS))
    for family in sorted(rates):
        rows = rates[family]
        counts = "".join(f"{sum(row[column] for row in rows):>9}" for column in COLUMNS)
        print(f"{family:<40}{len(rows):>8}{counts}")
    for key, fault in faults:
        print(f"FAULT {key}\n{fault}")
    false = []
    valid = collection.valid()
    for model in valid:
        measured = ask(model)
        if measured.said or measured.fault:
            false.append((model, measured))
    print(f"valid models: {len(valid)}, with something said of them: {len(false)}")
    for model, measured in false:
        print(f"  {model.key} [{answers.get(model.key)}]")
        print("".join(f"    {said}\n" for said in measured.said) + (measured.fault or ""), end="")
    for defect, measured, result in missed if options.list else []:
        doubt = f"  ARGUABLE {defect.arguable}" if defect.arguable else ""
        short = next(column for column in COLUMNS if not result[column])
        print(f"NOT {short:<8}[{answers.get(defect.key)}] {defect.key}{doubt}")
        print(f"      expected at {sorted(defect.lines)[:12]} of `{defect.layer}`")
        for said in measured.said:
            print(f"      {said.line} {said.code} {said.layer} {said.message[:230]}")
    if options.misses:
        for defect, measured, result in missed:
            name = re.sub(r"\W+", "_", defect.key).strip("_")[:120]
            kind = "arguable" if defect.arguable else next(f"not_{column}" for column in COLUMNS if not result[column])
            path = write(options.misses / kind, name, defect)
            lines = [f"{said.line}: {said.code} {said.layer}: {said.message}" for said in measured.said]
            where = f"expected at lines {sorted(defect.lines)}, layer `{defect.layer}`"
            expected = f"{where}; {result}; OpenVINO {answers.get(defect.key)}"
            path.with_suffix(".txt").write_text(
                "\n".join([defect.key, expected, defect.arguable, "irrun says:", *lines, ""])
            )


if __name__ == "__main__":
    main()
