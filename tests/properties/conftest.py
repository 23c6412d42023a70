"""What the property tests share."""

from __future__ import annotations

import logging

import pytest


@pytest.fixture(scope="package", autouse=True)
def quiet():
    """Keep pytest from gathering torch's trace log: it is most of the time of a call with symbols."""
    log = logging.getLogger("torch.__trace")
    was, log.disabled = log.disabled, True
    yield
    log.disabled = was
