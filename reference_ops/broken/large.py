"""An op that counts elements in 32 bits, and one that does not: ``opcheck run reference_ops.broken.large --large``.

They are no part of the table of all faults, since that is run without ``--large``, which takes gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from opcheck_suite.model import OpSpec, Sample
from reference_ops.broken.fault import Fault, like
from reference_ops.native._build import missing

#: As for ``OpSpec(unavailable=...)``: empty, or why the ops are not there.
UNAVAILABLE = missing("broken")


def _bytes(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((torch.arange(240, dtype=torch.uint8, device=device).reshape(24, 10),), name="bytes")


def _spec(name: str, about: str) -> OpSpec:
    return OpSpec(
        f"broken_cpp::{name}",
        samples=_bytes,
        reference=torch.bitwise_not,
        devices=("cpu",),
        unavailable=UNAVAILABLE,
        about=about,
    )


FAULTS: list[Fault] = [
    Fault(_spec("inverted_int", "planted fault: elements are counted in an int"), "values.large"),
]

#: Check id -> an op that passes it, having run.
GOOD: dict[str, OpSpec] = {"values.large": _spec("inverted", "elements are counted in an int64_t")}

if not UNAVAILABLE:
    for _op in [*(fault.spec.op for fault in FAULTS), *(spec.op for spec in GOOD.values())]:
        torch.library.register_fake(_op, like)

SPECS = [*GOOD.values(), *(fault.spec for fault in FAULTS)]
