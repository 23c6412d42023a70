"""A browser for tests of pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser import Browser, required


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests; `Browser.open` gives each a page of its own."""
    made = Browser(required(), tmp_path_factory.mktemp("profile"))
    yield made
    made.close()
