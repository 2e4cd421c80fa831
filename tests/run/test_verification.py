"""Programs keep their invariants after every pass; and a program that breaks one is found out."""

import os
import tempfile
import warnings
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from differential.generate import case
from differential.graph import save
from engines.toy import Toy
from ir_builder import Model

import irrun
from irrun.run import passes
from irrun.run.program import VIEW
from run.compressed_models import CHAINS, Chain, product
from run.models import ADD, PLAIN, anything, i64, model, saved
from run.quantized_models import mixed
from run.test_program import SAMPLES, SIZES, executor, random_model
from run.verification import VerificationError, verify

FOLDER = os.environ.get("IRRUN_EXPORTS")
EXPORTS = sorted(path.parent for path in Path(FOLDER).glob("*/inputs.npz")) if FOLDER else []
CHUNK = 10


@pytest.fixture
def verified(monkeypatch):
    """Every program is verified after every pass; how often each has been."""
    counts: dict[str, int] = {}

    def checked(step):
        def run(program, setting):
            verify(program)
            made = step(program, setting)
            planned = step is passes.plan_memory
            verify(made, planned=planned, asked=setting.checked or setting.watched, iterated=setting.iterated)
            counts[step.__name__] = counts.get(step.__name__, 0) + 1
            return made

        return run

    monkeypatch.setattr(passes, "PASSES", tuple(map(checked, passes.PASSES)))
    return counts


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "check"])
@pytest.mark.parametrize("folder", SAMPLES, ids=lambda path: path.name)
def test_programs_of_the_samples(folder, engine, verified):
    irrun.GraphExecutor(folder / "model.xml", engine=engine).run(np.load(folder / "inputs.npz"))
    expected = (
        "compress narrow fold separate inline drop rewrite quantize attend group normalize pick prune enclose grow "
        "fuse assign shorten plan_memory"
    )
    assert set(verified) == set(expected.split())


@pytest.mark.parametrize("engine", ["numpy", "auto", "check"])
@pytest.mark.parametrize("name", ["u4 in groups", "turned i8", "nf4 by channel"])
def test_programs_with_compressed_weights(name, engine, verified, tmp_path):
    """One is looked up and multiplied; another one, of packed codes, is read as the graph has it."""
    chain, model = CHAINS[name], Model()
    weights = chain.added(model)
    inner = weights[3][1]
    model.result(product(model, model.parameter("x", "f32", ("?", inner)), weights, True))
    plain = Chain("u4", (300, 100), (300, 100)).added(model)
    model.result(plain)
    ours = irrun.GraphExecutor(model.save(tmp_path), engine=engine)
    for rows in (1, 3):
        ours.run([np.ones((rows, inner), np.float32)])
    assert len(ours._whole.preparation.general.program.compressed) == 1


@pytest.mark.parametrize("engine", ["numpy", "auto", "check"])
def test_quantized_programs(engine, verified, tmp_path):
    path, inputs = mixed(tmp_path), {"x": np.ones((1, 8, 6, 6), np.float32)}
    executor = irrun.GraphExecutor(path, engine=engine)
    executor.run(inputs)
    executor.run(inputs, observer=lambda event: None)


@pytest.mark.parametrize("seed", range(60))
def test_programs_of_engines_that_want_and_give_other_layouts(seed, verified, tmp_path, monkeypatch):
    ours, _ = executor(random_model(seed, tmp_path, dynamic=seed % 3 == 0), seed, monkeypatch)
    inputs = ours.random_inputs(0, {"x0": SIZES, "x1": SIZES})
    ours.run(inputs)
    ours.run(inputs, observer=lambda event: None)
    assert verified["plan_memory"] == 3


@pytest.mark.parametrize("engine", ["numpy", "onednn", "check"])
@pytest.mark.parametrize("first", range(0, 200, CHUNK))
def test_programs_of_random_models(first, engine, verified):
    for number in range(first, first + CHUNK):
        one = case(41, number)
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = irrun.GraphExecutor(save(one, Path(folder)), engine=engine)
            for feed in one.feeds:
                with suppress(irrun.ExecutionError):  # data that break a rule, or numbers that are none
                    ours.run(feed)
    assert verified["plan_memory"] > CHUNK


