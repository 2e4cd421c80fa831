"""Element-wise ops and their posts on numpy, against the plain kernels: shapes, strides, NaN and infinities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engines.works import THREADS, aligned_empty, comparable, computed, plain, posted, work_of
from ir_builder import Model

import irrun
from irrun.engines.threads import blocks, even_blocks
from irrun.engines.vectorized import functions
from irrun.engines.vectorized.elementwise import COMPILERS
from irrun.engines.vectorized.engine import VectorizedEngine
from irrun.engines.vectorized.posts import posts_of
from irrun.engines.work import Post, chain
from irrun.spec.dtypes import element_type, numpy_dtype

rng = np.random.default_rng(1)
NUMPY = {"auto_broadcast": "numpy", "auto_broadcast_axis": -1}
NUMPY_TEXT = {"auto_broadcast": "numpy"}
SPECIAL = np.array([0, -0.0, 1, -1, 0.5, -2.5, 1e-30, -1e-30, 6, -3, 40, -40, 200, -200, 1e30, -1e30], np.float32)
LIMITS = np.array([np.nan, np.inf, -np.inf], np.float32)


def numbers(*shape: int) -> Any:
    return (rng.standard_normal(shape) * 3).astype(np.float32)


def check(
    name: str,
    attrs: dict[str, Any],
    *arrays: Any,
    posts: Sequence[Post] = (),
    constant: Sequence[int] = (),
    rtol: float = 0,
    atol: float = 0,
) -> None:
    own = min((post.operand for post in posts if post.operand is not None), default=len(arrays))
    types = {"T": element_type(arrays[0].dtype)}
    expected = posted(posts, np.asarray(plain(name, attrs, arrays[:own], types)), arrays)
    work = work_of(name, attrs, arrays, [(expected.shape, element_type(expected.dtype))], posts, constant)
    compiled = COMPILERS[name](work, THREADS)
    assert compiled is not None
    got = computed(compiled, work, arrays)[0]
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol, atol)


def refused(name: str, attrs: dict[str, Any], *arrays: Any, output: Any, posts: Sequence[Post] = ()) -> bool:
    work = work_of(name, attrs, arrays, [(output.shape, element_type(output.dtype))], posts)
    return COMPILERS[name](work, THREADS) is None


EXACT = ["Abs-1", "Ceiling-1", "Floor-1", "Negative-1", "ReLU-1", "Sign-1", "Sin-1", "Sqrt-1", "Tanh-1", "Exp-1"]
CLOSE: dict[str, dict[str, Any]] = {
    "Clamp-1": {"min": -1.5, "max": 2.0},
    "Elu-1": {"alpha": 0.7},
    "Erf-1": {},
    "Gelu-2": {},
    "Gelu-7": {"approximation_mode": "tanh"},
    "HSigmoid-5": {},
    "HSwish-4": {},
    "Mish-4": {},
    "Sigmoid-1": {},
    "SoftPlus-4": {},
    "SoftSign-9": {},
    "Swish-4": {},
}


@pytest.mark.parametrize("name", [*EXACT, *CLOSE])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5, 7), (401, 1001)])
def test_functions_of_one_tensor(name: str, shape: tuple[int, ...]) -> None:
    check(name, CLOSE.get(name, {}), numbers(*shape), rtol=3e-6, atol=1e-6)


@pytest.mark.parametrize("name", [*EXACT, *CLOSE])
def test_special_values(name: str) -> None:
    data = np.concatenate([SPECIAL, LIMITS])
    check(name, CLOSE.get(name, {}), data, rtol=3e-6, atol=1e-6)
    check(name, CLOSE.get(name, {}), np.concatenate([data] * 20000), rtol=3e-6, atol=1e-6)


def test_halves_are_rounded_away_from_0() -> None:
    ends = np.array([0.49999997, 0.5, 1.5, 2.5, 8388607.5, 8388609, 4194303.5, 2**30 + 64], np.float32)
    data = np.concatenate([SPECIAL, LIMITS, ends, -ends, numbers(400_000) * 9, np.rint(numbers(999)) / 2])
    for numbers_of in (data, data[:7], data[3]):
        check("Round-5", {"mode": "half_away_from_zero"}, np.asarray(numbers_of, np.float32))
    rounded = np.array([-0.0, -0.3, 0.3], np.float32)
    work = work_of("Round-5", {"mode": "half_away_from_zero"}, [rounded], [((3,), "f32")])
    compiled = COMPILERS["Round-5"](work, THREADS)
    assert compiled is not None
    assert np.signbit(computed(compiled, work, [rounded])[0]).tolist() == [True, True, False]


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize(
    ("low", "high"), [(-2.5, 3.5), (0.4, 0.6), (-1e30, 1e30), (5, np.inf), (-np.inf, -3), (1, 300)]
)
def test_limits_of_integers(dtype: str, low: float, high: float) -> None:
    held = np.iinfo(dtype)
    data = rng.integers(held.min, held.max, 300_000, dtype, endpoint=True)
    check("Clamp-1", {"min": low, "max": high}, data)
    check("Clamp-1", {"min": low, "max": high}, np.arange(7).astype(dtype))


def test_gelu_is_as_exact_as_f32_is() -> None:
    from scipy.special import ndtr

    data = np.linspace(-20, 20, 200_001).astype(np.float32)
    work = work_of("Gelu-2", {}, [data], [(data.shape, "f32")])
    compiled = COMPILERS["Gelu-2"](work, THREADS)
    assert compiled is not None
    exact = data.astype(np.float64) * ndtr(data.astype(np.float64))
    np.testing.assert_allclose(computed(compiled, work, [data])[0], exact, rtol=4e-7, atol=1.5e-7)


def test_error_function_keeps_small_values() -> None:
    data = np.concatenate([10.0 ** np.arange(-30, 2), np.linspace(-6, 6, 10001), [50, 1e10, 1e30]]).astype(np.float32)
    check("Erf-1", {}, data, rtol=4e-7)


BINARY = ["Add-1", "Subtract-1", "Multiply-1", "Maximum-1", "Minimum-1", "SquaredDifference-1", "Mod-1", "FloorMod-1"]
COMPARISONS = ["Equal-1", "NotEqual-1", "Greater-1", "GreaterEqual-1", "Less-1", "LessEqual-1"]
SHAPES = [
    ((4, 5), (4, 5)),
    ((4, 5), (5,)),
    ((4, 5), ()),
    ((), (4, 5)),
    ((4, 1, 6), (5, 1)),
    ((2, 3, 4, 5), (1, 3, 1, 1)),
    ((1, 1), (1,)),
    ((300, 700), (700,)),
    ((300, 1), (1, 700)),
    ((2, 64, 40, 50), (64, 1, 1)),
]


@pytest.mark.parametrize("name", [*BINARY, *COMPARISONS])
@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_functions_of_two_tensors(name: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    check(name, NUMPY, numbers(*a), numbers(*b))


@pytest.mark.parametrize("name", [*BINARY, *COMPARISONS])
@pytest.mark.parametrize("dtype", ["i4", "i8", "u1", "f2", "f8"])
def test_other_element_types(name: str, dtype: str) -> None:
    if (name, dtype) == ("SquaredDifference-1", "f2"):
        pytest.skip("rounded once by the kernel")
    a, b = (rng.integers(1, 100, (3, 4)).astype(dtype) for _ in range(2))
    check(name, NUMPY, a, b)
    check(name, NUMPY, a, b[0])


@pytest.mark.parametrize("name", ["LogicalAnd-1", "LogicalOr-1", "LogicalXor-1", "Equal-1"])
def test_booleans(name: str) -> None:
    check(name, NUMPY, numbers(3, 4) > 0, numbers(4) > 0)
    check("LogicalNot-1", {}, numbers(3, 4) > 0)


def test_divisions() -> None:
    attrs = NUMPY | {"m_pythondiv": True}
    check("Divide-1", attrs, np.concatenate([SPECIAL, LIMITS]), np.concatenate([LIMITS, SPECIAL]))
    check("Divide-1", attrs, rng.integers(-9, 9, 50), rng.integers(1, 5, 50))
    check("Divide-1", attrs, numbers(300, 700), numbers(300, 1))
    whole = rng.integers(1, 9, 5)
    assert refused("Divide-1", NUMPY | {"m_pythondiv": False}, whole, whole, output=whole)


@pytest.mark.parametrize("exponent", [2, 3, 0.5, -1, 1.5])
def test_powers(exponent: float) -> None:
    data = np.concatenate([np.abs(numbers(50)), SPECIAL, LIMITS])
    check("Power-1", NUMPY, data, np.array(exponent, np.float32), constant=(1,), rtol=3e-7)
    check("Power-1", NUMPY, data, np.array([exponent], np.float32), rtol=3e-7)
    check("Power-1", NUMPY, np.array(2, np.float32), numbers(3, 4), rtol=3e-7)
    check("Power-1", NUMPY, data, np.full(data.shape, exponent, np.float32), constant=(1,), rtol=3e-7)
    check("Power-1", NUMPY, rng.integers(-5, 5, 9), np.array(3), constant=(1,))
    assert refused("Power-1", NUMPY, np.arange(3), np.arange(3), output=np.arange(3))


def test_powers_whose_exponent_is_the_result_before() -> None:
    for base in (np.array(2, np.float32), np.array(3, np.float32), np.array([2, 3], np.float32)):
        check("Add-1", NUMPY, numbers(4, 2), numbers(2), base, posts=[Post("Power-1", NUMPY, 2, True)], constant=(2,))
    twos = np.array([[1, 2], [4, 8]], np.float32)
    work = work_of("Abs-1", {}, [np.log2(twos), np.array(2, np.float32)], [((2, 2), "f32")])
    work.inputs[1].value, work.posts = np.array(2, np.float32), [Post("Power-1", NUMPY, 1, True)]
    compiled = COMPILERS["Abs-1"](work, THREADS)
    assert compiled is not None
    np.testing.assert_array_equal(computed(compiled, work, [np.log2(twos), work.inputs[1].value])[0], twos)
    whole, post = np.arange(4), Post("Power-1", NUMPY, 1, True)
    work = work_of("Abs-1", {}, [whole, np.array(2)], [((4,), "i64")], [post], constant=(1,))
    assert COMPILERS["Abs-1"](work, THREADS) is None


@pytest.mark.parametrize("slope", [np.inf, -np.inf, np.nan, 0.5])
def test_slopes_that_are_not_finite_are_only_those_of_negative_numbers(slope: float) -> None:
    data = np.array([2, 0, -0.0, np.inf, -1, -np.inf, np.nan], np.float32)
    expected = np.array([2, 0, 0, np.inf, -slope, -np.inf * slope, np.nan], np.float32)
    np.testing.assert_array_equal(plain("PReLU-1", {}, [data, np.float32([slope])]), expected)
    for constant in ((), (1,)):
        check("PReLU-1", {}, data, np.float32([slope]), constant=constant)
        check("Abs-1", {}, data, np.float32([slope]), posts=[Post("PReLU-1", {}, 1)], constant=constant)


def test_parametric_functions() -> None:
    check("PReLU-1", {}, np.concatenate([numbers(5), SPECIAL, LIMITS]), np.array(0.25, np.float32))
    check("PReLU-1", {}, numbers(2, 3, 4), numbers(3, 1))
    check("PReLU-1", {}, numbers(2, 3, 4), numbers(3))
    check("PReLU-1", {}, numbers(2, 3, 300, 400), numbers(3))
    check("PReLU-1", {}, numbers(2, 3), numbers(3))
    check("Swish-4", {}, numbers(2, 3), np.array(1.7, np.float32), rtol=1e-6, atol=1e-7)
    check("HardSigmoid-1", {}, numbers(2, 3), np.array(0.3, np.float32), np.array(0.4, np.float32), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "i8", "?"])
def test_selections(dtype: str) -> None:
    attrs = NUMPY
    for a, b, c in [((3, 4), (3, 4), (3, 4)), ((4,), (), (3, 1)), ((2, 1, 3, 1), (3, 5), (1,)), ((9, 300, 100),) * 3]:
        check("Select-1", attrs, numbers(*a) > 0, numbers(*b).astype(dtype), numbers(*c).astype(dtype))


@pytest.mark.parametrize("length", [1, 5, 400])
@pytest.mark.parametrize("dtype", ["f4", "i4", "f8"])
def test_selections_of_runs(length: int, dtype: str) -> None:
    """Of all bits, those of NaN and of -0 among them."""
    mask = np.repeat(rng.integers(0, 2, (7, 400 // length)), length, 1) > 0
    bits = [rng.integers(-(2**31), 2**31, (3, 7, 800)).astype("i4").view(dtype)[..., :400] for _ in range(2)]
    expected = np.where(mask, *bits).view("u1")
    work = work_of("Select-1", NUMPY, [mask, *bits], [(bits[0].shape, element_type(np.dtype(dtype)))])
    compiled = COMPILERS["Select-1"](work, THREADS)
    assert compiled is not None
    output = aligned_empty(bits[0].shape, dtype)
    compiled.bind([mask, *bits], [output], None)()
    np.testing.assert_array_equal(output.view("u1"), expected)


@pytest.mark.parametrize("divisor", [1, 7, -3, 100])
@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "i8"])
def test_what_a_division_by_a_constant_leaves(divisor: int, dtype: str) -> None:
    limits = np.iinfo(dtype)
    data = np.append(rng.integers(limits.min, limits.max, 500), [limits.min, limits.max, 0]).astype(dtype)
    number = np.array(abs(divisor) if limits.min == 0 else divisor, dtype)
    check("FloorMod-1", NUMPY, data, number, constant=(1,))
    check("Add-1", NUMPY, data, number, number, posts=[Post("FloorMod-1", NUMPY, 2)], constant=(2,))


@pytest.mark.parametrize("name", ["Mod-1", "FloorMod-1"])
def test_what_a_division_of_f32_leaves(name: str) -> None:
    """Bit by bit: the sign of 0, quotients that f64 would round up to whole ones, and whatever is not finite."""
    divisors = np.float32([1, -1, 0.1, -0.3, 7, 3e-5, 2**24 - 1, 1e30, np.nextafter(np.float32(1), np.float32(0))])
    multiples = (rng.integers(-(2**24), 2**24, (400, 1)) * divisors.astype(np.float64)).astype(np.float32)
    near = [multiples, np.nextafter(multiples, np.float32(np.inf)), np.nextafter(multiples, np.float32(-np.inf))]
    data = np.concatenate([*near, numbers(400, len(divisors)) * 100, np.zeros((2, len(divisors)), np.float32)])
    data[-1] = -0.0
    plain = {"Mod-1": np.fmod, "FloorMod-1": np.mod}[name]
    special = np.float32([np.inf, -np.inf, np.nan, 0, 1e38, 1e-40, -2.5])
    for x, divisor in [(data, divisors), (data, data[::-1].copy()), (special[:, None], special), (special, special[4])]:
        work = work_of(name, NUMPY, [x, divisor], [(np.broadcast_shapes(x.shape, divisor.shape), "f32")])
        compiled = COMPILERS[name](work, THREADS)
        assert compiled is not None
        with np.errstate(all="ignore"):
            found, expected = computed(compiled, work, [x, divisor])[0], plain(x, divisor)
        np.testing.assert_array_equal(found, expected)
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(expected)[known])


def test_a_division_by_a_constant_zero_leaves_what_the_kernel_says() -> None:
    check("FloorMod-1", NUMPY, rng.integers(-9, 9, 50), np.array(0), constant=(1,))


TYPES = ["boolean", "f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bf16"]


@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_conversions(source: str, target: str) -> None:
    """Those that are taken agree, for values that do not fit as well."""
    values = np.concatenate([SPECIAL, LIMITS, rng.standard_normal(50) * 100, [3e9, -3e9, 70000, 1e19, -1e19]])
    if source != "boolean" and numpy_dtype(source).kind in "iu":
        values = rng.integers(-(2**62), 2**62, 50)
    with np.errstate(all="ignore"):
        data = values.astype(numpy_dtype(source))
    types = {"T": source}
    expected = plain("Convert-1", {"destination_type": target}, [data], types)
    work = work_of("Convert-1", {"destination_type": target}, [data], [(data.shape, target)])
    compiled = COMPILERS["Convert-1"](work, THREADS)
    if compiled is None or source == target == "bf16":
        assert "bf16" in (source, target) or source[0] == "f"
        return
    np.testing.assert_array_equal(comparable(computed(compiled, work, [data])[0]), comparable(expected))


VIEWS = {
    "transposed": lambda array: np.ascontiguousarray(array.T).T,
    "every other": lambda array: np.repeat(array, 2, -1)[..., ::2],
    "every fourth": lambda array: np.repeat(array, 4, -1)[..., ::4],
    "reversed": lambda array: np.ascontiguousarray(array[::-1])[::-1],
    "repeated": lambda array: np.broadcast_to(array[:, :1], array.shape),
    "swapped": lambda array: np.ascontiguousarray(array.swapaxes(0, 1)).swapaxes(0, 1),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("shape", [(4, 6, 5), (40, 60, 101)])
def test_views(view: str, shape: tuple[int, ...]) -> None:
    a, b = VIEWS[view](numbers(*shape)), numbers(*shape)
    check("Add-1", NUMPY, a, b)
    check("Subtract-1", NUMPY, b, a)
    for name in ("Negative-1", "ReLU-1", "Sigmoid-1", "Gelu-2", "HSwish-4", "Erf-1"):
        check(name, {}, a, rtol=3e-6, atol=1e-6)
    check("Multiply-1", NUMPY, b, b[0], a, posts=[Post("Add-1", NUMPY, 2)], rtol=1e-6)


CHAINS = {
    "bias and gelu": [Post("Add-1", NUMPY, 2), Post("Gelu-7", {"approximation_mode": "erf"})],
    "reflected": [Post("Subtract-1", NUMPY, 2, True), Post("Divide-1", NUMPY | {"m_pythondiv": True}, 3)],
    "many": [
        Post("Multiply-1", NUMPY, 3),
        Post("Sigmoid-1", {}),
        Post("Add-1", NUMPY, 4),
        Post("Clamp-1", {"min": -0.5, "max": 0.9}),
        Post("Swish-4", {}),
        Post("Maximum-1", NUMPY, 2),
    ],
    "slopes": [Post("PReLU-1", {}, 3), Post("Add-1", NUMPY, 4), Post("ReLU-1", {}), Post("Add-1", NUMPY, 2)],
}


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 8, 150, 170)])
def test_posts(chain: str, shape: tuple[int, ...]) -> None:
    operands = [numbers(*shape), numbers(shape[1], 1, 1), numbers(*shape[::-1]).T]
    check("Add-1", NUMPY, numbers(*shape), numbers(shape[-1]), *operands, posts=CHAINS[chain], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("seed", range(60))
def test_results_lie_as_the_first_input_does(seed: int) -> None:
    """Whatever the order of its axes, and however others broadcast to it and lie."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(size) for size in rng.choice([1, 2, 3, 5, 40], int(rng.integers(2, 5))))
    if seed % 3 == 0:
        shape = (*shape[:-1], 70000 // int(np.prod(shape[:-1])))

    def turned(array: Any) -> Any:
        order = rng.permutation(array.ndim)
        return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))

    def other() -> Any:
        sizes = [size if rng.random() < 0.6 else 1 for size in shape][int(rng.integers(0, len(shape))) :]
        return turned(rng.standard_normal(sizes).astype(np.float32))

    arrays = [turned(rng.standard_normal(shape).astype(np.float32))]
    head = str(rng.choice(["ReLU-1", "Sigmoid-1", "Add-1", "Multiply-1", "Maximum-1", "Greater-1", "PReLU-1"]))
    if head == "PReLU-1":
        arrays.append(rng.standard_normal(shape[1]).astype(np.float32))
    elif head not in ("ReLU-1", "Sigmoid-1"):
        arrays.append(other())
    posts = []
    for name in [] if head == "Greater-1" else rng.choice(["Add-1", "Subtract-1", "ReLU-1", "Tanh-1"], rng.integers(4)):
        if name in ("Add-1", "Subtract-1"):
            arrays.append(other())
            posts.append(Post(name, NUMPY, len(arrays) - 1, bool(rng.integers(2))))
        else:
            posts.append(Post(name, {}))
    attrs = NUMPY if len(arrays) > 1 and head not in ("ReLU-1", "Sigmoid-1", "PReLU-1") else {}
    constant = [number for number in range(1, len(arrays)) if rng.random() < 0.3]
    check(head, attrs, *arrays, posts=posts, constant=constant, rtol=1e-5, atol=1e-6)


