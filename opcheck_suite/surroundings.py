"""Whether a call keeps to the memory of its arguments.

At sizes that do not fit each other a kernel that checks nothing reads what lies behind an argument. It returns, but
what it returns says nothing: another call, or a compiler, that lays out memory otherwise gets something else.
"""

from __future__ import annotations

import torch

from opcheck_suite.context import Context
from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case

#: Elements before and, at least, behind an argument: enough to keep its address as aligned as memory of its own.
_ROOM = 64


def reads_beyond(ctx: Context, case: Case) -> bool:
    """Whether results depend on what lies around the arguments in memory, once for all checks.

    False where the op does not take arguments that lie within a larger buffer, or its values are random.
    """

    def make() -> bool:
        if not ctx.deterministic:
            return False
        runs = [ctx.attempt(_among(case, value)) for value in (0, 1)]  # small, since they may be taken for positions
        first, second = (run.results() if run is not None else None for run in runs)
        return first is not None and second is not None and ctx.compare(second, first) is not None

    return ctx.memo(("reads beyond", case.key), make)


def _among(case: Case, value: int) -> Case:
    def placed(t: torch.Tensor) -> torch.Tensor:
        if not tensors.strided(t) or not t.is_contiguous():
            return t
        flat = torch.full((2 * t.numel() + 2 * _ROOM,), value, dtype=t.dtype, device=t.device)
        inner = flat[_ROOM : _ROOM + t.numel()].view(t.shape)
        return inner.copy_(t.detach())

    return case.map(placed, variant=f"{case.variant}, among {value}s", group=case.group)
