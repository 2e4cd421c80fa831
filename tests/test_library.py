"""What must hold for every op of the library."""

import ast
import doctest
import inspect
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from irrun.spec import (
    REQUIRED,
    Attending,
    Bounded,
    Converting,
    Convolving,
    Cutting,
    Elementwise,
    Filling,
    Joining,
    Lookup,
    MatrixProduct,
    Measuring,
    Normalizing,
    Op,
    Padding,
    Permutation,
    Products,
    Quantizing,
    Reading,
    Reduction,
    Repeating,
    Reshaping,
    Resizing,
    Retyping,
    Selecting,
    Splitting,
    Storing,
    Tensor,
    Transforming,
    Violation,
    element_type,
    numpy_dtype,
)
from irrun.spec.dtypes import ELEMENT_TYPES
from irrun.spec.op import CONTEXT, PARTS
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
    todo, seen, found = [op.rule, op.kernel, op.folded and op.folded.op.rule], set(), set()
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
    `name`, expects a `Violation`, or one that is `tolerated`, and compares with the label.
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
        refused = "Violation" in names and raises
        if "name" in names and (refused or "tolerated" in names) and compared:
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
    keywords = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} - CONTEXT - PARTS
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    assert takes_all or keywords == {attr.keyword for attr in op.attrs}
    given = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is not p.empty}
    assert given == {*op.parts}, "a default stands once, in its Attr, unless an engine may have something quicker"


IN_FULL = {"MaxPool-14", "AvgPool-14", "AvgPool-16"}
"""Versions that are declared like those before them all the same."""

DECLARED = ("types", "inputs", "outputs", "attrs", "symbolic", "view_of", "traits")


def test_a_later_version_is_declared_as_a_variation_of_the_one_before():
    repeated = set()
    for name, keywords in declarations():
        op = OPS[name]
        before = max((o for o in OPS.values() if o.type == op.type and o.version < op.version), key=lambda o: o.version)
        same = {part for part in DECLARED if part in keywords and part_of(op, part) == part_of(before, part)}
        if "of" in keywords:
            assert not same, f"{name} declares what it has anyhow"
        elif len(same) > 2:
            repeated.add(name)
    assert repeated == IN_FULL


def declarations() -> Iterator[tuple[str, set[str]]]:
    """Of ops that have an earlier version: what stands in `@op(...)` and `variation(...)`."""
    for path in sorted((Path(__file__).parents[1] / "opsets").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Name(id="op" | "variation" as form), args=[ast.Constant(value=str(name)), *_]):
                    if any(op.type == OPS[name].type and op.version < OPS[name].version for op in OPS.values()):
                        keywords = {keyword.arg for keyword in node.keywords}
                        yield name, keywords | {"of"} if form == "variation" else keywords


def part_of(op: Op, part: str) -> object:
    value = getattr(op, part)
    if part == "traits":
        return [trait if isinstance(trait, tuple) else type(trait) for trait in value]
    return tuple(value) if isinstance(value, list) else value


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


ATTRIBUTES = {
    "min": -1.5,
    "max": 1.5,
    "alpha": 0.5,
    "destination_type": "i32",
    "special_zero": False,
    "strides": (1, 2),
    "dilations": (1, 1),
    "levels": 4,
}
"""Values of attributes that have no default."""


def ops_that_are(kind):
    chosen = {name: op for name, op in OPS.items() if op.trait(kind)}
    return pytest.mark.parametrize("op", chosen.values(), ids=chosen)


pytestmark = pytest.mark.filterwarnings("ignore:.* are shifted out here")  # of numbers that are drawn for all ops


def call(op: Op, *inputs, **attrs):
    required = {attr.keyword: ATTRIBUTES.get(attr.keyword) for attr in op.attrs if attr.default is REQUIRED}
    return op(*inputs, **(required | attrs))


def elements(op: Op, port: int, shape: tuple[int, ...], wanted: str = "f32"):
    """Seeded data for an input of an op, as `wanted` or as another type that it takes; none of the integers is 0."""
    allowed = op.types.get(op.inputs[port].type, {op.inputs[port].type})
    name = next(type for type in (wanted, "f32", "i32", "boolean") if type in allowed)
    random = np.random.default_rng([port, *shape])
    if name == "boolean":
        return random.random(shape) < 0.5
    return (random.choice([-3, -1, 1, 2, 4], shape) if name == "i32" else random.normal(0, 2, shape)).astype(
        numpy_dtype(name)
    )


