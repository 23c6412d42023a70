"""The tools that compile the native reference ops, and where they are: C++ compiler, ninja, CUDA toolkit."""

from __future__ import annotations

import functools
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path


class NotBuilt(RuntimeError):
    """A library could not be compiled or loaded. The text says what is missing and what to do."""


class NotOffered(NotBuilt):
    """Nothing is wrong, but this torch or this machine lacks what the library is about."""


@functools.cache
def compiler() -> str:
    """The C++ compiler's path and version. Raises `NotBuilt`."""
    command = shlex.split(os.environ.get("CXX", "c++"))
    found = shutil.which(command[0]) if command else None
    if found is None:
        if "CXX" in os.environ:
            raise NotBuilt(f"no C++ compiler: CXX is {os.environ['CXX']!r}, which is not there; unset it or install it")
        raise NotBuilt("no C++ compiler: install g++ (Debian: apt-get install g++)")
    return f"{found} {version_of(found, *command[1:])}"


def version_of(program: str, *arguments: str) -> str:
    """What a compiler says of its version, on one line. Raises `NotBuilt`."""
    try:
        done = subprocess.run([program, *arguments, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotBuilt(f"{program} --version fails: {error}") from error
    lines = done.stdout.splitlines()
    # nvcc has its version in the last lines, all others in the first
    return " ".join(lines if "nvcc" in program else lines[:1])


def ninja_folder() -> str | None:
    """A folder to add to PATH so that torch finds ninja; empty when it is there already, None when there is none.

    A virtual environment that is used without being activated has ninja, but not on PATH.
    """
    if shutil.which("ninja"):
        return ""
    folders = [Path(sys.executable).parent]
    if importlib.util.find_spec("ninja"):
        import ninja

        folders.append(Path(ninja.BIN_DIR))
    return next((str(folder) for folder in folders if (folder / "ninja").is_file()), None)


def essence(output: str) -> str:
    """The lines of a compiler's output that tell what went wrong, the first few of them."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower() and "Error building extension" not in line]
    return "\n".join(telling[:5] or lines[-5:]) or "no output"


def nvcc() -> str:
    """Path of nvcc. Raises `NotOffered`."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    candidates = [shutil.which("nvcc", path=str(Path(home) / "bin"))] if home else []
    candidates += [shutil.which("nvcc"), shutil.which("nvcc", path="/usr/local/cuda/bin")]
    found = next(filter(None, candidates), None)
    if found is None:
        raise NotOffered("nvcc is missing: install the CUDA toolkit, or set CUDA_HOME to where it is")
    return found


def toolkit(nvcc: str) -> Path:
    """The folder of the CUDA toolkit that an nvcc belongs to, as nvcc itself says. Raises `NotOffered`."""
    done = subprocess.run([nvcc, "--dryrun", "-c", "any.cu"], capture_output=True, text=True)
    for line in (done.stderr + done.stdout).splitlines():
        name, found, top = line.removeprefix("#$ ").partition("=")
        if found and name == "TOP" and (Path(top) / "include" / "cuda_runtime.h").is_file():
            return Path(top).resolve()
    raise NotOffered(f"{nvcc} does not say where its toolkit is: install the whole CUDA toolkit, or set CUDA_HOME")


def gpus() -> str:
    """The models of the GPUs here, as their driver lists them: code for one may not run on another."""
    lines = [
        line
        for information in Path("/proc/driver/nvidia/gpus").glob("*/information")
        for line in information.read_text().splitlines()
        if line.startswith("Model")
    ]
    return " ".join(sorted(set(lines)))
