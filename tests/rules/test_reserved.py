"""Namespaces of PyTorch: what torch refuses, and what `guard` and the check ``namespace.reserved`` catch instead."""

from __future__ import annotations

import contextlib
import itertools
import pathlib
import subprocess
import sys
import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from opcheck_suite import OpSpec, ReservedNamespaceError, check_op, guard
from opcheck_suite.reserved import RESERVED, owner
from tests.settings import PROPERTY

ROOT = pathlib.Path(__file__).parents[2]
_number = itertools.count()


def kernel(x: Tensor) -> Tensor:
    return x.clone()


def by_custom_op(namespace: str) -> str:
    name = f"{namespace}::probe{next(_number)}"
    _kept.append(torch.library.custom_op(name, kernel, mutates_args=()))
    return name


def by_define(namespace: str) -> str:
    name = f"{namespace}::probe{next(_number)}"
    library = torch.library.Library(namespace, "FRAGMENT")  # without one, torch keeps its own for ever
    _kept.append(library)
    torch.library.define(name, "(Tensor x) -> Tensor", lib=library)
    torch.library.impl(name, "cpu", kernel, lib=library)
    return name


def by_fragment(namespace: str) -> str:
    name = f"probe{next(_number)}"
    library = torch.library.Library(namespace, "FRAGMENT")
    _kept.append(library)
    library.define(f"{name}(Tensor x) -> Tensor")
    library.impl(name, kernel, "CPU")
    return f"{namespace}::{name}"


def by_triton_op(namespace: str) -> str:
    name = f"{namespace}::probe{next(_number)}"
    _kept.append(torch.library.triton_op(name, kernel, mutates_args=()))
    return name


def by_deprecated(namespace: str) -> str:
    from torch._custom_op.impl import custom_op

    def probe(x: Tensor) -> Tensor: ...

    probe.__name__ = f"probe{next(_number)}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = custom_op(f"{namespace}::{probe.__name__}")(probe)
        made.impl("cpu")(kernel)
    _kept.append(made)
    return f"{namespace}::{probe.__name__}"


_kept: list[object] = []
MODERN = (by_custom_op, by_define, by_fragment, by_triton_op)


@pytest.fixture(autouse=True)
def forget():
    """What a test registered in PyTorch's namespaces is taken away again."""
    yield
    for made in _kept:
        library = made if isinstance(made, torch.library.Library) else getattr(made, "_lib", None)
        if library is not None:
            library._destroy()
    _kept.clear()


@pytest.mark.parametrize("namespace", RESERVED)
@pytest.mark.parametrize("way", MODERN, ids=lambda way: way.__name__)
def test_torch_refuses_a_reserved_namespace_or_the_check_finds_the_op(way, namespace):
    if RESERVED[namespace].modern:
        with pytest.raises(ValueError, match="reserved"):
            way(namespace)
        return
    name = way(namespace)
    found = check_op(OpSpec(name), tier="static", checks=["namespace.reserved"], isolate="never")
    assert found.results[0].outcome == "fail", found.results[0].message
    assert RESERVED[namespace].owner in found.results[0].message


@pytest.mark.parametrize("namespace", RESERVED)
def test_the_deprecated_decorator_refuses_what_the_table_says(namespace):
    impl = pytest.importorskip("torch._custom_op.impl", reason="this torch has no torch._custom_op any more")
    assert (namespace in impl.RESERVED_NS) == RESERVED[namespace].deprecated
    with pytest.raises(ValueError, match="reserved"):
        by_deprecated(namespace)


def test_the_table_has_every_namespace_that_torch_knows_as_reserved():
    impl = pytest.importorskip("torch._custom_op.impl", reason="this torch has no torch._custom_op any more")
    assert set(RESERVED) == set(impl.RESERVED_NS)
    assert {n for n, rule in RESERVED.items() if rule.modern} == set(torch.library._reserved_namespaces)


@pytest.mark.parametrize("namespace", [n for n, rule in RESERVED.items() if not rule.modern])
@pytest.mark.parametrize("way", MODERN, ids=lambda way: way.__name__)
def test_the_guard_refuses_and_names_op_and_line(way, namespace):
    with guard(), pytest.raises(ReservedNamespaceError) as raised:
        way(namespace)
    text = str(raised.value)
    assert text.startswith(f"{namespace}::probe")
    assert RESERVED[namespace].owner in text
    place = f"{__file__}:"
    assert place in text
    line = int(text.partition(place)[2].partition(",")[0])
    start = way.__code__.co_firstlineno
    assert start < line <= start + 9


@pytest.mark.parametrize("way", [*MODERN, by_deprecated], ids=lambda way: way.__name__)
def test_the_guard_leaves_other_namespaces_alone_and_ends(way):
    if way is by_deprecated:
        pytest.importorskip("torch._custom_op.impl", reason="this torch has no torch._custom_op any more")
    before = torch.library.Library.define
    with guard():
        way("suite_guarded")
    assert torch.library.Library.define is before
    if way is not by_deprecated:
        way("pytorch")  # taken again


def test_the_guard_lets_kernels_of_torchs_own_ops_be_replaced():
    with guard():
        library = torch.library.Library("aten", "IMPL")
        library.impl("_foobar", lambda *args: args[0], "Meta")
        library._destroy()


def test_the_guard_lets_torch_define_its_own():
    program = "def make(library):\n    library.define('suite_probe(Tensor x) -> Tensor')\n"
    inside: dict[str, object] = {"__name__": "torch._somewhere"}
    exec(program, inside)
    library = torch.library.Library("prims", "FRAGMENT")
    with guard():
        inside["make"](library)  # type: ignore[operator]
    library._destroy()


@pytest.mark.parametrize("spelled", ["ATEN", "Aten", "Prim", "TORCH", "PyTorch"])
def test_upper_and_lower_case_are_one(spelled):
    assert owner(spelled) == RESERVED[spelled.lower()].owner
    with guard(), pytest.raises(ReservedNamespaceError):
        by_fragment(spelled)


@given(st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True).filter(lambda n: n not in RESERVED))
@PROPERTY
def test_ordinary_namespaces_are_nobodys(name):
    assert owner(name) is None


ODD = ["with.dot", "with-dash", "", "1digit", "class", "ünïcode", "a b"]


def test_names_that_cannot_be_written_are_refused_by_torch_or_found():
    """In a process of its own: torch.compile fails in one where there has been such an op."""
    program = """
import contextlib
from opcheck_suite import OpSpec, check_op
from tests.rules.test_reserved import MODERN, ODD
for way in MODERN:
    for namespace in ODD:
        name = None
        with contextlib.suppress(Exception):
            name = way(namespace)
        if name is not None:
            found = check_op(OpSpec(name), tier="static", checks=["namespace.invalid"], isolate="never")
            if [r.outcome for r in found.results] != ["fail"]:
                print(f"{way.__name__} takes {namespace!r}, and no check says so")
print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr


@pytest.mark.parametrize("row", RESERVED)
def test_a_change_of_any_row_is_seen(row, monkeypatch):
    """The tests above hold each row: without it, or with another namespace's enforcement, one of them fails."""
    without = {n: rule for n, rule in RESERVED.items() if n != row}
    monkeypatch.setattr("opcheck_suite.reserved.RESERVED", without)
    assert owner(row) is None
    with guard(), contextlib.suppress(ValueError):  # prim: torch's own refusal
        by_fragment(row)
    impl = pytest.importorskip("torch._custom_op.impl", reason="this torch has no torch._custom_op any more")
    assert set(without) != set(impl.RESERVED_NS)
