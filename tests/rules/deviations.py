"""Where `torch.library.infer_schema` does something else than it should, by version of torch.

Run with 2.13.0 and 2.14.1. The Python source of 2.9.1, 2.10.0, 2.11.0 and 2.12.0 has been read, and run on
torch 2.13.0: what their own parser and dispatcher do has not been seen.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection
from typing import Any

import torch

from tests.rules.functions import BUILT_IN, Annotation, Function, Parameter, installed
from tests.rules.judging import HOLDS, same
from tests.rules.oracle import INFER_SCHEMA, ORACLE
from tests.rules.subjects import Call, Spoilt, generic, spoil

INFERENCE = "https://github.com/pytorch/pytorch/blob/{}/torch/_library/infer_schema.py#L{}"
CUSTOM_OPS = "https://github.com/pytorch/pytorch/blob/v2.13.0/torch/_library/custom_ops.py#L{}"
PARSER = "https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/jit/frontend/function_schema_parser.cpp"
LEXER = "https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/jit/frontend/lexer.h"
PRINTER = "https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/core/function_schema.h"
DISPATCH = "https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/autograd/python_variable.cpp"


@dataclasses.dataclass(frozen=True)
class Deviation:
    id: str
    #: What it does, instead of what.
    text: str
    link: str
    #: By property: the kind of outcome on the example, then those that others may have.
    outcomes: dict[str, tuple[str, ...]]
    #: Whether a function, a call or a spoilt function may meet with it.
    applies: Callable[[Any], bool]
    example: Function | Call | Spoilt
    versions: str = ">=2.9"

    @property
    def here(self) -> bool:
        """Whether the torch that is installed is one of those."""
        return installed(self.versions)

    def subject(self, property: str) -> Any:
        """The example, as the property wants it."""
        return Call(self.example) if property == "taken" and isinstance(self.example, Function) else self.example


def parameters(subject: Function | Call) -> tuple[Parameter, ...]:
    return (subject.function if isinstance(subject, Call) else subject).parameters


def defaults(subject: Function | Call) -> list[Any]:
    return [p.default_value for p in parameters(subject) if p.default is not None]


def some_default(type: type, holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Whether a default of that type is of some kind."""
    return lambda subject: any(isinstance(value, type) and holds(value) for value in defaults(subject))


def some_annotation(holds: Callable[[Function, Annotation], bool]) -> Callable[[Any], bool]:
    def applies(function: Function) -> bool:
        written = [p.annotation for p in function.parameters] + [function.returned]
        return any(a is not None and holds(function, a) for a in written)

    return applies


def kinds(*names: str, text: Callable[[str], bool] = lambda text: True) -> Callable[[Any], bool]:
    return lambda spoilt: spoilt.kind in names and text(spoilt.text)


def of(meaning: str, written: str | Annotation = "", default: str | None = None, **more: Any) -> Function:
    """A function of one parameter."""
    annotation = written if isinstance(written, Annotation) else Annotation(written or meaning)
    return Function((Parameter("x", meaning, annotation, default),), **more)


def named(name: str) -> Function:
    return Function((Parameter(name, "Tensor", Annotation("Tensor")),))


def dropped(call: Call) -> bool:
    """Whether an argument equals the schema's default, and is another value than the function's."""
    given = call.bound()
    return any(
        p.default is not None and given[p.name] == p.default_value and not same(given[p.name], p.default_value)
        for p in call.function.parameters
    )


def optional_device(subject: Function | Call) -> bool:
    """Whether the default of an optional device is a device."""
    return any(p.meaning == "Optional[device]" and p.default not in (None, "None") for p in parameters(subject))


def on_the_edge(value: float) -> bool:
    return math.isinf(value) or math.isnan(value)


def subnormal(value: float) -> bool:
    return 0 < abs(value) < 2.2250738585072014e-308


UNPARSED = {"parsed": ("not parsed",), "taken": ("not defined",)}

