"""The specs of the native reference ops: C++ and CUDA, stable ABI, Triton."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from opcheck_suite.model import OpSpec, Sample
from reference_ops.native import triton_ops
from reference_ops.native._build import cuda_bound
from reference_ops.native.ops import STABLE_UNAVAILABLE, UNAVAILABLE
from reference_ops.python.data import normal

_FLOATS = (torch.float32, torch.float64)
#: All have CUDA kernels as well, which are there where torch and nvcc are.
_DEVICES = ("cpu", "cuda") if cuda_bound() else ("cpu",)
_STABLE_DEVICES = ("cpu", "cuda") if cuda_bound("stable") else ("cpu",)


def _muladd_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    def pair(*shape: int) -> tuple[Tensor, Tensor]:
        return normal(*shape, device=device, dtype=dtype), normal(*shape, device=device, dtype=dtype, seed=1)

    yield Sample((*pair(3, 4), 0.5), name="matrix")
    yield Sample((*pair(257), -2.0), name="vector")
    yield Sample((*pair(), 1.0), name="0-d")


def _muladd_reference(a: Tensor, b: Tensor, c: float) -> Tensor:
    return torch.add(a * b, c).contiguous()


def _scale_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(2, 3, 4, device=device, dtype=dtype), 1.5), name="cube")
    yield Sample((normal(4, 6, device=device, dtype=dtype)[:, ::2], -0.5), name="every other column")
    yield Sample((normal(device=device, dtype=dtype), 3.0), name="0-d")


def _scale_reference(x: Tensor, s: float) -> None:
    torch.mul(x, s, out=x)


def _plus_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    for shape in ((3, 4), (17,)):
        a, b = normal(*shape, device=device, dtype=dtype), normal(*shape, device=device, dtype=dtype, seed=1)
        yield Sample((a, b), name="x".join(map(str, shape)))


def _plus_reference(a: Tensor, b: Tensor) -> Tensor:
    return torch.add(a, b).contiguous()


def _plus_out_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    for sample in _plus_samples(device, dtype):
        yield Sample(sample.args, {"out": torch.zeros_like(sample.args[0])}, sample.name)


def _plus_out_reference(a: Tensor, b: Tensor, *, out: Tensor) -> Tensor:
    return torch.add(a, b, out=out)


def _plus_into_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    for sample in _plus_samples(device, dtype):
        yield Sample((*sample.args, torch.zeros_like(sample.args[0])), name=sample.name)


def _plus_into_reference(a: Tensor, b: Tensor, out: Tensor) -> None:
    torch.add(a, b, out=out)


def _weighted_sum_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    tensors = [normal(3, 4, device=device, dtype=dtype, seed=seed) for seed in range(3)]
    yield Sample((tensors, [0.5, -1.0, 2.0]), name="three tensors")
    yield Sample((tensors[:1], [3.0]), name="one tensor")


def _weighted_sum_reference(xs: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    stacked = torch.stack(list(xs))
    return torch.tensordot(torch.tensor(weights, dtype=stacked.dtype, device=stacked.device), stacked, dims=1)


def _tile_rows_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    x = normal(3, 4, device=device, dtype=dtype)
    yield Sample((x, 8), name="more rows than there are")
    yield Sample((x, 2), name="fewer rows")
    yield Sample((normal(5, device=device, dtype=dtype), 11), name="vector")


def _tile_rows_reference(x: Tensor, rows: int) -> Tensor:
    if rows == 0:
        return x.new_empty((0, *x.shape[1:]))
    times = -(-rows // x.shape[0])
    return torch.cat([x] * times)[:rows].contiguous()


def _row_norms_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 4, device=device, dtype=dtype),), name="matrix")
    yield Sample((normal(2, 3, 5, device=device, dtype=dtype),), name="batch")
    yield Sample((normal(6, device=device, dtype=dtype),), name="vector")


def _row_norms_reference(x: Tensor) -> Tensor:
    return torch.linalg.vector_norm(x, dim=-1).contiguous()


def _softclip_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 4, device=device, dtype=dtype), 2.0), name="matrix")
    yield Sample((normal(4, 3, device=device, dtype=dtype).t(), 0.5), name="transposed")
    image = normal(2, 3, 4, 5, device=device, dtype=dtype).to(memory_format=torch.channels_last)
    yield Sample((image, 1.0), name="channels_last")


def _softclip_reference(x: Tensor, limit: float) -> Tensor:
    return limit * torch.tanh(x / limit)


def _running_max_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 7, device=device, dtype=dtype),), name="matrix")
    yield Sample((normal(2, 3, 4, device=device, dtype=dtype),), name="batch")
    yield Sample((normal(9, device=device, dtype=dtype),), name="vector")


def _running_max_reference(x: Tensor) -> Tensor:
    return torch.cummax(x, dim=-1).values.contiguous()


def _axpy_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    for sample in _plus_samples(device, dtype):
        yield Sample((*sample.args, 2.5), name=sample.name)


def _axpy_reference(x: Tensor, y: Tensor, a: float) -> Tensor:
    return torch.add(y, x, alpha=a).contiguous()


SPECS: list[OpSpec] = [
    OpSpec(
        "reference_cpp::muladd",
        samples=_muladd_samples,
        reference=_muladd_reference,
        devices=_DEVICES,
        dtypes=_FLOATS,
        differentiable=True,
        unavailable=UNAVAILABLE,
        about="the ordinary C++ op: derivative by a C++ autograd::Function",
    ),
    OpSpec(
        "reference_cpp::scale_",
        samples=_scale_samples,
        reference=_scale_reference,
        devices=_DEVICES,
        dtypes=_FLOATS,
        differentiable=False,
        unavailable=UNAVAILABLE,
        about="C++ op that mutates its argument in place and returns nothing",
    ),
    OpSpec(
        "reference_cpp::plus.default",
        samples=_plus_samples,
        reference=_plus_reference,
        devices=_DEVICES,
        dtypes=_FLOATS,
        differentiable=True,
        unavailable=UNAVAILABLE,
        about="one of two overloads of a name, the functional one",
    ),
    OpSpec(
        "reference_cpp::plus.out",
        samples=_plus_out_samples,
        reference=_plus_out_reference,
        devices=_DEVICES,
        dtypes=_FLOATS,
        differentiable=False,
        unavailable=UNAVAILABLE,
        about="out= overload that returns the argument it writes, a form torch.compile cannot functionalize",
    ),
    OpSpec(
        "reference_cpp::plus_into",
        samples=_plus_into_samples,
        reference=_plus_into_reference,
        devices=_DEVICES,
        dtypes=_FLOATS,
        differentiable=False,
        unavailable=UNAVAILABLE,
        about="writes a result into an argument and returns nothing, the form of out= that works everywhere",
    ),
    OpSpec(
        "reference_cpp::weighted_sum",
        samples=_weighted_sum_samples,
        reference=_weighted_sum_reference,
        devices=_DEVICES,
        dtypes=_FLOATS,
        differentiable=True,
        unavailable=UNAVAILABLE,
        about="list of tensors and list of floats, with a gradient for each tensor",
    ),
    OpSpec(
        "reference_cpp::tile_rows",
        samples=_tile_rows_samples,
        reference=_tile_rows_reference,
        devices=_DEVICES,
        dtypes=(*_FLOATS, torch.int64),
        differentiable=True,
        unavailable=UNAVAILABLE,
        about="SymInt argument that is the size of the result; the fake is a C++ Meta kernel",
    ),
    OpSpec(
        "reference_cpp::row_norms",
        samples=_row_norms_samples,
        reference=_row_norms_reference,
        devices=_DEVICES,
        dtypes=_FLOATS,
        differentiable=True,
        unavailable=UNAVAILABLE,
        about="reduction of the last dimension; the fake is a C++ Meta kernel",
    ),
    OpSpec(
        "reference_cpp::softclip",
        samples=_softclip_samples,
        reference=_softclip_reference,
        devices=_DEVICES,
        dtypes=_FLOATS,
        differentiable=True,
        unavailable=UNAVAILABLE,
        about="walks strides through TensorIterator and keeps the memory format",
    ),
    OpSpec(
        "reference_cpp::running_max",
        samples=_running_max_samples,
        reference=_running_max_reference,
        devices=_DEVICES,
        dtypes=(*_FLOATS, torch.int64),
        differentiable=True,
        unavailable=UNAVAILABLE,
        about="calls .contiguous() first, for floats and int64",
    ),
    OpSpec(
        "reference_stable::axpy",
        samples=_axpy_samples,
        reference=_axpy_reference,
        devices=_STABLE_DEVICES,
        dtypes=_FLOATS,
        differentiable=True,
        unavailable=STABLE_UNAVAILABLE,
        about="C++ op against the stable ABI of torch 2.10",
    ),
    triton_ops.SPEC,
]
