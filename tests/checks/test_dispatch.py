"""What the checks of family dispatch leave alone, and how they word what they find."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from opcheck_suite import OpSpec, Sample, check_op
from opcheck_suite.model import Outcome

X = torch.arange(6.0).reshape(2, 3)
LENGTHS = torch.tensor([1, 3])
BOTH = ("cpu", "cuda")


def result(check: str, op, samples, **claims):
    """The one result of a check on an op."""
    spec = OpSpec(op, samples=[Sample(s) for s in samples], **claims)
    (found,) = [r for r in check_op(spec, checks=[check], isolate="never").results if r.check == check]
    return found


@torch.library.custom_op("suite_dispatch::by_numpy", mutates_args=())
def by_numpy(x: Tensor) -> Tensor:
    return torch.from_numpy(x.detach().numpy() * 2)


@torch.library.custom_op("suite_dispatch::up_to", mutates_args=())
def up_to(x: Tensor, lengths: Tensor) -> Tensor:
    return torch.stack([row[:n].sum() for row, n in zip(x, lengths.numpy(), strict=True)])


@torch.library.custom_op("suite_dispatch::by_address", mutates_args=())
def by_address(x: Tensor) -> Tensor:
    return x * 2 if x.data_ptr() else x.clone()


@torch.library.custom_op("suite_dispatch::to_cpu", mutates_args=())
def to_cpu(x: Tensor) -> Tensor:
    return x.to("cpu", copy=True)


for _op in (by_numpy, by_address):
    _op.register_fake(lambda x: torch.empty_like(x))
up_to.register_fake(lambda x, _lengths: x.new_empty(x.shape[0]))
to_cpu.register_fake(lambda x: torch.empty_like(x, device="cpu"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="the kernels run on CUDA itself")
class TestDevices:
    def test_a_kernel_for_the_cpu_alone_is_a_fault_only_where_more_is_claimed(self):
        assert result("dispatch.devices", by_numpy, [(X,)], devices=("cpu",)).outcome is Outcome.SKIP
        assert result("dispatch.devices", by_numpy, [(X,)]).outcome is Outcome.SKIP
        found = result("dispatch.devices", by_numpy, [(X,)], devices=BOTH)
        assert found.outcome is Outcome.FAIL
        assert found.message.splitlines()[0] == "on cuda the kernel fails: numpy of a tensor on cuda:0"
        assert "x.detach().numpy() * 2" in found.message

    def test_an_argument_that_may_be_meant_for_the_cpu_is_left_alone(self):
        found = result("dispatch.devices", up_to, [(X, LENGTHS)], devices=BOTH)
        assert found.outcome is Outcome.SKIP
        assert found.message.startswith("the kernel works where 'lengths' stays on the CPU")

    def test_what_only_a_device_can_tell_is_left_alone(self):
        found = result("dispatch.devices", by_address, [(X,)], devices=BOTH)
        assert (found.outcome, "data_ptr of a tensor on cuda:0" in found.message) == (Outcome.SKIP, True)

    def test_an_output_may_be_on_the_cpu_where_the_fake_kernel_says_so(self):
        assert result("dispatch.devices", to_cpu, [(X,)], devices=BOTH).outcome is Outcome.PASS


def test_an_op_that_calls_another_op_in_its_place_is_seen_as_that():
    with torch.library._scoped_library("suite_dispatch", "FRAGMENT") as library:
        library.define("outer(Tensor x) -> Tensor")
        library.impl("outer", lambda x: x * 2, "CPU")
        library.impl("outer", lambda x: by_address(x), "Autograd")
        found = result("dispatch.modes", "suite_dispatch::outer", [(X,)])
    assert found.outcome is Outcome.SKIP
    assert "suite_dispatch.by_address" in found.message


def test_a_formula_for_every_device_that_has_a_kernel_is_enough():
    with torch.library._scoped_library("suite_dispatch", "FRAGMENT") as library:
        library.define("trained(Tensor x) -> Tensor")
        for key in ("CPU", "CUDA", "AutogradCPU", "AutogradCUDA"):
            library.impl("trained", lambda x: x * 2, key)
        assert result("dispatch.keys", "suite_dispatch::trained", [(X,)]).outcome is Outcome.PASS
        library.impl("trained", lambda x: x * 2, "XPU")
        found = result("dispatch.keys", "suite_dispatch::trained", [(X,)])
    assert found.outcome is Outcome.WARN
    assert "kernels for cpu, cuda, xpu, but its gradient is registered at AutogradCPU, AutogradCUDA" in found.message
