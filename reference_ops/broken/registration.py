"""Faults in what is registered for an op, all of which can be seen without running it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from opcheck_suite.model import Sample
from reference_ops.broken.fault import Fault, define, doubled, library, like, matrix_and_number, planted, two_matrices
from reference_ops.python.data import normal


def scaled(x: Tensor, factor: float) -> Tensor:
    return like(x).copy_(x * factor)


def _like_first(x: Tensor, other: object) -> Tensor:
    return like(x)


def _like_by_one(x: Tensor, factor: float = 1.0) -> Tensor:
    return like(x)


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
    return _rows(x, count).copy_(x.sum(0) * 2)


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


def twice_registered(x: Tensor) -> Tensor:
    """The name is registered twice, as when a notebook's cell is run again, and the first object is kept."""
    return doubled(x)


def orphaned(x: Tensor) -> Tensor:
    """The Library object that registered the op is gone, and the op is still held."""
    return doubled(x)


_WEIGHT = torch.tensor([0.5, 2.0])


@torch.library.custom_op("broken_registration::reads_global", mutates_args=())
def reads_global(x: Tensor) -> Tensor:
    """A weight is a global variable and no argument."""
    return like(x).copy_(x * _WEIGHT[1])


reads_global.register_fake(like)


class Settings:
    """What an op should be given, in a place that no schema shows."""

    weight = torch.tensor([0.5, 2.0])
    tables = ({"weight": torch.tensor([0.5, 2.0])},)


@torch.library.custom_op("broken_registration::reads_attribute", mutates_args=())
def reads_attribute(x: Tensor) -> Tensor:
    """A weight is an attribute of a class, and no argument."""
    return like(x).copy_(x * Settings.weight[1])


reads_attribute.register_fake(like)


@torch.library.custom_op("broken_registration::reads_element", mutates_args=())
def reads_element(x: Tensor) -> Tensor:
    """A weight is in a dict in a tuple, and no argument."""
    return like(x).copy_(x * Settings.tables[0]["weight"][1])


reads_element.register_fake(like)


class _Layer:
    def __init__(self) -> None:
        self.weight = torch.tensor([0.5, 2.0])

    def scale(self, x: Tensor) -> Tensor:
        """The kernel is a method, and reads a weight of its object."""
        return like(x).copy_(x * self.weight[1])


def bound_weight(weight: Tensor, x: Tensor) -> Tensor:
    """A weight is bound to the kernel by functools.partial."""
    return like(x).copy_(x * weight[1])


def _with_table(table: Tensor) -> Callable[[Tensor], Tensor]:
    def closes_over(x: Tensor) -> Tensor:
        """A weight is a variable of the function around the kernel."""
        return like(x).copy_(x * table[1])

    return closes_over


def kernel_default(x: Tensor, factor: float = 2.0) -> Tensor:
    """A default is 1 in the schema and 2 in the kernel."""
    return scaled(x, factor)


def kernel_swaps(b: Tensor, a: Tensor) -> Tensor:
    """The kernel takes the two matrices in the other order."""
    return like(a).copy_(a - b)


@torch.library.custom_op("broken_registration::number_in_words", mutates_args=())
def number_in_words(x: Tensor, factor: str) -> Tensor:
    """A number is passed as a string."""
    return scaled(x, float(factor))


@number_in_words.register_fake
def _(x: Tensor, factor: str) -> Tensor:
    return like(x)


def size_in_library(x: Tensor, count: int) -> Tensor:
    """A size is int in a schema that the kernel's annotations have no part in."""
    return _rows(x, count).copy_(x.sum(0) * 2)


@torch.library.custom_op("broken_registration::only_prints", mutates_args=())
def only_prints(x: Tensor) -> None:
    """The op has an effect that its schema does not show: it prints."""
    print(tuple(x.shape))


only_prints.register_fake(lambda _x: None)


