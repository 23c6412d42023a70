"""The ops of sphericart-torch 2.0.4: spherical and solid harmonics, with their derivatives.

Inputs are those of its tests, made small. ``xyz`` holds points as rows, so that its last size is always three.
"""

from collections.abc import Iterator

import sphericart.torch  # noqa: F401 - registers the ops
import torch

from opcheck_suite import OpSpec, Sample

KINDS = ("spherical", "solid")


def points(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    """Points in double and single precision, and the constant harmonic alone."""
    del dtype
    generator = torch.Generator().manual_seed(0)
    xyz = torch.randn(6, 3, dtype=torch.float64, generator=generator).to(device)
    yield Sample(args=(xyz, 3), name="double")
    yield Sample(args=(xyz[:5].float(), 2), name="single")
    yield Sample(args=(xyz, 0), name="constant")


SPECS = [
    OpSpec(
        f"sphericart_torch::{kind}_harmonics{suffix}",
        samples=points,
        about="harmonics, and their derivatives by xyz",
        # its authors document that there are no third derivatives
        differentiable=False if suffix == "_with_hessians" else None,
    )
    for kind in KINDS
    for suffix in ("", "_with_gradients", "_with_hessians")
]
