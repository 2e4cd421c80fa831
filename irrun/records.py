"""`dataclass` and `NamedTuple` as the standard library has them, for classes that are soon made.

Its own write most methods of each class as text and compile that, which takes a tenth of a process that runs a small
model. Here classes share their methods but the one that makes an object, which is compiled with the first of these.
"""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from typing import NamedTuple as NamedTuple
else:

    def dataclass(cls=None, /, *, repr=True, eq=True, frozen=False, slots=False, weakref_slot=False):
        """The decorator of `dataclasses`."""

        def made(cls):
            own = frozenset(vars(cls))
            cls.__doc__ = cls.__doc__ or cls.__name__  # in place of its signature, which takes long to find
            cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, weakref_slot=weakref_slot)(cls)
            for name, method in _methods(cls, repr, eq, frozen, slots).items():
                if name not in own:
                    setattr(cls, name, method)
            return cls

        return made if cls is None else made(cls)

    class _NamedTupleMeta(type):
        def __new__(cls, name, bases, own):
            if not bases:
                return super().__new__(cls, name, bases, own)
            types = own.pop("__annotations__", {})
            defaults = [own.pop(field) for field in types if field in own]
            made = namedtuple(name, types, defaults=defaults, module=own.pop("__module__"))
            made.__annotations__ = types
            for name, value in own.items():
                setattr(made, name, value)
            return made

    class NamedTuple(metaclass=_NamedTupleMeta):
        """The base class of `typing`."""


def _methods(cls: type[Any], repr: bool, eq: bool, frozen: bool, slots: bool) -> dict[str, Any]:
    methods: dict[str, Any] = {"__init__": _initializer(cls, frozen)}
    if repr:
        methods["__repr__"] = _repr
    if eq:
        compared = _values([each.name for each in fields(cls) if each.compare])
        methods |= {"__eq__": _equality(compared), "__hash__": _hash(compared) if frozen else None}
    if frozen:
        methods |= {"__setattr__": _refuse_change, "__delattr__": _refuse_deletion}
    if frozen and slots:
        methods |= {"__getstate__": _state, "__setstate__": _set_state}
    return methods


def _initializer(cls: type[Any], frozen: bool) -> Callable[..., None]:
    def initialize(self: Any, *given: Any, **named: Any) -> None:
        compiled = cls.__init__ = _compiled(cls, frozen)
        compiled(self, *given, **named)

    return initialize


def _compiled(cls: type[Any], frozen: bool) -> Callable[..., None]:
    """The method `__init__` of its own fields."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_absent": MISSING}
    positional, named, lines = ["self"], ["*"], []
    for each in fields(cls):
        name, value = each.name, each.name
        if each.default_factory is not MISSING:
            known[f"_make_{name}"], known[f"_default_{name}"] = each.default_factory, MISSING
            value = f"_make_{name}() if {name} is _absent else {name}" if each.init else f"_make_{name}()"
        elif each.default is not MISSING:
            known[f"_default_{name}"] = each.default
            value = name if each.init else f"_default_{name}"
        elif not each.init:
            continue
        if each.init:
            default = f"=_default_{name}" if f"_default_{name}" in known else ""
            (named if each.kw_only else positional).append(name + default)
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join(positional + named[: len(named) if len(named) > 1 else 0])
    exec(f"def __init__({parameters}):\n " + "\n ".join(lines or ["pass"]), known)
    made: Callable[..., None] = known["__init__"]
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    made.__annotations__ = {each.name: each.type for each in fields(cls) if each.init} | {"return": None}
    return made


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What gives the fields of these names as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _equality(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], bool]:
    def equal(self: Any, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _hash(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    return lambda self: hash(values(self))


@recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def _refuse_change(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
