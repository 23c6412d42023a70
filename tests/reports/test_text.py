"""The report in a terminal."""

from __future__ import annotations

import dataclasses

import expecttest
import pytest

from opcheck_suite import Outcome
from opcheck_suite.reports import text
from tests.reports.sample import CLEAN, EVERY, NOTHING, row

pytestmark = pytest.mark.usefixtures("few_checks")


def test_a_report_with_every_outcome():
    assert {r.outcome for r in EVERY.results} == set(Outcome)
    expecttest.assert_expected_inline(
        text.render(EVERY),
        """\
opcheck_suite 0.1.0, torch 2.13.0+cpu, Python 3.11.7, cpu

op          namespace    values    schema    fake
----------  -----------  --------  --------  ------
my::good    .            .-        W         .
my::wrong   .            .F        x         X
my::dies    .            C?        ?         T
my::odd     .            E                   .
my::absent               -                   -

. pass  F fail  W warn  x xfail  X xpass  - skip  ? not exercised  E error  C crash  T timeout
the characters of a family are, in order:
  namespace  reserved
  values     runs reference
  schema     mutation
  fake       runs foreign

values.reference  my::wrong  cpu  sample 'small'  FAIL
  the result differs from the reference: output has wrong values: 1 of 6 elements differ; at [0, 1] got 3, expected 2
  input   small, size 1(x dim 0)
  call    wrong(x=float32[1, 3])
  also    the sample itself
  fix     How to fix what values.reference finds.
  rerun   opcheck run my_ops.specs --ops my::wrong --checks values.reference
  more    opcheck explain values.reference

fake.runs  my::wrong  cpu  sample 'small'  XPASS
  expected to fail (issue 8), but passes: remove it from expected_failures
  rerun   opcheck run my_ops.specs --ops my::wrong --checks fake.runs
  more    opcheck explain fake.runs

values.runs  my::dies  cpu  sample 'small'  CRASH
  the op, called on small: it died of SIGABRT (Aborted)
  fix     How to fix what values.runs finds.
  rerun   opcheck run my_ops.specs --ops my::dies --checks values.runs
  more    opcheck explain values.runs

  | Fatal Python error: Aborted
  |
  | Current thread 0x01 (most recent call first):
  |   File "/home/me/my_ops.py", line 7 in dies

fake.runs  my::dies  cpu  sample 'small'  TIMEOUT
  the op, called with fake tensors, on small: it did not finish within 9 s
  fix     How to fix what fake.runs finds.
  rerun   opcheck run my_ops.specs --ops my::dies --checks fake.runs
  more    opcheck explain fake.runs

values.runs  my::odd  cpu  ERROR
  the spec is at fault: samples('cpu', None) raised KeyError: 'x'
  rerun   opcheck run my_ops.specs --ops my::odd --checks values.runs
  more    opcheck explain values.runs

warn  schema.mutation: something to know
  my::good
expected failure  schema.mutation: issue 7: known
  my::wrong
not exercised  values.reference, schema.mutation: the op fails on this sample: see values.runs
  my::dies
skip  values.reference: the spec has no reference
  my::good
skip  values.runs, fake.runs: no C++ compiler
  my::absent

ops      5 in the run, 4 with samples, 4 tested, 1 conformant
results  9 pass, 1 fail, 1 warn, 1 xfail, 1 xpass, 3 skip, 2 not exercised, 1 error, 1 crash, 1 timeout in 12.3 s
nothing exercised  my::absent
verdict  5 bad""",
    )


def test_a_clean_report_of_several_devices_and_dtypes():
    expecttest.assert_expected_inline(
        text.render(CLEAN),
        """\
opcheck_suite 0.1.0, torch 2.13.0+cpu, Python 3.11.7, cpu, cuda (NVIDIA H200)

op                       values
-----------------------  --------
my::good [cpu/float32]   .
my::good [cpu/float64]   .
my::good [cuda/float32]  .

. pass
the characters of a family are, in order:
  values  runs

ops      1 in the run, 1 with samples, 1 tested, 1 conformant
results  3 pass in 1.0 s
verdict  clean""",
    )


