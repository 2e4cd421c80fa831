"""The executor: a model made ready once, then run as often as one likes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import proxy

import numpy as np

from irrun.check.ignoring import ignorable
from irrun.check.infer import Inference, InferredLayer, infer
from irrun.check.validate import GivenShapes, validate
from irrun.diagnostics import Diagnostic, ExecutionError, IRError
from irrun.engines import CHECK, PRECISIONS, REFERENCE, SINGLE_RUN_BYTES, SINGLE_RUN_OPERATIONS, load_engines
from irrun.engines.work import BUFFER
from irrun.ir.graph import Layer, Model, Value
from irrun.ir.signature import TensorInfo, described, handed_out, names_of_inputs, names_of_results
from irrun.ir.sources import Source
from irrun.ir.weights import WeightsError
from irrun.locks import fork_safe
from irrun.records import NamedTuple
from irrun.run.frame import Frame
from irrun.run.inputs import Binding, Inputs
from irrun.run.kernels import in_file
from irrun.run.memory import Meter, available, owner_of, refusal, tensor_bytes
from irrun.run.passes import prepare
from irrun.run.passes.building import build, parameters_of
from irrun.run.passes.narrowing import computed_in_bf16, emulated
from irrun.run.passes.precision import retype
from irrun.run.passes.setting import Setting
from irrun.run.preparation import Bodies, Preparation
from irrun.run.program import Program
from irrun.run.results import Results
from irrun.run.session import Observer, Run, Session
from irrun.run.variables import Memories
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array, Tensor
from irrun.spec.patterns import shape_text
from irrun.spec.traits import Converting, Convolving, Lookup, Products

if TYPE_CHECKING:
    from irrun.run.profile import Profile
    from irrun.run.tensor_names import TensorNames

EMULATED = "bf16 is emulated, which is slow: it takes oneDNN and a processor with AVX512-BF16 or AMX"

MAX_PARTS = 8
"""Parts of a model that are kept ready."""

MAX_EXPANDED = 1 << 30
"""Bytes that weights of few bits may take as f32 where no engine reads their codes as quickly."""


class _Part(NamedTuple):
    """What of a model is computed: tensors that are handed out by `keys`, some in other `types`, from the Parameters of
    the numbers `read`. `bodies` are those of its ops."""

    preparation: Preparation
    bodies: Bodies
    read: tuple[int, ...]
    layers: tuple[Layer, ...]
    types: tuple[np.dtype[Any] | None, ...]
    keys: tuple[str, ...]
    aliases: Mapping[str, str]


class GraphExecutor:
    """A model that can be run.

    `model` is the path of an .xml file, its bytes, a file that is open for reading bytes, or a `Model`; `weights` is
    the .bin, in one of the first three forms, and lies beside the .xml unless given.

    `max_memory` is how many bytes the arrays of a run may take together, the physical memory unless given: a layer that
    asks for more is refused before anything is allocated (see `irrun.run.memory` for what counts).

    `engine` is what computes: "auto", "onednn", "numpy", "reference" or "check" (see `irrun.engines`), with `threads`
    threads, all processors unless given. `once` says that there will be one run, so that nothing is prepared that pays
    only in later ones.

    An executor that is pickled, as process pools do, goes along as its model and these options, and prepares again.

    `precision` is in which types floats are computed (see `irrun.engines.PRECISIONS`): unless given it is "declared"
    for the engine "reference" or with `ignore`, else "auto". Inputs, results and variables have the types that the
    model declares. It warns where bf16 is emulated.

    With `ignore`, codes such as "E401", layers that break the rules of their ops are computed by the ops' kernels all
    the same, as far as these can; `report` has the errors as warnings, and a run warns of what only its data show.

    Raises IRError where the model has other errors, or needs more memory whatever its inputs are; its warnings are in
    `report`. Raises EngineError where there is no such engine, or no thread, ValueError where there is no such
    precision, `max_memory` is negative, or where errors of a code cannot be ignored, and TypeError where `max_memory`
    or `threads` is no whole number.

    >>> import numpy as np
    >>> import irrun
    >>> executor = irrun.GraphExecutor("samples/cnn/model.xml")
    >>> executor.inputs + executor.outputs
    (TensorInfo('image', f32[image.0, 3, 16, 16]), TensorInfo('probabilities', f32[image.0, 10]))
    >>> outputs = executor.run(np.zeros((2, 3, 16, 16), np.float32))
    >>> outputs["probabilities"].shape, outputs[0].dtype
    ((2, 10), dtype('float32'))
    """

    def __init__(
        self,
        model: Model | Source,
        weights: Source | None = None,
        *,
        max_memory: int | None = None,
        engine: str = "auto",
        threads: int | None = None,
        once: bool = False,
        precision: str | None = None,
        ignore: Sequence[str] = (),
    ) -> None:
        self._ignored = ignorable(ignore)
        for name, given in (("max_memory", max_memory), ("threads", threads)):
            if given is not None and (not isinstance(given, int | np.integer) or isinstance(given, bool)):
                raise TypeError(f"`{name}` is {given!r}, expected a whole number or None")
        if max_memory is not None and max_memory < 0:
            raise ValueError(f"`max_memory` is {max_memory}, expected 0 bytes or more")
        if precision is None:
            precision = "declared" if engine == REFERENCE or self._ignored else "auto"
        if precision not in PRECISIONS:
            raise ValueError(f"there is no precision `{precision}`; there are {', '.join(PRECISIONS)}")
        if self._ignored and precision != "declared":
            raise ValueError(f"precision `{precision}` goes without ignored errors, which need `declared`")
        self._options: dict[str, Any] = {
            "max_memory": max_memory,
            "engine": engine,
            "threads": threads,
            "once": once,
            "precision": precision,
            "ignore": tuple(ignore),
        }
        # what is not finite shows in the results
        self.report = validate(model, weights, searched=0, ignore=self._ignored)
        if self.report.model is None or self.report.inference is None or not self.report.ok:
            raise IRError(self.report.errors)
        self.model: Model = self.report.model
        self.max_memory = available() if max_memory is None else max_memory
        inference, graph = self.report.inference, self.model.graph
        if once:
            self.model.weights.map_ahead(_looked_up(inference))
        small = once and precision != "bf16" and _is_small(self.model, inference)
        fixed = not once and all(tensor.static for node in inference.nodes.values() for tensor in node.outputs)
        engines = load_engines(engine, threads, small=small, once=once, fixed=fixed)
        self._small = small and engine == "auto"
        literal = engine == CHECK or precision not in ("auto", "f32", "bf16")
        self._setting = Setting(
            self.model.weights,
            self.max_memory,
            engines,
            checked=engine == CHECK,
            compressed=bool(engines),
            expanded=0 if once or any(own.decodes for own in engines) else MAX_EXPANDED,
            quantized=not literal and precision != "bf16" and any(own.quantized for own in engines),
            literal=literal,
            encloses=not once,
        )
        self._inference, self._engines = inference, engines
        self._lock = fork_safe(Lock())
        self._declared = [inference.nodes[layer].outputs[0] for layer in graph.parameters]
        self._parameters, self._binding = graph.parameters, Binding(self.model, self._declared)
        self._doubtful = [node for node in inference.nodes.values() if node.complete and node.doubts]
        self._parts: dict[tuple[str, ...], _Part] = {}
        self._whole = self._part(names_of_results(graph), None)
        self.variable_types = self._whole.preparation.built.variables
        self.stateful = _is_stateful(self._whole.preparation.built)
        self.memories = Memories()
        self._session = Session(proxy(self))  # it would keep this object otherwise, as this keeps it

    def __reduce__(self) -> Any:
        return partial(GraphExecutor, **self._options), (self.model,)

    def __repr__(self) -> str:
        inputs = ", ".join(f"{info.name}: {info}" for info in self.inputs)
        return f"<GraphExecutor of {self.model.path}: ({inputs}) -> ({', '.join(self._whole.keys)})>"

    @cached_property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """What `run` takes, in order."""
        return tuple(
            described(names, tensor, layer.outputs[0].port)
            for layer, names, tensor in zip(
                self._parameters, names_of_inputs(self.model.graph), self._declared, strict=True
            )
        )

    @cached_property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """What `run` gives, in order."""
        found = []
        for layer, names in zip(self.model.graph.results, names_of_results(self.model.graph), strict=True):
            source = layer.inputs[0]
            assert source is not None
            tensor = self._inference.tensor(source)
            given = replace(tensor, type=handed_out(tensor.type, self.model.version))
            found.append(described(names, given, source.port))
        return tuple(found)

    @cached_property
    def _tensors(self) -> TensorNames:
        from irrun.run.tensor_names import TensorNames

        return TensorNames(self.model.graph, self._inference)

    @cached_property
    def variables(self) -> tuple[TensorInfo, ...]:
        """What a session keeps from one run to the next."""
        return self.model.variables

    @property
    def engines(self) -> str:
        """What computes, in which types, on how many threads, and why not something else, in a sentence."""
        names, precision = [engine.name for engine in self._engines], self._options["precision"]
        if not names:
            return f"engine reference: every layer by the kernel of its op; precision {precision}"
        why = "; a single run of a model of this size is over before oneDNN is ready" if self._small else ""
        found = f"engine {self._options['engine']}: {', then '.join(names)}, then the kernels of ops"
        threads = self._engines[0].threads
        return f"{found}; {threads} thread{'s' * (threads != 1)}; precision {precision}{why}"

    def named(self, inputs: Inputs) -> dict[str, Array]:
        """The arrays of inputs by the names of these. Raises InputError."""
        return dict(zip((info.name for info in self.inputs), self.bind(self._whole, inputs, {}), strict=True))

    def session(self) -> Session:
        """A request with variables of its own, beside those of `run`."""
        return Session(self)

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
        """Compute all results, in the order of the model's Results, in a session that the executor keeps.

        `inputs` are arrays by name or by position, of exactly the type and of a shape that the model declares; an array
        alone is that of a model of one input. They can be given as keywords, too, where their names are such. Nobody
        may write to them before the run has ended: large ones are read where they lie.
        `outputs` are tensors of the model by name, results or any others: these alone are computed, from the inputs
        that they need, and variables stay as they are. A tensor goes by a name of its own, or by that of its layer,
        with `:1` behind it for the output of that number.
        `profile` takes down how long each layer takes; `observer` is told of every tensor that is made (see
        `irrun.Event`), and may give another array in its place: `irrun.Dump` keeps them.
        Several threads may call this at once; a model with variables does one run after the other.

        Raises InputError where they do not fit, ExecutionError where the data break a constraint of a layer, ValueError
        where `outputs` has what is no name of a tensor, or of several ones, TypeError for an `observer` that cannot be
        called, or a `profile` that is none.

        >>> import irrun
        >>> executor = irrun.GraphExecutor("samples/cnn/model.xml")
        >>> image = executor.random_inputs(7, {"image": (1, 3, 16, 16)})["image"]
        >>> float(executor.run(image=image)["probabilities"].sum().round(3))
        1.0
        >>> list(executor.run(image, outputs=["probabilities"]))
        ['probabilities']
        """
        return self._session.run(inputs, outputs=outputs, profile=profile, observer=observer, **named)

    def reset_state(self) -> None:
        """Forget the values of all variables: the next run starts as the first one did."""
        self._session.reset_state()

    def part(self, outputs: Sequence[str] | str | None) -> _Part:
        """What of the model is computed for tensors of these names. Raises ValueError."""
        if outputs is None:
            return self._whole
        names = (outputs,) if isinstance(outputs, str) else tuple(dict.fromkeys(outputs))
        with self._lock:
            found = self._parts.get(names)
        if found is None:
            found = self._part([(name,) for name in names], [self._tensors.find(name) for name in names])
            with self._lock:
                self._parts[names] = found
                while len(self._parts) > MAX_PARTS:
                    del self._parts[next(iter(self._parts))]
        return found

    def bind(self, part: _Part, inputs: Inputs, named: Mapping[str, Any]) -> list[Array]:
        """The arrays that a part of the model reads. Raises InputError."""
        if self.model.weights.changed:
            raise self._unfit(f"`{self.model.weights.path}` was written to after the model was loaded")
        return self._binding(part.read, inputs, named)

    def execute(self, part: _Part, arrays: list[Array], run: Run) -> Results:
        """The results of a run for the arrays that `bind` gave. Its variables are changed if all went well."""
        preparation = part.preparation
        with np.errstate(all="ignore"):
            np.setbufsize(BUFFER)  # which is as before, too, behind this
            block, frame = preparation.acquire(arrays, watched=run.watched)
            try:
                program = frame.program
                live = program.reserved + program.size if program.size else program.peak
                if program.unsized:
                    live = program.reserved + program.size
                    run.meter = Meter(self.max_memory, live, arrays, frame.owners)
                results = frame.execute(arrays, run)
                live = live if run.meter is None else run.meter.live
                others = [*arrays, *run.variables.memories] if self.stateful else arrays
                outputs = self._handed_out(part, results, others, frame, live)
            except BaseException:  # wherever that has come in between: nobody goes on with what is half done
                block.clear()
                raise
            preparation.release(block)
        for node in self._doubtful:  # whatever computes it, or has computed it ahead
            run.warnings[:0] = [(node.layer, doubt.message) for doubt in node.doubts]
        for layer, message in dict.fromkeys(run.warnings):  # `check` asks rules twice
            warnings.warn(f"{self.model.path}:{layer.span.line}: layer {layer}: {message}", stacklevel=4)
        if part is self._whole:
            run.variables.commit()
        return Results(zip(part.keys, outputs, strict=True), part.aliases)

    def random_inputs(
        self, seed: int, shapes: GivenShapes | None = None, given: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """`given`, and a made-up array for every other input: normal floats, integers from 0 to 7, or fewer
        where a layer needs that.

        `shapes` gives the shape of an input by name; a size that stays unknown is the smallest of a few that are
        within what the model declares, and that all layers can do with, or a size of weights. Raises InputError where
        none is.
        """
        from irrun.run.random_inputs import random_inputs

        def unsuited(shapes: GivenShapes) -> str | None:
            errors = validate(self.model, shapes=shapes, searched=0, ignore=self._ignored).errors
            return f"layer {errors[0].layer} cannot be computed: {errors[0].message}" if errors else None

        def breaking(arrays: Mapping[int, Array]) -> bool:
            parameters = self.model.graph.parameters
            tensors = {parameters[n]: Tensor.of(array, self._declared[n].type) for n, array in arrays.items()}
            inference = infer(self.model.graph, self.model.weights, tensors, self._ignored)
            return any(found.severity == "error" for found in inference.diagnostics)

        wanted = shapes or {}, given or {}, self.max_memory
        return random_inputs(self.model, self._declared, seed, *wanted, unsuited, breaking)

    def _part(self, names: Sequence[tuple[str, ...]], values: Sequence[Value] | None) -> _Part:
        """The part of the model that makes `values`, which go by `names`; None are its Results."""
        graph = self.model.graph
        try:
            program = build(graph, self._inference, self.max_memory, values, compressed=bool(self._engines))
            program = retype(program, self._options["precision"])
            if self._options["precision"] == "bf16" and values is None:
                self._setting.bf16 = computed_in_bf16(program, self._engines)
                if self._engines and emulated(program, self._setting.bf16):
                    warnings.warn(EMULATED, stacklevel=3)
            fixed = bool(self._engines) and _is_fixed(program)
            if not fixed:
                program = prepare(program, replace(self._setting, engines=()))
            bodies = Bodies(self.model.path, self.model.weights, self._setting)
            preparation = Preparation(program, self._setting, bodies.kernels, ready=not fixed)
            preparation.prepare_ahead()
        except WeightsError as error:
            raise self._unfit(str(error)) from None
        except ExecutionError as error:
            raise in_file(self.model.path, *error.diagnostics) from None
        if self.model.weights.changed:
            raise self._unfit(f"`{self.model.weights.path}` was written to while it was read")
        read = range(len(graph.parameters)) if values is None else parameters_of(graph, values)
        return _Part(
            preparation,
            bodies,
            tuple(read),
            tuple(graph.results) if values is None else tuple(value.layer for value in values),
            tuple(self._conversion(program.tensors[number].type) for number in program.results),
            tuple(listed[0] for listed in names),
            {name: listed[0] for listed in reversed(names) for name in reversed(listed)},
        )

    def _handed_out(
        self, part: _Part, results: list[Array], others: Sequence[Array], frame: Frame, live: int
    ) -> list[Array]:
        """The results as arrays that nothing else uses; `live` bytes are in use.

        Raises ExecutionError where there is no room.
        """
        outputs = []
        shared = {frame.owner, *[id(owner_of(array)) for array in others]}  # constants are not writeable
        for layer, type, array in zip(part.layers, part.types, results, strict=True):
            owner = owner_of(array)
            lent = owner.base is None or isinstance(owner.base, memoryview)  # as memory of a reserve is
            copied = id(owner) in shared or not lent or not array.flags.writeable
            wanted = array.nbytes if copied or type is not None else 0
            if live + wanted > self.max_memory:
                error = refusal(layer, f"the result {shape_text(array.shape)}", wanted, live, self.max_memory)
                raise in_file(self.model.path, *error.diagnostics)
            live += wanted
            if type is not None:
                outputs.append(array.astype(type))
            else:
                outputs.append(array.copy() if copied else array)
                shared.add(id(owner))
        return outputs

    def _conversion(self, type: str) -> np.dtype[Any] | None:
        """The type in which a result comes out that is computed in another one."""
        given = handed_out(type, self.model.version)
        return None if given == type else numpy_dtype(given)

    def _unfit(self, message: str) -> ExecutionError:
        help = "load the model again when the file is complete; write a new file and rename it instead of changing it"
        return in_file(self.model.path, Diagnostic("E502", message, help=help))


def _looked_up(inference: Inference) -> list[Layer]:
    """Constants of which nobody reads more than rows, as of tables of embeddings."""
    constants = (layer for layer in inference.nodes if layer.type == "Const")
    return [layer for layer in constants if _is_looked_up(layer.outputs[0], inference)]


def _is_looked_up(value: Value, inference: Inference) -> bool:
    """Whether all that reads a tensor, converted perhaps, looks rows up in it."""

    def looks_up(reader: Layer, number: int) -> bool:
        op = inference.nodes[reader].op if reader in inference.nodes else None
        if op is not None and op.trait(Converting) is not None:
            return _is_looked_up(reader.outputs[0], inference)
        return op is not None and op.trait(Lookup) is not None and number == 0

    return bool(value.consumers) and all(looks_up(*own) for own in value.consumers)


def _is_small(model: Model, inference: Inference) -> bool:
    """Whether there is so little to multiply that oneDNN does not pay in a single run."""
    nodes, size = inference.nodes.values(), model.weights.size or 0
    if size >= SINGLE_RUN_BYTES:
        convolutions = (node for node in nodes if node.op.trait(Convolving) is not None)
        size -= sum(tensor_bytes(inference.tensor(node.layer.inputs[1])) for node in convolutions)
    if size >= SINGLE_RUN_BYTES:
        return False
    products = (node for node in nodes if node.op.trait(Convolving) is None)
    return sum(_operations(inference, node) for node in products) < SINGLE_RUN_OPERATIONS


def _operations(inference: Inference, node: InferredLayer) -> int:
    """The multiplications and additions of a layer that has `Products`, at most: 0 where nothing says how large sizes
    may be before the run."""
    products = node.op.trait(Products)
    if products is None:
        return 0
    inputs = [_at_most(inference.tensor(value)) for value in node.layer.inputs[:2]]
    return products.known(inputs, node.attrs, _at_most(node.outputs[0]))


def _at_most(tensor: Tensor) -> Tensor:
    """A tensor of the largest sizes that it may have, where it is known which these are: those that only data tell, as
    how many boxes are found, often are."""
    if tensor.shape is None or tensor.static:
        return tensor
    sizes = (size if isinstance(size, int) or size.high is None else size.high for size in tensor.shape)
    return Tensor(tensor.type, tuple(sizes))


def _is_fixed(program: Program) -> bool:
    """Whether all inputs have one shape only, so that nobody may need the program for any others; bodies do."""
    fixed = all(program.tensors[number].static for number in program.parameters)
    return fixed and not any(instruction.bodies for instruction in program.instructions)


def _is_stateful(program: Program) -> bool:
    return any(
        "state" in instruction.op.context or any(_is_stateful(body) for _, body in instruction.bodies.values())
        for instruction in program.instructions
    )
