"""Calls of an op from several threads at once, and the same calls in turn from one.

A race needs a second thread to run between two steps of the first. Where those steps are Python's, a thread is made to
pause after one of them, another in each call; where they are C++, calls are made with larger tensors: they take longer.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from opcheck_suite import alternatives, compare, pykernel, state
from opcheck_suite.context import Context, OpRaised, Run, describe_error
from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case

#: More threads than most machines that test have cores, so that the system, too, interrupts them.
_THREADS = 4

#: Calls that a thread makes in one round; more where nothing but their number makes them meet. Of a slow op fewer:
#: seconds that a round should take, and after which no other is begun.
_CALLS, _MORE_CALLS, _ROUND_SECONDS, _SECONDS = 50, 200, 0.04, 0.2

#: Bytes that the arguments and results of one round may take, all of which live until it is over.
_BYTES = 1 << 28

#: Seconds that a thread pauses within a call: the least that makes the system run another.
_PAUSE = 2e-5


@dataclasses.dataclass(frozen=True, eq=False)
class Lane:
    """What one thread calls the op with, again and again, and what the op makes of it on its own."""

    case: Case
    expected: list[Any]


@dataclasses.dataclass(frozen=True)
class Trouble:
    """How results differ from those of the same calls on their own."""

    text: str
    case: Case
    threads: int
    calls: int
    """How many calls were made."""
    wrong: int
    """How many of them had another result."""
    raised: bool = False
    """Whether calls raised, and none had another result."""


class NotThreads(Exception):
    """The calls disturb each other, but not because they are made at once."""


def race(ctx: Context, case: Case) -> Trouble | None:
    """Call the op from several threads at once, and often: on a case with pauses, and on a larger one without.

    Where the op takes other values, each thread has its own, so that a mixed-up result is seen. Calls that give other
    results in turn from one thread, too, are no trouble of threads; they raise `NotThreads`.
    """
    was = state.read()
    try:
        return _race(ctx, case)
    finally:
        state.changes(was)


def _race(ctx: Context, case: Case) -> Trouble | None:
    start = time.perf_counter()
    # Python 3.11 has ended the process where several threads were traced. Then it is done once more, without.
    steps = 0 if f"threads:{case.key}" in ctx.deadly else _steps(ctx, case)
    for one, most, pauses in ((case, _CALLS, steps), (_largest(ctx, case), _CALLS if steps else _MORE_CALLS, 0)):
        if pauses != steps and time.perf_counter() - start > _SECONDS:
            break
        lanes = _lanes(ctx, one)
        try:
            calls = _calls(ctx, one, len(lanes), most)
        except OpRaised:  # on what it took before
            raise NotThreads from None
        trouble = _Round(ctx, lanes, calls).at_once(pauses)
        if trouble is not None:
            if _Round(ctx, lanes, calls).in_turn() is not None:
                raise NotThreads
            if _recurs(trouble, [_Round(ctx, lanes, calls).at_once(pauses) for _ in range(2)]):
                return trouble
    return None


def _recurs(trouble: Trouble, again: list[Trouble | None]) -> bool:
    """Whether it was more than an accident of the one round: Python's own tracing is not safe with threads, and has
    raised exceptions that no code asked for. A result that is wrong must be so once more, an exception every time.
    """
    alike = [one is not None and one.raised == trouble.raised for one in again]
    return all(alike) if trouble.raised else any(alike)


def _lanes(ctx: Context, case: Case) -> list[Lane]:
    cases = [case, *alternatives.of(ctx, case)]
    return [Lane(one, ctx.require(one).results()) for one in (cases * _THREADS)[:_THREADS]]


def _largest(ctx: Context, case: Case) -> Case:
    """The case with one or two of its sizes made large, such that the op accepts it; or the case itself."""
    once = ctx.variants(case, "large")
    twice = [
        dataclasses.replace(more, variant=f"{one.variant}, {more.variant}")
        for one in once
        for more in ctx.variants(one, "large")
    ]
    ordered = sorted([case, *once, *twice], key=_elements, reverse=True)
    return next(one for one in ordered if one is case or ctx.attempt(one) is not None)


def _elements(case: Case) -> int:
    return sum(t.numel() for _, t in case.leaves())


def _calls(ctx: Context, case: Case, threads: int, most: int) -> int:
    """How many calls a thread makes in a round."""
    args, kwargs = case.inputs()
    start = time.perf_counter()
    out = ctx.call(ctx.info.op, *args, **kwargs)
    ctx.synchronize()
    took = time.perf_counter() - start
    held = sum(t.numel() * t.element_size() for t in tensors.tensors([args, kwargs, out]))
    fit = min(_ROUND_SECONDS / max(took, 1e-6), _BYTES / max(held, 1)) / threads
    return max(2, min(most, int(fit)))


class _Round:
    """A number of calls of each lane, and what came of them."""

    def __init__(self, ctx: Context, lanes: list[Lane], calls: int) -> None:
        self._ctx = ctx
        self._lanes = lanes
        self._calls = calls
        # Copies are made now, so that the threads spend their time in the op. No call sees what another has written.
        self._inputs = [[lane.case.inputs() for _ in range(calls)] for lane in lanes]
        self._outs: list[list[Any]] = [[] for _ in lanes]
        self._raised: list[BaseException | None] = [None] * len(lanes)

    def at_once(self, steps: int) -> Trouble | None:
        """Make the calls from a thread a lane. Each call pauses after one of ``steps`` steps of Python."""
        barrier = threading.Barrier(len(self._lanes))

        def work(n: int) -> None:
            chosen = random.Random(n)  # noqa: S311 - the same pauses in every run
            barrier.wait()
            for _ in range(self._calls):
                if steps:
                    sys.settrace(_Steps(chosen.randint(1, steps)).begin)
                self._call(n)
                sys.settrace(None)

        threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(len(self._lanes))]
        self._ctx.announce("threads", self._lanes[0].case)
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)  # Python's own turn is 5 ms, many calls long
        try:
            with self._ctx.seeded():
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self._ctx.synchronize()
        finally:
            sys.setswitchinterval(interval)
        self._ctx.announce("check", self._lanes[0].case)
        return self._trouble()

    def in_turn(self) -> Trouble | None:
        """Make the calls from this thread."""
        with self._ctx.seeded():
            for _ in range(self._calls):
                for n in range(len(self._lanes)):
                    self._call(n)
            self._ctx.synchronize()
        return self._trouble()

    def _call(self, n: int) -> None:
        if self._raised[n] is None:
            args, kwargs = self._inputs[n][len(self._outs[n])]
            try:
                self._outs[n].append(self._ctx.info.op(*args, **kwargs))
            except BaseException as error:  # whatever it is, it came out of the op
                self._raised[n] = error

    def _trouble(self) -> Trouble | None:
        ctx, first, wrong = self._ctx, "", 0
        for n, lane in enumerate(self._lanes):
            # Vectorised sums go by the alignment of memory: an equal call may round otherwise. A mix-up is far more.
            terms = max([t.numel() for _, t in lane.case.leaves()], default=1)
            for (args, kwargs), out in zip(self._inputs[n], self._outs[n], strict=False):
                got = Run(lane.case, args, kwargs, [], out, None, []).results()
                if _same_bits(got, lane.expected) or (text := ctx.compare(got, lane.expected, growth=terms)) is None:
                    continue
                wrong += 1
                mixed = any(not ctx.compare(got, o.expected) for o in self._lanes) if not first else False
                first = first or text + (", which is the result of another thread's call" if mixed else "")
        differ = wrong > 0
        for error in filter(None, self._raised):
            first, wrong = first or f"it raised {describe_error(error)}", wrong + 1
        made = sum(map(len, self._outs)) + sum(error is not None for error in self._raised)
        if not wrong:
            return None
        return Trouble(first, self._lanes[0].case, len(self._lanes), made, wrong, raised=not differ)


class _Steps:
    """Counts the steps that the library's own Python code takes in a call, and pauses after one of them.

    A step is an instruction of the interpreter: between any two of them Python may run another thread.
    """

    def __init__(self, pause_after: int = 0) -> None:
        self.taken = 0
        self._pause_after = pause_after

    def begin(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any] | None:  # noqa: ARG002
        """For `sys.settrace`."""
        if not pykernel.outside(frame.f_code.co_filename):
            return None
        frame.f_trace_opcodes = True
        return self._step

    def _step(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:  # noqa: ARG002
        if event in ("opcode", "line"):
            self.taken += 1
            if self.taken == self._pause_after:
                sys.settrace(None)
                time.sleep(_PAUSE)
        return self._step


def _steps(ctx: Context, case: Case) -> int:
    """How many steps of Python a call takes in the library's own code; 0 for kernels in C++."""
    counted = _Steps()

    def work() -> None:
        args, kwargs = case.inputs()
        sys.settrace(counted.begin)
        with contextlib.suppress(BaseException):  # an op that raises in a thread of its own is found out by the race
            ctx.call(ctx.info.op, *args, **kwargs)
        sys.settrace(None)

    thread = threading.Thread(target=work)  # where no debugger traces
    ctx.announce("threads", case)
    thread.start()
    thread.join()
    ctx.announce("check", case)
    return counted.taken


def _same_bits(actual: list[Any], expected: list[Any]) -> bool:
    """A cheap test that most results pass; what fails it is compared with tolerance."""
    a, b = tensors.tensors(actual), tensors.tensors(expected)
    alike = len(a) == len(actual) == len(b) == len(expected) and all(map(tensors.strided, [*a, *b]))
    return alike and all(map(compare.bitwise, a, b))
