"""Which files `opcheck lint` reads."""

from __future__ import annotations

import fnmatch
import os
import pathlib
from collections.abc import Iterable, Iterator

from opcheck_suite.registry import UsageError, did_you_mean

PYTHON = (".py", ".pyi")
CPP = (".cpp", ".cc", ".cxx", ".cu", ".cuh", ".h", ".hpp", ".c++", ".hh", ".hxx", ".inl", ".hip", ".mm")

#: Folders that hold what is built or installed, besides hidden ones and virtual environments.
_LEFT_OUT = ("build", "node_modules", "__pycache__", "venv")


def collect(paths: Iterable[str], *, exclude: Iterable[str] = ()) -> list[pathlib.Path]:
    """The sources among files and below folders, each once. A file that is named is always read.

    ``exclude`` holds globs of files and folders to leave out of a search, by name or by path as it would be printed.

    Raises UsageError for a path that is not there, a named file in no known language, and when nothing is found.
    """
    found: dict[str, pathlib.Path] = {}
    for given in paths:
        path = pathlib.Path(given)
        if path.is_dir():
            files = _below(path, tuple(exclude))
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


def _below(folder: pathlib.Path, exclude: tuple[str, ...]) -> Iterator[pathlib.Path]:
    for root, folders, names in os.walk(folder):
        here = pathlib.Path(root)
        folders[:] = sorted(name for name in folders if not (_built(here / name) or _left_out(here / name, exclude)))
        for name in sorted(names):
            path = here / name
            if path.suffix in PYTHON + CPP and not _left_out(path, exclude) and path.is_file():
                yield path


def _built(folder: pathlib.Path) -> bool:
    return folder.name in _LEFT_OUT or (folder / "pyvenv.cfg").exists()


def _left_out(path: pathlib.Path, exclude: tuple[str, ...]) -> bool:
    named = (path.name, str(path))
    return path.name.startswith(".") or any(fnmatch.fnmatchcase(n, pattern) for n in named for pattern in exclude)


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
