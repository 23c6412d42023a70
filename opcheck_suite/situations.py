"""The situations within a function in which compilers go wrong, each as a small program around an op.

Dynamo traces these functions: they are kept plain, and every operation in them is paid for in each compilation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case

#: An op as a function of the tensors among its arguments; the others are constants.
OnTensors = Callable[[Sequence[torch.Tensor]], Any]
#: What a situation returns: outputs, and the intermediates that the op may have written to.
Made = tuple[Any, Sequence[torch.Tensor]]


class Facts(NamedTuple):
    """What a program needs to know of an op beforehand."""

    chained: bool
    """Whether its first output can be the first of the tensors in another call."""
    written: tuple[int, ...]
    """Which of the tensors it writes to."""


#: Gets an op, and tensors to call it on.
Body = Callable[[OnTensors, list[torch.Tensor], Facts], Made]


def always(_: Case) -> bool:
    """Any case can be called so."""
    return True


@dataclasses.dataclass(frozen=True, eq=False)
class Situation:
    """One way to call an op within a function."""

    name: str
    """Read after "the op, called": ``alone``, ``twice in a loop``."""
    body: Body
    applies: Callable[[Case], bool] = always
    """Whether a case can be called so."""
    gradients: bool = False
    """Whether it is run with arguments that require grad, where the op has a formula."""
    prepare: Callable[[torch.Tensor], None] | None = None
    """Done to each tensor before the function is called."""
    instead_of: Body | None = None
    """Only used where the op refuses this other situation, or for gradients that the other does not ask for."""


#: dtypes that torch cannot negate; those that it does not have are left out.
_NOT_NEGATED = {
    getattr(torch, name)
    for name in (
        *("uint16", "uint32", "uint64", "float4_e2m1fn_x2"),
        *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
    )
    if hasattr(torch, name)
}


def negated(x: torch.Tensor) -> torch.Tensor:
    """Other values of the same dtype; negated once more, they are those of x bit by bit."""
    return x.logical_not() if x.dtype == torch.bool else x.neg()


def negate(x: torch.Tensor) -> None:
    """As `negated`, in place."""
    x.logical_not_() if x.dtype == torch.bool else x.neg_()


def _each(fn: Callable[[torch.Tensor], torch.Tensor], out: Any) -> Any:
    if isinstance(out, torch.Tensor):
        return fn(out)
    if isinstance(out, tensors.SEQUENCES):
        return [_each(fn, one) for one in out]
    return out


def pointwise(out: Any) -> Any:
    """A pointwise operation on each output."""
    return _each(lambda t: t if t.dtype in _NOT_NEGATED else negated(t), out)


# -- which cases they fit


def _turnable(case: Case) -> bool:
    """Whether arguments can be views: Dynamo refuses ``out=`` tensors that are not contiguous."""
    return _plain(case) and not (set(case.info.mutated) & _keyword_only(case))


def _keyword_only(case: Case) -> set[str]:
    return {a.name for a in case.info.schema.arguments if a.kwarg_only}


def _plain(case: Case) -> bool:
    leaves = [t for _, t in case.leaves()]
    return bool(leaves) and all(tensors.strided(t) for t in leaves)


def can_be_negated(case: Case) -> bool:
    """Whether `negated` and `negate` take all tensors of a case."""
    return _plain(case) and all(t.dtype not in _NOT_NEGATED for _, t in case.leaves())


def _writes(case: Case) -> bool:
    return can_be_negated(case) and bool(case.info.mutated)


def _only_has_effects(case: Case) -> bool:
    return can_be_negated(case) and not case.info.mutated


def _writes_one_of_several(case: Case) -> bool:
    leaves = [t for _, t in case.leaves()]
    alike = sum(t.shape == leaves[0].shape and t.dtype == leaves[0].dtype for t in leaves) if leaves else 0
    return _plain(case) and bool(case.info.mutated) and alike > 1


def _has_results_to_leave(case: Case) -> bool:
    returns = case.info.schema.returns
    # Where a number is all that is used, it may be a constant to the compiler, and the call is rightly dropped.
    kept = case.info.mutated or (len(returns) > 1 and "Tensor" in str(returns[-1].type))
    return _plain(case) and bool(returns) and bool(kept)


# -- for parity


def _alone(op: OnTensors, xs: list[torch.Tensor], _: Facts) -> Made:
    return op(xs), ()


def _loop(op: OnTensors, ys: list[torch.Tensor], chained: bool) -> list[Any]:
    outs = []
    for _ in range(2):
        out = op(ys)
        outs.append(out)
        if chained:
            ys = [out[0] if isinstance(out, tensors.SEQUENCES) else out, *ys[1:]]
    return outs


def _twice(op: OnTensors, xs: list[torch.Tensor], facts: Facts) -> Made:
    return _loop(op, xs, facts.chained), ()


def _transposed(op: OnTensors, xs: list[torch.Tensor], facts: Facts) -> Made:
    """Each tensor the second of two that lie side by side, its last two dimensions exchanged in memory."""
    bases = [torch.stack([x.mT, x.mT] if x.dim() > 1 else [x, x]) for x in xs]
    return _loop(op, [base[1].mT if base.dim() > 2 else base[1] for base in bases], facts.chained), bases


def _sliced(op: OnTensors, xs: list[torch.Tensor], facts: Facts) -> Made:
    bases = [torch.stack([x, x]) for x in xs]
    return _loop(op, [base[1] for base in bases], facts.chained), bases


def _overwritten(op: OnTensors, xs: list[torch.Tensor], _: Facts) -> Made:
    with torch.no_grad():
        for x in xs:
            negate(x)
        out = op(xs)
        for x in xs:
            negate(x)
    return out, ()


def _between(op: OnTensors, xs: list[torch.Tensor], _: Facts) -> Made:
    ys = [negated(x) for x in xs]
    for y in ys:
        negate(y)
    out = pointwise(op(ys))
    for y in ys:
        negate(y)
    return out, ys


def _unused(op: OnTensors, xs: list[torch.Tensor], _: Facts) -> Made:
    out = op(xs)
    return (out[-1] if isinstance(out, tensors.SEQUENCES) and len(out) > 1 else None), ()


def _side_by_side(op: OnTensors, xs: list[torch.Tensor], _: Facts) -> Made:
    """All tensors of the first one's shape and dtype as rows of one."""
    alike = [n for n, x in enumerate(xs) if x.shape == xs[0].shape and x.dtype == xs[0].dtype]
    base = torch.stack([xs[n] for n in alike])
    ys = list(xs)
    for row, n in enumerate(alike):
        ys[n] = base[row]
    return op(ys), [base]


