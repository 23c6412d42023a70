"""Strategies for tensors: shape, dtype, values, strides, offset, layout, device, requires_grad."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import torch
from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from opcheck_suite.inputs import layouts
from opcheck_suite.inputs.strategies import fills
from opcheck_suite.inputs.strategies.parts import Draw, related, resolve, shown, value_of
from opcheck_suite.inputs.strategies.plain import ints, seeds
from opcheck_suite.registry import UsageError, did_you_mean

#: Names of the ways in which a tensor can lie in memory, the simplest first.
STRIDES = ("contiguous", "gapped", "padded", "transposed", "permuted", "channels_last", "expanded")

#: Those in which every element has memory of its own, so that the tensor can be written to.
WRITABLE = STRIDES[:-1]

_SEEDS = seeds()

#: How many elements of a tensor become special, at most.
_SPECIALS = 3


def sizes(low: int = 1, high: int = 8) -> SearchStrategy[int]:
    """Sizes of one dimension, both bounds included; shrinks to the lower."""
    return ints(low, high)


def shapes(
    min_dims: int = 1, max_dims: int = 3, *, min_size: int = 1, max_size: int = 8
) -> SearchStrategy[tuple[int, ...]]:
    """Shapes with so many dimensions of such sizes, all bounds included.

    Shrinks to few dimensions and small sizes. 0-d shapes are drawn with ``min_dims=0``, empty ones with ``min_size=0``.
    """
    return st.lists(sizes(min_size, max_size), min_size=min_dims, max_size=max_dims).map(tuple)


def tensors(
    shape: Any = None,
    dtype: Any = torch.float32,
    *,
    values: Any = fills.normal,
    special: Any = False,
    strides: Any = "contiguous",
    offset: Any = 0,
    layout: Any = torch.strided,
    device: Any = "cpu",
    requires_grad: Any = False,
) -> Any:
    """Tensors. Every argument is a value, a strategy or a relation to another argument.

    ``shape`` is a tuple, of which each size may be drawn for itself, or draws one; None: `shapes()`.

    ``values`` is a filling such as `normal`, `uniform(0, 1)` or `constant(1)`: it makes all values from one drawn seed.
    ``special`` puts NaN, infinities, -0.0 and the limits of the dtype, or the given numbers, in up to three places.

    ``strides`` names how the tensor lies in memory: ``"contiguous"``, ``"transposed"``, ``"permuted"``, ``"padded"``
    (dense in the last dimension only), ``"gapped"`` (nowhere dense), ``"channels_last"`` (contiguous unless 4-d or
    5-d), ``"expanded"`` (one dimension repeats the same memory), or is a tuple of strides in elements. ``"any"`` draws
    one of these names, ``"writable"`` one of all but ``"expanded"``. ``offset`` is the storage offset in elements.
    Memory that the tensor skips is filled with NaN or large numbers.

    ``layout`` other than ``torch.strided`` makes a sparse tensor with about half of the values. ``requires_grad``
    counts for floating-point and complex dtypes only.

    Raises UsageError for an unknown name of strides.
    """
    recipe = _Recipe(
        shape=shapes() if shape is None else shape,
        dtype=dtype,
        values=values,
        special=special,
        strides=_named(strides),
        offset=offset,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )
    return related(recipe.pick, *vars(recipe).values(), text=shown("tensors", recipe.shape, dtype))


@dataclasses.dataclass(frozen=True)
class _Recipe:
    """The arguments of `tensors`."""

    shape: Any
    dtype: Any
    device: Any
    values: Any = fills.normal
    special: Any = False
    strides: Any = "contiguous"
    offset: Any = 0
    layout: Any = torch.strided
    requires_grad: Any = False

    def pick(self, draw: Draw, known: Mapping[str, Any]) -> torch.Tensor:
        shape = tuple(resolve(self.shape, draw, known))
        dtype = resolve(self.dtype, draw, known)
        generator = fills.generator(draw(_SEEDS))
        made = resolve(self.values, draw, known)(shape, dtype, generator)
        if (unusual := resolve(self.special, draw, known)) and made.numel():
            _poke(draw, made, fills.special_values(dtype) if unusual is True else unusual)
        made = made.to(resolve(self.device, draw, known))
        layout = resolve(self.layout, draw, known)
        if layout != torch.strided:
            made = _thinned(made, generator).to_sparse(layout=layout) if made.dim() > 1 else reject()
        else:
            strides = _strides(draw, shape, resolve(self.strides, draw, known))
            made = _placed(made, strides, resolve(self.offset, draw, known))
        if resolve(self.requires_grad, draw, known) and (dtype.is_floating_point or dtype.is_complex):
            made.requires_grad_()
        return made


def like(x: Any, **changes: Any) -> Any:
    """Tensors with the shape, dtype and device of another argument, and values of their own.

    What is given as for `tensors` is not taken from there: ``like("x", dtype=torch.int64)``,
    ``like("x", shape=broadcastable_with("x"))``.
    """
    other, text = value_of(x), shown("like", x, **changes)
    if "strides" in changes:
        changes["strides"] = _named(changes["strides"])

    def pick(draw: Draw, known: Mapping[str, Any]) -> torch.Tensor:
        model = resolve(other, draw, known)
        if not isinstance(model, torch.Tensor):
            raise UsageError(f"{text} needs a tensor, got {model!r}")
        own = {"shape": tuple(model.shape), "dtype": model.dtype, "device": model.device}
        return _Recipe(**own | changes).pick(draw, known)

    return related(pick, other, *changes.values(), text=text)


def _named(strides: Any) -> Any:
    """Names as strategies; what is no name is left as it is."""
    if not isinstance(strides, str):
        return strides
    if strides in ("any", "writable"):
        return st.sampled_from(STRIDES if strides == "any" else WRITABLE)
    if strides not in STRIDES:
        known = ("any", "writable", *STRIDES)
        raise UsageError(f"tensors: unknown strides {strides!r}{did_you_mean(strides, known)}")
    return strides


def _poke(draw: Draw, tensor: torch.Tensor, unusual: Any) -> None:
    """Put special values in a few places, counted from the front or the back."""
    flat = tensor.view(-1)
    reach = min(flat.numel(), 50)
    places = st.tuples(st.integers(-reach, reach - 1), st.sampled_from(tuple(unusual)))
    for place, value in draw(st.lists(places, min_size=1, max_size=_SPECIALS)):
        flat[place] = value


def _thinned(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    keep = torch.rand(tensor.shape, generator=generator) < 0.5
    return torch.where(keep.to(tensor.device), tensor, torch.zeros_like(tensor))


def _strides(draw: Draw, shape: tuple[int, ...], how: Any) -> tuple[int, ...] | None:
    """The strides of a shape; None where it is to be contiguous."""
    rank = len(shape)
    if not isinstance(how, str):
        if len(how) != rank:
            raise UsageError(f"strides {tuple(how)} are {len(how)}, the shape {shape} has {rank} dimensions")
        return tuple(how)
    if how == "contiguous" or not rank:
        return None
    if how == "transposed":
        return dense(shape, tuple(reversed(range(rank))))
    if how == "permuted":
        return dense(shape, tuple(draw(st.permutations(range(rank)))))
    if how == "channels_last":
        return dense(shape, (0, *range(2, rank), 1)) if rank in (4, 5) else None
    if how == "padded":
        return dense((*shape[:-1], shape[-1] + draw(st.integers(1, 3))), tuple(range(rank)))
    if how == "gapped":
        return tuple(2 * stride for stride in dense(shape, tuple(range(rank))))
    several = [dim for dim, size in enumerate(shape) if size > 1]
    if not several:
        return None
    repeated = draw(st.sampled_from(several))
    kept = tuple(1 if dim == repeated else size for dim, size in enumerate(shape))
    return tuple(0 if n == repeated else stride for n, stride in enumerate(dense(kept, tuple(range(rank)))))


def dense(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """Strides without gaps, the dimensions of ``order`` from the outermost in memory to the innermost."""
    found = [0] * len(shape)
    step = 1
    for dim in reversed(order):
        found[dim] = step
        step *= max(shape[dim], 1)
    return tuple(found)


def _placed(values: torch.Tensor, strides: tuple[int, ...] | None, offset: int) -> torch.Tensor:
    """The values in memory with the given strides and offset."""
    if strides is None and not offset:
        return values
    shape = tuple(values.shape)
    strides = dense(shape, tuple(range(len(shape)))) if strides is None else strides
    reach = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) + 1 if math.prod(shape) else 0
    memory = layouts.garbage(values, (offset + reach + (1 if offset else 0),))
    placed = memory.as_strided(shape, strides, offset)
    for dim, stride in enumerate(strides):
        if stride == 0 and shape[dim] > 1:
            values = values.narrow(dim, 0, 1)
            placed = placed.narrow(dim, 0, 1)
    placed.copy_(values)
    return memory.as_strided(shape, strides, offset)
