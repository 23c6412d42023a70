"""One run as a page: the matrix of merged reports, with the environments of one report."""

from __future__ import annotations

import dataclasses

from opcheck_suite.model import Report
from opcheck_suite.reports.merged import html, merge


def render(report: Report) -> str:
    """The page. A shard is not called incomplete for the others that it is one of."""
    shard = str(report.options.get("shard") or "")
    whole = dataclasses.replace(report, options={k: v for k, v in report.options.items() if k != "shard"})
    return html.render(merge.merge([("this run", whole)]), note=f"only shard {shard}" if shard else "")
