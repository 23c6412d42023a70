"""Ops that are right, and not in the modes in which models are served and trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from reference_ops.broken.fault import Fault, define, doubled, library, like, matrix_and_number, planted, two_matrices


@torch.library.custom_op("broken_dispatch::reads_version", mutates_args=())
def reads_version(x: Tensor) -> Tensor:
    """The kernel asks for the version of its argument, which tensors of inference mode do not have."""
    return doubled(x) if x._version >= 0 else x.clone()


reads_version.register_fake(like)


@torch.library.custom_op("broken_dispatch::fast_when_serving", mutates_args=())
def fast_when_serving(x: Tensor) -> Tensor:
    """In inference mode the result is computed in half precision."""
    return doubled(x.half().to(x.dtype) if torch.is_inference_mode_enabled() else x)


fast_when_serving.register_fake(like)


@torch.library.custom_op("broken_dispatch::saves_wide", mutates_args=())
def saves_wide(x: Tensor, weight: Tensor) -> Tensor:
    """The formula multiplies a gradient of type bfloat16 with a matrix that was saved as float32."""
    return x.new_empty((x.shape[0], weight.shape[0])).copy_(_wide(x) @ _wide(weight).t())


def _wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


@saves_wide.register_fake
def _(x: Tensor, weight: Tensor) -> Tensor:
    torch._check(x.dim() == 2 and weight.dim() == 2)
    torch._check(x.shape[1] == weight.shape[1])
    return x.new_empty((x.shape[0], weight.shape[0]))


def _save_wide(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*map(_wide, inputs))


def _gradient(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
    x, weight = ctx.saved_tensors
    return grad @ weight, grad.t() @ x


saves_wide.register_autograd(_gradient, setup_context=_save_wide)


def grad_kept(x: Tensor) -> Tensor:
    """The kernel works with gradients switched on, and returns a tensor that is still part of that graph."""
    with torch.enable_grad():
        return doubled(x)


def hides_when_serving(x: Tensor) -> Tensor:
    """The kernel at the Autograd key computes the result itself where nothing requires grad."""
    return doubled(x)


def differs_in_modes(x: Tensor) -> Tensor:
    """The kernel at the Autograd key calls the op in half precision where somebody is watching."""
    return doubled(x)


def gradient_on_cpu(x: Tensor) -> Tensor:
    """The op has kernels for the CPU and for CUDA, and a gradient for the CPU."""
    return doubled(x)


@torch.library.custom_op("broken_dispatch::table_on_cpu", mutates_args=())
def table_on_cpu(x: Tensor) -> Tensor:
    """The kernel is for all devices, and makes a tensor without saying where."""
    return like(x).copy_(x * torch.full(x.shape[-1:], 2.0, dtype=x.dtype))


@torch.library.custom_op("broken_dispatch::left_on_cpu", mutates_args=())
def left_on_cpu(x: Tensor) -> Tensor:
    """The kernel claims CUDA, and copies its result into memory of the CPU."""
    return torch.empty(x.shape, dtype=x.dtype).copy_(x * 2)


@torch.library.custom_op("broken_dispatch::reads_host_memory", mutates_args=(), device_types=("cpu", "cuda"))
def reads_host_memory(x: Tensor) -> Tensor:
    """The kernel claims CUDA, and computes with NumPy."""
    return like(x).copy_(torch.as_tensor(x.detach().numpy() * 2))


for _op in (table_on_cpu, left_on_cpu, reads_host_memory):
    _op.register_fake(like)


_LIBRARY = library("broken_dispatch")
_X = "(Tensor x) -> Tensor"
_GRAD_KEPT = define(_LIBRARY, "grad_kept", _X, grad_kept, like)


def _below_autograd(name: str, x: Tensor) -> Tensor:
    with torch._C._AutoDispatchBelowAutograd():
        result: Tensor = getattr(torch.ops.broken_dispatch, name)(x)
    return result


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(_ctx: Any, x: Tensor, name: str) -> Tensor:
        return _below_autograd(name, x)

    @staticmethod
    def backward(_ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad * 2, None


def _hiding(x: Tensor) -> Tensor:
    return _Doubled.apply(x, "hides_when_serving") if x.requires_grad else doubled(x)


def _differing(x: Tensor) -> Tensor:
    watched = torch._C._len_torch_dispatch_stack() > 0
    return _Doubled.apply(x.half().to(x.dtype) if watched else x, "differs_in_modes")


_HIDES = define(_LIBRARY, "hides_when_serving", _X, hides_when_serving, like)
_LIBRARY.impl("hides_when_serving", _hiding, "Autograd")
_DIFFERS = define(_LIBRARY, "differs_in_modes", _X, differs_in_modes, like)
_LIBRARY.impl("differs_in_modes", _differing, "Autograd")


def _with_gradient_on_cpu(name: str) -> str:
    op = define(_LIBRARY, name, _X, gradient_on_cpu, like)
    _LIBRARY.impl(name, gradient_on_cpu, "CUDA")
    _LIBRARY.impl(name, lambda x: _Doubled.apply(x, name), "AutogradCPU")
    return op


_ON_CPU = _with_gradient_on_cpu("gradient_on_cpu")
_ON_CPU_CLAIMED = _with_gradient_on_cpu("gradient_on_cpu_claimed")


def rule_casts_first(x: Tensor, weight: Tensor) -> Tensor:
    """The autocast rule casts x and forgets the weight."""
    return x.new_empty((x.shape[0], weight.shape[0])).copy_(x @ weight.t())


def rule_casts_activations(x: Tensor, weight: Tensor) -> Tensor:
    """The autocast rule casts both arguments where x is in float32, and none where x comes out of a region."""
    return rule_casts_first(x, weight)


def rule_hard_codes_half(x: Tensor) -> Tensor:
    """The autocast rule casts to float16, also in a region of bfloat16."""
    return doubled(x)


def rule_drops_argument(x: Tensor, factor: float = 1.0) -> Tensor:
    """The autocast rule forgets to pass the factor on."""
    return like(x).copy_(x * factor)


def rule_without_end(x: Tensor) -> Tensor:
    """The autocast rule calls the op in the region, and so itself."""
    return doubled(x)


def rule_calls_kernel(x: Tensor) -> Tensor:
    """The autocast rule calls NumPy and not the op, so that fake tensors do not get past it."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))  # NumPy knows no bfloat16
    return like(x).copy_(torch.from_numpy(wide.numpy() * 2))


