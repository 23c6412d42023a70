"""Specs of fbgemm_gpu 1.8.0 (fbgemm-gpu-cpu), for ``opcheck run examples/fbgemm_specs.py``.

63 of its operators: those on jagged tensors and sparse features, which take offsets, lengths and permutations, and
those that quantise rows. Kernels are registered in C++, for devices or at Autograd, and fake kernels in C++ and Python.

A jagged tensor is a matrix of rows, and offsets that say where each bag of rows begins and ends. Here are 3 bags of 2,
0 and 5 rows, padded to 5 where they are made dense; rows have 6 columns. Sizes that mean different things differ, so
that the harness can vary one at a time.
"""

import fbgemm_gpu.sparse_ops  # noqa: F401 - registers the ops, and their fake kernels
import torch

from opcheck_suite import OpSpec, Sample

ops = torch.ops.fbgemm
SPECS = []


def spec(name, samples, reference=None, **claims):
    """Add the spec of ``fbgemm::name``; ``samples()`` gives tuples of arguments, or a dict of them by name."""

    def made(_device, _dtype):
        given = samples()
        named = given if isinstance(given, dict) else {f"sample {n}": args for n, args in enumerate(given)}
        return [Sample(args, name=name) for name, args in named.items()]

    SPECS.append(OpSpec(f"fbgemm::{name}", samples=made, reference=reference, **claims))


# -- inputs


def rand(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def longs(*values):
    return torch.tensor(values)


def ints(*values):
    return torch.tensor(values, dtype=torch.int32)


def rows():
    return rand(7, 6)


def lengths():
    return longs(2, 0, 5)


def offsets():
    return longs(0, 2, 2, 7)


def dense(seed=1):
    return rand(3, 5, 6, seed=seed)


# -- references: what the ops are documented to compute, bag by bag


def bags(values, offsets):
    return [values[start:end] for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]


def ends(lengths):
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])


def to_dense(values, offsets, max_length, padding=0):
    out = values.new_full((len(offsets) - 1, max_length, *values.shape[1:]), padding)
    for n, bag in enumerate(bags(values, offsets)):
        out[n, : len(bag)] = bag[:max_length]
    return out


def to_jagged(dense, offsets):
    out = dense.new_zeros((int(offsets[-1]), *dense.shape[2:]))
    for bag, source in zip(bags(out, offsets), dense, strict=True):
        bag[: len(source)] = source[: len(bag)]
    return out


def cumsum(t, kind):
    inclusive = t.cumsum(-1).to(t.dtype)
    if kind == "complete":
        return torch.cat([t.new_zeros((*t.shape[:-1], 1)), inclusive], dim=-1)
    return inclusive if kind == "inclusive" else inclusive - t


def softmax(values, offsets, _max_length):
    return torch.cat([bag.softmax(0) for bag in bags(values, offsets)])


def vector_times_jagged(v, a_values, a_offsets):
    return torch.stack([w[: len(bag)] @ bag for w, bag in zip(v, bags(a_values, a_offsets), strict=True)])


def jagged_times_jagged(x, y, offsets, _max_length):
    pairs = zip(bags(x, offsets), bags(y, offsets), strict=True)
    return torch.stack([a.t() @ b for a, b in pairs])


def jagged_times_dense(x, offsets, y, _max_length):
    return torch.cat([bag @ matrix for bag, matrix in zip(bags(x, offsets), y, strict=True)]), offsets.clone()


def index_select(values, lengths, indices):
    chosen = bags(values, ends(lengths))
    return [torch.cat([chosen[i] for i in indices.tolist()]), lengths[indices]]


def jagged_slice(values, lengths, start, length):
    pairs = zip(bags(values, ends(lengths)), start.tolist(), strict=True)
    parts = [bag[begin : begin + length] for bag, begin in pairs]
    return torch.cat(parts), torch.tensor([len(part) for part in parts])


def permute_2d(permute, lengths, values, weights=None, _total=None):
    parts = torch.split(values, lengths.sum(1).tolist())
    order = permute.tolist()
    out = torch.cat([parts[i] for i in order])
    if weights is None:
        return lengths[permute.long()], out, None
    return lengths[permute.long()], out, permute_2d(permute, lengths, weights)[1]


def permute_1d(permute, lengths, values, weights=None, total=None):
    found = permute_2d(permute, lengths[:, None], values, weights, total)
    return found[0][:, 0], *found[1:]


