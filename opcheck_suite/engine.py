"""Plan a run (specs x checks x devices -> units) and carry it out (units -> results).

Every planned unit yields at least one result, whatever the op does to its process.
"""

from __future__ import annotations

import collections
import dataclasses
import select
import time
from collections.abc import Callable, Iterable, Iterator

from opcheck_suite import compiling, isolate, known, provenance, registry, sharding, specs
from opcheck_suite import devices as machine
from opcheck_suite.jobs import Job
from opcheck_suite.known import KnownFailure
from opcheck_suite.model import Report, Result, Tier, Unit
from opcheck_suite.options import RunOptions
from opcheck_suite.registry import UsageError, did_you_mean
from opcheck_suite.results import expect, inline, judged, of_row, unavailable
from opcheck_suite.session import Session

#: Called with every result as it comes in, and with the unit that it belongs to when that unit is finished.
Listener = Callable[[Result | Unit], None]


@dataclasses.dataclass(frozen=True)
class Plan:
    """What will be run."""

    source: str
    units: tuple[Unit, ...]
    entries: dict[str, specs.Entry]
    options: RunOptions
    devices: tuple[str, ...]
    ops: tuple[str, ...] = ()
    """All ops of the specs, also those that the options leave out."""
    known: tuple[KnownFailure, ...] = ()
    known_file: str = ""


def plan(
    loaded: specs.Loaded, options: RunOptions, *, devices: tuple[str, ...] | None = None, known_file: str = ""
) -> Plan:
    """Specs, checks and devices -> units, in the order in which they run.

    ``devices`` replaces those of the options, for plans that run no kernel and so need no device. ``known_file`` lists
    known failures.

    Raises UsageError when a pattern matches nothing or nothing at all would be run.
    """
    tier = Tier(options.tier)
    chosen = _select_ops(loaded.entries, options.ops)
    if options.shard:
        seconds = sharding.durations(options.durations) if options.durations else {}
        part = sharding.choose((e.name for e in chosen), options.shard, seconds)
        chosen = [e for e in chosen if e.name in part]
    checks = registry.select(options.checks, tier=tier, also=("values.large",) if options.large else ())
    if not checks:
        raise UsageError("no check is left to run: --checks takes them all away")
    checks = registry.prerequisites(checks)
    names = machine.select(options.device) if devices is None else devices
    units = []
    for entry in chosen:
        unknown = [id for id in entry.spec.expected_failures if id not in {c.id for c in registry.all_checks()}]
        if unknown:
            near = did_you_mean(unknown[0], (c.id for c in registry.all_checks()))
            raise UsageError(f"{entry.name}: expected_failures names an unknown check {unknown[0]!r}{near}")
        inline(entry)
        for device in names:
            for dtype in entry.spec.dtypes or (None,):
                text = str(dtype).removeprefix("torch.") if dtype is not None else ""
                units += [Unit(entry.name, c.id, device, text) for c in checks]
    listed = known.load(known_file) if known_file else ()
    named = tuple(e.name for e in loaded.entries)
    return Plan(loaded.source, tuple(units), {e.name: e for e in chosen}, options, names, named, listed, known_file)


def _select_ops(entries: Iterable[specs.Entry], patterns: tuple[str, ...]) -> list[specs.Entry]:
    import fnmatch

    entries = list(entries)
    chosen = set()
    for pattern in patterns:
        hit = {e.name for e in entries if fnmatch.fnmatchcase(e.name, pattern) or e.name.partition("::")[0] == pattern}
        if not hit:
            raise UsageError(
                f"no op in the selection matches {pattern!r}{did_you_mean(pattern, (e.name for e in entries))}"
            )
        chosen |= hit
    return [e for e in entries if not patterns or e.name in chosen]


def preflight(plan: Plan) -> None:
    """Make every spec's samples once, in a child, so that a sample that does not fit its schema is told before the run.

    Raises UsageError for the first that does not, and where none has a name that was asked for. What dies or raises
    otherwise is left to the run to report.
    """
    only = plan.options.sample

    def serve(_: isolate.Commands, send: isolate.Send) -> None:
        names: dict[str, None] = {}
        for entry, device, dtype in sorted({(u.op, u.device, u.dtype) for u in plan.units}):
            if plan.entries[entry].info is None:  # unavailable, and the run says why
                continue
            try:
                session = Session(plan.entries[entry], seed=plan.options.seed, tier=Tier(plan.options.tier))
                names |= dict.fromkeys(case.sample for case in session.context(device, dtype).samples)
            except UsageError as error:
                send({"misfit": str(error)})
                return
            except specs.SpecError:
                continue
        for wanted in only:
            if names and not any(specs.chosen(name, [wanted]) for name in names):
                send({"misfit": f"no sample is called {wanted!r}{did_you_mean(wanted, names)}"})

    if not isolate.available() or plan.options.isolate == "never":
        return
    child = isolate.Child(serve, memory_limit=0)
    try:
        while (event := child.receive(timeout=plan.options.timeout or 600)) is not None:
            if "misfit" in event:
                raise UsageError(event["misfit"])
    except EOFError:
        pass
    finally:
        child.kill()


