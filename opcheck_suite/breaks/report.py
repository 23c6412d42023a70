"""What compiling a function came to, as text and as JSON."""

from __future__ import annotations

import json as json_
import os
import re
import textwrap
from collections import Counter
from typing import Any

import torch

from opcheck_suite.breaks import remedies
from opcheck_suite.breaks.examine import Examination, Finding
from opcheck_suite.graphbreaks import Skip, resumed_name, user_frames

_WIDTH = 100
#: Calls of a graph that are named.
_MOST = 8
#: Hints that propose nothing.
_EMPTY = ("file an issue", "This graph break is fundamental", "result in an error when running in eager")


def text(examination: Examination) -> str:
    """Graphs, breaks with their remedies, recompilations, frames left to eager, and the verdict."""
    trace = examination.trace
    parts = [
        f"{examination.name}  torch {torch.__version__}, backend {trace.backend}, "
        f"{_count(examination.calls, 'call')}, {trace.seconds:.1f} s",
        _graphs(examination),
        *_findings(examination),
        _recompiles(examination),
        _skips(examination),
        _error(examination),
        _nothing(examination),
        _links(examination),
        verdict(examination),
    ]
    return "\n\n".join(part for part in parts if part)


def verdict(examination: Examination) -> str:
    """One line: how many graphs, breaks, recompilations and frames left to eager."""
    trace = examination.trace
    counts = [
        _count(len(trace.graphs), "graph"),
        _count(len(trace.breaks), "graph break"),
        _count(len(trace.recompiles), "recompilation"),
    ]
    skipped = len(_own_skips(examination))
    if skipped:
        counts.append(f"{_count(skipped, 'function')} left to eager")
    bad = "" if examination.ok else "not captured as a whole: "
    if trace.error is not None:
        bad = "compiling raised: "
    return f"verdict  {bad}{', '.join(counts)}"


def _graphs(examination: Examination) -> str:
    lines = []
    for number, graph in enumerate(examination.trace.graphs, 1):
        counted = Counter(_shown(target) for target in graph)
        names = [name if n == 1 else f"{name} x{n}" for name, n in counted.items()]
        more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
        line = f"graph {number}  {_count(len(graph), 'call')}: {', '.join(names[:_MOST])}{more}"
        lines += textwrap.wrap(line, _WIDTH, subsequent_indent="         ", break_on_hyphens=False)
    return "\n".join(lines)


def _shown(target: str) -> str:
    return target.replace("_operator.", "operator.").removeprefix("None.")


def _findings(examination: Examination) -> list[str]:
    """A block for each break; the remedies of a kind stand at the first of it."""
    parts: list[str] = []
    known: dict[remedies.Kind, int] = {}
    for number, finding in enumerate(examination.findings, 1):
        first = known.setdefault(finding.kind, number)
        parts.append(_finding(number, finding, len(examination.findings), as_for=first if first != number else None))
    return parts


def _finding(number: int, finding: Finding, count: int, *, as_for: int | None) -> str:
    one = finding.graph_break
    where = f"{place(one.location)}" if one.location else "place unknown"
    function = f", in {one.stack[-1].function}" if one.stack else ""
    lines = [f"break {number} of {count}  {where}{function}"]
    lines += [f"  > {line}" for line in finding.source.splitlines()[:6]]
    title, _, explanation = one.reason.partition(": ")
    lines += _field("kind", finding.kind.says)
    lines += _field(
        "torch", f"{title}. {explanation}" if explanation and one.reason.startswith(one.kind) else one.reason
    )
    for hint in [h for h in one.hints if not any(word in h for word in _EMPTY)][:2]:
        lines += _field("hint", hint)
    if one.link and as_for is None:
        lines += _field("", one.link)
    if len(one.stack) > 1:
        lines += _field("calls", " > ".join(f"{f.function} ({place(f.location)})" for f in one.stack))
    if one.consequence:
        lines += _field("so", f"{one.consequence.partition(': ')[0]}: the rest of {_given_up(finding)} runs in eager")
    elif one.skips:
        lines += _field("so", f"Dynamo cannot go on behind the line: the rest of {_given_up(finding)} runs in eager")
    if as_for is not None:
        lines += _field("remedy", f"as for break {as_for}")
    else:
        for rank, (name, advice) in enumerate(finding.kind.advice):
            lines += _field("remedy" if rank == 0 else "or", f"{remedies.REMEDIES[name].title}. {advice}")
        if finding.kind.unfit:
            lines += _field("not", finding.kind.unfit)
    if finding.skeleton:
        lines += ["", "  a custom operator to begin with:", ""]
        lines += [f"    {line}".rstrip() for line in finding.skeleton.splitlines()]
    return "\n".join(lines)