def test_results_lie_in_c_order_where_only_one_input_lies_as_nobody_wants_it() -> None:
    """A residual beside a view with its axes turned around is dense again; images keep their channels last."""
    for shape, order, gives in (
        ((4, 16, 24), (2, 1, 0), False),
        ((4, 16, 24), (0, 2, 1), False),
        ((4, 5, 6, 7), (0, 2, 3, 1), True),
    ):
        dense = rng.standard_normal(shape).astype(np.float32)
        data = np.ascontiguousarray(dense.transpose(order)).transpose(np.argsort(order))
        work = work_of("Add-1", NUMPY, [data, dense], [(dense.shape, "f32")])
        compiled = COMPILERS["Add-1"](work, THREADS)
        assert compiled is not None
        assert bool(compiled.gives) == gives
        np.testing.assert_array_equal(computed(compiled, work, [data, dense])[0], data + dense)
    turned = rng.standard_normal((24, 16, 4)).astype(np.float32).T
    alone = work_of("ReLU-1", {}, [turned], [(turned.shape, "f32")])
    assert COMPILERS["ReLU-1"](alone, THREADS).gives  # type: ignore[union-attr] # it is taken


def test_selections_and_conversions_lie_as_their_first_input_does() -> None:
    """A result in C order would be read by most of those behind it after another copy."""
    data = np.moveaxis(numbers(2, 6, 7, 40), -1, 1)
    work = work_of("Convert-1", {"destination_type": "f16"}, [data], [(data.shape, "f16")])
    compiled = COMPILERS["Convert-1"](work, THREADS)
    assert compiled is not None
    assert compiled.gives[0].strides == data.astype(np.float16, order="K").strides
    check("Convert-1", {"destination_type": "f16"}, data)
    check("Select-1", NUMPY, data > 0, data, numbers(40, 1, 1))
    limits = [np.float32(limit).reshape(1, 1, 1, 1) for limit in (-2, 2, -2, 2)]
    check("FakeQuantize-1", NUMPY | {"levels": 256}, data, *limits, constant=(1, 2, 3, 4), atol=4 / 255 + 1e-6)


