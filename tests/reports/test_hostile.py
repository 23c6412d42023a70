"""Files that others wrote: what is no report or matrix is refused, and what is one is shown harmlessly."""

from __future__ import annotations

import json as plain
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable

import pytest

from opcheck_suite import cli, sharding
from opcheck_suite.registry import UsageError
from opcheck_suite.reports import json
from opcheck_suite.reports.merged import json as matrix_json
from tests.reports.merged.made import EVIL, of, one, report

GOOD = json.render(report(one("fail", "wrong")))
MATRIX = matrix_json.render(of(report(one("fail", "wrong")), report(one(), torch="2.14.1")))


def changed(**parts) -> str:
    return plain.dumps(plain.loads(GOOD) | parts)


def row(**parts) -> str:
    return changed(results=[plain.loads(GOOD)["results"][0] | parts])


def matrix(**parts) -> str:
    return plain.dumps(plain.loads(MATRIX) | parts)


def column(**parts) -> str:
    columns = plain.loads(MATRIX)["columns"]
    return matrix(columns=[columns[0] | parts, columns[1]])


REFUSED = {
    # truncated
    "empty": "",
    "half": GOOD[: len(GOOD) // 2],
    "without its last byte but one": GOOD[:-2],
    "half a matrix": MATRIX[: len(MATRIX) // 2],
    # foreign
    "not JSON": "<html></html>",
    "another program's": '{"tests": 3}',
    "a list": "[]",
    "null": "null",
    "of another kind": changed(kind="coverage"),
    "a difference": changed(kind="diff"),
    "with something after it": GOOD + "{}",
    # of the future
    "a future report": changed(schema_version=2),
    "a future matrix": matrix(schema_version=2),
    "a version that is no number": changed(schema_version="1"),
    "a version that only equals one": changed(schema_version=True),
    "an outcome that does not exist yet": row(outcome="flaky"),
    "a result with a new part": row(flavour="sweet"),
    # malicious
    "a result with less": changed(results=[{"op": EVIL}]),
    "no results": changed(results={"0": 1}),
    "an op that is no text": row(op=["my::op"]),
    "an environment that is no text": changed(environment={"torch": 2}),
    "deep": "[" * 100_000,
    "a deep report": '{"schema_version": 1, "kind": ' + "[" * 100_000,
    "NaN": GOOD.replace("0.25", "NaN"),
    "infinite": GOOD.replace("0.25", "1e999"),
    "an endless number": GOOD.replace("0.25", "9" * 5000),
    "a matrix of another size": matrix(checks=[]),
    "a matrix with a place outside": matrix(findings=[[0, 0, 9, 0, 0]]),
    "a matrix that took for ever": column(jobs=[{"report": "a", "seconds": 10**400, "stopped": "", "shard": ""}]),
    "a matrix with an odd seed": column(seed="x"),
}


@pytest.fixture
def told(scratch, capsys) -> Callable[..., str]:
    """Runs a command that must be refused; returns the line that says why."""

    def run(*words: str) -> str:
        assert cli.main(words) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        return err

    return run


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_report_of_ours_is_refused_in_a_line(scratch, told, name):
    (scratch / "good.json").write_text(GOOD)
    (scratch / "odd.json").write_text(REFUSED[name])
    for words in (
        ["merge", "good.json", "odd.json"],
        ["diff", "good.json", "odd.json"],
        ["diff", "odd.json", "good.json"],
    ):
        assert told(*words).startswith("opcheck: odd.json: ")


@pytest.mark.parametrize("name", ["empty", "half", "a list", "deep", "NaN", "infinite", "an endless number"])
def test_durations_are_read_with_the_same_care(scratch, name):
    (scratch / "odd.json").write_text(REFUSED[name])
    with pytest.raises(UsageError, match="is no report"):
        sharding.durations("odd.json")


#: Names and messages of which each means something to a reader of one of the forms.
SHOWN = {
    "script": EVIL,
    "end of a script": "</script><script>alert(1)</script>",
    "attribute": '" onmouseover="alert(1)',
    "address": "javascript:alert(1)",
    "table": "a | b || c",
    "code": "``` ` ~~~",
    "markup": "[x](javascript:alert(1)) **b** _c_ @someone #1 <img src=x>",
    "terminal": "\x1b[2J\x1b]0;title\x07\x9b31m",
    "direction": "\u202egnp.exe",
    "null": "a\x00b",
    "no Unicode": "\ud800 \udfff",
    "command of a runner": "\n::error::x\n  ::stop-commands::x\n##[set-output name=a]b",
    "separators": "\u2028\u2029\x0b\x0c\x85",
    "entity": "&lt;b&gt; &#x3c;b&#x3e; ]]>",
    "long": "x" * 50_000,
    "nothing": "",
}

FORMS = ("m.json", "m.md", "m.txt", "m.html", "d.json", "d.md", "d.txt")


@pytest.mark.parametrize("name", SHOWN)
def test_whatever_a_report_holds_is_shown_harmlessly(scratch, capfd, name):
    text = SHOWN[name]
    parts = {"torch": f"2.13{text}", "platform": text, "library": text, "commit": text}
    bad = one("fail", f"{text}\n{text}", op=f"my::{text}", check=f"values.{text}", sample=text, dtype=text)
    (scratch / "good.json").write_text(GOOD)
    (scratch / "odd.json").write_text(json.render(report(bad, stopped=text, options={"source": text}, **parts)))
    merge = ["merge", "odd.json", "--expect", text, "--badge", "b.svg", "--badge", "b.json"]
    diff = ["diff", "good.json", "odd.json"]
    for command, letter in ((merge, "m"), (diff, "d")):
        outputs = [word for form in FORMS if form[0] == letter for word in ("-o", form)]
        assert cli.main([*command, *outputs]) == 1
    out, err = capfd.readouterr()
    assert err == ""
    written = {form: (scratch / form).read_bytes().decode() for form in (*FORMS, "b.svg", "b.json")}
    for shown in (out, written["m.txt"], written["d.txt"], written["m.md"], written["d.md"]):
        assert not [c for c in shown if not c.isprintable() and c != "\n"]
    for shown in (out, written["m.txt"], written["d.txt"]):
        assert not [line for line in shown.splitlines() if re.match(r"\s*(::|##\[)", line)]
    for form in ("m.md", "d.md"):
        assert "<" not in "".join("".join(line.split("`")[::2]) for line in written[form].splitlines())
    assert "<img" not in written["m.html"].lower()
    assert len(re.findall("<script", written["m.html"], re.I)) == 2
    for form in ("m.json", "d.json", "b.json"):
        plain.loads(written[form], parse_constant=pytest.fail)
    assert matrix_json.parse(written["m.json"]).bad
    assert ET.fromstring(written["b.svg"]).tag.endswith("svg")
    assert sorted(os.listdir(scratch)) == sorted([*written, "good.json", "odd.json"])
