"""The badge: what it says, as a picture and for shields.io."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import pytest

from opcheck_suite import reports
from opcheck_suite.reports.merged import badge
from tests.reports.merged.made import everything, of, one, report

pytestmark = pytest.mark.usefixtures("few_checks")

REGISTERED = one(check="registration.name")
SAID = [
    ([REGISTERED, one(), one(check="compile.parity")], ("1/1 ops compile", "brightgreen")),
    ([REGISTERED, one()], ("1/1 ops eager", "brightgreen")),
    ([REGISTERED, one(), one(op="my::two")], ("1/2 ops eager", "orange")),
    ([REGISTERED], ("1/1 ops registered", "brightgreen")),
    ([REGISTERED, one("fail", "x")], ("0/1 ops compile", "red")),
    ([one("skip", "x")], ("nothing was run", "lightgrey")),
    ([], ("nothing was run", "lightgrey")),
]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(("results", "said"), SAID)
def test_a_badge_counts_ops_that_have_their_level_everywhere(results, said):
    assert badge.message(of(report(*results))) == said


def test_an_op_counts_only_where_it_has_its_level_in_every_environment():
    good, bad = report(REGISTERED, one()), report(REGISTERED, one("xfail", "x"), torch="2.14.1")
    assert badge.message(of(good, bad)) == ("0/1 ops compile", "orange")


def test_an_incomplete_matrix_has_no_figure_on_its_badge():
    assert badge.message(everything()) == ("incomplete", "lightgrey")


@pytest.mark.parametrize(("results", "said"), SAID)
def test_the_endpoint_is_what_shields_io_reads(results, said):
    """Keys and types as https://shields.io/badges/endpoint-badge lists them."""
    found = json.loads(badge.endpoint(of(report(*results))))
    assert found == {
        "schemaVersion": 1,
        "label": "torch conformance",
        "message": said[0],
        "color": said[1],
        "isError": said[1] == "red",
    }


@pytest.mark.parametrize(("results", "said"), SAID)
def test_the_picture_says_the_same_to_eyes_and_to_screen_readers(results, said):
    drawn = ET.fromstring(badge.svg(of(report(*results))))
    assert drawn.tag == f"{SVG}svg"
    assert drawn.get("role") == "img"
    assert drawn.get("aria-label") == drawn.findtext(f"{SVG}title") == f"torch conformance: {said[0]}"
    assert [t.text for t in drawn.iter(f"{SVG}text")] == ["torch conformance", said[0]]
    assert not [e for e in drawn.iter() if e.tag in (f"{SVG}script", f"{SVG}image", f"{SVG}a")]


def test_white_text_can_be_read_on_every_colour():
    def luminance(colour: str) -> float:
        parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return sum(c * weight for c, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))

    colours = {c for results, _ in SAID for c in re.findall('fill="(#[0-9a-f]{6})"', badge.svg(of(report(*results))))}
    assert len(colours) == 4
    assert min(1.05 / (luminance(c) + 0.05) for c in colours | {"#444444"}) >= 4.5


def test_texts_lie_within_their_halves_and_are_not_stretched(browser, tmp_path):
    pictures = [badge.svg(of(report(*results))) for results, _ in SAID]
    reports.write(str(tmp_path / "badges.html"), "<!doctype html>" + "".join(pictures))
    browser.open(tmp_path / "badges.html")
    found = browser.run(
        "Array.from(document.querySelectorAll('svg')).map(s => { const t = Array.from(s.querySelectorAll('text'));"
        " const boxes = t.map(e => e.getBBox()), split = s.querySelector('path').getBBox().x;"
        " const drawn = boxes.map(b => b.width); t.forEach(e => e.removeAttribute('textLength'));"
        " return [boxes[0].x, boxes[0].x + drawn[0], split, boxes[1].x, boxes[1].x + drawn[1], s.width.baseVal.value,"
        " ...t.map((e, n) => drawn[n] / e.getBBox().width)]; })"
    )
    assert len(found) == len(SAID)
    for left, left_end, split, right, right_end, width, *stretched in found:
        assert 3 < left < left_end < split < right < right_end < width - 3
        assert all(0.85 < ratio < 1.15 for ratio in stretched)
    assert browser.complaints() == []
