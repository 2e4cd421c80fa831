"""What is inferred holds in the run: for every op, however much or little is known of its inputs.

The examples of the docstrings and the models of the conformance suite are run, and every layer of them is inferred
again with parts of what the run knew left out: values, sizes, ranks, types. What is then inferred must still admit
what the layer computed. A size that is inferred as arithmetic on unknown ones must give the size of the run when the
unknown ones are filled in.
"""

import doctest
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import numpy as np
import openvino as ov
import pytest
from conformance.harness import Case, all_cases, model_of

import irrun
from irrun.check.ahead import follows
from irrun.check.infer import infer
from irrun.run.kernels import Kernels
from irrun.run.rules import Rule
from irrun.spec import Dim, Input, Node, Op, Output, Tensor, Violation, fresh, numpy_dtype
from irrun.spec.op import Inferred
from irrun.spec.patterns import shape_text
from irrun.spec.registry import registry

OPS = registry().ops
IDLE = "If-8 a body that fits no inputs, which does not run"
"""Where it is not known which body runs, both are held against the inputs, as by OpenVINO."""

CASES = [case for case in all_cases() if str(case) != IDLE]
MAX_ELEMENTS = 16
MIXTURES = 30
OTHERS = 4

DECIDED_BY_THE_RUN = {
    *("GenerateProposals-9", "Loop-5", "MatrixNms-8", "MulticlassNms-8", "MulticlassNms-9", "NMSRotated-13"),
    *("NonMaxSuppression-1", "NonMaxSuppression-3", "NonMaxSuppression-5", "NonMaxSuppression-9"),
    *("ReadValue-6", "Unique-10"),
}
"""Ops whose output sizes are known only after the computation."""

ASSUMING = {"Squeeze-1", "Squeeze-15"}
"""Ops whose pages assume that an axis of unknown size has one element; the run may find another rank."""


class Unknowns(dict[Any, int]):
    """Unknown sizes with what they are in truth, by the tag of their atoms."""

    def __init__(self, truths: Mapping[Any, int] | None = None) -> None:
        super().__init__(truths or {})
        self._equal: dict[int, Dim] = {}

    def size(self, truth: int, low: int | None = 0, high: int | None = None) -> Dim:
        dim = fresh(low, high)
        ((atom,),) = dim.terms
        self[atom.tag] = truth
        return dim

    def equal_size(self, truth: int, low: int = 0) -> Dim:
        """The same unknown size for every `truth`."""
        if truth not in self._equal:
            self._equal[truth] = self.size(truth, low)
        return self._equal[truth]

    def value(self, size: Any) -> int | None:
        """What `size` is in truth; None where it depends on what only the run can tell."""
        if not isinstance(size, Dim):
            return int(size)
        return self._sum(size.terms)

    def _sum(self, terms: Mapping[Any, int]) -> int | None:
        total = 0
        for monomial, factor in terms.items():
            for atom in monomial:
                value = self._atom(atom.tag)
                if value is None:
                    return None
                factor *= value
            total += factor
        return total

    def _atom(self, tag: Any) -> int | None:
        if not isinstance(tag, tuple):
            return self.get(tag)
        kind, *keys = tag
        if isinstance(keys[0], frozenset) and kind in ("max", "min", "broadcast"):
            keys = list(keys[0])
        values = [key if isinstance(key, int) else self._sum(dict(key)) for key in keys]
        if None in values:
            return None
        match kind:
            case "max" | "min":
                return max(values) if kind == "max" else min(values)
            case "broadcast":
                return next((value for value in values if value != 1), 1)
            case "//" | "%" if values[1]:
                return values[0] // values[1] if kind == "//" else values[0] % values[1]
        return None

    def shape(self, shape: Sequence[Any] | None) -> tuple[int | None, ...] | None:
        return None if shape is None else tuple(map(self.value, shape))


Way = Callable[[Tensor, Unknowns], Tensor]
"""How to know less of an input: (all that is known of it, unknowns to add to)."""


def value_withheld(tensor: Tensor, unknowns: Unknowns) -> Tensor:
    return Tensor(tensor.type, tensor.shape)


def sizes_unknown(tensor: Tensor, unknowns: Unknowns) -> Tensor:
    return Tensor(tensor.type, tuple(unknowns.size(size) for size in tensor.shape))


