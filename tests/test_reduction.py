"""Samples drawn from a strategy: how many, which, and what a report says of one that fails."""

from __future__ import annotations

import dataclasses
import re

import pytest
import torch
from hypothesis import strategies as st

from opcheck_suite import Sample, check_op, engine, ops, registry, session, specs
from opcheck_suite.inputs import strategies
from opcheck_suite.model import Outcome, Tier
from opcheck_suite.options import RunOptions
from tests.fixtures import drawn_ops
from tests.fixtures.drawn_ops import CALLS, spec


def run(*given, **options):
    chosen = RunOptions(**{"tier": "quick", **options}).validated()
    return engine.run(engine.plan(specs.Loaded("tests", specs.entries(given)), chosen))


def results(report, check):
    return [r for r in report.results if r.check == check]


def failing(report, check):
    """The results of a check that are bad."""
    return [r for r in results(report, check) if r.outcome.bad]


# -- samples


@pytest.mark.parametrize(("tier", "count"), [("quick", 10), ("standard", 25)])
def test_a_tier_draws_so_many_samples(tier, count):
    report = run(spec("right"), tier=tier, checks=("values.reference",))
    assert [r.sample for r in results(report, "values.reference")] == [f"example {n + 1}" for n in range(count)]
    assert report.ok


def test_samples_are_the_same_in_every_process_and_follow_the_seed():
    def seen(**options):
        report = run(spec("wrong_when_wide"), **{"checks": ("values.reference",)} | options)
        found = results(report, "values.reference")
        told = next(r for r in found if r.outcome.bad)  # how far it is reduced is a matter of time
        return [(r.sample, r.outcome, r.message if r is not told else "") for r in found]

    first = seen()
    assert [outcome for _, outcome, _ in first].count(Outcome.FAIL) > 1
    assert seen(checks=("schema", "values.reference")) == first
    assert seen(isolate="never") == first
    assert seen(seed=7) != first


def test_a_function_may_return_a_strategy_for_a_device_and_dtype():
    def samples(device, dtype):
        return strategies.sample(x=strategies.tensors(dtype=dtype, device=device), along=0)

    given = spec("right", samples=samples, dtypes=(torch.float64, torch.float32))
    report = run(given, checks=("values.reference",))
    assert len(results(report, "values.reference")) == 20
    info = ops.info(given.op)
    drawn = specs.samples(given, device="cpu", dtype=torch.float64, info=info, tier=Tier.QUICK)
    assert {s.args[0].dtype for s in drawn} == {torch.float64}


def test_drawn_samples_are_numbered_and_keep_the_name_they_have():
    info = ops.info(drawn_ops.spec("right").op)
    named = CALLS.map(lambda s: dataclasses.replace(s, name="matrix"))
    found = specs.samples(spec("right", samples=named), device="cpu", dtype=None, info=info)
    assert [s.name for s in found][:2] == ["example 1 (matrix)", "example 2 (matrix)"]
    assert all(len(s.args) == 2 and not s.kwargs for s in found), "by position, as the schema has them"


