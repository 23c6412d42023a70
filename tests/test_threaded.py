"""Calls at once: what they mix up is found, and what goes wrong without threads is not put down to them."""

from __future__ import annotations

import sys
import threading

import pytest
import torch
from torch import Tensor

from opcheck_suite import OpSpec, Sample, specs, state, threaded
from opcheck_suite.context import Context

_scratch: dict[torch.Size, Tensor] = {}
_calls = [0]


def _double(x: Tensor) -> Tensor:
    return x * 2


def _add_one_(x: Tensor) -> None:
    x.add_(1)


def _shares(x: Tensor) -> Tensor:
    torch.mul(x, 2, out=_scratch.setdefault(x.shape, torch.empty_like(x)))
    return _scratch[x.shape].clone()


def _shares_number(x: Tensor) -> Tensor:
    _calls[0] = float(x.sum())
    return x + _calls[0]


def _keeps_buffer(x: Tensor) -> Tensor:
    buffer = _scratch.setdefault(x.shape, torch.empty_like(x))
    return torch.mul(x, 2, out=buffer).view(x.shape)


def _counts(x: Tensor) -> Tensor:
    _calls[0] += 1
    return x * _calls[0]


def _main_thread_only(x: Tensor) -> Tensor:
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("not in this thread")
    return x * 2


def _sets_default(x: Tensor) -> Tensor:
    torch.set_default_dtype(torch.float64)
    return x * 2


@pytest.fixture(scope="module", autouse=True)
def library():
    ops = (_double, _shares, _shares_number, _keeps_buffer, _counts, _main_thread_only, _sets_default)
    with torch.library._scoped_library("suite_threads", "DEF") as library:
        for fn in ops:
            name = fn.__name__.removeprefix("_")
            library.define(f"{name}(Tensor x) -> Tensor")
            library.impl(name, fn, "CPU")
        library.define("add_one_(Tensor(a!) x) -> ()")
        library.impl("add_one_", _add_one_, "CPU")
        yield library


@pytest.fixture(autouse=True)
def nothing_shared():
    _scratch.clear()
    _calls[0] = 0


def context(name: str, *args: Tensor) -> Context:
    args = args or (torch.arange(1.0, 13).reshape(3, 4),)
    (entry,) = specs.entries([OpSpec(f"suite_threads::{name}", samples=[Sample(args=args, name="s")])])
    return Context(entry.spec, entry.info, device="cpu")


def race(name: str, *args: Tensor) -> threaded.Trouble | None:
    ctx = context(name, *args)
    return threaded.race(ctx, ctx.samples[0])


@pytest.mark.parametrize("name", ["double", "add_one_"])
def test_calls_that_share_nothing_agree(name):
    assert race(name) is None


@pytest.mark.parametrize("repeat", range(3))
@pytest.mark.parametrize("name", ["shares", "shares_number"])
def test_calls_that_share_something_are_found_every_time(name, repeat):
    found = race(name)
    assert found is not None
    assert found.threads == 4
    assert 0 < found.wrong <= found.calls
    assert found.text.startswith("output has wrong values")


def test_a_result_of_another_thread_is_recognised():
    assert race("shares").text.endswith("which is the result of another thread's call")


def test_an_exception_in_a_thread_is_told():
    found = race("main_thread_only")
    assert found.text == "it raised RuntimeError: not in this thread"


@pytest.mark.parametrize("name", ["counts", "keeps_buffer"])
def test_what_goes_wrong_from_one_thread_too_is_no_trouble_of_threads(name):
    with pytest.raises(threaded.NotThreads):
        race(name)


def test_the_process_is_left_as_it_was():
    before, interval, threads = state.read(), sys.getswitchinterval(), threading.active_count()
    race("sets_default")
    assert state.changes(before) == []
    assert sys.getswitchinterval() == interval
    assert sys.gettrace() is None or "coverage" in type(sys.gettrace()).__module__
    assert threading.active_count() == threads


def test_integers_that_may_be_positions_are_the_same_in_all_threads():
    assert race("double", torch.arange(4)) is None
