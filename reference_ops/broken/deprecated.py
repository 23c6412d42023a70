"""Ops registered through doors that torch is going to close."""

from __future__ import annotations

import importlib
import warnings

import torch
from torch import Tensor

from reference_ops.broken.fault import Fault, define, doubled, library, like, planted


def first_api(x: Tensor) -> Tensor:
    """The op is registered with torch._custom_op."""
    return doubled(x)


def old_name(x: Tensor) -> Tensor:
    """The fake kernel is registered with torch.library.impl_abstract."""
    return doubled(x)


def _register_first_api(name: str) -> dict[str, str]:
    """Register `first_api`; returns why that cannot be done, as ``OpSpec.unavailable`` has it."""
    try:
        old = importlib.import_module("torch._custom_op.impl")
    except ModuleNotFoundError:
        return {"torch._custom_op": f"torch {torch.__version__} no longer has it"}
    if name in old.global_registry:
        old.global_registry[name]._destroy()
    old.custom_op(name)(first_api).impl("cpu")(first_api)
    torch.library.register_fake(name, like, lib=_LIBRARY)
    return {}


_LIBRARY = library("broken_deprecated")
_FIRST = "broken_deprecated::first_api"
_OLD = define(_LIBRARY, "old_name", "(Tensor x) -> Tensor", old_name, None)
with warnings.catch_warnings():
    # What is planted here warns, and whoever imports this is not to blame.
    warnings.simplefilter("ignore")
    _MISSING = _register_first_api(_FIRST)
    torch.library.impl_abstract(_OLD, like, lib=_LIBRARY)

FAULTS: list[Fault] = [
    planted(
        _FIRST,
        "deprecated.custom_op",
        kernel=first_api,
        unavailable=_MISSING,
        differentiable=False,  # that API puts a kernel at the Autograd key of every op
        reference=doubled,
    ),
    planted(_OLD, "deprecated.impl_abstract", kernel=old_name, reference=doubled),
]
