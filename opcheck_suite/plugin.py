"""The pytest door: ``pytest --opcheck my_ops.specs``, or tests made with ``parametrize_with_checks``.

Importing this module imports neither torch nor the engine: pytest loads it in every session where it is installed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from opcheck_suite import options
from opcheck_suite.model import ConformanceError, Outcome, Report, Result, Unit
from opcheck_suite.registry import UsageError

#: Results ride to pytest-xdist's controller as properties of tests, in JSON; they are in a JUnit file, too.
_PROPERTY = "opcheck_result"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare ``--opcheck`` and its options. All are prefixed: libraries often have a ``--device`` of their own."""
    group = parser.getgroup("opcheck", "conformance of PyTorch custom operators")
    group.addoption(
        "--opcheck",
        action="append",
        default=[],
        metavar="TARGET",
        help="check the ops of a module with SPECS, a file, a module that registers ops, or a namespace; repeatable",
    )
    group.addoption("--opcheck-only", action="store_true", help="run the conformance checks and no other test")
    group.addoption(
        "--opcheck-report",
        action="append",
        default=[],
        metavar="PATH",
        help="write a report; its ending says how: .json, .md, .txt, .html, .xml (JUnit)",
    )
    group.addoption(
        "--opcheck-guard",
        action="store_true",
        help="make torch refuse ops that the tests, or what they import, define in namespaces of PyTorch, and warn of "
        "registrations that go against each other or are lost",
    )
    group.addoption(
        "--opcheck-known",
        default=None,
        metavar="PATH",
        help="known failures in TOML (default: known of [tool.opcheck], or opcheck-known.toml beside pyproject.toml)",
    )
    options.add_to_pytest(group)


def pytest_configure(config: pytest.Config) -> None:
    """Check the options, and prepare for forking, before anything imports torch."""
    if config.getoption("opcheck_guard"):
        from opcheck_suite.guarding import guard

        if "torch" not in sys.modules:
            options.single_threaded()
        guarded = contextlib.ExitStack()
        guarded.enter_context(guard())
        config.add_cleanup(guarded.close)
    if not config.getoption("opcheck"):
        return
    from opcheck_suite import reports

    try:
        _run_options(config)
        for path in config.getoption("opcheck_report"):
            reports.prepare(path)
    except UsageError as error:
        raise pytest.UsageError(f"opcheck: {error}") from None
    if "torch" not in sys.modules:
        options.single_threaded()
    try:
        config.pluginmanager.register(_Conformance(config, _plans(config)), "opcheck-conformance")
    except UsageError as error:
        raise pytest.UsageError(f"opcheck: {error}") from None
    if not hasattr(config, "workerinput"):
        reports.begin(config.getoption("opcheck_report"), _run_options(config).as_dict())


def _plans(config: pytest.Config) -> list[Any]:
    """A plan for each target. Made before collection: xdist's controller collects nothing, and its workers cannot
    report wrong usage.
    """
    from opcheck_suite import engine, known, specs

    file = known.find(config.getoption("opcheck_known"), config.rootpath)
    chosen = _run_options(config)
    plans = [engine.plan(specs.load(target), chosen, known_file=file) for target in config.getoption("opcheck")]
    if not hasattr(config, "workerinput"):
        for plan in plans:
            engine.preflight(plan)
    return plans


def _run_options(config: pytest.Config) -> options.RunOptions:
    """The run's options. ``--device`` counts where a conftest.py has defined it and ``--opcheck-device`` is not
    given.
    """
    chosen = options.from_namespace(config.option, prefix="opcheck_")
    device = config.getoption("device", None)
    if config.getoption("opcheck_device") is None and device:
        text = device if isinstance(device, str) else ",".join(map(str, device))
        chosen = dataclasses.replace(chosen, device=text)
    return chosen


