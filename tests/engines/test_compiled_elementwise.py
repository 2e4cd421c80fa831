"""Chains of element-wise ops by a kernel, against the plain ops one after the other."""

import numpy as np
import pytest
from engines.works import computed, plain, posted, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the kernel")

import ml_dtypes
from run.models import ADD, anything, model, saved

import irrun
from irrun.engines import load_engines
from irrun.engines.compiled import bf16
from irrun.engines.compiled import elementwise as module
from irrun.engines.compiled.engine import ELEMENTWISE, LEAST, CompiledEngine
from irrun.engines.compiled.functions import BINARY as BINARY_FUNCTIONS
from irrun.engines.compiled.posts import DIVISORS
from irrun.engines.compiled.quantization import FAKE_QUANTIZE
from irrun.engines.compiled.team import Team
from irrun.engines.work import Post

TEAM = Team(2)
BF16 = ml_dtypes.bfloat16
ATTRS = {
    "Clamp-1": {"min": -0.5, "max": 0.75},
    "Elu-1": {"alpha": 0.7},
    "Gelu-7": {"approximation_mode": "tanh"},
    "Round-5": {"mode": "half_away_from_zero"},
}
BINARY = tuple(BINARY_FUNCTIONS)
_FORM = module.ElementKind.form
UNARY = sorted(ELEMENTWISE.difference(BINARY))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(module, "PART", 64)
    monkeypatch.setattr(module, "CHUNK", 128)
    monkeypatch.setattr(module, "SHARED", 1 << 9)


def numbers(rng, *shape):
    return (3 * rng.normal(size=shape)).astype(np.float32)


def last(array):
    """The same array with axis 1 last in memory."""
    order = [0, *range(2, array.ndim), 1]
    return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))


def compiled(name, arrays, posts=(), constant=()):
    attrs = ATTRS.get(name, {})
    own = arrays[: 2 if name in BINARY else 1]
    with np.errstate(all="ignore"):
        expected = posted(posts, plain(name, attrs, own, {"T": "f32"}), arrays)
    work = work_of(name, attrs, arrays, [(expected.shape, "f32")], posts, constant)
    return work, module.COMPILERS[name](work, TEAM), expected


def check(name, arrays, posts=(), constant=()):
    work, found, expected = compiled(name, arrays, posts, constant)
    assert found is not None
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=1)
    np.testing.assert_allclose(computed(found, work, arrays)[0], expected, rtol=2e-5, atol=1e-6 * largest)


@pytest.mark.parametrize("name", ["Ceiling-1", "Elu-1", "Erf-1", "Floor-1", "Round-5", "Tanh-1"])
def test_functions_are_exact_beside_each_result(name):
    powers = 10.0 ** np.random.default_rng(70).uniform(-30, 10, 5000)
    data = np.concatenate([np.linspace(-120, 120, 9001), powers, -powers, [0.0, -0.0, np.inf, -np.inf, np.nan]])
    data = data.astype(np.float32)
    work, found, _ = compiled(name, [data])
    exact = plain(name, ATTRS.get(name, {}), [data.astype(np.float64)], {"T": "f64"})
    bound = 1e-6 * np.abs(exact) + 1e-37
    result = computed(found, work, [data])[0]
    with np.errstate(all="ignore"):
        assert ((np.abs(result - exact) <= bound) | (result == exact) | (np.isnan(result) & np.isnan(exact))).all()
    known = ~np.isnan(exact) & ((exact != 0) | (name != "Elu-1"))
    np.testing.assert_array_equal(np.signbit(result)[known], np.signbit(exact)[known])


@pytest.mark.parametrize("mode", ["half_to_even", "half_away_from_zero"])
def test_halves_are_rounded_as_is_said(mode):
    ends = np.array([0.49999997, 0.5, 1.5, 2.5, 8388607.5, 8388609, 4194303.5, 2**30 + 64, np.inf, 0], np.float32)
    random = np.random.default_rng(4).normal(size=9000) * 9
    data = np.concatenate([ends, -ends, random, np.rint(random) / 2, [np.nan]]).astype(np.float32)
    work = work_of("Round-5", {"mode": mode}, [data], [(data.shape, "f32")])
    (found,) = computed(module.COMPILERS["Round-5"](work, TEAM), work, [data])
    expected = plain("Round-5", {"mode": mode}, [data])
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found[:-1]), np.signbit(expected[:-1]))


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("size", [1, 15, 16, 17, 63, 64, 65, 1000, 5000])
def test_functions_of_all_sizes(name, size):
    check(name, [numbers(np.random.default_rng(size), size)])


