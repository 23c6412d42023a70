"""The options of a run, declared once for the command line and for pytest."""

from __future__ import annotations

import dataclasses
import os
import re
from typing import Any

from opcheck_suite.model import Tier
from opcheck_suite.registry import UsageError, one_of

#: What ``large`` adds to the limit on memory. values.large takes no more than most of what is free.
_LARGE_GIB = 32

CAPABILITIES = ("native", "cuda", "triton")


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """How a run is made. Every field is an option of the same name on the command line and, prefixed, in pytest."""

    ops: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    sample: tuple[str, ...] = ()
    device: str = "cpu"
    tier: str = "standard"
    jobs: int = 1
    timeout: float = 120.0
    memory: float = 4.0
    isolate: str = "auto"
    require: tuple[str, ...] = ()
    strict: bool = False
    seed: int = 0
    large: bool = False
    shard: str = ""
    durations: str = ""

    def validated(self) -> RunOptions:
        """The options, if they make sense. Raises UsageError, with the nearest value, if not."""
        one_of("tier", self.tier, [t.value for t in Tier])
        one_of("isolate", self.isolate, ["auto", "always", "never"])
        for capability in self.require:
            one_of("require", capability, CAPABILITIES)
        if self.jobs < 1:
            raise UsageError(f"jobs must be at least 1, got {self.jobs}")
        if self.timeout < 0 or self.memory < 0:
            raise UsageError("timeout and memory must not be negative; 0 means no limit")
        if self.shard:
            shard_of(self.shard)
        elif self.durations:
            raise UsageError("--durations balances shards, and no --shard is given")
        return self

    @property
    def memory_limit(self) -> int:
        """Bytes of memory that an op's process may take, of which large tensors take the most; 0 is no limit."""
        return int((self.memory + _LARGE_GIB * self.large) * 2**30) if self.memory else 0

    def as_dict(self) -> dict[str, Any]:
        """The options as plain values, for reports."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(self).items()}


def shard_of(text: str) -> tuple[int, int]:
    """Number and count of a shard ``i/n``, counted from 1. Raises UsageError for what is none."""
    found = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(f"shard {text!r} must be i/n with i from 1 to n, such as 1/4")
    return int(found[1]), int(found[2])


@dataclasses.dataclass(frozen=True)
class Declaration:
    """One option as both doors offer it."""

    field: str
    help: str
    metavar: str = ""
    kind: type = str
    short: str = ""
    many: bool = False
    flag: bool = False


DECLARATIONS = (
    Declaration("ops", "only ops that match a glob or lie in a namespace; may be repeated", "PATTERN", many=True),
    Declaration(
        "checks", "only these checks: ids, families or globs, '!' takes away; may be repeated", "PATTERN", many=True
    ),
    Declaration(
        "sample", "only samples of that name, or whose name matches a glob; may be repeated", "NAME", many=True
    ),
    Declaration("device", "cpu, cuda, another device type, several with commas, or auto for what is there", "DEVICE"),
    Declaration("tier", "how much to run: static, quick, standard or full", "TIER"),
    Declaration("jobs", "how many ops to check at once", "N", kind=int, short="-j"),
    Declaration(
        "timeout",
        "seconds that one step of a check may take before its process is killed; 0 is no limit",
        "SECONDS",
        kind=float,
    ),
    Declaration(
        "memory", "GiB of memory that an op's process may take before it is killed; 0 is no limit", "GIB", kind=float
    ),
    Declaration("isolate", "auto and always run ops in child processes; never is for debuggers", "WHEN"),
    Declaration(
        "require", f"make it an error if a capability is missing: {', '.join(CAPABILITIES)}", "CAPABILITY", many=True
    ),
    Declaration("strict", "count warnings and checks that nothing exercised as bad", flag=True),
    Declaration("seed", "seed that is set before every call of an op", "N", kind=int),
    Declaration(
        "large", "also call ops on tensors of more than 2**31 elements: gigabytes of memory, seconds an op", flag=True
    ),
    Declaration("shard", "only part i of n of the ops; opcheck merge puts the reports of all together", "I/N"),
    Declaration("durations", "balance shards by the seconds in this JSON report, such as the last run's", "PATH"),
)


def add_to_parser(parser: Any) -> None:
    """Declare the options on an argparse parser."""
    defaults = RunOptions()
    for d in DECLARATIONS:
        names = [name for name in (d.short, f"--{d.field}") if name]
        if d.flag:
            parser.add_argument(*names, action="store_true", help=d.help)
        elif d.many:
            parser.add_argument(*names, action="append", default=[], metavar=d.metavar, help=d.help)
        else:
            default = getattr(defaults, d.field)
            told = f"{d.help} (default: {default})" if default != "" else d.help
            parser.add_argument(*names, type=d.kind, default=default, metavar=d.metavar, help=told)


def add_to_pytest(group: Any) -> None:
    """Declare the options, prefixed with ``--opcheck-``, on a pytest option group."""
    for d in DECLARATIONS:
        if d.field == "jobs":  # pytest-xdist's -n is how pytest runs in parallel
            continue
        name, dest = f"--opcheck-{d.field}", f"opcheck_{d.field}"
        if d.flag:
            group.addoption(name, dest=dest, action="store_true", help=d.help)
        elif d.many:
            group.addoption(name, dest=dest, action="append", default=[], metavar=d.metavar, help=d.help)
        else:
            group.addoption(name, dest=dest, type=d.kind, default=None, metavar=d.metavar, help=d.help)


def from_namespace(values: Any, *, prefix: str = "") -> RunOptions:
    """Options from what argparse or pytest parsed; what was not given keeps its default."""
    given: dict[str, Any] = {}
    for d in DECLARATIONS:
        value = getattr(values, prefix + d.field, None)
        if value is not None:
            given[d.field] = tuple(value) if d.many else value
    return RunOptions(**given).validated()


def single_threaded() -> None:
    """Keep torch's thread pools at one thread, here and in children. Call it before torch is imported.

    A process that forks must not have used a pool of threads, and changing their number afterwards makes children
    abort.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("MKL_NUM_THREADS", "1")
