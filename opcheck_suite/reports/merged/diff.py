"""What changed between two matrices, also where they are of two versions of torch."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterator

from opcheck_suite.model import Outcome
from opcheck_suite.reports.merged import Column, Finding, Merged, Row


class Kind(enum.StrEnum):
    """How a cell changed."""

    NEWLY_BAD = "newly bad"
    """Bad now, and before either not bad or not there."""
    FIXED = "fixed"
    """Bad or an expected failure before, and passes now."""
    ACCEPTED = "now an expected failure"
    NOT_EXERCISED = "now not exercised"
    """Ran before; now skipped, or nothing ran that could have failed."""
    NEW = "new"
    """Not there before, and not bad."""
    GONE = "gone"
    """There before, and not now."""


@dataclasses.dataclass(frozen=True)
class Change:
    """One cell that changed. An outcome is None where the cell was not there."""

    kind: Kind
    row: Row
    check: str
    column: str
    before: Outcome | None
    after: Outcome | None
    finding: Finding | None


@dataclasses.dataclass(frozen=True)
class Difference:
    """All that changed."""

    pairs: tuple[tuple[str, str], ...]
    """Names of columns that were compared."""
    changes: tuple[Change, ...]
    unmatched: tuple[str, ...]
    """Columns of the old matrix that the new one has no counterpart of."""
    problems: tuple[str, ...]
    """What is missing or incomplete in the new matrix, so that its cells may be gone for no reason of the op's."""

    @property
    def ok(self) -> bool:
        """Whether something was compared, the new matrix is whole, and nothing is newly bad."""
        return bool(self.pairs) and not self.problems and not self.of(Kind.NEWLY_BAD)

    def of(self, kind: Kind) -> list[Change]:
        """The changes of one kind."""
        return [c for c in self.changes if c.kind is kind]


def diff(old: Merged, new: Merged) -> Difference:
    """Compare two matrices, column by column.

    Columns belong together by their environment; of what is left, those that differ in the version of torch, and so on:
    see `_counterparts`.
    """
    pairs = _counterparts(old.columns, new.columns)
    changes: list[Change] = []
    rows = {row: n for n, row in enumerate(old.rows)}
    checks = {check: n for n, check in enumerate(old.checks)}
    for c, column in enumerate(new.columns):
        changes += _changes(old, new, pairs.get(c), c, column.name, rows, checks)
    matched = set(pairs.values())
    return Difference(
        pairs=tuple((old.columns[a].name, new.columns[b].name) for b, a in sorted(pairs.items())),
        changes=tuple(changes),
        unmatched=tuple(c.name for n, c in enumerate(old.columns) if n not in matched),
        problems=new.problems,
    )


def _changes(
    old: Merged,
    new: Merged,
    before_column: int | None,
    column: int,
    name: str,
    old_rows: dict[Row, int],
    old_checks: dict[str, int],
) -> Iterator[Change]:
    def earlier(row: Row, check: str) -> Outcome | None:
        if before_column is None or row not in old_rows or check not in old_checks:
            return None
        return old.outcome(old_rows[row], old_checks[check], before_column)

    for r, row in enumerate(new.rows):
        for k, check in enumerate(new.checks):
            after = new.outcome(r, k, column)
            before = earlier(row, check)
            if after is None or after is before:
                continue
            bad_before = before is not None and before_column is not None and old.is_bad(before, before_column)
            if kind := _kind(before, after, bad_before=bad_before, bad_after=new.is_bad(after, column)):
                yield Change(kind, row, check, name, before, after, new.findings.get((r, k, column)))
    if before_column is None:
        return
    new_rows = {row: n for n, row in enumerate(new.rows)}
    new_checks = {check: n for n, check in enumerate(new.checks)}
    for r, row in enumerate(old.rows):
        for k, check in enumerate(old.checks):
            before = old.outcome(r, k, before_column)
            if before is None:
                continue
            there = row in new_rows and check in new_checks
            if not there or new.outcome(new_rows[row], new_checks[check], column) is None:
                yield Change(Kind.GONE, row, check, name, before, None, None)


def _kind(before: Outcome | None, after: Outcome, *, bad_before: bool, bad_after: bool) -> Kind | None:
    idle = (Outcome.SKIP, Outcome.NOT_EXERCISED)
    if bad_after:
        return None if bad_before else Kind.NEWLY_BAD
    if before is None:
        return Kind.NEW
    if after in idle:
        return None if before in idle else Kind.NOT_EXERCISED
    if after is Outcome.XFAIL:
        return Kind.ACCEPTED
    return Kind.FIXED if bad_before or before is Outcome.XFAIL else None


def _counterparts(old: tuple[Column, ...], new: tuple[Column, ...]) -> dict[int, int]:
    """Position of a new column -> position of the old one that it is compared with.

    First those of one environment; then, among what is left, those that only agree in ever less: all but torch, the
    device and Python, the device, the kind of the device. A pair is made only where neither side has a choice.
    """

    def python(c: Column) -> str:
        return ".".join(c.environment.get("python", "").split(".")[:2])

    def get(c: Column, *parts: str) -> tuple[str, ...]:
        return tuple(c.environment.get(part, "") for part in parts)

    keys: list[Callable[[Column], object]] = [
        lambda c: get(c, "torch", "python", "platform", "device", "opcheck_suite"),
        lambda c: (get(c, "torch", "platform", "device"), python(c)),
        lambda c: (get(c, "platform", "device"), python(c)),
        lambda c: (get(c, "device"), python(c)),
        lambda c: get(c, "device"),
        lambda c: c.environment["device"].partition(" ")[0],
    ]
    left_old = {n for n, c in enumerate(old) if c.environment}
    left_new = {n for n, c in enumerate(new) if c.environment}
    pairs: dict[int, int] = {}
    for key in keys:
        for b in sorted(left_new):
            there = [a for a in left_old if key(old[a]) == key(new[b])]
            here = [n for n in left_new if key(new[n]) == key(new[b])]
            if len(there) == 1 == len(here):
                pairs[b] = there[0]
                left_old.remove(there[0])
                left_new.remove(b)
    return pairs