def elementwise_inputs(op: Op, shapes, wanted: str):
    parameters = [np.arange(1.0, 4.0) if "num_" in port.shape else np.array(1.0) for port in op.inputs]
    return [
        *(elements(op, port, shape, wanted) for port, shape in enumerate(shapes)),
        *(parameter.astype(elements(op, 0, (1,), wanted).dtype) for parameter in parameters[len(shapes) :]),
    ]


@pytest.mark.parametrize("wanted", ["f32", "i32", "boolean"])
@ops_that_are(Elementwise)
def test_an_elementwise_op_commutes_with_every_change_of_places(op, wanted):
    arity = op.trait(Elementwise).arity
    inputs = elementwise_inputs(op, [(2, 3, 4)] * arity, wanted)
    result = call(op, *inputs)

    def changed(change):
        return call(op, *map(change, inputs[:arity]), *inputs[arity:])

    np.testing.assert_array_equal(changed(lambda data: data.transpose(2, 0, 1)), result.transpose(2, 0, 1))
    np.testing.assert_array_equal(changed(lambda data: data.reshape(6, 4)), result.reshape(6, 4))
    np.testing.assert_array_equal(changed(lambda data: data[1:, ::-2]), result[1:, ::-2])


@pytest.mark.parametrize("wanted", ["f32", "i32", "boolean"])
@ops_that_are(Elementwise)
def test_an_elementwise_op_broadcasts_as_its_trait_says(op, wanted):
    trait = op.trait(Elementwise)
    for small in ((4,), (3, 1), (2, 1, 4), (1, 1, 1), ()):
        shapes = [(2, 3, 4), small, (2, 3, 4)][: trait.arity]
        inputs = elementwise_inputs(op, shapes, wanted)
        full = [np.broadcast_to(array, (2, 3, 4)) if n < trait.arity else array for n, array in enumerate(inputs)]
        np.testing.assert_array_equal(call(op, *inputs), call(op, *full))
    if trait.broadcast == "slopes":
        data, slopes = elementwise_inputs(op, [(2, 3, 3), (3,)], wanted)
        np.testing.assert_array_equal(call(op, data, slopes), call(op, data, np.broadcast_to(slopes[:, None], (3, 3))))
        with pytest.raises(Violation):
            call(op, slopes, data)


@pytest.mark.parametrize("wanted", ["f32", "i32", "boolean"])
@ops_that_are(Elementwise)
def test_a_commutative_op_takes_its_inputs_in_any_order(op, wanted):
    trait = op.trait(Elementwise)
    if trait.arity != 2:
        assert not trait.commutative
        return
    shapes = [(2, 3, 4), (2, 3, 4) if trait.broadcast == "slopes" else (3, 1)]
    a, b = elementwise_inputs(op, shapes, wanted)
    same = np.array_equal(call(op, a, b), call(op, b, a), equal_nan=True)
    assert same == trait.commutative


NOT_ELEMENTWISE = {"CumSum-3", "SegmentMax-16", "LogSoftmax-5", "SoftMax-1", "SoftMax-8"}


@ops_that_are(Retyping)
def test_outputs_of_a_retyping_op_are_inputs_where_types_are_the_same(op):
    inputs = [elements(op, port, (2, 3)) for port in range(len(op.inputs))]
    results = call(op, *inputs) if "destination_type" not in op.attr_names else op(*inputs, destination_type="f32")
    for array, result in zip(inputs, results if isinstance(results, tuple) else (results,), strict=False):
        assert result.dtype == array.dtype
        np.testing.assert_array_equal(result, array)


@ops_that_are(Resizing)
@pytest.mark.parametrize("sizes", [False, True])
def test_a_resizing_op_whose_sizes_stay_gives_its_input(op, sizes):
    """Even by scales that are not quite 1."""
    data, targets = elements(op, 0, (2, 3, 5)), {"i": np.array([3, 5]), "f": np.float32([1.1, 1.05])}
    given = [targets["f" if "SCALES" in port.type or not sizes else "i"] for port in op.inputs[1:-1]]
    if len(given) == 2:
        given = [targets["i"], targets["f"]]
    words = {attr.keyword: attr.kind.words for attr in op.attrs}
    rule = "sizes" if sizes else "scales"
    for mode, transform in itertools.product(words["mode"], words["coordinate_transformation_mode"]):
        attrs = {"mode": mode, "coordinate_transformation_mode": transform, "shape_calculation_mode": rule}
        for antialias in (False, True):
            result = op(data, *given, np.array([1, 2]), **attrs, antialias=antialias)
            np.testing.assert_array_equal(result, data)


