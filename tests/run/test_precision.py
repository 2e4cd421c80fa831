"""In which types floats are computed: as declared, wider, or as narrow as some devices do."""

from dataclasses import replace

import numpy as np
import pytest
from command_line import irrun as command
from differential.builder import Builder, Rejected
from differential.compare import explained, wrong
from differential.generate import KINDS
from differential.graph import save
from ir_builder import Model

import irrun
from irrun.engines import PRECISIONS
from irrun.run.passes.precision import TYPES, retype
from irrun.spec.dtypes import numpy_dtype
from run.models import ADD, anything, branch, i64, loop, model, saved
from run.verification import verify

F16, F32, F64 = np.float16, np.float32, np.float64
ENGINES = pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "check"])
THIRDS = np.float16([1 / 3, 1e-3, 700, -2])


@pytest.fixture(autouse=True)
def _verified(monkeypatch):
    """Every program is held to its invariants right behind the pass."""

    def checked(program, precision):
        program = retype(program, precision)
        verify(program)
        return program

    monkeypatch.setattr("irrun.run.executor.retype", checked)


def run(executor, *inputs):
    return list(executor.run(list(inputs)).values())


def ops(executor, type=""):
    """The ops of the program for any inputs, with the types of what they make."""
    program = executor._whole.preparation.general.program
    made = [(part.op.type, program.tensors[part.outputs[0]].type) for i in program.instructions for part in i.parts]
    return [found for found in made if found[0] == type] if type else made


def chain(type):
    """(x * x + x) * x, of four numbers of a type."""
    m = Model()
    x = m.parameter("x", type, (4,))
    (square,) = m.layer("Multiply", [x, x], [(type, (4,))], auto_broadcast="numpy", name="square")
    (total,) = m.layer("Add", [square, x], [(type, (4,))], auto_broadcast="numpy", name="total")
    (cube,) = m.layer("Multiply", [total, x], [(type, (4,))], auto_broadcast="numpy", name="cube")
    m.result(cube)
    return m


def test_there_is_a_precision_for_each_name():
    assert set(PRECISIONS) == set(TYPES)


def test_an_unknown_precision(tmp_path):
    with pytest.raises(ValueError, match="there is no precision `half`; there are auto, declared, "):
        irrun.GraphExecutor(chain("f16").save(tmp_path), precision="half")


@ENGINES
def test_declared_rounds_every_layer(engine, tmp_path):
    (found,) = run(irrun.GraphExecutor(chain("f16").save(tmp_path), engine=engine, precision="declared"), THIRDS)
    x = THIRDS
    with np.errstate(over="ignore"):
        expected = (x * x + x) * x
    assert found.dtype == F16
    assert found.tolist() == expected.tolist()


@ENGINES
@pytest.mark.parametrize("type", ["f16", "bf16"])
def test_auto_rounds_results_alone(engine, type, tmp_path):
    dtype = numpy_dtype(type)
    given = THIRDS.astype(dtype)
    (found,) = run(irrun.GraphExecutor(chain(type).save(tmp_path), engine=engine, precision="auto"), given)
    x = given.astype(F32)
    with np.errstate(over="ignore"):
        expected = ((x * x + x) * x).astype(dtype)
    assert found.dtype == dtype
    assert found.astype(F32).tolist() == expected.astype(F32).tolist()


def test_reference_computes_as_declared_and_others_do_not(tmp_path):
    path = chain("f16").save(tmp_path)
    types = {
        engine: ops(irrun.GraphExecutor(path, engine=engine), "Multiply")[0][1]
        for engine in ("reference", "numpy", "check")
    }
    assert types == {"reference": "f16", "numpy": "f32", "check": "f32"}


@ENGINES
@pytest.mark.parametrize(("precision", "rounds"), [("declared", True), ("auto", False), ("f32", False), ("f64", False)])
@pytest.mark.parametrize("read", ["f32", "f64"])
def test_small_constants_are_computed_in_the_precision_that_is_asked_for(read, precision, rounds, engine):
    """Whose values inference knows by the types that the model declares, also behind a conversion that stays."""
    bf16, g = numpy_dtype("bf16").type, irrun.build(opset=13)
    x = g.Parameter(f"{read}[2]", name="x")
    product = g.Multiply(np.full((2, 1), 9, bf16), np.full((2, 1), 0.1, bf16))
    g.Result(g.Multiply(x, g.Squeeze(g.Convert(product, destination_type=read), np.int64([1])), name="y"))
    executor = irrun.GraphExecutor(g.model, engine=engine, precision=precision)
    exact = 9 * float(bf16(0.1))
    assert exact != float(bf16(exact))
    (found,) = run(executor, np.ones(2, numpy_dtype(read)))
    assert found.tolist() == [float(bf16(exact)) if rounds else exact] * 2