def test_post_operands_where_the_output_is_seen_in_another_shape() -> None:
    data, bias, rows, whole = numbers(2, 3, 4, 5), numbers(5), numbers(2, 3, 4, 1), numbers(2, 3, 4, 5)
    posts = [Post("Add-1", NUMPY, 1), Post("Multiply-1", NUMPY, 2), Post("Subtract-1", NUMPY, 3)]
    work = work_of("Identity-16", {}, [data, bias, rows, whole], [(data.shape, "f32")], posts)
    expected = (data + bias) * rows - whole
    for shape in ((24, 5), (6, 4, 5), (2, 12, 5), (2, 3, 4, 5)):
        found = posts_of(work, shape)
        assert found
        output = data.copy().reshape(shape)
        on = found.bind([data, bias, rows, whole], output)
        half = shape[0] // 2
        chain(on((slice(0, half),)))()
        chain(on((slice(half, None), slice(None))))()
        np.testing.assert_allclose(output.reshape(data.shape), expected, rtol=1e-6)
    assert posts_of(work, (2, 60)) is None
    assert posts_of(work_of("Identity-16", {}, [data], [(data.shape, "f32")], [Post("Selu-1", {})])) is None


def test_what_is_left_to_others() -> None:
    data = numbers(2, 3)
    assert refused("Add-1", {"auto_broadcast": "pdpd", "auto_broadcast_axis": -1}, data, data, output=data)
    assert refused("Exp-1", {}, np.arange(3), output=np.arange(3))
    assert refused("Gelu-2", {}, data.astype(np.float16), output=data.astype(np.float16))
    assert refused("ReLU-1", {}, data, output=data, posts=[Post("CumSum-3", {})])
    assert refused("ReLU-1", {}, data, data.astype(np.float64), output=data, posts=[Post("Add-1", NUMPY, 1)])
    halves = data.astype(np.float16)
    assert refused("Round-5", {"mode": "half_away_from_zero"}, halves, output=halves)


