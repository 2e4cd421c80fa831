"""What an op is: its ports, attributes, element types, shape rule and kernel, as plain data."""

from __future__ import annotations

import inspect
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import cache, cached_property
from itertools import zip_longest
from types import FunctionType, MappingProxyType
from typing import Any, NoReturn, TypedDict, TypeVar, Unpack

import numpy as np

from irrun.diagnostics import counted
from irrun.records import NamedTuple, dataclass
from irrun.spec.attributes import MAX_RANK, REQUIRED, SHAPE, Attr
from irrun.spec.body import Body, BodyInput, BodyOutput
from irrun.spec.dims import UNDECIDED, Answer, Dim, Shape, Size, Undecided, fresh, product, questions
from irrun.spec.dtypes import ELEMENT_TYPES, comparable, element_type, numpy_dtype
from irrun.spec.lowering import Arrange, Decompose, Lowering
from irrun.spec.patterns import Mismatch, Pattern, bind, expand, parse_pattern, shape_text
from irrun.spec.pending import Array as Array
from irrun.spec.pending import Pending
from irrun.spec.traits import Trait

TypeSet = frozenset[str]
Kind = TypeVar("Kind", bound=Trait)

BOOLEAN = TypeSet({"boolean"})
FLOAT = TypeSet({"f16", "bf16", "f32", "f64"})
SIGNED = TypeSet({"i8", "i16", "i32", "i64"})
INTEGER = SIGNED | {"u8", "u16", "u32", "u64"}
NUMERIC = FLOAT | INTEGER
INDEX = TypeSet({"i32", "i64"})
ANY = TypeSet(ELEMENT_TYPES)

MAX_ELEMENTS = 2**62
"""Of a tensor. No machine has the memory for them, so a model that asks for more is wrong."""

MAX_LISTED = 4096
"""Elements of an input that a rule goes through one by one: sizes, axes and pads, of which there are few."""

MAX_TRIED = 500
"""Ranks of inputs with which a rule is asked, one after the other, where they are unknown."""

CONTEXT = {"types", "state", "bodies"}
"""What a kernel may ask for besides attributes, as a keyword-only argument.

`types` maps its type symbols to element types, `state` is a mapping from variable ids to arrays that lives between
runs, `bodies` maps the names of its bodies to `Body`.
"""

OPSETS = range(1, 18)
"""The operation sets that there are, by number."""

LATEST_FULL = 16
"""The newest of them that holds what the ones before it hold; opset17 has a few ops of its own alone."""

PARTS = {"suppress", "suppress_rotated", "decays", "fade", "pool", "spell"}
"""Keyword-only arguments of kernels with a default, in whose place an engine may give what does the same in less time.

`suppress(boxes, ends, threshold, ...)` is `unsuppressed`, `suppress_rotated` is `unsuppressed_rotated`,
`decays(boxes, ends, pixel, sigma)` is `lowest_decays`, `fade(boxes, scores, ends, sigma, ...)` is `faded` in
`opsets/_boxes.py`; `pool(maps, starts, sizes, bins, ...)` is `pooled_regions` in `opsets/_rois.py`;
`spell(chances, stays, skips, lengths)` is `spelt` in `opsets/sequence.py`.
"""


_LIBRARY = ("irrun.", "opsets")
"""Modules whose kernels are held against their ops by a test: to look at all of them takes as long as to load them."""

Concern = str | tuple[str, int]
"""An input or an attribute by name, or one of a variadic input by name and number."""


Place = tuple[BodyInput | BodyOutput | int, str]
"""An entry of a body's port map, or a back edge by its number, and the attribute of it that is at fault, or ""."""


class Violation(Exception):
    """A node breaks a rule. `label` is a constraint of its op (C1, C2, ...) or a code of the E3xx family.

    `port` is the input that is at fault, None where it is not one alone; `about` are the inputs and attributes that the
    message names besides, in its order; `place` is where a body is at fault.

    >>> problem = Violation("C2", "`axis` is 7, outside [-3, 3)", "data", ["axis"])
    >>> problem.label, str(problem)
    ('C2', '`axis` is 7, outside [-3, 3)')
    """

    def __init__(
        self,
        label: str,
        message: str,
        port: Concern | None = None,
        about: Sequence[Concern] = (),
        place: Place | None = None,
    ) -> None:
        super().__init__(message)
        self.label = label
        self.message = message
        self.port = port
        self.about = about
        self.place = place


class Supposing(Violation):
    """One of the rules that a node breaks whatever ranks some inputs have: `plain`, with the likeliest `ranks`."""

    def __init__(self, plain: Violation, ranks: Sequence[tuple[Concern, int]]) -> None:
        supposed = " and ".join(f"`{_spelled(concern)}` has rank {rank}" for concern, rank in ranks)
        message = f"{plain.message}, if {supposed}; with any other rank something else is wrong"
        about = list(dict.fromkeys([*plain.about, *(concern for concern, _ in ranks)]))
        super().__init__(plain.label, message, plain.port, about, plain.place)
        self.plain = plain
        self.ranks = ranks


class Tolerated(NamedTuple):
    """A rule that a node breaks, and what OpenVINO does all the same, which is what the kernel does.

    `code` is the warning's: W951 of a constraint, W952 of an element type.
    """

    violation: Violation
    does: str
    code: str = "W951"

    def __str__(self) -> str:
        """As a run tells it."""
        return f"{self.violation.label}: {self.violation.message}; {self.answer}"

    @property
    def answer(self) -> str:
        return f"OpenVINO {self.does}, and {'neither' if self.does.startswith('does not') else 'so'} does irrun"


