"""Faulty ops whose samples show nothing: each has an example that a careful author writes, and calls that it misses.

Registered once a process, in namespaces of their own.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import torch
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from torch import Tensor

from opcheck_suite import Sample
from opcheck_suite.inputs.strategies import (
    broadcastable_with,
    depends_on,
    dim_of,
    dims_of,
    dtype_of,
    dtypes,
    index_into,
    ints,
    like,
    lists,
    optional,
    sample,
    shapes,
    size_of,
    sizes,
    tensors,
)


@dataclasses.dataclass(frozen=True)
class Planted:
    """A faulty op."""

    op: Any
    calls: Any
    """The strategy that finds the fault."""
    example: Callable[[], Sample]
    """The sample that does not, nor do the variants that the suite derives from it."""
    elements: int
    """How many elements the tensors of the smallest call have that shows it."""

    @property
    def name(self) -> str:
        """``ns::name``."""
        return self.op._qualname


def _planted(
    kernel: Callable[..., Any], fake: Callable[..., Any], calls: Any, example: Callable[[], Sample], elements: int
) -> Planted:
    op = torch.library.custom_op(f"planted::{kernel.__name__}", kernel, mutates_args=())
    op.register_fake(fake)
    return Planted(op, calls, example, elements)


def matrix(*shape: int) -> Tensor:
    return torch.linspace(-1, 1, torch.Size(shape).numel()).reshape(shape)


# -- fake kernels


def sum_along(x: Tensor, along: int) -> Tensor:
    return x.sum(along)


def _sum_along_fake(x: Tensor, along: int) -> Tensor:
    """Wrong for a dimension that is counted from the back: ``x.shape[along + 1:]`` is all of x for -1.

    The argument is not called dim: dimensions are counted from the back in every sample.
    """
    return x.new_empty(x.shape[:along] + x.shape[along + 1 :])


def add(a: Tensor, b: Tensor) -> Tensor:
    return (a + b).contiguous()


def _add_fake(a: Tensor, b: Tensor) -> Tensor:
    """Wrong where b is of a wider dtype."""
    return a.new_empty(torch.broadcast_shapes(a.shape, b.shape))


def scale(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).contiguous()


def _scale_fake(a: Tensor, b: Tensor) -> Tensor:
    """Wrong where b has more dimensions, or larger ones."""
    return a.new_empty(a.shape)


def look_up(table: Tensor, index: Tensor) -> Tensor:
    return table[index]


def _look_up_fake(table: Tensor, index: Tensor) -> Tensor:
    """Wrong for an index that is no vector."""
    return table.new_empty((index.shape[0] if index.dim() else 1, *table.shape[1:]))


def keep_layout(x: Tensor) -> Tensor:
    return torch.empty_like(x).copy_(x * 2)


def _keep_layout_fake(x: Tensor) -> Tensor:
    """Right for packed and for transposed inputs, wrong for other orders of dimensions."""
    rank = x.dim()
    if rank > 1 and 0 < x.stride(0) < x.stride(-1):
        return x.new_empty(x.shape[::-1]).permute(tuple(reversed(range(rank))))
    return x.new_empty(x.shape)


def take_every(x: Tensor, step: int) -> Tensor:
    return x[::step].clone(memory_format=torch.contiguous_format)


def _take_every_fake(x: Tensor, step: int) -> Tensor:
    """Rounds down, which is right where the step divides the size."""
    return x.new_empty((x.shape[0] // step, *x.shape[1:]))


def mean_over(x: Tensor, over: list[int]) -> Tensor:
    return x.mean(over, keepdim=True)


def _mean_over_fake(x: Tensor, over: list[int]) -> Tensor:
    """Looks for each dimension in the list as it is written, so that -1 is never found."""
    return x.new_empty([1 if n in over else size for n, size in enumerate(x.shape)])


FAKE = [
    _planted(
        sum_along,
        _sum_along_fake,
        sample(x=tensors(), along=dim_of("x")),
        lambda: Sample((matrix(3, 4), 1)),
        1,
    ),
    _planted(
        add,
        _add_fake,
        sample(a=tensors(dtype=dtypes()), b=like("a", dtype=dtypes())),
        lambda: Sample((matrix(3, 4), matrix(3, 4))),
        2,
    ),
    _planted(
        scale,
        _scale_fake,
        sample(a=tensors(), b=like("a", shape=broadcastable_with("a"))),
        lambda: Sample((matrix(3, 4), matrix(4))),
        3,
    ),
    _planted(
        look_up,
        _look_up_fake,
        sample(table=tensors(), index=index_into("table", shape=shapes(1, 2))),
        lambda: Sample((matrix(5, 2), torch.tensor([4, 0, 1]))),
        2,
    ),
    _planted(
        keep_layout,
        _keep_layout_fake,
        sample(x=tensors(strides="permuted")),
        lambda: Sample((matrix(2, 3, 4),)),
        4,
    ),
    _planted(
        take_every,
        _take_every_fake,
        sample(x=tensors(), step=ints(1, 4)),
        lambda: Sample((matrix(4, 3), 1)),
        1,
    ),
    _planted(
        mean_over,
        _mean_over_fake,
        sample(x=tensors(), over=dims_of("x", min_size=1)),
        lambda: Sample((matrix(3, 4), [0])),
        2,
    ),
]


# -- dispatch

_LIBRARY = torch.library.Library("planted", "FRAGMENT")  # kept: dropping it takes the ops away


def _like(x: Tensor, *rest: Any) -> Tensor:
    return x.new_empty(x.shape)


def _vanishes() -> Any:
    """The formula is right, and for vectors it does the op's work itself: the kernel does not run."""

    @torch.library.custom_op("planted::vanishes", mutates_args=())
    def vanishes(x: Tensor) -> Tensor:
        return (x * 2).contiguous()

    def autograd_impl(x: Tensor) -> Tensor:
        if x.dim() == 1:
            return x * 2
        with torch._C._AutoDispatchBelowAutograd():
            return vanishes(x)

    vanishes.register_fake(_like)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _LIBRARY.impl("vanishes", autograd_impl, "Autograd", allow_override=True)
    return vanishes


