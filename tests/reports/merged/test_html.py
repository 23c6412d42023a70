"""The page as text: its structure, and that what others wrote is text in it. `test_page` opens it in a browser."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from opcheck_suite import reports
from opcheck_suite.reports.merged import html
from tests.reports.merged.made import EVIL, everything, of, one, report

pytestmark = pytest.mark.usefixtures("few_checks")

_VOID = {"meta", "input", "col"}


class Page(HTMLParser):
    """Elements with their attributes and text, and whether they are nested as they should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str], list[str]]] = []
        self._open: list[int] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs) -> None:
        self.found.append((tag, dict(attrs), []))
        if tag not in _VOID:
            self._open.append(len(self.found) - 1)

    def handle_endtag(self, tag) -> None:
        assert self.found[self._open.pop()][0] == tag

    def handle_data(self, data) -> None:
        if self._open:
            self.found[self._open[-1]][2].append(data)

    def all(self, tag: str, **attrs: str) -> list[str]:
        """The text of elements."""
        return ["".join(t) for name, a, t in self.found if name == tag and attrs.items() <= a.items()]

    def data(self) -> dict:
        (text,) = self.all("script", id="data")
        return json.loads(text)


def test_the_matrix_has_a_row_for_each_op_and_a_column_for_each_check():
    merged = everything()
    page = Page(html.render(merged))
    assert [t for t in page.all("span") if t in merged.checks] == list(merged.checks)
    names = [str(row) for row in merged.rows]
    assert [t for t in page.all("th", scope="row") if t in names] == names
    assert len(page.all("col")) == 1 + len(merged.checks)
    assert [len(row) for row in page.data()["kinds"]] == [len(merged.checks)] * len(merged.rows)


def test_without_a_script_a_row_has_the_most_serious_outcome_of_each_check():
    good = [one(), one(check="fake.runs")]
    bad = [one("fail", "x"), one("skip", "x", check="fake.runs"), one(check="compile.parity")]
    page = Page(html.render(of(report(*good), report(*bad, torch="2.14.1"))))
    assert page.all("td", **{"class": "plain"}) == ["F . ."]


def test_kinds_of_cells():
    def kinds(*reports) -> list[str]:
        return Page(html.render(of(*reports))).data()["kinds"]

    assert kinds(report(one()), report(one("fail", "x"), torch="2.14.1")) == ["b"]
    assert kinds(report(one("skip", "x")), report(one("warn", "x"), torch="2.14.1")) == ["o"]
    assert kinds(report(one("skip", "x")), report(one(), torch="2.14.1")) == ["g"]
    assert kinds(report(one("warn", "x"), options={"strict": True})) == ["b"]
    assert kinds(report(one(), one(op="my::two", check="fake.runs"))) == ["g ", " g"]


def test_filters_have_labels_and_the_families_that_there_are():
    page = Page(html.render(everything()))
    controls = [(a.get("type"), a["id"]) for name, a, _ in page.found if name in ("input", "select")]
    assert controls == [("checkbox", "bad"), (None, "family"), ("search", "text")]
    assert len(page.all("label")) == len(controls)
    assert page.all("option")[1:] == list(dict.fromkeys(c.partition(".")[0] for c in everything().checks))


def test_a_page_says_what_was_checked():
    made = of(report(one(), library="my-ops 1.2", commit="0123456789abcdef-dirty"))
    (about,) = Page(html.render(made)).all("p", **{"class": "about"})
    assert about == "1 op, 1 check, 1 environment; my_ops.specs; my-ops 1.2 commit 0123456789ab-dirty"


def test_one_run_is_a_page_too_also_a_shard_of_one():
    made = report(one("fail", "wrong"), stopped="interrupted after 1 of 9 checks", options={"shard": "1/2"})
    page = Page(reports.render("html", made))
    assert page.all("h1") == ["Conformance: 1 missing or incomplete, 1 bad"]
    assert page.all("td", **{"class": "problem"}) == ["this run is incomplete: interrupted after 1 of 9 checks"]
    assert page.all("p", **{"class": "about"})[0].endswith("; only shard 1/2")
    whole = Page(reports.render("html", dataclasses.replace(made, stopped="")))
    assert whole.all("td", **{"class": "problem"}) == []


def test_a_run_that_dies_leaves_a_page_that_says_so(tmp_path):
    reports.begin([str(tmp_path / "r.html")], {"source": "my_ops.specs"})
    page = Page((tmp_path / "r.html").read_text())
    assert "the run has begun, and not ended" in page.all("td", **{"class": "problem"})[0]


def test_what_a_cell_tells_is_in_the_page():
    told = "wrong\ncall    op(x=float32[1, 3])"
    bad = one("fail", told, op="my::it's", device="cuda", sample="large")
    data = Page(html.render(of(report(bad, options={"seed": 3}, device="cuda (NVIDIA H200)")))).data()
    ((column, sample, message),) = data["findings"]["0:0"]
    assert (data["texts"][sample], data["texts"][message]) == ("large", told)
    parts = data["columns"][column]
    line = f"{parts['rerun']} --ops {data['quoted'][0]} --checks {data['checks'][0]['id']}{parts['rest']}"
    assert line == "opcheck run my_ops.specs --ops 'my::it'\"'\"'s' --checks values.runs --device cuda --seed 3"
    assert data["checks"][0]["fix"] == "How to fix what values.runs finds."


def test_what_others_wrote_is_text_and_nothing_comes_from_elsewhere():
    text = html.render(everything())
    assert EVIL not in text
    page = Page(text)
    assert [name for name, _, _ in page.found].count("script") == 2
    assert EVIL in "".join(page.data()["texts"])
    assert f"my::{EVIL}" in page.all("th", scope="row")
    assert not [a for _, a, _ in page.found if {"src", "href", "onclick", "onerror"} & set(a)]
    assert "default-src 'none'" in text
    (script,) = [s for s in page.all("script") if "use strict" in s]
    assert "innerHTML" not in script
    assert "http" not in script
    # no other script may run, whatever else finds its way into the page
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert re.findall(r"script-src ([^;]*);", text) == [f"'sha256-{digest}'"]


def test_missing_jobs_are_shown():
    page = Page(html.render(everything()))
    problems = page.all("td", **{"class": "problem"})
    assert problems[-1] == "there is no such report"
    assert len(problems) == 2


def test_long_texts_are_cut_and_say_so(monkeypatch):
    monkeypatch.setattr(html, "MOST", 2500)
    many = [one("fail", f"{n}" + "x" * 900, op=f"my::op{n}") for n in range(9)]
    data = Page(html.render(of(report(*many)))).data()
    assert all(len(t) < 300 for t in data["texts"])
    assert data["cut"] == [n for n, t in enumerate(data["texts"]) if len(t) > 100]
    assert len(data["cut"]) == 9


@pytest.mark.parametrize("character", ["x", "<", "\N{CJK UNIFIED IDEOGRAPH-4E00}", "\x01", "\N{GRINNING FACE}"])
def test_no_text_makes_a_page_too_large(monkeypatch, character):
    """What a character takes in the page depends on how it is escaped there."""
    monkeypatch.setattr(html, "MOST", 20_000)
    many = [one("fail", f"{n} {character * 3000}", op=f"my::op{n}") for n in range(20)]
    empty = [one("fail", "", op=f"my::op{n}") for n in range(20)]
    assert len(html.render(of(report(*many)))) < len(html.render(of(report(*empty)))) + 22_000


def test_nothing_is_a_page_too():
    assert "nothing was run" in Page(html.render(of(report()))).all("h1")[0]
