"""Ops that torch's own opcheck alone finds at fault."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from reference_ops.broken.fault import Fault, doubled, like, planted

_KNOWN: dict[int, float] = {3: 2.0}


@torch.library.custom_op("broken_opcheck::formula_looks_size_up", mutates_args=())
def formula_looks_size_up(x: Tensor) -> Tensor:
    """The formula looks a size up in a dict, which symbolic sizes cannot be."""
    return doubled(x)


@formula_looks_size_up.register_autograd
def _gradient(ctx: Any, grad: Tensor) -> Tensor:
    return grad * _KNOWN.get(grad.shape[0], 2.0)


formula_looks_size_up.register_fake(like)

FAULTS: list[Fault] = [planted(formula_looks_size_up, "opcheck.utils", reference=doubled)]