def test_a_report_of_nothing():
    expecttest.assert_expected_inline(
        text.render(NOTHING),
        """\
opcheck_suite 0.1.0, torch 2.13.0+cpu, Python 3.11.7, cpu

ops      0 in the run, 0 with samples, 0 tested, 0 conformant
results  none in 0.0 s
verdict  nothing was run""",
    )


def test_under_strict_warnings_are_failures_and_no_notes():
    strict = dataclasses.replace(EVERY, options=EVERY.options | {"strict": True})
    assert len(strict.bad) == len(EVERY.bad) + 3
    assert "schema.mutation  my::good  cpu  sample 'small'  WARN" in text.failures(strict)
    assert "something to know" not in text.notes(strict)
    assert "something to know" in text.notes(EVERY)


def test_every_outcome_has_a_mark_of_its_own():
    assert set(text.MARKS) == set(Outcome)
    assert len(set(text.MARKS.values())) == len(Outcome)
    assert {len(mark) for mark in text.MARKS.values()} == {1}


def test_no_line_ends_in_spaces():
    assert [line for line in text.render(EVERY).splitlines() if line != line.rstrip()] == []


def test_a_command_to_run_one_unit_again_can_be_pasted():
    result = row("my::good", "fake.runs", "fail", device="cuda")
    assert text.rerun(result, CLEAN) == (
        "opcheck run 'my ops/specs.py' --ops my::good --checks fake.runs --device cuda --seed 3"
    )
    plain = row("my::good", "fake.runs", "fail")
    assert text.rerun(plain, EVERY) == "opcheck run my_ops.specs --ops my::good --checks fake.runs"
    large = dataclasses.replace(EVERY, options=EVERY.options | {"large": True})
    assert text.rerun(plain, large) == "opcheck run my_ops.specs --ops my::good --checks fake.runs --large"


def test_a_long_traceback_is_cut_to_its_end():
    detail = "\n".join(f"line {n}" for n in range(40))
    shown = text.block(row("my::good", "fake.runs", "fail", "first", detail=detail), EVERY)
    assert "  | line 39" in shown
    assert "line 25\n" not in shown


@pytest.mark.parametrize("outcome", ["error", "xpass"])
def test_what_is_not_the_op_s_fault_has_no_fix_for_the_op(outcome):
    assert "  fix " not in text.block(row("my::good", "fake.runs", outcome, "m"), EVERY)
    assert "  fix " in text.block(row("my::good", "fake.runs", "fail", "m"), EVERY)


def test_why_nothing_ran_and_what_was_expected():
    skipped = [row("a::b", "fake.runs", "skip", "no GPU\nmore"), row("a::b", "fake.runs", "not_exercised", "x")]
    assert text.not_run(skipped) == "no GPU"
    assert text.not_run([*skipped, row("a::b", "fake.runs", "pass")]) == ""
    assert text.not_run([row("a::b", "fake.runs", "skip")]) == "nothing was run"
    assert text.expected([row("a::b", "fake.runs", "pass"), row("a::b", "fake.runs", "xfail", "why\nm")]) == "why"
    assert text.expected([row("a::b", "fake.runs", "pass")]) == ""


def test_many_names_are_cut():
    results = tuple(row(f"a::op{n}", "fake.runs", "warn", "same") for n in range(7))
    notes = text.notes(dataclasses.replace(EVERY, results=results))
    assert notes == "warn  fake.runs: same\n  a::op0, a::op1, a::op2, a::op3 and 3 more"


def test_what_passed_has_to_tell_is_shown_on_demand():
    assert text.figures(CLEAN) == ""
    told = dataclasses.replace(
        EVERY,
        results=(
            row("my::good", "compile.cost", "pass", "opaque   3 kernels\ninlined  1 kernel"),
            row("my::good", "values.runs", "warn", "something to know"),
        ),
    )
    assert text.figures(told) == "compile.cost  my::good  sample 'small'\n  opaque   3 kernels\n  inlined  1 kernel"
    assert "3 kernels" not in text.render(told)
    verbose = dataclasses.replace(told, options={**told.options, "verbose": True})
    assert text.figures(told) in text.render(verbose)
