"""What options come to; that both doors offer the same ones is held by the tests of the doors."""

from __future__ import annotations

from opcheck_suite.options import RunOptions


def test_large_tensors_raise_the_limit_on_memory_and_no_limit_stays_none():
    assert RunOptions().memory_limit == 4 << 30
    assert RunOptions(large=True).memory_limit == 36 << 30
    assert RunOptions(memory=0.5).memory_limit == 1 << 29
    assert RunOptions(memory=0, large=True).memory_limit == 0
