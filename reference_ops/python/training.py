"""Ops with a backward that are differentiable once, or any number of times.

Every backward leaves out what ``ctx.needs_input_grad`` says nobody wants, and gets by with incoming gradients that are
not contiguous. Those written in differentiable torch operations can themselves be differentiated.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from opcheck_suite.model import OpSpec, Sample
from reference_ops.python import conditions
from reference_ops.python.conditions import COMPLEX, FLOATS, NUMPY_FLOATS
from reference_ops.python.data import normal
from reference_ops.python.precision import double, widened


def _cube_result(x: Tensor) -> Tensor:
    conditions.dtype_among("cube", "x", x, FLOATS)
    return x.new_empty(x.shape)


@torch.library.custom_op("reference::cube", mutates_args=())
def cube(x: Tensor) -> Tensor:
    """x to the third power. Its gradient is an op of its own, as where a library has a kernel for it."""
    return _cube_result(x).copy_(widened(x) ** 3)


cube.register_fake(_cube_result)


def _cube_backward_result(grad: Tensor, x: Tensor) -> Tensor:
    conditions.dtype_among("cube_backward", "x", x, FLOATS)
    conditions.alike("cube_backward", "grad", grad, "x", x)
    return x.new_empty(x.shape)


@torch.library.custom_op("reference::cube_backward", mutates_args=())
def cube_backward(grad: Tensor, x: Tensor) -> Tensor:
    """Gradient of cube. It has no gradient itself: a second derivative is refused, not wrong."""
    return _cube_backward_result(grad, x).copy_(3 * widened(x) ** 2 * grad)


cube_backward.register_fake(_cube_backward_result)


def _save_inputs(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _cube_gradient(ctx: Any, grad: Tensor) -> Tensor | None:
    (x,) = ctx.saved_tensors
    return cube_backward(grad, x) if ctx.needs_input_grad[0] else None


cube.register_autograd(_cube_gradient, setup_context=_save_inputs)


def _wave_result(op: str, x: Tensor) -> Tensor:
    conditions.dtype_among(op, "x", x, NUMPY_FLOATS + COMPLEX)
    return x.new_empty(x.shape)


def _by_numpy(function: Callable[[Any], Any], x: Tensor) -> Tensor:
    # NumPy warns where infinity becomes NaN; torch does not.
    with np.errstate(all="ignore"):
        return torch.as_tensor(function(x.detach().cpu().numpy()))


@torch.library.custom_op("reference::sine", mutates_args=(), tags=(torch.Tag.cudagraph_unsafe,))
def sine(x: Tensor) -> Tensor:
    """sin(x) by NumPy."""
    return _wave_result("sine", x).copy_(_by_numpy(np.sin, x))


@sine.register_fake
def _(x: Tensor) -> Tensor:
    return _wave_result("sine", x)


@torch.library.custom_op("reference::cosine", mutates_args=(), tags=(torch.Tag.cudagraph_unsafe,))
def cosine(x: Tensor) -> Tensor:
    """cos(x) by NumPy."""
    return _wave_result("cosine", x).copy_(_by_numpy(np.cos, x))


@cosine.register_fake
def _(x: Tensor) -> Tensor:
    return _wave_result("cosine", x)


def _sine_gradient(ctx: Any, grad: Tensor) -> Tensor | None:
    # torch's gradient of a holomorphic function is the conjugate of its derivative; conj does nothing to real numbers.
    (x,) = ctx.saved_tensors
    return grad * cosine(x).conj() if ctx.needs_input_grad[0] else None


def _cosine_gradient(ctx: Any, grad: Tensor) -> Tensor | None:
    (x,) = ctx.saved_tensors
    return -grad * sine(x).conj() if ctx.needs_input_grad[0] else None


sine.register_autograd(_sine_gradient, setup_context=_save_inputs)
cosine.register_autograd(_cosine_gradient, setup_context=_save_inputs)


def _project_result(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    conditions.dims("project", "x", x, 2)
    conditions.dims("project", "weight", weight, 2)
    conditions.dtype_among("project", "x", x, FLOATS)
    conditions.same_kind("project", "x", x, "weight", weight)
    conditions.same_size("project", "the last dimensions of x and weight", x.shape[1], weight.shape[1])
    if bias is not None:
        conditions.dims("project", "bias", bias, 1)
        conditions.same_kind("project", "x", x, "bias", bias)
        conditions.same_size("project", "the rows of weight and the length of bias", weight.shape[0], bias.shape[0])
    return x.new_empty((x.shape[0], weight.shape[0]))


@torch.library.custom_op("reference::project", mutates_args=())
def project(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x (n, k) times the transpose of weight (m, k), plus bias (m)."""
    result = _project_result(x, weight, bias)
    return result.copy_(x @ weight.t() if bias is None else torch.addmm(bias, x, weight.t()))


project.register_fake(_project_result)


