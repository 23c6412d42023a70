"""Runs on tensors without data."""

from __future__ import annotations

import pytest
import torch

from opcheck_suite import OpSpec, Sample, fakes, specs
from opcheck_suite.context import Context

LIBRARY = torch.library.Library("suite_sizes", "FRAGMENT")


def case_of(name, fake):
    """An op with a fake kernel, and one case of it."""
    LIBRARY.define(f"{name}(Tensor x, Tensor y) -> Tensor")
    LIBRARY.impl(name, lambda x, y: x * 2, "CPU")
    torch.library.register_fake(f"suite_sizes::{name}", fake, lib=LIBRARY)
    sample = Sample((torch.ones(4, 6), torch.ones(1, 4)))
    (entry,) = specs.entries([OpSpec(f"suite_sizes::{name}", samples=[sample])])
    (case,) = Context(entry.spec, entry.info, device="cpu").samples
    return entry.info.op, case


def asks(x, y):
    return x.new_empty(x.shape) if x.shape[0] == 4 else y


def counts(x, y):
    return torch.stack([x.new_empty(x.shape[1:]) for _ in range(y.shape[1])])


def asserts(x, y):
    assert x.shape[1] > 0
    return x.new_empty(x.shape)


@pytest.mark.parametrize(
    ("fake", "condition"),
    [(asks, "Eq(x.shape[0], 4)"), (counts, "x.shape[0]"), (asserts, "x.shape[1] > 0")],
)
def test_a_branch_on_a_size_that_is_not_known_is_found_with_its_line(fake, condition):
    run = fakes.unbacked(*case_of(fake.__name__, fake))
    branch = fakes.branch(run)
    assert branch.condition == condition
    assert branch.where.startswith(f"{__file__}:{fake.__code__.co_firstlineno + 1}: ")


def checks(x, y):
    torch._check(x.shape[0] % 2 == 0)
    torch._check(x.shape[1] > 0)
    return x.new_empty((x.shape[0] // 2, *x.shape[1:]))


def test_conditions_that_are_put_off_are_no_branches():
    run = fakes.unbacked(*case_of("checks", checks))
    assert run.error is None
    assert fakes.branch(run) is None
    assert fakes.symbols(run).keys() == {run.args[0].shape[0].node.expr, run.args[0].shape[1].node.expr}


def test_equal_sizes_are_one_symbol_and_size_one_stays():
    run = fakes.unbacked(*case_of("plain", lambda x, y: x.new_empty(x.shape)))
    x, y = run.args
    assert x.shape[0].node.expr == y.shape[1].node.expr
    assert x.shape[0].node.expr != x.shape[1].node.expr
    assert y.shape[0] == 1


def test_other_errors_are_no_branches():
    def raises(x, y):
        raise ValueError("no")

    run = fakes.unbacked(*case_of("raises", raises))
    assert isinstance(run.error, ValueError)
    assert fakes.branch(run) is None


def test_torch_is_asked_whether_devices_go_together():
    away, here = torch.ones(3), torch.ones(3)
    places = {id(away): torch.device("cuda", 0)}

    def mixes(func, *args):
        return fakes.mixes_devices(func, args, {}, lambda t: places.get(id(t)))

    assert mixes(torch.add, away, here)
    assert mixes(torch.cat, [away, here])
    assert not mixes(torch.add, away, away)
    assert not mixes(torch.add, away, torch.tensor(1.0))
    assert not mixes(torch.Tensor.copy_, away, here)


def test_fake_tensors_share_memory_where_their_elements_are_the_same():
    mode = fakes.new_mode()
    with mode:
        x = torch.empty(4, 6)
        other = torch.empty(4, 6)
        halves = x[:2], x[2:]
        columns = x[:, ::2], x[:, 1::2]
        view = x.view(24)
        none = x[:0]
        large = torch.empty(1 << 21)
        rest = large[1:]
    assert fakes.share(x, x)
    assert fakes.share(x, view)
    assert fakes.share(columns[0], view)
    assert not fakes.share(x, other)
    assert not fakes.share(*halves)
    assert not fakes.share(*columns)
    assert not fakes.share(x, none)
    assert fakes.share(large, large.detach())
    assert not fakes.share(large, rest)  # judged by where they begin


def test_where_data_decides_a_size_only_one_and_the_same_tensor_is_shared():
    op, case = case_of("unknown", lambda x, y: x.new_empty(x.shape))
    (x, _), out = (run := fakes.unbacked(op, case)).args, run.out
    assert fakes.share(x, x)
    assert not fakes.share(x, out)
