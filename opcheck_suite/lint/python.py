"""Findings in Python sources."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
import warnings
from collections.abc import Iterator

from opcheck_suite import deprecated, reserved
from opcheck_suite.lint.findings import Comment, Finding
from opcheck_suite.lint.guards import old_code
from opcheck_suite.lint.names import LIBRARY, SCOPED, Names, Path, Scope, Text, argument

#: Function that defines an operator -> what its first argument, the qualified name, is called.
_DEFINERS = {
    "torch.library.custom_op": "name",
    "torch.library.triton_op": "name",
    "torch.library.define": "qualname",
    "torch._library.custom_ops.custom_op": "name",
    "torch._library.triton_op": "name",
    "torch._library.triton.triton_op": "name",
    "torch._custom_op.impl.custom_op": "qualname",
    "torch._custom_ops.custom_op": "qualname",
}

#: One of them is part of every path that there is a row for.
_WORDS = ("library", "_custom_op", "optests")

_UNPARSED = "Python {}.{} cannot parse it".format(*sys.version_info)


def decode(data: bytes) -> str:
    """The text of a Python file, in the encoding that it declares. Raises SyntaxError or UnicodeError."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return io.TextIOWrapper(io.BytesIO(data), encoding).read()


def read(path: str, text: str) -> tuple[list[Finding], list[Comment]]:
    """What is to be changed in a source, and its comments."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the source, such as invalid escapes
            tree = ast.parse(text)
        found = list(_Reader(path, text, tree).findings()) if any(word in text for word in _WORDS) else []
    except SyntaxError as error:
        line, column = error.lineno or 1, max(error.offset or 1, 1)
        return [Finding(path, line, column, "lint.syntax", f"{_UNPARSED}: {error.msg}")], []
    except (ValueError, RecursionError, MemoryError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        return [Finding(path, 1, 1, "lint.syntax", f"{_UNPARSED}: {reason}")], []
    return found, list(_comments(text)) if "opcheck:" in text else []


def _comments(text: str) -> Iterator[Comment]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            yield Comment(line, column + 1, token.string[1:], alone=not token.line[:column].strip())


class _Reader:
    """Walks a module."""

    def __init__(self, path: str, text: str, tree: ast.Module) -> None:
        self.path, self.tree = path, tree
        self.lines = text.split("\n")
        self.names = Names(tree)
        self.old = old_code(tree, self.names)

    def findings(self) -> Iterator[Finding]:
        """All of them, each place once."""
        seen: set[tuple[int, int, str]] = set()
        for finding in self._all():
            place = (finding.line, finding.column, finding.id)
            if place not in seen:
                seen.add(place)
                yield finding

    def _all(self) -> Iterator[Finding]:
        pending: list[tuple[ast.AST, bool]] = [(self.tree, False)]
        while pending:
            node, old = pending.pop()
            old = old or node in self.old
            inner: list[ast.AST] = list(ast.iter_child_nodes(node))
            if isinstance(node, ast.Call):
                yield from self._definition(node)
            if not old:
                yield from self._imports(node)
                if api := self._deprecated(node):
                    yield api
                    if isinstance(
                        node, ast.Attribute
                    ):  # torch._custom_op in torch._custom_op.impl.custom_op is no other
                        inner = [root for root in (_root(node),) if not isinstance(root, ast.Name)]
            pending += [(child, old) for child in inner]

    # deprecated names

    def _imports(self, node: ast.AST) -> Iterator[Finding]:
        match node:
            case ast.Import():
                spelled = [(alias, alias.name) for alias in node.names]
            case ast.ImportFrom(level=0):
                spelled = [(alias, f"{node.module}.{alias.name}") for alias in node.names]
            case _:
                return
        for alias, path in spelled:
            if api := deprecated.find(path.removesuffix(".*")):
                yield self._of(api, path.removesuffix(".*"), alias)

    def _deprecated(self, node: ast.AST) -> Finding | None:
        """A finding for an expression that means a deprecated name."""
        match node:
            case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
                pass
            case ast.Call(
                func=ast.Name(id="getattr") | ast.Name(id="import_module") | ast.Attribute(attr="import_module")
            ):
                pass
            case _:
                return None
        value = self.names.value(node, self.names.scopes[node])
        api = deprecated.find(value.name) if isinstance(value, Path) else None
        return self._of(api, value.name, node) if api and isinstance(value, Path) else None

    def _of(self, api: deprecated.Api, path: str, node: ast.expr | ast.alias) -> Finding:
        state = f"is deprecated since torch {api.deprecated}" if api.deprecated else "is private"
        shown = path.replace(LIBRARY + "().", "Library.")
        return self._at(node, api.rule, f"{shown} {state}; use {api.instead}", api.instead)

    # namespaces

    def _definition(self, call: ast.Call) -> Iterator[Finding]:
        scope = self.names.scopes[call]
        function = self.names.value(call.func, scope)
        if not isinstance(function, Path):
            return
        if function.name in _DEFINERS:
            node = argument(call, 0, _DEFINERS[function.name])
            yield from self._named(node, scope)
        elif function.name in (LIBRARY, SCOPED):
            node, kind = argument(call, 0, "ns"), argument(call, 1, "kind")
            made = self.names.value(kind, scope)
            if not (isinstance(made, Text) and made.value == "IMPL"):
                yield from self._named(node, scope, library=True)
        elif function.name == LIBRARY + "().define":
            yield from self._named(argument(call, 0, "schema"), scope)

    def _named(self, node: ast.expr | None, scope: Scope, *, library: bool = False) -> Iterator[Finding]:
        text = self.names.value(node, scope)
        if node is None or not isinstance(text, Text):
            return
        namespace, colons, _ = text.value.partition("::")
        if not (text.whole if library else colons):
            return
        if owner := reserved.owner(namespace):
            yield self._at(
                node,
                "lint.reserved_namespace",
                f"namespace {namespace!r} is reserved for {owner}; use one named after your library",
                "a namespace named after your library",
            )

    def _at(self, node: ast.expr | ast.alias, id: str, message: str, instead: str) -> Finding:
        # ast counts bytes
        column = len(self.lines[node.lineno - 1].encode()[: node.col_offset].decode(errors="replace"))
        return Finding(self.path, node.lineno, column + 1, id, message, instead)


def _root(node: ast.Attribute) -> ast.expr:
    """What a chain of attributes begins with."""
    base: ast.expr = node.value
    while isinstance(base, ast.Attribute):
        base = base.value
    return base
