"""Every op irrun knows: harvested from op modules, found by type and operation set as OpenVINO finds it.

Declaring an op registers nothing, so importing an op module has no effect elsewhere. Modules of the library are loaded
when a model has one of their ops: all of them take as long as to check a small model.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from threading import RLock
from types import MappingProxyType, ModuleType

from irrun.locks import fork_safe
from irrun.spec.op import OPSETS, Op

_NUMBERS = {f"opset{number}": number for number in OPSETS}
SPELLINGS = {"Const": "Constant", "PReLU": "PRelu", "ReLU": "Relu", "SoftMax": "Softmax"}
"""How some types are spelt in files, and how OpenVINO calls them; both are read."""


class Registry:
    """Ops by name ("ReLU-1") and by type; `find` answers what a layer of a file is.

    `library` has what loads the module that all versions of a type are in, by the type; it is called when they are
    needed. `installed` yields modules of other packages; they are asked for only when a layer is of no known op. Any
    number of threads may ask.
    """

    def __init__(
        self,
        installed: Callable[[], Iterator[ModuleType]] = lambda: iter(()),
        library: Mapping[str, Callable[[], ModuleType]] = MappingProxyType({}),
    ) -> None:
        self._ops: dict[str, Op] = {}
        self._library = {_key(type): load for type, load in library.items()}
        self._by_type: dict[str, list[Op]] = {}
        self._found: dict[tuple[str, str], Op] = {}
        self._installed = installed()
        self._loading = fork_safe(RLock())

    @property
    def ops(self) -> dict[str, Op]:
        """The ops of the library, and those that were added, by name."""
        self._load_library()
        return self._ops

    def load_installed(self) -> None:
        """Add the ops of all installed modules. Raises whatever these raise."""
        with self._loading:
            for module in self._installed:
                self.harvest(module)

    def _load_library(self, type: str | None = None) -> None:
        """Load what is left of the library; for a `type` only the module of its ops."""
        with self._loading:
            missing = list(self._library.values()) if type is None else [self._library.get(_key(type))]
            for load in dict.fromkeys(missing):
                if load is not None:
                    self._harvest(load())
                    self._library = {key: other for key, other in self._library.items() if other is not load}

    def add(self, op: Op) -> None:
        """Make `op` known. Raises ValueError where another op has its name."""
        with self._loading:
            self._load_library()
            self._add(op)

    def _add(self, op: Op) -> None:
        if self._ops.setdefault(op.name, op) is not op:
            raise ValueError(f"{op.name} is declared twice")
        self._by_type.setdefault(_key(op.type), []).append(op)
        self._found.clear()

    def harvest(self, module: ModuleType) -> None:
        """Add every op that `module` defines."""
        with self._loading:
            self._load_library()
            self._harvest(module)

    def _harvest(self, module: ModuleType) -> None:
        for value in vars(module).values():
            if isinstance(value, Op) and self._ops.get(value.name) is not value:
                self._add(value)

    def find(self, type: str, version: str) -> Op | None:
        """The op of a layer: the newest version of `type` in the opset that `version` names, or None."""
        found = self._found.get((type, version))
        if found is not None:
            return found
        with self._loading:
            self._load_library(type)
            found = self._find(type, version)
            if found is None:
                for module in self._installed:
                    self.harvest(module)
                found = self._find(type, version)
            if found is not None:
                self._found[type, version] = found
            return found

    def _find(self, type: str, version: str) -> Op | None:
        candidates = self._by_type.get(_key(type), ())
        number = opset_number(version)
        if number is None:
            return next((op for op in candidates if version in op.extension_versions), None)
        held = [op for op in candidates if number in op.held_by]
        return max(held, key=lambda op: op.version, default=None)

    @property
    def conversion(self) -> Op:
        """The op that gives a tensor another element type."""
        found = self.find("Convert", "opset1")
        assert found is not None, "the library has it"
        return found

    @property
    def attention(self) -> Op:
        """The op that averages values by the likeness of queries to keys, with a mask and a scale."""
        found = self.find("ScaledDotProductAttention", "opset13")
        assert found is not None, "the library has it"
        return found

    def versions(self, type: str) -> list[Op]:
        """All versions of `type`, oldest first."""
        self._load_library(type)
        return sorted(self._by_type.get(_key(type), ()), key=lambda op: op.version)

    def opsets(self, op: Op) -> list[int]:
        """The operation sets in which `op.type` means `op`, and not a newer version."""
        return [number for number in OPSETS if self._find(op.type, f"opset{number}") is op]

    def types(self) -> Iterator[str]:
        """The spelling of every known type, in alphabetical order."""
        self._load_library()
        return (ops[0].type for _, ops in sorted(self._by_type.items()))


def opset_number(version: str) -> int | None:
    """The N of "opsetN", or None for any other version."""
    return _NUMBERS.get(version)


def _key(type: str) -> str:
    # the four spellings of old files are mapped in exactly this case, then the look-up ignores case
    return SPELLINGS.get(type, type).lower()


_FIRST = fork_safe(RLock())


@cache
def registry() -> Registry:
    """The op library. Raises ImportError where it is not installed."""
    with _FIRST:  # a cache alone may give one each to threads that ask at once, and an op added to one would be lost
        return _registry()


@cache
def _registry() -> Registry:
    library = _library()
    modules = {category: partial(import_module, f"irrun.opsets.{category}") for category in library.TYPES}
    return Registry(
        _installed_modules,
        {type: modules[category] for category, types in library.TYPES.items() for type in types.split()},
    )


def _library() -> ModuleType:
    """The op library; in a clone, which Python may find before what is installed, it is a folder beside the package."""
    try:
        return import_module("irrun.opsets")
    except ModuleNotFoundError as error:
        package = sys.modules["irrun"]
        beside = Path(__file__).parents[2]
        if str(beside) in package.__path__ or not (beside / "opsets" / "__init__.py").is_file():
            raise ImportError("the op library `irrun.opsets` is missing: install irrun with `pip install .`") from error
        package.__path__.append(str(beside))
        return _library()


def _installed_modules() -> Iterator[ModuleType]:
    """The modules that installed packages offer under the entry point group `irrun.ops`."""
    from importlib.metadata import entry_points  # 15 ms

    for entry in entry_points(group="irrun.ops"):
        yield entry.load()


def register(op: Op) -> Op:
    """Make a custom op known to all models that are read from then on, and give it back; again does nothing.

    Raises ValueError where another op has its name, TypeError for what is no op.

    >>> from irrun.spec import Input, Output, op
    >>> @op("Halved-1", inputs=[Input("x", "f32", "[N]")], outputs=[Output("y", "f32", "[N]")], opsets=frozenset(),
    ...     extension_versions=["mine"])
    ... def halved(x):
    ...     return x / 2
    >>> register(halved) is registry().find("Halved", "mine")
    True
    """
    if not isinstance(op, Op):
        raise TypeError(f"what is registered is an op, as the decorator `op` declares it, not {op!r}")
    registry().add(op)
    return op


def load_ops(path: str | os.PathLike[str]) -> ModuleType:
    """Run a Python file and make the ops known that it declares. Raises whatever it raises, and TypeError
    for what is no path.

    >>> module = load_ops("my_ops.py")  # doctest: +SKIP
    """
    path = Path(path)
    if path.exists() and not path.is_file():  # to open it may block
        raise ImportError(f"{path} is not a regular file")
    spec = importlib.util.spec_from_file_location(f"irrun_ops_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    registry().harvest(module)
    return module
