"""The words and answers of `opcheck lint`."""

# ruff: noqa: E501 - goldens are as long as what they hold

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import expecttest
import pytest

from opcheck_suite import cli
from opcheck_suite.lint import files, rules
from opcheck_suite.lint.findings import Finding
from opcheck_suite.lint.output import render
from opcheck_suite.lint.run import Linted
from opcheck_suite.registry import UsageError
from tests.cli.conftest import misuse  # noqa: F401 - a fixture

ROOT = pathlib.Path(__file__).parents[2]

OPS = """\
import torch

NS = "aten"


@torch.library.impl_abstract("mine::f")
def f(x): ...


@torch.library.custom_op(f"{NS}::g", mutates_args=())
def g(x): ...
"""

KERNEL = """\
TORCH_LIBRARY(mine, m) {
  m.impl_abstract_pystub("mine.ops");
}
"""


@pytest.fixture
def sources(scratch):
    """A small library, with one file that does not parse and one that is no text."""
    (scratch / "mine" / "csrc").mkdir(parents=True)
    (scratch / "mine" / "ops.py").write_text(OPS)
    (scratch / "mine" / "csrc" / "kernel.cu").write_text(KERNEL)
    (scratch / "mine" / "broken.py").write_text("def f(x:\n    pass\n")
    (scratch / "mine" / "bytes.py").write_bytes(b"x = 1\ny = '\xff'\n")
    (scratch / "mine" / "clean.py").write_text("import torch\n")
    return scratch


@pytest.fixture
def run(capsys):
    """Runs the verb; returns its status and what it prints."""

    def call(*words: str) -> tuple[int, str]:
        status = cli.main(["lint", *words])
        out, err = capsys.readouterr()
        assert err == ""
        return status, out.rstrip("\n")

    return call


def test_text(sources, run):
    status, out = run("mine")
    assert status == 1
    expecttest.assert_expected_inline(
        re.sub(r"Python 3\.\d+", "Python 3.N", out),
        """\
mine/broken.py:1:6 lint.syntax Python 3.N cannot parse it: '(' was never closed
mine/bytes.py:1:1 lint.unreadable it cannot be decoded: byte 11 is not utf-8
mine/ops.py:6:2 lint.impl_abstract torch.library.impl_abstract is deprecated since torch 2.4; use torch.library.register_fake, which takes the same arguments
mine/ops.py:10:26 lint.reserved_namespace namespace 'aten' is reserved for PyTorch's own operators; use one named after your library
mine/csrc/kernel.cu:2:5 lint.impl_abstract_pystub impl_abstract_pystub is deprecated since torch 2.4; use set_python_module, which takes the same arguments
5 findings in 4 of 5 files""",
    )


def test_github(sources, run):
    status, out = run("mine/ops.py", "--format", "github")
    assert status == 1
    expecttest.assert_expected_inline(
        out,
        """\
::error file=mine/ops.py,line=6,col=2,title=lint.impl_abstract::torch.library.impl_abstract is deprecated since torch 2.4; use torch.library.register_fake, which takes the same arguments
::error file=mine/ops.py,line=10,col=26,title=lint.reserved_namespace::namespace 'aten' is reserved for PyTorch's own operators; use one named after your library""",
    )
    assert run("mine/clean.py", "--format", "github") == (0, "")


def test_what_means_something_in_an_annotation_is_escaped():
    odd = Finding("a,b:c%.py", 1, 2, "lint.syntax", "50% of\nit")
    expecttest.assert_expected_inline(
        render(Linted(1, (odd,)), "github"),
        """::error file=a%2Cb%3Ac%25.py,line=1,col=2,title=lint.syntax::50%25 of%0Ait""",
    )


def test_json(sources, run):
    status, out = run("mine/ops.py", "mine/clean.py", "--format", "json")
    assert status == 1
    expecttest.assert_expected_inline(
        out,
        """\
{
  "schema_version": 1,
  "files": 2,
  "findings": [
    {
      "path": "mine/ops.py",
      "line": 6,
      "column": 2,
      "id": "lint.impl_abstract",
      "message": "torch.library.impl_abstract is deprecated since torch 2.4; use torch.library.register_fake, which takes the same arguments",
      "instead": "torch.library.register_fake, which takes the same arguments",
      "docs": "https://github.com/pytorch/pytorch/pull/123937"
    },
    {
      "path": "mine/ops.py",
      "line": 10,
      "column": 26,
      "id": "lint.reserved_namespace",
      "message": "namespace 'aten' is reserved for PyTorch's own operators; use one named after your library",
      "instead": "a namespace named after your library",
      "docs": "https://docs.pytorch.org/docs/stable/library.html#torch.library.custom_op"
    }
  ]
}""",
    )
    assert json.loads(run("mine/clean.py", "--format", "json")[1]) == {"schema_version": 1, "files": 1, "findings": []}


