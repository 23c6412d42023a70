"""Renderers: each module has ``render(report) -> str``. JSON is canonical; the others show parts of it."""

from __future__ import annotations

import contextlib
import importlib
import os
import pathlib
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

from opcheck_suite.model import Report
from opcheck_suite.registry import UsageError, did_you_mean

#: Format by the ending of a file's name.
FORMATS = {".json": "json", ".md": "markdown", ".txt": "text", ".xml": "junit", ".html": "html"}


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
    make_room(path)


def make_room(path: str) -> None:
    """Make the folder of a file that will be written. Raises UsageError where that cannot be."""
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


def begin(paths: Iterable[str], options: Mapping[str, Any]) -> None:
    """Write reports that say that their run is under way: what a run that dies leaves behind, rather than an older
    report that a reader would take for its own. What cannot be written is told when the run ends.
    """
    begun = Report(results=(), environment={}, options=options, stopped="the run has begun, and not ended")
    for path in paths:
        if (form := format_of(path)) in ("json", "html"):
            with contextlib.suppress(OSError):
                write(path, render(form, begun))


def render(name: str, report: Report) -> str:
    """The report in the format of that name: one of `FORMATS`, or ``github`` for annotations."""
    return str(importlib.import_module(f"opcheck_suite.reports.{name}").render(report))


def write(path: str, text: str, *, mode: int = 0o644) -> None:
    """Write a file so that a reader never finds half of it: to a temporary name, then renamed. Line ends are kept, and
    what is no Unicode, as names of files and messages with such names may be, is written as an escape.
    """
    target = pathlib.Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.write(text)
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
