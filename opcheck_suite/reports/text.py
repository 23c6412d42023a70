"""The report as a person reads it in a terminal."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

import tabulate

from opcheck_suite import registry
from opcheck_suite.model import ConformanceError, Outcome, Report, Result
from opcheck_suite.reports import matrix

#: One character a cell, so that a matrix of many checks fits a terminal.
MARKS = {
    Outcome.PASS: ".",
    Outcome.FAIL: "F",
    Outcome.WARN: "W",
    Outcome.XFAIL: "x",
    Outcome.XPASS: "X",
    Outcome.SKIP: "-",
    Outcome.NOT_EXERCISED: "?",
    Outcome.ERROR: "E",
    Outcome.CRASH: "C",
    Outcome.TIMEOUT: "T",
}


def render(report: Report) -> str:
    """Environment, matrix, what is wrong, and the summary."""
    told = figures(report) if report.options.get("verbose") else ""
    parts = [header(report), table(report), failures(report), notes(report), told, summary(report)]
    return "\n\n".join(part for part in parts if part)


def header(report: Report) -> str:
    """One line of what the results depend on."""
    env = report.environment
    line = f"opcheck_suite {env['opcheck_suite']}, torch {env['torch']}, Python {env['python']}, {env['device']}"
    if library := " ".join(filter(None, (env.get("library"), env.get("commit") and f"commit {_short(env['commit'])}"))):
        line += f"; of {library}"
    if "isolation" in env:
        line += f"\nisolation: {env['isolation']}"
    if report.options.get("known"):
        line += f"\nknown failures: {report.options['known']}"
    return line


def _short(commit: str) -> str:
    return commit[:12] + ("-dirty" if commit.endswith("-dirty") else "")


def table(report: Report) -> str:
    """Ops x checks: a column for each family, a character for each of its checks."""
    made = matrix.build(report)
    families = made.families
    if not families:
        return ""
    rows = []
    for row in made.rows:
        cells = [
            "".join(MARKS[made.cells[row, c]] if (row, c) in made.cells else " " for c in ids)
            for ids in families.values()
        ]
        rows.append([row, *cells])
    grid = tabulate.tabulate(rows, headers=["op", *families], tablefmt="simple", stralign="left", disable_numparse=True)
    used = set(made.cells.values())
    legend = "  ".join(f"{MARKS[o]} {o.value.replace('_', ' ')}" for o in MARKS if o in used)
    width = max(len(f) for f in families)
    orders = [f"  {family:<{width}}  {' '.join(c.partition('.')[2] for c in ids)}" for family, ids in families.items()]
    return "\n".join([grid, "", legend, "the characters of a family are, in order:", *orders])


def failures(report: Report) -> str:
    """A block for each bad result: what, where, how to fix it, how to run it again."""
    return "\n\n".join(blocks(report))


def blocks(report: Report) -> list[str]:
    """A block for each op and check with bad results; samples on which the same check fails share one."""
    grouped: dict[tuple[str, ...], list[Result]] = {}
    for r in report.bad:
        grouped.setdefault((r.op, r.check, r.device, r.dtype, r.outcome), []).append(r)
    return [block(first, report, others=others) for first, *others in grouped.values()]


def block(result: Result, report: Report, *, others: Iterable[Result] = ()) -> str:
    """One result with everything needed to act on it; ``others`` are those of the same unit on other samples."""
    where = f"{result.device}/{result.dtype}" if result.dtype else result.device
    sample = f"  sample '{result.sample}'" if result.sample else ""
    first, *rest = result.message.splitlines() or [""]
    lines = [f"{result.check}  {result.op}  {where}{sample}  {result.outcome.value.upper()}", f"  {first}"]
    lines += [f"  {line}" for line in rest]
    if names := [repr(r.sample) for r in others if r.sample]:
        lines.append(f"  likewise on sample {_some(names)}")
    try:
        check = registry.get(result.check)
    except registry.UsageError:  # a report of another version, or of a third-party check that is not installed
        check = None
    if check is not None and result.outcome not in (Outcome.ERROR, Outcome.XPASS):
        lines += textwrap.wrap(check.fix, 100, initial_indent="  fix     ", subsequent_indent=" " * 10)
    lines.append(f"  rerun   {rerun(result, report, one=not names)}")
    if check is not None:
        lines.append(f"  more    opcheck explain {result.check}")
    if result.detail:
        lines += ["", *(f"  | {line}".rstrip() for line in result.detail.strip().splitlines()[-14:])]
    return "\n".join(lines)


def rerun(result: Result, report: Report, *, one: bool = False) -> str:
    """The command that runs one unit again, or ``one`` sample of it where there are several."""
    source = str(report.options.get("source", ""))
    words = ["opcheck", "run", source, "--ops", result.op, "--checks", result.check]
    if result.device != "cpu":
        words += ["--device", result.device]
    if one and any(r.unit == result.unit and r.sample not in ("", result.sample) for r in report.results):
        words += ["--sample", result.sample]
    if report.options.get("seed"):
        words += ["--seed", str(report.options["seed"])]
    if report.options.get("large"):
        words.append("--large")
    return shlex.join(words)


def notes(report: Report) -> str:
    """Warnings and skips, each reason once with the ops that it is about."""
    lines = []
    strict = bool(report.options.get("strict"))
    kinds = [
        (Outcome.WARN, "warn"),
        (Outcome.XFAIL, "expected failure"),
        (Outcome.NOT_EXERCISED, "not exercised"),
        (Outcome.SKIP, "skip"),
    ]
    for outcome, title in kinds:
        if strict and outcome.strict_bad:
            continue
        grouped: dict[tuple[str, str], list[str]] = {}
        for r in report.results:
            if r.outcome is outcome:
                first = (r.message.splitlines() or [""])[0]
                grouped.setdefault((r.check, first), []).append(r.op)
        if outcome in (Outcome.SKIP, Outcome.NOT_EXERCISED):
            grouped = _by_reason(grouped)
        for (check, reason), names in grouped.items():
            lines.append(f"{title}  {check}: {reason}\n  {_some(dict.fromkeys(names))}")
    return "\n".join(lines)


def figures(report: Report) -> str:
    """What checks that passed have to tell, such as figures: a block for each."""
    blocks = []
    for r in report.results:
        if r.outcome is Outcome.PASS and r.message:
            sample = f"  sample '{r.sample}'" if r.sample else ""
            lines = [f"{r.check}  {r.op}{sample}", *(f"  {line}" for line in r.message.splitlines())]
            blocks.append("\n".join(lines))
    return "\n".join(blocks)


def _by_reason(grouped: dict[tuple[str, str], list[str]]) -> dict[tuple[str, str], list[str]]:
    """Merge reasons that several checks share, such as an op that this machine cannot have."""
    by_reason: dict[str, tuple[list[str], list[str]]] = {}
    for (check, reason), names in grouped.items():
        checks, all_names = by_reason.setdefault(reason, ([], []))
        checks.append(check)
        all_names += names
    return {(_some(checks), reason): names for reason, (checks, names) in by_reason.items()}


def _some(names: Iterable[str], *, most: int = 4) -> str:
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def summary(report: Report) -> str:
    """How many ops, how many results, and the verdict."""
    counted = matrix.summarise(report)
    counts = report.counts()
    listed = ", ".join(f"{counts[o]} {o.value.replace('_', ' ')}" for o in MARKS if counts[o])
    lines = [
        f"ops      {counted.registered} in the run; no kernel was run, {counted.clean} without a finding"
        if counted.static
        else f"ops      {counted.registered} in the run, {counted.with_samples} with samples, {counted.tested} tested, "
        f"{counted.conformant} conformant",
        f"results  {listed or 'none'} in {report.seconds:.1f} s",
    ]
    if counted.untested:
        lines.append(f"nothing exercised  {_some(counted.untested, most=12)}")
    lines.append(f"verdict  {verdict(report)}")
    return "\n".join(lines)


def verdict(report: Report) -> str:
    """What a run comes to, in a few words."""
    found = f"{len(report.bad)} bad" if report.bad else ("clean" if report.results else "nothing was run")
    return f"incomplete: {report.stopped}; {len(report.bad)} bad so far" if report.stopped else found


def conclude(report: Report, *, skip: Callable[[str], Any], xfail: Callable[[str], Any]) -> None:
    """End a test by the report of its unit, with pytest's own functions. Raises `ConformanceError` for bad results."""
    if report.bad:
        raise ConformanceError(failures(report))
    if reason := not_run(report.results):
        skip(reason)
    if reason := expected(report.results):
        xfail(reason)


def not_run(results: Iterable[Result]) -> str:
    """Why none of some results ran anything, or an empty string when one did."""
    results = list(results)
    idle = (Outcome.SKIP, Outcome.NOT_EXERCISED)
    if any(r.outcome not in idle for r in results):
        return ""
    return next((r.message.splitlines()[0] for r in results if r.message), "nothing was run")


def expected(results: Iterable[Result]) -> str:
    """The reason of an expected failure among results, or an empty string."""
    return next((r.message.splitlines()[0] for r in results if r.outcome is Outcome.XFAIL), "")