UNSORTED, UNSPECIFIED, UNLIKELY = "W947", "W949", "W954"
"""Codes of constants in an order that is not expected, of numbers of which the specification says nothing, and of those
that are seldom meant."""


class Doubt(NamedTuple):
    """What is doubtful about the data of a node, of which a run tells and goes on.

    `code` is the warning's where the data are constant. `port` is the input at fault, None where it is not one alone.
    `refused` says that OpenVINO does not read such a layer.
    """

    message: str
    port: str | None = None
    code: str = UNSORTED
    refused: bool = False


WHOLE = "takes it for whole numbers"
"""What OpenVINO does with indices and sizes in other element types."""

CONVERTED = "converts it"
"""What OpenVINO does with whole numbers beside others."""

AS_THEY_ARE = "computes with these types"
"""What OpenVINO does with data of other element types."""


@dataclass(frozen=True)
class Input:
    """An input port. `type` is a symbol of the op's `types` or an element type; `shape` is a pattern.

    The type `dynamic` takes tensors of any types, also where a variadic input takes several.

    The last input may be `variadic`: any number of tensors, none of which binds the symbols of the pattern.

    One that is `lenient` may be of another floating-point type than an input before it that has the same symbol, though
    the specification has one for both: old converters write that, and OpenVINO computes it. Of integers it may be
    another integer type. With `integers` it may be of these, too, where the others are floating-point numbers.

    Of bits that a file has for one that is `low_first` the lowest of each byte comes first, elsewhere the highest.

    >>> Input("image", "T", "[N, C, *spatial]").type
    'T'
    >>> len(Input("axes", "i64", "[] | [K]", optional=True).patterns)  # a scalar, or a vector
    2
    """

    name: str
    type: str
    shape: str
    optional: bool = False
    variadic: bool = False
    lenient: bool = False
    integers: bool = False
    low_first: bool = False

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        return tuple(parse_pattern(text) for text in self.shape.split("|"))


@dataclass(frozen=True)
class Output:
    """An output port. `type` is a symbol of the op's `types`, an element type, or the attribute that names one.

    >>> Output("indices", "index_element_type", "[N, C, *spatial]").pattern.head
    ('N', 'C')
    """

    name: str
    type: str
    shape: str
    variadic: bool = False

    @cached_property
    def pattern(self) -> Pattern:
        return parse_pattern(self.shape)


@dataclass(frozen=True, slots=True)
class Tensor:
    """What is known of a tensor before a run.

    `shape` is None where the rank is unknown. `content` is its array where that is known: of the tensor's own type, or
    of dtype object with ints and `Dim`s where only some elements are known exactly; or what such an array can be had
    of. Who wants the array asks for the `value`.

    >>> Tensor("f32", (fresh(), 3)).rank, Tensor("f32", (fresh(), 3)).static, Tensor("f32", None).rank
    (2, False, None)
    >>> Tensor.of(np.array([2, 3])).known
    True
    """

    type: str
    shape: Shape | None
    content: Array | Pending | None = None

    @property
    def value(self) -> Array | None:
        """The array, where it is known."""
        content = self.content
        return content.array() if isinstance(content, Pending) else content

    @property
    def numbers(self) -> list[Any] | None:
        """The elements in order as Python has them, unknown ones as `Dim`; None where the value is unknown."""
        content = self.content
        if content is None or isinstance(content, Pending):
            return None if content is None else content.numbers()
        return content.ravel().tolist()

    @property
    def listed(self) -> list[Any] | None:
        """The `numbers` of few elements that are in no array yet: to make one may take to load numpy."""
        content = self.content
        return content.numbers() if isinstance(content, Pending) and content.size <= MAX_LISTED else None

    @property
    def symbolic(self) -> bool:
        """Whether there are, or may be, elements that are not known exactly among those of the value."""
        content = self.content
        if content is None:
            return False
        return content.symbolic if isinstance(content, Pending) else bool(content.dtype == object)

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def static(self) -> bool:
        return self.shape is not None and Dim not in map(type, self.shape)

    @property
    def numeric(self) -> bool:
        """Whether its elements are numbers or booleans, as far as the type is known before the run."""
        return self.type in ELEMENT_TYPES and self.type != "string"

    @property
    def known(self) -> bool:
        """Whether the value is known exactly."""
        content = self.content
        if content is None or isinstance(content, Pending):
            return content is not None and content.known
        return content.dtype != object or not any(isinstance(item, Dim) for item in content.flat)

    @classmethod
    def of(cls, array: Array, type: str | None = None) -> Tensor:
        """All about an array."""
        return cls(type or element_type(array.dtype), array.shape, array)


Shapes = Mapping[str, Any]
"""Symbols that a shape rule binds: a plain one to a size, a starred one to a shape, None for an unknown rank."""
Rule = Callable[["Node"], Shapes | list[Tensor] | None]


class Dims(dict[str, Any]):
    """The dimension symbols of a node. Asking for one that is unknown raises `Undecided`; `get` answers None."""

    def __missing__(self, name: str) -> Any:
        raise Undecided


