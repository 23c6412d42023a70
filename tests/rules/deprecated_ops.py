"""Operators made with deprecated names, and the same made with the names that replace them."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

_number = itertools.count()


def fresh() -> str:
    """A name that no operator has yet."""
    return f"op{next(_number)}"


def functional(name: str) -> Callable[[Tensor], Tensor]:
    """A function of that name, as the first API wants it."""

    def prototype(x: Tensor) -> Tensor: ...

    prototype.__name__ = name
    return prototype


def nonzero_with(size: Callable[[Any], torch.SymInt]) -> None:
    """Run a fake kernel whose output's size is what the function makes of the context."""
    name = f"suite_deprecated::{fresh()}"
    library = torch.library.Library("suite_deprecated", "FRAGMENT")
    torch.library.define(name, "(Tensor x) -> Tensor", lib=library)
    torch.library.register_fake(name, lambda x: x.new_empty(size(torch.library.get_ctx())), lib=library)
    with FakeTensorMode(shape_env=ShapeEnv(allow_dynamic_output_shape_ops=True)) as mode:
        torch.ops.suite_deprecated.__getattr__(name.partition("::")[2])(mode.from_tensor(torch.ones(3)))


def optests_sample() -> tuple[Any, ...]:
    """What torch's opcheck is called with."""
    return torch.ops.aten.sin.default, (torch.ones(2),), {}


# the same operator by a deprecated name and by what replaces it


def sine(x: Tensor) -> Tensor:
    """A kernel that compilers cannot look into."""
    return torch.from_numpy(np.sin(x.detach().numpy()))


def like(x: Tensor) -> Tensor:
    """Its fake kernel."""
    return torch.empty_like(x)


def save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """What its formula keeps."""
    ctx.save_for_backward(inputs[0])


def cosine(ctx: Any, grad: Tensor) -> Tensor:
    """Its formula."""
    return grad * ctx.saved_tensors[0].cos()


#: Kernel, fake kernel and formula of an operator that is right, and of one that is wrong in each.
PARTS: dict[str, tuple[Any, Any, Any]] = {
    "right": (sine, like, cosine),
    "wrong": (lambda x: sine(x) + 1, lambda x: like(x).float(), lambda ctx, grad: grad * 2),
}

_kept: list[Any] = []


def _defined(name: str, kernel: Any) -> tuple[str, torch.library.Library]:
    library = torch.library.Library("suite_deprecated", "FRAGMENT")
    _kept.append(library)
    qualname = f"suite_deprecated::{name}"
    torch.library.define(qualname, "(Tensor x) -> Tensor", lib=library)
    torch.library.impl(qualname, "cpu", kernel, lib=library)
    return qualname, library


def by_first(kernel: Any, fake: Any, formula: Any) -> str:
    """By ``torch._custom_op.impl.custom_op``, which has its fake kernel at Meta, and cannot be given a formula."""
    old, name = importlib.import_module("torch._custom_op.impl"), fresh()
    made = old.custom_op(f"suite_deprecated::{name}")(functional(name))
    made.impl("cpu")(kernel)
    made.impl_abstract()(fake)
    return f"suite_deprecated::{name}"


def instead_of_first(kernel: Any, fake: Any, formula: Any) -> str:
    """The same by ``torch.library``."""
    qualname, library = _defined(fresh(), kernel)
    torch.library.impl(qualname, "Meta", fake, lib=library)
    return qualname


def by_second(kernel: Any, fake: Any, formula: Any) -> str:
    """By ``torch._custom_ops``."""
    old, name = importlib.import_module("torch._custom_ops"), f"suite_deprecated::{fresh()}"
    old.custom_op(name)(functional(name.partition("::")[2]))
    old.impl(name, device_types="cpu")(kernel)
    old.impl_abstract(name)(fake)
    old.impl_save_for_backward(name)(lambda inputs, output: inputs.x)
    old.impl_backward(name)(lambda ctx, saved, grad: {"x": formula(_Saved(saved), grad)})
    return name


class _Saved:
    def __init__(self, *tensors: Tensor) -> None:
        self.saved_tensors = tensors


def instead_of_second(kernel: Any, fake: Any, formula: Any) -> str:
    """The same by ``torch.library``."""
    qualname, library = _defined(fresh(), kernel)
    torch.library.register_fake(qualname, fake, lib=library)
    torch.library.register_autograd(qualname, formula, setup_context=save, lib=library)
    return qualname


def by_impl_abstract(kernel: Any, fake: Any, formula: Any) -> str:
    """With its fake kernel registered under the old name."""
    qualname, library = _defined(fresh(), kernel)
    torch.library.impl_abstract(qualname, fake, lib=library)
    torch.library.register_autograd(qualname, formula, setup_context=save, lib=library)
    return qualname


def _positives(size: Callable[[Any], torch.SymInt], kernel: Any, fake: Any) -> str:
    qualname, library = _defined(fresh(), lambda x: kernel(x)[kernel(x) > 0])

    def positives(x: Tensor) -> Tensor:
        return fake(x.new_empty(size(torch.library.get_ctx())))

    torch.library.register_fake(qualname, positives, lib=library)
    return qualname


def by_create_unbacked_symint(kernel: Any, fake: Any, formula: Any) -> str:
    """With an output whose size only data tells."""
    return _positives(lambda ctx: ctx.create_unbacked_symint(min=0), kernel, fake)


def by_new_dynamic_size(kernel: Any, fake: Any, formula: Any) -> str:
    """The same."""
    return _positives(lambda ctx: ctx.new_dynamic_size(), kernel, fake)


#: Path of a row -> the deprecated way, what replaces it, and what the spec says.
PAIRS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "torch._custom_op.impl.custom_op": (by_first, instead_of_first, {"differentiable": False}),
    "torch._custom_ops.custom_op": (by_second, instead_of_second, {}),
    "torch.library.impl_abstract": (by_impl_abstract, instead_of_second, {}),
    "torch.library.get_ctx().create_unbacked_symint": (by_create_unbacked_symint, by_new_dynamic_size, {}),
}
