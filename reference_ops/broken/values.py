"""Ops that compute something wrong, or leave something behind."""

from __future__ import annotations

import ctypes
import os
import random
import warnings
from collections.abc import Iterator

import torch
from torch import Tensor

from opcheck_suite.model import Sample
from reference_ops.broken.fault import (
    Fault,
    complex_matrix,
    define,
    doubled,
    images,
    library,
    like,
    planted,
    two_matrices,
)
from reference_ops.python.data import normal


@torch.library.custom_op("broken_values::refuses_sample", mutates_args=())
def refuses_sample(x: Tensor) -> Tensor:
    """The op raises on its own sample."""
    raise ValueError("matrices are not supported")


refuses_sample.register_fake(like)


@torch.library.custom_op("broken_values::drops_tail", mutates_args=())
def drops_tail(x: Tensor) -> Tensor:
    """The elements after the last full block of four are not computed."""
    out = torch.zeros_like(x, memory_format=torch.contiguous_format)
    full = x.numel() // 4 * 4
    out.view(-1)[:full] = (x * 2).reshape(-1)[:full]
    return out


drops_tail.register_fake(like)


@torch.library.custom_op("broken_values::ignores_strides", mutates_args=())
def ignores_strides(x: Tensor) -> Tensor:
    """Memory is read as if every tensor were packed."""
    packed = torch.empty(x.shape, device="meta").stride()
    return doubled(x.as_strided(x.shape, packed))


ignores_strides.register_fake(like)


@torch.library.custom_op("broken_values::contiguous_unchecked", mutates_args=())
def contiguous_unchecked(x: Tensor) -> Tensor:
    """The op claims to refuse strided tensors, and takes them."""
    return doubled(x)


contiguous_unchecked.register_fake(like)


@torch.library.custom_op("broken_values::empty_sum", mutates_args=())
def empty_sum(x: Tensor) -> Tensor:
    """The sum of no elements is 1."""
    return x.sum() if x.numel() else x.new_ones(())


@empty_sum.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(())


@torch.library.custom_op("broken_values::empty_reads_first", mutates_args=())
def empty_reads_first(x: Tensor) -> Tensor:
    """The first element is read also where there is none, through a null pointer."""
    if not x.numel():
        ctypes.string_at(x.data_ptr())
    return doubled(x)


empty_reads_first.register_fake(like)

_calls = 0


@torch.library.custom_op("broken_values::counts_calls", mutates_args=())
def counts_calls(x: Tensor) -> Tensor:
    """A counter of calls changes the last bit of the result."""
    global _calls
    _calls += 1
    return doubled(x * (1 + 2.0**-23 * (_calls % 4)) if x.dtype == torch.float32 else x)


counts_calls.register_fake(like)

_rounds = 0


@torch.library.custom_op("broken_values::any_order", mutates_args=())
def any_order(x: Tensor) -> Tensor:
    """As where terms are added in another order with every call; the spec does not claim anything else."""
    global _rounds
    _rounds += 1
    return doubled(x * (1 + 2.0**-23 * (_rounds % 4)) if x.dtype == torch.float32 else x)


any_order.register_fake(like)


@torch.library.custom_op("broken_values::moves_away", mutates_args=())
def moves_away(x: Tensor) -> Tensor:
    """The working directory is another one after a call."""
    os.chdir("/")
    return doubled(x)


moves_away.register_fake(like)


@torch.library.custom_op("broken_values::silences_warnings", mutates_args=())
def silences_warnings(x: Tensor) -> Tensor:
    """Warnings are switched off, and not on again."""
    warnings.simplefilter("ignore")
    return doubled(x)


silences_warnings.register_fake(like)


@torch.library.custom_op("broken_values::seeds_generator", mutates_args=())
def seeds_generator(x: Tensor) -> Tensor:
    """Torch's generator is seeded, so that what is random after a call is the same each time."""
    torch.default_generator.manual_seed(0)
    return doubled(x)


seeds_generator.register_fake(like)


@torch.library.custom_op("broken_values::draws_untagged", mutates_args=())
def draws_untagged(x: Tensor) -> Tensor:
    """A random number is drawn from Python's generator, and the tags do not say so."""
    return like(x).copy_(x * 2 + random.random())


draws_untagged.register_fake(like)


@torch.library.custom_op("broken_values::double_default", mutates_args=())
def double_default(x: Tensor) -> Tensor:
    """The default dtype is float64 after a call."""
    torch.set_default_dtype(torch.float64)
    return doubled(x)


double_default.register_fake(like)


