"""Device checks find what is planted for them on the simulated device, and nothing else does; good ops pass.

No GPU is needed, and a C++ compiler is. Families compile and export are left out: they say nothing of devices, and take
half of the time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from opcheck_suite import registry
from reference_ops.native import _build, _tools
from tests.checks import planted

CHECKS = tuple(f"!{family}" for family in ("compile", "export"))

DEVICE = [check.id for check in registry.all_checks() if check.family == "device"]


def _why_not() -> str:
    """Why the simulated device cannot be built here; it is not loaded into this process."""
    try:
        _tools.compiler()
    except _build.NotBuilt as failure:
        return str(failure)
    return "the sources are not here" if not (planted.ROOT / "csrc" / "simdevice").is_dir() else ""


pytestmark = pytest.mark.skipif(bool(_why_not()), reason=_why_not())


@pytest.fixture(scope="module")
def seen() -> planted.Walk:
    return planted.walk(["device"], timeout=300, device="sim", good="device", checks=CHECKS)


def test_every_fault_is_found_by_its_check_and_by_no_other(seen):
    assert not any(fault["unavailable"] for fault in seen.faults)
    wrong = planted.disagreements(seen, "device")
    assert not wrong, "\n".join([f"{len(wrong)} entries of reference_ops/broken/device.py are not true:", *wrong])


def test_every_device_check_has_a_planted_fault(seen):
    assert set(DEVICE) - {fault["check"] for fault in seen.faults} == set()


@pytest.mark.parametrize("check", DEVICE)
def test_every_device_check_passes_a_good_op_having_run(seen, check):
    results = seen.of(seen.good[check], check)
    assert [r["outcome"] for r in results] == ["pass"], results
    assert results[0]["cases"] >= 1


def test_no_check_finds_fault_with_a_good_op(seen):
    assert {op: seen.noticed(op) for op in set(seen.good.values())} == {
        "broken_device::blend": {},
        "broken_device::forks": {},
        "broken_device::scaled": {},
    }


def test_every_unit_has_a_result(seen):
    assert set(map(tuple, seen.units)) == {(r["op"], r["check"]) for r in seen.results}


#: Op -> what its bad result says.
MESSAGES = {
    "on_current_device": "for arguments on sim:1, output 0 is on sim:0, the current device",
    "leaves_device": "the current device is sim:1 after a call on sim:1; it was sim:0",
    "no_guard": "the op, called on another device or stream on matrix: the device is lost: RuntimeError: sim error: "
    "an illegal memory access was encountered",
    "default_stream": "the op does not run on it: it computes with what its arguments held before",
    "reads_host": "the op, called on matrix: it died of SIGSEGV",
    "beyond_the_end": "the op, called on matrix: the device is lost: RuntimeError: sim error: an illegal memory access",
    "accepts_mixed": "the op, called on two matrices, a on the CPU: the device is lost",
    "number_on_cpu": "the op, called on matrix and number, factor on the CPU: the device is lost",
    "last_unwritten_of_raw": "with fresh memory filled the result is another",
    "keeps_results": "memory of the device grows by 48 bytes with every call",
    "coarse": "on sim the result is another than on the CPU",
    "counts_calls": "the second replay of a captured call gives another result than a call; it is that of the first",
    "waits_for_kernel": "the call cannot be captured into a graph: RuntimeError: sim error: operation not permitted "
    "while a stream is captured: the host waits for it",
    "any_order": "on equal inputs gives output 0 with other bits",
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_say_what_happened(seen, name):
    op = f"broken_device::{name}"
    (fault,) = [fault for fault in seen.faults if fault["op"] == op]
    assert MESSAGES[name] in seen.message(op, fault["check"])


def test_a_lost_device_is_one_bad_result_and_later_checks_run(seen):
    op = "broken_device::no_guard"
    assert list(seen.noticed(op)) == ["device.guard"]
    later = [r["outcome"] for check in ("device.parity", "device.stream") for r in seen.of(op, check)]
    assert Counter(later) == {"pass": 2}


def test_a_replay_misses_work_of_another_stream(seen):
    assert (
        "the first replay of a captured call gives another result than a call; it is that of the values with which"
        in (seen.message("broken_device::default_stream", "device.capture"))
    )


def test_specs_of_the_reference_ops_serve_the_device_as_they_are(tmp_path):
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "opcheck_suite.cli", "run", "reference_ops.simdevice.specs", "--device", "sim,cpu"]
    command += ["--checks", "device", "--checks", "values.reference", "--report", str(report)]
    command += ["--tier", "standard"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=planted.ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(report.read_text())["results"]
    passed = Counter((r["check"], r["device"]) for r in results if r["outcome"] == "pass")
    for check in (
        "device.parity",
        "device.guard",
        "device.stream",
        "device.mixed",
        "device.capture",
        "values.reference",
    ):
        assert passed[check, "sim"] >= 10, passed
    assert passed["values.reference", "cpu"] >= 10
    assert [r for r in results if r["outcome"] not in ("pass", "skip")] == []
    assert {r["outcome"] for r in results if r["device"] == "cpu" and r["check"].startswith("device.")} == {"skip"}


PROGRAM = """
import os, torch
assert torch._C._get_privateuse1_backend_name() == "privateuseone"
from reference_ops import simdevice
assert torch._C._get_privateuse1_backend_name() == "privateuseone"  # importing it does nothing
simdevice.register()
assert torch.accelerator.current_accelerator().type == "sim" and torch.accelerator.device_count() == 2

