"""Results as reports have them: from rows, for ops that a machine cannot have, and of failures that are expected."""

from __future__ import annotations

import dataclasses

from opcheck_suite import specs
from opcheck_suite.model import FOUND, Outcome, Result, Unit
from opcheck_suite.options import RunOptions
from opcheck_suite.session import Row


def of_row(unit: Unit, row: Row) -> Result:
    """What a session found on a sample, as a result of the unit."""
    return Result(
        op=unit.op,
        check=unit.check,
        device=unit.device,
        dtype=unit.dtype,
        sample=row.sample,
        outcome=row.outcome,
        message=row.message,
        seconds=row.seconds,
        cases=row.cases,
        detail=row.detail,
    )


def unavailable(entry: specs.Entry, unit: Unit, options: RunOptions) -> list[Result]:
    """The result of a unit whose op this machine cannot have."""
    capability, reason = next(iter(entry.spec.unavailable.items()))
    if capability in options.require:
        text = f"--require {capability}: {reason}"
        return [of_row(unit, Row("", Outcome.ERROR, text))]
    return [of_row(unit, Row("", Outcome.SKIP, reason))]


def expect(entry: specs.Entry, results: list[Result]) -> list[Result]:
    """Results of one unit with the spec's expected failures taken into account.

    A bad result of a check that is expected to fail is an ``xfail``. When none of the unit's results is bad, those that
    passed are an ``xpass``: the entry should go.
    """
    if not results or (reason := entry.spec.expected_failures.get(results[0].check)) is None:
        return results
    if any(r.outcome in FOUND for r in results):
        return [
            dataclasses.replace(r, outcome=Outcome.XFAIL, message=f"{reason}\n{r.message}") if r.outcome in FOUND else r
            for r in results
        ]
    text = f"expected to fail ({reason}), but passes: remove it from expected_failures"
    return [
        dataclasses.replace(r, outcome=Outcome.XPASS, message=text) if r.outcome is Outcome.PASS else r for r in results
    ]
