"""Reports become columns."""

from __future__ import annotations

import pytest

from opcheck_suite import Outcome
from opcheck_suite.registry import UsageError
from tests.reports.merged.made import everything, of, one, report

pytestmark = pytest.mark.usefixtures("few_checks")


def names(merged) -> list[str]:
    return [c.name for c in merged.columns]


def test_environments_are_columns_named_by_what_tells_them_apart():
    assert names(of(report(one()))) == ["torch 2.13.0+cpu, cpu"]
    assert names(of(report(one()), report(one(), torch="2.14.1"))) == ["torch 2.13.0+cpu, cpu", "torch 2.14.1, cpu"]
    assert names(of(report(one()), report(one(), python="3.13.0"))) == [
        "torch 2.13.0+cpu, cpu, Python 3.11.7",
        "torch 2.13.0+cpu, cpu, Python 3.13.0",
    ]


def test_a_device_is_a_column_with_the_name_of_its_hardware():
    made = of(report(one(), one("fail", "wrong", device="cuda"), device="cpu, cuda (NVIDIA H200)"))
    assert names(made) == ["torch 2.13.0+cpu, cpu", "torch 2.13.0+cpu, cuda (NVIDIA H200)"]
    assert made.cells == ((".", "F"),)


def test_a_cell_is_the_most_serious_of_its_samples_and_tells_of_that():
    made = of(report(one(sample="a"), one("fail", "wrong", sample="b"), one("warn", "odd", sample="c")))
    assert made.outcome(0, 0, 0) is Outcome.FAIL
    assert made.findings[0, 0, 0].message == "wrong"
    assert made.findings[0, 0, 0].sample == "b"


def test_checks_that_a_run_left_out_are_blank():
    made = of(report(one()), report(one(check="fake.runs", op="my::other"), torch="2.14.1"))
    assert made.checks == ("values.runs", "fake.runs")
    assert made.cells == ((". ", "  "), ("  ", " ."))
    assert made.outcome(0, 1, 0) is None
    assert made.ok


def test_shards_of_one_environment_are_one_column():
    first = report(one(op="my::a"), options={"shard": "1/2"})
    second = report(one(op="my::b"), options={"shard": "2/2"})
    assert of(first, second).ok
    assert [c.problem for c in of(first).columns] == ["there is no report of shard 2/2"]
    odd = report(one(op="my::c"), options={"shard": "3/3"})
    assert "shards of 2 and of 3 do not go together" in of(first, second, odd).columns[0].problem


def test_equal_duplicates_are_one_and_conflicting_ones_are_refused():
    assert of(report(one()), report(one())).counts() == {Outcome.PASS: 1}
    good, bad = report(one()), report(one("fail", "wrong"))
    with pytest.raises(UsageError, match=r"jobs/0.json and jobs/1.json disagree on my::op values.runs, pass and fail"):
        of(good, bad)
    for pair in ((good, bad), (bad, good)):
        made = of(*pair, allow_conflicts=True)
        assert made.counts() == {Outcome.FAIL: 1}
        assert made.findings[0, 0, 0].message == "wrong"
    with pytest.raises(UsageError, match="disagree"):
        of(report(one(sample="a"), one("fail", sample="b")), report(one("fail", sample="a"), one(sample="b")))


def test_two_states_of_the_op_library_are_refused():
    old, new = report(one(), commit="abc"), report(one(), commit="abd", torch="2.14.1")
    with pytest.raises(UsageError, match=r"jobs/0.json is of commit abc, jobs/1.json of abd"):
        of(old, new)
    assert len(of(old, new, allow_mixed=True).columns) == 2
    with pytest.raises(UsageError, match=r"version my-ops 1.2"):
        of(report(one(), library="my-ops 1.2"), report(one(), library="my-ops 1.3", torch="2.14.1"))
    builds = [report(one(), library=f"my-ops 1.2+{t}", torch=t) for t in ("pt213", "pt214")]
    assert of(*builds).ok


def test_a_job_that_did_not_end_is_shown_and_fails():
    made = of(report(one(), stopped="interrupted after 1 of 9 checks"))
    assert made.columns[0].problem == "jobs/0.json is incomplete: interrupted after 1 of 9 checks"
    assert not made.ok
    assert made.verdict() == "1 missing or incomplete"


@pytest.mark.parametrize("wanted", ["0", "jobs*", "torch 2.13*", "1"])
def test_an_expected_job_that_is_missing_is_a_column_and_fails(wanted):
    made = of(report(one()), expect=["0", wanted])
    missing = [c.name for c in made.columns if c.problem]
    assert missing == ([] if wanted in ("0", "torch 2.13*") else [wanted])
    assert made.ok is not bool(missing)
    assert all(len(row) == len(made.columns) for row in made.cells)


def test_nothing_is_not_clean():
    assert not of(report()).ok
    assert of(report()).verdict() == "nothing was run"


def test_strict_runs_make_strict_columns():
    made = of(report(one("warn", "odd"), options={"strict": True}), report(one("warn", "odd"), torch="2.14.1"))
    assert [(c.column, c.outcome) for c in made.bad] == [(0, Outcome.WARN)]


def test_levels_are_of_ops_over_their_dtypes():
    results = [one(check="registration.name", dtype="a"), one(dtype="a"), one("fail", "wrong", dtype="b")]
    assert of(report(*results)).levels[0]["my::op"]["eager"] == "no"


def test_every_kind_of_column():
    assert [bool(c.problem) for c in everything().columns] == [False, False, False, True, True]
