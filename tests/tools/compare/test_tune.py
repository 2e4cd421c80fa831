"""Layers that are marked `precise`: which of them a device computes in few bits, and which it heeds the mark of."""

from dataclasses import replace

import numpy as np

import irrun
from irrun.ir.text_edits import mark_precise
from irrun.ir.writer import model_bytes
from irrun.records import dataclass
from irrun.tools.compare.comparison import reference
from irrun.tools.compare.replay import Course
from irrun.tools.compare.sides.contract import Observation, Runtime
from irrun.tools.tune import tune


@dataclass(frozen=True)
class Device:
    """It names the type of compressed weights, and what multiplies by them in its kernel's name alone."""

    expected: np.ndarray
    kernel: str = "brgemm_avx512_bf16"
    name: str = "a device"
    precision: str | None = None

    def runtime(self):
        return {"y": Runtime("i8", self.kernel)}

    def outputs(self, steps):
        return [{"y": self.expected + np.float32(0.01 * self.kernel.endswith("bf16"))} for _ in steps]

    def observe(self, steps):
        return [Observation(outputs, {"y:0": outputs["y"]}, 0.0) for outputs in self.outputs(steps)]

    def marked(self, path):
        assert b"precise" in path.read_bytes()
        return replace(self, kernel="brgemm_avx512_f32")


def test_what_multiplies_by_compressed_weights_is_marked_and_heeded(tmp_path):
    with irrun.build("m") as g:
        scaled = g.Multiply(g.Convert(np.int8([[1, 2], [3, 4]]), destination_type="f32"), np.float32(0.5))
        g.Result(g.MatMul(g.Parameter("f32[1,2]", name="x"), scaled, name="y"), name="y")
    irrun.write_model(g.model, tmp_path / "m.xml")
    x = {"x": np.float32([[1, 2]])}
    found = tune(reference(tmp_path / "m.xml"), Device(np.float32([[3.5, 5]])), [Course("inputs", [x])], ())
    assert (found.marks, found.candidates, found.heeded, found.passes) == (("y",), 1, 1, True)


def test_a_model_that_was_changed_in_memory_is_tuned_as_it_is_and_not_as_its_file_is(tmp_path):
    with irrun.build("m") as g:
        x = g.Parameter("f32[1,2]", name="x")
        g.Result(g.MatMul(x, np.float32([[1, 2], [3, 4]]), name="old"), name="y")
    irrun.write_model(g.model, tmp_path / "m.xml")
    model = irrun.read_model(tmp_path / "m.xml")
    model.rename(model.layer("old"), "y")
    model.set_constant(model.layer("y").inputs[1].layer, np.float32([[1, 0], [0, 1]]))
    x = {"x": np.float32([[1, 2]])}
    found = tune(reference(model), Device(np.float32([[1, 2]])), [Course("inputs", [x])], ())
    assert (found.marks, found.passes) == (("y",), True)
    assert b'name="y" type="MatMul"' in found.content
    assert found.content == mark_precise(model_bytes(model)[0], ["y"])