@ops_that_are(Resizing)
@pytest.mark.parametrize("pads", [(0, 0), (0, 1)])
def test_a_resizing_op_says_where_all_it_gives_are_elements_of_its_input(op, pads):
    data, sizes, scales = 3 + elements(op, 0, (2, 3, 5)), np.array([4, 9]), np.float32([4 / 3, 1.8])
    given = [sizes] if len(op.inputs) == 3 else [sizes, scales]
    (words,) = (attr.kind.words for attr in op.attrs if attr.keyword == "mode")
    for mode in words:
        attrs = {"mode": mode, "shape_calculation_mode": "sizes", "pads_begin": pads, "pads_end": pads}
        found = op(data, *given, np.array([1, 2]), **attrs)
        assert op.trait(Resizing).keeps(op.defaults | attrs) == np.isin(found, data).all()


def test_the_ops_of_the_elementwise_categories_have_the_trait():
    pages = ("arithmetic/", "activation/", "comparison/", "logical/", "bitwise/", "type/convert-1.rst")
    members = {op.name for op in OPS.values() if re.search(r"^Source: (.*)", op.__doc__, re.M)[1].startswith(pages)}
    assert len(members) > 70
    assert {name for name in members if not OPS[name].trait(Elementwise)} == NOT_ELEMENTWISE


@ops_that_are(Measuring)
def test_the_shape_is_measured_whatever_the_elements_are(op):
    for shape in ((), (0, 3), (2, 3, 4)):
        assert call(op, np.full(shape, np.nan, np.float32)).tolist() == list(shape)


@ops_that_are(Lookup)
def test_a_lookup_takes_slices_of_its_table_by_its_indices(op):
    trait = op.trait(Lookup)
    assert [port.name for port in op.inputs] == [trait.table, trait.indices, trait.axis]
    table, indices = elements(op, 0, (4, 3)), np.array([[2, 0], [3, 3]], np.int64)
    np.testing.assert_array_equal(call(op, table, indices, np.array(0)), table[indices])
    np.testing.assert_array_equal(call(op, table.T, indices, np.array(1)), table.T[:, indices])


FUNCTIONS = {"add": 7, "subtract": 3, "multiply": 10}
"""What these make of 5 and 2."""


@ops_that_are(Elementwise)
def test_an_elementwise_op_is_the_function_that_its_trait_names(op):
    trait = op.trait(Elementwise)
    if trait.function is not None:
        a, b = elementwise_inputs(op, [(2, 3), (3,)], "f32")
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(call(op, a, b), getattr(np, trait.function)(a, b))
    if op.type in ("Add", "Subtract", "Multiply"):
        assert call(op, np.float32(5), np.float32(2)) == FUNCTIONS[trait.function]


@ops_that_are(Bounded)
def test_no_result_is_below_the_bound_of_its_trait(op):
    attrs = {attr.keyword: ATTRIBUTES[attr.keyword] for attr in op.attrs if attr.default is REQUIRED}
    data = np.float32([-np.inf, -3e38, -100, -1.7, -0.0, 0, 2, np.inf])
    assert call(op, data).min() >= op.trait(Bounded).least(attrs)


@ops_that_are(Normalizing)
def test_a_normalization_does_not_see_where_its_input_begins_and_how_far_it_reaches(op):
    data = np.random.default_rng(1).normal(size=(2, 4, 3, 5))
    others = [np.array([2, 3])] if len(op.inputs) == 2 else [np.ones(4)] * (len(op.inputs) - 1)
    given = {
        "across_channels": True,
        "eps": 1e-12,
        "epsilon": 1e-12,
        "eps_mode": "inside_sqrt",
        "normalize_variance": True,
        "num_groups": 2,
    }
    attrs = {name: value for name, value in given.items() if name in {attr.keyword for attr in op.attrs}}
    others = [other.astype(np.float64) if other.size == 4 else other for other in others]
    np.testing.assert_allclose(op(data, *others, **attrs), op(7 + 3 * data, *others, **attrs), atol=1e-9)


