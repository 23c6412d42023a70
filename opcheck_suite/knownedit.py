"""Change a file of known failures: comments, order and formatting stay as they are."""

from __future__ import annotations

import dataclasses
import datetime
import json
import pathlib
import stat
from collections.abc import Sequence

from opcheck_suite import known, reports
from opcheck_suite.known import KnownFailure, Scope
from opcheck_suite.model import FOUND, Outcome, Report, Unit
from opcheck_suite.registry import UsageError

#: What the reasons that no person wrote begin with.
REVIEW = "TODO review: "

#: Keys of an entry in the order in which they are written.
_KEYS = ("op", "check", "device", "dtype", "category", "reason")


@dataclasses.dataclass(frozen=True)
class Changes:
    """What a run says about a file."""

    added: tuple[KnownFailure, ...]
    removed: dict[KnownFailure, str]
    """Entries to remove -> why."""
    left: tuple[str, ...]
    """What a person must decide."""
    kept: dict[KnownFailure, str] = dataclasses.field(default_factory=dict)
    """Entries of which all that was run passes -> why they are not removed all the same."""

    def lines(self, path: str) -> list[str]:
        """The changes for people."""
        shown = [f"added    {e.op} {e.check} {e.device}: {e.reason}" for e in self.added]
        shown += [f"removed  {e}: {why}" for e, why in self.removed.items()]
        shown += [f"kept     {e}: all that was run passes, but {why}" for e, why in self.kept.items()]
        shown += [f"left     {text}" for text in self.left]
        counted = f"{len(self.added)} added, {len(self.removed)} removed" if self.added or self.removed else "unchanged"
        return [*shown, f"{path}: {counted}"]


def changes(
    report: Report,
    entries: Sequence[KnownFailure],
    scope: Scope,
    *,
    today: datetime.date,
) -> Changes:
    """What a file should say after a run. ``report`` has been through `known.excuse`, not through `known.complete`.

    No entry is removed that something outside of the run may need: see `known.unjudged`. A run that did not end removes
    nothing.
    """
    current = [e for e in entries if e.applies(report.environment)]
    new: dict[Unit, str] = {}
    left: dict[str, None] = {}
    for row in report.bad:
        about = [e for e in current if e.of_unit(row.unit) and e.of_sample(row)]
        if row.outcome is Outcome.ERROR:
            left[f"{row.unit}: an error is the harness's or the spec's, and no entry excuses it"] = None
        elif row.outcome not in FOUND:
            continue
        elif stuck := [e for e in about if e.expired(today) and e.excuses(row)]:
            left[f"{stuck[0]} expired on {stuck[0].expires}, and {row.unit} still fails"] = None
        elif about:
            left[f"{about[0]}: {row.unit} fails in another way than it says"] = None
        else:
            new.setdefault(row.unit, next(iter(row.message.splitlines()), "") or row.outcome.value)
    added = tuple(
        KnownFailure(op=u.op, check=u.check, device=u.device, dtype=u.dtype, category="op-bug", reason=REVIEW + text)
        for u, text in new.items()
    )
    removed: dict[KnownFailure, str] = {}
    kept: dict[KnownFailure, str] = {}
    if not report.stopped:
        unmatched = known.stale(report, entries, scope)
        for entry in entries:
            if entry in unmatched and known.misspelt_space(entry, scope.ops):
                left[f"{entry}: {unmatched[entry]}"] = None
            elif entry in unmatched:
                removed[entry] = unmatched[entry]
            elif entry in current:
                passes, fails = _where(report, entry)
                if passes and fails and entry.exact:
                    told = f"passes somewhere ({', '.join(passes)}) and fails somewhere ({', '.join(fails)})"
                    left[f"{entry} {told}: narrow it"] = None
                elif passes and not fails and (why := known.unjudged(report, entry, scope)):
                    kept[entry] = why
                elif passes and not fails and entry.exact:
                    removed[entry] = f"passes on {', '.join(passes)}"
    return Changes(added, removed, tuple(left), kept)


def _where(report: Report, entry: KnownFailure) -> tuple[list[str], list[str]]:
    """Where all samples that an entry is about pass, and where one fails: devices, with the dtype where there are some.

    A sample that passes beside one that fails is nothing: the entry is about the unit.
    """
    rows = [r for r in known.about(report, entry) if entry.of_sample(r)]
    fails = {r.unit for r in rows if r.outcome is Outcome.XFAIL or r.outcome in FOUND}
    passes = {r.unit for r in rows if r.outcome in (Outcome.PASS, Outcome.XPASS)} - fails
    names = [sorted({f"{u.device}/{u.dtype}" if u.dtype else u.device for u in units}) for units in (passes, fails)]
    return names[0], names[1]


