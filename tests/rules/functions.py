"""Python functions as people write them, as Hypothesis strategies: source text that is compiled."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import linecache
import string
from collections.abc import Callable
from typing import Any

import torch
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from tests.rules.oracle import PARAMETERS, RETURNS

TORCH = Version(Version(torch.__version__).base_version)


def installed(versions: str) -> bool:
    """Whether the torch that is installed is one of those."""
    return SpecifierSet(versions, prereleases=True).contains(TORCH)


#: What a module that defines ops has imported.
IMPORTS = """
import collections.abc
import typing
from typing import List, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor, device, dtype
from torch.types import Number
"""
if torch.distributed.is_available():
    IMPORTS += "from torch.distributed.distributed_c10d import GroupName\n"

#: Simplest spelling first: examples shrink to it.
SPELLINGS = {
    "Tensor": ("Tensor", "torch.Tensor"),
    "int": ("int", "torch.types._int"),
    "float": ("float",),
    "bool": ("bool",),
    "str": ("str",),
    "Number": ("Number", "torch.types.Number", "int | float | bool", "Union[bool, int, float]"),
    "dtype": ("torch.dtype", "dtype"),
    "device": ("torch.device", "device"),
    "GroupName": ("GroupName", "torch.distributed.distributed_c10d.GroupName"),
    "None": ("None",),
}
AROUND = {
    "Optional": (
        *("Optional[{}]", "{} | None", "Union[{}, None]"),
        *("typing.Optional[{}]", "None | {}", "typing.Union[None, {}]"),
    ),
    "Sequence": (
        *("list[{}]", "List[{}]", "Sequence[{}]"),
        *("typing.List[{}]", "typing.Sequence[{}]", "collections.abc.Sequence[{}]"),
    ),
    "list": ("list[{}]", "List[{}]", "typing.List[{}]"),
    "tuple": ("tuple[{}]", "Tuple[{}]", "typing.Tuple[{}]"),
}
#: The spellings of Python's own generics: these keep a quoted name as a string, where typing makes an object of it.
BUILT_IN = ("list[", "tuple[", "collections.abc.")


@functools.cache
def imported() -> dict[str, Any]:
    """The names of a module that has imported what it needs."""
    names: dict[str, Any] = {}
    exec(IMPORTS, names)
    return names


@dataclasses.dataclass(frozen=True)
class Annotation:
    """An annotation as it is written."""

    text: str
    #: The name it has, if it is defined above the function.
    alias: str = ""
    quoted: bool = False
    #: Whether a name within the annotation is quoted.
    inner: bool = False

    def __str__(self) -> str:
        text = self.alias or self.text
        return repr(text) if self.quoted else text


@dataclasses.dataclass(frozen=True)
class Parameter:
    name: str
    meaning: str
    annotation: Annotation | None
    #: Source text.
    default: str | None = None
    #: plain, keyword; and, refused by torch: positional, varargs, varkw
    kind: str = "plain"

    @property
    def default_value(self) -> Any:
        return eval(self.default or "None", dict(imported()))

    def __str__(self) -> str:
        text = {"varargs": "*", "varkw": "**"}.get(self.kind, "") + self.name
        if self.annotation is not None:
            text += f": {self.annotation}"
        if self.default is not None:
            text += f" = {self.default}"
        return text


@dataclasses.dataclass(frozen=True)
class Function:
    """A function, and what its author says that it mutates."""

    parameters: tuple[Parameter, ...] = ()
    #: The meaning; of each part where a tuple is returned.
    returns: str | tuple[str, ...] = "None"
    returned: Annotation | None = Annotation("None")
    mutates: str | tuple[str, ...] = ()
    #: What holds the names that are mutated.
    given_as: Callable[[Any], Any] = tuple
    op_name: str | None = None
    #: inplace, out: what torch.Tag says of the op
    tag: str = ""
    #: `from __future__ import annotations`
    postponed: bool = False
    #: Whether the module has imported what the annotations name.
    imports: bool = True

    @property
    def source(self) -> str:
        annotations = [p.annotation for p in self.parameters] + [self.returned]
        head = ["from __future__ import annotations"] * self.postponed
        head += [f"{a.alias} = {a.text}" for a in annotations if a is not None and a.alias]
        of_kind = {
            kind: [str(p) for p in self.parameters if p.kind == kind]
            for kind in ("positional", "plain", "varargs", "keyword", "varkw")
        }
        written = of_kind["positional"] + ["/"] * bool(of_kind["positional"]) + of_kind["plain"]
        written += of_kind["varargs"] or ["*"] * bool(of_kind["keyword"])
        written += of_kind["keyword"] + of_kind["varkw"]
        arrow = "" if self.returned is None else f" -> {self.returned}"
        body = f"def function({', '.join(written)}){arrow}:\n    RECEIVED.update(locals())\n    return RESULT\n"
        return "\n".join([*head, body])

    def build(self, received: dict[str, Any] | None = None, result: Any = None) -> Any:
        """The function. What a call receives goes into a dictionary; it returns what is given here."""
        names = dict(imported()) if self.imports else {}
        names |= {"RECEIVED": {} if received is None else received, "RESULT": result, "__name__": "drawn"}
        source, file = self.source, "<drawn function>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        exec(compile(source, file, "exec", dont_inherit=True), names)
        return names["function"]

    def given(self) -> Any:
        """The value for `mutates_args`."""
        return self.mutates if isinstance(self.mutates, str) else self.given_as(self.mutates)

    def __repr__(self) -> str:
        mutates = "" if self.mutates == () else f"# mutates {self.mutates!r}, as {self.given_as.__name__}\n"
        return f"\n{mutates}{self.source}"


# -- annotations

#: What the torch that is installed should know.
MEANINGS = [
    meaning
    for meaning, row in PARAMETERS.items()
    if installed(row.versions) and ("GroupName" not in meaning or torch.distributed.is_available())
]


@functools.cache
def spellings(meaning: str) -> st.SearchStrategy[str]:
    head, _, rest = meaning.partition("[")
    if not rest:
        return st.sampled_from(SPELLINGS[head])
    return st.builds(str.format, st.sampled_from(AROUND[head]), spellings(rest.removesuffix("]")))


@functools.cache
def annotations(meaning: str, *, inside: bool) -> st.SearchStrategy[Annotation]:
    """A meaning spelled in some way: plain, quoted, with a quoted name inside, or by a name given to it above."""
    text = spellings(meaning)
    ways = [
        st.builds(Annotation, text),
        st.builds(Annotation, text, quoted=st.just(True)),
        st.builds(Annotation, text, alias=st.just("Alias")),
    ]
    head, _, rest = meaning.partition("[")
    if rest and inside:
        around = st.sampled_from([a for a in AROUND[head] if "|" not in a])
        inner = spellings(rest.removesuffix("]")).map(repr)
        ways.append(st.builds(Annotation, st.builds(str.format, around, inner), inner=st.just(True)))
    return st.one_of(ways)


# -- values

BOOLEANS = st.booleans()
INT64 = st.integers(-(2**63), 2**63 - 1)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "Tensor": st.integers(0, 2).map(torch.arange),
    "int": INT64,
    "float": st.floats(),
    "bool": BOOLEANS,
    "str": st.text(max_size=4),
    "Number": st.one_of(INT64, st.floats(), BOOLEANS),
    "dtype": st.sampled_from([torch.float32, torch.int64, torch.bool]),
    "device": st.sampled_from(["cpu", "cuda:1", "meta"]).map(torch.device),
    "GroupName": st.just("0"),
    "None": st.none(),
}


@functools.cache
def values(meaning: str) -> st.SearchStrategy[Any]:
    """Arguments for a parameter, or results."""
    head, _, rest = meaning.partition("[")
    if not rest:
        return VALUES[head]
    inner = values(rest.removesuffix("]"))
    if head == "Optional":
        return st.one_of(st.none(), inner)
    found = st.lists(inner, max_size=2)
    return found if head == "list" else st.one_of(found, found.map(tuple))


def _spelled(value: float) -> str:
    return repr(value) if value - value == 0 else f"float('{value}')"


#: Source text of defaults.
TEXTS: dict[str, st.SearchStrategy[str]] = {
    "int": st.one_of(INT64, st.integers()).map(repr),
    "float": st.one_of(st.floats().map(_spelled), st.integers(-9, 9).map(repr)),
    "bool": BOOLEANS.map(repr),
    "str": st.one_of(st.text(string.ascii_letters), st.text("ab1 .,=()[]\"'\\\n\té", max_size=5)).map(repr),
    "Number": st.one_of(INT64.map(repr), st.floats().map(_spelled), BOOLEANS.map(repr)),
    "dtype": st.sampled_from(["torch.float32", "torch.int64", "torch.bool", "torch.bfloat16", "torch.complex64"]),
    "device": st.sampled_from(["torch.device('cpu')", "torch.device('cuda:1')"]),
    "GroupName": st.just("GroupName('0')"),
}
#: torch takes None as the default of what is optional only, and no list.
DEFAULTED = [m for m in PARAMETERS if m in TEXTS or m.startswith("Optional")]


@functools.cache
def defaults(meaning: str) -> st.SearchStrategy[str | None]:
    if meaning not in DEFAULTED:
        return st.none()
    inner = meaning.removeprefix("Optional[").removesuffix("]")
    texts = [st.just("None")] if meaning.startswith("Optional") else []
    return st.one_of(st.none(), *texts, *([TEXTS[inner]] if inner in TEXTS else []))


# -- functions

#: Ordinary names, and some that mean something to somebody: to Python, to torch, to its parser.
WORDS = (
    *("x", "y", "weight", "n", "input", "out", "self", "other", "dtype", "device", "layout", "name", "op", "func"),
    *("args", "kwargs", "int", "str", "Tensor", "SymInt", "Scalar", "inf", "nan", "true", "none", "a0", "a1", "_"),
    *("__x", "x_", "X1", "from_", "match", "type", "print", "torch", "fork", "then", "é", "NoneType", "Alias"),
)


@functools.cache
def names(count: int) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(WORDS), min_size=count, max_size=count, unique=True)


#: Tuples of one to three results.
PARTS = [p for size in (1, 2, 3) for p in itertools.product([m for m in RETURNS if m != "None"], repeat=size)]

#: Strategies that are made once: making them costs more than drawing.
PARAMETER_MEANINGS = st.sampled_from(MEANINGS)
RESULT_MEANINGS: st.SearchStrategy[Any] = st.one_of(st.sampled_from(list(RETURNS)), st.sampled_from(PARTS))
TUPLES = st.sampled_from(AROUND["tuple"])
HOLDERS = st.sampled_from([tuple, list, set, dict.fromkeys])
ONCE_TOO = st.sampled_from([tuple, list, set, dict.fromkeys, iter])
OUTS = st.integers(0, 3)
MORE = st.sampled_from([False, True, True, True])
SOMETIMES = st.sampled_from([False, False, True])
#: Of the tensors: none, each that has a bit here, or all, because it is not known.
MUTATED = st.one_of(st.integers(0, 15), st.none())
WAYS = st.sampled_from([{}, {"quoted": True}, {"alias": "Alias"}])


def parameter(draw: Any, *, inside: bool) -> Parameter:
    """A parameter that has no name yet."""
    meaning = draw(PARAMETER_MEANINGS)
    annotation = draw(annotations(meaning, inside=inside))
    return Parameter("", meaning, annotation, draw(defaults(meaning)), "keyword" if draw(BOOLEANS) else "plain")


def with_name(parameter: Parameter, name: str) -> Parameter:
    annotation = parameter.annotation
    if annotation is not None and annotation.alias:
        annotation = dataclasses.replace(annotation, alias=f"Alias{name}")
    return dataclasses.replace(parameter, name=name, annotation=annotation)


def returns(draw: Any, *, inside: bool) -> tuple[str | tuple[str, ...], Annotation]:
    meaning = draw(RESULT_MEANINGS)
    if isinstance(meaning, str):
        return meaning, draw(annotations(meaning, inside=inside))
    texts = [draw(spellings(part)) for part in meaning]
    if inside and draw(BOOLEANS):
        return meaning, Annotation(draw(TUPLES).format(", ".join([repr(texts[0]), *texts[1:]])), inner=True)
    return meaning, Annotation(draw(TUPLES).format(", ".join(texts)), **draw(WAYS))


@st.composite
def functions(draw: Any, *, inside: bool = False) -> Function:
    """Functions whose schema can be inferred; ``inside``: annotations with quotes within them, too, and what is
    mutated given by an iterator."""
    inside = inside and draw(SOMETIMES)
    postponed = draw(BOOLEANS)
    found: list[Parameter] = []
    while len(found) < 4 and draw(MORE):
        found.append(parameter(draw, inside=inside))
    found = [with_name(p, name) for p, name in zip(found, draw(names(len(found))), strict=True)]
    plain = [p for p in found if p.kind == "plain"]
    # Python wants those without a default first
    ordered = [p for p in plain if p.default is None] + [p for p in plain if p.default is not None]
    ordered += [p for p in found if p.kind == "keyword"]
    mutated = draw(MUTATED)
    tensors = [p.name for p in ordered if "Tensor" in p.meaning]
    meaning, returned = returns(draw, inside=inside)
    made = Function(
        parameters=tuple(ordered),
        returns=meaning,
        returned=returned,
        mutates="unknown" if mutated is None else tuple(n for bit, n in enumerate(tensors) if mutated >> bit & 1),
        given_as=draw(ONCE_TOO if inside else HOLDERS),
        op_name="probe" if draw(BOOLEANS) else None,
        postponed=postponed,
    )
    return made if inside or not postponed else unquoted(made)


def unquoted(function: Function) -> Function:
    """The function with no annotation quoted: all are strings where they are postponed."""

    def plain(annotation: Annotation | None) -> Annotation | None:
        return annotation and dataclasses.replace(annotation, quoted=False)

    return dataclasses.replace(
        function,
        parameters=tuple(dataclasses.replace(p, annotation=plain(p.annotation)) for p in function.parameters),
        returned=plain(function.returned),
    )


#: Since then `infer_schema` takes tags.
TAGS = Version("2.13")


@st.composite
def tagged(draw: Any) -> Function:
    """Functions that write to a tensor and return it: their first argument, or those for out=."""
    function, count = draw(functions()), draw(OUTS)
    tensor = Parameter("", "Tensor", Annotation("Tensor"))
    if count == 0:
        first = dataclasses.replace(tensor, name="target")
        return dataclasses.replace(
            function,
            parameters=(first, *function.parameters),
            returns="Tensor",
            returned=Annotation("Tensor"),
            mutates=("target",),
            tag="inplace",
        )
    outs = [dataclasses.replace(tensor, name=f"out{number}", kind="keyword") for number in range(count)]
    parts = ("Tensor",) * count
    return dataclasses.replace(
        function,
        parameters=(*function.parameters, *outs),
        returns="Tensor" if count == 1 else parts,
        returned=Annotation("Tensor" if count == 1 else f"tuple[{', '.join(parts)}]"),
        mutates=tuple(out.name for out in outs),
        tag="out",
    )
