"""C++ sources as tokens: without comments, with strings whole, and preprocessor lines apart from code."""

from __future__ import annotations

import bisect
import dataclasses
import re
from collections.abc import Iterator

from opcheck_suite.lint.findings import Comment


@dataclasses.dataclass(frozen=True)
class Token:
    """A word, a string, or a character."""

    kind: str
    """``word``, ``string`` or ``mark``."""
    text: str
    """For a string, what is in it."""
    at: int
    """Offset in the source."""


@dataclasses.dataclass(frozen=True)
class Macro:
    """A ``#define``."""

    name: str
    parameters: tuple[str, ...] | None
    """None for one without parentheses."""
    body: list[Token]


class Unfinished(Exception):
    """A comment or raw string that does not end. ``at`` is where it begins."""

    def __init__(self, what: str, at: int) -> None:
        super().__init__(f"a {what} does not end")
        self.at = at


_PREFIX = r"(?:u8|[uUL])?"
_TOKEN = re.compile(
    rf"""
    (?P<comment> //(?:\\\r?\n|[^\n])* | /\*.*?\*/ )
  | (?P<open> /\* | {_PREFIX}R"[^()\\\s"]{{0,16}}\( )
  | (?P<string> {_PREFIX}"(?:\\.|[^"\\\n])*" )
  | (?P<char> {_PREFIX}'(?:\\.|[^'\\\n])+' )
  | (?P<number> \.?\d(?:[eEpP][+-]|'?[\w.])* )
  | (?P<word> [A-Za-z_$]\w* )
  | (?P<splice> \\\r?\n )
  | (?P<newline> \n )
  | (?P<space> [^\S\n]+ )
  | (?P<mark> . )
    """,
    re.X | re.S,
)
_RAW = re.compile(rf'{_PREFIX}R"(?P<mark>[^()\\\s"]{{0,16}})\((?P<raw>.*?)\)(?P=mark)"', re.S)


class Source:
    """A source: its code, its macros and its comments. Raises `Unfinished`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(m.end() for m in re.finditer("\n", text))]
        self.comments: list[Comment] = []
        self.macros: list[Macro] = []
        self.code: list[Token] = []
        self._read()

    def place(self, at: int) -> tuple[int, int]:
        """Line and column of an offset, from 1."""
        line = bisect.bisect_right(self._starts, at)
        return line, at - self._starts[line - 1] + 1

    def _read(self) -> None:
        dead: list[bool] = []  # of each #if around, whether its branch is never compiled
        for line in self._lines():
            if line and line[0].text == "#":
                self._directive(line[1:], dead)
            elif not any(dead):
                self.code += line

    def _directive(self, line: list[Token], dead: list[bool]) -> None:
        name = line[0].text if line else ""
        if name in ("if", "ifdef", "ifndef"):
            dead.append(name == "if" and [t.text for t in line[1:]] == ["0"])
        elif name in ("else", "elif", "elifdef", "elifndef") and dead:
            dead[-1] = False
        elif name == "endif" and dead:
            dead.pop()
        elif name == "define" and len(line) > 1 and not any(dead):
            self.macros.append(_macro(line[1:]))

    def _lines(self) -> Iterator[list[Token]]:
        """The tokens of code between newlines, and those of each preprocessor line with what continues it."""
        line: list[Token] = []
        for token in self._tokens():
            if token.kind != "newline":
                line.append(token)
            elif line:
                yield line
                line = []
        if line:
            yield line

    def _tokens(self) -> Iterator[Token]:
        at = 0
        while at < len(self.text):
            found = _TOKEN.match(self.text, at)
            assert found is not None
            kind = str(found.lastgroup)
            if kind == "open":
                found = _RAW.match(self.text, at)
                if found is None:
                    raise Unfinished("comment" if self.text.startswith("/*", at) else "raw string", at)
                yield Token("string", found["raw"], at)
            elif kind == "comment":
                self._comment(found)
            elif kind == "string":
                yield Token("string", found[0].partition('"')[2][:-1].replace("\\\n", ""), at)
            elif kind in ("word", "mark", "newline", "number"):
                yield Token(kind, found[0], at)
            at = found.end()

    def _comment(self, found: re.Match[str]) -> None:
        line, column = self.place(found.start())
        alone = not self.text[self._starts[line - 1] : found.start()].strip()
        last, _ = self.place(found.end())
        text = found[0][2:].removesuffix("*/")
        self.comments.append(Comment(last if alone else line, column, text, alone))


def _macro(line: list[Token]) -> Macro:
    name, rest = line[0], line[1:]
    if rest and rest[0].text == "(" and rest[0].at == name.at + len(name.text):
        end = next((n for n, token in enumerate(rest) if token.text == ")"), len(rest))
        return Macro(name.text, tuple(t.text for t in rest[1:end] if t.kind == "word"), rest[end + 1 :])
    return Macro(name.text, None, rest)
