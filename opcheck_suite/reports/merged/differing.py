"""Where environments of one matrix disagree, and what their reports say of it."""

from __future__ import annotations

import dataclasses

from opcheck_suite.model import Outcome
from opcheck_suite.reports.merged import OUTCOMES, Merged


@dataclasses.dataclass(frozen=True)
class Differing:
    """Cells on which the environments disagree in one way, for one reason."""

    outcomes: tuple[tuple[int, Outcome | None], ...]
    """Column and outcome; None where the check was no part of the run."""
    why: str
    """The first lines of what the cells that did not pass have to tell."""
    cells: tuple[tuple[int, int], ...]
    """Row and check of each."""

    def ops(self, merged: Merged) -> list[str]:
        """The names of its rows."""
        return list(dict.fromkeys(str(merged.rows[row]) for row, _ in self.cells))

    def checks(self, merged: Merged) -> list[str]:
        """The ids of its checks."""
        return list(dict.fromkeys(merged.checks[check] for _, check in self.cells))

    def in_words(self, code: str = "{}") -> str:
        """Which outcome is where, with columns counted from one and set in ``code``: ``skip in 1; pass in 2, 3``."""
        where: dict[str, list[str]] = {}
        for column, outcome in self.outcomes:
            where.setdefault(outcome.value if outcome else "not run", []).append(code.format(column + 1))
        return "; ".join(f"{name} in {', '.join(columns)}" for name, columns in where.items())


def find(merged: Merged) -> list[Differing]:
    """The disagreements of environments that are whole, in the order of the rows; those of one reason are one."""
    whole = [n for n, column in enumerate(merged.columns) if not column.problem]
    found: dict[tuple[tuple[str, ...], str], list[tuple[int, int]]] = {}
    for row, columns in enumerate(merged.cells):
        if len({columns[n] for n in whole}) < 2:
            continue
        for check, marks in enumerate(zip(*(columns[n] for n in whole), strict=True)):
            if len(set(marks)) < 2:
                continue
            odd = [n for n, mark in zip(whole, marks, strict=True) if OUTCOMES.get(mark) is not Outcome.PASS]
            told = [merged.findings.get((row, check, n)) for n in odd]
            why = "; ".join(dict.fromkeys(one.first for one in told if one and one.first))
            found.setdefault((marks, why), []).append((row, check))
    return [
        Differing(tuple(zip(whole, map(OUTCOMES.get, marks), strict=True)), why, tuple(cells))
        for (marks, why), cells in found.items()
    ]
