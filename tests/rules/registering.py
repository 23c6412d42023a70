"""Every way in which an operator can be registered, each as a function of namespace and name.

`judge` registers one and says who refuses it: torch, or which of this package's static checks.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import pathlib
import warnings
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch._library.custom_ops import OPDEF_TO_LIB

from opcheck_suite import OpSpec, check_op
from reference_ops.native import _build, _tools

Way = Callable[[str, str], None]

SOURCE = pathlib.Path(__file__).with_suffix(".cpp")
SCHEMA = "(Tensor x) -> Tensor"

#: Whatever keeps a registration alive, until `forget`.
_kept: list[object] = []


class Refused(Exception):
    """torch's error from C++, as text."""


def kernel(x: Tensor) -> Tensor:
    return x.clone()


def _library(namespace: str, kind: str) -> torch.library.Library:
    library = torch.library.Library(namespace, kind)
    _kept.append(library)
    return library


def by_custom_op(namespace: str, name: str) -> None:
    torch.library.custom_op(f"{namespace}::{name}", kernel, mutates_args=())


def by_triton_op(namespace: str, name: str) -> None:
    torch.library.triton_op(f"{namespace}::{name}", kernel, mutates_args=())


def by_define(namespace: str, name: str) -> None:
    library = _library(namespace, "FRAGMENT")  # without one, torch keeps its own for ever
    torch.library.define(f"{namespace}::{name}", SCHEMA, lib=library)
    torch.library.impl(f"{namespace}::{name}", "cpu", kernel, lib=library)


def by_def(namespace: str, name: str) -> None:
    library = _library(namespace, "DEF")
    library.define(f"{name}{SCHEMA}")
    library.impl(name, kernel, "CPU")


def by_fragment(namespace: str, name: str) -> None:
    library = _library(namespace, "FRAGMENT")
    library.define(f"{name}{SCHEMA}")
    library.impl(name, kernel, "CPU")


def by_impl(namespace: str, name: str) -> None:
    _library(namespace, "IMPL").define(f"{name}{SCHEMA}")


def by_deprecated(namespace: str, name: str) -> None:
    from torch._custom_op.impl import custom_op

    def probe(x: Tensor) -> Tensor: ...

    probe.__name__ = name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = custom_op(f"{namespace}::{name}")(probe)
        _kept.append(made)
        made.impl("cpu")(kernel)


def by_cpp_def(namespace: str, name: str) -> None:
    _register(0, namespace, f"{name}{SCHEMA}", name)


def by_cpp_impl(namespace: str, name: str) -> None:
    _register(1, namespace, f"{name}{SCHEMA}", "")


def by_cpp_fragment(namespace: str, name: str) -> None:
    _register(2, namespace, f"{name}{SCHEMA}", name)


#: In Python and not deprecated, for ops; those that `opcheck_suite.guard` must refuse.
MODERN: dict[str, Way] = {
    "custom_op": by_custom_op,
    "triton_op": by_triton_op,
    "define": by_define,
    "Library FRAGMENT": by_fragment,
    "Library DEF": by_def,
}
CPP: dict[str, Way] = {
    "TORCH_LIBRARY": by_cpp_def,
    "TORCH_LIBRARY_FRAGMENT": by_cpp_fragment,
    "TORCH_LIBRARY_IMPL": by_cpp_impl,
}
WAYS: dict[str, Way] = MODERN | {"Library IMPL": by_impl, "torch._custom_op": by_deprecated} | CPP


@functools.cache
def compiled() -> ctypes.CDLL:
    """``registering.cpp``, compiled once for a state of it and a torch. Raises `_build.NotBuilt`."""
    facts = f"{torch.__version__} {_tools.compiler()} {SOURCE.read_text()}"
    folder = _build.build_root() / f"registering-{hashlib.sha256(facts.encode()).hexdigest()[:12]}"
    product = folder / "registering.so"
    with _build._locked(folder):
        if not product.exists():
            with _build._workshop(folder) as workshop, _build._torch_extension_tools(with_cuda=False) as tools:
                tools.load(
                    "registering",
                    [str(SOURCE)],
                    extra_cflags=list(_build.CXX_FLAGS),
                    build_directory=str(workshop),
                    is_python_module=False,
                )
                (workshop / product.name).replace(product)
    library = ctypes.CDLL(str(product))
    library.register_op.restype = ctypes.c_char_p
    library.register_op.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p]
    library.forget_ops.restype = None
    return library


def _register(kind: int, *texts: str) -> None:
    refusal = compiled().register_op(kind, *(text.encode() for text in texts))
    if refusal is not None:
        raise Refused(refusal.decode().partition("\n")[0])


@contextlib.contextmanager
def forgotten() -> Iterator[None]:
    """What is registered within is taken away again, also from PyTorch's namespaces."""
    before = set(OPDEF_TO_LIB)
    try:
        yield
    finally:
        # custom_op leaves the op behind where it cannot look it up after it has defined it
        left = [OPDEF_TO_LIB.pop(name) for name in OPDEF_TO_LIB.keys() - before]
        for made in (*_kept, *left):
            library = made if isinstance(made, torch.library.Library) else getattr(made, "_lib", None)
            if library is not None:
                # torch 2.13 cannot tidy up after a name with two "::"
                library._op_defs.difference_update({op for op in library._op_defs if op.count("::") != 1})
                library._destroy()
        _kept.clear()
        if compiled.cache_info().currsize:
            compiled().forget_ops()


CHECKS = ("namespace.reserved", "namespace.invalid")
#: IndexError is what torchgen has to say on a schema without a name.
REFUSALS = (ValueError, RuntimeError, AssertionError, IndexError, Refused)


@functools.cache
def used(way: Way) -> None:
    """Use a way once: where Triton is there, triton_op imports modules of torch that register ops of their own."""
    with forgotten(), contextlib.suppress(*REFUSALS):
        way("suite_used", "x")


def judge(way: Way, namespace: str, name: str) -> str:
    """Who refuses an op of that name: ``torch``, the checks that find it, or ``nobody``.

    ``nobody, as NAME`` is about an op that torch has registered under a name other than the one it was given.
    """
    used(way)
    with forgotten():
        before = set(torch._C._dispatch_get_all_op_names())
        try:
            way(namespace, name)
        except REFUSALS:
            return "torch"
        (op,) = set(torch._C._dispatch_get_all_op_names()) - before
        found = check_op(OpSpec(op), tier="static", checks=list(CHECKS), isolate="never")
        assert {result.outcome for result in found.results} <= {"pass", "fail"}, found
        finders = " ".join(result.check for result in found.results if result.outcome == "fail")
        return finders or ("nobody" if op == f"{namespace}::{name}" else f"nobody, as {op}")
