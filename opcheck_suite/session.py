"""Run one check on one op, and turn what happens into rows. This is the part that lives in a child process."""

from __future__ import annotations

import dataclasses
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import torch

from opcheck_suite import context, ops, reduction, registry, shrinking, specs
from opcheck_suite.context import Context
from opcheck_suite.inputs import drawing, tensors
from opcheck_suite.inputs.cases import Case
from opcheck_suite.model import Check, Outcome, Tier, Unit, worst

#: How many signatures of drawn samples expensive checks look at.
_SIGNATURES = 5


@dataclasses.dataclass(frozen=True)
class Row:
    """What one check said of one sample: a `Result` without the unit."""

    sample: str
    outcome: Outcome
    message: str = ""
    seconds: float = 0.0
    cases: int = 0
    detail: str = ""


@dataclasses.dataclass(frozen=True)
class _Finding:
    """What one check said of one case."""

    case: Case | None
    outcome: Outcome
    message: str = ""
    detail: str = ""
    ran: bool = True
    reduced_from: Case | None = None
    """The larger case on which the check failed first."""


class Session:
    """The checks of one op. Contexts, and with them memoised runs, live as long as the session.

    With ``large``, ops are called on tensors of gigabytes, too. With ``shrink``, inputs on which a check fails are made
    smaller, which forks this process.
    """

    def __init__(
        self,
        entry: specs.Entry,
        *,
        seed: int = 0,
        tier: Tier = Tier.FULL,
        only: tuple[str, ...] = (),
        announce: context.Announce = context.silent,
        lost: context.Lost = lambda _: None,
        shrink: bool = False,
        large: bool = False,
    ) -> None:
        self.entry = entry
        self._large = large
        self._tier = tier
        self._shrink = shrink
        self._seed = seed
        self._only = only
        self._announce = announce
        self._lost = lost
        self._contexts: dict[tuple[str, str], Context] = {}

    def context(self, device: str, dtype: str) -> Context:
        """The context of the op for a device and dtype (named as in a unit)."""
        key = (device, dtype)
        if key not in self._contexts:
            assert self.entry.info is not None
            self._contexts[key] = Context(
                self.entry.spec,
                self.entry.info,
                device=device,
                dtype=getattr(torch, dtype) if dtype else None,
                seed=self._seed,
                only=self._only,
                announce=self._announce,
                lost=self._lost,
                tier=self._tier,
                large=self._large,
            )
        return self._contexts[key]

    def run(
        self, unit: Unit, *, done: frozenset[str] = frozenset(), deadly: dict[str, str] | None = None
    ) -> Iterator[Row]:
        """The rows of a unit. ``done`` names samples that an earlier child finished, ``deadly`` the inputs that ended
        it.
        """
        check = registry.get(unit.check)
        ctx = self.context(unit.device, unit.dtype)
        ctx.deadly = dict(deadly or {})
        start = time.perf_counter()
        try:
            reason = inapplicable(check, ctx)
        except (specs.SpecError, registry.UsageError) as error:  # some checks look at the samples to tell
            reason = Outcome.ERROR, f"the spec is at fault: {error}"
        if reason is not None:
            yield Row("", *reason, seconds=time.perf_counter() - start)
            return
        if check.scope == "op":
            finding = _settled(check, ctx, lambda: check.fn(ctx), None)
            yield _row(check, "", [finding], time.perf_counter() - start)
            return
        yield from self._over_samples(check, ctx, done)

    def _over_samples(self, check: Check, ctx: Context, done: frozenset[str]) -> Iterator[Row]:
        start = time.perf_counter()
        self._announce("samples", "", "", "")
        try:
            samples = ctx.samples
        except (specs.SpecError, registry.UsageError) as error:
            yield Row("", Outcome.ERROR, f"the spec is at fault: {error}", detail=traceback.format_exc())
            return
        if not samples:
            yield Row("", Outcome.NOT_EXERCISED, "no sample is chosen" if ctx.only else "the op has no samples")
            return
        shrink = self._shrink and check.shrinks and check.id not in ctx.spec.expected_failures
        seen: set[tuple[Any, ...]] = set()
        most = _most_signatures(check, ctx)
        lacking: list[str] = []
        for sample in samples:
            if check.scope == "signature":
                if sample.signature() in seen or len(seen) == most:
                    continue
                seen.add(sample.signature())
            if sample.sample in done:
                continue
            findings = list(self._over_cases(check, ctx, sample))
            if not findings:
                lacking.append(sample.sample)
            if shrink and any(f.outcome is Outcome.FAIL for f in findings):
                shrink = False  # of a unit's samples, reports show the first that fails, and name the others
                findings = self._shrunk(check, ctx, sample, findings)
            now = time.perf_counter()
            yield _row(check, sample.sample, findings, now - start)
            start = now
        if len(lacking) == len(samples):
            yield Row(
                "", Outcome.NOT_EXERCISED, f"no {_groups(check)} variant can be made of any sample: add a larger one"
            )

    def _over_cases(self, check: Check, ctx: Context, sample: Case) -> Iterator[_Finding]:
        base = not check.failing_samples and self._base_fails(ctx, sample)
        if base:
            yield _Finding(sample, Outcome.NOT_EXERCISED, base, ran=False)
            return
        for group in check.variants:
            for case in [sample] if group == "sample" else ctx.variants(sample, group):
                ctx.announce("check", case)
                finding = _settled(check, ctx, lambda case=case: check.fn(ctx, case), case)  # type: ignore[misc]
                yield finding
                if finding.outcome.bad and check.scope == "signature":
                    return

    def _shrunk(self, check: Check, ctx: Context, sample: Case, findings: list[_Finding]) -> list[_Finding]:
        """The findings of a sample; the one that its row shows is told of the smallest input that fails like it."""
        shown = min((f for f in findings if f.outcome is Outcome.FAIL), key=_size)
        assert shown.case is not None

        def fails(own: Context, case: Case) -> tuple[str, str] | None:
            found = _guard(check, lambda: check.fn(own, case), case)
            return (found.message, found.detail) if found.outcome is Outcome.FAIL else None

        start = time.perf_counter()
        search = reduction if drawing.is_strategy(ctx.source) else shrinking
        smaller = search.shrink(ctx, check, sample, shown.case, shown.message, fails)
        if time.perf_counter() - start > search.SECONDS:
            self._shrink = False  # an op that hangs of smaller inputs costs that once
        if smaller is None:
            return findings
        told = dataclasses.replace(
            shown, case=smaller.case, message=smaller.message, detail=smaller.detail, reduced_from=shown.case
        )
        return [told if f is shown else f for f in findings]

    def smaller_death(self, unit: Unit, done: frozenset[str], deadly: dict[str, str]) -> tuple[str, str] | None:
        """The name of the drawn sample on which the op ended the child before this one, and the smallest call that
        does the same; None unless that was the first end of a unit's child.
        """
        met = [key.removeprefix("eager:").removesuffix("|") for key in deadly]
        if len(met) != 1 or met[0] not in done:
            return None
        ctx = self.context(unit.device, unit.dtype)
        sample = next(case for case in ctx.samples if case.sample == met[0])
        smaller = reduction.smallest_death(ctx, sample)
        if smaller is None or smaller.describe() == sample.describe():
            return None
        return sample.sample, smaller.describe()

    @staticmethod
    def _base_fails(ctx: Context, sample: Case) -> str | None:
        try:
            ctx.require(sample)
        except context.Refused:
            return "the op fails on this sample: see values.runs"
        return None


