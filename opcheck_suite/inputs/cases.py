"""A case: a sample or a variant of it, as checks see it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from opcheck_suite import ops
from opcheck_suite.inputs import tensors
from opcheck_suite.model import Sample


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """Arguments for one call. They are a template: `inputs` makes the copies that calls are made with."""

    info: ops.OpInfo
    sample: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    variant: str = ""
    group: str = ""
    uncertain: bool = False
    """Whether something was changed that the op may rely on, such as the 3 of coordinates: the call may be invalid."""

    @property
    def key(self) -> str:
        """Name that is the same in every process: the sample's and the variant's."""
        return f"{self.sample}|{self.variant}"

    @property
    def label(self) -> str:
        """How reports call the case."""
        return f"{self.sample}, {self.variant}" if self.variant else self.sample

    def inputs(self) -> tensors.Args:
        """Fresh copies of the arguments, layout and shared memory kept. Nothing requires grad."""
        return tensors.fresh_generators(tensors.fresh((self.args, self.kwargs)))

    def raw(self) -> tensors.Args:
        """The arguments themselves, for functions that must be called with given tensors."""
        return self.args, dict(self.kwargs)

    def bound(self, args: tuple[Any, ...] | None = None, kwargs: dict[str, Any] | None = None) -> dict[str, Any]:
        """Argument name -> value, for this case's arguments or for copies of them."""
        args = self.args if args is None else args
        kwargs = self.kwargs if kwargs is None else kwargs
        if not self.info.is_operator:
            return {f"argument {n}": a for n, a in enumerate(args)} | dict(kwargs)
        names = [a.name for a in self.info.schema.arguments if not a.kwarg_only]
        return dict(zip(names, args, strict=False)) | dict(kwargs)

    def leaves(self, inputs: tensors.Args | None = None) -> list[tuple[str, torch.Tensor]]:
        """The tensors among the arguments by name; members of lists are called ``xs[0]``."""
        args, kwargs = (self.args, self.kwargs) if inputs is None else inputs
        return list(_leaves(self.bound(args, kwargs)))

    def writes(self, leaf: str) -> bool:
        """Whether the schema declares the argument written that a leaf is, or is a member of."""
        return self.info.is_operator and leaf.partition("[")[0] in self.info.mutated

    def results(self, out: Any, leaves: Iterable[tuple[str, torch.Tensor]]) -> list[Any]:
        """What a caller sees of a call on tensors ``leaves``: the outputs, then the tensors that it wrote."""
        return [*tensors.listed(out), *(t for name, t in leaves if self.writes(name))]

    def replace(self, changes: dict[str, Any], *, variant: str, group: str) -> Case:
        """The case with other values for the named leaves or arguments."""
        args, kwargs = _replace(self, changes)
        return dataclasses.replace(self, args=args, kwargs=kwargs, variant=variant, group=group)

    def map(self, fn: Callable[[torch.Tensor], Any], *, variant: str, group: str) -> Case:
        """The case with every tensor mapped."""
        args, kwargs = tensors.map_tensors(fn, (self.args, self.kwargs))
        return dataclasses.replace(self, args=args, kwargs=kwargs, variant=variant, group=group)

    def packed(self) -> Case:
        """The same values with every plain tensor contiguous in memory of its own."""

        def pack(t: torch.Tensor) -> torch.Tensor:
            if not tensors.strided(t):
                return t.detach()
            return t.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)

        return self.map(
            pack,
            variant=self.variant and f"{self.variant}, packed",
            group="packed",
        )

    def describe(self) -> str:
        """The call in words: ``muladd(a=float32[3], b=float32[3], c=1.0)``."""
        short = self.info.name.partition("::")[2] or self.info.name
        inner = ", ".join(f"{name}={tensors.describe_value(value)}" for name, value in self.bound().items())
        return f"{short}({inner})"

    def signature(self) -> tuple[Any, ...]:
        """What decides which code a compiler makes for the call.

        That is dtypes, ranks, which sizes are equal, which arguments are there, and of what kind they are.
        """
        numbers: dict[int, int] = {}

        def kind(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                shape = tensors.sizes(value)
                sizes = tuple(numbers.setdefault(size, len(numbers)) if size > 1 else -1 for size in shape)
                return (value.dtype, sizes, value.device.type, value.requires_grad)
            if isinstance(value, list | tuple):
                return tuple(kind(v) for v in value)
            if isinstance(value, bool | str | torch.dtype) or value is None:
                return value
            return type(value)

        return tuple((name, kind(value)) for name, value in self.bound().items())


def of_sample(info: ops.OpInfo, sample: Sample, device: str) -> Case:
    """The case of a sample, moved to a device if it was made elsewhere."""
    args, kwargs = sample.args, dict(sample.kwargs)
    target = torch.device(device)
    if any(t.device.type == "cpu" and target.type != "cpu" for t in tensors.tensors((args, kwargs))):
        args, kwargs = tensors.fresh_generators(tensors.fresh((args, kwargs), device=target), device=target)
    return Case(info, sample.name, tuple(args), dict(kwargs))


def _leaves(bound: dict[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in bound.items():
        if isinstance(value, torch.Tensor):
            yield name, value
        elif isinstance(value, list | tuple):
            for n, item in enumerate(value):
                if isinstance(item, torch.Tensor):
                    yield f"{name}[{n}]", item


def _replace(case: Case, changes: dict[str, Any]) -> tensors.Args:
    bound = case.bound()

    def new(name: str, value: Any) -> Any:
        if name in changes:
            return changes[name]
        if isinstance(value, list | tuple):
            items = [changes.get(f"{name}[{n}]", item) for n, item in enumerate(value)]
            return type(value)(items)
        return value

    values = {name: new(name, value) for name, value in bound.items()}
    names = list(bound)
    args = tuple(values[name] for name in names[: len(case.args)])
    kwargs = {name: values[name] for name in names[len(case.args) :]}
    return args, kwargs
