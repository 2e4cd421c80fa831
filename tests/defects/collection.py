"""All defects and all unusual valid models of this folder, in one order."""

from collections import Counter
from importlib import import_module

from defects import operations, unusual
from defects.planting import Defect, Valid

MODULES = [
    "form",
    "parts",
    "contents",
    "values",
    "graphs_inside",
    "chains",
    "patterns",
    "systematic",
    "elements",
    "branches",
]


def defects() -> list[Defect]:
    made = [defect for name in MODULES for defect in import_module(f"defects.{name}").defects()]
    made += operations.defects()
    unique(Counter(defect.key for defect in made))
    return made


def valid() -> list[Valid]:
    made = [*operations.valid_lines(), *unusual.valid()]
    unique(Counter(model.key for model in made))
    return made


def unique(names: Counter[str]) -> None:
    twice = [name for name, count in names.items() if count > 1]
    assert not twice, twice
