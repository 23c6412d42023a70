"""Compile a function, and say for each graph break where it is, of which kind, and what can be done about it."""

from __future__ import annotations

import dataclasses
import re
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from opcheck_suite import compiling
from opcheck_suite.breaks import remedies, skeleton, watching
from opcheck_suite.graphbreaks import Break, user_frames
from opcheck_suite.model import Sample

#: Kinds of code outside of torch, for which an operator is written unasked.
_OPERATORS = {"NumPy", "function of a C extension", "object that is not written in Python"}


class FunctionRaises(Exception):
    """The function raises without being compiled, so that nothing can be said about compiling it."""

    def __init__(self, error: BaseException) -> None:
        frames = user_frames((f.filename, f.lineno, f.name) for f in traceback.extract_tb(error.__traceback__))
        where = f" ({frames[-1].location}, in {frames[-1].function})" if frames else ""
        lines = str(error).strip().splitlines()
        super().__init__(f"{type(error).__name__}: {lines[0] if lines else 'no message'}{where}")
        self.error = error


@dataclasses.dataclass(frozen=True)
class Finding:
    """A graph break, and what is known about it."""

    graph_break: Break
    kind: remedies.Kind
    source: str
    """The statement at the place, or empty."""
    skeleton: str = ""
    """A custom operator to begin with, or empty."""


@dataclasses.dataclass(frozen=True, eq=False)
class Examination:
    """What compiling a function came to."""

    name: str
    trace: compiling.Trace
    findings: tuple[Finding, ...]
    calls: int = 1

    @property
    def ok(self) -> bool:
        """Whether the function was compiled without a graph break, and nothing of it was left to eager."""
        return self.trace.whole

    def __str__(self) -> str:
        from opcheck_suite.breaks import report

        return report.text(self)


def examine(
    fn: Callable[..., Any],
    calls: Sequence[Sample],
    *,
    name: str = "",
    backend: str = "eager",
    dynamic: bool | None = None,
    fresh: Callable[[], Sequence[Sample]] | None = None,
    skeletons: str = "outside",
) -> Examination:
    """Compile ``fn``, and call it as each of ``calls`` says.

    Where an operator is to be written, the function is called once more, not compiled, to see the values that it would
    take and give; ``fresh`` then makes the calls anew. ``skeletons`` says for which breaks that is: ``"outside"`` for
    those in code outside of torch, ``"all"`` where an operator is any of the remedies, or ``"none"``.

    Dynamo's caches are cleared, and its settings put back; whether data-dependent numbers and shapes are captured is as
    the process has it set. Raises `FunctionRaises` when the function raises also without being compiled.
    """
    trace = compiling.trace(
        fn,
        backend=backend,
        dynamic=dynamic,
        run=lambda compiled: [compiled(*c.args, **c.kwargs) for c in calls],
        capture=False,
    )
    again = fresh or (lambda: calls)
    if trace.error is not None:
        _raises_in_eager(fn, again())
    found = []
    for one in trace.breaks:
        file, _, line = one.location.rpartition(":")
        code = watching.source(file, int(line)) if file else ""
        found.append(Finding(one, remedies.kind_of(one, code), code))
    if skeletons != "none" and trace.error is None:
        found = _with_skeletons(found, fn, again, every=skeletons == "all")
    return Examination(name or _name(fn), trace, tuple(found), len(calls))


def _raises_in_eager(fn: Callable[..., Any], calls: Sequence[Sample]) -> None:
    try:
        for call in calls:
            fn(*call.args, **call.kwargs)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        raise FunctionRaises(error) from error


def _with_skeletons(
    found: list[Finding], fn: Callable[..., Any], again: Callable[[], Sequence[Sample]], *, every: bool
) -> list[Finding]:
    wanted = {f.graph_break.location for f in found if _wants(f, every=every)}
    if not wanted:
        return found
    places = [(file, int(line)) for file, _, line in (w.rpartition(":") for w in wanted)]

    def call() -> None:
        for one in again():
            fn(*one.args, **one.kwargs)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = watching.watch(call, places)
    made = []
    written: set[str] = set()
    last = {f.graph_break.location: f for f in found if _wants(f, every=every)}
    for finding in found:
        place = finding.graph_break.location
        file, _, line = place.rpartition(":")
        regions = seen.get((file, int(line)), []) if file else []
        if _wants(finding, every=every) and _apart(regions):
            finding = dataclasses.replace(finding, kind=remedies.apart(finding.kind))
        elif last.get(place) is finding:  # one for a line; the call that encloses the others breaks last
            name, text = skeleton.write(
                regions,
                callee=callee(finding.graph_break),
                unknown_size=finding.kind.id == "data-dependent shape",
                taken=written,
            )
            written.add(name)
            finding = dataclasses.replace(finding, skeleton=text)
        made.append(finding)
    return made


def _wants(finding: Finding, *, every: bool) -> bool:
    """Whether a finding gets a skeleton."""
    advised = any(name == "custom_op" for name, _ in finding.kind.advice)
    return bool(finding.graph_break.location) and advised and (every or finding.kind.id in _OPERATORS)


def _apart(regions: Sequence[watching.Region]) -> bool:
    """Whether the statement has nothing to do with tensors: none comes in, none comes out."""
    return bool(regions) and bool(regions[0].body) and not skeleton.has_tensors(regions[0])


def callee(one: Break) -> str:
    """Name of the function whose call breaks the graph, as far as torch tells, or empty."""
    for pattern in _CALLEES:
        found = re.search(pattern, one.context)
        if found:
            return found.group(1).rpartition(".")[2]
    return ""


_CALLEES = (
    r"qualname: ([\w.]+)",
    r"numpy function: <(?:function|built-in function|ufunc '?) ?(\w+)",
    r"call_method \w+\(.*?\) (\w+) ",
    r"call_function \w+\(<class '([\w.]+)'>\)",
    r"^builtin (\w+)",
)


def _name(fn: Any) -> str:
    return getattr(fn, "__qualname__", "") or type(fn).__name__