@pytest.mark.parametrize("name", UNARY)
def test_what_is_no_plain_number(name):
    data = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, -1e-30, 1e30, -1e30, 3e38, -3e38, 88, -88, 104, -104, 1e-45]
    check(name, [np.float32(data)])
    check("Add-1", [np.float32(data), np.float32([0])], [Post(name, ATTRS.get(name, {}))])


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("reflected", [False, True])
@pytest.mark.parametrize(
    "shape", [(2, 5, 7, 9), (1, 5, 1, 1), (5, 1, 1), (2, 1, 1, 1), (2, 5, 1, 1), (1, 1, 7, 9), (9,), (1,), ()], ids=str
)
@pytest.mark.parametrize("lying", ["C order", "channels last"])
def test_operands_that_broadcast(name, reflected, shape, lying):
    rng = np.random.default_rng(0)
    data, other = numbers(rng, 2, 5, 7, 9), np.asarray(numbers(rng, *shape))
    data = last(data) if lying == "channels last" else data
    arrays = [other, data] if reflected and shape != data.shape else [data, other]
    attrs = {"auto_broadcast": "numpy"}
    if compiled(name, arrays)[1] is None:  # walks along more axes than a matrix has, or backwards
        assert shape in ((1, 1, 7, 9), (9,), (2, 5, 7, 9)) or (name in DIVISORS and reflected)
        return
    check(name, arrays)
    check(name, [*arrays, other], [Post("ReLU-1", {}), Post("Multiply-1", attrs, 2), Post("Swish-4", {})])


@pytest.mark.parametrize("seed", range(150))
def test_random_chains(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(int(size) for size in rng.choice([1, 1, 2, 3, 16, 17, 40], rng.integers(1, 5)))

    def turned(array):
        order = rng.permutation(array.ndim)
        return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))

    data = numbers(rng, *shape)
    if len(shape) > 1 and rng.random() < 0.7:
        data = turned(data)
    if rng.random() < 0.3:
        data[rng.random(shape) < 0.1] = rng.choice(np.float32([np.nan, np.inf, -np.inf, 0.0]))
    name = str(rng.choice(sorted(ELEMENTWISE)))
    arrays, posts = [data], []

    def other():
        own = tuple(size if rng.random() < 0.5 else 1 for size in shape)
        arrays.append(turned(numbers(rng, *own[int(rng.integers(len(shape))) :])))
        return len(arrays) - 1

    if name in BINARY:
        other()
    for _ in range(rng.integers(4)):
        post = str(rng.choice(sorted(ELEMENTWISE)))
        reflected = bool(rng.random() < 0.5) and post not in DIVISORS
        read = (other(), reflected) if post in BINARY else ()
        posts.append(Post(post, ATTRS.get(post, {}), *read))
    _, found, _ = compiled(name, arrays, posts)
    if found is None:
        assert max(shape) > 1 or any(post.name in DIVISORS for post in posts)
    else:
        check(name, arrays, posts)


@pytest.mark.parametrize("seed", range(40))
def test_short_rows_with_constants(seed):
    """Pixels of few colours, some of what is done to them by numbers for each, or of all, or of other tensors."""
    rng = np.random.default_rng((9, seed))
    columns = int(rng.integers(2, 16))
    shape = (*rng.integers(1, 12, int(rng.integers(1, 4))), columns)
    arrays, posts, constant = [numbers(rng, *shape)], [], []
    kinds = ["Subtract-1", "Multiply-1", "Maximum-1", "Add-1"]
    for number in range(1, int(rng.integers(2, 5))):
        own = [(columns,), (1, columns), (1,), shape, (shape[-2], 1)][int(rng.choice(5, p=[0.4, 0.2, 0.15, 0.15, 0.1]))]
        arrays.append(numbers(rng, *own))
        if rng.random() < 0.85 and own != shape:
            constant.append(number)
        if number > 1:
            posts.append(Post(str(rng.choice(kinds)), {"auto_broadcast": "numpy"}, number))
    check(str(rng.choice(kinds)), arrays, posts, constant)


