"""Records: what `dataclasses` would have made of the same class."""

import copy
import dataclasses
import inspect
import pickle
import pkgutil
from functools import cached_property
from importlib import import_module

import pytest

import irrun
from irrun.records import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 2
    names: list[str] = dataclasses.field(default_factory=list, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Place(Point):
    z: int = 3


@dataclass(slots=True, weakref_slot=True)
class Sum:
    terms: tuple[int, ...]
    total: int = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.total = sum(self.terms)


@dataclass(eq=False)
class Plain:
    size: int
    factor: int = 2

    def __repr__(self) -> str:
        return f"<{self.size}>"

    @cached_property
    def larger(self) -> int:
        return self.size * self.factor


def test_values_are_given_by_position_by_name_or_by_default():
    point = Point(1, names=["a"])
    assert (point.x, point.y, point.names) == (1, 2, ["a"])
    assert (Place(1, 5).y, Place(x=1).z, Sum((1, 2)).total, Plain(4).larger) == (5, 3, 3, 8)
    assert Point(1).names is not Point(1).names


@pytest.mark.parametrize(("arguments", "words"), [({}, "missing 1 required"), ({"x": 1, "w": 2}, "unexpected keyword")])
def test_a_record_without_a_value_or_with_another_one_is_refused(arguments, words):
    with pytest.raises(TypeError, match=words):
        Point(**arguments)


def test_records_are_equal_and_hashed_by_what_is_compared():
    assert Point(1, 2, ["a"]) == Point(1) != Point(2)
    assert len({Point(1), Point(1, 2, ["a"]), Point(2)}) == 2
    assert Point(1) != Place(1, 2)
    assert Sum((1, 2)) == Sum((1, 2))
    assert Plain(1) != Plain(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Sum((1,)))


def test_a_record_shows_its_values_unless_it_shows_itself():
    assert repr(Place(1)) == "Place(x=1, y=2, z=3)"
    assert repr(Plain(3)) == "<3>"


def test_a_frozen_record_takes_no_other_values():
    point = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x


def test_slots_are_all_that_a_record_has():
    assert not hasattr(Point(1), "__dict__")
    assert not hasattr(Place(1), "__dict__")
    assert Plain.factor == 2


@pytest.mark.parametrize("record", [Point(1, 5, ["a"]), Place(1, 2, [], 8), Sum((1, 2))])
def test_a_record_is_the_same_when_it_was_pickled_or_copied(record):
    for other in (pickle.loads(pickle.dumps(record)), copy.copy(record), copy.deepcopy(record)):
        assert other == record
        assert repr(other) == repr(record)


def test_a_record_is_matched_by_position():
    match Point(1, 5):
        case Point(x, 5):
            assert x == 1
        case _:
            pytest.fail("no match")


def test_what_asks_dataclasses_is_answered():
    assert dataclasses.is_dataclass(Place)
    assert [field.name for field in dataclasses.fields(Place(1))] == ["x", "y", "names", "z"]
    assert dataclasses.replace(Place(1), z=7) == Place(1, 2, [], 7)
    assert dataclasses.asdict(Place(1)) == {"x": 1, "y": 2, "names": [], "z": 3}
    assert list(inspect.signature(Place).parameters) == ["x", "y", "names", "z"]

    @dataclasses.dataclass(frozen=True)
    class Below(Point):
        w: int = 4

    assert Below(1).w == 4


def test_all_records_of_irrun_are_what_dataclasses_accepts():
    modules = [import_module(found.name) for found in pkgutil.walk_packages(irrun.__path__, "irrun.") if _core(found)]
    records = {value for module in modules for value in vars(module).values() if hasattr(value, "_record_form")}
    assert len(records) > 100
    for record in records:
        assert len(dataclasses.fields(record)) == len(record._record_form.fields)


def _core(found):
    return found.name.split(".")[1] in ("diagnostics", "spec", "ir", "check", "run")
