"""Comments that ignore findings: ``# opcheck: ignore[lint.impl_abstract]``, in C++ ``// opcheck: ignore[...]``.

One speaks of its own line, or, where it has a line to itself, of the next. As in ruff, an id that there is not is
reported, and an ignore that is not needed only on demand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opcheck_suite.lint import rules
from opcheck_suite.lint.findings import Comment, Finding
from opcheck_suite.registry import did_you_mean

_IGNORE = re.compile(r"opcheck:\s*ignore\b(?:\s*\[(?P<ids>[^\]]*)\])?")


def applied(path: str, findings: list[Finding], comments: list[Comment]) -> Iterator[Finding]:
    """The findings that no comment ignores, and those about the comments."""
    alone = {comment.line for comment in comments if comment.alone}
    ignored: set[tuple[int, str]] = set()
    there = {(finding.line, finding.id) for finding in findings}
    for comment in comments:
        for found in _IGNORE.finditer(comment.text):
            column = comment.column + found.start()
            line = comment.line
            while comment.alone and line in alone:
                line += 1
            for id, wrong in _ids(found["ids"]):
                if wrong:
                    yield Finding(path, comment.line, column, "lint.ignore", wrong)
                elif (line, id) in there:
                    ignored.add((line, id))
                else:
                    message = f"{id} finds nothing here; remove it"
                    yield Finding(path, comment.line, column, "lint.unused_ignore", message)
    yield from (finding for finding in findings if (finding.line, finding.id) not in ignored)


def _ids(listed: str | None) -> Iterator[tuple[str, str]]:
    """Each id, with what is wrong about it, if something is."""
    ids = [part.strip() for part in (listed or "").split(",") if part.strip()]
    if not ids:
        yield "", "it names no rule; write opcheck: ignore[lint.impl_abstract]"
    for id in ids:
        known = rules.ids()
        yield id, "" if id in known else f"there is no rule {id!r}{did_you_mean(id, known)}"
