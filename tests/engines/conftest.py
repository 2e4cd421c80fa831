"""Random data of a test are its own: the same whatever ran before it, and in which process."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _seeded(request: pytest.FixtureRequest) -> None:
    if hasattr(request.module, "rng"):
        request.module.rng = np.random.default_rng(crc32(request.node.name.encode()))
