"""A simulated accelerator, ``sim``: what the device checks prove themselves on where there is no GPU.

It is a backend in C++ (``csrc/simdevice``) under the dispatch key PrivateUse1, compiled when it is first asked for.
There are two devices, with memory, streams and errors as those of a GPU: an address of a device is none of the host's,
work is queued and done later by a thread for each stream, and what goes wrong is told by the next call that waits.
Operators of torch's that make, view and copy tensors are its own; the others run on the CPU, on copies.

Importing this package does nothing. `register` makes ``torch.device("sim")`` and ``torch.sim`` known, for good; so does
importing `reference_ops.simdevice.specs`, and with it ``opcheck run reference_ops.simdevice.specs --device sim``.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

#: The name of the device type.
NAME = "sim"


@functools.cache
def register() -> None:
    """Compile the backend if need be, load it, and make it known to torch. Cheap after the first call.

    Raises `reference_ops.native._build.NotBuilt`, with what is missing on this machine. A process has room for one
    backend of this kind: RuntimeError where it has another.
    """
    import torch

    from reference_ops.native import _build
    from reference_ops.simdevice import module

    _build.load("sim")
    torch.utils.rename_privateuse1_backend(NAME)
    torch._register_device_module(NAME, module)  # type: ignore[no-untyped-call]
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)


def missing() -> Mapping[str, str]:
    """For ``OpSpec(unavailable=...)``: empty where the device is there, else why it is not. Registers it."""
    from reference_ops.native import _build

    try:
        register()
    except _build.NotBuilt as failure:
        return {"sim": str(failure)}
    return {}