def test_nothing_to_change(sources, run):
    assert run("mine/clean.py") == (0, "no findings in 1 file")


def test_wrong_words(sources, misuse):  # noqa: F811 - the fixture
    (sources / "notes.md").touch()
    (sources / "empty").mkdir()
    found = [
        misuse("lint"),
        misuse("lint", "mine/osp.py"),
        misuse("lint", "mine/clean.py", "min"),
        misuse("lint", "no/such/folder"),
        misuse("lint", "notes.md"),
        misuse("lint", "empty"),
        misuse("lint", "mine", "--format", "githbu"),
        misuse("lint", "mine", "--unused-ignore=x"),
        misuse("lint", "mine", "--unsued-ignores"),
        misuse("explain", "lint.impl_abstrac"),
    ]
    expecttest.assert_expected_inline(
        "\n".join(found),
        """\
opcheck: the following arguments are required: PATH
opcheck: there is no file 'mine/osp.py'; did you mean 'mine/ops.py'?
opcheck: there is no file 'min'; did you mean 'mine'?
opcheck: there is no file 'no/such/folder'
opcheck: 'notes.md' is neither Python nor C++ by its ending: .py, .pyi, .cpp, .cc, .cxx, .cu, .cuh, .h, .hpp, .c++, .hh, .hxx, .inl, .hip, .mm
opcheck: no Python or C++ file below 'empty'
opcheck: unknown format 'githbu'; did you mean 'github'?
opcheck: argument --unused-ignores: ignored explicit argument 'x'
opcheck: unknown option '--unsued-ignores'; did you mean '--unused-ignores'?
opcheck: unknown rule 'lint.impl_abstrac'; did you mean 'lint.impl_abstract'?""",
    )


def test_the_rules_are_listed_and_explained(run, capsys):
    status, out = run("--list")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == rules.ids()
    for id in rules.ids():
        assert cli.main(["explain", id]) == 0
        assert capsys.readouterr().out.startswith(f"{id}: ")


def test_a_rule_is_explained_with_the_names_that_it_finds(capsys):
    assert cli.main(["explain", "lint.impl_abstract"]) == 0
    expecttest.assert_expected_inline(
        capsys.readouterr().out,
        """\
lint.impl_abstract: register_fake under its old name

what  Finds imports and uses of torch.library.impl_abstract.

why   It was renamed in torch 2.4, warns whenever it is used, and is going to be removed.

fix   Use torch.library.register_fake, which takes the same arguments.

names
  torch.library.impl_abstract
      use torch.library.register_fake, which takes the same arguments

more  https://github.com/pytorch/pytorch/pull/123937
""",
    )


# files


def test_folders_are_searched_and_what_is_built_or_installed_is_left_out(scratch, run):
    for name in ("a.py", "b.pyi", "sub/c.cuh", "sub/d.txt", "build/e.py", ".hidden/f.py", "node_modules/g.py", ".h.py"):
        (scratch / name).parent.mkdir(parents=True, exist_ok=True)
        (scratch / name).write_text("def (:\n")
    (scratch / "env").mkdir()
    (scratch / "env" / "pyvenv.cfg").touch()
    (scratch / "env" / "i.py").write_text("def (:\n")
    assert [str(path) for path in files.collect(["."])] == ["a.py", "b.pyi", "sub/c.cuh"]
    assert [str(path) for path in files.collect(["build", ".hidden/f.py"])] == ["build/e.py", ".hidden/f.py"]
    assert [str(path) for path in files.collect(["."], exclude=["sub", "b.*"])] == ["a.py"]
    assert [str(path) for path in files.collect([".", "a.py"], exclude=["[!s]*.py*"])] == ["sub/c.cuh", "a.py"]
    assert run("sub/c.cuh", "--exclude", "c*")[0] == 0
    with pytest.raises(UsageError, match="no Python or C"):
        files.collect(["sub"], exclude=["sub/c*"])
    assert [str(path) for path in files.collect(["a.py", ".", "./a.py"])] == ["a.py", "b.pyi", "sub/c.cuh"]


