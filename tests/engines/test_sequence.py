"""Kernels that are run one behind the other in one call, against each alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any

import numpy as np
import pytest

from irrun.engines import compiled, onednn

if not compiled.is_there():
    pytest.skip("llvmlite is not installed", allow_module_level=True)

from irrun.engines.compiled.code import Code, Form, long
from irrun.engines.compiled.compiler import compiled as code_of
from irrun.engines.compiled.sequence import Kernel
from irrun.engines.compiled.team import Team
from irrun.engines.memory import data_address

FORM = Form(("taken", "items", "source", "target", "step"))


def _write(function: Any) -> None:
    """target[n] = source[(n * step) % items] * 3 + n + 1, an item each, and how many were taken."""

    def item(c: Code, at: dict[str, Any], number: Any) -> None:
        b = c.b
        place = b.urem(b.mul(number, at["step"]), at["items"])
        value = c.load(c.at(at["source"], place, 8), long(0).type, 8)
        c.keep(b.add(b.mul(value, long(3)), b.add(number, long(1))), c.at(at["target"], number, 8))
        taken = b.gep(function.args[0], [long(1)])
        b.atomic_rmw("add", taken, long(1), "monotonic")

    FORM.shared(function, item)


class Chain:
    """Kernels each of which mixes up what the one before has written, `beside` others in turn as that is."""

    def __init__(
        self,
        team: Team,
        count: int,
        items: int,
        beside: Sequence[bool] = (True,),
        *,
        shared: bool = True,
        seconds: float = 1e-6,
        whole: bool = False,
    ) -> None:
        self.arrays = [np.arange(items, dtype=np.uint64), *(np.zeros(items, np.uint64) for _ in range(count))]
        self.arguments = [
            FORM.of(taken=0, items=items, source=data_address(one), target=data_address(other), step=7)
            for one, other in zip(self.arrays, self.arrays[1:], strict=False)
        ]
        address, options = (
            code_of("mixing up, for tests", _write),
            {"shared": shared, "seconds": seconds, "whole": whole},
        )
        self.kernels = [
            Kernel(team, address, own, self.arrays, counted=(1, 100), beside=where, **options)
            for own, where in zip(self.arguments, cycle(beside), strict=False)
        ]

    def expected(self) -> Any:
        found = self.arrays[0].copy()
        numbers = np.arange(len(found), dtype=np.uint64)
        for _ in self.kernels:
            found = found[numbers * np.uint64(7) % np.uint64(len(found))] * np.uint64(3) + numbers + np.uint64(1)
        return found


def teams(count: int) -> list[Team]:
    engine = onednn.load(count, compiling=True)
    return [Team(count), *([] if engine is None else [Team(count, engine.parallel)])]


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [1, 2, 30])
@pytest.mark.parametrize("items", [1, 2, 5, 100])
@pytest.mark.parametrize("beside", [(True,), (False,), (True, False)])
def test_each_kernel_reads_all_that_the_one_before_has_written(
    threads: int, count: int, items: int, beside: Sequence[bool]
) -> None:
    for team in teams(threads):
        chain = Chain(team, count, items, beside)
        expected = chain.expected()
        for call in (*chain.kernels[:1], chain.kernels[0].joined(chain.kernels)) * 2:
            for _ in range(100):
                for array in chain.arrays[1:]:
                    array[...] = 0
                call()
                if call is not chain.kernels[0]:
                    np.testing.assert_array_equal(chain.arrays[-1], expected)
                    assert all(own[1] == 100 + items for own in chain.arguments)


def test_several_callers_at_once() -> None:
    for team in teams(3):
        chains = [Chain(team, 20, 64) for _ in range(4)]

        def run(chain: Chain) -> None:
            call = chain.kernels[0].joined(chain.kernels)
            expected = chain.expected()
            for _ in range(200):
                chain.arrays[-1][...] = 0
                call()
                np.testing.assert_array_equal(chain.arrays[-1], expected)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(run, chains))


def test_a_short_sequence_and_one_of_single_items_are_made_by_the_caller_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    team = Team(2)
    run = team.run

    def noted(address: int, arguments: int, *, shared: bool) -> None:
        asked[-1] = shared
        run(address, arguments, shared=shared)

    monkeypatch.setattr(team, "run", noted)
    for shared, seconds, whole in (
        (False, 1e-6, False),
        (True, 1e-6, False),
        (False, 1e-4, False),
        (False, 1e-4, True),
    ):
        chain = Chain(team, 3, 5, (False,), shared=shared, seconds=seconds, whole=whole)
        expected = chain.expected()
        asked.append(False)
        chain.kernels[0].joined(chain.kernels)()
        np.testing.assert_array_equal(chain.arrays[-1], expected)
    assert asked == [False, True, True, False]


WAITING = """
import os, threading, time
import numpy as np
from irrun.engines.compiled import team

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
own = team.Team(2)
working = own._state.view(np.uint64)[8:9]
working[0] = 1

def end():
    time.sleep(0.2)
    working[0] = 0

threading.Thread(target=end).start()
nothing = team._KERNEL(lambda arguments: None)
team._functions()[0](own._at, team.ctypes.cast(nothing, team.ctypes.c_void_p).value, 0)
print("done")
"""


def test_who_waits_for_a_helper_lets_it_have_the_processor():
    """Where the system would give it to nobody of the same priority."""
    if not hasattr(os, "sched_setscheduler"):
        pytest.skip("the system has no such schedulers")
    try:
        done = subprocess.run([sys.executable, "-c", WAITING], capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        pytest.fail("the helper never had the processor")
    if "PermissionError" in done.stderr:
        pytest.skip("this scheduler is for privileged users")
    assert done.stdout == "done\n", done.stderr
