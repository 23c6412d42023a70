"""The arrows between modules point one way."""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterator

import pytest

import opcheck_suite

ROOT = pathlib.Path(opcheck_suite.__file__).parent

#: Layer -> its modules, and the layers that these may import besides their own.
ARROWS = {
    "door": (
        "cli plugin api documents",
        "lint tool engine breaks verbs report specs isolate options registry model",
    ),
    "lint": ("lint", "tool registry"),
    "verbs": ("comparing knownedit", "report options registry model"),
    "breaks": ("breaks", "specs tool registry model"),
    "engine": ("engine audit jobs results sharding", "session isolate specs options tool registry model"),
    "report": ("reports progress", "registry model"),
    "session": ("session reduction shrinking", "context specs tool registry isolate model"),
    "context": (
        "context alternatives captured casting compilepairs costs exporting fakepairs gradients layoutpairs mapped"
        " programs pykernel queued rounding signatures surroundings sweeps threaded",
        "specs tool model",
    ),
    "specs": ("specs", "tool registry model"),
    "check": ("checks", "context tool registry"),
    "tool": (
        "compare compiling deprecated devices elsewhere fakes graphbreaks guarding inductor inputs memory ops places"
        " provenance reads registrations reserved situations state",
        "registry model",
    ),
    "options": ("options known", "registry model"),
    "registry": ("registry", "model check"),
    "isolate": ("isolate", ""),
    "model": ("model", ""),
}
LAYER = {module: layer for layer, (modules, _) in ARROWS.items() for module in modules.split()}

#: `print(report)` renders text: the one import that is put off until it is needed, since the model knows no renderer.
EXCEPTIONS = {("model", "reports")}


def files() -> list[pathlib.Path]:
    return sorted(ROOT.rglob("*.py"))


def module_of(path: pathlib.Path) -> str:
    """The part of the package that a file belongs to: ``engine``, ``checks``, ``inputs``..."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: pathlib.Path) -> Iterator[str]:
    """The parts of the package that a file imports, at its top or later."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.name.startswith("opcheck_suite."):
                    yield name.name.split(".")[1]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            if node.module == "opcheck_suite":
                yield from (name.name for name in node.names)
            elif (node.module or "").startswith("opcheck_suite."):
                yield node.module.split(".")[1]


def arrows() -> set[tuple[str, str]]:
    return {(module_of(path), target) for path in files() if path != ROOT / "__init__.py" for target in imports(path)}


def test_every_module_has_a_layer():
    assert {module_of(path) for path in files()} - {"__init__"} == set(LAYER)


def test_arrows_are_allowed():
    wrong = [
        f"{source} ({LAYER[source]}) imports {target} ({LAYER[target]})"
        for source, target in sorted(arrows() - EXCEPTIONS)
        if LAYER[source] != LAYER[target] and LAYER[target] not in ARROWS[LAYER[source]][1].split()
    ]
    assert wrong == []


def test_nothing_imports_a_door():
    assert [(source, target) for source, target in arrows() if LAYER[target] == "door"] == []


def test_checks_import_nothing_but_the_registry_the_context_and_helpers():
    allowed = {
        "registry",
        "context",
        "alternatives",
        "captured",
        "casting",
        "compare",
        "compilepairs",
        "compiling",
        "costs",
        "elsewhere",
        "exporting",
        "fakepairs",
        "fakes",
        "gradients",
        "inductor",
        "inputs",
        "layoutpairs",
        "mapped",
        "memory",
        "ops",
        "programs",
        "pykernel",
        "queued",
        "reads",
        "reserved",
        "rounding",
        "signatures",
        "state",
        "sweeps",
        "threaded",
    }
    assert {target for source, target in arrows() if source == "checks"} <= allowed


def test_the_model_imports_nothing_of_ours_when_it_is_loaded():
    body = ast.parse((ROOT / "model.py").read_text()).body
    names = [ast.unparse(node) for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [name for name in names if "opcheck_suite" in name or "torch" in name] == []


def test_the_exceptions_are_still_needed():
    assert arrows() >= EXCEPTIONS


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_too_long_to_read(path):
    assert len(path.read_text().splitlines()) <= 500


def test_there_is_no_utils_module():
    # the check `opcheck.utils` is about torch.library.opcheck's test_utils
    found = [p.relative_to(ROOT).as_posix() for p in files() if p.stem in ("utils", "util", "helpers", "common")]
    assert [name for name in found if not name.startswith("checks/")] == []