@dataclass(eq=False, repr=False, slots=True)
class Node:
    """One use of an op, as its shape rule sees it.

    `inputs` has None for an input that is not connected; a variadic one stands as a list. `complete` turns False where
    a question could not be answered before the run: then the rule is asked again at run time, when it can be.
    `doubts` are about the data, for the run to tell; `tolerated` are broken rules that OpenVINO does not insist on.
    `widened` has the type to compute in for each type symbol that lenient inputs have in another type, or all
    inputs in one that OpenVINO converts; `types` has that of the first input then. `supposed` are outputs whose shapes
    are what is most likely: a run may find others, of another rank even. One that is not `sized` has inputs of open
    sizes.

    >>> @op("Reversed-1", inputs=[Input("x", "f32", "[*S]")], outputs=[Output("y", "f32", "[*R]")])
    ... def reversed_axes(x):
    ...     return x.T
    >>> @reversed_axes.shapes
    ... def rule(node):
    ...     node.require("C1", len(node.shape("x")) > 0, "`x` is a scalar", "x")
    ...     return {"R": node.dims["S"][::-1]}
    >>> reversed_axes.infer([Tensor("f32", (2, 3))], {}).outputs[0].shape
    (3, 2)
    """

    op: Op
    inputs: dict[str, Any]
    attrs: Mapping[str, Any]
    dims: Dims
    types: dict[str, str]
    bodies: Mapping[str, Body]
    complete: bool = True
    doubts: list[Doubt] = field(default_factory=list)
    widened: dict[str, str] = field(default_factory=dict)
    tolerated: list[Tolerated] = field(default_factory=list)
    supposed: bool = False
    sized: bool = True

    def warn(self, message: str, port: str | None = None, code: str = UNSORTED, *, refused: bool = False) -> None:
        """Say that the data are doubtful, which a run tells and goes on; `port` and others as in `Doubt`."""
        self.doubts.append(Doubt(message, port, code, refused))

    def suppose(self) -> None:
        """Say that the shapes of the outputs are supposed, for the run to tell."""
        self.complete, self.supposed = False, True

    def fail(
        self,
        label: str,
        message: str,
        port: Concern | None = None,
        *,
        about: Sequence[Concern] = (),
        place: Place | None = None,
    ) -> NoReturn:
        """Report that the constraint `label` is broken; `port`, `about` and `place` as in `Violation`."""
        raise Violation(label, message, port, about, place)

    def require(
        self,
        label: str,
        condition: Answer,
        message: str,
        port: Concern | None = None,
        *,
        about: Sequence[Concern] = (),
        place: Place | None = None,
        lenient: str = "",
    ) -> None:
        """Report `message` unless `condition` holds; one that is undecided is asked again at run time.

        `lenient` is what OpenVINO does where the condition does not hold, and the kernel, too: then it is a warning.
        """
        if condition is UNDECIDED:
            self.complete = False
        elif not condition:
            self._broken(Violation(label, message, port, about, place), lenient)

    def tolerate(
        self, label: str, does: str, message: str, port: Concern | None = None, *, about: Sequence[Concern] = ()
    ) -> None:
        """Warn that the constraint `label` is broken; what OpenVINO `does` all the same, the kernel does, too."""
        self._broken(Violation(label, message, port, about), does)

    def _broken(self, violation: Violation, lenient: str) -> None:
        if not lenient:
            raise violation
        self.tolerated.append(Tolerated(violation, lenient))

    def within(self, label: str, name: str, low: Size, high: Size, *, lenient: str = "") -> None:
        """Require every element of input `name` to lie in [low, high), as far as it is known.

        `lenient` is what OpenVINO does with those in [-high, low), and the kernel, too: then they are a warning.
        """
        tensor: Tensor | None = self.inputs.get(name)
        if tensor is None:
            return
        if not tensor.known or isinstance(low, Dim) or isinstance(high, Dim):
            self.complete = False
            # what lies outside whatever the bounds turn out to be
            least = None if lenient else low.low if isinstance(low, Dim) else low
            most = high.high if isinstance(high, Dim) else high
            bounded = (least is not None or most is not None) and not tensor.symbolic
            if bounded and (value := tensor.value) is not None:
                value = comparable(value)
                if least is not None:
                    self._outside(label, name, value, value < least, low, high)
                if most is not None:
                    self._outside(label, name, value, value >= most, low, high)
            return
        if (listed := tensor.listed) is not None and all(low <= int(number) < high for number in listed):
            return
        value = tensor.value
        if value is not None and value.size and (int(value.min()) < low or int(value.max()) >= high):
            value = comparable(value)
            if lenient:
                self._outside(label, name, value, (value < -high) | (value >= high), low, high)
            self._outside(label, name, value, (value < low) | (value >= high), low, high, lenient)

    def _outside(
        self, label: str, name: str, value: Array, wrong: Array, low: Size, high: Size, lenient: str = ""
    ) -> None:
        if wrong.any():
            position = tuple(int(i) for i in np.argwhere(wrong)[0])
            where = f"`{name}[{', '.join(map(str, position))}]`" if position else f"`{name}`"
            violation = Violation(label, f"{where} is {value[position]}, outside [{low}, {high})", name)
            self._broken(violation, lenient)

    def value(self, name: str) -> Array | None:
        """The value of input `name` where it is known exactly, else None."""
        tensor = self._known(name)
        return None if tensor is None else tensor.value

    def numbers(self, name: str) -> list[Any] | None:
        """The elements of input `name` in order, as Python has them, where they are known exactly, else None."""
        tensor = self._known(name)
        return None if tensor is None else tensor.numbers

    def _known(self, name: str) -> Tensor | None:
        tensor: Tensor | None = self.inputs.get(name)
        if tensor is None or tensor.known:
            return tensor
        self.complete = False
        return None

    def sizes(self, name: str) -> list[Size] | None:
        """The integers in input `name` in order, unknown ones as `Dim`; None where their number is unknown or huge."""
        tensor: Tensor | None = self.inputs.get(name)
        if tensor is None:
            return None
        if tensor.content is not None and tensor.content.size <= MAX_LISTED and (found := tensor.numbers) is not None:
            sizes = [item if isinstance(item, Dim) else int(item) for item in found]
            self.complete = self.complete and not any(isinstance(size, Dim) for size in sizes)
            return sizes
        self.complete = False
        if tensor.shape is None or not tensor.static:
            return None
        count = int(product(tensor.shape))
        return None if count > MAX_LISTED else [fresh(None) for _ in range(count)]

    def size(self, name: str) -> Size:
        """The integer in input `name`, a tensor of one element; an unknown one as `Dim`."""
        sizes = self.sizes(name)
        return sizes[0] if sizes else fresh(None)

    def shape(self, name: str) -> Shape:
        """The shape of input `name`; raises `Undecided` where its rank is unknown."""
        tensor = self.inputs[name]
        if tensor.shape is None:
            raise Undecided
        shape: Shape = tensor.shape
        return shape

    def axis(self, label: str, axis: int, rank: int, name: str = "axis", number: int | None = None) -> int:
        """`axis` counted from the front; a negative one counts from the end, one outside [-rank, rank) is reported.

        It is called `name`, an input or an attribute, or the element `number` of that.
        """
        span = max(rank, 1)  # a scalar has the axes of a vector
        if not -span <= axis < span:
            where = name if number is None else f"{name}[{number}]"
            raise Violation(label, f"`{where}` is {axis}, outside [{-span}, {span}) for rank {rank}", about=[name])
        return axis % span


