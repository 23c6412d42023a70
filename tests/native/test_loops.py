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

#: What samples and their variants do not hold: written arguments that are negated, other dtypes, memory shared in part.
MORE = """
from opcheck_suite import options
options.single_threaded()
from tests.native import loops
import torch
ops = torch.ops.reference_cpp

def negated(x):
    return torch.complex(torch.full_like(x, float("nan")), -x).conj().imag

a, b = torch.randn(3, 4), torch.randn(3, 4)
out = negated(torch.zeros(3, 4))
assert out.is_neg()
ops.plus_into(a, negated(b), out)
assert torch.equal(out, a + b)
x = negated(a)
ops.scale_(x, 2.0)
assert torch.equal(x, a * 2)

for dtype in (torch.half, torch.bfloat16):
    whole = a.to(dtype)
    columns, others = whole[:, ::2], whole[:, 1::2].clone()
    expected = columns * 1.7
    ops.scale_(columns, 1.7)
    assert torch.equal(columns, expected) and torch.equal(whole[:, 1::2], others)

for dtype in (torch.bool, torch.int8, torch.int16, torch.half, torch.complex64, torch.complex128):
    x = torch.randn(3, 2).to(dtype).t()
    assert torch.equal(ops.tile_rows(x, 5), torch.cat([x] * 3)[:5])

memory = torch.zeros(8)
for call in (
    lambda: ops.scale_(torch.zeros(3).to(torch.float8_e5m2), 1.0),
    lambda: ops.plus_into(memory[:4], torch.ones(4), memory[1:5]),
    lambda: ops.plus_into(torch.ones(3, 4), torch.ones(3, 4), torch.zeros(4).expand(3, 4)),
):
    try:
        call()
    except RuntimeError:
        continue
    raise AssertionError("a call that the kernel for the CPU refuses")
print("done")
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


def test_what_samples_do_not_hold():
    assert run("-c", MORE).split() == ["done"]
