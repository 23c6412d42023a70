"""How Dynamo's reports of breaks are read."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import types
import zlib

import pytest
import torch
import torch._dynamo
from torch._dynamo import utils
from torch._dynamo.symbolic_convert import InstructionTranslatorBase

from opcheck_suite import compiling, graphbreaks
from opcheck_suite.graphbreaks import Frame

X = torch.ones(4)
log = logging.getLogger(__name__)


def line(function, offset: int) -> str:
    return f"{__file__}:{function.__code__.co_firstlineno + offset}"


def test_a_break_has_torch_s_kind_context_link_and_hints():
    def checksum(x):
        return x * zlib.crc32(b"abc")

    (found,) = compiling.trace(checksum, X).breaks
    assert found.kind == "Attempted to call function marked as skipped"
    assert found.context.startswith("module: zlib, qualname: crc32")
    assert found.link.startswith("https://")
    assert found.hint == found.hints[0]
    assert found.location == line(checksum, 1)
    assert (found.times, found.skips, found.consequence) == (1, False, "")


def test_a_branch_on_a_tensor_is_a_break_with_an_explanation():
    """The graph before it tells of a generic jump only."""

    def branching(x):
        if x.sum() > 0:
            return x + 1
        return x - 1

    (found,) = compiling.trace(branching, X).breaks
    assert found.kind == "Data-dependent branching"
    assert "Detected data-dependent branching" in found.reason
    assert any("torch.cond" in hint for hint in found.hints)


def test_a_break_in_a_called_function_is_one_with_the_calls_that_lead_there():
    def inner(x):
        torch._dynamo.graph_break()
        return x + 1

    def outer(x):
        return inner(x) * 2

    (found,) = compiling.trace(outer, X).breaks
    assert found.location == line(inner, 1)
    assert [f.location for f in found.stack] == [line(outer, 1), line(inner, 1)]
    assert [f.function for f in found.stack] == ["outer", "inner"]
    assert found.times == 2  # as a part of outer, then by itself


def test_a_break_that_is_met_again_after_resuming_is_one():
    def halved(x):
        while x.norm() > 1:
            x = x / 2
        return x

    (found,) = compiling.trace(halved, X * 8).breaks
    assert found.location == line(halved, 1)
    assert found.times > 1
    assert [f.function for f in found.stack] == ["halved"]


def test_breaks_of_the_standard_library_belong_to_the_line_that_calls_it():
    def logged(x):
        y = x + 1
        log.info("sum %s", y.sum())
        return y

    (found,) = compiling.trace(logged, X).breaks
    assert found.kind.startswith("logging.Logger method")
    assert found.location == line(logged, 2)
    assert found.times > 1


def test_two_kinds_on_one_line_are_two_breaks():
    def both(x):
        return x * zlib.crc32(b"abc") + x.sum().item()

    assert len(compiling.trace(both, X).breaks) == 2


def test_a_break_that_cannot_be_resumed_from_says_why_and_which_frame_is_skipped():
    def looped(x):
        for _ in range(2):
            x = x + 1
            torch._dynamo.graph_break()
        return x

    trace = compiling.trace(looped, X)
    (found,) = trace.breaks
    assert found.kind == "Call to `torch._dynamo.graph_break()`"
    assert found.consequence.startswith("graph break in loop")
    assert found.skips
    (skip,) = trace.skips
    assert (skip.function, skip.location) == ("looped", line(looped, 0))
    assert skip.reason.startswith("Call to `torch._dynamo.graph_break()`")
    assert trace.skipped == 1
    assert not trace.whole


def test_a_frame_that_is_skipped_within_try_is_a_break():
    def tried(x):
        try:
            n = zlib.crc32(b"abc")
        except ValueError:
            n = 2
        return x * n

    trace = compiling.trace(tried, X)
    assert [b.location for b in trace.breaks] == [line(tried, 2)]
    assert trace.breaks[0].skips
    assert [s.function for s in trace.skips] == ["tried"]


def test_a_function_that_is_not_traced_at_all_says_why():
    """Dynamo refuses such a frame before it traces, and logs no break."""

    def generator(x):
        yield x + 1

    trace = compiling.trace(generator, X, run=lambda compiled: list(compiled(X)))
    assert [b.kind for b in trace.breaks] == ["Attempt to trace generator"]
    assert trace.skipped == 1


def test_a_function_that_is_captured_as_a_whole_has_neither():
    trace = compiling.trace(lambda x: x + 1, X)
    assert (trace.breaks, trace.skips, trace.whole) == ((), (), True)


def test_nothing_captured_is_not_whole():
    assert not compiling.trace(lambda x: x, X).whole


def test_without_the_hook_breaks_come_from_graphs_and_counters(monkeypatch):
    monkeypatch.setattr(graphbreaks, "HOOK", "a_method_that_a_later_torch_may_lack")

    def broken(x):
        torch._dynamo.graph_break()  # nothing before it: no graph tells of it
        x = x + 1
        torch._dynamo.graph_break()
        return x * zlib.crc32(b"abc")

    trace = compiling.trace(broken, X)
    kinds = [b.kind for b in trace.breaks]
    assert kinds == ["Call to `torch._dynamo.graph_break()`", "Attempted to call function marked as skipped"]
    assert trace.breaks[0].location == line(broken, 3)


def test_the_hook_is_taken_out_again():
    before = InstructionTranslatorBase.log_graph_break
    with contextlib.suppress(ZeroDivisionError), graphbreaks.Recorder().recording():
        assert InstructionTranslatorBase.log_graph_break is not before
        raise ZeroDivisionError
    assert InstructionTranslatorBase.log_graph_break is before


def test_the_hook_takes_arguments_in_any_order():
    """Versions of torch differ in what they hand over: an exception, or a stack."""
    frame = types.SimpleNamespace(filename=__file__, lineno=7, name="f")
    text = (
        "Encountered graph break when attempting to trace CALL: f(x):\n\nA title\n  Explanation: Because.\n  Hint: Do."
    )
    recorder = graphbreaks.Recorder()
    recorder._note([{"co_name": "f"}, text, [frame]])
    (found,) = recorder.breaks()
    assert (found.kind, found.reason, found.hint) == ("A title", "A title: Because.", "Do.")
    assert found.stack[-1] == Frame(__file__, 7, "f")


def test_counters_and_metrics_of_before_are_back():
    utils.counters["graph_break"]["mine"] = 3
    metrics = utils._compilation_metrics
    try:
        trace = compiling.trace(lambda x: x + 1, X)
        assert trace.breaks == ()
        assert utils.counters["graph_break"] == {"mine": 3}
        assert utils.counters["graph_break"]["another"] == 0
        assert utils._compilation_metrics is metrics
    finally:
        utils.counters.clear()


def test_another_stance_of_the_compiler_changes_nothing():
    with torch.compiler.set_stance("force_eager"):
        assert compiling.trace(lambda x: x + 1, X).whole


@pytest.mark.parametrize("captured", [True, False])
def test_capturing_data_dependent_shapes_can_be_left_as_it_is_set(captured):
    def nonzero(x):
        return torch.nonzero(x) * 2

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=captured):
        assert compiling.trace(nonzero, X).whole
        assert compiling.trace(nonzero, X, capture=False).whole is captured


@pytest.mark.parametrize(
    ("file", "users"),
    [
        (__file__, True),
        ("/home/me/opcheck_suite/tests/test_mine.py", True),
        (os.path.join(tempfile.gettempdir(), "ipykernel_12", "345.py"), True),
        ("<stdin>", True),
        (os.path.join(os.path.dirname(graphbreaks.__file__), "compiling.py"), False),
        (torch.__file__, False),
        (contextlib.__file__, False),
        (pytest.__file__, True),
        ("<frozen importlib._bootstrap>", False),
    ],
)
def test_whose_code_a_frame_is(file, users):
    assert bool(graphbreaks.user_frames([(file, 1, "f")])) is users
