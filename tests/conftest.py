"""What the tests of the harness share."""

from __future__ import annotations

import pathlib
import sys

import pytest

from opcheck_suite import options

options.single_threaded()  # before anything imports torch: tests fork


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """List where torch does something else than it should, as tests have recorded it under ``deviation``."""
    passed = terminalreporter.stats.get("passed", [])
    found = [str(value) for report in passed for key, value in report.user_properties if key == "deviation"]
    if found:
        terminalreporter.section("deviations of torch")
        for text in dict.fromkeys(found):
            terminalreporter.line(text)


@pytest.fixture
def fixtures() -> pathlib.Path:
    """The folder of small ops and specs."""
    return pathlib.Path(__file__).parent / "fixtures"


@pytest.fixture
def scratch(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """An empty working directory. What is imported from there is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]
