"""What a violation says of itself as data, held against its message wherever a test of an op provokes one."""

import re

import pytest

from irrun.spec import Op, Violation


@pytest.fixture(autouse=True)
def _violations_name_what_they_are_about(monkeypatch):
    infer = Op.infer

    def checked(op, *args, **kwargs):
        try:
            return infer(op, *args, **kwargs)
        except Violation as violation:
            _check(op, violation)
            raise

    monkeypatch.setattr(Op, "infer", checked)


def _check(op, violation):
    named = mentioned(op, violation.message)
    port, *said = (
        name if isinstance(name, str | None) else f"{name[0]}[{name[1]}]" for name in (violation.port, *violation.about)
    )
    assert set(named) - {port} == set(said) - {port}, f"{op.name}: {violation.message}"
    assert not {port, *said} - {None, *names(op), *named}, f"{op.name} has no such input or attribute"


def names(op):
    return {port.name for port in op.inputs} | {attr.name for attr in op.attrs}


def mentioned(op, message):
    """The inputs and attributes of an op that stand in a message, one of a variadic input with its number."""
    variadic = {port.name for port in op.inputs if port.variadic}
    found = re.findall(r"`(\w+)(?:(\[\d+)[^`]*\])?`", message)
    return [f"{name}{at}]" if at and name in variadic else name for name, at in found if name in names(op)]
