"""Calls of one compiled function with sizes and numbers that change, and how often it is compiled for them."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from opcheck_suite import compilepairs, compiling, fakes, surroundings
from opcheck_suite.compilepairs import Outcome
from opcheck_suite.context import Context, Refused, describe_error
from opcheck_suite.inputs import sizes
from opcheck_suite.inputs.cases import Case

#: A guard on an integer argument; one on a size calls ``size()``.
_NUMBER = re.compile(r"\w+(\[[^\]]+\])* == -?\d+")

#: How many other sizes are tried.
_OTHERS = 3


@dataclasses.dataclass(frozen=True, eq=False)
class Sweep:
    """What came of the calls under one way to compile."""

    trace: compiling.Trace
    outcomes: list[Outcome]
    """One for each call that was made; the first is of the case itself."""

    @property
    def guards(self) -> list[str]:
        """What each recompilation is owed to, a line each."""
        return [guard(r.guard) for r in self.trace.recompiles]


def guard(text: str) -> str:
    """A guard as torch words it, without its number, the place in the code, and addresses, which differ by run."""
    line = re.sub(r"^\d+/\d+: ", "", text.splitlines()[0]).partition("  #")[0].strip()
    return re.sub(r", \d{9,}", "", line)


def held(sweep: Sweep, *, dynamic: bool) -> str:
    """What holds a size to one value, in torch's words; empty where nothing does."""
    if "ConstraintViolationError" in type(sweep.trace.error).__name__:
        assert sweep.trace.error is not None
        return describe_error(sweep.trace.error)
    return next(iter(specialised(sweep.guards, dynamic=dynamic)), "")


def specialised(guards: Sequence[str], *, dynamic: bool) -> list[str]:
    """The guards that hold a tensor to one size although the size was known to change.

    Without ``dynamic`` the first recompilation is the one at which torch learns that it changes.
    """
    return [g for g in (guards if dynamic else guards[1:]) if "size mismatch" in g]


def resized(ctx: Context, case: Case) -> list[Case]:
    """The case with all its sizes changed at once to others, all different, that eager accepts."""
    return ctx.memo(("sweep", case.key), lambda: list(_accepted(ctx, case)))


def _accepted(ctx: Context, case: Case) -> Iterator[Case]:
    for leading in (False, True):
        found = [made for made in sizes.sweep(case, _OTHERS, leading=leading) if _accepts(ctx, case, made)]
        if len(found) > 1:
            yield from found
            return


def _accepts(ctx: Context, case: Case, made: Case) -> bool:
    """Whether eager takes a call at other sizes, reads nothing else, and has a backward where the case has one."""
    if ctx.attempt(made) is None or surroundings.reads_beyond(ctx, made):
        return False
    try:
        return bool(compilepairs.eager(ctx, made).gradients) == bool(compilepairs.eager(ctx, case).gradients)
    except Refused:
        return False


def of_sizes(case: Case, others: Sequence[Case], guards: Sequence[str]) -> list[str]:
    """The guards that other sizes are to answer for.

    Those on strides are not among them: other sizes come packed, and code for a strided sample is compiled again. Nor
    are those on integers that changed with a size, unless the schema says that they are sizes (``SymInt``).
    """
    declared, before = fakes.declared_sizes(case.info), case.bound()
    changed = {n for made in others for n, value in made.bound().items() if type(value) is int and value != before[n]}
    numbers = bool(changed) and not changed & set(declared)
    return [g for g in guards if "stride" not in g and not (numbers and _NUMBER.fullmatch(g))]


def changed_dims(case: Case, other: Case) -> dict[str, list[int]]:
    """The dimensions that have another size, by argument."""
    before = dict(case.leaves())
    found = {
        name: [d for d, (a, b) in enumerate(zip(before[name].shape, t.shape, strict=True)) if a != b]
        for name, t in other.leaves()
    }
    return {name: dims for name, dims in found.items() if dims}


def run(
    ctx: Context,
    cases: Sequence[Case],
    *,
    backend: str,
    dynamic: bool | None,
    mark: Callable[[torch.Tensor, list[int]], None] | None = None,
    gradients: bool = True,
) -> Sweep:
    """Compile a call of the op, and call it on each case. ``mark`` is given the dimensions that change before.

    With ``gradients``, backward is compiled and run as well where the op has one.
    """
    gradients = gradients and bool(compilepairs.eager(ctx, cases[0]).gradients)
    dims = changed_dims(cases[0], cases[1])
    outcomes: list[Outcome] = []

    def prepare(leaves: dict[str, torch.Tensor]) -> None:
        if mark is not None:
            for name, which in dims.items():
                mark(leaves[name], which)

    def calls(fn: Callable[..., Any]) -> None:
        for case in cases:
            seen = compilepairs.observe(ctx, case, fn, gradients=gradients, prepare=prepare)
            outcomes.append(seen)
            if seen.error is not None:
                raise seen.error

    return Sweep(
        compiling.trace(compilepairs.caller(ctx), backend=backend, dynamic=dynamic, fullgraph=True, run=calls), outcomes
    )


