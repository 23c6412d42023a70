"""Merge reports: environments become columns, and jobs of one environment (shards) become one."""

from __future__ import annotations

import collections
import fnmatch
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence

from opcheck_suite.model import Outcome, Report, Result, worst
from opcheck_suite.registry import UsageError, did_you_mean
from opcheck_suite.reports import matrix
from opcheck_suite.reports.merged import ABSENT, Column, Finding, Job, Merged, Row
from opcheck_suite.reports.text import MARKS

#: What tells environments apart, and how a column's name shows it.
_PARTS = {"torch": "torch {}", "device": "{}", "python": "Python {}", "platform": "{}", "opcheck_suite": "suite {}"}
_ALWAYS = ("torch", "device")

_Key = tuple[str, ...]
_Unit = tuple[str, str, str]
"""Op, dtype and check."""


def merge(
    reports: Iterable[tuple[str, Report]],
    *,
    expect: Sequence[str] = (),
    allow_conflicts: bool = False,
    allow_mixed: bool = False,
) -> Merged:
    """The matrix of reports, given with the names of their files.

    ``expect`` are globs for names of files (without ending) or of columns: one that none matches becomes a column that
    says so. A check of an op may be in several reports of one environment if they agree.

    Raises UsageError where they do not, unless ``allow_conflicts`` takes the worst, and where reports are of different
    commits or versions of the op library, unless ``allow_mixed``.
    """
    gathered = _Gathered(allow_conflicts=allow_conflicts, allow_mixed=allow_mixed)
    for name, report in reports:
        gathered.add(name, report)
    return gathered.merged(expect)


class _Gathered:
    """What has been read so far; reports themselves are not kept."""

    def __init__(self, *, allow_conflicts: bool, allow_mixed: bool) -> None:
        self._allow_conflicts, self._allow_mixed = allow_conflicts, allow_mixed
        self._states: dict[str, tuple[str, str]] = {}
        self._environments: dict[_Key, dict[str, str]] = {}
        self._jobs: dict[_Key, list[tuple[Job, Report]]] = collections.defaultdict(list)
        self._units: dict[_Key, dict[_Unit, tuple[str, Outcome, Finding | None]]] = collections.defaultdict(dict)
        self._samples: dict[_Key, dict[_Unit, tuple[tuple[str, str], ...]]] = collections.defaultdict(dict)
        self._rows: dict[tuple[str, str], None] = {}
        self._texts: dict[str, str] = {}
        self._signatures: dict[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]] = {}

    def add(self, name: str, report: Report) -> None:
        self._require_same_library(name, report)
        by_device: dict[str, dict[_Unit, list[Result]]] = collections.defaultdict(lambda: collections.defaultdict(list))
        for result in report.results:
            by_device[result.device][result.op, result.dtype, result.check].append(result)
        self._rows.update(dict.fromkeys((r.op, r.dtype) for r in report.results))
        options = report.options
        job = Job(name, report.seconds, report.stopped, str(options.get("shard", "")))
        kept = Report((), report.environment, report.options)
        for device in by_device or {"": {}}:
            environment = _of_device(report.environment, device)
            # a job that left nothing but its name is a column of its own
            key = tuple(environment.get(part, "") for part in _PARTS) if environment else (name,)
            self._environments.setdefault(key, environment)
            self._jobs[key].append((job, kept))
            for unit, results in by_device[device].items() if by_device else ():
                self._add_unit(name, key, unit, results)

    def _add_unit(self, name: str, key: _Key, unit: _Unit, results: list[Result]) -> None:
        outcome = worst(r.outcome for r in results) if len(results) > 1 else results[0].outcome
        told = next((r for r in results if r.outcome is outcome), None)
        found = None
        if told is not None and told.message:
            texts = self._texts
            found = Finding(texts.setdefault(told.sample, told.sample), texts.setdefault(told.message, told.message))
        signature = tuple(sorted((r.sample, r.outcome.value) for r in results))
        signature = self._signatures.setdefault(signature, signature)
        earlier = self._units[key].get(unit)
        if earlier is not None and self._samples[key][unit] != signature:
            if not self._allow_conflicts:
                op, dtype, check = unit
                raise UsageError(
                    f"{earlier[0]} and {name} disagree on {Row(op, dtype)} {check}, {earlier[1]} and {outcome}, in "
                    "the same environment; --allow-conflicts counts the worse"
                )
            if worst([earlier[1], outcome]) is earlier[1]:
                return
        elif earlier is not None:
            return
        self._units[key][unit] = (name, outcome, found)
        self._samples[key][unit] = signature

    def _require_same_library(self, name: str, report: Report) -> None:
        for what, text in _library(report).items():
            other, known = self._states.setdefault(what, (name, text))
            if known != text and not self._allow_mixed:
                raise UsageError(
                    f"{other} is of {what} {known}, {name} of {text}: these are two states of the op library; "
                    "--allow-mixed merges them all the same"
                )

    def merged(self, expect: Sequence[str]) -> Merged:
        """The matrix of all that was added."""
        names = _names(self._environments)
        columns = [self._column(key, names[key]) for key in self._environments]
        stems = [pathlib.PurePath(job.report).stem for c in columns for job in c.jobs]
        for wanted in dict.fromkeys(expect):
            known = [*stems, *(c.name for c in columns)]
            if not any(fnmatch.fnmatchcase(k, wanted) for k in known):
                columns.append(Column(wanted, {}, problem=f"there is no such report{did_you_mean(wanted, known)}"))
        keys = list(self._environments)
        checks = matrix.ordered({check for units in self._units.values() for _, _, check in units})
        place = {check: n for n, check in enumerate(checks)}
        rows = list(self._rows)
        at = {row: n for n, row in enumerate(rows)}
        marks = [[[ABSENT] * len(checks) for _ in columns] for _ in rows]
        findings: dict[tuple[int, int, int], Finding] = {}
        for c, key in enumerate(keys):
            for (op, dtype, check), (_, outcome, found) in self._units[key].items():
                r, k = at[op, dtype], place[check]
                marks[r][c][k] = MARKS[outcome]
                if found is not None:
                    findings[r, k, c] = found
        cells = tuple(tuple("".join(marks_of) for marks_of in row) for row in marks)
        return Merged(tuple(columns), tuple(checks), tuple(Row(*row) for row in rows), cells, findings)

    def _column(self, key: _Key, name: str) -> Column:
        jobs = self._jobs[key]
        options = jobs[0][1].options
        problems = [f"{job.report} is incomplete: {job.stopped}" for job, _ in jobs if job.stopped]
        problems += _missing_shards([job.shard for job, _ in jobs])
        seed = options.get("seed", 0)
        return Column(
            name=name,
            environment=self._environments[key],
            source=str(options.get("source", "")),
            seed=seed if isinstance(seed, int) else 0,
            strict=any(bool(report.options.get("strict")) for _, report in jobs),
            jobs=tuple(job for job, _ in jobs),
            problem="; ".join(problems),
        )


