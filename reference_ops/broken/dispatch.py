"""Ops that are right, and not in the modes in which models are served and trained."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from reference_ops.broken.fault import Fault, doubled, like, planted, two_matrices


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

FAULTS: list[Fault] = [
    planted(reads_version, "dispatch.inference_mode", reference=doubled),
    planted(fast_when_serving, "dispatch.inference_mode", reference=doubled),
    planted(saves_wide, "dispatch.autocast", "warn", samples=two_matrices),
]
