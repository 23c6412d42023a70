"""Compile native reference ops and say what was built, and where: ``python -m reference_ops.native [LIBRARY ...]``.

Without names, all libraries and the CUDA kernels. The exit status is 1 when something that this machine should be able
to compile does not compile.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from reference_ops.native import _build


def main(argv: Sequence[str] | None = None) -> int:
    """Build everything, or the libraries named; print a line for each library and for the CUDA kernels."""
    parser = argparse.ArgumentParser(prog="python -m reference_ops.native", description="Compile the reference ops.")
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", help=f"some of {', '.join(_build.LIBRARIES)}")
    names = parser.parse_args(argv).libraries
    if unknown := sorted(set(names) - set(_build.LIBRARIES)):
        parser.error(f"there is no library {unknown[0]!r}: {', '.join(_build.LIBRARIES)}")
    failed = False
    for name in names or _build.LIBRARIES:
        failed |= _library(name)
    if not names:
        failed |= _kernels()
    return 1 if failed else 0


def _library(name: str) -> bool:
    """Build a library and tell of it. Returns whether that failed."""
    library = _build.LIBRARIES[name]
    try:
        built = _build.load(name)
    except _build.NotBuilt as failure:
        return _report(library.namespace, failure)
    how = f"compiled in {built.seconds:.1f} s" if built.seconds else "was compiled before"
    print(f"{library.namespace}: {how}: {built.path}")
    if library.kernels:
        print(f"{library.namespace}: CUDA kernels " + (f"not bound: {built.cuda}" if built.cuda else "bound"))
    return False


def _kernels() -> bool:
    """Compile the CUDA kernels alone and tell of it. Returns whether that failed."""
    try:
        objects = _build.compile_cuda_kernels()
    except _build.NotBuilt as failure:
        return _report("CUDA kernels", failure)
    print(f"CUDA kernels: {', '.join(item.stem for item in objects)} compiled: {objects[0].parent}")
    return False


def _report(what: str, failure: _build.NotBuilt) -> bool:
    """Print why something is not there. Returns whether that is a failure."""
    failed = not isinstance(failure, _build.NotOffered)
    print(f"{what}: {'FAILED' if failed else 'skipped'}: {failure}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
