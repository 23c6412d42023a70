"""Compare outputs, and say in words how they differ.

Every function returns None when all is well, else a text whose first line states the difference.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from opcheck_suite.inputs import tensors

#: torch.testing's tolerances, ``(rtol, atol)`` by the size of a real number in bits; bfloat16 has its own.
_DEFAULTS = {16: (1e-3, 1e-5), 32: (1.3e-6, 1e-5), 64: (1e-7, 1e-7)}


def values(
    actual: Any,
    expected: Any,
    *,
    tolerances: tuple[float, float] | None = None,
    names: str = "output",
    growth: float = 1.0,
    coarse: torch.dtype | None = None,
) -> str | None:
    """Compare two nests of outputs. NaN equals NaN.

    ``tolerances`` is ``(rtol, atol)``; None takes torch.testing's defaults for the dtype, and ``(0, 0)`` is exact.
    ``growth`` says how many times more elements there are than in the input that the tolerances are meant for: where
    outputs are sums, so many more roundings may add up. With ``coarse``, floating-point outputs get the default
    tolerances of that dtype where these are wider than their own.
    """
    a, b = pytree.tree_leaves(_members(actual)), pytree.tree_leaves(_members(expected))
    if len(a) != len(b):
        return f"{len(a)} outputs, expected {len(b)}"
    for n, (x, y) in enumerate(zip(a, b, strict=True)):
        name = f"{names} {n}" if len(a) > 1 else names
        if text := leaf(x, y, tolerances=tolerances, name=name, growth=growth, coarse=coarse):
            return text
    return None


def _members(tree: Any) -> Any:
    """The nest with the members of nested tensors in their place."""

    def members(t: torch.Tensor) -> Any:
        return list(t.detach().unbind()) if t.is_nested else t

    return tensors.map_tensors(members, tree)


def leaf(
    actual: Any,
    expected: Any,
    *,
    tolerances: tuple[float, float] | None = None,
    name: str = "output",
    growth: float = 1.0,
    coarse: torch.dtype | None = None,
) -> str | None:
    """Compare two outputs: tensors by dtype, shape and values, numbers within tolerance, the rest by equality."""
    if isinstance(actual, torch.Tensor) != isinstance(expected, torch.Tensor):
        return f"{name} is {_kind(actual)}, expected {_kind(expected)}"
    if not isinstance(actual, torch.Tensor):
        return _plain(actual, expected, tolerances, name)
    if actual.dtype != expected.dtype:
        return f"{name} has dtype {actual.dtype}, expected {expected.dtype}"
    if actual.shape != expected.shape:
        return f"{name} has shape {tuple(actual.shape)}, expected {tuple(expected.shape)}"
    if tolerances is None and coarse is not None and (actual.is_floating_point() or actual.is_complex()):
        tolerances = max(default_tolerances(actual.dtype), default_tolerances(coarse))
    return _tensor(actual, expected, tolerances, name, growth)


def roughly(
    actual: torch.Tensor,
    expected: torch.Tensor,
    *,
    rtol: float = 1e-3,
    atol: float = 1e-4,
    slack: float = 0.0,
    name: str = "output",
) -> str | None:
    """Compare floating-point or complex tensors of one shape whose dtypes may differ.

    ``atol`` is for numbers around one: it grows with the largest; ``slack`` is added as it is. What is not finite, or
    beyond half precision, is left out: which numbers overflow depends on the dtype.
    """
    precise = torch.complex128 if actual.is_complex() or expected.is_complex() else torch.float64
    a, b = _comparable(actual).to(precise), _comparable(expected).to(precise)
    finite = torch.isfinite(a) & torch.isfinite(b) & (b.abs() < 6e4)
    scale = float(b[finite].abs().max()) if finite.any() else 0.0
    return leaf(a[finite], b[finite], tolerances=(rtol, atol * max(1.0, scale) + slack), name=name)


def coarsest(tree: Any) -> torch.dtype | None:
    """The dtype with the widest tolerance among the floating-point tensors of a nest, or None."""
    found = {t.dtype for t in tensors.tensors(tree) if t.is_floating_point() or t.is_complex()}
    return max(found, key=lambda dtype: default_tolerances(dtype)[0], default=None)


def _tensor(
    actual: torch.Tensor, expected: torch.Tensor, tolerances: tuple[float, float] | None, name: str, growth: float
) -> str | None:
    a, b = _comparable(actual), _comparable(expected)
    rtol, atol = tolerances or default_tolerances(actual.dtype)
    if growth > 1 and tensors.strided(b) and (a.is_floating_point() or a.is_complex()):
        # Kernels for half precision add up in float32. The bound of a sum's error is relative to its largest terms.
        rounding = growth * min(torch.finfo(torch.float32).eps, torch.finfo(a.dtype).eps)
        finite = b[torch.isfinite(b)].abs()
        rtol, atol = rtol + rounding, atol + rounding * (float(finite.max()) if finite.numel() else 0.0)
    try:
        torch.testing.assert_close(a, b, rtol=rtol, atol=atol, equal_nan=True, check_device=False, check_stride=False)
    except AssertionError as error:
        return f"{name} has wrong values: {_where(a, b, str(error), (rtol, atol))}"
    return None


def default_tolerances(dtype: torch.dtype) -> tuple[float, float]:
    """``(rtol, atol)`` for a dtype: torch.testing's, and for float8 what its spacing asks for."""
    if str(dtype).startswith("torch.q"):  # quantized: compared as float32
        return _DEFAULTS[32]
    if not (dtype.is_floating_point or dtype.is_complex):
        return 0.0, 0.0
    if dtype.itemsize == 1:  # float8: judged by its own spacing
        return 0.13, 1e-2
    if dtype == torch.bfloat16:
        return 1.6e-2, 1e-5
    return _DEFAULTS[torch.finfo(dtype).bits]


