"""What a Python function reads that is not given to it, told by its bytecode without running anything.

Followed are global variables, closure cells and values bound to parameters, and from there attributes and elements
with a constant key, as in ``Config.weights["first"]``. No property, ``__getattr__`` or ``__getitem__`` is called.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

#: How many attributes and elements are followed from a variable, and in how many functions caches are looked for.
_MOST_STEPS, _MOST_FUNCTIONS = 3, 64

_MISSING = object()
_IGNORED = ("CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL", "RESUME")


@dataclasses.dataclass(frozen=True, eq=False)
class Read:
    """One place of a function where a value from outside is loaded."""

    path: str
    """As in the source: ``Config.weights['first']``."""
    value: Any
    kept: bool
    """Whether the function itself, or one that it names, also stores there: a cache, which fills when it is used."""
    asked: str
    """The attribute that is asked for next, such as ``shape``; or empty."""


@dataclasses.dataclass(frozen=True)
class _Step:
    """An attribute, or an element with a constant key."""

    key: Any
    item: bool

    def __str__(self) -> str:
        return f"[{self.key!r}]" if self.item else f".{self.key}"


@dataclasses.dataclass(frozen=True, eq=False)
class _Chain:
    """A variable, the steps from it that are taken at once, and what is then stored there: a step, or any element."""

    name: str
    local: bool
    steps: tuple[_Step, ...]
    stores: _Step | None = None


def unbound(function: Any) -> tuple[types.FunctionType | None, dict[str, Any]]:
    """The function behind a callable, and the values bound to its parameters, by ``functools.partial`` or as the object
    of a method. None where there is no Python function.
    """
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    while isinstance(function, functools.partial):
        args, kwargs, function = (*function.args, *args), {**function.keywords, **kwargs}, function.func
    if not isinstance(function, types.FunctionType | types.MethodType) and not isinstance(function, type):
        called = inspect.getattr_static(type(function), "__call__", None)
        function = types.MethodType(called, function) if isinstance(called, types.FunctionType) else function
    if isinstance(function, types.MethodType):
        args, function = (function.__self__, *args), function.__func__
    if not isinstance(function, types.FunctionType):
        return None, {}
    positional = function.__code__.co_varnames[: function.__code__.co_argcount]
    return function, dict(zip(positional, args, strict=False)) | kwargs


def defaults(function: types.FunctionType) -> dict[str, Any]:
    """The parameters of a function that have defaults, and these."""
    positional, given = function.__code__.co_varnames[: function.__code__.co_argcount], function.__defaults__ or ()
    last = positional[len(positional) - len(given) :]
    return dict(zip(last, given, strict=True)) | (function.__kwdefaults__ or {})


def parameters(code: types.CodeType) -> tuple[str, ...]:
    """The names of a function's parameters, but for ``*args`` and ``**kwargs``."""
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def outside(function: types.FunctionType, bound: dict[str, Any], *, ends: Callable[[Any], bool]) -> Iterator[Read]:
    """What a function loads from outside, wherever a variable or a step from it gives a value that ``ends`` says to
    stop at.
    """
    stored: set[tuple[int, bool, Any]] | None = None  # asked for only where something is found
    for chain in _chains(function.__code__):
        value, path = _variable(chain, function, bound), chain.name
        holder, last = None, None
        for step in (*chain.steps[:_MOST_STEPS], None):
            if ends(value):
                stored = _stored(function, bound) if stored is None else stored
                kept = last is not None and any((id(holder), last.item, key) in stored for key in (None, last.key))
                yield Read(path, value, kept, "" if step is None or step.item else step.key)
                break
            if step is None:
                break
            holder, last = value, step
            value, path = _after(value, step), f"{path}{step}"


def _stored(function: types.FunctionType, bound: dict[str, Any]) -> set[tuple[int, bool, Any]]:
    """Where a function, or one that it reaches by names, stores: the object, whether an element, and the name or key;
    None for any key.
    """
    found: set[tuple[int, bool, Any]] = set()
    queue = [(function, bound)]
    for one, given in queue:
        met = {code.__code__ for code, _ in queue}
        queue += [pair for pair in _named(one, given) if pair[0].__code__ not in met][: _MOST_FUNCTIONS - len(queue)]
        for chain in _chains(one.__code__):
            if chain.stores is not None:
                value = _variable(chain, one, given)
                for step in chain.steps:
                    value = _after(value, step)
                found.add((id(value), chain.stores.item, chain.stores.key))
    return found


def _named(function: types.FunctionType, bound: dict[str, Any]) -> Iterator[tuple[types.FunctionType, dict[str, Any]]]:
    """The functions and methods of its own package that a function names, with the object of a method bound."""
    for chain in _chains(function.__code__):
        owner, value = None, _variable(chain, function, bound)
        for step in chain.steps:
            owner, value = value, _after(value, step)
        if isinstance(value, classmethod | staticmethod):
            owner, value = owner if isinstance(value, classmethod) else None, value.__func__
        value = inspect.unwrap(value) if callable(value) else value
        if isinstance(value, types.FunctionType) and _package(value) == _package(function):
            first = parameters(value.__code__)[:1]
            yield value, dict.fromkeys(first, owner) if owner is not None else {}


