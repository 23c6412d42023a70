"""How much memory the process holds, and whether that grows with the number of calls of something.

What is counted is memory in use, not memory that an allocator keeps for later: after the same call it is the same
number again, to the byte, so that a leak of a few bytes shows after a few calls. Where no such count is to be had,
resident memory is, which shows large leaks only.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import gc
import os
import pathlib
import statistics
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import torch

from opcheck_suite import devices
from opcheck_suite.inputs import tensors

Call = Callable[[], Any]

#: Calls between two measurements that raise a suspicion. Of slow or large calls fewer: seconds, and bytes.
_FEW, _FEW_SECONDS = 32, 0.3

#: A suspicion is borne out by growth in every one of so many windows of calls. Caches fill up meanwhile, and lists and
#: tables that double now and then do not grow in every window.
_WINDOWS, _MOST_IN_WINDOW, _LEAST_IN_WINDOW = 8, 256, 16

#: What that may cost: seconds, and bytes that leak.
_SECONDS, _BYTES = 3.0, 1 << 29


@dataclasses.dataclass(frozen=True)
class Gauge:
    """A count of bytes that are in use."""

    name: str
    read: Callable[[], int]
    least: int
    """Bytes a call below which growth is not told from noise."""


@dataclasses.dataclass(frozen=True)
class Growth:
    """Memory that grew with every window of calls."""

    gauge: Gauge
    per_call: float
    """Bytes that each call added."""
    calls: int
    """Calls over which it grew so."""


class _Mallinfo(ctypes.Structure):
    # glibc's struct mallinfo2; https://man7.org/linux/man-pages/man3/mallinfo.3.html
    _fields_ = (
        ("_not_needed", ctypes.c_size_t * 4),
        ("hblkhd", ctypes.c_size_t),  # bytes in blocks of their own
        ("_nor_these", ctypes.c_size_t * 2),
        ("uordblks", ctypes.c_size_t),  # bytes in use in the heaps
        ("_nor_those", ctypes.c_size_t * 2),
    )


@functools.cache
def _mallinfo() -> Callable[[], Any] | None:
    """glibc's count of what ``malloc`` has handed out; None where that is not what torch's memory comes from."""
    try:
        read = ctypes.CDLL(None).mallinfo2  # glibc 2.33
    except (AttributeError, OSError, TypeError):
        return None
    read.restype = _Mallinfo

    def used() -> int:
        found = read()
        return int(found.uordblks + found.hblkhd)

    before = used()
    probe = torch.empty(1 << 16, dtype=torch.uint8)
    return used if used() - before >= probe.numel() else None  # another malloc may be loaded before glibc's


def _resident() -> int:
    return int(psutil.Process(os.getpid()).memory_info().rss)


def own(device: str) -> bool:
    """Whether a device says how much memory it has, which then is not the host's: torch.cuda, torch.xpu."""
    return hasattr(devices.module(device), "mem_get_info")


def free(device: str) -> int:
    """Bytes that can still be had on a device; of the host's memory, within the process's cgroup, where it has none."""
    if own(device):
        return int(devices.module(device).mem_get_info()[0])
    found = int(psutil.virtual_memory().available)
    with contextlib.suppress(OSError, ValueError):  # no such cgroup, or no limit ("max")
        # https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files
        limit, used = (int(pathlib.Path(f"/sys/fs/cgroup/memory.{name}").read_text()) for name in ("max", "current"))
        found = min(found, limit - used)
    return found


def gauges(device: str) -> list[Gauge]:
    """What can be read here, the most exact one first."""
    found = [Gauge("resident memory", _resident, 4096)]
    if (used := _mallinfo()) is not None:
        found.insert(0, Gauge("memory from malloc", used, 24))  # which takes 32 bytes at least
    used = getattr(devices.module(device), "memory_allocated", None)
    if used is not None:
        found.insert(0, Gauge("memory of the device", used, 1))
    return found


def growth(call: Call, gauges: list[Gauge], *, size: int) -> Growth | None:
    """Whether memory grows with every call, and how fast; ``size`` is the bytes of a call's tensors. Raises what
    ``call`` raises.

    A good call is made some 40 times; one that leaks, some hundreds or thousands of times.
    """
    few = max(4, min(_FEW, int(_FEW_SECONDS / _seconds(call, 1)), _BYTES // max(size, 1)))
    suspects, rates = gauges, [0.0]
    with _not_collecting():  # what the collector frees would hide what grows
        _seconds(call, few // 4)  # fills caches
        for _ in range(2):  # what some single event allocated is not there the second time
            before = _read(suspects)
            took = _seconds(call, few) / few
            rates = [grown / few for grown in _grown(before, _read(suspects))]
            suspects = [g for g, rate in zip(suspects, rates, strict=True) if rate >= g.least]
            if not suspects:
                return None
    window = max(_LEAST_IN_WINDOW, min(_MOST_IN_WINDOW, int(_SECONDS / _WINDOWS / took)))
    window = max(1, min(window, int(_BYTES / _WINDOWS / max(rates))))
    gc.collect()  # tensors in reference cycles are no leak
    before, grown = _read(suspects), []
    for _ in range(_WINDOWS):
        _seconds(call, window)
        gc.collect()
        now = _read(suspects)
        grown.append(_grown(before, now))
        if not any(more >= g.least * window for g, more in zip(suspects, grown[-1], strict=True)):
            return None
        before = now
    for gauge, windows in zip(suspects, zip(*grown, strict=True), strict=True):
        if min(windows) >= gauge.least * window:
            return Growth(gauge, statistics.median(windows) / window, window * _WINDOWS)
    return None


def _seconds(call: Call, times: int) -> float:
    """Make some calls, and say how long they took."""
    start = time.perf_counter()
    for _ in range(times):
        call()
    return max(time.perf_counter() - start, 1e-6)


@contextlib.contextmanager
def _not_collecting() -> Iterator[None]:
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _read(gauges: list[Gauge]) -> list[int]:
    return [g.read() for g in gauges]


def _grown(before: list[int], now: list[int]) -> list[int]:
    return [b - a for a, b in zip(before, now, strict=True)]


def holders(call: Call) -> list[str]:
    """What in Python still refers to tensors that ``call`` returned (arguments and results), once nobody else does.

    Names module attributes where they are found, such as ``my_ops.kernels._cache``.
    """
    refs = [weakref.ref(t) for t in tensors.tensors(call())]
    gc.collect()
    with _all_objects():
        found = [_name(owner) for ref in refs if (t := ref()) is not None for owner in _owners(t)]
    return sorted(set(filter(None, found)))


def _owners(value: Any) -> list[Any]:
    kinds = (list, dict, set, tuple)
    return [o for o in gc.get_referrers(value) if isinstance(o, kinds) or type(o).__module__ == "collections"]


def _name(owner: Any, depth: int = 2) -> str:
    """The module attribute that a container is, or is in; empty when there is none."""
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is owner and not name.startswith("__"):
                return f"{module.__name__}.{name}"
    if depth:
        for outer in _owners(owner):
            if outer is not sys.modules and (found := _name(outer, depth - 1)):
                return found
    return ""


@contextlib.contextmanager
def _all_objects() -> Iterator[None]:
    """Let the collector see what a forked child has frozen: all that its parent made."""
    frozen = gc.get_freeze_count() > 0
    if frozen:
        gc.unfreeze()
    try:
        yield
    finally:
        if frozen:
            gc.freeze()
