"""What a user names on the command line: a function ``pkg.mod:function``, and the arguments to call it with."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import pathlib
import pkgutil
import sys
from collections.abc import Callable, Iterator
from types import GeneratorType, ModuleType
from typing import Any

import torch

from opcheck_suite import specs
from opcheck_suite.model import Sample
from opcheck_suite.registry import UsageError, did_you_mean


@dataclasses.dataclass(frozen=True)
class Target:
    """A function to compile."""

    name: str
    """As the user wrote it."""
    fn: Callable[..., Any]
    module: ModuleType


def load(target: str) -> Target:
    """The function that ``pkg.mod:function``, ``file.py:function`` or ``pkg.mod:model.forward`` names.

    What ``torch.compile`` made is taken back to what it was made of. A class of modules is called without arguments to
    get one. Raises UsageError, with the nearest name, when there is no such function.
    """
    where, colon, path = target.rpartition(":")
    if not colon or not where or not path:
        raise UsageError(f"{target!r} names no function; write module:function or file.py:function{_near(target)}")
    module = _module(where)
    return Target(target, plain(_callable(module, where, path)), module)


def calls(reference: str | None, target: Target) -> list[Sample]:
    """The calls that ``--args`` names: ``pkg.mod:name``, or a name in the function's own module.

    The name stands for a value, or for a function without parameters that returns it. A tuple is the positional
    arguments of one call, a pair of a tuple and a dict is these and the keyword arguments, a list (or what a generator
    yields) is several such calls, and any other value is the one argument. Without a reference the function is called
    without arguments, if it can be.

    Raises UsageError when there is no such name, or making the arguments raises.
    """
    if reference is None:
        lacking = _required(target.fn)
        if lacking:
            near = [n for n in vars(target.module) if any(word in n.lower() for word in ("args", "inputs", "example"))]
            hint = f", as {' or '.join(near[:3])}" if near else ""
            wanted = ", ".join(lacking)
            raise UsageError(f"{target.name} needs arguments ({wanted}): name what gives them with --args{hint}")
        return [Sample()]
    where, _, path = reference.rpartition(":")
    module = _module(where) if where else target.module
    value = _attribute(module, where or target.name.rpartition(":")[0], path)
    if callable(value) and not isinstance(value, torch.nn.Module):
        try:
            value = value()
            value = list(value) if isinstance(value, GeneratorType) else value
        except Exception as error:
            raise UsageError(f"{reference} raised {type(error).__name__}: {specs.first_line(error)}") from error
    else:
        value = _copied(value)
    found = [_sample(one) for one in value] if isinstance(value, list) else [_sample(value)]
    if not found:
        raise UsageError(f"{reference} gives no call")
    for sample in found:
        _bind(target, sample, reference)
    return found


def _sample(value: Any) -> Sample:
    if isinstance(value, Sample):
        return value
    if isinstance(value, tuple):
        if len(value) == 2 and isinstance(value[0], tuple | list) and isinstance(value[1], dict):
            return Sample(tuple(value[0]), dict(value[1]))
        return Sample(value)
    return Sample((value,))


def _copied(value: Any) -> Any:
    """A copy, since the function may write to its arguments; what cannot be copied is used as it is."""
    try:
        return copy.deepcopy(value)
    except Exception:
        return value


def _module(where: str) -> ModuleType:
    module = specs.imported(where)
    if module is None:
        raise UsageError(f"there is no module {where!r}")
    if where.endswith(".py") or "/" in where:
        # Dynamo looks a function's module up by its name, and what is imported in a function is found by the path.
        sys.modules.setdefault(module.__name__, module)
        folder = str(pathlib.Path(where).resolve().parent)
        if folder not in sys.path:
            sys.path.append(folder)
    return module


def _attribute(module: Any, where: str, path: str) -> Any:
    value: Any = module
    for number, name in enumerate(path.split(".")):
        owner = ".".join([where, *path.split(".")[:number]]) if number else where
        try:
            value = getattr(value, name)
        except AttributeError:
            if inspect.ismodule(value) and hasattr(value, "__path__"):
                found = _submodule(value, name)
                if found is not None:
                    value = found
                    continue
            known = [n for n in dir(value) if not n.startswith("__")]
            raise UsageError(f"{owner} has no {name!r}{did_you_mean(name, known)}") from None
    return value


def _submodule(package: ModuleType, name: str) -> ModuleType | None:
    if name not in {m.name for m in pkgutil.iter_modules(package.__path__)}:
        return None
    try:
        return importlib.import_module(f"{package.__name__}.{name}")
    except Exception as error:
        raise UsageError(f"{package.__name__}.{name} cannot be imported: {specs.first_line(error)}") from error


def _callable(module: ModuleType, where: str, path: str) -> Callable[..., Any]:
    parent, _, last = path.rpartition(".")
    owner = _attribute(module, where, parent) if parent else module
    if inspect.isclass(owner) and issubclass(owner, torch.nn.Module):
        owner = _made(owner, f"{where}:{parent}")
    if isinstance(owner, torch.nn.Module):
        value = _attribute(plain(owner), f"{where}:{parent}", last)
    else:
        value = _attribute(module, where, path)
    if inspect.isclass(value):
        if not issubclass(value, torch.nn.Module):
            raise UsageError(f"{where}:{path} is a class; name a function, a method of an object, or a module")
        value = _made(value, f"{where}:{path}")
    if not callable(value):
        functions = [n for n, v in vars(module).items() if inspect.isfunction(v) and v.__module__ == module.__name__]
        hint = did_you_mean(last, functions) or (f"; its functions are {', '.join(functions[:6])}" if functions else "")
        raise UsageError(f"{where}:{path} is {_an(type(value).__name__)}, not a function{hint}")
    return value  # type: ignore[no-any-return]


def _made(kind: type, name: str) -> Any:
    try:
        return kind()
    except Exception as error:
        reason = f"{type(error).__name__}: {specs.first_line(error)}"
        raise UsageError(f"{name} is a class, and making one raised {reason}; name an object of it instead") from error


def plain(fn: Any) -> Callable[..., Any]:
    """What a compiled function or module was made of. A disabled one is left: that it is disabled is what to tell."""
    if isinstance(fn, torch.nn.Module):
        made_of: Callable[..., Any] = getattr(fn, "_orig_mod", fn)
        return made_of
    inner: Callable[..., Any] | None = getattr(fn, "_torchdynamo_orig_callable", None)
    whole: Callable[..., Any] = fn
    return whole if inner is None or getattr(fn, "_torchdynamo_disable", False) else inner


def _required(fn: Callable[..., Any]) -> list[str]:
    """Names of the parameters that must be given; of none where the signature is not known."""
    return [p.name for p in _parameters(fn) if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _parameters(fn: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    try:
        yield from inspect.signature(fn.forward if isinstance(fn, torch.nn.Module) else fn).parameters.values()
    except (TypeError, ValueError):
        return


def _bind(target: Target, sample: Sample, reference: str) -> None:
    fn = target.fn.forward if isinstance(target.fn, torch.nn.Module) else target.fn
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*sample.args, **sample.kwargs)
    except TypeError as error:
        raise UsageError(f"{reference} does not fit {target.name}{signature}: {error}") from None


def _near(target: str) -> str:
    """A proposal for a target without a colon: ``my_model.forward`` is meant as ``my_model:forward``."""
    module, _, name = target.rpartition(".")
    return f"; did you mean {f'{module}:{name}'!r}?" if module and name.isidentifier() and name != "py" else ""


def _an(word: str) -> str:
    return f"an {word}" if word[:1].lower() in "aeiou" else f"a {word}"
