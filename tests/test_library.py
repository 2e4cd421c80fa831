"""What must hold for every op of the library."""

import doctest
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

from irrun.spec import Op
from irrun.spec.dtypes import ELEMENT_TYPES
from irrun.spec.op import CONTEXT
from irrun.spec.registry import registry

OPS = registry().ops
every_op = pytest.mark.parametrize("op", OPS.values(), ids=OPS)
TESTS = "\n".join(path.read_text() for path in (Path(__file__).parent / "ops").glob("test_*.py"))


def labels(op: Op) -> set[str]:
    return set(re.findall(r"^ +(C\d+):", op.__doc__ or "", re.M))


@every_op
def test_the_example_runs(op):
    test = doctest.DocTestParser().get_doctest(op.__doc__, {"np": np, "op": op}, op.name, None, 0)
    assert test.examples or op.context - {"types"} or not op.outputs or not op.inputs, "an op needs an example"
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test).failed == 0


@every_op
def test_documented_constraints_are_the_checked_ones(op):
    assert labels(op) == checked_labels(op)


def checked_labels(op: Op) -> set[str]:
    """The labels in the source of the rule, of the kernel and of the functions of the op library that they call."""
    todo, seen, found = [op.rule, op.kernel], set(), set()
    while todo:
        function = todo.pop()
        if not inspect.isfunction(function) or function in seen or not function.__module__.startswith("irrun.opsets"):
            continue
        seen.add(function)
        source = inspect.getsource(function)
        found |= set(re.findall(r'"(C\d+)"', source))
        names = {*function.__code__.co_names, *function.__code__.co_freevars}
        todo += [function.__globals__.get(name) for name in names]
        todo += [cell.cell_contents for cell in function.__closure__ or ()]
    return found


@every_op
def test_every_constraint_has_a_test_of_its_name(op):
    slug = re.sub(r"[^a-z0-9]+", "_", op.name.lower())
    missing = [label for label in labels(op) if f"test_{slug}_{label.lower()}_" not in TESTS]
    assert not missing, f"tests/ops has no test_{slug}_c..._ for {missing}"


@every_op
def test_the_kernel_takes_the_inputs_in_order_and_the_attributes_by_keyword(op):
    try:
        parameters = inspect.signature(op.kernel).parameters.values()
    except ValueError:
        return  # a ufunc
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        assert len(positional) == len(op.inputs)
    keywords = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} - CONTEXT
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    assert takes_all or keywords == {attr.keyword for attr in op.attrs}


@every_op
def test_the_docstring_names_a_source_and_fits_a_terminal(op):
    assert re.search(r"^Source: [\w./-]+\.rst", op.__doc__, re.M)
    assert op.__doc__.split("\n")[0].endswith(".")
    assert max(map(len, op.__doc__.split("\n"))) <= 120


@every_op
def test_type_symbols_are_declared_and_used(op):
    used = {port.type for port in (*op.inputs, *op.outputs)}
    assert set(op.types) <= used
    attributes = {attr.keyword for attr in op.attrs}
    assert used <= set(op.types) | set(ELEMENT_TYPES) | attributes
    assert all(types <= set(ELEMENT_TYPES) and types for types in op.types.values())
