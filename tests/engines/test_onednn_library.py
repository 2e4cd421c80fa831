"""The library of oneDNN: where it is looked for, what its statuses do, its threads, and the memory that it is given."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from engines.onednn_works import ENGINE, computed, needs_onednn, normal, room, work_of
from numpy.lib.stride_tricks import as_strided
from numpy.testing import assert_allclose

from irrun.engines.onednn import bindings, load, tensors
from irrun.engines.onednn.engine import LATE
from irrun.engines.onednn.library import (
    BIAS,
    DST,
    INFERENCE,
    POST,
    SCRATCHPAD,
    SRC,
    SRC_1,
    WEIGHTS,
    Descriptor,
    Library,
)
from irrun.engines.onednn.posts import TANH
from irrun.engines.work import Post, Work

PLANTED = """
#include <stdio.h>
__attribute__((constructor)) static void loaded(void) { puts("planted"); }
"""


def process(code: str, folder: Path, **environment: str) -> str:
    """What a process prints that runs code in a folder."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


FORKING = """
import os, warnings
import numpy as np
import irrun
warnings.simplefilter("ignore")  # newer versions of Python warn of forks beside threads
with irrun.build("m", opset=13) as g:
    g.Result(g.ReLU(g.MatMul(g.Parameter("f32[256,256]", name="x"), np.ones((256, 256), np.float32))))
ones, model = np.ones((256, 256), np.float32), irrun.GraphExecutor(g.model, engine=sys.argv[1], threads=2)
def total(executor):
    return float(executor.run(ones)[0].sum())
before = total(model)
child = os.fork()
if not child:
    again = total(model), total(irrun.GraphExecutor(g.model, engine=sys.argv[1], threads=2))
    os._exit(0 if again == (before, before) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert total(model) == before == 256.0**3
"""


@needs_onednn
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("engine", ["auto", "onednn"])
def test_a_forked_child_computes_and_so_does_its_parent(engine, tmp_path):
    """OpenMP's threads are the parent's; a child that waits for them does so for ever."""
    process(FORKING.replace("sys.argv[1]", repr(engine)), tmp_path)


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A folder with files of the library's name wherever it could be looked for, which say so when they are loaded."""
    source = tmp_path / "planted.c"
    source.write_text(PLANTED)
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / bindings.FILE, source], check=True)
    except FileNotFoundError:
        pytest.skip("there is no compiler")
    for name in ("lib", "site-packages"):
        (tmp_path / name).mkdir()
        (tmp_path / name / bindings.FILE).write_bytes((tmp_path / bindings.FILE).read_bytes())
    information = tmp_path / "onednn_cpu_gomp-3.2.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: onednn-cpu-gomp\nVersion: 3.2\n")
    (information / "RECORD").write_text(f"{bindings.FILE},,\nlib/{bindings.FILE},,\n")
    return tmp_path


