"""The matrix, and what changed in it, as a person reads them in a terminal.

Names and messages may come from files of others: what could steer a terminal is taken out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import tabulate

from opcheck_suite.model import Outcome
from opcheck_suite.reports import levels
from opcheck_suite.reports.merged import Cell, Merged, differing
from opcheck_suite.reports.merged.diff import Change, Difference, Kind

#: So many findings are shown one by one; JSON and HTML have them all.
MOST = 50

#: One character a level, in the order of `levels.LEVELS`.
STATES = {
    levels.State.YES: "+",
    levels.State.NO: "x",
    levels.State.UNKNOWN: "?",
    levels.State.NOT_APPLICABLE: "-",
}


def render(merged: Merged) -> str:
    """Environments, ops with their levels in each, what is bad, where they differ, and the verdict."""
    told = f"verdict  {printable(merged.verdict())}"
    parts = [environments(merged), ops(merged), findings(merged), differences(merged), told]
    return "\n\n".join(part for part in parts if part)


#: What GitHub's runners take for a command to them, after any blanks at the beginning of a line.
_COMMAND = re.compile(r"^(\s*)(?=::|##\[)", re.M)


def printable(text: str) -> str:
    """Text without characters that steer a terminal, and without commands to a CI system. Newlines stay."""
    return _COMMAND.sub(r"\1| ", "".join(c if c.isprintable() or c == "\n" else "?" for c in text))


def _name(text: str) -> str:
    """A name in one line."""
    return printable(" ".join(text.splitlines()))


def environments(merged: Merged) -> str:
    """A line for each environment: how many ops have which level, how much is bad, and whether it is whole."""
    rows = []
    for n, column in enumerate(merged.columns):
        states = merged.levels[n]
        bad = sum(merged.is_bad(o, n) * count for o, count in merged.counts(n).items())
        rows.append(
            [
                _name(column.name),
                len(states),
                *levels.counts(states).values(),
                bad,
                _name(column.problem) or "complete",
            ]
        )
    headers = ["environment", "ops", *(level.name for level in levels.LEVELS), "bad", ""]
    return tabulate.tabulate(rows, headers=headers, tablefmt="simple", disable_numparse=True)


def ops(merged: Merged) -> str:
    """A line for each op: its levels and the number of bad cells, in each environment."""
    if not merged.rows:
        return ""
    numbered = [f"[{n}] {_name(c.name)}" for n, c in enumerate(merged.columns, 1)]
    rows = [[_name(op), *cells] for op, cells in op_cells(merged)]
    headers = ["op", *(f"[{n}]" for n in range(1, len(numbered) + 1))]
    grid = tabulate.tabulate(rows, headers=headers, tablefmt="simple", disable_numparse=True)
    names = " ".join(level.name for level in levels.LEVELS)
    legend = "  ".join(f"{mark} {state}" for state, mark in STATES.items())
    return "\n".join([grid, "", *numbered, f"the characters are, in order: {names}; {legend}; then what is bad"])


def op_cells(merged: Merged) -> Iterator[tuple[str, list[str]]]:
    """Each op, and for each environment its levels as characters with the number of bad cells."""
    bad: dict[tuple[str, int], int] = {}
    for cell in merged.bad:
        key = merged.rows[cell.row].op, cell.column
        bad[key] = bad.get(key, 0) + 1
    for op in dict.fromkeys(row.op for row in merged.rows):
        cells = []
        for n, of in enumerate(merged.levels):
            marks = "".join(STATES[s] for s in of[op].values()) if op in of else ""
            cells.append(f"{marks} {bad[op, n]}" if (op, n) in bad else marks)
        yield op, cells


def grouped(merged: Merged) -> dict[tuple[int, int, Outcome, str], list[Cell]]:
    """Bad cells by row, check, outcome and the first line of what they tell: one finding in several environments."""
    found: dict[tuple[int, int, Outcome, str], list[Cell]] = {}
    for cell in merged.bad:
        told = merged.findings.get((cell.row, cell.check, cell.column))
        found.setdefault((cell.row, cell.check, cell.outcome, told.first if told else ""), []).append(cell)
    return found


def findings(merged: Merged) -> str:
    """A block for each finding, with the environments that it is true of."""
    blocks = []
    found = grouped(merged)
    for (row, check, outcome, first), cells in list(found.items())[:MOST]:
        where = "all" if len(cells) == len(merged.columns) else ", ".join(f"[{c.column + 1}]" for c in cells)
        head = _name(f"{merged.checks[check]}  {merged.rows[row]}  {outcome.upper()}  in {where}")
        blocks.append(f"{head}\n{printable(f'  {first}')}")
    if len(found) > MOST:
        blocks.append(f"and {len(found) - MOST} more: the HTML and JSON forms have all")
    return "\n\n".join(blocks)


def differences(merged: Merged) -> str:
    """A block for each way in which environments disagree, with what their reports say of it."""
    found = differing.find(merged)
    blocks = []
    for one in found[:MOST]:
        head = f"{some(one.ops(merged), 'ops')}: {some(one.checks(merged), 'checks')}"
        why = [printable(f"  {one.why}")] if one.why else []
        blocks.append("\n".join([_name(f"differs  {head}"), f"  {one.in_words('[{}]')}", *why]))
    if len(found) > MOST:
        blocks.append(f"and {len(found) - MOST} more: the JSON form has all")
    return "\n\n".join(blocks)


def render_difference(found: Difference) -> str:
    """What changed, kind by kind, and the verdict."""
    compared = [f"{old} -> {new}" if old != new else old for old, new in found.pairs]
    parts = ["compared " + ("; ".join(map(_name, compared)) or "nothing: no environments correspond")]
    parts += [f"no counterpart of {_name(name)}" for name in found.unmatched]
    for kind in Kind:
        if lines := [_name(line) for line in changed(kind, found.of(kind))]:
            parts.append("\n".join([f"{kind} ({len(found.of(kind))})", *(f"  {line}" for line in lines)]))
    parts += [f"incomplete  {_name(problem)}" for problem in found.problems]
    return "\n\n".join([*parts, f"verdict  {verdict(found)}"])


def verdict(found: Difference) -> str:
    """What the difference comes to, in a few words."""
    if not found.pairs:
        return "nothing was compared"
    parts = [f"{len(found.problems)} missing or incomplete"] if found.problems else []
    parts += [f"{n} newly bad"] if (n := len(found.of(Kind.NEWLY_BAD))) else []
    return ", ".join(parts) or ("nothing is newly bad" if found.changes else "no difference")


def changed(kind: Kind, changes: list[Change]) -> Iterator[str]:
    """A line for each change; for kinds that come in bulk, one for each op."""
    if kind in (Kind.NEW, Kind.GONE, Kind.NOT_EXERCISED):
        by_op: dict[tuple[str, str], list[Change]] = {}
        for c in changes:
            by_op.setdefault((str(c.row), c.column), []).append(c)
        for (row, column), of in by_op.items():
            yield f"{row}  {some([c.check for c in of], 'checks')}  in {column}"
        return
    for c in changes:
        told = f": {c.finding.first}" if c.finding else ""
        yield f"{c.row}  {c.check}  {c.before or 'not there'} -> {c.after}  in {c.column}{told}"


def some(names: list[str], kind: str, *, most: int = 4) -> str:
    """Names, or the first of them and how many there are more."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more {kind}" if len(names) > most else "")
