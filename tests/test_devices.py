"""What devices leave behind."""

from __future__ import annotations

import torch

from opcheck_suite import devices
from opcheck_suite.api import check_op
from tests.fixtures import harness_ops  # noqa: F401 - registers the op

WORDS = "CUDA error: invalid configuration argument"


def test_the_error_that_a_kernel_of_torch_s_meets_is_one_that_nobody_asked_for(monkeypatch):
    asked = []

    def empty(*sizes, device):
        asked.append(device)
        raise RuntimeError(f"{WORDS}\nCUDA kernel errors might be asynchronously reported\n")

    monkeypatch.setattr(torch, "empty", empty)
    found = devices.unasked_error("cuda")
    assert str(found) == f"a kernel was not launched, and nobody asked whether it was: {WORDS}"
    assert asked == ["cuda"]


def test_where_errors_do_not_wait_nobody_is_asked(monkeypatch):
    monkeypatch.setattr(torch, "empty", None)
    assert devices.unasked_error("cpu") is None
    assert devices.unasked_error("meta") is None


def test_such_an_error_is_the_op_s_and_not_the_harness_s(monkeypatch):
    monkeypatch.setattr(devices, "unasked_error", lambda _: RuntimeError(WORDS))
    report = check_op("suite_tests::double", [(torch.ones(3),)], checks=["values.runs"], isolate="never")
    (result,) = [r for r in report.results if r.check == "values.runs"]
    assert result.outcome.value == "fail"
    assert result.message.startswith(f"the op raised RuntimeError: {WORDS}")


def test_an_error_of_the_op_comes_before_one_that_it_left(monkeypatch):
    monkeypatch.setattr(devices, "unasked_error", lambda _: RuntimeError(WORDS))
    report = check_op("suite_tests::raises", [(torch.ones(3),)], checks=["values.runs"], isolate="never")
    (result,) = [r for r in report.results if r.check == "values.runs"]
    assert WORDS not in result.message
