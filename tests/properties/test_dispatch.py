"""Dispatch, for every call of every reference op: the right kernel, the right device, the right order."""

from __future__ import annotations

import functools

import pytest
import torch
from hypothesis import assume, find, given
from hypothesis import strategies as st

from opcheck_suite import check_op
from opcheck_suite.inputs import tensors
from tests.properties import dispatch, planted
from tests.properties.calls import CALLS, ENTRIES, FEWER, SMALLEST, Call, call, calls
from tests.settings import PROPERTY

INFO = {name: ENTRIES[name].info for name in CALLS}

#: Ops with a kernel of their own: the others are taken apart by torch.
OPAQUE = sorted(name for name, info in INFO.items() if not info.transparent)

#: Ops whose fake kernel is a Python function of their own.
FAKED = [name for name in OPAQUE if INFO[name].fake_function is not None]

#: Ops that combine several tensors. `decay_` treats each by itself, wherever it is.
COMBINING = [name for name in OPAQUE if str(INFO[name].schema).count("Tensor") > 2 and name != "reference::decay_"]


def _grads(one: Call) -> st.SearchStrategy[list[str]]:
    """Which arguments require grad; none of an op that writes, whose gradients torch does not support."""
    return (
        st.just([])
        if one.info.mutated
        else st.lists(st.sampled_from(dispatch.differentiable(one) or [""]), unique=True)
    )


def some_require_grad(found: st.SearchStrategy[Call]) -> st.SearchStrategy[tuple[Call, list[str]]]:
    return found.flatmap(lambda one: st.tuples(st.just(one), _grads(one).map(lambda names: [n for n in names if n])))


def one_elsewhere(found: st.SearchStrategy[Call]) -> st.SearchStrategy[tuple[Call, str]]:
    several = found.filter(lambda one: len(one.case.leaves()) > 1)
    return several.flatmap(lambda one: st.tuples(st.just(one), st.sampled_from([n for n, _ in one.case.leaves()])))


@pytest.mark.parametrize("mode", dispatch.MODES)
@given(drawn=some_require_grad(calls(*OPAQUE)))
@PROPERTY
def test_the_kernel_runs_once_below_autograd(mode, drawn):
    dispatch.runs_in_order(drawn[0], mode, drawn[1])


@given(calls(*FAKED))
@PROPERTY
def test_with_fake_tensors_the_fake_kernel_runs_alone(one):
    dispatch.fake_runs_no_kernel(one)


@given(calls(*FAKED))
@PROPERTY
def test_fake_outputs_are_on_the_device_of_fake_inputs(one):
    assume(one.case.leaves())
    dispatch.stays_on(one, "fake cuda")


@given(one_elsewhere(calls(*COMBINING)))
@PROPERTY
def test_fake_tensors_on_two_devices_are_refused(drawn):
    dispatch.refuses_mixed(*drawn, "fake cuda")


@given(calls())
@PROPERTY
def test_autocast_casts_where_there_is_a_rule_and_nowhere_else(one):
    dispatch.autocasts(one, torch.bfloat16)


@given(calls("reference::gram"))
@FEWER
def test_autocast_casts_for_the_op_that_has_a_rule(one):
    dispatch.autocasts(one, torch.bfloat16)


def test_outputs_are_on_the_device_of_their_inputs(devices):
    for device in devices:
        there = [name for name, info in INFO.items() if info.kernel_for(device)]
        holds = functools.partial(dispatch.stays_on, device=device)
        PROPERTY(given(calls(*there).filter(lambda one: one.case.leaves()))(lambda one: holds(one)))()  # noqa: B023


def test_tensors_on_two_devices_are_refused(devices):
    """Where there is but the CPU, its other half is the meta device: the fake kernel is what refuses."""
    for device in [d for d in devices if d != "cpu"] or ["meta"]:
        holds = functools.partial(dispatch.refuses_mixed, device=device)
        PROPERTY(given(one_elsewhere(calls(*COMBINING)))(lambda drawn: holds(*drawn)))()  # noqa: B023


# -- planted faults

PROPERTIES = {
    "plain": (some_require_grad, lambda one, wanted: dispatch.runs_in_order(one, "plain", wanted)),
    "inference": (some_require_grad, lambda one, wanted: dispatch.runs_in_order(one, "inference", wanted)),
    "fake": (lambda found: st.tuples(found), dispatch.fake_runs_no_kernel),
    "device": (lambda found: st.tuples(found), lambda one: dispatch.stays_on(one, "fake cuda")),
    "mixed": (one_elsewhere, lambda one, name: dispatch.refuses_mixed(one, name, "fake cuda")),
    "autocast": (lambda found: st.tuples(found), lambda one: dispatch.autocasts(one, torch.bfloat16)),
}


@pytest.mark.parametrize(("kind", "fault"), planted.DISPATCH, ids=lambda value: getattr(value, "name", None))
def test_a_planted_fault_is_found_and_shown_on_the_smallest_call(kind, fault):
    extend, holds = PROPERTIES[kind]

    def violates(drawn):
        try:
            holds(*drawn)
        except (AssertionError, RuntimeError):
            return True
        return False

    smallest, *_ = find(extend(fault.calls.map(lambda given: call(fault.op, given))), violates, settings=SMALLEST)
    assert sum(t.numel() for t in tensors.tensors(smallest.case.kwargs)) <= fault.elements, smallest


@pytest.mark.parametrize(("kind", "fault"), planted.DISPATCH, ids=lambda value: getattr(value, "name", None))
def test_its_example_does_not_show_a_planted_fault(kind, fault):
    extend, holds = PROPERTIES[kind]
    holds(*find(extend(st.just(call(fault.op, fault.example()))), lambda _: True, settings=SMALLEST))
    report = check_op(fault.op, [fault.example()], checks=["dispatch", "fake"], isolate="never")
    assert report.ok, str(report)
