"""The known deviations of OpenVINO's CPU plugin, and which of them concern a layer; nothing here runs one.

They stand in known.json: JSON, as the standard library both reads and writes it, a row to a line, so that a change of
one is the change of a line. `python -m conformance.deviations`, in tests/, writes it from the cases of the conformance
suite, which show that each is there.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files

from irrun.check.constancy import constant_layers
from irrun.check.deviations.conditions import decide
from irrun.check.deviations.facts import Facts
from irrun.check.infer import Inference
from irrun.check.validate import Report
from irrun.diagnostics import Diagnostic, limited
from irrun.ir.graph import Layer
from irrun.records import dataclass
from irrun.spec.op import Array

IN_RUNS = "layer is not constant"
"""The clause of what OpenVINO's kernels do: constant layers are computed before a run, by those of its reference."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """Something that `device` does otherwise than the specification says, seen with a version of OpenVINO.

    `case` is the case of the conformance suite that shows it. `kind` is "differs" where it gives something else,
    "refuses" where it fails with an error, "crashes" where it may end the process. It concerns a layer of `op` if all
    clauses of `when` hold, which are written in the language of `conditions.py`.
    """

    op: str
    case: str
    does: str
    because: str
    kind: str
    when: tuple[str, ...]
    device: str
    openvino: str

    @property
    def conditions(self) -> str:
        """The clauses for people, but for what goes without saying: that the layer is computed in runs."""
        said = [clause.strip("()").replace(" | ", " or ") for clause in self.when if clause != IN_RUNS]
        return " and ".join(said)


@cache
def known_deviations() -> Mapping[str, Sequence[Deviation]]:
    """All of them, by the name of the op."""
    text = files("irrun.check.deviations").joinpath("known.json").read_text(encoding="utf-8")
    data = json.loads(text)
    found: dict[str, list[Deviation]] = defaultdict(list)
    for row in data["deviations"]:
        row["when"] = tuple(row["when"])
        found[row["op"]].append(Deviation(**row, device=data["device"], openvino=data["openvino"]))
    return found


def concerning(layer: Layer, inference: Inference) -> list[Deviation]:
    """The deviations that concern a layer by what is known before a run, or may concern it; one for each that it does.

    `when` of each has only those clauses that the data of a run decide: it is empty where it concerns the layer
    whatever they are. These come first. A layer that could not be inferred has none.
    """
    return _found(Facts(layer, inference)) if layer in inference.nodes else []


def explaining(
    layer: Layer,
    inference: Inference,
    inputs: Sequence[Array | None],
    outputs: Sequence[Array | None] = (),
) -> list[Deviation]:
    """The deviations that concern a layer which was given `inputs` and has, by the specification, made `outputs`.

    Both go by the numbers of its ports, None where nothing is connected or kept. As in `concerning`, `when` has what is
    still undecided, and those of which nothing is come first.
    """
    return _found(Facts(layer, inference, inputs, outputs)) if layer in inference.nodes else []


def _found(facts: Facts) -> list[Deviation]:
    found: list[Deviation] = []
    said: set[object] = set()
    for row in known_deviations().get(facts.node.op.name, ()):
        left = _undecided(row, facts) if said.isdisjoint((row.does, row.when)) else None
        if left is not None:
            found.append(replace(row, when=left))
            said |= {row.does, row.when}
    return sorted(found, key=lambda deviation: bool(deviation.when))


def _undecided(deviation: Deviation, facts: Facts) -> tuple[str, ...] | None:
    """The clauses that are still open, None where one of them does not hold."""
    left = []
    for clause in deviation.when:
        decision = decide(clause, facts)
        if decision is False:
            return None
        if decision is None:
            left.append(clause)
    return tuple(left)


def with_deviations(report: Report) -> Report:
    """The report with the known deviations that concern layers of its model among the diagnostics.

    >>> import irrun
    >>> print(with_deviations(irrun.validate("samples/cnn/model.xml")).diagnostics[0].message)
    ReLU-1 in OpenVINO's CPU plugin gives 0 for NaN (where data has nan)
    """
    if report.inference is None:
        return report
    found = [replace(diagnostic, file=str(report.path)) for diagnostic in limited(deviating_layers(report.inference))]
    diagnostics = sorted([*report.diagnostics, *found], key=lambda d: (d.line or 0, d.column or 0, d.code))
    return replace(report, diagnostics=diagnostics)


def deviating_layers(inference: Inference) -> Iterator[Diagnostic]:
    """One D101 or D102 for each layer and deviation, in the order of the file."""
    constants = constant_layers(inference)
    for layer in sorted(inference.nodes, key=lambda layer: layer.element.offset):
        for deviation in _found(Facts(layer, inference, constants=constants)):
            yield _diagnostic(layer, deviation)


def _diagnostic(layer: Layer, deviation: Deviation) -> Diagnostic:
    where = f" (where {deviation.conditions})" if deviation.when else ""
    return Diagnostic(
        "D102" if deviation.when else "D101",
        f"{deviation.op} in OpenVINO's {deviation.device} plugin {deviation.does}{where}",
        layer.span,
        layer.label,
        help=f"irrun goes by this: {deviation.because}; seen with OpenVINO {deviation.openvino}",
    )
