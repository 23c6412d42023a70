"""Which devices a run is made on."""

from __future__ import annotations

from typing import Any

import torch

from opcheck_suite.registry import UsageError, did_you_mean

_KNOWN = ("cpu", "cuda", "xpu", "mps", "hpu", "mtia", "meta")


def select(text: str) -> tuple[str, ...]:
    """The device types meant by ``--device``: ``cpu``, ``cuda,cpu``, or ``auto`` for the CPU and what else is there.

    Raises UsageError for a device that torch does not know or this machine does not have: a run that was asked for on a
    device must not pass by skipping it.
    """
    if text == "auto":
        accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        return ("cpu",) if accelerator is None else ("cpu", accelerator.type)
    chosen = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not chosen:
        raise UsageError("--device is empty; give cpu, cuda, or auto")
    for name in chosen:
        _require(name)
    return chosen


def _require(name: str) -> None:
    try:
        kind = torch.device(name).type
    except RuntimeError:
        raise UsageError(f"unknown device {name!r}{did_you_mean(name, _KNOWN)}") from None
    if kind == "meta":
        raise UsageError(
            "device 'meta' holds no data, so that nothing can be checked on it; fake.* checks need no device"
        )
    if kind == "cpu":
        return
    module = getattr(torch, kind, None)
    if module is None or not getattr(module, "is_available", lambda: False)():
        build = f"torch {torch.__version__} is built without it" if _unbuilt(kind) else "no such device was found"
        raise UsageError(
            f"device {name!r} is not available on this machine: {build}; use --device auto to take what is there"
        )


def _unbuilt(kind: str) -> bool:
    if kind == "cuda":
        return torch.version.cuda is None and torch.version.hip is None
    return False


def module(name: str) -> Any:
    """What torch has for a device's type, such as ``torch.cuda``; None for the CPU, where nothing is done later."""
    kind = torch.device(name).type
    return None if kind == "cpu" else getattr(torch, kind, None)


def accelerator(name: str) -> bool:
    """Whether ``torch.accelerator``, which has streams and device indices for all backends, is about this device."""
    found = torch.accelerator.current_accelerator()
    return found is not None and found.type == torch.device(name).type


def unasked_error(name: str) -> RuntimeError | None:
    """An error that this thread's calls have left on a device because they did not ask for it, or None.

    CUDA keeps the error of a launch until somebody asks, and to wait for the device is not to ask. Who asks next takes
    the error for their own. torch has no function that only asks: it does so after each kernel that it launches.
    """
    if torch.device(name).type != "cuda":
        return None
    try:
        torch.empty(1, device=name).fill_(0)
    except RuntimeError as error:
        text = str(error).strip().partition("\n")[0]
        return RuntimeError(f"a kernel was not launched, and nobody asked whether it was: {text}")
    return None


def describe(names: tuple[str, ...]) -> str:
    """The devices with the names of their hardware."""
    found = []
    for name in names:
        module = getattr(torch, torch.device(name).type, None)
        named = name != "cpu" and hasattr(module, "get_device_name")
        model = module.get_device_name() if named and module is not None and module.is_available() else ""
        found.append(f"{name} ({model})" if model else name)
    return ", ".join(found)
