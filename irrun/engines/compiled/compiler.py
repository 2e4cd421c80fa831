"""LLVM: machine code, compiled for this processor when it is first asked for, and kept in a folder for other processes.

To compile a kernel takes 30 to 100 ms, to load it 1. The folder is `irrun/kernels` where the system has such files, or
what IRRUN_CACHE_DIR names; nothing is kept where that is empty, or where others than the user may write.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock

import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir

from irrun.files import atomic_write, open_regular
from irrun.locks import fork_safe
from irrun.spec import dtypes

MAX_FILES = 1 << 14
"""Kernels that the folder may hold, some thousands of bytes each; of more, the older half goes."""

MAX_BYTES = 1 << 22
"""Of a file that is read. Kernels have some thousands."""

DIGEST = 32
"""Bytes at the beginning of a file that say whether the rest is whole."""

Functions = Mapping[str, ir.FunctionType]
Addresses = tuple[int, ...]


@cache
def features() -> frozenset[str]:
    """What this processor can do, by LLVM's names."""
    return frozenset(name for name, there in llvm.get_host_cpu_features().items() if there)


_KERNEL: Functions = {"kernel": ir.FunctionType(ir.VoidType(), [ir.IntType(64).as_pointer()])}


def compiled(kind: Hashable, write: Callable[[ir.Function], None], *, passes: bool = True) -> int:
    """Where the machine code of a kernel lies, a function of a pointer to u64. Safe for threads.

    All about it is in the text of `kind`, and in the modules of the engines. `write` gives the function its code
    where there is none yet, which goes through LLVM's `passes` unless it is compiled as it is written.
    """
    (address,) = addresses(kind, _KERNEL, write, passes=passes)
    return address


def addresses(kind: Hashable, functions: Functions, write: Callable[..., None], *, passes: bool = True) -> Addresses:
    """As `compiled`, for functions of these names and types, which `write` is given in their order."""
    return _compiler().addresses(kind, functions, write, passes=passes)


class _Compiler:
    """LLVM, and the functions that it has compiled; they stay in memory."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._triple, name = llvm.get_default_triple(), llvm.get_host_cpu_name()
        options = llvm.get_host_cpu_features().flatten()
        target = llvm.Target.from_default_triple()
        self._machine = target.create_target_machine(name, options, opt=3, jit=True)
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), self._machine)
        self._lock = fork_safe(Lock())
        self._addresses: dict[Hashable, Addresses] = {}
        self._folder = folder()
        about = (llvmlite.__version__, llvm.llvm_version_info, self._triple, name, options, *_sources())
        self._about = hashlib.sha256(repr(about).encode()).digest()

    def addresses(
        self, kind: Hashable, functions: Functions, write: Callable[..., None], *, passes: bool = True
    ) -> Addresses:
        with self._lock:
            found = self._addresses.get(kind)
            if found is None:
                found = self._addresses[kind] = self._loaded(kind, functions, write, passes)
            return found

    def _loaded(self, kind: Hashable, functions: Functions, write: Callable[..., None], passes: bool) -> Addresses:
        key = hashlib.sha256(self._about + repr(kind).encode()).hexdigest()
        names = {f"{name}_{key}": type for name, type in functions.items()}
        path = None if self._folder is None else self._folder / f"{key}.o"
        code = None if path is None else _read(path)
        if code is None:
            code = self._code(names, write, passes)
            if path is not None:
                _keep(path, code)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        return tuple(self._engine.get_function_address(name) for name in names)

    def _code(self, functions: Functions, write: Callable[..., None], passes: bool) -> bytes:
        module = ir.Module()
        module.triple = self._triple
        write(*(ir.Function(module, type, name) for name, type in functions.items()))
        parsed = llvm.parse_assembly(str(module))
        if passes:
            builder = llvm.create_pass_builder(self._machine, llvm.create_pipeline_tuning_options(speed_level=2))
            builder.getModulePassManager().run(parsed, builder)
        code: bytes = self._machine.emit_object(parsed)
        return code


_first = fork_safe(Lock())
_made = cache(_Compiler)


def _compiler() -> _Compiler:
    """The only one there is: what another one has compiled, which threads might make at first, would go with it."""
    with _first:
        return _made()


def _sources() -> list[bytes]:
    """What the modules say that code is written by, and those with the numbers in it that engines share."""
    return [path.read_bytes() for path in (*sorted(Path(__file__).parents[1].rglob("*.py")), Path(dtypes.__file__))]


def folder() -> Path | None:
    """Where machine code is kept, a folder that nobody else may write to; None where there is none."""
    given = os.environ.get("IRRUN_CACHE_DIR")
    if given is not None:
        chosen = Path(given) if given else None
    elif sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        chosen = Path(local, "irrun", "kernels") if local else None
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
        with suppress(RuntimeError):  # no home
            home = home.expanduser()
        chosen = home / "irrun" / "kernels" if home.is_absolute() else None
    if chosen is None:
        return None
    try:
        chosen.mkdir(mode=0o700, parents=True, exist_ok=True)
        return chosen if _is_own(chosen.lstat()) else None
    except OSError:
        return None


def _is_own(status: os.stat_result) -> bool:
    """Whether nobody but the user, or the system, can have written there."""
    if not hasattr(os, "getuid"):
        return True
    return status.st_uid in (0, os.getuid()) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _read(path: Path) -> bytes | None:
    """The machine code in a file; None where it is not there, not whole, or not the user's."""
    try:
        with open_regular(path) as file:
            content = file.read(MAX_BYTES) if _is_own(os.fstat(file.fileno())) else b""
    except OSError:
        return None
    code = content[DIGEST:]
    return code if code and content[:DIGEST] == _digest(path, code) else None


def _digest(path: Path, code: bytes) -> bytes:
    """Of code that is kept under a name: that of another kernel has other functions."""
    return hashlib.sha256(path.name.encode() + code).digest()


def _keep(path: Path, code: bytes) -> None:
    """Write the file of machine code, if that can be, and see that there are not too many."""
    with suppress(OSError):
        atomic_write(path, _digest(path, code) + code)
        names = [name for name in os.listdir(path.parent) if name.endswith(".o")]  # noqa: PTH208  quicker than glob
        if len(names) > MAX_FILES:
            files = sorted(map(path.parent.joinpath, names), key=lambda file: file.stat().st_mtime)
            for file in files[: len(files) // 2]:
                file.unlink(missing_ok=True)
