"""``pytest --opcheck-guard``."""

from __future__ import annotations

pytest_plugins = ["pytester"]

TEST = """
import torch

def test_it():
    torch.library.define("pytorch::suite_probe", "(Tensor x) -> Tensor")
"""


def test_the_option_makes_torch_refuse(pytester):
    pytester.makepyfile(TEST)
    refused = pytester.runpytest_subprocess("--opcheck-guard")
    refused.assert_outcomes(failed=1)
    refused.stdout.fnmatch_lines(["*ReservedNamespaceError: pytorch::suite_probe is defined at *.py:4, but namespace*"])
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


LOSSY = """
import torch

def register():
    library = torch.library.Library("suite_lossy", "FRAGMENT")
    library.define("x(Tensor x) -> Tensor")

register()
"""


def test_the_option_reports_a_library_that_nobody_keeps(pytester):
    pytester.makepyfile(lossy_ops=LOSSY, test_it="import lossy_ops\n\ndef test_it():\n    pass\n")
    run = pytester.runpytest_subprocess("--opcheck-guard")
    run.assert_outcomes(passed=1, warnings=1)
    run.stdout.fnmatch_lines(["*lossy_ops.py:4: RegistrationWarning: the Library made at * was garbage-collected*"])
    strict = pytester.runpytest_subprocess("--opcheck-guard", "-W", "error")
    assert strict.ret != 0
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
