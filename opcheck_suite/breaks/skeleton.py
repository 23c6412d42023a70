"""The beginning of a custom operator around a piece of code: schema, kernel, fake kernel and test.

What can be seen from one call is filled in; what cannot is marked with ``fill in``.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import pathlib
import re
import textwrap
from collections.abc import Collection, Iterable, Sequence
from types import ModuleType
from typing import Any

import torch

from opcheck_suite.breaks.watching import Region, Value
from opcheck_suite.reserved import RESERVED

#: Namespaces that torch has for itself, so that no library should take them.
_TAKEN = {*RESERVED, "quantized"}


def write(
    regions: Iterable[Region], *, callee: str = "", unknown_size: bool = False, taken: Collection[str] = ()
) -> tuple[str, str]:
    """Name of an operator, and the skeleton of it around the first region whose values it can take and give.

    ``callee`` is what the operator is named after, where it is made of one statement, and ``taken`` are names that it
    must not have. With ``unknown_size`` the first size of the outputs depends on data. Where no region fits, the
    skeleton has placeholders.
    """
    tried = list(regions)
    region = next((r for r in tried if fits(r)), None)
    around = next((r.function for r in (region, *tried) if r is not None), "my_op")
    wanted = _identifier(callee if callee and (region is None or region.body) else around)
    name = next(n for n in (wanted, *(f"{wanted}_{i}" for i in range(2, len(taken) + 3))) if n not in taken)
    if region is not None:
        return name, _around(region, name, unknown_size=unknown_size)
    return name, _placeholder(tried, name, callee)


def fits(region: Region) -> bool:
    """Whether an operator can be made of a region: tensors come in, and tensors or numbers come out."""
    inputs = [v for v in region.inputs if not _importable(v.value)]
    tensors = bool(_tensors(inputs))
    gives = bool(region.outputs) or any(v.written for v in inputs)
    return (
        tensors
        and gives
        and all(annotation(v.value) for v in inputs)
        and all(isinstance(v.value, torch.Tensor | bool | int | float) for v in region.outputs)
    )


def _tensors(values: Iterable[Value]) -> list[Value]:
    """The tensors among values, and those in lists, each with the code that names it."""
    found = []
    for v in values:
        several = list(enumerate(v.value)) if isinstance(v.value, list | tuple) else []
        named = [Value(f"{v.name}[{n}]", one) for n, one in several] or [v]
        found += [one for one in named if isinstance(one.value, torch.Tensor)]
    return found


def has_tensors(region: Region) -> bool:
    """Whether a value that comes in or out holds a tensor, or an array of numbers that may be made of one."""
    values = [v.value for v in (*region.inputs, *region.outputs)]
    flat = [one for v in values for one in (v if isinstance(v, list | tuple) else [v])]
    return any(isinstance(v, torch.Tensor) or hasattr(v, "__array__") for v in flat)


def annotation(value: Any) -> str:
    """The type of an operator's parameter that takes a value, or an empty string where there is none."""
    if value is None:
        return "torch.Tensor | None"
    for kind, name in _TYPES:
        if isinstance(value, kind):
            return name
    if isinstance(value, list | tuple) and value:
        inner = {annotation(v) for v in value}
        if len(inner) == 1 and inner <= {"torch.Tensor", "int", "float", "bool"}:
            return f"Sequence[{inner.pop()}]"
    return ""


_TYPES: tuple[tuple[type, str], ...] = (
    (torch.Tensor, "torch.Tensor"),
    (bool, "bool"),
    (int, "int"),
    (float, "float"),
    (str, "str"),
    (torch.dtype, "torch.dtype"),
    (torch.device, "torch.device"),
)


def _around(region: Region, name: str, *, unknown_size: bool) -> str:
    inputs = [v for v in region.inputs if not _importable(v.value)]
    namespace = _namespace(region)
    function = f"{name}_op" if name in {v.name for v in inputs} or name in region.scope or not region.body else name
    written = [v.name for v in inputs if v.written]
    mutates = "{" + ", ".join(f'"{n}"' for n in written) + "}" if written else "()"
    parameters = ", ".join(f"{v.name}: {annotation(v.value)}" for v in inputs)
    names = ", ".join(v.name for v in inputs)
    lines = [
        f'@torch.library.custom_op("{namespace}::{name}", mutates_args={mutates})',
        f"def {function}({parameters}) -> {_returned(region.outputs)}:",
        *textwrap.indent(_kernel(region, inputs), "    ").splitlines(),
        "",
        "",
        f"@{function}.register_fake",
        f"def _({names}):",
        *textwrap.indent(_fake(region, inputs, unknown_size=unknown_size), "    ").splitlines(),
        "",
        "",
        *_gradient(function, inputs),
        f"def test_{function}():",
        f"    sample = Sample(args=({', '.join(_literal(v.value) for v in inputs)}{',' if len(inputs) == 1 else ''}))",
        f"    check_op({function}, samples=[sample]).raise_if_bad()",
    ]
    return "\n".join([*_imports(region, inputs), "", "", *lines, "", "", *_use(region, function, names)])