@pytest.mark.parametrize(
    ("strategy", "told"),
    [
        (st.integers(1, 5).map(lambda n: 1 // 0), "drawing from the strategy raised ZeroDivisionError"),
        (st.nothing(), "drawing from the strategy raised"),
        (st.integers(), "must be a Sample"),
        (strategies.sample(x=strategies.tensors()), "example 1 lacks argument 'along'"),
        (strategies.sample(x=1, along=strategies.dim_of("x")), r"dim_of\('x'\) needs a tensor, got 1"),
    ],
)
def test_a_strategy_that_gives_no_samples_is_the_spec_s_fault(strategy, told):
    report = run(spec("right", samples=strategy), checks=("values.reference",))
    (one,) = results(report, "values.reference")
    assert one.outcome is Outcome.ERROR
    assert "the spec is at fault" in one.message
    assert re.search(told, one.message), one.message


def test_a_generator_among_the_arguments_is_the_same_for_every_call():
    calls = strategies.from_schema("suite_drawn::noisy", generator=strategies.generators())
    report = run(spec("noisy", samples=calls, reference=None), checks=("values.repeatable",))
    assert {r.outcome for r in results(report, "values.repeatable")} == {Outcome.PASS}


# -- what a report says


def test_the_first_failing_sample_is_shown_reduced():
    report = run(spec("wrong_from_the_back"), checks=("fake.shape",))
    first, *others = failing(report, "fake.shape")
    lines = first.message.splitlines()
    assert lines[0] == "the output has shape [], with fake tensors [1]"
    assert lines[1] == "call    wrong_from_the_back(x=float32[1], along=-1)"
    assert lines[2].startswith("reduced from wrong_from_the_back(x=float32[")
    assert others
    assert all("reduced" not in r.message for r in others)
    assert len({r.sample for r in report.results if r.check == "fake.shape"}) == 10
    assert str(report).count("wrong_from_the_back(x=float32[1], along=-1)") == 1


def test_values_are_reduced_too():
    first = failing(run(spec("wrong_when_wide"), checks=("values.reference",)), "values.reference")[0]
    assert "call    wrong_when_wide(x=float32[5], along=0)" in first.message


def test_a_variant_is_made_of_the_smallest_sample():
    first = failing(run(spec("wrong_when_gapped"), checks=("values.noncontiguous",)), "values.noncontiguous")[0]
    assert (
        "input   example 1, a gap after each element(x)" in first.message or "x=float32[2] stride (2,)" in first.message
    )


def test_a_sample_that_the_op_refuses_is_reduced():
    first = failing(run(spec("refuses_wide"), checks=("values.runs",)), "values.runs")[0]
    assert "call    refuses_wide(x=float32[5], along=0)" in first.message


def test_a_sample_that_ends_the_process_is_reduced_in_processes_of_its_own():
    first = failing(run(spec("dies_when_wide"), checks=("values.runs",)), "values.runs")[0]
    assert first.outcome is Outcome.CRASH
    said, call, origin = first.message.splitlines()
    assert said == f"the op, called on {first.sample}: it died of SIGABRT (Aborted)"
    assert call == "call    dies_when_wide(x=float32[5], along=0)"
    assert origin.startswith("reduced from dies_when_wide(x=")


def test_a_death_while_reducing_ends_that_and_nothing_else():
    report = run(spec("wrong_and_dies_when_small"), checks=("values.reference",))
    bad = failing(report, "values.reference")
    assert bad
    assert all("elements differ" in r.message or "value differs" in r.message for r in bad)
    assert len(results(report, "values.reference")) == 10


def test_an_expected_failure_is_not_reduced():
    known = spec("wrong_from_the_back", expected_failures={"fake.shape": "known"})
    (first, *_) = [r for r in results(run(known, checks=("fake.shape",)), "fake.shape") if r.outcome is Outcome.XFAIL]
    assert "reduced" not in first.message


def test_samples_that_someone_wrote_are_left_as_they_are():
    given = spec("wrong_from_the_back", samples=[Sample((torch.rand(4, 5), -1))])
    (first,) = failing(run(given, checks=("fake.shape",)), "fake.shape")
    assert "along=-1" in first.message


def test_without_children_nothing_is_reduced():
    report = run(spec("wrong_from_the_back"), checks=("fake.shape",), isolate="never")
    assert failing(report, "fake.shape")
    assert "reduced" not in str(report)


def test_the_library_door_takes_a_strategy():
    report = check_op("suite_drawn::wrong_from_the_back", CALLS, tier="quick", checks=["fake.shape"], isolate="never")
    assert not report.ok


def test_expensive_checks_look_at_a_few_signatures_of_drawn_samples():
    (entry,) = specs.entries([spec("right")])
    made = session.Session(entry)
    check = registry.get("fake.symbolic")
    assert check.scope == "signature"

    def rows(tier):
        priced = dataclasses.replace(check, tier=tier)
        return list(made._over_samples(priced, made.context("cpu", ""), frozenset()))

    assert len(rows(Tier.QUICK)) > 5
    assert len(rows(Tier.STANDARD)) == 5
