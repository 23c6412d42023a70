"""Names for making operators that torch has deprecated, or that it keeps private beside a public one, as data.

`opcheck lint` finds their use in sources; `tests/rules/test_deprecated.py` holds each row against the torch that is
installed. A row says of which versions it speaks, so that it outlives the name.
"""

from __future__ import annotations

import dataclasses

#: Where the first custom-op API was marked as deprecated.
_PROTOTYPES = "https://github.com/pytorch/pytorch/pull/130032"
_RENAMED = "https://github.com/pytorch/pytorch/pull/123937"
_TRITON = "https://github.com/pytorch/pytorch/pull/141880"
_DOCS = "https://docs.pytorch.org/docs/stable/library.html#torch.library."


@dataclasses.dataclass(frozen=True)
class Api:
    """One name, of a module, a function, a class, or a method."""

    path: str
    """Where it is: ``torch.library.impl_abstract``; for a method, after the expression that makes its object."""
    instead: str
    """What to use."""
    docs: str
    """A link that says so."""
    rule: str
    """Id of the rule of `opcheck lint` that reports it."""
    there: str = ">=2.2"
    """Versions of torch that have it, as a version specifier."""
    deprecated: str | None = None
    """Version of torch that deprecated it; None for a private name, which nothing was promised of."""
    warns: str | None = None
    """Category of the warning that using it gives; None where it does not warn."""
    at_caller: bool = True
    """Whether the warning names the line that uses it. Else it names a line of torch."""
    pinned: str = ""
    """For a deprecated name that does not warn, or not there: version seen, why, and where."""


def _first(path: str, instead: str, docs: str = _PROTOTYPES, warns: bool = False) -> Api:
    return Api(
        path,
        instead,
        docs,
        "lint.custom_op",
        there=">=2.1",
        deprecated="2.5",
        warns="DeprecationWarning" if warns else None,
        at_caller=not warns,
        pinned=_PINNED_AWAY if warns else _PINNED_SILENT,
    )


#: What the first API does instead of warning whoever uses it.
_PINNED_AWAY = (
    "2.13: warn_deprecated has stacklevel=2, which is the function of torch that calls it: "
    "https://github.com/pytorch/pytorch/blob/v2.13.0/torch/_custom_op/impl.py#L53"
)
_PINNED_SILENT = (
    "2.13: only custom_op and CustomOp warn: "
    "https://github.com/pytorch/pytorch/blob/v2.13.0/torch/_custom_op/impl.py#L53"
)


def _private(path: str, instead: str, docs: str, there: str) -> Api:
    return Api(path, instead, docs, "lint.private", there=there)


_PINNED = "2.13: it does not warn: https://github.com/pytorch/pytorch/blob/v2.13.0/torch/_library/triton.py#L525"


def _capture(path: str) -> Api:
    return Api(
        path,
        "torch.library.wrap_triton",
        _TRITON,
        "lint.capture_triton",
        there=">=2.6",
        deprecated="2.6",
        pinned=_PINNED,
    )


#: All of them. A module stands for everything below it that has no row of its own.
DEPRECATED: tuple[Api, ...] = (
    _first("torch._custom_op", "torch.library"),
    _first("torch._custom_op.impl.custom_op", "torch.library.custom_op", warns=True),
    _first("torch._custom_op.impl.CustomOp", "torch.library.custom_op", warns=True),
    _first("torch._custom_op.impl.get_ctx", "torch.library.get_ctx", _DOCS + "get_ctx"),
    _first("torch._custom_op.impl.infer_schema", "torch.library.infer_schema", _DOCS + "infer_schema"),
    _first("torch._custom_ops", "torch.library"),
    _first("torch._custom_ops.custom_op", "torch.library.custom_op, or torch.library.define", warns=True),
    _first("torch._custom_ops.impl", "torch.library.register_kernel"),
    _first("torch._custom_ops.impl_abstract", "torch.library.register_fake"),
    _first("torch._custom_ops.impl_save_for_backward", "torch.library.register_autograd with setup_context"),
    _first("torch._custom_ops.impl_backward", "torch.library.register_autograd"),
    _first("torch._custom_ops.get_ctx", "torch.library.get_ctx", _DOCS + "get_ctx"),
    Api(
        "torch.library.impl_abstract",
        "torch.library.register_fake, which takes the same arguments",
        _RENAMED,
        "lint.impl_abstract",
        deprecated="2.4",
        warns="FutureWarning",
    ),
    Api(
        "torch.library.get_ctx().create_unbacked_symint",
        "new_dynamic_size; its least size is 0 where that of create_unbacked_symint was 2",
        "https://github.com/pytorch/pytorch/blob/v2.13.0/torch/_library/fake_impl.py",
        "lint.create_unbacked_symint",
        deprecated="2.2",
        warns="FutureWarning",
    ),
    Api(
        "torch::Library::impl_abstract_pystub",
        "set_python_module, which takes the same arguments",
        "https://github.com/pytorch/pytorch/blob/v2.13.0/torch/library.h",
        "lint.impl_abstract_pystub",
        deprecated="2.4",
        pinned="2.13: a comment says so, and no attribute: "
        "https://github.com/pytorch/pytorch/blob/v2.13.0/torch/library.h#L630",
    ),
    _capture("torch._library.capture_triton"),
    _capture("torch._library.triton.capture_triton"),
    _private("torch._library.custom_ops.custom_op", "torch.library.custom_op", _DOCS + "custom_op", ">=2.4"),
    _private("torch._library.infer_schema.infer_schema", "torch.library.infer_schema", _DOCS + "infer_schema", ">=2.5"),
    _private("torch._library.triton_op", "torch.library.triton_op", _TRITON, ">=2.6"),
    _private("torch._library.triton.triton_op", "torch.library.triton_op", _TRITON, ">=2.6"),
    _private("torch._library.wrap_triton", "torch.library.wrap_triton", _TRITON, ">=2.6"),
    _private("torch._library.triton.wrap_triton", "torch.library.wrap_triton", _TRITON, ">=2.6"),
    _private(
        "torch.library.Library()._register_fake",
        "torch.library.register_fake(..., lib=library)",
        _DOCS + "register_fake",
        ">=2.4",
    ),
    _private(
        "torch.library.Library()._register_torch_dispatch_rule",
        "torch.library.register_torch_dispatch(..., lib=library)",
        _DOCS + "register_torch_dispatch",
        ">=2.5",
    ),
    _private(
        "torch.testing._internal.optests.opcheck",
        "torch.library.opcheck",
        "https://github.com/pytorch/pytorch/pull/124496",
        ">=2.2",
    ),
    _private(
        "torch.testing._internal.optests.generate_tests.opcheck",
        "torch.library.opcheck",
        "https://github.com/pytorch/pytorch/pull/124496",
        ">=2.2",
    ),
)


def find(path: str) -> Api | None:
    """The row that a dotted path falls under: its own, or that of the nearest module above it."""
    rows = {api.path: api for api in DEPRECATED}
    while path:
        if path in rows:
            return rows[path]
        path = path.rpartition(".")[0]
    return None
