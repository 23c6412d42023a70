"""Specs of bitsandbytes 0.50.2, for ``opcheck run examples/bitsandbytes_specs.py``.

bitsandbytes defines its ops with ``torch.library.define`` and gives every backend kernels of its own. Here are the ops
that have a kernel on the CPU. Three ``.out`` overloads and ``int8_double_quant`` have none where there is no GPU; they
are named at the end, so that the report says so.

Sizes are small and, within a sample, different from each other, so that the harness can vary one at a time. The sizes
of packed weights follow from the shape: ``n`` values of 4 bits are ``n / 2`` bytes, with one ``absmax`` for each block.
"""

import functools
from math import prod

import bitsandbytes  # noqa: F401 - registers the ops
import bitsandbytes.functional as F
import torch

from opcheck_suite import OpSpec, Sample

ops = torch.ops.bitsandbytes


# -- inputs


def _int8(generator, *shape):
    return torch.randint(-127, 128, shape, dtype=torch.int8, generator=generator)


def _activations(generator, dtype=torch.float16):
    """10 x 20, with one outlier, which int8 quantisation with a threshold treats apart."""
    x = torch.randn(10, 20, generator=generator).to(dtype)
    x[1, 3] = 1000.0
    return x


@functools.cache
def _code(*, signed=True):
    """The 256 values that 8-bit blockwise quantisation rounds to, sorted."""
    return F.create_dynamic_map(signed=signed)


@functools.cache
def _packed(quant_type="nf4", storage=torch.uint8, shape=(24, 64), blocksize=32):
    """A weight of ``shape`` in 4 bits, and its block maxima."""
    weight = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    return ops.quantize_4bit(weight, blocksize, quant_type, storage)


# -- references, in plain torch


def int8_matmul(a, b):
    """Products of int8, summed exactly."""
    return (a.long() @ b.long().t()).to(torch.int32)


def int8_matmul_out(a, b, out):
    """As `int8_matmul`, into ``out``."""
    out.copy_(int8_matmul(a, b))


def int8_vectorwise_dequant(a, stats):
    """Rows times their maxima: 127 stands for the maximum."""
    return a.float() * stats.reshape(*a.shape[:-1], 1) / 127


def int8_mm_dequant(a, row_stats, col_stats, dtype=None, bias=None):
    """An int32 product of two int8 matrices, scaled back by both maxima."""
    out = a.double() * row_stats.double().reshape(*a.shape[:-1], 1) * col_stats.double() / 127**2
    return (out if bias is None else out + bias).to(dtype or torch.float16)


def int8_scaled_mm(a, b, row_stats, col_stats, bias=None, dtype=None):
    """`int8_matmul`, then `int8_mm_dequant`."""
    return int8_mm_dequant(int8_matmul(a, b), row_stats, col_stats, dtype, bias)


def dequantize_blockwise(a, absmax, code, blocksize, dtype):
    """Codes looked up, each times the maximum of its block."""
    scale = absmax.repeat_interleave(blocksize)[: a.numel()]
    return (code[a.reshape(-1).long()] * scale).reshape(a.shape).to(dtype)


def dequantize_4bit(a, absmax, blocksize, quant_type, shape, dtype):
    """Two codes a byte, the high half first."""
    data = a.contiguous().view(torch.uint8).reshape(-1)
    codes = torch.stack([data >> 4, data & 15], dim=1).reshape(-1)[: prod(shape)]
    table = F.get_4bit_type(quant_type, device="cpu")
    scale = absmax.repeat_interleave(blocksize)[: prod(shape)]
    return (table[codes.long()] * scale).reshape(shape).to(dtype)


def gemm_4bit(a, b, shape_b, absmax, blocksize, quant_type, bias=None):
    """A linear layer with the weight dequantised."""
    return torch.nn.functional.linear(a, dequantize_4bit(b, absmax, blocksize, quant_type, shape_b, a.dtype), bias)


def gemv_4bit(a, b, shape_b, absmax, code, blocksize):
    """As `gemm_4bit`; the table of codes says which type it is."""
    return gemm_4bit(a, b, shape_b, absmax, blocksize, "fp4" if code[1] > 0 else "nf4")


def optimizer_update_32bit(
    name, g, p, state1, state2, _unorm, _max_unorm, _norm, b1, b2, _b3, _alpha, eps, decay, step, lr, gnorm_scale
):
    """AdamW, and SGD with momentum, as torch.optim has them."""
    g = g.float() * gnorm_scale
    if name == "adam":
        state1.lerp_(g, 1 - b1)
        state2.mul_(b2).add_((1 - b2) * g * g)
        denominator = (state2 / (1 - b2**step)).sqrt() + eps
        p.mul_(1 - lr * decay).sub_(lr * state1 / (1 - b1**step) / denominator)
    else:
        g = g + decay * p
        state1.copy_(g if step == 1 else state1 * b1 + g)
        p.sub_(lr * state1)


# -- samples


