"""What compiling a function under a strategy comes to, measured; see `functions`."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
import torch._dynamo

from opcheck_suite import compiling
from reference_ops.strategies.functions import STRATEGIES, Trouble, Way, log


@dataclasses.dataclass(frozen=True)
class Row:
    """One function under one strategy."""

    strategy: str
    graphs: int = 0
    breaks: int = 0
    left: int = 0
    """Functions that run in eager as a whole."""
    recompiles: int = 0
    equal: str = ""
    """``yes``, or how the results differ from those of the plain function in eager."""
    effects: str = ""
    """When what it prints and logs appears, or empty where it does neither."""
    kernels: int = 0
    """Kernels that Inductor would run in a call of each graph: generated ones and calls of operators."""
    export: str = ""
    no_sense: str = ""

    @property
    def whole(self) -> bool:
        """Whether it is one graph without a break, with the results of the plain function."""
        return not self.no_sense and (self.graphs, self.breaks, self.left, self.equal) == (1, 0, 0, "yes")


def measure(trouble: Trouble, strategy: str) -> Row:
    """Compile, call with all inputs, compare with eager, and export."""
    way = trouble.ways[strategy]
    if way.no_sense or way.fn is None:
        return Row(strategy, no_sense=way.no_sense)
    fn = way.fn
    expected = [_heard(trouble.plain, args) for args in trouble.inputs]
    counted = _Kernels()
    with warnings.catch_warnings(), _settings(way):
        warnings.simplefilter("ignore")
        trace = compiling.trace(
            fn,
            backend=counted,
            run=lambda compiled: [_heard(compiled, args) for args in trouble.inputs],
            capture=False,
        )
        with compiling.settings(capture=False):
            exported = _export(fn, trouble)
    return Row(
        strategy,
        graphs=len(trace.graphs),
        breaks=len(trace.breaks),
        left=trace.skipped,
        recompiles=len(trace.recompiles),
        equal=_raised(trace.error) if trace.error is not None else _equal(trace.out, expected),
        effects=_effects(trace.out, expected) if trouble.effects and trace.error is None else "",
        kernels=counted.kernels if trace.error is None else 0,
        export=exported,
    )


@contextlib.contextmanager
def _settings(way: Way) -> Iterator[None]:
    with torch._dynamo.config.patch(**way.settings) if way.settings else contextlib.nullcontext():
        yield


def _heard(fn: Callable[..., Any], args: tuple[Any, ...]) -> tuple[torch.Tensor, tuple[bool, bool]]:
    """Result of a call, and whether it printed and whether it logged."""
    printed, logged = io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(logged)
    log.addHandler(handler)
    log.propagate = False
    try:
        with contextlib.redirect_stdout(printed):
            out = fn(*(a.clone() if isinstance(a, torch.Tensor) else a for a in args))
    finally:
        log.removeHandler(handler)
        log.propagate = True
    return out, (bool(printed.getvalue()), bool(logged.getvalue()))


def _equal(found: Any, expected: Any) -> str:
    wrong = 0
    for (out, _), (right, _) in zip(found, expected, strict=True):
        try:
            torch.testing.assert_close(out, right)
        except AssertionError:
            wrong += 1
    return f"no: wrong in {wrong} of {len(expected)} calls" if wrong else "yes"


def _effects(found: Any, expected: Any) -> str:
    said = []
    for number, name in enumerate(("prints", "logs")):
        heard = [e[number] for _, e in found]
        wanted = [e[number] for _, e in expected]
        when = "each call" if heard == wanted else "never" if not any(heard) else "first call only"
        said.append((name, when))
    if len({when for _, when in said}) == 1:
        return said[0][1]
    return ", ".join(f"{name} {when}" for name, when in said)


def _raised(error: BaseException) -> str:
    cause = error
    while isinstance(cause, torch._dynamo.exc.BackendCompilerFailed) and cause.__cause__ is not None:
        cause = cause.__cause__
    text = re.sub(r"\s+", " ", f"{type(cause).__name__}")
    return f"raises {text}"


def _export(fn: Callable[..., Any], trouble: Trouble) -> str:
    class Exported(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return fn(*args)

    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            program = torch.export.export(Exported(), trouble.inputs[0], strict=False).module()
            found = [_heard(program, args) for args in trouble.inputs]
    except Exception as error:
        return f"raises {type(error).__name__}"
    return _equal(found, [_heard(trouble.plain, args) for args in trouble.inputs])


class _Kernels:
    """A backend that counts what Inductor would run, does not compile it, and runs the graph as AOTAutograd has it."""

    def __init__(self) -> None:
        self.kernels = 0

    def __call__(self, module: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        from torch._inductor import compile_fx, metrics
        from torch._inductor.graph import GraphLowering

        def count(lowering: Any) -> Any:
            code = lowering.codegen()[0]
            text = getattr(code, "value", code)
            # what is not generated is called by name: kernels of ATen, and operators
            self.kernels += metrics.generated_kernel_count
            self.kernels += len(re.findall(r"^\s.*(?:extern_kernels\.|torch\.ops\.)[\w.]+\(", text, flags=re.MULTILINE))
            raise _Counted

        runnable = torch._dynamo.lookup_backend("aot_eager")(module, inputs)
        metrics.reset()
        try:
            with (
                mock.patch.object(GraphLowering, "compile_to_module", count),
                torch._inductor.config.patch(fx_graph_cache=False),
                torch._functorch.config.patch(enable_autograd_cache=False),
            ):
                compile_fx.compile_fx(module, inputs)
        except Exception as error:
            if not _is_counted(error):
                raise
        return runnable


class _Counted(Exception):
    """The kernels are counted: nothing is to be compiled."""


def _is_counted(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, _Counted):
        error = error.__cause__ or error.__context__ or getattr(error, "inner_exception", None)
    return error is not None


def table(trouble: Trouble) -> list[Row]:
    """A row for each strategy."""
    return [measure(trouble, strategy) for strategy in STRATEGIES]
