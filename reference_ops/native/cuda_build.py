"""What can be known of the CUDA code without a GPU: ``make cuda-build``, in an environment with a CUDA build of torch.

Compiles, links and loads every kernel and binding, those with planted faults among them. Then audits that each op has
a kernel for CUDA, and runs the checks that call fake kernels on fake CUDA tensors, or kernels in Python as if their
inputs were on CUDA. No kernel for CUDA is run. Prints what came of it; the exit status is 1 when something does not
compile or load, or has a bad result, and 2 when this machine lacks what is needed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence

from reference_ops.native import _build, _tools

#: Libraries by the process that builds them, one after the other: torch compiles one library at a time for a process.
GROUPS = (("native",), ("broken_cuda", "stable"))

#: Spec modules whose ops must have a kernel for CUDA, each.
SPECS = ("reference_ops.specs", "reference_ops.broken.cuda")

#: Checks that look at what is for CUDA on a machine without a GPU.
CHECKS = ("fake.placement", "dispatch.devices")


def main(argv: Sequence[str] | None = None) -> int:
    """Build, audit and check; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m reference_ops.native.cuda_build", description=__doc__)
    parser.add_argument("--nvcc", action="store_true", help="say which nvcc is used, and do nothing")
    options = parser.parse_args(argv)
    try:
        nvcc = _tools.nvcc()
        print(f"nvcc     {nvcc}, {_tools.toolkit(nvcc)}")
    except _build.NotBuilt as failure:
        print(f"cuda-build: {failure}", file=sys.stderr)
        return 2
    if options.nvcc:
        return 0
    os.environ["OPCHECK_CUDA"] = "1"
    if not compiled():
        return 1
    good = [audited(module) for module in SPECS] + [checked(module) for module in SPECS]
    print("CUDA is compiled, loaded and audited; nothing has been run on a GPU" if all(good) else "cuda-build: FAILED")
    return 0 if all(good) else 1


def compiled() -> bool:
    """Compile and load all libraries, some at the same time. Whether that worked."""
    start = time.monotonic()
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "reference_ops.native", *names],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for names in GROUPS
    ]
    outputs = [process.communicate()[0] for process in running]
    good = not any(process.returncode for process in running)
    if good:
        names = [_build.LIBRARIES[name].namespace for group in GROUPS for name in group]
        print(f"compile  {', '.join(names)}: {time.monotonic() - start:.0f} s")
    else:
        print("".join(outputs).rstrip())
        print("compile  FAILED")
    return good


def audited(module: str) -> bool:
    """Look at the registrations of a spec module's ops for CUDA. Whether all are as they should be."""
    from opcheck_suite import audit, reports, specs

    report, infos = audit.run(specs.load(module), patterns=(), device="cuda", strict=False)
    own = [info.name for info in infos if "CUDA" in info.kernels]
    every = [info.name for info in infos if "CUDA" not in info.kernels and info.composite]
    lacking = [info.name for info in infos if info.kernel_for("cuda") is None]
    print(
        f"audit    {module}: {len(own)} ops have a kernel for CUDA, {len(every)} one for all devices, "
        f"{len(lacking)} lack one{': ' if lacking else ''}{', '.join(lacking)}"
    )
    if not report.ok:
        print(reports.render("text", report))
    return report.ok and not lacking and bool(own)


def checked(module: str) -> bool:
    """Run the checks that need no GPU. Whether nothing was found, and every op with a kernel for CUDA was looked at."""
    from opcheck_suite import engine, ops, reports, specs
    from opcheck_suite.options import RunOptions

    chosen = RunOptions(tier="quick", device="cpu", checks=CHECKS, jobs=os.cpu_count() or 1).validated()
    plan = engine.plan(specs.load(module), chosen)
    report = engine.run(plan)
    looked = {result.op for result in report.results if result.check == CHECKS[0] and result.outcome.value == "pass"}
    own = {e.name for e in plan.entries.values() if e.info is not None and "CUDA" in ops.info(e.name).kernels}
    print(
        f"fake     {module}: {len(looked)} ops called with fake CUDA tensors, "
        f"{'nothing found' if report.ok else 'FAILED'}, {report.seconds:.0f} s"
    )
    if not report.ok:
        print(reports.render("text", report))
    if own - looked:
        print(f"fake     {module}: NOT looked at: {', '.join(sorted(own - looked))}")
    return report.ok and not own - looked


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: children are forked
    sys.exit(main())
