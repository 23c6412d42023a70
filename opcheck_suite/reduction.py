"""Make a failing sample that a strategy drew as small as it still fails in the same way.

The strategy knows how arguments belong together, so Hypothesis tries smaller values of all of them, not sizes alone. As
in `shrinking`, that is done in copies of the process and never decides a verdict.
"""

from __future__ import annotations

import dataclasses
import math
import time
from typing import Any

from opcheck_suite import isolate, specs
from opcheck_suite.context import Context
from opcheck_suite.inputs import cases, drawing, variants
from opcheck_suite.inputs.cases import Case
from opcheck_suite.model import Check, Outcome, Result
from opcheck_suite.registry import UsageError
from opcheck_suite.shrinking import TOO_DEAR, Fails, Smaller, kind

#: For one failure: how many samples are tried, and for how long.
MOST, SECONDS = 300, 3.0


def shrink(ctx: Context, check: Check, sample: Case, case: Case, message: str, fails: Fails) -> Smaller | None:
    """The smallest sample that the spec's strategy can draw, or the variant of it, on which the check fails with a like
    message; None where ``case``, which is the sample or a variant of it, is that already.
    """
    if check.family in TOO_DEAR or not possible(ctx):
        return None
    strategy, start = ctx.source, _start(ctx, sample)

    def work(send: isolate.Send) -> None:
        def holds(value: Any) -> bool:
            found = _failing(ctx, check, sample, case, message, fails, value)
            send({} if found is None else {"variant": found[0].variant, "message": found[1], "detail": found[2]})
            return found is not None

        drawing.smallest(strategy, holds, start=start, seed=ctx.seed, most=MOST, seconds=SECONDS)

    tried = isolate.aside(work, seconds=SECONDS, waiting=lambda: ctx.announce("shrink", case))
    if not any(tried):
        return None
    # the copy has drawn the value: with the same answers it is drawn here as well
    answers = iter(tried)
    found = drawing.smallest(
        strategy, lambda _: bool(next(answers)), start=start, seed=ctx.seed, most=len(tried), seconds=math.inf
    )
    last = next(answer for answer in reversed(tried) if answer)
    made = _case(ctx, sample, found)
    if last["variant"]:
        made = next(v for v in variants.derive(made, case.group) if v.variant == last["variant"])
    return None if made.describe() == case.describe() else Smaller(made, last["message"], last["detail"])


def smallest_death(ctx: Context, sample: Case) -> Case | None:
    """The smallest sample that the spec's strategy can draw on which the op ends its process, as on this one."""
    if not possible(ctx):
        return None

    def dies(value: Any) -> bool:
        made = _case(ctx, sample, value)
        own = ctx.alone([made])

        def work(send: isolate.Send) -> None:
            own.call_eager(made)
            send({"alive": True})

        begun = time.monotonic()
        alive = isolate.aside(work, seconds=SECONDS, waiting=lambda: ctx.announce("shrink", sample))
        return not alive and time.monotonic() - begun < SECONDS  # one that hangs does not die

    found = drawing.smallest(
        ctx.source, dies, start=_start(ctx, sample), seed=ctx.seed, most=MOST // 10, seconds=SECONDS
    )
    return None if found is None else _case(ctx, sample, found)


def of_death(result: Result, sample: str, call: str) -> Result:
    """The crash on a drawn sample with the smallest call that ends the process like it; another result as it is."""
    said = result.message.splitlines()
    if result.sample != sample or result.outcome is not Outcome.CRASH or not said[-1].startswith("call    "):
        return result
    said[-1:] = [f"call    {call}", said[-1].replace("call    ", "reduced from ")]
    return dataclasses.replace(result, message="\n".join(said))


def possible(ctx: Context) -> bool:
    """Whether samples are drawn from a strategy, and copies of the process can try smaller ones."""
    return drawing.is_strategy(ctx.source) and ctx.device == "cpu" and isolate.available()


def _start(ctx: Context, sample: Case) -> drawing.Drawn:
    found = specs.drawn(ctx.source, tier=ctx.tier, seed=ctx.seed)
    return next(one for n, one in enumerate(found) if specs.of_drawn(one.value, ctx.info, n).name == sample.sample)


def _case(ctx: Context, sample: Case, value: Any) -> Case:
    """A drawn value under the name of the sample in whose place it is tried."""
    made = dataclasses.replace(specs.of_drawn(value, ctx.info, 0), name=sample.sample)
    return cases.of_sample(ctx.info, made, ctx.device)


def _failing(
    ctx: Context, check: Check, sample: Case, case: Case, message: str, fails: Fails, value: Any
) -> tuple[Case, str, str] | None:
    """A drawn value, or a variant of it, on which the check fails in the same way; its message and detail."""
    try:
        made = _case(ctx, sample, value)
    except (UsageError, specs.SpecError):  # it is no sample: nothing is said of the op
        return None
    own = ctx.alone([made])
    if not check.failing_samples and own.attempt(made) is None:
        return None
    for one in own.variants(made, case.group) if case.group else [made]:
        if one.variant and own.attempt(one) is None:
            continue
        failed = fails(own, one)
        if failed is not None and kind(failed[0]) == kind(message):
            return one, *failed
    return None
