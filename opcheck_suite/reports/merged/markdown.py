"""The matrix, and what changed in it, for a step summary. GitHub shows at most 1 MiB of one."""

from __future__ import annotations

import tabulate

from opcheck_suite.reports import levels
from opcheck_suite.reports.merged import Merged, differing, text
from opcheck_suite.reports.merged.diff import Difference, Kind


def render(merged: Merged) -> str:
    """Verdict, environments, what is bad, where they differ, and ops with their levels in each environment."""
    parts = [f"# Conformance: {_plain(merged.verdict())}", _environments(merged)]
    if listed := _findings(merged):
        parts.append(f"## What is wrong\n\n{listed}")
    if listed := _differing(merged):
        parts.append(f"## Where environments differ\n\n{listed}")
    if merged.rows:
        parts.append(f"## Ops\n\n{_ops(merged)}")
    return "\n\n".join(parts) + "\n"


#: What is markup somewhere, and how it is written to be none.
_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {mark: f"&#{ord(mark)};" for mark in "\\`*_[]|#@"})


def _plain(told: str) -> str:
    """Text that is no markup, in one line, also within a table."""
    return " ".join(text.printable(told).translate(_ESCAPED).split())


def _code(told: str) -> str:
    """Text as code, which nothing in it can end, also within a table."""
    return "`" + " ".join(text.printable(told).replace("`", "'").replace("|", "¦").split()) + "`" if told else ""


def _environments(merged: Merged) -> str:
    rows = []
    for n, column in enumerate(merged.columns):
        states = merged.levels[n]
        bad = sum(merged.is_bad(o, n) * count for o, count in merged.counts(n).items())
        told = f"**{_plain(column.problem)}**" if column.problem else "complete"
        rows.append([n + 1, _plain(column.name), len(states), *levels.counts(states).values(), bad, told])
    headers = ["", "environment", "ops", *(level.name for level in levels.LEVELS), "bad", ""]
    return tabulate.tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True)


def _findings(merged: Merged) -> str:
    found = text.grouped(merged)
    rows = []
    for (row, check, outcome, first), cells in list(found.items())[: text.MOST]:
        where = "all" if len(cells) == len(merged.columns) else ", ".join(str(c.column + 1) for c in cells)
        rows.append([_code(str(merged.rows[row])), _code(merged.checks[check]), outcome.value, where, _plain(first)])
    if not rows:
        return ""
    table = tabulate.tabulate(
        rows, headers=["op", "check", "outcome", "in", "what"], tablefmt="github", disable_numparse=True
    )
    more = len(found) - text.MOST
    return f"{table}\n\nand {more} more: the HTML and JSON forms have all" if more > 0 else table


def _differing(merged: Merged) -> str:
    found = differing.find(merged)
    rows = [
        [
            text.some([_code(op) for op in one.ops(merged)], "ops"),
            text.some([_code(check) for check in one.checks(merged)], "checks"),
            one.in_words(),
            _plain(one.why),
        ]
        for one in found[: text.MOST]
    ]
    if not rows:
        return ""
    table = tabulate.tabulate(rows, headers=["op", "check", "outcome", "why"], tablefmt="github", disable_numparse=True)
    more = len(found) - text.MOST
    return f"{table}\n\nand {more} more: the JSON form has all" if more > 0 else table


def _ops(merged: Merged) -> str:
    rows = [[_code(op), *map(_code, cells)] for op, cells in text.op_cells(merged)]
    headers = ["op", *(str(n) for n in range(1, len(merged.columns) + 1))]
    names = " ".join(level.name for level in levels.LEVELS)
    legend = ", ".join(f"`{mark}` {state}" for state, mark in text.STATES.items())
    table = tabulate.tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True)
    return f"{table}\n\nThe characters are, in order: {names}. {legend}; then how much is bad."


def render_difference(found: Difference) -> str:
    """What changed, kind by kind."""
    compared = [f"{_plain(old)} → {_plain(new)}" if old != new else _plain(old) for old, new in found.pairs]
    parts = [f"# What changed: {_plain(text.verdict(found))}"]
    parts.append("\n".join(f"- compared {pair}" for pair in compared) or "No environments correspond.")
    parts += [f"- no counterpart of {_plain(name)}" for name in found.unmatched]
    parts += [f"- **incomplete:** {_plain(problem)}" for problem in found.problems]
    for kind in Kind:
        lines = [f"- {_plain(line)}" for line in text.changed(kind, found.of(kind))]
        if len(lines) > text.MOST * 2:
            lines = [*lines[: text.MOST * 2], f"- and {len(lines) - text.MOST * 2} more"]
        if lines:
            parts.append(f"## {kind.capitalize()} ({len(found.of(kind))})\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"
