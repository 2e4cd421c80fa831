"""What is computed in bf16: products, convolutions, and what lies between; by engines, and emulated."""

import warnings

import ml_dtypes
import numpy as np
import pytest
from differential.compare import explained
from ir_builder import Model

import irrun
from irrun.engines.onednn import load
from irrun.run.passes.narrowing import narrow
from irrun.run.profile import Profile
from run.compressed_models import CHAINS, Chain, lookup, product
from run.models import PLAIN, anything, i64, loop, model, saved
from run.test_precision import case, ops, outcomes, precise, run
from run.verification import verify

F32 = np.float32
BF16 = ml_dtypes.bfloat16
EMULATED = "bf16 is emulated"


@pytest.fixture(autouse=True)
def _verified(monkeypatch):
    """Every program is held to its invariants right behind the pass."""

    def checked(program, setting):
        program = narrow(program, setting)
        verify(program)
        return program

    from irrun.run import passes

    steps = tuple(checked if step is narrow else step for step in passes.PASSES)
    monkeypatch.setattr(passes, "PASSES", steps)


def executor(path, engine="reference"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return irrun.GraphExecutor(path, engine=engine, precision="bf16")


def rounded(array):
    return np.asarray(array, F32).astype(BF16).astype(F32)


FIRST, SECOND = (np.random.default_rng(seed).standard_normal((8, 8)).astype(F32) for seed in (1, 2))


def two_products():
    """tanh(-|x| @ FIRST) @ SECOND, of which the sigmoid is the result."""
    m = Model()
    x = m.parameter("x", "f32", (4, 8))
    shape = [("f32", (4, 8))]
    (y,) = m.layer("Abs", [x], shape)
    (y,) = m.layer("Negative", [y], shape)
    (y,) = m.layer("MatMul", [y, m.constant(FIRST)], shape, transpose_a="false", transpose_b="false", name="first")
    (y,) = m.layer("Tanh", [y], shape)
    (y,) = m.layer("MatMul", [y, m.constant(SECOND)], shape, transpose_a="false", transpose_b="false", name="second")
    (y,) = m.layer("Sigmoid", [y], shape)
    m.result(y)
    return m


def rows(seed=0):
    return np.random.default_rng(seed).standard_normal((4, 8)).astype(F32)


def test_products_and_what_lies_between(tmp_path):
    ours = executor(two_products().save(tmp_path))
    assert ops(ours) == [
        ("Abs", "f32"),
        ("Negative", "f32"),
        ("Convert", "bf16"),
        ("MatMul", "bf16"),
        ("Tanh", "bf16"),
        ("MatMul", "bf16"),
        ("Convert", "f32"),
        ("Sigmoid", "f32"),
    ]
    types = {array.dtype for array in ours._whole.preparation.general.program.constants.values()}
    assert types == {np.dtype(BF16)}
    (found,) = run(ours, rows())
    y = rounded(rounded(-np.abs(rows())) @ rounded(FIRST))
    y = rounded(rounded(np.tanh(y)) @ rounded(SECOND))
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-y)), 2e-2)
    assert found.dtype == F32


