"""Copies, snapshots and descriptions of arguments.

A copy keeps whole storages: bytes that a tensor does not show (padding, packed weights, the rest of a buffer that it
is a view of) are part of what an op may read or wrongly write. Arguments that share memory still share it in the copy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

Args = tuple[tuple[Any, ...], dict[str, Any]]


def tensors(tree: Any) -> list[torch.Tensor]:
    """The tensors in nested lists, tuples and dicts, in order."""
    found: list[torch.Tensor] = []
    map_tensors(found.append, tree)
    return found


#: In code that Dynamo traces: the one of torch 2.9 cannot look at ``list | tuple``.
SEQUENCES = (list, tuple)


def listed(returned: Any) -> list[Any]:
    """What an op returned as a list: nothing, one value, or the members of a tuple. Dynamo can trace it."""
    return [] if returned is None else list(returned) if isinstance(returned, tuple) else [returned]


def map_tensors(fn: Callable[[torch.Tensor], Any], tree: Any) -> Any:
    """The same nest with ``fn`` applied to every tensor.

    Arguments of ops are nested in plain containers only; on these a general tree map costs more than many a kernel.
    """
    if isinstance(tree, torch.Tensor):
        return fn(tree)
    if type(tree) in (list, tuple):
        return type(tree)([map_tensors(fn, item) for item in tree])
    if type(tree) is dict:
        return {key: map_tensors(fn, item) for key, item in tree.items()}
    return pytree.tree_map_only(torch.Tensor, fn, tree) if isinstance(tree, list | tuple | dict) else tree


def strided(tensor: torch.Tensor) -> bool:
    """Whether the tensor is a plain view of one storage (not sparse, quantized, nested or a subclass of its own)."""
    return (
        type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.layout == torch.strided
        and not tensor.is_quantized
        and not tensor.is_nested
    )


def numeric(tensor: torch.Tensor) -> bool:
    """Whether the tensor is a plain one of floating-point or complex numbers."""
    return strided(tensor) and (tensor.is_floating_point() or tensor.is_complex())


def dtype_name(dtype: torch.dtype) -> str:
    """``bfloat16``, without the module."""
    return str(dtype).removeprefix("torch.")


def sizes(tensor: torch.Tensor) -> tuple[int, ...]:
    """The sizes of a tensor; of a nested one that holds its members side by side, only how many there are."""
    nested = tensor.is_nested and tensor.layout == torch.strided
    return (tensor.size(0),) if nested else tuple(tensor.shape)


def fresh(tree: Any, *, device: str | torch.device | None = None) -> Any:
    """A copy of arguments that shares no memory with them. Nothing in the copy requires grad.

    With a device, tensors are moved there; shapes, strides, offsets and sharing between them stay as they were. A
    tensor that is given twice is one tensor in the copy, too.
    """
    storages: dict[int, torch.UntypedStorage] = {}
    copies: dict[int, torch.Tensor] = {}

    def once(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in copies:
            copies[id(tensor)] = copy(tensor)
        return copies[id(tensor)]

    def copy(tensor: torch.Tensor) -> torch.Tensor:
        if not strided(tensor):
            moved = tensor.detach().clone()
            return moved if device is None else moved.to(device)
        source = tensor.detach()
        conj, neg = source.is_conj(), source.is_neg()
        if conj:
            source = source.conj()
        if neg:
            source = source._neg_view()
        old = source.untyped_storage()
        key = old._cdata
        if key not in storages:
            new = old.clone()
            storages[key] = new if device is None else _storage_on(new, device)
        result = torch.empty(0, dtype=source.dtype, device=storages[key].device)
        result.set_(storages[key], source.storage_offset(), source.size(), source.stride())
        if neg:
            result = result._neg_view()
        return result.conj() if conj else result

    return map_tensors(once, tree)


def fresh_generators(given: Args, *, device: torch.device | None = None) -> Args:
    """The arguments with a copy of every random number generator, since a call changes its state.

    With a device, they are generators of that device with the same seed.
    """

    def copy(value: Any) -> Any:
        if not isinstance(value, torch.Generator):
            return value
        made = torch.Generator(value.device if device is None else device)
        if made.device == value.device:
            made.set_state(value.get_state())
        else:
            made.manual_seed(value.initial_seed())
        return made

    args, kwargs = given
    return tuple(map(copy, args)), {name: copy(value) for name, value in kwargs.items()}


def _storage_on(storage: torch.UntypedStorage, device: str | torch.device) -> torch.UntypedStorage:
    flat = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
    return flat.to(device).untyped_storage()


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """The bytes of one storage, and where an argument looks at them."""

    name: str
    tensor: torch.Tensor
    data: torch.Tensor
    version: int
    meta: tuple[Any, ...]

    def changed_bytes(self) -> torch.Tensor:
        """A mask over the bytes of the whole storage: which are not what they were."""
        now = raw(self.tensor)
        if now.numel() != self.data.numel():
            return torch.ones(max(now.numel(), self.data.numel()), dtype=torch.bool, device=now.device)
        return now != self.data


def raw(tensor: torch.Tensor) -> torch.Tensor:
    """The whole storage of a strided tensor as bytes (a view). Shape ``(nbytes,)``."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.detach().untyped_storage())