@ops_that_are(Selecting)
def test_a_selection_gives_elements_of_its_first_input_by_their_order_alone(op):
    window = {"kernel": (2, 2), "strides": (1, 1), "pads_begin": (1, 1), "pads_end": (0, 0)}
    data = elements(op, 0, (1, 2, 3, 4))
    first, second = (call(op, values, **window) for values in (data, 3 * data + 1))
    first, second = (values[0] if isinstance(values, tuple) else values for values in (first, second))
    assert np.isin(first, data).all()
    np.testing.assert_array_equal(second, 3 * first + 1)


@ops_that_are(Selecting)
@pytest.mark.parametrize(
    ("kernel", "stride", "dilation", "begin", "end", "rounding"),
    [
        (2, 1, 1, 1, 1, "floor"),
        (2, 1, 1, 2, 0, "floor"),
        (2, 2, 1, 0, 2, "floor"),
        (2, 2, 1, 0, 1, "ceil"),
        (2, 2, 1, 0, 0, "ceil"),
        (1, 3, 1, 0, 1, "ceil"),
        (2, 1, 5, 1, 4, "floor"),
        (3, 1, 2, 2, 2, "floor"),
    ],
)
def test_a_selection_says_where_some_are_of_nothing(op, kernel, stride, dilation, begin, end, rounding):
    dilated = any(attr.keyword == "dilations" for attr in op.attrs)
    window = {"kernel": (kernel,), "strides": (stride,), "pads_begin": (begin,), "pads_end": (end,)}
    window |= {"rounding_type": rounding} | ({"dilations": (dilation,)} if dilated else {})
    data = elements(op, 0, (1, 2, 4))
    found = call(op, data, **window)
    found = found[0] if isinstance(found, tuple) else found
    assert op.trait(Selecting).whole(op.defaults | window, data.shape, found.shape) == np.isin(found, data).all()


@ops_that_are(Splitting)
def test_parts_lie_one_behind_the_other_along_the_axis_of_the_trait(op):
    data = elements(op, 0, (2, 6, 3))
    others = {"axis": np.int64(1), "split_lengths": np.int64([1, 3, 2])}
    assert op.trait(Splitting).axis == "axis"
    parts = call(op, data, *(others[port.name] for port in op.inputs[1:]), **({"num_splits": 3} if op.attrs else {}))
    assert len(parts) == 3
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), data)


@ops_that_are(Filling)
def test_what_nothing_makes_is_the_lowest_of_its_type(op):
    trait = op.trait(Filling)
    assert call(op, np.float16([7]), np.array([1]), **{trait.mode: trait.word}).tolist() == [-65504, 7]


@ops_that_are(Quantizing)
def test_a_quantization_leaves_as_many_values_as_its_trait_says(op):
    trait = op.trait(Quantizing)
    assert tuple(port.name for port in op.inputs[1:]) == trait.limits
    data = np.linspace(-2, 5, 1000, dtype=np.float32)
    limits = [np.float32(value) for value in (-1, 2, 3, 9)]
    assert np.unique(call(op, data, *limits, **{trait.levels: 4})).tolist() == [3, 5, 7, 9]


@ops_that_are(Converting)
def test_a_conversion_keeps_values_that_fit(op):
    data = np.float32([[1, 2], [-3, 0]])
    like = [np.float16(0)] if len(op.inputs) > 1 else []
    for type in () if like else ("f16", "f32", "f64", "i8", "i64"):
        assert op(data, destination_type=type).tolist() == data.tolist()
    if like:
        assert op(data, *like).tolist() == data.tolist()


@ops_that_are(MatrixProduct)
def test_a_product_of_matrices_transposes_what_its_attributes_say(op):
    trait, (a, b) = op.trait(MatrixProduct), (elements(op, 0, (2, 3, 4)), elements(op, 1, (4, 5)))
    expected = np.matmul(a, b)
    for first in (False, True):
        for second in (False, True):
            attrs = {trait.transpose_a: first, trait.transpose_b: second}
            result = call(op, a.swapaxes(1, 2) if first else a, b.T if second else b, **attrs)
            np.testing.assert_allclose(result, expected, 1e-5, 1e-6)


@ops_that_are(Joining)
def test_a_join_lays_its_inputs_one_behind_the_other(op):
    a, b = np.zeros((2, 3)), np.ones((2, 1))
    assert call(op, a, b, **{op.trait(Joining).axis: 1}).tolist() == [[0, 0, 0, 1]] * 2