_LIBRARY = library("broken_registration")
_X = "(Tensor x) -> Tensor"
_COMPOSITE = define(_LIBRARY, "composite", _X, composite, None, key="CompositeImplicitAutograd")
_UNSAID = define(_LIBRARY, "composite_unsaid", _X, composite_unsaid, None, key="CompositeImplicitAutograd")
_CLOSES_OVER = define(_LIBRARY, "closes_over", _X, _with_table(_WEIGHT), like)
_METHOD = define(_LIBRARY, "method", _X, _Layer().scale, like)
_BOUND_WEIGHT = define(_LIBRARY, "bound_weight", _X, functools.partial(bound_weight, _WEIGHT), like)
_KERNEL_DEFAULT = define(
    _LIBRARY, "kernel_default", "(Tensor x, float factor=1.0) -> Tensor", kernel_default, _like_by_one
)
_KERNEL_SWAPS = define(_LIBRARY, "kernel_swaps", "(Tensor a, Tensor b) -> Tensor", kernel_swaps, _like_first)
_SIZE = define(_LIBRARY, "size_in_library", "(Tensor x, int count) -> Tensor", size_in_library, _rows)
_NOT_COMPOSITE = define(_LIBRARY, "not_composite", _X, not_composite, like)


def _keep_without_library() -> torch._ops.OpOverload:
    lost = torch.library.Library("broken_registration", "FRAGMENT")
    define(lost, "orphaned", _X, orphaned, like)
    held = torch.ops.broken_registration.orphaned.default
    lost._destroy()
    return held


def _keep_the_first() -> torch._ops.OpOverload:
    def register() -> torch.library.CustomOpDef:
        again = torch.library.custom_op("broken_registration::twice_registered", mutates_args=())(twice_registered)
        again.register_fake(like)
        return again

    first = register()
    register()
    return first._opoverload


def _matrix_and_size(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 4, device=device, dtype=dtype), 6), name="matrix and size")


def _matrix_and_word(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 4, device=device, dtype=dtype), "1.5"), name="matrix and word")


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
        differentiable=True,
        reference=doubled,
    ),
    planted(twice, "registration.name", "warn", reference=doubled),
    planted(other_default, "registration.schema", samples=matrix_and_number, reference=scaled),
    planted(
        int_for_size,
        "registration.schema",
        "warn",
        # sees it by what the fake kernel does, and so also without annotations
        also={"registration.symint": "warn"},
        samples=_matrix_and_size,
    ),
    planted(_SIZE, "registration.symint", "warn", kernel=size_in_library, samples=_matrix_and_size),
    planted(_keep_the_first(), "registration.handle", kernel=twice_registered, reference=doubled),
    planted(
        _keep_without_library(),
        "registration.handle",
        # both kernels went with the library
        also={"registration.kernel": "fail", "registration.fake": "fail"},
        kernel=orphaned,
    ),
    planted(reads_global, "registration.hidden_input", reference=doubled),
    planted(_CLOSES_OVER, "registration.hidden_input", kernel=_with_table(_WEIGHT), reference=doubled),
    planted(reads_attribute, "registration.hidden_input", reference=doubled),
    planted(reads_element, "registration.hidden_input", reference=doubled),
    planted(_METHOD, "registration.hidden_input", kernel=_Layer.scale, reference=doubled),
    planted(_BOUND_WEIGHT, "registration.hidden_input", kernel=bound_weight, reference=doubled),
    # without references: with them, values.reference would meet the wrong values, too
    planted(_KERNEL_DEFAULT, "registration.kernel_signature", kernel=kernel_default, samples=matrix_and_number),
    planted(_KERNEL_SWAPS, "registration.kernel_signature", kernel=kernel_swaps, samples=two_matrices),
    planted(number_in_words, "registration.number_as_string", "warn", samples=_matrix_and_word),
    planted(
        only_prints,
        "registration.effects",
        also={"export.decompositions": "fail", "compile.effects": "fail"},
    ),
    planted(
        _COMPOSITE,
        "registration.composite",
        # the graph that comes of it has the parts
        also={"export.decompositions": "fail", "compile.opaque": "fail"},
        opaque=True,
        kernel=composite,
        reference=doubled,
    ),
    planted(_UNSAID, "registration.composite", "warn", kernel=composite_unsaid, reference=doubled),
    planted(
        _NOT_COMPOSITE,
        "registration.composite",
        # the graph that comes of it has the op
        also={"export.decompositions": "fail", "compile.opaque": "fail"},
        opaque=False,
        kernel=not_composite,
        reference=doubled,
    ),
]