def add_bias(x: Tensor, bias: Tensor | None) -> Tensor:
    return (x * 1 if bias is None else x + bias).contiguous()


def _add_bias_fake(x: Tensor, bias: Tensor | None) -> Tensor:
    """Allocates on the CPU where there is no bias to allocate from."""
    return torch.empty(x.shape) if bias is None else x.new_empty(x.shape)


def total(xs: list[Tensor]) -> Tensor:
    return torch.stack(xs).sum(0)


def _total_fake(xs: list[Tensor]) -> Tensor:
    """Compares the devices of the first two only."""
    torch._check(all(x.device == xs[0].device for x in xs[:2]), lambda: "expected tensors on one device")
    return xs[0].new_empty(xs[0].shape)


_CACHE: dict[int, Tensor] = {}


def packs(x: Tensor) -> Tensor:
    """Keeps packed copies by version, which tensors of inference mode do not have."""
    if not x.is_contiguous():
        _CACHE.clear()
        _CACHE[x._version] = x
    return (x * 2).contiguous()


def peeks(x: Tensor, step: int) -> Tensor:
    return x[:, ::step].clone(memory_format=torch.contiguous_format)


def _peeks_fake(x: Tensor, step: int) -> Tensor:
    """Runs the kernel to learn the shape, for steps for which nobody wrote a formula."""
    torch._check(x.dim() == 2)
    return x.new_empty(x.shape) if step == 1 else peeks(x, step)


def _casts() -> Any:
    """The rule for autocast forgets the weight if it is a vector."""

    @torch.library.custom_op("planted::casts", mutates_args=())
    def casts(x: Tensor, weight: Tensor) -> Tensor:
        return (x @ weight.to(x.dtype)).contiguous()

    def register_autocast() -> None:
        def kernel(x: Tensor, weight: Tensor) -> Tensor:
            with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)):
                return casts(x if weight.dim() == 1 else x.bfloat16(), weight.bfloat16())

        _LIBRARY.impl("casts", kernel, "AutocastCPU")

    casts.register_fake(lambda x, weight: x.new_empty((x.shape[0], *weight.shape[1:])))
    register_autocast()
    return casts


def _vector_or_matrix(x: Tensor) -> SearchStrategy[tuple[int, ...]]:
    return st.sampled_from([(x.shape[1], 2), (x.shape[1],)])


#: Name of the property that finds it, and the faulty op.
DISPATCH = [
    ("plain", Planted(_vanishes(), sample(x=tensors()), lambda: Sample((matrix(3, 4),)), 1)),
    (
        "device",
        _planted(
            add_bias,
            _add_bias_fake,
            sample(x=tensors(), bias=optional(tensors((size_of("x", -1),), dtype_of("x")))),
            lambda: Sample((matrix(3, 4), matrix(4))),
            1,
        ),
    ),
    (
        "mixed",
        _planted(
            total,
            _total_fake,
            sample(xs=lists(tensors(), rest=like)),
            lambda: Sample(([matrix(3, 4), matrix(3, 4)],)),
            3,
        ),
    ),
    ("inference", _planted(packs, _like, sample(x=tensors(strides="any")), lambda: Sample((matrix(3, 4),)), 4)),
    (
        "fake",
        _planted(
            peeks,
            _peeks_fake,
            sample(x=tensors((sizes(), sizes())), step=ints(1, 3)),
            lambda: Sample((matrix(3, 4), 1)),
            1,
        ),
    ),
    (
        "autocast",
        Planted(
            _casts(),
            sample(x=tensors((sizes(), sizes())), weight=tensors(depends_on("x", make=_vector_or_matrix))),
            lambda: Sample((matrix(3, 4), matrix(4, 2))),
            3,
        ),
    ),
]
