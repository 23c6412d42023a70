"""What the property tests share."""

from __future__ import annotations

import pytest

from tests.settings import silent


@pytest.fixture(scope="package", autouse=True)
def quiet():
    """Keep pytest from gathering torch's trace log: it is most of the time of a call with symbols."""
    with silent("torch.__trace"):
        yield
