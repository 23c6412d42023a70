"""Calls that read what lies behind an argument are told from those that keep to their arguments."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from opcheck_suite import OpSpec, Sample, specs, surroundings, sweeps
from opcheck_suite.context import Context
from opcheck_suite.inputs import sizes


def _scaled(scales: Tensor, x: Tensor) -> Tensor:
    """Rows times their scales. A scale for each row is read whether or not it is there."""
    read = np.lib.stride_tricks.as_strided(scales.numpy(), (len(x),))
    return x * torch.from_numpy(read.copy()).unsqueeze(1)


def _scaled_checked(scales: Tensor, x: Tensor) -> Tensor:
    torch._check(len(x) == len(scales))
    return x * scales.unsqueeze(1)


@pytest.fixture(scope="module", autouse=True)
def library():
    with torch.library._scoped_library("suite_surroundings", "DEF") as library:
        for fn in (_scaled, _scaled_checked):
            name = fn.__name__.removeprefix("_")
            library.define(f"{name}(Tensor scales, Tensor x) -> Tensor")
            library.impl(name, fn, "CPU")
            library.impl(name, lambda scales, x: torch.empty_like(x), "Meta")
        yield library


def context(name: str, rows: int, scales: int) -> Context:
    sample = Sample(args=(torch.arange(1.0, 1 + scales), torch.ones(rows, 5)), name="s")
    (entry,) = specs.entries([OpSpec(f"suite_surroundings::{name}", samples=[sample])])
    return Context(entry.spec, entry.info, device="cpu")


def beyond(name: str, rows: int, scales: int) -> bool:
    ctx = context(name, rows, scales)
    return surroundings.reads_beyond(ctx, ctx.samples[0])


def test_a_scale_that_is_not_there_is_read_from_behind():
    assert beyond("scaled", 5, 4)


@pytest.mark.parametrize("name", ["scaled", "scaled_checked"])
def test_a_call_that_fits_keeps_to_its_arguments(name):
    assert not beyond(name, 4, 4)
    assert not beyond(name, 3, 4)


def test_sizes_at_which_more_is_read_are_not_swept():
    ctx = context("scaled", 9, 4)
    case = ctx.samples[0]
    tried = sizes.sweep(case, 3, leading=False)
    assert all(len(made.args[0]) < len(made.args[1]) for made in tried)  # each size is changed to one of its own
    assert sweeps.resized(ctx, case) == []
    assert sweeps.resized(context("scaled", 4, 4), context("scaled", 4, 4).samples[0])
