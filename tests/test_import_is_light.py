"""Importing the package, the plugin or the command line costs next to nothing."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

OPCHECK = str(pathlib.Path(sys.executable).with_name("opcheck"))

#: Seconds that an answer may take which needs no torch.
LIMIT = 0.3


@pytest.mark.parametrize("module", ["opcheck_suite", "opcheck_suite.plugin", "opcheck_suite.cli"])
def test_importing_it_imports_no_torch(module):
    heavy = "{'torch', 'numpy', 'hypothesis', 'opcheck_suite.engine', 'opcheck_suite.api'}"
    code = f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


WITHOUT_TORCH = {
    "list": "fake.strides",
    "list fake.*": "fake.strides",
    "explain fake.strides": "fake.strides",
    "explain lint.private": "torch.library.opcheck",
    "lint --list": "lint.private",
    f"lint {__file__}": "no findings in 1 file",
}


@pytest.mark.parametrize("words", WITHOUT_TORCH)
def test_catalogue_and_lint_need_no_torch(words):
    code = (
        "import sys; from opcheck_suite.cli import main; status = main(sys.argv[1:]);"
        "print('torch' in sys.modules, status, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words.split()], capture_output=True, text=True, check=True)
    assert done.stderr.split() == ["False", "0"]
    assert WITHOUT_TORCH[words] in done.stdout


@pytest.mark.parametrize("words", ["list", "explain fake.strides", "--version", "rum", f"lint {__file__}"])
def test_it_answers_at_once(words):
    """The best of five, in processor time: none of these waits for anything, and the machine may be busy."""
    assert min(_processor_seconds([OPCHECK, *words.split()]) for _ in range(5)) < LIMIT


def _processor_seconds(command: list[str]) -> float:
    # the first of them may have to write bytecode, which some machines are told not to keep
    keeping = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=keeping)
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return used.ru_utime + used.ru_stime


def test_a_pytest_session_without_the_option_imports_no_torch(tmp_path):
    (tmp_path / "test_plain.py").write_text("import sys\n\ndef test_plain():\n    assert 'torch' not in sys.modules\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
