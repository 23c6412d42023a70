"""Results as reports have them: from rows, for ops that a machine cannot have, and of failures that are expected."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Iterable, Mapping, Sequence

import torch

from opcheck_suite import known, ops, registry, specs
from opcheck_suite.inputs import drawing, variants
from opcheck_suite.known import KnownFailure
from opcheck_suite.model import Outcome, Report, Result, Tier, Unit
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
    units = {r.unit for r in results}
    partly = {unit for unit in units if narrow(entry, unit, options)}
    return known.excuse(results, entries, versions, known.today(), sampled=bool(options.sample), narrow=partly)


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
    found: Report,
    listed: Sequence[KnownFailure],
    entries: Mapping[str, specs.Entry],
    options: RunOptions,
    *,
    named: Iterable[str],
    planned: Sequence[Unit] = (),
) -> Report:
    """A report of units that have been through `expect`, with a bad result for every listed entry about nothing; the
    other arguments are those of `scope`.
    """
    return known.complete(found, listed, scope(entries, options, named=named, planned=planned)) if listed else found


def scope(
    entries: Mapping[str, specs.Entry], options: RunOptions, *, named: Iterable[str], planned: Sequence[Unit] = ()
) -> known.Scope:
    """What a run can tell of known failures. ``entries`` are those that it runs, ``named`` the ops of all specs."""
    devices = {}
    for name, entry in entries.items():
        own = entry.info.devices if entry.info is not None else ()
        devices[name] = entry.spec.devices if entry.spec.devices is not None else own
    partly = {unit: why for unit in planned if (why := narrow(entries[unit.op], unit, options))}
    return known.Scope(known_ops(named), known_checks(), planned, devices, partly)


def narrow(entry: specs.Entry, unit: Unit, options: RunOptions) -> str:
    """Why a run looks at only some of the inputs of a unit that others would; an empty string where it does not."""
    if entry.info is None:
        return f"{entry.name} is not available on this machine"
    check, tier = registry.get(unit.check), Tier(options.tier)
    if check.tier is Tier.STATIC:
        return ""
    if any(not variants.whole(group, tier) for group in check.variants):
        return f"tier {tier} tries fewer inputs for {unit.check}"
    if specs.DRAWN_SAMPLES[tier] < specs.DRAWN_SAMPLES[Tier.FULL] and drawing.is_strategy(entry.spec.samples):
        return f"tier {tier} draws fewer samples of {entry.name}"
    return ""


def known_ops(named: Iterable[str]) -> list[str]:
    """The ops that an entry may name: those of the specs, and whatever else is registered."""
    return sorted({*named} | ops.names())


def known_checks() -> list[str]:
    """The checks that an entry may name."""
    return [c.id for c in registry.all_checks()]