@pytest.mark.parametrize("shape", [(7,), (1000,), (3, 1000), (2, 3, 5, 7), (1, 1, 999), (50, 3)])
@pytest.mark.parametrize("most", [1, 10, 64, 10**6])
def test_blocks_cover_a_tensor_once(shape: tuple[int, ...], most: int) -> None:
    seen = np.zeros(shape, int)
    for cut in blocks(shape, most):
        seen[cut] += 1
        assert seen[cut].size <= max(most, 1) or most < shape[-1]
    assert (seen == 1).all()
    assert len(even_blocks((10,), 4, 2)) == 4
    assert len(even_blocks((64, 10_000), 1 << 17, 2)) == 6


@pytest.mark.parametrize("target", ["i8", "u8", "i16", "u16"])
def test_floats_become_small_integers_modulo_their_size(target: str) -> None:
    data = np.concatenate([numbers(50) * 1000, SPECIAL, LIMITS, np.float32([255.9, -0.9, 3e9, -3e9, 2**31, 65535.5])])
    attrs = {"destination_type": target}
    with np.errstate(all="ignore"):
        expected = plain("Convert-1", attrs, [data], {"T": "f32"})
    work = work_of("Convert-1", attrs, [data], [(data.shape, target)])
    compiled = COMPILERS["Convert-1"](work, THREADS)
    assert compiled is not None
    np.testing.assert_array_equal(computed(compiled, work, [data])[0], expected)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("function", ["Sigmoid-1", "Swish-4"])
