"""What a person sees while a run is under way: a bar on a terminal, a line for each op elsewhere. On stderr."""

from __future__ import annotations

import collections
import sys
import time
from collections.abc import Sequence
from typing import Any

import tqdm

from opcheck_suite.model import Outcome, Result, Unit


class Progress:
    """A listener of `engine.run`."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self._left = collections.Counter(unit.op for unit in units)
        self._ops = len(self._left)
        self._bad: collections.Counter[str] = collections.Counter()
        self._ran: set[str] = set()
        self._started: dict[str, float] = {}
        self._total = len(units)
        self._terminal = sys.stderr.isatty()
        self._bar: tqdm.tqdm[Any] | None = None

    def __enter__(self) -> Progress:
        if self._terminal:
            self._bar = tqdm.tqdm(total=self._total, unit="check", file=sys.stderr, leave=False, dynamic_ncols=True)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, event: Result | Unit) -> None:
        """Take in a result, or that a unit is finished."""
        self._started.setdefault(event.op, time.perf_counter())
        if isinstance(event, Result):
            self._bad[event.op] += event.outcome.bad
            if event.outcome not in (Outcome.SKIP, Outcome.NOT_EXERCISED):
                self._ran.add(event.op)
            return
        self._left[event.op] -= 1
        if self._bar is not None:
            self._bar.set_postfix_str(f"{event.op} {sum(self._bad.values())} bad", refresh=False)
            self._bar.update()
        elif not self._left[event.op]:
            done = sum(not n for n in self._left.values())
            seconds = time.perf_counter() - self._started[event.op]
            ran = "ok" if event.op in self._ran else "nothing ran"
            verdict = f"{self._bad[event.op]} bad" if self._bad[event.op] else ran
            print(f"[{done}/{self._ops}] {event.op} {verdict} {seconds:.1f} s", file=sys.stderr, flush=True)