def layout(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Size, stride, offset, dtype and the lazy bits of a tensor: all that is not data."""
    if not strided(tensor):
        return (sizes(tensor), tensor.dtype)
    return (
        tuple(tensor.shape),
        tuple(tensor.stride()),
        tensor.storage_offset(),
        tensor.dtype,
        tensor.is_conj(),
        tensor.is_neg(),
        tensor.untyped_storage().data_ptr(),
    )


def snapshot(named: Iterator[tuple[str, torch.Tensor]] | list[tuple[str, torch.Tensor]]) -> list[Snapshot]:
    """Remember the state of arguments before a call. Tensors without plain storage are left out."""
    return [
        Snapshot(name, tensor, raw(tensor).clone(), tensor._version, layout(tensor))
        for name, tensor in named
        if strided(tensor)
    ]


def visible_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A mask over the bytes of the whole storage: which belong to elements of this tensor."""
    size = tensor.untyped_storage().nbytes()
    mask = torch.zeros(size, dtype=torch.bool)
    item = tensor.element_size()
    if tensor.numel() == 0 or size == 0:
        return mask
    elements = torch.zeros((size + item - 1) // item, dtype=torch.bool)
    elements.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset()).fill_(True)
    return elements.repeat_interleave(item)[:size]


def span(tensor: torch.Tensor) -> tuple[int, int]:
    """First address and the address after the last of the elements of a tensor; equal when it has none."""
    start = tensor.data_ptr()
    if tensor.numel() == 0:
        return start, start
    reach = sum((size - 1) * stride for size, stride in zip(tensor.size(), tensor.stride(), strict=True))
    return start, start + (reach + 1) * tensor.element_size()


def overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors can share an element, judged by addresses.

    Addresses, since memory that went through another array library has two storages. Two views of one storage with
    interleaved elements are told apart exactly when the storage is small.
    """
    if not (strided(a) and strided(b)) or a.device != b.device or a.device.type == "meta":
        return False
    (a0, a1), (b0, b1) = span(a), span(b)
    if a0 >= b1 or b0 >= a1:
        return False
    if a.untyped_storage()._cdata == b.untyped_storage()._cdata and a.untyped_storage().nbytes() < 1 << 22:
        return bool((visible_bytes(a) & visible_bytes(b)).any())
    return True


def describe(tensor: torch.Tensor) -> str:
    """A tensor in words, such as ``float32[4, 8] stride (1, 4) offset 2 on cuda``; what is usual is left out."""
    text = f"{dtype_name(tensor.dtype)}{list(sizes(tensor))}"
    if tensor.is_nested:
        return f"nested {text}"
    if strided(tensor):
        if not tensor.is_contiguous():
            text += f" stride {tuple(tensor.stride())}"
        if tensor.storage_offset():
            text += f" offset {tensor.storage_offset()}"
        if tensor.is_conj():
            text += " conj"
        if tensor.is_neg():
            text += " neg"
    elif tensor.layout != torch.strided:
        text += f" {str(tensor.layout).removeprefix('torch.')}"
    if tensor.device.type != "cpu":
        text += f" on {tensor.device}"
    return text


def describe_value(value: Any) -> str:
    """An argument or output in words; long values are cut."""
    if isinstance(value, torch.Tensor):
        return describe(value)
    if isinstance(value, list | tuple) and tensors(value):
        inner = ", ".join(describe_value(v) for v in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
