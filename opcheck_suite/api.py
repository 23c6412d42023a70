"""The library door: check an op from Python, or make pytest parameters of specs."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterable
from typing import Any

from opcheck_suite import engine, results, specs
from opcheck_suite.isolate import can_fork_safely
from opcheck_suite.known import find
from opcheck_suite.model import OpSpec, Report, Result, Unit
from opcheck_suite.options import RunOptions


def check_op(
    op: Any,
    samples: Any = None,
    *,
    device: str = "cpu",
    tier: str = "standard",
    checks: Iterable[str] = (),
    isolate: str = "auto",
    timeout: float = 120.0,
    memory: float = 4.0,
    strict: bool = False,
    seed: int = 0,
    large: bool = False,
    known: str = "",
) -> Report:
    """Check one op.

    ``op`` is an `OpSpec`, a name, an OpOverload, an OpOverloadPacket or what ``torch.library.custom_op`` returned;
    ``samples`` replaces the spec's. The other arguments are those of ``opcheck run``: ``timeout`` is in seconds for one
    step of a check, ``memory`` in GiB, ``known`` a file of known failures (none is looked for here). Nothing is raised
    for what is wrong with the op: look at the report's ``ok``, print it, or call its ``raise_if_bad()``.

    With ``isolate="auto"`` the op runs in child processes where this process can still be forked safely; the report's
    environment says when it could not.

    Raises `UsageError` when there is no such op or check, or a sample does not fit the op's schema.
    """
    spec = op if isinstance(op, OpSpec) else OpSpec(op=op)
    if samples is not None:
        spec = dataclasses.replace(spec, samples=samples)
    options = RunOptions(
        device=device,
        tier=tier,
        checks=tuple(checks),
        isolate=isolate,
        timeout=timeout,
        memory=memory,
        strict=strict,
        seed=seed,
        large=large,
    ).validated()
    unsafe = isolate == "auto" and not can_fork_safely()
    if unsafe:
        options = dataclasses.replace(options, isolate="never")
    entries = specs.entries([spec])
    plan = engine.plan(specs.Loaded(entries[0].name, entries), options, known_file=known)
    report = engine.run(plan)
    if unsafe:
        note = "none: this process has used torch in a way that its children could not (a backward run, or threads)"
        report = dataclasses.replace(report, environment={**report.environment, "isolation": note})
    return report


class BoundUnit:
    """A planned unit as a pytest parameter: ``unit.run()`` raises when the op is not conformant."""

    def __init__(self, runner: engine.Runner, unit: Unit, results: list[Result]) -> None:
        self.unit = unit
        self._results = results
        self._runner = runner

    def __repr__(self) -> str:
        return str(self.unit)

    def run(self) -> None:
        """Run the check. Raises `ConformanceError` for a bad result, and skips or xfails the test as pytest does."""
        import pytest

        from opcheck_suite.reports import text

        found = self._runner.run_unit(self.unit)
        self._results += found
        report = engine.report(self._runner.plan, found, seconds=sum(r.seconds for r in found))
        text.conclude(report, skip=pytest.skip, xfail=pytest.xfail)


class BoundKnown:
    """The known failures as the last pytest parameter: ``unit.run()`` raises where an entry is about nothing."""

    def __init__(self, plan: engine.Plan, results: list[Result]) -> None:
        self._plan = plan
        self._results = results

    def __repr__(self) -> str:
        return f"known failures of {self._plan.known_file}"

    def run(self) -> None:
        """Judge the entries by the units that ran before. Raises `ConformanceError`."""
        report = engine.report(self._plan, self._results, seconds=0.0)
        plan = self._plan
        judged = results.judged(report, plan.known, plan.entries, plan.options, named=plan.ops, planned=plan.units)
        added = judged.results[len(self._results) :]
        if added:
            dataclasses.replace(judged, results=added).raise_if_bad()


def parametrize_with_checks(
    target: str | Iterable[OpSpec],
    *,
    device: str = "cpu",
    tier: str = "standard",
    checks: Iterable[str] = (),
    known: str | None = None,
    **options: Any,
) -> Any:
    """A pytest decorator that calls the test once for each check of each op, with an argument ``unit``.

    ``target`` is the name of a module with ``SPECS``, or a list of specs; other arguments are those of `check_op`.
    ``known`` is a file of known failures; None looks for one as ``opcheck run`` does, and "" uses none. With one, a
    last test fails where an entry is about nothing.

        @parametrize_with_checks("my_ops.specs")
        def test_conformance(unit):
            unit.run()
    """
    import pytest

    chosen = RunOptions(device=device, tier=tier, checks=tuple(checks), **options).validated()
    loaded = specs.load(target) if isinstance(target, str) else specs.Loaded("a list of specs", specs.entries(target))
    plan = engine.plan(loaded, chosen, known_file=find(known, pathlib.Path.cwd()))
    runner = engine.Runner(plan)
    found: list[Result] = []
    params = [pytest.param(BoundUnit(runner, unit, found), id=unit.test_id) for unit in plan.units]
    if plan.known:
        params.append(pytest.param(BoundKnown(plan, found), id="known-failures"))
    return pytest.mark.parametrize("unit", params)
