"""Modules that are loaded once they are asked for something: numpy takes longer to load than most models to check.

`importlib.util.LazyLoader` does not serve: each further `import` of its modules loads them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any


class _Deferred(ModuleType):
    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        assert spec is not None
        assert spec.loader is not None
        if name == "__path__" and spec.submodule_search_locations is None:
            raise AttributeError(name)  # `from module import name` asks for it
        before = dict(vars(self))
        self.__class__ = ModuleType  # type: ignore[assignment]
        if spec.submodule_search_locations is not None:
            self.__path__ = spec.submodule_search_locations
        try:
            spec.loader.exec_module(self)
        except BaseException:  # as of a signal, which modules in C that only try whether a name is there may swallow
            vars(self).clear()
            vars(self).update(before)
            self.__class__ = _Deferred
            raise
        return getattr(self, name)


def defer(name: str, **known: object) -> None:
    """Have the module `name` loaded by whoever uses it first, or imports a part of it, in the thread that does.

    What is `known` of it can be had without.
    """
    spec = None if name in sys.modules else find_spec(name)
    if spec is not None:
        vars(_put(spec, known)).pop("__path__", None)  # for which is asked where a part of a package is imported


def later(module: str, name: str) -> Callable[..., Any]:
    """A function of a deferred module, to be `known` of it: the first call loads the module."""

    def call(*given: Any, **named: Any) -> Any:
        own = sys.modules[module]
        if isinstance(own, _Deferred):
            own.__dict__.pop(name, None)
        return getattr(own, name)(*given, **named)

    return call


def defer_part(package: str, name: str, **known: object) -> None:
    """The same of a package in one that is deferred."""
    parent = sys.modules.get(package)
    if isinstance(parent, _Deferred):
        assert parent.__spec__ is not None
        spec = PathFinder.find_spec(f"{package}.{name}", parent.__spec__.submodule_search_locations)
        if spec is not None:
            _put(spec, known)


def _put(spec: ModuleSpec, known: Mapping[str, object]) -> ModuleType:
    module = module_from_spec(spec)
    vars(module).update(known)
    module.__class__ = _Deferred
    sys.modules[spec.name] = module
    package, _, own = spec.name.rpartition(".")
    if package:  # whose attribute it is, as if it had been imported
        vars(sys.modules[package])[own] = module
    return module
