"""Cases that are a small one over and over: what comes out must be over and over, too, for an op that maps rows.

That says what is right for an input of any size, without another implementation that can take it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import torch

from opcheck_suite.inputs import sizes, tensors
from opcheck_suite.inputs.cases import Case


def repeatable(case: Case) -> list[int]:
    """Numbers of rows by which a case can be repeated: those that its largest tensor has once."""
    largest = max((t for _, t in case.leaves()), key=lambda t: t.numel(), default=None)
    if largest is None or not sizes.plain(case):
        return []
    shape = list(largest.shape)
    return [size for size in sizes.rows(case) if shape.count(size) == 1]


def repeated(case: Case, size: int, times: int) -> Case | None:
    """The case with all that has ``size`` rows given ``times`` as many, the same ones again.

    Memory is taken for one copy. None where that could break a relation between arguments.
    """
    made = sizes.resized(case, size, size * times, how=_tiled)
    if made is None:
        return None
    return dataclasses.replace(made, variant=f"{case.variant}, {size} times {times:,}".lstrip(", "), group="repeated")


def _tiled(t: torch.Tensor, shape: list[int]) -> torch.Tensor:
    return t.repeat([new // old if old else 1 for new, old in zip(shape, t.shape, strict=True)])


def narrower(case: Case) -> Iterator[Case]:
    """The case with the dtype of its largest tensor replaced by smaller ones, smallest first; at last the case itself.

    Values become whole numbers from -3 to 3 for dtypes of one byte, so that they are the same in every dtype.
    """
    dtype = max((t for _, t in case.leaves()), key=lambda t: t.numel()).dtype
    if dtype.is_complex or dtype.itemsize == 1:
        yield case
        return
    for smaller in (torch.int8, torch.uint8):
        yield _as(case, dtype, smaller)
    if dtype.is_floating_point and dtype.itemsize > 2:
        for smaller in (torch.bfloat16, torch.float16):
            yield _as(case, dtype, smaller)
    yield case


def widened(case: Case, dtype: torch.dtype) -> Case:
    """A case of `narrower` with the values that it has, in the dtype that the original had."""
    narrow = max((t for _, t in case.leaves()), key=lambda t: t.numel()).dtype
    changes = {name: t.to(dtype) for name, t in case.leaves() if t.dtype == narrow}
    return case.replace(changes, variant=f"{case.variant}, in {dtype}", group="repeated")


def _as(case: Case, dtype: torch.dtype, smaller: torch.dtype) -> Case:
    changes = {}
    for name, t in case.leaves():
        if t.dtype == dtype and tensors.strided(t):
            t = t.detach()
            if not smaller.is_floating_point:
                t = (t.clamp(-3, 3) if dtype.is_floating_point else t.remainder(7) - 3).nan_to_num().round()
                t = t.abs() if smaller is torch.uint8 else t
            changes[name] = t.to(smaller)
    word = tensors.dtype_name(smaller)
    made = case.replace(changes, variant=f"{case.variant}, {word}".lstrip(", "), group="repeated")
    return dataclasses.replace(made, uncertain=True)