@pytest.mark.parametrize(
    ("precision", "given", "computed_in"),
    [
        ("auto", "f64", "f64"),
        ("f32", "f64", "f32"),
        ("f32", "f16", "f32"),
        ("f64", "f16", "f64"),
        ("f64", "f32", "f64"),
        ("f16", "f32", "f16"),
        ("f16", "bf16", "f16"),
        ("f16", "f64", "f16"),
        ("declared", "bf16", "bf16"),
    ],
)
def test_types_that_are_computed_in(precision, given, computed_in, tmp_path):
    executor = irrun.GraphExecutor(chain(given).save(tmp_path), engine="numpy", precision=precision)
    assert [type for _, type in ops(executor, "Multiply")] == [computed_in] * 2
    (found,) = run(executor, np.ones(4, numpy_dtype(given)))
    assert found.dtype == numpy_dtype(given)
    assert found.tolist() == [2] * 4


@ENGINES
def test_f64_is_the_judge(engine, tmp_path):
    x = np.float32([1 / 3, 1e-3, 700, -2])
    (found,) = run(irrun.GraphExecutor(chain("f32").save(tmp_path), engine=engine, precision="f64"), x)
    wide = x.astype(F64)
    assert found.tolist() == ((wide * wide + wide) * wide).astype(F32).tolist()


# What devices with f16 alone do


@ENGINES
def test_f16_rounds_every_layer_of_an_f32_model(engine, tmp_path):
    x = np.float32([1 / 3, 1e-3, 300, -2])
    (found,) = run(irrun.GraphExecutor(chain("f32").save(tmp_path), engine=engine, precision="f16"), x)
    half = x.astype(F16)
    with np.errstate(over="ignore"):
        expected = (half * half + half) * half
    assert found.dtype == F32
    assert np.isinf(found[2])
    assert found.tolist() == expected.astype(F32).tolist()


def precise(path, *names):
    """Mark layers so that they are not computed in 16 bits, as OpenVINO writes it."""
    lines = []
    for line in path.read_text().splitlines():
        lines.append(line)
        if any(f'name="{name}"' in line and line.startswith("<layer") for name in names):
            lines.append('<rt_info><attribute name="precise" version="0"/></rt_info>')
    path.write_text("\n".join(lines))
    return path


@ENGINES
def test_precise_layers_stay_in_f32(engine, tmp_path):
    """The square of 300 is more than f16 has, and so is what is added to it: only the last layer rounds."""
    x = np.float32([300, 1 / 3, 0, 1])
    path = precise(chain("f32").save(tmp_path), "square", "total")
    executor = irrun.GraphExecutor(path, engine=engine, precision="f16")
    assert ops(executor, "Add") == [("Add", "f32")]
    assert ops(executor, "Multiply") == [("Multiply", "f32"), ("Multiply", "f16")]
    (found,) = run(executor, x)
    wide = x.astype(F16).astype(F32)
    with np.errstate(over="ignore"):
        expected = (wide * wide + wide).astype(F16) * x.astype(F16)
    assert found.tolist() == expected.astype(F32).tolist()


def test_positions_and_sizes_are_not_rounded_to_f16(tmp_path):
    """2051 is 2052 in f16, and an index that is computed from it would be another one."""
    m = Model()
    ids, x = m.parameter("ids", "i32", (2,)), m.parameter("x", "f32", (2,))
    (floats,) = m.layer("Convert", [ids], [("f32", (2,))], destination_type="f32")
    (half,) = m.layer("Multiply", [floats, m.constant(F32([1]))], [("f32", (2,))], auto_broadcast="numpy")
    (back,) = m.layer("Convert", [half], [("i32", (2,))], destination_type="i32")
    m.result(back)
    (total,) = m.layer("Add", [half, x], [("f32", (2,))], auto_broadcast="numpy")
    m.result(total)
    executor = irrun.GraphExecutor(m.save(tmp_path), precision="f16")
    places, sums = run(executor, np.int32([2051, 7]), F32([0, 0.5]))
    assert places.tolist() == [2051, 7]
    assert sums.tolist() == [2052, 7.5]