@pytest.mark.exports
@pytest.mark.skipif(not EXPORTS, reason="IRRUN_EXPORTS names no folder that export.py has filled")
@pytest.mark.parametrize("engine", ["numpy", "onednn"])
@pytest.mark.parametrize("folder", EXPORTS, ids=lambda path: path.name)
def test_programs_of_exports(folder, engine, verified):
    irrun.GraphExecutor(folder / f"{folder.name}.xml", engine=engine).run(np.load(folder / "inputs.npz"))
    assert verified["plan_memory"] >= 2


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_kernels_give_no_views_but_of_the_input_that_their_op_names(first, monkeypatch):
    """Plans of memory go by that."""
    from irrun.run.kernels import Kernels

    computation = Kernels.computation

    def watched(kernels, program, instruction):
        return partial(looked_at, instruction, computation(kernels, program, instruction))

    def looked_at(instruction, computed, arrays, run):
        results = computed(arrays, run)
        op = instruction.op
        for position, array in enumerate(arrays):
            if array is not None and op.pure and not instruction.bodies:
                name = op.inputs[min(position, len(op.inputs) - 1)].name
                shared = any(np.shares_memory(array, result) for result in results if result.size)
                assert not shared or name == op.view_of, f"{op.name} gives a view of {name}"
        return results

    monkeypatch.setattr(Kernels, "computation", watched)
    for number in range(first, first + 50):
        one = case(43, number)
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = irrun.GraphExecutor(save(one, Path(folder)), engine="reference")
            for feed in one.feeds:
                with suppress(irrun.ExecutionError):  # data that break a rule
                    ours.run(feed)


# Programs that are broken


class Fixed(Toy):
    """Takes every work whole, and gives it in a layout of its own; wants inputs as everybody can read them."""

    def compile(self, work):
        self._draw.random = lambda: 0.25 if len(work.inputs) < 2 else 0.5
        self._draw.randrange = lambda _: 0
        return super().compile(work)


def build(b, folder, monkeypatch, engines, **setting):
    """The program of a model for its inputs."""
    with monkeypatch.context() as patch:
        patch.setattr("irrun.run.executor.load_engines", lambda *_, **__: engines)
        ours = irrun.GraphExecutor(saved(b, folder))
    preparation = ours._whole.preparation
    shapes = tuple(array.shape for array in b.feeds[0].values())
    return passes.prepare(preparation.general.program, replace(preparation._setting, shapes=shapes, **setting))


@pytest.fixture
def program(tmp_path, monkeypatch):
    """x [2, 3] -> MatMul -> ReLU -> Transpose -> Tanh and Exp -> their sum, and a NonZero, which no engine takes."""
    from irrun.engines import load_engines

    b = model()
    x = anything(b, "f4", (2, 3))
    y = b.one("MatMul-1", x, b.constant(np.ones((3, 4), np.float32)), **PLAIN)
    y = b.one("Transpose-1", b.one("ReLU-1", y), i64(b, [1, 0]))
    z = b.one("SoftMax-1", y, axis=0)
    b.result(b.one("Add-1", z, b.one("SoftMax-1", y, axis=1), **ADD))
    b.result(b.one("NonZero-3", y))
    made = build(b, tmp_path, monkeypatch, load_engines("numpy"))
    verify(made, planned=True)
    return made


@pytest.fixture
def laid(tmp_path, monkeypatch):
    """x -> ReLU -> Tanh with a toy engine, whose layouts are brought back for the result."""
    b = model()
    b.result(b.one("SoftMax-1", b.one("SoftMax-1", anything(b, "f4", (2, 3)), axis=0), axis=1))
    made = build(b, tmp_path, monkeypatch, [Fixed(0)])
    verify(made, planned=True)
    assert [instruction.op.type for instruction in made.instructions].count("Reorder") >= 1
    return made


def position(program, type):
    return next(n for n, instruction in enumerate(program.instructions) if instruction.op.type == type)


def broken(program, message, **options):
    with pytest.raises(VerificationError, match=message):
        verify(program, **({"planned": True} | options))


def test_instructions_in_another_order(program):
    steps = program.instructions
    steps[0], steps[1] = steps[1], steps[0]
    broken(program, r"instruction 0 \(`Transpose_\d+`, view\): it reads %\d+, which nothing has made before")


def test_an_instruction_that_is_missing(program):
    del program.instructions[position(program, "SoftMax")]
    broken(program, "which nothing has made before")


def test_an_instruction_twice(program):
    program.instructions.append(program.instructions[position(program, "NonZero")])
    broken(program, r"%\d+ is made a second time")


