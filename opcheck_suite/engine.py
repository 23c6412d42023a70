"""Plan a run (specs x checks x devices -> units) and carry it out (units -> results).

Every planned unit yields at least one result, whatever the op does to its process.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import select
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from opcheck_suite import compiling, isolate, known, provenance, reduction, registry, sharding, specs
from opcheck_suite import devices as machine
from opcheck_suite.known import KnownFailure
from opcheck_suite.model import Outcome, Report, Result, Tier, Unit
from opcheck_suite.options import RunOptions
from opcheck_suite.registry import UsageError, did_you_mean
from opcheck_suite.results import expect, inline, judged, of_row, unavailable
from opcheck_suite.session import Row, Session

#: Called with every result as it comes in, and with the unit that it belongs to when that unit is finished.
Listener = Callable[[Result | Unit], None]

#: What a child announces before it takes a step -> what reports call the step when the child dies of it.
_STEPS = {
    "eager": "the op, called",
    "fake": "the op, called with fake tensors,",
    "queued": "the op, called on another device or stream",
    "threads": "the op, called from several threads at once",
    "many calls": "the op, called again and again",
}

#: After so many deaths within one unit its remaining samples are given up.
_MOST_DEATHS = 8


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
    checks = registry.select(options.checks, tier=tier)
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
    found = judged(found, plan.known, named=plan.ops, planned=plan.units)
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
        self._jobs: dict[str, _Job] = {}
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
        live: list[_Job] = []
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

    def _job(self, name: str, queue: list[Unit]) -> _Job:
        job = self._jobs.get(name)
        if job is None:
            job = self._jobs[name] = _Job(self.plan.entries[name], self.plan.options, self.plan.known)
        job.add(queue)
        return job

    def _ready(self, live: list[_Job]) -> list[_Job]:
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
            self._sessions[name] = Session(entry, seed=chosen.seed, tier=Tier(chosen.tier), only=chosen.sample)
        events: list[Result | Unit] = []
        for unit in queue:
            rows = [of_row(unit, row) for row in self._sessions[name].run(unit)]
            events += [*expect(entry, rows, chosen, self.plan.known), unit]
        return events


@dataclasses.dataclass(frozen=True)
class _Deadly:
    """An input that ended a child: the check that reports it, what other checks say of it, and the row."""

    owner: str
    how: str
    row: Row


class _Job:
    """The units of one op, and the child that runs them now."""

    def __init__(self, entry: specs.Entry, options: RunOptions, listed: tuple[KnownFailure, ...] = ()) -> None:
        self.entry = entry
        self.child: isolate.Child | None = None
        self._options = options
        self._known = listed
        self._queue: collections.deque[Unit] = collections.deque()
        self._results: list[Result] = []
        self._done: set[str] = set()
        self._survived: set[Unit] = set()
        self._deadly: dict[tuple[str, str], dict[str, _Deadly]] = collections.defaultdict(dict)
        self._again: set[tuple[Unit, str]] = set()
        self._threaded = ""
        self._deaths = 0
        self._at: tuple[str, str, str, str] = ("", "", "", "")
        self._last_call = ""
        self._doubtful = ""
        self._fresh, self._broken, self._lost = True, "", ""
        self._step_started = time.perf_counter()

    def add(self, units: Iterable[Unit]) -> None:
        """Queue units, and start on them if nothing is under way."""
        was_idle = self.idle
        self._queue.extend(units)
        if was_idle and self._queue:
            self._begin()

    @property
    def idle(self) -> bool:
        """Whether nothing is left to do."""
        return not self._queue

    def _begin(self) -> None:
        self._results, self._done, self._deaths = [], set(), 0
        unit = self._queue[0]
        for met in self._deadly[unit.device, unit.dtype].values():
            if met.owner == unit.check and met.row.sample not in self._done:
                self._record(unit, met.row)  # another check met it first: units come in any order from pytest
        self._command()

    def _command(self) -> None:
        if self.child is None:
            limit = int(self._options.memory * 2**30)
            self.child = isolate.Child(self._serve, memory_limit=limit)
            self._last_call, self._doubtful, self._fresh = "", "", True
        self._at, self._threaded = ("", "", "", ""), ""
        self._step_started = time.perf_counter()
        unit = self._queue[0]
        deadly = {key: met.how for key, met in self._deadly[unit.device, unit.dtype].items()}
        deadly |= {f"threads:{key}": "it ended the process once" for met, key in self._again if key and met == unit}
        self.child.send({"unit": dataclasses.asdict(unit), "done": sorted(self._done), "deadly": deadly})

    def _serve(self, commands: isolate.Commands, send: isolate.Send) -> None:
        """Runs in the child."""
        chosen, tier = self._options, Tier(self._options.tier)

        def announce(*at: str) -> None:
            send({"at": at})

        def lost(text: str) -> None:  # nothing can be done with the device from here on
            send({"lost": text})
            os._exit(1)

        session = Session(
            self.entry, seed=chosen.seed, tier=tier, only=chosen.sample, announce=announce, lost=lost, shrink=True
        )
        for command in commands:
            unit, done, deadly = Unit(**command["unit"]), frozenset(command["done"]), command["deadly"]
            if smaller := session.smaller_death(unit, done, deadly):
                send({"smaller": smaller})
            for row in session.run(unit, done=done, deadly=deadly):
                send({"row": dataclasses.asdict(row)})
            send({"end": True})

    def step(self) -> Iterator[Result | Unit]:
        """Take in what the child has said, or that it is gone."""
        assert self.child is not None
        try:
            while not self.idle and (event := self.child.receive(timeout=0)) is not None:
                yield from self._take(event)
        except EOFError:
            death = self.child.bury()
            self.child = None
            yield from self._after(death)

    def _take(self, event: dict[str, Any]) -> Iterator[Result | Unit]:
        if "at" in event:
            self._at = tuple(event["at"])
            what, key, group, call = self._at
            self._threaded = key if what == "threads" else self._threaded
            self._last_call = call or self._last_call
            self._doubtful = call if what == "eager" and group.endswith("?") else self._doubtful
        elif "smaller" in event:
            self._results = [reduction.of_death(r, *event["smaller"]) for r in self._results]
        elif "broken" in event:
            self._broken = event["broken"]
        elif "lost" in event:
            self._lost = event["lost"]
        elif "row" in event:
            row = Row(**event["row"] | {"outcome": Outcome(event["row"]["outcome"])})
            self._results.append(of_row(self._queue[0], row))
            self._done.add(row.sample)
            self._step_started = time.perf_counter()
        else:
            yield from self._finish()

    def _finish(self) -> Iterator[Result | Unit]:
        unit = self._queue.popleft()
        self._fresh = False
        if self._threaded:
            self.close()  # what races did to the interpreter itself is no matter of the checks that follow
        if not any(r.outcome in (Outcome.CRASH, Outcome.TIMEOUT) for r in self._results):
            self._survived.add(unit)
        yield from expect(self.entry, self._results, self._options, self._known)
        yield unit
        if self._queue:
            self._begin()

    def _after(self, death: isolate.Death) -> Iterator[Result | Unit]:
        """Report the death where it belongs, and go on with what the child had left to do."""
        unit = self._queue[0]
        if self._lost:
            death = dataclasses.replace(death, how=f"the device is lost: {self._lost}")
            self._lost = ""
        what, key, group, call = self._at
        uncertain = group.endswith("?")
        group = group.rstrip("?")
        sample, _, variant = key.partition("|")
        if self._once_more(unit, what, death):
            self._command()
            return
        self._deaths += 1
        if self._broken:
            text = f"the harness itself failed in {unit.check}, which says nothing of the op"
            self._record(unit, Row(sample, Outcome.ERROR, text, detail=self._broken))
            self._broken = ""
            yield from self._finish()
            return
        if what in ("", "samples") and self._last_call and not self._fresh and self._deaths < _MOST_DEATHS:
            self._results.append(of_row(unit, self._late(death)))
            self._command()
            return
        if what in ("", "samples"):
            text = f"the process ended while the samples were made: {death.how}"
            self._record(unit, Row("", Outcome.ERROR, text, detail=death.output))
            yield from self._finish()
            return
        label = f"{sample}, {variant}" if variant else sample
        outcome = Outcome.TIMEOUT if death.timed_out else Outcome.CRASH
        if uncertain and what == "eager":
            outcome = Outcome.WARN
        text = f"{_STEPS.get(what, 'the process, at work')} on {label}: {death.how}"
        if outcome is Outcome.WARN:
            text += "; if the op relies on what was changed, it should refuse other calls with TORCH_CHECK"
        last = self._deaths >= _MOST_DEATHS
        if last:
            text += f"; after {self._deaths} such ends the check's other samples are given up"
        text += f"\ninput   {label}" if variant and call else ""
        text += f"\ncall    {call}" if call else ""
        if what == "check" and death.by_signal and self._doubtful:
            outcome = Outcome.WARN
            text += f"\nan earlier call may have written beyond an argument: {self._doubtful}"
        row = Row(sample, outcome, text, time.perf_counter() - self._step_started, 1, death.output)
        owner = registry.owner(what, group) if what in ("eager", "fake") else unit.check
        # where the owner is through with the op and met no death, this check is the one to tell
        here = owner == unit.check or dataclasses.replace(unit, check=owner) in self._survived
        if what in ("eager", "fake"):
            how = f"it ends the process ({death.how}): see {unit.check if here else owner}"
            self._deadly[unit.device, unit.dtype][f"{what}:{key}"] = _Deadly(owner, how, row)
        if here or last:
            self._record(unit, row)
        if last:
            yield from self._finish()
        else:
            self._command()

    def _once_more(self, unit: Unit, what: str, death: isolate.Death) -> bool:
        """Whether to see in a fresh child if the death comes back, as it may have been no fault of the step under way.

        Threads trip over races of Python and torch, too; the second time, Python does not trace them. And a call that
        may have been invalid, made for an earlier check, can have damaged memory.
        """
        key = self._threaded
        doubted = what == "check" and death.by_signal and self._doubtful
        if not (key or doubted) or (unit, key) in self._again:
            return False
        self._again.add((unit, key))
        return True

    def _late(self, death: isolate.Death) -> Row:
        """The row for a process that dies between two checks: an earlier call has damaged its memory."""
        text = f"the process ended before the check began: {death.how}"
        if death.by_signal:
            text += "; an earlier call has damaged its memory"
        outcome = Outcome.TIMEOUT if death.timed_out else Outcome.WARN if self._doubtful else Outcome.CRASH
        call = self._doubtful or self._last_call
        return Row("", outcome, f"{text}\ncall    {call}", time.perf_counter() - self._step_started, 1, death.output)

    def _record(self, unit: Unit, row: Row) -> None:
        self._results.append(of_row(unit, row))
        self._done.add(row.sample)

    def check_limits(self) -> None:
        """Kill the child if it exceeds the limits of the run."""
        if self.child is not None:
            self.child.check_limits(timeout=self._options.timeout)

    def gone(self) -> bool:
        """Whether the child has ended without its pipe having closed."""
        return self.child is not None and self.child.gone()

    def close(self) -> None:
        """End the child in an orderly way."""
        if self.child is not None:
            self.child.close()
            self.child = None

    def kill(self) -> None:
        """End the child at once."""
        if self.child is not None:
            self.child.kill()
            self.child = None