ALONE = Situation("alone", _alone, gradients=True, instead_of=_overwritten)

PARITY = (
    Situation(
        "twice in a loop, on transposed views of intermediates",
        _transposed,
        applies=_turnable,
        gradients=True,
    ),
    Situation(
        "twice in a loop, on slices of intermediates",
        _sliced,
        applies=_turnable,
        gradients=True,
        instead_of=_transposed,
    ),
    Situation(
        "under no_grad, on arguments that are overwritten before and after",
        _overwritten,
        applies=can_be_negated,
        prepare=negate,
    ),
    Situation(
        "between pointwise operations, on intermediates that are overwritten before and after",
        _between,
        applies=can_be_negated,
    ),
    ALONE,
    Situation("with results that are not used", _unused, applies=_has_results_to_leave),
    Situation("on rows of one tensor, side by side", _side_by_side, applies=_writes_one_of_several),
)

#: Under Inductor, where a call costs several times more. What neighbours of other kinds show, AOTAutograd shows too.
INDUCTOR = (Situation("twice in a loop", _twice, gradients=True),)


# -- for effects


def _read(x: torch.Tensor) -> torch.Tensor:
    """Its values now. A 0-d tensor is read as a vector: Inductor reads one on the CPU where the value is used, after
    whatever is written to it in between, by an op or by ``mul_``.
    """
    return negated(x if x.dim() else x.reshape(1))


def _read_between(op: OnTensors, xs: list[torch.Tensor], facts: Facts) -> Made:
    """Writes and reads of the arguments in turn."""
    seen = [_read(xs[n]) for n in facts.written]
    op(xs)
    seen += [_read(xs[n]) for n in facts.written]
    op(xs)
    return seen + [_read(xs[n]) for n in facts.written], ()


def _read_through(op: OnTensors, xs: list[torch.Tensor], facts: Facts) -> Made:
    """As `_read_between`, where the op writes to parts of intermediates and the whole is read."""
    bases = [torch.stack([xs[n], xs[n]]) for n in facts.written]
    seen = []
    for row in range(2):
        ys = list(xs)
        for base, n in zip(bases, facts.written):  # noqa: B905 - as plain as can be for Dynamo
            ys[n] = base[row]
        op(ys)
        seen += [negated(base) for base in bases]
    return seen, bases


def _in_order(op: OnTensors, xs: list[torch.Tensor], _: Facts) -> Made:
    """The results are left; what matters is that there are two calls, on these values and in this order."""
    op(xs)
    ys = [negated(x) if x.is_floating_point() else x for x in xs]
    op(ys)
    return None, ys


EFFECTS = (
    Situation("twice, with reads of its arguments before, between and after", _read_between, applies=_writes),
    Situation("on parts of intermediates, which are read as a whole", _read_through, applies=_writes),
    Situation(
        "twice, and its results not used",
        _in_order,
        applies=_only_has_effects,
    ),
)


# -- for layouts


def turned(x: torch.Tensor) -> torch.Tensor:
    """The values of x, with the last two dimensions exchanged in memory."""
    return x.mT.contiguous().mT if x.dim() > 1 else x.contiguous()


def _packed_copies(op: OnTensors, xs: list[torch.Tensor], _: Facts) -> Made:
    """Where xs lie turned in memory, a compiler that may choose leaves their copies turned."""
    return op([negated(x).contiguous() for x in xs]), ()


def _turned_copies(op: OnTensors, xs: list[torch.Tensor], _: Facts) -> Made:
    """Where xs are packed, a compiler that may choose leaves their copies packed."""
    return op([turned(negated(x)) for x in xs]), ()


#: The first gets tensors that are turned in memory, the second packed ones.
LAYOUTS = (
    Situation("on packed copies of transposed tensors", _packed_copies, applies=can_be_negated),
    Situation("on transposed copies of packed tensors", _turned_copies, applies=can_be_negated),
)
