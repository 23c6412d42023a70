"""What is noted of the code that Inductor makes."""

from __future__ import annotations

import pytest
import torch

from opcheck_suite import compiling, inductor
from tests.fixtures import compiled_ops as ops


@pytest.fixture(autouse=True)
def settings():
    torch._dynamo.reset()
    with compiling.settings():
        yield
    torch._dynamo.reset()


def recorded(op, fn, *args, **options) -> inductor.Recorder:
    recorder = inductor.Recorder(op, **options)
    torch.compile(fn, backend=inductor.recording(recorder), fullgraph=True)(*args)
    return recorder


def test_calls_of_the_op_are_noted_with_strides_and_values():
    x = torch.arange(6.0).reshape(2, 3)
    recorder = recorded(ops.twice, lambda x: ops.twice(ops.twice(x).t()), x)
    first, second = recorder.calls
    assert first.layouts == (inductor.Layout((2, 3), (3, 1)),)
    assert second.layouts == (inductor.Layout((3, 2), (1, 3)),)
    assert torch.equal(first.values[0], x)
    assert torch.equal(second.values[0], 2 * x.t())


def test_an_op_with_an_answer_is_not_run():
    recorder = recorded(ops.rows_only, lambda x: ops.rows_only(x), torch.ones(3), answer=lambda: torch.zeros(3))
    assert len(recorder.calls) == 1


def test_another_op_of_a_library_is_not_run_in_the_place_of_one_with_an_answer():
    with pytest.raises(inductor.Unanswered, match="suite_compiled::twice"):
        recorded(ops.rows_only, lambda x: ops.twice(x.neg()), torch.ones(3), answer=lambda: torch.zeros(3))


def test_calls_of_others_are_noted_with_what_they_return():
    with inductor.without_generated_kernels(ops.twice):
        recorder = recorded(ops.twice, lambda x: ops.twice(x.neg()), torch.ones(3))
    assert ("aten::neg", 12) in recorder.others


def test_layouts_are_equal_where_strides_differ_in_idle_dimensions_only():
    def key(shape, stride):
        return inductor.Layout(shape, stride).key

    assert key((1, 3), (3, 1)) == key((1, 3), (77, 1))
    assert key((2, 3), (3, 1)) != key((2, 3), (1, 2))
    assert key((0, 3), (3, 1)) == key((0, 3), (1, 1))


def test_hollow_kernels_are_counted_and_do_nothing():
    with inductor.hollow_kernels() as work:
        out = torch.compile(lambda x: ops.twice(x.neg()).neg(), backend="inductor", fullgraph=True)(torch.ones(4))
    assert out.shape == (4,)
    assert (work.kernels, work.buffers, work.bytes) == (2, 1, 16)  # the second writes where the first did


def test_what_hollow_kernels_replace_is_put_back():
    from torch._C._dynamo import guards
    from torch._inductor.async_compile import AsyncCompile

    before = (AsyncCompile.cpp_pybinding, guards._empty_strided_cpu)
    with pytest.raises(ZeroDivisionError), inductor.hollow_kernels():
        raise ZeroDivisionError
    assert (AsyncCompile.cpp_pybinding, guards._empty_strided_cpu) == before


def test_a_layout_that_inductor_may_choose_is_another():
    """What `compile.layout` is built on."""
    given, answer = torch.ones(4, 3).t(), lambda: torch.ones(3, 4)
    with inductor.hollow_kernels():
        chosen = recorded(ops.free, lambda x: ops.free(x.neg().contiguous()), given, answer=answer)
        kept = recorded(ops.twice, lambda x: ops.twice(x.neg().contiguous()), given, answer=answer)
    assert [call.layouts[0].stride for call in chosen.calls] == [(1, 3)]
    assert [call.layouts[0].stride for call in kept.calls] == [(4, 1)]


def test_the_strictest_tag_counts():
    import torch._functorch.config as config

    assert inductor.constraint(ops.free) == "flexible_layout"
    assert not inductor.keeps_strides(ops.free)
    with config.patch(custom_op_default_layout_constraint="needs_fixed_stride_order"):
        assert inductor.constraint(ops.twice) == "needs_fixed_stride_order"
    with config.patch(custom_op_default_layout_constraint="needs_exact_strides"):
        assert inductor.keeps_strides(ops.twice)
