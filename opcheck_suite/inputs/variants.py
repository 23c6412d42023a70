"""Variants: inputs derived from a sample by one change each.

Layout variants hold the same values as some packed call, so that the op must give the same answer. Size variants change
sizes together that were equal, since an op's arguments are related and the schema does not say how.

Memory that a strided tensor skips is filled with garbage: with zeros there, kernels that walk memory linearly look
right.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch

from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case

Generator = Callable[[Case], Iterator[Case]]
_GROUPS: dict[str, list[Generator]] = {}


def variant(group: str) -> Callable[[Generator], Generator]:
    """Add a generator of variants to a group."""

    def register(fn: Generator) -> Generator:
        _GROUPS.setdefault(group, []).append(fn)
        return fn

    return register


def groups() -> tuple[str, ...]:
    """The names of all groups."""
    return tuple(_GROUPS)


def derive(case: Case, group: str) -> list[Case]:
    """The variants of a sample in one group, those most likely to show a fault first."""
    return [made for generator in _GROUPS[group] for made in generator(case)]


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


@variant("noncontiguous")
def _transposed(case: Case) -> Iterator[Case]:
    yield from _layout(case, "transposed", transposed, "noncontiguous")


@variant("noncontiguous")
def _gapped(case: Case) -> Iterator[Case]:
    yield from _layout(case, "a gap after each element", gapped, "noncontiguous")


@variant("noncontiguous")
def _padded(case: Case) -> Iterator[Case]:
    yield from _layout(case, "padded rows", padded, "noncontiguous")


@variant("offset")
def _shifted(case: Case) -> Iterator[Case]:
    yield from _layout(case, "offset", shifted, "offset")


@variant("expanded")
def _expanded(case: Case) -> Iterator[Case]:
    """The first row broadcast over the first dimension. Never for arguments that are written: torch refuses those."""
    written = set(case.info.mutated)
    for name, t in _layout_leaves(case):
        if name.partition("[")[0] in written or t.dim() == 0 or t.shape[0] < 2:
            continue
        row = t.detach()[:1].contiguous()
        yield case.replace({name: row.expand(t.shape)}, variant=f"expanded({name})", group="expanded")


def resized(case: Case, old: int, new: int) -> Case | None:
    """The case with every size equal to ``old`` made ``new``; None where that could break a relation between arguments.

    Integer arguments equal to the size change with it. Left alone: integer tensors that may index into what shrinks,
    and lists of integers that sum to the size.
    """
    changes: dict[str, Any] = {}
    touched = False
    for name, t in case.leaves():
        if not tensors.strided(t):
            return None
        if old in t.shape:
            changes[name] = _resize(t.detach(), [new if size == old else size for size in t.shape])
            touched = True
        elif new < old and _may_index(case, name, t):
            return None
    if not touched:
        return None
    for name, value in case.bound().items():
        if isinstance(value, bool | torch.Tensor):
            continue
        if isinstance(value, int) and value == old and _type(case, name) in ("int", "SymInt"):
            changes[name] = new
        elif isinstance(value, list | tuple) and value and all(isinstance(v, int) for v in value):
            if sum(value) == old and len(value) > 1:
                return None
            if old in value:
                changes[name] = [new if v == old else v for v in value]
    return case.replace(changes, variant="", group="")


def _type(case: Case, name: str) -> str:
    if not case.info.is_operator:
        return "int"
    return next((str(a.real_type) for a in case.info.schema.arguments if a.name == name), "")


def _may_index(case: Case, name: str, t: torch.Tensor) -> bool:
    """Whether a tensor may hold positions in another one: integers that the op only reads."""
    written = case.info.is_operator and name.partition("[")[0] in case.info.mutated
    return t.dtype in (torch.int32, torch.int64) and t.numel() > 0 and not written


def _resize(t: torch.Tensor, shape: list[int]) -> torch.Tensor:
    """Values of ``t`` repeated or cut to another shape of the same rank."""
    for dim, size in enumerate(shape):
        have = t.shape[dim]
        if size == have:
            continue
        if size < have:
            t = t.narrow(dim, 0, size)
        elif have:
            index = torch.arange(size, device=t.device) % have
            t = t.index_select(dim, index)
        else:
            return torch.zeros(shape, dtype=t.dtype, device=t.device)
    return t.clone(memory_format=torch.contiguous_format)


def _sizes(case: Case) -> list[tuple[int, str]]:
    """The distinct sizes above one in a sample, each with the argument and dimension where it is first met."""
    found: dict[int, str] = {}
    for name, t in case.leaves():
        for dim, size in enumerate(t.shape):
            if size > 1:
                found.setdefault(size, f"{name} dim {dim}")
    return list(found.items())


@variant("empty")
def _empty(case: Case) -> Iterator[Case]:
    for size, place in _sizes(case):
        made = resized(case, size, 0)
        if made is not None:
            yield dataclasses.replace(made, variant=f"empty({place})", group="empty")


@variant("resized")
def _other_sizes(case: Case) -> Iterator[Case]:
    taken = {size for size, _ in _sizes(case)}
    for size, place in _sizes(case):
        new = next(n for n in (7, 11, 13, 5, 3, 17, 19, 23) if n not in taken)
        made = resized(case, size, new)
        if made is not None:
            yield dataclasses.replace(made, variant=f"size {new}({place})", group="resized")


@variant("ones")
def _size_one(case: Case) -> Iterator[Case]:
    for size, place in _sizes(case):
        made = resized(case, size, 1)
        if made is not None:
            yield dataclasses.replace(made, variant=f"size 1({place})", group="ones")
