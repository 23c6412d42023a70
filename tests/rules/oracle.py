"""What `torch.library.infer_schema` should say of a function, as data: nothing here asks torch's own table.

A meaning is an annotation in one spelling, such as ``Optional[Sequence[int]]``; `functions` knows the others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.rules.functions import Function, Parameter

#: The types that the documentation names, for parameters and for what is returned.
CUSTOM_OP = "https://docs.pytorch.org/docs/stable/library.html#torch.library.custom_op"
#: What `mutates_args`, `tags` and string annotations mean.
INFER_SCHEMA = "https://docs.pytorch.org/docs/stable/library.html#torch.library.infer_schema"
#: The language of schemas: types, `?`, `[]`, `*`, defaults, and `(a!)` for what is written to.
LANGUAGE = "https://github.com/pytorch/pytorch/blob/v2.9.1/aten/src/ATen/native/README.md#func"
#: What is not documented: lists of optional tensors, optional lists, process groups, the text of defaults.
SOURCE = "https://github.com/pytorch/pytorch/blob/v2.9.1/torch/_library/infer_schema.py"
GROUP_NAME = "https://github.com/pytorch/pytorch/blob/v2.10.0/torch/_library/infer_schema.py#L268-L271"


@dataclasses.dataclass(frozen=True)
class Type:
    """A type in a schema."""

    schema: str
    #: What torch's parser calls it: it does not tell int from SymInt.
    parsed: str
    source: str
    versions: str = ">=2.9"


@dataclasses.dataclass(frozen=True)
class Text:
    """How something is written in a schema: ``{}`` is the value, the position or the types."""

    schema: str
    source: str


PARAMETERS = {
    "Tensor": Type("Tensor", "Tensor", CUSTOM_OP),
    "Optional[Tensor]": Type("Tensor?", "Optional[Tensor]", CUSTOM_OP),
    "Sequence[Tensor]": Type("Tensor[]", "List[Tensor]", CUSTOM_OP),
    "Sequence[Optional[Tensor]]": Type("Tensor?[]", "List[Optional[Tensor]]", SOURCE),
    "int": Type("SymInt", "int", CUSTOM_OP),
    "Optional[int]": Type("SymInt?", "Optional[int]", CUSTOM_OP),
    "Sequence[int]": Type("SymInt[]", "List[int]", CUSTOM_OP),
    "Optional[Sequence[int]]": Type("SymInt[]?", "Optional[List[int]]", SOURCE),
    "float": Type("float", "float", CUSTOM_OP),
    "Optional[float]": Type("float?", "Optional[float]", CUSTOM_OP),
    "Sequence[float]": Type("float[]", "List[float]", CUSTOM_OP),
    "Optional[Sequence[float]]": Type("float[]?", "Optional[List[float]]", SOURCE),
    "bool": Type("bool", "bool", CUSTOM_OP),
    "Optional[bool]": Type("bool?", "Optional[bool]", CUSTOM_OP),
    "Sequence[bool]": Type("bool[]", "List[bool]", CUSTOM_OP),
    "Optional[Sequence[bool]]": Type("bool[]?", "Optional[List[bool]]", SOURCE),
    "Number": Type("Scalar", "number", CUSTOM_OP),
    "Optional[Number]": Type("Scalar?", "Optional[number]", CUSTOM_OP),
    "Sequence[Number]": Type("Scalar[]", "List[number]", CUSTOM_OP),
    "str": Type("str", "str", CUSTOM_OP),
    "Optional[str]": Type("str?", "Optional[str]", CUSTOM_OP),
    "dtype": Type("ScalarType", "ScalarType", CUSTOM_OP),
    "Optional[dtype]": Type("ScalarType?", "Optional[ScalarType]", CUSTOM_OP),
    "device": Type("Device", "Device", CUSTOM_OP),
    "Optional[device]": Type("Device?", "Optional[Device]", CUSTOM_OP),
    "GroupName": Type("str", "str", GROUP_NAME, ">=2.10"),
    "Optional[GroupName]": Type("str?", "Optional[str]", GROUP_NAME, ">=2.10"),
}

RETURNS = {
    "None": Type("()", "", LANGUAGE),
    "Tensor": Type("Tensor", "Tensor", CUSTOM_OP),
    "list[Tensor]": Type("Tensor[]", "List[Tensor]", CUSTOM_OP),
    "int": Type("SymInt", "int", CUSTOM_OP),
    "float": Type("float", "float", CUSTOM_OP),
    "bool": Type("bool", "bool", CUSTOM_OP),
    "Number": Type("Scalar", "number", CUSTOM_OP),
}

#: By the type of the value.
DEFAULTS = {
    "NoneType": Text("None", LANGUAGE),
    "bool": Text("{}", LANGUAGE),
    "int": Text("{}", LANGUAGE),
    "float": Text("{}", LANGUAGE),
    "str": Text('"{}"', SOURCE),
    "device": Text('"{}"', SOURCE),
    "dtype": Text("{}", SOURCE),
}

WORDING = {
    "mutated": Text("Tensor(a{}!)", LANGUAGE),
    "keyword-only": Text("*", LANGUAGE),
    "default": Text("{}={}", LANGUAGE),
    "tuple": Text("({})", LANGUAGE),
    # brackets of their own: without them it would be no tuple
    "tuple of one": Text("(({}))", SOURCE),
    "named": Text("{}({}) -> {}", INFER_SCHEMA),
}

#: The numbers that schemas have for dtypes.
#: https://github.com/pytorch/pytorch/blob/v2.9.1/torch/headeronly/core/ScalarType.h
DTYPES = {
    "float32": 6,
    "int64": 4,
    "bool": 11,
    "bfloat16": 15,
    "complex64": 9,
    "uint8": 0,
    "float8_e4m3fn": 24,
}


@dataclasses.dataclass(frozen=True)
class Oracle:
    """The tables, and what follows from them."""

    parameters: Mapping[str, Type] = dataclasses.field(default_factory=lambda: PARAMETERS)
    returns: Mapping[str, Type] = dataclasses.field(default_factory=lambda: RETURNS)
    defaults: Mapping[str, Text] = dataclasses.field(default_factory=lambda: DEFAULTS)
    wording: Mapping[str, Text] = dataclasses.field(default_factory=lambda: WORDING)
    dtypes: Mapping[str, int] = dataclasses.field(default_factory=lambda: DTYPES)

    def schema(self, function: Function) -> str:
        """The schema of a function."""
        written = []
        for position, parameter in enumerate(function.parameters):
            if parameter.kind == "keyword" and self.wording["keyword-only"].schema not in written:
                written.append(self.wording["keyword-only"].schema)
            written.append(self._parameter(function, position, parameter))
        return self.wording["named"].schema.format(function.op_name or "", ", ".join(written), self._returned(function))

    def _parameter(self, function: Function, position: int, parameter: Parameter) -> str:
        text = self.parameters[parameter.meaning].schema
        if self.mutated(function, parameter):
            text = text.replace("Tensor", self.wording["mutated"].schema.format(position))
        text = f"{text} {parameter.name}"
        if parameter.default is not None:
            text = self.wording["default"].schema.format(text, self._default(parameter.default_value))
        return text

    def _default(self, value: Any) -> str:
        return self.defaults[type(value).__name__].schema.format(str(value).removeprefix("torch."))

    def _returned(self, function: Function) -> str:
        written = self.wording["mutated"].schema
        types = [written.format(position) for position in self.aliases(function)]
        if isinstance(function.returns, str):
            return types[0] if types else self.returns[function.returns].schema
        types = types or [self.returns[meaning].schema for meaning in function.returns]
        return self.wording["tuple of one" if len(types) == 1 else "tuple"].schema.format(", ".join(types))

    def mutated(self, function: Function, parameter: Parameter) -> bool:
        """Whether an argument is written to: what holds tensors, where it is not known."""
        if function.mutates == "unknown":
            return self.parameters[parameter.meaning].schema.startswith("Tensor")
        return parameter.name in function.mutates

    def aliases(self, function: Function) -> list[int]:
        """The positions of the arguments that are returned: those that a tagged function writes to."""
        return [n for n, p in enumerate(function.parameters) if function.tag and self.mutated(function, p)]

    def parsed(self, parameter: Parameter) -> str:
        """What torch's parser calls the type of a parameter."""
        return self.parameters[parameter.meaning].parsed

    def parsed_default(self, parameter: Parameter) -> Any:
        """The default as torch's parser has it."""
        value = parameter.default_value
        if type(value).__name__ == "dtype":
            return self.dtypes[str(value).removeprefix("torch.")]
        if parameter.meaning == "float" and type(value) is int:
            return float(value)
        return value

    def parsed_returns(self, function: Function) -> list[str]:
        """What torch's parser calls the types of the results."""
        if isinstance(function.returns, str):
            return [text] if (text := self.returns[function.returns].parsed) else []
        types = [self.returns[meaning].parsed for meaning in function.returns]
        return [f"Tuple[{types[0]}]"] if len(types) == 1 else types


ORACLE = Oracle()
