"""What `dispatch.autocast_rule` leaves alone, and how it words what it finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from opcheck_suite import OpSpec, Sample, check_op
from opcheck_suite.model import Outcome

LIBRARY = torch.library.Library("suite_autocast", "FRAGMENT")
X = torch.linspace(-3, 3, 12).reshape(3, 4) + 0.123
Y = torch.linspace(-2, 5, 20).reshape(5, 4) - 0.077
HALVES = (torch.float16, torch.bfloat16)


def judge(op: Any, *args: Any, kwargs: dict[str, Any] | None = None, **claims: Any) -> Any:
    """The result of the check on one sample."""
    spec = OpSpec(op, samples=[Sample(args, kwargs or {})], **claims)
    report = check_op(spec, checks=["dispatch.autocast_rule"], isolate="never")
    (found,) = [r for r in report.results if r.check == "dispatch.autocast_rule"]
    return found


def low(x: Tensor) -> Tensor:
    """As a rule casts to the region's dtype: float64 is left alone, as are integers."""
    return x.to(torch.get_autocast_dtype("cpu")) if x.is_floating_point() and x.dtype != torch.float64 else x


def define(name: str, schema: str, kernel: Callable[..., Any], rule: Callable[..., Any] | None, **options: Any) -> str:
    """An op, and a rule that gets the op, called with autocast switched off, and the arguments."""

    def outside(*args: Any) -> Any:
        with torch.autocast("cpu", enabled=False):
            return getattr(torch.ops.suite_autocast, name)(*args)

    LIBRARY.define(name + schema, **options)
    LIBRARY.impl(name, kernel, "CPU")
    if rule is not None:
        LIBRARY.impl(name, lambda *args: rule(outside, *args), "AutocastCPU")
    return f"suite_autocast::{name}"


XY = "(Tensor x, Tensor y) -> Tensor"


def product(x: Tensor, y: Tensor) -> Tensor:
    return x @ y.t()


def scaled(x: Tensor, scale: Tensor) -> Tensor:
    if scale.dtype != torch.float32:
        raise TypeError("scale must be float32")
    return (x * scale).to(x.dtype)


def half_only(x: Tensor, y: Tensor) -> Tensor:
    if x.dtype not in HALVES:
        raise TypeError("x must be in half precision")
    return x @ y.t()


def no_float16(x: Tensor) -> Tensor:
    if x.dtype == torch.float16:
        raise TypeError("float16 is not supported")
    return x * 2


def by_torch(name: str, dtype: torch.dtype) -> Any:
    op = torch.library.custom_op(f"suite_autocast::{name}", product, mutates_args=(), schema=XY)
    op.register_autocast("cpu", dtype)
    return op


