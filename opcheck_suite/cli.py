"""The command line: ``opcheck run | audit | breaks | merge | diff | import-failures | lint | list | explain``."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import io
import os
import pathlib
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

import opcheck_suite
from opcheck_suite import comparing, known, knownedit, options, registry, reports
from opcheck_suite.lint import command
from opcheck_suite.registry import UsageError, did_you_mean, one_of

CLEAN, BAD, USAGE, HARNESS = 0, 1, 2, 3

_FORMATS = ("text", "json", "markdown", "junit", "github")

_TERMINATED = "terminated"

_EPILOG = "exit status: 0 clean, 1 bad results, 2 wrong usage, 3 the harness failed"


class _Parser(argparse.ArgumentParser):
    """argparse, with one-line errors that propose the nearest word."""

    def error(self, message: str) -> Any:
        raise UsageError(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="opcheck", description="Check PyTorch custom operators.", epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"opcheck_suite {opcheck_suite.__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=_Parser)

    run = verbs.add_parser("run", help="run checks on ops and print the conformance matrix", epilog=_EPILOG)
    run.add_argument("target", help="module with SPECS, file, module that registers ops, or namespace")
    options.add_to_parser(run)
    _add_output(run)
    run.add_argument(
        "--known",
        default=None,
        metavar="PATH",
        help="known failures in TOML: they are xfail, and strict (default: known of [tool.opcheck], or "
        f"{known.FILE} beside pyproject.toml; '' is none)",
    )
    run.add_argument(
        "--update-known",
        action="store_true",
        help="add what fails to the file of known failures, and remove what passes or is not there",
    )
    run.add_argument(
        "-v", "--verbose", action="store_true", help="also print what checks that passed have to tell, such as figures"
    )
    run.set_defaults(run=_run)

    audit = verbs.add_parser("audit", help="show how ops are registered; no kernel is run", epilog=_EPILOG)
    audit.add_argument("target", help="module, file, or namespace")
    audit.add_argument(
        "--ops", action="append", default=[], metavar="PATTERN", help="only ops that match a glob; may be repeated"
    )
    audit.add_argument(
        "--device",
        default="",
        metavar="DEVICE",
        help="devices that every op must have a kernel for, with commas (default: a kernel for any)",
    )
    _add_output(audit)
    audit.add_argument("--strict", action="store_true", help="count warnings as bad")
    audit.set_defaults(run=_audit)

    breaks = verbs.add_parser(
        "breaks",
        help="show where torch.compile breaks the graph of a function, and what to do about it",
        epilog="exit status: 0 captured as a whole, 1 graph breaks, 2 wrong usage or a function that raises by itself, "
        "3 the harness failed",
    )
    breaks.add_argument("target", help="module:function, file.py:function, or module:model.forward")
    breaks.add_argument(
        "--args",
        metavar="NAME",
        help="what to call it with: module:name, or a name beside the function, of a value or a function that returns "
        "it. A tuple is positional arguments, (tuple, dict) also keyword arguments, a list several calls",
    )
    breaks.add_argument("--dynamic", action="store_true", help="compile for sizes that change (default: torch decides)")
    breaks.add_argument(
        "--backend", default="eager", metavar="BACKEND", help="backend of torch.compile (default: eager)"
    )
    breaks.add_argument(
        "--op",
        action="store_true",
        help="write an operator wherever it is a remedy (default: for code outside of torch)",
    )
    breaks.add_argument("--format", default="text", metavar="FORMAT", help="text or json (default: text)")
    breaks.set_defaults(run=_breaks)

    importing = verbs.add_parser("import-failures", help="make known failures of a failures dict of torch's optests")
    importing.add_argument("source", metavar="FAILURES", help="failures_dict.json")
    importing.add_argument("-o", "--output", default="", metavar="PATH", help="file to add to (default: print)")
    importing.set_defaults(run=_import_failures)

    comparing.add(verbs)
    lint = verbs.add_parser(
        "lint", help="find deprecated APIs and reserved namespaces in sources, which are not run", epilog=command.EPILOG
    )
    command.add_arguments(lint)
    lint.set_defaults(run=_lint)

    listing = verbs.add_parser("list", help="list the checks")
    listing.add_argument("patterns", nargs="*", metavar="PATTERN", help="ids, families or globs")
    listing.add_argument("--format", default="text", metavar="FORMAT", help="text or markdown (default: text)")
    listing.set_defaults(run=_list)

    explain = verbs.add_parser("explain", help="say what a check or a rule of lint does, why, and how to fix it")
    explain.add_argument("check", help="id of a check, such as fake.strides, or of a rule, such as lint.private")
    explain.set_defaults(run=_explain)
    return parser


def _add_output(parser: argparse.ArgumentParser) -> None:
    """Declare what is printed and written of a run or an audit."""
    parser.add_argument(
        "--format", default="text", metavar="FORMAT", help=f"what is printed: {', '.join(_FORMATS)} (default: text)"
    )
    parser.add_argument(
        "--report",
        action="append",
        default=[],
        metavar="PATH",
        help="also write a report; its ending says how: .json, .md, .txt, .html, .xml (JUnit)",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit status: 0 clean, 1 bad results, 2 usage, 3 the harness failed."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what it cannot show is an escape, and no reason to fail
            stream.reconfigure(errors="backslashreplace")
    try:
        args = _parse(words)
        return int(args.run(args))
    except UsageError as error:
        print(f"opcheck: {error}", file=sys.stderr)
        return USAGE
    except BrokenPipeError:
        _drop_stdout()
        return CLEAN
    except KeyboardInterrupt as interrupt:
        print(f"opcheck: {str(interrupt) or 'interrupted; no report was written'}", file=sys.stderr)
        return 143 if str(interrupt).startswith(_TERMINATED) else 130
    except Exception:
        print("opcheck: the harness failed; this says nothing of the ops", file=sys.stderr)
        traceback.print_exc()
        return HARNESS


def _drop_stdout() -> None:
    """Let what is still buffered go nowhere, since Python writes it when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _parse(words: list[str]) -> argparse.Namespace:
    parser = _parser()
    verbs = ("run", "audit", "breaks", "merge", "diff", "import-failures", "lint", "list", "explain")
    if words and not words[0].startswith("-"):
        one_of("verb", words[0], verbs)
    if not words:
        parser.print_help()
        raise SystemExit(USAGE)
    args, unknown = parser.parse_known_args(words)
    if unknown:
        if not unknown[0].startswith("-"):
            raise UsageError(f"unexpected argument {unknown[0]!r}")
        flags = [f"--{d.field}" for d in options.DECLARATIONS]
        flags += ["--format", "--report", "--known", "--update-known", "--verbose", "--help", "--version"]
        flags += ["--args", "--dynamic", "--backend", "--op"] if args.verb == "breaks" else []
        flags += ["--exclude", "--unused-ignores", "--list"] if args.verb == "lint" else []
        flags = ["--output", "--help"] if args.verb == "import-failures" else flags
        flags = comparing.FLAGS.get(args.verb, flags)
        raise UsageError(f"unknown option {unknown[0]!r}{did_you_mean(unknown[0].partition('=')[0], flags)}")
    return args