@pytest.mark.skipif(sys.platform != "linux", reason="oneDNN is looked for on Linux")
@pytest.mark.parametrize("installed", [True, False])
def test_a_planted_library_is_not_loaded(planted: Path, installed: bool) -> None:
    code = f"""
import sys
from pathlib import Path
import irrun.engines.onednn.engine
from irrun.engines.onednn import load
if not {installed}:
    sys.path[:] = [""]
engine = load(1)
print("loaded" if engine else "nothing", "planted" in Path("/proc/self/maps").read_text())
"""
    environment = {"LD_LIBRARY_PATH": f"{planted}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
    printed = process(code, planted, **environment)
    assert "planted" not in printed
    assert printed == ("loaded False\n" if installed and ENGINE else "nothing False\n")


def test_no_library_and_no_such_version(monkeypatch: pytest.MonkeyPatch) -> None:
    load_functions = bindings.load_functions.__wrapped__
    monkeypatch.setattr(bindings, "FILE", "libdnnl.so.none")
    assert load_functions() is None
    monkeypatch.undo()
    monkeypatch.setattr(bindings, "DISTRIBUTION", "onednn-of-nobody")
    assert load_functions() is None
    monkeypatch.undo()
    monkeypatch.setattr(bindings, "MAJOR", 99)
    assert load_functions() is None
    monkeypatch.undo()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert load_functions() is None


@needs_onednn
@pytest.mark.parametrize("asked", [False, True])
def test_a_profiler_is_told_of_code_where_it_is_asked_for(tmp_path: Path, asked: bool) -> None:
    code = """
import os
from pathlib import Path
from irrun.engines.onednn.library import INFERENCE, open_library
from irrun.engines.onednn.posts import TANH
library = open_library(1)
data = library.dense((64, 64))
library.primitive("eltwise_forward", INFERENCE, TANH, data, data, 0.0, 0.0).pending()[0]()
told = Path(f"/tmp/perf-{os.getpid()}.map")  # where perf looks
print(told.exists())
told.unlink(missing_ok=True)
"""
    environment = {"ONEDNN_JIT_PROFILE": "2"} if asked else {}
    assert process(code, tmp_path, **environment) == f"{asked}\n"


@needs_onednn
def test_the_library_is_found_by_little_more_than_a_look_at_files(tmp_path: Path) -> None:
    code = """
import sys
from irrun.engines.onednn import load
assert load(1)
print(sorted({"importlib.metadata", "email", "csv"} & set(sys.modules)))
"""
    assert process(code, tmp_path) == "[]\n"


@needs_onednn
def test_loading_leaves_the_environment_as_it_was(tmp_path: Path) -> None:
    code = """
import os
before = dict(os.environ)
from irrun.engines.onednn import load
assert load(1).threads == 1
assert dict(os.environ) == before
"""
    process(code, tmp_path)


def test_a_status_that_is_not_0_raises() -> None:
    with pytest.raises(bindings.OneDNNError, match="dnnl_it answered with status 2"):
        bindings.Statuses("dnnl_it", bindings.DONE)[2]
    possible = bindings.Statuses("dnnl_it", bindings.POSSIBLE)
    assert [possible[status] for status in (0, 2, 3)] == [True, False, False]
    with pytest.raises(bindings.OneDNNError, match="status 1"):
        possible[1]


@needs_onednn
def test_functions_refuse_what_they_are_not_declared_for() -> None:
    library = own_library()
    with pytest.raises(Exception, match="argument 2"):
        library.dll.dnnl_engine_create(None, "one", 0)
    with pytest.raises(bindings.OneDNNError, match="dnnl_engine_create answered with status 2"):
        library.made("engine_create", "engine_destroy", 77, 0)


def own_library() -> Library:
    assert ENGINE is not None
    return ENGINE._library


def tanh(library: Library, size: int):
    layout = library.dense((size,))
    primitive = library.primitive("eltwise_forward", INFERENCE, TANH, layout, layout, 0.0, 0.0)
    assert primitive is not None
    return primitive


MEMORY = normal(64)


@needs_onednn
@pytest.mark.parametrize(
    ("shape", "strides", "array"),
    [
        ((8,), (4,), np.broadcast_to(MEMORY[0], (8,))),
        ((8,), (4,), MEMORY[:8][::-1]),
        ((8,), (4,), MEMORY[:7]),
        ((4, 8), (32, 4), np.broadcast_to(MEMORY[:8], (4, 8))),
        ((4, 8), (32, 4), MEMORY[:32].reshape(4, 8)[::-1]),
        ((4, 8), (64, 4), MEMORY[:32].reshape(4, 8)),
        ((8, 2), (4, 32), MEMORY[:15]),
    ],
)
def test_no_memory_beyond_an_array_is_handed_over(shape: tuple[int, ...], strides: tuple[int, ...], array) -> None:
    library = own_library()
    layout = library.strided(shape, strides)
    assert layout is not None
    with pytest.raises(bindings.OneDNNError, match="is to be read or written as"):
        library.memory(layout, array)


@needs_onednn
def test_memory_with_gaps_and_at_odd_addresses_is_handed_over() -> None:
    library = own_library()
    every_second = as_strided(MEMORY, (4, 3), (64, 8))
    layout = library.strided((4, 3), (64, 8))
    assert layout is not None
    library.memory(layout, every_second)
    odd = np.frombuffer(room(40)[1:33].tobytes(), np.float32)
    library.memory(library.dense((8,)), odd)
    assert library.strided((4, 3), (0, 4)) is None
    assert library.strided((4, 3), (-12, 4)) is None


@needs_onednn
def test_threads_belong_to_the_engine_that_was_made_with_them(tmp_path: Path) -> None:
    code = """
import os, threading
import numpy as np
from irrun.engines.onednn import load
from irrun.engines.onednn.library import DST, INFERENCE, SRC
from irrun.engines.onednn.posts import TANH
from irrun.engines.work import Post, Work

def call(engine):
    library = engine._library
    layout = library.dense((1 << 20,))
    primitive = library.primitive("eltwise_forward", INFERENCE, TANH, layout, layout, 0.0, 0.0)
    return primitive.bind([(SRC, layout, data), (DST, layout, np.empty_like(data))], None)

def tasks():
    return len(os.listdir("/proc/self/task"))

data = np.ones(1 << 20, np.float32)
few, many = load(1), load(4)
one, four = call(few), call(many)
before = tasks()
one()
print(tasks() - before, few._library.threads_used())
four()
print(tasks() - before, few._library.threads_used())
one()
print(tasks() - before, few._library.threads_used())

def elsewhere():
    before = tasks()
    one()
    print(tasks() - before, few._library.threads_used())
    four()
    print(tasks() - before, few._library.threads_used())

thread = threading.Thread(target=elsewhere)
thread.start()
thread.join()
"""
    printed = process(code, tmp_path, OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="1")
    assert printed.split("\n") == ["0 1", "3 4", "3 1", "0 1", "3 4", ""]


@needs_onednn
def test_equal_numbers_whatever_other_engines_compute_with() -> None:
    few, many = load(1), load(3)
    assert few is not None
    assert many is not None
    data = normal(4, 1 << 16)
    for engine in (few, many, few):
        library = engine._library
        layout, result = library.dense((data.size,)), np.empty(data.size, np.float32)
        tanh(library, data.size).bind([(SRC, layout, data.reshape(-1)), (DST, layout, result)], None)()
        np.testing.assert_allclose(result, np.tanh(data).reshape(-1), atol=1e-6)


@needs_onednn
def test_weights_that_cannot_be_laid_out_are_laid_out_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    library, weights = own_library(), normal(3, 5)
    packed = tensors.packed(library, weights, library.dense((3, 5)), channels_first(library, 3, 5))
    with monkeypatch.context() as broken:
        broken.setattr(tensors, "copy", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            packed.array()
    np.testing.assert_array_equal(packed.array().view(np.float32).reshape(5, 3), weights.T)


def channels_first(library: Library, rows: int, columns: int):
    layout = library.strided((rows, columns), (4, 4 * rows))
    assert layout is not None
    return layout


@needs_onednn
def test_engines_of_several_threads_at_once_give_what_each_gives_alone() -> None:
    engines, data, errors = [load(1), load(2)], normal(1 << 15), []

    def run(number: int) -> None:
        engine = engines[number % 2]
        assert engine is not None
        library = engine._library
        layout, result = library.dense((data.size,)), np.empty(data.size, np.float32)
        call = tanh(library, data.size).bind([(SRC, layout, data), (DST, layout, result)], None)
        for _ in range(50):
            result.fill(7)
            call()
            errors.append(float(np.abs(result - np.tanh(data)).max()))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 200
    assert max(errors) < 1e-6


BINDING = """
import sys, threading
import numpy as np
from irrun.engines.onednn.library import DST, INFERENCE, SRC, open_library
library = open_library(1)
layout = library.dense((64,))
primitive = library.primitive("eltwise_forward", INFERENCE, 32, layout, layout, 0.0, 0.0, small=True)
read, written, scratch = np.ones(64, np.float32), np.zeros(64, np.float32), np.zeros(primitive.scratch, np.uint8)
sys.setswitchinterval(1e-6)

def work():
    for _ in range(20000):
        primitive.bind([(SRC, layout, read), (DST, layout, written)], scratch)()

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
memories = [library.memory(layout, array) for array in (read, read, written)]
print(memories[0] is memories[1], memories[0] is memories[2])
"""


@needs_onednn
def test_threads_bind_and_drop_memories_of_the_same_arrays(tmp_path: Path) -> None:
    assert process(BINDING, tmp_path) == "True False\n"


@needs_onednn
def test_primitives_are_compiled_once_by_whichever_thread_comes_first() -> None:
    library = own_library()
    primitive = tanh(library, 1237)
    pending = primitive.pending()
    assert [*dict.fromkeys(pending + primitive.pending())] == pending
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(pending[0]())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len({*map(id, found)}) == 1
    assert primitive.pending() == []


@needs_onednn
def test_what_is_compiled_together_computes_as_what_is_compiled_when_it_is_bound() -> None:
    assert ENGINE is not None
    left, right = normal(19, 37), normal(37, 53)
    arrays, expected = [[left, right], [right, left], [right]], [left @ right, right.T @ left.T, np.tanh(right)]
    works = [
        work_of("MatMul-1", {}, arrays[0], [expected[0]], (1,)),
        work_of("MatMul-1", {"transpose_a": True, "transpose_b": True}, arrays[1], [expected[1]]),
        work_of("Tanh-1", {}, arrays[2], [expected[2]]),
    ]
    compiled = [own for work in works if (own := ENGINE.compile(work)) is not None]
    calls = dict.fromkeys(call for own in compiled for call in own.pending())
    assert len(calls) == 3
    ENGINE.together([*calls])
    assert not any(own.pending() for own in compiled)
    for work, own, given, wanted in zip(works, compiled, arrays, expected, strict=True):
        assert_allclose(computed(work, own, given)[0], wanted, rtol=1e-5, atol=1e-5)


def _works(seed: int) -> list[Work]:
    """Works of all kinds of primitives, at sizes of their own, with posts that read tensors."""
    rng = np.random.default_rng(seed)
    rows, columns, channels, size = (int(number) for number in rng.integers((2, 8, 1, 5), (40, 40, 20, 20)))
    left, right, image = normal(2, rows, 24), normal(24, columns), normal(1, channels, size, size + 1)
    filters = normal(channels, channels, 3, 3)
    product, bias, thin = normal(2, rows, columns), normal(columns), normal(2, rows, 1)
    added, moved = Post("Add-1", {"auto_broadcast": "numpy"}, 2), Post("Multiply-1", {"auto_broadcast": "numpy"}, 3)
    spatial = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1)}
    pooled = {"strides": (1, 1), "kernel": (3, 3), "pads_begin": (1, 1), "pads_end": (1, 1), "exclude_pad": True}
    turned = np.moveaxis(normal(1, size, size + 1, channels), -1, 1)
    return [
        work_of("MatMul-1", {}, [left, right, bias, product], [product], (1, 2), [added, moved]),
        work_of("MatMul-1", {}, [left, right, thin], [product], (), [added]),
        work_of("Convolution-1", spatial, [image, filters, image], [image], (1,), [added]),
        work_of("ConvolutionBackpropData-1", spatial, [image, filters], [image], (1,)),
        work_of("AvgPool-1", pooled, [image], [image]),
        work_of("SoftMax-8", {"axis": -1}, [product], [product]),
        work_of("Add-1", {}, [product, bias], [product]),
        work_of("Tanh-1", {}, [product, thin], [product], (), [Post("Multiply-1", {"auto_broadcast": "numpy"}, 1)]),
        work_of("Abs-1", {}, [product], [product]),
        work_of("Multiply-1", {}, [turned, image], [image]),
        work_of("Transpose-1", {}, [product, np.int64([0, 2, 1])], [product.transpose(0, 2, 1).copy()], (1,)),
    ]