class TestRightRules:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
    def test_one_dtype_for_all_regions_is_what_torch_has_authors_register(self, dtype):
        assert judge(by_torch(f"fixed_{str(dtype)[6:]}", dtype), X, Y).outcome is Outcome.PASS

    @pytest.mark.parametrize(
        ("name", "rule"),
        [
            ("casts", lambda op, x, y: op(low(x), low(y))),
            ("widens", lambda op, x, y: op(x.float(), y.float())),
            ("widens_and_returns", lambda op, x, y: op(x.float(), y.float()).to(x.dtype)),
            ("leaves", lambda op, x, y: op(x, y)),
            ("returns_low", lambda op, x, y: low(op(x, y))),
            ("follows_y", lambda op, x, y: op(x.to(y.dtype), y)),
            ("against_overflow", lambda op, x, y: op(low(x / 16), low(y)) * 16),
            ("other_ops", lambda op, x, y: torch.mm(x, y.t())),
        ],
    )
    def test_what_a_rule_may_do(self, name, rule):
        found = judge(define(name, XY, product, rule), X, Y)
        assert found.outcome is Outcome.PASS, found.message

    def test_a_scale_may_stay_in_float32(self):
        op = define("keeps_scale", "(Tensor x, Tensor scale) -> Tensor", scaled, lambda op, x, s: op(low(x), s))
        assert judge(op, X, torch.tensor(0.3)).outcome is Outcome.PASS

    def test_an_op_of_half_precision_alone_gets_it_from_its_rule(self):
        op = define("half_only", XY, half_only, lambda op, x, y: op(low(x), low(y)))
        assert judge(op, X.half(), Y.half()).outcome is Outcome.PASS

    def test_positions_may_change_by_rounding(self):
        op = define("last", "(Tensor x) -> Tensor", lambda x: (x * 8 + 0.4).floor().long(), lambda op, x: op(low(x)))
        assert judge(op, X + 0.005).outcome is Outcome.PASS

    def test_sums_that_cancel_out(self):
        op = define("centred", "(Tensor x) -> Tensor", lambda x: x.sum(-1) - x.mean(-1) * 4, lambda op, x: op(low(x)))
        assert judge(op, X * 1000).outcome is Outcome.PASS

    def test_lists_of_tensors(self):
        op = torch.library.custom_op(
            "suite_autocast::listed", lambda xs: torch.cat(xs), mutates_args=(), schema="(Tensor[] xs) -> Tensor"
        )
        op.register_autocast("cpu", torch.bfloat16)
        assert judge(op, [X, X + 1, Y]).outcome is Outcome.PASS

    def test_written_arguments_that_stay_as_they_are(self):
        def store(cache: Tensor, x: Tensor) -> None:
            cache.copy_(x)

        op = define("store", "(Tensor(a!) cache, Tensor x) -> ()", store, lambda op, c, x: op(c, low(x)))
        assert judge(op, torch.zeros(3, 4), X).outcome is Outcome.PASS

    def test_random_values_are_not_compared(self):
        op = define(
            "noise",
            "(Tensor x) -> Tensor",
            lambda x: x + torch.randn(x.shape, dtype=x.dtype),
            lambda op, x: op(low(x)),
            tags=(torch.Tag.nondeterministic_seeded,),
        )
        assert judge(op, X).outcome is Outcome.PASS

    @pytest.mark.parametrize("op", ["aten::mm", "aten::addmm", "aten::linalg_inv_ex"])
    def test_rules_of_torch_itself(self, op):
        square = X[:, :3].contiguous() + 2 * torch.eye(3)
        args = {"aten::mm": (X, Y.t()), "aten::addmm": (torch.ones(5), X, Y.t())}.get(op, (square,))
        assert judge(op, *args).outcome in (Outcome.PASS, Outcome.SKIP)


class TestNothingToJudge:
    def test_an_op_without_a_rule(self):
        found = judge(define("ruleless", XY, product, None), X, Y)
        assert found.outcome is Outcome.SKIP
        assert found.message == "no autocast rule is registered for cpu, so that autocast leaves the op alone"

    def test_a_rule_for_another_device(self):
        op = torch.library.custom_op("suite_autocast::elsewhere", product, mutates_args=(), schema=XY)
        op.register_autocast("cuda", torch.float16)
        assert judge(op, X, Y).outcome is Outcome.SKIP

    @pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
    def test_a_sample_of_what_autocast_does_not_cast(self, dtype):
        assert judge(by_torch(f"not_cast_{str(dtype)[6:]}", torch.bfloat16), X.to(dtype), Y.to(dtype)).outcome is (
            Outcome.SKIP
        )

    def test_keyword_only_arguments_which_torch_does_not_take_here(self):
        op = torch.library.custom_op(
            "suite_autocast::keyword",
            lambda x, *, factor=1.0: x * factor,
            mutates_args=(),
            schema="(Tensor x, *, float factor=1.0) -> Tensor",
        )
        op.register_autocast("cpu", torch.bfloat16)
        assert judge(op, X, kwargs={"factor": 2.0}).outcome is Outcome.SKIP


