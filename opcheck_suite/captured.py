"""Calls that are captured into a graph of the device, to be replayed with other values in the same tensors.

What is queued on the captured stream is recorded and not run. A replay runs it again, and none of the op's code: what
the host computed, read or chose in the call is what it was. Torch has graphs for CUDA and ROCm, XPU, and, from 2.13 on
as ``torch.accelerator.Graph``, for any backend that brings them.
"""

from __future__ import annotations

import contextlib
import gc
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from opcheck_suite import alternatives, devices, queued
from opcheck_suite.context import Context, Run, describe_error
from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case

#: Calls before the one that is captured, for what is set up on first use, as torch's own notes on graphs advise.
_WARM_UP = 2


class Refused(Exception):
    """A call cannot be captured. ``error`` is what the op raised, or what the backend said when the capture ended."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(describe_error(error))
        self.error = error


def why_not(ctx: Context) -> str | None:
    """Why no call of the op can be captured, or None."""
    if (reason := queued.why_not(ctx)) is not None:
        return reason
    return None if _new(ctx.device) is not None else f"torch {torch.__version__} has no graphs for {ctx.device}"


def _new(device: str) -> Any:
    """An empty graph of a device; None where the backend has none."""
    # backends name theirs alike: torch.cuda.CUDAGraph, torch.xpu.XPUGraph
    own = getattr(devices.module(device), f"{torch.device(device).type.upper()}Graph", None)
    make = own or getattr(torch.accelerator, "Graph", None)
    try:
        return make() if make is not None else None
    except RuntimeError:
        return None


def _begin(graph: Any, device: str) -> Any:
    """Begin to capture the current stream. Returns the handle of the memory pool, where the backend has such."""
    handle = getattr(devices.module(device), "graph_pool_handle", None)
    if handle is None or isinstance(graph, getattr(torch.accelerator, "Graph", ())):
        graph.capture_begin()
        return None
    pool = handle()
    graph.capture_begin(pool=pool)
    return pool


def _let_go(device: str, index: int, pool: Any) -> None:
    """Tell the allocator that a capture which failed is over. Up to torch 2.11 CUDA's goes on to wait for its end, and
    then frees no memory: https://github.com/pytorch/pytorch/pull/180395. Where it knows, it says so with an error.
    """
    end = getattr(torch._C, f"_{torch.device(device).type}_endAllocateToPool", None)
    if end is not None and pool is not None:
        with contextlib.suppress(RuntimeError):
            end(index, pool)


class Captured:
    """A call of an op in a graph. Its arguments stay, and other values are written into them before a replay."""

    def __init__(self, ctx: Context, case: Case) -> None:
        """Capture a call on copies of a case's arguments. Raises `Refused`; or ends the check where the arguments do
        not let themselves be written to, or the backend has one stream only.
        """
        index = torch.accelerator.current_device_index()
        self._ctx, self._case = ctx, case
        self._stream = queued.new_stream(ctx, index)
        self.inputs = case.inputs()
        if not alternatives.write(case, self.inputs, case):
            ctx.skip("the elements of an argument share memory, so that it cannot be written to")
        with self._stream, ctx.seeded():
            for _ in range(_WARM_UP):
                args, kwargs = case.inputs()
                ctx.call(ctx.info.op, *args, what="the op, called again on a stream of its own,", **kwargs)
        ctx.synchronize()
        ctx.announce("captured", case)
        self._graph = _new(ctx.device)
        self._out, error = None, None
        with ctx.seeded(), self._stream, _not_collecting():
            pool = _begin(self._graph, ctx.device)
            try:
                args, kwargs = self.inputs
                self._out = ctx.info.op(*args, **kwargs)
            except Exception as raised:
                error = raised
            try:
                self._graph.capture_end()
            except RuntimeError as raised:
                error = error or raised
        if error is not None:
            _let_go(ctx.device, index, pool)
            self._mend()
            raise Refused(error)

    def replay(self, values: Case) -> list[Any]:
        """Outputs and written arguments after a replay on the values of another case."""
        with self._stream:
            alternatives.write(self._case, self.inputs, values)
            self._graph.replay()
            found = self._results(self._out)
        self._wait()
        return found

    def call(self, values: Case) -> list[Any]:
        """What the op makes of the same tensors, on the same stream, when it is called."""
        args, kwargs = self.inputs
        with self._stream:
            alternatives.write(self._case, self.inputs, values)
            out = self._ctx.call(
                self._ctx.info.op, *args, what="the op, called again on a stream of its own,", **kwargs
            )
            self._ctx.synchronize()
            found = self._results(out)
        self._wait()
        return found

    def _results(self, out: Any) -> list[Any]:
        run = Run(self._case, *self.inputs, [], out, None, [])
        return tensors.map_tensors(lambda t: t.detach().clone(), run.results())  # type: ignore[no-any-return]

    def _wait(self) -> None:
        self._stream.synchronize()
        self._ctx.synchronize()

    def _mend(self) -> None:
        """Capture something else with success: after a capture that failed, CUDA's generator thinks that it is still
        under way, and draws no number.
        """
        self._ctx.synchronize()
        with contextlib.suppress(RuntimeError), self._stream:
            probe, graph = torch.zeros(1, device=self._ctx.device), _new(self._ctx.device)
            self._stream.synchronize()
            _begin(graph, self._ctx.device)
            probe.zero_()
            graph.capture_end()


@contextlib.contextmanager
def _not_collecting() -> Iterator[None]:
    """What the collector destroys meanwhile, such as an event, may not be touched during a capture."""
    gc.collect()
    was = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a graph that stays empty
            yield
    finally:
        if was:
            gc.enable()