def expanded_permute(permute, inputs, _outputs, _size):
    parts = bags(torch.arange(int(inputs[-1]), dtype=permute.dtype), inputs)
    return torch.cat([parts[i] for i in permute.tolist()])


def bucketized(lengths, indices, positions, count):
    if positions:
        raise NotImplementedError("positions are left out")
    parts = [bag[bag % count == n] for n in range(count) for bag in bags(indices, ends(lengths))]
    return longs(*map(len, parts)), torch.cat(parts) // count, None, None


def ranges(lengths):
    return torch.cat([torch.arange(n) for n in lengths.tolist()])


def source_mask(sources, targets, _size):
    pairs = zip(sources.tolist(), targets.tolist(), strict=True)
    return torch.tensor([flag for s, t in pairs for flag in [True] * s + [False] * t])


def segment_sums(count, segments, values):
    return torch.stack([bag.sum() for bag in bags(values, segments * count)])


def batch_select(inputs, indices, counts, heights, widths):
    tables = torch.split(inputs, [h * w for h, w in zip(heights, widths, strict=True)])
    matrices = [t.reshape(h, w) for t, h, w in zip(tables, heights, widths, strict=True)]
    chosen = torch.split(indices, counts)
    return torch.cat([m[i].reshape(-1) for m, i in zip(matrices, chosen, strict=True)])


def from_8_bits(data, scale_last=True):
    """Rows of bytes, then their scale and their smallest value as two floats."""
    del scale_last
    scale = data[:, -8:].clone().view(torch.float32)
    return data[:, :-8] * scale[:, :1] + scale[:, 1:]


def bmm_of_permuted(bias, a, b):
    return (torch.bmm(a.transpose(0, 1), b) + bias[:, None]).transpose(0, 1)


# -- sums over lengths


for kind in ("complete", "exclusive", "inclusive"):
    spec(
        f"asynchronous_{kind}_cumsum",
        lambda: [(longs(1, 2, 3, 4),), (ints(1, 2, 3),)],
        lambda t, kind=kind: cumsum(t, kind),
    )
spec("offsets_range", lambda: [(longs(0, 2, 2), 5)], lambda o, n: ranges(torch.diff(o, append=longs(n))))
spec("lengths_range", lambda: [(lengths(),), (lengths(), [7])], lambda t, _shape=None: ranges(t))
spec("repeat_arange", lambda: [(lengths(),)], ranges)
spec("get_source_mask", lambda: [(longs(1, 2), longs(2, 0), 5)], source_mask)
spec("segment_sum_csr", lambda: [(2, longs(0, 2, 3), torch.arange(6.0))], segment_sums)

# -- jagged and dense

spec(
    "jagged_to_padded_dense",
    lambda: {"padded": (rows(), [offsets()], [5], 0.0), "cut": (rows(), [offsets()], [2], 7.0)},
    lambda values, offsets, sizes, padding: to_dense(values, offsets[0], sizes[0], padding),
    opaque=False,
)
spec(
    "jagged_to_padded_dense_forward",
    lambda: [(rows(), [offsets()], [5], 0.0)],
    lambda values, offsets, sizes, padding: to_dense(values, offsets[0], sizes[0], padding),
)
spec(
    "jagged_to_padded_dense_backward",
    lambda: [(dense(), [offsets()], 7)],
    lambda grad, offsets, _total: to_jagged(grad, offsets[0]),
)
spec("jagged_1d_to_dense", lambda: [(torch.arange(7), offsets(), 5, 0)], to_dense)
spec("jagged_2d_to_dense", lambda: [(rows(), offsets(), 5)], to_dense)
spec(
    "stacked_jagged_1d_to_dense",
    lambda: [(longs(10, 20, 21, 30, 40, 41), torch.tensor([[1, 2, 0], [0, 1, 2]]), [0, 3, 6], [2, 4], 0)],
    lambda v, lengths, keys, sizes, pad: [
        to_dense(v[keys[n] : keys[n + 1]], ends(lengths[n]), sizes[n], pad) for n in range(len(sizes))
    ],
)
spec(
    "dense_to_jagged",
    lambda: {"size given": (dense(), [offsets()], 7), "size from offsets": (dense(), [offsets()])},
    lambda dense, offsets, _total=None: (to_jagged(dense, offsets[0]), [o.clone() for o in offsets]),
    opaque=False,
)
spec(
    "dense_to_jagged_forward",
    lambda: {"size given": (dense(), [offsets()], 7), "size from offsets": (dense(), [offsets()])},
    lambda dense, offsets, _total=None: to_jagged(dense, offsets[0]),
)
spec("pack_segments", lambda: [(rows(), lengths(), 5)], lambda t, n, size: to_dense(t, ends(n), size))
spec("pack_segments_v2", lambda: [(rows(), lengths(), 5, False, True)])

