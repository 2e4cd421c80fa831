"""Inference: what is known of every tensor of a model before it runs, and which rules its layers break.

Layers are taken in an order in which producers come first. A layer that fails makes its outputs unknown, so one cause
gives one diagnostic and the rest of the model is still checked. What else is wrong with it, whatever the cause of that
is, is found by asking its rule again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, partial
from typing import Any

from irrun.check.ahead import Spent, computed_ahead, invented
from irrun.check.answers import Answers
from irrun.check.attributes import Attributes, read_attributes, with_warnings
from irrun.check.constancy import source_of
from irrun.check.documentation import constraint_text, source_page
from irrun.check.doubts import doubtful_source
from irrun.check.further import Patience, depends, further
from irrun.check.ignoring import as_ignored, as_refused, can_go_on, declared_outputs, is_about_data, unchecked
from irrun.check.lookup import find_op
from irrun.check.origins import as_meant, as_told, attribute_at_odds, cause_of, fits, misarrived, misdeclared
from irrun.check.unbuilt import Unbuilt, as_unbuilt
from irrun.diagnostics import MAX_ALIKE, Diagnostic, Note, Span
from irrun.interruption import hand_on
from irrun.ir.graph import Graph, Layer, LayerBody, PortMap, Value, outside
from irrun.ir.naming import name_sizes
from irrun.ir.stored import Stored
from irrun.ir.structure import topological_order
from irrun.ir.weights import Weights, WeightsError
from irrun.ir.xml import Element, attribute_span
from irrun.records import dataclass
from irrun.spec.attributes import REQUIRED
from irrun.spec.body import Body, BodyInput, BodyOutput
from irrun.spec.dims import Dim, Shape, incompatible
from irrun.spec.op import Concern, Doubt, Inferred, Op, Tensor, Tolerated, Violation
from irrun.spec.patterns import shape_text
from irrun.spec.traits import Branching

MAX_NOTED = 8
"""Layers of a body that cannot be computed for one reason for which a diagnostic has a note."""

MAX_CONCERNED = 4
"""Inputs that a diagnostic has a note for."""

_UNKNOWN = Tensor("dynamic", None)

MAX_LOOKED_AT = 1 << 25
"""Bytes of a large constant that is read before the run because it may hold indices; twice as many of all of them."""

MAX_READ = 1 << 16
"""Bytes of any other constant, as numpy holds it."""

_INDEX_TYPES = ("i32", "i64", "u32", "u64")

MAX_NESTED = 32
"""Bodies in each other that are inferred with what is known outside; deeper ones by what they declare."""

MAX_REPEATED = 20_000
"""Layers of bodies that are inferred again for another round of a loop: loops in loops multiply their rounds."""

_OF_CONSTANT = 4
"""Attributes of a Const, none of which may be left out."""
_TUPLE_FIELDS = ("axis", "start", "end", "stride", "part_size", "purpose")


@dataclass(eq=False, repr=False, slots=True)
class InferredLayer:
    """A layer with its op, its attributes and what is known of its outputs.

    `complete`, `doubts`, `widened` and `supposed` are as in `irrun.spec.op.Node`.
    """

    layer: Layer
    op: Op
    attrs: dict[str, Any]
    types: Mapping[str, str]
    outputs: list[Tensor]
    complete: bool
    doubts: Sequence[Doubt] = ()
    widened: Mapping[str, str] = field(default_factory=dict)
    supposed: bool = False


class Inference:
    """What is known of a model. `nodes` holds the layers that could be inferred, producers first, bodies included.

    Errors of the codes in `ignore` are warnings: their layers, and those whose rules a run has still to ask, have ops
    that compute what they can.

    `mistaken` are the bodies with Parameters that cannot be what they declare: what they declare, and what they get.
    `narrowed` are those with Parameters that may get more than they declare.
    `blamed` are the layers of which entries of the port map are to blame for what their outputs are.
    `behind` are those that failed, that an edge is missing of, and all that follow: less is known there than OpenVINO
    would know.
    `contradicted` are the places of precisions that ports declare of another type than it is.
    `rewired` are the places of ports that are not as declared since something else is connected wrongly, as it seems:
    edges, each with the value that it is to begin at, if it is these.
    `refuted` are doubtful constants that cannot be what they are said to be, and what comes of that.
    `betrayed` are outputs that are not as declared, and the errors of what would be none if they were.
    `ops` are those of types and versions of which there is nothing to report.
    `doubted` are doubts about the data of layers that break a rule, which hold whatever is wrong with these.
    `unbuilt` tells the layers that OpenVINO does not build; errors of these are warnings.
    """

    def __init__(self, weights: Weights, ignore: frozenset[str] = frozenset()) -> None:
        self.weights, self.ignore = weights, ignore
        self.nodes: dict[Layer, InferredLayer] = {}
        self.ops: dict[tuple[str, str], Op] = {}
        self.diagnostics: list[Diagnostic] = []
        self.seen: set[tuple[Any, ...]] = set()
        self.visited: set[Graph] = set()
        self.latest: dict[Graph, tuple[list[Tensor], list[Tensor]]] = {}
        self.pending: list[Graph] = []
        self.counts: Counter[str] = Counter()
        self.answers = Answers()
        self.depth = self.repeated = self.symbolic = self.looked_at = 0
        self.exact = Spent()
        self.patience = Patience()
        self.doubted: dict[Layer, tuple[Op, Sequence[Doubt]]] = {}
        self.refuted: dict[Layer, Diagnostic] = {}
        self.betrayed: dict[Value, list[Diagnostic]] = {}
        self.mistaken: dict[Graph, dict[Layer, tuple[Tensor, Tensor]]] = {}
        self.narrowed: dict[Graph, dict[Layer, tuple[Tensor, Tensor]]] = {}
        self.blamed: set[Layer] = set()
        self.behind: set[Layer] = set()
        self.contradicted: set[Span] = set()
        self.rewired: dict[Span | None, list[tuple[Element, Value]]] = {}
        self.unbuilt = Unbuilt()

    def tensor(self, value: Value | None) -> Tensor:
        """What is known of a value; of None, an input whose edge the reader has found wanting, nothing."""
        if value is None:
            return _UNKNOWN
        node = self.nodes.get(value.layer)
        return node.outputs[value.index] if node and value.index < len(node.outputs) else _UNKNOWN

    def report(self, diagnostic: Diagnostic, rule: tuple[Any, ...] = (), *, further: bool = False) -> None:
        """Take down what is wrong, the `rule` that is broken; what is told `further` of a layer goes by that, too."""
        # a body is inferred several times, for every round of a loop and every branch
        key = (diagnostic.code, diagnostic.span, diagnostic.layer)
        if ((*key, *rule) if further else key) not in self.seen:
            self.seen |= {key, (*key, *rule)}
            self.counts[diagnostic.code] += 1
            alike = self.counts[diagnostic.code] > MAX_ALIKE
            self.diagnostics.append(_one_more(diagnostic.code) if alike else diagnostic)

    def report_all(self, diagnostics: Iterable[Diagnostic]) -> None:
        for diagnostic in diagnostics:
            self.report(diagnostic)


@cache
def _one_more(code: str) -> Diagnostic:
    return Diagnostic(code, "one more")


def infer(
    graph: Graph,
    weights: Weights,
    parameters: Mapping[Layer, Tensor] | None = None,
    ignore: frozenset[str] = frozenset(),
) -> Inference:
    """Infer a whole model; `parameters` replaces what Parameters declare, and errors of codes in `ignore` are none."""
    inference = Inference(weights, ignore)
    infer_graph(graph, inference, name_sizes(graph, parameters or {}))
    while inference.pending:
        body = inference.pending.pop()
        if body not in inference.visited:
            infer_graph(body, inference, {})
    return inference


def infer_graph(graph: Graph, inference: Inference, parameters: Mapping[Layer, Tensor]) -> None:
    """Infer one graph into `inference`, overwriting what is there of an earlier round."""
    inference.visited.add(graph)
    for layer in topological_order(graph):
        given = parameters.get(layer)
        inference.nodes.pop(layer, None)
        inference.doubted.pop(layer, None)
        said = len(inference.diagnostics)
        node = infer_layer(layer, inference)
        if node is None or _is_behind(layer, inference):
            inference.behind.add(layer)
        elif inference.behind:
            inference.behind.discard(layer)
        if node is not None:
            if given is not None and node.outputs:
                if graph.owner and incompatible(node.outputs[0].shape, given.shape):
                    inference.mistaken.setdefault(graph, {}).setdefault(layer, (node.outputs[0], given))
                elif graph.owner and _narrows(node.outputs[0].shape, given.shape):
                    inference.narrowed.setdefault(graph, {}).setdefault(layer, (node.outputs[0], given))
                node.outputs = [_meet(node.outputs[0], given, graph.owner)]
            inference.nodes[layer] = node
        elif len(inference.diagnostics) > said and inference.unbuilt.holds(layer):
            inference.diagnostics[said:] = map(as_unbuilt, inference.diagnostics[said:])
        # bodies that the rule did not ask for are checked by what they declare
        if layer.bodies:
            inference.pending += [body.graph for body in layer.bodies.values() if body.graph not in inference.visited]


def _is_behind(layer: Layer, inference: Inference) -> bool:
    """Whether something that a layer reads, or that its bodies get or give, is not known for an error before."""
    if None in layer.inputs:
        return True
    if not inference.behind:
        return False
    sources = [value.layer for value in layer.inputs if value is not None]
    sources += [result for body in layer.bodies.values() for result in body.graph.results]
    owner = layer.graph.owner
    if owner is not None and layer.type == "Parameter":
        given = outside(layer)
        sources += [given.layer] if given is not None else []
        edges = (edge for body in owner.bodies.values() for edge in body.back_edges)
        sources += [edge.result for edge in edges if edge.parameter is layer]
    return not inference.behind.isdisjoint(sources)


def infer_layer(layer: Layer, inference: Inference) -> InferredLayer | None:
    """Infer one layer from what is known of its inputs; None where it fails, which is reported."""
    op = _op_of(layer, inference)
    if op is None or (layer.type == "Const" and inference.weights.misread(layer)):
        return None
    if layer.type == "Constant" or (layer.type == "Result" and layer.broken):  # of which it is told
        return None
    if layer.type == "Const" and (constant := _plain_constant(layer, op, inference)):
        return constant
    read = read_attributes(op, layer)
    attrs, problems, suspect = read.values, read.problems, read.suspect
    missing = layer.type == "Const" and inference.weights.checked(layer) is None  # which its numbers were told for
    problems = [each for each in problems if not (missing and each.code == "E307")]
    if op.folded is not None and len(layer.inputs) == len(op.inputs):  # of others the rule says so
        op = op.folded.op if op.folded.when([source_of(value, inference) for value in layer.inputs]) else op
    inputs = [inference.tensor(value) for value in layer.inputs]
    if attrs is None or layer.broken:
        inference.report_all(problems)
        doubtful = doubtful_source(layer, inference.weights) is not None
        if read.readable is not None and not layer.broken and not doubtful:
            _tell_further(op, layer, inputs, read.readable, inference)
        return None
    others = [each for each in problems if each is not suspect]
    bodies = {name: body_of(body, inference) for name, body in layer.bodies.items()} if layer.bodies else {}
    said = len(inference.diagnostics)
    try:
        inferred = inference.answers.ask(op, inputs, attrs, layer.attributes, bodies)
    except Violation as violation:
        return _broken(violation, op, layer, inputs, read, others, said, inference)
    except Exception as error:  # of the op library, or of a user's own module: the rest of the model is checked still
        hand_on(error)
        message = f"the rule of {op.name} failed: {type(error).__name__}: {error}"
        help = "that is a mistake in the op's module, not in the model"
        inference.report_all([*others, Diagnostic("E309", message, layer.span, layer.label, help)])
        return None
    beyond = inferred.counted and len(inferred.outputs) < len(layer.outputs)
    inference.report_all([] if beyond else problems)
    _tell_tolerated(op, layer, inputs, inferred.tolerated, said, inference)
    if bodies and layer.graph.owner is None:
        _told_outside(inference.diagnostics[said:], op, layer, attrs, inference)
    if any(body.broken for body in layer.bodies.values()):  # nothing can be said of what it gives
        return None
    _count_outputs(layer, op, inferred, inference, problems)
    kept = inferred.outputs if op.outputs else inferred.outputs[: len(layer.outputs)]
    if inferred.supposed and _is_behind(layer, inference):  # of sizes that may be known to OpenVINO
        kept = [Tensor(tensor.type, None) for tensor in kept]
    if not inferred.widened:
        kept = with_values(op, attrs, inputs, kept, inferred.types, layer, inference)
    if inference.ignore and not inferred.complete and not inferred.widened and can_go_on(op, layer):
        op = unchecked(op, inference.ignore, kept[: len(layer.outputs)])
    known = (inferred.complete, inferred.doubts, inferred.widened, inferred.supposed)
    return InferredLayer(layer, op, attrs, inferred.types, kept, *known)


def _broken(
    violation: Violation,
    op: Op,
    layer: Layer,
    inputs: Sequence[Tensor],
    read: Attributes,
    others: list[Diagnostic],
    said: int,
    inference: Inference,
) -> InferredLayer | None:
    """Report a rule that a layer breaks, with the `others` of the problems with its attributes; `said` tells which
    diagnostics are of its bodies. What is left of the layer, where such a rule is none."""
    attrs, suspect, bodies = read.values, read.suspect, layer.bodies
    assert attrs is not None
    if None in layer.inputs and (
        violation.label == "E302" or _can_do_without(op, layer, inputs, attrs)
    ):  # a port that no edge leads to, which is reported
        inference.report_all(others)
        return None
    assumed = _assumed(op, layer)
    taken = next((each for each in others if each.code == "W950"), None)
    apart = [  # what stands for attributes without which the rule is broken all the same
        each
        for each, keywords in ((suspect, read.guessed), (taken, assumed))
        if each is not None and keywords and not bodies and violation.label != "E302"
        if not depends(op, layer, inputs, attrs, violation, keywords, inference.patience)
    ]
    suspect, taken = (None if each in apart else each for each in (suspect, taken))
    others = [each for each in others if each not in apart]
    inference.report_all(apart)
    odd = attribute_at_odds(violation, op, layer, inputs, attrs) if suspect is None else None
    found = violated(violation, op, layer, inputs, suspect, odd)
    if taken is not None and found.code != "E302" and found.code not in inference.ignore:
        others.remove(taken)
        found = _with_taken(found, taken, _better(op, layer, attrs, inference))
    found, *infos = with_warnings([found, *others])
    inference.report_all(infos)
    if bodies and found.code not in inference.ignore:
        found = _with_inside(found, violation, layer, said, inference)
    refused = _refused(found, violation, op, layer, inputs, attrs, inference)
    if bodies and layer.graph.owner is None:
        inside = [each for each in inference.diagnostics[said:] if each.severity == "error" and each is not found]
        for value, betrayed in inference.betrayed.items() if inside else ():
            betrayed += inside if value.layer.graph is layer.graph and found in betrayed else []
    return refused


def _tell_tolerated(
    op: Op, layer: Layer, inputs: Sequence[Tensor], broken: Sequence[Tolerated], said: int, inference: Inference
) -> None:
    """Report what of the rules that a layer breaks keeps nobody from computing it; `said` tells which diagnostics are
    of its bodies."""
    for each in broken:
        if not _of_missing(each.violation, op, layer):
            found = _tolerated(each, op, layer, inputs)
            body = None if "E401" in inference.ignore else _body_at_fault(each.violation, layer)
            failure = None if body is None else read_alone(body.graph, inference.weights)
            if failure is not None:
                found = _unreadable(found, failure)
            elif body is not None:
                found = _failing(found, body.graph, said, inference)
                if found.severity == "error":
                    inference.blamed.add(layer)
            arrived = _misarrived_at(each.violation, layer, inference) if found.severity == "error" else None
            if arrived is not None:
                inference.betrayed.setdefault(arrived, []).append(found)
            inference.report(found)


def _tell_further(
    op: Op,
    layer: Layer,
    inputs: Sequence[Tensor],
    attrs: Mapping[str, Any],
    inference: Inference,
    first: Violation | None = None,
    said: Diagnostic | None = None,
) -> None:
    """Report what is wrong with a layer besides the `first` rule that it breaks, of which something is `said`, or
    besides attributes that cannot be read."""
    wrong = misdeclared(layer, inference)
    declared = {
        number: as_meant(inputs[number], value.port)
        for number, value in enumerate(layer.inputs)
        if value is not None and value in wrong
    }
    assumed = _assumed(op, layer)
    given = {keyword: value for keyword, value in attrs.items() if keyword not in assumed}
    bodies = {name: body_of(body, inference) for name, body in layer.bodies.items()}
    more = further(op, layer, inputs, given, first, inference.patience, declared, bodies)
    if first in more.following and said is not None:
        inference.betrayed.setdefault(wrong[0], []).append(said)
    for violation in more.violations:
        odd = attribute_at_odds(violation, op, layer, inputs, attrs)
        found = violated(violation, op, layer, inputs, odd=odd)
        inference.report(found, _rule(violation), further=True)
        if violation in more.following:
            inference.betrayed.setdefault(wrong[0], []).append(found)
    for tolerated in () if bodies else more.tolerated:  # which may be errors in bodies
        if not _of_missing(tolerated.violation, op, layer):
            inference.report(_tolerated(tolerated, op, layer, inputs), _rule(tolerated.violation), further=True)
    inference.doubted[layer] = op, more.doubts


def _rule(violation: Violation) -> tuple[Any, ...]:
    """What tells a broken rule from others of one layer."""
    return violation.label, violation.port, *violation.about, violation.place and violation.place[1]


def _with_inside(found: Diagnostic, violation: Violation, layer: Layer, said: int, inference: Inference) -> Diagnostic:
    """A violation of what a body gets, with the errors in the body as notes that follow from it: it has none of them
    where it gets what it declares."""
    if violation.place is None or not isinstance(violation.place[0], BodyInput):
        return found
    since = inference.diagnostics[said:]
    inside = [each for each in since if each.severity == "error"]
    body = _body_at_fault(violation, layer) if inside else None
    if body is not None:
        scratch = Inference(inference.weights)
        infer_graph(body.graph, scratch, {} if _branches(layer) else _retyped(body.graph, inference))
        alone = {(each.layer, each.message) for each in scratch.diagnostics}
        inside = [each for each in inside if (each.layer, each.message) not in alone]
    inference.diagnostics[said:] = [each for each in since if each not in inside]
    notes = [Note(f"with that, layer {each.layer} fails: {each.message}", each.span) for each in inside[:MAX_NOTED]]
    return replace(found, notes=(*found.notes, *notes))


def _retyped(body: Graph, inference: Inference) -> dict[Layer, Tensor]:
    """The parameters of a body in the shapes that they declare and the types that they get, from which nothing follows
    but where they are the same."""
    sources = {layer: outside(layer) for layer in body.parameters}
    return {
        layer: Tensor(inference.tensor(source).type, _declared(layer, Inference(inference.weights)).shape)
        for layer, source in sources.items()
        if source is not None
    }


def _can_do_without(op: Op, layer: Layer, inputs: Sequence[Tensor | None], attrs: dict[str, Any]) -> bool:
    """Whether a layer would break no rule without its last inputs, to which no edge leads."""
    count = len(layer.inputs)
    while count and layer.inputs[count - 1] is None:
        count -= 1
    try:
        return count < len(layer.inputs) and not layer.bodies and bool(op.infer(inputs[:count], attrs).outputs)
    except Violation:
        return False


def _op_of(layer: Layer, inference: Inference) -> Op | None:
    """The op that a layer is, looked up once for each type and version; that there is none is reported."""
    op = inference.ops.get((layer.type, layer.version))
    if op is None:
        op, problem = find_op(layer)
        if problem is not None:
            inference.report(problem)
        elif op is not None:
            inference.ops[layer.type, layer.version] = op
    return op


def _refused(
    found: Diagnostic,
    violation: Violation,
    op: Op,
    layer: Layer,
    inputs: Sequence[Tensor],
    attrs: dict[str, Any],
    inference: Inference,
) -> InferredLayer | None:
    """What is known of a layer whose rule has refused it, which is reported: nothing, unless that may be ignored."""
    if found.code not in inference.ignore:
        ends = [result for body in layer.bodies.values() for result in body.graph.results]
        doubtful = (doubtful_source(each, inference.weights) for each in (layer, *ends))
        source = next(filter(None, doubtful), None)
        cause = None if source is not None else cause_of(op, layer, attrs, inference)
        if source is None and cause is not None and cause.layer.type == "Const":
            source = None if as_told(cause.port, inference.tensor(cause)) else cause.layer
        if source is not None and not inference.unbuilt.holds(layer):
            inference.refuted.setdefault(source, found)
            return None
        inference.report(found, _rule(violation))
        if cause is None and layer.bodies:
            cause = _end_at_fault(violation, layer, inference)
        if cause is None:  # else nothing is wrong but for that
            _tell_further(op, layer, inputs, attrs, inference, violation, found)
        if cause is not None:
            inference.betrayed.setdefault(cause, []).append(found)
        return None
    if not can_go_on(op, layer) or is_about_data(op, inputs, attrs):
        inference.report(as_refused(found, op, layer))
        return None
    inference.report(as_ignored(found))
    outputs = declared_outputs(layer)
    return InferredLayer(layer, unchecked(op, inference.ignore, outputs, known=True), attrs, {}, outputs, False)


def _count_outputs(
    layer: Layer, op: Op, inferred: Inferred, inference: Inference, problems: Sequence[Diagnostic]
) -> None:
    """Report a layer that declares more or fewer outputs than it has; `problems` of its attributes, or a type that may
    not be meant, may be why it has more."""
    if not inferred.counted:
        inferred.outputs.extend([_UNKNOWN] * (len(layer.outputs) - len(inferred.outputs)))
    if len(inferred.outputs) < len(layer.outputs):
        message = f"{op.name} declares {len(layer.outputs)} outputs, expected {len(inferred.outputs)}"
        help = f"delete the last ports, or is another type meant? see {source_page(op)}"
        span = layer.outputs[-1].port.element.span
        found = Diagnostic("E302", message, span, layer.label, help)
        source = doubtful_source(layer, inference.weights)
        if source is not None:
            inference.refuted.setdefault(source, found)
        inference.report_all(problems if source is not None else with_warnings([found, *problems]))
    elif len(inferred.outputs) > len(layer.outputs) > 0 and not layer.bodies:
        inference.report(_lacking_outputs(op, layer, len(inferred.outputs)))


def _lacking_outputs(op: Op, layer: Layer, count: int) -> Diagnostic:
    element = layer.element.find("output") or layer.element
    declared = len(layer.outputs)
    message = f"{op.name} has {count} outputs here, but {declared} output port{'s' if declared > 1 else ''}"
    help = (
        "add a <port> for each, also for those that nobody reads: outputs go by position, so one may stand for another"
    )
    return Diagnostic("W946", message, element.span, layer.label, help)


def _plain_constant(layer: Layer, op: Op, inference: Inference) -> InferredLayer | None:
    """A Const as nearly all are, every other layer of a model: what its op would say of it, the reader has found out.

    None where there is more to it, and it has to be looked at like any other layer.
    """
    blob = inference.weights.checked(layer)
    if blob is None or not blob.plain or layer.inputs or len(layer.outputs) != 1 or layer.bodies or layer.broken:
        return None
    if layer.strays or len(layer.attributes) > _OF_CONSTANT or layer.marked:
        return None
    attrs = {"element_type": blob.element_type, "shape": blob.shape, "offset": blob.offset, "size": blob.size}
    return InferredLayer(
        layer, op, attrs, {}, [_constant(layer, Tensor(blob.element_type, blob.shape), inference)], True
    )


def violated(
    violation: Violation,
    op: Op,
    layer: Layer,
    inputs: Sequence[Tensor | None],
    suspect: Diagnostic | None = None,
    odd: str | None = None,
) -> Diagnostic:
    """The diagnostic of a broken rule, with where the offending input comes from and what is known of it.

    A `suspect` is an attribute that is not read: then that is the place, and what is said of it comes first. An `odd`
    one is the place as well, where an input does not go with it.
    """
    constraint = violation.label.startswith("C")
    notes = []
    span = layer_span = layer.span
    for concern, name, position in _concerned(violation, op, len(layer.inputs)):
        tensor, value = inputs[position], layer.inputs[position]
        if tensor is None or value is None:
            continue
        what = f"`{name}` is {tensor.type}{shape_text(tensor.shape)}, from layer {value.layer}"
        notes.append(Note(what, value.layer.span, name))
        if concern == violation.port:
            span = layer.input_ports[position].element.span
    attribute = next((name for name in (violation.port, *violation.about) if name in layer.attributes), None)
    if span is layer_span and layer.data and isinstance(attribute, str):
        span = attribute_span(layer.data, attribute)
    if odd is not None and layer.data:
        span = attribute_span(layer.data, odd)
    if violation.place is not None:
        entry, name = _entry(violation.place[0], layer), violation.place[1]
        span = attribute_span(entry, name) if name in entry.attributes else entry.span
    advice = f"{constraint_text(op, violation.label) + '; ' if constraint else ''}see {source_page(op)}"
    if suspect is not None:
        span, advice = suspect.span or span, f"{suspect.message}: {suspect.help}; {advice}"
    return Diagnostic(
        "E401" if constraint else violation.label,
        f"{op.name} {violation.label}: {violation.message}" if constraint else violation.message,
        span,
        layer.label,
        help=advice,
        notes=tuple(notes),
        label=violation.label if constraint else None,
    )


def _better(op: Op, layer: Layer, attrs: dict[str, Any], inference: Inference) -> str | None:
    """What to write for the only attribute that the file lacks, if with one other value a layer breaks no rule."""
    from irrun.check.assumed import advised  # which asks this module

    return advised(InferredLayer(layer, op, attrs, {}, [], False), inference)


def _with_taken(found: Diagnostic, taken: Diagnostic, better: str | None) -> Diagnostic:
    """The diagnostic of a rule that is broken with the values that OpenVINO takes for missing attributes."""
    message = f"{taken.message}, with which the layer cannot be computed: {found.message}"
    notes = (Note(found.message, found.span), *found.notes)
    help = better or taken.help
    return replace(found, code="E306", message=message, span=taken.span, help=help, notes=notes, label=None)


def _entry(place: BodyInput | BodyOutput | int, layer: Layer) -> Element:
    """The element of an entry of a port map, or of a back edge."""
    if isinstance(place, int):
        return layer.bodies["body"].back_edges[place].element
    element: Element = place.origin.element
    return element


def _end_at_fault(violation: Violation, layer: Layer, inference: Inference) -> Value | None:
    """What a body gets or gives at the entry of a port map, or at the back edge, that a violation is about, or else
    gives anywhere, if it is not as ports declare."""
    place = violation.place[0] if violation.place is not None else None
    if place is None:
        ends = [result for body in layer.bodies.values() for result in body.graph.results]
    else:
        ends = [layer.bodies["body"].back_edges[place].result if isinstance(place, int) else place.origin.internal]
    for end in ends:
        values = end.outputs if end.type == "Parameter" else end.inputs
        value = values[0] if len(values) == 1 else None
        if value is None:
            continue
        known = _declared(end, inference) if end.type == "Parameter" else inference.tensor(value)
        if not as_told(value.port, known) or (end.type == "Result" and not fits(end.input_ports[0], known)):
            return value
    return None


def _of_missing(violation: Violation, op: Op, layer: Layer) -> bool:
    """Whether it is about attributes that the file lacks, which has been reported."""
    concerns = [violation.port, *violation.about] if violation.port else violation.about
    return bool(concerns) and _assumed(op, layer).issuperset(concerns)


def _assumed(op: Op, layer: Layer) -> set[str]:
    """The keywords of attributes that the file lacks, and that OpenVINO takes values of its own for."""
    lacked = [attr for attr in op.attrs if attr.default is REQUIRED and attr.name not in layer.attributes]
    return {attr.keyword for attr in lacked if attr.assumed is not None}


def _tolerated(found: Tolerated, op: Op, layer: Layer, inputs: Sequence[Tensor | None]) -> Diagnostic:
    """The warning of a broken rule that OpenVINO does not insist on."""
    error = violated(found.violation, op, layer, inputs)
    return replace(error, code=found.code, help=f"{found.answer}; {error.help}")


def _body_at_fault(violation: Violation, layer: Layer) -> LayerBody | None:
    """The body whose Parameters a tolerated violation is about."""
    entry = None if violation.place is None else getattr(violation.place[0], "origin", None)
    return next((body for body in layer.bodies.values() if entry in body.inputs), None)


def _misarrived_at(violation: Violation, layer: Layer, inference: Inference) -> Value | None:
    """What a body gets at the entry that a violation is about, where the layer declares to read something else."""
    entry = None if violation.place is None else getattr(violation.place[0], "origin", None)
    value = layer.inputs[entry.external] if entry is not None and 0 <= entry.external < len(layer.inputs) else None
    return value if value in misarrived(layer, inference) else None


def _failing(found: Diagnostic, graph: Graph, said: int, inference: Inference) -> Diagnostic:
    """A tolerated violation as an error, if a body cannot be computed with what it gets, as it could with what it
    declares; of its layers, of which was `said` something from there on, that is not reported then."""
    labels = {layer.label for layer in graph.layers}
    since = inference.diagnostics[said:]
    inside = [each for each in since if each.severity == "error" and each.layer in labels]
    if not inside and ("E401", found.span, found.layer) not in inference.seen:  # of an earlier round
        return found
    inference.diagnostics[said:] = [each for each in since if each not in inside]
    notes = [Note(f"with that, layer {each.layer} fails: {each.message}", each.span) for each in inside[:MAX_NOTED]]
    help = "give the body what it declares; its layers cannot be computed with what it gets"
    return replace(found, code="E401", help=help, notes=(*found.notes, *notes))


def _unreadable(found: Diagnostic, failure: Diagnostic) -> Diagnostic:
    """A tolerated violation as an error: OpenVINO reads a body by what it declares before it goes by what it gets."""
    note = Note(f"layer {failure.layer}", failure.span)
    return replace(found, code="E401", help=failing_alone(failure), notes=(*found.notes, note))


def read_alone(graph: Graph, weights: Weights) -> Diagnostic | None:
    """The first error of a body that is inferred by what it declares, as OpenVINO reads it."""
    scratch = Inference(weights)
    infer_graph(graph, scratch, {})
    told = (found for found in scratch.diagnostics if found.severity == "error")
    return next(told, None) or next(iter(scratch.refuted.values()), None)


def outputs_alone(
    op: Op, layer: Layer, inputs: Sequence[Tensor | None], attrs: Mapping[str, Any], weights: Weights
) -> Sequence[Tensor] | None:
    """What a layer with bodies would give for other inputs; None where a layer of a body would break a rule.

    Raises `Violation` where it breaks one itself.
    """
    scratch = Inference(weights)
    outputs = op.infer(inputs, attrs, {name: body_of(body, scratch) for name, body in layer.bodies.items()}).outputs
    failed = scratch.refuted or any(found.severity == "error" for found in scratch.diagnostics)
    return None if failed else outputs


def _told_outside(
    said: Sequence[Diagnostic], op: Op, layer: Layer, attrs: dict[str, Any], inference: Inference
) -> None:
    """Note the errors of layers in bodies that would be none if what the bodies get were as declared."""
    errors = [found for found in said if found.severity == "error"]
    cause = cause_of(op, layer, attrs, inference) if errors else None
    if cause is not None:
        inference.betrayed.setdefault(cause, []).extend(errors)


def failing_alone(failure: Diagnostic) -> str:
    """What to say of a body in which `read_alone` has found a failure."""
    return f"OpenVINO reads the body by what it declares, where layer {failure.layer} fails: {failure.message}"


def _concerned(violation: Violation, op: Op, connected: int) -> list[tuple[Concern, str, int]]:
    """The inputs that a violation is about, that at fault first: each with its name in messages and its position."""
    numbers = {port.name: number for number, port in enumerate(op.inputs)}
    found: list[tuple[Concern, str, int]] = []
    for concern in dict.fromkeys((violation.port, *violation.about)):
        if concern is None:
            continue
        name, offset = (concern, 0) if isinstance(concern, str) else concern
        position = numbers.get(name, connected) + offset
        if position < connected and len(found) < MAX_CONCERNED:
            found.append((concern, f"{name}[{offset}]" if op.inputs[numbers[name]].variadic else name, position))
    return found


def _slices(entry: PortMap) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in _TUPLE_FIELDS}


def body_of(body: LayerBody, inference: Inference) -> Body:
    """A body as ops see it: port maps by number, and a way to infer it."""
    parameters = {layer: number for number, layer in enumerate(body.graph.parameters)}
    results = {layer: number for number, layer in enumerate(body.graph.results)}
    return Body(
        inputs=tuple(
            BodyInput(entry.external, parameters[entry.internal], origin=entry, **_slices(entry))
            for entry in body.inputs
        ),
        outputs=tuple(
            BodyOutput(entry.external, results[entry.internal], origin=entry, **_slices(entry))
            for entry in body.outputs
        ),
        back_edges=tuple((results[edge.result], parameters[edge.parameter]) for edge in body.back_edges),
        parameters=len(parameters),
        results=len(results),
        infer=partial(infer_body, body.graph, inference),
        declared=tuple(_declared(parameter, inference) for parameter in parameters),
        complete=not body.lost,
    )


def _declared(parameter: Layer, inference: Inference) -> Tensor:
    node = infer_layer(parameter, inference)
    return node.outputs[0] if node is not None and node.outputs else _UNKNOWN


def infer_body(graph: Graph, inference: Inference, tensors: Sequence[Tensor]) -> list[Tensor]:
    """What is known of the results of a body whose parameters are `tensors`."""
    given = list(tensors)
    if inference.depth >= MAX_NESTED:
        return [_UNKNOWN] * len(graph.results)
    if graph in inference.latest:
        before, results = inference.latest[graph]
        if all(a is b for a, b in zip(before, given, strict=True)):
            return results
        inference.repeated += len(graph.layers)
        if inference.repeated > MAX_REPEATED:
            return [_UNKNOWN] * len(results)
    inference.depth += 1
    try:
        infer_graph(graph, inference, dict(zip(graph.parameters, given, strict=True)))
    finally:
        inference.depth -= 1
    read = [layer.inputs[0] if layer.inputs and not layer.broken else None for layer in graph.results]
    results = [inference.tensor(value) for value in read]
    inference.latest[graph] = given, results
    return results


def _narrows(declared: Shape | None, given: Shape | None) -> bool:
    """Whether a size is declared that need not be the given one."""
    pairs = zip(declared or (), given or (), strict=False)
    return any(isinstance(size, int) and isinstance(other, Dim) for size, other in pairs)


def _meet(declared: Tensor, given: Tensor, owner: Layer | None) -> Tensor:
    """What is known of a parameter that declares one thing and is given another, in a body of `owner`.

    Where the types differ, which is reported, nothing follows but in a branch, which goes by what it gets.
    """
    known = {declared.type, given.type} - {"dynamic"}
    type = known.pop() if len(known) == 1 else given.type if known and _branches(owner) else "dynamic"
    return Tensor(type, given.shape, given.content if given.type in (type, "dynamic") else None)


def _branches(owner: Layer | None) -> bool:
    op = None if owner is None else find_op(owner)[0]
    return op is not None and op.trait(Branching) is not None


def with_values(
    op: Op,
    attrs: Mapping[str, Any],
    inputs: Sequence[Tensor | None],
    outputs: list[Tensor],
    types: Mapping[str, str],
    layer: Layer,
    inference: Inference,
) -> list[Tensor]:
    """The outputs with their values, as far as these can be computed before the run and are worth it."""
    if layer.type == "Const":
        return [_constant(layer, outputs[0], inference)]
    if [tensor for tensor in outputs if tensor.content is not None]:
        return outputs
    connected = [tensor for tensor in inputs if tensor is not None]
    if connected and not [tensor for tensor in connected if tensor.content is None]:
        found = computed_ahead(op, attrs, inputs, outputs, types, inference)
        if found is not None:
            return found
    return [invented(tensor) for tensor in outputs]


def _constant(layer: Layer, tensor: Tensor, inference: Inference) -> Tensor:
    if not tensor.static or tensor.type == "dynamic":
        return tensor
    weights = inference.weights
    try:
        blob = weights.check(layer)
        size = weights.allocated(layer) if tensor.type == "string" else max(blob.needed, blob.elements)
        if size > (MAX_LOOKED_AT if tensor.type in _INDEX_TYPES else MAX_READ):
            return tensor
        if size > MAX_READ:
            inference.looked_at += size
            if inference.looked_at > 2 * MAX_LOOKED_AT:
                return tensor
        read = tensor.type == "string"
        return Tensor(tensor.type, tensor.shape, weights.constant(layer) if read else Stored(weights, blob))
    except WeightsError:  # the reader has reported it
        return tensor
