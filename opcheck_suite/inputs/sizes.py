"""Size variants: other sizes, ranks and broadcast arguments.

Sizes that are equal in a sample change together, since an op's arguments are related and the schema does not say how.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from opcheck_suite.inputs import relations, tensors
from opcheck_suite.inputs.cases import Case
from opcheck_suite.inputs.relations import Kind
from opcheck_suite.inputs.variants import variant

Resize = Callable[[torch.Tensor, list[int]], torch.Tensor]


def resized(
    case: Case, old: int, new: int, *, how: Resize | None = None, kinds: dict[str, Kind] | None = None
) -> Case | None:
    """The case with every size equal to ``old`` made ``new``; None where that could break a relation between arguments.

    Integer arguments equal to the size change with it, and integer tensors as what they hold demands; see `relations`.
    Left alone: integer tensors that may index into what shrinks, lists of integers that sum to the size, and lists of
    offsets between which it lies. ``how`` makes a tensor of another shape; by default values are repeated.
    """
    kinds = relations.kinds(case) if kinds is None else kinds
    fixed = relations.fixed(case, kinds)
    if old in fixed and new:
        return None
    changes: dict[str, Any] = {}
    touched = False
    for name, t in case.leaves():
        if not tensors.strided(t):
            return None
        kind = kinds.get(name)
        if relations.ends(kind) and old in (t.shape[0], t.shape[0] - 1):
            made = _offsets(case, name, t.detach(), old, new, kinds)
            if made is None:
                return None
            touched = touched or made is not t
            changes[name] = made
        elif old in t.shape:
            made = _resized_leaf(case, name, t.detach(), old, new, kind, how or _resize)
            if made is None:
                return None
            changes[name] = made
            touched = True
        elif old in fixed and (relations.ends(kind) or kind is Kind.COUNTS):
            changes[name] = torch.zeros_like(t)
        elif new < old and relations.may_index(case, name, t):
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
                changed = [new if v == old else v for v in value]
                if value[0] == 0 and sorted(value) == list(value) and sorted(changed) != changed:
                    return None  # offsets, of which none may pass the next
                changes[name] = changed
    return case.replace(changes, variant="", group="")


def reduced(case: Case, changes: Mapping[int, int]) -> Case | None:
    """As `resized`, for several sizes of which each becomes smaller: old size -> new one."""
    made: Case | None = case
    for old in sorted(changes):  # the smallest first, so that what has become of a larger one is left alone
        made = resized(made, old, changes[old]) if made is not None else None
    return made


def _offsets(case: Case, name: str, t: torch.Tensor, old: int, new: int, kinds: dict[str, Kind]) -> torch.Tensor | None:
    """Offsets for another number of rows, of which there is one fewer than there are offsets."""
    kind, rows = kinds[name], t.shape[0] - 1
    if old == rows:
        return relations.extended(kind, t, 0, new + 1, tied=True)
    others = {size for n, other in case.leaves() if not relations.ends(kinds.get(n)) for size in other.shape}
    if old in others:  # by chance, where the number of rows is met elsewhere
        return t if rows in others else None
    if rows in others or rows in relations.numbers(case):
        return None  # it follows from the number of rows
    return relations.extended(kind, t, 0, new, tied=True)


def _resized_leaf(
    case: Case, name: str, t: torch.Tensor, old: int, new: int, kind: Kind | None, how: Resize
) -> torch.Tensor | None:
    """A tensor with other sizes; integers hold what fits these."""
    tied = any(n != name and old in other.shape for n, other in case.leaves())
    if kind is None or kind is Kind.POSITIONS:
        if kind is not None and new < old and tied and bool((t >= new).any()):
            return None  # positions beyond what the other argument is cut to
        return how(t, [new if size == old else size for size in t.shape])
    made: torch.Tensor | None = t
    for dim, size in enumerate(t.shape):
        if size == old and made is not None:
            made = relations.extended(kind, made, dim, new, tied=tied or len(case.leaves()) == 1)
    return made


def _type(case: Case, name: str) -> str:
    if not case.info.is_operator:
        return "int"
    return next((str(a.real_type) for a in case.info.schema.arguments if a.name == name), "")


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


@dataclasses.dataclass(frozen=True)
class _Size:
    """A size above one that occurs in a sample."""

    value: int
    place: str
    """The argument and dimension where it is first met."""
    leading: bool
    """Whether it is a number of rows: the first size of a matrix or more, or of vectors where all have this size.

    Ops take any number of rows. Other sizes, such as that of a table beside a matrix, their code may rely on.
    """


def _sizes(case: Case) -> list[_Size]:
    """The distinct sizes above one in a sample; none where an argument is no plain tensor."""
    found: dict[int, _Size] = {}
    if not all(tensors.strided(t) for _, t in case.leaves()):
        return []
    vectors = all(t.dim() < 2 for _, t in case.leaves()) and len({t.numel() for _, t in case.leaves()} - {0, 1}) == 1
    for name, t in case.leaves():
        for dim, size in enumerate(t.shape):
            if size > 1:
                rows = dim == 0 and (t.dim() > 1 or vectors)
                known = found.setdefault(size, _Size(size, f"{name} dim {dim}", rows))
                found[size] = dataclasses.replace(known, leading=known.leading or rows)
    return list(found.values())


_PRIMES = (7, 11, 13, 5, 3, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67)


def _prime(size: _Size, taken: set[int], *, grow: bool) -> int:
    """Another size, a prime: a larger one where the op may rely on the size, since smaller ones would be read
    beyond.
    """
    usable = [n for n in _PRIMES if n not in taken and (n > size.value or not grow)]
    return usable[0] if usable else size.value + 1 + size.value % 2


def reducible(case: Case) -> list[int]:
    """The distinct sizes above one in a case: numbers of rows first, which any op takes fewer of, then the largest."""
    return [s.value for s in sorted(_sizes(case), key=lambda s: (not s.leading, -s.value))]


def rows(case: Case) -> list[int]:
    """The distinct sizes above one in a case that are numbers of rows, of which any op takes more."""
    return [s.value for s in _sizes(case) if s.leading]


def _alone(case: Case, size: _Size) -> bool:
    """Whether a size is one of several arguments' only, and no number of rows.

    Another size may follow from it: half of it, as where two columns are combined into one, or a number of blocks.
    """
    shapes = [t.shape for _, t in case.leaves() if t.dim()]
    return not size.leading and len(shapes) > 1 and sum(size.value in shape for shape in shapes) == 1


@variant("empty")
def _empty(case: Case) -> Iterator[Case]:
    yield from _set_to(case, 0, "empty", "empty")


@variant("ones")
def _size_one(case: Case) -> Iterator[Case]:
    yield from _set_to(case, 1, "size 1", "ones")


def _set_to(case: Case, new: int, word: str, group: str) -> Iterator[Case]:
    fixed = relations.fixed(case, relations.kinds(case))
    for size in _sizes(case):
        made = resized(case, size.value, new)
        if made is None and new == 0:
            made = _without_rows(case, size.value)
        if made is not None:
            text = f"{word}({size.place})"
            unsure = not (size.leading or size.value in fixed) or relations.unsure(case, size.value)
            yield dataclasses.replace(made, variant=text, group=group, uncertain=unsure)


def _without_rows(case: Case, size: int) -> Case | None:
    """The case with a size made zero, and before it what integers say of it: no bags, and so no rows in bags."""
    kinds = relations.kinds(case)
    for total in sorted(relations.fixed(case, kinds) - {size}):
        emptied = resized(case, total, 0, kinds=kinds)
        made = resized(emptied, size, 0, kinds=kinds) if emptied is not None else None
        if made is not None:
            return made
    return None


@variant("resized")
def _other_sizes(case: Case) -> Iterator[Case]:
    taken = {size.value for size in _sizes(case)}
    for size in _sizes(case):
        new = _prime(size, taken, grow=not size.leading)
        made = resized(case, size.value, new)
        if made is not None:
            yield dataclasses.replace(
                made, variant=f"size {new}({size.place})", group="resized", uncertain=_alone(case, size)
            )


@variant("resized")
def _odd_sizes(case: Case) -> Iterator[Case]:
    """All sizes changed at once to different primes, so that the number of elements has no small factor."""
    taken = {size.value for size in _sizes(case)}
    made: Case | None = case
    changed = []
    for size in _sizes(case):
        new = _prime(size, taken, grow=True)
        taken.add(new)
        made = resized(made, size.value, new) if made is not None else None
        changed.append(f"{new}({size.place})")
    if made is not None and len(changed) > 1:
        unsure = any(_alone(case, size) for size in _sizes(case))
        yield dataclasses.replace(made, variant=f"sizes {', '.join(changed)}", group="resized", uncertain=unsure)


#: Elements of the tensors of a sweep's case, at most.
_SWEEP = 1 << 18


def sweep(case: Case, count: int, *, leading: bool) -> list[Case]:
    """The case with all its sizes changed at once, ``count`` times, to primes above them that occur once.

    With ``leading`` only numbers of rows change. Nothing of more elements than `_SWEEP`: primes for all of many
    dimensions multiply.
    """
    chosen = [size for size in _sizes(case) if size.leading or not leading]
    taken = {size.value for size in _sizes(case)}
    found = []
    for _ in range(count if chosen else 0):
        made: Case | None = case
        changed = []
        for size in chosen:
            new = _prime(size, taken, grow=True)
            taken.add(new)
            made = resized(made, size.value, new) if made is not None else None
            changed.append(f"{new}({size.place})")
        if made is not None and sum(t.numel() for _, t in made.leaves()) <= _SWEEP:
            found.append(dataclasses.replace(made, variant=f"sizes {', '.join(changed)}", group="resized"))
    return found


@variant("large")
def _beyond_a_block(case: Case) -> Iterator[Case]:
    """Sizes that exceed a block of threads, where the tensors stay small."""
    yield from _larger(case, 1100)


@variant("large", tier="standard")
def _beyond_a_tile(case: Case) -> Iterator[Case]:
    yield from _larger(case, 131)


def _larger(case: Case, new: int) -> Iterator[Case]:
    for size in _sizes(case):
        shapes = [[new if n == size.value else n for n in t.shape] for _, t in case.leaves()]
        made = resized(case, size.value, new) if sum(map(math.prod, shapes)) <= 1 << 16 else None
        if made is not None and sum(t.numel() for _, t in made.leaves()) <= 1 << 16:
            unsure = _alone(case, size)
            yield dataclasses.replace(made, variant=f"size {new}({size.place})", group="large", uncertain=unsure)


def plain(case: Case) -> bool:
    """Whether the case is all strided tensors without sizes or positions among its other arguments."""
    return all(tensors.strided(t) and not relations.may_index(case, n, t) for n, t in case.leaves())


@variant("ranks")
def _ranks(case: Case) -> Iterator[Case]:
    """All tensors with one more leading dimension, and all of them scalars."""
    leaves = case.leaves()
    if not leaves or not plain(case) or any("[" in name for name, _ in leaves):
        return
    if any(t.dim() for _, t in leaves):
        yield case.map(
            lambda t: torch.stack([t.detach(), t.detach().flip(0) if t.dim() else t.detach()]),
            variant="one more dimension",
            group="ranks",
        )
    if any(t.dim() for _, t in leaves) and all(t.numel() for _, t in leaves):
        yield case.map(
            lambda t: t.detach().reshape(-1)[:1].reshape(()).clone(), variant="all 0-dimensional", group="ranks"
        )


@variant("broadcast")
def _broadcast(case: Case) -> Iterator[Case]:
    """One of several arguments of a common shape made smaller, so that it must be broadcast against the others."""
    leaves = [(n, t.detach()) for n, t in case.leaves() if tensors.strided(t) and t.dim()]
    if not plain(case):
        return
    for name, t in leaves:
        partners = [n for n, other in leaves if n != name and other.shape == t.shape]
        if not partners or case.writes(name):
            continue
        if t.shape[0] > 1:
            one = t[:1].clone(memory_format=torch.contiguous_format)
            yield case.replace({name: one}, variant=f"broadcast({name})", group="broadcast")
            if t.dim() > 1:
                low = t[0].clone(memory_format=torch.contiguous_format)
                yield case.replace({name: low}, variant=f"broadcast({name}, one dimension fewer)", group="broadcast")
