"""The functions for tests."""

from __future__ import annotations

import sys
import zlib

import pytest
import torch
import torch._dynamo

import opcheck_suite
from opcheck_suite import assert_no_graph_breaks, breaks, count_graph_breaks
from tests.fixtures import breaking

X = torch.tensor([1.5, -0.5, 2.0, 0.25, -1.0, 3.0])


class Net(torch.nn.Module):
    def __init__(self, broken: bool):
        super().__init__()
        self.inner = torch.nn.Linear(6, 2)
        self.broken = broken

    def forward(self, x, *, factor=1.0):
        x = self.inner(x)
        if self.broken:
            torch._dynamo.graph_break()
        return x * factor


def test_a_function_without_breaks_passes():
    assert assert_no_graph_breaks(lambda x: x.sin() + 1, X) is None
    assert count_graph_breaks(lambda x: x.sin() + 1, X) == 0


def test_a_function_with_breaks_fails_with_the_report():
    with pytest.raises(AssertionError) as caught:
        assert_no_graph_breaks(breaking.tensor_branch, X)
    text = str(caught.value)
    assert text.startswith("tensor_branch  torch ")
    assert "> if x.sum() > 0:" in text
    assert "remedy  rewrite as constant control flow" in text
    assert text.endswith("1 graph break, 0 recompilations")


@pytest.mark.parametrize(("broken", "count"), [(False, 0), (True, 1)])
def test_modules_methods_and_keyword_arguments(broken, count):
    net = Net(broken)
    assert count_graph_breaks(net, X, factor=2.0) == count
    assert count_graph_breaks(net.forward, X, factor=2.0) == count
    assert count_graph_breaks(torch.compile(net), X, factor=2.0) == count


def test_a_compiled_function_is_taken_back_to_what_it_was():
    assert count_graph_breaks(torch.compile(breaking.explicit), X) == 1


def test_places_are_counted_and_not_how_often_they_are_met():
    assert count_graph_breaks(breaking.tensor_loop, X) == 1

    def two(x):
        return breaking.explicit(x) + breaking.tensor_branch(x)

    assert count_graph_breaks(two, X) == 2


def test_nothing_compiled_counts_as_a_break():
    assert count_graph_breaks(lambda x: x, X) == 1
    with pytest.raises(AssertionError, match="nothing was compiled"):
        assert_no_graph_breaks(lambda x: x, X)


@pytest.mark.parametrize("function", [assert_no_graph_breaks, count_graph_breaks])
def test_what_the_function_raises_is_raised(function):
    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        function(fails, X)


def test_an_exception_of_the_compiler_alone_is_a_failure():
    """Dynamo runs the addition with fake tensors, and does not let the function handle what that raises."""

    def handled(x):
        try:
            return x + torch.ones(7)
        except RuntimeError:
            return x

    with pytest.raises(AssertionError, match=r"compiling raised .*, where the function by itself does not"):
        assert_no_graph_breaks(handled, X)
    with pytest.raises(torch._dynamo.exc.TorchDynamoException):
        count_graph_breaks(handled, X)


def test_capturing_is_as_the_process_has_it_set():
    assert count_graph_breaks(breaking.nonzero, X) == 1
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        assert count_graph_breaks(breaking.nonzero, X) == 0


def test_a_debugger_s_or_a_coverage_tool_s_trace_function_is_put_back():
    def mine(frame, event, arg):
        return None

    before = sys.gettrace()
    sys.settrace(mine)
    try:
        with pytest.raises(AssertionError):
            assert_no_graph_breaks(breaking.numpy_interp, X)
        assert sys.gettrace() is mine
    finally:
        sys.settrace(before)


def test_a_function_that_raises_the_second_time_still_gets_its_report():
    calls = []

    def once(x):
        calls.append(1)
        if len(calls) > 1 and not torch.compiler.is_compiling():
            raise RuntimeError("again?")
        return x * (zlib.crc32(x.numpy().tobytes()) % 7)

    found = breaks.examine(once, [opcheck_suite.Sample((X,))])
    assert not found.ok


def test_the_names_are_public_and_load_lazily():
    assert opcheck_suite.assert_no_graph_breaks is breaks.assert_no_graph_breaks
    assert opcheck_suite.count_graph_breaks is breaks.count_graph_breaks