class Bound(NamedTuple):
    """The symbols that the types and shapes of inputs bind."""

    dims: Dims
    types: Mapping[str, str]


class Inferred(NamedTuple):
    """What an op's declaration and rule say of one node; all but the first two, `counted` and `decided` as in `Node`.

    Without `counted` only a run tells how many outputs there are. What is `decided` is so whatever the sizes are that
    are open; what is `complete`, too, has no open ones.
    """

    outputs: list[Tensor]
    types: Mapping[str, str]
    complete: bool
    doubts: Sequence[Doubt] = ()
    widened: Mapping[str, str] = MappingProxyType({})
    tolerated: Sequence[Tolerated] = ()
    counted: bool = True
    supposed: bool = False
    decided: bool = False

    @property
    def told(self) -> Sequence[str]:
        """What a run warns of: its doubts, and the rules that the data of an input break."""
        return _told(self.doubts, self.tolerated)


class _Broken(NamedTuple):
    """A rule that a node breaks with the `ranks` that are supposed of inputs; with others it breaks one as well."""

    broken: Violation
    ranks: tuple[tuple[Concern, int], ...] = ()

    def supposing(self, concern: Concern, rank: int) -> _Broken:
        return _Broken(self.broken, ((concern, rank), *self.ranks))

    @property
    def scalar(self) -> bool:
        return bool(self.ranks) and self.ranks[0][1] == 0

    @property
    def blamed(self) -> Concern | None:
        """What is at fault, before all others."""
        return next(iter(self.broken.about), self.broken.port)

    @property
    def violation(self) -> Violation:
        return Supposing(self.broken, self.ranks) if self.ranks else self.broken


def _likeliest(found: Sequence[_Broken]) -> _Broken:
    """One where something is at fault that seldom is, or for a reason that it seldom is for, and that is no scalar.

    With a rank that is not meant it is what the rule looks at first.
    """
    times = Counter(broken.blamed for broken in found)
    reasons = Counter((broken.blamed, broken.broken.label) for broken in found)
    return min(
        found,
        key=lambda broken: (broken.scalar, times[broken.blamed], reasons[broken.blamed, broken.broken.label]),
    )


@cache
def _ranks(patterns: Sequence[Pattern]) -> Sequence[int]:
    """The ranks that fit one of some patterns, the usual ones first."""
    return sorted(
        (rank for rank in range(MAX_RANK + 1) if any(pattern.fits(rank) for pattern in patterns)),
        key=lambda rank: abs(rank - 4),
    )


@cache
def _sizes_of_its_own(number: int, rank: int) -> Shape:
    """Unknown sizes of an input by its number, which are those of no other one."""
    return tuple(fresh() for _ in range(rank))


