"""Six functions that break the graph, each under every strategy against that."""

from __future__ import annotations

import dataclasses
import logging
import struct
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch._dynamo
from torch import Tensor

log = logging.getLogger(__name__)

#: The strategies, in the order of the tables, each with what is done.
STRATEGIES: dict[str, str] = {
    "plain": "left alone, with `fullgraph=False`",
    "rewrite": "rewritten as constant control flow, or in torch operations",
    "cond": "`torch.cond`, or `torch.while_loop`",
    "nonstrict_trace": "marked with `torch._dynamo.nonstrict_trace`",
    "allow_in_graph": "marked with `torch.compiler.allow_in_graph`",
    "custom op": "wrapped with `torch.library.custom_op`",
    "setting": "a setting of `torch._dynamo.config`",
}


@dataclasses.dataclass(frozen=True)
class Way:
    """A function under one strategy, or why the strategy makes no sense for it."""

    fn: Callable[..., Any] | None = None
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Settings of ``torch._dynamo.config``."""
    no_sense: str = ""


@dataclasses.dataclass(frozen=True)
class Trouble:
    """A function that breaks the graph."""

    name: str
    plain: Callable[..., Any]
    inputs: tuple[tuple[Any, ...], ...]
    """Arguments of the calls, all of one shape. They take different branches and need different numbers of steps."""
    ways: dict[str, Way]
    verdict: str
    """What to do, in a sentence."""
    effects: bool = False
    """Whether it prints or logs."""


def _numbers(seed: int, *, shift: float = 0.0) -> Tensor:
    return torch.randn(8, generator=torch.Generator().manual_seed(seed)) + shift


def _copy(fn: types.FunctionType) -> Callable[..., Any]:
    """A function of its own: marks go by the identity of a function, and must not stick to the plain one."""
    return types.FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


def _nonstrict(fn: Any) -> Way:
    marked = torch._dynamo.nonstrict_trace(_copy(fn))

    def through_nonstrict_trace(*args: Any) -> Any:
        return marked(*args)

    return Way(through_nonstrict_trace)


def _allowed(fn: Any) -> Way:
    marked = torch.compiler.allow_in_graph(_copy(fn))

    def through_allow_in_graph(*args: Any) -> Any:
        return marked(*args)

    return Way(through_allow_in_graph)


# -- a branch on a number that is read from a tensor


def item_branch(x: Tensor) -> Tensor:
    """Which side is taken depends on the data."""
    if x.sum().item() > 0:
        return x * 2
    return x - 1


def item_branch_where(x: Tensor) -> Tensor:
    """Both sides are computed."""
    return torch.where(x.sum() > 0, x * 2, x - 1)


def item_branch_cond(x: Tensor) -> Tensor:
    """One side is computed, within the graph."""
    return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))


@torch.library.custom_op("strategies::item_branch", mutates_args=())
def item_branch_op(x: Tensor) -> Tensor:
    """The plain function as an operator."""
    return item_branch(x).clone()


item_branch_op.register_fake(torch.empty_like)


# -- a loop that the data ends


def loop(x: Tensor) -> Tensor:
    """Halve x until its norm is at most 1."""
    while x.norm() > 1:
        x = x / 2
    return x


def loop_fixed(x: Tensor) -> Tensor:
    """The same for norms up to 2**6; further steps change nothing."""
    for _ in range(6):
        x = torch.where(x.norm() > 1, x / 2, x)
    return x


def loop_while(x: Tensor) -> Tensor:
    """The loop is in the graph."""
    return torch.while_loop(lambda x: x.norm() > 1, lambda x: (x / 2,), (x,))[0]


@torch.library.custom_op("strategies::loop", mutates_args=())
def loop_op(x: Tensor) -> Tensor:
    """The plain function as an operator, which must not return its input."""
    return loop(x).clone()


loop_op.register_fake(torch.empty_like)


# -- NumPy that torch has no counterpart of

_KNOTS = [-2.0, 0.0, 2.0]
_VALUES = [0.0, 1.0, 4.0]


def numpy_call(x: Tensor) -> Tensor:
    """Interpolate between three points, with NumPy."""
    return torch.from_numpy(np.interp(x.numpy(), _KNOTS, _VALUES)).to(x.dtype)


def numpy_in_torch(x: Tensor) -> Tensor:
    """The same, in torch operations."""
    clamped = x.clamp(_KNOTS[0], _KNOTS[-1])
    left = _VALUES[0] + (clamped - _KNOTS[0]) * (_VALUES[1] - _VALUES[0]) / (_KNOTS[1] - _KNOTS[0])
    right = _VALUES[1] + (clamped - _KNOTS[1]) * (_VALUES[2] - _VALUES[1]) / (_KNOTS[2] - _KNOTS[1])
    return torch.where(clamped < _KNOTS[1], left, right)


@torch.library.custom_op("strategies::numpy_call", mutates_args=())
def numpy_op(x: Tensor) -> Tensor:
    """The plain function as an operator."""
    return numpy_call(x)


@numpy_op.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(x.shape)


# -- print and logging


def chatty(x: Tensor) -> Tensor:
    """Prints, and logs, between two steps."""
    y = torch.sin(x)
    print("norm", y.norm())
    log.warning("computed")
    return y * 2


def chatty_quiet(x: Tensor) -> Tensor:
    """Prints and logs in eager only."""
    y = torch.sin(x)
    if not torch.compiler.is_compiling():
        print("norm", y.norm())
        log.warning("computed")
    return y * 2


@torch.library.custom_op("strategies::report", mutates_args=())
def report(y: Tensor) -> Tensor:
    """Print and log, and return a copy, so that the operator has a result that is used."""
    print("norm", y.norm())
    log.warning("computed")
    return y.clone()


report.register_fake(torch.empty_like)


def chatty_op(x: Tensor) -> Tensor:
    """Prints and logs within an operator."""
    return report(torch.sin(x)) * 2


# -- an object of a C extension

_HALF = struct.Struct("<e")


def third_party(x: Tensor, factor: float) -> Tensor:
    """Multiply by a number that is rounded to half precision by an object that is not written in Python."""
    return x * _HALF.unpack(_HALF.pack(factor))[0]


def third_party_in_torch(x: Tensor, factor: float) -> Tensor:
    """The rounding in torch operations."""
    return x * torch.tensor(factor, dtype=torch.float16).to(x.dtype)


@torch.library.custom_op("strategies::third_party", mutates_args=())
def third_party_op(x: Tensor, factor: float) -> Tensor:
    """The plain function as an operator."""
    return third_party(x, factor)


@third_party_op.register_fake
def _(x: Tensor, factor: float) -> Tensor:
    return torch.empty_like(x)


# -- a shape that depends on data


def positive_mean(x: Tensor) -> Tensor:
    """The mean of the positive elements, of which there are as many as the data says."""
    return x[x > 0].mean()


def positive_mean_masked(x: Tensor) -> Tensor:
    """The size is kept, and what does not count is masked."""
    positive = x > 0
    return torch.where(positive, x, 0).sum() / positive.sum()


@torch.library.custom_op("strategies::positive_mean", mutates_args=())
def positive_mean_op(x: Tensor) -> Tensor:
    """The plain function as an operator: outside of it, no size depends on data."""
    return positive_mean(x)


@positive_mean_op.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(())


#: The setting for logging functions that compiled code leaves out, as this torch calls it.
_IGNORED = next(n for n in ("ignore_logging_functions", "ignore_logger_methods") if hasattr(torch._dynamo.config, n))
_NO_BRANCH = "there is no branch and no loop"
_BRANCHES = ((_numbers(0, shift=1.0),), (_numbers(1, shift=-1.0),), (_numbers(2, shift=2.0),))
_LENGTHS = ((_numbers(0),), (_numbers(1) * 9,), (_numbers(2) * 0.1,))
_DATA = ((_numbers(0),), (_numbers(1),), (_numbers(2),))

TROUBLES = (
    Trouble(
        "`.item()` branch",
        item_branch,
        _BRANCHES,
        {
            "plain": Way(item_branch),
            "rewrite": Way(item_branch_where),
            "cond": Way(item_branch_cond),
            "nonstrict_trace": _nonstrict(item_branch),
            "allow_in_graph": _allowed(item_branch),
            "custom op": Way(item_branch_op),
            "setting": Way(_copy(item_branch), {"capture_scalar_outputs": True}),
        },
        "Rewrite with `torch.where`; take `torch.cond` where a side is expensive.",
    ),
    Trouble(
        "data-dependent loop",
        loop,
        _LENGTHS,
        {
            "plain": Way(loop),
            "rewrite": Way(loop_fixed),
            "cond": Way(loop_while),
            "nonstrict_trace": _nonstrict(loop),
            "allow_in_graph": _allowed(loop),
            "custom op": Way(loop_op),
            "setting": Way(no_sense="no setting captures a branch on a tensor"),
        },
        "Rewrite with a fixed number of steps if there is a bound on them; otherwise make the loop an operator.",
    ),
    Trouble(
        "NumPy call",
        numpy_call,
        _DATA,
        {
            "plain": Way(numpy_call),
            "rewrite": Way(numpy_in_torch),
            "cond": Way(no_sense=_NO_BRANCH),
            "nonstrict_trace": _nonstrict(numpy_call),
            "allow_in_graph": _allowed(numpy_call),
            "custom op": Way(numpy_op),
            "setting": Way(no_sense="NumPy is traced by default, where torch has a counterpart"),
        },
        "Rewrite in torch operations; where that is too much work, a custom op keeps the graph whole.",
    ),
    Trouble(
        "`print` and logging",
        chatty,
        _DATA,
        {
            "plain": Way(chatty),
            "rewrite": Way(chatty_quiet),
            "cond": Way(no_sense=_NO_BRANCH),
            "nonstrict_trace": _nonstrict(chatty),
            "allow_in_graph": _allowed(chatty),
            "custom op": Way(chatty_op),
            "setting": Way(_copy(chatty), {"reorderable_logging_functions": {print}, _IGNORED: {log.warning}}),
        },
        "Leave it out of compiled code. The setting keeps `print`; an operator keeps both, with each call.",
        effects=True,
    ),
    Trouble(
        "third-party object",
        third_party,
        tuple((x, 0.3) for (x,) in _DATA),
        {
            "plain": Way(third_party),
            "rewrite": Way(third_party_in_torch),
            "cond": Way(no_sense=_NO_BRANCH),
            "nonstrict_trace": _nonstrict(third_party),
            "allow_in_graph": _allowed(third_party),
            "custom op": Way(third_party_op),
            "setting": Way(no_sense="no setting makes Dynamo look into a C extension"),
        },
        "As the object sees a plain number only, marking the function is enough; with tensors, a custom op.",
    ),
    Trouble(
        "data-dependent shape",
        positive_mean,
        _DATA,
        {
            "plain": Way(positive_mean),
            "rewrite": Way(positive_mean_masked),
            "cond": Way(no_sense=_NO_BRANCH),
            "nonstrict_trace": _nonstrict(positive_mean),
            "allow_in_graph": _allowed(positive_mean),
            "custom op": Way(positive_mean_op),
            "setting": Way(_copy(positive_mean), {"capture_dynamic_output_shape_ops": True}),
        },
        "Mask instead of selecting; the setting keeps the selection in the graph.",
    ),
)
