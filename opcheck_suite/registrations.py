"""What Python code registers while it is watched, by whom, and which of it goes against each other.

torch is silent on most of it: the last kernel wins, ``torch.library.custom_op`` drops an op of the same name, and with
a ``torch.library.Library`` that nobody holds its ops are gone. See https://docs.pytorch.org/docs/stable/library.html.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Sequence
from types import FrameType, ModuleType
from typing import Any


def _devices(given: str | Sequence[str] | None) -> list[str]:
    types = [given] if given is None or isinstance(given, str) else list(given)
    return [f"kernel for {kind or 'all devices'}" for kind in types]


#: The methods of ``torch.library.CustomOpDef`` that let a second registration replace the first without a word, and
#: what each registers, from its first argument. See
#: https://github.com/pytorch/pytorch/blob/main/torch/_library/custom_ops.py.
_DECORATORS: dict[str, Callable[[Any], list[str]]] = {
    "register_kernel": _devices,
    "register_fake": lambda _: ["fake kernel"],
    "register_autograd": lambda _: ["gradient formula"],
    "register_vmap": lambda _: ["batching rule"],
    "register_torch_dispatch": lambda kind: [f"rule for {getattr(kind, '__name__', kind)}"],
}


class RegistrationWarning(UserWarning):
    """Registrations with torch go against each other, or are gone before anyone could use them."""


@dataclasses.dataclass(frozen=True)
class Place:
    """A line of Python."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclasses.dataclass(frozen=True)
class Conflict:
    """One thing that went wrong with registrations."""

    kind: str
    """``defined twice``, ``redefined``, ``overridden`` or ``collected``."""
    ops: tuple[str, ...]
    """The ops, as ``namespace::name.overload``."""
    places: tuple[str, ...]
    """``file:line`` of everyone who had a part in it, the first one first."""
    message: str
    """What happened, and what to do."""

    def __str__(self) -> str:
        return self.message


@dataclasses.dataclass
class _Made:
    """What one ``Library`` object has registered."""

    place: Place
    module: weakref.ref[ModuleType] | None = None
    """The module that was being imported when it was made: such a library is meant to last."""
    definitions: dict[str, Place] = dataclasses.field(default_factory=dict)
    kernels: dict[tuple[str, str], Place] = dataclasses.field(default_factory=dict)
    watched: bool = False


