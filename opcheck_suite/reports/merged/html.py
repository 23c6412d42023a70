"""The matrix as one page that needs no network: filters, and what a cell tells when it is chosen.

``page.html.j2`` is its structure, ``page.css`` and ``page.js`` are put into it. Only that script may run: the page's
content security policy names it by its digest.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import pathlib
import shlex
from collections.abc import Sequence
from typing import Any

from opcheck_suite import registry
from opcheck_suite.model import Outcome, worst
from opcheck_suite.reports import levels
from opcheck_suite.reports.merged import OUTCOMES, Column, Merged

#: Messages are cut so that all of them together stay below this number of bytes in the page.
MOST = 2_200_000

#: Bad is "b"; what is none of these is odd, "o".
_KINDS = {Outcome.PASS: "g", Outcome.SKIP: "i", Outcome.NOT_EXERCISED: "i"}

#: Of a name of an op, so many characters fit beside the matrix.
_WIDEST = 48


def render(merged: Merged, *, note: str = "") -> str:
    """The page; ``note`` says what the matrix does not. Whatever reports hold is text in it: jinja2 escapes it, and the
    script sets it as ``textContent``.
    """
    import jinja2
    import markupsafe

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    script = "\n" + _part("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    fixes = {c.id: c.fix for c in registry.all_checks()}
    families = [id.partition(".")[0] for id in merged.checks]
    checks = [
        {"id": id, "family": family, "first": n == 0 or families[n - 1] != family, "fix": fixes.get(id, "")}
        for n, (id, family) in enumerate(zip(merged.checks, families, strict=True))
    ]
    return environment.from_string(_part("page.html.j2")).render(
        verdict=merged.verdict(),
        about="; ".join(filter(None, (_about(merged), note))),
        levels=levels.LEVELS,
        environments=[_environment(merged, n) for n in range(len(merged.columns))],
        families=list(dict.fromkeys(families)),
        legend=_legend(merged),
        checks=checks,
        widths=_widths(merged),
        rows=[
            {"name": str(row), "marks": marks} for row, marks in zip(merged.rows, _plain(merged, families), strict=True)
        ],
        data=_data(merged, [{"id": c["id"], "fix": c["fix"]} for c in checks]),
        style=markupsafe.Markup(_part("page.css")),  # noqa: S704 - a file of ours
        script=markupsafe.Markup(script),  # noqa: S704 - a file of ours
        digest=f"sha256-{digest}",
    )


def _part(name: str) -> str:
    return pathlib.Path(__file__).with_name(name).read_text(encoding="utf-8")


def _about(merged: Merged) -> str:
    """A line on what was checked."""
    counted = [(len({row.op for row in merged.rows}), "op"), (len(merged.checks), "check")]
    counted += [(len(merged.columns), "environment")]
    parts = [", ".join(f"{n} {what}{'' if n == 1 else 's'}" for n, what in counted)]
    parts += dict.fromkeys(c.source for c in merged.columns if c.source)
    libraries = [" ".join(filter(None, (c.environment.get("library"), _commit(c)))) for c in merged.columns]
    return "; ".join([*parts, *dict.fromkeys(filter(None, libraries))])


def _commit(column: Column) -> str:
    commit = column.environment.get("commit", "")
    return f"commit {commit[:12]}{'-dirty' if commit.endswith('-dirty') else ''}" if commit else ""


def _environment(merged: Merged, n: int) -> dict[str, Any]:
    states = merged.levels[n]
    return {
        "name": merged.columns[n].name,
        "ops": len(states),
        "levels": list(levels.counts(states).values()),
        "bad": sum(merged.is_bad(o, n) * count for o, count in merged.counts(n).items()),
        "problem": merged.columns[n].problem,
    }


def _legend(merged: Merged) -> list[tuple[str, str, str, int]]:
    """What there is: character, outcome, kind and number of cells."""
    counts, kinds = merged.counts(), _signs(merged)
    return [(mark, o.replace("_", " "), kinds[mark], counts[o]) for mark, o in OUTCOMES.items() if counts[o]]


def _signs(merged: Merged) -> dict[str, str]:
    """Character -> the kind of its outcome by itself. An outcome that is bad in some column only counts as bad."""
    bad = {o for o in OUTCOMES.values() for c in range(len(merged.columns)) if merged.is_bad(o, c)}
    return {mark: "b" if outcome in bad else _KINDS.get(outcome, "o") for mark, outcome in OUTCOMES.items()}


def _kinds(merged: Merged) -> list[str]:
    """For each row the kinds of its cells: that of the most serious outcome, a blank where nothing was run."""

    @functools.cache
    def kind(marks: tuple[str, ...]) -> str:
        there = [(OUTCOMES[mark], c) for c, mark in enumerate(marks) if mark in OUTCOMES]
        if any(merged.is_bad(outcome, c) for outcome, c in there):
            return "b"
        return _KINDS.get(worst(o for o, _ in there), "o") if there else " "

    return ["".join(map(kind, zip(*row, strict=True))) for row in merged.cells]


def _plain(merged: Merged, families: Sequence[str]) -> list[str]:
    """Rows where no script runs: the character of the most serious outcome for each check, family by family."""
    signs = {outcome: mark for mark, outcome in OUTCOMES.items()}

    @functools.cache
    def sign(marks: tuple[str, ...]) -> str:
        there = [OUTCOMES[mark] for mark in marks if mark in OUTCOMES]
        return signs[worst(there)] if there else "\N{NO-BREAK SPACE}"

    gaps = [" " if n and families[n - 1] != family else "" for n, family in enumerate(families)]
    return [
        "".join(gap + sign(marks) for gap, marks in zip(gaps, zip(*row, strict=True), strict=True))
        for row in merged.cells
    ]


def _widths(merged: Merged) -> list[float]:
    """The width of each column of the table in characters, so that a browser need not look at every cell for it."""
    widest = max((len(str(row)) for row in merged.rows), default=2)
    found = [min(widest, _WIDEST) + 2.0]
    for check in range(len(merged.checks)):
        agree = all(len({cell[check] for cell in row}) < 2 for row in merged.cells)
        found.append(2.2 if agree else max(2.2, len(merged.columns) + 0.6))
    return found


def _data(merged: Merged, checks: list[dict[str, Any]]) -> dict[str, Any]:
    """What the script needs: cells as in the JSON form, texts, and the parts of the line that runs a cell again."""
    texts: dict[str, int] = {}
    findings: dict[str, list[list[int]]] = {}
    for (row, check, column), found in merged.findings.items():
        places = [texts.setdefault(text, len(texts)) for text in (found.sample, found.message)]
        findings.setdefault(f"{row}:{check}", []).append([column, *places])
    kept, cut = _cut(list(texts))
    return {
        "checks": checks,
        "rows": [str(row) for row in merged.rows],
        "quoted": [shlex.quote(row.op) for row in merged.rows],
        "columns": [_column(c) for c in merged.columns],
        "cells": merged.cells,
        "kinds": _kinds(merged),
        "outcomes": {mark: outcome.replace("_", " ") for mark, outcome in OUTCOMES.items()},
        "signs": _signs(merged),
        "findings": findings,
        "texts": kept,
        "cut": cut,
    }


def _column(column: Column) -> dict[str, str]:
    device = column.environment.get("device", "cpu").partition(" ")[0]
    rest = ["--device", device] if device != "cpu" else []
    rest += ["--seed", str(column.seed)] if column.seed else []
    rerun = shlex.join(["opcheck", "run", column.source])
    return {"name": column.name, "rerun": rerun, "rest": "".join(f" {shlex.quote(word)}" for word in rest)}


def _cut(texts: list[str]) -> tuple[list[str], list[int]]:
    """Texts of at most `MOST` bytes together, the longest cut first, and the numbers of those that were cut."""

    @functools.cache
    def size(text: str) -> int:
        """Bytes in the page: as JSON in ASCII, with what HTML might take for markup escaped."""
        return len(json.dumps(text)) + 5 * sum(map(text.count, "<>&'"))

    longest = max(map(len, texts), default=0)
    while longest and sum(size(text[:longest]) for text in texts) > MOST:
        longest = longest * 3 // 4
    return [text[:longest] for text in texts], [n for n, text in enumerate(texts) if len(text) > longest]