@dataclass(eq=False)
class Op:
    """An op version. `name` is the type of the IR and the opset that introduced it, such as "ReLU-1".

    `opsets` are the operation sets that hold it, where they hold no newer version (None: `version` to opset16);
    `extension_versions` are other words that a layer's `version` may have for it, such as "extension". `symbolic` says
    that the kernel also computes on arrays of dimensions (`Sizes`), `view_of` names the input that its results may
    share memory with. `pure` is False for ops that must not be computed ahead: those with state or random results.
    `traits` say what the op is to those that rewrite and fuse programs, at most one of a kind. Of one that is
    `self_checking` the kernel raises whatever the rule refuses in arrays of ranks and types that it has passed; an
    attribute auto_broadcast must be "numpy" for it. `lenient_types` are the element types that OpenVINO takes for a
    symbol besides those of `types`; where these are integers, they are converted to i64.

    Called, it checks arrays and computes; `infer` says what is known of the outputs before that.

    >>> from irrun.spec.registry import registry
    >>> concat = registry().ops["Concat-1"]
    >>> concat(np.array([1, 2]), np.array([3]), axis=0)
    array([1, 2, 3])
    >>> concat.infer([Tensor("i64", (2,)), Tensor("i64", (3,))], {"axis": 0}).outputs[0].shape
    (5,)
    >>> concat.type, concat.version, [port.name for port in concat.inputs]
    ('Concat', 1, ['inputs'])
    """

    name: str
    kernel: Callable[..., Any]
    inputs: Sequence[Input] = ()
    outputs: Sequence[Output] = ()
    attrs: Sequence[Attr] = ()
    types: Mapping[str, TypeSet] = field(default_factory=dict)
    lenient_types: Mapping[str, TypeSet] = field(default_factory=dict)
    opsets: frozenset[int] | None = None
    extension_versions: Sequence[str] = ()
    symbolic: bool = False
    view_of: str | None = None
    pure: bool = True
    self_checking: bool = False
    traits: Sequence[Trait] = ()
    rule: Rule | None = None
    doc: str | None = None
    lowering: Lowering | None = field(default=None, init=False)
    decomposition: Decompose | None = field(default=None, init=False)
    folded: Folded | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.type, _, version = self.name.rpartition("-")
        self.version = int(version)
        self.held_by = frozenset(range(self.version, LATEST_FULL + 1)) if self.opsets is None else self.opsets
        self.__doc__ = inspect.cleandoc(self.doc or self.kernel.__doc__ or "")
        self.variadic = bool(self.inputs) and self.inputs[-1].variadic
        self.least_inputs = sum(not (port.optional or port.variadic) for port in self.inputs)
        self.defaults = {attr.keyword: attr.default for attr in self.attrs if attr.default is not REQUIRED}
        self._traits: dict[type, Any] = {type(trait): trait for trait in self.traits}
        if not (getattr(self.kernel, "__module__", None) or "").startswith(_LIBRARY):
            self._check_kernel()

    def _check_kernel(self) -> None:
        """Raises TypeError where the kernel cannot be called with what the op declares."""
        try:
            signature = inspect.signature(self.kernel)
        except ValueError:  # a ufunc has none
            return
        attrs: dict[str, None] = dict.fromkeys([*(attr.keyword for attr in self.attrs), *self.context])
        counts = {self.least_inputs, len(self.inputs)}
        for count in sorted(counts | {len(self.inputs) + 1} if self.variadic else counts):
            try:
                signature.bind(*[None] * count, **attrs)
            except TypeError as error:
                given = f"{count} array{'s' * (count != 1)}"
                keywords = f" and the keywords {', '.join(attrs)}" if attrs else ""
                message = f"the kernel of {self.name} is {getattr(self.kernel, '__name__', 'it')}{signature}"
                raise TypeError(f"{message}, but is called with {given}{keywords}: {error}") from None

    def trait(self, kind: type[Kind]) -> Kind | None:
        """Its trait of a kind, such as `Elementwise`, or None."""
        return self._traits.get(kind)

    @cached_property
    def attr_names(self) -> frozenset[str]:
        """What the file calls its attributes."""
        return frozenset(attr.name for attr in self.attrs)

    @cached_property
    def port_names(self) -> tuple[str, ...]:
        """What its inputs are called."""
        return tuple(port.name for port in self.inputs)

    @cached_property
    def has_shape_attr(self) -> bool:
        """Whether an attribute is a shape, whose unknown sizes are new ones each time that it is read."""
        return any(attr.kind is SHAPE for attr in self.attrs)

    @cached_property
    def context(self) -> frozenset[str]:
        """What the kernel asks for besides its attributes: a subset of `CONTEXT`."""
        return frozenset(CONTEXT.intersection(self._parameters))

    @cached_property
    def parts(self) -> Mapping[str, Any]:
        """What the kernel can be given something quicker for, of `PARTS`, and its own."""
        return {name: self._parameters[name] for name in PARTS.intersection(self._parameters)}

    @cached_property
    def _parameters(self) -> Mapping[str, Any]:
        """What the kernel calls its parameters, and the defaults of those that can be given by name alone."""
        kernel = self.kernel
        while hasattr(kernel, "__wrapped__"):
            kernel = kernel.__wrapped__
        if isinstance(kernel, FunctionType):  # of which inspect takes long to say the same
            code = kernel.__code__
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            return dict.fromkeys(names) | (kernel.__kwdefaults__ or {})
        try:
            return {name: own.default for name, own in inspect.signature(kernel).parameters.items()}
        except ValueError:  # a ufunc has no signature
            return {}

    def shapes(self, rule: Rule) -> Rule:
        """Attach the rule that checks the constraints and binds the output symbols that the inputs leave open."""
        self.rule = rule
        return rule

    def lowers(
        self,
        older: str | None,
        *,
        natural: Sequence[str] = (),
        upwards: str = "",
        reworded: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
        arrange: Arrange | None = None,
        **only: Any,
    ) -> None:
        """Say which older op does the same, where attributes have the values of keywords, one or a tuple of them.

        The conditions are those of `Lowering`; no variation takes them over.
        """
        values = {name: value if isinstance(value, tuple) else (value,) for name, value in only.items()}
        self.lowering = Lowering(older, values, tuple(natural), upwards, reworded, arrange)

    def decomposes(self, build: Decompose) -> Decompose:
        """Attach what makes older ops that do the same together; no variation takes it over."""
        self.decomposition = build
        return build

    def folds(self, when: Callable[[Sequence[Source]], bool] | None = None, **changes: Any) -> None:
        """Say what is other where OpenVINO computes, or changes, such layers before a run: as it does those of
        constants alone, or else `when` that is true of the inputs.

        No variation takes that over.
        """
        self.folded = Folded(variation(self.name, self, self.doc, **changes), when or _are_constant)

    def __call__(self, *inputs: Array | None, **attrs: Any) -> Any:
        """Check the inputs, then compute. Raises `Violation`."""
        arrays = [None if array is None else np.asarray(array) for array in inputs]
        tensors = [None if array is None else Tensor.of(array) for array in arrays]
        values = self.defaults | attrs
        inferred = self.infer(tensors, values)
        if inferred.widened:
            return self._mixed(arrays, attrs, inferred)
        for message in inferred.told:
            warnings.warn(message, stacklevel=2)
        context = {"types": inferred.types}
        asked = {name: context[name] for name in self.context}
        with np.errstate(all="ignore"):  # as in a run: what the specification leaves to the arithmetic is no mishap
            return self.kernel(*arrays, **values, **asked)

    def _mixed(self, arrays: Sequence[Array | None], attrs: Mapping[str, Any], inferred: Inferred) -> Any:
        """The results for inputs of several floating-point types: computed in the widest, given in their own."""
        wide = [inferred.widened.get(port.type) for port in self.inputs]
        results = self(
            *(
                array if array is None or type is None else array.astype(numpy_dtype(type))
                for array, type in zip(arrays, wide, strict=False)
            ),
            **attrs,
        )
        typed = [
            result.astype(numpy_dtype(output.type))
            for result, output in zip(results_of(results), inferred.outputs, strict=True)
        ]
        return tuple(typed) if isinstance(results, tuple | list) else typed[0]

    def infer(
        self,
        inputs: Sequence[Tensor | None],
        attrs: Mapping[str, Any],
        bodies: Mapping[str, Body] | None = None,
        *,
        narrow: bool = True,
    ) -> Inferred:
        """What is known of the outputs. Raises `Violation` where the inputs or attributes break a rule.

        Without `narrow` it takes less time where ranks are unknown, and less may be known of the outputs.
        """
        before = questions()
        node, answer = self._asked(inputs, attrs, bodies or {})
        if not (node.complete or bodies):
            self._check_ranks(inputs, attrs)
            ranked = self._with_ranks(inputs, attrs) if narrow else inputs
            if ranked is not inputs:
                node, answer = self._asked(ranked, attrs, {})
        if isinstance(answer, list):
            _check_extents(answer)
            complete = node.complete and node.sized and all(tensor.static for tensor in answer)
            return Inferred(answer, node.types, complete, node.doubts, node.widened, node.tolerated)
        if answer:
            node.dims.update(answer)
        outputs = [Tensor(self._output_type(port, node), expand(port.pattern, node.dims)) for port in self.outputs]
        _check_extents(outputs)
        complete = node.complete and node.sized
        counted = complete or not (self.outputs and self.outputs[-1].variadic)
        known = (complete, node.doubts, node.widened, node.tolerated)
        decided = node.complete and questions() == before + 1
        return Inferred(outputs, node.types, *known, counted, node.supposed, decided)

    def _asked(
        self, inputs: Sequence[Tensor | None], attrs: Mapping[str, Any], bodies: Mapping[str, Body]
    ) -> tuple[Node, Shapes | list[Tensor] | None]:
        """A node with what its rule says. Raises `Violation`."""
        node = Node(self, {}, attrs, Dims(), {}, bodies)
        self._bind(node, inputs)
        if self.rule is not None:
            try:
                return node, self.rule(node)
            except Undecided:
                node.complete = False
        return node, None

    def _check_ranks(self, inputs: Sequence[Tensor | None], attrs: Mapping[str, Any]) -> None:
        """Raises the `Violation` of a node that breaks a rule whatever ranks its inputs have that are unknown."""
        broken = self._broken_by_all_ranks(inputs, attrs, iter(range(MAX_TRIED)))
        if broken is not None:
            raise broken.violation

    def _with_ranks(self, inputs: Sequence[Tensor | None], attrs: Mapping[str, Any]) -> Sequence[Tensor | None]:
        """`inputs`, those of unknown rank with the only one that breaks no rule, where others do."""
        ranked, tries = inputs, iter(range(MAX_TRIED))
        for number, tensor in enumerate(inputs):
            if tensor is None or tensor.shape is not None:
                continue
            possible = (rank for rank in self._ranks_of(number) if self._may_have(rank, number, ranked, attrs, tries))
            rank, other = next(possible, None), next(possible, None)
            if rank is not None and other is None:
                sized = Tensor(tensor.type, tuple(fresh() for _ in range(rank)))
                ranked = [*ranked[:number], sized, *ranked[number + 1 :]]
        return ranked

    def _may_have(
        self,
        rank: int,
        number: int,
        inputs: Sequence[Tensor | None],
        attrs: Mapping[str, Any],
        tries: Iterator[int],
    ) -> bool:
        """Whether some ranks of others break no rule where input `number` has this one, as far as `tries` tell."""
        tensor = inputs[number]
        assert tensor is not None
        supposed = Tensor(tensor.type, _sizes_of_its_own(number, rank))
        trial = [*inputs[:number], supposed, *inputs[number + 1 :]]
        try:
            next(tries)
            self._asked(trial, attrs, {})
        except StopIteration:
            return True
        except Violation:
            return False
        return self._broken_by_all_ranks(trial, attrs, tries) is None

    def _ranks_of(self, number: int) -> Sequence[int]:
        """The ranks that the port of an input may have."""
        return _ranks(self.inputs[min(number, len(self.inputs) - 1)].patterns)

    def _broken_by_all_ranks(
        self, inputs: Sequence[Tensor | None], attrs: Mapping[str, Any], tries: Iterator[int]
    ) -> _Broken | None:
        """What the rule finds wrong with the likeliest of all ranks that inputs may have; None where some may do.

        `tries` are as many as may still be made.
        """
        unknown = ((number, tensor) for number, tensor in enumerate(inputs) if tensor and tensor.shape is None)
        number, tensor = next(unknown, (None, None))
        if number is None or tensor is None:
            return None
        ranks = self._ranks_of(number)
        found = []
        for rank in ranks:
            supposed = Tensor(tensor.type, _sizes_of_its_own(number, rank))
            trial = [*inputs[:number], supposed, *inputs[number + 1 :]]
            try:
                next(tries)
                self._asked(trial, attrs, {})
                broken = self._broken_by_all_ranks(trial, attrs, tries)
            except StopIteration:
                return None
            except Violation as violation:
                broken = _Broken(violation)
            if broken is None:
                return None
            found.append(broken.supposing(self._concern(number), rank) if len(ranks) > 1 else broken)
        return _likeliest(found)

    def _concern(self, number: int) -> Concern:
        """The input that has a number among all, as messages name it."""
        last = len(self.inputs) - 1
        return (self.inputs[-1].name, number - last) if self.variadic and number >= last else self.inputs[number].name

    def bound(self, inputs: Sequence[Tensor | None], attrs: Mapping[str, Any]) -> Bound:
        """What types and shapes of the inputs say. Raises `Violation`."""
        node = Node(self, {}, attrs, Dims(), {}, {})
        self._bind(node, inputs)
        return Bound(node.dims, node.types)

    def check(self, inputs: Sequence[Tensor | None], attrs: Mapping[str, Any], bound: Bound) -> Sequence[str]:
        """Ask the rule about the data of inputs, none of them variadic, whose types and shapes are `bound` already.

        The warnings; raises `Violation` where the data break a constraint.
        """
        named = dict(zip_longest(self.port_names, inputs))
        node = Node(self, named, attrs, Dims(bound.dims), dict(bound.types), {})
        if self.rule is not None:
            with suppress(Undecided):
                self.rule(node)
        return _told(node.doubts, node.tolerated)

    def _bind(self, node: Node, inputs: Sequence[Tensor | None]) -> None:
        if len(inputs) < self.least_inputs or (len(inputs) > len(self.inputs) and not self.variadic):
            expected = f"{self.least_inputs}" if self.variadic or self.least_inputs < len(self.inputs) else ""
            most = " or more" if self.variadic else f" to {len(self.inputs)}" if expected else str(len(self.inputs))
            raise Violation("E302", f"{counted(len(inputs), 'input')}, expected {expected}{most}")
        origins: dict[str, Any] = {}
        for position, port in enumerate(self.inputs):
            if port.variadic:
                rest = list(inputs[position:])
                node.inputs[port.name] = rest
                for number, tensor in enumerate(rest):
                    if tensor is None:
                        concern = (port.name, number)
                        raise Violation("E302", f"input `{_spelled(concern)}` is not connected", about=[concern])
                    self._bind_type(node, port, tensor, origins, number)
                    if tensor.shape is None:
                        node.complete = False
                    elif not tensor.static:
                        node.sized = False
                continue
            tensor = inputs[position] if position < len(inputs) else None
            node.inputs[port.name] = tensor
            if tensor is None:
                if not port.optional:
                    raise Violation("E302", f"input `{port.name}` is not connected", about=[port.name])
                continue
            self._bind_type(node, port, tensor, origins)
            if node.widened.get(port.type) == "i64" and tensor.value is not None:
                node.inputs[port.name] = _whole(tensor)
            if tensor.shape is None:
                node.complete = False
                continue
            if not tensor.static:
                node.sized = False
            try:
                bind(port.patterns, port.name, tensor.shape, node.dims, origins)
            except Mismatch as mismatch:
                raise Violation(mismatch.code, str(mismatch), port.name, mismatch.about) from None

    def _bind_type(
        self, node: Node, port: Input, tensor: Tensor, origins: dict[str, Any], number: int | None = None
    ) -> None:
        """Check the type of a tensor that is connected to `port`, to a variadic one as `number`."""
        if tensor.type == "dynamic":
            node.complete = False
            return
        allowed = self.types.get(port.type)
        name: Concern = port.name if number is None else (port.name, number)
        if allowed is None:
            if port.type == "dynamic":
                return
            if tensor.type != port.type:
                raise Violation("E303", f"`{_spelled(name)}` is {tensor.type}, expected {port.type}", name)
            return
        if tensor.type not in allowed:
            expected = ", ".join(t for t in ELEMENT_TYPES if t in allowed)
            violation = Violation("E303", f"`{_spelled(name)}` is {tensor.type}, expected one of {expected}", name)
            if tensor.type not in self.lenient_types.get(port.type, ()):
                raise violation
            whole = allowed <= INTEGER
            if node.types.get(port.type) != tensor.type:  # else the port before has said it
                node.tolerated.append(Tolerated(violation, WHOLE if whole else AS_THEY_ARE, "W952"))
            if whole:
                node.widened[port.type] = "i64"
        first = node.types.setdefault(port.type, tensor.type)
        if first != tensor.type:
            origin = origins["type " + port.type]
            message = f"`{_spelled(name)}` is {tensor.type}, but `{_spelled(origin)}` is {first}"
            violation = Violation("E303", message, name, [origin])
            converted = port.integers and first in FLOAT and tensor.type in INTEGER
            if converted or (port.lenient and {first, tensor.type} <= FLOAT):
                so_far = node.widened.get(port.type, first)
                node.widened[port.type] = "f64" if "f64" in (so_far, tensor.type) else "f32"
                if converted:
                    node.tolerated.append(Tolerated(violation, CONVERTED, "W952"))
            elif node.widened.get(port.type) == "i64":
                pass
            elif port.lenient and {first, tensor.type} <= INTEGER:
                node.widened[port.type] = "i64"
                node.tolerated.append(Tolerated(violation, WHOLE, "W952"))
            else:
                raise violation
        origins.setdefault("type " + port.type, name)

    def _output_type(self, port: Output, node: Node) -> str:
        if port.type in self.types:
            return node.types.get(port.type, "dynamic")
        return port.type if port.type in ELEMENT_TYPES else node.attrs[port.type]


