"""Compile the C++ reference ops on first use, and load them.

A library is compiled once for each torch, Python, compiler and state of its sources; the folder's name carries all of
these, so a finished folder is never stale and never rewritten. Two processes may ask at the same time: one compiles,
the other waits.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import functools
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from reference_ops.native import _tools
from reference_ops.native._tools import NotBuilt, NotOffered

#: -O1: the ops are small, and the time goes into torch's headers.
CXX_FLAGS = ("-O1",)

_CUDA_SWITCH = "OPCHECK_CUDA"


@dataclasses.dataclass(frozen=True)
class Library:
    """A shared library to build, which registers the ops of one namespace when it is loaded."""

    namespace: str
    capability: str
    """What a spec lacks when the library is missing; see ``OpSpec.unavailable``."""
    units: tuple[tuple[str, ...], ...]
    """Sources by compilation unit, as glob patterns below csrc. torch's headers take about ten seconds a unit and
    most sources a fraction of one, so that sources are compiled together and not one by one."""
    flags: tuple[str, ...] = ()
    needs_header: str = ""
    """Header of torch without which there is nothing to compile against."""
    kernels: str = ""
    """Folder of CUDA kernels and bindings below csrc, which join in where torch has CUDA. A library of these alone is
    not offered elsewhere."""


LIBRARIES = {
    "native": Library(
        "reference_cpp",
        capability="native",
        units=(("library.cpp", "cpu/*.cpp", "meta/*.cpp", "negative/*.cpp"), ("autograd/*.cpp",)),
        kernels="cuda",
    ),
    "broken": Library("broken_cpp", capability="native", units=(("broken/*.cpp",),)),
    # the rest of these ops is in Python, reference_ops/broken/cuda.py
    "broken_cuda": Library("broken_cuda", capability="cuda", units=(), kernels="broken/cuda"),
    "stable": Library(
        "reference_stable",
        capability="stable",
        units=(("stable/*.cpp",),),
        # the stable ABI as of torch 2.10; later versions keep it
        flags=("-DTORCH_TARGET_VERSION=0x020a000000000000",),
        # the header that knows this flag, new in 2.10 as well
        needs_header="torch/csrc/stable/version.h",
        kernels="stable/cuda",
    ),
    "sim": Library("simdevice", capability="sim", units=(("simdevice/*.cpp",),)),
}


@dataclasses.dataclass(frozen=True)
class Built:
    """A library that is loaded."""

    path: Path
    seconds: float
    """What compiling took; 0.0 when it had been compiled before."""
    cuda: str
    """Empty when the CUDA kernels are bound, else why not."""


# --------------------------------------------------------------------------- loading


def load_native() -> None:
    """Make the ops of ``reference_cpp`` available. Raises `NotBuilt`; cheap after the first call."""
    load("native")


def load_broken() -> None:
    """Make the ops of ``broken_cpp`` available. Raises `NotBuilt`; cheap after the first call."""
    load("broken")


def load_stable() -> None:
    """Make the ops of ``reference_stable`` available. Raises `NotBuilt`; cheap after the first call."""
    load("stable")


def load(name: str) -> Built:
    """Compile one of `LIBRARIES` if need be, and load it. Raises `NotBuilt`, the same again when asked again."""
    outcome = _outcome(name)
    if isinstance(outcome, NotBuilt):
        raise outcome
    return outcome


def missing(name: str) -> dict[str, str]:
    """For ``OpSpec(unavailable=...)``: empty when the library loads, else ``{capability: why it does not}``."""
    outcome = _outcome(name)
    return {LIBRARIES[name].capability: str(outcome)} if isinstance(outcome, NotBuilt) else {}


@functools.cache
def _outcome(name: str) -> Built | NotBuilt:
    try:
        return _build_and_load(LIBRARIES[name])
    except NotBuilt as failure:
        return failure


def _build_and_load(library: Library) -> Built:
    import torch

    if sys.platform == "win32":
        raise NotOffered("the C++ reference ops are built on Linux and macOS only")
    root = csrc_root()
    if library.needs_header and not _torch_has_header(library.needs_header):
        raise NotOffered(f"torch {torch.__version__} has no {library.needs_header}: install torch 2.10 or later")
    no_cuda = _why_no_cuda() if library.kernels else "the library has no CUDA kernels"
    if no_cuda and not library.units:
        raise NotOffered(no_cuda)
    folder = build_root() / _folder_name(library, root, with_cuda=not no_cuda)
    product = folder / f"{library.namespace}.so"
    finished = folder / "finished"

    seconds = 0.0
    if not finished.exists():
        with _locked(folder):
            if not finished.exists():  # else another process has been here while this one waited
                started = time.monotonic()
                with _workshop(folder) as workshop:
                    _compile(library, root, workshop, with_cuda=not no_cuda)
                    (workshop / product.name).replace(product)
                seconds = time.monotonic() - started
                finished.touch()
                return Built(product, seconds, no_cuda)  # torch has loaded what it has built
    try:
        torch.ops.load_library(product)
    except OSError as error:
        raise NotBuilt(f"{product} does not load: {error}; delete {folder} to have it built again") from error
    return Built(product, seconds, no_cuda)


# --------------------------------------------------------------------------- places and keys


def csrc_root() -> Path:
    """The folder of the C++ sources, which lies beside the package in a checkout. Wheels carry no C++."""
    folder = Path(__file__).resolve().parents[2] / "csrc"
    if not (folder / "library.cpp").is_file():
        raise NotBuilt(f"the C++ sources are missing: {folder} does not have them; run from a checkout")
    return folder


def build_root() -> Path:
    """The folder of all builds: ``$OPCHECK_BUILD_DIR``, else ``build/native`` in a checkout, else the user's cache."""
    if chosen := os.environ.get("OPCHECK_BUILD_DIR"):
        return Path(chosen).expanduser().absolute()
    root = csrc_root()
    if root.name == "csrc" and (root.parent / "pyproject.toml").is_file():
        return root.parent / "build" / "native"
    return Path.home() / ".cache" / "opcheck_suite" / "native"