@ops_that_are(Cutting)
def test_a_cut_looks_at_its_first_input_between_any_bounds(op):
    assert [port.name for port in op.inputs[1:3]] == list(op.trait(Cutting).bounds)
    assert op.view_of == op.inputs[0].name
    data = elements(op, 0, (5,))
    far = [-(2**62), -7, -5, -1, 0, 2, 5, 9, 2**62]
    for start, stop, step in itertools.product(far, far, (-2, -1, 1, 3)):
        given = data, np.int64([start]), np.int64([stop]), np.int64([step])
        result = call(op, *given)
        assert result.tolist() == data.tolist()[start:stop:step]
        assert result.base is not None
        assert op.infer([Tensor.of(array) for array in given], {}).outputs[0].shape == result.shape


@ops_that_are(Repeating)
def test_a_repetition_has_the_shape_of_its_second_input(op):
    data = elements(op, 0, (2, 1, 3))
    np.testing.assert_array_equal(call(op, data, np.array([4, 2, 5, 3])), np.broadcast_to(data, (4, 2, 5, 3)))


@ops_that_are(Attending)
def test_an_attention_broadcasts_queries_keys_the_mask_and_the_sink(op):
    query, key, value = (
        elements(op, port, shape) for port, shape in enumerate([(2, 3, 4, 8), (2, 1, 5, 8), (1, 5, 6)])
    )
    mask = np.float32(np.arange(20).reshape(4, 5) % 3)
    assert all(port.optional for port in op.inputs[3:])
    number = op.trait(Attending).sink
    between, sink = [None] * (number - 4), np.float32([[[[0.5]], [[1.0]], [[2.0]]]])
    full = [np.broadcast_to(array, (2, 3, *array.shape[-2:])) for array in (query, key, value, mask)]
    for others, broadcast in (((), ()), ((*between, sink), (*between, np.broadcast_to(sink, (2, 3, 4, 1))))):
        found = call(op, query, key, value, mask, *others, causal=False)
        np.testing.assert_allclose(found, call(op, *full, *broadcast, causal=False), 1e-5, 1e-6)
        scores = np.exp(query @ np.swapaxes(key, -1, -2) * 8**-0.5 + mask)
        weights = scores.sum(-1, keepdims=True) + (np.exp(sink) if others else 0)
        np.testing.assert_allclose(found, scores / weights @ value, 1e-5, 1e-6)


@pytest.mark.parametrize("kind", [Reading, Storing])
def test_ops_of_variables_name_them(kind):
    chosen = [op for op in OPS.values() if op.trait(kind)]
    assert {op.type for op in chosen} == {"ReadValue" if kind is Reading else "Assign"}
    for op in chosen:
        assert op.trait(kind).variable in op.attr_names
        assert op.context == {"state"}


@ops_that_are(Permutation)
def test_a_permutation_takes_its_order_from_the_input_that_it_names(op):
    assert [port.name for port in op.inputs].index(op.trait(Permutation).order) == 1
    data = elements(op, 0, (2, 3, 4))
    np.testing.assert_array_equal(call(op, data, np.array([2, 0, 1])), data.transpose(2, 0, 1))
    np.testing.assert_array_equal(call(op, data, np.array([], np.int64)), data.transpose(2, 1, 0))


@ops_that_are(Reshaping)
def test_a_reshaping_keeps_the_elements_in_order(op):
    data = elements(op, 0, (2, 1, 6))
    result = call(op, data, np.array([1, 3, 4] if op.type == "Reshape" else [1]))
    assert result.shape != data.shape
    assert result.ravel().tolist() == data.ravel().tolist()


@ops_that_are(Padding)
def test_a_padding_adds_what_its_inputs_say(op):
    trait = op.trait(Padding)
    assert [port.name for port in op.inputs][1:] == [trait.begins, trait.ends, trait.fill]
    data = np.array([[1, 2], [3, 4]])
    filled = call(op, data, np.array([1, 0]), np.array([0, 2]), np.array(9), **{trait.mode: "constant"})
    assert filled.tolist() == [[9, 9, 9, 9], [1, 2, 9, 9], [3, 4, 9, 9]]
    zeros = call(op, data, np.array([1, 0]), np.array([0, 0]), **{trait.mode: "constant"})
    assert zeros.tolist() == [[0, 0], [1, 2], [3, 4]]


