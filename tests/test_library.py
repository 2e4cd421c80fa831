"""What must hold for every op of the library."""

import ast
import doctest
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from irrun.spec import Op
from irrun.spec.dtypes import ELEMENT_TYPES
from irrun.spec.op import CONTEXT
from irrun.spec.registry import registry

OPS = registry().ops
every_op = pytest.mark.parametrize("op", OPS.values(), ids=OPS)
TEST_FILES = [ast.parse(path.read_text()) for path in sorted((Path(__file__).parent / "ops").glob("test_*.py"))]


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
    missing = [
        label
        for label in labels(op)
        if (op.name, label) not in FAMILY_TESTED
        and not any(name.startswith(f"test_{slug}_{label.lower()}_") for name in TEST_NAMES)
    ]
    assert not missing, f"tests/ops has no test_{slug}_c..._ for {missing}"


def functions(module: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)]


def family_tested(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Pairs (op name, label) that one test checks for many ops.

    Such a test is called `test_<family>_c1_...`, is parametrised by `name` over a literal list of op names, uses
    `name`, expects a `Violation`, and compares with the label.
    """
    for test in functions(module):
        found = re.match(r"test_[a-z_]+_c(\d+)_", test.name)
        if not found:
            continue
        label = f"C{found[1]}"
        inside = [node for statement in test.body for node in ast.walk(statement)]
        names = {node.id for node in inside if isinstance(node, ast.Name)}
        raises = any(isinstance(node, ast.Attribute) and node.attr == "raises" for node in inside)
        compared = any(isinstance(node, ast.Constant) and node.value == label for node in inside)
        if {"name", "Violation"} <= names and raises and compared:
            yield from ((name, label) for name in parametrised_names(test, module))


def parametrised_names(test: ast.FunctionDef, module: ast.Module) -> list[str]:
    """The literal list over which `name` runs: written in the decorator, or a constant of the same file."""
    constants = {
        target.id: node.value
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for decorator in test.decorator_list:
        match decorator:
            case ast.Call(func=ast.Attribute(attr="parametrize"), args=[ast.Constant(value="name"), values, *_]):
                literal = constants.get(values.id) if isinstance(values, ast.Name) else values
                if isinstance(literal, ast.List | ast.Tuple):
                    return [item.value for item in literal.elts if isinstance(item, ast.Constant)]
    return []


TEST_NAMES = {test.name for module in TEST_FILES for test in functions(module)}
FAMILY_TESTED = {pair for module in TEST_FILES for pair in family_tested(module)}

FAMILY_TEST = """
BOTH = ["Add-1", "Subtract-1"]

@pytest.mark.parametrize("name", BOTH)
def test_sums_c1_shapes(name):
    with pytest.raises(Violation) as caught:
        ops[name](a, b)
    assert caught.value.label == "C1"
"""


def test_a_test_of_a_family_counts_for_every_op_of_its_list():
    assert set(family_tested(ast.parse(FAMILY_TEST))) == {("Add-1", "C1"), ("Subtract-1", "C1")}


@pytest.mark.parametrize(
    "change",
    [
        ('label == "C1"', 'label == "C2"'),
        ("ops[name]", "ops['Add-1']"),
        ("pytest.raises(Violation)", "pytest.raises(ValueError)"),
        ("test_sums_c1_shapes", "test_sums_of_shapes"),
        ('("name", BOTH)', '("name", every_op())'),
        ('("name", BOTH)', '("op", BOTH)'),
        ("@pytest.mark.parametrize", "# @pytest.mark.parametrize"),
    ],
    ids=" to ".join,
)
def test_a_test_of_a_family_that_does_not_check_the_label_of_each_op_counts_for_none(change):
    assert change[0] in FAMILY_TEST
    assert not set(family_tested(ast.parse(FAMILY_TEST.replace(*change))))


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