@ENGINES
@pytest.mark.parametrize("name", ["Interpolate-4", "Interpolate-11"])
@pytest.mark.parametrize("shape", [(1, 1, 3), (1, 1, "?")])
def test_scales_are_not_rounded_to_f16(name, shape, engine, tmp_path):
    """A third of 3 is 1, but a third as f16 is less than that."""
    type, version = name.split("-")
    m = Model()
    x = m.parameter("x", "f32", shape)
    made = 1 if shape[2] == 3 else -1
    divided = [m.constant(F32([1])), m.constant(F32([3]))]
    (third,) = m.layer("Divide", divided, [("f32", (1,))], auto_broadcast="numpy", m_pythondiv="true")
    inputs = [x, *([m.constant(np.int64([1]))] if version == "4" else []), third, m.constant(np.int64([2]))]
    attrs = {"mode": "nearest", "shape_calculation_mode": "scales", "pads_begin": "0", "pads_end": "0"}
    opset = {"4": "opset4", "11": "opset11"}[version]
    m.result(m.layer(type, inputs, [("f32", (1, 1, made))], opset, **attrs)[0])
    (found,) = run(irrun.GraphExecutor(m.save(tmp_path), engine=engine, precision="f16"), F32([[[5, 6, 7]]]))
    assert found.shape == (1, 1, 1)


# Conversions


def test_conversions_that_disappear(tmp_path):
    m = Model()
    x = m.parameter("x", "f32", (2,))
    (half,) = m.layer("Convert", [x], [("f16", (2,))], destination_type="f16")
    (wide,) = m.layer("Convert", [half], [("f32", (2,))], destination_type="f32")
    (y,) = m.layer("Exp", [wide], [("f32", (2,))])
    m.result(y)
    path = m.save(tmp_path)
    executor = irrun.GraphExecutor(path, engine="numpy")
    assert ops(executor) == [("Exp", "f32")]
    x = F32([1 / 3, 1e-9])
    np.testing.assert_allclose(run(executor, x)[0], np.exp(x), 1e-6)
    (declared,) = run(irrun.GraphExecutor(path, engine="numpy", precision="declared"), x)
    np.testing.assert_allclose(declared, np.exp(x.astype(F16).astype(F32)), 1e-6)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_conversion_that_is_all_of_a_model(precision, tmp_path):
    """Also of a constant, which is a result in both types."""
    m = Model()
    for source in (m.parameter("x", "f32", (4,)), m.constant(THIRDS.astype(F32) / 7)):
        m.result(source)
        (half,) = m.layer("Convert", [source], [("f16", (4,))], destination_type="f16")
        m.result(half)
    given = F32([1 / 3, 1e-9, 1e9, -2])
    found = run(irrun.GraphExecutor(m.save(tmp_path), precision=precision), given)
    with np.errstate(over="ignore"):
        expected = [given, given.astype(F16), THIRDS.astype(F32) / 7, (THIRDS.astype(F32) / 7).astype(F16)]
    assert [(a.dtype, a.tolist()) for a in found] == [(a.dtype, a.tolist()) for a in expected]


@pytest.mark.parametrize("precision", ["f64", "f32", "f16"])
def test_types_that_are_made_of_those_of_inputs(precision, tmp_path):
    """Which type two have in common is asked of the types that are computed in."""
    model = Model()
    given = [model.parameter("a", "f32", (2,)), model.parameter("b", "f16", (2,))]
    attrs = {"promote_unsafe": "false", "pytorch_scalar_promotion": "false", "u64_integer_promotion_target": "f32"}
    pair = model.layer("ConvertPromoteTypes", given, [("f32", (2,))] * 2, version="opset14", **attrs)
    model.result(model.layer("Multiply", [*pair], [("f32", (2,))], auto_broadcast="numpy")[0])
    executor = irrun.GraphExecutor(model.save(tmp_path), precision=precision)
    assert ops(executor, "ConvertPromoteTypes") == [("ConvertPromoteTypes", precision)]
    (found,) = run(executor, F32([1.5, 2]), F16([3, 0.5]))
    assert (found.dtype, found.tolist()) == (F32, [4.5, 1])


