"""What all tests of programs need: engines that do not leave small instructions to kernels, and compressed weights."""

import pytest


@pytest.fixture(autouse=True)
def _nothing_is_small(monkeypatch):
    monkeypatch.setattr("irrun.run.specialization.MAX_SMALL", 0)
    monkeypatch.setattr("irrun.run.executor.MAX_EXPANDED", -1)
