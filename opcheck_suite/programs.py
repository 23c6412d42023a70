"""Run situations around an op eagerly and compiled, and say how the two differ.

All situations of a case are compiled as one function, since compiling costs far more than running; each has arguments
of its own. Where that function does not do what eager does, they are compiled one by one to say which is to blame.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from opcheck_suite import compare, compilepairs, compiling, fakes, inductor
from opcheck_suite.context import Context, describe_error
from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case
from opcheck_suite.situations import ALONE, EFFECTS, INDUCTOR, PARITY, Facts, OnTensors, Situation

_SETS = {"parity": PARITY, "inductor": INDUCTOR, "effects": EFFECTS}
_ORDER = ("eager", "aot_eager", "inductor")


@dataclasses.dataclass(frozen=True, eq=False)
class Seen:
    """What a caller sees of one situation."""

    outputs: list[Any]
    arguments: list[torch.Tensor]
    """The tensors that the function was given, after the call; then the intermediates that the op may have written."""
    gradients: dict[str, torch.Tensor | None]
    shared: frozenset[tuple[str, str]]
    """Outputs that share memory with an argument or another output."""
    calls: int = 0
    """How often the op was called."""
    least: int = 0
    """How often it must be called if equal calls are merged into one."""


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """Situations that eager accepts, and what it shows of each."""

    situations: tuple[Situation, ...]
    seen: tuple[Seen, ...]
    gradients: bool

    def only(self, n: int) -> Program:
        """The program of one of the situations."""
        return Program((self.situations[n],), (self.seen[n],), self.gradients)

    @property
    def calls(self) -> tuple[int, int]:
        """How often the op must at least and at most be called."""
        return sum(seen.least for seen in self.seen), sum(seen.calls for seen in self.seen)


@dataclasses.dataclass(frozen=True, eq=False)
class Compiled:
    """What came of a program under one backend."""

    seen: tuple[Seen, ...] = ()
    error: BaseException | None = None
    targets: tuple[str, ...] = ()
    """Backend aot_eager: what the forward graph calls."""
    calls: tuple[inductor.Call, ...] = ()
    """Backend inductor: how its code called the op."""
    backend: str = ""

    def count(self, name: str) -> int:
        """How often the op of that name is called by the graph, or by the code of Inductor."""
        return len(self.calls) if self.backend == "inductor" else self.targets.count(name)


def alone() -> Program:
    """The program that only calls the op, of which nothing is known."""
    return Program((ALONE,), (), False)


def on_tensors(case: Case, op: Callable[..., Any]) -> OnTensors:
    """The op as a function of the case's tensors, in the order of `Case.leaves`."""
    count = 0

    def entry(value: Any) -> tuple[str, Any]:
        nonlocal count
        if isinstance(value, torch.Tensor):
            count += 1
            return "tensor", count - 1
        if isinstance(value, list | tuple) and any(isinstance(v, torch.Tensor) for v in value):
            return "list", [entry(v) for v in value]
        return "constant", value

    plan = [entry(value) for value in case.args]
    named = {name: entry(value) for name, value in case.kwargs.items()}

    def made(kind: str, value: Any, xs: Sequence[torch.Tensor]) -> Any:
        if kind == "tensor":
            return xs[value]
        return [made(k, v, xs) for k, v in value] if kind == "list" else value

    def call(xs: Sequence[torch.Tensor]) -> Any:
        args = [made(kind, value, xs) for kind, value in plan]
        kwargs = {name: made(kind, value, xs) for name, (kind, value) in named.items()}
        return op(*args, **kwargs)

    return call


Function = Callable[[list[list[torch.Tensor]]], list[Any]]


def function(call: OnTensors, situations: Iterable[Situation], facts: Facts) -> Function:
    """One new function of all situations: the tensors of each -> what each returns."""
    bodies = tuple(s.body for s in situations)

    def program(inputs: list[list[torch.Tensor]]) -> list[Any]:
        return [body(call, xs, facts) for body, xs in zip(bodies, inputs)]  # noqa: B905 - as plain as can be for Dynamo

    return program


def facts(ctx: Context, case: Case) -> Facts:
    """What programs around the op are told of it.

    Whole numbers could be positions and are not passed on to another call: they might lie outside of another argument.
    Nor is what has a size that only data decides, which the fake kernel need not accept.
    """

    def make() -> Facts:
        leaves, run, fake = case.leaves(), ctx.attempt(case), ctx.fake(case)
        outs = run.outputs if run is not None else []
        written = tuple(n for n, (name, _) in enumerate(leaves) if case.writes(name))
        if not outs or not leaves or fake.error is not None or not isinstance(outs[0], torch.Tensor):
            return Facts(False, written)
        out, first = outs[0], leaves[0][1]
        alike = out.shape == first.shape and out.dtype == first.dtype and out.is_floating_point()
        return Facts(alike and None not in fakes.sizes(fake.outputs[0]), written)

    return ctx.memo(("facts", case.key), make)


