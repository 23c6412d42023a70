"""Ops whose fake kernel says something else than the op does."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from opcheck_suite.model import Sample
from reference_ops.broken.fault import Fault, doubled, images, like, matrix, planted, two_matrices


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


@torch.library.custom_op("broken_fake::packs_images", mutates_args=())
def packs_images(x: Tensor) -> Tensor:
    """The op keeps the channels-last order of images, the fake kernel packs them."""
    last = x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()
    return torch.empty_like(x).copy_(x * 2) if last else doubled(x)


packs_images.register_fake(like)


@torch.library.custom_op("broken_fake::negates_lazily", mutates_args=())
def negates_lazily(x: Tensor) -> Tensor:
    """The output is a neg view, and the fake kernel does not say so."""
    return torch.complex(torch.zeros_like(x), x * -2).conj().imag


@negates_lazily.register_fake
def _(x: Tensor) -> Tensor:
    return torch.view_as_real(torch.complex(torch.zeros_like(x), x))[..., 1]


@torch.library.custom_op("broken_fake::on_default_device", mutates_args=())
def on_default_device(x: Tensor) -> Tensor:
    """The fake output is allocated without a device, so that it is on the CPU whatever the input is on."""
    return doubled(x)


@on_default_device.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty(x.shape, dtype=x.dtype)


@torch.library.custom_op("broken_fake::for_cpu_only", mutates_args=())
def for_cpu_only(x: Tensor) -> Tensor:
    """The fake kernel refuses CUDA, which the op claims."""
    return doubled(x)


@for_cpu_only.register_fake
def _(x: Tensor) -> Tensor:
    torch._check(not x.is_cuda, lambda: "expected a tensor on the CPU")
    return like(x)


@torch.library.custom_op("broken_fake::positives_not_none", mutates_args=())
def positives_not_none(x: Tensor) -> Tensor:
    """The fake kernel promises at least one hit."""
    return x[x > 0]


@positives_not_none.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(torch.library.get_ctx().new_dynamic_size(min=1))


@torch.library.custom_op("broken_fake::positives_at_most", mutates_args=())
def positives_at_most(x: Tensor) -> Tensor:
    """The fake kernel promises at most as many hits as the author's sample has, and a few more."""
    return x[x > 0]


@positives_at_most.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(torch.library.get_ctx().new_dynamic_size(max=10))


@torch.library.custom_op("broken_fake::other_number", mutates_args=())
def other_number(x: Tensor) -> tuple[Tensor, int]:
    """The fake kernel gives another number than the op, and the compiler keeps it as a constant."""
    return doubled(x), x.dim()


@other_number.register_fake
def _(x: Tensor) -> tuple[Tensor, int]:
    return like(x), x.dim() + 1


@torch.library.custom_op("broken_fake::counted_once", mutates_args=())
def counted_once(x: Tensor) -> tuple[Tensor, int]:
    """The number of rows in the author's sample is what the fake kernel always returns."""
    return doubled(x), x.shape[0] if x.dim() else 1


@counted_once.register_fake
def _(x: Tensor) -> tuple[Tensor, int]:
    return like(x), 3


@torch.library.custom_op("broken_fake::assumes_sign", mutates_args=())
def assumes_sign(x: Tensor) -> tuple[Tensor, bool]:
    """Whether any element is positive is decided by data, and the fake kernel says yes."""
    return doubled(x), bool((x > 0).any())


@assumes_sign.register_fake
def _(x: Tensor) -> tuple[Tensor, bool]:
    return like(x), True


@torch.library.custom_op("broken_fake::transposes_argument", mutates_args=())
def transposes_argument(x: Tensor) -> Tensor:
    """The fake kernel transposes its argument in place."""
    return x.new_empty(x.shape[::-1]).copy_(x.t() * 2)


@transposes_argument.register_fake
def _(x: Tensor) -> Tensor:
    torch._check(x.dim() == 2)
    return like(x.t_())


@torch.library.custom_op("broken_fake::takes_any_type", mutates_args=())
def takes_any_type(x: Tensor) -> Tensor:
    """The op refuses float64, the fake kernel does not."""
    torch._check(x.dtype != torch.float64, lambda: "expected float32")
    return doubled(x)


takes_any_type.register_fake(like)


@torch.library.custom_op("broken_fake::takes_any_size", mutates_args=())
def takes_any_size(x: Tensor) -> Tensor:
    """The op refuses rows of an odd number of columns, the fake kernel does not."""
    torch._check(x.dim() == 2 and x.shape[1] % 2 == 0, lambda: "expected pairs of columns")
    return doubled(x)


takes_any_size.register_fake(like)


@torch.library.custom_op("broken_fake::fixes_rows", mutates_args=())
def fixes_rows(x: Tensor) -> Tensor:
    """The fake kernel calls int() on a size."""
    return doubled(x)


