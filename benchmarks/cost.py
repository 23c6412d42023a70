"""What a check of an op costs and finds, beside torch.library.opcheck, in one run on the same samples.

    python benchmarks/cost.py [--ops 40] [--repeat 2]

Ops are the Python reference ops and the planted faults, except those that end the process. Times are milliseconds
of processor time for one op and sample, of a C++ compiler's too, the least of the repeats; ratios are to opcheck with
its default utils, op by op, and the median of them is printed: single figures vary with the machine, ratios within one
run hardly do.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import statistics
import warnings
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import tabulate
import torch

from opcheck_suite import check_op, engine, specs
from opcheck_suite.checks.opcheck.utils import UTILS
from opcheck_suite.inputs import cases
from reference_ops.broken import faults
from reference_ops.python.specs import SPECS

#: What opcheck runs when it is not told.
DEFAULT = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")

#: All families but those that run a compiler. opcheck's last util does, on the op alone.
OTHERS = ("!compile", "!export")


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--ops", type=int, default=40, help="how many of the planted faults, and of the good ops, are timed"
    )
    parser.add_argument("--repeat", type=int, default=2, help="how often each is timed")
    args = parser.parse_args()
    planted = [f for f in faults.all_faults() if not f.outcome.startswith(("crash", "timeout")) and _callable(f.spec)]
    ways: dict[str, Callable[[specs.Entry], bool]] = {
        "opcheck, default utils": lambda e: opcheck(e, DEFAULT),
        "opcheck, all utils": lambda e: opcheck(e, UTILS),
        "tier quick": lambda e: suite(e, "quick"),
        "tier standard, without compile and export": lambda e: suite(e, "standard", OTHERS),
        "tier standard": lambda e: suite(e, "standard"),
    }
    good = [specs.entries([s])[0] for s in SPECS[: args.ops]]
    bad = [specs.entries([f.spec])[0] for f in planted[: args.ops]]
    engine.compiling.prepare()
    for way in ways.values():
        way(good[0])  # what is loaded on first use is not the op's cost
    times: dict[str, list[float]] = {name: [] for name in ways}
    for entry in good:  # all ways on one op after the other, so that a slow moment of the machine meets all of them
        for name, way in ways.items():
            times[name].append(timed(way, entry, args.repeat) / samples(entry))
    found = {name: sum(not quietly(way, e) for e in bad) for name, way in ways.items()}
    alarms = {name: sum(not quietly(way, e) for e in good) for name, way in ways.items()}
    base = times["opcheck, default utils"]
    rows = [
        [
            name,
            f"{1000 * statistics.median(taken):.0f}",
            f"{statistics.median(t / b for t, b in zip(taken, base, strict=True)):.1f}",
            f"{found[name]} of {len(bad)}",
            f"{alarms[name]} of {len(good)}",
        ]
        for name, taken in times.items()
    ]
    headers = ["", "ms an op and sample", "ratio", "planted faults found", "good ops flagged"]
    print(tabulate.tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True))


def _callable(spec: object) -> bool:
    entry = specs.entries([spec])[0]  # type: ignore[list-item]
    return entry.info is not None and entry.info.is_operator and bool(samples(entry))


def samples(entry: specs.Entry) -> int:
    """How many samples the entry's spec has."""
    assert entry.info is not None
    return len(specs.samples(entry.spec, device="cpu", dtype=(entry.spec.dtypes or (None,))[0], info=entry.info))


def opcheck(entry: specs.Entry, utils: tuple[str, ...]) -> bool:
    """Whether torch.library.opcheck finds nothing, with arguments that require grad where a spec says so."""
    assert entry.info is not None
    dtype = (entry.spec.dtypes or (None,))[0]
    for sample in specs.samples(entry.spec, device="cpu", dtype=dtype, info=entry.info):
        args, kwargs = cases.of_sample(entry.info, sample, "cpu").inputs()
        if entry.spec.differentiable:
            args = tuple(
                a.requires_grad_() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args
            )
        try:
            torch.library.opcheck(entry.info.op, args, kwargs, test_utils=utils)
        except Exception:
            return False
    return True


def suite(entry: specs.Entry, tier: str, checks: tuple[str, ...] = ()) -> bool:
    """Whether the suite finds nothing bad or worth a warning."""
    report = check_op(entry.spec, tier=tier, checks=checks, isolate="never", strict=True)
    return all(r.outcome not in ("fail", "warn", "crash", "timeout", "xpass", "error") for r in report.results)


def timed(way: Callable[[specs.Entry], bool], entry: specs.Entry, repeat: int) -> float:
    """Seconds of the processor that the fastest of some runs took."""
    best = float("inf")
    for _ in range(repeat):
        start = sum(os.times()[:4])
        quietly(way, entry)
        best = min(best, sum(os.times()[:4]) - start)
    return best


def quietly(way: Callable[[specs.Entry], bool], entry: specs.Entry) -> bool:
    """A run whose printing goes nowhere."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        return way(entry)


if __name__ == "__main__":
    main()
