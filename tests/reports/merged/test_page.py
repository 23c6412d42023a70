"""The page in a browser: what a person can do with it, by mouse and by keyboard."""

from __future__ import annotations

import functools
import pathlib

import pytest

import tests.browser
from opcheck_suite import reports
from opcheck_suite.reports.merged import html
from tests.browser import Browser
from tests.reports.merged import large
from tests.reports.merged.made import EVIL, everything, of, one, report

pytestmark = pytest.mark.usefixtures("few_checks")

WRONG = "values differ\ninput   large, transposed(x)\ncall    op(x=float32[1, 3])"


@pytest.fixture
def page(browser: Browser, tmp_path: pathlib.Path):
    """Opens a page in the browser. In the end it must have asked for nothing, and complained of nothing."""

    def show(text: str, **how) -> Browser:
        path = tmp_path / "page.html"
        reports.write(str(path), text)
        browser.open(path, **how)
        return browser

    yield show
    assert browser.complaints() == []
    assert set(browser.requests()) == {(tmp_path / "page.html").as_uri()}


def two():
    """Two environments that disagree on one op of three."""
    rest = [
        one(op="my::second", check="fake.runs"),
        one("skip", "no C++ compiler", op="my::third", check="compile.parity"),
    ]
    return of(report(one("fail", WRONG, sample="large"), *rest), report(one(), *rest, torch="2.14.1"))


def ops(browser: Browser) -> list[str]:
    """The ops whose rows can be seen."""
    return browser.run(
        "Array.from(matrix.tBodies[0].rows).filter(r => r.offsetHeight > 0).map(r => r.cells[0].textContent)"
    )


def checks(browser: Browser) -> list[str]:
    """The checks whose columns can be seen, in the head and in every row alike."""
    found = browser.run(
        "Array.from(matrix.rows).filter(r => r.offsetHeight > 0 && r.cells.length > 2).map(r =>"
        " Array.from(r.cells).map((c, n) => c.offsetWidth > 0 ? n : 0).filter(n => n > 0).join())"
    )
    assert len(set(found)) == 1
    return browser.run(f"[{found[0]}].map(n => matrix.rows[0].cells[n].textContent)")


def told(browser: Browser) -> str:
    """What can be read in the details, or an empty string while they are closed."""
    return browser.run("told.offsetHeight > 0 ? told.innerText : ''")


def focus(browser: Browser) -> str:
    """What has the focus: a cell as ``row,column``, or another element's id."""
    return browser.run(
        "document.activeElement.matches('td') ? document.activeElement.parentNode.sectionRowIndex + ',' +"
        " (document.activeElement.cellIndex - 1) : document.activeElement.id || document.activeElement.tagName"
    )


# -- filters


def test_filters_hide_rows_and_columns(page):
    opened = page(html.render(two()))
    assert ops(opened) == ["my::op", "my::second", "my::third"]
    assert checks(opened) == ["values.runs", "fake.runs", "compile.parity"]
    opened.click("by('bad')")
    assert (ops(opened), checks(opened)) == (["my::op"], ["values.runs"])
    assert opened.run("by('shown').innerText") == "1 of 3 ops"
    opened.click("by('bad')")
    opened.click("by('text')")
    opened.press(*"SECO")
    assert (ops(opened), len(checks(opened))) == (["my::second"], 3)
    opened.press(*"x")
    assert ops(opened) == []
    assert opened.run("by('none').innerText") == "No op is left: the filters hide all."


def test_a_family_alone_and_with_the_other_filters(page):
    opened = page(html.render(two()))
    opened.run("by('family').focus()")
    opened.press("f")  # as a person chooses an entry by its first letter
    assert opened.run("by('family').value") == "fake"
    assert (len(ops(opened)), checks(opened)) == (3, ["fake.runs"])
    opened.click("by('bad')")
    assert ops(opened) == []
    opened.click("by('bad')")
    assert (len(ops(opened)), checks(opened)) == (3, ["fake.runs"])


# -- what a cell tells


