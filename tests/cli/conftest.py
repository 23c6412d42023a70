"""What the tests of the command line share."""

from __future__ import annotations

import pathlib

import pytest
import torch

from opcheck_suite import cli
from tests.fixtures import harness_ops  # noqa: F401 - registers ops that specs of these tests name


@pytest.fixture
def misuse(scratch, capsys):
    """Runs the command line on something wrong; returns its one line on stderr."""

    def run(*words: str) -> str:
        status = cli.main(words)
        out, err = capsys.readouterr()
        assert status == 2, err
        assert out == ""
        assert err.count("\n") == 1, err
        assert err.startswith("opcheck: ")
        assert "Traceback" not in err
        return err.strip().replace(str(scratch), "HERE").replace(torch.__version__, "TORCH")

    return run


@pytest.fixture
def specs(scratch):
    """Writes a file of specs; returns its name."""

    def write(name: str, body: str) -> str:
        path: pathlib.Path = scratch / name
        path.write_text(f"import torch\nfrom opcheck_suite import OpSpec, Sample\nx = torch.ones(2)\n{body}\n")
        return path.name

    return write
