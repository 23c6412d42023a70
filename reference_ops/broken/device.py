"""Kernels for a device that go wrong where the CPU shows nothing.

``opcheck run reference_ops.broken.device --device sim``. The kernels are in C++ (``csrc/simdevice/broken.cpp``), for
the simulated device. Importing this module compiles and registers it, so that the module is no part of the table of all
faults: those are looked at on the CPU, as if there were no other device.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from opcheck_suite import registry
from opcheck_suite.model import OpSpec, Sample
from reference_ops import simdevice
from reference_ops.broken.fault import Fault, doubled, library, like, matrix, two_matrices
from reference_ops.python.data import normal

#: As for ``OpSpec(unavailable=...)``: empty, or why there is no simulated device.
UNAVAILABLE = simdevice.missing()

_BOTH = ("cpu", "sim")


def _blend(a: Tensor, b: Tensor) -> Tensor:
    torch._check(a.shape == b.shape and a.dtype == b.dtype)
    torch._check(a.device == b.device)
    return like(a).copy_(a * 2 + b)


def _blended(a: Tensor, b: Tensor) -> Tensor:
    torch._check(a.shape == b.shape and a.dtype == b.dtype)
    torch._check(a.device == b.device)
    return like(a)


def _many(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(64, device=device, dtype=dtype).abs_(),), name="many terms")


def _matrix_and_number(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    number = normal(1, device=device, dtype=dtype, seed=1).reshape(())
    yield Sample((normal(3, 4, device=device, dtype=dtype), number), name="matrix and number")


def _scaled(x: Tensor, factor: Tensor) -> Tensor:
    torch._check(factor.dim() == 0)
    return like(x).copy_(x * 2 * factor)


def _scaled_like(x: Tensor, factor: Tensor) -> Tensor:
    torch._check(factor.dim() == 0)
    return like(x)


def _total(x: Tensor) -> Tensor:
    torch._check(x.dtype == torch.float32)
    return x.new_empty(())


def _planted(name: str, about: str, check: str, outcome: str = "fail", **claims: Any) -> Fault:
    also = claims.pop("also", {})
    spec = OpSpec(
        f"broken_device::{name}",
        **{
            "samples": matrix,
            "devices": _BOTH,
            "unavailable": UNAVAILABLE,
            "about": f"planted fault: {about}",
            **claims,
        },
    )
    return Fault(spec, check, outcome, also)


if not UNAVAILABLE:
    _LIBRARY = library("broken_device")
    for _name in ("blend", "accepts_mixed"):
        torch.library.register_fake(f"broken_device::{_name}", _blended, lib=_LIBRARY)
    for _name in ("scaled", "number_on_cpu"):
        torch.library.register_fake(f"broken_device::{_name}", _scaled_like, lib=_LIBRARY)
    torch.library.register_fake("broken_device::any_order", _total, lib=_LIBRARY)

FAULTS: list[Fault] = [
    _planted("coarse", "on the device a constant has lost its digits", "device.parity"),
    _planted("on_cpu", "the result is left on the CPU", "fake.device", also={"opcheck.utils": "fail"}),
    _planted("on_current_device", "the result is on the device that is current", "device.guard", reference=doubled),
    _planted("no_guard", "the kernel runs on the device that is current", "device.guard", "crash", reference=doubled),
    _planted("leaves_device", "the device of the argument becomes the current one", "device.guard", reference=doubled),
    _planted(
        "default_stream",
        "the kernel runs on the default stream",
        "device.stream",
        reference=doubled,
        also={"device.capture": "fail"},
    ),
    _planted(
        "waits_for_kernel",
        "the host waits for the kernel, to look for errors",
        "device.capture",
        "warn",
        reference=doubled,
    ),
    _planted("counts_calls", "a flag on the device holds how often the host was called", "device.capture"),
    _planted("reads_host", "the host reads an address of the device", "values.runs", "crash", reference=doubled),
    _planted("beyond_the_end", "the kernel reads beyond its argument", "values.runs", "crash", reference=doubled),
    _planted("keeps_results", "memory of the device is taken in every call and not freed", "values.growth"),
    _planted("last_unwritten", "the kernel writes whole blocks of four", "values.unwritten"),
    _planted("last_unwritten_of_raw", "the same in memory straight from the allocator", "values.unwritten"),
    _planted("no_kernel", "the device that the spec claims has no kernel", "registration.kernel", reference=doubled),
    _planted(
        "accepts_mixed", "an argument may be on the CPU", "device.mixed", "warn", samples=two_matrices, reference=_blend
    ),
    _planted(
        "number_on_cpu",
        "a number may be on the CPU, and its address is taken for one of the device",
        "device.mixed",
        "warn",
        samples=_matrix_and_number,
        reference=_scaled,
    ),
    _planted(
        "any_order",
        "terms are added as threads arrive, and the spec claims that the op is deterministic",
        "device.deterministic",
        samples=_many,
        reference=torch.sum,
        deterministic=True,
    ),
]

if not UNAVAILABLE:
    for _op in ("broken_device::forks", *(fault.spec.op for fault in FAULTS if fault.spec.samples is matrix)):
        torch.library.register_fake(_op, like, lib=_LIBRARY)

_GOOD = OpSpec(
    "broken_device::blend",
    samples=two_matrices,
    reference=_blend,
    devices=_BOTH,
    deterministic=True,
    unavailable=UNAVAILABLE,
    about="a kernel for the simulated device that is right",
)

_SCALED = OpSpec(
    "broken_device::scaled",
    samples=_matrix_and_number,
    reference=_scaled,
    devices=_BOTH,
    unavailable=UNAVAILABLE,
    about="a kernel that takes a number from the CPU or the device, as torch's own do",
)

_FORKS = OpSpec(
    "broken_device::forks",
    samples=matrix,
    reference=doubled,
    devices=_BOTH,
    unavailable=UNAVAILABLE,
    about="a kernel on a stream of its own, which waits for the current one and is waited for",
)

#: Check id -> an op that passes it, having run on the device.
GOOD: dict[str, OpSpec] = {one.id: _GOOD for one in registry.all_checks() if one.family == "device"}
GOOD |= {"device.capture": _FORKS, "device.mixed": _SCALED}

SPECS = [_GOOD, _SCALED, _FORKS, *(fault.spec for fault in FAULTS)]
