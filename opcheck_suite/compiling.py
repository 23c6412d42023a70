"""Run a callable under torch.compile, and say what the compiler made of it.

Private names of torch used: ``torch._dynamo`` (config, reset, lookup of backends), and in ``torch._dynamo.utils`` the
``counters`` and ``_compilation_metrics``. Breaks are read in `graphbreaks`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch

from opcheck_suite import graphbreaks
from opcheck_suite.graphbreaks import Break, Skip

#: Compilations of one trace that are looked at; torch itself remembers 64.
_METRICS = 4096


@dataclasses.dataclass(frozen=True)
class Recompile:
    """One compilation of a frame that was compiled before."""

    function: str
    guard: str
    """The guard that failed, in torch's words."""
    location: str = ""
    """``file:line`` of the function's beginning, or empty."""


@dataclasses.dataclass(frozen=True, eq=False)
class Trace:
    """What one or several calls of a compiled function came to."""

    backend: str
    graphs: tuple[tuple[str, ...], ...]
    """The graphs that Dynamo captured, each as the targets of its calls, ops as ``ns::name[.overload]``."""
    breaks: tuple[Break, ...]
    """Where the graph breaks, in order: one for each place and kind, however often Dynamo came there."""
    recompiles: tuple[Recompile, ...]
    skipped: int
    """Frames that Dynamo gave up on, so that they silently ran in eager."""
    seconds: float
    out: Any = None
    error: BaseException | None = None
    skips: tuple[Skip, ...] = ()
    """Which frames Dynamo gave up on, as far as torch says."""

    @property
    def whole(self) -> bool:
        """Whether all of the function was compiled: some graph, no break, no frame left to eager, no exception."""
        return bool(self.graphs) and not self.breaks and not self.skipped and self.error is None

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
        _warm()


def _warm() -> None:
    """Compile something, so that what Inductor makes on first use is made once: more than a second for each child.

    Not where there is another device: Dynamo would initialise it, and a child that is forked then cannot.
    """
    if torch.cuda.device_count() or torch.xpu.device_count() or torch.backends.mps.is_available():
        return
    from opcheck_suite import inductor

    with fresh(), inductor.hollow_kernels():
        torch.compile(lambda x: x.mT.contiguous(), backend="inductor")(torch.zeros(2, 3))


_LOGGERS = ("torch._dynamo", "torch._guards", "torch._inductor", "torch._functorch", "torch.fx")