@torch.library.custom_op("broken_dispatch::rule_copies", mutates_args=("x",))
def rule_copies(x: Tensor) -> None:
    """The autocast rule casts the argument that the op writes to, and the op writes to the copy."""
    x.mul_(2)


rule_copies.register_autocast("cpu", torch.bfloat16)


def _product(x: Tensor, weight: Tensor) -> Tensor:
    torch._check(x.dim() == 2 and weight.dim() == 2)
    torch._check(x.shape[1] == weight.shape[1])
    torch._check(x.dtype == weight.dtype)
    return x.new_empty((x.shape[0], weight.shape[0]))


def _like_first(x: Tensor, factor: float = 1.0) -> Tensor:
    return like(x)


def _low(x: Tensor) -> Tensor:
    return x.to(torch.get_autocast_dtype("cpu"))


def _with_rule(kernel: Callable[..., Any], schema: str, fake: Callable[..., Any], rule: Callable[..., Any]) -> str:
    """Define an op, and an autocast rule that calls the function that it is handed: the op, outside of the region."""

    def outside(*args: Any) -> Any:
        with torch.autocast("cpu", enabled=False):
            return getattr(torch.ops.broken_dispatch, kernel.__name__)(*args)

    op = define(_LIBRARY, kernel.__name__, schema, kernel, fake)
    _LIBRARY.impl(kernel.__name__, lambda *args: rule(outside, *args), "AutocastCPU")
    return op


_X_WEIGHT = "(Tensor x, Tensor weight) -> Tensor"
_CASTS_FIRST = _with_rule(rule_casts_first, _X_WEIGHT, _product, lambda op, x, weight: op(_low(x), weight))
_CASTS_ACTIVATIONS = _with_rule(
    rule_casts_activations,
    _X_WEIGHT,
    _product,
    lambda op, x, weight: op(_low(x), _low(weight)) if x.dtype == torch.float32 else op(x, weight),
)
_HARD_CODES_HALF = _with_rule(rule_hard_codes_half, _X, like, lambda op, x: op(x.half()))
_DROPS_ARGUMENT = _with_rule(
    rule_drops_argument,
    "(Tensor x, float factor=1.0) -> Tensor",
    _like_first,
    lambda op, x, *_: op(_low(x)),
)
_WITHOUT_END = _with_rule(
    rule_without_end, _X, like, lambda _op, x: torch.ops.broken_dispatch.rule_without_end(_low(x))
)
_CALLS_KERNEL = _with_rule(rule_calls_kernel, _X, like, lambda _op, x: rule_calls_kernel(x).to(torch.bfloat16))


FAULTS: list[Fault] = [
    planted(reads_version, "dispatch.inference_mode", reference=doubled),
    planted(fast_when_serving, "dispatch.inference_mode", reference=doubled),
    planted(saves_wide, "dispatch.autocast", "warn", samples=two_matrices),
    planted(_CASTS_FIRST, "dispatch.autocast_rule", kernel=rule_casts_first, samples=two_matrices),
    planted(_CASTS_ACTIVATIONS, "dispatch.autocast_rule", "warn", kernel=rule_casts_activations, samples=two_matrices),
    planted(_HARD_CODES_HALF, "dispatch.autocast_rule", "warn", kernel=rule_hard_codes_half, reference=doubled),
    planted(_DROPS_ARGUMENT, "dispatch.autocast_rule", kernel=rule_drops_argument, samples=matrix_and_number),
    planted(_WITHOUT_END, "dispatch.autocast_rule", kernel=rule_without_end, reference=doubled),
    planted(_CALLS_KERNEL, "dispatch.autocast_rule", kernel=rule_calls_kernel, reference=doubled),
    planted(rule_copies, "dispatch.autocast_rule", also={"transform.vmap": "warn"}),
    planted(_GRAD_KEPT, "dispatch.no_grad", kernel=grad_kept, reference=doubled),
    planted(
        _HIDES,
        "dispatch.modes",
        also={"compile.opaque": "fail", "export.decompositions": "fail"},
        kernel=hides_when_serving,
        reference=doubled,
    ),
    # what compilers trace with is a dispatch mode
    planted(
        _DIFFERS,
        "dispatch.modes",
        also={"opcheck.utils": "fail", "compile.parity": "fail", "export.decompositions": "fail"},
        kernel=differs_in_modes,
        reference=doubled,
    ),
    planted(_ON_CPU, "dispatch.keys", "warn", kernel=gradient_on_cpu, reference=doubled),
    planted(
        _ON_CPU_CLAIMED,
        "dispatch.keys",
        kernel=gradient_on_cpu,
        devices=("cpu", "cuda"),
        differentiable=True,
        reference=doubled,
    ),
    planted(table_on_cpu, "dispatch.devices", "warn", devices=None, reference=doubled),
    planted(left_on_cpu, "dispatch.devices", devices=("cpu", "cuda"), reference=doubled),
    planted(reads_host_memory, "dispatch.devices", devices=("cpu", "cuda"), reference=doubled),
]
