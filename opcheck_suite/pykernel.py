"""The Python function behind an op, found by watching a call: torch keeps no reference to kernels that can be asked for."""

from __future__ import annotations

import dataclasses
import gc
import os
import sys
import types
from collections.abc import Callable
from typing import Any

import torch

from opcheck_suite.context import Context
from opcheck_suite.inputs.cases import Case

_TORCH = os.path.dirname(torch.__file__) + os.sep
_OWN = os.path.dirname(__file__) + os.sep


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
        if event == "call" and not found and _outside(frame.f_code.co_filename):
            found.append(frame)
        elif event == "return" and found and frame is found[0] and not returned:
            returned.append(arg)

    if f"eager:{case.key}" in ctx.deadly or ctx.eager(case).case is None:
        return None
    args, kwargs = case.inputs()
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        with ctx.seeded():
            ctx.info.op(*args, **kwargs)
        finished = True
    except Exception:
        # The dispatcher raises after a kernel that returned the wrong number of values, too.
        finished = bool(returned) and returned[0] is not None
    finally:
        sys.setprofile(before)
    if not found:
        return None
    code = found[0].f_code
    functions = [f for f in gc.get_referrers(code) if isinstance(f, types.FunctionType) and f.__code__ is code]
    if not functions:
        return None
    return Kernel(functions[0], returned[0] if returned else None, finished)


def _outside(filename: str) -> bool:
    return not filename.startswith((_TORCH, _OWN, "<")) and "contextlib" not in filename
