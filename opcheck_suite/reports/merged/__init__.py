"""Several reports as one matrix: ops and checks down and across, an environment for each column of every cell.

Cells are held as strings, one character a check, since a matrix of 300 ops, 60 checks and 6 environments has a hundred
thousand of them.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Mapping

from opcheck_suite.model import Outcome
from opcheck_suite.reports.levels import State, of_ops
from opcheck_suite.reports.text import MARKS

#: Character of a cell -> outcome. A blank is a check that was not part of the run.
OUTCOMES = {mark: outcome for outcome, mark in MARKS.items()}
ABSENT = " "


@dataclasses.dataclass(frozen=True)
class Job:
    """One report that went into a column."""

    report: str
    """The name of its file."""
    seconds: float = 0.0
    stopped: str = ""
    shard: str = ""


@dataclasses.dataclass(frozen=True)
class Column:
    """One environment: a torch version, a Python, a platform and a device."""

    name: str
    environment: Mapping[str, str]
    source: str = ""
    seed: int = 0
    strict: bool = False
    jobs: tuple[Job, ...] = ()
    problem: str = ""
    """Why the column does not hold all that it should: a job that is missing or did not end. Empty where it does."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """What a cell that is no plain pass has to tell: of the most serious of its results."""

    sample: str
    message: str

    @property
    def first(self) -> str:
        """The message's first line."""
        return self.message.partition("\n")[0]


@dataclasses.dataclass(frozen=True)
class Row:
    """An operator, with the dtype where its spec names some."""

    op: str
    dtype: str = ""

    def __str__(self) -> str:
        return f"{self.op} [{self.dtype}]" if self.dtype else self.op


@dataclasses.dataclass(frozen=True)
class Cell:
    """One cell, as `Merged.bad` lists it; row, check and column are positions."""

    row: int
    check: int
    column: int
    outcome: Outcome


@dataclasses.dataclass(frozen=True)
class Merged:
    """The matrix. ``cells[row][column]`` has a character for each check."""

    SCHEMA_VERSION = 1

    columns: tuple[Column, ...]
    checks: tuple[str, ...]
    rows: tuple[Row, ...]
    cells: tuple[tuple[str, ...], ...]
    findings: Mapping[tuple[int, int, int], Finding]
    """(row, check, column) -> what the cell has to tell."""

    def outcome(self, row: int, check: int, column: int) -> Outcome | None:
        """The outcome of a cell, or None where the check was no part of the run."""
        return OUTCOMES.get(self.cells[row][column][check])

    def is_bad(self, outcome: Outcome, column: int) -> bool:
        """Whether an outcome makes the matrix fail, given how strict the column's runs were."""
        return outcome.strict_bad if self.columns[column].strict else outcome.bad

    @functools.cached_property
    def bad(self) -> tuple[Cell, ...]:
        """The cells that make the matrix fail."""
        found = []
        for c in range(len(self.columns)):
            marks = {mark for mark, outcome in OUTCOMES.items() if self.is_bad(outcome, c)}
            for r, row in enumerate(self.cells):
                if not marks.isdisjoint(row[c]):
                    found += [Cell(r, k, c, OUTCOMES[mark]) for k, mark in enumerate(row[c]) if mark in marks]
        return tuple(sorted(found, key=lambda cell: (cell.row, cell.check, cell.column)))

    @property
    def problems(self) -> tuple[str, ...]:
        """What is missing or incomplete, a line for each column that it is true of."""
        return tuple(f"{c.name}: {c.problem}" for c in self.columns if c.problem)

    @property
    def ok(self) -> bool:
        """Whether there are results, all that should be there are, and none is bad."""
        return bool(self.rows) and not self.problems and not self.bad

    def counts(self, column: int | None = None) -> Counter[Outcome]:
        """How many cells there are by outcome, in one column or all."""
        chosen = range(len(self.columns)) if column is None else (column,)
        marks = Counter("".join(row[c] for row in self.cells for c in chosen))
        return Counter({OUTCOMES[mark]: n for mark, n in marks.items() if mark != ABSENT})

    @functools.cached_property
    def levels(self) -> tuple[dict[str, dict[str, State]], ...]:
        """For each column: op -> its conformance levels, over all its dtypes. Without results it is left out."""
        return tuple(self._levels(column) for column in range(len(self.columns)))

    def _levels(self, column: int) -> dict[str, dict[str, State]]:
        return of_ops(
            (row.op, check, OUTCOMES[mark])
            for row, cells in zip(self.rows, self.cells, strict=True)
            for check, mark in zip(self.checks, cells[column], strict=True)
            if mark != ABSENT
        )

    def verdict(self) -> str:
        """What the matrix comes to, in a few words."""
        parts = [f"{len(self.problems)} missing or incomplete"] if self.problems else []
        parts += [f"{n} bad"] if (n := len(self.bad)) else []
        return ", ".join(parts) or ("clean" if self.rows else "nothing was run")
