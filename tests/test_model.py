"""The central types."""

from __future__ import annotations

import dataclasses

import pytest

from opcheck_suite import ConformanceError, Outcome, Report, Result, Tier
from opcheck_suite.model import SEVERITY, Unit, worst

BAD = {"fail", "xpass", "error", "crash", "timeout"}


def _report(*outcomes: str, **options) -> Report:
    environment = {"opcheck_suite": "0", "torch": "2", "python": "3", "device": "cpu"}
    results = tuple(Result("a::b", "values.runs", "cpu", f"s{n}", Outcome(o)) for n, o in enumerate(outcomes))
    return Report(results, environment, options)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_what_counts_as_bad(outcome):
    assert outcome.bad == (outcome.value in BAD)
    assert outcome.strict_bad == (outcome.value in BAD | {"warn", "not_exercised"})
    assert _report(outcome).ok == (not outcome.bad)
    assert _report(outcome, strict=True).ok == (not outcome.strict_bad)


def test_every_outcome_has_its_place_in_severity():
    assert set(SEVERITY) == set(Outcome)
    assert len(SEVERITY) == len(Outcome)


def test_the_worst_of_some_outcomes():
    assert worst([Outcome.SKIP, Outcome.PASS]) is Outcome.PASS
    assert worst([Outcome.PASS, Outcome.WARN, Outcome.PASS]) is Outcome.WARN
    assert worst([Outcome.CRASH, Outcome.FAIL]) is Outcome.CRASH
    assert all(worst([bad, Outcome.PASS]) is bad for bad in Outcome if bad.bad)
    with pytest.raises(ValueError):
        worst([])


def test_each_tier_includes_the_ones_before():
    assert [[a.includes(b) for b in Tier] for a in Tier] == [
        [True, False, False, False],
        [True, True, False, False],
        [True, True, True, False],
        [True, True, True, True],
    ]


def test_nothing_run_is_not_ok():
    assert not _report().ok
    with pytest.raises(ConformanceError, match="nothing was run"):
        _report().raise_if_bad()


def test_raising_if_bad():
    _report("pass", "skip").raise_if_bad()
    with pytest.raises(ConformanceError, match="1 bad"):
        _report("pass", "fail").raise_if_bad()
    assert issubclass(ConformanceError, AssertionError)


def test_a_unit_as_text_and_as_the_id_of_a_test():
    assert str(Unit("a::b", "fake.runs", "cpu")) == "a::b fake.runs cpu"
    assert str(Unit("a::b", "fake.runs", "cuda", "float16")) == "a::b fake.runs cuda/float16"
    assert Unit("a::b", "fake.runs", "cpu").test_id == "a::b-fake.runs-cpu"
    assert Unit("a::b", "fake.runs", "cuda", "float16").test_id == "a::b-fake.runs-cuda-float16"


def test_results_know_their_unit_and_cannot_be_changed():
    result = Result("a::b", "fake.runs", "cpu", "s", Outcome.PASS, dtype="float32")
    assert result.unit == Unit("a::b", "fake.runs", "cpu", "float32")
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.outcome = Outcome.FAIL
