"""Strategies for arguments that are no tensors.

Numbers are small and round. They are drawn as integers below a hundred: for others Hypothesis also tries constants that
it finds in the modules which happen to be loaded, and the same seed would not always draw the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from opcheck_suite import devices as machine
from opcheck_suite.inputs.strategies.parts import Draw, related, resolve, shown, value_of
from opcheck_suite.registry import UsageError, did_you_mean

#: Kind of dtypes -> its members, the usual one first: shrinking ends there.
DTYPES: dict[str, tuple[torch.dtype, ...]] = {
    "floating": (torch.float32, torch.float64, torch.bfloat16, torch.float16),
    "integer": (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
    "complex": (torch.complex64, torch.complex128),
    "bool": (torch.bool,),
    "float8": (torch.float8_e4m3fn, torch.float8_e5m2),
}

#: Greatest integer that is drawn: see the module's text.
_MOST = 99

_SPECIAL_FLOATS = (float("nan"), float("inf"), float("-inf"), -0.0, 1e-30)

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def ints(low: int = -8, high: int = 8) -> SearchStrategy[int]:
    """Integers with both bounds included, for ``int`` and ``SymInt``; shrinks to the one nearest to zero.

    Raises UsageError when the bounds are the wrong way round.
    """
    if low > high:
        raise UsageError(f"ints({low}, {high}): the lower bound must not exceed the upper")
    nearest = min(max(low, 0), high)
    if high - low < _MOST:
        return st.integers(low - nearest, high - nearest).map(nearest.__add__)
    digits = st.integers(0, _MOST)
    count = 1
    while (_MOST + 1) ** count <= high - low:
        count += 1
    return st.tuples(*[digits] * count).map(lambda given: _from_digits(given, low, high, nearest))


def _from_digits(digits: tuple[int, ...], low: int, high: int, nearest: int) -> int:
    """Digits of base 100 as a number in an interval: first those from ``nearest`` upwards, then those below."""
    place = 0
    for digit in digits:
        place = place * (_MOST + 1) + digit
    place %= high - low + 1
    return nearest + place if place <= high - nearest else high - place


def floats(low: float = -4.0, high: float = 4.0, *, special: bool = False) -> SearchStrategy[float]:
    """Finite numbers from ``low`` to ``high``, at most 100 of them, with few digits; zero, if it is among them, first.

    ``special`` adds NaN, infinities, -0.0 and a very small number.
    """
    if not low <= high:
        raise UsageError(f"floats({low}, {high}): the lower bound must not exceed the upper")
    found = _grid(float(low), float(high))
    usual = st.sampled_from(found)
    return st.one_of(usual, st.sampled_from(_SPECIAL_FLOATS)) if special else usual


@functools.cache
def _grid(low: float, high: float) -> tuple[float, ...]:
    """Round numbers in an interval, the simplest first: multiples of the largest power of two of which enough fit."""
    if low == high:
        return (low,)
    step = 2.0**10
    while (high - low) / step < _MOST // 2 - 4:
        step /= 2
    inside = [n * step for n in range(int(low // step), int(high // step) + 2) if low <= n * step <= high]
    return tuple(sorted(inside, key=lambda v: (v != int(v), abs(v), v < 0)))


def bools() -> SearchStrategy[bool]:
    """False or true; shrinks to false."""
    return st.booleans()


def scalars(low: int = -4, high: int = 4) -> SearchStrategy[int | float]:
    """What a ``Scalar`` argument takes: an integer or a float. Which of the two decides dtypes."""
    return st.one_of(ints(low, high), floats(low, high))


def strings(*words: str) -> SearchStrategy[str]:
    """One of some words; without any, up to five letters."""
    if words:
        return st.sampled_from(words)
    return st.lists(st.sampled_from(_LETTERS), max_size=5).map("".join)


def dtypes(*kinds: str) -> SearchStrategy[torch.dtype]:
    """dtypes of some kinds: floating, integer, complex, bool, float8. Without any, floating.

    Raises UsageError for a kind that there is not.
    """
    for kind in kinds:
        if kind not in DTYPES:
            raise UsageError(f"dtypes: unknown kind {kind!r}{did_you_mean(kind, DTYPES)}")
    return st.sampled_from([dtype for kind in kinds or ("floating",) for dtype in DTYPES[kind]])


def devices(*names: str) -> SearchStrategy[torch.device]:
    """Some devices; without any, the CPU and the accelerator that this machine has."""
    return st.sampled_from([torch.device(name) for name in names or machine.select("auto")])


def layouts() -> SearchStrategy[torch.layout]:
    """The layouts a matrix can have: strided, COO, CSR and CSC."""
    return st.sampled_from([torch.strided, torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])


def memory_formats(x: Any = None) -> Any:
    """Memory formats, for a tensor or the argument of that name those that its rank allows."""
    general = (torch.contiguous_format, torch.preserve_format)
    if x is None:
        return st.sampled_from(general)
    tensor = value_of(x)

    def pick(draw: Draw, known: Mapping[str, Any]) -> torch.memory_format:
        own = {4: torch.channels_last, 5: torch.channels_last_3d}
        rank = resolve(tensor, draw, known).dim()
        return draw(st.sampled_from((*general, own[rank]) if rank in own else general))  # type: ignore[no-any-return]

    return related(pick, tensor, text=shown("memory_formats", x))


def generators(device: Any = "cpu") -> Any:
    """Random number generators with a drawn seed, new ones for each example."""

    def pick(draw: Draw, known: Mapping[str, Any]) -> torch.Generator:
        seed = draw(seeds())
        return torch.Generator(resolve(device, draw, known)).manual_seed(seed)

    return related(pick, device, text=shown("generators", device))


def seeds() -> SearchStrategy[int]:
    """The number that decides all values of a tensor."""
    return st.integers(0, _MOST)


def optional(part: Any) -> Any:
    """None, or what the part draws; shrinks to None."""

    def pick(draw: Draw, known: Mapping[str, Any]) -> Any:
        return resolve(part, draw, known) if draw(st.booleans()) else None

    return related(pick, part, text=shown("optional", part))


def lists(part: Any, *, size: Any = None, rest: Callable[[Any], Any] | None = None) -> Any:
    """Lists of what a part draws, one to three long unless a ``size`` is given.

    With ``rest`` the part draws the first member only, and the others are drawn from what ``rest`` makes of it:
    ``lists(tensors(), rest=like)`` are tensors of one shape, dtype and device.
    """
    length = st.integers(1, 3) if size is None else size

    def pick(draw: Draw, known: Mapping[str, Any]) -> list[Any]:
        count = resolve(length, draw, known)
        found: list[Any] = []
        while len(found) < count:
            found.append(resolve(rest(found[0]) if rest and found else part, draw, known))
        return found

    return related(pick, part, length, text=shown("lists", part))