@pytest.mark.parametrize("engine", ["reference", "auto"])
def test_sums_that_are_normalized_stay_in_f32(engine, tmp_path):
    """With the normalization, its scale and its shift: what adds up from layer to layer is not rounded in each."""
    m = Model()
    x = m.parameter("x", "f32", (4, 8))
    shape = [("f32", (4, 8))]
    square = np.random.default_rng(5).standard_normal((8, 8)).astype(F32)
    products = {"transpose_a": "false", "transpose_b": "false"}
    (y,) = m.layer("MatMul", [x, m.constant(square)], shape, name="first", **products)
    (z,) = m.layer("Add", [y, x], shape)
    attrs = {"eps": "1e-6", "eps_mode": "inside_sqrt", "normalize_variance": "true"}
    (n,) = m.layer("MVN", [z, m.constant(np.int64([1]))], shape, version="opset6", **attrs)
    (n,) = m.layer("Multiply", [n, m.constant(np.full(8, 2, F32))], shape)
    (n,) = m.layer("Add", [n, m.constant(np.full(8, 0.5, F32))], shape)
    (w,) = m.layer("MatMul", [n, m.constant(square)], shape, **products)
    (w,) = m.layer("Add", [w, z], shape)
    m.result(m.layer("MatMul", [w, m.constant(square)], shape, **products)[0])
    ours = executor(m.save(tmp_path), engine)
    assert {("MatMul", "bf16"), ("MVN", "f32"), ("Multiply", "f32"), ("Add", "f32")} <= {*ops(ours)}
    assert ("MVN", "bf16") not in ops(ours)
    assert ("Multiply", "bf16") not in ops(ours)
    given = rows()
    z = rounded(rounded(given) @ rounded(square)) + given
    n = (z - z.mean(1, keepdims=True)) / np.sqrt(z.var(1, keepdims=True) + 1e-6) * 2 + 0.5
    w = rounded(rounded(n) @ rounded(square)) + z
    expected = rounded(w) @ rounded(square)
    np.testing.assert_allclose(run(ours, given)[0], expected, 2e-2, 5e-2 * np.abs(expected).max())


@pytest.mark.parametrize("engine", ["reference", "auto"])
def test_normalizations_that_are_written_out_stay_in_f32(engine, tmp_path):
    """With the sums that they read, and the scale behind them."""
    m = Model()
    x = m.parameter("x", "f32", (4, 8))
    shape, column = [("f32", (4, 8))], [("f32", (4, 1))]
    square = np.random.default_rng(5).standard_normal((8, 8)).astype(F32)
    products = {"transpose_a": "false", "transpose_b": "false"}
    (y,) = m.layer("MatMul", [x, m.constant(square)], shape, **products)
    (z,) = m.layer("Add", [y, x], shape)
    (r,) = m.layer("Power", [z, m.constant(F32(2))], shape)
    (r,) = m.layer("ReduceMean", [r, m.constant(np.int64([-1]))], column, keep_dims="true")
    (r,) = m.layer("Add", [r, m.constant(F32(1e-6))], column)
    (r,) = m.layer("Sqrt", [r], column)
    (r,) = m.layer("Divide", [m.constant(F32(1)), r], column)
    (n,) = m.layer("Multiply", [z, r], shape)
    (n,) = m.layer("Multiply", [n, m.constant(np.full(8, 2, F32))], shape)
    (w,) = m.layer("MatMul", [n, m.constant(square)], shape, **products)
    (w,) = m.layer("Add", [w, z], shape)
    m.result(m.layer("MatMul", [w, m.constant(square)], shape, **products)[0])
    ours = executor(m.save(tmp_path), engine)
    assert {own for own in ops(ours) if own[1] == "bf16"} <= {(name, "bf16") for name in ("MatMul", "Convert", "Add")}
    assert ops(ours).count(("Multiply", "f32")) + ops(ours).count(("RootMeanSquare", "f32")) == 2
    given = rows()
    z = rounded(rounded(given) @ rounded(square)) + given
    n = z / np.sqrt((z * z).mean(1, keepdims=True) + 1e-6) * 2
    w = rounded(rounded(n) @ rounded(square)) + z
    expected = rounded(w) @ rounded(square)
    np.testing.assert_allclose(run(ours, given)[0], expected, 2e-2, 5e-2 * np.abs(expected).max())


