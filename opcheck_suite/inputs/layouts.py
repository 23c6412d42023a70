"""Layout variants: the same values held in memory in another way.

Memory that a strided tensor skips is filled with garbage: with zeros there, kernels that walk memory linearly look
right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from opcheck_suite.inputs import dtypes, relations, tensors
from opcheck_suite.inputs.cases import Case
from opcheck_suite.inputs.variants import variant


def garbage(tensor: torch.Tensor, shape: tuple[int, ...] | list[int]) -> torch.Tensor:
    """A tensor of the dtype and device of another, full of values that no result should depend on."""
    if tensor.dtype == torch.bool:
        return torch.ones(shape, dtype=torch.bool, device=tensor.device)
    if tensor.is_floating_point() or tensor.is_complex():
        if tensor.element_size() == 1:  # float8 types: not all have NaN, fill the bits
            return torch.full(shape, 0x7F, dtype=torch.uint8, device=tensor.device).view(tensor.dtype)
        return torch.full(shape, float("nan"), dtype=tensor.dtype, device=tensor.device)
    return torch.full(shape, torch.iinfo(tensor.dtype).max // 2, dtype=tensor.dtype, device=tensor.device)


def _layout_leaves(case: Case) -> list[tuple[str, torch.Tensor]]:
    return [(n, t) for n, t in case.leaves() if tensors.strided(t) and t.numel() > 1]


def _layout(case: Case, name: str, change: Callable[[torch.Tensor], torch.Tensor | None], group: str) -> Iterator[Case]:
    """One variant for each tensor that can be changed, and one with all of them changed."""
    changed = {leaf: made for leaf, t in _layout_leaves(case) if (made := change(t.detach())) is not None}
    for leaf, made in changed.items():
        yield case.replace({leaf: made}, variant=f"{name}({leaf})", group=group)
    if len(changed) > 1:
        yield case.replace(dict(changed), variant=f"{name}(all)", group=group)


def transposed(t: torch.Tensor) -> torch.Tensor | None:
    """The values of ``t`` in memory that is dense with its dimensions in reverse order."""
    if t.dim() < 2 or sum(size > 1 for size in t.shape) < 2:
        return None
    dims = tuple(reversed(range(t.dim())))
    packed = t.permute(dims).contiguous()
    return packed.permute(dims)


def gapped(t: torch.Tensor) -> torch.Tensor | None:
    """The values of ``t`` with one element of garbage after each."""
    if t.dim() == 0:
        return None
    wide = garbage(t, (*t.shape, 2))
    wide[..., 0] = t
    return wide[..., 0]


def padded(t: torch.Tensor) -> torch.Tensor | None:
    """The values of ``t`` as rows of a wider matrix: dense in the last dimension only."""
    if t.dim() < 2 or t.shape[-1] < 1 or t.numel() == t.shape[-1]:
        return None
    wide = garbage(t, (*t.shape[:-1], t.shape[-1] + 3))
    wide[..., : t.shape[-1]] = t
    return wide[..., : t.shape[-1]]


def shifted(t: torch.Tensor) -> torch.Tensor | None:
    """The values of ``t`` one element into a larger buffer, so that their address is not aligned."""
    flat = garbage(t, (t.numel() + 2,))
    inner = flat[1 : 1 + t.numel()].view(t.shape)
    inner.copy_(t)
    return inner


def channels_last(t: torch.Tensor) -> torch.Tensor | None:
    """The values of ``t`` with its second dimension innermost, as convolutions leave images and volumes."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if t.dim() not in formats:
        return None
    made = t.contiguous(memory_format=formats[t.dim()])
    return None if made.is_contiguous() else made  # where either is 1, both orders are one


def conj_view(t: torch.Tensor) -> torch.Tensor | None:
    """The values of ``t`` as a view of their conjugates, which torch has not computed yet: the conj bit is set."""
    return t.conj().resolve_conj().conj() if t.is_complex() else None


def neg_view(t: torch.Tensor) -> torch.Tensor | None:
    """The values of ``t`` as a view of their negatives: the neg bit is set.

    Made as users come by one, ``z.conj().imag``, so that there is a gap after each element.
    """
    if t.dtype not in (torch.float32, torch.float64):  # the dtypes with a complex twin that is not experimental
        return None
    return torch.complex(garbage(t, t.shape), -t).conj().imag


@variant("noncontiguous")
def _transposed(case: Case) -> Iterator[Case]:
    yield from _layout(case, "transposed", transposed, "noncontiguous")


@variant("noncontiguous")
def _gapped(case: Case) -> Iterator[Case]:
    yield from _layout(case, "a gap after each element", gapped, "noncontiguous")


@variant("noncontiguous", tier="standard")
def _padded(case: Case) -> Iterator[Case]:
    yield from _layout(case, "padded rows", padded, "noncontiguous")


@variant("noncontiguous")
def _channels_last(case: Case) -> Iterator[Case]:
    yield from _layout(case, "channels last", channels_last, "noncontiguous")


@variant("offset", tier="standard")
def _shifted(case: Case) -> Iterator[Case]:
    yield from _layout(case, "offset", shifted, "offset")


@variant("expanded")
def _expanded(case: Case) -> Iterator[Case]:
    """The first row broadcast over the first dimension.

    Never for arguments that are written: torch refuses those. Integers that may be positions keep their values:
    broadcast ones need not be valid together with the other arguments.
    """
    for name, t in _layout_leaves(case):
        if case.writes(name) or t.dim() == 0 or t.shape[0] < 2:
            continue
        if relations.may_index(case, name, t) and bool((t != t[:1]).any()):
            continue
        row = t.detach()[:1].contiguous()
        yield case.replace({name: row.expand(t.shape)}, variant=f"expanded({name})", group="expanded")


@variant("lazy")
def _lazy(case: Case) -> Iterator[Case]:
    """Views whose values torch has not computed yet, for ops whose kernel may meet one. Where a sample is of real
    numbers, conj views are made of complex copies.

    Never for arguments that are written: where torch computes the values before the call, it refuses those.
    """
    if not (case.info.is_operator and case.info.meets_lazy_views):
        return
    yield from _lazily(case, "conj view", conj_view)
    yield from _lazily(case, "neg view", neg_view)
    if (copy := dtypes.as_complex(case, variant="complex64", group="complex")) is not None:
        yield from _lazily(copy, "complex64, conj view", conj_view)


def _lazily(case: Case, name: str, change: Callable[[torch.Tensor], torch.Tensor | None]) -> Iterator[Case]:
    for leaf, t in case.leaves():
        if tensors.strided(t) and not case.writes(leaf) and (made := change(t.detach())) is not None:
            yield case.replace({leaf: made}, variant=f"{name}({leaf})", group="lazy")