@ops_that_are(Reduction)
def test_a_reduction_folds_the_axes_that_its_input_lists(op):
    trait = op.trait(Reduction)
    assert [port.name for port in op.inputs].index(trait.axes) == 1
    data = elements(op, 0, (2, 3, 4))
    kept = call(op, data, np.array([2, 0]), **{trait.keep_dims: True})
    assert kept.shape == (1, 3, 1)
    np.testing.assert_array_equal(call(op, data, np.array([2, 0]), **{trait.keep_dims: False}), kept.ravel())
    turned = call(op, data.transpose(2, 0, 1), np.array([0, 1]), **{trait.keep_dims: True})
    np.testing.assert_allclose(turned, kept.transpose(2, 0, 1), rtol=1e-6)


@ops_that_are(Transforming)
def test_each_element_is_a_sum_of_all_along_the_axes_that_are_transformed(op):
    assert op.inputs[1].name == op.trait(Transforming).axes
    data = np.random.default_rng(0).random((3, 5, 2))
    before = call(op, data, np.array([0]))
    for row in range(3):
        changed = data.copy()
        changed[row, 1] += 1
        differs = before != call(op, changed, np.array([0]))
        assert differs[:, 1].any(axis=-1).all()
        assert not np.delete(differs, 1, axis=1).any()


@ops_that_are(Reduction)
def test_a_reduction_is_linear_where_it_says_so(op):
    if element_type(elements(op, 0, (1,)).dtype) == "boolean":
        assert not op.trait(Reduction).linear
        return
    a, b = (np.array(row, np.float64) for row in ([3, -4, 8, -2], [1, 16, -2, 4]))
    both, *parts = (call(op, data, np.array([0])) for data in (2 * a + b, a, b))
    assert (both == 2 * parts[0] + parts[1]) == op.trait(Reduction).linear


@ops_that_are(Convolving)
def test_a_convolution_pads_its_spatial_axes_with_zeros(op):
    trait = op.trait(Convolving)
    data = elements(op, 0, (2, 3, 5, 6))
    filters = elements(op, 1, (3, 2, 1, 2, 3) if op.inputs[1].shape.startswith("[GROUPS") else (4, 3, 2, 3))
    padded = np.pad(data, [(0, 0), (0, 0), (1, 0), (2, 3)])
    begins, ends, auto_pad = trait.begins, trait.ends, trait.auto_pad
    result = call(op, data, filters, **{begins: (1, 2), ends: (0, 3), auto_pad: "explicit"})
    none = {begins: (0, 0), ends: (0, 0)}
    np.testing.assert_allclose(result, call(op, padded, filters, **none, **{auto_pad: "explicit"}), rtol=1e-5)
    ignored = {begins: (3, 3), ends: (3, 3), auto_pad: "valid"}
    np.testing.assert_allclose(result, call(op, padded, filters, **ignored), rtol=1e-5)


COUNTS = {
    # 2 x 3 results of 4 products each, and as many sums
    "MatMul-1": ([(2, 4), (4, 3)], {"transpose_a": False}, (2, 3), 48),
    # 1 x 4 x 6 x 7 results, each of 3 channels of 2 x 3 taps
    "Convolution-1": ([(1, 3, 7, 9), (4, 3, 2, 3)], {}, (1, 4, 6, 7), 2 * 168 * 18),
    # the same, each of the 2 channels of its group
    "GroupConvolution-1": ([(1, 4, 7, 9), (2, 2, 2, 2, 3)], {}, (1, 4, 6, 7), 2 * 168 * 12),
    # 3 x 5 x 5 elements, each laid as 2 channels of 2 x 2 taps
    "ConvolutionBackpropData-1": ([(1, 3, 5, 5), (3, 2, 2, 2)], {}, (1, 2, 6, 6), 2 * 75 * 8),
    "GroupConvolutionBackpropData-1": ([(1, 4, 5, 5), (2, 2, 3, 2, 2)], {}, (1, 6, 6, 6), 2 * 100 * 12),
    # 2 heads of 3 queries and 5 keys of 4 elements, then their 5 weights with values of 6
    "ScaledDotProductAttention-13": (
        [(1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 6)],
        {},
        (1, 2, 3, 6),
        2 * 30 * 4 + 2 * 30 * 6,
    ),
}


@ops_that_are(Products)
def test_products_are_counted(op):
    shapes, attrs, result, count = COUNTS[op.name]
    assert op.trait(Products).operations(shapes, attrs, result) == count


def test_an_op_has_no_trait_that_it_does_not_declare():
    assert OPS["MatMul-1"].trait(Elementwise) is None
    assert OPS["Add-1"].trait(Elementwise) == Elementwise(2, commutative=True, function="add")