def _run(args: argparse.Namespace) -> int:
    chosen = options.from_namespace(args)
    render = _renderer(args.format, _FORMATS)
    for path in args.report:
        reports.prepare(path)
    file = known.find(args.known, pathlib.Path.cwd())
    if args.update_known:
        file = file or args.known or known.FILE
    listed = known.load(file) if file and not (args.update_known and not os.path.exists(file)) else ()
    options.single_threaded()
    from opcheck_suite import engine, specs
    from opcheck_suite.progress import Progress

    loaded = specs.load(args.target)
    plan = engine.plan(loaded, chosen, known_file=file if listed else "")
    plan = dataclasses.replace(plan, known_file=file)
    if args.update_known:
        plan = dataclasses.replace(plan, known=())  # they are judged twice: before the change and after it
    engine.preflight(plan)
    reports.begin(args.report, {**chosen.as_dict(), "source": plan.source})
    try:
        with _termination_interrupts(), Progress(plan.units) as progress:
            report = engine.run(plan, listener=progress)
    except engine.Stopped as stopped:
        report = _updated(stopped.report, listed, plan, file) if args.update_known else stopped.report
        failed = _write(report, args.report)
        left = "no report was written" if failed or not args.report else f"wrote {', '.join(args.report)}: incomplete"
        raise KeyboardInterrupt(f"{stopped}; {left}") from None
    if args.update_known:
        report = _updated(report, listed, plan, file)
    if args.verbose:
        report = dataclasses.replace(report, options={**report.options, "verbose": True})
    return _finish(report, render, args.report)


