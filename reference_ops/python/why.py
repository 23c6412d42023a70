"""Why there are custom operators: functions that ``torch.compile`` cannot trace, and what wrapping makes of them.

The function before wrapping is in the spec as ``unwrapped``: compiled as it is, it breaks the graph in two or more
parts. As an operator it is one node of one graph. The programming model of torch.compile names the other reasons:
results whose size depends on the data, randomness, and operators that make tensors from nothing.
"""

import binascii
import itertools
import math
import zlib
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from opcheck_suite.model import OpSpec, Sample
from reference_ops.python import conditions
from reference_ops.python.conditions import COMPLEX, FLOATS, INTEGERS
from reference_ops.python.data import normal


def _tone_curve_result(x: Tensor, knots: Sequence[float], levels: Sequence[float]) -> Tensor:
    conditions.dtype_among("tone_curve", "x", x, FLOATS)
    torch._check(len(knots) > 0, lambda: "tone_curve: expected at least one knot, got an empty list")
    torch._check(
        len(knots) == len(levels),
        lambda: f"tone_curve: expected a level a knot, got {len(knots)} knots and {len(levels)} levels",
    )
    torch._check(
        all(low < high for low, high in itertools.pairwise(knots)),
        lambda: f"tone_curve: expected ascending knots, got {list(knots)}",
    )
    return x.new_empty(x.shape)


def tone_curve(x: Tensor, knots: Sequence[float], levels: Sequence[float]) -> Tensor:
    """Map knots to levels, linearly in between and constantly beyond. Dynamo knows no ``np.interp``."""
    values = np.interp(x.detach().cpu().double().numpy(), knots, levels)
    return torch.as_tensor(values, dtype=x.dtype, device=x.device)


@torch.library.custom_op("reference::tone_curve", mutates_args=(), tags=(torch.Tag.cudagraph_unsafe,))
def tone_curve_op(x: Tensor, knots: Sequence[float], levels: Sequence[float]) -> Tensor:
    """`tone_curve` as an operator."""
    return _tone_curve_result(x, knots, levels).copy_(tone_curve(x, knots, levels))


tone_curve_op.register_fake(_tone_curve_result)


def _tone_curve_aten(x: Tensor, knots: Sequence[float], levels: Sequence[float]) -> Tensor:
    # A sum of ramps: the first level, and for each piece its rise times how much of it lies below x.
    values = torch.full_like(x, levels[0], dtype=torch.float64)
    for i in range(len(knots) - 1):
        share = (x.double() - knots[i]) / (knots[i + 1] - knots[i])
        values += (levels[i + 1] - levels[i]) * share.clamp(0, 1)
    return values.to(x.dtype)


def _limit_peak_result(x: Tensor) -> Tensor:
    conditions.dtype_among("limit_peak", "x", x, FLOATS)
    return x.new_empty(x.shape)


def limit_peak(x: Tensor) -> Tensor:
    """x, divided by its largest magnitude if that exceeds 1. Python must have the number to take the branch."""
    peak = x.abs().amax().item() if x.numel() else 0.0
    if peak > 1:
        return x / peak
    return x.clone()


@torch.library.custom_op("reference::limit_peak", mutates_args=(), tags=(torch.Tag.cudagraph_unsafe,))
def limit_peak_op(x: Tensor) -> Tensor:
    """`limit_peak` as an operator."""
    return _limit_peak_result(x).copy_(limit_peak(x))


limit_peak_op.register_fake(_limit_peak_result)


def _limit_peak_aten(x: Tensor) -> Tensor:
    if x.numel() == 0:
        return x.clone()
    peak = x.abs().amax()
    return torch.where(peak > 1, x / peak, x)


def _exact_sum_result(x: Tensor) -> Tensor:
    conditions.dtype_among("exact_sum", "x", x, FLOATS)
    return x.new_empty(())


def exact_sum(x: Tensor) -> Tensor:
    """Sum of all elements, rounded once. Dynamo sees neither into ``tolist`` nor into ``math.fsum``."""
    values = x.flatten().tolist()
    # fsum raises where inf meets -inf; plain addition says nan, as torch does.
    add = math.fsum if all(math.isfinite(value) for value in values) else sum
    return torch.tensor(add(values), dtype=torch.float64).to(x.device, x.dtype)


@torch.library.custom_op("reference::exact_sum", mutates_args=(), tags=(torch.Tag.cudagraph_unsafe,))
def exact_sum_op(x: Tensor) -> Tensor:
    """`exact_sum` as an operator."""
    return _exact_sum_result(x).copy_(exact_sum(x))


exact_sum_op.register_fake(_exact_sum_result)


def _checksum_result(x: Tensor) -> Tensor:
    conditions.dtype_among("checksum", "x", x, FLOATS + COMPLEX + INTEGERS)
    return x.new_empty((), dtype=torch.int64)


def _bytes_of(x: Tensor) -> bytes:
    # By way of uint8, as NumPy has no bfloat16; flattened, as a 0-d tensor cannot be viewed in smaller elements.
    return x.detach().cpu().flatten().clone(memory_format=torch.contiguous_format).view(torch.uint8).numpy().tobytes()


