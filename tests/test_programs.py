"""Situations around an op: which are used, and how a difference is told."""

from __future__ import annotations

import pytest
import torch

from opcheck_suite import OpSpec, Sample, check_op, programs, specs
from opcheck_suite.session import Session
from opcheck_suite.situations import EFFECTS, PARITY
from tests.fixtures import compiled_ops as ops


def context(op, *args, **claims):
    given = OpSpec(op, samples=[Sample(args=args, name="given")], **claims)
    ctx = Session(specs.entries([given])[0]).context("cpu", "")
    return ctx, ctx.samples[0]


def names(program) -> list[str]:
    return [s.name for s in program.situations]


def matrix() -> torch.Tensor:
    return torch.arange(6.0).reshape(2, 3)


# -- which situations there are


def test_situations_that_do_not_fit_are_left_out():
    ctx, case = context(ops.twice, matrix())
    assert names(programs.eager(ctx, case, "parity")) == [PARITY[0].name, PARITY[2].name, PARITY[3].name]
    assert names(programs.eager(ctx, case, "effects")) == [EFFECTS[2].name]


def test_an_op_that_writes_is_called_beside_what_it_writes_to():
    ctx, case = context(ops.add_to, matrix(), matrix())
    assert "on rows of one tensor, side by side" in names(programs.eager(ctx, case, "parity"))
    assert names(programs.eager(ctx, case, "effects")) == [EFFECTS[0].name, EFFECTS[1].name]
    assert programs.under_inductor(ctx, case) == "effects"


def test_slices_are_used_where_the_op_refuses_transposed_views():
    @torch.library.custom_op("suite_compiled::packed_only", mutates_args=())
    def packed_only(x: torch.Tensor) -> torch.Tensor:
        torch._check(x.is_contiguous(), lambda: "expected a contiguous tensor")
        return x * 2

    packed_only.register_fake(torch.empty_like)
    ctx, case = context(packed_only, matrix())
    found = names(programs.eager(ctx, case, "parity"))
    assert "twice in a loop, on slices of intermediates" in found
    assert "twice in a loop, on transposed views of intermediates" not in found


def test_an_output_is_passed_on_only_where_it_can_be_an_argument():
    assert programs.facts(*context(ops.twice, matrix())).chained
    assert not programs.facts(*context(ops.twice, torch.arange(3))).chained
    assert not programs.facts(*context(ops.joined, [matrix()], matrix())).chained
    assert programs.facts(*context(ops.add_to, matrix(), matrix())).written == (0,)


def test_lists_of_tensors_reach_the_op_as_lists():
    ctx, case = context(ops.joined, [matrix(), matrix()], matrix())
    for kind, backend in (("parity", "aot_eager"), ("inductor", "inductor")):
        assert programs.difference(ctx, case, kind, backend) is None


def test_calls_are_counted():
    ctx, case = context(ops.twice, matrix())
    assert programs.eager(ctx, case, "parity").calls == (4, 4)
    assert programs.eager(ctx, case, "inductor").calls == (2, 2)
    ctx, case = context(ops.twice, torch.arange(3))  # the second call of the loop has the arguments of the first
    assert programs.eager(ctx, case, "inductor").calls == (1, 2)


@pytest.mark.parametrize("op", [ops.twice, ops.free], ids=str)
def test_no_difference_is_told_of_an_op_that_is_right(op):
    ctx, case = context(op, matrix())
    assert programs.difference(ctx, case, "parity", "aot_eager") is None
    assert programs.difference(ctx, case, "inductor", "inductor") is None
    assert programs.compiled(ctx, case, "inductor", "inductor").count("suite_compiled::twice") == 2


# -- how differences are told


def test_the_situation_and_the_first_backend_that_differ_are_named():
    @torch.library.custom_op("suite_compiled::unlike_when_strided", mutates_args=())
    def unlike(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @unlike.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        torch._check(x.is_contiguous(), lambda: "no strides")
        return torch.empty_like(x)

    ctx, case = context(unlike, matrix())
    text = programs.difference(ctx, case, "parity", "aot_eager")
    assert text.startswith("backend eager raised ")
    assert text.endswith("\nwhere   the op, called twice in a loop, on transposed views of intermediates")


def test_no_gradient_is_as_good_as_zeros():
    @torch.library.custom_op("suite_compiled::first_only", mutates_args=())
    def first_only(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x * 2

    first_only.register_fake(lambda x, y: torch.empty_like(x))
    first_only.register_autograd(lambda ctx, grad: (grad * 2, None))
    ctx, case = context(first_only, matrix(), matrix())
    assert programs.difference(ctx, case, "parity", "aot_eager") is None


# -- what the checks make of it


def outcome(op, args, check, **claims) -> tuple[str, str]:
    report = check_op(OpSpec(op, samples=[Sample(args=args, name="given")], **claims), checks=(check,), isolate="never")
    (result,) = [r for r in report.results if r.check == check]
    return result.outcome.value, result.message


def test_an_op_that_inductor_replaces_is_not_opaque_where_that_is_claimed(monkeypatch):
    from torch._inductor import lowering

    inlined = lowering.lowerings[torch.ops.aten.neg.default]
    with monkeypatch.context() as patch:
        patch.setitem(lowering.lowerings, ops.twice, lambda x: inlined(x))
        patch.setattr(lowering, "fallbacks", lowering.fallbacks - {ops.twice})  # where it has been compiled before
        got, message = outcome(ops.twice, (matrix(),), "compile.opaque", opaque=True)
        unclaimed = [outcome(ops.twice, (matrix(),), check) for check in ("compile.opaque", "compile.layout")]
    assert got == "fail"
    assert message.startswith("a function that calls the op once has it 0 times in the code of Inductor")
    assert [word for word, _ in unclaimed] == ["skip", "skip"]
    assert all("lowering" in reason for _, reason in unclaimed)
    assert outcome(ops.twice, (matrix(),), "compile.opaque")[0] == "pass"


def test_calls_with_an_effect_are_kept_in_order():
    from torch._higher_order_ops.effects import _EffectType, _register_effectful_op

    assert outcome(ops.tell, (matrix(),), "compile.effects")[0] == "fail"
    _register_effectful_op(ops.tell, _EffectType.ORDERED)
    ops.LOG.clear()
    assert outcome(ops.tell, (matrix(),), "compile.effects") == ("pass", "")
    assert {15.0, -15.0} <= set(ops.LOG)


def test_the_costs_of_an_op_that_writes_are_told():
    got, message = outcome(ops.add_to, (matrix(), matrix()), "compile.cost", reference=ops._add)
    assert got == "pass"
    assert message.splitlines() == [
        "opaque   3 kernels (2 generated), 2 buffers of 48 bytes allocated by Inductor",
        "inlined  1 kernel (1 generated), 1 buffer of 24 bytes allocated by Inductor",
        "the op, called on an argument of the function: in place",
        "the op, called on an intermediate: in place",
        "the op, called on a part of an intermediate: in place",
    ]
