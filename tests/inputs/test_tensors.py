"""Copies, snapshots and descriptions of arguments."""

from __future__ import annotations

import pytest
import torch

from opcheck_suite.inputs import tensors


def fresh(*args):
    copied, kwargs = tensors.fresh((args, {}))
    assert kwargs == {}
    return copied


# -- copies


def layouts() -> dict[str, torch.Tensor]:
    base = torch.arange(24.0)
    return {
        "packed": base.clone().reshape(4, 6),
        "transposed": base.clone().reshape(4, 6).t(),
        "stepped": base.clone()[::2],
        "offset": base.clone()[5:17].reshape(3, 4),
        "expanded": torch.arange(3.0)[None].expand(4, 3),
        "scalar": torch.tensor(2.0),
        "empty": torch.empty(0, 3),
        "one of many": base.clone().reshape(2, 12)[1],
        "channels last": base.clone().reshape(1, 2, 3, 4).contiguous(memory_format=torch.channels_last),
        "integers": torch.arange(5),
        "bool": torch.tensor([True, False]),
        "float8": torch.arange(4.0).to(torch.float8_e4m3fn),
        "parameter": torch.nn.Parameter(torch.ones(2)),
    }


@pytest.mark.parametrize("name", layouts())
def test_a_copy_has_the_values_and_the_layout_but_not_the_memory(name):
    tensor = layouts()[name]
    (copy,) = fresh(tensor)
    assert copy.dtype == tensor.dtype
    assert copy.stride() == tensor.stride()
    assert copy.storage_offset() == tensor.storage_offset()
    assert torch.equal(copy.to(torch.float64), tensor.detach().to(torch.float64))
    assert not tensors.overlap(copy, tensor)
    assert not copy.requires_grad
    assert type(copy) is torch.Tensor


def test_a_copy_keeps_the_whole_storage():
    buffer = torch.arange(10.0)
    (copy,) = fresh(buffer[3:5])
    assert copy.untyped_storage().nbytes() == 40
    assert torch.equal(torch.empty(0).set_(copy.untyped_storage()), buffer)


def test_arguments_that_share_memory_share_it_in_the_copy():
    buffer = torch.zeros(6)
    a, b, other = fresh(buffer[:4], buffer[2:], torch.zeros(6))
    a[3] = 7
    assert b[1] == 7
    assert other.sum() == 0
    assert buffer.sum() == 0


def test_sharing_is_kept_in_lists_and_keyword_arguments():
    buffer = torch.zeros(3)
    (copied, kwargs) = tensors.fresh((([buffer, buffer],), {"out": buffer}))
    kwargs["out"][0] = 1
    assert copied[0][0][0] == copied[0][1][0] == 1


def test_a_tensor_that_is_given_twice_is_one_in_the_copy():
    tensor = torch.zeros(3)
    (a, b, [c], other) = fresh(tensor, tensor, [tensor], tensor[:])
    assert a is b is c
    assert a is not tensor
    assert other is not a


def test_sharing_between_dtypes_is_kept():
    buffer = torch.zeros(4)
    a, b = fresh(buffer, buffer.view(torch.int32))
    a[0] = 1.0
    assert b[0] == 0x3F800000


@pytest.mark.parametrize("conj", [False, True])
@pytest.mark.parametrize("neg", [False, True])
def test_lazy_bits_are_kept(conj, neg):
    tensor = torch.tensor([1 + 2j, 3 - 1j])[1:]
    tensor = tensor.conj() if conj else tensor
    tensor = tensor._neg_view() if neg else tensor
    (copy,) = fresh(tensor)
    assert (copy.is_conj(), copy.is_neg()) == (conj, neg)
    assert torch.equal(copy, tensor)
    assert copy.storage_offset() == 1


def test_the_imaginary_part_of_a_conjugate_is_a_negative_view():
    tensor = torch.tensor([1 + 2j]).conj().imag
    assert tensor.is_neg()
    (copy,) = fresh(tensor)
    assert copy.is_neg()
    assert copy.item() == -2.0


def test_what_is_no_tensor_is_passed_on():
    marker = object()
    args, kwargs = tensors.fresh(((1, "x", None, marker, [2.0]), {"dtype": torch.float32}))
    assert args == (1, "x", None, marker, [2.0])
    assert kwargs == {"dtype": torch.float32}


def test_tensors_without_plain_storage_are_copied():
    sparse = torch.eye(3).to_sparse()
    (copy,) = fresh(sparse)
    assert copy is not sparse
    assert copy.layout == torch.sparse_coo
    assert torch.equal(copy.to_dense(), torch.eye(3))
    copy.values().zero_() if copy.is_coalesced() else copy._values().zero_()
    assert torch.equal(sparse.to_dense(), torch.eye(3))


def test_a_copy_can_go_to_another_device_with_its_layout():
    buffer = torch.arange(12.0)
    args, _ = tensors.fresh(((buffer.reshape(3, 4).t(), buffer[2:4]), {}), device="meta")
    assert [a.device.type for a in args] == ["meta", "meta"]
    assert args[0].stride() == (1, 4)
    assert args[1].storage_offset() == 2
    assert args[0].untyped_storage()._cdata == args[1].untyped_storage()._cdata


