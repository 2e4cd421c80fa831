"""Which program computes inputs of which shapes."""

from __future__ import annotations

import numpy as np
import pytest

import irrun
from irrun.run.profile import Profile
from run.models import ADD, PLAIN, anything, model, saved

WEIGHTS, SHIFT = np.float32([[1, 2], [3, 4], [5, 6]]), np.float32([10, -20])
EVERY = (-1, 3)


@pytest.fixture
def product(tmp_path, monkeypatch):
    """x [?, 3] @ WEIGHTS + SHIFT by numpy, and what has computed the product of a batch."""
    monkeypatch.setattr("irrun.run.specialization.FEW_READ", 400)
    b = model()
    y = b.one("MatMul-1", anything(b, "f4", EVERY), b.constant(WEIGHTS), **PLAIN)
    b.result(b.one("Add-1", y, b.constant(SHIFT), **ADD))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine="numpy")

    def by(batch):
        x = np.arange(3 * batch, dtype=np.float32).reshape(batch, 3)
        profile = Profile()
        (result,) = ours.run([x], profile=profile).values()
        np.testing.assert_array_equal(result, x @ WEIGHTS + SHIFT)
        return next(entry.by for entry in profile.entries.values() if "MatMul" in entry.type)

    return by


def test_what_is_little_is_for_kernels_until_its_shapes_come_again(product):
    assert [product(batch) for batch in (4, 4, 5, 6, 5, 5, 7)] == [
        *("numpy", "numpy"),
        *("kernel", "kernel", "numpy", "numpy", "kernel"),
    ]


def test_what_is_more_than_twice_as_much_has_a_program_at_once(product):
    assert [product(batch) for batch in (4, 7, 9, 200, 201, 2)] == [
        *("numpy", "kernel", "numpy"),
        *("numpy", "numpy", "numpy"),
    ]


def test_nothing_says_nothing_of_other_shapes(product):
    product(0)
    assert [product(batch) for batch in (4, 0, 5)] == ["numpy", "kernel", "kernel"]