class Registrations:
    """Watches ``torch.library.Library`` from `start` to `stop`, and warns of every `Conflict`.

    What PyTorch and this package register is left out, and so is a line that is run again: a function that makes its op
    at each call replaces its own.
    """

    def __init__(self) -> None:
        self.reports: list[Conflict] = []
        """In the order in which they were found."""
        self._libraries: weakref.WeakKeyDictionary[Any, _Made] = weakref.WeakKeyDictionary()
        self._definitions: dict[str, Place] = {}
        self._kernels: dict[tuple[str, str], Place] = {}
        self._replaced: dict[str, Place] = {}
        self._gone: dict[str, _Made] = {}
        self._finalizers: list[weakref.finalize[Any, Any]] = []
        self._patched: list[tuple[Any, str, Any]] = []

    def start(self) -> None:
        """Begin to watch."""
        import torch

        library: Any = torch.library.Library
        make, define, impl, destroy = torch._C._dispatch_library, library.define, library.impl, library._destroy

        # instead of Library.__init__, which looks at its caller for torch's own record of the line
        @functools.wraps(make)
        def new_make(*args: Any) -> Any:
            made = make(*args)
            owner = sys._getframe(1).f_locals.get("self")
            if isinstance(owner, library):
                self._make(owner)
            return made

        @functools.wraps(define)
        def new_define(owner: Any, schema: str, *args: Any, **kwargs: Any) -> Any:
            name = _qualified(owner.ns, schema.partition("(")[0].strip())
            frame = registrant()
            try:
                result = define(owner, schema, *args, **kwargs)
            except RuntimeError as error:
                if "multiple times" in str(error):
                    self._define_twice(name, frame, error)
                raise
            if not _is_internal(frame):
                self._define(owner, name, _place(frame))
            return result

        @functools.wraps(impl)
        def new_impl(owner: Any, op_name: Any, fn: Any, dispatch_key: str = "", **kwargs: Any) -> Any:
            name = _qualified(owner.ns, op_name if isinstance(op_name, str) else getattr(op_name, "_name", ""))
            kernel = name, dispatch_key or owner.dispatch_key or "CompositeImplicitAutograd"
            frame = registrant()
            try:
                result = impl(owner, op_name, fn, dispatch_key, **kwargs)
            except RuntimeError as error:
                if "already a kernel" in str(error) and kernel in self._kernels:
                    error.add_note(
                        f"The {_part(kernel)} is registered at {self._kernels[kernel]}, and again at {_place(frame)}"
                    )
                raise
            if not _is_internal(frame):
                self._implement(owner, kernel, _place(frame))
            return result

        @functools.wraps(destroy)
        def new_destroy(owner: Any) -> None:
            made = self._libraries.pop(owner, None)
            if made is not None:
                if sys._getframe(1).f_code.co_filename.startswith(_torch("_library", "custom_ops")):
                    self._replaced.update(made.definitions)
                self._forget(made)
                made.definitions.clear()
                made.kernels.clear()
            destroy(owner)

        for name, kinds in _DECORATORS.items():
            self._patch(_custom_op_def(), name, self._watching(name, kinds))
        self._patch(torch._C, "_dispatch_library", new_make)
        self._patch(library, "define", new_define)
        self._patch(library, "impl", new_impl)
        self._patch(library, "_destroy", new_destroy)

    def _watching(self, name: str, kinds: Callable[[Any], list[str]]) -> Any:
        """A method of ``CustomOpDef`` that is watched."""
        method = getattr(_custom_op_def(), name)

        @functools.wraps(method)
        def new_method(op: Any, *args: Any, **kwargs: Any) -> Any:
            frame = registrant()
            result = method(op, *args, **kwargs)
            if not _is_internal(frame):
                for kind in kinds(args[0] if args else None):
                    self._implement(op._lib, (op._qualname, kind), _place(frame))
            return result

        return new_method

    def stop(self) -> None:
        """Leave torch as it was. `reports` stays."""
        for finalizer in self._finalizers:
            finalizer.detach()
        self._finalizers.clear()
        for target, name, original in reversed(self._patched):
            setattr(target, name, original)
        self._patched.clear()

    def _patch(self, target: Any, name: str, value: Any) -> None:
        self._patched.append((target, name, vars(target)[name]))
        setattr(target, name, value)

    def _make(self, library: Any) -> None:
        frame = registrant()
        if not _is_internal(frame):
            self._libraries[library] = _Made(_place(frame), _importing(frame))

    def _made_by(self, library: Any) -> _Made | None:
        """The record of a library; None for one that was made before the watch began, or by PyTorch."""
        made = self._libraries.get(library)
        if made is not None and not made.watched:
            # not before torch has its own finalizer: the last one is called first, and torch's empties torch.ops
            finalizer = weakref.finalize(library, self._collect, made)
            finalizer.atexit = False
            self._finalizers.append(finalizer)
            made.watched = True
        return made

    def _define(self, library: Any, name: str, place: Place) -> None:
        self._gone.pop(name.partition(".")[0], None)
        first = self._replaced.pop(name, None)
        if first is not None and first != place:
            self._report(
                "redefined",
                (name,),
                (first, place),
                f"{name} is defined at {first}, and again at {place}: torch has dropped the first op and its kernels "
                f"without a word. Give one of them another name",
            )
        self._definitions[name] = place
        if (made := self._made_by(library)) is not None:
            made.definitions[name] = place

    def _define_twice(self, name: str, frame: FrameType, error: RuntimeError) -> None:
        first, place = self._definitions.get(name), _place(frame)
        if first is None:  # before the watch began: torch's own message has the line
            return
        message = f"{name} is defined at {first}, and again at {place}. Give one of them another name"
        error.add_note(message)
        if first.file != place.file:  # the error may be swallowed, and one library then runs with the other's op
            self._report("defined twice", (name,), (first, place), message)

    def _implement(self, library: Any, kernel: tuple[str, str], place: Place) -> None:
        name, _ = kernel
        first = self._kernels.get(kernel)
        if first is not None and first != place:
            self._report(
                "overridden",
                (name,),
                (first, place),
                f"the {_part(kernel)} is registered at {first}, and again at {place}: the one that comes last wins, so "
                f"it depends on the order of imports. Register one for each op and device or dispatch key",
            )
        self._kernels[kernel] = place
        if (made := self._made_by(library)) is not None:
            made.kernels[kernel] = place

    def _forget(self, made: _Made) -> None:
        """A library's registrations are in force no longer."""
        for name, place in made.definitions.items():
            if self._definitions.get(name) == place:
                del self._definitions[name]
        for kernel, place in made.kernels.items():
            if self._kernels.get(kernel) == place:
                del self._kernels[kernel]

    def _collect(self, made: _Made) -> None:
        """A library was garbage-collected. That may be meant where it was made in a function, such as a test."""
        self._forget(made)
        if not made.definitions and not made.kernels:
            return
        if made.definitions and not self._gone:
            self._explain()
        self._gone |= {name.partition(".")[0]: made for name in made.definitions}
        if _still_there(made.module) or (made.definitions and not any(map(_looked_up, made.definitions))):
            ops = tuple(made.definitions or dict.fromkeys(name for name, _ in made.kernels))
            self._report("collected", ops, (made.place,), _lost(made))

    def _explain(self) -> None:
        """From now on, who looks up an op that is gone is told why."""
        import torch

        namespace: Any = torch._ops._OpNamespace
        look_up = namespace.__getattr__

        @functools.wraps(look_up)
        def new_look_up(ops: Any, name: str) -> Any:
            try:
                return look_up(ops, name)
            except AttributeError as error:
                made = self._gone.get(f"{ops.__dict__.get('name')}::{name}")
                if made is not None:
                    error.add_note(_lost(made))
                raise

        if not any(target is namespace for target, _, _ in self._patched):
            self._patch(namespace, "__getattr__", new_look_up)

    def _report(self, kind: str, ops: tuple[str, ...], places: tuple[Place, ...], message: str) -> None:
        self.reports.append(Conflict(kind, ops, tuple(map(str, places)), message))
        warnings.warn_explicit(message, RegistrationWarning, places[-1].file, places[-1].line)


