"""dtype variants: the sample's values in other types of numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import torch

from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case
from opcheck_suite.inputs.variants import variant


def floating(case: Case) -> list[tuple[str, torch.Tensor]]:
    """The arguments of ordinary floating-point dtypes."""
    wide = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    return [(n, t) for n, t in case.leaves() if tensors.strided(t) and t.dtype in wide]


def converted(t: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Values in another dtype; for integers they are spread out first, so that they do not all become zero."""
    source = t.detach()
    if dtype.is_floating_point or dtype.is_complex:
        return source.to(dtype)
    return (source * 4).round().clamp(-100, 100).to(dtype)


@variant("floats")
def _floats(case: Case) -> Iterator[Case]:
    """All floating-point arguments in what authors forget first: another dtype that any kernel can compute in."""
    yield from _converted(case, (torch.float64, torch.float32), "floats")


@variant("floats", tier="standard")
def _halves(case: Case) -> Iterator[Case]:
    """All floating-point arguments in half precision."""
    yield from _converted(case, (torch.bfloat16, torch.float16), "floats")


@variant("mixed", tier="standard")
def _mixed(case: Case) -> Iterator[Case]:
    """The first of several floating-point arguments in bfloat16, as an activation under autocast beside weights."""
    chosen = [(n, t) for n, t in floating(case) if not case.writes(n)]
    if len(chosen) > 1 and {t.dtype for _, t in chosen} == {torch.float32}:
        name, t = chosen[0]
        yield case.replace({name: t.detach().bfloat16()}, variant=f"bfloat16({name})", group="mixed")


@variant("integers")
def _integers(case: Case) -> Iterator[Case]:
    """All floating-point arguments as int32."""
    yield from _converted(case, (torch.int32,), "integers")


#: Imaginary parts of complex copies, as shares of the real parts: element after element, over and over. Products of
#: three such numbers whose real parts are positive have a positive real part, so that logarithms, roots and sums of
#: squares stay away from their branch cuts and from zero.
_SHARES = (0.5, -0.25, 0.375, -0.5, 0.25, -0.4375, 0.3125)


def with_imaginary(t: torch.Tensor) -> torch.Tensor:
    """Real values as complex64 with an imaginary part of up to half their size. Zeros, as in masks, stay zero."""
    real = t.detach().float()
    shares = torch.tensor(_SHARES, device=t.device).repeat(t.numel() // len(_SHARES) + 1)
    return torch.complex(real, real * shares[: t.numel()].reshape(t.shape))


def as_complex(case: Case, *, variant: str, group: str) -> Case | None:
    """The case with complex64 for all floating-point arguments, with imaginary parts. None where there are no such
    arguments, and where the sample is of complex numbers already: then the op may mean something else by real ones.
    """
    chosen = floating(case)
    if not chosen or any(t.is_complex() for _, t in case.leaves()):
        return None
    return case.replace({n: with_imaginary(t) for n, t in chosen}, variant=variant, group=group)


@variant("complex")
def _complex(case: Case) -> Iterator[Case]:
    """All floating-point arguments as complex64, with an imaginary part."""
    if (made := as_complex(case, variant="complex64", group="complex")) is not None:
        yield made


@variant("real")
def _real(case: Case) -> Iterator[Case]:
    """All floating-point arguments as complex64, without an imaginary part."""
    if not any(t.is_complex() for _, t in case.leaves()):
        for made in _converted(case, (torch.complex64,), "real"):
            yield dataclasses.replace(made, variant=f"{made.variant} without an imaginary part")


def _converted(case: Case, dtypes: tuple[torch.dtype, ...], group: str) -> Iterator[Case]:
    chosen = floating(case)
    for dtype in dtypes:
        changes = {n: converted(t, dtype) for n, t in chosen if t.dtype != dtype}
        if changes:
            yield case.replace(dict(changes), variant=tensors.dtype_name(dtype), group=group)