@needs_onednn
@pytest.mark.parametrize("seed", range(5))
def test_layouts_that_primitives_are_made_for_are_those_that_they_have(seed: int) -> None:
    """They are not asked for them, nor are layouts by strides for what they were made of."""
    assert ENGINE is not None
    library = ENGINE._library
    kept = [compiled for work in _works(seed) if (compiled := ENGINE.compile(work)) is not None]
    assert len(kept) >= 6
    primitives = [*library._primitives.values()]
    assert {number for primitive in primitives for number in primitive._layouts} >= {
        SRC,
        WEIGHTS,
        BIAS,
        DST,
        POST + SRC_1,
    }
    for primitive in primitives:
        assert primitive.scratch == library.layout_of(primitive._descriptor, SCRATCHPAD).nbytes
        for number, layout in primitive._layouts.items():
            found = library.layout_of(primitive._descriptor, number)
            assert found == layout
            told = Descriptor(library, library.made("memory_desc_clone", "memory_desc_destroy", layout))
            assert (told.shape, told.type, told.strides) == (layout.shape, layout.type, layout.strides)


@pytest.mark.parametrize("module", sorted(LATE))
def test_modules_that_are_loaded_late_have_what_is_said_of_them(module: str) -> None:
    compilers = import_module(f"irrun.engines.onednn.{module}").COMPILERS
    assert compilers.keys() == {*LATE[module].split()}


def test_a_model_of_matrices_loads_what_it_needs(tmp_path: Path) -> None:
    code = (
        "import sys; from irrun.engines.onednn import load; load(1)\n"
        f"print([name for name in {[*LATE, 'quantized']} if 'irrun.engines.onednn.' + name in sys.modules])"
    )
    assert process(code, tmp_path) == "[]\n"


@needs_onednn
def test_layouts_that_are_left_to_primitives_are_told_apart_by_their_hashes() -> None:
    """They have no bytes; what is kept for many sizes would be compared with all others."""
    assert ENGINE is not None
    layouts = [ENGINE._library.any((1, 8, n, n)) for n in range(20, 60)]
    assert {layout.nbytes for layout in layouts} == {0}
    assert len({*map(hash, layouts)}) == len(layouts)