def test_a_click_shows_message_sample_fix_and_the_line_that_runs_it_again(page):
    opened = page(html.render(two()))
    assert told(opened) == ""
    opened.click("cellOf(0, 0)")
    shown = told(opened)
    assert shown.splitlines()[:2] == ["close (Esc)", "my::op values.runs"]
    parts = [
        "fail torch 2.13.0+cpu, cpu",
        "sample large",
        WRONG,
        "opcheck run my_ops.specs --ops my::op --checks values.runs",
        "pass torch 2.14.1, cpu",
        "How to fix what values.runs finds.",
    ]
    places = [" ".join(shown.split()).find(" ".join(part.split())) for part in parts]
    assert places == sorted(places)
    assert places[0] >= 0
    opened.click("cellOf(2, 2)")
    shown = told(opened)
    assert "no C++ compiler" in shown
    assert "opcheck run" not in shown  # a skip is nothing to be fixed
    opened.click("by('close')")
    assert told(opened) == ""


def test_environments_that_tell_the_same_are_told_once(page):
    found = [
        report(one("fail", WRONG), device=device, torch=torch) for device in ("cpu",) for torch in ("2.13", "2.14")
    ]
    opened = page(html.render(of(*found)))
    assert opened.run("cellOf(0, 0).textContent") == "F"
    opened.click("cellOf(0, 0)")
    assert told(opened).count("values differ") == 1
    assert "torch 2.13, cpu; torch 2.14, cpu" in told(opened)


def test_the_line_that_runs_it_again_names_device_and_seed(page):
    bad = one("fail", WRONG, op="my::it's", device="cuda")
    opened = page(reports.render("html", report(bad, options={"seed": 3}, device="cuda (NVIDIA H200)")))
    opened.click("cellOf(0, 0)")
    line = """opcheck run my_ops.specs --ops 'my::it'"'"'s' --checks values.runs --device cuda --seed 3"""
    assert line in told(opened).splitlines()


def test_a_cell_that_was_not_run_says_so(page):
    opened = page(html.render(two()))
    opened.click("cellOf(0, 1)")
    assert "not part of the run" in told(opened)


def test_the_chosen_cell_is_not_covered_by_the_details(page):
    for size in ({}, {"width": 400, "height": 700}):
        opened = page(html.render(of(large_report())), **size)
        opened.click("cellOf(180, 40)")
        box, head, over = opened.run(
            "[cellOf(180, 40), matrix.tHead, told].map(e => { const r = e.getBoundingClientRect();"
            " return [r.left, r.top, r.right, r.bottom]; })"
        )
        assert head[3] <= box[1]
        assert box[3] <= over[1]
        assert opened.run("document.documentElement.scrollWidth <= innerWidth")


# -- by keyboard alone


def test_the_keyboard_reaches_opens_and_closes(page):
    opened = page(html.render(two()))
    order = []
    for _ in range(4):
        opened.press("Tab")
        order.append(focus(opened))
    assert order == ["bad", "family", "text", "0,0"]
    opened.press("Enter")
    assert "values differ" in told(opened)
    opened.press("Escape")
    assert (told(opened), focus(opened)) == ("", "0,0")
    opened.press(" ")
    assert "values differ" in told(opened)
    opened.press("Tab")
    assert focus(opened) == "close"
    opened.press("Enter")
    assert (told(opened), focus(opened)) == ("", "0,0")


def test_arrows_move_among_what_is_shown_and_the_details_follow(page):
    opened = page(html.render(two()))
    opened.press("Tab", "Tab", "Tab", "Tab")
    went = []
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowUp", "ArrowLeft", "End", "Home"):
        opened.press(key)
        went.append(focus(opened))
    assert went == ["0,1", "1,1", "1,0", "0,0", "0,0", "0,0", "0,2", "0,0"]
    opened.press("Enter", "ArrowDown", "ArrowRight")
    assert told(opened).splitlines()[1] == "my::second fake.runs"
    opened.run("by('family').value = 'compile'; filter()")
    opened.press("Escape")
    opened.run("by('text').focus()")
    opened.press("Tab")
    assert focus(opened) == "0,2"
    opened.press("ArrowRight", "ArrowLeft")
    assert focus(opened) == "0,2"


