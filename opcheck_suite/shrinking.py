"""Make a failing input as small as it still fails in the same way, for whoever reads the report.

Smaller inputs are tried in a copy of the process, and never decide a verdict: an op may rely on the sizes of its
sample, and then die of others, hang, or write where it should not.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

from opcheck_suite import isolate
from opcheck_suite.context import Context
from opcheck_suite.inputs import sizes, variants
from opcheck_suite.inputs.cases import Case
from opcheck_suite.model import Check, Tier

#: For one failure: how many smaller inputs a check of tier quick tries, how many a dearer one, and for how long.
TRIES, DEAR_TRIES, SECONDS = 20, 8, 1.0

#: Families of checks of which a single try takes long, and the elements beyond which any does.
TOO_DEAR, _TOO_LARGE = ("compile", "export"), 1 << 20

#: Groups of variants that are a layout. Another size would undo it, so that they are made of a smaller sample instead.
LAYOUTS = ("noncontiguous", "offset", "expanded", "lazy", "shared")

#: ``(context, case) -> the check's message and detail where it fails, else None``.
Fails = Callable[[Context, Case], tuple[str, str] | None]


@dataclasses.dataclass(frozen=True)
class Smaller:
    """A smaller input on which a check fails in the same way, and what it says there."""

    case: Case
    message: str
    detail: str


def shrink(ctx: Context, check: Check, sample: Case, case: Case, message: str, fails: Fails) -> Smaller | None:
    """The smallest input found by reducing the sizes of ``case``, or None where none fails with a like message.

    ``case`` is the sample or a variant of it. Equal sizes are reduced together. Every input that is taken is one that
    the op accepts.
    """
    base = sample if case.group in LAYOUTS else case
    if check.family in TOO_DEAR or sum(t.numel() for _, t in case.leaves()) > _TOO_LARGE:
        return None
    if ctx.device != "cpu" or not isolate.available() or not sizes.plain(sample):
        return None  # a copy of a process cannot use the GPU that the process uses

    def work(send: isolate.Send) -> None:
        def holds(changes: dict[int, int]) -> bool:
            made = _made(base, case, changes)
            own = ctx.alone(ctx.samples)
            if made is None or own.attempt(made) is None:
                return False
            failed = fails(own, made)
            if failed is None or kind(failed[0]) != kind(message):
                return False
            send({"changes": list(changes.items()), "message": failed[0], "detail": failed[1]})
            return True

        if ctx.attempt(case) is not None:
            tries = TRIES if check.tier is Tier.QUICK else DEAR_TRIES
            _search(sizes.reducible(base), holds, tries=tries)

    found = isolate.aside(work, seconds=SECONDS, waiting=lambda: ctx.announce("shrink", case))
    if not found:
        return None
    made = _made(base, case, dict(found[-1]["changes"]))
    return None if made is None else Smaller(made, found[-1]["message"], found[-1]["detail"])


def _made(base: Case, case: Case, changes: Mapping[int, int]) -> Case | None:
    """The failing case with other sizes, under its own name."""
    made = sizes.reduced(base, changes)
    if made is None:
        return None
    made = dataclasses.replace(made, variant=base.variant, group=base.group, uncertain=base.uncertain)
    if base is case:
        return made
    return next((v for v in variants.derive(made, case.group) if v.variant == case.variant), None)


def _search(found: list[int], holds: Callable[[dict[int, int]], bool], *, tries: int) -> None:
    """Reduce one size after the other: to one where that still fails, else by halving the range between the largest
    size known to pass and the smallest known to fail.
    """
    changes: dict[int, int] = {}
    for size in found:
        passes, failing = 0, size
        while failing - passes > 1:
            if tries == 0:
                return
            tries -= 1
            half = (passes + failing) // 2 if passes else 1
            if holds({**changes, size: half}):
                failing = half
                changes[size] = half
            else:
                passes = half


_VALUE = re.compile(r"\[[^\]]*\]|\([^)]*\)|-?\d[\w.+-]*")


def kind(message: str) -> tuple[Any, ...]:
    """What is the same in the messages of one failure on inputs of several sizes: how they begin, without values."""
    head, _, rest = _VALUE.sub("#", (message.splitlines() or [""])[0]).partition(": ")
    return head, *rest.split()[:4]