class Stopped(KeyboardInterrupt):
    """A run was interrupted; ``report`` holds what it had found, and says that it is incomplete."""

    def __init__(self, report: Report) -> None:
        super().__init__(report.stopped)
        self.report = report


def run(plan: Plan, *, listener: Listener = lambda _: None) -> Report:
    """Carry out a plan. Children that are running are ended when this is interrupted, and `Stopped` is raised."""
    start = time.perf_counter()
    results: dict[Unit, list[Result]] = collections.defaultdict(list)
    done, stopped = 0, ""
    with Runner(plan) as runner:
        try:
            for event in runner.run(plan.units):
                if isinstance(event, Result):
                    results[event.unit].append(event)
                else:
                    done += 1
                listener(event)
        except KeyboardInterrupt as interrupt:
            stopped = f"{str(interrupt) or 'interrupted'} after {done} of {len(plan.units)} checks"
    ordered = [r for unit in plan.units for r in results[unit]]
    found = report(plan, ordered, seconds=time.perf_counter() - start, stopped=stopped)
    found = judged(found, plan.known, plan.entries, plan.options, named=plan.ops, planned=plan.units)
    if stopped:
        raise Stopped(found)
    return found


def report(plan: Plan, results: Iterable[Result], *, seconds: float, stopped: str = "") -> Report:
    """Results with the environment and options they were made in; ``stopped`` says why they are not all."""
    return Report(
        results=tuple(results),
        environment=provenance.environment(plan.devices, plan.source, plan.entries),
        options=plan.options.as_dict()
        | {"source": plan.source}
        | ({"known": plan.known_file} if plan.known_file else {}),
        ops={name: entry.spec.about for name, entry in plan.entries.items()},
        seconds=seconds,
        stopped=stopped,
    )


class Runner:
    """Runs units, each op in a child of its own that lives until the op's last unit is done."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.isolated = plan.options.isolate != "never" and isolate.available()
        self._jobs: dict[str, Job] = {}
        self._sessions: dict[str, Session] = {}

        tiers = {registry.get(u.check).tier for u in plan.units}
        if tiers - {Tier.STATIC}:  # once here, not in every child
            compiling.prepare(compiler=bool(tiers - {Tier.STATIC, Tier.QUICK}))

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *exc: object) -> None:
        for job in self._jobs.values():
            job.kill()

    def run(self, units: Iterable[Unit]) -> Iterator[Result | Unit]:
        """The results of units as they come, and each unit after its last result."""
        by_op: dict[str, list[Unit]] = collections.defaultdict(list)
        for unit in units:
            by_op[unit.op].append(unit)
        waiting = collections.deque(by_op.items())
        live: list[Job] = []
        while waiting or live:
            while waiting and len(live) < self.plan.options.jobs:
                name, queue = waiting.popleft()
                if (ready := self._without_child(name, queue)) is not None:
                    yield from ready
                    continue
                live.append(self._job(name, queue))
            for job in self._ready(live):
                yield from job.step()
                if job.idle:
                    live.remove(job)
                    self._jobs.pop(job.entry.name).close()

    def run_unit(self, unit: Unit) -> list[Result]:
        """The results of one unit. The op's child is kept for the next unit of the same op."""
        for name in [n for n in self._jobs if n != unit.op]:
            self._jobs.pop(name).close()
        if (ready := self._without_child(unit.op, [unit])) is not None:
            return [event for event in ready if isinstance(event, Result)]
        job = self._job(unit.op, [unit])
        found: list[Result] = []
        while not job.idle:
            for ready_job in self._ready([job]):
                found += [event for event in ready_job.step() if isinstance(event, Result)]
        return found

    def _job(self, name: str, queue: list[Unit]) -> Job:
        job = self._jobs.get(name)
        if job is None:
            job = self._jobs[name] = Job(self.plan.entries[name], self.plan.options, self.plan.known)
        job.add(queue)
        return job

    def _ready(self, live: list[Job]) -> list[Job]:
        """The jobs with something to read, after at most 50 ms, and those whose child has just been killed."""
        if not live:
            return []
        fds = {job.child.fileno(): job for job in live if job.child is not None}
        readable, _, _ = select.select(list(fds), [], [], 0.05)
        for job in live:
            job.check_limits()
        return [fds[fd] for fd in readable] or [job for job in live if job.gone()]

    def _without_child(self, name: str, queue: list[Unit]) -> list[Result | Unit] | None:
        """The results of units that need no child, or None."""
        entry = self.plan.entries[name]
        if entry.info is None:
            missing: list[Result | Unit] = []
            for unit in queue:
                missing += [*unavailable(entry, unit, self.plan.options), unit]
            return missing
        if self.isolated:
            return None
        if name not in self._sessions:
            chosen = self.plan.options
            self._sessions[name] = Session(
                entry, seed=chosen.seed, tier=Tier(chosen.tier), only=chosen.sample, large=chosen.large
            )
        events: list[Result | Unit] = []
        for unit in queue:
            rows = [of_row(unit, row) for row in self._sessions[name].run(unit)]
            events += [*expect(entry, rows, chosen, self.plan.known), unit]
        return events
