"""A fake kernel says what the op does, for every call that the op accepts: with the sizes it has, and with symbols."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import assume, find, given

from opcheck_suite import check_op, fakes
from opcheck_suite.inputs import tensors
from tests.properties import metadata, planted
from tests.properties.calls import FEWER, MODE, SMALLEST, Call, call, calls
from tests.settings import PROPERTY

#: Ops whose results have sizes that data decides: what the fake kernel promises is a range.
DATA_DECIDES = "reference::nonzero_values"


def eager(call: Call) -> Any:
    args, kwargs = call.case.inputs()
    return call.op(*args, **kwargs)


def consistent(call: Call) -> None:
    """The outputs of fake tensors have the metadata of real ones."""
    run = fakes.run(call.op, call.case, mode=MODE)
    assert run.error is None, f"{call}: {run.error}"
    assert (text := metadata.difference(eager(call), run.out)) is None, f"{call}: {text}"


def consistent_with_symbols(call: Call) -> None:
    """The same when every size is a symbol, with these sizes and with others that the op accepts."""
    run = fakes.run(call.op, call.case, symbolic=True)
    assert run.error is None, f"{call}: {run.error}"
    assert (text := metadata.difference(eager(call), run.out)) is None, f"{call}: {text}"
    for symbol, (name, dim) in fakes.symbols(run).items():
        old = dict(call.case.leaves())[name].shape[dim]
        if any(type(value) is int and value == old for value in call.case.bound().values()):
            continue  # a number that equals a size has its symbol, and would have to grow with it
        args, kwargs = grown(call, old, old + 3).inputs()
        try:
            real = call.op(*args, **kwargs)
        except RuntimeError:
            continue
        shapes = [t.shape for t in metadata.flat(run.out) if isinstance(t, torch.Tensor)]
        now = [tuple(t.shape) for t in metadata.flat(real) if isinstance(t, torch.Tensor)]
        told = [tuple(_with(size, symbol, old + 3) for size in shape) for shape in shapes]
        for shape, expected in zip(now, told, strict=True):
            same = all(e in (s, None) for s, e in zip(shape, expected, strict=True))
            assert same, f"{call} with {name}.shape[{dim}] = {old + 3}: shape {shape}, the formula says {expected}"


def grown(call: Call, old: int, new: int) -> Any:
    """The case with every size of a tensor that equals ``old`` made ``new``, by elements repeated. Numbers stay."""

    def grow(tensor: torch.Tensor) -> torch.Tensor:
        for dim, size in enumerate(tensor.shape):
            if size == old:
                tensor = tensor.index_select(dim, torch.arange(new) % old)
        return tensor

    return call.case.replace({name: grow(t) for name, t in call.case.leaves()}, variant="grown", group="grown")


def _with(size: Any, symbol: Any, new: int) -> int | None:
    """A symbolic size with another value for one symbol; None where data decides."""
    if isinstance(size, int):
        return size
    if not size.node.has_hint():
        return None
    env = size.node.shape_env
    values = {s: new if s == symbol else env.backed_var_to_val[s] for s in size.node.expr.free_symbols}
    return int(size.node.expr.subs(values))


def promised(call: Call) -> None:
    """A size that data decides is in the range that the fake kernel gives."""
    run = fakes.run(call.op, call.case)
    for real, fake in zip(metadata.flat(eager(call)), metadata.flat(run.out), strict=True):
        for size, symbol in zip(real.shape, fake.shape, strict=True):
            if not fakes.known(symbol):
                low, high = fakes.bounds(run, symbol)
                assert low <= size, f"{call}: size {size}, promised at least {low}"
                assert high is None or size <= high, f"{call}: size {size}, promised at most {high}"


@given(calls())
@PROPERTY
def test_metadata_agrees(call):
    consistent(call)


@given(calls())
@PROPERTY
def test_metadata_agrees_with_symbols(call):
    assume(call.case.leaves())
    consistent_with_symbols(call)


@given(calls(DATA_DECIDES))
@FEWER
def test_sizes_that_data_decides_are_as_promised(call):
    promised(call)


@pytest.mark.parametrize("fault", planted.FAKE, ids=lambda fault: fault.name)
def test_a_planted_fault_is_found_and_shown_on_the_smallest_call(fault):
    def violates(given):
        try:
            consistent(call(fault.op, given))
        except AssertionError:
            return True
        return False

    smallest = find(fault.calls, violates, settings=SMALLEST)
    assert sum(t.numel() for t in tensors.tensors(smallest.kwargs)) <= fault.elements, call(fault.op, smallest)


@pytest.mark.parametrize("fault", planted.FAKE, ids=lambda fault: fault.name)
def test_its_example_does_not_show_a_planted_fault(fault):
    consistent(call(fault.op, fault.example()))
    report = check_op(fault.op, [fault.example()], checks=["fake"], isolate="never")
    assert report.ok, str(report)
