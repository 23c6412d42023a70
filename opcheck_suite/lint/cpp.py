"""Findings in C++ and CUDA sources."""

from __future__ import annotations

from collections.abc import Iterator

from opcheck_suite import reserved
from opcheck_suite.deprecated import DEPRECATED
from opcheck_suite.lint.findings import Comment, Finding
from opcheck_suite.lint.tokens import Macro, Source, Token, Unfinished

#: Macro whose first argument is the namespace that it defines operators in -> whether an argument that is itself a
#: macro is expanded. ``TORCH_LIBRARY`` makes a string of what is written.
_DEFINERS = {
    "TORCH_LIBRARY": False,
    "TORCH_LIBRARY_FRAGMENT": True,
    "STABLE_TORCH_LIBRARY": False,
    "STABLE_TORCH_LIBRARY_FRAGMENT": True,
}

#: One of them is in every source that registers operators, or that has something for `opcheck lint` to ignore.
_WORDS = ("TORCH_LIBRARY", "RegisterOperators", "pystub", ".def(", "opcheck:")


def decode(data: bytes) -> str:
    """The text of a C++ file; compilers do not care how its comments are encoded. Raises UnicodeError for no text."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16")
    if b"\0" in data:
        raise UnicodeError("it holds a byte 0")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def read(path: str, text: str) -> tuple[list[Finding], list[Comment]]:
    """What is to be changed in a source, and its comments."""
    if not any(word in text for word in _WORDS):
        return [], []  # nothing is registered in it
    try:
        source = Source(text)
    except Unfinished as error:
        before = text[: error.at]
        line, column = before.count("\n") + 1, error.at - before.rfind("\n")
        return [Finding(path, line, column, "lint.syntax", f"it does not parse: {error}")], []
    found = [Finding(path, *source.place(at), id, message, instead) for at, id, message, instead in _findings(source)]
    return found, source.comments


def _findings(source: Source) -> Iterator[tuple[int, str, str, str]]:
    constants = {
        macro.name: macro.body[0].text
        for macro in source.macros
        if macro.parameters is None and len(macro.body) == 1 and macro.body[0].kind == "word"
    }
    wrappers = dict.fromkeys(_DEFINERS, 0)
    for macro in source.macros:
        if macro.parameters is not None and (position := _passed_on(macro, wrappers)) is not None:
            wrappers[macro.name] = position
    for tokens in (source.code, *(macro.body for macro in source.macros)):
        yield from _namespaces(tokens, wrappers, constants)
        yield from _definitions(tokens)
        yield from _members(tokens)


def _passed_on(macro: Macro, wrappers: dict[str, int]) -> int | None:
    """Which parameter of a macro becomes a namespace."""
    for _, arguments in _calls(macro.body, wrappers):
        if len(arguments) == 1 and macro.parameters and arguments[0].text in macro.parameters:
            return macro.parameters.index(arguments[0].text)
    return None


def _namespaces(
    tokens: list[Token], wrappers: dict[str, int], constants: dict[str, str]
) -> Iterator[tuple[int, str, str, str]]:
    for name, argument in _calls(tokens, wrappers):
        if len(argument) != 1:
            continue
        written = argument[0].text
        namespace = constants.get(written, written) if _DEFINERS.get(name, True) else written
        yield from _reserved(namespace, argument[0].at)


def _calls(tokens: list[Token], wrappers: dict[str, int]) -> Iterator[tuple[str, list[Token]]]:
    """The uses of such macros, each with its argument that is the namespace."""
    for n, token in enumerate(tokens):
        if token.kind == "word" and token.text in wrappers and _text(tokens, n + 1) == "(":
            arguments = list(_arguments(tokens, n + 1))
            if len(arguments) > wrappers[token.text]:
                yield token.text, arguments[wrappers[token.text]]


def _definitions(tokens: list[Token]) -> Iterator[tuple[int, str, str, str]]:
    """``m.def("aten::name(...)")``, and ``.op(...)`` of RegisterOperators, which came before TORCH_LIBRARY."""
    old_style = any(token.text == "RegisterOperators" for token in tokens)
    for n, token in enumerate(tokens):
        member = n > 0 and tokens[n - 1].text in (".", ">")
        called = (token.text == "def" and member) or (
            old_style and ((token.text == "op" and member) or token.text == "RegisterOperators")
        )
        if not called or _text(tokens, n + 1) != "(":
            continue
        first = next(_arguments(tokens, n + 1), [])
        strings = [part for part in first if part.kind == "string"]
        namespace, colons, _ = "".join(part.text for part in strings).strip().partition("::")
        if colons:
            yield from _reserved(namespace, strings[0].at)


def _members(tokens: list[Token]) -> Iterator[tuple[int, str, str, str]]:
    apis = {api.path.rpartition("::")[2]: api for api in DEPRECATED if "::" in api.path}
    for n, token in enumerate(tokens):
        if n > 0 and token.text in apis and tokens[n - 1].text in (".", ">"):
            api = apis[token.text]
            message = f"{token.text} is deprecated since torch {api.deprecated}; use {api.instead}"
            yield token.at, api.rule, message, api.instead


def _reserved(namespace: str, at: int) -> Iterator[tuple[int, str, str, str]]:
    if owner := reserved.owner(namespace):
        message = f"namespace {namespace!r} is reserved for {owner}; use one named after your library"
        yield at, "lint.reserved_namespace", message, "a namespace named after your library"


def _arguments(tokens: list[Token], opening: int) -> Iterator[list[Token]]:
    """The arguments between a parenthesis and the one that closes it."""
    depth = 0
    argument: list[Token] = []
    for n in range(opening, len(tokens)):
        token = tokens[n]
        if token.kind == "mark" and token.text in "([{":
            depth += 1
            if depth == 1:
                continue
        elif token.kind == "mark" and token.text in ")]}":
            depth -= 1
            if depth == 0:
                yield argument
                return
        if depth == 1 and token.text == "," and token.kind == "mark":
            yield argument
            argument = []
        else:
            argument.append(token)


def _text(tokens: list[Token], n: int) -> str:
    return tokens[n].text if n < len(tokens) and tokens[n].kind == "mark" else ""
