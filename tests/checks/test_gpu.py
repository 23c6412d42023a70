"""On the device that ``--device`` names, planted faults are found by their checks and by no other; good ops pass.

``pytest --device cuda tests/checks/test_gpu.py``. With ``--device sim`` the simulated device stands in, to try this
file where there is no GPU; there `tests/checks/test_device.py` says more.
"""

from __future__ import annotations

import psutil
import pytest

from opcheck_suite import registry
from tests.checks import planted

#: Device -> the module of faults below reference_ops.broken that is for it.
FAULTS = {"cuda": "cuda", "sim": "device"}

CHECKS = ("!compile", "!export")

#: What `narrow_index` takes: two float32 tensors of more than 2^31 elements.
LARGE = 20 * 2**30


@pytest.fixture(scope="module")
def device(devices) -> str:
    for name in devices:
        if name in FAULTS:
            return name
    pytest.skip("looks at a GPU: pytest --device cuda")


@pytest.fixture(scope="module")
def seen(device) -> planted.Walk:
    return planted.walk([FAULTS[device]], timeout=120, device=device, good=FAULTS[device], checks=CHECKS)


def _impossible(device: str) -> set[str]:
    """The checks that this machine has too little for."""
    import torch

    found = set()
    if torch.accelerator.device_count() < 2:
        found.add("device.guard")
    if device == "cuda" and torch.cuda.get_device_properties(0).total_memory < LARGE:
        found.add("values.large")
    if psutil.virtual_memory().available < LARGE:
        found.add("values.large")
    return found


def test_every_fault_is_found_by_its_check_and_by_no_other(seen, device):
    assert not any(fault["unavailable"] for fault in seen.faults)
    out = {f["op"] for f in seen.faults if f["check"] in _impossible(device)}
    wrong = [line for line in planted.disagreements(seen, FAULTS[device]) if line.split(" ")[0] not in out]
    assert not wrong, "\n".join([f"{len(wrong)} entries of reference_ops/broken are not true here:", *wrong])


def test_good_ops_pass_every_device_check_having_run(seen, device):
    checks = {one.id for one in registry.all_checks() if one.family == "device"} - _impossible(device)
    outcomes = {check: [r["outcome"] for r in seen.of(seen.good[check], check)] for check in sorted(checks)}
    assert outcomes == {check: ["pass"] for check in sorted(checks)}


def test_no_check_finds_fault_with_a_good_op(seen):
    assert {op: seen.noticed(op) for op in set(seen.good.values())} == {op: {} for op in seen.good.values()}