def test_short_rows_are_gone_through_as_long_ones(monkeypatch):
    """But not where a number for each place in them is told by a run."""
    widths = []
    monkeypatch.setattr(module.ElementKind, "form", property(lambda kind: _Noting(kind, widths)))
    data, factors = np.zeros((64, 3), np.float32), np.ones(3, np.float32)
    for constant in ([1], []):
        compiled("Multiply-1", [data, factors], (), constant)[1].bind([data, factors], [data.copy()], None)
    assert widths == [192, 3]


class _Noting:
    """A form that notes how many columns a kernel is told of."""

    def __init__(self, kind, widths):
        self._own, self._widths = _FORM.fget(kind), widths

    def address(self, *args):
        return self._own.address(*args)

    def of(self, **told):
        self._widths.append(told["columns"])
        return self._own.of(**told)


def test_the_result_lies_as_the_data_do():
    data = last(numbers(np.random.default_rng(0), 2, 5, 7, 9))
    _, found, _ = compiled("ReLU-1", [data])
    assert found.gives[0].strides == data.strides
    assert not compiled("ReLU-1", [np.ascontiguousarray(data)])[1].gives


@pytest.mark.parametrize("lying", ["C order", "channels last"])
@pytest.mark.parametrize(
    "cut", [np.s_[:, :20], np.s_[:, 20:], np.s_[:, :, 1:], np.s_[:, :, :, 3:8], np.s_[:, 8:, 1:]], ids=str
)
def test_a_part_of_data_has_gaps_that_the_result_has_not(lying, cut):
    data = numbers(np.random.default_rng(0), 2, 40, 7, 9)
    part = (last(data) if lying == "channels last" else data)[cut]
    check("Sigmoid-1", [part, part], [Post("Multiply-1", {"auto_broadcast": "numpy"}, 1)])
    _, found, _ = compiled("Sigmoid-1", [part])
    packed = last(part) if lying == "channels last" else np.ascontiguousarray(part)
    assert (found.gives[0].strides if found.gives else np.ascontiguousarray(part).strides) == packed.strides


def test_what_is_left_to_others():
    data = np.zeros((4, 32), np.float32)
    assert compiled("ReLU-1", [data[:, ::2]])[1] is None
    assert compiled("ReLU-1", [data[::-1]])[1] is None
    assert compiled("ReLU-1", [np.broadcast_to(data[:1], data.shape)])[1] is None
    assert compiled("Add-1", [data, data], [Post("Tan-1", {})])[1] is None
    assert compiled("Subtract-1", [data[:1], data])[1] is not None  # where the data are taken away
    assert compiled("Divide-1", [data[:1], data])[1] is None
    assert compiled("Add-1", [data[:1], data[:, :1]])[1] is None
    scalar = np.zeros((), np.float32)
    assert compiled("Add-1", [scalar, scalar])[1] is None


def test_the_engine():
    assert set(module.COMPILERS) == ELEMENTWISE | {FAKE_QUANTIZE}
    for size, taken in ((LEAST["ReLU-1"] - 1, False), (LEAST["ReLU-1"], True)):
        work, _, _ = compiled("ReLU-1", [np.zeros(size, np.float32)])
        assert (CompiledEngine(2).compile(work) is not None) == taken


def limits(rng, rank):
    """Four limits of a quantization, as arrays of one element, with what the op is told besides."""
    low, high = np.sort(rng.normal(size=2) * 10 ** rng.uniform(-1, 1))
    first, last = (low, high) if rng.random() < 0.5 else rng.normal(size=2)
    arrays = [np.full((1,) * int(rng.integers(rank + 1)), limit, np.float32) for limit in (low, high, first, last)]
    return arrays, {"levels": int(rng.integers(2, 300)), "auto_broadcast": "numpy"}


