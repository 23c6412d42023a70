"""Measure every strategy, and write the page: ``python -m reference_ops.strategies [PATH]``."""

from __future__ import annotations

import pathlib
import sys

from opcheck_suite import reports
from reference_ops.strategies import page
from reference_ops.strategies.functions import TROUBLES
from reference_ops.strategies.measuring import table


def main(path: str) -> None:
    """Write the page to a path."""
    reports.write(path, page.write({trouble.name: table(trouble) for trouble in TROUBLES}))
    print(f"{path} is written")


if __name__ == "__main__":
    default = pathlib.Path(__file__).parents[2] / "docs" / "compile-strategies.md"
    main(sys.argv[1] if len(sys.argv) > 1 else str(default))
