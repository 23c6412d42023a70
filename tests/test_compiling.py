"""What a compilation is said to have come to."""

from __future__ import annotations

import logging

import pytest
import torch
import torch._dynamo
import torch._functorch.config
import torch._inductor.config

from opcheck_suite import compiling
from tests.fixtures import harness_ops  # noqa: F401 - registers ops


def double(x):
    return torch.ops.suite_tests.double(x) + 1


def test_a_function_without_breaks_is_one_graph():
    trace = compiling.trace(double, torch.ones(3))
    assert trace.error is None
    assert torch.equal(trace.out, torch.full((3,), 3.0))
    assert len(trace.graphs) == 1
    assert trace.targets == ("suite_tests::double", "_operator.add")
    assert (trace.breaks, trace.recompiles, trace.skipped) == ((), (), 0)
    assert trace.backend == "eager"
    assert trace.seconds > 0


def test_an_overload_is_named_in_the_targets():
    trace = compiling.trace(lambda x: torch.ops.aten.add.Tensor(torch.ops.aten.relu(x), x), torch.ones(3))
    assert trace.targets == ("aten::relu", "aten::add.Tensor")


def test_a_break_has_a_reason_a_place_and_a_hint():
    def broken(x):
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2

    trace = compiling.trace(broken, torch.ones(3))
    (found,) = trace.breaks
    assert found.reason.startswith("Call to `torch._dynamo.graph_break()`")
    line = broken.__code__.co_firstlineno + 2
    assert found.location == f"{__file__}:{line}"
    assert found.hint
    assert "\n" not in found.reason + found.hint
    assert len(trace.graphs) == 2
    assert torch.equal(trace.out, torch.full((3,), 4.0))


def test_every_break_is_found():
    def broken(x):
        x = x + 1
        torch._dynamo.graph_break()
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2

    trace = compiling.trace(broken, torch.ones(3))
    first = broken.__code__.co_firstlineno
    assert [b.location for b in trace.breaks] == [f"{__file__}:{first + 2}", f"{__file__}:{first + 4}"]
    assert len(trace.graphs) == 3


def test_a_break_that_no_graph_came_before_is_found():
    """Nothing was captured, so that no graph tells of it."""

    def broken(x):
        torch._dynamo.graph_break()
        return x

    trace = compiling.trace(broken, torch.ones(3))
    assert len(trace.breaks) == 1
    assert trace.breaks[0].reason.startswith("Call to `torch._dynamo.graph_break()`")


def test_a_break_under_fullgraph_is_an_error():
    def broken(x):
        torch._dynamo.graph_break()
        return x * 2

    trace = compiling.trace(broken, torch.ones(3), fullgraph=True)
    assert isinstance(trace.error, torch._dynamo.exc.Unsupported)
    assert trace.out is None


def test_a_recompilation_has_the_function_and_the_guard():
    def scaled(x, n):
        return x * len(n)

    calls = ((torch.ones(3), "bb"), (torch.ones(3), "ccc"))
    trace = compiling.trace(scaled, torch.ones(3), "a", more_calls=calls)
    assert len(trace.graphs) == 3
    assert [r.function for r in trace.recompiles] == ["scaled", "scaled"]
    assert all("n" in r.guard for r in trace.recompiles)
    assert torch.equal(trace.out, torch.full((3,), 3.0))


def test_calls_that_one_graph_serves_recompile_nothing():
    trace = compiling.trace(double, torch.ones(3), more_calls=((torch.ones(3),), (torch.zeros(3),)))
    assert len(trace.graphs) == 1
    assert trace.recompiles == ()


def test_an_earlier_compilation_of_the_function_is_not_seen():
    for _ in range(2):
        trace = compiling.trace(double, torch.ones(3))
        assert len(trace.graphs) == 1
        assert trace.recompiles == ()


