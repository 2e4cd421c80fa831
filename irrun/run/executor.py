"""The executor: a model made ready once, then run as often as one likes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from irrun.check.validate import GivenShapes, validate
from irrun.diagnostics import Diagnostic, ExecutionError, IRError
from irrun.engines import CHECK, SINGLE_RUN, load_engines
from irrun.engines.work import BUFFER
from irrun.ir.graph import Model
from irrun.ir.weights import WeightsError
from irrun.run.frame import Frame
from irrun.run.inputs import bind_inputs, random_inputs
from irrun.run.kernels import Kernels
from irrun.run.memory import Meter, available, owner_of, refusal
from irrun.run.passes import prepare
from irrun.run.passes.building import build
from irrun.run.passes.setting import Setting
from irrun.run.preparation import Preparation
from irrun.run.program import Program
from irrun.run.session import Observer, Run, Session
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array
from irrun.spec.patterns import shape_text

if TYPE_CHECKING:
    from irrun.run.comparison import Comparison
    from irrun.run.profile import Profile

_V10_OUTPUTS = {
    **dict.fromkeys(("f16", "bf16", "f64", "u8", "i8", "boolean"), "f32"),
    **dict.fromkeys(("i64", "u64"), "i32"),
}
"""How OpenVINO hands out the results of an IR of version 10: in the types that programs of its time expect."""


MAX_EXPANDED = 1 << 30
"""Bytes that weights of few bits may take as f32 where no engine reads their codes as quickly."""


class GraphExecutor:
    """A model that can be run.

    `max_memory` is how many bytes the arrays of a run may take together, the physical memory unless given: a layer that
    asks for more is refused before anything is allocated (see `irrun.run.memory` for what counts).

    `engine` is what computes (see `irrun.engines`), with `threads` threads, all processors unless given. `once` says
    that there will be one run, so that nothing is prepared that pays only in later ones.

    Raises IRError where the model has errors, or needs more memory whatever its inputs are; its warnings are in
    `report`. Raises EngineError where there is no such engine.
    """

    def __init__(
        self,
        model: Model | str | os.PathLike[str],
        weights: str | os.PathLike[str] | None = None,
        *,
        max_memory: int | None = None,
        engine: str = "auto",
        threads: int | None = None,
        once: bool = False,
    ) -> None:
        self.report = validate(model, weights)
        if self.report.model is None or self.report.inference is None or not self.report.ok:
            raise IRError(self.report.errors)
        self.model: Model = self.report.model
        self.max_memory = available() if max_memory is None else max_memory
        inference, graph = self.report.inference, self.model.graph
        engines = load_engines(engine, threads, small=once and (self.model.weights.size or 0) < SINGLE_RUN)
        self._kernels = Kernels(self.model.path, self.model.weights, self._prepared)
        self._comparison: Comparison | None = None
        if engine == CHECK:
            from irrun.run.comparison import Comparison

            self._comparison = Comparison()
        plain = Setting(self.model.weights, self.max_memory, checked=engine == CHECK, compressed=bool(engines))
        plain.expanded = 0 if once or any(engine.decodes for engine in engines) else MAX_EXPANDED
        try:
            program = prepare(build(graph, inference, self.max_memory, compressed=bool(engines)), plain)
        except WeightsError as error:
            raise self._unfit(str(error)) from None
        except ExecutionError as error:
            raise self._kernels.placed(*error.diagnostics) from None
        self._doubtful = [node for node in inference.nodes.values() if node.complete and node.warnings]
        if self.model.weights.changed:
            raise self._unfit(f"`{self.model.weights.path}` was written to while it was read")
        self._outlets = graph.results
        self._types = [program.tensors[number].type for number in program.results]
        self._declared = [inference.nodes[layer].outputs[0] for layer in graph.parameters]
        self._parameters, self._numbers = graph.parameters, dict[str, int]()
        self.output_names = _output_names(self.model)
        plain.engines, plain.encloses = engines, not once
        self._setting = plain
        self._bodies: dict[int, Preparation] = {}
        self._lock = Lock()
        self._preparation = Preparation(program, plain, self._kernels, self._comparison)
        self._preparation.prepare_ahead()
        self.stateful = _is_stateful(program)
        self._session = self.session()

    def session(self) -> Session:
        """A request with variables of its own, beside those of `run`."""
        return Session(self)

    def run(
        self,
        inputs: Mapping[str, Any] | Sequence[Any] = (),
        *,
        profile: Profile | None = None,
        observer: Observer | None = None,
    ) -> dict[str, Array]:
        """Compute all results, in the order of the model's Results, in a session that the executor keeps.

        `inputs` are arrays by name or by position, of exactly the type and of a shape that the model declares.
        `profile` takes down how long each layer takes; `observer` is told of every tensor that is made (see
        `irrun.run.session.Event`), and may give another array in its place.
        Several threads may call this at once; a model with variables does one run after the other.
        Raises InputError where they do not fit, ExecutionError where the data break a constraint of a layer.
        """
        return self._session.run(inputs, profile=profile, observer=observer)

    def reset_state(self) -> None:
        """Forget the values of all variables: the next run starts as the first one did."""
        self._session.reset_state()

    def bind(self, inputs: Mapping[str, Any] | Sequence[Any]) -> list[Array]:
        """The arrays of `inputs`, one for each Parameter. Raises InputError."""
        if self.model.weights.changed:
            raise self._unfit(f"`{self.model.weights.path}` was written to after the model was loaded")
        return bind_inputs(self.model, self._parameters, self._declared, inputs, self._numbers)

    def execute(self, arrays: list[Array], run: Run) -> dict[str, Array]:
        """The results of a run for the arrays that `bind` gave. Its variables are changed if all went well."""
        before = np.setbufsize(BUFFER)
        try:
            with np.errstate(all="ignore"), self._preparation.frame(arrays, watched=run.observer is not None) as frame:
                program = frame.program
                live = program.reserved + program.size if program.size else program.peak
                if program.unsized:
                    live = program.reserved + program.size
                    run.meter = Meter(self.max_memory, live, arrays, frame.owners)
                results = frame.execute(arrays, run)
                live = live if run.meter is None else run.meter.live
                outputs = self._handed_out(results, [*arrays, *run.variables.memories], frame, live)
        finally:
            np.setbufsize(before)
        for node in self._doubtful:  # whatever computes it, or has computed it ahead
            run.warnings[:0] = [(node.layer, message) for message in node.warnings]
        for layer, message in dict.fromkeys(run.warnings):  # `check` asks rules twice
            warnings.warn(f"{self.model.path}:{layer.span.line}: layer {layer}: {message}", stacklevel=4)
        run.variables.commit()
        return dict(zip(self.output_names, outputs, strict=True))

    def random_inputs(
        self, seed: int, shapes: GivenShapes | None = None, given: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """`given`, and a made-up array for every other input: normal floats, integers from 0 to 7.

        `shapes` gives the shape of an input by name; a size that stays unknown is taken as small as it may be.
        """
        return random_inputs(self.model, self._declared, seed, shapes or {}, given or {}, self.max_memory)

    def _handed_out(self, results: list[Array], others: Sequence[Array], frame: Frame, live: int) -> list[Array]:
        """The results as arrays that nothing else uses; `live` bytes are in use.

        Raises ExecutionError where there is no room.
        """
        outputs = []
        shared = {id(owner_of(array)) for array in (*others, frame.memory)}  # constants are not writeable
        for layer, type, array in zip(self._outlets, self._types, results, strict=True):
            owner = owner_of(array)
            copied = id(owner) in shared or owner.base is not None or not array.flags.writeable
            wanted = array.nbytes if copied or self.model.version == 10 else 0
            if live + wanted > self.max_memory:
                error = refusal(layer, f"the result {shape_text(array.shape)}", wanted, live, self.max_memory)
                raise self._kernels.placed(*error.diagnostics)
            live += wanted
            if self.model.version == 10 and type in _V10_OUTPUTS:
                outputs.append(array.astype(numpy_dtype(_V10_OUTPUTS[type])))
            else:
                outputs.append(array.copy() if copied else array)
                shared.add(id(owner))
        return outputs

    def _prepared(self, program: Program) -> Preparation:
        """The body of an op, made ready; `program` lives as long as the executor."""
        preparation = self._bodies.get(id(program))
        if preparation is None:
            with self._lock:
                setting = replace(self._setting, iterated=True)
                made = Preparation(program, setting, self._kernels, self._comparison)
                preparation = self._bodies.setdefault(id(program), made)
        return preparation

    def _unfit(self, message: str) -> ExecutionError:
        help = "load the model again when the file is complete; write a new file and rename it instead of changing it"
        return self._kernels.placed(Diagnostic("E502", message, help=help))


def _is_stateful(program: Program) -> bool:
    return any(
        "state" in instruction.op.context or any(_is_stateful(body) for _, body in instruction.bodies.values())
        for instruction in program.instructions
    )


def _output_names(model: Model) -> list[str]:
    """A unique name for every Result: its own, its tensor's, or its producer's."""
    names: dict[str, None] = {}
    counts: dict[str, int] = {}
    for layer in model.graph.results:
        source = layer.inputs[0]
        assert source is not None
        own = [name for name in layer.attributes.get("output_names", "").split(",") if name.strip()]
        several = f".{source.index}" if len(source.layer.outputs) > 1 else ""
        name = next(iter((*own, *source.port.names)), f"{source.layer.name}{several}")
        unique, count = name, counts.get(name, 1)
        while unique in names:
            unique = f"{name}_{count}"
            count += 1
        names[unique] = None
        counts[name] = count
    return list(names)
