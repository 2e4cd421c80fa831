"""The op library against the opset tables in the headers of the openvino wheel."""

import re
from collections import defaultdict
from pathlib import Path

import openvino
from conformance.harness import OPS as HELD

from irrun.spec.op import OPSETS
from irrun.spec.registry import registry

HEADERS = Path(openvino.__file__).parent / "include" / "openvino" / "opsets"
ENTRY = re.compile(r"^_OPENVINO_OP_REG\((\w+), ov::op::(v\d+)(?:::\w+)?\)", re.MULTILINE)
REPAIRED = {"MVN", "ROIPooling", "ReorgYolo"}
"""Types that the reader takes from opset2 where a file has them in opset1."""
LATER_OPS = registry().ops.keys() - HELD.keys()
"""What the specification has and the wheel does not yet."""


def tables():
    """Header name and namespace by opset, such as {7: {("Relu", "v0"), ...}}."""
    return {n: set(ENTRY.findall((HEADERS / f"opset{n}_tbl.hpp").read_text())) for n in OPSETS}


def test_every_op_of_every_opset_is_declared():
    missing = {(name, space) for n, pairs in tables().items() for name, space in pairs if not find(name, n)}
    assert not missing


def find(name, opset):
    return registry().find(name, f"opset{opset}")


def test_every_version_is_an_op_of_its_own_and_no_op_is_invented():
    pairs = defaultdict(set)
    for n, entries in tables().items():
        for name, space in entries:
            if op := find(name, n):
                pairs[op.name].add((name, space))
    assert {op: held for op, held in pairs.items() if len(held) != 1} == {}
    assert set(pairs) == set(registry().ops) - LATER_OPS


def test_an_opset_holds_what_its_header_lists():
    listed = defaultdict(set)
    for n, entries in tables().items():
        for name, _ in entries:
            if op := find(name, n):
                listed[op.name].add(n)
    repaired = {op.name: {1} if op.type in REPAIRED and op.version <= 2 else set() for op in registry().ops.values()}
    ours = {op.name: set(registry().opsets(op)) - repaired[op.name] for op in registry().ops.values()}
    assert ours == {name: {17} if name in LATER_OPS else listed[name] - repaired[name] for name in ours}
