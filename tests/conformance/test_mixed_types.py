"""Inputs of several floating-point types where the specification has one are taken where OpenVINO takes them."""

from dataclasses import replace

import numpy as np
import openvino as ov
import pytest

import irrun
from conformance.harness import Case, Const, all_cases, compare, engines, model_of, ours, reference
from irrun.spec.dtypes import element_type
from irrun.spec.op import FLOAT, Input, Op
from irrun.spec.registry import registry

TYPES = {"f16": np.float16, "f32": np.float32}

STRICT = {"SparseFillEmptyRows-16"}
"""Ops whose constraints are all errors, though OpenVINO takes a value to fill rows with of another type."""


def array_of(item):
    return np.asarray(item.array if isinstance(item, Const) else item)


def port_of(op: Op, number: int) -> Input:
    return op.inputs[min(number, len(op.inputs) - 1)]


def shared(case: Case) -> list[int]:
    """The floating-point inputs of a case that have their type symbol in common with an input before."""
    op, seen, found = registry().ops[case.op], set(), []
    for number, item in enumerate(case.inputs):
        port = port_of(op, number)
        if element_type(array_of(item).dtype) in FLOAT and port.type in op.types:
            found += [number] if port.type in seen else []
            seen.add(port.type)
    return found


def cases():
    """A case of every op and number of inputs that has such inputs."""
    found = {}
    for case in all_cases():
        op = registry().ops[case.op]
        plain = not (case.dynamic or case.deviates or case.crashes or case.later or case.op in STRICT)
        fits = op.inputs and op.least_inputs <= len(case.inputs) and (len(case.inputs) <= len(op.inputs) or op.variadic)
        if plain and fits and shared(case):
            found.setdefault((case.op, len(case.inputs)), case)
    return list(found.values())


def typed(case: Case, number: int, type: str, others: str) -> list:
    def cast(position, item):
        array = array_of(item)
        if element_type(array.dtype) not in FLOAT:
            return item
        with np.errstate(over="ignore"):
            array = array.astype(TYPES[type if position == number else others])
        return Const(array) if isinstance(item, Const) else array

    return [cast(position, item) for position, item in enumerate(case.inputs)]


@pytest.mark.parametrize("case", cases(), ids=str)
def test_mixed_types_are_taken_where_openvino_takes_them(case, tmp_path):
    path, op = tmp_path / "model.xml", registry().ops[case.op]
    for number in shared(case):
        for type, others in (("f32", "f16"), ("f16", "f32")):
            inputs, port = typed(case, number, type, others), port_of(op, number)
            where = f"input {number} of {type}, the others {others}"
            try:
                model, arrays = model_of(replace(case, inputs=inputs))
            except RuntimeError:
                assert not port.lenient, f"OpenVINO refuses {where}"
                continue
            assert port.lenient, f"OpenVINO takes {where}"
            ov.serialize(model, path, path.with_suffix(".bin"))
            report = irrun.validate(path)
            assert [found.code for found in report.diagnostics] == ["W933"], "\n".join(map(str, report.diagnostics))
            expected = reference(path, arrays)
            for engine in engines():
                compare(ours(report.model, arrays, (), engine), expected, replace(case, rtol=1e-3, atol=1e-3), where)


@pytest.mark.filterwarnings("ignore:.*E303")
def test_booleans_are_counted_where_masks_say_which_text_a_token_belongs_to(tmp_path):
    """As converters write `(positions.diff() != 1).cumsum()` of PyTorch, with an output that is declared as boolean."""
    x = ov.opset13.parameter([1, -1], ov.Type.boolean, name="x")
    count = ov.opset13.cum_sum(x, ov.opset13.constant(np.int64(1)))
    pairs = [ov.opset13.unsqueeze(count, ov.opset13.constant(np.int64(axis))) for axis in (1, 2)]
    model = ov.Model([ov.opset13.equal(*pairs), ov.opset13.convert(count, ov.Type.i32)], [x])
    ov.save_model(model, tmp_path / "model.xml")
    (found,) = (own for own in irrun.validate(tmp_path / "model.xml").diagnostics if own.severity != "info")
    assert (found.code, found.message[:17]) == ("W952", "`data` is boolean")
    flags = np.array([[0, 1, 0, 1, 1, 0]], np.bool_)
    expected = list(ov.compile_model(model, "CPU")([flags]).values())
    assert expected[1].tolist() == [[0, 1, 1, 2, 3, 3]]
    for engine in ("reference", "auto"):
        results = irrun.GraphExecutor(tmp_path / "model.xml", engine=engine).run([flags]).values()
        for one, other in zip(results, expected, strict=True):
            np.testing.assert_array_equal(one, other)