def test_a_result_that_nobody_makes(program):
    program.results = (*program.results, len(program.tensors) - 1)
    program.tensors.append(program.tensors[0])
    program.results = (*program.results, len(program.tensors) - 1)
    broken(program, "nothing makes the result", planned=False)


def test_a_constant_of_another_shape(program):
    number = next(iter(program.constants))
    program.constants[number] = np.ones((7, 7), program.constants[number].dtype)
    broken(program, rf"the constant %{number} of shape .* holds an array of \(7, 7\)")


def test_a_post_that_changes_the_shape(program):
    number = position(program, "MatMul")
    (last,) = program.instructions[number].results
    program.tensors[last] = replace(program.tensors[last], shape=(1, 4))
    broken(program, "the post ReLU-1 makes f32")


def test_a_tensor_between_an_instruction_and_its_post_is_read(program):
    number = position(program, "MatMul")
    inner = program.instructions[number].outputs[0]
    later = position(program, "NonZero")
    program.instructions[later] = program.instructions[later].changed(inputs=(inner,))
    broken(program, "which is between an instruction and its post")


def test_a_post_that_is_left_out(program):
    number = position(program, "MatMul")
    instruction = program.instructions[number]
    program.instructions[number] = instruction.changed(posts=(), outputs=instruction.results)
    broken(program, "other posts than its work has")


def test_memory_that_overlaps(program):
    first, second = (i.results[0] for i in program.instructions if i.op.type == "SoftMax")
    program.storage[second].offset = program.storage[first].offset
    broken(program, rf"%{second} and %{first} are in use at instruction|%{first} and %{second} are in use")


def test_memory_of_an_input_that_is_written_too_early(program):
    (made,) = program.instructions[0].results
    program.storage[made].offset = program.storage[program.parameters[0]].offset
    broken(program, "are in use at instruction 0 in the same bytes")


def test_memory_that_a_view_still_looks_at(program):
    """A first SoftMax in the memory of the product, which the other one reads through the transposition."""
    (made,) = program.instructions[position(program, "SoftMax")].results
    view = program.instructions[position(program, "Transpose")]
    assert view.by == VIEW
    program.storage[made].offset = program.storage[program.storage[view.outputs[0]].root].offset
    broken(program, "are in use at instruction")


def test_memory_outside_of_the_frame(program):
    program.size -= 64
    broken(program, "lies outside of the frame")


def test_memory_that_is_too_small(program):
    program.storage[program.parameters[0]].nbytes -= 4
    broken(program, r"%0 takes 24 bytes, but has 20")


def test_memory_that_is_freed_too_early_or_never(tmp_path, monkeypatch):
    b = model()
    y = b.one("ReLU-1", anything(b, "f4", (3,)))
    z = b.one("Tanh-1", y)
    b.result(b.one("Add-1", y, z, **ADD))
    made = build(b, tmp_path, monkeypatch, [])
    verify(made, planned=True)
    first, second, third = made.instructions
    made.instructions[:] = [first, second.changed(frees=(*second.frees, y_of(first))), third]
    broken(made, rf"it reads %{y_of(first)}, which instruction 1 frees")
    made.instructions[:] = [first, second, third.changed(frees=())]
    broken(made, rf"%{y_of(first)} is never freed")
    made.instructions[:] = [first, second, third.changed(frees=(*third.frees, *third.results))]
    broken(made, "it frees the result|which is not there")


def y_of(instruction):
    return instruction.results[0]


def test_a_reorder_that_is_left_out(laid):
    number = position(laid, "Reorder")
    source, target = laid.instructions[number].reads[0], laid.instructions[number].results[0]
    del laid.instructions[number]
    laid.results = tuple(source if result == target else result for result in laid.results)
    for place, instruction in enumerate(laid.instructions):
        reads = tuple(source if read == target else read for read in instruction.reads)
        laid.instructions[place] = instruction.changed(reads=reads)
    broken(laid, "another layout|a reorder is missing|only an engine can read", planned=False)


def test_a_layout_of_one_engine_that_another_one_reads(laid):
    number = next(n for n, i in enumerate(laid.instructions) if any(laid.storage[r].opaque for r in i.reads))
    laid.instructions[number] = laid.instructions[number].changed(by="numpy")
    broken(laid, r"lies as only the engine toy can read it")


def test_inputs_that_its_work_has_not(laid):
    laid.instructions[0] = laid.instructions[0].changed(reads=())
    broken(laid, "0 reads for 1 inputs of the work")