@pytest.mark.parametrize("read", [False, True])
def test_what_is_joined_for_products_alone_is_converted_before(read, tmp_path):
    """To round is the same there; not where somebody else reads the numbers."""
    m = Model()
    shape = [("f32", (4, 4))]
    x, y = (m.parameter(name, "f32", (4, 4)) for name in "xy")
    (sine,) = m.layer("Sin", [x], shape)
    (z,) = m.layer("Concat", [sine, y], [("f32", (4, 8))], axis="1")
    (w,) = m.layer("MatMul", [z, m.constant(FIRST)], [("f32", (4, 8))], transpose_a="false", transpose_b="false")
    m.result(w)
    if read:
        m.result(m.layer("Abs", [z], [("f32", (4, 8))])[0])
    ours = executor(m.save(tmp_path))
    assert (("Concat", "bf16") in ops(ours)) != read
    given = np.split(rows(), 2, axis=1)
    joined = np.concatenate([np.sin(given[0]), given[1]], axis=1)
    found = run(ours, *given)
    np.testing.assert_allclose(found[0], rounded(joined) @ rounded(FIRST), 2e-2, 1e-2)
    if read:
        np.testing.assert_allclose(found[1], np.abs(joined), 1e-6)


def test_precise_layers_stay_in_f32(tmp_path):
    """So does what is only behind a product, then, and not in front of one."""
    path = precise(two_products().save(tmp_path), "first")
    assert ops(executor(path))[2:5] == [("MatMul", "f32"), ("Tanh", "f32"), ("Convert", "bf16")]
    path = precise(two_products().save(tmp_path), "first", "second")
    assert {type for _, type in ops(executor(path))} == {"f32"}


@pytest.mark.parametrize("type", ["f16", "bf16"])
def test_models_of_16_bits(type, tmp_path):
    """Inputs and results have the declared types, and weights are converted once."""
    m = Model()
    x = m.parameter("x", type, (4, 8))
    weights = m.constant(FIRST.astype(np.float16 if type == "f16" else BF16))
    (y,) = m.layer("MatMul", [x, weights], [(type, (4, 8))], transpose_a="false", transpose_b="false")
    m.result(y)
    given = rows().astype(np.float16 if type == "f16" else BF16)
    ours = executor(m.save(tmp_path))
    assert ops(ours, "MatMul") == [("MatMul", "bf16")]
    assert len(ours._whole.preparation.general.program.constants) == 1
    (found,) = run(ours, given)
    assert found.dtype == given.dtype
    expected = rounded(given.astype(F32)) @ rounded(FIRST)
    np.testing.assert_allclose(found.astype(F32), expected, 2e-2, 2e-2)


def test_positions_are_not_rounded(tmp_path):
    """Products of integers, as angles of positions are: 1001 is 1000 in bf16."""
    m = Model()
    ids = m.parameter("ids", "i64", (1, 3))
    (floats,) = m.layer("Convert", [ids], [("f32", (1, 3))], destination_type="f32")
    step = m.constant(F32([[1.0]]))
    (angles,) = m.layer("MatMul", [step, floats], [("f32", (1, 3))], transpose_a="false", transpose_b="false")
    m.result(angles)
    x = m.parameter("x", "f32", (3, 3))
    (y,) = m.layer("MatMul", [angles, x], [("f32", (1, 3))], transpose_a="false", transpose_b="false")
    m.result(y)
    ours = executor(m.save(tmp_path))
    assert ops(ours, "MatMul") == [("MatMul", "f32"), ("MatMul", "bf16")]
    exact, product = run(ours, np.int64([[1001, 2, 3]]), np.eye(3, dtype=F32))
    assert exact.tolist() == [[1001, 2, 3]]
    assert product.tolist() == [[1000, 2, 3]]