def _imports(region: Region, inputs: Sequence[Value]) -> list[str]:
    known = {v.name for v in inputs}
    found = {"import torch"}
    own: list[str] = []
    if region.body:
        tree = ast.parse(textwrap.dedent("def f():\n") + textwrap.indent(region.body, "    "))
        stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        loaded = dict.fromkeys(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
        local = {v.name: v.value for v in region.inputs}
        for name in loaded:
            value = local.get(name, region.scope.get(name))
            if isinstance(value, ModuleType):
                found.add(_import_of(name, value))
            elif name not in known | stored and name in region.scope and not hasattr(builtins, name):
                own.append(name)
    elif "<locals>" not in region.qualified and "." not in region.qualified:
        own.append(region.function)
    module = str(region.scope.get("__name__", ""))
    importable = module not in ("", "__main__") and not re.search(r"_[0-9a-f]{8}$", module)
    if own:
        source = module if importable else pathlib.Path(region.file).stem
        found.add(f"from {source} import {', '.join(own)}")
    if any(annotation(v.value).startswith("Sequence") for v in inputs):
        found.add("from collections.abc import Sequence")
    found.add("from opcheck_suite import Sample, check_op")
    return sorted(found, key=lambda line: (line.startswith("from"), line))


def _import_of(name: str, module: ModuleType) -> str:
    whole = module.__name__
    if name == whole:
        return f"import {whole}"
    parent, _, last = whole.rpartition(".")
    if parent and last == name:
        return f"from {parent} import {name}"
    return f"import {whole} as {name}"


def _importable(value: Any) -> bool:
    return isinstance(value, ModuleType)


def _kernel(region: Region, inputs: Sequence[Value]) -> str:
    if not region.body:
        call = f"{region.function}({', '.join(v.name for v in inputs)})"
        if "." in region.qualified:
            call += f"  # fill in: {region.qualified} cannot be imported; move it to the top of its module"
        if not region.outputs:
            return call
        names = ", ".join(v.name for v in region.outputs)
        return f"{names} = {call}\nreturn {_given(region.outputs)}"
    if region.body.startswith("return "):
        code = region.body.removeprefix("return ")
        if len(region.outputs) == 1:
            return f"out = {code}\nreturn {_given(region.outputs)}"
        return f"{', '.join(v.name for v in region.outputs)} = {code}\nreturn {_given(region.outputs)}"
    return f"{region.body}\nreturn {_given(region.outputs)}" if region.outputs else region.body


def _given(outputs: Sequence[Value]) -> str:
    """Outputs as new, contiguous tensors: what the fake kernel says, and not the memory of an input."""
    made = []
    for v in outputs:
        if not isinstance(v.value, torch.Tensor):
            made.append(f"torch.tensor({v.name})")
        elif v.alias:
            made.append(f"{v.name}.clone(memory_format=torch.contiguous_format)")
        else:
            made.append(f"{v.name}.contiguous()")
    return ", ".join(made)


def _returned(outputs: Sequence[Value]) -> str:
    if not outputs:
        return "None"
    return "torch.Tensor" if len(outputs) == 1 else f"tuple[{', '.join(['torch.Tensor'] * len(outputs))}]"


def _fake(region: Region, inputs: Sequence[Value], *, unknown_size: bool) -> str:
    if not region.outputs:
        return "return None"
    tensors = _tensors(inputs)
    given = ", ".join(map(describe, tensors)), ", ".join(_described(v.value) for v in region.outputs)
    lines = ["# check: right for the example, but for all inputs?", f"#   {given[0]} -> {given[1]}"]
    made = []
    for number, v in enumerate(region.outputs):
        known = number or not unknown_size
        if not known:
            lines.append("size = torch.library.get_ctx().new_dynamic_size()")
        made.append(_allocated(v.value, tensors, known=bool(known)))
    return "\n".join([*lines, f"return {', '.join(made)}"])


def _allocated(value: Any, tensors: Sequence[Value], *, known: bool) -> str:
    if not isinstance(value, torch.Tensor):
        return f"{tensors[0].name}.new_empty((), dtype={torch.as_tensor(value).dtype})"
    same = next((t for t in tensors if t.value.shape == value.shape), None)
    if same is not None and known:
        kind = "" if same.value.dtype == value.dtype else f", dtype={value.dtype}"
        return f"{same.name}.new_empty({same.name}.shape{kind})"
    like = next((t for t in tensors if t.value.dtype == value.dtype), tensors[0])
    kind = "" if like.value.dtype == value.dtype else f", dtype={value.dtype}"
    sizes = [_size(size, tensors) for size in value.shape]
    if not known and sizes:
        sizes[0] = "size"
    return f"{like.name}.new_empty(({', '.join(sizes)}{',' if len(sizes) == 1 else ''}){kind})"


def _size(size: int, tensors: Sequence[Value]) -> str:
    """A size as that of the first input that has it, or a number."""
    places = [f"{t.name}.shape[{dim}]" for t in tensors for dim, known in enumerate(t.value.shape) if known == size]
    return places[0] if places and size > 1 else str(size)


def _gradient(function: str, inputs: Sequence[Value]) -> list[str]:
    wanted = [v.name for v in _tensors(inputs) if v.value.requires_grad]
    if not wanted:
        return []
    verb = "requires" if len(wanted) == 1 else "require"
    return [
        f"# fill in: {', '.join(wanted)} {verb} grad, and the operator is not differentiable without",
        f"# {function}.register_autograd(backward, setup_context=setup_context)",
        "",
        "",
    ]


def _use(region: Region, function: str, names: str) -> list[str]:
    given = ", ".join(v.name for v in region.outputs)
    swapped = {short: path for path, short in region.indirect}
    passed = ", ".join(swapped.get(n, n) for n in names.split(", "))
    where = f"{pathlib.Path(region.file).name}:{region.line}"
    if not region.body:
        return [f"# then call {function} where {region.function} is called, or in its place at {where}"]
    call = f"{function}({passed})"
    if region.body.startswith("return "):
        call = f"return {call}"
    elif given:
        call = f"{given} = {call}"
    lines = [f"# then {where} becomes", f"#     {call}"]
    numbers = [v.name for v in region.outputs if not isinstance(v.value, torch.Tensor)]
    if numbers:
        lines.append(f"# with {', '.join(numbers)} as a tensor: a number would be read out of the graph, and break it")
    return lines


def _literal(value: Any) -> str:
    """Code that makes a value like this one; of a tensor the shape and dtype, not the contents."""
    if isinstance(value, torch.Tensor):
        kind = "" if value.dtype == torch.get_default_dtype() else f", dtype={value.dtype}"
        sizes = ", ".join(map(str, value.shape))
        shape = sizes if value.dim() else "()"
        if value.dtype == torch.bool:
            return f"torch.rand({shape}) > 0.5"
        if value.dtype.is_floating_point or value.dtype.is_complex:
            if value.dtype.itemsize == 1:
                return f"torch.randn({shape}).to({value.dtype})"
            return f"torch.randn({shape}{kind})"
        high = int(value.max()) + 1 if value.numel() else 1
        return f"torch.randint(0, {max(high, 1)}, ({sizes},){'' if value.dtype == torch.int64 else kind})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, torch.device):
        return f'torch.device("{value}")'
    return repr(value)


def describe(value: Value) -> str:
    """``x float32[3, 4]`` for a tensor, ``n 3`` for another value."""
    return f"{value.name} {_described(value.value)}"


def _described(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return repr(value)
    return f"{str(value.dtype).removeprefix('torch.')}[{', '.join(map(str, value.shape))}]"


def _placeholder(tried: Sequence[Region], name: str, callee: str) -> str:
    region = tried[0] if tried else None
    namespace = _namespace(region) if region else "my_library"
    why = ["# fill in: tensors and numbers in, tensors out; what runs here is not looked into by the compiler"]
    if region is not None:
        odd = [v for v in region.inputs if not annotation(v.value) and not _importable(v.value)]
        odd += [v for v in region.outputs if not annotation(v.value)]
        kinds = ", ".join(f"{v.name} ({type(v.value).__name__})" for v in odd)
        if odd:
            why.append(f"# no operator takes or returns {kinds}: make it inside, or keep it in a global variable")
    return "\n".join(
        [
            "import torch",
            "from opcheck_suite import Sample, check_op",
            "",
            "",
            f'@torch.library.custom_op("{namespace}::{name}", mutates_args=())',
            f"def {name}(x: torch.Tensor) -> torch.Tensor:",
            *(f"    {line}" for line in why),
            f"    raise NotImplementedError  # the code around {callee or name}",
            "",
            "",
            f"@{name}.register_fake",
            "def _(x):",
            "    # fill in: an uninitialised tensor of the right shape and dtype",
            "    return torch.empty_like(x)",
            "",
            "",
            f"def test_{name}():",
            "    sample = Sample(args=(torch.randn(3),))  # fill in: arguments as they are in practice",
            f"    check_op({name}, samples=[sample]).raise_if_bad()",
        ]
    )


def _identifier(text: str) -> str:
    name = re.sub(r"\W+", "_", text).strip("_").lower() or "my_op"
    if name[0].isdigit() or keyword.iskeyword(name):
        name = f"op_{name}"
    return name


def _namespace(region: Region) -> str:
    top = str(region.scope.get("__name__", "")).partition(".")[0]
    top = pathlib.Path(region.file).stem if top in ("", "__main__") or re.search(r"_[0-9a-f]{8}$", top) else top
    name = _identifier(top)
    return f"my_{name}" if name in _TAKEN else name
