"""What the CUDA kernels compute is right, as far as loops on the CPU can tell."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from reference_ops.native import _build, _tools

ROOT = pathlib.Path(__file__).parents[2]

CHECKS = ("reference", "noncontiguous", "empty", "dtypes", "repeatable", "unwritten", "shared")

PROGRAM = """
from opcheck_suite import options
options.single_threaded()
from tests.native import loops
from opcheck_suite import ops
for spec in loops.SPECS:
    print(ops.info(spec.op).kernels["CPU"])
"""


def _why_not() -> str:
    try:
        _tools.compiler()
    except _build.NotBuilt as failure:
        return str(failure)
    return ""


pytestmark = pytest.mark.skipif(bool(_why_not()), reason=_why_not())


def run(*command: str) -> str:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_kernels_are_those_for_cuda():
    places = run("-c", PROGRAM).split()
    assert len(places) == 10
    assert all("/loops-" in place and "/cpu/" in place for place in places), places


def test_no_check_of_values_finds_anything(tmp_path):
    report = tmp_path / "report.json"
    checks = [word for check in CHECKS for word in ("--checks", f"values.{check}")]
    run("-m", "opcheck_suite.cli", "run", "tests.native.loops", "--tier", "standard", *checks, "--report", str(report))
    results = json.loads(report.read_text())["results"]
    units = {(result["op"], result["dtype"]) for result in results}
    assert len(units) == 22
    assert {result["outcome"] for result in results} <= {"pass", "skip"}
    for check in ("reference", "noncontiguous", "empty", "repeatable", "unwritten"):
        passed = [r for r in results if (r["check"], r["outcome"]) == (f"values.{check}", "pass")]
        assert {(r["op"], r["dtype"]) for r in passed} == units
