"""The words of `opcheck lint`."""

from __future__ import annotations

import argparse

from opcheck_suite.registry import UsageError, one_of

EPILOG = "exit status: 0 no findings, 1 findings, 2 wrong usage, 3 the harness failed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb to its parser."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files, and folders that are searched for sources")
    parser.add_argument("--format", default="text", metavar="FORMAT", help="text, json or github (default: text)")
    parser.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="GLOB",
        help="files and folders to leave out of a search, by name or path; may be repeated",
    )
    parser.add_argument(
        "--unused-ignores", action="store_true", help="also report `opcheck: ignore` comments that ignore nothing"
    )
    parser.add_argument("--list", action="store_true", help="list the rules; `opcheck explain` says more of each")


def run(args: argparse.Namespace) -> tuple[str, bool]:
    """What to print, and whether there is nothing to change. Raises UsageError."""
    from opcheck_suite.lint import output  # what other verbs do not need
    from opcheck_suite.lint.run import lint

    one_of("format", args.format, output.FORMATS)
    if args.list:
        return output.listing(), True
    if not args.paths:
        raise UsageError("the following arguments are required: PATH")
    linted = lint(args.paths, exclude=args.exclude, unused_ignores=args.unused_ignores)
    return output.render(linted, args.format), not linted.findings
