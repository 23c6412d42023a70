"""Faults in the names of ops."""

from __future__ import annotations

import torch
from torch import Tensor

from reference_ops.broken.fault import Fault, define, doubled, library, like, planted


@torch.library.custom_op("aten::broken_reserved", mutates_args=())
def broken_reserved(x: Tensor) -> Tensor:
    """The op is put among PyTorch's own."""
    return doubled(x)


broken_reserved.register_fake(like)


def _keyword(x: Tensor) -> Tensor:
    """The op's name is a keyword of Python."""
    return doubled(x)


def _underscores(x: Tensor) -> Tensor:
    """The op's name begins with two underscores."""
    return doubled(x)


_LIBRARY = library("broken_namespace")
_KEYWORD = define(_LIBRARY, "lambda", "(Tensor x) -> Tensor", _keyword, like)
_UNDERSCORES = define(_LIBRARY, "__doubled", "(Tensor x) -> Tensor", _underscores, like)

FAULTS: list[Fault] = [
    planted(broken_reserved, "namespace.reserved", reference=doubled),
    planted(
        _KEYWORD,
        "namespace.invalid",
        # torch prints a graph as Python source and then compiles that
        also={
            "export.program": "fail",
            "opcheck.utils": "fail",
            "compile.graph_breaks": "fail",
            "compile.parity": "fail",
        },
        kernel=_keyword,
        reference=doubled,
    ),
    planted(
        _UNDERSCORES,
        "namespace.invalid",
        # Inductor's generated code names the op inside a class, where Python mangles it
        also={"compile.parity": "fail"},
        kernel=_underscores,
        reference=doubled,
    ),
]