def test_a_model_of_other_types_is_left_alone(tmp_path):
    """What needs nothing to be changed has the same program, without conversions."""
    path = chain("f32").save(tmp_path)
    programs = [
        irrun.GraphExecutor(path, engine="numpy", precision=precision)._whole.preparation.general.program
        for precision in ("auto", "declared", "f32")
    ]
    assert len({str(program) for program in programs}) == 1


@pytest.mark.parametrize(("rows", "compressed"), [(64, 0), ("?", 1)])
def test_weights_are_converted_once(rows, compressed, tmp_path):
    """A matrix in f16 is f32 in the program, or stays as the file has it where products of few rows may read it."""
    m = Model()
    x = m.parameter("x", "f16", (rows, 160))
    matrix = np.random.default_rng(0).standard_normal((160, 160)).astype(F16)
    shape = (-1 if rows == "?" else rows, 160)
    (y,) = m.layer("MatMul", [x, m.constant(matrix)], [("f16", shape)], transpose_a="false", transpose_b="false")
    m.result(y)
    executor = irrun.GraphExecutor(m.save(tmp_path), engine="numpy", once=True)
    program = executor._whole.preparation.general.program
    assert ops(executor) == [("Convert", "f32"), ("MatMul", "f32"), ("Convert", "f16")]
    assert len(program.compressed) == compressed
    assert [array.dtype for array in program.constants.values()] == [F32] * (1 - compressed)
    given = np.random.default_rng(1).standard_normal((64, 160)).astype(F16)
    (found,) = run(executor, given)
    expected = (given.astype(F64) @ matrix.astype(F64)).astype(F16)
    assert found.dtype == F16
    assert (np.abs(found - expected) <= np.spacing(np.abs(expected)) + 1e-4).all()


def test_integers_stay_as_they_are(tmp_path):
    """The division of integers, and an index from a float, with another way back to integers."""
    m = Model()
    n, x = m.parameter("n", "i32", (3,)), m.parameter("x", "f16", (3,))
    (halves,) = m.layer("Divide", [n, m.constant(np.int32([2]))], [("i32", (3,))], auto_broadcast="numpy")
    m.result(halves)
    (cut,) = m.layer("Convert", [x], [("i32", (3,))], destination_type="i32")
    m.result(cut)
    (floats,) = m.layer("Convert", [n], [("f16", (3,))], destination_type="f16")
    (total,) = m.layer("Add", [floats, x], [("f16", (3,))], auto_broadcast="numpy")
    m.result(total)
    path = m.save(tmp_path)
    for precision in PRECISIONS:
        executor = irrun.GraphExecutor(path, precision=precision)
        a, b, c = run(executor, np.int32([-7, 5, 9]), F16([1.75, -2.5, 300]))
        assert (a.dtype, a.tolist()) == (np.int32, [-4, 2, 4])
        assert (b.dtype, b.tolist()) == (np.int32, [1, -2, 300])
        assert (c.dtype, c.tolist()) == (F16, [-5.25, 2.5, 309])


def test_random_numbers_are_those_of_the_declared_type(tmp_path):
    m = Model()
    shape, low, high = m.constant(np.int64([64])), m.constant(F16(0)), m.constant(F16(1))
    (y,) = m.layer(
        "RandomUniform",
        [shape, low, high],
        [("f16", (64,))],
        "opset8",
        output_type="f16",
        global_seed="3",
        op_seed="5",
    )
    m.result(y)
    path = m.save(tmp_path)
    (declared,) = run(irrun.GraphExecutor(path, precision="declared"))
    for precision in ("auto", "f64"):
        (found,) = run(irrun.GraphExecutor(path, precision=precision))
        assert found.dtype == F16
        assert found.tolist() == declared.tolist()


# Bodies


