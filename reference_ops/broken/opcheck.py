"""Ops that torch's own opcheck alone finds at fault."""

from __future__ import annotations

import torch
from torch import Tensor

from reference_ops.broken.fault import Fault, doubled, like, planted

_KNOWN: dict[int, str] = {3: "small"}


@torch.library.custom_op("broken_opcheck::looks_size_up", mutates_args=())
def looks_size_up(x: Tensor) -> Tensor:
    """The fake kernel looks a size up in a dict, which symbolic sizes cannot be."""
    return doubled(x)


@looks_size_up.register_fake
def _(x: Tensor) -> Tensor:
    _KNOWN.get(x.shape[0])
    return like(x)


FAULTS: list[Fault] = [planted(looks_size_up, "opcheck.utils", reference=doubled)]
