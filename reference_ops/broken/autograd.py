"""Ops with wrong gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from reference_ops.broken.fault import (
    Fault,
    complex_matrix,
    define,
    doubled,
    images,
    library,
    like,
    planted,
    two_matrices,
)


@torch.library.custom_op("broken_autograd::forgets_factor", mutates_args=())
def forgets_factor(x: Tensor) -> Tensor:
    """The gradient of x * x is given as x."""
    return like(x).copy_(x * x)


def _save(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


forgets_factor.register_fake(like)
forgets_factor.register_autograd(lambda ctx, grad: grad * ctx.saved_tensors[0], setup_context=_save)


@torch.library.custom_op("broken_autograd::gradient_raises", mutates_args=())
def gradient_raises(x: Tensor) -> Tensor:
    """The formula raises."""
    return doubled(x)


@gradient_raises.register_autograd
def _raise(ctx: Any, grad: Tensor) -> Tensor:
    raise NotImplementedError("no gradient yet")


gradient_raises.register_fake(like)


@torch.library.custom_op("broken_autograd::wrong_shape", mutates_args=())
def wrong_shape(x: Tensor) -> Tensor:
    """The formula returns the gradient of the sum, and forgets to give it the shape of the argument."""
    return _row_sums(x).copy_(x.sum(-1) if x.dim() else x)


@wrong_shape.register_fake
def _row_sums(x: Tensor) -> Tensor:
    return x.new_empty(x.shape[:-1])


wrong_shape.register_autograd(lambda _ctx, grad: grad)


@torch.library.custom_op("broken_autograd::saves_nothing", mutates_args=())
def saves_nothing(x: Tensor) -> Tensor:
    """The formula reads an attribute of ctx that nothing has set."""
    return doubled(x)


saves_nothing.register_fake(like)


@saves_nothing.register_autograd
def _without_saving(ctx: Any, grad: Tensor) -> Tensor:
    return grad * ctx.factor  # which no setup_context has set


@torch.library.custom_op("broken_autograd::rounds_straight", mutates_args=())
def rounds_straight(x: Tensor) -> Tensor:
    """Rounding is given the gradient of the identity, which is right if it is meant, and only then."""
    return like(x).copy_(x.round())


rounds_straight.register_fake(like)
rounds_straight.register_autograd(lambda _ctx, grad: grad)


@torch.library.custom_op("broken_autograd::no_gradient", mutates_args=())
def no_gradient(x: Tensor) -> Tensor:
    """The formula gives no gradient, which counts as zero."""
    return doubled(x)


@no_gradient.register_autograd
def _none(ctx: Any, grad: Tensor) -> None:
    return None


no_gradient.register_fake(like)


@torch.library.custom_op("broken_autograd::swapped", mutates_args=())
def swapped(a: Tensor, b: Tensor) -> Tensor:
    """The gradients of the two arguments of a - b are swapped."""
    return like(a).copy_(a - b)


@swapped.register_fake
def _(a: Tensor, b: Tensor) -> Tensor:
    torch._check(a.dim() == b.dim())
    return like(a)


@swapped.register_autograd
def _swapped(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
    return -grad, grad


@torch.library.custom_op("broken_autograd::one_gradient_more", mutates_args=())
def one_gradient_more(x: Tensor) -> Tensor:
    """The formula returns a gradient for an argument that the op once had."""
    return doubled(x)


def _one_more(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    return grad * 2, None


one_gradient_more.register_fake(like)
one_gradient_more.register_autograd(_one_more)


@torch.library.custom_op("broken_autograd::views_gradient", mutates_args=())
def views_gradient(x: Tensor) -> Tensor:
    """The formula takes view(-1) of the incoming gradient, which tensors of some layouts do not have."""
    return doubled(x)


def _viewing(ctx: Any, grad: Tensor) -> Tensor:
    return (grad.view(-1) * 2).view(grad.shape)


views_gradient.register_fake(like)
views_gradient.register_autograd(_viewing)


def _reads_rows(grad: Tensor) -> Tensor:
    """What a kernel reads that asks whether rows are dense, and not how far apart they are."""
    packed = grad.contiguous()
    return grad.as_strided(packed.shape, packed.stride()) if grad.dim() == 2 and grad.stride(1) == 1 else packed


@torch.library.custom_op("broken_autograd::assumes_packed", mutates_args=())
def assumes_packed(x: Tensor) -> Tensor:
    """The rows of the incoming gradient are taken to follow each other without a gap."""
    return doubled(x)


@torch.library.custom_op("broken_autograd::assumes_packed_backward", mutates_args=())
def _assumes_packed_backward(grad: Tensor) -> Tensor:
    return doubled(_reads_rows(grad))


_assumes_packed_backward.register_fake(like)
assumes_packed.register_fake(like)
assumes_packed.register_autograd(lambda _ctx, grad: _assumes_packed_backward(grad))


@torch.library.custom_op("broken_autograd::any_dense_order", mutates_args=())
def any_dense_order(x: Tensor) -> Tensor:
    """An incoming gradient in channels-last order is dense, and taken for a packed one."""
    return doubled(x)


@torch.library.custom_op("broken_autograd::any_dense_order_backward", mutates_args=())
def _any_dense_order_backward(grad: Tensor) -> Tensor:
    dense = grad.dim() == 4 and grad.is_contiguous(memory_format=torch.channels_last)
    return doubled(grad.as_strided(grad.shape, like(grad).stride()) if dense else grad)


_any_dense_order_backward.register_fake(like)
any_dense_order.register_fake(like)
any_dense_order.register_autograd(lambda _ctx, grad: _any_dense_order_backward(grad))


@torch.library.custom_op("broken_autograd::forgets_conjugate", mutates_args=())
def forgets_conjugate(x: Tensor) -> Tensor:
    """The gradient of x * x is given as that of real numbers, on a sample of complex ones."""
    return like(x).copy_(x * x)


forgets_conjugate.register_fake(like)
forgets_conjugate.register_autograd(lambda ctx, grad: grad * 2 * ctx.saved_tensors[0], setup_context=_save)


@torch.library.custom_op("broken_autograd::keeps_output", mutates_args=())
def keeps_output(x: Tensor) -> Tensor:
    """The output is kept as an attribute of ctx."""
    return like(x).copy_(x.exp())


def _as_attribute(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    ctx.result = output


keeps_output.register_fake(like)
keeps_output.register_autograd(lambda ctx, grad: grad * ctx.result, setup_context=_as_attribute)


@torch.library.custom_op("broken_autograd::scales_incoming", mutates_args=())
def scales_incoming(x: Tensor) -> Tensor:
    """The incoming gradient is doubled in place, where it is packed: contiguous() is no copy then."""
    return doubled(x)


scales_incoming.register_fake(like)
scales_incoming.register_autograd(lambda _ctx, grad: grad.contiguous().mul_(2))


@torch.library.custom_op("broken_autograd::squares_saved", mutates_args=())
def squares_saved(x: Tensor) -> Tensor:
    """The formula of x ** 3 / 3 squares the saved argument in place."""
    return like(x).copy_(x**3 / 3)


def _squaring(ctx: Any, grad: Tensor) -> Tensor:
    (x,) = ctx.saved_tensors
    return grad * x.detach().square_()


squares_saved.register_fake(like)
squares_saved.register_autograd(_squaring, setup_context=_save)


def _two(x: Tensor) -> tuple[Tensor, Tensor]:
    return like(x), like(x)


@torch.library.custom_op("broken_autograd::value_and_sign", mutates_args=())
def value_and_sign(x: Tensor) -> tuple[Tensor, Tensor]:
    """The second output is piecewise constant, and requires grad all the same."""
    return doubled(x), like(x).copy_(x.sign())


def _of_the_first(ctx: Any, grad: Tensor, unused: Tensor) -> Tensor:
    return grad * 2


value_and_sign.register_fake(_two)
value_and_sign.register_autograd(_of_the_first)


@torch.library.custom_op("broken_autograd::both_or_neither", mutates_args=())
def both_or_neither(a: Tensor, b: Tensor) -> Tensor:
    """The formula gives no gradient where one argument is frozen."""
    return like(a).copy_(a * b)


@both_or_neither.register_fake
def _(a: Tensor, b: Tensor) -> Tensor:
    torch._check(a.dim() == b.dim())
    return like(a)


def _both(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    a, b = ctx.saved_tensors
    return (grad * b, grad * a) if all(ctx.needs_input_grad) else (None, None)


both_or_neither.register_autograd(_both, setup_context=_save)


@torch.library.custom_op("broken_autograd::needs_both_outputs", mutates_args=())
def needs_both_outputs(x: Tensor) -> tuple[Tensor, Tensor]:
    """The formula gives no gradient where one output is not used, and has asked not to be given zeros."""
    return doubled(x), like(x).copy_(x * x)


def _save_without_zeros(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, Tensor]) -> None:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs)


def _of_both(ctx: Any, first: Tensor, second: Tensor) -> Tensor | None:
    if first is None or second is None:
        return None
    return first * 2 + second * 2 * ctx.saved_tensors[0]


needs_both_outputs.register_fake(_two)
needs_both_outputs.register_autograd(_of_both, setup_context=_save_without_zeros)


@torch.library.custom_op("broken_autograd::formula_branches", mutates_args=())
def formula_branches(x: Tensor) -> Tensor:
    """The formula branches on the values of the gradient, which are not there when it is traced."""
    return doubled(x)


def _branching(ctx: Any, grad: Tensor) -> Tensor:
    return grad * 2 if grad.abs().sum() < 1e9 else grad


formula_branches.register_fake(like)
formula_branches.register_autograd(_branching)


@torch.library.custom_op("broken_autograd::detaches_saved", mutates_args=())
def detaches_saved(x: Tensor) -> Tensor:
    """The formula of x * x uses a detached argument, so that the second derivative is zero."""
    return like(x).copy_(x * x)


detaches_saved.register_fake(like)
detaches_saved.register_autograd(lambda ctx, grad: grad * 2 * ctx.saved_tensors[0].detach(), setup_context=_save)


@torch.library.custom_op("broken_autograd::views_saved", mutates_args=())
def views_saved(x: Tensor) -> Tensor:
    """The formula takes view(-1) of the saved argument, which a transposed one does not have."""
    return like(x).copy_(x * x)


def _viewing_saved(ctx: Any, grad: Tensor) -> Tensor:
    (x,) = ctx.saved_tensors
    return (2 * x.view(-1) * grad.reshape(-1)).view(x.shape)


views_saved.register_fake(like)
views_saved.register_autograd(_viewing_saved, setup_context=_save)


@torch.library.custom_op("broken_autograd::counts_on_bias", mutates_args=())
def counts_on_bias(x: Tensor, bias: Tensor | None) -> Tensor:
    """The formula takes two saved tensors, of which there is one where the bias is left out."""
    return like(x).copy_(x * x if bias is None else x * x + bias)


@counts_on_bias.register_fake
def _(x: Tensor, bias: Tensor | None) -> Tensor:
    torch._check(bias is None or bias.dim() == x.dim())
    return like(x)


def _save_tensors(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*(value for value in inputs if isinstance(value, Tensor)))


def _with_bias(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
    x, _bias = ctx.saved_tensors
    return grad * 2 * x, grad


counts_on_bias.register_autograd(_with_bias, setup_context=_save_tensors)


@torch.library.custom_op("broken_autograd::four_at_a_time", mutates_args=())
def four_at_a_time(x: Tensor) -> Tensor:
    """The formula of x * x leaves out the columns after the last four."""
    return like(x).copy_(x * x)


def _fours(ctx: Any, grad: Tensor) -> Tensor:
    (x,) = ctx.saved_tensors
    if not x.dim():
        return grad * 2 * x
    columns = x.shape[-1]
    return grad * 2 * x * (torch.arange(columns, device=x.device) < columns // 4 * 4)


four_at_a_time.register_fake(like)
four_at_a_time.register_autograd(_fours, setup_context=_save)


def marks_output(x: Tensor) -> Tensor:
    """The kernel makes its output require grad, whether or not an argument does."""
    return doubled(x).requires_grad_(x.is_floating_point())


_LIBRARY = library("broken_autograd")
_MARKS = define(_LIBRARY, "marks_output", "(Tensor x) -> Tensor", marks_output, like)
torch.library.register_autograd(_MARKS, lambda _ctx, grad: grad * 2, lib=_LIBRARY)


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(_ctx: Any, x: Tensor) -> Tensor:
        return doubled(x)

    @staticmethod
    def backward(_ctx: Any, grad: Tensor) -> Tensor:
        return grad * 2


def hides_itself(x: Tensor) -> Tensor:
    """The kernel at the Autograd key has a formula, and computes the result itself."""
    return doubled(x)


_HIDES = define(_LIBRARY, "hides_itself", "(Tensor x) -> Tensor", hides_itself, like)
_LIBRARY.impl("hides_itself", lambda x: _Doubled.apply(x), "Autograd")


def _below_autograd(name: str, x: Tensor) -> Tensor:
    with torch._C._AutoDispatchBelowAutograd():
        result: Tensor = getattr(torch.ops.broken_autograd, name)(x)
    return result


class _Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, name: str) -> Tensor:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return _below_autograd(name, x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad * 2 * ctx.saved_tensors[0], None

    @staticmethod
    def jvp(ctx: Any, direction: Tensor, _name: None) -> Tensor:
        return direction * ctx.saved_tensors[0]


def squared(x: Tensor) -> Tensor:
    return like(x).copy_(x * x)


def forward_without_factor(x: Tensor) -> Tensor:
    """The derivative of x * x is right in backward, and given as x in forward mode."""
    return squared(x)


def short_cut(x: Tensor) -> Tensor:
    """Where no argument requires grad, the autograd kernel leaves autograd out, and forward mode with it."""
    return squared(x)


_FORWARD = define(_LIBRARY, "forward_without_factor", "(Tensor x) -> Tensor", forward_without_factor, like)
_LIBRARY.impl("forward_without_factor", lambda x: _Squared.apply(x, "forward_without_factor"), "Autograd")
_SHORT_CUT = define(_LIBRARY, "short_cut", "(Tensor x) -> Tensor", short_cut, like)
_LIBRARY.impl(
    "short_cut",
    lambda x: _Squared.apply(x, "short_cut") if x.requires_grad else _below_autograd("short_cut", x),
    "Autograd",
)

FAULTS: list[Fault] = [
    planted(forgets_factor, "autograd.gradcheck", reference=torch.square),
    # claimed, since a formula that nobody claims may refuse
    planted(gradient_raises, "autograd.runs", reference=doubled, differentiable=True),
    planted(wrong_shape, "autograd.runs", reference=lambda x: x.sum(-1) if x.dim() else x),
    planted(saves_nothing, "autograd.runs", reference=doubled),
    planted(rounds_straight, "autograd.gradcheck", "warn", reference=torch.round),
    planted(no_gradient, "autograd.gradcheck", reference=doubled),
    planted(swapped, "autograd.gradcheck", samples=two_matrices, reference=torch.sub),
    planted(one_gradient_more, "autograd.count", reference=doubled),
    planted(views_gradient, "autograd.incoming", reference=doubled),
    planted(assumes_packed, "autograd.incoming", reference=doubled),
    planted(any_dense_order, "autograd.incoming", samples=images, reference=doubled),
    planted(forgets_conjugate, "autograd.gradcheck", samples=complex_matrix, reference=torch.square),
    planted(keeps_output, "autograd.leak", reference=torch.exp),
    planted(scales_incoming, "autograd.purity", reference=doubled),
    # runs backward more than once, as the argument is after the first time
    planted(
        squares_saved,
        "autograd.purity",
        also={"autograd.gradcheck": "fail"},
        reference=lambda x: x**3 / 3,
        differentiable=True,
    ),
    planted(value_and_sign, "autograd.requires_grad", reference=lambda x: (x * 2, x.sign())),
    planted(both_or_neither, "autograd.subsets", samples=two_matrices, reference=torch.mul),
    # differentiates one output at a time, too
    planted(
        needs_both_outputs,
        "autograd.subsets",
        also={"autograd.gradcheck": "fail"},
        reference=lambda x: (x * 2, x * x),
    ),
    # torch's test_faketensor compares whether outputs require grad
    planted(_MARKS, "autograd.requires_grad", also={"opcheck.utils": "fail"}, kernel=marks_output, reference=doubled),
    # torch's AOT utils and the compiler trace formulas, too
    planted(
        formula_branches,
        "autograd.traceable",
        also={"opcheck.utils": "fail", "compile.parity": "fail"},
        reference=doubled,
    ),
    planted(views_saved, "autograd.noncontiguous", reference=torch.square),
    planted(
        counts_on_bias,
        "autograd.other_inputs",
        samples=two_matrices,
        reference=lambda x, bias: x * x if bias is None else x * x + bias,
    ),
    planted(four_at_a_time, "autograd.other_inputs", reference=torch.square),
    planted(detaches_saved, "autograd.double", "warn", reference=torch.square),
    # nor is it in the compiler's graph
    planted(
        _HIDES,
        "autograd.redispatch",
        also={"export.decompositions": "fail", "compile.opaque": "fail"},
        kernel=hides_itself,
        reference=doubled,
        differentiable=True,
    ),
    planted(_FORWARD, "autograd.forward_mode", kernel=forward_without_factor, reference=torch.square),
    planted(_SHORT_CUT, "autograd.forward_mode", kernel=short_cut, reference=torch.square),
]
