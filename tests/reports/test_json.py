"""The canonical form of a report."""

from __future__ import annotations

import dataclasses
import json as plain

import expecttest
import pytest

from opcheck_suite import Report
from opcheck_suite.registry import UsageError
from opcheck_suite.reports import json
from tests.reports.sample import CLEAN, EVERY, NOTHING

pytestmark = pytest.mark.usefixtures("few_checks")


@pytest.mark.parametrize("report", [EVERY, CLEAN, NOTHING], ids=["every", "clean", "nothing"])
def test_reading_back_gives_an_equal_report(report):
    again = json.parse(json.render(report))
    assert again == report
    assert json.render(again) == json.render(report)
    assert again.ok == report.ok


def test_a_report_is_flat_objects_and_totals():
    data = plain.loads(json.render(EVERY))
    assert list(data) == [
        "schema_version",
        "kind",
        "environment",
        "options",
        "ops",
        "results",
        "seconds",
        "levels",
        "totals",
        "stopped",
        "complete",
    ]
    assert data["schema_version"] == Report.SCHEMA_VERSION == 1
    assert {"op", "check", "device", "sample", "outcome", "message", "seconds"} <= set(data["results"][0])
    assert all(isinstance(value, str | float | int) for result in data["results"] for value in result.values())
    assert len(data["results"]) == len(EVERY.results)
    expecttest.assert_expected_inline(
        plain.dumps(data["totals"], indent=1),
        """\
{
 "ops": {
  "in_run": 5,
  "with_samples": 4,
  "tested": 4,
  "conformant": 1,
  "untested": [
   "my::absent"
  ]
 },
 "levels": {
  "registered": 0,
  "eager": 0,
  "compile": 0,
  "training": 0,
  "export": 0
 },
 "outcomes": {
  "crash": 1,
  "error": 1,
  "fail": 1,
  "not_exercised": 2,
  "pass": 9,
  "skip": 3,
  "timeout": 1,
  "warn": 1,
  "xfail": 1,
  "xpass": 1
 },
 "bad": 5
}""",
    )


def test_floats_are_rounded_so_that_reading_is_exact():
    odd = dataclasses.replace(EVERY.results[0], seconds=1 / 3)
    once = json.parse(json.render(dataclasses.replace(EVERY, results=(odd,), seconds=2 / 3)))
    assert json.parse(json.render(once)) == once
    assert once.results[0].seconds == pytest.approx(1 / 3, abs=1e-6)


def test_a_run_that_did_not_end_is_refused():
    data = plain.loads(json.render(EVERY))
    for complete in ({}, {"complete": False}, {"complete": 1}):
        left = {k: v for k, v in data.items() if k != "complete"} | complete
        with pytest.raises(UsageError, match="the report is incomplete: the run that wrote it did not end"):
            json.parse(plain.dumps(left))


def test_half_a_file_is_refused():
    text = json.render(EVERY)
    with pytest.raises(UsageError, match="not a report: it is not JSON"):
        json.parse(text[: len(text) // 2])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it is not JSON"),
        ("[]", "it has no schema_version"),
        ('{"results": []}', "it has no schema_version"),
        ('{"schema_version": 2, "complete": true}', "the report has schema version 2, this program reads 1"),
        ('{"schema_version": 1, "complete": true}', "not a report: environment is missing"),
    ],
)
def test_what_is_no_report_is_refused_with_the_reason(text, told):
    with pytest.raises(UsageError, match=told):
        json.parse(text)


def test_a_run_that_was_stopped_can_be_read_and_is_not_ok():
    stopped = dataclasses.replace(CLEAN, stopped="interrupted after 3 of 9 checks")
    assert not stopped.ok
    text = json.render(stopped)
    assert plain.loads(text)["complete"] is False
    with pytest.raises(UsageError, match=r"the report is incomplete: .* did not end: interrupted after 3 of 9 checks"):
        json.parse(text)
    assert json.parse(text, incomplete=True) == stopped
    unsaid = plain.loads(text) | {"stopped": ""}
    assert not json.parse(plain.dumps(unsaid), incomplete=True).ok


@pytest.mark.parametrize(
    "text",
    ['{"schema_version": 1, "complete": true, "seconds": NaN}', "[" * 100_000, '{"schema_version": 1, "kind": "x"}'],
    ids=["NaN", "depth", "kind"],
)
def test_odd_json_is_refused(text):
    with pytest.raises(UsageError, match="not a report: "):
        json.parse(text)


@pytest.mark.parametrize(
    "change",
    [{"outcome": "maybe"}, {"surprise": 1}, {"op": ...}, {"op": 3}, {"cases": True}, {"seconds": "1"}],
    ids=["outcome", "new key", "lacking key", "op", "cases", "seconds"],
)
def test_a_result_that_is_not_one_is_refused(change):
    data = plain.loads(json.render(EVERY))
    data["results"][0] |= change
    data["results"][0] = {k: v for k, v in data["results"][0].items() if v is not ...}
    with pytest.raises(UsageError, match="not a report: "):
        json.parse(plain.dumps(data))


@pytest.mark.parametrize("results", [3, None, [3], "x"])
def test_results_of_a_wrong_type_are_refused(results):
    data = plain.loads(json.render(EVERY)) | {"results": results}
    with pytest.raises(UsageError, match="not a report: "):
        json.parse(plain.dumps(data))
