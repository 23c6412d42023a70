"""Every check finds the faults that are planted for it, no other check takes offence, and good ops pass.

A fault that no check finds, or that one finds too many, is a line in a failing test. The table is in the modules of
``reference_ops.broken``.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from opcheck_suite import registry
from opcheck_suite.model import Outcome
from tests.checks import planted

#: Faults of a device are looked at on one, in `test_device` and `test_gpu`, and what takes gigabytes in `test_large`.
ELSEWHERE = ("cuda", "device", "large")

#: What ops do to their process is looked at in `test_process`.
FAMILIES = [name for name in planted.modules() if name not in ("process", *ELSEWHERE)]

CHECKS = [check for check in registry.all_checks() if check.family != "device" and check.id != "values.large"]


@pytest.fixture(scope="module")
def seen() -> planted.Walk:
    # A compiler at work is silent for long on a busy machine; nothing here hangs.
    return planted.walk(FAMILIES, timeout=300)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_fault_is_found_by_its_check_and_by_no_other(seen, family):
    wrong = planted.disagreements(seen, family)
    assert not wrong, "\n".join([f"{len(wrong)} entries of reference_ops/broken/{family}.py are not true:", *wrong])


def test_every_check_has_a_planted_fault(seen):
    judging = {check.id for check in CHECKS if check.severity is not Outcome.PASS}
    lacking = judging - {fault["check"] for fault in seen.faults}
    assert not lacking, f"plant a fault in reference_ops/broken for {', '.join(sorted(lacking))}"


@pytest.mark.parametrize("check", [check.id for check in CHECKS])
def test_every_check_passes_a_good_op_having_run(seen, check):
    op = seen.good[check]
    results = seen.of(op, check)
    assert results, f"{check} was not run on {op}"
    for result in results:
        said = f"{check} on {op}: {result['outcome']} on {result['cases']} inputs: {result['message']}"
        assert result["outcome"] == "pass", said
        assert result["cases"] >= 1, said


def test_no_check_finds_fault_with_a_good_op(seen):
    found = {op: seen.noticed(op) for op in set(seen.good.values())}
    assert found == {op: {} for op in found}


def test_every_unit_has_a_result(seen):
    assert set(map(tuple, seen.units)) == {(r["op"], r["check"]) for r in seen.results}


def test_the_table_of_all_faults_is_complete_and_its_modules_can_be_imported_again():
    program = """
import importlib, sys
from opcheck_suite import specs
from reference_ops.broken import faults, good
before = [entry.name for entry in specs.entries([*faults.SPECS, *good.SPECS])]
for name in sorted(sys.modules):
    if name.startswith("reference_ops.broken.") and not name.endswith((".fault", ".faults")):
        importlib.reload(sys.modules[name])
importlib.reload(faults)
assert [entry.name for entry in specs.entries([*faults.SPECS, *good.SPECS])] == before
print(*sorted(faults.MODULES))
"""
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=planted.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [name for name in planted.modules() if name not in ELSEWHERE]
