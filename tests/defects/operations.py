"""Single operations from the tables in `operations/`: a line with a valid layer, and below it what breaks it.

    opset8.Gather f32[2,3] i64[2]{0,1} i64[]{1} | batch_dims=0
      axis out of range: 2=i64[]{5}
      more batch dims than indices have: batch_dims=2

Inputs with numbers are constants, the others Parameters. A change replaces an input (`2=`), an attribute (`key=`),
removes either (`-2`, `-key`), or adds an input (`+f32[1]`). Blamed is the layer. What is arguable has the reason in
parentheses at its end. What the outputs of the valid layers are was asked of OpenVINO once (`record.py`)."""

import json
import re
from functools import cache
from pathlib import Path

from defects.graphs import Graph
from defects.planting import MARK, Defect, Valid, marked

FOLDER = Path(__file__).parent
UNUSUAL = FOLDER / "operations" / "unusual.lines"
NAME = "node"


@cache
def recorded() -> dict[str, list[str]]:
    """What each valid line of the tables gives."""
    path = FOLDER / "outputs.json"
    return json.loads(path.read_text()) if path.exists() else {}


def model(line: str, outputs: list[str]) -> tuple[str, bytes]:
    """The text and the weights of a line, the layer marked."""
    head, _, tail = line.partition("|")
    op, *inputs = head.split()
    graph = Graph()
    sources = [
        graph.const(f"c{index}", text) if "{" in text else graph.parameter(f"p{index}", text)
        for index, text in enumerate(inputs)
    ]
    attributes = dict(pair.split("=", 1) for pair in tail.split())
    made = graph.op(NAME, op, sources, outputs, attributes=attributes)
    for index, source in enumerate(made):
        graph.result(f"r{index}", source)
    text = graph.text()
    at = text.rindex("<layer", 0, text.index(f'name="{NAME}"'))
    return text[:at] + MARK + text[at:], bytes(graph.weights)


def broken(line: str, change: str) -> str:
    """The line with the changes, which are separated by blanks."""
    head, _, tail = line.partition("|")
    op, *inputs = head.split()
    slots: dict[int, str] = dict(enumerate(inputs))
    attributes = dict(pair.split("=", 1) for pair in tail.split())
    for part in change.split():
        if part.startswith("+"):
            slots[len(slots)] = part[1:]
        elif match := re.fullmatch(r"-(\d+)", part):
            del slots[int(match[1])]
        elif part.startswith("-"):
            del attributes[part[1:]]
        elif match := re.match(r"(\d+)=", part):
            assert int(match[1]) in slots, (line, change)
            slots[int(match[1])] = part[match.end() :]
        elif part.startswith("op="):
            op = part[3:]
        else:
            key, value = part.split("=", 1)
            attributes[key] = value
    return (
        f"{op} {' '.join(slots[key] for key in sorted(slots))} | {' '.join(f'{k}={v}' for k, v in attributes.items())}"
    )


def tables() -> list[tuple[str, str, list[str]]]:
    """The valid lines with what breaks them, each with the name of its table."""
    cases: list[tuple[str, str, list[str]]] = []
    for path in sorted((FOLDER / "operations").glob("*.txt")):
        for line in path.read_text().splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            if line.startswith(" "):
                cases[-1][2].append(line.strip())
            else:
                cases.append((path.stem, line.strip(), []))
    return cases


def valid_lines() -> list[Valid]:
    """The valid lines themselves."""
    made = []
    for table, line, _ in tables():
        text, weights = model(line, recorded()[line])
        made.append(Valid(f"operations/{table}", line, text.replace(MARK, "").encode(), weights))
    return made


def defects() -> list[Defect]:
    made = []
    for table, line, changes in tables():
        for change in changes:
            name, _, what = change.partition(": ")
            what, _, reason = what.partition(" (")
            text, weights = model(broken(line, what), recorded()[line])
            title = f"{line.split()[0]}, {name}"
            made.append(marked(f"operations/{table}", title, text, weights, NAME, reason.removesuffix(")")))
    return made
