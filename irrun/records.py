"""`dataclass` and `NamedTuple` as the standard library has them, for classes that are soon made.

Its own write most methods of each class as text and compile that, which takes a tenth of a process that runs a small
model. Here classes share their methods but the one that makes an object, which is compiled once there are some of it.
"""

from __future__ import annotations

import dataclasses
from collections import _tuplegetter  # type: ignore[attr-defined]
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from functools import cache
from itertools import count
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, Self

FEW = 32
"""Objects of a class that are made without a method that is compiled for them, which takes as long as to make twice as
many so."""

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
            fields = tuple(own.get("__annotations__", ()))
            defaults = {field: own[field] for field in fields if field in own}
            own |= {"__slots__": (), "_fields": fields, "__match_args__": fields, "_field_defaults": defaults}
            own |= {field: _tuplegetter(number, field) for number, field in enumerate(fields)}
            made = type(name, (_Named,), own)
            made.__new__ = _tuple_maker(made)
            return made

    class NamedTuple(metaclass=_NamedTupleMeta):
        """The base class of `typing`."""


class _Named(tuple[Any, ...]):
    """What all of these have in common."""

    __slots__ = ()
    _fields: tuple[str, ...]
    _field_defaults: dict[str, Any]

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Self:
        made = tuple.__new__(cls, values)
        if len(made) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
        return made

    def _replace(self, /, **changed: Any) -> Self:
        made = self._make(map(changed.pop, self._fields, self))
        if changed:
            raise ValueError(f"Got unexpected field names: {list(changed)!r}")
        return made

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({shown})"


def _told(
    names: Sequence[str], given: Sequence[Any], named: Mapping[str, Any], default: Callable[[str], Any]
) -> list[Any] | None:
    """What fields of these names are given by position, by name, or by default; None where that is not as it should."""
    values, used = [*given], 0
    for name in names[len(given) :]:
        if name in named:
            values.append(named[name])
            used += 1
        elif (value := default(name)) is not MISSING:
            values.append(value)
    return values if used == len(named) and len(values) == len(names) else None


def _tuple_maker(cls: type[_Named]) -> Callable[..., Any]:
    """The method `__new__`, which is compiled when it has been called a few times."""
    calls = count()

    def default(name: str) -> Any:
        return cls._field_defaults.get(name, MISSING)

    def make(_cls: type[_Named], *given: Any, **named: Any) -> Any:
        if next(calls) < FEW:
            values = _told(cls._fields, given, named, default)
            if values is not None:
                return tuple.__new__(_cls, values)
        names = ", ".join(cls._fields)
        text = f"lambda _cls, {names}: _new(_cls, ({names},))" if names else "lambda _cls: _new(_cls)"
        compiled = eval(text, {"_new": tuple.__new__})
        compiled.__defaults__ = tuple(cls._field_defaults.values())
        compiled.__qualname__ = f"{cls.__qualname__}.__new__"
        cls.__new__ = compiled  # type: ignore[method-assign]
        return compiled(_cls, *given, **named)

    return make


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
    """The method `__init__`, which is compiled when it has been called a few times."""
    calls, put = count(), object.__setattr__ if frozen else setattr

    def default(name: str) -> Any:
        each: Field[Any] = known()[name]
        return each.default if each.default_factory is MISSING else each.default_factory()

    @cache
    def known() -> dict[str, Field[Any]]:
        return {each.name: each for each in fields(cls)}

    @cache
    def names() -> tuple[list[str], list[str], list[str]]:
        own = known().values()
        made = [e.name for e in own if not e.init and (e.default, e.default_factory) != (MISSING, MISSING)]
        positional = [each.name for each in own if each.init and not each.kw_only]
        return positional, positional + [each.name for each in own if each.init and each.kw_only], made

    def initialize(self: Any, *given: Any, **named: Any) -> None:
        if next(calls) < FEW:
            positional, told, made = names()
            values = _told(told, given, named, default) if len(given) <= len(positional) else None
            if values is not None:
                for name, value in zip(told, values, strict=True):
                    put(self, name, value)
                for name in made:
                    put(self, name, default(name))
                if hasattr(cls, "__post_init__"):
                    self.__post_init__()
                return
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
        if frozen and isinstance(slot := getattr(cls, name, None), MemberDescriptorType):
            known[f"_set_{name}"] = slot.__set__  # takes two thirds of the time
            lines.append(f"_set_{name}(self, {value})")
        else:
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
