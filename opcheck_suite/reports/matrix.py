"""The matrix behind every renderer: ops x checks, the outcome of a cell being its most serious result."""

from __future__ import annotations

import collections
import dataclasses

from opcheck_suite import registry
from opcheck_suite.model import FAMILIES, Outcome, Report, Result, worst


@dataclasses.dataclass(frozen=True)
class Matrix:
    """Outcomes by row (op, with device and dtype where these differ) and check."""

    rows: tuple[str, ...]
    checks: tuple[str, ...]
    cells: dict[tuple[str, str], Outcome]

    @property
    def families(self) -> dict[str, list[str]]:
        """Family -> ids of its checks that were run, in the order in which they run."""
        found: dict[str, list[str]] = collections.defaultdict(list)
        for check in self.checks:
            found[check.partition(".")[0]].append(check)
        return dict(found)


def build(report: Report) -> Matrix:
    """The matrix of a report."""
    several = len({r.device for r in report.results}) > 1
    grouped: dict[tuple[str, str], list[Outcome]] = collections.defaultdict(list)
    for result in report.results:
        grouped[row_name(result, several=several), result.check].append(result.outcome)
    rows = dict.fromkeys(row for row, _ in grouped)
    order = ordered({check for _, check in grouped})
    return Matrix(tuple(rows), tuple(order), {key: worst(found) for key, found in grouped.items()})


def ordered(present: set[str]) -> list[str]:
    """Ids of checks in the order in which they run; those that are not installed come last, by family."""
    known = [c.id for c in registry.all_checks() if c.id in present]
    return known + sorted(present - set(known), key=lambda c: (_family_rank(c), c))


def row_name(result: Result, *, several: bool) -> str:
    """The op, with the device when a report has several and the dtype when the spec names some."""
    parts = [result.device] if several else []
    parts += [result.dtype] if result.dtype else []
    return f"{result.op} [{'/'.join(parts)}]" if parts else result.op


def _family_rank(check: str) -> int:
    family = check.partition(".")[0]
    return FAMILIES.index(family) if family in FAMILIES else len(FAMILIES)


@dataclasses.dataclass(frozen=True)
class Summary:
    """How many ops a run had, and how far each got."""

    registered: int
    with_samples: int
    tested: int
    conformant: int
    untested: tuple[str, ...]
    """Ops on which no check ran that could have failed, apart from static ones where others were asked for."""
    static: bool = False
    """Whether only static checks were asked for, which run no kernel and so say of no op that it is conformant."""
    clean: int = 0
    """With `static`, how many ops have no bad result."""


def summarise(report: Report) -> Summary:
    """Count ops: registered, with samples, tested (something dynamic ran), conformant (tested and nothing bad)."""
    static = {c.id for c in registry.all_checks() if c.tier == "static"}
    only_static = bool(report.results) and all(r.check in static for r in report.results)
    bad = {r.op for r in report.bad}
    sampled, tested = set(), set()
    for r in report.results:
        if r.check not in static and r.sample:
            sampled.add(r.op)
        ran = r.outcome not in (Outcome.SKIP, Outcome.NOT_EXERCISED, Outcome.ERROR)
        if ran and (only_static or r.check not in static):
            tested.add(r.op)
    names = list(report.ops) or list(dict.fromkeys(r.op for r in report.results))
    return Summary(
        registered=len(names),
        with_samples=len(sampled),
        tested=0 if only_static else len(tested),
        conformant=0 if only_static else len(tested - bad),
        untested=tuple(n for n in names if n not in tested),
        static=only_static,
        clean=len(tested - bad) if only_static else 0,
    )
