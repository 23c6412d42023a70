"""Every kind of report fits the JSON Schema that is shipped, and what is no report does not."""

from __future__ import annotations

import dataclasses
import json as plain
import pathlib

import jsonschema
import pytest

from opcheck_suite import Outcome, reports
from opcheck_suite.reports import json
from tests.reports.sample import CLEAN, EVERY, NOTHING

pytestmark = pytest.mark.usefixtures("few_checks")

SCHEMA = plain.loads(pathlib.Path(reports.__file__).with_name("report.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
STOPPED = dataclasses.replace(EVERY, stopped="interrupted after 3 of 40 checks")


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$defs"]["outcome"]["enum"] == list(Outcome)


@pytest.mark.parametrize("report", [EVERY, CLEAN, NOTHING, STOPPED], ids=["every", "clean", "nothing", "stopped"])
def test_reports_fit(report):
    VALIDATOR.validate(plain.loads(json.render(report)))


def test_a_report_that_was_begun_fits_and_is_never_clean(tmp_path):
    path = tmp_path / "report.json"
    path.write_text(json.render(CLEAN))
    reports.begin([str(path), str(tmp_path / "report.md")], {"source": "my_ops"})
    assert not (tmp_path / "report.md").exists()
    VALIDATOR.validate(plain.loads(path.read_text()))
    begun = json.parse(path.read_text(), incomplete=True)
    assert (begun.ok, begun.stopped) == (False, "the run has begun, and not ended")


@pytest.mark.parametrize(
    "change",
    [
        {"complete": 1},
        {"complete": False},
        {"stopped": "interrupted"},
        {"schema_version": 2},
        {"kind": "matrix"},
        {"environment": {}},
        {"ops": {"a::b": 3}},
        {"results": [{}]},
        {"levels": {"a::b": {"eager": "maybe"}}},
        {"more": 1},
    ],
    ids=str,
)
def test_what_is_no_report_does_not_fit(change):
    assert not VALIDATOR.is_valid(plain.loads(json.render(EVERY)) | change)