@torch.library.custom_op("broken_values::no_grad_for_ever", mutates_args=())
def no_grad_for_ever(x: Tensor) -> Tensor:
    """Gradients are switched off, and not on again."""
    torch.set_grad_enabled(False)
    return doubled(x)


no_grad_for_ever.register_fake(like)


@torch.library.custom_op("broken_values::stops_at_a_block", mutates_args=())
def stops_at_a_block(x: Tensor) -> Tensor:
    """The elements of a row beyond its first 128 are not computed: there is one block of threads for each row."""
    out = torch.zeros_like(x, memory_format=torch.contiguous_format)
    if x.dim():
        out[..., :128] = x[..., :128] * 2
        return out
    return out.copy_(x * 2)


stops_at_a_block.register_fake(like)


@torch.library.custom_op("broken_values::swallows_nan", mutates_args=())
def swallows_nan(x: Tensor) -> Tensor:
    """A NaN counts as zero."""
    return doubled(torch.where(x == x, x, 0))


swallows_nan.register_fake(like)


@torch.library.custom_op("broken_values::bits_of_other_type", mutates_args=())
def bits_of_other_type(x: Tensor) -> Tensor:
    """The bits of bfloat16 are read as if they were of the other type of 16 bits."""
    return doubled(x.view(torch.float16).to(x.dtype) if x.dtype == torch.bfloat16 else x)


bits_of_other_type.register_fake(like)


@torch.library.custom_op("broken_values::dtype_of_first", mutates_args=())
def dtype_of_first(x: Tensor, weight: Tensor) -> Tensor:
    """The bits of the second argument are read as if they were of the first one's type."""
    bits = weight.reshape(-1).view(x.dtype)[: weight.numel()]
    return like(x).copy_(x * bits.reshape(weight.shape))


dtype_of_first.register_fake(lambda x, _weight: like(x))


@torch.library.custom_op("broken_values::bits_of_integers", mutates_args=())
def bits_of_integers(x: Tensor) -> Tensor:
    """The kernel takes every type of 32 bits for float32."""
    return doubled(x.view(torch.float32)).view(x.dtype) if x.dtype == torch.int32 else doubled(x)


bits_of_integers.register_fake(like)


@torch.library.custom_op("broken_values::clamps_index", mutates_args=())
def clamps_index(x: Tensor, index: Tensor) -> Tensor:
    """A position beyond the end is taken for the last one, which hides errors of the caller."""
    return _rows_of(x, index).copy_(x[index.clamp(max=x.shape[0] - 1)])


@clamps_index.register_fake
def _rows_of(x: Tensor, index: Tensor) -> Tensor:
    torch._check(x.dim() > 0)
    return x.new_empty((*index.shape, *x.shape[1:]))


@torch.library.custom_op("broken_values::leaves_tail", mutates_args=())
def leaves_tail(x: Tensor) -> Tensor:
    """The elements after the last full vector of four are left as the memory was."""
    out, full = like(x), x.numel() // 4 * 4
    out.view(-1)[:full] = (x * 2).reshape(-1)[:full]
    return out


leaves_tail.register_fake(like)


@torch.library.custom_op("broken_values::leaves_empty_sum", mutates_args=())
def leaves_empty_sum(x: Tensor) -> Tensor:
    """The sums of no rows are left as the memory was."""
    out = x.new_empty(x.shape[1:])
    return out.copy_(x.sum(0)) if x.shape[0] else out


@leaves_empty_sum.register_fake
def _(x: Tensor) -> Tensor:
    torch._check(x.dim() > 0)
    return x.new_empty(x.shape[1:])


def _read_as_packed(x: Tensor) -> Tensor:
    """What is read of a dense tensor by a loop over its memory."""
    return x.as_strided(x.shape, torch.empty(x.shape, device="meta").stride())


@torch.library.custom_op("broken_values::any_dense_order", mutates_args=())
def any_dense_order(x: Tensor) -> Tensor:
    """Images in channels-last order are dense, and taken for packed ones."""
    dense = x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)
    return doubled(_read_as_packed(x) if dense else x)


any_dense_order.register_fake(like)


def _memory_of(x: Tensor) -> Tensor:
    """The numbers in the memory of a tensor, which are not its values where its conj or neg bit is set."""
    return x.new_empty(0).set_(x.untyped_storage(), x.storage_offset(), x.size(), x.stride())


def ignores_neg(x: Tensor) -> Tensor:
    """The op asks for neg views as they are, and reads their memory, which holds the negatives."""
    return doubled(_memory_of(x))


def ignores_conj(x: Tensor) -> Tensor:
    """The op asks for conj views as they are, and reads their memory, which holds the conjugates."""
    return doubled(_memory_of(x))


