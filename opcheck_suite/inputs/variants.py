"""Variants: inputs derived from a sample by one change each.

A group of variants is made by the generators registered for it, in the modules beside this one. Those of tier
``standard`` are left out of a quick run: they rarely show what others of their group do not.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator

from opcheck_suite.inputs.cases import Case
from opcheck_suite.model import Tier

Generator = Callable[[Case], Iterator[Case]]
_GROUPS: dict[str, list[tuple[Tier, Generator]]] = {}
_MODULES = ("layouts", "sharing", "sizes", "arguments", "dtypes", "content", "huge")


def variant(group: str, *, tier: str = "quick") -> Callable[[Generator], Generator]:
    """Add a generator of variants to a group, for runs of at least a tier."""

    def register(fn: Generator) -> Generator:
        _GROUPS.setdefault(group, []).append((Tier(tier), fn))
        return fn

    return register


def groups() -> tuple[str, ...]:
    """The names of all groups."""
    for name in _MODULES:
        importlib.import_module(f"opcheck_suite.inputs.{name}")
    return tuple(_GROUPS)


def whole(group: str, tier: Tier) -> bool:
    """Whether runs of a tier make all variants of a group that there are."""
    groups()
    return all(tier.includes(least) for least, _ in _GROUPS.get(group, ()))


def derive(case: Case, group: str, *, tier: Tier = Tier.FULL) -> list[Case]:
    """The variants of a sample in one group for runs of a tier, those most likely to show a fault first."""
    groups()
    return [made for least, generator in _GROUPS[group] if tier.includes(least) for made in generator(case)]