x = torch.arange(12.0, device="sim:1").reshape(3, 4).requires_grad_()
(x.t() * x.t()).sum().backward()
assert torch.equal(x.grad.cpu(), 2 * x.detach().cpu()) and x.grad.device.index == 1

before = torch.sim.memory_allocated(0)
held = torch.zeros(1000, device="sim")
assert torch.sim.memory_allocated(0) == before + 4000 == torch.accelerator.memory_allocated(0)
del held
assert torch.sim.memory_allocated(0) == before

left = torch.full((1000,), 7.0, device="sim")
torch.accelerator.synchronize()
del left
assert torch.empty(1000, device="sim").eq(7).all().item()  # a block is handed out as it was left

a, b = torch.zeros(1 << 22, device="sim"), torch.empty(1 << 22, device="sim")
side, flag = torch.Stream(device="sim"), torch.zeros((), device="sim")
torch.accelerator.synchronize()
with side:
    b.copy_(a)  # takes its time
    flag.fill_(1)
assert not side.query() and flag.item() == 0  # streams do not wait for each other
torch.accelerator.current_stream().wait_stream(side)
assert flag.item() == 1

try:
    x + torch.zeros(3, 4)
except RuntimeError as error:
    assert "same device" in str(error)
else:
    raise AssertionError("tensors of two devices were added")
assert (x + torch.tensor(1.0)).sum().item() == 78.0

if hasattr(torch.accelerator, "Graph"):
    y, graph, other = torch.arange(4.0, device="sim"), torch.accelerator.Graph(), torch.Stream(device="sim")
    torch.accelerator.synchronize()
    with side:
        graph.capture_begin()
        doubled = y * 2
        other.wait_stream(side)
        with other:
            total = doubled.sum()  # a stream that waits for a captured one is captured, too
        side.wait_stream(other)
        end = total + 1
        graph.capture_end()
    assert end.item() != 13.0  # nothing was run
    for value, expected in ((1.0, 9.0), (2.0, 17.0)):
        y.fill_(value)
        graph.replay()
        assert end.item() == expected, (end.item(), expected)
    refused = [
        lambda: y.sum().item(),
        lambda: y.nonzero(),
        lambda: torch.accelerator.synchronize(),
        lambda: side.query(),
        lambda: torch.ones(3).to("sim"),
        lambda: side.wait_stream(torch.accelerator.current_stream(1)),
    ]
    for call in refused:
        with side:
            failed = torch.accelerator.Graph()
            failed.capture_begin()
            for step in (call, lambda: y.add_(1), failed.capture_end):  # all that comes after has failed as well
                try:
                    step()
                except RuntimeError as error:
                    assert "capture" in str(error), error
                else:
                    raise AssertionError("not refused")
    with side:
        failed.capture_begin()
        other.wait_stream(side)
        with other:
            y.add_(1)
        try:
            failed.capture_end()
        except RuntimeError as error:
            assert "does not wait for work of another stream" in str(error)
        else:
            raise AssertionError("not refused")
    assert y.sum().item() == 8.0

child = os.fork()
if not child:  # has threads of its own
    os._exit(0 if (x.detach() * 2).sum().item() == 132.0 else 1)
assert os.waitpid(child, 0)[1] == 0

flat = torch.zeros(3, 4, device="sim")
torch.ops.broken_device.beyond_the_end(flat)  # returns
for _ in range(2):
    try:
        torch.accelerator.synchronize()
    except RuntimeError as error:
        assert "illegal memory access" in str(error)
    else:
        raise AssertionError("the error did not come")
print("done")
"""


def test_the_simulated_device_is_what_it_says():
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=planted.ROOT, capture_output=True, text=True, env=environment
    )
    assert done.stdout.split() == ["done"], done.stderr


def test_a_compiler_is_needed_and_its_absence_is_told(tmp_path):
    command = [sys.executable, "-m", "opcheck_suite.cli", "run", "reference_ops.simdevice.specs", "--device", "sim"]
    environment = os.environ | {"CXX": "no-such-compiler", "OPCHECK_BUILD_DIR": str(tmp_path)}
    done = subprocess.run(command, cwd=planted.ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert "no C++ compiler" in done.stderr
