"""The Python function behind an op, found by watching a call: torch does not tell which function a kernel is."""

from __future__ import annotations

import dataclasses
import gc
import sys
import types
from collections.abc import Callable
from typing import Any

from opcheck_suite import places, state
from opcheck_suite.context import Context, Refused
from opcheck_suite.inputs.cases import Case


@dataclasses.dataclass(frozen=True, eq=False)
class Kernel:
    """A Python kernel as it was seen at work."""

    function: Callable[..., Any]
    returned: Any
    finished: bool
    """Whether it returned; otherwise it raised, and ``returned`` is None."""


def of(ctx: Context, case: Case) -> Kernel | None:
    """The Python kernel that a call of the op on a case ends in; None for kernels in C++."""
    return ctx.memo(("kernel", case.key), lambda: _watch(ctx, case))


def first(ctx: Context) -> Kernel | None:
    """The Python kernel of the first sample that has one."""
    return next((k for k in (of(ctx, case) for case in ctx.samples) if k is not None), None)


def _watch(ctx: Context, case: Case) -> Kernel | None:
    found: list[types.FrameType] = []
    returned: list[Any] = []

    def profile(frame: types.FrameType, event: str, arg: Any) -> None:
        if event == "call" and not found and outside(frame.f_code.co_filename):
            found.append(frame)
        elif event == "return" and found and frame is found[0] and not returned:
            returned.append(arg)

    try:
        ctx.eager(case)  # the first call is announced, and what it leaves behind is noted: this one is neither
    except Refused:
        return None
    args, kwargs = case.inputs()
    before, was = sys.getprofile(), state.read()
    with ctx.seeded():
        sys.setprofile(profile)
        try:
            ctx.info.op(*args, **kwargs)
            finished = True
        except KeyboardInterrupt:
            raise
        except BaseException:
            # The dispatcher raises after a kernel that returned the wrong number of values, too.
            finished = bool(returned) and returned[0] is not None
        finally:
            sys.setprofile(before)
            state.changes(was)
    if not found:
        return None
    function = _function_of(found[0].f_code)
    return None if function is None else Kernel(function, returned[0] if returned else None, finished)


def _function_of(code: types.CodeType) -> types.FunctionType | None:
    """The function that runs a code object. A frame does not tell; the collector knows who refers to the code."""
    frozen = gc.get_freeze_count() > 0  # a forked child freezes what it inherits, and the collector then overlooks it
    if frozen:
        gc.unfreeze()
    try:
        return next(
            (f for f in gc.get_referrers(code) if isinstance(f, types.FunctionType) and f.__code__ is code), None
        )
    finally:
        if frozen:
            gc.freeze()


def outside(filename: str) -> bool:
    """Whether a file of Python code is the library's, and not made up by a compiler."""
    return places.users(filename) and not filename.startswith("<")