def _comparable(t: torch.Tensor) -> torch.Tensor:
    t = t.detach().resolve_conj().resolve_neg()
    if t.is_floating_point() and t.element_size() == 1:
        return t.to(torch.float32)
    return t


def _where(a: torch.Tensor, b: torch.Tensor, text: str, tolerances: tuple[float, float]) -> str:
    """How many elements differ, and the one that is furthest beyond its tolerance."""
    if a.layout != torch.strided or a.is_quantized or a.is_nested or a.numel() == 0:
        return text.splitlines()[0]
    a, b = a.cpu(), b.cpu()
    wide = torch.complex128 if a.is_complex() else torch.float64
    x, y = a.to(wide), b.to(wide)
    gap = (x - y).abs()
    both_nan = torch.isnan(x.real if a.is_complex() else x) & torch.isnan(y.real if a.is_complex() else y)
    gap = torch.where(both_nan | (x == y), torch.zeros_like(gap), gap)
    rtol, atol = tolerances
    allowed = (atol + rtol * y.abs()).nan_to_num(0.0, posinf=0.0)
    bad = gap.nan_to_num(float("inf"), posinf=float("inf")) - allowed
    flat = int(bad.reshape(-1).argmax())
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), a.shape)) if a.dim() else ()
    first = next((line for line in text.splitlines() if line.startswith("Mismatched elements")), "")
    count = first.removeprefix("Mismatched elements: ").replace(" / ", " of ").partition(" (")[0]
    share = f"{count} elements differ" if count else "the value differs"
    got, want = a[index].item(), b[index].item()
    short = [f"{v:.6g}" if isinstance(v, float) else str(v) for v in (got, want)]
    if short[0] == short[1]:  # they differ in the last bits only
        short = [repr(got), repr(want)]
    return f"{share}; at {list(index)} got {short[0]}, expected {short[1]}"


def _plain(actual: Any, expected: Any, tolerances: tuple[float, float] | None, name: str) -> str | None:
    if isinstance(actual, float) and isinstance(expected, float):
        rtol, atol = tolerances or (1.3e-6, 1e-5)
        if (
            actual == expected
            or (actual != actual and expected != expected)
            or abs(actual - expected) <= atol + rtol * abs(expected)
        ):
            return None
    elif type(actual) is type(expected) and actual == expected:
        return None
    return f"{name} is {actual!r}, expected {expected!r}"


def _kind(value: Any) -> str:
    return tensors.describe(value) if isinstance(value, torch.Tensor) else f"{value!r} of type {type(value).__name__}"


def bitwise(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors of one shape and dtype hold the same bits, NaN payloads and signs of zero included."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not (tensors.strided(a) and tensors.strided(b)):
        return torch.equal(a, b)
    x, y = _bytes(a), _bytes(b)
    return torch.equal(x, y)


def _bytes(t: torch.Tensor) -> torch.Tensor:
    t = t.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return t.view(torch.uint8) if t.numel() else torch.empty(0, dtype=torch.uint8)