class _Conformance:
    """The part of the plugin that exists only when ``--opcheck`` is given."""

    def __init__(self, config: pytest.Config, plans: list[Any]) -> None:
        self.config = config
        self.plans = plans
        self.runners: list[Any] = []
        self.results: list[Result] = []
        self.stopped = False
        self.unmatched: list[Result] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Add one item for each unit. First of all hooks, so that -k, -m and --lf select among them."""
        if config.getoption("opcheck_only"):
            config.hook.pytest_deselected(items=list(items))
            items.clear()
        for plan in self.plans:
            items.extend(self._collect(session, plan))

    def _collect(self, session: pytest.Session, plan: Any) -> Iterator[pytest.Item]:
        from opcheck_suite import engine

        runner = engine.Runner(plan)
        self.runners.append(runner)
        parent = _Target.from_parent(session, name=plan.source, nodeid=plan.source)
        spaces: dict[str, pytest.Collector] = {}
        for unit in plan.units:
            # nested as the id reads: pytest takes it apart at "::" when --lf looks for a test
            space, _, name = unit.test_id.rpartition("::")
            if space and space not in spaces:
                spaces[space] = _Target.from_parent(parent, name=space)
            item = UnitItem.from_parent(spaces.get(space, parent), name=name, unit=unit, runner=runner)
            item.add_marker(pytest.mark.xdist_group(unit.op)) if self.config.pluginmanager.hasplugin("xdist") else None
            yield item

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather results, here and from xdist's workers."""
        if report.when == "call":
            for name, value in report.user_properties:
                if name == _PROPERTY and isinstance(value, str):
                    row = json.loads(value)
                    self.results.append(Result(**row | {"outcome": Outcome(row["outcome"])}))

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """End the children."""
        ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        self.stopped = not ended or bool(session.shouldstop or session.shouldfail)
        for runner in self.runners:
            runner.__exit__()
        if hasattr(self.config, "workerinput") or not self.results:
            return
        from opcheck_suite.results import judged

        report = self._report()
        named = [op for plan in self.plans for op in plan.ops]
        planned = [unit for plan in self.plans for unit in plan.units]
        entries = {name: entry for plan in self.plans for name, entry in plan.entries.items()}
        first = self.plans[0]
        after = judged(report, first.known, entries, first.options, named=named, planned=planned)
        self.unmatched = list(after.results[len(report.results) :])
        if self.unmatched and ended:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the matrix, and write the reports that were asked for."""
        if not self.results or hasattr(self.config, "workerinput"):
            return
        from opcheck_suite import reports
        from opcheck_suite.reports import text

        report = self._report()
        report = dataclasses.replace(report, results=(*report.results, *self.unmatched))
        terminalreporter.section("conformance")
        for line in (text.header(report), "", *text.table(report).splitlines(), "", *text.summary(report).splitlines()):
            terminalreporter.write_line(line)
        for row in self.unmatched:
            terminalreporter.write_line(row.message)
        for path in self.config.getoption("opcheck_report"):
            reports.write(path, reports.render(reports.format_of(path), report))
            terminalreporter.write_line(f"wrote {path}{': incomplete' if report.stopped else ''}")

    def _report(self) -> Report:
        from opcheck_suite import provenance

        # as planned and not as they came: xdist's workers finish in any order
        units = dict.fromkeys(unit for plan in self.plans for unit in plan.units)
        rank = {unit: n for n, unit in enumerate(units)}
        ordered = sorted(self.results, key=lambda r: rank[r.unit])
        about = {name: entry.spec.about for plan in self.plans for name, entry in plan.entries.items()}
        return Report(
            results=tuple(ordered),
            environment=provenance.environment(self.plans[0].devices, self.plans[0].source, about),
            options=self.plans[0].options.as_dict()
            | {"source": " ".join(plan.source for plan in self.plans)}
            | ({"known": self.plans[0].known_file} if self.plans[0].known_file else {}),
            ops={r.op: about[r.op] for r in ordered},
            seconds=sum(r.seconds for r in ordered),
            stopped="the session was stopped" if self.stopped else "",
        )


class _Target(pytest.Collector):
    """Parent of the items of one target."""

    def collect(self) -> list[pytest.Item]:
        """Nothing: the items are added when all of a session's are known."""
        return []


class UnitItem(pytest.Item):
    """One check of one op on one device as a test."""

    def __init__(self, *, unit: Unit, runner: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.unit = unit
        self._runner = runner

    def runtest(self) -> None:
        """Run the unit; raise for a bad result, skip where nothing ran, xfail where failure is expected."""
        from opcheck_suite import engine
        from opcheck_suite.reports import text

        results = self._runner.run_unit(self.unit)
        for r in results:
            self.user_properties.append((_PROPERTY, json.dumps(dataclasses.asdict(r))))
        report = engine.report(self._runner.plan, results, seconds=sum(r.seconds for r in results))
        text.conclude(report, skip=pytest.skip, xfail=pytest.xfail)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The failure as the report shows it, without a traceback of the harness."""
        if isinstance(excinfo.value, ConformanceError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[pathlib.Path, int | None, str]:
        """Where the item is said to be: it belongs to an op, not to a file."""
        return self.path, None, f"{self.unit}"