def quantizing(rng, data, kinds):
    """A chain on `data` of quantizations, sums with another tensor and ReLU, the work of which is made and computed."""
    arrays, posts, constant = [data], [], []
    head = {}
    for number, kind in enumerate(kinds):
        begin, attrs = len(arrays), ATTRS.get(kind, {})
        if kind == FAKE_QUANTIZE:
            own, attrs = limits(rng, data.ndim)
            arrays += own
            constant += range(begin, begin + 4)
            post = Post(kind, attrs, parameters=tuple(range(begin, begin + 4)))
        elif kind == "Add-1":
            arrays.append(np.asarray(numbers(rng, *data.shape[1:])))
            attrs = {"auto_broadcast": "numpy"}
            post = Post(kind, attrs, begin)
        else:
            post = Post(kind, attrs)
        if number:
            posts.append(post)
        else:
            head = attrs
    own = arrays[: {FAKE_QUANTIZE: 5, "Add-1": 2}.get(kinds[0], 1)]
    with np.errstate(all="ignore"):
        expected = posted(posts, plain(kinds[0], head, own, {"T": "f32"}), arrays)
    work = work_of(kinds[0], head, arrays, [(expected.shape, "f32")], posts, constant)
    return work, module.COMPILERS[kinds[0]](work, TEAM), arrays, expected


