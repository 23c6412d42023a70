"""Run a callable under torch.compile, and say what the compiler made of it.

Private names of torch used, all in this module: ``torch._dynamo`` (config, reset, lookup of backends), and in
``torch._dynamo.utils`` the ``counters`` and compilation metrics.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch


@dataclasses.dataclass(frozen=True)
class Break:
    """One graph break."""

    reason: str
    """What Dynamo could not trace, on one line."""
    location: str
    """``file:line`` of the user's code, or empty."""
    hint: str
    """What torch proposes, or empty."""


@dataclasses.dataclass(frozen=True)
class Recompile:
    """One compilation of a frame that was compiled before."""

    function: str
    guard: str
    """The guard that failed, in torch's words."""


@dataclasses.dataclass(frozen=True, eq=False)
class Trace:
    """What one or several calls of a compiled function came to."""

    backend: str
    graphs: tuple[tuple[str, ...], ...]
    """The graphs that Dynamo captured, each as the targets of its calls, ops as ``ns::name[.overload]``."""
    breaks: tuple[Break, ...]
    recompiles: tuple[Recompile, ...]
    skipped: int
    """Frames that Dynamo gave up on, so that they silently ran in eager."""
    seconds: float
    out: Any = None
    error: BaseException | None = None

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets of all graphs."""
        return tuple(t for graph in self.graphs for t in graph)


def beyond(tensor: torch.Tensor) -> str:
    """The word for tensors of a kind that torch.compile does not take, or an empty string."""
    if tensor.layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc):
        return "sparse"
    if tensor.is_quantized:
        return "quantized"
    return "nested" if tensor.is_nested and tensor.layout == torch.strided else ""


def prepare(*, compiler: bool = True) -> None:
    """Import the compiler once, in the process that children are forked from.

    Without ``compiler`` only the part that any call of a Python op imports, which is half of the time.
    """
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # a pool of compiler processes does not survive a fork
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # parts of torch use what other parts deprecate
        import torch._dynamo

        if not compiler:
            return
        import torch._dynamo.backends.debugging
        import torch._functorch.aot_autograd
        import torch._inductor.compile_fx
        import torch._subclasses.schema_check_mode
        import torch.export
        import torch.export._trace
        import torch.utils.cpp_extension  # noqa: F401
        from torch._inductor import codecache, cpu_vec_isa

        codecache.torch_key()
        cpu_vec_isa.pick_vec_isa()


@contextlib.contextmanager
def settings() -> Iterator[None]:
    """Settings of the compiler that verdicts must not depend on: the same whatever ``$CI`` says, logs off."""
    import logging

    import torch._dynamo.config
    import torch._functorch.config
    import torch._inductor.config

    functorch: dict[str, Any] = {"error_on_custom_op_aliasing": True, "check_custom_op_aliasing": True}
    known = {k: v for k, v in functorch.items() if hasattr(torch._functorch.config, k)}
    dynamo: dict[str, Any] = {
        # An op whose output shape depends on data breaks the graph by default; whether it can be captured at all is
        # what is looked at here.
        "capture_dynamic_output_shape_ops": True,
        "suppress_errors": False,
        "disable": False,
    }
    import torch._dynamo.guards

    # Only measures, for a log line, and flushes the processor's caches to do so: a third of the time of a compilation.
    unmeasured = (
        mock.patch.object(torch._dynamo.guards, "profile_guard_manager", return_value=0.0)
        if hasattr(torch._dynamo.guards, "profile_guard_manager")
        else contextlib.nullcontext()
    )
    loggers = [logging.getLogger(name) for name in ("torch._dynamo", "torch._inductor", "torch._functorch", "torch.fx")]
    levels = [logger.level for logger in loggers]
    with (
        torch._functorch.config.patch(**known) if known else contextlib.nullcontext(),
        torch._dynamo.config.patch(**dynamo),
        torch._inductor.config.patch(compile_threads=1),
        unmeasured,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def trace(
    fn: Callable[..., Any],
    *args: Any,
    backend: str = "eager",
    dynamic: bool | None = None,
    fullgraph: bool = False,
    kwargs: dict[str, Any] | None = None,
    more_calls: tuple[tuple[Any, ...], ...] = (),
    run: Callable[[Callable[..., Any]], Any] | None = None,
) -> Trace:
    """Compile ``fn``, call it on ``args``, then on each of ``more_calls``, and return what happened.

    ``run`` replaces the calls: it is given the compiled function, and what it returns is the trace's ``out``.

    Dynamo's caches are cleared before and after, and its settings put back. An exception that compiling or running
    raises is in the trace's ``error``.
    """
    import torch._dynamo
    from torch._dynamo import utils

    graphs: list[tuple[str, ...]] = []
    found: list[Break] = []

    def capture(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        graphs.append(
            tuple(_target(node) for node in module.graph.nodes if node.op in ("call_function", "call_method"))
        )
        reason = getattr(module, "compile_subgraph_reason", None)
        if reason is not None and reason.graph_break:
            found.append(_break(reason.reason, reason.user_stack))
        return torch._dynamo.lookup_backend(backend)(module, inputs)

    torch._dynamo.reset()
    utils.counters.clear()
    utils.clear_compilation_metrics()
    start = time.perf_counter()
    out, error = None, None
    with settings():
        try:
            compiled = torch.compile(fn, backend=capture, dynamic=dynamic, fullgraph=fullgraph)
            out = run(compiled) if run is not None else compiled(*args, **(kwargs or {}))
            for more in more_calls:
                out = compiled(*more)
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as raised:
            error = raised
        finally:
            seconds = time.perf_counter() - start
            breaks = _all_breaks(found, utils.counters["graph_break"])
            recompiles = _recompiles(utils.get_compilation_metrics())
            frames = utils.counters["frames"]
            torch._dynamo.reset()
    return Trace(
        backend=backend,
        graphs=tuple(graphs),
        breaks=breaks,
        recompiles=recompiles,
        skipped=frames["total"] - frames["ok"],
        seconds=seconds,
        out=out,
        error=error,
    )


def recording_aot(targets: list[str]) -> Callable[..., Any]:
    """Backend ``aot_eager``, which also notes in ``targets`` what the forward graph calls.

    An op that writes is there as an argument of the higher-order operator that functionalization puts in its place.
    """
    from torch._dynamo.backends.common import aot_autograd
    from torch._dynamo.backends.debugging import boxed_nop

    def keep(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        for node in module.graph.nodes:
            if node.op == "call_function":
                inner = [arg for arg in node.args if isinstance(arg, torch._ops.OpOverload)]
                targets.extend(map(_name, inner or [node.target]))
        return boxed_nop(module, inputs)

    return aot_autograd(fw_compiler=keep, bw_compiler=boxed_nop, keep_inference_input_mutations=True)


def _target(node: torch.fx.Node) -> str:
    return _name(node.target)


def _name(target: Any) -> str:
    if isinstance(target, torch._ops.OpOverload):
        overload = target._schema.overload_name
        return f"{target._schema.name}.{overload}" if overload else str(target._schema.name)
    if isinstance(target, torch._ops.OpOverloadPacket):
        return str(target._qualified_op_name)
    if isinstance(target, str):
        return target
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', target)}"


def _break(reason: str, stack: Any) -> Break:
    frames = [f for f in stack or () if "/opcheck_suite/" not in f.filename]
    location = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return Break(_headline(reason), location, _hint(reason))


def _headline(reason: str) -> str:
    """Title and explanation of a break's text, which in torch has a line for each."""
    lines = [line.strip() for line in reason.strip().splitlines()]
    explanation = next((line.removeprefix("Explanation: ") for line in lines if line.startswith("Explanation: ")), "")
    return f"{lines[0]}: {explanation}" if explanation else lines[0]


def _hint(reason: str) -> str:
    hints = re.findall(r"^\s*Hint: (.*)$", reason, flags=re.MULTILINE)
    return next((h for h in hints if "report an issue" not in h), "")


def _all_breaks(located: list[Break], counted: Counter[str]) -> tuple[Break, ...]:
    """Breaks before a graph, which have a location, and those that only the counters know of."""
    left = Counter({_headline(reason): n for reason, n in counted.items()})
    hints = {_headline(reason): _hint(reason) for reason in counted}
    for known in located:
        left[known.reason] -= 1
    return (*located, *(Break(reason, "", hints[reason]) for reason, n in left.items() for _ in range(max(n, 0))))


def _recompiles(metrics: Any) -> tuple[Recompile, ...]:
    return tuple(
        Recompile(str(m.co_name), str(m.recompile_reason).strip())
        for m in metrics
        if getattr(m, "recompile_reason", None)
    )
