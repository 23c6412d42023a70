"""What a run with data and one without must agree on: an oracle of its own, apart from the checks'."""

from __future__ import annotations

from typing import Any

import torch

from opcheck_suite import fakes


def flat(out: Any) -> list[Any]:
    """The values that a call returns, in order; None for a call that returns nothing."""
    if isinstance(out, list | tuple):
        return [leaf for item in out for leaf in flat(item)]
    return [out]


def difference(real: Any, fake: Any) -> str | None:
    """How the metadata of what a fake kernel returns differs from what the op returns; None where it agrees.

    What only data can decide, and the fake kernel leaves open, agrees with anything.
    """
    pairs = list(zip(flat(real), flat(fake), strict=False))
    if len(flat(real)) != len(flat(fake)):
        return f"{len(flat(real))} outputs, fake {len(flat(fake))}"
    return next((text for r, f in pairs if (text := _leaf(r, f))), None)


def _leaf(real: Any, fake: Any) -> str | None:
    if not isinstance(real, torch.Tensor):
        same = type(real) is type(fake) and real == fake
        return None if same or _hint(fake) == real else f"{real!r}, fake {fake!r}"
    if not fakes.is_fake(fake):
        return f"the fake kernel returns {type(fake).__name__}"
    for name in ("dtype", "layout", "device"):
        if getattr(real, name) != getattr(fake, name):
            return f"{name} {getattr(real, name)}, fake {getattr(fake, name)}"
    if real.dim() != fake.dim() or not _agree(real.shape, fake.shape):
        return f"shape {tuple(real.shape)}, fake {tuple(fake.shape)}"
    wide = [dim for dim, size in enumerate(real.shape) if size > 1]
    if real.layout == torch.strided and real.numel():
        strides = [real.stride(dim) for dim in wide], [fake.stride(dim) for dim in wide]
        if not _agree(*strides):
            return f"strides {tuple(real.stride())} of shape {tuple(real.shape)}, fake {tuple(fake.stride())}"
    return None


def _agree(real: Any, fake: Any) -> bool:
    return all(_hint(f) in (r, None) for r, f in zip(real, fake, strict=True))


def _hint(value: Any) -> Any:
    """The number that a symbol stands for in this call; None where only data decides."""
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return value.node.hint if value.node.has_hint() else None
    return value
