"""Fake kernels registered under the old name."""

import ast
import inspect
import linecache

from opcheck_suite.registry import check


@check(
    id="deprecated.impl_abstract",
    title="The fake kernel is registered with impl_abstract",
    what="Reads the source line that registered the fake kernel, and the decorators of the kernel.",
    why="torch.library.impl_abstract was renamed in 2.4 and warns that it is going to be removed.",
    fix="Use torch.library.register_fake, which takes the same arguments.",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.register_fake",
    tier="static",
    scope="op",
    applies=lambda ctx: None if ctx.info.fake == "python" else "the op has no fake kernel in Python",
)
def impl_abstract(ctx):
    source, function = ctx.info.fake_source, ctx.info.fake_function
    if ctx.info.definition is None and source and _calls(source, "impl_abstract"):
        place = source if function is None else f"{function.__module__}.{function.__qualname__}"
        ctx.fail(f"the fake kernel {place} is registered with impl_abstract")
    if function is not None and _decorated(function, "impl_abstract"):
        ctx.fail(f"the fake kernel {function.__qualname__} is decorated with impl_abstract")


def _calls(source, name):
    """Whether the statement at ``file:line`` calls something of that name."""
    file, _, line = source.rpartition(":")
    if "torch/_custom_op" in file or file.endswith(("typing_extensions.py", "warnings.py")):
        return True  # torch's deprecated door, or the wrapper that warns for it, is itself the caller
    lines = linecache.getlines(file)
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        return False
    at = int(line)
    statements = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and _first(node) <= at <= (node.end_lineno or node.lineno)
    ]
    if not statements:
        return False
    innermost = max(statements, key=lambda node: (_first(node), node.col_offset))
    heads = innermost.decorator_list if isinstance(innermost, ast.FunctionDef) else [innermost]
    return any(_named(node, name) for head in heads for node in ast.walk(head))


def _first(node):
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def _named(node, name):
    return (isinstance(node, ast.Attribute) and node.attr == name) or (isinstance(node, ast.Name) and node.id == name)


def _decorated(function, name):
    try:
        text = inspect.getsource(function)
        tree = ast.parse(inspect.cleandoc(text) if text[:1] != " " else "if True:\n" + text)
    except (OSError, TypeError, SyntaxError):
        return False
    defs = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return bool(defs) and any(_named(n, name) for d in defs[0].decorator_list for n in ast.walk(d))