def _package(function: types.FunctionType) -> str:
    return (function.__module__ or "").partition(".")[0]


def _variable(chain: _Chain, function: types.FunctionType, bound: dict[str, Any]) -> Any:
    """The value of the variable that a chain begins with."""
    if chain.name in bound and (chain.local or chain.name in function.__code__.co_cellvars):
        return bound[chain.name]
    if chain.local:
        return _MISSING
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    if chain.name in cells:
        try:
            return cells[chain.name].cell_contents
        except ValueError:  # a variable that has no value yet
            return _MISSING
    return function.__globals__.get(chain.name, _MISSING)


def _after(value: Any, step: _Step) -> Any:
    """The attribute or element of a value, or a marker where finding it would run code."""
    if value is _MISSING:
        return value
    if step.item:
        if isinstance(value, dict):
            return dict.get(value, step.key, _MISSING)
        try:
            if isinstance(value, list):
                return list.__getitem__(value, step.key)
            return tuple.__getitem__(value, step.key) if isinstance(value, tuple) else _MISSING
        except (IndexError, TypeError):
            return _MISSING
    if isinstance(value, tuple) and step.key in getattr(type(value), "_fields", ()):  # of a named tuple
        return tuple.__getitem__(value, type(value)._fields.index(step.key))  # type: ignore[attr-defined]
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        own = None
    for place in ("_parameters", "_buffers", "_modules"):  # where a torch.nn.Module keeps what looks like attributes
        members = own.get(place) if isinstance(own, dict) else None
        if isinstance(members, dict) and step.key in members:
            return members[step.key]
    found = inspect.getattr_static(value, step.key, _MISSING)
    if isinstance(found, types.MemberDescriptorType):  # one of __slots__
        try:
            return found.__get__(value, type(value))
        except AttributeError:
            return _MISSING
    return found


@functools.cache
def _chains(code: types.CodeType) -> tuple[_Chain, ...]:
    """The variables that code loads, with the steps that follow at once; those of inner functions as well."""
    found: list[_Chain] = []
    steps = [i for i in dis.get_instructions(code) if i.opname not in _IGNORED]
    for n, instruction in enumerate(steps):
        start = _loaded(instruction)
        if start is not None:
            found.append(_chain(*start, steps[n + 1 :]))
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            # its own variables are others, and parameters of this code that it uses are no locals of it
            found += [chain for chain in _chains(inner) if not chain.local]
    return tuple(found)


def _loaded(instruction: dis.Instruction) -> tuple[str, bool] | None:
    """Name of the variable that is on top of the stack after an instruction, and whether it is a local one."""
    name, value = instruction.opname, instruction.argval
    if name in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"):
        return str(value), False
    if "LOAD_FAST" in name and name not in ("LOAD_FAST_AND_CLEAR", "LOAD_FAST_CHECK"):
        return str(value[-1] if isinstance(value, tuple) else value), True  # one instruction may load two
    return None


def _chain(name: str, local: bool, rest: list[dis.Instruction]) -> _Chain:
    """The chain that begins with a variable, given the instructions after its load."""
    taken: list[_Step] = []
    at = 0
    while at < len(rest):
        if rest[at].opname in ("LOAD_ATTR", "LOAD_METHOD"):
            taken.append(_Step(rest[at].argval, item=False))
            at += 1
        elif _constant(rest[at]) and at + 1 < len(rest) and _subscript(rest[at + 1]):
            taken.append(_Step(rest[at].argval, item=True))
            at += 2
        else:
            break
    return _Chain(name, local, tuple(taken), _store(rest[at:]))


def _store(rest: list[dis.Instruction]) -> _Step | None:
    """What is stored in the value that is on top of the stack before some instructions."""
    above = 0  # how many values lie on top of it
    for n, instruction in enumerate(rest):
        if instruction.opname == "STORE_ATTR" and above == 0:
            return _Step(instruction.argval, item=False)
        if instruction.opname == "STORE_SUBSCR" and above == 1:
            return _Step(rest[0].argval if n == 1 and _constant(rest[0]) else None, item=True)
        above += dis.stack_effect(instruction.opcode, instruction.arg, jump=False)
        if above < 0 or instruction.opcode in dis.hasjrel:
            return None
    return None


def _constant(instruction: dis.Instruction) -> bool:
    return instruction.opname in ("LOAD_CONST", "LOAD_SMALL_INT") and isinstance(instruction.argval, str | int)


def _subscript(instruction: dis.Instruction) -> bool:
    """Whether an instruction takes an element: of its own up to Python 3.13, since then a binary operator."""
    return instruction.opname == "BINARY_SUBSCR" or (
        instruction.opname == "BINARY_OP" and instruction.argrepr.startswith("[")
    )
