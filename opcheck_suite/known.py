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
import difflib
import fnmatch
import functools
import pathlib
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from opcheck_suite.model import FOUND, Outcome, Report, Result, Unit
from opcheck_suite.registry import UsageError, did_you_mean, one_of

CATEGORIES = ("op-bug", "unsupported", "harness-limit", "torch-bug")

FILE = "opcheck-known.toml"
"""What the file is called where nothing else is said."""

#: A namespace that is so similar to one of the run's is taken for a slip of the pen.
_NEAR = 0.8

_GLOB = re.compile(r"[*?\[]")

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True, kw_only=True)
class KnownFailure:
    """One known failure, of a file or of a spec. Patterns are globs; an empty one is any.

    In ``OpSpec.expected_failures`` the op and the check are given by the place, and only ``reason`` is required.
    Raises UsageError for a category, regular expression, date or specifier that is none.
    """

    reason: str
    op: str = ""
    check: str = ""
    category: str = ""
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
    """Its place in the file, counted from 1; 0 is in a spec."""

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str) or not self.reason.strip():
            raise UsageError("reason is missing")
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name == "expires":
                if value is not None and (not isinstance(value, datetime.date) or isinstance(value, datetime.datetime)):
                    raise UsageError(f"expires must be a date, found {value!r}")
            elif field.name != "number" and not isinstance(value, str):
                raise UsageError(f"{field.name} must be text, found {value!r}")
        if self.category:
            one_of("category", self.category, CATEGORIES)
        try:
            re.compile(self.raises)
        except re.error as error:
            raise UsageError(f"raises is no regular expression: {error}") from error
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        for text in (self.torch, self.python):
            try:
                SpecifierSet(text)
            except InvalidSpecifier as error:
                raise UsageError(f"{text!r} is no specifier of versions, such as '<2.15'") from error

    def __str__(self) -> str:
        return f"known failure {self.number} ({self.op} {self.check})" if self.number else "it from expected_failures"

    @property
    def told(self) -> str:
        """The reason with the category and the address, as far as they are given."""
        prefix = f"{self.category}: " if self.category else ""
        return f"{prefix}{self.reason}" + (f" ({self.url})" if self.url else "")

    @property
    def exact(self) -> bool:
        """Whether it names one op and one check, and so must be true wherever it applies."""
        return not _GLOB.search(self.op + self.check)

    @property
    def names_a_sample(self) -> bool:
        """Whether it is about one sample, so that a run of that one can tell whether it is so."""
        return bool(self.sample) and not _GLOB.search(self.sample)

    def of_op(self, op: str) -> bool:
        """Whether it is about an op."""
        return not self.op or fnmatch.fnmatchcase(op, self.op)

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


def load(path: str) -> tuple[KnownFailure, ...]:
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


def _entry(where: str, number: int, table: Mapping[str, Any]) -> KnownFailure:
    fields = [f.name for f in dataclasses.fields(KnownFailure) if f.name != "number"]
    for key in table:
        one_of(f"key of {where}:", key, fields)
    for key in ("op", "check", "category", "reason"):
        if not str(table.get(key, "")).strip():
            raise UsageError(f"{where}: {key} is missing")
    try:
        return KnownFailure(**table, number=number)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error


@dataclasses.dataclass(frozen=True)
class Scope:
    """What a run could tell of entries: what there is, and what was looked at."""

    ops: Sequence[str]
    """Those of the specs, also those that the run left out, and others that are registered."""
    checks: Sequence[str]
    planned: Sequence[Unit] = ()
    """The units of the run, of which a session may have deselected some."""
    devices: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    """Op -> the device types that its spec claims, or that it has kernels for."""
    narrow: Mapping[Unit, str] = dataclasses.field(default_factory=dict)
    """Units of which the run looked at some inputs only -> why."""

    @functools.cached_property
    def by_op(self) -> Mapping[str, Sequence[Unit]]:
        """Op -> its planned units."""
        found: dict[str, list[Unit]] = {}
        for unit in self.planned:
            found.setdefault(unit.op, []).append(unit)
        return found


def excuse(
    results: Sequence[Result],
    entries: Sequence[KnownFailure],
    environment: Mapping[str, str],
    today: datetime.date,
    *,
    sampled: bool = False,
    narrow: Container[Unit] = (),
) -> list[Result]:
    """Results with those that are known to fail as ``xfail``, and those that should fail and do not as ``xpass``.

    ``sampled`` says that only some samples were run, ``narrow`` of which units only some inputs were: what fails on
    others may pass on these.
    """
    current = [e for e in entries if e.applies(environment)]
    by_unit: dict[Unit, list[int]] = collections.defaultdict(list)
    for n, result in enumerate(results):
        by_unit[result.unit].append(n)
    changed = list(results)
    of_op = {op: [e for e in current if e.of_op(op)] for op in {unit.op for unit in by_unit}}
    for unit, positions in by_unit.items():
        for entry in (e for e in of_op[unit.op] if e.of_unit(unit)):
            strict = entry.exact and (entry.names_a_sample or not sampled) and unit not in narrow
            _excuse(changed, [n for n in positions if entry.of_sample(results[n])], entry, today, strict)
    return changed


