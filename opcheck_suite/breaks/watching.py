"""What a line of code works on: the values that it takes and gives while its function runs in eager.

A custom operator is made around one statement, or else around the function that it stands in. What its schema must be
is seen from the values, so the function is run once more, with ``sys.settrace``.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import linecache
import sys
import textwrap
from collections.abc import Callable, Iterable
from types import FrameType, ModuleType
from typing import Any

import torch


@dataclasses.dataclass(frozen=True, eq=False)
class Value:
    """A value that came by, and whether the code wrote to it."""

    name: str
    value: Any
    written: bool = False
    alias: bool = False
    """Whether an output shares memory with an input."""


@dataclasses.dataclass(frozen=True, eq=False)
class Region:
    """A piece of code that could become an operator."""

    file: str
    line: int
    function: str
    """Name of the function that it is, or that it stands in."""
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    body: str
    """Its code: one statement, or empty for a whole function."""
    indirect: tuple[tuple[str, str], ...] = ()
    """Attributes that the body has been given as names: ``("self.scale", "scale")``."""
    scope: dict[str, Any] = dataclasses.field(default_factory=dict)
    """The global variables of its module."""
    qualified: str = ""
    """Name of the function within its module, with ``<locals>`` where it stands in another."""


@dataclasses.dataclass(eq=False)
class _Statement:
    node: ast.stmt
    reads: tuple[str, ...]
    paths: tuple[tuple[str, str], ...]
    writes: tuple[str, ...]


def statement(file: str, line: int) -> ast.stmt | None:
    """The innermost statement that covers a line, or None where the source cannot be had."""
    lines = linecache.getlines(file)
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None
    covering = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return min(covering, key=lambda n: ((n.end_lineno or n.lineno) - n.lineno, -n.col_offset), default=None)


def source(file: str, line: int) -> str:
    """The lines of the statement at a place, dedented: of one that has a body only the head, or empty."""
    node = statement(file, line)
    if node is None:
        return linecache.getline(file, line).strip()
    inner = getattr(node, "body", None)
    last = inner[0].lineno - 1 if isinstance(inner, list) and inner else node.end_lineno or line
    lines = [linecache.getline(file, n) for n in range(node.lineno, max(last, node.lineno) + 1)]
    return textwrap.dedent("".join(lines)).rstrip()


def watch(call: Callable[[], Any], places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], list[Region]]:
    """Call ``call`` and return, for each ``(file, line)`` that ran, the regions around it, the smallest first.

    An exception of the call ends it: what was seen until then is returned.
    """
    watcher = _Watcher(set(places))
    before = sys.gettrace()
    sys.settrace(watcher.enter)
    try:
        call()
    except Exception:
        if watcher.failed:
            raise
    finally:
        sys.settrace(before)
    return watcher.found


#: Names of code that is a part of an expression, and a function of its own for Python only.
_PARTS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


class _Watcher:
    def __init__(self, places: set[tuple[str, int]]) -> None:
        self.found: dict[tuple[str, int], list[Region]] = {}
        self.failed = False
        """Whether an exception came from the watching, and not from what is watched."""
        self._places = places
        self._files = {file for file, _ in places}
        self.statements = {place: _parsed(*place) for place in places}

    def enter(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if event != "call" or code.co_filename not in self._files or code.co_name in _PARTS:
            return None
        lines = {number for _, _, number in code.co_lines() if number}
        here = [p for p in self._places if p[0] == code.co_filename and p[1] in lines and p not in self.found]
        if not here:
            return None
        local = _Local(self, frame, here)

        def step(frame: FrameType, event: str, arg: Any) -> Any:
            self.failed = True
            local.step(frame, event, arg)
            self.failed = False
            return step

        return step


class _Local:
    """Watches one call of one function."""

    def __init__(self, watcher: _Watcher, frame: FrameType, places: list[tuple[str, int]]) -> None:
        code = frame.f_code
        count = code.co_argcount + code.co_kwonlyargcount
        self._watcher = watcher
        self._places = places
        self._seen: set[tuple[str, int]] = set()
        self._arguments = _snapshot({n: frame.f_locals[n] for n in code.co_varnames[:count] if n in frame.f_locals})
        self._plain = not code.co_flags & 0x0C  # neither *args nor **kwargs
        self._open: dict[tuple[str, int], dict[str, tuple[Any, int]]] = {}
        """What the statements took that are being run."""

    def step(self, frame: FrameType, event: str, arg: Any) -> None:
        """Look at a line that is about to run, or at the end of the function."""
        for place in list(self._open):
            if event == "return" or (event == "line" and not self._at(place, frame.f_lineno)):
                self._close(place, self._open.pop(place), frame, arg if event == "return" else None)
        for place in self._places:
            # the first line that Python runs of a statement need not be its first
            if event == "line" and place not in self._seen and self._at(place, frame.f_lineno):
                self._seen.add(place)
                known = self._watcher.statements[place]
                if known is not None:
                    self._open[place] = self._before(known, frame.f_locals)
        if event == "return":
            for place in self._seen:
                self._whole(place, frame, arg)

    def _at(self, place: tuple[str, int], line: int) -> bool:
        """Whether a line belongs to the statement at a place."""
        known = self._watcher.statements[place]
        if known is None:
            return line == place[1]
        return known.node.lineno <= line <= (known.node.end_lineno or known.node.lineno)

    def _before(self, known: _Statement, local: dict[str, Any]) -> dict[str, tuple[Any, int]]:
        values = {n: local[n] for n in known.reads if n in local}
        for path, owner in known.paths:
            if owner in local:
                try:
                    values[path] = getattr(local[owner], path.partition(".")[2])
                except AttributeError:
                    continue
        return _snapshot(values)

    def _close(self, place: tuple[str, int], before: dict[str, tuple[Any, int]], frame: FrameType, out: Any) -> None:
        known = self._watcher.statements[place]
        if known is None or not isinstance(
            known.node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return | ast.Expr
        ):
            return
        values, renamed, taken = [], {}, set()
        paths = dict(known.paths)
        rewritten = known.writes if isinstance(known.node, ast.AugAssign) else ()  # by `_body`
        for name, (value, version) in before.items():
            if name in paths:
                continue
            used = [p for p, owner in known.paths if owner == name and p in before]
            if used and not _takes(value) and not isinstance(value, ModuleType):
                for path in used:
                    short = path.rpartition(".")[2]
                    short = f"{name}_{short}" if short in before or short in taken else short
                    renamed[path] = short
                    taken.add(short)
                    values.append(Value(short, before[path][0], _written(*before[path])))
            else:
                values.append(Value(name, value, _written(value, version) and name not in rewritten))
        values.sort(key=lambda v: not isinstance(v.value, torch.Tensor))
        outputs: tuple[Value, ...]
        if isinstance(known.node, ast.Return):
            outputs = _results(out)
        else:
            outputs = tuple(Value(n, frame.f_locals[n]) for n in known.writes if n in frame.f_locals)
        self._add(place, frame, values, outputs, _body(known.node, renamed), tuple(renamed.items()))

    def _whole(self, place: tuple[str, int], frame: FrameType, out: Any) -> None:
        if self._plain:
            values = [
                Value(name, value, _written(value, version)) for name, (value, version) in self._arguments.items()
            ]
            self._add(place, frame, values, _results(out), "", ())

    def _add(
        self,
        place: tuple[str, int],
        frame: FrameType,
        inputs: list[Value],
        outputs: tuple[Value, ...],
        body: str,
        indirect: tuple[tuple[str, str], ...],
    ) -> None:
        memory = {_memory(v.value) for v in inputs} - {None}
        outputs = tuple(dataclasses.replace(v, alias=_memory(v.value) in memory) for v in outputs)
        code = frame.f_code
        region = Region(*place, code.co_name, tuple(inputs), outputs, body, indirect, frame.f_globals, code.co_qualname)
        self._watcher.found.setdefault(place, []).append(region)


def _parsed(file: str, line: int) -> _Statement | None:
    node = statement(file, line)
    if node is None:
        return None
    walked = [n for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)]
    walked.sort(key=lambda n: (n.lineno, n.col_offset))
    loaded = [n for n in walked if isinstance(n, ast.Name)]
    reads = dict.fromkeys(n.id for n in loaded if isinstance(n.ctx, ast.Load))
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        reads[node.target.id] = None
    paths = {
        f"{n.value.id}.{n.attr}": n.value.id
        for n in walked
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and isinstance(n.ctx, ast.Load)
    }
    writes = dict.fromkeys(n.id for n in loaded if isinstance(n.ctx, ast.Store) and _assigned(node, n))
    return _Statement(node, tuple(reads), tuple(paths.items()), tuple(writes))


def _assigned(node: ast.stmt, name: ast.Name) -> bool:
    """Whether a statement assigns a name, and not only a comprehension in it."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return any(t is not None and name in ast.walk(t) for t in targets)


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        short = self._names.get(f"{node.value.id}.{node.attr}") if isinstance(node.value, ast.Name) else None
        return ast.Name(short, ast.Load()) if short else self.generic_visit(node)


