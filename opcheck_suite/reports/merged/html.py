"""The matrix as one page that needs no network: filters, and what a cell tells when it is chosen."""

from __future__ import annotations

import pathlib
import shlex
from typing import Any

from opcheck_suite import registry
from opcheck_suite.model import Outcome, worst
from opcheck_suite.reports import levels
from opcheck_suite.reports.merged import OUTCOMES, Column, Merged

#: Messages are cut so that all of them together stay below this number of characters.
MOST = 2_500_000
_SHORTEST = 200

_CLASSES = {
    Outcome.PASS: "g",
    Outcome.XFAIL: "o",
    Outcome.WARN: "o",
    Outcome.SKIP: "i",
    Outcome.NOT_EXERCISED: "i",
}


def render(merged: Merged) -> str:
    """The page. Whatever reports hold is text in it: jinja2 escapes it, and the script sets it as ``textContent``."""
    import jinja2

    template = pathlib.Path(__file__).with_name("page.html.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    fixes = {c.id: c.fix for c in registry.all_checks()}
    checks = [{"id": id, "family": id.partition(".")[0], "fix": fixes.get(id, "")} for id in merged.checks]
    return environment.from_string(template).render(
        verdict=merged.verdict(),
        levels=levels.LEVELS,
        environments=[_environment(merged, n) for n in range(len(merged.columns))],
        families=list(dict.fromkeys(c["family"] for c in checks)),
        legend=[(mark, outcome.replace("_", " ")) for mark, outcome in OUTCOMES.items()],
        checks=checks,
        rows=[_row(merged, n) for n in range(len(merged.rows))],
        data=_data(merged, checks),
    )


def _environment(merged: Merged, n: int) -> dict[str, Any]:
    states = merged.levels[n]
    return {
        "name": merged.columns[n].name,
        "ops": len(states),
        "levels": list(levels.counts(states).values()),
        "bad": sum(merged.is_bad(o, n) * count for o, count in merged.counts(n).items()),
        "problem": merged.columns[n].problem,
    }


def _row(merged: Merged, row: int) -> dict[str, Any]:
    cells = []
    for check in range(len(merged.checks)):
        marks = [merged.cells[row][c][check] for c in range(len(merged.columns))]
        there = [(OUTCOMES[mark], c) for c, mark in enumerate(marks) if mark in OUTCOMES]
        if not there:
            cells.append(("", ""))
            continue
        bad = any(merged.is_bad(outcome, c) for outcome, c in there)
        shown = marks[0] if len(set(marks)) == 1 else "".join(marks).replace(" ", "\N{NO-BREAK SPACE}")
        cells.append(("b" if bad else _CLASSES.get(worst(o for o, _ in there), "o"), shown))
    return {"name": str(merged.rows[row]), "cells": cells, "bad": any(cell[0] == "b" for cell in cells)}


def _data(merged: Merged, checks: list[dict[str, str]]) -> dict[str, Any]:
    """What the script needs: cells as in the JSON form, texts, and the parts of the line that runs a cell again."""
    texts: dict[str, int] = {}
    findings: dict[str, list[list[int]]] = {}
    for (row, check, column), found in merged.findings.items():
        places = [texts.setdefault(text, len(texts)) for text in (found.sample, found.message)]
        findings.setdefault(f"{row}:{check}", []).append([column, *places])
    return {
        "checks": checks,
        "rows": [str(row) for row in merged.rows],
        "quoted": [shlex.quote(row.op) for row in merged.rows],
        "columns": [_column(c) for c in merged.columns],
        "cells": merged.cells,
        "outcomes": {mark: outcome.replace("_", " ") for mark, outcome in OUTCOMES.items()},
        "findings": findings,
        "texts": _cut(list(texts)),
    }


def _column(column: Column) -> dict[str, str]:
    device = column.environment.get("device", "cpu").partition(" ")[0]
    rest = ["--device", device] if device != "cpu" else []
    rest += ["--seed", str(column.seed)] if column.seed else []
    rerun = shlex.join(["opcheck", "run", column.source])
    return {"name": column.name, "rerun": rerun, "rest": "".join(f" {shlex.quote(word)}" for word in rest)}


def _cut(texts: list[str]) -> list[str]:
    """Texts of at most `MOST` characters together, the longest cut first."""
    longest = max(map(len, texts), default=0)
    while longest > _SHORTEST and sum(min(len(text), longest) for text in texts) > MOST:
        longest = max(_SHORTEST, longest // 2)
    return [text if len(text) <= longest else f"{text[:longest]}... (cut; the JSON form has all)" for text in texts]
