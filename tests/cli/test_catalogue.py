"""``opcheck list`` and ``opcheck explain``, and the help."""

from __future__ import annotations

import pytest

from opcheck_suite import cli


def test_list_shows_what_was_asked_for(capsys):
    assert cli.main(["list", "fake", "!fake.strides"]) == 0
    shown = [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:]]
    assert "fake.shape" in shown
    assert "fake.strides" not in shown
    assert all(id.startswith("fake.") for id in shown)
    assert cli.main(["list", "--format", "markdown"]) == 0
    assert "| `fake.strides`" in capsys.readouterr().out


def test_explain_says_what_why_and_how(capsys):
    assert cli.main(["explain", "fake.strides"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("fake.strides: ")
    assert {"what", "why", "fix", "tier"} <= {line.split()[0] for line in out.splitlines() if line.strip()}


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["--version"]], ids=" ".join)
def test_help_and_version_are_clean(words, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(words)
    assert caught.value.code == 0
    assert capsys.readouterr().out


def test_no_word_at_all_shows_the_help(capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main([])
    assert caught.value.code == 2
    assert "VERB" in capsys.readouterr().out
