"""Programs as readable text."""

import numpy as np
from engines.toy import Toy

import irrun
from run.engines import Odd, executor, unchanged
from run.models import ADD, PLAIN, anything, branch, i64, loop, model, saved

F32 = np.float32


def test_a_program_for_any_inputs(tmp_path):
    b = model()
    y = b.one("MatMul-1", anything(b, "f4", (-1, 2)), b.constant(F32([[1, 2], [3, 4]])), **PLAIN)
    y = b.one("Transpose-1", b.one("ReLU-1", y), i64(b, [1, 0]))
    b.result(b.one("SoftMax-1", y, axis=0))
    b.result(b.constant(np.arange(9)))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine="numpy")
    assert str(ours._whole.preparation.general.program) == SYMBOLIC
    ours.run([np.zeros((3, 2), F32)])
    (kept,) = ours._whole.preparation._kept.values()
    assert str(kept.program) == SIZED


SYMBOLIC = """\
program(%0: f32[x0.0, 2]) -> %7, %3
  %1 = constant f32[2, 2] = [[1.0, 2.0], [3.0, 4.0]]
  %2 = constant i64[2] = [1, 0]
  %3 = constant i64[9]
  %4: f32[x0.0, 2] = MatMul-1(%0, %1)  # `MatMul_2`, kernel, open, frees %0
  %5: f32[x0.0, 2] = ReLU-1(%4)  # `ReLU_3`, kernel, open, frees %4
  %6: f32[2, x0.0] = Transpose-1(%5, %2)  # `Transpose_5`, kernel, open
  %7: f32[2, x0.0] = SoftMax-1(%6)  # `SoftMax_6`, kernel, open, frees %5 %6"""
SIZED = """\
program(%0: f32[3, 2] @0) -> %7, %3
  %1 = constant f32[2, 2] = [[1.0, 2.0], [3.0, 4.0]]
  %2 = constant i64[2] = [1, 0]
  %3 = constant i64[9]
  %5: f32[3, 2] @64 = MatMul-1(%0, %1) + ReLU-1(%4)  # `MatMul_2`, numpy
  %6: f32[2, 3] in %5 = Transpose-1(%5, %2)  # `Transpose_5`, view
  %7: f32[2, 3] @0 = SoftMax-1(%6)  # `SoftMax_6`, numpy"""


class Last(Toy):
    """Takes the first layer, and gives it from its last element to the first."""

    def compile(self, work):
        self._draw.random, self._draw.randrange = (lambda: 0.9), (lambda _: 0)
        return super().compile(work) if work.name == "SoftMax-1" and work.attrs["axis"] == 0 else None


def test_a_reorder_and_who_reads_it(tmp_path, monkeypatch):
    b = model()
    b.result(b.one("SoftMax-1", b.one("SoftMax-1", anything(b, "f4", (2, 2)), axis=0), axis=1))
    ours = executor(saved(b, tmp_path), [Last(0), Odd(unchanged)], monkeypatch)
    ours.run([np.zeros((2, 2), F32)])
    (kept,) = ours._whole.preparation._kept.values()
    assert str(kept.program) == LAID


LAID = """\
program(%0: f32[2, 2] @0) -> %2
  %1: f32[2, 2] @64 = SoftMax-1(%0)  # `SoftMax_1`, toy
  %3: f32[2, 2] @0 = Reorder-0(%1)  # `SoftMax_1`, toy
  %2: f32[2, 2] @64 = SoftMax-1(%1)  # `SoftMax_2`, odd, reads %3 for %1"""


def test_bodies_are_indented(tmp_path):
    inner, b = model(), model()
    p = anything(inner, "f4", (1,))
    bodies = []
    for name in ("Exp-1", "Tanh-1"):
        body = model()
        bodies.append((body, body.one(name, anything(body, "f4", (1,)))))
    y = branch(inner, inner.one("Less-1", p, inner.constant(F32([2])), **ADD), bodies, p)
    (last,) = loop(b, inner, anything(b, "i8", ()), [(p, anything(b, "f4", (1,)))], [y], [(y, p)], label="repeat")
    b.result(last)
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine="reference")
    assert str(ours._whole.preparation.general.program) == BODIES


BODIES = """\
program(%0: i64[], %1: f32[1]) -> %3
  %2 = constant boolean[] = True
  %3: f32[1] = Loop-5(%0, %2, %1)  # `repeat`, kernel, open
    body:
    program(%0: f32[1]) -> %4, %2
      %1 = constant f32[1] = [2.0]
      %2 = constant boolean[] = True
      %3: boolean[1] = Less-1(%0, %1)  # `Less_2`, kernel
      %4: f32[1] = If-8(%3, %0)  # `If_3`, kernel
        then_body:
        program(%0: f32[1]) -> %1
          %1: f32[1] = Exp-1(%0)  # `Exp_1`, kernel, frees %0
        else_body:
        program(%0: f32[1]) -> %1
          %1: f32[1] = Tanh-1(%0)  # `Tanh_1`, kernel, frees %0"""
