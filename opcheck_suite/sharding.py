"""Split a run over several jobs: each op belongs to one shard, and every job finds out which by itself."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping

from opcheck_suite.options import shard_of
from opcheck_suite.registry import UsageError


def choose(ops: Iterable[str], shard: str, seconds: Mapping[str, float]) -> set[str]:
    """The ops of shard ``i/n``, so that shards take about the same time.

    An op is never split, since its checks share a process and what they have computed. ``seconds`` says how long ops
    took the last time; those that it lacks are taken to be average. The longest op goes first, each to the shard that
    has least to do so far.

    Raises UsageError when there are fewer ops than shards: a job that runs nothing must not look like one that is
    clean.
    """
    number, count = shard_of(shard)
    names = list(dict.fromkeys(ops))
    if number > len(names):
        raise UsageError(f"shard {shard} is empty: there are only {len(names)} ops")
    usual = statistics.fmean(seconds.values()) if seconds else 1.0
    costs = {name: max(seconds.get(name, usual), 1e-3) for name in names}
    loads = [0.0] * count
    chosen: list[set[str]] = [set() for _ in range(count)]
    for name in sorted(names, key=lambda n: (-costs[n], n)):
        least = min(range(count), key=lambda i: (loads[i], len(chosen[i]), i))
        loads[least] += costs[name]
        chosen[least].add(name)
    return chosen[number - 1]


def durations(path: str) -> dict[str, float]:
    """Op -> seconds that its checks took, from a JSON report, also of an incomplete run. Raises UsageError without."""
    found: dict[str, float] = {}
    try:
        with open(path, encoding="utf-8") as file:
            for row in json.load(file)["results"]:
                if not math.isfinite(seconds := float(row["seconds"])):
                    raise ValueError(f"{seconds} seconds")
                found[str(row["op"])] = found.get(str(row["op"]), 0.0) + seconds
    except OSError as error:
        raise UsageError(f"--durations {path!r} cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise UsageError(f"--durations {path!r} is no report: {type(error).__name__}: {error}") from error
    return found
