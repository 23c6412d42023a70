"""A browser for tests of pages."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.browser import Browser, find

#: Set where a browser must be there, as `.ci/run` does: its tests then fail without one.
REQUIRED = "OPCHECK_REQUIRE_BROWSER"


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests; `Browser.open` gives each a page of its own."""
    path = find()
    if not path:
        told = "no Chromium was found; on Debian, apt-get install chromium"
        if os.environ.get(REQUIRED):
            pytest.fail(f"{REQUIRED} is set, and {told}")
        pytest.skip(told)
    made = Browser(path, tmp_path_factory.mktemp("profile"))
    yield made
    made.close()
