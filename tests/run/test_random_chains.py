"""Random chains of compressed weights, read by random products and look-ups, by every engine."""

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.engines.compressed import CODES, PACKED
from run.compressed_models import Chain, lookup, product

TYPES = sorted(CODES)


def random_chain(random, type):
    """Large enough to stay compressed; sizes that vectors divide, and others."""
    group = int(random.choice([16, 24, 32, 64, 128, 17]))
    count = int(random.integers(1, 6))
    rows = -(-int(random.integers(1 << 14, 1 << 15)) // (group * count))
    inner = group * count
    plain = type in ("f16", "bf16")
    grouped = random.random() < 0.6 and not plain
    stored = (rows, count, group) if grouped else (rows, inner)
    factors = [(*stored[:-1], 1), (1,) * len(stored), ()]
    if not grouped:
        factors.append((1, inner))
    scale = (
        None
        if plain
        else factors[random.choice(len(factors), p=[0.7, *[0.3 / (len(factors) - 1)] * (len(factors) - 1)])]
    )
    zero = factors[0] if type in ("u4", "u8", "i8") and scale is not None and random.random() < 0.7 else None
    middle = "f32" if type == "bf16" else str(random.choice(["f16", "f32"]))
    zero_type = "u8" if random.random() < 0.5 or type not in PACKED else "u4"
    return Chain(
        type, stored, (rows, inner), scale, zero, "f32" if type == "bf16" else middle, zero_type if zero else ""
    )


@pytest.mark.parametrize("seed", range(24))
def test_random_chains(seed, tmp_path):
    """Each engine, with its own threads, on batches of all sizes, against sums in f64."""
    random = np.random.default_rng(seed)
    chain = random_chain(random, TYPES[seed % len(TYPES)])
    model = Model()
    weights = chain.added(model, seed, shift=int(random.integers(0, 4)))
    turned = bool(random.random() < 0.8)
    rows, inner = chain.shape
    x = model.parameter("x", "f32", ("?", "?", inner if turned else rows))
    y = product(model, x, weights, turned)
    if random.random() < 0.5:
        bias = random.standard_normal(y[3][-1]).astype(np.float32)
        (y,) = model.layer("Add", [y, model.constant(bias)], [y[2:]], auto_broadcast="numpy")
    else:
        bias = np.float32(0)
    model.result(y)
    looked_up = random.random() < 0.5
    if looked_up:
        model.result(lookup(model, weights, model.parameter("i", "i64", ("?",))))
    path = model.save(tmp_path)
    values = chain.values(seed)
    matrix = values.T if turned else values
    engines = [
        irrun.GraphExecutor(path, engine=engine, threads=threads)
        for engine, threads in (("numpy", 1), ("numpy", 2), ("auto", 1), ("auto", 2), ("check", 3))
    ]
    for shape in ((1, 1), (1, 3), (2, 4), (1, 9), (3, 7), (1, 70)):
        data = random.standard_normal((*shape, len(matrix))).astype(np.float32)
        indices = random.integers(-rows, rows, 5)
        expected = data.astype(np.float64) @ matrix + bias
        room = np.abs(data).astype(np.float64) @ np.abs(matrix) + np.abs(bias)
        for ours in engines:
            assert len(ours._whole.preparation.general.program.compressed) == 1
            found, *others = ours.run([data, indices] if looked_up else [data]).values()
            assert (np.abs(found - expected) <= 1e-6 * room).all()
            for rows_found in others:
                np.testing.assert_allclose(rows_found, values[indices], 3e-7)
