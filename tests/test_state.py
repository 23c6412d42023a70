"""The state of the process that an op must leave as it found it."""

from __future__ import annotations

import os
import sys
import warnings

import pytest
import torch

from opcheck_suite import isolate, state


def test_a_call_that_changes_nothing_leaves_nothing():
    before = state.read()
    torch.ones(3).sum()
    with torch.no_grad():
        torch.ones(3)
    assert state.changes(before) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda: torch.set_grad_enabled(False), "grad mode was True, is False"),
        (lambda: torch.set_default_dtype(torch.float64), "default dtype was torch.float32, is torch.float64"),
        (lambda: torch.use_deterministic_algorithms(True), "deterministic algorithms was False, is True"),
        (lambda: torch.set_autocast_enabled("cpu", True), "autocast on cpu was False, is True"),
        (lambda: torch.set_float32_matmul_precision("medium"), "float32 matmul precision was highest, is medium"),
        (lambda: torch.set_anomaly_enabled(True), "anomaly mode was False, is True"),
    ],
)
def test_what_is_left_changed_is_told_and_put_back(change, told):
    torch.use_deterministic_algorithms(False)  # the first call imports the compiler, which adds a filter of warnings
    before = state.read()
    change()
    assert state.changes(before) == [told]
    assert state.changes(before) == []
    assert {k: v for k, v in state.read().items() if k != "output"} == {
        k: v for k, v in before.items() if k != "output"
    }


def test_a_working_directory_is_put_back(tmp_path):
    before = state.read()
    here = os.getcwd()
    os.chdir(tmp_path)
    assert state.changes(before) == [f"working directory was {here}, is {tmp_path}"]
    assert os.getcwd() == here


def test_warning_filters_are_counted():
    with warnings.catch_warnings():
        before = state.read()
        warnings.filterwarnings("ignore", message="nothing that anybody says")
        (told,) = state.changes(before)
    assert told.startswith("warning filters was")


def test_several_changes_are_all_told():
    before = state.read()
    torch.set_grad_enabled(False)
    torch.set_default_dtype(torch.float64)
    assert len(state.changes(before)) == 2


def _left_by(call) -> list[str]:
    """What a call leaves behind in a child, whose stdout and stderr are a file."""

    def serve(commands, send):
        before = state.read()
        call()
        send({"left": state.changes(before)})
        print("it can still write", flush=True)
        print("to both", file=sys.stderr, flush=True)

    child = isolate.Child(serve, memory_limit=0)
    event = child.receive(timeout=20)
    assert child.bury().how == "it ended the process with exit status 0"
    return event["left"]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: None, []),
        (lambda: print("x" * 60000), []),
        (lambda: print("x" * 70000), ["wrote 70,001 bytes to stdout and stderr"]),
        (lambda: os.write(2, b"x" * 70000), ["wrote 70,000 bytes to stdout and stderr"]),
        (lambda: sys.stdout.close(), ["stdout was open, is closed"]),
        (lambda: sys.stderr.close(), ["stderr was open, is closed"]),
        (lambda: os.close(1), ["stdout was open, is closed"]),
        (lambda: (os.close(1), os.close(2)), ["stdout was open, is closed", "stderr was open, is closed"]),
    ],
    ids=["nothing", "little", "much", "much below", "stdout", "stderr", "descriptor", "descriptors"],
)
def test_output_is_measured_and_closed_streams_are_opened_again(call, expected):
    assert _left_by(call) == expected


def test_memory_beyond_a_limit_is_refused_and_the_limit_ends():
    with state.limited_memory(1 << 28):
        torch.empty(1 << 20)
        with pytest.raises(RuntimeError, match="memory"):
            torch.empty(1 << 30)
    torch.empty(1 << 28)
