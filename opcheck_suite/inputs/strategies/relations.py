"""Relations between arguments: same dtype, broadcastable, dimension of, index into, offsets, sums.

Each takes the name of another argument of the call (``"x"``, or ``"xs[0]"`` for a member of a list), or a tensor that
is at hand. Used in `sample` and `from_schema`, or as an argument of `tensors` in these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from hypothesis import reject
from hypothesis import strategies as st

from opcheck_suite.inputs.strategies import fills
from opcheck_suite.inputs.strategies.parts import Draw, related, resolve, shown, value_of
from opcheck_suite.inputs.strategies.plain import seeds
from opcheck_suite.inputs.strategies.tensors import shapes
from opcheck_suite.registry import UsageError


def _tensor(part: Any, draw: Draw, known: Mapping[str, Any], text: str) -> torch.Tensor:
    value = resolve(part, draw, known)
    if not isinstance(value, torch.Tensor):
        raise UsageError(f"{text} needs a tensor, got {value!r}")
    return value


def _attribute(name: str, x: Any, get: Any) -> Any:
    other, text = value_of(x), shown(name, x)
    return related(lambda draw, known: get(_tensor(other, draw, known, text)), other, text=text)


def shape_of(x: Any) -> Any:
    """The shape of another argument: the two have one."""
    return _attribute("shape_of", x, lambda t: tuple(t.shape))


def dtype_of(x: Any) -> Any:
    """The dtype of another argument: the two have one."""
    return _attribute("dtype_of", x, lambda t: t.dtype)


def device_of(x: Any) -> Any:
    """The device of another argument: the two are on one."""
    return _attribute("device_of", x, lambda t: t.device)


def size_of(x: Any, dim: Any = 0) -> Any:
    """The size of a dimension of another argument. ``dim`` is a number, or the name of the argument that holds it.

    A 0-d tensor has size one in dimensions 0 and -1, as for torch's own ops.
    """
    other, along, text = value_of(x), value_of(dim), shown("size_of", x, dim)

    def pick(draw: Draw, known: Mapping[str, Any]) -> int:
        return _size(_tensor(other, draw, known, text), resolve(along, draw, known))

    return related(pick, other, along, text=text)


def length_of(xs: Any) -> Any:
    """The length of an argument that is a list."""
    other = value_of(xs)
    return related(lambda draw, known: len(resolve(other, draw, known)), other, text=shown("length_of", xs))


def _size(tensor: torch.Tensor, dim: int) -> int:
    if not tensor.dim():
        return 1
    if not -tensor.dim() <= dim < tensor.dim():
        raise UsageError(f"a tensor of shape {tuple(tensor.shape)} has no dimension {dim}")
    return tensor.shape[dim]


def dim_of(x: Any, *, negative: bool = True) -> Any:
    """Dimensions of another argument, counted from the front or, with ``negative``, also from the back.

    Shrinks to 0. For a 0-d tensor 0 and -1, as for torch's own ops.
    """
    other, text = value_of(x), shown("dim_of", x)

    def pick(draw: Draw, known: Mapping[str, Any]) -> int:
        rank = max(_tensor(other, draw, known, text).dim(), 1)
        return draw(st.integers(-rank if negative else 0, rank - 1))  # type: ignore[no-any-return]

    return related(pick, other, text=text)


def dims_of(x: Any, *, min_size: int = 0, negative: bool = True) -> Any:
    """Lists of different dimensions of another argument. Shrinks to few."""
    other, text = value_of(x), shown("dims_of", x)

    def pick(draw: Draw, known: Mapping[str, Any]) -> list[int]:
        rank = _tensor(other, draw, known, text).dim()
        if rank < min_size:
            return reject()
        chosen = draw(st.lists(st.integers(0, rank - 1), unique=True, min_size=min_size)) if rank else []
        return [dim - rank if negative and draw(st.booleans()) else dim for dim in chosen]

    return related(pick, other, text=text)


def broadcastable_with(*xs: Any, max_dims: int = 4, max_size: int = 8, to: bool = False) -> Any:
    """Shapes that broadcast with those of other arguments: leading dimensions fewer or more, sizes of one for others.

    With ``to`` the result of broadcasting has the shape of the others, so that the tensor can be added to one of them
    in place. Shrinks to the shape of the others broadcast together.
    """
    others, text = tuple(map(value_of, xs)), shown("broadcastable_with", *xs)

    def pick(draw: Draw, known: Mapping[str, Any]) -> tuple[int, ...]:
        given = [tuple(_tensor(other, draw, known, text).shape) for other in others]
        together = tuple(torch.broadcast_shapes(*given))
        left_out = draw(st.integers(0, len(together)))
        kept = together[left_out:]
        shape = []
        for size in kept:
            if size == 1 and not to:
                shape.append(draw(st.integers(1, max_size)))
            else:
                shape.append(1 if draw(st.booleans()) else size)
        more = max_dims - len(kept)
        if not left_out and not to and more > 0:
            shape = [*draw(st.lists(st.integers(1, max_size), max_size=more)), *shape]
        return tuple(shape)

    return related(pick, *others, text=text)


def index_into(
    x: Any,
    dim: Any = 0,
    *,
    shape: Any = None,
    dtype: Any = torch.int64,
    negative: bool = False,
    device: Any = None,
) -> Any:
    """Tensors of positions along a dimension of another argument: all are valid.

    ``dim`` is a number, or the name of the argument that holds it. ``shape`` is as for `tensors`; None: a vector of up
    to eight. With ``negative`` positions are also counted from the back. The device is that of the other argument.
    Where there are no positions the index is empty. Shrinks to zeros.
    """
    other, along, text = value_of(x), value_of(dim), shown("index_into", x, dim)
    wanted = shapes(1, 1, min_size=0) if shape is None else shape

    def pick(draw: Draw, known: Mapping[str, Any]) -> torch.Tensor:
        tensor = _tensor(other, draw, known, text)
        count = _size(tensor, resolve(along, draw, known))
        size = tuple(resolve(wanted, draw, known))
        if not count:
            size = (0,) if shape is None else size
            if 0 not in size:
                return reject()
        seed = draw(seeds())
        low = -count if negative else 0
        positions = torch.zeros(size, dtype=torch.int64)
        if seed and count:
            positions = torch.randint(low, count, size, generator=fills.generator(seed))
        return positions.to(resolve(dtype, draw, known)).to(_place(device, tensor, draw, known))

    return related(pick, other, along, wanted, dtype, device, text=text)


def sorted_offsets(
    x: Any, dim: Any = 0, *, end: bool = True, max_parts: int = 4, dtype: Any = torch.int64, device: Any = None
) -> Any:
    """Where the parts of a ragged dimension begin: ascending from 0, with empty parts among them.

    With ``end`` the last offset is the size of the dimension, so that n parts have n + 1 offsets; without, each part
    has one. Shrinks to one part.
    """
    other, along, text = value_of(x), value_of(dim), shown("sorted_offsets", x, dim)

    def pick(draw: Draw, known: Mapping[str, Any]) -> torch.Tensor:
        tensor = _tensor(other, draw, known, text)
        count = _size(tensor, resolve(along, draw, known))
        inner = sorted(draw(st.lists(st.integers(0, count), max_size=max_parts - 1)))
        found = [0, *inner, count] if end else [0, *inner]
        return torch.tensor(found, dtype=resolve(dtype, draw, known)).to(_place(device, tensor, draw, known))

    return related(pick, other, along, dtype, device, text=text)


def sums_to(total: Any, *, min_parts: int = 1, max_parts: int = 4, min_size: int = 0) -> Any:
    """Lists of integers that add up to a total, such as the lengths of the parts of a split.

    ``total`` is a number, the name of an argument that is one, or a relation such as ``size_of("x", "dim")``. No member
    is below ``min_size``. Shrinks to few members.
    """
    wanted = value_of(total)

    def pick(draw: Draw, known: Mapping[str, Any]) -> list[int]:
        whole = resolve(wanted, draw, known)
        most = min(max_parts, whole // min_size) if min_size else max_parts
        if most < min_parts or whole < 0:
            return reject()
        count = draw(st.integers(min_parts, most))
        free = whole - count * min_size
        cuts = sorted(draw(st.lists(st.integers(0, free), min_size=count - 1, max_size=count - 1)))
        return [high - low + min_size for low, high in zip([0, *cuts], [*cuts, free], strict=True)]

    return related(pick, wanted, text=shown("sums_to", total))


def _place(device: Any, tensor: torch.Tensor, draw: Draw, known: Mapping[str, Any]) -> Any:
    return tensor.device if device is None else resolve(device, draw, known)
