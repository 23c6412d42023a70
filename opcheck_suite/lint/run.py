"""Read sources, and put together what there is to say of them."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterable
from typing import Any

from opcheck_suite.lint import cpp, files, ignores, python, rules
from opcheck_suite.lint.findings import Finding


@dataclasses.dataclass(frozen=True)
class Linted:
    """What came of a run."""

    files: int
    findings: tuple[Finding, ...]


def lint(paths: Iterable[str], *, exclude: Iterable[str] = (), unused_ignores: bool = False) -> Linted:
    """What there is to change in files and below folders, by place. Nothing is imported or run.

    Raises UsageError for paths that cannot be read as sources.
    """
    sources = files.collect(paths, exclude=exclude)
    active = {rule.id for rule in rules.RULES if not rule.optional or unused_ignores}
    found = [finding for path in sources for finding in _one(path) if finding.id in active]
    return Linted(len(sources), tuple(found))


def _one(path: pathlib.Path) -> list[Finding]:
    name = str(path)
    language: Any = python if files.is_python(path) else cpp
    try:
        text = language.decode(path.read_bytes())
    except OSError as error:
        return [Finding(name, 1, 1, "lint.unreadable", f"it cannot be read: {error.strerror or error}")]
    except (UnicodeError, SyntaxError, LookupError) as error:
        return [Finding(name, 1, 1, "lint.unreadable", f"it cannot be decoded: {_reason(error)}")]
    findings, comments = language.read(name, text)
    return sorted(ignores.applied(name, findings, comments))


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not {error.encoding}"
    return str(error)