class TestWrongRules:
    def test_some_arguments_are_cast(self):
        found = judge(define("casts_y", XY, product, lambda op, x, y: op(x, low(y))), X, Y)
        assert found.outcome is Outcome.FAIL
        first, *others = found.message.splitlines()
        assert first.startswith("in an autocast region of bfloat16, with x=float32, y=float32, the op raises Runtime")
        assert "outside of the region it works on these, and on all of them in bfloat16" in others
        assert "the rule calls the op with x=float32, y=bfloat16" in others

    def test_a_mixture_that_the_rule_passes_on_is_a_warning(self):
        def rule(op: Any, x: Tensor, y: Tensor) -> Tensor:
            return op(low(x), low(y)) if x.dtype == y.dtype else op(x, y)

        found = judge(define("casts_equals", XY, product, rule), X, Y)
        assert found.outcome is Outcome.WARN
        assert "with x=bfloat16, y=float32, the op raises" in found.message
        assert "the rule casts other arguments, and leaves these as they are" in found.message

    def test_a_mixture_that_the_rule_makes_another_of(self):
        def add(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
            if len({x.dtype, y.dtype, z.dtype}) > 1:
                raise TypeError("dtypes differ")
            return x + y + z

        def rule(op: Any, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
            return op(low(x), low(y), z if x.dtype in HALVES else low(z))

        op = define("casts_two", "(Tensor x, Tensor y, Tensor z) -> Tensor", add, rule)
        found = judge(op, X, X + 1, X + 2)
        assert found.outcome is Outcome.FAIL
        assert "with x=bfloat16, y=float32, z=float32, the op raises TypeError: dtypes differ" in found.message
        assert "the rule calls the op with x=bfloat16, y=bfloat16, z=float32" in found.message

    def test_a_dtype_that_the_op_refuses(self):
        op = torch.library.custom_op(
            "suite_autocast::refused", no_float16, mutates_args=(), schema="(Tensor x) -> Tensor"
        )
        op.register_autocast("cpu", torch.float16)
        assert judge(op, X).outcome is Outcome.FAIL

    def test_a_region_in_which_the_op_has_no_kernel_is_a_warning(self):
        op = define("no_float16", "(Tensor x) -> Tensor", no_float16, lambda op, x: op(low(x)))
        found = judge(op, X)
        assert found.outcome is Outcome.WARN
        assert found.message.startswith("in an autocast region of float16, with x=float32, the op raises TypeError")

    def test_another_half_precision_than_the_regions_is_a_warning(self):
        op = define("hard_coded", XY, product, lambda op, x, y: op(x.bfloat16(), y.bfloat16()))
        found = judge(op, X, Y)
        assert found.outcome is Outcome.WARN
        assert found.message.startswith(
            "in an autocast region of float16, with x=float32, y=float32, the rule casts x, y to bfloat16"
        )

    def test_arguments_that_change_places(self):
        op = define("swapped", XY, lambda x, y: x - y, lambda op, x, y: op(low(y), low(x)))
        found = judge(op, X, X * 3)
        assert found.outcome is Outcome.FAIL
        assert "the output is wrong: 12 of 12 elements differ" in found.message

    def test_values_of_a_rule_that_does_not_call_the_op(self):
        op = define("by_itself", XY, lambda x, y: x - y, lambda _op, x, y: low(y) - low(x))
        assert judge(op, X, X * 3).outcome is Outcome.FAIL

    def test_a_double_where_nothing_is_double(self):
        op = define("doubles", XY, product, lambda op, x, y: op(low(x), low(y)).double())
        found = judge(op, X, Y)
        assert found.outcome is Outcome.FAIL
        assert "the output is float64, expected bfloat16 or float32" in found.message

    def test_fake_tensors(self):
        op = define("looks", "(Tensor x) -> Tensor", lambda x: x * 2, lambda op, x: op(low(x) if x.max() > 0 else x))
        torch.library.register_fake(op, lambda x: torch.empty_like(x), lib=LIBRARY)
        found = judge(op, X)
        assert found.outcome is Outcome.FAIL
        assert "fake tensors raise" in found.message

    def test_nothing_is_left_of_the_region(self):
        define("ends", "(Tensor x) -> Tensor", lambda x: x * 2, lambda op, x: op(x.half().int()))
        judge("suite_autocast::ends", X)
        assert not torch.is_autocast_enabled("cpu")