def _whole(tensor: Tensor) -> Tensor:
    """Numbers of any type as i64."""
    value = tensor.value
    if value is None or value.dtype == object:
        return tensor
    with np.errstate(all="ignore"):
        return Tensor("i64", tensor.shape, value.astype(np.int64))


def _told(doubts: Sequence[Doubt], tolerated: Sequence[Tolerated]) -> Sequence[str]:
    return [doubt.message for doubt in doubts] + [str(each) for each in tolerated if each.violation.port is not None]


def _spelled(concern: Concern) -> str:
    return concern if isinstance(concern, str) else f"{concern[0]}[{concern[1]}]"


def _check_extents(outputs: Sequence[Tensor]) -> None:
    """Raises `Violation` for an output that no array can be."""
    for number, tensor in enumerate(outputs):
        shape = tensor.shape or ()
        if len(shape) > MAX_RANK:
            raise Violation("E305", f"output {number} has rank {len(shape)}, but arrays have {MAX_RANK} at most")
        count = 1
        for size in shape:
            if isinstance(size, int) and size > 1:  # unknown sizes may be 0, but then others are too large all the same
                count *= size
                if count > MAX_ELEMENTS:
                    message = f"output {number} has the shape {shape_text(shape)}, which no memory could hold"
                    raise Violation("E308", message)


