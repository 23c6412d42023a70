"""``opcheck merge`` and ``opcheck diff``: what they print and write, and their exit statuses. No torch is needed."""

from __future__ import annotations

import dataclasses
import json as plain
import sys

import pytest

from opcheck_suite import cli, reports
from opcheck_suite.reports import json
from opcheck_suite.reports.merged import json as matrix_json
from opcheck_suite.reports.merged import merge
from tests.reports.merged import large
from tests.reports.merged.made import one, report


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write(here):
    def write(name: str, *results, **more) -> str:
        (here / name).write_text(json.render(report(*results, **more)))
        return name

    return write


def wrong(capsys, *words: str) -> str:
    """The one line on stderr of wrong usage."""
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err.strip()


def test_merge_prints_and_writes_every_form(here, write, capsys):
    words = ["merge", write("a.json", one()), write("b.json", one(), torch="2.14.1")]
    for name in ("m.json", "out/m.md", "m.txt", "m.html"):
        words += ["-o", name]
    assert cli.main([*words, "--badge", "b.svg", "--badge", "badge.json"]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ((here / "m.txt").read_text(), "")
    assert out.endswith("verdict  clean\n")
    assert len(matrix_json.parse((here / "m.json").read_text()).columns) == 2
    assert (here / "out" / "m.md").read_text().startswith("# Conformance: clean\n")
    assert (here / "m.html").read_text().startswith("<!doctype html>")
    assert (here / "b.svg").read_text().startswith("<svg")
    assert plain.loads((here / "badge.json").read_text())["schemaVersion"] == 1
    assert cli.main([*words[:3], "--format", "json"]) == 0
    assert plain.loads(capsys.readouterr().out)["kind"] == "matrix"


@pytest.mark.parametrize(
    ("results", "more", "words"),
    [
        ([one("fail", "wrong")], {}, []),
        ([one()], {"stopped": "interrupted"}, []),
        ([one()], {}, ["--expect", "linux-*"]),
        ([one()], {"options": {"shard": "1/2"}}, []),
        ([], {}, []),
    ],
    ids=["bad", "incomplete", "missing", "shard", "nothing"],
)
def test_what_is_bad_missing_or_incomplete_is_one(write, capsys, results, more, words):
    assert cli.main(["merge", write("a.json", *results, **more), *words]) == 1
    assert "verdict  clean" not in capsys.readouterr().out


def test_diff_is_one_where_something_is_newly_bad(here, write, capsys):
    old, new = write("old.json", one()), write("new.json", one("fail", "wrong"), torch="2.15.0")
    assert cli.main(["diff", old, new, "-o", "d.json", "-o", "d.md"]) == 1
    assert capsys.readouterr().out.endswith("verdict  1 newly bad\n")
    assert plain.loads((here / "d.json").read_text())["changes"][0]["kind"] == "newly bad"
    assert (here / "d.md").read_text().startswith("# What changed: 1 newly bad\n")
    assert cli.main(["diff", new, old]) == 0
    assert "fixed (1)" in capsys.readouterr().out


def test_a_matrix_and_a_report_can_be_compared(write, capsys):
    old, new = write("old.json", one()), write("new.json", one("fail", "wrong"))
    assert cli.main(["merge", old, "-o", "matrix.json"]) == 0
    assert cli.main(["diff", "matrix.json", new]) == 1
    assert cli.main(["diff", "matrix.json", old]) == 0
    assert "no difference" in capsys.readouterr().out


def test_what_cannot_be_read_is_one_line(here, write, capsys):
    good = write("good.json", one())
    (here / "binary.json").write_bytes(b"\xff\xfe")
    assert wrong(capsys, "merge", "binary.json").startswith("opcheck: 'binary.json' is no text in UTF-8")
    assert wrong(capsys, "merge", "god.json") == "opcheck: there is no file 'god.json'; did you mean 'good.json'?"
    assert wrong(capsys, "merge", ".").startswith("opcheck: '.' cannot be read")
    cli.main(["merge", good, "-o", "matrix.json"])
    capsys.readouterr()
    assert wrong(capsys, "merge", "matrix.json") == "opcheck: matrix.json: not a report: it is of kind 'matrix'"


def test_what_is_mistyped_is_one_line(write, capsys):
    good = write("good.json", one())
    assert wrong(capsys, "merge", good, "--expct", "x").endswith("unknown option '--expct'; did you mean '--expect'?")
    assert wrong(capsys, "merge", good, "-o", "m.jsno").endswith("did you mean '.json'?")
    assert wrong(capsys, "diff", good, good, "-o", "d.html").endswith("writes text, json, markdown, and no html")
    assert wrong(capsys, "merge", good, "-o", "m.xml").endswith("writes text, json, markdown, html, and no junit")
    assert wrong(capsys, "merge", good, "--badge", "b.png").startswith("opcheck: 'b.png': badges are written as")
    assert wrong(capsys, "diff", good, good, "--format", "html").startswith("opcheck: unknown format 'html'")
    assert wrong(capsys, "diff", good).endswith("the following arguments are required: NEW")


def test_conflicts_and_mixed_commits_are_usage_errors_with_the_way_out(write, capsys):
    good, bad = write("good.json", one()), write("bad.json", one("fail", "wrong"))
    assert "--allow-conflicts counts the worse" in wrong(capsys, "merge", good, bad)
    assert cli.main(["merge", good, bad, "--allow-conflicts"]) == 1
    capsys.readouterr()
    old, new = write("old.json", one(), commit="a"), write("new.json", one(), commit="b", torch="2.15.0")
    assert "--allow-mixed" in wrong(capsys, "merge", old, new)
    assert cli.main(["merge", old, new, "--allow-mixed"]) == 0


def test_what_cannot_be_written_after_all_is_three(write, monkeypatch, capsys):
    good = write("good.json", one())

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(reports.os, "replace", full)
    assert cli.main(["merge", good, "-o", "m.json"]) == 3
    out, err = capsys.readouterr()
    assert "verdict  clean" in out
    assert err == "opcheck: 'm.json' cannot be written: No space left on device\n"


# -- size


@pytest.mark.parametrize("verb", ["merge", "diff", "diff of reports"])
def test_large_matrices_are_merged_and_compared_within_seconds(here, verb):
    """Held to 5 s and 500 MB each, in processor time, since the machine may be busy; and a page of 5 MB."""
    reports = [large.report(n) for n in range(large.ENVIRONMENTS)]
    names = [f"{n}.json" for n in range(large.ENVIRONMENTS)]
    for name, made in zip(names, reports, strict=True):
        (here / name).write_text(json.render(made))
    opcheck = [sys.executable, "-m", "opcheck_suite.cli"]
    if verb == "merge":
        outputs = ["m.json", "m.md", "m.txt", "m.html"]
        command = ["merge", *names, *(word for name in outputs for word in ("-o", name)), "--badge", "b.svg"]
    elif verb == "diff":
        for name, shift in (("old.json", 0), ("new.json", 1)):  # all six environments have changed
            shifted = [
                dataclasses.replace(large.report(n + shift), environment=r.environment) for n, r in enumerate(reports)
            ]
            (here / name).write_text(matrix_json.render(merge.merge(zip(names, shifted, strict=True))))
        command = ["diff", "old.json", "new.json", "-o", "d.json", "-o", "d.md"]
    else:
        command = ["diff", *names[:2], "-o", "d.json", "-o", "d.md"]
    status, seconds, memory = large.cost([*opcheck, *command])
    print(f"{verb}: {seconds:.1f} s, {memory:.0f} MiB")
    assert status == 1
    assert seconds < 5
    assert memory * 1024**2 < 500e6
    if verb == "merge":
        assert (here / "m.html").stat().st_size < 5e6
        assert len((here / "m.md").read_bytes()) < 1024**2  # what GitHub shows of a step summary
