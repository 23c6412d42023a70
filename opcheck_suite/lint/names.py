"""What names mean in a Python source: modules and functions of torch under any alias, strings, and libraries.

Nothing is run. A name that is bound several times means something only where all its bindings agree.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator


@dataclasses.dataclass(frozen=True)
class Path:
    """A module, function or class, by its dotted name."""

    name: str


@dataclasses.dataclass(frozen=True)
class Text:
    """A string, or the beginning of one."""

    value: str
    whole: bool = True


@dataclasses.dataclass(frozen=True)
class Made:
    """An object that a call made: a Library, or the context of a fake kernel."""

    by: str
    namespace: Text | None = None
    kind: Text | None = None


Value = Path | Text | Made | None

LIBRARY, SCOPED, CONTEXT = "torch.library.Library", "torch.library._scoped_library", "torch.library.get_ctx"
_MAKERS = {
    LIBRARY: LIBRARY,
    SCOPED: LIBRARY,
    CONTEXT: CONTEXT,
    "torch._custom_op.impl.get_ctx": CONTEXT,
    "torch._custom_ops.get_ctx": CONTEXT,
}

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (*_FUNCTIONS, ast.ClassDef, *_COMPREHENSIONS)


class Scope:
    """The names of a module, class, function, lambda or comprehension."""

    def __init__(self, node: ast.AST, outer: Scope | None) -> None:
        self.node, self.outer = node, outer
        self.bindings: dict[str, list[tuple[Scope, ast.expr | Value]]] = {}
        self.elsewhere: dict[str, Scope] = {}  # names declared global or nonlocal

    def bind(self, name: str, value: ast.expr | Value, seen_in: Scope | None = None) -> None:
        """Note one more binding of a name, or of a dotted one such as ``self.library``."""
        self.elsewhere.get(name, self).bindings.setdefault(name, []).append((seen_in or self, value))

    def module(self) -> Scope:
        """The outermost scope."""
        return self if self.outer is None else self.outer.module()

    def holder(self, name: str) -> Scope | None:
        """The scope that a name of this one belongs to."""
        if name in self.elsewhere:
            return self.elsewhere[name]
        at: Scope | None = self
        while at is not None:
            # a class's names are not seen by the functions inside of it
            if name in at.bindings and (at is self or not isinstance(at.node, ast.ClassDef)):
                return at
            at = at.outer
        return None


class Names:
    """The scopes of a module, and the values of its expressions."""

    def __init__(self, tree: ast.Module) -> None:
        self.stars: list[str] = []
        self.scopes: dict[ast.AST, Scope] = {}
        self._known: dict[tuple[Scope, str], Value] = {}
        self._collect(tree, Scope(tree, None))

    # bindings

    def _collect(self, node: ast.AST, scope: Scope) -> None:
        self.scopes[node] = scope
        for child in ast.iter_child_nodes(node):
            self._statement(child, scope)

    def _statement(self, node: ast.AST, scope: Scope) -> None:
        self._bindings(node, scope)
        if not isinstance(node, _SCOPES):
            self.scopes[node] = scope
            for child in ast.iter_child_nodes(node):
                self._statement(child, scope)
            return
        inner = Scope(node, scope)
        outside = set(_outside(node))
        self.scopes[node] = scope
        if isinstance(node, _FUNCTIONS):
            self._parameters(node.args, inner)
        for child in _children(node):
            self._statement(child, scope if child in outside else inner)

    def _bindings(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.Import():
                for alias in node.names:
                    path = alias.name if alias.asname else alias.name.partition(".")[0]
                    scope.bind(alias.asname or path, Path(path))
            case ast.ImportFrom():
                for alias in node.names:
                    if alias.name == "*":
                        self.stars += [node.module] if node.module and not node.level else []
                    else:
                        known = Path(f"{node.module}.{alias.name}") if not node.level else None
                        scope.bind(alias.asname or alias.name, known)
            case ast.Assign():
                for target in node.targets:
                    self._assign(target, node.value, scope)
            case ast.AnnAssign():
                self._assign(node.target, node.value or self._annotated(node.annotation, scope), scope)
            case ast.NamedExpr():
                self._assign(node.target, node.value, _named_scope(scope))
            case ast.AugAssign():
                self._assign(node.target, None, scope)
            case ast.For() | ast.AsyncFor() | ast.comprehension():
                self._assign(node.target, None, scope)
            case ast.withitem() if node.optional_vars is not None:
                self._assign(node.optional_vars, node.context_expr, scope)
            case ast.ExceptHandler() if node.name:
                scope.bind(node.name, None)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                scope.bind(node.name, None)
            case ast.Global():
                scope.elsewhere.update({name: scope.module() for name in node.names})
            case ast.Nonlocal():
                found = {name: scope.outer.holder(name) for name in node.names if scope.outer}
                scope.elsewhere.update({name: where for name, where in found.items() if where})
            case ast.MatchAs() | ast.MatchStar() if node.name:
                scope.bind(node.name, None)
            case ast.MatchMapping() if node.rest:
                scope.bind(node.rest, None)

    def _assign(self, target: ast.AST, value: ast.expr | Value, scope: Scope) -> None:
        match target:
            case ast.Name():
                scope.bind(target.id, value)
                if isinstance(scope.node, ast.ClassDef):
                    scope.module().bind(f"{scope.node.name}.{target.id}", value, scope)
            case ast.Attribute():
                if dotted := _dotted(target):
                    scope.module().bind(dotted, value, scope)
            case ast.Starred():
                self._assign(target.value, None, scope)
            case ast.Tuple() | ast.List():
                values: list[ast.expr | Value] = [None] * len(target.elts)
                if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(values):
                    values = list(value.elts)
                for part, one in zip(target.elts, values, strict=True):
                    self._assign(part, one, scope)

    def _parameters(self, args: ast.arguments, scope: Scope) -> None:
        named = (*args.posonlyargs, *args.args, *args.kwonlyargs)
        for one in named:
            scope.bind(one.arg, self._annotated(one.annotation, scope) if one.annotation else None)
        for star in (args.vararg, args.kwarg):
            if star is not None:
                scope.bind(star.arg, None)

    def _annotated(self, annotation: ast.expr, scope: Scope) -> Value:
        """A Library, where an annotation says that it is one, or one or None."""
        match annotation:
            case ast.Constant(value=str(text)):
                try:
                    return self._annotated(ast.parse(text, mode="eval").body, scope)
                except (SyntaxError, ValueError):
                    return None
            case ast.BinOp(op=ast.BitOr()):
                return self._annotated(annotation.left, scope) or self._annotated(annotation.right, scope)
            case ast.Subscript(slice=ast.expr() as inner) if _dotted(annotation.value) in (
                "Optional",
                "typing.Optional",
                "Final",
                "typing.Final",
            ):
                return self._annotated(inner, scope)
        return Made(LIBRARY) if self.value(annotation, scope) == Path(LIBRARY) else None

    # values

    def value(self, node: ast.expr | Value, scope: Scope) -> Value:
        """What an expression is, as far as that is known without running anything."""
        if not isinstance(node, ast.expr):
            return node
        match node:
            case ast.Constant(value=str(text)):
                return Text(text)
            case ast.Name():
                return self._look_up(node.id, scope)
            case ast.Attribute():
                return self._attribute(node, scope)
            case ast.BinOp(op=ast.Add()):
                return _joined(self.value(node.left, scope), self.value(node.right, scope))
            case ast.JoinedStr():
                return self._formatted(node, scope)
            case ast.IfExp():
                return _agreed([self.value(v, scope) for v in (node.body, node.orelse) if not _is_none(v)])
            case ast.BoolOp():
                return _agreed([self.value(v, scope) for v in node.values if not _is_none(v)])
            case ast.NamedExpr():
                return self.value(node.value, scope)
            case ast.Call():
                return self._call(node, scope)
        return None

    def _look_up(self, name: str, scope: Scope) -> Value:
        holder = scope.holder(name)
        if holder is not None:
            return self._bound(holder, name)
        return Path(f"{self.stars[-1]}.{name}") if len(self.stars) == 1 else None

    def _bound(self, holder: Scope, name: str) -> Value:
        """The value of a name of a scope. One that is bound by means of itself is unknown."""
        key = (holder, name)
        if key not in self._known:
            self._known[key] = None
            bindings = holder.bindings.get(name, [])
            found = [self.value(value, where) for where, value in bindings if not _is_none(value)]
            self._known[key] = _agreed(found)
        return self._known[key]

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Value:
        base = self.value(node.value, scope)
        if isinstance(base, Path):
            return Path(f"{base.name}.{node.attr}")
        if isinstance(base, Made):
            return Path(f"{base.by}().{node.attr}")
        dotted = _dotted(node)
        return self._bound(scope.module(), dotted) if dotted else None

    def _formatted(self, node: ast.JoinedStr, scope: Scope) -> Value:
        known: Value = Text("")
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                plain = part.conversion == -1 and part.format_spec is None
                known = _joined(known, self.value(part.value, scope) if plain else None)
            else:
                known = _joined(known, self.value(part, scope))
        return known

    def _call(self, node: ast.Call, scope: Scope) -> Value:
        if isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) == 2:
            base, name = self.value(node.args[0], scope), self.value(node.args[1], scope)
            known = isinstance(base, Path) and isinstance(name, Text) and name.whole
            return Path(f"{base.name}.{name.value}") if known else None  # type: ignore[union-attr]
        function = self.value(node.func, scope)
        if not isinstance(function, Path):
            return None
        if function.name == "importlib.import_module" and len(node.args) == 1:
            module = self.value(node.args[0], scope)
            return Path(module.value) if isinstance(module, Text) and module.whole else None
        if function.name == "functools.partial" and len(node.args) == 1:
            return self.value(node.args[0], scope)
        if function.name not in _MAKERS:
            return None
        namespace, kind = (self.value(argument(node, *where), scope) for where in ((0, "ns"), (1, "kind")))
        return Made(
            _MAKERS[function.name],
            namespace if isinstance(namespace, Text) else None,
            kind if isinstance(kind, Text) else None,
        )


def argument(call: ast.Call, position: int, *names: str) -> ast.expr | None:
    """An argument of a call, given by position or by one of its names."""
    for keyword in call.keywords:
        if keyword.arg in names:
            return keyword.value
    before = call.args[: position + 1]
    return before[position] if len(before) > position and not any(isinstance(a, ast.Starred) for a in before) else None


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a function, class or comprehension; those of its parameters instead of these as one."""
    for child in ast.iter_child_nodes(node):
        yield from ast.iter_child_nodes(child) if isinstance(child, ast.arguments) else (child,)


