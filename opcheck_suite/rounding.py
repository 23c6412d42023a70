"""Whether rounding explains how an op differs from its reference.

Fixed tolerances are too narrow for sums of many terms and for terms that cancel, and too wide for everything else. Here
the reference itself says how much rounding its function allows: it is evaluated in float64, on the inputs as they are
and on inputs moved by the rounding error of their dtype, up or down at random. A result is right if it is the right one
for inputs as near as that (backward stability; Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition,
1.5).
"""

from __future__ import annotations

import math
from typing import Any

import torch

from opcheck_suite import compare
from opcheck_suite.context import Context
from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case

#: How often inputs are moved.
_MOVES = 8
#: How many times further from the exact result than a moved one a result may be, by the size of a number in bits. In
#: float32 the roundings of many terms add up; kernels for half precision are expected to add in float32.
_ROOM = {16: 4, 32: 16}

_NARROW = (torch.float16, torch.bfloat16, torch.float32)


def explains(ctx: Context, case: Case, actual: list[Any], expected: list[Any]) -> bool:
    """Whether results are as near to the exact ones as results in their precision can be asked to be.

    ``expected`` are those of the reference, which outputs that are not floating-point must equal. False as well where
    the reference does not take float64.
    """
    if len(actual) != len(expected):
        return False
    wide, narrow = _widened(case), [t.dtype for _, t in case.leaves() if t.dtype in _NARROW]
    if not narrow:
        return False
    step = max(torch.finfo(dtype).eps for dtype in narrow)
    room = _ROOM[min(torch.finfo(dtype).bits for dtype in narrow)]
    terms = sum(t.numel() for _, t in case.leaves() if t.dtype in _NARROW)
    exact = _reference(ctx, wide)
    moved = [_reference(ctx, _moved(wide, case, step, seed)) for seed in range(_MOVES)]
    if exact is None or any(m is None or len(m) != len(exact) for m in moved) or len(exact) != len(actual):
        return False
    for n, (got, told, true) in enumerate(zip(actual, expected, exact, strict=True)):
        if not isinstance(got, torch.Tensor) or not got.is_floating_point():
            if ctx.compare([got], [told]) is not None:
                return False
        else:
            # one after the other, so many terms lose the square root of their number in roundings
            sums = math.sqrt(max(1.0, terms / max(1, got.numel()))) / 16 if room > 4 else 1.0
            if not _near(got, told, true, [m[n] for m in moved if m is not None], room * max(1.0, sums)):
                return False
    return True


def _widened(case: Case) -> Case:
    return case.map(lambda t: t.detach().double() if t.dtype in _NARROW else t, variant=case.variant, group="float64")


def _moved(wide: Case, case: Case, step: float, seed: int) -> Case:
    """The wide case with every number that was narrow moved by one rounding error: all up first, then at random."""
    generator = torch.Generator().manual_seed(seed)
    narrow = {name for name, t in case.leaves() if t.dtype in _NARROW}
    changes = {}
    for name, t in wide.leaves():
        if name in narrow:
            signs = torch.randint(0, 2, t.shape, generator=generator).to(t.device) * 2 - 1 if seed else 1
            changes[name] = t * (1 + step * signs)
    return wide.replace(changes, variant=wide.variant, group="float64")


def _reference(ctx: Context, case: Case) -> list[Any] | None:
    """What the reference makes of a case, not remembered since moved inputs share a name; None where it raises."""
    try:
        return ctx.call_reference(case)
    except Exception:
        return None


def _near(got: torch.Tensor, told: Any, true: Any, moved: list[Any], times: float) -> bool:
    """Whether one output is near enough to the exact one, element by element: ``times`` as far as moved ones are."""
    every = [told, true, *moved]
    if not all(isinstance(t, torch.Tensor) and tensors.strided(t) and t.shape == got.shape for t in every):
        return False
    if got.dtype != told.dtype:
        return False
    a, r, t = (x.detach().double() for x in (got, told, true))
    room = torch.stack([(m.detach().double() - t).abs() for m in moved]).nan_to_num(0.0).amax(0)
    judged = torch.isfinite(t) & (t.abs() <= torch.finfo(got.dtype).max)
    if not judged.any():
        return False
    room = torch.maximum(room, room[judged].median())
    rtol, atol = compare.default_tolerances(got.dtype)
    near = (a - t).abs() <= times * room + atol + rtol * t.abs()
    # beyond what the dtype can hold there is nothing to judge but that both say so; an exact infinity is one
    beyond = ~judged & ~t.isinf() & ~torch.isfinite(a) & ~torch.isfinite(r)
    same = (a == r) | (a.isnan() & r.isnan()) | beyond
    return bool((near & judged | same).all())
