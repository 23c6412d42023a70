"""What the readers of sources hand on."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    """One thing to change in one place."""

    path: str
    line: int
    """From 1."""
    column: int
    """In characters, from 1."""
    id: str
    message: str
    """What is wrong, and what to write instead, on one line."""
    instead: str = ""
    """The replacement alone, where there is one."""


@dataclasses.dataclass(frozen=True)
class Comment:
    """The text of a comment, without what begins it."""

    line: int
    column: int
    text: str
    alone: bool
    """Whether it has the line to itself. It is then about the next line."""
