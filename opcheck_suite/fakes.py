"""Run an op on fake tensors: metadata without data.

Private names of torch used, all in this module: ``torch._subclasses.fake_tensor`` and
``torch.fx.experimental.symbolic_shapes``.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, UnsupportedFakeTensorException
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case


@dataclasses.dataclass(frozen=True, eq=False)
class FakeRun:
    """One call on fake tensors."""

    case: Case
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    out: Any
    error: BaseException | None
    unsupported: str = ""
    """Why fake tensors cannot stand for these inputs at all (a limit of torch), or empty."""

    @property
    def outputs(self) -> list[Any]:
        """The returned values as a list."""
        if self.out is None:
            return []
        return list(self.out) if isinstance(self.out, tuple) else [self.out]


def run(op: Any, case: Case) -> FakeRun:
    """Call ``op`` on fake copies of a case's arguments, with the sizes they have.

    The mode has a ShapeEnv, so that data-dependent sizes come out as unbacked symbols and not as an error.
    """
    args, kwargs = case.inputs()
    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=False)
    try:
        with mode:
            fake_args, fake_kwargs = tensors.map_tensors(
                lambda t: mode.from_tensor(t, static_shapes=True), (args, kwargs)
            )
    except (UnsupportedFakeTensorException, NotImplementedError, RuntimeError) as error:
        return FakeRun(case, args, kwargs, None, error, unsupported=str(error).splitlines()[0])
    try:
        with mode:
            out = op(*fake_args, **fake_kwargs)
    except (KeyboardInterrupt, MemoryError):
        raise
    except UnsupportedFakeTensorException as error:
        return FakeRun(case, fake_args, fake_kwargs, None, error, unsupported=str(error).splitlines()[0])
    except BaseException as error:
        return FakeRun(case, fake_args, fake_kwargs, None, error)
    return FakeRun(case, fake_args, fake_kwargs, out, None)


def is_fake(value: Any) -> bool:
    """Whether a value is a fake tensor."""
    return isinstance(value, FakeTensor)


def known(value: Any) -> bool:
    """Whether a size, stride or number is a plain value and not a symbol that only data would decide."""
    return isinstance(value, int | float | bool)


def sizes(tensor: torch.Tensor) -> list[int | None]:
    """The sizes of a fake tensor, None where data decides."""
    return [int(s) if known(s) else None for s in tensor.shape]


def strides(tensor: torch.Tensor) -> list[int | None]:
    """The strides of a fake tensor, None where data decides."""
    return [int(s) if known(s) else None for s in tensor.stride()]
