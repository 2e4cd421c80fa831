"""Values that become arrays when someone asks for them: constants that are not read, kernels that are not called."""

import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.check import ahead
from irrun.check.finite import HIGHEST, suspect
from irrun.check.infer import Inference
from irrun.ir.stored import Stored
from irrun.ir.weights import Weights
from irrun.spec.dtypes import numpy_dtype

TREE = Path(__file__).parent.parent


def stored(tmp_path, array):
    """A constant as it lies in a file, and the model that holds it."""
    net = Model()
    net.result(net.constant(array))
    model = irrun.read_model(net.save(tmp_path))
    (layer,) = (layer for layer in model.graph.layers if layer.type == "Const")
    return Stored(model.weights, model.weights.check(layer)), model


@pytest.mark.parametrize(
    "array",
    [
        np.array([True, False]),
        *(np.array([[1, 2, 3]], f"{kind}{width}") for kind in "iu" for width in (1, 2, 4, 8)),
        *(np.array([-1.5, np.inf, 0.25], f"f{width}") for width in (2, 4, 8)),
        np.array([-1.5, 3], ml_dtypes.bfloat16),
        np.array(-7),
        np.zeros((2, 0), np.int32),
    ],
    ids=lambda array: f"{array.dtype}{list(array.shape)}",
)
def test_the_numbers_of_a_constant_are_those_of_its_array(tmp_path, array):
    value, _ = stored(tmp_path, array)
    assert value.known
    assert value.size == array.size
    assert value.numbers() == array.ravel().tolist()
    assert value.array().dtype == array.dtype
    np.testing.assert_array_equal(value.array(), array)
    assert not value.array().flags.writeable
    assert value.array() is value.array()
    assert value.key == array.tobytes()


def test_a_constant_that_cannot_be_read_any_more_is_not_known(tmp_path):
    value, model = stored(tmp_path, np.arange(4))
    model.path.with_suffix(".bin").write_bytes(b"")
    assert not value.known
    assert (value.array(), value.numbers(), value.key) == (None, None, None)


def test_a_constant_that_has_been_read_stays(tmp_path):
    value, model = stored(tmp_path, np.arange(4))
    assert value.numbers() == [0, 1, 2, 3]
    model.path.with_suffix(".bin").write_bytes(b"")
    assert value.array().tolist() == [0, 1, 2, 3]


def test_a_file_is_read_where_a_value_is_asked_for(tmp_path, monkeypatch):
    net = Model()
    x = net.parameter("x", "f32", (2, 3))
    axes = net.constant(np.array([1]))
    (mean,) = net.layer("ReduceMean", [x, axes], [("f32", (2,))], keep_dims="false")
    (sum,) = net.layer("Add", [mean, net.constant(np.float32([1, 2]))], [("f32", (2,))])
    net.result(sum)
    read = []
    kept = Weights.read
    monkeypatch.setattr(Weights, "read", lambda self, blob: read.append(blob.element_type) or kept(self, blob))
    assert irrun.validate(net.save(tmp_path)).ok
    assert read == ["i64"]


def test_kernels_are_called_where_a_value_is_asked_for(tmp_path):
    net = Model()
    (half,) = net.layer("Convert", [net.constant(np.float16([0.5, 2]))], [("f32", (2,))], destination_type="f32")
    for _ in range(4000):  # far more than Python's frames
        (half,) = net.layer("Negative", [half], [("f32", (2,))])
    net.result(half)
    report = irrun.validate(net.save(tmp_path))
    *_, last = (node for node in report.inference.nodes.values() if node.layer.type == "Negative")
    assert last.outputs[0].known
    assert last.outputs[0].value.tolist() == [0.5, 2]


def test_a_kernel_that_fails_leaves_no_value():
    def kernel(x):
        raise ZeroDivisionError

    two = irrun.spec.Tensor("f32", (2,), np.float32([1, 2]))
    op = irrun.spec.op("Failing-1", inputs=[irrun.spec.Input("x", "f32", "[2]")])(kernel)
    inference = Inference(Weights(None))
    (tensor,) = ahead.computed_ahead(op, {}, [two], [irrun.spec.Tensor("f32", (2,))], {}, inference)
    assert tensor.content is not None
    assert (tensor.known, tensor.value, tensor.numbers) == (False, None, None)


