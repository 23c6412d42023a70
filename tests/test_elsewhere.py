"""Kernels that are run as if on a device that is not there."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from opcheck_suite import elsewhere

TABLE = torch.arange(4.0)


def outcome(kernel, *args, **kwargs):
    """The place of a kernel's output, or what it raised."""
    try:
        out = elsewhere.run(kernel, args or (torch.ones(3, 4),), {}, "cuda", **kwargs)
    except Exception as error:
        return type(error)
    return elsewhere.place_of(out)


def item_assigned(x):
    y = x.clone()
    y[0] = torch.zeros(4)
    return y


@pytest.mark.parametrize(
    "kernel",
    [
        lambda x: x * 2,
        lambda x: x.new_empty(x.shape).copy_(x * 2),
        lambda x: torch.zeros(x.shape, device=x.device) + x,
        lambda x: x + torch.tensor(2.0),  # a number
        lambda x: x[torch.tensor([0, 1])],  # indices may be on the CPU
        lambda x: x.clone().copy_(torch.ones(3, 4)),
        item_assigned,
        lambda x: x[x > 0] * float(x.sum()),
        lambda x: torch.from_numpy(x.cpu().numpy() * 2).to(x.device),
        lambda x: torch.as_tensor(np.asarray(x.cpu())).to(x),
        lambda x: torch.from_numpy(x.numpy(force=True)).cuda(),
        lambda x: torch.stack([row * 2 for row in x]),
        lambda x: torch.nn.functional.linear(x, x.new_ones(5, 4)),
        lambda x: x if x.is_cuda and not x.is_cpu and x.get_device() == 0 else None,
        lambda x: x.T.contiguous().mT,
        lambda x: x.mul_(2),
    ],
)
def test_a_kernel_that_follows_its_input_ends_there(kernel):
    assert outcome(kernel) == torch.device("cuda", 0)


@pytest.mark.parametrize(
    "kernel",
    [
        lambda x: torch.zeros(x.shape) + x,
        lambda x: x.matmul(torch.ones(4, 2)),
        lambda x: torch.cat([x, torch.zeros(1, 4)]),
        lambda x: torch.where(x > 0, x, torch.zeros(4)),
        lambda x: torch.nn.functional.linear(x, torch.ones(5, 4)),
        lambda x: torch.ops.aten.add.Tensor(x, torch.ones(3, 4)),
        lambda x: x.cpu() + x,
    ],
)
def test_tensors_on_two_devices_are_refused_as_torch_does(kernel):
    assert outcome(kernel) is elsewhere.Mixed


@pytest.mark.parametrize("kernel", [lambda x: x.numpy(), lambda x: np.asarray(x)])
def test_host_memory_is_not_read(kernel):
    assert outcome(kernel) is elsewhere.ReadsHost


@pytest.mark.parametrize(
    "kernel",
    [
        lambda x: x * x.data_ptr(),
        lambda x: x.untyped_storage(),
        lambda x: np.from_dlpack(x),
        lambda x: x.unsqueeze_(0),
    ],
)
def test_what_needs_the_device_is_left_undecided(kernel):
    assert outcome(kernel) is elsewhere.Undecided


@pytest.mark.parametrize(
    "kernel",
    [
        lambda x: torch.zeros(x.shape).copy_(x),
        lambda x: x.cpu(),
        lambda x: torch.as_tensor(x.cpu().numpy()),
        lambda x: torch.from_numpy(x.cpu().numpy()),
        lambda x: x.to("cpu", torch.float64),
    ],
)
def test_an_output_can_be_left_on_the_cpu(kernel):
    assert outcome(kernel) == torch.device("cpu")


def test_where_a_tensor_of_unknown_origin_is_cannot_be_told():
    assert outcome(lambda x: TABLE) is None


def test_a_copy_to_the_cpu_shares_no_memory():
    def writes(x):
        x.cpu().zero_()
        return x

    assert torch.equal(elsewhere.run(writes, (torch.ones(2),), {}, "cuda").plain, torch.ones(2))


def test_an_argument_can_stay_on_the_cpu():
    x, lengths = torch.ones(3), torch.tensor([1, 2, 3])

    def kernel(x, lengths):
        return x * float(lengths.numpy().sum())

    assert outcome(kernel, x, lengths) is elsewhere.ReadsHost
    assert outcome(kernel, x, lengths, stay=lengths) == torch.device("cuda", 0)


def test_devices_among_the_arguments_are_moved_and_values_are_right():
    def kernel(size, device):
        return torch.arange(size, device=device) * 2

    out = elsewhere.run(kernel, (3,), {"device": torch.device("cpu")}, "cuda")
    assert elsewhere.place_of(out) == torch.device("cuda", 0)
    assert out.plain.tolist() == [0, 2, 4]


def test_the_line_that_fails_is_named():
    with pytest.raises(elsewhere.Mixed, match="add is given tensors on cpu and cuda:0") as raised:
        elsewhere.run(lambda x: torch.zeros(3) + x, (torch.ones(3),), {}, "cuda")
    assert elsewhere.own_line(raised.value).startswith(f"{__file__}:")
    assert "torch.zeros(3) + x" in elsewhere.own_line(raised.value)


def test_nothing_is_left_behind():
    outcome(lambda x: torch.zeros(3) + x)
    assert type(torch.zeros(3)) is torch.Tensor
    assert torch.zeros(3).device == torch.device("cpu")
