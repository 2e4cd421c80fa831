"""The check of a model as a whole: everything that is wrong with it, in one report."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from irrun.check.assumed import against_ports, told_with_layers
from irrun.check.declared import compare_declared
from irrun.check.doubts import of_sound_inputs, refuted
from irrun.check.finite import MAX_SEARCHED, search_weights
from irrun.check.following import told_at_ports, told_once, told_together
from irrun.check.ignoring import ignorable
from irrun.check.infer import Inference, infer
from irrun.check.mixing import mixed_types
from irrun.check.order import check_order
from irrun.check.origins import told_at_causes
from irrun.check.rewiring import told_at_readers, told_of_edges
from irrun.check.unread_weights import check_unchanged, check_whole, of_another_model
from irrun.check.variables import check_variables
from irrun.diagnostics import FIRST, LONGEST_NAME, Diagnostic, Span, clipped, limited
from irrun.ir.graph import Layer, Model, leading_to
from irrun.ir.lines import MendedSource
from irrun.ir.reader import check_form, read
from irrun.ir.sources import Source, opened
from irrun.ir.unread import MOVE
from irrun.ir.weights import Weights
from irrun.records import dataclass
from irrun.spec.attributes import parse_size
from irrun.spec.dims import Dim, Shape, Size, fresh
from irrun.spec.op import Tensor

_FEW = 64
"""Layers that nobody reads of which it is asked what they read."""

_DIGITS = 10
"""Of a position, at most: Python refuses to convert texts that are much longer."""

GivenShapes = Mapping[str, Sequence[int | str | None]]
"""Shapes to infer under, by a name of the input.

