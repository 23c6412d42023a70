"""Code that runs on an older torch only: it may use what newer ones deprecate.

``hasattr(torch.library, "register_fake")``, comparisons of versions, and ``except ImportError`` after an import of the
public name are understood, and what is left after a branch for a newer torch has returned.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from opcheck_suite.deprecated import DEPRECATED
from opcheck_suite.lint.names import Names

#: What the public names are called.
_PUBLIC = {"new_dynamic_size"} | {
    name for api in DEPRECATED for name in re.findall(r"torch\.library\.(\w+)", api.instead)
}
_VERSION = re.compile(r"version", re.I)
_AT_LEAST = re.compile(r"(torch|version|pt2?).*(at_?least|greater|newer|after|_ge(_|$))", re.I)
_ERRORS = {"ImportError", "ModuleNotFoundError", "AttributeError", "Exception"}


def old_code(tree: ast.Module, names: Names) -> set[ast.AST]:
    """The statements and expressions that run on an older torch only, each standing for all inside of it."""
    return set(_old(tree, names))


def _old(tree: ast.Module, names: Names) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp):
            newer = _newer(node.test, names)
            if newer is not None:
                branch = node.orelse if newer else node.body
                yield from branch if isinstance(branch, list) else [branch]
        elif isinstance(node, ast.Try) and any(_is_public(part) for stmt in node.body for part in ast.walk(stmt)):
            for handler in node.handlers:
                if _caught(handler.type) & _ERRORS:
                    yield from handler.body
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                yield from _after_return(block, names)


def _after_return(block: list[ast.stmt], names: Names) -> list[ast.stmt]:
    for at, statement in enumerate(block):
        if (
            isinstance(statement, ast.If)
            and isinstance(statement.body[-1], ast.Return | ast.Raise | ast.Continue)
            and _newer(statement.test, names)
        ):
            return block[at + 1 :]
    return []


def _newer(test: ast.expr, names: Names, depth: int = 0) -> bool | None:
    """Whether a condition holds on a newer torch only (True), on an older only (False), or says neither."""
    match test:
        case ast.UnaryOp(op=ast.Not()):
            inner = _newer(test.operand, names, depth)
            return None if inner is None else not inner
        case ast.BoolOp():
            known = [found for value in test.values if (found := _newer(value, names, depth)) is not None]
            return known[0] if known else None
        case ast.Call(func=ast.Name(id="hasattr"), args=[_, ast.Constant(value=str(name))]):
            return True if name in _PUBLIC else None
        case ast.Call():
            return _newer(test.func, names, depth)
        case ast.Compare(ops=[operator]):
            left, right = _is_version(test.left), _is_version(test.comparators[0])
            if left and isinstance(operator, ast.Gt | ast.GtE):
                return True
            if left and isinstance(operator, ast.Lt | ast.LtE):
                return False
            if right and isinstance(operator, ast.Gt | ast.GtE):
                return False
            return True if right and isinstance(operator, ast.Lt | ast.LtE) else None
        case ast.Name() | ast.Attribute():
            if _AT_LEAST.search(test.id if isinstance(test, ast.Name) else test.attr):
                return True
            value = _bound_to(test, names)
            return _newer(value, names, depth + 1) if value is not None and depth < 5 else None
    return None


def _bound_to(node: ast.expr, names: Names) -> ast.expr | None:
    """What a name is bound to, if it is bound once."""
    if not isinstance(node, ast.Name):
        return None
    holder = names.scopes[node].holder(node.id)
    values = [value for _, value in holder.bindings[node.id]] if holder is not None else []
    return values[0] if len(values) == 1 and isinstance(values[0], ast.expr) else None


def _is_version(node: ast.expr) -> bool:
    """Whether an expression reads a version of torch, and not only parses one that is written out."""
    words = [part.id if isinstance(part, ast.Name) else part.attr for part in _words(node)]
    spelled = " ".join(words)
    return bool(_VERSION.search(spelled)) and ("torch" in spelled.lower() or "__version__" in words)


def _words(node: ast.expr) -> Iterator[ast.Name | ast.Attribute]:
    yield from (part for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute))


def _is_public(node: ast.AST) -> bool:
    match node:
        case ast.ImportFrom():
            return node.module == "torch.library" and any(alias.name in _PUBLIC for alias in node.names)
        case ast.Attribute():
            return node.attr in _PUBLIC
    return False


def _caught(node: ast.expr | None) -> set[str]:
    if node is None:
        return {"Exception"}
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return {part.id for part in parts if isinstance(part, ast.Name)}