def _links(examination: Examination) -> str:
    """Where torch's documentation says more about the remedies that were named."""
    used = dict.fromkeys(name for finding in examination.findings for name, _ in finding.kind.advice)
    links: dict[str, list[str]] = {}
    for name in used:
        links.setdefault(remedies.REMEDIES[name].link, []).append(remedies.REMEDIES[name].title)
    return "\n".join(
        ["read more", *(f"  {', '.join(titles)}\n    {link}" for link, titles in links.items())] if links else []
    )


def _given_up(finding: Finding) -> str:
    return finding.graph_break.stack[0].function if finding.graph_break.stack else "the function"


def _field(label: str, value: str) -> list[str]:
    return textwrap.wrap(
        re.sub(r" at 0x[0-9a-f]+", "", " ".join(value.split())),  # says nothing, and differs from run to run
        _WIDTH,
        initial_indent=f"  {label:<8}",
        subsequent_indent=" " * 10,
        break_on_hyphens=False,
        break_long_words=False,
    )


def place(location: str) -> str:
    """A ``file:line`` relative to the working directory, where it is below that."""
    file, _, line = location.rpartition(":")
    relative = os.path.relpath(file) if os.path.isabs(file) else file
    return f"{file if relative.startswith('..') else relative}:{line}"


def _recompiles(examination: Examination) -> str:
    lines = []
    for one in examination.trace.recompiles:
        where = f" ({place(one.location)})" if one.location else ""
        lines.append(f"recompiled  {resumed_name(one.function)}{where}, because a guard failed:")
        guards = one.guard.partition("User stack trace:")[0].splitlines()
        # the numbers before the guard say which compilation of which frame it belongs to
        lines += [
            f"  {re.sub(r'^[0-9]+/[0-9]+: ', '', line.partition('  #')[0].strip())}" for line in guards if line.strip()
        ]
    return "\n".join(lines)


def _own_skips(examination: Examination) -> list[Skip]:
    return [s for s in examination.trace.skips if user_frames([(s.location.rpartition(":")[0], 0, s.function)])]


def _skips(examination: Examination) -> str:
    own = _own_skips(examination)
    lines = []
    for one in own:
        where = f" ({place(one.location)})" if one.location else ""
        lines += textwrap.wrap(
            f"left to eager  {one.function}{where}: {one.reason.partition(': ')[0]}", _WIDTH, subsequent_indent="  "
        )
    others = examination.trace.skipped - len(own)
    if others > 0 and not own:
        lines.append(f"left to eager  {_count(others, 'function')} of libraries")
    return "\n".join(lines)


def _error(examination: Examination) -> str:
    error = examination.trace.error
    if error is None:
        return ""
    first = (str(error).strip().splitlines() or ["no message"])[0]
    lines = [f"compiling raised {type(error).__name__}, where the function by itself does not"]
    return "\n".join([*lines, *_field("", first)])


def _nothing(examination: Examination) -> str:
    trace = examination.trace
    if trace.graphs or trace.breaks or trace.error is not None or trace.skips:
        return ""
    return "\n".join(
        textwrap.wrap(
            "nothing was compiled: the function calls no torch operation, or is marked torch.compiler.disable, or "
            "belongs to a library that Dynamo leaves out",
            _WIDTH,
        )
    )


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def json(examination: Examination) -> str:
    """The same as one object; places are absolute."""
    trace = examination.trace
    return json_.dumps(
        {
            "function": examination.name,
            "torch": torch.__version__,
            "backend": trace.backend,
            "calls": examination.calls,
            "ok": examination.ok,
            "graphs": [list(graph) for graph in trace.graphs],
            "breaks": [_as_object(finding) for finding in examination.findings],
            "recompiles": [
                {"function": resumed_name(r.function), "location": r.location, "guard": r.guard}
                for r in trace.recompiles
            ],
            "skipped": [{"function": s.function, "location": s.location, "reason": s.reason} for s in trace.skips],
            "error": "" if trace.error is None else f"{type(trace.error).__name__}: {trace.error}",
            "seconds": round(trace.seconds, 3),
        },
        indent=2,
    )


def _as_object(finding: Finding) -> dict[str, Any]:
    one = finding.graph_break
    return {
        "location": one.location,
        "source": finding.source,
        "kind": finding.kind.id,
        "torch": one.kind,
        "reason": one.reason,
        "context": one.context,
        "hints": list(one.hints),
        "link": one.link,
        "stack": [{"function": f.function, "location": f.location} for f in one.stack],
        "skips": one.skips,
        "times": one.times,
        "remedies": [
            {"remedy": remedies.REMEDIES[name].title, "advice": advice, "link": remedies.REMEDIES[name].link}
            for name, advice in finding.kind.advice
        ],
        "skeleton": finding.skeleton,
    }
