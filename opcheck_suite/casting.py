"""Calls inside of autocast regions, beside calls outside of them on arguments that are cast by hand."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from opcheck_suite import compare, fakes
from opcheck_suite.context import Context, Refused, describe_error
from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case

#: Types of numbers that a rule casts. Autocast leaves float64 alone.
CAST = (torch.float32, torch.bfloat16, torch.float16)

#: Mixtures are made of so many arguments at most.
_MIXED = 4


@dataclasses.dataclass(frozen=True, eq=False)
class Call:
    """What came of one call: results as ``Run.results`` gives them, or the exception."""

    outputs: list[Any]
    results: list[Any]
    error: BaseException | None = None
    passed: dict[str, torch.dtype] | None = None
    """In a region: with which dtypes the rule called the op, by argument; None where that was not seen."""


def regions(device: str) -> list[torch.dtype]:
    """The dtypes in which torch supports autocast regions on a type of device."""
    if not torch.amp.is_autocast_available(device):
        return []
    return [dtype for dtype in (torch.bfloat16, torch.float16) if _supported(device, dtype)]


def _supported(device: str, dtype: torch.dtype) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a region that is not supported is a warning, and no region
        try:
            with torch.autocast(device, dtype=dtype):
                return torch.is_autocast_enabled(device)
        except (RuntimeError, AssertionError):
            return False


def eligible(case: Case, device: str) -> dict[str, torch.Tensor]:
    """The arguments that autocast may cast: plain tensors of the device, of float32 or half precision."""
    found = case.leaves()
    return {n: t for n, t in found if tensors.strided(t) and t.dtype in CAST and t.device.type == device}


def cast(case: Case, dtypes: dict[str, torch.dtype]) -> Case:
    """The case with some arguments in other dtypes. Where all of them get one, it is a variant of group ``floats``."""
    leaves = dict(case.leaves())
    changes = {n: leaves[n].detach().to(dtype) for n, dtype in dtypes.items() if leaves[n].dtype != dtype}
    if not changes:
        return case
    # A variant of a variant keeps that one's name: the values were rounded on the way.
    before = f"{case.variant}, " if case.variant else ""
    floats = [n for n, t in leaves.items() if t.is_floating_point()]
    if len(set(dtypes.values())) == 1 and sorted(floats) == sorted(dtypes):
        text = tensors.dtype_name(next(iter(dtypes.values())))
    else:
        text = "with " + in_words(dtypes)
    return case.replace(dict(changes), variant=before + text, group="floats")


def in_words(dtypes: dict[str, torch.dtype]) -> str:
    """``x=bfloat16, weight=float32``."""
    return ", ".join(f"{name}={tensors.dtype_name(dtype)}" for name, dtype in dtypes.items())


def dtypes_of(case: Case, names: Any) -> dict[str, torch.dtype]:
    """The dtypes of some arguments."""
    return {n: t.dtype for n, t in case.leaves() if n in names}


def mixtures(case: Case, low: torch.dtype, names: list[str]) -> Iterator[Case]:
    """The case, which is in float32, with each argument in low precision beside the others, and the other way round.

    Outputs of a region are in low precision, parameters are not. Arguments that the op writes stay as they are.
    """
    names = [n for n in names if not case.writes(n)][:_MIXED]
    chosen = [(n,) for n in names] + [tuple(m for m in names if m != n) for n in names]
    for some in dict.fromkeys(c for c in chosen if 0 < len(c) < len(names)):
        yield cast(case, dict.fromkeys(some, low))


def deadly(ctx: Context, case: Case) -> bool:
    """Whether a call outside of autocast kills the process, which other checks report."""
    try:
        ctx.eager(case)
    except Refused as refused:
        return refused.deadly
    return False


def inside(ctx: Context, case: Case, dtype: torch.dtype, device: str, names: list[str]) -> Call:
    """The call in an autocast region, and in a second one how the rule calls the op.

    A dispatch mode sees calls after autocast's rules; the first of the op itself is the one of its rule.
    """
    call = _call(ctx, case, dtype, device)
    watch = _Watch(ctx.info.op, case, names)
    with watch:
        _call(ctx, case, dtype, device)
    return dataclasses.replace(call, passed=watch.passed)


def _call(ctx: Context, case: Case, dtype: torch.dtype, device: str) -> Call:
    args, kwargs = case.inputs()
    leaves = case.leaves((args, kwargs))
    try:
        with ctx.seeded(), torch.autocast(device, dtype=dtype):
            out = ctx.info.op(*args, **kwargs)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        return Call([], [], error)
    ctx.synchronize()
    return Call(tensors.listed(out), case.results(out, leaves))


class _Watch(TorchDispatchMode):
    """Remembers the dtypes that the op is first called with."""

    def __init__(self, op: Any, case: Case, names: list[str]) -> None:
        super().__init__()
        self.op, self.case, self.names = op, case, names
        self.passed: dict[str, torch.dtype] | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is self.op and self.passed is None:
            given = {n: t.dtype for n, t in self.case.leaves((tuple(args), kwargs)) if n in self.names}
            self.passed = given if given.keys() == set(self.names) else None
        return func(*args, **kwargs)


def fake(ctx: Context, case: Case, dtype: torch.dtype, device: str) -> fakes.FakeRun:
    """The call on fake tensors in an autocast region."""
    with torch.autocast(device, dtype=dtype):
        return fakes.run(ctx.info.op, case)


def metadata(outputs: list[Any]) -> list[Any]:
    """Dtypes and sizes of the tensors among outputs, with None for sizes that only data decides; kinds of the rest."""
    found: list[Any] = []
    for value in flat(outputs):
        if isinstance(value, torch.Tensor):
            found.append((value.dtype, fakes.sizes(value)))
        else:
            found.append(value is None)
    return found


def flat(outputs: list[Any]) -> list[Any]:
    """Outputs with the members of lists in their place."""
    return [v for value in outputs for v in (value if isinstance(value, list | tuple) else [value])]


def other_metadata(real: list[Any], faked: list[Any]) -> str | None:
    """How fake outputs differ from real ones in dtype or size; None where they agree."""
    a, b = metadata(real), metadata(faked)
    if len(a) != len(b):
        return f"{len(a)} outputs, with fake tensors {len(b)}"
    for n, (x, y) in enumerate(zip(a, b, strict=True)):
        name = f"output {n}" if len(a) > 1 else "the output"
        if isinstance(x, tuple) != isinstance(y, tuple):
            return f"{name} is of another kind with fake tensors"
        if not isinstance(x, tuple):
            continue
        if x[0] != y[0]:
            return f"{name} is {tensors.dtype_name(x[0])}, with fake tensors {tensors.dtype_name(y[0])}"
        if len(x[1]) != len(y[1]) or any(q not in (None, p) for p, q in zip(x[1], y[1], strict=True)):
            return f"{name} has shape {x[1]}, with fake tensors {y[1]}"
    return None


def beyond_rounding(
    got: Any, candidates: list[Any], dtype: torch.dtype, tolerances: tuple[float, float] | None
) -> tuple[str, float] | None:
    """How a result is not what any of the candidates, nor anything between them, could be but for rounding in a dtype.

    The text, and the share of elements that are so; None where all may be right. Numbers and tensors of integers are
    compared only where the candidates agree, elements only where all candidates are finite.
    """
    if not isinstance(got, torch.Tensor):
        return None
    several = [c for c in candidates if isinstance(c, torch.Tensor) and c.shape == got.shape]
    if len(several) < len(candidates) or not several or not tensors.strided(got) or not got.numel():
        return None
    if not (got.is_floating_point() or got.is_complex()):
        if any(not torch.equal(several[0], c) for c in several[1:]) or torch.equal(got, several[0].to(got.dtype)):
            return None
        share = float((got != several[0]).double().mean())
        return compare.values(got, several[0].to(got.dtype), tolerances=(0.0, 0.0)) or "", share
    real, *wide = (_real(t) for t in (got, *several))
    low, high = functools.reduce(torch.minimum, wide), functools.reduce(torch.maximum, wide)
    finite = functools.reduce(torch.logical_and, map(torch.isfinite, wide))
    if not finite.any():
        return None
    rtol, atol = compare.default_tolerances(dtype)
    if tolerances is not None:
        rtol, atol = max(rtol, tolerances[0]), max(atol, tolerances[1])
    largest = torch.maximum(low.abs(), high.abs())
    # a sum's rounding is relative to its largest terms, which may cancel out
    room = atol + rtol * largest + 4 * torch.finfo(dtype).eps * float(largest[finite].max())
    wrong = finite & ~((real >= low - room - (high - low)) & (real <= high + room + (high - low)))
    if not wrong.any():
        return None
    at = int((wrong * (real - high).abs().nan_to_num(float("inf"), posinf=float("inf"))).nan_to_num(0.0).argmax())
    at = at if bool(wrong[at]) else int(wrong.nonzero()[0])
    text = f"{int(wrong.sum())} of {wrong.numel()} elements differ; got {real[at]:.6g}, expected {wide[0][at]:.6g}"
    return text, float(wrong.double().mean())


def _real(t: torch.Tensor) -> torch.Tensor:
    """The elements in float64, real and imaginary parts in turn."""
    t = t.detach().resolve_conj().resolve_neg().cpu()
    flat = torch.view_as_real(t).reshape(-1) if t.is_complex() else t.reshape(-1)
    return flat.to(torch.float64)


def without_end(error: BaseException) -> bool:
    """Whether calls were nested too deeply."""
    return isinstance(error, RecursionError) or "recursion depth" in describe_error(error)
