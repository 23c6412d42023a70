"""The CUDA code, as far as it can be looked at without a GPU: sources, registrations, fakes, the table of faults."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from opcheck_suite import registry
from opcheck_suite.model import Outcome
from reference_ops.native import _build, cuda_build

ROOT = pathlib.Path(__file__).parents[2]
CSRC = ROOT / "csrc"

CU = sorted(CSRC.rglob("*.cu"))
#: The bindings that are right.
BINDINGS = sorted([*CSRC.glob("cuda/*.cpp"), *CSRC.glob("stable/cuda/*.cpp")])

REGISTERS = re.compile(r'm\.impl\("([\w.]+)"')


def registered(*patterns: str) -> set[str]:
    """The names that some sources register kernels for."""
    return {name for p in patterns for path in CSRC.glob(p) for name in REGISTERS.findall(path.read_text())}


def name_of(path: pathlib.Path) -> str:
    return str(path.relative_to(CSRC))


# --------------------------------------------------------------------------- sources


def test_every_op_with_a_kernel_for_the_cpu_has_one_for_cuda():
    assert registered("cpu/*.cpp") == registered("cuda/*.cpp")
    stable = (CSRC / "stable" / "axpy.cpp").read_text(), (CSRC / "stable" / "cuda" / "axpy.cpp").read_text()
    assert REGISTERS.findall(stable[0]) == REGISTERS.findall(stable[1]) == ["axpy"]


@pytest.mark.parametrize("path", CU, ids=name_of)
def test_a_kernel_knows_nothing_of_torch(path):
    seen, left = set(), [path]
    while left:
        here = left.pop()
        seen.add(here)
        for line in re.findall(r"^#include (.*)$", here.read_text(), flags=re.MULTILINE):
            if line.startswith('"'):
                left += [p for p in [(here.parent / line.strip('"')).resolve()] if p not in seen]
            else:
                assert line in ("<cuda_runtime.h>", "<cstdint>"), f"{here} includes {line}"
    assert any("<cuda_runtime.h>" in here.read_text() for here in seen)


@pytest.mark.parametrize("path", CU, ids=name_of)
def test_a_kernel_says_whether_it_was_launched(path):
    launches = path.read_text().count("<<<")
    asked = path.read_text().count("return cudaGetLastError();")
    assert launches - asked == (1 if path.parent.parent.name == "broken" else 0)  # one is unchecked on purpose


@pytest.mark.parametrize("path", BINDINGS, ids=name_of)
def test_a_binding_sets_the_device_before_it_takes_memory_and_the_current_stream(path):
    text = re.sub(r"//.*", "", path.read_text())
    body = text[text.index("Guard guard(") :]
    assert not re.search(r"\bcontiguous\(|at::zeros\(|\.build\(|\.to\(", text.removesuffix(body))
    assert re.search(r"(C10|STD)_CUDA_CHECK\(\s*launch_", text)
    assert "getCurrentCUDAStream()" in body or "current_stream(x.get_device_index())" in text


# --------------------------------------------------------------------------- the table of faults

#: Ids that the table names, of checks that may not be here yet.
TO_COME: frozenset[str] = frozenset({"device.capture", "values.large"})

PROGRAM = """
import dataclasses, json
from opcheck_suite import ops, options
options.single_threaded()
from opcheck_suite import engine, specs
from reference_ops.broken import cuda

free = [dataclasses.replace(spec, unavailable={}) for spec in cuda.SPECS]
entries = specs.entries(free)
chosen = options.RunOptions(tier="quick", jobs=2, checks=("fake", "values.reference", "registration.fake")).validated()
report = engine.run(engine.plan(specs.Loaded("broken", entries), chosen))
print(json.dumps({
    "unavailable": dict(cuda.UNAVAILABLE),
    "faults": [[f.spec.op, f.check, f.outcome, dict(f.also), list(f.spec.devices)] for f in cuda.FAULTS],
    "good": {check: spec.op for check, spec in cuda.GOOD.items()},
    "kernels": {e.name: sorted(e.info.kernels) for e in entries},
    "results": [[r.op, r.check, r.outcome.value, r.message] for r in report.results],
}))
"""


@pytest.fixture(scope="module")
def broken() -> dict:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_faulty_op_is_in_the_table_and_has_a_kernel(broken):
    in_cpp = {f"broken_cuda::{name}" for name in registered("broken/cuda/*.cpp")}
    assert in_cpp == set(broken["kernels"])
    assert in_cpp - {"broken_cuda::doubled"} == {fault[0] for fault in broken["faults"]}
    assert all("CPU" in keys for keys in broken["kernels"].values())
    bound = not broken["unavailable"]
    assert {"CUDA" in keys for keys in broken["kernels"].values()} == {bound}


def test_the_table_names_checks_that_there_are(broken):
    known = {check.id for check in registry.all_checks()}
    named = {check for _, check, _, also, _ in broken["faults"] for check in (check, *also)}
    assert named <= known
    outcomes = [Outcome(said) for _, _, outcome, also, _ in broken["faults"] for said in (outcome, *also.values())]
    assert all(outcome.bad or outcome is Outcome.WARN for outcome in outcomes)
    assert all("cuda" in devices for *_, devices in broken["faults"])
    assert set(broken["good"]) == {id for id in known if id.startswith("device.")}


def test_every_family_of_faults_of_cuda_is_planted(broken):
    found = {check for _, check, _, _, _ in broken["faults"]}
    assert {"device.stream", "device.guard", "device.capture", "values.large", "device.deterministic"} <= found
    assert {"values.runs", "values.wide", "values.unwritten", "values.noncontiguous"} <= found


def test_without_cuda_the_reason_is_given(broken):
    import torch

    if torch.version.cuda is None:
        assert broken["unavailable"] == {"cuda": f"torch {torch.__version__} is built without CUDA"}


def test_on_the_cpu_nothing_is_wrong_with_them_and_their_fakes_follow_to_cuda(broken):
    bad = [r for r in broken["results"] if Outcome(r[2]).bad or r[2] == "warn"]
    assert bad == []
    placed = {op for op, check, outcome, _ in broken["results"] if (check, outcome) == ("fake.placement", "pass")}
    assert placed == set(broken["kernels"])


# --------------------------------------------------------------------------- make cuda-build


def test_cuda_build_says_which_nvcc_there_is(capsys):
    status = cuda_build.main(["--nvcc"])
    out, err = capsys.readouterr()
    if shutil.which("nvcc"):
        assert status == 0
        assert out.startswith("nvcc     /")
    else:
        assert status == 2
        assert err.startswith("cuda-build: nvcc is missing")


def test_cuda_build_needs_nvcc(monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    assert cuda_build.main([]) == 2
    assert "nvcc is missing" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not here")
def test_cuda_build_fails_where_something_does_not_compile(monkeypatch, capsys):
    import torch

    if torch.version.cuda is not None:
        pytest.skip("torch is built for CUDA: `make cuda-build` tells")
    monkeypatch.setenv("OPCHECK_CUDA", "")  # put back afterwards
    assert cuda_build.main([]) == 1
    out = capsys.readouterr().out
    assert "reference_cpp: FAILED: OPCHECK_CUDA is 1, but torch" in out
    assert out.endswith("compile  FAILED\n")


def test_cuda_build_builds_every_library_with_cuda_kernels():
    built = {name for group in cuda_build.GROUPS for name in group}
    assert built == {name for name, library in _build.LIBRARIES.items() if library.kernels}
    assert set(cuda_build.CHECKS) <= {check.id for check in registry.all_checks()}