def test_functions_that_numpy_is_slow_at_are_left_to_who_compiles_them(
    monkeypatch: pytest.MonkeyPatch, wide: bool, function: str
) -> None:
    monkeypatch.setattr(functions, "WIDE_EXP2", wide)
    alone, beside = VectorizedEngine(2), VectorizedEngine(2, compiling=True)
    for rows, left in ((4, False), (4000, not wide)):
        parts, attrs = [numbers(rows, 5), numbers(rows, 7)], {"axis": 1}
        for posts in ([Post(function, {})], [Post("Abs-1", {}), Post(function, {})]):
            work = work_of("Concat-1", attrs, parts, [((rows, 12), "f32")], posts)
            assert alone.compile(work) is not None
            assert (beside.compile(work) is None) == left
        for posts in ([], [Post("Abs-1", {})]):
            assert beside.compile(work_of("Concat-1", attrs, parts, [((rows, 12), "f32")], posts)) is not None
        assert beside.compile(work_of(function, {}, parts[:1], [((rows, 5), "f32")])) is not None


@pytest.mark.parametrize("function", ["Sigmoid", "Swish"])
@pytest.mark.parametrize("wide", [False, True])
def test_the_function_of_a_concatenation_is_the_same_by_any_engine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, function: str, wide: bool
) -> None:
    monkeypatch.setattr(functions, "WIDE_EXP2", wide and functions.WIDE_EXP2)
    model, parts = Model(), [numbers(3, 40, 90), numbers(3, 50, 90)]
    ports = [model.parameter(f"x{number}", "f32", part.shape) for number, part in enumerate(parts)]
    (whole,) = model.layer("Concat", ports, [("f32", (3, 90, 90))], axis="1")
    (result,) = model.layer(
        function, [whole], [("f32", (3, 90, 90))], {"Sigmoid": "opset1", "Swish": "opset4"}[function]
    )
    model.result(result)
    path = model.save(tmp_path)
    (exact,) = irrun.GraphExecutor(path, engine="reference").run(parts).values()
    (found,) = irrun.GraphExecutor(path, engine="auto", threads=2).run(parts).values()
    np.testing.assert_allclose(found, exact, 1e-6, 1e-6)


