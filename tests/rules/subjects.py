"""What can be done with a drawn function: call the op that is made of it, and spoil it so that torch must refuse it."""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import strategies as st

from tests.rules.functions import BOOLEANS, Annotation, Function, Parameter, functions, imported, values


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of an op that is made of a function."""

    function: Function
    #: The API that makes the op: define, custom_op
    how: str = "define"
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
    result: Any = None

    def bound(self) -> dict[str, Any]:
        """The value that each parameter should get."""
        plain = [p.name for p in self.function.parameters if p.kind == "plain"]
        given = dict(zip(plain, self.args, strict=False)) | self.kwargs
        return {p.name: given.get(p.name, p.default_value) for p in self.function.parameters}


HOW = st.sampled_from([*["define"] * 4, "custom_op"])
BY_POSITION = st.integers(0, 4)


@st.composite
def calls(draw: Any) -> Call:
    """Calls with what a function takes: by position, by name, defaults left out."""
    function = draw(functions())
    by_position = draw(BY_POSITION)
    args, kwargs = [], {}
    for number, parameter in enumerate(function.parameters):
        if parameter.kind == "plain" and number < by_position:
            args.append(draw(values(parameter.meaning)))
        elif parameter.default is None or draw(BOOLEANS):
            kwargs[parameter.name] = draw(values(parameter.meaning))
    if isinstance(function.returns, str):
        result = draw(values(function.returns))
    else:
        result = tuple(draw(values(meaning)) for meaning in function.returns)
    how = draw(HOW)
    return Call(function, how, tuple(args), kwargs, result)


# -- what is refused

#: None of these is in the documentation's list of types, whatever it is that torch does with them.
UNSUPPORTED = (
    *("bytes", "complex", "object", "dict", "list", "tuple", "None", "int | float", "typing.Any"),
    *("typing.List", "Sequence", "collections.abc.Sequence", "Tuple", "typing.Callable"),
    *("List[str]", "list[bytes]", "list[list[int]]", "list[int | None]", "Sequence[dtype]", "dict[str, int]"),
    *("tuple[int, int]", "Tuple[Tensor, ...]", "typing.Iterable[int]", "typing.Annotated[int, 0]"),
    *("Optional[list[Tensor]]", "list[Number] | None", "Optional[list[Optional[Tensor]]]", "Optional[bytes]"),
    *("torch.layout", "torch.memory_format", "torch.SymInt", "torch.Size", "torch.nn.Parameter", "torch.Generator"),
)
UNSUPPORTED_RETURNS = (
    *("str", "torch.dtype", "complex", "object", "tuple", "Tuple", "typing.Tuple", "list", "Optional[Tensor]"),
    *("Tensor | None", "Sequence[Tensor]", "list[int]", "tuple[Tensor, ...]", "tuple[Tensor, None]", "dict"),
    *("tuple[tuple[Tensor, Tensor], Tensor]", "list[Optional[Tensor]]", "tuple[str]", "typing.Any"),
)
UNRESOLVED = ("Missing", "torch.Missing", "List[Missing]", "1 / 0")
MUTABLE = ("[]", "[1]", "{}", "set()", "bytearray()", "object()", "(1, 2)", "1j")
OTHER_TYPE = (("int", "None"), ("int", "2.5"), ("str", "3"), ("bool", "1"), ("Tensor", "None"), ("list[int]", "None"))

#: In no message of torch by chance.
OFFENDERS = ("offender", "q7")


@dataclasses.dataclass(frozen=True)
class Spoilt:
    """A function that should be refused with a ValueError, and what the message should name."""

    kind: str
    function: Function
    named: str
    #: The annotation or default that is refused.
    text: str = ""


KINDS = (
    *("annotation", "no annotation", "unresolved", "positional-only", "varargs", "varkw"),
    *("mutable default", "default of another type", "mutates what is no tensor", "mutates what is not there"),
    *("mutates a word", "returned", "nothing returned"),
)


def spoil(function: Function, kind: str, name: str = "offender", text: str = "", default: str = "") -> Spoilt:
    """A function with one thing in it that torch should refuse."""
    more: dict[str, Any] = {}
    if function.mutates == "unknown" and kind.startswith("mutates"):
        function = dataclasses.replace(function, mutates=())
    added = Parameter(name, "int", Annotation("int"), kind="keyword")
    match kind:
        case "annotation":
            added = dataclasses.replace(added, annotation=Annotation(text))
        case "unresolved":
            added = dataclasses.replace(added, annotation=Annotation(text, quoted=not function.postponed))
        case "no annotation":
            added = dataclasses.replace(added, annotation=None)
        case "positional-only" | "varargs" | "varkw":
            added = dataclasses.replace(added, kind=kind.removesuffix("-only"))
        case "mutable default":
            added, text = dataclasses.replace(added, annotation=Annotation("list[int]"), default=default), default
        case "default of another type":
            added, text = dataclasses.replace(added, annotation=Annotation(text), default=default), default
        case "mutates what is no tensor":
            more = {"mutates": (*function.mutates, name)}
        case "mutates what is not there":
            return Spoilt(kind, dataclasses.replace(function, mutates=(*function.mutates, name)), name)
        case "mutates a word":
            return Spoilt(kind, dataclasses.replace(function, mutates=name), "mutates_args")
        case "returned":
            return Spoilt(kind, dataclasses.replace(function, returned=Annotation(text)), "Return", text)
        case "nothing returned":
            return Spoilt(kind, dataclasses.replace(function, returned=None), "return", text)
    more["parameters"] = (*function.parameters, added)
    return Spoilt(kind, dataclasses.replace(function, **more), name, text)


@st.composite
def spoilt(draw: Any) -> Spoilt:
    function, kind, name = draw(functions()), draw(st.sampled_from(KINDS)), draw(st.sampled_from(OFFENDERS))
    match kind:
        case "annotation":
            return spoil(function, kind, name, draw(st.sampled_from(UNSUPPORTED)))
        case "unresolved":
            return spoil(function, kind, name, draw(st.sampled_from(UNRESOLVED)))
        case "mutable default":
            return spoil(function, kind, name, default=draw(st.sampled_from(MUTABLE)))
        case "default of another type":
            return spoil(function, kind, name, *draw(st.sampled_from(OTHER_TYPE)))
        case "returned":
            return spoil(function, kind, name, draw(st.sampled_from(UNSUPPORTED_RETURNS)))
    return spoil(function, kind, name)


def generic(text: str) -> bool:
    """Whether an annotation was made of another by square brackets."""
    return hasattr(eval(text, dict(imported())), "__origin__")