@pytest.mark.parametrize(
    ("item", "known"),
    [(0.5, False), (3, True), (np.int64(3), True), (irrun.spec.fresh(), True), (2**31, False)],
)
def test_a_kernel_that_gives_what_the_integers_of_the_type_are_not_leaves_no_value(item, known):
    size = irrun.spec.fresh()
    one = irrun.spec.Tensor("i32", (1,), irrun.spec.Sizes([size]))
    op = irrun.spec.op("Halving-1", inputs=[irrun.spec.Input("x", "i32", "[1]")], symbolic=True)
    halving = op(lambda x: np.array([item, size], object))
    tensors = ahead.computed_ahead(halving, {}, [one], [irrun.spec.Tensor("i32", (2,))], {}, Inference(Weights(None)))
    assert (tensors is not None) == known


@pytest.mark.parametrize("type", HIGHEST)
def test_all_that_is_not_finite_issuspect(type):
    dtype = numpy_dtype(type)
    if dtype.itemsize > 2:
        numbers = np.array([np.nan, -np.nan, np.inf, -np.inf], dtype)
        usual = np.array([1, -1, 1e30, -1e-30, 0], dtype)
    else:
        every = np.arange(256**dtype.itemsize, dtype=f"u{dtype.itemsize}").view(dtype)
        finite = np.isfinite(every.astype(np.float32))
        numbers, usual = every[~finite], every[finite & (np.abs(every.astype(np.float32)) < 1e30)]
    assert all(suspect([usual.tobytes(), number.tobytes()], type) for number in numbers)
    assert not suspect([usual.tobytes()], type)


DEFERRED = """
import sys
from irrun.deferred import defer
defer("numpy")
import numpy, irrun.spec.op
before = "numpy.linalg" in sys.modules
{}
print(before, "numpy.linalg" in sys.modules, type(numpy) is type(sys))
"""


@pytest.mark.parametrize(
    ("statement", "loaded"),
    [
        ("pass", False),
        ("numpy.int8(1)", True),
        ("import numpy.fft; numpy.fft.fft", True),
        ("from numpy import add", True),
        ("import ml_dtypes; ml_dtypes.bfloat16(1)", True),
    ],
)
def test_a_package_is_loaded_where_it_is_used(statement, loaded):
    script = DEFERRED.format(statement)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=TREE)
    assert done.stdout.split() == ["False", str(loaded), str(loaded)]


@pytest.mark.parametrize(
    "statement", ["import textwrap; textwrap.dedent('')", "from textwrap import dedent; import textwrap"]
)
def test_a_module_that_is_no_package_is_loaded_where_it_is_used(statement):
    script = (
        "import sys\n"
        "from irrun.deferred import defer\n"
        "defer('textwrap')\n"
        "import textwrap\n"
        "before = 'wrap' in vars(textwrap)\n"
        f"{statement}\n"
        "print(before, type(textwrap) is type(sys), textwrap.wrap('a b', 1))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=TREE)
    assert done.stdout == "False True ['a', 'b']\n"


def test_what_is_known_of_a_module_needs_not_be_loaded():
    script = (
        "import sys\n"
        "from irrun.__main__ import UNUSED\n"
        "from irrun.deferred import defer\n"
        "defer('platform', **UNUSED['platform'])\n"
        "import platform, uuid\n"
        "known = platform.system()\n"
        "print('machine' in vars(platform), hasattr(platform, '__path__'), platform.machine() != '')\n"
        "print(known == platform.system(), 'machine' in vars(platform), hasattr(platform, '__path__'))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=TREE)
    assert done.stdout == "False False True\nTrue True False\n"


def test_a_run_uses_none_of_what_others_load(tmp_path):
    script = (
        "import os, sys\n"
        "before = {*sys.modules}  # what makes an installation editable needs some of them\n"
        "from irrun.__main__ import UNUSED, run\n"
        "leave = os._exit\n"
        "def end(status):\n"
        "    print([name for name in {*UNUSED} - before if type(sys.modules[name]) is type(sys)], flush=True)\n"
        "    leave(status)\n"
        "os._exit = end\n"
        "sys.argv[1:] = ['execute', 'samples/cnn/model.xml', '--random', '1', '--output',"
        f" {str(tmp_path / 'o.npz')!r}]\n"
        "run()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=TREE)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_what_is_loaded_already_stays():
    script = "import numpy, sys; from irrun.deferred import defer; defer('numpy'); print(sys.modules['numpy'] is numpy)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=TREE)
    assert done.stdout == "True\n"