class Declaration(TypedDict, total=False):
    """What an op is declared with, by the names of `Op`."""

    inputs: Sequence[Input]
    outputs: Sequence[Output]
    attrs: Sequence[Attr]
    types: Mapping[str, TypeSet]
    lenient_types: Mapping[str, TypeSet]
    opsets: frozenset[int] | None
    extension_versions: Sequence[str]
    symbolic: bool
    view_of: str | None
    pure: bool
    self_checking: bool
    traits: Sequence[Trait]
    rule: Rule | None


def op(
    name: str, *, of: Op | None = None, **declaration: Unpack[Declaration]
) -> Callable[[Callable[..., Any] | np.ufunc], Op]:
    """Declare the op `name`, such as "ReLU-1"; the decorated function is its kernel.

    The kernel is called with an array for each input, None for one that is not connected, with the attributes as
    keywords, and with what of `CONTEXT` it asks for as keywords. The result is an array, or a tuple of them.
    With `of` it is a variation of that op, such as a later version: only what differs is declared.

    Raises TypeError where the kernel cannot be called so.

    >>> @op("Doubled-1", inputs=[Input("x", "T", "[...]")], outputs=[Output("y", "T", "[...]")], types={"T": NUMERIC})
    ... def doubled(x):
    ...     return x + x
    >>> @doubled.shapes
    ... def rule(node):
    ...     return [node.inputs["x"]]
    >>> doubled(np.int8([1, 2]))
    array([2, 4], dtype=int8)
    """
    if of is None:
        return lambda kernel: Op(name, kernel, **declaration)
    return lambda kernel: variation(name, of, None, kernel=kernel, **declaration)


