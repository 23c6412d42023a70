"""Run what Inductor makes of a function, and note how it calls operators.

Private names of torch used, all in this module: ``torch._inductor`` (config, ``compile_fx``, ``AsyncCompile``,
``codegen.common``), and in
``torch._C._dynamo.guards`` the function with which generated code allocates.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from opcheck_suite import ops
from opcheck_suite.inputs import tensors

Backend = Callable[[torch.fx.GraphModule, list[Any]], Callable[..., Any]]


def serves(device: str) -> bool:
    """Whether Inductor generates code for a device; those from outside of torch bring that themselves, or do not."""
    from torch._inductor.codegen import common

    common.init_backend_registration()
    return common.get_scheduling_for_device(torch.device(device).type) is not None


@dataclasses.dataclass(frozen=True)
class Layout:
    """How a kernel receives one tensor."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for layouts that reach the same elements in the same places: the stride of a dimension of size one is
        idle.
        """
        if 0 in self.shape:
            return (self.shape,)
        return self.shape, tuple(s for size, s in zip(self.shape, self.stride, strict=True) if size > 1)


def layout(tensor: torch.Tensor) -> Layout:
    """The layout of a strided tensor."""
    return Layout(tuple(tensor.shape), tuple(tensor.stride()))


@dataclasses.dataclass(frozen=True, eq=False)
class Call:
    """One call of an operator, as it arrived at the dispatcher below autograd."""

    layouts: tuple[Layout, ...]
    """Of the strided tensors among its arguments, in order."""
    values: tuple[torch.Tensor, ...]
    """Copies of all tensors among its arguments."""

    @property
    def key(self) -> tuple[Any, ...]:
        """The layouts, as far as they make a difference."""
        return tuple(one.key for one in self.layouts)


class Unanswered(Exception):
    """A call of an op, named, that cannot be run on any values."""


class Recorder(TorchDispatchMode):
    """While active, notes the calls of one op in ``calls``, and those of other ops by name with the bytes returned.

    With ``answer`` the op is not run, so that arguments may hold any values: what that returns is taken for its result.
    Ops of other libraries than torch, which the op may call in its place, are not run either: `Unanswered` is raised.
    """

    def __init__(self, op: Any, *, answer: Callable[[], Any] | None = None) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.others: list[tuple[str, int]] = []
        self._op = op
        self._answer = answer

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is self._op:
            given = tensors.tensors((args, kwargs))
            copies = tuple(t.detach().clone() for t in given)
            self.calls.append(Call(tuple(layout(t) for t in given if tensors.strided(t)), copies))
            return func(*args, **kwargs) if self._answer is None else self._answer()
        if self._answer is not None and func.namespace not in ops.TORCHS_OWN and not ops.info(func).from_torch:
            raise Unanswered(func.name())
        out = func(*args, **kwargs)
        self.others.append((func.name(), sum(t.numel() * t.element_size() for t in tensors.tensors(out))))
        return out


def recording(recorder: Recorder) -> Backend:
    """Backend ``inductor``, which notes the calls that its code makes when it runs.

    The mode is entered inside of the compiled function: Dynamo does not compile below a mode.
    """

    def backend(module: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        from torch._inductor.compile_fx import compile_fx

        compiled: Any = compile_fx(module, inputs)

        def run(*args: Any) -> Any:
            with recorder:
                return compiled(*args)

        return run

    return backend


def replaces(op: Any) -> bool:
    """Whether someone has told Inductor what to make of the op, so that it does not call it: by a lowering, or by a
    decomposition in the table that Inductor uses.
    """
    from torch._inductor import decomposition, lowering

    lowered = op in lowering.lowerings and op not in lowering.fallbacks
    return lowered or op in decomposition.select_decomp_table()


@contextlib.contextmanager
def without_generated_kernels(op: Any) -> Iterator[None]:
    """Have Inductor call the kernels that torch has, where it can; passes, order and arguments of calls stay as they
    are.

    To generate one in C++ costs seconds.
    """
    import torch._inductor.config as config

    with contextlib.nullcontext() if generates(op) else config.patch(fallback_by_default=True):
        yield


def generates(op: Any) -> bool:
    """Whether Inductor generates kernels beside an op whatever it is told: torch 2.9 lacks the setting, and an
    op that torch replaces would be left out with it.
    """
    import torch._inductor.config as config

    return not hasattr(config, "fallback_by_default") or replaces(op)


@dataclasses.dataclass
class Work:
    """What the code did that Inductor generated for the CPU."""

    kernels: int = 0
    """Calls of generated kernels."""
    buffers: int = 0
    """Allocations."""
    bytes: int = 0
    """What was allocated, in bytes."""


@contextlib.contextmanager
def hollow_kernels() -> Iterator[Work | None]:
    """Have Inductor generate kernels for the CPU without compiling their C++, and count what its code does.

    Its kernels then do nothing: buffers are there, in the layouts that Inductor decided on, and hold no values. None
    where this torch is built otherwise; kernels are then compiled and run.
    """
    from torch._C._dynamo import guards
    from torch._inductor.async_compile import AsyncCompile

    allocate = getattr(guards, "_empty_strided_cpu", None)
    if allocate is None or not hasattr(AsyncCompile, "cpp_pybinding"):
        yield None
        return
    work = Work()

    def kernel(*_: Any) -> None:
        work.kernels += 1

    def counted(shape: Any, stride: Any, dtype: torch.dtype) -> torch.Tensor:
        made = allocate(shape, stride, dtype)
        work.buffers += 1
        work.bytes += made.untyped_storage().nbytes()
        return made  # type: ignore[no-any-return]

    with (
        mock.patch.object(AsyncCompile, "cpp_pybinding", return_value=kernel),
        mock.patch.object(guards, "_empty_strided_cpu", counted),
    ):
        yield work


#: What an op's tags can say of the strides of its arguments, from strict to free: the strictest tag counts.
_CONSTRAINTS = ("needs_exact_strides", "needs_contiguous_strides", "needs_fixed_stride_order", "flexible_layout")


def constraint(op: Any) -> str:
    """The name of the tag that says which strides Inductor may call the op with: its own, or torch's for custom ops."""
    import torch._functorch.config as config

    own = {str(tag).removeprefix("Tag.") for tag in op.tags}
    default = str(getattr(config, "custom_op_default_layout_constraint", "needs_fixed_stride_order"))
    return next((name for name in _CONSTRAINTS if name in own), default)


def keeps_strides(op: Any) -> bool:
    """Whether Inductor promises to call the op with the strides that eager calls it with."""
    return constraint(op) == "needs_exact_strides"