def test_a_cell_says_to_a_screen_reader_what_it_shows(page):
    opened = page(html.render(two()))
    opened.press("Tab", "Tab", "Tab", "Tab")
    said = opened.run("document.activeElement.getAttribute('aria-label')")
    assert said == "my::op  values.runs: torch 2.13.0+cpu, cpu: fail; torch 2.14.1, cpu: pass"


# -- how it looks

#: The lowest contrast of any text that is shown with what is behind it, and the text. As WCAG 2.2 defines contrast.
CONTRAST = """
(() => {
  const luminance = (rgb) => rgb.map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, n) => sum + c * [0.2126, 0.7152, 0.0722][n], 0);
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const behind = (element) => {
    for (let e = element; e !== null; e = e.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(e).backgroundColor);
      if (a === 1) return [r, g, b];
      if (a > 0) throw new Error("half transparent: " + e.outerHTML.slice(0, 80));
    }
    throw new Error("nothing is behind");
  };
  let least = [99, ""];
  const look = (element, colour, text) => {
    const [a, b] = [luminance(parse(colour).slice(0, 3)), luminance(behind(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < least[0]) least = [ratio, text + " in " + element.outerHTML.slice(0, 80)];
  };
  let looked = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
    if (text === "" || element.getClientRects().length === 0) continue;
    look(element, getComputedStyle(element).color, text);
    looked++;
  }
  for (const e of document.querySelectorAll("input[type=search], select")) {
    look(e, getComputedStyle(e).color, "what is typed");
    look(e, getComputedStyle(e, "::placeholder").color, "placeholder");
  }
  return [looked, ...least];
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(page, scheme):
    opened = page(html.render(everything()), scheme=scheme)
    opened.click("cellOf(2, 1)")
    opened.run("document.querySelector('#matrix td.b').focus()")
    looked, least, text = opened.run(CONTRAST)
    assert looked > 80
    assert least >= 4.5, text
    light = opened.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert light is (scheme == "light")


def test_what_is_bad_can_be_told_without_colours(page):
    opened = page(html.render(everything()))
    marks = opened.run("Array.from(document.querySelectorAll('#matrix td.b')).map(c => c.textContent.trim())")
    assert sorted("".join(marks).replace(" ", "")) == sorted("FXCTEF")


# -- size


@functools.cache
def large_report():
    return large.report(0)


@functools.cache
def large_page() -> str:
    return html.render(of(*(large.report(n) for n in range(large.ENVIRONMENTS))))


def _spent(browser: Browser) -> float:
    metrics = {m["name"]: m["value"] for m in browser.call("Performance.getMetrics")["metrics"]}
    return metrics["TaskDuration"]


def test_a_large_page_is_small_and_usable_within_a_second(page):
    """Opened, drawn, filtered and drawn again, in seconds of the processor: the machine may be busy otherwise."""
    text = large_page()
    assert len(text.encode()) < 5e6
    opened = page("<!doctype html>")
    opened.call("Performance.enable", timeDomain="threadTicks")
    before = _spent(opened)
    page(text)
    clock = opened.run("performance.now()") / 1000
    assert len(ops(opened)) == large.OPS
    assert opened.run("matrix.tBodies[0].rows[0].cells.length") == 1 + large.CHECKS
    shown = _spent(opened)
    opened.click("by('bad')")
    opened.run("by('family').value = 'values'; by('text').value = 'op_29'; filter()")
    opened.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    assert 0 < len(ops(opened)) < 12
    assert {check.partition(".")[0] for check in checks(opened)} == {"values"}
    filtered = _spent(opened)
    print(
        f"{len(text.encode()) / 1e6:.2f} MB; opened {shown - before:.2f} s ({clock:.2f} s by the clock),"
        f" filtered {filtered - shown:.2f} s"
    )
    assert filtered - before < 1
    opened.call("Performance.disable")


def test_rows_far_down_have_their_cells_once_they_are_in_sight(page):
    opened = page(large_page())
    assert opened.run("matrix.tBodies[0].rows[299].cells.length") == 2
    opened.run("by('scroll').scrollTo(0, 1e6)")
    opened.run("new Promise((done) => setTimeout(done, 100))")
    assert opened.run("matrix.tBodies[0].rows[299].cells.length") == 1 + large.CHECKS
    # a filter that was set before holds for cells that are made later
    opened = page(large_page())
    opened.run("by('family').value = 'fake'; filter(); make(299)")
    assert len(checks(opened)) == 10


# -- what others wrote

ATTACKS = (
    EVIL,
    "</script><script>document.title='caught'</script>",
    "</td></table><img src=x onerror=\"document.title='caught'\">",
    '" onfocus="document.title=\'caught\'" autofocus x="',
    "' onmouseover='document.title=1",
    "javascript:document.title='caught'",
    "<a href=\"javascript:document.title='caught'\">x</a>",
    "<svg onload=document.title='caught'>",
    "<!--<script>",
    "{{ 7*7 }}{% raw %}",
    "]]>\u2028\u2029\x00\ud83d",
    "<style>*{display:none}</style><meta http-equiv=refresh content=0;url=https://example.org>",
    "__proto__",
    "constructor",
)


def test_names_and_messages_execute_nothing(page):
    bad = [
        one("fail", f"{text}\n{text}", op=f"my::{text}", sample=text, check=f"values.{n}{text}")
        for n, text in enumerate(ATTACKS)
    ]
    made = report(*bad, torch=ATTACKS[1], device=ATTACKS[2], library=ATTACKS[3], options={"source": ATTACKS[1]})
    opened = page(html.render(of(made, expect=[ATTACKS[4], ATTACKS[1]])))
    title = opened.run("document.title")
    assert title.startswith("Conformance: ")
    scripts = opened.run("document.scripts.length")
    for n, text in enumerate(ATTACKS):
        opened.click(f"rows[{n}].querySelector('td.b')")
        assert "run it again" in told(opened)
        shown = opened.run("document.querySelector('#what pre').textContent")
        assert shown.count(text) == 2
    opened.click("by('text')")
    opened.press(*"<script")
    assert len(ops(opened)) == 3
    assert opened.run("document.title") == title
    assert opened.run("document.scripts.length") == scripts == 2
    assert opened.run("document.querySelectorAll('img, svg, a, iframe, link, body style').length") == 0


def test_the_policy_of_the_page_stops_what_would_slip_through(browser, tmp_path):
    """Not only is all text escaped: a script that got into the page all the same would not run."""
    path = tmp_path / "page.html"
    path.write_text(html.render(two()).replace("</body>", "<script>document.title = 'caught'</script></body>"))
    browser.open(path)
    assert browser.run("document.title").startswith("Conformance: ")
    assert "Content Security Policy" in str(browser.complaints())


def test_nothing_was_run_is_a_page_without_errors(page):
    opened = page(html.render(of(report())))
    assert opened.run("document.querySelector('h1').innerText") == "Conformance: nothing was run"
    opened.press("Tab", "Tab", "Tab", "Tab", "Enter", "Escape")
    opened.click("by('bad')")


def test_without_a_browser_tests_are_skipped_or_fail_where_one_must_be_there(monkeypatch):
    monkeypatch.setattr(tests.browser, "NAMES", ("no-such-browser",))
    monkeypatch.delenv(tests.browser.REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt-get install chromium"):
        tests.browser.required()
    monkeypatch.setenv(tests.browser.REQUIRED, "1")
    with pytest.raises(pytest.fail.Exception, match="is set, and no Chromium was found"):
        tests.browser.required()
    text = (pathlib.Path(__file__).parents[3] / ".ci" / "run").read_text()
    assert f"export {tests.browser.REQUIRED}=1\nmake test" in text
