"""Namespaces that belong to PyTorch, as data.

torch's deprecated ``torch._custom_op`` refused all of them
(https://github.com/pytorch/pytorch/blob/v2.5.0/torch/_custom_op/impl.py); ``torch.library`` refuses only ``prim``. The
rule is kept here, so that it outlives the module that held it.
"""

from __future__ import annotations

#: Namespace -> what it is.
RESERVED = {
    "aten": "PyTorch's own operators",
    "prim": "primitives of TorchScript",
    "prims": "primitives that aten operators decompose into",
    "at": "the C++ namespace of ATen",
    "torch": "the Python package",
    "pytorch": "the project",
}
