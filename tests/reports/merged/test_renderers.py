"""The matrix as JSON, text, Markdown and a badge; what others wrote is shown harmlessly."""

from __future__ import annotations

import json as plain
import pathlib

import jsonschema
import pytest

from opcheck_suite import reports
from opcheck_suite.registry import UsageError
from opcheck_suite.reports.merged import diff, json, markdown, text
from tests.reports.merged.made import EVIL, everything, of, one, report

pytestmark = pytest.mark.usefixtures("few_checks")

SCHEMA = plain.loads(pathlib.Path(reports.__file__).with_name("matrix.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
MATRICES = {
    "every": everything,
    "one": lambda: of(report(one())),
    "nothing": lambda: of(report()),
}


@pytest.fixture(params=MATRICES)
def merged(request):
    return MATRICES[request.param]()


def test_reading_back_gives_an_equal_matrix_that_fits_the_schema(merged):
    rendered = json.render(merged)
    assert json.parse(rendered) == merged
    data = plain.loads(rendered)
    VALIDATOR.check_schema(SCHEMA)
    VALIDATOR.validate(data)
    assert list(data)[-1] == "complete"
    assert data["complete"] is not bool(merged.problems)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"schema_version": 2}, "schema version 2, this program reads 1"),
        ({"kind": "report"}, "it is of kind 'report'"),
        ({"rows": 3}, "TypeError"),
        ({"columns": []}, "cells do not fit"),
        ({"checks": ["values.runs", "fake.runs"]}, "cells do not fit"),
        ({"texts": []}, "IndexError"),
        ({"texts": [3, 4]}, "3 is not text"),
        ({"findings": [[0, 0, 7, 0, 0]]}, "IndexError"),
        ({"findings": [[0, 0, -1, 0, 0]]}, "a position is negative"),
        ({"rows": [{"op": "a", "dtype": "", "cells": ["Z"]}]}, "cells do not fit"),
    ],
)
def test_what_is_no_matrix_is_refused(change, told):
    data = plain.loads(json.render(of(report(one("fail", "wrong"))))) | change
    with pytest.raises(UsageError, match=told):
        json.parse(plain.dumps(data))


def test_nothing_in_a_report_steers_a_terminal_or_is_markup(merged):
    shown = text.render(merged) + text.render_difference(diff.diff(of(report(one())), merged))
    assert "\x1b" not in shown
    marked = markdown.render(merged) + markdown.render_difference(diff.diff(of(report(one())), merged))
    assert "\x1b" not in marked
    outside = "".join(part for line in marked.splitlines() for part in line.split("`")[::2])
    assert "<" not in outside
    if merged.rows and EVIL in merged.rows[-1].op:
        assert "&lt;script&gt;" in marked


def test_rows_of_markdown_tables_have_equal_columns():
    for block in markdown.render(everything()).split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) <= 1


def test_the_text_shows_environments_levels_findings_and_the_verdict():
    good = [one(check="registration.name", sample=""), one()]
    bad = [one(check="registration.name", sample=""), one("fail", "wrong\nmore")]
    shown = text.render(of(report(*good), report(*bad, torch="2.14.1"), expect=["gone"]))
    assert "my::op  ++???  +xxxx 1" in " ".join(shown.split(" ")).replace("    ", "  ")
    assert "values.runs  my::op  FAIL  in [2]\n  wrong" in shown
    assert "there is no such report" in shown
    assert shown.endswith("verdict  1 missing or incomplete, 1 bad")


def test_long_lists_of_findings_are_cut_and_say_so():
    many = of(report(*(one("fail", "wrong", op=f"my::op{n}") for n in range(60))))
    assert "and 10 more: the HTML and JSON forms have all" in text.render(many)
    assert "and 10 more: the HTML and JSON forms have all" in markdown.render(many)


def test_where_environments_differ_is_told_once_for_each_reason():
    both = [one(op="my::a"), one(op="my::b"), one(op="my::c")]
    old = [one("skip", "torch is | too old", op="my::a"), one("skip", "torch is | too old", op="my::b"), both[2]]
    merged = of(report(*old), report(*both, torch="2.14.1"), report(*both, torch="2.15.0"), expect=["gone"])
    shown = text.render(merged)
    assert shown.count("differs") == 1
    assert "differs  my::a, my::b: values.runs\n  skip in [1]; pass in [2], [3]\n  torch is | too old" in shown
    marked = markdown.render(merged)
    row = next(line for line in marked.splitlines() if "pass in 2, 3" in line)
    assert [cell.strip() for cell in row.split("|")[1:-1]] == [
        "`my::a`, `my::b`",
        "`values.runs`",
        "skip in 1; pass in 2, 3",
        "torch is &#124; too old",
    ]


def test_environments_that_agree_or_are_incomplete_do_not_differ():
    same, stopped = report(one()), report(torch="2.14.1", stopped="terminated")
    for merged in (of(same), of(same, report(one(), torch="2.14.1")), of(same, stopped)):
        assert "differ" not in text.render(merged) + markdown.render(merged)


def test_many_names_of_one_difference_are_some_and_how_many_more():
    names = [f"my::{letter}" for letter in "abcdef"]
    old = [one("skip", "no", op=name) for name in names]
    merged = of(report(*old), report(*(one(op=name) for name in names), torch="2.14.1"))
    assert "differs  my::a, my::b, my::c, my::d and 2 more ops: values.runs\n" in text.render(merged)