@pytest.mark.parametrize("ending", files.PYTHON + files.CPP)
def test_each_ending_is_read(ending, scratch, run):
    python = ending in files.PYTHON
    (scratch / f"it{ending}").write_text("import torch._custom_op\n" if python else "TORCH_LIBRARY(aten, m) {}\n")
    assert run(".")[0] == 1


def test_a_script_without_an_ending_is_read(scratch, run):
    (scratch / "script").write_text("#!/usr/bin/env python3\nimport torch._custom_op\n")
    assert run("script")[0] == 1


def test_links_in_circles_and_to_nowhere_end(scratch, run):
    (scratch / "a.py").write_text("x = 1\n")
    (scratch / "circle").symlink_to(scratch)
    (scratch / "nowhere.py").symlink_to(scratch / "gone.py")
    assert run(".") == (0, "no findings in 1 file")


def test_a_file_that_may_not_be_read_is_a_finding(scratch, run, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    (scratch / "a.py").write_text("x = 1\n")
    monkeypatch.setattr(pathlib.Path, "read_bytes", refuse)  # whoever runs the tests may be allowed to read everything
    assert run("a.py") == (1, "a.py:1:1 lint.unreadable it cannot be read: Permission denied\n1 finding in 1 of 1 file")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("utf8_with_mark.py", b"\xef\xbb\xbfimport torch._custom_op\n"),
        ("latin.py", b"# coding: latin-1\nimport torch._custom_op  # \xe9\n"),
        ("carriage.py", b"x = 1\r\nimport torch._custom_op\r\n"),
        ("latin.cpp", b"// \xe9\r\nTORCH_LIBRARY(aten, m) {}\r\n"),
        ("utf8_with_mark.cpp", b"\xef\xbb\xbfTORCH_LIBRARY(aten, m) {}\n"),
        ("wide.cpp", "TORCH_LIBRARY(aten, m) {}\n".encode("utf-16")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_encodings_are_understood(name, data, scratch, run):
    (scratch / name).write_bytes(data)
    status, out = run(name)
    assert (status, out.splitlines()[-1]) == (1, "1 finding in 1 of 1 file")
    assert "lint.custom_op" in out or "lint.reserved_namespace" in out


def test_cpp_that_cannot_be_read(scratch, run):
    (scratch / "a.cpp").write_text("int x;\n  /* TORCH_LIBRARY(aten, m)\n")
    (scratch / "b.cpp").write_text('TORCH_LIBRARY(mine, m) { m.def(R"x(f() -> ())"); }\n')
    (scratch / "c.cpp").write_bytes(b"TORCH_LIBRARY\0")
    expecttest.assert_expected_inline(
        run(".")[1],
        """\
a.cpp:2:3 lint.syntax it does not parse: a comment does not end
b.cpp:1:32 lint.syntax it does not parse: a raw string does not end
c.cpp:1:1 lint.unreadable it cannot be decoded: it holds a byte 0
3 findings in 3 of 3 files""",
    )


# ignore comments


IGNORES = {
    "on the line": "import torch._custom_op  # opcheck: ignore[lint.custom_op]",
    "beside others": "import torch._custom_op  # noqa: F401  # opcheck:ignore [ lint.custom_op ] - old torch",
    "on the line before": "# opcheck: ignore[lint.custom_op]\n# because\nimport torch._custom_op",
    "several ids": "import torch._custom_ops; torch._custom_ops.custom_op('aten::f')"
    "  # opcheck: ignore[lint.custom_op, lint.reserved_namespace]",
    "in C++": "TORCH_LIBRARY(aten, m) {}  // opcheck: ignore[lint.reserved_namespace]",
    "in C": "TORCH_LIBRARY(aten, m) {}  /* opcheck: ignore[lint.reserved_namespace] */  //",
    "on a line before in C++": "/* opcheck: ignore[lint.reserved_namespace],\n   it is ours */\nTORCH_LIBRARY(aten, m) {} //",
}


@pytest.mark.parametrize("title", IGNORES)
def test_findings_are_ignored(title, scratch, run):
    name = "a.cpp" if "//" in IGNORES[title] else "a.py"
    (scratch / name).write_text(IGNORES[title] + "\n")
    assert run(name, "--unused-ignores")[0] == 0


def test_what_is_no_ignore_ignores_nothing(scratch, run):
    (scratch / "a.py").write_text(
        """\
import torch._custom_op  # opcheck: ignore[lint.private]
import torch._custom_op; x = "# opcheck: ignore[lint.custom_op]"
import torch._custom_op  # opcheck: ignore
import torch._custom_op  # opcheck: ignore[]
import torch._custom_op  # opcheck: ignore[custom_op]
import torch._custom_op  # opcheck: ignore[lint.custom_ops, lint.custom_op]
x = 1  # opcheck: ignore[lint.custom_op]
import torch._custom_op
"""
    )
    expecttest.assert_expected_inline(
        run("a.py", "--unused-ignores")[1],
        """\
a.py:1:8 lint.custom_op torch._custom_op is deprecated since torch 2.5; use torch.library
a.py:1:27 lint.unused_ignore lint.private finds nothing here; remove it
a.py:2:8 lint.custom_op torch._custom_op is deprecated since torch 2.5; use torch.library
a.py:3:8 lint.custom_op torch._custom_op is deprecated since torch 2.5; use torch.library
a.py:3:27 lint.ignore it names no rule; write opcheck: ignore[lint.impl_abstract]
a.py:4:8 lint.custom_op torch._custom_op is deprecated since torch 2.5; use torch.library
a.py:4:27 lint.ignore it names no rule; write opcheck: ignore[lint.impl_abstract]
a.py:5:8 lint.custom_op torch._custom_op is deprecated since torch 2.5; use torch.library
a.py:5:27 lint.ignore there is no rule 'custom_op'; did you mean 'lint.custom_op'?
a.py:6:27 lint.ignore there is no rule 'lint.custom_ops'; did you mean 'lint.custom_op'?
a.py:7:9 lint.unused_ignore lint.custom_op finds nothing here; remove it
a.py:8:8 lint.custom_op torch._custom_op is deprecated since torch 2.5; use torch.library
12 findings in 1 of 1 file""",
    )
    assert "unused" not in run("a.py")[1]


# the hook of pre-commit, and what it costs

HOOK = re.compile(r"(?:#.*|(?:- |  )(?P<key>[a-z_]+): (?P<value>[\w./ -]+|'[^']*'|\[\w+\]))")


def hook() -> dict[str, str]:
    """The one hook. The lines are of a form that is YAML whatever they say."""
    lines = (ROOT / ".pre-commit-hooks.yaml").read_text().splitlines()
    found = [HOOK.fullmatch(line) for line in lines]
    assert all(found), lines
    assert sum(line.startswith("- ") for line in lines) == 1
    return {match["key"]: match["value"].strip("'") for match in found if match and match["key"]}


def test_the_hook_file_is_what_pre_commit_reads():
    keys = hook()
    assert {"id", "name", "entry", "language"} <= set(keys)
    assert keys["language"] == "script"
    assert os.access(ROOT / keys["entry"], os.X_OK)


def test_the_hook_takes_the_endings_that_are_read():
    pattern = hook()["files"]
    assert all(re.search(pattern, f"a/b{ending}") for ending in files.PYTHON + files.CPP)
    assert not [name for name in ("a.md", "apy", "a.pyc", "a.c", "a.hppx") if re.search(pattern, name)]


def test_the_hook_runs_without_any_package(sources):
    command = [sys.executable, "-I", "-S", str(ROOT / hook()["entry"])]
    for words, status, told in (
        (["mine/ops.py", "mine/clean.py"], 1, "2 findings in 1 of 2 files"),
        (["mine/clean.py"], 0, "no findings in 1 file"),
        (["mine/osp.py"], 2, ""),
    ):
        done = subprocess.run([*command, *words], cwd=sources, capture_output=True, text=True)
        assert done.returncode == status, done.stderr
        assert done.stdout.strip().endswith(told)
        assert done.stderr == (
            "" if status < 2 else "opcheck: there is no file 'mine/osp.py'; did you mean 'mine/ops.py'?\n"
        )
