"""Results as reports have them: from rows, for ops that a machine cannot have, and of failures that are expected."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Iterable, Sequence

import torch

from opcheck_suite import known, ops, registry, specs
from opcheck_suite.known import KnownFailure
from opcheck_suite.model import Outcome, Report, Result, Unit
from opcheck_suite.options import RunOptions
from opcheck_suite.registry import UsageError
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


def expect(
    entry: specs.Entry, results: list[Result], options: RunOptions, listed: Sequence[KnownFailure] = ()
) -> list[Result]:
    """Results of one unit with what is known to fail taken into account: by the spec, and by the file's entries."""
    if not results or not (entry.spec.expected_failures or listed):
        return results
    versions = {"torch": torch.__version__, "python": platform.python_version()}
    entries = (*inline(entry), *listed)
    return known.excuse(results, entries, versions, known.today(), sampled=bool(options.sample))


def inline(entry: specs.Entry) -> list[KnownFailure]:
    """The expected failures of a spec as entries. Raises UsageError for what is none."""
    found = []
    for check, said in entry.spec.expected_failures.items():
        try:
            one = said if isinstance(said, KnownFailure) else KnownFailure(reason=said)
        except UsageError as error:
            raise UsageError(f"{entry.name}: expected_failures[{check!r}]: {error}") from error
        found.append(dataclasses.replace(one, op=entry.name, check=check, number=0))
    return found


def judged(
    found: Report, listed: Sequence[KnownFailure], *, named: Iterable[str], planned: Sequence[Unit] = ()
) -> Report:
    """A report of units that have been through `expect`, with a bad result for every listed entry about nothing.

    ``named`` are the ops of the specs. Entries are not called needless where planned units that they are about have no
    result.
    """
    if not listed:
        return found
    return known.complete(found, listed, ops=known_ops(named), checks=known_checks(), planned=planned)


def known_ops(named: Iterable[str]) -> list[str]:
    """The ops that an entry may name: those of the specs, and whatever else is registered."""
    return sorted({*named} | ops.names())


def known_checks() -> list[str]:
    """The checks that an entry may name."""
    return [c.id for c in registry.all_checks()]