class Source(NamedTuple):
    """What is known of an input of a layer, and, for who asks, whether it is `constant`, which is what depends on no
    input of the model, or `settled`, which is what depends on constants and on shapes alone."""

    tensor: Tensor
    constant: Callable[[], bool]
    settled: Callable[[], bool]


class Folded(NamedTuple):
    """What an op is `when` that is true of its inputs."""

    op: Op
    when: Callable[[Sequence[Source]], bool]


def results_of(made: Any) -> Sequence[Any]:
    """What a kernel gives, one by one: several are a tuple or a list."""
    return made if isinstance(made, tuple | list) else (made,)


def _are_constant(inputs: Sequence[Source]) -> bool:
    return all(source.constant() for source in inputs)


def variation(name: str, of: Op, doc: str | None, **changes: Any) -> Op:
    """The op `name`, which is as `of` but for its documentation and `changes`.

    It has its kernel and the rule that it has by now; in which operation sets it is, is never taken over.

    >>> @op("Same-1", inputs=[Input("x", "T", "[N]")], outputs=[Output("y", "T", "[N]")], types={"T": FLOAT})
    ... def same(x):
    ...     return x
    >>> variation("Same-4", same, "The same, for integers, too.", types={"T": NUMERIC})(np.array([1]))
    array([1])
    """
    return replace(of, name=name, doc=doc, **{"opsets": None, "extension_versions": (), **changes})