DEVIATIONS = (
    Deviation(
        "quoted inside",
        "a name quoted within an annotation is read only directly within list[], tuple[] or collections.abc.Sequence[]",
        INFERENCE.format("v2.13.0", "124-L135"),
        {"inferred": ("refused",)},
        some_annotation(
            lambda f, a: a.inner and (f.postponed or a.quoted or not a.text.startswith(BUILT_IN)),
        ),
        of("Optional[Tensor]", Annotation("Optional['Tensor']", inner=True)),
    ),
    Deviation(
        "quoted and postponed",
        "a quoted annotation is refused below `from __future__ import annotations`",
        INFERENCE.format("v2.13.0", "124-L129"),
        {"inferred": ("refused",)},
        some_annotation(lambda f, a: f.postponed and a.quoted),
        of("Tensor", Annotation("Tensor", quoted=True), postponed=True),
        ">=2.10",
    ),
    Deviation(
        "quoted and postponed, before 2.10",
        "a quoted annotation below `from __future__ import annotations` raises AttributeError, of a parameter",
        INFERENCE.format("v2.9.1", "127"),
        {"inferred": ("raised", "refused")},
        some_annotation(lambda f, a: f.postponed and a.quoted),
        of("Tensor", Annotation("Tensor", quoted=True), postponed=True),
        "<2.10",
    ),
    Deviation(
        "names not imported",
        "Tensor, List... in strings are not torch's and typing's, as documented, but the module's, if it has them",
        INFER_SCHEMA,
        {"inferred": ("refused",)},
        lambda function: not function.imports,
        of("Tensor", Annotation("Tensor", quoted=True), imports=False),
    ),
    Deviation(
        "mutates_args read once",
        "an iterator for mutates_args loses names without a word: each lookup uses it up",
        INFERENCE.format("v2.12.0", "175"),
        {"inferred": ("inferred", HOLDS)},
        lambda function: function.given_as is iter and bool(function.mutates),
        Function(
            (Parameter("x", "Tensor", Annotation("Tensor")), Parameter("y", "Tensor", Annotation("Tensor"))),
            mutates=("y",),
            given_as=iter,
        ),
        "<2.13",
    ),
    Deviation(
        "name not ASCII",
        "a parameter whose name is not ASCII is not refused, and torch cannot parse the schema",
        LEXER,
        UNPARSED,
        lambda subject: any(not p.name.isascii() for p in parameters(subject)),
        named("é"),
    ),
    Deviation(
        "name NoneType",
        "a parameter with the name NoneType is not refused, and torch cannot parse the schema",
        LEXER,
        UNPARSED,
        lambda subject: any(p.name == "NoneType" for p in parameters(subject)),
        named("NoneType"),
    ),
    Deviation(
        "default with a quote",
        "a default with a quote or a line break in it is not escaped, and torch cannot parse the schema",
        INFERENCE.format("v2.13.0", "241"),
        {"parsed": ("not parsed", "other arguments"), "taken": ("not defined", "not called")},
        some_default(str, lambda value: '"' in value or "\n" in value),
        of("str", default=r"""'say "hi"'"""),
    ),
    Deviation(
        "default with a backslash",
        "a backslash in a default is not escaped: the schema has another default, or cannot be parsed",
        INFERENCE.format("v2.13.0", "241"),
        {"parsed": ("another default", "not parsed")},
        some_default(str, lambda value: "\\" in value),
        of("str", default=r"'a\\b'"),
    ),
    Deviation(
        "what the other default means",
        "an argument that equals the default that a backslash made another is replaced by the function's default",
        DISPATCH,
        {"taken": ("received otherwise", HOLDS, "not defined")},
        some_default(str, lambda value: "\\" in value),
        Call(of("str", default=r"'a\\b'"), args=("a\b",)),
    ),
    Deviation(
        "default not ASCII",
        "a default that is not ASCII is printed so that torch cannot parse it, or reads another",
        PRINTER,
        {"parsed": ("not parsed as printed", "printed, another default")},
        some_default(str, lambda value: not value.isascii()),
        of("str", default="'é'"),
    ),
    Deviation(
        "default infinite or NaN",
        "inf and nan as defaults are not refused, and torch cannot parse the schema",
        PARSER,
        UNPARSED,
        some_default(float, on_the_edge),
        of("float", default="float('inf')"),
    ),
    Deviation(
        "default subnormal",
        "a default below the smallest normal float is not refused, and torch cannot parse the schema",
        PARSER,
        UNPARSED,
        some_default(float, subnormal),
        of("float", default="5e-324"),
    ),
    Deviation(
        "default beyond 64 bits",
        "an int beyond 64 bits as a default is not refused, and torch cannot parse the schema",
        PARSER,
        UNPARSED,
        some_default(int, lambda value: not -(2**63) <= value < 2**63),
        of("int", default=str(2**63)),
    ),
    Deviation(
        "default minus zero",
        "a schema with the default -0.0 is printed with 0.",
        PRINTER,
        {"parsed": ("printed, another default",)},
        some_default(float, lambda value: value == 0 and math.copysign(1, value) < 0),
        of("float", default="-0.0"),
    ),
    Deviation(
        "equal to the default",
        "an argument that equals the default, but is not the same (-0.0 for 0.0, 1.0 for 1), is replaced by it",
        DISPATCH,
        {"taken": ("received otherwise", HOLDS)},
        dropped,
        Call(of("float", default="0.0"), args=(-0.0,)),
    ),
    Deviation(
        "device as a default",
        "the default of a device is printed without quotes, and torch cannot parse it",
        PRINTER,
        {"parsed": ("not parsed as printed",)},
        lambda f: any(p.meaning == "device" and p.default is not None for p in f.parameters),
        of("device", "torch.device", default="torch.device('cpu')"),
    ),
    Deviation(
        "device as a default of an optional one",
        "the schema's default of an optional device is a string, and no device",
        PARSER,
        {"parsed": ("another default",)},
        optional_device,
        of("Optional[device]", default="torch.device('cpu')"),
    ),
    Deviation(
        "optional device left out",
        "the default of an optional device arrives as a string where it is left out before an argument that is given",
        DISPATCH,
        {"taken": ("received otherwise", HOLDS)},
        optional_device,
        Call(
            Function(
                (
                    Parameter("x", "Optional[device]", Annotation("Optional[device]"), "torch.device('cpu')"),
                    Parameter("y", "int", Annotation("int"), "0"),
                )
            ),
            kwargs={"y": 1},
        ),
    ),
    Deviation(
        "optional tensors written",
        "a mutated list of optional tensors is printed as Tensor?(a0!)[], and torch cannot parse it",
        PRINTER,
        {"parsed": ("not parsed as printed",)},
        lambda f: any(p.meaning == "Sequence[Optional[Tensor]]" and ORACLE.mutated(f, p) for p in f.parameters),
        of("Sequence[Optional[Tensor]]", "list[Tensor | None]", mutates=("x",)),
    ),
    Deviation(
        "tensors by keyword only",
        "custom_op takes no function with keyword-only tensors",
        CUSTOM_OPS.format(760),
        {"taken": ("not defined",)},
        lambda call: (
            call.how == "custom_op"
            and any(p.kind == "keyword" and "Tensor" in p.meaning for p in call.function.parameters)
        ),
        Call(
            Function((Parameter("x", "Tensor", Annotation("Tensor"), kind="keyword"),)),
            "custom_op",
            kwargs={"x": torch.arange(1)},
        ),
    ),
    Deviation(
        "self by name",
        "an op that custom_op has made cannot be called with self=",
        CUSTOM_OPS.format(862),
        {"taken": ("not called",)},
        lambda call: call.how == "custom_op" and "self" in call.kwargs,
        Call(named("self"), "custom_op", kwargs={"self": torch.arange(1)}),
    ),
    Deviation(
        "empty tuple returned",
        "a function annotated tuple[()] must return None",
        INFERENCE.format("v2.13.0", "395"),
        {"taken": ("not called",)},
        lambda call: call.function.returns == (),
        Call(Function(returns=(), returned=Annotation("tuple[()]")), result=()),
    ),
    Deviation(
        "any tuple returned",
        "a function annotated Tuple, without what is in it, gets a schema that returns nothing",
        INFERENCE.format("v2.13.0", "395"),
        {"refused": ("accepted",)},
        kinds("returned", text=lambda text: text in ("Tuple", "typing.Tuple")),
        spoil(Function(), "returned", text="Tuple"),
    ),
    Deviation(
        "parameters not named",
        "the message on positional-only parameters, *args and **kwargs names none",
        INFERENCE.format("v2.13.0", "147"),
        {"refused": ("not named",)},
        kinds("positional-only", "varargs", "varkw"),
        spoil(Function(), "positional-only"),
    ),
    Deviation(
        "unresolved names",
        "the message on a string that cannot be evaluated does not name the parameter",
        INFERENCE.format("v2.13.0", "96-L108"),
        {"refused": ("not named",)},
        kinds("unresolved"),
        spoil(Function(), "unresolved", text="Missing"),
    ),
    Deviation(
        "default of another type",
        "a default that the annotation does not allow is not refused",
        INFERENCE.format("v2.13.0", "238-L250"),
        {"refused": ("accepted",)},
        kinds("default of another type"),
        spoil(Function(), "default of another type", text="int", default="None"),
    ),
    Deviation(
        "generators",
        "torch.Generator, which is not documented, becomes a type that torch cannot parse elsewhere",
        "https://github.com/pytorch/pytorch/blob/v2.13.0/torch/_prims/rng_prims.py#L419",
        {"refused": ("accepted",)},
        kinds("annotation", text=lambda text: text == "torch.Generator"),
        spoil(Function(), "annotation", text="torch.Generator"),
        ">=2.13",
    ),
    Deviation(
        "unsupported and no generic",
        "an unsupported annotation without brackets raises AttributeError, which names no parameter",
        INFERENCE.format("v2.9.1", "127"),
        {"refused": ("raised",)},
        kinds("annotation", text=lambda text: not generic(text)),
        spoil(Function(), "annotation", text="bytes"),
        "<2.10",
    ),
)


def allowed(property: str, subject: Any, table: Collection[Deviation] = DEVIATIONS) -> set[str]:
    """The kinds of outcome that a subject may have with the torch that is installed."""
    rows = [row for row in table if row.here and property in row.outcomes]
    return {o for row in rows if row.applies(subject) for o in row.outcomes[property]} or {HOLDS}
