"""Calls on tensors whose values come late: for the checks that look where a kernel is queued.

A device does what is asked of it later, each stream in its own order. Here a stream is kept busy for a while, then
other values are written into the arguments, then the op is called, all on that stream. Only what is queued on the same
stream sees the values. Everything goes through ``torch.accelerator`` and ``torch.Stream``, which know all backends.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from typing import Any

import torch

from opcheck_suite import alternatives, devices
from opcheck_suite.context import Context, Run
from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case

#: How long a stream is kept busy, in seconds; with copies that take a millisecond each, if so many bytes suffice.
_SECONDS, _STEP, _LEAST, _MOST = 0.05, 1e-3, 1 << 21, 1 << 27
#: A device's queue holds about a thousand calls; beyond, the host waits.
_CALLS = 1000


def why_not(ctx: Context) -> str | None:
    """Why checks of devices and streams do not apply, or None."""
    if ctx.device == "cpu":
        return "the run is on the CPU, where nothing is queued: --device names another"
    if not devices.accelerator(ctx.device):
        return f"torch.accelerator does not know {ctx.device}"
    return None if ctx.info.takes_tensors else "the op takes no tensor"


def new_stream(ctx: Context, index: int) -> torch.Stream:
    """A stream of a device that nothing uses. Ends the check where the backend has one stream only."""
    try:
        return torch.Stream(device=torch.device(torch.device(ctx.device).type, index))
    except (RuntimeError, NotImplementedError) as error:
        ctx.skip(f"torch makes no streams for {ctx.device}: {ctx.describe_error(error)}")


class Load:
    """Work that takes a device about 50 ms, and the host next to nothing."""

    def __init__(self, place: torch.device) -> None:
        size, self._times = _LEAST, 1
        while True:
            self._source = torch.zeros(size, dtype=torch.uint8, device=place)
            self._target = torch.empty_like(self._source)
            seconds = min(self._seconds(place.index) for _ in range(2))
            if seconds >= _STEP or size >= _MOST:
                break
            size *= 4
        self._times = min(int(_SECONDS / seconds) + 1, _CALLS)

    def _seconds(self, index: int) -> float:
        torch.accelerator.synchronize(index)
        start = time.perf_counter()
        self.queue()
        torch.accelerator.synchronize(index)
        return time.perf_counter() - start

    def queue(self) -> None:
        """Put the work on the current stream of the device."""
        for _ in range(self._times):
            self._target.copy_(self._source)


@dataclasses.dataclass(frozen=True)
class Late:
    """What came of a call on values that came late."""

    results: list[Any]
    """Copies of outputs and written arguments, made on the same stream."""
    told: bool
    """Whether the values were still to come when the op was called, so that a call that did not wait would show."""


def call(ctx: Context, case: Case, before: Case, *, index: int, stream: torch.Stream | None, load: bool) -> Late:
    """Call the op on tensors of the device of an index, which hold the values of ``before`` until those of ``case``
    come.

    With a ``stream``, on that; else on the current stream of that device. Without ``load``, nothing is late, and the
    device is waited for after each step.

    Ends the check where the arguments do not let themselves be written to, or the device was too quick.
    """
    place = torch.device(torch.device(ctx.device).type, index)
    late = tensors.fresh((case.args, case.kwargs), device=place)
    new = dataclasses.replace(case, args=late[0], kwargs=late[1])
    given = tensors.fresh((before.args, before.kwargs), device=place)
    work = ctx.memo(("load", index), lambda: Load(place)) if load else None
    torch.accelerator.synchronize(index)
    ctx.announce("queued", case)
    with stream if stream is not None else contextlib.nullcontext():
        on = stream if stream is not None else torch.accelerator.current_stream(index)
        if work is not None:
            work.queue()
        if not alternatives.write(case, given, new):
            ctx.skip("the elements of an argument share memory, so that it cannot be written to")
        if work is None:
            ctx.synchronize(index)
        told = work is not None and not on.query()
        args, kwargs = given
        out = ctx.call(ctx.info.op, *args, what=f"the op, called on {place} with other work queued,", **kwargs)
        if work is None:
            ctx.synchronize(index)
        results = Run(case, args, kwargs, [], out, None, []).results()
        results = tensors.map_tensors(lambda t: t.detach().clone(), results)
    on.synchronize()
    ctx.synchronize(index)
    ctx.synchronize()  # where the kernel may have run instead
    ctx.announce("check", case)
    return Late(results, told)


def plain(ctx: Context, case: Case) -> None:
    """End the check on cases that cannot be made again on another device or stream."""
    run = ctx.require(case)
    if not ctx.deterministic:
        ctx.skip("the op's values are random")
    if not case.leaves() or not all(tensors.strided(t) for _, t in case.leaves()):
        ctx.skip("the sample gives no plain tensor")
    if not any(t.numel() for _, t in case.leaves()) or not tensors.tensors(run.results()):
        ctx.skip("no number goes in, or none comes out")
    if any(isinstance(value, torch.device | torch.Generator) for value in case.bound().values()):
        ctx.skip("an argument names a device")
    if any(t.device.type != torch.device(ctx.device).type for _, t in case.leaves()):
        ctx.skip("an argument of the sample is on another device")