def write(path: str, added: Sequence[KnownFailure], removed: Sequence[KnownFailure] = ()) -> None:
    """Change the file, or make it. It is replaced as a whole, so that nobody finds half of it.

    Raises UsageError when it cannot be read or written.
    """
    if not added and not removed:
        return
    target = pathlib.Path(path).resolve()  # what a link points to is replaced, not the link
    try:
        before = target.read_bytes().decode() if target.exists() else ""
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o644
        reports.write(str(target), edited(before, added, [e.number for e in removed]), mode=mode)
    except OSError as error:
        raise UsageError(f"{path!r} cannot be written: {error.strerror or error}") from error


def edited(text: str, added: Sequence[KnownFailure], numbers: Sequence[int] = ()) -> str:
    """The text of a file without the entries of these numbers, and with others at its end."""
    import tomlkit
    from tomlkit.items import AoT

    document = tomlkit.parse(text)
    tables = document.get("known", [])
    tail = ""
    for n in sorted(numbers, reverse=True):
        if isinstance(tables, AoT):
            # tomlkit counts what stands before a header to the table above it
            after = _trailing(tables[n - 1])
            if n < len(tables):
                tables[n].trivia.indent = after + tables[n].trivia.indent
            else:
                tail = after + tail
        del tables[n - 1]
    if not tables and "known" in document:
        document.remove("known")
    if tables and not isinstance(tables, AoT):  # known = [{...}, {...}]
        for entry in added:
            row = tomlkit.inline_table()
            row.update(_values(entry))
            tables.append(row)
        return tomlkit.dumps(document)
    found = tomlkit.dumps(document) + tail
    newline = "\r\n" if "\r\n" in text else "\n"
    for entry in added:
        lines = ["[[known]]", *(f"{k} = {tomlkit.item(v).as_string()}" for k, v in _values(entry).items()), ""]
        if found and not found.endswith("\n"):
            found += newline
        found += (newline if found.strip() and not found.endswith(newline * 2) else "") + newline.join(lines)
    return found


def _values(entry: KnownFailure) -> dict[str, str]:
    """Keys and texts of an entry; what is no Unicode, which TOML cannot hold, is an escape."""
    given = {key: getattr(entry, key) for key in _KEYS if getattr(entry, key)}
    return {key: text.encode(errors="backslashreplace").decode() for key, text in given.items()}


def _trailing(table: object) -> str:
    """The comments and empty lines after a table's last key."""
    rows: list[str] = []
    for key, item in reversed(table.value.body):  # type: ignore[attr-defined]
        if key is not None:
            break
        rows.insert(0, item.as_string())
    return "".join(rows)


#: Test of torch's optests -> what looks at the same here.
TESTS = {
    "test_schema": ("schema.*", "opcheck.utils"),
    "test_autograd_registration": ("registration.autograd", "opcheck.utils"),
    "test_faketensor": ("fake.*", "opcheck.utils"),
    "test_aot_dispatch_static": ("compile.*", "opcheck.utils"),
    "test_aot_dispatch_dynamic": ("compile.*", "opcheck.utils"),
}


def imported(path: str) -> tuple[list[KnownFailure], list[str]]:
    """The entries that a failures dict of ``torch.testing._internal.optests`` amounts to, and what has none, in words.

    Raises UsageError, saying what is expected, for a file that is none.
    """
    wanted = (
        'expected is a failures_dict.json of torch\'s optests: {"_version": 1, "data": {op: {test: {"status": ...}}}}'
    )
    try:
        data = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path!r} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path!r} is not JSON ({error}); {wanted}") from error
    if not isinstance(data, dict) or not isinstance(data.get("data"), dict) or "_version" not in data:
        raise UsageError(f"{path!r} is no failures dict; {wanted}")
    if data["_version"] != 1:
        raise UsageError(f"{path!r} has _version {data['_version']!r}; {wanted}")
    reasons: dict[tuple[str, str], dict[str, None]] = {}
    told = []
    for op, tests in data["data"].items():
        if not isinstance(tests, dict):
            raise UsageError(f"{path!r}: {op!r} is not an object; {wanted}")
        for test, row in tests.items():
            if not isinstance(row, dict) or row.get("status") not in ("xfail", "skip", "xsuccess"):
                raise UsageError(f"{path!r}: status of {op} {test} must be xfail, skip or xsuccess; {wanted}")
            kind = test.rpartition(".")[2].partition("__")[0]
            if row["status"] == "skip":
                text = "not carried over, the op runs in a process of its own and may fail there"
                told.append(f"skip     {op} {test}: {text}; run it with --update-known")
            elif row["status"] == "xfail" and kind not in TESTS:
                told.append(f"ignored  {op} {test}: no check is like {kind}")
            elif row["status"] == "xfail":
                said = str(row.get("comment") or "").strip()
                for check in TESTS[kind]:
                    reasons.setdefault((op, check), {})[f"{kind}: {said}" if said else kind] = None
    found = [
        KnownFailure(op=op, check=check, category="op-bug", reason=f"{REVIEW}torch's {'; '.join(texts)}")
        for (op, check), texts in reasons.items()
    ]
    return found, told
