"""Sharing variants: arguments that have memory in common.

The op may rely on what the values of its arguments have to do with each other, so that these calls may be invalid.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import torch

from opcheck_suite.inputs import dtypes
from opcheck_suite.inputs.cases import Case
from opcheck_suite.inputs.variants import variant


@variant("shared", tier="standard")
def _same_tensor(case: Case) -> Iterator[Case]:
    """One tensor for all arguments of its shape and dtype."""
    for names, first in _alike(case):
        made = case.replace(dict.fromkeys(names, first), variant=f"one tensor for {', '.join(names)}", group="shared")
        yield dataclasses.replace(made, uncertain=True)


@variant("shared", tier="standard")
def _neighbours(case: Case) -> Iterator[Case]:
    """Two arguments as ``t[:-1]`` and ``t[1:]`` of one tensor, in which the second has the values that it had."""
    for (name, other, *_), first in _alike(case):
        if first.dim() and first.numel():
            second = dict(case.leaves())[other].detach()
            whole = torch.cat([first[:1], second]).contiguous()
            changes = {name: whole[:-1], other: whole[1:]}
            made = case.replace(changes, variant=f"overlapping views({name}, {other})", group="shared")
            yield dataclasses.replace(made, uncertain=True)


def _alike(case: Case) -> Iterator[tuple[list[str], torch.Tensor]]:
    """Arguments of one shape and dtype, where there are two or more, and the first of them.

    Only floating-point ones, since integers may be positions, and only those that are read: what comes of a write to
    memory that another argument shares, no op promises.
    """
    alike: dict[tuple[torch.Size, torch.dtype], list[tuple[str, torch.Tensor]]] = {}
    for name, t in dtypes.floating(case):
        if not case.writes(name):
            alike.setdefault((t.shape, t.dtype), []).append((name, t.detach()))
    for found in alike.values():
        if len(found) > 1:
            yield [name for name, _ in found], found[0][1]
