"""Namespaces that belong to PyTorch, as data.

torch's deprecated ``torch._custom_op`` refused all of them
(https://github.com/pytorch/pytorch/blob/v2.5.0/torch/_custom_op/impl.py); ``torch.library`` refuses only ``prim``. The
rule is kept here, so that it outlives the module that held it.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Namespace:
    """A namespace that operators of others must not be defined in."""

    owner: str
    """Whose it is, as in "reserved for ...". """
    modern: bool = False
    """Whether torch.library refuses it."""
    deprecated: bool = True
    """Whether torch._custom_op refuses it, where there still is one."""


#: Namespace -> what it is, and who enforces it. All of them since torch 2.1, where torch._custom_op came with the list.
RESERVED = {
    "aten": Namespace("PyTorch's own operators"),
    "prim": Namespace("primitives of TorchScript", modern=True),
    "prims": Namespace("primitives that aten operators decompose into"),
    "at": Namespace("the C++ namespace of ATen"),
    "torch": Namespace("the Python package"),
    "pytorch": Namespace("the project"),
}


def owner(namespace: str) -> str | None:
    """What a namespace is reserved for, or None. Upper and lower case are one: ``ATen`` would be read as ``aten``."""
    found = RESERVED.get(namespace.lower())
    return found.owner if found else None
