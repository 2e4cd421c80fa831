"""Which release of OpenVINO reads which op, operation set and element type: asked of the releases themselves (opt-in).

    python tests/exports/releases.py FOLDER

FOLDER has a folder for each release, as `pip install --no-deps --target FOLDER/2023.0.0 openvino==2023.0.0` makes it,
and gets the models: every valid case of the conformance suite, small models of one op, each under every operation set
that has the op, and one of each element type. Each release reads them all in a process of its own, and what came of it
is written to irrun/tools/inspect/releases.json. A model that is read may still be computed otherwise.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irrun.spec.op import Op

TABLE = Path(__file__).parents[2] / "irrun" / "tools" / "inspect" / "releases.json"

_RELEASE = re.compile(r"20\d\d\.\d+\.\d+")


def read_all(paths: Iterable[str]) -> None:
    """Read models one by one, in the OpenVINO of this process, and print a line for each: whether it can be read."""
    try:
        from openvino import Core
    except ImportError:
        from openvino.runtime import Core
    core = Core()
    for path in paths:
        print("?", end="", flush=True)
        try:
            core.read_model(path)
            print("1", flush=True)
        except Exception:
            print("0", flush=True)


def readable(release: Path, paths: Sequence[str], listing: Path) -> list[bool]:
    """Whether the release in a folder reads each model; one that ends the process is not read."""
    answers: list[bool] = []
    while len(answers) < len(paths):
        listing.write_text("\n".join(paths[len(answers) :]), encoding="utf-8")
        command = [sys.executable, __file__, "--read", str(listing)]
        environment = {**os.environ, "PYTHONPATH": str(release)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        lines = re.findall(r"\?([01]?)", done.stdout)
        if not lines:
            raise SystemExit(f"{release}: {done.stderr}")
        answers += [line == "1" for line in lines]
    return answers


@dataclass(frozen=True)
class Written:
    """A valid case, which has its op once: with so many inputs and these words for attributes, among so many layers."""

    op: str
    path: str
    inputs: int
    words: tuple[str, ...]
    layers: int


def write_cases(folder: Path) -> list[Written]:
    import openvino as ov
    from conformance.harness import all_cases, model_of

    from irrun import validate

    found = []
    for number, case in enumerate(all_cases()):
        path = folder / f"case{number}.xml"
        try:
            ov.serialize(model_of(case)[0], path, path.with_suffix(".bin"))
        except RuntimeError:
            continue
        report = validate(path)
        nodes = [] if report.inference is None else list(report.inference.nodes.values())
        mine = [node for node in nodes if node.op.name == case.op]
        if not report.errors and len(mine) == 1:
            connected = sum(value is not None for value in mine[0].layer.inputs)
            words = tuple(
                f"{attr.name}={mine[0].attrs[attr.keyword]}"
                for attr in mine[0].op.attrs
                if mine[0].attrs[attr.keyword] in attr.kind.words
            )
            found.append(Written(case.op, str(path), connected, words, len(nodes)))
    return found


def write_opsets(op: Op, case: Path) -> dict[int, str]:
    """The model of a case under each operation set that has its op."""
    text = case.read_text(encoding="utf-8")
    spelt = {there: here for here, there in SPELLINGS.items()}.get(op.type, op.type)
    found = {}
    for opset in registry().opsets(op):
        path = case.with_name(f"{op.name}.opset{opset}.xml")
        changed, count = re.subn(rf'(type="(?:{op.type}|{spelt})" version=")opset\d+"', rf'\g<1>opset{opset}"', text)
        assert count, f"{op.name} is not in {case}"
        path.write_text(changed, encoding="utf-8")
        path.with_suffix(".bin").write_bytes(case.with_suffix(".bin").read_bytes())
        found[opset] = str(path)
    return found


_TYPED = """<net name="m" version="11"><layers>
<layer id="0" name="p" type="Parameter" version="opset1"><data shape="2,8" element_type="{0}"/>
<output><port id="0" precision="{1}"><dim>2</dim><dim>8</dim></port></output></layer>
<layer id="1" name="r" type="Result" version="opset1">
<input><port id="0" precision="{1}"><dim>2</dim><dim>8</dim></port></input></layer></layers>
<edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>
<!-- Before 2024.5, a file that is shorter than some 500 bytes is taken for none of OpenVINO's, so here are some more:
what is measured is whether the element type is known, and nothing else. -->
"""


def write_types(folder: Path) -> dict[str, str]:
    """A model with an input of each element type."""
    found = {}
    for type in ELEMENT_TYPES:
        path = folder / f"type.{type}.xml"
        precision = {"boolean": "BOOL", "dynamic": "UNSPECIFIED", "u1": "BIN"}.get(type, type.upper())
        precision = re.sub(r"^F(?=\d\d$)", "FP", precision)
        path.write_text(_TYPED.format(type, precision), encoding="utf-8")
        found[type] = str(path)
    return found


def main(folder: Path) -> None:
    warnings.simplefilter("ignore")
    models = folder / "models"
    models.mkdir(exist_ok=True)
    releases = sorted(
        (path.name for path in folder.iterdir() if _RELEASE.fullmatch(path.name)),
        key=lambda name: tuple(map(int, name.split("."))),
    )

    def firsts(paths: Sequence[str]) -> dict[str, str]:
        """The first release that reads each model; those that read it are the ones from there on, which is checked."""
        reading = [readable(folder / release, paths, folder / "listing") for release in releases]
        found = {}
        for path, answers in zip(paths, zip(*reading, strict=True), strict=True):
            assert list(answers) == sorted(answers), f"{path} is read by some release, but not by all later ones"
            if any(answers):
                found[path] = releases[answers.index(True)]
        return found

    cases = write_cases(models)
    read = firsts([case.path for case in cases])
    best: dict[str, tuple[int, int, str]] = {}
    forms: dict[tuple[str, str], list[str]] = defaultdict(list)
    for case in cases:
        if case.path not in read:
            continue
        first = read[case.path]
        best[case.op] = min(best.get(case.op, (len(releases), 0, "")), (releases.index(first), case.layers, case.path))
        counted = [] if registry().ops[case.op].variadic else [f"of {case.inputs} inputs"]
        for form in (*counted, *(f"with {word}" for word in case.words)):
            forms[case.op, form].append(first)
    ops = registry().ops
    grid = {name: write_opsets(ops[name], Path(path)) for name, (_, _, path) in best.items()}
    read = firsts([path for paths in grid.values() for path in paths.values()])
    of_ops = {name: releases[best[name][0]] for name in sorted(best)}
    opsets: dict[int, Counter[str]] = defaultdict(Counter)
    for paths in grid.values():
        for opset, path in paths.items():
            opsets[opset][read[path]] += 1
    of_opsets = {opset: counts.most_common(1)[0][0] for opset, counts in sorted(opsets.items())}
    apart = {
        f"{name} of opset{opset}": read[path]
        for name, paths in sorted(grid.items())
        for opset, path in paths.items()
        if read[path] != max(of_ops[name], of_opsets[opset])
    }
    # a single case with a word may be refused for something else that it has
    apart |= {
        f"{name} {form}": min(listed)
        for (name, form), listed in sorted(forms.items())
        if min(listed) != of_ops[name] and (len(listed) > 1 or form.startswith("of"))
    }
    types = write_types(models)
    read = firsts(list(types.values()))
    table = {
        "releases": releases,
        "opsets": {f"opset{opset}": first for opset, first in of_opsets.items()},
        "later": sorted(ops.keys() - of_ops.keys()),
        "types": {type: read[path] for type, path in types.items() if path in read},
        "apart": apart,
        "ops": of_ops,
    }
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    print("read by none:", ", ".join(table["later"]) or "none")


if __name__ == "__main__":
    if sys.argv[1] == "--read":  # in a process that has another OpenVINO, and needs nothing else
        read_all(Path(sys.argv[2]).read_text(encoding="utf-8").splitlines())
    else:
        from irrun.spec.dtypes import ELEMENT_TYPES
        from irrun.spec.registry import SPELLINGS, registry

        sys.path.insert(0, str(Path(__file__).parents[1]))
        main(Path(sys.argv[1]).absolute())