def _project_aten(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    product = torch.einsum("nk,mk->nm", double(x), double(weight))
    return (product if bias is None else product + bias).to(x.dtype)


def _project_save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, weight, _bias = inputs
    # Gradients need the other factor only, and a frozen layer should not hold on to its input.
    ctx.save_for_backward(x if ctx.needs_input_grad[1] else None, weight if ctx.needs_input_grad[0] else None)


def _project_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, weight = ctx.saved_tensors
    return (
        grad @ weight if ctx.needs_input_grad[0] else None,
        grad.t() @ x if ctx.needs_input_grad[1] else None,
        grad.sum(0) if ctx.needs_input_grad[2] else None,
    )


project.register_autograd(_project_gradient, setup_context=_project_save)


def _rms_result(x: Tensor, weight: Tensor) -> Tensor:
    conditions.dtype_among("rms_norm", "x", x, FLOATS)
    conditions.dtype_among("rms_norm", "weight", weight, FLOATS)
    conditions.dims("rms_norm", "x", x, 2)
    conditions.dims("rms_norm", "weight", weight, 1)
    conditions.same_size("rms_norm", "the columns of x and the length of weight", x.shape[1], weight.shape[0])
    return x.new_empty(x.shape)


@torch.library.custom_op("reference::rms_norm", mutates_args=())
def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """The rows of x (n, k) divided by their root mean square, times weight (k): in float32, whatever the dtypes."""
    rows = x.float()
    scale = torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-5)
    return _rms_result(x, weight).copy_(rows * scale * weight.float())


rms_norm.register_fake(_rms_result)


def _rms_aten(x: Tensor, weight: Tensor) -> Tensor:
    rows = double(x)
    return (rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-5) * double(weight)).to(x.dtype)


def _rms_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, weight = ctx.saved_tensors
    rows, wide = x.float(), grad.float()
    scale = torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-5)
    weighted = wide * weight.float()
    along = (weighted * rows).mean(-1, keepdim=True)
    return (
        ((weighted - rows * scale.square() * along) * scale).to(x.dtype) if ctx.needs_input_grad[0] else None,
        (wide * rows * scale).sum(0).to(weight.dtype) if ctx.needs_input_grad[1] else None,
    )


rms_norm.register_autograd(_rms_gradient, setup_context=_save_inputs)


def _dropped_result(x: Tensor, rate: float) -> tuple[Tensor, Tensor]:
    conditions.dtype_among("drop", "x", x, FLOATS)
    return x.new_empty(x.shape), x.new_empty(x.shape, dtype=torch.bool)


@torch.library.custom_op("reference::drop", mutates_args=(), tags=(torch.Tag.nondeterministic_seeded,))
def drop(x: Tensor, rate: float) -> tuple[Tensor, Tensor]:
    """x with a share ``rate`` of its elements, drawn by chance, set to zero; and which were kept."""
    result, kept = _dropped_result(x, rate)
    kept.copy_(torch.rand(x.shape, device=x.device) >= rate)
    return result.copy_(torch.where(kept, x, 0)), kept


drop.register_fake(_dropped_result)


def _drop_save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(output[1])
    ctx.mark_non_differentiable(output[1])


def _drop_gradient(ctx: Any, grad: Tensor, _kept: Tensor) -> tuple[Tensor | None, None]:
    return (torch.where(ctx.saved_tensors[0], grad, 0) if ctx.needs_input_grad[0] else None), None


drop.register_autograd(_drop_gradient, setup_context=_drop_save)


def _matrix(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 4, device=device, dtype=dtype),), name="matrix")


def _two_matrices(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample(tuple(normal(3, 4, device=device, dtype=dtype, seed=seed) for seed in range(2)), name="matrices")


def _norm_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    x, weight = normal(4, 8, device=device, dtype=dtype), normal(8, device=device, dtype=dtype, seed=1)
    yield Sample((x, weight), name="one dtype")
    if dtype is None:
        yield Sample((x.bfloat16(), weight), name="mixed")


def _drop_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 4, device=device, dtype=dtype), 0.5), name="half of them")


def _project_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    x, weight = normal(4, 3, device=device, dtype=dtype), normal(5, 3, device=device, dtype=dtype, seed=1)
    yield Sample((x, weight, normal(5, device=device, dtype=dtype, seed=2)), name="with bias")
    yield Sample((x, weight, None), name="without bias")


SPECS = [
    OpSpec(
        cube,
        _matrix,
        reference=lambda x: (double(x) * double(x) * double(x)).to(x.dtype),
        differentiable=True,
        about="once differentiable: the gradient is an opaque op of its own",
    ),
    OpSpec(
        cube_backward,
        _two_matrices,
        reference=lambda grad, x: (3 * double(x) * double(x) * double(grad)).to(x.dtype),
        differentiable=False,
        about="the gradient kernel of another op, without a gradient itself",
    ),
    OpSpec(
        sine,
        _matrix,
        reference=torch.sin,
        differentiable=True,
        about="differentiable any number of times: the gradient calls another differentiable op",
    ),
    OpSpec(
        cosine,
        _matrix,
        reference=torch.cos,
        differentiable=True,
        about="the other half of the pair; also for complex numbers, where a gradient is conjugated",
    ),
    OpSpec(
        project,
        _project_samples,
        reference=_project_aten,
        differentiable=True,
        about="a layer: computes and saves only what the wanted gradients need",
    ),
    OpSpec(
        rms_norm,
        _norm_samples,
        reference=_rms_aten,
        differentiable=True,
        tolerances=(1e-5, 1e-5),
        about="computes in float32 whatever it is given, so that finite differences in float64 are made of rounding",
    ),
    OpSpec(
        drop,
        _drop_samples,
        differentiable=True,
        about="random: its gradient is that of the numbers drawn, and the second output has none",
    ),
]
