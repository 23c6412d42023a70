"""What rounding explains: sums in another order, terms that cancel, and nothing that is wrong."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from opcheck_suite import OpSpec, Sample, rounding, specs
from opcheck_suite.context import Context


def _total(x: Tensor) -> Tensor:
    return x.sum().reshape(1)


@pytest.fixture(scope="module", autouse=True)
def library():
    with torch.library._scoped_library("suite_rounding", "DEF") as library:
        library.define("total(Tensor x) -> Tensor")
        library.impl("total", _total, "CPU")
        yield library


def explains(x: Tensor, actual: Tensor | int, *, reference=_total) -> bool:
    spec = OpSpec("suite_rounding::total", samples=[Sample(args=(x,), name="s")], reference=reference)
    (entry,) = specs.entries([spec])
    ctx = Context(entry.spec, entry.info, device="cpu")
    case = ctx.samples[0]
    told = reference(x) if not isinstance(actual, int) else 1
    return rounding.explains(ctx, case, [actual], [told])


def one_by_one(x: Tensor) -> Tensor:
    out = x.new_zeros(1)
    for value in x:
        out = out + value
    return out


def cancelling(dtype: torch.dtype) -> Tensor:
    torch.manual_seed(0)
    x = torch.randn(2000, dtype=torch.float64)
    return torch.cat([x * 1000, x * -1000, torch.ones(1, dtype=torch.float64)]).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_sum_in_another_order_is_rounding(dtype):
    x = cancelling(dtype)
    summed = one_by_one(x.float()).to(dtype)
    assert explains(x, summed)


def test_a_term_left_out_is_not():
    x = torch.arange(1.0, 9)
    assert explains(x, _total(x))
    assert not explains(x, _total(x[:-1]))
    assert not explains(x, _total(x) * (1 + 1e-4))


def test_infinite_results_must_be_so_in_both():
    x = torch.full((4,), 3e38)
    assert not explains(x, torch.full((1,), 1.0))


def test_another_dtype_or_shape_is_not_rounding():
    x = torch.arange(1.0, 9)
    assert not explains(x, _total(x).double())
    assert not explains(x, _total(x).reshape(1, 1))


def test_numbers_must_be_those_of_the_reference():
    assert not explains(torch.ones(3), 2, reference=lambda x: 1)


def test_a_reference_that_takes_no_float64_explains_nothing():
    def single(x: Tensor) -> Tensor:
        if x.dtype != torch.float32:
            raise TypeError("float32 only")
        return _total(x)

    x = torch.arange(1.0, 9)
    assert not explains(x, _total(x), reference=single)


def test_float64_has_no_wider_dtype_to_be_judged_by():
    x = torch.arange(1.0, 9, dtype=torch.float64)
    assert not explains(x, _total(x))
