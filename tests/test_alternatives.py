"""Other values for a call: taken by the op, and told apart from the sample's."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from opcheck_suite import OpSpec, Sample, alternatives, specs
from opcheck_suite.context import Context


def _double(x: Tensor, n: int = 1) -> Tensor:
    return x * 2


def _normalised(x: Tensor, n: int = 1) -> Tensor:
    return x / x.norm()


def _zero(x: Tensor, n: int = 1) -> Tensor:
    return x * 0


def _at_least_one(x: Tensor, n: int = 1) -> Tensor:
    torch._check(bool((x >= 1).all()))
    return x * 2


@pytest.fixture(scope="module", autouse=True)
def library():
    with torch.library._scoped_library("suite_alternatives", "DEF") as library:
        for fn in (_double, _normalised, _zero, _at_least_one):
            name = fn.__name__.removeprefix("_")
            library.define(f"{name}(Tensor x, int n=1) -> Tensor")
            library.impl(name, fn, "CPU")
        yield library


def names(op: str, *samples: tuple) -> list[str]:
    given = [Sample(args=args, name=f"s{n}") for n, args in enumerate(samples)]
    (entry,) = specs.entries([OpSpec(f"suite_alternatives::{op}", samples=given)])
    ctx = Context(entry.spec, entry.info, device="cpu")
    return [one.label for one in alternatives.of(ctx, ctx.samples[0])]


def matrix() -> Tensor:
    return torch.arange(1.0, 7).reshape(2, 3)


def test_values_come_nearer_to_zero():
    assert names("double", (matrix(),)) == ["s0, halved", "s0, times 3/4", "s0, times 1/4"]


def test_what_does_not_depend_on_scale_is_reversed():
    assert names("normalised", (matrix(),)) == ["s0, reversed"]


def test_there_are_none_where_the_op_gives_the_same_result():
    assert names("zero", (matrix(),)) == []


def test_there_are_none_that_the_op_refuses():
    assert names("at_least_one", (matrix(),)) == ["s0, reversed"]
    assert names("at_least_one", (torch.ones(2, 3),)) == []


def test_positions_are_left_alone():
    assert names("double", (torch.arange(4),)) == []


def test_small_integers_and_truth_values_are_reversed():
    assert names("double", (torch.arange(4, dtype=torch.uint8),)) == ["s0, reversed"]


def test_other_samples_of_the_same_call_come_first():
    other, larger = (matrix() + 1,), (torch.ones(4, 4),)
    assert names("double", (matrix(),), larger, other, (matrix() + 2, 2)) == ["s2", "s0, halved", "s0, times 3/4"]
    assert names("double", (torch.arange(4),), (torch.arange(4) * 2,)) == ["s1"]


def test_no_value_grows_and_no_other_value_is_made():
    (entry,) = specs.entries([OpSpec("suite_alternatives::double", samples=[Sample(args=(matrix(), 3), name="s")])])
    ctx = Context(entry.spec, entry.info, device="cpu")
    (case,) = ctx.samples
    for one in alternatives.of(ctx, case):
        assert one.args[1] == 3
        assert one.args[0].shape == (2, 3)
        assert one.args[0].abs().max() <= 6
    assert torch.equal(case.args[0], matrix())
