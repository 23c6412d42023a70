"""Ops x checks, and how many ops got how far."""

from __future__ import annotations

import dataclasses

import pytest

from opcheck_suite import Outcome
from opcheck_suite.reports import matrix
from tests.reports.sample import CLEAN, EVERY, NOTHING, row

pytestmark = pytest.mark.usefixtures("few_checks")


def test_a_cell_is_its_most_serious_result():
    results = (
        row("a::b", "values.runs", "pass", sample="x"),
        row("a::b", "values.runs", "fail", sample="y"),
        row("a::b", "values.runs", "skip", sample="z"),
        row("a::b", "fake.runs", "skip", sample="x"),
        row("a::b", "fake.runs", "pass", sample="y"),
    )
    made = matrix.build(dataclasses.replace(EVERY, results=results))
    assert made.cells == {("a::b", "values.runs"): Outcome.FAIL, ("a::b", "fake.runs"): Outcome.PASS}


def test_checks_come_in_the_order_in_which_they_run_and_unknown_ones_by_family():
    results = tuple(
        row("a::b", check, "pass") for check in ("compile.parity", "mine.own", "fake.zz", "fake.runs", "values.runs")
    )
    made = matrix.build(dataclasses.replace(EVERY, results=results))
    assert made.checks == ("values.runs", "fake.runs", "compile.parity", "fake.zz", "mine.own")
    assert list(made.families) == ["values", "fake", "compile", "mine"]
    assert made.families["fake"] == ["fake.runs", "fake.zz"]


def test_rows_are_ops_with_what_tells_them_apart():
    assert matrix.build(EVERY).rows == ("my::good", "my::wrong", "my::dies", "my::odd", "my::absent")
    assert matrix.build(CLEAN).rows == (
        "my::good [cpu/float32]",
        "my::good [cpu/float64]",
        "my::good [cuda/float32]",
    )
    assert matrix.build(NOTHING).rows == ()


def test_ops_are_counted_by_how_far_they_got():
    assert matrix.summarise(EVERY) == matrix.Summary(
        registered=5, with_samples=4, tested=4, conformant=1, untested=("my::absent",)
    )


def test_an_op_that_only_static_checks_looked_at_is_not_tested():
    results = (
        row("a::b", "registration.name", "pass", sample=""),
        row("a::b", "values.runs", "not_exercised", "the op has no samples", sample=""),
    )
    counted = matrix.summarise(dataclasses.replace(EVERY, results=results, ops={"a::b": ""}))
    assert counted == matrix.Summary(registered=1, with_samples=0, tested=0, conformant=0, untested=("a::b",))


def test_an_audit_runs_nothing_and_calls_no_op_conformant():
    results = (row("a::b", "registration.name", "pass", sample=""),)
    counted = matrix.summarise(dataclasses.replace(EVERY, results=results, ops={"a::b": ""}))
    assert (counted.tested, counted.conformant, counted.static, counted.clean) == (0, 0, True, 1)


def test_an_op_whose_samples_could_not_be_made_is_not_tested():
    results = (row("a::b", "values.runs", "error", "the spec is at fault", sample=""),)
    counted = matrix.summarise(dataclasses.replace(EVERY, results=results, ops={"a::b": ""}))
    assert (counted.with_samples, counted.tested, counted.untested) == (0, 0, ("a::b",))
