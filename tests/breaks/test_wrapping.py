"""The reason for which reference ops wrap a function: it breaks the graph, and the op does not."""

from __future__ import annotations

import dataclasses

import pytest

from opcheck_suite import check_op, count_graph_breaks
from opcheck_suite.ops import info
from opcheck_suite.specs import samples
from reference_ops.python.specs import SPECS

WRAPPING = {info(spec.op).name: spec for spec in SPECS if spec.unwrapped is not None}


def test_which_reference_ops_wrap_a_function():
    """The others compute with torch operations that compilers trace, or have no function of their own inside."""
    assert set(WRAPPING) == {
        "reference::tone_curve",  # NumPy
        "reference::limit_peak",  # a branch on .item()
        "reference::exact_sum",  # Python numbers, and the math module
        "reference::checksum",  # a C library
    }


@pytest.mark.parametrize("name", WRAPPING)
def test_the_function_breaks_the_graph_and_the_op_does_not(name):
    spec = WRAPPING[name]
    found = info(spec.op)
    for sample in samples(spec, device="cpu", dtype=None, info=found):
        assert count_graph_breaks(spec.unwrapped, *sample.args, **sample.kwargs) >= 1, sample.name
        assert count_graph_breaks(lambda *args, **kwargs: found.op(*args, **kwargs), *sample.args, **sample.kwargs) == 0


@pytest.mark.parametrize("name", WRAPPING)
def test_the_check_of_it_passes_and_is_not_skipped(name):
    report = check_op(WRAPPING[name], checks=["compile.wrapping"])
    assert {r.outcome.value for r in report.results if r.check == "compile.wrapping"} == {"pass"}


def test_a_function_that_raises_by_itself_is_no_reason_for_an_op():
    """Nor is it a break of the graph: whoever wrote the spec named the wrong function."""

    def other_signature(x):
        raise TypeError("not for this op")

    spec = dataclasses.replace(WRAPPING["reference::limit_peak"], unwrapped=other_signature)
    (result,) = [r for r in check_op(spec, checks=["compile.wrapping"]).results if r.check == "compile.wrapping"][:1]
    assert result.outcome.value == "warn"
    assert "raises where the op does not, without being compiled: TypeError: not for this op" in result.message
