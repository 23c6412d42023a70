"""The canonical form of a report. Reading it back gives an equal report."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from opcheck_suite.model import Outcome, Report, Result
from opcheck_suite.registry import UsageError
from opcheck_suite.reports import matrix


def render(report: Report) -> str:
    """The report as JSON. ``complete`` is the last key: a file without it is of a run that did not end."""
    counted = matrix.summarise(report)
    data: dict[str, Any] = {
        "schema_version": Report.SCHEMA_VERSION,
        "environment": dict(report.environment),
        "options": dict(report.options),
        "ops": dict(report.ops),
        "results": [
            dataclasses.asdict(r) | {"outcome": r.outcome.value, "seconds": round(r.seconds, 6)} for r in report.results
        ],
        "seconds": round(report.seconds, 3),
        "totals": {
            "ops": {
                "in_run": counted.registered,
                "with_samples": counted.with_samples,
                "tested": counted.tested,
                "conformant": counted.conformant,
                "untested": list(counted.untested),
            },
            "outcomes": {o.value: n for o, n in sorted(report.counts().items())},
            "bad": len(report.bad),
        },
        "complete": True,
    }
    return json.dumps(data, indent=1) + "\n"


def parse(text: str) -> Report:
    """A report from JSON. Raises UsageError, saying why, for what is not a complete report of this version."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise UsageError(f"not a report: it is not JSON ({error})") from error
    if not isinstance(data, dict) or "schema_version" not in data:
        raise UsageError("not a report: it has no schema_version")
    if data["schema_version"] != Report.SCHEMA_VERSION:
        raise UsageError(
            f"the report has schema version {data['schema_version']}, this program reads {Report.SCHEMA_VERSION}"
        )
    if data.get("complete") is not True:
        raise UsageError("the report is incomplete: the run that wrote it did not end")
    try:
        results = tuple(Result(**r | {"outcome": Outcome(r["outcome"])}) for r in data["results"])
        return Report(
            results=results,
            environment=data["environment"],
            options=data["options"],
            ops=data["ops"],
            seconds=data["seconds"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"not a report: {type(error).__name__}: {error}") from error
