"""A small op with a real fault, which torch.library.opcheck passes: the README shows what the suite says of it."""

import numpy as np
import torch

from opcheck_suite import OpSpec, Sample


@torch.library.custom_op("demo::softsign", mutates_args=())
def softsign(x: torch.Tensor) -> torch.Tensor:
    a = x.numpy()
    return torch.from_numpy(np.ascontiguousarray(a / (1 + np.abs(a))))


@softsign.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


SPECS = [
    OpSpec(
        softsign,
        samples=[Sample(args=(torch.linspace(-3, 3, 12).reshape(3, 4),), name="matrix")],
        reference=torch.nn.functional.softsign,
    )
]
