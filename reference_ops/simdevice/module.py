"""What torch knows as ``torch.sim``. Most of it is ``torch.accelerator``, whose names it has."""

from __future__ import annotations

from typing import Any

import torch
from torch.accelerator import (
    current_device_index,
    current_stream,
    device_index,
    set_device_index,
    set_stream,
    synchronize,
)

__all__ = [
    "Event",
    "Stream",
    "current_device",
    "current_device_index",
    "current_stream",
    "device",
    "device_count",
    "get_device_name",
    "get_rng_state",
    "init",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "memory_allocated",
    "reset_peak_memory_stats",
    "set_device",
    "set_device_index",
    "set_rng_state",
    "set_stream",
    "stream",
    "synchronize",
]

Event = torch.Event
set_device = set_device_index


def is_available() -> bool:
    """Whether there is a device: there always is."""
    return True


def device_count() -> int:
    """How many devices there are."""
    return torch.ops.simdevice.device_count()  # type: ignore[no-any-return]


def init() -> None:
    """Nothing needs to be initialised."""


def is_initialized() -> bool:
    """Whether the device can be used."""
    return True


def _is_in_bad_fork() -> bool:
    return False  # a child has queues and memory as its parent had, and starts threads of its own


def current_device() -> int:
    """The index of the current device."""
    return current_device_index()


class Stream(torch.Stream):
    """A new stream, of the current device unless one is given."""

    def __new__(cls, device: Any = "sim", **kwargs: Any) -> Any:
        """A stream, which is its own context."""
        return super().__new__(cls, device=device, **kwargs)


def stream(chosen: torch.Stream) -> torch.Stream:
    """A context in which a stream is the current one of its device."""
    return chosen


def device(index: int | str | torch.device) -> Any:
    """A context in which a device is the current one."""
    return device_index(index if isinstance(index, int) else torch.device(index).index)


def get_device_name(device: Any = None) -> str:
    """What reports call the device."""
    return "simulated on the CPU"


def _index(device: Any) -> int:
    if device is None:
        return current_device()
    if isinstance(device, int):
        return device
    place = torch.device(device)
    return current_device() if place.index is None else place.index


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors on a device take."""
    return torch.ops.simdevice.memory_allocated(_index(device))  # type: ignore[no-any-return]


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors took since `reset_peak_memory_stats`."""
    return torch.ops.simdevice.max_memory_allocated(_index(device))  # type: ignore[no-any-return]


def reset_peak_memory_stats(device: Any = None) -> None:
    """Count the peak from now on."""
    torch.ops.simdevice.reset_peak_memory_stats(_index(device))


# Random numbers come from the CPU, and from its generator.


def manual_seed(seed: int) -> None:
    """Seed the device: numbers come from the CPU's generator, which `torch.manual_seed` seeds."""


def manual_seed_all(seed: int) -> None:
    """Seed all devices; see `manual_seed`."""


def get_rng_state(device: Any = None) -> torch.Tensor:
    """The state of the generator that the device's random numbers come from."""
    return torch.get_rng_state()


def set_rng_state(state: torch.Tensor, device: Any = None) -> None:
    """Set the state of that generator."""
    torch.set_rng_state(state)
