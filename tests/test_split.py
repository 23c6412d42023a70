"""Verdicts do not depend on how a run is split: whole, in shards, and over the workers of pytest-xdist."""

from __future__ import annotations

import json as plain
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from opcheck_suite import engine, specs
from opcheck_suite.options import RunOptions
from opcheck_suite.reports import json
from opcheck_suite.reports.merged import Merged
from opcheck_suite.reports.merged.merge import merge

#: Ops that are right, and faults of several kinds: one is seen on the sample, one on a variant, one ends its process.
SPECS = """
from reference_ops.broken import fake, process, schema, values
from reference_ops.python.specs import SPECS as RIGHT

GOOD = ("reference::bias_relu", "reference::accumulate_", "reference::sine")
FAULTS = ("values::refuses_sample", "values::drops_tail", "schema::nudges", "fake::sample_size", "process::segfaults")

def name(spec):
    return spec.op if isinstance(spec.op, str) else spec.op._qualname

SPECS = [spec for spec in RIGHT if name(spec) in GOOD]
SPECS += [fault.spec for module in (values, schema, fake, process) for fault in module.FAULTS
          if name(fault.spec).removeprefix("broken_") in FAULTS]
assert len(SPECS) == 8
"""

CHECKS = (
    *(
        "registration.fake",
        "values.runs",
        "values.reference",
        "values.empty",
        "values.noncontiguous",
        "schema.mutation",
    ),
    *("schema.returns", "fake.shape", "fake.symbolic"),
)

ROOT = pathlib.Path(__file__).parent.parent


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("split") / "split_specs.py"
    path.write_text(SPECS)
    return path


def run(source: pathlib.Path, **options: Any):
    """The report of the command line's engine, as it is read back from its file."""
    chosen = RunOptions(tier="quick", checks=CHECKS, **options).validated()
    report = engine.run(engine.plan(specs.load(str(source)), chosen))
    return json.parse(json.render(report))


def verdicts(merged: Merged) -> tuple[Any, ...]:
    """All cells by op and check, and what the cells tell: the sample, the smallest input, the message."""
    rows = {
        str(row): dict(zip(merged.checks, cells[0], strict=True))
        for row, cells in zip(merged.rows, merged.cells, strict=True)
    }
    told = {(str(merged.rows[r]), merged.checks[k]): found for (r, k, _), found in merged.findings.items()}
    return rows, told


@pytest.fixture(scope="module")
def whole(source) -> tuple[Any, ...]:
    """The verdicts of one run in one process."""
    report = run(source)
    (source.parent / "last.json").write_text(json.render(report))
    made = merge([("whole.json", report)])
    assert made.problems == ()
    found = verdicts(made)
    outcomes = "".join(mark for cells in found[0].values() for mark in cells.values())
    assert {"F", "C", ".", "-"} <= set(outcomes)
    return found


@pytest.mark.parametrize(("count", "balanced"), [(2, True), (4, False)])
def test_shards_have_the_verdicts_of_one_run(source, whole, count, balanced):
    durations = str(source.parent / "last.json") if balanced else ""
    jobs = [run(source, shard=f"{n}/{count}", durations=durations) for n in range(1, count + 1)]
    ops = [{r.op for r in report.results} for report in jobs]
    assert all(ops)
    assert sum(map(len, ops)) == len(set.union(*ops)) == 8
    made = merge((f"{n}.json", report) for n, report in enumerate(jobs))
    assert (len(made.columns), made.problems) == (1, ())
    assert verdicts(made) == whole


#: An ssh that reaches this machine only: it gets a host and a command, as execnet calls it.
SSH = """#!/bin/sh
test "$1" = -C && test "$2" = elsewhere || exit 255
cd / && exec sh -c "$3"
"""


def remote(folder: pathlib.Path) -> str:
    """Makes what another machine must have: the specs as a module, in a folder that xdist copies pytest itself to."""
    folder.mkdir()
    (folder / "split_specs.py").write_text(SPECS)
    return f"ssh=elsewhere//python={sys.executable}//chdir={folder}"


@pytest.mark.parametrize("how", ["two workers", "one here and one on another machine"])
def test_workers_have_the_verdicts_of_one_run(source, whole, how, tmp_path):
    ssh = tmp_path / "ssh"
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    workers = ["-n", "2"] if how == "two workers" else ["--tx", "popen", "--tx", remote(tmp_path / "elsewhere")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *workers, "--dist", "loadgroup"]
    command += ["--opcheck", source.stem, "--opcheck-only", "--opcheck-tier", "quick"]
    command += [f"--opcheck-report={tmp_path / 'report.json'}", *(f"--opcheck-checks={check}" for check in CHECKS)]
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=source.parent, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stdout + done.stderr
    text = (tmp_path / "report.json").read_text()
    assert plain.loads(text)["complete"] is True
    assert verdicts(merge([("report.json", json.parse(text))])) == whole
