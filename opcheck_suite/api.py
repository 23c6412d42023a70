"""The library door: check an op from Python, or make pytest parameters of specs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from opcheck_suite import engine, specs
from opcheck_suite.isolate import can_fork_safely
from opcheck_suite.model import OpSpec, Report, Unit
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
) -> Report:
    """Check one op.

    ``op`` is an `OpSpec`, a name, an OpOverload, an OpOverloadPacket or what ``torch.library.custom_op`` returned;
    ``samples`` replaces the spec's. The other arguments are those of ``opcheck run``: ``timeout`` is in seconds for one
    step of a check, ``memory`` in GiB. Nothing is raised for what is wrong with the op: look at the report's ``ok``,
    print it, or call its ``raise_if_bad()``.

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
    ).validated()
    unsafe = isolate == "auto" and not can_fork_safely()
    if unsafe:
        options = dataclasses.replace(options, isolate="never")
    entries = specs.entries([spec])
    plan = engine.plan(specs.Loaded(entries[0].name, entries), options)
    report = engine.run(plan)
    if unsafe:
        note = "none: this process has used torch in a way that its children could not (a backward run, or threads)"
        report = dataclasses.replace(report, environment={**report.environment, "isolation": note})
    return report


class BoundUnit:
    """A planned unit as a pytest parameter: ``unit.run()`` raises when the op is not conformant."""

    def __init__(self, runner: engine.Runner, unit: Unit) -> None:
        self.unit = unit
        self._runner = runner

    def __repr__(self) -> str:
        return str(self.unit)

    def run(self) -> None:
        """Run the check. Raises `ConformanceError` for a bad result, and skips or xfails the test as pytest does."""
        import pytest

        from opcheck_suite.reports import text

        results = self._runner.run_unit(self.unit)
        report = engine.report(self._runner.plan, results, seconds=sum(r.seconds for r in results))
        text.conclude(report, skip=pytest.skip, xfail=pytest.xfail)


def parametrize_with_checks(
    target: str | Iterable[OpSpec],
    *,
    device: str = "cpu",
    tier: str = "standard",
    checks: Iterable[str] = (),
    **options: Any,
) -> Any:
    """A pytest decorator that calls the test once for each check of each op, with an argument ``unit``.

    ``target`` is the name of a module with ``SPECS``, or a list of specs; the other arguments are those of `check_op`.

        @parametrize_with_checks("my_ops.specs")
        def test_conformance(unit):
            unit.run()
    """
    import pytest

    chosen = RunOptions(device=device, tier=tier, checks=tuple(checks), **options).validated()
    loaded = specs.load(target) if isinstance(target, str) else specs.Loaded("a list of specs", specs.entries(target))
    plan = engine.plan(loaded, chosen)
    runner = engine.Runner(plan)
    params = [pytest.param(BoundUnit(runner, unit), id=unit.test_id) for unit in plan.units]
    return pytest.mark.parametrize("unit", params)
