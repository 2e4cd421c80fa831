"""Programs: plans that are given to engines, whatever these take, want and give, compute what the plain kernels do."""

import random
import threading
from pathlib import Path

import numpy as np
import pytest
from engines.toy import Toy
from ir_builder import Model

import irrun
from irrun.diagnostics import EngineError
from irrun.engines import load_engines
from irrun.engines.memory import data_address
from irrun.run.preparation import MAX_KEPT
from irrun.run.profile import Entry, Profile

SAMPLES = sorted(path.parent for path in (Path(__file__).parents[2] / "samples").glob("*/model.xml"))
SIZES = (2, 3, 4)


def random_model(seed: int, folder: Path, dynamic: bool = False) -> Path:
    """Element-wise ops, products, views and copies, at random; every tensor is [2, 3, 4] with its axes permuted."""
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    model = Model()
    values = [model.parameter(f"x{n}", "f32", ("?", 3, 4) if dynamic else SIZES) for n in range(2)]
    shapes = dict.fromkeys(values, SIZES)

    def layer(type, inputs, shape, version="opset1", **data):
        (value,) = model.layer(
            type, inputs, [("f32", tuple(-1 if dynamic else size for size in shape))], version, **data
        )
        shapes[value] = shape
        values.append(value)

    for _ in range(draw.randrange(5, 40)):
        a = draw.choice(values[-4:])
        alike = [value for value in values if shapes[value] == shapes[a]]
        match draw.randrange(7):
            case 0:
                layer(draw.choice(["ReLU", "Tanh", "Abs"]), [a], shapes[a])
            case 1 | 2:
                pair = [a, draw.choice(alike)]
                draw.shuffle(pair)
                layer(draw.choice(["Add", "Multiply", "Subtract"]), pair, shapes[a], auto_broadcast="numpy")
            case 3:
                scale = model.constant(numbers.standard_normal((1, 1, shapes[a][2]), np.float32))
                pair = [a, scale]
                draw.shuffle(pair)
                layer(draw.choice(["Add", "Multiply", "Subtract"]), pair, shapes[a], auto_broadcast="numpy")
            case 4:
                order = draw.sample(range(3), 3)
                layer("Transpose", [a, model.constant(np.int64(order))], tuple(shapes[a][axis] for axis in order))
            case 5:
                flat = (shapes[a][0] * shapes[a][1], shapes[a][2])
                (rows,) = model.layer(
                    "Reshape", [a, model.constant(np.int64([-1, flat[1]]))], [("f32", (-1, -1))], special_zero="false"
                )
                target = model.constant(np.int64([-1, *shapes[a][1:]]))
                layer("Reshape", [rows, target], shapes[a], special_zero="false")
            case 6:
                parts = [*[value for value in alike if value is not a][:1], a]
                (joined,) = model.layer("Concat", parts, [("f32", (-1,) * 3)], axis="0")
                kept = model.constant(np.int64(0)), model.constant(np.int64([1]))
                (half,) = model.layer(
                    "Gather", [joined, kept[1], kept[0]], [("f32", (-1,) * 3)], "opset8", batch_dims="0"
                )
                layer("Add", [a, half], shapes[a], auto_broadcast="numpy")
    for value in [values[-1], *draw.sample(values, 2)]:
        model.result(value)
    return model.save(folder)