def _updated(report: Any, listed: Sequence[known.KnownFailure], plan: Any, file: str) -> Any:
    """Change the file of known failures by a report that knows of none. Returns the report judged by the new file."""
    from opcheck_suite import results as judging

    scope = judging.scope(plan.entries, plan.options, named=plan.ops, planned=plan.units)
    today = known.today()
    found = knownedit.changes(known.excused(report, listed, scope, today=today), listed, scope, today=today)
    knownedit.write(file, found.added, list(found.removed))
    print("\n".join(found.lines(file)), file=sys.stderr)
    after = known.load(file) if os.path.exists(file) else ()
    return known.apply(report, after, scope, today=today)


def _import_failures(args: argparse.Namespace) -> int:
    found, told = knownedit.imported(args.source)
    if args.output:
        there = known.load(args.output) if os.path.exists(args.output) else ()
        found = [e for e in found if not any((e.op, e.check) == (t.op, t.check) for t in there)]
        knownedit.write(args.output, found)
        told.append(f"{args.output}: {len(found)} added")
    else:
        _show(knownedit.edited("", found).rstrip())
    print("\n".join(told), file=sys.stderr) if told else None
    return CLEAN


def _audit(args: argparse.Namespace) -> int:
    render = _renderer(args.format, _FORMATS)
    for path in args.report:
        reports.prepare(path)
    options.single_threaded()
    from opcheck_suite import audit, specs

    report, rows = audit.run(specs.load(args.target), patterns=tuple(args.ops), device=args.device, strict=args.strict)
    if args.format == "text":
        print(audit.table(rows), end="\n\n")
    return _finish(report, render, args.report)


def _breaks(args: argparse.Namespace) -> int:
    one_of("format", args.format, ("text", "json"))
    options.single_threaded()
    import torch

    one_of("backend", args.backend, torch._dynamo.list_backends(exclude_tags=None))
    from opcheck_suite import breaks
    from opcheck_suite.breaks import report, targets

    try:
        with contextlib.redirect_stdout(sys.stderr):  # what the function prints is no part of the report
            target = targets.load(args.target)
            found = breaks.examine(
                target.fn,
                targets.calls(args.args, target),
                name=target.name,
                backend=args.backend,
                dynamic=True if args.dynamic else None,
                fresh=lambda: targets.calls(args.args, target),
                skeletons="all" if args.op else "outside",
            )
    except breaks.FunctionRaises as raised:
        raise UsageError(f"{target.name} raises by itself, without torch.compile: {raised}") from raised
    _show(report.json(found) if args.format == "json" else report.text(found))
    return CLEAN if found.ok else BAD


def _show(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:  # whoever reads has seen enough; the status is what it is
        _drop_stdout()


@contextlib.contextmanager
def _termination_interrupts() -> Iterator[None]:
    """Treat SIGTERM, with which a CI system ends a job, like an interrupt: what was found so far is written."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt(_TERMINATED)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _finish(report: Any, render: Any, paths: list[str]) -> int:
    status = HARNESS if _write(report, paths) else CLEAN if report.ok else BAD
    _show(render(report).rstrip())
    return status


def _write(report: Any, paths: list[str]) -> bool:
    """Write the reports that were asked for. Whether one could not be written, which is told."""
    return comparing.write({path: reports.render(reports.format_of(path), report).rstrip() + "\n" for path in paths})


def _renderer(name: str, allowed: tuple[str, ...]) -> Any:
    one_of("format", name, allowed)
    return functools.partial(reports.render, name)


def _list(args: argparse.Namespace) -> int:
    from opcheck_suite.model import Tier
    from opcheck_suite.reports import catalogue

    checks = registry.select(args.patterns, tier=Tier.FULL)
    one_of("format", args.format, ("text", "markdown"))
    print(catalogue.text(checks) if args.format == "text" else catalogue.markdown(checks))
    return CLEAN


def _lint(args: argparse.Namespace) -> int:
    text, clean = command.run(args)
    if text:
        _show(text)
    return CLEAN if clean else BAD


def _explain(args: argparse.Namespace) -> int:
    from opcheck_suite.reports import catalogue

    if args.check.startswith("lint."):
        from opcheck_suite.lint import output, rules

        print(output.explain(rules.get(args.check)))
        return CLEAN
    print(catalogue.explain(registry.get(args.check)))
    return CLEAN


if __name__ == "__main__":
    sys.exit(main())