def conj_as_it_lies(x: Tensor) -> Tensor:
    """The memory of conj views is read as that of others, on a sample of real numbers."""
    return doubled(_memory_of(x))


_LIBRARY = library("broken_values")
_IGNORES_NEG = define(_LIBRARY, "ignores_neg", "(Tensor x) -> Tensor", ignores_neg, like)
_IGNORES_CONJ = define(_LIBRARY, "ignores_conj", "(Tensor x) -> Tensor", ignores_conj, like)
_CONJ_AS_IT_LIES = define(_LIBRARY, "conj_as_it_lies", "(Tensor x) -> Tensor", conj_as_it_lies, like)
_LIBRARY.impl("ignores_neg", torch.library.fallthrough_kernel, "Negative")
_LIBRARY.impl("ignores_conj", torch.library.fallthrough_kernel, "Conjugate")
_LIBRARY.impl("conj_as_it_lies", torch.library.fallthrough_kernel, "Conjugate")


@torch.library.custom_op("broken_values::staged_once", mutates_args=())
def staged_once(a: Tensor, b: Tensor) -> Tensor:
    """Memory is staged once for each storage, and where in it a second argument begins is forgotten."""
    staged: dict[int, Tensor] = {}
    first, second = (staged.setdefault(t.untyped_storage().data_ptr(), t) if t.numel() else t for t in (a, b))
    return _blended(a, b).copy_(first - second)


@staged_once.register_fake
def _blended(a: Tensor, b: Tensor) -> Tensor:
    return a.new_empty(torch.broadcast_shapes(a.shape, b.shape))


@torch.library.custom_op("broken_values::dtype_by_size", mutates_args=())
def dtype_by_size(x: Tensor) -> Tensor:
    """Every type of 64 bits is taken for float64, complex numbers of two float32 as well."""
    return doubled(x.contiguous().view(torch.float64)).view(x.dtype) if x.element_size() == 8 else doubled(x)


dtype_by_size.register_fake(like)


@torch.library.custom_op("broken_values::drops_imaginary", mutates_args=())
def drops_imaginary(x: Tensor) -> Tensor:
    """The work is done in real numbers, and complex ones get no imaginary part."""
    return like(x).copy_(x.real * 2)


drops_imaginary.register_fake(like)


@torch.library.custom_op("broken_values::conjugates", mutates_args=())
def conjugates(x: Tensor) -> Tensor:
    """Complex numbers are conjugated on the way, and real ones are not changed by that."""
    return doubled(x.conj())


conjugates.register_fake(like)


@torch.library.custom_op("broken_values::squares_modulus", mutates_args=())
def squares_modulus(x: Tensor) -> Tensor:
    """What is the square for real numbers is that of the modulus for complex ones, which nobody promised."""
    return like(x).copy_(x.abs() ** 2)


squares_modulus.register_fake(like)
_scratch: dict[tuple[torch.Size, torch.dtype], Tensor] = {}


@torch.library.custom_op("broken_values::shares_scratch", mutates_args=())
def shares_scratch(x: Tensor) -> Tensor:
    """All calls for a shape and dtype compute in the same scratch memory, also when they run at once."""
    key = x.shape, x.dtype
    if key not in _scratch:
        _scratch[key] = like(x)
    torch.mul(x, 2, out=_scratch[key])
    return _scratch[key].clone()


shares_scratch.register_fake(like)

_results: list[Tensor] = []


@torch.library.custom_op("broken_values::keeps_results", mutates_args=())
def keeps_results(x: Tensor) -> Tensor:
    """Every result is put into a list from which nothing is taken."""
    out = doubled(x)
    _results.append(out)
    return out


keeps_results.register_fake(like)


_malloc = ctypes.CDLL(None).malloc
_malloc.argtypes, _malloc.restype = (ctypes.c_size_t,), ctypes.c_void_p


@torch.library.custom_op("broken_values::never_frees", mutates_args=())
def never_frees(x: Tensor) -> Tensor:
    """A workspace is allocated in C in every call, and not freed."""
    _malloc(x.numel() * x.element_size())
    return doubled(x)


never_frees.register_fake(like)


@torch.library.custom_op("broken_values::remembers_argument", mutates_args=())
def remembers_argument(x: Tensor) -> Tensor:
    """What was computed from a tensor is attached to it, and used again after its values have changed."""
    if not hasattr(x, "_doubled"):
        x._doubled = doubled(x)  # type: ignore[attr-defined]
    return x._doubled.clone()  # type: ignore[attr-defined]


remembers_argument.register_fake(like)

_unfinished: list[tuple[Tensor, Tensor]] = []