# -- arithmetic of jagged tensors

spec(
    "jagged_dense_elementwise_add",
    lambda: [(rows(), [offsets()], dense())],
    lambda x, offsets, y: to_dense(x, offsets[0], y.shape[1]) + y,
)
spec(
    "jagged_dense_elementwise_add_jagged_output",
    lambda: [(rows(), [offsets()], dense())],
    lambda x, offsets, y: (x + to_jagged(y, offsets[0]), [o.clone() for o in offsets]),
)
spec(
    "jagged_dense_dense_elementwise_add_jagged_output",
    lambda: [(rows(), [offsets()], dense(), dense(2))],
    lambda x, offsets, y, z: (x + to_jagged(y + z, offsets[0]), [o.clone() for o in offsets]),
)
spec(
    "jagged_dense_elementwise_mul",
    lambda: [(rows(), [offsets()], dense())],
    lambda x, offsets, y: (x * to_jagged(y, offsets[0]), [o.clone() for o in offsets]),
)
spec("batched_dense_vec_jagged_2d_mul", lambda: [(rand(3, 5, seed=1), rows(), offsets())], vector_times_jagged)
spec(
    "jagged_softmax",
    lambda: [(rows(), offsets(), 5)],
    lambda values, offsets, size: (softmax(values, offsets, size), offsets.clone()),
)
spec("jagged_softmax_forward", lambda: [(rows(), offsets(), 5)], softmax)
spec("jagged_jagged_bmm", lambda: [(rows(), rand(7, 9, seed=1), offsets(), 5)], jagged_times_jagged)
spec("jagged_dense_bmm", lambda: [(rows(), offsets(), rand(3, 6, 9, seed=1), 5)], jagged_times_dense)

# -- parts of jagged tensors

spec("jagged_index_select", lambda: [(rows(), lengths(), longs(2, 0))], index_select, opaque=False)
spec(
    "jagged_slice",
    lambda: [(torch.arange(7), lengths(), longs(0, 0, 1), 2), (rand(7), lengths(), longs(0, 0, 1), 2)],
    jagged_slice,
)
spec(
    "jagged_1d_to_truncated_values",
    lambda: [(torch.arange(7), lengths(), 4)],
    lambda values, lengths, most: torch.cat([bag[:most] for bag in bags(values, ends(lengths))]),
)
spec(
    "masked_select_jagged_1d",
    lambda: [(torch.arange(7), lengths(), torch.tensor([True, False, True, True, False, False, True]))],
    lambda values, lengths, mask, check_length=False: (  # noqa: ARG005
        values[mask],
        torch.tensor([int(bag.sum()) for bag in bags(mask, ends(lengths))], dtype=lengths.dtype),
    ),
)
spec("index_select_dim0", lambda: [(rows(), longs(5, 0, 2))], lambda x, indices: x[indices])
spec(
    "group_index_select_dim0",
    lambda: [([rand(7, 6), rand(5, 6, seed=1)], [longs(5, 0, 2), longs(1, 1, 4)])],
    lambda xs, indices: [x[i] for x, i in zip(xs, indices, strict=True)],
)
spec(
    "batch_index_select_dim0",
    lambda: [(rand(4 * 3 + 5 * 6), longs(0, 2, 1, 4), [2, 2], [4, 5], [3, 6])],
    batch_select,
)

# -- sparse features


def two_features():
    return torch.tensor([[1, 2, 0], [0, 4, 1], [3, 0, 0], [1, 0, 1]], dtype=torch.int32), torch.arange(10, 23)