def eager(ctx: Context, case: Case, kind: str) -> Program:
    """The situations of a kind (``parity``, ``inductor``, ``effects``) that eager accepts, once for all checks."""

    def make() -> Program:
        gradients = kind != "effects" and bool(compilepairs.eager(ctx, case).gradients)
        found: list[tuple[Situation, Seen]] = []
        for situation in _SETS[kind]:
            other = any(s.body is situation.instead_of for s, _ in found)
            if situation.applies(case) and not (other and not (gradients and situation is ALONE)):
                try:
                    found.append((situation, _eager(ctx, case, situation, gradients=gradients)))
                except (KeyboardInterrupt, MemoryError):
                    raise
                except BaseException:  # a layout that the op refuses, memory that may not be written
                    continue
        return Program(tuple(s for s, _ in found), tuple(seen for _, seen in found), gradients)

    return ctx.memo(("program", kind, case.key), make)


def _eager(ctx: Context, case: Case, situation: Situation, *, gradients: bool) -> Seen:
    call = on_tensors(case, case.info.op)
    made: list[list[torch.Tensor]] = []

    def counting(xs: Sequence[torch.Tensor]) -> Any:
        made.append(list(xs))  # kept, so that no other tensor gets the same id
        return call(xs)

    fn = function(counting, [situation], facts(ctx, case))
    (seen,) = observe(ctx, case, fn, [situation], gradients=gradients)
    distinct = len({tuple(map(id, xs)) for xs in made})
    return dataclasses.replace(seen, calls=len(made), least=len(made) if case.info.mutated else distinct)


def under_inductor(ctx: Context, case: Case) -> str:
    """The kind of situations that are run under Inductor: where the op writes, those of effects suffice."""
    return "effects" if ctx.info.mutated and eager(ctx, case, "effects").situations else "inductor"


def compiled(ctx: Context, case: Case, kind: str, backend: str) -> Compiled:
    """All situations of a kind as one function compiled with a backend, once for all checks.

    Where Inductor without generated kernels fails or gives something else, what it does with them counts. Ends the
    check where Inductor has nothing for the device.
    """

    def make() -> Compiled:
        if backend == "inductor" and not inductor.serves(ctx.device):
            ctx.skip(f"Inductor has no backend for {ctx.device}")
        program = eager(ctx, case, kind)
        got = build(ctx, case, program, backend)
        if backend != "inductor" or (got.error is None and not ctx.deterministic):
            return got
        if _difference(ctx, case, program, got) is None and program.calls[0] <= len(got.calls):
            return got
        return build(ctx, case, program, backend, generated=True)

    return ctx.memo(("compiled", kind, case.key, backend), make)


def build(ctx: Context, case: Case, program: Program, backend: str, *, generated: bool = False) -> Compiled:
    """Compile the situations of a program as one function, and run it. A graph break is an error.

    Inductor generates kernels of its own only with ``generated``.
    """
    targets: list[str] = []
    recorder = inductor.Recorder(case.info.op)
    make: Any = backend
    if backend == "aot_eager":
        make = compiling.recording_aot(targets)
    elif backend == "inductor":
        make = inductor.recording(recorder)
    plain = function(on_tensors(case, case.info.op), program.situations, facts(ctx, case))
    hold_back = contextlib.nullcontext() if generated else inductor.without_generated_kernels(case.info.op)
    with compiling.fresh(), hold_back:
        try:
            fn = torch.compile(plain, backend=make, fullgraph=True)
            seen = observe(ctx, case, fn, program.situations, gradients=program.gradients)
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:
            return Compiled(error=error, targets=tuple(targets), backend=backend)
    return Compiled(tuple(seen), None, tuple(targets), tuple(recorder.calls), backend)


def recorded(ctx: Context, case: Case, program: Program) -> list[inductor.Call]:
    """How the op is called by a program that is run eagerly."""
    recorder = inductor.Recorder(case.info.op)
    fn = function(on_tensors(case, case.info.op), program.situations, facts(ctx, case))
    with recorder:
        observe(ctx, case, fn, program.situations, gradients=False)
    return recorder.calls


