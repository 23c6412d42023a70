"""Calls that differ from a case in the values of its tensors alone, and that the op tells apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import torch

from opcheck_suite.context import Context
from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case

#: As many as a check has a use for.
_MOST = 3


def of(ctx: Context, case: Case) -> list[Case]:
    """At most three calls with other values, whose results are not those of the case. Shapes, dtypes and all arguments
    that are no tensors are the case's.

    Empty where the op refuses other values, or answers them all alike.
    """
    return ctx.memo(("alternatives", case.key), lambda: _find(ctx, case))


def write(case: Case, inputs: tensors.Args, other: Case) -> bool:
    """Write another case's values into the tensors of a call in place; False where a tensor does not let itself be
    written to.
    """
    values = dict(other.leaves())
    for name, t in case.leaves(inputs):
        packed = tensors.strided(t) and all(
            step > 0 for size, step in zip(t.shape, t.stride(), strict=True) if size > 1
        )
        if not packed or t.shape != values[name].shape:
            return False
        with torch.no_grad():  # the op may have made it require grad
            t.copy_(values[name])
    return True


def _find(ctx: Context, case: Case) -> list[Case]:
    found: list[Case] = []
    expected = ctx.require(case).results()
    for other in _candidates(ctx, case):
        if len(found) == _MOST or (found and other.uncertain):
            break
        run = ctx.attempt(other)
        if run is not None and ctx.compare(run.results(), expected) is not None:
            found.append(other)
    return found


def _candidates(ctx: Context, case: Case) -> Iterator[Case]:
    """The spec's own samples first: nothing is as surely a valid call."""
    kind = _kind(case.bound())
    yield from (other for other in ctx.samples if other is not case and _kind(other.bound()) == kind)
    yield from _smaller(case)
    yield from _reversed(case)


def _smaller(case: Case) -> Iterator[Case]:
    """All numbers nearer to zero. They keep signs, order and most ranges, and point at nothing beyond what they did."""
    chosen = [(n, t.detach()) for n, t in case.leaves() if _is_measure(t)]
    if chosen:
        for name, factor in (("halved", 0.5), ("times 3/4", 0.75), ("times 1/4", 0.25)):
            yield _changed(case, {n: t * factor for n, t in chosen}, name)


def _reversed(case: Case) -> Iterator[Case]:
    """All tensors from back to front, for ops that do not care about scale, except integers that may be positions.

    What stands side by side then may not belong together, so that the op may rightly fail.
    """
    small = (torch.bool, torch.uint8, torch.int8)
    chosen = [(n, t.detach()) for n, t in case.leaves() if _is_measure(t) or (tensors.strided(t) and t.dtype in small)]
    if any(t.numel() > 1 for _, t in chosen):
        turned = _changed(case, {n: t.flip(tuple(range(t.dim()))) for n, t in chosen}, "reversed")
        yield dataclasses.replace(turned, uncertain=True)


def _is_measure(t: torch.Tensor) -> bool:
    """Whether a tensor holds numbers that may as well be others: not integers, and not of one byte."""
    return tensors.numeric(t) and t.element_size() > 1


def _changed(case: Case, changes: dict[str, torch.Tensor], name: str) -> Case:
    return case.replace(changes, variant=f"{case.variant}, {name}" if case.variant else name, group="content")


def _kind(value: Any) -> Any:
    """All of an argument but the values of tensors."""
    if isinstance(value, torch.Tensor):
        return "tensor", tuple(value.shape), value.dtype, value.layout, value.device
    if isinstance(value, dict):
        return {name: _kind(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_kind(item) for item in value]
    return type(value).__name__, repr(value)
