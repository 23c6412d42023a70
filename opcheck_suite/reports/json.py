"""The canonical form of a report. Reading it back gives an equal report.

``report.schema.json`` beside this file is its JSON Schema; `parse` checks the same by hand, since a general validator
takes seconds for a report of some ten thousand results.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

from opcheck_suite.model import Outcome, Report, Result
from opcheck_suite.registry import UsageError
from opcheck_suite.reports import levels, matrix

#: Key -> type of its value in JSON.
_PARTS: dict[str, type | tuple[type, ...]] = {
    "environment": dict,
    "options": dict,
    "ops": dict,
    "results": list,
    "seconds": (int, float),
}
_COLUMNS: dict[str, type | tuple[type, ...]] = {
    "op": str,
    "check": str,
    "device": str,
    "sample": str,
    "outcome": str,
    "message": str,
    "seconds": (int, float),
    "dtype": str,
    "cases": int,
    "detail": str,
}


def render(report: Report) -> str:
    """The report as JSON. ``complete`` is the last key, and true only for a run that came to its end."""
    counted = matrix.summarise(report)
    states = levels.of_ops((r.op, r.check, r.outcome) for r in report.results)
    data: dict[str, Any] = {
        "schema_version": Report.SCHEMA_VERSION,
        "kind": "report",
        "environment": dict(report.environment),
        "options": dict(report.options),
        "ops": dict(report.ops),
        "results": [_row(r) for r in report.results],
        "seconds": round(report.seconds, 3),
        "levels": states,
        "totals": {
            "ops": {
                "in_run": counted.registered,
                "with_samples": counted.with_samples,
                "tested": counted.tested,
                "conformant": counted.conformant,
                "untested": list(counted.untested),
            },
            "levels": levels.counts(states),
            "outcomes": {o.value: n for o, n in sorted(report.counts().items())},
            "bad": len(report.bad),
        },
        "stopped": report.stopped,
        "complete": not report.stopped,
    }
    return json.dumps(data, indent=1) + "\n"


def _row(result: Result) -> dict[str, Any]:
    row = {name: getattr(result, name) for name in _COLUMNS}
    return row | {"outcome": result.outcome.value, "seconds": round(result.seconds, 6)}


def load(text: str, kind: str, version: int) -> dict[str, Any]:
    """A JSON document of ours. Raises UsageError, saying why, for one of another kind or version."""
    try:
        data = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"not a {kind}: it is not JSON ({error})") from error
    if not isinstance(data, dict) or "schema_version" not in data:
        raise UsageError(f"not a {kind}: it has no schema_version")
    if (found := data.get("kind", "report")) != kind:
        raise UsageError(f"not a {kind}: it is of kind {found!r}")
    if data["schema_version"] != version or type(data["schema_version"]) is not int:
        raise UsageError(f"the {kind} has schema version {data['schema_version']!r}, this program reads {version}")
    return data


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number in JSON")


def _finite(word: str) -> float:
    if math.isfinite(number := float(word)):
        return number
    raise ValueError(f"{word} is too large")


def parse(text: str, *, incomplete: bool = False) -> Report:
    """A report from JSON. Raises UsageError, saying why, for what is not a report of this version.

    One of a run that did not end is refused, too, unless ``incomplete`` is allowed: `Report.stopped` then says why.
    """
    data = load(text, "report", Report.SCHEMA_VERSION)
    complete = data.get("complete") is True
    if not complete and not incomplete:
        why = f": {data['stopped']}" if data.get("stopped") else ""
        raise UsageError(f"the report is incomplete: the run that wrote it did not end{why}")
    for key, kind in _PARTS.items():
        if key not in data or not isinstance(data[key], kind):
            raise UsageError(f"not a report: {key} is {'missing' if key not in data else 'of a wrong type'}")
    for key in ("environment", "ops"):
        _require_texts(key, data[key])
    return Report(
        results=tuple(_result(n, row) for n, row in enumerate(data["results"])),
        environment=data["environment"],
        options=data["options"],
        ops=data["ops"],
        seconds=data["seconds"],
        stopped="" if complete else str(data.get("stopped") or "the run that wrote it did not end"),
    )


def _require_texts(key: str, value: Mapping[str, Any]) -> None:
    if wrong := next((name for name, text in value.items() if not isinstance(text, str)), None):
        raise UsageError(f"not a report: {key}: {wrong!r} is not text")


_ORDER = tuple(_COLUMNS)
_OUTCOMES = {outcome.value: outcome for outcome in Outcome}
#: Types of the values of a row as `render` writes it.
_USUAL = {tuple({"seconds": number, "cases": int}.get(name, str) for name in _ORDER) for number in (int, float)}


def _result(n: int, row: Any) -> Result:
    # what `render` writes is known at a glance, ten thousand times
    if type(row) is dict and tuple(row) == _ORDER and tuple(map(type, row.values())) in _USUAL:
        outcome = _OUTCOMES.get(row["outcome"])
        if outcome is not None:
            row["outcome"] = outcome
            return Result(**row)
    if not isinstance(row, dict) or row.keys() != _COLUMNS.keys():
        odd = sorted(row.keys() ^ _COLUMNS.keys()) if isinstance(row, dict) else [type(row).__name__]
        raise UsageError(f"not a report: result {n} lacks, or should not have, {', '.join(map(str, odd))}")
    for name, kind in _COLUMNS.items():
        if not isinstance(row[name], kind) or isinstance(row[name], bool):
            raise UsageError(f"not a report: {name} of result {n} is of a wrong type")
    try:
        return Result(**{**row, "outcome": Outcome(row["outcome"])})
    except ValueError as error:
        raise UsageError(f"not a report: result {n}: {error}") from error


assert {f.name for f in dataclasses.fields(Result)} == set(_COLUMNS)
