"""The guide to strategies shows what is there and what the suite prints."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

from opcheck_suite.inputs import strategies

ROOT = pathlib.Path(__file__).parent.parent
GUIDE = (ROOT / "docs" / "strategies.md").read_text()


def block(kind: str) -> str:
    return GUIDE.partition(f"```{kind}\n")[2].partition("```")[0]


def test_the_example_is_the_file_and_its_report_is_what_is_printed():
    assert (ROOT / "examples" / "pick_specs.py").read_text().endswith(block("python"))
    command = [sys.executable, "-m", "opcheck_suite.cli", "run", "examples/pick_specs.py", "--tier", "quick"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert printed.returncode == 1, printed.stderr
    assert block("text") in printed.stdout


def test_every_public_strategy_is_in_the_guide():
    lacking = [name for name in strategies.__all__ if name != "Relation" and not re.search(rf"\b{name}\b", GUIDE)]
    assert lacking == []