def observe(ctx: Context, case: Case, fn: Function, situations: Sequence[Situation], *, gradients: bool) -> list[Seen]:
    """Call a function of situations on fresh arguments, then run backward from what requires grad."""
    wanted = compilepairs.gradient_leaves(ctx, case) if gradients else set()
    names = [name for name, _ in case.leaves()]
    inputs: list[list[torch.Tensor]] = []
    leaves: list[tuple[int, str, torch.Tensor]] = []
    for n, situation in enumerate(situations):
        xs = [t for _, t in case.leaves(case.inputs())]
        if situation.prepare is not None:
            for x in xs:
                situation.prepare(x)
        if situation.gradients:
            leaves += [(n, name, x.requires_grad_()) for name, x in zip(names, xs, strict=True) if name in wanted]
        inputs.append(xs)
    with ctx.seeded():
        found = fn(inputs)
    outputs = [tensors.listed(out) for out, _ in found]
    roots = [t for t in tensors.tensors(outputs) if t.requires_grad]
    slopes: list[dict[str, torch.Tensor | None]] = [{} for _ in situations]
    if roots and leaves:
        seeds = [compilepairs.weights(t) for t in roots]
        grads = torch.autograd.grad(roots, [x for *_, x in leaves], seeds, allow_unused=True)
        for (n, name, _), grad in zip(leaves, grads, strict=True):
            slopes[n][name] = grad
    return [
        Seen(
            tensors.map_tensors(lambda t: t.detach(), outs),
            [t.detach() for t in (*xs, *held)],
            slope,
            _shared(outs, dict(zip(names, xs, strict=True))),
        )
        for outs, (_, held), xs, slope in zip(outputs, found, inputs, slopes, strict=True)
    ]


def _shared(outputs: list[Any], arguments: dict[str, torch.Tensor]) -> frozenset[tuple[str, str]]:
    outs = [(f"output {n}", t) for n, t in enumerate(tensors.tensors(outputs))]
    found = {(name, other) for name, t in outs for other, x in arguments.items() if tensors.overlap(t, x)}
    found |= {(a, b) for n, (b, x) in enumerate(outs) for a, t in outs[:n] if tensors.overlap(t, x)}
    return frozenset(found)


# -- comparing


def difference(ctx: Context, case: Case, kind: str, backend: str) -> str | None:
    """How the compiled program differs from eager, in words that say where; None when it does not."""
    program = eager(ctx, case, kind)
    text = _difference(ctx, case, program, compiled(ctx, case, kind, backend))
    if text is None:
        return None
    singles = [(s, program.only(n)) for n, s in enumerate(program.situations) if s is not ALONE]
    if kind != "effects":
        seen = _eager(ctx, case, ALONE, gradients=program.gradients)
        singles.insert(0, (ALONE, Program((ALONE,), (seen,), program.gradients)))
    for situation, one in singles:
        for first in _ORDER[: _ORDER.index(backend) + 1]:
            blamed = _difference(ctx, case, one, build(ctx, case, one, first, generated=True))
            if blamed is not None:
                return f"backend {first} {blamed}\nwhere   the op, called {situation.name}"
    names = ", then ".join(s.name for s in program.situations)
    return f"backend {backend} {text}\nwhere   only with several calls in one function: {names}"


def _difference(ctx: Context, case: Case, program: Program, got: Compiled) -> str | None:
    if got.error is not None:
        return f"raised {describe_error(got.error)}"
    names = [name for name, _ in case.leaves()]
    for expected, seen in zip(program.seen, got.seen, strict=True):
        # A compiler may keep intermediate results in float32 where eager rounds them to the op's coarsest dtype.
        coarse = compare.coarsest([case.args, case.kwargs, expected.outputs])
        if text := ctx.compare(seen.outputs, expected.outputs, coarse=coarse):
            return f"gives another result: {text}"
        for n, (a, b) in enumerate(zip(seen.arguments, expected.arguments, strict=True)):
            name = f"argument {names[n]!r}" if n < len(names) else "an intermediate that the op was called on"
            if text := ctx.compare([a], [b], names=name, coarse=coarse):
                return f"leaves other values: {text}"
        if text := compilepairs.other_gradient(ctx, seen.gradients, expected.gradients, coarse=coarse):
            return f"gives another gradient: {text}"
        if (shared := _told(seen, expected)) != expected.shared:
            return f"gives outputs that share {_pairs(shared)}; in eager they share {_pairs(expected.shared)}"
    return None


def _told(seen: Seen, expected: Seen) -> frozenset[tuple[str, str]]:
    """What outputs share, without that which compilers may make them share: the results of equal calls are one."""
    if expected.least == expected.calls:
        return seen.shared
    outputs = {f"output {n}": t for n, t in enumerate(tensors.tensors(expected.outputs))}
    merged = {
        (a, b) for a, b in seen.shared if a in outputs and b in outputs and compare.bitwise(outputs[a], outputs[b])
    }
    return seen.shared - (merged - expected.shared)


def _pairs(shared: frozenset[tuple[str, str]]) -> str:
    return ", ".join(f"memory of {a} and {b}" for a, b in sorted(shared)) or "no memory"