def int8_linear_matmul_samples(_device, _dtype):
    g = torch.Generator().manual_seed(0)
    yield Sample((_int8(g, 10, 20), _int8(g, 30, 20)), name="matrix")
    yield Sample((_int8(g, 2, 10, 20), _int8(g, 30, 20)), name="batch")


def int8_linear_matmul_out_samples(_device, _dtype):
    for sample in int8_linear_matmul_samples(_device, _dtype):
        a, b = sample.args
        yield Sample((a, b, torch.empty(*a.shape[:-1], 30, dtype=torch.int32)), name=sample.name)


def int8_vectorwise_quant_samples(_device, _dtype):
    x = _activations(torch.Generator().manual_seed(0))
    yield Sample((x,), name="no threshold")
    yield Sample((x, 6.0), name="threshold, an outlier")
    yield Sample((x.clamp(-5, 5), 6.0), name="threshold, no outlier")


def int8_vectorwise_dequant_samples(_device, _dtype):
    g = torch.Generator().manual_seed(0)
    yield Sample((_int8(g, 10, 20), torch.rand(10, generator=g)), name="matrix")


def int8_mm_dequant_samples(_device, _dtype):
    g = torch.Generator().manual_seed(0)
    product = torch.randint(-100_000, 100_000, (12, 16), dtype=torch.int32, generator=g)
    rows, columns, bias = (torch.rand(n, generator=g) + 0.5 for n in (12, 16, 16))
    yield Sample((product, rows, columns), name="to float16")
    yield Sample((product, rows, columns, torch.float32), {"bias": bias}, name="to float32, bias")
    yield Sample((product.reshape(3, 4, 16), rows, columns, torch.float32), name="batch")


def int8_scaled_mm_samples(_device, _dtype):
    g = torch.Generator().manual_seed(0)
    a, b = _int8(g, 10, 20), _int8(g, 30, 20)
    rows, columns, bias = (torch.rand(n, generator=g) for n in (10, 30, 30))
    yield Sample((a, b, rows, columns), name="to float16")
    yield Sample((a, b, rows, columns, bias, torch.float32), name="to float32, bias")
    yield Sample((a.reshape(2, 5, 20), b, rows, columns), name="batch")


def int8_mixed_scaled_mm_samples(_device, _dtype):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(10, 20, generator=g).half()
    quantised = (x, _int8(g, 10, 20), _int8(g, 30, 20), torch.rand(10, generator=g), torch.rand(30, generator=g))
    outliers, bias = torch.tensor([0, 3]), torch.randn(30, generator=g).half()
    yield Sample(quantised, name="no outlier columns")
    yield Sample((*quantised, outliers, bias), name="outlier columns, bias")


def quantize_blockwise_samples(_device, _dtype):
    g = torch.Generator().manual_seed(0)
    yield Sample((torch.randn(8, 64, generator=g), _code(), 128), name="whole blocks")
    yield Sample((torch.randn(7, 33, generator=g), _code(), 64), name="a rest")
    yield Sample((torch.randn(8, 64, generator=g).bfloat16(), _code(), 128), name="bfloat16")


def dequantize_blockwise_samples(_device, _dtype):
    for sample in quantize_blockwise_samples(_device, _dtype):
        x, code, blocksize = sample.args
        quantised, absmax = ops.quantize_blockwise(x, code, blocksize)
        yield Sample((quantised, absmax, code, blocksize, x.dtype), name=sample.name)


def quantize_4bit_samples(_device, _dtype):
    w = torch.randn(24, 64, generator=torch.Generator().manual_seed(0))
    yield Sample((w, 32, "nf4", torch.uint8), name="nf4")
    yield Sample((w, 32, "fp4", torch.uint8), name="fp4")
    yield Sample((w, 32, "nf4", torch.bfloat16), name="nf4 stored as bfloat16")
    yield Sample((w[:7, :63].clone(), 64, "nf4", torch.uint8), name="an odd count")


def dequantize_4bit_samples(_device, _dtype):
    shape = [24, 64]
    yield Sample((*_packed(), 32, "nf4", shape, torch.float32), name="nf4")
    yield Sample((*_packed("fp4"), 32, "fp4", shape, torch.float32), name="fp4")
    yield Sample((*_packed(), 32, "nf4", shape, torch.bfloat16), name="to bfloat16")
    yield Sample((*_packed(storage=torch.bfloat16), 32, "nf4", shape, torch.float32), name="stored as bfloat16")


def gemv_4bit_samples(_device, _dtype):
    x = torch.randn(1, 1, 64, generator=torch.Generator().manual_seed(0))
    weight, absmax = _packed()
    yield Sample((x, weight, [24, 64], absmax, F.get_4bit_type("nf4", device="cpu"), 32), name="one row")


def gemm_4bit_samples(_device, _dtype):
    g = torch.Generator().manual_seed(0)
    x, bias = torch.randn(2, 5, 64, generator=g), torch.randn(24, generator=g)
    weight, absmax = _packed()
    yield Sample((x, weight, [24, 64], absmax, 32, "nf4"), name="no bias")
    yield Sample((x, weight, [24, 64], absmax, 32, "nf4"), {"bias": bias}, name="bias")


