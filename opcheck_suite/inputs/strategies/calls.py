"""Strategies for whole calls, from the parts that a user gives."""

from __future__ import annotations

import graphlib
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from opcheck_suite.inputs.strategies.parts import Draw, needed, resolve
from opcheck_suite.model import Sample
from opcheck_suite.registry import UsageError, did_you_mean


def sample(**arguments: Any) -> SearchStrategy[Sample]:
    """Calls with these arguments: plain values, strategies, and relations between them.

    ::

        sample(x=tensors(), dim=dim_of("x"), index=index_into("x", dim="dim"))

    The arguments are drawn in an order in which each is known before it is referred to, and given by name.

    Raises UsageError for a relation to an argument that is not given, or that goes round in a circle.
    """
    order = order_of(arguments, "sample")

    @st.composite
    def sample(draw: Draw) -> Sample:
        known = draw_in(order, arguments, draw)
        return Sample(kwargs={name: known[name] for name in arguments})

    return sample()


def draw_in(order: list[str], parts: Mapping[str, Any], draw: Draw) -> dict[str, Any]:
    """The value of each argument, drawn in an order of `order_of`."""
    known: dict[str, Any] = {}
    for name in order:
        known[name] = resolve(parts[name], draw, known)
    return known


def order_of(parts: Mapping[str, Any], where: str) -> list[str]:
    """The arguments in an order in which each comes after those it refers to."""
    needs = {name: needed(part) for name, part in parts.items()}
    for name, others in needs.items():
        if missing := sorted(others - parts.keys()):
            raise UsageError(
                f"{where}: {name}={parts[name]!r} refers to {missing[0]!r}, which is no argument of the call"
                f"{did_you_mean(missing[0], parts)}"
            )
    try:
        return list(graphlib.TopologicalSorter(needs).static_order())
    except graphlib.CycleError as error:
        circle = ", ".join(dict.fromkeys(error.args[1]))
        raise UsageError(f"{where}: the arguments {circle} refer to each other") from None
