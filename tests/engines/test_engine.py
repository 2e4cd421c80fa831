"""The engine on numpy: every module with compilers is found, and no two compute the same op."""

from collections import Counter
from importlib import import_module
from pathlib import Path

import irrun.engines.vectorized
from irrun.engines.vectorized.engine import MODULES, compiler_of
from irrun.spec.registry import registry

FOLDER = Path(irrun.engines.vectorized.__file__).parent


def test_all_modules_with_compilers_are_listed():
    modules = {path.stem: import_module(f"irrun.engines.vectorized.{path.stem}") for path in FOLDER.glob("*.py")}
    assert set(MODULES) == {name for name, module in modules.items() if hasattr(module, "COMPILERS")}
    ops = Counter(op for name in MODULES for op in modules[name].COMPILERS)
    assert set(ops.values()) == {1}
    assert ops.keys() <= registry().ops.keys()
    assert compiler_of("MatMul-1") is modules["products"].COMPILERS["MatMul-1"]
    assert compiler_of("NonMaxSuppression-9") is None