@pytest.mark.parametrize("engine", ["reference", "auto"])
def test_masks_of_the_lowest_number_stay_finite(engine, tmp_path):
    """A row of which all is hidden has the same weight everywhere, and is not NaN."""
    m = Model()
    square = [("f32", (4, 4))]
    x = m.parameter("x", "f32", (4, 4))
    seen = m.parameter("seen", "boolean", (4, 4))
    lowest = m.constant(np.float32(np.finfo(F32).min))
    (mask,) = m.layer("Select", [seen, m.constant(F32(0)), lowest], square, auto_broadcast="numpy")
    (scores,) = m.layer("MatMul", [x, x], square, transpose_a="false", transpose_b="true")
    (scores,) = m.layer("Add", [scores, mask], square, auto_broadcast="numpy")
    (weights,) = m.layer("SoftMax", [scores], square, axis="1")
    (y,) = m.layer("MatMul", [weights, x], square, transpose_a="false", transpose_b="false")
    m.result(y)
    allowed = np.tril(np.ones((4, 4), bool))
    allowed[0] = False
    given = rows()[:, :4]
    (found,) = run(executor(m.save(tmp_path), engine), given, allowed)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[0], given.mean(0), 0, 2e-2)


def test_bodies_are_given_f32_and_compute_in_bf16(tmp_path):
    inner, b = model(), model()
    p = anything(inner, "f4", (8, 8))
    y = inner.one("MatMul-1", p, inner.constant(SECOND), **PLAIN)
    y = inner.one("MatMul-1", y, inner.constant(FIRST), **PLAIN)
    y = inner.one("Tanh-1", y)
    (last,) = loop(b, inner, i64(b, 3), [(p, anything(b, "f4", (8, 8)))], [y], [(y, p)])
    b.result(last)
    ours = executor(saved(b, tmp_path))
    (instruction,) = [i for i in ours._whole.preparation.general.program.instructions if i.bodies]
    _, body = instruction.bodies["body"]
    made = [(i.op.type, body.tensors[i.outputs[0]].type) for i in body.instructions]
    assert made == [
        ("Convert", "bf16"),
        ("MatMul", "bf16"),
        ("MatMul", "bf16"),
        ("Convert", "f32"),
        ("Tanh", "f32"),
    ]
    x = expected = np.random.default_rng(0).standard_normal((8, 8)).astype(F32)
    for _ in range(3):
        expected = np.tanh(rounded(rounded(rounded(expected) @ rounded(SECOND)) @ rounded(FIRST)))
    (found,) = run(ours, x)
    assert np.median(np.abs(found - expected)) < 2e-2


def test_emulation_is_said(tmp_path):
    path = two_products().save(tmp_path)
    with pytest.warns(UserWarning, match=EMULATED):
        emulated = irrun.GraphExecutor(path, engine="numpy", precision="bf16")
    np.testing.assert_allclose(run(emulated, rows())[0], run(executor(path), rows())[0], 2**-6, 2e-3)


def test_what_nothing_is_heavy_in_is_not_emulated(tmp_path):
    m = Model()
    (y,) = m.layer("Exp", [m.parameter("x", "f32", (4,))], [("f32", (4,))])
    m.result(y)
    ours = irrun.GraphExecutor(m.save(tmp_path), engine="numpy", precision="bf16")  # a warning would be an error
    assert ops(ours) == [("Exp", "f32")]


