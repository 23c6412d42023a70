"""Faults in what is registered for an op, all of which can be seen without running it."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from opcheck_suite.model import Sample
from reference_ops.broken.fault import Fault, define, doubled, library, like, matrix_and_number, planted, two_matrices
from reference_ops.python.data import normal


def scaled(x: Tensor, factor: float) -> Tensor:
    return like(x).copy_(x * factor)


def not_an_operator(x: Tensor) -> Tensor:
    """A plain function that nobody registered."""
    return doubled(x)


@torch.library.custom_op("broken_registration::cpu_only", mutates_args=(), device_types="cpu")
def cpu_only(x: Tensor) -> Tensor:
    """The op claims CUDA, and has a kernel for the CPU alone."""
    return doubled(x)


cpu_only.register_fake(like)


@torch.library.custom_op("broken_registration::no_fake", mutates_args=())
def no_fake(x: Tensor) -> Tensor:
    """No fake kernel is registered."""
    return doubled(x)


@torch.library.custom_op("broken_registration::fake_swaps", mutates_args=())
def fake_swaps(a: Tensor, b: Tensor) -> Tensor:
    """The fake kernel takes the two matrices in the other order, which does not show where they are of one shape."""
    return like(a).copy_(a - b)


@fake_swaps.register_fake
def _(b: Tensor, a: Tensor) -> Tensor:
    return like(a)


@torch.library.custom_op("broken_registration::fake_default", mutates_args=())
def fake_default(x: Tensor, factor: float = 1.0) -> Tensor:
    """A default is 1 in the schema and 2 in the fake kernel."""
    return scaled(x, factor)


@fake_default.register_fake
def _(x: Tensor, factor: float = 2.0) -> Tensor:
    return like(x)


@torch.library.custom_op("broken_registration::fake_lacks_argument", mutates_args=())
def fake_lacks_argument(x: Tensor, factor: float) -> Tensor:
    """The fake kernel does not take the op's second argument."""
    return scaled(x, factor)


fake_lacks_argument.register_fake(like)


@torch.library.custom_op("broken_registration::no_formula", mutates_args=())
def no_formula(x: Tensor) -> Tensor:
    """The op claims to be differentiable, and has no formula."""
    return doubled(x)


no_formula.register_fake(like)


@torch.library.custom_op("broken_registration::thrice", mutates_args=())
def twice(x: Tensor) -> Tensor:
    """The function has another name than the op."""
    return doubled(x)


twice.register_fake(like)


@torch.library.custom_op(
    "broken_registration::other_default", mutates_args=(), schema="(Tensor x, float factor=2.0) -> Tensor"
)
def other_default(x: Tensor, factor: float = 1.0) -> Tensor:
    """A default is 2 in the schema and 1 in the function."""
    return scaled(x, factor)


@other_default.register_fake
def _(x: Tensor, factor: float = 2.0) -> Tensor:
    return like(x)


@torch.library.custom_op("broken_registration::int_for_size", mutates_args=(), schema="(Tensor x, int count) -> Tensor")
def int_for_size(x: Tensor, count: int) -> Tensor:
    """A size is int in the schema, so that a symbolic one becomes a constant."""
    return _rows(x, count).copy_(x[:1] * 2)


@int_for_size.register_fake
def _rows(x: Tensor, count: int) -> Tensor:
    return x.new_empty((count, *x.shape[1:]))


def composite(x: Tensor) -> Tensor:
    """The op is meant to be opaque, and is registered at CompositeImplicitAutograd."""
    return x * 2


def composite_unsaid(x: Tensor) -> Tensor:
    """The op is registered at CompositeImplicitAutograd, and nobody says whether that is meant."""
    return x * 2


def not_composite(x: Tensor) -> Tensor:
    """The op is meant to be transparent, and is registered for the CPU."""
    return doubled(x)


_LIBRARY = library("broken_registration")
_X = "(Tensor x) -> Tensor"
_COMPOSITE = define(_LIBRARY, "composite", _X, composite, None, key="CompositeImplicitAutograd")
_UNSAID = define(_LIBRARY, "composite_unsaid", _X, composite_unsaid, None, key="CompositeImplicitAutograd")
_NOT_COMPOSITE = define(_LIBRARY, "not_composite", _X, not_composite, like)


def _matrix_and_size(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 4, device=device, dtype=dtype), 6), name="matrix and size")


FAULTS: list[Fault] = [
    planted(not_an_operator, "registration.operator"),
    planted(cpu_only, "registration.kernel", devices=("cpu", "cuda"), reference=doubled),
    planted(
        no_fake,
        "registration.fake",
        # both call the fake kernel that is not there
        also={"fake.runs": "fail", "opcheck.utils": "fail"},
        reference=doubled,
    ),
    planted(fake_swaps, "registration.fake_signature", samples=two_matrices, reference=torch.sub),
    planted(fake_default, "registration.fake_signature", samples=matrix_and_number, reference=scaled),
    planted(
        fake_lacks_argument,
        "registration.fake_signature",
        # both call the fake kernel, which raises TypeError
        also={"fake.runs": "fail", "opcheck.utils": "fail"},
        samples=matrix_and_number,
        reference=scaled,
    ),
    planted(
        no_formula,
        "registration.autograd",
        # runs backward, since the spec says that the op is differentiable
        also={"opcheck.utils": "fail"},
        differentiable=True,
        reference=doubled,
    ),
    planted(twice, "registration.name", "warn", reference=doubled),
    planted(other_default, "registration.schema", samples=matrix_and_number, reference=scaled),
    planted(int_for_size, "registration.schema", "warn", samples=_matrix_and_size),
    planted(
        _COMPOSITE,
        "registration.composite",
        # the graph that comes of it has the parts
        also={"compile.opaque": "fail"},
        opaque=True,
        kernel=composite,
        reference=doubled,
    ),
    planted(_UNSAID, "registration.composite", "warn", kernel=composite_unsaid, reference=doubled),
    planted(
        _NOT_COMPOSITE,
        "registration.composite",
        # the graph that comes of it has the op
        also={"compile.opaque": "fail"},
        opaque=False,
        kernel=not_composite,
        reference=doubled,
    ),
]
