"""What reports say of where their results come from."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from opcheck_suite import provenance


@pytest.fixture(autouse=True)
def afresh():
    provenance.library.cache_clear()


@pytest.fixture
def checkout(scratch):
    def git(*words: str) -> str:
        named = ["git", "-c", "user.name=me", "-c", "user.email=me@example.org", *words]
        return subprocess.run(named, cwd=scratch, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    (scratch / "specs.py").write_text("SPECS = []\n")
    git("add", "specs.py")
    git("commit", "-q", "-m", "specs")
    return git


def test_the_commit_of_a_checkout_and_whether_files_differ(scratch, checkout):
    commit = checkout("rev-parse", "HEAD")
    assert provenance.environment(("cpu",), str(scratch / "specs.py"))["commit"] == commit
    (scratch / "specs.py").write_text("SPECS = [1]\n")
    provenance.library.cache_clear()
    assert provenance.environment(("cpu",), "specs.py")["commit"] == f"{commit}-dirty"


def test_a_file_that_is_not_tracked_has_no_commit(scratch, checkout):
    (scratch / "other.py").touch()
    assert provenance.library("other.py", frozenset()) == {}


def test_the_distribution_of_the_target_s_package_and_of_namespaces():
    found = provenance.environment(("cpu",), "pytest", ["pytest::no_op", "nowhere::op"])
    assert found["library"] == f"pytest {pytest.__version__}"
    assert provenance.library("nowhere.specs", frozenset()) == {}


def test_the_commit_that_pip_installed_from(scratch, monkeypatch):
    folder = scratch / "my_lib-1.2.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: my-lib\nVersion: 1.2\n")
    (folder / "top_level.txt").write_text("my_lib\n")
    (folder / "direct_url.json").write_text('{"url": "https://x", "vcs_info": {"vcs": "git", "commit_id": "abc"}}')
    (scratch / "my_lib.py").touch()
    monkeypatch.syspath_prepend(str(scratch))
    __import__("my_lib")
    assert provenance.library("my_lib", frozenset()) == {"library": "my-lib 1.2", "commit": "abc"}
    del sys.modules["my_lib"]


def test_what_is_always_told():
    found = provenance.environment(("cpu",))
    assert found["torch"] == torch.__version__
    assert list(found) == ["torch", "python", "platform", "device", "opcheck_suite"]