def registrant() -> FrameType:
    """The frame of whoever registers: the first below torch's registration API and this package's watch on it."""
    api = (functools.__file__, *map(_torch, ("library.py", "_library", "_custom_op")))
    watch = (__file__, os.path.join(os.path.dirname(__file__), "guarding.py"))
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(api + watch):
        frame = frame.f_back
    return frame


def is_torch(frame: FrameType) -> bool:
    """Whether it is PyTorch's own code."""
    return _package(frame) == "torch"


def _is_internal(frame: FrameType) -> bool:
    return _package(frame) in ("torch", "opcheck_suite")


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _place(frame: FrameType) -> Place:
    return Place(frame.f_code.co_filename, frame.f_lineno)


def _custom_op_def() -> Any:
    import torch

    library: Any = torch.library
    return library.CustomOpDef


def _torch(*parts: str) -> str:
    import torch

    return os.path.join(os.path.dirname(torch.__file__), *parts)


def _qualified(namespace: str, name: str) -> str:
    return name if "::" in name else f"{namespace}::{name}"


def _importing(frame: FrameType | None) -> weakref.ref[ModuleType] | None:
    """The module that is being imported, or None in code that is run otherwise, such as a test or a script."""
    while frame is not None:
        inside = frame.f_globals
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename == inside.get("__file__"):
            module = sys.modules.get(inside["__name__"])
            return weakref.ref(module) if module is not None and inside["__name__"] != "__main__" else None
        frame = frame.f_back
    return None


def _still_there(module: weakref.ref[ModuleType] | None) -> bool:
    """Whether a module can still be used. It takes its libraries with it where it is unloaded, or cannot be loaded."""
    found = module() if module is not None else None
    return found is not None and sys.modules.get(found.__name__) is found


def _looked_up(name: str) -> bool:
    """Whether someone has asked torch.ops for an op: it keeps what it was asked for."""
    import torch

    namespace, _, rest = name.partition("::")
    known = vars(torch.ops).get(namespace)
    return known is not None and rest.partition(".")[0] in vars(known)


def _part(kernel: tuple[str, str]) -> str:
    """What is registered under an op and a dispatch key, or under an op and words of ours."""
    name, what = kernel
    return f"kernel of {name} for {what}" if what.isidentifier() else f"{what} of {name}"


def _lost(made: _Made) -> str:
    if made.definitions:
        lost = f"and its ops are gone: {', '.join(made.definitions)}"
    else:
        lost = f"and this is gone: {', '.join(map(_part, made.kernels))}"
    return (
        f"the Library made at {made.place} was garbage-collected, {lost}. Keep it in a variable of its own at the top "
        f"level of a module"
    )
