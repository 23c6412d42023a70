"""What results depend on besides the ops: torch, Python, the machine, and which state of the op library was checked."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess
import sys
from collections.abc import Iterable

import torch

import opcheck_suite
from opcheck_suite import devices


def environment(names: tuple[str, ...], source: str = "", ops: Iterable[str] = ()) -> dict[str, str]:
    """What the results depend on besides the ops, as a report states it.

    ``source`` is what was checked, ``ops`` the names of its operators. ``library`` (distributions with their versions)
    and ``commit`` are there only where they are known.
    """
    known = {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "device": devices.describe(names),
        "opcheck_suite": opcheck_suite.__version__,
    }
    return known | library(source, frozenset(name.partition("::")[0] for name in ops))


@functools.cache
def library(source: str, namespaces: frozenset[str]) -> dict[str, str]:
    """The op library's ``library`` and ``commit``: of the source's package, and of packages named like its namespaces.

    Read once in a process, since a plugin asks for each of its tests.
    """
    packages = {source.partition(".")[0]} if not _is_file(source) else set()
    packages |= {name for name in namespaces if name in sys.modules}
    packages &= set(sys.modules)
    owners = importlib.metadata.packages_distributions() if packages else {}
    found = sorted({name for package in packages for name in owners.get(package, ())} - {"torch", "opcheck-suite"})
    told: dict[str, str] = {}
    if found:
        told["library"] = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in found)
    file = pathlib.Path(source) if _is_file(source) else _file_of(source)
    commit = (_checked_out(file) if file is not None else "") or next(filter(None, map(_installed_from, found)), "")
    return told | ({"commit": commit} if commit else {})


def _is_file(source: str) -> bool:
    return source.endswith(".py") or "/" in source


def _file_of(module: str) -> pathlib.Path | None:
    file = getattr(sys.modules.get(module), "__file__", None)
    return pathlib.Path(file) if file else None


def _checked_out(file: pathlib.Path) -> str:
    """The commit of the checkout that a file is tracked in, with ``-dirty`` where files differ from it; or nothing."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(file.resolve().parent), *words]
        settings = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=20, env=settings, stdin=subprocess.DEVNULL
        ).stdout.strip()

    try:
        # a virtual environment may lie within some other checkout
        if not git("ls-files", "--", file.name):
            return ""
        return git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return ""


def _installed_from(distribution: str) -> str:
    """The commit that a distribution was installed from, where pip has noted one.

    Source: https://packaging.python.org/en/latest/specifications/direct-url/
    """
    try:
        noted = json.loads(importlib.metadata.distribution(distribution).read_text("direct_url.json") or "{}")
        return str(noted.get("vcs_info", {}).get("commit_id", ""))
    except (ValueError, AttributeError):
        return ""
