"""Compile all native reference ops and say what was built, and where: ``python -m reference_ops.native``.

The exit status is 1 when something that this machine should be able to compile does not compile.
"""

from __future__ import annotations

import sys

from reference_ops.native import _build


def main() -> int:
    """Build everything; print a line for each library and for the CUDA kernels."""
    failed = False
    for name, library in _build.LIBRARIES.items():
        try:
            built = _build.load(name)
        except _build.NotBuilt as failure:
            failed |= _report(library.namespace, failure)
            continue
        how = f"compiled in {built.seconds:.1f} s" if built.seconds else "was compiled before"
        print(f"{library.namespace}: {how}: {built.path}")
        if library.kernels:
            print(f"{library.namespace}: CUDA kernels " + (f"not bound: {built.cuda}" if built.cuda else "bound"))
    try:
        objects = _build.compile_cuda_kernels()
    except _build.NotBuilt as failure:
        failed |= _report("CUDA kernels", failure)
    else:
        print(f"CUDA kernels: {', '.join(item.stem for item in objects)} compiled: {objects[0].parent}")
    return 1 if failed else 0


def _report(what: str, failure: _build.NotBuilt) -> bool:
    """Print why something is not there. Returns whether that is a failure."""
    failed = not isinstance(failure, _build.NotOffered)
    print(f"{what}: {'FAILED' if failed else 'skipped'}: {failure}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