def test_frames_that_are_given_up_are_counted():
    """Dynamo does not resume inside a loop."""

    def looped(x):
        for _ in range(2):
            x = x + 1
            torch._dynamo.graph_break()
        return x

    trace = compiling.trace(looped, torch.ones(3))
    assert trace.error is None
    assert trace.graphs == ()
    assert trace.skipped == 1
    assert compiling.trace(double, torch.ones(3)).skipped == 0


def test_what_the_function_raises_is_in_the_trace():
    trace = compiling.trace(lambda x: torch.ops.suite_tests.raises(x), torch.ones(3))
    assert isinstance(trace.error, RuntimeError)
    assert "not in the mood" in str(trace.error)


def test_an_interrupt_is_not_swallowed():
    def interrupted(module, inputs):
        raise KeyboardInterrupt

    torch._dynamo.register_backend(interrupted, name="suite_interrupted")
    with pytest.raises(KeyboardInterrupt):
        compiling.trace(double, torch.ones(3), backend="suite_interrupted")


def test_dynamic_shapes_and_keyword_arguments_are_passed_on():
    def scaled(x, *, factor):
        return x * factor * x.shape[0]

    trace = compiling.trace(
        scaled, torch.ones(3), kwargs={"factor": 2.0}, dynamic=True, backend="aot_eager", fullgraph=True
    )
    assert trace.error is None
    assert trace.backend == "aot_eager"
    assert torch.equal(trace.out, torch.full((3,), 6.0))


# -- what is left behind


def _state() -> dict:
    return {
        "suppress_errors": torch._dynamo.config.suppress_errors,
        "capture": torch._dynamo.config.capture_dynamic_output_shape_ops,
        "aliasing": torch._functorch.config.error_on_custom_op_aliasing,
        "threads": torch._inductor.config.compile_threads,
        "level": logging.getLogger("torch._dynamo").level,
        "grad": torch.is_grad_enabled(),
    }


def test_settings_are_put_back():
    before = _state()
    with compiling.settings():
        assert torch._functorch.config.error_on_custom_op_aliasing is True
        assert torch._dynamo.config.capture_dynamic_output_shape_ops is True
        assert logging.getLogger("torch._dynamo").level == logging.CRITICAL
    assert _state() == before


def test_settings_are_put_back_after_an_exception():
    before = _state()
    with pytest.raises(ZeroDivisionError), compiling.settings():
        raise ZeroDivisionError
    assert _state() == before


def test_a_trace_leaves_settings_and_caches_as_they_were():
    before = _state()
    compiling.trace(double, torch.ones(3))
    compiling.trace(lambda x: torch.ops.suite_tests.raises(x), torch.ones(3))
    assert _state() == before
    graphs = []

    def count(module, inputs):
        graphs.append(module)
        return module

    torch.compile(double, backend=count)(torch.ones(3))
    torch._dynamo.reset()
    assert len(graphs) == 1


@pytest.mark.parametrize("default", [False, True])
def test_settings_do_not_depend_on_the_environment(default):
    """``$CI`` decides what torch itself makes of an op whose output aliases an input."""
    with torch._functorch.config.patch(error_on_custom_op_aliasing=default), compiling.settings():
        assert torch._functorch.config.error_on_custom_op_aliasing is True


def test_programs_that_torch_keeps_on_disk_are_not_used():
    """They are found by the graph: a fake kernel that has been edited since would not be asked."""
    with torch._inductor.config.patch(fx_graph_cache=True), torch._functorch.config.patch(enable_autograd_cache=True):
        with compiling.settings():
            assert not torch._inductor.config.fx_graph_cache
            assert not torch._functorch.config.enable_autograd_cache
        assert torch._inductor.config.fx_graph_cache


def test_every_recompilation_is_seen():
    """Beyond its limit Dynamo runs a function in eager, and says so in a log only."""
    calls = tuple((torch.ones(3), "b" * n) for n in range(2, 14))
    trace = compiling.trace(lambda x, word: x * len(word), torch.ones(3), "b", more_calls=calls)
    assert len(trace.graphs) == 13
    assert len(trace.recompiles) == 12
