"""Records: `dataclass` for the classes that most processes load. It takes and gives what `dataclasses.dataclass` does.

That one compiles up to nine functions for each class: half a millisecond, and with 60 classes a fifth of the time in
which a small model is checked. Here one is compiled, when the first record of a class is made; the others are written
once, for all classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, **options):
        """The class as a record. The options `eq`, `frozen`, `repr`, `slots` and `weakref_slot` are known."""
        asked = _Options(**options)
        return (lambda cls: _record(cls, asked)) if cls is None else _record(cls, asked)


class _Options(NamedTuple):
    eq: bool = True
    frozen: bool = False
    repr: bool = True
    slots: bool = False
    weakref_slot: bool = False


class _Form(NamedTuple):
    """What is known of a class of records: of all its fields, how they are described and annotated."""

    options: _Options
    fields: dict[str, Field[Any]]
    annotations: dict[str, Any]


def _record(cls: type, options: _Options) -> type:
    """`cls` with the methods of a record; with slots it is another class."""
    namespace = dict(vars(cls))
    above: _Form = getattr(cls, "_record_form", _Form(options, {}, {}))
    own = {name: _described(namespace.pop(name, MISSING)) for name in cls.__annotations__}
    form = _Form(options, above.fields | own, above.annotations | cls.__annotations__)
    methods = {"__init__": _Init(), "__dataclass_fields__": _Twin(), "__dataclass_params__": _Twin()}
    methods["_record_form"] = form
    methods["__match_args__"] = tuple(name for name, field in form.fields.items() if field.init)
    if options.repr:
        methods["__repr__"] = _shown
    if options.eq:
        methods |= {"__eq__": _equal, "__hash__": _hashed if options.frozen else None}
    if options.frozen:
        methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
        if options.slots:  # pickle would set attributes
            methods |= {"__getstate__": _state, "__setstate__": _restore}
    methods = {name: method for name, method in methods.items() if namespace.get(name) is None}
    if not options.slots:
        for name, field in own.items():
            if field.default is not MISSING:
                setattr(cls, name, field.default)
            elif name in vars(cls):
                delattr(cls, name)
        for name, method in methods.items():
            setattr(cls, name, method)
        return cls
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name, None)
    slots = [name for name in own if name not in above.fields] + ["__weakref__"] * options.weakref_slot
    made = type(cls)(cls.__name__, cls.__bases__, {**namespace, **methods, "__slots__": tuple(slots)})
    made.__qualname__ = cls.__qualname__
    return made


def _described(default: Any) -> Field[Any]:
    described: Field[Any] = default if isinstance(default, Field) else dataclasses.field(default=default)
    return described


class _Init:
    """Stands for the `__init__` of a class until that is asked for."""

    def __get__(self, record: Any, cls: type) -> Any:
        owner = _owner(self, cls)
        init: Any = _compiled(owner)
        type.__setattr__(owner, "__init__", init)
        return init if record is None else init.__get__(record, cls)


def _owner(descriptor: Any, cls: type) -> Any:
    """The class that `descriptor` is in, `cls` or one above it."""
    return next(base for base in cls.__mro__ if any(value is descriptor for value in vars(base).values()))


def _compiled(cls: Any) -> Callable[..., None]:
    """The `__init__` of a record."""
    form: _Form = cls._record_form
    known: dict[str, Any] = {"_MISSING": MISSING, "_set": object.__setattr__}
    parameters, lines = ["self"], []
    for name, field in form.fields.items():
        value = name
        if field.default is not MISSING:
            known[f"_default_{name}"] = field.default
        elif field.default_factory is not MISSING:
            known[f"_default_{name}"] = MISSING
            known[f"_make_{name}"] = field.default_factory
            value = f"_make_{name}() if {name} is _MISSING else {name}"
        optional = f"_default_{name}" in known
        if field.init:
            parameters.append(f"{name}=_default_{name}" if optional else name)
        elif optional:
            lines.append(f"{name} = _default_{name}")
        else:
            continue  # __post_init__ sets it
        if not form.options.frozen:
            lines.append(f"self.{name} = {value}")
        elif form.options.slots:  # in half the time of object.__setattr__
            known[f"_set_{name}"] = getattr(cls, name).__set__
            lines.append(f"_set_{name}(self, {value})")
        else:
            lines.append(f"_set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    made: dict[str, Any] = {}
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"]), known, made)
    init: Any = made["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    taken = {name: annotation for name, annotation in form.annotations.items() if form.fields[name].init}
    init.__annotations__ = {**taken, "return": None}
    return init  # type: ignore[no-any-return]


class _Twin:
    """Stands for what `dataclasses` notes down of a class, until `dataclasses.replace` or the like asks for it."""

    def __get__(self, record: Any, cls: type) -> Any:
        owner = _owner(self, cls)
        form: _Form = owner._record_form
        described = [(name, form.annotations[name], field) for name, field in form.fields.items()]
        twin: Any = dataclasses.make_dataclass(
            owner.__name__, described, init=False, repr=False, eq=form.options.eq, frozen=form.options.frozen
        )
        (name,) = (name for name, value in vars(owner).items() if value is self)
        found = getattr(twin, name)
        type.__setattr__(owner, name, found)
        return found


@recursive_repr()
def _shown(self: Any) -> str:
    shown = (f"{name}={getattr(self, name)!r}" for name, field in self._record_form.fields.items() if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _compared(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, name) for name, field in self._record_form.fields.items() if field.compare])


def _equal(self: Any, other: Any) -> Any:
    return _compared(self) == _compared(other) if type(other) is type(self) else NotImplemented


def _hashed(self: Any) -> int:
    return hash(_compared(self))


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self._record_form.fields]


def _restore(self: Any, state: list[Any]) -> None:
    for name, value in zip(self._record_form.fields, state, strict=True):
        object.__setattr__(self, name, value)


def _refuse_to_set(self: Any, name: str, value: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
