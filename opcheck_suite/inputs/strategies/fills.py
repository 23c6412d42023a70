"""Fillings: the values of a tensor, made from one drawn seed in one call.

A filling is a function ``(shape, dtype, generator) -> tensor`` on the CPU, so that values are the same on every device.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

Filling = Callable[[tuple[int, ...], torch.dtype, torch.Generator], torch.Tensor]

#: Greatest magnitude of integers where nothing else is asked for: it fits every integer dtype.
_MOST = 9


def normal(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Normally distributed values; integers from -9 to 9, booleans by a coin.

    They are drawn wide and converted, so that the dtype does not change the data.
    """
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    if dtype.is_complex:
        return torch.randn(shape, generator=generator, dtype=torch.complex64).to(dtype)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    low = -_MOST if dtype.is_signed else 0
    return torch.randint(low, _MOST + 1, shape, generator=generator).to(dtype)


def uniform(low: float = 0.0, high: float = 1.0) -> Filling:
    """Values from ``low`` up to, but not including, ``high``; whole numbers for integer dtypes."""

    def fill(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
        if dtype.is_floating_point or dtype.is_complex:
            return (torch.rand(shape, generator=generator) * (high - low) + low).to(dtype)
        return torch.randint(int(low), max(int(high), int(low) + 1), shape, generator=generator).to(dtype)

    return fill


def constant(value: complex) -> Filling:
    """One value everywhere."""

    def fill(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:  # noqa: ARG001
        return torch.full(shape, value, dtype=dtype)

    return fill


def generator(seed: int) -> torch.Generator:
    """A CPU generator of its own: torch's global one is left alone."""
    return torch.Generator().manual_seed(seed)


def special_values(dtype: torch.dtype) -> tuple[complex, ...]:
    """The values of a dtype at which formulas break, those that users meet first in front."""
    if dtype == torch.bool:
        return (True, False)
    if dtype.is_floating_point or dtype.is_complex:
        limits = torch.finfo(dtype)
        wide = dtype.itemsize > 1  # not every float8 has NaN and infinity
        unusual = (float("nan"), float("inf"), float("-inf")) if wide else ()
        return (*unusual, -0.0, 0.0, limits.tiny, limits.eps, limits.max, limits.min)
    bounds = torch.iinfo(dtype)
    return (0, bounds.max, bounds.min, 1)
