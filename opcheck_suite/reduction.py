"""Reduce a failing sample that a Hypothesis strategy drew to the smallest that fails in the same way."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

from opcheck_suite import isolate, specs
from opcheck_suite.context import Context
from opcheck_suite.inputs import cases, drawing
from opcheck_suite.inputs.cases import Case
from opcheck_suite.registry import UsageError

#: At most so many samples are tried for one failure, and for at most so many seconds. An op with its variants takes a
#: few milliseconds, one that has to be compiled a few seconds.
MOST, SECONDS = 300, 10.0

#: ``(context, sample) -> whether the check fails there as it did``.
Fails = Callable[[Context, Case], bool]


def reduce(ctx: Context, sample: Case, fails: Fails) -> tuple[Context, Case] | None:
    """The smallest sample that the spec's strategy can draw and that ``fails``, in a context of its own.

    None where no strategy drew the sample, or it is the smallest already. Every sample that is tried is announced as a
    step of ``reduce``: one that ends the process says nothing of the one that failed.
    """
    strategy = ctx.source
    if not drawing.is_strategy(strategy):
        return None
    number = [case.sample for case in ctx.samples].index(sample.sample)
    start = specs.drawn(strategy, tier=ctx.tier, seed=ctx.seed)[number]

    def alone(value: Any) -> tuple[Context, Case]:
        made = dataclasses.replace(specs.of_drawn(value, ctx.info, number), name=sample.sample)
        own = Context(
            dataclasses.replace(ctx.spec, samples=[made]),
            ctx.info,
            device=ctx.device,
            dtype=ctx.dtype,
            seed=ctx.seed,
            tier=ctx.tier,
            announce=lambda _, key, group: ctx.announce_step("reduce", key, group),
        )
        return own, cases.of_sample(ctx.info, made, ctx.device)

    def tried(value: Any) -> bool:
        try:
            return fails(*alone(value))
        except (UsageError, specs.SpecError):  # it is no sample: nothing is said of the op
            return False

    found = drawing.smallest(strategy, tried, start=start, seed=ctx.seed, most=MOST, seconds=SECONDS)
    if found is None or drawing.fingerprint(found) == drawing.fingerprint(start.value):
        return None
    return alone(found)


def ends_process(own: Context, sample: Case) -> bool:
    """Whether the op, called on a sample, ends the process that it runs in, which here is one of its own."""
    own.announce("eager", sample)

    def serve(_: isolate.Commands, send: isolate.Send) -> None:
        own.call_eager(sample)
        send({"alive": True})

    child = isolate.Child(serve, memory_limit=0)
    try:
        child.receive(timeout=SECONDS)
    except EOFError:
        return True
    finally:
        child.kill()
    return False


def kind(message: str) -> str:
    """The part of a message that stays the same for smaller inputs: its first line up to the first value."""
    first = (message.splitlines() or [""])[0]
    return re.split(r"[\[(:;\d]", first, maxsplit=1)[0].strip()