def _excuse(
    results: list[Result], positions: list[int], entry: KnownFailure, today: datetime.date, strict: bool
) -> None:
    """Apply one entry to the results of one unit, in place."""
    failed = [n for n in positions if results[n].outcome in FOUND]
    name = str(entry) if entry.number else "the spec's expected_failures"
    for n in failed:
        told = f"{entry.told}\n{results[n].message}"
        if not entry.excuses(results[n]):
            note = f"{results[n].message}\nknown   {entry.reason}; but that is said to fail in another way: {name}"
            results[n] = dataclasses.replace(results[n], message=note)
        elif entry.expired(today):
            note = f"{results[n].message}\nknown   {entry.reason}; but {name} expired on {entry.expires}"
            results[n] = dataclasses.replace(results[n], message=note)
        else:
            results[n] = dataclasses.replace(results[n], outcome=Outcome.XFAIL, message=told)
    excused = any(results[n].outcome is Outcome.XFAIL for n in positions)
    if failed or excused or not strict:
        return
    text = f"expected to fail ({entry.reason}), but passes: remove it from expected_failures"
    if entry.number:
        text = f"known to fail ({entry.reason}), but passes: remove {entry}, or say on which device or sample it fails"
    for n in positions:
        if results[n].outcome is Outcome.PASS:
            results[n] = dataclasses.replace(results[n], outcome=Outcome.XPASS, message=text)


def stale(
    report: Report,
    entries: Sequence[KnownFailure],
    scope: Scope,
) -> dict[KnownFailure, str]:
    """The entries that are about nothing -> why, with the nearest name.

    ``report`` has been through `excuse`. An entry for a namespace of which nothing is registered belongs to another run
    that shares the file, unless it is spelled nearly like one of this run's. Whether a glob is still needed is known
    only where nothing that it is about was left out.
    """
    found = {}
    ops = scope.ops
    spaces = {op.partition("::")[0] for op in ops}
    own = sorted({op.partition("::")[0] for op in report.ops} or spaces)
    for entry in entries:
        space = entry.op.partition("::")[0]
        told = ""
        if not any(fnmatch.fnmatchcase(check, entry.check) for check in scope.checks):
            told = f"no check is called {entry.check!r}{did_you_mean(entry.check, scope.checks)}"
        elif not _GLOB.search(space) and space not in spaces:
            if near := difflib.get_close_matches(space, own, n=1, cutoff=_NEAR):
                told = f"no op is in a namespace {space!r}; did you mean {near[0]!r}?"
        elif not any(fnmatch.fnmatchcase(op, entry.op) for op in ops):
            told = f"no op is called {entry.op!r}{did_you_mean(entry.op, ops)}"
        elif entry.applies(report.environment) and not unjudged(report, entry, scope):
            told = _unneeded(report, entry)
        if told:
            found[entry] = told
    return found


def unjudged(report: Report, entry: KnownFailure, scope: Scope) -> str:
    """Why a run cannot tell whether an entry is still needed, in a few words; an empty string where it can.

    It can where all that the entry is about was run, on every device that is claimed, and on all inputs. Ops of other
    namespaces than the run's are not asked for, since a glob may match what belongs to torch.
    """
    if report.stopped:
        return "the run did not end"
    if report.options.get("sample") and not entry.names_a_sample:
        return "only some samples were run"
    rows = about(report, entry)
    ran = {r.unit for r in rows}
    if left := [u for u in _of_op(entry, scope.by_op) if entry.of_unit(u) and u not in ran]:
        return f"{_some(map(str, left))} was not run"
    spaces = {op.partition("::")[0] for op in report.ops}
    ops = {op for op in scope.ops if op.partition("::")[0] in spaces and fnmatch.fnmatchcase(op, entry.op)}
    checks = {check for check in scope.checks if not entry.check or fnmatch.fnmatchcase(check, entry.check)}
    pairs = (
        ("", ops, {u.op for u in ran}),
        ("", checks, {u.check for u in ran}),
        ("device ", _claimed(entry, ops, scope), {u.device.partition(":")[0] for u in ran}),
    )
    for kind, wanted, found in pairs:
        if ran and (missing := sorted(wanted - found)):
            return f"{kind}{_some(missing)} was not part of the run"
    if narrow := next((scope.narrow[u] for u in sorted(ran) if u in scope.narrow), ""):
        return narrow
    for r in rows:
        if r.outcome in (Outcome.NOT_EXERCISED, Outcome.ERROR) and entry.of_sample(r):
            return f"{r.unit} was not exercised"
    return ""


