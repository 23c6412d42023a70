"""The Python function that an op's kernel is, and what is bound to it."""

from __future__ import annotations

import functools

import pytest
import torch

from opcheck_suite import OpSpec, Sample, check_op, pykernel, specs
from opcheck_suite.context import Context

LIBRARY = torch.library.Library("suite_kernels", "FRAGMENT")


class Scaling:
    def __init__(self, factor):
        self.factor = factor

    def kernel(self, x, power):
        return x * self.factor**power

    def __call__(self, x, power):
        return x * self.factor**power


def plain(x, power):
    return x * 2**power


def scaled(factor, x, power):
    return x * factor**power


SCALING = Scaling(2)
KERNELS = {
    "plain": (plain, {}),
    "method": (SCALING.kernel, {"self": SCALING}),
    "object": (SCALING, {"self": SCALING}),
    "partial": (functools.partial(scaled, 2), {"factor": 2}),
    "method_in_partial": (functools.partial(Scaling.kernel, SCALING), {"self": SCALING}),
}


@pytest.fixture(scope="module", params=KERNELS)
def defined(request):
    """An op whose kernel is one of these callables, and what is bound to its function."""
    kernel, bound = KERNELS[request.param]
    LIBRARY.define(f"{request.param}(Tensor x, int power) -> Tensor")
    LIBRARY.impl(request.param, kernel, "CPU")
    return f"suite_kernels::{request.param}", bound


def spec_of(name):
    return OpSpec(name, samples=[Sample((torch.ones(3), 2), name="ones")])


def test_what_is_bound_is_told_from_what_is_given(defined):
    name, bound = defined
    (entry,) = specs.entries([spec_of(name)])
    kernel = pykernel.first(Context(entry.spec, entry.info, device="cpu"))
    assert kernel.bound == bound


@pytest.mark.parametrize("check", ["registration.kernel_signature", "registration.hidden_input"])
def test_kernels_with_bound_parameters_are_no_fault(defined, check):
    report = check_op(spec_of(defined[0]), checks=[check], isolate="never")
    outcomes = {result.outcome for result in report.results if result.check == check}
    assert outcomes == {"pass"}, str(report)
