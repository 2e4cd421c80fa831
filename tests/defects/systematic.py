"""The same few defects in every valid line of the tables: an attribute that is no value, one that is not known, ports that
declare another type or rank, an input whose edge is missing."""

# ruff: noqa: E501 (a row of a table is a line)

import re

from defects import operations
from defects.planting import Defect, marked

WORD = "bogus"


def attributes(line: str) -> list[str]:
    return [pair.split("=", 1)[0] for pair in line.partition("|")[2].split()]


def port(text: str) -> int:
    """Where the first output port of the layer begins."""
    return text.index("<port", text.index("<output>", text.index(f'name="{operations.NAME}"')))


def defects() -> list[Defect]:
    made = []
    for index, (_, line, _) in enumerate(operations.tables()):
        op = line.split()[0]
        outputs = operations.recorded()[line]
        whole, weights = operations.model(line, outputs)
        title = f"{op} ({index})"
        for key in attributes(line):
            text, _ = operations.model(operations.broken(line, f"{key}={WORD}"), outputs)
            made.append(marked("attributes that are a word", f"{title}, {key}", text, weights, operations.NAME))
        text, _ = operations.model(operations.broken(line, "colour=red"), outputs)
        made.append(marked("attributes that nobody knows", title, text, weights, operations.NAME))
        at = port(whole)
        other = "U16" if "U16" not in whole[at : at + 60] else "I16"
        text = whole[:at] + re.sub(r'precision="\w+"', f'precision="{other}"', whole[at:], count=1)
        made.append(marked("declared types", title, text, weights, operations.NAME))
        if "<dim>" in whole[at : whole.index("</output>", at)].split("</port>")[0].split("/>")[0]:
            text = whole[:at] + whole[at:].replace("<dim>", "<dim>1</dim><dim>", 1)
            made.append(marked("declared ranks", title, text, weights, operations.NAME))
        inputs = len(line.partition("|")[0].split()) - 1
        edge = f'to-layer="{inputs}" to-port="{inputs - 1}"/>'
        start = whole.rindex("<edge", 0, whole.index(edge))
        text = whole[:start] + whole[whole.index(edge) + len(edge) :]
        made.append(marked("edges that are missing", title, text, weights, operations.NAME))
    return made
