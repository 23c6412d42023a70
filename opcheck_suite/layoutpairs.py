"""The strides that a kernel receives from Inductor's code, beside those that it receives in eager."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from opcheck_suite import compiling, inductor, programs
from opcheck_suite.context import Context
from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case
from opcheck_suite.situations import LAYOUTS, Situation, turned

Pair = tuple[Situation, inductor.Call, inductor.Call]
#: A situation, the calls made in it under Inductor, and those in eager.
Calls = tuple[Situation, Sequence[inductor.Call], Sequence[inductor.Call]]


@dataclasses.dataclass(frozen=True, eq=False)
class Refusal:
    """A call that Inductor cannot compile with the strides that it chose, and AOTAutograd can."""

    situation: Situation
    error: BaseException


def changed(ctx: Context, case: Case) -> tuple[list[Pair], list[Refusal], int]:
    """Calls that arrive with other strides than in eager: the situation, the call under Inductor, and that in eager.

    Also calls that Inductor cannot compile, and how many were looked at. Where Inductor does not promise to keep
    strides, it is tempted to change them.
    """
    found: list[Pair] = []
    refused: list[Refusal] = []
    count = 0
    for calls in (*_of_parity(ctx, case), *_tempted(ctx, case)):
        if isinstance(calls, Refusal):
            refused.append(calls)
            continue
        situation, mine, theirs = calls
        if not theirs:  # in eager another kernel stands in for the op
            continue
        count += len(theirs)
        left = {call.key for call in theirs}
        found += [(situation, call, theirs[0]) for call in mine if call.key not in left]
    return found, refused, count


def _of_parity(ctx: Context, case: Case) -> Iterator[Calls]:
    """The calls of the program that parity has compiled anyway."""
    kind = programs.under_inductor(ctx, case)
    got = programs.compiled(ctx, case, kind, "inductor")
    if got.error is not None or not got.calls:
        return
    program = programs.eager(ctx, case, kind)
    yield program.situations[0], got.calls, programs.recorded(ctx, case, program)


def _tempted(ctx: Context, case: Case) -> Iterator[Calls | Refusal]:
    if inductor.keeps_strides(ctx.info.op):
        return
    run = ctx.require(case)
    packed = [t.detach().contiguous() for _, t in case.leaves()]
    inverse = [turned(t) for t in packed]
    if [inductor.layout(t) for t in packed] == [inductor.layout(t) for t in inverse]:
        return

    def answer() -> Any:
        return tensors.map_tensors(lambda t: t.detach().clone(), run.out)

    for situation, given, received in zip(LAYOUTS, (inverse, packed), (packed, inverse), strict=True):
        accepted = ctx.attempt(relaid(case, [t.stride() for t in received])) is not None
        if not accepted or not situation.applies(case):
            continue
        call = programs.on_tensors(case, ctx.info.op)
        plain = programs.function(call, [situation], programs.facts(ctx, case))
        mine = inductor.Recorder(ctx.info.op, answer=answer)
        theirs = inductor.Recorder(ctx.info.op, answer=answer)
        try:
            with theirs:
                plain([[t.clone() for t in given]])
        except inductor.Unanswered:  # there is no call of the op
            return
        error = _compile(plain, given, inductor.recording(mine))
        if error is None:
            yield situation, mine.calls, theirs.calls
        elif _compile(plain, given, "aot_eager") is None:
            yield Refusal(situation, error)


def _compile(program: programs.Function, given: list[torch.Tensor], backend: Any) -> BaseException | None:
    """Compile a program and call it; what that raised."""
    with compiling.fresh(), inductor.hollow_kernels():
        try:
            torch.compile(program, backend=backend, fullgraph=True)([[t.clone() for t in given]])
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:
            return error
    return None


def relaid(case: Case, strides: Sequence[tuple[int, ...]]) -> Case:
    """The case with its tensors in other strides."""
    changes = {}
    for (name, t), stride in zip(case.leaves(), strides, strict=True):
        changes[name] = torch.empty_strided(t.shape, stride, dtype=t.dtype, device=t.device).copy_(t.detach())
    text = ", ".join(f"{name} {tuple(t.stride())}" for name, t in changes.items())
    return case.replace(changes, variant=f"strides {text}", group="strides")