def powers(type):
    """x, times 1.001 in each of ten iterations; and all ten of them."""
    inner, b = model(), model()
    p = anything(inner, type, (1, 2))
    y = inner.one("Multiply-1", p, inner.constant(np.full((1, 1), 1.001, type)), **ADD)
    last, every = loop(b, inner, i64(b, 10), [(p, anything(b, type, (1, 2)))], [y], [(y, p)], [y])
    b.result(last)
    b.result(every)
    return b


@ENGINES
def test_loops_carry_the_type_that_they_compute_in(engine, tmp_path):
    executor = irrun.GraphExecutor(saved(powers("f2"), tmp_path), engine=engine, precision="auto")
    assert ops(executor, "Loop") == [("Loop", "f32")]
    (instruction,) = [i for i in executor._whole.preparation.general.program.instructions if i.bodies]
    _, body = instruction.bodies["body"]
    assert [i.op.type for i in body.instructions] == ["Multiply"]
    factor = F32(F16(1.001))
    for _ in range(2):
        last, every = run(executor, F16([[1, -3]]))
        expected = F32([[1, -3]]) * np.cumprod(np.full((10, 1), factor), 0)
        assert last.dtype == every.dtype == F16
        assert last.tolist() == expected[-1:].astype(F16).tolist()
        assert every.tolist() == expected.astype(F16).tolist()


@ENGINES
def test_types_that_are_in_bodies_alone(engine, tmp_path):
    """A loop is given f32 and gives it, and computes in f16 between."""
    inner, b = model(), model()
    p = anything(inner, "f4", (1, 2))
    x = inner.one("Convert-1", p, destination_type="f16")
    y = inner.one("Multiply-1", x, inner.constant(np.full((1, 1), 1.001, F16)), **ADD)
    y = inner.one("Convert-1", y, destination_type="f32")
    last, _ = loop(b, inner, i64(b, 10), [(p, anything(b, "f4", (1, 2)))], [y], [(y, p)], [y])
    b.result(last)
    path, x = saved(b, tmp_path), F32([[1, -3]])
    (found,) = run(irrun.GraphExecutor(path, engine=engine, precision="auto"), x)
    np.testing.assert_allclose(found, x * np.float64(F16(1.001)) ** 10, 1e-6)
    (found,) = run(irrun.GraphExecutor(path, engine=engine, precision="declared"), x)
    for _ in range(10):
        x = (x.astype(F16) * F16(1.001)).astype(F32)
    assert found.tolist() == x.tolist()


@ENGINES
def test_branches(engine, tmp_path):
    one, two, b = model(), model(), model()
    p, q = anything(one, "f2", (2,)), anything(two, "f2", (2,))
    y = one.one("Multiply-1", p, one.constant(F16([1.001])), **ADD)
    condition = anything(b, "?", ())
    z = branch(b, condition, [(one, y), (two, two.one("Exp-1", q))], anything(b, "f2", (2,)))
    b.result(b.one("Multiply-1", z, z, **ADD))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine, precision="auto")
    assert ops(executor, "If") == [("If", "f32")]
    x = F16([0.3, 2])
    (found,) = run(executor, np.bool_(True), x)
    assert found.tolist() == np.square(x.astype(F32) * F32(F16(1.001))).astype(F16).tolist()
    (found,) = run(executor, np.bool_(False), x)
    np.testing.assert_allclose(found, np.exp(2 * x.astype(F64)), 1e-3)


# Variables


def sums(type):
    """The sum of all inputs so far."""
    m = Model()
    x = m.parameter("x", type, (2,))
    zero = m.constant(np.zeros(2, numpy_dtype(type)))
    (before,) = m.layer(
        *("ReadValue", [zero], [(type, (2,))], "opset6"), variable_id="v", variable_type=type, variable_shape="2"
    )
    (total,) = m.layer("Add", [before, x], [(type, (2,))], auto_broadcast="numpy")
    m.layer("Assign", [total], [], "opset6", variable_id="v")
    m.result(total)
    return m