def _adam(g):
    gradient, parameter, first, second = (torch.randn(32, 8, generator=g) for _ in range(4))
    return gradient, parameter, first, second.abs()


def optimizer_update_32bit_samples(_device, _dtype):
    gradient, parameter, first, second = _adam(torch.Generator().manual_seed(0))
    # ..., max_unorm, param_norm, beta1, beta2, beta3, alpha, eps, weight_decay, step, lr, gnorm_scale
    rest = (0.0, 0.0, 0.9, 0.999, 0.0, 0.0, 1e-8, 0.01, 1, 1e-3, 1.0)
    yield Sample(("adam", gradient, parameter, first, second, None, *rest), name="adam")
    yield Sample(("momentum", gradient, parameter, first, None, None, *rest), name="momentum, first step")


def optimizer_update_8bit_samples(_device, _dtype):
    g = torch.Generator().manual_seed(0)
    gradient, parameter = torch.randn(512, generator=g), torch.randn(512, generator=g)
    states = [torch.randint(0, 255, (512,), dtype=torch.uint8, generator=g) for _ in range(2)]
    maxima = [torch.rand(2, generator=g) for _ in range(2)]
    betas = (0.9, 0.999, 0.0, 0.0, 1e-8, 1, 1e-3)  # beta1, beta2, beta3, alpha, eps, step, lr
    signed, unsigned = _code(), _code(signed=False)
    yield Sample(("adam", gradient, parameter, *states, *betas, signed, unsigned, *maxima, 0.0, 1.0), name="adam")
    yield Sample(
        ("momentum", gradient, parameter, states[0], None, *betas, signed, None, maxima[0], None, 0.0, 1.0),
        name="momentum",
    )


_GPU_ONLY = {"cuda": "bitsandbytes has a kernel for this op only where it finds a GPU"}


SPECS = [
    OpSpec(
        "bitsandbytes::int8_linear_matmul",
        int8_linear_matmul_samples,
        int8_matmul,
        about="int8 matmul into int32",
    ),
    OpSpec(
        "bitsandbytes::int8_linear_matmul.out",
        int8_linear_matmul_out_samples,
        int8_matmul_out,
        about="int8 matmul into a given tensor",
    ),
    OpSpec(
        "bitsandbytes::int8_vectorwise_quant",
        int8_vectorwise_quant_samples,
        about="rows to int8; with a threshold, the outliers' columns apart",
    ),
    OpSpec(
        "bitsandbytes::int8_vectorwise_dequant",
        int8_vectorwise_dequant_samples,
        int8_vectorwise_dequant,
        about="rows back from int8",
    ),
    OpSpec(
        "bitsandbytes::int8_mm_dequant",
        int8_mm_dequant_samples,
        int8_mm_dequant,
        about="scales an int32 product back",
    ),
    OpSpec(
        "bitsandbytes::int8_scaled_mm",
        int8_scaled_mm_samples,
        int8_scaled_mm,
        about="int8 matmul, scaled back",
    ),
    OpSpec(
        "bitsandbytes::int8_mixed_scaled_mm",
        int8_mixed_scaled_mm_samples,
        about="int8 matmul with outlier columns in float16",
    ),
    OpSpec(
        "bitsandbytes::quantize_blockwise",
        quantize_blockwise_samples,
        about="to 8 bits, a maximum for each block",
    ),
    OpSpec(
        "bitsandbytes::dequantize_blockwise",
        dequantize_blockwise_samples,
        dequantize_blockwise,
        about="back from 8 bits",
    ),
    OpSpec(
        "bitsandbytes::quantize_4bit",
        quantize_4bit_samples,
        about="to 4 bits, two a byte",
    ),
    OpSpec(
        "bitsandbytes::dequantize_4bit",
        dequantize_4bit_samples,
        dequantize_4bit,
        about="back from 4 bits",
    ),
    OpSpec(
        "bitsandbytes::gemv_4bit",
        gemv_4bit_samples,
        gemv_4bit,
        about="one row times a 4-bit weight",
    ),
    OpSpec(
        "bitsandbytes::gemm_4bit",
        gemm_4bit_samples,
        gemm_4bit,
        about="a linear layer with a 4-bit weight; its gradient is in bitsandbytes.autograd, outside of the op",
    ),
    OpSpec(
        "bitsandbytes::optimizer_update_32bit",
        optimizer_update_32bit_samples,
        optimizer_update_32bit,
        about="an optimizer step with 32-bit state",
    ),
    OpSpec(
        "bitsandbytes::optimizer_update_8bit_blockwise",
        optimizer_update_8bit_samples,
        about="an optimizer step with 8-bit state",
    ),
    *(
        OpSpec(f"bitsandbytes::{name}", devices=("cuda",), unavailable=_GPU_ONLY)
        for name in ("int8_double_quant", "dequantize_blockwise.out", "dequantize_4bit.out", "gemv_4bit.out")
    ),
]
