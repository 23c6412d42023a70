"""What Inductor's code does for an op: kernels, buffers, and copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from opcheck_suite import compiling, inductor, programs
from opcheck_suite.context import Context, describe_error
from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case
from opcheck_suite.situations import can_be_negated, negated, pointwise

#: Calls that move no data.
_FREE = {f"aten::{name}" for name in ("view", "as_strided", "empty", "detach", "t", "transpose", "slice", "select")}

Program = Callable[[list[torch.Tensor]], Any]


def between(ctx: Context, case: Case, op: Callable[..., Any]) -> str:
    """Kernels, buffers and bytes of a function that calls ``op`` between pointwise operations, in words."""
    call = programs.on_tensors(case, op)
    written = programs.facts(ctx, case).written
    fit = can_be_negated(case)

    def program(xs: list[torch.Tensor]) -> Any:
        ys = [negated(x) for x in xs] if fit else xs
        return pointwise(call(ys)), [pointwise(ys[n]) for n in written]

    seen = _run(ctx, case, program)
    if isinstance(seen, str):
        return seen
    work, recorder = seen
    others = [name for name, _ in recorder.others if name.partition(".")[0] not in _FREE]
    total = work.kernels + len(others) + len(recorder.calls)
    return (
        f"{number(total, 'kernel')} ({work.kernels} generated), {number(work.buffers, 'buffer')} "
        f"of {work.bytes:,} bytes allocated by Inductor"
    )


def copies(ctx: Context, case: Case) -> dict[str, str]:
    """The copies that Inductor makes around one call of an op that writes, in words, by what it is called on."""
    call = programs.on_tensors(case, ctx.info.op)
    written = programs.facts(ctx, case).written

    def argument(xs: list[torch.Tensor]) -> Any:
        return call(xs)

    def intermediate(xs: list[torch.Tensor]) -> Any:
        ys = _with(xs, written, [negated(xs[n]) for n in written])
        return call(ys), [ys[n] for n in written]

    def part(xs: list[torch.Tensor]) -> Any:
        bases = [torch.stack([negated(xs[n]), negated(xs[n])]) for n in written]
        return call(_with(xs, written, [base[1] for base in bases])), bases

    size = sum(t.numel() * t.element_size() for n, (_, t) in enumerate(case.leaves()) if n in written)
    programs_of: tuple[tuple[str, Program, int, int], ...] = (
        ("on an argument of the function", argument, 0, 0),
        ("on an intermediate", intermediate, len(written), size),
        ("on a part of an intermediate", part, len(written), 2 * size),
    )
    found = {}
    for name, program, buffers, size in programs_of:
        seen = _run(ctx, case, program)
        if isinstance(seen, str):
            found[name] = seen
        elif (made := seen[0].buffers - buffers) > 0:
            found[name] = f"{number(made, 'copy', 'copies')} of {seen[0].bytes - size:,} bytes"
        else:
            found[name] = "in place"
    return found


def _with(xs: list[torch.Tensor], places: Sequence[int], values: list[torch.Tensor]) -> list[torch.Tensor]:
    ys = list(xs)
    for n, value in zip(places, values):  # noqa: B905 - as plain as can be for Dynamo
        ys[n] = value
    return ys


def _run(ctx: Context, case: Case, program: Program) -> tuple[inductor.Work, inductor.Recorder] | str:
    """Compile a program and run its code without the op and without the generated kernels; or why that cannot be."""
    out = ctx.require(case).out
    recorder = inductor.Recorder(ctx.info.op, answer=lambda: tensors.map_tensors(lambda t: t.detach().clone(), out))
    xs = [t for _, t in case.leaves(case.inputs())]
    with compiling.fresh(), inductor.hollow_kernels() as work:
        if work is None:
            return "not counted in this version of torch"
        try:
            torch.compile(program, backend=inductor.recording(recorder), fullgraph=True)(xs)
        except (KeyboardInterrupt, MemoryError):
            raise
        except inductor.Unanswered as error:
            return f"not counted: {error} is called in the op's place, and cannot be without values"
        except BaseException as error:
            return f"does not compile: {describe_error(error)}"
        return work, recorder


def number(count: int, word: str, words: str = "") -> str:
    """A count with its noun: ``1 kernel``, ``2 kernels``."""
    return f"{count} {word if count == 1 else words or word + 's'}"
