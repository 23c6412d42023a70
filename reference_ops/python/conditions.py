"""Refusals that several ops share. Each raises RuntimeError with what was expected and what came.

They are called by kernels and by fake kernels, so they look at metadata only, and compare sizes one by one with
``torch._check``: that also works on symbolic sizes whose value is not known.
"""

from collections.abc import Collection

import torch
from torch import Tensor

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
COMPLEX = (torch.complex64, torch.complex128)
INTEGERS = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)

#: What both NumPy and torch can compute with at full precision.
NUMPY_FLOATS = (torch.float32, torch.float64)


def dtype_among(op: str, name: str, tensor: Tensor, dtypes: Collection[torch.dtype]) -> None:
    """Refuse a tensor whose dtype is none of ``dtypes``."""
    torch._check(
        tensor.dtype in dtypes,
        lambda: f"{op}: expected {name} of dtype {', '.join(map(str, dtypes))}, got {tensor.dtype}",
    )


def dims(op: str, name: str, tensor: Tensor, expected: int) -> None:
    """Refuse a tensor that does not have ``expected`` dimensions."""
    torch._check(
        tensor.dim() == expected,
        lambda: f"{op}: expected {name} of {expected} dimensions, got shape {tuple(tensor.shape)}",
    )


def at_least_one_dim(op: str, name: str, tensor: Tensor) -> None:
    """Refuse a 0-d tensor."""
    torch._check(tensor.dim() > 0, lambda: f"{op}: expected {name} of at least 1 dimension, got a 0-d tensor")


def same_size(op: str, what: str, left: int, right: int) -> None:
    """Refuse two sizes that differ."""
    torch._check(left == right, lambda: f"{op}: expected {what} to agree, got {left} and {right}")


def same_device(op: str, name: str, tensor: Tensor, other_name: str, other: Tensor) -> None:
    """Refuse two tensors on different devices."""
    torch._check(
        tensor.device == other.device,
        lambda: f"{op}: expected {name} and {other_name} on one device, got {tensor.device} and {other.device}",
    )


def same_kind(op: str, name: str, tensor: Tensor, other_name: str, other: Tensor) -> None:
    """Refuse two tensors that differ in dtype or device."""
    torch._check(
        tensor.dtype == other.dtype,
        lambda: f"{op}: expected {name} and {other_name} of one dtype, got {tensor.dtype} and {other.dtype}",
    )
    same_device(op, name, tensor, other_name, other)


def alike(op: str, name: str, tensor: Tensor, other_name: str, other: Tensor) -> None:
    """Refuse two tensors that differ in shape, dtype or device."""
    torch._check(
        tensor.dim() == other.dim(),
        lambda: (
            f"{op}: expected {name} and {other_name} of one shape, got {tuple(tensor.shape)} and {tuple(other.shape)}"
        ),
    )
    for dim, (mine, theirs) in enumerate(zip(tensor.shape, other.shape, strict=True)):
        same_size(op, f"dimension {dim} of {name} and {other_name}", mine, theirs)
    same_kind(op, name, tensor, other_name, other)


def writable(op: str, name: str, tensor: Tensor) -> None:
    """Refuse to write to an expanded tensor: several of its elements are one place in memory."""
    for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        # The size comes second: an ordinary tensor has no stride 0 and then makes no guard on its sizes.
        torch._check(
            not (stride == 0 and size > 1),
            lambda dim=dim, size=size: (
                f"{op}: expected {name} without overlapping elements, got {size} elements in one place "
                f"along the expanded dimension {dim}"
            ),
        )
