"""Ops whose fake kernel says something else than the op does."""

from __future__ import annotations

import torch
from torch import Tensor

from reference_ops.broken.fault import Fault, doubled, like, planted


@torch.library.custom_op("broken_fake::refuses_one_row", mutates_args=())
def refuses_one_row(x: Tensor) -> Tensor:
    """The fake kernel refuses a single row, which the op accepts."""
    return doubled(x)


@refuses_one_row.register_fake
def _(x: Tensor) -> Tensor:
    torch._check(x.shape[0] != 1, lambda: "expected several rows")
    return like(x)


@torch.library.custom_op("broken_fake::reads_data", mutates_args=())
def reads_data(x: Tensor) -> Tensor:
    """The fake kernel branches on data."""
    return doubled(x)


@reads_data.register_fake
def _(x: Tensor) -> Tensor:
    if x.sum() > 1e9:
        raise ValueError("too large")
    return like(x)


@torch.library.custom_op("broken_fake::other_device", mutates_args=())
def other_device(x: Tensor) -> Tensor:
    """The fake output is on the meta device."""
    return doubled(x)


@other_device.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty(x.shape, dtype=x.dtype, device="meta")


@torch.library.custom_op("broken_fake::empty_is_integer", mutates_args=())
def empty_is_integer(x: Tensor) -> Tensor:
    """The fake output of an input without elements is of an integer type."""
    return doubled(x)


@empty_is_integer.register_fake
def _(x: Tensor) -> Tensor:
    return like(x) if x.numel() else x.new_empty(x.shape, dtype=torch.int64)


@torch.library.custom_op("broken_fake::other_dtype", mutates_args=())
def other_dtype(x: Tensor) -> Tensor:
    """The fake output is of type float64."""
    return doubled(x)


@other_dtype.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(x.shape, dtype=torch.float64)


@torch.library.custom_op("broken_fake::sample_size", mutates_args=())
def sample_size(x: Tensor) -> Tensor:
    """The number of rows in the author's sample is written into the fake kernel."""
    return doubled(x)


@sample_size.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty((3, *x.shape[1:]))


@torch.library.custom_op("broken_fake::other_layout", mutates_args=())
def other_layout(x: Tensor) -> Tensor:
    """The op keeps the layout of a transposed input, the fake kernel packs it."""
    return torch.empty_like(x).copy_(x * 2)


other_layout.register_fake(like)

FAULTS: list[Fault] = [
    planted(refuses_one_row, "fake.runs", reference=doubled),
    # torch's utils call the fake kernel on the sample
    planted(reads_data, "fake.runs", also={"opcheck.utils": "fail"}, reference=doubled),
    planted(other_device, "fake.device", also={"opcheck.utils": "fail"}, reference=doubled),
    planted(empty_is_integer, "fake.dtype", reference=doubled),
    planted(other_dtype, "fake.dtype", also={"opcheck.utils": "fail"}, reference=doubled),
    planted(sample_size, "fake.shape", reference=doubled),
    planted(other_layout, "fake.strides", reference=doubled),
]
