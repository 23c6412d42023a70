"""Make torch's own registration refuse reserved namespaces, for as long as a test run lasts.

``torch.library`` refuses ``prim`` only. A conflict with a later PyTorch shows when that is installed; with the guard it
shows when the line is written.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Iterator
from typing import Any

from opcheck_suite import reserved


class ReservedNamespaceError(RuntimeError):
    """An operator was about to be defined in a namespace that belongs to PyTorch."""


@contextlib.contextmanager
def guard() -> Iterator[None]:
    """Within it, an operator that Python code defines in a reserved namespace raises `ReservedNamespaceError`.

    That holds for every way there is in Python: ``torch.library.custom_op``, ``triton_op`` and ``define``, a
    ``Library`` of kind DEF or FRAGMENT, and the deprecated ``torch._custom_op``. Kernels for PyTorch's own ops may be
    registered as before, and PyTorch may define its own. C++ (``TORCH_LIBRARY``) is out of reach: the check
    ``namespace.reserved`` finds those ops. Not for use in several threads at once.
    """
    import torch

    library: Any = torch.library.Library
    original = library.define

    def define(self: Any, schema: str, *args: Any, **kwargs: Any) -> Any:
        owner = reserved.owner(self.ns)
        if owner is not None and not _is_torch(frame := _definer()):
            name = schema.partition("(")[0].strip()
            raise ReservedNamespaceError(
                f"{self.ns}::{name} is defined at {frame.f_code.co_filename}:{frame.f_lineno}, but namespace "
                f"{self.ns!r} is reserved for {owner}. Use a namespace named after your library"
            )
        return original(self, schema, *args, **kwargs)

    library.define = define
    try:
        yield
    finally:
        library.define = original


def _definer() -> Any:
    """The frame of whoever asked for the definition: the first below torch's registration API."""
    import torch

    root = os.path.dirname(torch.__file__)
    api = (functools.__file__, *(os.path.join(root, part) for part in ("library.py", "_library", "_custom_op")))
    frame: Any = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(api):
        frame = frame.f_back
    return frame


def _is_torch(frame: Any) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "torch"
