"""Signals that come while oneDNN computes on a stack in the heap."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from engines.onednn_works import needs_onednn
from run.models import anything, model, saved

from irrun.engines.onednn.library import is_exposed

ALARMS = """
import signal, sys, time
import numpy as np
import irrun
executor = irrun.GraphExecutor(sys.argv[1], engine="onednn", threads=2)
x = np.random.default_rng(0).standard_normal((3, 40, 90), np.float32)
(expected,) = executor.run([x]).values()
count = 0
def alarm(*_):
    global count
    count += 1
signal.signal(signal.SIGALRM, alarm)
signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
end = time.perf_counter() + 3
while time.perf_counter() < end:
    (found,) = executor.run([x]).values()
    assert (found == expected).all()
signal.setitimer(signal.ITIMER_REAL, 0)
assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()
assert count > 100, count
print("through")
"""


def network(folder: Path) -> Path:
    """Two directions of a GRU, [3, 40, 90] -> [3, 2, 40, 130]."""
    b = model()
    rng = np.random.default_rng(1)
    weights = [rng.standard_normal(shape, np.float32) / 12 for shape in ((2, 390, 90), (2, 390, 130), (2, 390))]
    x, state = anything(b, "f4", (3, 40, 90)), b.constant(np.zeros((3, 2, 130), np.float32))
    lengths = b.constant(np.int64([40, 40, 40]))
    attrs = {"hidden_size": 130, "direction": "bidirectional", "linear_before_reset": False}
    b.result(b.op("GRUSequence-5", x, state, lengths, *map(b.constant, weights), **attrs)[0])
    return saved(b, folder)


@needs_onednn
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no alarms")
def test_alarms_while_recurrent_layers_are_computed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ALARMS, str(network(tmp_path))]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout) == (0, "through\n"), ended.stderr


def test_what_is_exposed() -> None:
    assert is_exposed("matmul", "gemm:jit")
    assert is_exposed("convolution_forward", "jit:gemm")
    assert is_exposed("lstm_forward", "ref:any")
    assert is_exposed("deconvolution_forward", "conv:any")
    assert not is_exposed("lstm_forward", "brgemm:avx512_core")
    assert not is_exposed("matmul", "brg:avx512_core")
    assert not is_exposed("eltwise_forward", "jit:avx512_core")
