"""Options of this repository's own test-suite."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """``pytest --device cuda`` runs the suite's device tests, and ``--opcheck`` runs, there."""
    parser.addoption(
        "--device", default="cpu", metavar="DEVICE", help="cpu, cuda, several with commas, or auto (default: cpu)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """A device that is not there is an error, never a green run of skips."""
    chosen = config.getoption("device")
    if chosen in (None, "cpu"):
        return
    from opcheck_suite.devices import select
    from opcheck_suite.registry import UsageError

    if "sim" in chosen.split(","):  # torch does not know it by itself
        from reference_ops import simdevice

        simdevice.register()
    try:
        select(chosen)
    except UsageError as error:
        raise pytest.UsageError(f"opcheck: {error}") from None


@pytest.fixture(scope="session")
def devices(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The device types that ``--device`` asked for."""
    from opcheck_suite.devices import select

    return select(request.config.getoption("device"))
