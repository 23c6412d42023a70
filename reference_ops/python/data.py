"""Tensors for samples: small, the same each time, and the same on every device."""

import torch
from torch import Tensor


def normal(*shape: int, device: str, dtype: torch.dtype | None = None, seed: int = 0) -> Tensor:
    """Normally distributed values of a ``shape``; integers from -9 to 9 when ``dtype`` is an integer type.

    They are drawn on the CPU in float64 and then converted, so that neither the device nor the dtype changes the data.
    """
    dtype = dtype or torch.float32
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_complex:
        values = torch.randn(shape, generator=generator, dtype=torch.complex128)
    elif dtype.is_floating_point:
        values = torch.randn(shape, generator=generator, dtype=torch.float64)
    else:
        values = torch.randint(-9, 10, shape, generator=generator)
    return values.to(device=device, dtype=dtype)


def integers(*shape: int, device: str, low: int = -9, high: int = 10, seed: int = 0) -> Tensor:
    """int64 values from ``low`` up to but not including ``high``."""
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed)).to(device)
