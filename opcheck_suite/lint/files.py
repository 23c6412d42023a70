"""Which files `opcheck lint` reads."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable, Iterator

from opcheck_suite.registry import UsageError, did_you_mean

PYTHON = (".py", ".pyi")
CPP = (".cpp", ".cc", ".cxx", ".cu", ".cuh", ".h", ".hpp", ".c++", ".hh", ".hxx", ".inl", ".hip", ".mm")

#: Folders that hold what is built or installed, besides hidden ones and virtual environments.
_LEFT_OUT = ("build", "node_modules", "__pycache__", "venv")


def collect(paths: Iterable[str]) -> list[pathlib.Path]:
    """The sources among files and below folders, each once. A file that is named is always read.

    Raises UsageError for a path that is not there, a named file in no known language, and when nothing is found.
    """
    found: dict[str, pathlib.Path] = {}
    for given in paths:
        path = pathlib.Path(given)
        if path.is_dir():
            files = _below(path)
        elif path.exists():
            if not is_python(path) and not is_cpp(path):
                raise UsageError(f"{given!r} is neither Python nor C++ by its ending: {', '.join(PYTHON + CPP)}")
            files = iter([path])
        else:
            raise UsageError(f"there is no file {given!r}{_near(path)}")
        for file in files:
            found.setdefault(os.path.realpath(file), file)
    if not found:
        raise UsageError(f"no Python or C++ file below {', '.join(map(repr, paths))}")
    return list(found.values())


def is_python(path: pathlib.Path) -> bool:
    """Whether a file is read as Python."""
    return path.suffix in PYTHON or (path.suffix == "" and _shebang(path))


def is_cpp(path: pathlib.Path) -> bool:
    """Whether a file is read as C++."""
    return path.suffix in CPP


def _below(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _left_out(root, name))
        for name in sorted(names):
            path = pathlib.Path(root, name)
            if path.suffix in PYTHON + CPP and not name.startswith(".") and path.is_file():
                yield path


def _left_out(root: str, name: str) -> bool:
    return name.startswith(".") or name in _LEFT_OUT or os.path.exists(os.path.join(root, name, "pyvenv.cfg"))


def _shebang(path: pathlib.Path) -> bool:
    try:
        with path.open("rb") as file:
            first = file.readline(200)
    except OSError:
        return False
    return first.startswith(b"#!") and b"python" in first


def _near(path: pathlib.Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return ""
    names = [str(folder / name) if str(folder) != "." else name for name in sorted(os.listdir(folder))]
    return did_you_mean(str(path), names)