@pytest.mark.parametrize("seed", range(60))
def test_chains_with_quantizations_are_those_of_kernels_bit_by_bit(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(int(size) for size in rng.choice([1, 2, 3, 16, 17, 40, 130], rng.integers(1, 4)))
    data = numbers(rng, *shape)
    data[rng.random(shape) < 0.05] = rng.choice(np.float32([np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38]))
    kinds = [str(kind) for kind in rng.choice([FAKE_QUANTIZE, FAKE_QUANTIZE, "Add-1", "ReLU-1"], rng.integers(1, 6))]
    if len(kinds) > 1:
        kinds[int(rng.integers(len(kinds)))] = FAKE_QUANTIZE
    work, found, arrays, expected = quantizing(rng, data, kinds)
    assert found is not None
    np.testing.assert_array_equal(computed(found, work, arrays)[0], expected)


def test_quantizations_in_chains_that_are_left_to_others():
    rng = np.random.default_rng(0)
    work, found, _, _ = quantizing(rng, numbers(rng, 4, 32), ["ReLU-1", FAKE_QUANTIZE])
    assert found is not None
    for change in ("value", "shape", "pdpd"):
        work, _, _, _ = quantizing(rng, numbers(rng, 4, 32), ["ReLU-1", FAKE_QUANTIZE])
        if change == "value":
            work.inputs[2].value = None
        elif change == "shape":
            work.inputs[2].shape, work.inputs[2].value = (32,), np.ones(32, np.float32)
        else:
            work.posts[0].attrs["auto_broadcast"] = "pdpd"
        assert module.COMPILERS["ReLU-1"](work, TEAM) is None


@pytest.mark.parametrize("engine", ["auto", "check"])
def test_what_is_looked_up_is_quantized_by_a_kernel(engine, tmp_path):
    """Embeddings of quantized models: what numpy looks up it leaves to others to quantize, and to add up."""
    rng = np.random.default_rng(0)
    b = model()
    table = b.constant(numbers(rng, 50, 256))
    ids = b.parameter([np.zeros((2, 128), np.int64)], [0])
    four = [b.constant(np.float32(limit)) for limit in (-1.0, 1.55, -1.0, 1.55)]
    made = b.one("Gather-8", table, ids, b.constant(np.int64(0)), batch_dims=0)
    for added in (numbers(rng, 128, 256), numbers(rng, 256)):
        made = b.one("FakeQuantize-1", made, *four, levels=256, **ADD)
        made = b.one("Add-1", made, b.constant(added.reshape(1, -1, 256)), **ADD)
    b.result(made)
    path = saved(b, tmp_path)
    given = rng.integers(0, 50, (2, 128))
    executor, reference = (irrun.GraphExecutor(path, engine=own) for own in (engine, "reference"))
    (result,), (expected,) = (list(own.run([given]).values()) for own in (executor, reference))
    np.testing.assert_array_equal(result, expected)
    (prepared,) = executor._whole.preparation._kept.values()
    assert [(len(own.parts), own.by) for own in prepared.program.instructions if own.compiled] == [
        (1, "numpy"),
        (4, "compiled"),
    ]


@pytest.mark.parametrize("engine", ["auto", "check"])
def test_a_chain_goes_to_one_engine(engine, tmp_path):
    """Scale, shift and ReLU before a product, as before convolutions of some nets: oneDNN would make 0 of NaN."""
    rng = np.random.default_rng(0)
    b = model()
    scale, shift = (b.constant(numbers(rng, 1, 64, 1, 1)) for _ in range(2))
    made = b.one("Multiply-1", anything(b, "f4", (1, 64, 40, 40)), scale, **ADD)
    b.result(b.one("ReLU-1", b.one("Add-1", made, shift, **ADD)))
    data = numbers(rng, 1, 64, 40, 40)
    data[0, 0, 0, 0] = np.nan
    path = saved(b, tmp_path)
    executor, reference = (irrun.GraphExecutor(path, engine=own) for own in (engine, "reference"))
    (result,), (expected,) = (list(own.run([data]).values()) for own in (executor, reference))
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    assert np.isnan(result[0, 0, 0, 0])
    (prepared,) = executor._whole.preparation._kept.values()
    assert [len(own.parts) for own in prepared.program.instructions if own.compiled] == [3]


@pytest.mark.skipif(not bf16.is_made(), reason="the processor makes no bf16")
@pytest.mark.parametrize("name", sorted(ELEMENTWISE))
def test_bf16_is_computed_in_f32_and_rounded_once(name):
    """Whole rows and parts of vectors, turned and with gaps; operands of the same shape, of a row and of one number."""
    rng = np.random.default_rng(71)

    def laid(shape, way):
        """Numbers between 1 and 2 in C order, with gaps, or turned."""
        wide = (1 + rng.random((*shape[:-1], shape[-1] + 5))).astype(BF16)
        return {"dense": wide[..., 5:].copy(), "gaps": wide[..., 3:-2], "turned": wide[..., 5:].T.copy().T}[way]

    for shape in ((3, 70, 40), (300, 7), (1000,)):
        for way in ("dense", "gaps", "turned"):
            for other in (laid(shape, way), laid(shape[-1:], "dense"), np.array(1.5, BF16)):
                own = [laid(shape, way), other] if name in BINARY else [laid(shape, way)]
                arrays, attrs = [*own, laid(shape, way)], ATTRS.get(name, {})
                posts = [Post("Multiply-1", {}, len(own)), Post("Sigmoid-1", {})]
                exact = [array.astype(np.float32) for array in arrays]
                expected = posted(posts, plain(name, attrs, exact[: len(own)], {"T": "f32"}), exact)
                work = work_of(name, attrs, arrays, [(shape, "bf16")], posts)
                found = module.COMPILERS[name](work, TEAM)
                assert found is not None
                result = computed(found, work, arrays)[0]
                assert result.dtype == BF16
                np.testing.assert_allclose(result.astype(np.float32), expected, rtol=2**-8, atol=1e-6)


def test_onednn_leaves_few_elements_to_what_is_loaded_already():
    engines = {engine.name: engine for engine in load_engines("auto", 2, fixed=True)}
    if "onednn" not in engines:
        pytest.skip("oneDNN is not installed")
    rng = np.random.default_rng(5)
    few, many = numbers(rng, 8, 256), numbers(rng, 256, 256)

    def taken(array, engine="onednn"):
        posts = [Post("Tanh-1", {})]
        work = work_of("Add-1", {"auto_broadcast": "numpy"}, [array] * 2, [(array.shape, "f32")], posts)
        return engines[engine].compile(work) is not None

    assert taken(few), "nothing is loaded that would compute it"
    assert taken(many, "compiled")
    assert not taken(few)
    assert taken(few, "compiled")
    assert taken(many), "threads share it"
    engines |= {engine.name: engine for engine in load_engines("auto", 2)}
    assert taken(many, "compiled")
    assert taken(few), "others would prepare it longer for each of its sizes"