def checksum(x: Tensor) -> Tensor:
    """CRC-32 of the elements in logical order, whatever the layout. The work is done by a C library."""
    return torch.tensor(zlib.crc32(_bytes_of(x)), device=x.device)


@torch.library.custom_op("reference::checksum", mutates_args=(), tags=(torch.Tag.cudagraph_unsafe,))
def checksum_op(x: Tensor) -> Tensor:
    """`checksum` as an operator."""
    return _checksum_result(x).copy_(checksum(x))


checksum_op.register_fake(_checksum_result)


@torch.library.custom_op("reference::nonzero_values", mutates_args=())
def nonzero_values(x: Tensor) -> Tensor:
    """The elements that are not zero, as a vector in logical order. Its length depends on the data."""
    conditions.dtype_among("nonzero_values", "x", x, FLOATS + COMPLEX + INTEGERS)
    flat = x.flatten()
    return flat[flat.nonzero().squeeze(1)]


@nonzero_values.register_fake
def _(x: Tensor) -> Tensor:
    conditions.dtype_among("nonzero_values", "x", x, FLOATS + COMPLEX + INTEGERS)
    return x.new_empty((torch.library.get_ctx().new_dynamic_size(),))


def _jitter_result(x: Tensor, scale: float) -> Tensor:
    conditions.dtype_among("jitter", "x", x, FLOATS)
    return x.new_empty(x.shape)


@torch.library.custom_op("reference::jitter", mutates_args=(), tags=(torch.Tag.nondeterministic_seeded,))
def jitter(x: Tensor, scale: float) -> Tensor:
    """x plus normal noise of a given scale. The tag keeps compilers from merging two calls into one."""
    return _jitter_result(x, scale).normal_().mul_(scale).add_(x)


jitter.register_fake(_jitter_result)


def _triangle_result(length: int, device: torch.device, dtype: torch.dtype = torch.float32) -> Tensor:
    torch._check(length >= 0, lambda: f"triangle: expected a length of at least 0, got {length}")
    torch._check(dtype in FLOATS, lambda: f"triangle: expected a floating dtype, got {dtype}")
    return torch.empty((length,), device=device, dtype=dtype)


@torch.library.custom_op("reference::triangle", mutates_args=())
def triangle(length: int, device: torch.device, dtype: torch.dtype = torch.float32) -> Tensor:
    """A triangular window: symmetric, and 1 in the middle of an odd length."""
    ramp = torch.arange(length, device=device, dtype=torch.float64)
    return _triangle_result(length, device, dtype).copy_(1 - (2 * ramp - (length - 1)).abs() / (length + 1))


triangle.register_fake(_triangle_result)


def _triangle_numpy(length: int, device: torch.device, dtype: torch.dtype = torch.float32) -> Tensor:
    rising = np.minimum(np.arange(1, length + 1), np.arange(length, 0, -1)) * 2 / (length + 1)
    return torch.as_tensor(rising).to(device, dtype)


def _matrix(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 4, device=device, dtype=dtype),), name="matrix")


def _tone_curve_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 5, device=device, dtype=dtype), [-1.0, 0.0, 1.0], [0.0, 0.25, 1.0]), name="three knots")


def _limit_peak_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 4, device=device, dtype=dtype),), name="loud")
    yield Sample((normal(3, 4, device=device, dtype=dtype) / 8,), name="quiet")


def _nonzero_values_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 4, device=device, dtype=dtype).round(),), name="some zeros")
    yield Sample((normal(5, device=device, dtype=dtype) + 9,), name="no zeros")


def _jitter_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 4, device=device, dtype=dtype), 0.5), name="matrix")


def _triangle_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((7, torch.device(device)), name="odd length")
    yield Sample((4, torch.device(device), torch.float64), name="even length, double")


SPECS = [
    OpSpec(
        tone_curve_op,
        _tone_curve_samples,
        reference=_tone_curve_aten,
        unwrapped=tone_curve,
        about="calls NumPy in a way that Dynamo cannot trace",
    ),
    OpSpec(
        limit_peak_op,
        _limit_peak_samples,
        reference=_limit_peak_aten,
        unwrapped=limit_peak,
        about="takes a branch that depends on .item()",
    ),
    OpSpec(
        exact_sum_op,
        _matrix,
        reference=lambda x: x.double().sum().to(x.dtype),
        unwrapped=exact_sum,
        about="computes in Python numbers, through a generator and the math module",
    ),
    OpSpec(
        checksum_op,
        _matrix,
        reference=lambda x: torch.tensor(binascii.crc32(_bytes_of(x)), device=x.device),
        unwrapped=checksum,
        about="hands its bytes to a C library; sensitive to any element read in the wrong order",
    ),
    OpSpec(
        nonzero_values,
        _nonzero_values_samples,
        reference=lambda x: torch.masked_select(x, x != 0),
        about="the size of the result depends on the data",
    ),
    OpSpec(
        jitter,
        _jitter_samples,
        deterministic=False,
        about="random: follows torch's generator, and says so by its tag",
    ),
    OpSpec(
        triangle,
        _triangle_samples,
        reference=_triangle_numpy,
        about="a factory: no argument is a tensor",
    ),
]