# -- snapshots


def _changed(tensor: torch.Tensor, change) -> list[int]:
    (snapshot,) = tensors.snapshot([("x", tensor)])
    change(tensor)
    return snapshot.changed_bytes().nonzero().flatten().tolist()


def test_a_snapshot_sees_every_byte_of_the_storage():
    assert _changed(torch.zeros(4), lambda x: None) == []
    assert _changed(torch.zeros(4, dtype=torch.uint8), lambda x: x[2].fill_(1)) == [2]
    buffer = torch.zeros(4, dtype=torch.uint8)
    assert _changed(buffer[:1], lambda x: buffer[3].fill_(1)) == [3]


def test_a_snapshot_sees_bits_that_compare_equal():
    assert _changed(torch.zeros(1), lambda x: x.neg_()) == [3]
    nan = torch.tensor([0x7FC00000], dtype=torch.int32)
    assert _changed(nan.view(torch.float32), lambda x: nan.add_(1)) == [0]


def test_a_snapshot_of_a_storage_that_was_resized_is_changed_everywhere():
    assert len(_changed(torch.zeros(2), lambda x: x.resize_(4))) == 16


def test_a_snapshot_keeps_name_version_and_layout():
    tensor = torch.zeros(2, 3)
    (before,) = tensors.snapshot([("x", tensor)])
    assert (before.name, before.version) == ("x", tensor._version)
    assert before.meta == tensors.layout(tensor)
    tensor.t_()
    tensor.add_(0)
    assert before.meta != tensors.layout(tensor)
    assert tensor._version > before.version


def test_tensors_without_plain_storage_have_no_snapshot():
    assert tensors.snapshot([("x", torch.eye(2).to_sparse())]) == []


def test_visible_bytes_are_those_of_the_elements():
    buffer = torch.zeros(6, dtype=torch.int16)
    assert tensors.visible_bytes(buffer[::2]).tolist() == [True, True, False, False] * 3
    assert tensors.visible_bytes(buffer[1:2]).nonzero().flatten().tolist() == [2, 3]
    assert tensors.visible_bytes(buffer).all()
    assert not tensors.visible_bytes(buffer[:0]).any()
    assert tensors.visible_bytes(torch.zeros(3)[None].expand(5, 3)).sum() == 12


# -- overlap


def test_views_of_one_element_overlap():
    buffer = torch.zeros(8)
    assert tensors.overlap(buffer, buffer)
    assert tensors.overlap(buffer[:5], buffer[4:])
    assert not tensors.overlap(buffer[:4], buffer[4:])
    assert not tensors.overlap(buffer, torch.zeros(8))


def test_interleaved_views_do_not_overlap():
    buffer = torch.zeros(8)
    assert not tensors.overlap(buffer[::2], buffer[1::2])
    assert tensors.overlap(buffer[::2], buffer[::4])


def test_memory_that_came_by_another_library_overlaps():
    buffer = torch.zeros(4)
    again = torch.from_numpy(buffer.numpy())
    assert again.untyped_storage()._cdata != buffer.untyped_storage()._cdata
    assert tensors.overlap(buffer, again)


def test_views_of_other_dtypes_overlap():
    buffer = torch.zeros(4)
    assert tensors.overlap(buffer[:1], buffer.view(torch.int16)[1:2])
    assert not tensors.overlap(buffer[:1], buffer.view(torch.int16)[2:])


def test_tensors_without_elements_overlap_nothing():
    buffer = torch.zeros(4)
    assert not tensors.overlap(buffer[:0], buffer)
    assert len(set(tensors.span(buffer[:0]))) == 1
    assert tensors.span(buffer[1:]) == (buffer.data_ptr() + 4, buffer.data_ptr() + 16)


# -- words


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (torch.zeros(4, 8), "float32[4, 8]"),
        (torch.zeros(8, 4).t(), "float32[4, 8] stride (1, 4)"),
        (torch.zeros(8)[2:], "float32[6] offset 2"),
        (torch.zeros(()), "float32[]"),
        (torch.zeros(2, dtype=torch.complex64).conj(), "complex64[2] conj"),
        (torch.zeros(2)._neg_view(), "float32[2] neg"),
        (torch.zeros(2, device="meta"), "float32[2] on meta"),
        (torch.eye(2).to_sparse(), "float32[2, 2] sparse_coo"),
        (torch.zeros(2, dtype=torch.bool), "bool[2]"),
    ],
)
def test_tensors_in_words(tensor, words):
    assert tensors.describe(tensor) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([torch.zeros(1), torch.zeros(2)], "[float32[1], float32[2]]"),
        ((torch.zeros(1), 3), "(float32[1], 3)"),
        ([1, 2], "[1, 2]"),
        ("x", "'x'"),
        (list(range(100)), repr(list(range(100)))[:57] + "..."),
    ],
)
def test_values_in_words(value, words):
    assert tensors.describe_value(value) == words
