"""Report files."""

from __future__ import annotations

import os
import stat

import pytest

from opcheck_suite import reports
from opcheck_suite.registry import UsageError


@pytest.mark.parametrize(
    ("name", "form"),
    [("a.json", "json"), ("b/c.md", "markdown"), ("d.TXT", "text"), ("e.xml", "junit"), ("f.html", "html")],
)
def test_the_ending_says_the_format(name, form):
    assert reports.format_of(name) == form


@pytest.mark.parametrize("name", ["a.pdf", "a", "json", "a.json.gz"])
def test_an_unknown_ending_is_told_with_the_known_ones(name):
    with pytest.raises(UsageError, match=r"reports are written as \.json, \.md, \.txt, \.xml, \.html"):
        reports.format_of(name)


def test_a_near_ending_is_told():
    with pytest.raises(UsageError, match=r"did you mean '\.json'"):
        reports.format_of("a.jsno")


def test_a_report_is_written_with_its_folders(tmp_path):
    target = tmp_path / "deep" / "er" / "report.json"
    reports.write(str(target), "text é\n")
    assert target.read_text(encoding="utf-8") == "text é\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o644
    assert os.listdir(target.parent) == ["report.json"]


def test_an_older_report_is_replaced(tmp_path):
    target = tmp_path / "report.json"
    target.write_text("a much longer older report")
    reports.write(str(target), "new")
    assert target.read_text() == "new"


def test_a_writer_that_fails_leaves_the_older_report_and_no_half_file(tmp_path, monkeypatch):
    target = tmp_path / "report.json"
    target.write_text("older")

    def full(*args):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        reports.write(str(target), "new")
    assert target.read_text() == "older"
    assert os.listdir(tmp_path) == ["report.json"]


def test_what_is_no_unicode_is_written_as_an_escape(tmp_path):
    reports.write(str(tmp_path / "report.md"), "\ud800 \N{EURO SIGN}")
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == "\\ud800 \N{EURO SIGN}"


def test_where_no_report_can_be_written_is_known_before_the_run(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(UsageError, match=r"file/report\.json' cannot be written: "):
        reports.prepare(str(tmp_path / "file" / "report.json"))
    with pytest.raises(UsageError, match=r"folder\.json' cannot be written: it is a folder"):
        reports.prepare(str(tmp_path / "folder.json"))
    with pytest.raises(UsageError, match="reports are written as"):
        reports.prepare(str(tmp_path / "report.pdf"))


def test_preparing_makes_the_folder_and_nothing_else(tmp_path):
    reports.prepare(str(tmp_path / "new" / "report.json"))
    assert os.listdir(tmp_path / "new") == []
