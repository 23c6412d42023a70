"""Renderers: each module has ``render(report) -> str``. JSON is canonical; the others show parts of it."""

from __future__ import annotations

import os
import pathlib
import tempfile

from opcheck_suite.registry import UsageError, did_you_mean

#: Format by the ending of a file's name.
FORMATS = {".json": "json", ".md": "markdown", ".txt": "text"}


def format_of(path: str) -> str:
    """The format that a file's name asks for. Raises UsageError for an ending that none has."""
    suffix = pathlib.Path(path).suffix.lower()
    if suffix not in FORMATS:
        known = ", ".join(FORMATS)
        raise UsageError(f"{path!r}: reports are written as {known}{did_you_mean(suffix, FORMATS)}")
    return FORMATS[suffix]


def prepare(path: str) -> None:
    """Make the folder that a report goes to, before a long run. Raises UsageError where no report can be written."""
    format_of(path)
    target = pathlib.Path(path)
    if target.parent.exists() and not target.parent.is_dir():
        raise UsageError(f"{path!r} cannot be written: {str(target.parent)!r} is not a folder")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise UsageError(f"{path!r} cannot be written: {error.strerror or error}") from error
    if target.is_dir():
        raise UsageError(f"{path!r} cannot be written: it is a folder")


def write(path: str, text: str) -> None:
    """Write a report so that a reader never finds half of it: to a temporary name, then renamed."""
    target = pathlib.Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
