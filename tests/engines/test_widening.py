"""Works of bf16 on numpy: computed in f32 and rounded once; what only moves elements is moved as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from engines.works import computed, plain, posted, wanted, work_of

from irrun.engines.vectorized.engine import VectorizedEngine
from irrun.engines.work import Post
from irrun.spec.op import Array

BF16 = ml_dtypes.bfloat16
ENGINE = VectorizedEngine(2)
rng = np.random.default_rng(0)


def random(*shape: int, type: Any = BF16) -> Array:
    return (rng.standard_normal(shape) + 3).astype(type)


def check(
    name: str,
    attrs: Mapping[str, Any],
    arrays: Sequence[Array],
    constant: Sequence[int] = (1,),
    posts: Sequence[Post] = (),
) -> None:
    exact = [array.astype(np.float64) if array.dtype == BF16 else array for array in arrays]
    own = len(arrays) - sum(post.operand is not None for post in posts)
    expected = posted(posts, plain(name, attrs, exact[:own], {"T": "f64"}), exact)
    work = work_of(name, attrs, arrays, [(expected.shape, "bf16")], posts, constant)
    compiled = ENGINE.compile(work)
    assert compiled is not None
    (output,) = computed(compiled, work, arrays)
    assert output.dtype == BF16
    np.testing.assert_allclose(output.astype(np.float64), expected, rtol=2.0**-8 + 1e-5)


def test_softmax_of_a_middle_axis_of_a_view() -> None:
    check("SoftMax-8", {"axis": 1}, [random(3, 9, 8)[:, ::2]])


def test_means() -> None:
    check("ReduceMean-1", {"keep_dims": False}, [random(3, 9, 8), np.array([1])])


def test_product_with_weights_and_what_follows() -> None:
    attrs = {"transpose_a": False, "transpose_b": True}
    posts = [Post("Add-1", {"auto_broadcast": "numpy"}, 2), Post("ReLU-1", {})]
    check("MatMul-1", attrs, [random(2, 9, 20), random(30, 20), random(30)], (1, 2), posts)
    check("MatMul-1", attrs, [random(2, 20, 9).transpose(0, 2, 1), random(2, 30, 20), random(30)], (), posts)


def test_constants_that_are_transposed() -> None:
    attrs = {"transpose_a": False, "transpose_b": False}
    check("MatMul-1", attrs, [random(9, 20), random(30, 20).T])
    check("Add-1", {"auto_broadcast": "numpy"}, [random(9, 8), random(8, 9).T])


def test_convolution() -> None:
    zeros, ones = (0, 0), (1, 1)
    attrs = {"strides": ones, "dilations": ones, "pads_begin": zeros, "pads_end": zeros, "auto_pad": "explicit"}
    check("Convolution-1", attrs, [random(1, 3, 9, 9), random(4, 3, 3, 3)])


@pytest.mark.parametrize("name", ["Power-1", "Divide-1", "SquaredDifference-1"])
def test_element_wise(name: str) -> None:
    attrs = {"m_pythondiv": True} if name == "Divide-1" else {}
    check(name, {"auto_broadcast": "numpy"} | attrs, [random(3, 9, 8), random(9, 1)])


def test_operands_of_other_types_keep_their_layouts() -> None:
    """What is not of bf16 lies as it would without it, also a result; a table is looked up by codes in C order."""
    data = np.moveaxis(random(2, 9, 8, 16, type=np.float32), -1, 1)
    (output,) = _same("Add-1", {"auto_broadcast": "numpy"}, [data, random(1, 16, 1, 1)], "f32", ())
    assert output.strides == data.strides
    condition = data > 3
    _same(
        "Select-1",
        {"auto_broadcast": "numpy"},
        [condition, random(16, 1, 1), random(1)],
        "bf16",
        (),
        [Post("ReLU-1", {})],
    )
    codes = rng.integers(0, 256, (9, 8, 16)).astype(np.uint8).swapaxes(0, 1)
    _same("Table-0", {}, [codes, random(256)], "bf16", (1,))


def _same(
    name: str,
    attrs: Mapping[str, Any],
    arrays: Sequence[Array],
    type: str,
    constant: Sequence[int],
    posts: Sequence[Post] = (),
) -> list[Array]:
    expected = posted(posts, plain(name, attrs, arrays, {"T": "bf16"}), arrays)
    work = work_of(name, attrs, arrays, [(expected.shape, type)], posts, constant)
    compiled = ENGINE.compile(work)
    assert compiled is not None
    outputs = computed(compiled, work, wanted(compiled, work, arrays))
    np.testing.assert_allclose(outputs[0].astype(np.float64), expected.astype(np.float64), rtol=2.0**-8)
    return outputs


def test_conversions() -> None:
    data = random(40, 50, type=np.float32)
    for array, type in ((data, "bf16"), (data.astype(BF16), "f32")):
        work = work_of("Convert-1", {"destination_type": type}, [array], [(array.shape, type)])
        compiled = ENGINE.compile(work)
        assert compiled is not None
        (output,) = computed(compiled, work, [array])
        np.testing.assert_array_equal(output, array.astype(BF16 if type == "bf16" else np.float32))


@pytest.mark.parametrize("type", [BF16, np.float16])
def test_two_bytes_are_moved_as_they_are(type: Any) -> None:
    data = random(40, 30, 20, type=type)
    cases: list[tuple[str, dict[str, Any], list[Array], Array]] = [
        ("Transpose-1", {}, [data, np.array([2, 0, 1])], data.transpose(2, 0, 1)),
        ("Concat-1", {"axis": 1}, [data, data[:, ::-2]], np.concatenate([data, data[:, ::-2]], 1)),
        ("Gather-8", {"batch_dims": 0}, [data, np.array([3, 1, 1]), np.array(1)], data[:, [3, 1, 1]]),
        ("Reshape-1", {"special_zero": False}, [data[:, ::2], np.array([-1])], data[:, ::2].reshape(-1)),
        (
            "Pad-12",
            {"pad_mode": "constant"},
            [data, np.array([0, 1, 0]), np.array([2, 0, 0])],
            np.pad(data, [(0, 2), (1, 0), (0, 0)]),
        ),
        ("Tile-1", {}, [data, np.array([1, 2, 1])], np.tile(data, (1, 2, 1))),
    ]
    for name, attrs, arrays, expected in cases:
        constant = [n for n, array in enumerate(arrays) if array.dtype.kind == "i"]
        name_of_type = "bf16" if type is BF16 else "f16"
        work = work_of(name, attrs, arrays, [(expected.shape, name_of_type)], constant=constant)
        compiled = ENGINE.compile(work)
        assert compiled is not None, name
        (output,) = computed(compiled, work, arrays)
        np.testing.assert_array_equal(output, expected)
