"""A function that breaks the graph: ``opcheck breaks examples/limiter.py:limit --args example``."""

import numpy as np
import torch


def limit(x: torch.Tensor, knee: float = 0.5) -> torch.Tensor:
    y = torch.from_numpy(np.interp(x.numpy(), [-4.0, knee, 4.0], [-4.0, knee, 1.0])).to(x.dtype)
    return torch.tanh(y)


def example() -> torch.Tensor:
    return torch.linspace(-3, 3, 12).reshape(3, 4)