"?", None or -1 is an unknown size, "2..8" one with bounds; "batch" is an unknown one, the same wherever it stands.
"""


@dataclass(slots=True)
class Report:
    """What is wrong with a model; `diagnostics` are sorted by their place in the file, infos among them.

    `model` is None where the file could not be read, `inference` where the graph is too broken to be inferred.
    `layers` is the number of layers that could be inferred, `content` the text of the .xml where it came from memory,
    `hidden` the number of infos that were left out.

    `str(report)` is what `irrun validate` prints. A report that is pickled leaves its model and its inference behind.

    >>> import irrun
    >>> report = irrun.validate("tests/invalid/five_defects.xml")
    >>> report.ok, len(report.errors), len(report.warnings)
    (False, 4, 1)
    >>> print(report.errors[0])
    tests/invalid/five_defects.xml:11:4: error[E306]: Clamp-1 lacks its required attribute `min`
    """

    path: Path
    diagnostics: list[Diagnostic]
    model: Model | None = field(default=None, repr=False)
    inference: Inference | None = field(default=None, repr=False)
    layers: int = 0
    content: bytes | None = field(default=None, repr=False)
    hidden: int = 0

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self.diagnostics if d.severity == "error"]

    @property
    def warnings(self) -> list[Diagnostic]:
        return [d for d in self.diagnostics if d.severity == "warning"]

    @property
    def infos(self) -> list[Diagnostic]:
        """What is of no consequence, such as attributes that converters always write and nothing reads."""
        return [d for d in self.diagnostics if d.severity == "info"]

    @property
    def ok(self) -> bool:
        """Whether the model has no errors; warnings and infos do not count."""
        return not self.errors

    def render(self, format: str = "text", *, verbose: bool = False) -> str:
        """The report in one of the forms of `irrun validate --format`, such as "sarif". Raises ValueError for another.

        Those for people have infos only if `verbose`.

        >>> import irrun
        >>> print(irrun.validate("tests/invalid/five_defects.xml").render("concise").splitlines()[-1])
        tests/invalid/five_defects.xml:65:24: error[E206] layer 5 `positive` (ReLU) has no output port 9
        """
        from irrun.check.render.formats import FORMATS
        from irrun.check.render.infos import listed

        if format not in FORMATS:
            raise ValueError(f"there is no format {format!r}; there are {', '.join(FORMATS)}")
        return FORMATS[format]([listed(self, format, verbose)])

    def __str__(self) -> str:
        return self.render()

    def __reduce__(self) -> tuple[type[Report], tuple[object, ...]]:
        return type(self), (self.path, self.diagnostics, None, None, self.layers, self.content, self.hidden)


def validate(
    model: Model | Source,
    weights: Source | None = None,
    shapes: GivenShapes | None = None,
    *,
    content: bytes | None = None,
    searched: int | None = MAX_SEARCHED,
    ignore: Iterable[str] = (),
) -> Report:
    """Check a model: that of an .xml file, given as a path, as bytes or as a file that is open for reading bytes.

    `weights` is the .bin, in one of these forms; for a path, the one beside it unless given. `shapes` are what the
    inputs shall have, by name: `{"image": (1, 3, "height", "width")}`. With `content`, the text of the .xml, `model` is
    only the path that it goes by. So many bytes of weights are `searched` for NaN and infinity, None for all.

    Never raises for a bad model. Raises ValueError where `shapes` names no input or holds what is no size, or where
    errors of a code in `ignore` cannot be ignored, OSError where an open file cannot be read, TypeError where something
    else is given than a model.
    """
    report = _validated(model, weights, shapes, content, searched, ignore)
    given_twice = [found for found in report.diagnostics if found.remedy == FIRST]
    if len(given_twice) in (0, _weight(report)) or hasattr(weights, "read"):
        return report
    from irrun.ir.recovery import as_second, second_readings  # most texts have no attribute twice

    text = report.content if report.content is not None else report.path.read_bytes()
    other = _validated(report.path, weights, shapes, second_readings(text), searched, ignore)
    if _weight(other) + len(given_twice) >= _weight(report):
        return report
    told = [*other.diagnostics, *map(as_second, given_twice)]
    return replace(other, diagnostics=_sorted(told, report.path), content=report.content)


def _weight(report: Report) -> int:
    return len(report.diagnostics) - len(report.infos)


def _validated(
    model: Model | Source,
    weights: Source | None,
    shapes: GivenShapes | None,
    content: bytes | None,
    searched: int | None,
    ignore: Iterable[str],
) -> Report:
    problems: list[Diagnostic] = []
    if isinstance(model, Model):
        path, found, content = model.path, model, model.content
        problems = check_form(model) if model.edited else []
    else:
        path, given = opened(model, "model")
        content = content if given is None else bytes(given)
        read_model, problems = read(path, weights, content)
        if read_model is None or any(problem.code == "E110" for problem in problems):  # layers of kernels, not of ops
            return Report(path, _sorted(problems, path), read_model, content=content)
        found = read_model
    tensors, ignored = given_tensors(found, shapes or {}), ignorable(ignore)
    inference = infer(found.graph, found.weights, tensors, ignore=ignored)
    other = of_another_model(found, inference)
    if other is not None:
        problems = [*(each for each in problems if each.code != "E503"), other]
        found = replace(found, weights=Weights(None))  # so that nothing is said of what it holds
        inference = infer(found.graph, found.weights, tensors, ignore=ignored)
    problems = _with_inferred(problems, found, inference, searched, sizes=not shapes)
    problems += check_unchanged(found.weights)
    source = found.graph.element.source
    if isinstance(source, MendedSource):
        problems = [each for each in problems if each.code == "E101" or each.line not in source.unsure]
    return Report(path, _sorted(problems, path), found, inference, len(inference.nodes), content)


def _with_inferred(
    problems: list[Diagnostic], model: Model, inference: Inference, searched: int | None, *, sizes: bool
) -> list[Diagnostic]:
    """All that is wrong with a model of which the reader has found these `problems`; of sizes that ports declare only
    with `sizes`: where shapes were given they need not be right."""
    variables = [*check_variables(inference)]
    if any(each.code in ("E206", "E209") for each in problems):  # which may be why a variable is not read
        variables = [each for each in variables if each.code != "E219" or not each.notes]
    problems = refuted(problems, inference.refuted, model.weights)
    bodies: list[Diagnostic] = []
    if len(inference.visited) > 1:
        from irrun.check.iterations import check_bodies  # most models have none

        bodies = list(check_bodies(inference, sizes=sizes))  # which takes back what is said inside of them
    exchanged = {each.layer for each in problems if each.code == "W910"}  # outputs, which ports declare otherwise then
    declared = [  # which asks what is said of bodies
        each
        for each in compare_declared(inference, sizes=sizes)
        if each.layer not in exchanged or each.code not in ("W931", "W932")
    ]
    inferred = [*told_at_causes([*inference.diagnostics, *bodies, *variables], declared, inference)]
    if any(each.code == "E511" for each in problems):  # which tells where bytes are read twice
        problems = [each for each in problems if each.code != "W909"]
    cycles = [each for each in problems if each.code == "E209"]
    problems = [each for each in problems if each.code != "E209"]
    inferred = told_of_edges([*cycles, *inferred], model.graph)
    dead, inferred = told_at_readers([each for each in problems if each.code == "W904"], inferred, model.graph)
    # what is no known op is no end, for that reason
    strange = {each.layer for each in inference.diagnostics if each.code.startswith(("E3", "E505"))}
    unread = {note.span for each in variables for note in each.notes if each.code == "E219"}
    unused = {each.layer for each in problems if each.code == "W904"} if unread else set()
    layers = [layer for layer in model.graph.walk() if layer.label in unused] if unused else []
    told = dead | strange | {layer.label for layer in layers[:_FEW] if _reads(layer, unread)}
    problems = [each for each in problems if each.code != "W904" or each.layer not in told]
    later: Iterable[Diagnostic] = chain(
        against_ports(inferred, inference) if sizes else inferred,
        check_order(inference),
        mixed_types(inference),
        search_weights(model, searched),
    )
    later = told_together(told_with_layers(told_at_ports(later, inference)), inference)
    later = told_once(later, model.graph)
    if len(inference.visited) > 1:
        from irrun.check.iterations import told_at_entries

        problems, later = told_at_entries(problems, later)
    if model.weights.doubtful:
        later = of_sound_inputs(later, inference.nodes, model.weights.doubtful)
    portless = {problem.layer for problem in problems if problem.code == "E206"}  # where an edge misses a port
    unconnected = {problem.layer for problem in problems if problem.code == "E208"}
    spilt = {each.layer for each in problems if each.remedy == MOVE}
    unfed = {problem.layer for problem in problems if problem.code == "E218"}  # which may be of another type
    problems += limited(
        found
        for found in later
        if not (found.code in ("W944", "W946", "E310") and found.layer in portless)
        and not (found.code in ("W931", "W932") and found.layer in unconnected)
        and not (found.code == "W931" and found.layer in spilt)
        and not (found.code in ("E302", "E306", "W930") and found.layer in unfed)
    )
    explained = any(each.severity == "error" or each.code == "W904" for each in problems)
    if not explained and not model.edited:  # the bytes of what was taken out stay until the model is written
        problems += check_whole(model, searched)
    if inference.contradicted:  # where it matters no more how these are spelt
        problems = [found for found in problems if found.code != "W908" or found.span not in inference.contradicted]
    return problems


def _reads(layer: Layer, spans: Collection[Span | None]) -> bool:
    """Whether a layer is, or is made of, one at these places."""
    return any(each.span in spans for each in leading_to([layer]))


def _sorted(problems: Sequence[Diagnostic], path: Path) -> list[Diagnostic]:
    placed = [problem if problem.file else replace(problem, file=str(path)) for problem in problems]
    return sorted(placed, key=lambda d: (d.line or 0, d.column or 0, d.code))


def find_input(model: Model, name: str | int) -> int:
    """The number of the input that goes by `name`, or by its position, also as numpy writes that for arrays that are
    saved without names. Raises ValueError listing the inputs."""
    from irrun.ir.signature import names_of_inputs

    name, parameters = str(name), model.graph.parameters
    listed = names_of_inputs(model.graph)
    matches = [number for number, names in enumerate(listed) if name in names]
    if len(matches) == 1:
        return matches[0]
    position = name.removeprefix("arr_")
    if not matches and position.isdecimal() and len(position) < _DIGITS and int(position) < len(parameters):
        return int(position)
    listing = ", ".join(f"`{names[0]}`" for names in listed) or "none"
    what = "is the name of several inputs" if matches else "is no input"
    raise ValueError(f"`{clipped(name, LONGEST_NAME)}` {what} of the model; its inputs are {listing}")


def given_tensors(model: Model, shapes: GivenShapes) -> dict[Layer, Tensor]:
    """What is known of Parameters that are given shapes, in which a name is one size. Raises ValueError."""
    parameters = model.graph.parameters
    names: dict[str, Dim] = {}
    return {
        parameters[find_input(model, name)]: Tensor("dynamic", given_shape(sizes, name, names))
        for name, sizes in by_input(shapes)
    }


def by_input(shapes: GivenShapes) -> Iterable[tuple[str, Sequence[Any]]]:
    """The names of inputs with their shapes. Raises TypeError for shapes without names."""
    if not isinstance(shapes, Mapping):
        raise TypeError(f"`shapes` is {shapes!r}, expected shapes by names of inputs, such as {{'x': ('?', 3)}}")
    return shapes.items()


def given_shape(sizes: Sequence[Any], input: str, names: dict[str, Dim]) -> Shape:
    """A shape of `GivenShapes`, for the input that goes by `input`; sizes that have names are looked up in `names`.

    Raises ValueError where it holds something else.
    """
    if isinstance(sizes, str) or not isinstance(sizes, Iterable):
        raise ValueError(f"the shape of `{input}` is {sizes!r}, expected a sequence of sizes such as ('?', 3)")
    return tuple(_given_size(size, input, names) for size in sizes)


def _given_size(size: Any, input: str, names: dict[str, Dim]) -> Size:
    if isinstance(size, Dim):
        return size
    text = "?" if size is None else str(size).strip()
    if text.isidentifier():
        return names.setdefault(text, fresh(name=text))
    try:
        return parse_size(text)
    except ValueError as error:
        hint = ", or a name such as `batch`" if "expected" in str(error) else ""
        raise ValueError(f"the shape of `{input}` {error}{hint}") from None
