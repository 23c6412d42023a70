"""Conformance levels follow from the outcomes of checks."""

from __future__ import annotations

import pytest

from opcheck_suite import Outcome
from opcheck_suite.model import FAMILIES
from opcheck_suite.reports import levels

GOOD = [
    ("registration.fake", "pass"),
    ("values.runs", "pass"),
    ("fake.runs", "pass"),
    ("compile.parity", "pass"),
    ("autograd.gradcheck", "pass"),
    ("export.program", "pass"),
]


def states(*changes: tuple[str, str]) -> str:
    """One word a level, from good outcomes with some changed or, with an empty outcome, left out."""
    chosen = dict(GOOD) | dict(changes)
    found = levels.of_op((check, Outcome(outcome)) for check, outcome in chosen.items() if outcome)
    return " ".join(found.values())


def test_every_family_belongs_to_one_level():
    assert sorted(f for level in levels.LEVELS for f in level.families) == sorted(FAMILIES)
    assert all(set(level.proof) <= set(level.families) for level in levels.LEVELS)
    names = [level.name for level in levels.LEVELS]
    assert all(names.index(a) < n for n, level in enumerate(levels.LEVELS) for a in level.above)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([], "yes yes yes yes yes"),
        ([("compile.parity", "fail")], "yes yes no yes yes"),
        ([("fake.strides", "xfail")], "yes yes no yes yes"),
        ([("values.empty", "crash")], "yes no no no no"),
        ([("registration.kernel", "fail")], "no no no no no"),
        ([("values.empty", "warn")], "yes yes yes yes yes"),
        ([("autograd.gradcheck", "skip")], "yes yes yes n/a yes"),
        ([("autograd.gradcheck", "not_exercised")], "yes yes yes unknown yes"),
        # a fake kernel alone does not show that anything compiles
        ([("compile.parity", "")], "yes yes unknown yes yes"),
        ([("values.runs", "not_exercised")], "yes unknown unknown unknown unknown"),
        ([("compile.parity", "error")], "yes yes unknown yes yes"),
        ([("values.runs", "error"), ("values.dtypes", "pass")], "yes yes yes yes yes"),
    ],
)
def test_levels(changes, expected):
    assert states(*changes) == expected


def test_levels_are_counted_over_ops():
    found = levels.of_ops([("a::b", c, Outcome(o)) for c, o in GOOD] + [("a::c", "values.runs", Outcome.FAIL)])
    assert levels.counts(found) == {"registered": 1, "eager": 1, "compile": 1, "training": 1, "export": 1}
    assert found["a::c"]["eager"] is levels.State.NO
