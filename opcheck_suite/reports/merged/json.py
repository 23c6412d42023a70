"""The matrix in JSON. ``matrix.schema.json``, beside the schema of reports, describes it."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from opcheck_suite.registry import UsageError
from opcheck_suite.reports import levels
from opcheck_suite.reports.json import load
from opcheck_suite.reports.merged import ABSENT, OUTCOMES, Column, Finding, Job, Merged, Row
from opcheck_suite.reports.merged.diff import Difference


def render(merged: Merged) -> str:
    """The matrix as JSON. A cell is one character of a string for each check; findings point into the list of texts."""
    texts: dict[str, int] = {}
    findings = [
        [*at, texts.setdefault(f.sample, len(texts)), texts.setdefault(f.message, len(texts))]
        for at, f in merged.findings.items()
    ]
    states = merged.levels
    data = {
        "schema_version": Merged.SCHEMA_VERSION,
        "kind": "matrix",
        "marks": {mark: outcome.value for mark, outcome in OUTCOMES.items()},
        "columns": [dataclasses.asdict(c) for c in merged.columns],
        "checks": merged.checks,
        "rows": [
            {"op": row.op, "dtype": row.dtype, "cells": cells}
            for row, cells in zip(merged.rows, merged.cells, strict=True)
        ],
        "findings": findings,
        "texts": list(texts),
        "levels": {op: [s.get(op) for s in states] for op in dict.fromkeys(row.op for row in merged.rows)},
        "totals": {
            "outcomes": {o.value: n for o, n in sorted(merged.counts().items())},
            "levels": [levels.counts(s) for s in states],
            "bad": len(merged.bad),
            "problems": list(merged.problems),
        },
        "complete": not merged.problems,
    }
    return json.dumps(data, separators=(",", ":")) + "\n"


def parse(text: str) -> Merged:
    """A matrix from JSON. Raises UsageError, saying why, for what is not one of this version."""
    data = load(text, "matrix", Merged.SCHEMA_VERSION)
    try:
        merged = Merged(
            columns=tuple(_column(c) for c in data["columns"]),
            checks=tuple(map(_text, data["checks"])),
            rows=tuple(Row(_text(r["op"]), _text(r["dtype"])) for r in data["rows"]),
            cells=tuple(tuple(map(_text, r["cells"])) for r in data["rows"]),
            findings=_findings(data["findings"], [_text(t) for t in data["texts"]]),
        )
        _require_whole(merged)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise UsageError(f"not a matrix: {type(error).__name__}: {error}") from error
    return merged


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _column(data: dict[str, Any]) -> Column:
    return Column(
        name=_text(data["name"]),
        environment={_text(k): _text(v) for k, v in data["environment"].items()},
        source=_text(data["source"]),
        seed=int(data["seed"]),
        strict=data["strict"] is True,
        jobs=tuple(_job(j) for j in data["jobs"]),
        problem=_text(data["problem"]),
    )


def _job(data: dict[str, Any]) -> Job:
    return Job(_text(data["report"]), float(data["seconds"]), _text(data["stopped"]), _text(data["shard"]))


def _findings(data: list[list[int]], texts: list[str]) -> dict[tuple[int, int, int], Finding]:
    if any(n < 0 for found in data for n in found):
        raise ValueError("a position is negative")
    return {(r, k, c): Finding(texts[sample], texts[message]) for r, k, c, sample, message in data}


def _require_whole(merged: Merged) -> None:
    known = {ABSENT, *OUTCOMES}
    for row in merged.cells:
        if len(row) != len(merged.columns) or any(len(c) != len(merged.checks) or set(c) - known for c in row):
            raise ValueError("cells do not fit the columns and checks")
    for r, k, c in merged.findings:
        merged.cells[r][c][k]


def render_difference(found: Difference) -> str:
    """What changed, as JSON."""
    data = {
        "schema_version": Merged.SCHEMA_VERSION,
        "kind": "diff",
        "pairs": found.pairs,
        "changes": [
            {
                "kind": c.kind.value,
                "op": c.row.op,
                "dtype": c.row.dtype,
                "check": c.check,
                "column": c.column,
                "before": c.before,
                "after": c.after,
                "message": c.finding.message if c.finding else "",
                "sample": c.finding.sample if c.finding else "",
            }
            for c in found.changes
        ],
        "unmatched": found.unmatched,
        "problems": found.problems,
        "ok": found.ok,
    }
    return json.dumps(data, indent=1) + "\n"
