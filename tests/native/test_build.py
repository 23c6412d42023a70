"""Compiling the native reference ops: what is missing is told, and what is compiled again is what has changed."""

from __future__ import annotations

import shutil

import pytest
import torch

from reference_ops.native import __main__ as command
from reference_ops.native import _build, _tools

LIBRARIES = _build.LIBRARIES

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not here")


def sources(name: str, *, with_cuda: bool) -> set[str]:
    root = _build.csrc_root()
    return {str(s.relative_to(root)) for s in _build._sources(LIBRARIES[name], root, with_cuda=with_cuda)}


def test_a_library_is_made_of_its_units_and_the_headers_beside_them():
    assert sources("broken", with_cuda=False) >= {
        "broken/library.cpp",
        "broken/memory.cpp",
        "broken/twice.h",
        "checks.h",
    }
    assert not any(name.startswith("broken/cuda") for name in sources("broken", with_cuda=False))
    assert {"cpu/plus.cpp", "meta/tile_rows.cpp", "negative/mutating.cpp"} <= sources("native", with_cuda=False)


@pytest.mark.parametrize("name", [name for name, library in LIBRARIES.items() if library.kernels])
def test_cuda_sources_count_where_they_are_compiled(name):
    without, added = sources(name, with_cuda=False), sources(name, with_cuda=True) - sources(name, with_cuda=False)
    assert not any("cuda/" in source for source in without)
    kernels = LIBRARIES[name].kernels
    assert {s for s in added if s.startswith(f"{kernels}/") and s.endswith(".cu")}
    assert "cuda/grid.h" in added


@pytest.mark.parametrize(("file", "changes"), [("cpu/plus.cpp", True), ("checks.h", True), ("cuda/plus.cu", False)])
def test_the_folder_of_a_build_without_cuda_is_named_by_what_is_in_it(tmp_path, file, changes):
    root = shutil.copytree(_build.csrc_root(), tmp_path / "csrc")
    before = _build._folder_name(LIBRARIES["native"], root, with_cuda=False)
    (root / file).write_text((root / file).read_text() + "\n")
    assert (_build._folder_name(LIBRARIES["native"], root, with_cuda=False) != before) == changes


@needs_nvcc
def test_the_folder_of_a_build_with_cuda_is_named_by_its_kernels_and_the_gpu(tmp_path, monkeypatch):
    root = shutil.copytree(_build.csrc_root(), tmp_path / "csrc")

    def name() -> str:
        return _build._folder_name(LIBRARIES["broken_cuda"], root, with_cuda=True)

    names = [name()]
    (root / "broken" / "cuda" / "kernels.cu").write_text("")
    names.append(name())
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")
    names.append(name())
    monkeypatch.setattr(_tools, "gpus", lambda: "Model: another one")
    names.append(name())
    assert len(set(names)) == 4


def test_a_library_of_cuda_kernels_alone_is_not_offered_without_cuda(monkeypatch):
    monkeypatch.setenv("OPCHECK_CUDA", "0")
    with pytest.raises(_build.NotOffered, match="OPCHECK_CUDA is 0"):
        _build._build_and_load(LIBRARIES["broken_cuda"])


def test_cuda_that_is_asked_for_and_lacking_is_a_failure(monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.delenv("OPCHECK_CUDA", raising=False)
    assert "is built without CUDA" in _build._why_no_cuda()
    monkeypatch.setenv("OPCHECK_CUDA", "1")
    with pytest.raises(_build.NotBuilt, match=r"OPCHECK_CUDA is 1, but torch .* is built without CUDA") as caught:
        _build._why_no_cuda()
    assert not isinstance(caught.value, _build.NotOffered)


def test_a_switch_that_is_neither_on_nor_off_is_refused(monkeypatch):
    monkeypatch.setenv("OPCHECK_CUDA", "yes")
    with pytest.raises(_build.NotBuilt, match="must be 0 or 1, got 'yes'"):
        _build._why_no_cuda()


def test_without_nvcc_nothing_is_offered(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(_build.NotOffered, match="nvcc is missing: install the CUDA toolkit, or set CUDA_HOME"):
        _tools.nvcc()
    with pytest.raises(_build.NotOffered):
        _build.compile_cuda_kernels()


def test_an_nvcc_without_its_toolkit_is_told(tmp_path):
    script = tmp_path / "nvcc"
    script.write_text("#!/bin/sh\necho '#$ TOP=/nowhere'\n")
    script.chmod(0o755)
    with pytest.raises(_build.NotOffered, match="does not say where its toolkit is"):
        _tools.toolkit(str(script))


@needs_nvcc
def test_every_kernel_compiles_without_torch_and_one_that_does_not_is_told(tmp_path, monkeypatch):
    objects = _build.compile_cuda_kernels()
    kernels = [k for library in LIBRARIES.values() if library.kernels for k in _cu_files(library.kernels)]
    assert len(objects) == len(kernels) == len(set(objects))
    assert all(made.stat().st_size for made in objects)

    root = tmp_path / "csrc"
    shutil.copytree(_build.csrc_root(), root)
    for kernel in kernels[1:]:
        (root / kernel).unlink()
    (root / kernels[0]).write_text("__global__ void kernel() { nonsense; }\n")
    monkeypatch.setattr(_build, "csrc_root", lambda: root)
    monkeypatch.setenv("OPCHECK_BUILD_DIR", str(tmp_path / "build"))
    with pytest.raises(_build.NotBuilt, match=r'nvcc cannot compile .*\n?.*"nonsense" is undefined'):
        _build.compile_cuda_kernels()


def _cu_files(folder: str) -> list[str]:
    root = _build.csrc_root()
    return [str(path.relative_to(root)) for path in sorted((root / folder).glob("*.cu"))]


def test_the_command_builds_what_is_named_and_refuses_other_names(monkeypatch, capsys):
    asked = []

    def load(name: str) -> _build.Built:
        asked.append(name)
        raise _build.NotOffered("not today") if name == "stable" else _build.NotBuilt("an error: line 3")

    monkeypatch.setattr(_build, "load", load)
    assert command.main(["stable"]) == 0
    assert capsys.readouterr().out == "reference_stable: skipped: not today\n"
    assert command.main(["stable", "native"]) == 1
    assert "reference_cpp: FAILED: an error: line 3" in capsys.readouterr().out
    assert asked == ["stable", "stable", "native"]
    with pytest.raises(SystemExit) as caught:
        command.main(["nativ"])
    assert caught.value.code == 2
    assert "there is no library 'nativ'" in capsys.readouterr().err


def test_every_library_has_a_namespace_of_its_own_and_something_to_compile():
    assert len({library.namespace for library in LIBRARIES.values()}) == len(LIBRARIES)
    assert all(library.units or library.kernels for library in LIBRARIES.values())
