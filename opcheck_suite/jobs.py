"""The units of one op, run in a child process that may die of them: what died of what, and what is done again."""

from __future__ import annotations

import collections
import dataclasses
import os
import time
from collections.abc import Iterable, Iterator
from typing import Any

from opcheck_suite import isolate, reduction, registry, specs
from opcheck_suite.known import KnownFailure
from opcheck_suite.model import Outcome, Result, Tier, Unit
from opcheck_suite.options import RunOptions
from opcheck_suite.results import expect, of_row
from opcheck_suite.session import Row, Session

#: What a child announces before it takes a step -> what reports call the step when the child dies of it.
_STEPS = {
    "eager": "the op, called",
    "fake": "the op, called with fake tensors,",
    "queued": "the op, called on another device or stream",
    "captured": "the op, captured into a graph and replayed",
    "large": "the op, called on more than 2**31 elements",
    "threads": "the op, called from several threads at once",
    "many calls": "the op, called again and again",
}

#: After so many deaths within one unit its remaining samples are given up.
MOST_DEATHS = 8


@dataclasses.dataclass(frozen=True)
class _Deadly:
    """An input that ended a child: the check that reports it, what other checks say of it, and the row."""

    owner: str
    how: str
    row: Row


class Job:
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
            limit = self._options.memory_limit
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
            self.entry,
            seed=chosen.seed,
            tier=tier,
            only=chosen.sample,
            announce=announce,
            lost=lost,
            shrink=True,
            large=chosen.large,
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
        if not self._broken and self._once_more(unit, what, death):
            self._command()
            return
        self._deaths += 1
        if self._broken:
            text = f"the harness itself failed in {unit.check}, which says nothing of the op"
            self._record(unit, Row(sample, Outcome.ERROR, text, detail=self._broken))
            self._broken = ""
            yield from self._finish()
            return
        if what in ("", "samples") and self._last_call and not self._fresh and self._deaths < MOST_DEATHS:
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
        last = self._deaths >= MOST_DEATHS
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
