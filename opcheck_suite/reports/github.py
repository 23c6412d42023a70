"""Annotations of GitHub Actions: a line for each finding, which GitHub shows beside a pull request.

Source: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

import pathlib

from opcheck_suite.model import Outcome, Report, Result
from opcheck_suite.reports import text


def render(report: Report) -> str:
    """An error for each bad op and check, a warning for each other warning, and a notice with the verdict.

    GitHub shows ten annotations of a kind for a step; all are in its log.
    """
    source = str(report.options.get("source", ""))
    file = source if source.endswith(".py") and not pathlib.PurePath(source).is_absolute() else ""
    bad = set(report.bad)
    lines, told = [], set()
    for result in report.results:
        level = "error" if result in bad else "warning" if result.outcome is Outcome.WARN else ""
        key = (result.op, result.check, result.device, result.dtype, result.outcome)
        if level and key not in told:
            told.add(key)
            lines.append(_line(level, result, report, file))
    lines.sort(key=lambda line: line.startswith("::warning"))
    level = "notice" if report.ok else "error"
    return "\n".join([*lines, f"::{level} title=opcheck::{_data(text.verdict(report))}"]) + "\n"


def _line(level: str, result: Result, report: Report, file: str) -> str:
    properties = {"file": file, "title": f"{result.op} {result.check} {result.outcome}"}
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items() if value)
    return f"::{level} {listed}::{_data(text.block(result, report))}"


def _data(told: str) -> str:
    return told.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(told: str) -> str:
    return _data(told).replace(":", "%3A").replace(",", "%2C")
