"""The page: its structure, and that what others wrote is text in it. No browser runs its script here."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest

from opcheck_suite.reports.merged import html
from tests.reports.merged.made import EVIL, everything, of, one, report

pytestmark = pytest.mark.usefixtures("few_checks")

_VOID = {"meta", "input"}


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


def test_the_matrix_has_a_cell_for_each_check_of_each_row():
    merged = everything()
    page = Page(html.render(merged))
    assert page.all("th", **{"class": "check"}) == list(merged.checks)
    names = [str(row) for row in merged.rows]
    assert [t for t in page.all("th", scope="row") if t in names] == names
    assert len([1 for name, a, _ in page.found if name == "td" and "class" in a and len(a["class"]) <= 1]) == len(
        merged.checks
    ) * len(merged.rows)


def test_cells_are_one_character_where_environments_agree():
    page = Page(html.render(of(report(one()), report(one(), torch="2.14.1"))))
    assert page.all("td", **{"class": "g"}) == ["."]
    page = Page(html.render(of(report(one()), report(one("fail", "x"), torch="2.14.1"))))
    assert page.all("td", **{"class": "b"}) == [".F"]


def test_filters_have_labels_and_cells_can_be_reached_by_keyboard():
    text = html.render(everything())
    page = Page(text)
    controls = [(a.get("type"), a["id"]) for name, a, _ in page.found if name in ("input", "select")]
    assert controls == [("checkbox", "bad"), (None, "family"), ("search", "text")]
    assert len(page.all("label")) == len(controls)
    assert page.all("option")[1:] == list(dict.fromkeys(c.partition(".")[0] for c in everything().checks))
    for word in ("prefers-color-scheme: dark", "ArrowDown", '"Enter"', "tabIndex"):
        assert word in text


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


def test_missing_jobs_are_shown():
    page = Page(html.render(everything()))
    problems = page.all("td", **{"class": "problem"})
    assert problems[-1] == "there is no such report"
    assert len(problems) == 2


def test_long_texts_are_cut_and_say_so(monkeypatch):
    monkeypatch.setattr(html, "MOST", 1000)
    many = [one("fail", f"{n}" + "x" * 900, op=f"my::op{n}") for n in range(9)]
    data = Page(html.render(of(report(*many)))).data()
    assert all(len(t) < 300 for t in data["texts"])
    assert data["texts"][1].endswith("... (cut; the JSON form has all)")


def test_nothing_is_a_page_too():
    assert "nothing was run" in Page(html.render(of(report()))).all("h1")[0]
