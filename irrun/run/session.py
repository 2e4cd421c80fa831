"""What belongs to one run, and who asks for runs that have variables in common: observers, warnings, sessions.

Executors and programs are shared by threads and never change; whatever a run learns or writes is here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import field, replace
from operator import length_hint
from threading import RLock
from typing import TYPE_CHECKING, Any, Protocol
from weakref import finalize

from irrun.engines.work import Call
from irrun.ir.graph import Layer
from irrun.locks import fork_safe
from irrun.records import dataclass
from irrun.run.variables import Buffer, Declared, Variables
from irrun.spec.op import Array, Op

if TYPE_CHECKING:
    from irrun.run.executor import GraphExecutor, _Part
    from irrun.run.inputs import Inputs
    from irrun.run.memory import Meter
    from irrun.run.profile import Profile
    from irrun.run.program import Instruction
    from irrun.run.results import Results

MAX_TOKENS = 32
"""Tokens that are generated unless told otherwise."""


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """A tensor that a run has made: output number `port` of `layer`.

    `path` names the bodies that it was made in, outermost first, as (layer, body, iteration); it is empty in the graph
    of the model itself. `array` is read-only and may be written over later: copy what is to be kept. It is of the type
    that the tensor is computed in, which is the declared one in the precision "declared".
    """

    layer: Layer
    port: int
    path: tuple[tuple[str, str, int], ...]
    array: Array
    calculation: Calculation = field(repr=False)

    @property
    def name(self) -> str:
        """Where it was made: `conv1:0`, in bodies `Loop_12/body[3]/MatMul_4:0`; see `irrun.run.keys`."""
        from irrun.run.keys import key

        return key(self.layer, self.port, self.path)


class Calculation(Protocol):
    """How the layer of an event is computed. It can be asked while the observer is called, and no longer."""

    @property
    def op(self) -> Op: ...

    @property
    def attributes(self) -> Mapping[str, Any]: ...

    @property
    def inputs(self) -> list[Array | None]:
        """What the layer has read, None where nothing is connected."""

    def __call__(self, inputs: Sequence[Array | None], attributes: Mapping[str, Any] | None = None) -> list[Array]:
        """The outputs for other inputs, of these shapes, by the op's own kernel; of numbers of other types, such as
        f64, too; and with other `attributes`, by the kernel's keywords. Variables stay as they are. Raises
        ExecutionError, and ValueError for a layer that assigns one."""


Observer = Callable[[Event], Array | None]
"""Is told of every tensor of a run; an array that it gives takes the tensor's place, of the same type and shape.