def _most_signatures(check: Check, ctx: Context) -> int | None:
    """How many of the signatures that a strategy draws an expensive check looks at; None is all.

    Samples that someone wrote are meant to be different; those of a strategy have nearly as many signatures as there
    are samples, and each may be a compilation.
    """
    cheap = check.tier in (Tier.STATIC, Tier.QUICK)
    return None if cheap or not drawing.is_strategy(ctx.source) else _SIGNATURES


def inapplicable(check: Check, ctx: Context) -> tuple[Outcome, str] | None:
    """Why a check is not run on an op at all, as the outcome and the reason; None when it is run."""
    if not ctx.info.is_operator and check.id != "registration.operator":
        return Outcome.SKIP, "a plain function, not an operator: see registration.operator"
    if check.tier != "static" and not ctx.info.serves(ctx.device):
        if ctx.spec.devices is not None and torch.device(ctx.device).type not in ctx.spec.devices:
            return Outcome.SKIP, f"the op has no kernel for {ctx.device}, and its spec does not claim one"
        if ctx.spec.devices is None and (ctx.device != "cpu" or (ctx.info.devices and not ctx.given_for_cpu)):
            return Outcome.SKIP, f"the op has no kernel for {ctx.device}"
        return Outcome.NOT_EXERCISED, f"no kernel for {ctx.device}: see registration.kernel"
    if check.tier != "static" and not ops.registered(ctx.info):
        return Outcome.NOT_EXERCISED, "the op object is not the registered operator: see registration.handle"
    if check.applies is not None and (reason := check.applies(ctx)) is not None:
        return Outcome.SKIP, reason
    return None