@pytest.mark.parametrize("engine", ["numpy", "onednn", "auto"])
@pytest.mark.parametrize(
    ("op", "version", "one", "other"),
    [("PReLU", "opset1", np.float32(0.5), np.float32(np.inf)), ("Power", "opset1", np.int32(2), np.int32(-1))],
)
def test_works_that_are_alike_do_as_their_own_weights_say(
    tmp_path: Path, engine: str, op: str, version: str, one: Any, other: Any
) -> None:
    """Two layers of one kind whose many constants differ, in either order."""
    type = "f32" if op == "PReLU" else "i32"
    data = np.arange(1, 513).reshape(2, 32, 8).astype(one.dtype)
    for place, values in enumerate(((one, other), (other, one))):
        model = Model()
        x = model.parameter("x", type, data.shape)
        for value in values:
            constant = np.full((32, 1), one)
            constant[3] = value
            (before,) = model.layer("Add", [x, x], [(type, data.shape)], **NUMPY_TEXT)
            attrs = {} if op == "PReLU" else NUMPY_TEXT
            (y,) = model.layer(op, [before, model.constant(constant)], [(type, data.shape)], version, **attrs)
            model.result(y)
        folder = tmp_path / str(place)
        folder.mkdir()
        path = model.save(folder)
        expected = irrun.GraphExecutor(path, engine="reference").run([data]).values()
        for found, right in zip(irrun.GraphExecutor(path, engine=engine).run([data]).values(), expected, strict=True):
            np.testing.assert_array_equal(found, right)
