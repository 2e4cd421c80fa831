"""What computes quickly: engines that take over instructions from the ops' own kernels, which stay the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irrun.diagnostics import EngineError

if TYPE_CHECKING:
    from irrun.engines.work import Engine

CHECK, REFERENCE = "check", "reference"
ENGINES = ("auto", "onednn", "numpy", REFERENCE, CHECK)
"""`auto` is `onednn` where that is installed, else `numpy`, and in both, where llvmlite is, what `compiled` computes;
`numpy` is that alone; `reference` runs every layer by its op's own kernel; `check` is `auto`, every result held against
what that kernel gives."""

PRECISIONS = ("auto", "declared", "f32", "bf16", "f16", "f64")
"""Types that floats are computed in. `declared`: those of the model; `auto`: these, but f32 for f16 and bf16; `f32`:
that for f64, too; `bf16`: as auto, but products, convolutions and what lies between in bf16; `f16`: all in f16, as a
device does that rounds the result of every layer to it; `f64`: all in f64, which is slow, and what others are measured
by."""


SINGLE_RUN_BYTES, SINGLE_RUN_OPERATIONS = 110_000_000, 10_000_000_000
"""Bytes of weights of products, not of convolutions, or operations of these for which oneDNN pays in a single run
already: what it prepares takes 20 to 60 ms."""


def load_engines(
    name: str, threads: int | None = None, *, small: bool = False, once: bool = False, fixed: bool = False
) -> list[Engine]:
    """The engines that a model is offered to, the first one first, for `threads` threads (None: as `processors` says).

    `small` says that so little is to be computed that `auto` had better do without oneDNN, `once` that it is computed
    once, `fixed` that all sizes are known, and the same in all runs.

    Raises EngineError where `name` is not one of `ENGINES`, or cannot be loaded.
    """
    if name not in ENGINES:
        raise EngineError(f"there is no engine `{name}`; there are {', '.join(ENGINES)}")
    if threads is not None and threads < 1:
        raise EngineError(f"{threads} threads, expected 1 or more")
    if name == REFERENCE:
        return []
    from irrun.engines.placement import processors

    count = threads or processors()
    found: list[Engine] = []
    if name == "onednn" or (name in ("auto", CHECK) and not small):
        from irrun.engines import compiled, onednn

        compiling = compiled.is_there()
        sparing = once and name == "auto"
        engine = onednn.load(count, once=once, fixed=fixed, compiling=compiling, sparing=sparing)
        if engine is not None:
            found.append(engine)
        elif name == "onednn":
            raise EngineError('oneDNN cannot be loaded: pip install "irrun[onednn]", on Linux with an x86-64 processor')
        if compiling:
            from irrun.engines.compiled.engine import CompiledEngine

            parallel = None if engine is None or engine.alone else engine.parallel
            quantized = engine is not None and engine.leaves_codes and not once
            coding = engine is not None and engine.pairs and not once
            loaded = None if engine is None else engine.expect_compiled
            options = {"once": once, "quantized": quantized, "coding": coding}
            found.append(CompiledEngine(count, parallel, loaded=loaded, **options))
    from irrun.engines.vectorized.engine import VectorizedEngine

    others = {engine.name for engine in found}
    quantizing = "compiled" in others and not once
    return [*found, VectorizedEngine(count, compiling="onednn" in others, quantizing=quantizing, once=once)]
