"""Reports as large as the suite promises to cope with: 300 ops, 60 checks, 6 environments."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

from opcheck_suite import Report
from tests.reports.merged.made import one
from tests.reports.sample import EVERY

OPS, CHECKS, ENVIRONMENTS = 300, 60, 6
FAMILIES = ("registration", "values", "schema", "fake", "autograd", "compile")

_OUTCOMES = ("pass", "pass", "skip", "pass", "not_exercised", "pass", "pass")

_MESSAGE = """\
the result differs from the reference: output has wrong values: 3 of 24 differ; at [{op}, {check}] got 2, expected 3
input   small, size 7(x dim 0)
call    op_{op}(x=float32[1, {op}])
reduced from op_{op}(x=float32[2, 3, {op}])
also    transposed(x), size 7(x dim 1), sizes 7(x dim 0), 11(x dim 1), size 1(x dim 0) and 11 more"""


def check_id(number: int) -> str:
    """Ten checks a family."""
    return f"{FAMILIES[number * len(FAMILIES) // CHECKS]}.check_{number}"


def report(number: int) -> Report:
    """The report of one environment; one result in forty is bad, others in each environment."""
    results = []
    for op in range(OPS):
        for check in range(CHECKS):
            bad = (op * CHECKS + check + number) % 40 == 0
            outcome = "fail" if bad else _OUTCOMES[(op + check) % len(_OUTCOMES)]
            told = _MESSAGE.format(op=op, check=check) if bad else "" if outcome == "pass" else f"reason {check}"
            results.append(one(outcome, told, op=f"my_ops::op_{op}", check=check_id(check)))
    environment = EVERY.environment | {"torch": f"2.{9 + number}.0"}
    options = {"source": "my_ops.specs", "strict": False, "seed": 0}
    return dataclasses.replace(EVERY, results=tuple(results), ops={}, options=options, environment=environment)


#: Starts a command and prints what it took. From a process of its own: a child counts the memory of what forked it.
_LAUNCH = """
import json, os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
print(json.dumps([process.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""


def cost(command: list[str]) -> tuple[int, float, float]:
    """Exit status, seconds of processor time, and MiB of memory of a process."""
    done = subprocess.run([sys.executable, "-c", _LAUNCH, *command], capture_output=True, text=True)
    assert done.stderr == ""
    status, seconds, memory = json.loads(done.stdout)
    return status, seconds, memory
