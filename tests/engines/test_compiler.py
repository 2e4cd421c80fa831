"""Machine code that is kept for other processes, in a folder that only the user writes to."""

import ctypes
import os
import stat
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from threading import Thread

import pytest

pytest.importorskip("llvmlite", reason="llvmlite compiles the kernels")

from llvmlite import ir

from irrun.engines import compressed, work
from irrun.engines.compiled import compiler
from irrun.engines.vectorized import functions

LONG = ir.IntType(64)
TYPES = {"twice": ir.FunctionType(LONG, [LONG]), "thrice": ir.FunctionType(LONG, [LONG])}


def write(*functions):
    for factor, function in enumerate(functions, 2):
        b = ir.IRBuilder(function.append_basic_block())
        b.ret(b.mul(function.args[0], ir.Constant(LONG, factor)))


def never(*functions):
    raise AssertionError("it is compiled again")


def results(kind, write=write, types=TYPES):
    """What the functions make of 7, in a process that has compiled nothing yet."""
    ours = compiler._Compiler()  # what it has compiled goes with it
    return [
        ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(7) for address in ours.addresses(kind, types, write)
    ]


@pytest.fixture
def kept(tmp_path, monkeypatch):
    folder = tmp_path / "some" / "folder"
    monkeypatch.setenv("IRRUN_CACHE_DIR", str(folder))
    return folder


def test_code_is_kept_for_other_processes(kept):
    assert results("a") == [14, 21]
    (file,) = kept.iterdir()
    if os.name == "posix":
        assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    assert results("a", never) == [14, 21]
    assert results("b") == [14, 21]
    assert len(list(kept.iterdir())) == 2
    assert file.exists()


def test_functions_of_one_compiler_have_names_of_their_own(kept):
    ours = compiler._Compiler()
    first, second = (ours.addresses(kind, TYPES, write) for kind in "ab")
    assert len({*first, *second}) == 4
    assert ours.addresses("a", TYPES, never) == first


@pytest.mark.parametrize(
    "damage", [lambda code: code[:-1], lambda code: b"", lambda code: code[:40] + b"x" + code[41:]]
)
def test_a_file_that_is_damaged_is_written_again(damage, kept):
    results("a")
    (file,) = kept.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert results("a") == [14, 21]
    assert file.read_bytes() == whole


def test_the_code_of_another_kernel_is_not_taken(kept):
    results("a")
    (one,) = kept.iterdir()
    results("b")
    (two,) = set(kept.iterdir()) - {one}
    two.write_bytes(one.read_bytes())
    assert results("b") == [14, 21]
    assert two.read_bytes() != one.read_bytes()


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_nothing_is_taken_that_others_may_have_written(kept):
    results("a")
    (file,) = kept.iterdir()
    file.chmod(0o666)
    with pytest.raises(AssertionError):
        results("a", never)
    file.chmod(0o600)
    assert results("a", never) == [14, 21]
    kept.chmod(0o777)
    assert compiler.folder() is None
    with pytest.raises(AssertionError):
        results("a", never)


def test_nothing_is_kept_where_that_is_not_wanted_or_cannot_be(tmp_path, monkeypatch):
    monkeypatch.setenv("IRRUN_CACHE_DIR", "")
    assert compiler.folder() is None
    assert results("a") == [14, 21]
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("IRRUN_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert compiler.folder() is None
    assert results("a") == [14, 21]


@pytest.mark.skipif(sys.platform != "linux", reason="where Linux has such files")
def test_the_folder_is_where_such_files_are(tmp_path, monkeypatch):
    monkeypatch.delenv("IRRUN_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert compiler.folder() == tmp_path / "irrun" / "kernels"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert compiler.folder() == tmp_path / "home" / ".cache" / "irrun" / "kernels"


def test_old_files_go_where_there_are_too_many(kept, monkeypatch):
    monkeypatch.setattr(compiler, "MAX_FILES", 4)
    for kind in range(5):
        results(kind)
        os.utime(max(kept.iterdir(), key=lambda file: file.stat().st_mtime_ns), (kind, kind))
    assert len(list(kept.iterdir())) == 3
    assert results(4, never) == [14, 21]


def test_threads_that_come_first_share_one_compiler(monkeypatch):
    """What another one has compiled would be gone with it, under the feet of those who call that."""
    made = []
    monkeypatch.setattr(compiler, "_made", cache(lambda: time.sleep(0.02) or made.append("compiler")))
    threads = [Thread(target=compiler._compiler) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["compiler"]


def test_code_is_known_by_what_all_modules_say_that_have_a_part_in_it():
    named = [path.read_bytes() for path in map(Path, (functions.__file__, work.__file__, compressed.__file__))]
    assert set(named) <= set(compiler._sources())


@pytest.mark.skipif("avx512f" not in compiler.features(), reason="the kernels of this processor are these")
@pytest.mark.slow
def test_kernels_for_processors_without_avx512():
    here = Path(__file__).parent
    names = "attention", "cells", "compiled_attention", "compressed", "conversion", "flash", "panels"
    found = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "engines.narrow"),
            *(here / f"test_{name}.py" for name in names),
        ],
        env={**os.environ, "PYTHONPATH": str(here.parent)},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout[-3000:]