@ENGINES
def test_variables_are_kept_in_the_type_that_is_computed_in(engine, tmp_path):
    executor = irrun.GraphExecutor(sums("f16").save(tmp_path), engine=engine, precision="auto")
    session = executor.session()
    for _ in range(100):
        (found,) = session.run([F16([0.1, 2048])]).values()
    assert found.dtype == F16
    assert found.tolist() == [F16(100 * F32(F16(0.1))), F16(np.inf)]
    assert session.variables["v"].dtype == F16
    assert session.variables["v"].tolist() == found.tolist()
    session.variables["v"] = F16([1, 2])
    assert list(session.variables) == ["v"]
    assert [array.tolist() for array in session.run([F16([0.5, 0.25])]).values()] == [[1.5, 2.25]]
    session.reset_state()
    assert len(session.variables) == 0
    assert [array.tolist() for array in session.run([F16([0.5, 0.25])]).values()] == [[0.5, 0.25]]


def test_variables_as_declared(tmp_path):
    session = irrun.GraphExecutor(sums("f16").save(tmp_path), precision="declared").session()
    for _ in range(3):
        session.run([F16([2048, 1])])
    assert session.variables["v"].dtype == F16
    session.variables["v"] = F16([2048, 1])
    assert [array.tolist() for array in session.run([F16([1, 1])]).values()] == [[2048, 2]]  # 2049 is no f16


# Watching


def test_what_an_observer_sees(tmp_path):
    """Each layer once, in the type that it is computed in; not what was put between layers."""
    path = chain("f16").save(tmp_path)
    for precision, type in (("auto", F32), ("declared", F16)):
        seen = []
        irrun.GraphExecutor(path, engine="reference", precision=precision).run(
            [THIRDS], observer=lambda event, seen=seen: seen.append((event.layer.name, event.array.dtype))
        )
        assert seen == [(name, type) for name in ("square", "total", "cube")]


# Random models


def case(seed, dtype="f2"):
    random = np.random.default_rng([seed, 11])
    for _ in range(20):
        kind = str(random.choice(list(KINDS), p=[weight for _, weight in KINDS.values()]))
        b = Builder(random, 3 if kind in ("variable", "dependent") else 2, dtype)
        try:
            return KINDS[kind][0](b, kind)
        except Rejected:
            continue
    raise AssertionError(f"no model for {seed}")


def of_type(case, source, target):
    """The model with all floats of the type `source` declared as `target`, and its inputs so."""
    before, dtype = numpy_dtype(source), numpy_dtype(target)

    def other(array):
        return array.astype(dtype) if array is not None and array.dtype == before else array

    def text(value):
        return target if value == source else value

    def graph(given):
        layers = [
            replace(
                layer,
                array=other(layer.array),
                attrs={key: text(value) for key, value in layer.attrs.items()},
                outputs=[(text(type), dims) for type, dims in layer.outputs],
                bodies={name: replace(body, graph=graph(body.graph)) for name, body in layer.bodies.items()},
            )
            for layer in given.layers
        ]
        return replace(given, layers=layers)

    feeds = [{name: other(array) for name, array in feed.items()} for feed in case.feeds]
    return replace(case, graph=graph(case.graph), feeds=feeds)


def outcomes(case, folder, **options):
    """The results of all runs; of those that fail the codes of their errors."""
    executor = irrun.GraphExecutor(save(case, folder), threads=1, **options)
    found = []
    for feed in case.feeds:
        try:
            found.append(list(executor.run(feed).values()))
        except irrun.ExecutionError as error:
            found.append([np.asarray(diagnostic.code) for diagnostic in error.diagnostics])
    return found


def as_type(arrays, source, target):
    before, after = numpy_dtype(source), numpy_dtype(target)
    with np.errstate(all="ignore"):
        return [array.astype(after) if array.dtype == before else array for array in arrays]


RANDOM_MODELS = pytest.mark.parametrize("seed", range(80))


@pytest.mark.filterwarnings("ignore")
@RANDOM_MODELS
def test_random_models_of_16_bits_are_those_of_f32(seed, tmp_path):
    """The same kernels on the same numbers: not a bit is other than in a model in f32, until results are rounded."""
    narrow, given = "f16", case(seed)
    if seed % 4 == 0:
        narrow, given = "bf16", of_type(given, "f16", "bf16")
    found = outcomes(given, tmp_path, engine="reference", precision="auto")
    wide = of_type(of_type(given, "f16", "f32"), "bf16", "f32")
    expected = outcomes(wide, tmp_path, engine="reference")
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one, as_type(other, "f32", narrow), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@pytest.mark.filterwarnings("ignore")
@RANDOM_MODELS
def test_random_models_of_f16_by_engines_against_kernels_in_f64(seed, tmp_path):
    given = case(seed)
    expected = outcomes(given, tmp_path, engine="reference", precision="f64")
    for engine in ("numpy", "onednn"):
        found = outcomes(given, tmp_path, engine=engine)
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            for output, (a, b) in enumerate(zip(one, other, strict=True)):
                assert (a.dtype, a.shape) == (b.dtype, b.shape)
                assert not wrong(a, b).any() or explained(given, number, output, a, b, tmp_path)


