"""What the README says of graph breaks."""

from __future__ import annotations

import pathlib

import pytest
import torch

from opcheck_suite import cli

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="it quotes torch, and is written with torch 2.13")
def test_the_example_is_what_is_printed(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    shown = (ROOT / "README.md").read_text().partition("<!-- breaks")[2].partition("```text\n")[2].partition("```")[0]
    assert cli.main(["breaks", "examples/limiter.py:limit", "--args", "example"]) == 1
    assert shown
    assert shown.rstrip() in capsys.readouterr().out
