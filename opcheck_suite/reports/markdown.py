"""The report for a pull request or a step summary."""

from __future__ import annotations

import tabulate

from opcheck_suite.model import Outcome, Report
from opcheck_suite.reports import matrix, text

_WORDS = {
    Outcome.FAIL: "fail",
    Outcome.WARN: "warn",
    Outcome.XFAIL: "xfail",
    Outcome.XPASS: "xpass",
    Outcome.NOT_EXERCISED: "not exercised",
    Outcome.ERROR: "error",
    Outcome.CRASH: "crash",
    Outcome.TIMEOUT: "timeout",
}


def render(report: Report) -> str:
    """Verdict, matrix ops x families, and a section for each bad result."""
    verdict = f"{len(report.bad)} bad results" if report.bad and not report.stopped else text.verdict(report)
    parts = [f"# Conformance: {verdict}", text.header(report), _counts(report), _table(report)]
    if report.bad:
        parts.append("## What is wrong")
        parts += [f"```text\n{_fenced(block)}\n```" for block in text.blocks(report)]
    if listed := text.notes(report):
        parts.append(f"## Notes\n\n```text\n{_fenced(listed)}\n```")
    return "\n\n".join(parts) + "\n"


def _fenced(block: str) -> str:
    """Text that cannot end the fence around it."""
    return block.replace("```", "'''")


def _counts(report: Report) -> str:
    return "\n".join(f"- {line}" for line in text.summary(report).splitlines()[:-1])


def _table(report: Report) -> str:
    """A cell says how many checks of the family passed, and names those that did not."""
    made = matrix.build(report)
    families = made.families
    rows = []
    for row in made.rows:
        cells = []
        for ids in families.values():
            outcomes = {c: made.cells[row, c] for c in ids if (row, c) in made.cells}
            cells.append(_cell(outcomes))
        rows.append([f"`{row}`", *cells])
    return tabulate.tabulate(rows, headers=["op", *families], tablefmt="github", stralign="left", disable_numparse=True)


def _cell(outcomes: dict[str, Outcome]) -> str:
    told = [f"**{c.partition('.')[2]}: {_WORDS[o]}**" for c, o in outcomes.items() if o in _WORDS]
    passed = sum(o is Outcome.PASS for o in outcomes.values())
    if told:
        return ", ".join(told)
    return f"{passed} ok" if passed else "-"
