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