def executor(path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[irrun.GraphExecutor, Toy]:
    """An executor of two toy engines, and the first one."""
    toys = [Toy(seed), Toy(seed + 1)]
    with monkeypatch.context() as patch:
        patch.setattr("irrun.run.executor.load_engines", lambda *_, **__: toys)
        return irrun.GraphExecutor(path), toys[0]


def agree(path: Path, ours: irrun.GraphExecutor, seeds: range, **options) -> None:
    plain = irrun.GraphExecutor(path, engine="reference")
    for seed in seeds:
        inputs = ours.random_inputs(seed, **options)
        expected = plain.run(inputs)
        results = ours.run(inputs)
        again = ours.run(ours.random_inputs(seed + 100, **options))
        for name, array in results.items():
            np.testing.assert_array_equal(array, expected[name], name)
            assert not any(np.shares_memory(array, other) for other in (*again.values(), *inputs.values()))


@pytest.mark.parametrize("seed", range(60))
def test_programs_of_random_models_compute_what_the_kernels_do(seed, tmp_path, monkeypatch):
    path = random_model(seed, tmp_path, dynamic=seed % 3 == 0)
    ours, toy = executor(path, seed, monkeypatch)
    agree(path, ours, range(2), shapes={"x0": SIZES, "x1": SIZES})
    assert toy.taken or toy.offered < 5


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
@pytest.mark.parametrize("seed", range(3))
def test_programs_of_the_samples_compute_what_the_kernels_do(sample, seed, monkeypatch):
    ours, _ = executor(sample / "model.xml", seed, monkeypatch)
    plain = irrun.GraphExecutor(sample / "model.xml", engine="reference")
    inputs = dict(np.load(sample / "inputs.npz"))
    for _ in range(2):  # the second run sees the state of the first
        expected = plain.run(inputs)
        for name, array in ours.run(inputs).items():  # sums over axes in another order round otherwise
            np.testing.assert_allclose(array, expected[name], 1e-5, 1e-6, err_msg=name)
        if "attention_mask" in inputs:  # which is as long as all that runs have brought
            ours.reset_state()
            plain.reset_state()


def test_a_program_is_made_for_each_shape_and_the_latest_are_kept(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", ("?", 2))
    model.result(model.layer("ReLU", [x], [("f32", (-1, 2))])[0])
    ours = irrun.GraphExecutor(model.save(tmp_path), engine="numpy")
    for count in range(1, 2 * MAX_KEPT):
        (result,) = ours.run([np.full((count, 2), -1, np.float32)]).values()
        assert result.tolist() == [[0, 0]] * count
    assert list(ours._whole.preparation._kept) == [(((count, 2),), False) for count in range(MAX_KEPT, 2 * MAX_KEPT)]


def test_fewer_are_kept_of_a_long_program_and_no_frames_of_others(tmp_path, monkeypatch):
    monkeypatch.setattr("irrun.run.preparation.LEAST_KEPT", 3)
    monkeypatch.setattr("irrun.run.preparation.MAX_INSTRUCTIONS", 8)
    model = Model()
    x = model.parameter("x", "f32", ("?", 2))
    (x,) = model.layer("Transpose", [x, model.constant(np.int64([1, 0]))], [("f32", (2, -1))])
    for size in (2, 3):
        matrix = model.constant(np.ones((3, size), np.float32))
        (x,) = model.layer("MatMul", [matrix, x], [("f32", (3, -1))], transpose_a="false", transpose_b="false")
    model.result(x)
    ours = irrun.GraphExecutor(model.save(tmp_path), engine="numpy")
    rng = np.random.default_rng(0)
    for size in (5, 9, 2, 14, 7, 30, 4, 9, 5, 30):
        data = rng.normal(size=(size, 2)).astype(np.float32)
        (result,) = ours.run([data]).values()
        np.testing.assert_allclose(result, np.broadcast_to(3 * data.sum(1), (3, size)), 1e-5, 1e-5)
    preparation = ours._whole.preparation
    kept = [*preparation._kept.values()]
    assert len(kept[-1].program.instructions) > 1
    assert len(kept) == max(8 // len(kept[-1].program.instructions), 3)
    (block,) = preparation._blocks._free
    assert block.frames.keys() <= {preparation._general, *kept}


def test_frames_of_all_sizes_have_their_scratch_in_one_place(tmp_path):
    model = Model()
    table, axis = model.constant(np.ones((9, 64), np.float32)), model.constant(np.int64(0))
    rows = model.parameter("rows", "i64", ("?",))
    model.result(model.layer("Gather", [table, rows, axis], [("f32", (-1, 64))], version="opset8", batch_dims="0")[0])
    executor = irrun.GraphExecutor(model.save(tmp_path), engine="numpy")
    for count in (900, 300, 500):
        executor.run([np.arange(count) % 9])
    (block,) = executor._whole.preparation._blocks._free
    frames = [*block.frames.values()]
    assert len(frames) == 3
    assert {data_address(frame._scratch) for frame in frames} == {data_address(block.memory)}
    assert not any(np.shares_memory(frame._scratch, frame.memory) for frame in frames)


def test_shapes_that_break_a_rule_are_reported_as_ever(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", ("?", "?"))
    y = model.parameter("y", "f32", ("?", "?"))
    model.result(model.layer("MatMul", [x, y], [("f32", (-1, -1))], transpose_a="false", transpose_b="false")[0])
    ours = irrun.GraphExecutor(model.save(tmp_path))
    assert ours.run([np.ones((2, 3), np.float32), np.ones((3, 1), np.float32)])
    with pytest.raises(irrun.ExecutionError, match="MatMul-1 C1"):
        ours.run([np.ones((2, 3), np.float32), np.ones((2, 1), np.float32)])


@pytest.mark.parametrize("engine", ["numpy", "reference"])
def test_threads_have_memory_of_their_own(engine, tmp_path):
    path = random_model(7, tmp_path)
    ours = irrun.GraphExecutor(path, engine=engine)
    inputs = [ours.random_inputs(seed) for seed in range(4)]
    expected = [ours.run(given) for given in inputs]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(50):
            results = ours.run(inputs[number])
            if any(not np.array_equal(results[name], expected[number][name]) for name in results):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_inputs_are_not_written_to(tmp_path, monkeypatch):
    path = random_model(3, tmp_path)
    ours, _ = executor(path, 3, monkeypatch)
    inputs = ours.random_inputs(0)
    before = {name: array.copy() for name, array in inputs.items()}
    ours.run(inputs)
    assert all(np.array_equal(inputs[name], before[name]) for name in inputs)


@pytest.mark.parametrize(("name", "message"), [("cuda", "there is no engine `cuda`"), ("numpy", "0 threads")])
def test_engines_that_are_not_there(name, message):
    with pytest.raises(EngineError, match=message):
        load_engines(name, 0)


def test_little_work_goes_without_onednn():
    assert "onednn" not in [engine.name for engine in load_engines("auto", 1, small=True)]
    assert load_engines("auto", 1)[-1].name == "numpy"
    assert load_engines("reference") == []


@pytest.mark.parametrize("engine", ["numpy", "reference"])
def test_a_profile_names_layers_shapes_and_engines(engine, tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (64, 32))
    product = model.layer(
        "MatMul",
        [x, model.constant(np.ones((32, 16), np.float32))],
        [("f32", (64, 16))],
        name="product",
        transpose_a="false",
        transpose_b="false",
    )
    model.result(model.layer("SoftMax", product, [("f32", (64, 16))], name="share", axis="1")[0])
    ours, profile = irrun.GraphExecutor(model.save(tmp_path), engine=engine), Profile()
    for _ in range(3):
        ours.run(ours.random_inputs(0), profile=profile)
    lines = profile.table().splitlines()
    assert lines[0].split() == ["layer", "type", "shape", "engine", "calls", "first", "ms", "share", "GFLOP/s"]
    first, second = lines[1].split(), lines[2].split()
    assert first[:5] == ["product", "MatMul", "f32[64,", "16]", "numpy" if engine == "numpy" else "kernel"]
    assert first[5] == "3"
    assert float(first[9]) == pytest.approx(2 * 64 * 32 * 16 / float(first[7]) / 1e6, rel=0.2)
    assert second[0] == "share"
    (product,) = (entry for entry in profile.entries.values() if entry.name == "product")
    assert (profile.runs, product.calls, product.early) == (3, 3, 1)
    assert profile.later(product) == pytest.approx((product.seconds - product.first) / 2)
    for table in profile.table().split("\n\n"):
        *parts, total = (line.split() for line in table.strip().splitlines()[1:])
        assert total[0] == "total"
        place = total.index("100.0%") - 1  # milliseconds, in both tables
        column = [float(part[part.index(next(cell for cell in part if cell.endswith("%"))) - 1]) for part in parts]
        assert sum(column) == pytest.approx(float(total[place]), abs=0.002)
    assert len(profile.events) == 6


def test_what_is_computed_once_takes_no_time_in_later_runs():
    profile = Profile(runs=3)
    profile.entries = {
        "a": Entry("once", "Add", "f32[2]", "kernel", 0, calls=1, seconds=0.5, early=1, first=0.5),
        "b": Entry("always", "MatMul", "f32[2]", "numpy", 3_000_000, calls=3, seconds=0.018, early=1, first=0.012),
        "c": Entry("not at first", "Add", "f32[2]", "numpy", 0, calls=2, seconds=0.002),
    }
    assert [profile.later(entry) for entry in profile.entries.values()] == pytest.approx([0, 0.003, 0.001])
    assert [line.split() for line in profile.table().splitlines()] == [
        ["layer", "type", "shape", "engine", "calls", "first", "ms", "share", "GFLOP/s"],
        ["once", "Add", "f32[2]", "kernel", "1", "500.000"],
        ["always", "MatMul", "f32[2]", "numpy", "3", "12.000", "3.000", "75.0%", "1.00"],
        ["not", "at", "first", "Add", "f32[2]", "numpy", "2", "1.000", "25.0%"],
        ["total", "512.000", "4.000", "100.0%"],
        [],
        ["type", "engine", "layers", "first", "ms", "share"],
        ["MatMul", "numpy", "1", "12.000", "3.000", "75.0%"],
        ["Add", "numpy", "1", "0.000", "1.000", "25.0%"],
        ["Add", "kernel", "1", "500.000", "0.000", "0.0%"],
        ["total", "3", "512.000", "4.000", "100.0%"],
    ]
    alone = Profile(runs=1, entries={"a": profile.entries["a"]})
    assert alone.table().splitlines()[1].split()[4:] == ["1", "500.000", "500.000", "100.0%"]