def _library(report: Report) -> dict[str, str]:
    """What tells states of the op library apart. A build's suffix (``+cu126``) is no other state."""
    told = {}
    if commit := report.environment.get("commit"):
        told["commit"] = commit
    elif library := report.environment.get("library"):
        told["version"] = re.sub(r"\+[\w.]+", "", library)
    return told


def _of_device(environment: Mapping[str, str], device: str) -> dict[str, str]:
    """The environment with one device only, and the name of its hardware."""
    if not device:
        return dict(environment)
    named = re.search(rf"(?:^|, ){re.escape(device)} (\([^)]*\))", environment.get("device", ""))
    return {**environment, "device": f"{device} {named[1]}" if named else device}


def _names(environments: dict[_Key, dict[str, str]]) -> dict[_Key, str]:
    """A name for each column, of what tells it from the others."""
    told = [e for e in environments.values() if e]
    shown = [p for p in _PARTS if p in _ALWAYS or len({e.get(p) for e in told}) > 1]
    return {
        key: ", ".join(_PARTS[p].format(e[p]) for p in shown if e.get(p)) if e else pathlib.PurePath(key[0]).stem
        for key, e in environments.items()
    }


def _missing_shards(shards: list[str]) -> list[str]:
    """What is missing among ``i/n``. A job without is a whole run."""
    if not all(re.fullmatch(r"\d{1,4}/\d{1,4}", s) for s in shards):
        return []
    counts = {int(s.partition("/")[2]) for s in shards}
    if len(counts) > 1:
        return [f"shards of {' and of '.join(map(str, sorted(counts)))} do not go together"]
    (count,) = counts
    missing = [f"{i}/{count}" for i in range(1, count + 1) if f"{i}/{count}" not in shards]
    return [f"there is no report of shard {', '.join(missing)}"] if missing else []