@torch.library.custom_op("broken_values::finishes_later", mutates_args=())
def finishes_later(x: Tensor) -> Tensor:
    """A call does its work once more when the next one comes, from what its argument holds by then."""
    for argument, out in _unfinished:
        out.copy_(argument * 2)
    out = doubled(x)
    _unfinished[:] = [(x, out)]
    return out


finishes_later.register_fake(like)


def _matrix_and_index(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    index = torch.tensor([2, 0, 1, 2], device=device)
    yield Sample((normal(3, 4, device=device, dtype=dtype), index), name="matrix and index")


@torch.library.custom_op("broken_values::counts_in_32_bits", mutates_args=())
def counts_in_32_bits(x: Tensor) -> Tensor:
    """The number of elements is held in a C int."""
    return x.new_full((1,), ctypes.c_int32(x.numel()).value)


def _one(x: Tensor, *_: object) -> Tensor:
    return x.new_empty(1)


counts_in_32_bits.register_fake(_one)


@torch.library.custom_op("broken_values::takes_int", mutates_args=())
def takes_int(x: Tensor, n: int) -> Tensor:
    """An integer argument goes through a C int."""
    return x.new_full((1,), ctypes.c_int32(n).value)


takes_int.register_fake(_one)


def _matrix_and_integer(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 4, device=device, dtype=torch.float64), 7), name="matrix and integer")


def _double_matrix(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 4, device=device, dtype=torch.float64),), name="float64 matrix")


FAULTS: list[Fault] = [
    planted(refuses_sample, "values.runs"),
    planted(drops_tail, "values.reference", reference=doubled),
    planted(stops_at_a_block, "values.reference", reference=doubled),
    planted(swallows_nan, "values.reference", reference=doubled),
    # with a reference, values.reference would see the wrong values of floating-point dtypes, too
    planted(bits_of_other_type, "values.dtypes"),
    planted(bits_of_integers, "values.dtypes", reference=doubled),
    planted(dtype_of_first, "values.dtypes", samples=two_matrices),
    planted(clamps_index, "values.refusals", samples=_matrix_and_index, reference=lambda x, index: x[index]),
    # without references: with them, values.reference and values.empty might meet what is in the memory, too
    planted(leaves_tail, "values.unwritten"),
    planted(leaves_empty_sum, "values.unwritten"),
    planted(ignores_strides, "values.noncontiguous", reference=doubled),
    planted(contiguous_unchecked, "values.noncontiguous", requires_contiguous=True, reference=doubled),
    planted(any_dense_order, "values.noncontiguous", samples=images, reference=doubled),
    planted(_IGNORES_NEG, "values.noncontiguous", kernel=ignores_neg, reference=doubled),
    planted(_IGNORES_CONJ, "values.noncontiguous", kernel=ignores_conj, samples=complex_matrix, reference=doubled),
    planted(_CONJ_AS_IT_LIES, "values.noncontiguous", kernel=conj_as_it_lies, reference=doubled),
    planted(drops_imaginary, "values.imaginary", reference=doubled),
    planted(conjugates, "values.imaginary", reference=doubled),
    planted(squares_modulus, "values.imaginary", "warn", reference=torch.square),
    planted(staged_once, "values.shared", samples=two_matrices, reference=torch.sub),
    planted(dtype_by_size, "values.dtypes", reference=doubled),
    planted(empty_sum, "values.empty", reference=torch.sum),
    planted(empty_reads_first, "values.empty", "crash", reference=doubled),
    planted(counts_calls, "values.repeatable", reference=doubled, deterministic=True),
    planted(any_order, "values.repeatable", "warn", reference=doubled),
    planted(
        counts_in_32_bits,
        "values.wide",
        samples=_double_matrix,
        reference=lambda x: x.new_full((1,), x.numel()),
    ),
    planted(takes_int, "values.wide", samples=_matrix_and_integer, reference=lambda x, n: x.new_full((1,), n)),
    planted(shares_scratch, "values.threads", reference=doubled),
    planted(keeps_results, "values.growth", reference=doubled),
    planted(never_frees, "values.growth", reference=doubled),
    planted(remembers_argument, "values.stale", reference=doubled),
    planted(finishes_later, "values.retained", also={"compile.parity": "fail"}, reference=doubled),
    planted(moves_away, "values.state", reference=doubled),
    planted(silences_warnings, "values.state", reference=doubled),
    planted(seeds_generator, "values.state", reference=doubled),
    # torch's AOT utils and the compiler call it after other draws
    planted(draws_untagged, "values.repeatable", also={"opcheck.utils": "fail", "compile.parity": "fail"}),
    planted(double_default, "values.state", reference=doubled),
    planted(no_grad_for_ever, "values.state", reference=doubled),
]