@contextlib.contextmanager
def settings(*, capture: bool = True) -> Iterator[None]:
    """Settings of the compiler that verdicts must not depend on: the same whatever ``$CI`` says, logs off.

    With ``capture``, ops whose output shape depends on data are captured; without, that is left as the process has it.
    """
    import logging

    import torch._dynamo.config
    import torch._functorch.config
    import torch._inductor.config

    functorch: dict[str, Any] = {
        "error_on_custom_op_aliasing": True,
        "check_custom_op_aliasing": True,
        # What torch keeps on disk is found again by the graph and the names in it: after an edit of a fake kernel the
        # program of the old one would be run. Kernels in C++ are kept by their source and are not concerned.
        "enable_autograd_cache": False,
    }
    known = {k: v for k, v in functorch.items() if hasattr(torch._functorch.config, k)}
    dynamo: dict[str, Any] = {"suppress_errors": False, "disable": False}
    if capture:
        # An op whose output shape depends on data breaks the graph by default; whether it can be captured at all is
        # what checks look at.
        dynamo |= {
            "capture_dynamic_output_shape_ops": True,
            # As without settings of the user: they come from the environment.
            "capture_scalar_outputs": False,
            "assume_static_by_default": True,
            "automatic_dynamic_shapes": True,
            "specialize_float": False,
            # No profile of an earlier run decides which sizes are dynamic; every recompilation of a sweep is one.
            "automatic_dynamic_local_pgo": False,
            "automatic_dynamic_remote_pgo": False,
            "recompile_limit": 64,
        }
    dynamo = {k: v for k, v in dynamo.items() if hasattr(torch._dynamo.config, k)}
    import torch._dynamo.guards

    # Only measures, for a log line, and flushes the processor's caches to do so: a third of the time of a compilation.
    unmeasured = (
        mock.patch.object(torch._dynamo.guards, "profile_guard_manager", return_value=0.0)
        if hasattr(torch._dynamo.guards, "profile_guard_manager")
        else contextlib.nullcontext()
    )
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    with (
        torch._functorch.config.patch(**known) if known else contextlib.nullcontext(),
        torch._dynamo.config.patch(**dynamo),
        torch._inductor.config.patch(compile_threads=1, fx_graph_cache=False, size_asserts=True),
        torch.compiler.set_stance("default"),  # another stance runs all or some of it in eager
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


@contextlib.contextmanager
def fresh(*, capture: bool = True) -> Iterator[None]:
    """`settings`, with what Dynamo keeps thrown away before and after."""
    import torch._dynamo

    torch._dynamo.reset()
    try:
        with settings(capture=capture):
            yield
    finally:
        torch._dynamo.reset()


def trace(
    fn: Callable[..., Any],
    *args: Any,
    backend: str | Callable[..., Any] = "eager",
    dynamic: bool | None = None,
    fullgraph: bool = False,
    kwargs: dict[str, Any] | None = None,
    more_calls: tuple[tuple[Any, ...], ...] = (),
    run: Callable[[Callable[..., Any]], Any] | None = None,
    capture: bool = True,
) -> Trace:
    """Compile ``fn``, call it on ``args``, then on each of ``more_calls``, and return what happened.

    ``backend`` is a backend's name, or one itself: a function of a graph and example inputs that returns what runs it.
    ``run`` replaces the calls: it is given the compiled function, and what it returns is the trace's ``out``. Without
    ``capture``, whether ops with data-dependent output shapes are captured is as the process has it set.

    Dynamo's caches are cleared before and after, and its settings and counters put back. An exception that compiling or
    running raises is in the trace's ``error``.
    """
    import torch._dynamo
    from torch._dynamo import utils

    graphs: list[tuple[str, ...]] = []
    recorder = graphbreaks.Recorder()

    def capture_graph(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        graphs.append(
            tuple(_target(node) for node in module.graph.nodes if node.op in ("call_function", "call_method"))
        )
        reason = getattr(module, "compile_subgraph_reason", None)
        if reason is not None and reason.graph_break and not recorder.hooked:
            recorder.add(reason.reason, reason.user_stack)
        return torch._dynamo.lookup_backend(backend)(module, inputs)

    name = backend if isinstance(backend, str) else getattr(backend, "__name__", type(backend).__name__)
    capture_graph.__name__ = name  # what torch calls the backend in its messages
    torch._dynamo.reset()
    out, error = None, None
    with _own_counts() as counts, settings(capture=capture), recorder.recording():
        start = time.perf_counter()
        try:
            compiled = torch.compile(fn, backend=capture_graph, dynamic=dynamic, fullgraph=fullgraph)
            out = run(compiled) if run is not None else compiled(*args, **(kwargs or {}))
            for more in more_calls:
                out = compiled(*more)
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as raised:
            error = raised
        finally:
            seconds = time.perf_counter() - start
            torch._dynamo.reset()
        metrics = utils.get_compilation_metrics()
        skipped = counts["frames"]["total"] - counts["frames"]["ok"]
        return Trace(
            backend=name,
            graphs=tuple(graphs),
            breaks=recorder.breaks(counts["graph_break"], counts["unimplemented"] if skipped else ()),
            recompiles=_recompiles(metrics),
            skipped=skipped,
            seconds=seconds,
            out=out,
            error=error,
            skips=graphbreaks.skips(metrics),
        )


@contextlib.contextmanager
def _own_counts() -> Iterator[Any]:
    """Dynamo's counters and metrics, empty; those of before are back afterwards, for whoever reads them."""
    from torch._dynamo import utils

    kept = {name: counter.copy() for name, counter in utils.counters.items()}
    metrics = getattr(utils, "_compilation_metrics", None)
    utils.counters.clear()
    if metrics is not None:
        utils._compilation_metrics = type(metrics)(maxlen=_METRICS)
    else:
        utils.clear_compilation_metrics()
    try:
        yield utils.counters
    finally:
        utils.counters.clear()
        utils.counters.update(kept)
        if metrics is not None:
            utils._compilation_metrics = metrics


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


def _recompiles(metrics: Any) -> tuple[Recompile, ...]:
    return tuple(
        Recompile(str(m.co_name), str(m.recompile_reason).strip(), graphbreaks.place(m))
        for m in metrics
        if getattr(m, "recompile_reason", None)
    )