@pytest.mark.filterwarnings("ignore")
@RANDOM_MODELS
def test_random_models_as_devices_of_f16_compute_them(seed, tmp_path):
    """The kernels in f16, one after the other: what a model in f16 gives."""
    given = case(seed, "f4")
    found = outcomes(given, tmp_path, engine="reference", precision="f16")
    half = of_type(of_type(given, "f32", "f16"), "bf16", "f16")
    expected = outcomes(half, tmp_path, engine="reference")
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(as_type(one, "f32", "f16"), other, strict=True):  # an input may be a result as it came
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


# The command line


def test_the_option(tmp_path):
    path = chain("f32").save(tmp_path)
    np.savez(tmp_path / "x.npz", x=THIRDS.astype(F32))
    printed = {}
    for precision in (None, "auto", "f16"):
        options = ["--precision", precision] if precision else []
        printed[precision] = command("execute", path, "--inputs", tmp_path / "x.npz", *options).stdout
    assert printed[None] == printed["auto"]
    assert "inf" not in printed["auto"]
    assert "inf" in printed["f16"]
    done = command("execute", path, "--precision", "half", status=2)
    assert "'half' is not one of 'auto', 'declared', 'f32', 'bf16', 'f16', 'f64'" in done.stderr


@pytest.mark.parametrize("engine", ["numpy", "auto"])
def test_declared_roundings_in_a_chain_are_made(engine, tmp_path):
    """0.99999 is 1 in bf16, and so is its floor, though an engine could do all of the chain at once."""
    m = Model()
    y = m.parameter("x", "f32", (2, 8))
    (y,) = m.layer("Negative", [y], [("f32", (2, 8))])
    (y,) = m.layer("Convert", [y], [("bf16", (2, 8))], destination_type="bf16")
    (y,) = m.layer("Convert", [y], [("f32", (2, 8))], destination_type="f32")
    (y,) = m.layer("Floor", [y], [("f32", (2, 8))])
    m.result(y)
    ours = irrun.GraphExecutor(m.save(tmp_path), engine=engine, precision="declared")
    assert ours.run(np.full((2, 8), -0.99999, np.float32))[0].tolist() == [[1.0] * 8] * 2


@ENGINES
@pytest.mark.parametrize("precision", ["auto", "declared", "f32", "f64"])
def test_what_f16_does_not_hold_is_infinite_in_a_result(engine, precision, tmp_path):
    m = Model()
    large = m.constant(np.float32([70000, 1, -80000]))
    m.result(m.layer("Convert", [large], [("f16", (3,))], destination_type="f16")[0])
    executor = irrun.GraphExecutor(m.save(tmp_path), engine=engine, precision=precision)
    (found,) = executor.run({}).values()
    assert found.tolist() == [np.inf, 1, -np.inf]


@ENGINES
@pytest.mark.parametrize("precision", ["auto", "declared", "f32"])
def test_the_lowest_of_f16_stays_that(engine, precision, tmp_path):
    m = Model()
    x, segments = m.parameter("x", "f16", (2,)), m.constant(np.int64([0, 2]))
    (found,) = m.layer("SegmentMax", [x, segments], [("f16", (3,))], "opset16", fill_mode="LOWEST")
    m.result(m.layer("Multiply", [found, m.constant(np.float16([2]))], [("f16", (3,))], auto_broadcast="numpy")[0])
    m.result(found)
    executor = irrun.GraphExecutor(m.save(tmp_path), engine=engine, precision=precision)
    doubled, found = executor.run({"x": np.float16([1, 5])}).values()
    assert found.tolist() == [1, -65504, 5]
    assert doubled.tolist() == [2, -np.inf, 10]
