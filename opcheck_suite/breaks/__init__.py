"""Graph breaks of a user's own function: where they are, and which remedy fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opcheck_suite.breaks.examine import Examination, FunctionRaises, examine
from opcheck_suite.breaks.targets import plain
from opcheck_suite.model import Sample

__all__ = ["Examination", "FunctionRaises", "assert_no_graph_breaks", "count_graph_breaks", "examine"]


def assert_no_graph_breaks(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Fail unless ``fn(*args, **kwargs)`` is compiled without a graph break, and nothing of it is left to eager.

    ``fn`` is a function, a method or a module, compiled or not; all arguments are passed on to it. It is called once
    compiled and, if the graph breaks, once more to see what a custom operator in its place would take and give.

    Raises AssertionError with the report that ``opcheck breaks`` prints; what ``fn`` raises by itself is raised as it
    is. Dynamo's caches are cleared.
    """
    try:
        found = examine(plain(fn), [Sample(args, kwargs)])
    except FunctionRaises as raised:
        raise raised.error from None
    if not found.ok:
        raise AssertionError(str(found)) from found.trace.error


def count_graph_breaks(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
    """The number of places at which compiling ``fn(*args, **kwargs)`` breaks the graph.

    A place counts once, however often it is met. A function of which nothing is compiled although no break is
    reported, because it is marked ``torch.compiler.disable`` or calls no torch operation, counts as one.

    Raises what ``fn``, or compiling it, raises. Dynamo's caches are cleared.
    """
    try:
        found = examine(plain(fn), [Sample(args, kwargs)], skeletons="none")
    except FunctionRaises as raised:
        raise raised.error from None
    if found.trace.error is not None:
        raise found.trace.error
    return len(found.trace.breaks) or int(not found.ok)