def _body(node: ast.stmt, names: dict[str, str]) -> str:
    """The statement with attributes as names, and ``y += 1`` as ``y = y + 1``, which does not write to its input."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        right = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
        node = ast.Assign([ast.Name(node.target.id, ast.Store())], right, lineno=node.lineno)
    return ast.unparse(ast.fix_missing_locations(_Renamed(names).visit(copy.deepcopy(node))))


def _snapshot(values: dict[str, Any]) -> dict[str, tuple[Any, int]]:
    return {name: (value, _version(value)) for name, value in values.items()}


def _version(value: Any) -> int:
    try:
        return value._version if isinstance(value, torch.Tensor) else 0
    except RuntimeError:  # inference tensors have none
        return 0


def _written(value: Any, version: int) -> bool:
    return _version(value) != version


def _memory(value: Any) -> Any:
    """Something that is equal for tensors of one storage; None for other values and for tensors without memory."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided or not value.numel():
        return None
    return value.untyped_storage().data_ptr()


def _takes(value: Any) -> bool:
    """Whether an operator can take a value as it is."""
    return value is None or isinstance(value, torch.Tensor | bool | int | float | str | torch.dtype | torch.device)


def _results(out: Any) -> tuple[Value, ...]:
    if out is None:
        return ()
    values = out if isinstance(out, tuple) and type(out) is tuple else (out,)
    return tuple(Value("out" if len(values) == 1 else f"out{n}", v) for n, v in enumerate(values))
