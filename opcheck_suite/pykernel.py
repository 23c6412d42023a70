"""The Python function behind an op, found by watching a call: torch does not tell which function a kernel is."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from opcheck_suite import places, reads, state
from opcheck_suite.context import Context, Refused
from opcheck_suite.inputs.cases import Case


@dataclasses.dataclass(frozen=True, eq=False)
class Kernel:
    """A Python kernel as it was seen at work."""

    function: Callable[..., Any]
    returned: Any
    finished: bool
    """Whether it returned; otherwise it raised, and ``returned`` is None."""
    bound: dict[str, Any] = dataclasses.field(default_factory=dict)
    """The values of parameters that did not come from the call: the object of a method, what ``functools.partial``
    bound."""


def of(ctx: Context, case: Case) -> Kernel | None:
    """The Python kernel that a call of the op on a case ends in; None for kernels in C++."""
    return ctx.memo(("kernel", case.key), lambda: _watch(ctx, case))


def first(ctx: Context) -> Kernel | None:
    """The Python kernel of the first sample that has one."""
    return next((k for k in (of(ctx, case) for case in ctx.samples) if k is not None), None)


def _watch(ctx: Context, case: Case) -> Kernel | None:
    found: list[types.FrameType] = []
    given: dict[str, Any] = {}
    returned: list[Any] = []

    def profile(frame: types.FrameType, event: str, arg: Any) -> None:
        if event == "call" and not found and outside(frame.f_code.co_filename):
            found.append(frame)
            given.update({name: frame.f_locals[name] for name in reads.parameters(frame.f_code)})
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
    with _all_referrers():
        function = _function_of(found[0].f_code)
        if function is None:
            return None
        bound = _bound(function, given) if len(given) > len(args) + len(kwargs) else {}
    return Kernel(function, returned[0] if returned else None, finished, bound)


@contextlib.contextmanager
def _all_referrers() -> Iterator[None]:
    """Let the collector see what a forked child inherited: it is frozen there, and the collector then overlooks it."""
    frozen = gc.get_freeze_count() > 0
    if frozen:
        gc.unfreeze()
    try:
        yield
    finally:
        if frozen:
            gc.freeze()


def _function_of(code: types.CodeType) -> types.FunctionType | None:
    """The function that runs a code object. A frame does not tell; the collector knows who refers to the code."""
    return next((f for f in gc.get_referrers(code) if isinstance(f, types.FunctionType) and f.__code__ is code), None)


def _bound(function: types.FunctionType, values: dict[str, Any]) -> dict[str, Any]:
    """Which of the values that a function was called with are the object of a method or bound by ``functools.partial``.

    Known by whoever refers to the function: a frame does not tell what it was called through.
    """
    callables: list[Any] = [one for one in values.values() if not isinstance(one, type)][:1]
    callables += _calling(function)
    if methods := [one for one in callables if isinstance(one, types.MethodType)]:
        callables += _calling(*methods)
    found: list[dict[str, Any]] = [{}]
    for one in callables:
        behind, bound = reads.unbound(one)
        if behind is function and all(values.get(name) is value for name, value in bound.items()):
            found.append(bound)
    return max(found, key=len)


def _calling(*callables: Any) -> list[Any]:
    """The methods and partials that hold some callables."""
    return [one for one in gc.get_referrers(*callables) if isinstance(one, functools.partial | types.MethodType)]


def outside(filename: str) -> bool:
    """Whether a file of Python code is the library's, and not made up by a compiler."""
    return places.users(filename) and not filename.startswith("<")
