"""Specs of ops that PyTorch 2.13 itself registers through its custom-op APIs, for ``opcheck run``.

- ``onnx`` and ``onnx_symbolic``, in `torch.onnx.ops`, by ``torch.library.custom_op``;
- ``torch_nn``, behind `torch.nn.functional.linear_cross_entropy`, by ``custom_op`` with autograd and vmap rules;
- ``quantized_decomposed``, in `torch.ao.quantization.fx._decomposed`, by ``torch.library.Library`` and ``impl``.

``opcheck audit torch.onnx.ops`` shows how the first are registered; it works with the other two modules as well.
"""

import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed
import torch.nn.functional as F
import torch.nn.modules.linear_cross_entropy  # registers torch_nn
import torch.onnx.ops  # registers onnx and onnx_symbolic

from opcheck_suite import OpSpec, Sample


def _randn(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def _rand(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) + 0.1


# -- onnx


def rotary_embedding(x, cos, sin, positions=None, *, interleaved=False, num_heads=0):
    """Each pair of features turned by its angle, as complex numbers: a pair is (i, i + size / 2), or (2 i, 2 i + 1)."""
    heads = x if x.dim() == 4 else x.unflatten(2, (num_heads, -1)).transpose(1, 2)
    turn = torch.complex(cos, sin) if positions is None else torch.complex(cos, sin)[positions]
    first, second = (heads[..., ::2], heads[..., 1::2]) if interleaved else heads.chunk(2, dim=-1)
    turned = torch.complex(first.contiguous(), second.contiguous()) * turn[:, None]
    pairs = [turned.real, turned.imag]
    out = torch.stack(pairs, dim=-1).flatten(-2) if interleaved else torch.cat(pairs, dim=-1)
    return out if x.dim() == 4 else out.transpose(1, 2).flatten(2)


def rotary_embedding_samples(_device, _dtype):
    batch, heads, length, size = 2, 3, 5, 8
    x, angle = _randn(batch, heads, length, size), _randn(batch, length, size // 2, seed=1)
    table = _randn(11, size // 2, seed=2)
    positions = torch.arange(batch * length).reshape(batch, length)
    yield Sample((x, angle.cos(), angle.sin()), name="4-d")
    yield Sample((x, table.cos(), table.sin(), positions), name="4-d, positions")
    yield Sample((x, angle.cos(), angle.sin()), {"interleaved": True}, name="4-d, interleaved")
    flat = x.transpose(1, 2).reshape(batch, length, heads * size)
    yield Sample((flat, angle.cos(), angle.sin()), {"num_heads": heads}, name="3-d")


def attention(
    q,
    k,
    v,
    mask=None,
    past_k=None,
    past_v=None,
    *,
    is_causal=False,
    q_num_heads=0,
    kv_num_heads=0,
    softcap=0.0,
    qk_matmul_output_mode=0,
):
    """Attention written out. The last output is the scores, before (mode 0) or after (mode 2) they are capped."""
    flat = q.dim() == 3
    if flat:
        q = q.unflatten(2, (q_num_heads, -1)).transpose(1, 2)
        k, v = (t.unflatten(2, (kv_num_heads, -1)).transpose(1, 2) for t in (k, v))
    if past_k is not None:
        k, v = torch.cat([past_k, k], dim=2), torch.cat([past_v, v], dim=2)
    keys, values = (t.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for t in (k, v))
    raw = q @ keys.mT / q.shape[-1] ** 0.5
    scores = raw if mask is None else raw + mask
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), -torch.inf)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    out = scores.softmax(-1) @ values
    return out.transpose(1, 2).flatten(2) if flat else out, k, v, scores if qk_matmul_output_mode == 2 else raw


def attention_samples(_device, _dtype):
    batch, heads, length, past, size = 2, 4, 3, 5, 8
    q, k, v = (_randn(batch, heads, length, size, seed=n) for n in range(3))
    old_k, old_v = (_randn(batch, heads, past, size, seed=n) for n in (3, 4))
    yield Sample((q, k, v), name="4-d")
    yield Sample((q, k, v), {"is_causal": True}, name="4-d, causal")
    yield Sample((q, k, v, None, old_k, old_v), name="4-d, with a cache")
    yield Sample((q, k[:, :2].clone(), v[:, :2].clone()), name="4-d, grouped queries")
    yield Sample((q, k, v), {"softcap": 2.0, "qk_matmul_output_mode": 2}, name="4-d, softcap")
    yield Sample((q, k, _randn(batch, heads, length, 6)), name="4-d, values of another size")
    flat = [t.transpose(1, 2).reshape(batch, length, heads * size) for t in (q, k, v)]
    yield Sample(flat, {"q_num_heads": heads, "kv_num_heads": heads}, name="3-d")


_NO_ATTRIBUTES = dict.fromkeys(
    (
        *("attr_keys", "attr_types", "attr_pos", "attr_ints", "attr_floats", "attr_strs"),
        *("metadata_props_keys", "metadata_props_values"),
    ),
    (),
)
_FLOAT, _INT64 = 1, 7  # ONNX numbers of dtypes


def symbolic_samples(_device, _dtype):
    yield Sample(([_randn(2, 3)], "Add", _FLOAT), {"shape": [2, 3], **_NO_ATTRIBUTES}, name="one input")
    yield Sample(([_randn(2, 3), None], "Clip", _INT64), {"shape": [4], **_NO_ATTRIBUTES}, name="an input left out")


def symbolic_multi_out_samples(_device, _dtype):
    shapes = {"shapes": [[2, 3], [4]], **_NO_ATTRIBUTES}
    yield Sample(([_randn(2, 3)], "Split", [_FLOAT, _INT64]), shapes, name="two outputs")


# -- torch_nn


def linear_cross_entropy(x, weight, target, bias, class_weight, reduction, ignore_index):
    """The loss of a linear layer, by the two functions that the chunked op stands for."""
    logits = F.linear(x, weight, bias)
    return F.cross_entropy(logits, target, class_weight, ignore_index=ignore_index, reduction=reduction)


def chunked_samples(_device, _dtype):
    x, weight, bias = _randn(6, 4), _randn(5, 4, seed=1), _randn(5, seed=2)
    target = torch.tensor([0, 4, 2, 1, 3, 2])
    for reduction in ("mean", "sum"):
        options = (reduction, -100, 0.0, 4, "balanced", torch.float32, True, True, True, True)
        yield Sample((x, weight, target, bias, None, *options), name=reduction)


def chunked_reference(x, weight, target, bias, class_weight, reduction, ignore_index, *_rest):
    """The loss, and its gradients for the input, the weight and the bias."""
    leaves = [t.detach().requires_grad_() for t in (x, weight, bias)]
    loss = linear_cross_entropy(leaves[0], leaves[1], target, leaves[2], class_weight, reduction, ignore_index)
    return (loss.detach(), *torch.autograd.grad(loss, leaves))


def no_reduction_samples(_device, _dtype):
    x, weight, bias = _randn(6, 4), _randn(5, 4, seed=1), _randn(5, seed=2)
    target = torch.tensor([0, 4, 2, 1, 3, 2])
    yield Sample((x, weight, target, bias, None, -100, 4, "balanced", torch.float32), name="bias")
    yield Sample((x, weight, target, None, None, 2, 4, "balanced", torch.float32), name="an ignored class")
    yield Sample((x.double(), weight.double(), target, None, None, -100, 4, "balanced", torch.float64), name="float64")


def no_reduction_reference(x, weight, target, bias, class_weight, ignore_index, *_rest):
    """The loss of every row."""
    return linear_cross_entropy(x, weight, target, bias, class_weight, "none", ignore_index)


# -- quantized_decomposed

_INT8 = (-128, 127, torch.int8)


def _one(value, dtype):
    return torch.tensor([value], dtype=dtype)


def quantize(x, scale, zero_point, low, high, dtype):
    """Affine quantisation, with parameters that broadcast against ``x``."""
    return (torch.round(x.float() / scale) + zero_point).clamp(low, high).to(dtype)


def dequantize(q, scale, zero_point, out_dtype=None):
    """Affine dequantisation, with parameters that broadcast against ``q``."""
    return ((q.double() - zero_point) * scale).to(out_dtype or torch.float32)


def _channels(values, axis, like):
    """Values for each channel as a tensor that broadcasts against ``like`` along ``axis``."""
    return values.reshape([-1 if n == axis else 1 for n in range(like.dim())])


def _grid():
    """Values in quarters, so that dividing by a scale of 0.5 and rounding is the same in every order of operations."""
    return (_randn(4, 6) * 8).round() / 4 + 0.0625


def quantize_per_tensor_samples(_device, _dtype):
    yield Sample((_grid(), 0.5, 3, *_INT8), name="float32")
    yield Sample((_grid().bfloat16(), 0.5, 3, *_INT8), name="bfloat16")


def quantize_per_tensor_tensor_samples(_device, _dtype):
    yield Sample((_grid(), _one(0.5, torch.float32), _one(3, torch.int64), *_INT8), name="float32")


def quantize_per_tensor_tensor2_samples(_device, _dtype):
    limits = (_one(-128, torch.int64), _one(127, torch.int64))
    yield Sample((_grid(), _one(0.5, torch.float32), _one(3, torch.int64), *limits, torch.int8), name="float32")


def _quantised():
    return torch.arange(-12, 12, dtype=torch.int8).reshape(4, 6)


def dequantize_per_tensor_samples(_device, _dtype):
    yield Sample((_quantised(), 0.5, 3, *_INT8), name="to float32")
    yield Sample((_quantised(), 0.5, 3, *_INT8), {"out_dtype": torch.bfloat16}, name="to bfloat16")


def dequantize_per_tensor_tensor_samples(_device, _dtype):
    scale, zero = _one(0.5, torch.float32), _one(3, torch.int64)
    yield Sample((_quantised(), scale, zero, *_INT8), name="to float32")
    yield Sample((_quantised(), scale, zero, *_INT8), {"out_dtype": torch.bfloat16}, name="to bfloat16")


def dequantize_per_tensor_tensor2_samples(_device, _dtype):
    limits = (_one(-128, torch.int64), _one(127, torch.int64))
    yield Sample((_quantised(), _one(0.5, torch.float32), _one(3, torch.int64), *limits, torch.int8), name="to float32")


def quantize_per_channel_samples(_device, _dtype):
    zeros = torch.tensor([0, 1, -2, 3, 0, 5], dtype=torch.int32)
    yield Sample((_grid(), _rand(4), zeros[:4].clone(), 0, *_INT8), name="axis 0")
    yield Sample((_grid(), _rand(6), zeros, 1, *_INT8), name="axis 1")
    yield Sample((_randn(2, 3, 5), _rand(5), zeros[:5].clone(), 2, *_INT8), name="3-d, last axis")


def dequantize_per_channel_samples(_device, _dtype):
    zeros = torch.tensor([0, 1, -2, 3, 0, 5], dtype=torch.int32)
    yield Sample((_quantised(), _rand(4), zeros[:4].clone(), 0, *_INT8), name="axis 0")
    yield Sample((_quantised(), _rand(6), zeros, 1, *_INT8), name="axis 1")
    yield Sample((_quantised(), _rand(6), None, 1, *_INT8), name="no zero points")
    yield Sample((_quantised(), _rand(6), zeros, 1, *_INT8), {"out_dtype": torch.bfloat16}, name="to bfloat16")


def quantize_per_token_samples(_device, _dtype):
    yield Sample((_randn(4, 6), _rand(4, 1), torch.zeros(4, 1), *_INT8), name="matrix")
    yield Sample((_randn(2, 3, 5), _rand(2, 3, 1), torch.zeros(2, 3, 1), *_INT8), name="batch")


def dequantize_per_token_samples(_device, _dtype):
    zeros = torch.zeros(4, 1, dtype=torch.int64)
    yield Sample((_quantised(), _rand(4, 1).double(), zeros, *_INT8, torch.float32), name="to float32")
    yield Sample((_quantised(), _rand(4, 1), zeros.float(), *_INT8, torch.bfloat16), name="to bfloat16")


def quantize_per_channel_group_samples(_device, _dtype):
    zeros = torch.zeros(4, 2, dtype=torch.int32)
    yield Sample((_randn(4, 6), _rand(4, 2), zeros, *_INT8, 3), name="two groups a row")


def dequantize_per_channel_group_samples(_device, _dtype):
    zeros = torch.ones(4, 2, dtype=torch.int32)
    yield Sample((_quantised(), _rand(4, 2), zeros, *_INT8, 3, torch.float32), name="two groups a row")
    yield Sample((_quantised(), _rand(4, 2), None, *_INT8, 3, torch.float32), name="no zero points")


def choose_qparams_samples(_device, _dtype):
    yield Sample((_randn(4, 6), *_INT8[:2], 1e-5, torch.int8), name="float32")
    yield Sample((_randn(4, 6).half(), *_INT8[:2], 1e-5, torch.int8), name="float16")


def choose_qparams_per_token_samples(_device, _dtype):
    yield Sample((_randn(4, 6), torch.int8), name="matrix")
    yield Sample((_randn(2, 3, 5), torch.int8), name="batch")


def fake_quant_per_channel_samples(_device, _dtype):
    zeros = torch.zeros(6, dtype=torch.int32)
    yield Sample((_randn(4, 6), _rand(6), zeros, 1, -128, 127), name="axis 1")


def convert_samples(_device, _dtype):
    yield Sample((_randn(4, 6), torch.float16), name="to float16")
    yield Sample((_randn(4, 6), torch.int32), name="to int32")


def _q(name, samples, reference=None, **claims):
    return OpSpec(f"quantized_decomposed::{name}", samples, reference, **claims)


SPECS = [
    OpSpec("onnx::RotaryEmbedding.opset23", rotary_embedding_samples, rotary_embedding),
    OpSpec("onnx::Attention.opset23", attention_samples, attention),
    OpSpec("onnx_symbolic::_symbolic", symbolic_samples, about="stands for an ONNX node; returns zeros"),
    OpSpec("onnx_symbolic::_symbolic_multi_out", symbolic_multi_out_samples),
    OpSpec(
        "torch_nn::_linear_cross_entropy_batch_chunked",
        chunked_samples,
        chunked_reference,
        about="the loss and its gradients in one pass; only the loss is meant to be differentiated",
    ),
    OpSpec(
        "torch_nn::_linear_cross_entropy_batch_chunked_no_reduction",
        no_reduction_samples,
        no_reduction_reference,
        differentiable=True,
    ),
    _q("quantize_per_tensor", quantize_per_tensor_samples, quantize),
    _q("quantize_per_tensor.tensor", quantize_per_tensor_tensor_samples, quantize),
    _q("quantize_per_tensor.tensor2", quantize_per_tensor_tensor2_samples, quantize),
    _q(
        "dequantize_per_tensor",
        dequantize_per_tensor_samples,
        lambda q, s, z, _low, _high, _dtype, out_dtype=None: dequantize(q, s, z, out_dtype),
    ),
    _q(
        "dequantize_per_tensor.tensor",
        dequantize_per_tensor_tensor_samples,
        lambda q, s, z, _low, _high, _dtype, out_dtype=None: dequantize(q, s, z, out_dtype),
    ),
    _q(
        "dequantize_per_tensor.tensor2",
        dequantize_per_tensor_tensor2_samples,
        lambda q, s, z, _low, _high, _dtype, out_dtype=None: dequantize(q, s, z, out_dtype),
    ),
    _q("quantize_per_channel", quantize_per_channel_samples),
    _q(
        "dequantize_per_channel",
        dequantize_per_channel_samples,
        lambda q, s, z, axis, _low, _high, _dtype, out_dtype=None: dequantize(
            q, _channels(s, axis, q), 0 if z is None else _channels(z, axis, q), out_dtype
        ),
    ),
    _q("quantize_per_token", quantize_per_token_samples),
    _q(
        "dequantize_per_token",
        dequantize_per_token_samples,
        lambda q, s, z, _low, _high, _dtype, out_dtype: dequantize(q, s, z, out_dtype),
    ),
    _q("quantize_per_channel_group", quantize_per_channel_group_samples),
    _q("dequantize_per_channel_group", dequantize_per_channel_group_samples),
    _q("choose_qparams.tensor", choose_qparams_samples),
    _q("choose_qparams_symmetric.tensor", choose_qparams_samples),
    _q("choose_qparams_per_token", choose_qparams_per_token_samples),
    _q("choose_qparams_per_token_asymmetric", choose_qparams_per_token_samples),
    _q("_choose_qparams_per_token_asymmetric_impl", choose_qparams_per_token_samples, opaque=False),
    _q("fake_quant_per_channel", fake_quant_per_channel_samples, about="straight-through gradient"),
    _q("convert_element_type.no_fuse", convert_samples, lambda x, dtype: x.to(dtype)),
]