def test_the_option_warns(tmp_path):
    from command_line import irrun as command

    path = two_products().save(tmp_path)
    done = command("execute", path, "--random", 1, "--engine", "numpy", "--precision", "bf16")
    assert done.stderr.startswith(f"warning: {EMULATED}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(40))
def test_random_models(seed, tmp_path):
    """By engines as by kernels, up to what roundings to 8 bits come to; and both near what f64 gives."""
    given = case(seed, "f4")
    expected = outcomes(given, tmp_path, engine="reference", precision="f64")
    for engine in ("auto", "check", "reference"):
        found = outcomes(given, tmp_path, engine=engine, precision="bf16")
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            for output, (a, b) in enumerate(zip(one, other, strict=True)):
                assert (a.dtype, a.shape) == (b.dtype, b.shape)
                if a.dtype == F32 and a.size and np.isfinite(b).all():
                    near = np.abs(a - b) <= 0.1 * np.abs(b).max()
                    assert near.mean() > 0.9 or explained(given, number, output, a, b, tmp_path)


@pytest.mark.parametrize("engine", ["onednn", "check"])
def test_a_conversion_is_computed_with_the_product_in_front_of_it(tmp_path, engine):
    onednn = load(1)
    if onednn is None or not onednn.computes("MatMul-1", "bf16"):
        pytest.skip("oneDNN is not installed, or the processor does not multiply bf16")
    made = irrun.GraphExecutor(two_products().save(tmp_path), engine=engine, precision="bf16")
    expected = run(executor(tmp_path / "model.xml"), rows())[0]
    np.testing.assert_allclose(run(made, rows())[0], expected, 2**-6, 2e-3)
    (kept,) = made._whole.preparation._kept.values()
    *_, last = kept.program.instructions
    if engine == "onednn":  # `check` takes the model at its word, and rounds what is in between
        assert [part.op.type for part in last.parts] == ["MatMul", "Convert", "Sigmoid"]
        assert last.by == "onednn"


@pytest.mark.parametrize("rows", [1, 300])
def test_attention_to_what_runs_have_brought_is_by_an_engine(rows, tmp_path):
    """Between products in bf16, to keys of as many rows as there are: what is made bf16 behind it is a post."""
    m = Model()
    x = m.parameter("x", "f32", (1, 2, rows, 8))
    past = {"variable_id": "past", "variable_type": "f32", "variable_shape": "1,2,?,8"}
    shape, whole = [("f32", (1, 2, rows, 8))], [("f32", (1, 2, -1, 8))]
    flags = {"transpose_a": "false", "transpose_b": "false"}
    (query,) = m.layer("MatMul", [x, m.constant(FIRST)], shape, **flags)
    (read,) = m.layer("ReadValue", [m.constant(np.zeros((1, 2, 0, 8), F32))], whole, "opset6", **past)
    (keys,) = m.layer("Concat", [read, x], whole, axis="2")
    m.layer("Assign", [keys], [], "opset6", variable_id="past")
    (y,) = m.layer("ScaledDotProductAttention", [query, keys, keys], shape, "opset13", causal="false", name="attended")
    (y,) = m.layer("MatMul", [y, m.constant(SECOND)], shape, **flags)
    m.result(y)
    path = m.save(tmp_path)
    ours, expected = executor(path, "auto"), irrun.GraphExecutor(path)
    rng, by = np.random.default_rng(0), []
    for _ in range(4):
        given, profile = rng.standard_normal((1, 2, rows, 8), F32), Profile()
        (found,) = ours.run([given], profile=profile).values()
        (exact,) = expected.run([given]).values()
        np.testing.assert_allclose(found, exact, 2**-5, 2**-5 * np.abs(exact).max())
        by += [entry.by for entry in profile.entries.values() if entry.name == "attended"]
    assert load(1) is None or rows == 1 or "kernel" not in by


@pytest.mark.parametrize("written", [False, True], ids=["an op", "written out"])
@pytest.mark.parametrize("way", ["given", "constant", "cut"])
def test_masks_with_numbers_that_bf16_has_none_for_hide_no_more_than_in_f32(way, written):
    """Rows of which all scores are hidden see all keys alike; what is infinite stays so."""
    mask = np.where(np.tri(20, dtype=bool), F32(0), np.finfo(F32).min)
    mask[:3] = np.finfo(F32).min
    mask[7, 3] = -np.inf
    with irrun.build("m") as g:
        query, key, value = (g.Parameter("f32[1, 2, 20, 8]", name=name) for name in "qkv")
        own = g.Parameter("f32[20, 20]", name="m") if way == "given" else mask
        if way == "cut":
            whole = g.Parameter("f32[30, 20]", name="m")
            own = g.Slice(whole, np.int64([0]), np.int64([20]), np.int64([1]), np.int64([0]))
        if written:
            scores = g.Add(g.MatMul(query, key, transpose_b=True), own)
            g.Result(g.MatMul(g.SoftMax(scores, axis=-1), value), name="y")
        else:
            g.Result(g.ScaledDotProductAttention(query, key, value, own, causal=False), name="y")
    rng = np.random.default_rng(0)
    given = {name: rng.standard_normal((1, 2, 20, 8), F32) for name in "qkv"}
    if way != "constant":
        given["m"] = mask if way == "given" else np.concatenate([mask, mask[:10]])
    exact = irrun.GraphExecutor(g.model, precision="f64", engine="reference").run(given)["y"]
    for engine in ("auto", "reference", "check"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = irrun.GraphExecutor(g.model, precision="bf16", engine=engine).run(given)["y"]
        np.testing.assert_allclose(found, exact, 2**-4, 2**-4)


@pytest.mark.parametrize("marked", [(), ("product",)])
@pytest.mark.parametrize("turned", [True, False])
def test_products_with_weights_of_few_bits(turned, marked, tmp_path):
    """They are rounded where engines compute bf16 and the layer is not precise; their rows and results stay f32."""
    chain = CHAINS["u4 in groups"]
    m = Model()
    weights = chain.added(m)
    inner = weights[3][-1 if turned else -2]
    columns, flags = weights[3][-2 if turned else -1], {"transpose_a": "false", "transpose_b": str(turned).lower()}
    data = m.parameter("x", "f32", ("?", inner))
    m.result(*m.layer("MatMul", [data, weights], [("f32", (-1, columns))], **flags, name="product"))
    path = precise(m.save(tmp_path), *marked)
    values = (chain.values().T if turned else chain.values()).astype(F32)
    ours = executor(path, "auto")
    rounds = bool(ours._setting.bf16) and not marked
    assert [own.rounded for own in ours._whole.preparation.general.program.compressed.values()] == [rounds]
    checked, plain = executor(path, "check"), irrun.GraphExecutor(path, engine="auto")
    for count in (1, 9, 40):
        data = np.random.default_rng(count).standard_normal((count, inner)).astype(F32)
        (found,) = ours.run(data).values()
        (exact,) = plain.run(data).values()
        checked.run(data)
        room = np.abs(data) @ np.abs(values)
        assert found.dtype == F32
        assert (np.abs(found - data @ values) <= (1e-2 if rounds else 1e-6) * room).all()
        if not rounds:
            np.testing.assert_array_equal(found, exact)


def test_tables_that_are_looked_up_and_multiplied(tmp_path):
    """Rows that are looked up are what they are, whatever products make of them."""
    chain = CHAINS["u4 in groups"]
    m = Model()
    table = chain.added(m)
    x = lookup(m, table, m.parameter("i", "i64", ("?",)))
    m.result(x)
    m.result(product(m, x, table, True))
    ours = executor(m.save(tmp_path), "auto")
    places = np.arange(20) % len(chain.values())
    rows, found = ours.run(places).values()
    np.testing.assert_allclose(rows, chain.values()[places], 3e-7)
    expected = chain.values()[places] @ chain.values().T
    assert (np.abs(found - expected) <= 1e-2 * (np.abs(chain.values()[places]) @ np.abs(chain.values().T))).all()


def test_what_rounding_makes_of_products_that_cancel_is_no_mistake_of_an_engine(tmp_path):
    """Where what follows leaves but little numbers of large sums."""
    m = Model()
    weights = Chain("u8", (64, 1024), (64, 1024), (64, 1), middle="f32").added(m)
    y = product(m, m.parameter("x", "f32", (32, 1024)), weights, True)
    m.result(*m.layer("Clamp", [y], [("f32", (32, 64))], min="-1", max="2"))
    checked = executor(m.save(tmp_path), "check")
    assert checked.run(np.random.default_rng(0).standard_normal((32, 1024)).astype(F32))[0].shape == (32, 64)
