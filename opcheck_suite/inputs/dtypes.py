"""dtype variants: the sample's values in other types of numbers."""

from __future__ import annotations

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


@variant("integers")
def _integers(case: Case) -> Iterator[Case]:
    """All floating-point arguments as int32."""
    yield from _converted(case, (torch.int32,), "integers")


@variant("complex")
def _complex(case: Case) -> Iterator[Case]:
    """All floating-point arguments as complex64, without an imaginary part. Not where the sample is of complex numbers
    already: then the op may mean something else by real ones.
    """
    if not any(t.is_complex() for _, t in case.leaves()):
        yield from _converted(case, (torch.complex64,), "complex")


def _converted(case: Case, dtypes: tuple[torch.dtype, ...], group: str) -> Iterator[Case]:
    chosen = floating(case)
    for dtype in dtypes:
        changes = {n: converted(t, dtype) for n, t in chosen if t.dtype != dtype}
        if changes:
            yield case.replace(dict(changes), variant=_name(dtype), group=group)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
