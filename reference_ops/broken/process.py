"""Ops that do something to their process. Each must end as one bad result, and the next op must still be tested."""

from __future__ import annotations

import ctypes
import faulthandler
import itertools
import os
import sys
import threading
import time

import torch
from torch import Tensor

from opcheck_suite.model import OpSpec
from reference_ops.broken import good
from reference_ops.broken.fault import Fault, doubled, like, planted


@torch.library.custom_op("broken_process::segfaults", mutates_args=())
def segfaults(x: Tensor) -> Tensor:
    """The null pointer is read."""
    ctypes.string_at(0)
    return doubled(x)


@torch.library.custom_op("broken_process::segfaults_on_one_row", mutates_args=())
def segfaults_on_one_row(x: Tensor) -> Tensor:
    """The null pointer is read where the input has a single row, which no sample has."""
    if x.dim() and x.shape[0] == 1:
        ctypes.string_at(0)
    return doubled(x)


@torch.library.custom_op("broken_process::aborts", mutates_args=())
def aborts(x: Tensor) -> Tensor:
    """The process is aborted."""
    os.abort()


@torch.library.custom_op("broken_process::leaves", mutates_args=())
def leaves(x: Tensor) -> Tensor:
    """The process ends with exit status 0."""
    os._exit(0)


@torch.library.custom_op("broken_process::exits", mutates_args=())
def exits(x: Tensor) -> Tensor:
    """SystemExit is raised."""
    raise SystemExit(0)


@torch.library.custom_op("broken_process::hangs", mutates_args=())
def hangs(x: Tensor) -> Tensor:
    """The op never returns."""
    while True:
        time.sleep(1)


@torch.library.custom_op("broken_process::recurses", mutates_args=())
def recurses(x: Tensor) -> Tensor:
    """A Python function calls itself for ever."""
    return recurses._init_fn(x)


@torch.library.custom_op("broken_process::overflows_stack", mutates_args=())
def overflows_stack(x: Tensor) -> Tensor:
    """The C stack overflows."""
    faulthandler._stack_overflow()
    return doubled(x)


@torch.library.custom_op("broken_process::eats_memory", mutates_args=())
def eats_memory(x: Tensor) -> Tensor:
    """Memory is taken, and touched, for ever."""
    held = [b"\1" * 2**26 for _ in itertools.count()]
    return doubled(x * len(held))


@torch.library.custom_op("broken_process::prints_much", mutates_args=())
def prints_much(x: Tensor) -> Tensor:
    """Each call prints a megabyte."""
    print("x" * 2**20)
    return doubled(x)


@torch.library.custom_op("broken_process::closes_stdout", mutates_args=())
def closes_stdout(x: Tensor) -> Tensor:
    """The file object of stdout is closed."""
    sys.stdout.close()
    return doubled(x)


@torch.library.custom_op("broken_process::closes_descriptor", mutates_args=())
def closes_descriptor(x: Tensor) -> Tensor:
    """The descriptor of stdout is closed under Python's object."""
    os.closerange(1, 2)
    return doubled(x)


@torch.library.custom_op("broken_process::closes_everything", mutates_args=())
def closes_everything(x: Tensor) -> Tensor:
    """Every file descriptor below 64 is closed."""
    os.closerange(0, 64)
    return doubled(x)


for _op in (
    segfaults,
    segfaults_on_one_row,
    aborts,
    leaves,
    exits,
    hangs,
    recurses,
    overflows_stack,
    eats_memory,
    prints_much,
    closes_stdout,
    closes_descriptor,
    closes_everything,
):
    _op.register_fake(like)

_locks = threading.Lock(), threading.Lock()
_turns = itertools.count()


@torch.library.custom_op("broken_process::locks_crosswise", mutates_args=())
def locks_crosswise(x: Tensor) -> Tensor:
    """Every other call takes two locks in the opposite order, so that two calls at once wait for each other."""
    first, second = _locks if next(_turns) % 2 else _locks[::-1]
    with first:
        out = like(x)
        with second:
            return out.copy_(x * 2)


locks_crosswise.register_fake(like)

FAULTS: list[Fault] = [
    planted(segfaults, "values.runs", "crash"),
    planted(segfaults_on_one_row, "values.runs", "crash"),
    planted(aborts, "values.runs", "crash"),
    planted(leaves, "values.runs", "crash"),
    planted(exits, "values.runs"),
    planted(hangs, "values.runs", "timeout"),
    planted(locks_crosswise, "values.threads", "timeout"),
    planted(recurses, "values.runs"),
    planted(overflows_stack, "values.runs", "crash"),
    planted(eats_memory, "values.runs", "crash"),
    planted(prints_much, "values.state"),
    planted(closes_stdout, "values.state"),
    planted(closes_descriptor, "values.state"),
    planted(closes_everything, "values.state"),
]

#: Ops to be tested after these; as many as processes work.
GOOD: dict[str, OpSpec] = {"values.runs": good.BLEND, "values.threads": good.DOUBLED}
