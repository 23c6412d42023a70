"""The command line as a process of its own."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

OPCHECK = str(pathlib.Path(sys.executable).with_name("opcheck"))
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


def test_the_command_and_the_module_are_the_same(scratch, fixtures):
    words = ["run", str(fixtures / "clean_specs.py"), "--checks", "values.runs"]
    shown = []
    for command in ([OPCHECK], [sys.executable, "-m", "opcheck_suite.cli"]):
        done = subprocess.run([*command, *words], capture_output=True, text=True, env=ENVIRONMENT)
        assert done.returncode == 0, done.stderr
        shown.append(re.sub(r"in \d+\.\d s", "", done.stdout))
    assert shown[0] == shown[1]


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["run", "mixed_specs.py", "--checks", "values.reference"], 1),
        (["run", "mixed_specs.py", "--device", "hpu"], 2),
        (["explain", "fake.stride"], 2),
    ],
)
def test_exit_statuses_of_the_process(words, status, fixtures):
    done = subprocess.run([OPCHECK, *words], capture_output=True, text=True, cwd=fixtures, env=ENVIRONMENT)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error_and_changes_no_verdict(fixtures):
    def read_nothing(*words: str) -> tuple[int, str]:
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "w") as closed:
            done = subprocess.run([OPCHECK, *words], stdout=closed, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        return done.returncode, done.stderr

    assert read_nothing("list") == (0, "")
    status, err = read_nothing("run", str(fixtures / "mixed_specs.py"), "--checks", "values.reference")
    assert status == 1
    assert "Traceback" not in err
    assert "Exception" not in err