Every layer makes its tensors then, by the engine that takes it alone: none is computed together with others, so results
may be rounded otherwise than those of a run that nobody looks at. What is computed of constants alone when the model is
loaded, such as decompressed weights, is no tensor of a run. A conversion that changes nothing in the precision of the
run, of a tensor that nothing else reads, is that tensor: who replaces one replaces both. What the shapes of inputs
settle cannot be replaced.
"""


class Fused:
    """An observer of what engines make in fact: layers that are computed together make one tensor, views none.

    `passes` is told of the layer whose result it is, and of the numbers, perhaps in an order that only an engine knows;
    where it says False, `look` is told as any observer is. Neither can give another array. To be looked at like this
    takes no time but theirs.
    """

    def __init__(self, passes: Callable[[Layer, Array], bool], look: Callable[[Event], object]) -> None:
        self.passes, self.look = passes, look

    def __call__(self, event: Event) -> None:
        self.look(event)


@dataclass(slots=True, eq=False)
class Run:
    """What is passed along through one run. `meter` counts its memory where only the run can tell how much it takes.

    `trail` is where it is: of each program that it is in, outermost first, the instructions and those to come.
    """

    variables: Variables
    meter: Meter | None = None
    profile: Profile | None = None
    observer: Observer | None = None
    path: tuple[tuple[str, str, int], ...] = ()
    warnings: list[tuple[Layer, str]] = field(default_factory=list)
    trail: list[tuple[Sequence[Instruction], Iterator[Call]]] = field(default_factory=list)

    @property
    def watched(self) -> bool:
        """Whether somebody looks at every tensor, so that each has to be made."""
        return self.observer is not None and not isinstance(self.observer, Fused)

    def inside(self, layer: Layer, body: str, iteration: int) -> Run:
        """The run as a body sees it, which is profiled as a part of its layer."""
        return replace(self, profile=None, path=(*self.path, (layer.name, body, iteration)))

    def warn(self, layer: Layer, message: str) -> None:
        self.warnings.append((layer, message))


class Session:
    """A request: runs of one model with `variables` of their own, which are done one after the other.

    These may be looked at, and set, in the types that the model declares. `turn` is how often it has run or been reset.
    `GraphExecutor.session()` makes it. Sessions of one executor may run at the same time.
    """

    def __init__(self, executor: GraphExecutor) -> None:
        self._executor = executor
        self._lock = fork_safe(RLock())
        self._trail: Sequence[tuple[Sequence[Instruction], Iterator[Call]]] = ()
        self._buffers: dict[str, Buffer] = {}
        self.turn = 0
        self._kept: dict[str, Array] = {}
        declared = {info.name: info.type for info in executor.variables} if executor.stateful else {}
        types = executor.variable_types
        self.variables: MutableMapping[str, Array] = Declared(self._kept, self._buffers, declared, types)
        if executor.stateful:
            finalize(self, executor.memories.leave, self._buffers).atexit = False

    def run(
        self,
        inputs: Inputs = (),
        /,
        *,
        outputs: Sequence[str] | str | None = None,
        profile: Profile | None = None,
        observer: Observer | None = None,
        **named: Any,
    ) -> Results:
        """As `GraphExecutor.run`. A run that fails leaves all variables as they were."""
        _check_told(observer, profile)
        part = self._executor.part(outputs)
        arrays = self._executor.bind(part, inputs, named)
        if not self._executor.stateful:
            return self._executed(part, arrays, Run(Variables({}), profile=profile, observer=observer))
        self._check_free()
        with self._lock:
            self.turn += 1
            variables = Variables(self._kept, self._buffers, self._executor.memories)
            return self._executed(part, arrays, Run(variables, profile=profile, observer=observer))

    def _executed(self, part: _Part, arrays: list[Array], run: Run) -> Results:
        self._trail = run.trail
        if run.profile is not None:
            run.profile.begin()
        return self._executor.execute(part, arrays, run)

    @property
    def now(self) -> str:
        """What the latest run computes at present, such as `Loop_12/MatMul_4, 3 of 7`; nothing before and after it.

        This is for whoever waits in another thread: a run does nothing for it but to say where it goes.
        """
        trail = [(steps, max(len(steps) - length_hint(calls), 1)) for steps, calls in [*self._trail] if steps]
        if not trail:
            return ""
        present = [steps[number - 1] for steps, number in trail]
        layers = [step.layer.name for step in present if step.enclosed is None or step is present[-1]]
        steps, number = trail[0]
        return f"{'/'.join(layers)}, {number} of {len(steps)}"

    def generate(
        self,
        prompt: Iterable[int],
        *,
        max_tokens: int = MAX_TOKENS,
        eos_ids: Collection[int] = (),
        inputs: Mapping[str, Any] | None = None,
    ) -> Iterator[int]:
        """The tokens that a language model goes on with, greedily: `irrun.run.generation.generate` for one prompt."""
        from irrun.run.generation import generate

        steps = generate(self._executor, self, [prompt], max_tokens=max_tokens, eos_ids=eos_ids, inputs=inputs)
        return (token for (token,) in steps)

    def fork(self) -> Session:
        """Another session, whose variables hold what those of this one do."""
        other = Session(self._executor)
        with self._lock:
            other._kept.update({name: array.copy() for name, array in self._kept.items()})
        return other

    def reset_state(self) -> None:
        """Forget the values of all variables: the next run starts as the first one did."""
        self._check_free()
        with self._lock:
            self.turn += 1
            self._kept.clear()
            self._executor.memories.leave(self._buffers)

    def _check_free(self) -> None:
        """Raises RuntimeError in a run that this thread is in, as an observer may be."""
        if self._lock._is_owned():  # type: ignore[attr-defined] # as threading.Condition asks
            raise RuntimeError("the session is in a run, which has to end first; executor.session() makes another one")


def _check_told(observer: object, profile: object) -> None:
    """Whether these can be told of a run. Raises TypeError."""
    if observer is not None and not callable(observer):
        raise TypeError(f"`observer` is {observer!r}, expected what can be called with an irrun.Event")
    if profile is not None:
        from irrun.run.profile import Profile

        if not isinstance(profile, Profile):
            raise TypeError(f"`profile` is {profile!r}, expected an irrun.Profile, which takes times down")
