"""What belongs to one run, and what lives on from one to the next: variables, observers, warnings.

Executors and programs are shared by threads and never change; whatever a run learns or writes is here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import field, replace
from functools import partial
from operator import length_hint
from threading import RLock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from irrun.engines.work import Call, chain
from irrun.ir.graph import Layer
from irrun.records import dataclass
from irrun.run.generation import MAX_TOKENS, generate
from irrun.run.keys import key
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array, Op

if TYPE_CHECKING:
    from irrun.run.executor import GraphExecutor, _Part
    from irrun.run.inputs import Inputs
    from irrun.run.memory import Meter
    from irrun.run.profile import Profile
    from irrun.run.program import Instruction
    from irrun.run.results import Results


Together = Callable[[Sequence[Callable[[], object]]], object]
"""Makes several calls, in any order and perhaps at the same time."""


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

    def __call__(self, inputs: Sequence[Array | None]) -> list[Array]:
        """The outputs for other inputs, of these shapes, by the op's own kernel; of numbers of other types, such as
        f64, too. Variables stay as they are. Raises ExecutionError, and ValueError for a layer that assigns one."""


Observer = Callable[[Event], Array | None]
"""Is told of every tensor of a run; an array that it gives takes the tensor's place, of the same type and shape.

Every layer makes its tensors then, by the engine that takes it alone: none is computed together with others, so results
may be rounded otherwise than those of a run that nobody looks at. What is computed of constants alone when the model is
loaded, such as decompressed weights, is no tensor of a run. A conversion that changes nothing in the precision of the
run is the tensor that it converts: who replaces one replaces both. What the shapes of inputs settle cannot be replaced.
"""


@dataclass(frozen=True, slots=True)
class Fused:
    """An observer of what engines make in fact: layers that are computed together make one tensor, views none.

    `passes` is told of the layer whose result it is, and of the numbers, perhaps in an order that only an engine knows;
    where it says False, `look` is told as any observer is. Neither can give another array. To be looked at like this
    takes no time but theirs.
    """

    passes: Callable[[Layer, Array], bool]
    look: Callable[[Event], object]

    def __call__(self, event: Event) -> None:
        self.look(event)


SPARE = 256
"""Slices that a buffer has room for beyond what it holds, at least; half of that if it is more."""


SHARED_BYTES = 1 << 20
"""Bytes from which on several threads copy them."""

OWN_REFERENCES = 3
"""To memory that no array is in: of the buffer, of who looks, and of the call that counts them."""


@dataclass(slots=True)
class Buffer:
    """Memory for a variable that grows along one axis, and how many slices of it some array has taken.

    `before` is what the variable lay in until it was reordered, for the next time; of each slice along the first axis
    so many along the other one are `alike` there.
    """

    memory: Array
    taken: int
    before: Array | None = None
    alike: Sequence[int] = ()


class Variables(MutableMapping[str, Array]):
    """The variables of a session as one run sees them. What it assigns counts from the end of the graph or body on that
    does so, whatever the order of layers, and for the session from the end of the run.

    Those that grow lie in `buffers`: an array of `kept` is the beginning of one, and what lies behind it is nobody's.
    """

    def __init__(self, kept: MutableMapping[str, Array], buffers: MutableMapping[str, Buffer] | None = None) -> None:
        self._kept = kept
        self._buffers = {} if buffers is None else buffers
        self._seen: dict[str, Array] = {}
        self._assigned: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        return self._seen[name] if name in self._seen else self._kept[name]

    def __setitem__(self, name: str, value: Array) -> None:
        self._assigned[name] = np.array(value)

    def latest(self, name: str) -> Array | None:
        """What a variable holds, where it lies in a buffer."""
        value = self._kept.get(name)
        buffer = self._buffers.get(name)
        return value if value is not None and buffer is not None and value.base is buffer.memory else None

    def append(self, name: str, past: Array, new: Array, axis: int) -> Array:
        """`past` with `new` behind it along an axis, of one type and shape but there, in the buffer of a variable.

        Only `new` is copied where `past` lies there already, and nobody else has taken the room behind it.
        """
        begin, end = past.shape[axis], past.shape[axis] + new.shape[axis]
        buffer = self._buffers.get(name)
        ahead = (slice(None),) * axis
        if buffer is None or past.base is not buffer.memory or begin != buffer.taken or end > buffer.memory.shape[axis]:
            shape = (*past.shape[:axis], end + max(SPARE, end // 2), *past.shape[axis + 1 :])
            buffer = self._buffers[name] = Buffer(np.empty(shape, past.dtype), end)
            buffer.memory[(*ahead, slice(0, begin))] = past
        buffer.memory[(*ahead, slice(begin, end))] = new
        buffer.taken = end
        whole: Array = buffer.memory[(*ahead, slice(0, end))]
        return whole

    def reorder(self, name: str, past: Array, indices: Sequence[int], axis: int, together: Together) -> Array:
        """Slices of `past` along its first axis, in a buffer of the variable with room behind them along another.

        They are copied by calls that may be made `together`.
        """
        size = past.shape[axis]
        buffer = self._buffers.get(name)
        fits = buffer is not None and buffer.memory.ndim == past.ndim and buffer.memory.shape[axis] > size
        room = buffer.memory.shape[axis] if buffer is not None and fits else size + max(SPARE, size // 2)
        shape = (len(indices), *past.shape[1:axis], room, *past.shape[axis + 1 :])
        memory = None if buffer is None else buffer.before
        reusable = memory is not None and memory.shape == shape and memory.dtype == past.dtype
        if memory is None or not reusable or sys.getrefcount(memory) > OWN_REFERENCES:
            memory = np.empty(shape, past.dtype)
            reusable = False
        own = buffer is not None and past.base is buffer.memory
        alike = buffer.alike if buffer is not None and own and reusable else [0] * len(indices)
        whole: Array = memory[(*(slice(None),) * axis, slice(0, size))]
        calls = []
        for slot, index in enumerate(indices):
            new = (*(slice(None),) * (axis - 1), slice(alike[slot] if index == slot else 0, size))
            calls.append(partial(np.copyto, whole[slot][new], past[index][new]))
        if whole.nbytes > SHARED_BYTES:
            together(calls)
        else:
            chain(calls)()
        same = [size if own and index == slot else 0 for slot, index in enumerate(indices)]
        self._buffers[name] = Buffer(memory, size, None if buffer is None else buffer.memory, same)
        return whole

    def store(self, name: str, value: Array) -> bool:
        """Assign what lies in the buffer of the variable as it is; False where it lies elsewhere."""
        buffer = self._buffers.get(name)
        if buffer is None or value.base is not buffer.memory:
            return False
        self._assigned[name] = value
        return True

    @property
    def memories(self) -> list[Array]:
        """What the variables lie in, and what they will."""
        return [*self.values(), *self._assigned.values()]

    def __delitem__(self, name: str) -> None:
        raise TypeError("a variable is never deleted by a run")

    def __iter__(self) -> Iterator[str]:
        return iter({**self._kept, **self._seen})

    def __len__(self) -> int:
        return len({**self._kept, **self._seen})

    def enter(self) -> dict[str, Array]:
        """The beginning of a body. What the graph around it has assigned is for `leave`: it counts from its end on."""
        outside, self._assigned = self._assigned, {}
        return outside

    def leave(self, outside: dict[str, Array]) -> None:
        """The end of a body: what it has assigned is what the next one reads."""
        self._seen.update(self._assigned)
        self._assigned = outside

    def commit(self) -> None:
        """The end of the run, which went well."""
        self._kept.update({**self._seen, **self._assigned})


@dataclass(slots=True)
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


class Declared(MutableMapping[str, Array]):
    """Variables in the types that the model declares, over those of a session that computes in others.

    `types` are, by name, the declared one and that which is computed in. What is looked at and set is converted, so it
    shares no memory with what is `kept`.
    """

    def __init__(self, kept: MutableMapping[str, Array], types: Mapping[str, tuple[str, str]]) -> None:
        self._kept, self._types = kept, types

    def __getitem__(self, name: str) -> Array:
        return self._as(name, self._kept[name], 1, 0)

    def __setitem__(self, name: str, value: Array) -> None:
        self._kept[name] = self._as(name, value, 0, 1)

    def __delitem__(self, name: str) -> None:
        del self._kept[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def _as(self, name: str, value: Array, source: int, target: int) -> Array:
        """The value in the type `target` of its variable, if it is of the type `source`."""
        types = self._types.get(name)
        if types is None or value.dtype != numpy_dtype(types[source]):
            return value
        with np.errstate(all="ignore"):
            return value.astype(numpy_dtype(types[target]))


class Session:
    """A request: runs of one model with `variables` of their own, which are done one after the other.

    These may be looked at, and set, in the types that the model declares.
    `GraphExecutor.session()` makes it. Sessions of one executor may run at the same time.
    """

    def __init__(self, executor: GraphExecutor) -> None:
        self._executor = executor
        self._lock = RLock()
        self._trail: Sequence[tuple[Sequence[Instruction], Iterator[Call]]] = ()
        self._forget()

    def _forget(self) -> None:
        self._kept: dict[str, Array] = {}
        self._buffers: dict[str, Buffer] = {}
        types = self._executor.variable_types
        self.variables: MutableMapping[str, Array] = Declared(self._kept, types) if types else self._kept

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
        part = self._executor.part(outputs)
        arrays = self._executor.bind(part, inputs, named)
        if not self._executor.stateful:
            return self._executed(part, arrays, Run(Variables({}), profile=profile, observer=observer))
        with self._lock:
            variables = Variables(self._kept, self._buffers)
            return self._executed(part, arrays, Run(variables, profile=profile, observer=observer))

    def _executed(self, part: _Part, arrays: list[Array], run: Run) -> Results:
        self._trail = run.trail
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
        with self._lock:
            self._forget()
