"""Huge variants: more elements, or larger numbers, than 32 bits can count.

A tensor of more than 2**31 elements costs no memory when it is one element (or row) expanded.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator

import torch

from opcheck_suite.inputs import sizes
from opcheck_suite.inputs.cases import Case
from opcheck_suite.inputs.variants import variant

#: Added to an integer argument it leaves the lower 32 bits as they were.
WRAP = 1 << 32
#: More elements than a signed 32-bit integer counts.
BEYOND = (1 << 31) + 1
_TINY, _FIRST, _SECOND = 1 << 6, 1 << 13, 1 << 20
_HIGHER = "number "


@variant("huge")
def _huge(case: Case) -> Iterator[Case]:
    yield from longer(case, BEYOND)
    yield from higher(case, WRAP)


def smaller(sample: Case, case: Case) -> Iterator[tuple[Case, float]]:
    """Smaller variants of the same kind as a huge one, each with how many times larger the next one is."""
    higher_number = case.variant.startswith(_HIGHER)
    steps = (_FIRST, _SECOND, WRAP) if higher_number else (_TINY, _FIRST, _SECOND, BEYOND)
    for size, coming in itertools.pairwise(steps):
        for made in higher(sample, size) if higher_number else longer(sample, size):
            if not higher_number or made.variant.partition("=")[0] == case.variant.partition("=")[0]:
                yield made, coming / size


def growth(sample: Case, case: Case) -> float:
    """How many times more elements a huge variant has than its sample. See `compare.values`."""
    return sum(t.numel() for _, t in case.leaves()) / max(1, sum(t.numel() for _, t in sample.leaves()))


def longer(case: Case, elements: int) -> Iterator[Case]:
    """The case with its largest tensor expanded to at least ``elements`` elements along its largest size.

    Sizes that are equal change together, as in `sizes`. Nothing for arguments that are written, which torch refuses
    to take expanded, or for positions.
    """
    leaves = [(n, t.detach()) for n, t in case.leaves()]
    if not leaves or not sizes.plain(case) or case.info.mutated:
        return
    largest = max((t for _, t in leaves), key=lambda t: t.numel())
    old = max(largest.shape, default=0)
    if old < 2:
        return
    times = list(largest.shape).count(old)
    rest = largest.numel() // old**times
    new = math.ceil((elements / rest) ** (1 / times))
    made = sizes.resized(case, old, new, how=_expand)
    if made is not None:
        yield dataclasses.replace(made, variant=f"{elements:,} elements", group="huge")


def higher(case: Case, more: int) -> Iterator[Case]:
    """The case with ``more`` added to each of its integer arguments that is no size of a tensor."""
    if not case.info.is_operator:
        return
    taken = {size for _, t in case.leaves() for size in t.shape}
    for argument in case.info.schema.arguments:
        value = case.bound().get(argument.name)
        if str(argument.real_type) in ("int", "SymInt") and isinstance(value, int) and value not in taken:
            made = case.replace(
                {argument.name: value + more}, variant=f"{_HIGHER}{argument.name}={value + more}", group="huge"
            )
            yield dataclasses.replace(made, uncertain=True)  # it may say how many elements a tensor has


def _expand(t: torch.Tensor, shape: list[int]) -> torch.Tensor:
    """The first entry of ``t`` repeated along each dimension whose size changes, without memory."""
    for dim, size in enumerate(shape):
        if t.shape[dim] != size:
            t = t.narrow(dim, 0, 1)
    return t.clone(memory_format=torch.contiguous_format).expand(shape)
