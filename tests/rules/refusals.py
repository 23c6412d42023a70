"""Who refuses which name, by kind of name and way to register, as data. torch 2.13.0 and 2.14.1 do the same.

``torch`` is an exception. Otherwise torch takes the op, and it is the check named here that finds it.
"""

from __future__ import annotations

import dataclasses

from tests.rules.registering import WAYS

#: Ways that look an op up once it is defined, and fail there if its name cannot be parsed.
LOOKING = ("custom_op", "triton_op", "define", "torch._custom_op")
#: Blocks that only the first one may make for a namespace.
FIRST = ("Library DEF", "TORCH_LIBRARY")
#: Blocks for kernels, in which no op can be defined.
KERNELS = ("Library IMPL", "TORCH_LIBRARY_IMPL")
PYTHON = ("custom_op", "triton_op", "define", "Library FRAGMENT", "Library DEF", "torch._custom_op")

DEPRECATED = ("torch._custom_op",)


@dataclasses.dataclass(frozen=True)
class Names:
    """Names of one kind."""

    kind: str
    examples: tuple[tuple[str, str], ...]
    """Namespace and name."""
    otherwise: str
    """Who refuses them where torch does not."""
    torch: tuple[str, ...] = ()
    """The ways in which torch refuses them."""

    @property
    def refused_by(self) -> dict[str, str]:
        """For each way, who refuses them."""
        return {way: "torch" if way in self.torch + KERNELS else self.otherwise for way in WAYS}


def spaces(*namespaces: str) -> tuple[tuple[str, str], ...]:
    return tuple((namespace, "probe") for namespace in namespaces)


def names(*given: str) -> tuple[tuple[str, str], ...]:
    return tuple(("suite_names", name) for name in given)


EVERY = tuple(WAYS)

TABLE = (
    Names("reserved and in use", spaces("aten", "prims"), "namespace.reserved", DEPRECATED + FIRST),
    Names("reserved, also by torch.library", spaces("prim"), "namespace.reserved", PYTHON),
    Names("reserved", spaces("at", "torch", "pytorch"), "namespace.reserved", DEPRECATED),
    Names(
        "reserved, in capitals",
        spaces("ATEN", "Aten", "Prim", "PRIMS", "At", "Torch", "PyTorch"),
        "namespace.reserved",
    ),
    Names(
        "namespace that is no identifier",
        spaces("", "with.dot", "with-dash", "a b", "1digit", "ünïcode", "名", "a::b", "a::", "::a"),
        "namespace.invalid",
        LOOKING,
    ),
    Names(
        "namespace that is a keyword, of schemas as of Python",
        spaces("class", "None"),
        "namespace.invalid",
        LOOKING,
    ),
    Names("namespace that is a keyword of Python", spaces("async", "yield"), "namespace.invalid"),
    Names("namespace with two underscores", spaces("__spare"), "namespace.invalid"),
    Names("namespace of fallbacks", spaces("_"), "torch", EVERY),
    Names(
        "name that is no identifier",
        names("", "with-dash", "a b", "1digit", "ünïcode", "名", "a::b", "a::", "a.", ".a", "a.b.c", "a.1"),
        "torch",
        EVERY,
    ),
    Names("name that is a keyword, of schemas as of Python", names("class", "None", "a.class"), "torch", EVERY),
    Names("name that is a keyword of Python", names("async", "yield"), "namespace.invalid"),
    Names("name with two underscores", names("__spare", "__len__"), "namespace.invalid"),
    Names("overload", names("probe.out"), "nobody", DEPRECATED),
    Names(
        "ordinary",
        (
            *spaces("suite_ordinary", "Camel", "x", "_private", "aten_ext", "pytorch3d", "torchy", "nn"),
            *names("probe", "Probe", "_probe", "x1", "int", "Tensor"),
        ),
        "nobody",
    ),
)
