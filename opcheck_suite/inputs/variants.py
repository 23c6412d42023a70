"""Variants: inputs derived from a sample by one change each.

A group of variants is made by the generators registered for it, in the modules beside this one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator

from opcheck_suite.inputs.cases import Case

Generator = Callable[[Case], Iterator[Case]]
_GROUPS: dict[str, list[Generator]] = {}
_MODULES = ("layouts", "sizes", "arguments", "dtypes", "content", "huge")


def variant(group: str) -> Callable[[Generator], Generator]:
    """Add a generator of variants to a group."""

    def register(fn: Generator) -> Generator:
        _GROUPS.setdefault(group, []).append(fn)
        return fn

    return register


def groups() -> tuple[str, ...]:
    """The names of all groups."""
    for name in _MODULES:
        importlib.import_module(f"opcheck_suite.inputs.{name}")
    return tuple(_GROUPS)


def derive(case: Case, group: str) -> list[Case]:
    """The variants of a sample in one group, those most likely to show a fault first."""
    groups()
    return [made for generator in _GROUPS[group] for made in generator(case)]