def _outside(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a function, class or comprehension that are evaluated around it."""
    if isinstance(node, _FUNCTIONS):
        yield from getattr(node, "decorator_list", [])
        yield from (d for d in (*node.args.defaults, *node.args.kw_defaults) if d is not None)
    elif isinstance(node, ast.ClassDef):
        yield from (*node.decorator_list, *node.bases, *node.keywords)


def _named_scope(scope: Scope) -> Scope:
    """Where ``:=`` binds: around comprehensions."""
    while isinstance(scope.node, _COMPREHENSIONS) and scope.outer is not None:
        scope = scope.outer
    return scope


def _joined(left: Value, right: Value) -> Text | None:
    if not isinstance(left, Text):
        return None
    if left.whole and isinstance(right, Text):
        return Text(left.value + right.value, right.whole)
    return Text(left.value, whole=False)


def _agreed(values: list[Value]) -> Value:
    """The one value of several, if they are equal; a library of some namespace, if they are libraries."""
    if not values:
        return None
    first = values[0]
    if all(value == first for value in values):
        return first
    if isinstance(first, Made) and all(isinstance(value, Made) and value.by == first.by for value in values):
        return Made(first.by)
    return None


def _is_none(node: ast.expr | Value) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _dotted(node: ast.AST) -> str | None:
    """``self.library`` of an expression that reads so."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (base := _dotted(node.value)):
        return f"{base}.{node.attr}"
    return None