spec(
    "permute_2D_sparse_data",
    lambda: {
        "values": (ints(2, 0, 3, 1), *two_features()),
        "values and weights": (ints(2, 0, 3, 1), *two_features(), torch.rand(13), 13),
    },
    permute_2d,
)
spec(
    "permute_1D_sparse_data",
    lambda: {
        "values": (ints(2, 0, 3, 1), ints(1, 3, 0, 5), torch.arange(9)),
        "values and weights": (ints(2, 0, 3, 1), ints(1, 3, 0, 5), torch.arange(9), torch.arange(9.0)),
    },
    permute_1d,
)
spec("permute_sparse_features", lambda: [(ints(2, 0, 3, 1), two_features()[0].long(), two_features()[1])], permute_2d)
spec("invert_permute", lambda: [(longs(2, 0, 3, 1),)], torch.argsort)
spec(
    "expand_into_jagged_permute",
    lambda: [(ints(2, 0, 1), ints(0, 1, 4, 6), ints(0, 2, 3, 6), 6)],
    expanded_permute,
)
spec("bucketize_sparse_features", lambda: [(lengths(), torch.arange(10, 17), False, 2)], bucketized)
spec(
    "block_bucketize_sparse_features",
    lambda: {
        "values": (ints(2, 0, 5), torch.arange(10, 17), False, True, longs(30, 40, 50), 2),
        "positions and weights": (ints(2, 0, 5), torch.arange(10, 17), True, True, longs(30, 40, 50), 2, rand(7)),
    },
)
spec(
    "bounds_check_indices",
    lambda: [(longs(5, 6), longs(1, 2, 9, 0), longs(0, 1, 2, 3, 4), 1, torch.zeros(1, dtype=torch.int64))],
)
spec("reorder_batched_ad_lengths", lambda: [(ints(1, 2, 3, 4), ints(0, 1, 2), 2)])
spec(
    "tbe_input_combine",
    lambda: [
        (
            [ints(1, 2), ints(3)],
            [ints(0, 1), ints(0, 1)],
            [torch.empty(0), torch.empty(0)],
            torch.tensor([False, False]),
        )
    ],
)
spec("bottom_k_per_row", lambda: [(torch.tensor([[5, 3, 1, 4, 2, 6]] * 3), longs(0, 2, 4, 6), False)])
spec("murmur_hash3", lambda: [(longs(12345), 0, 0)])
spec("pruned_array_lookup", lambda: [(ints(0, 1, 0), ints(0, 1, 3), ints(0, -1, 1, 0, 1), longs(0, 3, 5))])
spec("linearize_cache_indices", lambda: [(longs(0, 5, 11), longs(1, 2, 3, 4), longs(0, 2, 4))])

# -- embeddings

spec(
    "batched_unary_embeddings",
    lambda: [(rand(2, 6, 1), longs(0, 3, 6), longs(0, 1, 2, 3, 4), longs(0, 1, 2, 0))],
)
spec(
    "permute102_baddbmm_permute102",
    lambda: [(rand(2, 3), rand(4, 2, 5, seed=1), rand(2, 5, 3, seed=2))],
    bmm_of_permuted,
)
spec("sum_reduce_to_one", lambda: [([rand(3), rand(3, seed=1)], torch.device("cpu"))], lambda xs, _device: sum(xs))
spec(
    "merge_pooled_embeddings",
    lambda: [([rand(3, 2), rand(3, 4, seed=1)], 3, torch.device("cpu"))],
    lambda xs, _rows, _device: torch.cat(xs, dim=1),
)
spec(
    "histogram_binning_calibration",
    lambda: [
        (rand(5), torch.zeros(10, dtype=torch.float64), torch.zeros(10, dtype=torch.float64), 0.4, 0.0, 1.0, 0, 0.99)
    ],
)

# -- rows of bytes

spec("FloatToFused8BitRowwiseQuantized", lambda: [(rand(3, 8),)])
for name in ("Float", "FloatOrHalf"):
    spec(
        f"Fused8BitRowwiseQuantizedTo{name}",
        lambda: [(ops.FloatToFused8BitRowwiseQuantized(rand(3, 8)),)],
        from_8_bits,
    )
spec("Fused8BitRowwiseQuantizedToHalf", lambda: [(ops.FloatToFused8BitRowwiseQuantized(rand(3, 8)),)])
spec("FloatToFusedNBitRowwiseQuantizedSBHalf", lambda: [(rand(3, 8), 4)])
spec(
    "FusedNBitRowwiseQuantizedSBHalfToFloat",
    lambda: [(ops.FloatToFusedNBitRowwiseQuantizedSBHalf(rand(3, 8), 4), 4)],
)
spec("FloatToHFP8Quantized", lambda: [(rand(3, 8), 4, 14, 0.9375)])
spec("HFP8QuantizedToFloat", lambda: [(ops.FloatToHFP8Quantized(rand(3, 8), 4, 14, 0.9375), 4, 14)])
spec("FloatToBfloat16Quantized", lambda: [(rand(3, 8),)], lambda x: x.bfloat16())
spec(
    "Bfloat16QuantizedToFloat",
    lambda: [(ops.FloatToBfloat16Quantized(rand(3, 8)),)],
    lambda x: x.float(),
)
