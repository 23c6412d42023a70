"""The verbs that read reports and run nothing: ``opcheck merge | diff``."""

from __future__ import annotations

import argparse
import importlib
import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from opcheck_suite import reports
from opcheck_suite.registry import UsageError, did_you_mean, one_of

if TYPE_CHECKING:
    from opcheck_suite.model import Report
    from opcheck_suite.reports.merged import Merged

_FORMATS = ("text", "json", "markdown")
_BADGES = {".json": "endpoint", ".svg": "svg"}

#: The options of these verbs, from which a mistyped one is told the nearest.
FLAGS = {
    "merge": ["--output", "--format", "--expect", "--allow-conflicts", "--allow-mixed", "--badge", "--help"],
    "diff": ["--output", "--format", "--help"],
}


def add(verbs: Any) -> None:
    """Declare the verbs on the command line's parser."""
    merge = verbs.add_parser(
        "merge",
        help="merge reports into one matrix, an environment a column",
        epilog="exit status: 0 clean and whole, 1 bad results, or a job is missing or incomplete, 2 wrong usage, "
        "3 the harness failed",
    )
    merge.add_argument("reports", nargs="+", metavar="REPORT", help="JSON reports of opcheck run, audit or pytest")
    _add_output(merge)
    merge.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="NAME",
        help="a report that must be there: name of a file without ending, or of a column, or a glob; may be repeated",
    )
    merge.add_argument(
        "--allow-conflicts",
        action="store_true",
        help="where two reports of one environment disagree, count the worse (default: refuse)",
    )
    merge.add_argument(
        "--allow-mixed",
        action="store_true",
        help="merge reports of different states of the op library (default: refuse)",
    )
    merge.add_argument(
        "--badge",
        action="append",
        default=[],
        metavar="PATH",
        help="write a badge: .svg, or .json for an endpoint of shields.io",
    )
    merge.set_defaults(run=_merge)

    diff = verbs.add_parser(
        "diff",
        help="show what changed between two reports or matrices",
        epilog="exit status: 0 nothing is newly bad, 1 something is, or NEW is incomplete, 2 wrong usage, "
        "3 the harness failed",
    )
    diff.add_argument("old", metavar="OLD", help="JSON report, or matrix of opcheck merge")
    diff.add_argument("new", metavar="NEW", help="the same, of any torch version")
    _add_output(diff)
    diff.set_defaults(run=_diff)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        action="append",
        default=[],
        metavar="PATH",
        help="write it; the ending says how: .json, .md, .txt, and for merge .html; may be repeated",
    )
    parser.add_argument(
        "--format", default="text", metavar="FORMAT", help="what is printed: text, json or markdown (default: text)"
    )


def _merge(args: argparse.Namespace) -> int:
    one_of("format", args.format, _FORMATS)
    for path in args.badge:
        if (suffix := pathlib.Path(path).suffix) not in _BADGES:
            raise UsageError(f"{path!r}: badges are written as {', '.join(_BADGES)}{did_you_mean(suffix, _BADGES)}")
    _prepare(args.output, (*_FORMATS, "html"))
    from opcheck_suite.reports.merged import badge, merge

    made = merge.merge(
        _read_all(args.reports),
        expect=args.expect,
        allow_conflicts=args.allow_conflicts,
        allow_mixed=args.allow_mixed,
    )
    failed = write({path: getattr(badge, _BADGES[pathlib.Path(path).suffix])(made) for path in args.badge})
    return _finish(args, "render", made, failed=failed)


def _diff(args: argparse.Namespace) -> int:
    one_of("format", args.format, _FORMATS)
    _prepare(args.output, _FORMATS)
    from opcheck_suite.reports.merged import diff

    return _finish(args, "render_difference", diff.diff(_matrix(args.old), _matrix(args.new)))


def _prepare(paths: list[str], allowed: tuple[str, ...]) -> None:
    for path in paths:
        if (form := reports.format_of(path)) not in allowed:
            raise UsageError(f"{path!r}: this verb writes {', '.join(allowed)}, and no {form}")
        reports.make_room(path)


def _finish(args: argparse.Namespace, renderer: str, found: Any, *, failed: bool = False) -> int:
    """Write and print what was found. The exit status: 0 where it is ok, 1 where not, 3 where it cannot be written."""

    def render(form: str) -> str:
        module = importlib.import_module(f"opcheck_suite.reports.merged.{form}")
        made: Callable[[Any], str] = getattr(module, renderer)
        return made(found).rstrip() + "\n"

    failed |= write({path: render(reports.format_of(path)) for path in args.output})
    print(render(args.format), end="", flush=True)
    return 3 if failed else 0 if found.ok else 1


def write(texts: dict[str, str]) -> bool:
    """Write texts to paths. Whether one could not be written, which is told."""
    failed = False
    for path, text in texts.items():
        try:
            reports.write(path, text)
        except OSError as error:
            print(f"opcheck: {path!r} cannot be written: {error.strerror or error}", file=sys.stderr)
            failed = True
    return failed


def _read_all(paths: list[str]) -> Iterator[tuple[str, Report]]:
    """Reports one after the other: the text of one is forgotten before the next is read."""
    from opcheck_suite.reports import json

    for path in dict.fromkeys(paths):
        text = _read(path)
        try:
            yield path, json.parse(text, incomplete=True)
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from error


def _matrix(path: str) -> Merged:
    """A matrix, or a report as a matrix of one."""
    from opcheck_suite.reports import json as report_json
    from opcheck_suite.reports.merged import json, merge

    text = _read(path)
    try:
        if text[:200].partition('"kind"')[2].lstrip(" :\n").startswith('"matrix"'):
            return json.parse(text)
        return merge.merge([(path, report_json.parse(text, incomplete=True))])
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def _read(path: str) -> str:
    file = pathlib.Path(path)
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        near = did_you_mean(file.name, (p.name for p in file.parent.glob("*.json")))
        raise UsageError(f"there is no file {path!r}{near}") from None
    except OSError as error:
        raise UsageError(f"{path!r} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path!r} is no text in UTF-8: {error.reason}") from error
