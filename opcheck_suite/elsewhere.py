"""Run a Python kernel as if its arguments were on a device that is not there.

Its tensors are CPU tensors that carry the name of another device. A mode at the level of torch functions, through which
all calls from Python pass, computes on the CPU and keeps book of which device each result would be on. Whether a
function takes tensors of two devices is asked of torch's fake tensors, which know that a 0-d tensor of the CPU goes
with everything, and how indices are treated.

What needs the device itself (addresses, streams, compiled kernels) cannot be answered and ends the run: `Undecided`.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from opcheck_suite import fakes, places
from opcheck_suite.inputs import tensors

_HOST = torch.device("cpu")

#: Methods and attributes that hand out memory, or that change which memory or sizes a tensor has.
_NEED_DEVICE = re.compile(
    r"data_ptr|untyped_storage|_?(typed_)?storage|__dlpack\w*|__cuda_array_interface__|pin_memory|record_stream"
    r"|share_memory_|resize_|resize_as_|set_|t_|transpose_|unsqueeze_|squeeze_|swap(axes|dims)_|as_strided_|__set__|type"
)


class Undecided(Exception):
    """The kernel does something that only the device itself can answer."""


class Mixed(RuntimeError):
    """A function was given tensors on two devices, and takes only one."""


class ReadsHost(TypeError):
    """Values were asked for as if they were in the memory of the CPU."""


class _Placed(torch.Tensor):
    """A tensor with the name of a device."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]
    plain: torch.Tensor
    place: torch.device


def _placed(plain: torch.Tensor, place: torch.device) -> _Placed:
    found = plain.as_subclass(_Placed)
    found.plain, found.place = plain, place
    return found


def place_of(tensor: torch.Tensor) -> torch.device | None:
    """The device on which a tensor would be; None for one that torch did not make, and whose place is not known."""
    if isinstance(tensor, _Placed):
        return tensor.place
    # Memory that NumPy or another library of the CPU owns; what extensions in C++ allocate can be resized.
    return None if tensor.device != _HOST or tensor.untyped_storage().resizable() else _HOST


def run(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    device: str,
    *,
    stay: torch.Tensor | None = None,
) -> Any:
    """Call a kernel with its tensors and device arguments on a type of device; `place_of` tells where its outputs are.

    One argument may ``stay`` on the CPU.

    Raises `Mixed` or `ReadsHost` where the kernel would fail on the device, `Undecided` where that cannot be told, and
    what the kernel raises.
    """
    target = torch.device(device, 0)

    def move(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return _placed(value, _HOST if value is stay else target)
        if isinstance(value, list | tuple):
            return type(value)(move(v) for v in value)
        return target if isinstance(value, torch.device) else value

    args, kwargs = tuple(move(a) for a in args), {name: move(v) for name, v in kwargs.items()}
    with _Elsewhere(target):
        return function(*args, **kwargs)


def own_line(error: BaseException) -> str:
    """``file:line: code`` of the innermost line outside of torch that an exception came through, or empty."""
    frames = traceback.extract_tb(error.__traceback__)
    inner = [f for f in frames if not places.between(f.filename)]
    return f"{inner[-1].filename}:{inner[-1].lineno}: {inner[-1].line}" if inner else ""


class _Elsewhere(TorchFunctionMode):
    def __init__(self, target: torch.device) -> None:
        super().__init__()
        self._target = target

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if isinstance(first, _Placed) and first.place != _HOST:
            if name == "__get__":
                name = getattr(func.__self__, "__name__", name)
            if _NEED_DEVICE.fullmatch(name):
                raise Undecided(f"{name} of a tensor on {first.place}")
            if (answer := _attribute(name, first, kwargs)) is not None:
                return answer
        if name in ("to", "cpu", "cuda", "xpu") and first is not None:
            return _move(name, first, args[1:], kwargs)
        return _compute(func, args, kwargs, self._target)


def _attribute(name: str, tensor: _Placed, kwargs: dict[str, Any]) -> Any:
    """What an attribute or method says that tells of the device; None for others."""
    if name == "device":
        return tensor.place
    if name == "get_device":
        return tensor.place.index
    if name in ("is_cpu", "is_cuda", "is_xpu", "is_mps", "is_meta"):
        return name == f"is_{tensor.place.type}"
    if name in ("numpy", "__array__"):
        if kwargs.get("force"):
            return tensor.plain.numpy(force=True)
        raise ReadsHost(f"{name} of a tensor on {tensor.place}")
    return None


def _move(name: str, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """``tensor.to(...)`` and its like: computed on the CPU, in the place asked for, and copied if that is new."""
    was = place_of(tensor)
    place = {"to": was, "cpu": _HOST}.get(name, torch.device(name if name != "to" else "cpu", 0))
    kept: list[Any] = []
    for value in [*args, kwargs.pop("device", None)]:
        if isinstance(value, torch.Tensor):
            place = place_of(value)
            kept.append(value.dtype)
        elif isinstance(value, torch.device | str):
            place = _indexed(torch.device(value))
        elif value is not None and name == "to":
            kept.append(value)
    plain = _plain(tensor)
    moved = plain.to(*kept, **kwargs) if name == "to" and (kept or kwargs) else plain
    if moved is plain and place == was:
        return tensor
    return moved if place is None else _placed(moved.clone() if moved is plain else moved, place)


def _compute(func: Any, args: Any, kwargs: dict[str, Any], target: torch.device) -> Any:
    """The result of a function, computed on the CPU, with the device on which it would be."""
    given = tensors.tensors([list(args), kwargs])
    placed = [t for t in given if isinstance(t, _Placed)]
    places = {t.place for t in placed}
    if len(places) > 1 and fakes.mixes_devices(func, args, kwargs, place_of):
        name = getattr(func, "__name__", str(func))
        raise Mixed(f"{name} is given tensors on {' and '.join(sorted(map(str, places)))}")
    place = None
    if isinstance(kwargs.get("device"), str | torch.device):
        place = _indexed(torch.device(kwargs["device"]))
        kwargs["device"] = _HOST
    elif places or not given:
        place = target if target in places else _HOST
    originals = {id(t.plain): t for t in placed}

    def label(t: torch.Tensor) -> torch.Tensor:
        if id(t) in originals:  # the function returns its argument
            return originals[id(t)]
        return t if place is None or isinstance(t, _Placed) else _placed(t, place)

    plain_args, plain_kwargs = tensors.map_tensors(_plain, (tuple(args), kwargs))
    return tensors.map_tensors(label, func(*plain_args, **plain_kwargs))


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.plain if isinstance(tensor, _Placed) else tensor


def _indexed(device: torch.device) -> torch.device:
    return device if device.type == "cpu" or device.index is not None else torch.device(device.type, 0)
