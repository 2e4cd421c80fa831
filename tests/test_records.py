"""Classes of data against those of the standard library, which they stand for."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import typing
from collections.abc import Callable
from typing import Any

import pytest

from irrun import records

Made = dict[str, type[Any]]


def classes(dataclass: Callable[..., Any], tuples: type[Any]) -> Made:
    """The same classes by either library."""

    @dataclass(frozen=True, slots=True)
    class Frozen:
        """Of two fields."""

        a: int
        b: str = "b"

    @dataclass
    class Open:
        a: int
        seen: list[int] = dataclasses.field(default_factory=list, compare=False, repr=False)
        made: list[int] = dataclasses.field(default_factory=list, init=False)
        known: int = dataclasses.field(default=3, init=False)
        named: int = dataclasses.field(default=7, kw_only=True)
        of_all: typing.ClassVar[int] = 5

        def __post_init__(self) -> None:
            self.made.append(self.a)

    @dataclass
    class Derived(Open):
        last: int = 0

    @dataclass(eq=False, slots=True, repr=False, weakref_slot=True)
    class Plain:
        left: int = dataclasses.field(init=False)
        right: int = 2

        def __repr__(self) -> str:
            return "plain"

    @dataclass(frozen=True, slots=True)
    class One:
        x: Any

    @dataclass(frozen=True)
    class Nothing:
        pass

    class Pair(tuples):  # type: ignore[misc]
        """Of two numbers."""

        x: int
        y: int = 2

        @property
        def total(self) -> int:
            return self.x + self.y

        def __mul__(self, number: int) -> Any:
            return self._replace(x=self.x * number)

    found = (Frozen, Open, Derived, Plain, One, Nothing, Pair)
    return {cls.__name__: cls for cls in found}


@pytest.fixture(params=["of the library", "of irrun", "of irrun, compiled"])
def made(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Made:
    if request.param == "of irrun, compiled":
        monkeypatch.setattr(records, "FEW", 0)
    if request.param.startswith("of irrun"):
        return classes(records.dataclass, records.NamedTuple)
    return classes(dataclasses.dataclass, typing.NamedTuple)  # type: ignore[arg-type]


def test_fields_are_given_by_position_and_by_name(made: Made) -> None:
    assert repr(made["Frozen"](1)).endswith("Frozen(a=1, b='b')")
    assert repr(made["Frozen"](b="c", a=2)).endswith("Frozen(a=2, b='c')")
    assert repr(made["Open"](4)).endswith("Open(a=4, made=[4], known=3, named=7)")
    assert repr(made["Derived"](4, [], 6, named=8)).endswith("Derived(a=4, made=[4], known=3, named=8, last=6)")
    assert repr(made["Plain"]()) == "plain"
    assert repr(made["Nothing"]()).endswith("Nothing()")


@pytest.mark.parametrize("given", [(), (1, "b", 3)])
def test_a_wrong_number_of_fields_is_refused(made: Made, given: tuple[Any, ...]) -> None:
    for _ in range(2):  # the first object is made in another way than the second one
        with pytest.raises(TypeError, match=r"Frozen\.__init__\(\)"):
            made["Frozen"](*given)


def test_what_is_to_be_named_is_not_taken_by_position(made: Made) -> None:
    with pytest.raises(TypeError):
        made["Open"](1, [], 2)
    with pytest.raises(TypeError):
        made["Open"](1, known=4)


def test_defaults_that_are_made_are_not_shared(made: Made) -> None:
    first, second = made["Open"](1), made["Open"](1)
    first.seen.append(2)
    assert (first.seen, second.seen, second.made) == ([2], [], [1])


def test_objects_of_equal_fields_are_equal(made: Made) -> None:
    frozen, opened, one = made["Frozen"], made["Open"], made["One"]
    assert frozen(1) == frozen(1, "b") != frozen(1, "c")
    assert len({frozen(1), frozen(1), frozen(2), made["Nothing"](), made["Nothing"]()}) == 3
    assert opened(1) == opened(1, [5])
    assert opened(1) != made["Derived"](1)
    assert frozen(1) != (1, "b")
    assert one("a") == one("a") != one("b")
    assert made["Plain"]() != made["Plain"]()
    with pytest.raises(TypeError, match="unhashable"):
        hash(opened(1))


def test_frozen_objects_do_not_change(made: Made) -> None:
    frozen = made["Frozen"](1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'a'"):
        frozen.a = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'a'"):
        del frozen.a
    assert not hasattr(frozen, "__dict__")
    assert dataclasses.replace(frozen, a=3) == made["Frozen"](3)
    assert copy.copy(frozen) == copy.deepcopy(frozen) == frozen


def test_a_field_that_contains_its_object_is_shown_as_dots(made: Made) -> None:
    values: list[Any] = []
    one = made["One"](values)
    values.append(one)
    assert repr(one).endswith("One(x=[...])")


def test_what_a_class_says_of_its_fields(made: Made) -> None:
    frozen, opened = made["Frozen"], made["Open"]
    assert dataclasses.is_dataclass(frozen)
    assert dataclasses.asdict(frozen(1)) == {"a": 1, "b": "b"}
    assert frozen.__match_args__ == ("a", "b")  # type: ignore[attr-defined]
    assert frozen.__doc__ == "Of two fields."
    assert [each.name for each in dataclasses.fields(opened)] == ["a", "seen", "made", "known", "named"]


def test_tuples_have_names(made: Made) -> None:
    pair = made["Pair"](1)
    assert (pair, pair.x, pair.total, pair * 3, len(pair)) == ((1, 2), 1, 3, (3, 2), 2)
    assert repr(pair) == "Pair(x=1, y=2)"
    assert pair._asdict() == {"x": 1, "y": 2}
    assert made["Pair"].__doc__ == "Of two numbers."
    assert made["Pair"]._field_defaults == {"y": 2}  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        made["Pair"]()


def test_objects_are_pickled() -> None:
    from irrun.diagnostics import Diagnostic, Span
    from irrun.run.session import Run

    found = Diagnostic("E101", "wrong", Span(1, 2))
    assert pickle.loads(pickle.dumps(found)) == found
    assert copy.deepcopy(found) == found
    assert Run.__module__ == "irrun.run.session"


def test_what_makes_objects_is_compiled_where_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[type[Any]] = []
    original = records._compiled

    def counted(cls: type[Any], frozen: bool) -> Callable[..., None]:
        compiled.append(cls)
        return original(cls, frozen)

    monkeypatch.setattr(records, "_compiled", counted)
    made = classes(records.dataclass, records.NamedTuple)
    frozen, pair = made["Frozen"], made["Pair"]
    makers = pair.__new__
    for _ in range(records.FEW):
        assert frozen(1) != frozen(2)
        assert pair(1) != pair(2)
        assert len(compiled) <= 1
    assert compiled == [frozen]
    assert pair.__new__ is not makers
    assert (frozen(3).a, frozen(b=4, a=5).b, pair(6)) == (3, 4, (6, 2))
