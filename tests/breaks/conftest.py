"""What the tests of graph breaks share."""

from __future__ import annotations

import pytest

from opcheck_suite import compiling


@pytest.fixture(scope="package", autouse=True)
def compiler() -> None:
    """Parts of torch use what others deprecate when they are imported, and a warning is an error in tests."""
    compiling.prepare()
