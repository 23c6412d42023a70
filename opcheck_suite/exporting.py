"""Calls of an op as export checks make them: exported programs, what is in them, and what they compute.

The program that is exported calls the op once. Its inputs are the tensors among the arguments, the rest is written into
it, and it returns the outputs and their sizes: a size that the fake kernel made a constant shows at other sizes.

Only public names of torch are used: ``torch.export``, and ``torch._inductor.aoti_compile_and_package`` and
``aoti_load_package``, which torch documents under these names.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import logging
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
import torch.export

from opcheck_suite import compilepairs, compiling, fakes, ops, surroundings
from opcheck_suite.context import Context, describe_error
from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case

#: Output dtypes that are added to themselves where the program is to have a step of the compiler's own beside the op.
_ADDED = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.int64)

#: Seconds between two signs of life while a C++ compiler works, and how many of them are given.
_BEAT, _BEATS = 5.0, 120


@dataclasses.dataclass(frozen=True)
class _Tensor:
    """Where an input of the program goes among the arguments of the op."""

    name: str


@dataclasses.dataclass(frozen=True)
class _Size:
    """An integer argument that the program takes from a tensor's size."""

    name: str
    dim: int


class _Caller(torch.nn.Module):
    """The program: one call of the op."""

    def __init__(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, neighbour: bool) -> None:
        super().__init__()
        self.op = op
        self.args = args
        self.kwargs = kwargs
        self.neighbour = neighbour

    def forward(self, inputs: dict[str, torch.Tensor]) -> Any:
        args = [_fill(value, inputs) for value in self.args]
        kwargs = {name: _fill(value, inputs) for name, value in self.kwargs.items()}
        out = self.op(*args, **kwargs)
        found = _tensors(tensors.listed(out))
        sizes = [list(t.shape) for t in found]
        return out, sizes, [t + t for t in found if t.dtype in _ADDED] if self.neighbour else []


def _fill(value: Any, inputs: dict[str, torch.Tensor]) -> Any:
    if isinstance(value, _Tensor):
        return inputs[value.name]
    if isinstance(value, _Size):
        return inputs[value.name].shape[value.dim]
    if isinstance(value, tensors.SEQUENCES):
        return [_fill(item, inputs) for item in value]
    return value


def _tensors(values: list[Any]) -> list[torch.Tensor]:
    """The tensors among outputs and in lists of them, in code that Dynamo can trace."""
    found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, tensors.SEQUENCES):
            found.extend([item for item in value if isinstance(item, torch.Tensor)])
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """An exported program, or why there is none."""

    caller: _Caller
    exported: Any = None
    """The ``torch.export.ExportedProgram``, or None."""
    error: BaseException | None = None

    @property
    def text(self) -> str:
        """What went wrong, on one line."""
        return "" if self.error is None else describe_error(self.error)

    @functools.cached_property
    def call(self) -> Callable[..., Any]:
        """The program as a function of the tensors by name, for `observe`."""
        with settings():
            return self.exported.module()  # type: ignore[no-any-return]

    def targets(self) -> list[str]:
        """What the program calls, ops as ``ns::name[.overload]``.

        An op that writes is there as an argument of the higher-order operator that functionalization puts in its place.
        """
        found = []
        for node in self.exported.graph.nodes:
            if node.op == "call_function":
                inner = [arg for arg in node.args if isinstance(arg, torch._ops.OpOverload)]
                found += [_name(target) for target in inner or [node.target]]
        return found

    def fixed(self, case: Case) -> list[tuple[str, int]]:
        """The sizes above one that are constants in the program although export was free to leave them open.

        As pairs of a tensor's name and a dimension.
        """
        nodes = [node for node in self.exported.graph.nodes if node.op == "placeholder"]
        found = []
        for (name, tensor), node in zip(case.leaves(), nodes, strict=True):
            seen = node.meta["val"].shape
            # A symbol that was found to have one value is still a SymInt, which reads as the value.
            found += [(name, dim) for dim, size in enumerate(tensor.shape) if size > 1 and str(seen[dim]) == str(size)]
        return found

    def takes(self, case: Case) -> bool:
        """Whether a case differs from the exported one only in the program's inputs, so that the program can be run."""
        inputs = dict(case.leaves())
        try:
            made = [_fill(value, inputs) for value in self.caller.args]
            made += [_fill(value, inputs) for value in self.caller.kwargs.values()]
        except KeyError:
            return False
        return all(map(_same, made, [*case.args, *case.kwargs.values()]))


def _name(target: Any) -> str:
    if isinstance(target, torch._ops.OpOverload):
        return ops.canonical(target)
    return getattr(target, "__name__", str(target))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor)
    return type(a) is type(b) and (a == b or a != a)


def ready(ctx: Context, case: Case) -> None:
    """End the check where export says nothing new: the op or its fake kernel fails on the case."""
    compilepairs.ready(ctx, case)
    if not all(tensors.strided(t) for _, t in case.leaves()):
        ctx.skip("export of sparse, quantized and nested tensors is not checked")
    for out in ctx.require(case).outputs:
        if not isinstance(out, torch.Tensor | int | float | list | None):
            ctx.skip(f"torch.export has no place for a {type(out).__name__} that an op returns")


