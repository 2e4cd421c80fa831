"""The engines on numpy and LLVM: every module with compilers is found, and no two compute the same op."""

from collections import Counter
from functools import partial
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path

import numpy as np
import pytest

import irrun.engines.vectorized
from irrun.engines import compiled, load_engines
from irrun.engines.compiled.engine import MODULES as COMPILED
from irrun.engines.compiled.engine import OPENED
from irrun.engines.vectorized.engine import MODULES, of_module
from irrun.engines.work import Operand, Post, Work, chain
from irrun.run.internal_ops import PICKED_PRODUCT, ROOT_MEAN_SQUARE, TABLE
from irrun.spec.registry import registry

FOLDER = Path(irrun.engines.vectorized.__file__).parent


def test_all_modules_with_compilers_are_listed():
    modules = {path.stem: import_module(f"irrun.engines.vectorized.{path.stem}") for path in FOLDER.glob("*.py")}
    assert set(MODULES) == {name for name, module in modules.items() if hasattr(module, "COMPILERS")}
    assert {name: set(ops.split()) for name, ops in MODULES.items()} == {
        name: {*modules[name].COMPILERS, *getattr(modules[name], "OPENERS", {})} for name in MODULES
    }
    ops = Counter(op for name in MODULES for op in modules[name].COMPILERS)
    assert set(ops.values()) == {1}
    assert ops.keys() <= {*registry().ops, TABLE.name, ROOT_MEAN_SQUARE.name, PICKED_PRODUCT.name}
    assert of_module("MatMul-1", "COMPILERS") is modules["products"].COMPILERS["MatMul-1"]
    assert of_module("NonMaxSuppression-9", "COMPILERS") is None


@pytest.mark.skipif(not compiled.is_there(), reason="llvmlite is not installed")
def test_all_modules_of_the_compiled_engine_are_listed_with_their_ops():
    modules = {name: import_module(f"irrun.engines.compiled.{name}") for name in COMPILED}
    openers = {name: getattr(module, "OPENERS", {}) for name, module in modules.items()}
    assert {name: set(ops.split()) for name, ops in COMPILED.items()} == {
        name: {*getattr(module, "COMPILERS", {}), *openers[name]} for name, module in modules.items()
    }
    assert set(Counter(op for ops in COMPILED.values() for op in ops.split()).values()) == {1}
    assert {op for table in openers.values() for op in table} == OPENED, "others are not loaded to know that"


def test_what_a_work_says_of_its_inputs() -> None:
    data, axes, added = (
        Operand("f32", (2, 3), (12, 4)),
        Operand("i64", (1,), (8,), np.array([1])),
        Operand("f32", (), ()),
    )
    post = Post("Add-1", {}, 3)
    work = Work("Slice-8", {}, [data, axes, None, added], [data], [Post("ReLU-1", {}), post])
    assert work.own == [data, axes, None]
    assert work.required(2) == [data, axes]
    assert [work.optional(number) for number in (0, 2, 3)] == [data, None, None]
    assert work.constant(1) is axes.value
    assert work.constant(0) is work.constant(3) is None
    assert [work.other(own) for own in work.posts] == [None, added]


def test_calls_in_order() -> None:
    for count in range(5):
        made: list[int] = []
        chain([partial(made.append, number) for number in range(count)])()
        assert made == list(range(count))


@pytest.mark.parametrize(("version", "there"), [("0.44.0", False), ("0.45.0", True), ("1.2.3", True), (None, True)])
def test_an_llvmlite_that_ends_the_process_is_as_good_as_none(version, there, tmp_path, monkeypatch):
    package = tmp_path / "llvmlite"
    package.mkdir()
    (package / "__init__.py").touch()
    if version is not None:
        (package / "_version.py").write_text(f"version_version = '{version}'\nversion_full = 'unknown'\n")
    monkeypatch.setattr(compiled, "find_spec", lambda name: PathFinder.find_spec(name, [str(tmp_path)]))
    monkeypatch.setattr(compiled, "is_there", compiled.is_there.__wrapped__)
    assert compiled.is_there() is there
    found = [engine.name for engine in load_engines("auto")]
    assert ("compiled" in found) is there
