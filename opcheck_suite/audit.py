"""How ops are registered, and the static checks. Needs no samples and runs no kernel."""

from __future__ import annotations

import dataclasses
import time

import tabulate

from opcheck_suite import engine, ops, specs
from opcheck_suite.model import Report, Result
from opcheck_suite.options import RunOptions
from opcheck_suite.registry import one_of


def run(
    loaded: specs.Loaded, *, patterns: tuple[str, ...], device: str, strict: bool
) -> tuple[Report, list[ops.OpInfo]]:
    """The static checks on every op of a target, and what the table shows.

    Every op must have a kernel for the devices named, which need not be on this machine; for some device, if none is.
    """
    start = time.perf_counter()
    names = tuple(dict.fromkeys(d.strip() for d in device.split(",") if d.strip()))
    for name in names:
        one_of("device", name, ops.backends())
    if names:
        loaded = dataclasses.replace(loaded, entries=tuple(_claimed(entry, names) for entry in loaded.entries))
    options = RunOptions(ops=patterns, tier="static", isolate="never", strict=strict)
    plan = engine.plan(loaded, options, devices=names or ("cpu",))
    with engine.Runner(plan) as runner:
        results = [event for event in runner.run(plan.units) if isinstance(event, Result)]
    infos = [entry.info for entry in plan.entries.values() if entry.info is not None and entry.info.is_operator]
    return engine.report(plan, results, seconds=time.perf_counter() - start), infos


def _claimed(entry: specs.Entry, devices: tuple[str, ...]) -> specs.Entry:
    """The entry with the devices that were asked for as its claim, unless the spec makes one of its own."""
    if entry.spec.devices is not None:
        return entry
    return dataclasses.replace(entry, spec=dataclasses.replace(entry.spec, devices=devices))


def table(infos: list[ops.OpInfo]) -> str:
    """Ops x what is registered for them."""
    rows = [
        [
            info.name,
            "yes" if "CPU" in info.kernels else _composite(info),
            "yes" if "CUDA" in info.kernels else _composite(info),
            info.fake or "no",
            info.autograd or "no",
            info.vmap or "no",
            ", ".join(info.autocast) or "no",
            ", ".join(t for t in info.tags if t != "pt2_compliant_tag"),
            info.where,
        ]
        for info in infos
    ]
    headers = ["op", "CPU", "CUDA", "fake", "autograd", "vmap", "autocast", "tags", "registered at"]
    return tabulate.tabulate(rows, headers=headers, tablefmt="simple", disable_numparse=True)


def _composite(info: ops.OpInfo) -> str:
    if info.composite is None:
        return "no"
    return "implicit" if info.transparent else "explicit"
