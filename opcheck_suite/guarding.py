"""Make torch's own registration refuse reserved namespaces, for as long as a test run lasts, and watch the rest.

``torch.library`` refuses ``prim`` only. A conflict with a later PyTorch shows when that is installed; with the guard it
shows when the line is written.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

from opcheck_suite import reserved
from opcheck_suite.registrations import Registrations, is_torch, registrant


class ReservedNamespaceError(RuntimeError):
    """An operator was about to be defined in a namespace that belongs to PyTorch."""


@contextlib.contextmanager
def guard() -> Iterator[Registrations]:
    """Within it, an operator that Python code defines in a reserved namespace raises `ReservedNamespaceError`.

    That holds for every way there is in Python: ``torch.library.custom_op``, ``triton_op`` and ``define``, a
    ``Library`` of kind DEF or FRAGMENT, and the deprecated ``torch._custom_op``. Kernels for PyTorch's own ops may be
    registered as before, and PyTorch may define its own.

    Registrations that go against each other are a `RegistrationWarning` that names the lines of both, and are in
    ``reports`` of what the context manager returns: an op that two files define, one that ``custom_op`` drops for
    another of its name, a kernel that is overridden, and a ``Library`` object that is garbage-collected, with the ops
    that are then gone. Who looks up such an op is told in a note on the AttributeError. A library that is made within
    a function, such as a test, and used there, may go with it.

    C++ (``TORCH_LIBRARY``) is out of reach: the check ``namespace.reserved`` finds those ops, and torch itself refuses
    a second definition. Not for use in several threads at once.
    """
    import torch

    library: Any = torch.library.Library
    watch = Registrations()
    watch.start()
    original = library.define

    @functools.wraps(original)
    def define(self: Any, schema: str, *args: Any, **kwargs: Any) -> Any:
        owner = reserved.owner(self.ns)
        if owner is not None and not is_torch(frame := registrant()):
            name = schema.partition("(")[0].strip()
            raise ReservedNamespaceError(
                f"{self.ns}::{name} is defined at {frame.f_code.co_filename}:{frame.f_lineno}, but namespace "
                f"{self.ns!r} is reserved for {owner}. Use a namespace named after your library"
            )
        return original(self, schema, *args, **kwargs)

    library.define = define
    try:
        yield watch
    finally:
        library.define = original
        watch.stop()
