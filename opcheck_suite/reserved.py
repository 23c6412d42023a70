"""Namespaces that belong to PyTorch, as data.

torch's deprecated ``torch._custom_op`` refused all of them
(https://github.com/pytorch/pytorch/blob/v2.5.0/torch/_custom_op/impl.py); ``torch.library`` refuses only ``prim``
(https://github.com/pytorch/pytorch/blob/v2.13.0/torch/library.py), and C++ none. The rule is kept here, so that it
outlives the module that held it.

Other namespaces that PyTorch has ops in (``quantized``, ``c10d``, ``inductor``...) are not in it: torch has never
reserved them, and libraries that belong to PyTorch, such as executorch, define ops there.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Namespace:
    """A namespace that operators of others must not be defined in."""

    owner: str
    """Whose it is, as in "reserved for ...". """
    why: str
    """What goes wrong with an op of one's own in it."""
    since: str = "2.1"
    """The first torch that has the rule."""
    modern: bool = False
    """Whether torch.library refuses it."""
    deprecated: bool = True
    """Whether torch._custom_op refuses it, where there still is one."""
    taken: bool = False
    """Whether PyTorch has a ``TORCH_LIBRARY`` of it, so that a second one is refused, though not a fragment."""


_MISTAKEN = "is taken for one of PyTorch's, by readers and by tools that tell ops apart by namespace"

#: Namespace -> what it is, and who enforces it. All of them since torch 2.1, where torch._custom_op came with the list.
RESERVED = {
    "aten": Namespace(
        "PyTorch's own operators",
        "clashes with the next operator of that name; checks and compilers treat it as one they know",
        taken=True,
    ),
    "prim": Namespace(
        "primitives of TorchScript", "is read as an instruction by TorchScript's interpreter", modern=True
    ),
    "prims": Namespace(
        "primitives that aten operators decompose into", "is taken to be decomposed as far as can be", taken=True
    ),
    "at": Namespace("the C++ namespace of ATen", _MISTAKEN),
    "torch": Namespace("the Python package", _MISTAKEN),
    "pytorch": Namespace("the project", _MISTAKEN),
}


def owner(namespace: str) -> str | None:
    """What a namespace is reserved for, or None. Upper and lower case are one: ``ATen`` would be read as ``aten``."""
    found = RESERVED.get(namespace.lower())
    return found.owner if found else None
