"""What else is wrong with a layer that breaks a rule: what no single thing explains together with what is told."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

from irrun.check.attributes import read_attributes
from irrun.check.origins import fits
from irrun.interruption import hand_on
from irrun.ir.graph import Layer, Port, Value, leading_to
from irrun.records import NamedTuple
from irrun.spec.attributes import BOOL, ELEMENT_TYPE, FLOAT_NUMBER, FLOATS, INT, INTS, REQUIRED, SHAPE, STRING, Attr
from irrun.spec.body import Body, BodyInput, BodyOutput
from irrun.spec.dims import Undecided, same_shapes
from irrun.spec.dtypes import ELEMENT_TYPES
from irrun.spec.op import Concern, Doubt, Inferred, Input, Op, Supposing, Tensor, Tolerated, Violation
from irrun.spec.registry import registry

MAX_TOLD = 16
"""Broken rules of one layer."""

MAX_ASKED_OF_LAYER = 20_000
"""Times that the rule of one layer is asked, counted as below."""

MAX_ASKED = 60_000
"""Times that those of all layers are."""

_OF_RANKS = 100
"""As which a question counts where ranks are unknown: then a rule is asked with each."""

_LAYERS = 10
"""So many layers to be gone back through count as a question."""

_MAX_TOGETHER = 600
"""Values of several attributes that are tried together."""

_LONGEST = 7
"""Lists that stand for one of unknown length have fewer elements: no op has as many axes, or pads of these."""

_NUMBERS = (1, 3, 0, 2, 7, -1)
"""Elements of such lists."""

_FEW = 16
"""Whole numbers up to here, and down to the opposite, stand for an unknown one; so do sizes, and their quotients."""

_UNKNOWN = Tensor("dynamic", None)


class OfInput(NamedTuple):
    """What may be wrong with the input of a number: its `type`, its `shape`, its `value`, or `all` of it."""

    number: int
    what: str


class Entry(NamedTuple):
    """An entry of the port map of a body, or a back edge: the `number` of `where`, a field of `Body`.

    Of back edges nothing is asked where nothing is known of what bodies give.
    """

    body: str
    where: str
    number: int


Part = OfInput | Entry | str
"""What may be wrong on its own: something of an input, an entry, or an attribute by its keyword."""

Answer = Inferred | Violation | None
"""What a rule says; None where it cannot be asked."""


class Further(NamedTuple):
    """What is wrong besides: broken rules, those that OpenVINO does not insist on, and what is doubtful.

    `following` are the broken rules, that which was found first among them, that would not be if all inputs were as
    declared.
    """

    violations: Sequence[Violation] = ()
    following: Sequence[Violation] = ()
    tolerated: Sequence[Tolerated] = ()
    doubts: Sequence[Doubt] = ()


class Enough(Exception):
    """Rules have been asked often enough."""


class Patience:
    """How often the rules of one model are still asked what else is wrong."""

    def __init__(self) -> None:
        self._left, self._of_layer = MAX_ASKED, 0

    def renew(self) -> None:
        """Begin with another layer."""
        self._of_layer = min(self._left, MAX_ASKED_OF_LAYER)

    def spend(self, times: int) -> None:
        """Raises `Enough` where that is more than there is left."""
        if times > self._of_layer:
            raise Enough
        self._of_layer -= times
        self._left -= times


def further(
    op: Op,
    layer: Layer,
    inputs: Sequence[Tensor],
    attrs: Mapping[str, Any],
    first: Violation | None,
    patience: Patience,
    declared: Mapping[int, Tensor],
    bodies: Mapping[str, Body],
) -> Further:
    """What is wrong with a layer besides the rule that it was found to break `first`, and besides the attributes that
    are not among `attrs`, since they could not be read. `declared` are, by number, inputs that are not as they are
    declared, as they would be then.

    The rule is asked again with all unknown that what was found is about, until it finds no more. Of what is found so,
    that is told which no single input or attribute explains together with something that is told, nor another type all
    of it: of a layer with one mistake there is nothing. Nothing is known of what `bodies` give, or declare to get:
    their own layers tell that.
    """
    bodies = {name: replace(body, infer=None, declared=()) for name, body in bodies.items()}
    patience.renew()
    question = _Question(op, layer, inputs, attrs, patience, bodies)
    unread = {attr.keyword for attr in op.attrs if attr.keyword not in attrs}
    try:
        found, rest = question.all_broken(first, unread)
        told = [*found[: first is not None]]
        for broken in found[len(told) :]:
            if not any(question.have_one_reason(broken, other, found, unread) for other in told):
                told.append(broken)
        if len(told) > (first is not None) and _is_another(op, layer, inputs, patience):
            return Further()
        supposed = _Question(op, layer, [declared.get(*each) for each in enumerate(inputs)], attrs, patience, bodies)
        violations, following = [], []
        for broken in told if len(found) > (first is not None) else ():
            said = broken.violation
            if said is not first:
                said = question.restored(broken, _parts_of(told, unread))
                violations.append(said)
            others = _parts_of((each for each in found if each is not broken), unread)
            if declared and not isinstance(supposed.ask(others), Violation):
                following.append(said)
    except Enough:
        return Further()
    return Further(violations, following, *((rest.tolerated, rest.doubts) if rest is not None else ()))


def depends(
    op: Op,
    layer: Layer,
    inputs: Sequence[Tensor],
    attrs: Mapping[str, Any],
    violation: Violation,
    keywords: Collection[str],
    patience: Patience,
) -> bool:
    """Whether a rule may be broken for what some attributes are taken to be, or since the layer is of another type."""
    patience.renew()
    try:
        survives = _Question(op, layer, inputs, attrs, patience, {}).survives(violation, keywords)
        return not survives or _is_another(op, layer, inputs, patience)
    except Enough:
        return True


def _is_another(op: Op, layer: Layer, inputs: Sequence[Tensor], patience: Patience) -> bool:
    """Whether nothing would be wrong with a layer of another type, and its outputs would be as its ports declare."""
    if layer.bodies or not layer.outputs:
        return False
    for other in registry().ops.values():
        most = len(inputs) if other.variadic else len(other.inputs)
        counted = other.type != op.type and other.least_inputs <= len(inputs) <= most
        if not counted or not other.attr_names.issuperset(layer.attributes):
            continue
        read = read_attributes(other, layer)
        if read.values is None or any(each.severity != "info" for each in read.problems):
            continue
        patience.spend(1)
        try:
            outputs = other.infer(inputs, read.values).outputs
        except Exception as error:  # a rule is broken, or fails itself
            hand_on(error)
            continue
        if len(outputs) == len(layer.outputs) and all(
            _says(value.port, tensor) for value, tensor in zip(layer.outputs, outputs, strict=True)
        ):
            return True
    return False


class _Broken(NamedTuple):
    """A rule that is broken, and the parts that it is about."""

    violation: Violation
    parts: Set[Part]


def _parts_of(found: Iterable[_Broken], unread: Collection[str]) -> Set[Part]:
    return {*unread, *(part for each in found for part in each.parts)}


class _Question:
    """A layer, of which parts may be unknown.

    Of an input that is as its port declares what is wrong with one thing of it leaves the others as they were meant;
    any other one may be another tensor altogether.
    """

    def __init__(
        self,
        op: Op,
        layer: Layer,
        inputs: Sequence[Tensor],
        attrs: Mapping[str, Any],
        patience: Patience,
        bodies: Mapping[str, Body],
    ) -> None:
        self._op, self._layer, self._inputs, self._attrs, self._patience = op, layer, [*inputs], attrs, patience
        self._bodies = bodies
        self._declared = {attr.keyword: attr for attr in op.attrs}
        self._keywords = {attr.name: attr.keyword for attr in op.attrs}
        ports = layer.input_ports
        self._meant = [_says(port, tensor) for port, tensor in zip(ports, inputs, strict=False)]
        self._answers: dict[frozenset[Part], Answer] = {}

    def all_broken(self, first: Violation | None, unread: Collection[str]) -> tuple[Sequence[_Broken], Inferred | None]:
        """The rules that are broken, each whatever those before it are about, and what is known besides all that."""
        found: list[_Broken] = []
        hidden: set[Part] = set(unread)
        answer: Answer = first or self.ask(hidden)
        while isinstance(answer, Violation):
            if isinstance(answer, Supposing) and answer is not first:
                answer = self._with_ranks(answer, hidden, found)
            if answer.label != "E302":
                parts = self._about(answer, hidden) - hidden
            elif answer is not first and self._lacks(unread):  # it may be of another type
                break
            else:
                parts = self._counted()
            if not parts or len(found) == MAX_TOLD:
                break
            found.append(_Broken(answer, parts))
            hidden |= parts
            answer = self.ask(hidden)
        return found, None if isinstance(answer, Violation) else answer

    def _with_ranks(self, violation: Supposing, hidden: Collection[Part], found: Sequence[_Broken]) -> Violation:
        """What a rule that is broken whatever ranks some inputs have finds wrong with those that they do have."""
        told = {_key(each.violation) for each in found}
        numbers = [number for concern, _ in violation.ranks for number in self._numbers(concern)]
        for known in (numbers, *([number] for number in numbers)):
            shapes = {OfInput(number, what) for number in known for what in ("shape", "all")}
            answer = self.ask({*hidden} - shapes)
            if isinstance(answer, Violation) and answer.label == violation.label and _key(answer) not in told:
                return answer
        return violation

    def _plain(self, violation: Violation) -> Violation:
        """A violation without what is supposed of ranks, if inputs do have these."""
        if not isinstance(violation, Supposing):
            return violation
        ranks = [(number, rank) for concern, rank in violation.ranks for number in self._numbers(concern)]
        known = all(number < len(self._inputs) and self._inputs[number].rank == rank for number, rank in ranks)
        return violation.plain if known else violation

    def _lacks(self, keywords: Collection[str]) -> bool:
        """Whether the file does not give one of some attributes."""
        return any(self._declared[keyword].name not in self._layer.attributes for keyword in keywords)

    def _counted(self) -> Set[Part]:
        """All inputs, of which there are as many as is right from here on, and any may be another one."""
        most = None if self._op.variadic else len(self._op.inputs)
        self._inputs += [_UNKNOWN] * (self._op.least_inputs - len(self._inputs))
        del self._inputs[most:]
        self._meant = [False] * len(self._inputs)
        self._answers.clear()
        return {OfInput(number, "all") for number in range(len(self._inputs))}

    def _about(self, violation: Violation, hidden: Collection[Part]) -> Set[Part]:
        """The parts that a violation names, of an input whose type alone matters that; those without any one of which
        there is none, where it names nothing."""
        named = self._named(violation)
        if not named:
            return {part for part in self._parts() if not self.survives(violation, {*hidden, part})}
        found = set(named)
        for part in named:
            if isinstance(part, OfInput) and part.what == "shape":
                type = OfInput(part.number, "type")
                if self.survives(violation, {*hidden, part}) and not self.survives(violation, {*hidden, type}):
                    found.discard(part)
                    found.add(type)
        return found

    def _named(self, violation: Violation) -> Set[Part]:
        found: set[Part] = set()
        what = "type" if violation.label == "E303" else "shape"
        plain = violation.plain if isinstance(violation, Supposing) else violation
        for concern in (plain.port, *plain.about):
            for number in self._numbers(concern):
                found |= self._alike(number, what)
            keyword = self._keywords.get(concern, concern) if isinstance(concern, str) else None
            if keyword in self._declared:
                found.add(keyword)
        return found if plain.place is None else found | self._entry(plain.place[0])

    def _entry(self, place: BodyInput | BodyOutput | int) -> Set[Part]:
        """The entry of a port map, or the back edge, that is at fault."""
        if isinstance(place, int):
            return {Entry("body", "back_edges", place)}
        return {
            Entry(name, where, number)
            for name, body in self._bodies.items()
            for where in ("inputs", "outputs")
            for number, entry in enumerate(getattr(body, where))
            if entry.origin is place.origin
        }

    def _numbers(self, concern: Concern | None) -> Sequence[int]:
        """The inputs that go by a name, connected or not."""
        name, offset = concern if isinstance(concern, tuple) else (concern, None)
        if name not in self._op.port_names:
            return ()
        number = self._op.port_names.index(name)
        if offset is not None:
            return (number + offset,)
        return range(number, len(self._inputs)) if self._op.inputs[number].variadic else (number,)

    def _alike(self, number: int, what: str) -> Set[Part]:
        """The same of an input and of those that are one tensor with it, or that are to be alike in that and are so:
        all of one type, or those of a variadic one."""
        if number >= len(self._inputs):
            return {OfInput(number, "all")}
        port, tensor = self._port(number), self._inputs[number]
        of_type = [other for other in range(len(self._inputs)) if self._port(other).type == port.type]
        alike = {number}
        if what == "type" and all(self._inputs[other].type == tensor.type for other in of_type):
            alike.update(of_type)
        for other, each in enumerate(self._inputs):
            one = self._read(other) is self._read(number) is not None
            if one or (what == "shape" and self._port(other) is port and same_shapes(each.shape, tensor.shape)):
                alike.add(other)
        return {OfInput(other, what if self._meant[other] else "all") for other in alike}

    def _port(self, number: int) -> Input:
        return self._op.inputs[min(number, len(self._op.inputs) - 1)]

    def _read(self, number: int) -> Value | None:
        return self._layer.inputs[number] if number < len(self._layer.inputs) else None

    def _parts(self) -> Iterator[Part]:
        """All that may be wrong on its own, inputs that might be connected among it."""
        for number, meant in enumerate(self._meant):
            yield from (OfInput(number, what) for what in (("value", "type", "shape") if meant else ("all",)))
        if not self._op.variadic:
            yield from (OfInput(number, "all") for number in range(len(self._meant), len(self._op.inputs)))
        yield from self._declared
        for name, body in self._bodies.items():
            for where in ("inputs", "outputs"):
                yield from (Entry(name, where, number) for number in range(len(getattr(body, where))))

    def survives(self, violation: Violation, hidden: Collection[Part]) -> bool:
        """Whether it is there still where that is unknown."""
        answer = self.ask(hidden)
        return isinstance(answer, Violation) and _key(answer) == _key(violation)

    def have_one_reason(self, one: _Broken, other: _Broken, found: Sequence[_Broken], unread: Collection[str]) -> bool:
        """Whether a single thing may be why two of the rules that are broken are."""
        labels = one.violation.label, other.violation.label
        if "E302" in labels:  # all inputs are unknown then
            return False
        if labels[0] == labels[1] and self._come_of_one(one, other):
            return True
        rest = _parts_of((each for each in found if each not in (one, other)), unread)
        return any(not isinstance(self.ask({*rest, part}), Violation) for part in self._parts() if part not in rest)

    def _come_of_one(self, one: _Broken, other: _Broken) -> bool:
        """Whether inputs at fault for one and for the other are made of something that both are made of."""
        return not self._sources(one).isdisjoint(self._sources(other))

    def _sources(self, broken: _Broken) -> Set[Layer]:
        values = [self._read(part.number) for part in broken.parts if isinstance(part, OfInput)]
        layers = leading_to([value.layer for value in values if value])
        self._patience.spend(len(layers) // _LAYERS)
        return {layer for layer in layers if layer.type != "Const"}

    def restored(self, broken: _Broken, hidden: Collection[Part]) -> Violation:
        """The violation where no more is `hidden` than it takes, so that it is said in known sizes."""
        left, violation = set(hidden) - broken.parts, broken.violation
        for part in sorted(left, key=str):
            answer = self.ask(left - {part})
            if isinstance(answer, Violation) and _key(answer) == _key(violation):
                left.discard(part)
                violation = answer
        return self._plain(violation)

    def ask(self, hidden: Collection[Part]) -> Answer:
        """What the rule says whatever the `hidden` parts are."""
        key = frozenset(hidden)
        if key not in self._answers:
            self._answers[key] = self._answer(key)
        return self._answers[key]

    def _answer(self, hidden: Set[Part]) -> Answer:
        last = max((part.number for part in hidden if isinstance(part, OfInput)), default=-1)
        inputs = [_without(tensor, number, hidden) for number, tensor in enumerate(self._inputs)]
        inputs += [_UNKNOWN] * (last + 1 - len(inputs))
        keywords = sorted(part for part in hidden if isinstance(part, str))
        bodies = {name: _without_entries(body, name, hidden) for name, body in self._bodies.items()}
        if not keywords:
            return self._said(inputs, self._attrs, bodies)
        said = self._said(inputs, _Partly(self._attrs, keywords), bodies)
        return said if isinstance(said, Violation) else self._whatever(inputs, keywords, bodies) or said

    def _said(self, inputs: Sequence[Tensor], attrs: Mapping[str, Any], bodies: Mapping[str, Body]) -> Answer:
        self._patience.spend(_OF_RANKS if any(tensor.shape is None for tensor in inputs) else 1)
        try:
            return self._op.infer(inputs, attrs, bodies, narrow=False)
        except Violation as violation:
            return violation
        except Undecided:
            return None
        except Exception as error:  # a rule may not expect such values
            hand_on(error)
            return None

    def _whatever(
        self, inputs: Sequence[Tensor], keywords: Sequence[str], bodies: Mapping[str, Body]
    ) -> Violation | None:
        """What the rule says of this, and says the same of it whatever the values of attributes are; which of these are
        wrong themselves does not matter."""
        attrs = [self._declared[keyword] for keyword in keywords]
        values = [_values(attr, self._inputs) for attr in attrs]
        if not 0 < prod(map(len, values)) <= _MAX_TOGETHER:
            return None
        finite = all(map(_is_finite, attrs))
        found: Violation | None = None
        for chosen in product(*values):
            said = self._said(inputs, {**self._attrs, **dict(zip(keywords, chosen, strict=True))}, bodies)
            if not isinstance(said, Violation):
                return None
            if self._named(said).isdisjoint(keywords):
                found = found or said
                if _key(found) != _key(said) or not (finite or found.message == said.message):
                    return None
        return found


class _Partly(Mapping[str, Any]):
    """Attributes, to ask for some of which raises `Undecided`."""

    def __init__(self, values: Mapping[str, Any], unknown: Collection[str]) -> None:
        self._values, self._unknown = {**dict.fromkeys(unknown), **values}, unknown

    def __getitem__(self, name: str) -> Any:
        if name in self._unknown:
            raise Undecided
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _key(violation: Violation) -> tuple[Any, ...]:
    """What is the same for one rule that is broken by one thing."""
    place = None if violation.place is None else violation.place[0]
    blamed = next(iter(violation.about), None)
    return violation.label, violation.port, blamed, place if isinstance(place, int | None) else place.origin


def _says(port: Port, tensor: Tensor) -> bool:
    """Whether a port says the type and the sizes of what arrives there."""
    return port.precision == tensor.type and len(port.dims) == tensor.rank and fits(port, tensor)


def _without(tensor: Tensor, number: int, hidden: Collection[Part]) -> Tensor:
    """What is known of an input whose type, shape or value may be unknown.

    The numbers are not known without the type: with another one the same bytes are others.
    """
    if OfInput(number, "all") in hidden:
        return _UNKNOWN
    typed, shaped, valued = (OfInput(number, what) not in hidden for what in ("type", "shape", "value"))
    if typed and shaped and valued:
        return tensor
    return Tensor(tensor.type if typed else "dynamic", tensor.shape if shaped else None)


def _without_entries(body: Body, name: str, hidden: Collection[Part]) -> Body:
    """A body of some entries of which nothing is known but what they connect."""
    unknown = [Entry(name, "inputs", number) in hidden for number in range(len(body.inputs))]
    return replace(
        body,
        inputs=tuple(
            BodyInput(entry.external, entry.parameter, purpose=entry.purpose, origin=entry.origin) if free else entry
            for entry, free in zip(body.inputs, unknown, strict=True)
        ),
        outputs=tuple(
            BodyOutput(entry.external, entry.result, purpose=entry.purpose, origin=entry.origin)
            if Entry(name, "outputs", number) in hidden
            else entry
            for number, entry in enumerate(body.outputs)
        ),
    )


def _is_finite(attr: Attr) -> bool:
    """Whether all values that an attribute may have are tried."""
    return attr.kind in (BOOL, ELEMENT_TYPE) or bool(attr.kind.words)


def _values(attr: Attr, inputs: Sequence[Tensor]) -> Sequence[Any]:
    """Values that an attribute may have, its default before others: all of them, or such as are not alike."""
    found = {} if attr.default is REQUIRED else {attr.default: None}
    for value in _possible(attr, inputs):
        try:
            attr.check(value, "")
        except ValueError:
            continue
        found[value] = None
    return [*found]


def _possible(attr: Attr, inputs: Sequence[Tensor]) -> Iterator[Any]:
    if attr.kind is BOOL:
        yield from (False, True)
    elif attr.kind is ELEMENT_TYPE:
        yield from ELEMENT_TYPES
    elif attr.kind is SHAPE:
        yield None
    elif attr.kind is STRING:
        yield from ("a", "b")
    elif attr.kind in (INTS, FLOATS):
        for length in range(_LONGEST):
            yield from ((number,) * length for number in _NUMBERS)
            yield tuple(range(length))
    elif attr.kind in (INT, FLOAT_NUMBER):
        sizes = {size for tensor in inputs for size in tensor.shape or () if isinstance(size, int) and size > 0}
        yield from sorted({*range(-_FEW, _FEW + 1), *sizes, *(a // b for a in sizes for b in sizes)}, key=abs)
    else:
        yield from attr.kind.words
