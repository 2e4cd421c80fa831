"""A plugin of pytest: LLVM is told of a processor without AVX-512, so that kernels are those for vectors of 8."""

from __future__ import annotations

from typing import Any

from llvmlite import binding

BEYOND = ("amx", "avx10", "avx512", "evex512")

_features = binding.get_host_cpu_features


def _fewer() -> Any:
    found = _features()
    found.update((name, False) for name in found if name.startswith(BEYOND))
    return found


binding.get_host_cpu_features = _fewer
binding.get_host_cpu_name = lambda: "x86-64-v3"