def settled(ctx: Context, case: Case) -> Program:
    """The program, for checks of what is made of it.

    Ends the check where the program itself is at fault already.
    """
    ready(ctx, case)
    found = program(ctx, case)
    if found.error is not None:
        ctx.not_exercised("the op cannot be exported with open sizes: see export.program and export.dynamic")
    if difference(ctx, case, observe(ctx, case, found.call)):
        ctx.not_exercised("the exported program differs from the op: see export.program")
    return found


def program(ctx: Context, case: Case, *, strict: bool = False, dynamic: bool = True, tied: bool = False) -> Program:
    """Export a call of the op on a case, once for all checks.

    With ``dynamic``, every size above one may stay open (``Dim.AUTO``), and export decides. With ``tied``, integer
    arguments that equal a size are taken from it, where the schema says ``SymInt``.
    """

    def make() -> Program:
        caller = _Caller(ctx.info.op, *_template(case, _places(case) if tied else {}), neighbour=False)
        inputs = _inputs(case)
        shapes: Any = (_open_sizes(inputs),) if dynamic and inputs else None
        with settings(), ctx.seeded():
            try:
                found = torch.export.export(caller, (inputs,), dynamic_shapes=shapes, strict=strict)
            except (KeyboardInterrupt, MemoryError):
                raise
            except BaseException as error:
                return Program(caller, error=error)
        return Program(caller, found)

    return ctx.memo(("program", case.key, strict, dynamic, tied), make)


@contextlib.contextmanager
def settings() -> Iterator[None]:
    """The compiler's settings for the time of an export (`compiling.settings`), with what Dynamo keeps thrown away."""
    loggers = [logging.getLogger(name) for name in ("torch.export", "torch._export")]
    levels = [logger.level for logger in loggers]
    with compiling.fresh():
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def _inputs(case: Case) -> dict[str, torch.Tensor]:
    return dict(case.leaves(case.inputs()))


def _open_sizes(inputs: dict[str, torch.Tensor]) -> dict[str, Any]:
    """What ``dynamic_shapes`` says of inputs: export decides of every size above one."""
    return {n: {d: torch.export.Dim.AUTO for d, size in enumerate(t.shape) if size > 1} for n, t in inputs.items()}


