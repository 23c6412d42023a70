"""Reports as tests of a CI system."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ET

import pytest

from opcheck_suite.reports import junit
from tests.reports.sample import CLEAN, EVERY, NOTHING, row

pytestmark = pytest.mark.usefixtures("few_checks")


def cases(report) -> list[tuple[str, str]]:
    """The check and the kind of each test."""
    root = ET.fromstring(junit.render(report).encode())
    return [(c.get("name"), next((k.tag for k in c), "passed")) for c in root.iter("testcase")]


def test_every_result_is_a_test_of_its_kind():
    found = cases(EVERY)
    assert len(found) == len(EVERY.results)
    assert ("values.runs[cpu-large]", "passed") in found
    assert ("values.reference[cpu-small]", "failure") in found
    assert ("fake.runs[cpu-small]", "failure") in found  # xpass
    assert ("values.runs[cpu-small]", "error") in found  # crash
    assert ("schema.mutation[cpu-small]", "skipped") in found  # xfail
    assert ("schema.mutation[cpu-small]", "system-out") in found  # warn
    assert ("values.runs[cuda/float32-small]", "passed") in cases(CLEAN)


def test_the_counts_add_up():
    root = ET.fromstring(junit.render(EVERY).encode())
    counts = [{k: int(s.get(k)) for k in ("tests", "failures", "errors", "skipped")} for s in (root, *root)]
    assert counts[0] == {k: sum(c[k] for c in counts[1:]) for k in counts[0]}
    assert counts[0] == {"tests": 21, "failures": 2, "errors": 3, "skipped": 6}
    assert ET.fromstring(junit.render(NOTHING).encode()).get("tests") == "0"


def test_a_failure_holds_what_is_needed_to_act_on_it():
    root = ET.fromstring(junit.render(EVERY).encode())
    told = next(f for f in root.iter("failure") if f.get("type") == "fail")
    assert told.get("message").startswith("the result differs from the reference")
    assert "rerun   opcheck run my_ops.specs --ops my::wrong --checks values.reference" in told.text


def test_strict_runs_fail_for_warnings():
    strict = dataclasses.replace(EVERY, options={**EVERY.options, "strict": True})
    assert ("schema.mutation[cpu-small]", "failure") in cases(strict)


def test_a_run_that_did_not_end_has_an_error():
    stopped = dataclasses.replace(CLEAN, stopped="interrupted after 3 of 9 checks")
    assert cases(stopped)[-1] == ("the run is complete", "error")


def test_what_xml_cannot_hold_is_replaced():
    odd = row("my::<op>", "values.runs", "fail", "a\x00b \x1b[31m \ud800 ]]> <script>&", sample='"')
    root = ET.fromstring(junit.render(dataclasses.replace(EVERY, results=(odd,))).encode())
    assert next(root.iter("failure")).get("message") == "a?b ?[31m ? ]]> <script>&"
    assert root[0].get("name") == "my::<op>"
