"""A short run of the fuzzer on every change; tests/fuzz/mutate.py is the long one."""

import os
from functools import partial

import pytest

import irrun.check.render.formats
import irrun.check.validate
from fuzz.minimise import minimise
from fuzz.mutants import mutant
from fuzz.pool import Finding, examine, run
from fuzz.seeds import Seed, files
from irrun.spec.registry import registry

MUTANTS = 2500


def test_mutants_of_the_models_in_the_repository_do_no_harm():
    registry()  # before the fork
    make = partial(mutant, files(), 4)
    assert not [found for found in run(make, range(MUTANTS)) if found]


def test_a_mutant_is_the_same_every_time():
    seeds = files()
    assert [mutant(seeds, 1, n) for n in range(20)] == [mutant(seeds, 1, n) for n in range(20)]
    assert len({mutant(seeds, 1, n).xml for n in range(50)}) > 40


@pytest.fixture
def harmful(monkeypatch):
    """irrun does harm to models with a layer of these names."""

    def validate(path):
        text = path.read_text()
        if 'name="raise"' in text:
            raise ValueError
        while 'name="hang"' in text:
            pass
        if 'name="die"' in text:
            os._exit(3)
        return irrun.check.validate.Report(path, [])

    monkeypatch.setattr(irrun, "validate", validate)
    monkeypatch.setattr("fuzz.pool.SECONDS", 0.3)


NAMES = ("raise", "fine", "hang", "die", "fine")


def model(number: int) -> Seed:
    layers = "".join(f'<layer id="{n}" name="{NAMES[number] if n == 3 else n}"/>' for n in range(6))
    return Seed("m", f'<net version="11"><layers>{layers}</layers></net>'.encode(), b"")


def test_what_raises_hangs_or_dies_is_found(harmful):
    found = {f.number: f.kind for f in run(model, range(len(NAMES))) if isinstance(f, Finding)}
    assert found == {0: "ValueError in validate", 2: "hang", 3: "died with exit status 3"}


def test_only_modules_of_irrun_are_blamed_wherever_the_tests_lie(tmp_path, monkeypatch):
    test = tmp_path / "my clones" / "irrun" / "tests" / "fuzz" / "opsets" / "test.py"
    code = {}
    exec(compile("def own(path):\n    raise ValueError", test, "exec"), code)
    monkeypatch.setattr(irrun, "validate", code["own"])
    assert examine(model(1), tmp_path)[0] == "ValueError in own"
    monkeypatch.setattr(irrun, "validate", lambda path: irrun.check.validate.validate(path, shapes={"y": ()}))
    assert examine(model(1), tmp_path)[0] == "ValueError in validate.py:find_input"


def test_a_finding_is_minimised(harmful):
    small = minimise(model(0), "ValueError in validate")
    assert 'name="raise"' in small.xml.decode()
    assert len(small.xml) < 20
