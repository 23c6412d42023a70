"""Right ops that do what looks like a fault are left alone."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.checks import planted


def test_no_check_takes_offence_at_a_habit(tmp_path):
    path = tmp_path / "habits.json"
    words = ["run", "reference_ops.broken.habits", "--tier", "standard", "--timeout", "300", "--report", str(path)]
    done = subprocess.run(
        [sys.executable, "-m", "opcheck_suite.cli", *words], cwd=planted.ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(path.read_text())["results"]
    passed = {r["op"] for r in results if r["outcome"] == "pass" and r["check"] == "values.runs"}
    assert passed == {r["op"] for r in results}
    noticed = [(r["op"], r["check"], r["message"]) for r in results if r["outcome"] == "warn"]
    assert noticed == []
