"""Known failures: a file that says which checks fail, why, and until when. Strict: what it says must be so.

[[known]]
op = "my_ops::muladd"       # globs
check = "autograd.*"
device = "cuda"             # optional, as are dtype, sample, variant, torch, python, raises, url and expires
torch = "<2.15"
category = "torch-bug"      # or op-bug, unsupported, harness-limit
reason = "double backward of the fused kernel is not implemented"
expires = 2027-06-30
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import fnmatch
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from opcheck_suite.model import FOUND, Outcome, Report, Result, Unit
from opcheck_suite.registry import UsageError, did_you_mean, one_of

CATEGORIES = ("op-bug", "unsupported", "harness-limit", "torch-bug")

_GLOB = re.compile(r"[*?\[]")


@dataclasses.dataclass(frozen=True)
class Entry:
    """One known failure. Patterns are globs; an empty one is any."""

    op: str
    check: str
    category: str
    reason: str
    device: str = ""
    dtype: str = ""
    sample: str = ""
    variant: str = ""
    torch: str = ""
    python: str = ""
    raises: str = ""
    url: str = ""
    expires: datetime.date | None = None
    number: int = 0
    """Its place in the file, counted from 1."""

    def __str__(self) -> str:
        return f"known failure {self.number} ({self.op} {self.check})"

    @property
    def exact(self) -> bool:
        """Whether it names one op and one check, and so must be true wherever it applies."""
        return not _GLOB.search(self.op + self.check)

    def of_unit(self, unit: Unit) -> bool:
        """Whether it is about a unit."""
        pairs = ((self.op, unit.op), (self.check, unit.check), (self.device, unit.device), (self.dtype, unit.dtype))
        return all(not pattern or fnmatch.fnmatchcase(value, pattern) for pattern, value in pairs)

    def of_sample(self, result: Result) -> bool:
        """Whether it is about the sample of a result of its unit."""
        return not self.sample or fnmatch.fnmatchcase(result.sample, self.sample)

    def excuses(self, result: Result) -> bool:
        """Whether a failed result fails in the way that is known."""
        if self.variant and not any(fnmatch.fnmatchcase(v, self.variant) for v in _variants(result)):
            return False
        return not self.raises or re.search(self.raises, result.message) is not None

    def applies(self, environment: Mapping[str, str]) -> bool:
        """Whether it is about this torch and this Python."""
        pairs = ((self.torch, environment["torch"]), (self.python, environment["python"]))
        return all(not text or _contains(text, version) for text, version in pairs)

    def expired(self, today: datetime.date) -> bool:
        """Whether its time is up: it holds to the end of its last day."""
        return self.expires is not None and today > self.expires


def _contains(specifier: str, version: str) -> bool:
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    return SpecifierSet(specifier).contains(Version(version).public, prereleases=True)


def _variants(result: Result) -> list[str]:
    """What a message says of its input beyond the sample: ``input   small, size 1(x dim 0)``."""
    lines = [line.split(None, 1)[1] for line in result.message.splitlines() if line.startswith("input ")]
    return [line.removeprefix(f"{result.sample}, ") for line in lines]


def load(path: str) -> tuple[Entry, ...]:
    """The entries of a file. Raises UsageError, naming the entry and the nearest word, for what is none."""
    import tomllib

    try:
        data = tomllib.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path!r} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"{path!r} is not TOML: {error}") from error
    for key in data:
        one_of(f"key of {path}", key, ["known"])
    tables = data.get("known", [])
    if not isinstance(tables, list):
        raise UsageError(f"{path!r}: entries begin with [[known]]")
    return tuple(_entry(f"{path}, entry {n}", n, table) for n, table in enumerate(tables, 1))


def _entry(where: str, number: int, table: Mapping[str, Any]) -> Entry:
    fields = [f.name for f in dataclasses.fields(Entry) if f.name != "number"]
    for key, value in table.items():
        one_of(f"key of {where}:", key, fields)
        wanted = datetime.date if key == "expires" else str
        if not isinstance(value, wanted) or isinstance(value, datetime.datetime):
            raise UsageError(f"{where}: {key} must be {'a date' if key == 'expires' else 'text'}, found {value!r}")
    for key in ("op", "check", "category", "reason"):
        if not str(table.get(key, "")).strip():
            raise UsageError(f"{where}: {key} is missing")
    one_of(f"category of {where}:", table["category"], CATEGORIES)
    entry = Entry(**table, number=number)
    try:
        re.compile(entry.raises)
    except re.error as error:
        raise UsageError(f"{where}: raises is no regular expression: {error}") from error
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    for text in (entry.torch, entry.python):
        try:
            SpecifierSet(text)
        except InvalidSpecifier as error:
            raise UsageError(f"{where}: {text!r} is no specifier of versions, such as '<2.15'") from error
    return entry


def excuse(
    results: Sequence[Result], entries: Sequence[Entry], environment: Mapping[str, str], today: datetime.date
) -> list[Result]:
    """Results with those that are known to fail as ``xfail``, and those that should fail and do not as ``xpass``."""
    current = [e for e in entries if e.applies(environment)]
    by_unit: dict[Unit, list[int]] = collections.defaultdict(list)
    for n, result in enumerate(results):
        by_unit[result.unit].append(n)
    changed = list(results)
    for unit, positions in by_unit.items():
        for entry in (e for e in current if e.of_unit(unit)):
            _excuse(changed, [n for n in positions if entry.of_sample(results[n])], entry, today)
    return changed


def _excuse(results: list[Result], positions: list[int], entry: Entry, today: datetime.date) -> None:
    """Apply one entry to the results of one unit, in place."""
    failed = [n for n in positions if results[n].outcome in FOUND]
    for n in failed:
        if not entry.excuses(results[n]):
            note = f"{results[n].message}\nknown   {entry.reason}; but that is said to fail in another way: {entry}"
            results[n] = dataclasses.replace(results[n], message=note)
        elif entry.expired(today):
            note = f"{results[n].message}\nknown   {entry.reason}; but {entry} expired on {entry.expires}"
            results[n] = dataclasses.replace(results[n], message=note)
        else:
            told = f"{entry.category}: {entry.reason}" + (f" ({entry.url})" if entry.url else "")
            results[n] = dataclasses.replace(results[n], outcome=Outcome.XFAIL, message=f"{told}\n{results[n].message}")
    excused = any(results[n].outcome is Outcome.XFAIL for n in positions)
    if failed or excused or not entry.exact:
        return
    text = f"known to fail ({entry.reason}), but passes: remove {entry}, or say on which device or sample it fails"
    for n in positions:
        if results[n].outcome is Outcome.PASS:
            results[n] = dataclasses.replace(results[n], outcome=Outcome.XPASS, message=text)


def stale(report: Report, entries: Sequence[Entry], *, ops: Sequence[str], checks: Sequence[str]) -> list[Result]:
    """A bad result for every entry that is about nothing, with the nearest name.

    ``ops`` are those of the specs, also those that the run left out; ``report`` has been through `excuse`. Entries for
    ops of other libraries are left alone. Whether a glob is still needed is known only where nothing was left out.
    """
    found = []
    spaces = {op.partition("::")[0] for op in ops}
    whole = not any(report.options.get(key) for key in ("ops", "checks", "sample", "shard")) and not report.stopped
    for entry in entries:
        if not _GLOB.search(entry.op.partition("::")[0]) and entry.op.partition("::")[0] not in spaces:
            continue
        told = ""
        if not any(fnmatch.fnmatchcase(op, entry.op) for op in ops):
            told = f"no op is called {entry.op!r}{did_you_mean(entry.op, ops)}"
        elif not any(fnmatch.fnmatchcase(check, entry.check) for check in checks):
            told = f"no check is called {entry.check!r}{did_you_mean(entry.check, checks)}"
        elif whole and entry.applies(report.environment):
            told = _unneeded(report, entry)
        if told:
            device = report.results[0].device if report.results else ""
            text = f"{entry} matches nothing: {told}"
            found.append(Result(entry.op, entry.check, device, "", Outcome.ERROR, text))
    return found


def _unneeded(report: Report, entry: Entry) -> str:
    """Why an entry that matches ops and checks is about nothing all the same, or an empty string."""
    of_unit = [r for r in report.results if entry.of_unit(r.unit)]
    ran = [r for r in of_unit if r.outcome not in (Outcome.SKIP, Outcome.NOT_EXERCISED)]
    rows = [r for r in ran if entry.of_sample(r)]
    if ran and not rows:
        return f"no sample is called {entry.sample!r}{did_you_mean(entry.sample, (r.sample for r in ran))}"
    if rows and not entry.exact and {r.outcome for r in rows} == {Outcome.PASS}:
        return "all that it matches passes"
    return ""


def apply(
    report: Report, entries: Sequence[Entry], *, ops: Sequence[str], checks: Sequence[str], today: datetime.date
) -> Report:
    """A report with known failures taken into account."""
    results = excuse(report.results, entries, report.environment, today)
    judged = dataclasses.replace(report, results=tuple(results))
    added = stale(judged, entries, ops=ops, checks=checks)
    return dataclasses.replace(judged, results=(*results, *added))