def sizes_bounded(tensor: Tensor, unknowns: Unknowns) -> Tensor:
    return Tensor(tensor.type, tuple(unknowns.size(size, size // 2, size + 1) for size in tensor.shape))


def equal_sizes_unknown(tensor: Tensor, unknowns: Unknowns) -> Tensor:
    return Tensor(tensor.type, tuple(unknowns.equal_size(size) for size in tensor.shape))


def elements_unknown(tensor: Tensor, unknowns: Unknowns) -> Tensor:
    value = tensor.value
    if tensor.type not in ("i32", "i64", "f32", "f64") or value.size > MAX_ELEMENTS:
        return tensor
    if value.dtype.kind == "f" and not (np.isfinite(value) & (value == np.trunc(value))).all():
        return tensor
    dims = np.empty(value.size, object)
    dims[:] = [unknowns.size(int(item), None) for item in value.flat]
    return Tensor(tensor.type, tensor.shape, dims.reshape(value.shape))


def rank_unknown(tensor: Tensor, unknowns: Unknowns) -> Tensor:
    return Tensor(tensor.type, None)


def nothing_known(tensor: Tensor, unknowns: Unknowns) -> Tensor:
    return Tensor("dynamic", None)


def large_sizes_unknown(tensor: Tensor, unknowns: Unknowns) -> Tensor:
    return Tensor(tensor.type, tuple(unknowns.size(size, 2) if size > 1 else size for size in tensor.shape))


def equal_large_sizes_unknown(tensor: Tensor, unknowns: Unknowns) -> Tensor:
    return Tensor(tensor.type, tuple(unknowns.equal_size(size, 2) if size > 1 else size for size in tensor.shape))


def size_unknown(axis: int) -> Way:
    def way(tensor: Tensor, unknowns: Unknowns) -> Tensor:
        shape = list(tensor.shape)
        shape[axis] = unknowns.size(shape[axis])
        return Tensor(tensor.type, tuple(shape))

    way.__name__ = f"size {axis} unknown"
    return way


def mixed(seed: int) -> Way:
    """Some sizes, or some elements, or one of the other ways, drawn for each input anew."""
    random = Random(seed)

    def some_sizes_unknown(tensor: Tensor, unknowns: Unknowns) -> Tensor:
        low, high = random.choice([(0, None), (1, None), (0, 64)])
        shape = [
            unknowns.size(size, low, high) if random.random() < 0.5 and low <= size <= (high or size) else size
            for size in tensor.shape
        ]
        return Tensor(tensor.type, tuple(shape))

    def some_elements_unknown(tensor: Tensor, unknowns: Unknowns) -> Tensor:
        value = elements_unknown(tensor, unknowns).value
        if value.dtype != object:
            return tensor
        items = [random.choice(pair) for pair in zip(value.flat, tensor.value.ravel().tolist(), strict=True)]
        return Tensor(tensor.type, tensor.shape, np.array(items, object).reshape(value.shape))

    def way(tensor: Tensor, unknowns: Unknowns) -> Tensor:
        chosen = random.choice([*WAYS, *[some_sizes_unknown] * 3, *[some_elements_unknown] * 2])
        return chosen(tensor, unknowns)

    way.__name__ = f"mixture {seed}"
    return way


WAYS: list[Way] = [
    value_withheld,
    sizes_unknown,
    sizes_bounded,
    equal_sizes_unknown,
    elements_unknown,
    rank_unknown,
    nothing_known,
]


@dataclass
class Run:
    """One call of a kernel: all about its inputs, and what it gave."""

    op: Op
    inputs: list[Tensor | None]
    attrs: Mapping[str, Any]
    outputs: Sequence[Any]
    bodies: Mapping[str, Any] = field(default_factory=dict)

    def faults(self) -> Iterator[str]:
        """What is wrong with inference."""
        known = self.infer(self.inputs)
        if isinstance(known, str):
            yield f"all known: {known}"
            return
        for number, (tensor, output) in enumerate(zip(known, self.outputs, strict=False)):
            exact = tensor.static and tensor.type != "dynamic"
            if excluded(self.op, tensor, output, Unknowns()) or not (exact or self.op.name in DECIDED_BY_THE_RUN):
                yield f"all known: output {number} is inferred as {text(tensor)}, but is {text(output)}"
        yield from self.omissions()
        yield from self.rash_decisions()
        seen = {alike(self.inputs)}
        for what, inputs, unknowns in self.known_less():
            if alike(inputs) in seen:
                continue
            seen.add(alike(inputs))
            inferred = self.infer(inputs)
            if isinstance(inferred, str):
                yield f"{what}: {inferred}"
                continue
            for number, (tensor, output) in enumerate(zip(inferred, self.outputs, strict=False)):
                fault = excluded(self.op, tensor, output, unknowns)
                if fault:
                    yield f"{what}: output {number} {fault}"
            if follows(self.op, inputs):
                for fault in self.symbolic_faults(inputs, unknowns):
                    yield f"{what}: {fault}"

    def omissions(self) -> Iterator[str]:
        """Values that the rule would object to, although it calls its check complete without any."""
        for number, tensor in enumerate(self.inputs):
            if tensor is None or tensor.value.dtype.kind not in "iu":
                continue
            _, inputs, _ = self.less([number], value_withheld)
            if not self.op.infer(inputs, self.attrs, self.bodies).complete:
                continue
            for odd in (0, 1, np.iinfo(tensor.value.dtype).min, np.iinfo(tensor.value.dtype).max):
                inputs[number] = Tensor(tensor.type, tensor.shape, np.full_like(tensor.value, odd))
                try:
                    self.op.infer(inputs, self.attrs, self.bodies)
                except Violation as violation:
                    yield f"the check is complete without input {number}, but: {violation.label}: {violation.message}"

    def rash_decisions(self) -> Iterator[str]:
        """What rules say of open sizes of 2 and more, decided whatever these are, that is not so for others."""
        connected = [number for number, tensor in enumerate(self.inputs) if tensor is not None]
        seen = set()
        for way, *chosen in [
            (large_sizes_unknown, *connected),
            (equal_large_sizes_unknown, *connected),
            *((large_sizes_unknown, number) for number in connected),
        ]:
            what, inputs, unknowns = self.less(chosen, way)
            if alike(inputs) in seen:
                continue
            seen.add(alike(inputs))
            inferred = self.infer_all(inputs)
            if isinstance(inferred, str) or not inferred.decided or inferred.supposed:
                continue
            for seed in range(OTHERS):
                other = Unknowns({tag: Random(seed + truth).randint(2, 9) for tag, truth in unknowns.items()})
                sized = [tensor and Tensor(tensor.type, other.shape(tensor.shape), tensor.content) for tensor in inputs]
                found = self.infer_all(sized)
                if isinstance(found, str):
                    yield f"decided with {what}, but with {other}: {found}"
                    continue
                for number, (tensor, truth) in enumerate(zip(inferred.outputs, found.outputs, strict=True)):
                    shape = other.shape(tensor.shape)
                    if not is_same_size(shape, truth.shape):
                        yield f"decided with {what}, {other}: output {number} is {shape}, but {text(truth)}"

    def known_less(self) -> Iterator[tuple[str, list[Tensor | None], Unknowns]]:
        connected = [number for number, tensor in enumerate(self.inputs) if tensor is not None]
        for way in WAYS:
            for chosen in [connected] if len(connected) == 1 else [connected, *([number] for number in connected)]:
                yield self.less(chosen, way)
        for seed in range(MIXTURES):
            yield self.less(connected, mixed(seed))
        for number in connected:
            for axis in range(self.inputs[number].rank):
                yield self.less([number], size_unknown(axis))

    def less(self, chosen: Sequence[int], way: Way) -> tuple[str, list[Tensor | None], Unknowns]:
        unknowns = Unknowns()
        inputs = list(self.inputs)
        for number in chosen:
            inputs[number] = way(inputs[number], unknowns)
        return f"{way.__name__.replace('_', ' ')} of {chosen}", inputs, unknowns

    def infer(self, inputs: Sequence[Tensor | None]) -> list[Tensor] | str:
        """What is inferred of the outputs, or how inference fails."""
        inferred = self.infer_all(inputs)
        if isinstance(inferred, str):
            return inferred
        outputs = inferred.outputs
        if len(outputs) < len(self.outputs) and not self.op.outputs[-1].variadic:
            return f"{len(outputs)} outputs are inferred of {len(self.outputs)}"
        return outputs

    def infer_all(self, inputs: Sequence[Tensor | None]) -> Inferred | str:
        try:
            return self.op.infer(inputs, self.attrs, self.bodies)
        except Violation as violation:
            return f"false alarm: {violation.label}: {violation.message}"
        except Exception as error:
            return f"inference fails: {error!r}"

    def symbolic_faults(self, inputs: Sequence[Tensor | None], unknowns: Unknowns) -> Iterator[str]:
        """What is wrong with values that the kernel computes from unknown numbers."""
        arrays = [None if tensor is None else tensor.value for tensor in inputs]
        known = all(tensor is None or tensor.value is not None for tensor in inputs)
        if not known or not any(array is not None and array.dtype == object for array in arrays) or self.op.context:
            return
        try:
            with np.errstate(all="ignore"):
                results = self.op.kernel(*arrays, **self.attrs)
        except Exception:  # such a value is unknown, then
            return
        for result, output in zip(results if isinstance(results, tuple) else [results], self.outputs, strict=True):
            found = np.asarray(result)
            if found.shape != output.shape:
                yield f"the kernel gives {found.shape} for unknown numbers, but {output.shape} for known ones"
                continue
            for item, truth in zip(found.flat, output.flat, strict=True):
                value = unknowns.value(item) if isinstance(item, int | Dim) else None
                if value is not None and value != truth:
                    yield f"the kernel gives {value} for unknown numbers, but {truth} for known ones"


def alike(inputs: Sequence[Tensor | None]) -> tuple[Any, ...]:
    """What ways of knowing less of the same inputs share if rules see no difference: equal sizes have equal numbers."""
    numbers: dict[Any, tuple[Any, ...]] = {}

    def numbered(size: Any) -> Any:
        if not isinstance(size, Dim):
            return int(size)
        return numbers.setdefault(size.key, (len(numbers), size.low, size.high))

    def content(tensor: Tensor) -> Any:
        value = tensor.value
        return tuple(map(numbered, value.flat)) if value is not None and value.dtype == object else id(tensor.content)

    return tuple(
        tensor and (tensor.type, tensor.shape and tuple(map(numbered, tensor.shape)), content(tensor))
        for tensor in inputs
    )


def excluded(op: Op, tensor: Tensor, output: Any, unknowns: Unknowns) -> str | None:
    """How `output` is none of what was inferred."""
    if tensor.type != "dynamic" and not has_type(output, tensor.type):
        return f"is inferred as {tensor.type}, but is {output.dtype}"
    if tensor.shape is None or (op.name in ASSUMING and tensor.rank != output.ndim):
        return None
    fits = len(tensor.shape) == output.ndim and all(map(admits, tensor.shape, output.shape))
    if not fits:
        return f"is inferred as {text(tensor)}, but is {text(output)}"
    values = [unknowns.value(size) for size in tensor.shape]
    if any(value is not None and value != size for value, size in zip(values, output.shape, strict=True)):
        return f"is inferred to become {values}, but is {text(output)}"
    return None


def admits(size: Any, actual: int) -> bool:
    if isinstance(size, Dim):
        return (size.low is None or size.low <= actual) and (size.high is None or actual <= size.high)
    return bool(size == actual)


def is_same_size(shape: Sequence[int | None] | None, truth: Sequence[Any] | None) -> bool:
    """Whether all sizes that are known are the true ones."""
    if shape is None or truth is None:
        return shape is None
    return len(shape) == len(truth) and all(size in (None, own) for size, own in zip(shape, truth, strict=True))


def has_type(array: Any, type: str) -> bool:
    return bool(array.dtype.kind == "U" if type == "string" else array.dtype == numpy_dtype(type))


def text(what: Any) -> str:
    return f"{what.type if isinstance(what, Tensor) else what.dtype}{shape_text(what.shape)}"


def shared_memory(op: Op, inputs: Sequence[Any], outputs: Sequence[Any]) -> Iterator[str]:
    names = [port.name for port in op.inputs]
    for number, array in enumerate(inputs):
        name = names[min(number, len(names) - 1)]
        if array is None or name == op.view_of:
            continue
        for index, output in enumerate(outputs):
            if isinstance(output, np.ndarray) and np.shares_memory(output, array):
                yield f"output {index} shares memory with `{name}`, which is not declared as `view_of`"


class Recorder(Kernels):
    """Keeps every call of a kernel; its inputs are locked against being written to."""

    calls: ClassVar[list[tuple[Any, Run]]] = []
    faults: ClassVar[list[str]] = []

    def computation(self, program: Any, instruction: Any) -> Any:
        return partial(self.record, super().computation(program, instruction), program, instruction)

    def record(self, computation: Any, program: Any, instruction: Any, arrays: Any, run: Any) -> Any:
        for array in arrays:
            if array is not None:
                array.flags.writeable = False
        results = computation(arrays, run)
        op = instruction.op
        if op.pure and not instruction.bodies:
            self.faults.extend(f"{op.name}: {fault}" for fault in shared_memory(op, arrays, results))
        bodies = {name: body for name, (body, _) in instruction.bodies.items()}
        outputs = [np.asarray(result) for result in results]
        call = Run(op, Rule(program, instruction).tensors(arrays), instruction.attrs, outputs, bodies)
        self.calls.append((instruction.layer, call))
        return results


@pytest.mark.filterwarnings("ignore:.* are shifted out here")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_inference_of_a_model_holds_in_its_run(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irrun.run.passes.folding.MAX_FOLDED", -1)  # constant layers run like others
    monkeypatch.setattr("irrun.run.preparation.Kernels", Recorder)
    Recorder.calls.clear()
    Recorder.faults.clear()
    model, arrays = model_of(case)
    path = tmp_path / "model.xml"
    ov.serialize(model, path)
    executor = irrun.GraphExecutor(path, engine="reference")
    executor.run(arrays)
    faults = list(Recorder.faults)
    graph, inference = executor.model.graph, executor.report.inference
    assert inference is not None
    parameters = {
        layer: sizes_unknown(inference.nodes[layer].outputs[0], Unknowns())
        for layer in graph.parameters
        if inference.nodes[layer].outputs[0].static
    }
    dynamic = infer(graph, inference.weights, parameters)
    faults += [f"the model with unknown sizes: {diagnostic}" for diagnostic in dynamic.diagnostics]
    for what, inferred in (("the model", inference), ("the model with unknown sizes", dynamic)):
        for layer, run in Recorder.calls:
            for number, output in enumerate(run.outputs):
                if layer in inferred.nodes and number < len(layer.outputs):
                    fault = excluded(run.op, inferred.nodes[layer].outputs[number], output, Unknowns())
                    faults += [f"{run.op.name}: {what}: output {number} {fault}"] if fault else []
    reported = len(inference.diagnostics)
    for run in dict(Recorder.calls).values():
        faults += [f"{run.op.name}: {fault}" for fault in run.faults()]
    faults += [f"false alarm in a body: {diagnostic}" for diagnostic in inference.diagnostics[reported:]]
    assert not faults, "\n".join([f"{case}:", *dict.fromkeys(faults)])


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_inference_of_an_example_holds(op: Op) -> None:
    faults: list[str] = []

    def call(*inputs: Any, **attrs: Any) -> Any:
        arrays = [None if array is None else np.array(array) for array in inputs]
        for array in arrays:
            if array is not None:
                array.flags.writeable = False
        results = op(*arrays, **attrs)
        outputs = results if isinstance(results, tuple | list) else [results]
        faults.extend(shared_memory(op, arrays, outputs))
        tensors = [None if array is None else Tensor.of(array) for array in arrays]
        run = Run(op, tensors, op.defaults | attrs, [np.asarray(output) for output in outputs])
        faults.extend(run.faults())
        return results

    call.kernel = op.kernel  # type: ignore[attr-defined]
    test = doctest.DocTestParser().get_doctest(op.__doc__ or "", {"np": np, "op": call}, op.name, None, 0)
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test).failed == 0
    assert not faults, "\n".join(dict.fromkeys(faults))


def test_every_op_has_an_example_or_a_model():
    shown = {name for name, op in OPS.items() if ">>>" in (op.__doc__ or "")}
    assert OPS.keys() <= shown | {case.op for case in CASES}


def wrong(rule: Callable[[Node], Any], kernel: Callable[..., Any] = np.copy) -> list[str]:
    """What is found in an op that should give its input back."""
    op = Op("Wrong-1", kernel, [Input("x", "i64", "[*x]")], [Output("y", "i64", "[*y]")], rule=rule)
    data = np.ones((2, 3), np.int64)
    return [*Run(op, [Tensor.of(data)], {}, [data.copy()]).faults(), *shared_memory(op, [data], [op.kernel(data)])]


def one_more_if_unknown(node: Node) -> Any:
    return {"y": tuple(size if isinstance(size, int) else size + 1 for size in node.shape("x"))}


def objecting_to_unknown_sizes(node: Node) -> Any:
    return {"y": node.shape("x")} if node.inputs["x"].static else node.fail("C1", "unknown")


def objecting_late(node: Node) -> Any:
    if node.inputs["x"].known and node.inputs["x"].value.max() > 1:
        node.fail("C1", "too large")
    return {"y": node.shape("x")}


def test_faults_are_found():
    assert wrong(lambda node: {"y": node.shape("x")}) == []
    assert "all known: output 0 is inferred as i64[3, 3], but is int64[2, 3]" in wrong(lambda node: {"y": (3, 3)})
    found = wrong(lambda node: {"y": (fresh(), 3)})
    assert "all known: output 0 is inferred as i64[?, 3], but is int64[2, 3]" in found
    found = wrong(one_more_if_unknown)
    assert "size 1 unknown of [0]: output 0 is inferred to become [2, 4], but is int64[2, 3]" in found
    assert "sizes unknown of [0]: false alarm: C1: unknown" in wrong(objecting_to_unknown_sizes)
    assert "the check is complete without input 0, but: C1: too large" in wrong(objecting_late)
    found = wrong(lambda node: {"y": node.shape("x")}, np.asarray)
    assert found == ["output 0 shares memory with `x`, which is not declared as `view_of`"]