def about(report: Report, entry: KnownFailure) -> list[Result]:
    """The results of the units that an entry is about. Most entries name an op, so most results need no look."""
    return [r for r in _of_op(entry, report.by_op) if entry.of_unit(r.unit)]


def _of_op(entry: KnownFailure, by_op: Mapping[str, Sequence[_T]]) -> Iterator[_T]:
    for op, found in by_op.items():
        if entry.of_op(op):
            yield from found


def _claimed(entry: KnownFailure, ops: Iterable[str], scope: Scope) -> set[str]:
    """The devices that ops claim and an entry is about."""
    claimed = {device for op in ops for device in scope.devices.get(op, ())}
    return {d for d in claimed if not entry.device or fnmatch.fnmatchcase(d, entry.device)}


def _some(names: Iterable[str], *, most: int = 3) -> str:
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def misspelt_space(entry: KnownFailure, ops: Sequence[str]) -> bool:
    """Whether an entry's namespace is no op's, so that the entry may be another run's."""
    space = entry.op.partition("::")[0]
    return not _GLOB.search(space) and space not in {op.partition("::")[0] for op in ops}


def _unneeded(report: Report, entry: KnownFailure) -> str:
    """Why an entry that matches ops and checks is about nothing all the same, or an empty string."""
    ran = [r for r in about(report, entry) if r.outcome not in (Outcome.SKIP, Outcome.NOT_EXERCISED)]
    rows = [r for r in ran if entry.of_sample(r)]
    if ran and not rows:
        return f"no sample is called {entry.sample!r}{did_you_mean(entry.sample, (r.sample for r in ran))}"
    if rows and not entry.exact and {r.outcome for r in rows} == {Outcome.PASS}:
        return "all that it matches passes"
    return ""


def complete(
    report: Report,
    entries: Sequence[KnownFailure],
    scope: Scope,
) -> Report:
    """A report that has been through `excuse`, with a bad result for every entry that is about nothing."""
    device = report.results[0].device if report.results else ""
    found = stale(report, entries, scope)
    rows = (
        Result(e.op, e.check, device, "", Outcome.ERROR, f"{e} matches nothing: {told}") for e, told in found.items()
    )
    return dataclasses.replace(report, results=(*report.results, *rows))


def apply(
    report: Report,
    entries: Sequence[KnownFailure],
    scope: Scope,
    *,
    today: datetime.date,
) -> Report:
    """A report with known failures taken into account."""
    return complete(excused(report, entries, scope, today=today), entries, scope)


def excused(report: Report, entries: Sequence[KnownFailure], scope: Scope, *, today: datetime.date) -> Report:
    """A report whose results have been through `excuse`."""
    sampled = bool(report.options.get("sample"))
    found = excuse(report.results, entries, report.environment, today, sampled=sampled, narrow=scope.narrow)
    return dataclasses.replace(report, results=tuple(found))


def today() -> datetime.date:
    """The day by which entries expire, the same in every time zone."""
    return datetime.datetime.now(datetime.UTC).date()


def find(given: str | None, start: pathlib.Path) -> str:
    """The file of known failures: ``given``; or else, at the folder of the nearest pyproject.toml at or above
    ``start``, what ``known`` of its ``[tool.opcheck]`` names, or ``opcheck-known.toml``. Empty where there is none.

    An empty ``given`` is no file. Raises UsageError where a file that pyproject.toml names is not there.
    """
    import tomllib

    if given is not None:
        return given
    for folder in (start, *start.parents):
        project = folder / "pyproject.toml"
        if project.is_file():
            try:
                tool = tomllib.loads(project.read_text(encoding="utf-8")).get("tool", {})
            except (OSError, ValueError) as error:
                raise UsageError(f"{str(project)!r} is not TOML: {error}") from error
            table = tool.get("opcheck", {}) if isinstance(tool, dict) else {}
            for key in table if isinstance(table, dict) else ():
                one_of(f"key of [tool.opcheck] in {project}:", key, ["known"])
            if "known" in table:
                named = table["known"]
                if not isinstance(named, str):
                    raise UsageError(f"{str(project)!r}: known of [tool.opcheck] must be a path, found {named!r}")
                if not (folder / named).is_file():
                    raise UsageError(f"{str(project)!r}: [tool.opcheck] names {named!r}, which is not there")
                return str(folder / named)
        if (folder / FILE).is_file():
            return str(folder / FILE)
        if project.is_file():
            return ""
    return ""