@fixes_rows.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty((int(x.shape[0]), *x.shape[1:])) if x.dim() else like(x)


@torch.library.custom_op("broken_fake::branches_on_size", mutates_args=())
def branches_on_size(x: Tensor) -> Tensor:
    """The fake kernel has a branch for long inputs, which makes no difference."""
    return doubled(x)


@branches_on_size.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_strided(x.shape, like(x).stride(), dtype=x.dtype, device=x.device) if x.numel() > 64 else like(x)


@torch.library.custom_op("broken_fake::padded_blocks", mutates_args=())
def padded_blocks(x: Tensor) -> Tensor:
    """The fake kernel asks, as a launch would, whether the columns fill whole blocks of four."""
    return doubled(x)


@padded_blocks.register_fake
def _(x: Tensor) -> Tensor:
    if x.dim() and x.shape[-1] % 4 != 0:
        return x.new_empty((*x.shape[:-1], -(-x.shape[-1] // 4) * 4))[..., : x.shape[-1]].contiguous()
    return like(x)


_KNOWN: dict[int, str] = {3: "small"}


@torch.library.custom_op("broken_fake::looks_size_up", mutates_args=())
def looks_size_up(x: Tensor) -> Tensor:
    """The fake kernel looks a size up in a dict, which symbolic sizes cannot be."""
    return doubled(x)


@looks_size_up.register_fake
def _(x: Tensor) -> Tensor:
    _KNOWN.get(x.shape[0] if x.dim() else 1)
    return like(x)


@torch.library.custom_op("broken_fake::asks_whether_empty", mutates_args=())
def asks_whether_empty(x: Tensor) -> Tensor:
    """The fake kernel asks whether there are elements, which cannot be told where data decides a size."""
    return doubled(x)


@asks_whether_empty.register_fake
def _(x: Tensor) -> Tensor:
    if x.numel() == 0:
        return x.new_empty(x.shape)
    return like(x)


_BOTH = ("cpu", "cuda")

#: Code that is compiled for one size and called with others meets the fault as well.
_AT_OTHER_SIZES = {"compile.dynamic": "fail"}


@torch.library.custom_op("broken_fake::forgets_scalars", mutates_args=())
def forgets_scalars(x: Tensor) -> Tensor:
    """A tensor of any rank is taken, save that the last size of a scalar is asked for; the fake kernel does not."""
    return doubled(x)[..., : x.shape[-1]].clone()


forgets_scalars.register_fake(like)


@torch.library.custom_op("broken_fake::counts_zeros", mutates_args=())
def counts_zeros(x: Tensor) -> Tensor:
    """The elements that are not zero; the fake kernel counts all, of which none of the sample is zero."""
    return x[x != 0]


@counts_zeros.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(x.numel())


@torch.library.custom_op("broken_fake::skips_header", mutates_args=())
def skips_header(x: Tensor) -> Tensor:
    """The output begins one element into its memory, which the fake kernel does not say."""
    return torch.cat([x.new_zeros(1), x.reshape(-1) * 2])[1:]


@skips_header.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(x.numel())


@torch.library.custom_op("broken_fake::counts_from_the_start", mutates_args=())
def counts_from_the_start(x: Tensor, dim: int) -> Tensor:
    """The fake kernel drops no dimension where it is counted from the end."""
    return x.sum(dim).clone(memory_format=torch.contiguous_format)


@counts_from_the_start.register_fake
def _(x: Tensor, dim: int) -> Tensor:
    torch._check(-x.dim() <= dim < x.dim())
    return x.new_empty([size for n, size in enumerate(x.shape) if n != dim])


@torch.library.custom_op("broken_fake::one_for_two", mutates_args=())
def one_for_two(x: Tensor) -> tuple[Tensor, Tensor]:
    """The fake kernel makes one tensor for both outputs."""
    return doubled(x), like(x).copy_(x * 3)


@one_for_two.register_fake
def _(x: Tensor) -> tuple[Tensor, Tensor]:
    out = like(x)
    return out, out


@torch.library.custom_op("broken_fake::hands_back", mutates_args=())
def hands_back(x: Tensor) -> Tensor:
    """The fake kernel returns its argument where it is packed already, the op never does."""
    return doubled(x)


@hands_back.register_fake
def _(x: Tensor) -> Tensor:
    return x.contiguous()


@torch.library.custom_op("broken_fake::two_views", mutates_args=())
def two_views(x: Tensor) -> tuple[Tensor, Tensor]:
    """The fake outputs are two views of the same elements."""
    return doubled(x), like(x).copy_(x * 3)


@two_views.register_fake
def _(x: Tensor) -> tuple[Tensor, Tensor]:
    out = like(x)
    return out, out.view(x.shape)


def _two_and_three(x: Tensor) -> tuple[Tensor, Tensor]:
    return x * 2, x * 3


def _matrix_and_dimension(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    for sample in matrix(device, dtype):
        yield Sample((*sample.args, 1), name="matrix and dimension")


@torch.library.custom_op("broken_fake::refuses_mixtures", mutates_args=())
def refuses_mixtures(x: Tensor, weight: Tensor) -> Tensor:
    """The op refuses arguments of two dtypes, which its fake kernel takes."""
    torch._check(x.dtype == weight.dtype, lambda: f"x is {x.dtype}, weight {weight.dtype}")
    return like(x).copy_(x * weight)


@refuses_mixtures.register_fake
def _(x: Tensor, weight: Tensor) -> Tensor:
    return x.new_empty(torch.broadcast_shapes(x.shape, weight.shape))


FAULTS: list[Fault] = [
    # the reference takes the mixture as well: it is the op that is alone
    planted(refuses_mixtures, "values.dtypes", samples=two_matrices, reference=torch.mul),
    planted(refuses_one_row, "fake.runs", reference=doubled),
    # torch's utils call the fake kernel on the sample
    planted(reads_data, "fake.runs", also={"opcheck.utils": "fail"}, reference=doubled),
    planted(other_device, "fake.device", also={"opcheck.utils": "fail", "compile.parity": "fail"}, reference=doubled),
    # it asks whether there are elements
    planted(empty_is_integer, "fake.dtype", also={"fake.unbacked": "warn"}, reference=doubled),
    planted(other_dtype, "fake.dtype", also={"opcheck.utils": "fail"}, reference=doubled),
    planted(sample_size, "fake.shape", reference=doubled, also={"export.roundtrip": "fail"}),
    planted(counts_zeros, "fake.shape", reference=lambda x: x[x != 0]),
    planted(counts_from_the_start, "fake.shape", samples=_matrix_and_dimension, reference=torch.sum),
    planted(other_layout, "fake.strides", reference=doubled),
    # torch's test_faketensor compares offsets, too
    planted(skips_header, "fake.strides", also={"opcheck.utils": "fail"}, reference=lambda x: x.reshape(-1) * 2),
    planted(packs_images, "fake.strides", samples=images, reference=doubled),
    # torch's test_faketensor compares the bits, too
    planted(negates_lazily, "fake.lazy_bits", also={"opcheck.utils": "fail"}, reference=doubled),
    planted(on_default_device, "fake.placement", devices=_BOTH, reference=doubled),
    planted(for_cpu_only, "fake.placement", devices=_BOTH, reference=doubled),
    # torch's test_faketensor compares storages, too; graphs know the two outputs as one
    planted(
        one_for_two,
        "fake.aliasing",
        also={"opcheck.utils": "fail", "compile.parity": "fail", "export.program": "fail"},
        reference=_two_and_three,
    ),
    # an argument is returned with the storage offset that it has
    planted(
        hands_back,
        "fake.aliasing",
        also={"fake.strides": "fail", "opcheck.utils": "fail", "compile.parity": "fail"},
        reference=doubled,
    ),
    planted(two_views, "fake.aliasing", "warn", also={"opcheck.utils": "fail"}, reference=_two_and_three),
    planted(positives_not_none, "fake.bounds", reference=lambda x: x[x > 0]),
    planted(
        positives_at_most,
        "fake.bounds",
        also={"export.dynamic": "fail", **_AT_OTHER_SIZES},
        reference=lambda x: x[x > 0],
    ),
    # torch's AOT utils and the backends compare the number with that of an eager call
    planted(
        other_number, "fake.scalars", also={"export.program": "fail", "opcheck.utils": "fail", "compile.parity": "fail"}
    ),
    planted(counted_once, "fake.scalars", also={"export.roundtrip": "fail", **_AT_OTHER_SIZES}),
    planted(assumes_sign, "fake.scalars"),
    planted(
        transposes_argument,
        "fake.purity",
        also={"compile.parity": "fail", **_AT_OTHER_SIZES},
        reference=lambda x: x.t() * 2,
    ),
    planted(takes_any_type, "fake.refusals", reference=doubled),
    planted(takes_any_size, "fake.refusals", reference=doubled),
    planted(forgets_scalars, "fake.refusals"),
    planted(fixes_rows, "fake.symbolic", also={"export.dynamic": "fail", **_AT_OTHER_SIZES}, reference=doubled),
    planted(
        branches_on_size, "fake.symbolic", also={"compile.dynamic": "warn", "export.dynamic": "fail"}, reference=doubled
    ),
    planted(
        padded_blocks, "fake.symbolic", also={"compile.dynamic": "warn", "export.dynamic": "fail"}, reference=doubled
    ),
    # torch's AOT util for dynamic shapes calls the fake kernel with symbols, too
    planted(
        looks_size_up,
        "fake.symbolic",
        also={"export.dynamic": "fail", "opcheck.utils": "fail", **_AT_OTHER_SIZES},
        reference=doubled,
    ),
    planted(asks_whether_empty, "fake.unbacked", "warn", reference=doubled),
]
