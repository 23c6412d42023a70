"""Half precision, rounded once.

An op that rounds every intermediate result to half precision can be off by more than tests tolerate, and more so where
numbers cancel. Kernels here compute in float32 at least, and references in float64.
"""

import torch
from torch import Tensor


def widened(x: Tensor, at_least: torch.dtype = torch.float32) -> Tensor:
    """x, real or complex, with at least the precision of a real dtype; x itself where it has that already."""
    return x.to(torch.promote_types(x.dtype, at_least))


def double(x: Tensor) -> Tensor:
    """x in float64 or complex128."""
    return widened(x, torch.float64)
