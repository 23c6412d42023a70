"""Real and fake outputs side by side, for the checks that compare them."""

from __future__ import annotations

import dataclasses
from typing import Any

import sympy
import torch

from opcheck_suite import fakes
from opcheck_suite.context import Context
from opcheck_suite.inputs import sizes
from opcheck_suite.inputs.cases import Case

#: Sizes that are tried to violate a condition: small, odd, prime, round, and beyond usual blocks.
_SIZES = (2, 3, 5, 6, 7, 8, 12, 16, 17, 20, 32, 33, 64, 65, 100, 131, 257)


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


def specialisation(ctx: Context, case: Case) -> str | None:
    """A condition on sizes that the fake kernel relies on and the op does not demand, in words; None if there is none.

    The fake kernel must accept symbols for the sizes of the case.
    """

    def find() -> str | None:
        run = ctx.fake(case, symbolic=True)
        places = fakes.symbols(run)
        for condition in fakes.constraints(run):
            if ctx.info.returns_lists and condition.func is not sympy.Eq:
                continue
            if _compares_with_argument(ctx, case, condition):
                continue
            made = _violate(ctx, case, condition, places)
            if made is not None:
                shown = fakes.in_words(condition, run)
                return f"the fake kernel relies on {shown}, but the op accepts {made.describe()}"
        return None

    return ctx.memo(("specialisation", case.key), find)


def _compares_with_argument(ctx: Context, case: Case, condition: Any) -> bool:
    """Whether a size is compared with the value of an integer argument, as ``x[:, :n]`` and ``min(x.shape[1], n)`` do:
    either side has a size of its own, and there is one guard for each.
    """
    values = [v if isinstance(v, list | tuple) else [v] for v in _numbers(ctx, case).values()]
    known = {abs(int(one)) for several in values for one in several}
    told = {abs(int(number)) for number in condition.atoms(sympy.Integer)} - {0, 1}
    return not isinstance(condition, sympy.Eq | sympy.Ne) and bool(told) and told <= known


def _violate(ctx: Context, case: Case, condition: Any, places: dict[Any, tuple[str, int]]) -> Case | None:
    """A case that the op accepts although it violates a condition of its fake kernel, or None."""
    leaves = dict(case.leaves())
    for symbol in sorted(condition.free_symbols, key=str):
        if symbol not in places:
            continue
        name, dim = places[symbol]
        old = leaves[name].shape[dim]
        others = {s: leaves[n].shape[d] for s, (n, d) in places.items() if s != symbol}
        for new in _SIZES:
            if new == old or str(condition.subs({symbol: new, **others})) != "False":
                continue
            made = sizes.resized(case, old, new)
            if made is None:
                break
            if not _all_follow(case, made, old, new):
                break  # sizes that are equal by chance, of which the op wants one to stay
            if _numbers(ctx, made) != _numbers(ctx, case):
                break  # a number that the schema does not declare as a size: see registration.symint
            made = dataclasses.replace(made, variant=f"size {new}({name} dim {dim})", group="resized")
            if ctx.attempt(made) is not None:
                return made
    return None


def _all_follow(case: Case, made: Case, old: int, new: int) -> bool:
    """Whether every size that was equal to the old one is the new one."""
    pairs = zip(case.leaves(), made.leaves(), strict=True)
    return all(b == new for (_, was), (_, now) in pairs for a, b in zip(was.shape, now.shape, strict=True) if a == old)


def _numbers(ctx: Context, case: Case) -> dict[str, Any]:
    """The values of arguments declared int, alone or in lists: constants to a compiler."""
    symbolic = fakes.declared_sizes(ctx.info)
    return {n: v for n, v in case.bound().items() if n not in symbolic and _integers(v)}


def _integers(value: Any) -> bool:
    items = value if isinstance(value, list | tuple) else [value]
    return all(isinstance(v, int) for v in items)
