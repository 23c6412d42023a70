"""Real and fake outputs side by side, for the checks that compare them."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from opcheck_suite.context import Context
from opcheck_suite.inputs.cases import Case


@dataclasses.dataclass(frozen=True, eq=False)
class Pair:
    """One output of the op, and the fake kernel's output for it."""

    name: str
    real: Any
    fake: Any


def pairs(ctx: Context, case: Case, *, report: bool = False) -> list[Pair]:
    """The outputs of a case, real and fake.

    Ends the check where there is nothing to compare: the op refuses the case, or the fake kernel raises, which
    ``fake.runs`` reports, or number or kind of the outputs differ, which ``fake.shape`` does: it asks with ``report``.
    """
    run = ctx.require(case)
    if case.uncertain and case.group in ("empty", "ones"):
        ctx.skip("the op may rely on the size that was reduced")
    fake = ctx.fake(case)
    if fake.unsupported:
        ctx.skip(f"fake tensors cannot stand for this input: {fake.unsupported}")
    if fake.error is not None:
        ctx.not_exercised("the fake kernel raises: see fake.runs")
    real_leaves, fake_leaves = flat(run.outputs), flat(fake.outputs)
    text = ""
    if [n for n, _ in real_leaves] != [n for n, _ in fake_leaves]:
        text = f"the op returns {_kinds(run.outputs)}, the fake kernel {_kinds(fake.outputs)}"
    found = [Pair(n, r, f) for (n, r), (_, f) in zip(real_leaves, fake_leaves, strict=False)]
    for pair in found:
        if isinstance(pair.real, torch.Tensor) != isinstance(pair.fake, torch.Tensor):
            text = text or f"{pair.name} is {_kind(pair.real)}, with fake tensors {_kind(pair.fake)}"
    if text and report:
        ctx.fail(text)
    if text:
        ctx.not_exercised("the fake kernel returns other outputs: see fake.shape")
    return found


def tensor_pairs(ctx: Context, case: Case, *, report: bool = False) -> list[Pair]:
    """As `pairs`, tensors only."""
    found = pairs(ctx, case, report=report)
    tensors = [p for p in found if isinstance(p.real, torch.Tensor)]
    if not tensors:
        ctx.skip("the op returns no tensor here")
    return tensors


def flat(outputs: list[Any]) -> list[tuple[str, Any]]:
    """Outputs by name; members of lists are called ``output 0[1]``."""
    found: list[tuple[str, Any]] = []
    for n, value in enumerate(outputs):
        name = f"output {n}" if len(outputs) > 1 else "the output"
        if isinstance(value, list | tuple):
            found += [(f"{name}[{i}]", v) for i, v in enumerate(value)]
        else:
            found.append((name, value))
    return found


def _kinds(outputs: list[Any]) -> str:
    return ", ".join(_kind(v) for v in outputs) or "nothing"


def _kind(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    return "None" if value is None else f"a {type(value).__name__.removeprefix('Fake')}"