def _folder_name(library: Library, root: Path, *, with_cuda: bool) -> str:
    import torch

    digest = hashlib.sha256()
    facts = [torch.__version__, _tools.compiler(), *CXX_FLAGS, *library.flags, *_cuda_flags(with_cuda=with_cuda)]
    facts += [platform.machine(), *map(str, library.units)]
    if with_cuda:
        nvcc = _tools.version_of(_tools.nvcc())
        facts += [str(torch.version.cuda), nvcc, _tools.gpus(), os.environ.get("TORCH_CUDA_ARCH_LIST", "")]
    for fact in facts:
        digest.update(fact.encode() + b"\0")
    for source in _sources(library, root, with_cuda=with_cuda):
        digest.update(str(source.relative_to(root)).encode() + b"\0" + source.read_bytes() + b"\0")
    python = sys.implementation.cache_tag
    return f"{library.namespace}-torch{torch.__version__}-{python}-{digest.hexdigest()[:12]}"


def _sources(library: Library, root: Path, *, with_cuda: bool) -> list[Path]:
    """What a library is compiled from, headers that lie beside it or that all share included."""
    folders = {root} | {root / Path(pattern).parent for unit in library.units for pattern in unit}
    if with_cuda:
        folders |= {root / library.kernels, root / "cuda"}
    return sorted(source for folder in folders for source in folder.glob("*") if source.is_file())


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder against other processes. The kernel lets go of the lock however its holder ends."""
    import fcntl

    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = (folder / "flock").open("w")
    except OSError as error:
        raise NotBuilt(f"cannot write to {folder}: {error}; set OPCHECK_BUILD_DIR to a folder that can") from error
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _workshop(folder: Path) -> Iterator[Path]:
    """A fresh folder to build in, which stays behind for a look when the build fails. Call it under `_locked`.

    A process that was killed while it built leaves two things that must not be met again: torch's own lock, a file
    torch waits for without end, and a compiler that may still be writing.
    """
    for left_over in folder.glob("build-*"):
        shutil.rmtree(left_over, ignore_errors=True)
    workshop = Path(tempfile.mkdtemp(prefix="build-", dir=folder))
    yield workshop
    shutil.rmtree(workshop, ignore_errors=True)


def _torch_has_header(header: str) -> bool:
    import torch

    return (Path(torch.__file__).parent / "include" / header).is_file()


# --------------------------------------------------------------------------- C++


def _compile(library: Library, root: Path, folder: Path, *, with_cuda: bool) -> None:
    """Compile and load a library in its folder. Raises `NotBuilt`."""
    if importlib.util.find_spec("setuptools") is None:
        # torch.utils.cpp_extension of some versions imports it
        raise NotBuilt("setuptools is missing: pip install setuptools")
    sources = [_write_unit(folder, root, number, unit) for number, unit in enumerate(library.units)]
    if with_cuda:
        sources.append(_write_unit(folder, root, len(sources), (f"{library.kernels}/*.cpp",)))
        sources += [str(kernel) for kernel in sorted((root / library.kernels).glob("*.cu"))]
    print(f"opcheck_suite: compiling {library.namespace} in {folder} (once, about a minute)", file=sys.stderr)
    try:
        with _torch_extension_tools(with_cuda=with_cuda) as tools:
            tools.load(
                library.namespace,
                sources,
                extra_cflags=[*CXX_FLAGS, *library.flags],
                extra_cuda_cflags=[*CXX_FLAGS, *_cuda_flags(with_cuda=with_cuda)],
                build_directory=str(folder),
                with_cuda=with_cuda,
                is_python_module=False,
            )
    except NotBuilt:
        raise
    except (RuntimeError, OSError, ValueError, ImportError, subprocess.SubprocessError) as error:
        hint = f"; {_CUDA_SWITCH}=0 builds without CUDA" if with_cuda else ""
        why = _tools.essence(str(error))
        raise NotBuilt(f"compiling {library.namespace} in {folder} failed{hint}: {why}") from error


@contextlib.contextmanager
def _torch_extension_tools(*, with_cuda: bool) -> Iterator[ModuleType]:
    """``torch.utils.cpp_extension``, made to find ninja and the CUDA toolkit. Raises `NotBuilt`."""
    ninja_folder = _tools.ninja_folder()
    if ninja_folder is None:
        raise NotBuilt("ninja is missing: pip install ninja")
    with warnings.catch_warnings():
        # What torch and setuptools have to say about each other is not the caller's concern.
        warnings.simplefilter("ignore")
        from torch.utils import cpp_extension

        path, toolkit = os.environ.get("PATH", ""), cpp_extension.CUDA_HOME
        try:
            if ninja_folder:
                os.environ["PATH"] = os.pathsep.join([ninja_folder, path])
            if with_cuda:
                # torch takes the parent folder of the nvcc on PATH, which is wrong when that is a link or a script
                cpp_extension.CUDA_HOME = str(_tools.toolkit(_tools.nvcc()))
            yield cpp_extension
        finally:
            os.environ["PATH"], cpp_extension.CUDA_HOME = path, toolkit


def _write_unit(folder: Path, root: Path, number: int, patterns: tuple[str, ...]) -> str:
    """Write a compilation unit that includes all sources of some patterns, and return its path."""
    sources = [source for pattern in patterns for source in sorted(root.glob(pattern))]
    if not sources:
        raise NotBuilt(f"the C++ sources are incomplete: nothing matches {', '.join(patterns)} in {root}")
    unit = folder / f"unit{number}.cpp"
    unit.write_text("".join(f'#include "{source}"\n' for source in sources))
    return str(unit)


# --------------------------------------------------------------------------- CUDA


def _why_no_cuda() -> str:
    """Why the CUDA kernels are not bound; empty when they are. ``OPCHECK_CUDA`` (0 or 1) overrides the automatism."""
    import torch

    switch = os.environ.get(_CUDA_SWITCH, "")
    if switch not in ("", "0", "1"):
        raise NotBuilt(f"{_CUDA_SWITCH} must be 0 or 1, got {switch!r}")
    if switch == "0":
        return f"{_CUDA_SWITCH} is 0"
    why = ""
    if torch.version.cuda is None:
        why = f"torch {torch.__version__} is built without CUDA"
    else:
        try:
            _tools.toolkit(_tools.nvcc())
        except NotOffered as failure:
            why = str(failure)
    if why and switch == "1":
        raise NotBuilt(f"{_CUDA_SWITCH} is 1, but {why}")
    return why


def _cuda_flags(*, with_cuda: bool) -> list[str]:
    """Which GPU to compile for. Torch itself would ask the CUDA driver, after which this process must not fork."""
    return ["-arch=native"] if with_cuda and not os.environ.get("TORCH_CUDA_ARCH_LIST") else []


def cuda_bound(name: str = "native") -> bool:
    """Whether the ops of a library that have CUDA kernels are bound to them, be there a GPU or not."""
    outcome = _outcome(name)
    return not isinstance(outcome, NotBuilt) and not outcome.cuda


def compile_cuda_kernels() -> list[Path]:
    """Compile every CUDA kernel to an object file, which needs nvcc but neither a GPU nor a torch with CUDA.

    This is how a machine without a GPU finds that a kernel no longer compiles. Returns the objects.
    Raises `NotOffered` without nvcc, and `NotBuilt` with the compiler's errors.
    """
    nvcc, root = _tools.nvcc(), csrc_root()
    folders = sorted({root / library.kernels for library in LIBRARIES.values() if library.kernels})
    digest = hashlib.sha256(f"{nvcc} {_tools.version_of(nvcc)}".encode())
    for source in [source for folder in folders for source in sorted([*folder.glob("*.h"), *folder.glob("*.cu")])]:
        digest.update(str(source.relative_to(root)).encode() + b"\0" + source.read_bytes() + b"\0")
    output = build_root() / f"cuda-kernels-{digest.hexdigest()[:12]}"

    def compiled(kernel: Path) -> Path:
        product = output / "-".join([*kernel.relative_to(root).parts[:-1], f"{kernel.stem}.o"])
        if not product.exists():
            partial = product.with_suffix(".partial.o")
            command = [nvcc, "-std=c++17", *CXX_FLAGS, "-c", str(kernel), "-o", str(partial)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise NotBuilt(f"nvcc cannot compile {kernel}: {_tools.essence(done.stderr + done.stdout)}")
            partial.rename(product)
        return product

    kernels = [kernel for folder in folders for kernel in sorted(folder.glob("*.cu"))]
    with _locked(output), concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(compiled, kernels))