def difference(ctx: Context, cases: Sequence[Case], sweep: Sweep) -> str | None:
    """How the results of a sweep differ from eager, in words; None when they do not.

    Ends the check where they differ for the case itself, whose sizes nobody changed.
    """
    for case, got in zip(cases, sweep.outcomes, strict=False):
        if got.error is not None:
            continue
        text = _difference(ctx, case, got)
        if text is not None and case is cases[0]:
            ctx.not_exercised("compiled and eager calls differ for the sample as it is: see compile.parity")
        if text is not None and ctx.compare(ctx.poisoned(case).results(), ctx.eager(case).results()):
            ctx.not_exercised("an output holds memory that was never written: see values.unwritten")
        if text is not None:
            return f"{text}\nat      {case.describe()}"
    return None


def _difference(ctx: Context, case: Case, got: Outcome) -> str | None:
    expected = compilepairs.eager(ctx, case)
    if text := ctx.compare(got.results, expected.results):
        return text
    return compilepairs.other_gradient(ctx, got.gradients, expected.gradients)


# -- numbers


class _NotRun(Exception):
    """Raised in place of the compiled function: values that the op may not accept are compiled for, and not run."""


@dataclasses.dataclass(frozen=True)
class Change:
    """How often a call is compiled again when one argument changes."""

    name: str
    kind: str
    """The argument's type in the schema."""
    values: int
    """How many other values were tried."""
    guards: tuple[str, ...]
    """What each recompilation is owed to."""


def numbers(ctx: Context, case: Case) -> list[Change]:
    """What changes of the arguments that are numbers, or are given although optional, lead to.

    Only compiled: whether the kernel accepts other numbers is not known.
    """
    changes = [(name, kind, made) for name, kind, values in _others(case) if (made := _cases(ctx, case, name, values))]
    if not changes:
        return []
    at = [""]
    causes: list[str] = []

    def refuse(_module: torch.fx.GraphModule, _inputs: list[Any]) -> Callable[..., Any]:
        causes.append(at[0])

        def stop(*_: Any) -> Any:
            raise _NotRun

        return stop

    def calls(fn: Callable[..., Any]) -> None:
        for name, _, made in [("", "", [case]), *changes]:
            at[0] = name
            for one in made:
                args, kwargs = one.inputs()
                with contextlib.suppress(_NotRun):
                    fn(*args, **kwargs)

    trace = compiling.trace(compilepairs.caller(ctx), backend=refuse, fullgraph=True, run=calls)
    if trace.error is not None or len(causes) != len(trace.recompiles) + 1:
        return []
    guards = [guard(r.guard) for r in trace.recompiles]
    return [
        Change(name, kind, len(made), tuple(g for cause, g in zip(causes[1:], guards, strict=True) if cause == name))
        for name, kind, made in changes
    ]


def _others(case: Case) -> Iterator[tuple[str, str, list[Any]]]:
    """Arguments given in the case, their types, and other values for them."""
    bound = case.bound()
    kinds = {"IntType": "int", "SymIntType": "SymInt", "FloatType": "float"}
    for argument in case.info.schema.arguments:
        value, kind = bound.get(argument.name), kinds.get(argument.real_type.kind())
        if value is None or isinstance(value, bool):
            continue
        if kind == "float":
            yield argument.name, kind, [float(value) + 1.0, float(value) + 2.0]
        elif kind is not None and isinstance(value, int):
            low = max(value, 1)  # torch compiles for 0 and 1 apart
            yield argument.name, kind, [low + 1, low + 2]
        elif argument.real_type.kind() == "OptionalType":
            yield argument.name, str(argument.real_type), [None]


def _cases(ctx: Context, case: Case, name: str, values: list[Any]) -> list[Case]:
    """The case with other values of an argument, as long as the fake kernel accepts them."""
    made = [case.replace({name: v}, variant=f"{name}={v!r}", group="fake only") for v in values]
    fine = []
    for one in made:
        try:
            if ctx.fake(one).error is not None:
                break
        except Refused:
            break
        fine.append(one)
    return fine
