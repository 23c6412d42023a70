"""Annotations of GitHub Actions."""

from __future__ import annotations

import dataclasses

import pytest

from opcheck_suite.reports import github
from tests.reports.sample import CLEAN, EVERY, NOTHING, row

pytestmark = pytest.mark.usefixtures("few_checks")


def test_bad_results_are_errors_and_warnings_follow():
    lines = github.render(EVERY).splitlines()
    kinds = [line.partition(" ")[0] for line in lines]
    assert kinds == ["::error"] * 5 + ["::warning", "::error"]
    assert lines[0].startswith("::error title=my%3A%3Awrong values.reference fail::values.reference  my::wrong  cpu")
    assert "%0A  rerun   opcheck run my_ops.specs --ops my::wrong" in lines[0]
    assert lines[-1] == "::error title=opcheck::5 bad"


def test_a_clean_run_is_one_notice():
    assert github.render(CLEAN) == "::notice title=opcheck::clean\n"
    assert github.render(NOTHING) == "::error title=opcheck::nothing was run\n"
    stopped = github.render(dataclasses.replace(CLEAN, stopped="interrupted"))
    assert stopped == "::error title=opcheck::incomplete: interrupted; 0 bad so far\n"


def test_samples_on_which_a_check_fails_alike_share_a_line_and_a_file_of_specs_is_named():
    results = tuple(row("my::op", "values.runs", "fail", "100% wrong", sample=s) for s in ("a", "b"))
    made = dataclasses.replace(EVERY, results=results, options={"source": "tests/my_specs.py"})
    first, last = github.render(made).splitlines()
    assert first.startswith("::error file=tests/my_specs.py,title=my%3A%3Aop values.runs fail::")
    assert "100%25 wrong" in first
    assert last == "::error title=opcheck::2 bad"


def test_no_message_can_give_a_command_of_its_own():
    odd = row("my::op\n::error::x", "values.runs", "fail", "a\n::set-output name=x::y\r::stop-commands::z")
    lines = github.render(dataclasses.replace(EVERY, results=(odd,))).splitlines()
    assert len(lines) == 2
    assert all(line.startswith("::error ") for line in lines)