def _template(case: Case, places: dict[int, _Size]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a case, with a `_Tensor` for every tensor, and a `_Size` for integers that have a place."""
    changes: dict[str, Any] = {name: _Tensor(name) for name, _ in case.leaves()}
    for name in tied_arguments(case) if places else ():
        value = case.bound()[name]
        changes[name] = [places.get(v, v) for v in value] if isinstance(value, list | tuple) else places[value]
    made = case.replace(changes, variant="", group="")
    return made.args, made.kwargs


def _places(case: Case) -> dict[int, _Size]:
    """Every size above one in a case, and where it is first met."""
    found: dict[int, _Size] = {}
    for name, tensor in case.leaves():
        for dim, size in enumerate(tensor.shape):
            if size > 1:
                found.setdefault(size, _Size(name, dim))
    return found


def tied_arguments(case: Case) -> list[str]:
    """The arguments, integers or lists of them, that equal a tensor's size and that the schema lets be symbolic."""
    sizes = _places(case)
    symbolic = fakes.declared_sizes(case.info)
    found = []
    for name, value in case.bound().items():
        items = value if isinstance(value, list | tuple) else [value]
        if name in symbolic and any(type(item) is int and item in sizes for item in items):
            found.append(name)
    return found


def other_sizes(ctx: Context, case: Case, program: Program) -> list[Case]:
    """The case at other sizes, where a program can be held against the op.

    The op and its fake kernel accept them, the program has what differs as input, there are as many outputs, and the
    values do not depend on what was in memory, which is for ``values.unwritten`` to report, nor on what lies around
    the arguments.
    """
    count = len(_tensors(ctx.require(case).outputs))

    def usable(made: Case) -> bool:
        run = ctx.attempt(made) if program.takes(made) else None
        if run is None or ctx.fake(made).error is not None or len(_tensors(run.outputs)) != count:
            return False
        if surroundings.reads_beyond(ctx, made):
            return False
        poisoned = ctx.poisoned(made) if ctx.deterministic else run
        return poisoned.error is not None or ctx.compare(poisoned.results(), run.results()) is None

    return [made for made in ctx.variants(case, "resized") if usable(made)]


def decomposed(ctx: Context, found: Program) -> Program:
    """A program after ``run_decompositions()``."""
    with settings(), ctx.seeded():
        try:
            return Program(found.caller, found.exported.run_decompositions())
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:
            return Program(found.caller, error=error)


class Unsaveable(Exception):
    """``torch.export.save`` cannot write a program, or ``torch.export.load`` not read it. The text says why.

    Both stop at types of arguments and outputs that torch has no form for in a file.
    """


def loaded(found: Program) -> Program:
    """A program, saved and loaded again. Raises `Unsaveable`."""
    file, step = io.BytesIO(), "torch.export.save"
    with settings():
        try:
            torch.export.save(found.exported, file)
            file.seek(0)
            step = "torch.export.load"
            return Program(found.caller, torch.export.load(file))
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:
            raise Unsaveable(f"{step} raised {_core(error)}") from error


def _core(error: BaseException) -> str:
    """The last cause in an exception's text, which in torch's serializer holds the tracebacks of earlier ones."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "Error: " in line), lines[0] if lines else "")[:200]


class NoCompiler(Exception):
    """Torch finds no C++ compiler on the machine. The text says what it looked for."""


class NotPackaged(Exception):
    """A program cannot be compiled to a package, or not loaded from it. The text is what torch raised.

    Mostly it has no form there for a type: scalars that are complex or bool, dicts, numbers that an op returns.
    """


class _Several(torch.nn.Module):
    """Several programs as one: a package takes a compiler so long that one must do for all samples."""

    def __init__(self, callers: list[_Caller]) -> None:
        super().__init__()
        self.callers = torch.nn.ModuleList(callers)

    def forward(self, inputs: list[dict[str, torch.Tensor]]) -> Any:
        return [caller(mine) for caller, mine in zip(self.callers, inputs, strict=True)]


@contextlib.contextmanager
def packaged(ctx: Context, cases: list[Case]) -> Iterator[list[Callable[..., Any]]]:
    """Compile calls of the op on some cases ahead of time to one package, and load it for the time of the ``with``.

    Yields a function of tensors by name for each case, for `observe`. Sizes above one are open, and outputs are also
    added to themselves, so that there is code of the compiler's own beside the op. Raises `NoCompiler`, `NotPackaged`.
    """
    from torch._inductor import aoti_compile_and_package, aoti_load_package, cpp_builder

    try:
        cpp_builder.get_cpp_compiler()
    except Exception as error:
        raise NoCompiler(describe_error(error)) from error
    callers = [_Caller(ctx.info.op, *_template(case, {}), neighbour=True) for case in cases]
    inputs = [_inputs(case) for case in cases]
    with tempfile.TemporaryDirectory(prefix="opcheck-package-") as folder:
        # What is compiled on the way is of no use to anyone later; torch's compiled headers, which are, lie elsewhere.
        kept_out = mock.patch.dict(os.environ, {"TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "cache")})
        try:
            with settings(), kept_out, ctx.seeded(), _signs_of_life(ctx, cases[0]):
                shapes = ([_open_sizes(mine) for mine in inputs],)
                found = torch.export.export(_Several(callers), (inputs,), dynamic_shapes=shapes, strict=False)
                path = aoti_compile_and_package(found, package_path=os.path.join(folder, "op.pt2"))
                package = aoti_load_package(path)
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:
            raise NotPackaged(describe_error(error)) from error

        def part(number: int) -> Callable[..., Any]:
            return lambda mine: package([*inputs[:number], mine, *inputs[number + 1 :]])[number]

        yield [part(number) for number in range(len(cases))]


@contextlib.contextmanager
def _signs_of_life(ctx: Context, case: Case) -> Iterator[None]:
    """Announce the case again and again: a C++ compiler is silent for longer than an op may be."""
    done = threading.Event()

    def beat() -> None:
        for _ in range(_BEATS):
            if done.wait(_BEAT):
                return
            ctx.announce("check", case)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@dataclasses.dataclass(frozen=True, eq=False)
class Seen:
    """What a call of a program showed."""

    results: list[Any]
    """The op's outputs, then mutated arguments, as `Run.results` has them."""
    sizes: list[list[int]]
    """The sizes of output tensors as the program has them."""
    doubled: list[torch.Tensor]
    error: BaseException | None = None


def observe(ctx: Context, case: Case, call: Callable[..., Any]) -> Seen:
    """Run a program on fresh copies of a case's tensors."""
    inputs = _inputs(case)
    try:
        with ctx.seeded():
            out, sizes, doubled = call(inputs)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        return Seen([], [], [], error)
    ctx.synchronize()
    results = case.results(out, inputs.items())
    return Seen(results, [[int(size) for size in one] for one in sizes], doubled)  # a package has tensors for them


def difference(ctx: Context, case: Case, seen: Seen) -> str | None:
    """How what a program showed differs from what eager does, in words; None when it does not.

    Of random values only dtype and shape are compared.
    """
    if seen.error is not None:
        return f"it raises {describe_error(seen.error)}"
    run = ctx.require(case)
    results, expected = seen.results, run.results()
    if not ctx.deterministic:
        results, expected = (tensors.map_tensors(torch.zeros_like, values) for values in (results, expected))
    if text := ctx.compare(results, expected):
        return text
    outputs = _tensors(run.outputs)
    for number, (said, output) in enumerate(zip(seen.sizes, outputs, strict=True)):
        if list(said) != list(output.shape):
            name = f"output {number}" if len(outputs) > 1 else "the output"
            return f"{name} has shape {list(output.shape)}, and the program computes with {list(said)}"
    if ctx.deterministic and seen.doubled:
        expected = [t + t for t in outputs if t.dtype in _ADDED]
        return ctx.compare(seen.doubled, expected, names="the sum of the output with itself, output")
    return None
