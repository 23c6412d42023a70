"""What the integer tensors of a sample hold, judged by their values.

Ops on ragged data take integers that agree with sizes of other arguments: offsets that end at the number of rows,
counts that add up to it, an order of all rows. With other sizes such a call is valid only where the integers change as
well. The schema does not say what they are, and no op checks all of it, so that a call with integers that do not fit
reads memory that is not there, and proves nothing.
"""

from __future__ import annotations

import collections
import enum

import torch

from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case

#: Integer tensors with more elements are taken for positions, without a look at their values.
_MOST = 4096


class Kind(enum.Enum):
    """What the integers of a tensor are."""

    POSITIONS = enum.auto()
    """Rows of another argument, or plain numbers: may be repeated or left out."""
    OFFSETS = enum.auto()
    """Where each row begins, and where the last ends: from zero, never falling. One more than there are rows."""
    RISING = enum.auto()
    """Offsets, or positions in this order."""
    COUNTS = enum.auto()
    """Lengths that add up to a size of another argument."""
    ORDER = enum.auto()
    """Every number from zero once."""
    UNCLEAR = enum.auto()
    """What may be counts as well as an order."""


def may_index(case: Case, name: str, t: torch.Tensor) -> bool:
    """Whether a tensor may hold positions in another one: integers that the op only reads."""
    return t.dtype in (torch.int32, torch.int64) and t.numel() > 0 and not case.writes(name)


def kinds(case: Case) -> dict[str, Kind]:
    """What each integer tensor among the arguments holds."""
    leaves = [(n, t) for n, t in case.leaves() if tensors.strided(t)]
    whole = [(n, t) for n, t in leaves if t.dtype in (torch.int32, torch.int64) and t.numel()]
    given = numbers(case) if whole else set()
    found = {}
    for name, t in whole:
        # what is counted are rows: the first size above one
        rows = {next((size for size in other.shape if size > 1), 0) for n, other in leaves if n != name}
        together = [_values(other) for _, other in whole if other.shape == t.shape]
        found[name] = _kind(t, together, (rows | given) - {0})
    return found


def numbers(case: Case) -> set[int]:
    """The integers above one among the arguments, alone or in lists."""
    found: set[int] = set()
    for value in case.bound().values():
        items = value if isinstance(value, list | tuple) else [value]
        found.update(v for v in items if isinstance(v, int) and not isinstance(v, bool) and v > 1)
    return found


def _values(t: torch.Tensor) -> list[int]:
    """The integers of a tensor, if they are few."""
    readable = t.numel() <= _MOST and t.device.type != "meta"
    return t.detach().reshape(-1).tolist() if readable else []


def _kind(t: torch.Tensor, together: list[list[int]], sizes: set[int]) -> Kind:
    """The kind of a tensor; ``together`` are the values of all integer tensors of its shape, itself among them."""
    values = _values(t)
    if not values:
        return Kind.POSITIONS
    rising = t.dim() == 1 and len(values) > 1 and values[0] == 0 and values == sorted(values)
    totals = {sum(values), sum(map(sum, together))} if all(min(v, default=-1) >= 0 for v in together) else set()
    if rising and values[-1] in sizes:
        return Kind.OFFSETS
    if t.dim() == 1 and len(values) > 1 and sorted(values) == list(range(len(values))):
        return Kind.UNCLEAR if totals & sizes else Kind.ORDER
    if totals & sizes:
        return Kind.POSITIONS if _labels(values) else Kind.COUNTS
    return Kind.RISING if rising else Kind.POSITIONS


def _labels(values: list[int]) -> bool:
    """Whether integers look like the groups of as many rows, which add up to the number of rows by chance: 0, 1 and 2
    do, equally often. Each group from zero has several members, and the last is not the second.
    """
    members = collections.Counter(values)
    return (
        sum(values) == len(values)
        and sorted(members) == list(range(len(members)))
        and (len(members) > 2 and min(members.values()) > 1)
    )


def ends(kind: Kind | None) -> bool:
    """Whether a tensor of the kind may end each of its rows, and so has one entry more than there are rows."""
    return kind in (Kind.OFFSETS, Kind.RISING)


def fixed(case: Case, found: dict[str, Kind]) -> set[int]:
    """Sizes of arguments that follow from values of integer tensors: the end of offsets, the sum of counts."""
    leaves = dict(case.leaves())
    last = {int(leaves[n].max()) for n, kind in found.items() if ends(kind)}
    sums = {int(leaves[n].sum()) for n, kind in found.items() if kind is Kind.COUNTS}
    return (last | sums) - {0}


def extended(kind: Kind, t: torch.Tensor, dim: int, new: int, *, tied: bool) -> torch.Tensor | None:
    """Integers of a kind for ``new`` entries in a dimension; None where it is not known which are valid.

    ``tied`` says whether what the integers count or order changes with them.
    """
    old = t.shape[dim]
    if kind is Kind.UNCLEAR or (kind is Kind.ORDER and not tied):
        return None
    if kind is Kind.ORDER:
        return torch.cat([t, torch.arange(old, new, dtype=t.dtype, device=t.device)]) if new > old else t[t < new]
    if new < old:
        rest = t.narrow(dim, new, old - new)
        without = t.narrow(dim, 0, new)
        if kind is Kind.OFFSETS and new == 0:
            return None
        if kind is Kind.RISING or kind is Kind.POSITIONS:
            return without.clone()
        last = int(without[-1]) if kind is Kind.OFFSETS else 0
        return None if bool((rest != last).any()) else without.clone()
    more = list(t.shape)
    more[dim] = new - old
    last = int(t[-1]) if ends(kind) else 0
    return torch.cat([t, torch.full(more, last, dtype=t.dtype, device=t.device)], dim=dim)


def unsure(case: Case, size: int) -> bool:
    """Whether an integer tensor of a size may be one that is never cut, such as offsets."""
    leaves = dict(case.leaves())
    return any(kind is Kind.RISING and size in leaves[name].shape for name, kind in kinds(case).items())
