"""Run planted faults through all checks, and say where that disagrees with their tables.

The run takes place in a process of its own, ``python -m tests.checks.planted``: children can be forked from it safely,
whatever other tests have done with torch, and no broken op is registered beside theirs.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import pathlib
import subprocess
import sys
from typing import Any

from opcheck_suite import options
from opcheck_suite.model import Outcome, worst

ROOT = pathlib.Path(__file__).parents[2]
BROKEN = ROOT / "reference_ops" / "broken"


def modules() -> list[str]:
    """The modules below ``reference_ops.broken`` that hold a table of faults, found without importing them."""
    return sorted(path.stem for path in BROKEN.glob("*.py") if "\nFAULTS: list[Fault] = [" in path.read_text())


@dataclasses.dataclass(frozen=True)
class Walk:
    """What came of a run."""

    faults: list[dict[str, Any]]
    good: dict[str, str]
    """Check id -> the op that must pass it."""
    units: list[tuple[str, str]]
    """What was planned: op and check."""
    results: list[dict[str, Any]]
    seconds: float

    def of(self, op: str, check: str) -> list[dict[str, Any]]:
        """The results of a unit."""
        return [r for r in self.results if r["op"] == op and r["check"] == check]

    def noticed(self, op: str) -> dict[str, str]:
        """Check id -> outcome, for the checks that find fault with an op."""
        found: dict[str, list[Outcome]] = {}
        for result in self.results:
            outcome = Outcome(result["outcome"])
            if result["op"] == op and (outcome.bad or outcome is Outcome.WARN):
                found.setdefault(result["check"], []).append(outcome)
        return {check: worst(outcomes).value for check, outcomes in found.items()}

    def message(self, op: str, check: str) -> str:
        """What a check said of an op."""
        return "; ".join(r["message"] or r["outcome"] for r in self.of(op, check))


def walk(
    names: list[str],
    *,
    timeout: float,
    memory: float = 4.0,
    device: str = "cpu",
    good: str = "good",
    checks: tuple[str, ...] = (),
    large: bool = False,
) -> Walk:
    """Run the faults of some modules, and the good ops of another, through all checks, or those of some patterns."""
    command = [sys.executable, "-m", "tests.checks.planted", *names, f"--timeout={timeout}", f"--memory={memory}"]
    command += [f"--device={device}", f"--good={good}", *(f"--checks={pattern}" for pattern in checks)]
    command += ["--large"] if large else []
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Walk(**json.loads(done.stdout))


def disagreements(seen: Walk, module: str) -> list[str]:
    """Where what was found is not what the table of a module says, a line each."""
    lines = []
    for fault in (f for f in seen.faults if f["module"] == module and not f["unavailable"]):
        op, found = fault["op"], seen.noticed(fault["op"])
        expected = {fault["check"]: fault["outcome"], **fault["also"]}
        for check in sorted(expected.keys() | found.keys()):
            want, got = expected.get(check, "nothing"), found.get(check, "nothing")
            if want != got:
                said = f" and says: {seen.message(op, check)}" if seen.of(op, check) else ", and was not run"
                lines.append(f"{op} ({fault['about']}): {check} must find {want}, but finds {got}{said}")
    return lines


def _main() -> None:
    options.single_threaded()
    from opcheck_suite import engine, specs

    parser = argparse.ArgumentParser()
    parser.add_argument("modules", nargs="+")
    parser.add_argument("--timeout", type=float)
    parser.add_argument("--memory", type=float)
    parser.add_argument("--device")
    parser.add_argument("--good")
    parser.add_argument("--checks", action="append", default=[])
    parser.add_argument("--large", action="store_true")
    args = parser.parse_args()
    good = importlib.import_module(f"reference_ops.broken.{args.good}").GOOD
    faults = [
        (name, f) for name in args.modules for f in importlib.import_module(f"reference_ops.broken.{name}").FAULTS
    ]
    right = {id(spec): spec for spec in good.values()}
    entries = specs.entries([*(f.spec for _, f in faults), *right.values()])
    names = {id(entry.spec): entry.name for entry in entries}
    chosen = options.RunOptions(
        tier="full",
        jobs=1 if args.large else 2,
        timeout=args.timeout,
        memory=args.memory,
        device=args.device,
        checks=tuple(args.checks),
        large=args.large,
    ).validated()
    plan = engine.plan(specs.Loaded("planted faults", entries), chosen)
    report = engine.run(plan)
    table = [
        {
            "module": name,
            "op": names[id(f.spec)],
            "check": f.check,
            "outcome": f.outcome,
            "also": dict(f.also),
            "about": f.spec.about,
            "unavailable": dict(f.spec.unavailable),
        }
        for name, f in faults
    ]
    seen = Walk(
        faults=table,
        good={check: names[id(spec)] for check, spec in good.items()},
        units=[(u.op, u.check) for u in plan.units],
        results=[dataclasses.asdict(r) for r in report.results],
        seconds=report.seconds,
    )
    print(json.dumps(dataclasses.asdict(seen)))


if __name__ == "__main__":
    _main()
