"""The catalogue of checks: the ``@check`` decorator, discovery, and look-up by id.

A check is one file below ``checks/`` that holds a function and its documentation as data. Files of checks import torch
inside their functions only, so that the catalogue can be listed without it.
"""

from __future__ import annotations

import difflib
import fnmatch
import importlib
import importlib.metadata
import pkgutil
import re
from collections.abc import Callable, Iterable
from typing import Any

from opcheck_suite.model import FAMILIES, Check, Outcome, Tier

#: Other packages add checks by naming a module under this group of entry points.
ENTRY_POINTS = "opcheck_suite.checks"

_SCOPES = ("op", "case", "signature")
_ID = re.compile(r"[a-z]+\.[a-z][a-z0-9_]*")
_CHECKS: dict[str, Check] = {}
_discovered = False


class UsageError(Exception):
    """What the user asked for cannot be done. The text is one line and says what to type instead."""


def check(
    *,
    id: str,
    title: str,
    what: str,
    why: str,
    fix: str,
    docs: str,
    tier: str,
    scope: str = "case",
    variants: tuple[str, ...] = ("sample",),
    severity: str = "fail",
    since: str = "0.1.0",
    applies: Callable[..., str | None] | None = None,
    failing_samples: bool = False,
    shrinks: bool = True,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the decorated function to the catalogue.

    ``scope`` says how often the function runs for a unit: ``"op"`` once, as ``fn(ctx)``; else as ``fn(ctx, case)``, for
    ``"case"`` on every sample, for ``"signature"`` on the first sample of each distinct signature (dtypes, ranks, which
    arguments are present). ``variants`` names what is run of a sample: ``"sample"`` is itself, the others are groups of
    variants derived from it. Tier ``static`` goes with scope ``"op"`` and runs no kernel.

    With ``failing_samples`` the function also sees samples that the op raises on, which other checks are spared.

    Without ``shrinks``, an input on which the check fails is shown as it is, and no smaller one is looked for.

    ``applies(ctx)`` returns None, or the reason for which the check does not apply to an op.

    Raises ValueError when the documentation is incomplete or the id is taken.
    """

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        if not _ID.fullmatch(id) or id.partition(".")[0] not in FAMILIES:
            raise ValueError(f"check id {id!r} must be family.subject with a family of {', '.join(FAMILIES)}")
        if scope not in _SCOPES:
            raise ValueError(f"check {id}: scope {scope!r} must be one of {', '.join(_SCOPES)}")
        texts = {"title": title, "what": what, "why": why, "fix": fix, "docs": docs, "since": since}
        if tier == "static" and scope != "op":
            raise ValueError(f"check {id}: a static check has scope 'op'")
        if missing := [name for name, text in texts.items() if not text.strip()]:
            raise ValueError(f"check {id}: {', '.join(missing)} must not be empty")
        if not docs.startswith("https://"):
            raise ValueError(f"check {id}: docs must be a link, got {docs!r}")
        known = _CHECKS.get(id)
        if known is not None and known.fn.__module__ != fn.__module__:
            raise ValueError(f"check {id} is defined in {known.fn.__module__} and again in {fn.__module__}")
        _CHECKS[id] = Check(
            id=id,
            title=title,
            what=what,
            why=why,
            fix=fix,
            docs=docs,
            tier=Tier(tier),
            severity=Outcome(severity),
            since=since,
            fn=fn,
            variants=variants,
            scope=scope,
            applies=applies,
            failing_samples=failing_samples,
            shrinks=shrinks,
        )
        return fn

    return register


def _discover() -> None:
    global _discovered
    if _discovered:
        return
    from opcheck_suite import checks

    for module in pkgutil.walk_packages(checks.__path__, checks.__name__ + "."):
        if not module.ispkg:
            importlib.import_module(module.name)
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        entry.load()
    _discovered = True


def all_checks() -> list[Check]:
    """Every check, in the order in which they run."""
    _discover()
    tiers = list(Tier)
    order = {id: n for n, id in enumerate(_CHECKS)}
    return sorted(
        _CHECKS.values(), key=lambda c: (FAMILIES.index(c.family), c.id not in FIRST, tiers.index(c.tier), order[c.id])
    )


#: Checks that run before the others of their family, since the others look only at what these let through.
FIRST = ("values.runs", "fake.runs")


def prerequisites(checks: Iterable[Check]) -> list[Check]:
    """The checks, with those that must run beside them: whoever looks at outputs relies on there being some."""
    chosen = {c.id for c in checks}
    if any(c.scope != "op" for c in map(get, chosen)):
        chosen.add("values.runs")
    if any(c.family == "fake" for c in map(get, chosen)):
        chosen.add("fake.runs")
    return [c for c in all_checks() if c.id in chosen]


def owner(what: str, group: str) -> str:
    """The id of the check that reports an op's death on a group of inputs; the others leave such inputs out.

    So a deadly input is one bad result, and which one does not depend on the order of checks or on how a run is split.
    ``what`` is ``"eager"`` or ``"fake"``, ``group`` that of the variant, or ``"sample"``.
    """
    if what == "fake":
        return "fake.runs"
    for one in all_checks():
        if one.family == "values" and group in one.variants:
            return one.id
    return "values.runs"


def get(id: str) -> Check:
    """The check of that id. Raises UsageError with the nearest id when there is none."""
    _discover()
    if id not in _CHECKS:
        raise UsageError(f"unknown check {id!r}{did_you_mean(id, _CHECKS)}")
    return _CHECKS[id]


def select(patterns: Iterable[str], *, tier: Tier, also: Iterable[str] = ()) -> list[Check]:
    """The checks that a run with these patterns consists of.

    Without patterns: all checks of the tier, and those with the ids in ``also``. A pattern is an id, a family or a glob
    such as ``fake.*``; checks named by a pattern are taken whatever their tier. A pattern that begins with ``-`` or
    ``!`` takes checks away.

    Raises UsageError when a pattern matches nothing.
    """
    checks = all_checks()
    chosen: set[str] = set()
    removed: set[str] = set()
    positive = False
    for pattern in patterns:
        minus = pattern[:1] in "-!"
        glob = pattern[1:] if minus else pattern
        hit = {c.id for c in checks if fnmatch.fnmatchcase(c.id, glob) or c.family == glob}
        if not hit and glob in FAMILIES:
            raise UsageError(f"there is no check of family {glob!r} yet")
        if not hit:
            names = [c.id for c in checks] + list(FAMILIES)
            raise UsageError(f"unknown check {glob!r}{did_you_mean(glob, names)}")
        if minus:
            removed |= hit
        else:
            positive = True
            chosen |= hit
    if not positive:
        chosen = {c.id for c in checks if tier.includes(c.tier)} | {get(id).id for id in also}
    return [c for c in checks if c.id in chosen - removed]


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the known name nearest to a wrong one, or an empty string."""
    names = list(known)
    near = difflib.get_close_matches(wrong, names, n=1, cutoff=0.5)
    if not near:
        near = [name for name in names if wrong and name.endswith((f".{wrong}", f"::{wrong}"))][:1]
    return f"; did you mean {near[0]!r}?" if near else ""


def one_of(kind: str, value: str, allowed: Iterable[str]) -> str:
    """The value, if it is an allowed one. Raises UsageError with the nearest, or all, if not."""
    allowed = list(allowed)
    if value not in allowed:
        hint = did_you_mean(value, allowed) or f"; it is one of {', '.join(allowed)}"
        raise UsageError(f"unknown {kind} {value!r}{hint}")
    return value