def _settled(check: Check, ctx: Context, run: Callable[[], Any], case: Case | None) -> _Finding:
    """As `_guard`, and wait for the device: what a kernel did wrong belongs to this check, not to the next."""
    finding = _guard(check, run, case)
    if check.tier is Tier.STATIC:
        return finding
    waited = _guard(check, ctx.synchronize, case)
    return waited if waited.outcome.bad else finding


def _guard(check: Check, run: Callable[[], Any], case: Case | None) -> _Finding:
    """Run a check on a case; whose fault an exception is depends on where it came from."""
    try:
        run()
    except context.Failed as verdict:
        outcome = Outcome.WARN if check.severity is Outcome.WARN else Outcome.FAIL
        return _Finding(case, outcome, str(verdict))
    except context.Warned as verdict:
        return _Finding(case, Outcome.WARN, str(verdict))
    except context.Noted as verdict:
        return _Finding(case, Outcome.PASS, str(verdict))
    except context.Skipped as verdict:
        return _Finding(case, Outcome.SKIP, str(verdict), ran=False)
    except context.NotExercised as verdict:
        return _Finding(case, Outcome.NOT_EXERCISED, str(verdict), ran=False)
    except context.Refused as refusal:
        return _Finding(case, Outcome.SKIP, f"the op refuses it: {refusal}", ran=False)
    except context.OpRaised as raised:
        return _Finding(case, Outcome.FAIL, str(raised), context._own_traceback(raised.error))
    except specs.SpecError as error:
        return _Finding(case, Outcome.ERROR, f"the spec is at fault: {error}", traceback.format_exc())
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        text = f"{check.id} itself failed, which says nothing of the op: {context.describe_error(error)}"
        return _Finding(case, Outcome.ERROR, text, traceback.format_exc())
    return _Finding(case, Outcome.PASS)


def _row(check: Check, sample: str, findings: list[_Finding], seconds: float) -> Row:
    """One row for a sample: the worst of its cases, shown on the smallest of those."""
    if not findings:
        return Row(sample, Outcome.SKIP, f"no {_groups(check)} variant can be made of this sample", seconds)
    outcome = worst(f.outcome for f in findings)
    found = [f for f in findings if f.outcome is outcome]
    ran = sum(f.ran for f in findings)
    if outcome is Outcome.PASS:
        notes = dict.fromkeys(f.message for f in found if f.message)
        return Row(sample, outcome, "\n".join(notes), seconds, ran)
    smallest = min(found, key=_size)
    message = smallest.message
    if outcome in (Outcome.SKIP, Outcome.NOT_EXERCISED):
        counted = Counter(f.message for f in found)
        return Row(sample, outcome, counted.most_common(1)[0][0], seconds, ran)
    if smallest.case is not None:
        lines = message.splitlines()
        where = [f"call    {smallest.case.describe()}"]
        if smallest.case.variant:
            where.insert(0, f"input   {smallest.case.label}")
        if smallest.reduced_from is not None:
            where.append(f"reduced from {smallest.reduced_from.describe()}")
        lines[1:1] = where
        others = [f.case.variant or "the sample itself" for f in found if f is not smallest and f.case is not None]
        if others:
            more = f" and {len(others) - 4} more" if len(others) > 4 else ""
            lines.append(f"also    {', '.join(others[:4])}{more}")
        message = "\n".join(lines)
    return Row(sample, outcome, message, seconds, ran, smallest.detail)


def _groups(check: Check) -> str:
    return " or ".join(g for g in check.variants if g != "sample")


def _size(finding: _Finding) -> tuple[bool, int]:
    """The sample itself first, then the variant with the fewest elements."""
    if finding.case is None:
        return False, 0
    return bool(finding.case.variant), sum(prod(tensors.sizes(t)) for _, t in finding.case.leaves())
