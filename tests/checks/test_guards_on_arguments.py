"""`fake.symbolic`: a size may be compared with an argument, and not with a number of the fake kernel itself."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from opcheck_suite import OpSpec, Sample, check_op

FAKES = {
    "view": lambda x, n: x[:, :n],
    "least": lambda x, n: x.new_empty(x.shape[0], min(x.shape[1], n)),
    "branch": lambda x, n: x.new_empty(x.shape[0], n) if n < x.shape[1] else torch.empty_like(x),
    "own number": lambda x, n: x.new_empty(x.shape[0], min(x.shape[1], n)) if x.shape[0] > 2 else x[:, :n].clone(),
}


@pytest.mark.parametrize("name", FAKES)
def test_a_size_may_be_compared_with_an_argument(name):
    library = torch.library.Library("suite_head", "FRAGMENT")

    def head(x: Tensor, n: int) -> Tensor:
        return x[:, :n].clone(memory_format=torch.contiguous_format)

    try:
        library.define("head(Tensor x, int n) -> Tensor")
        library.impl("head", head, "CPU")
        torch.library.register_fake("suite_head::head", FAKES[name], lib=library)
        spec = OpSpec("suite_head::head", samples=[Sample((torch.randn(4, 6), 3))])
        report = check_op(spec, checks=["fake.symbolic"], isolate="never")
    finally:
        library._destroy()
    (result,) = [r for r in report.results if r.check == "fake.symbolic"]
    assert result.outcome == ("fail" if name == "own number" else "pass"), result.message
    if name == "own number":
        assert "relies on x.shape[0] > 2" in result.message
