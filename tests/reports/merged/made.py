"""Reports of several environments by hand."""

from __future__ import annotations

import dataclasses

from opcheck_suite import Report
from opcheck_suite.reports.merged import Merged
from opcheck_suite.reports.merged.merge import merge
from tests.reports.sample import CLEAN, ENVIRONMENT, EVERY, row

EVIL = "<script>alert(1)</script>"


def report(*results, stopped: str = "", options: dict | None = None, **environment: str) -> Report:
    return Report(
        results=results,
        environment=ENVIRONMENT | environment,
        options={"source": "my_ops.specs", "seed": 0, "strict": False} | (options or {}),
        seconds=1.5,
        stopped=stopped,
    )


def one(outcome: str = "pass", message: str = "", *, check: str = "values.runs", op: str = "my::op", **more):
    return row(op, check, outcome, message, **more)


def of(*reports: Report, **options) -> Merged:
    """The matrix of reports from files ``0.json``, ``1.json``..."""
    return merge([(f"jobs/{n}.json", r) for n, r in enumerate(reports)], **options)


def everything() -> Merged:
    """Every kind of column, and names and messages that nobody should trust."""
    hostile = report(
        one("fail", f"{EVIL} | `x` \x1b[31m\nsecond line", op=f"my::{EVIL}", sample=EVIL),
        torch="2.14.1",
    )
    begun = Report(results=(), environment={}, options={}, stopped="the run has begun, and not ended")
    return of(EVERY, dataclasses.replace(CLEAN, environment=hostile.environment), hostile, begun, expect=["absent-*"])
