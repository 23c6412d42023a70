"""Whose Python code a file holds, told by where it lies."""

from __future__ import annotations

import os
import re
import sysconfig

import torch

#: The folder of this package, with a separator at the end.
OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_STDLIB = sysconfig.get_paths()["stdlib"] + os.sep


def between(file: str) -> bool:
    """Whether a file is torch's or this package's: the frames between what is called and the op's own code."""
    return file.startswith((_TORCH, OWN))


def users(file: str) -> bool:
    """Whether a file is neither torch's, nor this package's, nor of Python's library, below which site-packages lie."""
    library = file.startswith(_STDLIB) and not re.search(r"[/\\](site|dist)-packages[/\\]", file)
    return not library and not between(file)
