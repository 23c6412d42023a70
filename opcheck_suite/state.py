"""The state of the process that an operator must leave as it found it."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import torch

#: Bytes that one call may write to stdout and stderr before that counts as a fault.
OUTPUT_LIMIT = 64 * 1024


def _open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _written() -> int:
    """Bytes written so far to the child's capture file, 0 where stdout is not a file."""
    sys.stdout.flush() if sys.stdout and not sys.stdout.closed else None
    try:
        return os.fstat(1).st_size
    except OSError:
        return 0


def _filters() -> str:
    """The warning filters in short: how many there are, and the first, which is asked first."""
    first = warnings.filters[0] if warnings.filters else None
    return f"{len(warnings.filters)} filters" + (f", first {first[0]!r} of {first[2]}" if first else "")


def _numpy_errors() -> str:
    numpy = sys.modules.get("numpy")
    return "" if numpy is None else str(numpy.geterr())


_TINY = [sys.float_info.min]
"""The smallest normal number, where no compiler sees it as a constant."""

_READ: dict[str, Callable[[], Any]] = {
    "grad mode": torch.is_grad_enabled,
    "inference mode": torch.is_inference_mode_enabled,
    "default dtype": torch.get_default_dtype,
    "deterministic algorithms": torch.are_deterministic_algorithms_enabled,
    "number of threads": torch.get_num_threads,
    "autocast on cpu": lambda: torch.is_autocast_enabled("cpu"),
    "float32 matmul precision": torch.get_float32_matmul_precision,
    "anomaly mode": torch.is_anomaly_enabled,
    "working directory": os.getcwd,
    "warning filters": _filters,
    "NumPy's error handling": _numpy_errors,
    "flushing of denormal numbers": lambda: _TINY[0] / 2 == 0.0,
    "cudnn.benchmark": lambda: torch.backends.cudnn.benchmark,
    "cudnn.deterministic": lambda: torch.backends.cudnn.deterministic,
    "stdout": lambda: "open" if _open(1) and sys.stdout is not None and not sys.stdout.closed else "closed",
    "stderr": lambda: "open" if _open(2) and sys.stderr is not None and not sys.stderr.closed else "closed",
}

_WRITE: dict[str, Callable[[Any], Any]] = {
    "grad mode": torch.set_grad_enabled,
    "default dtype": torch.set_default_dtype,
    "deterministic algorithms": torch.use_deterministic_algorithms,
    "number of threads": torch.set_num_threads,
    "autocast on cpu": lambda on: torch.set_autocast_enabled("cpu", on),
    "float32 matmul precision": torch.set_float32_matmul_precision,
    "anomaly mode": torch.set_anomaly_enabled,
    "working directory": os.chdir,
    "flushing of denormal numbers": torch.set_flush_denormal,
    "cudnn.benchmark": lambda on: setattr(torch.backends.cudnn, "benchmark", on),
    "cudnn.deterministic": lambda on: setattr(torch.backends.cudnn, "deterministic", on),
}


def positions() -> dict[str, Any]:
    """Where the generators of random numbers are that a process has one of, by name, as values to compare."""
    numpy = sys.modules.get("numpy")
    found: dict[str, Any] = {
        "torch's generator": torch.default_generator.get_state().numpy().tobytes(),
        "Python's generator": random.getstate(),
    }
    if numpy is not None:
        kind, keys, *rest = numpy.random.get_state(legacy=True)
        found["NumPy's generator"] = (kind, keys.tobytes(), *rest)
    return found


def read() -> dict[str, Any]:
    """The state now, by name, with the bytes written to stdout and stderr so far."""
    return {name: get() for name, get in _READ.items()} | {"output": _written()}


def changes(before: dict[str, Any]) -> list[str]:
    """What differs from an earlier `read`, in words; what can be put back is put back."""
    found = []
    for name, get in _READ.items():
        now = get()
        if now == before[name]:
            continue
        found.append(f"{name} was {before[name]}, is {now}")
        if name in _WRITE:
            _WRITE[name](before[name])
    if found and "stdout was open, is closed" in found:
        reopen()
    if found and "stderr was open, is closed" in found:
        reopen()
    written = _written() - before["output"]
    if written > OUTPUT_LIMIT:
        found.append(f"wrote {written:,} bytes to stdout and stderr")
    return found


def reopen() -> None:
    """Give the process a stdout and stderr again after something closed them."""
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        if not _open(descriptor):
            null = os.open(os.devnull, os.O_WRONLY)
            if null != descriptor:
                os.dup2(null, descriptor)
                os.close(null)
        if getattr(sys, name) is None or getattr(sys, name).closed:
            setattr(sys, name, os.fdopen(os.dup(descriptor), "w"))


@contextlib.contextmanager
def limited_memory(more: int) -> Iterator[None]:
    """Let the process take at most ``more`` bytes of address space than it has: allocations beyond raise."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    limit = psutil.Process().memory_info().vms + more
    if before[1] != resource.RLIM_INFINITY:
        limit = min(limit, before[1])
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
