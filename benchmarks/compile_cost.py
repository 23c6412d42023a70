"""What the compile checks of tier standard add to the cost of an op, in seconds.

    python benchmarks/compile_cost.py [--source reference_ops.python.specs] [--every 1]

For each op all other checks are run first, as in a run, so that what they share with the compile checks is not counted
twice; then each compile check is timed. Ops run one after the other in one process, which has compiled before. Times
are of the processor: on a machine that is busy with something else those of the clock say little, and these still grow
by half. A sum is over all samples of an op. The last line has the same figures in units of one
``torch.library.opcheck`` of the same samples, measured in between.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import statistics
import time
import warnings
from collections.abc import Iterable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cost
import tabulate

from opcheck_suite import compiling, registry, specs
from opcheck_suite.model import Tier, Unit
from opcheck_suite.session import Session


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default="reference_ops.python.specs", help="a module with SPECS")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take every Nth op only")
    args = parser.parse_args()
    checks = registry.select([], tier=Tier.STANDARD)
    mine = [c.id for c in checks if c.family == "compile"]
    entries = [e for e in specs.load(args.source).entries if e.info is not None and e.info.is_operator]
    compiling.prepare()
    run(entries[0], [c.id for c in checks])  # what is loaded on first use is not an op's cost
    times: dict[str, list[float]] = {id: [] for id in mine}
    names, sums, units, samples = [], [], [], []
    for entry in entries[:: args.every]:
        taken = run(entry, [c.id for c in checks])
        for id in mine:
            times[id].append(taken[id])
        names.append(entry.name)
        sums.append(sum(taken[id] for id in mine))
        start = time.process_time()
        cost.quietly(lambda e: cost.opcheck(e, cost.DEFAULT), entry)
        units.append(time.process_time() - start)
        samples.append(cost.samples(entry))
    rows = [row(id, seconds) for id, seconds in times.items()]
    rows.append(row("all of them, an op", sums))
    rows.append(row("all of them, a sample", [s / n for s, n in zip(sums, samples, strict=True)]))
    print(tabulate.tabulate(rows, headers=["seconds", "median", "mean", "maximum"], tablefmt="github"))
    most = max(range(len(sums)), key=sums.__getitem__)
    print(f"\n{len(sums)} ops; the maximum is of {names[most]}, with {samples[most]} samples")
    ratios = [s / u for s, u in zip(sums, units, strict=True)]
    print(f"in units of torch.library.opcheck: median {statistics.median(ratios):.1f}, maximum {max(ratios):.1f}")


def run(entry: specs.Entry, checks: Iterable[str]) -> dict[str, float]:
    """Seconds of each check on an op."""
    session = Session(entry)
    dtype = str((entry.spec.dtypes or ("",))[0]).removeprefix("torch.")
    taken = {}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for id in checks:
            start = time.process_time()
            for _ in session.run(Unit(entry.name, id, "cpu", dtype)):
                pass
            taken[id] = time.process_time() - start
    return taken


def row(name: str, seconds: list[float]) -> list[str]:
    """A row of the table."""
    figures = (statistics.median(seconds), statistics.mean(seconds), max(seconds))
    return [name, *(f"{value:.2f}" for value in figures)]


if __name__ == "__main__":
    main()
