"""Asks OpenVINO, and writes what the tests read: `outputs.json`, what the valid lines of the tables give, and
`answers.json`, what it does with each defect and each valid model. Run as `python tests/defects/record.py`."""

import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from defects import collection, operations, witness  # noqa: E402
from defects.planting import MARK  # noqa: E402


def asked(models: list[tuple[bytes, bytes | None]], how: str) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for index, (text, weights) in enumerate(models):
            path = Path(folder) / f"m{index}.xml"
            path.write_bytes(text)
            if weights is not None:
                path.with_suffix(".bin").write_bytes(weights)
            paths.append(path)
        half = (len(paths) + 1) // 2
        with ThreadPoolExecutor(2) as pool:
            parts = pool.map(lambda part: witness.ask(part, how), (paths[:half], paths[half:]))
            return [answer for part in parts for answer in part]


def outputs() -> None:
    lines = [line for _, line, _ in operations.tables()]
    lines += [line for line in operations.UNUSUAL.read_text().splitlines() if line and not line.startswith("#")]
    models = []
    for line in lines:
        text, weights = operations.model(line, ["f32[]"])
        models.append((text.replace(MARK, "").encode(), weights))
    recorded = {}
    for line, answer in zip(lines, asked(models, "outputs"), strict=True):
        if "outputs" not in answer:
            print("NOT VALID", line, answer)
            continue
        recorded[line] = [f"{type}{shape_text(shape)}" for type, shape in answer["outputs"]]
    (HERE / "outputs.json").write_text(json.dumps(recorded, indent=0) + "\n")


def shape_text(shape: str) -> str:
    return "[" + ",".join(dim if dim.isdigit() else "?" for dim in shape.strip("[]").split(",") if dim) + "]"


def answers() -> None:
    made = collection.defects()
    recorded = {}
    for defect, answer in zip(made, asked([(d.text, d.weights) for d in made], "compile"), strict=True):
        recorded[defect.key] = answer["answer"]
    valid = collection.valid()
    for model, answer in zip(valid, asked([(v.text, v.weights) for v in valid], "run"), strict=True):
        recorded[model.key] = answer["answer"]
        if answer["answer"] != "accepted":
            print("VALID?", model.key, answer)
    (HERE / "answers.json").write_text(json.dumps(recorded, indent=0, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    outputs()
    operations.recorded.cache_clear()
    answers()
