"""Conformance levels: what an op may be used for, each as the set of checks that stand for it."""

from __future__ import annotations

import collections
import dataclasses
import enum
from collections.abc import Iterable, Mapping

from opcheck_suite.model import Outcome


class State(enum.StrEnum):
    """Whether an op has a level."""

    YES = "yes"
    """Something was run that could have failed, and nothing is wrong."""
    NO = "no"
    """A check found something, expected or not."""
    UNKNOWN = "unknown"
    """Nothing was run that could tell."""
    NOT_APPLICABLE = "n/a"
    """The level means nothing for the op, such as training for one without floating-point inputs."""


@dataclasses.dataclass(frozen=True)
class Level:
    """One level. Families are those of checks."""

    name: str
    title: str
    families: tuple[str, ...]
    """A finding of any of these takes the level away."""
    proof: tuple[str, ...]
    """Only a check of one of these that passed gives it."""
    above: tuple[str, ...] = ()
    """Levels without which an op cannot have this one."""


#: From the plainest on. Every family belongs to one level.
LEVELS = (
    Level("registered", "Registered as it should be", ("namespace", "deprecated", "registration"), ("registration",)),
    Level(
        "eager",
        "Right values on every layout, size and device",
        ("values", "schema", "dispatch", "device"),
        ("values",),
        ("registered",),
    ),
    Level(
        "compile",
        "Works with fake tensors and torch.compile",
        ("fake", "compile", "opcheck"),
        ("compile",),
        ("registered", "eager"),
    ),
    Level(
        "training",
        "Has right gradients, and can be transformed",
        ("autograd", "transform"),
        ("autograd",),
        ("registered", "eager"),
    ),
    Level("export", "Can be exported, saved and loaded", ("export",), ("export",), ("registered", "eager")),
)

_FOUND = (Outcome.FAIL, Outcome.XFAIL, Outcome.XPASS, Outcome.CRASH, Outcome.TIMEOUT)


def of_op(outcomes: Iterable[tuple[str, Outcome]]) -> dict[str, State]:
    """Level -> state for one op, from pairs of a check's id and an outcome.

    A failure that is expected is a failure here. An error says nothing of the op, and so neither gives nor takes.
    """
    by_family: dict[str, set[Outcome]] = collections.defaultdict(set)
    for check, outcome in outcomes:
        by_family[check.partition(".")[0]].add(outcome)
    states: dict[str, State] = {}
    for level in LEVELS:
        found = {outcome for family in level.families for outcome in by_family[family]}
        proof = {outcome for family in level.proof for outcome in by_family[family]}
        states[level.name] = _state(found, proof, [states[name] for name in level.above])
    return states


def _state(found: set[Outcome], proof: set[Outcome], above: list[State]) -> State:
    if found & set(_FOUND) or State.NO in above:
        return State.NO
    if proof and proof <= {Outcome.SKIP}:
        return State.NOT_APPLICABLE
    proven = Outcome.PASS in proof or Outcome.WARN in proof
    return State.YES if proven and not {State.UNKNOWN, State.NOT_APPLICABLE} & set(above) else State.UNKNOWN


def of_ops(results: Iterable[tuple[str, str, Outcome]]) -> dict[str, dict[str, State]]:
    """Op -> its levels, from triples of op, check and outcome."""
    by_op: dict[str, list[tuple[str, Outcome]]] = collections.defaultdict(list)
    for op, check, outcome in results:
        by_op[op].append((check, outcome))
    return {op: of_op(outcomes) for op, outcomes in by_op.items()}


def counts(states: Mapping[str, Mapping[str, State]]) -> dict[str, int]:
    """Level -> how many ops have it."""
    return {level.name: sum(s[level.name] is State.YES for s in states.values()) for level in LEVELS}
